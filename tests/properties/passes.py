"""The level on a real directory on which plain runs of the first checkout are passes over one session that stays open.

Whoever watches tells the passes what has changed, or they find it themselves; after each, what they know is what a scan
finds. Now and then another session goes on from what the one before has saved.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconcile.adapters.locate import locate
from reconcile.engine.dispatch import plan_for_policy
from reconcile.engine.engine import Engine
from reconcile.engine.session import Session
from reconcile.model.snapshot import Side
from reconcile.scan.scan import scan
from reconcile.state.directory import state_directory
from tests.properties.said import said
from tests.support.projects.changing_sides import planned
from tests.support.scenarios.commands import outcome_of
from tests.support.scenarios.disk_level import DiskLevel
from tests.support.scenarios.pure_level import FORMAT
from tests.support.scenarios.trees import Folder

if TYPE_CHECKING:
    from reconcile.engine.engine import Pass
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from tests.support.scenarios.commands import Command, Outcome
    from tests.support.scenarios.trees import Tree

CHECK, RESTART = 4, 11
"""Every so many passes, one finds the changes itself, and one is the first of another session."""
SIDES = {Side.STORE: "store", Side.WORKSPACE: "workspace"}


@dataclass(slots=True)
class PassesLevel(DiskLevel):
    """Runs that aren't plain, or are killed, are commands of their own, beside the session."""

    engine: Engine | None = None
    seen: dict[Side, Tree | None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    passes: int = 0

    def invoke(self, command: Command, *more: str) -> Outcome:
        policy = command.under(self.settings, None)
        other = policy.request or policy.only or policy.below or policy.decisions or command.workspace != "workspace"
        if other or more or self.dies or command.dry_run or self.troubles:
            return DiskLevel.invoke(self, command, *more)
        if self.passes % RESTART == RESTART - 1:
            self.forget_session(policy)
        engine, is_check = self._opened(), self.passes % CHECK == 0
        now = {side: self.tree(name) for side, name in SIDES.items()}
        with engine.session.exclusively("watch", 5):
            if is_check:
                found = self._checked(engine, policy)
            else:
                found = planned(engine, policy, self._dirty(now))
                engine.apply(found, "watch")
        self.passes += 1
        how = "full" if found.full else "part" if found.conversations else "nothing"
        self.counts[f"check: {how}" if is_check else how] += 1
        self.seen = {side: self.tree(name) for side, name in SIDES.items()}
        self._check_known(engine)
        self.run_id = engine.session.state.journal.runs()[0].id if found.plan.concerned else ""
        return outcome_of(found.plan)

    def _checked(self, engine: Engine, policy: Policy) -> Pass:
        """Make a pass that nobody tells what has changed: it finds what one that looks at everything finds."""
        meant = self._meant(engine.session, policy)
        engine.check(policy, {})
        found = engine.plan(policy, also=engine.noteworthy)
        assert said(engine.completed(found)) == said(meant), f"{engine.completed(found)} for {meant}"
        engine.settle(found, engine.apply(found, "watch", is_saved=True))
        engine.resume(policy)
        return found

    def _meant(self, session: Session, policy: Policy) -> Plan:
        with Session(session.roots, session.directory, readonly=True, clock=session.now_ns) as other:
            return plan_for_policy(other, other.scan(), other.surroundings(policy))

    def _opened(self) -> Engine:
        if self.engine is None:
            project = self._conversations("workspace").parent.parent
            roots = locate("jp", str(project), str(self._silo), str(project), os.environ, sys.platform)
            directory = state_directory(roots.key, os.environ, sys.platform)
            self.engine = Engine(Session(roots, directory, clock=lambda: self.clock_ns or 0))
        return self.engine

    def _dirty(self, now: dict[Side, Tree | None]) -> dict[Side, set[str]]:
        """Return the directories of what has changed since the last pass."""
        dirty: dict[Side, set[str]] = {}
        for side in Side:
            before, after = self.seen.get(side) or {}, now[side] or {}
            changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
            folders = [path for path in changed if Folder() in (before.get(path), after.get(path))]
            dirty[side] = {path.rpartition("/")[0] for path in changed} | set(folders)
        return dirty

    def _check_known(self, engine: Engine) -> None:
        for side, name in SIDES.items():
            found = scan(side, str(self._conversations(name)), FORMAT, None).snapshot
            known = engine.known.sides[side]
            assert sorted(known.copies(), key=lambda each: each.path) == sorted(
                found.copies, key=lambda each: each.path
            ), f"the {side} isn't known as it is"

    def forget_session(self, policy: Policy | None = None) -> None:
        """Close the session, with what it knows saved: the next plain run opens another one."""
        if self.engine is not None:
            if policy is not None and self.engine.has_unsaved:
                with self.engine.session.exclusively("watch", 5):
                    self.engine.save_for_next(policy)
            self.engine.close()
            self.engine.session.state.close()
            self.engine = None

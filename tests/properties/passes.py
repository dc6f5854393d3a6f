"""The level on a real directory on which plain runs of the first checkout are passes over one session that stays open.

Whoever watches tells the passes what has changed; after each, what they know is what a scan finds.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconcile.adapters.locate import locate
from reconcile.engine.engine import Engine
from reconcile.engine.session import Session
from reconcile.model.snapshot import Side
from reconcile.scan.scan import scan
from reconcile.state.directory import state_directory
from tests.support.projects.changing_sides import planned
from tests.support.scenarios.commands import outcome_of
from tests.support.scenarios.disk_level import DiskLevel
from tests.support.scenarios.pure_level import FORMAT
from tests.support.scenarios.trees import Folder

if TYPE_CHECKING:
    from tests.support.scenarios.commands import Command, Outcome
    from tests.support.scenarios.trees import Tree

SIDES = {Side.STORE: "store", Side.WORKSPACE: "workspace"}


@dataclass(slots=True)
class PassesLevel(DiskLevel):
    """Runs that aren't plain, or are killed, are commands of their own, beside the session."""

    engine: Engine | None = None
    seen: dict[Side, Tree | None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def invoke(self, command: Command, *more: str) -> Outcome:
        policy = command.under(self.settings, None)
        other = policy.request or policy.only or policy.below or policy.decisions or command.workspace != "workspace"
        if other or more or self.dies or command.dry_run or self.troubles:
            return DiskLevel.invoke(self, command, *more)
        engine = self._opened()
        now = {side: self.tree(name) for side, name in SIDES.items()}
        with engine.session.exclusively("watch", 5):
            found = planned(engine, policy, self._dirty(now))
            engine.apply(found, "watch")
        self.counts["full" if found.full else "part" if found.conversations else "nothing"] += 1
        self.seen = {side: self.tree(name) for side, name in SIDES.items()}
        self._check_known(engine)
        self.run_id = engine.session.state.journal.runs()[0].id if found.plan.concerned else ""
        return outcome_of(found.plan)

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

    def forget_session(self) -> None:
        """Close the session: the next plain run opens another one."""
        if self.engine is not None:
            self.engine.close()
            self.engine.session.state.close()
            self.engine = None

"""The level on a real directory on which each plain run of the first checkout goes on from the one before.

What it comes to is compared with what a look at everything comes to, and what it knows at its end with what is there.
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
from reconcile.engine.saved_index import LoadedIndex
from reconcile.engine.session import Session
from reconcile.index.file import IndexFile
from reconcile.index.summary import request_key
from reconcile.scan.scan import scan
from reconcile.state.directory import state_directory
from tests.properties.passes import SIDES
from tests.properties.said import said
from tests.support.scenarios.commands import outcome_of
from tests.support.scenarios.disk_level import DiskLevel
from tests.support.scenarios.pure_level import FORMAT

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from tests.support.scenarios.commands import Command, Outcome


@dataclass(slots=True)
class ResumingLevel(DiskLevel):
    """Runs that aren't plain, or are killed, are commands of their own, in between."""

    counts: Counter[str] = field(default_factory=Counter)

    def invoke(self, command: Command, *more: str) -> Outcome:
        policy = command.under(self.settings, None)
        if not policy.is_plain or command.workspace != "workspace" or more or self.dies or self.troubles:
            return DiskLevel.invoke(self, command, *more)
        if command.dry_run:
            return DiskLevel.invoke(self, command, *more)
        project = self._conversations("workspace").parent.parent
        roots = locate("jp", str(project), str(self._silo), str(project), os.environ, sys.platform)
        directory = state_directory(roots.key, os.environ, sys.platform)
        with Session(roots, directory, clock=self._now) as session, session.exclusively("reconcile", 5):
            plan = self._run(session, policy, roots, directory)
            self.run_id = session.state.journal.runs()[0].id if plan.concerned else ""
        return outcome_of(plan)

    def _now(self) -> int:
        return self.clock_ns or 0

    def _run(self, session: Session, policy: Policy, roots: Roots, directory: str) -> Plan:
        policy = session.surroundings(policy)
        file = IndexFile(directory, roots.workspace_identity)
        summary = file.load_summary(request_key(roots, policy, ()), self._now())
        index = None
        if summary is not None:
            changed = summary.changed()
            index = LoadedIndex.load(session, summary, policy)
            index = index and index.with_changes(session, changed)
        meant = self._meant(roots, directory, policy)
        if summary is not None and index is not None and index.is_unchanged and not summary.due:
            assert not meant.actions, f"nothing has changed, and yet: {meant.actions}"
            assert not meant.concerned
        engine = Engine(session, index)
        engine.begin()
        found = engine.plan(policy)
        plan = engine.completed(found)
        assert said(plan) == said(meant)
        how = "full" if found.full else "part" if found.conversations else "nothing"
        self.counts[how if index is not None else "from nothing"] += 1
        outcome = engine.apply(found, "reconcile", is_saved=True)
        baseline = session.state.load(session.checkout)
        assert all(engine.known.is_clean(conversation, baseline) for conversation in outcome.known_clean)
        engine.save(found, outcome)
        self._check_known(engine)
        return plan

    def _meant(self, roots: Roots, directory: str, policy: Policy) -> Plan:
        """Plan from a look at everything."""
        with Session(roots, directory, readonly=True, clock=self._now) as session:
            return plan_for_policy(session, session.scan(), policy)

    def _check_known(self, engine: Engine) -> None:
        for side, name in SIDES.items():
            found = scan(side, str(self._conversations(name)), FORMAT, None).snapshot
            known = engine.known.sides[side]
            assert sorted(known.copies(), key=lambda each: each.path) == sorted(
                found.copies, key=lambda each: each.path
            ), f"the {side} isn't known as it is"

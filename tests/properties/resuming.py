"""The level on a real directory on which each plain run of the first checkout goes on from the one before.

What it comes to is compared with what a look at everything comes to, and what it knows at its end with what is there.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.adapters.locate import locate
from reconcile.engine.dispatch import plan_as_asked
from reconcile.engine.incremental_run import OnePass, carry_out_whole
from reconcile.engine.passes import Passes
from reconcile.engine.result_cache import asked_of
from reconcile.engine.resume import Recalled
from reconcile.engine.session import Session
from reconcile.index.summary import LastAnswer
from reconcile.scan.scan import scan
from reconcile.state.directory import state_directory
from tests.properties.passes import SIDES
from tests.support.commands import outcome_of
from tests.support.disk_level import DiskLevel
from tests.support.pure_level import FORMAT

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from tests.support.commands import Command, Outcome


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
        rest = LastAnswer.load(directory, roots.workspace_identity)
        if rest is not None and rest.is_about(asked_of(roots, policy, ()), directory, self._now()):
            changed = rest.changed()
            meant = self._meant(roots, directory, policy)
            if not rest.due and not any(changed):
                assert not meant.actions, f"nothing has changed, and yet: {meant.actions}"
                assert not meant.concerned
            recalled = Recalled.load(session, rest)
            one = recalled and OnePass.begin(session, recalled, changed, policy)
            if one is not None:
                assert said(one.plan) == said(meant)
                self.counts["full" if one.found.full else "part" if one.found.conversations else "nothing"] += 1
                one.apply("reconcile", lambda *_: None)
                self._check_known(one)
                return one.plan
        self.counts["from nothing"] += 1
        passes = Passes(session)
        look = passes.look()
        plan = plan_as_asked(session, look, policy)
        carry_out_whole(passes, look, plan, "reconcile", lambda *_: None)
        return plan

    def _meant(self, roots: Roots, directory: str, policy: Policy) -> Plan:
        """Plan from a look at everything."""
        with Session(roots, directory, readonly=True, clock=self._now) as session:
            return plan_as_asked(session, session.look(), policy)

    def _check_known(self, one: OnePass) -> None:
        for side, name in SIDES.items():
            found = scan(side, str(self._conversations(name)), FORMAT, None).snapshot
            known = one.passes.known.sides[side]
            assert sorted(known.copies(), key=lambda each: each.path) == sorted(
                found.copies, key=lambda each: each.path
            ), f"the {side} isn't known as it is"


def said(plan: Plan) -> object:
    """Return what a plan says, in an order of its own."""
    bare = replace(plan, actions=(), held=(), aside=(), notes=(), outline=(), places=(), now_ns=0, quiet=False)
    return (
        [str(replace(action, id="", needs=())) for action in plan.actions],
        sorted(map(str, plan.held)),
        sorted(map(str, plan.aside)),
        sorted(map(str, plan.notes)),
        dict(plan.counted),
        (bare.states, bare.layout),
    )

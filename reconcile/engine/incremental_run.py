"""One plain pass over everything, at the cost of what has changed since the last one where that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.engine.result_cache import is_ordinary
from reconcile.engine.resume import LOOSE, is_kept, keep, resumed
from reconcile.planning.incremental.merge import completed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reconcile.apply.executor import Progress
    from reconcile.apply.outcome import Outcome
    from reconcile.engine.passes import Pass, Passes
    from reconcile.engine.resume import Recalled
    from reconcile.engine.session import Session
    from reconcile.index.snapshots import LastKnown
    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Item, Note, Plan
    from reconcile.model.policy import Policy


class OnePass(Struct, frozen=True):
    """A pass that goes on from an earlier process's, and its plan completed by what that said of everything else."""

    passes: Passes
    found: Pass
    plan: Plan
    kept: LastKnown | None = None
    """What it goes on from."""

    @classmethod
    def begin(
        cls, session: Session, recalled: Recalled, changed: Sequence[Collection[str]], policy: Policy
    ) -> OnePass | None:
        """Look at what has changed, and plan that; None: what is known doesn't suffice.

        ``changed`` has, by side, the paths with another status than when that was kept which is recalled.
        """
        known = resumed(session, recalled, changed, policy)
        if known is None:
            return None
        found = known.passes.some(policy, known.dirty)
        about = found.conversations | {action.conversation for action in found.plan.actions}
        plan = found.plan if found.full else completed(found.plan, about, known.before)
        return cls(known.passes, found, plan, known.kept)

    def apply(self, command: str, progress: Progress) -> Outcome:
        """Carry it out, and keep what is known then for the next process."""
        outcome = self.passes.apply(self.found, command, progress)
        self.passes.close()
        keep(self.passes, self.plan, self.passes.due | _said_of(self.plan, self.found.plan), self.kept)
        return outcome


def carry_out_whole(passes: Passes, world: WorldState, plan: Plan, command: str, progress: Progress) -> Outcome:
    """Carry out a plan made from a look at everything; keep what is known then, where the next process can use that."""
    outcome, after = passes.session.apply(plan, world, command, progress)
    if is_ordinary(plan) and len(plan.concerned) <= LOOSE:
        if outcome.run is None and is_kept(passes.session, plan):
            return outcome
        passes.take_over(plan, world, after, outcome)
        keep(passes, plan, passes.due | _said_of(plan, plan), None)
    return outcome


def _said_of(plan: Plan, done: Plan) -> frozenset[str]:
    """Return the conversations of which a plan says what may not be so any more, once one of its parts is ``done``."""
    acted = done.concerned
    said: tuple[Item | Note, ...] = (*plan.held, *plan.aside, *plan.notes) if acted else ()
    return acted.union(item.conversation for item in said if item.conversation is not None)

"""``RECONCILE_VERIFY=1``: compares every plan of a part with the plan of everything, made from a full scan.

Each comparison costs a full run. The long random tests use it: a closure that is too small would silently lose an
action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.engine.dispatch import plan_for_policy
from reconcile.engine.session import Session
from reconcile.errors import ReconcileError
from reconcile.model.snapshot import Side
from reconcile.planning.incremental.side_index import without_events

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Item, Note, Plan
    from reconcile.planning.incremental.scope import SnapshotIndex


class VerificationError(ReconcileError):
    """The plan of a part differs from the plan of everything."""


def verify(session: Session, known: SnapshotIndex, plan: Plan, conversations: Collection[str]) -> None:
    """Compare a plan of some conversations with the plan of everything.

    If the sides have changed since the scan, the comparison is skipped.

    Raises:
        VerificationError: the plans differ; the message has the first difference.
    """
    with Session(
        session.roots, session.directory, readonly=True, ignore=session.ignore, clock=lambda: plan.now_ns
    ) as other:
        world = other.scan()
        if not _equals_scan(known, world):
            return
        whole = plan_for_policy(other, world, replace(plan.policy, git_busy=None), plan.now_ns)
    for name, partial, full in (
        ("actions", _bare(plan), _bare(whole)),
        ("intents", plan.intents, whole.intents),
        ("tombstones", plan.tombstones, whole.tombstones),
        ("waiting", plan.waiting, whole.waiting),
        ("held", _about(plan.held, conversations), _about(whole.held, conversations)),
        ("aside", _about(plan.aside, conversations), _about(whole.aside, conversations)),
        ("notes", _about(plan.notes, conversations), _about(whole.notes, conversations)),
    ):
        if partial != full:
            raise VerificationError(f"RECONCILE_VERIFY: {name}: of a part {partial}, of everything {full}")


def _equals_scan(known: SnapshotIndex, world: WorldState) -> bool:
    for side, snapshot in ((Side.STORE, world.store), (Side.WORKSPACE, world.workspace)):
        scanned = {copy.path: without_events(copy) for copy in snapshot.copies}
        if {copy.path: copy for copy in known.sides[side].copies()} != scanned:
            return False
    return True


def _bare(plan: Plan) -> list[str]:
    """Return the sorted actions, without their numbers."""
    return sorted(str(replace(action, id="", needs=())) for action in plan.actions)


def _about(items: Iterable[Item] | Iterable[Note], conversations: Collection[str]) -> list[str]:
    return sorted(str(item) for item in items if item.conversation in conversations)

"""Everything that `doctor` finds, on both sides and beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.apply.staging_cleanup import library_staging, staging_name
from reconcile.engine.dispatch import plan_as_asked
from reconcile.engine.lost_versions import lost_with_store
from reconcile.inspect.stray_files import orphaned_locks, staging_directories, temporary_files
from reconcile.model.snapshot import Side
from reconcile.planning.diagnosis import Ailment, Finding, diagnose

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


def examine(session: Session, look: Look, policy: Policy) -> tuple[Finding, ...]:
    """Return all findings, by kind and place; nothing is written, and no lock is tried."""
    board = session.board(look, policy)
    roots = session.roots
    sides = (
        (Side.STORE, roots.store_conversations, look.store.copies),
        (Side.WORKSPACE, roots.workspace_conversations, look.workspace.copies),
    )
    known = {copy.conversation for copy in (*look.store.copies, *look.workspace.copies)}
    # Runs of ours leave the locks of what they remove, as JP's own cleanup takes them away
    # (docs/design/formats/jp.md#lock-files).
    known |= session.state.journal.concerned_since("").keys()
    # Those of the library lie there while a program uses it, and the next run finishes what another has begun.
    identity = session.state.meta("identity") or ""
    ours = {library_staging(identity)} | {staging_name(identity, run.id) for run in session.state.journal.open_runs()}
    remnants: list[Finding] = []
    for side, conversations, copies in sides:
        remnants += staging_directories(side, conversations, ours)
        remnants += temporary_files(side, conversations, copies)
    remnants += orphaned_locks((roots.store, roots.workspace), known, session.format.parse_id)
    lost = [
        Finding(Ailment.LOST, each.conversation, each.left, each.conversation, (each.command,) if each.command else ())
        for each in lost_with_store(session.state, session.project, session.format, look)
    ]
    found = diagnose(board, plan_as_asked(session, look, policy), look.store, look.workspace)
    order = list(Ailment)
    both = (*found, *_untold(found, remnants), *lost)
    return tuple(sorted(both, key=lambda finding: order.index(finding.ailment)))


def _untold(found: Collection[Finding], remnants: Iterable[Finding]) -> Iterator[Finding]:
    """Leave out what can't be read by the scan either, which has told it with what follows from it."""
    unread = [each for each in found if each.ailment is Ailment.UNREADABLE]
    places = {each.place for each in unread}
    conversations = {each.conversation for each in unread} - {None}
    for each in remnants:
        if each.ailment is not Ailment.UNREADABLE or not (each.place in places or each.conversation in conversations):
            yield each

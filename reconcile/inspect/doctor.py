"""Everything that `doctor` finds, on both sides and beside them.

Files that interrupted writes and dead processes have left are looked at, never touched. A directory that can't be
listed is a finding: its content isn't known.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from reconcile.adapters.jp.activity import held_locks
from reconcile.apply.staging_cleanup import STAGING, library_staging, staging_name
from reconcile.engine.dispatch import plan_as_asked
from reconcile.engine.lost_versions import lost_with_store
from reconcile.fs.files import reason
from reconcile.fs.paths import names_in
from reconcile.model.snapshot import Side
from reconcile.planning.diagnosis import SEE_TO_IT, Ailment, Finding, diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy

_LOCKS = "locks"


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
        remnants += _staging_directories(side, conversations, ours)
        remnants += _temporary_files(side, conversations, copies)
    remnants += _orphaned_locks((roots.store, roots.workspace), known, session.format.parse_id)
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


def _temporary_files(side: Side, conversations: str, copies: Collection[Copy]) -> Iterator[Finding]:
    """JP's ``*.tmp`` beside the files of a copy: it deletes them at its next start, in live directories alone."""
    for copy in copies:
        try:
            names = names_in(os.path.join(conversations, copy.path))
        except OSError as error:
            yield _unread(f"{side}:{copy.path}", error, copy.conversation)
            continue
        for name in names:
            path = os.path.join(conversations, copy.path, name)
            if name.endswith(".tmp") and os.path.isfile(path):
                mend = ("jp, at its next start", f"or look at it, and rm {shlex.quote(path)}")
                yield Finding(
                    Ailment.LEFTOVER, f"{side}:{copy.path}/{name}", "JP's half-written file", copy.conversation, mend
                )


def _staging_directories(side: Side, conversations: str, ours: Collection[str]) -> Iterator[Finding]:
    """Staging directories that no state of ours knows: those of a run whose state is lost, or is elsewhere.

    ``ours`` are the names of those that are in use, or that the next run removes.
    """
    try:
        names = names_in(conversations)
    except OSError as error:
        yield _unread(f"{side}:.", error)
        return
    for name in names:
        if name in ours:
            continue
        if name.startswith(STAGING) and os.path.isdir(os.path.join(conversations, name)):
            words = "a staging directory of a reconcile whose state isn't here"
            yield Finding(Ailment.LEFTOVER, f"{side}:{name}", words, mend=("look at it, and move it away",))


def _orphaned_locks(
    roots: Collection[str], known: Collection[str], parse: Callable[[str], str | None]
) -> Iterator[Finding]:
    """Lock files that nobody holds, of conversations that there aren't; and where a link is in their place."""
    held = held_locks(roots)
    for root in roots:
        if os.path.islink(os.path.join(root, _LOCKS)):
            words, way_on = "a symbolic link, never followed", ("put a directory there",)
            yield Finding(Ailment.FOREIGN, os.path.join(root, _LOCKS), words, mend=way_on)
            continue
        try:
            names = names_in(os.path.join(root, _LOCKS))
        except OSError as error:
            yield _unread(os.path.join(root, _LOCKS), error)
            continue
        for name in names:
            conversation = parse(name.removesuffix(".lock")) if name.endswith(".lock") else None
            if conversation is not None and conversation not in known and name not in held:
                path = os.path.join(root, _LOCKS, name)
                yield Finding(
                    Ailment.ORPHANED_LOCK, path, "no such conversation", conversation, ("jp, at its next run",)
                )


def _unread(place: str, error: OSError, conversation: str | None = None) -> Finding:
    return Finding(Ailment.UNREADABLE, place, f"it can't be read ({reason(error)})", conversation, (SEE_TO_IT,))

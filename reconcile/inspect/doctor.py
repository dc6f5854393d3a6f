"""`doctor`: finds problems of conversations on both sides, and stray files that interrupted writes left beside them.

It changes nothing. A directory that can't be listed is a finding: its content isn't known.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from reconcile.adapters.jp.activity import held_locks
from reconcile.apply.staging_cleanup import STAGING, library_staging_name, staging_name
from reconcile.engine.dispatch import plan_as_asked
from reconcile.engine.lost_versions import lost_with_store
from reconcile.fs.files import error_text
from reconcile.fs.paths import names_in
from reconcile.model.snapshot import Side
from reconcile.planning.diagnosis import SEE_TO_IT, Ailment, Finding, diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from reconcile.engine.session import Session
    from reconcile.model.baseline import WorldState
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy

_LOCKS = "locks"


def examine(session: Session, world: WorldState, policy: Policy) -> tuple[Finding, ...]:
    """Return all findings by kind and place. It writes nothing and takes no lock."""
    planning = session.planning_context(world, policy)
    roots = session.roots
    sides = (
        (Side.STORE, roots.store_conversations, world.store.copies),
        (Side.WORKSPACE, roots.workspace_conversations, world.workspace.copies),
    )
    known = {copy.conversation for copy in (*world.store.copies, *world.workspace.copies)}
    # Runs leave the lock files of conversations that they remove: JP's own cleanup deletes them
    # (docs/design/formats/jp.md#lock-files).
    known |= session.state.journal.concerned_since("").keys()
    # The library's staging directory exists while a program uses it; the next run finishes an interrupted run.
    identity = session.state.meta("identity") or ""
    ours = {library_staging_name(identity)} | {
        staging_name(identity, run.id) for run in session.state.journal.open_runs()
    }
    strays: list[Finding] = []
    for side, conversations, copies in sides:
        strays += _staging_directories(side, conversations, ours)
        strays += _temporary_files(side, conversations, copies)
    strays += _orphaned_locks((roots.store, roots.workspace), known, session.format.parse_id)
    lost = [
        Finding(Ailment.LOST, gone.conversation, gone.left, gone.conversation, (gone.command,) if gone.command else ())
        for gone in lost_with_store(session.state, session.project, session.format, world)
    ]
    diagnosed = diagnose(planning, plan_as_asked(session, world, policy), world.store, world.workspace)
    order = list(Ailment)
    findings = (*diagnosed, *_not_among(diagnosed, strays), *lost)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.ailment)))


def _not_among(diagnosed: Collection[Finding], strays: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of ``strays`` without unreadable places that the scan has reported already."""
    unread = [finding for finding in diagnosed if finding.ailment is Ailment.UNREADABLE]
    places = {finding.place for finding in unread}
    conversations = {finding.conversation for finding in unread} - {None}
    for stray in strays:
        is_reported = stray.place in places or stray.conversation in conversations
        if stray.ailment is not Ailment.UNREADABLE or not is_reported:
            yield stray


def _temporary_files(side: Side, conversations: str, copies: Collection[Copy]) -> Iterator[Finding]:
    """Yield JP's ``*.tmp`` files beside copies. JP deletes them at its next start, in live directories only."""
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
    """Yield the staging directories of runs whose state is lost, or is elsewhere.

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
    """Yield unheld lock files of unknown conversations, and a symbolic link in the place of their directory."""
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
    return Finding(Ailment.UNREADABLE, place, f"it can't be read ({error_text(error)})", conversation, (SEE_TO_IT,))

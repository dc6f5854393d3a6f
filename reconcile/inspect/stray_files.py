"""What interrupted writes and dead processes have left beside the conversations; looked at, never touched.

A directory that can't be listed is a finding: what is in it isn't known.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from reconcile.adapters.jp.lock_report import held_locks
from reconcile.fs.files import reason
from reconcile.fs.paths import names_in
from reconcile.planning.diagnosis import SEE_TO_IT, Ailment, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from reconcile.model.snapshot import Copy, Side

STAGING = ".reconcile-"
_LOCKS = "locks"


def temporary_files(side: Side, conversations: str, copies: Collection[Copy]) -> Iterator[Finding]:
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


def staging_directories(side: Side, conversations: str, ours: Collection[str]) -> Iterator[Finding]:
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


def orphaned_locks(
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

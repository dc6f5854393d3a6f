"""Ids of Claude Code's sessions as people read them: the beginnings that tell them apart."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.fs.paths import is_absence
from reconcile.model.format import Entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.model.format import Places

_LINES = ".jsonl"
_SHORTEST = 8
"""Characters of an id that are shown at least."""


def short_ids_at(roots: Roots, also: Collection[str] = ()) -> Mapping[str, str]:
    """Return the short ids of the sessions on both sides, and of ``also``; none if a directory can't be listed.

    None in another format, whose ids are short, or are names of files that a repository shares.
    """
    if roots.format != FORMAT:
        return {}
    from reconcile.formats.claude_code.format import ClaudeCodeFormat  # here: most runs concern another format

    places, sides = ClaudeCodeFormat(()), (roots.store_conversations, roots.workspace_conversations)
    with suppress(OSError):
        return short_ids({record for side in sides for record, _ in records_of(side, places)} | {*also})
    return {}


def short_ids(records: Collection[str]) -> dict[str, str]:
    """Return by session the shortest beginning of its id, of at least 8 characters, that fits no other record.

    Of a file of lines beside a session, such as its subagent's, return the name. A command takes the beginning of a
    record's path, or of its last part. One that fits a session and the files beside it stands for the session.
    """
    from reconcile.formats.claude_code.format import owner_of  # here, as above

    names = [(record, owner_of(record) or record) for record in records]
    names += [(record.rpartition("/")[2], session) for record, session in names if "/" in record]
    names.sort()
    sessions = {session: _SHORTEST for _, session in names if owner_of(session) == session}
    for (name, one), (following, other) in pairwise(names):
        if one != other:
            alike = takewhile(lambda pair: pair[0] == pair[1], zip(name, following, strict=False))
            needed = sum(1 for _ in alike) + 1
            for record, own in ((name, one), (following, other)):
                if own in sessions and record.startswith(own.removesuffix(_LINES)):
                    sessions[own] = max(sessions[own], needed)
    lines = {record: record.rpartition("/")[2].removesuffix(_LINES) for record in records if record.endswith(_LINES)}
    return lines | {session: session[:length].removesuffix(_LINES) for session, length in sessions.items()}


def records_of(root: str, places: Places, path: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files of a side that are records."""
    if not path and os.path.islink(root):
        return
    try:
        with os.scandir(os.path.join(root, path)) as listed:
            entries = list(listed)
    except OSError as error:
        if is_absence(error):
            return
        raise
    for entry in entries:
        below, is_directory = f"{path}/{entry.name}" if path else entry.name, entry.is_dir(follow_symlinks=False)
        if not is_directory and not entry.is_file(follow_symlinks=False):
            continue
        kind = places.entry(below, directory=is_directory)
        if kind is Entry.ENTER:
            yield from records_of(root, places, below)
        elif kind is Entry.RECORD:
            yield below, entry

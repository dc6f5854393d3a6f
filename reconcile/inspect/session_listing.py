"""The listing of Claude Code's sessions for ``ls``: title, branch, last activity, and the days until the next sweep.

The first and the last 16 KB of a session are read (`reconcile.formats.claude_code.ends`), or 256 KB if they have no
whole prompt and time. The tree needs the whole files of sessions that share their beginning with another one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats.claude_code.ends import Ends, ends_of
from reconcile.formats.claude_code.format import ClaudeCodeFormat, owner_of
from reconcile.formats.claude_code.lineage import Lineage, families, parents
from reconcile.formats.jp.times import instant_ns
from reconcile.fs.hashing import chunks_of
from reconcile.fs.paths import open_regular
from reconcile.inspect.listing import draw_tree
from reconcile.inspect.short_ids import records_of, short_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.model.format import Places

_DAY_NS = 86_400 * 10**9
_LINES = ".jsonl"
_ENDS = (1 << 14, 1 << 18)
"""Bytes that are read at each end of a file: at first, and if they don't have enough."""
_NO_ENDS = Ends(None, "", "", "", ())


class SessionRow(Struct, frozen=True):
    """One session, or a subagent of the session above it. ``beside``: files below the session's directory.

    ``bytes`` and ``last_ns`` are the size and the mtime of its file, ``activity_ns`` the time of its last line, or the
    mtime. ``parent`` is the session that it was forked from, or whose subagent it is; it is known in the tree only.
    ``days_left``: days after which the program deletes it; None if it is not in the workspace, or for a subagent.
    ``shared``: the repository's folder for shared sessions has it, too. ``short``: the beginning of its id that no
    other record has, for people.
    """

    branch: str
    record: str
    short: str
    title: str | None
    bytes: int
    last_ns: int
    beside: int
    where: str
    days_left: int | None
    git_branch: str | None
    activity_ns: int
    parent: str | None
    shared: bool


class _File(Struct, frozen=True):
    """A record's file, in the workspace if it is there, and the sides that have it."""

    path: str
    size: int
    mtime_ns: int
    where: str


def list_sessions(
    roots: Roots, ignore: tuple[str, ...], days: int | None, now_ns: int, titles: Mapping[str, str], *, tree: bool
) -> tuple[SessionRow, ...]:
    """Return the sessions of both sides, last used first; with ``tree``, below each its subagents and its forks.

    ``days`` are those after which the program deletes a session; None: never. ``titles`` are those that the last run
    has read in whole sessions. Raises `OSError` if a directory can't be listed, or a file can't be read.
    """
    places = ClaudeCodeFormat(ignore)
    files = _files(roots, places)
    beside: dict[str, list[str]] = {}
    for record in files:
        if (owner := places.owner(record)) is not None:
            beside.setdefault(owner, []).append(record)
    shown = [record for record in files if owner_of(record) == record]
    if tree:
        shown += [
            record for owner, below in beside.items() if owner in files for record in below if places.is_log(record)
        ]
    ends = {record: _ends(files[record]) for record in shown}
    above = {record: owner for record in shown if (owner := places.owner(record)) is not None}
    if tree:
        above |= _forks(files, {record: ends[record].first for record in shown if record not in above})
    rows, short = {}, short_ids(files)
    for record in shown:
        file, facts, is_session = files[record], ends[record], owner_of(record) == record
        left = None if days is None else max(0, days - (now_ns - file.mtime_ns) // _DAY_NS)
        rows[record] = SessionRow(
            "",
            record,
            short[record],
            _title(facts, file, titles.get(record)),
            file.size,
            file.mtime_ns,
            len(beside.get(record, ())),
            file.where,
            left if is_session and file.where != "store" else None,
            facts.branch or None,
            _activity_ns(facts, file),
            above.get(record),
            bool(roots.folder) and os.path.isfile(os.path.join(roots.folder, record)),
        )
    return tuple(_arranged(rows))


def _files(roots: Roots, places: Places) -> dict[str, _File]:
    """Return the records of both sides by their paths."""
    stored = dict(records_of(roots.store_conversations, places))
    files = {}
    for record, entry in records_of(roots.workspace_conversations, places):
        where = "workspace" if stored.pop(record, None) is None else "both"
        files[record] = _file(entry, where)
    return files | {record: _file(entry, "store") for record, entry in stored.items()}


def _file(entry: os.DirEntry[str], where: str) -> _File:
    status = entry.stat(follow_symlinks=False)
    return _File(entry.path, status.st_size, status.st_mtime_ns, where)


def _ends(file: _File) -> Ends:
    """Read the ends of a file, more of it if a line there is long; nothing is known of one that went meanwhile."""
    facts = _NO_ENDS
    with suppress(FileNotFoundError), open_regular(file.path, buffering=0) as opened:
        for end in _ENDS:
            facts = _ends_of(opened.fileno(), file.size, end)
            if (facts.title and facts.last) or file.size <= 2 * end:
                break
    return facts


def _ends_of(fd: int, size: int, end: int) -> Ends:
    if size <= 2 * end:
        return ends_of(os.pread(fd, 2 * end, 0))
    return ends_of(os.pread(fd, end, 0), os.pread(fd, end, size - end))


def _title(facts: Ends, file: _File, known: str | None) -> str | None:
    """Return the title of a session: that of a person at its end, or else of the whole file, if that was not read."""
    is_read = file.size <= 2 * _ENDS[0]
    return facts.title if is_read else facts.newest or known or facts.title


def _forks(files: Mapping[str, _File], first: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the record that each fork was made from."""
    uuids = {record.removesuffix(_LINES): known for record, known in first.items()}
    above: dict[str, str] = {}
    for family in families(uuids):
        lines = {session: _lineage(files[session + _LINES]) for session in family}
        above |= {fork + _LINES: parent + _LINES for fork, parent in parents(lines, uuids).items()}
    return above


def _lineage(file: _File) -> Lineage:
    used = datetime.fromtimestamp(file.mtime_ns / 10**9, UTC).isoformat(timespec="milliseconds")
    with open_regular(file.path) as opened:
        return Lineage.of(chunks_of(opened.fileno()), used.replace("+00:00", "Z"))


def _activity_ns(ends: Ends, file: _File) -> int:
    at_ns = instant_ns(ends.last) if ends.last else None
    return file.mtime_ns if at_ns is None else at_ns


def _arranged(rows: Mapping[str, SessionRow]) -> Iterator[SessionRow]:
    """Yield the rows, last used first; below each, drawn as a tree, its subagents in their order, and its forks."""
    below: dict[str, list[str]] = {}
    for record, row in rows.items():
        if row.parent is not None:
            below.setdefault(row.parent, []).append(record)

    def ordered(records: Iterable[str]) -> list[str]:
        subagents = sorted((rows[each].activity_ns, each) for each in records if owner_of(each) != each)
        sessions = sorted((-rows[each].activity_ns, each) for each in records if owner_of(each) == each)
        return [each for _, each in (*subagents, *sessions)]

    tops = [record for record, row in rows.items() if row.parent is None]
    for record, branch in draw_tree(ordered(tops), lambda parent: ordered(below.get(parent, ()))):
        yield replace(rows[record], branch=branch)

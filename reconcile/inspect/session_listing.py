"""The listing of Claude Code's sessions for ``ls``: title, size, last use, and the days until the next sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.claude_code.format import owner_of
from reconcile.inspect.listing import sides_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.planning.rules.views import View

_DAY_NS = 86_400 * 10**9


class SessionRow(Struct, frozen=True):
    """One session, or a subagent of the session above it. ``beside``: files below the session's directory.

    ``bytes`` is the size of its file. ``days_left``: days after which the program deletes it; None if it is not in the
    workspace, or for a subagent.
    """

    branch: str
    record: str
    title: str | None
    bytes: int
    last_ns: int
    beside: int
    where: str
    days_left: int | None


def list_sessions(views: Iterable[View], days: int, now_ns: int, *, tree: bool) -> tuple[SessionRow, ...]:
    """Return the sessions of both sides, last used first; with ``tree``, each with its subagents below it."""
    sessions: dict[str, View] = {}
    beside: dict[str, list[View]] = {}
    for view in views:
        if view.store.main is None and view.workspace.main is None:
            continue
        owner = owner_of(view.id)
        if owner is not None and owner == view.id:
            sessions[owner] = view
        elif owner is not None:
            beside.setdefault(owner, []).append(view)
    rows: list[SessionRow] = []
    for owner, view in sorted(sessions.items(), key=lambda pair: (-_file(pair[1])[1], pair[0])):
        below = beside.get(owner, [])
        rows.append(_row(view, "", len(below), days, now_ns))
        agents = [view for view in below if view.id.endswith(".jsonl")] if tree else []
        for number, agent in enumerate(sorted(agents, key=lambda agent: (_file(agent)[1], agent.id)), 1):
            branch = "└── " if number == len(agents) else "├── "
            rows.append(_row(agent, branch, 0, None, now_ns))
    return tuple(rows)


def _row(view: View, branch: str, beside: int, days: int | None, now_ns: int) -> SessionRow:
    size, last_ns = _file(view)
    facts = view.workspace.metadata or view.store.metadata
    left = None
    if days is not None and view.workspace.main is not None:
        left = max(0, days - (now_ns - last_ns) // _DAY_NS)
    return SessionRow(branch, view.id, facts.title if facts else None, size, last_ns, beside, sides_of(view), left)


def _file(view: View) -> tuple[int, int]:
    """Return the size and the mtime (ns) of a record, in the workspace if it is there."""
    copy = view.workspace.main or view.store.main
    assert copy is not None  # noqa: S101 - only such views are listed
    (file,) = copy.files
    return file.size, file.mtime_ns

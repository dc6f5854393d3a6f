"""The checkouts in the state of every store, read without changing any: which projects has a run seen?"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.files import unreadable
from reconcile.fs.paths import names_in, status_at
from reconcile.model.snapshot import Unreadable
from reconcile.state.connection import StateError
from reconcile.state.database_file import check_file_kinds, connect_to_file_alone, has_logs, open_for_reading
from reconcile.state.directory import NAME
from reconcile.state.schema import REMOTE

if TYPE_CHECKING:
    from collections.abc import Iterator


class SeenCheckout(NamedTuple):
    """A checkout in the state of a store. ``key`` is the name of the state's directory, ``last_seen`` a time in ns.

    ``store_identity``: see `reconcile.model.baseline.Baseline`.
    """

    key: str
    project: str
    identity: str
    store_identity: str | None
    last_seen: int


def seen_checkouts(states: str, prefix: str = "") -> Iterator[SeenCheckout | Unreadable]:
    """Yield the checkouts of each state below a directory whose key begins with ``prefix``; what can't be read, too."""
    try:
        names = names_in(states)
    except OSError as error:
        yield unreadable(states, error)
        return
    for name in names:
        if name.startswith(prefix):
            path = os.path.join(states, name, NAME)
            try:
                yield from _rows(name, path)
            except OSError as error:
                yield unreadable(path, error)
            except (sqlite3.Error, StateError) as error:
                yield Unreadable(path, str(error), "a record of checkouts")


def _rows(key: str, path: str) -> list[SeenCheckout]:
    """Return the checkouts in one database. Raises `OSError`, `sqlite3.Error`, `StateError`."""
    if status_at(path) is None:
        return []
    check_file_kinds(os.path.dirname(path))
    is_whole = not has_logs(path)  # no run is using it or was killed
    state = connect_to_file_alone(path) if is_whole else open_for_reading(os.path.dirname(path), [])
    with closing(state):
        sql = "SELECT project, identity, store_identity, last_seen FROM checkout WHERE NOT (identity GLOB ?)"
        rows = state.execute(sql, (f"{REMOTE}*",)).fetchall()
    return [
        SeenCheckout(key, project, identity, store, seen)
        for project, identity, store, seen in rows
        if isinstance(project, str) and isinstance(identity, str) and isinstance(seen, int)
    ]

"""`model.baseline.Baseline` in the state's tables: read in bulk, written by change (docs/design/run.md#rule-52)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.baseline import (
    LOST,
    AsideKind,
    AsideRecord,
    Baseline,
    BaselineEntry,
    ConversationRecord,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
)
from reconcile.model.snapshot import METADATA, Side
from reconcile.state.connection import encoded, select

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.model.snapshot import Digest


FEW = 500
"""Conversations that are asked for by name; SQLite takes a thousand names anywhere."""


class Fold(Struct, frozen=True, kw_only=True):
    """Changes of what is remembered; what is not named stays as it is.

    ``agreed``, ``intents``, ``asides``, ``tombstones``, ``waiting``: None takes the entry out. ``history``: digests
    that become the newest entries, oldest first; one that is known already moves to the end. ``parents``: None is
    a root. ``tombstones`` are added to the others and carry ``run``. ``store_identity``, ``layout``:
    None keeps them. ``store_lost``: no other checkout believes any more what it knows of the store. Nor does it where
    one of ``brought`` was agreed on in another checkout: they are saved into a store that lacks them.
    """

    agreed: Mapping[str, BaselineEntry | None] = field(default_factory=dict)
    history: Mapping[tuple[str, str], tuple[Digest, ...]] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    intents: Mapping[str, Intent | None] = field(default_factory=dict)
    asides: Mapping[tuple[str, str], AsideRecord | None] = field(default_factory=dict)
    tombstones: Mapping[str, Collection[Digest] | None] = field(default_factory=dict)
    waiting: Mapping[tuple[str, Verb], PendingRequest | None] = field(default_factory=dict)
    run: str | None = None
    store_identity: str | None = None
    store_lost: bool = False
    brought: Collection[str] = ()
    layout: str | None = None

    def without(self, conversations: Collection[str]) -> Fold:
        """Return what is left if nothing is said of these."""
        if not conversations:
            return self
        return replace(
            self,
            agreed={key: value for key, value in self.agreed.items() if key not in conversations},
            history={key: value for key, value in self.history.items() if key[0] not in conversations},
            parents={key: value for key, value in self.parents.items() if key not in conversations},
            intents={key: value for key, value in self.intents.items() if key not in conversations},
            asides={key: value for key, value in self.asides.items() if key[0] not in conversations},
            tombstones={key: value for key, value in self.tombstones.items() if key not in conversations},
            waiting={key: value for key, value in self.waiting.items() if key[0] not in conversations},
        )

    @property
    def conversations(self) -> set[str]:
        """Those that something is said of."""
        by_unit = (key for key, _ in (*self.history, *self.asides, *self.waiting))
        return {*self.agreed, *self.parents, *self.intents, *self.tombstones, *by_unit}

    @property
    def empty(self) -> bool:
        """There is nothing to write."""
        changes = (
            self.agreed,
            self.history,
            self.parents,
            self.intents,
            self.asides,
            self.tombstones,
            self.waiting,
        )
        lost = self.store_lost or self.brought
        return not (any(changes) or lost) and self.store_identity is None and self.layout is None


def load(connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None = None) -> Baseline:
    """All that is remembered for one checkout; with None only what belongs to the store as a whole.

    ``only``: of these conversations alone, of a few at a cost that the others have no part in.
    """
    rows = select(connection, "SELECT layout, store_identity FROM checkout WHERE id = ?", (checkout,))
    layout, store_identity = rows[0] if rows else (None, None)
    agreed = _load_agreed(connection, checkout, only)
    tombstones: dict[str, set[Digest]] = {}
    for conversation, digest in _about(connection, only, "SELECT conversation, digest FROM tombstone WHERE 1"):
        tombstones.setdefault(conversation, set()).add(digest)
    asides = _about(
        connection,
        only,
        "SELECT conversation, unit, kind, store, workspace FROM aside WHERE checkout = ?",
        checkout,
    )
    return Baseline(
        checkout_known=layout is not None or bool(agreed),
        layout=layout,
        store_identity=store_identity,
        agreed=agreed,
        intents=load_intents(connection, checkout, only),
        history=_load_history(connection, only),
        parents=dict(_about(connection, only, "SELECT conversation, parent FROM parent WHERE 1")),
        tombstones={conversation: frozenset(digests) for conversation, digests in tombstones.items()},
        asides={(row[0], row[1]): AsideRecord(AsideKind(row[2]), row[3], row[4]) for row in asides},
        renames=_load_renames(connection, checkout),
        waiting=_load_waiting(connection, checkout, only),
    )


def _load_renames(connection: sqlite3.Connection, checkout: int | None) -> frozenset[tuple[Side, str]]:
    """Return the conversations of which a run has left a directory with another name than it was to get.

    Where their metadata was agreed on since, or before, the title that goes with that tells what is due; what is in the
    store alone is due until a later run has moved it there.
    """
    sql = """SELECT conversation, record FROM step WHERE kind = 'move' AND state <> 'done'
        AND run IN (SELECT id FROM run WHERE checkout = ? AND exit_code IS NOT 0)
        AND conversation NOT IN (SELECT conversation FROM agreed_unit WHERE checkout = ? AND unit = ?)
        AND NOT EXISTS (
            SELECT 1 FROM remembered AS its JOIN step AS later ON later.run = its.run
            WHERE its.conversation = step.conversation AND its.run > step.run
            AND later.conversation = its.conversation AND later.kind = 'move' AND later.state = 'done'
            AND substr(json_extract(later.record, '$.target'), 1, 5)
                = substr(json_extract(step.record, '$.target'), 1, 5)
        )"""
    moves = [(each, json.loads(record)) for each, record in select(connection, sql, (checkout, checkout, METADATA))]
    return frozenset(
        (Side(move["target"].partition(":")[0]), each)
        for each, move in moves
        if _dirname(move["source"]) != _dirname(move["target"])
    )


def _load_waiting(
    connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None
) -> dict[tuple[str, Verb], PendingRequest]:
    sql = """SELECT conversation, verb, value, before, along, store, workspace, run, why
        FROM waiting WHERE checkout = ?"""
    return {
        (each, Verb(verb)): PendingRequest(value, before, tuple(json.loads(along)), *rest)
        for each, verb, value, before, along, *rest in _about(connection, only, sql, checkout)
    }


def _dirname(place: str) -> str:
    return place.partition(":")[2].rpartition("/")[2]


def _about(
    connection: sqlite3.Connection, only: Collection[str] | None, sql: str, *of: int | None, order: str = ""
) -> list[tuple[Any, ...]]:
    """The rows of a query with a condition, the conversation first, that are about some; None: about all."""
    if only is None:
        return select(connection, sql + order, of)
    if len(only) > FEW:
        return [row for row in select(connection, sql + order, of) if row[0] in only]
    places = ", ".join("?" * len(only))
    return select(connection, f"{sql} AND conversation IN ({places}){order}", (*of, *only))


def _fews(conversations: Iterable[str]) -> Iterator[list[str]]:
    """As many at a time as can be asked for by name."""
    left = list(conversations)
    for start in range(0, len(left), FEW):
        yield left[start : start + FEW]


def _load_agreed(
    connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None
) -> dict[str, BaselineEntry]:
    units: dict[str, dict[str, Digest]] = {}
    sql = "SELECT conversation, unit, digest FROM agreed_unit WHERE checkout = ?"
    for conversation, unit, digest in _about(connection, only, sql, checkout):
        units.setdefault(conversation, {})[unit] = digest
    sql = "SELECT conversation, parent, title, container, place FROM agreed WHERE checkout = ?"
    rows = _about(connection, only, sql, checkout)
    return {row[0]: BaselineEntry(units.get(row[0], {}), row[1], row[2], row[3], row[4]) for row in rows}


def load_intents(
    connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None = None
) -> dict[str, Intent]:
    """The intents that hold in one checkout, all or those of some conversations."""
    # Nearly all are the same value; it is frozen, so they share one.
    plain = {(kind.value, None, None, None): Intent(kind) for kind in IntentKind}
    sql = "SELECT conversation, kind, waits_for, place, run FROM intent WHERE checkout = ?"
    rows = _about(connection, only, sql, checkout)
    # Local holds in every checkout, whatever else is known there.
    sql = "SELECT conversation, 'local', waits_for, place, run FROM intent_local WHERE 1"
    rows += _about(connection, only, sql)
    return {row[0]: plain.get(row[1:]) or Intent(IntentKind(row[1]), *row[2:]) for row in rows}


def _load_history(
    connection: sqlite3.Connection, only: Collection[str] | None
) -> dict[tuple[str, str], tuple[Digest, ...]]:
    history: dict[tuple[str, str], tuple[Digest, ...]] = {}
    several: dict[tuple[str, str], list[Digest]] = {}
    sql = "SELECT conversation, unit, digest FROM history WHERE 1"
    rows = _about(connection, only, sql, order=" ORDER BY conversation, unit, seq")
    for conversation, unit, digest in rows:
        key = (conversation, unit)
        if key not in history:
            history[key] = (digest,)
        else:
            several.setdefault(key, [*history[key]]).append(digest)
    return history | {key: tuple(digests) for key, digests in several.items()}


def save(connection: sqlite3.Connection, checkout: int, fold: Fold) -> None:
    """Write the changes, within the caller's transaction. Rows that say the same already aren't touched."""
    before = connection.total_changes
    believed = fold.store_lost or _are_believed(connection, checkout, fold.brought)
    if believed or _is_another(connection, checkout, fold.store_identity):
        _list_lost(connection)
    connection.execute(
        """UPDATE checkout SET
            layout = coalesce(:layout, layout), store_identity = coalesce(:store, store_identity)
        WHERE id = :id AND (layout IS NOT coalesce(:layout, layout)
            OR store_identity IS NOT coalesce(:store, store_identity))""",
        {"id": checkout, "layout": fold.layout, "store": fold.store_identity},
    )
    if believed:
        connection.execute(
            """UPDATE checkout SET store_identity = ?1 WHERE id <> ?2 AND store_identity <> ?1 AND EXISTS (
                SELECT 1 FROM agreed WHERE agreed.checkout = checkout.id
                AND conversation NOT IN (SELECT conversation FROM tombstone))""",
            (LOST, checkout),
        )
    _save_agreed(connection, checkout, fold.agreed)
    _save_history(connection, fold.history)
    connection.executemany(
        """INSERT INTO parent VALUES (?, ?) ON CONFLICT DO UPDATE SET parent = excluded.parent
        WHERE parent IS NOT excluded.parent""",
        encoded(fold.parents.items()),
    )
    _save_intents(connection, checkout, fold.intents)
    _save_asides(connection, checkout, fold.asides)
    _save_tombstones(connection, fold)
    _save_waiting(connection, checkout, fold.waiting)
    if connection.total_changes > before:
        note_changed(connection, fold.conversations)


def _is_another(connection: sqlite3.Connection, checkout: int, identity: str | None) -> bool:
    """Tell whether a checkout has known another store, and believed that."""
    if identity is None:
        return False
    ((known,),) = select(connection, "SELECT store_identity FROM checkout WHERE id = ?", (checkout,))
    return known not in (None, LOST, identity)


def _list_lost(connection: sqlite3.Connection) -> None:
    """List all that the store had, as far as it is known; what is seen there again is taken out."""
    connection.execute(
        """INSERT INTO lost SELECT conversation, max(title) FROM (
            SELECT conversation, title FROM agreed UNION ALL SELECT conversation, NULL FROM intent
            UNION ALL SELECT conversation, NULL FROM intent_local
        ) WHERE conversation NOT IN (SELECT conversation FROM tombstone) GROUP BY conversation ON CONFLICT DO NOTHING"""
    )


def _are_believed(connection: sqlite3.Connection, checkout: int, conversations: Collection[str]) -> bool:
    """Tell whether another checkout believes of one of these that the store has it."""
    sql = "SELECT id FROM checkout WHERE id <> ? AND store_identity <> ?"
    others = select(connection, sql, (checkout, LOST))
    sql = "SELECT conversation FROM agreed WHERE checkout = ?"
    return any(_about(connection, some, sql, other) for (other,) in others for some in _fews(conversations))


def note_changed(connection: sqlite3.Connection, conversations: Iterable[str]) -> None:
    """Give these the next number, by which others find what has changed since they have looked."""
    number = newest_change(connection) + 1
    connection.executemany(
        "INSERT INTO changed VALUES (?, ?) ON CONFLICT DO UPDATE SET number = excluded.number",
        encoded((conversation, number) for conversation in sorted(conversations)),
    )


def newest_change(connection: sqlite3.Connection) -> int:
    """Return the number of the newest change of what is remembered."""
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM changed").fetchone()
    return int(number)


def put_back(connection: sqlite3.Connection, checkout: int, again: Mapping[str, ConversationRecord]) -> None:
    """Have what was remembered of some conversations hold again, within the caller's transaction."""
    for table in ("parent", "tombstone"):
        connection.executemany(f"DELETE FROM {table} WHERE conversation = ?", encoded((key,) for key in again))  # noqa: S608
    mine = encoded((checkout, key) for key in again)
    connection.executemany("DELETE FROM aside WHERE checkout = ? AND conversation = ?", mine)
    fold = Fold(
        agreed={key: each.agreed for key, each in again.items()},
        parents={key: each.parent for key, each in again.items() if each.parent_known},
        intents={key: each.intent for key, each in again.items()},
        asides={(key, unit): record for key, each in again.items() for unit, record in each.asides.items()},
        tombstones={key: each.tombstone for key, each in again.items() if each.tombstone},
    )
    save(connection, checkout, fold)


def _save_agreed(connection: sqlite3.Connection, checkout: int, agreed: Mapping[str, BaselineEntry | None]) -> None:
    gone = [(checkout, conversation) for conversation, now in agreed.items() if now is None]
    connection.executemany("DELETE FROM agreed WHERE checkout = ? AND conversation = ?", encoded(gone))
    # In order, here and below: the pages of a table are filled and written one after the other.
    there = {conversation: now for conversation, now in sorted(agreed.items()) if now is not None}
    connection.executemany(
        """INSERT INTO agreed VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            parent = excluded.parent, title = excluded.title,
            container = excluded.container, place = excluded.place
        WHERE (parent, title, container, place)
            IS NOT (excluded.parent, excluded.title, excluded.container, excluded.place)""",
        encoded((checkout, key, now.parent, now.title, now.container, now.place) for key, now in there.items()),
    )
    sql = "SELECT conversation, unit FROM agreed_unit WHERE checkout = ?"
    surplus = [
        (checkout, conversation, unit)
        for some in _fews(there)
        for conversation, unit in _about(connection, some, sql, checkout)
        if unit not in there[conversation].units
    ]
    connection.executemany(
        "DELETE FROM agreed_unit WHERE checkout = ? AND conversation = ? AND unit = ?", encoded(surplus)
    )
    connection.executemany(
        """INSERT INTO agreed_unit VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET digest = excluded.digest
        WHERE digest IS NOT excluded.digest""",
        encoded((checkout, key, unit, digest) for key, now in there.items() for unit, digest in now.units.items()),
    )


def _save_history(connection: sqlite3.Connection, history: Mapping[tuple[str, str], tuple[Digest, ...]]) -> None:
    new: list[tuple[str, str, int, Digest]] = []
    moved: list[tuple[str, str, Digest]] = []
    sql = "SELECT conversation, unit, max(seq), digest FROM history WHERE 1"
    newest = {
        (conversation, unit): (last, digest)
        for some in _fews(dict.fromkeys(conversation for conversation, _ in history))
        for conversation, unit, last, digest in _about(connection, some, sql, order=" GROUP BY conversation, unit")
    }
    for (conversation, unit), digests in sorted(history.items()):
        last, digest = newest.get((conversation, unit), (0, None))
        # Each once, at its last place; what is the newest already needs nothing.
        added = list(reversed(dict.fromkeys(reversed(digests))))
        if added == [digest]:
            continue
        if digest is not None:
            moved += [(conversation, unit, digest) for digest in added]
        new += [(conversation, unit, last + 1 + place, digest) for place, digest in enumerate(added)]
    connection.executemany("DELETE FROM history WHERE conversation = ? AND unit = ? AND digest = ?", encoded(moved))
    connection.executemany("INSERT INTO history VALUES (?, ?, ?, ?)", encoded(new))


def _save_intents(connection: sqlite3.Connection, checkout: int, intents: Mapping[str, Intent | None]) -> None:
    """Local is kept for the store, the others for this checkout; each takes the place of whatever held here.

    What other checkouts know of a conversation stays below its being local, and holds again when that ends.
    """
    local = {key: intent for key, intent in intents.items() if intent is not None and intent.kind is IntentKind.LOCAL}
    here = {key: intent for key, intent in intents.items() if intent is not None and key not in local}
    connection.executemany(
        "DELETE FROM intent_local WHERE conversation = ?",
        encoded((key,) for key in intents.keys() - local.keys()),
    )
    connection.executemany(
        "DELETE FROM intent WHERE checkout = ? AND conversation = ?",
        encoded((checkout, key) for key in intents.keys() - here.keys()),
    )
    connection.executemany(
        """INSERT INTO intent_local VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            waits_for = excluded.waits_for, place = excluded.place, run = excluded.run
        WHERE (waits_for, place, run) IS NOT (excluded.waits_for, excluded.place, excluded.run)""",
        encoded((key, intent.waits_for, intent.place, intent.run) for key, intent in local.items()),
    )
    connection.executemany(
        """INSERT INTO intent VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            kind = excluded.kind, waits_for = excluded.waits_for, place = excluded.place, run = excluded.run
        WHERE (kind, waits_for, place, run)
            IS NOT (excluded.kind, excluded.waits_for, excluded.place, excluded.run)""",
        encoded(
            (checkout, key, intent.kind.value, intent.waits_for, intent.place, intent.run)
            for key, intent in here.items()
        ),
    )


def _save_asides(
    connection: sqlite3.Connection, checkout: int, asides: Mapping[tuple[str, str], AsideRecord | None]
) -> None:
    connection.executemany(
        "DELETE FROM aside WHERE checkout = ? AND conversation = ? AND unit = ?",
        encoded((checkout, *key) for key, record in asides.items() if record is None),
    )
    connection.executemany(
        """INSERT INTO aside VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            kind = excluded.kind, store = excluded.store, workspace = excluded.workspace
        WHERE (kind, store, workspace) IS NOT (excluded.kind, excluded.store, excluded.workspace)""",
        encoded(
            (checkout, *key, record.kind.value, record.store, record.workspace)
            for key, record in asides.items()
            if record is not None
        ),
    )


def _save_tombstones(connection: sqlite3.Connection, fold: Fold) -> None:
    connection.executemany(
        "DELETE FROM tombstone WHERE conversation = ?",
        encoded((key,) for key, digests in fold.tombstones.items() if digests is None),
    )
    connection.executemany(
        "INSERT INTO tombstone VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        encoded((key, digest, fold.run) for key, digests in fold.tombstones.items() for digest in digests or ()),
    )


def _save_waiting(
    connection: sqlite3.Connection, checkout: int, waiting: Mapping[tuple[str, Verb], PendingRequest | None]
) -> None:
    ended = [(checkout, each, verb.value) for (each, verb), found in waiting.items() if found is None]
    sql = "DELETE FROM waiting WHERE checkout = ? AND conversation = ? AND verb = ?"
    connection.executemany(sql, encoded(ended))
    connection.executemany(
        "INSERT OR REPLACE INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        encoded(
            (
                *(checkout, each, verb.value, found.value, found.before, json.dumps(found.along)),
                *(found.store, found.workspace, found.run, found.why),
            )
            for (each, verb), found in waiting.items()
            if found is not None
        ),
    )

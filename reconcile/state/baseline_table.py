"""The baseline (`model.baseline.Baseline`) in the tables of the state (docs/design/run.md#rule-52).

It is read in bulk, and written by changed rows.
"""

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
    DecidedUnit,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
    is_local,
)
from reconcile.model.snapshot import METADATA, Side, is_same_directory
from reconcile.state.connection import encoded_rows, select, write_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.snapshot import Digest


_BYTES = ("utf-8", "surrogateescape")
"""The encoding of the content of files in the database, valid text or not."""
MAX_NAMES = 500
"""Conversations that one query names; every build of SQLite takes a thousand parameters."""


class BaselineUpdate(Struct, frozen=True, kw_only=True):
    """Changes of the baseline. Entries without a change stay.

    ``agreed``, ``intents``, ``asides``, ``tombstones``, ``waiting``: None removes the entry. ``history``: digests that
    become the newest entries, oldest first; a known one moves to the end. ``parents``: None is a root. ``tombstones``
    are added, with ``run``. ``store_identity``, ``layout``: None keeps the value. ``store_lost``: the other checkouts
    stop to rely on their knowledge of the store. They do so, too, if one of ``brought``, which are saved into a store
    that lacks them, was agreed on in another checkout. ``contents``: by id and digest, metadata that is agreed on.
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
    contents: Mapping[tuple[str, Digest], bytes] = field(default_factory=dict)

    def without(self, conversations: Collection[str]) -> BaselineUpdate:
        """Return the changes without those of these conversations."""
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
            contents={key: value for key, value in self.contents.items() if key[0] not in conversations},
        )

    @property
    def conversations(self) -> set[str]:
        """The conversations with a change."""
        by_unit = (key for key, _ in (*self.history, *self.asides, *self.waiting))
        return {*self.agreed, *self.parents, *self.intents, *self.tombstones, *by_unit}

    @property
    def empty(self) -> bool:
        """Whether there is no change."""
        changes = (
            self.agreed,
            self.history,
            self.parents,
            self.intents,
            self.asides,
            self.tombstones,
            self.waiting,
            self.contents,
        )
        lost = self.store_lost or self.brought
        return not (any(changes) or lost) and self.store_identity is None and self.layout is None


def load(connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None = None) -> Baseline:
    """Return the baseline of a checkout; with None, only the part that belongs to the store.

    ``only`` limits it to these conversations. For a few, the cost doesn't depend on the number of the others.
    """
    rows = select(connection, "SELECT layout, store_identity FROM checkout WHERE id = ?", (checkout,))
    layout, store_identity = rows[0] if rows else (None, None)
    agreed = _load_entries(connection, checkout, only)
    tombstones: dict[str, set[Digest]] = {}
    for conversation, digest in _select_for(connection, only, "SELECT conversation, digest FROM tombstone WHERE 1"):
        tombstones.setdefault(conversation, set()).add(digest)
    asides = _select_for(
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
        parents=dict(_select_for(connection, only, "SELECT conversation, parent FROM parent WHERE 1")),
        tombstones={conversation: frozenset(digests) for conversation, digests in tombstones.items()},
        asides={(row[0], row[1]): AsideRecord(AsideKind(row[2]), row[3], row[4]) for row in asides},
        renames=_load_renames(connection, checkout),
        waiting=_load_waiting(connection, checkout, only),
    )


def _load_renames(connection: sqlite3.Connection, checkout: int | None) -> frozenset[tuple[Side, str]]:
    """Return the conversations whose directory a run should have renamed and has not, each with its side.

    If their metadata is agreed on, the agreed title decides instead. A conversation that only the store has stays due
    until a later run has moved it there.
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
    moves = [
        (conversation, json.loads(record))
        for conversation, record in select(connection, sql, (checkout, checkout, METADATA))
    ]
    return frozenset(
        (Side(move["target"].partition(":")[0]), conversation)
        for conversation, move in moves
        if _dirname(move["source"]) != _dirname(move["target"])
    )


def _load_waiting(
    connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None
) -> dict[tuple[str, Verb], PendingRequest]:
    sql = """SELECT conversation, verb, value, before, along, store, workspace, run, why, decided
        FROM waiting WHERE checkout = ?"""
    waiting: dict[tuple[str, Verb], PendingRequest] = {}
    for conversation, verb, value, before, along, *rest, decided in _select_for(connection, only, sql, checkout):
        units = tuple([DecidedUnit(unit, tuple(seen), take) for unit, seen, take in json.loads(decided)])
        request = PendingRequest(value, before, tuple(json.loads(along)), *rest)
        waiting[conversation, Verb(verb)] = replace(request, decided=units)
    return waiting


def _dirname(place: str) -> str:
    return place.partition(":")[2].rpartition("/")[2]


def _select_for(
    connection: sqlite3.Connection, only: Collection[str] | None, sql: str, *of: int | None, order: str = ""
) -> list[tuple[Any, ...]]:
    """Return the rows of a query that are about some conversations, with None about all.

    The query must have a condition, and the conversation as its first column.
    """
    if only is None:
        return select(connection, sql + order, of)
    if len(only) > MAX_NAMES:
        return [row for row in select(connection, sql + order, of) if row[0] in only]
    places = ", ".join("?" * len(only))
    return select(connection, f"{sql} AND conversation IN ({places}){order}", (*of, *only))


def _batches(conversations: Iterable[str]) -> Iterator[list[str]]:
    """Yield the conversations in batches that one query can name."""
    left = list(conversations)
    for start in range(0, len(left), MAX_NAMES):
        yield left[start : start + MAX_NAMES]


def _load_entries(
    connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None
) -> dict[str, BaselineEntry]:
    units: dict[str, dict[str, Digest]] = {}
    sql = "SELECT conversation, unit, digest FROM agreed_unit WHERE checkout = ?"
    for conversation, unit, digest in _select_for(connection, only, sql, checkout):
        units.setdefault(conversation, {})[unit] = digest
    sql = "SELECT conversation, parent, title, container, place FROM agreed WHERE checkout = ?"
    rows = _select_for(connection, only, sql, checkout)
    return {row[0]: BaselineEntry(units.get(row[0], {}), row[1], row[2], row[3], row[4]) for row in rows}


def load_contents(
    connection: sqlite3.Connection, wanted: Iterable[tuple[str, Digest]]
) -> dict[tuple[str, Digest], bytes]:
    """Return the agreed metadata by conversation and digest, as far as it is kept."""
    by = dict(wanted)
    sql = "SELECT conversation, digest, content FROM agreed_content WHERE 1"
    return {
        (conversation, digest): content.encode(*_BYTES)
        for batch in _batches(by)
        for conversation, digest, content in _select_for(connection, batch, sql)
        if by[conversation] == digest
    }


def load_intents(
    connection: sqlite3.Connection, checkout: int | None, only: Collection[str] | None = None
) -> dict[str, Intent]:
    """Return the intents that hold in one checkout, all or those of some conversations."""
    # Nearly all are equal, and the values are frozen: they share one object.
    plain = {(kind.value, None, None, None): Intent(kind) for kind in IntentKind}
    sql = "SELECT conversation, kind, waits_for, place, run FROM intent WHERE checkout = ?"
    rows = _select_for(connection, only, sql, checkout)
    # A local conversation is local in every checkout, and that overrides its other intents.
    sql = "SELECT conversation, 'local', waits_for, place, run FROM intent_local WHERE 1"
    rows += _select_for(connection, only, sql)
    return {row[0]: plain.get(row[1:]) or Intent(IntentKind(row[1]), *row[2:]) for row in rows}


def _load_history(
    connection: sqlite3.Connection, only: Collection[str] | None
) -> dict[tuple[str, str], tuple[Digest, ...]]:
    history: dict[tuple[str, str], tuple[Digest, ...]] = {}
    several: dict[tuple[str, str], list[Digest]] = {}
    sql = "SELECT conversation, unit, digest FROM history WHERE 1"
    rows = _select_for(connection, only, sql, order=" ORDER BY conversation, unit, seq")
    for conversation, unit, digest in rows:
        key = (conversation, unit)
        if key not in history:
            history[key] = (digest,)
        else:
            several.setdefault(key, [*history[key]]).append(digest)
    return history | {key: tuple(digests) for key, digests in several.items()}


def save(connection: sqlite3.Connection, checkout: int, update: BaselineUpdate) -> None:
    """Write the changes, in the caller's transaction. Rows with the same values are not written."""
    before = connection.total_changes
    is_lost = update.store_lost or _any_believed(connection, checkout, update.brought)
    if is_lost or _is_another(connection, checkout, update.store_identity):
        _list_lost(connection)
    connection.execute(
        """UPDATE checkout SET
            layout = coalesce(:layout, layout), store_identity = coalesce(:store, store_identity)
        WHERE id = :id AND (layout IS NOT coalesce(:layout, layout)
            OR store_identity IS NOT coalesce(:store, store_identity))""",
        {"id": checkout, "layout": update.layout, "store": update.store_identity},
    )
    if is_lost:
        connection.execute(
            """UPDATE checkout SET store_identity = ?1 WHERE id <> ?2 AND store_identity <> ?1 AND EXISTS (
                SELECT 1 FROM agreed WHERE agreed.checkout = checkout.id
                AND conversation NOT IN (SELECT conversation FROM tombstone))""",
            (LOST, checkout),
        )
    _save_entries(connection, checkout, update.agreed)
    _prune_contents(connection, update.agreed)
    write_rows(
        connection,
        "INSERT INTO agreed_content VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        ((*key, content.decode(*_BYTES)) for key, content in sorted(update.contents.items())),
    )
    _save_history(connection, update.history)
    write_rows(
        connection,
        """INSERT INTO parent VALUES (?, ?) ON CONFLICT DO UPDATE SET parent = excluded.parent
        WHERE parent IS NOT excluded.parent""",
        update.parents.items(),
    )
    _save_intents(connection, checkout, update.intents)
    _end_removals(connection, update.intents)
    _save_asides(connection, checkout, update.asides)
    _save_tombstones(connection, checkout, update)
    _save_waiting(connection, checkout, update.waiting)
    if connection.total_changes > before:
        note_changed(connection, update.conversations)


def _is_another(connection: sqlite3.Connection, checkout: int, identity: str | None) -> bool:
    """Tell whether the checkout relied on another store before."""
    if identity is None:
        return False
    ((known,),) = select(connection, "SELECT store_identity FROM checkout WHERE id = ?", (checkout,))
    return known not in (None, LOST) and not is_same_directory(identity, known)


def _list_lost(connection: sqlite3.Connection) -> None:
    """List all known conversations of the store as lost; those that are found again are removed later."""
    connection.execute(
        """INSERT INTO lost SELECT conversation, max(title) FROM (
            SELECT conversation, title FROM agreed UNION ALL SELECT conversation, NULL FROM intent
            UNION ALL SELECT conversation, NULL FROM intent_local
        ) WHERE conversation NOT IN (SELECT conversation FROM tombstone) GROUP BY conversation ON CONFLICT DO NOTHING"""
    )


def _any_believed(connection: sqlite3.Connection, checkout: int, conversations: Collection[str]) -> bool:
    """Tell whether another checkout relies on the store for one of these conversations.

    A run has removed those of the tombstones, so that their absence is no loss of the store.
    """
    sql = "SELECT id FROM checkout WHERE id <> ? AND store_identity <> ?"
    checkouts = select(connection, sql, (checkout, LOST))
    sql = """SELECT conversation FROM agreed WHERE checkout = ?
        AND conversation NOT IN (SELECT conversation FROM tombstone)"""
    return any(
        _select_for(connection, batch, sql, other) for (other,) in checkouts for batch in _batches(conversations)
    )


def note_changed(connection: sqlite3.Connection, conversations: Iterable[str]) -> None:
    """Give these conversations the next number, by which other processes find the changes since their last scan."""
    number = newest_change(connection) + 1
    write_rows(
        connection,
        "INSERT INTO changed VALUES (?, ?) ON CONFLICT DO UPDATE SET number = excluded.number",
        ((conversation, number) for conversation in sorted(conversations)),
    )


def newest_change(connection: sqlite3.Connection) -> int:
    """Return the number of the newest change of the baseline."""
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM changed").fetchone()
    return int(number)


def restore(connection: sqlite3.Connection, checkout: int, baselines: Mapping[str, ConversationRecord]) -> None:
    """Restore the former baseline of some conversations, in the caller's transaction."""
    for table in ("parent", "tombstone"):
        connection.executemany(f"DELETE FROM {table} WHERE conversation = ?", encoded_rows((key,) for key in baselines))  # noqa: S608
    mine = encoded_rows((checkout, key) for key in baselines)
    connection.executemany("DELETE FROM aside WHERE checkout = ? AND conversation = ?", mine)
    update = BaselineUpdate(
        agreed={key: baseline.agreed for key, baseline in baselines.items()},
        parents={key: baseline.parent for key, baseline in baselines.items() if baseline.parent_known},
        intents={key: baseline.intent for key, baseline in baselines.items()},
        asides={(key, unit): record for key, baseline in baselines.items() for unit, record in baseline.asides.items()},
        tombstones={key: baseline.tombstone for key, baseline in baselines.items() if baseline.tombstone},
    )
    save(connection, checkout, update)


def _save_entries(connection: sqlite3.Connection, checkout: int, entries: Mapping[str, BaselineEntry | None]) -> None:
    gone = [(checkout, conversation) for conversation, now in entries.items() if now is None]
    connection.executemany("DELETE FROM agreed WHERE checkout = ? AND conversation = ?", encoded_rows(gone))
    # Sorted, here and below, so that the pages of a table are written one after the other.
    there = {conversation: now for conversation, now in sorted(entries.items()) if now is not None}
    write_rows(
        connection,
        """INSERT INTO agreed VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            parent = excluded.parent, title = excluded.title,
            container = excluded.container, place = excluded.place
        WHERE (parent, title, container, place)
            IS NOT (excluded.parent, excluded.title, excluded.container, excluded.place)""",
        ((checkout, key, now.parent, now.title, now.container, now.place) for key, now in there.items()),
    )
    sql = "SELECT conversation, unit FROM agreed_unit WHERE checkout = ?"
    surplus = [
        (checkout, conversation, unit)
        for batch in _batches(there)
        for conversation, unit in _select_for(connection, batch, sql, checkout)
        if unit not in there[conversation].units
    ]
    connection.executemany(
        "DELETE FROM agreed_unit WHERE checkout = ? AND conversation = ? AND unit = ?", encoded_rows(surplus)
    )
    write_rows(
        connection,
        """INSERT INTO agreed_unit VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET digest = excluded.digest
        WHERE digest IS NOT excluded.digest""",
        ((checkout, key, unit, digest) for key, now in there.items() for unit, digest in now.units.items()),
    )


def _prune_contents(connection: sqlite3.Connection, conversations: Iterable[str]) -> None:
    """Delete the metadata of these conversations that no checkout agrees on any more."""
    if not select(connection, "SELECT 1 FROM agreed_content LIMIT 1"):
        return
    for batch in encoded_rows(_batches(conversations)):
        places = ", ".join("?" * len(batch))
        connection.execute(
            f"""DELETE FROM agreed_content WHERE conversation IN ({places})
                AND NOT EXISTS (SELECT 1 FROM checkout CROSS JOIN agreed_unit AS entry ON entry.checkout = checkout.id
                    WHERE entry.conversation = agreed_content.conversation AND entry.unit = 'metadata'
                    AND entry.digest = agreed_content.digest)""",  # noqa: S608 - no values in it
            batch,
        )


def add_older(
    connection: sqlite3.Connection,
    history: Mapping[tuple[str, str], Sequence[Digest]],
    tombstones: Mapping[str, Sequence[Digest]],
) -> None:
    """Add versions before the oldest one of each unit, oldest first, and tombstones, in the caller's transaction.

    A known version stays at its place. A unit without a known version gets none: they are older than nothing.
    """
    before = connection.total_changes
    known: dict[tuple[str, str], dict[Digest, int]] = {}
    sql = "SELECT conversation, unit, seq, digest FROM history WHERE 1"
    for batch in _batches(dict.fromkeys(conversation for conversation, _ in history)):
        for conversation, unit, seq, digest in _select_for(connection, batch, sql):
            known.setdefault((conversation, unit), {})[digest] = seq
    rows: list[tuple[str, str, int, Digest]] = []
    for (conversation, unit), there in known.items():
        new = [digest for digest in history.get((conversation, unit), ()) if digest not in there]
        first = min(there.values()) - len(new)
        rows += [(conversation, unit, first + place, digest) for place, digest in enumerate(new)]
    write_rows(connection, "INSERT INTO history VALUES (?, ?, ?, ?)", rows)
    write_rows(
        connection,
        "INSERT INTO tombstone VALUES (?, ?, NULL) ON CONFLICT DO NOTHING",
        ((key, digest) for key, digests in tombstones.items() for digest in digests),
    )
    if connection.total_changes > before:
        note_changed(connection, {*(conversation for conversation, *_ in rows), *tombstones})


def _save_history(connection: sqlite3.Connection, history: Mapping[tuple[str, str], tuple[Digest, ...]]) -> None:
    new: list[tuple[str, str, int, Digest]] = []
    moved: list[tuple[str, str, Digest]] = []
    sql = "SELECT conversation, unit, max(seq), digest FROM history WHERE 1"
    newest = {
        (conversation, unit): (last, digest)
        for batch in _batches(dict.fromkeys(conversation for conversation, _ in history))
        for conversation, unit, last, digest in _select_for(
            connection, batch, sql, order=" GROUP BY conversation, unit"
        )
    }
    for (conversation, unit), digests in sorted(history.items()):
        last, digest = newest.get((conversation, unit), (0, None))
        # Each digest once, at its last position. The newest digest needs no change.
        added = list(reversed(dict.fromkeys(reversed(digests))))
        if added == [digest]:
            continue
        if digest is not None:
            moved += [(conversation, unit, digest) for digest in added]
        new += [(conversation, unit, last + 1 + place, digest) for place, digest in enumerate(added)]
    connection.executemany(
        "DELETE FROM history WHERE conversation = ? AND unit = ? AND digest = ?", encoded_rows(moved)
    )
    write_rows(connection, "INSERT INTO history VALUES (?, ?, ?, ?)", new)


_IS_WISH = "kind = 'projected' AND waits_for IS NULL AND place IS NULL"
"""The rows of `Intent.is_wish`."""


def _save_intents(connection: sqlite3.Connection, checkout: int, intents: Mapping[str, Intent | None]) -> None:
    """Save a local intent for the store, every other one for this checkout; it replaces the intent that held here.

    The intents of other checkouts stay in their rows. They hold again when the conversation stops to be local. A local
    intent ends only the pending requests to publish it: they are older, also where no run has carried them out.
    """
    local = {key: intent for key, intent in intents.items() if intent is not None and is_local(intent)}
    here = {key: intent for key, intent in intents.items() if intent is not None and key not in local}
    connection.executemany(
        "DELETE FROM intent_local WHERE conversation = ?",
        encoded_rows((key,) for key in intents.keys() - local.keys()),
    )
    connection.executemany(
        "DELETE FROM intent WHERE checkout = ? AND conversation = ?",
        encoded_rows((checkout, key) for key in intents.keys() - here.keys()),
    )
    connection.executemany(
        f"DELETE FROM intent WHERE conversation = ? AND {_IS_WISH}",  # noqa: S608 - no values in it
        encoded_rows((key,) for key in local),
    )
    connection.executemany(
        """INSERT INTO intent_local VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            waits_for = excluded.waits_for, place = excluded.place, run = excluded.run
        WHERE (waits_for, place, run) IS NOT (excluded.waits_for, excluded.place, excluded.run)""",
        encoded_rows((key, intent.waits_for, intent.place, intent.run) for key, intent in local.items()),
    )
    connection.executemany(
        """INSERT INTO intent VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            kind = excluded.kind, waits_for = excluded.waits_for, place = excluded.place, run = excluded.run
        WHERE (kind, waits_for, place, run)
            IS NOT (excluded.kind, excluded.waits_for, excluded.place, excluded.run)""",
        encoded_rows(
            (checkout, key, intent.kind.value, intent.waits_for, intent.place, intent.run)
            for key, intent in here.items()
        ),
    )


def _end_removals(connection: sqlite3.Connection, intents: Mapping[str, Intent | None]) -> None:
    """End the pending removals, in every checkout, of what a person has made local or published since."""
    kept = [key for key, intent in intents.items() if intent and (intent.is_wish or is_local(intent))]
    sql = "DELETE FROM waiting WHERE conversation = ? AND verb = ?"
    connection.executemany(sql, encoded_rows((key, Verb.REMOVE.value) for key in kept))


def _save_asides(
    connection: sqlite3.Connection, checkout: int, asides: Mapping[tuple[str, str], AsideRecord | None]
) -> None:
    connection.executemany(
        "DELETE FROM aside WHERE checkout = ? AND conversation = ? AND unit = ?",
        encoded_rows((checkout, *key) for key, record in asides.items() if record is None),
    )
    connection.executemany(
        """INSERT INTO aside VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            kind = excluded.kind, store = excluded.store, workspace = excluded.workspace
        WHERE (kind, store, workspace) IS NOT (excluded.kind, excluded.store, excluded.workspace)""",
        encoded_rows(
            (checkout, *key, record.kind.value, record.store, record.workspace)
            for key, record in asides.items()
            if record is not None
        ),
    )


def _save_tombstones(connection: sqlite3.Connection, checkout: int, update: BaselineUpdate) -> None:
    """Save the tombstones. A removal ends the pending requests of other checkouts to publish the conversation."""
    connection.executemany(
        f"DELETE FROM intent WHERE conversation = ? AND checkout <> ? AND {_IS_WISH}",  # noqa: S608 - no values in it
        encoded_rows((key, checkout) for key, digests in update.tombstones.items() if digests),
    )
    connection.executemany(
        "DELETE FROM tombstone WHERE conversation = ?",
        encoded_rows((key,) for key, digests in update.tombstones.items() if digests is None),
    )
    connection.executemany(
        "INSERT INTO tombstone VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        encoded_rows(
            (key, digest, update.run) for key, digests in update.tombstones.items() for digest in digests or ()
        ),
    )


def _save_waiting(
    connection: sqlite3.Connection, checkout: int, waiting: Mapping[tuple[str, Verb], PendingRequest | None]
) -> None:
    ended = [
        (checkout, conversation, verb.value) for (conversation, verb), request in waiting.items() if request is None
    ]
    sql = "DELETE FROM waiting WHERE checkout = ? AND conversation = ? AND verb = ?"
    connection.executemany(sql, encoded_rows(ended))
    connection.executemany(
        "INSERT OR REPLACE INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        encoded_rows(
            (
                *(checkout, conversation, verb.value, request.value, request.before, json.dumps(request.along)),
                *(request.store, request.workspace, request.run, request.why),
                json.dumps([(each.unit, each.seen, each.take) for each in request.decided]),
            )
            for (conversation, verb), request in waiting.items()
            if request is not None
        ),
    )


def copy(connection: sqlite3.Connection, source: int, target: int, only: Collection[str] | None = None) -> None:
    """Replace the agreed contents of a checkout, and what it has set aside, by those of another one.

    ``only`` limits it to these conversations.
    """
    whole = "(SELECT layout, store_identity FROM checkout WHERE id = ?)"
    connection.execute(f"UPDATE checkout SET (layout, store_identity) = {whole} WHERE id = ?", (source, target))  # noqa: S608
    for batch in ((),) if only is None else _batches(only):
        _copy_rows(connection, source, target, batch)


def _copy_rows(connection: sqlite3.Connection, source: int, target: int, batch: Sequence[str]) -> None:
    """Copy the rows of these conversations; none: those of all."""
    chosen = f" AND conversation IN ({', '.join('?' * len(batch))})" if batch else ""
    (names_of_batch,) = encoded_rows([tuple(batch)]) if batch else ((),)
    for table, columns in _COPIED:
        # Only rows that differ: a trigger looks for other uses of each entry that goes.
        same = " AND ".join(f"other.{column} IS {table}.{column}" for column in columns)
        kept = f"SELECT 1 FROM {table} AS other WHERE other.checkout = ? AND {same}"  # noqa: S608 - names of our own
        sql = f"DELETE FROM {table} WHERE checkout = ? AND NOT EXISTS ({kept}){chosen}"  # noqa: S608
        connection.execute(sql, (target, source, *names_of_batch))
        names = ", ".join(columns)
        rows = f"SELECT ?, {names} FROM {table} WHERE checkout = ?{chosen}"  # noqa: S608
        sql = f"INSERT OR IGNORE INTO {table} (checkout, {names}) {rows}"
        connection.execute(sql, (target, source, *names_of_batch))


_COPIED = (
    ("agreed", ("conversation", "parent", "title", "container", "place")),
    ("agreed_unit", ("conversation", "unit", "digest")),
    ("aside", ("conversation", "unit", "kind", "store", "workspace")),
)
"""The tables of `copy`, with their columns; an entry of ``agreed`` comes before its units."""

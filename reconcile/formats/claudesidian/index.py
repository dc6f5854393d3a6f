"""Both indexes: derived from the records as the program derives them, and compared with the stored ones, in words.

See docs/design/formats/claudesidian.md#derivation and docs/design/formats/claudesidian.md#comparison. At the words
`constructor` and `__proto__` the program throws. Here their entries are written all the same: an index that has them as
its own keys heals the vault (docs/design/formats/claudesidian.md#breaking-tokens). `lastUpdated` and the ranges of
`byDateRange` are never compared, because they depend on when they were written.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.formats.claudesidian.finding import counted, some
from reconcile.formats.claudesidian.record_files import Kind, messages_of, sessions_of, traces_of
from reconcile.formats.claudesidian.union import LATEST
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import kind as kind_of
from reconcile.formats.json.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.formats.claudesidian.record_files import Value


BREAKING = frozenset({"constructor", "__proto__"})
"""Words that are inherited members of JavaScript objects, unless the index has them as its own keys."""

BY_TOKEN = {Kind.WORKSPACE: ("byName", "byDescription"), Kind.CONVERSATION: ("byTitle", "byContent", "byVault")}
"""The parts of an index that map words to lists of ids."""
BLOCKS = {Kind.WORKSPACE: "workspaces", Kind.CONVERSATION: "conversations"}
"""The part of an index with the members that are copied from each record."""

_COPIED = {
    Kind.WORKSPACE: ("id", "name", "description", "rootFolder", "created", "lastAccessed", "isActive"),
    Kind.CONVERSATION: ("id", "title", "created", "updated", "vault_name", "message_count"),
}
TIMES = ("created", "lastAccessed", "updated")
"""The copied members that are times, in ms."""
_WORD = re.compile(r"[A-Za-z0-9_]{3,}")
_BUCKETS = 12
_BUCKET_MS = 30 * 24 * 60 * 60 * 1000


def tokens(text: object) -> list[str]:
    """Return the words of a text for the search index, in their order, with repetitions.

    Lower case is that of Unicode, but only letters of ASCII form words, and only words of at least three characters
    count. `sum` finds `résumé`; nothing finds Japanese (docs/design/formats/claudesidian.md#edge-case-6).
    """
    return _WORD.findall(text.lower()) if isinstance(text, str) else []


def rebuild(kind: Kind, records: Iterable[Mapping[str, Any]], now_ms: int, *, buckets: bool = True) -> Value:
    """Return the index of these records, in the order of the listing; the later of two with one id wins.

    With ``buckets``, `byDateRange` has twelve ranges before ``now_ms``; otherwise it is empty.
    """
    if kind is Kind.WORKSPACE:
        return _workspaces(records, now_ms)
    return _conversations(records, now_ms, _date_buckets(now_ms) if buckets else [])


def entry(kind: Kind, record: Mapping[str, Any]) -> Value:
    """Return the members that the index copies from a record; missing members are left out."""
    copied = {name: record[name] for name in _COPIED[kind] if name in record}
    if kind is Kind.WORKSPACE:
        sessions = sessions_of(record)
        copied["sessionCount"] = len(sessions)
        copied["traceCount"] = sum(len(traces_of(session)) for session in sessions.values())
    return copied


def _workspaces(records: Iterable[Mapping[str, Any]], now_ms: int) -> Value:
    index: Value = {"workspaces": {}, "byName": {}, "byDescription": {}, "byFolder": {}, "sessionsByWorkspace": {}}
    for record in records:
        id_ = record["id"]
        again = id_ in index["workspaces"]
        index["workspaces"][id_] = entry(Kind.WORKSPACE, record)
        _add(index["byName"], [record.get("name")], id_, again)
        _add(index["byDescription"], [record.get("description")], id_, again)
        if isinstance(record.get("rootFolder"), str):
            index["byFolder"][record["rootFolder"]] = id_
        index["sessionsByWorkspace"][id_] = list(sessions_of(record))
    return {**index, "lastUpdated": now_ms}


def _conversations(records: Iterable[Mapping[str, Any]], now_ms: int, buckets: list[Value]) -> Value:
    index: Value = {"conversations": {}, "byTitle": {}, "byContent": {}, "byVault": {}, "byDateRange": buckets}
    for record in records:
        id_ = record["id"]
        again = id_ in index["conversations"]
        index["conversations"][id_] = entry(Kind.CONVERSATION, record)
        _add(index["byTitle"], [record.get("title")], id_, again)
        _add(index["byVault"], [record.get("vault_name")], id_, again)
        _add(index["byContent"], [message.get("content") for message in messages_of(record)], id_, again)
        _file_by_date(buckets, record.get("created"), id_)
    return {**index, "lastUpdated": now_ms}


def _add(part: dict[str, list[str]], texts: Iterable[object], id_: str, again: bool) -> None:
    """Add the id of a record under its words; ``again``: an earlier record had the same id."""
    for token in dict.fromkeys(token for text in texts for token in tokens(text)):
        ids = part.setdefault(token, [])
        # The search is slow for common words, which have an id for each record.
        if not again or id_ not in ids:
            ids.append(id_)


def _file_by_date(buckets: list[Value], created: object, id_: str) -> None:
    if not isinstance(created, (int, float)):
        return
    for bucket in buckets:
        if bucket["start"] <= created < bucket["end"]:
            if id_ not in bucket["conversationIds"]:
                bucket["conversationIds"].append(id_)
            return


def _date_buckets(now_ms: int) -> list[Value]:
    ends = (now_ms - months * _BUCKET_MS for months in range(_BUCKETS))
    return [{"start": end - _BUCKET_MS, "end": end, "conversationIds": []} for end in ends]


def keeping(kind: Kind, index: Value, stored: Mapping[str, Any], ids: frozenset[str]) -> Value:
    """Return the index with the stored entries of records whose files can't be read.

    They are the last that is known of these records, and the program's own index keeps them too.
    """
    block = BLOCKS[kind]
    for id_ in sorted(ids & stored[block].keys() - index[block].keys()):
        index[block][id_] = stored[block][id_]
        for part in BY_TOKEN[kind]:
            for token, leads in stored[part].items():
                if id_ in leads:
                    index[part].setdefault(token, []).append(id_)
        if kind is Kind.WORKSPACE:
            for folder, leads in stored["byFolder"].items():
                if leads == id_:
                    index["byFolder"].setdefault(folder, id_)
            if id_ in stored["sessionsByWorkspace"]:
                index["sessionsByWorkspace"][id_] = stored["sessionsByWorkspace"][id_]
        else:
            _file_by_date(index["byDateRange"], stored[block][id_].get("created"), id_)
    return index


def written(index: Mapping[str, Any], stored: Mapping[str, Any] | None) -> bytes:
    """Return the bytes of an index that replaces the stored one; unknown keys of that are kept."""
    kept = {key: value for key, value in (stored or {}).items() if key not in index}
    return javascript.stringify({**index, **kept})


class Sort(StrEnum):
    """The kind of a difference at one record."""

    UNINDEXED = "unindexed"
    """The index has no entry of an existing record: it can't be found."""
    MISSING = "missing"
    """A word, or the folder, of an indexed record does not lead to it."""
    GHOST = "ghost"
    """The index has an entry of a missing record."""
    STALE = "stale"
    """A copied member has changed in the record."""
    STALE_TOKEN = "stale-token"  # noqa: S105 - a word of a search index
    """A former word or folder of the record still leads to it."""
    LOST = "lost"
    """The index counts more than the record holds: something was overwritten
    (docs/design/formats/claudesidian.md#c6).
    """
    REPLACED = "replaced"
    """The index is of a later version of the record: an older copy has replaced it
    (docs/design/formats/claudesidian.md#edge-case-21).
    """
    BREAKING = "breaking"
    """The program throws at this word, so it could never index it. An index with this word heals the vault."""


class Difference(Struct, frozen=True):
    """One difference, in words; ``fields`` are the members of the entry that it is about."""

    sort: Sort
    id: str
    words: str
    fields: tuple[str, ...] = ()


_COUNTS = {Kind.WORKSPACE: ("sessionCount", "traceCount"), Kind.CONVERSATION: ("message_count",)}
_COUNTED = {"sessionCount": "sessions", "traceCount": "traces", "message_count": "messages"}


def shape_problem(kind: Kind, stored: object) -> str | None:
    """Return the reason why a parsed index can't be traversed, None if it can."""
    if not isinstance(stored, dict):
        return kind_of(stored)
    parts = _parts(kind)
    for part in parts:
        if not isinstance(stored.get(part), dict):
            return f"{kind_of(stored[part])} as {part}" if part in stored else f"no {part}"
    lists = [part for part in parts if part not in (BLOCKS[kind], "byFolder")]
    for part in lists:
        if any(not isinstance(member, list) for member in stored[part].values()):
            return f"a member of {part} that is not a list"
    if any(not isinstance(member, dict) for member in stored[BLOCKS[kind]].values()):
        return f"a member of {BLOCKS[kind]} that is not an object"
    return None


def _parts(kind: Kind) -> list[str]:
    return [BLOCKS[kind], *BY_TOKEN[kind], *(("byFolder", "sessionsByWorkspace") if kind is Kind.WORKSPACE else ())]


def in_shape(kind: Kind, stored: object) -> dict[str, Any] | None:
    """Return the usable parts of a parsed index, with unusable ones empty; None if it is no index at all."""
    if not isinstance(stored, dict):
        return None
    usable = dict(stored)
    for part in _parts(kind):
        shape = dict if part == BLOCKS[kind] else str if part == "byFolder" else list
        members = stored.get(part)
        entries = members.items() if isinstance(members, dict) else ()
        usable[part] = {key: member for key, member in entries if isinstance(member, shape)}
    return usable


def counts_of(kind: Kind, entry: object) -> str:
    """Return the counts in an index entry, in words; empty if there are none."""
    counts = {name: entry.get(name) for name in _COUNTS[kind]} if isinstance(entry, dict) else {}
    words = [f"{count} {_COUNTED[name]}" for name, count in counts.items() if isinstance(count, (int, float)) and count]
    return " and ".join(words)


def compare(
    kind: Kind, stored: Mapping[str, Any], rebuilt: Mapping[str, Any], unread: frozenset[str] = frozenset()
) -> tuple[Difference, ...]:
    """Return the differences of the stored index from the rebuilt one, by record, in the order of the listing.

    ``unread`` are the ids of files that can't be read: they are ignored here. ``stored`` is an index without a
    `shape_problem`.
    """
    old, new = stored[BLOCKS[kind]], rebuilt[BLOCKS[kind]]
    # Most indexes are correct: equal parts are skipped.
    parts = [part for part in BY_TOKEN[kind] if stored[part] != rebuilt[part]]
    words = {part: words_by_id(stored[part], rebuilt[part]) for part in parts}
    folders = _by_id({folder: [at] for folder, at in stored.get("byFolder", {}).items()})
    differences: list[Difference] = []
    for id_ in new:
        if id_ not in old:
            differences.append(Difference(Sort.UNINDEXED, id_, f"no entry of {_title_of(kind, new[id_])}"))
        else:
            differences += _entry(kind, id_, old[id_], new[id_])
            for part, (had, has) in words.items():
                differences += _tokens(part, id_, had.get(id_, {}), has.get(id_, {}))
            if kind is Kind.WORKSPACE:
                differences += _folders(id_, stored, new[id_].get("rootFolder"), folders.get(id_, {}))
                differences += _sessions(id_, stored, rebuilt)
        differences += _breaking(kind, id_, stored, rebuilt)
    return (*differences, *_ghosts(kind, stored, parts, set(new) | unread))


def _title_of(kind: Kind, entry: Mapping[str, Any]) -> str:
    name = entry.get("name" if kind is Kind.WORKSPACE else "title")
    return f"{entry['id']} ({quoted(name)})" if isinstance(name, str) else str(entry["id"])


def _entry(kind: Kind, id_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield differences of the members that are copied from the record."""
    stale: list[str] = []
    for field in dict.fromkeys((*new, *old)):
        stored_value, rebuilt_value = old.get(field), new.get(field)
        if stored_value == rebuilt_value and (field in old) == (field in new):
            continue
        surplus = _surplus(stored_value, rebuilt_value)
        if field in _COUNTS[kind] and surplus:
            words = f"{stored_value} {_COUNTED[field]} in the index, {rebuilt_value} in the file: {surplus} may be lost"
            yield Difference(Sort.LOST, id_, words, (field,))
        elif field == LATEST[kind] and surplus:
            words = f"{field} is {stored_value} in the index and {rebuilt_value} in the file"
            words += ", since an older copy replaced the file"
            yield Difference(Sort.REPLACED, id_, words, (field,))
        else:
            stale.append(field)
    if stale:
        words_of_stale = "; ".join(
            f"{name} is {_shown(old, name)} in the index and {_shown(new, name)} in the file" for name in stale
        )
        yield Difference(Sort.STALE, id_, words_of_stale, tuple(stale))


def words_by_id(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[dict[object, dict[str, None]], dict[object, dict[str, None]]]:
    """Return the words of each id in two versions of a part, without words that lead to the same ids in both."""
    differing = [{token: part[token] for token in part if old.get(token) != new.get(token)} for part in (old, new)]
    return _by_id(differing[0]), _by_id(differing[1])


def _by_id(part: Mapping[str, Iterable[object]]) -> dict[object, dict[str, None]]:
    """Return the words of each id, in the order of the index."""
    words: dict[object, dict[str, None]] = {}
    for token, ids in part.items():
        for id_ in ids:
            if isinstance(id_, str):
                words.setdefault(id_, {})[token] = None
    return words


def _tokens(part: str, id_: str, old: Mapping[str, None], new: Mapping[str, None]) -> Iterator[Difference]:
    """Yield differences of the words that lead to a record."""
    if missing := [token for token in new if token not in old]:
        yield Difference(Sort.MISSING, id_, f"{part} lacks {some(missing)}")
    if stale := [token for token in old if token not in new]:
        yield Difference(Sort.STALE_TOKEN, id_, f"{part} still has {some(stale)}")


def _folders(id_: str, stored: Mapping[str, Any], own: object, leading: Iterable[str]) -> Iterator[Difference]:
    """Yield differences of the folders. If workspaces share a folder, it may lead to any of them.

    See docs/design/formats/claudesidian.md#edge-case-4.
    """
    if isinstance(own, str) and own not in stored["byFolder"]:
        yield Difference(Sort.MISSING, id_, f"byFolder lacks {quoted(own)}")
    if stale := [folder for folder in leading if folder != own]:
        yield Difference(Sort.STALE_TOKEN, id_, f"byFolder still has {some(stale)}")


def _sessions(id_: str, stored: Mapping[str, Any], rebuilt: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield differences of the sessions of a record, as sets."""
    old, new = stored["sessionsByWorkspace"].get(id_), rebuilt["sessionsByWorkspace"][id_]
    if gone := [session_id for session_id in old or () if session_id not in new]:
        named = some("null" if session_id is None else str(session_id) for session_id in gone)
        yield Difference(Sort.LOST, id_, f"the index lists sessions that the file lacks: {named}")
    if old is None or any(session_id not in old for session_id in new):
        lacking = [session_id for session_id in new if session_id not in (old or ())]
        yield Difference(Sort.STALE, id_, f"sessionsByWorkspace lacks {some(lacking) if lacking else 'the workspace'}")


def _breaking(kind: Kind, id_: str, stored: Mapping[str, Any], rebuilt: Mapping[str, Any]) -> Iterator[Difference]:
    words = dict.fromkeys(
        token
        for part in BY_TOKEN[kind]
        for token in sorted(BREAKING)
        if token not in stored[part] and id_ in rebuilt[part].get(token, ())
    )
    if words:
        yield Difference(Sort.BREAKING, id_, f"the program fails to index this, at {some(words)}")


def _ghosts(kind: Kind, stored: Mapping[str, Any], words: Sequence[str], there: set[str]) -> Iterator[Difference]:
    """Yield an entry for every missing record that the index leads to."""
    parts: dict[str, dict[str, None]] = {}
    for part, id_ in _leads(kind, stored, words):
        if isinstance(id_, str) and id_ not in there:
            parts.setdefault(id_, {})[part] = None
    for id_, at in parts.items():
        lead = "leads" if len(at) == 1 else "lead"
        counts = counts_of(kind, stored[BLOCKS[kind]].get(id_))
        held = f" and had {counts}" if counts else ""
        yield Difference(Sort.GHOST, id_, f"{', '.join(at)} {lead} to {id_}, which has no file{held}")


def _leads(kind: Kind, stored: Mapping[str, Any], words: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield every id in an index, with the part that contains it, date ranges included."""
    yield from ((BLOCKS[kind], id_) for id_ in stored[BLOCKS[kind]])
    for part in words:
        yield from ((part, id_) for ids in stored[part].values() for id_ in ids)
    if kind is Kind.WORKSPACE:
        yield from (("byFolder", id_) for id_ in stored["byFolder"].values())
        yield from (("sessionsByWorkspace", id_) for id_ in stored["sessionsByWorkspace"])
        return
    ranges = stored.get("byDateRange")
    for bucket in ranges if isinstance(ranges, list) else ():
        ids = bucket.get("conversationIds") if isinstance(bucket, dict) else None
        yield from (("byDateRange", id_) for id_ in (ids if isinstance(ids, list) else ()))


def _surplus(stored: object, rebuilt: object) -> float:
    """Return by how much a number of the index is greater than that of the file."""
    if isinstance(stored, (int, float)) and isinstance(rebuilt, (int, float)):
        return max(0, stored - rebuilt)
    return 0


def _shown(entry: Mapping[str, Any], name: str) -> str:
    if name not in entry:
        return "not"
    value = entry[name]
    return f"{value}" if isinstance(value, (int, float)) and not isinstance(value, bool) else kind_of(value)


_MANY = 8
"""The number of new records that are listed one by one; the records of a new index would fill the screen."""


def index_changes(kind: Kind, old: Mapping[str, Any] | None, new: Mapping[str, Any], problem: str) -> tuple[str, ...]:
    """Return a line for each difference between the stored index and the rebuilt one.

    ``old`` is None if there is no stored index, for the reason in ``problem``.
    """
    block = BLOCKS[kind]
    if old is None:
        count = len(new[block])
        return (f"{problem}: rebuilt from {counted(count, kind)}",)
    return tuple(_changes(kind, old, new))


def _changes(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    had, has = old[BLOCKS[kind]], new[BLOCKS[kind]]
    yield from _added([id_ for id_ in has if id_ not in had], kind, has)
    words = {part: words_by_id(old[part], new[part]) for part in BY_TOKEN[kind] if old[part] != new[part]}
    for id_ in has:
        if id_ in had:
            yield from _entry_changes(id_, had[id_], has[id_])
            for part, (before, after) in words.items():
                yield from _signs(part, id_, before.get(id_, {}), after.get(id_, {}))
            if kind is Kind.WORKSPACE:
                lists = (dict.fromkeys(map(str, index["sessionsByWorkspace"].get(id_, ()))) for index in (old, new))
                yield from _signs("sessions", id_, *lists)
    if kind is Kind.WORKSPACE:
        yield from _folder_changes(old["byFolder"], new["byFolder"], has)
    ghosts = dict.fromkeys((*had, *(id_ for before, _ in words.values() for id_ in before), *_other_ids(kind, old)))
    for id_ in ghosts:
        if id_ not in has:
            counts = counts_of(kind, had.get(id_))
            yield f"ghost {id_} dropped" + (f", which had {counts}" if counts else "")


def _added(ids: list[str], kind: Kind, entries: Mapping[str, Any]) -> Iterator[str]:
    name = "name" if kind is Kind.WORKSPACE else "title"
    for id_ in ids[:_MANY]:
        called = entries[id_].get(name)
        yield f"{BLOCKS[kind]} + {id_}" + (f" ({quoted(called)})" if isinstance(called, str) else "")
    if len(ids) > _MANY:
        yield f"{BLOCKS[kind]} + {len(ids) - _MANY} more"


def _entry_changes(id_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    names = [name for name in dict.fromkeys((*new, *old)) if old.get(name, ...) != new.get(name, ...)]
    if names:
        yield f"{', '.join(names)} as in the file: {id_}"


def _signs(part: str, id_: str, old: Mapping[str, None], new: Mapping[str, None]) -> Iterator[str]:
    """Yield the words that newly lead to a record, and those that no longer do."""
    for sign, words in (
        ("+", [word for word in new if word not in old]),
        ("-", [word for word in old if word not in new]),
    ):
        if words:
            yield f"{part} {sign} {some(words)}: {id_}"


def _folder_changes(old: Mapping[str, Any], new: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    for folder in dict.fromkeys((*new, *old)):
        before, after = old.get(folder), new.get(folder)
        if before != after and (after is not None or not isinstance(before, str) or before in known):
            had = before if isinstance(before, str) else kind_of(before) if folder in old else None
            yield f"byFolder {quoted(folder)}: {had or 'none'} → {after or 'none'}"


def _other_ids(kind: Kind, index: Mapping[str, Any]) -> Iterator[str]:
    if kind is Kind.WORKSPACE:
        yield from (id_ for id_ in index["byFolder"].values() if isinstance(id_, str))
        yield from index["sessionsByWorkspace"]

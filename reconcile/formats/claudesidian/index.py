"""Both indexes, derived from the records exactly as the program derives them.

See docs/design/formats/claudesidian.md#derivation. At the words `constructor` and `__proto__`, where the program would
throw, the entries are written all the same: an index that has them as its own keys heals the vault
(docs/design/formats/claudesidian.md#breaking-tokens).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reconcile.formats.claudesidian.record_files import Kind, messages_of, sessions_of, traces_of
from reconcile.formats.json import javascript

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.formats.claudesidian.record_files import Value


BREAKING = frozenset({"constructor", "__proto__"})
"""Words that hit inherited members of the program's plain objects, unless the index has them as its own keys."""

BY_TOKEN = {Kind.WORKSPACE: ("byName", "byDescription"), Kind.CONVERSATION: ("byTitle", "byContent", "byVault")}
"""The parts of an index that map words to lists of ids."""
BLOCKS = {Kind.WORKSPACE: "workspaces", Kind.CONVERSATION: "conversations"}
"""The part of an index that holds what is copied from each record."""

_COPIED = {
    Kind.WORKSPACE: ("id", "name", "description", "rootFolder", "created", "lastAccessed", "isActive"),
    Kind.CONVERSATION: ("id", "title", "created", "updated", "vault_name", "message_count"),
}
TIMES = ("created", "lastAccessed", "updated")
"""What of that are times, in ms."""
_WORD = re.compile(r"[A-Za-z0-9_]{3,}")
_BUCKETS = 12
_BUCKET_MS = 30 * 24 * 60 * 60 * 1000


def tokens(text: object) -> list[str]:
    """The words of a text by which it is found, in their order, with repetitions.

    Lower case is Unicode's, but only letters of ASCII make words, and only words of three characters and more count:
    `résumé` is found by `sum`, Japanese by nothing at all (docs/design/formats/claudesidian.md#edge-case-6).
    """
    return _WORD.findall(text.lower()) if isinstance(text, str) else []


def rebuild(kind: Kind, records: Iterable[Mapping[str, Any]], now_ms: int, *, buckets: bool = True) -> Value:
    """The index of these records, in the order of the listing; of two with one id the later wins.

    ``buckets`` says whether `byDateRange` gets its twelve months back from ``now_ms``, or is empty.
    """
    if kind is Kind.WORKSPACE:
        return _workspaces(records, now_ms)
    return _conversations(records, now_ms, _date_buckets(now_ms) if buckets else [])


def entry(kind: Kind, record: Mapping[str, Any]) -> Value:
    """What the index copies from a record; what the record doesn't have is left out."""
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
    """Put a record's id under its words; ``again``: an earlier record had the same id."""
    for token in dict.fromkeys(token for text in texts for token in tokens(text)):
        ids = part.setdefault(token, [])
        # Looked for only where it can be there: a common word has as many ids as there are records.
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
    """The index, changed, with what the stored one says of records whose files can't be read.

    It is the last that is known of them, and the program's own index goes on to have it too.
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
    """The bytes of an index that takes the place of the stored one, whose further keys are kept."""
    kept = {key: value for key, value in (stored or {}).items() if key not in index}
    return javascript.stringify({**index, **kept})

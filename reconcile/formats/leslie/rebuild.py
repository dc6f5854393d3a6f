"""Derives both control files from the log and the threads, and describes every difference in words.

The log wins (docs/design/formats/leslie.md#f6). A difference is only reported, and repaired on request, if the repair
would make a thread active or if the log does not cover the thread (docs/design/formats/leslie.md#f7). The fields
`thread_ids` and `status` of an objective follow from its threads (docs/design/formats/leslie.md#derived-objectives).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.formats.json import javascript, strict
from reconcile.formats.leslie.document import DIRECTORY, RELATION, THREADS, Dialect, text, texts, written
from reconcile.formats.leslie.replay import FINISHED, status_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.formats.leslie.document import Document, Object, ObjectivesDocument
    from reconcile.formats.leslie.replay import Course, Entry, Replayed


WOULD_START = "it becomes active, and a running scheduler starts an agent for it"
NOT_COVERED = "the log has only a part of it"
NO_DIRECTORY = "its directory is missing too"


class Subject(StrEnum):
    """The part of the file that differs."""

    RECORD = "record"
    STATUS = "status"
    FIELD = "field"
    RELATIONS = "relations"
    COUNT = "count"


class Difference(Struct, frozen=True):
    """One difference from the log. ``asks`` is the reason why a repair needs a request; empty: it needs none."""

    subject: Subject
    words: str
    thread: str | None = None
    asks: str = ""


class Rebuilt(Struct, frozen=True):
    """The derived file, or the file's own bytes if nothing changes. ``done`` are the repaired differences."""

    content: bytes
    differences: tuple[Difference, ...]
    done: tuple[Difference, ...]


def rebuild(
    document: Document, replayed: Replayed, directories: Collection[str], wanted: Collection[str] = ()
) -> Rebuilt:
    """Derive the file from its log, and compare it with the stored one field by field.

    ``directories`` are the names below ``threads/``. For the threads in ``wanted``, differences that need a request are
    repaired too.
    """
    builder = _Builder(document, replayed, directories, wanted)
    records = builder.records()
    relations = builder.relations(records)
    value = dict(document.value)
    value["threads"], value["relations"] = records, relations
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and metadata.get("thread_count") != len(records):
        builder.differ(Subject.COUNT, f"thread_count {_shown(metadata.get('thread_count'))} -> {len(records)}")
        value["metadata"] = {**metadata, "thread_count": len(records)}
    done = tuple(difference for difference in builder.differences if not difference.asks or difference.thread in wanted)
    return Rebuilt(written(value) if done else document.content, tuple(builder.differences), done)


def storage_path(thread: str, dialect: Dialect) -> str:
    """Return the path of the directory of a thread, as a record states it."""
    return f"{DIRECTORY}/{THREADS}/{thread}" + ("/" if dialect is Dialect.TEXT else "")


class _Builder:
    def __init__(
        self, document: Document, replayed: Replayed, directories: Collection[str], wanted: Collection[str]
    ) -> None:
        self._document = document
        self._replayed = replayed
        self._directories = directories
        self._wanted = wanted
        self.differences: list[Difference] = []

    def differ(self, subject: Subject, words: str, thread: str | None = None, asks: str = "") -> bool:
        """Record a difference, and tell whether it is to be repaired."""
        self.differences.append(Difference(subject, words, thread, asks))
        return not asks or thread in self._wanted

    def records(self) -> dict[str, Object]:
        """Return the threads; those without a difference are the stored records."""
        records = {}
        missing = [thread for thread in self._replayed.courses if thread not in self._document.threads]
        for thread, record in self._document.threads.items():
            records[thread] = self._corrected(thread, record, self._replayed.courses[thread])
        for thread in missing:
            record = self._recreated(thread, self._replayed.courses[thread])
            asks = WOULD_START if record["status"] == "active" else ""
            asks = NO_DIRECTORY if thread not in self._directories else asks
            lost = "its tags, its session and an executor given at the spawn are lost"
            if self.differ(Subject.RECORD, f"{thread}: + record ({record['status']}); {lost}", thread, asks):
                records[thread] = record
        if any(thread in records for thread in missing):
            order = [*self._replayed.relations, *records]
            records = {thread: records[thread] for thread in dict.fromkeys(order) if thread in records}
        return records

    def relations(self, records: Collection[str]) -> Object:
        """Return the entries of all threads with a record, and stored entries whose repair needs a request."""
        stored = self._document.relations
        raw = self._document.value.get("relations")
        raw = raw if isinstance(raw, dict) else {}
        kept = self._kept()
        entries: Object = {}
        for thread, entry in self._replayed.relations.items():
            if thread in records or thread in stored:
                entries[thread] = self._entry(thread, entry, raw.get(thread), kept)
        for thread in raw:
            if thread not in entries:
                if thread in kept:
                    entries[thread] = raw[thread]
                else:
                    self.differ(Subject.RELATIONS, f"{thread}: - entry, there is no such thread", thread)
        entries = {thread: entries[thread] for thread in javascript.keys(entries)}
        if list(entries) != [thread for thread in raw if thread in entries] and set(entries) <= set(raw):
            self.differ(Subject.RELATIONS, "entries in the order of the log")
        return entries

    def _kept(self) -> set[str]:
        """Return entries without a thread that a thread without a spawn refers to: no log contradicts them.

        See docs/design/formats/leslie.md#edge-case-28.
        """
        genesis = [thread for thread, course in self._replayed.courses.items() if course.spawn is None]
        named = {
            other
            for thread in genesis
            for name in RELATION
            for other in self._document.relations.get(thread, {}).get(name, ())
        }
        return {thread for thread in self._document.relations if thread not in self._replayed.courses} & named

    def _entry(self, thread: str, entry: Entry, stored: Any, kept: Collection[str]) -> Object:
        if self._replayed.courses[thread].spawn is None and kept:
            before = self._document.relations.get(thread, {})
            entry = {
                name: members + [member for member in before.get(name, ()) if member in kept and member not in members]
                for name, members in entry.items()
            }
        if not isinstance(stored, dict):
            filled = "; ".join(f"{name} {', '.join(members)}" for name, members in entry.items() if members)
            self.differ(Subject.RELATIONS, f"{thread}: + entry" + (f" ({filled})" if filled else ""), thread)
            return dict(entry)
        for name, members in entry.items():
            if stored.get(name) != members:
                for words in _changes(self._document.relations[thread][name], members):
                    self.differ(Subject.RELATIONS, f"{thread}: {name} {words}", thread)
        return {**stored, **entry}

    def _corrected(self, thread: str, record: Object, course: Course) -> Object:
        changed = {}
        for key, value in ({"id": thread} | course.fields).items():
            stored = record.get(key)
            if stored == value or (key == "tags" and not stored and not value):
                continue
            if key == "status" and status_of(stored) == value:
                continue
            subject = Subject.STATUS if key == "status" else Subject.FIELD
            asks = ""
            if course.spawn is None or (subject is Subject.STATUS and thread in self._replayed.holes):
                asks = NOT_COVERED
            elif subject is Subject.STATUS and value == "active":
                asks = WOULD_START
            if self.differ(subject, f"{thread}: {key} {_shown(stored)} -> {_shown(value)}", thread, asks):
                changed[key] = value
        return {**record, **changed} if changed else record

    def _recreated(self, thread: str, course: Course) -> Object:
        """Return a record that is made of the log alone (docs/design/formats/leslie.md#f7)."""
        assert course.spawn is not None  # noqa: S101 - it has no record, so it is known by its spawn
        fields, dialect = course.fields, self._document.dialect
        aim = course.spawn.text("objective") or thread
        record = {
            "id": thread,
            "title": fields.get("title", aim if course.spawn.in_text_dialect else thread),
            "objective": fields.get("objective", aim),
            "created_at": course.spawn.timestamp,
            "status": fields["status"],
            "tags": fields.get("tags"),
            "parent_id": fields["parent_id"],
            "storage_path": storage_path(thread, dialect),
        }
        if dialect is Dialect.PROGRAM:
            record |= {"executor": fields.get("executor", "agent"), "updated_at": course.last}
        return {key: value for key, value in record.items() if key != "tags" or value is not None}


def _changes(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the changes from one list of ids to another, in words."""
    old, new = set(before), set(after)
    added = [member for member in after if member not in old]
    removed = [member for member in before if member not in new]
    for sign, members in (("+", added), ("-", removed)):
        for member in members:
            yield f"{sign} {member}"
    if not added and not removed:
        yield f"in the order {', '.join(after)}" if after else "without what is no id"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return strict.quoted(value) if " " in value or not value else value
    if isinstance(value, (int, float)):
        return str(value)
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else strict.kind(value)


_PUNCTUATION = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
"""Punctuation in the order of the collation of JavaScript. Digits come after it, then letters."""
_RANK = {character: rank for rank, character in enumerate("\t\n\x0b\x0c\r " + _PUNCTUATION + "0123456789")}


class RebuiltObjectives(Struct, frozen=True):
    """The derived file, with the differences in words. ``lagging`` are those that the program itself leaves."""

    content: bytes
    differences: tuple[str, ...]
    lagging: tuple[str, ...]


def rebuild_objectives(
    document: ObjectivesDocument, threads: Mapping[str, Object], refreshed: Mapping[str, str]
) -> RebuiltObjectives:
    """Derive the file from the threads, and compare it with the stored one.

    A listed thread without a record stays listed: it is evidence of a loss (docs/design/formats/leslie.md#f3).
    ``refreshed`` is the status of each objective at the last update by the program, which does not update it at a
    transfer.
    """
    differences: list[str] = []
    lagging: list[str] = []
    objectives = {}
    for objective, record in document.objectives.items():
        own = [thread for thread, thread_record in threads.items() if thread_record.get("objective") == objective]
        listed = texts(record.get("thread_ids"))
        kept = [thread for thread in listed if thread not in threads]
        ids = sorted({*own, *kept}, key=collation_key) if own else listed
        if set(ids) == set(listed) and len(ids) == len(listed):
            ids = listed
        stored_status = record.get("status")
        status = status_for(ids, threads) if own or not listed else stored_status
        if status != stored_status and stored_status == refreshed.get(objective) and ids == listed:
            lagging.append(f"{objective}: status {stored_status}, but by its threads it is {status}")
            status = stored_status
        changes = {key: new for key, new in (("status", status), ("thread_ids", ids)) if record.get(key) != new}
        differences += _words(objective, record, changes)
        objectives[objective] = {**record, **changes}
    value = {**document.value, "objectives": objectives}
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and metadata.get("objective_count") != len(objectives):
        differences.append(f"objective_count {metadata.get('objective_count')} -> {len(objectives)}")
        value["metadata"] = {**metadata, "objective_count": len(objectives)}
    content = written(value) if differences else document.content
    return RebuiltObjectives(content, tuple(differences), tuple(lagging))


def status_for(ids: Collection[str], threads: Mapping[str, Object]) -> str:
    """Return completed if there is at least one thread and all are finished; an unknown thread counts as finished."""
    return "completed" if ids and all(_is_finished(threads.get(thread)) for thread in ids) else "active"


def collation_key(name: str) -> tuple[list[tuple[int, int]], list[bool]]:
    """Return a key that sorts ids as ``localeCompare``: punctuation, digits, letters in any case, ``a`` < ``A``.

    Exact for ASCII, which ids are. Other characters come last, by code point.
    """
    primary = [
        (0, _RANK[character]) if character in _RANK else (1 if character.isascii() else 2, ord(character.lower()[0]))
        for character in name
    ]
    return primary, [character.isupper() for character in name]


def _is_finished(thread: Object | None) -> bool:
    return thread is None or status_of(thread.get("status")) in FINISHED


def _words(objective: str, before: Object, changes: Object) -> list[str]:
    words = []
    if "status" in changes:
        words.append(f"{objective}: status {text(before.get('status')) or 'missing'} -> {changes['status']}")
    if "thread_ids" in changes:
        old, new = texts(before.get("thread_ids")), changes["thread_ids"]
        words += [f"{objective}: thread_ids + {thread}" for thread in new if thread not in old]
        words += [f"{objective}: thread_ids - {thread}" for thread in old if thread not in new]
        if set(old) == set(new):
            words.append(f"{objective}: thread_ids each once")
    return words

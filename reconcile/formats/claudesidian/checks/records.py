"""Checks of the records (docs/design/formats/claudesidian.md#failures)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.finding import Finding, Repair, counted, error, note, some, warning
from reconcile.formats.claudesidian.record_files import (
    SUFFIX,
    Item,
    Kind,
    is_item,
    is_listed,
    listed_id,
    messages_of,
    read_item,
    sessions_of,
)
from reconcile.formats.claudesidian.repair import (
    completed,
    contents,
    embedded,
    lacking,
    pruned,
    rewritten,
    salvage,
    with_count,
)
from reconcile.formats.claudesidian.union import loses_values, merged_values, with_sessions_of
from reconcile.formats.claudesidian.vault import BACKUPS, NEXUS, event_file
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import quoted
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from reconcile.formats.claudesidian.record_files import Value
    from reconcile.formats.claudesidian.vault import Records

LARGE = 1 << 20
"""Bytes from which copies in the states of a file are reported (docs/design/formats/claudesidian.md#c7)."""
_NO_NAME = re.compile(r"[/\0\ud800-\udfff]")
_LONGEST = 255
"""The greatest length of a file name in bytes that every file system accepts."""
_FALLBACK_SESSIONS = frozenset({"default-session", "current"})
"""Names that the program gives to a missing session (docs/design/formats/claudesidian.md#ids)."""


def check_invalid(records: Records, event_files: Iterable[str] = ()) -> Iterator[Finding]:
    """Return findings about invalid records: the program reports "not found", and overwrites them with a new one.

    See docs/design/formats/claudesidian.md#c2. ``event_files`` are the names of the event files of the same kind, which
    may hold the same records.
    """
    known = set(event_files)
    return (_invalid(records, fault, known) for fault in records.faults)


def check_records(records: Records) -> Iterator[Finding]:
    """Yield findings about the readable files of one directory, without its index."""
    yield from _names(records)
    yield from _versions(records)
    for item in records.items:
        content = records.contents[item.name]
        if isinstance(content, bytes):
            yield from (_workspace if item.kind is Kind.WORKSPACE else _conversation)(item, content)


def check_sessions(workspaces: Records, conversations: Records) -> Iterator[Finding]:
    """Yield conversations that refer to a session which their workspace does not have.

    See docs/design/formats/claudesidian.md#c14.
    """
    known = {id_: item.value for id_, item in workspaces.current.items()}
    for item in conversations.items:
        settings = (_object(item.value.get("metadata"))).get("chatSettings")
        workspace, session = (_object(settings).get(name) for name in ("workspaceId", "sessionId"))
        if not isinstance(workspace, str) or not isinstance(session, str) or session in _FALLBACK_SESSIONS:
            continue
        if workspace in workspaces.unread or (workspace in known and session in sessions_of(known[workspace])):
            continue
        where = f"workspace {workspace}" if workspace in known else f"{workspace}, which does not exist here"
        problem = f"its chatSettings name session {quoted(session)}, which is not in {where}"
        yield note("C14", item.path, problem, "nothing to do if the session was deleted; otherwise look for it")


def _invalid(records: Records, fault: Fault, event_files: Collection[str]) -> Finding:
    place, id_ = records.place(fault.file), listed_id(fault.file)
    problem = fault.words
    if entry := _entry_of(records, id_):
        problem += f"; its name in the index is {entry}"
    content = records.contents[fault.file]
    left = salvage(records.kind, fault.file, content) if isinstance(content, bytes) else None
    for name, old, backup in _backups(records, fault.file):
        mend = f"restore the backup {records.kind.directory}/{BACKUPS}/{name} ({contents(backup)})"
        return _restored(place, problem, mend, old, backup, left)
    if (other := records.current.get(id_)) is not None:
        mend = f"copy {other.path} ({contents(other)})"
        return _restored(place, problem, mend, javascript.stringify(other.value), other, left)
    mend = "replace it with a copy from elsewhere"
    if (events := event_file(records.kind, id_)) in event_files:
        mend = f"use its migrated form {NEXUS}/{records.kind}s/{events}, or {mend}"
    if left is None or not (sessions_of(left.value) or messages_of(left.value)):
        return error("C2", place, problem, mend)
    mend += f"; {contents(left)} of the truncated file can be saved"
    return error("C2", place, problem, mend, Repair(place, javascript.stringify(left.value)), on_request=True)


def _restored(place: str, problem: str, mend: str, whole: bytes, item: Item, left: Item | None) -> Finding:
    """Return a finding that restores a whole version, with the entries that only the truncated file has."""
    if left is not None and left.id == item.id and loses_values(left, item):
        whole = javascript.stringify(merged_values(item.kind, item.value, left.value))
        mend += f", and add what only the truncated file has: it has {contents(left)}"
    return error("C2", place, problem, mend, Repair(place, whole), on_request=True)


def _entry_of(records: Records, id_: str) -> str | None:
    block = (records.index or {}).get(f"{records.kind}s", {})
    name = block.get(id_, {}).get("name" if records.kind is Kind.WORKSPACE else "title")
    return quoted(name) if isinstance(name, str) else None


def _backups(records: Records, name: str) -> Iterator[tuple[str, bytes, Item]]:
    """Yield the readable backups of a file, the newest first: their names end in the time."""
    for backup in sorted(records.backups, reverse=True):
        old = records.backups[backup]
        if isinstance(old, Fault) or not backup.startswith(name.removesuffix(SUFFIX) + "-"):
            continue
        item = read_item(records.kind, backup, old)
        if isinstance(item, Item) and item.id == listed_id(name):
            yield backup, old, item


def _names(records: Records) -> Iterator[Finding]:
    """Yield files that the program lists and that are no records, and records that it does not list.

    See docs/design/formats/claudesidian.md#c13 and docs/design/formats/claudesidian.md#edge-case-9.
    """
    for name in sorted(records.contents):
        if is_listed(name) and not is_item(name):
            problem = "not a record, but the program's rebuild reads it as one and fails"
            yield note("C13", records.place(name), problem, "nothing to do: reconcile skips it")
        elif is_item(name) and not is_listed(name):
            problem = "the program does not list a file with this name"
            yield note("C4", records.place(name), problem, "nothing to do: the program can load it by its id")


def _versions(records: Records) -> Iterator[Finding]:
    """Yield findings about several files of one record, or a file under another name.

    See docs/design/formats/claudesidian.md#c10.
    """
    files: dict[str, list[Item]] = {}
    for item in records.items:
        files.setdefault(item.id, []).append(item)
    for id_, items in files.items():
        own = f"{id_}{SUFFIX}"
        if len(items) == 1:
            if not items[0].is_named_by_id:
                yield _misnamed(records, items[0], own)
            continue
        *others, last = items
        names = some(item.name for item in items)
        if all(item.value == last.value for item in others):
            problem = f"{len(items)} files of {id_} with the same content: {names}"
        else:
            problem = f"{len(items)} versions of {id_}: {names}; the index has the one in {last.name}"
        together = last.value
        for item in others:
            together = merged_values(records.kind, together, item.value)
        if not _can_be_name(own):
            yield warning("C10", items[0].path, problem, "give one of them another id")
            continue
        if any(fault.file == own for fault in records.faults):
            yield warning("C10", items[0].path, problem, f"repair {own} first: it may have more than these")
            continue
        whole = Repair(records.place(own), javascript.stringify(together))
        gone = [Repair(item.path, None) for item in items if item.name != own]
        mend = f"compare them first; on request they are merged into {own}"
        yield warning("C10", items[0].path, problem, mend, whole, *gone, on_request=True)


def _misnamed(records: Records, item: Item, own: str) -> Finding:
    problem = f"it contains the id {quoted(item.id)}, which the program looks for in {quoted(own)}"
    content = records.contents[item.name]
    if own in records.contents or not _can_be_name(own) or not isinstance(content, bytes):
        return warning("C10", item.path, problem, "rename the file after its id, or change the id")
    repairs = Repair(records.place(own), content), Repair(item.path, None)
    return warning("C10", item.path, problem, f"rename it to {quoted(own)}", *repairs, on_request=True)


def _can_be_name(name: str) -> bool:
    """Tell whether a record may get this name, which is made of an id: `index` would overwrite the index."""
    return is_item(name) and _NO_NAME.search(name) is None and len(name.encode()) <= _LONGEST


def _workspace(item: Item, content: bytes) -> Iterator[Finding]:
    yield from _incomplete(item, content)
    yield from _overwritten(item, content)
    if len(content) < LARGE:
        return
    smaller = javascript.stringify(pruned(item.value))
    share = 1 - len(smaller) / len(content)
    if share > 0.5:
        problem = f"{len(content) / 1e6:.1f} MB, of which {share:.0%} are copies of itself in its states"
        mend = f"on request the copies are removed, which leaves {len(smaller) / 1e6:.1f} MB; they are also a backup"
        kept = rewritten(content, item.value, pruned(item.value))
        yield note("C7", item.path, problem, mend, *_repair(item, kept), on_request=True)


def _incomplete(item: Item, content: bytes) -> Iterator[Finding]:
    """Yield a finding about missing members that the program's rebuild requires.

    See docs/design/formats/claudesidian.md#c13.
    """
    lacks = [] if isinstance(item.value.get("sessions"), dict) else ["sessions"]
    for key, session in sessions_of(item.value).items():
        lacks += [
            f"{member} of {key}" for member in ("memoryTraces", "states") if not isinstance(session.get(member), dict)
        ]
    if lacks:
        changed = rewritten(content, item.value, completed(item.value))
        problem = f"{', '.join(lacks)} missing: the program's own rebuild fails"
        yield note("C13", item.path, problem, "add the missing members, empty", *_repair(item, changed))


def _overwritten(item: Item, content: bytes) -> Iterator[Finding]:
    """Yield a finding about entries that copies in the states have and the workspace lacks.

    See docs/design/formats/claudesidian.md#c6.
    """
    together: Value = item.value
    gone: dict[str, dict[str, None]] = {}
    for _, copy in embedded(item.value):
        missing = lacking(item.value, copy)
        for what, ids in missing.items():
            gone.setdefault(what, {}).update(dict.fromkeys(ids))
        if missing:
            together = with_sessions_of(together, copy)
    if gone:
        lost = "; ".join(f"{counted(len(ids), what)} ({some(ids)})" for what, ids in gone.items())
        problem = f"its states have entries that the workspace lacks: {lost}"
        changed = rewritten(content, item.value, together)
        mend = "nothing to do if you deleted them; on request they are restored from the states"
        yield warning("C6", item.path, problem, mend, *_repair(item, changed), on_request=True)


def _conversation(item: Item, content: bytes) -> Iterator[Finding]:
    messages = messages_of(item.value)
    if item.value.get("message_count") != len(messages):
        stored_count = item.value.get("message_count")
        changed = rewritten(content, item.value, with_count(item.value))
        stored = "missing" if stored_count is None else stored_count
        problem = f"message_count is {stored}, but it has {counted(len(messages), 'message')}"
        yield warning("C8", item.path, problem, "correct the count", *_repair(item, changed))
    for before, after in pairwise(messages):
        same = all(before.get(member) == after.get(member) for member in ("role", "content"))
        if same and after.get("content") and before.get("id") != after.get("id"):
            ids = f"{before.get('id') or 'a message without id'} and {after.get('id') or 'a message without id'}"
            problem = f"the same message twice in a row: {ids}, {quoted(str(after['content']))}"
            yield warning("C9", item.path, problem, "delete one if a retry sent it twice; reconcile never does")


def _repair(item: Item, content: bytes | None) -> tuple[Repair, ...]:
    return () if content is None else (Repair(item.path, content),)


def _object(value: object) -> Value:
    return value if isinstance(value, dict) else {}

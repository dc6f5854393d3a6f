"""``objectives.json`` as a derived file: ``thread_ids`` and ``status`` follow from the threads.

See docs/design/formats/leslie.md#derived-objectives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.leslie.log.document import text, texts, written
from reconcile.formats.leslie.log.states import FINISHED, status_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.formats.leslie.log.document import Object, ObjectivesDocument

_PUNCTUATION = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
"""ASCII in the order of the collation that JavaScript compares with; then digits, then letters."""
_RANK = {character: rank for rank, character in enumerate("\t\n\x0b\x0c\r " + _PUNCTUATION + "0123456789")}


class RebuiltObjectives(Struct, frozen=True):
    """The file as it should be, with the differences in words; ``lagging``: what the program itself leaves behind."""

    content: bytes
    differences: tuple[str, ...]
    lagging: tuple[str, ...]


def rebuild_objectives(
    document: ObjectivesDocument, threads: Mapping[str, Object], refreshed: Mapping[str, str]
) -> RebuiltObjectives:
    """Compare with the threads as they are, and write anew what differs.

    A thread that an objective lists and that has no record stays listed: it is evidence of what was lost
    (docs/design/formats/leslie.md#f3).
    ``refreshed`` is the status of each objective when the program last looked at it: a transfer doesn't make it look.
    """
    differences: list[str] = []
    lagging: list[str] = []
    objectives = {}
    for objective, record in document.objectives.items():
        mine = [thread for thread, each in threads.items() if each.get("objective") == objective]
        listed = texts(record.get("thread_ids"))
        kept = [thread for thread in listed if thread not in threads]
        ids = sorted({*mine, *kept}, key=collation_key) if mine else listed
        if set(ids) == set(listed) and len(ids) == len(listed):
            ids = listed
        found = record.get("status")
        status = status_for(ids, threads) if mine or not listed else found
        if status != found and found == refreshed.get(objective) and ids == listed:
            lagging.append(f"{objective}: status {found}, its threads make it {status} by now")
            status = found
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
    """Completed, if there is a thread and all are finished; one that isn't known counts as that."""
    return "completed" if ids and all(_is_finished(threads.get(each)) for each in ids) else "active"


def collation_key(name: str) -> tuple[list[tuple[int, int]], list[bool]]:
    """A key that sorts ids as ``localeCompare`` does: punctuation, digits, letters whatever their case, ``a`` < ``A``.

    Exact for ASCII, which ids are; other characters go by code point, behind.
    """
    primary = [
        (0, _RANK[each]) if each in _RANK else (1 if each.isascii() else 2, ord(each.lower()[0])) for each in name
    ]
    return primary, [each.isupper() for each in name]


def _is_finished(thread: Object | None) -> bool:
    return thread is None or status_of(thread.get("status")) in FINISHED


def _words(objective: str, before: Object, changes: Object) -> list[str]:
    found = []
    if "status" in changes:
        found.append(f"{objective}: status {text(before.get('status')) or 'missing'} -> {changes['status']}")
    if "thread_ids" in changes:
        old, new = texts(before.get("thread_ids")), changes["thread_ids"]
        found += [f"{objective}: thread_ids + {each}" for each in new if each not in old]
        found += [f"{objective}: thread_ids - {each}" for each in old if each not in new]
        if set(old) == set(new):
            found.append(f"{objective}: thread_ids each once")
    return found

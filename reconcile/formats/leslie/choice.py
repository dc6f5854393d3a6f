"""The two sides' versions of a control file: which of them is right, both in one, or a person decides.

The order of the log is that of docs/design/formats/leslie.md#order.
Never is the newer one taken while both have something that the other lacks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.leslie.checks.control_files import listed
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS, read_objectives, read_relations, written
from reconcile.formats.leslie.operations import Operation
from reconcile.formats.leslie.repair import mend_relations
from reconcile.formats.leslie.union import newness, unite, unite_objectives
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.formats.leslie.document import Document, Object, ObjectivesDocument
    from reconcile.formats.leslie.union import United


class _Version(Struct, frozen=True):
    """A side's: its operations (none: a file without a log), and its records by id."""

    content: bytes
    operations: list[Object]
    records: Mapping[str, Object]

    def has_all(self, other: _Version) -> bool:
        """It has every operation of the other, in the same order, and every record."""
        rest = iter(self.operations)
        return all(each in rest for each in other.operations) and other.records.keys() <= self.records.keys()

    def is_enough(self, other: _Version) -> bool:
        """It has everything of the other, each record at least as new."""
        return self.has_all(other) and all(
            newness(self.records[key]) >= newness(record) for key, record in other.records.items()
        )


def join_relations(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """Both logs in one. Where one has everything of the other it is right, but for records that are newer there.

    None: the logs are the same, and nothing tells which of the rest is newer.
    """
    ours, theirs = read_relations(workspace), read_relations(store)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    here, there = _of_relations(ours), _of_relations(theirs)
    found = _joined(RELATIONS, here, there, partial(unite, ours, theirs))
    # Two dialects in one are the program's, and records of the older one get what it asks for.
    mended = mend_relations(found) if isinstance(found, bytes) else None
    return found if mended is None else mended.content


def loses_records(name: str, before: bytes, after: bytes) -> bool:
    """Tell whether an edit of a control file has lost operations, threads or objectives: no command removes one."""
    old, new = (_version(name, content) for content in (before, after))
    if old is None or new is None:
        return False
    return not (_ids(old.operations) <= _ids(new.operations) and old.records.keys() <= new.records.keys())


def join_objectives(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """As `join_relations`, by the objectives' ids. What they say of their threads is worked out by a rebuilding."""
    ours, theirs = read_objectives(workspace), read_objectives(store)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    here, there = _of_objectives(ours), _of_objectives(theirs)
    return _joined(OBJECTIVES, here, there, partial(unite_objectives, ours, theirs, {}))


def _version(name: str, content: bytes) -> _Version | None:
    if name == RELATIONS:
        relations = read_relations(content)
        return None if isinstance(relations, Fault) else _of_relations(relations)
    objectives = read_objectives(content)
    return None if isinstance(objectives, Fault) else _of_objectives(objectives)


def _of_relations(document: Document) -> _Version:
    return _Version(document.content, document.operations, document.threads)


def _of_objectives(document: ObjectivesDocument) -> _Version:
    return _Version(document.content, [], document.objectives)


def _ids(operations: list[Object]) -> set[object]:
    """The operations' ids; an operation without one is known by all that it says."""
    return {Operation(entry).id or written(entry) for entry in operations}


def _joined(name: str, here: _Version, there: _Version, unite: Callable[[], United]) -> bytes | Fault | None:
    """The one that is enough, or both in one; where that takes a decision, the one that has everything."""
    enough = here.is_enough(there), there.is_enough(here)
    if any(enough):
        return _one(here, there, enough)
    united = unite()
    if united.content is not None:
        return united.content
    whole = here.has_all(there), there.has_all(here)
    if any(whole):
        return _one(here, there, whole)
    found = f"in the workspace and in the store: {listed(united.conflicts, '; ')}"
    return Fault(name, found, "versions that agree there, or one of them decided for")


def _one(here: _Version, there: _Version, right: tuple[bool, bool]) -> bytes | None:
    """The version that is right; None: both are."""
    return None if all(right) else (here if right[0] else there).content

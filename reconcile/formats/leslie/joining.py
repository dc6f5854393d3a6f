"""The two sides' versions of a control file: which of them is right, both in one, or a person decides (section 4.3).

Never is the newer one taken while both have something that the other lacks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.core.model import Fault
from reconcile.formats.leslie.control import listed
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS, read_objectives, read_relations
from reconcile.formats.leslie.mending import mend_relations
from reconcile.formats.leslie.union import newness, unite, unite_objectives

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.formats.leslie.document import Object
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
    here = _Version(workspace, ours.operations, ours.threads)
    there = _Version(store, theirs.operations, theirs.threads)
    found = _joined(RELATIONS, here, there, partial(unite, ours, theirs))
    # Two dialects in one are the program's, and records of the older one get what it asks for.
    mended = mend_relations(found) if isinstance(found, bytes) else None
    return found if mended is None else mended.content


def lacks_operations(before: bytes, after: bytes) -> bool:
    """Tell whether ``after`` has fewer operations, by their ids, than are in ``before``."""
    versions = read_relations(before), read_relations(after)
    if any(isinstance(each, Fault) for each in versions):
        return False
    known, left = (
        {each.get("id") for each in version.operations} for version in versions if not isinstance(version, Fault)
    )
    return not known <= left


def join_objectives(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """As `join_relations`, by the objectives' ids. What they say of their threads is worked out by a rebuilding."""
    ours, theirs = read_objectives(workspace), read_objectives(store)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    here, there = _Version(workspace, [], ours.objectives), _Version(store, [], theirs.objectives)
    return _joined(OBJECTIVES, here, there, partial(unite_objectives, ours, theirs, {}))


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

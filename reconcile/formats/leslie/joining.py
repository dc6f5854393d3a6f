"""The two sides' versions of a control file: which of them is right, both in one, or a person decides (section 4.3).

Never is the newer one taken while both have something that the other lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.core.model import Fault
from reconcile.formats.leslie.control import listed
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS, read_objectives, read_relations
from reconcile.formats.leslie.mending import mend_relations
from reconcile.formats.leslie.union import newness, unite, unite_objectives

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.formats.leslie.document import Object
    from reconcile.formats.leslie.union import United


@dataclass(frozen=True, slots=True)
class _Version:
    """A side's: whether it has every operation, or objective, of the other, and its records."""

    content: bytes
    has_all: bool
    records: Mapping[str, Object]

    def is_enough(self, other: _Version) -> bool:
        """It has everything of the other, and each record at least as new."""
        return self.has_all and all(
            key in self.records and newness(self.records[key]) >= newness(record)
            for key, record in other.records.items()
        )


def join_relations(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """Both logs in one. Where one has all operations of the other it is right, but for records that are newer there.

    None: the logs are the same, and nothing tells which of the rest is newer.
    """
    ours, theirs = read_relations(workspace), read_relations(store)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    here = _Version(workspace, _is_in(theirs.operations, ours.operations), ours.threads)
    there = _Version(store, _is_in(ours.operations, theirs.operations), theirs.threads)
    if here.is_enough(there) or there.is_enough(here):
        return _right(here, there)
    united = unite(ours, theirs)
    if united.content is None:
        return _undecided(RELATIONS, united, here, there)
    return _readable(united.content)


def join_objectives(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """As `join_relations`, by the objectives' ids. What they say of their threads is worked out by a `rebuild`."""
    ours, theirs = read_objectives(workspace), read_objectives(store)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    here = _Version(workspace, theirs.objectives.keys() <= ours.objectives.keys(), ours.objectives)
    there = _Version(store, ours.objectives.keys() <= theirs.objectives.keys(), theirs.objectives)
    if here.is_enough(there) or there.is_enough(here):
        return _right(here, there)
    united = unite_objectives(ours, theirs, {})
    return united.content or _undecided(OBJECTIVES, united, here, there)


def _is_in(few: list[Object], many: list[Object]) -> bool:
    """All of them are there, in the same order."""
    rest = iter(many)
    return all(each in rest for each in few)


def _right(here: _Version, there: _Version) -> bytes | None:
    """The version that has all of the other; None: both have."""
    if here.is_enough(there):
        return None if there.is_enough(here) else here.content
    return there.content


def _undecided(name: str, united: United, here: _Version, there: _Version) -> bytes | Fault | None:
    """What neither a log nor a time decides: the one with all operations is right, if there is one."""
    if here.has_all or there.has_all:
        if here.has_all and there.has_all:
            return None
        return here.content if here.has_all else there.content
    found = f"in the workspace and in the store: {listed(united.conflicts, '; ')}"
    return Fault(name, found, "versions that agree there, or one of them decided for")


def _readable(content: bytes) -> bytes | Fault:
    """A united file of both dialects: the records of the older one get what the program asks for."""
    made = read_relations(content)
    if isinstance(made, Fault) or not made.damage:
        return made if isinstance(made, Fault) else content
    mended = mend_relations(content)
    if mended is not None and mended.content is not None:
        return mended.content
    return Fault(RELATIONS, f"{made.damage[0]}, where both versions are one", "versions that can be one")

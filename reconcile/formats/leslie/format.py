"""Leslie's ``.leslie/`` as records with fixed places, each known by its path below it, and both sides' versions in one.

The content of ``.leslie/`` is the root of either side. Both control files, each file below ``logs/`` and whatever else
lies at the top is a record of one file; each directory below ``threads/`` is a record with a unit for every file.

Of two versions of a control file one is taken only if it has everything that the other has; otherwise both are merged
in the order of docs/design/formats/leslie.md#order, or a person decides.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats.append_only import join_lines, lacks_lines
from reconcile.formats.fixed import FixedPlaces, is_blank, is_odd
from reconcile.formats.leslie.checks.control_files import listed
from reconcile.formats.leslie.checks.examine import mended, with_written
from reconcile.formats.leslie.checks.model import Found
from reconcile.formats.leslie.document import (
    CONTROL,
    OBJECTIVES,
    RELATIONS,
    THREADS,
    dotted,
    is_safe,
    read,
    read_objectives,
    read_relations,
    written,
)
from reconcile.formats.leslie.operations import Operation
from reconcile.formats.leslie.repair import mend_relations
from reconcile.formats.leslie.union import newness, unite, unite_objectives
from reconcile.model.format import Entry
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.formats.leslie.document import Document, Object, ObjectivesDocument
    from reconcile.formats.leslie.union import United
    from reconcile.model.format import Mended
    from reconcile.model.snapshot import Metadata


LOGS, RUNTIME, LOCK = "logs", "runtime", ".lock"
_DIRECTORIES = (THREADS, LOGS)
_PROGRAM = re.compile(
    r"(?:thread_relations|objectives)\.json(?:\.bak|\.lock(?:\.stale-.*)?|\.tmp-[0-9]+-[0-9a-f-]{36})", re.DOTALL
)
"""What the program has beside a control file: its backup, its lock, what an interrupted write leaves (1, 7)."""


class LeslieFormat(FixedPlaces):
    """The rules of a ``.leslie``."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "leslie"

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Tell what lies at the top, in ``threads/`` or below ``logs/``; what nobody knows is a record all the same.

        A log is a record by itself, as it only grows and is united by line.
        """
        above, _, name = path.rpartition("/")
        if not above and (_PROGRAM.fullmatch(name) or name == RUNTIME or (directory and name.endswith(".lock"))):
            return Entry.IGNORED
        if self.is_left_out(path, directory=directory):
            return Entry.IGNORED
        if not is_safe(name) or is_odd(path):
            return Entry.FOREIGN
        if not above:
            if name in _DIRECTORIES:
                return Entry.ENTER if directory else Entry.FOREIGN
            return Entry.FOREIGN if directory and name in CONTROL else Entry.RECORD
        if path.startswith(f"{LOGS}/"):
            return Entry.ENTER if directory else Entry.RECORD
        return Entry.RECORD if above == THREADS and directory else Entry.FOREIGN

    def order(self, conversation: str) -> tuple[int, str]:
        """The relations, the objectives, then by path: the order of the locks.

        See docs/design/formats/leslie.md#locking.
        """
        name = conversation.removesuffix(LOCK)
        return (CONTROL.index(name) if name in CONTROL else len(CONTROL), conversation)

    def lock_name(self, conversation: str) -> str | None:
        """The control file whose lock the program takes before it writes it; it has none for other files.

        A lock that was left behind is taken away by taking it over, as the program does.
        """
        name = conversation.removesuffix(LOCK)
        return name if name in CONTROL else None

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """A control file must be one that the program reads, or of the older dialect; others may be anything.

        An empty control file is damage that the other side refills.
        """
        if conversation in CONTROL:
            found = read(conversation, content)
            if isinstance(found, Fault):
                return replace(found, incomplete=is_blank(content))
            if found.damage:
                first = found.damage[0]
                return Fault(conversation, f"{first.found} as {dotted(first.path)}", first.expected)
        return self.described(None, content)

    def unite(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:
        """Both sides' control files or logs in one; the table decides about every other record that isn't empty."""
        if conversation == RELATIONS:
            return join_relations(workspace, store)
        if conversation == OBJECTIVES:
            return join_objectives(workspace, store)
        if conversation.startswith(f"{LOGS}/"):
            return join_lines(store, workspace)
        return super().unite(conversation, store, workspace)

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether operations, threads, objectives or lines of a log are missing: the program removes none of them.

        It goes back to a backup without a word, and makes empty files in the place of those that are gone
        (docs/design/formats/leslie.md#backup).
        """
        if conversation in CONTROL:
            return loses_records(conversation, before, after)
        if conversation.startswith(f"{LOGS}/"):
            return lacks_lines(before, after)
        return super().loses(conversation, before, after)

    def busy(self, found: object) -> str:
        """Why nothing may be written in the workspace now, in words (`Found.busy`)."""
        return found.busy if isinstance(found, Found) else ""

    def mend(
        self, found: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[Mended, ...]:
        """What mends the workspace (`mended`), after what a plan writes before. No `Found`: there was no ``.leslie``.

        To ask for several, ask for them together in ``wanted``: each for itself is made of what there is without the
        others.
        """
        there = found if isinstance(found, Found) else Found({})
        return mended(with_written(there, written), wanted)


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
    here, there = _version_of_relations(ours), _version_of_relations(theirs)
    found = _joined_versions(RELATIONS, here, there, partial(unite, ours, theirs))
    # Two dialects in one are the program's, and records of the older one get what it asks for.
    mended = mend_relations(found) if isinstance(found, bytes) else None
    return found if mended is None else mended.content


def loses_records(name: str, before: bytes, after: bytes) -> bool:
    """Tell whether an edit of a control file has lost operations, threads or objectives: no command removes one."""
    old, new = (_version(name, content) for content in (before, after))
    if old is None or new is None:
        return False
    return not (
        _operation_ids(old.operations) <= _operation_ids(new.operations) and old.records.keys() <= new.records.keys()
    )


def join_objectives(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """As `join_relations`, by the objectives' ids. What they say of their threads is worked out by a rebuilding."""
    ours, theirs = read_objectives(workspace), read_objectives(store)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    here, there = _version_of_objectives(ours), _version_of_objectives(theirs)
    return _joined_versions(OBJECTIVES, here, there, partial(unite_objectives, ours, theirs, {}))


def _version(name: str, content: bytes) -> _Version | None:
    if name == RELATIONS:
        relations = read_relations(content)
        return None if isinstance(relations, Fault) else _version_of_relations(relations)
    objectives = read_objectives(content)
    return None if isinstance(objectives, Fault) else _version_of_objectives(objectives)


def _version_of_relations(document: Document) -> _Version:
    return _Version(document.content, document.operations, document.threads)


def _version_of_objectives(document: ObjectivesDocument) -> _Version:
    return _Version(document.content, [], document.objectives)


def _operation_ids(operations: list[Object]) -> set[object]:
    """The operations' ids; an operation without one is known by all that it says."""
    return {Operation(entry).id or written(entry) for entry in operations}


def _joined_versions(name: str, here: _Version, there: _Version, unite: Callable[[], United]) -> bytes | Fault | None:
    """The one that is enough, or both in one; where that takes a decision, the one that has everything."""
    enough = here.is_enough(there), there.is_enough(here)
    if any(enough):
        return _right_version(here, there, enough)
    united = unite()
    if united.content is not None:
        return united.content
    whole = here.has_all(there), there.has_all(here)
    if any(whole):
        return _right_version(here, there, whole)
    found = f"in the workspace and in the store: {listed(united.conflicts, '; ')}"
    return Fault(name, found, "versions that agree there, or one of them decided for")


def _right_version(here: _Version, there: _Version, right: tuple[bool, bool]) -> bytes | None:
    """The version that is right; None: both are."""
    return None if all(right) else (here if right[0] else there).content

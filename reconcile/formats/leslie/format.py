"""Leslie's ``.leslie/`` as records with fixed places, each identified by its path below it.

The content of ``.leslie/`` is the root of either side. Both control files, each file below ``logs/`` and every other
entry at the top is a record of one file. Each directory below ``threads/`` is a record with a unit for every file.

Of two versions of a control file one is taken only if it has everything that the other has. Otherwise both are merged
in the order of docs/design/formats/leslie.md#order, or a person decides.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats.fixed import FixedPlaces, is_blank, is_odd, lacks_lines, merge_lines
from reconcile.formats.leslie.checks.control_files import listed
from reconcile.formats.leslie.checks.examine import derived_repairs, with_written
from reconcile.formats.leslie.checks.model import LeslieTree
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
from reconcile.formats.leslie.repair import repair_relations
from reconcile.formats.leslie.replay import Operation
from reconcile.formats.leslie.union import merge, merge_objectives, newness
from reconcile.model.format import Entry
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.formats.leslie.document import Document, Object, ObjectivesDocument
    from reconcile.formats.leslie.union import Merged
    from reconcile.model.format import DerivedRepair, Merge
    from reconcile.model.snapshot import Metadata
    from reconcile.model.transcript import Transcript


LOGS, RUNTIME, LOCK = "logs", "runtime", ".lock"
_DIRECTORIES = (THREADS, LOGS)
_PROGRAM = re.compile(
    r"(?:thread_relations|objectives)\.json(?:\.bak|\.lock(?:\.stale-.*)?|\.tmp-[0-9]+-[0-9a-f-]{36})", re.DOTALL
)
"""Files that the program writes beside a control file: the backup, the lock, leftovers of an interrupted write."""


class LeslieFormat(FixedPlaces):
    """The rules of a ``.leslie``."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "leslie"

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Classify an entry at the top, in ``threads/`` or below ``logs/``; an unknown entry is a record too.

        A log is a record of its own, because it only grows and is merged by line.
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
        """Sort by the order of the locks: the relations, the objectives, then other records by path.

        See docs/design/formats/leslie.md#locking.
        """
        name = conversation.removesuffix(LOCK)
        return (CONTROL.index(name) if name in CONTROL else len(CONTROL), conversation)

    def lock_name(self, conversation: str) -> str | None:
        """Return the control file whose lock the program takes before it writes; None for other files.

        A stale lock is removed by taking it over, as the program does.
        """
        name = conversation.removesuffix(LOCK)
        return name if name in CONTROL else None

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """Read a record. The program must be able to read a control file, or it is in the older dialect.

        Other records may hold anything. An empty control file is incomplete: the other side replaces it.
        """
        if conversation in CONTROL:
            document = read(conversation, content)
            if isinstance(document, Fault):
                return replace(document, incomplete=is_blank(content))
            if document.damage:
                first = document.damage[0]
                return Fault(conversation, f"{first.found} as {dotted(first.path)}", first.expected)
        return self.described(None, content)

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:
        """Return a conversation for people to read."""
        from reconcile.formats.leslie.transcript import transcript  # here: no run needs it

        return transcript(conversation, contents)

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> Merge:
        """Merge both sides' control files or logs. The decision table handles all other records that are not empty."""
        if conversation == RELATIONS:
            return merge_relations_files(workspace, store)
        if conversation == OBJECTIVES:
            return merge_objectives_files(workspace, store)
        if conversation.startswith(f"{LOGS}/"):
            return merge_lines(store, workspace)
        return super().merge(conversation, store, workspace)

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether operations, threads, objectives or lines of a log are missing. The program never removes them.

        It silently goes back to a backup, and writes empty files in place of missing ones
        (docs/design/formats/leslie.md#backup).
        """
        if conversation in CONTROL:
            return loses_records(conversation, before, after)
        if conversation.startswith(f"{LOGS}/"):
            return lacks_lines(before, after)
        return super().loses(conversation, before, after)

    def busy(self, inputs: object) -> str:
        """Return why nothing may be written in the workspace now, in words (`LeslieTree.busy`)."""
        return inputs.busy if isinstance(inputs, LeslieTree) else ""

    @property
    def has_derived(self) -> bool:
        """True: see `mend`."""
        return True

    def mend(
        self, inputs: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[DerivedRepair, ...]:
        """Return the repairs of the workspace (`derived_repairs`) after the writes of a plan.

        ``inputs`` is a `LeslieTree`; anything else means that there was no ``.leslie``. Request several repairs
        together in ``wanted``: each single one is computed without the others.
        """
        tree = inputs if isinstance(inputs, LeslieTree) else LeslieTree({})
        return derived_repairs(with_written(tree, written), wanted)


class _Version(Struct, frozen=True):
    """The version of one side: its operations (empty for a file without a log), and its records by id."""

    content: bytes
    operations: list[Object]
    records: Mapping[str, Object]

    def has_all(self, other: _Version) -> bool:
        """Tell whether it has every operation of the other, in the same order, and every record."""
        remaining = iter(self.operations)
        return (
            all(operation in remaining for operation in other.operations)
            and other.records.keys() <= self.records.keys()
        )

    def is_enough(self, other: _Version) -> bool:
        """Tell whether it has everything of the other, with each record at least as new."""
        return self.has_all(other) and all(
            newness(self.records[key]) >= newness(record) for key, record in other.records.items()
        )


def merge_relations_files(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """Merge both logs. A version that has everything of the other is taken as a whole, except for newer records.

    None: the logs are equal, and nothing tells which of the other data is newer.
    """
    workspace_document, store_document = read_relations(workspace), read_relations(store)
    if isinstance(workspace_document, Fault) or isinstance(store_document, Fault):
        return None
    workspace_version, store_version = _version_of_relations(workspace_document), _version_of_relations(store_document)
    merged = _merged_versions(
        RELATIONS, workspace_version, store_version, partial(merge, workspace_document, store_document)
    )
    # A merge of two dialects is in that of the program: older records get the fields that it requires.
    repaired = repair_relations(merged) if isinstance(merged, bytes) else None
    return merged if repaired is None else repaired.content


def loses_records(name: str, before: bytes, after: bytes) -> bool:
    """Tell whether an edit of a control file has lost operations, threads or objectives: no command removes one."""
    old, new = (_version(name, content) for content in (before, after))
    if old is None or new is None:
        return False
    return not (
        _operation_ids(old.operations) <= _operation_ids(new.operations) and old.records.keys() <= new.records.keys()
    )


def merge_objectives_files(workspace: bytes, store: bytes) -> bytes | Fault | None:
    """Merge as `merge_relations_files`, by objective id. A rebuild derives their fields from the threads."""
    workspace_document, store_document = read_objectives(workspace), read_objectives(store)
    if isinstance(workspace_document, Fault) or isinstance(store_document, Fault):
        return None
    workspace_version, store_version = (
        _version_of_objectives(workspace_document),
        _version_of_objectives(store_document),
    )
    return _merged_versions(
        OBJECTIVES, workspace_version, store_version, partial(merge_objectives, workspace_document, store_document, {})
    )


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
    """Return the ids of the operations; the whole entry identifies an operation without an id."""
    return {Operation(entry).id or written(entry) for entry in operations}


def _merged_versions(
    name: str, workspace: _Version, store: _Version, merge: Callable[[], Merged]
) -> bytes | Fault | None:
    """Return the sufficient version, or both merged; if a merge needs a decision, the version that has everything."""
    enough = workspace.is_enough(store), store.is_enough(workspace)
    if any(enough):
        return _right_version(workspace, store, enough)
    merged = merge()
    if merged.content is not None:
        return merged.content
    whole = workspace.has_all(store), store.has_all(workspace)
    if any(whole):
        return _right_version(workspace, store, whole)
    words = f"both sides changed it: {listed(merged.conflicts, '; ')}"
    return Fault(name, words, "one version, chosen with resolve")


def _right_version(workspace: _Version, store: _Version, right: tuple[bool, bool]) -> bytes | None:
    """Return the content of the right version; None if both are right."""
    return None if all(right) else (workspace if right[0] else store).content

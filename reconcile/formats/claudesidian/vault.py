"""The files of a vault as values: by directory, by path, and parsed once for all checks."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from reconcile.formats.claudesidian.index import shape_problem
from reconcile.formats.claudesidian.record_files import INDEX, Item, Kind, in_order, is_item, listed_id, read_item
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping


Content: TypeAlias = "bytes | Fault"
"""A file's bytes, or why they could not be read."""

BACKUPS = "backups"
NEXUS = ".nexus"
STATUS = "migration-status.json"
EVENTS_SUFFIX = ".jsonl"


def event_file(kind: Kind, id_: str) -> str:
    """The name of a record's event file (docs/design/formats/claudesidian.md#eras)."""
    return f"{'ws' if kind is Kind.WORKSPACE else 'conv'}_{id_}{EVENTS_SUFFIX}"


class SplitFiles(Struct, frozen=True):
    """The files that lie directly in `.workspaces/` or `.conversations/`, and those in its `backups/`, by name."""

    files: Mapping[str, Content]
    backups: Mapping[str, Content] = field(default_factory=dict)


class NexusFiles(Struct, frozen=True):
    """The files of `.nexus/`: event files by name, and the status of the migration."""

    events: Mapping[Kind, Mapping[str, Content]]
    status: Content | None = None


class VaultFiles(Struct, frozen=True):
    """Everything of a vault that this format is about; what isn't there is missing."""

    split: Mapping[Kind, SplitFiles] = field(default_factory=dict)
    nexus: NexusFiles | None = None
    faults: tuple[Fault, ...] = ()
    """What stands in the place of one of the directories: nothing behind it was looked at."""


class FoundVault(Struct, frozen=True):
    """A vault as it was found, and when: what is made of it has no time after that."""

    files: VaultFiles
    now_ms: int


class Records(Struct, frozen=True):
    """One directory of the split era, parsed. ``index`` is None where there is none that can be gone through."""

    kind: Kind
    contents: Mapping[str, Content]
    backups: Mapping[str, Content]
    items: tuple[Item, ...]
    faults: tuple[Fault, ...]
    index: dict[str, Any] | None
    index_problem: str | None

    def place(self, name: str) -> str:
        """The path of a file in the vault."""
        return f"{self.kind.directory}/{name}"

    @property
    def current(self) -> dict[str, Item]:
        """One item for each id: of several files with one id the last listed, as the program's index has it."""
        return {item.id: item for item in self.items}

    @property
    def unread(self) -> frozenset[str]:
        """The ids by which files are listed that can't be read."""
        return frozenset(listed_id(fault.file) for fault in self.faults)


def read_records(kind: Kind, split: SplitFiles, known: Records | None = None) -> Records:
    """Parse the records and the index of one directory; what is as it was in ``known`` isn't parsed again."""
    names = in_order(name for name in split.files if is_item(name))
    again = {each.name: each for each in known.items} if known else {}
    same = {name for name in again if known and known.contents[name] is split.files.get(name)}
    read = [again[name] if name in same else _read(kind, name, split.files[name]) for name in names]
    content = split.files.get(INDEX)
    if known and known.contents.get(INDEX) is content:
        index, problem = known.index, known.index_problem
    else:
        index, problem = (None, "no index.json") if content is None else read_index(kind, content)
    return Records(
        kind,
        split.files,
        split.backups,
        tuple(each for each in read if isinstance(each, Item)),
        tuple(each for each in read if isinstance(each, Fault)),
        index,
        problem,
    )


def _read(kind: Kind, name: str, content: Content) -> Item | Fault:
    return content if isinstance(content, Fault) else read_item(kind, name, content)


def read_index(kind: Kind, content: Content) -> tuple[dict[str, Any] | None, str | None]:
    """An index that can be gone through, or why it can't."""
    if isinstance(content, Fault):
        return None, content.found
    try:
        value = javascript.parse(content)
    except InvalidContentError as error:
        return None, error.found
    problem = shape_problem(kind, value)
    return (None, problem) if problem else (value, None)


class Role(Enum):
    """What a file is by its place."""

    RECORD = auto()
    INDEX = auto()
    BESIDE = auto()
    """It lies beside records, and is none."""
    BACKUP = auto()
    EVENTS = auto()


class Place(Struct, frozen=True):
    """One of the places that findings are made of."""

    role: Role
    kind: Kind
    name: str


def place_of(path: str) -> Place | None:
    """What lies at a path of the vault; None for the migration's status, and what nobody looks at."""
    directory, _, name = path.rpartition("/")
    for kind in Kind:
        if directory == kind.directory:
            role = Role.INDEX if name == INDEX else Role.RECORD if is_item(name) else Role.BESIDE
            return Place(role, kind, name)
        if directory == f"{kind.directory}/{BACKUPS}":
            return Place(Role.BACKUP, kind, name)
        if directory == f"{NEXUS}/{kind}s" and name.endswith(EVENTS_SUFFIX):
            return Place(Role.EVENTS, kind, name)
    return None


def by_path(files: VaultFiles) -> dict[str, Content]:
    """The files of a vault by their path."""
    found: dict[str, Content] = {}
    for kind, split in files.split.items():
        found |= {f"{kind.directory}/{name}": content for name, content in split.files.items()}
        found |= {f"{kind.directory}/{BACKUPS}/{name}": content for name, content in split.backups.items()}
    if files.nexus is not None:
        for kind, events in files.nexus.events.items():
            found |= {f"{NEXUS}/{kind}s/{name}": content for name, content in events.items()}
        if files.nexus.status is not None:
            found[f"{NEXUS}/{STATUS}"] = files.nexus.status
    return found


def with_written(files: VaultFiles, written: Mapping[str, bytes | None]) -> VaultFiles:
    """The vault once these paths are written (None: they go). What is behind a fault stays unknown."""
    if not written:
        return files
    contents: dict[str, Content | None] = {**by_path(files), **written}
    split: dict[Kind, tuple[dict[str, Content], dict[str, Content]]] = {kind: ({}, {}) for kind in Kind}
    events: dict[Kind, dict[str, Content]] = {kind: {} for kind in Kind}
    for path in sorted(contents):
        place, content = place_of(path), contents[path]
        if place is None or content is None:
            continue
        if place.role is Role.EVENTS:
            events[place.kind][place.name] = content
        else:
            split[place.kind][place.role is Role.BACKUP][place.name] = content
    status = contents.get(f"{NEXUS}/{STATUS}")
    nexus = (
        NexusFiles(events, status) if files.nexus is not None or status is not None or any(events.values()) else None
    )
    return VaultFiles({kind: SplitFiles(*each) for kind, each in split.items()}, nexus, files.faults)

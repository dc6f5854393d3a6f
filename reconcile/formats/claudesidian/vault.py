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
    """Return the name of the event file of a record (docs/design/formats/claudesidian.md#eras)."""
    return f"{'ws' if kind is Kind.WORKSPACE else 'conv'}_{id_}{EVENTS_SUFFIX}"


class SplitFiles(Struct, frozen=True):
    """The files directly in `.workspaces/` or `.conversations/`, and those in its `backups/`, by name."""

    files: Mapping[str, Content]
    backups: Mapping[str, Content] = field(default_factory=dict)


class NexusFiles(Struct, frozen=True):
    """The files of `.nexus/`: event files by name, and the status of the migration."""

    events: Mapping[Kind, Mapping[str, Content]]
    status: Content | None = None


class VaultFiles(Struct, frozen=True):
    """All files of a vault that belong to the format; missing ones are left out."""

    split: Mapping[Kind, SplitFiles] = field(default_factory=dict)
    nexus: NexusFiles | None = None
    faults: tuple[Fault, ...] = ()
    """Entries that are not directories in place of one: their content was not read."""


class VaultSnapshot(Struct, frozen=True):
    """A vault and the time when it was read. Repairs contain no later time."""

    files: VaultFiles
    now_ms: int


class Records(Struct, frozen=True):
    """One directory of the split era, parsed. ``index`` is None if there is none that can be traversed."""

    kind: Kind
    contents: Mapping[str, Content]
    backups: Mapping[str, Content]
    items: tuple[Item, ...]
    faults: tuple[Fault, ...]
    index: dict[str, Any] | None
    index_problem: str | None

    def place(self, name: str) -> str:
        """Return the path of a file in the vault."""
        return f"{self.kind.directory}/{name}"

    @property
    def current(self) -> dict[str, Item]:
        """One item for each id: the last listed of several files with one id, as in the program's index."""
        return {item.id: item for item in self.items}

    @property
    def unread(self) -> frozenset[str]:
        """The ids by which unreadable files are listed."""
        return frozenset(listed_id(fault.file) for fault in self.faults)


def read_records(kind: Kind, split: SplitFiles, known: Records | None = None) -> Records:
    """Parse the records and the index of one directory; unchanged contents of ``known`` are not parsed again."""
    names = in_order(name for name in split.files if is_item(name))
    known_items = {item.name: item for item in known.items} if known else {}
    unchanged = {name for name in known_items if known and known.contents[name] is split.files.get(name)}
    read = [known_items[name] if name in unchanged else _read(kind, name, split.files[name]) for name in names]
    content = split.files.get(INDEX)
    if known and known.contents.get(INDEX) is content:
        index, problem = known.index, known.index_problem
    else:
        index, problem = (None, "no index.json") if content is None else read_index(kind, content)
    return Records(
        kind,
        split.files,
        split.backups,
        tuple(item for item in read if isinstance(item, Item)),
        tuple(item for item in read if isinstance(item, Fault)),
        index,
        problem,
    )


def _read(kind: Kind, name: str, content: Content) -> Item | Fault:
    return content if isinstance(content, Fault) else read_item(kind, name, content)


def read_index(kind: Kind, content: Content) -> tuple[dict[str, Any] | None, str | None]:
    """Return an index that can be traversed, or the reason why it can't be."""
    if isinstance(content, Fault):
        return None, content.found
    try:
        value = javascript.parse(content)
    except InvalidContentError as error:
        return None, error.found
    problem = shape_problem(kind, value)
    return (None, problem) if problem else (value, None)


class Role(Enum):
    """The role of a file, by its place."""

    RECORD = auto()
    INDEX = auto()
    BESIDE = auto()
    """A file beside records that is no record."""
    BACKUP = auto()
    EVENTS = auto()


class Place(Struct, frozen=True):
    """The place of a file that findings depend on."""

    role: Role
    kind: Kind
    name: str


def place_of(path: str) -> Place | None:
    """Return the place of a path in the vault; None for the status of the migration and for ignored files."""
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
    """Return the files of a vault by path."""
    contents: dict[str, Content] = {}
    for kind, split in files.split.items():
        contents |= {f"{kind.directory}/{name}": content for name, content in split.files.items()}
        contents |= {f"{kind.directory}/{BACKUPS}/{name}": content for name, content in split.backups.items()}
    if files.nexus is not None:
        for kind, events in files.nexus.events.items():
            contents |= {f"{NEXUS}/{kind}s/{name}": content for name, content in events.items()}
        if files.nexus.status is not None:
            contents[f"{NEXUS}/{STATUS}"] = files.nexus.status
    return contents


def with_written(files: VaultFiles, written: Mapping[str, bytes | None]) -> VaultFiles:
    """Return the vault after these paths are written (None: removed). Content behind a fault stays unknown."""
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

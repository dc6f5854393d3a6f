"""Where each file of a vault is: a path taken apart, and a vault as files by path."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.claudesidian.record_files import INDEX, Kind, is_item
from reconcile.formats.claudesidian.vault import (
    BACKUPS,
    EVENTS_SUFFIX,
    NEXUS,
    STATUS,
    NexusFiles,
    SplitFiles,
    VaultFiles,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.formats.claudesidian.vault import Content


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

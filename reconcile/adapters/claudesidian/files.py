"""Reads the files of a vault in which Claudesidian keeps its data. Links are not followed, and nothing is written."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.claudesidian.briefing import Agent, Surroundings, VaultFile, read_agents
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.formats.claudesidian.vault import BACKUPS, NEXUS, STATUS, NexusFiles, SplitFiles, VaultFiles
from reconcile.fs.files import Directory, kind_of, read_all, read_consistently, unreadable
from reconcile.fs.paths import is_absence
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.formats.claudesidian.vault import Content

_PLUGINS = ("claudesidian-mcp", "nexus")

_AT_MOST = 256 << 20
"""The greatest number of bytes of a file that is read: nested copies in states double with each state.

See docs/design/formats/claudesidian.md#edge-case-16.
"""


def read_vault(path: str, kinds: Collection[Kind] = tuple(Kind)) -> VaultFiles:
    """Return all files of the format as they are now, or only those of some kinds of records."""
    with Directory.open_root(os.path.join(path, "")) as root:
        names = [*(kind.directory for kind in kinds), NEXUS]
        faults = {name: _fault(root, name) for name in names if _exists(root, name)}
        split = {kind: _split(root, kind) for kind in kinds if faults.get(kind.directory, ...) is None}
        nexus = _nexus(root, kinds) if faults.get(NEXUS, ...) is None else None
        return VaultFiles(split, nexus, tuple(fault for fault in faults.values() if fault is not None))


def read_surroundings(path: str) -> Surroundings:
    """Return the visible files and folders of a vault, the agents of its program, and the paths that can't be read.

    Names with a leading dot are left out.
    """
    files: list[VaultFile] = []
    folders: list[str] = []
    with Directory.open_root(os.path.join(path, "")) as root:
        agents = list(_agents(root))
        unread = [agent for agent in agents if isinstance(agent, Fault)]
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            for inner, status in _seen(root, folder):
                if isinstance(status, Fault):
                    unread.append(status)
                elif stat.S_ISDIR(status.st_mode):
                    folders.append(inner)
                    waiting.append(inner)
                elif stat.S_ISREG(status.st_mode):
                    files.append(VaultFile(inner, (status.st_mtime_ns + 500_000) // 1_000_000))
    files.sort(key=lambda file: file.path)
    unread.sort(key=lambda fault: fault.file)
    known = tuple(agent for agent in agents if isinstance(agent, Agent))
    return Surroundings(tuple(files), frozenset(folders), known, tuple(unread))


def _seen(root: Directory, folder: str) -> list[tuple[str, os.stat_result | Fault]]:
    """Return the visible paths in a folder, each with its status or the fault why it can't be read."""
    paths: list[tuple[str, os.stat_result | Fault]] = []
    try:
        with root.below(folder) as directory:
            for entry in directory.entries():
                status = None if entry.name.startswith(".") else _status(directory, entry.name)
                if status is not None:  # not removed meanwhile
                    paths.append((f"{folder}/{entry.name}" if folder else entry.name, status))
    except OSError as error:
        if not is_absence(error):
            paths.append((folder, unreadable(folder or "/", error)))
    return paths


def _agents(root: Directory) -> Iterator[Agent | Fault]:
    """Yield the agents in the settings of the program, under either of its names, or faults of unreadable settings."""
    for plugin in _PLUGINS:
        place = f".obsidian/plugins/{plugin}"
        try:
            with root.below(place) as directory:
                content = _content(directory, "data.json") if _exists(directory, "data.json") else b""
        except OSError as error:
            if not is_absence(error):
                yield unreadable(place, error)
            continue
        if isinstance(content, bytes):
            yield from read_agents(content)
        else:
            yield replace(content, file=f"{place}/{content.file}")


def _split(root: Directory, kind: Kind) -> SplitFiles:
    with root.below(kind.directory) as directory:
        return SplitFiles(_files(directory), _files_below(directory, BACKUPS))


def _nexus(root: Directory, kinds: Collection[Kind]) -> NexusFiles:
    with root.below(NEXUS) as directory:
        events = {kind: _files_below(directory, f"{kind}s", ".jsonl") for kind in kinds}
        return NexusFiles(events, _content(directory, STATUS) if _exists(directory, STATUS) else None)


def _files_below(directory: Directory, name: str, suffix: str = "") -> Mapping[str, Content]:
    if not _is_directory(directory, name):
        return {}
    with directory.below(name) as inner:
        return _files(inner, suffix)


def _files(directory: Directory, suffix: str = "") -> Mapping[str, Content]:
    """Return the files directly in a directory, by name."""
    names = [
        entry.name
        for entry in directory.entries()
        if not entry.is_dir(follow_symlinks=False) and entry.name.endswith(suffix)
    ]
    return {name: _content(directory, name) for name in sorted(names)}


def _content(directory: Directory, name: str) -> Content:
    try:
        status = directory.stat(name)
    except OSError as error:
        return unreadable(name, error)
    if not stat.S_ISREG(status.st_mode):
        return Fault(name, kind_of(status.st_mode), "a regular file")
    if status.st_size > _AT_MOST:
        problem = f"{status.st_size / 1e6:,.0f} MB"
        return Fault(name, problem, f"at most {_AT_MOST / 1e6:,.0f} MB")
    contents = read_consistently(directory, {name: read_all})
    return contents if isinstance(contents, Fault) else contents[name][0]


def _fault(directory: Directory, name: str) -> Fault | None:
    """Return a fault if an entry that should be a directory is none; a link is not followed."""
    mode = directory.stat(name).st_mode
    return None if stat.S_ISDIR(mode) else Fault(name, kind_of(mode), "a directory")


def _is_directory(directory: Directory, name: str) -> bool:
    """Tell whether a directory exists. Raises `OSError` if this is unknown, as `_exists`."""
    status = _status(directory, name)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _exists(directory: Directory, name: str) -> bool:
    return _status(directory, name) is not None


def _status(directory: Directory, name: str) -> os.stat_result | None:
    try:
        return directory.stat(name)
    except OSError as error:
        if is_absence(error):
            return None
        raise

"""The files of a vault that Claudesidian keeps its data in, read without following a link; nothing is ever written."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.briefing import Agent, Surroundings, VaultFile, read_agents
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.formats.claudesidian.vault import BACKUPS, NEXUS, STATUS, NexusFiles, SplitFiles, VaultFiles
from reconcile.fs.dirfd import Directory, kind_of
from reconcile.fs.files import read_all, read_consistently, unreadable
from reconcile.fs.paths import is_absence
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.formats.claudesidian.vault import Content

_PLUGINS = ("claudesidian-mcp", "nexus")

_AT_MOST = 256 << 20
"""Bytes of one file that are read: states that hold copies of copies double with each one.

See docs/design/formats/claudesidian.md#edge-case-16.
"""


def read_vault(path: str, kinds: Collection[Kind] = tuple(Kind)) -> VaultFiles:
    """Every file that the format is about, as it is now; or those of some kinds of records only."""
    with Directory.open_root(os.path.join(path, "")) as root:
        names = [*(kind.directory for kind in kinds), NEXUS]
        faults = {name: _fault(root, name) for name in names if _exists(root, name)}
        split = {kind: _split(root, kind) for kind in kinds if faults.get(kind.directory, ...) is None}
        nexus = _nexus(root, kinds) if faults.get(NEXUS, ...) is None else None
        return VaultFiles(split, nexus, tuple(each for each in faults.values() if each is not None))


def read_surroundings(path: str) -> Surroundings:
    """Files and folders of a vault as its program shows them, without dot-names, the agents that it knows, and what
    can't be read of all that.
    """
    files: list[VaultFile] = []
    folders: list[str] = []
    with Directory.open_root(os.path.join(path, "")) as root:
        agents = list(_agents(root))
        unread = [each for each in agents if isinstance(each, Fault)]
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
    known = tuple(each for each in agents if isinstance(each, Agent))
    return Surroundings(tuple(files), frozenset(folders), known, tuple(unread))


def _seen(root: Directory, folder: str) -> list[tuple[str, os.stat_result | Fault]]:
    """The paths in a folder without a dot in front of their names, each with its status; or that it can't be read."""
    found: list[tuple[str, os.stat_result | Fault]] = []
    try:
        with root.below(folder) as directory:
            for entry in directory.entries():
                status = None if entry.name.startswith(".") else _status(directory, entry.name)
                if status is not None:  # not removed meanwhile
                    found.append((f"{folder}/{entry.name}" if folder else entry.name, status))
    except OSError as error:
        if not is_absence(error):
            found.append((folder, unreadable(folder or "/", error)))
    return found


def _agents(root: Directory) -> Iterator[Agent | Fault]:
    """The custom prompts in the settings of the program, under either of its names; or what can't be read of them."""
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
            yield Fault(f"{place}/{content.file}", content.found, content.expected)


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
    """What lies directly in a directory and isn't one, by name."""
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
        found = f"{status.st_size / 1e6:,.0f} MB, more than the {_AT_MOST / 1e6:,.0f} MB that are read of one file"
        return Fault(name, found, "a smaller file")
    found_ = read_consistently(directory, {name: read_all})
    return found_ if isinstance(found_, Fault) else found_[name][0]


def _fault(directory: Directory, name: str) -> Fault | None:
    """What is wrong with an entry that should be a directory: a link is not followed, wherever it leads."""
    mode = directory.stat(name).st_mode
    return None if stat.S_ISDIR(mode) else Fault(name, kind_of(mode), "a directory")


def _is_directory(directory: Directory, name: str) -> bool:
    """Whether a directory is there. Raises `OSError` where that can't be told, as the next one."""
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

"""The files of a remote on this machine: a plain directory that a run takes for a workspace.

It is a cache that each sync makes equal to the remote's tree. No file in it is ever the only copy of anything.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from reconcile.fs.files import fingerprint_of
from reconcile.fs.hashing import digest, digest_file
from reconcile.fs.paths import directory_identity
from reconcile.fs.private_files import (
    create_private_file,
    make_private_directory,
    replace_private_file,
    write_all,
)
from reconcile.index.rows import Index
from reconcile.model.snapshot import ARCHIVE, joined
from reconcile.remote.tree import paths_of, slots_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.format import Format
    from reconcile.model.snapshot import Digest
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.tree import FileRecord, Record, Tree

_AT_ONCE = 200
"""Files that are read from the remote at once."""
AHEAD_NS = 300 * 10**9
"""A time that is later than this from now is that of a wrong clock, and counts as now."""


def make_equal(
    side: str,
    tree: Tree,
    engine: RemoteEngine,
    fmt: Format,
    now_ns: int,
    known: Index,
    only: Collection[str] | None = None,
) -> dict[str, str]:
    """Make a directory equal to the remote's tree, each file with the time of its record.

    ``known`` has what the last scan has read of the files. ``only``: the tree is a part, and these are all directories
    of its conversations, those before included. Return the conversations that the remote has damaged, by
    key, each with the reason. They are not in the directory.
    """
    refused = dict[str, str]()
    make_private_directory(side)
    wanted = paths_of(tree.records.values())
    there = _digests(side, known if known.identity == directory_identity(side) else Index(), only)
    gone = there.keys() - wanted.keys()
    for path in gone:
        os.unlink(os.path.join(side, path))
    if gone:  # a file may take the place of a directory
        _remove_empty(side, only)
    missing = [path for path, (record, name) in wanted.items() if there.get(path) != record.files[name].digest]
    for paths in (missing[at : at + _AT_ONCE] for at in range(0, len(missing), _AT_ONCE)):
        slots = {path: slots_of(*wanted[path], fmt, tree.coding) for path in paths}
        contents = dict(engine.read(tree.names[slot] for path in paths for slot in slots[path]))
        for path in paths:
            record, name = wanted[path]
            try:
                content = b"".join(tree.coding.open(contents[tree.names[slot]]) for slot in slots[path])
            except ValueError as error:
                refused[record.id] = f"{name or record.name}: {error}"
                continue
            if digest(content) != record.files[name].digest:
                refused[record.id] = f"{name or record.name}: its content is not the one that its record names"
                continue
            _write(side, path, content)
    for conversation in refused:
        _remove(side, tree.records[conversation])
    _set_times(side, {p: each.files[n] for p, (each, n) in wanted.items() if each.id not in refused}, now_ns)
    _remove_empty(side, only)
    return refused


def are_equal(side: str, records: Collection[Record], ids: Collection[str]) -> bool:
    """Tell whether the directories of some conversations have the files of their records, and no other ones."""
    wanted = {path: record.files[name].digest for path, (record, name) in paths_of(records).items()}
    paths = {record.path for record in records}
    return len(records) == len(ids) and _digests(side, Index(), paths) == wanted


def are_listed(side: str, directory: str, paths: Iterable[str]) -> bool:
    """Tell whether a directory has the entries that some paths need, and no other one."""
    above = f"{directory}/" if directory else ""
    needed = {path.removeprefix(above).partition("/")[0] for path in paths if path.startswith(above)}
    with suppress(FileNotFoundError):
        return needed == set(os.listdir(os.path.join(side, directory)))
    return not needed


def read_file(side: str, path: str) -> bytes:
    """Return the content of a file of the directory."""
    with open(os.path.join(side, path), "rb") as file:
        return file.read()


def load_contents(path: str) -> dict[str, bytes]:
    """Return the records that the last sync has read, by their names; none if the file is missing or damaged.

    The names follow from the contents, so that a sync reads those records alone that are new.
    """
    try:
        with open(path, "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=dict[str, bytes])
    except (OSError, msgspec.DecodeError):
        return {}


def save_contents(path: str, contents: Mapping[str, bytes]) -> None:
    """Save them for the next sync."""
    make_private_directory(os.path.dirname(path))
    replace_private_file(path, msgspec.msgpack.encode(contents))


def _digests(side: str, known: Index, only: Collection[str] | None = None) -> dict[str, Digest]:
    """Return the digest of every file, read unless its status is the one that a scan has seen. Links are removed.

    ``only``: of the files in these directories, which may be missing.
    """
    rows = known.rows.items() if only is None else ((path, known.rows[path]) for path in only if path in known.rows)
    seen = {joined(path, name): file for path, row in rows for name, file in row.files().items()}
    found, above = dict[str, str](), [""] if only is None else [path for path in only if _is_there(side, path)]
    while above:
        at = above.pop()
        with os.scandir(os.path.join(side, at)) as entries:
            for entry in entries:
                path = joined(at, entry.name) if at else entry.name
                if entry.is_dir(follow_symlinks=False):
                    above.append(path)
                elif entry.is_symlink():
                    os.unlink(entry.path)
                else:
                    status, digest_there = seen.get(path, (None, ""))
                    is_seen = status == fingerprint_of(entry.stat(follow_symlinks=False))
                    found[path] = digest_there if is_seen else _read_digest(entry.path)
    return found


def _is_there(side: str, path: str) -> bool:
    """Tell whether a path is a directory; something else there is removed."""
    full = os.path.join(side, path)
    is_directory = os.path.isdir(full) and not os.path.islink(full)
    if not is_directory:
        with suppress(FileNotFoundError):
            os.unlink(full)
    return is_directory


def _read_digest(path: str) -> Digest:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return digest_file(fd)
    finally:
        os.close(fd)


def _write(side: str, path: str, content: bytes) -> None:
    """Write a file of the directory. The temporary one is beside the directory, where no name of the tree is."""
    full, temporary = os.path.join(side, path), f"{side}.new"
    make_private_directory(os.path.dirname(full))
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = create_private_file(temporary)
    try:
        write_all(fd, content)
    finally:
        os.close(fd)
    os.replace(temporary, full)


def _remove(side: str, record: Record) -> None:
    for path in paths_of([record]):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(side, path))


def _set_times(side: str, files: Mapping[str, FileRecord], now_ns: int) -> None:
    for path, file in files.items():
        wanted = max(0, file.mtime_ns) if file.mtime_ns <= now_ns + AHEAD_NS else now_ns
        full = os.path.join(side, path)
        if os.stat(full, follow_symlinks=False).st_mtime_ns != wanted:
            os.utime(full, ns=(wanted, wanted), follow_symlinks=False)


def _remove_empty(side: str, only: Collection[str] | None) -> None:
    tops = [""] if only is None else [*only, ARCHIVE]
    for top in tops:
        for directory, _, _ in os.walk(os.path.join(side, top) if top else side, topdown=False):
            if directory != side and not os.listdir(directory):
                os.rmdir(directory)

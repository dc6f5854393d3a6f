"""The least that a kind of work takes in Python: what every implementation has to do, and nothing else.

``python -P tests/bench/least.py first|projection|change STATE SOURCE TARGET``. As `reconcile` does, it reads, hashes
and decodes files, keeps a status of each and a row of each conversation, saves an old version before it is replaced,
and flushes before it reports success, in two processes. It checks, plans, locks, merges, shows and undoes nothing.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import sqlite3
import sys
from array import array
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from xxhash import xxh3_128_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LABEL = "python, the least"
FLUSHED_ALONE = 16
"""Up to so many files, each is flushed by itself. Beyond that, one flush of the file system is faster."""
_TABLE = "CREATE TABLE IF NOT EXISTS conversations (name TEXT PRIMARY KEY, hash BLOB) WITHOUT ROWID"
_FIELDS = 4
_BYTES = 8 * _FIELDS
Part = TypeVar("Part")
Rows = tuple[list[str], list[int], list[bytes]]
"""Of files: the path of each below its side, the numbers of its status, the hash of its content."""


def command(work: str, *paths: object) -> tuple[str, ...]:
    """Return the command that does this kind of work; STATE, SOURCE and TARGET may follow later."""
    return (sys.executable, "-P", __file__, work, *map(str, paths))


def first(state: str, source: str, target: str) -> None:
    """Read both sides, which are equal, and keep what is known of them."""
    names = os.listdir(source)

    def part(number: int) -> Rows:
        rows: Rows = [], [], []
        for name in names[number::2]:
            _read(source, name, rows, decoded=True)
            _read(target, name, rows, decoded=False)
        return rows

    _keep(state, _in_two_processes(part))


def projection(state: str, source: str, target: str) -> None:
    """Write every conversation of the source to the target, a new directory."""
    names = os.listdir(source)
    with _database(state) as database:
        database.executemany("INSERT INTO conversations VALUES (?, ?)", ((name, b"") for name in names))
    os.makedirs(target)

    def part(number: int) -> Rows:
        rows: Rows = [], [], []
        for name in names[number::2]:
            _write(source, target, name, rows)
        return rows

    halves = _in_two_processes(part)
    _flush_file_system(target)
    _keep(state, halves)


def change(state: str, source: str, target: str) -> None:
    """Carry the files that have changed since the last run from the source to the target; the first run only looks."""
    known, later = os.path.join(state, "known"), os.path.join(state, "later")
    if not os.path.exists(known):
        os.mkdir(state)
        names = [list(_paths(side)) for side in (source, target)]
        pairs = zip((source, target), names, strict=True)
        _save(known, ["\0".join(each) for each in names], [_statuses(side, each) for side, each in pairs])
        return
    names, statuses = _loaded(known)
    changes: list[dict[str, bytes]] = _loaded(later) if os.path.exists(later) else [{}, {}]

    def changed(number: int) -> list[str]:
        paths, before, since = names[number].split("\0"), statuses[number], changes[number]
        now = _statuses((source, target)[number], paths)
        if now == before:
            return []
        places = zip(paths, range(0, len(now), _BYTES), strict=True)
        differing = ((path, now[at : at + _BYTES], before[at : at + _BYTES]) for path, at in places)
        return [path for path, new, old in differing if new != old and new != since.get(path)]

    found, _ = _in_two_processes(changed)
    _replace(state, source, target, [path for path in found if path.endswith(".json")])
    for side, since in zip((source, target), changes, strict=True):
        paths = [path for each in found for path in (each, os.path.dirname(each)) if path]
        now = _statuses(side, paths)
        since.update((path, now[at : at + _BYTES]) for path, at in zip(paths, range(0, len(now), _BYTES), strict=True))
    _save(later, *changes)


def _replace(state: str, source: str, target: str, paths: list[str]) -> None:
    """Write each path's content to the target, with the earlier one saved and both flushed."""
    kept, pairs = os.path.join(state, "vault"), []
    os.makedirs(kept, exist_ok=True)
    for path in paths:
        content, before = _content(os.path.join(source, path)), _content(os.path.join(target, path))
        msgspec.json.decode(content)
        saved, new = os.path.join(kept, xxh3_128_digest(before).hex()), os.path.join(target, path + ".new")
        moment = os.stat(os.path.join(source, path)).st_mtime_ns
        for name, data in ((saved, before), (new, content)):
            with open(name, "wb") as file:
                file.write(data)
                file.flush()
                if len(paths) <= FLUSHED_ALONE:
                    os.fsync(file.fileno())
        os.utime(new, ns=(moment, moment))
        pairs.append((new, os.path.join(target, path), xxh3_128_digest(content)))
    if len(paths) > FLUSHED_ALONE:
        _flush_file_system(target)
    with _database(state) as database:
        database.executemany("INSERT OR REPLACE INTO conversations VALUES (?, ?)", ((path, b"") for path in paths))
    for new, old, _ in pairs:
        os.replace(new, old)
        if len(paths) <= FLUSHED_ALONE:
            _flush_directory(os.path.dirname(old))
    if len(paths) > FLUSHED_ALONE:
        _flush_file_system(target)
    with _database(state) as database:
        rows = ((path, digest) for path, (_, _, digest) in zip(paths, pairs, strict=True))
        database.executemany("INSERT OR REPLACE INTO conversations VALUES (?, ?)", rows)


def _in_two_processes(part: Callable[[int], Part]) -> tuple[Part, Part]:
    """Return both halves of the work."""
    reads, writes = os.pipe()
    if not (child := os.fork()):
        with os.fdopen(writes, "wb") as file:
            marshal.dump(part(1), file)  # type: ignore[arg-type]
        os._exit(0)
    os.close(writes)
    own = part(0)
    with os.fdopen(reads, "rb") as file:
        other: Part = marshal.load(file)  # noqa: S302 -- our own
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the second process failed")
    return own, other


def _files(side: str, name: str, rows: Rows) -> Iterator[tuple[str, os.stat_result, bytes]]:
    """Read the files of a conversation: yield the name, the status and the content of each, add its path and hash."""
    for entry in os.scandir(f"{side}/{name}"):
        fd = os.open(entry.path, os.O_RDONLY)
        status = os.fstat(fd)
        content = os.read(fd, status.st_size + 1)
        os.close(fd)
        rows[0].append(f"{name}/{entry.name}")
        rows[2].append(xxh3_128_digest(content))
        yield entry.name, status, content


def _read(side: str, name: str, rows: Rows, *, decoded: bool) -> None:
    """Read a copy of a conversation; an equal one needs no decoding."""
    for _, status, content in _files(side, name, rows):
        if decoded:
            msgspec.json.decode(content)
        rows[1].extend(_numbers(status))


def _write(source: str, target: str, name: str, rows: Rows) -> None:
    """Write a conversation under another name, and rename it."""
    staged = f"{target}/.{name}"
    os.mkdir(staged)
    for file_name, status, content in _files(source, name, rows):
        msgspec.json.decode(content)
        fd = os.open(f"{staged}/{file_name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(fd, content)
        os.utime(fd, ns=(status.st_mtime_ns, status.st_mtime_ns))
        rows[1].extend(_numbers(os.fstat(fd)))
        os.close(fd)
    os.rename(staged, f"{target}/{name}")


def _keep(state: str, halves: tuple[Rows, Rows]) -> None:
    """Keep a status of each file, and a row of each conversation."""
    hashes: dict[str, bytes] = defaultdict(bytes)
    for paths, _, digests in halves:
        for path, digest in zip(paths, digests, strict=True):
            hashes[path.partition("/")[0]] += digest
    with _database(state) as database:
        hashed = ((name, xxh3_128_digest(digests)) for name, digests in hashes.items())
        database.executemany("INSERT OR REPLACE INTO conversations VALUES (?, ?)", hashed)
    parts = (("\0".join(paths), array("q", numbers).tobytes(), b"".join(last)) for paths, numbers, last in halves)
    _save(os.path.join(state, "known"), *parts)


def _database(state: str) -> sqlite3.Connection:
    """Return a connection whose block is one transaction, which is on the disk at its end."""
    os.makedirs(state, exist_ok=True)
    database = sqlite3.connect(os.path.join(state, "state.sqlite"))
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(_TABLE)
    return database


def _save(path: str, *values: Any) -> None:
    with open(path + ".new", "wb") as file:
        marshal.dump(values, file)
    os.replace(path + ".new", path)


def _loaded(path: str) -> Any:
    with open(path, "rb") as file:
        return marshal.load(file)  # noqa: S302 -- our own


def _paths(side: str) -> Iterator[str]:
    for name in os.listdir(side):
        yield name
        yield from (f"{name}/{each}" for each in os.listdir(f"{side}/{name}"))


def _statuses(side: str, paths: Sequence[str]) -> bytes:
    """Return the numbers of each path's status, which is looked at from an open directory."""
    root, stat = os.open(side, os.O_RDONLY), os.stat
    numbers: list[int] = []
    for path in map(os.fsencode, paths):
        status = stat(path, dir_fd=root)
        numbers += (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    os.close(root)
    return array("q", numbers).tobytes()


def _numbers(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    content = os.read(fd, os.fstat(fd).st_size + 1)
    os.close(fd)
    return content


def _flush_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _flush_file_system(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    flush = getattr(ctypes.CDLL(None), "syncfs", None)
    if flush is None:
        os.sync()
    elif flush(fd):
        raise SystemExit(f"{path}: the flush failed")
    os.close(fd)


if __name__ == "__main__":
    {"first": first, "projection": projection, "change": change}[sys.argv[1]](*sys.argv[2:])

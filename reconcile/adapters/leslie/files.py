"""Reads a ``.leslie`` as one value. Nothing is written, no symbolic link is followed, and no lock is taken.

Leslie's own readers take no lock either: each file is read as it was at one moment.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconcile.adapters.locate import place_of
from reconcile.errors import ReconcileError
from reconcile.formats.leslie.checks.model import File, Leftover, LeslieTree, Lock, ThreadDirectory
from reconcile.formats.leslie.document import (
    BACKUP,
    CONTROL,
    DIRECTORY,
    RELATIONS,
    THREADS,
    Document,
    read_relations,
)
from reconcile.fs.files import Directory, error_text, kind_of, read_files
from reconcile.fs.paths import is_absence
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK = ".lock"
RUNTIME, EVENTS = "runtime", "events.ndjson"
_LEFTOVER = re.compile(r"(?P<target>thread_relations\.json|objectives\.json)\.tmp-[0-9]+-[0-9a-f-]{36}")
_SECOND = 10**9


class LeslieError(ReconcileError):
    """There is no readable ``.leslie``. The message states what was found, what was expected, and what to do next."""

    exit_code = 2


def project_at(start: str) -> str:
    """Return the nearest directory, from ``start`` upwards, that has a ``.leslie`` with a control file.

    Raises `LeslieError`.
    """
    project = place_of("leslie", os.path.abspath(start))
    if project is None:
        raise LeslieError(
            f"no {DIRECTORY}/{RELATIONS} in {os.path.abspath(start)} or above it",
            "change to the project, or name it with --workspace",
        )
    return project


def read_leslie(project: str, now_ns: int) -> LeslieTree:
    """Return the ``.leslie`` of the project at this path, as the checks need it.

    Raises `LeslieError`, or `OSError`.
    """
    place = os.path.join(project, DIRECTORY)
    with Directory.open_root(os.path.join(project, "")) as root:
        try:
            leslie = root.below(DIRECTORY)
        except OSError as error:
            if os.path.islink(place):
                raise LeslieError(f"{place}: a symbolic link", "put the directory itself there") from None
            raise LeslieError(f"{place}: can't be read ({error_text(error)})", "make the directory readable") from None
        with leslie:
            names = sorted(entry.name for entry in leslie.entries())
            files = {name: _file(leslie, name) for name in _control(names)}
            return LeslieTree(
                files=files,
                threads=_threads(leslie) if THREADS in names else {},
                blocked=_blocked(leslie) if THREADS in names else "",
                locks=dict(_locks(leslie, names, now_ns)),
                leftovers=dict(_temporary_files(leslie, names, now_ns)),
                storage=frozenset(_storage(root, files)),
                now=_written(now_ns),
                run_age=_ran(leslie, now_ns),
            )


_LOCKS = tuple(name + LOCK for name in CONTROL)


def _control(names: list[str]) -> list[str]:
    return [path for name in CONTROL for path in (name, name + BACKUP) if path in names]


def _file(directory: Directory, name: str) -> File:
    contents = read_files(directory, (name,))
    if isinstance(contents, Fault):
        return File(None, contents.found)
    return File(contents[name][0])


def _locks(directory: Directory, names: list[str], now_ns: int) -> Iterator[tuple[str, Lock]]:
    for name in names:
        if name not in _LOCKS:
            continue
        with suppress(FileNotFoundError):  # released meanwhile
            status = directory.stat(name)
            what, age = kind_of(status.st_mode), (now_ns - status.st_mtime_ns) / _SECOND
            held: tuple[str, ...] = ()
            if stat.S_ISDIR(status.st_mode):
                with directory.below(name) as lock:
                    held = tuple(sorted(entry.name for entry in lock.entries()))
            yield name, Lock(what, age, held)


def _temporary_files(directory: Directory, names: list[str], now_ns: int) -> Iterator[tuple[str, Leftover]]:
    for name in names:
        if match := _LEFTOVER.fullmatch(name):
            with suppress(FileNotFoundError):  # renamed meanwhile
                mtime_ns = directory.stat(name).st_mtime_ns
                age = (now_ns - mtime_ns) / _SECOND
                yield name, Leftover(match["target"], age, _file(directory, name), mtime_ns)


def _blocked(leslie: Directory) -> str:
    what = kind_of(leslie.stat(THREADS).st_mode)
    return "" if what == "a directory" else what


def _threads(leslie: Directory) -> dict[str, ThreadDirectory]:
    """Return every entry below ``threads/`` with the names in it. Raises `OSError` if they are unknown."""
    directories: dict[str, ThreadDirectory] = {}
    try:
        threads = leslie.below(THREADS)
    except OSError as error:
        if not is_absence(error):
            raise
        return directories  # a link or a file: it has no directories of threads
    with threads:
        for name in sorted(entry.name for entry in threads.entries()):
            what = kind_of(threads.stat(name).st_mode)
            directories[name] = _below(threads, name) if what == "a directory" else ThreadDirectory(what)
    return directories


def _below(threads: Directory, thread: str) -> ThreadDirectory:
    """Return the names of all files and directories of a thread."""
    files: set[str] = set()
    directories: set[str] = set()
    todo = [""]
    while todo:
        above = todo.pop()
        try:
            opened = threads.below(f"{thread}/{above}" if above else thread)
        except OSError as error:
            if not is_absence(error):
                raise
            continue  # removed meanwhile
        with opened:
            for entry in opened.entries():
                path = f"{above}/{entry.name}" if above else entry.name
                if entry.is_dir(follow_symlinks=False):
                    directories.add(path)
                    todo.append(path)
                else:
                    files.add(path)
    return ThreadDirectory(files=frozenset(files), directories=frozenset(directories))


def _storage(root: Directory, files: dict[str, File]) -> Iterator[str]:
    """Yield the existing directories inside the project that records name."""
    content = files.get(RELATIONS, File()).content
    document = None if content is None else read_relations(content)
    for record in document.threads.values() if isinstance(document, Document) else ():
        path = str(record.get("storage_path")).removesuffix("/")
        if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
            continue
        try:
            root.below(path).close()
        except ValueError:
            continue
        except OSError as error:
            if not is_absence(error):
                raise
            continue
        yield path


def _ran(leslie: Directory, now_ns: int) -> float | None:
    """Return the seconds since the last event of a run; None if there is no run."""
    ages = []
    with suppress(FileNotFoundError, NotADirectoryError), leslie.below(RUNTIME) as runs:
        for run in [entry.name for entry in runs.entries()]:
            with suppress(FileNotFoundError, NotADirectoryError):
                ages.append((now_ns - runs.stat(f"{run}/{EVENTS}").st_mtime_ns) / _SECOND)
    return min(ages, default=None)


def _written(now_ns: int) -> str:
    moment = datetime.fromtimestamp(now_ns // _SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ns // 1_000_000 % 1000:03}Z"

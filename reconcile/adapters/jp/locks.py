"""JP's cross-process conversation locks, by its protocol (docs/design/formats/jp.md#lock-files).

JP trusts whoever has flocked the file of that name, closes and then unlinks it on release, and at the end
of each run unlinks every lock file that it found free a moment earlier. So a name can vanish from under a
holder, and another process then locks a new file of the same name. Therefore the inode is compared with the
name after locking and again before each commit, and a second hard link keeps the inode alive, so that a name
that was swept away can be put back.

A pulled repository brings its ``.jp/locks`` along. So the root may be a symbolic link, which somebody here has made;
``locks`` itself and the files in it are never followed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, Self

from msgspec import Struct

from reconcile.fs.dirfd import kind_of
from reconcile.fs.locks import try_lock
from reconcile.fs.posix import (
    MOST_PID,
    O_CLOEXEC,
    O_NOFOLLOW,
    process_lives,
    raise_descriptor_limit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

ATTEMPTS = 20
"""So often a name may change its file between opening and comparing before we give up."""
_CONTENT_BYTES = 4096
_FLAGS, _MODE = os.O_RDWR | os.O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o666
"""The mode less the umask is what JP makes."""
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | O_NOFOLLOW | O_CLOEXEC
_LINK_PREFIX, _LINK_SUFFIX = ".reconcile-", ".held"


class LockRoots(Struct, frozen=True):
    """Where lock files lie: ``locks/`` in the silo and in ``.jp``. Either may be missing."""

    user: str | None
    workspace: str | None

    def path(self, name: str) -> str | None:
        """The file that everybody locks now, by JP's rule; evaluated anew on every attempt.

        The user root's if it exists, else the workspace root's if it exists, else a new one in the user root.
        """
        roots = [f"{root}/locks/{name}" for root in (self.user, self.workspace) if root is not None]
        return next((path for path in roots if os.path.exists(path)), roots[0] if roots else None)

    def leads_to(self, path: str, name: str) -> bool:
        """Tell whether a path that is there is the one that everybody locks now."""
        return path == self._first(name) or self.path(name) == path

    def _first(self, name: str) -> str | None:
        """The file that goes before all others where it exists."""
        root = self.user if self.user is not None else self.workspace
        return None if root is None else f"{root}/locks/{name}"


class Busy(Struct, frozen=True):
    """A lock that was not had. ``pid`` is the holder's by its own account; ``detail`` says what happened.

    ``impossible``: nobody holds it, as far as is known, but its file can't be made or opened.
    """

    name: str
    pid: int | None
    detail: str
    impossible: bool = False


class Lease(Protocol):
    """A lock that is held until it is released."""

    @property
    def name(self) -> str:
        """The name that everybody locks."""

    def still_held(self) -> bool:
        """Tell whether it is, for a process that came now; to be asked directly before every commit."""

    def release(self) -> None:
        """Let go; more than once does nothing."""


class Locks(Protocol):
    """Where the executor takes the locks of the conversations that it changes."""

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Try each lock once, without waiting, in the order given, which must be ascending by id."""


class HeldLock:
    """One lock that this process holds until `release`."""

    __slots__ = ("_fd", "_inode", "_link", "_path", "_roots", "name")

    def __init__(self, name: str, roots: LockRoots, path: str, fd: int) -> None:
        self.name = name
        self._roots, self._path, self._fd = roots, path, fd
        self._inode: tuple[int, int] | None = None
        self._link: str | None = None

    @classmethod
    def take(cls, name: str, roots: LockRoots, session: str | None = None) -> HeldLock | Busy:
        """Try once; again only where the name got another file meanwhile. Any failure is busy, as in JP.

        ``session`` is what others are told of who holds it, besides the process.
        """
        for _ in range(ATTEMPTS):
            path = roots.path(name)
            if path is None:
                return Busy(name, None, "there is neither a store nor a workspace to lock in", impossible=True)
            try:
                directory, fd = _open(path)
            except OSError as error:
                return Busy(name, None, _in_the_way(path) or f"{path}: {error.strerror}", impossible=True)
            lock, taken = cls(name, roots, path, fd), False
            try:
                if not try_lock(fd):
                    pid = _holder(fd)
                    return Busy(name, pid, f"{path}: held by {f'process {pid}' if pid else 'another process'}")
                taken = lock._settle(directory, session)
            except OSError as error:
                return Busy(name, None, f"{path}: {error.strerror}")
            finally:
                os.close(directory)
                if not taken:
                    os.close(fd)
            if taken:
                return lock
        return Busy(name, None, f"{name}: the file kept changing under its name")

    def still_held(self) -> bool:
        """Whether a process that came now would find our lock; to be asked directly before every commit.

        A name that JP's sweep took away is put back. False: another file has the name, or the path rule now
        leads elsewhere, so others may hold "the lock" too and nothing may be written any more. What happened
        while the name was gone can't be told from here; the caller's fingerprints tell.
        """
        if self._fd < 0:
            return False
        there = _inode_at(self._path)
        if there is None and self._link is not None:
            # FileExistsError: somebody was faster, and the comparison below says so.
            with contextlib.suppress(OSError), _directory_of(self._path) as directory:
                name = os.path.basename(self._path)
                os.link(self._link, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
            there = _inode_at(self._path)
        return there == self._inode and self._roots.leads_to(self._path, self.name)

    def release(self) -> None:
        """Let go, once; the lock file stays, JP's sweep removes it.

        Its content stays too, as after a crash of JP: it is diagnostic, and whoever locks it next writes his own.
        """
        if self._fd < 0:
            return
        if self._link is not None:
            with contextlib.suppress(OSError), _directory_of(self._path) as directory:
                os.unlink(self._link, dir_fd=directory)
        # Forgotten first: who is interrupted in between must not close what has that number by then.
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _settle(self, directory: int, session: str | None) -> bool:
        """After flock: whether the name still is ours; if so, say who holds it and make the second link."""
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"found {kind_of(status.st_mode)}, expected a file")
        self._inode = (status.st_dev, status.st_ino)
        if _inode_at(self._path) != self._inode or not self._roots.leads_to(self._path, self.name):
            return False
        # A file system without hard links leaves us with noticing.
        with contextlib.suppress(OSError):
            if not self._has_second_link(directory):
                return False
        # Diagnostic, and best effort as in JP.
        with contextlib.suppress(OSError):
            content = _content(session)
            os.write(self._fd, content)
            # After writing, and only where something is left: a file system makes haste to flush what was emptied.
            if status.st_size > len(content):
                os.ftruncate(self._fd, len(content))
        return True

    def _has_second_link(self, directory: int) -> bool:
        """Give the file a second name; False where the first one is another file's by now. Raises `OSError`."""
        name = os.path.basename(self._path)
        stem = name.removesuffix(".lock")  # JP looks at every name that ends in .lock
        link = f"{_LINK_PREFIX}{os.getpid()}-{stem}{_LINK_SUFFIX}"
        try:
            os.link(name, link, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except FileExistsError:  # a dead process's that had our number
            os.unlink(link, dir_fd=directory)
            os.link(name, link, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        status = os.stat(link, dir_fd=directory, follow_symlinks=False)
        if (status.st_dev, status.st_ino) != self._inode:
            os.unlink(link, dir_fd=directory)
            return False
        self._link = link
        return True


class Acquired:
    """What one `LockSet.acquire` got; leaving the block releases it, the last first."""

    __slots__ = ("busy", "held")

    def __init__(self, held: tuple[Lease, ...] = (), busy: tuple[Busy, ...] = ()) -> None:
        self.held = held
        self.busy = busy

    def lost(self) -> tuple[str, ...]:
        """Names of locks that are no longer held (`HeldLock.still_held`); empty: go ahead."""
        return tuple(lock.name for lock in self.held if not lock.still_held())

    def release(self) -> None:
        """Release every lock; more than once does nothing."""
        for lock in reversed(self.held):
            lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class LockSet:
    """Takes JP's locks of the conversations of one store and one workspace.

    What killed processes have left among them is looked for once: there is a lock for every conversation that JP has
    ever opened.
    """

    __slots__ = ("_looked", "_roots")

    def __init__(self, roots: LockRoots) -> None:
        self._roots = roots
        self._looked = False

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Try each lock once, without waiting, in the order given, which must be ascending by id.

        Never raises for a lock that can't be had, for whatever reason: as in JP, any failure means busy.
        """
        names = list(dict.fromkeys(names))
        raise_descriptor_limit(len(names))
        held: list[HeldLock] = []
        busy: list[Busy] = []
        try:
            for name in names:
                got = self.take(name)
                if isinstance(got, HeldLock):
                    held.append(got)
                else:
                    busy.append(got)
        except BaseException:
            Acquired(tuple(held)).release()
            raise
        return Acquired(tuple(held), tuple(busy))

    def take(self, name: str, session: str | None = None) -> HeldLock | Busy:
        """Try one lock once; ``session`` is what others are told of who holds it."""
        if not self._looked:
            self._remove_links_of_the_dead()
            self._looked = True
        return HeldLock.take(name, self._roots, session)

    def _remove_links_of_the_dead(self) -> None:
        """Killed processes leave their second links; a living one's may be all that it has."""
        for root in (self._roots.user, self._roots.workspace):
            if root is None:
                continue
            with contextlib.suppress(OSError), _directory_of(f"{root}/locks/") as directory:
                for name in os.listdir(directory):
                    pid = name.removeprefix(_LINK_PREFIX).partition("-")[0]
                    ours = name.startswith(_LINK_PREFIX) and name.endswith(_LINK_SUFFIX) and pid.isdecimal()
                    if ours and not process_lives(int(pid)):
                        os.unlink(name, dir_fd=directory)


class LentLocks(Struct, frozen=True):
    """Locks of which the caller holds one already: that is lent, all others are taken as usual."""

    held: Lease
    others: Locks

    def acquire(self, names: Sequence[str]) -> Acquired:
        """As the others do; what is lent stays held in the end."""
        got = self.others.acquire([name for name in names if name != self.held.name])
        return Acquired((*got.held, _Lent(self.held)), got.busy) if self.held.name in names else got


class _Lent(Struct, frozen=True):
    """A lock that somebody else will release."""

    lock: Lease

    @property
    def name(self) -> str:
        return self.lock.name

    def still_held(self) -> bool:
        return self.lock.still_held()

    def release(self) -> None:
        pass


class NullLockSet:
    """For formats whose programs take no locks."""

    __slots__ = ()

    def acquire(self, names: Iterable[str]) -> Acquired:  # noqa: ARG002 - the same call as `LockSet`'s
        """Nothing is held and nothing is busy."""
        return Acquired()


def _open(path: str) -> tuple[int, int]:
    """Open the directory and the file as JP does, and make ``locks/``, but never the root: a silo that is gone stays
    gone.
    """
    above, name = os.path.split(path)
    try:
        directory = os.open(above, _DIRECTORY)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(above)
        directory = os.open(above, _DIRECTORY)
    try:
        return directory, os.open(name, _FLAGS, _MODE, dir_fd=directory)
    except BaseException:
        os.close(directory)
        raise


@contextlib.contextmanager
def _directory_of(path: str) -> Iterator[int]:
    """Open the directory that a lock file is in, unless it is a symbolic link."""
    directory = os.open(os.path.dirname(path), _DIRECTORY)
    try:
        yield directory
    finally:
        os.close(directory)


def _in_the_way(path: str) -> str | None:
    """Say which part of a lock file's path is a symbolic link; None where none is."""
    for each, expected in ((os.path.dirname(path), "a directory"), (path, "a file")):
        if os.path.islink(each):
            return f"{each}: found a symbolic link, expected {expected}; it is never followed: put {expected} there"
    return None


def _inode_at(path: str) -> tuple[int, int] | None:
    """Device and inode of what has this name, of a symbolic link itself; None where nothing has."""
    try:
        there = os.lstat(path)
    except OSError:
        return None
    return there.st_dev, there.st_ino


def _content(session: str | None) -> bytes:
    now = time.time_ns()
    said = {} if session is None else {"session": session}
    content = {"pid": os.getpid(), **said, "acquired_at": f"{_second(now // 10**9)}.{now % 10**9:09d}+00:00"}
    return json.dumps(content, separators=(",", ":")).encode()


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _holder(fd: int) -> int | None:
    """The process number in a lock file that somebody else holds, None where it has none yet."""
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        pid = json.loads(os.read(fd, _CONTENT_BYTES))["pid"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return pid if type(pid) is int and 0 < pid <= MOST_PID else None

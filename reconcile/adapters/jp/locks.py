"""Conversations that JP has in use: its cross-process locks, and the sessions that a terminal has open.

Locks follow JP's protocol (docs/design/formats/jp.md#lock-files), sessions are only read
(docs/design/formats/jp.md#sessions).

JP trusts the process that has flocked the file of that name, and closes and then unlinks it on release. At the end of
each run it unlinks every lock file that was free a moment earlier. So a name can vanish while the lock is held, and
another process then locks a new file of the same name. Therefore the inode is compared with the name after locking and
again before each commit. A second hard link keeps the inode alive, so that a removed name can be restored.

A pulled repository can contain ``.jp/locks``. The root may be a symbolic link, because the user has created it;
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

from reconcile.errors import ReconcileError
from reconcile.fs.files import error_text, kind_of
from reconcile.fs.locks import try_lock, unlock
from reconcile.fs.paths import open_regular, status_at
from reconcile.fs.posix import MOST_PID, O_CLOEXEC, O_NOFOLLOW, process_lives, raise_descriptor_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from types import TracebackType

ATTEMPTS = 20
"""How often a name may get another file between opening and comparing before we give up."""
_CONTENT_BYTES = 4096
_FLAGS, _MODE = os.O_RDWR | os.O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o666
"""With the umask applied this is the mode of JP's own files."""
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | O_NOFOLLOW | O_CLOEXEC
_LINK_PREFIX, _LINK_SUFFIX = ".reconcile-", ".held"


class LockRoots(Struct, frozen=True):
    """The directories that contain ``locks/``: the silo and ``.jp``. Either may be missing."""

    user: str | None
    workspace: str | None

    def path(self, name: str) -> str | None:
        """Return the file that every process locks now, by the rule of JP; evaluated again on every attempt.

        It is that of the user root if it exists, else that of the workspace root if it exists, else a new one in the
        user root.
        """
        roots = [f"{root}/locks/{name}" for root in (self.user, self.workspace) if root is not None]
        return next((path for path in roots if os.path.exists(path)), roots[0] if roots else None)

    def leads_to(self, path: str, name: str) -> bool:
        """Tell whether an existing path is the file that every process locks now."""
        return path == self._first(name) or self.path(name) == path

    def _first(self, name: str) -> str | None:
        """Return the file that takes precedence over all others if it exists."""
        root = self.user if self.user is not None else self.workspace
        return None if root is None else f"{root}/locks/{name}"


class Busy(Struct, frozen=True):
    """A lock that was not acquired. ``pid`` is the holder as recorded in the file; ``detail`` is the reason.

    ``impossible``: no holder is known, but the file can't be created or opened. ``errno``: the system's error.
    """

    name: str
    pid: int | None
    detail: str
    impossible: bool = False
    errno: int | None = None


class Lease(Protocol):
    """A lock that is held until it is released."""

    @property
    def name(self) -> str:
        """The name that every process locks."""

    def still_held(self) -> bool:
        """Tell whether a new process would find our lock; call it directly before every commit."""

    def release(self) -> None:
        """Release the lock; further calls do nothing."""


class Locks(Protocol):
    """A source of locks for the executor, which acquires those of the conversations that it changes."""

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Try each lock once, without waiting, in the order given, which must be ascending by id."""


class _Directory:
    """An open ``locks/``, which several locks share; the last user closes it."""

    __slots__ = ("_users", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._users = 1

    def join(self) -> _Directory:
        self._users += 1
        return self

    def leave(self) -> None:
        self._users -= 1
        if not self._users:
            os.close(self.fd)


class SharedDirectories:
    """The directories of lock files by path, each opened once while several locks are acquired."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, _Directory] = {}

    def __contains__(self, path: str) -> bool:
        """Tell whether a directory is open."""
        return path in self._open

    def join(self, path: str) -> _Directory:
        """Return a directory for one more user. Raises `OSError`."""
        directory = self._open.get(path)
        if directory is None:
            directory = self._open[path] = _Directory(_open_directory(path))
        return directory.join()

    def close(self) -> None:
        """Open them again for the next lock: another directory may have the name by now."""
        while self._open:
            self._open.popitem()[1].leave()


class HeldLock:
    """One lock that this process holds until `release`."""

    __slots__ = ("_directory", "_fd", "_inode", "_link", "_owner", "_path", "_roots", "name")

    def __init__(self, name: str, roots: LockRoots, path: str, fd: int, directory: _Directory) -> None:
        self.name = name
        self._roots, self._path, self._fd, self._owner = roots, path, fd, os.getpid()
        self._directory: _Directory | None = directory
        self._inode: tuple[int, int] | None = None
        self._link: str | None = None

    @classmethod
    def take(
        cls, name: str, roots: LockRoots, session: str | None = None, shared: SharedDirectories | None = None
    ) -> HeldLock | Busy:
        """Try once; try again only if the name got another file meanwhile. Any failure counts as busy, as in JP.

        ``session`` is written into the file, besides the process number, for other processes. ``shared``: the
        directories that earlier locks have opened; the name shows whether the file is still the one in them.
        """
        if shared is not None:
            return cls._take(name, roots, session, shared, is_alone=False)
        alone = SharedDirectories()
        try:
            return cls._take(name, roots, session, alone, is_alone=True)
        finally:
            alone.close()

    @classmethod
    def _take(
        cls, name: str, roots: LockRoots, session: str | None, shared: SharedDirectories, *, is_alone: bool
    ) -> HeldLock | Busy:
        for _ in range(ATTEMPTS):
            path = roots.path(name)
            if path is None:
                return Busy(name, None, "no lock is possible without a store or a workspace", impossible=True)
            try:
                directory, fd = _open(path, shared)
            except OSError as error:
                words = _link_in_path(path) or f"{path}: {error.strerror}"
                return Busy(name, None, words, impossible=True, errno=error.errno)
            lock, taken = cls(name, roots, path, fd, directory), False
            try:
                if not try_lock(fd):
                    pid = _holder(fd)
                    return Busy(name, pid, f"{path}: locked by {f'process {pid}' if pid else 'another process'}")
                taken = lock._settle(session)
            except OSError as error:
                return Busy(name, None, f"{path}: {error.strerror}", errno=error.errno)
            finally:
                if not taken:
                    lock.release()
                    shared.close()
            if taken:
                if is_alone:  # a program may hold many single locks for long: each has one descriptor
                    lock._leave_directory()
                return lock
        return Busy(name, None, f"{name}: other processes replaced the lock file again and again")

    def still_held(self) -> bool:
        """Tell whether a new process would find our lock; call it directly before every commit.

        A name that JP's sweep has removed is restored. False: another file has the name, or the path rule now selects
        another file. Other processes may then hold the lock too, and nothing may be written any more. Changes that were
        made while the name was missing are unknown here; the caller's fingerprints show them.
        """
        if self._fd < 0:
            return False
        inode = _inode_at(self._path)
        if inode is None and self._link is not None:
            # FileExistsError: another process was faster, and the comparison below shows it.
            with contextlib.suppress(OSError), _directory_of(self._path) as directory:
                name = os.path.basename(self._path)
                os.link(self._link, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
            inode = _inode_at(self._path)
        return inode == self._inode and self._roots.leads_to(self._path, self.name)

    def release(self) -> None:
        """Release the lock, once; the lock file stays, and JP's sweep removes it.

        Its content stays too, as after a crash of JP: it is diagnostic, and the next holder overwrites it.
        """
        if self._fd < 0:
            return
        self._remove_link()
        # Cleared first: after an interruption in between, a second call must not close another file of that number.
        fd, self._fd = self._fd, -1
        try:
            if os.getpid() == self._owner:  # a forked copy of this process shares the lock, and may go on for long
                unlock(fd)
        finally:
            os.close(fd)
        self._leave_directory()

    def _leave_directory(self) -> None:
        directory, self._directory = self._directory, None
        if directory is not None:
            directory.leave()

    def _remove_link(self) -> None:
        """Remove the second name, if there is one; an error that does not last is tried once more."""
        for _ in range(2):
            if self._link is None:
                return
            with contextlib.suppress(OSError):
                if self._directory is not None:
                    _unlink(self._link, self._directory.fd)
                else:
                    with _directory_of(self._path) as directory:
                        _unlink(self._link, directory)
                self._link = None

    def _settle(self, session: str | None) -> bool:
        """After flock, check that the name is still ours; if so, write who holds it and create the second link."""
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"{kind_of(status.st_mode)} is in the place of the lock file")
        self._inode = (status.st_dev, status.st_ino)
        if _inode_at(self._path) != self._inode or not self._roots.leads_to(self._path, self.name):
            return False
        try:
            if not self._has_second_link():
                return False
        except OSError:
            pass  # without hard links a removed name can only be detected
        try:
            content = _content(self._owner, session)
            os.write(self._fd, content)
            # After writing, and only if needed: file systems flush a file early that was truncated to nothing.
            if status.st_size > len(content):
                os.ftruncate(self._fd, len(content))
        except OSError:
            pass  # diagnostic, and best effort as in JP
        return True

    def _has_second_link(self) -> bool:
        """Give the file a second name; False if the first one belongs to another file by now. Raises `OSError`."""
        assert self._directory is not None  # noqa: S101 - it is open until the lock is taken
        name, directory = self._path.rpartition("/")[2], self._directory.fd
        stem = name.removesuffix(".lock")  # JP looks at every name that ends in .lock
        link = f"{_LINK_PREFIX}{self._owner}-{stem}{_LINK_SUFFIX}"
        try:
            os.link(name, link, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except FileExistsError:  # left by a dead process with our number
            os.unlink(link, dir_fd=directory)
            os.link(name, link, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        self._link = link  # from now on it is removed with the lock, whatever fails below
        status = os.stat(link, dir_fd=directory, follow_symlinks=False)
        if (status.st_dev, status.st_ino) != self._inode:
            self._remove_link()
            return False
        return True


class Acquired:
    """The result of `LockSet.acquire`; leaving the block releases it, the last first."""

    __slots__ = ("busy", "held")

    def __init__(self, held: tuple[Lease, ...] = (), busy: tuple[Busy, ...] = ()) -> None:
        self.held = held
        self.busy = busy

    def lost(self) -> tuple[str, ...]:
        """Return the names of locks that are no longer held (`HeldLock.still_held`); empty if all are held."""
        return tuple(lock.name for lock in self.held if not lock.still_held())

    @property
    def are_lent(self) -> bool:
        """Whether the caller of `LentLocks` holds all of them, also after the release."""
        return bool(self.held) and all(isinstance(lock, _Lent) for lock in self.held)

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
    """Acquires JP's locks of the conversations of one store and one workspace.

    Links of killed processes are removed once, not each time: there is a lock for every conversation that JP has ever
    opened.
    """

    __slots__ = ("_roots", "_swept")

    def __init__(self, roots: LockRoots) -> None:
        self._roots = roots
        self._swept = False

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Try each lock once, without waiting, in the order given, which must be ascending by id.

        It never raises for a lock that can't be acquired: as in JP, any failure means busy.
        """
        names = list(dict.fromkeys(names))
        raise_descriptor_limit(len(names))
        held: list[HeldLock] = []
        busy: list[Busy] = []
        shared = SharedDirectories()
        try:
            for name in names:
                lock = self.take(name, shared=shared)
                if isinstance(lock, HeldLock):
                    held.append(lock)
                else:
                    busy.append(lock)
        except BaseException:
            Acquired(tuple(held)).release()
            raise
        finally:
            shared.close()
        return Acquired(tuple(held), tuple(busy))

    def take(
        self, name: str, session: str | None = None, *, shared: SharedDirectories | None = None
    ) -> HeldLock | Busy:
        """Try one lock once; ``session`` is written into the file for other processes."""
        if not self._swept:
            self._remove_stale_links()
            self._swept = True
        return HeldLock.take(name, self._roots, session, shared)

    def _remove_stale_links(self) -> None:
        """Remove the second links of killed processes; that of a living process may be its only name."""
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
    """Locks of which the caller already holds one: that one is lent, all others are acquired as usual."""

    held: Lease
    others: Locks

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Acquire the others; the lent lock stays held when the result is released."""
        acquired = self.others.acquire([name for name in names if name != self.held.name])
        return Acquired((*acquired.held, _Lent(self.held)), acquired.busy) if self.held.name in names else acquired


class _Lent(Struct, frozen=True):
    """A lock that the lender releases."""

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
        """Return no held and no busy locks."""
        return Acquired()


def _open(path: str, shared: SharedDirectories) -> tuple[_Directory, int]:
    """Open the directory and the file as JP does, and create ``locks/`` if needed.

    The root is never created: a removed silo stays removed.
    """
    above, _, name = path.rpartition("/")
    was_open = above in shared
    directory = shared.join(above)
    try:
        return directory, os.open(name, _FLAGS, _MODE, dir_fd=directory.fd)
    except BaseException as error:
        directory.leave()
        shared.close()
        if was_open and isinstance(error, OSError):  # it may have been removed since
            return _open(path, shared)
        raise


def _unlink(name: str, directory: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)


def _open_directory(path: str) -> int:
    try:
        return os.open(path, _DIRECTORY)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        return os.open(path, _DIRECTORY)


@contextlib.contextmanager
def _directory_of(path: str) -> Iterator[int]:
    """Open the directory of a lock file, unless it is a symbolic link."""
    directory = os.open(os.path.dirname(path), _DIRECTORY)
    try:
        yield directory
    finally:
        os.close(directory)


def _link_in_path(path: str) -> str | None:
    """Return which part of a lock file's path is a symbolic link, in words; None if there is none."""
    for part, expected in ((os.path.dirname(path), "a directory"), (path, "a file")):
        if os.path.islink(part):
            return f"{part}: a symbolic link, which is never followed; put {expected} there"
    return None


def _inode_at(path: str) -> tuple[int, int] | None:
    """Return device and inode of the entry with this name, also of a symbolic link; None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _content(pid: int, session: str | None) -> bytes:
    now = time.time_ns()
    member = "" if session is None else f'"session":{json.dumps(session)},'
    return f'{{"pid":{pid},{member}"acquired_at":"{_second(now // 10**9)}.{now % 10**9:09d}+00:00"}}'.encode()


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _holder(fd: int) -> int | None:
    """Return the process number in a lock file that another process holds, None if it has none yet."""
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        pid = json.loads(os.read(fd, _CONTENT_BYTES))["pid"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return pid if type(pid) is int and 0 < pid <= MOST_PID else None


PROC_LOCKS = "/proc/locks"
_SESSIONS = "sessions"
_SESSION_BYTES = 1 << 20
"""The number of bytes of a session file that are read; those of JP have a few hundred."""


def held_locks(roots: Iterable[str]) -> dict[str, int]:
    """Return the names of held lock files below the given roots, with the process number of the holder.

    No lock is probed: a probe would make JP believe that the lock is held. The result is empty on a system that does
    not report locks; only Linux does.
    """
    try:
        with open(PROC_LOCKS, encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    holders = {}
    for fields in lines:
        # "1: FLOCK ADVISORY WRITE 4711 fd:00:1234 0 EOF"; waiting ones have "->" after the number.
        if len(fields) >= 6 and fields[1] == "FLOCK":
            major, minor, inode = fields[5].split(":")
            holders[os.makedev(int(major, 16), int(minor, 16)), int(inode)] = int(fields[4])
    held: dict[str, int] = {}
    for root in roots:
        held |= _held_in(os.path.join(root, "locks"), holders)
    return held


def _held_in(directory: str, holders: dict[tuple[int, int], int]) -> dict[str, int]:
    held: dict[str, int] = {}
    if os.path.islink(directory):  # a pulled repository can contain one
        return held
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                status = status_at(entry.path, follow=False)
                if status is None:  # removed meanwhile
                    continue
                pid = holders.get((status.st_dev, status.st_ino))
                if entry.name.endswith(".lock") and pid is not None:
                    held[entry.name] = pid
    except OSError:
        return held
    return held


class SessionsError(ReconcileError):
    """The sessions of JP can't be read."""

    def __init__(self, path: str, error: OSError) -> None:
        words = f"{path}: can't be read ({error_text(error)}), so any conversation may be open in a terminal"
        super().__init__(words, "make it readable, then run again")


def active_conversations(silo: str, known: Collection[str], parse: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the conversation that each session has open: the first of its history that still exists.

    ``known`` are the existing conversations, ``parse`` reads an id. Other files are ignored.

    Raises:
        SessionsError: a session can't be read, so that any conversation may be open.
    """
    directory = os.path.join(silo, _SESSIONS)
    try:
        names = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise SessionsError(directory, error) from None
    active = (_active(os.path.join(directory, name), known, parse) for name in names if name.endswith(".json"))
    return tuple(dict.fromkeys(conversation for conversation in active if conversation is not None))


def _active(path: str, known: Collection[str], parse: Callable[[str], str | None]) -> str | None:
    try:
        with open_regular(path) as file:
            content = json.loads(file.read(_SESSION_BYTES))
        history = [parse(str(entry["id"])) for entry in content["history"]]
    except FileNotFoundError:
        return None  # closed meanwhile
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None  # a directory or a pipe
        raise SessionsError(path, error) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return next((conversation for conversation in history if conversation in known), None)

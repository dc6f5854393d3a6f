"""Directories below a root, opened by descriptor: no symbolic link is followed and no path is too long.

Only this module knows whether the platform can open files relative to a descriptor. On Windows, which can't, it uses
paths instead.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

_BY_DESCRIPTOR = {os.open, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd

_BASE = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = _BASE | getattr(os, "O_DIRECTORY", 0)
_FILE = _BASE | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)

_LONG = 900
"""Characters of a path that one system call takes. PATH_MAX limits one call, not the depth of a tree, and a character
has at most four bytes."""

_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(mode: int) -> str:
    """Return the kind of an entry with this mode, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "something unknown")


def is_special(mode: int) -> bool:
    """Tell whether an entry has no content that can be kept: a pipe, a socket, a device."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


class Directory:
    """An open directory. Names are relative to it, and a symbolic link at the last component is never followed."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str, fd: int | None) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def open_root(cls, path: str) -> Directory:
        """Open the directory of a side. A symbolic link is followed only if ``path`` ends with a separator."""
        if _BY_DESCRIPTOR:
            return cls(path, os.open(path, _DIRECTORY | _NOFOLLOW))
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(path)
        return cls(path, None)

    def below(self, path: str) -> Directory:
        """Open the directory at ``path``; an empty path opens this directory again."""
        if self._fd is None:
            if path and not stat.S_ISDIR(self.stat(path).st_mode):
                raise NotADirectoryError(path)
            return Directory(os.path.join(self._path, path), None)
        # One component at a time: O_NOFOLLOW applies to the last component only.
        return Directory(path, self._descend(self._fd, path.split("/") if path else ["."], _DIRECTORY | _NOFOLLOW))

    @staticmethod
    def _descend(start: int, names: Iterable[str], flags: int) -> int:
        fd = start
        try:
            for name in names:
                deeper = os.open(name, flags, dir_fd=fd)
                if fd != start:
                    os.close(fd)
                fd = deeper
        except BaseException:
            if fd != start:
                os.close(fd)
            raise
        return fd

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Yield every entry, in the system's order."""
        with os.scandir(self._path if self._fd is None else self._fd) as entries:
            yield from entries

    def status(self) -> os.stat_result:
        """Return the status of the directory itself."""
        return os.stat(self._path if self._fd is None else self._fd)

    def stat(self, name: str) -> os.stat_result:
        """Return the status of an entry, without following a symbolic link there; links above it are followed."""
        if self._fd is None:
            return os.lstat(os.path.join(self._path, name))
        if len(name) <= _LONG:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        parent, _, last = name.rpartition("/")
        with Directory(parent, self._descend(self._fd, _hops(parent), _DIRECTORY)) as directory:
            return directory.stat(last)

    def open_file(self, name: str) -> int:
        """Open an entry for reading, without blocking. The caller must check that it is a regular file."""
        if self._fd is None:
            return os.open(os.path.join(self._path, name), _FILE)
        return os.open(name, _FILE, dir_fd=self._fd)

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd is not None:
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _hops(path: str) -> list[str]:
    """Split a path into pieces that one system call takes."""
    if len(path) <= _LONG:
        return [path]
    hops: list[str] = []
    for part in path.split("/"):
        if hops and len(hops[-1]) + len(part) < _LONG:
            hops[-1] += "/" + part
        else:
            hops.append(part)
    return hops

"""Parts of an index that stay in its file: a process that goes on for days reads the few that it needs, each time.

The file is open all the while. So it has the same content even if another one gets its name.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.index.stat_table import Piece


class IndexChangedError(OSError):
    """Another process has written into the open file of the index. It counts as none, as any damaged one."""


class OpenFile:
    """A file by a descriptor of its own, which is closed with the last part of the file that is in use."""

    def __init__(self, fd: int) -> None:
        """Duplicate the descriptor of an open file. Raises `OSError`."""
        self._fd = os.dup(fd)
        weakref.finalize(self, os.close, self._fd)
        self._written = self._status()

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes between two positions. Raises `IndexChangedError`, `OSError`."""
        content = os.pread(self._fd, end - begin, begin)
        if len(content) != end - begin or self._status() != self._written:
            raise IndexChangedError("the file of the index was changed")
        return content

    def _status(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_size, status.st_mtime_ns


class Section:
    """The bytes of a section; a slice of them is read when it is asked for."""

    def __init__(self, file: OpenFile, begin: int, end: int) -> None:
        """Take the position in the file."""
        self._file, self._begin, self._end = file, begin, end

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._end - self._begin

    def __getitem__(self, part: slice) -> bytes:
        """Read some of the bytes. Raises `OSError`."""
        begin, end, _ = part.indices(len(self))
        return self._file.read(self._begin + begin, self._begin + end)


class Pieces(Sequence["Piece"]):
    """The pieces of a stat table; ``read`` returns the one of a number. It raises `OSError`, `ValueError`."""

    def __init__(self, numbers: range, read: Callable[[int], Piece]) -> None:
        """Take the numbers."""
        self._numbers, self._read = numbers, read

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Piece: ...
    @overload
    def __getitem__(self, at: slice) -> Pieces: ...
    def __getitem__(self, at: int | slice) -> Piece | Pieces:
        """Read a piece, or return some of them, which are not read yet."""
        if isinstance(at, slice):
            return Pieces(self._numbers[at], self._read)
        return self._read(self._numbers[at])

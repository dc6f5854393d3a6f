"""Every path of a side that was looked at, with its status then: what it takes to know that nothing has changed.

The same status says the same content, unless it was too young when it was looked at (`reconcile.index.stat_cache`):
such a path is noted without one, and counts as changed. Directories are among them, so that whatever comes, goes or
gets another name shows in the one that it lies in. This module is loaded at every start, and loads next to nothing.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

    Piece = tuple[bytes, bytes]
    WorldState = Callable[[Sequence[str]], bytes]

_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
_WORD = 2**64
_FIELDS = 4
_BYTES = 8 * _FIELDS
_PIECE = 1024
"""Paths that are compared at once."""
_SHARE = 16
"""What was said since is merged where it is more than one in so many paths: it is looked up, and looked at twice."""
_UNKNOWN = (0,) * _FIELDS
_MISSING = (-1,) * _FIELDS
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_BY_DESCRIPTOR = os.stat in os.supports_dir_fd


def past(time_ns: int, now_ns: int) -> bool:
    """Tell whether a change from now on must give another time, whatever the file system's clock ticks are."""
    if time_ns < now_ns - _COARSE_TICK_NS:
        return True
    return time_ns % _SECOND_NS != 0 and time_ns < now_ns - _TICK_NS


class Sweep:
    """``names`` are relative to the side's directory, ``.`` is itself; ``prints`` has four numbers for each."""

    __slots__ = ("names", "prints")

    def __init__(self, names: list[str] | None = None, prints: array[int] | None = None) -> None:
        """Take what is known; nothing, where a look begins."""
        self.names = names or []
        self.prints = prints or array("q")

    def note(self, name: str, status: os.stat_result, now_ns: int) -> None:
        """Note a path with the status that it had before its content, or what is in it, was looked at."""
        self.names.append(name or ".")
        if past(status.st_mtime_ns, now_ns) and past(status.st_ctime_ns, now_ns):
            _add(self.prints, status)
        else:
            self.prints.extend(_UNKNOWN)


class Portion(NamedTuple):
    """A piece to be looked at; ``outdated``: names that something else is to be said of."""

    piece: Piece
    outdated: Container[bytes]

    def changed(self, look: WorldState | None) -> list[str]:
        """Return the paths that have another status now."""
        found = _differing(self.piece, look)
        return [name for name in found if os.fsencode(name) not in self.outdated]


class KeptSweep:
    """A sweep as it is kept: in pieces of names, joined by NUL, with their numbers, one after the other in memory.

    ``since``: what later looks had to say, by name; it has the last word. None: nothing to look at any more.
    ``key``: which file the pieces are in; empty: none yet.
    """

    __slots__ = ("key", "pieces", "since")

    def __init__(
        self, pieces: Iterable[Piece], since: Mapping[bytes, bytes | None] | None = None, key: bytes = b""
    ) -> None:
        """Take what `of` has made."""
        self.pieces = tuple(pieces)
        self.since = since or {}
        self.key = key

    @classmethod
    def of(cls, sweep: Sweep) -> KeptSweep:
        """Return a sweep in pieces."""
        names, prints = sweep.names, sweep.prints
        return cls(
            (
                os.fsencode("\0".join(names[begin : begin + _PIECE])),
                prints[_FIELDS * begin : _FIELDS * (begin + _PIECE)].tobytes(),
            )
            for begin in range(0, len(names), _PIECE)
        )

    def patched(self, looks: Iterable[Sweep], stale: Collection[str], gone: Iterable[str]) -> KeptSweep:
        """Return what is known after some more looks: those have the last word on what they are about.

        ``stale``: names whose status has changed, and that were looked at; ``gone``: directories that are no more.
        """
        about = (*map(os.fsencode, stale), *self._inside(map(os.fsencode, gone)))
        since = {**self.since, **dict.fromkeys(about)}
        for look in looks:
            numbers = look.prints.tobytes()
            for at, name in enumerate(look.names):
                since[os.fsencode(name)] = numbers[_BYTES * at : _BYTES * (at + 1)]
        return KeptSweep(self.pieces, since, self.key)

    def merged(self) -> KeptSweep:
        """Return the same in pieces alone."""
        placed: set[bytes] = set()
        pieces = [piece for piece in (self._merged(piece, placed) for piece in self.pieces) if piece[0]]
        rest = {name: numbers for name, numbers in self.since.items() if numbers is not None and name not in placed}
        if rest:
            names, numbers = _joined(rest)
            if pieces and len(pieces[-1][1]) + len(numbers) <= _BYTES * _PIECE:
                some, before = pieces.pop()
                names, numbers = some + b"\0" + names, before + numbers
            pieces.append((names, numbers))
        return KeptSweep(pieces)

    @property
    def is_compact(self) -> bool:
        """Little has been said since."""
        return len(self.since) * _SHARE <= len(self)

    def __len__(self) -> int:
        """Return how many paths the pieces have."""
        return sum(len(numbers) for _, numbers in self.pieces) // _BYTES

    def portions(self) -> list[Portion]:
        """Return what there is to look at: first what was said since, as what has changed lately soon does again."""
        later = {name: numbers for name, numbers in self.since.items() if numbers is not None}
        first = [Portion(_joined(later), {})] if later else []
        return first + [Portion(piece, self.since) for piece in self.pieces]

    def changed(self, root: str) -> list[str]:
        """Return the paths that have another status now."""
        with Opened(root) as look:
            return [name for portion in self.portions() for name in portion.changed(look)]

    def _merged(self, piece: Piece, placed: set[bytes]) -> Piece:
        names, before = piece[0].split(b"\0"), piece[1]
        if self.since.keys().isdisjoint(names):
            return piece
        kept: dict[bytes, bytes] = {}
        for at, name in enumerate(names):
            now = self.since.get(name) if name in self.since else before[_BYTES * at : _BYTES * (at + 1)]
            if now is not None and name not in placed:
                kept[name] = now
        placed.update(kept)
        return _joined(kept)

    def _inside(self, gone: Iterable[bytes]) -> Iterator[bytes]:
        """Return the names of directories and of what is known inside them."""
        for each in gone:
            for some in (*(names for names, _ in self.pieces), b"\0".join(self.since)):
                if each in some:
                    yield from (name for name in some.split(b"\0") if name == each or name.startswith(each + b"/"))


def _joined(prints: Mapping[bytes, bytes]) -> Piece:
    return b"\0".join(prints), b"".join(prints.values())


def _differing(piece: Piece, look: WorldState | None) -> list[str]:
    """Return the names that have other numbers now."""
    names, before = os.fsdecode(piece[0]).split("\0"), piece[1]
    now = look(names) if look is not None else b""
    if now == before:
        return []
    pairs = zip(names, range(0, len(before), _BYTES), strict=True)
    return [name for name, at in pairs if now[at : at + _BYTES] != before[at : at + _BYTES]]


class Opened:
    """A look at paths below a directory, which returns their numbers; None where that can't be opened."""

    def __init__(self, root: str) -> None:
        """Take the directory."""
        self._root = root
        self._fd: int | None = None

    def __enter__(self) -> WorldState | None:
        """Open it."""
        if not _BY_DESCRIPTOR:
            prefix = self._root + os.sep
            return lambda names: _prints([prefix + name for name in names], None)
        try:
            self._fd = os.open(self._root, _DIRECTORY)
        except OSError:
            return None
        return lambda names: _prints(names, self._fd)

    def __exit__(self, *_: object) -> None:
        """Close it."""
        if self._fd is not None:
            os.close(self._fd)


def _prints(names: Iterable[str], root_fd: int | None) -> bytes:
    found = array("q")
    extend, stat = found.extend, os.stat
    for name in names:
        try:
            status = stat(name, dir_fd=root_fd, follow_symlinks=False)
            extend((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
        except OSError:
            extend(_MISSING)
        except OverflowError:
            _fit(found, status)
    return found.tobytes()


def _add(prints: array[int], status: os.stat_result) -> None:
    try:
        prints.extend((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    except OverflowError:
        _fit(prints, status)


def _fit(prints: array[int], status: os.stat_result) -> None:
    """Add four numbers of which one didn't fit into 64 bits; those before it have been added."""
    del prints[len(prints) - len(prints) % _FIELDS :]
    prints.extend(_print(status))


def _print(status: os.stat_result) -> tuple[int, ...]:
    """Return four numbers of 64 bits; inodes may be larger than is positive in those, and times more than fits."""
    numbers = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return tuple((number + _WORD // 2) % _WORD - _WORD // 2 for number in numbers)

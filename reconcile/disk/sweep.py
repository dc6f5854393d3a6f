"""Every path of a side that was looked at, with its status then: what it takes to know that nothing has changed.

The same status says the same content, unless it was too young when it was looked at (`reconcile.disk.index`): such a
path is noted without one, and counts as changed. Directories are among them, so that whatever comes, goes or gets
another name shows in the one that it lies in. This module is loaded at every start, and loads next to nothing.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

from reconcile.disk.second import Second

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
_WORD = 2**64
_FIELDS = 4
_BYTES = 8 * _FIELDS
_PIECE = 4096
"""Paths that are compared at once."""
_UNKNOWN = (0,) * _FIELDS
_MISSING = (-1,) * _FIELDS
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_BY_DESCRIPTOR = os.stat in os.supports_dir_fd
WORTH_A_PROCESS = 12_000
"""Paths of both sides together from which a second process saves time."""


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


class KeptSweep:
    """A sweep as it is kept: in pieces of names, joined by NUL, with their numbers, one after the other in memory."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: Iterable[tuple[bytes, bytes]]) -> None:
        """Take what `of` has made."""
        self.pieces = tuple(pieces)

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

    def patched(self, looks: Iterable[Sweep], stale: Collection[str], gone: Collection[str]) -> KeptSweep:
        """Return what is known after some more looks: those have the last word on what they are about.

        ``stale``: names whose status has changed, and that were looked at; ``gone``: directories that are no more.
        """
        fresh: dict[bytes, bytes] = {}
        for look in looks:
            numbers = look.prints.tobytes()
            for at, name in enumerate(look.names):
                fresh[os.fsencode(name)] = numbers[_BYTES * at : _BYTES * (at + 1)]
        patch = _Patch(fresh, {*fresh, *map(os.fsencode, stale)}, tuple(map(os.fsencode, gone)))
        pieces = [piece for piece in map(patch.applied, self.pieces) if piece[0]]
        names, numbers = patch.rest()
        if names and pieces and len(pieces[-1][1]) + len(numbers) <= _BYTES * _PIECE:
            some, before = pieces.pop()
            names, numbers = some + b"\0" + names, before + numbers
        return KeptSweep((*pieces, (names, numbers)) if names else pieces)

    def __len__(self) -> int:
        """Return how many paths there are."""
        return sum(len(numbers) for _, numbers in self.pieces) // _BYTES

    def changed(self, root: str) -> list[str]:
        """Return the paths that have another status now."""
        found: list[str] = []
        with _opened(root) as look:
            for some, before in self.pieces:
                names = os.fsdecode(some).split("\0")
                now = look(names) if look is not None else b""
                if now != before:
                    places = range(0, len(before), _BYTES)
                    pairs = zip(names, places, strict=True)
                    found += [name for name, at in pairs if now[at : at + _BYTES] != before[at : at + _BYTES]]
        return found


def changed_on_both(roots: Sequence[str], sweeps: Sequence[KeptSweep]) -> tuple[list[str], list[str]]:
    """Return what has changed of two sides; a second process looks at one of them where that pays."""
    (first, second), (one, other) = roots, sweeps
    if len(one) + len(other) < WORTH_A_PROCESS:
        return one.changed(first), other.changed(second)
    with Second.begun(lambda: os.fsencode("\0".join(other.changed(second)))) as child:
        mine = one.changed(first)
        told = child.result()
    # Where it didn't get to the end, this process looks itself.
    theirs = other.changed(second) if told is None else os.fsdecode(told).split("\0") if told else []
    return mine, theirs


class _Patch:
    """What takes the place of names in a sweep; ``about`` are all that go or change, with those in ``gone``."""

    def __init__(self, fresh: Mapping[bytes, bytes], about: Collection[bytes], gone: tuple[bytes, ...]) -> None:
        self._fresh, self._about, self._gone = fresh, frozenset(about), gone
        self.placed: set[bytes] = set()

    def applied(self, piece: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        names, before = piece[0].split(b"\0"), piece[1]
        if not self._gone and self._about.isdisjoint(names):
            return piece
        kept: list[bytes] = []
        numbers: list[bytes] = []
        for at, name in enumerate(names):
            if name in self._about or self._is_gone(name):
                if name not in self._fresh or name in self.placed:
                    continue
                self.placed.add(name)
                numbers.append(self._fresh[name])
            else:
                numbers.append(before[_BYTES * at : _BYTES * (at + 1)])
            kept.append(name)
        return b"\0".join(kept), b"".join(numbers)

    def rest(self) -> tuple[bytes, bytes]:
        """Return as a piece what had no place yet."""
        names = [name for name in self._fresh if name not in self.placed]
        return b"\0".join(names), b"".join([self._fresh[name] for name in names])

    def _is_gone(self, name: bytes) -> bool:
        return any(name == each or name.startswith(each + b"/") for each in self._gone)


class _opened:  # noqa: N801 - a context manager, without the module that makes them of functions
    """A look at paths below a directory, which returns their numbers; None where that can't be opened."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._fd: int | None = None

    def __enter__(self) -> Callable[[Sequence[str]], bytes] | None:
        if not _BY_DESCRIPTOR:
            prefix = self._root + os.sep
            return lambda names: _prints([prefix + name for name in names], None)
        try:
            self._fd = os.open(self._root, _DIRECTORY)
        except OSError:
            return None
        return lambda names: _prints(names, self._fd)

    def __exit__(self, *_: object) -> None:
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

"""Every path of a side that a scan has seen, with its status then: enough to know that nothing has changed since.

The same status says the same content, unless the path had changed just before the scan (git's "racily clean" rule).
Such a path has no status in the table, and counts as changed. Directories are in the table, too: whatever appears, goes
or gets another name changes the directory that it lies in. Two processes compare both sides, from opposite ends. Every
start loads this module: it imports little.
"""

from __future__ import annotations

import marshal
import os
from array import array
from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.helper_process import HelperProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

    Piece = tuple[bytes, bytes]
    """Names, joined by NUL, and their fingerprints, one after the other."""
    StatReader = Callable[[Sequence[bytes]], bytes]
    """Returns the fingerprints that paths have now."""

_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
_WORD = 2**64
_FIELDS = 4
_BYTES = 8 * _FIELDS
_PIECE = 1024
"""Paths that are compared at once."""
WORTH_A_PROCESS = 6_000
"""Paths of both sides together from which a second process saves time: it takes 3 ms, and 1,000 paths take 2 ms."""
_UNKNOWN = (0,) * _FIELDS
_MISSING = (-1,) * _FIELDS
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_BY_DESCRIPTOR = os.stat in os.supports_dir_fd


def is_racy_safe(time_ns: int, now_ns: int) -> bool:
    """Tell whether a change from now on must give another time, whatever the file system's clock ticks are."""
    if time_ns < now_ns - _COARSE_TICK_NS:
        return True
    return time_ns % _SECOND_NS != 0 and time_ns < now_ns - _TICK_NS


class StatList:
    """The status of paths as a scan sees them. ``names`` are relative to the side's directory, ``.`` is itself.

    ``fingerprints`` has four numbers for each name.
    """

    __slots__ = ("fingerprints", "names")

    def __init__(self, names: list[str] | None = None, fingerprints: array[int] | None = None) -> None:
        """Take what is known; nothing, where a scan begins."""
        self.names = names or []
        self.fingerprints = fingerprints or array("q")

    def add(self, name: str, status: os.stat_result, now_ns: int) -> None:
        """Add a path with the status that it had before its content or its entries were read."""
        self.names.append(name or ".")
        if is_racy_safe(status.st_mtime_ns, now_ns) and is_racy_safe(status.st_ctime_ns, now_ns):
            _add(self.fingerprints, status)
        else:
            self.fingerprints.extend(_UNKNOWN)


class Portion(NamedTuple):
    """A piece to be compared, by its number; ``outdated``: names that another portion has."""

    pieces: Sequence[Piece]
    at: int
    outdated: Container[bytes]

    def changed(self, read: StatReader | None) -> list[str]:
        """Return the paths that have another status now."""
        return [os.fsdecode(name) for name in _differing(self.pieces[self.at], read) if name not in self.outdated]


class StatTable:
    """The status of all paths of a side, in pieces that are compared as a whole.

    ``since``: by name, the fingerprints of later scans, which have the last word; None: the path is gone. ``base``: the
    key of the file that has the pieces (`reconcile.index.file`); empty: none has.
    """

    __slots__ = ("base", "pieces", "since")

    def __init__(
        self, pieces: Sequence[Piece], since: Mapping[bytes, bytes | None] | None = None, base: bytes = b""
    ) -> None:
        """Take what `of` has returned."""
        self.pieces = pieces
        self.since = since or {}
        self.base = base

    @classmethod
    def of(cls, stats: StatList) -> StatTable:
        """Return the table of a scan of the whole side."""
        names, numbers = stats.names, stats.fingerprints
        return cls(
            [
                (
                    os.fsencode("\0".join(names[begin : begin + _PIECE])),
                    numbers[_FIELDS * begin : _FIELDS * (begin + _PIECE)].tobytes(),
                )
                for begin in range(0, len(names), _PIECE)
            ]
        )

    def patched(self, scans: Iterable[StatList], stale: Collection[str], gone: Iterable[str]) -> StatTable:
        """Return the table after some more scans: those have the last word on their paths.

        ``stale``: names whose status has changed, and that were scanned; ``gone``: directories that are no more.
        """
        names = (*map(os.fsencode, stale), *self._inside(map(os.fsencode, gone)))
        since = {**self.since, **dict.fromkeys(names)}
        for stats in scans:
            numbers = stats.fingerprints.tobytes()
            for at, name in enumerate(stats.names):
                since[os.fsencode(name)] = numbers[_BYTES * at : _BYTES * (at + 1)]
        return StatTable(self.pieces, since, self.base)

    def merged(self) -> StatTable:
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
        return StatTable(pieces)

    def is_compact(self, share: int) -> bool:
        """Tell whether at most one path in ``share`` has changed since: such a path costs a look-up and two calls."""
        return len(self.since) * share <= len(self)

    def __len__(self) -> int:
        """Return how many paths the pieces have."""
        return sum(len(numbers) for _, numbers in self.pieces) // _BYTES

    def portions(self) -> list[Portion]:
        """Return what there is to compare, later changes first: what has changed lately soon does again."""
        later = {name: numbers for name, numbers in self.since.items() if numbers is not None}
        first = [Portion([_joined(later)], 0, {})] if later else []
        return first + [Portion(self.pieces, at, self.since) for at in range(len(self.pieces))]

    def changed(self, root: str) -> list[str]:
        """Return the paths that have another status now."""
        with StatsBelow(root) as read:
            return [name for portion in self.portions() for name in portion.changed(read)]

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
        """Yield the names of directories and of what is known inside them."""
        for directory in gone:
            for some in (*(names for names, _ in self.pieces), b"\0".join(self.since)):
                if directory in some:
                    inside = directory + b"/"
                    yield from (name for name in some.split(b"\0") if name == directory or name.startswith(inside))


def compare_both(
    roots: Sequence[str],
    tables: Sequence[StatTable],
    meanwhile: Callable[[], object] = lambda: None,
    *,
    at_once: bool = False,
) -> tuple[list[str], list[str]]:
    """Return the paths of both sides that have another status now; a second process takes its share where that pays.

    ``meanwhile`` is called at most once, while the other process compares: ``at_once``, or else when something has
    changed.
    """
    (one, other), (store, workspace) = roots, tables
    if len(store) + len(workspace) < WORTH_A_PROCESS:
        return store.changed(one), workspace.changed(other)
    shared = SharedComparison(
        roots, [(side, portion) for side, table in enumerate(tables) for portion in table.portions()]
    )
    with HelperProcess.start(shared.from_the_end) as child:
        if at_once and child.is_running:
            meanwhile()
        own = shared.from_the_start(meanwhile if child.is_running and not at_once else None)
        answer = child.result()
    # Where the helper did not get to its end, this process compares what is left.
    rest = shared.except_for(own) if answer is None else marshal.loads(answer)  # noqa: S302 - from this very program
    return shared.by_side(own | rest)


class SharedComparison:
    """The portions of both sides, in memory that two processes share: each sees which ones are taken.

    Both may take the same one where they meet: it is compared twice then, with the same result.
    """

    def __init__(self, roots: Sequence[str], portions: Sequence[tuple[int, Portion]]) -> None:
        """Take portions, each with the number of its side."""
        import mmap  # here: few conversations need no second process

        self._roots, self._portions = roots, portions
        self._shared = mmap.mmap(-1, len(portions) + 1)
        """A byte for each, 1 where it is taken, and one for all: 1 where something has changed."""

    def from_the_end(self) -> bytes:
        """Compare portions, the last one first, up to one that is taken; return what differs, encoded."""
        return marshal.dumps({at: names for at, names in self.take(reversed(range(len(self._portions)))) if names})

    def from_the_start(self, on_change: Callable[[], object] | None) -> dict[int, list[str]]:
        """Compare portions, the first one first, up to one that is taken; return what differs in each."""
        differing = {}
        for at, names in self.take(range(len(self._portions))):
            differing[at] = names
            if on_change is not None and self._shared[-1]:
                on_change()
                on_change = None
        return differing

    def except_for(self, done: Iterable[int]) -> dict[int, list[str]]:
        """Compare all portions but these."""
        return dict(self._compared(set(range(len(self._portions))).difference(done)))

    def by_side(self, differing: dict[int, list[str]]) -> tuple[list[str], list[str]]:
        """Return by side what differs in each portion."""
        sides: tuple[list[str], list[str]] = [], []
        for at in sorted(differing):
            sides[self._portions[at][0]].extend(differing[at])
        return sides

    def take(self, order: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
        """Take one portion after the other, and yield what differs in it."""
        return self._compared(self._free(order))

    def __len__(self) -> int:
        """Return the number of portions."""
        return len(self._portions)

    def _free(self, order: Iterable[int]) -> Iterator[int]:
        for at in order:
            if self._shared[at]:
                return
            self._shared[at] = 1
            yield at

    def _compared(self, order: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
        one, other = map(StatsBelow, self._roots)
        with one as store, other as workspace:
            readers = store, workspace
            for at in order:
                side, portion = self._portions[at]
                names = portion.changed(readers[side])
                if names:
                    self._shared[-1] = 1
                yield at, names


def _joined(fingerprints: Mapping[bytes, bytes]) -> Piece:
    return b"\0".join(fingerprints), b"".join(fingerprints.values())


def _differing(piece: Piece, read: StatReader | None) -> list[bytes]:
    """Return the names that have other numbers now."""
    names, before = piece[0].split(b"\0"), piece[1]
    now = read(names) if read is not None else b""
    if now == before:
        return []
    pairs = zip(names, range(0, len(before), _BYTES), strict=True)
    return [name for name, at in pairs if now[at : at + _BYTES] != before[at : at + _BYTES]]


class StatsBelow:
    """Reads the fingerprints of paths below a directory; None, where that can't be opened."""

    def __init__(self, root: str) -> None:
        """Take the directory."""
        self._root = root
        self._fd: int | None = None

    def __enter__(self) -> StatReader | None:
        """Open it."""
        if not _BY_DESCRIPTOR:
            prefix = os.fsencode(self._root + os.sep)
            return lambda names: _read([prefix + name for name in names], None)
        try:
            self._fd = os.open(self._root, _DIRECTORY)
        except OSError:
            return None
        return lambda names: _read(names, self._fd)

    def __exit__(self, *_: object) -> None:
        """Close it."""
        if self._fd is not None:
            os.close(self._fd)


def _read(names: Iterable[bytes], root_fd: int | None) -> bytes:
    """Return the fingerprints of these paths now.

    Most of a run with nothing to do is spent here: names are bytes, which no call encodes, and a list grows in half the
    time of an array.
    """
    numbers: list[int] = []
    stat = os.stat
    for name in names:
        try:
            status = stat(name, dir_fd=root_fd, follow_symlinks=False)
            numbers += (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        except OSError:
            numbers += _MISSING
    try:
        return array("q", numbers).tobytes()
    except OverflowError:
        return array("q", map(_signed, numbers)).tobytes()


def _add(numbers: array[int], status: os.stat_result) -> None:
    fields = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    try:
        numbers.extend(fields)
    except OverflowError:
        del numbers[len(numbers) - len(numbers) % _FIELDS :]  # those before it have been added
        numbers.extend(map(_signed, fields))


def _signed(number: int) -> int:
    """Return a number of 64 bits; inodes may be larger than is positive in those, and times more than fits."""
    return (number + _WORD // 2) % _WORD - _WORD // 2

"""The rows of an index, each decoded when it is asked for: most runs ask for few."""

from __future__ import annotations

from array import array
from collections.abc import MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")
Bytes: TypeAlias = bytes | bytearray | memoryview


class Packed(NamedTuple):
    """Rows as they are stored: paths joined by NUL, where each row begins and the last ends, and the rows."""

    paths: Bytes = b""
    offsets: Bytes = b""
    rows: Bytes = b""


_NO_ROWS = Packed()


class Changes(NamedTuple):
    """What became of rows since they were stored: paths that are gone, joined by NUL, and rows that are new."""

    gone: Bytes
    new: Packed


class _Stored:
    """Rows that stay bytes until they are asked for."""

    def __init__(self, packed: Packed) -> None:
        self._paths, self._rows = bytes(packed.paths), packed.rows
        self._offsets = array("q")
        self._offsets.frombytes(packed.offsets)
        if len(self._offsets) != (self._paths.count(b"\0") + 2 if self._paths else 0):
            raise ValueError("as many offsets as rows")

    @cached_property
    def at(self) -> Mapping[str, int]:
        """Where each row is; whoever has just stored them may never ask."""
        names = _split(self._paths)
        return dict(zip(names, range(len(names)), strict=True))

    def __len__(self) -> int:
        return max(len(self._offsets) - 1, 0)

    def raw(self, at: int) -> Bytes:
        return self._rows[self._offsets[at] : self._offsets[at + 1]]


class Rows(MutableMapping[str, T], Generic[T]):
    """By path; those that were stored stay bytes, whatever becomes of the others.

    One thread may change them while others ask.
    """

    __slots__ = ("_decode", "_gone", "_new", "_stored")

    def __init__(self, decode: Callable[[Bytes], T], packed: Packed = _NO_ROWS) -> None:
        """Take what `packed` has returned; nothing, where a look begins.

        Raises:
            ValueError: it doesn't belong together.
        """
        self._decode, self._stored = decode, _Stored(packed)
        self._new: dict[str, T] = {}
        self._gone: set[str] = set()

    def __getitem__(self, path: str) -> T:
        """Return a row."""
        found = self.get(path)
        if found is None:
            raise KeyError(path)
        return found  # type: ignore[no-any-return]

    def get(self, path: str, default: Any = None) -> Any:
        """Return a row, or what is to be said where there is none."""
        row = self._new.get(path)
        if row is not None:
            return row
        stored = self._stored
        at = None if path in self._gone else stored.at.get(path)
        return default if at is None else self._decode(stored.raw(at))

    def __setitem__(self, path: str, row: T) -> None:
        """Put another row in the place of the one that was there."""
        self._new[path] = row

    def __delitem__(self, path: str) -> None:
        """Take a row out."""
        if path not in self:
            raise KeyError(path)
        if path in self._stored.at:
            self._gone.add(path)
        self._new.pop(path, None)

    def __contains__(self, path: object) -> bool:
        """Tell whether there is a row."""
        return path in self._new or (path in self._stored.at and path not in self._gone)

    def __iter__(self) -> Iterator[str]:
        """Return the paths."""
        new, gone, stored = self._new, self._gone, self._stored.at
        yield from (path for path in stored if path in new or path not in gone)
        yield from (path for path in new if path not in stored)

    def __len__(self) -> int:
        """Return how many there are; in one step, as other threads may put some meanwhile."""
        stored = self._stored.at.keys()
        return len(stored) - len(self._gone - self._new.keys()) + len(self._new.keys() - stored)

    def arrange(self) -> None:
        """Do now what the first one who asks for a row would have to wait for."""
        self._stored.at  # noqa: B018 - it is worked out once

    def frozen(self) -> Rows[T]:
        """Return the rows as they are now, whatever becomes of these."""
        found = Rows(self._decode)
        found._stored, found._new, found._gone = self._stored, dict(self._new), set(self._gone)
        return found

    @property
    def changed(self) -> int:
        """How many are not as they were stored."""
        return len(self._new.keys() | self._gone)

    def packed(self, encode: Callable[[T], bytes | None]) -> Packed:
        """Return all to be stored; a row that can't be encoded is left out."""
        stored = self._stored
        return _packed(
            (path, encode(self._new[path]) if path in self._new else stored.raw(stored.at[path])) for path in self
        )

    def changes(self, encode: Callable[[T], bytes | None]) -> Changes:
        """Return what is not as it was stored; of a row that can't be encoded, that it is gone."""
        new = [(path, encode(row)) for path, row in self._new.items()]
        gone = self._gone.union(path for path, raw in new if raw is None)
        return Changes(_joined(gone), _packed(new))

    def stored(self, packed: Packed) -> Rows[T]:
        """Return the same rows, known to be stored as what `packed` has returned of them."""
        found = Rows(self._decode, packed)
        if len(found._stored) < len(self):  # one could not be encoded
            at = found._stored.at
            found._new = {path: row for path, row in self._new.items() if path not in at}
        return found

    def change(self, changes: Changes) -> None:
        """Take what `changes` has returned of rows that were stored as these. Raises `ValueError`."""
        new = Rows(self._decode, changes.new)
        self._gone.update(path for path in _split(changes.gone) if path in self._stored.at)
        self._new.update(new)


def _packed(rows: Iterable[tuple[str, Bytes | None]]) -> Packed:
    paths: list[str] = []
    offsets, stored = array("q"), bytearray()
    for path, raw in rows:
        if raw is not None and "\0" not in path:
            paths.append(path)
            offsets.append(len(stored))
            stored += raw
    if paths:
        offsets.append(len(stored))
    return Packed(_joined(paths), offsets.tobytes(), stored)


def _joined(paths: Iterable[str]) -> bytes:
    return "\0".join(paths).encode("utf-8", "surrogatepass")


def _split(paths: Bytes) -> list[str]:
    return str(paths, "utf-8", "surrogatepass").split("\0") if paths else []

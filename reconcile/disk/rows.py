"""The rows of an index, each decoded when it is asked for: most runs ask for few."""

from __future__ import annotations

from array import array
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


class Rows(MutableMapping[str, T], Generic[T]):
    """By path; those that were stored stay bytes, whatever becomes of the others."""

    __slots__ = ("_at", "_decode", "_new", "_offsets", "_stored")

    def __init__(
        self, decode: Callable[[bytes], T], paths: bytes = b"", offsets: bytes = b"", stored: bytes = b""
    ) -> None:
        """Take what `stored_as` has returned; nothing, where a look begins.

        Raises:
            ValueError: they don't belong together.
        """
        self._decode, self._stored = decode, stored
        self._offsets = array("q", offsets)
        names = paths.decode("utf-8", "surrogatepass").split("\0") if paths else []
        if len(self._offsets) != len(names) + bool(names):
            raise ValueError("as many offsets as rows")
        self._at = dict(zip(names, range(len(names)), strict=True))
        self._new: dict[str, T] = {}

    def __getitem__(self, path: str) -> T:
        """Return a row."""
        if path in self._new:
            return self._new[path]
        return self._decode(self._raw(self._at[path]))

    def get(self, path: str, default: Any = None) -> Any:
        """Return a row, or what is to be said where there is none."""
        row = self._new.get(path)
        if row is not None:
            return row
        at = self._at.get(path)
        return default if at is None else self._decode(self._raw(at))

    def __setitem__(self, path: str, row: T) -> None:
        """Put another row in the place of the one that was there."""
        self._new[path] = row

    def __delitem__(self, path: str) -> None:
        """Take a row out."""
        if path not in self:
            raise KeyError(path)
        self._new.pop(path, None)
        self._at.pop(path, None)

    def __contains__(self, path: object) -> bool:
        """Tell whether there is a row."""
        return path in self._new or path in self._at

    def __iter__(self) -> Iterator[str]:
        """Return the paths."""
        yield from self._at
        yield from (path for path in self._new if path not in self._at)

    def __len__(self) -> int:
        """Return how many there are; in one step, as other threads may put some meanwhile."""
        return len(self._at) + len(self._new.keys() - self._at.keys())

    def frozen(self) -> Rows[T]:
        """Return the rows as they are now, whatever becomes of these."""
        found = Rows(self._decode)
        found._stored, found._offsets = self._stored, self._offsets
        found._at, found._new = dict(self._at), dict(self._new)
        return found

    def stored_as(self, encode: Callable[[T], bytes | None]) -> tuple[bytes, bytes, bytearray]:
        """Return paths, offsets and rows to be stored; a row that can't be encoded is left out."""
        paths: list[str] = []
        offsets, stored = array("q"), bytearray()
        for path in self:
            raw = encode(self._new[path]) if path in self._new else self._raw(self._at[path])
            if raw is not None and "\0" not in path:
                paths.append(path)
                offsets.append(len(stored))
                stored += raw
        if paths:
            offsets.append(len(stored))
        return "\0".join(paths).encode("utf-8", "surrogatepass"), offsets.tobytes(), stored

    def _raw(self, at: int) -> bytes:
        return self._stored[self._offsets[at] : self._offsets[at + 1]]

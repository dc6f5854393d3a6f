"""Cache files: plain values in a private file that loads quickly. Losing one costs time, nothing else."""

from __future__ import annotations

import marshal
import os
import sys
from typing import TYPE_CHECKING, Any

from reconcile.fs.paths import open_regular
from reconcile.version import __version__

if TYPE_CHECKING:
    from typing import BinaryIO

_LENGTH = 8
_SUM = 16
_BUFFER = 1 << 18
"""Bytes that one read takes."""
_VERSION = 7
"""Increased with every change of the values or of their order."""


def save_values(path: str, kind: str, *values: Any) -> None:
    """Replace a cache file, mode 0600. A failure is ignored: the next run only takes longer."""
    import contextlib

    from reconcile.fs.private_files import replace_private_file

    parts = [_magic(kind)]
    for value in (len(values), *values):
        payload = marshal.dumps(value)
        parts += [len(payload).to_bytes(_LENGTH, "little"), _checksum(payload), payload]
    with contextlib.suppress(OSError):
        replace_private_file(path, *parts)


def load_values(path: str, kind: str) -> list[Any] | None:
    """Return the values of a cache file; None if it is missing, damaged, of another kind or of another version.

    The values are read one after the other, so that their bytes are in memory only once.
    """
    try:
        with open_regular(path, _BUFFER) as file:
            magic = _magic(kind)
            if file.read(len(magic)) != magic:
                return None
            values = _values(file, os.fstat(file.fileno()).st_size - len(magic))
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return values[1:] if values and values[0] == len(values) - 1 else None


def _values(file: BinaryIO, left: int) -> list[Any] | None:
    values: list[Any] = []
    while left > 0:
        length, checksum = int.from_bytes(file.read(_LENGTH), "little"), file.read(_SUM)
        left -= _LENGTH + _SUM + length
        payload = file.read(length) if left >= 0 else b""
        if left < 0 or checksum != _checksum(payload):
            return None
        values.append(marshal.loads(payload))  # noqa: S302 - our own file, and its checksum is right
    return values


def cache_path(directory: str, kind: str, checkout: str) -> str:
    """Return the path of a checkout's cache file; ``checkout`` is the identity of its directory."""
    return os.path.join(directory, f"{kind}-{checkout.replace(':', '-')}")


def _magic(kind: str) -> bytes:
    return f"reconcile.{kind}/{_VERSION} {__version__} {sys.hexversion} {sys.byteorder}\n".encode()


def _checksum(payload: bytes) -> bytes:
    from xxhash import xxh3_128_digest

    return xxh3_128_digest(payload)

"""Plain values in a private file of their own, which loads at once and whose loss costs time, nothing else."""

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
_AT_ONCE = 1 << 18
"""Bytes that are read at once."""
_VERSION = 7
"""Another one with every change of what is kept, or of its order."""


def save_values(path: str, kind: str, *values: Any) -> None:
    """Put values in place, readable by nobody else; where that can't be, the next run takes longer."""
    import contextlib

    from reconcile.fs.private_files import replace_private_file

    parts = [_magic(kind)]
    for value in (len(values), *values):
        payload = marshal.dumps(value)
        parts += [len(payload).to_bytes(_LENGTH, "little"), _checksum(payload), payload]
    with contextlib.suppress(OSError):
        replace_private_file(path, *parts)


def load_values(path: str, kind: str) -> list[Any] | None:
    """Return the values in a file; None where there is none, where it is damaged, or another version's.

    They are read one after the other, so that they are in memory once.
    """
    try:
        with open_regular(path, _AT_ONCE) as file:
            magic = _magic(kind)
            whole = file.read(len(magic)) == magic
            found = _values(file, os.fstat(file.fileno()).st_size - len(magic)) if whole else None
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return found[1:] if found and found[0] == len(found) - 1 else None


def _values(file: BinaryIO, left: int) -> list[Any] | None:
    found: list[Any] = []
    while left > 0:
        length, checksum = int.from_bytes(file.read(_LENGTH), "little"), file.read(_SUM)
        left -= _LENGTH + _SUM + length
        payload = file.read(length) if left >= 0 else b""
        if left < 0 or checksum != _checksum(payload):
            return None
        found.append(marshal.loads(payload))  # noqa: S302 - our own, and whole
    return found


def file_of(directory: str, kind: str, checkout: str) -> str:
    """Return the file of a kind for a checkout, which is named by its identity."""
    return os.path.join(directory, f"{kind}-{checkout.replace(':', '-')}")


def _magic(kind: str) -> bytes:
    return f"reconcile.{kind}/{_VERSION} {__version__} {sys.hexversion} {sys.byteorder}\n".encode()


def _checksum(payload: bytes) -> bytes:
    from xxhash import xxh3_128_digest

    return xxh3_128_digest(payload)

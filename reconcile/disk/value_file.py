"""Plain values in a private file of their own, which loads at once and whose loss costs time, nothing else."""

from __future__ import annotations

import marshal
import os
import sys
from typing import Any

from reconcile import __version__

_SUM = 16
_VERSION = 3
"""Another one with every change of what is kept, or of its order."""


def save_values(path: str, kind: str, values: Any) -> None:
    """Put values in place, readable by nobody else; where that can't be, the next run takes longer."""
    import contextlib

    from reconcile.disk.private import replace_private_file

    payload = marshal.dumps(values)
    with contextlib.suppress(OSError):
        replace_private_file(path, _magic(kind) + _checksum(payload) + payload)


def load_values(path: str, kind: str) -> Any:
    """Return the values in a file; None where there is none, where it is damaged, or another version's."""
    magic = _magic(kind)
    start = len(magic) + _SUM
    try:
        with open(path, "rb") as file:
            blob = memoryview(file.read())
    except OSError:
        return None
    if blob[: len(magic)] != magic or blob[len(magic) : start] != _checksum(blob[start:]):
        return None
    return marshal.loads(blob[start:])  # noqa: S302 - our own, and whole


def file_of(directory: str, kind: str, checkout: str) -> str:
    """Return the file of a kind for a checkout, which is named by its identity."""
    return os.path.join(directory, f"{kind}-{checkout.replace(':', '-')}")


def _magic(kind: str) -> bytes:
    return f"reconcile.{kind}/{_VERSION} {__version__} {sys.hexversion} {sys.byteorder}\n".encode()


def _checksum(payload: bytes | memoryview) -> bytes:
    from xxhash import xxh3_128_digest

    return xxh3_128_digest(payload)

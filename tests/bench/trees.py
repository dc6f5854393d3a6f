"""What is done with whole directories between the runs: reading them into the cache, comparing them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.bench.race import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read(*directories: Path) -> None:
    """Read everything, so that no run pays for what the kernel dropped from its cache meanwhile."""
    for directory in directories:
        for path in _files(str(directory)):
            _content(path)


def must_equal(source: Path, target: Path, precision_ns: int = 1) -> None:
    """Compare two directories: the same names, the same bytes, the same times of files (to ``precision_ns``).

    Raises:
        BenchError: they differ.
    """
    here, there = str(source), str(target)
    found = {path.removeprefix(there) for path in _files(there)}
    for path in _files(here):
        name = path.removeprefix(here)
        other = there + name
        if name not in found:
            raise BenchError(f"{name} is missing in the target")
        found.discard(name)
        if _content(path) != _content(other):
            raise BenchError(f"{name} has other content in the target")
        if abs(os.stat(path).st_mtime_ns - os.stat(other).st_mtime_ns) >= precision_ns:
            raise BenchError(f"{name} has another time in the target")
    if found:
        raise BenchError(f"{min(found)} is only in the target")


def _files(directory: str) -> Iterator[str]:
    pending = [directory]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry.path


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        content = b""
        while chunk := os.read(fd, 1 << 20):
            content += chunk
        return content
    finally:
        os.close(fd)

"""What one event costs through the library, against writing the same bytes to both sides with nothing around it.

``python -P tests/bench/guards.py PROJECT NAME OTHER PLACE CYCLES`` measures, and prints JSON: the seconds of each, of
the least that the promises cost, and the bytes that the vault gets if a stream of 1 MB grows by so many events.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from operator import truediv
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile import Workspace
    from tests.bench.bench import Bench

CYCLES = 200
LEAST = "the same with what is promised"
LARGE = 1_000_000
"""Bytes of a large stream."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Medians in seconds, and those of the ratios of neighbours; bytes that a large stream leaves in the vault.

    ``least``: the ratio of the writes and flushes without which an event isn't saved before it replaces the old stream.
    """

    library: float
    bare: float
    ratio: float
    vault: int
    least: float = 0.0


def measure(bench: Bench) -> Cycle:
    bench.settle()
    place = bench.base / "bare"
    place.mkdir()
    words = [sys.executable, "-P", __file__, str(bench.project), *bench.names[:2], str(place), str(CYCLES)]
    ran = subprocess.run(words, env=bench.environment, capture_output=True, check=True)
    cycles, vault = json.loads(ran.stdout)
    library, bare, least = zip(*cycles, strict=True)
    ratio, least_ratio = (median(map(truediv, each, bare)) for each in (library, least))
    return Cycle(median(library), median(bare), ratio, vault, least_ratio)


def render(found: dict[int, Cycle]) -> str:
    """Lay the figures out."""
    lines = ["one event through the library: lock, mutate, on both sides, unlock"]
    lines.append(f"{'':<30}{'conversations':>15}{'ms':>9}{'ratio':>8}")
    for size, cycle in found.items():
        lines.append(f"{'  write, fsync, rename, twice = 1':<34}{size:>11,}{cycle.bare * 1000:>9.2f}{'1.00':>8}")
        least = cycle.bare * cycle.least * 1000
        lines.append(f"{'  ' + LEAST:<34}{size:>11,}{least:>9.2f}{cycle.least:>8.2f}")
        lines.append(f"{'  reconcile':<34}{size:>11,}{cycle.library * 1000:>9.2f}{cycle.ratio:>8.2f}")
        lines.append(f"  the vault after {CYCLES} events to 1 MB: {cycle.vault / 1e6:.1f} MB on the disk")
    return "\n".join(lines)


def _append(workspace: Workspace, name: str, content: str = "A question.") -> None:
    from reconcile import new_event

    lock = workspace.lock_conversation(workspace.acquire(name))
    assert lock is not None
    with lock.into_mut() as mut:
        mut.update_events(lambda events: events.append(new_event("chat_request", content=content)))


def _cycles(project: str, name: str, place: str, count: int) -> list[tuple[float, float, float]]:
    from reconcile import Workspace

    found = []
    with Workspace.open(project) as workspace, contextlib.closing(_database(place)) as database:
        handle = workspace.acquire(name)
        for number in range(count + 5):
            began = time.perf_counter()
            _append(workspace, name)
            between = time.perf_counter()
            content = json.dumps(list(workspace.events(handle)), indent=2, ensure_ascii=False).encode() + b"\n"
            begins = time.perf_counter()
            for side in ("store", "workspace"):
                _write(Path(place, side), content)
            ends = time.perf_counter()
            _least(database, place, number, content)
            found.append((between - began, ends - begins, time.perf_counter() - ends))
    return found[5:]  # connections and directories are made by the first


def _database(place: str) -> sqlite3.Connection:
    database = sqlite3.connect(Path(place, "state.sqlite"))
    database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE journal (step, text)")
    return database


def _least(database: sqlite3.Connection, place: str, number: int, content: bytes) -> None:
    """Write the same bytes with what is promised.

    The journal says what will be done, the vault has the new version, the renames are on the disk, and the journal says
    that it is done.
    """
    with database:
        database.execute("INSERT INTO journal VALUES (?, ?)", (number, "begin"))
    _write(Path(place, str(number)), content)
    _flush_directory(place)
    for side in ("least-store", "least-workspace"):
        _write(Path(place, side), content)
    _flush_directory(place)
    with database:
        database.execute("INSERT INTO journal VALUES (?, ?)", (number, "end"))


def _flush_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _vault(project: str, name: str, count: int) -> int:
    """Return the bytes on the disk that the versions of a large stream need, if it grows by so many events."""
    from reconcile import Workspace

    with Workspace.open(project) as workspace:
        _append(workspace, name, "x" * LARGE)
        before = _kept()
        for _ in range(count):
            _append(workspace, name)
    return _kept() - before


def _kept() -> int:
    objects = Path(os.environ["RECONCILE_STATE_DIR"]).glob("*/vault/objects/*/*")
    return sum(path.stat().st_blocks * 512 for path in objects)


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        os.write(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)


if __name__ == "__main__":
    measured = _cycles(sys.argv[1], sys.argv[2], sys.argv[4], int(sys.argv[5]))
    print(json.dumps((measured, _vault(sys.argv[1], sys.argv[3], int(sys.argv[5])))))

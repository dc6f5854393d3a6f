"""What one event costs through the library, against writing the same bytes to both sides with nothing around it.

``python -P tests/bench/guards.py PROJECT NAME OTHER PLACE CYCLES`` measures, and prints JSON: the seconds of each,
and the bytes that the vault gets if a stream of 1 MB grows by so many events.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile import Workspace
    from tests.bench.bench import Bench

CYCLES = 200
LARGE = 1_000_000
"""Bytes of a large stream."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Medians in seconds, and that of the ratios of neighbours; bytes that a large stream leaves in the vault."""

    library: float
    bare: float
    ratio: float
    vault: int


def measure(bench: Bench) -> Cycle:
    bench.settle()
    place = bench.base / "bare"
    place.mkdir()
    words = [sys.executable, "-P", __file__, str(bench.project), *bench.names[:2], str(place), str(CYCLES)]
    ran = subprocess.run(words, env=bench.environment, capture_output=True, check=True)
    pairs, vault = json.loads(ran.stdout)
    library, bare = ([pair[at] for pair in pairs] for at in (0, 1))
    return Cycle(median(library), median(bare), median(one / other for one, other in pairs), vault)


def render(found: dict[int, Cycle]) -> str:
    """Lay the figures out."""
    lines = ["one event through the library: lock, mutate, on both sides, unlock"]
    lines.append(f"{'':<30}{'conversations':>15}{'ms':>9}{'ratio':>8}")
    for size, cycle in found.items():
        lines.append(f"{'  write, fsync, rename, twice = 1':<34}{size:>11,}{cycle.bare * 1000:>9.2f}{'1.00':>8}")
        lines.append(f"{'  reconcile':<34}{size:>11,}{cycle.library * 1000:>9.2f}{cycle.ratio:>8.2f}")
        lines.append(f"  the vault after {CYCLES} events to 1 MB: {cycle.vault / 1e6:.1f} MB on the disk")
    return "\n".join(lines)


def _append(workspace: Workspace, name: str, content: str = "A question.") -> None:
    from reconcile import new_event

    lock = workspace.lock_conversation(workspace.acquire(name))
    assert lock is not None
    with lock.into_mut() as mut:
        mut.update_events(lambda events: events.append(new_event("chat_request", content=content)))


def _cycles(project: str, name: str, place: str, count: int) -> list[tuple[float, float]]:
    from reconcile import Workspace

    pairs = []
    with Workspace.open(project) as workspace:
        handle = workspace.acquire(name)
        for _ in range(count + 5):
            began = time.perf_counter()
            _append(workspace, name)
            between = time.perf_counter()
            content = json.dumps(list(workspace.events(handle)), indent=2, ensure_ascii=False).encode() + b"\n"
            begins = time.perf_counter()
            for side in ("store", "workspace"):
                _write(Path(place, side), content)
            pairs.append((between - began, time.perf_counter() - begins))
    return pairs[5:]  # connections and directories are made by the first


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

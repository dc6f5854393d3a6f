"""What one event costs through the library, against writing the same bytes to both sides with nothing around it.

``python -P tests/bench/guards.py PROJECT NAME PLACE CYCLES`` measures, and prints the seconds of each as JSON.
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
    from tests.bench.bench import Bench

CYCLES = 200


@dataclass(frozen=True, slots=True)
class Cycle:
    """Medians in seconds, and that of the ratios of neighbours."""

    library: float
    bare: float
    ratio: float


def measure(bench: Bench) -> Cycle:
    bench.settle()
    place = bench.base / "bare"
    place.mkdir()
    words = [sys.executable, "-P", __file__, str(bench.project), bench.names[0], str(place), str(CYCLES)]
    ran = subprocess.run(words, env=bench.environment, capture_output=True, check=True)
    pairs = json.loads(ran.stdout)
    library, bare = ([pair[at] for pair in pairs] for at in (0, 1))
    return Cycle(median(library), median(bare), median(one / other for one, other in pairs))


def render(found: dict[int, Cycle]) -> str:
    """Lay the figures out."""
    lines = ["one event through the library: lock, mutate, on both sides, unlock"]
    lines.append(f"{'':<30}{'conversations':>15}{'ms':>9}{'ratio':>8}")
    for size, cycle in found.items():
        lines.append(f"{'  write, fsync, rename, twice = 1':<34}{size:>11,}{cycle.bare * 1000:>9.2f}{'1.00':>8}")
        lines.append(f"{'  reconcile':<34}{size:>11,}{cycle.library * 1000:>9.2f}{cycle.ratio:>8.2f}")
    return "\n".join(lines)


def _cycles(project: str, name: str, place: str, count: int) -> list[tuple[float, float]]:
    from reconcile import Workspace, new_event

    pairs = []
    with Workspace.open(project) as workspace:
        handle = workspace.acquire(name)
        for _ in range(count + 5):
            began = time.perf_counter()
            lock = workspace.lock_conversation(handle)
            assert lock is not None
            with lock.into_mut() as mut:
                mut.update_events(lambda events: events.append(new_event("chat_request", content="A question.")))
            between = time.perf_counter()
            content = json.dumps(list(workspace.events(handle)), indent=2, ensure_ascii=False).encode() + b"\n"
            begins = time.perf_counter()
            for side in ("store", "workspace"):
                _write(Path(place, side), content)
            pairs.append((between - began, time.perf_counter() - begins))
    return pairs[5:]  # connections and directories are made by the first


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
    print(json.dumps(_cycles(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))

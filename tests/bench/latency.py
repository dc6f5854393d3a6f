"""How long a change takes to the other side, with a watcher and with the usual loop around rsync."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from tests.bench import stores
from tests.bench.bench import RECONCILE
from tests.bench.race import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.bench import Bench

CHANGES = 200
LONGEST = 60.0
"""Seconds after which there are changes enough: each takes the loop more than one where the store is large."""
FEWEST = 20
IDLE = 10.0
PATIENCE = 120.0
SETTLE = 0.15
_HEARD = 5.0
"""Seconds after which a change was not heard of: to carry it over takes the loop more than one in a large store."""
_LOOP = (
    "inotifywait -q -m -r -e close_write,moved_to,create,delete --format . {source} | "
    "while read -r _; do while read -r -t 0.05 _; do :; done; rsync -a {source}/ {target}/; done"
)


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from the end of a write to the finished copy, beyond the quiet time, of so many changes; CPU while idle
    in percent of a core; peak memory of the watching process in bytes.
    """

    changes: int
    median: float
    p99: float
    idle: float
    memory: int


def measure(bench: Bench) -> dict[str, Latency | None]:
    bench.settle()
    looped = _loop(bench)
    bench.settle()
    return {"inotifywait, rsync -a": looped, "reconcile watch": _watching(bench)}


def _watching(bench: Bench) -> Latency:
    """Measure ``reconcile watch``."""
    words = [RECONCILE, "watch", "--json", "-w", str(bench.project), "--settle", str(SETTLE)]
    said = bench.base / "said"
    with (
        said.open("wb") as file,
        subprocess.Popen(words, env=bench.environment, stdout=file) as process,
        _ended(process),
    ):
        end = time.monotonic() + PATIENCE
        while b'"watching"' not in said.read_bytes():
            if time.monotonic() > end or process.poll() is not None:
                raise BenchError(f"the watcher doesn't watch: {said.read_text()}")
            time.sleep(0.05)
        return _measured(bench, process.pid, bench.store, SETTLE)


def _loop(bench: Bench) -> Latency | None:
    """Measure a loop of inotifywait and rsync; None where either is missing."""
    if not shutil.which("inotifywait") or not shutil.which("rsync"):
        return None
    target = bench.base / "loop"
    subprocess.run(["rsync", "-a", f"{bench.workspace}/", f"{target}/"], check=True)
    script = _LOOP.format(source=bench.workspace, target=target)
    with (
        subprocess.Popen(["bash", "-c", script], env=bench.environment, start_new_session=True) as process,
        _ended(process),
    ):
        _until_it_listens(bench, target)
        return _measured(bench, process.pid, target, 0.05)


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, 15)
        else:
            process.terminate()


def _until_it_listens(bench: Bench, target: Path) -> None:
    """Change one conversation again and again until the loop has heard of it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        path = _edit(bench, bench.names[0])
        soon = time.monotonic() + _HEARD
        while time.monotonic() < soon:
            time.sleep(0.1)
            if (target / path.relative_to(bench.workspace)).stat().st_size == path.stat().st_size:
                return
    raise BenchError("the loop doesn't hear anything")


def _measured(bench: Bench, pid: int, target: Path, quiet: float) -> Latency:
    chance = random.Random(stores.SEED)
    times: list[float] = []
    end = time.monotonic() + LONGEST
    for name in chance.choices(bench.names, k=CHANGES):
        if len(times) >= FEWEST and time.monotonic() > end:
            break
        path = _edit(bench, name)
        begin = time.monotonic()
        size, copy = path.stat().st_size, target / path.relative_to(bench.workspace)
        while copy.stat().st_size != size:
            if time.monotonic() - begin > PATIENCE:
                raise BenchError(f"{copy} is not written within {PATIENCE:g} s")
            time.sleep(0.0005)
        times.append(time.monotonic() - begin - quiet)
        time.sleep(0.05)
    time.sleep(2)
    before = _cpu(pid)
    time.sleep(IDLE)
    idle = (_cpu(pid) - before) / IDLE * 100
    return Latency(len(times), median(times), quantiles(times, n=100)[98], idle, _memory(pid))


def _edit(bench: Bench, name: str) -> Path:
    path = bench.workspace / name / "events.json"
    other = path.with_name(".events.tmp")
    event = '  {"timestamp": "2026-11-22 10:00:00.0", "type": "chat_request", "content": "'
    event += f'{time.monotonic_ns()}"}}'
    other.write_bytes(path.read_bytes().removesuffix(b"\n]\n") + f",\n{event}\n]\n".encode())
    other.rename(path)
    return path


def _family(pid: int) -> list[int]:
    """The process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def _cpu(pid: int) -> float:
    ticks = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    kept = 0
    for each in _family(pid):
        lines = Path(f"/proc/{each}/status").read_text().splitlines()
        kept += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return kept


def render(found: dict[int, dict[str, Latency | None]]) -> str:
    """Lay out the table."""
    lines = ["from the end of a write to the finished copy, beyond the quiet time (ms), of n changes; idle CPU; memory"]
    lines.append(f"{'':<24}" + "".join(f"{size:>18,}{'':>18}" for size in found).rstrip())
    heads = (("n", 6), ("median", 8), ("p99", 8), ("idle %", 8), ("MB", 6))
    lines.append(f"{'':<24}" + "".join(f"{head:>{width}}" for head, width in heads) * len(found))
    for label in next(iter(found.values())):
        cells = "".join(_cells(by_label[label]) for by_label in found.values())
        lines.append(f"{'  ' + label:<24}{cells}")
    return "\n".join(lines)


def _cells(found: Latency | None) -> str:
    if found is None:
        return f"{'-':>6}{'-':>8}{'-':>8}{'-':>8}{'-':>6}"
    times = f"{found.median * 1000:8.1f}{found.p99 * 1000:8.1f}"
    return f"{found.changes:6}{times}{found.idle:8.2f}{found.memory / 1e6:6.0f}"

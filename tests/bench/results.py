"""What was measured, and what is read off it. A file keeps it, so that a benchmark can be run in pieces."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import msgspec

from tests.bench.guards import Cycle  # noqa: TC001 - msgspec reads the annotations
from tests.bench.latency import Latency  # noqa: TC001 - msgspec reads the annotations
from tests.bench.race import Runs

if TYPE_CHECKING:
    from pathlib import Path

START_COUNT = 10
"""Conversations where a command costs its start and little more."""

BySize = dict[int, Runs]


class Results(msgspec.Struct):
    """``heading`` says where and with what; ``floor`` is the peak in bytes below which memory can't be told."""

    heading: list[str]
    floor: int
    sections: dict[str, BySize] = {}
    library: dict[int, Cycle] = {}
    watch: dict[int, dict[str, Latency | None]] = {}


def begun(path: Path | None, heading: list[str], floor: int) -> Results:
    """Results to add to: what the file holds already, if any. The lines of all headings are kept, each once."""
    if path is None or not path.exists():
        return Results(heading, floor)
    found = load(path)
    found.heading = list(dict.fromkeys(found.heading + heading))
    found.floor = max(found.floor, floor)
    return found


def load(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def save(found: Results, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))


def seconds(runs: Runs, label: str) -> float:
    return median(sample.seconds for sample in runs[label])


def peak(runs: Runs, label: str) -> float:
    return median(sample.peak for sample in runs[label])


def ratio(runs: Runs, label: str, reference: str) -> float | None:
    """The median of the ratios inside the rounds; None where the reference didn't run."""
    if reference not in runs:
        return None
    pairs = zip(runs[label], runs[reference], strict=True)
    return median(own.seconds / other.seconds for own, other in pairs)


def growth(found: BySize, label: str) -> float | None:
    """How many times longer the largest takes than the smallest, the start left out; None where there is one size."""
    sizes = shown(found)
    return seconds(found[sizes[-1]], label) / seconds(found[sizes[0]], label) if len(sizes) > 1 else None


def memory_each(found: BySize, label: str, floor: float) -> float | None:
    """Bytes of the peak for each conversation between the smallest and the largest number of them.

    What can't be told of the smallest counts as the floor; None where the largest can't be told, or is the only one.
    """
    least, most = min(found), max(found)
    if least == most or is_below(floor, peak(found[most], label)):
        return None
    return (peak(found[most], label) - max(floor, peak(found[least], label))) / (most - least)


def is_below(floor: float, found: float) -> bool:
    """Whether a peak may be that of the program that started it."""
    return found <= floor * 1.02


def shown(found: BySize) -> list[int]:
    """The sizes that have a column: not the start, where there are others."""
    return sorted(size for size in found if size != START_COUNT) or sorted(found)

"""What reconcile is to reach, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench import results
from tests.bench.least import LABEL as LEAST
from tests.bench.sections import GROWTH, SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.results import Results

LARGE = 10_000
"""Conversations from which the second limit counts."""

COMMANDS = {
    "--json": 1.5,
    **dict.fromkeys(("status", "status ID", "diff ID", "--only ID"), 2.0),
    **dict.fromkeys(
        ("ls", "ls --tree", "local ID", "project ID", "set-parent ID PARENT", "rm ID", "resolve ID", "undo"), 3.0
    ),
    "doctor": 4.0,
}
"""How many times as long as a run with nothing to do."""
RATIOS: dict[tuple[str, str, str], tuple[float | None, float]] = {
    ("no-op", "reconcile", "rsync -a --dry-run"): (1.0, 0.5),
    ("no-op", "reconcile", "unison -batch -times"): (1.0, 0.45),
    ("one", "reconcile", "rsync -a"): (0.7, 0.45),
    ("changed", "reconcile", "rsync -a"): (1.0, 0.55),
    ("projection", "reconcile", "cp -a, sync -f"): (1.2, 1.2),
    ("first", "reconcile", "rsync -ac"): (1.5, 1.5),
    ("find", "reconcile find", "rg -i"): (None, 4.0),
    ("start", "reconcile --version", "python -c pass"): (4.0, 4.0),
    **{("commands", f"reconcile {words}", "reconcile"): (None, limit) for words, limit in COMMANDS.items()},
}
"""How many times as long as a peer, by section, contender and peer: with few conversations, and with many. None: no
limit, because the start of the program is most of it.
"""
_COMMANDS = ("commands", "growth-commands", "find")
"""The sections of commands other than a run, which are judged by their ratios alone."""
MEMORY = 1.5
"""KB a conversation, above the start, with many conversations."""
MEMORY_OF_ALL = dict.fromkeys(("projection", "growth-projection", "first", "growth-first"), 4.0)
"""The same, for the runs that read or write everything."""
GROWTH_PER_SIZE = 1.1
"""How many times longer, for each time that there are more conversations: 11 times for ten times as many."""
LATENCY = 20.0
"""Milliseconds from a write to the finished copy beside a watcher, beyond the quiet time: the median."""

WATCHED = 30_000
RESIDENT = 120.0
"""Megabytes that a watcher has at most with that many conversations."""

EVENT = 3.0
"""How many times as long as two bare writes: an event through the library."""
VAULT = 5.0
"""Megabytes that a stream of 1 MB leaves in the vault if it grows by 200 events."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target, for so many conversations: the limit, what was measured, and the least that Python takes, if known."""

    work: str
    size: str
    limit: float
    measured: float
    least: float | None = None

    @property
    def met(self) -> bool:
        return self.measured <= self.limit


def verdicts(found: Results) -> list[Verdict]:
    """Judge every target for which something was measured."""
    return [*_ratios(found), *_growth(found), *_memory(found), *_latency(found), *_library(found)]


def _ratios(found: Results) -> Iterator[Verdict]:
    for (name, label, reference), (few, many) in RATIOS.items():
        for section in _COMMANDS if name == "commands" else (name,):
            by_size = found.sections.get(section, {})
            for size in results.shown(by_size):
                ratio = results.ratio(by_size[size], label, reference)
                limit = many if size >= LARGE else few
                if ratio is not None and limit is not None:
                    work = label if name == "commands" else SECTIONS[section].title.partition(":")[0]
                    lower = results.ratio(by_size[size], LEAST, reference) if LEAST in by_size[size] else None
                    yield Verdict(f"{work}, to {reference}", f"{size:,}", limit, ratio, lower)


def _growth(found: Results) -> Iterator[Verdict]:
    for section in [name for name in GROWTH if name in found.sections and name not in _COMMANDS]:
        by_size = found.sections[section]
        growth = results.growth(by_size, "reconcile")
        if growth is not None:
            least, most = min(by_size), max(by_size)
            yield Verdict(SECTIONS[section].title, f"{most:,}", GROWTH_PER_SIZE * most / least, growth)


def _memory(found: Results) -> Iterator[Verdict]:
    for section, by_size in found.sections.items():
        judged = max(by_size) >= LARGE and section not in _COMMANDS
        each = results.memory_each(by_size, "reconcile", found.floor) if judged else None
        if each is not None:
            work = f"KB a conversation, {SECTIONS[section].title.partition(',')[0]}"
            least = results.memory_each(by_size, LEAST, found.floor) if LEAST in by_size[max(by_size)] else None
            lower = None if least is None else least / 1000
            yield Verdict(work, f"{max(by_size):,}", MEMORY_OF_ALL.get(section, MEMORY), each / 1000, lower)


def _latency(found: Results) -> Iterator[Verdict]:
    for size, by_label in found.watch.items():
        if latency := by_label["reconcile watch"]:
            yield Verdict("reconcile watch, median latency in ms", f"{size:,}", LATENCY, latency.median * 1000)
            if size == WATCHED:
                yield Verdict("reconcile watch, largest resident MB", f"{size:,}", RESIDENT, latency.memory / 1e6)


def _library(found: Results) -> Iterator[Verdict]:
    for size, cycle in found.library.items():
        yield Verdict("an event through the library, to two bare writes", f"{size:,}", EVENT, cycle.ratio, cycle.least)
        yield Verdict("200 events to 1 MB, MB in the vault", f"{size:,}", VAULT, cycle.vault / 1e6)


def render(found: list[Verdict]) -> str:
    """Lay out the table."""
    lines = ["targets (at most)", f"{'':<62}{'size':>9}{'target':>9}{'measured':>10}{'least':>8}  met"]
    for each in found:
        met, least = "yes" if each.met else "NO", "" if each.least is None else f"{each.least:.2f}"
        lines.append(f"{'  ' + each.work:<62}{each.size:>9}{each.limit:>9.2f}{each.measured:>10.2f}{least:>8}  {met}")
    return "\n".join(lines)

"""The tables that are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench import guards, latency, results, targets
from tests.bench.sections import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.race import Runs
    from tests.bench.results import BySize, Results
    from tests.bench.sections import Section

_LABEL = 30
_MB = 1_000_000
_LEGEND = (
    "ratio: to the command marked = 1, within each round; medians; MB: peak memory\n"
    "KB each: what the peak grows by for each conversation, from 10 of them (the first shown of growth) to the last"
)


def render(found: Results) -> str:
    """Lay out all results."""
    parts = ["\n".join([*found.heading, _LEGEND])]
    parts += [
        _section(section, found.sections[name], found.floor)
        for name, section in SECTIONS.items()
        if name in found.sections
    ]
    parts += [guards.render(found.library)] if found.library else []
    parts += [latency.render(found.watch)] if found.watch else []
    judged = targets.verdicts(found)
    parts += [targets.render(judged)] if judged else []
    return "\n\n".join(parts)


def _section(section: Section, found: BySize, floor: float) -> str:
    sizes = results.shown(found)
    heads = [f"{size:>17,}         " for size in sizes]
    ends = f"{'growth' if len(sizes) > 1 else '':>6}{'KB each' if len(found) > 1 else '':>9}"
    lines = [
        section.title,
        _row("", heads, ""),
        _row("", [f"{'seconds':>9}{'ratio':>8}{'MB':>7}  " for _ in sizes], ends),
    ]
    for label in found[sizes[0]]:
        cells = [_cell(found[size], label, section.reference, floor) for size in sizes]
        mark = "  = 1" if label == section.reference else ""
        lines.append(_row("  " + label + mark, cells, _ends(found, label, floor)))
    return "\n".join(lines)


def _cell(runs: Runs, label: str, reference: str, floor: float) -> str:
    ratio, peak = results.ratio(runs, label, reference), results.peak(runs, label)
    times = f"{results.seconds(runs, label):9.3f}{'-' if ratio is None else f'{ratio:.2f}':>8}"
    memory = f"<{floor / _MB:.0f}" if results.is_below(floor, peak) else f"{peak / _MB:.0f}"
    return f"{times}{memory:>7}  "


def _ends(found: BySize, label: str, floor: float) -> str:
    growth, each = results.growth(found, label), results.memory_each(found, label, floor)
    times = "" if growth is None else f"{growth:.1f}x"
    return f"{times:>6}{'' if each is None else f'{each / 1000:.1f}':>9}"


def _row(label: str, cells: Sequence[str], ends: str) -> str:
    return f"{label:<{_LABEL}}{''.join(cells)}{ends}".rstrip()

"""The table that is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.race import Figured

_LABEL = 30
_MB = 1_000_000
Results = dict[str, dict[int, "Figured"]]
"""Figures by section, then by the number of conversations, then by contender."""


def render(results: Results, references: Mapping[str, str], floor: float) -> str:
    """Lay out all results; ``floor`` is the peak below which memory can't be told."""
    return "\n\n".join(_section(name, found, references[name], floor) for name, found in results.items())


def _section(name: str, found: Mapping[int, Figured], reference: str, floor: float) -> str:
    sizes = sorted(found)
    grown = len(sizes) > 1
    heads = [f"{size:>17,}         " for size in sizes]
    lines = [
        name,
        _row("", heads, ""),
        _row("", [f"{'seconds':>9}{'ratio':>8}{'MB':>7}  " for _ in sizes], "growth" if grown else ""),
    ]
    for label in found[sizes[0]]:
        cells = [_cell(found[size], label, floor) for size in sizes]
        growth = ""
        if grown:
            growth = f"{found[sizes[-1]][label].seconds / found[sizes[0]][label].seconds:5.1f}x"
        mark = "  = 1" if label == reference else ""
        lines.append(_row("  " + label + mark, cells, growth))
    return "\n".join(lines)


def _cell(figured: Figured, label: str, floor: float) -> str:
    figures = figured[label]
    ratio = "-" if figures.ratio is None else f"{figures.ratio:.2f}"
    below = figures.peak <= floor * 1.02
    peak = f"<{floor / _MB:.0f}" if below else f"{figures.peak / _MB:.0f}"
    return f"{figures.seconds:9.3f}{ratio:>8}{peak:>7}  "


def _row(label: str, cells: Sequence[str], growth: str) -> str:
    return f"{label:<{_LABEL}}{''.join(cells)}{growth}".rstrip()

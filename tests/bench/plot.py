"""Draws cost over size: ``python -m tests.bench.plot FILE > docs/benchmarks.svg``, of what ``--save FILE`` kept.

Plain SVG with both axes logarithmic: a panel for every question that was asked at two sizes, a line for every
tool, named at its end. Colours follow the reader's light or dark mode.
"""

from __future__ import annotations

import sys
from math import ceil, log10
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from tests.bench import results
from tests.bench.sections import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.results import BySize, Results

COLUMNS = 2
WIDTH, HEIGHT = 450, 300
"""Of a panel."""
LEFT, TOP, ACROSS, DOWN = 54, 44, 240, 200
"""Of its drawing inside it."""
LINE = 14
"""How far names stay apart."""

_COLOURS = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#656d76", "#8b949e"),
    "grid": ("#d8dee4", "#30363d"),
    "reconcile": ("#0550ae", "#79c0ff"),
    "rsync": ("#b35900", "#f0883e"),
    "unison": ("#8250df", "#d2a8ff"),
    "git": ("#a40e26", "#ff7b72"),
    "cp": ("#1a7f37", "#56d364"),
    "python": ("#656d76", "#8b949e"),
}
"""In light and in dark mode."""
_STYLE = """
text { font: 12px system-ui, sans-serif }
text.title { font-weight: 600 }
text.faint { font-size: 11px }
text.bold { font-weight: 600 }
polyline { stroke-width: 1.5 }
polyline.bold { stroke-width: 3 }
polyline.dashed { stroke-dasharray: 5 3 }
"""
_TENS = [10.0**power for power in range(-4, 7)]
_STEPS = [step * ten for ten in _TENS for step in (1, 2, 5)]


def draw(found: Results) -> str:
    """Draw every question that was asked at two sizes or more."""
    asked = [(SECTIONS[name].title, by_size) for name, by_size in found.sections.items() if len(by_size) > 1]
    panels = [panel(title, by_size, number) for number, (title, by_size) in enumerate(asked)]
    width, height = WIDTH * COLUMNS, HEIGHT * ceil(len(panels) / COLUMNS)
    size = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} role="img">',
        "<title>Seconds over the number of conversations, by question and tool</title>",
        f"<style>{_STYLE}{_rules(0)}@media (prefers-color-scheme: dark) {{\n{_rules(1)}}}</style>",
        f'<rect class="paper" {size}/>',
        *panels,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def panel(title: str, found: BySize, number: int) -> str:
    """One question."""
    sizes = sorted(found)
    labels = list(found[sizes[0]])
    times = {label: [results.seconds(found[size], label) for size in sizes] for label in labels}
    every = [each for found_times in times.values() for each in found_times]
    across, down = Axis(sizes[0], sizes[-1], ACROSS), Axis(*_around(every), DOWN)
    row, column = divmod(number, COLUMNS)
    lines = [f'<g transform="translate({column * WIDTH + LEFT} {row * HEIGHT + TOP})">']
    lines.append(f'<text class="title ink" x="{-LEFT + 12}" y="-20">{escape(title)}</text>')
    lines += _grid(across, down)
    at = _apart({label: DOWN - down.at(ends[-1]) for label, ends in times.items()})
    for label in labels:
        points = " ".join(
            f"{across.at(size):.1f},{DOWN - down.at(each):.1f}" for size, each in zip(sizes, times[label], strict=True)
        )
        name, style = escape(label), _class(label, labels)
        lines.append(f'<polyline class="{style}" points="{points}"><title>{name}</title></polyline>')
        lines.append(f'<text class="{style}" x="{ACROSS + 8}" y="{at[label] + 4:.1f}">{name}</text>')
    return "\n".join([*lines, "</g>"])


class Axis:
    """A logarithmic axis from ``low`` to ``high``, some pixels long."""

    def __init__(self, low: float, high: float, length: int) -> None:
        self.low, self.high, self.length = low, high, length

    def at(self, value: float) -> float:
        span = log10(self.high / self.low) or 1.0
        return log10(value / self.low) / span * self.length

    def ticks(self) -> list[float]:
        """Powers of ten, or twice and five times them as well where there are less than two of those."""
        tens, steps = ([tick for tick in ticks if self.low <= tick <= self.high] for ticks in (_TENS, _STEPS))
        return tens if len(tens) > 1 else steps


def _around(values: list[float]) -> tuple[float, float]:
    """The ticks below and above."""
    return max(tick for tick in _STEPS if tick <= min(values)), min(tick for tick in _STEPS if tick >= max(values))


def _grid(across: Axis, down: Axis) -> Iterator[str]:
    for tick in across.ticks():
        x = across.at(tick)
        yield f'<path class="grid" d="M{x:.1f} 0V{DOWN}"/>'
        yield f'<text class="faint" text-anchor="middle" x="{x:.1f}" y="{DOWN + 18}">{tick:,.0f}</text>'
    for tick in down.ticks():
        y = DOWN - down.at(tick)
        yield f'<path class="grid" d="M0 {y:.1f}H{ACROSS}"/>'
        yield f'<text class="faint" text-anchor="end" x="-6" y="{y + 4:.1f}">{tick:g} s</text>'
    yield f'<text class="faint" x="{ACROSS + 30}" y="{DOWN + 18}">conversations</text>'


def _apart(wanted: dict[str, float]) -> dict[str, float]:
    """Where names go: as near as can be to where their lines end, in the same order, and not over each other."""
    order = sorted(wanted, key=lambda label: wanted[label])
    placed: dict[str, float] = {}
    lowest = DOWN + 2.0
    for label in reversed(order):
        placed[label] = min(wanted[label], lowest)
        lowest = placed[label] - LINE
    return placed


def _class(label: str, labels: list[str]) -> str:
    """A colour for each program; dashed is what has more options than another line of the same."""
    tool = label.partition(" ")[0]
    plain = min((each for each in labels if each.partition(" ")[0] == tool), key=len)
    return " ".join([tool, *(["bold"] if label == "reconcile" else []), *(["dashed"] if label != plain else [])])


def _rules(mode: int) -> str:
    rules = ""
    for name, colours in _COLOURS.items():
        used = "stroke" if name == "grid" else "fill"
        rules += f".{name} {{ {used}: {colours[mode]} }} polyline.{name} {{ fill: none; stroke: {colours[mode]} }}\n"
    return rules


if __name__ == "__main__":
    sys.stdout.write(draw(results.load(Path(sys.argv[1]))))

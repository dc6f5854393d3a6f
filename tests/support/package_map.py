"""The map of the packages: ``python -m tests.support.package_map`` (`make map`) draws docs/map.svg from the imports.

A box is a package, with its purpose from its docstring. An arrow is an import. An arrow is left out where a path of
other arrows leads to the same box, so that the drawing stays readable; the tooltip of a box lists all of its imports.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import grimp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROJECT = Path(__file__).parents[2]
MAP = PROJECT / "docs" / "map.svg"
SOURCES = {"reconcile": PROJECT / "reconcile", "reconcile_cli": PROJECT / "cli"}
"""Top-level package to its directory."""
COMMAND = "cli"
"""The name of the box of ``reconcile_cli``: its directory."""
BASE = frozenset({"errors", "signals", "version"})
"""Modules that every package may import. They share a box without arrows."""
BASE_NAME = ", ".join(sorted(BASE))
BASE_PURPOSE = "Every package may import these"

BOX_WIDTH, BOX_HEIGHT = 224, 112
GAP, LANE, ROW = 28, 18, 168
"""Between two boxes, the width of an arrow that passes a row, and from row to row; pixels."""
MARGIN, HEADER = 24, 92
TEXT_COLUMNS, TEXT_LINES = 33, 3
TOLERANCE = 0.2
"""How far the figures of the drawing may be from the present ones: not every commit shall draw it again."""

_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #3d444d }
text.name { font-size: 15px; font-weight: 600; fill: #1f2328 }
text.title { font-size: 16px; font-weight: 600; fill: #1f2328 }
text.figures { fill: #59636e }
text.inner { font-style: italic }
rect.paper { fill: #ffffff }
rect.box { fill: #f6f8fa; stroke: #59636e }
rect.pure { fill: #ddf4e4; stroke: #1a7f37 }
path.arrow { fill: none; stroke: #6e7781; stroke-width: 1.4; marker-end: url(#head) }
#head path { fill: #6e7781 }
@media (prefers-color-scheme: dark) {
  text { fill: #c9d1d9 }
  text.name, text.title { fill: #f0f6fc }
  text.figures { fill: #9198a1 }
  rect.paper { fill: #0d1117 }
  rect.box { fill: #21262d; stroke: #9198a1 }
  rect.pure { fill: #12261e; stroke: #3fb950 }
  path.arrow { stroke: #9198a1 }
  #head path { fill: #9198a1 }
}
"""


_ARROWHEAD = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L10 5L0 10z"/></marker></defs>'
)


@dataclass(frozen=True)
class Package:
    """A package as the drawing shows it. ``modules`` doesn't count ``__init__.py``, ``lines`` does."""

    name: str
    purpose: str
    inner: tuple[str, ...]
    modules: int
    lines: int
    pure: bool


class PackageMap:
    """The packages and their imports, read from the sources."""

    def __init__(self) -> None:
        self._settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))

    @cached_property
    def imports(self) -> Mapping[str, Counter[str]]:
        """Return for each package how many imports of other packages its modules have, those for types included."""
        graph = grimp.build_graph(*SOURCES, cache_dir=None)
        imports: dict[str, Counter[str]] = {}
        for module in sorted(graph.modules):
            importer = _package_of(module)
            if importer is None:
                continue
            of_package = imports.setdefault(importer, Counter())
            targets = map(_package_of, graph.find_modules_directly_imported_by(module))
            of_package.update(target for target in targets if target not in (None, importer))
        return imports

    @cached_property
    def packages(self) -> Mapping[str, Package]:
        """Return the packages by name, the modules of `BASE` as one."""
        return {name: self._package(name) for name in sorted(self.imports.keys() - BASE)} | {BASE_NAME: self._base()}

    @cached_property
    def arrows(self) -> Mapping[str, tuple[str, ...]]:
        """Return for each package the imported ones that no other arrow leads to by a longer path."""
        imports = {name: set(self.imports.get(name, ())) - BASE for name in self.packages}
        below: dict[str, set[str]] = {}

        def reached(name: str, path: tuple[str, ...] = ()) -> set[str]:
            if name in path:
                raise ValueError(f"an import circle: {' -> '.join((*path, name))}")
            if name not in below:
                below[name] = set().union(*({target} | reached(target, (*path, name)) for target in imports[name]))
            return below[name]

        return {name: tuple(sorted(targets - set().union(*map(reached, targets)))) for name, targets in imports.items()}

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Return the row of each package, counted from the bottom, so that every arrow leads downwards."""
        rows: dict[str, int] = {}

        def row(name: str) -> int:
            if name not in rows:
                rows[name] = 1 + max(map(row, self.arrows[name]), default=-1)
            return rows[name]

        for name in self.arrows:
            row(name)
        # A package with as many arrows to it as from it is moved up, so that fewer arrows pass a row.
        for name in sorted(rows, key=lambda name: (-rows[name], name)):
            importers = [importer for importer, targets in self.arrows.items() if name in targets]
            if importers and len(importers) >= len(self.arrows[name]):
                rows[name] = min(rows[importer] for importer in importers) - 1
        return rows

    def _package(self, name: str) -> Package:
        directory = SOURCES["reconcile_cli"] if name == COMMAND else SOURCES["reconcile"] / name
        single = directory.with_suffix(".py")
        files = sorted(directory.rglob("*.py")) if directory.is_dir() else [single]
        head = directory / "__init__.py" if directory.is_dir() else single
        docstring = ast.get_docstring(ast.parse(head.read_text(encoding="utf-8")))
        return Package(
            name=name,
            purpose=_purpose(docstring or ""),
            inner=tuple(sorted(path.parent.name for path in directory.glob("*/__init__.py"))),
            modules=sum(path.name != "__init__.py" for path in files),
            lines=sum(map(_lines, files)),
            pure=f"reconcile.{name}" in self._pure,
        )

    @staticmethod
    def _base() -> Package:
        lines = sum(_lines(SOURCES["reconcile"] / f"{name}.py") for name in BASE)
        return Package(BASE_NAME, BASE_PURPOSE, inner=(), modules=len(BASE), lines=lines, pure=False)

    @cached_property
    def _pure(self) -> set[str]:
        """Return the packages that a contract of import-linter forbids to import ``os``."""
        contracts = self._settings["tool"]["importlinter"]["contracts"]
        return {
            module
            for contract in contracts
            if contract["type"] == "forbidden" and "os" in contract["forbidden_modules"]
            for module in contract["source_modules"]
        }


def _package_of(module: str) -> str | None:
    """Return the package (or single module) directly below the top that a module belongs to; None: the top itself."""
    top, *inner = module.split(".")
    if top == "reconcile_cli":
        return COMMAND
    return inner[0] if inner and inner[0] != "__main__" else None


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def _purpose(docstring: str) -> str:
    """Return the first sentence of a docstring, without links and markup."""
    first = " ".join(docstring.split("\n\n", maxsplit=1)[0].split())
    return re.sub(r" \(docs/[^)]*\)|`", "", first).split(". ")[0].rstrip(".")


@dataclass(eq=False)
class _Node:
    """A box, or the place where a long arrow passes a row. ``x`` is its middle."""

    name: str
    width: int
    x: float = 0.0


class Layout:
    """Where the boxes and the arrows of a map are; rows from the bottom, pixels."""

    def __init__(self, package_map: PackageMap) -> None:
        self._rows: list[list[_Node]] = [[] for _ in range(max(package_map.rows.values()) + 1)]
        self._links: list[tuple[_Node, _Node]] = []
        self.arrows: list[list[_Node]] = []
        """Each arrow as the nodes that it passes, from the importer to the imported package."""
        boxes = {name: self._add(row, name, BOX_WIDTH) for name, row in package_map.rows.items()}
        for name, targets in package_map.arrows.items():
            for target in targets:
                top, bottom = package_map.rows[name], package_map.rows[target]
                lanes = [self._add(row, f"{name} -> {target}", LANE) for row in range(top - 1, bottom, -1)]
                self.arrows.append([boxes[name], *lanes, boxes[target]])
                self._links += pairwise(self.arrows[-1])
        self._order()
        self._place()

    def _add(self, row: int, name: str, width: int) -> _Node:
        node = _Node(name, width)
        self._rows[row].append(node)
        return node

    def _order(self) -> None:
        """Order each row so that few arrows cross, and that they are short. Rows are small: all orders are tried."""
        for _ in range(12):
            for row in [*self._rows, *reversed(self._rows)]:
                costs = {order: self._cost(row, order) for order in self._orders(row)}
                best = min(costs, key=lambda order: costs[order])
                row[:] = best

    @staticmethod
    def _orders(row: list[_Node]) -> Iterator[tuple[_Node, ...]]:
        """Yield all orders of a small row, and the swaps of two nodes of a larger one."""
        if len(row) <= 6:
            yield from permutations(row)
            return
        for one in range(len(row)):
            for other in range(one, len(row)):
                order = list(row)
                order[one], order[other] = order[other], order[one]
                yield tuple(order)

    def _cost(self, row: list[_Node], order: Sequence[_Node]) -> tuple[int, float]:
        """Return the crossings and the horizontal length of all links, with this order of a row."""
        positions: dict[_Node, float] = {}
        for nodes in self._rows:
            positions |= _middles(order if nodes is row else nodes)
        at = {node: number for number, nodes in enumerate(self._rows) for node in nodes}
        by_row: dict[int, list[tuple[float, float]]] = {}
        for upper, lower in self._links:
            by_row.setdefault(at[upper], []).append((positions[upper], positions[lower]))
        crossings = sum(
            (one[0] - other[0]) * (one[1] - other[1]) < 0
            for links in by_row.values()
            for number, one in enumerate(links)
            for other in links[:number]
        )
        return crossings, sum(abs(upper - lower) for links in by_row.values() for upper, lower in links)

    def _place(self) -> None:
        """Move each node towards the middle of those that it is linked to, as far as its row leaves room."""
        for row in self._rows:
            middles = _middles(row)
            for node in row:
                node.x = middles[node]
        neighbours: dict[_Node, list[_Node]] = {}
        for upper, lower in self._links:
            neighbours.setdefault(upper, []).append(lower)
            neighbours.setdefault(lower, []).append(upper)
        for _ in range(60):
            for row in self._rows:
                wanted = [_mean([near.x for near in neighbours.get(node, [node])]) for node in row]
                _spread(row, wanted)

    @property
    def width(self) -> float:
        """The width of the drawing."""
        nodes = [node for row in self._rows for node in row]
        left = min(node.x - node.width / 2 for node in nodes)
        for node in nodes:
            node.x += MARGIN - left
        return max(node.x + node.width / 2 for node in nodes) + MARGIN

    @property
    def height(self) -> int:
        """The height of the drawing."""
        return HEADER + (len(self._rows) - 1) * ROW + BOX_HEIGHT + MARGIN

    def boxes(self) -> Iterator[tuple[_Node, int]]:
        """Yield the boxes with the y of their upper edges."""
        for number, row in enumerate(self._rows):
            yield from ((node, self.top(number)) for node in row if node.width == BOX_WIDTH)

    def top(self, row: int) -> int:
        """Return the y of the upper edges of a row."""
        return HEADER + (len(self._rows) - 1 - row) * ROW

    def row_of(self, node: _Node) -> int:
        """Return the row of a node."""
        return next(number for number, row in enumerate(self._rows) if any(node is other for other in row))


def _middles(nodes: Sequence[_Node]) -> dict[_Node, float]:
    """Return the middles of nodes side by side, centred around 0."""
    total = sum(node.width for node in nodes) + GAP * (len(nodes) - 1)
    left, middles = -total / 2, {}
    for node in nodes:
        middles[node] = left + node.width / 2
        left += node.width + GAP
    return middles


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _spread(row: list[_Node], wanted: Sequence[float]) -> None:
    """Place the nodes of a row as near as possible to where they are wanted, without overlap."""
    groups: list[tuple[list[_Node], list[float]]] = []
    # Nodes that would overlap form a group that is placed as one, at the mean of their wishes.
    for node, x in zip(row, wanted, strict=True):
        groups.append(([node], [x]))
        while len(groups) > 1 and _left(*groups[-1]) < _right(*groups[-2]) + GAP:
            nodes, wishes = groups.pop()
            groups[-1] = (groups[-1][0] + nodes, groups[-1][1] + wishes)
    for nodes, wishes in groups:
        middles, centre = _middles(nodes), _centre(nodes, wishes)
        for node in nodes:
            node.x = centre + middles[node]


def _centre(nodes: Sequence[_Node], wishes: Sequence[float]) -> float:
    middles = _middles(nodes)
    return _mean([wish - middles[node] for node, wish in zip(nodes, wishes, strict=True)])


def _left(nodes: Sequence[_Node], wishes: Sequence[float]) -> float:
    return _centre(nodes, wishes) + _middles(nodes)[nodes[0]] - nodes[0].width / 2


def _right(nodes: Sequence[_Node], wishes: Sequence[float]) -> float:
    return _centre(nodes, wishes) + _middles(nodes)[nodes[-1]] + nodes[-1].width / 2


def draw() -> str:
    """Return the drawing as SVG."""
    package_map = PackageMap()
    layout = Layout(package_map)
    width, height = round(layout.width), layout.height
    size = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} role="img">',
        "<title>The packages of reconcile and what each imports</title>",
        f"<style>{_STYLE}</style>",
        _ARROWHEAD,
        f'<rect class="paper" {size}/>',
        *_header(),
        *(_arrow(layout, nodes) for nodes in layout.arrows),
        *(line for node, top in layout.boxes() for line in _box(package_map, node, top)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _header() -> Iterator[str]:
    yield f'<text class="title" x="{MARGIN}" y="30">The packages of reconcile</text>'
    yield (
        f'<text x="{MARGIN}" y="50">An arrow: the upper package imports the lower one. It is left out where a path of '
        "other arrows leads to the same package.</text>"
    )
    yield f'<rect class="pure" x="{MARGIN}" y="58" width="14" height="10" rx="2"/>'
    yield (
        f'<text x="{MARGIN + 20}" y="67">Pure: no I/O, no clock, no randomness; a linter checks it. '
        "Arrows lead downwards only; it checks that, too.</text>"
    )


def _arrow(layout: Layout, nodes: Sequence[_Node]) -> str:
    """Return an arrow through the rows, from the lower edge of a box to the upper edge of another."""
    first, *between, last = nodes
    points = [(_port(layout, nodes, 0), float(layout.top(layout.row_of(first)) + BOX_HEIGHT))]
    for node in between:
        top = layout.top(layout.row_of(node))
        points += [(node.x, top), (node.x, top + BOX_HEIGHT)]
    points.append((_port(layout, nodes, -1), layout.top(layout.row_of(last)) - 3))
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        bend = (to_y - y) / 2
        path += f"C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}"
    return f'<path class="arrow" d="{path}"><title>{first.name} imports {last.name}</title></path>'


def _port(layout: Layout, nodes: Sequence[_Node], end: int) -> float:
    """Return the x at which an arrow leaves or enters its box: arrows of one edge stand in the order of their ways."""
    box, step = nodes[end], 1 if end == 0 else -2
    same = [arrow for arrow in layout.arrows if arrow[end] is box]
    ways = sorted(same, key=lambda arrow: arrow[step].x)
    number = next(number for number, arrow in enumerate(ways) if arrow is nodes)
    return box.x + (number - (len(ways) - 1) / 2) * min(40.0, (BOX_WIDTH - 40) / len(ways))


def _box(package_map: PackageMap, node: _Node, top: int) -> Iterator[str]:
    package, left = package_map.packages[node.name], node.x - BOX_WIDTH / 2
    style = "box pure" if package.pure else "box"
    imports = package_map.imports.get(package.name, Counter())
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(imports.items())) or "no other package"
    yield f"<g><title>{package.name}: imports {listed}</title>"
    yield f'<rect class="{style}" x="{left:.0f}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
    yield f'<text class="name" x="{left + 12:.0f}" y="{top + 24}">{package.name}</text>'
    lines = textwrap.wrap(package.purpose, TEXT_COLUMNS, max_lines=TEXT_LINES, placeholder=" …")
    for number, line in enumerate(lines):
        yield f'<text x="{left + 12:.0f}" y="{top + 42 + 14 * number}">{escape(line)}</text>'
    if package.inner:
        inner = textwrap.shorten(", ".join(package.inner), TEXT_COLUMNS + 4, placeholder=" …")
        yield f'<text class="inner" x="{left + 12:.0f}" y="{top + BOX_HEIGHT - 24}">{inner}</text>'
    figures = f"{package.modules} module{'' if package.modules == 1 else 's'}, {package.lines:,} lines"
    yield f'<text class="figures" x="{left + 12:.0f}" y="{top + BOX_HEIGHT - 9}">{figures}</text></g>'


_FIGURE = re.compile(r"(?<=>)\d+ modules?, [\d,]+ lines(?=</text>)|(?<=\()\d+(?=\))")


def differences(drawn: str, present: str) -> list[str]:
    """Return what of a drawing is out of date: packages and arrows to the letter, figures beyond `TOLERANCE`."""
    old, new = (_FIGURE.sub("#", text).splitlines() for text in (drawn, present))
    changed = [line for line in new if line not in old] + [line for line in old if line not in new]
    if changed or len(old) != len(new):
        return changed or ["another number of lines"]
    figures = zip(_figures(drawn), _figures(present), strict=True)
    return [f"{before} is {now} now" for before, now in figures if abs(before - now) > max(4, TOLERANCE * now)]


def _figures(text: str) -> list[int]:
    pairs = re.findall(r">(\d+) modules?, ([\d,]+) lines<", text)
    return [int(figure.replace(",", "")) for pair in pairs for figure in pair]


if __name__ == "__main__":
    MAP.write_text(draw(), encoding="utf-8")

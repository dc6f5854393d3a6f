"""docs/map.svg shows the packages and imports of the code."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.support.package_map import BASE, BOX_WIDTH, GAP, MAP, Layout, PackageMap, differences, draw

if TYPE_CHECKING:
    from collections.abc import Mapping

REMAKE = "docs/map.svg is out of date: run `make map`"


@pytest.fixture(scope="module")
def drawn() -> str:
    return draw()


@pytest.fixture(scope="module")
def package_map() -> PackageMap:
    return PackageMap()


class Circular(PackageMap):
    @cached_property
    def arrows(self) -> Mapping[str, tuple[str, ...]]:
        self.imports["model"]["engine"] += 1
        return super().arrows


def reached(arrows: Mapping[str, tuple[str, ...]], name: str) -> set[str]:
    return {target for below in arrows[name] for target in {below} | reached(arrows, below)}


def test_the_map_is_up_to_date(drawn: str) -> None:
    assert differences(MAP.read_text(encoding="utf-8"), drawn) == [], REMAKE


def test_paths_of_arrows_are_the_imports(package_map: PackageMap) -> None:
    for name, targets in package_map.imports.items():
        if name not in BASE:
            assert set(targets) - BASE <= reached(package_map.arrows, name)
    for name, arrows in package_map.arrows.items():
        assert set(arrows) <= set(package_map.imports.get(name, ()))


def test_arrows_lead_downwards(package_map: PackageMap) -> None:
    rows = package_map.rows
    assert all(rows[name] > rows[target] for name, targets in package_map.arrows.items() for target in targets)


def test_a_circle_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"an import circle: .*engine.* -> .*model|an import circle: .*model.* -> .*engine"
    ):
        _ = Circular().arrows


def test_boxes_do_not_overlap(package_map: PackageMap) -> None:
    by_top: dict[int, list[float]] = {}
    for node, top in Layout(package_map).boxes():
        by_top.setdefault(top, []).append(node.x)
    for middles in by_top.values():
        middles.sort()
        assert all(right - left >= BOX_WIDTH + GAP - 1 for left, right in pairwise(middles))


def test_the_drawing_has_a_box_for_each_package(package_map: PackageMap, drawn: str) -> None:
    names = re.findall(r'<text class="name"[^>]*>([^<]*)</text>', drawn)
    assert sorted(names) == sorted(package_map.packages)


def test_small_changes_of_the_figures_are_no_difference(package_map: PackageMap, drawn: str) -> None:
    model = package_map.packages["model"]
    figures = "{} modules, {:,} lines"
    old = figures.format(model.modules, model.lines)
    assert old in drawn
    assert differences(drawn.replace(old, figures.format(model.modules + 1, model.lines + 9)), drawn) == []
    assert differences(drawn.replace(old, figures.format(model.modules, 2 * model.lines)), drawn) != []


def test_another_package_or_arrow_is_a_difference(package_map: PackageMap, drawn: str) -> None:
    assert differences(drawn.replace(">model</text>", ">models</text>"), drawn) != []
    name, (target, *_) = next((name, targets) for name, targets in package_map.arrows.items() if targets)
    without_arrow = "\n".join(line for line in drawn.splitlines() if f">{name} imports {target}<" not in line)
    assert differences(without_arrow, drawn) != []

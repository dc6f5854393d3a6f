"""Every file below fixtures/scenarios, on every level: fixtures/README.md describes them."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from tests.support.scenarios.disk_level import DiskLevel, RunCommand
from tests.support.scenarios.fake_level import MemoryState, read_nodes
from tests.support.scenarios.player import play, scenarios
from tests.support.scenarios.pure_level import PureLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.scenarios.scenario import Scenario

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scenarios"
SCENARIOS = scenarios(FIXTURES)


def name(scenario: Scenario) -> str:
    return str(scenario.path.relative_to(FIXTURES).with_suffix(""))


SHARES = {"pure": 1, "fake": 8, "real": 6}
"""The default suite plays one in so many scenarios of each level; a new scenario changes nothing for the others.
`make long` plays the rest.
"""


def marks_of(scenario: Scenario, level: str) -> list[pytest.MarkDecorator]:
    """Give long ones their time, and leave many to a command of their own."""
    is_killed = "killed at every step" in scenario.source
    marks = [pytest.mark.timeout(600)] if is_killed else []
    if crc32(name(scenario).encode()) % SHARES[level] or (is_killed and level == "real"):
        marks.append(pytest.mark.long)
    return marks


def on(*levels: str) -> list[object]:
    """Return the scenarios of these levels; with several, each with its level."""
    return [
        pytest.param(
            *([scenario] if len(levels) == 1 else [scenario, level]),
            id=f"{name(scenario)}-{level}",
            marks=marks_of(scenario, level),
        )
        for scenario in SCENARIOS
        for level in levels
        if level in scenario.levels
    ]


@pytest.mark.parametrize("scenario", on("pure"))
def test_pure(scenario: Scenario, request: pytest.FixtureRequest) -> None:
    played = play(scenario, PureLevel())
    if request.config.getoption("--update-scenarios"):
        scenario.path.write_text(played.text(), encoding="utf-8")
        assert not played.broken, "\n".join(played.broken)
        return
    complaint = played.complaint()
    assert not complaint, complaint


@pytest.fixture
def level(
    root: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[DiskLevel]:
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    level = DiskLevel(root, run, config)
    monkeypatch.setenv("RECONCILE_STATE_DIR", str(level.state))
    monkeypatch.setenv("JP_USER_DATA_DIR", str(root / "data"))
    with ExitStack() as stack:
        stack.callback(level.close)
        if root.name == "root-of-test":
            state = MemoryState(monkeypatch)
            level.real, level.forget = False, state.forget
            level.read = partial(read_nodes, request.getfixturevalue("fs"))
            stack.callback(state.close)
        else:
            monkeypatch.setenv("RECONCILE_VERIFY", "1")
        yield level


@pytest.mark.parametrize(("scenario", "root"), on("fake", "real"), indirect=["root"])
def test_command(scenario: Scenario, level: DiskLevel) -> None:
    shadow = PureLevel() if "pure" in scenario.levels else None
    level.looks_up = scenario.looks_up
    complaint = play(scenario, level, shadow).complaint()
    assert not complaint, complaint


def test_all_cases_have_a_scenario() -> None:
    covered = {case for scenario in SCENARIOS for case in scenario.cases}
    assert covered == set(range(1, 16))


EDGES = set(range(1, 95))
"""All of docs/design/formats/jp.md#edge-cases.

Two are only about what JP itself does, and their scenarios show what reconcile makes of it:
49 (which files of an archived conversation JP loads) and 53 (under which name JP trashes a directory).
"""


def test_all_edge_cases_have_a_scenario() -> None:
    covered = {edge for scenario in SCENARIOS for edge in scenario.edges}
    assert not EDGES - covered, f"in no scenario's edge: {sorted(EDGES - covered)}"


def test_all_that_jp_does_to_a_tree_has_a_scenario() -> None:
    """H1 to H17 of docs/design/formats/jp.md#nested-workspaces, each in the words of its file's first line."""
    titles = " ".join(scenario.title for scenario in SCENARIOS if scenario.path.parent.name == "jp")
    assert {int(row) for row in re.findall(r"\bH(\d+), ", titles)} == set(range(1, 18))

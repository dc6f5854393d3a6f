"""Every command of every scenario under faults at each of its steps, and the next run's end compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.disk_level import DiskLevel, RunCommand
from tests.support.faults import Mode
from tests.support.injecting import Injector
from tests.support.playing import play, scenarios

if TYPE_CHECKING:
    from tests.support.scenario import Scenario

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scenarios"
SCENARIOS = [each for each in scenarios(FIXTURES) if "real" in each.levels]
STRIDE = 41
MODES = tuple(Mode)


def name(scenario: Scenario) -> str:
    return str(scenario.path.relative_to(FIXTURES).with_suffix(""))


def play_under(injector: Injector, scenario: Scenario, root: Path, run: RunCommand, patch: pytest.MonkeyPatch) -> None:
    level = DiskLevel(root, run, Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml"))
    patch.setenv("RECONCILE_STATE_DIR", str(level.state))
    patch.setenv("JP_USER_DATA_DIR", str(root / "data"))
    level.looks_up, level.injector = scenario.looks_up, injector
    try:
        complaint = play(scenario, level).complaint()
    finally:
        level.close()
    assert not complaint, complaint


@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=lambda number: name(SCENARIOS[number]))
def test_some_steps(number: int, tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few of the steps of each scenario, others in each, and in turn each of the ways to fail."""
    injector = Injector([MODES[number % len(MODES)]], SCENARIOS[number].source, STRIDE, 1 + number % STRIDE)
    play_under(injector, SCENARIOS[number], tmp_path, run, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_all_steps(
    scenario: Scenario,
    mode: Mode,
    tmp_path: Path,
    run: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
    record_testsuite_property: object,
) -> None:
    injector = Injector([mode], scenario.source)
    play_under(injector, scenario, tmp_path, run, monkeypatch)

"""Every file below fixtures/scenarios, on every level: fixtures/README.md describes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.playing import play, scenarios
from tests.support.scenario import Scenario
from tests.support.worlds import PureWorld

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scenarios"
SCENARIOS = scenarios(FIXTURES)


def on(level: str) -> list[Scenario]:
    return [scenario for scenario in SCENARIOS if level in scenario.levels]


def name(scenario: Scenario) -> str:
    return str(scenario.path.relative_to(FIXTURES).with_suffix(""))


@pytest.mark.parametrize("scenario", on("pure"), ids=name)
def test_pure(scenario: Scenario, request: pytest.FixtureRequest) -> None:
    played = play(scenario, PureWorld())
    if request.config.getoption("--update-scenarios"):
        scenario.path.write_text(played.text(), encoding="utf-8")
        assert not played.broken, "\n".join(played.broken)
        return
    complaint = played.complaint()
    assert not complaint, complaint


def test_all_cases_have_a_scenario() -> None:
    covered = {case for scenario in SCENARIOS for case in scenario.cases}
    assert covered == set(range(1, 16))

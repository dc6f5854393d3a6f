"""Every file below fixtures/scenarios-fixed, with the command on a real disk: fixtures/README.md has the notation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.formats.fixed_scenario import complaint, play, read

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.formats.fixed_scenario import FixedScenario

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scenarios-fixed"
SCENARIOS = [read(path) for path in sorted(FIXTURES.rglob("*.scenario"))]


def name(scenario: FixedScenario) -> str:
    return str(scenario.path.relative_to(FIXTURES).with_suffix(""))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_command(scenario: FixedScenario, tmp_path: Path, run: Run, request: pytest.FixtureRequest) -> None:
    texts = play(scenario, tmp_path, run)
    if request.config.getoption("--update-scenarios"):
        scenario.path.write_text(texts[1], encoding="utf-8")
        return
    found = complaint(scenario, texts)
    assert not found, found


@pytest.mark.parametrize(("format_name", "last"), [("claudesidian", 32), ("leslie", 32)])
def test_all_edge_cases_have_a_scenario(format_name: str, last: int) -> None:
    """All numbers of the edge cases on the page of each format (docs/design/formats/README.md)."""
    covered = {edge for scenario in SCENARIOS if scenario.format == format_name for edge in scenario.edges}
    assert covered == set(range(1, last + 1))

"""A few inputs of each kind, always the same ones, and all that were found. `make fuzz` looks for more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import kept
from tests.fuzz.checks import CHECKS, Check

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_few_inputs(check: Check) -> None:
    @settings(
        max_examples=check.examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(check.inputs)
    def holds(value: Any) -> None:
        check.run(value)

    holds()


@pytest.mark.parametrize("path", kept.paths(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_input_that_was_found(path: Path) -> None:
    CHECKS[path.parent.name].run(kept.load(path))

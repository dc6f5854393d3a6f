"""The 15 cases: every combination of contents has one, and each is shown by a scenario (docs/cases.md)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from reconcile.model.reasons import CASES, Reason, case_of
from tests.support.scenarios.scenario import read_scenario

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scenarios" / "cases"
CONTENTS = (None, "x", "y", "z")
REASONS = """
external trashed refill edited-workspace edited-store edit-wins newer-workspace newer-store tie preferred
ahead-workspace ahead-store later-commit diverged incomplete decided projected ancestor-returned ancestor-left shared
united put-back rebuilt reprojected removed-in-store removed-there duplicate flattened parent-changed parent-gone
parent-stripped cycle-broken title-changed layout archived unarchived archived-here behind localized with-ancestor
asked recovered removed-as-asked written promoted expired forked quarantined taken-back repeated restored invalid
diverged-held conflict-held bulk workspace-emptied git-busy subtree-held not-round-trip obstructed path-too-long
unreadable ancestors-absent archived-held unsettled written-since secret contradicting losing program-busy behind-aside
displaced local-present removed-before kept undone conflict base-replaced parent-absent parent-unreadable
duplicate-conflict removed-here waiting cycle foreign store-replaced taken-along archived-copy requested
request-dropped secret-allowed left-in-vault busy drift outdated failed needs-skipped
"""
"""The words for programs: JSON, plan files and the state have them."""


def shape(*values: str | None) -> tuple[int | None, ...]:
    """Return which of the values are equal, whatever they are."""
    there = [value for value in values if value is not None]
    return tuple(None if value is None else there.index(value) for value in values)


def test_contents_that_are_equal_in_the_same_way_have_the_same_number() -> None:
    numbers: dict[tuple[int | None, ...], set[int]] = {}
    for values in itertools.product(CONTENTS, repeat=3):
        numbers.setdefault(shape(*values), set()).add(case_of(*values))
    assert all(len(found) == 1 for found in numbers.values())
    assert sorted(number for found in numbers.values() for number in found) == list(range(1, 16))


@pytest.mark.parametrize("number", CASES)
def test_a_pattern_has_its_own_number(number: int) -> None:
    base, store, workspace = (None if letter == "-" else letter for letter in CASES[number][0].split())
    assert case_of(base, store, workspace) == number


def test_equality_is_content() -> None:
    assert case_of({"a": 1}, {"a": 1}, {"a": 2}) == 11


@pytest.mark.parametrize("number", CASES)
def test_every_case_is_shown_by_a_scenario_of_its_own(number: int) -> None:
    shown = [read_scenario(path) for path in sorted(FIXTURES.glob(f"{number:02}-*.scenario"))]
    assert shown
    assert all(number in scenario.cases for scenario in shown)


def test_every_reason_keeps_its_word_and_has_words_for_people() -> None:
    assert [reason.value for reason in Reason] == REASONS.split()
    assert all(reason.words for reason in Reason)
    assert {reason.value for reason in Reason if reason.words == reason.value} == {"failed"}


def test_there_are_15_cases_and_two_of_them_are_equal() -> None:
    assert list(CASES) == list(range(1, 16))
    assert [number for number, (_, words) in CASES.items() if words in ("equal", "up to date")] == [4, 10]

"""Commands of scenarios under faults at each of their steps, and the next run's end compared with the undisturbed one.

`make faults` runs all of it; some is in the default suite.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

import pytest

from tests.support.faults.fault_points import Mode
from tests.support.faults.injector import Injector, StraceInjector
from tests.support.faults.strace import unusable
from tests.support.scenarios.disk_level import DiskLevel, RunCommand
from tests.support.scenarios.player import play, scenarios
from tests.support.scenarios.scenario import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.scenarios.scenario import Scenario

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scenarios"
SCENARIOS = [
    each for each in scenarios(FIXTURES) if "real" in each.levels and "killed at every step" not in each.source
]
BY_NAME = {str(each.path.relative_to(FIXTURES).with_suffix("")): each for each in SCENARIOS}
NAMES_MAY_LAG = {
    "found/a-name-that-was-due-on-one-side",
    "found/moved-and-its-store-is-no-more",
    "merge/before-the-first-run",
    "sides/a-store-from-an-old-copy",
}
"""Scenarios in which a fault leaves a directory under its old name, or under that of its title although the undisturbed
run keeps the old one: the title was agreed on before, so no run knows that a rename is due. JP renames it at its next
write (docs/design/placement.md#rule-5).
"""
MODES = tuple(Mode)
ENDS_OTHERWISE = {
    # Of two directories of a local conversation, the one that the store's metadata came from speaks.
    "found/local-in-two-directories-and-an-ancestor-that-moves": MODES,
    # A parent that was recorded before the first step is no longer a difference: the metadata keeps its time.
    "safety/a-parent-while-the-streams-are-held": MODES,
    # A fork is named after the title that its conversation has by then.
    "sides/a-refill-with-another-edit": MODES,
    # A step of the undo failed: the workspace's version is an older one by then, as the undo has put the store's back.
    "undo/an-edit-with-its-parent-put-back": (Mode.BROKEN,),
    # The list of what is local or removed was written, its transaction was not committed: what was removed stays so.
    "tree/a-trashed-parent": (Mode.BROKEN,),
    "tree/an-ancestor-is-archived-meanwhile": MODES,
}
"""Scenarios of which the next run rightly knows more, and what it knows."""
STRIDE = 53
SHARE = 5
"""One in so many scenarios is in the sample; a new scenario changes nothing for the others."""
USUALLY = 4
"""The default suite plays one in so many of the sample, and `make long` the rest."""

STRACED = (
    "cases/02-external",
    "cases/07-removed-in-the-store",
    "cases/11-retitled",
    "cases/13-edited-in-the-store",
    "cases/13-legacy-split",
    "cases/15-diverged",
    "cases/behind-by-history",
    "cases/extra-removed-and-edited",
    "archive/archived-together",
    "tree/reparented-in-the-workspace",
    "tree/nested-in-the-store-and-edited",
    "tree/stripped-by-jp",
    "undo/a-removed-tree",
)
"""What real processes are killed in: importing, removing, renaming, both files of a stream, forking, ageing, an extra,
the archive, moving with children, flattening, writing a parent, and undoing."""

Play: TypeAlias = "Callable[[Scenario, Injector], None]"


@cache
def _unusable() -> str:
    return unusable()


@pytest.fixture
def play_under(
    tmp_path: Path,
    run: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> Play:
    """Play a scenario while an injector is at work; count its faults."""

    def played(scenario: Scenario, injector: Injector) -> None:
        level = DiskLevel(tmp_path, run, Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml"))
        monkeypatch.setenv("RECONCILE_STATE_DIR", str(level.state))
        monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
        level.looks_up, level.injector = scenario.looks_up, injector
        try:
            complaint = play(scenario, level).complaint()
        finally:
            level.close()
        assert not complaint, complaint
        for kind, count in injector.injected.items():
            how = "strace" if isinstance(injector, StraceInjector) else "in one process"
            record_property("faults", (f"{kind} ({how})", count))

    return played


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[pytest.mark.long] if crc32(each.encode()) % (SHARE * USUALLY) else [])
        for each in BY_NAME
        if crc32(each.encode()) % SHARE == 0 and each not in ENDS_OTHERWISE
    ],
)
def test_some_steps(name: str, play_under: Play) -> None:
    """A few of the steps of some scenarios, and one of the ways to fail; which ones, only the name says."""
    number = crc32(name.encode()) // SHARE
    mode = MODES[number % len(MODES)]
    names = name not in NAMES_MAY_LAG
    injector = Injector([mode], BY_NAME[name].source, STRIDE, 1 + number % STRIDE, compares_names=names)
    play_under(BY_NAME[name], injector)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        # Both sides agreed on the title alone by then, so that the stream's other continuation was an edit.
        ("cases/05-diverged-at-the-same-time", Mode.BROKEN),
        # Only the time of the events had still to change: the killed step counted as done.
        ("cases/11-another-base-configuration", Mode.KILLED),
        # The record that sets the workspace's version aside was written before the store had its events.
        ("cases/15-edited-and-continued-in-private", Mode.TORN),
        # A directory that could not be removed was moved along.
        ("archive/archived-in-the-store", Mode.BROKEN),
        # A duplicate that stayed had the extra that was removed, and the baseline had it no more.
        ("found/an-extra-of-a-duplicate", Mode.BROKEN),
        # The list of what is local or removed has no run: a removal was taken for the end of the last run.
        ("recover/at-the-top-its-parent-removed", Mode.BROKEN),
        # The store's only statement of a parent was replaced, and not written again.
        ("safety/an-edited-part-of-a-private-one", Mode.TORN),
        # A renewed store was taken for the known one although the steps had failed.
        ("sides/a-refill-with-an-older-version", Mode.BROKEN),
        # The directory of a root was moved, and the failed step had to state that it is one.
        ("tree/promoted-by-hand", Mode.BROKEN),
        # The record of an undo was released before the steps: one version of a conflict became an older one.
        ("undo/a-conflict-that-the-workspace-has-won", Mode.KILLED),
    ],
)
def test_all_steps_that_have_failed(name: str, mode: Mode, play_under: Play) -> None:
    play_under(BY_NAME[name], Injector([mode], BY_NAME[name].source))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, mode) for name in BY_NAME for mode in MODES if mode not in ENDS_OTHERWISE.get(name, ())],
)
def test_all_steps(name: str, mode: Mode, play_under: Play) -> None:
    injector = Injector([mode], BY_NAME[name].source, compares_names=name not in NAMES_MAY_LAG)
    play_under(BY_NAME[name], injector)


def straced(name: str, stride: int = 1) -> StraceInjector:
    """Disturb the last command of a scenario, as a real process."""
    if reason := _unusable():
        pytest.skip(reason)
    runs = sum(isinstance(block, Run) for block in BY_NAME[name].blocks)
    return StraceInjector((), BY_NAME[name].source, stride, undisturbed=runs - 1)


def test_some_system_calls(play_under: Play) -> None:
    name = "cases/13-edited-in-the-store"
    play_under(BY_NAME[name], straced(name, 29))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", STRACED)
def test_all_system_calls(name: str, play_under: Play) -> None:
    play_under(BY_NAME[name], straced(name))

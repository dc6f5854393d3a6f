"""Every small world, through plan, simulate and apply, with every law checked (`worlds`, docs/design/invariants.md).

`make worlds` plays all of them, ``WORLDS_EVERY=6`` one in six. A world that breaks a law is told as a scenario,
shortened; it can be saved under fixtures/scenarios/found as it is.
"""

from __future__ import annotations

import gc
import itertools
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.options import Take
from reconcile.planning.planner import make_plan
from tests.properties.shortening import shortened
from tests.properties.telling import command_of, tell
from tests.properties.worlds import KINDS, PASTS, World, some_worlds, worlds_of
from tests.support.scenarios.building import quiet_plan
from tests.support.scenarios.disk_level import DiskLevel
from tests.support.scenarios.line_reader import DAY_NS
from tests.support.scenarios.player import play
from tests.support.scenarios.pure_level import RULES, PureLevel
from tests.support.scenarios.scenario import read_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reconcile.model.baseline import Baseline
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Snapshot
    from tests.properties.worlds import Kind, Past
    from tests.support.scenarios.disk_level import RunCommand

    Record = Callable[[str, object], None]

EVERY = int(os.environ.get("WORLDS_EVERY", "1"))
SLICE = 800


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no garbage be looked for: plans are values without cycles, and looking takes a third of the time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@uncollected()
def play_all(found: Iterable[World], record: Record) -> None:
    """Play worlds; their number is added up at the end of the whole run."""
    count = 0
    for world in found:
        count += 1
        try:
            world.play()
        except Exception as error:
            told = "\n".join(tell(shortened(list(world.frames))))
            message = f"{world}, shortened:\n\n{told}"
            raise AssertionError(message) from error
    record("small worlds", count)


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 2))])
def test_some_small_worlds(seed: int, record_property: Record) -> None:
    play_all(some_worlds(seed, SLICE), record_property)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("past", PASTS, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_small_world(kind: Kind, past: Past, record_property: Record) -> None:
    play_all(itertools.islice(worlds_of(kind, past), 0, None, EVERY), record_property)


def play_on_disk(found: Iterable[World], tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play worlds with the command on a real directory, beside the pure level, which must come to the same."""
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
    for number, world in enumerate(found):
        path = tmp_path / f"{number}.scenario"
        path.write_text("\n".join(["A world.", "", *tell(world.frames)]), encoding="utf-8")
        config.unlink(missing_ok=True)
        level = DiskLevel(tmp_path / str(number), run, config)
        monkeypatch.setenv("RECONCILE_STATE_DIR", str(level.state))
        complaint = play(read_scenario(path), level, PureLevel()).complaint()
        assert not complaint, f"{world}:\n{path.read_text(encoding='utf-8')}\n{complaint}"


@pytest.mark.long
def test_some_worlds_on_disk(tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    play_on_disk(some_worlds(10, 16), tmp_path, run, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_more_worlds_on_disk(tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    play_on_disk(some_worlds(11, 1000 // EVERY), tmp_path, run, monkeypatch)


def plans_from(world: World) -> Iterator[tuple[Snapshot, Snapshot, Baseline, Policy]]:
    """Yield what each run of a world plans from, and what it leaves."""
    level = PureLevel()
    for frame in world.frames:
        command = command_of(frame.command)
        frame.prepare(level)
        policy = command.under(level.config, level.git_busy)
        for run in (True, False):
            baseline = level.memories.of(command.workspace)
            yield (*level._scan(command), baseline, policy)
            if run:
                level.run(command)


def test_what_is_quiet_at_a_glance_is_quiet_to_the_planner() -> None:
    glances = 0
    for world in some_worlds(13, 150):
        for store, workspace, baseline, policy in plans_from(world):
            quiet = quiet_plan(store, workspace, baseline, policy, RULES)
            if quiet is not None:
                slow = replace(policy, decisions={"nobody": Take.STORE})
                plan = make_plan(store, workspace, baseline, slow, RULES, DAY_NS)
                found = replace(plan, outline=(), places=(), rooted=())
                assert found == replace(quiet, quiet=False, policy=slow)
                glances += 1
    assert glances > 50


def test_a_world_that_goes_wrong_is_told_shortened() -> None:
    (world,) = some_worlds(14, 1)
    wrong = replace(world.end, command="reconcile --prefer nonsense")
    frames = shortened([*world.frames, wrong])
    assert frames == [replace(wrong, trees={"store": {}, "workspace": {}})]
    assert "invalid Prefer value" in tell(frames)[-1]

"""What can't be read is never taken for what isn't there: the error is made for real, by the system or below it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hostile.test_memory import BARE, MB, big_stream, limited
from tests.support.straced import Ended, Straced, unusable
from tests.support.world import events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

NUMBER = 17500000001
NAME = f"{NUMBER}-it"
straced = pytest.mark.skipif(bool(unusable()), reason=unusable())


@pytest.fixture
def world(world: World) -> World:
    write_conversation(world.workspace / NAME, "It", events(3))
    world.reconcile()
    world.reconcile()  # what was written a moment ago is read once more; from here on the index knows it
    return world


def failing(world: World, at: Path, *words: str) -> Ended:
    """Run a command while a disk fails below this file."""
    trace = Straced(world.project.parent / "strace.log", "read:error=EIO", at)
    done = trace(*words, "--workspace", world.project)
    assert trace.was_hit()
    assert "Traceback" not in done.output
    return done


@straced
@pytest.mark.parametrize("name", ["metadata.json", "base_config.json", "events.json"])
@pytest.mark.parametrize("part", [(), ("--last", "1")], ids=["whole", "last"])
def test_what_a_file_that_cannot_be_read_belongs_to_is_not_forked(
    world: World, name: str, part: tuple[str, ...]
) -> None:
    before = world.stamps()
    done = failing(world, world.store / NAME / name, "fork", str(NUMBER), *part)
    assert done.exit_code == 4, done.output
    assert f"{name}: found something that can't be read" in done.stderr
    assert world.stamps() == before


@straced
@pytest.mark.parametrize("name", ["metadata.json", "base_config.json", "events.json"])
def test_a_file_that_cannot_be_read_is_no_difference(world: World, name: str) -> None:
    done = failing(world, world.store / NAME / name, "diff", str(NUMBER), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (note,) = found["notes"]
    assert note.startswith(f"store: {name}: found something that can't be read")
    empty = {"metadata": [], "store_only": [], "workspace_only": [], "base_config_differs": False}
    assert {key: found[key] for key in empty} == empty


def test_a_stream_that_is_larger_than_memory_is_not_forked(world: World) -> None:
    big_stream(world.store / NAME / "events.json", 300 * MB)
    before = sorted(world.store.iterdir()), sorted(world.workspace.rglob("*"))
    done = limited(world, BARE, "fork", str(NUMBER))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "events.json: found more than fits into memory" in done.stderr
    assert (sorted(world.store.iterdir()), sorted(world.workspace.rglob("*"))) == before
    done = limited(world, BARE, "diff", str(NUMBER))
    assert done.returncode == 0, done.stderr
    assert "store: events.json: found more than fits into memory" in done.stdout
    assert "there is no" not in done.stdout


@pytest.mark.parametrize(
    "words", [("--dry-run",), ("status",), ("log",), ("ls",), ("checkouts",), ("vault",), ("--check",), ()]
)
def test_a_state_that_cannot_be_looked_at_is_no_empty_one(world: World, words: tuple[str, ...]) -> None:
    (world.workspace / NAME / "events.json").unlink()
    before, away = world.stamps(), world.state.rename(world.state.with_name("away"))
    world.state.symlink_to(world.state)  # leads nowhere, without end
    done = world.run("--workspace", world.project, *words)
    assert done.exit_code == 1, done.output
    assert str(world.state) in done.stderr
    assert len(done.stderr.splitlines()) == 2, "an error and a hint"
    world.state.unlink()
    away.rename(world.state)
    assert world.stamps() == before


def test_settings_that_cannot_be_looked_at_are_no_default_ones(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "config"
    place.symlink_to(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place))
    done = world.run("--workspace", world.project)
    assert done.exit_code == 2, done.output
    assert f"{place}" in done.stderr
    assert "can't be read" in done.stderr
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    world.reconcile()

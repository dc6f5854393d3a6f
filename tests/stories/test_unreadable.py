"""What can't be read is never taken for what isn't there: the error is made for real, by the system or below it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hostile.test_memory import BARE, MB, big_stream, limited
from tests.support.git_world import git
from tests.support.straced import Ended, Straced, unusable
from tests.support.world import LONG_AGO, SECOND, events, listing, make_project, set_key, write_conversation

if TYPE_CHECKING:
    from tests.conftest import Run
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


@pytest.mark.slow
@pytest.mark.timeout(300)
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


def refused(world: World, call: str, at: Path, *words: str) -> Ended:
    """Run a command while this call about this path is refused; nothing but the words may come of it."""
    trace = Straced(world.project.parent / "strace.log", f"{call}:error=EACCES", at)
    done = trace(*words, "--workspace", world.project)
    assert trace.was_hit()
    assert "Traceback" not in done.output
    return done


@straced
@pytest.mark.parametrize("what", ["sessions", "sessions/a.json"])
def test_what_jp_has_open_and_cannot_be_read_is_not_collected(world: World, what: str) -> None:
    """Without its session file a conversation would count as closed, and an expired one would go."""
    set_key(world.store / NAME, "expires_at", "2026-01-01 00:00:00.0", LONG_AGO + SECOND)
    world.reconcile()
    (world.silo / "sessions").mkdir()
    session = {"history": [{"id": f"jp-c{NUMBER}", "activated_at": "2026-01-31 12:00:00.0"}]}
    (world.silo / "sessions" / "a.json").write_text(json.dumps(session))
    before = listing(world.store) | listing(world.workspace)
    done = refused(world, "openat", world.silo / what, "gc", "-y")
    assert done.exit_code == 1, done.output
    assert "it can't be read (Permission denied), so that any conversation may be open" in done.stderr
    assert listing(world.store) | listing(world.workspace) == before


@straced
@pytest.mark.parametrize("name", ["", "HEAD", "MERGE_HEAD", "index.lock"])
def test_a_repository_that_cannot_be_looked_at_may_be_in_the_middle_of_something(world: World, name: str) -> None:
    """What is to be written into the checkout waits, as it does for a merge."""
    git(world.project, "init", "-q")
    set_key(world.store / NAME, "title", "Another", LONG_AGO + SECOND)
    before = listing(world.workspace)
    at = world.project / ".git" / name if name else world.project / ".git"
    done = refused(world, "newfstatat,lstat,stat,statx", at)
    assert done.exit_code == 4, done.output
    assert f"perhaps: {at} can't be read, Permission denied" in done.stdout
    assert listing(world.workspace) == before
    world.reconcile()
    assert listing(world.workspace) != before


@straced
def test_of_several_stores_one_that_cannot_be_looked_at_is_not_passed_over(world: World) -> None:
    """JP's rule takes the one that was used last, which may be that one."""
    first = world.store.parent
    moved = first.with_name("renamed-ab1cd")
    first.rename(moved)
    other = first.with_name("another-ab1cd")
    shutil.copytree(moved, other)
    done = refused(world, "openat", moved)
    assert done.exit_code == 2, done.output
    assert f"{moved}: it can't be read (Permission denied)" in done.stderr


@straced
def test_settings_that_cannot_be_read_are_not_passed_over(world: World) -> None:
    """They may say that nothing is to be published, or that a person decides."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "reconcile" / "reconcile.toml"
    path.parent.mkdir(parents=True)
    path.write_text('diverged = "hold"\n')
    for call in ("openat", "newfstatat,lstat,stat,statx,openat"):
        done = refused(world, call, path)
        assert done.exit_code == 2, done.output
        assert f"{path}: can't be read" in done.stderr


@straced
def test_a_project_that_cannot_be_looked_at_is_not_another_one_further_up(world: World, run: Run) -> None:
    inner = make_project(world.project / "inner", run)
    before = listing(world.store) | listing(world.workspace)
    done = refused(inner, "newfstatat,lstat,stat,statx", inner.project / ".jp")
    assert done.exit_code == 2, done.output
    assert f"{inner.project}/.jp: it can't be read (Permission denied)" in done.stderr
    assert listing(world.store) | listing(world.workspace) == before


@straced
def test_a_checkout_that_cannot_be_looked_at_is_not_gone(world: World, run: Run) -> None:
    other = make_project(world.project.parent / "other", run)
    other.reconcile(settled=False)
    done = refused(world, "newfstatat,lstat,stat,statx", other.project / ".jp", "checkouts", "--json")
    assert done.exit_code == 0, done.output
    states = {each["project"]: each["state"] for each in json.loads(done.stdout)["checkouts"]}
    assert states[str(other.project)] == "unreadable"

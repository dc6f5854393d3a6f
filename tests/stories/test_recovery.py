"""What the next run does about one that was killed: it finishes its own, and leaves alone what is somebody else's."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.locate import locate
from reconcile.apply.staging import Stage
from reconcile.engine.session import Session
from reconcile.fs.durability import Durability
from reconcile.fs.mutations import Root
from reconcile.model.snapshot import Side
from reconcile.state.database import State
from reconcile.state.journal import StepState
from reconcile.state.vault import Vault
from tests.support.faults.disturbances import hold
from tests.support.faults.fault_points import dies_before
from tests.support.projects.three_conversations import FIRST, SECOND_ID, three
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    contents,
    files,
    listing,
    make_project,
    set_key,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

CLEANED = "its open steps are cleaned up"


def killed_before(world: World, call: str, number: int = 1) -> None:
    dies_before(Root, call, number, lambda: world.run("--workspace", world.project))


def said(world: World, *args: str) -> list[str]:
    """Run the command; return what it says about killed runs."""
    return [line for line in world.reconcile(*args).stderr.splitlines() if "interrupted" in line]


def staging(world: World) -> Path:
    """Return the one staging directory that there is."""
    (found,) = (*world.store.glob(".reconcile-*"), *world.workspace.glob(".reconcile-*"))
    return found


def test_one_line_says_what_was_done(world: World) -> None:
    three(world)
    killed_before(world, "rename_new", 3)
    run = staging(world).name[len(".reconcile-01234567-") :]
    before = world.stamps()
    looked = world.run("--workspace", world.project, "--dry-run")
    words = f"run {run} was interrupted; the next run (no dry run) completes or cleans up its open steps"
    assert looked.stderr.splitlines() == [words]
    assert world.stamps() == before
    assert said(world) == [f"run {run} was interrupted; 2 of its 3 steps were done, and {CLEANED}"]
    assert said(world) == []
    with State.open(str(world.state), readonly=True) as state:
        states = [step.state for step in state.journal.steps(run)]
    assert states == [StepState.DONE, StepState.DONE, StepState.FAILED]


def test_what_looks_like_ours_stays(world: World, tmp_path: Path) -> None:
    three(world)
    killed_before(world, "rename_new")
    ours = staging(world)
    run = ours.name[len(".reconcile-01234567-") :]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("theirs")
    theirs = [
        world.store / f".reconcile-{run}",
        world.store / f".reconcile-deadbeef-{run}",
        world.store / f"{ours.name}-2",
        world.workspace / ".reconcile-back",
    ]
    for directory in theirs:
        directory.mkdir()
        (directory / "1").write_text("theirs")
    (world.workspace / ours.name).symlink_to(tmp_path / "elsewhere")
    result = world.run("--workspace", world.project)
    assert result.exit_code == 0, result.output
    assert not ours.exists()
    assert [(directory / "1").read_text() for directory in theirs] == ["theirs"] * 4
    assert (world.workspace / ours.name / "file").read_text() == "theirs"


def test_what_only_the_staging_directory_has_is_recorded_before_it_is_removed(world: World) -> None:
    """A kill in between leaves no object in the vault of which no command knows."""
    three(world)
    killed_before(world, "rename_new")
    shutil.rmtree(world.workspace / f"{FIRST}-it")
    killed_before(world, "remove_entries")
    assert staging(world).exists()
    with State.open(str(world.state), readonly=True) as state:
        recorded = {version.digest for version in state.versions.all()}
    assert recorded == {path.name for path in files(world.vault)}
    assert said(world)
    with State.open(str(world.state), readonly=True) as state:
        assert len(state.versions.all()) == len(recorded)


def finished(world: World) -> list[str]:
    """Take the run lock, as a watcher does before it knows whether the store is there; return the messages."""
    roots = locate("jp", str(world.project), None, str(world.project), os.environ, sys.platform)
    with Session(roots, str(world.state)) as session, session.exclusively("watch", 5):
        return session.messages


@pytest.mark.parametrize("is_mount_point", [False, True])
def test_the_steps_in_a_store_that_is_not_mounted_wait_for_it(world: World, *, is_mount_point: bool) -> None:
    three(world)
    world.reconcile()
    before = half(world)
    there = listing(world.store)
    away = world.store.rename(world.store.with_name("away"))
    if is_mount_point:
        world.store.mkdir()
    problem = "has been replaced" if is_mount_point else "is missing"
    for _ in range(2):
        (message,) = finished(world)
        assert message.endswith(f"its open steps in the store wait for it: {world.store} {problem}")
    if world.store.exists():
        shutil.rmtree(world.store)
    away.rename(world.store)
    assert listing(world.store) == there
    (message,) = finished(world)
    assert message.endswith(CLEANED)
    changed = {name for name, found in listing(world.store).items() if before.get(name) != found}
    assert not [name for name in changed if str(FIRST) in name], "the half-replaced stream was put back"
    with State.open(str(world.state), readonly=True) as state:
        assert not state.journal.open_runs()


def test_the_steps_in_a_lost_store_end_when_a_run_has_filled_another(world: World) -> None:
    three(world)
    world.reconcile()
    half(world)
    shutil.rmtree(world.store)
    (message,) = said(world)
    assert message.endswith("is missing")
    assert said(world)[0].endswith(CLEANED)
    assert said(world) == []


@pytest.mark.parametrize("gone", [False, True])
def test_what_only_the_staging_directory_has_is_kept(world: World, gone: bool) -> None:
    three(world)
    killed_before(world, "rename_new")
    assert list(staging(world).rglob("events.json"))
    if gone:
        shutil.rmtree(world.workspace / f"{FIRST}-it")
    before = world.kept() | contents(staging(world))
    assert said(world)
    assert before <= world.kept()
    # What has a source needs no room in the vault.
    assert bool(files(world.vault)) == gone


def test_another_state_of_the_same_store_has_other_names(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    three(world)
    killed_before(world, "rename_new")
    ours = staging(world)
    there = contents(ours)
    home = os.environ["XDG_DATA_HOME"]
    monkeypatch.setenv("XDG_DATA_HOME", f"{home}-2")
    result = world.run("--workspace", world.project)
    assert result.exit_code == 0, result.output
    assert "interrupted" not in result.stderr
    assert contents(ours) == there
    monkeypatch.setenv("XDG_DATA_HOME", home)
    assert said(world)
    assert not ours.exists()


def test_a_name_that_is_taken_is_not_used(tmp_path: Path) -> None:
    root = Root(str(tmp_path / "store"), make=True)
    (tmp_path / "store" / ".reconcile-x").mkdir()
    (tmp_path / "store" / ".reconcile-x" / "1").write_text("theirs")
    off = Durability(enabled=False)
    stage = Stage(
        roots={Side.STORE: root},
        vault=Vault(str(tmp_path / "state"), off),
        durability=off,
        run="x",
        directory=".reconcile-x",
        unit_of=lambda _: None,
        id_of=lambda _: None,
        metadata_file="metadata.json",
        saved_mode=lambda *_: None,
        has_modes=dict.fromkeys(Side, True),
        folders_of=lambda _: 0,
    )
    with pytest.raises(FileExistsError, match="the name of the staging directory is in use"):
        stage.new_name(Side.STORE)
    assert not stage.used
    root.close()


@pytest.fixture
def other(world: World, tmp_path: Path, run: Run) -> World:
    """A second checkout of the same store, where all is in sync."""
    three(world)
    other = make_project(tmp_path / "other", run)
    world.reconcile()
    return other


def half(world: World) -> dict[str, tuple[bytes, int]]:
    """Kill a run between the two files of a stream that it copies into the store; return the store of before."""
    before = listing(world.store)
    copy = world.workspace / f"{FIRST}-it"
    append(copy, 2, "b", LONG_AGO + 10 * SECOND)
    write_json(copy / "base_config.json", {"assistant": {"name": "another"}}, LONG_AGO + 10 * SECOND)
    killed_before(world, "exchange", 2)
    changed = {name for name, found in listing(world.store).items() if before.get(name) != found}
    assert len([name for name in changed if not name.startswith(".reconcile")]) == 1
    return before


def test_half_a_stream_in_the_store_is_put_back_by_whoever_comes_first(world: World, other: World) -> None:
    before = half(world)
    lines = said(other)
    assert len(lines) == 1
    assert lines[0].endswith(f"its open steps in the store are cleaned up; a run in {world.project} cleans up the rest")
    assert listing(world.store) == before
    assert said(other) == []
    assert len(said(world)) == 1
    assert world.event_count(FIRST) == 5


def test_the_run_of_a_checkout_that_is_gone_is_closed(world: World, other: World) -> None:
    before = half(world)
    lost = contents(world.workspace)
    shutil.rmtree(world.project)
    assert said(other)[0].endswith(CLEANED)
    assert listing(other.store) == before
    assert said(other) == []
    assert lost <= other.kept(), "what was staged from a workspace that is gone is nowhere else"


def test_the_run_of_a_checkout_that_can_not_be_looked_at_stays_open(world: World, other: World) -> None:
    half(world)
    away = world.project.rename(world.project.with_name("away"))
    world.project.symlink_to(world.project)  # leads nowhere, without end
    assert said(other)[0].endswith(f"a run in {world.project} cleans up the rest")
    found = json.loads(other.run("--workspace", other.project, "checkouts", "--json").stdout)
    assert {each["project"]: each["state"] for each in found["checkouts"]}[str(world.project)] == "unreadable"
    world.project.unlink()
    away.rename(world.project)
    assert len(said(world)) == 1


def test_a_checkout_that_was_moved_is_the_same(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    set_key(world.store / f"{FIRST}-it", "colour", "green", LONG_AGO + SECOND)
    killed_before(world, "exchange")
    assert staging(world).parent == world.workspace
    world.project.rename(tmp_path / "moved")
    moved = type(world)(tmp_path / "moved", run)
    assert said(moved)[0].endswith(CLEANED)
    assert not list(moved.workspace.glob(".reconcile-*"))


def test_a_conversation_that_is_at_work_keeps_the_run_open(world: World) -> None:
    three(world)
    world.reconcile()
    half(world)
    lock = hold(world.silo / "locks" / f"jp-c{FIRST}.lock")
    result = world.run("--workspace", world.project)
    assert "its open steps wait for a lock" in result.stderr
    lock.close()
    assert said(world)[0].endswith(CLEANED)


def test_nothing_of_a_kill_is_left_in_the_state(world: World) -> None:
    three(world)
    dies_before(os, "link", 1, lambda: world.run("--workspace", world.project))
    assert list(world.state.glob("state.sqlite.new-*"))
    world.reconcile()
    assert not list(world.state.glob("state.sqlite.new-*"))
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 10 * SECOND)
    dies_before(os, "replace", 2, lambda: world.run("--workspace", world.project))
    assert list(world.vault.glob(".tmp-*"))
    world.reconcile()
    assert not list(world.vault.glob(".tmp-*"))


def test_a_parent_that_was_taken_out_is_not_written_back_after_a_kill(world: World) -> None:
    three(world, parent=FIRST)
    world.reconcile()
    nested = world.workspace / f"{FIRST}-it" / "conversations" / f"{SECOND_ID}-it"
    write_json(nested / "metadata.json", {"title": "It", "last_activated_at": "2026-01-01 00:00:00.0"}, LONG_AGO)
    killed_before(world, "remove_entries")
    assert not nested.exists()
    world.reconcile()
    for side in (world.store, world.workspace):
        assert "parent_id" not in json.loads((side / f"{SECOND_ID}-it" / "metadata.json").read_bytes())

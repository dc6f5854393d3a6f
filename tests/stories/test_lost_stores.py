"""A store that is lost, moved away, unmounted or begun anew, with several checkouts and watchers: real processes."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.stories.test_mounts import mount, mounted
from tests.support.faults.fault_points import dies_at
from tests.support.projects.terminal import at_terminal
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.watcher import Watching, grow, until
from tests.support.projects.world import DATABASE, World, events, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run

pytestmark = pytest.mark.long

ONLY_THERE = (17500000011, 17500000012)
"""Conversations of the other checkout alone."""


def names(side: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in side.rglob("*") if path.is_dir() and path.name[:1] == "1"}


@pytest.fixture
def other(watched: World, tmp_path: Path, run: Run) -> World:
    """Return another checkout of the same store, with two conversations more, one with a note."""
    found = make_project(tmp_path / "other", run)
    for number in ONLY_THERE:
        write_conversation(found.workspace / f"{number}-it", "It", events(3))
    shutil.copytree(watched.workspace / f"{FIRST}-it", found.workspace / f"{FIRST}-it")
    (found.workspace / f"{FIRST}-it" / "NOTE.md").write_text("only there")
    found.reconcile()
    watched.reconcile()
    assert found.store == watched.store
    return found


def wipe(store: Path) -> None:
    """Remove all that is in it; the directory stays what it is."""
    for path in store.iterdir():
        shutil.rmtree(path)


def replace(store: Path) -> None:
    """Have another directory in its place."""
    store.rename(store.with_name("away"))
    store.mkdir()


def remove(store: Path) -> None:
    shutil.rmtree(store)


def begin_anew(store: Path) -> None:
    """Wipe it, and have JP write there before anything else does."""
    wipe(store)
    write_conversation(store / "17500000099-it", "It", events(1))


LOSSES = [wipe, replace, remove, begin_anew]


@pytest.mark.parametrize("lose", [replace, remove])
def test_status_says_first_that_the_store_was_lost(watched: World, lose: Callable[[Path], None]) -> None:
    watched.reconcile()
    lose(watched.store)
    _, _, shown = watched.reconcile("status", settled=False).stdout.partition("\n\n")
    (noted,) = (note["message"] for note in watched.plan()["notes"] if note["reason"] == "store-replaced")
    assert " ".join(shown.split()).startswith(f"note {noted}")


@pytest.mark.parametrize("lose", [wipe, begin_anew])
def test_status_says_first_that_the_store_lost_its_conversations(watched: World, lose: Callable[[Path], None]) -> None:
    watched.reconcile()
    assert "lost" not in watched.reconcile("status").stdout
    lose(watched.store)
    _, _, shown = watched.reconcile("status", settled=False).stdout.partition("\n\n")
    told = " ".join(shown.split())
    words = "note the store has lost its conversations since the last run; nothing counts as removed"
    assert told.startswith(f"{words}, and the next run copies what is here: reconcile ")
    watched.reconcile()
    assert "lost" not in watched.reconcile("status").stdout


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("limited", [False, True])
def test_what_only_another_checkout_has_is_not_removed(
    watched: World, other: World, lose: Callable[[Path], None], limited: bool
) -> None:
    before = names(other.workspace)
    lose(watched.store)
    watched.reconcile(*(("--only", str(FIRST)) if limited else ()), settled=not limited)
    other.reconcile()
    watched.reconcile()
    assert names(other.workspace) == before
    assert names(watched.store) >= before | names(watched.workspace)
    assert (other.workspace / f"{FIRST}-it" / "NOTE.md").exists()
    assert (other.store / f"{FIRST}-it" / "NOTE.md").exists()


def test_a_refill_that_is_killed_at_any_step(watched: World, other: World) -> None:
    """What is remembered of the loss comes before the first file."""
    before, step = names(other.workspace), 0
    while True:
        step += 1
        wipe(watched.store)
        died = dies_at(step, lambda: watched.run("--workspace", watched.project))
        other.reconcile(settled=False)
        assert names(other.workspace) == before, f"killed at step {step}"
        assert names(other.store) >= before
        watched.reconcile()
        if not died:
            break
        step += step // 4


@pytest.mark.parametrize("lose", LOSSES)
def test_watchers_wait_until_a_person_says_that_it_is_lost(
    watched: World, other: World, lose: Callable[[Path], None]
) -> None:
    before, store = names(watched.workspace) | names(other.workspace), watched.store
    kept = names(other.workspace)
    with Watching(watched) as one, Watching(other) as two:
        lose(store)
        grow(watched.workspace, FIRST)
        for watcher in (one, two):
            watcher.hears("waiting", str(store))
        time.sleep(3)
        assert not one.done()
        assert not two.done()
        assert not names(store) & before
        watched.reconcile(settled=False)
        for watcher in (one, two):
            watcher.hears("resumed")
        until(lambda: names(store) >= before, "both have saved what they have")
        until((store / f"{FIRST}-it" / "NOTE.md").exists, f"{one.events} {two.events}")
        assert names(other.workspace) == kept
        assert one.stop() == two.stop() == 0
    other.reconcile()
    watched.reconcile()


@pytest.mark.parametrize("how", ["moved", "moved, and an empty one there", "its silo was moved"])
def test_a_store_that_comes_back_is_gone_on_with(watched: World, how: str) -> None:
    store = watched.silo if how == "its silo was moved" else watched.store
    away, inside = store.with_name("away"), watched.store.relative_to(store)
    with Watching(watched) as watcher:
        store.rename(away)
        if "empty" in how:
            store.mkdir()
        grow(watched.workspace, FIRST)
        watcher.hears("waiting")
        grow(away / inside, SECOND_ID)
        time.sleep(3)
        assert not watcher.done()
        if "empty" in how:
            store.rmdir()
        assert not store.exists(), "it was made again"
        away.rename(store)
        watcher.hears("resumed")
        until(lambda: watched.event_count(FIRST) == 5 and watched.event_count(SECOND_ID, watched.workspace) == 5)
        assert watcher.stop() == 0
    assert {kind for kind, _, _ in watcher.done()} == {"copy", "project"}
    watched.check_settled()


@pytest.mark.parametrize("inner", ["", "conversations"])
def test_an_unmounted_store_is_waited_for_and_its_mount_point_left_alone(world: World, inner: str) -> None:
    """What is below a mount point while nothing is mounted there is nobody's store."""
    write_conversation(world.workspace / f"{FIRST}-it", "It", events(3))
    world.reconcile()
    point = world.silo / inner if inner else world.silo
    disk = world.project.with_name("disk")
    with mounted(disk):
        shutil.copytree(point, disk, dirs_exist_ok=True)
        shutil.rmtree(point)
        point.mkdir()
        with ExitStack() as stack:
            if complaint := mount("--bind", str(disk), str(point)):
                pytest.skip(f"nothing may be mounted here: {complaint}")
            stack.callback(lambda: mount_off(point))
            world.reconcile()
            with Watching(world) as watcher:
                mount_off(point)
                grow(world.workspace, FIRST)
                watcher.hears("waiting")
                time.sleep(3)
                assert not list(point.iterdir()), "the mount point was filled"
                assert not mount("--bind", str(disk), str(point))
                watcher.hears("resumed")
                until(lambda: world.event_count(FIRST) == 5)
                assert watcher.stop() == 0
            world.reconcile()


def mount_off(point: Path) -> None:
    subprocess.run(["umount", "--lazy", str(point)], check=False, capture_output=True)


def test_a_removal_takes_as_long_as_it_likes(watched: World) -> None:
    """Somebody removes one after the other: none of them counts as removed before it is clear that all go."""
    before = names(watched.workspace)
    for number in range(20):
        write_conversation(watched.workspace / f"{17500000100 + number}-it", "It", events(1))
    watched.reconcile()
    before = names(watched.workspace)
    with Watching(watched) as watcher:
        for path in sorted(watched.store.iterdir()):
            shutil.rmtree(path)
            time.sleep(0.3)
        watcher.hears("waiting")
        assert names(watched.workspace) == before
        assert watcher.stop() == 0
    watched.reconcile()
    assert names(watched.store) == before


def test_one_that_is_removed_is_removed(watched: World, other: World) -> None:
    """Waiting for more to go ends."""
    with Watching(watched) as one, Watching(other) as two:
        shutil.rmtree(watched.store / f"{THIRD}-it")
        until(lambda: not (watched.workspace / f"{THIRD}-it").exists())
        until(lambda: one.done() == [("remove-stale", f"jp-c{THIRD}", "conversation")])
        shutil.rmtree(watched.store / f"{ONLY_THERE[0]}-it")
        until(lambda: not (other.workspace / f"{ONLY_THERE[0]}-it").exists())
        assert one.stop() == two.stop() == 0


def test_what_was_in_the_store_alone_is_named_with_the_way_back(watched: World) -> None:
    """One of the local ones was in the workspace once, so that the vault has it; the other was made in the store."""
    write_conversation(watched.store / "17500000021-it", "Made there", events(2))
    for number in (FIRST, 17500000021):
        watched.reconcile("local", str(number))
    shutil.rmtree(watched.store)
    told = watched.reconcile().output
    assert "lost with the store" in told
    assert f"reconcile restore jp-c{FIRST}@" in told
    assert "jp-c17500000021; the vault has no version of it" in told
    assert "lost with the store" not in watched.reconcile().output, "it is said once"
    for words in (["status"], ["doctor"], ["recover", "--dry-run"]):
        told = watched.run("--workspace", watched.project, *words).output
        assert f"reconcile restore jp-c{FIRST}@" in told, words
        assert "jp-c17500000021" in told, words
    run = told.partition(f"jp-c{FIRST}@")[2].split()[0]
    watched.reconcile("restore", f"jp-c{FIRST}@{run}")
    assert watched.event_count(FIRST) == 3
    assert not (watched.workspace / f"{FIRST}-it").exists(), "it is local still"
    assert f"jp-c{FIRST}@" not in watched.run("--workspace", watched.project, "doctor").output
    line = ("rm", "jp-c17500000021", "-w", watched.project)
    assert "this needs a yes" in watched.run(*line).output
    assert "Remove jp-c17500000021 from the list" in at_terminal(*line, answers="n\n")[1]
    assert "jp-c17500000021" in watched.run("doctor", "-w", watched.project).output, "it asks first"
    assert "not listed any more" in watched.reconcile("rm", "jp-c17500000021", "--yes").output
    assert watched.run("--workspace", watched.project, "doctor").exit_code == 0


def test_rm_removes_nothing_from_the_list_of_the_lost_if_another_id_is_wrong(watched: World) -> None:
    lost = "jp-c17500000021"
    write_conversation(watched.store / "17500000021-it", "Made there", events(2))
    watched.reconcile("local", lost)
    shutil.rmtree(watched.store)
    watched.reconcile()
    sides = ("-w", watched.project)
    assert (
        f"{lost}: lost with a store, would not be listed any more"
        in watched.run("rm", lost, "--dry-run", *sides).output
    )
    assert "no conversation has" in watched.run("rm", lost, "nosuch", "--yes", *sides).output
    assert lost in watched.run("doctor", *sides).output
    _, told = at_terminal("rm", lost, str(FIRST), *sides, answers="y\nn\n")
    assert "Cancelled, the list of what was lost was changed, but nothing else changed." in told
    assert lost not in watched.run("doctor", *sides).output
    assert watched.event_count(FIRST) == 3


def test_what_another_checkout_has_is_named_with_the_run_that_saves_it(watched: World, other: World) -> None:
    remove(watched.store)
    told = watched.reconcile().output
    assert f"reconcile --workspace {other.project}" in told
    other.reconcile()
    assert "lost" not in watched.run("--workspace", watched.project, "status").output
    assert "lost" not in watched.reconcile().output


def test_what_was_removed_on_purpose_is_not_missed(watched: World) -> None:
    watched.reconcile("rm", str(FIRST), "--yes")
    shutil.rmtree(watched.store)
    assert "lost with" not in watched.reconcile().output
    told = watched.run("--workspace", watched.project, "status").output
    assert f"jp-c{FIRST}" not in told


@pytest.fixture
def saved(on_disk: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a checkout on a disk that uses inodes again, with a copy of its store from before the last two."""
    monkeypatch.setenv("JP_USER_DATA_DIR", str(on_disk / "jp"))
    world = make_project(on_disk / "project", run)
    for number in range(6):
        write_conversation(world.workspace / f"{FIRST + number}-it", "It", events(3))
    world.reconcile()
    copied(world.store, on_disk / "saved")
    for number in (6, 7):
        write_conversation(world.workspace / f"{FIRST + number}-it", "It", events(3))
    world.reconcile()
    return world


def copied(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", source, target], check=True)


def test_a_store_that_is_restored_from_a_copy_is_another_one_even_with_the_same_inode(
    saved: World, on_disk: Path
) -> None:
    """What the older copy lacks was not removed."""
    inode = saved.store.stat().st_ino
    shutil.rmtree(saved.store)
    copied(on_disk / "saved", saved.store)
    if saved.store.stat().st_ino != inode:
        pytest.skip("the file system has chosen another inode")
    saved.reconcile()
    assert len(names(saved.workspace)) == len(names(saved.store)) == 8


def test_a_store_that_was_moved_and_came_back_is_the_same_one(saved: World, on_disk: Path) -> None:
    """By its inode and generation: a removal in it is one."""
    saved.store.rename(on_disk / "away")
    (on_disk / "away").rename(saved.store)
    shutil.rmtree(saved.store / f"{FIRST}-it")
    saved.reconcile()
    assert not (saved.workspace / f"{FIRST}-it").exists()


def test_a_limited_run_beside_another_store_forgets_nothing_of_the_rest(saved: World, on_disk: Path) -> None:
    """When the store is back, what was removed from it or from the workspace meanwhile is a removal."""
    first, second, third = (f"{FIRST + number}-it" for number in range(3))
    saved.store.rename(on_disk / "away")
    saved.store.mkdir()
    copied(on_disk / "away" / first, saved.store / first)
    shutil.rmtree(saved.workspace / second)
    known = saved.remembered()["agreed"]
    saved.reconcile("--only", str(FIRST), settled=False)
    assert saved.remembered()["agreed"] == known
    shutil.rmtree(saved.store)
    (on_disk / "away").rename(saved.store)
    shutil.rmtree(saved.store / third)
    saved.reconcile()
    assert not (saved.workspace / second).exists()
    assert not (saved.workspace / third).exists()
    assert len(names(saved.workspace)) == 6


def test_a_store_that_an_older_version_recorded_without_a_generation_is_still_the_same_one(saved: World) -> None:
    with contextlib.closing(sqlite3.connect(saved.state / DATABASE)) as connection, connection:
        (known,) = connection.execute("SELECT store_identity FROM checkout").fetchone()
        assert known.count(":") == 2
        connection.execute("UPDATE checkout SET store_identity = ?", (known.rpartition(":")[0],))
    shutil.rmtree(saved.store / f"{FIRST}-it")
    assert "lost" not in saved.reconcile().output
    assert not (saved.workspace / f"{FIRST}-it").exists(), "it was removed from a known store"
    with contextlib.closing(sqlite3.connect(saved.state / DATABASE)) as connection:
        assert connection.execute("SELECT store_identity FROM checkout").fetchall() == [(known,)]

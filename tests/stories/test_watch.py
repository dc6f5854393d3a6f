"""`reconcile watch` beside people, JP, git and itself (docs/watch.md): real processes, and waiting for what they do."""

from __future__ import annotations

import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.state.database import State
from tests.support.projects.git_world import commit, git
from tests.support.projects.jp_process import JpProcess
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.watcher import Watching, grow, until
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    digest_of,
    events,
    listing,
    make_project,
    set_key,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Run
    from tests.support.projects.world import World

ONE = f"jp-c{FIRST}"


@pytest.fixture
def another(watched: World, tmp_path: Path, run: Run) -> World:
    """Another checkout of the same store, with the same in it."""
    other = make_project(tmp_path / "other", run)
    shutil.copytree(watched.workspace, other.workspace, dirs_exist_ok=True)
    other.reconcile()
    return other


def same(world: World, number: int) -> bool:
    """Tell whether both sides have the same of a conversation."""
    sides = [sorted(side.rglob(f"{number}-*/*.json")) for side in (world.store, world.workspace)]
    try:
        store, workspace = ([digest_of(path) for path in paths] for paths in sides)
    except FileNotFoundError:
        return False
    return store == workspace and len(store) == 3


def test_what_is_written_on_one_side_is_on_the_other(watched: World) -> None:
    with Watching(watched) as watcher:
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        grow(watched.store, SECOND_ID)
        until(lambda: watched.event_count(SECOND_ID, watched.workspace) == 5)
        watcher.hears("done", times=2)
        assert watcher.stop() == 0
    assert watcher.done() == [("copy", ONE, "stream"), ("project", f"jp-c{SECOND_ID}", "stream")]
    watched.check_settled()
    watched.check_clean()


def test_a_first_run_and_a_new_conversation(world: World) -> None:
    three(world)
    world.store.mkdir(parents=True)
    with Watching(world) as watcher:
        watcher.hears("done", times=3)
        shutil.rmtree(world.workspace / f"{THIRD}-it")
        watcher.hears("noted", "still in the store; restore it: reconcile project ")
        shutil.copytree(world.workspace / f"{FIRST}-it", world.workspace / "17500000009-it")
        until(lambda: same(world, 17500000009))
        shutil.rmtree(world.store / f"{SECOND_ID}-it")
        until(lambda: not (world.workspace / f"{SECOND_ID}-it").exists())
        assert watcher.stop() == 0
    world.check_settled()


def in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def in_pieces(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        for at in range(0, len(content), 100):
            file.write(content[at : at + 100])
            file.flush()


def as_vim_does(path: Path, content: bytes) -> None:
    """A backup by rename, a new file, the backup away; a swap file all the while."""
    swap, backup = path.with_name(f".{path.name}.swp"), path.with_name(f"{path.name}~")
    swap.write_bytes(b"b0VIM")
    path.rename(backup)
    path.write_bytes(content)
    backup.unlink()
    swap.unlink()


def as_others_do(path: Path, content: bytes) -> None:
    """VS Code, JetBrains, JP: written beside it, and renamed over it."""
    other = path.with_name(f".{path.name}.tmp")
    other.write_bytes(content)
    other.replace(path)


@pytest.mark.parametrize("save", [in_place, in_pieces, as_vim_does, as_others_do])
def test_editors(watched: World, save: Callable[[Path, bytes], None]) -> None:
    path = watched.workspace / f"{FIRST}-it" / "metadata.json"
    with Watching(watched) as watcher:
        save(path, path.read_bytes().replace(b'"It"', b'"That"'))
        until(lambda: same(watched, FIRST) and watcher.said("done", '"move"'))
        assert watcher.stop() == 0
    assert {kind for kind, _, _ in watcher.done()} == {"copy", "move"}
    assert not watcher.said("held")
    watched.check_settled()


def test_what_does_not_parse_yet_waits_and_is_said_once_when_it_stays_so(watched: World) -> None:
    path = watched.workspace / f"{FIRST}-it" / "events.json"
    whole = path.read_bytes()
    with Watching(watched) as watcher:
        path.write_bytes(whole[:-20])
        watcher.hears("held", "events.json")
        path.write_bytes(whole)
        watcher.hears("released", ONE)
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0
    assert len(watcher.said("held")) == 1


@pytest.mark.long
def test_nothing_is_done_while_git_is_at_work(watched: World) -> None:
    git(watched.project, "init", "-q")
    lock = watched.project / ".git" / "index.lock"
    with Watching(watched) as watcher:
        lock.touch()
        watcher.hears("waiting", "index.lock")
        grow(watched.workspace, FIRST)
        grow(watched.store, SECOND_ID)
        watcher.process.send_signal(signal.SIGHUP)  # which opens everything anew, and finds git at work again
        assert not watcher.done()
        before = watcher.cpu()
        time.sleep(2)
        assert watcher.cpu() - before < 1, "it waits, and does nothing"
        lock.unlink()
        watcher.hears("resumed")
        until(lambda: watched.event_count(FIRST) == 5 and watched.event_count(SECOND_ID, watched.workspace) == 5)
        assert watcher.stop() == 0
    assert len(watcher.said("waiting")) == 1


def test_nothing_is_said_of_moments_that_git_takes(watched: World) -> None:
    git(watched.project, "init", "-q")
    lock = watched.project / ".git" / "index.lock"
    longest = 0.0
    with Watching(watched) as watcher:
        for count in range(1, 4):
            begin = time.monotonic()
            lock.touch()
            grow(watched.workspace, FIRST, 1)
            time.sleep(0.4)
            assert watched.event_count(FIRST) == 2 + count
            lock.unlink()
            longest = max(longest, time.monotonic() - begin)
            until(partial(same, watched, FIRST))
        assert watcher.stop() == 0
    assert not watcher.said("waiting") or longest > 2, "on a machine that sleeps itself"


def has(world: World, **counts: int) -> bool:
    """Tell whether so many rows are remembered."""
    found = world.remembered()
    return all(len(found[table]) == count for table, count in counts.items())


def test_a_branch_is_switched(world: World) -> None:
    """One pass takes up what a switch has changed, git finds nothing of ours in its way, and what went comes back."""
    many = [17500000100 + number for number in range(40)]
    for number in many:
        write_conversation(world.workspace / f"{number}-it", "It", events(3))
    git(world.project, "init", "-q")
    commit(world, "old")
    world.reconcile()
    git(world.project, "switch", "-qc", "new")
    for number in many:
        grow(world.workspace, number)
    write_conversation(world.workspace / "17500000900-it", "New", events(3))
    world.reconcile()
    commit(world, "new")
    before = listing(world.store)
    with Watching(world) as watcher:
        for branch in ("main", "new", "main", "new"):
            runs = len(world.remembered()["run"])
            git(world.project, "switch", "-q", branch)
            behind, away = (len(many), 1) if branch == "main" else (0, 0)
            until(partial(has, world, aside=behind, intent=away), branch)
            assert len(world.remembered()["run"]) - runs <= 1
            assert git(world.project, "status", "--porcelain") == ""
        assert watcher.stop() == 0
    assert listing(world.store) == before
    world.check_settled()


def test_a_workspace_that_goes_is_waited_for(watched: World, tmp_path: Path) -> None:
    jp = watched.project / ".jp"
    before = listing(watched.store)
    silo = watched.silo
    with Watching(watched) as watcher:
        jp.rename(tmp_path / "away")
        watcher.hears("waiting")
        (tmp_path / "away").rename(jp)
        watcher.hears("resumed")
        assert listing(silo / "conversations") == before
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0
    watched.check_settled()


def test_a_silo_that_jp_renames(watched: World) -> None:
    silo = watched.silo
    other = silo.with_name(f"other-{silo.name.rpartition('-')[2]}")
    with Watching(watched) as watcher:
        silo.rename(other)
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST, other / "conversations") == 5)
        assert watcher.stop() == 0
    assert not silo.exists()
    watched.check_settled()


@pytest.mark.parametrize("side", [pytest.param("store", marks=pytest.mark.long), "workspace"])
def test_a_directory_is_moved_into_one_that_was_just_made(watched: World, side: str) -> None:
    """The new place is heard of long before the old one; nothing may be taken for a duplicate of what is gone."""
    root = watched.store if side == "store" else watched.workspace
    with Watching(watched) as watcher:
        inner = root / f"{SECOND_ID}-it" / "conversations"
        inner.mkdir()
        (root / f"{FIRST}-it").rename(inner / f"{FIRST}-it")
        grow(watched.workspace, THIRD)
        until(lambda: watched.event_count(THIRD) == 5)
        time.sleep(1.5)  # what comes late comes by now
        assert watcher.stop() == 0
    assert len(list(watched.store.rglob(f"{FIRST}-*"))) == len(list(watched.workspace.rglob(f"{FIRST}-*"))) == 1
    watched.check_settled()


def test_a_link_in_the_place_of_a_side_is_not_followed(watched: World, tmp_path: Path) -> None:
    with Watching(watched) as watcher:
        watched.workspace.rename(tmp_path / "elsewhere")
        watched.workspace.symlink_to(tmp_path / "elsewhere")
        watcher.hears("waiting", "symbolic link")
        before = listing(tmp_path / "elsewhere")
        grow(watched.store, FIRST)
        time.sleep(1)
        assert listing(tmp_path / "elsewhere") == before
        assert watcher.stop() == 0


def test_the_state_is_removed(watched: World, run: Run) -> None:
    """A second watcher still finds that there is one."""
    with Watching(watched) as watcher:
        shutil.rmtree(watched.state)
        until(watched.state.exists)
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert run("watch", "--workspace", watched.project).exit_code == 5
        assert watcher.stop() == 0


def test_what_jp_has_is_taken_up_when_it_is_free(watched: World) -> None:
    with JpProcess(watched.silo, watched.project / ".jp") as jp, Watching(watched) as watcher:
        assert jp.take(FIRST)
        grow(watched.workspace, FIRST)
        watcher.hears("skipped", ONE)
        grow(watched.workspace, THIRD)
        until(lambda: watched.event_count(THIRD) == 5)
        assert watched.event_count(FIRST) == 3
        jp.release(FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0
    assert len(watcher.said("skipped")) == 1


@pytest.mark.parametrize(("is_of_home", "most"), [(False, 8), (True, 3)])
def test_a_lock_whose_holder_is_not_seen_is_tried_ever_more_rarely(
    watched: World, tmp_path: Path, *, is_of_home: bool, most: int
) -> None:
    """Each attempt is a run in the journal. `watch --all` never looks for the holder."""
    site = tmp_path / "site"
    site.mkdir()
    hidden = "from reconcile.adapters.jp import locks\nlocks.PROC_LOCKS = '/nonexistent'\n"
    (site / "sitecustomize.py").write_text(hidden)
    path, world = {"PYTHONPATH": str(site)}, None if is_of_home else watched
    with JpProcess(watched.silo, watched.project / ".jp") as jp, Watching(world, environment=path) as watcher:
        assert jp.take(FIRST)
        before = run_count(watched)
        grow(watched.workspace, FIRST)
        watcher.hears("skipped", ONE)
        time.sleep(8)
        assert 2 <= run_count(watched) - before <= most
        jp.release(FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0


def run_count(world: World) -> int:
    with State.open(str(world.state), readonly=True) as state:
        return len(state.journal.runs())


def test_a_second_one_says_who_was_first(watched: World, run: Run) -> None:
    with Watching(watched) as watcher:
        second = run("watch", "--workspace", watched.project)
        assert second.exit_code == 5
        assert f"process {watcher.process.pid}" in second.stderr
        assert "is watching this workspace" in second.stderr
        assert watcher.stop() == 0


def test_single_commands_meanwhile(watched: World) -> None:
    with Watching(watched) as watcher:
        watched.reconcile("local", str(FIRST), "--yes", settled=False)
        grow(watched.store, FIRST)
        grow(watched.store, SECOND_ID)
        until(lambda: watched.event_count(SECOND_ID, watched.workspace) == 5)
        assert not list(watched.workspace.glob(f"{FIRST}-*"))
        watched.reconcile("project", str(FIRST), "--yes", settled=False)
        until(lambda: same(watched, FIRST))
        assert watcher.stop() == 0
    assert ("project", f"jp-c{SECOND_ID}", "stream") in watcher.done()
    watched.check_settled()


def test_control_c(watched: World) -> None:
    with Watching(watched) as watcher:
        assert watcher.stop(signal.SIGINT) == 130
    assert watcher.events[-1]["event"] == "stopped"


def test_the_configuration_is_read_again(watched: World) -> None:
    set_key(watched.workspace / f"{SECOND_ID}-it", "parent_id", ONE, LONG_AGO + 10 * SECOND)
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    with Watching(watched) as watcher:
        until((watched.workspace / f"{FIRST}-it" / "conversations" / f"{SECOND_ID}-it").exists)
        config.write_text('layout = "flat"\n')
        watcher.process.send_signal(signal.SIGHUP)
        until((watched.workspace / f"{SECOND_ID}-it").exists)
        assert watcher.stop() == 0


def test_two_worktrees_of_one_store(watched: World, another: World) -> None:
    """What is written in one goes through the store into the other, and nothing comes back."""
    with Watching(watched) as first, Watching(another) as second:
        grow(watched.workspace, FIRST)
        until(lambda: another.event_count(FIRST, another.workspace) == 5)
        grow(another.workspace, SECOND_ID)
        until(lambda: watched.event_count(SECOND_ID, watched.workspace) == 5)
        first.hears("done", times=2)
        second.hears("done", times=2)
        assert (first.stop(), second.stop()) == (0, 0)
    assert first.done() == [("copy", ONE, "stream"), ("project", f"jp-c{SECOND_ID}", "stream")]
    assert second.done() == [("project", ONE, "stream"), ("copy", f"jp-c{SECOND_ID}", "stream")]

"""`reconcile watch --all`: every project of the user, also those that come later."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.fs.locks import run_lock
from tests.agents.program import VERSIONS
from tests.support.formats.claude_code_project import Sides, carried, sweep, titled
from tests.support.projects.git_world import git
from tests.support.projects.three_conversations import FIRST, SECOND_ID, three
from tests.support.projects.watcher import Watching, grow, until
from tests.support.projects.world import command, events, make_project, write_conversation

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.long

SETTLED = 8.0
"""Seconds after which a watcher has found that a side is another directory."""
NEW, OLD = VERSIONS[-1], VERSIONS[0]


def kept(*projects: Sides) -> bool:
    return all(carried(each.store).items() >= carried(each.live).items() for each in projects)


@pytest.fixture
def one(tmp_path: Path, run: Run) -> Sides:
    return Sides(tmp_path / "one", run).play(NEW, "plain")


@pytest.fixture
def jp(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    three(world)
    world.reconcile()
    return world


def test_projects_that_are_there_and_those_that_come_later_are_kept(one: Sides, tmp_path: Path, run: Run) -> None:
    with Watching(None) as watching:
        until(lambda: kept(one), "what was there is saved")
        one.play(NEW, "continued")
        until(lambda: kept(one), "a turn is saved")
        new = Sides(tmp_path / "new", run).play(OLD, "continued").play(OLD, "subagent")
        until(lambda: kept(new), "a new project is saved")
        until(lambda: {each.get("project") for each in watching.said("done")} == {str(one.project), str(new.project)})
        assert watching.stop(signal.SIGTERM) == 0
    assert run("--all").output == "Nothing to do in 2 projects.\n"


def test_the_directory_of_claude_code_may_come_later_or_be_deleted(tmp_path: Path, run: Run) -> None:
    sides = Sides(tmp_path / "one", run)
    with Watching(None) as watching:
        sides.play(NEW, "plain")
        until(lambda: kept(sides), "it was noticed")
        before = carried(sides.live)
        sides.lose()
        until(lambda: not sides.config.exists())
        later = Sides(tmp_path / "later", run).play(OLD, "plain")
        until(lambda: kept(later), "it was noticed again")
        assert watching.stop() == 0
    assert carried(sides.store) == before
    sides.reconcile("recover", "--yes")
    assert carried(sides.live) == before


def test_a_session_that_was_swept_while_it_watched_comes_back(one: Sides) -> None:
    before = carried(one.live)
    with Watching(None) as watching:
        until(lambda: kept(one))
        for path in one.live.glob("*.jsonl"):
            path.unlink()
        one.play(OLD, "continued")
        until(lambda: kept(one))
        assert watching.stop() == 0
    assert not carried(one.live).items() >= before.items()
    one.reconcile("recover", "--yes")
    assert carried(one.live).items() >= before.items()


def test_each_deleted_session_is_named_once_by_title_also_quietly(tmp_path: Path, run: Run) -> None:
    one = titled(Sides(tmp_path / "p1", run), "Audit", "Build", "Chart")
    other = titled(Sides(tmp_path / "p2", run), "Draft")
    with Watching(None, "--quiet", ready=False) as watching:
        until(lambda: kept(one, other), "what was there is saved")
        sweep(one, "a")
        watching.hears("noted", "store: Audit; restore it: reconcile recover aaaaaaaa")
        sweep(other)
        watching.hears("noted", "store: Draft; restore it: reconcile recover dddddddd")
        watching.process.send_signal(signal.SIGSTOP)  # so that it sees both deletions at once, also on a busy machine
        sweep(one)
        watching.process.send_signal(signal.SIGCONT)
        watching.hears("noted", "2 sessions were removed from the workspace, and are in the store: Build, Chart; ")
        assert watching.stop() == 0
    projects = [each["project"] for each in watching.events]
    assert projects == [str(one.project), str(other.project), str(one.project)], watching.events
    assert all(f" --workspace {each['project']} --format claude-code" in each["message"] for each in watching.events)


def test_a_watcher_of_one_project_names_a_deleted_session_by_title(tmp_path: Path, run: Run) -> None:
    one = titled(Sides(tmp_path / "p1", run), "Audit", "Build")
    one.reconcile()
    with Watching(one) as watching:
        sweep(one, "a")
        watching.hears("noted", "store: Audit; restore it: reconcile recover aaaaaaaa")
        assert watching.stop() == 0


def test_a_session_that_was_deleted_before_the_start_is_named(tmp_path: Path, run: Run) -> None:
    one = titled(Sides(tmp_path / "p1", run), "Audit", "Build")
    run("--all")
    sweep(one, "a")
    for times in (1, 0):
        with Watching(None) as watching:
            assert watching.stop() == 0
        assert len(watching.said("noted", "in the store: Audit; restore it: ")) == times, watching.events


def test_if_every_session_is_lost_the_projects_are_named_also_quietly(tmp_path: Path, run: Run) -> None:
    one = titled(Sides(tmp_path / "p1", run), "Audit")
    run("--all")
    one.lose()
    with Watching(None, "--quiet", ready=False) as watching:
        watching.hears("message", f"{one.project}: Claude Code has no session of it")
        assert watching.stop() == 0


def test_a_project_of_jp_is_kept_once_a_run_has_seen_it(jp: World, one: Sides, tmp_path: Path, run: Run) -> None:
    unseen = make_project(tmp_path / "unseen", run)
    write_conversation(unseen.workspace / "17500000008-unseen", "Unseen", events(3))
    with Watching(None) as watching:
        grow(jp.workspace, FIRST)
        watching.hears("done", str(jp.project))
        grow(jp.store, SECOND_ID)
        watching.hears("done", str(jp.project), times=2)
        until(lambda: kept(one))
        assert watching.stop() == 0
    assert "Nothing to do" in run("-w", jp.project).output
    assert not list(jp.store.glob("*unseen*"))


@pytest.mark.long
def test_the_queue_of_events_overflows(one: Sides, jp: World, tmp_path: Path, run: Run) -> None:
    """What the kernel has dropped is found in every project, and what comes later is listened to."""
    noise = one.live / "00000000-0000-4000-8000-000000000000.tmp"
    with Watching(None) as watching:
        until(lambda: kept(one), "what was there is saved")
        watching.process.send_signal(signal.SIGSTOP)
        for place in (noise, jp.workspace / f"{FIRST}-it" / ".1.tmp"):
            for _ in range(9000):
                place.touch()
                place.unlink()
        one.play(NEW, "continued")
        new = Sides(tmp_path / "new", run).play(OLD, "plain")
        grow(jp.workspace, FIRST)
        watching.process.send_signal(signal.SIGCONT)
        until(lambda: kept(one, new), "the dropped turns are saved")
        watching.hears("done", str(jp.project))
        new.play(OLD, "continued")
        until(lambda: kept(new), "a later turn is saved")
        assert watching.stop() == 0
    assert "Nothing to do" in run("-w", jp.project).output


def test_a_side_that_is_made_again_is_listened_to_again(jp: World) -> None:
    """A branch without conversations was checked out for a while: git removes their directory with the last one."""
    with Watching(None) as watching:
        away = jp.workspace.with_name("away")
        jp.workspace.rename(away)
        jp.workspace.mkdir()
        for path in away.iterdir():
            path.rename(jp.workspace / path.name)
        away.rmdir()
        time.sleep(SETTLED)
        grow(jp.workspace, FIRST)
        watching.hears("done", str(jp.project))
        assert watching.stop() == 0
    assert "Nothing to do" in jp.run("--workspace", jp.project).output


def test_a_workspace_that_was_replaced_waits_for_a_run(jp: World) -> None:
    """As at the start of a watcher: the first run with it decides what is published."""
    with Watching(None) as watching:
        shutil.copytree(jp.workspace.parent, jp.project / "copy")
        shutil.rmtree(jp.workspace.parent)
        (jp.project / "copy").rename(jp.workspace.parent)
        grow(jp.store, FIRST)
        watching.hears("waiting", "left out: another directory is there since its last run")
        grow(jp.store, FIRST)
        time.sleep(3)
        assert watching.stop() == 0
        assert not watching.said("done")


def test_a_wait_that_lasts_is_reported_once(jp: World) -> None:
    """A crash of git leaves its lock for ever; another run may wait for an answer."""
    git(jp.project, "init", "-q")
    lock = jp.project / ".git" / "index.lock"
    with Watching(None) as watching:
        lock.touch()
        grow(jp.store, FIRST)
        watching.hears("waiting", "git is busy (index.lock); 1 change waits until it is done")
        time.sleep(3)
        lock.unlink()
        watching.hears("resumed")
        until(lambda: jp.event_count(FIRST, jp.workspace) == 5)
        with run_lock(str(jp.state), command="another", timeout=10):
            grow(jp.workspace, FIRST)
            watching.hears("waiting", "another reconcile is running on this store")
        watching.hears("resumed", times=2)
        until(lambda: jp.event_count(FIRST, jp.store) == 7)
        assert watching.stop() == 0
    assert len(watching.said("waiting")) == 2
    assert {each["project"] for each in watching.said("waiting")} == {str(jp.project)}


def test_a_store_that_is_lost_is_not_filled(jp: World, run: Run) -> None:
    """As `watch` does: its disk may be not mounted, or its directory moved away."""
    jp.store.rename(f"{jp.store}.away")
    jp.store.mkdir()
    with Watching(None) as watching:
        watching.hears("message", "its store is another directory than at its last run")
        assert watching.stop() == 0
    assert not list(jp.store.iterdir())


def test_a_blocked_project_is_reported_once_and_stops_no_other(one: Sides, tmp_path: Path, run: Run) -> None:
    odd = Sides(tmp_path / "odd", run).play(OLD, "plain")
    name = "00000000-0000-4000-8000-000000000000.jsonl"
    with Watching(None) as watching:
        (odd.live / name).write_text("<a new format>\n" * 9)
        watching.hears("held", name)
        for _ in range(3):
            (odd.live / name).touch()
            odd.live.joinpath("x").write_text("")
        one.play(NEW, "continued")
        until(lambda: kept(one))
        (odd.live / name).unlink()
        watching.hears("released", name)
        assert watching.stop() == 0
    assert len(watching.said("held")) == 1


def test_a_file_that_is_half_written_for_a_moment_is_not_reported(jp: World) -> None:
    path = jp.workspace / f"{FIRST}-it" / "events.json"
    with Watching(None) as watching:
        whole = path.read_bytes()
        path.write_bytes(whole[:-3])
        time.sleep(1)
        path.write_bytes(whole)
        grow(jp.workspace, FIRST)
        watching.hears("done")
        assert not watching.said("held")
        path.write_bytes(whole[:-3])
        watching.hears("held")
        assert watching.stop() == 0


def test_a_session_that_a_program_has_open_is_read(one: Sides) -> None:
    (path,) = one.live.glob("*.jsonl")
    one.open_in(os.getpid(), path.stem)
    with Watching(None) as watching:
        one.play(NEW, "continued")
        until(lambda: kept(one))
        assert watching.stop() == 0


def test_a_second_watcher_of_every_project_is_refused(one: Sides, run: Run) -> None:
    with Watching(None) as watching:
        second = run("watch", "--all")
        assert second.exit_code == 5
        assert "another reconcile is watching every project" in second.output
        assert watching.stop(signal.SIGINT) == 130
    assert kept(one)


def test_a_watcher_of_one_project_beside_it(one: Sides) -> None:
    with Watching(None) as every, Watching(one, "--format", "claude-code") as single:
        one.play(NEW, "continued")
        until(lambda: kept(one))
        assert (every.stop(), single.stop()) == (0, 0)
    assert one.in_sync()


def test_without_events_every_project_is_polled(one: Sides, tmp_path: Path) -> None:
    """The limit of inotify is used up: here, there is none left for this user namespace."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    script = 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--", "sh", "-c", script, "sh")
    with Watching(None, prefix=prefix, ready=False) as watching:
        until(lambda: watching.said("polling") or watching.process.poll() is not None)
        if watching.process.poll() is not None:
            pytest.skip("no user namespace here")
        one.play(NEW, "continued")
        until(lambda: kept(one), "it was polled")
        assert watching.stop() == 0


def test_output_as_text(one: Sides, run: Run) -> None:

    with subprocess.Popen(command("watch", "--all"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        lines += process.stdout.readlines()
    text = "".join(line[10:] for line in lines)
    assert text.startswith(f"{one.project}\n")
    assert text.endswith("watching 1 project\nstopped\n"), text


def test_the_memory_does_not_grow_with_the_passes(one: Sides, tmp_path: Path, run: Run) -> None:
    more = [Sides(tmp_path / f"p{number}", run).play(OLD, "plain") for number in range(5)]

    def resident(watching: Watching) -> int:
        return int(Path(f"/proc/{watching.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    with Watching(None, "--settle", "0.02") as watching:
        until(lambda: kept(one, *more))
        sizes = []
        for number in range(30):
            each = more[number % 5]
            (path,) = each.live.glob("*.jsonl")
            with path.open("a") as file:
                file.write(json.dumps({"type": "mode", "mode": f"mode {number}"}) + "\n")
            until(partial(kept, each))
            sizes.append(resident(watching))
        assert watching.stop() == 0
    assert sizes[-1] - sizes[9] < 4 << 20, sizes

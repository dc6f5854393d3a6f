"""`reconcile watch` where the system, other programs or people get in its way (docs/watch.md): real processes."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.jp.locks import LockRoots, LockSet
from reconcile.adapters.locate import locate
from reconcile.engine.session import Session
from reconcile.fs import paths
from reconcile.fs.mutations import Root
from reconcile.model.policy import Policy
from reconcile.state.connection import as_json
from reconcile.state.database import State
from reconcile.state.journal import Step
from reconcile.watch.reporter import EventKind
from reconcile.watch.watcher import Timings, Watcher, WatchTarget
from tests.support.projects.git_world import commit, git
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.watcher import Watching, grow, until
from tests.support.projects.world import SECOND, command, events, listing, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reconcile.adapters.roots import Roots
    from tests.support.projects.world import World

pytestmark = pytest.mark.long

NEW = 17500000009
HOW = [(signal.SIGTERM, 0), (signal.SIGINT, 130)]
_HOLD = """
import sys
from reconcile.fs.locks import run_lock
with run_lock(sys.argv[1], command="a long one", timeout=30):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def at_work(world: World) -> Iterator[subprocess.Popen[str]]:
    """Have another reconcile hold the lock on the store, as soon as it gets it, while the block runs."""
    words = [sys.executable, "-c", _HOLD, str(world.state)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def limited(name: str, number: int) -> tuple[str, ...]:
    """A user namespace has limits of its own, which may be lowered."""
    lowered = f'echo {number} > /proc/sys/user/{name} && exec "$@"'
    return ("unshare", "--user", "--map-root-user", "sh", "-c", lowered, "sh")


def test_the_queue_of_events_overflows(watched: World) -> None:
    """What the kernel has dropped without a word is found all the same, and what is new is listened to."""
    with Watching(watched) as watcher:
        watcher.process.send_signal(signal.SIGSTOP)
        noise = [watched.workspace / f"{THIRD}-it" / f".{number}.tmp" for number in range(2)]
        for _ in range(9000):
            for path in noise:
                path.touch()
                path.unlink()
        grow(watched.workspace, FIRST)
        write_conversation(watched.workspace / f"{NEW}-it", "It", events(3))
        watcher.process.send_signal(signal.SIGCONT)
        until(lambda: watched.event_count(FIRST) == 5 and watched.event_count(NEW) == 3)
        grow(watched.workspace, NEW)
        until(lambda: watched.event_count(NEW) == 5)
        assert watcher.stop() == 0
    watched.check_settled()


def test_renames_of_directories_do_not_end_the_events(watched: World) -> None:
    """See `tests/watch/test_fs_events.py`: no event would come any more until everything is looked at."""
    one, other = (watched.workspace / f"{FIRST}-it" / name for name in ("a", "b"))
    with Watching(watched) as watcher, closing(Root(str(one.parent))) as root:
        one.mkdir()
        other.mkdir()
        time.sleep(1)
        if not root.exchange("a", "b"):
            pytest.skip("this file system does not exchange names")
        time.sleep(1)
        other.rmdir()
        one.rmdir()
        time.sleep(1)
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0
    watched.check_settled()


def test_a_request_to_read_the_configuration_again_while_it_is_read(watched: World) -> None:
    opened: list[Watcher] = []

    def open_again(watcher: Watcher) -> None:
        opened.append(watcher)
        if len(opened) == 2:
            watcher.queue.reopen()

    with looking_at_everything(watched, 3600 * SECOND, open_again):
        opened[0].queue.reopen()
        until(lambda: len(opened) == 3)


def test_a_killed_run_that_waits_for_a_lock_is_reported_once(watched: World) -> None:
    """JP has the conversation that the killed run was writing, and works on others meanwhile."""
    record = as_json({"target": f"store:{THIRD}-it", "unit": "stream", "writes": [], "removes": []})
    with State.open(str(watched.state)) as state:
        run = state.journal.begin_run(state.checkouts()[0].id, "reconcile", time.time_ns())
        state.journal.plan_steps(run, [Step("1", f"jp-c{THIRD}", "stream", "copy", record)], time.time_ns())
        state.journal.step_begun(run, ["1"], time.time_ns())
    locks = LockSet(LockRoots(str(watched.silo), str(watched.project / ".jp")))
    with locks.acquire([f"jp-c{THIRD}.lock"]) as acquired, Watching(watched) as watcher:
        assert acquired.held
        for times in range(1, 4):
            grow(watched.workspace, FIRST)
            watcher.hears("done", str(FIRST), times=times)
        assert watcher.stop() == 0
        assert len(watcher.said("message", f"run {run} was interrupted")) == 1


@contextmanager
def looking_at_everything(
    world: World, every_ns: int, on_open: Callable[[Watcher], None] = lambda _: None
) -> Iterator[None]:
    """Have a watcher in this process look at everything that often while the block runs.

    ``on_open`` is called whenever it has read its configuration.
    """

    def find() -> Roots:
        return locate("jp", str(world.project), None, str(world.project), os.environ, sys.platform)

    def open_target() -> WatchTarget:
        on_open(watcher)
        return WatchTarget(
            Session(find(), str(world.state), stays=True), Policy(), 10, Timings(everything=every_ns), find
        )

    said: list[EventKind] = []
    watcher = Watcher(open_target, lambda event, _: said.append(event.kind))
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        until(lambda: EventKind.WATCHING in said)
        yield
    finally:
        watcher.queue.stop()
        thread.join()


def test_what_no_event_tells_of_is_found_when_everything_is_looked_at(watched: World, tmp_path: Path) -> None:
    """A file is written by a name that it has elsewhere: only the directory of that name hears of it."""
    elsewhere = tmp_path / f"{FIRST}-it"
    elsewhere.mkdir()
    os.link(watched.workspace / elsewhere.name / "events.json", elsewhere / "events.json")
    with Watching(watched) as watcher:
        grow(tmp_path, FIRST)
        time.sleep(1)
        assert watched.event_count(FIRST) == 3, "an event has told of it"
        assert watcher.stop() == 0
    with looking_at_everything(watched, SECOND):
        until(lambda: watched.event_count(FIRST) == 5, "the first look")
        grow(tmp_path, FIRST)
        until(lambda: watched.event_count(FIRST) == 7, "one of those that follow")
    watched.check_settled()


def test_after_the_machine_was_suspended_everything_is_looked_at(
    watched: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine can't be put to sleep here: its clock that counts on meanwhile is set ahead, as it would be."""
    elsewhere = tmp_path / f"{FIRST}-it"
    elsewhere.mkdir()
    os.link(watched.workspace / elsewhere.name / "events.json", elsewhere / "events.json")
    real, asleep = time.clock_gettime_ns, 0
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: real(clock) + asleep)
    with looking_at_everything(watched, 3600 * SECOND):
        grow(tmp_path, FIRST)
        time.sleep(1)
        assert watched.event_count(FIRST) == 3, "an event has told of it"
        asleep = 60 * SECOND
        until(lambda: watched.event_count(FIRST) == 5)
    watched.check_settled()


def test_a_side_whose_identity_is_unknown_for_a_while(watched: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network disk that does not answer, or a directory above that nobody may read: the watcher goes on waiting."""
    real, is_away = paths.directory_identity, False

    def directory_identity(directory: str) -> str:
        if is_away and directory == str(watched.workspace):
            raise OSError(errno.EIO, "I/O error", directory)
        return real(directory)

    monkeypatch.setattr("reconcile.watch.watcher.directory_identity", directory_identity)
    with looking_at_everything(watched, 3600 * SECOND):
        is_away = True
        time.sleep(1)
        is_away = False
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
    watched.check_settled()


@pytest.mark.parametrize(
    ("name", "number"), [("max_inotify_watches", 2), ("max_inotify_watches", 6), ("max_inotify_instances", 0)]
)
def test_without_watches_it_looks_every_few_seconds(watched: World, name: str, number: int) -> None:
    """There are eight directories: two watches are too few for both sides, six for all that is in them."""
    with Watching(watched, prefix=limited(name, number)) as watcher:
        watcher.hears("polling", f"user.{name} is {number}")
        grow(watched.workspace, FIRST)
        grow(watched.store, THIRD)
        until(lambda: watched.event_count(FIRST) == 5 and watched.event_count(THIRD, watched.workspace) == 5)
        assert watcher.stop() == 0
    (said,) = watcher.said("polling")
    more = 8 if name == "max_inotify_watches" else 1
    assert f"sudo sysctl user.{name}={number + more}" in said["message"]


def test_the_last_watch_is_used_up_on_the_way(watched: World) -> None:
    with Watching(watched, prefix=limited("max_inotify_watches", 10)) as watcher:
        assert not watcher.said("polling")
        for number in range(3):
            write_conversation(watched.workspace / f"{NEW + number}-it", "It", events(3))
        until(lambda: watched.event_count(NEW + 2) == 3)
        watcher.process.send_signal(signal.SIGHUP)
        watcher.hears("polling", "max_inotify_watches")
        grow(watched.workspace, NEW + 2)
        until(lambda: watched.event_count(NEW + 2) == 5)
        assert watcher.stop() == 0


@pytest.mark.parametrize(("how", "code"), HOW)
def test_it_stops_at_once_while_another_is_at_work(watched: World, how: int, code: int) -> None:
    with Watching(watched) as watcher, at_work(watched) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        grow(watched.workspace, FIRST)
        time.sleep(0.5)
        begin = time.monotonic()
        assert watcher.stop(how) == code
        assert time.monotonic() - begin < 5, "another may be at work for long"
    assert watcher.events[-1]["event"] == "stopped"


def test_it_waits_for_another_and_goes_on(watched: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_LOCK_TIMEOUT", "0.5")
    with Watching(watched) as watcher:
        with at_work(watched) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            grow(watched.workspace, FIRST)
            watcher.hears("waiting", "a long one")
        watcher.hears("resumed")
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0


@pytest.mark.parametrize(("how", "code"), HOW)
def test_it_stops_in_the_middle(watched: World, how: int, code: int) -> None:
    """The step in hand is finished, the rest left to the next run, also where another one waits for the lock."""
    many = range(NEW, NEW + 600)
    for number in many:
        write_conversation(watched.workspace / f"{number}-it", "It", events(2))
    with Watching(watched, ready=False) as watcher:
        until(lambda: len(list(watched.store.iterdir())) > 20)
        with at_work(watched):
            assert watcher.stop(how) == code
    there = len(list(watched.store.iterdir()))
    assert there < len(many), "it was in the middle"
    assert watcher.said("ended", "the others follow")
    watched.check_clean()
    watched.reconcile()
    assert len(list(watched.store.iterdir())) == len(many) + 3


def test_the_workspace_is_removed_and_comes_back(watched: World) -> None:
    git(watched.project, "init", "-q")
    commit(watched, "first")
    with Watching(watched) as watcher:
        shutil.rmtree(watched.project / ".jp")
        watcher.hears("waiting")
        git(watched.project, "checkout", "--", ".jp")
        watcher.hears("resumed")
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0
    assert watcher.done() == [("copy", f"jp-c{FIRST}", "stream")]
    watched.check_settled()


def test_the_directory_that_it_was_started_in_is_removed_and_comes_back(watched: World, tmp_path: Path) -> None:
    """As a worktree does."""
    here = 'cd "$0" && exec "$@"'
    with Watching(watched, prefix=("sh", "-c", here, str(watched.project))) as watcher:
        shutil.copytree(watched.project, tmp_path / "copy")
        shutil.rmtree(watched.project)
        watcher.hears("waiting", f"{watched.project} was deleted or moved")
        (tmp_path / "copy").rename(watched.project)
        watcher.hears("resumed")
        grow(watched.workspace, FIRST)
        until(lambda: watched.event_count(FIRST) == 5)
        assert watcher.stop() == 0


@pytest.mark.parametrize("pause", [0, 0.4])
def test_jp_merges_the_store_into_another(watched: World, pause: float) -> None:
    """One by one, while all of it is watched: nothing of that is a removal."""
    before = listing(watched.workspace)
    silo, store = watched.silo, watched.store
    other = silo.with_name(f"another-{silo.name.rpartition('-')[2]}")
    (other / "conversations").mkdir(parents=True)
    with Watching(watched) as watcher:
        for path in sorted(store.iterdir()):
            path.rename(other / "conversations" / path.name)
            time.sleep(pause)
        shutil.rmtree(silo)
        until(lambda: not silo.exists())
        grow(other / "conversations", FIRST)
        until(lambda: watched.event_count(FIRST, watched.workspace) == 5)
        assert watcher.stop() == 0
    after = listing(watched.workspace)
    assert before.keys() == after.keys()
    assert {kind for kind, _, _ in watcher.done()} == {"project"}
    watched.check_settled()


def test_nobody_reads_what_it_says(watched: World) -> None:
    words = command("watch", "--workspace", watched.project)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        grow(watched.workspace, SECOND_ID)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    watched.reconcile()

"""A second process stages ahead: what it wrote is used where nothing has changed since, and it is never needed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.apply import prefetch
from reconcile.apply.prefetch import Prefetcher
from reconcile.apply.staging import Stage
from tests.support.projects.world import World, command, events, listing, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconcile.model.plan import Action
    from tests.conftest import Run

FIRST = 17500000001
COUNT = 9
OWN = [f"jp-c{FIRST}"]
"""Of the first batch the half that this process stages itself."""
TICK_S = 0.05
"""Longer than any tick of the file system's clock."""


def written(world: World, count: int) -> None:
    """Write so many conversations into the workspace; one is another's child."""
    for number in range(count):
        write_conversation(world.workspace / f"{FIRST + number}-it", "It", events(3))
    write_conversation(
        world.workspace / f"{FIRST}-it" / "conversations" / f"{FIRST - 1}-in", "In", events(3), parent=FIRST
    )


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    written(world, COUNT)
    time.sleep(TICK_S)
    return world


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two, and a second process for few; the tests' own threads have no part in it."""
    monkeypatch.setattr("reconcile.apply.executor.LOCKS_AT_ONCE", 2)
    monkeypatch.setattr(prefetch, "WORTH_A_PROCESS", 2)
    monkeypatch.setattr(prefetch, "is_possible", lambda: True)


@pytest.fixture
def here() -> Iterator[list[str]]:
    """The conversations that this process has staged itself."""
    found: list[str] = []
    usual = Stage.write_directory

    def write_directory(stage: Stage, action: Action, base: str) -> Any:
        found.append(action.conversation)
        return usual(stage, action, base)

    with mock.patch.object(Stage, "write_directory", write_directory):
        yield found


def after(name: str, then: Callable[[Prefetcher], None]) -> Any:
    """Have something happen whenever a method has returned."""
    usual = getattr(Prefetcher, name)

    def called(self: Prefetcher, *args: Any) -> Any:
        found = usual(self, *args)
        then(self)
        return found

    return mock.patch.object(Prefetcher, name, called)


@pytest.mark.usefixtures("small")
def test_everything_is_staged_ahead(world: World, here: list[str]) -> None:
    world.reconcile()
    assert here == OWN
    assert len(listing(world.store)) == 3 * (COUNT + 1)
    assert {path.parent.name.partition("-")[0] for path in world.store.glob("*/events.json")} == {
        str(FIRST - 1 + number) for number in range(COUNT + 1)
    }


@pytest.mark.usefixtures("small")
def test_this_process_stages_a_share_of_each_batch(
    world: World, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "OWN_SHARE", 2)
    world.reconcile()
    assert here == [f"jp-c{FIRST + number}" for number in (0, 1, 3, 5, 7)]
    assert len(listing(world.store)) == 3 * (COUNT + 1)


@pytest.mark.usefixtures("small")
def test_also_into_a_workspace_children_after_their_parents(
    world: World, here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.reconcile()
    time.sleep(TICK_S)
    here.clear()
    other = make_project(world.project.with_name("other"), world.run)
    monkeypatch.setenv("RECONCILE_MISSING", "reproject")
    other.reconcile("--store", world.silo, settled=False)
    assert here == OWN
    assert listing(other.workspace) == listing(world.workspace)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("moment", ["__init__", "_receive", "take"])
def test_this_process_does_the_rest_where_the_other_one_is_killed(world: World, here: list[str], moment: str) -> None:
    def kill(self: Prefetcher) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)

    with after(moment, kill):
        world.reconcile()
    assert len(here) > len(OWN)
    assert len(listing(world.store)) == 3 * (COUNT + 1)


@pytest.mark.usefixtures("small")
def test_or_where_there_can_be_no_other_one(world: World, here: list[str]) -> None:
    with mock.patch("os.fork", side_effect=BlockingIOError(11, "Resource temporarily unavailable")):
        world.reconcile()
    assert len(here) == COUNT + 1


@pytest.mark.usefixtures("small")
def test_a_source_that_was_changed_since_is_read_again(world: World, here: list[str]) -> None:
    """Its size and its time are as they were; only the bytes, and the change time, tell."""
    path = world.workspace / f"{FIRST + 3}-it" / "events.json"
    before = path.stat()

    def rewrite(_: Prefetcher) -> None:
        if b"a1" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"a1", b"b1"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with after("take", rewrite):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 4
    assert "changed since the plan was made" in result.output
    assert here == [*OWN, f"jp-c{FIRST + 3}"]
    assert not (world.store / f"{FIRST + 3}-it").exists()
    world.check_clean()
    world.reconcile()
    assert listing(world.store / f"{FIRST + 3}-it") == listing(world.workspace / f"{FIRST + 3}-it")


@pytest.mark.usefixtures("small")
def test_what_was_touched_since_is_drift(world: World) -> None:
    path = world.workspace / f"{FIRST + 3}-it" / "metadata.json"
    with after("take", lambda _: os.utime(path)):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 4
    assert "changed since the plan was made" in result.output
    world.reconcile()


@pytest.mark.usefixtures("small")
def test_what_is_in_the_way_by_now_stays(world: World) -> None:
    there = world.store / f"{FIRST + 3}-it"

    def write(_: Prefetcher) -> None:
        if not there.exists():
            write_conversation(there, "Theirs", events(2, "b"))

    with after("take", write):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 4
    assert "created since the plan was made" in result.output
    world.check_clean()
    before = world.kept()
    world.reconcile()
    assert before <= world.kept()


@pytest.mark.usefixtures("small")
def test_what_a_file_is_too_young_for_is_left_to_this_process(world: World, here: list[str]) -> None:
    with mock.patch.object(prefetch, "is_racy_safe", return_value=False):
        world.reconcile()
    assert len(here) == COUNT + 1


# --- real processes ---------------------------------------------------------------------------------------------

MANY = 300
"""More than is worth a second process."""


@pytest.fixture
def many(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "many", run)
    written(world, MANY)
    time.sleep(TICK_S)
    return world


def started(world: World) -> tuple[subprocess.Popen[bytes], int]:
    """Start a run, and wait for its second process; its number."""
    run = subprocess.Popen(command("--workspace", world.project), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    while run.poll() is None:
        if found := children.read_text().split():
            return run, int(found[0])
    pytest.fail("there was no second process")


def is_there(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux tells the children of a process there")
@pytest.mark.parametrize(
    "who", ["both", *(pytest.param(one, marks=pytest.mark.long) for one in ("the first", "the second"))]
)
def test_real_processes_are_killed(many: World, who: str) -> None:
    before = many.kept()
    run, child = started(many)
    time.sleep(random.Random(who).uniform(0, 0.02))  # a run in memory ends soon
    for pid in {"the second": [child], "the first": [run.pid], "both": [run.pid, child]}[who]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    code = run.wait()
    assert code == (0 if who == "the second" else -signal.SIGKILL)
    many.reconcile()
    assert not is_there(child)
    assert before <= many.kept()
    assert len(listing(many.store)) == 3 * (MANY + 1)


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux tells the children of a process there")
def test_nobody_else_begins_before_the_second_process_is_gone(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_LOCK_TIMEOUT", "0.2")
    run, child = started(many)
    os.kill(child, signal.SIGSTOP)
    run.kill()
    run.wait()
    try:
        result = many.run("--workspace", many.project)
        assert result.exit_code == 5, result.output
        left = staged(many)
    finally:
        os.kill(child, signal.SIGCONT)
    while is_there(child):
        time.sleep(0.01)
    assert len(staged(many)) <= len(left) + 4, "it has finished the directory in hand, and no other"
    many.reconcile()
    assert len(listing(many.store)) == 3 * (MANY + 1)


def staged(world: World) -> list[Path]:
    """What lies in the store's staging directory."""
    return [path for staged in world.store.glob(".reconcile-*") for path in staged.rglob("*")]

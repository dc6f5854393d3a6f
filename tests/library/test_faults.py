"""A program killed, refused space or failed by the disk at any of its steps loses nothing that was flushed.

`make faults` takes every step, and every system call of a real process under strace; some are in the default suite.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile import LibraryError, Workspace
from reconcile.errors import ReconcileError
from tests.support.faults.fault_points import Mode, under_fault
from tests.support.faults.strace import EFFECTS, Straced, unusable
from tests.support.library.conversations import check
from tests.support.library.story import NAMES, found, story
from tests.support.projects.world import listing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.projects.world import World

PROJECT = Path(__file__).parents[2]
STRIDES = {Mode.KILLED: 97, Mode.TORN: 29, Mode.FULL: 101, Mode.BROKEN: 113}


class Again:
    """A world that is put back as it was after each try."""

    def __init__(self, world: World, saved: Path) -> None:
        self.world = world
        self._places = {world.project: saved / "project", world.user_data: saved / "jp", world.state: saved / "state"}
        for place, copy in self._places.items():
            shutil.copytree(place, copy, symlinks=True)
        self._acknowledged = saved / "acknowledged"

    @property
    def acknowledged(self) -> Path:
        self._acknowledged.unlink(missing_ok=True)
        return self._acknowledged

    def restore(self) -> None:
        for place, copy in self._places.items():
            # The directories themselves stay: another inode would be another checkout.
            for each in place.iterdir():
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
            shutil.copytree(copy, place, symlinks=True, dirs_exist_ok=True)

    def judge(self, where: str) -> None:
        """Demand that all that was acknowledged holds, for the next program and after the next run."""
        done = self._acknowledged.read_text().split() if self._acknowledged.exists() else []
        with Workspace.open(self.world.project) as workspace:
            assert set(done) <= found(workspace), f"{where}: {done}"
            for handle in workspace.conversations():
                lock = workspace.lock_conversation(handle, timeout=1)
                assert lock is not None
                with lock, lock.as_mut() as mut:
                    assert mut.metadata is not None
            assert set(done) <= found(workspace), f"{where}: {done}"
        assert self.world.run("--workspace", self.world.project).exit_code == 0, where
        check(self.world)
        staged = [path for path in listing(self.world.project) | listing(self.world.silo) if "/.reconcile-" in path]
        assert not staged, where
        assert not [path for path in self.world.store.iterdir() if "diverged" in path.name], where
        with Workspace.open(self.world.project) as workspace:
            assert set(done) <= found(workspace), f"{where}: {done}"


@pytest.fixture
def again(world: World, tmp_path: Path) -> Again:
    return Again(world, tmp_path / "saved")


def tell(again: Again) -> Callable[[], None]:
    path = str(again.acknowledged)

    def told() -> None:
        try:
            with open(path, "w", encoding="utf-8", buffering=1) as file:
                story(str(again.world.project), lambda name: file.write(f"{name}\n"))
        except (ReconcileError, LibraryError):
            pass  # said in one line, and judged by what is there

    return told


def test_without_faults(again: Again) -> None:
    tell(again)()
    assert again._acknowledged.read_text().split() == list(NAMES)
    again.judge("undisturbed")


def spoil(again: Again, mode: Mode, first: int, stride: int) -> int:
    """Try every so many steps; return how many tries that were."""
    for count, step in enumerate(itertools.count(first, stride)):
        told = tell(again)
        hit = under_fault(mode, step, told)
        again.judge(f"{mode} at step {step}")
        again.restore()
        if not hit:
            return count
    raise AssertionError


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_some_steps(again: Again, mode: Mode, record_property: Callable[[str, object], None]) -> None:
    record_property("faults", (mode.value, spoil(again, mode, STRIDES[mode] // 2, STRIDES[mode])))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_every_step(again: Again, mode: Mode, record_property: Callable[[str, object], None]) -> None:
    record_property("faults", (mode.value, spoil(again, mode, 1, 1)))


def under_strace(again: Again, first: int, stride: int) -> int:
    if words := unusable():
        pytest.skip(words)
    straced = Straced(
        again.world.project.parent / "strace.log", program=(sys.executable, "-m", "tests.support.library.story")
    )
    # The first process may write bytecode, by renames that later ones don't make: the numbers of calls would differ.
    straced(str(again.world.project), again.acknowledged)
    again.restore()
    straced(str(again.world.project), again.acknowledged)
    calls = straced.calls(again.world.project.parent) + straced.calls(again.world.user_data.parent)
    again.restore()
    chosen, hits = calls[first::stride], 0
    for call in chosen:
        straced.inject = f"{call.name}:{EFFECTS['killed']}:when={call.number}"
        straced(str(again.world.project), again.acknowledged)
        hits += straced.was_hit()
        again.judge(straced.inject)
        again.restore()
    # A file that has just been written is read once more, or not, by the time: the number of `openat` differs by a few.
    assert hits * 10 >= len(chosen) * 9, f"{hits} of {len(chosen)}"
    return hits


def test_a_real_process_killed_at_some_calls(again: Again, record_property: Callable[[str, object], None]) -> None:
    record_property("faults", ("killed by strace", under_strace(again, 100, 400)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_real_process_killed_at_every_call(again: Again, record_property: Callable[[str, object], None]) -> None:
    record_property("faults", ("killed by strace", under_strace(again, 0, 1)))

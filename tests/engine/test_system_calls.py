"""What a run costs for each conversation, in system calls: those are the same on every machine, unlike times."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.strace import unusable
from tests.support.projects.world import LONG_AGO, SCRIPT, World, append, events, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run

pytestmark = pytest.mark.long

FIRST = 17_528_832_001
FEW, MANY = 60, 160
"""Of both, an index saves one change alone."""
PATHS = 2 * 4
"""Of a conversation: its directory and three files on each side."""
MEMORY = ("brk", "madvise", "mmap", "mremap", "munmap")
"""Not counted: how often the allocator asks depends on what it has."""
IN_WORKSPACE = "read in the workspace"
FROM_PIPE = "read of a pipe"
"""How many it takes to read the result of the helper process depends on how fast that writes, not on the files."""
READS = ("getdents64", "openat", "pread64", "read", FROM_PIPE, IN_WORKSPACE)
_CALL = re.compile(r"(?:\d+ +)?(\w+)\(")


def settled(project: Path, count: int, run: Run) -> World:
    """Make conversations that are in sync, for long enough: what is younger is looked at more closely.

    One of them has changed since the index was saved, so that it has changes in a file of their own. Only that one: the
    index of the run that has written them is removed. It has no status of what was younger than a tick then, and how
    many those are depends on the machine.
    """
    world = make_project(project, run)
    for number in range(count):
        write_conversation(world.workspace / f"{FIRST + number}-it", "It", events(2))
    _reconcile_and_wait(world)
    for path in world.state.parent.rglob("index-*"):
        path.unlink()
    for _ in range(2):
        _reconcile_and_wait(world)
    append(world.workspace / f"{FIRST + 1}-it", 1, "b", LONG_AGO + 10**9)
    for _ in range(2):
        _reconcile_and_wait(world)
    return world


def _reconcile_and_wait(world: World) -> None:
    world.reconcile()
    time.sleep(0.1)  # longer than any file system's clock takes for a tick


def edit(world: World) -> None:
    """Have the first conversation go on."""
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + 10**9)


def calls(world: World, *args: str) -> Counter[str]:
    """Run the installed command, and count what it asks the system for."""
    log = world.project.parent / "strace.log"
    command = ["strace", "-f", "-y", "-qq", "-o", str(log), str(SCRIPT), "-w", str(world.project), *args]
    subprocess.run(command, check=True, capture_output=True)
    written = f"<{world.workspace.resolve()}/"
    return Counter(_name_of(match, written) for line in log.read_text().splitlines() if (match := _CALL.match(line)))


def _name_of(match: re.Match[str], written: str) -> str:
    """Return the name of a call; opening what is there, and making what isn't, are two, and so is reading a side."""
    if "O_CREAT" in match.string:
        return f"{match[1]} O_CREAT"
    if match[1] == "read" and "<pipe:" in match.string:
        return FROM_PIPE
    return IN_WORKSPACE if match[1] == "read" and written in match.string else match[1]


AGAIN = 0.05
"""Five paths in all: of what a later run has looked at, status is asked for twice until that is merged."""
CHANGES: dict[str, tuple[Callable[[World], None], tuple[str, ...], float]] = {
    "nothing, in a dry run": (lambda _: None, ("--dry-run",), AGAIN),
    "nothing": (lambda _: None, (), AGAIN),
    "one": (edit, (), 0.5 + AGAIN),
}
"""What has changed, how it is asked for, and how many calls each other conversation may cost beside its paths'."""


@pytest.mark.parametrize(("change", "args", "more"), CHANGES.values(), ids=CHANGES)
def test_each_conversation_costs_a_status_of_its_paths(
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[World], None],
    args: tuple[str, ...],
    more: float,
) -> None:
    if words := unusable():
        pytest.skip(words)
    found = {}
    for count in (FEW, MANY):
        for name in ("JP_USER_DATA_DIR", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(tmp_path / str(count) / name))
        world = settled(tmp_path / str(count) / "project", count, run)
        change(world)
        found[count] = calls(world, *args)
    found[MANY].subtract(found[FEW])
    each = {name: number / (MANY - FEW) for name, number in found[MANY].items() if number and name not in MEMORY}
    assert sum(each.values()) <= PATHS + more, each
    assert sum(each.get(name, 0) for name in READS) <= more - AGAIN, each


READ_ONCE = 26
"""Of a copy with three files: its directory is listed, each file is opened, read, and looked at again by its name."""


def equal(project: Path, count: int, run: Run) -> World:
    """Make so many conversations, the same on both sides, of which nothing is known yet."""
    world = make_project(project, run)
    for number in range(count):
        for side in (world.store, world.workspace):
            write_conversation(side / f"{FIRST + number}-it", "It", events(2))
    time.sleep(0.1)
    return world


@pytest.mark.parametrize(
    ("few", "many"), [(FEW, MANY), pytest.param(420, 520, marks=pytest.mark.long)], ids=["one process", "two processes"]
)
def test_a_first_run_reads_each_file_once(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, few: int, many: int
) -> None:
    if words := unusable():
        pytest.skip(words)
    found = {}
    for count in (few, many):
        for name in ("JP_USER_DATA_DIR", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(tmp_path / str(count) / name))
        found[count] = calls(equal(tmp_path / str(count) / "project", count, run))
    found[many].subtract(found[few])
    each = {name: number / (many - few) for name, number in found[many].items() if number and name not in MEMORY}
    assert sum(each.values()) <= 2 * READ_ONCE + 0.5, each
    assert each.get("read", 0) + each.get(IN_WORKSPACE, 0) <= 2 * 3 + 0.1, each


PROJECTED = {"linkat": 1, "mkdirat": 1, "openat O_CREAT": 4, "renameat2": 1, "unlinkat": 1, "utimensat": 3, "write": 4}
"""What projecting one conversation with three files changes: its lock, the lock's second name, and the files."""


def made(project: Path, count: int, run: Run) -> World:
    """Make a store of so many conversations, and a checkout that has none of them."""
    world = make_project(project, run)
    for number in range(count):
        write_conversation(world.store / f"{FIRST + number}-it", "It", events(2))
    time.sleep(0.1)
    return world


@pytest.mark.parametrize(
    ("few", "many", "looks"),
    [(40, 140, 84), pytest.param(420, 520, 86, marks=pytest.mark.long)],
    ids=["one process", "two processes"],
)
def test_a_projection_costs_what_it_writes_and_two_readings(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, few: int, many: int, looks: int
) -> None:
    """``looks``: all that it costs besides, to look at both sides, read twice, take the lock, and look again.

    Four of them open and close the directory of the locks, which is never followed as a link.
    """
    if words := unusable():
        pytest.skip(words)
    monkeypatch.setenv("RECONCILE_MISSING", "reproject")
    found = {}
    for count in (few, many):
        for name in ("JP_USER_DATA_DIR", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(tmp_path / str(count) / name))
        found[count] = calls(made(tmp_path / str(count) / "project", count, run))
    found[many].subtract(found[few])
    each = {name: number / (many - few) for name, number in found[many].items() if number and name not in MEMORY}
    changing = {name: each.pop(name, 0) for name in PROJECTED}
    assert all(number <= PROJECTED[name] + 0.1 for name, number in changing.items()), changing
    assert sum(each.values()) <= looks, each
    assert each.get("read", 0) <= 2 * 3 + 0.1, "each file is read to be planned, and once more to be written"
    # A file that was written within the last tick of the file system's clock is read again: how many depends on load.
    assert each.get(IN_WORKSPACE, 0) <= 3, each

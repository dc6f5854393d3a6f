"""Output that nobody reads, or that can't be written: the work is done whatever becomes of it, by real processes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stories.test_mounts import mounted
from tests.support.projects.world import append, command, contents, events, make_project, write_conversation

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.long

FULL = Path("/dev/full")
FIRST, SECOND = 17500000001, 17500000002
CANNOT = "error: cannot write to standard output ({}): No space left on device\n"
GOES_ON = "hint: only the output is lost; if the command changes something, that is done (exit code 1)\n"
LISTINGS = (
    ("--help",),
    ("--version",),
    ("--json", "--dry-run"),
    ("ls",),
    ("status",),
    ("doctor",),
    ("log",),
    ("vault",),
)

needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    """Two conversations in step, and one that has gone on in the workspace."""
    world = make_project(tmp_path / "project", run)
    for number in (FIRST, SECOND):
        write_conversation(world.workspace / f"{number}-it", "It", events(3))
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 2, "b", time.time_ns() - 10**10)
    return world


def closed_pipe() -> int:
    """Return a descriptor of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def ran(out: int, world: World, *words: str, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """Run the command with its output into this, and close that; return its exit code, and its standard error."""
    try:
        found = subprocess.run(
            command("-w", world.project, *words) if words[:1] != ("--version",) else command(*words),
            stdout=out,
            stderr=stderr,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        os.close(out)
    return found.returncode, found.stderr


def code_of(world: World, *words: str) -> int:
    """Return the command's exit code where its output is read."""
    return ran(os.open(os.devnull, os.O_WRONLY), world, *words)[0]


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_error(world: World, words: tuple[str, ...]) -> None:
    expected = code_of(world, *words)
    assert ran(closed_pipe(), world, *words) == (expected, "")


@needs_full
@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_a_full_disk_is_one_clear_line(world: World, words: tuple[str, ...]) -> None:
    code, said = ran(os.open(FULL, os.O_WRONLY), world, *words)
    assert code == 1
    if "--json" in words:
        (line,) = said.splitlines()
        found = json.loads(line)
        assert found["format"] == "reconcile.error/1"
        assert found["error"] == "cannot write to standard output (/dev/full): No space left on device"
    else:
        assert said == CANNOT.format(FULL) + GOES_ON


def test_a_file_that_is_shown(world: World, unread: int) -> None:
    world.reconcile()
    version = next(world.vault.rglob("*/*")).name
    is_pipe = os.fstat(unread).st_rdev == 0
    assert code_of(world, "show", version[:16]) == 0
    assert ran(unread, world, "show", version[:16]) == ((0, "") if is_pipe else (1, CANNOT.format(FULL) + GOES_ON))


@pytest.fixture(params=["pipe", pytest.param("full", marks=needs_full)])
def unread(request: pytest.FixtureRequest) -> int:
    """Standard output that takes nothing."""
    return closed_pipe() if request.param == "pipe" else os.open(FULL, os.O_WRONLY)


@pytest.mark.parametrize("words", [(), ("-v",), ("--json",), ("--color=auto",), ("rm", str(SECOND), "-y")], ids=str)
def test_the_work_is_done_without_its_output(world: World, unread: int, words: tuple[str, ...]) -> None:
    is_pipe = os.fstat(unread).st_rdev == 0
    code, said = ran(unread, world, *words)
    assert (code, bool(said)) == ((0, False) if is_pipe else (1, True))
    if "rm" in words:
        assert not list(world.store.glob(f"{SECOND}*"))
        world.reconcile()
    assert contents(world.store) == contents(world.workspace)
    world.check_clean()
    world.check_settled()


@pytest.mark.parametrize("words", [(), ("-n",), ("--check",)], ids=str)
def test_nothing_to_do_with_nobody_to_tell(world: World, unread: int, words: tuple[str, ...]) -> None:
    world.reconcile()
    time.sleep(0.1)  # what was written a moment ago is looked at once more
    world.reconcile()
    is_pipe = os.fstat(unread).st_rdev == 0
    assert ran(unread, world, *words) == ((0, "") if is_pipe else (1, CANNOT.format(FULL) + GOES_ON))


def test_what_is_held_keeps_its_exit_code_with_nobody_to_tell(world: World) -> None:
    (world.workspace / f"{FIRST}-it" / "events.json").write_text("<<<<<<<\n")
    assert ran(closed_pipe(), world)[0] == 4
    assert ran(closed_pipe(), world, "--check")[0] == 4


@pytest.mark.parametrize("words", [(), ("ls",), ("status", "nothing-has-this-id"), ("--wrong",)], ids=str)
def test_nobody_reads_anything(world: World, words: tuple[str, ...]) -> None:
    expected = code_of(world, "--check", *words) if words == () else code_of(world, *words)
    expected = 0 if words == () else expected
    stderr = closed_pipe()
    try:
        assert ran(closed_pipe(), world, *words, stderr=stderr)[0] == expected
    finally:
        os.close(stderr)
    if not words:
        assert contents(world.store) == contents(world.workspace)


def test_a_small_file_system_that_is_full(world: World, tmp_path: Path) -> None:
    with mounted(tmp_path / "small"):
        file = tmp_path / "small" / "out"
        filler = tmp_path / "small" / "filler"
        with filler.open("wb", buffering=0) as filling:
            while True:
                try:
                    filling.write(b"x" * 4096)
                except OSError:
                    break
        code, said = ran(os.open(file, os.O_WRONLY | os.O_CREAT), world)
        assert (code, said) == (1, CANNOT.format(file) + GOES_ON)
    assert contents(world.store) == contents(world.workspace)


def test_a_pipe_that_does_not_block_is_waited_for(world: World) -> None:
    """Whoever started us may have made it so; what is read late is whole all the same."""
    for number in range(40):
        write_conversation(world.workspace / f"{SECOND + 1 + number}-it", "It" * 2000, events(3))
    world.reconcile()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = subprocess.Popen(command("-w", world.project, "ls", "--json"), stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    time.sleep(1)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    assert (process.wait(60), process.communicate()[1]) == (0, b"")
    assert len(told) > 65536
    assert len(json.loads(told)["conversations"]) == 42


def test_a_watcher_ends_with_its_reader(world: World) -> None:
    process = subprocess.Popen(
        command("-w", world.project, "watch", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    append(world.workspace / f"{SECOND}-it", 1, "b", time.time_ns() - 10**9)
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    world.reconcile()
    assert contents(world.store) == contents(world.workspace)


@needs_full
def test_a_watcher_goes_on_without_room_for_its_words(world: World) -> None:
    with FULL.open("wb") as full:
        process = subprocess.Popen(
            command("-w", world.project, "watch"), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert process.stderr is not None
    assert process.stderr.readline() == CANNOT.format(FULL)
    append(world.workspace / f"{SECOND}-it", 1, "b", time.time_ns() - 10**9)
    wanted = contents(world.workspace)
    deadline = time.monotonic() + 60
    while contents(world.store) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(60) == 1
    assert process.stderr.read() == GOES_ON
    process.stderr.close()
    assert contents(world.store) == wanted

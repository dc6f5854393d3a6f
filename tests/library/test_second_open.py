"""A program that opens its state a second time keeps its locks on it, so that no other process takes it for unused."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.library.conversations import check, directory, texts
from tests.support.library.second_open import WAYS
from tests.support.projects.three_conversations import FIRST, SECOND_ID
from tests.support.projects.world import DATABASE, SCRIPT, assert_sound, command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.projects.world import World

pytestmark = pytest.mark.long

PROJECT = Path(__file__).parents[2]
PROC_LOCKS = Path("/proc/locks")


@contextlib.contextmanager
def program(world: World, way: str) -> Iterator[subprocess.Popen[str]]:
    """Have the program run, until its last line was asked for."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.support.library.second_open", str(world.project), str(FIRST), way],
        cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def locks_on(path: Path, pid: int) -> list[str]:
    """Return the POSIX locks that a process has on a file, as the system tells them."""
    status = path.stat()
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    lines = [line.split() for line in PROC_LOCKS.read_text().splitlines()]
    return [line[3] for line in lines if line[1] == "POSIX" and line[4] == str(pid) and line[5] == file]


def runs(world: World) -> list[str]:
    done = subprocess.run([SCRIPT, "--workspace", world.project, "log"], check=True, capture_output=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.skipif(not PROC_LOCKS.exists(), reason="the system doesn't tell who holds which lock")
@pytest.mark.parametrize("way", WAYS)
def test_a_second_open_loses_no_lock_and_no_run(world: World, way: str) -> None:
    seen: set[str] = set()
    with program(world, way) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        for text in ("before", "after"):
            assert started.stdout.readline() == f"{text}\n"
            for suffix in ("", "-shm"):
                assert "READ" in locks_on(world.state / f"{DATABASE}{suffix}", started.pid), suffix or "the database"
            for command_name in ("local", "project"):
                subprocess.run(
                    command("--workspace", world.project, command_name, str(SECOND_ID)), check=True, capture_output=True
                )
            found = runs(world)
            assert len(found) == len(set(found))
            assert seen <= set(found)
            seen = set(found)
            started.stdin.write("\n")
            started.stdin.flush()
        assert started.wait(60) == 0
    assert seen <= set(runs(world))
    assert_sound(world)
    assert [text for text in texts(directory(world.store, FIRST)) if text in ("before", "after")] == ["before", "after"]
    check(world)

"""A second process holds nothing of the first one's, ends when that is gone, and isn't begun where it would be lost."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.scan.shards import MIN_ENTRIES
from tests.support.projects.world import SCRIPT, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or (os.cpu_count() or 1) < 2, reason="one process at a time")

KILLED = """
import fcntl, os, signal, sys, time
from reconcile.fs.helper_process import HelperProcess

lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
high = os.dup2(lock, 900)
fcntl.flock(lock, fcntl.LOCK_EX)

def work():
    print(os.getpid(), flush=True)
    time.sleep(float(sys.argv[2]))
    return b"x" * (1 << 20)

with HelperProcess.start(work) as child:
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def killed_beside(lock: Path, seconds: float) -> int:
    """Have a process killed that holds a lock; return the second one's number."""
    command = [sys.executable, "-c", KILLED, str(lock), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    return child


def test_of_a_killed_process_no_lock_is_held(tmp_path: Path) -> None:
    child = killed_beside(tmp_path / "lock", 30)
    assert is_alive(child)
    try:
        with (tmp_path / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(child, signal.SIGKILL)


def test_who_works_for_nobody_ends(tmp_path: Path) -> None:
    child = killed_beside(tmp_path / "lock", 0.4)
    end = time.monotonic() + 20
    while is_alive(child):
        assert time.monotonic() < end
        time.sleep(0.02)


IGNORING = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("sides", [("store", "workspace"), ("store",)], ids=["looking", "staging"])
def test_who_is_not_told_of_processes_that_end_begins_none(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, sides: tuple[str, ...]
) -> None:
    """Whoever starts a program may have it ignore them: then they can't be waited for."""
    monkeypatch.setenv("RECONCILE_MISSING", "reproject")
    world = make_project(tmp_path / "project", run)
    for number in range(MIN_ENTRIES + 1):
        for side in (getattr(world, side) for side in sides):
            write_conversation(side / f"{17528832000 + number}-it", "It", events(1))
    command = [sys.executable, "-c", IGNORING, str(SCRIPT), "-w", str(world.project)]
    for _ in range(2):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    assert f"{MIN_ENTRIES + 1} up to date" in ran.stdout

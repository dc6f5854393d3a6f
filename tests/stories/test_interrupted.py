"""Ctrl-C at any time, once or more often: one line, exit code 130, and nothing is lost. Real processes and signals."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import append, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

FIRST = 17500000000
MANY = 40
INTERRUPTED = "interrupted; run `reconcile` again to continue"
BEGIN = """
import os, signal, sys
from reconcile_cli.start import start

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
sys.argv[0] = "reconcile"
os.write(1, b"!")
start()
"""
"""Until the interpreter has begun the program, which says so, it answers Ctrl-C itself, with a traceback."""
TOO_EARLY = re.compile(
    r'Traceback [^\n]*\n  File "<string>", line 7, in <module>\nKeyboardInterrupt\n'
    r"|(?:object [^\n]*\n)*object type name: KeyboardInterrupt\n(?:object [^\n]*\n)*lost sys\.stderr\n"
)
"""The answer of the interpreter to a Ctrl-C between `os.write` and `start`: a busy machine may stop it there.

A second Ctrl-C may interrupt the traceback. The program itself raises no `KeyboardInterrupt`.
"""
COMMANDS = (
    (),
    ("-v",),
    ("--json",),
    ("--dry-run", "--json"),
    ("doctor",),
    ("status",),
    ("status", str(FIRST)),
    ("ls",),
    ("log",),
    ("undo", "-y"),
    ("recover", "-y"),
    ("local", str(FIRST + 3), "-y"),
    ("project", "--all", "-y"),
    ("vault",),
)


def interrupted(world: World, words: tuple[str, ...], luck: random.Random, longest: float) -> tuple[int, str]:
    """Begin a command, and press Ctrl-C up to four times within 10 ms; return its exit code, and its standard error."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, "-w", str(world.project), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"!"
    time.sleep(0.001 + luck.random() * longest)
    for _ in range(luck.randint(1, 4)):
        if process.poll() is None:  # so that its number is still its own
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(luck.choice((0, 0.001, 0.005, 0.01)) * luck.random())
    _, said = process.communicate(timeout=120)
    return process.returncode, said.decode()


def press(world: World, seed: int, times: int) -> int:
    """Interrupt that many commands; return how many of them ended by it."""
    luck = random.Random(seed)
    hit = 0
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", BEGIN, "-w", str(world.project)], capture_output=True, check=True)
    longest = (time.monotonic() - begin) * 0.7  # of the time that this machine needs for a run
    for at in range(times):
        append(_directory(world, FIRST + luck.randrange(MANY)), 1, "b", time.time_ns() - 10**9)
        words = luck.choice(COMMANDS)
        before = world.kept()
        code, said = interrupted(world, words, luck, longest)
        if code == -signal.SIGINT and TOO_EARLY.fullmatch(said):
            continue
        about = f"try {at} of seed {seed}, {words}: exit {code}\n{said}"
        assert code in (0, 3, 4, 130), about
        assert not [bad for bad in ("Traceback", "ignored", "Error") if bad in said], about
        assert said.count(INTERRUPTED) == (code == 130 and "--dry-run" not in words), about
        assert said.count("interrupted") >= (code == 130), about
        assert "" not in said.splitlines(), about
        assert before <= world.kept(), about
        hit += code == 130
    return hit


def _directory(world: World, number: int) -> Path:
    """Return the workspace's copy, or else the store's."""
    return next(path for side in (world.workspace, world.store) for path in side.glob(f"{number}-it"))


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    for number in range(MANY):
        write_conversation(world.workspace / f"{FIRST + number}-it", "It", events(3))
    world.reconcile()
    return world


@pytest.mark.long
def test_ctrl_c_now_and_then(world: World) -> None:
    assert press(world, 1, 24) > 0  # how many hit depends on the load


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 7))
def test_ctrl_c_hundreds_of_times(world: World, seed: int) -> None:
    assert press(world, seed, 100) > 25

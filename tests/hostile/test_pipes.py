"""Named pipes, devices and directories in the place of files that we read: nothing waits for them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.three import three
from tests.support.world import command, contents

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import World


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(path.parent)  # the name of a socket is short
        listening.bind(path.name)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": a_socket,
    "directory": Path.mkdir,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
}


def ran(world: World, *words: str | Path, code: int = 0) -> str:
    """Run the command as a process of its own, which must end; return what it says."""
    found = subprocess.run(
        command("-w", world.project, *words), capture_output=True, text=True, check=False, timeout=50
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    return found.stdout + found.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_that_is_no_file(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    three(world)
    monkeypatch.chdir(world.project)
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "reconcile" / "reconcile.toml"
    path.parent.mkdir(parents=True)
    KINDS[kind](path)
    said = ran(world, "--dry-run", code=2)
    assert str(path) in said
    assert "can't be read" in said


@pytest.mark.parametrize("name", [".git", ".git/sequencer/todo", ".git/MERGE_HEAD", ".jp/.id"])
def test_a_pipe_in_the_project(world: World, name: str) -> None:
    three(world)
    path = world.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    ran(world, code={".git/MERGE_HEAD": 0, ".jp/.id": 2}.get(name, 0))


@pytest.mark.parametrize("name", ["lock.json", "state.sqlite"])
def test_a_pipe_in_the_state(world: World, name: str) -> None:
    three(world)
    world.reconcile()
    path = world.state / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    found = subprocess.run(command("-w", world.project), capture_output=True, text=True, check=False, timeout=50)
    assert "Traceback" not in found.stderr
    assert contents(world.store) == contents(world.workspace)


def test_a_pipe_among_the_sessions(world: World) -> None:
    three(world)
    world.reconcile()
    (world.silo / "sessions").mkdir()
    os.mkfifo(world.silo / "sessions" / "1.json")
    ran(world, "doctor")
    ran(world)


def test_a_plan_may_go_through_pipes(world: World, tmp_path: Path) -> None:
    """As a shell's ``>(...)`` and ``<(...)`` make them."""
    three(world)
    pipe, plan = tmp_path / "pipe", b""
    os.mkfifo(pipe)

    def read() -> None:
        nonlocal plan
        plan = pipe.read_bytes()

    reading = threading.Thread(target=read)
    reading.start()
    ran(world, "--out", pipe)
    reading.join(30)
    assert json.loads(plan)["format"] == "reconcile.plan/1"
    writing = threading.Thread(target=pipe.write_bytes, args=[plan])
    writing.start()
    ran(world, "apply", pipe)
    writing.join(30)
    assert contents(world.store) == contents(world.workspace)

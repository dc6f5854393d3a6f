"""Named pipes, devices and directories in the place of files that we read: nothing waits for them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.three_conversations import FIRST, SECOND_ID, three
from tests.support.projects.world import LONG_AGO, SECOND, append, command, contents, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.projects.world import World

pytestmark = pytest.mark.long


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
    assert shown(path) in said
    assert "can't be read" in said


@pytest.mark.parametrize("name", [".git", ".git/sequencer/todo", ".git/MERGE_HEAD", ".jp/.id"])
def test_a_pipe_in_the_project(world: World, name: str) -> None:
    three(world)
    path = world.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    ran(world, code={".git/MERGE_HEAD": 0, ".jp/.id": 2}.get(name, 0))


DEMANDED = ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "state.sqlite-journal", "generation", "local.jsonl"]
"""Nothing can be done without them, and nothing is: who only looks says so, too."""
LOCKS = ["lock"]
SPARE = ["index-*", "lock.json"]
"""Without them a run takes longer."""
KEPT = ["vault", "vault/objects", "vault/objects/??", "vault/objects/??/*"]


@pytest.fixture
def used(world: World) -> World:
    """A state with all that a state has, and something to do."""
    three(world)
    world.reconcile()
    assert world.run("local", str(FIRST), "-w", world.project).exit_code == 0
    for count in (1, 2):  # the vault has the old one, and what was kept of a run has changes
        append(world.workspace / f"{SECOND_ID}-it", count, "w", LONG_AGO + count * SECOND)
        world.reconcile()
    world.reconcile()
    append(world.workspace / f"{SECOND_ID}-it", 1, "x", LONG_AGO + 9 * SECOND)
    return world


def test_these_are_all_files_of_a_state(used: World) -> None:
    known = [*DEMANDED, *LOCKS, *SPARE, *KEPT]
    found = {path.relative_to(used.state).as_posix() for path in used.state.rglob("*")}
    assert [name for name in found if not any(fnmatch(name, each) for each in known)] == []
    assert [each for each in known if not any(fnmatch(name, each) for name in found)] == [*DEMANDED[1:4], "lock.json"]


def put(world: World, kind: str, name: str) -> list[Path]:
    """Put something else in the place of each such file; return the paths."""
    paths = sorted(world.state.glob(name)) or [world.state / name]
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if kind != "directory" or name not in KEPT[:3]:
            KINDS[kind](path)
    return paths


def outcome(world: World, *words: str) -> tuple[int, str]:
    """Run the command as a process of its own, which must end and may not read without an end."""
    found = subprocess.run(
        ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", *command("-w", world.project, *words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "Traceback" not in found.stderr
    return found.returncode, found.stderr or found.stdout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DEMANDED)
def test_a_file_of_the_state_that_is_no_file(
    used: World, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(used.project)
    before = contents(used.store), contents(used.workspace)
    (path,) = put(used, kind, name)
    for words in (("--dry-run",), (), ("status",)):
        code, said = outcome(used, *words)
        assert (code, said.splitlines()[0]) == (1, f"error: {shown(path)}: not a regular file"), said
    assert (contents(used.store), contents(used.workspace)) == before
    shutil.rmtree(path) if kind == "directory" else path.unlink()
    assert outcome(used)[0] == 0
    assert not (used.workspace / f"{FIRST}-it").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_is_no_file(used: World, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(used.project)
    (path,) = put(used, kind, name)
    code, said = outcome(used)
    assert (code, said.startswith(f"error: {shown(path)}: ")) == (1, True), said
    hints = ["hint"] if kind == "directory" else []
    assert [line.partition(":")[0] for line in said.splitlines()] == ["error", *hints], said
    assert outcome(used, "--dry-run")[0] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPARE)
def test_what_only_saves_time_is_done_without(
    used: World, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(used.project)
    put(used, kind, name)
    for words in (("--dry-run",), (), (), ("status",)):
        assert outcome(used, *words)[0] == 0
    assert contents(used.workspace) < contents(used.store)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_no_file(used: World, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is overwritten of which no version can be kept."""
    monkeypatch.chdir(used.project)
    log = json.loads(used.run("--json", "log", "-w", used.project).stdout)["runs"]
    version = f"{SECOND_ID}@{log[0]['id']}:stream"
    before = contents(used.store)
    put(used, kind, name)
    for words in (("--dry-run",), ("status",), ("show", version), ("vault",), ()):
        code, said = outcome(used, *words)
        assert code in (0, 1), said
        if code:
            places = used.state, shown(used.state)  # a failed step has the system's words
            assert [line for line in said.splitlines() if any(f"{place}/vault" in line for place in places)], said
    assert contents(used.workspace) <= contents(used.store) or contents(used.store) == before


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

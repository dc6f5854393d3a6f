"""An ordinary user, and what may not be read or written. For root there is no such thing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import (
    LONG_AGO,
    SCRIPT,
    SECOND,
    contents,
    copy_tree,
    events,
    files,
    listing,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.projects.world import World

NOBODY = 65534
ordinary = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")


@contextlib.contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


@pytest.fixture
def world(world: World) -> World:
    for number in (17500000001, 17500000002):
        write_conversation(world.workspace / f"{number}-it", "It", events(3))
    return world


@ordinary
def test_a_file_that_may_not_be_read_is_held_and_the_rest_is_done(world: World) -> None:
    with mode(world.workspace / "17500000001-it" / "events.json", 0):
        result = world.run("--workspace", world.project)
        assert result.exit_code == 4, result.output
        assert "17500000001-it/events.json" in result.output
        assert [path.name for path in world.store.iterdir()] == ["17500000002-it"]
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


@ordinary
@pytest.mark.parametrize("name", [".cache", "deep/.cache", "conversations/notes", "conversations/.cache"])
def test_a_directory_that_is_not_ours_and_may_not_be_read_keeps_that_around_it(world: World, name: str) -> None:
    """Nobody can say what would be lost with it; runs that remove nothing don't mind."""
    hidden = world.workspace / "17500000001-it" / name
    hidden.mkdir(parents=True)
    with mode(hidden, 0):
        assert world.run("-w", world.project).exit_code == 0
        for words in (("local", "17500000001", "-n"), ("local", "17500000001"), ()):
            result = world.run(*words, "-w", world.project)
            assert result.exit_code == 4, result.output
            assert f"17500000001-it/{name}: found a directory that can't be read" in result.output
        assert len(files(world.workspace / "17500000001-it")) == 3
    world.reconcile()
    assert not (world.workspace / "17500000001-it").exists()


@ordinary
def test_a_directory_that_may_not_be_read_removes_nothing(world: World) -> None:
    world.reconcile()
    before = listing(world.store)
    with mode(world.workspace / "17500000001-it", 0):
        result = world.run("--workspace", world.project)
        assert result.exit_code in (0, 4), result.output
    assert listing(world.store) == before
    world.reconcile()
    assert world.plan()["summary"]["in-sync"] == 2


@ordinary
def test_a_workspace_that_may_not_be_written_leaves_the_store_complete(world: World) -> None:
    """See docs/design/formats/jp.md#edge-case-92."""
    world.reconcile()
    stored = world.store / "17500000001-it" / "metadata.json"
    stored.write_bytes(stored.read_bytes().replace(b"It", b"Ot"))
    os.utime(stored, ns=(LONG_AGO, LONG_AGO + SECOND))
    ours = world.workspace / "17500000002-it" / "events.json"
    ours.write_bytes(ours.read_bytes().replace(b"a1", b"b1"))
    before = contents(world.workspace) | contents(world.store)
    with mode(world.workspace, 0o555):
        result = world.run("--workspace", world.project)
        assert result.exit_code == 1, result.output
        assert "Permission denied" in result.output
        assert b"b1" in (world.store / "17500000002-it" / "events.json").read_bytes()
        assert before <= world.kept()
    world.reconcile()
    assert {path.name for path in world.workspace.iterdir()} == {"17500000001-ot", "17500000002-it"}


@ordinary
@pytest.mark.parametrize("what", ["store", "state"])
def test_where_nothing_may_be_written_is_one_line(world: World, what: str) -> None:
    world.reconcile()
    write_conversation(world.workspace / "17500000003-new", "New", events(2))
    before = listing(world.workspace) | listing(world.store)
    with mode(world.store if what == "store" else world.state, 0o555):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 1, result.output
    assert listing(world.workspace) | listing(world.store) == before
    world.reconcile()


def test_new_files_have_the_mode_that_the_umask_gives(world: World) -> None:
    before = os.umask(0o027)
    try:
        world.reconcile()
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in files(world.store)} == {0o640}
    assert {path.stat().st_mode & 0o777 for path in files(world.state)} == {0o600}
    assert world.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can be another user")
def test_run_as_nobody(world: World) -> None:
    """The installed command, where another user may reach it."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, str(SCRIPT)]
    if subprocess.run([*drop, "--version"], capture_output=True, check=False, cwd="/").returncode != 0:
        pytest.skip("this Python is out of another user's reach")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        copy_tree(world.project, home / "project")
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        for expected in ("2 added to the store", "2 up to date"):
            done = subprocess.run(
                [*drop, "--workspace", f"{name}/project"],
                env={"HOME": name, "PATH": os.environ["PATH"]},
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
            )
            assert done.returncode == 0, done.stderr
            assert expected in done.stdout
        assert {path.stat().st_uid for path in home.rglob("*")} == {NOBODY}

"""An ordinary user, and what may not be read or written. Root plays these tests by `make modes`."""

from __future__ import annotations

import contextlib
import json
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
    set_key,
    shown,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.projects.world import World

NOBODY = 65534


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


@pytest.mark.modes
def test_a_file_that_may_not_be_read_is_held_and_the_rest_is_done(world: World) -> None:
    with mode(world.workspace / "17500000001-it" / "events.json", 0):
        result = world.run("--workspace", world.project)
        assert result.exit_code == 4, result.output
        assert "17500000001-it/events.json" in result.output
        assert [path.name for path in world.store.iterdir()] == ["17500000002-it"]
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


@pytest.mark.modes
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
            shown = " ".join(result.output.split())
            assert f"17500000001-it/{name}" in shown
            assert "a directory that can't be read" in shown
        assert len(files(world.workspace / "17500000001-it")) == 3
    world.reconcile()
    assert not (world.workspace / "17500000001-it").exists()


@pytest.mark.modes
def test_a_directory_that_may_not_be_read_removes_nothing(world: World) -> None:
    world.reconcile()
    before = listing(world.store)
    with mode(world.workspace / "17500000001-it", 0):
        result = world.run("--workspace", world.project)
        assert result.exit_code in (0, 4), result.output
        status = world.run("status", "--workspace", world.project).stdout
        assert "1 unreadable" in status
        assert "Nothing to do" not in status
    assert listing(world.store) == before
    world.reconcile()
    assert world.plan()["summary"]["in-sync"] == 2


@pytest.mark.modes
def test_a_workspace_that_may_not_be_read_is_not_called_empty(world: World) -> None:
    world.reconcile()
    with mode(world.workspace, 0):
        status = world.run("status", "--workspace", world.project).stdout
    assert "can't be read" in status
    assert "is empty" not in status
    assert "recover" not in status


@pytest.mark.modes
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


@pytest.mark.modes
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


@contextlib.contextmanager
def immutable(path: Path) -> Iterator[None]:
    """Set the immutable flag, which also root's writes respect, while the block runs."""
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", path], check=False).returncode != 0:
        pytest.skip("no file can be made immutable here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


def place_of(world: World, what: str) -> Path:
    vault = next(world.vault.glob("*"), world.vault)
    places = {"store": world.store, "workspace": world.workspace, "state": world.state, "vault": vault}
    return places[what] if what in places else world.store / "17500000001-it"


@pytest.fixture
def settled(world: World) -> World:
    """Both sides are in sync, and the vault has a version."""
    world.reconcile()
    set_key(world.workspace / "17500000001-it", "user", "me", LONG_AGO + SECOND)
    world.reconcile()
    assert world.run("doctor", "-w", world.project).exit_code == 0
    return world


@pytest.mark.parametrize("what", ["store", "workspace", "state", "vault", "conversation"])
def test_doctor_names_a_directory_that_is_immutable(settled: World, what: str) -> None:
    place = place_of(settled, what)
    with immutable(place):
        before = settled.stamps()
        shown = settled.run("doctor", "-w", settled.project)
        assert settled.stamps() == before, "doctor creates nothing"
        found = json.loads(settled.run("doctor", "-w", settled.project, "--json").stdout)["findings"]
    assert (shown.exit_code, "not writable (it is immutable)" in shown.stdout) == (4, True), shown.output
    assert f"chattr -i {place}" in shown.stdout.replace("\n", "")
    assert [(each["kind"], each["severity"], each["mend"]) for each in found] == [
        ("unwritable", "error", [f"chattr -i {place}"])
    ]
    assert settled.run("doctor", "-w", settled.project).exit_code == 0


@pytest.mark.modes
@pytest.mark.parametrize("what", ["store", "workspace", "state", "vault", "conversation"])
def test_doctor_names_a_directory_that_may_not_be_written(settled: World, what: str) -> None:
    place = place_of(settled, what)
    with mode(place, 0o555):
        shown = settled.run("doctor", "-w", settled.project)
    assert (shown.exit_code, "not writable" in shown.stdout) == (4, True), shown.output
    assert f"chmod u+rwx {place}" in shown.stdout.replace("\n", "")


def test_a_run_against_an_immutable_store_ends_with_an_error_and_a_hint(settled: World) -> None:
    set_key(settled.workspace / "17500000001-it", "user", "you", LONG_AGO + 2 * SECOND)
    assert not settled.run("-w", settled.project, "--dry-run").stderr
    with immutable(settled.store):
        result = settled.run("-w", settled.project)
    assert result.exit_code == 1, result.output
    place = shown(settled.store)
    assert f"error: {place}: not writable (it is immutable)\nhint: chattr -i {place}" in result.stderr
    settled.reconcile()


@pytest.mark.modes
@pytest.mark.parametrize(("bits", "words", "code"), [(0o555, "not writable", 1), (0, "not readable", 4)])
def test_a_run_against_a_closed_store_ends_with_an_error_and_a_hint(
    settled: World, bits: int, words: str, code: int
) -> None:
    set_key(settled.workspace / "17500000001-it", "user", "you", LONG_AGO + 2 * SECOND)
    with mode(settled.store, bits):
        result = settled.run("-w", settled.project)
    assert result.exit_code == code, result.output
    path = f"~/{os.path.relpath(settled.store, os.path.expanduser('~'))}"
    assert f"error: {path}: {words}\nhint: chmod u+rwx {path}, then run `reconcile` again\n" in result.stderr
    settled.reconcile()


def test_new_files_have_the_mode_that_the_umask_gives(world: World) -> None:
    before = os.umask(0o027)
    try:
        world.reconcile()
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in files(world.store)} == {0o640}
    assert {path.stat().st_mode & 0o777 for path in files(world.state)} == {0o600}
    assert world.state.stat().st_mode & 0o777 == 0o700


_WITHOUT = "-dac_override,-dac_read_search"
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can drop its rights"
)


def bounded(world: World, *words: str) -> tuple[int, str, str]:
    """Run the command as root that may read no more than the modes say."""
    drop = ["setpriv", f"--bounding-set={_WITHOUT}", f"--inh-caps={_WITHOUT}", sys.executable, str(SCRIPT)]
    done = subprocess.run([*drop, *words, "-w", world.project], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@as_root
@pytest.mark.parametrize("command", [[], ["--dry-run"], ["status"], ["doctor"]])
def test_a_closed_jp_directory_is_to_be_opened(world: World, command: list[str]) -> None:
    world.reconcile()
    jp = world.project / ".jp"
    with mode(jp, 0):
        code, _, said = bounded(world, *command)
    assert code == 2
    message, hint = said.splitlines()
    assert message.endswith(".jp/.id: can't be read (Permission denied), so the workspace id is unknown")
    assert hint == f"hint: make it readable: chmod u+rwX {jp}"


@as_root
def test_a_closed_id_file_is_to_be_opened(world: World) -> None:
    with mode(world.project / ".jp" / ".id", 0):
        assert bounded(world)[2].splitlines()[1:] == [f"hint: make it readable: chmod u+rwX {world.project}/.jp/.id"]


@as_root
def test_what_can_not_be_read_is_told_once(world: World) -> None:
    world.reconcile()
    with mode(world.workspace / "17500000001-it" / "events.json", 0):
        code, told, _ = bounded(world)
        one = bounded(world, "status", "17500000001")[1]
    assert (code, told.count("can't be read"), "1 blocked; nothing else to do." in told) == (4, 1, True), told
    assert ("  reconcile doctor" in told, "--take" in told) == (True, False), "no decision settles it"
    assert one.endswith(f"  reconcile doctor --workspace {world.project}\n      shows how to repair it\n")
    with mode(world.workspace / "17500000001-it", 0):
        code, told, said = bounded(world, "resolve", "17500000001", "--take", "store")
    assert code == 4
    assert said == "jp-c17500000001 cannot be read, see below; make it readable, then run `reconcile` again\n"
    assert "repair:\n  workspace:17500000001-it: can't be read" in told
    world.reconcile()


@as_root
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


FILES = {"": 0o700, "metadata.json": 0o600, "events.json": 0o640, "run.sh": 0o750}


def modes(copy: Path) -> dict[str, int]:
    return {name: (copy / name).stat().st_mode & 0o777 for name in FILES}


@pytest.fixture
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def private(_usual_umask: None, world: World) -> World:
    """One conversation for its owner alone, with a script."""
    copy = world.workspace / "17500000001-it"
    (copy / "run.sh").write_text("#!/bin/sh\n")
    for name, bits in FILES.items():
        (copy / name).chmod(bits)
    return world


def test_a_copy_has_the_permissions_of_its_source(private: World) -> None:
    private.reconcile()
    assert modes(private.store / "17500000001-it") == FILES
    shutil.rmtree(private.workspace / "17500000001-it")
    private.run("recover", "--yes", "-w", private.project)
    assert modes(private.workspace / "17500000001-it") == FILES


def test_a_removed_conversation_is_restored_for_those_who_could_read_it(private: World) -> None:
    """Its directory had no permissions for others, and the vault has none of a directory."""
    private.reconcile()
    assert private.run("rm", "17500000001", "--yes", "--promote", "-w", private.project).exit_code == 0
    assert not (private.store / "17500000001-it").exists()
    assert private.run("undo", "--yes", "-w", private.project).exit_code == 0
    for side in (private.store, private.workspace):
        assert modes(side / "17500000001-it") == {
            "": 0o755,
            "metadata.json": 0o600,
            "events.json": 0o600,
            "run.sh": 0o700,
        }


def test_a_rewritten_file_has_the_permissions_of_the_one_that_it_was_made_from(private: World) -> None:
    child = private.workspace / "17500000003-child"
    write_conversation(child, "Child", events(2), parent=17500000001)
    (child / "metadata.json").chmod(0o600)
    private.reconcile()
    for side in (private.store, private.workspace):
        (found,) = side.rglob("17500000003-child")
        assert (found / "metadata.json").stat().st_mode & 0o777 == 0o600


def test_a_file_of_the_format_never_becomes_a_program(world: World) -> None:
    """FAT and some shares show every file as executable."""
    for path in (world.workspace / "17500000001-it").iterdir():
        path.chmod(0o777)
    world.reconcile()
    for path in (world.store / "17500000001-it").iterdir():
        assert path.stat().st_mode & 0o111 == 0


def test_a_changed_file_keeps_its_own_permissions(private: World) -> None:
    private.reconcile()
    (private.store / "17500000001-it" / "events.json").chmod(0o600)
    ours = private.workspace / "17500000001-it" / "events.json"
    ours.write_bytes(ours.read_bytes().replace(b"a1", b"b1"))
    private.reconcile()
    assert modes(private.store / "17500000001-it") == {**FILES, "events.json": 0o600}
    assert modes(private.workspace / "17500000001-it") == FILES

"""The system says no: one clear line, the rest goes on, nothing is lost, and the next run comes to the same end."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.apply.actions import DirectoryRemoval
from reconcile.apply.staging import Stage
from reconcile.fs import files as reading
from reconcile.fs.durability import Durability
from reconcile.fs.files import Directory
from reconcile.fs.mutations import Root
from reconcile.scan import reader as scan_reader
from reconcile.state.vault import Vault
from tests.support.projects.world import (
    DATABASE,
    LONG_AGO,
    SECOND,
    append,
    command,
    contents,
    events,
    listing,
    make_project,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tests.conftest import Run
    from tests.support.projects.world import World

NUMBER = 17500000001
NAMES = [f"{NUMBER + at}-it" for at in range(6)]
BAD = f"{NUMBER}-it"
"""The conversation that the fault is about; the others go on."""
NEW = f"{NUMBER + 50}-it"


@pytest.fixture
def world(world: World) -> World:
    """One edited here, one edited in the store, one new here, one removed from the store, two as they were."""
    for name in NAMES:
        write_conversation(world.workspace / name, "It", events(3))
        (world.workspace / name / "NOTE.md").write_text(name)
    world.reconcile()
    return world


def change(world: World, how: str) -> None:
    """Give reconcile something to do for the bad one, and for another."""
    for name in (NAMES[1], BAD):
        if how == "copy":
            append(world.workspace / name, 2, "w", LONG_AGO + 10 * SECOND)
        elif how == "project":
            append(world.store / name, 2, "s", LONG_AGO + 10 * SECOND)
        elif how == "extra":
            (world.workspace / name / "NOTE.md").write_text("edited")
        elif how == "new":
            write_conversation(world.workspace / (NEW if name == BAD else f"{NUMBER + 60}-it"), "It", events(2))
        else:
            shutil.rmtree(world.store / name)


@contextmanager
def failing(owner: type[Any], name: str, number: int, *, concerns: str = BAD) -> Iterator[list[str]]:
    """Have a method fail wherever one of its arguments, or what its object is about, names the conversation."""
    call, met = getattr(owner, name), []

    def failed(this: Any, *args: Any, **kwargs: Any) -> Any:
        texts = [str(arg) for arg in args] + [str(getattr(this, "_path", ""))]
        if any(concerns in text for text in texts):
            met.append(name)
            raise OSError(number, os.strerror(number), concerns)
        return call(this, *args, **kwargs)

    with mock.patch.object(owner, name, failed):
        yield met


READS = (("entries", Directory), ("below", Directory))
WRITES = (
    ("exchange", Root, "copy"),
    ("exchange", Root, "project"),
    ("exchange", Root, "extra"),
    ("rename_new", Root, "new"),
    ("rename", Root, "remove"),
    ("status", Root, "copy"),
    ("open_file", Root, "copy"),
    ("open_file", Root, "remove"),
)
ERRORS = (errno.EIO, errno.EACCES, errno.EXDEV)


def check(world: World, result: Any, before: set[str], number: int) -> None:
    assert result.exit_code in (1, 4), result.output
    assert "Traceback" not in result.output
    assert os.strerror(number) in result.output
    assert before <= world.kept()
    world.reconcile()


@pytest.mark.parametrize(("name", "owner"), READS)
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_what_cannot_be_read_is_held_and_nothing_is_taken_for_removed(
    world: World, name: str, owner: type[Any], number: int
) -> None:
    change(world, "copy")
    before, stored = world.kept(), listing(world.store / BAD)
    with failing(owner, name, number) as met:
        result = world.run("--workspace", world.project)
    assert met, "it was never asked for"
    assert "Traceback" not in result.output
    assert result.exit_code in (0, 1, 4), result.output
    assert before <= world.kept()
    assert listing(world.store / BAD) == stored
    world.reconcile()
    assert world.event_count(NUMBER) == 5


@pytest.mark.parametrize(("name", "owner", "how"), WRITES)
@pytest.mark.parametrize("number", ERRORS)
def test_what_cannot_be_written_fails_alone(world: World, name: str, owner: type[Any], how: str, number: int) -> None:
    change(world, how)
    before = world.kept()
    with failing(owner, name, number, concerns=NEW if how == "new" else BAD) as met:
        result = world.run("--workspace", world.project)
    assert met, "it was never asked for"
    if how in ("copy", "project"):
        other = world.store if how == "copy" else world.workspace
        assert world.event_count(NUMBER + 1, other) == 5, "the rest goes on"
    check(world, result, before, number)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize(
    "what", [(Vault, "put_file"), (Vault, "flush"), (Durability, "flush_all"), (Root, "create_file")]
)
def test_nothing_is_replaced_where_it_could_not_be_kept(world: World, what: tuple[type[Any], str], number: int) -> None:
    for how in ("copy", "extra"):
        change(world, how)
    before, trees = world.kept(), contents(world.store) | contents(world.workspace)
    owner, name = what
    with mock.patch.object(owner, name, side_effect=OSError(number, os.strerror(number))):
        result = world.run("--workspace", world.project, "--json")
    if what != (Vault, "flush"):  # that one ends the run
        results = json.loads(result.stdout)["outcome"]["results"]
        assert {each["errno"] for each in results} == {errno.errorcode[number]}
    assert contents(world.store) | contents(world.workspace) == trees
    check(world, result, before, number)


def limited(world: World, files: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("--workspace", world.project),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
    )


@pytest.mark.parametrize("files", [8, 12, 16, 24, 40])
def test_too_few_open_files(world: World, files: int) -> None:
    """Each conversation's lock is an open file."""
    for at in range(40):
        write_conversation(world.workspace / f"{NUMBER + 100 + at}-new", "New", events(1))
    before = world.kept()
    done = limited(world, files)
    assert done.returncode in (0, 1, 4), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert before <= world.kept()
    world.reconcile()


def test_a_path_that_is_too_long(world: World) -> None:
    """An extra that is reached from directory to directory, but not by its whole path."""
    at = os.open(world.workspace / BAD, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=at)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    with os.fdopen(os.open("deep.md", os.O_WRONLY | os.O_CREAT, dir_fd=at), "w") as file:
        file.write("far away")
    os.close(at)
    append(world.workspace / NAMES[1], 2, "w", LONG_AGO + 10 * SECOND)
    result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    assert "File name too long" in result.output
    assert world.event_count(NUMBER + 1) == 5
    again = world.run("--workspace", world.project)
    assert again.exit_code == result.exit_code, again.output


def test_the_roots_and_the_state_on_different_file_systems(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/shm").is_dir():  # noqa: S108 - another file system than the temporary directory's
        pytest.skip("no second file system here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        monkeypatch.setenv("JP_USER_DATA_DIR", f"{place}/jp")
        with tempfile.TemporaryDirectory() as other:
            if os.stat(place).st_dev == os.stat(other).st_dev:
                pytest.skip("no second file system here")
            world = make_project(Path(other, "project"), run)
            write_conversation(world.workspace / BAD, "It", events(3))
            world.reconcile()
            append(world.store / BAD, 2, "s", LONG_AGO + SECOND)
            world.reconcile()
            write_conversation(world.workspace / NAMES[1], "It", events(3))
            world.reconcile()
            shutil.rmtree(world.store / NAMES[1])
            world.reconcile()


def test_a_file_that_changes_whenever_it_is_read(world: World) -> None:
    """A file at rest is needed: held until it is."""
    change(world, "copy")
    target, whole = world.workspace / BAD / "events.json", reading.read_all

    def restless(fd: int, size: int) -> tuple[bytes, int]:
        found = whole(fd, size)
        if os.path.samestat(os.fstat(fd), target.stat()):
            target.write_bytes(target.read_bytes() + b" ")
        return found

    stored = listing(world.store / BAD)
    with mock.patch.object(scan_reader, "read_all", restless):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    assert "it changes all the time" in result.output
    assert listing(world.store / BAD) == stored
    assert world.event_count(NUMBER + 1) == 5
    world.reconcile()
    assert world.event_count(NUMBER) == 5


@pytest.mark.parametrize("what", ["entries", "below", "stat", "open_file"])
def test_a_directory_that_vanishes_while_it_is_walked(world: World, what: str) -> None:
    """It may have gone under another name: nothing is concluded from it but what the next look shows."""
    call, due = getattr(Directory, what), [world.workspace / BAD]
    before = world.kept()

    def vanishing(directory: Directory, *args: Any) -> Any:
        if due and (not args or BAD in str(args[0]) or what == "open_file"):
            due[0].rename(world.project / "away")
            due.pop()
        return call(directory, *args)

    (world.workspace / BAD / "metadata.json").touch()
    with mock.patch.object(Directory, what, vanishing):
        result = world.run("--workspace", world.project)
    assert result.exit_code in (0, 4), result.output
    if not due:
        (world.project / "away").rename(world.workspace / BAD)
    assert before <= world.kept()
    world.reconcile()
    assert world.plan()["summary"]["in-sync"] == len(NAMES)


def _page(database: bytes) -> int:
    """Return the size of a database's pages, as its header has it."""
    return int.from_bytes(database[16:18], "big")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "cut": lambda old: old[: len(old) // 2],
    "of zeros": lambda old: bytes(len(old)),
    "another kind of file": lambda _: b"hello\n" * 100,
    "a page of nonsense": lambda old: old[: _page(old)] + os.urandom(_page(old)) + old[2 * _page(old) :],
    "nonsense in its header": lambda old: old[:30] + os.urandom(60) + old[90:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_database_is_moved_aside(world: World, damage: Callable[[bytes], bytes]) -> None:
    change(world, "copy")
    before = world.kept()
    path = world.state / DATABASE
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(damage(path.read_bytes()))
    for words in (["-n"], ["status"]):
        result = world.run(*words, "--workspace", world.project)
        assert result.exit_code in (0, 4), result.output
        assert "Traceback" not in result.output
    result = world.run("--workspace", world.project)
    assert result.exit_code in (0, 4), result.output
    assert before <= world.kept()
    assert "moved to" in result.stderr or "nonsense" in str(damage), result.stderr
    world.reconcile()


def test_a_newer_database_is_refused(world: World) -> None:
    change(world, "copy")
    stored = listing(world.store)
    with closing(sqlite3.connect(world.state / DATABASE)) as database:
        database.execute("PRAGMA user_version = 999")
    for words in ([], ["-n"], ["status"], ["log"]):
        result = world.run(*words, "--workspace", world.project)
        assert result.exit_code == 1, result.output
        assert "a newer reconcile wrote it" in result.stderr
        assert len(result.stderr.splitlines()) == 2
    assert listing(world.store) == stored


def test_a_vault_object_with_flipped_bits(world: World) -> None:
    """It is never handed out; content that comes again is kept anew; the rest of the vault is as good as before."""
    change(world, "copy")
    old = (world.store / BAD / "events.json").read_bytes()
    world.reconcile()
    (thing,) = (path for path in world.vault.rglob("*") if path.is_file() and path.read_bytes() == old)
    content = bytearray(old)
    content[10] ^= 1
    thing.chmod(0o600)
    thing.write_bytes(content)
    result = world.run("show", thing.name[:12], "--workspace", world.project)
    assert result.exit_code == 1, result.output
    assert "damaged" in result.stderr
    result = world.run("undo", "--workspace", world.project)
    assert result.exit_code in (1, 4), result.output
    assert "Traceback" not in result.output
    assert world.event_count(NUMBER) == 5
    (world.workspace / BAD / "events.json").write_bytes(old)
    world.run("resolve", str(NUMBER), "--take", "workspace", "--workspace", world.project)
    append(world.workspace / BAD, 1, "x", LONG_AGO + 50 * SECOND)
    world.run("--workspace", world.project)
    assert thing.read_bytes() == old, "what was replaced once more is whole in the vault"


def test_a_directory_that_cannot_be_checked_after_its_rename_is_put_back(world: World) -> None:
    before = world.kept()
    call, met = DirectoryRemoval._entries, []

    def entries(removal: DirectoryRemoval, path: str) -> Any:
        if path.partition("/")[0] == removal.stage.directory:
            met.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return call(removal, path)

    with mock.patch.object(DirectoryRemoval, "_entries", entries):
        result = world.run("--workspace", world.project, "rm", str(NUMBER), "--yes")
    assert met
    assert world.event_count(NUMBER) == 3
    check(world, result, before, errno.EIO)


def test_what_may_not_be_on_the_disk_is_settled_by_the_next_run_and_can_be_undone(world: World) -> None:
    change(world, "copy")
    before = world.kept()
    error = OSError(errno.EIO, os.strerror(errno.EIO))
    with mock.patch.object(Stage, "flush_directories", side_effect=error):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 1, result.output
    assert "can't be flushed to disk" in result.output
    run = json.loads(world.run("--workspace", world.project, "log", "--json").stdout)["runs"][0]["id"]
    result = world.run("--workspace", world.project)
    assert f"run {run} was interrupted; 2 of its 2 steps were done" in result.output
    assert before <= world.kept()
    assert world.event_count(NUMBER) == 5
    result = world.run("--workspace", world.project, "undo", run, "--yes")
    assert result.exit_code == 0, result.output
    assert world.event_count(NUMBER) == 3


def test_a_flush_that_fails_stops_no_other_level(world: World) -> None:
    change(world, "copy")
    bad, call = set[str](), Durability.flush_all

    def fails_for_the_first(this: Durability, files: Collection[str], *args: Any) -> None:
        bad.update(() if bad else (file for file in files if file.startswith(str(world.store))))
        if bad.intersection(files):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        call(this, files, *args)

    with (
        mock.patch("reconcile.apply.executor.LOCKS_AT_ONCE", 1),
        mock.patch.object(Durability, "flush_all", fails_for_the_first),
    ):
        result = world.run("--workspace", world.project)
    assert sorted(world.event_count(NUMBER + at) for at in range(2)) == [3, 5], result.output
    world.reconcile()
    assert sorted(world.event_count(NUMBER + at) for at in range(2)) == [5, 5]

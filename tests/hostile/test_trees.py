"""Links, pipes, sockets, devices and second names, anywhere: never followed, waited for or written through."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.adapters.locate import locate
from reconcile.apply.executor import Result
from reconcile.engine.engine import Engine
from reconcile.engine.session import Session
from reconcile.fs.files import Directory
from reconcile.model.policy import LocalRequest, Policy
from tests.support.projects.changing_sides import planned
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    contents,
    events,
    files,
    listing,
    set_key,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.projects.world import World

NUMBER = 17500000001
NAME = f"{NUMBER}-it"
CHILD = f"{NUMBER + 1}-child"
SECRET = b"nobody else's business"


def outside(world: World) -> Path:
    return world.project / "outside"


def link_to_a_file(world: World, path: Path) -> None:
    path.symlink_to(outside(world) / "events.json")


def link_to_a_directory(world: World, path: Path) -> None:
    path.symlink_to(outside(world))


def relative_link(world: World, path: Path) -> None:
    path.symlink_to(os.path.relpath(outside(world), path.parent))


def loop(_: World, path: Path) -> None:
    path.symlink_to(path)


def link_upwards(_: World, path: Path) -> None:
    path.symlink_to("..")


def dangling(_: World, path: Path) -> None:
    path.symlink_to("/nonexistent/\x1b[31m")


def pipe(_: World, path: Path) -> None:
    os.mkfifo(path)


def listening(_: World, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        before = os.open(".", os.O_RDONLY)
        try:
            os.chdir(path.parent)  # its own name is limited to a hundred bytes
            server.bind(path.name)
        finally:
            os.fchdir(before)
            os.close(before)


def device(_: World, path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero, which has no end
    except PermissionError:
        pytest.skip("only root can make devices")


def empty_directory(_: World, path: Path) -> None:
    path.mkdir()


OFTEN = (link_to_a_file, link_to_a_directory, loop, pipe, device)
SELDOM = (relative_link, link_upwards, dangling, listening, empty_directory)
KINDS = [*OFTEN, *(pytest.param(kind, marks=pytest.mark.slow) for kind in SELDOM)]
PLACES = (
    "metadata.json", "base_config.json", "events.json", "NOTE.md", "deep/NOTE.md", "deep", "conversations", "",
    f"conversations/{CHILD}", f"conversations/{CHILD}/events.json",
)  # fmt: skip


@pytest.fixture
def world(world: World) -> World:
    """A parent with a child and an extra, another conversation, and something outside that looks like one."""
    top = write_conversation(world.workspace / NAME, "It", events(3))
    write_conversation(top / "conversations" / CHILD, "Child", events(3), parent=NUMBER)
    write_conversation(world.workspace / f"{NUMBER + 5}-other", "Other", events(3))
    for name in ("NOTE.md", "deep/NOTE.md"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text("a note")
    world.reconcile()
    write_conversation(
        outside(world), "Secret", [*events(3), {"type": "x", "timestamp": "y", "content": SECRET.decode()}]
    )
    return world


def put(world: World, side: Path, place: str, kind: Callable[[World, Path], None]) -> None:
    """Put something odd in the place of a file or directory."""
    path = side / NAME / place if place else side / NAME
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    kind(world, path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["store", "workspace"])
def test_nothing_odd_is_followed(world: World, side: str, kind: Callable[[World, Path], None]) -> None:
    """In every place; the child's directory in the store is of its own."""
    secret = contents(outside(world))
    pristine = world.project.parent / "pristine"
    shutil.copytree(world.project, pristine / "project")
    shutil.copytree(world.silo, pristine / "silo")
    shutil.copytree(world.state, pristine / "state")
    for place in PLACES:
        if side == "store" and place.startswith("conversations/"):
            continue
        put(world, world.store if side == "store" else world.workspace, place, kind)
        append(world.workspace / f"{NUMBER + 5}-other", 1, "w", LONG_AGO + SECOND)
        before = world.kept()
        result = world.run("--workspace", world.project)
        # An extra's folder that is none any more can't be written into.
        assert result.exit_code in ((0, 1) if place == "deep" else (0, 4)), (place, result.output)
        assert "\x1b" not in result.output
        assert before <= world.kept(), place
        assert world.event_count(NUMBER + 5) == 4, "the rest goes on"
        assert contents(outside(world)) == secret
        assert not secret & (contents(world.store) | contents(world.vault)), place
        assert sorted(path.name for path in outside(world).iterdir()) == [
            "base_config.json",
            "events.json",
            "metadata.json",
        ]
        for name, path in {"project": world.project, "silo": world.silo, "state": world.state}.items():
            shutil.rmtree(path)
            shutil.copytree(pristine / name, path)


@pytest.mark.parametrize("side", ["store", "workspace"])
@pytest.mark.parametrize("inner", ["parent", "child"])
def test_a_directory_that_becomes_a_link_while_it_is_walked(world: World, side: str, inner: str) -> None:
    """Between its listing and its opening: it isn't read through, and nothing is taken for removed."""
    root = world.store if side == "store" else world.workspace
    (path,) = root.rglob(NAME if inner == "parent" else CHILD)
    lookalike = outside(world) / "conversations" / CHILD
    write_conversation(lookalike, "Secret", events(9, "s"))
    stored = contents(world.store)
    secret = contents(outside(world)) - stored
    below, due = Directory.below, [path]

    def swapped(directory: Directory, name: str) -> Directory:
        if due and name.rpartition("/")[2] in (due[0].name, "conversations"):
            target = due.pop()
            target.rename(target.with_name(".moved-away"))
            target.symlink_to(outside(world))
        return below(directory, name)

    with mock.patch.object(Directory, "below", swapped):
        # With another preference, everything is scanned: the last run's answer does not hold.
        result = world.run("--workspace", world.project, "--prefer", "store")
    assert not due
    assert result.exit_code in (0, 4), result.output
    assert not secret & (contents(world.store) | contents(world.vault))
    assert secret <= contents(outside(world))
    path.unlink()
    path.with_name(".moved-away").rename(path)
    world.reconcile()
    assert stored <= contents(world.store)


@pytest.mark.parametrize(
    "name",
    [
        "pipe",
        ".pipe",
        "swap.tmp",
        "deep/pipe",
        ".cache/pipe",
        "conversations/pipe",
        "conversations/.pipe",
        "conversations/notes/deep/pipe",
        "metadata.json",
    ],
)
@pytest.mark.parametrize("asked", [("rm", "--cascade", "--yes"), ("local",)])
def test_what_cannot_be_kept_holds_the_directory_that_it_lies_in(
    world: World, name: str, asked: tuple[str, ...]
) -> None:
    """It is no drift: it would be there at every run, until somebody moves it away."""
    put(world, world.workspace, name, pipe)
    command, *options = asked
    for _ in range(2):
        result = world.run(command, str(NUMBER), *options, "-w", world.project)
        assert result.exit_code == 4, result.output
        place = f"workspace:{NAME}/{name}"
        assert f"{place}: a named pipe can't be saved in the vault" in result.stdout
        assert "changed meanwhile" not in result.stdout
        assert "saved in the vault with its directory" not in result.stdout
        assert (world.workspace / NAME / name).is_fifo()
    (world.workspace / NAME / name).unlink()
    if name != "metadata.json":
        assert world.run(command, str(NUMBER), *options, "-w", world.project).exit_code in (0, 2)
        world.reconcile()
        assert not (world.workspace / NAME).exists()


@pytest.mark.parametrize(("name", "found"), [("pipe", "a named pipe"), (".git", "a git repository")])
def test_what_comes_after_the_plan_fails_with_its_name(world: World, name: str, found: str) -> None:
    roots = locate("jp", str(world.project), None, str(world.project), os.environ, sys.platform)
    at = world.workspace / NAME / ".cache" / name
    with Session(roots, str(world.state)) as session:
        engine = Engine(session)
        request = planned(engine, Policy(request=LocalRequest((f"jp-c{NUMBER}",))))
        at.parent.mkdir()
        (os.mkfifo if name == "pipe" else os.mkdir)(at)
        outcome = engine.apply(request, "local")
    failed = next(deed for deed in outcome.results.values() if not deed.is_done)
    assert failed.result is Result.FAILED
    assert f"{at}: {found} " in failed.message
    assert at.exists()


def test_second_names_of_one_file(world: World) -> None:
    """A hard link into a side, or between the two: replacing gives the name another file and leaves the other one."""
    ours, theirs = world.workspace / NAME / "events.json", world.store / NAME / "events.json"
    kept = world.project / "kept.json"
    os.link(ours, kept)
    theirs.unlink()
    os.link(ours, theirs)
    world.reconcile()
    append(world.workspace / f"{NUMBER + 5}-other", 1, "w", LONG_AGO + SECOND)
    edited = theirs.read_bytes().replace(b"a1", b"b1")
    theirs.unlink()
    theirs.write_bytes(edited)
    old = kept.read_bytes()
    world.reconcile()
    assert ours.read_bytes() == edited
    assert kept.read_bytes() == old


def test_one_file_under_two_names_on_both_sides_is_written_to(world: World) -> None:
    """An edit in place is seen by both: nothing is to be done."""
    ours, theirs = world.workspace / NAME / "events.json", world.store / NAME / "events.json"
    theirs.unlink()
    os.link(ours, theirs)
    with ours.open("r+b") as file:
        file.write(ours.read_bytes().replace(b"a1", b"b1"))
    assert not json_actions(world)
    world.reconcile()


def json_actions(world: World) -> list[Any]:
    actions: list[Any] = world.plan()["actions"]
    return actions


def test_a_store_that_is_a_link_is_the_operators_own(world: World) -> None:
    """Where the two roots are was said by the operator: there a link is followed."""
    moved = world.silo.with_name("elsewhere")
    silo = world.silo
    silo.rename(moved)
    silo.symlink_to(moved)
    append(world.workspace / NAME, 1, "w", LONG_AGO + SECOND)
    world.reconcile()
    assert world.event_count(NUMBER) == 4


def test_names_that_differ_in_case_alone(world: World) -> None:
    """JP's names are numbers first: two that differ in case have one id, and are two copies of it."""
    shutil.copytree(world.workspace / NAME, world.workspace / NAME.upper())
    before = world.kept()
    world.reconcile()
    assert before <= world.kept()
    assert len(files(world.store / NAME)) == 5


def test_a_link_in_the_place_of_the_locks(world: World) -> None:
    """What a pulled repository has as `.jp/locks` isn't followed: the run says so, does the rest, and ends well."""
    world.reconcile()
    lock = f"jp-c{NAME.partition('-')[0]}.lock"
    (outside(world) / lock).write_text("{" + '"pid":' + "[" * 5000)
    before = listing(outside(world))
    shutil.rmtree(world.silo / "locks")  # as JP's sweep removes what is in it
    (world.project / ".jp" / "locks").symlink_to(outside(world))
    (path,) = world.workspace.rglob(NAME)
    set_key(path, "title", "Another", LONG_AGO + 10**12)
    result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    assert "a symbolic link, which is never followed; put a directory there" in result.output
    assert listing(outside(world)) == before
    found = world.run("doctor", "--workspace", world.project)
    assert ".jp/locks" in found.output
    (world.project / ".jp" / "locks").unlink()
    world.reconcile()

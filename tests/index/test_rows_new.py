"""What a run has written itself is not read again, unless it is too young to tell, or somebody else was at it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from msgspec.structs import replace

from reconcile.apply.staging import Stage
from reconcile.formats import get_format
from reconcile.fs.files import Directory, fingerprint_of
from reconcile.fs.hashing import digest
from reconcile.index.rows import Files, are_racy_safe, rows_of_new
from reconcile.model.plan import Action, Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Place, Side
from reconcile.scan.scan import scan
from tests.support.projects.world import World, events, listing, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Run

FIRST = 17500000001
NAME = f"{FIRST}-it"
TICK_S = 0.05
"""Longer than any tick of the file system's clock."""
FORMAT = get_format("jp", ())


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    for number in range(3):
        write_conversation(world.workspace / f"{FIRST + number}-it", "It", events(3))
    write_conversation(world.workspace / NAME / "conversations" / f"{FIRST + 9}-in", "In", events(3), parent=FIRST)
    time.sleep(TICK_S)
    return world


@pytest.fixture
def slow_flush() -> Iterator[None]:
    """A flush that takes so long that what was staged before is old."""
    usual = Stage.flush

    def flush(stage: Stage) -> Any:
        kept = usual(stage)
        time.sleep(TICK_S)
        return kept

    with mock.patch.object(Stage, "flush", flush):
        yield


@pytest.fixture
def looked_into() -> Iterator[list[str]]:
    """The files whose content a look has read."""
    found: list[str] = []
    usual = Directory.open_file

    def open_file(directory: Directory, name: str) -> int:
        found.append(name)
        return usual(directory, name)

    with mock.patch.object(Directory, "open_file", open_file):
        yield found


@pytest.mark.usefixtures("slow_flush")
def test_what_was_written_is_not_read_again(world: World, looked_into: list[str]) -> None:
    world.reconcile(settled=False)
    assert len(looked_into) == 3 * 4, "each file once, where it came from"
    looked_into.clear()
    world.reconcile("--dry-run", settled=False)
    assert not looked_into, "the next process knows it, too"
    world.check_settled()


@pytest.mark.usefixtures("slow_flush")
def test_also_in_a_side_that_was_not_there(
    world: World, looked_into: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.reconcile()
    other = make_project(world.project.with_name("other"), world.run)
    other.workspace.rmdir()
    monkeypatch.setenv("RECONCILE_MISSING", "reproject")
    looked_into.clear()
    other.reconcile("--store", world.silo, settled=False)
    assert not looked_into
    assert listing(other.workspace) == listing(world.workspace)


def test_what_is_too_young_is_read_again(world: World, looked_into: list[str]) -> None:
    with mock.patch("reconcile.apply.executor.are_racy_safe", return_value=False):
        world.reconcile(settled=False)
    assert len(looked_into) == 2 * 3 * 4


def rewrite(path: Path) -> None:
    """Write other bytes of the same length, and put the time back."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"a1", b"b1"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def save(path: Path) -> None:
    """The same as editors do it: a new file, renamed over the old one."""
    before = path.stat()
    new = path.with_name("#editor.tmp")
    new.write_bytes(path.read_bytes().replace(b"a1", b"b1"))
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(path)


@pytest.mark.usefixtures("slow_flush")
@pytest.mark.parametrize("writer", [rewrite, save])
def test_what_somebody_writes_as_soon_as_it_has_its_place_is_seen(world: World, writer: Callable[[Path], None]) -> None:
    usual, path = Stage.flush_directories, world.store / NAME / "events.json"

    def flush_directories(stage: Stage) -> None:
        usual(stage)
        if b"a1" in path.read_bytes():
            writer(path)

    with mock.patch.object(Stage, "flush_directories", flush_directories):
        world.run("--workspace", world.project)
    assert b"b1" in path.read_bytes()
    assert [action["conversation"] for action in world.plan()["actions"]] == [f"jp-c{FIRST}"]
    world.reconcile()
    assert (world.workspace / NAME / "events.json").read_bytes() == path.read_bytes()


# --- the rows ---------------------------------------------------------------------------------------------------


def test_a_row_says_what_a_look_would_have_learned(world: World) -> None:
    found = scan(Side.WORKSPACE, str(world.workspace), FORMAT, None)
    source = next(copy for copy in found.snapshot.copies if copy.path == NAME)
    files = files_of(world.workspace / NAME)
    moved = replace(source, side=Side.STORE, path="elsewhere")
    (row,) = rows_of_new({"1": files}, [made(moved.place, "new")], [moved], FORMAT).values()
    assert row == found.index.rows[NAME]


def test_there_is_no_row_where_the_source_is_not_what_was_written(world: World) -> None:
    files = files_of(world.workspace / NAME)
    (source,) = (
        copy for copy in scan(Side.WORKSPACE, str(world.workspace), FORMAT, None).snapshot.copies if copy.path == NAME
    )
    action = made(source.place, "new")
    changed = {**files, "metadata.json": (files["metadata.json"][0], digest(b"{}"))}
    fewer = {name: known for name, known in files.items() if name != "base_config.json"}
    for other in (changed, fewer):
        assert not rows_of_new({"1": other}, [action], [source], FORMAT)
    assert not rows_of_new({"1": files}, [action], [replace(source, stream=None)], FORMAT)
    assert not rows_of_new({"1": files}, [made(None, "new")], [source], FORMAT)
    assert not rows_of_new({"2": files}, [action], [source], FORMAT)


def test_a_file_is_old_enough_once_a_tick_has_gone_by(world: World) -> None:
    files = files_of(world.workspace / NAME)
    written = max(changed for (_, _, _, changed), _ in files.values())
    assert not are_racy_safe(files, written)
    assert are_racy_safe(files, written + int(TICK_S * 10**9))


def files_of(directory: Path) -> Files:
    return {
        path.name: (fingerprint_of(path.stat()), digest(path.read_bytes()))
        for path in directory.iterdir()
        if path.is_file()
    }


def made(source: Place | None, path: str) -> Action:
    return Action(
        id="1",
        kind=Kind.COPY,
        conversation=f"jp-c{FIRST}",
        title=None,
        unit="conversation",
        reason=Reason.REPROJECTED,
        source=source,
        target=Place(Side.STORE, path),
    )

"""Forms that few conversations have, and that no command may break at."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import events, make_project, set_key, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


def test_a_name_that_is_no_text_stays_known(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    for number in range(3):
        write_conversation(world.workspace / f"1752883200{number}-it", f"It {number}", events(2))
    odd = os.fsencode(world.workspace / "17528832001-it") + b"/\xff.md"
    with open(odd, "wb") as file:
        file.write(b"note")
    for _ in range(3):
        time.sleep(0.1)
        world.reconcile(settled=False)
    with open(odd, "wb") as file:
        file.write(b"another note")
    time.sleep(0.1)
    world.reconcile()
    assert b"another note" in {path.read_bytes() for path in world.store.rglob("*.md")}
    os.unlink(odd)
    time.sleep(0.1)
    world.reconcile(settled=False)


def test_what_has_no_base_configuration_of_its_own_is_compared(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    directory = world.workspace / "17528832001-it"
    write_conversation(directory, "It", events(2))
    world.reconcile()
    for side in (world.workspace, world.store):
        (side / directory.name / "base_config.json").unlink()
    found = run("diff", "-w", world.project, "jp-c17528832001")
    assert found.exit_code == 0, found.output
    assert "no differences" in found.output


def test_the_status_of_a_conversation_lists_the_files_that_no_run_copies(tmp_path: Path, run: Run) -> None:
    """They are hidden, temporary, or no regular files. A plain run does not look for hidden and temporary ones."""
    world = make_project(tmp_path / "project", run)
    directory = world.workspace / "17528832001-it"
    write_conversation(directory, "It", events(2))
    write_conversation(directory / "conversations" / "17528832002-child", "Child", events(1))
    for name in (".notes", "images/.index", ".cache/file", "conversations/17528832002-child/.other"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("x")
    (directory / "notes.md").write_text("x")
    (directory / "notes.md~").write_text("x")
    (directory / "images" / "link").symlink_to("elsewhere")
    os.mkfifo(directory / "pipe")
    world.reconcile()
    left = (".cache/", ".notes", "notes.md~", "pipe", "images/.index", "images/link")
    hidden = [f"workspace:17528832001-it/{name}" for name in left]
    shown = " ".join(world.reconcile("status", "17528832001").stdout.split())
    assert f"left out {', '.join(hidden[:5])} and 1 more; no run copies hidden and temporary files, and links" in shown
    verbose = " ".join(world.reconcile("status", "17528832001", "-v").stdout.split())
    assert f"left out {', '.join(hidden)}; no run copies" in verbose
    assert json.loads(world.reconcile("status", "17528832001", "--json").stdout)["hidden"] == hidden


def test_a_file_that_was_deleted_here_is_not_called_unknown(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    directory = world.workspace / "17528832001-it"
    write_conversation(directory, "It", events(2))
    (directory / "notes.md").write_text("n")
    world.reconcile()
    (directory / "notes.md").unlink()
    world.reconcile(settled=False)
    shown = " ".join(world.reconcile("status", "17528832001", settled=False).stdout.split())
    assert "notes.md: only in the store (deleted here, or never here)" in shown


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_file_with_the_name_of_a_directory_is_named(tmp_path: Path, run: Run, is_renamed: bool) -> None:
    """No run removes it, and none says that something has changed meanwhile."""
    world = make_project(tmp_path / "project", run)
    before = write_conversation(world.workspace / "17528832001-old", "Old", events(2))
    if is_renamed:
        world.reconcile()
    before.rename(directory := before.with_name("17528832001-it"))
    set_key(directory, "title", "It", time.time_ns())
    obstacle = world.store / directory.name
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.write_text("mine")
    for _ in range(2):
        result = world.run("--workspace", world.project)
        assert result.exit_code == (1 if is_renamed else 4), result.output
        words = " ".join(result.output.split())
        assert "17528832001-it: " in words
        assert "move it away" in words
        assert "meanwhile" not in words
    assert obstacle.read_text() == "mine"
    obstacle.unlink()
    world.reconcile()
    assert {path.name for path in world.store.iterdir()} == {directory.name}


def test_a_file_in_the_place_of_a_directory_in_the_store_is_no_removal(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    directory = write_conversation(world.workspace / "17528832001-it", "It", events(2))
    write_conversation(world.workspace / "17528832002-other", "Other", events(2))
    world.reconcile()
    before = world.store / directory.name
    before.rename(tmp_path / "kept")
    before.write_text("mine")
    for _ in range(2):
        result = world.run("--workspace", world.project)
        assert result.exit_code == 4, result.output
        assert "is in the place of the directory; put the directory back" in " ".join(result.output.split())
    assert directory.exists()
    before.unlink()
    (tmp_path / "kept").rename(before)
    world.reconcile()
    assert directory.exists()

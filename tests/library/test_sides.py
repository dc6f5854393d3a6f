"""Sides that aren't there yet, or not any more, and git in the middle of something."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from reconcile import LockError, PersistError, UnreadableError, Workspace
from tests.support.library.conversations import check, directory, mutable, read, say
from tests.support.projects.three_conversations import FIRST, SECOND_ID
from tests.support.projects.world import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World


def test_the_first_conversation_of_a_project(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "new", run)
    with Workspace.open(world.project) as workspace:
        assert workspace.conversations() == []
        with workspace.create_conversation(title="First") as first:
            say(first, "hello")
        with workspace.create_conversation(title="Second", parent=first.handle):
            pass
        assert workspace.has_children(first.handle)
    number = int(first.id.removeprefix("jp-c"))
    assert world.event_count(number) == world.event_count(number, world.workspace) == 1
    check(world)


@pytest.mark.parametrize("side", ["store", "workspace"])
def test_a_side_that_is_gone_is_not_made_anew(world: World, workspace: Workspace, side: str) -> None:
    gone = world.silo if side == "store" else world.project / ".jp"
    mut = mutable(workspace)
    say(mut, "hello")
    shutil.move(gone, gone.with_name("away"))
    with pytest.raises(PersistError, match="deleted or replaced since the workspace was opened") as raised:
        mut.close()
    assert not gone.exists()
    shutil.move(gone.with_name("away"), gone)
    (version,) = raised.value.versions
    shown = world.run("--workspace", world.project, "show", version)
    assert "hello" in shown.stdout, shown.output
    with mutable(workspace) as mut:
        say(mut, "again")
    check(world)


def test_a_change_in_another_directory_with_the_same_content(world: World) -> None:
    """A store that was moved to another disk: what is there is what was agreed on, and is gone on with."""
    away = world.store.with_name("away")
    world.store.rename(away)
    shutil.copytree(away, world.store)
    with Workspace.open(world.project) as workspace, mutable(workspace) as mut:
        say(mut, "hello")
    assert world.event_count(FIRST) == world.event_count(FIRST, world.workspace)
    assert not [path for path in world.store.iterdir() if "diverged" in path.name]
    world.run("--workspace", world.project)  # which says that the store is another directory
    check(world)


def test_git_in_the_middle_of_something(world: World, workspace: Workspace) -> None:
    """The store has it at once, and the workspace waits."""
    (world.project / ".git").mkdir()
    (world.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (world.project / ".git" / "MERGE_HEAD").write_text("0" * 40)
    with mutable(workspace) as mut:
        say(mut, "hello")
    assert (world.event_count(FIRST), world.event_count(FIRST, world.workspace)) == (4, 3)
    assert any("git" in words for words in mut.waiting)
    (world.project / ".git" / "MERGE_HEAD").unlink()
    with mutable(workspace) as mut:
        say(mut, "again")
    assert mut.waiting == ()
    assert world.event_count(FIRST, world.workspace) == 5
    check(world)


def test_a_child_that_jp_has_keeps_the_directory_where_it_is(world: World, workspace: Workspace) -> None:
    """The title is written; the rename, which takes the child along, is for the next run."""
    with mutable(workspace, SECOND_ID), mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.update(title="Another"))
        mut.flush()
        assert mut.waiting
    assert read(world.workspace / f"{FIRST}-it" / "metadata.json")["title"] == "Another"
    assert world.run("--workspace", world.project).exit_code == 0
    assert (world.workspace / f"{FIRST}-another" / "conversations" / f"{SECOND_ID}-it").is_dir()
    check(world)


def test_what_nobody_can_read(world: World, workspace: Workspace) -> None:
    broken = directory(world.store, FIRST) / "events.json"
    broken.write_text("<<<<<<< ours\n[]\n")
    handle = workspace.acquire(str(FIRST))
    with pytest.raises(UnreadableError, match=r"events\.json"):
        workspace.events(handle)
    with pytest.raises(UnreadableError, match=r"events\.json"), mutable(workspace) as mut:
        say(mut, "hello")
    assert broken.read_text() == "<<<<<<< ours\n[]\n"
    broken = directory(world.workspace, SECOND_ID) / "events.json"
    broken.write_text("<<<<<<< ours\n[]\n")
    with mutable(workspace, SECOND_ID) as mut:
        say(mut, "hello")
    assert world.event_count(SECOND_ID) == 4
    assert broken.read_text() == "<<<<<<< ours\n[]\n"


def test_a_lock_that_nobody_can_have(world: World, workspace: Workspace) -> None:
    """Waiting would be in vain, and None would say that somebody has it."""
    handle = workspace.acquire(str(FIRST))
    shutil.rmtree(world.silo / "locks")
    (world.silo / "locks").write_text("no directory")
    with pytest.raises(LockError, match=rf"jp-c{FIRST}: can't be locked: .*Not a directory"):
        workspace.lock_conversation(handle, timeout=None)
    with pytest.raises(LockError):
        workspace.create_conversation()
    (world.silo / "locks").unlink()
    with mutable(workspace) as mut:
        say(mut, "hello")
    check(world)

"""What other processes have made, moved and removed while a workspace is open: another workspace stands for them."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from reconcile import CASCADE, InvalidValueError, UnknownConversationError, Workspace
from tests.support.library.conversations import check, directory, locked, mutable, read, say, texts
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import events, make_project, set_key, write_conversation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World


@pytest.fixture
def other(world: World) -> Iterator[Workspace]:
    with Workspace.open(world.project) as opened:
        yield opened


@pytest.mark.parametrize("local", [False, True])
def test_two_that_make_one_at_the_same_moment(
    world: World, workspace: Workspace, other: Workspace, monkeypatch: pytest.MonkeyPatch, *, local: bool
) -> None:
    with monkeypatch.context() as patched:
        now = time.time_ns()
        patched.setattr("reconcile.library.workspace.time.time_ns", lambda: now)
        made: list[str] = []
        for each in (workspace, other):
            with each.create_conversation(title=f"The {len(made) + 1}.", local=local) as new:
                say(new, "hello")
            made.append(new.id)
    assert len(set(made)) == 2
    assert [workspace.metadata(workspace.acquire(each))["title"] for each in made] == ["The 1.", "The 2."]
    check(world)


@pytest.mark.parametrize("local", [False, True])
def test_what_another_has_made_is_read_and_changed(
    world: World, workspace: Workspace, other: Workspace, *, local: bool
) -> None:
    with other.create_conversation(title="Theirs", local=local) as new:
        say(new, "hello")
    assert workspace.metadata(new.handle)["title"] == "Theirs"
    with mutable(workspace, int(new.id.removeprefix("jp-c"))) as mut:
        say(mut, "mine")
    assert len(other.events(new.handle)) == 2
    check(world)


def test_what_jp_has_made(world: World, workspace: Workspace, other: Workspace) -> None:
    write_conversation(world.store / f"{THIRD + 9}-it", "It", events(2))
    handle = other.acquire(str(THIRD + 9))
    assert len(workspace.events(handle)) == 2
    assert workspace.children_of(handle) == []


def test_what_another_has_made_is_a_parent(world: World, workspace: Workspace, other: Workspace) -> None:
    with other.create_conversation(title="Theirs") as new:
        pass
    with workspace.create_conversation(parent=new.handle) as child:
        pass
    with other.create_conversation(title="Theirs, too") as second:
        pass
    with mutable(workspace, THIRD) as mut:
        mut.update_metadata(lambda metadata: metadata.update(parent_id=second.id))
    assert (workspace.parent_of(child.handle), workspace.parent_of(mut.handle)) == (new.handle, second.handle)
    check(world)


def test_what_another_has_moved_below_is_no_parent(workspace: Workspace, other: Workspace) -> None:
    with mutable(other, THIRD) as mut:
        mut.update_metadata(lambda metadata: metadata.update(parent_id=f"jp-c{SECOND_ID}"))
    with mutable(workspace) as mut, pytest.raises(InvalidValueError, match="is its own descendant"):
        mut.update_metadata(lambda metadata: metadata.update(parent_id=f"jp-c{THIRD}"))


def test_nobody_is_its_own_parent(workspace: Workspace) -> None:
    with mutable(workspace) as mut, pytest.raises(InvalidValueError, match=f"jp-c{FIRST} is the conversation itself"):
        mut.update_metadata(lambda metadata: metadata.update(parent_id=mut.id))


def test_what_was_removed_has_no_place_in_the_tree(workspace: Workspace, other: Workspace) -> None:
    with mutable(workspace, THIRD) as mut:
        workspace.remove_conversation(mut)
    asks = (
        workspace.parent_of,
        workspace.children_of,
        workspace.has_children,
        workspace.ancestors_of,
        workspace.descendants_of,
    )
    for ask in asks:
        with pytest.raises(UnknownConversationError, match=f"jp-c{THIRD}"):
            ask(mut.handle)
    for each in (workspace, other):
        with pytest.raises(UnknownConversationError, match="neither side"):
            each.events(mut.handle)
        with locked(other, SECOND_ID), pytest.raises(UnknownConversationError):
            each.create_conversation(parent=mut.handle)


def test_what_jp_has_renamed(world: World, workspace: Workspace) -> None:
    """Before a scope, with the title that it goes by, and while a scope is open."""
    handle = workspace.acquire(str(FIRST))
    for side in (world.store, world.workspace):
        set_key(side / f"{FIRST}-it", "title", "By JP", time.time_ns())
        (side / f"{FIRST}-it").rename(side / f"{FIRST}-by-jp")
    assert workspace.metadata(handle)["title"] == "By JP"
    with mutable(workspace) as mut:
        say(mut, "hello")
        for side in (world.store, world.workspace):
            (side / f"{FIRST}-by-jp").rename(side / f"{FIRST}-once-more")
    assert texts(directory(world.store, FIRST))[-1] == texts(directory(world.workspace, FIRST))[-1] == "hello"
    check(world)


def test_two_worktrees_of_one_store(world: World, tmp_path: Path, run: Run) -> None:
    tree = make_project(tmp_path / "worktree", run)
    shutil.copyfile(world.project / ".jp" / ".id", tree.project / ".jp" / ".id")
    shutil.copytree(world.workspace, tree.workspace, dirs_exist_ok=True)
    assert run("--workspace", tree.project).exit_code == 0
    with Workspace.open(world.project) as here, Workspace.open(tree.project) as there:
        for workspace, text in ((here, "1"), (there, "2"), (here, "3")):
            with mutable(workspace) as mut:
                say(mut, text)
        with mutable(here) as mut:
            mut.update_metadata(lambda metadata: metadata.update(title="From here"))
        assert there.metadata(there.acquire(str(FIRST)))["title"] == "From here"
        with locked(here):
            assert there.lock_conversation(there.acquire(str(FIRST)), timeout=0) is None
        with mutable(there, THIRD) as mut:
            there.remove_conversation(mut, CASCADE)
        with pytest.raises(UnknownConversationError), mutable(here, THIRD) as mut:
            say(mut, "to nobody")
    for each in (world, tree):
        assert run("--workspace", each.project).exit_code == 0
        check(each)
    assert texts(directory(tree.workspace, FIRST))[3:] == ["1", "2", "3"]
    assert read(directory(tree.workspace, FIRST) / "metadata.json")["title"] == "From here"

"""A workspace over real files: what is read, what is written, and that nothing is left to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import (
    CASCADE,
    PROMOTE,
    ConversationHandle,
    HasChildrenError,
    InvalidValueError,
    UnknownConversationError,
    Workspace,
)
from reconcile.fs.files import read_files
from reconcile.library import disk
from tests.support.library.conversations import check, directory, locked, mutable, read, say
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import LONG_AGO, append, set_key, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.fs.files import Directory
    from tests.support.projects.world import World


def handles(*numbers: int) -> list[ConversationHandle]:
    return [ConversationHandle(f"jp-c{number}") for number in numbers]


@pytest.mark.parametrize("text", [f"{FIRST}", f"jp-c{FIRST}", f"jp-c{FIRST}-ab1cd", f"{FIRST}-it"])
def test_a_conversation_by_any_of_its_names(workspace: Workspace, text: str) -> None:
    assert workspace.acquire(text).id == f"jp-c{FIRST}"


@pytest.mark.parametrize("text", ["jp-c1", "nonsense", "", f"{FIRST}"[:-1]])
def test_a_conversation_that_is_not_there(workspace: Workspace, text: str) -> None:
    with pytest.raises(UnknownConversationError, match="no live conversation with id"):
        workspace.acquire(text)


def test_what_is_there(workspace: Workspace) -> None:
    first, second, _ = workspace.conversations()
    assert workspace.conversations() == handles(FIRST, SECOND_ID, THIRD)
    assert workspace.metadata(second)["parent_id"] == first.id
    assert [event["type"] for event in workspace.events(first)] == ["chat_request"] * 3


def test_the_tree(workspace: Workspace) -> None:
    first, second, third = workspace.conversations()
    assert workspace.parent_of(second) == first
    assert workspace.parent_of(first) is None
    assert workspace.children_of(first) == [second]
    assert workspace.has_children(first)
    assert not workspace.has_children(third)
    with workspace.create_conversation(parent=second, title="Below") as new:
        assert not workspace.has_children(second)
    assert workspace.ancestors_of(new.handle) == [second, first]
    assert workspace.descendants_of(first) == [second, new.handle]


def test_an_event_is_on_both_sides_when_the_scope_ends(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        assert say(mut, "hello") == 4
        assert mut.dirty
        assert world.event_count(FIRST) == 3
    for side in (world.store, world.workspace):
        assert read(directory(side, FIRST) / "events.json")[-1]["content"] == "hello"
    check(world)


def test_the_same_bytes_and_times_on_both_sides(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "Grüße \x7f \u2028")
        mut.update_metadata(lambda metadata: metadata.update(zzz={"unknown": [1, {}]}))
    ours, theirs = (directory(side, FIRST) for side in (world.store, world.workspace))
    for name in ("metadata.json", "events.json"):
        content = (ours / name).read_bytes()
        assert (theirs / name).read_bytes() == content
        assert (theirs / name).stat().st_mtime_ns == (ours / name).stat().st_mtime_ns
        assert content == (json.dumps(json.loads(content), indent=2, ensure_ascii=False) + "\n").encode()
    check(world)


def test_a_title_renames_and_carries_the_children_along(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.update(title="Another one"))
    assert (world.store / f"{FIRST}-another-one").is_dir()
    assert (world.workspace / f"{FIRST}-another-one" / "conversations" / f"{SECOND_ID}-it").is_dir()
    check(world)


def test_a_title_renames_what_is_in_the_store_alone(world: World, workspace: Workspace) -> None:
    """It was never in sync; JP renames it at its next write."""
    with workspace.create_conversation(title="Private", local=True) as private:
        private.flush()
        private.update_metadata(lambda metadata: metadata.update(title="Another one"))
    number = int(private.id.removeprefix("jp-c"))
    assert directory(world.store, number).name == f"{number}-another-one"
    check(world)
    with mutable(workspace, number) as mut:
        mut.update_metadata(lambda metadata: metadata.pop("title"))
    assert directory(world.store, number).name == f"{number}"
    check(world)


def test_metadata_is_read_without_the_events(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what has not changed isn't read again."""
    handle, names = workspace.acquire(str(FIRST)), []

    def noted(directory: Directory, wanted: Iterable[str]) -> Any:
        names.append([*wanted])
        return read_files(directory, names[-1])

    monkeypatch.setattr(disk, "read_files", noted)
    for _ in range(2):
        assert workspace.metadata(handle)["title"] == "It"
    for _ in range(2):
        assert len(workspace.events(handle)) == 3
    append(directory(world.store, FIRST), 1, "s", LONG_AGO + 9)
    assert len(workspace.events(handle)) == 4
    assert names == [["metadata.json"], ["events.json"], ["events.json"]]


def test_a_parent_moves_it(world: World, workspace: Workspace) -> None:
    with mutable(workspace, THIRD) as mut:
        mut.update_metadata(lambda metadata: metadata.update(parent_id=f"jp-c{SECOND_ID}"))
    assert (world.workspace / f"{FIRST}-it/conversations/{SECOND_ID}-it/conversations/{THIRD}-it").is_dir()
    assert workspace.ancestors_of(mut.handle) == handles(SECOND_ID, FIRST)
    check(world)
    with mutable(workspace, SECOND_ID) as mut:
        mut.update_metadata(lambda metadata: metadata.update(parent_id=None))
    assert (world.workspace / f"{SECOND_ID}-it/conversations/{THIRD}-it").is_dir()
    check(world)


@pytest.mark.parametrize("parent", [f"jp-c{FIRST}", f"jp-c{SECOND_ID}", "jp-c1"])
def test_a_parent_that_is_below_it_or_nowhere_is_refused(workspace: Workspace, parent: str) -> None:
    with mutable(workspace) as mut:
        with pytest.raises(InvalidValueError, match="parent_id"):
            mut.update_metadata(lambda metadata: metadata.update(parent_id=parent))
        assert not mut.dirty


def test_a_key_that_is_taken_out_leaves_the_parent(world: World, workspace: Workspace) -> None:
    """As JP does it; what it means is that nothing is said (docs/design/placement.md#rule-2)."""
    with mutable(workspace, SECOND_ID) as mut:
        mut.update_metadata(lambda metadata: metadata.pop("parent_id"))
        say(mut, "hello")
    assert read(directory(world.workspace, SECOND_ID) / "metadata.json")["parent_id"] == f"jp-c{FIRST}"
    check(world)


def test_a_new_conversation(world: World, workspace: Workspace) -> None:
    with workspace.create_conversation(title="A new one", labels={"b": "", "a": "x"}) as new:
        say(new, "first")
    name = f"{new.id.removeprefix('jp-c')}-a-new-one"
    assert sorted(path.name for path in (world.store / name).iterdir()) == [
        "base_config.json",
        "events.json",
        "metadata.json",
    ]
    assert list(read(world.workspace / name / "metadata.json")) == ["title", "last_activated_at", "labels"]
    assert (world.store / name / "base_config.json").read_text() == "{}\n"
    check(world)


def test_a_new_child_lies_in_its_parents_directory(world: World, workspace: Workspace) -> None:
    parent = workspace.acquire(str(SECOND_ID))
    with workspace.create_conversation(parent=parent) as new:
        pass
    number = new.id.removeprefix("jp-c")
    assert (world.workspace / f"{FIRST}-it/conversations/{SECOND_ID}-it/conversations/{number}").is_dir()
    check(world)


def test_a_local_one_is_in_the_store_alone(world: World, workspace: Workspace) -> None:
    with workspace.create_conversation(title="Private", local=True) as new:
        pass
    for _ in range(2):
        assert not list(world.workspace.rglob(f"{new.id.removeprefix('jp-c')}*"))
        assert directory(world.store, int(new.id.removeprefix("jp-c"))).is_dir()
        check(world)
        with mutable(workspace, int(new.id.removeprefix("jp-c"))) as mut:
            say(mut, "hello")


def test_a_child_of_a_private_one_waits_for_it(world: World, workspace: Workspace) -> None:
    with workspace.create_conversation(title="Private", local=True) as private:
        pass
    with workspace.create_conversation(parent=private.handle, title="Below") as below:
        pass
    assert not list(world.workspace.rglob(f"*{below.id.removeprefix('jp-c')}*"))
    check(world)


def test_many_are_made_at_once(world: World, workspace: Workspace) -> None:
    made = [workspace.create_conversation(title="Many") for _ in range(5)]
    for new in made:
        new.close()
    assert len({new.id for new in made}) == 5
    check(world)


def test_children_have_to_be_spoken_of(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "last words")
        with pytest.raises(HasChildrenError, match=f"jp-c{SECOND_ID}") as refused:
            workspace.remove_conversation(mut)
        assert refused.value.children == (f"jp-c{SECOND_ID}",)
        assert not mut.closed
    assert world.event_count(FIRST) == 4


def test_removed_with_the_children_promoted(world: World, workspace: Workspace) -> None:
    mut = mutable(workspace)
    workspace.remove_conversation(mut, PROMOTE)
    assert mut.closed
    assert workspace.conversations() == handles(SECOND_ID, THIRD)
    assert (world.workspace / f"{SECOND_ID}-it").is_dir()
    check(world)


def test_removed_with_everything_below(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "last words")
        workspace.remove_conversation(mut, CASCADE)
    assert workspace.conversations() == handles(THIRD)
    assert [path.name for path in world.workspace.iterdir() if path.name[0] != "."] == [f"{THIRD}-it"]
    check(world)
    world.run("-w", world.project, "undo")
    assert read(directory(world.store, FIRST) / "events.json")[-1]["content"] == "last words"


def test_what_was_edited_by_hand_is_read_and_kept(world: World, workspace: Workspace) -> None:
    """Not yet reconciled: it is what a run would make of it, also before a change."""
    append(directory(world.workspace, FIRST), 2, "h", LONG_AGO)
    set_key(directory(world.store, FIRST), "title", "By hand", LONG_AGO)
    handle = workspace.acquire(str(FIRST))
    assert len(workspace.events(handle)) == 5
    assert workspace.metadata(handle)["title"] == "By hand"
    assert world.event_count(FIRST) == 3, "reading writes nothing"
    with locked(workspace) as lock:
        assert len(lock.events) == 5
        with lock.as_mut() as mut:
            assert say(mut, "hello") == 6
    assert world.event_count(FIRST) == world.event_count(FIRST, world.workspace) == 6
    assert (world.workspace / f"{FIRST}-by-hand").is_dir()
    check(world)


def test_what_came_through_git_is_read(world: World, workspace: Workspace) -> None:
    number = THIRD + 1
    write_json(world.workspace / f"{number}-x/metadata.json", {"last_activated_at": "2026-01-01 00:00:00.0"}, LONG_AGO)
    write_json(world.workspace / f"{number}-x/base_config.json", {}, LONG_AGO)
    write_json(world.workspace / f"{number}-x/events.json", [], LONG_AGO)
    handle = workspace.acquire(str(number))
    assert workspace.events(handle) == ()
    with mutable(workspace, number) as mut:
        say(mut, "hello")
    assert world.event_count(number) == world.event_count(number, world.workspace) == 1
    check(world)


def test_undo_takes_a_flush_back(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "hello")
    world.run("-w", world.project, "undo")
    assert len(workspace.events(mut.handle)) == 3
    assert world.event_count(FIRST) == world.event_count(FIRST, world.workspace) == 3

"""What a step needs: everything that made the files and paths that it uses (docs/design/run.md#rule-46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconcile.model.plan import Action, Kind, Precondition
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import File, Place, Side
from reconcile.planning.builder import Node, PlanBuilder, Put, Step, nodes_of
from reconcile.planning.filters import renumbered, withheld
from tests.support.scenarios.building import here, stored

if TYPE_CHECKING:
    from collections.abc import Callable

NEW = File("metadata.json", 2, 7, "new")


def step(kind: Kind, conversation: str = "jp-c1", unit: str = "conversation") -> Step:
    return Step(kind=kind, conversation=conversation, title=None, reason=Reason.LAYOUT, unit=unit)


class Planned:
    """A draft over a store and a workspace: 3-c in 2-b in 1-a, and 4-d."""

    def __init__(self) -> None:
        self.builder = PlanBuilder()
        files = ["1-a", "1-a/conversations/2-b", "1-a/conversations/2-b/conversations/3-c", "4-d"]
        self.here = nodes_of(here(*(f"{path}  metadata 09:00" for path in files)))
        self.store = nodes_of(stored("1-a  metadata 08:00", "9-i  metadata 08:00"))
        self.a, self.b, self.c, self.d = self.here.values()
        self.home = self.store["1-a"]

    def write(self, target: Node, file: File = NEW, origin: Node | None = None) -> int:
        content = None if origin else b"{}"
        unit = step(Kind.PROJECT, unit="metadata")
        return self.builder.write(unit, target, [Put(file, origin, content)])

    def move(self, node: Node, container: Node | None, name: str | None = None) -> int:
        return self.builder.move(step(Kind.MOVE), node, container, "", name or node.name)

    def remove(self, node: Node) -> int:
        return self.builder.remove(step(Kind.REMOVE_STALE), node, ())

    def needs(self, index: int) -> tuple[str, ...]:
        return self.builder.action(index).needs


def same_file(plan: Planned) -> None:
    plan.write(plan.a)
    plan.write(plan.a, replace(NEW, digest="newer"))


def another_file(plan: Planned) -> None:
    plan.write(plan.a)
    plan.write(plan.a, replace(NEW, name="events.json"))


def from_what_was_written(plan: Planned) -> None:
    plan.write(plan.home)
    plan.write(plan.a, NEW, plan.home)


def move_after_write(plan: Planned) -> None:
    plan.write(plan.b)
    plan.move(plan.b, None)


def move_after_write_below(plan: Planned) -> None:
    plan.write(plan.c)
    plan.move(plan.b, None)


def move_after_write_above(plan: Planned) -> None:
    plan.write(plan.a)
    plan.move(plan.b, None)


def write_after_move(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.write(plan.b)


def write_after_move_of_its_container(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.write(plan.c)


def write_beside_a_move(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.write(plan.d)


def move_into_what_was_moved(plan: Planned) -> None:
    plan.move(plan.a, None, "1-x")
    plan.move(plan.d, plan.a)


def move_of_what_was_left(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.move(plan.a, None, "1-x")


def into_a_new_directory(plan: Planned) -> None:
    plan.builder.create(step(Kind.PROJECT, "jp-c9"), Node(Side.WORKSPACE, None, "", "9-i"), [Put(NEW, plan.home)])
    plan.builder.create(step(Kind.PROJECT, "jp-c8"), Node(Side.WORKSPACE, None, "", "8-h"), [Put(NEW, plan.home)])


def removal_after_its_child_left(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.remove(plan.a)


def removal_after_a_write(plan: Planned) -> None:
    plan.write(plan.d)
    plan.remove(plan.d)


def move_to_what_was_freed(plan: Planned) -> None:
    freed = plan.remove(plan.d)
    plan.builder.move(step(Kind.MOVE), plan.b, None, "", "4-d", [freed])


def aged_after_a_write(plan: Planned) -> None:
    plan.write(plan.d)
    plan.builder.age(step(Kind.AGE), plan.d, ["metadata.json"], 1)


def written_after_it_was_aged(plan: Planned) -> None:
    plan.builder.age(step(Kind.AGE), plan.d, ["metadata.json"], 1)
    plan.write(plan.d)


def from_a_directory_that_was_moved(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.write(plan.home, NEW, plan.b)


def move_out_of_what_was_moved(plan: Planned) -> None:
    plan.move(plan.a, None, "1-x")
    plan.move(plan.b, None)


def removal_below_what_was_moved(plan: Planned) -> None:
    plan.move(plan.b, None)
    plan.remove(plan.c)


def move_of_what_lost_a_directory(plan: Planned) -> None:
    plan.remove(plan.c)
    plan.move(plan.b, None)


def move_of_what_was_aged(plan: Planned) -> None:
    plan.builder.age(step(Kind.AGE), plan.d, ["metadata.json"], 1)
    plan.move(plan.d, None, "4-x")


def file_taken_out_beside_one_that_was_written(plan: Planned) -> None:
    plan.d.files["NOTE.md"] = replace(NEW, name="NOTE.md")
    plan.write(plan.d)
    plan.builder.remove(step(Kind.REMOVE_STALE, unit="extra:NOTE.md"), plan.d, (), ["NOTE.md"])


def file_taken_out_after_it_was_written(plan: Planned) -> None:
    plan.write(plan.d, replace(NEW, name="NOTE.md"))
    plan.builder.remove(step(Kind.REMOVE_STALE, unit="extra:NOTE.md"), plan.d, (), ["NOTE.md"])


def moved_after_a_file_was_taken_out(plan: Planned) -> None:
    plan.builder.remove(step(Kind.REMOVE_STALE, unit="metadata"), plan.d, (), ["metadata.json"])
    plan.move(plan.d, None, "4-x")


STORIES: dict[str, tuple[Callable[[Planned], None], bool]] = {
    "a file is written twice": (same_file, True),
    "two files of one directory": (another_file, False),
    "a file is taken from where it was just written": (from_what_was_written, True),
    "a directory is moved after a file in it was written": (move_after_write, True),
    "a directory is moved after a file further down was written": (move_after_write_below, True),
    "a directory is moved out of one in which a file was written": (move_after_write_above, False),
    "a file is written after its directory was moved": (write_after_move, True),
    "a file is written after a directory around it was moved": (write_after_move_of_its_container, True),
    "a file is written beside a move": (write_beside_a_move, False),
    "a directory is moved into one that was moved": (move_into_what_was_moved, True),
    "a directory is moved after another one left it": (move_of_what_was_left, True),
    "two new directories": (into_a_new_directory, False),
    "a directory is removed after another one left it": (removal_after_its_child_left, True),
    "a directory is removed after a file in it was written": (removal_after_a_write, True),
    "a directory is moved to where another one was removed": (move_to_what_was_freed, True),
    "a file is aged after it was written": (aged_after_a_write, True),
    "a file is written after it was aged": (written_after_it_was_aged, True),
    "a file is taken out after it was written": (file_taken_out_after_it_was_written, True),
    "a file is taken from a directory that was moved": (from_a_directory_that_was_moved, True),
    "a directory is moved out of one that was moved": (move_out_of_what_was_moved, True),
    "a directory is removed below one that was moved": (removal_below_what_was_moved, True),
    "a directory is moved after one in it was removed": (move_of_what_lost_a_directory, True),
    "a directory is moved after a file in it was aged": (move_of_what_was_aged, True),
    "a file is taken out beside one that was written": (file_taken_out_beside_one_that_was_written, False),
    "a directory is moved after a file was taken out": (moved_after_a_file_was_taken_out, True),
}


@pytest.mark.parametrize(("tell", "needed"), STORIES.values(), ids=STORIES)
def test_the_second_step_needs_the_first(tell: Callable[[Planned], None], needed: bool) -> None:
    plan = Planned()
    tell(plan)
    assert plan.needs(1) == (("1",) if needed else ())


def test_steps_are_kept_in_order_and_by_conversation() -> None:
    plan = Planned()
    first, second = plan.write(plan.a), plan.move(plan.d, None, "4-x")
    plan.builder.belongs(second, "jp-c7")
    assert [action.kind for action in plan.builder] == [Kind.PROJECT, Kind.MOVE]
    assert plan.builder.steps_of("jp-c1") == (first, second)
    assert plan.builder.steps_of("jp-c7") == (second,)
    assert plan.builder.steps_of("jp-c8") == ()
    assert plan.builder.before_stale("jp-c7") == (second,)


def test_the_removal_of_a_stale_directory_stands_where_it_is_done() -> None:
    plan = Planned()
    steps = plan.write(plan.a), plan.remove(plan.d), plan.write(plan.a, replace(NEW, digest="newer"))
    assert plan.builder.steps_of("jp-c1") == steps
    assert plan.builder.before_stale("jp-c1") == (steps[0], steps[2])


def test_the_file_that_is_copied_is_expected_as_it_is() -> None:
    """Also one that nobody can read: that isn't nothing."""
    plan = Planned()
    old = plan.home.files["metadata.json"]
    for digest, expected in ((old.digest, old.digest), (None, "")):
        plan.home.files["metadata.json"] = replace(old, digest=digest)
        source = plan.builder.action(plan.write(plan.b, NEW, plan.home)).expect[0]
        assert source == Precondition(plan.home.file("metadata.json"), old.size, old.mtime_ns, expected)


def test_needs_are_named_in_the_order_of_the_steps() -> None:
    plan = Planned()
    steps = [plan.write(plan.a, replace(NEW, name=f"{number}.md")) for number in range(10)]
    moved = plan.builder.move(step(Kind.MOVE), plan.d, None, "", "4-x", (steps[8], steps[1]))
    assert plan.needs(moved) == ("2", "9")


def test_a_step_is_about_its_one_file_or_about_the_directories() -> None:
    plan = Planned()
    file = plan.builder.action(plan.write(plan.a, NEW, plan.home))
    assert (str(file.source), str(file.target)) == ("store:1-a/metadata.json", "workspace:1-a/metadata.json")
    made = step(Kind.PROJECT, "jp-c9")
    whole = plan.builder.action(plan.builder.create(made, Node(Side.WORKSPACE, None, "", "9-i"), [Put(NEW, plan.home)]))
    assert (str(whole.source), str(whole.target)) == ("store:1-a", "workspace:9-i")
    assert whole.expect[-1] == Precondition(whole.target, 0, 0, None)
    fork = plan.builder.create(step(Kind.FORK), Node(Side.STORE, None, "", "8-h"), [Put(NEW, content=b"{}")])
    assert plan.builder.action(fork).source is None
    events = replace(plan.home.files["metadata.json"], name="events.json")
    plan.home.files["events.json"] = events
    puts = [Put(NEW, content=b"{}"), Put(events, plan.home)]
    fork = plan.builder.create(step(Kind.FORK), Node(Side.STORE, None, "", "7-g"), puts)
    assert str(plan.builder.action(fork).source) == "store:1-a"


def test_what_a_step_expects_where_it_writes() -> None:
    """Nothing, the file that is there, or one that nobody can read; that isn't nothing."""
    plan = Planned()
    new = plan.builder.action(plan.write(plan.d, replace(NEW, name="NOTE.md")))
    assert new.expect == (Precondition(plan.d.file("NOTE.md"), 0, 0, None),)
    plan.a.files["metadata.json"] = replace(NEW, digest=None)
    (expected,) = plan.builder.action(plan.write(plan.a, replace(NEW, digest="newer"))).expect
    assert (expected.digest, expected.absent) == ("", False)


def test_a_step_says_how_many_bytes_it_writes_or_takes_away() -> None:
    plan = Planned()
    size = plan.d.files["metadata.json"].size
    assert plan.builder.action(plan.write(plan.a)).bytes == NEW.size
    assert plan.builder.action(plan.move(plan.b, None)).bytes == 0
    assert plan.builder.action(plan.remove(plan.d)).bytes == size


def test_of_a_directory_that_stays_only_what_is_named_goes() -> None:
    plan = Planned()
    plan.d.files["NOTE.md"] = replace(NEW, name="NOTE.md")
    index = plan.builder.remove(step(Kind.REMOVE_STALE, unit="extra:NOTE.md"), plan.d, (), ["NOTE.md"])
    action = plan.builder.action(index)
    assert [expect.place.path for expect in action.expect] == ["4-d/NOTE.md"]
    assert list(plan.d.files) == ["metadata.json"]


def test_a_file_that_was_aged_has_the_older_time_from_then_on() -> None:
    plan = Planned()
    plan.builder.age(step(Kind.AGE), plan.d, ["metadata.json"], 1)
    assert plan.d.files["metadata.json"].mtime_ns == 1
    moved = plan.builder.action(plan.move(plan.d, None, "4-x"))
    assert moved.expect[0].mtime_ns == 1
    assert moved.expect[-1] == Precondition(moved.target, 0, 0, None)


def test_a_move_names_the_conversations_below_and_expects_its_place_to_be_free() -> None:
    plan = Planned()
    action = plan.builder.action(plan.move(plan.b, plan.d))
    assert action.source == Place(Side.WORKSPACE, "1-a/conversations/2-b")
    assert action.target == Place(Side.WORKSPACE, "4-d/conversations/2-b")
    assert action.touches == ("jp-c1", "jp-c3")
    assert [expect.place for expect in action.expect if expect.absent] == [action.target]
    assert plan.c.path == "4-d/conversations/2-b/conversations/3-c"


def test_a_file_that_is_there_with_the_same_time_is_expected_but_not_written() -> None:
    plan = Planned()
    there = plan.d.files["metadata.json"]
    action = plan.builder.action(plan.write(plan.d, there))
    assert (action.writes, action.bytes) == ((), 0)
    assert [(expect.place.path, expect.digest) for expect in action.expect] == [("4-d/metadata.json", there.digest)]


def test_a_file_that_goes_is_expected_as_it_is() -> None:
    plan = Planned()
    index = plan.builder.write(step(Kind.PROJECT, unit="stream"), plan.d, [], removes=["metadata.json"])
    action = plan.builder.action(index)
    assert action.removes == (Place(Side.WORKSPACE, "4-d/metadata.json"),)
    assert [expect.absent for expect in action.expect] == [False]
    assert plan.d.files == {}


def test_a_removed_directory_is_expected_as_it_is_and_lies_nowhere_any_more() -> None:
    plan = Planned()
    action = plan.builder.action(plan.remove(plan.c))
    assert [expect.place.path for expect in action.expect] == [f"{action.target.path}/metadata.json"]
    assert set(plan.a.subtree()) == {plan.b}


def test_a_directory_goes_only_beside_the_one_that_stays_where_that_is_by_then() -> None:
    plan = Planned()
    moved = plan.move(plan.b, None)
    written = plan.write(plan.b)
    stays = [(plan.b, "metadata.json")]
    removed = plan.builder.remove(step(Kind.REMOVE_STALE), plan.d, (), stays=stays)
    action = plan.builder.action(removed)
    assert {plan.builder.action(index).id for index in (moved, written)} <= set(action.needs)
    assert [str(each.place) for each in action.inside] == ["workspace:4-d/metadata.json"]
    assert [str(each.place) for each in action.beside] == ["workspace:2-b/metadata.json"]
    assert action.beside[0].digest == NEW.digest
    assert str(removed) in plan.needs(plan.move(plan.b, plan.a, "2-c"))


def action(number: int, needs: set[int]) -> Action:
    return Action(
        id=str(number),
        kind=Kind.MOVE,
        conversation="jp-c1",
        title=None,
        unit="conversation",
        reason=Reason.LAYOUT,
        target=Place(Side.STORE, "1-a"),
        needs=tuple(str(need) for need in sorted(needs)),
    )


@st.composite
def plans(draw: st.DrawFn) -> list[Action]:
    """Plans in which every action needs some of those before it."""
    count = draw(st.integers(0, 12))
    return [action(at, draw(st.sets(st.integers(0, at - 1))) if at else set()) for at in range(count)]


@given(plans(), st.sets(st.integers(0, 11)))
def test_what_is_withheld_takes_along_all_that_needs_it_and_nothing_else(
    actions: list[Action], refused: set[int]
) -> None:
    out = withheld(actions, {str(number) for number in refused})
    for each in actions:
        expected = int(each.id) in refused or not out.isdisjoint(each.needs)
        assert (each.id in out) is expected


@given(plans(), st.sets(st.integers(0, 11)))
def test_renumbering_keeps_order_and_needs(actions: list[Action], left_out: set[int]) -> None:
    kept = [each for each in actions if int(each.id) not in left_out]
    numbered = renumbered(kept)
    assert [each.id for each in numbered] == [str(number) for number in range(1, len(kept) + 1)]
    before = {each.id: new.id for each, new in zip(kept, numbered, strict=True)}
    for each, new in zip(kept, numbered, strict=True):
        assert list(new.needs) == [before[need] for need in each.needs if need in before]
        assert replace(new, id=each.id, needs=each.needs) == each


def test_a_move_names_the_conversations_that_it_touches_in_their_order() -> None:
    numbers = range(10, 22)
    nodes = nodes_of(
        here("1-a  metadata 09:00", *(f"1-a/conversations/{number}-x  metadata 09:00" for number in numbers))
    )
    builder = PlanBuilder()
    index = builder.move(step(Kind.MOVE), nodes["1-a"], None, "", "1-b")
    assert builder.action(index).touches == ("jp-c1", *(f"jp-c{number}" for number in numbers))

"""Two versions in one: by the ids of their operations (docs/design/formats/leslie.md#order)."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats.leslie.document import Document, ObjectivesDocument, read_objectives, read_relations
from reconcile.formats.leslie.rebuild import rebuild
from reconcile.formats.leslie.replay import replay
from reconcile.formats.leslie.union import Merged, conflicting_sides, merge, merge_marked, merge_objectives
from reconcile.model.snapshot import Fault
from tests.support.formats.leslie import Leslie, Step, as_bytes, stories

if TYPE_CHECKING:
    from collections.abc import Callable


def merged(ours: bytes, theirs: bytes) -> Merged:
    first, second = read_relations(ours), read_relations(theirs)
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    return merge(first, second)


def value_of(result: Merged) -> dict[str, Any]:
    assert result.conflicts == ()
    assert result.content is not None
    value: dict[str, Any] = json.loads(result.content)
    return value


def log(content: bytes) -> list[str]:
    return [each["id"] for each in json.loads(content)["operations"]]


@given(stories(12), stories(12), stories(12), st.integers(0, 100))
def test_everything_of_both_and_each_in_its_order(
    before: list[Step], here: list[Step], there: list[Step], later: int
) -> None:
    base = Leslie().play(before)
    ours = base.continued("a", 0).play(here).relations_file()
    theirs = base.continued("b", later).play(there).relations_file()
    value = value_of(merged(ours, theirs))
    ids = [each["id"] for each in value["operations"]]
    for side in (ours, theirs):
        assert [each for each in ids if each in log(side)] == log(side)
        assert json.loads(side)["threads"].keys() <= value["threads"].keys()
    assert set(ids) == {*log(ours), *log(theirs)}
    assert len(set(ids)) == len(ids)
    assert value["metadata"]["thread_count"] == len(value["threads"])
    assert value_of(merged(theirs, ours)) == value
    made = read_relations(as_bytes(value))
    assert isinstance(made, Document)
    assert made.violations == ()
    assert rebuild(made, replay(made), made.threads).differences == ()


@given(stories(12), stories(12))
def test_one_side_that_has_not_moved(before: list[Step], here: list[Step]) -> None:
    base = Leslie().play(before)
    ours = base.continued("a", 0).play(here).relations_file()
    assert merged(ours, base.relations_file()).content == ours
    assert merged(base.relations_file(), ours).content == ours
    assert merged(ours, ours).content == ours


def parted() -> tuple[Leslie, Leslie]:
    base = Leslie().play([("spawn", 0, 0, 1)])
    return base.continued("a", 0), base.continued("b", 3)


def test_the_same_id_with_another_content() -> None:
    ours, theirs = parted()
    theirs.operations[0]["params"]["intent"] = "Something else"
    result = merged(ours.relations_file(), theirs.relations_file())
    assert result == Merged(None, ("operation op-0001: two different ones",))


def test_another_order_of_the_same() -> None:
    ours, theirs = parted()
    ours.play([("inject", 0, 0, 0)] * 2)
    theirs.operations[:] = ours.operations[::-1]
    result = merged(ours.relations_file(), theirs.relations_file())
    assert result.conflicts == ("operations: the same ones in a different order",)


def test_a_title_that_no_operation_explains_is_for_a_person() -> None:
    ours, theirs = parted()
    theirs.threads["thread-00000000"]["title"] = "By hand"
    result = merged(ours.relations_file(), theirs.relations_file())
    (conflict,) = result.conflicts
    assert conflict.startswith("thread-00000000: title ")
    assert conflict.endswith(' and "By hand"')
    ours.threads["thread-00000000"]["title"] = "By hand"
    ours.operations[0]["params"]["intent"] = theirs.operations[0]["params"]["intent"]
    assert merged(ours.relations_file(), theirs.relations_file()).conflicts == ()


def test_other_versions_of_the_schema() -> None:
    ours, theirs = parted()
    result = merged(ours.relations_file(), theirs.relations_file(version="2.0"))
    assert result.conflicts == ("version: 1.0 and 2.0",)


def test_statuses_follow_from_the_united_log() -> None:
    ours, theirs = parted()
    ours.play([("lifecycle", 0, 0, 0)])
    theirs.play([("lifecycle", 0, 0, 0), ("lifecycle", 0, 1, 0), ("lifecycle", 0, 2, 0)])
    value = value_of(merged(ours.relations_file(), theirs.relations_file()))
    assert value["threads"]["thread-00000000"]["status"] == "completed"


def test_a_spawn_comes_before_what_names_its_thread() -> None:
    ours, theirs = parted()
    ours.spawn(0, 0, 1)
    new = next(reversed(ours.threads))
    theirs.clock = 0
    theirs.log("reference", ref_id="ref-1", from_id="thread-00000000", to_id=new, scope=[], binding="live")
    value = value_of(merged(ours.relations_file(), theirs.relations_file()))
    assert [each["command"] for each in value["operations"]] == ["spawn", "spawn", "reference"]
    assert value["relations"]["thread-00000000"]["references_to"] == [new]


def test_what_the_log_does_not_carry_is_that_of_the_newer_record() -> None:
    ours, theirs = parted()
    ours.play([("session", 0, 1, 0)])
    theirs.clock += 1000
    theirs.play([("session", 0, 2, 0)])
    value = value_of(merged(ours.relations_file(), theirs.relations_file()))
    assert value["threads"]["thread-00000000"]["session_id"] == "session 2"


def marked(ours: bytes, theirs: bytes, base: bytes = b"") -> bytes:
    """As ``git merge`` leaves two files that differ as a whole; with a base as in its diff3 style."""
    middle = b"||||||| base\n" + base if base else b""
    return b"<<<<<<< HEAD\n" + ours + middle + b"=======\n" + theirs + b">>>>>>> other\n"


def test_case_18_conflict_markers() -> None:
    ours, theirs = parted()
    ours.spawn(1, 0, 1)
    theirs.spawn(1, 0, 2)
    sides = ours.relations_file(), theirs.relations_file()
    for content in (marked(*sides), marked(*sides, parted()[0].relations_file())):
        assert conflicting_sides(content) == sides
        result = merge_marked(content)
        assert isinstance(result, Merged)
        assert value_of(result)["threads"].keys() == {*ours.threads, *theirs.threads}
        children = value_of(result)["relations"]["thread-00000000"]["children"]
        assert children == [*ours.relations["thread-00000000"]["children"], list(theirs.threads)[-1]]


def test_markers_that_leave_no_two_files() -> None:
    ours = parted()[0].relations_file()
    for content in (ours, marked(ours, b"{"), marked(b"{", ours)):
        assert isinstance(merge_marked(content), Fault)


def objectives(change: Callable[[dict[str, Any]], None] = lambda _: None) -> ObjectivesDocument:
    value = json.loads(parted()[0].objectives_file())
    change(value)
    found = read_objectives(as_bytes(value))
    assert isinstance(found, ObjectivesDocument)
    return found


def test_objectives_of_both() -> None:
    def add(value: dict[str, Any]) -> None:
        new = deepcopy(value["objectives"]["obj-00000001"]) | {"id": "obj-new", "thread_ids": []}
        value["objectives"]["obj-new"] = new

    threads = parted()[0].threads
    value = value_of(merge_objectives(objectives(), objectives(add), threads))
    assert list(value["objectives"]) == ["obj-00000001", "obj-00000002", "obj-new"]
    assert value["metadata"]["objective_count"] == 3
    assert value["objectives"]["obj-00000001"]["thread_ids"] == ["thread-00000000"]


def test_an_objective_with_two_titles() -> None:
    def rename(value: dict[str, Any]) -> None:
        value["objectives"]["obj-00000001"]["title"] = "Another"

    result = merge_objectives(objectives(), objectives(rename), {})
    assert result.conflicts == ('obj-00000001: title "Do obj-00000001" and "Another"',)

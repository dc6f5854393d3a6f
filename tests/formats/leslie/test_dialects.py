"""The design text's dialect beside the program's (docs/design/formats/leslie.md#dialects), and senseless operations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.leslie.checks.finding import Kind
from reconcile.formats.leslie.checks.findings import examine, mend
from reconcile.formats.leslie.checks.input import File, Found, ThreadDirectory
from reconcile.formats.leslie.log.document import RELATIONS, Document, read_relations
from reconcile.formats.leslie.log.replay import Replayed, replay
from tests.support.leslie import Leslie, Step, as_bytes, read

FIRST, SECOND = "thread-00000000", "thread-9e3779b1"
ROOT: Step = ("spawn", 0, 0, 1)


def record(name: str, parent: str | None, status: str = "active", **more: Any) -> dict[str, Any]:
    found = {"id": name, "title": f"Do {name}", "objective": "A text of its own", "created_at": "2026-02-08T15:30:00Z"}
    return {**found, "status": status, "parent_id": parent, "storage_path": f".leslie/threads/{name}/", **more}


def entry(**lists: list[str]) -> dict[str, list[str]]:
    return {name: lists.get(name, []) for name in ("children", "references_to", "referenced_by", "depends_on")}


def operation(number: int, command: str, **params: Any) -> dict[str, Any]:
    moment = f"2026-02-08T16:{number:02}:00Z"
    return {"id": f"op_{number:03}", "timestamp": moment, "command": command, "operator": "user", "params": params}


def born(**more: Any) -> dict[str, Any]:
    """The spawn of the draft: the first operation of every log here."""
    return operation(1, "spawn", parent_id="root", child_id="child", objective="Fix it", **more)


def older(operations: list[dict[str, Any]], relations: dict[str, Any], child: dict[str, Any] | None = None) -> Found:
    threads = {"root": record("root", None), "child": child or record("child", "root")}
    value = {
        "version": "1.0",
        "metadata": {"last_updated": "2026-02-08T17:00:00Z", "thread_count": 2},
        "threads": threads,
        "operations": operations,
        "relations": relations,
    }
    return Found({RELATIONS: File(as_bytes(value))}, dict.fromkeys(threads, ThreadDirectory()))


def words(found: Found) -> list[str]:
    """What is wrong, without the notes that every file of the older dialect gets."""
    return [each.found for each in examine(found) if each.kind not in (Kind.DIALECT, Kind.UNSPAWNED)]


def replayed(found: Found) -> Replayed:
    document = read_relations(found.file(RELATIONS).content or b"")
    assert isinstance(document, Document)
    return replay(document)


SHARED = {"root": entry(children=["child"], referenced_by=["child"]), "child": entry(references_to=["root"])}
"""What follows from a spawn that shares assets."""
BARE = {"root": entry(children=["child"]), "child": entry()}


@pytest.mark.parametrize(
    ("spawn", "stored", "expected"),
    [
        (born(shared_assets=["asset_001"]), SHARED, []),
        (born(shared_assets=[]), BARE, []),
        (born(shared_assets=["asset_001"]), BARE, ["root: referenced_by + child", "child: references_to + root"]),
        # The example of the draft skill, one-sided: tolerated, and written as it should be.
        (
            born(shared_assets=[]),
            {"root": entry(children=["child"]), "child": entry(references_to=["root"], depends_on=["root"])},
            ["root: referenced_by + child", "child: depends_on root"],
        ),
        (
            born(shared_assets=[]),
            {"root": entry(children=["child"], referenced_by=["child"]), "child": entry()},
            ["child: references_to + root"],
        ),
        (born(depends_on=["root"]), {**BARE, "child": entry(depends_on=["root"])}, []),
    ],
)
def test_what_a_spawn_of_the_older_dialect_means(
    spawn: dict[str, Any], stored: dict[str, Any], expected: list[str]
) -> None:
    found = older([spawn], stored)
    assert words(found) == expected
    _, after = mend(found)
    assert [each for each in words(after) if "depends_on" not in each] == []


@pytest.mark.parametrize(
    ("operations", "status", "notes"),
    [
        ([operation(2, "freeze", thread_id="child", reason="done")], "frozen", 0),
        ([operation(2, "freeze", thread_id="child"), operation(3, "archive", thread_id="child")], "archived", 0),
        ([operation(2, "archive", thread_id="child"), operation(3, "freeze", thread_id="child")], "frozen", 1),
        ([operation(2, "freeze", thread_id="child"), operation(3, "freeze", thread_id="child")], "frozen", 1),
        ([operation(2, "update", thread_id="child", status="archived")], "archived", 0),
        ([operation(2, "freeze", thread_id="root")], "active", 0),
    ],
)
def test_commands_of_the_older_dialect(operations: list[dict[str, Any]], status: str, notes: int) -> None:
    found = older([born(), *operations], BARE, record("child", "root", status))
    assert len(replayed(found).notes) == notes
    assert len([each for each in words(found) if "status" in each and "child" in each]) == 0
    assert ("root: status active -> frozen" in words(found)) == (operations[0]["params"]["thread_id"] == "root")


@pytest.mark.parametrize("key", ["", "fields", "changes", "updates"])
def test_an_update_sets_fields(key: str) -> None:
    fields = {"title": "New", "tags": ["a"], "parent_id": None}
    params = {key: fields} if key else fields
    found = older([born(), operation(2, "update", thread_id="child", **params)], BARE)
    assert words(found) == [
        "root: children - child",
        "child: parent_id root -> null",
        'child: title "Do child" -> New',
        "child: tags null -> [a]",
    ]
    _, after = mend(found)
    child = json.loads(after.file(RELATIONS).content or b"")["threads"]["child"]
    assert (child["title"], child["tags"], child["parent_id"]) == ("New", ["a"], None)


def test_an_update_moves_to_another_parent() -> None:
    moved = operation(3, "update", thread_id="third", parent_id="child")
    spawn = operation(2, "spawn", parent_id="root", child_id="third", objective="More")
    found = older([born(), spawn, moved], BARE)
    relations = replayed(found).relations
    assert (relations["root"]["children"], relations["child"]["children"]) == (["child"], ["third"])


NONSENSE = [
    ("spawn", {"thread_id": FIRST, "parent_id": None}, "it spawns a thread that is there already"),
    ("spawn", {}, "it spawns no thread"),
    ("lifecycle", {"thread_id": "thread-x", "action": "done"}, "it names the thread thread-x, which there isn't"),
    ("reference", {"to_id": FIRST}, "it names no thread"),
    ("lifecycle", {"thread_id": FIRST, "action": "frobnicate"}, "the action 'frobnicate' is not known"),
    ("lifecycle", {"thread_id": FIRST}, "it says no action"),
    ("transfer", {"thread_id": FIRST}, "it says no direction"),
    ("transfer", {"thread_id": FIRST, "direction": "up"}, "the direction 'up' is not known"),
]


@pytest.mark.parametrize(("command", "params", "expected"), NONSENSE)
def test_operations_that_make_no_sense(command: str, params: dict[str, Any], expected: str) -> None:
    played = Leslie().play([ROOT])
    played.log(command, **params)
    (finding,) = (each for each in examine(read(played)) if each.kind is Kind.HOLE)
    assert finding.found.startswith(f"operation op-0002: {expected}")


def test_a_thread_that_no_operation_spawned_and_that_some_changed() -> None:
    played = Leslie().play([ROOT, ("spawn", 1, 0, 1), ("lifecycle", 0, 2, 0), ("transfer", 1, 1, 1)])
    del played.operations[0]
    played.threads[FIRST]["status"] = "suspended"
    played.objectives["obj-00000001"]["status"] = "active"
    state = next(each for each in examine(read(played)) if each.kind is Kind.STATE)
    assert (state.found, state.repair and state.repair.on_request) == (
        f"{FIRST}: status suspended -> completed",
        "the log doesn't cover the whole of it",
    )


def test_a_thread_set_up_by_hand_stands_where_it_is() -> None:
    played = Leslie().play([ROOT, ("spawn", 1, 0, 1), ("spawn", 2, 0, 1)])
    del played.operations[1]  # the second one's spawn
    found = read(played)
    assert [each.kind for each in examine(found)] == [Kind.UNSPAWNED]
    played.relations[FIRST]["children"].reverse()
    assert [each.kind for each in examine(read(played))] == [Kind.UNSPAWNED]


def test_what_has_the_wrong_type_is_no_id() -> None:
    played = Leslie().play([ROOT])
    played.operations[0]["params"]["parent_id"] = 7
    played.operations.append({"id": 3, "timestamp": None, "command": None, "operator": "user", "params": []})
    document = read_relations(played.relations_file(relations=[]))
    assert isinstance(document, Document)
    assert document.relations == {}
    assert [note.operation for note in replay(document).notes] == ["without an id"]

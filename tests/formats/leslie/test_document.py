"""Control files as documents: what the program rejects, both dialects, and senseless operations.

See docs/design/formats/leslie.md#dialects.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.leslie.checks.examine import examine, repair_all
from reconcile.formats.leslie.checks.model import File, Kind, LeslieTree, ThreadDirectory
from reconcile.formats.leslie.document import (
    RELATIONS,
    Dialect,
    Document,
    dotted,
    is_safe,
    is_time,
    objectives_violations,
    read_relations,
    relations_violations,
    unknown_keys,
)
from reconcile.formats.leslie.replay import Replayed, replay
from tests.support.formats.leslie import Leslie, Step, as_bytes, read

TIMES = [
    ("2026-02-08T15:30:00.000Z", True),
    ("2026-02-08T15:30:00Z", True),
    ("2026-02-08T15:30Z", True),
    ("2026-02-08T15:30:00.1234567890123Z", True),
    ("2024-02-29T00:00:00Z", True),
    ("2000-02-29T00:00:00Z", True),
    ("1900-02-29T00:00:00Z", False),
    ("2025-02-29T00:00:00Z", False),
    ("2026-04-31T00:00:00Z", False),
    ("2026-02-08T24:00:00Z", False),
    ("2026-02-08T15:30:00+00:00", False),
    ("2026-02-08T15:30:00", False),
    ("2026-02-08 15:30:00Z", False),
    ("2026-02-08T15:30:00z", False),
    ("2026-02-08T15:30:00.Z", False),
    ("2026-02-08T15:30:00Z\n", False),
    ("٢٠٢٦-02-08T15:30:00Z", False),
]


@pytest.mark.parametrize(("text", "accepted"), TIMES)
def test_times(text: str, accepted: bool) -> None:
    assert is_time(text) is accepted


def history() -> dict[str, Any]:
    played = Leslie().play([("spawn", 0, 0, 1), ("spawn", 1, 0, 2), ("lifecycle", 0, 0, 0)])
    value: dict[str, Any] = json.loads(played.relations_file())
    return value


FIRST = "thread-00000000"
WRONG: list[tuple[str, list[str | int], Any, str]] = [
    ("tags that are null", ["threads", FIRST, "tags"], None, "null (expected an array of texts)"),
    ("no executor", ["threads", FIRST, "executor"], ..., "missing (expected one of human, agent, system)"),
    ("an empty title", ["threads", FIRST, "title"], "", 'the text "" (expected a text that isn\'t empty)'),
    ("an unknown status", ["threads", FIRST, "status"], "paused", 'the text "paused" (expected one of active, '),
    ("no parent", ["threads", FIRST, "parent_id"], ..., "missing (expected the id of a thread, or null)"),
    ("a session that is null", ["threads", FIRST, "session_id"], None, "null (expected a text)"),
    ("a zone", ["operations", 0, "timestamp"], "2026-02-08T12:00:00+00:00", "(expected a time in UTC such as"),
    ("no parameters", ["operations", 1, "params"], [], "a JSON array (expected an object)"),
    ("an operation that is none", ["operations", 1], 3, "a number (expected an object)"),
    ("another operator", ["operations", 0, "operator"], True, "true (expected one of user, system, agent"),
    ("a number among children", ["relations", FIRST, "children"], ["a", 1], "[1]: a number (expected a text)"),
    ("half of a thread", ["metadata", "thread_count"], 1.5, "the number 1.5 (expected a whole number from 0)"),
    ("less than none", ["metadata", "thread_count"], -1, "the number -1 (expected a whole number from 0)"),
    ("a count as text", ["metadata", "thread_count"], "2", 'the text "2" (expected a whole number from 0)'),
    ("no metadata", ["metadata"], ..., "missing (expected an object)"),
    ("no relations", ["relations"], ..., "missing (expected an object)"),
    ("operations as an object", ["operations"], {}, "a JSON object (expected an array)"),
    ("an empty version", ["version"], "", 'the text "" (expected a text that isn\'t empty)'),
]


@pytest.mark.parametrize(("path", "wrong", "words"), [pytest.param(*row[1:], id=row[0]) for row in WRONG])
def test_one_wrong_value(path: list[str | int], wrong: Any, words: str) -> None:
    value = history()
    container: Any = value
    for part in path[:-1]:
        container = container[part]
    if wrong is ...:
        del container[path[-1]]
    else:
        container[path[-1]] = wrong
    (violation,) = relations_violations(value)
    assert violation.path[: len(path)] == tuple(path)
    assert words in str(violation)
    assert str(violation).startswith(dotted(violation.path))


def test_what_the_program_accepts() -> None:
    value = history()
    value["version"], value["metadata"]["thread_count"] = "9", 77.0
    value["threads"][FIRST] |= {"status": "pending", "id": "another", "session_id": "", "parent_id": ""}
    del value["threads"][FIRST]["tags"]
    value["operations"].append(value["operations"][0])
    assert relations_violations(value) == ()
    assert unknown_keys(value) == ()


def test_every_violation_is_listed() -> None:
    value = history()
    value["threads"][FIRST]["tags"] = None
    value["operations"][0]["timestamp"] = "today"
    del value["relations"][FIRST]["children"]
    assert [dotted(each.path) for each in relations_violations(value)] == [
        f"threads.{FIRST}.tags",
        "operations[0].timestamp",
        f"relations.{FIRST}.children",
    ]
    assert [str(each) for each in relations_violations([])] == ["the file: a JSON array (expected an object)"]


def test_case_27_keys_that_the_program_drops() -> None:
    value = history()
    value["mine"] = 1
    value["metadata"]["mine"] = 1
    value["threads"][FIRST]["mine"] = 1
    value["operations"][0] |= {"mine": 1}
    value["operations"][0]["params"]["mine"] = "survives"
    value["relations"][FIRST]["mine"] = 1
    assert relations_violations(value) == ()
    assert unknown_keys(value) == (
        "metadata.mine",
        f"threads.{FIRST}.mine",
        "operations[0].mine",
        f"relations.{FIRST}.mine",
        "mine",
    )


def test_objectives() -> None:
    value = json.loads(Leslie().objectives_file())
    assert objectives_violations(value) == ()
    value["objectives"]["obj-00000001"]["status"] = "cancelled"
    value["metadata"]["objective_count"] = None
    assert [str(each) for each in objectives_violations(value)] == [
        'objectives.obj-00000001.status: the text "cancelled" (expected one of active, completed)',
        "metadata.objective_count: null (expected a whole number from 0)",
    ]


def test_the_older_dialect_is_no_damage() -> None:
    value = history()
    for record in value["threads"].values():
        del record["executor"], record["updated_at"]
    found = read_relations(as_bytes(value))
    assert isinstance(found, Document)
    assert (found.dialect, found.damage, len(found.violations)) == (Dialect.TEXT, (), 4)
    value["threads"][FIRST]["executor"] = "agent"
    found = read_relations(as_bytes(value))
    assert isinstance(found, Document)
    assert (found.dialect, len(found.damage)) == (Dialect.PROGRAM, 3)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"[]", "a JSON array"),
        (b"{}", "no threads"),
        (b'{"threads": [], "operations": []}', "a JSON array as threads"),
        (b'{"threads": {}}', "no operations"),
        (b'{"threads": {"a": 1}, "operations": []}', "a number as thread a"),
        (b'{"threads": {}, "operations": [null]}', "null as operation 0"),
        (b"", "an empty file"),
    ],
)
def test_what_can_t_be_gone_through(content: bytes, found: str) -> None:
    fault = read_relations(content)
    assert not isinstance(fault, Document)
    assert fault.found == found


@pytest.mark.parametrize(
    ("name", "safe"),
    [(name, True) for name in ("thread-6fefc192", "thread_abc123", "日本", "...")]
    + [(name, False) for name in ("", ".", "..", "a/b", "a\\b", "a\0")],
)
def test_names_of_directories(name: str, safe: bool) -> None:
    assert is_safe(name) is safe


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


def older(
    operations: list[dict[str, Any]], relations: dict[str, Any], child: dict[str, Any] | None = None
) -> LeslieTree:
    threads = {"root": record("root", None), "child": child or record("child", "root")}
    value = {
        "version": "1.0",
        "metadata": {"last_updated": "2026-02-08T17:00:00Z", "thread_count": 2},
        "threads": threads,
        "operations": operations,
        "relations": relations,
    }
    return LeslieTree({RELATIONS: File(as_bytes(value))}, dict.fromkeys(threads, ThreadDirectory()))


def words(found: LeslieTree) -> list[str]:
    """What is wrong, without the notes that every file of the older dialect gets."""
    return [each.found for each in examine(found) if each.kind not in (Kind.DIALECT, Kind.UNSPAWNED)]


def replayed(found: LeslieTree) -> Replayed:
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
    _, after = repair_all(found)
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
    _, after = repair_all(found)
    child = json.loads(after.file(RELATIONS).content or b"")["threads"]["child"]
    assert (child["title"], child["tags"], child["parent_id"]) == ("New", ["a"], None)


def test_an_update_moves_to_another_parent() -> None:
    moved = operation(3, "update", thread_id="third", parent_id="child")
    spawn = operation(2, "spawn", parent_id="root", child_id="third", objective="More")
    found = older([born(), spawn, moved], BARE)
    relations = replayed(found).relations
    assert (relations["root"]["children"], relations["child"]["children"]) == (["child"], ["third"])


NONSENSE = [
    ("spawn", {"thread_id": FIRST, "parent_id": None}, "it spawns a thread that exists already"),
    ("spawn", {}, "it spawns no thread"),
    ("lifecycle", {"thread_id": "thread-x", "action": "done"}, "its thread thread-x does not exist at this point"),
    ("reference", {"to_id": FIRST}, "it has no thread"),
    ("lifecycle", {"thread_id": FIRST, "action": "frobnicate"}, "the action 'frobnicate' is unknown"),
    ("lifecycle", {"thread_id": FIRST}, "it has no action"),
    ("transfer", {"thread_id": FIRST}, "it has no direction"),
    ("transfer", {"thread_id": FIRST, "direction": "up"}, "the direction 'up' is unknown"),
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
        "the log has only a part of it",
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

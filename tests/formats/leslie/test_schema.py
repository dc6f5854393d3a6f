"""What makes the program reject a file: every violation, with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.leslie.log import schema
from reconcile.formats.leslie.log.document import Dialect, Document, is_safe, read_relations
from tests.support.leslie import Leslie, as_bytes

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
    assert schema.is_time(text) is accepted


def history() -> dict[str, Any]:
    played = Leslie().play([("spawn", 0, 0, 1), ("spawn", 1, 0, 2), ("lifecycle", 0, 0, 0)])
    value: dict[str, Any] = json.loads(played.relations_file())
    return value


FIRST = "thread-00000000"
WRONG: list[tuple[str, list[str | int], Any, str]] = [
    ("tags that are null", ["threads", FIRST, "tags"], None, "found null, expected an array of texts"),
    ("no executor", ["threads", FIRST, "executor"], ..., "found nothing, expected one of human, agent, system"),
    ("an empty title", ["threads", FIRST, "title"], "", 'found the text "", expected a text that isn\'t empty'),
    ("an unknown status", ["threads", FIRST, "status"], "paused", 'found the text "paused", expected one of active, '),
    ("no parent", ["threads", FIRST, "parent_id"], ..., "found nothing, expected the id of a thread, or null"),
    ("a session that is null", ["threads", FIRST, "session_id"], None, "found null, expected a text"),
    ("a zone", ["operations", 0, "timestamp"], "2026-02-08T12:00:00+00:00", "expected a time in UTC such as"),
    ("no parameters", ["operations", 1, "params"], [], "found a JSON array, expected an object"),
    ("an operation that is none", ["operations", 1], 3, "found a number, expected an object"),
    ("another operator", ["operations", 0, "operator"], True, "found true, expected one of user, system, agent"),
    ("a number among children", ["relations", FIRST, "children"], ["a", 1], "[1]: found a number, expected a text"),
    ("half of a thread", ["metadata", "thread_count"], 1.5, "found the number 1.5, expected a whole number from 0"),
    ("less than none", ["metadata", "thread_count"], -1, "found the number -1, expected a whole number from 0"),
    ("a count as text", ["metadata", "thread_count"], "2", 'found the text "2", expected a whole number from 0'),
    ("no metadata", ["metadata"], ..., "found nothing, expected an object"),
    ("no relations", ["relations"], ..., "found nothing, expected an object"),
    ("operations as an object", ["operations"], {}, "found a JSON object, expected an array"),
    ("an empty version", ["version"], "", 'found the text "", expected a text that isn\'t empty'),
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
    (violation,) = schema.relations_violations(value)
    assert violation.path[: len(path)] == tuple(path)
    assert words in str(violation)
    assert str(violation).startswith(schema.dotted(violation.path))


def test_what_the_program_accepts() -> None:
    value = history()
    value["version"], value["metadata"]["thread_count"] = "9", 77.0
    value["threads"][FIRST] |= {"status": "pending", "id": "another", "session_id": "", "parent_id": ""}
    del value["threads"][FIRST]["tags"]
    value["operations"].append(value["operations"][0])
    assert schema.relations_violations(value) == ()
    assert schema.unknown_keys(value) == ()


def test_every_violation_is_listed() -> None:
    value = history()
    value["threads"][FIRST]["tags"] = None
    value["operations"][0]["timestamp"] = "today"
    del value["relations"][FIRST]["children"]
    assert [schema.dotted(each.path) for each in schema.relations_violations(value)] == [
        f"threads.{FIRST}.tags",
        "operations[0].timestamp",
        f"relations.{FIRST}.children",
    ]
    assert [str(each) for each in schema.relations_violations([])] == [
        "the file: found a JSON array, expected an object"
    ]


def test_case_27_keys_that_the_program_drops() -> None:
    value = history()
    value["mine"] = 1
    value["metadata"]["mine"] = 1
    value["threads"][FIRST]["mine"] = 1
    value["operations"][0] |= {"mine": 1}
    value["operations"][0]["params"]["mine"] = "survives"
    value["relations"][FIRST]["mine"] = 1
    assert schema.relations_violations(value) == ()
    assert schema.unknown_keys(value) == (
        "metadata.mine",
        f"threads.{FIRST}.mine",
        "operations[0].mine",
        f"relations.{FIRST}.mine",
        "mine",
    )


def test_objectives() -> None:
    value = json.loads(Leslie().objectives_file())
    assert schema.objectives_violations(value) == ()
    value["objectives"]["obj-00000001"]["status"] = "cancelled"
    value["metadata"]["objective_count"] = None
    assert [str(each) for each in schema.objectives_violations(value)] == [
        'objectives.obj-00000001.status: found the text "cancelled", expected one of active, completed',
        "metadata.objective_count: found null, expected a whole number from 0",
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
        (b"{}", "nothing as threads"),
        (b'{"threads": [], "operations": []}', "a JSON array as threads"),
        (b'{"threads": {}}', "nothing as operations"),
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

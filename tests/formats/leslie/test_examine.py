"""The failures of docs/design/formats/leslie.md#failures, what mends each, and that nothing read is ever a crash."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconcile.formats.leslie.checks.examine import examine, repair_all
from reconcile.formats.leslie.checks.model import (
    File,
    Kind,
    Leftover,
    LeslieTree,
    Make,
    Remove,
    Rewrite,
    Severity,
    ThreadDirectory,
    after,
)
from reconcile.formats.leslie.checks.records import cycles
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS, Document, read_relations
from reconcile.formats.leslie.rebuild import collation_key
from reconcile.formats.leslie.union import merge
from tests.support.formats.leslie import STANDARD, Leslie, Step, as_bytes, damaged, read, stories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.formats.leslie.checks.model import Finding

FIRST, SECOND, THIRD = (f"thread-{(number * 2654435761) % 2**32:08x}" for number in range(3))
ROOT: Step = ("spawn", 0, 0, 1)
CHILD: Step = ("spawn", 1, 0, 1)
OTHER_CHILD: Step = ("spawn", 2, 0, 1)
"""Of the first thread, if there are two."""


def only(found: LeslieTree) -> Finding:
    (finding,) = examine(found)
    return finding


def changed(found: LeslieTree, path: str, *keys: str, to: Any) -> LeslieTree:
    """One value of a control file set by hand; ``...`` takes it out."""
    value = json.loads(found.file(path).content or b"")
    container = value
    for key in keys[:-1]:
        container = container[int(key) if isinstance(container, list) else key]
    if to is ...:
        del container[keys[-1]]
    else:
        container[keys[-1]] = to
    return replace(found, files={**found.files, path: File(as_bytes(value))})


MINIMAL = [
    ("tags that are null", ("threads", FIRST, "tags"), None, "tags: null"),
    ("no executor", ("threads", FIRST, "executor"), ..., "executor: missing"),
    ("no updated_at", ("threads", FIRST, "updated_at"), ..., "updated_at: missing"),
    ("no parent_id", ("threads", SECOND, "parent_id"), ..., "parent_id: missing"),
    ("an empty title", ("threads", FIRST, "title"), "", "title: the text"),
    ("a blank for T", ("threads", FIRST, "created_at"), "2026-02-08 12:00:00.035Z", "created_at: the text"),
    ("a small z", ("threads", FIRST, "created_at"), "2026-02-08T12:00:00.035z", "created_at: the text"),
    ("another zone", ("threads", FIRST, "created_at"), "2026-02-08T14:00:00.035+02:00", "created_at: the text"),
    ("a broken entry", ("relations", FIRST, "children"), None, "children: null"),
    ("no relations", ("relations",), ..., "relations: missing"),
    ("no version", ("version",), ..., "version: missing"),
    ("no count", ("metadata", "thread_count"), "two", "thread_count: the text"),
]


@pytest.mark.parametrize(("keys", "to", "words"), [pytest.param(*row[1:], id=row[0]) for row in MINIMAL])
def test_f1_is_mended_in_place(keys: tuple[str, ...], to: Any, words: str) -> None:
    played = Leslie().play([ROOT, CHILD])
    found = changed(read(played, backup=Leslie().relations_file()), RELATIONS, *keys, to=to)
    finding = only(found)
    assert finding.id == "F1:thread_relations.json"
    assert words in finding.found
    assert finding.next.startswith("repair it in place without loss: ")
    _, whole = repair_all(found)
    assert examine(whole) == ()
    made, before = (json.loads(each) for each in (whole.file(RELATIONS).content or b"", played.relations_file()))
    if "tags" in keys:
        del before["threads"][FIRST]["tags"]
    if "executor" in keys:
        before["threads"][FIRST]["executor"] = "agent"  # the one given at the spawn is in no log
    assert made == before


@pytest.mark.parametrize(
    "keys", [("threads", FIRST, "created_at"), ("operations", "0", "timestamp"), ("metadata", "last_updated")]
)
def test_f1_a_time_without_a_zone_could_be_any(keys: tuple[str, ...]) -> None:
    played = Leslie().play([ROOT])
    found = changed(read(played, backup=played.relations_file()), RELATIONS, *keys, to="2026-02-08T12:00:00.035")
    assert examine(repair_all(found, {"F1:thread_relations.json"})[1]) == ()
    assert (repair_all(found) == ((), found)) == (keys[0] == "operations")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-02:00"])
def test_f1_a_time_that_is_no_time_in_utc(time: str) -> None:
    played = Leslie().play([ROOT])
    found = changed(read(played, backup=played.relations_file()), RELATIONS, "operations", "0", "timestamp", to=time)
    assert only(found).next.startswith("correct it by hand: operations[0].timestamp: ")


@pytest.mark.parametrize(
    ("key", "value"), [("tags", "urgent"), ("tags", {"a": 1}), ("executor", "robot"), ("parent_id", 5)]
)
def test_f1_no_default_replaces_a_value(key: str, value: Any) -> None:
    played = Leslie().play([ROOT])
    played.operations.clear()
    found = changed(read(played, backup=b""), RELATIONS, "threads", FIRST, key, to=value)
    finding = next(iter(examine(found)))
    assert finding.next.startswith(f"correct it by hand: threads.{FIRST}.{key}: ")
    assert finding.repair is None


def referring() -> Leslie:
    """Two threads that no operation spawns, one of which refers to the other."""
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1), ("reference", 0, 1, 1)])
    assert any(entry["references_to"] for entry in played.relations.values())
    played.operations.clear()
    return played


def test_f1_a_cut_in_the_relations_loses_no_reference_that_is_in_no_log() -> None:
    played = referring()
    content = played.relations_file()
    assert repair_all(read(played, relations=content[:-2], backup=b""))[1].file(RELATIONS).content == content
    cut = content[: content.index(b'"relations"') + 20]
    assert repair_all(read(played, relations=cut, backup=content))[1].file(RELATIONS).content == content
    found = read(played, relations=cut, backup=b"")
    finding = only(found)
    assert finding.repair is not None
    assert finding.repair.on_request == "no operation spawns these threads, and no backup has their references"
    assert finding.next.endswith(f"without the references of {FIRST}; without the references of {SECOND}")
    assert repair_all(found) == ((), found)


def test_f1_a_missing_end_is_completed() -> None:
    played = Leslie().play([ROOT])
    content = played.relations_file()
    found = read(played, relations=content.rstrip()[:-1], backup=b"")
    assert only(found).next == "repair it in place without loss: its end completed"
    assert repair_all(found)[1].file(RELATIONS).content == content


@pytest.mark.parametrize(
    ("before", "instead", "words"),
    [
        (b'"Fix it"', b'"Caf\xe9"', "bytes that are not UTF-8 replaced by U+FFFD"),
        (b'"inherit": "none"', b'"inherit": NaN', "NaN replaced by null"),
    ],
)
def test_f1_what_is_no_json_is_replaced_on_request_only(before: bytes, instead: bytes, words: str) -> None:
    played = Leslie().play([("spawn", 0, 0, 2)])
    content = played.relations_file().replace(before, instead)
    found = read(played, relations=content, backup=b"")
    assert only(found).next == f"correct it by hand; or on request repair it in place, with loss: {words}"
    assert repair_all(found) == ((), found)
    assert examine(repair_all(found, {"F1:thread_relations.json"})[1]) == ()


def test_f1_what_stands_behind_the_end() -> None:
    played = Leslie().play([ROOT])
    content = played.relations_file()
    found = read(played, relations=content + b"}\n", backup=b"")
    assert "without the text after its end (1 characters)" in only(found).next
    assert repair_all(found)[1].file(RELATIONS).content == content


def test_f1_no_file_but_a_backup() -> None:
    played = Leslie().play([ROOT])
    found = read(played, backup=played.relations_file())
    gone = replace(found, files={name: file for name, file in found.files.items() if name != RELATIONS})
    assert only(gone).found == "the file is missing, but it has a backup"
    assert repair_all(gone)[1].file(RELATIONS).content == played.relations_file()


def test_f1_a_temporary_file_may_be_the_best_copy() -> None:
    played = Leslie().play([ROOT])
    backup = played.relations_file()
    played.play([CHILD])
    found = read(played, relations=b"", backup=backup)
    name = RELATIONS + ".tmp-1-00000000-0000-4000-8000-000000000000"
    found = replace(found, leftovers={name: Leftover(RELATIONS, 9999.0, File(played.relations_file()))})
    assert only(found).next == f"restore it from {name}, which is whole"
    _, whole = repair_all(found)
    assert whole.file(RELATIONS).content == played.relations_file()
    assert whole.leftovers == {}


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (("metadata",), ...),
        (("objectives", "obj-00000001", "thread_ids"), None),
        (("objectives", "obj-00000001", "status"), "cancelled"),
        (("objectives", "obj-00000001", "created_at"), "2026-02-08T12:00:00.007+00:00"),
    ],
)
def test_f1_objectives(keys: tuple[str, ...], to: Any) -> None:
    played = Leslie().play([ROOT])
    found = changed(read(played), OBJECTIVES, *keys, to=to)
    assert only(found).id == "F1:objectives.json"
    made = repair_all(found)[1].file(OBJECTIVES).content or b""
    before = json.loads(played.objectives_file())
    if keys == ("metadata",):
        before["metadata"]["last_updated"] = max(each["updated_at"] for each in before["objectives"].values())
    assert json.loads(made) == before


def test_f1_a_status_that_nobody_knows_follows_from_the_log_where_that_starts_nothing() -> None:
    played = Leslie().play([ROOT, ("lifecycle", 0, 2, 0)])
    found = changed(read(played), RELATIONS, "threads", FIRST, "status", to="done")
    assert repair_all(found)[1].file(RELATIONS).content == played.relations_file()


def test_f1_what_others_have_put_into_relations_is_kept() -> None:
    played = Leslie().play([ROOT, CHILD])
    found = changed(read(played), RELATIONS, "relations", FIRST, "mine", to=1)
    found = changed(found, RELATIONS, "relations", SECOND, "children", to=None)
    relations = json.loads(repair_all(found)[1].file(RELATIONS).content or b"")["relations"]
    assert relations == {FIRST: {**played.relations[FIRST], "mine": 1}, SECOND: played.relations[SECOND]}


def conflict(ours: bytes, theirs: bytes) -> bytes:
    return b"<<<<<<< a\n" + ours + b"=======\n" + theirs + b">>>>>>> b\n"


def test_f1_objectives_with_conflict_markers() -> None:
    played = Leslie().play([ROOT])
    other = Leslie().play([ROOT])
    other.objectives["obj-new"] = {**other.objectives["obj-00000002"], "id": "obj-new"}
    found = read(played, objectives=conflict(played.objectives_file(), other.objectives_file()))
    assert only(found).next.endswith("both versions of the merge conflict merged")
    assert json.loads(repair_all(found)[1].file(OBJECTIVES).content or b"")["objectives"] == other.objectives
    other.objectives["obj-00000001"]["title"] = "Another"
    found = read(played, objectives=conflict(played.objectives_file(), other.objectives_file()))
    assert only(found).next.startswith("resolve the conflict in the file, then run doctor again: obj-00000001: title ")
    found = read(played, objectives=conflict(played.objectives_file(), b"{"))
    assert only(found).kind is Kind.LOST


def test_f1_objectives_from_their_backup() -> None:
    played = Leslie().play([ROOT])
    found = read(played, objectives=played.objectives_file()[:300])
    found = replace(found, files={**found.files, OBJECTIVES + ".bak": File(Leslie().objectives_file())})
    assert only(found).next == "restore it from objectives.json.bak, which is whole"
    assert json.loads(repair_all(found)[1].file(OBJECTIVES).content or b"")["objectives"] == played.objectives


def test_f2_objectives() -> None:
    played = Leslie().play([ROOT])
    torn = played.objectives_file()[:400]
    finding = only(read(played, objectives=torn))
    assert (finding.id, finding.next) == (
        "F2:objectives.json",
        "run no Leslie command; on request this is recovered: the objectives obj-00000001",
    )
    _, after_all = repair_all(read(played, objectives=torn), {finding.id})
    assert list(json.loads(after_all.file(OBJECTIVES).content or b"")["objectives"]) == ["obj-00000001"]


@pytest.mark.parametrize("name", ["relations", "objectives"])
def test_f2_nothing_is_left(name: str) -> None:
    found = read(Leslie().play([ROOT]), **{name: b"\0\0"}, backup=b"")
    finding = only(found)
    assert finding.repair is None
    assert finding.next == "run no Leslie command; on request this is recovered: nothing"


def test_f2_the_longest_log_of_both() -> None:
    played = Leslie().play([ROOT, CHILD])
    content = played.relations_file()
    longer, shorter = content[: content.rindex(b'"timestamp"')], content[: content.index(b'"operations"')]
    found = read(played, relations=shorter, backup=longer)
    _, whole = repair_all(found, {"F2:thread_relations.json"})
    made = json.loads(whole.file(RELATIONS).content or b"")
    assert [each["id"] for each in made["operations"]] == ["op-0001"]
    assert made["relations"] == played.relations


@pytest.mark.parametrize(
    "torn",
    [
        b"[",
        b"{",
        b'{"threads": {"a"',
        b'{"threads": {"a": {}, 7',
        b'{"version": 1',
        b'{"threads": {}',
        b'"x"',
        b'{"a" 1}',
    ],
)
def test_f2_hardly_anything(torn: bytes) -> None:
    assert only(read(Leslie(), relations=torn, backup=torn)).repair is None


def test_f2_what_is_left_may_not_be_enough() -> None:
    played = Leslie().play([ROOT, CHILD])
    played.threads[FIRST]["status"] = "paused"
    torn = played.relations_file()
    torn = torn[: torn.index(b'"operations"')]
    assert only(read(played, relations=torn, backup=torn)).repair is None


def test_f1_what_nothing_tells_is_for_a_person() -> None:
    played = Leslie().play([ROOT])
    found = changed(read(played), RELATIONS, "threads", FIRST, "status", to="paused")
    found = changed(found, RELATIONS, "threads", FIRST, "tags", to=None)
    finding = only(found)
    assert (finding.id, finding.repair) == ("F1:thread_relations.json", None)
    assert finding.found.endswith(", and 1 more")
    assert finding.next.startswith(f"correct it by hand: threads.{FIRST}.status: ")
    found = replace(found, files={**found.files, RELATIONS + ".bak": File(Leslie().relations_file())})
    assert repair_all(found) == ((), found)
    finding = only(found)
    assert finding.next.endswith(
        "; or on request restore it from thread_relations.json.bak, which loses the operations op-0001 and "
        f"the record of {FIRST}"
    )
    assert repair_all(found, {finding.id})[1].file(RELATIONS).content == Leslie().relations_file()
    found = changed(read(played), OBJECTIVES, "objectives", "obj-00000001", "title", to="")
    assert only(found).next.startswith("correct it by hand: objectives.obj-00000001.title: the text")


@pytest.mark.parametrize("content", [b"[]", b'{"objectives": []}', b'{"objectives": {"a": 1}}', b"\xef\xbb\xbf"])
def test_f1_objectives_that_are_none(content: bytes) -> None:
    found = read(Leslie(), objectives=content)
    backup = {OBJECTIVES + ".bak": File(Leslie().objectives_file())}
    found = replace(found, files={**found.files, **backup})
    assert only(found).next == "restore it from objectives.json.bak, which is whole"


def test_f1_a_conflict_of_which_one_side_is_torn() -> None:
    played = Leslie().play([ROOT])
    content = played.relations_file()
    torn = b"<<<<<<< a\n" + content + b"=======\n" + content[:300] + b"\n>>>>>>> b\n"
    finding = only(read(played, relations=torn, backup=content))
    assert finding.next == "restore it from thread_relations.json.bak, which is whole"


def test_f3_an_emptied_file_whose_backup_has_it_all() -> None:
    played = Leslie().play([ROOT, CHILD, ("lifecycle", 1, 2, 0)])
    found = read(played, relations=Leslie().relations_file(), backup=played.relations_file())
    assert [each.id for each in examine(found)] == [f"F3:{FIRST}", f"F3:{SECOND}"]
    assert examine(found)[0].next.startswith(
        "on request its record and operations are restored from thread_relations.json.bak"
    )
    assert repair_all(found) == ((), found)
    repairs, whole = repair_all(found, {f"F3:{SECOND}"})
    assert len(repairs) == 1
    assert json.loads(whole.file(RELATIONS).content or b"") == json.loads(played.relations_file())
    assert examine(whole) == ()


def test_f3_a_backup_that_contradicts() -> None:
    played = Leslie().play([ROOT, CHILD])
    other = Leslie().play([ROOT])
    other.operations[0]["params"]["intent"] = other.threads[FIRST]["title"] = "Another"
    found = read(played, relations=other.relations_file(), backup=played.relations_file())
    assert [each.id for each in examine(found)] == [f"F3:{SECOND}"]
    assert "on request it is adopted" in only(found).next


def test_f3_many_at_once() -> None:
    found = read(Leslie().play([ROOT]))
    strays = {f"stray-{number}": ThreadDirectory() for number in range(3)}
    found = replace(found, threads={**found.threads, **strays})
    found = changed(found, OBJECTIVES, "objectives", "obj-00000002", "thread_ids", to=list(strays))
    repairs, whole = repair_all(found, {"F3:stray-0", "F3:stray-2"})
    assert len(repairs) == 1
    assert [each.id for each in examine(whole)] == ["F3:stray-1"]


def orphaned(**other: ThreadDirectory) -> LeslieTree:
    found = read(Leslie().play([ROOT]))
    return replace(found, threads={**found.threads, **other})


def test_f3_is_adopted_on_request() -> None:
    transcript = ".meta/transcripts/20260208-1200-Fix-the-build.txt"
    found = orphaned(stray=ThreadDirectory(files=frozenset({transcript, "plan.md"})))
    found = changed(found, OBJECTIVES, "objectives", "obj-00000002", "thread_ids", to=["stray"])
    finding = only(found)
    assert finding.found == (
        "no record of the thread, but a directory with .meta/transcripts/20260208-1200-Fix-the-build.txt, plan.md and "
        "the objective obj-00000002 lists it"
    )
    assert repair_all(found) == ((), found)
    _, whole = repair_all(found, {"F3:stray"})
    assert examine(whole) == ()
    made = json.loads(whole.file(RELATIONS).content or b"")
    operation = made["operations"][-1]
    assert (operation["id"], operation["operator"], operation["command"]) == ("op-stray", "system", "spawn")
    assert operation["params"] == {
        "thread_id": "stray",
        "parent_id": None,
        "intent": "Fix-the-build",
        "objective": "obj-00000002",
        "inherit": "none",
        "inherit_scope": [],
        "recovered": True,
    }
    assert made["threads"]["stray"]["title"] == "Fix-the-build"
    assert list(made["relations"]) == [FIRST, "stray"]


def test_f3_nobody_knows_what_for() -> None:
    assert only(orphaned(stray=ThreadDirectory())).repair is None
    assert examine(orphaned(stray=ThreadDirectory("a file"))) == ()


def test_f3_an_id_that_is_taken() -> None:
    found = changed(orphaned(), RELATIONS, "operations", "0", "id", to="op-stray")
    found = changed(found, OBJECTIVES, "objectives", "obj-00000002", "thread_ids", to=["stray"])
    repair = only(found).repair
    assert repair is not None
    assert b'"op-stray-2"' in after(found, repair.steps[0]).file(RELATIONS).content  # type: ignore[operator]


def test_f4_a_record_without_a_directory() -> None:
    found = replace(read(Leslie().play([ROOT])), threads={})
    finding = only(found)
    assert (finding.id, finding.severity) == (f"F4:{FIRST}", Severity.NOTE)
    (repair,), whole = repair_all(found)
    assert repair.steps == (
        Make(tuple(f"threads/{FIRST}/{name}" for name in ("context/inherited", "context/live", ".meta/transcripts"))),
    )
    assert whole.threads[FIRST].directories == STANDARD
    assert examine(whole) == ()
    assert examine(replace(found, storage=frozenset({f".leslie/threads/{FIRST}"}))) == ()


@pytest.mark.parametrize("what", ["a file", "a symbolic link"])
def test_f4_what_is_no_directory(what: str) -> None:
    found = replace(read(Leslie().play([ROOT])), threads={FIRST: ThreadDirectory(what)})
    finding = only(found)
    assert (finding.id, finding.severity, finding.repair) == (f"F4:{FIRST}", Severity.WARNING, None)
    assert finding.found == f"{what} in the place of a directory"
    found = replace(found, threads={}, blocked=what)
    assert (only(found).id, only(found).found) == ("link:threads", f"{what} in the place of a directory")


def test_f5_in_words() -> None:
    played = Leslie().play([ROOT, CHILD, OTHER_CHILD])
    found = changed(read(played), RELATIONS, "relations", FIRST, "children", to=[THIRD, "thread-x"])
    found = changed(found, RELATIONS, "relations", SECOND, to=...)
    found = changed(found, RELATIONS, "relations", THIRD, "depends_on", to=[])
    assert [each.found for each in examine(found)] == [
        f"{FIRST}: children + {SECOND}",
        f"{FIRST}: children - thread-x",
        f"{SECOND}: + entry (depends_on {FIRST})",
        f"{THIRD}: depends_on + {FIRST}",
    ]
    (repair,), whole = repair_all(found)
    assert len(repair.words) == 4
    assert repair.steps == (Rewrite(RELATIONS, found.file(RELATIONS).content, whole.file(RELATIONS).content or b""),)
    assert whole.file(RELATIONS).content == played.relations_file()


def test_f5_the_order() -> None:
    played = Leslie().play([ROOT, CHILD, OTHER_CHILD])
    turned = dict(reversed(played.relations.items()))
    found = changed(read(played, relations=played.relations_file(relations=turned)), RELATIONS, "version", to="1.0")
    found = changed(found, RELATIONS, "relations", FIRST, "children", to=[THIRD, SECOND])
    assert [each.found for each in examine(found)] == [
        f"{FIRST}: children in the order {SECOND}, {THIRD}",
        "entries in the order of the log",
    ]
    assert repair_all(found)[1].file(RELATIONS).content == played.relations_file()


def test_f5_a_dependency_that_no_operation_explains_is_kept() -> None:
    found = changed(read(Leslie().play([ROOT])), RELATIONS, "relations", FIRST, "depends_on", to=["thread-x"])
    finding = only(found)
    assert (finding.kind, finding.found) == (Kind.UNEXPLAINED, f"{FIRST}: depends_on thread-x")


def test_f6_the_log_wins() -> None:
    played = Leslie().play([ROOT, ("lifecycle", 0, 2, 0)])
    found = changed(read(played), RELATIONS, "threads", FIRST, "status", to="active")
    found = changed(found, RELATIONS, "threads", FIRST, "title", to="By hand")
    assert [each.found for each in examine(found) if each.kind is Kind.STATE] == [
        f"{FIRST}: status active -> completed",
        f'{FIRST}: title "By hand" -> "Übersicht — \\"docs\\" 文档"',
    ]
    assert repair_all(found)[1].file(RELATIONS).content == played.relations_file()


def test_f6_what_would_start_an_agent_is_done_on_request() -> None:
    played = Leslie().play([ROOT])
    found = changed(read(played), RELATIONS, "threads", FIRST, "status", to="suspended")
    finding = only(found)
    assert finding.repair is not None
    assert finding.repair.on_request == "it becomes active, and a running scheduler starts an agent for it"
    assert repair_all(found) == ((), found)
    assert repair_all(found, {finding.id})[1].file(RELATIONS).content == played.relations_file()


def test_f6_a_repair_alone_is_the_same_as_one_that_was_asked_for() -> None:
    played = Leslie().play([ROOT, CHILD])
    found = changed(read(played), RELATIONS, "threads", FIRST, "status", to="suspended")
    found = changed(found, RELATIONS, "threads", SECOND, "status", to="suspended")
    first, second = examine(found)
    assert first.repair is not None
    assert first.repair.words == (f"{FIRST}: status suspended -> active",)
    (step,) = first.repair.steps
    asked = repair_all(found, {first.id})[1]
    assert after(found, step) == asked
    assert [each.id for each in examine(asked)] == [second.id]


def test_f6_where_the_log_has_a_hole_nothing_is_done_by_itself() -> None:
    played = Leslie().play([ROOT, ("lifecycle", 0, 2, 0)])
    played.log("lifecycle", thread_id=FIRST, action="suspend", reason=None)
    kinds = {each.id: each.repair for each in examine(read(played))}
    state = kinds[f"F6:{FIRST}"]
    assert state is not None
    assert state.on_request == "the log has only a part of it"


def test_f7_is_made_again_from_the_log() -> None:
    played = Leslie().play([ROOT, CHILD, OTHER_CHILD, ("lifecycle", 2, 2, 0), ("lifecycle", 1, 2, 0)])
    gone = sorted(played.threads)[1]
    found = changed(read(played), RELATIONS, "threads", gone, to=...)
    assert {each.id for each in examine(found)} == {f"F7:{gone}"}
    _, whole = repair_all(found)
    made = json.loads(whole.file(RELATIONS).content or b"")
    assert list(made["threads"]) == list(played.threads)
    record = played.threads[gone] | {"executor": "agent"}
    record.pop("tags", None)
    assert made["threads"][gone] == record
    asked = replace(found, threads={thread: each for thread, each in found.threads.items() if thread != gone})
    (finding,) = (each for each in examine(asked) if each.id == f"F7:{gone}")
    assert finding.repair is not None
    assert finding.repair.on_request == "its directory is missing too"


def test_f8_an_objective_that_lags() -> None:
    played = Leslie().play([ROOT, CHILD])
    found = changed(read(played), OBJECTIVES, "objectives", "obj-00000001", "thread_ids", to=[SECOND])
    found = changed(found, OBJECTIVES, "objectives", "obj-00000001", "status", to="completed")
    found = changed(found, OBJECTIVES, "metadata", "objective_count", to=9)
    assert [each.found for each in examine(found)] == [
        "obj-00000001: status completed -> active",
        f"obj-00000001: thread_ids + {FIRST}",
        "objective_count 9 -> 2",
    ]
    assert json.loads(repair_all(found)[1].file(OBJECTIVES).content or b"")["objectives"] == played.objectives


def test_f8_threads_of_another_objective_and_twice() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 1, 1)])
    found = changed(read(played), OBJECTIVES, "objectives", "obj-00000001", "thread_ids", to=[FIRST, FIRST])
    found = changed(found, OBJECTIVES, "objectives", "obj-00000002", "thread_ids", to=[FIRST, SECOND])
    assert [each.found for each in examine(found)] == [
        "obj-00000001: thread_ids each once",
        f"obj-00000002: thread_ids - {FIRST}",
    ]


def test_f9_an_objective_that_is_not_there() -> None:
    found = changed(read(Leslie().play([ROOT])), OBJECTIVES, "objectives", "obj-00000001", to=...)
    found = changed(found, OBJECTIVES, "metadata", "objective_count", to=1)
    finding = only(found)
    assert (finding.id, finding.repair) == ("F9:obj-00000001", None)
    assert finding.found == f"the objective obj-00000001 of {FIRST} is missing"
    gone = replace(found, files={RELATIONS: found.files[RELATIONS]})
    assert only(gone).id == "F9:obj-00000001"


def test_f10_parents() -> None:
    played = Leslie().play([ROOT, CHILD])
    played.operations.clear()
    found = changed(read(played), RELATIONS, "threads", FIRST, "parent_id", to=SECOND)
    found = changed(found, RELATIONS, "threads", SECOND, "parent_id", to=FIRST)
    (finding,) = (each for each in examine(found) if each.kind is Kind.TREE)
    assert finding.found == f"the parents form a cycle: {FIRST} > {SECOND} > {FIRST}"
    found = changed(found, RELATIONS, "threads", FIRST, "parent_id", to="thread-x")
    (finding,) = (each for each in examine(found) if each.kind is Kind.TREE)
    assert finding.found == f"{FIRST}: its parent thread-x does not exist"


def test_f11_a_reference_to_what_never_was() -> None:
    played = Leslie().play([ROOT, ("reference", 0, 0, 6)])
    assert played.operations[-1]["params"]["to_id"] == "thread-deadbeef"
    assert examine(read(played)) == ()


def test_f12_the_same_operation_twice() -> None:
    played = Leslie().play([ROOT, ("inject", 0, 0, 0)])
    content = played.relations_file()
    played.operations.append(played.operations[-1])
    found = read(played)
    assert only(found).id == "F12:op-0002"
    assert repair_all(found) == ((), found)
    assert repair_all(found, {"F12:op-0002"})[1].file(RELATIONS).content == content
    played.operations.insert(0, played.operations[-1])
    assert only(read(played)).repair is None


def test_f12_two_operations_with_one_id() -> None:
    played = Leslie().play([ROOT, ("inject", 0, 0, 0), ("inject", 0, 0, 0)])
    played.operations[-1]["id"] = "op-0002"
    finding = only(read(played))
    assert (finding.repair, finding.found) == (None, "op-0002: 2 operations have this id")


@pytest.mark.parametrize(
    ("age", "severity", "removed"),
    [(59.0, Severity.NOTE, 0), (3000.0, Severity.NOTE, 0), (7500.0, Severity.WARNING, 1)],
)
def test_f14_a_temporary_file(age: float, severity: Severity, removed: int) -> None:
    name = OBJECTIVES + ".tmp-1-00000000-0000-4000-8000-000000000000"
    found = replace(read(Leslie()), leftovers={name: Leftover(OBJECTIVES, age, File(b"{"))})
    assert (only(found).id, only(found).severity) == (f"F14:{name}", severity)
    repairs, whole = repair_all(found)
    assert [repair.steps for repair in repairs] == [(Remove(name, b"{"),)] * removed
    assert len(whole.leftovers) == 1 - removed


def test_f15_and_f17_content_of_copies_is_nobody_s_business() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1), ("reference", 1, 0, 0), ("merge", 0, 1, 0)])
    assert examine(read(played)) == ()


def test_ids_that_lead_elsewhere_are_not_followed() -> None:
    content = Leslie().play([ROOT]).relations_file().replace(FIRST.encode(), b"../../x")
    found = LeslieTree({RELATIONS: File(content), OBJECTIVES: read(Leslie()).files[OBJECTIVES]})
    finding = next(each for each in examine(found) if each.kind is Kind.UNSAFE)
    assert finding.severity is Severity.ERROR
    assert not any(isinstance(step, Make) for repair in repair_all(found)[0] for step in repair.steps)


NAMES = st.text(st.sampled_from("abBc-_19.é"), max_size=6)


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3), max_size=8))
def test_cycles_are_found_and_are_cycles(edges: dict[str, list[str]]) -> None:
    found = cycles(edges)
    for cycle in found:
        assert cycle[0] == min(cycle)
        assert all(after in edges[node] for node, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    left = {node: set(others) & edges.keys() for node, others in edges.items()}
    for cycle in found:
        for node in cycle:
            left.pop(node, None)
    # Without the members of those cycles, everything comes to an end.
    while ends := [node for node, others in left.items() if not others & left.keys()]:
        for node in ends:
            del left[node]
    assert left == {}


@given(NAMES, NAMES)
def test_the_collation_is_a_total_order(one: str, other: str) -> None:
    assert (collation_key(one) == collation_key(other)) == (one == other)


def test_the_collation() -> None:
    names = ["b", "B", "a", "A", "_", "-", "1", "aB", "ab", "Thread-B", "thread-a"]
    assert sorted(names, key=collation_key) == ["_", "-", "1", "a", "A", "ab", "aB", "b", "B", "thread-a", "Thread-B"]


@given(stories(12), st.data())
def test_whatever_was_done_to_the_files_it_can_be_told_and_ends(steps: list[Step], data: st.DataObject) -> None:
    played = Leslie().play(steps)
    backup = played.relations_file()
    played.play(data.draw(stories(4)))
    relations, objectives = played.relations_file(), played.objectives_file()
    relations, objectives = (data.draw(damaged(each)) for each in (relations, objectives))
    found = read(played, relations=relations, objectives=objectives, backup=backup)
    if data.draw(st.booleans()):
        found = replace(found, threads=dict(list(found.threads.items())[1:]))
    repairs, whole = repair_all(found)
    assert repair_all(whole) == ((), whole)
    assert whole.backup(RELATIONS) == found.backup(RELATIONS)
    left = [each for each in examine(whole) if each.kind is Kind.DAMAGED and each.place == RELATIONS]
    assert all(each.next.startswith(("correct it by hand", "resolve the conflict in the file")) for each in left)
    wanted = {each.id for each in examine(whole)}
    repairs, asked = repair_all(whole, wanted)
    assert len(repairs) <= 60
    assert repair_all(asked, wanted) == ((), asked)


ANY: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        1e300,
        "",
        "x",
        "active",
        "thread-00000000",
        "2026-02-08T12:00:00.000Z",
        "�",
        "a/b",
        [],
        {},
        ["x"],
        [["x"]],
        [None],
        {"x": {}},
        {"2": 1, "1": []},
    ]
) | st.sampled_from(["spawn", "reference", "lifecycle", "transfer", "update", "freeze", "archive", "done", "frozen"])


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield (*above, key)
        yield from paths(each, (*above, key))


@st.composite
def bent(draw: st.DrawFn, content: bytes) -> bytes:
    """A file in which any value may be something else, be gone, or be there under another key."""
    value = json.loads(content)
    for _ in range(draw(st.integers(0, 5))):
        path = draw(st.sampled_from([*paths(value)]))
        container = value
        for part in path[:-1]:
            container = container[part]
        how = draw(st.sampled_from(["other", "other", "gone", "renamed"]))
        if how == "other":
            container[path[-1]] = draw(ANY.map(deepcopy))
        elif how == "gone":
            del container[path[-1]]
        elif isinstance(container, dict):
            names = ["child_id", "thread_id", "fields", "status", "x", "7", "title", "parent_id", "to_id", "tags"]
            container[draw(st.sampled_from(names))] = container.pop(path[-1])
        if not value:
            break
    return json.dumps(value).encode()


@pytest.mark.long
@given(stories(8), st.data())
def test_whatever_the_values_are_it_can_be_told_and_ends(steps: list[Step], data: st.DataObject) -> None:
    played = Leslie().play([ROOT, CHILD, *steps])
    relations, backup = data.draw(bent(played.relations_file())), data.draw(bent(played.relations_file()))
    found = read(played, relations=relations, objectives=data.draw(bent(played.objectives_file())), backup=backup)
    _, whole = repair_all(found)
    assert repair_all(whole) == ((), whole)
    for finding in (*examine(found), *examine(whole)):
        assert "\n" not in finding.found
        assert len(finding.found) < 2000
        words = finding.repair.words if finding.repair is not None else ()
        assert not [each for each in (finding.found, finding.next, *words) if re.search(r"\bNone\b", each)]
    repair_all(whole, {each.id for each in examine(whole)})
    first, second = (read_relations(each) for each in (relations, backup))
    if isinstance(first, Document) and isinstance(second, Document):
        merged = merge(first, second)
        assert (merged.content is None) == bool(merged.conflicts)

"""The edge cases of docs/design/formats/leslie.md#edge-cases, by number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.leslie.checks.examine import examine, repair_all
from reconcile.formats.leslie.checks.model import (
    File,
    Kind,
    LeslieTree,
    Lock,
    RemoveLock,
    Rewrite,
    Severity,
    ThreadDirectory,
)
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS, Document, read_relations
from reconcile.formats.leslie.replay import Operation, replay
from tests.support.formats.leslie import CORPUS, STANDARD, Leslie, Step, as_bytes, corpus_found, read

if TYPE_CHECKING:
    from reconcile.formats.leslie.checks.model import Finding

FIRST, SECOND, THIRD = (f"thread-{(number * 2654435761) % 2**32:08x}" for number in range(3))
"""The ids that the model gives to the first three threads."""
ROOT: Step = ("spawn", 0, 0, 1)
CHILD: Step = ("spawn", 1, 0, 1)

D01 = b"""{
  "version": "1.0",
  "metadata": {
    "last_updated": "2026-02-08T16:00:00Z",
    "thread_count": 5
  },
  "threads": {
    "thread_abc123": {
      "id": "thread_abc123",
      "title": "Implement login feature",
      "objective": "Build secure OAuth2 login flow",
      "created_at": "2026-02-08T15:30:00Z",
      "status": "active",
      "tags": ["backend", "auth"],
      "parent_id": null,
      "storage_path": ".leslie/threads/thread_abc123/"
    }
  },
  "operations": [
    {
      "id": "op_001",
      "timestamp": "2026-02-08T15:35:00Z",
      "command": "spawn",
      "operator": "user",
      "params": {
        "parent_id": "thread_abc123",
        "child_id": "thread_xyz789",
        "objective": "Fix bug in login",
        "shared_assets": ["asset_001"]
      }
    }
  ],
  "relations": {
    "thread_abc123": {
      "children": ["thread_xyz789"],
      "references_to": [],
      "referenced_by": ["thread_xyz789"],
      "depends_on": []
    }
  }
}"""


def ids(found: LeslieTree, *, notes: bool = True) -> list[str]:
    return [each.id for each in examine(found) if notes or each.severity is not Severity.NOTE]


def only(found: LeslieTree) -> Finding:
    (finding,) = examine(found)
    return finding


def value_of(played: Leslie) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(played.relations_file())
    return value


def document(content: bytes) -> Document:
    found = read_relations(content)
    assert isinstance(found, Document)
    return found


def main(found: LeslieTree) -> bytes | None:
    return found.file(RELATIONS).content


def rewritten(finding: Finding) -> dict[str, Any]:
    """What the repair of a finding makes of the relations file."""
    assert finding.repair is not None
    (step,) = finding.repair.steps
    assert isinstance(step, Rewrite)
    value: dict[str, Any] = json.loads(step.after)
    return value


def test_01_an_intact_workspace() -> None:
    played = Leslie().play([ROOT, CHILD, ("reference", 1, 0, 0), ("lifecycle", 0, 0, 0)])
    assert examine(read(played)) == ()
    assert repair_all(read(played)) == ((), read(played))


def test_02_the_example_of_the_design_text() -> None:
    found = LeslieTree({RELATIONS: File(D01)}, {"thread_abc123": ThreadDirectory()})
    assert [(each.id, each.found) for each in examine(found)] == [
        ("F5:count", "thread_count 5 -> 1"),
        (
            "F7:thread_xyz789",
            "thread_xyz789: + record (active); its tags, its session and an executor given at the spawn are lost",
        ),
        ("unspawned:thread_relations.json", "no operation spawns thread_abc123"),
        (
            "dialect:thread_relations.json",
            "records without executor and updated_at, as in the design text's dialect (not the program's)",
        ),
    ]
    repairs, after = repair_all(found)
    assert [repair.words for repair in repairs] == [("thread_count 5 -> 1",)]
    again = json.loads(main(after) or b"")
    assert again["threads"] == json.loads(D01)["threads"]
    repairs, after = repair_all(found, {"F7:thread_xyz789"})
    made = json.loads(main(after) or b"")
    assert made["threads"]["thread_xyz789"] == {
        "id": "thread_xyz789",
        "title": "Fix bug in login",
        "objective": "Fix bug in login",
        "created_at": "2026-02-08T15:35:00Z",
        "status": "active",
        "parent_id": "thread_abc123",
        "storage_path": ".leslie/threads/thread_xyz789/",
    }
    assert made["metadata"]["thread_count"] == 2
    assert made["relations"]["thread_xyz789"]["references_to"] == ["thread_abc123"]


def test_03_no_relations_at_all() -> None:
    played = Leslie().play([ROOT, CHILD, CHILD, ("reference", 1, 0, 0)])
    found = read(played, relations=played.relations_file(relations={}))
    assert {each.kind for each in examine(found)} == {Kind.RELATIONS}
    repairs, after = repair_all(found)
    assert len(repairs) == 1
    assert main(after) == played.relations_file()
    assert list(json.loads(main(after) or b"")["relations"]) == [FIRST, SECOND, THIRD]


def later_reference() -> Leslie:
    """A reference in the log before the spawn of its target."""
    played = Leslie().play([ROOT, CHILD])
    played.log("reference", ref_id="ref-1", from_id=FIRST, to_id=SECOND, scope=[], binding="live")
    played.operations[1:] = played.operations[:0:-1]
    return played


def test_04_a_reference_before_its_target() -> None:
    played = later_reference()
    assert examine(read(played)) == ()
    played.relations[FIRST]["references_to"].append(SECOND)
    played.relations[SECOND]["referenced_by"].append(FIRST)
    assert [each.found for each in examine(read(played))] == [
        f"{FIRST}: references_to - {SECOND}",
        f"{SECOND}: referenced_by - {FIRST}",
    ]


def test_05_the_same_reference_three_times() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1), ("reference", 1, 0, 0), ("reference", 1, 0, 1)])
    played.play([("reference", 1, 0, 0)])
    assert len(played.operations) == 5
    assert replay(document(played.relations_file())).relations[SECOND]["references_to"] == [FIRST]
    assert examine(read(played)) == ()


def test_06_two_references_that_go_round() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1), ("reference", 0, 1, 0), ("reference", 1, 0, 0)])
    assert len(played.operations) == 3  # the second has been refused
    played.log("reference", ref_id="ref-1", from_id=SECOND, to_id=FIRST, scope=[], binding="live")
    played.relations[SECOND]["references_to"].append(FIRST)
    played.relations[FIRST]["referenced_by"].append(SECOND)
    finding = only(read(played))
    assert (finding.id, finding.repair) == (f"F10:{FIRST}", None)
    assert finding.found == f"the references form a cycle: {FIRST} > {SECOND} > {FIRST}"


def test_07_a_child_refers_to_its_parent() -> None:
    assert examine(read(Leslie().play([ROOT, CHILD, ("reference", 1, 0, 0)]))) == ()


def test_08_approval_of_an_archived_thread() -> None:
    played = Leslie().play([ROOT, ("lifecycle", 0, 2, 0), ("lifecycle", 0, 4, 0), ("transfer", 0, 0, 0)])
    assert played.threads[FIRST]["status"] == "waiting_human"
    finding = only(read(played))
    assert (finding.kind, finding.severity) == (Kind.LAG, Severity.NOTE)
    assert finding.found == "obj-00000001: status completed, but by its threads it is active"


def test_09_a_state_that_could_not_be_reached() -> None:
    played = Leslie().play([ROOT, ("lifecycle", 0, 2, 0)])
    played.log("lifecycle", thread_id=FIRST, action="suspend", reason=None)
    played.touch(FIRST, status="suspended")
    played.objectives["obj-00000001"]["status"] = "active"
    finding = only(read(played))
    assert (finding.id, finding.severity) == ("hole:op-0003", Severity.NOTE)
    assert finding.found == f"operation op-0003: suspend of {FIRST}, which is completed at this point"
    assert replay(document(played.relations_file())).courses[FIRST].fields["status"] == "suspended"


def test_10_pending_is_active() -> None:
    played = Leslie().play([ROOT])
    played.threads[FIRST]["status"] = "pending"
    assert examine(read(played)) == ()


def test_11_times_that_are_not_in_order() -> None:
    played = Leslie().play([ROOT, CHILD])
    played.operations[0]["timestamp"] = played.threads[FIRST]["created_at"] = "2026-02-08T12:00:00.900Z"
    played.threads[FIRST]["updated_at"] = "2026-02-08T12:00:00.900Z"
    assert examine(read(played)) == ()


@pytest.mark.parametrize(
    ("updated", "kinds"),
    [("2030-01-01T00:00:00.000Z", []), ("2026-02-08T11:59:59.900Z", []), ("2026-02-08T11:59:00Z", [Kind.CLOCK])],
)
def test_12_updated_at_beside_the_log(updated: str, kinds: list[Kind]) -> None:
    played = Leslie().play([ROOT])
    played.threads[FIRST]["updated_at"] = updated
    assert [each.kind for each in examine(read(played))] == kinds


def test_13_no_tags_and_missing_tags() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1)])
    played.threads[FIRST]["tags"] = []
    played.threads[SECOND].pop("tags")
    found = read(played, relations=played.relations_file(relations={}))
    assert {each.kind for each in examine(found)} == {Kind.RELATIONS}
    made = json.loads(main(repair_all(found)[1]) or b"")["threads"]
    assert (made[FIRST]["tags"], "tags" in made[SECOND]) == ([], False)


def test_14_where_the_directory_is() -> None:
    played = Leslie().play([ROOT])
    played.threads[FIRST]["storage_path"] += "/"
    assert examine(read(played)) == ()
    played.threads[FIRST]["storage_path"] = "elsewhere/one"
    finding = only(read(played))
    assert (finding.kind, finding.repair) == (Kind.STORAGE, None)
    found = read(played)
    assert examine(LeslieTree(found.files, found.threads, storage=frozenset({"elsewhere/one"}))) == ()


def test_15_a_time_with_a_zone() -> None:
    played = Leslie().play([ROOT])
    content = played.relations_file()
    played.operations[0]["timestamp"] = played.operations[0]["timestamp"].replace("Z", "+00:00")
    finding = only(read(played, backup=b""))
    assert (finding.id, finding.severity) == ("F1:thread_relations.json", Severity.ERROR)
    assert finding.found.startswith('operations[0].timestamp: the text "2026-02-08T12:00:00.035+00:00"')
    assert main(repair_all(read(played))[1]) == content


@pytest.mark.parametrize("kept", [0, 1500])
def test_16_half_a_file_and_a_good_backup(kept: int) -> None:
    played = Leslie().play([ROOT, CHILD])
    backup = played.relations_file()
    played.play([("spawn", 0, 0, 1)])
    found = read(played, relations=played.relations_file()[:kept], backup=backup)
    finding = only(found)
    assert finding.id == "F1:thread_relations.json"
    lost = f"which loses the record of {THIRD}"
    assert finding.next == f"restore it from thread_relations.json.bak, {lost}"
    repairs, after = repair_all(found)
    assert len(repairs) == 1
    assert main(after) == backup
    assert ids(after) == [f"F3:{THIRD}"]


def test_16_the_operations_that_a_torn_file_still_shows() -> None:
    played = Leslie().play([ROOT])
    backup = played.relations_file()
    played.play([("inject", 0, 0, 0), ("inject", 0, 0, 0)])
    content = played.relations_file()
    cut = content.index(b'"op-0003"')
    finding = only(read(played, relations=content[:cut], backup=backup))
    assert finding.next.endswith("restore it from thread_relations.json.bak, which loses the operations op-0002")


def test_16_nothing_is_lost_where_only_derived_data_are_cut_off() -> None:
    played = Leslie().play([ROOT, CHILD])
    backup = Leslie().relations_file()
    content = played.relations_file()
    found = read(played, relations=content[: content.rindex(b'"depends_on"')], backup=backup)
    assert only(found).next.startswith("repair it in place without loss: the truncated relations rebuilt from the log")
    assert main(repair_all(found)[1]) == content


def test_17_both_torn() -> None:
    played = Leslie().play([ROOT, CHILD, CHILD])
    content = played.relations_file()
    torn = content[: content.index(b'"created_at"', content.index(THIRD.encode())) + 20]
    found = read(played, relations=torn, backup=torn)
    finding = only(found)
    assert finding.id == "F2:thread_relations.json"
    salvaged = f"the records of {FIRST}, {SECOND}; no operation; only the id of {THIRD}"
    assert finding.next == f"run no Leslie command; on request this is recovered: {salvaged}"
    assert repair_all(found) == ((), found)
    _, after = repair_all(found, {finding.id})
    made = json.loads(main(after) or b"")
    assert made["threads"] == {thread: played.threads[thread] for thread in (FIRST, SECOND)}
    assert made["relations"][FIRST]["children"] == [SECOND]
    assert ids(after, notes=False) == [f"F3:{THIRD}"]


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
def test_17_both_torn_by_the_real_program() -> None:
    found = corpus_found("clobbered-bak")
    finding = only(found)
    assert finding.next.endswith(
        "on request this is recovered: the records of thread-6fefc192, thread-3777b6e5, thread-3fc3f6a6; no operation; "
        "only the id of thread-ddd68a6a"
    )
    _, after = repair_all(found, {finding.id, "F3:thread-ddd68a6a"})
    assert ids(after, notes=False) == []
    assert [each["params"]["recovered"] for each in json.loads(main(after) or b"")["operations"]] == [True]


def marked() -> tuple[Leslie, Leslie]:
    base = Leslie().play([ROOT])
    ours, theirs = base.continued("a", 0), base.continued("b", 3)
    ours.spawn(1, 0, 1)
    theirs.spawn(1, 0, 2)
    return ours, theirs


def conflict(ours: Leslie, theirs: Leslie) -> bytes:
    return b"<<<<<<< a\n" + ours.relations_file() + b"=======\n" + theirs.relations_file() + b">>>>>>> b\n"


def test_18_conflict_markers() -> None:
    ours, theirs = marked()
    found = read(ours, relations=conflict(ours, theirs), backup=b"{")
    assert only(found).next.endswith("both versions of the merge conflict merged by their operations")
    _, after = repair_all(found)
    assert json.loads(main(after) or b"")["threads"].keys() == {*ours.threads, *theirs.threads}


def test_18_conflict_markers_about_a_title() -> None:
    ours, theirs = marked()
    theirs.threads[FIRST]["title"] = "By hand"
    found = read(ours, relations=conflict(ours, theirs), backup=ours.relations_file())
    finding = only(found)
    assert finding.repair is None
    assert finding.next.startswith(f"resolve the conflict in the file, then run doctor again: {FIRST}: title ")


def test_19_a_byte_order_mark() -> None:
    played = Leslie().play([ROOT])
    content = played.relations_file()
    found = read(played, relations=b"\xef\xbb\xbf" + content, backup=content)
    assert only(found).found == "a byte order mark (expected a JSON object)"
    assert main(repair_all(found)[1]) == content


@pytest.mark.parametrize(
    ("age", "severity", "words", "removed"),
    [
        (3.0, Severity.NOTE, "a lock that is held, 3.0 seconds old", False),
        (-0.6, Severity.NOTE, "a lock that is held, 0.6 seconds ahead of the clock", False),
        (
            11.0,
            Severity.WARNING,
            "a stale lock, 11.0 seconds old (after 10 seconds a lock is stale)",
            True,
        ),
        (-3600.0, Severity.WARNING, "a lock that is 60 minutes ahead of the clock (at most", False),
    ],
)
def test_20_a_lock(age: float, severity: Severity, words: str, removed: bool) -> None:
    found = read(Leslie())
    locked = LeslieTree(found.files, locks={RELATIONS + ".lock": Lock("a directory", age)})
    finding = only(locked)
    assert (finding.kind, finding.severity) == (Kind.LOCK, severity)
    assert finding.found.startswith(words)
    steps = [step for repair in repair_all(locked)[0] for step in repair.steps]
    assert steps == ([RemoveLock(RELATIONS + ".lock")] if removed else [])
    assert locked.busy == (f"{RELATIONS}.lock is locked" if severity is Severity.NOTE else "")


@pytest.mark.parametrize("lock", [Lock("a directory", 99.0, ("pid",)), Lock("a file", 99.0)])
def test_21_a_lock_that_the_program_can_t_remove(lock: Lock) -> None:
    finding = only(LeslieTree(read(Leslie()).files, locks={OBJECTIVES + ".lock": lock}))
    assert (finding.id, finding.repair) == ("F13:objectives.json.lock", None)


def test_23_a_directory_with_nothing_but_transcripts() -> None:
    played = Leslie().play([ROOT])
    found = read(played)
    stray = ThreadDirectory(files=frozenset({".meta/transcripts/20260208-1200-Fix-it.txt"}))
    noted = LeslieTree(found.files, {**found.threads, "thread-x": stray}, now=found.now)
    finding = only(noted)
    assert (finding.id, finding.severity) == ("F3:thread-x", Severity.NOTE)
    more = ThreadDirectory(files=stray.files | {"plan.md"})
    finding = only(LeslieTree(found.files, {**found.threads, "thread-x": more}, now=found.now))
    assert finding.severity is Severity.WARNING


def test_24_an_empty_copy() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1), ("reference", 1, 0, 0)])
    found = read(played)
    assert examine(found) == ()
    bare = {**found.threads, SECOND: ThreadDirectory(directories=STANDARD)}
    finding = only(LeslieTree(found.files, bare))
    assert (finding.id, finding.severity) == (f"F16:{SECOND}>{FIRST}", Severity.WARNING)
    cloned = {**found.threads, SECOND: ThreadDirectory(files=frozenset({"plan.md"}))}
    assert only(LeslieTree(found.files, cloned)).severity is Severity.NOTE
    full = {**found.threads, SECOND: ThreadDirectory(files=frozenset({f"context/inherited/{FIRST}/plan.md"}))}
    assert ids(LeslieTree(found.files, full)) == []


def test_25_the_order_of_threads_in_an_objective() -> None:
    played = Leslie().play([ROOT, ("spawn", 0, 0, 1)])
    text = (played.relations_file().decode(), played.objectives_file().decode())
    relations, objectives = (each.replace(FIRST, "Thread-B").replace(SECOND, "thread-a") for each in text)
    found = read(played, relations=relations.encode(), objectives=objectives.encode())
    found = LeslieTree(found.files, {"Thread-B": ThreadDirectory(), "thread-a": ThreadDirectory()})
    assert examine(found) == ()
    other = json.loads(objectives)
    other["objectives"]["obj-00000001"]["thread_ids"].reverse()
    assert examine(LeslieTree({**found.files, OBJECTIVES: File(as_bytes(other))}, found.threads)) == ()
    other["objectives"]["obj-00000001"]["thread_ids"] = []
    _, after = repair_all(LeslieTree({**found.files, OBJECTIVES: File(as_bytes(other))}, found.threads))
    made = json.loads(after.file(OBJECTIVES).content or b"")
    assert made["objectives"]["obj-00000001"]["thread_ids"] == ["thread-a", "Thread-B"]


def test_26_a_command_that_nobody_knows() -> None:
    played = Leslie().play([ROOT])
    played.log("pin", thread_id=FIRST, colour="red")
    found = read(played, relations=played.relations_file(relations={}))
    notes = [each for each in examine(found) if each.severity is Severity.NOTE]
    assert [each.found for each in notes] == ["operation op-0002: the command 'pin' is unknown; it is kept"]
    assert main(repair_all(found)[1]) == played.relations_file()


def test_27_keys_that_the_program_drops() -> None:
    played = Leslie().play([ROOT])
    played.threads[FIRST]["colour"] = "red"
    finding = only(read(played))
    assert (finding.kind, finding.severity) == (Kind.EXTRA, Severity.NOTE)
    assert finding.found == f"keys that Leslie does not know: threads.{FIRST}.colour"
    found = read(played, relations=played.relations_file(relations={}))
    assert json.loads(main(repair_all(found)[1]) or b"")["threads"][FIRST]["colour"] == "red"


def test_28_an_entry_without_a_thread() -> None:
    played = Leslie().play([ROOT])
    gone: dict[str, list[str]] = {"children": [], "references_to": [], "referenced_by": [], "depends_on": []}
    content = played.relations_file()
    played.relations["thread-gone"] = gone
    found = read(played)
    found = LeslieTree(found.files, {FIRST: found.threads[FIRST]})
    assert only(found).found == "thread-gone: - entry, there is no such thread"
    assert main(repair_all(found)[1]) == content
    # A thread that no operation has spawned may know better.
    played.operations.clear()
    played.relations[FIRST]["references_to"] = ["thread-gone"]
    found = read(played, backup=content)
    assert ids(LeslieTree(found.files, {FIRST: ThreadDirectory()})) == ["unspawned:thread_relations.json"]


@pytest.mark.parametrize("name", ["children", "references_to", "referenced_by", "depends_on"])
def test_28_an_entry_without_a_thread_is_named_once(name: str) -> None:
    played = Leslie().play([ROOT])
    played.operations.clear()
    played.relations["thread-gone"] = {key: [] for key in played.relations[FIRST]}
    played.relations[FIRST][name] = ["thread-gone"]
    found = read(played)
    found = LeslieTree(found.files, {FIRST: ThreadDirectory()})
    assert repair_all(found) == ((), found)


def test_28_an_entry_under_a_number_comes_first_as_in_javascript() -> None:
    played = Leslie().play([ROOT])
    played.operations.clear()
    played.relations[FIRST]["references_to"] = ["5"]
    none: dict[str, list[str]] = {"children": [], "references_to": [], "referenced_by": [], "depends_on": []}
    played.relations = {"5": none, **played.relations}
    found = read(played)
    found = LeslieTree(found.files, {FIRST: ThreadDirectory()})
    assert ids(found) == ["unspawned:thread_relations.json"]
    assert repair_all(found) == ((), found)


def test_29_no_operations() -> None:
    played = Leslie().play([ROOT, CHILD, ("reference", 1, 0, 0)])
    played.operations.clear()
    found = read(played)
    assert ids(found) == ["unspawned:thread_relations.json"]
    assert only(found).found == f"no operation spawns {FIRST}, {SECOND}"
    played.relations[FIRST]["children"].clear()
    played.relations[FIRST]["referenced_by"].clear()
    words = [each.found for each in examine(read(played)) if each.kind is Kind.RELATIONS]
    assert words == [f"{FIRST}: children + {SECOND}", f"{FIRST}: referenced_by + {SECOND}"]


def test_30_a_symbolic_link() -> None:
    found = read(Leslie().play([ROOT]))
    linked = LeslieTree({**found.files, RELATIONS: File(None, "a symbolic link")}, found.threads)
    finding = only(linked)
    assert (finding.kind, finding.repair, finding.severity) == (Kind.LINK, None, Severity.ERROR)
    assert finding.found == "a symbolic link in the place of a file"


def test_31_a_backup_that_is_the_same() -> None:
    played = Leslie().play([ROOT])
    assert examine(read(played, backup=played.relations_file())) == ()


def test_32_injected_content_of_two_lines() -> None:
    played = Leslie().play([ROOT, ("inject", 0, 0, 0), ("inject", 0, 0, 0)])
    log = document(played.relations_file()).operations
    assert sum(Operation(entry).command == "inject" for entry in log) == 2
    assert examine(read(played)) == ()


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("small-tree", []),
        ("references", []),
        ("lifecycle", ["lag:obj-b8495837"]),
        ("run-events", []),
        ("concurrent-spawn", []),
        ("recovered-from-bak", ["F3:thread-ddd68a6a"]),
        ("clobbered-bak", ["F2:thread_relations.json"]),
    ],
)
def test_the_corpus(scenario: str, expected: list[str]) -> None:
    assert ids(corpus_found(scenario)) == expected


def test_no_number_is_missing() -> None:
    """22 is about which directory is a workspace, and is in tests/adapters/leslie/test_files.py."""
    numbers = {int(name[5:7]) for name in globals() if name.startswith("test_") and name[5:7].isdigit()}
    assert numbers | {22} == set(range(1, 33))

"""Those of docs/design/formats/leslie.md#edge-cases, by number, that say what is written: by a mending or a union.

Which findings they are is in test_edge_cases.py.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from reconcile.formats.leslie.checks.model import File, LeslieTree, Lock, ThreadDirectory
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS
from reconcile.formats.leslie.format import LeslieFormat
from reconcile.model.snapshot import Fault, Metadata
from tests.support.formats.leslie import STANDARD, Leslie, Step, as_bytes, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.format import DerivedRepair

LESLIE = LeslieFormat()
FIRST, SECOND, THIRD = (f"thread-{(number * 2654435761) % 2**32:08x}" for number in range(3))
ROOT: Step = ("spawn", 0, 0, 1)
CHILD: Step = ("spawn", 1, 0, 1)
PLAYED = Leslie().play([ROOT, CHILD])
FILE = PLAYED.relations_file()


def mended(found: LeslieTree) -> tuple[DerivedRepair, ...]:
    """What is done by itself."""
    return tuple(each for each in LESLIE.mend(found, {}) if not each.asked)


def made_of(content: bytes, backup: bytes | None = None) -> DerivedRepair:
    """The one rewriting of a relations file that says this."""
    (done,) = mended(read(PLAYED, relations=content, backup=backup or content))
    assert (done.path, done.before) == (RELATIONS, content)
    return done


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    value = json.loads(FILE)
    change(value)
    return as_bytes(value)


def parted() -> tuple[Leslie, Leslie]:
    return PLAYED.continued("a", 0), PLAYED.continued("b", 3)


def merged(ours: Leslie, theirs: Leslie) -> dict[str, Any]:
    """The store's file, and the workspace's: each has something that the other lacks."""
    found = LESLIE.merge(RELATIONS, theirs.relations_file(), ours.relations_file())
    assert isinstance(found, bytes)
    assert isinstance(LESLIE.read_record(RELATIONS, found), Metadata)
    value: dict[str, Any] = json.loads(found)
    return value


def with_first(**fields: Any) -> LeslieTree:
    """The first thread's record says something else; empty: it doesn't say it."""
    value = json.loads(FILE)
    value["threads"][FIRST] = {key: each for key, each in (value["threads"][FIRST] | fields).items() if each != ""}
    return read(PLAYED, relations=as_bytes(value))


def locked(age: float, *names: str) -> LeslieTree:
    return replace(read(PLAYED), locks={f"{RELATIONS}.lock": Lock("a directory", age, names)})


def unsorted() -> LeslieTree:
    played = Leslie().play([ROOT, ("inject", 0, 0, 0)])
    played.operations[-1]["timestamp"] = "2026-02-08T11:00:00.000Z"
    return read(played)


LINKED = {RELATIONS: File(None, "a symbolic link"), OBJECTIVES: File(PLAYED.objectives_file())}
NOTHING = [
    ("01", read(PLAYED)),
    ("08: the objective lags", read(Leslie().play([ROOT, ("transfer", 0, 0, 0)]))),
    ("10", with_first(status="pending")),
    ("11", unsorted()),
    ("12", with_first(updated_at="2026-12-08T12:00:00Z")),
    ("12: older", with_first(updated_at="2025-12-08T12:00:00Z")),
    ("13", with_first(tags="")),
    ("14", with_first(storage_path=f".leslie/threads/{FIRST}/")),
    ("20: held", locked(3.0)),
    ("20: fresh", locked(-0.6)),
    ("20: ahead", locked(-3600.0)),
    ("21", locked(3600.0, "pid")),
    ("22: no control file", LeslieTree({})),
    ("27: it is said", with_first(mine=1)),
    ("30", replace(read(PLAYED), files=LINKED)),
    ("31", read(PLAYED, backup=FILE)),
    ("32", read(Leslie().play([ROOT, ("inject", 0, 0, 0)]))),
]


@pytest.mark.parametrize("found", [pytest.param(found, id=name) for name, found in NOTHING])
def test_nothing_is_written(found: LeslieTree) -> None:
    assert mended(found) == ()


def test_02_the_example_of_the_design_text() -> None:
    """Its child has no record: it would be active, and a run would start an agent for it.

    See docs/design/formats/leslie.md#f7.
    """
    value = json.loads(FILE)
    for record in value["threads"].values():
        del record["executor"], record["updated_at"]
    del value["threads"][SECOND], value["relations"][SECOND]
    found = read(PLAYED, relations=as_bytes(value))
    offered = LESLIE.mend(found, {})
    assert [(each.path, bool(each.asked)) for each in offered if each.id == f"F7:{SECOND}"] == [(RELATIONS, True)]


def test_03_no_relations_at_all() -> None:
    done = made_of(changed(lambda value: value.update(relations={})))
    assert done.content == FILE
    assert done.words == (f"{FIRST}: + entry (children {SECOND})", f"{SECOND}: + entry (depends_on {FIRST})")


def test_04_a_reference_before_its_target() -> None:
    played = Leslie().play([ROOT])
    played.log("reference", ref_id="ref-1", from_id=FIRST, to_id=SECOND, scope=[], binding="live")
    played.play([CHILD])
    content = played.relations_file()
    played.relations[FIRST]["references_to"] = [SECOND]
    (done,) = mended(read(played))
    assert (done.content, done.words) == (content, (f"{FIRST}: references_to - {SECOND}",))


def test_05_the_same_reference_on_both_sides() -> None:
    ours, theirs = parted()
    for each in (ours, theirs):
        each.log("reference", ref_id="ref-1", from_id=SECOND, to_id=FIRST, scope=[], binding="live")
        each.relations[SECOND]["references_to"], each.relations[FIRST]["referenced_by"] = [FIRST], [SECOND]
    value = merged(ours, theirs)
    assert [each["command"] for each in value["operations"]].count("reference") == 2
    assert value["relations"][SECOND]["references_to"] == [FIRST]


def test_06_references_that_go_round_once_both_logs_are_one() -> None:
    ours, theirs = parted()
    for each, source, target in ((ours, FIRST, SECOND), (theirs, SECOND, FIRST)):
        each.log("reference", ref_id="ref-1", from_id=source, to_id=target, scope=[], binding="live")
        each.relations[source]["references_to"], each.relations[target]["referenced_by"] = [target], [source]
    value = merged(ours, theirs)
    assert [value["relations"][each]["references_to"] for each in (FIRST, SECOND)] == [[SECOND], [FIRST]]
    assert mended(read(PLAYED, relations=as_bytes(value))) == ()


def test_09_states_that_follow_on_each_other_no_more() -> None:
    """Cancelled here, suspended there: the operations are taken in their order, and what it comes to is said."""
    ours, theirs = parted()
    ours.play([("lifecycle", 0, 3, 0)])
    theirs.play([("lifecycle", 0, 0, 0)])
    value = merged(ours, theirs)
    assert [each["params"]["action"] for each in value["operations"][2:]] == ["cancel", "suspend"]
    assert value["threads"][FIRST]["status"] == "suspended"
    assert mended(read(PLAYED, relations=as_bytes(value), objectives=theirs.objectives_file())) == ()


def test_11_times_that_are_not_in_order() -> None:
    ours, theirs = parted()
    ours.play([("inject", 0, 0, 0)] * 2)
    ours.operations[-1]["timestamp"] = "2026-02-08T11:00:00.000Z"
    theirs.play([("inject", 1, 0, 0)])
    value = merged(ours, theirs)
    mine = [each["id"] for each in value["operations"] if each in ours.operations]
    assert mine == [each["id"] for each in ours.operations]


def test_13_tags_of_one_side() -> None:
    ours, theirs = parted()
    del ours.threads[FIRST]["tags"], theirs.threads[SECOND]["tags"]
    ours.play([("inject", 0, 0, 0)])
    theirs.play([("inject", 0, 0, 0)])
    value = merged(ours, theirs)
    assert [value["threads"][each].get("tags") for each in (FIRST, SECOND)] == [["a"], ["a"]]


def test_15_a_time_with_a_zone() -> None:
    created = json.loads(FILE)["operations"][0]["timestamp"]
    content = FILE.replace(f'"timestamp": "{created}"'.encode(), f'"timestamp": "{created[:-1]}+00:00"'.encode())
    assert isinstance(LESLIE.read_record(RELATIONS, content), Fault)
    assert made_of(content, backup=Leslie().relations_file()).content == FILE


@pytest.mark.parametrize("kept", [0, 100, len(FILE) // 2])
def test_16_half_a_file_and_a_good_backup(kept: int) -> None:
    backup = Leslie().play([ROOT]).relations_file()
    done = made_of(FILE[:kept], backup)
    assert done.content == backup
    assert done.words[0] == f"{RELATIONS} restored from {RELATIONS}.bak"
    assert SECOND in done.words[-1]


def test_16_the_program_went_back_to_the_backup() -> None:
    """Nobody has said so; the durable copy still has the operation, however new the workspace's file is."""
    backup = Leslie().play([ROOT]).relations_file()
    found = read(PLAYED, relations=backup, backup=backup)
    assert [each.id for each in LESLIE.mend(found, {})] == [f"F3:{SECOND}"]
    back = LESLIE.merge(RELATIONS, FILE, backup)
    assert back == FILE
    assert LESLIE.mend(found, {RELATIONS: back}) == ()


def test_16_an_adopted_orphan_whose_spawn_the_durable_copy_has() -> None:
    backup = Leslie().play([ROOT]).relations_file()
    found = read(PLAYED, relations=backup, backup=backup)
    (adopted,) = LESLIE.mend(found, {}, {f"F3:{SECOND}"})
    assert adopted.content is not None
    both = LESLIE.merge(RELATIONS, FILE, adopted.content)
    assert isinstance(both, bytes)
    value = json.loads(both)
    assert [each["command"] for each in value["operations"]] == ["spawn"] * 3
    assert {key: value["threads"][SECOND][key] for key in ("title", "parent_id", "created_at")} == {
        key: PLAYED.threads[SECOND][key] for key in ("title", "parent_id", "created_at")
    }


def test_17_both_torn() -> None:
    found = read(PLAYED, relations=FILE[:700], backup=FILE[:700])
    (offered,) = LESLIE.mend(found, {})
    assert (offered.id, bool(offered.asked)) == (f"F2:{RELATIONS}", True)
    assert isinstance(LESLIE.read_record(RELATIONS, offered.content or b""), Metadata)


def test_18_conflict_markers() -> None:
    ours, theirs = parted()
    ours.spawn(1, 0, 1)
    theirs.spawn(1, 0, 2)
    content = b"".join(
        [b"<<<<<<< HEAD\n", ours.relations_file(), b"=======\n", theirs.relations_file(), b">>>>>>> other\n"]
    )
    done = next(each for each in mended(read(ours, relations=content)) if each.path == RELATIONS)
    assert json.loads(done.content or b"") == merged(ours, theirs)


def test_18_the_same_without_git() -> None:
    ours, theirs = parted()
    ours.spawn(1, 0, 1)
    theirs.spawn(1, 0, 2)
    theirs.threads[FIRST]["status"] = "archived"
    found = LESLIE.merge(RELATIONS, theirs.relations_file(), ours.relations_file())
    assert isinstance(found, Fault)
    assert found.found == f'both sides changed it: {FIRST}: status "active" and "archived"'


def test_19_a_byte_order_mark() -> None:
    assert isinstance(LESLIE.read_record(RELATIONS, b"\xef\xbb\xbf" + FILE), Fault)
    assert made_of(b"\xef\xbb\xbf" + FILE).content == FILE


def test_20_a_lock_that_is_left() -> None:
    (done,) = mended(replace(read(PLAYED), locks={f"{OBJECTIVES}.lock": Lock("a directory", 11.0)}))
    assert done.clears == (f"{OBJECTIVES}.lock",)


def test_23_a_directory_without_a_record_stays() -> None:
    files = frozenset({".meta/transcripts/20260208-1200-fix.txt"})
    found = replace(read(PLAYED), threads={**read(PLAYED).threads, "thread-x": ThreadDirectory(files=files)})
    assert mended(found) == ()


def test_24_an_empty_copy() -> None:
    played = Leslie().play([ROOT, CHILD, ("reference", 1, 0, 0)])
    copies = frozenset({f"context/inherited/{each}" for each in played.threads})
    threads = {each: ThreadDirectory(directories=STANDARD | copies) for each in played.threads}
    assert mended(replace(read(played), threads=threads)) == ()


def test_25_the_order_of_threads_in_an_objective() -> None:
    value = json.loads(PLAYED.objectives_file())
    value["objectives"]["obj-00000001"]["thread_ids"].reverse()
    assert mended(read(PLAYED, objectives=as_bytes(value))) == ()


def test_26_a_command_that_nobody_knows() -> None:
    ours, theirs = parted()
    ours.log("pin", thread_id=FIRST, color="red")
    theirs.play([("inject", 0, 0, 0)])
    assert ours.operations[-1] in merged(ours, theirs)["operations"]


def test_27_keys_that_the_program_drops() -> None:
    ours, theirs = parted()
    ours.play([CHILD])
    theirs.play([CHILD])
    ours.threads[FIRST]["mine"], theirs.threads[SECOND]["theirs"] = 1, 2
    value = merged(ours, theirs)
    assert (value["threads"][FIRST]["mine"], value["threads"][SECOND]["theirs"]) == (1, 2)


def test_28_an_entry_without_a_thread() -> None:
    content = changed(lambda value: value["relations"].update({"thread-x": value["relations"][SECOND]}))
    done = made_of(content)
    assert (done.content, done.words) == (FILE, ("thread-x: - entry, there is no such thread",))


def test_29_no_operations() -> None:
    ours, theirs = parted()
    for each, name in ((ours, "mine"), (theirs, "theirs")):
        each.operations.clear()
        each.threads[name] = {**deepcopy(each.threads[FIRST]), "id": name, "storage_path": f".leslie/threads/{name}"}
        each.relations[name] = {key: [] for key in each.relations[FIRST]}
    value = merged(ours, theirs)
    assert list(value["threads"]) == [FIRST, SECOND, "mine", "theirs"]
    assert value["metadata"]["thread_count"] == 4
    assert list(value["relations"]) == list(value["threads"])


def test_what_is_asked_for_is_done_like_what_is_done_by_itself() -> None:
    torn = FILE[: len(FILE) // 2]
    found = replace(read(PLAYED, relations=torn, backup=torn))
    (offer,) = (each for each in LESLIE.mend(found, {}) if each.id == f"F2:{RELATIONS}")
    assert offer.asked
    done = LESLIE.mend(found, {}, {offer.id})[0]
    assert (done.id, done.asked, done.before) == (RELATIONS, "", torn)

"""Leslie as a format of the engine: which entries are records, their units, both sides' versions, the mending."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.formats.leslie.checks.examine import examine
from reconcile.formats.leslie.checks.model import (
    File,
    Leftover,
    LeslieTree,
    Lock,
    Make,
    Remove,
    RemoveLock,
    Rewrite,
    ThreadDirectory,
    after,
)
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS
from reconcile.formats.leslie.format import LeslieFormat
from reconcile.model.format import DerivedRepair, Entry, TwoContinuations
from reconcile.model.snapshot import METADATA, Fault, Metadata
from tests.support.formats.leslie import CORPUS, STANDARD, Leslie, Step, as_bytes, corpus_found, damaged, read, stories

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LESLIE = LeslieFormat()
FIRST, SECOND = (f"thread-{(number * 2654435761) % 2**32:08x}" for number in range(2))
ROOT: Step = ("spawn", 0, 0, 1)
CHILD: Step = ("spawn", 1, 0, 1)
TEMPORARY = RELATIONS + ".tmp-17-00000000-0000-4000-8000-000000000000"

ENTRIES = [
    (RELATIONS, "file", Entry.RECORD),
    (OBJECTIVES, "file", Entry.RECORD),
    ("permissions.json", "file", Entry.RECORD),
    ("notes.md", "file", Entry.RECORD),
    (".gitignore", "file", Entry.RECORD),
    ("notes.md.bak", "file", Entry.RECORD),
    ("poetry.lock", "file", Entry.RECORD),
    ("somebody's", "directory", Entry.RECORD),
    ("threads", "directory", Entry.ENTER),
    ("logs", "directory", Entry.ENTER),
    ("threads/thread-1", "directory", Entry.RECORD),
    ("threads/thread_abc123", "directory", Entry.RECORD),
    ("logs/obj-1", "directory", Entry.ENTER),
    ("logs/workers", "directory", Entry.ENTER),
    ("logs/sdk", "directory", Entry.ENTER),
    ("logs/leslie.log", "file", Entry.RECORD),
    ("logs/obj-1/objective.log", "file", Entry.RECORD),
    ("logs/workers/deeper/a.ndjson", "file", Entry.RECORD),
    (RELATIONS + ".bak", "file", Entry.IGNORED),
    (RELATIONS + ".lock", "directory", Entry.IGNORED),
    (RELATIONS + ".lock", "file", Entry.IGNORED),
    (OBJECTIVES + ".lock.stale-1b2c", "directory", Entry.IGNORED),
    ("other.lock", "directory", Entry.IGNORED),
    (TEMPORARY, "file", Entry.IGNORED),
    ("runtime", "directory", Entry.IGNORED),
    (".reconcile-state-run", "directory", Entry.IGNORED),
    ("threads/.reconcile-state-run", "directory", Entry.IGNORED),
    ("objectives.json~", "file", Entry.IGNORED),
    (".#objectives.json", "file", Entry.IGNORED),
    (".objectives.json.swp", "file", Entry.IGNORED),
    ("threads/.plan.md.swp", "file", Entry.IGNORED),
    ("threads", "file", Entry.FOREIGN),
    ("logs", "file", Entry.FOREIGN),
    (RELATIONS, "directory", Entry.FOREIGN),
    ("threads/plan.md", "file", Entry.FOREIGN),
    ("threads/a\\b", "directory", Entry.FOREIGN),
    ("threads/a\nb", "directory", Entry.FOREIGN),
    ("notes\udcff", "file", Entry.FOREIGN),
    ("notes/deeper", "file", Entry.FOREIGN),
]


@pytest.mark.parametrize(("path", "what", "expected"), ENTRIES)
def test_what_lies_in_a_leslie_directory(path: str, what: str, expected: Entry) -> None:
    assert LESLIE.entry(path, directory=what == "directory") is expected


def test_what_somebody_has_chosen_to_leave_out() -> None:
    fmt = get_format("leslie", ("*.iso", "threads/*/cache/*", "context/inherited/*"))
    assert fmt.places is not None
    assert fmt.places.entry("large.iso", directory=False) is Entry.IGNORED
    assert fmt.unit_of("large.iso") is None
    assert fmt.unit_of("context/inherited/thread-1/plan.md") is None
    assert fmt.unit_of("context/live/plan.md") is not None


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
def test_everything_that_the_program_has_made_is_a_unit_or_its_own_business() -> None:
    left = set()
    for scenario in CORPUS.iterdir():
        if not (scenario / "paths.txt").is_file():
            continue
        for line in (scenario / "paths.txt").read_text().splitlines():
            kind, _, path = line.partition(" ")
            below = path.removeprefix(".leslie/")
            if not path.startswith(".leslie/") or is_carried(below, directory=kind == "d"):
                continue
            left.add(below.partition("/")[0])
    assert left == {RELATIONS + ".bak", OBJECTIVES + ".bak", "runtime"}


def is_carried(path: str, *, directory: bool) -> bool:
    """A record, a directory of records, or something in a record that is a unit; nothing is foreign."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        whole = depth == len(parts)
        found = LESLIE.entry("/".join(parts[:depth]), directory=directory or not whole)
        assert found is not Entry.FOREIGN, path
        if found is Entry.RECORD:
            return directory or LESLIE.unit_of("/".join(parts[depth:])) is not None
        if found is Entry.IGNORED:
            return False
    return True


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("", METADATA),
        ("plan.md", "extra:plan.md"),
        ("metadata.json", "extra:metadata.json"),
        ("conversations/a.md", "extra:conversations/a.md"),
        ("context/inherited/thread-2/plan.md", "extra:context/inherited/thread-2/plan.md"),
        (".meta/injections.log", "extra:.meta/injections.log"),
        (".meta/transcripts/20260208-1200-fix.txt", "extra:.meta/transcripts/20260208-1200-fix.txt"),
        ("discuss/.hidden", "extra:discuss/.hidden"),
        ("plan.md~", None),
        ("discuss/.plan.md.swp", None),
        (".#plan.md", None),
        (".reconcile-state-run/plan.md", None),
        ("discuss/.reconcile-state-run/plan.md", None),
    ],
)
def test_units(name: str, unit: str | None) -> None:
    assert LESLIE.unit_of(name) == unit


def test_the_order_is_that_of_the_locks() -> None:
    ids = ["threads/a", "logs/workers", OBJECTIVES, "a.json", RELATIONS]
    assert sorted(ids, key=LESLIE.order) == [RELATIONS, OBJECTIVES, "a.json", "logs/workers", "threads/a"]
    assert [LESLIE.lock_name(each) for each in ids] == [None, None, OBJECTIVES, None, RELATIONS]
    assert LESLIE.name == "leslie"
    assert LESLIE.dirname("threads/a", "A title") == "threads/a"


def valid(record: str, content: bytes) -> Metadata:
    found = LESLIE.read_record(record, content)
    assert isinstance(found, Metadata), found
    return found


def test_what_is_valid() -> None:
    played = Leslie().play([ROOT, CHILD])
    for record, content in (
        (RELATIONS, played.relations_file()),
        (OBJECTIVES, played.objectives_file()),
        ("permissions.json", b"\xff anything"),
    ):
        assert (valid(record, content).title, valid(record, content).content) == (None, content)


def older(played: Leslie) -> bytes:
    """The same in the design text's dialect."""
    value = json.loads(played.relations_file())
    for record in value["threads"].values():
        del record["executor"], record["updated_at"]
    return as_bytes(value)


def test_the_older_dialect_is_valid() -> None:
    valid(RELATIONS, older(Leslie().play([ROOT])))


def test_what_the_program_rejects_is_a_fault() -> None:
    played = Leslie().play([ROOT])
    played.threads[FIRST]["status"] = "paused"
    found = LESLIE.read_record(RELATIONS, played.relations_file())
    assert isinstance(found, Fault)
    assert found.file == RELATIONS
    assert found.found == f'the text "paused" as threads.{FIRST}.status'
    torn = LESLIE.read_record(OBJECTIVES, played.objectives_file()[:40])
    assert isinstance(torn, Fault)
    assert LESLIE.read_record(OBJECTIVES, played.objectives_file(version=None)) == Fault(
        OBJECTIVES, "null as version", "a text that isn't empty"
    )


# Both sides' versions


def parted(*steps: Step) -> tuple[Leslie, Leslie]:
    base = Leslie().play([ROOT, *steps])
    return base.continued("a", 0), base.continued("b", 3)


def both(ours: bytes, theirs: bytes, record: str = RELATIONS) -> bytes | Fault | None:
    """The same whichever side has which, but for the words of a fault."""
    found, other = LESLIE.merge(record, ours, theirs), LESLIE.merge(record, theirs, ours)
    if isinstance(found, bytes):
        assert isinstance(other, bytes)
        assert json.loads(found) == json.loads(other)
        valid(record, found)
    else:
        assert type(found) is type(other)
    assert not isinstance(found, TwoContinuations)
    return found


def log(content: bytes) -> list[str]:
    return [each["id"] for each in json.loads(content)["operations"]]


@given(stories(8), stories(8), stories(8))
def test_the_longer_log_is_right_and_two_that_parted_are_united(
    before: list[Step], here: list[Step], there: list[Step]
) -> None:
    base = Leslie().play(before)
    ours, theirs = base.continued("a", 0).play(here), base.continued("b", 3).play(there)
    mine, other = ours.relations_file(), theirs.relations_file()
    found = both(mine, other)
    logs = log(mine), log(other)
    assert not isinstance(found, Fault)
    if found is None:
        assert log(mine) == log(other)
    else:
        assert set(log(found)) == {*logs[0], *logs[1]}
        assert both(found, mine) in (found, None)
        assert both(found, other) in (found, None)
    for behind, ahead in ((base.relations_file(), mine), (base.relations_file(), other)):
        assert both(behind, ahead) in (ahead, None)


def test_a_log_that_begins_with_the_other_is_right_whatever_stands_beside_it() -> None:
    shorter, longer = parted()
    longer.play([CHILD])
    longer.relations[FIRST]["children"] = []
    shorter.threads[FIRST]["title"] = "By hand"
    assert both(shorter.relations_file(), longer.relations_file()) == longer.relations_file()
    shorter.play([("session", 0, 1, 0)])
    shorter.threads[FIRST]["updated_at"] = "2026-12-08T12:00:00.000Z"  # newer, but about the title nobody knows
    assert both(shorter.relations_file(), longer.relations_file()) == longer.relations_file()


def test_a_log_may_be_scattered_over_the_other() -> None:
    ours, theirs = parted()
    ours.play([CHILD])
    theirs.play([CHILD, CHILD])
    merged = both(ours.relations_file(), theirs.relations_file())
    assert isinstance(merged, bytes)
    assert both(ours.relations_file(), merged) == merged


def test_a_record_that_is_newer_beside_the_shorter_log() -> None:
    shorter, longer = parted()
    longer.play([CHILD])
    shorter.clock += 1000
    shorter.play([("session", 0, 7, 0)])
    found = both(shorter.relations_file(), longer.relations_file())
    assert isinstance(found, bytes)
    assert json.loads(found)["threads"][FIRST]["session_id"] == "session 7"
    assert log(found) == log(longer.relations_file())


def test_the_same_log_is_for_the_table_where_nothing_is_newer() -> None:
    ours, theirs = parted()
    theirs.threads[FIRST]["title"] = "By hand"
    assert both(ours.relations_file(), theirs.relations_file()) is None
    ours.play([("session", 0, 1, 0)])
    found = both(ours.relations_file(), theirs.relations_file())
    assert found == ours.relations_file()
    theirs.threads["mine"] = {**theirs.threads[FIRST], "id": "mine"}
    # The newer session doesn't count where the two can't be one, and theirs has everything.
    assert both(ours.relations_file(), theirs.relations_file()) == theirs.relations_file()
    ours.threads["other"] = {**ours.threads[FIRST], "id": "other"}
    assert isinstance(both(ours.relations_file(), theirs.relations_file()), Fault)


def test_what_a_person_has_to_decide() -> None:
    ours, theirs = parted()
    ours.play([CHILD])
    theirs.play([CHILD])
    theirs.threads[FIRST]["title"] = "By hand"
    ours.threads[FIRST]["title"] = "Here"
    assert isinstance(both(ours.relations_file(), theirs.relations_file()), Fault)
    found = LESLIE.merge(RELATIONS, theirs.relations_file(), ours.relations_file())
    assert found == Fault(
        RELATIONS,
        f'both sides changed it: {FIRST}: title "Here" and "By hand"',
        "one version, chosen with resolve",
    )


def test_a_version_of_each_dialect() -> None:
    ours, theirs = parted()
    ours.play([CHILD])
    theirs.play([CHILD])
    assert isinstance(both(older(ours), theirs.relations_file()), bytes)
    assert isinstance(both(older(ours), older(theirs)), bytes)


def test_a_workspace_that_a_command_has_made_empty_loses_nothing() -> None:
    """A missing file is made again, empty, by any command (docs/design/formats/leslie.md#backup)."""
    played = Leslie().play([ROOT, CHILD])
    empty = Leslie()
    assert both(played.relations_file(), empty.relations_file()) == played.relations_file()


def test_no_command_removes_a_record() -> None:
    empty, more = Leslie(), Leslie().play([ROOT, CHILD])
    empty.objectives = {}
    assert LESLIE.loses(OBJECTIVES, more.objectives_file(), empty.objectives_file())
    assert not LESLIE.loses(OBJECTIVES, empty.objectives_file(), more.objectives_file())
    less = Leslie().play([ROOT])
    assert LESLIE.loses(RELATIONS, more.relations_file(), less.relations_file())
    assert not LESLIE.loses(RELATIONS, less.relations_file(), more.relations_file())
    unspawned = more.relations_file(operations=[])
    assert LESLIE.loses(RELATIONS, unspawned, less.relations_file(operations=[])), "a thread without an operation"
    unnamed = [{"command": "spawn", "params": {"intent": each}} for each in ("a", "b")]
    assert LESLIE.loses(RELATIONS, more.relations_file(operations=unnamed), more.relations_file(operations=unnamed[:1]))
    for name in (RELATIONS, OBJECTIVES):
        assert not LESLIE.loses(name, b"{", more.relations_file())
        assert not LESLIE.loses(name, more.relations_file(), b"{")


def test_logs_only_grow() -> None:
    log = "logs/obj-1/objective.log"
    assert LESLIE.loses(log, b"a\nb\n", b"b\nc\n")
    assert not LESLIE.loses(log, b"a\n", b"a\nb\n")
    assert LESLIE.merge(log, b"a\nb\n", b"a\nc\n") == b"a\nb\nc\n"


def test_what_was_emptied_is_damage() -> None:
    for name in (RELATIONS, OBJECTIVES):
        found = LESLIE.read_record(name, b"\0\0")
        assert isinstance(found, Fault)
        assert found.incomplete
        torn = LESLIE.read_record(name, b"{")
        assert isinstance(torn, Fault)
        assert not torn.incomplete
    assert LESLIE.loses("permissions.json", b"{}", b"")
    assert LESLIE.merge("permissions.json", b"", b"{}") == b"{}"


def with_aim(name: str, title: str = "New", base: Leslie | None = None) -> Leslie:
    found = Leslie().play([ROOT]) if base is None else base
    aim = {**found.objectives["obj-00000001"], "id": name, "title": title, "thread_ids": ["thread-x"]}
    found.objectives[name] = aim
    return found


def test_objectives() -> None:
    base = Leslie().play([ROOT]).objectives_file()
    ours, theirs = with_aim("obj-a"), with_aim("obj-b")
    merged = both(ours.objectives_file(), theirs.objectives_file(), OBJECTIVES)
    assert isinstance(merged, bytes)
    assert json.loads(merged)["objectives"].keys() == {"obj-00000001", "obj-00000002", "obj-a", "obj-b"}
    assert json.loads(merged)["objectives"]["obj-a"]["thread_ids"] == ["thread-x"]
    assert both(base, ours.objectives_file(), OBJECTIVES) == ours.objectives_file()
    assert both(base, base, OBJECTIVES) is None
    other = with_aim("obj-a", "Another")
    assert both(other.objectives_file(), ours.objectives_file(), OBJECTIVES) is None
    more = with_aim("obj-b", base=other)
    ours.objectives["obj-00000002"]["updated_at"] = "2026-12-08T12:00:00.000Z"
    assert both(more.objectives_file(), ours.objectives_file(), OBJECTIVES) == more.objectives_file()
    found = both(more.objectives_file(), with_aim("obj-c", base=ours).objectives_file(), OBJECTIVES)
    assert isinstance(found, Fault)
    assert found.found == 'both sides changed it: obj-a: title "New" and "Another"'


def test_nothing_else_is_united() -> None:
    assert LESLIE.merge("permissions.json", b"{}", b"{ }") is None
    good = Leslie().play([ROOT])
    assert LESLIE.merge(RELATIONS, good.relations_file(), b"") is None
    assert LESLIE.merge(OBJECTIVES, good.objectives_file(), b"") is None


# Mending


def carried_out(found: LeslieTree, done: Collection[DerivedRepair]) -> LeslieTree:
    """What an apply makes of it, checking what is there before."""
    for each in done:
        if each.content is not None:
            assert found.file(each.path).content == each.before
            found = after(found, Rewrite(each.path, each.before, each.content))
        elif each.makes:
            found = after(found, Make(each.makes))
        elif each.before is not None:
            assert found.leftovers[each.path].file.content == each.before
            found = after(found, Remove(each.path, each.before))
        for path in each.clears:
            found = after(found, RemoveLock(path))
    return found


def by_itself(done: Collection[DerivedRepair]) -> list[DerivedRepair]:
    return [each for each in done if not each.asked]


def is_mended(found: LeslieTree, written: Mapping[str, bytes | None] | None = None) -> LeslieTree:
    """Mend it; nothing is left to be done by itself, and each thing on request can be done alone."""
    done = LESLIE.mend(found, written or {})
    rewrites = [each.path for each in by_itself(done) if each.content is not None]
    assert len(rewrites) == len(set(rewrites))
    assert len({each.id for each in done}) == len(done)
    whole = carried_out(found, by_itself(done))
    again = LESLIE.mend(whole, {})
    assert by_itself(again) == []
    assert again == tuple(each for each in done if each.asked)
    for each in again:
        carried_out(whole, [each])
    return whole


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
@pytest.mark.parametrize(
    "scenario",
    ["small-tree", "references", "lifecycle", "run-events", "concurrent-spawn", "recovered-from-bak", "clobbered-bak"],
)
def test_the_corpus(scenario: str) -> None:
    """What the program left behind needs nothing that isn't asked for."""
    found = corpus_found(scenario)
    assert is_mended(found) == found
    asked = {each.id: each.path for each in LESLIE.mend(found, {})}
    assert asked == {
        "recovered-from-bak": {"F3:thread-ddd68a6a": RELATIONS},
        "clobbered-bak": {"F2:thread_relations.json": RELATIONS},
    }.get(scenario, {})
    done = LESLIE.mend(found, {}, set(asked))
    assert by_itself(LESLIE.mend(carried_out(found, by_itself(done)), {})) == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
def test_what_the_real_program_has_rolled_back_comes_from_the_durable_copy() -> None:
    found, store = corpus_found("recovered-from-bak"), corpus_found("small-tree").file(RELATIONS).content
    assert store is not None
    assert LESLIE.merge(RELATIONS, store, found.file(RELATIONS).content or b"") == store
    assert LESLIE.mend(found, {RELATIONS: store}) == ()


@given(stories(10), st.data())
def test_whatever_is_damaged_is_mended_once(steps: list[Step], data: st.DataObject) -> None:
    played = Leslie().play(steps)
    backup = played.relations_file()
    played.play(data.draw(stories(4)))
    relations, objectives = (data.draw(damaged(each)) for each in (played.relations_file(), played.objectives_file()))
    found = read(played, relations=relations, objectives=objectives, backup=backup)
    if data.draw(st.booleans()):
        found = replace(found, threads=dict(list(found.threads.items())[1:]))
    whole = is_mended(found)
    assert whole.backup(RELATIONS) == found.backup(RELATIONS)
    wanted = {each.id for each in LESLIE.mend(whole, {})}
    done = by_itself(LESLIE.mend(whole, {}, wanted))
    assert by_itself(LESLIE.mend(carried_out(whole, done), {}, wanted)) == []


@given(stories(8), stories(6), stories(6))
def test_united_versions_are_mended_together(before: list[Step], here: list[Step], there: list[Step]) -> None:
    """Which threads an objective has follows from what a plan makes of the relations, not from what is there."""
    base = Leslie().play(before)
    ours, theirs = base.continued("a", 0).play(here), base.continued("b", 3).play(there)
    files = {RELATIONS: (ours.relations_file(), theirs.relations_file())}
    files[OBJECTIVES] = (ours.objectives_file(), theirs.objectives_file())
    written: dict[str, bytes | None] = {}
    for record, (workspace, store) in files.items():
        merged = LESLIE.merge(record, store, workspace)
        assert merged is None or isinstance(merged, bytes)
        written[record] = merged or workspace
    found = read(ours)
    done = by_itself(LESLIE.mend(found, written))
    there_then = {each.path: File(each.content) for each in done if each.content is not None}
    files_then = {record: File(content) for record, content in written.items()} | there_then
    whole = replace(found, files={**found.files, **files_then})
    assert not [each for each in examine(whole) if each.id.startswith(("F5", "F8"))]


def test_one_rewriting_says_everything() -> None:
    played = Leslie().play([ROOT, CHILD])
    value: dict[str, Any] = json.loads(played.relations_file())
    value["relations"][FIRST]["children"] = []
    value["metadata"]["thread_count"] = 7
    value["threads"][SECOND]["created_at"] = "2026-02-08T13:00:00.042+01:00"
    found = read(played, relations=as_bytes(value))
    (done,) = LESLIE.mend(found, {})
    assert done == DerivedRepair(
        id=RELATIONS,
        path=RELATIONS,
        words=(
            f'threads.{SECOND}.created_at: the text "2026-02-08T13:00:00.042+01:00" -> 2026-02-08T12:00:00.042Z',
            f"{FIRST}: children + {SECOND}",
            "thread_count 7 -> 2",
        ),
        before=as_bytes(value),
        content=played.relations_file(),
    )


def test_a_plan_that_writes_the_file_leaves_nothing_to_mend() -> None:
    played = Leslie().play([ROOT, CHILD])
    found = read(played, relations=b"{", backup=b"{")
    assert LESLIE.mend(found, {RELATIONS: played.relations_file()}) == ()
    assert LESLIE.mend(None, {}) == ()


def test_directories_that_a_plan_makes_and_takes() -> None:
    played = Leslie().play([ROOT, CHILD])
    files = {RELATIONS: File(played.relations_file()), OBJECTIVES: File(played.objectives_file())}
    empty = LeslieTree(files, {FIRST: ThreadDirectory(files=frozenset({"plan.md"}), directories=STANDARD)})
    (made,) = LESLIE.mend(empty, {})
    assert made == DerivedRepair(
        f"F4:{SECOND}",
        f"threads/{SECOND}",
        (f"threads/{SECOND} made, empty",),
        makes=tuple(f"threads/{SECOND}/{name}" for name in ("context/inherited", "context/live", ".meta/transcripts")),
    )
    assert LESLIE.mend(empty, {f"threads/{SECOND}/plan.md": b""}) == ()
    gone: dict[str, bytes | None] = {f"threads/{SECOND}/plan.md": b"", f"threads/{FIRST}/plan.md": None}
    assert [each.id for each in LESLIE.mend(empty, gone)] == [f"F4:{FIRST}"]
    assert [each.id for each in LESLIE.mend(empty, {f"threads/{FIRST}": None})] == [f"F4:{FIRST}", f"F4:{SECOND}"]
    other = {f"threads/{SECOND}/plan.md": None, "permissions.json": b"{}", "logs/workers/a.ndjson": b""}
    assert LESLIE.mend(empty, other) == (made,)
    assert LESLIE.mend(None, {RELATIONS: played.relations_file(), OBJECTIVES: None})[0].makes


def test_what_is_left_over_goes() -> None:
    played = Leslie().play([ROOT])
    found = replace(
        read(played),
        locks={RELATIONS + ".lock": Lock("a directory", 60.0)},
        leftovers={TEMPORARY: Leftover(RELATIONS, 9999.0, File(b"{"))},
    )
    assert LESLIE.mend(found, {}) == (
        DerivedRepair(
            f"F13:{RELATIONS}.lock",
            f"{RELATIONS}.lock",
            (f"{RELATIONS}.lock removed",),
            clears=(f"{RELATIONS}.lock",),
        ),
        DerivedRepair(f"F14:{TEMPORARY}", TEMPORARY, (f"{TEMPORARY} removed",), before=b"{"),
    )
    is_mended(found)


def test_what_is_no_file_in_the_place_of_one_that_is_left_over() -> None:
    played = Leslie().play([ROOT])
    found = replace(read(played), leftovers={TEMPORARY: Leftover(RELATIONS, 9999.0, File(None, "a directory"))})
    assert LESLIE.mend(found, {}) == ()
    assert examine(found)[0].found == "a directory in the place of a temporary file"


def test_on_request() -> None:
    played = Leslie().play([ROOT, CHILD])
    found = read(played)
    orphans = {name: ThreadDirectory(files=frozenset({"plan.md"})) for name in ("thread-a", "thread-b")}
    found = replace(found, threads={**found.threads, **orphans})
    value = json.loads(played.objectives_file())
    value["objectives"] = {"obj-00000001": value["objectives"]["obj-00000001"]}
    value["metadata"]["objective_count"] = 1
    found = replace(found, files={**found.files, OBJECTIVES: File(as_bytes(value))})
    offered = LESLIE.mend(found, {})
    assert [(each.id, each.path, each.before) for each in offered] == [
        (f"F3:{name}", RELATIONS, played.relations_file()) for name in orphans
    ]
    assert all("starts an agent" in each.asked for each in offered)
    (relations, objectives) = LESLIE.mend(found, {}, {each.id for each in offered})
    assert (relations.id, objectives.id, relations.asked) == (RELATIONS, OBJECTIVES, "")
    assert json.loads(relations.content or b"")["threads"].keys() == {FIRST, SECOND, *orphans}
    assert set(orphans) <= set(json.loads(objectives.content or b"")["objectives"]["obj-00000001"]["thread_ids"])


def test_what_differs_in_one_thread_is_one_request() -> None:
    played = Leslie().play([ROOT])
    played.log("update", thread_id="mine", title="New", status="frozen")
    played.threads["mine"] = {**played.threads[FIRST], "id": "mine", "title": "Old"}
    played.relations["mine"] = {name: [] for name in played.relations[FIRST]}
    found = replace(read(played), files={RELATIONS: File(played.relations_file())})
    (done,) = LESLIE.mend(found, {})
    assert done.id == "F6:mine"
    assert [words.split(" ")[1] for words in done.words] == ["title", "status"]
    assert json.loads(done.content or b"")["threads"]["mine"]["title"] == "New"


def test_thousands_of_orphans_are_offered_some_at_a_time() -> None:
    played = Leslie().play([ROOT])
    found = read(played)
    orphans = {f"thread-{number:08x}": ThreadDirectory(files=frozenset({"plan.md"})) for number in range(1, 200)}
    value = json.loads(played.objectives_file())
    value["objectives"]["obj-00000001"]["thread_ids"] = sorted([FIRST, *orphans])
    found = replace(
        found, threads={**found.threads, **orphans}, files={**found.files, OBJECTIVES: File(as_bytes(value))}
    )
    assert len(LESLIE.mend(found, {})) == 16


def test_many_directories_are_made_in_one_go() -> None:
    played = Leslie().play([ROOT] * 150)
    assert len(is_mended(replace(read(played), threads={})).threads) == 150


def test_a_good_backup_is_never_written() -> None:
    played = Leslie().play([ROOT])
    backup = played.relations_file()
    played.play([CHILD])
    found = read(played, relations=played.relations_file()[:-9], backup=backup)
    whole = is_mended(found)
    assert whole.backup(RELATIONS).content == backup
    assert whole.file(RELATIONS).content == played.relations_file()  # only derived data was cut off


def test_while_somebody_is_at_work_it_is_told_all_the_same() -> None:
    played = Leslie().play([ROOT, CHILD])
    found = replace(read(played, relations=b""), locks={RELATIONS + ".lock": Lock("a directory", 1.0)})
    found = replace(found, files={**found.files, RELATIONS + ".bak": File(played.relations_file())})
    assert found.busy == f"{RELATIONS}.lock is locked"
    assert [each.path for each in LESLIE.mend(found, {})] == [RELATIONS]

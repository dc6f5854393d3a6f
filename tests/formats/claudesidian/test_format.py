"""Claudesidian as a format of the engine: which entries are records, both sides' versions in one, the mending."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.adapters.claudesidian.files import read_vault
from reconcile.formats import get_format
from reconcile.formats.claudesidian.checks.examine import examine
from reconcile.formats.claudesidian.checks.records import LARGE
from reconcile.formats.claudesidian.format import ClaudesidianFormat
from reconcile.formats.claudesidian.record_files import INDEX, Kind, messages_of, sessions_of
from reconcile.formats.claudesidian.vault import (
    NexusFiles,
    SplitFiles,
    VaultFiles,
    VaultSnapshot,
    by_path,
    with_written,
)
from reconcile.formats.json import javascript
from reconcile.model.format import DerivedRepair, Entry, TwoContinuations
from reconcile.model.snapshot import METADATA, Fault, Metadata
from tests.support.formats.claudesidian import (
    CORPUS,
    NOW,
    conversation,
    events,
    files,
    index_of,
    needs_corpus,
    session,
    vault,
    workspace,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

VAULT = ClaudesidianFormat()
WS, CONV = ".workspaces/ws_a.json", ".conversations/conv_a.json"
STREAM = ".nexus/workspaces/ws_ws_a.jsonl"
INDEXES = [f"{kind.directory}/{INDEX}" for kind in Kind]

ENTRIES = [
    (WS, Entry.RECORD),
    (CONV, Entry.RECORD),
    (STREAM, Entry.RECORD),
    (".conversations/index.json", Entry.RECORD),
    (".workspaces/.trace-schema.json", Entry.RECORD),
    (".workspaces/backups/ws_a-2025.json.bak", Entry.RECORD),
    (".workspaces/ws_b (conflict).json", Entry.RECORD),
    (".nexus/migration-status.json", Entry.RECORD),
    (".nexus/conversations/conv_conv_a.jsonl", Entry.RECORD),
    (".nexus/cache.db", Entry.IGNORED),
    (".nexus/cache.db-wal", Entry.IGNORED),
    (".workspaces/cache.db", Entry.RECORD),
    (".workspaces/.reconcile-tmp-1", Entry.IGNORED),
    (".workspaces/.ws_a.json.swp", Entry.IGNORED),
    (".workspaces/ws_a.json~", Entry.IGNORED),
    (".workspaces/ws_\n.json", Entry.FOREIGN),
    (".workspaces", Entry.FOREIGN),
    ("Notes.md", Entry.IGNORED),
    (".obsidian/app.json", Entry.IGNORED),
    (".workspaces-old/ws_a.json", Entry.IGNORED),
]
DIRECTORIES = [
    (".workspaces", Entry.ENTER),
    (".workspaces/backups", Entry.ENTER),
    (".nexus/workspaces", Entry.ENTER),
    (".workspaces/.reconcile-old", Entry.IGNORED),
    ("Notes", Entry.IGNORED),
    (".obsidian", Entry.IGNORED),
]


@pytest.mark.parametrize(("path", "expected"), ENTRIES)
def test_what_a_file_is(path: str, expected: Entry) -> None:
    assert VAULT.entry(path, directory=False) is expected


@pytest.mark.parametrize(("path", "expected"), DIRECTORIES)
def test_what_a_directory_is(path: str, expected: Entry) -> None:
    assert VAULT.entry(path, directory=True) is expected


def test_files_that_the_user_leaves_out() -> None:
    form = get_format("claudesidian", ("*.bak", ".nexus/migration-*"))
    ignored = [path for path, _ in ENTRIES if form.places and form.places.entry(path, directory=False) is Entry.IGNORED]
    assert {".workspaces/backups/ws_a-2025.json.bak", ".nexus/migration-status.json"} <= set(ignored)
    assert WS not in ignored


def test_a_record_is_its_file() -> None:
    assert isinstance(get_format("claudesidian"), type(VAULT))
    assert (VAULT.name, VAULT.unit_of(""), VAULT.lock_name(WS)) == ("claudesidian", METADATA, None)


INVALID = [
    (WS, b"{"),
    (WS, b'{"name": "no id"}'),
    (CONV, b'{"id": "c", "messages": {}}'),
    (INDEXES[0], b"{}"),
    (INDEXES[1], b'{"conversations": {}'),
    (STREAM, b'\n{"torn": \n[1]\n'),
]
VALID = [
    (WS, javascript.stringify(workspace("ws_a", "A name")), "A name"),
    (WS, b'{"id": "ws_a", "name": 1}', None),
    (CONV, javascript.stringify(conversation("c", title="A title")), "A title"),
    (INDEXES[0], javascript.stringify(index_of(Kind.WORKSPACE, {})), None),
    (STREAM, events({"type": "workspace_created"}) + b'{"torn', None),
    (".workspaces/.trace-schema.json", b"anything", None),
    (".workspaces/backups/ws_a.json.bak", b"\x00", None),
    (".nexus/migration-status.json", b"{", None),
]


@pytest.mark.parametrize(("path", "content"), INVALID)
def test_what_is_never_copied(path: str, content: bytes) -> None:
    found = VAULT.read_record(path, content)
    assert isinstance(found, Fault)
    assert (found.file, found.incomplete) == (path, False)


@pytest.mark.parametrize("path", [WS, CONV, STREAM])
@pytest.mark.parametrize("content", [b"", b"\0\0\0", b" \n"])
def test_what_is_empty_is_refilled_from_the_other_side(path: str, content: bytes) -> None:
    found = VAULT.read_record(path, content)
    assert isinstance(found, Fault)
    assert (found.file, found.incomplete) == (path, True)


@pytest.mark.parametrize(("path", "content", "title"), VALID)
def test_what_is_valid(path: str, content: bytes, title: str | None) -> None:
    found = VAULT.read_record(path, content)
    assert isinstance(found, Metadata)
    assert (found.title, found.content) == (title, content)


# Two versions in one.

CREATED = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a"}, "id": "e1", "timestamp": 1}


def event(id_: str, time: int, **more: Any) -> dict[str, Any]:
    return {"type": "session_created", "workspaceId": "ws_a", "data": {"id": id_}, "id": id_, "timestamp": time, **more}


def joined(path: str, one: bytes, other: bytes) -> bytes | Fault | None:
    """The same whichever side is the store's, and nothing is added by what is in it already."""
    both = VAULT.merge(path, one, other)
    assert VAULT.merge(path, other, one) == both
    if isinstance(both, bytes):
        for each in (one, other):
            assert VAULT.merge(path, both, each) == both
    assert not isinstance(both, TwoContinuations)
    return both


def test_a_stream_that_went_on_is_no_conflict() -> None:
    short, long = events(CREATED), events(CREATED, event("s1", 5))
    assert joined(STREAM, short, long) == long
    assert joined(STREAM, short + b'{"half', long) == long
    assert joined(STREAM, long.replace(b"\n", b"\r\n"), long) == long.replace(b"\n", b"\r\n"), "the same events"


def test_two_tails_are_united_by_event() -> None:
    one = events(CREATED, event("s1", 5), event("s2", 9))
    other = events(CREATED, event("s3", 7))
    assert joined(STREAM, one, other) == events(CREATED, event("s1", 5), event("s3", 7), event("s2", 9))


def test_what_only_a_person_can_unite() -> None:
    one, other = events(CREATED, event("s1", 5)), events(CREATED, event("s1", 6))
    found = joined(STREAM, one, other)
    assert isinstance(found, Fault)
    assert (found.file, found.found) == (STREAM, 'events that differ between the sides: "s1"')
    marked = b"<<<<<<< HEAD\n" + events(event("s1", 5)) + b"=======\n>>>>>>> other\n"
    broken = joined(STREAM, events(CREATED) + marked, events(CREATED, event("s2", 6)))
    assert isinstance(broken, Fault)
    assert broken.found == "git conflict markers, and different events on both sides"


def test_neither_side_of_a_record_loses_what_it_has() -> None:
    one = workspace("ws_a", sessions={"s1": session("s1", "t1", "t2")}, lastAccessed=3, description="new")
    other = workspace("ws_a", sessions={"s1": session("s1", "t1", "t3"), "s2": session("s2")}, lastAccessed=2)
    both = joined(WS, javascript.stringify(one), javascript.stringify(other))
    assert isinstance(both, bytes)
    found = json.loads(both)
    assert {key: list(each["memoryTraces"]) for key, each in sessions_of(found).items()} == {
        "s1": ["t1", "t2", "t3"],
        "s2": [],
    }
    assert (found["description"], found["lastAccessed"]) == ("new", 3)


def test_messages_of_both_sides() -> None:
    one, other = conversation("conv_a", "one", "two", updated=7), conversation("conv_a", "one", updated=9)
    other["messages"].append({"id": "msg_9", "role": "user", "content": "three", "timestamp": 9})
    both = joined(CONV, javascript.stringify(one), javascript.stringify(other))
    assert isinstance(both, bytes)
    found = json.loads(both)
    assert [message["content"] for message in messages_of(found)] == ["one", "two", "three"]
    assert (found["message_count"], found["updated"]) == (3, 9)


def test_what_the_table_decides() -> None:
    mine = javascript.stringify(workspace("ws_a"))
    assert joined(WS, mine, javascript.stringify(workspace("ws_b"))) is None, "two records"
    assert joined(WS, mine, mine + b"\n") is None, "not the program's bytes"
    assert joined(WS, mine, b"{") is None
    index = javascript.stringify(index_of(Kind.WORKSPACE, {}))
    assert joined(INDEXES[0], index, index + b"\n") is None
    assert joined(".workspaces/.trace-schema.json", b"1", b"2") is None


LOST = [
    (WS, {"s1": ("t1", "t2")}, {"s1": ("t1", "t3")}, True),
    (WS, {"s1": (), "s2": ()}, {"s1": ()}, True),
    (WS, {"s1": ("t1",)}, {"s1": ("t1", "t2"), "s2": ()}, False),
]


@pytest.mark.parametrize(("path", "before", "after", "lost"), LOST)
def test_which_edits_of_a_workspace_lose_something(
    path: str, before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]], lost: bool
) -> None:
    old, new = (
        javascript.stringify(workspace("ws_a", sessions={key: session(key, *traces) for key, traces in each.items()}))
        for each in (before, after)
    )
    assert VAULT.loses(path, old, new) is lost


def test_which_other_edits_lose_something() -> None:
    one, two = (javascript.stringify(conversation("conv_a", *texts)) for texts in (("one",), ("one", "two")))
    assert (VAULT.loses(CONV, two, one), VAULT.loses(CONV, one, two)) == (True, False)
    assert (VAULT.loses(CONV, two, b"{"), VAULT.loses(CONV, b"{", two)) == (False, False)
    assert VAULT.loses(STREAM, events(CREATED, event("s1", 5)), events(CREATED, event("s2", 6)))
    status = ".nexus/migration-status.json"
    assert [VAULT.loses(status, b"{}", after) for after in (b"", b"\0", b"[]")] == [True, True, False]
    merged = [VAULT.merge(status, *each) for each in ((b"{}", b""), (b" ", b"[]"), (b"{}", b"[]"))]
    assert merged == [b"{}", b"[]", None]


@pytest.mark.parametrize("seed", range(12))
def test_random_versions_of_a_record_are_united_without_a_loss(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        one, other = (
            workspace(
                "ws_a",
                lastAccessed=rng.randrange(3),
                sessions={
                    f"s{number}": session(f"s{number}", *(f"t{each}" for each in range(4) if rng.random() < 0.5))
                    for number in rng.sample(range(4), rng.randrange(4))
                },
            )
            for _ in range(2)
        )
        both = joined(WS, javascript.stringify(one), javascript.stringify(other))
        assert isinstance(both, bytes)
        found = sessions_of(json.loads(both))
        for version in (one, other):
            for key, each in sessions_of(version).items():
                assert each["memoryTraces"].keys() <= found[key]["memoryTraces"].keys()


# Mending.


def mend(
    there: VaultFiles, written: Mapping[str, bytes | None] | None = None, wanted: tuple[str, ...] = ()
) -> tuple[DerivedRepair, ...]:
    """Each value is made of what the former ones leave, and nothing is left to be done by itself after them."""
    before = written or {}
    found = VAULT.mend(VaultSnapshot(there, NOW), before, wanted)
    assert VAULT.mend(VaultSnapshot(there, NOW + 86_400_000), before, wanted) == found, "the same in another worktree"
    contents = by_path(with_written(there, before))
    done: dict[str, bytes | None] = {}
    for each in found:
        assert each.words
        assert not each.makes
        assert not each.clears
        if not each.asked:
            assert (each.id, contents.get(each.path)) == (each.path, each.before)
            assert each.path not in done, "one value for each file"
            assert each.content != each.before
            done[each.path] = each.content
    after = with_written(there, {**before, **done})
    again = VAULT.mend(VaultSnapshot(after, NOW + 5), {})
    assert [each.id for each in again] == [each.id for each in found if each.asked]
    assert not [each for each in examine(after, NOW + 5) if each.repairable]
    for each in again:
        assert by_path(after).get(each.path) == each.before
    return found


def test_nothing_of_a_vault_that_is_in_order() -> None:
    assert mend(vault(files(workspace("ws_a")), files(conversation("conv_a", "hello")))) == ()
    assert mend(VaultFiles()) == ()
    assert VAULT.mend(None, {}) == ()


def test_the_index_without_which_the_program_shows_nothing() -> None:
    (made,) = mend(vault(files(workspace("ws_a"), index=None)))
    assert (made.path, made.before, made.words) == (INDEXES[0], None, ("no index.json: rebuilt from 1 workspace",))
    (torn,) = mend(vault(files(workspace("ws_a"), index=b"{")))
    assert (torn.before, torn.content) == (b"{", made.content)
    assert torn.words[0].endswith(": rebuilt from 1 workspace")


def test_words_name_the_records() -> None:
    old = [workspace("ws_a", "Alpha Work", rootFolder="Old"), workspace("ws_gone", "Gone")]
    index = index_of(Kind.WORKSPACE, files(*old).files)
    new = workspace("ws_a", "Alpha constructor", rootFolder="New", sessions={"s1": session("s1", "t1")})
    (made,) = mend(vault(files(new, workspace("ws_b", "Beta"), index=index)))
    assert made.words == (
        'workspaces + ws_b ("Beta")',
        "name, rootFolder, sessionCount, traceCount as in the file: ws_a",
        'byName + "constructor": ws_a',
        'byName - "work": ws_a',
        'sessions + "s1": ws_a',
        'byFolder "New": none → ws_a',
        'byFolder "/": ws_gone → ws_b',
        'byFolder "Old": ws_a → none',
        "ghost ws_gone dropped",
    )


def test_of_many_new_records_a_few_are_named() -> None:
    known = index_of(Kind.WORKSPACE, {})
    (made,) = mend(vault(files(*(workspace(f"ws_{number}") for number in range(12)), index=known)))
    assert "workspaces + 4 more" in made.words


def test_a_ghost_in_the_date_ranges_alone() -> None:
    index = index_of(Kind.CONVERSATION, files(conversation("conv_a", "hello")).files)
    index["byDateRange"] = [{"start": 0, "end": 1, "conversationIds": ["conv_gone"]}]
    (made,) = mend(vault(files(), files(conversation("conv_a", "hello"), index=index)))
    assert "conv_gone" in made.words[0]


def test_records_come_first_and_the_index_is_of_what_they_will_be() -> None:
    there = vault(files(), files(conversation("conv_a", "one", "two", message_count=1)))
    index, record = sorted(mend(there), key=lambda each: "index" not in each.path)
    assert (record.path, record.words) == (CONV, ("message_count is 1, but it has 2 messages: correct the count",))
    assert index.content is not None
    assert json.loads(index.content)["conversations"]["conv_a"]["message_count"] == 2
    assert index.words == ("message_count as in the file: conv_a",)


def test_what_a_plan_writes_before_is_what_counts() -> None:
    there = vault(files(workspace("ws_a"), workspace("ws_b")))
    new = javascript.stringify(workspace("ws_c", "Gamma"))
    (made,) = mend(there, {WS: None, ".workspaces/ws_c.json": new, "Notes.md": b"x", ".nexus/other": b"x"})
    assert made.content is not None
    assert list(json.loads(made.content)["workspaces"]) == ["ws_b", "ws_c"]
    stored = {path: content for path, content in by_path(there).items() if isinstance(content, bytes)}
    assert mend(VaultFiles(), stored) == (), "a vault that is brought back whole"
    (index,) = mend(VaultFiles(), {WS: stored[WS]})
    assert (index.path, index.before) == (INDEXES[0], None)
    assert mend(there, dict.fromkeys(stored)) == (), "nothing is left"


def test_a_stream_that_a_plan_writes_before() -> None:
    torn = events(CREATED) + b'{"half'
    (made,) = mend(VaultFiles(), {STREAM: torn})
    assert (made.path, made.before, made.content) == (STREAM, torn, events(CREATED))
    assert "truncated last line" in made.words[0]


def test_an_index_that_knows_more_than_its_files_is_kept_until_asked() -> None:
    known = files(workspace("ws_a", sessions={"s1": session("s1", "t1", "t2")})).files
    index = index_of(Kind.WORKSPACE, known)
    there = vault(files(workspace("ws_a", sessions={"s1": session("s1", "t1")}), workspace("ws_b"), index=index))
    (offered,) = mend(there)
    assert (offered.id, offered.path) == (f"index:{INDEXES[0]}", INDEXES[0])
    assert "only evidence" in offered.asked
    assert offered.words[0] == 'workspaces + ws_b ("ws_b")'
    (asked,) = mend(there, wanted=(offered.id,))
    assert (asked.id, asked.asked, asked.content) == (INDEXES[0], "", offered.content)


def test_versions_of_one_record_go_into_one_file_when_asked() -> None:
    one, other = workspace("ws_b", sessions={"s1": session("s1")}), workspace("ws_b", sessions={"s2": session("s2")})
    there = vault(files(one, **{"ws_b (conflict).json": other}))
    whole, gone = [each for each in mend(there) if each.asked]
    assert whole.id == gone.id == "C10:.workspaces/ws_b (conflict).json"
    assert (whole.path, gone.path, gone.content) == (".workspaces/ws_b.json", ".workspaces/ws_b (conflict).json", None)
    assert gone.words == ("removed: .workspaces/ws_b.json has its content",)
    done = {each.path: each for each in mend(there, wanted=(whole.id,))}
    assert set(done) == {whole.path, gone.path, INDEXES[0]}
    assert json.loads(done[whole.path].content or b"")["sessions"].keys() == {"s1", "s2"}


def test_lines_that_are_no_events_are_set_aside_together_when_asked() -> None:
    content = events(CREATED) + b"one\n" + events(event("s1", 2)) + b"two\n" + events(event("s2", 3)) + b'{"half'
    nexus = NexusFiles({Kind.WORKSPACE: {"ws_ws_a.jsonl": content}})
    torn, broken = mend(vault(nexus=nexus))
    assert (torn.id, broken.id) == (STREAM, f"C12:{STREAM}")
    assert torn.content == broken.before == content.removesuffix(b'{"half')
    assert broken.content == events(CREATED) + events(event("s1", 2)) + events(event("s2", 3))
    assert len(broken.words) == 2
    (both,) = mend(vault(nexus=nexus), wanted=(broken.id,))
    assert (both.before, both.content) == (content, broken.content)


def test_two_requests_about_one_file() -> None:
    copy = workspace("ws_a", sessions={"s1": session("s1", "t1", name="x" * LARGE), "s2": session("s2")})
    state = {"id": "st", "name": "st", "created": 1, "snapshot": {"state": {"workspace": copy}}}
    there = vault(files(workspace("ws_a", sessions={"s1": session("s1", states={"st": state})})))
    back, smaller = mend(there)
    assert (back.id, smaller.id) == (f"C6:{WS}", f"C7:{WS}")
    found = {each.path: each for each in mend(there, wanted=(back.id, smaller.id)) if not each.asked}
    assert set(found) == {WS, INDEXES[0]}
    sessions = json.loads(found[WS].content or b"")["sessions"]
    assert list(sessions) == ["s1", "s2"]
    assert sessions["s1"]["states"]["st"]["snapshot"]["state"]["workspace"]["sessions"] == {}


def test_what_the_index_says_of_a_torn_record_stays() -> None:
    torn = workspace("ws_t", "Torn things", rootFolder="Torn", sessions={"s9": session("s9")})
    index = index_of(Kind.WORKSPACE, files(workspace("ws_a"), torn).files)
    (made,) = [
        each
        for each in mend(vault(files(workspace("ws_a", "Alpha"), index=index, **{"ws_t.json": b"{"})))
        if not each.asked
    ]
    new = json.loads(made.content or b"")
    assert new["workspaces"]["ws_t"] == index["workspaces"]["ws_t"]
    assert (new["byName"]["torn"], new["byFolder"]["Torn"], new["sessionsByWorkspace"]["ws_t"]) == (
        ["ws_t"],
        "ws_t",
        ["s9"],
    )
    assert not [word for word in made.words if "ws_t" in word]


def test_what_the_index_says_of_a_torn_conversation_stays() -> None:
    whole = [conversation("conv_a", "hello"), conversation("conv_t", "torn words", created=NOW - 1)]
    index = index_of(Kind.CONVERSATION, files(*whole).files)
    index["byDateRange"] = [{"start": 0, "end": 1, "conversationIds": []}]
    there = files(conversation("conv_a", "hello there"), index=index, **{"conv_t.json": b"{"})
    (made,) = mend(vault(files(), there))
    new = json.loads(made.content or b"")
    assert (new["byContent"]["words"], new["byDateRange"][0]["conversationIds"]) == (["conv_t"], ["conv_t"])


def test_over_what_can_not_be_read_nothing_is_written() -> None:
    split = files(workspace("ws_a"))
    link = Fault(INDEX, "a symbolic link", "a regular file")
    found = VAULT.mend(VaultSnapshot(vault(SplitFiles({**split.files, INDEX: link})), NOW), {})
    assert found == ()


@needs_corpus
@pytest.mark.parametrize("scenario", sorted(each.name for each in CORPUS.glob("*")) if CORPUS.is_dir() else [])
def test_the_corpus(scenario: str) -> None:
    there = read_vault(str(CORPUS / scenario))
    found = {each.id: each for each in mend(there)}
    if scenario != "index-drift":
        assert not found
        return
    assert set(found) == {*INDEXES, "C10:.workspaces/ws_b (conflict).json"}
    assert 'workspaces + ws_ctor ("Constructor patterns")' in found[INDEXES[0]].words
    assert "ghost ws_gone dropped" in found[INDEXES[0]].words
    assert any("constructor" in word for word in found[INDEXES[1]].words)
    everything = {path: content for path, content in by_path(there).items() if isinstance(content, bytes)}
    assert {each.path for each in mend(VaultFiles(), everything)} == {each.path for each in found.values()}


WORDS = ["alpha", "constructor", "__proto__", "2025", "résumé", "AI", "don't"]


def _random_split(rng: random.Random, kind: Kind) -> SplitFiles:
    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randrange(4)))

    def record(id_: str) -> dict[str, Any]:
        if kind is Kind.CONVERSATION:
            return conversation(id_, *(text() for _ in range(rng.randrange(3))), title=text())
        inner = {
            f"s{each}": session(f"s{each}", *map(str, range(rng.randrange(3)))) for each in range(rng.randrange(3))
        }
        return workspace(id_, text(), description=text(), rootFolder=rng.choice("ab"), sessions=inner)

    then = [record(f"r{number}") for number in rng.sample(range(6), 4)]
    now = [each if rng.random() < 0.5 else record(each["id"]) for each in then if rng.random() < 0.8]
    for each in now:
        if kind is Kind.CONVERSATION and rng.random() < 0.3:
            each["message_count"] = 7
        if kind is Kind.WORKSPACE and rng.random() < 0.3:
            del each["sessions"]
    index = rng.choice([index_of(kind, files(*then).files), None, b"{"])
    more = {"r9.json": b"{"} if rng.random() < 0.3 else {}
    if now and rng.random() < 0.3:
        more["r0 (conflict).json"] = javascript.stringify(record(now[0]["id"]))
    split = files(*now, index=None, **more).files
    return SplitFiles(split if index is None else {**split, INDEX: _content(index)})


def _content(value: Any) -> bytes:
    return value if isinstance(value, bytes) else javascript.stringify(value)


def _random_stream(rng: random.Random) -> bytes:
    lines = [events(CREATED)] + [events(event(f"s{rng.randrange(4)}", rng.randrange(9))) for _ in range(4)]
    if rng.random() < 0.3:
        lines.insert(rng.randrange(4), b"nonsense\n")
    return b"".join(lines) + (b'{"half' if rng.random() < 0.3 else b"")


@pytest.mark.parametrize("seed", range(40))
def test_random_vaults_are_mended_at_once(seed: int) -> None:
    rng = random.Random(seed)
    nexus = NexusFiles({Kind.WORKSPACE: {"ws_ws_a.jsonl": _random_stream(rng)}}) if rng.random() < 0.3 else None
    there = VaultFiles({kind: _random_split(rng, kind) for kind in Kind}, nexus)
    offered = [each.id for each in mend(there) if each.asked]
    mend(there, wanted=tuple(offered))
    mend(VaultFiles(), {path: content for path, content in by_path(there).items() if isinstance(content, bytes)})

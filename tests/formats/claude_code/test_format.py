"""Claude Code as a format of the engine: which entries are records, versions of a session, sessions in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats import get_format
from reconcile.formats.claude_code.format import ANY, ClaudeCodeFormat, LiveSessions
from reconcile.formats.claude_code.names import directory_name
from reconcile.model.format import Entry, TwoContinuations
from reconcile.model.snapshot import METADATA, Fault, Metadata
from tests.agents.program import directory_name as name_by_the_program
from tests.agents.record import RECORDED

if TYPE_CHECKING:
    from pathlib import Path

CLAUDE = ClaudeCodeFormat()
ID, OTHER_ID = "83fbb9a0-7f21-4118-8828-12337376277a", "034ea297-b3cf-45ab-a5fb-4b4f6e1aca99"
SESSION, AGENT, NOTE = f"{ID}.jsonl", f"{ID}/subagents/agent-a00ec085fdcfce696.jsonl", "memory/MEMORY.md"
META, RESULT = f"{ID}/subagents/agent-a00ec085fdcfce696.meta.json", f"{ID}/tool-results/bqwkhw397.txt"

ENTRIES = [
    (SESSION, Entry.RECORD),
    ("agent-a00ec085.jsonl", Entry.RECORD),
    (AGENT, Entry.RECORD),
    (META, Entry.RECORD),
    (RESULT, Entry.RECORD),
    (f"{ID}/a-new-kind/of/file.bin", Entry.RECORD),
    (NOTE, Entry.RECORD),
    ("memory/topics/deep.md", Entry.RECORD),
    (ID, Entry.IGNORED),
    ("memory", Entry.IGNORED),
    (f"{ID}.jsonl.bak", Entry.IGNORED),
    (f"{ID.upper()}.jsonl", Entry.IGNORED),
    (f"{ID[:-1]}.jsonl", Entry.IGNORED),
    (f"{ID}\n.jsonl", Entry.IGNORED),
    ("notes.jsonl", Entry.IGNORED),
    ("sessions-index.json", Entry.IGNORED),
    ("agent-.jsonl", Entry.IGNORED),
    (f"other/{SESSION}", Entry.IGNORED),
    (f"{ID}/subagents/.reconcile-tmp-1", Entry.IGNORED),
    (f"{ID}/tool-results/.a.txt.swp", Entry.IGNORED),
    ("memory/MEMORY.md~", Entry.IGNORED),
    ("memory/a\nb.md", Entry.FOREIGN),
    (f"{ID}/tool-results/\udcff.txt", Entry.FOREIGN),
]
DIRECTORIES = [
    ("memory", Entry.ENTER),
    ("memory/topics", Entry.ENTER),
    (ID, Entry.ENTER),
    (f"{ID}/subagents", Entry.ENTER),
    (SESSION, Entry.IGNORED),
    ("agent-a00ec085.jsonl", Entry.IGNORED),
    ("sessions", Entry.IGNORED),
    (".reconcile-old", Entry.IGNORED),
    (f"{ID}/a\nb", Entry.FOREIGN),
]


@pytest.mark.parametrize(("path", "expected"), ENTRIES)
def test_the_kind_of_a_file(path: str, expected: Entry) -> None:
    assert CLAUDE.entry(path, directory=False) is expected


@pytest.mark.parametrize(("path", "expected"), DIRECTORIES)
def test_the_kind_of_a_directory(path: str, expected: Entry) -> None:
    assert CLAUDE.entry(path, directory=True) is expected


def test_every_recorded_file_is_a_record() -> None:
    paths = [path for path in RECORDED.rglob("*") if path.is_file()]
    kinds = {str(path): CLAUDE.entry("/".join(path.relative_to(RECORDED).parts[2:]), directory=False) for path in paths}
    assert set(kinds.values()) == {Entry.RECORD}, kinds


def test_files_that_the_user_leaves_out() -> None:
    places = get_format("claude-code", ("*.txt", "memory/*")).places
    assert places is not None
    kinds = [places.entry(path, directory=False) for path in (RESULT, NOTE, SESSION)]
    assert kinds == [Entry.IGNORED, Entry.IGNORED, Entry.RECORD]


def test_a_record_is_its_file_and_has_one_home() -> None:
    assert isinstance(get_format("claude-code"), ClaudeCodeFormat)
    assert (CLAUDE.name, CLAUDE.unit_of(""), CLAUDE.lock_name(SESSION)) == ("claude-code", METADATA, None)
    assert not CLAUDE.is_shared
    assert (CLAUDE.deletes_old, CLAUDE.noun) == (True, "session")
    logs = [CLAUDE.is_log(path) for path in (SESSION, AGENT, "agent-a.jsonl", META, RESULT, NOTE)]
    assert logs == [True, True, True, False, False, False]


def test_the_id_of_the_program_is_its_session() -> None:
    assert CLAUDE.parse_id(ID) == SESSION
    assert [CLAUDE.parse_id(text) for text in (ID[:8], ID + "\n", ID.upper(), "memory", "")] == [None] * 5


# Names of directories.

NAMES = [
    ("/home/ada/a.b_c ~+@9", "-home-ada-a-b-c----9"),
    ("/home/ada/ünïcode-日本", "-home-ada--n-code---"),
    ("/home/ada/one \N{BALLOON}", "-home-ada-one---"),
    ("/home/ada/" + "long" * 60, ("-home-ada-" + "long" * 60)[:200] + "-jz8zb2"),
    ("/home/ada/" + "long" * 61, ("-home-ada-" + "long" * 61)[:200] + "-z5yoji"),
    ("/home/ada/" + "länger" * 30, "-home-ada-" + "l-nger" * 30),
    ("/" + "x" * 199, "-" + "x" * 199),
    ("/" + "x" * 200, "-" + "x" * 199 + "-d0i18x"),
    ("/a/b-c", "-a-b-c"),
    ("/a/b/c", "-a-b-c"),
]


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_the_name_of_a_directory(path: str, name: str) -> None:
    assert directory_name(path) == name


@given(st.text(max_size=300))
def test_the_name_is_the_one_that_the_program_was_seen_to_use(path: str) -> None:
    """`make agents` compares the names of the helper with those of the program itself."""
    assert directory_name("/" + path) == name_by_the_program("/" + path)


def test_a_path_that_is_not_utf_8_has_a_name() -> None:
    assert directory_name("/home/\udcff") == "-home--"


# Reading.

A, B, C = b'{"n":1}\n', b'{"n":2}\n', b'{"n":3}\n'
TORN = b'{"n":'
VALID = [A, A + B, A[:-1], A + TORN, b"no object\n" + A, A + b"\0\0\0\n" + B, b"\n\n" + A, b"[]\n{}", A + b"\xff\n"]
FAULTS = [
    (b"no object\n", "no line with a JSON object", False),
    (b"[1]\n2\n" + TORN, "no line with a JSON object", False),
    (b"\0\0\n", "no line with a JSON object", False),
    (b" \n\n", "no whole line", True),
    (b"\0" * 5000, "no whole line", True),
    (TORN, "no whole line", True),
]


@pytest.mark.parametrize("content", VALID)
def test_one_object_makes_a_session(content: bytes) -> None:
    read = CLAUDE.read_log(SESSION, [content]).record
    assert isinstance(read, Metadata)
    assert (read.title, read.content) == (None, b"")


@pytest.mark.parametrize("chunks", [[], [b""]])
def test_a_file_without_a_byte_is_a_session_that_was_not_begun(chunks: list[bytes]) -> None:
    read = CLAUDE.read_log(SESSION, chunks).record
    assert isinstance(read, Metadata)
    assert (read.title, read.content) == (None, b"")


@pytest.mark.parametrize(("content", "problem", "incomplete"), FAULTS)
def test_no_object_is_a_fault(content: bytes, problem: str, *, incomplete: bool) -> None:
    read = CLAUDE.read_log(SESSION, [content]).record
    assert read == Fault(SESSION, problem, "one JSON object in each line", incomplete=incomplete)


@pytest.mark.parametrize("path", [META, RESULT, NOTE])
@pytest.mark.parametrize("content", [b"", b"\0", b"\xff any bytes"])
def test_any_other_file_is_taken_as_it_is(path: str, content: bytes) -> None:
    read = CLAUDE.read_record(path, content)
    assert isinstance(read, Metadata)
    assert (read.title, read.content) == (None, content)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*/*/*.jsonl")), ids=lambda path: path.parent.name)
def test_recorded_sessions_have_their_prompt_or_their_summary_as_title(path: Path) -> None:
    content = path.read_bytes()
    read = CLAUDE.read_log(path.name, [content]).record
    assert isinstance(read, Metadata)
    if b'"type":"summary"' in content:
        assert read.title in ("This is reply 2.", "This is reply 4.")
    elif path.name.startswith("agent-"):
        assert read.title in (None, "Count to three.")
    else:
        assert read.title == "The first prompt."


# Two versions.

CONTINUED = [
    (A, A + B),
    (A[:-1], A + B),
    (b"", A),
    (b" \n\0\0", A),
    (A + TORN, A + TORN + b"2}\n"),
    (A + TORN, A + TORN + b"\n" + B),
    (A + TORN, A + TORN + B),
    (A + TORN, A + B),
    (A + TORN, A + B[:-1]),
    (A + b"\0\0", A + B),
    (b"no object\n" + A, b"no object\n" + A + b"none\n"),
]
TWO = [
    (A + B, A + C + C),
    (A + B[:-1], A + C + C),
    (A + rb'{"n":"\ud83d"}', A + C + C + C),
    (A + B + TORN, A + C + C),
    (A + TORN + b"\n" + B, A + B + C),
    (A + TORN + B, A + TORN + b"\n" + B),
    (A + TORN + b'"a long text that was cut', A + B),
    (b'{"torn', A + B),
    (A, B + A),
    (A.replace(b"1", b"9") + B, A + B + C),
]


@pytest.mark.parametrize(("shorter", "longer"), CONTINUED)
def test_the_shorter_gives_way_to_the_longer(shorter: bytes, longer: bytes) -> None:
    for path in (SESSION, AGENT):
        assert CLAUDE.merge(path, shorter, longer) == longer
        assert CLAUDE.merge(path, longer, shorter) == longer
        assert not CLAUDE.loses(path, shorter, longer)
        assert CLAUDE.loses(path, longer, shorter)


@pytest.mark.parametrize(("one", "other"), TWO)
def test_two_continuations_of_a_session_both_stay(one: bytes, other: bytes) -> None:
    for store, workspace in ((one, other), (other, one)):
        assert CLAUDE.merge(SESSION, store, workspace) == TwoContinuations()
        merged = CLAUDE.merge(AGENT, store, workspace)
        assert isinstance(merged, Fault), "a subagent is no session of its own"
        assert (merged.file, merged.found, merged.incomplete) == (AGENT, "two continuations", False)
        assert CLAUDE.loses(SESSION, store, workspace)


@given(*[st.lists(st.sampled_from([A, B, C, TORN, b"\n", b" ", b"\0"]), max_size=5).map(b"".join)] * 2)
def test_no_whole_line_is_lost_by_a_merge(one: bytes, other: bytes) -> None:
    merged = CLAUDE.merge(SESSION, one, other)
    assert isinstance(merged, bytes) is isinstance(CLAUDE.merge(SESSION, other, one), bytes)
    if isinstance(merged, bytes):
        assert merged in (one, other)
        for version in (one, other):
            whole = version[: version.rfind(b"\n") + 1]
            assert merged.startswith(whole) or not whole.strip(b"\0 \n")


def test_a_file_beside_a_session_belongs_to_it() -> None:
    assert {CLAUDE.owner(path) for path in (AGENT, META, RESULT)} == {SESSION}
    assert {CLAUDE.owner(path) for path in (SESSION, NOTE, "agent-a00ec085.jsonl")} == {None}
    assert [path for path in (SESSION, AGENT, META, NOTE) if CLAUDE.can_fork(path)] == [SESSION]


def test_two_versions_of_a_note_become_one() -> None:
    assert CLAUDE.merge(NOTE, b"one\n", b"two\n") == b"one\ntwo\n"


@pytest.mark.parametrize("path", [META, RESULT])
def test_other_files_follow_the_table_of_decisions(path: str) -> None:
    assert CLAUDE.merge(path, b"one", b"one and two") is None


@pytest.mark.parametrize("path", [NOTE, META, RESULT])
def test_an_emptied_file_is_filled_again(path: str) -> None:
    assert (CLAUDE.merge(path, b"", b"one"), CLAUDE.merge(path, b"one", b"\0")) == (b"one", b"one")
    losses = [CLAUDE.loses(path, b"one", after) for after in (b"", b" \0", b"two")]
    assert losses == [True, True, False]


# The time of what comes back.

NOW, DAY = 1_800_000_000 * 10**9, 86_400 * 10**9


def test_a_time_of_the_last_day_stays() -> None:
    assert [CLAUDE.time_here(NOW - ago, NOW) for ago in (0, DAY, -DAY)] == [NOW, NOW - DAY, NOW + DAY]


@given(st.lists(st.integers(0, NOW), min_size=2, max_size=5))
def test_an_older_time_is_spared_by_the_next_sweep_in_the_same_order(times: list[int]) -> None:
    made = [CLAUDE.time_here(each, NOW) for each in sorted(times)]
    assert made == sorted(made)
    assert all(NOW - 5 * DAY < each <= NOW for each in made)


# Sessions in use.

LIVE = LiveSessions({ID: 4711})


@pytest.mark.parametrize("path", [SESSION, AGENT, META, RESULT])
def test_a_session_that_is_open_is_busy_with_its_files(path: str) -> None:
    assert CLAUDE.is_busy(path, LIVE)
    assert CLAUDE.holder(path, LIVE) == "Claude Code (process 4711)"
    assert CLAUDE.holder(path, LiveSessions({ANY: 0})) == "Claude Code, whose list of processes can't be read,"
    assert not CLAUDE.is_busy(path, LiveSessions({OTHER_ID: 4711}))
    assert not CLAUDE.is_busy(path, LiveSessions())
    assert not CLAUDE.is_busy(path, None)
    assert not CLAUDE.is_busy(path.replace(ID, OTHER_ID), LIVE)


@pytest.mark.parametrize("path", [NOTE, "agent-a00ec085.jsonl", f"memory/{SESSION}"])
def test_files_of_no_session_are_not_busy(path: str) -> None:
    assert not CLAUDE.is_busy(path, LIVE)


def test_the_reason_is_given_if_a_session_is_open() -> None:
    assert CLAUDE.busy(LIVE) == "Claude Code has it open"
    assert CLAUDE.busy(LiveSessions()) == CLAUDE.busy(None) == ""

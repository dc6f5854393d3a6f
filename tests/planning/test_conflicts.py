"""Conflicts of a plan: which unit both sides have edited, what differs, which side is taken, and the words for it."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline
from reconcile.model.options import Diverged, OnConflict, Prefer
from reconcile.model.plan import Conflict, Rival
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Side
from reconcile.planning.conflicts import (
    blocked,
    choices,
    commands,
    described,
    differences,
    event_time,
    newer_side,
    restore_command,
    restore_of,
    taken,
    time_text,
    to_be_taken,
    value_texts,
)
from reconcile.planning.planner import make_plan
from tests.support.formats import notes
from tests.support.scenarios.building import agreed_on, here, plan_of, stored
from tests.support.scenarios.line_reader import DAY_NS

A = '1-a  metadata 09:00 title "A" colour="red" labels="x"  stream 09:00 [1 2]'
KNOWN = agreed_on(A)
SECOND = 10**9
MINUTE_NS = 60 * 10**9
HALF_PAST_NS = DAY_NS + (9 * 60 + 30) * MINUTE_NS
STORE = A.replace("09:00 title", "09:30 title").replace("red", "blue")
WORKSPACE = A.replace("09:00 title", "09:40 title").replace("red", "green")
CONTINUED_STORE = A.replace("stream 09:00 [1 2]", "stream 09:30 [1 2 3]")
CONTINUED_WORKSPACE = A.replace("stream 09:00 [1 2]", "stream 09:40 [1 2 4 5]")
BOTH_TIMES = "store 2025-01-02 09:30:00Z; workspace 2025-01-02 09:40:00Z"


def conflicts(store: str, workspace: str, policy: Policy | None = None, baseline: Baseline = KNOWN) -> list[Conflict]:
    return list(plan_of(stored(store), here(workspace), baseline, policy).conflicts)


def of_metadata(**changes: object) -> Conflict:
    conflict = Conflict(
        conversation="jp-c1",
        title="A",
        unit=METADATA,
        case=15,
        store=Rival(HALF_PAST_NS, values=('"blue"',)),
        workspace=Rival(HALF_PAST_NS + 10 * MINUTE_NS, values=('"green"',)),
        keys=("colour",),
        takes=Side.WORKSPACE,
        reason=Reason.NEWER_WORKSPACE,
    )
    return replace(conflict, **changes)


# An id with a title that a shell would read as commands.
IN_A_PATH = ".conversations/b $(touch y).json"


def test_the_commands_have_ids_as_a_shell_reads_them() -> None:
    conflict = of_metadata(conversation=IN_A_PATH)
    assert commands(conflict) == tuple(
        f"reconcile resolve '.conversations/b $(touch y).json' --take {take}" for take in ("store", "workspace")
    )
    assert restore_command(conflict, "run") == "reconcile restore '.conversations/b $(touch y).json@run:metadata'"
    merged = replace(conflict, merges=True)
    assert restore_command(merged, "run") == "reconcile diff '.conversations/b $(touch y).json'"
    assert restore_of("jp-c1", "run", "extra:a b.md") == "reconcile restore 'jp-c1@run:a b.md'"
    assert commands(of_metadata())[0] == "reconcile resolve jp-c1 --take store"


# Which units are conflicts.


def test_the_same_key_of_the_metadata() -> None:
    assert conflicts(STORE, WORKSPACE) == [of_metadata()]
    assert conflicts(STORE, WORKSPACE.replace('"x"', '"y"')) == [of_metadata()], "the other key is no conflict"


def test_other_keys_are_merged() -> None:
    relabelled = STORE.replace('"x"', '"y"')
    assert conflicts(relabelled, WORKSPACE) == [of_metadata(reason=Reason.UNITED, merges=True)]
    preferred = Policy(prefer=Prefer.STORE)
    beside = WORKSPACE.replace('"x"', '"y"')
    assert conflicts(STORE, beside, preferred) == [of_metadata(reason=Reason.UNITED, merges=True, takes=Side.STORE)]


def test_without_a_common_version_all_keys_that_differ_count() -> None:
    renamed = WORKSPACE.replace("labels", "tags")
    (found,) = conflicts(STORE, renamed, baseline=Baseline())
    assert (found.case, found.keys) == (5, ("colour", "labels", "tags"))
    assert found.store.values == ('"blue"', '"x"', None)
    assert found.workspace.values == ('"green"', None, '"x"')


def test_two_continuations() -> None:
    (found,) = conflicts(CONTINUED_STORE, CONTINUED_WORKSPACE)
    assert found == Conflict(
        conversation="jp-c1",
        title="A",
        unit=STREAM,
        case=15,
        store=Rival(HALF_PAST_NS, 3, "2025-01-01 00:03:00.0", 1),
        workspace=Rival(HALF_PAST_NS + 10 * MINUTE_NS, 4, "2025-01-01 00:05:00.0", 2),
        takes=Side.WORKSPACE,
        reason=Reason.DIVERGED,
        forks=True,
    )


def test_a_conflict_of_the_events_has_no_keys_though_the_metadata_differs() -> None:
    found = conflicts(CONTINUED_STORE.replace("red", "blue"), CONTINUED_WORKSPACE)
    assert [(each.unit, each.keys, each.store.values) for each in found] == [(STREAM, (), ())]


def test_what_is_held_takes_no_side() -> None:
    hold = Policy(conflict=OnConflict.HOLD, diverged=Diverged.HOLD)
    assert conflicts(STORE, WORKSPACE, hold) == [of_metadata(takes=None, reason=Reason.CONFLICT_HELD)]
    (found,) = conflicts(CONTINUED_STORE, CONTINUED_WORKSPACE, hold)
    assert (found.takes, found.reason, found.forks) == (None, Reason.DIVERGED_HELD, False)


def test_content_without_events_has_times_alone() -> None:
    none = A.replace("[1 2]", "[] b1")
    sides = none.replace("09:00 [] b1", "09:30 [] b2"), none.replace("09:00 [] b1", "09:40 [] b3")
    (found,) = conflicts(*sides, baseline=agreed_on(none))
    assert (found.unit, found.store, found.workspace.events) == (STREAM, Rival(HALF_PAST_NS), None)


def test_an_extra_has_times_alone() -> None:
    note = '1-a/NOTE.md  {} "{}"'
    known = agreed_on(A, note.format("09:00", "a"))
    sides = stored(A, note.format("09:30", "b")), here(A, note.format("09:40", "c"))
    (found,) = plan_of(*sides, known).conflicts
    assert (found.unit, found.store) == ("extra:NOTE.md", Rival(HALF_PAST_NS))
    assert found.takes is Side.WORKSPACE


@pytest.mark.parametrize(
    ("store", "workspace"),
    [
        (STORE, A),
        (A, WORKSPACE),
        (STORE, STORE),
        (CONTINUED_STORE, A),
        (STORE, A.replace('"x"', '"y"').replace("09:00 title", "09:40 title")),
    ],
)
def test_an_edit_on_one_side_and_edits_that_go_together_are_none(store: str, workspace: str) -> None:
    assert conflicts(store, workspace) == []


def test_another_end_on_one_side_alone_is_none() -> None:
    """A run notes that the text before it was replaced."""
    assert conflicts(A, A.replace("stream 09:00 [1 2]", "stream 09:40 [1 3]")) == []


def test_a_private_conversation_that_stays_as_it_is_has_none() -> None:
    """The store's version is newer, and a run writes nothing to a private conversation of the workspace."""
    private, store = (each.replace(' labels="x"', " local") for each in (A, CONTINUED_STORE.replace("09:30", "09:50")))
    workspace = CONTINUED_WORKSPACE.replace(' labels="x"', " local")
    assert conflicts(store, workspace, baseline=agreed_on(private)) == []


# Words.


def test_the_words_for_metadata() -> None:
    conflict = of_metadata()
    assert described(conflict) == f"metadata (colour): {BOTH_TIMES}"
    assert blocked(conflict) == f"both sides changed colour: {BOTH_TIMES}"
    assert differences(conflict) == [("colour", '"blue"', '"green"')]
    assert taken(conflict) == "the workspace's is taken (newer)"
    assert to_be_taken(conflict) == "the next run asks at a terminal, or takes the workspace's (newer)"


def test_the_words_for_events() -> None:
    (found,) = conflicts(CONTINUED_STORE, CONTINUED_WORKSPACE)
    versions = (
        "store file changed 2025-01-02 09:30:00Z (3 events, 1 only on this side, last 2025-01-01 00:03:00Z); "
        "workspace file changed 2025-01-02 09:40:00Z (4 events, 2 only on this side, last 2025-01-01 00:05:00Z)"
    )
    assert described(found) == f"events: {versions}"
    assert blocked(found) == f"both sides changed it: {versions}"
    assert differences(found) == []
    assert taken(found) == "the workspace's is taken (its file is newer); the store's becomes a fork"
    assert taken(found, "jp-c9") == "the workspace's is taken (its file is newer); the store's is now the fork jp-c9"
    one = replace(found, store=Rival(HALF_PAST_NS, 1), workspace=Rival(HALF_PAST_NS, 0))
    assert described(one) == "events: store 2025-01-02 09:30:00Z (1 event); workspace 2025-01-02 09:30:00Z (0 events)"


def test_the_words_for_what_is_held() -> None:
    held = of_metadata(takes=None, reason=Reason.CONFLICT_HELD)
    assert taken(held) == to_be_taken(held) == "blocked, choose a side"


@pytest.mark.parametrize("reason", [Reason.PREFERRED, Reason.DECIDED])
def test_a_choice_is_told_as_the_reason(reason: Reason) -> None:
    assert taken(of_metadata(reason=reason)) == f"the workspace's is taken ({reason.words})"


def test_a_line_names_five_keys() -> None:
    five = of_metadata(keys=tuple("abcde"))
    assert described(five).startswith("metadata (a, b, c, d, e): ")
    assert described(of_metadata(keys=tuple("abcdef"))).startswith("metadata (a, b, c, d, e, ...): ")


def test_a_key_that_is_absent_on_both_sides_is_no_difference() -> None:
    sides = Rival(0, values=(None, None, "1")), Rival(0, values=(None, "2", None))
    conflict = of_metadata(keys=("a", "b", "c"), store=sides[0], workspace=sides[1])
    assert differences(conflict) == [("b", "(absent)", "2"), ("c", "1", "(absent)")]


def test_a_key_whose_values_a_saved_plan_lacks_is_not_shown() -> None:
    assert differences(of_metadata(keys=("colour", "labels"))) == [("colour", '"blue"', '"green"')]


@pytest.mark.parametrize(
    ("store", "workspace", "shown"),
    [
        (0, 10**9, ("00:00:00Z", "00:00:01Z")),
        (5, 5, ("00:00:00Z", "00:00:00Z")),
        (0, 10**6, ("00:00:00.000Z", "00:00:00.001Z")),
        (999, 1000, ("00:00:00.000000Z", "00:00:00.000001Z")),
        (1, 2, ("00:00:00.000000001Z", "00:00:00.000000002Z")),
    ],
)
def test_two_times_are_told_apart(store: int, workspace: int, shown: tuple[str, str]) -> None:
    conflict = of_metadata(store=Rival(store), workspace=Rival(workspace))
    first, second = shown
    assert described(conflict) == f"metadata (colour): store 1970-01-01 {first}; workspace 1970-01-01 {second}"


def test_times_of_today_are_told_apart_by_no_more_digits_than_it_takes() -> None:
    conflict = of_metadata(store=Rival(HALF_PAST_NS), workspace=Rival(HALF_PAST_NS + 10**6))
    assert described(conflict).endswith("store 2025-01-02 09:30:00.000Z; workspace 2025-01-02 09:30:00.001Z")


def test_a_fraction_has_the_digits_of_the_time() -> None:
    assert time_text(12_345, 6) == "1970-01-01 00:00:00.000012Z"
    assert time_text(1_700_000_001_123_456_789, 9) == "2023-11-14 22:13:21.123456789Z"


def test_the_command_that_restores_a_version() -> None:
    assert restore_of("jp-c1", "r1", STREAM) == "reconcile restore jp-c1@r1:events"


# Values.


def test_a_value_keeps_its_letters() -> None:
    assert value_texts("k", {"k": "ü"}, {"k": "é"}) == ('"ü"', '"é"')


def test_a_common_beginning_is_left_out_from_49_characters_on() -> None:
    """The quote counts as one. 24 characters before the difference stay."""
    ours, theirs = "a" * 47, "a" * 48
    assert value_texts("k", {"k": ours + "X"}, {"k": ours + "Y"}) == (f'"{ours}X"', f'"{ours}Y"')
    assert value_texts("k", {"k": theirs + "X"}, {"k": theirs + "Y"}) == (f'…{"a" * 24}X"', f'…{"a" * 24}Y"')


def test_a_value_of_200_characters_is_whole() -> None:
    assert value_texts("k", {"k": "a" * 198}, {"k": 1}) == (f'"{"a" * 198}"', "1")
    assert value_texts("k", {"k": "a" * 199}, {"k": 1}) == (f'"{"a" * 198}…', "1")


@pytest.mark.parametrize(
    ("store", "workspace"),
    [(b"bread", b"milk"), (b"[1]", b'{"a": 1}'), (b'{"a": 1}', b"1"), (b"[" * 100_000, b'{"a": 1}')],
)
def test_a_file_that_is_no_object_has_no_keys(store: bytes, workspace: bytes) -> None:
    ours, theirs = notes.side(Side.STORE, {"a.md": store}), notes.side(Side.WORKSPACE, {"a.md": workspace})
    (found,) = make_plan(ours, theirs, Baseline(), Policy(), notes.RULES, 0).conflicts
    assert (found.unit, found.keys, found.store.values, found.workspace.values) == (METADATA, (), (), ())


@pytest.mark.parametrize(
    ("store", "workspace", "side"), [(2, 1, Side.STORE), (1, 2, Side.WORKSPACE), (1, 1, Side.STORE)]
)
def test_the_newer_side(store: int, workspace: int, side: Side) -> None:
    conflict = Conflict(
        conversation="1",
        title="A",
        unit=STREAM,
        case=15,
        store=Rival(store * SECOND),
        workspace=Rival(workspace * SECOND),
        takes=None,
        reason=Reason.CONFLICT,
    )
    assert newer_side(conflict) is side


@pytest.mark.parametrize(
    ("store", "workspace", "takes", "words"),
    [
        (1, 1, Side.WORKSPACE, "the workspace's is taken (--prefer workspace); other keys are merged"),
        (1, 1, Side.STORE, "the store's is taken (same time; the store wins); other keys are merged"),
        (2, 1, Side.WORKSPACE, "the workspace's is taken (--prefer workspace); other keys are merged"),
        (1, 2, Side.WORKSPACE, "the workspace's is taken (newer); other keys are merged"),
        (1, 2, Side.STORE, "the store's is taken (--prefer store); other keys are merged"),
    ],
)
def test_the_winner_of_a_merge_and_why(store: int, workspace: int, takes: Side, words: str) -> None:
    conflict = Conflict(
        conversation="1",
        title="A",
        unit=METADATA,
        case=15,
        store=Rival(store * SECOND),
        workspace=Rival(workspace * SECOND),
        takes=takes,
        reason=Reason.UNITED,
        merges=True,
    )
    assert taken(conflict) == words
    assert commands(conflict) == ("reconcile resolve 1 --take store", "reconcile resolve 1 --take workspace")
    events = replace(conflict, unit=STREAM, merges=False)
    assert commands(events)[2:] == ("reconcile resolve 1 --take both",)
    forks = replace(events, forks=True)
    assert commands(forks) == commands(events), "a run keeps both, too"
    assert choices(forks) == choices(conflict), "whichever is taken, the other becomes a fork"
    assert restore_command(conflict, "r") == "reconcile diff 1"
    assert restore_command(replace(conflict, merges=False), "r") == "reconcile restore 1@r:metadata"


def test_a_time_outside_of_the_calendar_is_a_number() -> None:
    assert time_text(0) == "1970-01-01 00:00:00Z"
    assert time_text(2**63 * SECOND) == f"{2**63 * SECOND} ns"


def test_of_long_values_the_part_that_differs_is_kept() -> None:
    """In the middle of a long text, with what is before it; a value that only one side has is absent on the other."""
    ours, theirs = ("a" * 500 + end for end in "XY")
    assert value_texts("k", {"k": ours}, {"k": theirs}) == (f'…{"a" * 24}X"', f'…{"a" * 24}Y"')
    assert value_texts("k", {"k": ours}, {"k": "b"}) == (f'"{"a" * 198}…', '"b"')
    assert value_texts("k", {"k": "a" * 500}, {"k": "a" * 300}) == (f"…{'a' * 198}…", f'…{"a" * 24}"')
    assert value_texts("k", {"k": 1}, {}) == ("1", None)


def test_a_value_that_is_nested_too_deep_to_be_written() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert value_texts("key", {"key": deep}, {"key": 1}) == ("…", "1")


@pytest.mark.parametrize(
    ("store", "workspace", "words"),
    [(None, None, "newer"), ("t", None, "its file is newer"), (None, "t", "its file is newer")],
)
def test_beside_the_time_of_an_event_the_time_of_the_file_is_named(
    store: str | None, workspace: str | None, words: str
) -> None:
    conflict = of_metadata(store=Rival(1, last=store), workspace=Rival(2, last=workspace))
    assert taken(conflict) == f"the workspace's is taken ({words})"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-01-31 12:00:00.0", "2026-01-31 12:00:00Z"),
        ("2026-01-31T12:00:00.123Z", "2026-01-31 12:00:00Z"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31 10:00:00Z"),
        ("some day in the year 2026", "some day in the yea"),
    ],
)
def test_the_time_of_an_event_is_in_utc_as_that_of_a_file(
    written: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any time zone of the machine."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert event_time(written) == shown
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()

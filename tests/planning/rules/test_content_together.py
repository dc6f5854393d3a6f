"""The units of one conversation together: what waits for another unit, for git, or for a whole side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind, OutdatedContent
from reconcile.model.options import Diverged, OnConflict, Prefer, StreamRule, Take
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Metadata, Side, Stream
from reconcile.planning.rules.content import (
    Outcome,
    Verdict,
    beside_older_stream,
    decide_carried,
    decide_unit,
    decide_units,
    doubtful_case,
)
from reconcile.planning.rules.guards import Sides
from reconcile.planning.rules.views import views_of
from tests.support.formats.notes import BRANCHING, side
from tests.support.scenarios.building import agreed_on, here, stored, view_of

if TYPE_CHECKING:
    from reconcile.model.snapshot import Snapshot
    from reconcile.planning.rules.views import View

CLEAR = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)
RENEWED = replace(CLEAR, store_replaced=True)
NOTE = "extra:NOTE.md"
NOTED = '1-a/NOTE.md  08:00 "n"'
ONE = "1-a  metadata 07:00  stream 08:00 [1]"
TITLED = '1-a  metadata 08:00 title "B"  stream 08:00 [1]'
LONGER = "1-a  metadata 07:00  stream 09:00 [1 2]"
BUSY = Policy(git_busy="a merge")


def decided(
    store: list[str], workspace: list[str], baseline: Baseline, policy: Policy | None = None, sides: Sides = CLEAR
) -> dict[str, Verdict]:
    view = view_of(stored(*store), here(*workspace), baseline)
    return {verdict.unit: verdict for verdict in decide_units(view, baseline, policy or Policy(), sides)}


def digest(line: str, unit: str = STREAM) -> str:
    found = view_of(stored(line), here()).store.digest(unit)
    assert found is not None
    return found


KNOWN = agreed_on(ONE, NOTED)
RENEWALS = {
    "both are as before": ([ONE, NOTED], [ONE, NOTED], STREAM, 10, Outcome.NOTHING),
    "both differ from before": ([ONE.replace("[1]", "[7]"), NOTED], [LONGER, NOTED], STREAM, 15, Outcome.TO_STORE),
    "the store alone differs": ([ONE.replace("[1]", "[7]"), NOTED], [ONE, NOTED], STREAM, 5, Outcome.TO_WORKSPACE),
    "the store lacks a note": ([ONE], [ONE, NOTED], NOTE, 7, Outcome.TO_STORE),
}


@pytest.mark.parametrize(("store", "workspace", "unit", "case", "outcome"), RENEWALS.values(), ids=RENEWALS)
def test_in_another_store_only_its_own_versions_are_compared_without_what_was_agreed_on(
    store: list[str], workspace: list[str], unit: str, case: int, outcome: Outcome
) -> None:
    verdict = decided(store, workspace, KNOWN, sides=RENEWED)[unit]
    assert (verdict.unit, verdict.case, verdict.outcome) == (unit, case, outcome)


def test_what_another_store_gets_back_says_why() -> None:
    assert decided([ONE], [ONE, NOTED], KNOWN, sides=RENEWED)[NOTE].reason is Reason.REFILL
    known = replace(agreed_on(LONGER), history={("jp-c1", STREAM): (digest(ONE), digest(LONGER))})
    for workspace in (LONGER, LONGER.replace("[1 2]", "[1 2 3]")):
        verdict = decided([ONE], [workspace], known, sides=RENEWED)[STREAM]
        assert (verdict.outcome, verdict.reason) == (Outcome.TO_STORE, Reason.AHEAD_WORKSPACE)


def test_a_version_newer_than_the_workspaces_old_one_stays_in_another_store() -> None:
    lines = [ONE, LONGER, LONGER.replace("[1 2]", "[1 2 3]")]
    known = replace(agreed_on(lines[2]), history={("jp-c1", STREAM): tuple(map(digest, lines))})
    verdict = decided([LONGER], [ONE], known, sides=RENEWED)[STREAM]
    assert verdict.outcome is Outcome.BEHIND


def test_what_the_workspace_has_lost_comes_from_another_store_too() -> None:
    known = replace(agreed_on(LONGER), history={("jp-c1", STREAM): (digest(ONE), digest(LONGER))})
    verdict = decided([ONE], ["1-a  metadata 07:00"], known, sides=RENEWED)[STREAM]
    assert (verdict.outcome, verdict.reason) == (Outcome.TO_WORKSPACE, Reason.INCOMPLETE)


def test_while_git_is_busy_only_what_replaces_something_waits() -> None:
    both = '1-a  metadata 09:00 title "B"  stream 09:00 [1 2]'
    found = decided([ONE], [both, NOTED], agreed_on(ONE), BUSY)
    assert {name: verdict.outcome for name, verdict in found.items()} == {
        METADATA: Outcome.HELD,
        STREAM: Outcome.TO_STORE,
        NOTE: Outcome.TO_STORE,
    }
    assert found[METADATA].words == "git is busy (a merge); the workspace's version is copied when git is done"
    assert found[METADATA].reason is Reason.GIT_BUSY


def keys(text: str, at: str = "07:00") -> str:
    return f"1-a  metadata {at} {text}  stream 08:00 [1]"


def comparable(base: str) -> Baseline:
    """Return a baseline that has the content of the metadata, too."""
    known = agreed_on(base)
    (content,) = (copy.metadata.content for copy in stored(base).copies if isinstance(copy.metadata, Metadata))
    return replace(known, contents={("jp-c1", known.agreed["jp-c1"].units[METADATA]): content})


BASE = keys('x="1" y="1"')
BY_KEYS = comparable(BASE)


def test_while_git_is_busy_what_is_made_of_two_waits() -> None:
    for policy, outcome in ((Policy(), Outcome.MERGED), (BUSY, Outcome.HELD)):
        found = decided([keys('x="2" y="1"')], [keys('x="1" y="2"')], BY_KEYS, policy)
        assert found[METADATA].outcome is outcome


ALONE, OLDER = '1-a  metadata 09:00 title "B"', "1-a  metadata 08:00"
METADATA_KNOWN = agreed_on('1-a  metadata 07:00 title "C"  stream 08:00 [1]')
METADATA_ALONE = replace(
    METADATA_KNOWN,
    agreed={key: replace(each, units={METADATA: each.units[METADATA]}) for key, each in METADATA_KNOWN.agreed.items()},
)
PARTS: dict[str, tuple[str, Baseline, Policy, Outcome]] = {
    "nothing was published": (TITLED, Baseline(), Policy(), Outcome.WAIT),
    "the store has no more than that either": (ALONE, Baseline(), Policy(), Outcome.TO_WORKSPACE),
    "a person has chosen the store's": (
        TITLED,
        Baseline(),
        Policy(decisions={"jp-c1": Take.STORE}),
        Outcome.TO_WORKSPACE,
    ),
    "its metadata alone was published": (TITLED, METADATA_ALONE, Policy(), Outcome.WAIT),
    "it is to be published": (
        TITLED,
        Baseline(intents={"jp-c1": Intent(IntentKind.PROJECTED)}),
        Policy(),
        Outcome.TO_WORKSPACE,
    ),
    "it is local": (TITLED, Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL)}), Policy(), Outcome.WAIT),
}


@pytest.mark.parametrize(("store", "baseline", "policy", "outcome"), PARTS.values(), ids=PARTS)
def test_a_part_of_a_conversation_brings_the_rest_only_where_that_belongs_there(
    store: str, baseline: Baseline, policy: Policy, outcome: Outcome
) -> None:
    newer = store.replace("metadata 08:00", "metadata 09:00")
    assert decided([newer], [OLDER], baseline, policy)[METADATA].outcome is outcome


def test_of_what_came_into_the_trash_only_what_the_store_has_is_compared() -> None:
    carried = [f".trash/2-b/conversations/{line}" for line in (LONGER, NOTED)]
    view = view_of(stored(ONE), here("2-b  metadata 07:00", *carried))
    assert [verdict.unit for verdict in decide_carried(view, Baseline(), Policy())] == [STREAM]


def edited(store: str, workspace: str, baseline: Baseline) -> View:
    return view_of(stored(store), here(workspace), baseline)


def test_metadata_that_was_edited_here_goes_beside_an_older_stream() -> None:
    view = edited(BASE, keys('x="2" y="1"', "09:00"), BY_KEYS)
    verdict = Verdict(METADATA, 11, Outcome.TO_STORE, Reason.EDITED_WORKSPACE)
    found = beside_older_stream(view, verdict, BY_KEYS, Policy())
    assert (found.unit, found.case, found.outcome, found.reason) == (
        METADATA,
        11,
        Outcome.TO_STORE,
        Reason.EDITED_WORKSPACE,
    )
    for other in (
        replace(verdict, unit=STREAM),
        replace(verdict, outcome=Outcome.NOTHING),
        replace(verdict, case=13, outcome=Outcome.TO_WORKSPACE),
    ):
        waits = beside_older_stream(view, other, BY_KEYS, Policy())
        assert (waits.unit, waits.case, waits.outcome, waits.reason) == (
            other.unit,
            other.case,
            Outcome.WAIT,
            Reason.BEHIND_ASIDE,
        )
    bare = beside_older_stream(view, verdict, replace(BY_KEYS, contents={}), Policy())
    assert bare.outcome is Outcome.WAIT, "the content before the edit isn't known"


def test_what_is_undecided_or_apart_stays_so_beside_an_older_stream() -> None:
    view = edited(BASE, keys('x="2" y="1"', "09:00"), BY_KEYS)
    record = AsideRecord(AsideKind.KEPT, "x", "y")
    for outcome in (Outcome.HELD, Outcome.BEHIND, Outcome.ASIDE):
        verdict = Verdict(METADATA, 15, outcome, record=record)
        assert beside_older_stream(view, verdict, BY_KEYS, Policy()) is verdict


def test_two_edits_of_metadata_are_decided_beside_an_older_stream() -> None:
    view = edited(keys('x="2" y="1"'), keys('x="1" y="2"'), BY_KEYS)
    for outcome in (Outcome.TO_STORE, Outcome.TO_WORKSPACE, Outcome.MERGED):
        verdict = Verdict(METADATA, 15, outcome, Reason.UNITED)
        assert beside_older_stream(view, verdict, BY_KEYS, Policy()) is verdict


ACTIVE = 'last_activated_at="{} 00:00:00.0"'


def test_an_earlier_time_of_activity_is_no_edit() -> None:
    known = comparable(keys(ACTIVE.format("2026-01-05")))
    earlier = ACTIVE.format("2026-01-01")
    view = edited(keys(ACTIVE.format("2026-01-05")), keys(earlier, "09:00"), known)
    verdict = Verdict(METADATA, 11, Outcome.TO_STORE, Reason.EDITED_WORKSPACE)
    assert beside_older_stream(view, verdict, known, Policy()).outcome is Outcome.WAIT
    both = keys(f'{earlier} x="2"', "09:00")
    for intents, recorded in (({}, False), ({"jp-c1": Intent(IntentKind.LOCAL)}, True)):
        baseline = replace(known, intents=intents)
        found = beside_older_stream(
            edited(keys(ACTIVE.format("2026-01-05")), both, baseline), verdict, baseline, Policy()
        )
        assert (found.outcome, found.reason) == (Outcome.MERGED, Reason.EDITED_WORKSPACE)
        assert (found.record is not None) is recorded


def test_an_answer_about_an_older_version_takes_the_stores() -> None:
    known = agreed_on(LONGER)
    older = ONE.replace("stream 08:00", "stream 10:00")
    view = edited(LONGER, older, known)
    assert decide_unit(view, STREAM, known, Policy()).outcome is Outcome.BEHIND
    taken = decide_unit(view, STREAM, known, Policy(choices={("jp-c1", STREAM): Take.STORE}))
    assert (taken.unit, taken.case, taken.outcome, taken.reason) == (STREAM, 11, Outcome.TO_WORKSPACE, Reason.DECIDED)


def test_an_answer_is_about_a_conflict_alone() -> None:
    known = agreed_on(ONE)
    view = edited(ONE, LONGER, known)
    for take in (Take.STORE, Take.KEEP):
        found = decide_unit(view, STREAM, known, Policy(choices={("jp-c1", STREAM): take}))
        assert (found.outcome, found.reason) == (Outcome.TO_STORE, Reason.EDITED_WORKSPACE)


def test_a_conflict_that_is_held_says_which_keys_it_is_about() -> None:
    view = edited(keys('x="2" y="1"'), keys('x="3" y="1"', "09:00"), BY_KEYS)
    found = decide_unit(view, METADATA, BY_KEYS, Policy(conflict=OnConflict.HOLD))
    assert (found.outcome, found.reason, found.keys) == (Outcome.HELD, Reason.CONFLICT_HELD, ("x",))


DIVERGING = (ONE.replace("[1]", "[1 3]"), LONGER)


@pytest.mark.parametrize(
    ("diverged", "forks"),
    [(Diverged.HOLD, True), (Diverged.FORK, True), (Diverged.NEWEST, False)],
)
def test_an_answer_about_two_continuations_forks_the_other_unless_none_is_wanted(
    diverged: Diverged, forks: bool
) -> None:
    known = agreed_on(ONE)
    policy = Policy(choices={("jp-c1", STREAM): Take.STORE}, diverged=diverged, prefer=Prefer.NEWEST)
    found = decide_unit(edited(*DIVERGING, known), STREAM, known, policy)
    assert (found.outcome, found.forks is not None, found.conflict) == (Outcome.TO_WORKSPACE, forks, False)


HALVES = (
    "1-a  metadata 07:00",
    '1-a/events.json  11:00 "["',
    "1-z  stream 08:00 [1]",
    '1-z/metadata.json  11:00 "{"',
)
"""The directory that stays has events that nobody can read; another one has valid events."""


@pytest.mark.parametrize(("store", "workspace"), [(HALVES, [ONE]), ([ONE], HALVES)], ids=["store", "workspace"])
def test_what_nobody_can_read_is_held_though_another_directory_has_it(store: list[str], workspace: list[str]) -> None:
    stream = decided(list(store), list(workspace), agreed_on(ONE))[STREAM]
    assert (stream.outcome, stream.reason) == (Outcome.HELD, Reason.INVALID)


def test_an_older_version_in_another_store_is_replaced_whatever_its_time() -> None:
    known = replace(agreed_on(LONGER), history={("jp-c1", STREAM): (digest(ONE), digest(LONGER))})
    workspace = LONGER.replace("stream 09:00", "stream 08:00")
    found = decided([ONE], [workspace], known, Policy(stream=StreamRule.NEWEST), RENEWED)[STREAM]
    assert (found.unit, found.case, found.outcome, found.reason) == (STREAM, 5, Outcome.TO_STORE, Reason.REFILL)


STATING = "1-a  metadata 07:00 parent 2  stream 08:00 [1]"


def test_an_absent_parent_is_no_difference() -> None:
    assert decided([STATING], [ONE], Baseline())[METADATA].outcome is Outcome.NOTHING
    view = view_of(stored(STATING), here(ONE))
    assert view.store.raw(METADATA) != view.workspace.raw(METADATA)
    assert doubtful_case(view, METADATA, Baseline()) is None


def test_one_content_is_no_doubt_whatever_parent_it_stands_for() -> None:
    agreed = agreed_on(ONE).agreed["jp-c1"]
    known = Baseline(agreed={"jp-c1": replace(agreed, parent="jp-c2")}, parents={"jp-c1": "jp-c3"})
    view = view_of(stored(ONE), here(ONE), known)
    assert view.store.digest(METADATA) != view.workspace.digest(METADATA)
    assert doubtful_case(view, METADATA, known) is None


def test_what_nobody_can_read_is_no_doubt() -> None:
    broken = view_of(stored("1-a  metadata 07:00", '1-a/events.json  09:00 "["'), here(ONE))
    assert doubtful_case(broken, STREAM, Baseline()) is None


LEGACY = "1-a  metadata 07:00  stream 08:00 legacy [1]"
BASED = [LEGACY, '1-a/base_config.json  08:00 "{}"']


@pytest.mark.parametrize(
    ("store", "workspace", "outcome"),
    [([LEGACY], BASED, Outcome.TO_STORE), (BASED, [LEGACY], Outcome.TO_WORKSPACE)],
    ids=["the store lacks it", "the workspace lacks it"],
)
def test_a_configuration_that_one_side_lacks_is_restored(
    store: list[str], workspace: list[str], outcome: Outcome
) -> None:
    """The first event has it too, so that both are valid; where nothing else was agreed on, its loss is damage."""
    found = decided(store, workspace, Baseline())[STREAM]
    assert (found.unit, found.case, found.outcome, found.reason) == (STREAM, 5, outcome, Reason.INCOMPLETE)
    assert decided(store, workspace, agreed_on(LEGACY))[STREAM].reason is not Reason.INCOMPLETE


def test_a_version_that_was_committed_later_wins() -> None:
    known = agreed_on("1-a  metadata 07:00  stream 06:00 [9]")
    view = view_of(stored(ONE), here(LONGER), known)
    raw = [str(view.side(side).raw(STREAM)) for side in Side]
    known = replace(known, outdated={("jp-c1", STREAM): OutdatedContent(Side.STORE, raw[0], raw[1])})
    found = decide_unit(view, STREAM, known, Policy())
    assert (found.unit, found.case, found.reason) == (STREAM, 15, Reason.LATER_COMMIT)


def test_what_was_decided_before_keeps_its_record() -> None:
    view = view_of(stored(ONE), here(LONGER))
    record = AsideRecord(AsideKind.KEPT, view.store.raw(STREAM), view.workspace.raw(STREAM))
    found = decide_unit(view, STREAM, Baseline(asides={("jp-c1", STREAM): record}), Policy())
    assert (found.unit, found.outcome, found.record) == (STREAM, Outcome.ASIDE, record)


def test_where_nothing_was_agreed_on_metadata_waits_beside_an_older_stream() -> None:
    view = view_of(stored(ONE), here(TITLED))
    verdict = Verdict(METADATA, 5, Outcome.TO_STORE, Reason.NEWER_WORKSPACE)
    assert beside_older_stream(view, verdict, Baseline(), Policy()).outcome is Outcome.WAIT


def test_beside_an_edit_an_earlier_time_of_activity_is_none() -> None:
    known = comparable(keys(ACTIVE.format("2026-01-05")))
    store, workspace = keys(f'{ACTIVE.format("2026-01-05")} x="1"', "09:00"), keys(ACTIVE.format("2026-01-01"))
    view = edited(store, workspace, known)
    verdict = decide_unit(view, METADATA, known, Policy())
    assert (verdict.case, verdict.outcome, verdict.reason) == (15, Outcome.TO_WORKSPACE, Reason.UNITED)
    assert beside_older_stream(view, verdict, known, Policy()) is verdict


def test_two_continuations_of_a_record_are_held_where_that_is_the_setting() -> None:
    store, workspace = side(Side.STORE, {"a.md": b"one\ntwo\n"}), side(Side.WORKSPACE, {"a.md": b"one\nthree\n"})
    view = views_of(store, workspace, Baseline(), BRANCHING)["a.md"]
    found = decide_unit(view, METADATA, Baseline(), Policy(diverged=Diverged.HOLD))
    assert found == Verdict(METADATA, 5, Outcome.HELD, Reason.DIVERGED_HELD, conflict=True)


def stream(text: str, at: str) -> str:
    return f"1-a  metadata 07:00  stream {at} {text}"


def versions(*texts: str) -> tuple[str, ...]:
    return tuple(digest(stream(text, "07:00")) for text in texts)


KEY = ("jp-c1", STREAM)
FROM_ONE = agreed_on(stream("[1]", "07:00"))
WITHOUT_STREAM = replace(
    FROM_ONE, agreed={"jp-c1": replace(FROM_ONE.agreed["jp-c1"], units={METADATA: digest(ONE, METADATA)})}
)
ENDS: dict[str, tuple[Baseline, str, str, bool]] = {
    "both continue what was agreed on": (FROM_ONE, "[1 2]", "[1 2x]", True),
    "with other events before the end": (FROM_ONE, "[1 5 2]", "[1 6 2x]", True),
    "the winner has all of it": (FROM_ONE, "[1 2]", "[1 3 2]", False),
    "both continue a version of the history, where nothing was agreed on": (
        Baseline(history={KEY: versions("[1]", "[9]")}),
        "[1 2]",
        "[1 2x]",
        True,
    ),
    "the same, and the events were not in sync": (
        replace(WITHOUT_STREAM, history={KEY: versions("[1]", "[9]")}),
        "[1 2]",
        "[1 2x]",
        True,
    ),
    "both continue a version before what was agreed on": (
        replace(agreed_on(stream("[9]", "07:00")), history={KEY: versions("[0]", "[1]", "[9]")}),
        "[1 2]",
        "[1 2x]",
        False,
    ),
    "both have edited what was agreed on": (agreed_on(stream("[1 2]", "07:00")), "[1 2x]", "[1 2y]", False),
    "no version is known": (Baseline(), "[1 2]", "[1 2x]", False),
}


@pytest.mark.parametrize(("baseline", "store", "workspace", "forks"), ENDS.values(), ids=ENDS)
def test_events_of_one_time_that_both_sides_have_added_are_no_edits_of_each_other(
    baseline: Baseline, store: str, workspace: str, forks: bool
) -> None:
    found = decided([stream(store, "09:00")], [stream(workspace, "10:00")], baseline)[STREAM]
    assert (found.outcome, found.forks, found.conflict) == (Outcome.TO_STORE, Side.STORE if forks else None, True)


def test_a_longer_version_with_an_event_between_is_the_newer_one_and_no_other_continuation() -> None:
    found = decided([stream("[1 3]", "09:00")], [stream("[1 2 3 4]", "10:00")], FROM_ONE)[STREAM]
    assert (found.outcome, found.reason, found.forks) == (Outcome.TO_STORE, Reason.NEWER_WORKSPACE, None)


@pytest.mark.parametrize("which", Side)
def test_without_the_contents_no_event_is_taken_for_a_new_one(which: Side) -> None:
    def without_content(snapshot: Snapshot) -> Snapshot:
        (copy,) = snapshot.copies
        assert isinstance(copy.stream, Stream)
        return replace(snapshot, copies=(replace(copy, stream=replace(copy.stream, content=None)),))

    store, workspace = stored(stream("[1 2]", "09:00")), here(stream("[1 2x]", "10:00"))
    if which is Side.STORE:
        store = without_content(store)
    else:
        workspace = without_content(workspace)
    found = decide_unit(view_of(store, workspace, FROM_ONE), STREAM, FROM_ONE, Policy())
    assert (found.outcome, found.forks) == (Outcome.TO_STORE, None)


BASES = {
    "the configuration alone": (FROM_ONE, "[1]", "[1] b2", True),
    "events, too": (FROM_ONE, "[1]", "[1x] b2", False),
    "events alone": (FROM_ONE, "[1]", "[1x]", False),
    "the form alone": (agreed_on(LEGACY), "legacy [1]", "[1]", False),
    "the configuration on both sides": (FROM_ONE, "[1] b3", "[1] b2", False),
}


@pytest.mark.parametrize(("baseline", "store", "workspace", "noted"), BASES.values(), ids=BASES)
def test_another_configuration_is_noted_where_it_is_the_only_edit(
    baseline: Baseline, store: str, workspace: str, noted: bool
) -> None:
    found = decided([stream(store, "09:00")], [stream(workspace, "10:00")], baseline)[STREAM]
    assert (found.outcome, found.noted) == (Outcome.TO_STORE, Reason.BASE_REPLACED if noted else None)


def test_what_is_kept_or_behind_is_remembered_with_the_contents() -> None:
    view = view_of(stored(ONE), here(LONGER))
    kept = decide_unit(view, STREAM, Baseline(), Policy(decisions={"jp-c1": Take.KEEP}))
    assert kept.record == AsideRecord(AsideKind.KEPT, view.store.raw(STREAM), view.workspace.raw(STREAM))
    older = view_of(stored(LONGER), here(ONE.replace("stream 08:00", "stream 10:00")))
    behind = decide_unit(older, STREAM, Baseline(), Policy())
    assert behind.record == AsideRecord(AsideKind.BEHIND, None, older.workspace.raw(STREAM))


def test_a_note_that_was_removed_here_stays_away_though_the_store_has_edited_it() -> None:
    known = agreed_on(ONE, NOTED)
    found = decided([ONE, NOTED.replace('"n"', '"m"')], [ONE], known)[NOTE]
    assert (found.case, found.outcome) == (12, Outcome.NOTHING)

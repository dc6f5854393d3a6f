"""Which content wins: damage, decisions, directions and the table (docs/design/decisions.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    AsideKind,
    AsideRecord,
    Baseline,
    BaselineEntry,
    Intent,
    IntentKind,
    OutdatedContent,
)
from reconcile.model.options import Diverged, Missing, OnConflict, Prefer, StreamRule, Take
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Side
from reconcile.planning.rules.content import Outcome, Verdict, decide_carried, decide_unit, decide_units
from reconcile.planning.rules.guards import Sides
from tests.support.scenarios.building import agreed_on, here, stored, view_of
from tests.support.scenarios.notation import StreamText

NOTE = "extra:NOTE.md"
CLEAR = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)


@dataclass(frozen=True, slots=True)
class Row:
    """One unit in baseline, store and workspace, and what must become of it."""

    base: str
    store: str
    workspace: str
    case: int
    outcome: Outcome
    reason: Reason | None = None
    forks: Side | None = None
    conflict: bool = False
    policy: Policy = field(default_factory=Policy)
    past: tuple[str, ...] = ()
    """Versions in the history, oldest first, the baseline not among them."""
    future: tuple[str, ...] = ()
    """Versions that another checkout has come to since."""


def take(decision: Take) -> Policy:
    return Policy(decisions={"jp-c1": decision})


def answer(choice: Take) -> Policy:
    return Policy(choices={("jp-c1", STREAM): choice})


def lines(unit: str, text: str) -> list[str]:
    if not text:
        return ["1-a  metadata 07:00"] if unit != METADATA else ["1-a  stream 07:00 [1]"]
    other = "metadata 07:00" if unit != METADATA else "stream 07:00 [1]"
    if unit.startswith("extra:"):
        return [f"1-a  {other}", f"1-a/NOTE.md {text}"]
    return [f"1-a  {unit} {text}  {other}"]


def digest_of(unit: str, text: str) -> str:
    digest = view_of(stored(*lines(unit, f"00:00 {text}")), here()).store.digest(unit)
    assert digest is not None
    return digest


def check(unit: str, row: Row, outdated: Side | None = None) -> None:
    units = {unit: digest_of(unit, row.base)} if row.base else {}
    history = tuple(digest_of(unit, text) for text in (*row.past, *filter(None, [row.base]), *row.future))
    baseline = Baseline(
        agreed={"jp-c1": BaselineEntry(units, None, None, None, "1-a")} if row.base else {},
        history={("jp-c1", unit): history},
    )
    view = view_of(stored(*lines(unit, row.store)), here(*lines(unit, row.workspace)), baseline)
    if outdated is not None:
        known = OutdatedContent(outdated, str(view.store.raw(unit)), str(view.workspace.raw(unit)))
        baseline = replace(baseline, outdated={("jp-c1", unit): known})
    found = decide_unit(view, unit, baseline, row.policy)
    assert (found.case, found.outcome, found.reason) == (row.case, row.outcome, row.reason)
    assert (found.forks, found.conflict) == (row.forks, row.conflict)


IN, OUT, NO, BACK = Outcome.TO_STORE, Outcome.TO_WORKSPACE, Outcome.NOTHING, Outcome.BEHIND
HELD = Outcome.HELD
HOLD = Policy(conflict=OnConflict.HOLD)
MERGED = Outcome.MERGED

STREAMS = {
    "4: equal": Row("", "09:00 [1]", "08:00 [1]", 4, NO),
    "10: in sync, whatever the times are": Row("[1]", "09:00 [1]", "08:00 [1]", 10, NO),
    "14: the same edit on both": Row("[1]", "09:00 [1 2]", "08:00 [1 2]", 14, NO),
    "5: the workspace continues": Row("", "09:00 [1]", "08:00 [1 2]", 5, IN, Reason.AHEAD_WORKSPACE),
    "5: the store continues, and is newer": Row("", "09:00 [1 2]", "08:00 [1]", 5, OUT, Reason.AHEAD_STORE),
    "5: the store continues at the same time": Row("", "09:00 [1 2]", "09:00 [1]", 5, OUT, Reason.AHEAD_STORE),
    "5: the store continues, and is older": Row("", "08:00 [1 2]", "09:00 [1]", 5, BACK, Reason.BEHIND),
    "5: another base, the workspace's is newer": Row(
        "", "08:00 [1]", "09:00 [1] b2", 5, IN, Reason.NEWER_WORKSPACE, conflict=True
    ),
    "5: another base, the store's is newer": Row(
        "", "09:00 [1]", "08:00 [1] b2", 5, OUT, Reason.NEWER_STORE, conflict=True
    ),
    "5: another base, a tie": Row("", "09:00 [1]", "09:00 [1] b2", 5, OUT, Reason.TIE, conflict=True),
    "5: the store is preferred": Row(
        "", "08:00 [1]", "09:00 [1] b2", 5, OUT, Reason.PREFERRED, conflict=True, policy=Policy(prefer=Prefer.STORE)
    ),
    "5: the workspace is preferred": Row(
        "", "09:00 [1]", "08:00 [1] b2", 5, IN, Reason.PREFERRED, conflict=True, policy=Policy(prefer=Prefer.WORKSPACE)
    ),
    "5: diverged, the store's is newer": Row(
        "", "09:00 [1 2]", "08:00 [1 3]", 5, OUT, Reason.DIVERGED, Side.WORKSPACE, conflict=True
    ),
    "5: diverged, the workspace's is newer": Row(
        "", "08:00 [1 2]", "09:00 [1 3]", 5, IN, Reason.DIVERGED, Side.STORE, conflict=True
    ),
    "5: a version that the history has replaced": Row(
        "", "09:00 [6 7]", "08:00 [1]", 5, BACK, Reason.BEHIND, past=("[1]", "[2]")
    ),
    "11: edited": Row("[1]", "09:00 [1]", "10:00 [1 2]", 11, IN, Reason.EDITED_WORKSPACE),
    "11: edited, with an older time": Row("[1]", "09:00 [1]", "08:00 [1 2]", 11, IN, Reason.EDITED_WORKSPACE),
    "11: cut short, with a newer time": Row("[1 2]", "09:00 [1 2]", "10:00 [1]", 11, BACK, Reason.BEHIND),
    "11: cut short, with an older time": Row("[1 2]", "09:00 [1 2]", "08:00 [1]", 11, OUT, Reason.AHEAD_STORE),
    "11: rewritten": Row("[1 2]", "09:00 [1 2]", "10:00 [1 3]", 11, IN, Reason.DIVERGED, Side.STORE, conflict=True),
    "11: a version that the history has replaced": Row(
        "[1 2]", "09:00 [1 2]", "10:00 [5]", 11, BACK, Reason.BEHIND, past=("[5]",)
    ),
    "13: edited": Row("[1]", "09:00 [1 2]", "10:00 [1]", 13, OUT, Reason.EDITED_STORE),
    "13: rewritten": Row(
        "[1 2]", "11:00 [1 3]", "10:00 [1 2]", 13, OUT, Reason.DIVERGED, Side.WORKSPACE, conflict=True
    ),
    "13: rewritten, as another checkout knows already, after other versions": Row(
        "[1 2]", "11:00 [1 3]", "10:00 [1 2]", 13, OUT, Reason.EDITED_STORE, past=("[1]",), future=("[1 3]",)
    ),
    "13: rewritten, as another checkout knows already": Row(
        "[1 2]", "11:00 [1 3]", "10:00 [1 2]", 13, OUT, Reason.EDITED_STORE, future=("[1 3]",)
    ),
    "15: the store continues both, and is older": Row("[1]", "08:00 [1 2 3]", "09:00 [1 2]", 15, BACK, Reason.BEHIND),
    "15: the workspace continues the store's edit": Row(
        "[1]", "09:00 [1 2]", "08:00 [1 2 3]", 15, IN, Reason.AHEAD_WORKSPACE
    ),
    "15: another base on both": Row(
        "[1]", "09:00 [1] b2", "10:00 [1] b3", 15, IN, Reason.NEWER_WORKSPACE, conflict=True
    ),
    "15: diverged": Row("[1]", "09:00 [1 2]", "10:00 [1 3]", 15, IN, Reason.DIVERGED, Side.STORE, conflict=True),
    "5: the workspace continues an older text, and is newer": Row(
        "", "08:00 [1 2x]", "09:00 [1 2 3]", 5, IN, Reason.DIVERGED, Side.STORE, conflict=True
    ),
    "5: the workspace continues an older text, and is older": Row(
        "", "09:00 [1 2x]", "08:00 [1 2 3]", 5, OUT, Reason.DIVERGED, Side.WORKSPACE, conflict=True
    ),
    "5: the store continues an older text, and is older": Row(
        "", "08:00 [1 2 3]", "09:00 [1x 2]", 5, IN, Reason.DIVERGED, Side.STORE, conflict=True
    ),
    "5: the store continues an older text, and is newer": Row(
        "", "09:00 [1 2 3]", "08:00 [1x 2]", 5, OUT, Reason.DIVERGED, Side.WORKSPACE, conflict=True
    ),
    "5: the workspace continues what the store had in another checkout": Row(
        "", "09:00 [1 2x]", "08:00 [1 2 3]", 5, Outcome.MERGED, Reason.UNITED, future=("[1]", "[1 2]")
    ),
    "5: the workspace continues what the store had long ago": Row(
        "",
        "09:00 [1 2x]",
        "08:00 [1 2 4]",
        5,
        OUT,
        Reason.DIVERGED,
        Side.WORKSPACE,
        conflict=True,
        past=("[1 2]", "[3]"),
    ),
    "5: another text at the same length": Row(
        "", "09:00 [1x 2]", "08:00 [1 2]", 5, OUT, Reason.NEWER_STORE, conflict=True
    ),
    "11: another text, and it goes on": Row("[1 2]", "09:00 [1 2]", "08:00 [1x 2 3]", 11, IN, Reason.EDITED_WORKSPACE),
    "11: another text, and cut short": Row(
        "[1 2]", "09:00 [1 2]", "10:00 [1x]", 11, IN, Reason.DIVERGED, Side.STORE, conflict=True
    ),
    "13: another text, and it goes on": Row("[1 2]", "09:00 [1x 2 3]", "10:00 [1 2]", 13, OUT, Reason.EDITED_STORE),
    "15: edited in the store, the workspace goes on": Row(
        "[1 2]", "09:00 [1x 2]", "08:00 [1 2 3]", 15, Outcome.MERGED, Reason.UNITED
    ),
    "15: edited in the workspace, the store goes on": Row(
        "[1 2]", "09:00 [1 2 3]", "10:00 [1x 2]", 15, Outcome.MERGED, Reason.UNITED
    ),
    "15: the same, with another configuration": Row(
        "[1 2]", "09:00 [1 2 3]", "10:00 [1x 2] b2", 15, Outcome.MERGED, Reason.UNITED
    ),
    "15: the same, but another configuration on both": Row(
        "[1 2]", "09:00 [1 2 3] b1", "10:00 [1x 2] b2", 15, IN, Reason.DIVERGED, Side.STORE, conflict=True
    ),
    "15: the same, but the store is preferred": Row(
        "[1 2]",
        "09:00 [1 2 3]",
        "10:00 [1x 2]",
        15,
        OUT,
        Reason.DIVERGED,
        Side.WORKSPACE,
        conflict=True,
        policy=Policy(prefer=Prefer.STORE),
    ),
    "15: edited in both, the workspace goes on": Row(
        "[1 2]", "09:00 [1x 2]", "10:00 [1 2x 3]", 15, IN, Reason.DIVERGED, Side.STORE, conflict=True
    ),
    "15: edited in both, the workspace goes on, configured to keep the loser in the vault": Row(
        "[1 2]",
        "09:00 [1x 2]",
        "10:00 [1 2x 3]",
        15,
        IN,
        Reason.DIVERGED,
        conflict=True,
        policy=Policy(diverged=Diverged.NEWEST),
    ),
    "diverged, configured to go by the time": Row(
        "[1]",
        "09:00 [1 2]",
        "10:00 [1 3]",
        15,
        IN,
        Reason.DIVERGED,
        conflict=True,
        policy=Policy(diverged=Diverged.NEWEST),
    ),
    "diverged, configured to ask": Row(
        "[1]",
        "09:00 [1 2]",
        "10:00 [1 3]",
        15,
        Outcome.HELD,
        Reason.DIVERGED_HELD,
        conflict=True,
        policy=Policy(diverged=Diverged.HOLD),
    ),
    "11: rewritten, but the newer one has its end: nothing is forked": Row(
        "[1 2 3 4]", "11:00 [1 2 3 4]", "10:00 [2 3]", 11, OUT, Reason.DIVERGED, conflict=True
    ),
    "streams without a direction": Row(
        "",
        "08:00 [1 2]",
        "09:00 [1]",
        5,
        IN,
        Reason.NEWER_WORKSPACE,
        conflict=True,
        policy=Policy(stream=StreamRule.NEWEST),
    ),
    "15: answered for the store": Row(
        "[1]", "09:00 [1] b2", "10:00 [1] b3", 15, OUT, Reason.DECIDED, policy=answer(Take.STORE)
    ),
    "15: diverged, answered for the store: the other one lives on": Row(
        "[1]", "09:00 [1 2]", "10:00 [1 3]", 15, OUT, Reason.DIVERGED, Side.WORKSPACE, policy=answer(Take.STORE)
    ),
    "15: diverged, answered for both": Row(
        "[1]", "09:00 [1 2]", "10:00 [1 3]", 15, IN, Reason.DECIDED, Side.STORE, policy=answer(Take.BOTH)
    ),
    "15: skipped": Row(
        "[1]", "09:00 [1 2]", "10:00 [1 3]", 15, HELD, Reason.CONFLICT_HELD, conflict=True, policy=answer(Take.KEEP)
    ),
    "11: an answer about a conflict that is none any more": Row(
        "[1]", "09:00 [1]", "10:00 [1] b3", 11, IN, Reason.EDITED_WORKSPACE, policy=answer(Take.STORE)
    ),
    "15: configured to be held": Row(
        "[1]", "09:00 [1] b2", "10:00 [1] b3", 15, HELD, Reason.CONFLICT_HELD, conflict=True, policy=HOLD
    ),
    "15: diverged, and configured to be held": Row(
        "[1]", "09:00 [1 2]", "10:00 [1 3]", 15, HELD, Reason.CONFLICT_HELD, conflict=True, policy=HOLD
    ),
    "15: configured to be held, but one continues the other": Row(
        "[1]", "09:00 [1 2]", "10:00 [1 2 3]", 15, IN, Reason.AHEAD_WORKSPACE, policy=HOLD
    ),
    "11: configured to be held, but only one side was edited": Row(
        "[1 2]", "09:00 [1 2]", "10:00 [1 3]", 11, IN, Reason.DIVERGED, Side.STORE, conflict=True, policy=HOLD
    ),
    "15: configured to be held, but a side is preferred": Row(
        "[1]",
        "09:00 [1] b2",
        "10:00 [1] b3",
        15,
        OUT,
        Reason.PREFERRED,
        conflict=True,
        policy=Policy(conflict=OnConflict.HOLD, prefer=Prefer.STORE),
    ),
    "taken from the store": Row("", "08:00 [1]", "09:00 [1 2]", 5, OUT, Reason.DECIDED, policy=take(Take.STORE)),
    "taken from the workspace": Row("", "09:00 [1 2]", "08:00 [1]", 5, IN, Reason.DECIDED, policy=take(Take.WORKSPACE)),
    "both taken: the newer stays, the other is forked": Row(
        "", "09:00 [1 2]", "10:00 [1]", 5, IN, Reason.DECIDED, Side.STORE, policy=take(Take.BOTH)
    ),
    "both taken: what the newer one continues is not forked": Row(
        "", "09:00 [1]", "10:00 [1 2]", 5, IN, Reason.DECIDED, policy=take(Take.BOTH)
    ),
    "both taken: an older version is not forked": Row(
        "", "10:00 [1 2]", "09:00 [1]", 5, OUT, Reason.DECIDED, policy=take(Take.BOTH)
    ),
    "kept as they are": Row("", "09:00 [1 2]", "10:00 [1]", 5, Outcome.ASIDE, Reason.KEPT, policy=take(Take.KEEP)),
    "the store's is incomplete": Row("[1]", "09:00 nobase [1]", "09:00 [1]", 7, IN, Reason.INCOMPLETE),
    "missing in the workspace": Row("[1]", "09:00 [1]", "", 9, OUT, Reason.INCOMPLETE),
    "missing in the store": Row("[1]", "", "09:00 [1]", 7, IN, Reason.INCOMPLETE),
}

EXTRAS = {
    "new in the workspace": Row("", "", '09:00 "x"', 2, IN, Reason.EXTERNAL),
    "new in the store": Row("", '09:00 "x"', "", 3, NO),
    "removed in the workspace": Row('"x"', '09:00 "x"', "", 9, NO),
    "removed in the store": Row('"x"', "", '09:00 "x"', 7, Outcome.DROP, Reason.REMOVED_IN_STORE),
    "removed in the store, edited in the workspace": Row('"x"', "", '09:00 "y"', 8, IN, Reason.EDIT_WINS),
    "edited in the workspace": Row('"x"', '09:00 "x"', '08:00 "y"', 11, IN, Reason.EDITED_WORKSPACE),
    "edited on both": Row('"x"', '09:00 "y"', '08:00 "z"', 15, OUT, Reason.NEWER_STORE, conflict=True),
    "taken by a decision, and not forked": Row(
        "", '09:00 "y"', '08:00 "z"', 5, OUT, Reason.DECIDED, policy=take(Take.BOTH)
    ),
    "a decision is no reason to publish one": Row("", '09:00 "y"', "", 3, NO, policy=take(Take.STORE)),
}

METADATA_ROWS = {
    "edited on both": Row(
        'title "A"', '09:00 title "B"', '10:00 title "C"', 15, IN, Reason.NEWER_WORKSPACE, conflict=True
    ),
    "an old version in the workspace": Row(
        'title "B"', '09:00 title "B"', '10:00 title "A"', 11, BACK, Reason.BEHIND, past=('title "A"',)
    ),
    "an old version in the store is an edit": Row(
        'title "B"', '09:00 title "A"', '10:00 title "B"', 13, OUT, Reason.EDITED_STORE, past=('title "A"',)
    ),
}


@pytest.mark.parametrize("row", STREAMS.values(), ids=STREAMS)
def test_stream(row: Row) -> None:
    check(STREAM, row)


@pytest.mark.parametrize("row", EXTRAS.values(), ids=EXTRAS)
def test_extra(row: Row) -> None:
    check(NOTE, row)


@pytest.mark.parametrize("row", METADATA_ROWS.values(), ids=METADATA_ROWS)
def test_metadata(row: Row) -> None:
    check(METADATA, row)


NEW, OLD = "[1 2]", "[1 3]"
BY_COMMITS = {
    "5: the workspace's is older": (Row("", f"08:00 {NEW}", f"09:00 {OLD}", 5, BACK, Reason.BEHIND), Side.WORKSPACE),
    "5: the store's is older": (Row("", f"09:00 {OLD}", f"08:00 {NEW}", 5, IN, Reason.LATER_COMMIT), Side.STORE),
    "11: an older version checked out": (
        Row(NEW, f"08:00 {NEW}", f"09:00 {OLD}", 11, BACK, Reason.BEHIND),
        Side.WORKSPACE,
    ),
    "11: a newer one": (Row(OLD, f"09:00 {OLD}", f"08:00 {NEW}", 11, IN, Reason.LATER_COMMIT), Side.STORE),
    "13: the store has got a later commit": (
        Row("[1]", "09:00 [1 2]", "08:00 [1]", 13, BACK, Reason.BEHIND),
        Side.WORKSPACE,
    ),
    "13: from another checkout": (
        Row("[1]", "09:00 [1 2]", "08:00 [1]", 13, BACK, Reason.BEHIND, future=("[1 2]",)),
        Side.WORKSPACE,
    ),
    "13: the store has gone back": (Row(NEW, f"09:00 {OLD}", f"08:00 {NEW}", 13, IN, Reason.LATER_COMMIT), Side.STORE),
    "13: another checkout has settled for it": (
        Row(NEW, f"09:00 {OLD}", f"08:00 {NEW}", 13, OUT, Reason.EDITED_STORE, future=(OLD,)),
        Side.STORE,
    ),
    "15: an older one checked out, and the store has gone on": (
        Row(NEW, "08:00 [1 2 4]", f"09:00 {OLD}", 15, BACK, Reason.BEHIND),
        Side.WORKSPACE,
    ),
    "the history of runs knows better": (
        Row("", f"08:00 {NEW}", f"09:00 {OLD}", 5, BACK, Reason.BEHIND, past=(OLD, "[7]")),
        Side.STORE,
    ),
    "a decision is one": (
        Row("", f"09:00 {NEW}", f"08:00 {OLD}", 5, IN, Reason.DECIDED, policy=take(Take.WORKSPACE)),
        Side.WORKSPACE,
    ),
}


@pytest.mark.parametrize(("row", "outdated"), BY_COMMITS.values(), ids=BY_COMMITS)
def test_the_order_of_commits_comes_before_events_and_times(row: Row, outdated: Side) -> None:
    check(STREAM, row, outdated)


@pytest.mark.parametrize(
    ("ours", "theirs", "noted"),
    [
        ("08:00 [1]", "09:00 [1] b2", Reason.BASE_REPLACED),
        ("09:00 [1]", "08:00 [1] b2", None),
        ("08:00 [1]", "09:00 [1 2] b2", None),
        ("08:00 [1]", "09:00 [1x]", None),
    ],
)
def test_another_base_configuration_that_replaces_the_stores_is_noted(
    ours: str, theirs: str, noted: Reason | None
) -> None:
    view = view_of(stored(f"1-a  stream {ours}"), here(f"1-a  stream {theirs}"))
    assert decide_unit(view, STREAM, Baseline(), Policy()).noted is noted


def test_the_order_of_two_commits_says_nothing_of_other_contents() -> None:
    view = view_of(stored(f"1-a  stream 09:00 {NEW}"), here(f"1-a  stream 08:00 {OLD}"))
    for known in (("0", str(view.workspace.raw(STREAM))), (str(view.store.raw(STREAM)), "0")):
        baseline = Baseline(outdated={("jp-c1", STREAM): OutdatedContent(Side.STORE, *known)})
        assert decide_unit(view, STREAM, baseline, Policy()).reason is Reason.DIVERGED


BROKEN = '1-a/events.json  09:00 "{"'
SOUND = "1-a  metadata 09:00  stream 09:00 [1]"
DAMAGE = {
    "nothing is decided": (None, Outcome.HELD, Reason.INVALID),
    "the sound side is taken": (Take.STORE, Outcome.TO_WORKSPACE, Reason.DECIDED),
    "the broken side can't be taken": (Take.WORKSPACE, Outcome.HELD, Reason.INVALID),
    "nor can both": (Take.BOTH, Outcome.HELD, Reason.INVALID),
}


@pytest.mark.parametrize(("decision", "outcome", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_content_that_is_broken_in_the_workspace(decision: Take | None, outcome: Outcome, reason: Reason) -> None:
    view = view_of(stored(SOUND), here("1-a  metadata 09:00", BROKEN))
    found = decide_unit(view, STREAM, Baseline(), take(decision) if decision else Policy())
    assert (found.outcome, found.reason) == (outcome, reason)
    assert [unit.copy.side for unit in found.faulty] == [Side.WORKSPACE]


def test_content_that_is_broken_on_both_sides_is_held_whatever_is_decided() -> None:
    view = view_of(stored("1-a  metadata 09:00", BROKEN), here("1-a  metadata 09:00", BROKEN))
    found = decide_unit(view, STREAM, Baseline(), take(Take.STORE))
    assert (found.outcome, len(found.faulty)) == (Outcome.HELD, 2)


def test_damage_on_one_side_and_nothing_on_the_other_is_held() -> None:
    view = view_of(stored("1-a  metadata 09:00"), here("1-a  metadata 09:00  stream 09:00 nobase [1]"))
    assert decide_unit(view, STREAM, Baseline(), Policy()).outcome is Outcome.HELD


REMEMBERED = {
    "behind lasts while the store goes on": (AsideKind.BEHIND, "store", Outcome.BEHIND),
    "behind ends when the workspace changes": (AsideKind.BEHIND, "workspace", Outcome.TO_STORE),
    "local lasts while the store goes on": (AsideKind.LOCAL, "store", Outcome.ASIDE),
    "local ends when the workspace changes": (AsideKind.LOCAL, "workspace", Outcome.TO_STORE),
    "kept lasts while nothing changes": (AsideKind.KEPT, "", Outcome.ASIDE),
    "kept ends when the store changes": (AsideKind.KEPT, "store", Outcome.TO_STORE),
    "kept ends when the workspace changes": (AsideKind.KEPT, "workspace", Outcome.TO_STORE),
    "undone lasts while nothing changes": (AsideKind.UNDONE, "", Outcome.ASIDE),
    "undone ends when the store changes": (AsideKind.UNDONE, "store", Outcome.TO_STORE),
}


@pytest.mark.parametrize(("kind", "changed", "outcome"), REMEMBERED.values(), ids=REMEMBERED)
def test_what_was_set_aside(kind: AsideKind, changed: str, outcome: Outcome) -> None:
    view = view_of(stored('1-a  metadata 09:00 title "A"'), here('1-a  metadata 10:00 title "B"'))
    store, workspace = (
        "another" if changed == name else side.raw(METADATA)
        for name, side in (("store", view.store), ("workspace", view.workspace))
    )
    record = AsideRecord(kind, store, workspace)
    baseline = Baseline(asides={("jp-c1", METADATA): record})
    assert decide_unit(view, METADATA, baseline, Policy()).outcome is outcome


def test_a_decision_ends_what_was_set_aside() -> None:
    view = view_of(stored('1-a  metadata 09:00 title "A"'), here('1-a  metadata 10:00 title "B"'))
    record = AsideRecord(AsideKind.KEPT, view.store.raw(METADATA), view.workspace.raw(METADATA))
    found = decide_unit(view, METADATA, Baseline(asides={("jp-c1", METADATA): record}), take(Take.STORE))
    assert found.outcome is Outcome.TO_WORKSPACE


LOCAL = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL)})


def test_a_local_copy_is_never_written_and_what_loses_there_is_remembered() -> None:
    view = view_of(
        stored('1-a  metadata 10:00 title "A"  stream 09:00 [1]'),
        here('1-a  metadata 09:00 title "B"  stream 09:00 [1 2]'),
        LOCAL,
    )
    metadata, stream = decide_units(view, LOCAL, Policy(), CLEAR)
    assert (metadata.unit, metadata.outcome, metadata.reason) == (METADATA, Outcome.ASIDE, Reason.LOCAL_PRESENT)
    assert metadata.record == AsideRecord(AsideKind.LOCAL, None, view.workspace.raw(METADATA))
    assert (stream.unit, stream.outcome) == (STREAM, Outcome.TO_STORE)


def test_a_stream_that_is_made_one_is_not_written_into_a_local_copy() -> None:
    """Nor into the trash: what is there lost, and that is remembered."""
    baseline = replace(
        LOCAL, agreed={"jp-c1": BaselineEntry({STREAM: digest_of(STREAM, "[1 2]")}, None, None, None, "1-a")}
    )
    stream = "metadata 09:00  stream 09:00 [1 2 3]"
    for path in ("1-a", ".trash/2-b/conversations/1-a"):
        view = view_of(stored("1-a  metadata 09:00  stream 09:30 [1x 2]"), here(f"{path}  {stream}"), baseline)
        local = decide_units(view, baseline, Policy(), CLEAR)
        *_, verdict = local if path == "1-a" else decide_carried(view, baseline, Policy())
        assert (verdict.unit, verdict.outcome, verdict.reason) == (STREAM, Outcome.MERGED, Reason.UNITED)
        assert verdict.record == AsideRecord(AsideKind.LOCAL, None, view.workspace.raw(STREAM))


def test_an_extra_that_the_store_no_longer_has_stays_in_a_local_copy() -> None:
    digest = digest_of(NOTE, '"x"')
    baseline = replace(LOCAL, agreed={"jp-c1": BaselineEntry({NOTE: digest}, None, None, None, "1-a")})
    view = view_of(stored(SOUND), here(SOUND, '1-a/NOTE.md  09:00 "x"'), baseline)
    assert decide_units(view, baseline, Policy(), CLEAR)[-1].outcome is Outcome.ASIDE


@pytest.mark.parametrize(
    ("sides", "outcome"),
    [
        (CLEAR, Outcome.DROP),
        (replace(CLEAR, store_replaced=True), Outcome.TO_STORE),
        (replace(CLEAR, store_emptied=True), Outcome.TO_STORE),
        (replace(CLEAR, store_hidden=True), Outcome.WAIT),
        (replace(CLEAR, store_doubtful=("1-a/sub",)), Outcome.WAIT),
        (replace(CLEAR, store_doubtful=("2-b/sub",)), Outcome.DROP),
    ],
    ids=[
        "seen",
        "another store",
        "an empty store",
        "a store that can't be read",
        "a directory of it that can't be read",
        "another's",
    ],
)
def test_an_extra_that_the_store_seems_to_lack_goes_only_where_that_was_seen(sides: Sides, outcome: Outcome) -> None:
    baseline = Baseline(agreed={"jp-c1": BaselineEntry({NOTE: digest_of(NOTE, '"x"')}, None, None, None, "1-a")})
    view = view_of(stored(SOUND), here(SOUND, '1-a/NOTE.md  09:00 "x"'), baseline)
    assert decide_units(view, baseline, Policy(), sides)[-1].outcome is outcome


SPENT = digest_of(STREAM, "[1]"), digest_of(STREAM, "[1 2]"), digest_of(STREAM, "[1 2 3]")
OUTDATED: dict[str, tuple[str, str, Prefer, tuple[Outcome, Reason | None]]] = {
    "the version before": ("[1 2]", "[1 2 3]", Prefer.NEWEST, (Outcome.TO_STORE, Reason.REFILL)),
    "as it was agreed on": ("[1 2 3]", "[5]", Prefer.NEWEST, (Outcome.TO_STORE, Reason.EDITED_WORKSPACE)),
    "the version before, asked for": ("[1 2]", "[5]", Prefer.STORE, (Outcome.TO_WORKSPACE, Reason.PREFERRED)),
    "an older one than an old one": ("[1]", "[1 2]", Prefer.NEWEST, (Outcome.TO_STORE, Reason.REFILL)),
    "an older one than an edit": ("[1 2]", "[5]", Prefer.NEWEST, (Outcome.TO_STORE, Reason.REFILL)),
    "the newest, against an old one": ("[1 2 3]", "[1]", Prefer.NEWEST, (Outcome.BEHIND, Reason.BEHIND)),
    "one that isn't known": ("[1 2 3 4]", "[1 2 3]", Prefer.NEWEST, (Outcome.TO_WORKSPACE, Reason.TIE)),
}


@pytest.mark.parametrize(("store", "workspace", "prefer", "expected"), OUTDATED.values(), ids=OUTDATED)
def test_an_older_version_in_another_store(
    store: str, workspace: str, prefer: Prefer, expected: tuple[Outcome, Reason | None]
) -> None:
    """It is older by what was agreed on, whatever the times are: these are the same."""
    agreed = BaselineEntry({STREAM: SPENT[2]}, None, None, None, "1-a")
    baseline = Baseline(agreed={"jp-c1": agreed}, history={("jp-c1", STREAM): SPENT})
    view = view_of(
        stored(f"1-a  metadata 09:00  stream 09:00 {store}"),
        here(f"1-a  metadata 09:00  stream 09:00 {workspace}"),
        baseline,
    )
    policy = Policy(prefer=prefer, stream=StreamRule.NEWEST)
    _, verdict = decide_units(view, baseline, policy, replace(CLEAR, store_replaced=True))
    assert (verdict.outcome, verdict.reason) == expected


def test_the_newest_version_in_another_store_is_judged_against_an_edit_of_an_older_one() -> None:
    agreed = BaselineEntry({STREAM: SPENT[1]}, None, None, None, "1-a")
    baseline = Baseline(agreed={"jp-c1": agreed}, history={("jp-c1", STREAM): SPENT})
    view = view_of(
        stored("1-a  metadata 09:00  stream 09:00 [1 2 3]"), here("1-a  metadata 09:00  stream 09:00 [5]"), baseline
    )
    _, verdict = decide_units(view, baseline, Policy(stream=StreamRule.NEWEST), replace(CLEAR, store_replaced=True))
    assert (verdict.outcome, verdict.reason) == (Outcome.TO_WORKSPACE, Reason.TIE)


def test_a_decision_is_carried_out_in_another_store_too() -> None:
    baseline = Baseline(history={("jp-c1", STREAM): SPENT})
    view = view_of(
        stored("1-a  metadata 09:00  stream 09:00 [1]"), here("1-a  metadata 09:00  stream 09:00 [1 2]"), baseline
    )
    policy = Policy(decisions={"jp-c1": Take.STORE})
    _, verdict = decide_units(view, baseline, policy, replace(CLEAR, store_replaced=True))
    assert (verdict.outcome, verdict.reason) == (Outcome.TO_WORKSPACE, Reason.DECIDED)


def test_bytes_that_are_equal_have_nothing_to_lose_in_a_local_copy() -> None:
    baseline = replace(LOCAL, parents={"jp-c1": "jp-c2"}, agreed={"jp-c1": BaselineEntry({}, None, None, None, "1-a")})
    view = view_of(stored("1-a  metadata 09:00"), here("1-a  metadata 09:00"), baseline)
    assert view.store.digest(METADATA) != view.workspace.digest(METADATA)
    assert decide_unit(view, METADATA, baseline, Policy()).outcome is Outcome.NOTHING


def test_what_jp_carried_into_its_trash_is_saved_where_it_is_newer_and_never_written() -> None:
    inside = ".trash/2-b/conversations/1-a"
    view = view_of(
        stored('1-a  metadata 10:00 title "A"  stream 09:00 [1]', '1-a/NOTE.md  09:00 "x"'),
        here(f'{inside}  metadata 09:00 title "B"  stream 09:00 [1 2]'),
    )
    found = {verdict.unit: verdict.outcome for verdict in decide_carried(view, Baseline(), Policy())}
    assert found == {METADATA: Outcome.ASIDE, STREAM: Outcome.TO_STORE}


def test_what_the_trash_lacks_or_nobody_can_read_there_concerns_nobody() -> None:
    """But for what nobody can read in the store either: the trash may be all that is left of it."""
    inside = ".trash/2-b/conversations/1-a"
    notes = [f'1-a/{name}.md  09:00 "x"' for name in "EDCBA"]
    carried = [f'{inside}/{name}.md  10:00 "y"' for name in "EDCBA"]
    metadata = "1-a  metadata 10:00"
    broken, worse = '1-a/events.json  09:00 "{"', f'{inside}/events.json  09:00 "[{{"'
    units = {METADATA: digest_of(METADATA, ""), STREAM: digest_of(STREAM, "[1]"), "extra:A.md": digest_of(NOTE, '"x"')}
    baseline = Baseline(agreed={"jp-c1": BaselineEntry(units, None, None, None, "1-a")})
    for store, workspace, found in (
        ([f"{metadata}  stream 09:00 [1]", *notes], [f"{inside}  metadata 09:00"], []),
        ([metadata, *notes], [f"{inside}  metadata 09:00"], []),
        ([metadata, broken], [f"{inside}  metadata 10:00", worse], [(STREAM, Outcome.HELD)]),
        ([f"{metadata}  stream 09:00 [1]"], [f"{inside}  metadata 10:00", worse], []),
        (
            [f"{metadata}  stream 09:00 [1]", *notes],
            [f'{inside}  metadata 11:00 title "B"  stream 09:00 [1 2]', *carried],
            [(name, Outcome.TO_STORE) for name in (METADATA, STREAM, *(f"extra:{each}.md" for each in "ABCDE"))],
        ),
    ):
        verdicts = decide_carried(view_of(stored(*store), here(*workspace), baseline), baseline, Policy())
        assert [(verdict.unit, verdict.outcome) for verdict in verdicts] == found


def test_where_the_store_hides_something_edits_are_saved_and_only_removals_wait() -> None:
    agreed = {METADATA: digest_of(METADATA, ""), NOTE: digest_of(NOTE, '"x"')}
    baseline = Baseline(agreed={"jp-c1": BaselineEntry(agreed, None, None, None, "1-a")})
    view = view_of(
        stored("1-a  metadata 09:00"), here('1-a  metadata 09:30 title "B"', '1-a/NOTE.md  09:00 "x"'), baseline
    )
    doubt = replace(CLEAR, store_doubtful=("1-a/link",))
    verdicts = decide_units(view, baseline, Policy(), doubt)
    assert [(verdict.unit, verdict.case, verdict.outcome) for verdict in verdicts] == [
        (METADATA, 11, Outcome.TO_STORE),
        (NOTE, 7, Outcome.WAIT),
    ]


REPROJECT = Policy(missing=Missing.REPROJECT)
PUBLISHED = {
    "never agreed on, asked for": (IntentKind.PROJECTED, False, False, Policy(), Outcome.TO_WORKSPACE),
    "never agreed on, nor asked for": (None, False, False, Policy(), Outcome.HELD),
    "never agreed on, and all is to be there": (None, False, False, REPROJECT, Outcome.TO_WORKSPACE),
    "the same, but local": (None, False, True, REPROJECT, Outcome.HELD),
    "agreed on": (None, True, False, Policy(), Outcome.TO_WORKSPACE),
    "agreed on, and removed here since": (IntentKind.REMOVED, True, False, Policy(), Outcome.HELD),
    "removed here, though all is to be there": (IntentKind.REMOVED, False, False, REPROJECT, Outcome.HELD),
}


@pytest.mark.parametrize(("kind", "agreed", "local", "policy", "outcome"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_file_that_is_missing_here_is_published_only_where_the_conversation_is(
    kind: IntentKind | None, agreed: bool, local: bool, policy: Policy, outcome: Outcome
) -> None:
    units = {STREAM: digest_of(STREAM, "[1]")}
    baseline = Baseline(
        agreed={"jp-c1": BaselineEntry(units, None, None, None, "1-a")} if agreed else {},
        intents={"jp-c1": Intent(kind)} if kind is not None else {},
    )
    flag = " local" if local else ""
    view = view_of(stored(f"1-a  metadata 09:00{flag}  stream 09:00 [1]"), here("1-a  metadata 09:00"), baseline)
    assert decide_unit(view, STREAM, baseline, policy).outcome is outcome


def test_only_the_newest_entry_of_the_history_is_no_older_version() -> None:
    for past, outcome in ((("[3]", "[4]"), BACK), (("[4]", "[3]"), BACK)):
        row = Row("[1 2]", "09:00 [1 2]", "10:00 [3]", 11, outcome, Reason.BEHIND, past=past)
        check(STREAM, row)
    check(
        STREAM,
        Row("", "08:00 [5]", "10:00 [3]", 5, IN, Reason.DIVERGED, Side.STORE, conflict=True, past=("[4]", "[3]")),
    )


def merged(store: str, workspace: str, *, bare: str = "") -> Verdict:
    baseline = Baseline(agreed={"jp-c1": BaselineEntry({STREAM: digest_of(STREAM, "[1 2]")}, None, None, None, "1-a")})
    view = view_of(stored(*lines(STREAM, store)), here(*lines(STREAM, workspace)), baseline)
    if bare:
        unit = view.side(Side(bare)).units[STREAM]
        plain = replace(unit, copy=replace(unit.copy, stream=replace(unit.stream, content=None)))
        units = {**view.side(Side(bare)).units, STREAM: plain}
        view = replace(view, **{bare: replace(view.side(Side(bare)), units=units)})
    return decide_unit(view, STREAM, baseline, Policy())


def test_a_united_stream_has_the_edit_what_was_added_and_the_configuration_that_was_changed() -> None:
    for store, workspace, beside in (
        ("09:00 [1x 2]", "08:00 [1 2 3 4]", Side.STORE),
        ("09:00 [1x 2] b2", "08:00 [1 2 3 4]", Side.STORE),
        ("09:00 [1x 2]", "08:00 [1 2 3 4] b2", Side.WORKSPACE),
        ("09:00 [1x 2] b2", "08:00 [1 2 3 4] b2", Side.STORE),
        ("09:00 [1 2 3 4] b2", "08:00 [1x 2]", Side.STORE),
        ("09:00 [1 2 3 4]", "08:00 [1x 2] b2", Side.WORKSPACE),
    ):
        verdict = merged(store, workspace)
        assert (verdict.outcome, verdict.count, verdict.beside) == (Outcome.MERGED, 4, beside)
        assert verdict.content == StreamText("1x 2 3 4").files()["events.json"]


@pytest.mark.parametrize("side", ["store", "workspace"])
def test_what_is_too_large_to_be_held_is_not_united(side: str) -> None:
    verdict = merged("09:00 [1x 2]", "10:00 [1 2 3 4]", bare=side)
    assert (verdict.outcome, verdict.reason, verdict.forks) == (IN, Reason.DIVERGED, Side.STORE)


def test_units_come_in_the_order_metadata_stream_extras() -> None:
    view = view_of(stored(SOUND, '1-a/A.md  09:00 "x"'), here(SOUND, '1-a/NOTE.md  09:00 "x"'))
    names = [verdict.unit for verdict in decide_units(view, Baseline(), Policy(), CLEAR)]
    assert names == [METADATA, STREAM, "extra:A.md", NOTE]


DURING_A_MERGE = {
    "more events": ("09:00 [1]", "10:00 [1 2]", StreamRule.DIRECTED, Outcome.TO_STORE),
    "other events": ("09:00 [1 2]", "10:00 [1 3]", StreamRule.DIRECTED, Outcome.HELD),
    "another text": ("09:00 [1 2]", "10:00 [1 2x]", StreamRule.DIRECTED, Outcome.HELD),
    "other events, older": ("10:00 [1 2]", "09:00 [1 3]", StreamRule.DIRECTED, Outcome.HELD),
    "other events, for the time alone": ("09:00 [1]", "10:00 [1 2]", StreamRule.NEWEST, Outcome.HELD),
    "an older version, for the time alone": ("10:00 [1]", "09:00 [1 2]", StreamRule.NEWEST, Outcome.TO_WORKSPACE),
    "none in the store": ("", "10:00 [1]", StreamRule.DIRECTED, Outcome.TO_STORE),
}


@pytest.mark.parametrize(("store", "workspace", "rule", "expected"), DURING_A_MERGE.values(), ids=DURING_A_MERGE)
def test_what_git_is_in_the_middle_of_replaces_nothing(
    store: str, workspace: str, rule: StreamRule, expected: Outcome
) -> None:
    view = view_of(stored(*lines(STREAM, store)), here(*lines(STREAM, workspace)))
    policy = Policy(stream=rule, git_busy="a merge")
    (verdict,) = (each for each in decide_units(view, Baseline(), policy, CLEAR) if each.unit == STREAM)
    assert (verdict.outcome, verdict.forks) == (expected, None)
    assert (verdict.reason is Reason.GIT_BUSY) == (expected is Outcome.HELD)
    decided = replace(policy, decisions={"jp-c1": Take.WORKSPACE})
    assert Outcome.TO_STORE in {each.outcome for each in decide_units(view, Baseline(), decided, CLEAR)}


def judged(base: str | None, store: str, workspace: str, policy: Policy | None = None) -> Verdict:
    """Decide metadata whose content before is known, or not (None)."""
    baseline = agreed_on(f"1-a  metadata 07:00 {base or BEFORE}  stream 07:00 [1]")
    baseline = baseline if base is not None else replace(baseline, contents={})
    lines = [f"1-a  metadata {text}  stream 07:00 [1]" for text in (store, workspace)]
    view = view_of(stored(lines[0]), here(lines[1]), baseline)
    return decide_unit(view, METADATA, baseline, policy or Policy())


BEFORE = 'title "A"'
PREFERRED = Policy(prefer=Prefer.WORKSPACE)
MERGES = {
    "each another key": (BEFORE, '09:00 title "B"', '08:00 title "A" x=1', MERGED, Reason.UNITED, ()),
    "the store has both edits": (BEFORE, '08:00 title "B" x=1', '09:00 title "A" x=1', OUT, Reason.UNITED, ()),
    "the workspace has both edits": (BEFORE, '09:00 title "B"', '08:00 title "B" x=1', IN, Reason.UNITED, ()),
    "one key, the store's is newer": (
        *(BEFORE, '09:00 title "B"', '08:00 title "C"', OUT, Reason.NEWER_STORE, ("title",)),
    ),
    "one key, the workspace's is newer": (
        *(BEFORE, '08:00 title "B"', '09:00 title "C"', IN, Reason.NEWER_WORKSPACE, ("title",)),
    ),
    "one key, a tie": (BEFORE, '09:00 title "B"', '09:00 title "C"', OUT, Reason.TIE, ("title",)),
    "one key and another": (BEFORE, '09:00 title "B"', '08:00 title "C" x=1', MERGED, Reason.UNITED, ("title",)),
    "the content before is unknown": (None, '09:00 title "B"', '08:00 title "A" x=1', OUT, Reason.NEWER_STORE, ()),
}


@pytest.mark.parametrize(("base", "store", "workspace", "outcome", "reason", "keys"), MERGES.values(), ids=MERGES)
def test_metadata_is_merged_key_by_key(
    base: str | None, store: str, workspace: str, outcome: Outcome, reason: Reason, keys: tuple[str, ...]
) -> None:
    found = judged(base, store, workspace)
    assert (found.case, found.outcome, found.reason, found.keys) == (15, outcome, reason, keys)
    assert found.conflict == bool(keys or base is None)
    assert (found.content is not None) == (outcome is MERGED)


def test_prefer_decides_only_the_keys_that_both_have_edited() -> None:
    found = judged(BEFORE, '09:00 title "B" x=1', '08:00 title "C" y=1', PREFERRED)
    assert (found.outcome, found.keys) == (MERGED, ("title",))
    assert json.loads(found.content or b"") | {"last_activated_at": ""} == {
        "title": "C",
        "last_activated_at": "",
        "x": 1,
        "y": 1,
    }
    assert judged(BEFORE, '09:00 title "B"', '08:00 title "C"', PREFERRED).reason is Reason.PREFERRED


def test_what_is_not_as_jp_writes_it_is_decided_as_a_whole() -> None:
    baseline = agreed_on(f"1-a  metadata 07:00 {BEFORE}  stream 07:00 [1]")
    compact = '{\\"last_activated_at\\":\\"2026-01-01 00:00:00.0\\",\\"x\\":1}'
    files = ['1-a  metadata 09:00 title "B"  stream 07:00 [1]', "1-a  stream 07:00 [1]"]
    view = view_of(stored(files[0]), here(files[1], f'1-a/metadata.json 08:00 "{compact}"'), baseline)
    found = decide_unit(view, METADATA, baseline, Policy())
    assert (found.outcome, found.reason, found.conflict, found.keys) == (OUT, Reason.NEWER_STORE, True, ())


ONE = "1-a  metadata 07:00  stream 09:00 [1]"


@pytest.mark.parametrize(
    ("store", "reason"), [("[7]", Reason.DIVERGED), ("[1 2]", Reason.AHEAD_STORE)], ids=["another", "a longer one"]
)
def test_in_another_store_no_history_makes_a_version_older(store: str, reason: Reason) -> None:
    """Another checkout had replaced this checkout's version, in the store that is gone."""
    known, key = agreed_on(ONE), ("jp-c1", STREAM)
    known = replace(known, history={**known.history, key: (*known.history[key], "newer")})
    view = view_of(stored(f"1-a  metadata 07:00  stream 10:00 {store}"), here(ONE), known)
    stream = decide_units(view, known, Policy(), replace(CLEAR, store_replaced=True))[1]
    assert (stream.outcome, stream.reason) == (OUT, reason)


def test_some_files_that_came_back_bring_no_others() -> None:
    newer = '1-a  metadata 09:00 title "B"  stream 09:00 [1]'
    view = view_of(stored(newer), here("1-a  metadata 08:00"))
    verdicts = {verdict.unit: verdict.outcome for verdict in decide_units(view, Baseline(), Policy(), CLEAR)}
    assert verdicts == {METADATA: Outcome.WAIT, STREAM: HELD}


def test_every_unit_of_either_side_is_decided() -> None:
    noted = ["1-a  metadata 08:00", '1-a/NOTE.md  08:00 "n"']
    for store, workspace in ((noted, [ONE]), ([ONE], noted)):
        view = view_of(stored(*store), here(*workspace))
        found = [verdict.unit for verdict in decide_units(view, Baseline(), Policy(), CLEAR)]
        assert found == [METADATA, STREAM, NOTE]


def test_metadata_with_its_parent_put_back_is_no_older_version() -> None:
    """The bytes in the file are an older version, which another checkout knows with the parent."""
    agreed = Baseline(agreed={"jp-c1": BaselineEntry({METADATA: "before"}, None, None, None, "1-a")})
    store = stored('1-a  metadata 08:00 title "B"  stream 07:00 [1]')
    view = view_of(store, here("1-a  metadata 09:00  stream 07:00 [1]"), agreed)
    unit = view.workspace.units[METADATA]
    units = {**view.workspace.units, METADATA: replace(unit, digest="with parent")}
    view = replace(view, workspace=replace(view.workspace, units=units))
    baseline = replace(agreed, history={("jp-c1", METADATA): (str(unit.raw), "with parent")})
    found = decide_unit(view, METADATA, baseline, Policy())
    assert (found.case, found.outcome) == (15, IN)


def test_metadata_from_before_an_edit_makes_no_stream_an_older_version() -> None:
    """git has given a new worktree the last known metadata, and the store was edited since."""
    store = stored('1-a  metadata 08:00 title "B"  stream 07:00 [1]')
    view = view_of(store, here("1-a  metadata 09:00  stream 09:00 [1 2]"))
    baseline = Baseline(history={("jp-c1", METADATA): (str(view.workspace.digest(METADATA)),)})
    found = [decide_unit(view, unit, baseline, Policy()).outcome for unit in (METADATA, STREAM)]
    assert found == [BACK, IN]

"""Whether a conversation belongs on a side: cases 1-3, 6-9 and 12, and docs/design/intents.md."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind
from reconcile.model.options import Layout, Missing, Take
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Foreign, Problem, Side, Snapshot
from reconcile.planning.rules.presence import Goal, Presence, missing_side, removed_here
from tests.support.scenarios.building import agreed_on, context_of, here, seen, stored, view_of

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
EDITED = '1-a  metadata 09:00 title "A"  stream 09:00 [1 2]'
BESIDE = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
"""Somebody else, so that no side is empty."""
KNOWN = agreed_on(ONE, BESIDE)
FRESH = agreed_on(BESIDE)


def presence(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy | None = None) -> Presence:
    return context_of(store, workspace, baseline, policy).presences["jp-c1"]


@dataclass(frozen=True, slots=True)
class Row:
    """The conversation's line on either side, what is known, and what must become of it."""

    store: str
    workspace: str
    baseline: Baseline
    goal: Goal
    case: int
    state: str
    reason: Reason | None = None
    policy: Policy = field(default_factory=Policy)

    def found(self) -> Presence:
        return presence(
            stored(*filter(None, [self.store]), BESIDE),
            here(*filter(None, [self.workspace]), BESIDE),
            self.baseline,
            self.policy,
        )


def digests(line: str) -> frozenset[str]:
    units = view_of(stored(line), here()).store.units
    return frozenset(unit.digest for unit in units.values() if unit.digest is not None)


def intending(intent: Intent, baseline: Baseline = KNOWN) -> Baseline:
    return replace(baseline, intents={"jp-c1": intent})


REMOVED = Intent(IntentKind.REMOVED, place="1-a")
BURIED = {"jp-c1": digests(ONE)}
OLDER = {("jp-c1", name): ("0", *sorted(digests(EDITED)), "9") for name in (METADATA, STREAM)}

ROWS = {
    "2: new in the workspace": Row("", ONE, FRESH, Goal.IMPORT, 2, "external", Reason.EXTERNAL),
    "2: new, and broken": Row("", "1-a  metadata 09:00", FRESH, Goal.HELD, 2, "invalid", Reason.INVALID),
    "2: new, without metadata": Row("", "1-a  stream 09:00 [1]", FRESH, Goal.HELD, 2, "invalid", Reason.INVALID),
    "2: an old copy of what was removed": Row(
        "", ONE, replace(FRESH, tombstones=BURIED), Goal.REMOVED_BEFORE, 2, "removed-before"
    ),
    "2: it was removed, but this has other content": Row(
        "", EDITED, replace(FRESH, tombstones=BURIED), Goal.IMPORT, 2, "external", Reason.EXTERNAL
    ),
    "2: a version that was replaced long ago, of which nothing was agreed on": Row(
        "", EDITED, replace(FRESH, history=OLDER), Goal.IMPORT, 2, "external", Reason.EXTERNAL
    ),
    "2: an old copy, wanted back": Row(
        "",
        ONE,
        replace(FRESH, tombstones=BURIED),
        Goal.IMPORT,
        2,
        "external",
        Reason.DECIDED,
        policy=Policy(decisions={"jp-c1": Take.WORKSPACE}),
    ),
    "2: in the store's trash": Row(f".trash/{ONE}", ONE, FRESH, Goal.IMPORT, 2, "external", Reason.TRASHED),
    "3: in the store only": Row(ONE, "", FRESH, Goal.NOTHING, 3, "available"),
    "3: archived there": Row(f".archive/{ONE}", "", FRESH, Goal.NOTHING, 3, "archived"),
    "3: local": Row(ONE.replace('"A"', '"A" local'), "", FRESH, Goal.NOTHING, 3, "local"),
    "3: configured to be projected again": Row(
        ONE, "", FRESH, Goal.PROJECT, 3, "projected", Reason.REPROJECTED, policy=Policy(missing=Missing.REPROJECT)
    ),
    "3: asked for": Row(
        ONE, "", intending(Intent(IntentKind.PROJECTED), FRESH), Goal.PROJECT, 3, "projected", Reason.PROJECTED
    ),
    "4, 5, 10 to 15: on both sides": Row(ONE, EDITED, KNOWN, Goal.SYNC, 11, "in-sync"),
    "the same, local": Row(ONE, EDITED, intending(Intent(IntentKind.LOCAL)), Goal.SYNC, 11, "local"),
    "6: gone on both sides": Row("", "", KNOWN, Goal.NOTHING, 6, "gone"),
    "7: removed on the store side": Row("", ONE, KNOWN, Goal.REMOVE, 7, "removed-in-store", Reason.REMOVED_IN_STORE),
    "7: though the tombstone is there already": Row(
        "", ONE, replace(KNOWN, tombstones=BURIED), Goal.REMOVE, 7, "removed-in-store", Reason.REMOVED_IN_STORE
    ),
    "8: removed there, edited here": Row("", EDITED, KNOWN, Goal.IMPORT, 8, "external", Reason.EDIT_WINS),
    "8: but the edit is a version replaced long ago": Row(
        "", EDITED, replace(KNOWN, history=OLDER), Goal.REMOVED_BEFORE, 8, "removed-before"
    ),
    "9: removed in the workspace": Row(ONE, "", KNOWN, Goal.NOTHING, 9, "removed", Reason.REMOVED_HERE),
    "9: removed here before": Row(ONE, "", intending(REMOVED), Goal.NOTHING, 9, "removed"),
    "12: edited in the store, gone from the workspace": Row(
        EDITED, "", KNOWN, Goal.NOTHING, 12, "removed", Reason.REMOVED_HERE
    ),
}


DRAFT = '1-a/QUERY_MESSAGE.md  09:00 "x"'


@pytest.mark.parametrize(
    ("store", "workspace", "baseline", "case"),
    [
        ([ONE, DRAFT], [], KNOWN, 9),
        ([ONE, DRAFT], [ONE], FRESH, 5),
        ([ONE], [ONE, DRAFT], FRESH, 5),
        ([ONE], [ONE], FRESH, 4),
    ],
)
def test_the_case_of_a_conversation_is_about_what_was_agreed_on_or_else_about_all_units(
    store: list[str], workspace: list[str], baseline: Baseline, case: int
) -> None:
    assert presence(stored(*store, BESIDE), here(*workspace, BESIDE), baseline).case == case


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_row(row: Row) -> None:
    found = row.found()
    assert (found.goal, found.case, found.state, found.reason) == (row.goal, row.case, row.state, row.reason)


def test_what_was_removed_is_remembered_with_its_place() -> None:
    assert ROWS["9: removed in the workspace"].found().intent == REMOVED


DOUBTS = {
    "the store is another directory": (seen(Side.STORE, [BESIDE], identity="store:1"), Goal.IMPORT, Reason.REFILL),
    "the store is empty": (stored(), Goal.IMPORT, Reason.REFILL),
    "the store can't be read": (replace(stored(BESIDE), problems=(Problem("", "denied"),)), Goal.NOTHING, None),
    "its trash can't be read": (replace(stored(BESIDE), problems=(Problem(".trash", "denied"),)), Goal.NOTHING, None),
    "a directory of it can't be read": (
        replace(stored(BESIDE), problems=(Problem("1-a", "denied"),)),
        Goal.NOTHING,
        None,
    ),
    "a link is in its place": (
        replace(stored(BESIDE), foreign=(Foreign("1-a", "a symbolic link", link=True),)),
        Goal.NOTHING,
        None,
    ),
}


@pytest.mark.parametrize(("store", "goal", "reason"), DOUBTS.values(), ids=DOUBTS)
def test_no_removal_is_inferred_where(store: Snapshot, goal: Goal, reason: Reason | None) -> None:
    found = presence(store, here(ONE, BESIDE), KNOWN)
    assert (found.goal, found.reason) == (goal, reason)


HIDDEN = {
    name: store
    for name, (store, *_) in DOUBTS.items()
    if name not in ("the store is empty", "a directory of it can't be read")
}


@pytest.mark.parametrize("store", HIDDEN.values(), ids=HIDDEN)
def test_what_is_new_here_is_imported_unless_the_store_may_have_it(store: Snapshot) -> None:
    """A link or something unreadable in the store may be that very conversation."""
    found = presence(store, here(ONE, BESIDE), FRESH)
    if store.problems or store.foreign:
        assert (found.goal, found.state) == (Goal.NOTHING, "unreadable")
    else:
        assert (found.goal, found.state, found.reason) == (Goal.IMPORT, "external", Reason.EXTERNAL)


def test_in_doubt_nothing_is_removed_and_it_is_said_so() -> None:
    found = presence(replace(stored(BESIDE), problems=(Problem("7-g", "denied"),)), here(ONE, BESIDE), KNOWN)
    assert found == Presence(Goal.NOTHING, 7, "unreadable")
    renewed = presence(seen(Side.STORE, [BESIDE], identity="store:1"), here(ONE, BESIDE), KNOWN)
    assert renewed == Presence(Goal.IMPORT, 2, "external", Reason.REFILL)


def test_what_was_removed_on_purpose_is_removed_although_the_store_was_lost_since() -> None:
    buried = replace(KNOWN, tombstones={"jp-c1": frozenset(KNOWN.agreed["jp-c1"].units.values())})
    for store in (stored(), seen(Side.STORE, [BESIDE], identity="store:1")):
        assert presence(store, here(ONE, BESIDE), buried) == Presence(
            Goal.REMOVE, 7, "removed-in-store", Reason.REMOVED_IN_STORE
        )
        assert presence(store, here(EDITED, BESIDE), buried).reason is Reason.REFILL
    hidden = replace(stored(BESIDE), problems=(Problem("7-g", "denied"),))
    assert presence(hidden, here(ONE, BESIDE), buried).goal is Goal.NOTHING


def test_beside_other_files_an_old_copy_of_what_was_removed_is_one() -> None:
    buried = replace(FRESH, tombstones=BURIED)
    assert presence(stored(BESIDE), here(ONE, DRAFT, BESIDE), buried).state == "removed-before"


def test_of_several_directories_of_a_local_one_none_is_removed_after_it_left_the_store() -> None:
    twice = here(ONE, ONE.replace("1-a", "1-z"), BESIDE)
    local = presence(stored(BESIDE), twice, intending(Intent(IntentKind.LOCAL)))
    assert local == Presence(Goal.NOTHING, 7, "local")
    assert presence(stored(BESIDE), twice, KNOWN).goal is Goal.REMOVE
    assert presence(stored(BESIDE), here(ONE, BESIDE), intending(Intent(IntentKind.LOCAL))).goal is Goal.REMOVE


def test_an_edit_is_saved_whatever_is_hidden_in_a_directory_of_the_store() -> None:
    store = replace(stored(BESIDE), problems=(Problem("7-g", "denied"),))
    assert presence(store, here(EDITED, BESIDE), KNOWN).goal is Goal.IMPORT


@pytest.mark.parametrize(
    ("workspace", "baseline", "state"),
    [
        (here(), KNOWN, "projected"),
        (
            here(),
            replace(KNOWN, agreed={key: each for key, each in KNOWN.agreed.items() if key != "jp-c1"}),
            "available",
        ),
        (replace(here(BESIDE), problems=(Problem("1-a", "denied"),)), KNOWN, "unreadable"),
    ],
    ids=["the workspace is empty", "the same, and it was never there", "its directory can't be read"],
)
def test_nothing_is_inferred_from_an_absence_that_was_not_seen(
    workspace: Snapshot, baseline: Baseline, state: str
) -> None:
    found = presence(stored(ONE, BESIDE), workspace, baseline)
    assert (found.goal, found.state, found.intent) == (Goal.NOTHING, state, None)


CHILD = '1-a  metadata 09:00 title "A" parent 2  stream 09:00 [1]'
PARENT = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
BOTH = agreed_on(PARENT, f"2-b/conversations/{CHILD}", BESIDE)
WAITING = Intent(IntentKind.PROJECTED, waits_for="jp-c2", place="2-b/conversations/1-a")


def test_a_child_that_went_with_its_parent_waits_for_it() -> None:
    found = presence(stored(CHILD, PARENT, BESIDE), here(BESIDE), BOTH)
    assert (found.goal, found.state, found.intent) == (Goal.WAIT, "waiting", WAITING)


def test_a_child_waits_also_for_a_parent_that_nobody_knows_any_more() -> None:
    baseline = replace(BOTH, agreed={key: each for key, each in BOTH.agreed.items() if key != "jp-c2"})
    assert presence(stored(CHILD, BESIDE), here(BESIDE), baseline).intent == WAITING


ARCHIVED = f".archive/{ONE}"
ASKED = Presence(Goal.PROJECT, 9, "archived", Reason.PROJECTED)
AWAY = Presence(Goal.NOTHING, 9, "archived")


@pytest.mark.parametrize(
    ("baseline", "workspace", "found"),
    [
        (intending(Intent(IntentKind.PROJECTED)), here(BESIDE), ASKED),
        (intending(replace(WAITING, waits_for="jp-c8")), here(BESIDE), AWAY),
        (intending(REMOVED), here(BESIDE), AWAY),
        (KNOWN, here(BESIDE), Presence(Goal.NOTHING, 9, "archived", Reason.REMOVED_HERE, REMOVED)),
        (KNOWN, here(), AWAY),
        (intending(Intent(IntentKind.PROJECTED)), here(), AWAY),
        (KNOWN, replace(here(BESIDE), problems=(Problem("1-a", "denied"),)), AWAY),
        (FRESH, here(BESIDE), Presence(Goal.NOTHING, 3, "archived")),
    ],
)
def test_what_is_archived_comes_back_where_it_was_asked_for(
    baseline: Baseline, workspace: Snapshot, found: Presence
) -> None:
    assert presence(stored(ARCHIVED, BESIDE), workspace, baseline) == found


def test_what_goes_without_ever_having_been_agreed_on_has_no_place() -> None:
    assert removed_here(view_of(stored(ONE), here()), 3).intent == Intent(IntentKind.REMOVED)


def test_a_child_that_waits_goes_on_waiting() -> None:
    found = presence(stored(CHILD, PARENT, BESIDE), here(BESIDE), intending(WAITING, BOTH))
    assert (found.goal, found.state, found.intent) == (Goal.WAIT, "waiting", WAITING)


@pytest.mark.parametrize(
    ("workspace", "policy"),
    [(here(PARENT, BESIDE), Policy()), (here(BESIDE), Policy(layout=Layout.FLAT))],
    ids=["its parent is still there", "the layout is flat"],
)
def test_a_child_whose_own_directory_was_removed_is_removed(workspace: Snapshot, policy: Policy) -> None:
    found = presence(stored(CHILD, PARENT, BESIDE), workspace, BOTH, policy)
    assert found.intent == replace(REMOVED, place="2-b/conversations/1-a")


def test_a_version_is_old_by_both_of_its_units() -> None:
    retitled = EDITED.replace('"A"', '"X"')
    units = view_of(stored(EDITED), here()).store.units
    stream, metadata = str(units[STREAM].digest), str(view_of(stored(retitled), here()).store.units[METADATA].digest)
    for workspace, streams, titles, goal in (
        (EDITED, (stream, "9"), (), Goal.REMOVED_BEFORE),
        (EDITED, ("0", stream), (), Goal.IMPORT),
        (EDITED, (), (str(units[METADATA].digest), "9"), Goal.IMPORT),
        (retitled, (stream, "9"), (), Goal.IMPORT),
        (retitled, (stream, "9"), (metadata, "9"), Goal.REMOVED_BEFORE),
        (retitled, (stream, "9"), ("0", metadata), Goal.IMPORT),
    ):
        baseline = replace(KNOWN, history={("jp-c1", STREAM): streams, ("jp-c1", METADATA): titles})
        assert presence(stored(BESIDE), here(workspace, BESIDE), baseline).goal is goal


def test_a_base_configuration_alone_is_damage_unless_the_rest_was_there() -> None:
    """Of what was in sync it is what git has left where a commit removed the conversation."""
    whole, left = "1-a  metadata 09:00  stream 09:00 [1]", '1-a/base_config.json  09:00 "{}"'
    assert view_of(stored(), here(left)).workspace.main is not None
    assert view_of(stored(), here(left), agreed_on(whole)).workspace.main is not None
    assert view_of(stored(whole), here(left), agreed_on(whole)).workspace.main is None


@pytest.mark.parametrize(
    ("store", "workspace", "decisions", "side"),
    [
        ("", ONE, {"jp-c1": Take.STORE}, Side.STORE),
        (ONE, "", {"jp-c1": Take.WORKSPACE}, Side.WORKSPACE),
        (ONE, "", {"jp-c1": Take.STORE}, None),
        (ONE, ONE, {"jp-c1": Take.STORE}, None),
        (ONE, ONE, {"jp-c1": Take.WORKSPACE}, None),
        ("", "", {"jp-c1": Take.STORE}, None),
        ("", ONE, {"jp-c1": Take.BOTH}, None),
        ("", ONE, {"jp-c8": Take.STORE}, None),
    ],
)
def test_who_takes_a_side_that_lacks_it_takes_nothing(
    store: str, workspace: str, decisions: dict[str, Take], side: Side | None
) -> None:
    view = view_of(stored(*filter(None, [store])), here(*filter(None, [workspace])), KNOWN)
    assert missing_side(view, Policy(decisions=decisions)) is side


def test_a_remote_gets_what_the_store_has_and_nothing_else() -> None:
    remote = replace(KNOWN, is_of_remote=True)
    found = presence(stored(ONE, BESIDE), here(BESIDE), remote)
    assert found == Presence(Goal.PROJECT, 9, "projected", Reason.REPROJECTED)
    assert presence(stored(BESIDE), here(BESIDE), remote) == Presence(Goal.NOTHING, 6, "gone")


def test_what_another_machine_has_archived_stays_although_this_one_removed_it() -> None:
    archived = here(f".archive/{ONE}", BESIDE)
    stays = Presence(Goal.IMPORT, 8, "external", Reason.EDIT_WINS)
    assert presence(stored(BESIDE), archived, replace(KNOWN, is_of_remote=True)) == stays
    before = replace(KNOWN, agreed={**KNOWN.agreed, "jp-c1": replace(KNOWN.agreed["jp-c1"], place=".archive/1-a")})
    for baseline in (KNOWN, replace(before, is_of_remote=True), before):
        assert presence(stored(BESIDE), archived, baseline).goal is Goal.REMOVE
    assert presence(stored(BESIDE), here(ONE, BESIDE), replace(KNOWN, is_of_remote=True)).goal is Goal.REMOVE


@pytest.mark.parametrize("buried", ['1-a  metadata 09:00 title "A"', '1-a  metadata 09:00 title "A" parent 8'])
def test_a_copy_without_the_parent_is_old_as_it_was_before_or_since(buried: str) -> None:
    """JP has stripped the parent, or the copy is from before it was set."""
    tombstones = {"jp-c1": digests(f"{buried}  stream 09:00 [1]")}
    known = agreed_on(ONE.replace('"A"', '"Another" parent 8'), BESIDE)
    assert presence(stored(BESIDE), here(ONE, BESIDE), replace(known, tombstones=tombstones)).state == "removed-before"

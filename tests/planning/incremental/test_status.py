"""The common case told at a glance: whatever is recognised as quiet, the planner finds quiet too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind, PendingRequest, Verb
from reconcile.model.options import Layout, Take
from reconcile.model.policy import Policy
from reconcile.model.snapshot import METADATA, Side, Snapshot
from reconcile.planning.incremental.status import adoption, dirty_conversations, is_clean
from tests.support.scenarios.building import Lines, agreed_on, doubtful_sides, here, plan_of, quiet_plan, seen, stored
from tests.support.scenarios.pure_level import RULES

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
THREE = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'
NOTE = '1-a/sub/NOTE.md  09:00 "x"'
NESTED = [ONE, NOTE, f"1-a/conversations/{TWO}"]
STORE = [ONE, NOTE, TWO]
KNOWN = agreed_on(ONE, NOTE, f"1-a/conversations/{TWO}")
SLOW = Policy(decisions={"nobody": Take.STORE})
"""A policy that is never quiet, and changes nothing."""


def is_quiet(store: Snapshot, workspace: Snapshot, baseline: Baseline = KNOWN, policy: Policy | None = None) -> bool:
    """Tell what the glance says; where it is quiet, the planner must come to the same plan."""
    found = quiet_plan(store, workspace, baseline, policy or Policy(), RULES)
    if found is None:
        return False
    slow = plan_of(store, workspace, baseline, replace(policy or Policy(), decisions=SLOW.decisions))
    assert not slow.quiet
    assert (slow.actions, slow.held, slow.aside, slow.notes, slow.preserve) == ((), (), (), (), ())
    assert (slow.intents, slow.asides, slow.tombstones) == ((), (), ())
    assert slow.states == found.states
    return True


def test_as_agreed_on() -> None:
    assert is_quiet(stored(*STORE), here(*NESTED))
    found = quiet_plan(stored(*STORE), here(*NESTED), KNOWN, Policy(), RULES)
    assert found is not None
    assert found.counted == {"jp-c1": "in-sync", "jp-c2": "in-sync"}


def test_what_is_nowhere_is_settled_where_it_is_not_remembered() -> None:
    assert is_clean("jp-c1", [], [], Baseline(), RULES)
    assert not is_clean("jp-c1", [], [], KNOWN, RULES)


def test_what_a_remote_has_with_all_its_files_is_agreed_on() -> None:
    """A workspace needs no file but the managed ones."""
    (bare,), (noted,) = here(ONE).copies, stored(ONE, NOTE).copies
    for baseline, with_note in ((Baseline(), True), (Baseline(is_of_remote=True), False)):
        assert (adoption(noted, bare, baseline, RULES) is not None) is with_note
        assert adoption(stored(ONE).copies[0], bare, baseline, RULES) is not None
        assert adoption(noted, here(ONE, NOTE).copies[0], baseline, RULES) is not None


def test_what_is_in_the_store_alone_is_quiet() -> None:
    local = replace(KNOWN, intents={"jp-c3": Intent(IntentKind.LOCAL)})
    removed = replace(KNOWN, intents={"jp-c3": Intent(IntentKind.REMOVED)})
    for baseline, state in ((KNOWN, "available"), (local, "local"), (removed, "removed")):
        store = stored(*STORE, THREE)
        assert is_quiet(store, here(*NESTED), baseline)
        assert (state, 1) in plan_of(store, here(*NESTED), baseline).states


def test_what_is_archived_in_the_store_is_quiet() -> None:
    store = stored(*STORE, f".archive/{THREE}")
    for kind in (None, IntentKind.LOCAL, IntentKind.REMOVED):
        baseline = replace(KNOWN, intents={"jp-c3": Intent(kind)} if kind else {})
        assert is_quiet(store, here(*NESTED), baseline)


def test_what_is_in_the_store_again_after_a_removal_is_still_to_be_remembered() -> None:
    buried = replace(KNOWN, tombstones={"jp-c3": frozenset({"digest"})})
    assert not is_quiet(stored(*STORE, THREE), here(*NESTED), buried)
    assert is_quiet(stored(*STORE), here(*NESTED), buried)


def test_what_is_archived_and_gone_from_the_workspace_or_still_to_be_put_there_is_not_quiet() -> None:
    store = stored(*STORE, f".archive/{THREE}")
    assert not is_quiet(store, here(*NESTED), replace(KNOWN, intents={"jp-c3": Intent(IntentKind.PROJECTED)}))
    assert not is_quiet(store, here(*NESTED), agreed_on(*NESTED, f".archive/{THREE}"))


def test_a_new_title_in_the_store_alone_is_not_quiet() -> None:
    baseline = agreed_on(ONE, THREE)
    baseline = replace(baseline, intents={"jp-c3": Intent(IntentKind.REMOVED)})
    assert is_quiet(stored(ONE, THREE), here(ONE), baseline)
    assert not is_quiet(stored(ONE, THREE.replace("C", "D")), here(ONE), baseline)


def test_a_flat_layout_is_quiet_where_everything_lies_flat() -> None:
    baseline = replace(KNOWN, layout="flat", agreed={"jp-c1": KNOWN.agreed["jp-c1"]}, parents={"jp-c1": None})
    flat = Policy(layout=Layout.FLAT)
    assert is_quiet(stored(ONE, NOTE), here(ONE, NOTE), baseline, flat)
    assert not is_quiet(stored(*STORE), here(*NESTED), replace(KNOWN, layout="flat"), flat)


def test_a_workspace_in_which_nothing_ever_was_is_quiet() -> None:
    assert is_quiet(stored(THREE), here(), replace(agreed_on(THREE), agreed={}))


def test_below_what_is_archived_a_child_is_a_root_and_that_is_quiet() -> None:
    baseline = agreed_on(f".archive/{ONE}", TWO)
    assert is_quiet(stored(f".archive/{ONE}", TWO), here(f".archive/{ONE}", TWO), baseline)


def test_another_layout_is_remembered_though_everything_lies_as_it_wants() -> None:
    assert not is_quiet(stored(THREE), here(THREE), agreed_on(THREE), Policy(layout=Layout.FLAT))


def test_a_store_that_is_not_known_yet_is_remembered() -> None:
    assert not is_quiet(stored(*STORE), here(*NESTED), replace(KNOWN, store_identity=None))


def test_the_loss_of_a_store_that_only_other_checkouts_know_is_remembered() -> None:
    nothing = replace(KNOWN, agreed={}, parents={}, history={})
    assert is_quiet(stored(), here(), nothing)
    assert not is_quiet(stored(), here(), replace(nothing, history=KNOWN.history))


def test_a_child_beside_a_parent_that_has_come_back_is_not_quiet() -> None:
    """However many others are in their places."""
    baseline = agreed_on(TWO, THREE)
    assert is_quiet(stored(TWO, THREE), here(TWO, THREE), baseline)
    assert not is_quiet(stored(ONE, TWO, THREE), here(TWO, THREE), baseline)


def test_a_baseline_that_says_something_else_than_the_store_is_not_quiet() -> None:
    agreed = KNOWN.agreed["jp-c2"]
    for other in (replace(agreed, parent="jp-c9"), replace(agreed, container="jp-c9"), replace(agreed, title="X")):
        baseline = replace(KNOWN, agreed={**KNOWN.agreed, "jp-c2": other})
        assert quiet_plan(stored(*STORE), here(*NESTED), baseline, Policy(), RULES) is None


UNSETTLED: dict[str, tuple[Lines, Lines, set[str]]] = {
    "nobody": (STORE, NESTED, set()),
    "in the store alone": ([*STORE, THREE], NESTED, set()),
    "new here": (STORE, [*NESTED, THREE], {"jp-c3"}),
    "gone from the store": ([ONE, NOTE], NESTED, {"jp-c2"}),
    "gone from both": ([ONE, NOTE], [ONE, NOTE], {"jp-c2"}),
    "gone from here": (STORE, [ONE, NOTE], {"jp-c2"}),
    "edited": (STORE, [ONE.replace("[1]", "[2]"), *NESTED[1:]], {"jp-c1"}),
    "twice in the store": ([*STORE, TWO.replace("2-b", "2-B")], NESTED, {"jp-c2"}),
    "twice here": (STORE, [*NESTED, ONE.replace("1-a", "1-z")], {"jp-c1"}),
}


@pytest.mark.parametrize(("store", "workspace", "found"), UNSETTLED.values(), ids=UNSETTLED)
def test_of_whom_a_run_may_have_something_to_learn(store: Lines, workspace: Lines, found: set[str]) -> None:
    assert dirty_conversations(stored(*store), here(*workspace), KNOWN, RULES) == found


LOUD: dict[str, tuple[Lines, Lines]] = {
    "an edit in the store": ([ONE.replace("[1]", "[2]"), NOTE, TWO], NESTED),
    "an edit in the workspace": (STORE, [ONE.replace("[1]", "[2]"), *NESTED[1:]]),
    "the same edit on both": ([ONE.replace("[1]", "[2]"), NOTE, TWO], [ONE.replace("[1]", "[2]"), *NESTED[1:]]),
    "new in the workspace": (STORE, [*NESTED, THREE]),
    "removed in the workspace": (STORE, [ONE, NOTE]),
    "removed in the store": ([ONE, NOTE], NESTED),
    "removed on both": ([ONE, NOTE], [ONE, NOTE]),
    "an extra more": (STORE, [*NESTED, '1-a/MORE.md  09:00 "x"']),
    "an extra less": (STORE, [ONE, NESTED[2]]),
    "moved by somebody": (STORE, [ONE, NOTE, TWO]),
    "two directories in the workspace": (STORE, [*NESTED, ONE.replace("1-a", "1-z")]),
    "two directories in the workspace, of which the last is the one that was known": (
        STORE,
        [ONE.replace("1-a", "1-A"), *NESTED],
    ),
    "one without a stream in the store alone": ([*STORE, '3-c  metadata 09:00 title "C"'], NESTED),
    "an unreadable parent in the store alone": ([*STORE, THREE.replace('"C"', '"C" parent raw 1.5')], NESTED),
    "two directories in the store": ([*STORE, ONE.replace("1-a", "1-z")], NESTED),
    "nested in the store": ([ONE, NOTE, f"1-a/conversations/{TWO}"], NESTED),
    "trashed in the store": ([ONE, NOTE, f".trash/{TWO}"], NESTED),
    "archived in the store": ([ONE, NOTE, f".archive/{TWO}"], NESTED),
    "broken on both": (
        [ONE, NOTE, TWO, '2-b/events.json  09:00 "{"'],
        [*NESTED, '1-a/conversations/2-b/events.json  09:00 "{"'],
    ),
    "local in the store alone": ([*STORE, THREE.replace('"C"', '"C" local')], NESTED),
    "stripped in the store": ([ONE, NOTE, TWO.replace(" parent 1", "")], NESTED),
    "an unknown parent in the store alone": ([*STORE, THREE.replace('"C"', '"C" parent 1')], NESTED),
    "an empty workspace": (STORE, []),
}


@pytest.mark.parametrize(("store", "workspace"), LOUD.values(), ids=LOUD)
def test_not_quiet(store: Lines, workspace: Lines) -> None:
    assert not is_quiet(stored(*store), here(*workspace))


def test_a_time_alone_is_quiet() -> None:
    assert is_quiet(stored(*STORE), here(*(line.replace("09:00", "10:00") for line in NESTED)))


WHOLE: dict[str, tuple[Snapshot, Snapshot, Baseline, Policy]] = {
    **{name: (*sides, KNOWN, Policy()) for name, sides in doubtful_sides(stored(*STORE), here(*NESTED)).items()},
    "another store": (seen(Side.STORE, STORE, identity="store:1"), here(*NESTED), KNOWN, Policy()),
    "another layout": (stored(*STORE), here(*NESTED), KNOWN, Policy(layout=Layout.FLAT)),
    "a decision": (stored(*STORE), here(*NESTED), KNOWN, SLOW),
    "something set aside": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, asides={("jp-c1", METADATA): AsideRecord(AsideKind.KEPT, "x", "y")}),
        Policy(),
    ),
    "a directory that is still to leave": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, waiting={("jp-c1", Verb.LOCAL): PendingRequest()}),
        Policy(),
    ),
    "a directory that is still to be renamed": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, renames=frozenset({(Side.STORE, "jp-c1")})),
        Policy(),
    ),
    "an intent for what is here": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, intents={"jp-c1": Intent(IntentKind.REMOVED)}),
        Policy(),
    ),
    "an intent that waits": (
        stored(*STORE, THREE),
        here(*NESTED),
        replace(KNOWN, intents={"jp-c3": Intent(IntentKind.PROJECTED)}),
        Policy(),
    ),
    "never agreed on": (stored(*STORE, THREE), here(*NESTED, THREE), KNOWN, Policy()),
    "a cycle of parents": (
        stored(ONE.replace('"A"', '"A" parent 2'), NOTE, TWO),
        here(ONE.replace('"A"', '"A" parent 2'), NOTE, NESTED[2]),
        agreed_on(ONE.replace('"A"', '"A" parent 2'), NOTE, NESTED[2]),
        Policy(),
    ),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "policy"), WHOLE.values(), ids=WHOLE)
def test_not_quiet_as_a_whole(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy) -> None:
    assert not is_quiet(store, workspace, baseline, policy)

"""What `recover` offers (docs/design/intents.md#rule-31)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind
from reconcile.model.policy import Policy, ProjectRequest
from reconcile.model.reasons import Reason
from reconcile.planning.requests.edits import edits_of
from reconcile.planning.requests.recover import UNDATED, Offer, Offers, absent, coming, offers, with_records
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored

if TYPE_CHECKING:
    from reconcile.planning.context import PlanningContext

A, B, C, D = (f'{n}-x  metadata 09:00 title "X"  stream 09:00 [1]' for n in range(1, 5))
CHILD = '6-x  metadata 09:00 title "X" parent {}  stream 09:00 [1]'
LOCAL = '5-x  metadata 09:00 title "X" local  stream 09:00 [1]'


def test_what_was_here_last_comes_first_and_then_the_newest_run_that_noticed() -> None:
    context = context_of(stored(A, B, C, D, LOCAL), here(D))
    intents = {
        "jp-c2": Intent(IntentKind.REMOVED, run="1"),
        "jp-c3": Intent(IntentKind.PROJECTED, waits_for="jp-c9"),
        "jp-c9": Intent(IntentKind.REMOVED, run="2"),
    }
    own = replace(agreed_on(B, C, D, LOCAL), intents=intents)
    expected = (Offer(None, ("jp-c1",)), Offer("2", ("jp-c3",)), Offer("1", ("jp-c2",)))
    assert offers(context, [own, agreed_on(A, B)]) == Offers(expected)
    assert offers(context, [own]) == Offers(expected[1:])


def test_what_waits_for_itself_is_offered_all_the_same() -> None:
    intents = {"jp-c1": Intent(IntentKind.PROJECTED, waits_for="jp-c1")}
    own = replace(agreed_on(A), intents=intents)
    assert offers(context_of(stored(A), here()), [own]) == Offers((Offer(None, ("jp-c1",)),))


def test_without_a_record_everything_that_is_not_local_is_a_candidate() -> None:
    context = context_of(stored(A, B, LOCAL), here(B))
    assert offers(context, [Baseline()]) == Offers((Offer(None, ("jp-c1",), known=False),))
    assert offers(context_of(stored(A), here(A)), []) == Offers()


def test_a_record_counts_whatever_comes_after_it() -> None:
    context = context_of(stored(A, B), here())
    assert offers(context, [agreed_on(A), Baseline()]) == Offers((Offer(None, ("jp-c1",)),))


def test_what_an_intent_alone_speaks_of_is_offered() -> None:
    own = replace(agreed_on(B), intents={"jp-c1": Intent(IntentKind.REMOVED, run="1")})
    assert offers(context_of(stored(A, B), here(B)), [own]) == Offers((Offer("1", ("jp-c1",)),))


def test_a_removal_of_which_no_run_is_known_is_no_end_of_the_last_run() -> None:
    """The list of what is local or removed has no runs; another record may."""
    removed = replace(agreed_on(B), intents={"jp-c1": Intent(IntentKind.REMOVED)})
    context = context_of(stored(A, B), here(B))
    assert offers(context, [removed]) == Offers((Offer(UNDATED, ("jp-c1",)),))
    dated = replace(agreed_on(B), intents={"jp-c1": Intent(IntentKind.REMOVED, run="1")})
    assert offers(context, [removed, dated]) == Offers((Offer("1", ("jp-c1",)),))
    below = replace(agreed_on(B), intents={"jp-c6": Intent(IntentKind.REMOVED)})
    private = context_of(stored(A, B, LOCAL, CHILD.format(5)), here(B))
    assert offers(private, [below]) == Offers(left_out=("jp-c6",))


def test_only_a_removal_was_noticed_by_a_run() -> None:
    own = replace(agreed_on(A), intents={"jp-c1": Intent(IntentKind.PROJECTED, run="1")})
    assert offers(context_of(stored(A), here()), [own]) == Offers((Offer(None, ("jp-c1",)),))


def test_below_what_is_local_nothing_comes_back_and_nothing_is_offered() -> None:
    child, grandchild = CHILD.format(5), '7-x  metadata 09:00 title "X" parent 6  stream 09:00 [1]'
    context = context_of(stored(A, LOCAL, child, grandchild), here())
    found = offers(context, [agreed_on(A, child, grandchild)])
    assert found == Offers((Offer(None, ("jp-c1",)),), left_out=("jp-c6", "jp-c7"))


def test_what_went_with_something_local_is_not_offered_wherever_it_is_by_now() -> None:
    intents = {"jp-c1": Intent(IntentKind.PROJECTED, waits_for="jp-c5"), "jp-c5": Intent(IntentKind.LOCAL, run="1")}
    own = replace(agreed_on(A, B), intents=intents)
    for away in (A, f".archive/{A}"):
        context = context_of(stored(away, B, LOCAL), here())
        assert offers(context, [own]) == Offers((Offer(None, ("jp-c2",)),), left_out=("jp-c1",))


def test_a_child_comes_with_its_parent_or_below_one_that_is_here() -> None:
    child = CHILD.format(1)
    gone, there = context_of(stored(A, child), here()), context_of(stored(A, child), here(A))
    assert not coming(gone, {"jp-c6"})
    assert list(coming(gone, {"jp-c6", "jp-c1"}).items()) == [("jp-c1", None), ("jp-c6", "jp-c1")]
    assert coming(there, {"jp-c6"}) == {"jp-c6": "jp-c1"}
    assert not coming(context_of(stored(LOCAL, CHILD.format(5)), here(LOCAL)), {"jp-c6"})


def lay_in(container: str | None) -> Baseline:
    """What is remembered of the child of 5 (``CHILD``), which wasn't in its parent's directory."""
    known = agreed_on(A, CHILD.format("null"))
    agreed = {**known.agreed, "jp-c6": replace(known.agreed["jp-c6"], container=container)}
    return replace(known, agreed=agreed)


def test_what_lay_apart_from_its_parent_comes_back_there_unless_the_parent_comes() -> None:
    child = CHILD.format(5)
    alone, whole = stored(A, LOCAL, child), stored(A, LOCAL.replace("local", ""), child)
    assert coming(context_of(alone, here(), lay_in(None)), {"jp-c6"}) == {"jp-c6": None}
    assert coming(context_of(whole, here(), lay_in(None)), {"jp-c6", "jp-c5"}) == {"jp-c5": None, "jp-c6": "jp-c5"}
    assert coming(context_of(alone, here(), lay_in("jp-c1")), {"jp-c6", "jp-c1"}) == {"jp-c1": None, "jp-c6": "jp-c1"}
    assert coming(context_of(alone, here(A), lay_in("jp-c1")), {"jp-c6"}) == {"jp-c6": "jp-c1"}
    assert coming(context_of(whole, here(A), lay_in("jp-c1")), {"jp-c6", "jp-c5"}) == {"jp-c5": None, "jp-c6": "jp-c5"}
    assert not coming(context_of(alone, here(), lay_in("jp-c1")), {"jp-c6"})
    assert not coming(context_of(alone, here(), lay_in("jp-c5")), {"jp-c6"})


def test_what_lay_in_something_that_left_the_tree_comes_back_to_the_top() -> None:
    context = context_of(stored(f".archive/{A}", LOCAL, CHILD.format(5)), here(), lay_in("jp-c1"))
    assert coming(context, {"jp-c6"}) == {"jp-c6": None}


def test_what_a_directory_lay_in_by_now_lies_in_it() -> None:
    below = A.replace('title "X"', 'title "X" parent 6')
    context = context_of(stored(below, LOCAL, CHILD.format(5)), here(A), lay_in("jp-c1"))
    assert not coming(context, {"jp-c6"})
    public = context_of(stored(below, LOCAL.replace("local", ""), CHILD.format(5)), here(A), lay_in("jp-c1"))
    assert coming(public, {"jp-c6", "jp-c5"}) == {"jp-c5": None, "jp-c6": "jp-c5"}


def test_where_the_parent_is_here_after_all_nothing_else_is_chosen() -> None:
    context = context_of(stored(LOCAL, CHILD.format(5)), here(LOCAL), lay_in(None))
    assert not coming(context, {"jp-c6"})


def test_what_a_record_knows_of_what_stays_away_goes_on_holding() -> None:
    removed, waiting = Intent(IntentKind.REMOVED, run="1"), Intent(IntentKind.PROJECTED, waits_for="jp-c2")
    record = replace(agreed_on(A, B, D), intents={"jp-c2": removed, "jp-c3": waiting, "jp-c4": removed})
    projected = Baseline(intents={"jp-c1": Intent(IntentKind.PROJECTED), "jp-c5": Intent(IntentKind.LOCAL)})
    older = replace(agreed_on(C), intents={"jp-c1": removed, "jp-c2": waiting, "jp-c5": removed})
    baseline = with_records(projected, [projected, record, older], ("jp-c1",))
    assert baseline.agreed.keys() == {"jp-c1"}
    assert baseline.former == {"jp-c2": removed, "jp-c3": waiting, "jp-c4": removed}
    policy = Policy(request=ProjectRequest(("jp-c1",), records=(1,)))
    plan = plan_of(stored(A, B, C.replace('"X"', '"X" parent 2'), D, LOCAL), here(D), baseline, policy)
    # What is here by now, or nowhere, is past remembering.
    assert dict(plan.intents) == {"jp-c1": Intent(IntentKind.PROJECTED), "jp-c2": removed, "jp-c3": waiting}
    assert not plan.held


def test_what_is_archived_is_offered_too() -> None:
    archived = f".archive/{B}"
    context = context_of(stored(A, archived), here())
    assert offers(context, [agreed_on(A, B)]) == Offers((Offer(None, ("jp-c1", "jp-c2")),))


def test_what_is_archived_comes_back_into_the_archive_also_after_a_run_that_was_cut_short() -> None:
    archived = f".archive/{B}"
    policy = Policy(request=ProjectRequest(("jp-c2",), records=()))
    for known, reason in ((agreed_on(A), Reason.ASKED), (agreed_on(A, B), Reason.RECOVERED)):
        (action,) = plan_of(stored(A, archived), here(A), known, policy).actions
        assert (action.reason, str(action.target)) == (reason, "workspace:.archive/2-x")
    cut_short = replace(agreed_on(A), intents={"jp-c2": Intent(IntentKind.PROJECTED)})
    (action,) = plan_of(stored(A, archived), here(A), cut_short).actions
    assert (action.reason, str(action.target)) == (Reason.PROJECTED, "workspace:.archive/2-x")
    (held,) = plan_of(stored(A, archived), here(A), agreed_on(A), Policy(request=ProjectRequest(("jp-c2",)))).held
    assert held.reason is Reason.ARCHIVED_HELD


def test_what_is_gone_from_the_store_is_absent_from_nowhere() -> None:
    assert absent(context_of(stored(A, C), here(C), agreed_on(A, B, C))) == ("jp-c1",)


def test_of_local_ones_those_that_are_named_are_absent() -> None:
    context = context_of(stored(A, LOCAL, LOCAL.replace("5-x", "4-x")), here())
    assert absent(context, {"jp-c5"}) == ("jp-c1", "jp-c5")


def test_what_is_known_or_said_later_goes_before_what_a_record_says() -> None:
    removed = Baseline(intents={"jp-c1": Intent(IntentKind.REMOVED)})
    local = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert with_records(Baseline(), [removed]).former == removed.intents
    for baseline, records in (
        (agreed_on(A), [removed]),
        (local, [removed]),
        (Baseline(), [agreed_on(A), removed]),
        (Baseline(), [local, removed]),
        (Baseline(), [local]),
    ):
        assert with_records(baseline, records).former == {}


def apart(context: PlanningContext, *targets: str, records: tuple[int, ...] | None = (1,)) -> dict[str, str | None]:
    return dict(edits_of(ProjectRequest(targets, records=records), context).apart)


def test_who_lies_without_its_parent_in_the_run_that_brings_others_back() -> None:
    child = CHILD.format(5)
    public, gone = LOCAL.replace("local", ""), stored(A, LOCAL, child)
    assert apart(context_of(gone, here(), lay_in("jp-c1")), "jp-c6", "jp-c1") == {"jp-c6": "jp-c1"}
    assert apart(context_of(gone, here(A), lay_in("jp-c1")), "jp-c6", records=None) == {}
    assert apart(context_of(stored(A, public, child), here(), lay_in(None)), "jp-c5", "jp-c6") == {}
    there = stored(A, B, public, child)
    assert apart(context_of(there, here(B, child), agreed_on(B)), "jp-c1") == {"jp-c6": None}
    assert apart(context_of(there, here(B, child), agreed_on(B)), "jp-c1", records=None) == {}
    assert apart(context_of(there, here(B, public, child), agreed_on(B)), "jp-c1") == {}
    assert apart(context_of(there, here(B, f"2-x/conversations/{child}"), agreed_on(B)), "jp-c1") == {}


def test_what_goes_on_to_hold_is_of_what_stays_away() -> None:
    removed = Intent(IntentKind.REMOVED, run="1")
    ids = ("jp-c1", "jp-c2", "jp-c3", "jp-c5", "jp-c77")
    baseline = replace(agreed_on(B), former=dict.fromkeys(ids, removed))
    edits = edits_of(ProjectRequest(("jp-c1",), records=(1,)), context_of(stored(A, B, C, LOCAL), here(B), baseline))
    assert edits.intents == {"jp-c1": Intent(IntentKind.PROJECTED), "jp-c3": removed}
    assert edits.scope == {"jp-c1", "jp-c3"}


def test_a_conversation_that_became_local_while_recover_asked_stays_local() -> None:
    context = context_of(stored(A, LOCAL), here(), agreed_on(A, LOCAL))
    for records in ((1,), ()):
        edits = edits_of(ProjectRequest(("jp-c1", "jp-c5"), records=records), context)
        assert edits.intents == {"jp-c1": Intent(IntentKind.PROJECTED)}
    assert edits_of(ProjectRequest(("jp-c5",)), context).intents == {"jp-c5": Intent(IntentKind.PROJECTED)}

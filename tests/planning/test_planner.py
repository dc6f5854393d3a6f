"""When the planner looks at a glance, and what of a limited run's result is done with it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind, PendingRequest, Verb
from reconcile.model.options import Missing, Take
from reconcile.model.plan import Kind, Plan
from reconcile.model.policy import Children, GcRequest, LocalRequest, Policy, ProjectRequest, RemoveRequest
from reconcile.model.snapshot import STREAM, Side, Snapshot
from reconcile.model.units import Rules
from reconcile.planning.planner import make_plan, needs_logs, plan_by_rules
from reconcile.planning.rules.guards import Sides, Whole
from tests.support.formats import notes
from tests.support.scenarios.building import NOW_NS, agreed_on, here, plan_of, stored
from tests.support.scenarios.pure_level import RULES

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:30 [1 2]'
THREE = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1]'
FOUR = '4-d  metadata 09:00 title "D"  stream 09:00 [1]'
FIVE = '5-e  metadata 09:00 title "E"  stream 09:00 [1]'
EDITED = FOUR.replace("[1]", "[1 2]")
ORDINARY = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)
WHOLE = Whole(ORDINARY, 100)
ALL = Policy(missing=Missing.REPROJECT)
GLANCES: dict[str, tuple[Snapshot, Snapshot, Baseline, Policy, list[set[str]]]] = {
    "at rest": (stored(ONE), here(ONE), agreed_on(ONE), Policy(), []),
    "nothing but projections": (stored(ONE), here(), Baseline(), ALL, [{"jp-c1"}]),
    "one of two is edited": (stored(ONE, FOUR), here(ONE, EDITED), agreed_on(ONE, FOUR), Policy(), [{"jp-c4"}]),
    "nothing is at rest": (stored(FOUR), here(EDITED), agreed_on(FOUR), Policy(), [{"jp-c4"}]),
}


@pytest.fixture
def ruled(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """What the rules looked at in the store, each time that they were asked."""
    found: list[set[str]] = []

    def asked(store: Snapshot, *rest: object) -> Plan:
        found.append({copy.conversation for copy in store.copies})
        return plan_by_rules(store, *rest)  # type: ignore[arg-type] # whatever it is called with

    monkeypatch.setattr("reconcile.planning.planner.plan_by_rules", asked)
    return found


@pytest.mark.parametrize(("store", "workspace", "baseline", "policy", "looks"), GLANCES.values(), ids=GLANCES)
def test_the_rules_look_at_nothing_that_is_told_at_a_glance(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    policy: Policy,
    looks: list[set[str]],
    ruled: list[set[str]],
) -> None:
    plan_of(store, workspace, baseline, policy)
    assert ruled == looks


@pytest.mark.parametrize("name", ["nothing but projections", "one of two is edited"])
def test_they_look_at_everything_where_a_command_asks_or_where_that_is_a_part(name: str, ruled: list[set[str]]) -> None:
    store, workspace, baseline, policy, _ = GLANCES[name]
    plan_of(store, workspace, baseline, replace(policy, request=GcRequest()))
    make_plan(store, workspace, baseline, policy, RULES, NOW_NS, WHOLE)
    assert ruled == [{copy.conversation for copy in store.copies}] * 2


OTHER = THREE.replace('"C"', '"Other"')
BEHIND = (
    stored(ONE, TWO, f"3-other{OTHER[3:]}", FOUR),
    here(
        ONE,
        f"1-a/conversations/{TWO}".replace("09:30 [1 2]", "09:20 [1]"),
        f"1-a/conversations/2-b/conversations/{OTHER}",
        EDITED,
    ),
)
"""An older version is in the workspace; a new title waits below it. Another conversation has been edited."""


def behind() -> Baseline:
    lines = (ONE, f"1-a/conversations/{TWO}", f"1-a/conversations/2-b/conversations/{THREE}", FOUR)
    older = agreed_on(lines[0], lines[1].replace("[1 2]", "[1]")).agreed["jp-c2"].units[STREAM]
    baseline = agreed_on(*lines)
    newer = baseline.agreed["jp-c2"].units[STREAM]
    return replace(baseline, history={**baseline.history, ("jp-c2", STREAM): (older, newer)})


TAKEN = {"jp-c2": Take.STORE}
LIMITED = {
    "a plain run": (Policy(), [(Kind.COPY, "jp-c4")]),
    "resolve": (Policy(decisions=TAKEN, only=frozenset(TAKEN)), [(Kind.PROJECT, "jp-c2"), (Kind.MOVE, "jp-c3")]),
    "resolve, and --only another": (
        Policy(decisions=TAKEN, only=frozenset({"jp-c1", "jp-c2"})),
        [(Kind.PROJECT, "jp-c2")],
    ),
    "resolve --below": (
        Policy(decisions=TAKEN, below=frozenset(TAKEN)),
        [(Kind.PROJECT, "jp-c2"), (Kind.MOVE, "jp-c3")],
    ),
    "project --behind": (
        Policy(request=ProjectRequest((), behind=True)),
        [(Kind.PROJECT, "jp-c2"), (Kind.MOVE, "jp-c3")],
    ),
    "project --behind --only": (
        Policy(request=ProjectRequest((), behind=True), only=frozenset(TAKEN)),
        [(Kind.PROJECT, "jp-c2")],
    ),
}


@pytest.mark.parametrize(("policy", "steps"), LIMITED.values(), ids=LIMITED)
def test_what_the_result_of_a_command_makes_due_is_done_with_it_and_nothing_else(
    policy: Policy, steps: list[tuple[Kind, str]]
) -> None:
    plan = plan_of(*BEHIND, behind(), policy)
    assert [(action.kind, action.conversation) for action in plan.actions] == steps


def test_what_a_run_over_a_part_is_not_about_loses_no_parent() -> None:
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}", FOUR)
    root = TWO.replace("parent 1", "parent null")
    sides = stored(ONE, root, FOUR), here(ONE, f"1-a/conversations/{TWO}", EDITED)
    assert plan_of(*sides, baseline).rooted == ("jp-c2",)
    assert plan_of(*sides, baseline, Policy(only=frozenset({"jp-c4"}))).rooted == ()


def test_a_damaged_file_loses_no_parent() -> None:
    agreed = agreed_on(ONE, TWO.replace("parent 1", "parent null"))
    baseline = replace(agreed, parents={**agreed.parents, "jp-c2": "jp-c1"})
    damaged = TWO.replace('metadata 09:00 title "B" parent 1', "")
    sides = stored(ONE, damaged, '2-b/metadata.json 10:00 "{"'), here(ONE)
    assert plan_of(*sides, baseline).rooted == ()
    assert plan_of(stored(ONE, TWO.replace("parent 1", "parent null")), here(ONE), baseline).rooted == ("jp-c2",)


def test_what_is_removed_keeps_a_parent_that_only_the_memory_knows() -> None:
    """It may have to stay, if somebody holds its lock."""
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}")
    removing = Policy(request=RemoveRequest(("jp-c2",), Children.REFUSE))
    for line, rooted in ((TWO, ("jp-c2",)), (TWO.replace(" parent 1", ""), ())):
        plan = plan_of(stored(ONE, line), here(ONE, f"1-a/conversations/{TWO}"), baseline, removing)
        assert Kind.REMOVE in {action.kind for action in plan.actions}
        assert plan.rooted == rooted


def test_what_is_left_of_a_local_is_part_of_a_whole_too() -> None:
    """Four directories are many where there are no others, and few among a hundred."""
    gone = [f'{number}-x  metadata 09:00 title "x"  stream 09:00 [1]' for number in range(6, 10)]
    baseline = agreed_on(FIVE, *gone)
    baseline = replace(
        baseline, intents={"jp-c5": Intent(IntentKind.LOCAL)}, waiting={("jp-c5", Verb.LOCAL): PendingRequest()}
    )
    sides = stored(FIVE), here(FIVE, *gone)
    for whole, removed in ((WHOLE, 5), (Whole(ORDINARY, 5), 1)):
        plan = make_plan(*sides, baseline, Policy(), RULES, NOW_NS, whole)
        assert [action.kind for action in plan.actions] == [Kind.REMOVE_STALE] * removed


def test_a_command_carries_out_no_other_request_that_waits() -> None:
    local = replace(
        behind(), intents={"jp-c4": Intent(IntentKind.LOCAL)}, waiting={("jp-c4", Verb.LOCAL): PendingRequest()}
    )
    assert {action.conversation for action in plan_of(*BEHIND, local).actions} == {"jp-c4"}
    limited = plan_of(*BEHIND, local, Policy(decisions=TAKEN, only=frozenset(TAKEN)))
    assert limited.about == frozenset({"jp-c2", "jp-c3"})
    assert {action.conversation for action in limited.actions} == {"jp-c2", "jp-c3"}


def test_below_a_conversation_a_command_is_about_all_of_its_targets() -> None:
    everything = ProjectRequest(("jp-c1", "jp-c2", "jp-c3", "jp-c4"))
    sides = stored(ONE, TWO, THREE, FOUR, FIVE), here(FIVE)
    plan = plan_of(*sides, agreed_on(FIVE), Policy(request=everything, below=frozenset({"jp-c2"})))
    assert [action.conversation for action in plan.actions] == ["jp-c1", "jp-c2", "jp-c3"]


def test_what_only_the_workspace_has_is_removed_with_a_parent_that_is_known() -> None:
    known = replace(agreed_on(FOUR), parents={"jp-c1": "jp-c4"})
    removing = Policy(request=RemoveRequest(("jp-c1",), Children.REFUSE))
    plan = plan_of(stored(FOUR), here(f"4-d/conversations/{ONE}", FOUR), known, removing)
    assert [(action.kind, action.conversation) for action in plan.actions] == [(Kind.REMOVE_STALE, "jp-c1")]
    assert plan.rooted == ()


def test_a_conflict_that_nothing_is_written_for_is_none_of_the_plan() -> None:
    """The workspace's version is saved, and its directory goes."""
    ours, theirs = (ONE.replace('"A"', f'"{title}"') for title in ("B", "C"))
    sides = stored(ours, FOUR), here(theirs, FOUR)
    assert len(plan_of(*sides, agreed_on(ONE, FOUR)).conflicts) == 1
    assert plan_of(*sides, agreed_on(ONE, FOUR), Policy(request=LocalRequest(("jp-c1",)))).conflicts == ()


def test_a_plan_knows_its_policy_and_what_somebody_has_moved() -> None:
    policy = Policy(accept_bulk=True)
    plan = plan_of(stored(ONE, TWO), here(ONE, TWO), agreed_on(ONE, f"1-a/conversations/{TWO}"), policy)
    assert plan.policy == policy
    assert plan.displaced == {"jp-c2"}
    assert plan.about is None


class Logs(notes.notes.NotesFormat):  # type: ignore[misc, name-defined]
    """A format in which `log` is a log."""

    def is_log(self, conversation: str) -> bool:
        return conversation == "log"


LOGS: dict[str, tuple[dict[str, bytes], dict[str, bytes], set[str]]] = {
    "different": ({"log": b"1"}, {"log": b"1\n2"}, {"log"}),
    "equal": ({"log": b"1"}, {"log": b"1"}, set()),
    "in the store alone": ({"log": b"1"}, {}, set()),
    "in the workspace alone": ({}, {"log": b"1"}, set()),
    "another record": ({"a.md": b"1"}, {"a.md": b"2"}, set()),
}


@pytest.mark.parametrize(("store", "workspace", "found"), LOGS.values(), ids=LOGS)
def test_the_contents_of_logs_that_differ_are_needed(
    store: dict[str, bytes], workspace: dict[str, bytes], found: set[str]
) -> None:
    rules = Rules(Logs(), notes.RULES.digest)
    assert needs_logs(notes.side(Side.STORE, store), notes.side(Side.WORKSPACE, workspace), rules) == found
    assert needs_logs(stored(ONE), here(ONE.replace("[1]", "[1 2]")), RULES) == set()

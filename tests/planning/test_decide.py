"""What is decided of one conversation as a whole, before a step is planned (docs/design/decisions.md)."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind
from reconcile.model.options import Prefer, Take
from reconcile.model.plan import Kind
from reconcile.model.policy import Children, Policy, ProjectRequest, RemoveRequest, SetParentRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Side
from reconcile.planning.context import Edits
from reconcile.planning.decide import decide
from reconcile.planning.rules.content import Outcome, Verdict
from reconcile.planning.rules.presence import Goal
from reconcile.planning.rules.views import PLACE, Lead
from tests.support.formats import notes
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored, unreadable, view_of
from tests.support.scenarios.pure_level import RULES

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
LONGER = A.replace("[1]", "[1 2]")
OLD = A.replace("stream 09:00", "stream 09:30")
"""What the workspace has after an old branch was checked out, where the store has gone on."""
Z = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
KNOWN = agreed_on(A, Z)
BEHIND = agreed_on(LONGER, Z)


def metadata_of(line: str) -> str:
    return line.partition("  stream")[0]


def stream_of(line: str) -> str:
    return f"1-a  stream{line.partition('  stream')[2]}"


def at(path: str, line: str) -> str:
    return line.replace("1-a", path, 1)


def verdicts(
    store: list[str], workspace: list[str], baseline: Baseline, policy: Policy | None = None
) -> dict[str, Verdict]:
    return context_of(stored(*store, Z), here(*workspace, Z), baseline, policy).verdicts.get("jp-c1", {})


def outcomes(found: dict[str, Verdict]) -> dict[str, Outcome]:
    return {unit: verdict.outcome for unit, verdict in found.items()}


def test_while_the_stream_is_behind_the_rest_waits_but_for_what_was_kept_apart() -> None:
    retitled = OLD.replace('"A"', '"B"')
    found = verdicts([LONGER], [retitled], BEHIND)
    assert found[STREAM].outcome is Outcome.BEHIND
    assert found[METADATA] == Verdict(METADATA, 11, Outcome.TO_STORE, Reason.EDITED_WORKSPACE)
    unknown = verdicts([LONGER], [retitled], replace(BEHIND, contents={}))
    assert unknown[METADATA] == Verdict(METADATA, 11, Outcome.WAIT, Reason.BEHIND_ASIDE)
    in_store = verdicts([LONGER.replace('"A"', '"B"')], [OLD], BEHIND)
    assert in_store[METADATA] == Verdict(METADATA, 13, Outcome.WAIT, Reason.BEHIND_ASIDE)
    both = (
        view_of(stored(LONGER), here()).store.raw(METADATA),
        view_of(stored(), here(retitled)).workspace.raw(METADATA),
    )
    kept = replace(BEHIND, asides={("jp-c1", METADATA): AsideRecord(AsideKind.KEPT, *both)})
    assert verdicts([LONGER], [retitled], kept)[METADATA].outcome is Outcome.ASIDE


def test_metadata_that_is_behind_keeps_nothing_else_waiting() -> None:
    older = A.replace('"A"', '"Old"')
    digest = view_of(stored(older), here()).store.digest(METADATA) or ""
    now = view_of(stored(A), here()).store.digest(METADATA) or ""
    baseline = replace(KNOWN, history={**KNOWN.history, ("jp-c1", METADATA): (digest, now)})
    found = verdicts([A], [older.replace("[1]", "[1 2]")], baseline)
    assert outcomes(found) == {METADATA: Outcome.BEHIND, STREAM: Outcome.TO_STORE}


WITH_OLD = {
    "has none": ([], Outcome.BEHIND),
    "has one that nobody can read": (['1-a/events.json  09:00 "["'], Outcome.HELD),
    "has the newer one": ([stream_of(LONGER)], Outcome.NOTHING),
}


@pytest.mark.parametrize(("more", "outcome"), WITH_OLD.values(), ids=WITH_OLD)
def test_an_older_version_in_another_directory_counts_where_the_one_that_stays(
    more: list[str], outcome: Outcome
) -> None:
    """That one has the metadata, so that it is the better directory."""
    other = at("1-z", stream_of(OLD))
    found = verdicts([LONGER], [metadata_of(A), *more, other], BEHIND)
    assert found[STREAM].outcome is outcome


def test_of_what_is_removed_by_a_command_no_content_is_decided() -> None:
    request = Policy(request=RemoveRequest(("jp-c1",), Children.CASCADE))
    plan = plan_of(stored(A, Z), here(LONGER, Z), KNOWN, request)
    assert dict(plan.states) == {"removed": 1}
    assert [action.kind.value for action in plan.actions] == ["remove", "remove-stale"]


LACKING = {
    "removed from the store, and the store is taken": ([], [A], {}, Take.STORE, Goal.REMOVE),
    "new here, and the store is taken": ([], [LONGER], {}, Take.STORE, Goal.NOTHING),
    "due here, and the workspace is taken": (
        [A],
        [],
        {"jp-c1": Intent(IntentKind.PROJECTED)},
        Take.WORKSPACE,
        Goal.NOTHING,
    ),
}


@pytest.mark.parametrize(("store", "workspace", "intents", "take", "goal"), LACKING.values(), ids=LACKING)
def test_what_a_side_lacks_is_not_taken_from_it(
    store: list[str], workspace: list[str], intents: dict[str, Intent], take: Take, goal: Goal
) -> None:
    baseline = replace(KNOWN, intents=intents)
    context = context_of(stored(*store, Z), here(*workspace, Z), baseline, Policy(decisions={"jp-c1": take}))
    assert context.presences["jp-c1"].goal is goal


def test_what_would_wait_is_not_remembered_to_wait_where_it_was_decided_otherwise() -> None:
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    baseline = agreed_on(A, f"1-a/conversations/{child}", Z)
    sides = stored(A, child, Z), here(Z)
    assert context_of(*sides, baseline).presences["jp-c2"].goal is Goal.WAIT
    decided = context_of(*sides, baseline, Policy(decisions={"jp-c2": Take.WORKSPACE})).presences["jp-c2"]
    assert (decided.goal, decided.intent) == (Goal.NOTHING, None)


def test_what_is_asked_for_and_there_already_needs_no_reason() -> None:
    plan = plan_of(stored(A, Z), here(Z), agreed_on(Z), Policy(request=ProjectRequest(("jp-c1", "jp-c9"))))
    assert [(action.conversation, action.reason) for action in plan.actions] == [("jp-c1", Reason.ASKED)]
    gone = plan_of(stored(Z), here(A, Z), KNOWN, Policy(request=ProjectRequest(("jp-c1",))))
    assert [action.reason for action in gone.actions] == [Reason.REMOVED_IN_STORE]


BROKEN = '/events.json  09:00 "["'


def test_of_several_directories_that_nobody_can_read_each_is_held_once() -> None:
    whole = [at(path, A) for path in ("1-x", "1-y", "1-z")]
    found = verdicts([A], [A, *whole, f"1-y{BROKEN}", f"1-z{BROKEN}"], KNOWN)[STREAM]
    assert (found.outcome, found.reason, found.case) == (Outcome.HELD, Reason.INVALID, 10)
    assert [unit.copy.path for unit in found.faulty] == ["1-y", "1-z"]
    all_ = verdicts([A], [A, f"1-a{BROKEN}", whole[2], f"1-z{BROKEN}"], KNOWN)[STREAM]
    assert sorted(unit.copy.path for unit in all_.faulty) == ["1-a", "1-z"]
    only = verdicts([A], [metadata_of(A), at("1-z", stream_of(A)), f"1-z{BROKEN}"], KNOWN)[STREAM]
    assert [unit.copy.path for unit in only.faulty] == ["1-z"]
    new = verdicts([], [A, whole[2], f"1-z{BROKEN}"], agreed_on(Z))
    assert {unit: (verdict.case, verdict.outcome) for unit, verdict in new.items()} == {STREAM: (None, Outcome.HELD)}


def test_what_nobody_can_read_is_left_to_the_removal_or_alone() -> None:
    """Of what was removed from the store, when that directory goes; of what is local, nothing goes."""
    twice = [A, at("1-z", A), f"1-z{BROKEN}"]
    assert verdicts([], twice, KNOWN) == {}
    local = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert outcomes(verdicts([A], twice, local)) == {METADATA: Outcome.NOTHING, STREAM: Outcome.NOTHING}


def test_without_metadata_on_either_side_a_stream_is_still_saved() -> None:
    found = verdicts([stream_of(A)], [stream_of(LONGER.replace("stream 09:00", "stream 09:30"))], KNOWN)
    assert outcomes(found)[STREAM] is Outcome.TO_STORE


def test_a_directory_keeps_the_name_found_while_the_title_is_as_agreed_on() -> None:
    """A rename that was cut short counts where nothing was agreed on yet."""
    elsewhere = at("1-old", A)
    for baseline, name in ((agreed_on(elsewhere, Z), "1-old"), (agreed_on(Z), "1-a")):
        context = context_of(
            stored(elsewhere, Z), here(elsewhere, Z), replace(baseline, renames=frozenset({(Side.STORE, "jp-c1")}))
        )
        view = context.views["jp-c1"]
        assert view.store.main is not None
        assert context.dirname_of(view, view.store.main, view.store.metadata) == name
        assert view.workspace.main is not None
        assert context.dirname_of(view, view.workspace.main, view.store.metadata) == "1-old"


def test_of_a_version_that_nobody_can_read_whole_the_rest_is_kept() -> None:
    kept = plan_of(unreadable(stored(A, Z), "1-a/base_config.json"), here(A, Z), KNOWN).preserve
    assert [str(version.place) for version in kept] == ["store:1-a/events.json"]


UNEDITABLE = '{"title":"A","last_activated_at":"2025-01-01 00:00:00.0"}'


def test_metadata_that_cannot_be_edited_is_held_under_its_case_and_what_is_held_already_stays_so() -> None:
    child = A.replace('"A"', '"A" parent 9')
    baseline = agreed_on(Z, f"9-z/conversations/{child}")
    file = f"1-a/metadata.json  09:30 {json.dumps(UNEDITABLE)}"
    context = context_of(stored(child, file, Z), here(Z, f"9-z/conversations/{child}"), baseline)
    held = context.verdicts["jp-c1"][METADATA]
    assert (held.outcome, held.reason, held.case) == (Outcome.HELD, Reason.NOT_ROUND_TRIP, 13)
    broken = '9-z/conversations/1-a/metadata.json  10:00 "{"'
    context = context_of(stored(child, file, Z), here(Z, f"9-z/conversations/{child}", broken), baseline)
    assert context.verdicts["jp-c1"][METADATA].reason is Reason.INVALID


def merged(store: str, workspace: str, baseline: Baseline, policy: Policy | None = None) -> dict[str, object]:
    """Return the merge of a child's metadata, whose parent was A."""
    lines = [f"1-a/conversations/3-c  metadata {text}  stream 09:00 [1]" for text in (store, workspace)]
    found = context_of(stored(A, Z, lines[0].rpartition("/")[2]), here(A, Z, lines[1]), baseline, policy)
    verdict = found.verdicts["jp-c3"][METADATA]
    assert (verdict.outcome, verdict.case) == (Outcome.MERGED, 15)
    value: dict[str, object] = json.loads(verdict.content or b"")
    return value


def test_merged_metadata_states_the_parent_that_the_tree_decides() -> None:
    child = '1-a/conversations/3-c  metadata 08:00 title "C" parent 1  stream 09:00 [1]'
    baseline = agreed_on(A, Z, child)
    value = merged('09:00 title "D" parent 1', '08:00 title "C" parent 9 x=1', baseline)
    assert (value["title"], value["x"], value["parent_id"]) == ("D", 1, "jp-c9")
    # Another checkout has made it a root, so that the key is absent in the store.
    rooted = replace(baseline, parents={**baseline.parents, "jp-c3": None})
    assert "parent_id" not in merged('09:00 title "D"', '08:00 title "C" parent 1 x=1', rooted)
    # --prefer is about content; the later parent counts.
    policy = Policy(prefer=Prefer.STORE)
    value = merged('08:00 title "D" parent null', '09:00 title "C" parent 9 x=1', baseline, policy)
    assert (value["title"], value["parent_id"]) == ("D", "jp-c9")


def test_a_requested_parent_has_a_step_of_its_own() -> None:
    child = '1-a/conversations/3-c  metadata 08:00 title "C" parent 1  stream 09:00 [1]'
    request = Policy(request=SetParentRequest("jp-c3", "jp-c9"))
    store, workspace = child.replace('"C"', '"D"').rpartition("/")[2], child.replace("parent", "x=1 parent")
    plan = plan_of(stored(A, Z, store), here(A, Z, workspace), agreed_on(A, Z, child), request)
    kinds = [(action.kind, action.target.side) for action in plan.actions if action.unit == METADATA]
    assert kinds == [(Kind.COPY, Side.STORE), (Kind.SET_PARENT, Side.STORE), (Kind.PROJECT, Side.WORKSPACE)]


CHILD = A.replace('"A"', '"A" parent 9')
BELOW = f"9-z/conversations/{CHILD}"
STRANGE = A.replace('"A"', '"A" parent raw 1.5')
BOTH_BROKEN = [A, f"1-a{BROKEN}"]
UNCHANGED: dict[str, tuple[list[str], list[str], Baseline, bool]] = {
    "equal": ([A], [A], KNOWN, True),
    "equal, and new to this checkout": ([A], [A], agreed_on(Z), True),
    "a child": ([CHILD], [BELOW], agreed_on(Z, BELOW), True),
    "without a parent in one file": ([CHILD], [BELOW.replace(" parent 9", "")], agreed_on(Z, BELOW), False),
    "without a parent in the other": ([A], [BELOW], agreed_on(Z, BELOW), False),
    "with a parent that nobody can read": ([STRANGE], [STRANGE], agreed_on(STRANGE, Z), False),
    "without metadata": ([stream_of(A)], [stream_of(A)], KNOWN, False),
    "edited": ([A], [LONGER], KNOWN, False),
    "broken on both sides": (BOTH_BROKEN, BOTH_BROKEN, KNOWN, False),
    "with a note on one side": ([A, '1-a/N.md  09:00 "x"'], [A], KNOWN, False),
    "twice": ([A], [A, at("1-b", A)], KNOWN, False),
    "twice in the store": ([A, at("1-b", A)], [A], KNOWN, False),
    "local": ([A], [A], replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)}), False),
    "set aside": ([A], [A], replace(KNOWN, asides={("jp-c1", STREAM): AsideRecord(AsideKind.KEPT, "x", "y")}), False),
    "on one side": ([A], [], agreed_on(Z), False),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "unchanged"), UNCHANGED.values(), ids=UNCHANGED)
def test_for_what_is_equal_on_both_sides_and_states_its_parent_there_is_nothing_to_do(
    store: list[str], workspace: list[str], baseline: Baseline, unchanged: bool
) -> None:
    sides = stored(*store, Z), here(*workspace, Z)
    assert ("jp-c1" in context_of(*sides, baseline).unchanged) is unchanged


def test_what_leaves_or_changes_its_partition_is_not_unchanged() -> None:
    leaving = decide(
        stored(A, Z), here(A, Z), KNOWN, Policy(), RULES, 0, edits=Edits(leaving={"jp-c1": Reason.LOCALIZED})
    )
    assert leaving.unchanged == {"jp-c9"}
    archived = at(".archive/1-a", A)
    record = view_of(stored(A), here(archived)).split_record
    parted = replace(KNOWN, asides={("jp-c1", PLACE): record})
    context = context_of(stored(A, Z), here(archived, Z), parted)
    assert context.views["jp-c1"].lead is Lead.NEITHER
    decided = context_of(stored(A, Z), here(archived, Z), parted, Policy(decisions={"jp-c1": Take.STORE}))
    assert decided.views["jp-c1"].lead is Lead.STORE


def test_a_program_at_work_is_known_to_the_rules() -> None:
    workspace = notes.side(Side.WORKSPACE, {"a.md": b"a"}, busy=True)
    found = decide(notes.side(Side.STORE, {}), workspace, Baseline(), Policy(), notes.RULES, 0)
    assert found.program == workspace.derived_inputs

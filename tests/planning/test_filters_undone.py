"""How an undone conversation stands, and when that still holds (docs/design/run.md#rule-53)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Intent, IntentKind, records_of
from reconcile.model.options import OnConflict
from reconcile.model.plan import Kind
from reconcile.model.policy import Policy
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, File
from reconcile.planning.filters import (
    DirectoryState,
    directory_state,
    left_alone,
    release_unsaved,
    side_digest,
    undone_record,
    with_undone_conflicts,
    without_left,
)
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.baseline import Baseline
    from reconcile.model.snapshot import Snapshot

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
C = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'


def test_what_lies_above_the_container_does_not_count() -> None:
    files = [File("b", 1, 2, "digest"), File("a", 1, 2, None)]
    expected = (("a", ""), ("b", "digest"))
    inside = "9-z/conversations/1-a/conversations/.archive/2-b"
    assert directory_state(inside, "jp-c1", files) == DirectoryState(".archive/2-b", "jp-c1", expected)
    assert directory_state("2-b", None, files) == DirectoryState("2-b", "", expected)


def test_a_side_is_named_by_all_its_directories_in_any_order() -> None:
    one, two = DirectoryState("1-a", "", (("\udcff", "x"),)), DirectoryState("1-b", "", ())
    both = side_digest([one, two], RULES)
    assert both == side_digest([two, one], RULES)
    assert len({both, side_digest([one], RULES), side_digest([two], RULES), side_digest([], RULES)}) == 4
    assert side_digest([], RULES) is None


def test_the_text_of_a_digest_that_is_stored_never_changes() -> None:
    first = "Standing(path='1-a', container='', files=(('events.json', 'd'),))"
    text = f"[{first}, Standing(path='1-b', container='jp-c2', files=())]"
    states = [DirectoryState("1-b", "jp-c2", ()), DirectoryState("1-a", "", (("events.json", "d"),))]
    assert side_digest(states, RULES) == RULES.digest(text.encode())


def test_a_record_names_both_sides() -> None:
    one = DirectoryState("1-a", "", ())
    digest = side_digest([one], RULES)
    assert undone_record([one], [], RULES) == AsideRecord(AsideKind.UNDONE, digest, None)
    assert undone_record([], [one], RULES) == AsideRecord(AsideKind.UNDONE, None, digest)
    assert undone_record([], [], RULES) is None


def test_what_was_left_alone_as_a_whole_is_remembered_as_it_was() -> None:
    """Two steps each: none of the first was done, one of the second, and nothing was known of the third."""
    plan = plan_of(stored(), here(A, B, C))
    steps = dict.fromkeys(("jp-c1", "jp-c2", "jp-c3"), plan.actions[:1])
    actions = tuple(
        replace(step, id=f"{conversation}.{number}", conversation=conversation)
        for conversation, (step,) in steps.items()
        for number in (1, 2)
    )
    known = tuple(records_of(agreed_on(A, B), ["jp-c1", "jp-c2", "jp-c4"]).items())
    plan = replace(plan, actions=actions, remembered=known)
    assert left_alone(plan, {"jp-c1.1", "jp-c1.2", "jp-c2.1", "jp-c3.1", "jp-c3.2"}) == {"jp-c1"}


def put_back(store: Snapshot, workspace: Snapshot, conversations: Iterable[str], baseline: Baseline) -> Baseline:
    """Return what is remembered where an undo has left these as they stand."""

    def states(side: Snapshot, conversation: str) -> list[DirectoryState]:
        copies = [copy for copy in side.copies if copy.conversation == conversation]
        return [directory_state(copy.path, copy.container, copy.files) for copy in copies]

    found = {each: undone_record(states(store, each), states(workspace, each), RULES) for each in conversations}
    records = {(each, WHOLE): record for each, record in found.items() if record is not None}
    return replace(baseline, asides={**baseline.asides, **records})


def test_a_record_is_released_once_a_side_has_changed() -> None:
    baseline = put_back(stored(A, B), here(A, B), ["jp-c1", "jp-c2"], agreed_on(A, B))
    assert plan_of(stored(A, B), here(A, B), baseline).asides == ()
    longer = '2-b  metadata 09:00 title "B"  stream 10:00 [1 2]'
    assert plan_of(stored(A, B), here(A, longer), baseline).asides == ((("jp-c2", WHOLE), None),)
    edited = here('1-a  metadata 09:00 title "A"  stream 10:00 [1 2]', B)
    baseline = put_back(stored(A, B), edited, ["jp-c1"], baseline)
    assert plan_of(stored(A), edited, baseline).asides == ((("jp-c2", WHOLE), None),)


def test_what_is_set_aside_for_another_reason_is_left_alone() -> None:
    old = '1-a  metadata 09:00 title "A"  stream 12:00 [1]'
    store = stored('1-a  metadata 09:00 title "A"  stream 10:00 [1 2]')
    record = AsideRecord(AsideKind.BEHIND, "old", "old")
    baseline = replace(agreed_on(A), asides={("jp-c1", "stream"): record})
    assert ("jp-c1", WHOLE) not in dict(plan_of(store, here(old), baseline).asides)


def test_nothing_else_is_said_of_what_was_undone() -> None:
    broken = here(A, '1-a/events.json 10:00 "[{"')
    local = stored('1-a  metadata 09:00 title "A" local  stream 09:00 [1]')
    displaced = here(A.replace("1-a", "2-b/conversations/1-a"), B)
    for store, workspace, baseline in (
        (stored(A), broken, agreed_on()),
        (local, here(A), agreed_on()),
        (stored(A, B), displaced, agreed_on(A, B)),
    ):
        before = plan_of(store, workspace, baseline)
        assert before.held or before.aside
        plan = plan_of(store, workspace, put_back(store, workspace, ["jp-c1"], baseline))
        assert [(item.conversation, item.reason.value) for item in (*plan.held, *plan.aside)] == [("jp-c1", "undone")]


def test_what_is_said_of_others_stays() -> None:
    looped = [f'{name}  metadata 09:00 title "X" parent {name[0]}  stream 09:00 [1]' for name in ("1-a", "2-b")]
    store = stored(A, B)
    workspace = here(A, B, '1-a/events.json 10:00 "[{"', '2-b/events.json 10:00 "[{"')
    plan = plan_of(store, workspace, put_back(store, workspace, ["jp-c1"], agreed_on(A, B)))
    assert [item.conversation for item in plan.held] == ["jp-c2"]
    assert [(item.conversation, item.resolve) for item in plan.aside] == [
        ("jp-c1", ("reconcile resolve jp-c1 --take store",))
    ], "an invalid version can't be taken"
    plan = plan_of(stored(), here(*looped), put_back(stored(), here(*looped), ["jp-c1"], agreed_on()))
    assert [note.conversation for note in plan.notes] == ["jp-c2"]


def test_an_undone_removal_leaves_no_tombstone() -> None:
    other = '10-j  metadata 09:00 title "J"  stream 09:00 [1]'
    store, workspace, baseline = stored(C), here(A, B, C, other), agreed_on(A, B, C, other)
    gone = ["jp-c1", "jp-c2", "jp-c10"]
    assert sorted(dict(plan_of(store, workspace, baseline).tombstones)) == sorted(gone)
    plan = plan_of(store, workspace, put_back(store, workspace, gone, baseline))
    assert plan.tombstones == ()
    assert [item.conversation for item in plan.aside] == gone


def test_a_record_of_what_is_nowhere_is_released() -> None:
    """Whatever is asked for."""
    record = AsideRecord(AsideKind.UNDONE, "x", "y")
    baseline = replace(agreed_on(A), asides={("jp-c9", WHOLE): record})
    assert dict(plan_of(stored(A), here(A), baseline).asides) == {("jp-c9", WHOLE): None}


def test_no_version_of_a_conflict_that_an_undo_has_left_is_an_older_one() -> None:
    """If the undo has restored the base, the workspace's version is the one that was undone. It stays older."""
    agreed = agreed_on(A)
    base = agreed.agreed["jp-c1"].units
    history = {("jp-c1", METADATA): ("won", base[METADATA]), ("jp-c1", STREAM): ("won", "edit of the store")}
    history |= {("jp-c2", STREAM): ("won", "edit")}
    workspace = here(A, B)
    left = put_back(stored(A, B), workspace, ["jp-c1", "jp-c2"], replace(agreed, history=history))
    kept = with_undone_conflicts(left, workspace, RULES).history
    assert kept == {("jp-c1", METADATA): ("won", base[METADATA])}
    edited = here(A.replace("[1]", "[1 2]"), B.replace("[1]", "[1 2]"))
    assert with_undone_conflicts(left, edited, RULES).history == history
    assert with_undone_conflicts(replace(agreed, history=history), workspace, RULES).history == history


def test_what_differs_in_the_workspace_goes_into_the_vault_and_what_is_equal_does_not() -> None:
    edited = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]'
    baseline = put_back(stored(A), here(edited), ["jp-c1"], agreed_on(A))
    kept = plan_of(stored(A), here(edited), baseline).preserve
    assert {(version.unit, version.place.side.value) for version in kept} == {("stream", "workspace")}


def test_of_a_side_that_lacks_it_nothing_can_be_taken() -> None:
    (item,) = plan_of(stored(B), here(A, B), put_back(stored(B), here(A, B), ["jp-c1"], agreed_on(B))).aside
    assert item.resolve == ("reconcile resolve jp-c1 --take workspace",)


def test_a_fork_of_another_stays_what_it_is() -> None:
    """It is of a local conversation, so local itself."""
    ours, theirs = B.replace("[1]", "[1 2]"), B.replace("stream 09:00 [1]", "stream 09:30 [1 3]")
    known = replace(agreed_on(A, B), intents={"jp-c2": Intent(IntentKind.LOCAL)})
    edited = A.replace("stream 09:00 [1]", "stream 09:30 [1 2]")
    sides = stored(A, ours), here(edited, theirs)
    plan = plan_of(*sides, put_back(*sides, ["jp-c1"], known))
    (fork,) = (action.conversation for action in plan.actions if action.kind is Kind.FORK)
    assert dict(plan.intents)[fork] == Intent(IntentKind.LOCAL)


def test_nor_does_what_has_to_wait_for_it() -> None:
    """Its directory can't go before what lies in it."""
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    store, workspace = stored(C), here(A, f"1-a/conversations/{child}", C)
    baseline = agreed_on(A, f"1-a/conversations/{child}", C)
    assert sorted(dict(plan_of(store, workspace, baseline).tombstones)) == ["jp-c1", "jp-c2"]
    plan = plan_of(store, workspace, put_back(store, workspace, ["jp-c2"], baseline))
    assert (plan.actions, plan.tombstones) == ((), ())
    assert {item.conversation for item in plan.aside} == {"jp-c1", "jp-c2"}


def test_an_undone_removal_here_leaves_no_intent() -> None:
    store, workspace, baseline = stored(A, B), here(B), agreed_on(A, B)
    assert dict(plan_of(store, workspace, baseline).intents).keys() == {"jp-c1"}
    assert plan_of(store, workspace, put_back(store, workspace, ["jp-c1"], baseline)).intents == ()


def test_an_undone_edit_on_both_sides_is_no_conflict() -> None:
    """That of another conversation is."""
    ours, theirs = ([each.replace(f'"{title}"', f'"{new}"') for each, title in ((A, "A"), (B, "B"))] for new in "XY")
    store, workspace, hold = stored(*ours), here(*theirs), Policy(conflict=OnConflict.HOLD)
    baseline = agreed_on(A, B)
    assert len(plan_of(store, workspace, baseline, hold).conflicts) == 2
    plan = plan_of(store, workspace, put_back(store, workspace, ["jp-c1"], baseline), hold)
    assert [conflict.conversation for conflict in plan.conflicts] == ["jp-c2"]


def test_a_fork_that_is_not_made_leaves_every_local_version_to_be_saved() -> None:
    """Another step that is left leaves its own version alone."""
    local, kept = AsideRecord(AsideKind.LOCAL, None, "x"), AsideRecord(AsideKind.KEPT, "x", "y")
    records = ((("jp-c1", "stream"), local), (("jp-c2", "stream"), local), (("jp-c1", "metadata"), kept))
    (copy,) = plan_of(stored(A), here(A.replace("[1]", "[1 2]")), agreed_on(A)).actions
    assert without_left(records, [copy]) == records[1:]
    assert without_left(records, [replace(copy, kind=Kind.FORK)]) == records[2:]
    assert without_left(records, []) == records


def test_the_record_of_an_undo_stays_until_every_step_of_its_conversation_is_done() -> None:
    """Another step that is left releases it; a fork may be its own."""
    records = ((("jp-c1", WHOLE), None), (("jp-c2", WHOLE), None), (("jp-c1", "stream"), None))
    (copy,) = plan_of(stored(A), here(A.replace("[1]", "[1 2]")), agreed_on(A)).actions
    assert without_left(records, [copy]) == records[1:]
    assert without_left(records, [replace(copy, kind=Kind.FORK)]) == records[2:]


def test_a_version_whose_step_was_left_out_is_released_wherever_the_step_stood() -> None:
    sides = stored(A, B), here(*(each.replace("[1]", "[1 2]") for each in (A, B)))
    context = context_of(*sides, agreed_on(A, B))
    first, second = plan_of(*sides, agreed_on(A, B)).actions
    local = AsideRecord(AsideKind.LOCAL, None, "x")
    for left, steps in ((second, (first,)), (first, (second,))):
        context.asides = {("jp-c1", "stream"): local, ("jp-c2", "stream"): local}
        release_unsaved(context, (first, second), steps)
        assert (left.conversation, "stream") not in context.asides
        assert len(context.asides) == 1


def test_a_decision_names_the_undone_ones_in_a_second_directory() -> None:
    """And only where the side that it takes has them."""
    child, old = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]', A.replace("1-a", "1-old")
    faulty = ['1-a  metadata 09:00 title "A"  stream 10:00 [1]', '1-a/events.json 10:00 "[{"']
    workspace = here(*faulty, f"1-a/conversations/{child}", old)
    for store, named in ((stored(A, child), "jp-c1 jp-c2"), (stored(A), "jp-c1")):
        baseline = agreed_on(A, f"1-a/conversations/{child}")
        (item,) = plan_of(store, workspace, put_back(store, workspace, ["jp-c2"], baseline)).held
        assert item.resolve == (f"reconcile resolve {named} --take store",)

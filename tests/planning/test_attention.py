"""What a plan says of what it leaves as it is: where, what, and the next commands (docs/design/run.md#rule-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import LOST, AsideKind, AsideRecord, Baseline, BaselineEntry, Intent, IntentKind
from reconcile.model.options import Diverged, OnConflict, Take
from reconcile.model.policy import Children, LocalRequest, Policy, ProjectRequest, RemoveRequest, SetParentRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Foreign, Problem, Side, Snapshot, Unreadable
from reconcile.model.units import Rules
from reconcile.planning.planner import make_plan
from reconcile.planning.rules.views import PLACE
from tests.support.formats import notes as records
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, unreadable, view_of

if TYPE_CHECKING:
    from reconcile.model.plan import Item, Plan

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
ONLY_METADATA, ONLY_STREAM = '1-a  metadata 09:00 title "A"', "1-a  stream 09:00 [1]"
Z = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
KNOWN = agreed_on(A, Z)
TAKE_STORE, TAKE_WORKSPACE = "reconcile resolve jp-c1 --take store", "reconcile resolve jp-c1 --take workspace"
Said = tuple[str, Reason, str, tuple[str, ...]]


def plan(store: list[str], workspace: list[str], baseline: Baseline = KNOWN, policy: Policy | None = None) -> Plan:
    return plan_of(stored(*store, Z), here(*workspace, Z), baseline, policy)


def said(items: tuple[Item, ...]) -> list[Said]:
    return [(item.unit, item.reason, item.message, item.resolve) for item in items if item.conversation == "jp-c1"]


def notes(plan: Plan) -> list[tuple[str | None, Reason, str]]:
    return [(note.conversation, note.reason, note.message) for note in plan.notes]


def test_an_old_copy_of_what_was_removed() -> None:
    buried = replace(agreed_on(Z), tombstones={"jp-c1": frozenset(KNOWN.agreed["jp-c1"].units.values())})
    ((unit, reason, message, ways),) = said(plan([], [A], buried).aside)
    assert (unit, reason, ways) == (WHOLE, Reason.REMOVED_BEFORE, (TAKE_WORKSPACE, "reconcile rm jp-c1"))
    assert message.startswith("an old copy of a removed conversation; ")


def test_what_is_to_be_taken_from_a_side_that_lacks_it() -> None:
    newer = A.replace("[1]", "[1 2]")
    found = plan([], [newer], policy=Policy(decisions={"jp-c1": Take.STORE}))
    message = "the store does not have it, so its version can't be taken; left alone"
    assert said(found.held) == [(WHOLE, Reason.UNSETTLED, message, (TAKE_WORKSPACE,))]
    removed = plan([], [A], policy=Policy(decisions={"jp-c1": Take.STORE}))
    assert (said(removed.held), [action.reason for action in removed.actions]) == ([], [Reason.REMOVED_IN_STORE])


def test_another_store_is_told_once() -> None:
    gone = Snapshot(Side.STORE, exists=False, identity="", copies=())
    lost = replace(KNOWN, store_identity=LOST)
    assert (None, Reason.STORE_REPLACED, Reason.STORE_REPLACED.words) in notes(plan_of(gone, here(Z), KNOWN))
    assert not [reason for _, reason, _ in notes(plan_of(gone, here(Z), lost)) if reason is Reason.STORE_REPLACED]
    ((_, reason, message),) = notes(plan([A], [A], lost))
    assert reason is Reason.STORE_REPLACED
    assert message.startswith("the store was lost since")
    unreadable = replace(gone, problems=(Problem("", "permission denied"),))
    assert not [
        reason for _, reason, _ in notes(plan_of(unreadable, here(Z), KNOWN)) if reason is Reason.STORE_REPLACED
    ]


def test_a_local_one_that_is_here() -> None:
    local = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    ((unit, reason, message, ways),) = said(plan([A], [A], local).aside)
    assert (unit, reason) == (WHOLE, Reason.LOCAL_PRESENT)
    assert message.startswith("marked local, but this checkout still has a copy; ")
    assert ways == ("reconcile local jp-c1", "reconcile project jp-c1")


def test_of_what_leaves_nothing_is_set_aside() -> None:
    newer, older = A.replace("[1]", "[1 2]"), A.replace("stream 09:00", "stream 09:30")
    behind = plan([newer], [older], agreed_on(newer, Z))
    assert [each[:2] for each in said(behind.aside)] == [(STREAM, Reason.BEHIND_ASIDE)]
    leaves = plan([newer], [older], agreed_on(newer, Z), Policy(request=LocalRequest(("jp-c1",))))
    assert (leaves.aside, leaves.held, [action.reason for action in leaves.actions]) == ((), (), [Reason.LOCALIZED])


def test_of_what_leaves_an_edit_on_both_sides_is_still_a_conflict() -> None:
    ours, theirs = (A.replace('"A"', f'"{title}"') for title in ("B", "C"))
    found = plan([ours], [theirs], policy=Policy(request=LocalRequest(("jp-c1",))))
    words = "metadata (title): both sides changed it; the store's is taken (same time; the store wins)"
    assert notes(found) == [("jp-c1", Reason.CONFLICT, words)]


def test_what_was_asked_for_and_goes_anyway_is_no_obstacle() -> None:
    found = plan([], [A], policy=Policy(request=ProjectRequest(("jp-c1",))))
    assert (found.held, [action.reason for action in found.actions]) == ((), [Reason.REMOVED_IN_STORE])


LINK = Foreign("1-a", "a symbolic link", link=True)


def test_a_link_in_the_stores_place_of_a_conversation() -> None:
    def of(*store: str, workspace: list[str]) -> list[str]:
        side = replace(stored(*store, Z), foreign=(LINK,))
        return [message for _, _, message, _ in said(plan_of(side, here(*workspace, Z), KNOWN).held)]

    (message,) = of(workspace=[A])
    assert message.startswith("store:1-a: a symbolic link replaced the directory; ")
    edited = A.replace("[1]", "[1 2]")
    assert of(edited.replace("1-a", "1-b", 1), workspace=[A]) == []
    (message,) = of(workspace=[])
    assert message.startswith("store:1-a: ")


def test_a_link_in_the_workspace_concerns_whom_it_hides() -> None:
    def of(*workspace: str) -> list[str]:
        side = replace(here(*workspace, Z), foreign=(LINK,))
        return [message.partition(":")[0] for _, _, message, _ in said(plan_of(stored(A, Z), side, KNOWN).held)]

    assert of() == ["workspace"]
    assert of(A.replace("1-a", "1-b", 1).replace("[1]", "[1 2]")) == []
    archived = plan_of(stored(A.replace("1-a", ".archive/1-a"), Z), replace(here(Z), foreign=(LINK,)), agreed_on(Z))
    assert said(archived.held) == []


NOT_WHOLE: dict[str, tuple[list[str], list[Said]]] = {
    "without metadata": (
        [ONLY_STREAM],
        [
            (
                METADATA,
                Reason.INVALID,
                "workspace:1-a/metadata.json: no such file (expected one beside the other files)",
                (),
            )
        ],
    ),
    "without events": (
        [ONLY_METADATA],
        [(STREAM, Reason.INVALID, "workspace:1-a/events.json: no such file (expected one beside the other files)", ())],
    ),
}


@pytest.mark.parametrize(("lines", "found"), NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_a_new_one_that_is_not_whole(lines: list[str], found: list[Said]) -> None:
    held = plan([], lines, agreed_on(Z))
    assert said(held.held) == found
    assert {version.conversation for version in held.preserve} == {"jp-c1"}


def test_of_a_new_one_every_broken_unit_is_named_in_their_order() -> None:
    held = plan([], [A, '1-a/events.json  09:00 "["', '1-a/metadata.json  09:00 "["'], agreed_on(Z))
    assert [unit for unit, *_ in said(held.held)] == [METADATA, STREAM]


def test_what_was_kept_is_remembered_once_and_until_a_side_changes() -> None:
    note = '1-a/NOTE.md  09:00 "{}"'
    ours, theirs = A.replace('"A"', '"B"'), A.replace('"A"', '"C"')
    baseline = agreed_on(A, note.format("x"), Z)
    sides = [ours, note.format("y")], [theirs, note.format("z")]
    view = view_of(stored(*sides[0]), here(*sides[1]))
    kept = {
        ("jp-c1", unit): AsideRecord(AsideKind.KEPT, view.store.raw(unit), view.workspace.raw(unit))
        for unit in (METADATA, "extra:NOTE.md")
    }
    asked = plan(*sides, baseline, Policy(decisions={"jp-c1": Take.KEEP}))
    assert dict(asked.asides) == kept
    assert [each[3] for each in said(asked.aside)] == [(TAKE_STORE, TAKE_WORKSPACE)] * 2
    baseline = replace(baseline, asides=kept)
    assert plan(*sides, baseline).asides == ()
    changed = plan(sides[0], [A.replace('"A"', '"D"'), note.format("w")], baseline)
    assert dict(changed.asides) == dict.fromkeys(kept)
    assert dict(plan([A], [A], baseline).asides)["jp-c1", METADATA] is None
    assert dict(plan([A], [], baseline).asides) == {("jp-c1", METADATA): None}


def test_what_diverged_and_is_to_be_asked_about() -> None:
    ours, theirs = A.replace("[1]", "[1 2]"), A.replace("[1]", "[1 3]")
    ((unit, reason, _, ways),) = said(plan([ours], [theirs], policy=Policy(diverged=Diverged.HOLD)).held)
    both = "reconcile resolve jp-c1 --take both"
    assert (unit, reason, ways) == (STREAM, Reason.DIVERGED_HELD, (TAKE_STORE, TAKE_WORKSPACE, both))


def test_what_both_have_edited_and_is_to_be_asked_about() -> None:
    """Of two streams, both can be kept."""
    ways, hold = (TAKE_STORE, TAKE_WORKSPACE), Policy(conflict=OnConflict.HOLD)
    retitled = plan([A.replace('"A"', '"B"')], [A.replace('"A"', '"C"')], policy=hold)
    times = "store 2025-01-02 09:00:00Z; workspace 2025-01-02 09:00:00Z"
    assert said(retitled.held) == [(METADATA, Reason.CONFLICT_HELD, f"both sides changed title: {times}", ways)]
    ((unit, reason, message, offered),) = said(
        plan([A.replace("[1]", "[1 2]")], [A.replace("[1]", "[1 3]")], policy=hold).held
    )
    assert (unit, reason, offered) == (STREAM, Reason.CONFLICT_HELD, (*ways, "reconcile resolve jp-c1 --take both"))
    assert message.startswith("both sides changed it: store file changed 2025")


BOTH_DIFFER: dict[str, tuple[list[str], list[str], Baseline, str]] = {
    "the same key": (
        [A.replace('"A"', '"B"')],
        [A.replace('"A"', '"C"')],
        KNOWN,
        "metadata (title): both sides changed it; the store's is taken (same time; the store wins)",
    ),
    "metadata without a common version": (
        [A.replace('"A"', '"B"')],
        [A],
        agreed_on(Z),
        "metadata: both sides differ; the store's is taken (same time; the store wins)",
    ),
    "another end on one side alone": ([A], [A.replace("[1]", "[2]")], KNOWN, "events: both sides differ"),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "words"), BOTH_DIFFER.values(), ids=BOTH_DIFFER)
def test_what_differs_is_noted_with_the_version_that_is_taken(
    store: list[str], workspace: list[str], baseline: Baseline, words: str
) -> None:
    assert notes(plan(store, workspace, baseline)) == [("jp-c1", Reason.CONFLICT, words)]


def test_another_base_configuration_is_noted_with_the_way_back() -> None:
    ours, theirs = A.replace("[1]", "[1] b1"), A.replace("[1]", "[1] b2")
    ((_, reason, message),) = notes(plan([ours], [theirs], agreed_on(ours, Z)))
    words = f"events: {Reason.BASE_REPLACED.words}; the store's version is saved, and `reconcile undo` restores it"
    assert (reason, message) == (Reason.BASE_REPLACED, words)


def test_what_nobody_can_read_is_taken_from_the_other_side_where_that_is_sound() -> None:
    broken = '1-a/events.json  09:00 "["'
    assert [each[3] for each in said(plan([A], [A, broken]).held)] == [(TAKE_STORE,)]
    assert [each[3] for each in said(plan([A, broken], [A]).held)] == [(TAKE_WORKSPACE,)]
    assert [each[3] for each in said(plan([A, broken], [A, broken]).held)] == [(), ()]


def test_a_private_one_gets_nothing_from_the_store() -> None:
    """So that its broken file is put in quarantine."""
    private, broken = A.replace('"A"', '"A" local'), '1-a/events.json  09:00 "["'
    quarantine = "reconcile doctor --quarantine jp-c1"
    assert [each[3] for each in said(plan([private], [private, broken], agreed_on(private, Z)).held)] == [(quarantine,)]
    assert [each[3] for each in said(plan([private, broken], [private], agreed_on(private, Z)).held)] == [
        (TAKE_WORKSPACE,)
    ]


def test_what_only_the_store_has_broken_is_told_whatever_is_asked() -> None:
    broken, quarantine = [A, '1-a/events.json  09:00 "["'], "reconcile doctor --quarantine jp-c1"
    asked = Policy(decisions={"jp-c1": Take.WORKSPACE})
    for policy in (Policy(), asked):
        ((unit, reason, _, ways),) = said(plan(broken, [], agreed_on(Z), policy).held)
        assert (unit, reason, ways) == (STREAM, Reason.INVALID, (quarantine,))


def test_a_local_one_that_is_held_as_a_whole_is_not_set_aside() -> None:
    """Another one that is held, or one unit that is, changes nothing."""
    local = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    twice = [A, A.replace("1-a", "1-b", 1)]
    asked = Policy(decisions={"jp-c1": Take.STORE})
    assert [each[1] for each in said(plan([], twice, local).aside)] == [Reason.LOCAL_PRESENT]
    held = plan([], twice, local, asked)
    assert ([each[1] for each in said(held.held)], said(held.aside)) == ([Reason.UNSETTLED], [])
    other, link = '0-o  metadata 09:00 title "O"  stream 09:00 [1]', (Foreign("0-o", "a symbolic link", link=True),)
    known = replace(agreed_on(A, other, Z), intents=local.intents)
    beside = plan_of(stored(A, other, Z), replace(here(A, Z), foreign=link), known)
    assert [(item.conversation, item.unit) for item in beside.held] == [("jp-c0", WHOLE)]
    assert [each[1] for each in said(beside.aside)] == [Reason.LOCAL_PRESENT]
    moved = Policy(request=SetParentRequest("jp-c1", "jp-c9"), conflict=OnConflict.HOLD)
    waits = plan([A.replace('"A"', '"B"')], [A.replace('"A"', '"C"')], local, moved)
    assert [each[:2] for each in said(waits.held)] == [(METADATA, Reason.UNSETTLED), (METADATA, Reason.CONFLICT_HELD)]
    assert [each[1] for each in said(waits.aside)] == [Reason.LOCAL_PRESENT]


@pytest.mark.parametrize("archived_here", [False, True])
def test_what_is_archived_on_one_side_by_a_commit_is_set_aside(archived_here: bool) -> None:
    archived = A.replace("1-a", ".archive/1-a")
    sides = ([A], [archived]) if archived_here else ([archived], [A])
    record = view_of(stored(*sides[0]), here(*sides[1])).split_record
    ((unit, reason, message, ways),) = said(plan(*sides, replace(KNOWN, asides={("jp-c1", PLACE): record})).aside)
    first, second = ("archived", "live") if archived_here else ("live", "archived")
    assert message == f"{first} here by a commit, but {second} in the store; both are left alone"
    assert (unit, reason, ways) == (WHOLE, Reason.DISPLACED, (TAKE_STORE, TAKE_WORKSPACE))


class ForOthers(records.notes.NotesFormat):  # type: ignore[misc, name-defined]
    """A format whose workspace colleagues share."""

    is_for_others = True


def test_what_colleagues_may_have_withdrawn_is_not_brought_back_with_all_others() -> None:
    rules, files = Rules(ForOthers(), records.RULES.digest), {"a.md": b"a", "b.md": b"b"}
    agreed = {
        name: BaselineEntry({METADATA: rules.digest(content)}, None, None, None, name)
        for name, content in files.items()
    }
    store, workspace = records.side(Side.STORE, files), records.side(Side.WORKSPACE, {"a.md": b"a"})
    baseline = Baseline(agreed=agreed)
    (removed,) = make_plan(store, workspace, baseline, Policy(), rules, 0).notes
    ways = "keep it private: reconcile local b.md; share it again: reconcile project b.md"
    assert removed.message == f"deleted from the workspace, still in the store; {ways}"
    (own,) = make_plan(store, workspace, baseline, Policy(), records.RULES, 0).notes
    assert own.message.endswith("; restore it: reconcile project b.md (all that were here: reconcile recover)")
    (held,) = make_plan(store, records.side(Side.WORKSPACE, {}), baseline, Policy(), records.RULES, 0).held
    assert held.resolve == ("reconcile recover",)


def test_what_is_missing_says_which_side_has_none() -> None:
    """An incomplete unit of an unfinished projection, and nothing in the store; or nothing on either side."""
    removed = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.REMOVED)})
    missing = said(plan([A], [ONLY_METADATA], removed).held)
    assert missing == [(STREAM, Reason.INVALID, "the workspace has no events", (TAKE_STORE,))]


def test_an_unreadable_parent_is_noted_once() -> None:
    strange = A.replace('"A"', '"A" parent raw 1.5')
    (noted,) = notes(plan([strange], [strange], agreed_on(strange, Z)))
    assert noted[:2] == ("jp-c1", Reason.PARENT_UNREADABLE)
    assert noted[2].startswith("its parent_id is not a conversation id (such as jp-c17528832001)")


def test_a_parent_that_the_run_corrects_is_not_noted() -> None:
    strange, corrected = A.replace('"A"', '"A" parent raw 1.5'), A.replace("metadata 09:00", "metadata 10:00")
    assert notes(plan([strange], [corrected], agreed_on(strange, Z))) == []
    assert notes(plan([corrected], [strange], agreed_on(strange, Z))) == []
    policy = Policy(request=SetParentRequest("jp-c1", None))
    assert plan_of(stored(strange, Z), here(strange, Z), agreed_on(strange, Z), policy).notes == ()
    blocked = [strange.replace("[1]", "[1 2]")], [strange.replace("[1]", "[1 3]")]
    held = plan(*blocked, agreed_on(strange, Z), replace(policy, diverged=Diverged.HOLD))
    assert [reason for _, reason, _ in notes(held)] == [Reason.PARENT_UNREADABLE]


def test_what_is_in_the_trash_more_than_once_is_said_to_be_where_it_came_last() -> None:
    trash = [f".trash/{A.replace('1-a', name)}" for name in ("1-a", "1-a-1")]
    ((_, _, message),) = notes(plan([A], trash))
    assert message.startswith("moved to workspace:.trash/1-a-1, still in the store; ")


def test_a_workspace_that_can_not_be_read_is_not_called_empty() -> None:
    (held,) = plan_of(stored(A), replace(here(), problems=(Problem("", "denied"),)), agreed_on(A)).held
    assert held.reason is Reason.UNREADABLE


@pytest.mark.parametrize(("cause", "count"), [("the same", 1), ("another", 2)])
def test_a_file_that_can_not_be_read_is_told_once_with_each_cause(cause: str, count: int) -> None:
    workspace = unreadable(here(A), "1-a/events.json")
    (held,) = plan_of(stored(A), workspace, agreed_on(A)).held
    assert held.resolve == ("reconcile doctor",), "the vault can't save it, so that no decision replaces it"
    words = held.message.partition(": ")[2] if cause == "the same" else "File name too long"
    workspace = replace(workspace, problems=(Problem("1-a/events.json", words),))
    assert len(plan_of(stored(A), workspace, agreed_on(A)).held) == count


def test_events_that_can_not_be_read_are_named_once_with_their_cause() -> None:
    fault = Unreadable("events.json", "denied", "a readable file")
    side = unreadable(here(A), "1-a/events.json")
    copies = tuple(replace(copy, stream=fault) for copy in side.copies)
    workspace = replace(side, copies=copies, problems=(Problem("1-a/events.json", fault.words),))
    (held,) = plan_of(stored(A), workspace, agreed_on(A)).held
    assert held.message == "workspace:1-a/events.json: can't be read (denied)"


def test_an_extra_that_can_not_be_read_is_named_once_with_its_cause() -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    workspace = unreadable(here(A, note), "1-a/NOTE.md")
    workspace = replace(workspace, problems=(Problem("1-a/NOTE.md", "can't be read (it changes all the time)"),))
    (held,) = plan_of(stored(A, note), workspace, agreed_on(A, note)).held
    assert (held.conversation, held.unit) == ("jp-c1", "extra:NOTE.md")
    assert held.message == "workspace:1-a/NOTE.md: can't be read (it changes all the time)"


def test_an_emptied_workspace_comes_back_by_recover_or_by_git() -> None:
    (held,) = plan_of(stored(A, Z), here(), KNOWN).held
    assert (held.reason, held.resolve) == (Reason.WORKSPACE_EMPTIED, ("reconcile recover", "git checkout -- .jp"))
    assert held.message.startswith("the workspace is empty, but had conversations at the last run; ")


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("1-a/x", "extra:x"),
        ("1-a/images/x", "extra:images/x"),
        ("1-a/conversations/2-b/x", "extra:x"),
        (".archive/1-a/x", "extra:x"),
        ("1-a/conversations/x", "conversation"),
        ("notes/x", "conversation"),
        ("1-a", "conversation"),
        ("x", "conversation"),
    ],
)
def test_what_is_foreign_in_a_conversation_has_the_unit_of_a_file(path: str, unit: str) -> None:
    store = replace(stored(A, Z), foreign=(Foreign(path, "a symbolic link", link=True),))
    (note,) = (each for each in plan_of(store, here(A, Z), KNOWN).notes if each.reason is Reason.FOREIGN)
    assert note.unit == unit


def test_what_is_foreign_goes_with_the_directory_that_it_is_in_and_else_stays() -> None:
    foreign = (Foreign("1-a/x", "a file"), Foreign("9-z/x", "a file"))
    note = '1-a/NOTE.md  09:00 "x"'

    def of(
        store: list[str], workspace: list[str], baseline: Baseline, policy: Policy | None = None
    ) -> list[tuple[Side, Reason]]:
        sides = replace(stored(*store, Z), foreign=foreign), replace(here(*workspace, Z), foreign=foreign)
        found = plan_of(*sides, baseline, policy).notes
        return [(Side(each.message.partition(":")[0]), each.reason) for each in found if ":1-a/" in each.message]

    stays = [(Side.STORE, Reason.FOREIGN), (Side.WORKSPACE, Reason.FOREIGN)]
    assert of([A], [A], KNOWN) == stays
    assert of([A], [A, note], agreed_on(A, note, Z)) == stays  # only the note goes
    retitled = [A.replace('"A"', '"B"').replace("metadata 09:00", "metadata 09:30")]
    assert of(retitled, [A], KNOWN) == stays  # it is renamed
    assert of([], [A], KNOWN) == [(Side.STORE, Reason.FOREIGN), (Side.WORKSPACE, Reason.TAKEN_ALONG)]
    request = Policy(request=RemoveRequest(("jp-c1",), Children.CASCADE))
    assert of([A], [A], KNOWN, request) == [(Side.STORE, Reason.TAKEN_ALONG), (Side.WORKSPACE, Reason.TAKEN_ALONG)]


@pytest.mark.parametrize(("kind", "reason"), [(AsideKind.KEPT, Reason.KEPT), (AsideKind.UNDONE, Reason.UNDONE)])
def test_a_unit_that_was_left_as_it_is_says_why(kind: AsideKind, reason: Reason) -> None:
    sides = [A.replace('"A"', '"B"')], [A.replace('"A"', '"C"')]
    view = view_of(stored(*sides[0]), here(*sides[1]))
    record = AsideRecord(kind, view.store.raw(METADATA), view.workspace.raw(METADATA))
    found = plan(*sides, replace(KNOWN, asides={("jp-c1", METADATA): record}))
    assert said(found.aside) == [(METADATA, reason, reason.words, (TAKE_STORE, TAKE_WORKSPACE))]


@pytest.mark.parametrize(("store", "ways"), [("[1 2]", ("reconcile resolve jp-c1 --take both",)), ("[1]", ())])
def test_both_continuations_that_were_left_as_they_are_can_still_be_taken(store: str, ways: tuple[str, ...]) -> None:
    """Where one side has all events of the other, nothing would become of `both` but the longer one."""
    sides = [A.replace("[1]", store)], [A.replace("[1]", "[1 3]")]
    found = plan(*sides, KNOWN, Policy(decisions={"jp-c1": Take.KEEP}))
    assert said(found.aside) == [(STREAM, Reason.KEPT, Reason.KEPT.words, (TAKE_STORE, TAKE_WORKSPACE, *ways))]


class Deleting(records.notes.NotesFormat):  # type: ignore[misc, name-defined]
    """A format whose program deletes old records."""

    deletes_old = True

    def counted_as(self, conversation: str) -> str | None:
        return None if conversation == "log" else conversation


@pytest.mark.parametrize(
    ("names", "private", "words"),
    [
        (["a.md", "b.md"], [], "the store keeps 2 records; restore them: reconcile recover"),
        (["a.md", "log"], [], "the store keeps 1 record; restore it: reconcile recover"),
        (["a.md", "b.md"], ["b.md"], "the store keeps 1 record; restore it: reconcile recover"),
    ],
)
def test_of_an_empty_workspace_whose_program_deletes_the_store_s_records_are_counted(
    names: list[str], private: list[str], words: str
) -> None:
    """Without private ones, what counts with nothing, and what the store lacks."""
    rules = Rules(Deleting(), records.RULES.digest)
    known = [*names, "gone.md"]
    agreed = {name: BaselineEntry({METADATA: rules.digest(b"a")}, None, None, None, name) for name in known}
    baseline = Baseline(agreed=agreed, intents={name: Intent(IntentKind.LOCAL) for name in private})
    store, workspace = records.side(Side.STORE, dict.fromkeys(names, b"a")), records.side(Side.WORKSPACE, {})
    told = [note.message for note in make_plan(store, workspace, baseline, Policy(), rules, 0).notes]
    assert told == [f"no record is left in the workspace; {words}"]


def test_of_a_workspace_that_has_records_none_is_counted() -> None:
    rules = Rules(Deleting(), records.RULES.digest)
    agreed = {name: BaselineEntry({METADATA: rules.digest(b"a")}, None, None, None, name) for name in ("a.md", "b.md")}
    store, workspace = (
        records.side(Side.STORE, {"a.md": b"a", "b.md": b"a"}),
        records.side(Side.WORKSPACE, {"a.md": b"a"}),
    )
    notes = make_plan(store, workspace, Baseline(agreed=agreed), Policy(), rules, 0).notes
    assert [note.conversation for note in notes] == ["b.md"]


@pytest.mark.parametrize(
    ("store", "workspace", "words"),
    [
        ({"a.md": b"a"}, {"a.md/x": b"a"}, "a file in the store, a directory on the other side"),
        ({"a.md/x": b"a"}, {"a.md": b"a"}, "a directory in the store, a file on the other side"),
    ],
)
def test_a_record_that_is_a_file_on_one_side_and_a_directory_on_the_other_waits(
    store: dict[str, bytes], workspace: dict[str, bytes], words: str
) -> None:
    rules = records.RULES
    sides = records.side(Side.STORE, store), records.side(Side.WORKSPACE, workspace)
    found = make_plan(*sides, Baseline(), Policy(), rules, 0)
    assert [action for action in found.actions if action.conversation == "a.md"] == []
    (held,) = found.held
    assert (held.conversation, held.reason) == ("a.md", Reason.OBSTRUCTED)
    assert held.message.startswith(words)


class DeletingForOthers(Deleting):
    """The same, with a workspace that colleagues share."""

    is_for_others = True


def test_of_an_empty_workspace_that_colleagues_share_every_record_is_named() -> None:
    rules = Rules(DeletingForOthers(), records.RULES.digest)
    agreed = {"a.md": BaselineEntry({METADATA: rules.digest(b"a")}, None, None, None, "a.md")}
    store, workspace = records.side(Side.STORE, {"a.md": b"a"}), records.side(Side.WORKSPACE, {})
    (note,) = make_plan(store, workspace, Baseline(agreed=agreed), Policy(), rules, 0).notes
    assert (note.conversation, "share it again" in note.message) == ("a.md", True)


def test_a_directory_with_other_files_alone_is_named() -> None:
    words = "workspace:1-a: a directory with none of a conversation's own files; left alone"
    noted = ("jp-c1", Reason.FOREIGN, words)
    for store, workspace, expected in (
        ([], ['1-a/NOTE.md  10:00 "x"'], [noted]),
        ([A], ['1-a/NOTE.md  10:00 "x"'], [noted]),
        ([], ["1-a/"], []),
        ([], ['.trash/1-a/NOTE.md  10:00 "x"'], []),
        ([A], [A, '1-b/NOTE.md  10:00 "x"'], []),
    ):
        assert notes(plan(store, workspace, agreed_on(Z))) == expected
    asked = plan([A], ['1-a/NOTE.md  10:00 "x"'], agreed_on(Z), Policy(request=ProjectRequest(("jp-c1",))))
    assert not notes(asked)
    assert [reason for _, reason, _, _ in said(asked.held)] == [Reason.OBSTRUCTED]

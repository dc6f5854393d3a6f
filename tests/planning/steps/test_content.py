"""Content into steps: what is saved, forked, put back, aged and projected, and what each step waits for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind
from reconcile.model.options import Missing, Take
from reconcile.model.plan import Action, Kind, Plan
from reconcile.model.policy import LocalRequest, Policy, RemoveRequest, SetParentRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EARLIEST_NS, METADATA, STREAM, WHOLE, Metadata, Side, Snapshot
from reconcile.planning.rules.content import Outcome, Verdict
from reconcile.planning.steps.content import AGE_NS, keeps_directories
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, unreadable, view_of
from tests.support.scenarios.line_reader import time_ns
from tests.support.scenarios.notation import StreamText

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
OURS, THEIRS = A.replace("09:00 [1]", "09:30 [1 2]"), A.replace("09:00 [1]", "09:40 [1 3]")
OTHER = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'


def of(plan: Plan, kind: Kind, side: Side | None = None) -> list[Action]:
    return [action for action in plan.actions if action.kind is kind and side in (None, action.target.side)]


def shown(plan: Plan) -> list[tuple[str, str, str]]:
    return [(action.kind.value, action.unit, str(action.target)) for action in plan.actions]


def diverging(*store: str, baseline: Baseline | None = None, policy: Policy | None = None) -> Plan:
    """Two continuations, of which the workspace's is the newer."""
    return plan_of(stored(OURS, *store), here(THEIRS), baseline or agreed_on(A), policy)


def test_the_winner_is_written_after_the_loser_lives_on() -> None:
    plan = diverging()
    (fork,), (copy,) = of(plan, Kind.FORK), of(plan, Kind.COPY)
    assert fork.id in copy.needs
    plan = plan_of(stored(THEIRS.replace('"A"', '"B"')), here(OURS), agreed_on(A))
    (fork,), (title, stream) = of(plan, Kind.FORK), of(plan, Kind.PROJECT)
    assert (title.unit, stream.unit, stream.needs) == (METADATA, STREAM, (fork.id,))


def test_the_workspaces_winner_needs_the_fork_and_not_what_else_is_saved() -> None:
    plan = plan_of(stored(THEIRS), here(OURS.replace('09:00 title "A"', '09:00 title "B"')), agreed_on(A))
    (fork,), (title,) = of(plan, Kind.FORK), of(plan, Kind.COPY)
    (stream,) = (action for action in of(plan, Kind.PROJECT) if action.unit == STREAM)
    assert fork.id in stream.needs
    assert title.id not in stream.needs


def test_a_continuation_that_a_child_has_already_is_not_forked_again() -> None:
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 '
    assert not of(diverging(child + "[1 2]"), Kind.FORK)
    assert of(diverging(child + "[1 2 4]"), Kind.FORK)


def test_a_continuation_that_comes_with_a_child_is_not_forked_again() -> None:
    child, known = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 ', agreed_on(A)
    plan = plan_of(stored(OURS), here(THEIRS, child + "[1 2]"), known)
    assert not of(plan, Kind.FORK)
    assert [action.conversation for action in of(plan, Kind.COPY) if action.unit == WHOLE] == ["jp-c2"]
    assert of(plan_of(stored(OURS), here(THEIRS, child + "[1 2 4]"), known), Kind.FORK)
    digests = {
        str(unit.raw)
        for unit in view_of(stored(), here(child + "[1 2]"), conversation="jp-c2").workspace.units.values()
    }
    limited = Policy(only=frozenset({"jp-c1"}))
    assert of(plan_of(stored(OURS), here(THEIRS, child + "[1 2]"), known, limited), Kind.FORK), "the child is left out"
    removed = replace(known, tombstones={"jp-c2": frozenset(digests)})
    assert of(plan_of(stored(OURS), here(THEIRS, child + "[1 2]"), removed), Kind.FORK), "the child is left alone"


def test_an_archived_one_is_forked_too() -> None:
    plan = plan_of(stored(f".archive/{OURS}", OTHER), here(f".archive/{THEIRS}", OTHER), agreed_on(OTHER))
    assert of(plan, Kind.FORK)


def test_forks_of_one_run_have_ids_that_nobody_has() -> None:
    two = [line.replace("1-a", "2-b") for line in (A, OURS, THEIRS)]
    baseline = agreed_on(A, two[0])
    first, second = of(plan_of(stored(OURS, two[1]), here(THEIRS, two[2]), baseline), Kind.FORK)
    assert first.conversation != second.conversation
    number = first.conversation.removeprefix("jp-c")
    (again,) = of(
        plan_of(stored(OURS), here(THEIRS, f"{number}-x  metadata 09:00"), agreed_on(A)),
        Kind.FORK,
    )
    assert again.conversation != first.conversation


@pytest.mark.parametrize(
    ("store", "workspace", "written"),
    [
        ("x=1", "x=2", b'"x": 1'),
        ("", "x=2", b'"x": 2'),
    ],
)
def test_a_fork_has_the_metadata_of_the_side_that_lost(store: str, workspace: str, written: bytes) -> None:
    ours, theirs = OURS.replace('"A"', f'"A" {store}'), THEIRS.replace('"A"', f'"A" {workspace}')
    ours = ours if store else "1-a  stream 09:30 [1 2]"
    (fork,) = of(plan_of(stored(ours), here(theirs), agreed_on(A)), Kind.FORK)
    assert written in (fork.writes[0].content or b"")


def test_a_fork_of_the_workspaces_stream_takes_the_stores_metadata_where_that_is_all_there_is() -> None:
    (fork,) = of(
        plan_of(stored(THEIRS.replace('"A"', '"A" x=1')), here("1-a  stream 09:30 [1 2]"), agreed_on(A)), Kind.FORK
    )
    assert b'"x": 1' in (fork.writes[0].content or b"")


@pytest.mark.parametrize(("title", "forked"), [('title "A" ', "[diverged] A"), ("", "[diverged]")])
def test_a_fork_says_what_it_is(title: str, forked: str) -> None:
    base, ours, theirs = (line.replace('title "A" ', title) for line in (A, OURS, THEIRS))
    (fork,) = of(plan_of(stored(ours), here(theirs), agreed_on(base)), Kind.FORK)
    assert fork.title == forked


@pytest.mark.parametrize(("ours", "forked"), [('title "W"', "[diverged] S"), ("", "[diverged] S")])
def test_a_fork_keeps_the_title_of_the_side_that_lost(ours: str, forked: str) -> None:
    """The workspace's events and title are newer; the fork is the store's version, with the store's title."""
    stored_line, here_line = OURS.replace('title "A"', 'title "S"'), THEIRS.replace('title "A"', ours)
    (fork,) = of(plan_of(stored(stored_line), here(here_line), agreed_on(A)), Kind.FORK)
    assert fork.title == forked
    (other,) = of(plan_of(stored(THEIRS.replace("A", "W")), here(OURS.replace("A", "S")), agreed_on(A)), Kind.FORK)
    assert other.title == "[diverged] S"


@pytest.mark.parametrize("kind", list(IntentKind))
def test_a_fork_is_local_where_its_source_is_and_else_nobody_has_asked_for_it(kind: IntentKind) -> None:
    intent = Intent(kind)
    plan = diverging(baseline=replace(agreed_on(A), intents={"jp-c1": intent}))
    (fork,) = of(plan, Kind.FORK)
    assert dict(plan.intents).get(fork.conversation) == (intent if kind is IntentKind.LOCAL else None)


def test_a_directory_goes_after_the_continuation_in_it_lives_on() -> None:
    plan = plan_of(stored(THEIRS), here(OURS), agreed_on(A), Policy(request=LocalRequest(("jp-c1",))))
    (fork,), (gone,) = of(plan, Kind.FORK), of(plan, Kind.REMOVE_STALE)
    assert fork.id in gone.needs


LEGACY = A.replace("stream 09:00", "stream 09:30 legacy")


def test_files_that_the_winner_lacks_go() -> None:
    """The old form of a stream has no file of the base configuration."""
    (copy,) = of(plan_of(stored(A), here(LEGACY.replace("[1]", "[1 2]")), agreed_on(A)), Kind.COPY)
    assert [place.path for place in copy.removes] == ["1-a/base_config.json"]
    (project,) = of(plan_of(stored(LEGACY.replace("[1]", "[1 2]")), here(A), agreed_on(A)), Kind.PROJECT)
    assert [place.path for place in project.removes] == ["1-a/base_config.json"]


def test_a_file_that_the_winner_lacks_goes_also_where_the_others_are_equal() -> None:
    more = [LEGACY.replace("09:30", "09:00"), '1-a/base_config.json  09:00 "{}"']
    taken = [Policy(decisions={"jp-c1": take}) for take in (Take.WORKSPACE, Take.STORE)]
    (copy,) = of(plan_of(stored(*more), here(LEGACY), policy=taken[0]), Kind.COPY)
    assert [place.path for place in copy.removes] == ["1-a/base_config.json"]
    (project,) = of(plan_of(stored(LEGACY), here(*more), policy=taken[1]), Kind.PROJECT)
    assert [place.path for place in project.removes] == ["1-a/base_config.json"]


def test_a_stream_that_is_made_of_two_goes_where_the_directory_is_that_stays() -> None:
    """The store's version speaks from a second directory, and the old form has no file of the base configuration."""
    base = LEGACY.replace("[1]", "[1 2]")
    baseline = agreed_on(base)
    edited = [
        LEGACY.replace("[1]", "[9]").replace("09:30", "08:00"),
        base.replace("1-a ", "1-b ").replace("[1 2]", "[1x 2]"),
    ]
    plan = plan_of(stored(*edited), here(base.replace("[1 2]", "[1 2 3]").replace("09:30", "10:00")), baseline)
    (copy,) = (each for each in of(plan, Kind.COPY) if each.unit == STREAM)
    (project,) = of(plan, Kind.PROJECT)
    merged = StreamText("1x 2 3", 0, "legacy").files()["events.json"]
    assert [(write.target.path, write.content) for write in copy.writes] == [("1-a/events.json", merged)]
    assert (copy.reason, copy.events, project.events) == (Reason.UNITED, (2, 4), (4, 4))
    assert [str(write.source) for write in project.writes] == ["store:1-a/events.json"]


def test_the_configuration_that_was_changed_goes_with_a_stream_that_is_made_of_two() -> None:
    baseline = agreed_on(A.replace("[1]", "[1 2]"))
    ours, theirs = A.replace("[1]", "[1 2 3]"), A.replace("[1]", "[1x 2] b2")
    for store, workspace, copied, projected in (
        (ours, theirs, ["base_config.json", "events.json"], ["events.json"]),
        (theirs, ours, ["events.json"], ["base_config.json", "events.json"]),
    ):
        plan = plan_of(stored(store), here(workspace.replace("09:00", "09:30")), baseline)
        (copy,), (project,) = (of(plan, kind) for kind in (Kind.COPY, Kind.PROJECT))
        assert [write.target.path.partition("/")[2] for write in copy.writes] == copied
        assert [write.target.path.partition("/")[2] for write in project.writes] == projected


def test_the_form_without_a_configuration_stays_the_form_of_what_is_made_of_two() -> None:
    """JP has split the store's stream since, and that is the form that both get."""
    base = LEGACY.replace("[1]", "[1 2]")
    plan = plan_of(
        stored(A.replace("[1]", "[1x 2]")),
        here(base.replace("[1 2]", "[1 2 3]").replace("09:30", "10:00")),
        agreed_on(base),
    )
    (copy,), (project,) = of(plan, Kind.COPY), of(plan, Kind.PROJECT)
    assert copy.writes[0].content == StreamText("1x 2 3").files()["events.json"]
    assert [write.target.path for write in project.writes] == ["1-a/base_config.json", "1-a/events.json"]


def test_the_old_form_replaces_the_old_form() -> None:
    (copy,) = of(plan_of(stored(LEGACY), here(LEGACY.replace("[1]", "[1 2]")), agreed_on(LEGACY)), Kind.COPY)
    assert copy.removes == ()
    assert [write.target.path for write in copy.writes] == ["1-a/events.json"]


def test_a_new_conversation_of_which_something_cannot_be_read_is_not_imported() -> None:
    workspace = unreadable(here(A, '1-a/NOTE.md  09:00 "x"', OTHER), "1-a/NOTE.md")
    plan = plan_of(stored(OTHER), workspace, agreed_on(OTHER))
    assert ([item.reason for item in plan.held], plan.actions) == ([Reason.INVALID], ())


def test_what_is_removed_is_not_put_together_first() -> None:
    store = stored(A, A.replace("1-a", "1-z").replace("[1]", "[1 2]"))
    plan = plan_of(store, here(A), agreed_on(A), Policy(request=RemoveRequest(("jp-c1",))))
    assert {action.kind for action in plan.actions} == {Kind.REMOVE, Kind.REMOVE_STALE}


def test_nor_is_its_parent_put_back() -> None:
    policy = Policy(request=RemoveRequest(("jp-c1",)))
    plan = plan_of(stored(PARENT, STRIPPED), here(PARENT, STRIPPED), KNOWN, policy)
    assert {action.kind for action in plan.actions} == {Kind.REMOVE, Kind.REMOVE_STALE}


def test_what_is_incomplete_in_every_directory_of_the_store_is_not_put_together() -> None:
    incomplete = "1-z  metadata 08:00  stream 08:00 nobase [1]"
    plan = plan_of(stored("1-a  metadata 09:00", incomplete), here())
    assert not of(plan, Kind.COPY)


def test_what_cannot_be_read_in_a_directory_that_goes_is_not_put_with_the_rest() -> None:
    store = unreadable(stored(A, A.replace("1-a", "1-z"), '1-z/NOTE.md  09:00 "x"'), "1-z/NOTE.md")
    assert not of(plan_of(store, here(A), agreed_on(A)), Kind.COPY)


STRIPPED = '1-a  metadata 09:30 title "Z"  stream 09:00 [1]'
PARENT = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
CHILD = '1-a  metadata 09:00 title "A" parent 2  stream 09:00 [1]'
KNOWN = replace(agreed_on(PARENT, f"2-b/conversations/{CHILD}"))


def test_a_parent_that_was_stripped_is_put_back_as_it_is_imported() -> None:
    baseline = replace(KNOWN, agreed={"jp-c2": KNOWN.agreed["jp-c2"]})
    plan = plan_of(stored(PARENT), here(PARENT, STRIPPED), baseline)
    (put,) = of(plan, Kind.SET_PARENT, Side.STORE)
    assert put.reason is Reason.PARENT_STRIPPED


def test_and_as_it_is_projected() -> None:
    baseline = replace(KNOWN, agreed={"jp-c2": KNOWN.agreed["jp-c2"]})
    policy = Policy(missing=Missing.REPROJECT)
    plan = plan_of(stored(PARENT, STRIPPED), here(PARENT), baseline, policy)
    assert len(of(plan, Kind.SET_PARENT, Side.STORE)) == 1
    assert of(plan, Kind.PROJECT)[0].target.path == "2-b/conversations/1-z"


def test_but_not_while_its_stream_is_behind() -> None:
    child = CHILD.replace("[1]", "[1 2]")
    store, workspace = STRIPPED.replace("[1]", "[1 2]"), CHILD.replace("stream 09:00", "stream 09:40")
    baseline = agreed_on(PARENT, f"2-b/conversations/{child}")
    plan = plan_of(stored(PARENT, store), here(PARENT, f"2-b/conversations/{workspace}"), baseline)
    assert {action.kind for action in plan.actions} == {Kind.AGE}


def test_nor_in_a_directory_that_leaves() -> None:
    baseline = replace(
        agreed_on(
            PARENT,
            CHILD,
        ),
        parents={"jp-c1": "jp-c2"},
    )
    stripped = CHILD.replace(" parent 2", "")
    policy = Policy(request=LocalRequest(("jp-c1",)))
    plan = plan_of(stored(PARENT, CHILD), here(PARENT, stripped), baseline, policy)
    assert not of(plan, Kind.SET_PARENT)


def test_an_older_version_is_put_below_the_newest_of_the_stores_files() -> None:
    store = A.replace("[1]", "[1 2] b2@09:20")
    older = A.replace("09:00 [1]", "09:30 [1] b2@09:20")
    (age,) = of(plan_of(stored(store), here(older), agreed_on(store)), Kind.AGE)
    assert age.mtime_ns == time_ns("09:20") - AGE_NS


def test_of_one_time_with_the_stores_it_is_aged_and_below_it_left_alone() -> None:
    baseline = agreed_on(A.replace("[1]", "[1 2]"))
    known = view_of(stored(A), here()).store.digest(STREAM) or ""
    baseline = replace(
        baseline, history=dict(baseline.history) | {("jp-c1", STREAM): (known, *baseline.history["jp-c1", STREAM])}
    )
    store = stored(A.replace("[1]", "[1 2]"))
    assert len(of(plan_of(store, here(A), baseline), Kind.AGE)) == 1
    assert not of(plan_of(store, here(A.replace("stream 09:00", "stream 08:59")), baseline), Kind.AGE)


def with_time(snapshot: Snapshot, mtime_ns: int) -> Snapshot:
    copies = [
        replace(copy, files=tuple(replace(file, mtime_ns=mtime_ns) for file in copy.files)) for copy in snapshot.copies
    ]
    return replace(snapshot, copies=tuple(copies))


@pytest.mark.parametrize(("above", "aged"), [(0, []), (1, [EARLIEST_NS])])
def test_nothing_is_older_than_the_earliest_time(above: int, aged: list[int]) -> None:
    newer = A.replace("[1]", "[1 2]")
    baseline = agreed_on(newer)
    known = view_of(stored(A), here()).store.digest(STREAM) or ""
    history = {**baseline.history, ("jp-c1", STREAM): (known, *baseline.history["jp-c1", STREAM])}
    sides = with_time(stored(newer), EARLIEST_NS), with_time(here(A), EARLIEST_NS + above)
    assert [age.mtime_ns for age in of(plan_of(*sides, replace(baseline, history=history)), Kind.AGE)] == aged


def test_a_directory_of_the_store_that_has_to_stay_is_left_as_it_is() -> None:
    below = ["1-z/conversations/2-b  stream 09:00 [1]", '1-z/conversations/2-b/metadata.json  09:00 "{"']
    store = stored(A, A.replace("1-a", "1-z").replace("09:00", "08:00").replace('"A"', '"Z"'), *below)
    plan = plan_of(store, here(A))
    held = [(item.conversation, item.reason) for item in plan.held]
    assert held == [("jp-c1", Reason.SUBTREE_HELD), ("jp-c2", Reason.INVALID)]
    assert not [action for action in plan.actions if action.target.path.startswith("1-z/")]


def test_a_directory_of_the_workspace_that_has_to_stay_keeps_what_was_kept_apart() -> None:
    below = ["1-z/conversations/2-b  stream 09:00 [1]", '1-z/conversations/2-b/metadata.json  09:00 "{"']
    older = A.replace("1-a", "1-z").replace("09:00", "08:00").replace('"A"', '"Z"')
    store, workspace = stored(A.replace('"A"', '"S"')), here(A.replace('"A"', '"W"'), older, *below)
    plan = plan_of(store, workspace, Baseline(), Policy(decisions={"jp-c1": Take.KEEP}))
    assert not of(plan, Kind.PROJECT)


def test_nor_is_what_is_incomplete_in_it_mended() -> None:
    below = ["1-z/conversations/2-b  stream 09:00 [1]", '1-z/conversations/2-b/metadata.json  09:00 "{"']
    incomplete = '1-z  metadata 09:00 title "A"  stream 08:00 nobase [1]'
    plan = plan_of(stored(A), here(A, incomplete, *below))
    assert Reason.SUBTREE_HELD in [item.reason for item in plan.held]
    assert not plan.actions


def test_where_the_stores_own_directory_has_no_stream_nothing_is_aged() -> None:
    newer = A.replace("[1]", "[1 2]")
    baseline = agreed_on(newer)
    known = view_of(stored(A), here()).store.digest(STREAM) or ""
    history = {**baseline.history, ("jp-c1", STREAM): (known, *baseline.history["jp-c1", STREAM])}
    store = stored('1-a  metadata 09:00 title "A"', "1-z  stream 09:00 [1 2]")
    plan = plan_of(store, here(A), replace(baseline, history=history))
    assert not of(plan, Kind.AGE)


RECORDS = {kind: AsideRecord(kind, "x", "y") for kind in AsideKind}
KEEPING = {
    "held": (Verdict(STREAM, 15, Outcome.HELD), True),
    "behind": (Verdict(STREAM, 11, Outcome.BEHIND, record=RECORDS[AsideKind.BEHIND]), True),
    "kept apart": (Verdict(STREAM, 15, Outcome.ASIDE, record=RECORDS[AsideKind.KEPT]), True),
    "local": (Verdict(STREAM, 15, Outcome.ASIDE, record=RECORDS[AsideKind.LOCAL]), False),
    "undone": (Verdict(STREAM, 15, Outcome.ASIDE, record=RECORDS[AsideKind.UNDONE]), False),
    "saved": (Verdict(STREAM, 11, Outcome.TO_STORE), False),
}


@pytest.mark.parametrize(("verdict", "keeps"), KEEPING.values(), ids=KEEPING)
def test_what_is_undecided_or_kept_apart_keeps_every_directory(verdict: Verdict, keeps: bool) -> None:
    equal = Verdict(METADATA, 10, Outcome.NOTHING)
    assert keeps_directories([equal, verdict]) is keeps


NEWER_Z = A.replace("1-a", "1-z").replace("09:00 [1]", "10:00 [1 2]")


def test_while_something_is_held_the_stores_directories_are_not_put_together() -> None:
    broken = here('1-a  metadata 09:00 title "A"', '1-a/events.json  11:00 "["')
    assert not plan_of(stored(A, NEWER_Z), broken, agreed_on(A)).actions


@pytest.mark.parametrize(
    ("place", "reason"),
    [("1-z", Reason.DUPLICATE), ("2-b/conversations/1-z", Reason.FLATTENED)],
    ids=["beside", "inside"],
)
def test_what_another_directory_of_the_store_has_is_put_with_the_rest(place: str, reason: Reason) -> None:
    store = stored(A, NEWER_Z.replace("1-z", place), '2-b  metadata 09:00 title "B"  stream 09:00 [1]')
    (copy,) = of(plan_of(store, here(A), agreed_on(A)), Kind.COPY)
    assert (copy.unit, copy.reason, copy.case, copy.events) == (STREAM, reason, None, (1, 2))


def test_what_the_workspace_has_edited_is_saved_in_place_of_what_another_directory_has() -> None:
    edited = A.replace("09:00 [1]", "11:00 [1 2 3]")
    (copy,) = of(plan_of(stored(A, NEWER_Z), here(edited), agreed_on(A)), Kind.COPY)
    assert (copy.unit, copy.events, copy.reason) == (STREAM, (1, 3), Reason.AHEAD_WORKSPACE)


def test_what_is_archived_is_imported_into_the_archive() -> None:
    plan = plan_of(stored(OTHER), here(f".archive/{A}", OTHER), agreed_on(OTHER))
    (copy,) = of(plan, Kind.COPY)
    assert str(copy.target) == "store:.archive/1-a"


def test_a_stream_that_was_lost_is_restored_from_none() -> None:
    (copy,) = of(plan_of(stored('1-a  metadata 09:00 title "A"'), here(A), agreed_on(A)), Kind.COPY)
    assert (copy.reason, copy.events) == (Reason.INCOMPLETE, (0, 1))


def test_a_configuration_that_one_side_has_removed_goes_with_a_stream_that_is_made_of_two() -> None:
    base = A.replace("[1]", "[1 2]")
    edited, continued = LEGACY.replace("[1]", "[1x 2]").replace("09:30", "10:00"), A.replace("[1]", "[1 2 3]")
    (copy,) = of(plan_of(stored(continued), here(edited), agreed_on(base)), Kind.COPY)
    assert (copy.reason, [place.path for place in copy.removes]) == (Reason.UNITED, ["1-a/base_config.json"])


def test_metadata_that_is_made_of_two_says_nothing_of_events() -> None:
    base, ours, theirs = (A.replace('"A"', f'"A" {each}') for each in ('x="1" y="1"', 'x="2" y="1"', 'x="1" y="2"'))
    store, workspace = stored(ours), here(theirs.replace("metadata 09:00", "metadata 10:00"))
    known = agreed_on(base)
    (before,) = (copy.metadata for copy in stored(base).copies)
    assert isinstance(before, Metadata)
    contents = {("jp-c1", known.agreed["jp-c1"].units[METADATA]): before.content}
    (copy,) = of(plan_of(store, workspace, replace(known, contents=contents)), Kind.COPY)
    assert (copy.unit, copy.reason, copy.events) == (METADATA, Reason.UNITED, None)


def test_a_fork_has_the_time_of_its_newest_file_and_the_case_of_its_source() -> None:
    ours = OURS.replace("[1 2]", "[1 2] b2@09:20")
    (fork,) = of(plan_of(stored(ours), here(THEIRS), agreed_on(A)), Kind.FORK)
    described = next(write for write in fork.writes if write.target.path.endswith("/metadata.json"))
    assert described.content is not None
    assert (described.mtime_ns, described.size) == (time_ns("09:30"), len(described.content))
    assert (fork.case, fork.events) == (15, (0, 2))


def test_a_fork_without_a_title_of_its_own_has_the_conversations() -> None:
    workspace = OURS.replace('title "A"', "")
    (fork,) = of(plan_of(stored(THEIRS), here(workspace), agreed_on(A)), Kind.FORK)
    assert fork.title == "[diverged] A"


def test_a_fork_of_what_its_metadata_calls_local_is_local() -> None:
    base, ours, theirs = (line.replace('"A"', '"A" local') for line in (A, OURS, THEIRS))
    plan = plan_of(stored(ours), here(theirs), agreed_on(base))
    (fork,) = of(plan, Kind.FORK)
    assert dict(plan.intents)[fork.conversation] == Intent(IntentKind.LOCAL)


BARE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
BROKEN = '1-a/events.json  11:00 "["'
GIVEN = {"jp-c1": "jp-c2"}
FIRST = replace(agreed_on(PARENT), parents=GIVEN)
AGREED = replace(agreed_on(PARENT, BARE), parents=GIVEN)
STREAM_ALONE = replace(AGREED, agreed={**AGREED.agreed, "jp-c1": replace(AGREED.agreed["jp-c1"], units={STREAM: "x"})})
UNKNOWN = replace(
    STREAM_ALONE, parents={}, agreed={**AGREED.agreed, "jp-c1": replace(STREAM_ALONE.agreed["jp-c1"], parent="jp-c2")}
)
STATED = agreed_on(PARENT, CHILD)
RETITLED = BARE.replace('metadata 09:00 title "A"', 'metadata 10:00 title "Z"')
UNDECIDED = {
    "a first run was killed after it had replaced what stated the parent": (FIRST, BARE, BARE, True),
    "the same, and only the events were in sync": (STREAM_ALONE, BARE, BARE, True),
    "both sides were in sync without it": (AGREED, BARE, BARE, False),
    "no run knows the parent": (replace(FIRST, parents={}), BARE, BARE, False),
    "no run has seen the store's parent": (UNKNOWN, BARE, BARE, False),
    "a version that states it is replaced": (STATED, CHILD, RETITLED, True),
    "the version that replaces it states another": (STATED, CHILD, RETITLED.replace('"Z"', '"Z" parent 3'), False),
}


@pytest.mark.parametrize(("baseline", "store", "workspace", "kept"), UNDECIDED.values(), ids=UNDECIDED)
def test_while_the_parent_is_undecided_the_store_keeps_its_only_statement(
    baseline: Baseline, store: str, workspace: str, kept: bool
) -> None:
    """The workspace's events can't be read, so that nothing moves."""
    plan = plan_of(stored(PARENT, store), here(PARENT, workspace, BROKEN), baseline)
    assert [str(action.target) for action in of(plan, Kind.SET_PARENT)] == (["store:1-a/metadata.json"] if kept else [])


def test_nor_is_its_only_statement_lost_by_what_came_back_from_the_trash() -> None:
    carried = f".trash/2-b/conversations/{BARE}"
    store = stored(PARENT, '1-a  metadata 09:00 title "A"', '1-a/events.json  09:00 "["')
    plan = plan_of(store, here(PARENT, carried), FIRST)
    assert [str(action.target) for action in of(plan, Kind.SET_PARENT)] == ["store:1-a/metadata.json"]


@pytest.mark.parametrize(
    ("before", "parent", "store", "workspace"),
    [
        (STATED, "jp-c8", BARE, BARE),
        (FIRST, "jp-c8", BARE, BARE),
        (STATED, "jp-c8", CHILD, CHILD),
        (STATED, "jp-c8", CHILD, RETITLED),
        (STATED, "jp-c2", CHILD, RETITLED.replace('"Z"', '"Z" parent 8')),
    ],
)
def test_another_parent_is_not_set_while_the_events_are_held(
    before: Baseline, parent: str, store: str, workspace: str
) -> None:
    policy = Policy(request=SetParentRequest("jp-c1", parent))
    baseline = replace(before, agreed={**before.agreed, "jp-c8": agreed_on(OTHER).agreed["jp-c8"]})
    plan = plan_of(stored(PARENT, OTHER, store), here(PARENT, OTHER, workspace, BROKEN), baseline, policy)
    assert not of(plan, Kind.SET_PARENT)


def test_metadata_that_is_made_of_two_states_the_parent_at_once() -> None:
    base, ours, theirs = (BARE.replace('"A"', f'"A" {each}') for each in ('x="1" y="1"', 'x="2" y="1"', 'x="1" y="2"'))
    known = replace(agreed_on(PARENT, base), parents=GIVEN)
    (before,) = (copy.metadata for copy in stored(base).copies)
    assert isinstance(before, Metadata)
    known = replace(known, contents={("jp-c1", known.agreed["jp-c1"].units[METADATA]): before.content})
    plan = plan_of(stored(PARENT, ours), here(PARENT, theirs), known)
    assert [action.reason for action in of(plan, Kind.COPY)] == [Reason.UNITED]
    assert not of(plan, Kind.SET_PARENT)


def test_a_note_that_was_edited_in_the_store_is_written() -> None:
    note = '1-a/NOTE.md  09:00 "n"'
    plan = plan_of(stored(A, note.replace('"n"', '"m"')), here(A, note), agreed_on(A, note))
    assert [(str(action.target), action.unit) for action in plan.actions] == [
        ("workspace:1-a/NOTE.md", "extra:NOTE.md")
    ]


def test_a_parent_that_was_written_is_changed_and_not_put_back() -> None:
    third = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'
    edited = CHILD.replace("parent 2", "parent 3").replace("metadata 09:00", "metadata 10:00")
    nested = f"2-b/conversations/{CHILD}"
    policy = Policy(request=SetParentRequest("jp-c1", "jp-c2"))
    sides = stored(PARENT, third, CHILD), here(PARENT, third, f"2-b/conversations/{edited}")
    plan = plan_of(*sides, agreed_on(PARENT, third, nested), policy)
    assert {action.reason for action in of(plan, Kind.SET_PARENT)} == {Reason.PARENT_CHANGED}


def test_what_several_directories_have_is_put_together_in_the_one_that_stays() -> None:
    main = A.replace("metadata 09:00", "metadata 11:00")
    longer = A.replace("1-a", "1-z").replace("stream 09:00 [1]", "stream 10:00 [1 2]")
    (project,) = of(plan_of(stored(OTHER), here(main, longer, OTHER), agreed_on(OTHER)), Kind.PROJECT)
    assert (str(project.target), project.unit, project.reason) == ("workspace:1-a", STREAM, Reason.DUPLICATE)


def test_in_a_local_copy_or_one_that_leaves_nothing_is_written() -> None:
    base, ours, theirs = (A.replace('"A"', f'"A" {each}') for each in ('x="1" y="1"', 'x="2" y="1"', 'x="1" y="2"'))
    known = agreed_on(base)
    (before,) = (copy.metadata for copy in stored(base).copies)
    assert isinstance(before, Metadata)
    contents = {("jp-c1", known.agreed["jp-c1"].units[METADATA]): before.content}
    local = replace(known, contents=contents, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    merged = plan_of(stored(ours), here(theirs), local)
    assert [str(action.target) for action in merged.actions] == ["store:1-a/metadata.json"]
    policy = Policy(request=LocalRequest(("jp-c1",)))
    assert {action.kind for action in plan_of(stored(ours), here(base), known, policy).actions} == {Kind.REMOVE_STALE}

"""What a whole plan says in situations that no scenario file can bring about, or that are rare in life."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.formats import FORMATS, get_format
from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.format import Format
from reconcile.model.options import Missing
from reconcile.model.plan import Kind
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason, reason_of
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Problem, Side
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, unreadable

if TYPE_CHECKING:
    from reconcile.model.plan import Plan

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
BELOW = f"1-a/conversations/{TWO}"
BESIDE = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'


def held(plan: Plan) -> list[tuple[str | None, str, Reason]]:
    return [(item.conversation, item.unit, item.reason) for item in plan.held]


def kinds(plan: Plan) -> list[tuple[Kind, str]]:
    return [(action.kind, action.conversation) for action in plan.actions]


def test_of_a_stream_that_cannot_be_read_whole_the_readable_file_is_kept() -> None:
    workspace = unreadable(here(ONE), "1-a/events.json")
    plan = plan_of(stored(ONE), workspace, agreed_on(ONE))
    assert held(plan) == [("jp-c1", STREAM, Reason.INVALID)]
    assert [str(version.place) for version in plan.preserve] == ["workspace:1-a/base_config.json"]
    assert plan.actions == ()


def test_problems_are_held_with_their_place() -> None:
    workspace = replace(here(ONE), problems=(Problem("", "Permission denied"), Problem("9-z", "Permission denied")))
    plan = plan_of(stored(ONE), workspace, agreed_on(ONE))
    assert held(plan) == [(None, WHOLE, Reason.UNREADABLE)] * 2
    assert [item.message.split(": ")[0] for item in plan.held] == ["workspace:.", "workspace:9-z"]
    assert plan.outline == ()


def test_what_the_store_seems_to_lack_is_held_while_it_cannot_be_read() -> None:
    store = replace(stored(BESIDE), problems=(Problem("", "Permission denied"),))
    plan = plan_of(store, here(ONE, BESIDE), agreed_on(ONE, BESIDE))
    assert ("jp-c1", WHOLE, Reason.UNREADABLE) in held(plan)
    assert plan.actions == ()


@pytest.mark.parametrize(("limit", "fits"), [(len("1-a/conversations/2-b") + 48, True), (60, False)])
def test_a_path_that_would_be_too_long_holds_the_child(limit: int, fits: bool) -> None:
    """With room for the longest of its files, and for a temporary name."""
    plan = plan_of(stored(ONE, TWO), here(ONE, TWO), agreed_on(ONE), Policy(path_limit=limit))
    moved = [action for action in plan.actions if action.target.side is Side.WORKSPACE]
    assert bool(moved) is fits
    assert held(plan) == ([] if fits else [("jp-c2", WHOLE, Reason.PATH_TOO_LONG)])


def test_a_child_is_not_projected_where_a_plain_file_takes_its_parents_children_s_place() -> None:
    workspace = here(ONE, '1-a/conversations  09:00 "x"')
    plan = plan_of(stored(ONE, TWO), workspace, agreed_on(ONE), Policy(missing=Missing.REPROJECT))
    assert held(plan) == [("jp-c2", WHOLE, Reason.OBSTRUCTED)]
    assert plan.actions == ()


def waiting_for(conversation: str) -> Intent:
    return Intent(IntentKind.PROJECTED, waits_for=conversation, place="2-b")


def test_a_child_whose_awaited_parent_left_is_projected_as_a_root() -> None:
    baseline = replace(agreed_on(ONE, BELOW, BESIDE), intents={"jp-c2": waiting_for("jp-c1")})
    plan = plan_of(stored(TWO, BESIDE), here(BESIDE), baseline)
    assert [(action.kind, action.conversation, action.reason) for action in plan.actions] == [
        (Kind.PROJECT, "jp-c2", Reason.ANCESTOR_LEFT)
    ]


def test_it_is_not_where_it_is_not_complete() -> None:
    baseline = replace(agreed_on(ONE, BELOW, BESIDE), intents={"jp-c2": waiting_for("jp-c1")})
    plan = plan_of(stored('2-b  metadata 09:00 title "B" parent 1', BESIDE), here(BESIDE), baseline)
    assert (plan.actions, plan.intents) == ((), ())


def test_it_is_removed_where_the_parent_was_never_projected_itself() -> None:
    baseline = agreed_on(ONE, BELOW, BESIDE)
    baseline = replace(baseline, intents={"jp-c2": waiting_for("jp-c9")})
    plan = plan_of(stored(TWO.replace("parent 1", "parent 9"), BESIDE), here(BESIDE), baseline)
    assert plan.actions == ()
    assert dict(plan.intents)["jp-c2"] == Intent(IntentKind.REMOVED, place="1-a/conversations/2-b")


def test_what_somebody_moved_into_a_directory_that_goes_moves_out_of_it() -> None:
    root = TWO.replace(" parent 1", "")
    plan = plan_of(stored(root, BESIDE), here(ONE, f"1-a/conversations/{root}", BESIDE), agreed_on(ONE, root, BESIDE))
    assert [(action.kind, action.conversation, action.reason) for action in plan.actions] == [
        (Kind.MOVE, "jp-c2", Reason.PARENT_GONE),
        (Kind.REMOVE_STALE, "jp-c1", Reason.REMOVED_IN_STORE),
    ]


def test_a_directory_stays_where_it_is_while_its_place_is_taken_by_one_that_cannot_go() -> None:
    workspace = here(
        "1-a  metadata 09:00",
        '1-a/conversations/2-b  metadata 09:00 title "B" parent 1',
        BESIDE,
        f"8-h/conversations/{ONE}",
    )
    plan = plan_of(stored(BESIDE), workspace, agreed_on(BESIDE))
    assert ("jp-c1", WHOLE, Reason.SUBTREE_HELD) in held(plan)
    assert (Kind.COPY, "jp-c1") in kinds(plan)
    assert not [action for action in plan.actions if action.kind is Kind.MOVE]


def test_streams_that_diverged_without_any_metadata_are_held_as_no_fork_could_be_named() -> None:
    plan = plan_of(stored("1-a  stream 09:00 [1 2]"), here("1-a  stream 10:00 [1 3]"))
    assert ("jp-c1", STREAM, Reason.DIVERGED_HELD) in held(plan)
    assert plan.actions == ()


COMPACT = '"{\\"last_activated_at\\":\\"2025-01-01 00:00:00.0\\"}"'


def test_metadata_that_cannot_be_edited_byte_for_byte_is_held_where_it_would_have_to_be() -> None:
    baseline = agreed_on(ONE, BELOW)
    store = stored(ONE, TWO, f"2-b/metadata.json  10:00 {COMPACT}")
    plan = plan_of(store, here(ONE, BELOW), baseline)
    assert held(plan) == [("jp-c2", METADATA, Reason.NOT_ROUND_TRIP)]
    assert plan.actions == ()


def test_it_is_not_held_where_nothing_has_to_be_stated() -> None:
    store = stored("1-a  stream 09:00 [1]", f"1-a/metadata.json  10:00 {COMPACT}")
    plan = plan_of(store, here(ONE), agreed_on(ONE))
    assert held(plan) == []


def test_nonsense_about_the_parent_of_a_root_is_left_alone() -> None:
    nonsense = ONE.replace('"A"', '"A" parent raw true')
    plan = plan_of(stored(nonsense), here(ONE), agreed_on(ONE))
    assert (held(plan), kinds(plan)) == ([], [(Kind.PROJECT, "jp-c1")])


def test_a_new_conversation_is_imported_and_its_second_directory_stays_as_it_cannot_be_read() -> None:
    plan = plan_of(stored(), here(ONE, "1-z  metadata 08:00", '1-z/events.json  09:30 "{"'))
    assert (held(plan), kinds(plan)) == ([("jp-c1", STREAM, Reason.INVALID)], [(Kind.COPY, "jp-c1")])
    assert [str(version.place) for version in plan.preserve] == ["workspace:1-z/events.json"]


def test_broken_metadata_in_the_store_is_left_alone_though_the_trash_has_other() -> None:
    store = stored("1-a  stream 09:00 [1]", '1-a/metadata.json  09:00 "{"', BESIDE)
    plan = plan_of(store, here(f".trash/9-z/conversations/{ONE}", BESIDE), agreed_on(BESIDE))
    assert plan.actions == ()


def test_below_a_conversation_that_is_not_live_means_that_one_alone() -> None:
    plan = plan_of(stored(f".archive/{ONE}", TWO), here(ONE, TWO), None, Policy(below=frozenset({"jp-c1"})))
    assert {action.conversation for action in plan.actions} == {"jp-c1"}


def test_a_selection_takes_along_what_its_actions_need() -> None:
    plan = plan_of(stored(ONE, TWO), here(ONE, TWO), None, Policy(only=frozenset({"jp-c2"})))
    assert {action.conversation for action in plan.actions} == {"jp-c2"}
    below = plan_of(stored(), here(ONE, TWO), None, Policy(below=frozenset({"jp-c1"})))
    assert {action.conversation for action in below.actions} == {"jp-c1", "jp-c2"}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_all_that_the_planner_asks_for(name: str) -> None:
    fmt = get_format(name)
    asked = {member for member in vars(Format) if not member.startswith("_")}
    assert {"id_of", "read_stream", "stream_files", "with_parent"} <= asked
    assert not [member for member in asked if not hasattr(fmt, member)]


def test_a_reason_is_found_by_its_keyword() -> None:
    assert all(reason_of(reason.value) is reason for reason in Reason)
    with pytest.raises(ValueError, match="'because' is no reason"):
        reason_of("because")

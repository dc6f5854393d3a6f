"""Which of several directories of a conversation stays, once its place is known (docs/design/placement.md#rule-10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.options import Layout
from reconcile.model.policy import Policy
from tests.support.scenarios.building import agreed_on, context_of, here, stored

if TYPE_CHECKING:
    from reconcile.model.snapshot import Side
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import SideView

OLD = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
NEW = OLD.replace('09:00 title "A"', '09:30 title "B"')
CHILD = '2-c  metadata 09:00 title "C" parent 1  stream 09:00 [1]'
KNOWN = agreed_on(OLD)


def at(path: str, line: str = NEW) -> str:
    return line.replace("1-a", path, 1)


def paths(side: SideView) -> tuple[str, ...]:
    """The directory that stays, then the others; its units are those that are taken for its own."""
    assert side.main is not None
    assert {unit.copy.path for unit in side.own.values()} == {side.main.path}
    return (side.main.path, *(copy.path for copy in side.stale))


def chosen(context: PlanningContext, side: Side | str) -> tuple[str, ...]:
    return paths(getattr(context.views["jp-c1"], side))


def test_in_the_store_the_one_with_the_new_name_stays() -> None:
    context = context_of(stored(NEW, at("1-b"), at("1-c")), here(OLD), KNOWN)
    assert chosen(context, "store") == ("1-b", "1-a", "1-c")
    assert context.homes["jp-c1"].path == "1-b"
    archived = context_of(stored(at(".archive/1-a"), at(".archive/1-b")), here(OLD), KNOWN)
    assert chosen(archived, "store") == (".archive/1-b", ".archive/1-a")


def test_in_the_workspace_the_one_where_the_layout_wants_it_stays() -> None:
    store, workspace = stored(OLD, CHILD), here(OLD, CHILD, f"1-a/conversations/{CHILD}")
    nested = context_of(store, workspace).views["jp-c2"]
    assert paths(nested.workspace) == ("1-a/conversations/2-c", "2-c")
    flat = context_of(store, workspace, policy=Policy(layout=Layout.FLAT)).views["jp-c2"]
    assert paths(flat.workspace) == ("2-c", "1-a/conversations/2-c")


def test_the_others_are_named_in_the_order_of_their_paths() -> None:
    newest = at("1-d").replace("09:30", "09:50")
    context = context_of(stored(OLD), here(newest, at("1-b"), at("1-c")), KNOWN)
    assert chosen(context, "workspace") == ("1-b", "1-c", "1-d")


def test_of_what_is_archived_the_archived_one_stays() -> None:
    store = stored(at(".archive/1-b"))
    assert chosen(context_of(store, here(at(".archive/1-a"), at("1-b")), KNOWN), "workspace") == (".archive/1-a", "1-b")
    assert chosen(context_of(store, here(at(".archive/1-a"), at(".archive/1-b")), KNOWN), "workspace") == (
        ".archive/1-b",
        ".archive/1-a",
    )


@pytest.mark.parametrize("lacks", ["metadata", "stream"])
def test_one_that_is_not_whole_does_not_take_over(lacks: str) -> None:
    head, _, stream = at("1-b").partition("  stream")
    damaged = head if lacks == "stream" else f"1-b  stream{stream}"
    assert chosen(context_of(stored(NEW, damaged), here(OLD), KNOWN), "store") == ("1-a", "1-b")


def test_nothing_is_settled_while_something_is_undecided() -> None:
    broken = '1-a/events.json  09:30 "["'
    context = context_of(stored(NEW, at("1-b")), here(OLD, broken), KNOWN)
    assert chosen(context, "store") == ("1-a", "1-b")


def test_of_what_is_local_none_in_the_workspace_takes_over() -> None:
    local = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    twice = (NEW, at("1-b"))
    assert chosen(context_of(stored(*twice), here(*twice), KNOWN), "workspace") == ("1-b", "1-a")
    context = context_of(stored(*twice), here(*twice), local)
    assert chosen(context, "workspace") == ("1-a", "1-b")
    assert chosen(context, "store") == ("1-b", "1-a")

"""When a request still has to be carried out: not seeing a conversation is no proof that it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Intent, IntentKind, PendingRequest, Verb
from reconcile.planning.requests.edits import is_due, is_unseen
from reconcile.planning.rules.guards import Sides
from tests.support.scenarios.building import agreed_on, here, stored, view_of
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.baseline import Baseline

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
KNOWN = agreed_on(ONE)
LOCAL = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
CLEAR = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)
RENEWED, HIDDEN = replace(CLEAR, store_replaced=True), replace(CLEAR, store_hidden=True)
EMPTIED, UNREAD = replace(CLEAR, workspace_emptied=True), replace(CLEAR, workspace_hidden=("1-a",))
ARCHIVED = f".archive/{ONE}"

ROWS: dict[str, tuple[Verb, Baseline, str, str, Sides, bool]] = {
    "local, and here": (Verb.LOCAL, LOCAL, ONE, ONE, CLEAR, True),
    "local, and not here": (Verb.LOCAL, LOCAL, ONE, "", CLEAR, False),
    "local, and its place can't be read": (Verb.LOCAL, LOCAL, ONE, "", UNREAD, True),
    "local, and the workspace is empty": (Verb.LOCAL, LOCAL, ONE, "", EMPTIED, True),
    "local, and it was never here": (Verb.LOCAL, replace(LOCAL, agreed={}), ONE, "", UNREAD, False),
    "not local": (Verb.LOCAL, KNOWN, ONE, ONE, CLEAR, False),
    "to remove, and in the store": (Verb.REMOVE, KNOWN, ONE, "", CLEAR, True),
    "to remove, and here": (Verb.REMOVE, KNOWN, "", ONE, CLEAR, True),
    "to remove, and archived meanwhile": (Verb.REMOVE, KNOWN, ARCHIVED, "", CLEAR, False),
    "to remove, archived meanwhile, and here": (Verb.REMOVE, KNOWN, ARCHIVED, ONE, CLEAR, True),
    "removed": (Verb.REMOVE, KNOWN, "", "", CLEAR, False),
    "to remove, and the store is another one": (Verb.REMOVE, KNOWN, "", "", RENEWED, True),
    "to remove, and the store can't be read": (Verb.REMOVE, KNOWN, "", "", HIDDEN, True),
    "to remove, and its place can't be read": (Verb.REMOVE, KNOWN, "", "", UNREAD, True),
    "decided, and a side can't be seen": (Verb.RESOLVE, KNOWN, "", ONE, HIDDEN, True),
    "decided, and equal": (Verb.RESOLVE, KNOWN, ONE, ONE, CLEAR, False),
}


@pytest.mark.parametrize(("verb", "baseline", "store", "workspace", "sides", "due"), ROWS.values(), ids=ROWS)
def test_a_request_is_due(verb: Verb, baseline: Baseline, store: str, workspace: str, sides: Sides, due: bool) -> None:
    view = view_of(stored(*filter(None, [store])), here(*filter(None, [workspace])), baseline)
    assert is_due(view, verb, PendingRequest(value="store"), None, sides, RULES) is due


@pytest.mark.parametrize(
    ("store", "parent", "due"),
    [(ONE, None, True), (ONE, "jp-c2", False), ("", None, False)],
    ids=["it has another parent", "it has that parent", "the store has it no more"],
)
def test_a_parent_is_due_until_the_store_states_it(store: str, parent: str | None, due: bool) -> None:
    view = view_of(stored(*filter(None, [store])), here(ONE), KNOWN)
    assert is_due(view, Verb.REPARENT, PendingRequest(value="jp-c2"), parent, CLEAR, RULES) is due


UNSEEN = {
    "both are seen, whatever else can't be": (ONE, ONE, replace(HIDDEN, workspace_hidden=("1-a",)), False),
    "the store lacks it": ("", ONE, CLEAR, False),
    "the store lacks it, and can't be read": ("", ONE, HIDDEN, True),
    "the store lacks it, and is another one": ("", ONE, RENEWED, True),
    "the workspace lacks it": (ONE, "", CLEAR, False),
    "the workspace lacks it, and its place can't be read": (ONE, "", UNREAD, True),
}


@pytest.mark.parametrize(("store", "workspace", "sides", "unseen"), UNSEEN.values(), ids=UNSEEN)
def test_a_side_may_have_what_the_scan_does_not_see(store: str, workspace: str, sides: Sides, unseen: bool) -> None:
    view = view_of(stored(*filter(None, [store])), here(*filter(None, [workspace])), KNOWN)
    assert is_unseen(view, sides) is unseen

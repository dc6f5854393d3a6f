"""Forks of records with fixed places, as far as the stories of Claude Code don't show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.model.baseline import Baseline, BaselineEntry, Intent, IntentKind
from reconcile.model.format import EventSelection
from reconcile.model.options import Prefer
from reconcile.model.plan import Heading, Kind
from reconcile.model.policy import ForkRequest, Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Side, Unreadable
from reconcile.planning.context import RefusedError
from reconcile.planning.decide import decide
from reconcile.planning.requests.fork_record import plan_record_fork, records_of
from tests.support.formats.notes import BRANCHING, FORMAT, PLACES, RULES, side

if TYPE_CHECKING:
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Content
    from reconcile.planning.context import PlanningContext

NOTE, ANSWERS = "a.md", ("a.md.1.md", "a.md.2.md")
FILES = {NOTE: b"one\ntwo\n", ANSWERS[0]: b"yes\n", ANSWERS[1]: b"no\n", "b.md": b"other\n", "b.md.1.md": b"x\n"}
CONTENTS: dict[str, Content] = {record: FILES[record] for record in (*ANSWERS, NOTE)}
POLICY = Policy(prefer=Prefer.STORE)
NOW = 7


def context_of(store: dict[str, bytes], workspace: dict[str, bytes]) -> PlanningContext:
    return decide(side(Side.STORE, store), side(Side.WORKSPACE, workspace), Baseline(), POLICY, BRANCHING, NOW)


def fork(title: str | None = None, *, last: int = 2, local: bool = False, uuid: str = "new") -> Plan:
    request = ForkRequest(NOTE, EventSelection(last=last), title, local=local, uuid=uuid)
    return plan_record_fork(context_of(FILES, FILES), request, PLACES, CONTENTS)


def test_what_changes_while_it_is_read_is_not_forked() -> None:
    files = {"shopping.md": b"bread\n"}
    context = decide(side(Side.STORE, files), side(Side.WORKSPACE, files), Baseline(), Policy(), RULES, 0)
    changed = {"shopping.md": Unreadable("shopping.md", "changed", "the content that was scanned")}
    with pytest.raises(RefusedError, match=r"shopping\.md: .*changed"):
        plan_record_fork(context, ForkRequest("shopping.md", EventSelection(), uuid="x"), FORMAT, changed)


def test_what_cannot_be_cut_is_refused() -> None:
    request = ForkRequest(NOTE, EventSelection(), uuid="new")
    with pytest.raises(RefusedError, match=r"^a\.md can't be cut: no lines$") as refused:
        plan_record_fork(context_of(FILES, FILES), request, PLACES, {**CONTENTS, NOTE: b""})
    assert refused.value.hints == ("see its events: reconcile show a.md",)


def test_a_record_is_forked_after_all_that_belong_to_it_on_either_side() -> None:
    without = {path: content for path, content in FILES.items() if path != ANSWERS[0]}
    for store, workspace in ((FILES, FILES), (without, FILES), (FILES, without), (FILES, {}), ({}, FILES)):
        assert records_of(context_of(store, workspace), NOTE, PLACES) == [*ANSWERS, NOTE]
    known = Baseline(agreed={ANSWERS[0]: BaselineEntry({}, None, None, None, ANSWERS[0])})
    both = side(Side.STORE, without), side(Side.WORKSPACE, without)
    gone = decide(both[0], both[1], known, POLICY, BRANCHING, NOW)
    assert records_of(gone, NOTE, PLACES) == [ANSWERS[1], NOTE]


def test_all_that_a_fork_of_a_record_plans() -> None:
    plan = fork()
    made = [("new-a.md.1.md", "yes", b"yes\n"), ("new-a.md.2.md", "no", b"no\n"), ("new-a.md", "one", FILES[NOTE])]
    for number, (new, title, content) in enumerate(made):
        home, here = plan.actions[2 * number : 2 * number + 2]
        others = tuple(action.id for action in plan.actions if action.kind is Kind.PROJECT and action is not here)
        needs = {*others, home.id} if new == "new-a.md" else {home.id}
        for action, kind, which, found in (
            (home, Kind.FORK, Side.STORE, set()),
            (here, Kind.PROJECT, Side.WORKSPACE, needs),
        ):
            shown = (action.kind, action.conversation, action.title, action.unit, action.reason, set(action.needs))
            assert shown == (kind, new, title, WHOLE, Reason.FORKED, found)
            assert (action.target.side, action.target.path) == (which, new)
        (write,), (copied,) = home.writes, here.writes
        forked = content + b"forked\n"
        assert (write.content, write.size, write.mtime_ns) == (forked, len(forked), NOW)
        assert (write.digest, write.target.path) == (BRANCHING.digest(forked), new)
        assert (copied.source, copied.digest, copied.target.path) == (write.target, write.digest, new)
    projected = Intent(IntentKind.PROJECTED)
    assert plan.intents == tuple((new, projected) for new, _, _ in made)
    assert plan.outline == (
        Heading(NOTE, "one", 0),
        Heading("new-a.md", "one", 1),
        Heading("new-a.md.1.md", "yes", 2),
        Heading("new-a.md.2.md", "no", 2),
    )
    assert (plan.policy, plan.now_ns, plan.layout) == (POLICY, NOW, POLICY.layout.value)
    assert plan.about == frozenset(new for new, _, _ in made)


def test_a_local_fork_of_a_record_is_in_the_store_alone() -> None:
    plan = fork(local=True)
    assert {(action.kind, action.target.side) for action in plan.actions} == {(Kind.FORK, Side.STORE)}
    assert {intent for _, intent in plan.intents} == {Intent(IntentKind.LOCAL)}


def test_a_fork_of_a_record_has_its_own_title_its_own_name_and_a_part_of_the_lines() -> None:
    *_, main = [action for action in fork("T", last=1, uuid="").actions if action.kind is Kind.FORK]
    assert (main.conversation, main.title) == ("fork-a.md", "T")
    assert main.writes[0].content == b"T, from a.md\ntwo\nforked\n"
    assert fork("T").outline[:2] == (Heading(NOTE, "one", 0), Heading("new-a.md", "T", 1))

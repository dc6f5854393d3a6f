"""What `fork` plans and refuses (docs/commands.md#reconcile-fork). The command is in fixtures/scenarios/commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.format import EventSelection
from reconcile.model.options import Layout
from reconcile.model.plan import Heading
from reconcile.model.policy import ForkRequest, Policy
from reconcile.model.snapshot import Unreadable
from reconcile.model.units import Rules
from reconcile.planning.context import RefusedError
from reconcile.planning.requests.fork import plan_branch
from tests.support.scenarios.building import NOW_NS, agreed_on, context_of, here, stored
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.plan import Plan

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
FILES = {
    "metadata.json": b'{"title": "A", "last_activated_at": "2026-01-31 12:00:00.0"}',
    "base_config.json": b"{}",
    "events.json": b'[{"timestamp": "2026-01-31 12:00:00.0", "type": "chat_request"}]',
}


def fork(
    request: ForkRequest, *, workspace: tuple[str, ...] = (A,), store: tuple[str, ...] = (A,), flat: bool = False
) -> Plan:
    policy = Policy(layout=Layout.FLAT if flat else Layout.NESTED)
    context = context_of(stored(*store), here(*workspace), agreed_on(*store), policy)
    return plan_branch(context, request, FILES)


def targets(plan: Plan) -> list[str]:
    return [
        str(action.target).replace(plan.actions[0].conversation.removeprefix("jp-c"), "N") for action in plan.actions
    ]


WHOLE = ForkRequest("jp-c1", EventSelection())


def test_where_a_fork_is_made() -> None:
    assert targets(fork(WHOLE)) == ["store:N-a", "workspace:1-a/conversations/N-a"]
    flat = fork(WHOLE, flat=True)
    assert targets(flat) == ["store:N-a", "workspace:N-a"]
    assert flat.policy == Policy(layout=Layout.FLAT)
    alone = fork(WHOLE, workspace=())
    assert (targets(alone), alone.intents) == (["store:N-a"], ())
    broken = (A, '1-a/events.json 10:00 "[{"')
    assert targets(fork(WHOLE, workspace=broken)) == ["store:N-a"]
    local = fork(ForkRequest("jp-c1", EventSelection(), "T", local=True))
    assert targets(local) == ["store:N-t"]
    assert [intent.kind for _, intent in local.intents if intent] == ["local"]


def test_below_what_is_local_a_fork_is_in_the_store_alone() -> None:
    """Also where a checkout has directories of both."""
    parent = '5-p  metadata 09:00 title "P" local  stream 09:00 [1]'
    child = A.replace(' title "A"', ' title "A" parent 5')
    there = ('5-p  metadata 09:00 title "P"  stream 09:00 [1]', f"5-p/conversations/{child}")
    assert targets(fork(WHOLE, workspace=there, store=(parent, child))) == ["store:N-a"]


@pytest.mark.parametrize("there", ['1-a  metadata 09:00 title "A"', "1-a  stream 09:00 [1]"])
def test_where_only_some_files_of_its_source_are_a_fork_is_in_the_store_alone(there: str) -> None:
    """Of one that was removed, files that come back by themselves decide nothing."""
    assert targets(fork(WHOLE, workspace=(there,))) == ["store:N-a"]


BESIDE = (A, '1-a/events.json 10:00 "["', A.replace("1-a", "1-z"), '1-z/metadata.json 10:00 "{"')
"""Each of two directories has one valid unit."""


@pytest.mark.parametrize(
    "workspace", [BESIDE, ("2-b  metadata 09:00", f".trash/2-b/conversations/{A}")], ids=["damaged", "in the trash"]
)
def test_what_is_whole_elsewhere_alone_takes_no_fork(workspace: tuple[str, ...]) -> None:
    assert targets(fork(WHOLE, workspace=workspace)) == ["store:N-a"]


def test_a_source_that_is_not_whole_is_refused() -> None:
    with pytest.raises(RefusedError, match="is incomplete in the store"):
        fork(WHOLE, store=(A, '1-a/metadata.json 10:00 "{"'))
    with pytest.raises(RefusedError, match="is incomplete in the store"):
        plan_branch(context_of(stored(A), here(A), agreed_on(A)), WHOLE, {})


def test_events_that_cannot_be_cut_are_refused() -> None:
    files = {**FILES, "events.json": b"[" + b"1" * 5000 + b"]"}
    with pytest.raises(RefusedError, match="can't be filtered"):
        plan_branch(context_of(stored(A), here(A), agreed_on(A)), ForkRequest("jp-c1", EventSelection(last=1)), files)


def test_all_that_a_fork_plans() -> None:
    plan = fork(ForkRequest("jp-c1", EventSelection(), "T"))
    made, projected = plan.actions
    new = made.conversation
    assert plan.outline == (Heading("jp-c1", "A", 0), Heading(new, "T", 1))
    projected_ahead = ((new, Intent(IntentKind.PROJECTED)),)
    assert (plan.intents, plan.policy, plan.now_ns, plan.about) == (projected_ahead, Policy(), NOW_NS, frozenset({new}))
    for action, kind in ((made, "fork"), (projected, "project")):
        found = (action.kind.value, action.conversation, action.title, action.unit, action.events)
        assert found == (kind, new, "T", "conversation", (0, 1))
    assert {write.target.path.rpartition("/")[2] for write in made.writes} == set(FILES)
    for write in made.writes:
        assert write.content is not None
        assert (write.size, write.mtime_ns, write.digest) == (len(write.content), NOW_NS, RULES.digest(write.content))
    assert [write.source for write in projected.writes] == [write.target for write in made.writes]


@pytest.mark.parametrize(("title", "expected"), [(None, "A"), ("T", "T"), ("", "")])
def test_a_fork_has_its_own_title_or_that_of_its_source(title: str | None, expected: str) -> None:
    plan = fork(ForkRequest("jp-c1", EventSelection(), title))
    contents = [write.content for write in plan.actions[0].writes if write.target.path.endswith("/metadata.json")]
    assert [json.loads(content or "")["title"] for content in contents] == [expected]
    assert plan.outline[1].title == expected


def test_a_fork_of_a_local_one_is_local() -> None:
    local = '1-a  metadata 09:00 title "A" local  stream 09:00 [1]'
    plan = fork(WHOLE, store=(local,), workspace=(local,))
    assert targets(plan) == ["store:N-a"]
    assert plan.intents == ((plan.actions[0].conversation, Intent(IntentKind.LOCAL)),)


def test_what_is_cut_has_to_be_a_stream() -> None:
    """Also where nothing has to be cut: no fork is made that couldn't be read."""
    for events in ({"events.json": b"[{"}, {}):
        files = {name: content for name, content in FILES.items() if name != "events.json"} | events
        with pytest.raises(RefusedError, match=r"events\.json: (a truncated file|no such file)"):
            plan_branch(context_of(stored(A), here(A), agreed_on(A)), WHOLE, files)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_not_one_that_is_not_there(name: str) -> None:
    unread = Unreadable(name, "Input/output error", "a readable file")
    for request in (WHOLE, ForkRequest("jp-c1", EventSelection(last=1))):
        with pytest.raises(RefusedError, match=rf"^jp-c1: {name}: can't be read \(Input/output error\)$"):
            plan_branch(context_of(stored(A), here(A), agreed_on(A)), request, {**FILES, name: unread})


def test_a_legacy_stream_is_forked() -> None:
    time = b'"timestamp": "2026-01-31 12:00:00.0"'
    events = b'[{"type": "config_delta", "delta": {}, %b}, {"type": "chat_request", %b}]' % (time, time)
    files = {"metadata.json": FILES["metadata.json"], "events.json": events}
    plan = plan_branch(context_of(stored(A), here(A), agreed_on(A)), WHOLE, {**files, "NOTE.md": b"n"})
    assert {write.target.path.rpartition("/")[2] for write in plan.actions[0].writes} == set(files)


@pytest.mark.parametrize("broken", ["metadata.json", "events.json"])
def test_both_units_must_be_in_the_store(broken: str) -> None:
    with pytest.raises(RefusedError, match="is incomplete in the store"):
        fork(WHOLE, store=(A, f'1-a/{broken} 10:00 "{{"'))
    with pytest.raises(RefusedError, match="is not in the store"):
        plan_branch(context_of(stored(), here(A)), WHOLE, FILES)


def test_a_fork_of_what_is_archived_lies_below_nothing() -> None:
    archived = A.replace("1-a", ".archive/1-a")
    assert targets(fork(WHOLE, store=(archived,), workspace=(archived,))) == ["store:N-a"]
    assert targets(fork(WHOLE, store=(archived,), workspace=(A,))) == ["store:N-a", "workspace:N-a"]


def test_nothing_is_made_where_a_file_is_in_the_way() -> None:
    assert targets(fork(WHOLE, workspace=(A, '1-a/conversations 09:00 "x"'))) == ["store:N-a"]


CONTINUATION = ForkRequest(
    "jp-c1", EventSelection(), continuation={name: FILES[name] for name in ("base_config.json", "events.json")}
)


def test_a_continuation_that_git_leaves_out_becomes_a_fork_in_the_store_alone() -> None:
    plan = fork(CONTINUATION)
    assert [(action.kind.value, action.title) for action in plan.actions] == [("fork", "[diverged] A")]
    assert targets(plan) == ["store:N--diverged--a"]
    assert (plan.intents, plan.policy, plan.now_ns) == ((), Policy(), NOW_NS)
    (made,) = plan.actions
    assert (plan.about, made.case, made.events) == (frozenset({made.conversation}), None, (0, 1))
    for write in made.writes[1:]:
        name = write.target.path.rpartition("/")[2]
        assert (write.content, write.size, write.mtime_ns) == (FILES[name], len(FILES[name]), NOW_NS)


def test_a_continuation_in_the_old_form_becomes_a_fork_in_that_form() -> None:
    time = b'"timestamp": "2026-01-31 12:00:00.0"'
    legacy = b'[{"type": "config_delta", "delta": {}, %b}, {"type": "chat_request", %b}]' % (time, time)
    (made,) = fork(ForkRequest("jp-c1", EventSelection(), continuation={"events.json": legacy})).actions
    assert [write.target.path.rpartition("/")[2] for write in made.writes] == ["metadata.json", "events.json"]


DAMAGED = (A, '1-a/metadata.json 10:00 "{"')


@pytest.mark.parametrize(
    ("store", "workspace", "title"),
    [
        ((A,), (A.replace('"A"', '"W"'),), "[diverged] A"),
        ((A,), DAMAGED, "[diverged] A"),
        (DAMAGED, (A.replace('"A"', '"W"'),), "[diverged] W"),
    ],
    ids=["the store's", "the only one", "the workspace's where the store's is damaged"],
)
def test_whose_metadata_a_continuation_gets(store: tuple[str, ...], workspace: tuple[str, ...], title: str) -> None:
    (made,) = fork(CONTINUATION, store=store, workspace=workspace).actions
    assert made.title == title


def test_the_fork_of_a_local_conversation_is_local() -> None:
    plan = fork(CONTINUATION, store=(A.replace(' title "A"', ' title "A" local'),))
    assert [intent for _, intent in plan.intents] == [Intent(IntentKind.LOCAL)]


def test_a_continuation_that_a_child_has_is_not_forked_again() -> None:
    child = '2-a  metadata 09:00 title "[diverged] A" parent 1  stream 09:00 [1]'
    context = context_of(stored(A, child), here(A), agreed_on(A))
    files = {file.name: file.digest or "" for file in context.views["jp-c2"].store.units["stream"].files}
    known = dict(zip((FILES[name] for name in files), files.values(), strict=True))
    context.rules = Rules(context.rules.format, lambda content: known.get(content, "another"))
    request = ForkRequest("jp-c1", EventSelection(), continuation={name: FILES[name] for name in files})
    assert plan_branch(context, request, FILES).actions == ()


def test_a_continuation_is_planned_under_the_policy_of_the_run() -> None:
    assert fork(CONTINUATION, flat=True).policy == Policy(layout=Layout.FLAT)


def test_a_continuation_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"^jp-c1: events\.json: "):
        fork(ForkRequest("jp-c1", EventSelection(), continuation={"events.json": b"[{"}))


def test_without_valid_metadata_no_continuation_is_forked() -> None:
    broken = (A, '1-a/metadata.json 10:00 "[{"')
    with pytest.raises(RefusedError, match="no valid metadata"):
        fork(CONTINUATION, store=broken, workspace=broken)

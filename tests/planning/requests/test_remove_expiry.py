"""What has expired (docs/commands.md#reconcile-gc). The command is in fixtures/scenarios/commands/gc."""

from __future__ import annotations

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord
from reconcile.model.policy import GcRequest, Policy
from reconcile.model.reasons import Reason
from reconcile.planning.requests.remove import expired
from tests.support.scenarios.building import NOW_NS, agreed_on, context_of, here, plan_of, stored, unreadable, view_of

A = '1-a  metadata 09:00 title "A" expires_at="1970-01-01 00:00:00.0"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1 expires_at="1970-01-01 00:00:00.0"  stream 09:00 [1]'
C = '3-c  metadata 09:00 title "C" expires_at="1970-01-01 00:00:00.0"  stream 09:00 [1]'


def test_what_is_open_stays_and_keeps_its_ancestors() -> None:
    context = context_of(stored(A, B, C), here())
    assert expired(context, frozenset()) == ("jp-c1", "jp-c2", "jp-c3")
    assert expired(context, frozenset({"jp-c2"})) == ("jp-c3",)
    assert expired(context, frozenset({"jp-c1"})) == ("jp-c2", "jp-c3")


def test_what_the_store_cannot_read_stays() -> None:
    assert expired(context_of(unreadable(stored(A), "1-a/metadata.json"), here()), frozenset()) == ()
    assert expired(context_of(stored(), here(A)), frozenset()) == ()


def test_the_moment_itself_is_over() -> None:
    assert NOW_NS == 1_735_776_000 * 10**9
    at = '1-a  metadata 09:00 title "A" expires_at="2025-01-02 00:00:00.{}"  stream 09:00 [1]'
    assert expired(context_of(stored(at.format("0")), here()), frozenset()) == ("jp-c1",)
    assert expired(context_of(stored(at.format("001")), here()), frozenset()) == ()


def test_what_lies_here_of_a_local_one_keeps_nothing() -> None:
    """It has lost and stays as it is; an edit of it would be saved."""
    local = A.replace("09:00 title", "{} local title")
    lost, edited = (local.format(time).replace('"A"', '"Z"') for time in ("08:00", "10:00"))
    assert expired(context_of(stored(local.format("09:00")), here(lost)), frozenset()) == ("jp-c1",)
    assert expired(context_of(stored(local.format("09:00")), here(edited)), frozenset()) == ()


def test_a_note_that_is_to_go_from_the_workspace_keeps_nothing() -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    baseline = agreed_on(A, note)
    assert expired(context_of(stored(A), here(A, note), baseline), frozenset()) == ("jp-c1",)


def test_what_was_kept_with_two_versions_stays() -> None:
    store, workspace = stored(A), here(A.replace('"A"', '"Z"'))
    digests = (view_of(store, workspace).store.raw("metadata"), view_of(store, workspace).workspace.raw("metadata"))
    baseline = replace(agreed_on(A), asides={("jp-c1", "metadata"): AsideRecord(AsideKind.KEPT, *digests)})
    assert expired(context_of(store, workspace, baseline), frozenset()) == ()


def test_what_the_workspace_is_behind_in_is_not_judged() -> None:
    """Its metadata waits for the stream, and may have taken the expiry away."""
    ahead = A.replace("09:00 [1]", "09:00 [1 2]")
    assert expired(context_of(stored(ahead), here(A.replace("stream 09:00", "stream 09:30"))), frozenset()) == ()


def test_gc_asks_before_it_removes_many_and_leaves_no_request() -> None:
    old = '{0}-x  metadata 09:00 title "x" expires_at="1970-01-01 00:00:00.0"  stream 09:00 [1]'
    for count, is_held in ((3, False), (4, True)):
        lines = [old.format(number) for number in range(1, 1 + count)]
        sides, policy = (stored(*lines), here(*lines), agreed_on(*lines)), Policy(request=GcRequest(()))
        plan = plan_of(*sides, policy)
        assert [item.reason for item in plan.held] == [Reason.BULK] * is_held
        assert [item.resolve for item in plan.held] == [("reconcile gc --allow-bulk-removal",)] * is_held
        assert len(plan.actions) == (0 if is_held else 2 * count)
        assert not plan.waiting or not is_held
        limited = plan_of(*sides, replace(policy, only=frozenset(f"jp-c{number}" for number in range(1, 1 + count))))
        only = " ".join(f"--only jp-c{number}" for number in range(1, 1 + count))
        assert [item.resolve for item in limited.held] == [(f"reconcile gc {only} --allow-bulk-removal",)] * is_held
        allowed = plan_of(*sides, replace(policy, accept_bulk=True))
        assert (len(allowed.actions), allowed.held) == (2 * count, ())

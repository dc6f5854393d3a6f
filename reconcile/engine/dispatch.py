"""Dispatches a policy's request to its planner; a plain run goes to `make_plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.model.policy import (
    ForkRequest,
    GcRequest,
    ProjectRequest,
    QuarantineRequest,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.planning.context import RefusedError
from reconcile.planning.decide import decide
from reconcile.planning.filters import without_git
from reconcile.planning.planner import make_plan

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from reconcile.planning.rules.guards import Whole


_OF_A_TREE = (ForkRequest, GcRequest, QuarantineRequest, SetParentRequest)
"""The requests that only formats with conversations support."""


class RequestError(ReconcileError):
    """A request can't be carried out, or needs another option first."""

    exit_code = 4


def plan_for_policy(
    session: Session, world: WorldState, policy: Policy, now_ns: int | None = None, whole: Whole | None = None
) -> Plan:
    """Return the plan of a run, or of the policy's request.

    ``now_ns`` is the time of the plan, by default the session's. ``whole`` is required if ``world`` is a part.

    Raises:
        RequestError, NoRunError, NoVersionError, VaultError: the request can't be carried out; the message says why.
    """
    now_ns = session.now_ns() if now_ns is None else now_ns
    policy = session.surroundings(policy)
    if session.format.places is not None and isinstance(policy.request, _OF_A_TREE):
        raise RequestError(
            f"records of the format {session.format.name} are in no tree, and have no history of their own"
        )
    match policy.request:
        case UndoRequest(run):
            from reconcile.engine.run_history import find_run, past_run  # here and below: most runs have no request
            from reconcile.planning.requests.undo import plan_undo

            past = past_run(session.state, find_run(session.state, run), session.project)
            return plan_undo(past, world, policy, session.rules, now_ns, whole)
        case RestoreRequest(version):
            return _restored(session, version, world, policy, now_ns)
        case ForkRequest() | QuarantineRequest():
            return _plan_of_request(session, policy.request, world, policy, now_ns, whole)
        case _:
            return _planned(session, world, policy, now_ns, whole)


def _plan_of_request(
    session: Session,
    request: ForkRequest | QuarantineRequest,
    world: WorldState,
    policy: Policy,
    now_ns: int,
    whole: Whole | None,
) -> Plan:
    from reconcile.planning.requests.fork import plan_branch
    from reconcile.planning.requests.quarantine import plan_quarantine

    planning = decide(world.store, world.workspace, world.baseline, policy, session.rules, now_ns, whole=whole)
    ids = request.ids if isinstance(request, QuarantineRequest) else (request.id,)
    for unknown in [conversation for conversation in ids if conversation not in planning.views]:  # from a saved plan
        raise RequestError(f"{unknown} is on neither side any more")
    try:
        if isinstance(request, QuarantineRequest):
            again = " ".join(("reconcile doctor", *(f"--quarantine {conversation}" for conversation in request.ids)))
            return without_git(plan_quarantine(planning, request.ids), policy.git_busy, again)
        return without_git(
            plan_branch(planning, request, session.contents(planning.views[request.id])[0]), policy.git_busy
        )
    except RefusedError as error:
        raise RequestError(str(error), "\n        ".join(error.hints) or None) from None


def _planned(session: Session, world: WorldState, policy: Policy, now_ns: int, whole: Whole | None) -> Plan:
    baseline = world.baseline
    if isinstance(policy.request, ProjectRequest) and policy.request.records is not None:
        from reconcile.planning.requests.recover import with_records

        records = [session.state.load(record) for record in policy.request.records]
        baseline = with_records(baseline, records, policy.request.ids)
    try:
        return make_plan(world.store, world.workspace, baseline, policy, session.rules, now_ns, whole)
    except RefusedError as error:
        raise RequestError(str(error), "\n        ".join(error.hints) or None) from None


def _restored(session: Session, version: str, world: WorldState, policy: Policy, now_ns: int) -> Plan:
    from reconcile.engine.versions import NoVersionError, find_versions, kept_units
    from reconcile.planning.requests.restore import NoPlaceError, plan_restore

    versions = find_versions(session.state, version, session.format)
    kept = kept_units(session.state, session.vault, versions, session.format)
    try:
        plan = plan_restore(kept.units, world.store, world.workspace, world.baseline, policy, session.rules, now_ns)
        return replace(plan, notes=kept.notes)
    except NoPlaceError as error:
        raise NoVersionError(f"{version}: {error}") from None

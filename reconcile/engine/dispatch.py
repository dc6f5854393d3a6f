"""The plan that a command asks for: a run of the planner, or something that takes its place."""

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
"""What is only asked of conversations."""


class RequestError(ReconcileError):
    """A command is refused: it asks for what can't be as things are, or not without more being said."""

    exit_code = 4


def plan_as_asked(
    session: Session, world: WorldState, policy: Policy, now_ns: int | None = None, whole: Whole | None = None
) -> Plan:
    """Return the plan of a run, or of the command that the policy names, in this session's surroundings.

    ``now_ns``: as if it were then. ``whole`` is given where the snapshots and the memory are those of a part.

    Raises:
        RequestError, NoRunError, NoVersionError, VaultError: it can't be done; the message says why.
    """
    now_ns = session.now_ns() if now_ns is None else now_ns
    policy = session.surroundings(policy)
    if session.format.places is not None and isinstance(policy.request, _OF_A_TREE):
        raise RequestError(
            f"records of the format {session.format.name} are in no tree, and have no history of their own"
        )
    match policy.request:
        case UndoRequest(run):
            from reconcile.engine.run_history import find_run, past_run  # here, as below: most runs ask for nothing
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
    for unknown in [each for each in ids if each not in planning.views]:  # asked for by a saved plan
        raise RequestError(f"{unknown} is on neither side any more")
    try:
        if isinstance(request, QuarantineRequest):
            again = " ".join(("reconcile doctor", *(f"--quarantine {each}" for each in request.ids)))
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
    from reconcile.engine.version_names import NoVersionError, find_versions, kept_units
    from reconcile.planning.requests.restore import NoPlaceError, plan_restore

    versions = find_versions(session.state, version, session.format)
    found = kept_units(session.state, session.vault, versions, session.format)
    try:
        plan = plan_restore(found.units, world.store, world.workspace, world.baseline, policy, session.rules, now_ns)
        return replace(plan, notes=found.notes)
    except NoPlaceError as error:
        raise NoVersionError(f"{version}: {error}") from None

"""Dispatches a policy's request to its planner, and compares plans of a part with plans of everything.

A run without a request goes to `make_plan`. With ``RECONCILE_VERIFY=1``, `verify` checks every plan of a part. Each
comparison costs a full run. The long random tests use it: a closure that is too small would silently lose an action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.engine.session import Session
from reconcile.errors import ReconcileError
from reconcile.model.commands import typed
from reconcile.model.policy import (
    ForkRequest,
    GcRequest,
    ProjectRequest,
    QuarantineRequest,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.model.snapshot import Side
from reconcile.planning.context import RefusedError
from reconcile.planning.decide import decide
from reconcile.planning.filters import without_git
from reconcile.planning.incremental.side_index import without_events
from reconcile.planning.planner import make_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.baseline import WorldState
    from reconcile.model.format import Places
    from reconcile.model.plan import Conflict, Item, Note, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Content, Digest
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.incremental.scope import SnapshotIndex
    from reconcile.planning.rules.guards import Whole


_OF_A_TREE = (ForkRequest, GcRequest, QuarantineRequest, SetParentRequest)
"""The requests that only formats with conversations support."""


class RequestError(ReconcileError):
    """A request can't be carried out, or needs another option first."""

    exit_code = 4


def plan_for_policy(
    session: Session,
    world: WorldState,
    policy: Policy,
    now_ns: int | None = None,
    whole: Whole | None = None,
    pending: Mapping[Digest, bytes] | None = None,
) -> Plan:
    """Return the plan of a run, or of the policy's request, without what would publish a secret.

    ``now_ns`` is the time of the plan, by default the session's. ``whole`` is required if ``world`` is a part.
    ``pending`` has contents of ``world`` that are not on the disk yet.

    Raises:
        RequestError, NoRunError, NoVersionError, VaultError: the request can't be carried out; the message says why.
        StateError: the list of allowed secrets can't be read.
    """
    plan = _unchecked_plan(session, world, policy, now_ns, whole)
    # A workspace in the user's home is as private as the store.
    writes = any(action.writes and action.target.side is Side.WORKSPACE for action in plan.actions)
    publishes = writes and session.roots.is_in_project
    if not (publishes or policy.allow_secrets):
        return plan
    return session.secret_check.checked(plan, world, pending or {})


_RUNS = "see what runs did: reconcile log"


def _unchecked_plan(
    session: Session, world: WorldState, policy: Policy, now_ns: int | None, whole: Whole | None
) -> Plan:
    now_ns = session.now_ns() if now_ns is None else now_ns
    policy = session.surroundings(policy)
    if (places := session.format.places) is not None:
        can_fork = isinstance(policy.request, ForkRequest) and places.can_fork(policy.request.id)
        if isinstance(policy.request, _OF_A_TREE) and not can_fork:
            raise RequestError(
                f"{session.format.name} records have no parents and no events, so this command does not apply"
            )
    match policy.request:
        case UndoRequest(run):
            from reconcile.engine.run_history import find_run, past_run  # here and below: most runs have no request
            from reconcile.planning.requests.undo import plan_undo

            past = past_run(session.state, find_run(session.state, run), session.project)
            past = replace(past, titles=_titles_of_absent(session, run_id=past.id, world=world))
            return plan_undo(past, world, policy, session.rules, now_ns, whole)
        case RestoreRequest(version):
            return _restored(session, version, world, policy, now_ns)
        case ForkRequest() | QuarantineRequest():
            return _plan_of_request(session, policy.request, world, policy, now_ns, whole)
        case _:
            return _planned(session, world, policy, now_ns, whole)


def _titles_of_absent(session: Session, run_id: str, world: WorldState) -> dict[str, str]:
    """Return the titles of a run's conversations that no side has now, from the vault."""
    from reconcile.engine.versions import saved_titles

    there = {copy.conversation for side in (world.store, world.workspace) for copy in side.copies}
    absent = (version for version in session.state.versions.of_run(run_id) if version.conversation not in there)
    return saved_titles(absent, session.vault, session.format)


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
        raise RequestError(f"{unknown} is on neither side any more", _RUNS)
    try:
        if isinstance(request, QuarantineRequest):
            again = " ".join(
                ("reconcile doctor", *(f"--quarantine {typed(conversation)}" for conversation in request.ids))
            )
            return without_git(plan_quarantine(planning, request.ids), policy.git_busy, again)
        if (places := session.format.places) is not None:
            return without_git(_plan_of_record_fork(session, planning, request, places), policy.git_busy)
        return without_git(
            plan_branch(planning, request, session.contents(planning.views[request.id])[0]), policy.git_busy
        )
    except RefusedError as error:
        raise RequestError(str(error), "\n        ".join(error.hints) or None) from None


def _plan_of_record_fork(session: Session, planning: PlanningContext, request: ForkRequest, places: Places) -> Plan:
    from reconcile.planning.requests.fork_record import plan_record_fork, records_of

    contents: dict[str, Content] = {}
    for record in records_of(planning, request.id, places):
        store, workspace = session.contents(planning.views[record])
        (contents[record],) = (workspace or store).values()  # the program continues its own file
    if request.id not in contents:  # from a saved plan
        raise RequestError(f"{request.id} is on neither side any more", _RUNS)
    return plan_record_fork(planning, request, places, contents)


def _planned(session: Session, world: WorldState, policy: Policy, now_ns: int, whole: Whole | None) -> Plan:
    baseline = world.baseline
    if isinstance(policy.request, ProjectRequest) and policy.request.records is not None:
        from reconcile.planning.requests.recover import with_records

        records = [session.state.load(record) for record in policy.request.records]
        baseline = with_records(baseline, records, policy.request.ids)
    if isinstance(policy.request, ProjectRequest):
        from reconcile.engine.deleted_extras import deleted_extras  # here, as above

        baseline = replace(baseline, deleted_here=deleted_extras(session, world, policy.request.ids))
    try:
        return make_plan(world.store, world.workspace, baseline, policy, session.rules, now_ns, whole)
    except RefusedError as error:
        raise RequestError(str(error), "\n        ".join(error.hints) or None) from None


def _restored(session: Session, version: str, world: WorldState, policy: Policy, now_ns: int) -> Plan:
    from reconcile.engine.versions import NoVersionError, restorable
    from reconcile.planning.requests.restore import NoPlaceError, plan_restore

    kept = restorable(session, version)
    try:
        plan = plan_restore(kept.units, world.store, world.workspace, world.baseline, policy, session.rules, now_ns)
        return replace(plan, notes=kept.notes)
    except NoPlaceError as error:
        raise NoVersionError(f"{version}: {error}", "restore the whole: reconcile restore ID@RUN") from None


class VerificationError(ReconcileError):
    """The plan of a part differs from the plan of everything."""


def verify(session: Session, known: SnapshotIndex, plan: Plan, conversations: Collection[str]) -> None:
    """Compare a plan of some conversations with the plan of everything.

    If the sides have changed since the scan, the comparison is skipped.

    Raises:
        VerificationError: the plans differ; the message has the first difference.
    """
    with Session(
        session.roots, session.directory, readonly=True, ignore=session.ignore, clock=lambda: plan.now_ns
    ) as other:
        other.state.removed_there, other.state.seen_there = session.state.removed_there, session.state.seen_there
        world = other.scan()
        if not _equals_scan(known, world):
            return
        whole = plan_for_policy(other, world, replace(plan.policy, git_busy=None), plan.now_ns)
    for name, partial, full in (
        ("actions", _bare(plan), _bare(whole)),
        ("intents", plan.intents, whole.intents),
        ("tombstones", plan.tombstones, whole.tombstones),
        ("waiting", plan.waiting, whole.waiting),
        ("held", _about(plan.held, conversations), _about(whole.held, conversations)),
        ("aside", _about(plan.aside, conversations), _about(whole.aside, conversations)),
        ("notes", _about(plan.notes, conversations), _about(whole.notes, conversations)),
        ("conflicts", _about(plan.conflicts, conversations), _about(whole.conflicts, conversations)),
    ):
        if partial != full:
            raise VerificationError(f"RECONCILE_VERIFY: {name} differs: {partial} for a part, {full} for everything")


def _equals_scan(known: SnapshotIndex, world: WorldState) -> bool:
    for side, snapshot in ((Side.STORE, world.store), (Side.WORKSPACE, world.workspace)):
        scanned = {copy.path: without_events(copy) for copy in snapshot.copies}
        if {copy.path: copy for copy in known.sides[side].copies()} != scanned:
            return False
    return True


def _bare(plan: Plan) -> list[str]:
    """Return the sorted actions, without their numbers."""
    return sorted(str(replace(action, id="", needs=())) for action in plan.actions)


def _about(items: Iterable[Item] | Iterable[Note] | Iterable[Conflict], conversations: Collection[str]) -> list[str]:
    return sorted(str(item) for item in items if item.conversation in conversations)

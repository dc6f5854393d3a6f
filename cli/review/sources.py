"""Walks through other plans than that of a run: a saved one, an undo, the offer of `recover`, and a past run.

A person can leave conversations out of the first three, and decide nothing else. A past run is only shown.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.engine.run_history import find_run, newest_run, past_run
from reconcile.model.commands import typed
from reconcile.model.plan import Heading, Plan
from reconcile.model.policy import ProjectRequest, UndoRequest
from reconcile.planning.filters import renumbered, withheld

from .details import Reading
from .reading import Reader
from .subjects import Choice, subjects_of
from .walk import Walk, summary_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.engine.engine import Engine
    from reconcile.model.policy import Policy

    from .decisions import Decisions

LEAVE_OUT = frozenset({Choice.SKIP})
"""The choices about a plan that is made already."""


def walk_of_saved(engine: Engine, plan: Plan, heading: str, words: str) -> Walk:
    """Return the walk through a saved plan; `apply` carries out what is left of it."""
    subjects = subjects_of(plan, LEAVE_OUT)

    def plan_for(decisions: Decisions) -> Plan:
        left_out = decisions.left_out(subjects)
        if not left_out:
            return plan
        leaves = {each.id for each in plan.actions if not left_out.isdisjoint((each.conversation, *each.touches))}
        gone = withheld(plan.actions, leaves)
        kept = renumbered(each for each in plan.actions if each.id not in gone)
        return replace(plan, actions=kept, policy=decisions.policy(plan, subjects))

    return _walk(engine, plan, heading, words, LEAVE_OUT, plan_for)


def walk_of_undo(engine: Engine, policy: Policy, run: str, words: str) -> Walk:
    """Return the walk through the undo of a run; an empty text means the latest one that is not undone.

    Raises:
        NoRunError: there is no such run.
    """
    session = engine.session
    state = session.state
    found = find_run(state, run) if run else newest_run(state, session.project).run
    plan = engine.plan(replace(session.surroundings(policy), request=UndoRequest(found.id))).plan
    subjects = subjects_of(plan, LEAVE_OUT)

    def plan_for(decisions: Decisions) -> Plan:
        return engine.plan(decisions.policy(plan, subjects)).plan if decisions.left_out(subjects) else plan

    return _walk(engine, plan, f"undo of {found.id}: {found.command}", words, LEAVE_OUT, plan_for)


def walk_of_run(engine: Engine, policy: Policy, run: str) -> Walk:
    """Return the walk through what a run has done; nothing can be decided or applied.

    Raises:
        NoRunError: there is no such run, or it was made in another project.
    """
    session = engine.session
    found = find_run(session.state, run)
    past = past_run(session.state, found, session.project)
    named = list(dict.fromkeys(step.conversation for step in past.steps))
    views = engine.decide_some(named, policy).views
    titles = {id_: views[id_].title if id_ in views else None for id_ in named}
    plan = Plan(
        layout=policy.layout.value,
        actions=tuple(replace(step, title=titles[step.conversation]) for step in past.steps),
        outline=tuple(Heading(id_, titles[id_], 0) for id_ in named),
        policy=policy,
        now_ns=time.time_ns(),
    )

    def read(conversation: str) -> Reading:
        return Reading(notes=(f"the version before: reconcile diff {typed(conversation)}@{found.id}",))

    walk = _walk(engine, plan, f"run {found.id}: {found.command}", "", frozenset(), lambda _: plan)
    return replace(walk, read=read)


def walk_of_recovery(engine: Engine, plan: Plan, planned: Callable[[tuple[str, ...]], Plan], words: str) -> Walk:
    """Return the walk through what `recover` offers; ``planned`` plans the restoration of some conversations."""
    request = plan.policy.request
    assert isinstance(request, ProjectRequest)  # noqa: S101 - it is recover's own
    subjects = subjects_of(plan, LEAVE_OUT)

    def plan_for(decisions: Decisions) -> Plan:
        left_out = decisions.left_out(subjects)
        return planned(tuple(id_ for id_ in request.ids if id_ not in left_out)) if left_out else plan

    return _walk(engine, plan, "the offer of recover", words, LEAVE_OUT, plan_for)


def _walk(
    engine: Engine,
    plan: Plan,
    heading: str,
    words: str,
    allowed: frozenset[Choice],
    plan_for: Callable[[Decisions], Plan],
) -> Walk:
    reader, roots = Reader(engine, plan.policy), engine.session.roots
    return Walk(
        plan=plan,
        subjects=tuple(replace(each, is_public=roots.is_in_project) for each in subjects_of(plan, allowed)),
        heading=heading,
        read=reader.read,
        plan_for=plan_for,
        summary=partial(summary_text, roots.noun, is_public=roots.is_in_project),
        opened=reader.open_with,
        apply_words=words,
    )

"""Passes that go on where an earlier process has stopped: only what has changed since is looked at and planned.

What that knew is kept in the state's directory (`reconcile.disk.last_answer`, `reconcile.disk.last_known`). It holds
while what is remembered and what is asked for are the same; else everything is looked at. Both may be lost at any time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.answering import answer_of, asked_of, is_ordinary, plan_of
from reconcile.core.guards import Whole
from reconcile.core.kin import Kin
from reconcile.core.known import KnownSide
from reconcile.core.model import Foreign, Side
from reconcile.core.part import USUAL, Known
from reconcile.disk.generation import generation
from reconcile.disk.index import is_whole
from reconcile.disk.last_answer import LastAnswer
from reconcile.disk.last_known import LastKnown, LastKnownSide
from reconcile.passes import Passes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reconcile.core.plan import Plan
    from reconcile.core.policy import Policy
    from reconcile.disk.generation import Generation
    from reconcile.session import Session

_KEY_BYTES = 16
LOOSE = 300
"""So many copies may have to be looked at in every run; with more, nothing is kept."""
_SHARE = 5
"""A look at a part costs as much as one at everything where it is about one in so many directories."""


def resumed(
    session: Session, rest: LastAnswer, changed: Sequence[Collection[str]], policy: Policy
) -> tuple[Passes, dict[Side, set[str]], Plan] | None:
    """Return passes that know what was kept, where they have to look first, and what was said of everything.

    ``changed`` has, by side, the paths that have another status now. None: too much has changed, or is not known.
    """
    kept = LastKnown.load(session.directory, session.roots.workspace_identity)
    if kept is None or kept.key != rest.key or session.checkout is None:
        return None
    if any(session.index_of(side).saved != was.stored for side, was in zip(Side, kept.sides, strict=True)):
        return None
    dirty, sides = {}, {}
    for side, was, paths, sweep in zip(Side, kept.sides, changed, rest.sweeps, strict=True):
        session.resume_sweep(side, sweep, paths)
        dirty[side] = {"" if path == "." else path for path in paths} | set(was.loose)
        sides[side] = _known_side(session, side, was)
    before = plan_of(rest.answer, policy, rest.made_ns)
    noted = frozenset(note.conversation for note in before.notes if note.conversation is not None)
    whole = Whole(USUAL, directories=0)
    known = Known(sides, Kin(kept.above), frozenset(kept.remembered), whole, session.rules, kept.inhabited)
    passes = Passes(session)
    passes.resume(known, policy, noted.union(rest.due), _most(kept))
    # Opened first, then compared: whoever writes in between is noticed by one or the other.
    if generation(session.directory) != rest.generation:
        return None
    counted = {each: state for state, some in kept.counted.items() for each in some}
    return passes, dirty, replace(before, counted=counted)


def keep(passes: Passes, plan: Plan, left: Collection[str]) -> None:
    """Keep what is known after a pass; ``plan`` is about everything.

    ``left``: what has to be looked at next time in any case, as the plan doesn't say how it is now.
    """
    passes.session.state.checkpoint()
    mark = generation(passes.session.directory)
    if mark is not None and passes.goes_on:
        _keep(passes.session, passes.known, mark, plan, left)


def _keep(session: Session, known: Known, mark: Generation, plan: Plan, left: Collection[str]) -> None:
    if session.format.places is not None:  # what is derived may be due by the clock, or by what no sweep goes over
        return
    sides = tuple(_kept_side(session, side, known.sides[side]) for side in Side)
    usual = known.is_ordinary and known.remembered and is_ordinary(plan)
    if session.messages or not usual or sum(len(side.loose) for side in sides) > LOOSE:
        return
    if session.state.journal.open_runs():  # of a program: if it is killed, the next run has something to clean up
        return
    directory, checkout = session.directory, session.roots.workspace_identity
    key = os.urandom(_KEY_BYTES)
    counted: dict[str, list[str]] = {}
    for conversation, state in plan.counted.items():
        counted.setdefault(state, []).append(conversation)
    LastKnown(
        key,
        (sides[0], sides[1]),
        {each: tuple(found) for each, found in known.kin.relations.items()},
        tuple(known.remembered),
        known.inhabited,
        {state: tuple(found) for state, found in counted.items()},
    ).save(directory, checkout)
    roots = session.roots.store_conversations, session.roots.workspace_conversations
    sweeps = session.swept(Side.STORE), session.swept(Side.WORKSPACE)
    asked = asked_of(session.roots, plan.policy, session.ignore)
    LastAnswer(asked, mark, session.now_ns(), roots, sweeps, answer_of(plan), tuple(left), key).save(
        directory, checkout
    )


def _most(kept: LastKnown) -> int:
    """Return how many directories may be looked at one by one before a look at everything costs less."""
    return max(LOOSE, sum(len(side.conversations) for side in kept.sides) // _SHARE)


def _known_side(session: Session, side: Side, was: LastKnownSide) -> KnownSide:
    loose, build = frozenset(was.loose), session.copies_in_index(side)
    known = KnownSide(side, was.identity, was.conversations, lambda path: None if path in loose else build(path))
    known.know_foreign(Foreign(*entry) for entry in was.foreign)
    return known


def _kept_side(session: Session, side: Side, known: KnownSide) -> LastKnownSide:
    index = session.index_of(side)
    foreign = tuple((each.path, each.what, each.link, each.special) for each in known.all_foreign())
    loose = tuple(path for path in known.looked_at() if not is_whole(known.copy(path), index.rows.get(path)))
    return LastKnownSide(known.identity, index.saved, dict(known.paths), loose, foreign)

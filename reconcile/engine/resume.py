"""Passes that go on where an earlier process has stopped: only what has changed since is looked at and planned.

What that knew is kept in the state's directory (`reconcile.index.summary`, `reconcile.index.snapshots`). It holds
while what is remembered and what is asked for are the same; else everything is looked at. Both may be lost at any time.
"""

from __future__ import annotations

import os
from itertools import compress
from operator import ne
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.engine.passes import Passes
from reconcile.engine.result_cache import answer_of, asked_of, is_ordinary, plan_of
from reconcile.index.snapshots import LastKnown, LastKnownSide
from reconcile.index.stat_cache import is_whole
from reconcile.index.summary import LastAnswer
from reconcile.model.snapshot import Foreign, Side
from reconcile.planning.incremental.ancestry import Kin
from reconcile.planning.incremental.scope import USUAL, Known
from reconcile.planning.incremental.side_index import KnownSide
from reconcile.planning.rules.guards import Whole
from reconcile.state.directory import generation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy

_KEY_BYTES = 16
LOOSE = 300
"""So many copies may have to be looked at in every run; with more, nothing is kept."""
_SHARE = 5
"""A look at a part costs as much as one at everything where it is about one in so many directories."""


class Resumed(NamedTuple):
    """Passes that know what was kept, where they have to look first, and what was said of everything."""

    passes: Passes
    dirty: dict[Side, set[str]]
    before: Plan
    kept: LastKnown


class Recalled(NamedTuple):
    """What an earlier run has kept of both sides, whatever has changed since.

    ``counted``: the state that each conversation was counted under.
    """

    rest: LastAnswer
    kept: LastKnown
    known: Known
    counted: Mapping[str, str]

    @classmethod
    def load(cls, session: Session, rest: LastAnswer) -> Recalled | None:
        """Load what belongs to a run's record; None: not all of it is there."""
        kept = LastKnown.load(session.directory, session.roots.workspace_identity)
        if kept is None or kept.key != rest.key or session.checkout is None:
            return None
        if tuple(session.scanner.index(side).saved for side in Side) != rest.indexes:
            return None
        sides = {
            side: _known_side(session, side, was, frozenset(loose))
            for side, was, loose in zip(Side, kept.sides, rest.loose, strict=True)
        }
        whole = Whole(USUAL, directories=0)
        known = Known(sides, Kin(kept.above), kept.remembered, whole, session.rules, kept.inhabited)
        return cls(rest, kept, known, _counted(kept.counted, rest.counted))


def resumed(session: Session, recalled: Recalled, changed: Sequence[Collection[str]], policy: Policy) -> Resumed | None:
    """Go on from what was kept; ``changed`` has, by side, the paths that have another status now.

    None: what is remembered has changed since.
    """
    rest, kept, known, counted = recalled
    dirty = {}
    for side, paths, sweep, loose in zip(Side, changed, rest.sweeps, rest.loose, strict=True):
        session.scanner.resume(side, sweep, paths)
        dirty[side] = {"" if path == "." else path for path in paths} | set(loose)
    before = plan_of(rest.answer, policy, rest.made_ns)
    noted = frozenset(note.conversation for note in before.notes if note.conversation is not None)
    passes = Passes(session)
    passes.resume(known, policy, noted.union(rest.due), _most(kept))
    # Opened first, then compared: whoever writes in between is noticed by one or the other.
    if generation(session.directory) != rest.generation:
        return None
    return Resumed(passes, dirty, replace(before, counted=counted), kept)


def keep(passes: Passes, plan: Plan, left: Collection[str], before: LastKnown | None) -> None:
    """Keep what is known after a pass; ``plan`` is about everything.

    ``left``: what has to be looked at next time in any case, as the plan doesn't say how it is now. ``before``: what
    was kept when the pass began.
    """
    session, known = passes.session, passes.known
    session.state.checkpoint()
    mark = generation(session.directory)
    if mark is None or not passes.goes_on or not _is_usual(session, known, plan):
        return
    store, workspace = known.sides[Side.STORE], known.sides[Side.WORKSPACE]
    loose = _loose(session, store), _loose(session, workspace)
    if sum(map(len, loose)) > LOOSE:
        return
    kept, counted = _keep_known(session, known, plan, before)
    directory, checkout = session.directory, session.roots.workspace_identity
    roots = session.roots.store_conversations, session.roots.workspace_conversations
    sweeps = session.scanner.swept(Side.STORE), session.scanner.swept(Side.WORKSPACE)
    asked = asked_of(session.roots, plan.policy, session.ignore)
    indexes = session.scanner.index(Side.STORE).saved, session.scanner.index(Side.WORKSPACE).saved
    answer = answer_of(plan)
    LastAnswer(
        asked, mark, session.now_ns(), roots, sweeps, answer, tuple(left), indexes, loose, counted, kept.key
    ).save(directory, checkout)


def is_kept(session: Session, plan: Plan) -> bool:
    """Tell whether an earlier run has kept just what there is to be kept now, after a plan with nothing to do."""
    rest = LastAnswer.load(session.directory, session.roots.workspace_identity)
    if rest is None or rest.due or rest.answer != answer_of(plan):
        return False
    asked = asked_of(session.roots, plan.policy, session.ignore)
    return rest.is_about(asked, session.directory, session.now_ns()) and not any(rest.changed())


def _is_usual(session: Session, known: Known, plan: Plan) -> bool:
    """Tell whether a next run could go on from here."""
    if session.format.places is not None:  # what is derived may be due by the clock, or by what no sweep goes over
        return False
    if session.messages or not (known.is_ordinary and known.remembered and is_ordinary(plan)):
        return False
    # Those of a program: if it is killed, the next run has something to clean up.
    return not session.state.journal.open_runs()


def _keep_known(
    session: Session, known: Known, plan: Plan, before: LastKnown | None
) -> tuple[LastKnown, dict[str, str | None]]:
    """Keep what is known, unless that was kept already but for a few states; return what is kept, and those."""
    if before is None or len(otherwise := _otherwise(plan.counted, before.counted)) > LOOSE:
        counted, otherwise = dict(plan.counted), {}
    else:
        counted = before.counted
    now = LastKnown(
        before.key if before is not None else b"",
        (_kept_side(known.sides[Side.STORE]), _kept_side(known.sides[Side.WORKSPACE])),
        known.kin.relations,
        known.remembered,
        known.inhabited,
        counted,
    )
    if now != before:
        now = now._replace(key=os.urandom(_KEY_BYTES))
        now.save(session.directory, session.roots.workspace_identity)
    return now, otherwise


def _counted(before: Mapping[str, str], otherwise: Mapping[str, str | None]) -> dict[str, str]:
    """Return the states that conversations are counted under; see `_otherwise`."""
    counted = dict(before)
    for each, state in otherwise.items():
        if state is None:
            counted.pop(each, None)
        else:
            counted[each] = state
    return counted


def _otherwise(counted: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str | None]:
    """Return the states that conversations are counted under now and weren't; None: one isn't counted any more."""
    found: dict[str, str | None] = dict.fromkeys(before.keys() - counted.keys())
    differs = map(ne, map(before.get, counted), counted.values())  # of all of them, in no time
    found.update((each, counted[each]) for each in compress(counted, differs))
    return found


def _most(kept: LastKnown) -> int:
    """Return how many directories may be looked at one by one before a look at everything costs less."""
    return max(LOOSE, sum(len(side.conversations) for side in kept.sides) // _SHARE)


def _known_side(session: Session, side: Side, was: LastKnownSide, loose: frozenset[str]) -> KnownSide:
    build = session.scanner.copies_in_index(side)
    known = KnownSide(side, was.identity, was.conversations, lambda path: None if path in loose else build(path))
    known.know_foreign(Foreign(*entry) for entry in was.foreign)
    known.arrange()
    return known


def _kept_side(known: KnownSide) -> LastKnownSide:
    foreign = tuple((each.path, each.what, each.link, each.special) for each in known.all_foreign())
    return LastKnownSide(known.identity, known.paths, foreign)


def _loose(session: Session, known: KnownSide) -> tuple[str, ...]:
    rows = session.scanner.index(known.side).rows
    return tuple(path for path in known.looked_at() if not is_whole(known.copy(path), rows.get(path)))

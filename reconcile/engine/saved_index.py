"""What one process saves of a pass for the next: that one looks at what has changed since, and plans that alone.

It is kept in the state's directory (`reconcile.index.summary`, `reconcile.index.snapshots`), and holds while what is
remembered and the settings are the same. Losing it costs time, nothing else: the next run looks at everything.
"""

from __future__ import annotations

import os
from itertools import compress
from operator import ne
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.index.snapshots import LastKnown, LastKnownSide
from reconcile.index.stat_cache import is_whole
from reconcile.index.summary import Answer, LastAnswer, request_key
from reconcile.model.plan import Item, Note, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Foreign, Side
from reconcile.planning.incremental.ancestry import Ancestry
from reconcile.planning.incremental.scope import ORDINARY, SnapshotIndex
from reconcile.planning.incremental.side_index import SideIndex
from reconcile.planning.rules.guards import Whole
from reconcile.state.directory import generation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy

_KEY_BYTES = 16
LOOSE = 300
"""So many copies may have to be looked at in every run; with more, nothing is saved."""
_SHARE = 5
"""A look at a part costs as much as one at everything where it is about one in so many directories."""


class LoadedIndex(NamedTuple):
    """What the last run has saved, and what has changed since.

    ``changes``: the paths to look at, by side. ``before``: what the last plan said of everything.
    """

    summary: LastAnswer
    saved: LastKnown
    known: SnapshotIndex
    before: Plan
    changes: Mapping[Side, Collection[str]] = MappingProxyType({})
    is_unchanged: bool = False

    @classmethod
    def load(cls, session: Session, summary: LastAnswer, policy: Policy) -> LoadedIndex | None:
        """Load what belongs to a run's summary; None: not all of it is there."""
        saved = LastKnown.load(session.directory, session.roots.workspace_identity)
        if saved is None or saved.key != summary.key or session.checkout is None:
            return None
        if tuple(session.scanner.index(side).saved for side in Side) != summary.indexes:
            return None
        sides = {
            side: _known_side(session, side, was, frozenset(loose))
            for side, was, loose in zip(Side, saved.sides, summary.loose, strict=True)
        }
        whole = Whole(ORDINARY, directories=0)
        known = SnapshotIndex(sides, Ancestry(saved.above), saved.remembered, whole, session.rules, saved.inhabited)
        before = replace(
            plan_of(summary.answer, policy, summary.made_ns), counted=_counted(saved.counted, summary.counted)
        )
        return cls(summary, saved, known, before)

    def with_changes(self, session: Session, changed: Sequence[Collection[str]]) -> LoadedIndex:
        """Return it with what has changed since; by side, the paths that have another status than the summary knows."""
        changes, summary = {}, self.summary
        for side, paths, sweep, loose in zip(Side, changed, summary.sweeps, summary.loose, strict=True):
            session.scanner.restore(side, sweep, paths)
            changes[side] = {"" if path == "." else path for path in paths} | set(loose)
        return self._replace(changes=changes, is_unchanged=not any(changed))

    def holds(self, session: Session) -> bool:
        """Tell whether what is remembered is what it was when this was saved."""
        return self.summary.generation == generation(session.directory)

    @property
    def policy(self) -> Policy:
        """The policy of the run that is going on."""
        return self.before.policy

    @property
    def due(self) -> frozenset[str]:
        """The conversations that the next pass has to be about: of the others the last plan's word holds."""
        noted = (note.conversation for note in self.before.notes)
        return frozenset(self.summary.due).union(each for each in noted if each is not None)

    @property
    def spoken_of(self) -> frozenset[str]:
        """The conversations of which the last plan said more than a state."""
        return self.before.spoken_of

    @property
    def most(self) -> int:
        """How many directories may be looked at one by one before a full scan costs less."""
        return max(LOOSE, sum(len(side.conversations) for side in self.saved.sides) // _SHARE)


def save(
    session: Session,
    known: SnapshotIndex,
    plan: Plan,
    due: Collection[str],
    before: LoadedIndex | None,
    *,
    is_quiet: bool,
) -> None:
    """Save what is known after a pass; ``plan`` says it of everything but ``due``.

    ``before``: what the pass has gone on from. ``is_quiet``: nothing was carried out. Nothing is saved where the next
    run could not go on from it, or where all of it is saved already.
    """
    left = tuple(sorted(due))
    if before is not None and before.is_unchanged and is_quiet and before.holds(session):
        is_same = left == before.summary.due and answer_of(plan) == before.summary.answer
        if is_same:
            return
    session.state.checkpoint()
    mark = generation(session.directory)
    if mark is None or not _is_usual(session, known, plan):
        return
    store, workspace = known.sides[Side.STORE], known.sides[Side.WORKSPACE]
    loose = _loose(session, store), _loose(session, workspace)
    if sum(map(len, loose)) > LOOSE:
        return
    saved, counted = _save_known(session, known, plan, before.saved if before is not None else None)
    roots = session.roots.store_conversations, session.roots.workspace_conversations
    sweeps = session.scanner.stat_table(Side.STORE), session.scanner.stat_table(Side.WORKSPACE)
    key = request_key(session.roots, plan.policy, session.ignore)
    indexes = session.scanner.index(Side.STORE).saved, session.scanner.index(Side.WORKSPACE).saved
    answer, now_ns = answer_of(plan), session.now_ns()
    LastAnswer(key, mark, now_ns, roots, sweeps, answer, left, indexes, loose, counted, saved.key).save(
        session.directory, session.roots.workspace_identity
    )


def _is_usual(session: Session, known: SnapshotIndex, plan: Plan) -> bool:
    """Tell whether a next run could go on from here."""
    is_whole = any(item.conversation is None for item in plan.held)
    if session.messages or is_whole or plan.policy.git_busy or _is_to_be_asked_again(session):
        return False
    if not (known.is_ordinary and known.remembered):
        return False
    # Those of a program: if it is killed, the next run has something to clean up.
    return not session.state.journal.open_runs()


def _is_to_be_asked_again(session: Session) -> bool:
    """Tell whether every run has something to do: a request waits, or nothing is known of the checkout yet."""
    number = session.site.number
    layout, store, _ = session.state.checkout_row(number) or (None, None, None)
    return session.state.has_requests(number) or layout is None or store is None


def answer_of(plan: Plan) -> Answer:
    """Return what a plan says besides its actions, as plain values."""
    held, aside = (
        tuple(
            (item.conversation, item.title, item.unit, item.reason.name, item.message, item.resolve) for item in items
        )
        for items in (plan.held, plan.aside)
    )
    notes = tuple((note.conversation, note.unit, note.reason.name, note.message) for note in plan.notes)
    return Answer(plan.layout, plan.states, held, aside, notes, plan.quiet)


def plan_of(answer: Answer, policy: Policy, now_ns: int) -> Plan:
    """Return the plan that said so, made now."""
    held, aside = (
        tuple(
            Item(conversation=who, title=title, unit=unit, reason=Reason[reason], message=message, resolve=resolve)
            for who, title, unit, reason, message, resolve in items
        )
        for items in (answer.held, answer.aside)
    )
    notes = tuple(
        Note(conversation=who, unit=unit, reason=Reason[reason], message=message)
        for who, unit, reason, message in answer.notes
    )
    return Plan(
        layout=answer.layout,
        held=held,
        aside=aside,
        notes=notes,
        states=answer.states,
        policy=policy,
        now_ns=now_ns,
        quiet=answer.quiet,
    )


def _save_known(
    session: Session, known: SnapshotIndex, plan: Plan, before: LastKnown | None
) -> tuple[LastKnown, dict[str, str | None]]:
    """Save what is known, unless that was saved already but for a few states; return what is saved, and those."""
    if before is None or len(otherwise := _otherwise(plan.counted, before.counted)) > LOOSE:
        counted, otherwise = dict(plan.counted), {}
    else:
        counted = before.counted
    now = LastKnown(
        before.key if before is not None else b"",
        (_saved_side(known.sides[Side.STORE]), _saved_side(known.sides[Side.WORKSPACE])),
        known.ancestry.relations,
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
    for conversation, state in otherwise.items():
        if state is None:
            counted.pop(conversation, None)
        else:
            counted[conversation] = state
    return counted


def _otherwise(counted: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str | None]:
    """Return the states that conversations are counted under now and weren't; None: one isn't counted any more."""
    changed: dict[str, str | None] = dict.fromkeys(before.keys() - counted.keys())
    differs = map(ne, map(before.get, counted), counted.values())  # of all of them, in no time
    changed.update((conversation, counted[conversation]) for conversation in compress(counted, differs))
    return changed


def _known_side(session: Session, side: Side, was: LastKnownSide, loose: frozenset[str]) -> SideIndex:
    build = session.scanner.copies_in_index(side)
    known = SideIndex(side, was.identity, was.conversations, lambda path: None if path in loose else build(path))
    known.set_foreign(Foreign(*entry) for entry in was.foreign)
    known.build_lookups()
    return known


def _saved_side(known: SideIndex) -> LastKnownSide:
    foreign = tuple((entry.path, entry.what, entry.link, entry.special) for entry in known.all_foreign())
    return LastKnownSide(known.identity, known.paths, foreign)


def _loose(session: Session, known: SideIndex) -> tuple[str, ...]:
    rows = session.scanner.index(known.side).rows
    return tuple(path for path in known.loaded_paths() if not is_whole(known.copy(path), rows.get(path)))

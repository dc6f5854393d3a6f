"""Saving what is known after a pass, for the next process: that one scans what has changed since, and plans that alone.

The index has it (`reconcile.index.file`), and it holds while the state and the settings are the same. Losing it costs
time, nothing else: the next run makes a full scan.
"""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.index.rows import is_whole
from reconcile.index.status import SideStatus, Status
from reconcile.index.summary import Answer, Summary, request_key
from reconcile.model.options import Prefer
from reconcile.model.plan import Item, Note, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Foreign, Place, Side
from reconcile.planning.incremental.ancestry import Ancestry
from reconcile.planning.incremental.scope import ORDINARY, SnapshotIndex
from reconcile.planning.incremental.side_index import SideIndex
from reconcile.planning.rules.guards import Whole
from reconcile.state.directory import Generation, generation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy

MOST_INCOMPLETE = 300
"""So many copies may have to be scanned in every run; with more, only rows are saved."""
_SHARE = 5
"""A scan of a part costs as much as a full scan where the part has one in so many directories."""


class LoadedIndex(Struct, frozen=True):
    """The index as the last run has saved it, and the changes since.

    ``changes``: the paths to scan, by side. ``before``: the last plan, about everything.
    """

    summary: Summary
    status: Status
    known: SnapshotIndex
    before: Plan
    changes: Mapping[Side, Collection[str]] = MappingProxyType({})
    is_unchanged: bool = False

    @classmethod
    def load(cls, session: Session, summary: Summary, policy: Policy) -> LoadedIndex | None:
        """Load the rows and the status that were saved with a summary; None if the file does not have both."""
        status = session.scanner.load_status(summary.mark) if session.checkout is not None else None
        if status is None:
            return None
        sides = {
            side: _known_side(session, side, saved, frozenset(incomplete))
            for side, saved, incomplete in zip(Side, status.sides, status.incomplete, strict=True)
        }
        whole = Whole(ORDINARY, directories=0)
        known = SnapshotIndex(sides, Ancestry(status.above), status.remembered, whole, session.rules, status.inhabited)
        before = replace(plan_of(summary.answer, policy, summary.saved_ns), counted=dict(status.counted))
        return cls(summary, status, known, before)

    @classmethod
    def of_process(cls, session: Session, policy: Policy) -> LoadedIndex | None:
        """Load what was saved last, if a process with the rows of this one can go on from that.

        None: there is none that holds for a run with this policy and the present state.
        """
        plain = replace(policy, prefer=Prefer.NEWEST)
        summary = session.scanner.load_summary(request_key(session.roots, plain, session.ignore), session.now_ns())
        index = None if summary is None else cls.load(session, summary, plain)
        return None if index is None else index.with_changes(session, ((), ()))

    def compared(self, session: Session) -> LoadedIndex:
        """Return it with the changes of both sides since the last scan or rescan of this process."""
        tables = session.scanner.stat_table(Side.STORE), session.scanner.stat_table(Side.WORKSPACE)
        summary = self.summary._replace(tables=tables)
        return replace(self, summary=summary).with_changes(session, summary.changed())

    def with_changes(self, session: Session, changed: Sequence[Collection[str]]) -> LoadedIndex:
        """Return it with the changes since; ``changed`` are, by side, the paths that have another status now."""
        changes = {}
        for side, paths, table, incomplete in zip(
            Side, changed, self.summary.tables, self.status.incomplete, strict=True
        ):
            session.scanner.restore(side, table, paths)
            changes[side] = {"" if path == "." else path for path in paths} | set(incomplete)
        return replace(self, changes=changes, is_unchanged=not any(changed))

    def is_usable(self, session: Session) -> bool:
        """Tell whether the state is the one of the time of saving."""
        return self.summary.generation == generation(session.directory)

    @property
    def policy(self) -> Policy:
        """The policy of the present run."""
        return self.before.policy

    @property
    def due(self) -> frozenset[str]:
        """The conversations that the next pass has to plan; for the others the last plan holds."""
        noted = (note.conversation for note in self.before.notes)
        return frozenset(self.summary.due).union(conversation for conversation in noted if conversation is not None)

    @property
    def spoken_of(self) -> frozenset[str]:
        """The conversations with an item or a note in the last plan."""
        return self.before.spoken_of

    @property
    def most(self) -> int:
        """The number of directories from which on a full scan costs less than scans of each."""
        return max(MOST_INCOMPLETE, sum(len(side.conversations) for side in self.status.sides) // _SHARE)


def save(
    session: Session,
    known: SnapshotIndex,
    plan: Plan,
    due: Collection[str],
    before: LoadedIndex | None,
    *,
    is_quiet: bool,
) -> list[Place] | None:
    """Save the index after a pass; ``plan`` is the plan of everything but of the conversations in ``due``.

    ``before``: the index that the process has loaded. ``is_quiet``: the plan had no actions. Only rows are saved if
    the next run needs a full scan, and nothing if the file has all of it already. Return the copies that it
    has to scan again; None: everything.
    """
    left = tuple(sorted(due))
    has_more = _has_more(session, known, plan)
    if (
        before is not None
        and before.is_unchanged
        and is_quiet
        and session.scanner.is_saved
        and before.is_usable(session)
    ):
        is_same = left == before.summary.due and answer_of(plan, besides=has_more) == before.summary.answer
        if is_same:
            return [
                Place(side, path) for side, paths in zip(Side, before.status.incomplete, strict=True) for path in paths
            ]
    session.state.checkpoint()
    mark = generation(session.directory)
    store, workspace = known.sides[Side.STORE], known.sides[Side.WORKSPACE]
    incomplete = _incomplete(session, store), _incomplete(session, workspace)
    if mark is None or not _is_resumable(session, known, plan) or sum(map(len, incomplete)) > MOST_INCOMPLETE:
        session.scanner.save()
        return None
    status = Status(
        (_side_status(store), _side_status(workspace)),
        known.ancestry.relations,
        known.remembered,
        known.inhabited,
        dict(plan.counted),
        incomplete,
    )
    summary = _summary(session, plan, mark, left, has_more=has_more)
    session.scanner.save(summary, status if before is None else status.since(before.status))
    return [Place(side, path) for side, paths in zip(Side, incomplete, strict=True) for path in paths]


def save_quiet(session: Session, known: SnapshotIndex, plan: Plan) -> None:
    """Save the index after a pass that has found nothing to do, with its answer, and without what a rescan needs."""
    session.state.checkpoint()
    mark = generation(session.directory)
    incomplete = any(_incomplete(session, side) for side in known.sides.values())
    if mark is None or incomplete or not _is_resumable(session, known, plan):
        session.scanner.save()
        return
    session.scanner.save(_summary(session, plan, mark, (), has_more=_has_more(session, known, plan)))


def release(session: Session, known: SnapshotIndex) -> None:
    """Free the copies of a full scan, for a process that stays; those that no row describes are kept."""
    for side in known.sides.values():
        side.release(session.scanner.copies_in_index(side.side), _incomplete(session, side))
    session.scanner.release_copies()


def _has_more(session: Session, known: SnapshotIndex, plan: Plan) -> bool:
    all_ids = chain.from_iterable(side.conversations() for side in known.sides.values())
    return bool(session.state.lost()) or not all(map(plan.counted.__contains__, all_ids))


def _summary(session: Session, plan: Plan, mark: Generation, due: tuple[str, ...], *, has_more: bool) -> Summary:
    return Summary(
        request_key(session.roots, plan.policy, session.ignore),
        mark,
        session.now_ns(),
        (session.roots.store_conversations, session.roots.workspace_conversations),
        answer_of(plan, besides=has_more),
        due,
        (session.scanner.stat_table(Side.STORE), session.scanner.stat_table(Side.WORKSPACE)),
    )


def _is_resumable(session: Session, known: SnapshotIndex, plan: Plan) -> bool:
    """Tell whether the next run may use this index instead of a full scan."""
    is_whole = any(item.conversation is None for item in plan.held)
    if session.messages or is_whole or plan.policy.git_busy or _has_pending_work(session):
        return False
    if not (known.is_ordinary and known.remembered):
        return False
    # Open runs are those of programs: if one is killed, the next run has to clean up.
    return not session.state.journal.open_runs()


def _has_pending_work(session: Session) -> bool:
    """Tell whether every run has something to do: a request waits, or the checkout is new."""
    number = session.site.number
    layout, store, _ = session.state.checkout_row(number) or (None, None, None)
    return session.state.has_requests(number) or layout is None or store is None


def answer_of(plan: Plan, *, besides: bool) -> Answer:
    """Return the content of a plan besides its actions, as plain values."""
    held, aside = (
        tuple(
            (each.conversation, each.title, each.unit, each.reason.name, each.message, each.resolve, each.findings)
            for each in items
        )
        for items in (plan.held, plan.aside)
    )
    notes = tuple((note.conversation, note.unit, note.reason.name, note.message) for note in plan.notes)
    return Answer(plan.layout, plan.states, held, aside, notes, plan.quiet, besides)


def plan_of(answer: Answer, policy: Policy, now_ns: int) -> Plan:
    """Return the plan with this answer, as of now."""
    held, aside = (
        tuple(
            Item(
                conversation=who,
                title=title,
                unit=unit,
                reason=Reason[reason],
                message=message,
                resolve=resolve,
                findings=findings,
            )
            for who, title, unit, reason, message, resolve, findings in items
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


def _known_side(session: Session, side: Side, saved: SideStatus, incomplete: frozenset[str]) -> SideIndex:
    build = session.scanner.copies_in_index(side)
    known = SideIndex(
        side, saved.identity, saved.conversations, lambda path: None if path in incomplete else build(path)
    )
    known.set_foreign(Foreign(*entry) for entry in saved.foreign)
    known.build_lookups()
    return known


def _side_status(known: SideIndex) -> SideStatus:
    foreign = tuple((entry.path, entry.what, entry.link, entry.special) for entry in known.all_foreign())
    return SideStatus(known.identity, dict(known.paths), foreign)


def _incomplete(session: Session, known: SideIndex) -> tuple[str, ...]:
    """Return the paths of the copies that can't be built from their rows."""
    rows = session.scanner.index(known.side).rows
    return tuple(path for path in known.loaded_paths() if not is_whole(known.copy(path), rows.get(path)))

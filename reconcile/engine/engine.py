"""The one pipeline of a run: refresh what is known, plan what that concerns, carry it out, save what is known then.

A part comes to the same plan as everything would (`reconcile.planning.incremental.scope`). A full scan is the case in
which everything has changed. It is made where nothing is known yet, a side as a whole gave cause to world closer,
another process has been at work in this checkout, a conversation seems to have left a side, or too much has changed.
Where others have changed what is remembered of conversations (a run in another worktree), these count as changed.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.outcome import Outcome
from reconcile.apply.run import close
from reconcile.engine.concurrent_writes import Others
from reconcile.index.adopted import rows_of
from reconcile.model.baseline import Baseline, WorldState
from reconcile.model.plan import Plan, states_of
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import ARCHIVE, Side
from reconcile.planning.filters import without_moving
from reconcile.planning.incremental.merge import completed
from reconcile.planning.incremental.scope import SnapshotIndex, concerned_by_run, named_by
from reconcile.planning.incremental.side_index import without_events
from reconcile.planning.rules.guards import has_lost_all
from reconcile.planning.simulate import surprises

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.apply.executor import Progress
    from reconcile.engine.saved_index import LoadedIndex
    from reconcile.engine.session import Session
    from reconcile.index.stat_cache import Row
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.guards import Whole
    from reconcile.state.journal import Mark

Changes: TypeAlias = "Mapping[Side, Collection[str]]"
"""By side, the paths to look at again, below the side's own: of conversations' directories, and of directories that
hold such. A path that has appeared or gone is best named itself: a directory of conversations is listed as a whole."""

MOST = 300
"""Directories that are looked at one by one; for more, a full scan costs less."""
_NAMED = 10
"""So many lost conversations are named by the run that misses them; `status` lists all."""


class Pass(Struct, frozen=True):
    """A plan, and the snapshots that it was made from; ``full``: both are about everything.

    ``conversations`` are those that the snapshots are about. Of a part, the plan's counts are the part's, and ``whole``
    is what is known of both sides besides. The plan leaves out the conversations that are being written at the moment,
    ``moving``: they are due in the next pass.
    """

    plan: Plan
    world: WorldState
    full: bool
    conversations: frozenset[str]
    whole: Whole | None = None
    moving: frozenset[str] = frozenset()
    is_cut: bool = False
    """The plan does not do all that it was made for: what changed since a saved plan was made is left out."""

    def is_about(self, conversation: str | None) -> bool:
        """Tell whether the plan has the last word on a conversation; None stands for a side as a whole."""
        return conversation not in self.moving and (self.full or conversation in self.conversations)

    @property
    def is_limited(self) -> bool:
        """The plan says nothing of other conversations than those that it is about, though they may have changed."""
        return self.is_cut or not self.plan.policy.is_unlimited

    @property
    def concerned(self) -> frozenset[str]:
        """The conversations of the pass, with those that it makes."""
        return self.conversations | {action.conversation for action in self.plan.actions}


class CleanConversation(NamedTuple):
    """A clean conversation: its directory in the store with the index's row, and its directories in the workspace."""

    conversation: str
    path: str
    row: Row
    workspace_paths: tuple[str, ...]

    @property
    def is_archived(self) -> bool:
        """Whether it is in the store's archive."""
        return self.path.startswith(f"{ARCHIVE}/")

    @property
    def is_in_workspace(self) -> bool:
        """Whether the workspace has it."""
        return bool(self.workspace_paths)


class Engine:
    """Passes of one process over one session, at the cost of what has changed since the last one.

    A pass that writes is made while reconcile's own lock is held: `begin` or `refresh`, `plan`, `apply`, and `save` for
    the next process. A pass that only reads needs no lock, and ends with `plan`.
    """

    def __init__(self, session: Session, index: LoadedIndex | None = None) -> None:
        """Know nothing yet; ``index`` is what an earlier process has saved."""
        self.session = session
        self.index = index
        self.full_scan: WorldState | None = None
        """The full scan at both sides, where the last refresh was one."""
        self._known: SnapshotIndex | None = None
        self._policy: Policy | None = None
        """The last plan's: its settings decide what every conversation comes to."""
        self._others = Others(session.state, session.checkout, MOST)
        self._most = MOST
        self._since: Mark | None = None
        self._changed: frozenset[str] = frozenset()
        """The conversations that have changed since the last pass was applied."""
        self._due: frozenset[str] = frozenset()
        """The conversations that the last pass has left undone, or that were not concluded because of that."""
        self._open = True
        """Any conversation may be due: the last plan was not applied, or what it held concerns a side as a whole."""

    # What is known

    def begin(self) -> None:
        """Bring up to date what the last process has saved; make a full scan where that no longer holds."""
        index = self.index
        if index is None or not index.holds(self.session):
            self.index = None
            self.refresh()
            return
        self._known, self._policy, self._due, self._most = index.known, index.policy, index.due, index.most
        self._open = False
        self._others.begin()
        # Opened first, then compared: a write in between is noticed by one or the other.
        if index.holds(self.session):
            self.refresh(index.changes)
        else:
            self.refresh()
        if self.full_scan is not None:
            self.index = None

    def refresh(self, changes: Changes | None = None) -> None:
        """Look again at what has changed; None: at everything, as also where that can't suffice."""
        if changes is None or not self._take_in_changes(changes):
            self._scan()

    @property
    def known(self) -> SnapshotIndex:
        """Both sides as they are known; there was a refresh."""
        if self._known is None:
            assert self.full_scan is not None  # noqa: S101 - see above
            self._known = SnapshotIndex.of_world(self.full_scan, self.session.rules)
        return self._known

    @property
    def world(self) -> WorldState:
        """The full scan at both sides; one is made where the last refresh was about a part."""
        self.read_everything()
        assert self.full_scan is not None  # noqa: S101 - the scan has set it
        return self.full_scan

    def read_everything(self) -> None:
        """Make a full scan, if the last refresh was about a part."""
        if self.full_scan is None:
            self._scan()

    @property
    def due(self) -> frozenset[str]:
        """The conversations that have to be part of the next pass, whatever changes."""
        return self._due

    @property
    def goes_on(self) -> bool:
        """Another process may go on from here: nobody else has written to the state, and a part will suffice."""
        return not self._open and not self._others.have_written()

    def _scan(self) -> None:
        self._since = self.session.site.since
        self._others.begin()
        self.full_scan, self._known, self.index = self.session.scan(), None, None

    def _take_in_changes(self, changes: Changes) -> bool:
        """Know what is there now; False where that can't be told without looking at everything."""
        if self._known is None or self._open or self.session.format.places is not None:
            return False  # of a format with fixed places, what is derived follows from everything
        if self.session.state.has_requests(self.session.checkout):
            return False  # each of them is tried by every pass
        others = self._others.changed()
        if others is None or sum(map(len, changes.values())) > self._most:
            return False
        programs = self._written_by_programs()
        if programs and not programs <= self._known.present():
            return False
        taken = self._take_in(changes)
        taken = taken and self._take_in_others(replace(taken, changed=taken.changed | programs), changes)
        if taken is None or taken.left or not self._known.suffices():
            return False
        self.full_scan = None
        self._changed |= taken.changed | others
        return True

    def _written_by_programs(self) -> frozenset[str]:
        """Return what the library has written since the last pass began, heard of or not; both sides may have it."""
        since, self._since = self._since, self.session.site.since
        return self.session.state.journal.written_since(since) if since is not None else frozenset()

    def _take_in(self, changes: Changes) -> _Taken | None:
        """Know what is there now in some directories; None where that can't be told without looking at everything."""
        changed: set[str] = set()
        left: set[str] = set()
        for side in changes:
            if not changes[side]:
                continue
            known = self.known.sides[side]
            again = self.session.scanner.rescan(known, changes[side])
            if again is None:
                return None
            whole = {each for path in again.gone if known.is_outside_trash(each := known.paths[path])}
            changed |= {known.paths[path] for path in again.gone}
            for path in again.gone:
                known.drop(path)
            for copy in again.copies:
                before = known.put(copy)
                if before != copy:
                    changed |= {copy.conversation} | ({before.conversation} if before else set())
            left |= {each for each in whole if not known.is_outside_trash(each)}
        return _Taken(changed, left)

    def _take_in_others(self, taken: _Taken, changes: Changes) -> _Taken | None:
        """Know what is there now in all directories of what has changed: one may have gone, and is not yet heard of.

        A directory that is moved into a new one is heard of at the new place long before the old one.
        """
        others = {
            side: {copy.path for each in taken.changed for copy in known.of(each)}.difference(changes.get(side, ()))
            for side, known in self.known.sides.items()
        }
        more = self._take_in(others)
        return more and _Taken(taken.changed | more.changed, taken.left | more.left)

    def _remembered(self, conversations: Collection[str]) -> Baseline:
        return self.session.state.load(self.session.checkout, conversations)

    # Planning

    def plan(
        self,
        policy: Policy,
        *,
        moving: frozenset[str] = frozenset(),
        also: Collection[str] = (),
        now_ns: int | None = None,
    ) -> Pass:
        """Plan what has changed and what the policy names; everything, where a part can't tell.

        ``moving`` are left out, ``also`` are part of it in any case, ``now_ns``: as if it were then.

        Raises:
            RequestError, NoRunError, NoVersionError, VaultError: what the policy asks for can't be done.
        """
        scope = self._scope(policy, also)
        if scope is not None and not scope and policy.is_unlimited:
            plan = Plan(layout=policy.layout.value, policy=self.session.surroundings(policy), quiet=True)
            return Pass(plan, self.known.world_of((), Baseline()), full=False, conversations=frozenset())
        # here: most processes find that nothing has changed
        from reconcile.engine.dispatch import plan_as_asked

        self._open = True
        if scope is None:
            world, self._policy = self.world, policy
            plan, ids = plan_as_asked(self.session, world, policy, now_ns), _conversations_of(world)
            return Pass(without_moving(plan, moving), world, full=True, conversations=ids, moving=moving)
        part = self.known.part(scope, self._remembered)
        world = self.session.with_events(part.world)
        plan = plan_as_asked(self.session, world, policy, now_ns, part.whole)
        if os.environ.get("RECONCILE_VERIFY"):
            from reconcile.engine.verify import verify

            verify(self.session, self.known, plan, part.conversations)
        return Pass(without_moving(plan, moving), world, False, part.conversations, part.whole, moving)  # noqa: FBT003

    def decide(self, pass_: Pass, policy: Policy) -> PlanningContext:
        """Decide what a pass is about, without planning: what `status` and `ls` show."""
        return self.session.planning_context(pass_.world, policy, pass_.whole)

    @property
    def noteworthy(self) -> frozenset[str]:
        """The conversations of which the last run said more than a state, or nothing at all."""
        if self.index is None:
            return frozenset()
        return self.index.spoken_of | (self.known.present() - self.index.before.counted.keys())

    def states_besides(self, pass_: Pass) -> dict[str, int]:
        """Return how many conversations that a pass is not about are in each state."""
        if pass_.full or self.index is None:
            return {}
        counted = self.index.before.counted
        return Counter(state for each, state in counted.items() if each not in pass_.conversations)

    def clean_conversations(self, pass_: Pass) -> Iterator[CleanConversation]:
        """Yield the conversations that a pass is not about, as the index knows them; none where it is about all."""
        if pass_.full or self.index is None:
            return
        store, workspace = (self.known.sides[side] for side in (Side.STORE, Side.WORKSPACE))
        rows = self.session.scanner.index(Side.STORE).rows
        for conversation in self.index.before.counted:
            if conversation not in pass_.conversations:
                (path,) = store.paths_of(conversation)
                yield CleanConversation(conversation, path, rows[path], workspace.paths_of(conversation))

    def empty_directories(self, pass_: Pass) -> list[Copy]:
        """Return the directories of a pass that hold neither a file nor another conversation."""
        from reconcile.planning.diagnosis import empty_directories  # here: for listings alone

        empty = empty_directories(pass_.world.store, pass_.world.workspace)
        return [copy for copy in empty if not self.known.sides[copy.side].inside(copy.path)]

    def completed(self, pass_: Pass, *, with_places: bool = False) -> Plan:
        """Return a pass's plan with what the last one said of all other conversations: that of everything.

        ``with_places``: also with the workspace's directory of each, which only a plan's text has.
        """
        if pass_.full or self.index is None or not pass_.plan.policy.is_unlimited:
            return pass_.plan
        plan = completed(pass_.plan, pass_.concerned, self.index.before)
        if not with_places or plan.quiet:
            return plan
        known = self.known.sides[Side.WORKSPACE]
        places = {known.paths[path]: path for path in known.live_paths if known.paths[path] not in pass_.concerned}
        return replace(plan, places=tuple(sorted({**places, **dict(plan.places)}.items())))

    def _scope(self, policy: Policy, also: Collection[str]) -> frozenset[str] | None:
        """Return the conversations that a plan is about, before its closure; None: everything."""
        if self.full_scan is not None or (self._policy is not None and _settings(self._policy) != _settings(policy)):
            return None
        named = self._named(policy)
        return None if named is None else self._changed.union(self._due, named, also)

    def _named(self, policy: Policy) -> frozenset[str] | None:
        """Return the conversations that a policy names, those of an earlier run or of a version included; None: all."""
        named, state, fmt = named_by(policy), self.session.state, self.session.format
        if named is None or policy.request is None:
            return named
        from reconcile.model.policy import RestoreRequest, UndoRequest  # here, as below: a plain run asks for nothing

        match policy.request:
            case UndoRequest(run):
                from reconcile.engine.run_history import find_run, past_run

                return named | concerned_by_run(past_run(state, find_run(state, run), self.session.project), fmt)
            case RestoreRequest(version):
                from reconcile.engine.version_names import find_versions

                return named.union(each.conversation for each in find_versions(state, version, fmt))
            case _:
                return named

    # Carrying out

    def apply(self, pass_: Pass, command: str, progress: Progress = lambda *_: None) -> Outcome:
        """Carry out a pass, look again at what it touched, and remember what was achieved.

        A plan with nothing to do, on sides that are known, writes nothing at all.
        """
        plan, before = pass_.plan, self._changed | self._due
        outcome, after = Outcome(), pass_.world
        met: _Taken | None = _NOTHING
        if not plan.quiet:
            outcome, after, met = self._carry_out(pass_, command, progress)
        # What was written meanwhile is known by now, and still to be acted on when it is heard of.
        surprised = surprises(plan, outcome.undone(), pass_.world, after) if plan.actions else frozenset[str]()
        surprised |= met.beside(plan.concerned if pass_.full else pass_.concerned) if met is not None else frozenset()
        self._due = self._left(pass_, outcome) | (pass_.moving & pass_.conversations) | surprised
        if pass_.is_limited:
            self._due |= before if not pass_.full else _conversations_of(after) - self.clean_states(None).keys()
        self._open = any(item.conversation is None for item in plan.held)
        self._open = self._open or met is None or not surprised.isdisjoint(met.left)
        # Were a side that was empty emptied again, it would look as it did at the last full scan.
        self._open = self._open or not self.known.suffices()
        self._changed, self.full_scan = frozenset(), None
        if pass_.full:
            self.session.scanner.save()
            self.session.state.release_cache()
        self._others.end()
        return outcome

    def save(self, pass_: Pass, outcome: Outcome) -> None:
        """Save what is known after a pass for the next process; nothing where that could not go on from it."""
        from reconcile.engine.saved_index import save  # here: a dry run saves nothing

        self.session.scanner.save()
        if self.session.format.places is None and self.goes_on:
            plan, due = self._said(pass_)
            save(self.session, self.known, plan, due, self.index, is_quiet=outcome.run is None)

    def _said(self, pass_: Pass) -> tuple[Plan, frozenset[str]]:
        """Return what a plain plan of everything says now, and of which conversations it says nothing: those are due.

        What a pass has changed is classified anew: what is clean is said to be so, all else is due.
        """
        is_plain, known = pass_.plan.policy.is_plain and not pass_.is_cut, self.known
        plan = self.completed(pass_)
        again = pass_.plan.concerned
        if is_plain:
            again = again | plan.spoken_of if again else again
        elif self.index is not None:
            plan, again = self.index.before, self._due | pass_.concerned
        else:
            plan, again = Plan(layout=plan.layout, policy=plan.policy), known.conversations()
        rest = self.clean_states(again) if again else {}
        gone = rest.keys() if is_plain else again
        counted = {each: state for each, state in plan.counted.items() if is_plain or each not in again} | rest
        due = frozenset(each for each in (self._due | again) - rest.keys() if each in known)
        held = tuple(item for item in plan.held if item.conversation not in gone)
        aside = tuple(item for item in plan.aside if item.conversation not in gone)
        # What a note says of a side was of that run alone, unless it is of a foreign file.
        lasting = (note for note in plan.notes if note.conversation is not None or note.reason is Reason.FOREIGN)
        notes = tuple(note for note in lasting if note.conversation not in gone)
        said = replace(
            plan,
            held=held,
            aside=aside,
            notes=notes,
            counted=counted,
            states=states_of(counted),
            quiet=not (due or held or aside or notes),
            policy=pass_.plan.policy,
        )
        return said, due

    def close(self) -> None:
        """Save what has been learned of the files since the last full pass."""
        self.session.scanner.save()

    def clean_states(self, conversations: Collection[str] | None) -> dict[str, str]:
        """Return the states of those that are clean and in their place, or of all such: no plan says more of them."""
        assert self._policy is not None  # noqa: S101 - a plan was made
        baseline = self.session.state.load(self.session.checkout, conversations)
        chosen = self.known.conversations() if conversations is None else conversations
        return self.known.clean_states(chosen, baseline, self._policy)

    def _carry_out(self, pass_: Pass, command: str, progress: Progress) -> tuple[Outcome, WorldState, _Taken | None]:
        """Carry out a pass, and know what is there then, and what is remembered.

        Return as well what is another than before. Of conversations that the plan isn't about, that is what somebody
        has made, moved or written meanwhile. None: it can't be told what that is.
        """
        session, plan, before = self.session, pass_.plan, pass_.world
        if pass_.full:
            plan = replace(plan, store_lost=has_lost_all(before.store, before.baseline, session.format))
        missed = session.state.lost() if pass_.full else {}
        outcome = session.carry_out(plan, before, command, progress)
        if pass_.full:
            after = self._world_after(pass_, outcome)
            session.remember(plan, before, after, outcome)
            self._tell_lost(missed, after)
            self._known = SnapshotIndex.of_world(
                replace(after, baseline=session.state.load(session.checkout)), session.rules
            )
            met = _met(before, after)
        else:
            after, met = self._take_in_touched(pass_)
            session.remember(plan, before, after, outcome, self.known.whole)
            self.known.update_ancestry(pass_.concerned, self._remembered(pass_.concerned))
        close(session.site, outcome)
        return outcome, after, met

    def _world_after(self, pass_: Pass, outcome: Outcome) -> WorldState:
        """Look at the sides again that a full pass has written to."""
        session, plan, before = self.session, pass_.plan, pass_.world
        if not plan.actions:
            return replace(before, baseline=session.state.load(session.checkout))
        copies = (*before.store.copies, *before.workspace.copies)
        session.scanner.add_rows(rows_of(outcome.new_files, plan.actions, copies, session.format))
        return session.scan({action.target.side for action in plan.actions})

    def _take_in_touched(self, pass_: Pass) -> tuple[WorldState, _Taken | None]:
        """Look again at what a pass about a part has touched, and load what is remembered by then."""
        session, conversations, touched = self.session, pass_.concerned, _touched(pass_.plan)
        met = self._take_in(touched)
        met = met and self._take_in_others(replace(met, changed=met.changed - conversations), touched)
        if met is None:
            self._known = SnapshotIndex.of_world(session.scan(), session.rules)
        others = met.changed - conversations if met is not None else set()
        self.known.update_ancestry(others, self._remembered(others))
        return self.known.world_of(conversations, self._remembered(conversations)), met

    def _left(self, pass_: Pass, outcome: Outcome) -> frozenset[str]:
        """Return what a pass has left undone, with what is remembered although it is nowhere: that waits for it."""
        undone = set(outcome.undone())
        if not undone:
            return frozenset()
        if not pass_.full:
            return pass_.concerned
        left = {action.conversation for action in pass_.plan.actions if action.id in undone}
        return frozenset(left | self.known.absent())

    def _tell_lost(self, missed: Mapping[str, str | None], after: WorldState) -> None:
        """Name what was lost with the store, once; what is there again is missed no more."""
        session = self.session
        if not (now := session.state.lost()):
            return
        from reconcile.engine.lost_versions import lost_with_store

        session.state.remove_lost(now.keys() & {copy.conversation for copy in after.store.copies})
        new = [
            each for each in lost_with_store(session, _conversations_there(after)) if each.conversation not in missed
        ]
        for each in new[:_NAMED]:
            way = f": {each.command}" if each.command else ""
            session.messages.append(f"lost with the store: {each.title or each.conversation}; {each.left}{way}")
        if len(new) > _NAMED:
            session.messages.append(f"lost with the store: {len(new) - _NAMED} more; reconcile status lists them")


def _settings(policy: Policy) -> tuple[object, ...]:
    """Return the settings that decide what every conversation comes to, whatever a command asks for."""
    return policy.layout, policy.stream, policy.diverged, policy.missing, policy.prefer


class _Taken(Struct, frozen=True):
    """The conversations of which something is another than it was known to be, and those that have left a side."""

    changed: set[str]
    left: set[str]

    def beside(self, conversations: Collection[str]) -> frozenset[str]:
        """Return what others than these have to do with it."""
        return frozenset(self.changed | self.left).difference(conversations)


_NOTHING = _Taken(set(), set())


def _conversations_there(world: WorldState) -> frozenset[str]:
    return frozenset(copy.conversation for copy in (*world.store.copies, *world.workspace.copies))


def _conversations_of(world: WorldState) -> frozenset[str]:
    return _conversations_there(world).union(world.baseline.agreed)


def _touched(plan: Plan) -> dict[Side, set[str]]:
    """Return what a plan may have changed, by side."""
    touched: dict[Side, set[str]] = {side: set() for side in Side}
    for action in plan.actions:
        for place in (action.target, action.source, *(write.target for write in action.writes), *action.removes):
            if place is not None:
                touched[place.side].add(place.path)
    return touched


def _met(before: WorldState, after: WorldState) -> _Taken | None:
    """Return the conversations of which a copy came, went, or is another.

    None: something else is another, too. That is nobody's, or said of a side as a whole.
    """
    changed: set[str] = set()
    for was, now in ((before.store, after.store), (before.workspace, after.workspace)):
        if was.foreign != now.foreign or was.problems != now.problems or (was.exists and was.identity != now.identity):
            return None
        there = {copy.path: without_events(copy) for copy in was.copies}
        for copy in now.copies:
            known = there.pop(copy.path, None)
            if known != without_events(copy):
                changed |= {copy.conversation} | ({known.conversation} if known is not None else set())
        changed.update(copy.conversation for copy in there.values())
    return _Taken(changed, set())

"""The pipeline of a run: refresh the snapshot index, plan what has changed, apply the plan, and save the index.

A plan of a part equals the plan of everything (`reconcile.planning.incremental.scope`). A full scan is needed if there
is no index, if a side as a whole has a problem, or if too much has changed. It is needed too if a conversation seems to
have left a side, or if another process has changed this checkout's own state. Conversations whose baseline another
process has changed (a run in another worktree) count as changed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.executor import Outcome
from reconcile.fs.posix import release_memory
from reconcile.index.rows import rows_of_new
from reconcile.model.baseline import Baseline, WorldState
from reconcile.model.plan import Plan, states_of
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import ARCHIVE, Side
from reconcile.planning.filters import without_moving
from reconcile.planning.incremental.scope import SnapshotIndex, completed, concerned_by_run, named_by
from reconcile.planning.incremental.side_index import without_events
from reconcile.planning.rules.guards import has_lost_all
from reconcile.planning.simulate import surprises

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.apply.executor import Progress
    from reconcile.engine.saved_index import LoadedIndex
    from reconcile.engine.session import Session
    from reconcile.index.rows import Row
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Place
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.guards import Whole
    from reconcile.state.database import State
    from reconcile.state.journal import Mark


Changes: TypeAlias = "Mapping[Side, Collection[str]]"
"""By side, the paths to rescan, relative to the side's directory.

These are directories of conversations, and directories that hold such. For a path that has appeared or gone, name the
path itself: of a directory that holds conversations, all entries are listed.
"""

MOST = 300
"""Directories up to which a rescan is used; for more, a full scan costs less."""
_MAX_NAMED = 10
"""Lost conversations that a run names; `status` lists all."""


class Pass(Struct, frozen=True):
    """A plan, and the snapshots that it was made from; ``full``: both cover everything.

    ``conversations`` are those that the snapshots cover. For a part, the plan's counts are those of the part, and
    ``whole`` has the properties of both sides as wholes. The plan leaves out ``moving``, the conversations that are
    being written at the moment: they are due in the next pass.
    """

    plan: Plan
    world: WorldState
    full: bool
    conversations: frozenset[str]
    whole: Whole | None = None
    moving: frozenset[str] = frozenset()
    is_cut: bool = False
    """The plan leaves out conversations that have changed since the saved plan was made."""

    def is_about(self, conversation: str | None) -> bool:
        """Tell whether the plan covers a conversation; None stands for a side as a whole."""
        return conversation not in self.moving and (self.full or conversation in self.conversations)

    @property
    def is_limited(self) -> bool:
        """The plan leaves out conversations that may have changed, by the user's choice."""
        return self.is_cut or not self.plan.policy.is_unlimited

    @property
    def concerned(self) -> frozenset[str]:
        """The conversations of the pass, with those that its actions create."""
        return self.conversations | {action.conversation for action in self.plan.actions}


class CleanConversation(Struct, frozen=True):
    """A clean conversation: its state, its path in the store with the index's row, and its paths in the workspace."""

    conversation: str
    state: str
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
    """The passes of one process over one session; a pass costs what has changed since the last one.

    A pass that writes holds the run lock: `begin` or `refresh`, `plan`, `apply`, and `save` for the next process. A
    pass that only reads needs no lock, and ends with `plan`.
    """

    def __init__(self, session: Session, index: LoadedIndex | None = None) -> None:
        """Create the engine; ``index`` was saved by an earlier process."""
        self.session = session
        self.index = index
        self.full_scan: WorldState | None = None
        """The full scan of both sides; None if the last refresh was a rescan."""
        self._known: SnapshotIndex | None = None
        self._policy: Policy | None = None
        """The policy of the last plan: its settings affect every conversation."""
        self._others = ConcurrentWrites(session.state, session.checkout, MOST)
        self._most = MOST
        self._journal_mark: Mark | None = None
        self._changed: frozenset[str] = frozenset()
        """The conversations that have changed since the last pass was applied."""
        self._due: frozenset[str] = frozenset()
        """The conversations that the last pass has not completed, and those that wait for them."""
        self._needs_full_plan = True
        """Any conversation may be due: the last plan was not applied, or a held item concerns a side as a whole."""
        self._unsaved: frozenset[str] = frozenset()
        """The conversations of the passes since the index was loaded, which has the states of before."""
        self._incomplete: list[Copy] | None = None
        """The copies that the index that `settle` has saved does not have; None: it has saved none."""
        self._baseline: Baseline | None = None
        """The baseline after a full pass, which `save` needs: kept for that call alone, as it may be large."""

    # The index

    def begin(self) -> None:
        """Update the saved index; make a full scan if it isn't valid any more."""
        index = self.index
        if index is None or not index.is_usable(self.session):
            self.index = None
            self.refresh()
            return
        self._known, self._policy, self._due, self._most = index.known, index.policy, index.due, index.most
        self._needs_full_plan = False
        self._others.begin()
        # The first check opens the state, the second compares: one of them notices a write in between.
        if index.is_usable(self.session):
            self.refresh(index.changes)
        else:
            self.refresh()
        if self.full_scan is not None:
            self.index = None

    def check(self, policy: Policy, changes: Changes) -> None:
        """Find all changes since the last pass, or since another process has saved the index, and rescan them.

        ``changes`` are known already. A full scan is made if a rescan does not suffice, or if the store lacks
        conversations of the baseline: only the whole store shows why.
        """
        from reconcile.engine.saved_index import LoadedIndex  # here: for processes that stay

        if self._known is None and self.full_scan is None:
            index = LoadedIndex.of_process(self.session, policy)
            self.index = index and index.compared(self.session)
            self.begin()
        elif self.index is None:
            self.refresh()
        else:
            self.index = self.index.compared(self.session)
            self.refresh({side: {*self.index.changes[side], *changes.get(side, ())} for side in Side})
        if self.full_scan is None and self._lacks_agreed():
            self.refresh()

    def refresh(self, changes: Changes | None = None) -> None:
        """Rescan the changes; None: make a full scan, as also if a rescan does not suffice."""
        suffices = not self._needs_full_plan
        self._needs_full_plan = True  # if the rescan fails in the middle, the next one must not go on from there
        if changes is None or not suffices or not self._rescan(changes):
            self._scan()
        else:
            self._needs_full_plan = False

    @property
    def known(self) -> SnapshotIndex:
        """The index of both sides; a refresh must have been made."""
        if self._known is None:
            assert self.full_scan is not None  # noqa: S101 - see above
            self._known = SnapshotIndex.of_world(self.full_scan, self.session.rules)
        return self._known

    @property
    def world(self) -> WorldState:
        """The full scan of both sides; it is made now if the last refresh was a rescan."""
        self.read_everything()
        assert self.full_scan is not None  # noqa: S101 - the scan has set it
        return self.full_scan

    def read_everything(self) -> None:
        """Make a full scan if the last refresh was a rescan."""
        if self.full_scan is None:
            self._scan()

    @property
    def due(self) -> frozenset[str]:
        """The conversations that the next pass must cover, even if nothing changes."""
        return self._due

    @property
    def is_resumable(self) -> bool:
        """The next process can use the saved index: no other process has written, and a rescan will suffice."""
        return not self._needs_full_plan and not self._others.have_written()

    def _scan(self) -> None:
        self._baseline = None
        self._journal_mark = self.session.site.since
        self._others.begin()
        self._known = self.index = None  # before the scan: it needs much memory
        self._unsaved = frozenset()
        self.full_scan = self.session.scan()

    def _rescan(self, changes: Changes) -> bool:
        """Update the index by a rescan of the changes; return False if only a full scan suffices."""
        if self._known is None or self.session.format.places is not None:
            return False  # in a format with fixed places, derived data depends on everything
        if self.session.state.has_requests(self.session.checkout):
            return False  # every pass tries all pending requests
        others = self._others.changed()
        if others is None or sum(map(len, changes.values())) > self._most:
            return False
        programs = self._written_by_programs()
        if programs and not programs <= self._known.present():
            return False
        update = self._rescan_paths(changes)
        update = update and self._rescan_other_directories(replace(update, changed=update.changed | programs), changes)
        if update is None or update.left or not self._known.suffices():
            return False
        self.full_scan = None
        self._changed |= update.changed | others
        return True

    def _lacks_agreed(self) -> bool:
        """Tell whether the store lacks a conversation that the baseline has, and that no run has removed on purpose."""
        lacking = self.known.remembered.difference(self.known.sides[Side.STORE].conversations())
        baseline = self._load_baseline(lacking) if lacking else Baseline()
        return not baseline.agreed.keys() <= baseline.tombstones.keys()

    def _written_by_programs(self) -> frozenset[str]:
        """Return the conversations that the library has written since the last pass began, even without an event."""
        since, self._journal_mark = self._journal_mark, self.session.site.since
        return self.session.state.journal.written_since(since) if since is not None else frozenset()

    def _rescan_paths(self, changes: Changes) -> _Update | None:
        """Rescan these paths, and update the index; return None if only a full scan suffices."""
        changed: set[str] = set()
        left: set[str] = set()
        for side in changes:
            if not changes[side]:
                continue
            known = self.known.sides[side]
            rescanned = self.session.scanner.rescan(known, changes[side])
            if rescanned is None:
                return None
            gone = {known.paths[path] for path in rescanned.gone}
            present = {conversation for conversation in gone if known.is_outside_trash(conversation)}
            changed |= gone
            for path in rescanned.gone:
                known.drop(path)
            for copy in rescanned.copies:
                before = known.put(copy)
                if before != copy:
                    changed |= {copy.conversation} | ({before.conversation} if before else set())
            left |= {conversation for conversation in present if not known.is_outside_trash(conversation)}
        return _Update(changed, left)

    def _rescan_other_directories(self, update: _Update, changes: Changes) -> _Update | None:
        """Rescan the other directories of changed conversations: one may be gone, and its event not yet received.

        If a directory moves into a new one, the event of the new place may come long before that of the old place.
        """
        others = {
            side: {copy.path for changed in update.changed for copy in known.of(changed)} - set(changes.get(side, ()))
            for side, known in self.known.sides.items()
        }
        more = self._rescan_paths(others)
        return more and _Update(update.changed | more.changed, update.left | more.left)

    def _load_baseline(self, conversations: Collection[str]) -> Baseline:
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
        """Plan what has changed and what the policy names; plan everything if a part does not suffice.

        ``moving`` are left out; ``also`` are added. ``now_ns`` is the time of the plan, by default the current one.

        Raises:
            RequestError, NoRunError, NoVersionError, VaultError: the policy's request can't be carried out.
        """
        scope = self._scope(policy, also)
        if scope is not None and not scope and policy.is_unlimited:
            plan = Plan(layout=policy.layout.value, policy=self.session.surroundings(policy), quiet=True)
            return Pass(plan, self.known.world_of((), Baseline()), full=False, conversations=frozenset())
        # here: most processes find no changes
        from reconcile.engine.dispatch import plan_for_policy, verify

        self._needs_full_plan = True
        if scope is None:
            world, self._policy = self.world, policy
            plan, ids = plan_for_policy(self.session, world, policy, now_ns), _conversations_of(world)
            return Pass(without_moving(plan, moving), world, full=True, conversations=ids, moving=moving)
        part = self.known.part(scope, self._load_baseline)
        world = self.session.with_events(part.world)
        plan = plan_for_policy(self.session, world, policy, now_ns, part.whole)
        if os.environ.get("RECONCILE_VERIFY"):
            verify(self.session, self.known, plan, part.conversations)
        return Pass(without_moving(plan, moving), world, False, part.conversations, part.whole, moving)  # noqa: FBT003

    def decide(self, pass_: Pass, policy: Policy) -> PlanningContext:
        """Decide the conversations of a pass without planning, for `status` and `ls`."""
        return self.session.planning_context(pass_.world, policy, pass_.whole)

    def decide_some(self, conversations: Collection[str], policy: Policy) -> PlanningContext:
        """Decide some conversations and their relatives as they were scanned, without planning and at their cost."""
        part = self.known.part(frozenset(conversations), self._load_baseline)
        return self.session.planning_context(self.session.with_events(part.world), policy, part.whole)

    @property
    def noteworthy(self) -> frozenset[str]:
        """The conversations that the last run did not find clean, and those of the passes since."""
        if self.index is None:
            return frozenset()
        without_state = self.known.present() - self.index.before.counted.keys()
        return self.index.spoken_of | self.index.due | without_state | self._unsaved

    def states_besides(self, pass_: Pass) -> dict[str, str]:
        """Return the state of each conversation that a pass does not cover."""
        if pass_.full or self.index is None:
            return {}
        counted = self.index.before.counted
        return {each: state for each, state in counted.items() if each not in pass_.conversations}

    def clean_conversations(self, pass_: Pass) -> Iterator[CleanConversation]:
        """Yield the conversations that a pass does not cover, from the index; none if it covers everything."""
        if pass_.full or self.index is None:
            return
        store, workspace = (self.known.sides[side] for side in (Side.STORE, Side.WORKSPACE))
        rows, covered = self.session.scanner.index(Side.STORE).rows, pass_.conversations
        store_paths, workspace_paths = store.paths_of, workspace.paths_of
        for conversation, state in self.index.before.counted.items():
            if conversation not in covered:
                (path,) = store_paths(conversation)
                yield CleanConversation(conversation, state, path, rows[path], workspace_paths(conversation))

    def empty_directories(self, pass_: Pass) -> list[Copy]:
        """Return the directories of a pass that hold neither a file nor another conversation."""
        from reconcile.planning.diagnosis import empty_directories  # here: for listings alone

        empty = empty_directories(pass_.world.store, pass_.world.workspace)
        return [copy for copy in empty if not self.known.sides[copy.side].inside(copy.path)]

    def completed(self, pass_: Pass, *, with_places: bool = False) -> Plan:
        """Return the plan of everything: a pass's plan, merged with the last plan of all other conversations.

        ``with_places``: add the workspace's directory of each conversation, which only a plan's text shows.
        """
        if pass_.full or self.index is None or not pass_.plan.policy.is_unlimited:
            return pass_.plan
        plan = completed(pass_.plan, pass_.concerned, self.index.before, self.session.format.places)
        if not with_places or plan.quiet:
            return plan
        known = self.known.sides[Side.WORKSPACE]
        places = {known.paths[path]: path for path in known.live_paths if known.paths[path] not in pass_.concerned}
        return replace(plan, places=tuple(sorted({**places, **dict(plan.places)}.items())))

    def _scope(self, policy: Policy, also: Collection[str]) -> frozenset[str] | None:
        """Return the conversations that a plan must cover, without their closure; None: everything."""
        if self.full_scan is not None or (self._policy is not None and _settings(self._policy) != _settings(policy)):
            return None
        named = self._named_by(policy)
        return None if named is None else self._changed.union(self._due, named, also)

    def _named_by(self, policy: Policy) -> frozenset[str] | None:
        """Return the conversations that a policy names, also by an earlier run or a version; None: everything."""
        named, state, fmt = named_by(policy), self.session.state, self.session.format
        if named is None or policy.request is None:
            return named
        # here and below: a plain run has no request
        from reconcile.model.policy import ForkRequest, RemoveRequest, RestoreRequest, UndoRequest

        match policy.request:
            case UndoRequest(run):
                from reconcile.engine.run_history import find_run, past_run

                return named | concerned_by_run(past_run(state, find_run(state, run), self.session.project), fmt)
            case RestoreRequest(name):
                from reconcile.engine.versions import restorable

                return named.union(unit.conversation for unit in restorable(self.session, name).units)
            case RemoveRequest() | ForkRequest() if (places := fmt.places) is not None:
                return named.union(id_ for id_ in self.known.conversations() if places.owner(id_) in named)
            case _:
                return named

    # Applying

    def apply(
        self, pass_: Pass, command: str, progress: Progress = lambda *_: None, *, is_saved: bool = False
    ) -> Outcome:
        """Apply a pass, rescan the paths that it has touched, and update the baseline.

        A plan with nothing to do writes nothing, except secrets that it allows. ``is_saved``: the caller calls `save`
        next.
        """
        plan, before = pass_.plan, self._changed | self._due
        outcome, after = Outcome(), pass_.world
        changes: _Update | None = _NOTHING
        if plan.granted:
            self.session.secret_check.grant(plan)
        if not plan.quiet:
            outcome, rescan = self._execute(pass_, command, progress)
            after, changes = rescan.world, rescan.changes
        if outcome.message is not None:
            self.session.messages.append(outcome.message)
        # Writes of other programs during the pass are in the index by now, but still have to be planned.
        surprised = surprises(plan, outcome.undone(), pass_.world, after) if plan.actions else frozenset[str]()
        if changes is not None:
            surprised |= changes.outside_of(plan.concerned if pass_.full else pass_.concerned)
        self._due = self._undone(pass_, outcome) | (pass_.moving & pass_.conversations) | surprised
        if pass_.is_limited:
            self._due |= before if not pass_.full else _conversations_of(after) - self.clean_states(None).keys()
        self._needs_full_plan = any(item.conversation is None for item in plan.held)
        self._needs_full_plan = self._needs_full_plan or changes is None or not surprised.isdisjoint(changes.left)
        # If a side that was empty at the last full scan is filled and emptied again, no rescan notices it.
        self._needs_full_plan = self._needs_full_plan or not self.known.suffices()
        self._changed, self.full_scan = frozenset(), None
        if pass_.full:
            self.session.state.release_cache()
        if not is_saved:
            self._baseline = None
            self._unsaved |= pass_.concerned
        self._others.end()
        return outcome

    def save(self, pass_: Pass, outcome: Outcome) -> list[Place] | None:
        """Save the index after a pass for the next process; only its rows if that process needs a full scan.

        Of a format with fixed places, only what needs nothing: if something changes, the next process scans all.
        Return the places of the copies that a process that goes on from it has to scan again; None: it can't go on.
        """
        from reconcile.engine.saved_index import save, save_quiet  # here: a dry run saves nothing

        baseline, self._baseline = self._baseline, None
        places = self.session.format.places
        has_derived = places is not None and places.has_derived and not self.session.roots.is_of_remote
        if not self.is_resumable or has_derived:
            self.save_rows()
        elif places is None:
            plan, due = self._plan_of_everything(pass_, baseline, outcome.known_clean)
            return save(self.session, self.known, plan, due, self.index, is_quiet=outcome.run is None)
        elif outcome.run is None and pass_.plan.quiet and pass_.plan.policy.is_plain:
            save_quiet(self.session, self.known, pass_.plan)
        else:
            self.save_rows()
        return None

    def settle(self, pass_: Pass, outcome: Outcome) -> None:
        """Free the copies of a full scan and save the index after a pass; `resume` loads it when the pass is over.

        If it can't be saved, a later pass builds from the rows the copies that it needs.
        """
        scanner, self._baseline = self.session.scanner, None
        can_build = self.session.format.places is None
        if pass_.full and can_build:
            self.release()
        if self._unsaved <= pass_.concerned:
            self._unsaved = frozenset()
        incomplete = self.save(pass_, outcome)
        if incomplete is not None and self.index is not None and self.index.summary.mark == scanner.mark:
            self._unsaved = frozenset()  # there was nothing new
        elif incomplete is not None:
            self._incomplete = [self.known.sides[place.side].copy(place.path) for place in incomplete]
            self._known, self.index, self._unsaved = None, None, frozenset()
            scanner.release_all()
        elif pass_.full:
            self._known = self.known if can_build else None
            scanner.release_copies()
            scanner.release_tables()
        else:
            self._unsaved |= pass_.concerned

    def resume(self, policy: Policy) -> None:
        """Go on from the index that `settle` has saved; the next pass makes a full scan if it is out of date."""
        from reconcile.engine.saved_index import LoadedIndex  # here: for processes that stay

        incomplete, self._incomplete = self._incomplete, None
        if incomplete is None:
            return
        release_memory()
        self.session.scanner.load()
        index = LoadedIndex.of_process(self.session, policy)
        if index is not None:
            for copy in incomplete:
                index.known.sides[copy.side].put(copy)
            self.index, self._known, self._most = index, index.known, index.most

    def forget(self) -> None:
        """Forget what is known: the next check loads the index again, or makes a full scan."""
        self._known = self.index = self.full_scan = self._incomplete = None
        self.session.scanner.release_all()
        self.session.scanner.load()

    def save_for_next(self, policy: Policy) -> None:
        """Save the index after the passes since it was loaded, for the next process."""
        plan = Plan(layout=policy.layout.value, policy=self.session.surroundings(policy), quiet=True)
        nothing = self.known.world_of((), Baseline())
        self.save(Pass(plan, nothing, full=False, conversations=frozenset()), Outcome())

    @property
    def has_unsaved(self) -> bool:
        """The saved index does not have what the last passes did, and can be saved."""
        return self.index is not None and bool(self._unsaved)

    def _plan_of_everything(
        self, pass_: Pass, baseline: Baseline | None, known_clean: Collection[str]
    ) -> tuple[Plan, frozenset[str]]:
        """Return the plan of everything as a plain run would report it now, and the conversations that are due.

        The conversations that a pass has changed are classified again: each is either counted as clean, or due.
        ``baseline`` is the present one of everything; None: load it. ``known_clean`` are known to be clean.
        """
        is_plain, known = pass_.plan.policy.is_plain and not pass_.is_cut and not self._unsaved, self.known
        plan = self.completed(pass_)
        again = pass_.plan.concerned
        if is_plain:
            again = again | plan.spoken_of if again else again
        elif self.index is not None:
            plan, again = self.index.before, self._due | pass_.concerned | self._unsaved
        else:
            plan, again = Plan(layout=plan.layout, policy=plan.policy), known.conversations()
        clean = self.clean_states(again, baseline, known_clean) if again else {}
        done = clean.keys() if is_plain else again
        # A conversation that the pass has removed from both sides is counted no more.
        store = known.sides[Side.STORE]
        left = (key for key in plan.counted if key in store and (is_plain or key not in again))
        counted = {key: plan.counted[key] for key in left} | clean
        due = frozenset(conversation for conversation in (self._due | again) - clean.keys() if conversation in known)
        held = tuple(item for item in plan.held if item.conversation not in done)
        aside = tuple(item for item in plan.aside if item.conversation not in done)
        # A note on a side is valid for one run, unless it is about a foreign file.
        lasting = (note for note in plan.notes if note.conversation is not None or note.reason is Reason.FOREIGN)
        notes = tuple(note for note in lasting if note.conversation not in done)
        everything = replace(
            plan,
            held=held,
            aside=aside,
            notes=notes,
            counted=counted,
            states=states_of(counted, self.session.format.places),
            quiet=not (due or held or aside or notes),
            policy=pass_.plan.policy,
        )
        return everything, due

    def save_rows(self) -> None:
        """Save the index of the files' contents, so that the next process need not read them."""
        self.session.scanner.save()

    def release(self) -> None:
        """Free the copies of a full scan: a later pass builds from the rows those that it needs."""
        from reconcile.engine.saved_index import release  # here, as above

        release(self.session, self.known)

    def close(self) -> None:
        """Save the rows that passes have added."""
        self.save_rows()

    def clean_states(
        self, conversations: Collection[str] | None, baseline: Baseline | None = None, known_clean: Collection[str] = ()
    ) -> dict[str, str]:
        """Return the states of the clean and correctly placed ones of these conversations; None: of all.

        ``baseline`` is the present one; None: load it. ``known_clean`` are known to be clean.
        """
        assert self._policy is not None  # noqa: S101 - a plan was made
        baseline = baseline or self.session.state.load(self.session.checkout, conversations)
        chosen = self.known.conversations() if conversations is None else conversations
        return self.known.clean_states(chosen, baseline, self._policy, known_clean)

    def _execute(self, pass_: Pass, command: str, progress: Progress) -> tuple[Outcome, _Rescan]:
        """Execute the plan of a pass, and update the index; return the outcome, and the sides after it."""
        session, plan, before = self.session, pass_.plan, pass_.world
        if not pass_.full:
            outcome, after = session.execute(plan, before, lambda _: self._rescan_touched(pass_), command, progress)
            self.known.update_ancestry(pass_.concerned, self._load_baseline(pass_.concerned))
            return outcome, after
        plan = replace(plan, store_lost=has_lost_all(before.store, before.baseline, session.format))
        missed = session.state.lost()
        outcome, after = session.execute(
            plan, before, lambda outcome: self._scan_written(pass_, outcome), command, progress
        )
        self._report_lost(missed, after.world)
        self._baseline = session.state.load(session.checkout)
        self._known = SnapshotIndex.of_world(replace(after.world, baseline=self._baseline), session.rules)
        return outcome, after

    def _scan_written(self, pass_: Pass, outcome: Outcome) -> _Rescan:
        """Scan the sides again that a full pass has written to."""
        session, plan, before = self.session, pass_.plan, pass_.world
        if plan.actions:
            copies = (*before.store.copies, *before.workspace.copies)
            session.scanner.add_rows(rows_of_new(outcome.new_files, plan.actions, copies, session.format))
            after = session.scan({action.target.side for action in plan.actions})
        else:
            after = replace(before, baseline=session.state.load(session.checkout))
        return _Rescan(after, None, _changes_between(before, after))

    def _rescan_touched(self, pass_: Pass) -> _Rescan:
        """Rescan the paths that a pass of a part has touched, and load the updated baseline."""
        session, conversations, touched = self.session, pass_.concerned, _touched(pass_.plan)
        changes = self._rescan_paths(touched)
        if changes is not None:
            outside = replace(changes, changed=changes.changed - conversations)
            changes = self._rescan_other_directories(outside, touched)
        if changes is None:
            self._known = SnapshotIndex.of_world(session.scan(), session.rules)
        if changes is not None and (others := changes.changed - conversations):
            self.known.update_ancestry(others, self._load_baseline(others))
        after = self.known.world_of(conversations, self._load_baseline(conversations))
        return _Rescan(after, self.known.whole, changes)

    def _undone(self, pass_: Pass, outcome: Outcome) -> frozenset[str]:
        """Return the conversations that a pass has not completed, and absent ones of the baseline: they wait for it."""
        undone = set(outcome.undone())
        if not undone:
            return frozenset()
        if not pass_.full:
            return pass_.concerned
        left = {action.conversation for action in pass_.plan.actions if action.id in undone}
        return frozenset(left | self.known.absent())

    def _report_lost(self, missed: Mapping[str, str | None], after: WorldState) -> None:
        """Report the conversations that were lost with the store, once; forget those that exist again."""
        session = self.session
        if not (now := session.state.lost()):
            return
        from reconcile.engine.versions import lost_with_store

        session.state.remove_lost(now.keys() & {copy.conversation for copy in after.store.copies})
        all_lost = lost_with_store(session, _conversations_there(after))
        new = [lost for lost in all_lost if lost.conversation not in missed]
        session.has_reported_lost |= bool(new)
        for lost in new[:_MAX_NAMED]:
            command = f": {lost.command}" if lost.command else ""
            session.messages.append(f"lost with the store: {lost.title or lost.conversation}; {lost.left}{command}")
        if len(new) > _MAX_NAMED:
            session.messages.append(f"lost with the store: {len(new) - _MAX_NAMED} more (see reconcile status)")


class ConcurrentWrites:
    """Separates the baseline changes of other processes from those of this process.

    Every pass calls `begin` or `changed` first and `end` last, and holds the run lock in between.
    """

    def __init__(self, state: State, checkout: int | None, most: int) -> None:
        """Create the detector; `changed` returns at most ``most`` conversations."""
        self._state = state
        self._checkout = checkout
        self._most = most
        self._written = -1
        self._number = 0
        self._checkout_row: tuple[object, ...] | None = None

    def begin(self) -> None:
        """Accept all writes so far: a full scan reads everything."""
        self._written = self._state.data_version()
        self._number = self._state.newest_change()
        self._checkout_row = self._state.checkout_row(self._checkout)

    def changed(self) -> frozenset[str] | None:
        """Return the conversations whose baseline another process has changed.

        None: there are too many, or another process has changed this checkout's own row, which affects everything.
        """
        written = self._state.data_version()
        if written == self._written:
            return frozenset()
        if self._state.checkout_row(self._checkout) != self._checkout_row:
            return None
        conversations = self._state.changed_since(self._number, self._most + 1)
        self._written = written
        return conversations if len(conversations) <= self._most else None

    def have_written(self) -> bool:
        """Tell whether another process has written since."""
        return self._state.data_version() != self._written

    def end(self) -> None:
        """Skip this process's own writes; if another process has written too, the next pass reads all changes."""
        if self._state.data_version() == self._written:
            self._number = self._state.newest_change()
            self._checkout_row = self._state.checkout_row(self._checkout)


def _settings(policy: Policy) -> tuple[object, ...]:
    """Return the settings that affect the plan of every conversation."""
    return policy.layout, policy.stream, policy.diverged, policy.conflict, policy.missing, policy.prefer


class _Rescan(Struct, frozen=True):
    """The sides after a pass was carried out, and the changes since the scan that it was planned from.

    Changes of conversations outside of the plan were made by other programs. None: only a full scan can find them.
    """

    world: WorldState
    whole: Whole | None
    changes: _Update | None


class _Update(Struct, frozen=True):
    """The result of a rescan: the conversations that have changed, and those that have left a side."""

    changed: set[str]
    left: set[str]

    def outside_of(self, conversations: Collection[str]) -> frozenset[str]:
        """Return the changed conversations without these."""
        return frozenset(self.changed | self.left).difference(conversations)


_NOTHING = _Update(set(), set())


def _conversations_there(world: WorldState) -> frozenset[str]:
    return frozenset(copy.conversation for copy in (*world.store.copies, *world.workspace.copies))


def _conversations_of(world: WorldState) -> frozenset[str]:
    return _conversations_there(world).union(world.baseline.agreed)


def _touched(plan: Plan) -> dict[Side, set[str]]:
    """Return the paths that a plan may have changed, by side."""
    touched: dict[Side, set[str]] = {side: set() for side in Side}
    for action in plan.actions:
        for place in (action.target, action.source, *(write.target for write in action.writes), *action.removes):
            if place is not None:
                touched[place.side].add(place.path)
    return touched


def _changes_between(before: WorldState, after: WorldState) -> _Update | None:
    """Return the conversations whose copies have changed, appeared or gone.

    None: foreign entries, problems or the identity of a side have changed too.
    """
    changed: set[str] = set()
    for was, now in ((before.store, after.store), (before.workspace, after.workspace)):
        if was is now:  # not scanned again
            continue
        if was.foreign != now.foreign or was.problems != now.problems or (was.exists and was.identity != now.identity):
            return None
        there = {copy.path: without_events(copy) for copy in was.copies}
        for copy in now.copies:
            known = there.pop(copy.path, None)
            if known != without_events(copy):
                changed |= {copy.conversation} | ({known.conversation} if known is not None else set())
        changed.update(copy.conversation for copy in there.values())
    return _Update(changed, set())

"""One sync with a remote: fetch, plan, apply, commit, and push by compare-and-swap (docs/design/remotes.md#sync).

To the planner, the remote is a workspace of the same store, in the flat layout, with a baseline of its own. The state
has that baseline twice: as it was at the last swap that was won, and as the present attempt leaves it. Only a won swap
makes the second one the first.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.engine.engine import MOST, Engine
from reconcile.engine.saved_index import LoadedIndex
from reconcile.engine.session import Session
from reconcile.fs.locks import LockedError
from reconcile.model.baseline import Baseline, is_local
from reconcile.model.options import Layout, Missing, Take
from reconcile.model.plan import counted_as
from reconcile.model.policy import NO_CONVERSATION, Children, RemoveRequest, UndoRequest
from reconcile.model.snapshot import ARCHIVE, METADATA, STREAM, Side, joined
from reconcile.planning.context import RefusedError
from reconcile.planning.filters import renumbered, without_workspace
from reconcile.planning.rules.guards import is_bulk
from reconcile.remote import last_sync, removals
from reconcile.remote.engine import MovedError, RemoteError, Swap, UnreachableError
from reconcile.remote.files import AHEAD_NS, are_equal, are_listed, load_contents, make_equal, read_file, save_contents
from reconcile.remote.identity import checked_tree, replaced_error
from reconcile.remote.known import (
    Ahead,
    Entry,
    Half,
    Known,
    Lock,
    Planned,
    Report,
    by_conversation,
    known_of,
    left_there,
    note,
    steps_of,
    won,
    working,
)
from reconcile.remote.privacy import Marks, save_private, with_present_marks
from reconcile.remote.reporting import bulk_way, decided_units, describe, describe_removals, forked_records, title_of
from reconcile.remote.sealing import Sealed
from reconcile.remote.sendable import is_known, unsendable
from reconcile.remote.tree import (
    FORMAT,
    Record,
    Tombstone,
    Tree,
    directories_above,
    directory_of,
    encoded,
    format_file,
    is_record,
    key_of,
    pieces,
    read_format,
    read_tree,
    record_of,
    seen_in,
    slots_of,
    tombstone_of,
    unit_digests,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Outcome
    from reconcile.engine.engine import Pass
    from reconcile.model.baseline import Intent, WorldState
    from reconcile.model.plan import Conflict, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.planning.incremental.side_index import SideIndex
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.last_sync import LastSync
    from reconcile.remote.place import RemotePlace

ATTEMPTS = 5
"""Races that one sync loses before it gives up."""
_PAUSE_S = 0.2
BATCH = 64 << 20
"""Bytes that a push sends at most, but for the last conversation in it: a sync that was killed goes on after it."""


def open_session(
    roots: Roots, place: RemotePlace, state: str, tree: str, *, ignore: Collection[str], dry: bool
) -> Session:
    """Open the store with the remote's tree in the place of the workspace."""
    remote = roots._replace(
        workspace=tree,
        project=place.mirror,
        workspace_identity=(won if dry else working)(place.name),
        folder="",
        workspace_of=None,
        is_of_remote=True,
    )
    return Session(remote, state, readonly=dry, ignore=tuple(ignore))


class _Sides(NamedTuple):
    """The trees of the present commit and of that of the last sync, and the engine with the files of the present one.

    ``changed``: both trees have these conversations alone, and all that has changed since is among them, or known to
    the engine. None: they have all.
    """

    tree: Tree
    before: Tree
    engine: Engine
    changed: frozenset[str] | None


class _End(NamedTuple):
    """The end of the local part of a sync: the removals that wait, and the last pass.

    ``concerned``: no other conversation was looked at, or changed; None: all may be.
    """

    tree: Tree
    before: Tree
    concerned: frozenset[str] | None
    waiting: tuple[str, ...]
    engine: Engine
    last: Pass
    outcome: Outcome | None
    known: Known


class Sync:
    """The syncs of one store with one remote. ``policy`` has the user's settings and limits."""

    def __init__(
        self,
        session: Session,
        place: RemotePlace,
        engine: RemoteEngine,
        policy: Policy,
        lock: Lock,
        half: Half = Half.BOTH,
        planned: Planned | None = None,
        ask: Callable[[Engine, Pass, Policy, Collection[str]], Policy] | None = None,
    ) -> None:
        """Prepare; the session is that of `open_session`.

        ``planned``: do this, and nothing else. ``ask`` returns the policy with a person's answers about the conflicts
        of a pass, of which some conversations have the time of a wrong clock; None: the rules decide them.
        """
        self.planned, self.ask = planned, ask
        self.session, self.engine, self.lock, self.half = session, engine, lock, half
        self.name, self.store, self.keys, self.place = place.name, place.store, place.keys, place
        self.removals: str | None = None
        self.missing: str | None = None
        """The commit of an interrupted push that had not arrived at the first look."""
        self.policy = replace(policy, layout=Layout.FLAT, missing=Missing.REPROJECT)
        self.side = session.site.conversations(Side.WORKSPACE)

    def run(self) -> Report:
        """Sync once, again after each lost race.

        Raises:
            RemoteError: the remote can't be used, or is another one than before.
            LockedError: another process holds the run lock.
        """
        done = Report()
        for attempt in range(ATTEMPTS):
            report = self._attempt(done)
            if report is not None:
                self._forget()
                return report
            time.sleep(_PAUSE_S * 2**attempt * random.random())  # noqa: S311 - no secret
        raise MovedError("other machines were faster each time", "run it again")

    def undo(self, run: str, agrees: Callable[[Plan], bool]) -> tuple[Plan, Outcome | None]:
        """Undo what a run of a sync has changed in the store, or redo it; return the plan, and None if it was refused.

        The remote is not asked, and keeps what it has. The next sync leaves both alone until one of them changes.

        Raises:
            RemoteError: the end of the last sync is unknown.
            NoRunError: the run was no sync with this remote.
        """
        known = self._with_ended_undo(known_of(self.session.state, self.name))
        if known.commit is None or known.pending is not None:
            raise RemoteError("the last sync was interrupted", "run one that ends: reconcile sync")
        with nullcontext() if self.session.readonly else self.session.exclusively(*self.lock):
            tree, before = self._trees(known.commit, known)
            if not self.session.readonly:
                self.session.state.copy_baseline(self._number(won(self.name)), self.session.site.number)
            engine = self._opened(tree, before, Report()).engine
            pass_ = engine.plan(replace(self.policy, request=UndoRequest(run)))
            pass_ = replace(pass_, plan=with_present_marks(pass_.plan, pass_.world.baseline.intents))
            outcome = None
            if agrees(pass_.plan):
                self._note(replace(known, undoing=True))
                outcome = self._apply(engine, pass_)
                self._won(known)
            engine.close()
        return pass_.plan, outcome

    def _attempt(self, done: Report) -> Report | None:
        """Sync once; return None if another machine has moved the remote meanwhile.

        ``done`` has what earlier attempts have changed in the store, and gets what this one changes there.
        """
        tip = self.engine.tip()
        known = self._with_judged_push(tip, done)
        if self.planned is not None and tip != self.planned.commit:
            raise _moved("the remote")
        last = self._last(known)
        if tip is not None and known.commit == tip and last is not None and last.is_unchanged:
            return done
        start = self._start(tip, known)
        report = done.continued()
        report.was_set_back = start != tip
        changed = None if last is None else self._changed_there(known, start)
        tree, before = self._trees(start, known, changed)
        known = self._with_key(known, tree)
        if self.half is Half.PUSH and start != known.commit:
            raise MovedError("the remote has something new, and a push takes nothing", "reconcile pull")
        if self.session.readonly:
            end = self._plan_and_apply(self._opened(tree, before, report), start, known, report)
            self._describe_marks(end, report)
            return report
        with self.session.exclusively(self.lock.command, self.lock.timeout, self.lock.waiting):
            sides = None if last is None or changed is None else self._resumed(last, tree, before, start)
            if sides is None:
                tree, before = (tree, before) if changed is None else self._trees(start, known)
                self.session.state.copy_baseline(self._number(won(self.name)), self.session.site.number)
                sides = self._opened(tree, before, report)
            end = self._plan_and_apply(sides, start, known, report)
            tree, waiting, known = end.tree, end.waiting, end.known
            edits, removes, marks = ({}, [], {}) if self.half is Half.PULL else self._edits(end, known.kept, report)
            known = replace(known, left=self._left(end, report))
        identity = tree.format.id if tree.format is not None else os.urandom(8).hex()
        if tree.format is None and edits:
            edits = {FORMAT: format_file(self.store, identity, tree.coding), **edits}
        known, epoch = self._with_runs(known, end.outcome), 0 if tree.format is None else tree.format.epoch
        key = tree.coding.public if isinstance(tree.coding, Sealed) else None
        agreed = replace(
            known, pending=None, id=identity, waiting=waiting, key=key, epoch=epoch, accepted=False, shared=(), marks={}
        )
        *first, rest = _in_parts(edits)
        for part in first:
            # Nothing is noted: to the next sync, a part that has arrived is one that another machine has sent.
            start = self.engine.write(start, part, replaced := _replaced_in(part, removes))
            if not self._is_swapped(tip, start, end.outcome):
                return None
            tip, removes = start, [path for path in removes if path not in replaced]
        commit = self.engine.write(start, rest, removes) if rest or removes else start
        if commit is None or commit == tip or self.half is Half.PULL:
            if commit is None:  # nobody has begun the remote: its id and its key are still to be made
                agreed = replace(agreed, id=known.id, key=known.key)
            self._won(replace(agreed, commit=commit), end.concerned)
            self._remember(end, report, commit, marks)
            return report
        if not self._is_swapped(tip, commit, end.outcome, replace(known, waiting=waiting)):
            return None
        self._won(replace(agreed, commit=commit), end.concerned)
        report.commit = commit
        self._remember(end, report, commit, marks)
        return report

    def _forget(self) -> None:
        """Remove the mirror after a drop of the history that was interrupted: it may have the old one."""
        known = known_of(self.session.state, self.name)
        if known.forgets and not self.session.readonly:
            with suppress(FileNotFoundError):
                shutil.rmtree(self.place.mirror)
            self._note(replace(known, forgets=False))

    def _with_key(self, known: Known, tree: Tree) -> Known:
        """Return what is known, with the remote's key: noted before all else, as this sync may end early."""
        if self.session.readonly or tree.format is None or not isinstance(tree.coding, Sealed):
            return known
        if known.key == tree.coding.public and known.rotated is None:
            return known
        known = replace(known, key=tree.coding.public, rotated=None)
        self._note(known)
        return known

    def _with_runs(self, known: Known, outcome: Outcome | None) -> Known:
        """Return what is known, with the runs of this attempt, if it has removed something here."""
        if self.removals is None or outcome is None or outcome.run is None:
            return known
        return replace(known, removals=self.removals, rest=outcome.run)

    def _is_swapped(self, tip: str | None, commit: str, outcome: Outcome | None, known: Known | None = None) -> bool:
        """Send a commit of what a pass has changed; return False if another machine has moved the remote meanwhile.

        ``known`` is given for the last commit, which is noted as pending until its end is known.
        """
        if known is not None:
            self._note(replace(known, pending=commit))
        try:
            swap = self.engine.swap(tip, commit)
        except UnreachableError:
            raise
        except RemoteError:  # the host has refused it
            self._note_unsent(outcome, known)
            raise
        if swap is Swap.LOST:
            self._note_unsent(outcome, known)
        if swap is Swap.UNKNOWN:
            raise UnreachableError(
                "the remote gave no answer to a push: it may have it, or not", "run the sync again: it looks first"
            )
        return swap is Swap.WON

    def _note_unsent(self, outcome: Outcome | None, known: Known | None) -> None:
        """Note that no push is pending, and have the journal say that the remote lacks what a pass was to send."""
        if known is not None:
            self._note(known)
        if outcome is not None and outcome.run is not None:
            done = (each.action for each in outcome.results.values() if each.is_done)
            unsent = [action.id for action in done if action.target.side is Side.WORKSPACE]
            messages = dict.fromkeys(unsent, "the push was refused, or another machine was faster")
            self.session.state.journal.step_skipped(outcome.run, messages, self.session.now_ns())

    # The next sync

    def _last(self, known: Known) -> LastSync | None:
        """Return what the last sync has saved, if it was completed and still holds."""
        if known.commit is None or known.pending is not None or known.waiting or known.shared or known.left:
            return None
        if self.session.readonly or self.planned is not None:
            return None
        return last_sync.load(self.session, self.policy, self.place.last_sync, known.commit)

    def _changed_there(self, known: Known, start: str | None) -> set[str] | None:
        """Return the names of the conversations that the remote has changed since the last sync; None: look at all."""
        if known.kept or not self.policy.is_unlimited or self.session.format.places is not None:
            return None
        if known.commit is None or start is None:
            return None
        if start != known.commit and not self.engine.contains(start, known.commit):
            return None  # its history was dropped, and the mirror, which had the earlier one, was deleted
        paths = set[str]() if start == known.commit else self.engine.changes(known.commit, start)
        keys = {key for path in paths if (key := key_of(path)) is not None}
        return keys if len(keys) <= MOST and all(map(key_of, paths)) else None

    def _resumed(self, last: LastSync, tree: Tree, before: Tree, start: str | None) -> _Sides | None:
        """Go on from the last sync: look at what the remote, the directories or the state have changed since.

        ``tree`` and ``before`` have the conversations that the remote has changed. None: everything has to be looked
        at, as the directory of the remote's files has something else, or too much has changed.
        """
        index = LoadedIndex.load(self.session, last.summary, self.policy)
        if index is None or tree.refused or before.refused:
            return None
        known, keys = index.known.sides[Side.WORKSPACE], {*tree.records, *before.records, *tree.tombstones}
        is_link = os.path.islink(os.path.join(self.side, ARCHIVE))
        if is_link or any(known.paths.get(record.path, record.id) != record.id for record in tree.records.values()):
            return None
        old = {path for key in keys for path in known.paths_of(key)}
        new = {record.path for record in tree.records.values()}
        if keys and self._make_equal(tree, old | new):
            return None
        changed = last.summary.changed() if keys else last.changed
        there = (known.paths.keys() - old) | new
        owners = {_owner(path, there | old) for path in changed[1]}
        if None in owners or not all(are_listed(self.side, at, there) for at in ("", ARCHIVE) if at in owners):
            return None
        # Their status has changed, or could not be relied on.
        ids = {known.paths[path] for path in (owners & known.paths.keys()) - old - new if path is not None}
        tree, before = self._with(tree, before, start, ids)
        if not are_equal(self.side, [tree.records[key] for key in ids if key in tree.records], ids):
            return None
        engine = self._begun(tree, index.with_changes(self.session, changed))
        return None if engine.full_scan is not None else _Sides(tree, before, engine, last.others.union(keys, ids))

    def _opened(self, tree: Tree, before: Tree, report: Report) -> _Sides:
        """Look at everything."""
        damaged = self._make_equal(tree)
        kept = {key: record for key, record in tree.records.items() if key not in damaged}
        engine = self._begun(replace(tree, records=kept) if damaged else tree, None)
        names = {tree.coding.key(key): key for key in damaged}
        refused = {**tree.refused, **{key: damaged[name] for key, name in names.items()}}
        replaceable = {} if self.half is Half.PULL else self._replaceable(tree, engine)
        for key in replaceable:
            del refused[tree.coding.key(key)]
        report.held += [f"{names.get(key, key)}: {why}; it stays there" for key, why in refused.items()]
        return _Sides(replace(tree, records=kept, refused=refused, replaceable=replaceable), before, engine, None)

    def _replaceable(self, tree: Tree, engine: Engine) -> dict[str, Record]:
        """Return by id the refused records that this machine may replace or bury: it has had all that they name.

        One that it lacks is buried only if it was removed here on purpose, after a sync had agreed on it.
        """
        side = engine.known.sides[Side.STORE]
        baseline = self.session.state.load(self.session.checkout, tree.untaken) if tree.untaken else Baseline()
        return {
            key: record
            for key, record in tree.untaken.items()
            if len(copies := list(side.of(key))) == 1
            or (not copies and key in baseline.agreed and key in baseline.tombstones)
            if is_known(record, copies, baseline, self.session.format)
        }

    def _begun(self, tree: Tree, index: LoadedIndex | None) -> Engine:
        """Return an engine that has looked at both sides; its baseline knows what others have had and removed."""
        fmt, gone = self.session.format, dict[tuple[str, str], str]()
        for key, record in tree.records.items():
            units = {unit: digest for name, digest in record.gone.items() if (unit := fmt.unit_of(name)) is not None}
            gone |= {(key, unit): digest for unit, digest in units.items()}
        # Another machine may have edited a file before it removed it: what the last sync has left here is no edit.
        keys = {key for key, _ in gone}
        agreed = self.session.state.load(self.session.checkout, keys).agreed if keys else {}
        here = {(key, unit): digest for key, entry in agreed.items() for unit, digest in entry.units.items()}
        self.session.state.removed_there = gone | {each: here[each] for each in gone.keys() & here.keys()}
        self.session.state.seen_there = {
            (key, unit): digests for key, record in tree.records.items() for unit, digests in record.seen.items()
        }
        engine = Engine(self.session, index)
        engine.begin()
        self.policy = replace(self.policy, only=frozenset(self._with_beside(self.policy.only, engine)))
        return engine

    def _make_equal(self, tree: Tree, only: Collection[str] | None = None) -> dict[str, str]:
        rows = self.session.scanner.index(Side.WORKSPACE)
        return make_equal(self.side, tree, self.engine, self.session.format, self.session.now_ns(), rows, only)

    def _remember(self, end: _End, report: Report, commit: str | None, marks: Mapping[str, bool]) -> None:
        """Save the index, so that the next sync can tell that there is nothing to do. A pull leaves something.

        ``marks``: by conversation that was sent or removed there, whether it is private in the commit.
        """
        known, is_all = {key: record.local for key, record in end.tree.records.items()}, end.concerned is None
        marks = {**dict.fromkeys(end.before.records, False), **known, **marks}
        save_private(end.known.commit, commit, marks, self.session.format, self.place, is_all=is_all)
        if end.outcome is not None and not report.held and not end.waiting and self.half is not Half.PULL:
            with suppress(LockedError), self.session.exclusively(self.lock.command, 0):
                end.engine.save(end.last, end.outcome)
                last_sync.save(self.session, self.place.last_sync, known_of(self.session.state, self.name).commit)
        end.engine.close()

    # The commits

    def _with_judged_push(self, tip: str | None, done: Report) -> Known:
        """Return what is known, after a push that was interrupted has been judged by what the remote has now."""
        known = self._with_ended_undo(known_of(self.session.state, self.name))
        if known.pending is None:
            if tip is not None and self.missing is not None and self.engine.contains(tip, self.missing):
                done.interrupted_push = "arrived"  # meanwhile, so that this sync has lost the race against it
            return known
        if tip is not None and self.engine.contains(tip, known.pending):
            known = replace(known, commit=known.pending, pending=None, accepted=False, shared=(), marks={})
            done.interrupted_push = "arrived"
            if not self.session.readonly:
                self._won(known)
            return known
        done.interrupted_push, self.missing = "not arrived", known.pending
        known = replace(known, pending=None)
        if not self.session.readonly:  # if it arrives later, the baseline of its attempt is not there any more
            self._note(known)
        return known

    def _with_ended_undo(self, known: Known) -> Known:
        """Return what is known, after an undo that was killed has been completed: else it would be sent."""
        if not known.undoing or self.session.readonly:
            return known
        known = replace(known, undoing=False)
        with self.session.exclusively(*self.lock):  # this completes the run, as far as that is possible
            self._won(known)
        return known

    def _start(self, tip: str | None, known: Known) -> str | None:
        """Return the commit to build on: the remote's, or the last seen one if the remote was set back."""
        base = known.commit
        if base is None or (tip is not None and self.engine.contains(tip, base)):
            return tip
        if tip is not None and self.engine.contains(base, tip):
            return base
        found = read_format(self.engine, tip, self.store)
        if found is not None and found.id == known.id and found.epoch > known.epoch:
            return tip  # another machine has dropped the history
        raise replaced_error()

    def _trees(self, start: str | None, known: Known, part: Collection[str] | None = None) -> tuple[Tree, Tree]:
        """Return the tree to build on, and that of the last sync; ``part``: of these conversations alone."""
        cached = {} if part is not None else load_contents(self.place.cache)
        fmt = self.session.format
        tree = read_tree(self.engine, start, fmt, self.store, self.keys, cached=cached, only=part)
        tree = checked_tree(tree, known, self.keys)
        if part is None and tree.contents.keys() != cached.keys() and not self.session.readonly:
            save_contents(self.place.cache, tree.contents)
        is_same = start is not None and known.commit == start
        before = tree if is_same else self._tree_before(known.commit, tree, part)
        if known.shared:  # the last sync has agreed on none of them
            rest = {key: record for key, record in before.records.items() if key not in known.shared}
            stones = {key: stone for key, stone in before.tombstones.items() if key not in known.shared}
            before = replace(before, records=rest, tombstones=stones)
        return tree, before

    def _with(self, tree: Tree, before: Tree, start: str | None, ids: Collection[str]) -> tuple[Tree, Tree]:
        """Return two trees that are parts, with more conversations, which both commits have alike."""
        there = {*tree.records, *tree.tombstones, *before.records}
        if not (keys := [tree.coding.key(each) for each in ids if each not in there]):
            return tree, before
        more = read_tree(self.engine, start, self.session.format, self.store, self.keys, only=keys)
        names, refused = {**tree.names, **more.names}, {**tree.refused, **more.refused}
        stones = {**tree.tombstones, **more.tombstones}
        tree = replace(tree, names=names, records={**tree.records, **more.records}, tombstones=stones, refused=refused)
        known = replace(before, records={**before.records, **more.records})
        return tree, replace(known, tombstones={**before.tombstones, **more.tombstones})

    def _tree_before(self, commit: str | None, present: Tree, part: Collection[str] | None) -> Tree:
        coding, fmt = present.coding, self.session.format
        secrets = (coding.bundle.secret, *coding.bundle.earlier) if isinstance(coding, Sealed) else ()
        try:
            return read_tree(self.engine, commit, fmt, self.store, self.keys, *secrets, only=part)
        except RemoteError:  # the mirror was deleted, and the remote has another history
            return Tree()

    def _number(self, identity: str) -> int:
        number = self.session.state.checkout(self.session.project, identity, self.session.now_ns())
        assert number is not None  # noqa: S101 - the state is not read-only
        return number

    def _won(self, known: Known, only: Collection[str] | None = None) -> None:
        """Make the baseline of this attempt the one of the next sync; ``only`` these conversations can differ."""
        if self.session.readonly:
            return
        with self.session.state.transaction():
            self.session.state.copy_baseline(self.session.site.number, self._number(won(self.name)), only)
            self._note(known)

    def _note(self, known: Known) -> None:
        note(self.session.state, self.name, known)

    # The run

    def _plan_and_apply(self, sides: _Sides, start: str | None, known: Known, report: Report) -> _End:
        """Carry out what the store and the remote's tree need of each other."""
        tree, before, engine, changed = sides
        known = replace(known, kept=self._kept(tree, before, known, engine))
        report.ahead = self._ahead(tree, before, known, engine)
        buried, twins = (
            removals.buried(self.session, tree, before, known, engine),
            removals.twins(self.session, self.policy, tree, before, known, engine),
        )
        now_ns = None if self.planned is None else self.planned.now_ns
        held = (*known.kept, *_refused(tree, engine))
        choices, open_ones = self._choices((*buried, *twins, *held), engine, changed, report.ahead, now_ns)
        marks = self._marks(tree, before, known, engine)
        changed_marks = marks.changes(self.session.state.intents(self.session.checkout))
        sent_marks = self._sent_marks(tree, before, known, engine)
        if self.planned is not None:
            pass_, _ = self._replacing(twins, (*buried, *held), engine, choices, (), now_ns)
            if steps_of(pass_.plan, buried, changed_marks, sent_marks) != self.planned.steps:
                raise _moved("the store")
        if changed_marks and not self.session.readonly:  # if no swap is won, they are no change of this machine
            taken = {key: intent is not None for key, intent in changed_marks.items()}
            known = replace(known, marks={**known.marks, **taken})
            self._note(known)
        waiting = self._remove(engine, buried, known.kept, report, changed_marks)
        left = (*(buried if self.session.readonly else waiting), *held)
        # The removals were a plan of their own: after a first look at all, the rest has no baseline yet.
        also = changed or (() if self.removals is None else engine.known.conversations())
        pass_, unsent = self._replacing(twins, left, engine, choices, also, now_ns)
        report.held += [f"{key}: {what}" for key, what in unsent.items()]
        if self.session.readonly:
            report.planned = Planned(start, steps_of(pass_.plan, buried, changed_marks, sent_marks), pass_.plan.now_ns)
        chosen = without_workspace(pass_.plan) if self.half is Half.PULL else pass_.plan
        removed = set(buried).difference(waiting)  # their run has their marks
        private = {key: intent for key, intent in changed_marks.items() if key not in removed}
        forks = marks.of_forks(chosen, changed_marks, self.session.format)
        plan = replace(chosen, intents=(*pass_.plan.intents, *private.items(), *forks.items()))
        if plan.intents:
            plan = replace(plan, quiet=False)
        plan = self._with_findings(plan, pass_.world, tree, report)
        last = replace(pass_, plan=plan)
        outcome = self._apply(engine, last)
        if outcome is not None:
            self._learn(tree, before, known, engine)
        describe(report, plan, outcome, pass_.world, twins, (tree, before), remote=self.name, fmt=self.session.format)
        for key, intent in private.items():
            if key in before.records and engine.known.sides[Side.STORE].of(key):  # one that is new here needs no line
                entry = Entry(key, title_of(engine.known.sides[Side.WORKSPACE].of(key)))
                (report.private_no_longer if intent is None else report.private_here).append(entry)
        told = {(each.id, each.unit) for each in report.conflicts}  # by an attempt that has lost the race
        found = (
            *decided_units(plan, open_ones, pass_.world, outcome),
            *forked_records(plan, pass_.world, outcome, self.session.format),
        )
        report.conflicts += [each for each in found if (each.id, each.unit) not in told]
        if changed is None:
            return _End(tree, before, None, tuple(waiting), engine, last, outcome, known)
        if pass_.full:
            tree, before = self._trees(start, known)
            return _End(tree, before, None, tuple(waiting), engine, last, outcome, known)
        concerned = changed | pass_.concerned
        tree, before = self._with(tree, before, start, concerned)
        return _End(tree, before, concerned, tuple(waiting), engine, last, outcome, known)

    def _with_findings(self, plan: Plan, world: WorldState, tree: Tree, report: Report) -> Plan:
        """Note the secrets that are sent unencrypted; return the plan with the contents that were read for this.

        What the remote has already is not looked at.
        """
        if isinstance(tree.coding, Sealed):
            return plan
        if not any(action.writes and action.target.side is Side.WORKSPACE for action in plan.actions):
            return plan
        plan, found = self.session.secret_check.unallowed(plan, world)
        report.secrets |= {key: tuple(each.words for each in findings) for key, findings in found.items()}
        return plan

    def _sendable(
        self,
        left: Collection[str],
        engine: Engine,
        choices: Mapping[tuple[str, str], Take],
        also: Collection[str],
        now_ns: int | None,
    ) -> tuple[Pass, dict[str, str]]:
        """Plan without some conversations, and without those that no machine would take; return these, with reasons."""
        pass_ = engine.plan(replace(self._without(left, engine), choices=choices), also=also, now_ns=now_ns)
        if unsent := unsendable(pass_.plan, pass_.world.workspace):
            policy = replace(self._without((*left, *unsent), engine), choices=choices)
            pass_ = engine.plan(policy, also=also, now_ns=now_ns)
        return pass_, unsent

    def _replacing(
        self,
        twins: Mapping[str, str],
        left: Collection[str],
        engine: Engine,
        choices: Mapping[tuple[str, str], Take],
        also: Collection[str],
        now_ns: int | None,
    ) -> tuple[Pass, dict[str, str]]:
        """Plan as `_sendable`; forks are removed after the same ones of another machine were taken, and not sent."""
        if not twins:
            return self._sendable(left, engine, choices, also, now_ns)
        policy = replace(self.policy, request=RemoveRequest(tuple(twins), Children.PROMOTE), only=frozenset())
        removal = without_workspace(engine.plan(policy, now_ns=now_ns).plan)
        pass_, unsent = self._sendable(left, engine, choices, (*also, *twins), now_ns)
        here = [action for action in pass_.plan.actions if action.target.side is Side.STORE]
        taking = {
            key: steps
            for key, other in twins.items()
            if (steps := tuple(action.id for action in here if action.conversation == other))
        }
        rest = [action for action in pass_.plan.actions if action.conversation not in twins]
        removing = [
            replace(
                action,
                id=f"removal {action.id}",
                needs=(*(f"removal {need}" for need in action.needs), *taking[action.conversation]),
            )
            for action in removal.actions
            if action.conversation in taking
        ]
        stones = (*pass_.plan.tombstones, *(entry for entry in removal.tombstones if entry[0] in taking))
        plan = replace(pass_.plan, actions=renumbered([*rest, *removing]), tombstones=stones)
        return replace(pass_, plan=plan), unsent

    def _choices(
        self,
        left: Collection[str],
        engine: Engine,
        changed: Collection[str] | None,
        ahead: Collection[Ahead],
        now_ns: int | None,
    ) -> tuple[Mapping[tuple[str, str], Take], tuple[Conflict, ...]]:
        """Ask about the conflicts before anything is changed; return the answers, and the conflicts.

        Without an answer, a version with the time of a wrong clock wins none: it would be the newer one each time.
        """
        if self.ask is None and not ahead:
            return {}, ()
        policy, wrong = self._without(left, engine), {each.id for each in ahead}
        pass_ = engine.plan(policy, also=changed or (), now_ns=now_ns)
        found = pass_.plan.conflicts
        keys = [(each.conversation, each.unit) for each in found if each.takes and each.conversation in wrong]
        choices = dict.fromkeys(keys, Take.STORE)
        if self.ask is not None:
            choices |= self.ask(engine, pass_, policy, wrong).choices
        return choices, found

    def _kept(self, tree: Tree, before: Tree, known: Known, engine: Engine) -> tuple[str, ...]:
        """Return what is kept here, with its forks that were not sent, and the files beside a session by now."""
        if not known.kept:
            return ()
        marks = self._marks(tree, before, known, engine)
        marks = marks._replace(kept=tuple(self._with_beside(known.kept, engine)))
        has_parents = self.session.format.places is None
        sources = () if has_parents else self.session.state.journal.possible_sources()
        forks = marks.kept_with_forks(known.shared, sources)
        return tuple(self._with_beside(forks, engine))

    def _with_beside(self, named: Collection[str], engine: Engine) -> Collection[str]:
        """Return what a person has named, with the files that are beside a session by now."""
        places = self.session.format.places
        if places is None:
            return named
        return {*named, *(key for key in engine.known.conversations() if counted_as(key, places) in named)}

    def _without(self, held: Collection[str], engine: Engine) -> Policy:
        """Return the policy without conversations whose removal waits: sent again, they would come back everywhere."""
        if not held:
            return self.policy
        rest = (self.policy.only or engine.known.conversations()) - frozenset(held)
        return replace(self.policy, only=rest or NO_CONVERSATION)

    def _apply(self, engine: Engine, pass_: Pass) -> Outcome | None:
        """Apply a pass; None for a dry run."""
        return None if self.session.readonly else engine.apply(pass_, self.lock.command, is_saved=True)

    def _ahead(self, tree: Tree, before: Tree, known: Known, engine: Engine) -> list[Ahead]:
        """Return the conversations of which another machine has sent a file with the time of a wrong clock."""
        found, now_ns = list[Ahead](), self.session.now_ns()
        for key, record in tree.records.items():
            had = before.records[key].files if key in before.records else {}
            times = [file.mtime_ns for name, file in record.files.items() if had.get(name) != file]
            ahead_ns = max(times, default=0) - now_ns
            if ahead_ns > AHEAD_NS and key not in known.kept:
                found.append(Ahead(key, title_of(engine.known.sides[Side.WORKSPACE].of(key)), ahead_ns))
        return found

    def _marks(self, tree: Tree, before: Tree, known: Known, engine: Engine) -> Marks:
        sides = engine.known.sides
        return Marks(tree, before, known.marks, known.kept, sides[Side.STORE], sides[Side.WORKSPACE])

    def _remove(
        self,
        engine: Engine,
        buried: list[str],
        kept: Collection[str],
        report: Report,
        marks: Mapping[str, Intent | None],
    ) -> list[str]:
        """Remove from the store what another machine has removed, with its private marks; return those that wait."""
        only = self.policy.only
        going = [key for key in buried if not only or key in only]
        if not going:
            return buried
        stored = by_conversation(engine.known.sides[Side.STORE].copies())
        if is_bulk(len(going), len(stored)) and not self.policy.accept_bulk:
            way = bulk_way(self.name)
            report.held.append(f"{len(going)} of {len(stored)} {self.session.roots.noun}s would be removed here: {way}")
            return buried
        request = RemoveRequest(tuple(going), Children.PROMOTE)
        try:
            removal = engine.plan(replace(self.policy, request=request, only=frozenset()))
        except RefusedError as error:
            report.held.append(str(error))
            return buried
        taken = set() if self.half is Half.PULL else {each.conversation for each in removal.plan.actions}
        plan = removals.before_sync(
            removal.plan, {key for key in taken.difference(stored, kept) if not only or key in only}
        )
        plan = replace(plan, intents=(*plan.intents, *((key, marks[key]) for key in going if key in marks)))
        outcome = self._apply(engine, replace(removal, plan=plan))
        self.removals = self.removals if outcome is None else outcome.run
        removed = removals.done(going, plan, outcome)
        describe_removals(report, plan, outcome, removed, stored, remote=self.name)
        return [key for key in buried if not removed.get(key)]

    def _learn(self, tree: Tree, before: Tree, known: Known, engine: Engine) -> None:
        """Remember the earlier versions that other machines know: a clone may have them, or what was removed."""
        fmt, stored = self.session.format, engine.known.sides[Side.STORE]
        older = {
            (key, unit): tuple(digests)
            for key, record in tree.records.items()
            if key not in known.kept and (key not in before.records or before.records[key].seen != record.seen)
            for unit, digests in record.seen.items()
        }
        removed = {
            key: (*unit_digests(stone.files, fmt), *stone.seen)
            for key, stone in tree.tombstones.items()
            if key not in tree.records
            and key not in known.kept
            and removals.is_new(stone, before)
            and not stored.of(key)
        }
        if older or removed:
            self.session.state.add_older(older, removed)

    # The commit

    def _edits(
        self, end: _End, kept: Collection[str], report: Report
    ) -> tuple[dict[str, bytes], list[str], dict[str, bool]]:
        """Return the files of the new commit that differ from the one to build on, the paths that go, and the marks.

        These are of the conversations that differ: whether they are private there.
        """
        edits, removes, tree, before = dict[str, bytes](), list[str](), end.tree, end.before
        private = dict[str, bool]()
        baseline = self.session.state.load(self.session.checkout, end.concerned)
        present = set[str]()
        marks = self._marks(tree, before, end.known, end.engine)
        stored, there = (
            by_conversation(side.copies() if end.concerned is None else _some(side, end.concerned))
            for side in (end.engine.known.sides[Side.STORE], end.engine.known.sides[Side.WORKSPACE])
        )
        for key, copies in there.items():
            copy = copies[0]
            present.add(key)
            old = tree.records.get(key, tree.replaceable.get(key))
            times = {file.name: (file.digest, file.mtime_ns) for each in stored.get(key, ()) for file in each.files}
            local = self._mark(marks, key, baseline.intents, old)
            seen = _versions(baseline, key)
            new = record_of(copy, times, old, self.session.format, local=local, seen=seen)
            is_same = key not in tree.replaceable and new is not None and new.is_same(old)
            if new is None or is_same or key in kept or tree.coding.key(key) in tree.refused:
                continue
            self._write(tree, new, copy, edits, removes)
            private[key], entry = local, Entry(key, getattr(copy.metadata, "title", None))
            if old is not None and old.local != local:
                (report.private_there if local else report.private_no_longer_there).append(entry)
            if old is None or key in tree.replaceable or not replace(new, local=old.local).is_same(old):
                report.sent.append(entry)
            if key in tree.tombstones:
                removes.append(tombstone_of(key, tree.coding))
        buried = {key: record for key, record in tree.replaceable.items() if key not in stored and key not in kept}
        for key, old in {**tree.records, **buried}.items():
            if key not in present and (end.concerned is None or key in end.concerned):
                removes.append(directory_of(key, tree.coding))
                private[key] = False
                digests = {name: file.digest for name, file in old.files.items()}
                known = [each for unit in seen_in(old, _versions(baseline, key)).values() for each in unit]
                local = old.local or is_local(baseline.intents.get(key))
                stone = Tombstone(key, digests, self.session.now_ns(), known, local)
                edits[tombstone_of(key, tree.coding)] = tree.coding.seal(encoded(stone))
                report.removed_there.append(Entry(key, old.name))
        for key, stone in tree.tombstones.items():  # removed there, while it was made private here
            is_gone = key not in tree.records and key not in present and key not in kept
            if is_gone and not stone.local and is_local(baseline.intents.get(key)):
                edits[tombstone_of(key, tree.coding)] = tree.coding.seal(encoded(replace(stone, local=True)))
        return edits, removes, private

    def _left(self, end: _End, report: Report) -> tuple[str, ...]:
        """Return the conversations of the remote that this sync has left out: the next `status` counts them."""
        if not self.policy.only and not report.held:
            return ()
        there = end.engine.known.sides[Side.WORKSPACE]
        copies = there.copies() if end.concerned is None else _some(there, end.concerned)
        baseline = self.session.state.load(self.session.checkout, end.concerned)
        return left_there(copies, baseline, end.known.kept, self.session.rules)

    def _mark(self, marks: Marks, conversation: str, intents: Mapping[str, Intent], old: Record | None) -> bool:
        """Return whether a conversation is private in the next commit; one that isn't synced now stays as it is."""
        only, places = self.policy.only, self.session.format.places
        if old is not None and only and conversation not in only and counted_as(conversation, places) not in only:
            return old.local
        return marks.now(conversation, here=is_local(intents.get(conversation)))

    def _describe_marks(self, end: _End, report: Report) -> None:
        """Add to the report of a dry run which marks the sync would send; the plan has no steps for them."""
        sides, gone = end.engine.known.sides, {entry.id for entry in report.removed_there}
        for key, local in sorted(self._sent_marks(end.tree, end.before, end.known, end.engine).items()):
            copies = [*sides[Side.STORE].of(key), *sides[Side.WORKSPACE].of(key)]
            if copies and key not in gone:
                (report.private_there if local else report.private_no_longer_there).append(Entry(key, title_of(copies)))

    def _sent_marks(self, tree: Tree, before: Tree, known: Known, engine: Engine) -> dict[str, bool]:
        """Return the private marks that are other ones in the next commit, before this sync changes anything here."""
        if self.half is Half.PULL or not (self.session.readonly or self.planned):
            return {}
        marks, intents = self._marks(tree, before, known, engine), self.session.state.intents(self.session.checkout)
        found = dict[str, bool]()
        for key, old in {**tree.records, **tree.replaceable}.items():
            if key not in known.kept and tree.coding.key(key) not in tree.refused:
                local = self._mark(marks, key, intents, old)
                found |= {} if local == old.local else {key: local}
        return found

    def _write(self, tree: Tree, new: Record, copy: Copy, edits: dict[str, bytes], removes: list[str]) -> None:
        """Add the files of a conversation that have changed, and its record."""
        fmt, coding, old = self.session.format, tree.coding, tree.records.get(new.id)
        before = set[str]() if old is None else {slot for n in old.files for slot in slots_of(old, n, fmt, coding)}
        if new.id in tree.replaceable:
            top = f"{directory_of(new.id, coding)}/"
            before = {path for path in tree.names if path.startswith(top) and not is_record(path)}
        after = set[str]()
        for name, file in new.files.items():
            slots = slots_of(new, name, fmt, coding)
            after.update(slots)
            known = None if old is None else old.files.get(name)
            if known is not None and known.digest == file.digest:
                continue
            for slot, part in pieces(slots, read_file(self.side, joined(copy.path, name)), coding):
                if coding.repeats or slot not in before or not self._has(tree, slot, part):
                    edits[slot] = coding.seal(part)
        removes += sorted(before - after)
        edits[f"{directory_of(new.id, coding)}/r"] = coding.seal(encoded(new))

    def _has(self, tree: Tree, slot: str, part: bytes) -> bool:
        """Tell whether the remote has this very piece: encrypted again, it would have other bytes, and be sent."""
        ((_, content),) = self.engine.read([tree.names[slot]])
        try:
            return tree.coding.open(content) == part
        except ValueError:
            return False


def _refused(tree: Tree, engine: Engine) -> list[str]:
    """Return the conversations of the store whose record is refused: with no new version, nothing was agreed on."""
    if not tree.refused:
        return []
    return [key for key in engine.known.conversations() if tree.coding.key(key) in tree.refused]


def _in_parts(edits: Mapping[str, bytes]) -> list[dict[str, bytes]]:
    """Return files in parts of about `BATCH` bytes, at least one; the files of a conversation stay together.

    Tombstones are in the last part, with the removal of the records: beside its record, a tombstone says nothing.
    """
    parts, size, is_whole = [dict[str, bytes]()], 0, True
    stones = {path: content for path, content in edits.items() if path.startswith("t/")}
    for path, content in edits.items():
        if path in stones:
            continue
        if size >= BATCH and is_whole:
            parts.append({})
            size = 0
        parts[-1][path] = content
        size += len(content)
        is_whole = is_record(path)
    parts[-1] |= stones
    return parts


def _replaced_in(part: Iterable[str], removes: Iterable[str]) -> set[str]:
    """Return the removed files whose place a directory takes in a part: removed later, they would be that directory."""
    return {above for path in part for above in directories_above(path)}.intersection(removes)


def _owner(path: str, conversations: Collection[str]) -> str | None:
    """Return the path of the conversation that has a path; one of a directory of conversations as it is, else None."""
    if path in (".", ARCHIVE):
        return path.removeprefix(".") if path == "." else path
    parts = path.split("/")
    top = "/".join(parts[: 2 if parts[0] == ARCHIVE else 1])
    return top if top in conversations else None


def _some(side: SideIndex, conversations: Collection[str]) -> Iterator[Copy]:
    return (copy for key in sorted(conversations) for copy in side.of(key))


def _versions(baseline: Baseline, conversation: str) -> dict[str, tuple[str, ...]]:
    """Return the versions of a conversation's units that this machine knows, oldest first."""
    versions = {unit: baseline.history.get((conversation, unit), ()) for unit in (METADATA, STREAM)}
    return {unit: digests for unit, digests in versions.items() if digests}


def _moved(what: str) -> MovedError:
    return MovedError(f"{what} has changed since the plan was made, and nothing was sent", "make it again with --out")

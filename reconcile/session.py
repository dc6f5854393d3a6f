"""One pass: look at both sides, plan, apply, look again, remember. The only place where the layers meet."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from reconcile.apply.executor import Executor
from reconcile.apply.leftovers import clean_staging, is_staged, staging_name
from reconcile.apply.outcome import Outcome, Result
from reconcile.apply.record import Recorder, decided_ahead, learned, planned_steps, preserved
from reconcile.apply.recovery import Recovery
from reconcile.apply.steps import Stage
from reconcile.core.decisions import decide
from reconcile.core.fold import fold
from reconcile.core.memory import remembered
from reconcile.core.model import Side
from reconcile.core.planner import needs_events
from reconcile.core.reasons import Reason
from reconcile.core.requests import TakeBack
from reconcile.core.undone import left_alone
from reconcile.core.units import Rules
from reconcile.disk.changes import Root
from reconcile.disk.durable import Durability
from reconcile.disk.gitstate import git_busy
from reconcile.disk.hashing import digest
from reconcile.disk.index import Index
from reconcile.disk.jp_locks import LockRoots, LockSet, NullLockSet
from reconcile.disk.lock_report import held_locks
from reconcile.disk.own_lock import own_lock, read_holder
from reconcile.disk.posix import process_lives
from reconcile.disk.reading import read_files
from reconcile.disk.scan import inspect, scan
from reconcile.disk.sessions import active_conversations
from reconcile.disk.state import State
from reconcile.disk.state_memory import Fold
from reconcile.disk.tree import Directory
from reconcile.disk.vault import Vault
from reconcile.errors import ReconcileError
from reconcile.formats import get_format
from reconcile.instead import plan_as_asked
from reconcile.past import find_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from reconcile.apply.executor import Progress
    from reconcile.core.board import Board
    from reconcile.core.format import Format
    from reconcile.core.memory import Memory
    from reconcile.core.model import Copy, Snapshot
    from reconcile.core.plan import Plan, Preserve
    from reconcile.core.policy import Policy
    from reconcile.core.views import View
    from reconcile.disk.roots import Roots
    from reconcile.disk.state import Checkout
    from reconcile.disk.versions import Version

PATH_MAX = 4096
"""Bytes of a path that Linux takes; macOS takes 1024, but reaches deeper files through descriptors."""


_AGAIN = "run again; nothing was changed"


class MovedError(ReconcileError):
    """A side was moved or replaced between the look at it and the work on it."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Look:
    """Both sides and the memory at one moment."""

    store: Snapshot
    workspace: Snapshot
    memory: Memory


class Session:
    """The store and one workspace, opened for one or more passes. A context manager.

    ``readonly``: a dry run, which writes nothing anywhere, not even its own state.
    """

    def __init__(
        self,
        roots: Roots,
        state_directory: str,
        *,
        readonly: bool = False,
        ignore: Sequence[str] = (),
        durability: Durability | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open the state; ``ignore`` are patterns of extra files that are left alone."""
        self.roots = roots
        self.format: Format = get_format(roots.format, tuple(ignore))
        self.rules = Rules(self.format, digest)
        self._directory = state_directory
        self._readonly = readonly
        self._durability = durability or Durability()
        self._clock = clock
        self.state = State.open(state_directory, readonly=readonly)
        self.vault = Vault(state_directory, self._durability)
        self.messages: list[str] = list(self.state.messages)
        self.checkout = self.state.checkout(os.path.realpath(roots.project), roots.workspace_identity, clock())
        self._indexes = {side: self._saved_index(side) for side in Side}
        self._moved: set[Side] = set()
        if readonly:
            self.messages += self._unfinished()

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the state."""
        self.state.close()

    def _saved_index(self, side: Side) -> Index:
        blob = self.state.index_blob(self._index_key(side))
        return Index.decode(blob) if blob else Index()

    def _index_key(self, side: Side) -> str:
        return "store" if side is Side.STORE else f"workspace:{self.checkout}"

    def _conversations(self, side: Side) -> str:
        roots = self.roots
        return roots.store_conversations if side is Side.STORE else roots.workspace_conversations

    def look(self) -> Look:
        """Scan both sides, with the events of the streams that differ."""
        memory = self.state.load(self.checkout)
        found = {}
        for side in Side:
            scanned = scan(side, self._conversations(side), self.format, self._indexes[side])
            found[side] = scanned.snapshot
            if scanned.changed:
                self._indexes[side] = scanned.index
                self._moved.add(side)
        differ = needs_events(found[Side.STORE], found[Side.WORKSPACE], memory, self.rules)
        store, workspace = (inspect(found[side], self._conversations(side), self.format, differ) for side in Side)
        return Look(store, workspace, memory)

    def plan(self, look: Look, policy: Policy, now_ns: int | None = None) -> Plan:
        """Plan one pass; git and the length of paths are looked at here. ``now_ns``: as if it were then."""
        now = self._clock() if now_ns is None else now_ns
        return plan_as_asked(self, look, self.surroundings(policy), now)

    def board(self, look: Look, policy: Policy) -> Board:
        """Decide without planning: what `status` and `ls` show."""
        return decide(look.store, look.workspace, look.memory, policy, self.rules, self._clock())

    def busy(self) -> dict[str, str]:
        """Return the conversations whose lock another process holds, with who it is."""
        held = held_locks((self.roots.store, self.roots.workspace))
        found = {}
        for name, pid in held.items():
            conversation = self.format.parse_id(name.removesuffix(".lock"))
            if conversation is not None and self.format.lock_name(conversation) == name:
                found[conversation] = f"held by process {pid}"
        return found

    def open_in_terminals(self, look: Look) -> tuple[str, ...]:
        """Return the conversations that JP has open in a terminal."""
        known = {copy.conversation for copy in (*look.store.copies, *look.workspace.copies)}
        return active_conversations(self.roots.store, known, self.format.parse_id)

    def records(self, source: str | None) -> tuple[Checkout, ...]:
        """Return the records of this checkout's path, or of another checkout's, this one's own first."""
        project = os.path.realpath(source or self.roots.project)
        found = [each for each in self.state.checkouts() if each.project == project]
        return tuple(sorted(found, key=lambda each: each.id != self.checkout))

    def conflicts(self) -> frozenset[str]:
        """Return the conversations that were edited on both sides and not looked at since."""
        if self.checkout is None:
            return frozenset()
        return frozenset(each.conversation for each in self.state.conflicts(self.checkout) if not each.seen)

    def losers(self, conversation: str) -> tuple[tuple[Version, str], ...]:
        """Return the versions that lost a conflict nobody has looked at since, each with its path in the vault."""
        if self.checkout is None:
            return ()
        unseen = {
            (each.run, each.unit)
            for each in self.state.conflicts(self.checkout)
            if each.conversation == conversation and not each.seen
        }
        kept = self.state.versions.of_conversation(conversation)
        return tuple((each, self.vault.path(each.digest)) for each in kept if (each.run, each.unit) in unseen)

    def see_conflicts(self, conversations: Sequence[str]) -> None:
        """Note that the user has looked at these."""
        if self.checkout is not None:
            self.state.conflicts_seen(self.checkout, conversations)

    @property
    def file_names(self) -> tuple[str, ...]:
        """The managed files: metadata first, then the stream's in the order of replacement."""
        return (self.format.metadata_file, *self.format.stream_files)

    def contents(self, view: View) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Read the managed files of the store's and the workspace's copy; what can't be read is left out."""
        return self._contents(view.store.main), self._contents(view.workspace.main)

    def _contents(self, copy: Copy | None) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        if copy is None:
            return found
        names = {file.name for file in copy.files}
        root = Directory.open_root(self._conversations(copy.side))
        with root, root.below(copy.path) as directory:
            for name in self.file_names:
                read = read_files(directory, [name]) if name in names else {}
                if isinstance(read, dict):
                    found |= {key: content for key, (content, _) in read.items()}
        return found

    def surroundings(self, policy: Policy) -> Policy:
        """Complete a policy by what this checkout says: git's state, the room for paths."""
        room = PATH_MAX - len(os.fsencode(self.roots.workspace_conversations)) - 64
        return replace(policy, git_busy=git_busy(self.roots.project), path_limit=room)

    @contextmanager
    def exclusively(
        self, command: str, timeout: float, waiting: Callable[[str], None] = lambda _who: None
    ) -> Iterator[None]:
        """Hold reconcile's own lock on the store for one pass, and finish what a killed run left.

        ``waiting`` is called with who holds it, where it has to be waited for.

        Raises:
            LockedError: another reconcile holds it.
        """
        with own_lock(self._directory, command=command, timeout=timeout, waiting=waiting):
            self.messages += self._recovery().finish_all()
            yield

    def _unfinished(self) -> list[str]:
        """Say which runs were killed: who writes nothing doesn't finish them, and sees what they left."""
        holder = read_holder(self._directory)
        if holder is not None and process_lives(holder.pid):
            return []
        words = "was interrupted; the next run that isn't a dry run finishes what it left open"
        return [f"run {run.id} {words}" for run in self.state.journal.open_runs()]

    def _recovery(self) -> Recovery:
        return Recovery(
            where=self.roots,
            checkout=self.checkout,
            state=self.state,
            vault=self.vault,
            durability=self._durability,
            format=self.format,
            locks=self._locks(),
            open_roots=self._open_roots,
            clock=self._clock,
        )

    def _open_roots(self, stack: ExitStack) -> dict[Side, Root]:
        """Open the sides that are there."""
        paths = {side: path for side in Side if os.path.isdir(path := self._conversations(side))}
        return {side: stack.enter_context(closing(Root(path))) for side, path in paths.items()}

    def _open_looked_at(self, stack: ExitStack, look: Look) -> dict[Side, Root]:
        """Open both sides, or make what wasn't there; JP renames silos, and `rm -rf .jp` takes a second.

        Raises:
            MovedError: a side isn't the directory any more that was looked at.
        """
        roots = {}
        for side, snapshot in ((Side.STORE, look.store), (Side.WORKSPACE, look.workspace)):
            path = self._conversations(side)
            try:
                roots[side] = stack.enter_context(closing(Root(path, make=not snapshot.exists)))
            except (FileNotFoundError, NotADirectoryError):
                raise MovedError(f"{path}: found nothing, expected the directory of a moment ago", _AGAIN) from None
            if snapshot.exists and roots[side].identity != snapshot.identity:
                raise MovedError(f"{path}: found another directory, expected the one of a moment ago", _AGAIN)
        return roots

    def apply(
        self, plan: Plan, look: Look, policy: Policy, command: str, progress: Progress = lambda *_: None
    ) -> Outcome:
        """Carry out a plan made from ``look``, and remember what was achieved.

        A plan with nothing to do, on sides that are known, writes nothing at all.
        """
        outcome = Outcome()
        if plan.quiet:
            self._save_indexes()
            return outcome
        kept = [v for v in plan.preserve if not self.state.versions.has(v.digest, v.conversation, v.unit)]
        if plan.concerned or kept:
            outcome = self._run(plan, look, kept, command, progress)
            after = self.look() if plan.actions else look
        else:
            after = look
        self._remember(plan, after, policy, outcome)
        return outcome

    def _run(self, plan: Plan, look: Look, kept: list[Preserve], command: str, progress: Progress) -> Outcome:
        with ExitStack() as stack:
            return self._run_on(self._open_looked_at(stack, look), plan, look, kept, command, progress)

    def _run_on(
        self,
        roots: dict[Side, Root],
        plan: Plan,
        look: Look,
        kept: list[Preserve],
        command: str,
        progress: Progress,
    ) -> Outcome:
        assert self.checkout is not None  # noqa: S101 - only a dry run has none
        journal = self.state.journal
        request = plan.policy.request
        undoes = find_run(self.state, request.run).id if isinstance(request, TakeBack) else None
        summary = json.dumps(plan.summary())
        run = journal.begin_run(self.checkout, command, self._clock(), summary=summary, undoes=undoes)
        journal.plan_steps(run, planned_steps(plan), self._clock())
        journal.remember(run, remembered(look.memory, sorted(plan.concerned)))
        journal.record_intents(run, self.checkout, decided_ahead(plan, run), dict(plan.remembered))
        conflicts = [
            (note.conversation, note.unit)
            for note in plan.notes
            if note.reason is Reason.CONFLICT and note.conversation
        ]
        self.state.add_conflicts(self.checkout, run, conflicts)
        stage = Stage(
            roots=roots,
            vault=self.vault,
            durability=self._durability,
            run=run,
            directory=staging_name(self.state.identity(), run),
            unit_of=self.format.unit_of,
            id_of=self.format.id_of,
            keep=self.state.versions.add,
        )
        self._preserve(kept, stage)
        recorder = Recorder(journal, run, self._clock)
        executor = Executor(stage, self._locks(), self.format, recorder, progress)
        outcome = executor.run(plan)
        idle = left_alone(plan, outcome.undone())
        journal.record_intents(run, self.checkout, Fold(), remembered(look.memory, idle))
        cleaned = self._clean(stage)
        outcome.run = run
        if cleaned:
            failed = outcome.count(Result.FAILED) > 0
            journal.finish_run(run, 1 if failed else 0, self._clock())
        return outcome

    def _clean(self, stage: Stage) -> bool:
        """Remove what was staged and not used; tell whether nothing is left, else the run stays open for the next."""
        ours = {side: stage.roots[side] for side in stage.used}
        steps = partial(self.state.journal.steps, stage.run)
        try:
            self.state.versions.add(clean_staging(stage.directory, stage.run, ours, steps, self.vault))
            return not any(is_staged(root, stage.directory) for root in ours.values())
        except OSError as error:
            self.messages.append(f"what run {stage.run} has staged can't be cleaned up yet: {error}")
            return False

    def _locks(self) -> LockSet | NullLockSet:
        if self.roots.format == "plain":
            return NullLockSet()
        return LockSet(LockRoots(self.roots.store, self.roots.workspace))

    def _preserve(self, kept: list[Preserve], stage: Stage) -> None:
        """Put versions into the vault that nothing replaces yet; what has changed meanwhile is left for next time."""
        versions = []
        for version in kept:
            try:
                fd = stage.roots[version.place.side].open_file(version.place.path)
            except OSError:
                continue
            try:
                found = self.vault.put_file(fd)
            finally:
                os.close(fd)
            if found.xxh3 == version.digest:
                versions.append(preserved(version, found.digest, stage.run))
        self.vault.flush()
        self.state.versions.add(versions)

    def _remember(self, plan: Plan, after: Look, policy: Policy, outcome: Outcome) -> None:
        assert self.checkout is not None  # noqa: S101 - only a dry run has none
        # The plan's own intents are written already: the fold starts from what is remembered now.
        memory = self.state.load(self.checkout)
        idle = left_alone(plan, outcome.undone())
        plan = replace(plan, asides=tuple(each for each in plan.asides if each[0][0] not in idle))
        changes = fold(after.store, after.workspace, memory, plan, policy, self.rules, outcome.undone())
        self.state.save_fold(self.checkout, learned(changes, outcome.run))
        self._save_indexes()

    def _save_indexes(self) -> None:
        for side in self._moved:
            self.state.save_index(self._index_key(side), self._indexes[side].encode())
        self._moved.clear()

"""The session: the open store, workspace and state of a run, and the steps of a pass on them.

`Session.execute` is the only sequence that carries a plan out and remembers the result, also for the library.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar

from msgspec.structs import replace

from reconcile.adapters.jp.locks import active_conversations, held_locks
from reconcile.adapters.roots import link_store
from reconcile.apply.crash_recovery import CrashRecovery
from reconcile.apply.run import Site, carry_out, finish, locks_of
from reconcile.formats import get_format
from reconcile.fs.durability import Durability
from reconcile.fs.files import Directory, read_files
from reconcile.fs.git_state import checkout_top, git_busy, worktrees
from reconcile.fs.hashing import digest
from reconcile.fs.locks import read_holder, run_lock
from reconcile.fs.paths import directory_identity
from reconcile.fs.posix import process_lives
from reconcile.index.file import IndexFile, cache_path
from reconcile.model.baseline import IntentKind, Verb, WorldState
from reconcile.model.policy import UndoRequest
from reconcile.model.snapshot import METADATA, Fault, Side, Unreadable, is_same_directory
from reconcile.model.units import Rules
from reconcile.planning.decide import decide
from reconcile.planning.planner import needs_contents, needs_events, needs_logs
from reconcile.planning.rules.commit_order import doubts_of, split_archives
from reconcile.scan.scan import CHANGED, inspect
from reconcile.scan.scanner import Scanner
from reconcile.state.baseline_table import BaselineUpdate
from reconcile.state.database import State
from reconcile.state.schema import LIBRARY
from reconcile.state.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import TracebackType

    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Outcome, Progress
    from reconcile.engine.secret_check import SecretCheck
    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Format
    from reconcile.model.past_run import Restorable
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy, Request
    from reconcile.model.snapshot import Content, Copy, Digest, File, Snapshot
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.commit_order import FileOf
    from reconcile.planning.rules.guards import Whole
    from reconcile.planning.rules.views import View
    from reconcile.scan.git_records import GitRecord, Sought
    from reconcile.scan.outdated import KeptHistory
    from reconcile.state.database import Checkout
    from reconcile.state.directory import Generation
    from reconcile.state.journal import Run

History: TypeAlias = "Mapping[tuple[str, str], tuple[Digest, ...]]"
"""The digests of units, by conversation and unit."""


class Scanned(Protocol):
    """The sides after a run: everything, or a part with the properties of both sides as wholes."""

    @property
    def world(self) -> WorldState:
        """The snapshots, with the baseline before the run is remembered."""

    @property
    def whole(self) -> Whole | None:
        """The properties of both sides as wholes; None: the snapshots are everything."""


R = TypeVar("R", bound=Scanned)

_WORTH_A_FOLD = 8192
"""Bytes of a version from which the one before is folded into it: the file of a part takes a block of 4,096."""
PATH_MAX = 4096
"""Bytes of a path that Linux takes; macOS takes 1024, but reaches deeper files through descriptors."""


class Session:
    """The store and one workspace, open for one or more passes. A context manager.

    ``readonly``: a dry run, which writes nothing, not even to the state. ``stays``: the process goes on for days, and
    holds little of the index in memory.
    """

    def __init__(
        self,
        roots: Roots,
        state_directory: str,
        *,
        readonly: bool = False,
        stays: bool = False,
        sound: Generation | None = None,
        ignore: Sequence[str] = (),
        durability: Durability | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open the state, ``sound`` as in `State.open`; ``ignore`` are patterns of extra files that are not synced."""
        self.roots = roots
        self.format: Format = get_format(roots.format, tuple(ignore))
        self.rules = Rules(self.format, digest)
        self.directory = state_directory
        self.ignore = tuple(ignore)
        self.readonly = readonly
        self._clock = clock
        durability = durability or Durability()
        if roots.link and not readonly:
            link_store(roots)
        self.state = State.open(state_directory, readonly=readonly, sound=sound)
        self.state.is_of_remote = roots.is_of_remote
        self.vault = Vault(state_directory, durability)
        self.messages: list[str] = list(self.state.messages)
        """Messages that every run repeats while their cause persists."""
        self.has_finished_runs = False
        self.elsewhere: Callable[[str], Restorable | None] = lambda _version: None
        """Returns what a version that is not in the vault has, by its name; None: it can only be in the vault."""
        self.has_reported_lost = False
        """Whether the messages name conversations that were lost with the store."""
        self.remarks: list[str] = []
        """Messages of this command alone."""
        self.project = os.path.realpath(roots.project)
        self.checkout = self.state.checkout(self.project, roots.workspace_identity, clock())
        self.site = Site(
            where=roots,
            checkout=self.checkout,
            state=self.state,
            vault=self.vault,
            durability=durability,
            format=self.format,
            clock=clock,
            locks=locks_of(roots),
        )
        self.scanner = Scanner(
            {side: self.site.conversations(side) for side in Side},
            IndexFile(state_directory, roots.workspace_identity, stays=stays),
            self.format,
            clock,
            is_of_remote=roots.is_of_remote,
        )
        if readonly:
            self.messages += self._unfinished()

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the state."""
        self.close()

    @property
    def notices(self) -> list[str]:
        """All messages that are printed with a plan."""
        return [*self.messages, *self.remarks]

    def close(self) -> None:
        """Close the state; further calls do nothing."""
        self.state.close()

    def scan(self, touched: Collection[Side] = tuple(Side)) -> WorldState:
        """Scan both sides, with the events of the streams that differ.

        ``touched`` are the sides that this run has written to since the last scan (`Scanner.scan`).
        """
        baseline = self.state.load(self.checkout)
        snapshots = self.scanner.scan(touched)
        return self.with_events(WorldState(snapshots[Side.STORE], snapshots[Side.WORKSPACE], baseline))

    def with_events(self, world: WorldState) -> WorldState:
        """Return a world state with the data that planning needs for differing contents.

        These are the events of streams that differ, and the bytes of streams that may be merged. Of contents in doubt,
        they are git's order, and the agreed metadata.
        """
        if differ := needs_events(world.store, world.workspace, self.rules):
            world = self._inspected(world, differ)
            world = self._inspected(world, needs_contents(world.store, world.workspace), contents=True)
        if logs := needs_logs(world.store, world.workspace, self.rules):
            from reconcile.scan.logs import with_logs  # here: most formats have none

            places = {side: self.site.conversations(side) for side in Side}
            rows = {side: self.scanner.index(side).rows for side in Side}
            world = with_logs(world, places, logs, rows)
        return replace(world, baseline=self._with_facts_in_doubt(world.store, world.workspace, world.baseline))

    def _inspected(self, world: WorldState, ids: Collection[str], *, contents: bool = False) -> WorldState:
        store, workspace = (
            inspect(snapshot, self.site.conversations(snapshot.side), self.format, ids, contents=contents)
            for snapshot in (world.store, world.workspace)
        )
        return WorldState(store, workspace, world.baseline)

    def _with_facts_in_doubt(self, store: Snapshot, workspace: Snapshot, baseline: Baseline) -> Baseline:
        doubts = doubts_of(store, workspace, baseline, self.rules)
        split = split_archives(store, workspace, baseline, self.rules)
        if not doubts and not split:
            return baseline
        from reconcile.scan.outdated import committed_of, outdated_of  # here: most runs have no doubts

        places = {side: self.site.conversations(side) for side in Side}
        committed = committed_of(split, places[Side.WORKSPACE], self.format, self._history)
        outdated = outdated_of(doubts, places, self.format, self._history)
        edited = [(doubt.key[0], doubt.edited) for doubt in doubts if doubt.edited and doubt.key[1] == METADATA]
        contents = self.state.agreed_contents(edited) if edited else {}
        return replace(baseline, outdated=outdated, committed=committed, contents=contents)

    @cached_property
    def _history(self) -> KeptHistory:
        from reconcile.scan.outdated import HISTORY_KIND, KeptHistory  # here: see above

        path = cache_path(self.directory, HISTORY_KIND, self.roots.workspace_identity)
        return KeptHistory(path, readonly=self.readonly)

    @cached_property
    def secret_check(self) -> SecretCheck:
        """The check of what is published; only a plan that publishes something loads it."""
        from reconcile.engine.secret_check import SecretCheck  # here: most runs publish nothing

        return SecretCheck(self.site, self.directory)

    def git_records(self, conversations: Collection[str]) -> dict[str, GitRecord] | None:
        """Return what git has of these conversations; None if it gave no answer (`git_records`)."""
        from reconcile.scan.git_records import git_records  # here: most runs don't ask

        return git_records(conversations, self.site.conversations(Side.WORKSPACE), self.format, self._history)

    def texts_in_git(
        self, sought: Mapping[FileOf, Sought], texts_of: Callable[[bytes, Collection[bytes]], Collection[str]]
    ) -> dict[FileOf, dict[str, GitRecord | None]] | None:
        """Return what git has of texts in the workspace's files; None if it gave no answer (`texts_in_git`)."""
        from reconcile.scan.git_records import texts_in_git  # here: most runs don't ask

        return texts_in_git(sought, texts_of, self.site.conversations(Side.WORKSPACE), self.format, self._history)

    def now_ns(self) -> int:
        """Return the session's current time in ns."""
        return self._clock()

    def planning_context(self, world: WorldState, policy: Policy, whole: Whole | None = None) -> PlanningContext:
        """Decide without planning; ``whole`` is required if ``world`` is a part."""
        return decide(world.store, world.workspace, world.baseline, policy, self.rules, self._clock(), whole=whole)

    def busy(self) -> dict[str, str]:
        """Return the conversations whose lock another process holds, each with a text that names the process."""
        held = held_locks((self.roots.store, self.roots.workspace))
        holders = {}
        for name, pid in held.items():
            conversation = self.format.parse_id(name.removesuffix(".lock"))
            if conversation is not None and self.format.lock_name(conversation) == name:
                holders[conversation] = f"held by process {pid}"
        return holders

    def git_operation(self) -> str | None:
        """Return git's unfinished operation in the workspace, in words; None if there is none."""
        return git_busy(self.roots.project) if self.roots.is_in_project else None

    def open_in_terminals(self, world: WorldState) -> tuple[str, ...]:
        """Return the conversations that JP has open in a terminal."""
        known = {copy.conversation for copy in (*world.store.copies, *world.workspace.copies)}
        return active_conversations(self.roots.store, known, self.format.parse_id)

    def records(self, source: str | None) -> tuple[Checkout, ...]:
        """Return the checkouts in the state with this project's path, or with ``source``; the current one first."""
        project = self.project if source is None else os.path.realpath(source)
        checkouts = [checkout for checkout in self.state.checkouts() if checkout.project == project]
        return tuple(sorted(checkouts, key=lambda checkout: checkout.id != self.checkout))

    def state_of(self, checkout: Checkout) -> str:
        """Return the state of a checkout: here, there, replaced by another directory, gone, or unreadable.

        A checkout whose directory can't be read need not be gone.
        """
        if checkout.id == self.checkout:
            return "here"
        try:
            now = directory_identity(self.roots.in_checkout(checkout.project).identified)
        except OSError:
            return "unreadable"
        return "there" if is_same_directory(now, checkout.identity) else "replaced" if now else "gone"

    def gone(self) -> dict[str, set[str]]:
        """Return the projects of checkouts that are gone, the last seen first, and the conversations that each had.

        Without local conversations, and those that were removed there. Without a project that is another worktree of
        the repository now: it was renamed, and its conversations are that one's. Without all if that is unknown.
        """
        had: dict[str, set[str]] = {}
        gone = [checkout for checkout in self.state.checkouts() if self.state_of(checkout) == "gone"]
        others = self._other_worktrees() if gone else ()
        if others is None:
            return had
        # `--all` makes a second record of a project that is gone, with the identity of the program's directory.
        renamed = {each.project for each in gone if any(is_same_directory(other, each.identity) for other in others)}
        for checkout in (each for each in gone if each.project not in renamed):
            baseline = self.state.load(checkout.id)
            for conversation in baseline.agreed:
                intent = baseline.intents.get(conversation)
                if intent is None or intent.kind is IntentKind.PROJECTED:
                    had.setdefault(checkout.project, set()).add(conversation)
        return had

    def _other_worktrees(self) -> tuple[str, ...] | None:
        """Return the identities of the other worktrees of the repository; None if they are unknown."""
        project = os.path.realpath(self.roots.project)
        try:
            tops, own = worktrees(project), checkout_top(project)
            if tops is None or own is None:
                return None if tops is None else ()
            below = os.path.relpath(project, own)
            places = (os.path.normpath(os.path.join(top, below)) for top in tops if os.path.realpath(top) != own)
            return tuple(filter(None, (directory_identity(self.roots.in_checkout(at).identified) for at in places)))
        except OSError:
            return None

    def forks_of_gone(self) -> dict[str, set[str]]:
        """Return the projects of checkouts that are gone, and the forks that runs there made: also those of the store.

        Without forks that the checkout had: `gone` has these.
        """
        made, had = self.state.journal.forks(), self.gone()
        found: dict[str, set[str]] = {}
        for checkout in self.state.checkouts():
            forks = made.get(checkout.id, set()) - had.get(checkout.project, set())
            if forks and self.state_of(checkout) == "gone":
                found.setdefault(checkout.project, set()).update(forks)
        return found

    def lost(self, world: WorldState, policy: Policy) -> frozenset[str]:
        """Return the conversations of earlier checkouts at this path that `recover` would offer.

        There is none as soon as anything was in sync in this checkout.
        """
        if world.baseline.agreed:
            return frozenset()
        earlier = [checkout.id for checkout in self.records(None) if checkout.id != self.checkout]
        if not earlier:
            return frozenset()
        from reconcile.planning.requests.recover import offers, with_records

        records = [world.baseline, *map(self.state.load, earlier)]
        planning = self.planning_context(replace(world, baseline=with_records(world.baseline, records)), policy)
        groups = offers(planning, records).groups
        return frozenset(conversation for group in groups if group.known for conversation in group.conversations)

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of the managed files: metadata first, then the stream's in the order of replacement."""
        return (self.format.metadata_file, *self.format.stream_files)

    def contents(self, view: View) -> tuple[dict[str, Content], dict[str, Content]]:
        """Return the managed files of the store's and the workspace's copy, with the content that was scanned.

        A missing file has no entry; an unreadable one, or one that has changed since the scan, has a `Fault`.
        """
        return self._contents(view.store.main), self._contents(view.workspace.main)

    def _contents(self, copy: Copy | None) -> dict[str, Content]:
        if copy is None:
            return {}
        files = {file.name: file for file in copy.files}
        contents: dict[str, Content] = {}
        for name in self.file_names:
            # If the directory itself can't be read, its files must not seem to be missing.
            fault = copy.stream if name in self.format.stream_files else copy.metadata
            if name not in files and isinstance(fault, Fault) and not fault.incomplete:
                contents[name] = fault
        if not files:
            return contents
        root = Directory.open_root(self.site.conversations(copy.side))
        above, _, alone = copy.path.rpartition("/") if "" in files else (copy.path, "", "")
        with root, root.below(above) as directory:
            return contents | {
                name: self._content(directory, files[name], alone) for name in self.file_names if name in files
            }

    def _content(self, directory: Directory, file: File, alone: str) -> Content:
        """Read one file; ``alone`` is its name if the copy itself is the file."""
        read = read_files(directory, [file.name or alone])
        if isinstance(read, Fault):
            return read
        content = read[file.name or alone][0]
        if file.digest is not None and digest(content) != file.digest:
            return Unreadable(file.name, CHANGED, "the content that was scanned")
        return content

    def surroundings(self, policy: Policy) -> Policy:
        """Return the policy with this checkout's surroundings: whether git is busy, and the longest path in bytes."""
        room = PATH_MAX - len(os.fsencode(self.roots.workspace_conversations)) - 64
        return replace(policy, git_busy=self.git_operation(), path_limit=room)

    @contextmanager
    def exclusively(
        self, command: str, timeout: float, waiting: Callable[[str], None] = lambda _who: None
    ) -> Iterator[None]:
        """Hold the run lock on the store for one pass, and finish killed runs first.

        ``waiting`` is called with a text that names the holder, if another process holds the lock. ``timeout`` in s.

        Raises:
            LockedError: another process still holds the lock after the timeout.
        """
        with run_lock(self.directory, command=command, timeout=timeout, waiting=waiting):
            self.finish_killed_runs()
            self.site = replace(self.site, since=self.state.journal.mark())
            yield

    def record_decisions(self, plan: Plan, command: str) -> None:
        """Record the decisions of a plan that a person has confirmed, so that a kill before its run doesn't lose them.

        The next run finishes them, and the run of the plan records them as its own.

        Raises:
            LockedError: another process holds the run lock.
        """
        waiting = {
            key: replace(request, run=None, why="it was interrupted before its run began")
            for key, request in plan.waiting
            if request is not None and key[1] is Verb.RESOLVE
        }
        if waiting:
            with run_lock(self.directory, command=command, timeout=0):
                self.state.save_update(self.site.number, BaselineUpdate(waiting=waiting))

    def finish_killed_runs(self) -> None:
        """Finish killed runs; the caller holds the run lock."""
        finished = list(CrashRecovery(self.site).finish_all())
        self.has_finished_runs |= bool(finished)
        self.messages += finished

    def _unfinished(self) -> list[str]:
        """Return a message for each killed run: a dry run does not finish these, and shows the files as they are."""
        holder = read_holder(self.directory)
        if holder is not None and process_lives(holder.pid):
            return []
        words = "was interrupted; the next run (no dry run) completes or cleans up its open steps"
        return [f"run {run.id} {words}" for run in self.state.journal.open_runs() if not self._is_alive(run)]

    def _is_alive(self, run: Run) -> bool:
        """Tell whether a run of the library is alive: it holds a conversation's lock until it ends."""
        if run.command != LIBRARY:
            return False
        return not self.busy().keys().isdisjoint(step.conversation for step in self.state.journal.steps(run.id))

    def execute(
        self,
        plan: Plan,
        before: WorldState,
        rescan: Callable[[Outcome], R],
        command: str,
        progress: Progress,
        *,
        site: Site | None = None,
        history: History | None = None,
    ) -> tuple[Outcome, R]:
        """Carry out a plan that was made from ``before``, rescan, update the baseline, and close the run.

        Every plan is executed here: the runs of all commands and of `watch`, and the changes of the library.
        ``rescan`` scans again what the plan may have touched; it is called even if nothing was carried out. ``command``
        is the name of the run in the journal. ``site`` has the connection and the lock of a thread of the library; by
        default it is the session's. ``history`` has digests that become the newest versions.

        Raises:
            MovedError: a side isn't the directory any more that was scanned.
        """
        site = site or self.site
        outcome = self.carry_out(plan, before, command, progress, site, history)
        after = rescan(outcome)
        finish(site, self.rules, plan, before, after.world, outcome, after.whole)
        if outcome.run is not None and any(
            write.size >= _WORTH_A_FOLD for action in plan.actions for write in action.writes
        ):
            self._fold_versions(outcome.run)
        return outcome, after

    def _fold_versions(self, run: str) -> None:
        """Keep the version before that of a run as its beginning, if it is: programs append an event at each turn.

        Otherwise each turn would add the whole stream to the vault. What fails now is left whole.
        """
        for version in self.state.versions.of_run(run):
            if version.size >= _WORTH_A_FOLD and (earlier := self.state.versions.before(version)) is not None:
                with suppress(OSError):
                    self.vault.fold(earlier.digest, version.digest)

    def carry_out(
        self, plan: Plan, world: WorldState, command: str, progress: Progress, site: Site, history: History | None
    ) -> Outcome:
        """Carry out a plan; the run stays open in the journal. Only `execute` calls it."""
        return carry_out(site, plan, world, command, self._undoes(plan.policy.request), progress, history)

    def _undoes(self, request: Request | None) -> str | None:
        """Return the id of the run that an undo is about; None: the request is another one."""
        if not isinstance(request, UndoRequest):
            return None
        from reconcile.engine.run_history import find_run  # here: most runs undo nothing

        return find_run(self.state, request.run).id

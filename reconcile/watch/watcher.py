"""The watcher: scans, plans and applies what events name, until it is stopped (docs/watch.md).

It waits in two states of a store. JP merges the stores of one workspace when it starts: directory by directory, without
a lock (docs/design/formats/jp.md#stores). A conversation that has moved to the other store is not removed. A store is
lost if its disk isn't mounted or its directory was moved away; only a command that a person runs fills it again.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.run import MovedError
from reconcile.engine.engine import Engine
from reconcile.errors import ReconcileError
from reconcile.fs.files import error_text
from reconcile.fs.locks import LockedError, watch_lock
from reconcile.fs.paths import directory_identity
from reconcile.fs.posix import release_memory
from reconcile.index.on_disk import IndexChangedError
from reconcile.inspect.losses import losses_of
from reconcile.model.baseline import LOST, Baseline, WorldState
from reconcile.model.names import CHILDREN
from reconcile.model.plan import counted_as
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import ARCHIVE, Side, Snapshot, is_same_directory
from reconcile.planning.filters import without_moving
from reconcile.planning.rules.guards import has_lost_all
from reconcile.watch.fs_events import Debouncer, EventListener, EventQueue, EventsUnavailableError, S, target_of
from reconcile.watch.reporter import EventKind, Reporter, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Outcome
    from reconcile.engine.engine import Pass
    from reconcile.engine.session import Session
    from reconcile.inspect.losses import Losses
    from reconcile.model.format import Format
    from reconcile.model.policy import Policy
    from reconcile.watch.fs_events import Directories
    from reconcile.watch.reporter import WatchStatus


class MergingError(ReconcileError):
    """Conversations that left the store are in another store of the same workspace."""

    exit_code = 4


class LostError(ReconcileError):
    """The store is gone or empty, or a directory without its conversations replaced it."""

    exit_code = 4


def refuse_lost(world: WorldState, roots: Roots, fmt: Format) -> None:
    """Raise an error while the store is lost: until it is back, or a command has filled it.

    Raises:
        LostError: the store is lost.
    """
    store, baseline = world.store, world.baseline
    there = {copy.conversation for copy in store.copies}
    lacking = baseline.agreed.keys() - there - baseline.tombstones.keys()
    known = baseline.store_identity
    replaced = known not in (None, LOST) and not is_same_directory(store.identity, known)
    if not lacking or not (replaced or has_lost_all(store, baseline, fmt)):
        return
    problem = "replaced" if store.copies else "emptied" if store.exists else "deleted"
    raise LostError(
        f"{roots.store_conversations}: the store was {problem} and lacks {len(lacking)} {roots.noun}s; "
        "watch waits until it is back. Run reconcile to fill it again from the workspace"
    )


def refuse_merging(world: WorldState, roots: Roots, fmt: Format) -> None:
    """Raise an error while JP merges the store into another one.

    Raises:
        MergingError: conversations of the store are in the other one.
    """
    gone = (
        world.baseline.agreed.keys() - {copy.conversation for copy in world.store.copies} if roots.siblings else set()
    )
    for sibling in roots.siblings if gone else ():
        if not gone.isdisjoint(_conversations(os.path.join(sibling, CHILDREN), fmt)):
            raise MergingError(
                f"{roots.store_conversations}: some of its conversations are in {sibling} now; "
                "watch waits until JP has merged the two stores, which it does when it starts"
            )


def _conversations(directory: str, fmt: Format) -> Iterator[str]:
    for path in (directory, os.path.join(directory, ARCHIVE)):
        try:
            names = os.listdir(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            words = f"{path}: can't be read ({error_text(error)}), but may have the conversations that the store lacks"
            raise MergingError(words, "make it readable, or stop the watcher") from None
        yield from (conversation for name in names if (conversation := fmt.id_of(name)) is not None)


_SECOND = 10**9
COMMAND = "watch"
BURST = 4096
"""After more events than this without a pause, the kernel may have dropped some silently."""
_LOCKED_NS = _SECOND // 20
"""The time between two attempts to acquire reconcile's own lock; it is short, so that a stop request is noticed."""
_BUSY_NS = 2 * _SECOND
"""The time between two checks whether the program that owns the records is still running."""
_BUSY_AT_MOST_NS = 60 * _SECOND
"""The longest time between two attempts at a conversation whose lock has a holder that the system does not name."""
_RETRY_NS = _SECOND
"""The time between two attempts to open a session again."""
_FAILED_NS = 15 * _SECOND
"""The time until another attempt at what the system has refused."""
_RELEASE_NS = 20 * _SECOND
"""The time between two releases of memory while passes go on; each takes 10 to 20 ms."""
SUSPENDED_NS = 2 * _SECOND
"""If the clock that includes suspension gains more than this, the machine was suspended."""


class Timings(Struct, frozen=True):
    """Intervals and delays in ns. ``quiet`` and ``at_most``: see `Debouncer`.

    ``everything``: between full scans. ``poll``: between full scans at least, if the system sends no events. ``check``:
    between checks of things without events (the sides themselves, git, JP's locks). ``grace``: until an invalid file or
    a git operation is reported.
    """

    quiet: int = 150_000_000
    at_most: int = 2 * _SECOND
    everything: int = 300 * _SECOND
    poll: int = 2 * _SECOND
    check: int = _SECOND // 4
    grace: int = 2 * _SECOND


class WatchTarget(Struct, frozen=True):
    """A session with its configuration; ``lock_timeout`` is in seconds.

    ``find`` locates the sides again, as for the session: JP merges stores, and ids change.
    """

    session: Session
    policy: Policy
    lock_timeout: float
    timings: Timings
    find: Callable[[], Roots]


class StoppedError(Exception):
    """A stop request between two batches of actions."""


class _Busy(Struct):
    """A conversation whose lock another program holds, and the locks that its steps need.

    ``due``: when it is tried again, in ns, unless the system names a holder (``is_seen``).
    """

    directories: Directories
    touched: tuple[str, ...]
    due: int
    is_seen: bool = False


class Vanishing:
    """Conversations that vanished from the store, as of the last run; ``since``: when the set has changed last."""

    def __init__(self) -> None:
        self._conversations: frozenset[str] = frozenset()
        self.since = 0

    def is_among(self, conversations: frozenset[str]) -> bool:
        """Tell whether any of them has vanished."""
        return not self._conversations.isdisjoint(conversations)

    def left_out(self, run: Pass, now: int, at_most: int) -> Pass:
        """Leave out conversations that vanish from the store while more vanish: the whole store may be moving."""
        vanishing = frozenset(
            action.conversation for action in run.plan.actions if action.reason is Reason.REMOVED_IN_STORE
        )
        if vanishing != self._conversations:
            self._conversations, self.since = vanishing, now
        if not vanishing or now >= self.since + at_most:
            return run
        moving = run.moving | vanishing
        return replace(run, plan=without_moving(run.plan, moving), moving=moving)


def demand_going_on(queue: EventQueue[S], done: int, count: int) -> None:
    """Raise `StoppedError` if a stop is requested and there are more actions to do."""
    if queue.stop_requested and done < count:
        raise StoppedError(f"{done} of {count} actions done")


class WatchLoop:
    """The loop over one session; it ends at a request to stop or to reopen, or if a side is another directory."""

    def __init__(self, target: WatchTarget, queue: EventQueue[Side], reporter: Reporter) -> None:
        self._session = target.session
        self._target = target
        self._timings = target.timings
        self._queue = queue
        self._reporter = reporter
        self._engine = Engine(target.session)
        self._debouncer = Debouncer(self._timings.quiet, self._timings.at_most)
        self._busy: dict[str, _Busy] = {}
        self._busy_waits: dict[str, int] = {}
        """The time in ns that each of them waits if its holder isn't seen; it doubles at each attempt."""
        self._git: str | None = None
        self._git_busy_since = 0
        """The start of the git operation that is in progress."""
        self._git_free_since: int | None = None
        """The time since which there is no sign of a git operation."""
        self._locked_since: int | None = None
        """The time since which another reconcile has the store's lock."""
        self._vanishing = Vanishing()
        self._told: set[str] = set()
        """The messages that were reported: every pass repeats one about a killed run that can't be finished yet."""
        self._event_count = 0
        """Events since the last pause."""
        self._memory_released_at = time.monotonic_ns()
        self._check_at = 0
        self._polling_until: int | None = None
        """If the system sends no events: when the next attempt to listen is due."""
        self._sides = {side: target.session.site.conversations(side) for side in Side}
        self._identities = self._identify()

    def run(self) -> None:
        """Find what has changed while no watcher was running, then scan what events name."""
        with self._listening(), closing(self._engine):
            self._go_on()
            self._save()

    def _go_on(self) -> None:
        """Run whenever something is due, until a stop request, or until a side is another directory."""
        suspended = suspended_ns()
        while not (self._queue.stop_requested or self._queue.reopen_requested):
            now = time.monotonic_ns()
            if self._identify() != self._identities or (self._polling_until is not None and now >= self._polling_until):
                return
            self._release_busy(now)
            self._reporter.report_delayed(now)
            if not self._is_git_busy(now) and not self._run_if_due(now):
                return
            events = self._queue.take(self._wait_ns(time.monotonic_ns()))
            self._enqueue(events, time.monotonic_ns())
            if (suspended_now := suspended_ns()) - suspended > SUSPENDED_NS:
                suspended, self._check_at = suspended_now, 0

    def _save(self) -> None:
        """Save what is known for the next process. A failure is ignored: that one scans both sides then."""
        if not self._engine.has_unsaved or self._identify() != self._identities:
            return
        with suppress(ReconcileError, OSError), self._session.exclusively(COMMAND, 0):
            self._engine.save_for_next(self._target.policy)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Receive events while the block runs, if the system sends any."""
        places = self._session.format.places
        tops = () if places is None else places.tops
        self._listener = EventListener(self._sides, self._queue.on_event, self._queue.reopen, tops)
        try:
            self._listen(self._listener.start)
            if self._polling_until is None:
                self._reporter.report_events()
            yield
        finally:
            self._listener.stop()

    def _listen(self, call: Callable[[], None]) -> None:
        """Call a method of the listener; poll both sides if the system sends no events."""
        try:
            call()
        except EventsUnavailableError as error:
            self._polling_until = time.monotonic_ns() + self._timings.everything
            self._reporter.report_polling(
                f"{error}; scanning both sides about every {self._timings.poll // _SECOND} s instead"
            )

    def _identify(self) -> dict[str, str]:
        """Return the identities of the watched directories; a link in the place of one has none."""
        paths = (*self._sides.values(), self._session.directory)
        return {path: "" if os.path.islink(path) else present_identity(path) for path in paths}

    def _wait_ns(self, now: int) -> int:
        """Return how long to wait for events, in ns; due work waits while git or another reconcile is busy."""
        if self._git_free_since is not None:
            return self._git_idle_at(self._git_free_since) - now
        if self._git is not None:
            return self._timings.check
        if self._locked_since is not None:
            return _LOCKED_NS
        dues = [now + self._timings.check, self._check_at]
        if (due := self._debouncer.due_at()) is not None:
            dues.append(due)
        return min(dues) - now

    def _enqueue(self, events: Iterable[tuple[Side, str]], now: int) -> None:
        count = 0
        for side, path in events:
            count += 1
            if (target := target_of(self._session.format, path)) is not None:
                self._debouncer.touch(target.conversation, side, target.directories, now)
        self._event_count = self._event_count + count if count else 0
        if self._event_count > BURST:
            self._check_at = min(self._check_at, now + self._timings.at_most)

    def _is_git_busy(self, now: int) -> bool:
        """Return whether a git operation is in progress: the workspace's state is temporary then.

        The operation counts as finished after the quiet time without a sign of it: there may be none between two of
        its steps. The wait also lets the events of its last files arrive, so that all files are handled together.
        Short operations are not reported: every `git status` of an editor locks git's index.
        """
        before, operation = self._git, self._session.git_operation()
        if operation is not None:
            self._git, self._git_free_since = operation, None
            self._git_busy_since = now if before is None else self._git_busy_since
        elif before is not None:
            self._git_free_since = now if self._git_free_since is None else self._git_free_since
            if now >= self._git_idle_at(self._git_free_since):
                self._git = self._git_free_since = None
                self._reporter.report_resumed()
        if operation is not None and now - self._git_busy_since >= self._timings.grace:
            self._reporter.report_waiting(f"git is busy ({self._git})")
        return self._git is not None

    def _git_idle_at(self, free_since: int) -> int:
        """Return when git counts as idle, if there is no sign of an operation since ``free_since``."""
        quiet, at_most = self._timings.quiet, self._timings.at_most
        return min(max(free_since + quiet, self._debouncer.all_due_at()), free_since + max(quiet, at_most))

    def _run_if_due(self, now: int) -> bool:
        """Run if something is due; return False if a side is another directory now."""
        if now < self._check_at and not self._debouncer.is_due(now):
            return True
        try:
            self._run_pass(now)
            self._engine.resume(self._target.policy)
            self._release_memory(now)
        except LockedError as error:
            self._locked_since = now if self._locked_since is None else self._locked_since
            if now - self._locked_since >= self._target.lock_timeout * _SECOND:
                self._reporter.report_waiting(error.message)
        except MovedError:
            return False
        except IndexChangedError:
            self._engine.forget()
            self._check_at = now
        except (ReconcileError, OSError) as error:
            words = error.message if isinstance(error, ReconcileError) else str(error)
            self._reporter.report_waiting(words)
            self._check_at = now + 5 * _SECOND
        return True

    def _release_memory(self, now: int) -> None:
        """Give back what passes have freed: small values between long-lived ones keep whole blocks of memory."""
        if now - self._memory_released_at >= _RELEASE_NS:
            self._session.state.release_cache()
            release_memory()
            self._memory_released_at = now

    def _run_pass(self, now: int) -> None:
        with self._session.exclusively(COMMAND, 0):
            self._locked_since = None
            run, is_check = self._planned(now)
            if is_check:
                self._check_sides(run)
            run = self._vanishing.left_out(run, now, self._timings.at_most)
            if any(item.reason is Reason.GIT_BUSY for item in run.plan.held):
                self._check_at = now  # a git operation has begun since the scan: wait for its end
                return
            self._reporter.report_begin(len(run.plan.actions))
            try:
                self._progress(0, len(run.plan.actions))
                outcome = self._engine.apply(run, COMMAND, self._progress, is_saved=is_check)
            except StoppedError as stopped:
                self._reporter.emit(WatchEvent(kind=EventKind.ENDED, message=f"{stopped}; the others follow"))
                self._session.finish_killed_runs()
                return
            conversations = self._engine.known.conversations() if is_check else None
            losses = losses_of(self._session, run)  # their titles are in the copies
            run = _without_most_copies(run, {deed.action.conversation for deed in outcome.results.values()})
            if is_check:
                self._engine.settle(run, outcome)
        if is_check:
            end = time.monotonic_ns()
            self._event_count, self._check_at = 0, end + self._check_interval(end - now)
        if self._vanishing.is_among(run.moving):
            self._check_at = min(self._check_at, self._vanishing.since + self._timings.at_most)
        if any(item.reason is Reason.PROGRAM_BUSY for item in run.plan.held):
            # its lock may be released without an event
            self._check_at = min(self._check_at, time.monotonic_ns() + _BUSY_NS)
        self._reporter.report_resumed()
        self._report(run, outcome, conversations, losses)

    def _planned(self, now: int) -> tuple[Pass, bool]:
        """Plan what is due, and tell whether the pass is a check of everything."""
        policy, debouncer, engine = self._target.policy, self._debouncer, self._engine
        directories = debouncer.take(now)
        if now < self._check_at:
            engine.refresh(directories)
            run = engine.plan(policy, moving=debouncer.in_flight)
            return run, run.full
        engine.check(policy, directories)
        return engine.plan(policy, moving=debouncer.in_flight, also=engine.noteworthy), True

    def _check_sides(self, run: Pass) -> None:
        """Check that both sides are still the same directories, and that both send events."""
        if (roots := self._target.find()) != self._session.roots:
            raise MovedError(f"{roots.store}: the store is another directory now")
        if run.full:  # if a part suffices, the store has all that it should have
            refuse_merging(run.world, roots, self._session.format)
            refuse_lost(run.world, roots, self._session.format)
        if self._polling_until is None:
            self._listen(self._listener.check)

    def _check_interval(self, took: int) -> int:
        """Return the time until the next full scan; ``took`` is the duration of the last one."""
        return self._timings.everything if self._polling_until is None else max(self._timings.poll, 4 * took)

    def _progress(self, done: int, count: int) -> None:
        demand_going_on(self._queue, done, count)

    def _report(self, run: Pass, outcome: Outcome, everything: Collection[str] | None, losses: Losses | None) -> None:
        """Report a pass; ``everything``: all conversations, after a check; ``losses``: what it has found removed."""
        for message in self._session.messages:
            if message not in self._told:
                self._told.add(message)
                self._reporter.emit(WatchEvent(kind=EventKind.MESSAGE, message=message))
        self._session.messages.clear()
        if everything is not None:
            first, places = not self._reporter.conversations, self._session.format.places
            self._reporter.conversations = len({counted_as(each, places) for each in everything})
            self._reporter.noun = self._session.roots.noun
            if first:
                self._reporter.emit(WatchEvent(kind=EventKind.WATCHING))
        is_public = self._session.roots.is_in_project
        self._reporter.report_actions(outcome, run.conversations, is_public=is_public)
        now = time.monotonic_ns()

        def is_about(conversation: str | None) -> bool:
            """Tell whether the pass covers it; a check does not plan again what was clean and has not changed."""
            return run.is_about(conversation) or (everything is not None and conversation not in run.moving)

        self._reporter.report_held(run.plan.held, is_about, now + self._timings.grace)
        told = (Reason.REMOVED_HERE,) if self._reporter.report_losses(losses) else ()
        self._reporter.report_notes(run.plan, is_about, outcome.run, but=told)
        waits: dict[str, int] = {}
        for deed in outcome.results.values():
            conversation = deed.action.conversation
            if deed.reason is Reason.BUSY and deed.errno is None:
                wait = min(max(self._timings.check, 2 * self._busy_waits.get(conversation, 0)), _BUSY_AT_MOST_NS)
                waits[conversation] = wait
                self._busy[conversation] = _Busy(_directories_of(run, conversation), deed.action.touches, now + wait)
            elif deed.reason is Reason.DRIFT:
                self._debouncer.schedule(conversation, _directories_of(run, conversation), now + self._timings.quiet)
            elif deed.reason is Reason.FAILED or deed.errno is not None:  # no lock: no other program has it, either
                self._debouncer.schedule(conversation, _directories_of(run, conversation), now + _FAILED_NS)
        waiting = {key: wait for key, wait in self._busy_waits.items() if not run.is_about(key)}
        self._busy_waits = waiting | waits

    def _release_busy(self, now: int) -> None:
        """Schedule busy conversations again once all the locks that they need are free.

        macOS doesn't name the holders of locks, and Linux doesn't name those in another container. A conversation
        without a named holder is tried again after its wait.
        """
        held = self._session.busy() if self._busy else {}
        for conversation, busy in list(self._busy.items()):
            if not held.keys().isdisjoint(busy.touched):
                busy.is_seen = True
            elif busy.is_seen or now >= busy.due:
                del self._busy[conversation]
                self._debouncer.schedule(conversation, busy.directories, now + self._timings.check)


def _without_most_copies(run: Pass, conversations: Collection[str]) -> Pass:
    """Return a pass with the copies of some conversations; those of a full scan need much memory."""
    store, workspace = (
        Snapshot(
            each.side,
            exists=each.exists,
            identity=each.identity,
            copies=tuple(copy for copy in each.copies if copy.conversation in conversations),
        )
        for each in (run.world.store, run.world.workspace)
    )
    return replace(run, world=WorldState(store, workspace, Baseline()))


def _directories_of(run: Pass, conversation: str) -> Directories:
    """Return the directories of a conversation."""
    snapshots = (run.world.store, run.world.workspace)
    return {
        snapshot.side: {copy.path for copy in snapshot.copies if copy.conversation == conversation}
        for snapshot in snapshots
    }


def present_identity(directory: str) -> str:
    """Return the identity of a watched directory; one that can't be told for now differs from every other."""
    try:
        return directory_identity(directory)
    except OSError as error:
        return error_text(error)


def suspended_ns() -> int:
    """Return the time that the machine was suspended, in ns since an arbitrary start; 0 if unknown."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime_ns(clock) - time.monotonic_ns() if clock is not None else 0


class Watcher:
    """The watcher of one workspace. ``open_target`` opens the session, and again whenever a side may have changed."""

    def __init__(self, open_target: Callable[[], WatchTarget], emit: Callable[[WatchEvent, WatchStatus], None]) -> None:
        self._open_target = open_target
        self._reporter = Reporter(emit)
        self.queue: EventQueue[Side] = EventQueue()

    def run(self) -> None:
        """Watch until a stop request.

        Raises:
            ReconcileError: the workspace can't be opened at the start.
            LockedError: another watcher runs in this workspace.
        """
        target: WatchTarget | None = self._open_target()
        while target is not None:
            with target.session as session, watch_lock(session.directory, session.project, COMMAND):
                WatchLoop(target, self.queue, self._reporter).run()
            target = self._reopen()
        self._reporter.emit(WatchEvent(kind=EventKind.STOPPED))

    def _reopen(self) -> WatchTarget | None:
        """Open the session as soon as it is possible; return None at a stop request."""
        while not self.queue.stop_requested:
            self.queue.reopen_requested = False  # before it reads the configuration, which may change again meanwhile
            try:
                return self._open_target()
            except (ReconcileError, OSError) as error:
                self._reporter.report_waiting(error.message if isinstance(error, ReconcileError) else str(error))
            self.queue.take(_RETRY_NS)
        return None

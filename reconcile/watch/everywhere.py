"""The watcher of every project of a user: a change leads to its project, which then gets one pass.

No project stays open between two passes, so that memory doesn't depend on their number. One recursive observer serves
Claude Code's directory, in which new projects appear; every other known project has one of its own. Others come by a
run, or are back: no event says so, and they are looked for once a minute. Every hour all projects get a pass: for
events that were missed, and for what expires.

It takes for granted that a change below a watched directory raises an event, or that the kernel reports lost events.
"""

from __future__ import annotations

import os
import time
import traceback
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.adapters.everywhere import Target, every_project, project_of_directory
from reconcile.adapters.locate import locate
from reconcile.apply.run import MovedError
from reconcile.errors import ReconcileError
from reconcile.formats import get_format
from reconcile.formats.claude_code.names import directory_name
from reconcile.fs.locks import LockedError, home_lock, note_pass
from reconcile.fs.paths import quoted_path
from reconcile.inspect.losses import losses_of
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side
from reconcile.watch.fs_events import Debouncer, EventListener, EventQueue, EventsUnavailableError, target_of
from reconcile.watch.reporter import EventKind, Reporter, WatchEvent, WatchStatus
from reconcile.watch.watcher import (
    COMMAND,
    SUSPENDED_NS,
    StoppedError,
    Vanishing,
    demand_going_on,
    present_identity,
    refuse_lost,
    refuse_merging,
    suspended_ns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from reconcile.adapters.everywhere import Everywhere
    from reconcile.adapters.roots import Request, Roots
    from reconcile.apply.executor import Outcome
    from reconcile.engine.engine import Engine, Pass
    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy
    from reconcile.watch.watcher import Timings

_SECOND = 10**9
_HOUR = 3600 * _SECOND
_CHECK = 5 * _SECOND
"""The time between two checks whether the watched directories are still the same."""
_LOOK = 60 * _SECOND
"""The time between two looks for projects that have come or gone."""
_POLL = 10 * _SECOND
_SHARE = 20
"""Without events, passes over all projects take at most one in so many parts of the time; so do looks for others."""
_SHARE_OF_ONE = 4
"""While a project changes all the time, it is quiet for so many times as long as its last pass took."""
_BUSY = 2 * _SECOND
"""The time until another attempt while git is busy, or a lock is held. For a lock it doubles, up to `_FAILED`."""
_LOCKED = 10 * _SECOND
"""The time until another run on the store is reported."""
_OPEN = 30 * _SECOND
"""The time until another attempt at what a program has open: its end raises no event below a side."""
_FAILED = 60 * _SECOND
"""The time until another attempt at what has failed: the end of its cause raises no event, either."""
NAME = f"{COMMAND} --all"
"""The name of its passes in the journal, and of the holder of its locks."""


class Visit(Struct, frozen=True):
    """A project that is open for one pass, with the policy of its settings."""

    engine: Engine
    policy: Policy


class _Source(NamedTuple):
    """The source of an event. ``target``: None for Claude Code's directory, which has a directory for each project."""

    target: Target | None
    side: Side


_Key: TypeAlias = "Target | str"
"""A project that has changed, or the name of its directory in that of Claude Code."""


class _Project:
    """The memory of a project between two passes."""

    def __init__(self, target: Target, emit: Callable[[WatchEvent, WatchStatus], None]) -> None:
        self.reporter = Reporter(lambda event, status: emit(replace(event, project=target.project), status))
        self.vanishing = Vanishing()
        self.told: set[str] = set()
        self.is_new = True
        """No pass was made yet: the items that are set aside by then are no news."""
        self.busy_wait = 0
        """The time in ns until another attempt at conversations whose locks are held."""
        self._waits_since: int | None = None

    def wait(self, message: str, patience: int) -> None:
        """Wait for what usually ends soon: it is reported if it lasts longer than ``patience``, in ns."""
        now = time.monotonic_ns()
        self._waits_since = now if self._waits_since is None else self._waits_since
        if now - self._waits_since >= patience:
            self.reporter.report_waiting(message)

    def go_on(self) -> None:
        """Report that work goes on, if it was reported that it waits."""
        self._waits_since = None
        self.reporter.report_resumed()


class HomeWatcher:
    """The watcher. ``visit`` opens a project for a pass, None if nothing has changed there since the last one.

    ``request`` has the environment; ``only`` limits the projects to a format. ``states`` is the directory of the states
    of all stores, which has the lock.
    """

    def __init__(
        self,
        request: Request,
        only: str | None,
        states: str,
        timings: Timings,
        visit: Callable[[Target], AbstractContextManager[Visit | None]],
        emit: Callable[[WatchEvent, WatchStatus], None],
    ) -> None:
        self._request = request
        self._only = only
        self._states = states
        self._timings = timings
        self._visit = visit
        self._emit = emit
        self._home = Reporter(self._emit_status)
        self._projects: dict[Target, _Project] = {}
        self._pending: dict[_Key, Debouncer] = {}
        self._took_of: dict[_Key, int] = {}
        """How long the last pass over each project took, in ns."""
        self._told: set[str] = set()
        self._look_at = 0
        self._count: int | None = None
        self._took = 0
        """How long the last pass over all projects took, in ns."""
        self._programs = ""
        """The identity of Claude Code's directory: a new one at the same path sends no events."""
        self._sides: dict[Target, tuple[Roots, dict[str, str]]] = {}
        """The sides of each project of another format, with the identities of their directories."""
        self._polling_until: int | None = None
        self.queue: EventQueue[_Source] = EventQueue()

    def run(self) -> None:
        """Watch until a stop request.

        Raises:
            LockedError: another process watches every project.
        """
        with home_lock(self._states, NAME):
            while not self.queue.stop_requested:
                self.queue.reopen_requested = False
                try:
                    known = every_project(self._request, self._only)
                except OSError as error:
                    self._home.report_waiting(str(error))
                    self.queue.take(_CHECK)
                    continue
                self._home.report_resumed()
                with self._listening(known):
                    self._go_on(known)
        self._home.emit(WatchEvent(kind=EventKind.STOPPED))

    def _go_on(self, known: Everywhere) -> None:
        """Make a pass over all projects, then over those that change, until all are due again."""
        begun, suspended = time.monotonic_ns(), suspended_ns()
        self._report_absent(known)
        self._visit_all(known.targets)
        self._look_at = time.monotonic_ns() + _LOOK
        until = begun + _HOUR
        if self._polling_until is not None:
            until = time.monotonic_ns() + max(_POLL, _SHARE * self._took)
        while not (self.queue.stop_requested or self.queue.reopen_requested):
            now = time.monotonic_ns()
            if now >= until or self._is_any_replaced(known) or suspended_ns() - suspended > SUSPENDED_NS:
                return
            if now >= self._look_at and self._are_others(known):
                return
            self._visit_due(known, now)
            for project in self._projects.values():
                project.reporter.report_delayed(now)
            dues = (due for debouncer in self._pending.values() if (due := debouncer.due_at()) is not None)
            wait = min(until, now + _CHECK, *dues) - time.monotonic_ns()
            self._enqueue(self.queue.take(wait), time.monotonic_ns())

    # Events

    @contextmanager
    def _listening(self, known: Everywhere) -> Iterator[None]:
        """Receive events while the block runs, if the system sends any; otherwise all projects are polled."""
        listeners: list[EventListener] = []
        now, self._programs = time.monotonic_ns(), present_identity(known.programs)
        others = (target for target in known.targets if target.format != FORMAT)
        self._sides = {
            target: (roots, {path: present_identity(path) for path in _directories_of(roots)})
            for target in others
            if (roots := self._roots(target)) is not None
        }
        try:
            if self._polling_until is None or now >= self._polling_until:
                self._polling_until = None
                try:
                    for listener in self._listeners(known):
                        listeners.append(listener)
                        listener.start()
                    self._home.report_events()
                except EventsUnavailableError as error:
                    self._polling_until = now + self._timings.everything
                    self._home.report_polling(f"{error}; all projects get a pass every few seconds instead")
            yield
        finally:
            for listener in listeners:
                listener.stop()

    def _listeners(self, known: Everywhere) -> Iterator[EventListener]:
        sides: dict[Side, str] = {Side.WORKSPACE: known.programs}
        if self._only in (None, FORMAT):
            yield EventListener(sides, self._on_event(None), self.queue.reopen)
        for target, (roots, _) in self._sides.items():
            sides = {Side.STORE: roots.store_conversations, Side.WORKSPACE: roots.workspace_conversations}
            places = get_format(target.format).places
            tops = () if places is None else places.tops
            yield EventListener(sides, self._on_event(target), self.queue.reopen, tops)

    def _is_any_replaced(self, known: Everywhere) -> bool:
        return present_identity(known.programs) != self._programs or any(map(self._is_replaced, self._sides))

    def _are_others(self, known: Everywhere) -> bool:
        """Tell whether the projects are others than before: a run was in a new one, or one has gone or is back."""
        begun = time.monotonic_ns()
        try:
            return every_project(self._request, self._only) != known
        except OSError:
            return True  # the next round reports it
        finally:
            end = time.monotonic_ns()
            self._look_at = end + max(_LOOK, _SHARE * (end - begun))

    def _is_replaced(self, target: Target) -> bool:
        """Tell whether a directory of a project isn't the one that the last run there knew: it gets no pass then."""
        _, identities = self._sides.get(target, (None, {}))
        return any(present_identity(path) != identity for path, identity in identities.items())

    def _on_event(self, target: Target | None) -> Callable[[Side, str], None]:
        return lambda side, path: self.queue.on_event(_Source(target, side), path)

    def _roots(self, target: Target) -> Roots | None:
        """Return the sides of a project; None if it has gone meanwhile."""
        request = self._request
        try:
            return locate(target.format, target.project, None, request.cwd, request.environ, request.platform)
        except (ReconcileError, OSError):
            return None

    def _enqueue(self, events: Iterable[tuple[_Source, str]], now: int) -> None:
        for (target, side), path in events:
            name, _, inner = path.partition("/") if target is None else ("", "", path)
            changed = target_of(get_format(FORMAT if target is None else target.format), inner)
            if changed is not None:
                self._debouncer(target or name).touch(changed.conversation, side, changed.directories, now)

    def _debouncer(self, key: _Key) -> Debouncer:
        pause = _SHARE_OF_ONE * self._took_of.get(key, 0)
        quiet, at_most = max(self._timings.quiet, pause), max(self._timings.at_most, pause)
        return self._pending.setdefault(key, Debouncer(quiet, at_most))

    # Passes

    def _visit_all(self, targets: tuple[Target, ...]) -> None:
        begun = time.monotonic_ns()
        for target in targets:
            if self.queue.stop_requested:
                return
            self._pass(target, frozenset(), target)
        self._took = time.monotonic_ns() - begun
        is_first, self._count = self._count is None, len(targets)
        if is_first:
            count = f"{len(targets)} project{'' if len(targets) == 1 else 's'}"
            if self._told and not targets:
                count += "; all others are left out"
            self._home.emit(WatchEvent(kind=EventKind.WATCHING, message=count))

    def _visit_due(self, known: Everywhere, now: int) -> None:
        for key, debouncer in list(self._pending.items()):
            if self.queue.stop_requested or not debouncer.is_due(now):
                continue
            debouncer.take(now)
            moving = debouncer.in_flight
            if not debouncer:
                del self._pending[key]
            try:
                target = self._target_of(key, known)
            except OSError as error:
                self._home.report_waiting(str(error))
                self._schedule(key, _FAILED)
                continue
            if target is not None and (target.format == FORMAT or target in known.targets):
                self._pass(target, moving, key)

    def _target_of(self, key: _Key, known: Everywhere) -> Target | None:
        if isinstance(key, Target):
            return key
        found = project_of_directory(os.path.join(known.programs, key), known.targets)
        if found is None:  # its last session may have been deleted
            ours = (each for each in (*known.targets, *self._projects) if each.format == FORMAT)
            named = (each for each in ours if directory_name(each.project) == key)
            found = next((each for each in named if os.path.isdir(each.project)), None)
        return found

    def _schedule(self, key: _Key, after: int) -> None:
        self._debouncer(key).schedule("", {}, time.monotonic_ns() + after)

    def _pass(self, target: Target, moving: frozenset[str], key: _Key) -> None:
        """Make a pass over one project. An error is reported once, and is the project's alone."""
        if self._is_replaced(target):
            return  # its user has to begin there (`every_project`)
        if target not in self._projects:
            self._projects[target] = _Project(target, self._emit_status)
        project, again, begun = self._projects[target], None, time.monotonic_ns()
        try:
            again = self._visited(target, project, moving)
        except LockedError as error:
            again = _BUSY
            project.wait(error.message, _LOCKED)
        except MovedError:
            again = _BUSY  # it is located again
        except StoppedError as stopped:
            project.reporter.emit(WatchEvent(kind=EventKind.ENDED, message=f"{stopped}; the others follow"))
        except (ReconcileError, OSError) as error:
            again = _FAILED
            project.reporter.report_waiting(error.message if isinstance(error, ReconcileError) else str(error))
        except Exception:  # noqa: BLE001 - a bug that one project meets must not cost the others their copies
            again = _FAILED
            project.reporter.report_waiting(traceback.format_exc())
        self._took_of[key] = time.monotonic_ns() - begun
        if again is not None:
            self._schedule(key, again)
        note_pass(self._states)

    def _visited(self, target: Target, project: _Project, moving: frozenset[str]) -> int | None:
        """Make a pass; return the time in ns after which another one is due, None: after the next change."""
        with self._visit(target) as visit:
            if visit is None:
                project.go_on()
                return None
            engine, session, now = visit.engine, visit.engine.session, time.monotonic_ns()
            with session.exclusively(NAME, 0):
                engine.begin()
                run = engine.plan(session.surroundings(visit.policy), moving=moving)
                if run.full:
                    refuse_merging(run.world, session.roots, session.format)
                    refuse_lost(run.world, session.roots, session.format)
                run = project.vanishing.left_out(run, now, self._timings.at_most)
                if (busy := next((item for item in run.plan.held if item.reason is Reason.GIT_BUSY), None)) is not None:
                    project.wait(busy.message, self._timings.grace)
                    return _BUSY  # nothing is done until git has finished
                project.go_on()
                project.reporter.report_begin(len(run.plan.actions))
                try:
                    outcome = engine.apply(run, NAME, partial(demand_going_on, self.queue), is_saved=True)
                except StoppedError:
                    session.finish_killed_runs()
                    raise
                engine.save(run, outcome)
            self._report(target, project, run, outcome, session)
            return self._due_again(project, run, outcome)

    def _due_again(self, project: _Project, run: Pass, outcome: Outcome) -> int | None:
        reasons = {Reason.FAILED if deed.errno is not None else deed.reason for deed in outcome.results.values()}
        reasons |= {item.reason for item in run.plan.held}
        project.busy_wait = min(max(_BUSY, 2 * project.busy_wait), _FAILED) if Reason.BUSY in reasons else 0
        times = {
            Reason.DRIFT: self._timings.quiet,
            Reason.BUSY: project.busy_wait,
            Reason.PROGRAM_BUSY: _OPEN,
            Reason.FAILED: _FAILED,
        }
        dues = [after for reason, after in times.items() if reason in reasons]
        if project.vanishing.is_among(run.moving):
            dues.append(self._timings.at_most)
        return min(dues, default=None)

    # Reports

    def _report(self, target: Target, project: _Project, run: Pass, outcome: Outcome, session: Session) -> None:
        reporter = project.reporter
        for message in session.messages:
            if message not in project.told:
                reporter.emit(WatchEvent(kind=EventKind.MESSAGE, message=message))
                project.told.add(message)
        reporter.report_actions(outcome, run.conversations, is_public=session.roots.is_in_project)
        reporter.report_held(run.plan.held, run.is_about, time.monotonic_ns() + self._timings.grace)
        sides = f" --workspace {quoted_path(target.project)} --format {target.format}"
        told = (Reason.REMOVED_HERE,) if reporter.report_losses(losses_of(session, run), sides) else ()
        reporter.report_notes(run.plan, run.is_about, outcome.run, are_old=project.is_new, but=told)
        project.is_new = False

    def _report_absent(self, known: Everywhere) -> None:
        """Report what is left out, and the projects that are no longer there: `watch` waits for these."""
        why = {each.path: f"left out: {each.why}" for each in known.left_out}
        for target, project in self._projects.items():
            if target.format != FORMAT and target not in known.targets:
                missing = "its workspace is missing; watch waits until it is back"
                project.reporter.report_waiting(why.pop(target.project, missing))
        for each in known.left_out:
            if each.path not in why:
                continue
            message = f"left out: {each.path}: {each.why}"
            if message not in self._told:
                self._told.add(message)
                self._home.emit(WatchEvent(kind=EventKind.MESSAGE, message=message, is_loss=bool(each.lost)))

    def _emit_status(self, event: WatchEvent, status: WatchStatus) -> None:
        """Emit an event with the status of all projects; ``conversations`` is the number of these."""
        reporters = [project.reporter for project in self._projects.values()]
        held = sum(reporter.held for reporter in reporters)
        self._emit(event, WatchStatus(self._count or 0, held, status.busy, "project"))


def _directories_of(roots: Roots) -> tuple[str, ...]:
    return roots.store_conversations, roots.workspace_conversations, roots.identified

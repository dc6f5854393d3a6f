"""``reconcile watch``: runs passes while files change, and prints events as text or as JSON, until it is stopped."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import click

from reconcile.adapters.roots import LocateError
from reconcile.config import NO_SECONDS, is_seconds, load_settings
from reconcile.model.reasons import Reason
from reconcile.serialization.plan_json import action_to_json, item_to_json
from reconcile.state.directory import state_directory
from reconcile.watch.everywhere import HomeWatcher, Visit
from reconcile.watch.reporter import EventKind
from reconcile.watch.watcher import COMMAND, Timings, Watcher, WatchTarget

from ..command import Command, Several
from ..context import find_roots, formats_here, open_session, policy_of, refuse_missing_home, settings_of
from ..options import options_of
from ..output.errors import FAILURES, ExitCode, first_code, print_error, report_failure
from ..output.interaction import print_message, print_warning
from ..output.plan_text import DETAIL, SHOWN, TITLE, detail, item_text, with_sides
from ..output.screen import command_lines, wrap
from ..output.streams import output_error
from ..output.summary import verb
from ..output.text import Style, clean, message_text, naming_sides, pad, short_path, shorten, visible, width
from ..output.words import VERB_COLUMNS, reason_words
from ..run import announce_new_store, begun, open_engine, run_before_watching
from ..scope.projects import home_request, options_for, refuse_beside
from ..unchanged import Opening, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import FrameType

    from reconcile.adapters.everywhere import Target
    from reconcile.config import Settings
    from reconcile.model.plan import Action, Item
    from reconcile.watch.reporter import WatchEvent, WatchStatus

    from ..arguments import Options

_SECOND = 10**9
_SIGNALS_S = 0.5
"""Seconds after which a signal is handled at the latest, where waiting for a thread can't be interrupted."""
_COLORS = {
    EventKind.DONE: "green",
    EventKind.SKIPPED: "yellow",
    EventKind.FAILED: "red",
    EventKind.HELD: "yellow",
    EventKind.RELEASED: "green",
    EventKind.NOTED: "blue",
    EventKind.WAITING: "yellow",
    EventKind.POLLING: "yellow",
}
_EVENT_WORDS = {EventKind.HELD: "blocked", EventKind.RELEASED: "unblocked"}
_AT = 10
"""The column after the time."""
_ATTENTION = (EventKind.FAILED, EventKind.HELD, EventKind.WAITING, EventKind.POLLING)
"""Kinds of events that ``-q`` prints, beside conflicts that a run has decided, and losses."""


def _limited(_context: click.Context, _parameter: click.Parameter, seconds: float | None) -> float | None:
    """Return a time, or refuse one outside of the limits of the settings."""
    if seconds is not None and not is_seconds(seconds):
        raise click.BadParameter(f"{seconds} {NO_SECONDS}")
    return seconds


@click.command(
    "watch",
    cls=Command,
    several=Several.OWN,
    accepts=("prefer", "json", "quiet", "all"),
    examples=(
        ("reconcile watch", "Sync both sides until Ctrl-C."),
        ("reconcile watch --json", "Print each event as a line of JSON."),
        ("reconcile watch --all", "Keep every project of yours, also those that come later."),
        ("reconcile watch --all --sync", "Sync also each store that has a remote."),
    ),
)
@click.option(
    "--settle",
    type=float,
    callback=_limited,
    metavar="SECONDS",
    help="Sync a conversation after so many quiet seconds (default: 0.15).",
)
@click.option(
    "--settle-at-most",
    type=float,
    callback=_limited,
    metavar="SECONDS",
    help="Sync after at most this many seconds (default: 2).",
)
@click.option("--sync", is_flag=True, help="Sync the store with its remote once a minute, too.")
@click.pass_context
def watch(context: click.Context, settle: float | None, settle_at_most: float | None, sync: bool) -> None:
    """Sync both sides while you work.

    Copies each change to the other side once its conversation has been quiet for a moment, until you stop it. Reports a
    blocked conversation once, then leaves it alone. Waits while git is in the middle of a merge or rebase. Other
    commands can run at the same time.

    With --all, it keeps every project of yours, as `reconcile --all` does. No project stays open, and new sessions of
    Claude Code are noticed. `reconcile service install` starts that at login.

    With --sync, it also runs `reconcile sync`, once a minute. A failure is printed once, and the next sync tries again.
    With --all, it does so for each store that has a remote.

    SIGTERM and Ctrl-C finish the current step, then exit. SIGHUP reads the configuration again.
    """
    gc.enable()  # other commands end before garbage matters
    options = options_of(context)
    if options.all:
        context.exit(_watch_all(options, _printer(context, options), settle, settle_at_most, sync=sync))
    formats = formats_here(options)
    chosen = {name: options.in_format(name) for name in formats} if formats else {"": options}
    for each in chosen.values():
        code = run_before_watching(each, COMMAND)
        if code is not None and (code == ExitCode.INTERRUPTED or each.is_cancelled):
            context.exit(code)
    if sync:
        _announce_syncs(options)  # before the line of the status
    printer = _printer(context, options)

    def stop() -> None:
        for watcher in watchers.values():
            watcher.queue.stop()

    def reopen() -> None:
        for watcher in watchers.values():
            watcher.queue.reopen()

    watchers = {
        name: Watcher(_opener(each, settle, settle_at_most), _emitter(printer, name, stop))
        for name, each in chosen.items()
    }
    syncing = _syncing(options, printer, lambda: {"": options.side_words}) if sync else nullcontext()
    code = ExitCode.DONE
    with _signals(stop, reopen) as seen, syncing:
        if formats:
            code = _run_in_threads(watchers, options, printer)
        else:
            watchers[""].run()
    context.exit(ExitCode.INTERRUPTED if signal.SIGINT in seen else code)


def _printer(context: click.Context, options: Options) -> _JsonLines | _TextLines:
    printer = _JsonLines(options) if options.json else _TextLines(options)
    context.call_on_close(printer.close)  # also before an error is printed
    return printer


def _emitter(
    printer: _JsonLines | _TextLines, of: str, stop: Callable[[], None]
) -> Callable[[WatchEvent, WatchStatus], None]:
    """Return a function that prints events, and calls ``stop`` once they can't be. ``of``: their format, of several."""

    def emit(event: WatchEvent, status: WatchStatus) -> None:
        printer.emit(event, status, of)
        if isinstance(output_error(), ConnectionError):  # the reader closed the pipe
            stop()

    return emit


def _announce_syncs(options: Options) -> None:
    """Print that a remote is synced, too. Raises `UnknownRemoteError` without a remote."""
    from ..remotes.actions import shared_store  # here: most watchers have no remote
    from ..remotes.syncing import VARIABLE

    if not options.format and VARIABLE not in os.environ:
        shared_store(options).named(None, lambda name: f"{VARIABLE}={name} reconcile watch --sync")
    print_message(options, "syncing with the remote once a minute, too")


@contextmanager
def _syncing(
    options: Options, printer: _JsonLines | _TextLines, stores: Callable[[], Mapping[str, Sequence[str]]]
) -> Iterator[None]:
    """Sync stores with their remotes while the block runs; ``stores`` as in `BackgroundSync`."""
    from ..remotes.background import BackgroundSync  # here: most watchers have no remote

    def report(said: str, hint: str) -> None:
        with printer.interrupted():
            print_error(said, hint, as_json=options.json, label="error: sync")

    def warn(said: str) -> None:
        with printer.interrupted():
            print_warning(options, f"sync: {said}")

    syncing = BackgroundSync(stores, report, warn)
    syncing.start()
    try:
        yield
    finally:
        syncing.stop()


def _watch_all(
    options: Options,
    printer: _JsonLines | _TextLines,
    settle: float | None,
    settle_at_most: float | None,
    *,
    sync: bool,
) -> int:
    """Watch every project until a stop request, and return the exit code. ``sync``: sync stores with remotes, too."""
    refuse_beside(options)
    settings = load_settings(os.environ, None)

    @contextmanager
    def visit(target: Target) -> Iterator[Visit | None]:
        own, opening = options_for(options, target), Opening(open_engine)
        try:
            start = Start.of(own, opening.begin)
            yield None if start.is_unchanged else Visit(begun(start, opening), policy_of(own, start.settings))
        finally:
            opening.close()

    request = home_request()
    states = os.path.dirname(state_directory("jp-", request.environ, request.platform))
    timings = _timings(settings, settle, settle_at_most)

    def stop() -> None:
        watcher.queue.stop()

    emit = _emitter(printer, "", stop)
    watcher = HomeWatcher(request, options.format, states, timings, visit, emit)

    def stores() -> Mapping[str, Sequence[str]]:
        from ..remotes.everywhere import stores_with_remotes  # here: most watchers have no remote

        return stores_with_remotes(request, options.format, states)

    with (
        _signals(watcher.queue.stop, watcher.queue.reopen) as seen,
        _syncing(options, printer, stores) if sync else nullcontext(),
    ):
        watcher.run()
    return ExitCode.INTERRUPTED if signal.SIGINT in seen else ExitCode.DONE


def _run_in_threads(watchers: Mapping[str, Watcher], options: Options, printer: _JsonLines | _TextLines) -> int:
    """Run watchers in threads until all have ended, and return the exit code. One that fails leaves the others running.

    Each opens its session in its own thread, as SQLite demands. Python runs the handlers of signals in this one.
    """
    codes: list[int] = []

    def run(name: str) -> None:
        code: int = ExitCode.FAILED
        try:
            watchers[name].run()
            code = ExitCode.DONE
        except FAILURES as error:
            with printer.interrupted():
                code = report_failure(error, as_json=options.json, of=name)
        finally:
            codes.append(code)

    # A second Ctrl-C ends the process without waiting for them; whatever they do then is safe against a kill.
    threads = [Thread(target=run, args=(name,), name=name, daemon=True) for name in watchers]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(_SIGNALS_S)
    return first_code(codes)


def _opener(options: Options, settle: float | None, settle_at_most: float | None) -> Callable[[], WatchTarget]:
    """Return a function that opens the session of a watcher, and again when a side may have changed."""
    has_begun, started_in = False, os.getcwd()

    def open_target() -> WatchTarget:
        nonlocal has_begun
        _return_to(started_in)
        roots = find_roots(options)
        settings = settings_of(roots)
        if not has_begun:  # a store that is missing later was removed: the watcher waits for it
            refuse_missing_home(roots)
            announce_new_store(options, roots, "a run creates")
        session = open_session(roots, settings, readonly=False, stays=True)
        if roots.folder and not has_begun:
            place = os.path.relpath(roots.folder, roots.project)
            session.messages.append(f"watch leaves {place} alone; a run syncs what it shares: reconcile")
        has_begun = True
        policy = policy_of(options, settings)
        timings = _timings(settings, settle, settle_at_most)
        return WatchTarget(session, policy, settings.lock_timeout, timings, lambda: find_roots(options))

    return open_target


def _return_to(place: str) -> None:
    """Enter a directory again that was removed and made again, as a worktree is.

    Raises:
        LocateError: it is not there.
    """
    with suppress(FileNotFoundError):
        os.getcwd()
        return
    try:
        os.chdir(place)
    except OSError:
        raise LocateError(f"{place} was deleted or moved") from None


def _timings(settings: Settings, settle: float | None, settle_at_most: float | None) -> Timings:
    quiet = settings.settle if settle is None else settle
    at_most = settings.settle_at_most if settle_at_most is None else settle_at_most
    return Timings(quiet=int(quiet * _SECOND), at_most=int(max(quiet, at_most) * _SECOND))


@contextmanager
def _signals(end: Callable[[], None], reopen: Callable[[], None]) -> Iterator[set[int]]:
    """Handle signals: end, or read the configuration again. Yield the set of the received ones.

    A second Ctrl-C interrupts at once, as in other commands.
    """
    seen: set[int] = set()
    at_terminal = sys.stdout.isatty()
    usual = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in seen and callable(usual):
            usual(number, frame)
        seen.add(number)
        end()

    def hang_up(number: int, frame: FrameType | None) -> None:
        if at_terminal and not sys.stdout.isatty():  # its window was closed
            stop(number, frame)
        reopen()

    handlers: dict[int, Callable[[int, FrameType | None], None]] = {signal.SIGTERM: stop, signal.SIGINT: stop}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = hang_up
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _needs_attention(event: WatchEvent) -> bool:
    """Tell whether ``-q`` prints an event."""
    return event.kind in _ATTENTION or event.is_conflict or event.is_loss


def _counted(noun: str, count: int) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


class _JsonLines:
    """Prints events as lines of JSON (docs/json.md). Any thread may call it."""

    def __init__(self, options: Options) -> None:
        self._quiet = options.quiet
        self._lock = Lock()

    def emit(self, event: WatchEvent, status: WatchStatus, of: str) -> None:
        """Print an event; ``of``: the format that it is about, of several."""
        if self._quiet and not _needs_attention(event):
            return
        line: dict[str, Any] = {
            "format": "reconcile.event/1",
            "time": datetime.now().astimezone().isoformat(timespec="milliseconds"),
            "of": of or None,
            "project": event.project or None,
            "event": event.kind.value,
            "message": event.message or None,
            "action": action_to_json(event.action) if event.action is not None else None,
            "item": item_to_json(event.item) if event.item is not None else None,
            "conversations": status.conversations,
            "held": status.held,
            "busy": status.busy,
        }
        with self._lock:
            click.echo(json.dumps({key: value for key, value in line.items() if value is not None}))

    def interrupted(self) -> AbstractContextManager[object]:
        """Print no event while the block runs, which prints to standard error."""
        return self._lock

    def close(self) -> None:
        """Print nothing more."""


class _TextLines:
    """Prints events as lines of text; at a terminal, the last line is the present status. Any thread may call it."""

    def __init__(self, options: Options) -> None:
        self._style = Style.choose(options.color)
        self._sides = options.sides
        self._quiet = options.quiet
        self._status = sys.stdout.isatty() and not options.quiet
        self._line = ""
        """The line of the status, as it is shown."""
        self._lock = Lock()
        self._last = ""
        self._project = ""
        """The project of the last event, if several are watched."""
        self._statuses: dict[str, WatchStatus] = {}
        """The newest status of each format."""
        self._room: dict[str, int | None] = {}
        """By format, how many more actions of a long pass are printed; None: all."""
        self._has_more: set[str] = set()
        """The formats whose last pass had more actions than were printed."""
        self._show_status("looking at every project" if options.all else "scanning both sides")

    def emit(self, event: WatchEvent, status: WatchStatus, of: str) -> None:
        """Print an event; ``of``: the format that it is about, of several."""
        with self._lock:
            self._emit(event, status, of)

    def _emit(self, event: WatchEvent, status: WatchStatus, of: str) -> None:
        self._statuses[of] = status
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        self._clear()
        if self._shows(event, of):
            if event.project != self._project:
                self._project = event.project
                if event.project:
                    click.echo(f"{self._style(now, dim=True)}  {self._style(short_path(event.project), bold=True)}")
            click.echo(f"{self._style(now, dim=True)}  {self._words(event, status, of)}")
        if event.action is not None:
            self._last = now
        self._show_status(self._status_line())

    def _shows(self, event: WatchEvent, of: str) -> bool:
        """Tell whether an event is printed; of a long pass, only the first `SHOWN` actions are."""
        if self._quiet:
            return _needs_attention(event)
        if event.kind in (EventKind.BEGUN, EventKind.ENDED):
            if (self._room.get(of) or 0) < 0:
                self._has_more.add(of)
            if event.kind is EventKind.BEGUN:
                self._has_more.discard(of)
            self._room[of] = SHOWN if event.kind is EventKind.BEGUN else None
        room = self._room.get(of)
        if event.kind is not EventKind.DONE or room is None:
            return True
        self._room[of] = room - 1
        return room > 0

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """Print no event, and show no status, while the block runs, which prints to standard error."""
        with self._lock:
            self._clear()
            yield
            self._show_status(self._line)

    def close(self) -> None:
        """Erase the status line."""
        self._clear()

    def _clear(self) -> None:
        if self._status:
            click.echo("\r\x1b[2K", nl=False)

    def _show_status(self, line: str) -> None:
        self._line = line
        if self._status:
            # A line wider than the terminal couldn't be erased.
            text = shorten(line, shutil.get_terminal_size().columns - 1)
            click.echo(self._style(text, dim=True), nl=False)

    def _words(self, event: WatchEvent, status: WatchStatus, of: str) -> str:
        if event.action is not None:
            return self._of_action(event, event.action)
        if event.item is not None:
            return self._of_item(event, event.item)
        return self._of_all(event, status, of)

    def _of_all(self, event: WatchEvent, status: WatchStatus, of: str) -> str:
        """Return the words of an event that is about no single conversation, after the format if there are several."""
        before = f"{of}: " if of else ""
        if event.kind is EventKind.WATCHING:
            return f"{before}watching {event.message or _counted(status.noun, status.conversations)}"
        if event.kind is EventKind.BEGUN:
            return f"{before}{event.message} to do"
        if event.kind is EventKind.ENDED:
            return before + event.message + (f", of which {SHOWN} are shown" if of in self._has_more else "")
        words = {EventKind.RESUMED: "resumed", EventKind.STOPPED: "stopped"}.get(event.kind, event.kind.value)
        if event.kind in (EventKind.MESSAGE, EventKind.NOTED):
            return self._wrapped(before + event.message)
        text = self._wrapped(before + (f"{words}: {event.message}" if event.message else words))
        return before + self._style(words, _COLORS.get(event.kind)) + text.removeprefix(before + words)

    def _wrapped(self, message: str) -> str:
        """Return a message as lines that fit the terminal behind the time."""
        columns = self._style.columns
        return f"\n{' ' * _AT}".join(
            wrap(naming_sides(message_text(message), self._sides), None if columns is None else columns - _AT)
        )

    def _of_action(self, event: WatchEvent, action: Action) -> str:
        colored = self._style(pad(verb(action), VERB_COLUMNS), _COLORS[event.kind])
        why = reason_words(action.reason.value, action.reason.words, is_public=event.is_public)
        why = why if event.kind is EventKind.DONE else f"{event.kind.value}: {message_text(event.message)}"
        detailed = detail(action, is_public=event.is_public)
        what = pad(detailed, DETAIL)
        columns = self._style.columns
        if columns is None or _AT + TITLE // 2 + VERB_COLUMNS + width(what) + width(why) + 6 <= columns:
            return f"{self._title(action.title)}  {colored}  {what}  {self._style(why, dim=True)}".rstrip()
        at = " " * (_AT + VERB_COLUMNS + 2)
        first, *rest = wrap(detailed, columns - len(at))
        lines = [self._title(action.title), f"{' ' * _AT}{colored}  {first}", *(f"{at}{line}" for line in rest)]
        lines += [self._style(line, dim=True) for line in wrap(why, columns, at)]
        return "\n".join(lines)

    def _of_item(self, event: WatchEvent, item: Item) -> str:
        words = pad(_EVENT_WORDS.get(event.kind, event.kind.value), VERB_COLUMNS)
        count = (len(item.resolve) if item.reason is Reason.SECRET else 1) if event.kind is EventKind.HELD else 0
        ways = [clean(with_sides(way, self._sides)) for way in item.resolve[:count]]
        way = f"  ({', or '.join(ways)})" if ways else ""
        name = self._title(item.title) + "  " if item.conversation else ""
        colored, message, columns = (
            self._style(words, _COLORS[event.kind]),
            naming_sides(visible(item_text(item)), self._sides),
            self._style.columns,
        )
        if columns is None or _AT + width(name) + VERB_COLUMNS + 2 + width(message) + width(way) <= columns:
            return f"{name}{colored}  {message}{self._style(way, 'cyan')}"
        lines = [f"{name}{colored}".rstrip(), *wrap(message, columns, " " * _AT)]
        commands = (line for way in ways for line in command_lines(way, columns, " " * (_AT + 2)))
        lines += [self._style(line, "cyan") for line in commands]
        return "\n".join(lines)

    def _title(self, title: str | None) -> str:
        return self._style(pad(shorten(visible(title), TITLE // 2) if title else "(no title)", TITLE // 2), bold=True)

    def _status_line(self) -> str:
        statuses = self._statuses.values()
        held, busy = sum(status.held for status in statuses), sum(status.busy for status in statuses)
        counts = Counter[str]()
        for status in statuses:
            counts[status.noun] += status.conversations
        watched = [_counted(noun, count) for noun, count in sorted(counts.items())] or ["nothing yet"]
        parts = [f"watching {' and '.join(watched)}"]
        parts += [f"last change {self._last}"] if self._last else []
        parts += [f"{held} blocked"] if held else []
        parts += [f"{busy} in use"] if busy else []
        return " · ".join(parts)

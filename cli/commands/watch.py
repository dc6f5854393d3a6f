"""``reconcile watch``: runs passes while files change, and prints events as text or as JSON, until it is stopped."""

from __future__ import annotations

import gc
import json
import shutil
import signal
import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from reconcile.model.snapshot import WHOLE
from reconcile.serialization.plan_json import action_to_json, item_to_json
from reconcile.watch.reporter import What
from reconcile.watch.watcher import Pace, Watched, Watcher

from ..context import find_roots, open_session, policy_of, settings_of
from ..options import common_options, options_of
from ..output.errors import ExitCode
from ..output.plan_text import SHOWN, TITLE, detail
from ..output.streams import output_error
from ..output.text import Style, clean, pad, shorten
from .sync import tell_new_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from reconcile.config import Settings
    from reconcile.model.plan import Action, Item
    from reconcile.watch.fs_events import Inbox
    from reconcile.watch.reporter import News, Standing

    from ..arguments import Options

_SECOND = 10**9
_COLORS = {
    What.DONE: "green",
    What.SKIPPED: "yellow",
    What.FAILED: "red",
    What.HELD: "yellow",
    What.RELEASED: "green",
    What.NOTED: "blue",
    What.WAITING: "yellow",
    What.POLLING: "yellow",
}
_ATTENTION = (What.FAILED, What.HELD, What.WAITING, What.POLLING)
"""Kinds of events that ``-q`` prints."""


@click.command("watch")
@common_options
@click.option("--settle", type=click.FloatRange(min=0), metavar="SECONDS", help="Quiet time of a conversation (0.15).")
@click.option(
    "--settle-at-most", type=click.FloatRange(min=0), metavar="SECONDS", help="Take it up after so long anyway (2)."
)
@click.pass_context
def watch(context: click.Context, settle: float | None, settle_at_most: float | None) -> None:
    """Keep both sides together while you work, until you stop it.

    Whatever changes on one side is carried over to the other once its conversation has been quiet for a moment. What
    needs a decision is said once and stays as it is. While git is in the middle of something, nothing is done. Other
    commands may be run meanwhile.

    SIGTERM and Ctrl-C finish the step in hand, SIGHUP reads the configuration again.
    """
    gc.enable()  # other commands end before garbage matters
    options = options_of(context)
    if options.is_dry or options.only or options.below or options.accept:
        raise click.UsageError("watch takes no --dry-run, --check, --out, --only, --below or --accept")

    begun = False

    def opening() -> Watched:
        nonlocal begun
        roots = find_roots(options)
        settings = settings_of(roots)
        if not begun:  # a store that is missing later was removed: the watcher waits for it
            tell_new_store(options, roots)
        begun = True
        session = open_session(roots, settings, readonly=False)
        policy = policy_of(options, settings)
        pace = _pace(settings, settle, settle_at_most)
        return Watched(session, policy, settings.lock_timeout, pace, lambda: find_roots(options))

    printer = _JsonLines(options) if options.json else _TextLines(options)

    def tell(news: News, standing: Standing) -> None:
        printer.tell(news, standing)
        if isinstance(output_error(), ConnectionError):  # the reader closed the pipe
            watcher.inbox.stop()

    watcher = Watcher(opening, tell)
    with _signals(watcher.inbox) as seen:
        watcher.run()
    printer.close()
    context.exit(ExitCode.INTERRUPTED if signal.SIGINT in seen else ExitCode.DONE)


def _pace(settings: Settings, settle: float | None, settle_at_most: float | None) -> Pace:
    quiet = settings.settle if settle is None else settle
    at_most = settings.settle_at_most if settle_at_most is None else settle_at_most
    return Pace(quiet=int(quiet * _SECOND), at_most=int(max(quiet, at_most) * _SECOND))


@contextmanager
def _signals(inbox: Inbox) -> Iterator[set[int]]:
    """Handle signals: stop, or read the configuration again. Yield the set of received ones. A second Ctrl-C kills."""
    seen: set[int] = set()
    at_terminal = sys.stdout.isatty()
    usual = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in seen and callable(usual):
            usual(number, frame)
        seen.add(number)
        inbox.stop()

    def hang_up(number: int, frame: FrameType | None) -> None:
        if at_terminal and not sys.stdout.isatty():  # its window was closed
            stop(number, frame)
        inbox.reopen()

    handlers: dict[int, Callable[[int, FrameType | None], None]] = {signal.SIGTERM: stop, signal.SIGINT: stop}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = hang_up
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _JsonLines:
    """Prints events as lines of JSON (docs/json.md)."""

    def __init__(self, options: Options) -> None:
        self._quiet = options.quiet

    def tell(self, news: News, standing: Standing) -> None:
        if self._quiet and news.what not in _ATTENTION:
            return
        line: dict[str, Any] = {
            "format": "reconcile.event/1",
            "time": datetime.now().astimezone().isoformat(timespec="milliseconds"),
            "event": news.what.value,
            "message": news.message or None,
            "action": action_to_json(news.action) if news.action is not None else None,
            "item": item_to_json(news.item) if news.item is not None else None,
            "conversations": standing.conversations,
            "held": standing.held,
            "busy": standing.busy,
        }
        click.echo(json.dumps({key: value for key, value in line.items() if value is not None}))

    def close(self) -> None:
        """Print nothing more."""


class _TextLines:
    """Prints events as lines of text; at a terminal, the last line is the present status."""

    def __init__(self, options: Options) -> None:
        self._style = Style.choose(options.color)
        self._quiet = options.quiet
        self._status = sys.stdout.isatty() and not options.quiet
        self._last = ""
        self._room: int | None = None
        """How many more actions of a long pass are printed; None: all."""
        self._has_more = False
        """The last pass had more actions than were printed."""
        if self._status:
            click.echo(self._style("looking at both sides", dim=True), nl=False)

    def tell(self, news: News, standing: Standing) -> None:
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        self._clear()
        if self._shows(news):
            click.echo(f"{self._style(now, dim=True)}  {self._words(news, standing)}")
        if news.action is not None:
            self._last = now
        if self._status:
            # A line wider than the terminal couldn't be erased.
            text = shorten(self._standing(standing), shutil.get_terminal_size().columns - 1)
            click.echo(self._style(text, dim=True), nl=False)

    def _shows(self, news: News) -> bool:
        """Tell whether an event is printed; of a long pass, only the first `SHOWN` actions are."""
        if self._quiet:
            return news.what in _ATTENTION
        if news.what in (What.BEGUN, What.ENDED):
            self._room, self._has_more = (SHOWN, False) if news.what is What.BEGUN else (None, (self._room or 0) < 0)
        if news.what is not What.DONE or self._room is None:
            return True
        self._room -= 1
        return self._room >= 0

    def close(self) -> None:
        """Erase the status line."""
        self._clear()

    def _clear(self) -> None:
        if self._status:
            click.echo("\r\x1b[2K", nl=False)

    def _words(self, news: News, standing: Standing) -> str:
        if news.action is not None:
            return self._of_action(news, news.action)
        if news.item is not None:
            return self._of_item(news, news.item)
        if news.what is What.WATCHING:
            return f"watching {standing.conversations} conversations"
        if news.what is What.BEGUN:
            return f"{news.message} to do"
        if news.what is What.ENDED:
            return news.message + (f", of which {SHOWN} are shown" if self._has_more else "")
        words = {What.RESUMED: "going on", What.STOPPED: "stopped"}.get(news.what, news.what.value)
        if news.what in (What.MESSAGE, What.NOTED):
            return clean(news.message)
        return self._style(words, _COLORS.get(news.what)) + (f": {clean(news.message)}" if news.message else "")

    def _of_action(self, news: News, action: Action) -> str:
        verb = self._style(pad(action.kind.value, 13), _COLORS[news.what])
        why = action.reason.words if news.what is What.DONE else f"{news.what.value}: {clean(news.message)}"
        return f"{self._title(action.title)}  {verb} {pad(detail(action), 44)}  {self._style(why, dim=True)}".rstrip()

    def _of_item(self, news: News, item: Item) -> str:
        verb = self._style(pad(news.what.value, 13), _COLORS[news.what])
        unit = "" if item.unit == WHOLE else f"{clean(item.unit)}: "
        way = f"  ({clean(item.resolve[0])})" if item.resolve and news.what is What.HELD else ""
        name = self._title(item.title) + "  " if item.conversation else ""
        return f"{name}{verb} {unit}{clean(item.message)}{self._style(way, 'cyan')}"

    def _title(self, title: str | None) -> str:
        return self._style(pad(shorten(clean(title), TITLE // 2) if title else "(no title)", TITLE // 2), bold=True)

    def _standing(self, standing: Standing) -> str:
        parts = [f"watching {standing.conversations} conversations"]
        parts += [f"last change {self._last}"] if self._last else []
        parts += [f"{standing.held} held"] if standing.held else []
        parts += [f"{standing.busy} busy"] if standing.busy else []
        return " · ".join(parts)

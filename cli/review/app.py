"""The full-screen view of a walk: the tree on the left, the chosen conversation on the right."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Input, Static

from reconcile.model.snapshot import WHOLE
from reconcile.signals import Interrupt

from ..output.errors import FAILURES
from ..output.text import wants_color
from .decisions import Decisions
from .details import KEYS, detail_lines
from .dialogs import Help, Question
from .rows import Tree
from .subjects import Choice
from .walk import Result, sentences
from .widgets import DetailView, TreeView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.events import Resize

    from ..arguments import Options
    from .details import Reading
    from .rows import Row
    from .subjects import Subject
    from .walk import Walk

SIDE_BY_SIDE = 100
"""Columns of the terminal from which both versions are shown side by side."""
STACKED = 70
"""Columns of the terminal below which the tree is above the text, and not beside it."""
SHORT = 16
"""Rows of such a terminal below which two rows of the tree are shown."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end the view."""
_NOT_OFFERED: Mapping[Choice, str] = {
    Choice.STORE: "no version of the store to take here",
    Choice.WORKSPACE: "no version of the workspace to take here",
    Choice.BOTH: "only events can be kept in both versions, and of two continuations s and w keep both",
    Choice.STORE_ALONE: "only of two continuations, and for all of a conversation",
    Choice.WORKSPACE_ALONE: "only of two continuations, and for all of a conversation",
    Choice.SKIP: "nothing to skip here",
    Choice.HOLD: "nothing to hold here",
}


_ONLY_SKIP = "this plan is made already: k leaves a conversation out"
_BLOCKED = "blocked: the text on the right has the way out"


def _refusal(subject: Subject, choice: Choice) -> str:
    """Return why a choice can't be taken about a subject."""
    if subject.held and not subject.offered():
        return _BLOCKED
    return _NOT_OFFERED[choice] if subject.allowed is None else _ONLY_SKIP


class ReviewApp(App[Result]):
    """The full-screen view."""

    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default; }
    #heading { height: 1; width: 100%; text-style: reverse; }
    #panes { height: 1fr; }
    TreeView { width: 30; border-right: solid ansi_bright_black; background: ansi_default; }
    DetailView { width: 1fr; padding: 0 0 0 1; background: ansi_default; }
    .-wide TreeView { width: 42; }
    .-narrow #panes { layout: vertical; }
    .-narrow TreeView { width: 100%; height: 1fr; border-right: none; border-bottom: solid ansi_bright_black; }
    .-narrow DetailView { height: 2fr; padding: 0; }
    .-short TreeView { height: 2; border-bottom: none; }
    #message { height: auto; min-height: 1; max-height: 3; padding: 0 1; width: 100%; }
    #hints { height: auto; width: 100%; text-style: reverse; }
    #search { height: 1; width: 100%; border: none; padding: 0; display: none; background: ansi_default; }
    #search.-open { display: block; }
    #message.-covered { display: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    failure: BaseException | None = None
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"choose('{choice.value}')", choice.value) for choice, key in KEYS.items()),
        Binding("x", "choose('skip')", "skip"),
        Binding("u,backspace", "take_back", "take the last decision back"),
        Binding("n", "open(1)", "next undecided"),
        Binding("p", "open(-1)", "previous undecided"),
        Binding("slash", "search", "search"),
        Binding("e", "editor(False)", "editor"),
        Binding("t", "editor(True)", "difftool"),
        Binding("a", "apply", "apply"),
        Binding("question_mark,f1", "help", "help"),
        Binding("q,ctrl+c,ctrl+q", "quit_walk", "quit", priority=False),
        Binding("space,pagedown,ctrl+f", "scroll(1)", "next page of the text"),
        Binding("minus,pageup,ctrl+b", "scroll(-1)", "previous page of the text"),
        Binding("J,shift+down", "line(1)", "next line of the text", key_display="J"),
        Binding("K,shift+up", "line(-1)", "previous line of the text", key_display="K"),
    ]

    def __init__(self, walk: Walk, *, colored: bool = True) -> None:
        """Show a walk. ``colored``: colours of the terminal; without them, styles are bold, underlined and reversed."""
        super().__init__(ansi_color=True)
        self.walk = walk
        self.colored = colored
        self.outline = Tree(walk.subjects)
        self.decisions = Decisions()
        self._searched = ""
        self._readings: dict[str, Reading] = {}

    def compose(self) -> ComposeResult:
        """Build the view."""
        yield Static(id="heading", markup=False)
        with Horizontal(id="panes"):
            yield TreeView(self.outline, lambda: self.decisions, colored=self.colored)
            yield DetailView(colored=self.colored)
        yield Static(id="message", markup=False)
        yield Input(id="search", placeholder="search a title or id, Enter finds it", compact=True)
        yield Static(id="hints", markup=False)

    def on_mount(self) -> None:
        """Begin at the first subject that needs a decision."""
        self._arrange(*self.size)
        view = self.query_one(TreeView)
        view.focus()
        first = next((number for number, each in enumerate(self.walk.subjects) if self.decisions.is_open(each)), 0)
        view.move_to(self.outline.at(first))
        total = self.decisions.counts(self.walk.subjects).total
        if not self.walk.apply_words:
            self.say("This view only shows.")
        elif total:
            self.say(f"{total} to decide: press a key of the last line. Nothing changes before you apply.")
        else:
            self.say("k leaves a conversation out. Nothing changes before you apply.")
        self.refresh_all()

    def on_resize(self, event: Resize) -> None:
        """Show both versions side by side where there is room."""
        self._arrange(*event.size)
        self.call_after_refresh(self.refresh_all)

    def _arrange(self, columns: int, rows: int) -> None:
        self.set_class(columns >= SIDE_BY_SIDE, "-wide")
        self.set_class(columns < STACKED, "-narrow")
        self.set_class(columns < STACKED and rows < SHORT, "-short")

    @property
    def row(self) -> Row:
        """The chosen row."""
        return self.outline.rows[self.query_one(TreeView).cursor]

    @property
    def subject(self) -> Subject:
        """The chosen subject."""
        return self.walk.subjects[self.row.subject]

    def on_tree_view_moved(self) -> None:
        """Show the details of the row that the cursor has reached."""
        self.show_details()
        self.show_hints()

    def refresh_all(self) -> None:
        """Show the decisions everywhere."""
        count = self.decisions.counts(self.walk.subjects).text
        room = max(self.size.width - len(count) - 4, 0)
        self.query_one("#heading", Static).update(f" {self.walk.heading[:room].ljust(room)}  {count} ")
        self.query_one(TreeView).refresh()
        self.show_details(keep=True)
        self.show_hints()

    def show_details(self, *, keep: bool = False) -> None:
        """Show the chosen conversation; ``keep``: stay at the same line of it."""
        view = self.query_one(DetailView)
        columns = view.text_columns
        if columns <= 0:
            return
        subject = self.subject
        lines = detail_lines(
            subject,
            self.row.unit,
            self.decisions,
            self._read(subject.conversation),
            columns,
            two_columns=self.size.width >= SIDE_BY_SIDE,
        )
        view.show(lines, keep=keep)

    def _read(self, conversation: str) -> Reading:
        reading = self._readings.get(conversation)
        if reading is None:
            if len(self._readings) >= 8:  # a walk passes many: only the last few stay in memory
                del self._readings[next(iter(self._readings))]
            reading = self._readings[conversation] = self.walk.read(conversation)
        return reading

    def show_hints(self) -> None:
        """Show the keys that do something here."""
        offered = self.subject.offered(self.row.unit) if self.walk.apply_words else ()
        keys = [f"{KEYS[choice]} {choice}" for choice in offered]
        keys += ["n next"] if self.decisions.counts(self.walk.subjects).left else []
        keys += [f"a {self.walk.apply_words}"] if self.walk.apply_words else []
        keys += ["? help", "q quit"]
        keys += ["PgDn text"] if self.query_one(DetailView).is_cut else []
        columns = self.size.width
        self.query_one("#hints", Static).update("\n".join(line.ljust(columns) for line in key_lines(keys, columns)))

    def say(self, message: str) -> None:
        """Show a message above the keys."""
        self.query_one("#message", Static).update(message)

    # Keys

    def action_choose(self, value: str) -> None:
        """Take a choice about the chosen row, and move to the next one that needs a decision."""
        choice, subject, unit = Choice(value), self.subject, self.row.unit
        if not self.walk.apply_words:
            self.say("this view only shows; nothing can be decided")
            return
        was_open = self.decisions.is_open(subject, unit)
        decided = self.decisions.with_choice(subject, unit, choice)
        if decided is None:
            self.say(f"{subject.name}: {_refusal(subject, choice)}")
            self.bell()
            return
        self.decisions = decided
        what = subject.name if unit == WHOLE else f"{subject.name}, {self.outline.name(self.row)}"
        left = decided.counts(self.walk.subjects).left
        more = f"{left} left" if left else f"all decided: press a to {self.walk.apply_words}"
        self.say(f"{what}: {choice.value} (u takes it back). {more}")
        if was_open and (number := self.outline.next_open(self.query_one(TreeView).cursor, decided)) is not None:
            self.query_one(TreeView).move_to(number)
        self.refresh_all()

    def action_take_back(self) -> None:
        """Take the last decision back, and show its subject."""
        before = self.decisions
        self.decisions = before.taken_back()
        changed = {key for key, choice in before.chosen.items() if self.decisions.chosen.get(key) != choice}
        if not changed:
            self.say("no decision to take back")
            return
        id_, unit = min(changed, key=lambda key: key[1] == WHOLE)
        number = next(number for number, each in enumerate(self.walk.subjects) if each.conversation == id_)
        self.query_one(TreeView).move_to(self.outline.at(number, unit))
        self.say(f"{self.subject.name}: decision taken back")
        self.refresh_all()

    def action_open(self, step: int) -> None:
        """Move to the next or previous row that needs a decision."""
        view = self.query_one(TreeView)
        number = self.outline.next_open(view.cursor, self.decisions, step)
        if number is None:
            self.say(f"all decided: press a to {self.walk.apply_words}" if self.walk.apply_words else "")
        else:
            self.say("")
            view.move_to(number)

    def action_scroll(self, step: int) -> None:
        """Scroll the text by a page."""
        view = self.query_one(DetailView)
        view.scroll_relative(y=step * max(view.size.height - 2, 1), animate=False)

    def action_line(self, step: int) -> None:
        """Scroll the text by a line."""
        self.query_one(DetailView).scroll_relative(y=step, animate=False)

    def action_search(self) -> None:
        """Ask for a text to find."""
        box = self.query_one("#search", Input)
        box.value = ""
        self.query_one("#message").add_class("-covered")
        box.add_class("-open")
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Move to the next row that has the text; an empty text repeats the last search."""
        self._searched = event.value.strip() or self._searched
        self._close_search()
        view = self.query_one(TreeView)
        number = self.outline.search(self._searched, view.cursor) if self._searched else None
        if number is None:
            self.say(f"nothing found: {self._searched}" if self._searched else "")
        else:
            view.move_to(number)
            self.say(f"found {self._searched!r}; / and Enter finds the next")

    def on_key(self, event: object) -> None:
        """Close the search with Escape."""
        if getattr(event, "key", "") == "escape" and self.query_one("#search", Input).has_focus:
            self._close_search()

    def _close_search(self) -> None:
        self.query_one("#search", Input).remove_class("-open")
        self.query_one("#message").remove_class("-covered")
        self.query_one(TreeView).focus()

    def action_editor(self, is_tool: bool) -> None:
        """Open both versions in the editor, or in the difftool."""
        if not self.subject.conversation:
            return
        if self.is_headless:
            self.say(self.walk.opened(self.subject.conversation, is_tool))
            return
        with self.suspend():
            message = self.walk.opened(self.subject.conversation, is_tool)
        self.refresh(layout=True)
        self.say(message)

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(Help(read_only=not self.walk.apply_words))

    def action_apply(self) -> None:
        """Plan with the decisions, and ask once whether to carry the plan out."""
        if not self.walk.apply_words:
            self.say("this view only shows; nothing can be applied")
            return
        try:
            plan = self.walk.plan_for(self.decisions)
        except FAILURES as error:
            self._end_with(error)
            return
        text = sentences(self.walk, self.decisions, plan)

        def answered(answer: bool | None) -> None:
            if not answer:
                return
            try:
                self.walk.confirmed(plan)
            except FAILURES as error:
                self._end_with(error)
            else:
                self.exit(Result(plan, self.decisions.titles(self.walk.subjects)))

        self.push_screen(Question(f"{self.walk.apply_words.capitalize()}?", text), answered)

    def _end_with(self, error: BaseException) -> None:
        """End the view with an error that is no bug, such as a full disk: the command prints it."""
        self.failure = error
        self.exit(Result())

    def action_quit_walk(self) -> None:
        """Leave; nothing is applied. Asks if there are decisions."""
        if not self.decisions.chosen:
            self.exit(Result())
            return

        def answered(answer: bool | None) -> None:
            if answer:
                self.exit(Result())

        words = self.decisions.words(self.walk.subjects)
        self.push_screen(Question("Quit?", [f"Your decisions ({words}) will be lost; nothing was changed."]), answered)


def key_lines(keys: Sequence[str], columns: int) -> list[str]:
    """Return the keys in as many lines as they need."""
    lines = [""]
    for key in keys:
        if lines[-1] and len(lines[-1]) + len(key) + 2 > columns:
            lines.append("")
        lines[-1] += f"{'  ' if lines[-1] else ' '}{key}"
    return lines


class _TerminalApp(ReviewApp):
    """The view at a real terminal: a signal ends it, and gives the terminal back."""

    ended_by: signal.Signals | None = None

    def on_mount(self) -> None:
        """Handle the signals from now on."""
        super().on_mount()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._end, number)

    def _end(self, number: signal.Signals) -> None:
        self.ended_by = number
        self.exit(Result())


def walk_in_full_screen(walk: Walk, options: Options) -> Result:
    """Show a walk until the person applies or quits; nothing is changed here.

    Raises:
        ReconcileError, OSError: the plan or the decisions could not be made or recorded.
        Interrupt: SIGINT has ended the view. Any other signal ends the process, as it would have without the view.
    """
    app = _TerminalApp(walk, colored=_wants_color(options))
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    was_enabled = gc.isenabled()
    gc.enable()  # the command line turns it off for commands that end soon
    try:
        result = app.run(mouse=False)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if not was_enabled:
            gc.disable()
    if app.failure is not None:
        raise app.failure
    if app.ended_by is signal.SIGINT:
        raise Interrupt
    if app.ended_by is not None:
        os.kill(os.getpid(), app.ended_by)
    return result if result is not None else Result()


def _wants_color(options: Options) -> bool:
    """Decide by ``--color`` and the environment; the view is on standard error, so that JSON may go elsewhere."""
    return wants_color(is_terminal=True) if options.color == "auto" else options.color == "always"

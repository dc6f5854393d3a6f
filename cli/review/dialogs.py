"""The two windows over the view: a question that is answered with yes or no, and the list of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from ..output.screen import wrap
from .lines import PLAIN, plain, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.events import Resize

    from .lines import Line

KEYS = """\
Move     up, down       Home, End; comma, period: a page of the list
         left, right    fold, unfold
         n, p           next, previous conversation to decide
         /              search a title or id
Read     PgDn, PgUp     next, previous page of the text (or space, -)
         J, K           next, previous line
         e              both versions in $EDITOR (copies)
         t              both versions in git's difftool
Decide   s, w           take the store's, the workspace's version
         b              keep both: the older one becomes a fork
         S, W           take only that side's: no fork
         k or x         skip: not in this run
         h              hold: leave both sides alone until one changes
         u, Backspace   take the last decision back
End      a              show what would be done, and ask once
         q              quit; nothing is applied
Marks    ? to decide   = decided   ! blocked: its text has the way out

Nothing changes before `a`. Undecided: the next plain run takes the
newer. What is replaced is saved; `reconcile undo` undoes the run."""
_INDENT = 24
"""Columns before what a key does."""
_ROOMY = 20
"""Rows of a terminal from which a window has an empty line before its last one."""
READ_ONLY_KEYS = """\
Move     up, down       Home, End; comma, period: a page of the list
         left, right    fold, unfold
         /              search a title or id
Read     PgDn, PgUp     next, previous page of the text (or space, -)
         J, K           next, previous line
         e              both versions in $EDITOR (copies)
         t              both versions in git's difftool
End      q              quit

This view only shows."""


def _fitted(line: str, columns: int) -> list[Line]:
    """Return a line in as many lines as it needs; what a key does stays in its own column where there is room."""
    indent = " " * _INDENT if "  " in line.strip() and columns > 2 * _INDENT else ""
    return list(wrapped([(line, PLAIN)], columns, indent, "")) or [()]


class _Window(ModalScreen[bool]):
    DEFAULT_CSS = """
    _Window { align: center middle; background: ansi_default; }
    _Window > Vertical {
        width: 78; max-width: 100%; height: auto; max-height: 100%;
        border: solid ansi_default; padding: 0 1; background: ansi_default;
    }
    _Window VerticalScroll { height: auto; scrollbar-size-vertical: 1; background: ansi_default; }
    _Window Static { background: ansi_default; color: ansi_default; height: auto; }
    """

    def __init__(self, text: str, end: str) -> None:
        super().__init__()
        self._text = text
        self._end = end

    def compose(self) -> ComposeResult:
        with Vertical():
            with VerticalScroll():
                yield Static(id="text", markup=False)
            yield Static(id="end", markup=False)

    def on_mount(self) -> None:
        """Leave room for the last line, which is always seen."""
        self._fit(self.size.width, self.size.height)

    def on_resize(self, event: Resize) -> None:
        """Leave room for the last line in the new size, too."""
        self._fit(event.size.width, event.size.height)

    def _fit(self, columns: int, rows: int) -> None:
        end = self.query_one("#end", Static)
        room = max(min(columns, 78) - 5, 10)  # without the border, its padding and the scroll bar
        lines = [*([""] if rows >= _ROOMY else []), *wrap(self._end, room)]
        end.update("\n".join(lines))
        text = [plain(part) for line in self._text.split("\n") for part in _fitted(line, room)]
        self.query_one("#text", Static).update("\n".join(text))
        self.query_one(VerticalScroll).styles.max_height = max(rows - 2 - len(lines), 1)


class Question(_Window):
    """A question; the answer is yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q,ctrl+c", "answer(False)", "no"),
    ]

    def __init__(self, question: str, text: Iterable[str]) -> None:
        """Ask the question below a text."""
        super().__init__("\n\n".join(text), f"{question}  [y] yes   [n] no, back to the list")

    def action_answer(self, answer: bool) -> None:
        """Give the answer."""
        self.dismiss(answer)


class Help(_Window):
    """The list of the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter,ctrl+c", "close", "close")]

    def __init__(self, *, read_only: bool) -> None:
        """List the keys of a walk, or of a view that only shows."""
        super().__init__(READ_ONLY_KEYS if read_only else KEYS, "Escape closes this.")

    def action_close(self) -> None:
        """Close the window."""
        self.dismiss(False)  # noqa: FBT003 - the answer of a window

"""The two windows over the view: a question that is answered with yes or no, and the list of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult
    from textual.binding import BindingType

KEYS = """\
Move      up, down       one row            left, right   fold, unfold
          Page Up/Down, Home, End           /             search a title or id
          n, p           next, previous conversation that needs a decision
Read      space, -       next, previous page of the text
          J, K           next, previous line
          e              both versions in $EDITOR (copies; edits are discarded)
          t              both versions in git's difftool
Decide    s, w           take the store's, the workspace's version
          b              keep both: the older one becomes a child
          k or x         skip: leave it out of this run
          h              hold: leave both sides alone until one changes
          u, Backspace   take the last decision back
End       a              show what would be done, and ask once
          q              quit; nothing is applied

Marks     ?  needs a decision     =  decided     !  blocked until repaired

Nothing changes before `a`. Undecided: the next plain run takes the newer.
Every replaced version is saved; `reconcile undo` undoes the whole run."""
READ_ONLY_KEYS = """\
Move      up, down       one row            left, right   fold, unfold
          Page Up/Down, Home, End           /             search a title or id
Read      space, -       next, previous page of the text
          J, K           next, previous line
          e, t           both versions in $EDITOR, in git's difftool
End       q              quit

This view only shows."""


class _Window(ModalScreen[bool]):
    DEFAULT_CSS = """
    _Window { align: center middle; background: ansi_default; }
    _Window > VerticalScroll {
        width: 78; max-width: 100%; height: auto; max-height: 100%;
        border: solid ansi_default; padding: 0 1; background: ansi_default;
    }
    _Window Static { background: ansi_default; color: ansi_default; height: auto; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)


class Question(_Window):
    """A question; the answer is yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q,ctrl+c", "answer(False)", "no"),
    ]

    def __init__(self, question: str, text: Iterable[str]) -> None:
        """Ask the question below a text."""
        super().__init__("\n\n".join([*text, f"{question}  [y] yes   [n] no, back to the list"]))

    def action_answer(self, answer: bool) -> None:
        """Give the answer."""
        self.dismiss(answer)


class Help(_Window):
    """The list of the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter,ctrl+c", "close", "close")]

    def __init__(self, *, read_only: bool) -> None:
        """List the keys of a walk, or of a view that only shows."""
        super().__init__(f"{READ_ONLY_KEYS if read_only else KEYS}\n\nEscape closes this.")

    def action_close(self) -> None:
        """Close the window."""
        self.dismiss(False)  # noqa: FBT003 - the answer of a window

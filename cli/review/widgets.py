"""The two panes. Both draw only the lines that are seen, so that their length costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..output.text import shorten, visible, width
from . import lines
from .rows import ASKED, BLOCKED
from .subjects import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.binding import BindingType
    from textual.events import Click

    from .decisions import Decisions
    from .lines import Line
    from .rows import Tree

_LEVELS = 8
"""Levels of the tree that are shown by indentation."""
_COLORED: Mapping[str, Style] = {
    lines.PLAIN: Style(),
    lines.TITLE: Style(bold=True),
    lines.DIM: Style(dim=True),
    lines.ASKED: Style(bold=True, color="yellow"),
    lines.CHOSEN: Style(bold=True, color="green"),
    lines.KEY: Style(bold=True, color="cyan"),
    lines.STORE: Style(bold=True, color="magenta"),
    lines.WORKSPACE: Style(bold=True, color="cyan"),
    lines.STORE_CHANGED: Style(bold=True, underline=True, color="magenta"),
    lines.WORKSPACE_CHANGED: Style(bold=True, underline=True, color="cyan"),
}
_MONOCHROME: Mapping[str, Style] = {
    name: Style(bold=style.bold, underline=style.underline, dim=style.dim) for name, style in _COLORED.items()
}


class _Pane(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    _Pane {
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; scrollbar-gutter: stable;
        overflow-x: hidden; overflow-y: auto;
    }
    """

    def __init__(self, *, colored: bool) -> None:
        super().__init__()
        self.styles_of = _COLORED if colored else _MONOCHROME

    def strip(self, line: Line, columns: int, *, is_reversed: bool = False) -> Strip:
        """Return a line as it is drawn."""
        segments = [Segment(text, self.styles_of[style]) for text, style in line]
        strip = Strip(segments).adjust_cell_length(columns)
        return strip.apply_style(Style(reverse=True)) if is_reversed else strip


class TreeView(_Pane):
    """The tree: a row for each subject, and one for each conflict if a conversation has several."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("comma", "page(-1)", show=False),
        Binding("full_stop", "page(1)", show=False),
        Binding("home,g", "end(-1)", show=False),
        Binding("end,G", "end(1)", show=False),
        Binding("left", "fold(True)", show=False),
        Binding("right,enter", "fold(False)", show=False),
    ]

    class Moved(Message):
        """The cursor has moved."""

    def __init__(self, tree: Tree, decisions: Callable[[], Decisions], *, colored: bool) -> None:
        """Show a tree with the decisions."""
        super().__init__(colored=colored)
        self.tree_ = tree
        self._decisions = decisions
        self.cursor = 0
        self.virtual_size = Size(0, len(tree.rows))

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        number, columns = y + self.scroll_offset.y, self.scrollable_content_region.width
        if number >= len(self.tree_.rows):
            return Strip.blank(columns)
        return self.strip(self._line(number, columns), columns, is_reversed=number == self.cursor)

    def _line(self, number: int, columns: int) -> Line:
        tree, decisions = self.tree_, self._decisions()
        row = tree.rows[number]
        subject = tree.subjects[row.subject]
        mark, word = tree.mark(row, decisions), tree.word(row, decisions)
        fold = " "
        if tree.can_fold(row):
            fold = "+" if row.subject in tree.folded else "-"
        before = f"{'>' if number == self.cursor else ' '}{mark}{'  ' * min(row.depth, _LEVELS)}{fold}"
        room = columns - len(before) - width(word) - 1
        name = shorten(visible(tree.name(row)), max(room, 1))
        style = lines.PLAIN
        if mark in (ASKED, BLOCKED):
            style = lines.ASKED
        elif subject.status in (Status.ABOVE, Status.LEFT_ALONE):
            style = lines.DIM
        if number == self.cursor:
            return (
                (before, lines.TITLE),
                (name, lines.TITLE),
                (" " * (room - width(name) + 1), lines.TITLE),
                (word, lines.TITLE),
            )
        end = lines.CHOSEN if decisions.of(subject, row.unit) is not None else style or lines.DIM
        return (before, style), (name, style), (" " * (room - width(name) + 1), lines.PLAIN), (word, end)

    def move_to(self, number: int) -> None:
        """Put the cursor on a row, and show it."""
        self.virtual_size = Size(0, len(self.tree_.rows))
        self.cursor = max(0, min(number, len(self.tree_.rows) - 1))
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved())

    def action_move(self, step: int) -> None:
        """Move by rows."""
        self.move_to(self.cursor + step)

    def action_page(self, step: int) -> None:
        """Move by a page."""
        self.move_to(self.cursor + step * max(self.size.height - 1, 1))

    def action_end(self, step: int) -> None:
        """Move to the first or last row."""
        self.move_to(0 if step < 0 else len(self.tree_.rows) - 1)

    def action_fold(self, folded: bool) -> None:
        """Fold or unfold the row; what can't be folded moves to the row above it."""
        row = self.tree_.rows[self.cursor]
        if self.tree_.fold(row, folded=folded):
            self.move_to(self.cursor)
        elif folded:
            self.move_to(self.tree_.above(self.cursor))

    def on_click(self, event: Click) -> None:
        """Move to the row that was clicked."""
        self.move_to(event.y + self.scroll_offset.y)


class DetailView(_Pane):
    """The text about the chosen conversation."""

    def __init__(self, *, colored: bool) -> None:
        """Show nothing yet."""
        super().__init__(colored=colored)
        self._lines: Sequence[Line] = ()

    @property
    def text_columns(self) -> int:
        """The columns of the text."""
        return self.scrollable_content_region.width if self.size.width else 0

    @property
    def is_cut(self) -> bool:
        """Whether there is more text than the terminal shows at once."""
        return len(self._lines) > self.size.height

    @property
    def text(self) -> str:
        """All of the text."""
        return "\n".join(map(lines.plain, self._lines))

    def show(self, text: Sequence[Line], *, keep: bool = False) -> None:
        """Show other lines, from the first one; ``keep``: stay where the text is."""
        self._lines = text
        self.virtual_size = Size(0, len(text))
        if not keep:
            self.scroll_to(y=0, animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        number, columns = y + self.scroll_offset.y, self.scrollable_content_region.width
        if number >= len(self._lines):
            return Strip.blank(columns)
        return self.strip(self._lines[number], columns)

"""Text for a terminal: colours, widths, tables, times, escaped characters, and the first and last line of a report.

Every start loads this module, so that it imports little.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable

    from reconcile.adapters.roots import Roots

SETTLED_COLOR = "green"
"""The colour of the last line if nothing is left to do."""
MAX_COLUMNS = 200
"""Columns of texts that are shown in full unless they are absurdly long."""
MAX_INDENT = 16
"""Levels of a tree that are shown by indentation."""
_SHORTEST_KEY = 20
"""Characters of the shortest word that is recognized as a secret without a name before it."""
_SHORTEST_VALUE = 8
"""Characters of the shortest secret behind a name."""
_SIDES = frozenset({"--workspace", "-w", "--store", "-s", "--layout"})
"""Options of a command that names its sides itself."""
DEFAULT_COLUMNS = 80
"""The width of a terminal that doesn't tell."""


def title_and_id(title: str | None, conversation: str, style: Style, *, beside: int = 0) -> str:
    """Return a conversation's title with its id, or only one of them if they are the same.

    The title is shortened to the line, of which ``beside`` columns are taken.
    """
    taken = beside if title == conversation else beside + len(conversation) + 2
    room = MAX_COLUMNS if style.columns is None else max(1, style.columns - taken)
    shown = style(shorten(visible(title or "(no title)"), room), bold=True)
    return shown if title == conversation else f"{shown}  {clean(conversation)}"


def visible(text: str) -> str:
    """Return a title, or another short text of a conversation, for the screen: cleaned, with its secrets masked."""
    return clean(masked(text))


def message_text(text: str) -> str:
    """Return a message for the screen: as `visible`, with ``~`` for the home directory in its paths.

    Not behind a quote: a shell expands no ``~`` there, and commands are copied from messages.
    """
    home = os.path.expanduser("~")
    if os.path.isabs(home) and len(home) > 1 and home in text:
        import re  # here: most messages name no path

        text = re.sub(rf"(?<![^\s(]){re.escape(home)}(?![^/\s:;,)])", "~", text)
    return visible(with_local_times(text))


def naming_sides(text: str, sides: str) -> str:
    """Return a message in which every command is followed by the options for the same two sides.

    A command stands behind a colon or in backquotes, or is the second one there. One that names a side itself stays,
    and so does one about no project, or for another machine.
    """
    if not sides or "reconcile " not in text:
        return text
    import re  # here: most runs are started in the workspace, and name no side

    def named(match: re.Match[str]) -> str:
        words = match[0].split()
        if not _SIDES.isdisjoint(words):
            return match[0]
        return match[0] + (re.sub(r" --format \S+", "", sides) if "--format" in words else sides)

    word = r"""(?:'[^']*'|"[^"]*"|[^\s'"`;,()])+"""
    command = (
        rf"(?:(?<=: )|(?<=, or )|(?<=`))reconcile (?!(?:ls|status) --all|help |remote accept &&)[a-z-]+(?: {word})*"
    )
    return re.sub(command, named, text)


def with_directory(text: str, roots: Roots) -> str:
    """Return a message about a whole side with the side's directory in the place of ``SIDE:.``, where it begins so."""
    for side, directory in (("store", roots.store_conversations), ("workspace", roots.workspace_conversations)):
        start = f"{side}:."
        if text == start or text.startswith(f"{start}:"):
            return f"{directory}{text[len(start) :]}"
    return text


def with_local_times(text: str) -> str:
    """Return a text with its times in UTC in local time.

    These are written as by `reconcile.planning.conflicts.time_text`, and as the time since when a lock is held.
    """
    if ":" not in text or not ("Z" in text or "+00:00" in text):
        return text
    import re  # here: few messages have a time

    def local(match: re.Match[str]) -> str:
        return datetime.fromisoformat(f"{match[1]}+00:00").astimezone().strftime("%Y-%m-%d %H:%M:%S") + match[2]

    text = re.sub(r"(?<= since )(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\+00:00\b", r"\1 \2Z", text)
    return re.sub(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?:\.\d+)?)Z\b", local, text)


def local_event_time(text: str) -> str:
    """Return the time of an event in local time, to the second; without a zone it is UTC, as JP writes it."""
    try:
        try:
            seconds = datetime.fromisoformat(f"{text}Z").timestamp()
        except ValueError:  # it has a zone, or no time of day
            time = datetime.fromisoformat(text)
            seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")  # noqa: DTZ006 - the screen has local time
    except (ValueError, OverflowError, OSError):
        return clean(text[:19].replace("T", " "))


def masked(text: str) -> str:
    """Return a text of one line with each secret in it masked: the screen may be shared, or copied into a report.

    The check is loaded only for a text that can have a secret.
    """
    if not _may_have_secret(text):
        return text
    from reconcile.secrets.detection import with_masked_secrets

    return with_masked_secrets(text)


def _may_have_secret(text: str) -> bool:
    """Tell whether a text can have a secret: a listing may have thousands of titles.

    The rules (`reconcile.secrets.rules`) find three kinds: a long word, a word with a digit behind a name, and the
    password of a URL, which has an ``@``.
    """
    if _search(rf"\S{{{_SHORTEST_KEY}}}")(text) or "PRIVATE KEY" in text:
        return True
    if not (":" in text or "=" in text or "," in text) or not _search(r"[^\x00-/:-?A-\x7f]")(text):
        return False
    words = [word for word in text.split() if len(word) >= _SHORTEST_VALUE]
    return bool(words) and ("@" in text or any(map(str.isdigit, "".join(words))))


@cache
def _search(pattern: str) -> Callable[[str], re.Match[str] | None]:
    import re  # here: few starts show a title

    return re.compile(pattern).search


def clean(text: str) -> str:
    """Escape control characters, direction marks and undecodable bytes, so that none takes effect."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    import unicodedata  # here, as below: most text is ASCII

    category = unicodedata.category(char)
    if category == "Cs" and "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\u{ord(char):04x}" if ord(char) > 0xFF else f"\\x{ord(char):02x}"
    return char


def format_time(time_ns: int) -> str:
    """Return a time (ns since the epoch) in the local time zone, to the second; outside of the calendar, the number."""
    try:
        return datetime.fromtimestamp(time_ns // 10**9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"


def age_text(age_ns: int) -> str:
    """Return how long ago something was, in the largest unit that fits."""
    span = span_text(age_ns)
    return f"{span} ago" if span else "just now"


def span_text(span_ns: int) -> str:
    """Return a span of time in the largest unit that fits; empty if it is less than a minute."""
    seconds = span_ns // 10**9
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if (count := seconds // length) > 0:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return ""


def width(text: str) -> int:
    """Return the number of columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    from .glyphs import width_of  # here: most text is ASCII

    return width_of(text)


def pad(text: str, columns: int) -> str:
    """Return a text filled up with spaces to a number of columns."""
    return text + " " * max(0, columns - width(text))


def shorten(text: str, columns: int) -> str:
    """Cut a text to a number of columns, with an ellipsis.

    It is also cut to four characters a column: combining marks take no column.
    """
    start = text[: 4 * columns]
    if text == start and width(text) <= columns:
        return text
    if start.isascii():
        return start[: columns - 1] + "…"
    from .glyphs import beginning  # here, as above

    return beginning(start, columns - 1) + "…"


def shorten_value(text: str, columns: int) -> str:
    """Cut a value as `shorten` does; one in quotation marks keeps the closing one."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    if not is_quoted or (len(text) <= 4 * columns and width(text) <= columns):
        return shorten(text, columns)
    return f'{shorten(text[:-1], columns - 1)}"'


def indented(depth: int, text: str, levels: int = MAX_INDENT) -> str:
    """Indent a text by a number of levels. Below ``levels`` of them, the number of the level is printed."""
    return f"{'  ' * depth}{text}" if depth <= levels else f"{'  ' * levels}{depth}: {text}"


def size(count: int) -> str:
    """Return a number of bytes with a unit: 999 B, 1.2 kB, 3.4 MB, 5.6 GB."""
    if count < 1000:
        return f"{count} B"
    value = count / 1000
    for unit in ("kB", "MB"):
        if round(value, 1) < 1000:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


class Style:
    """Colours, or none of them."""

    __slots__ = ("colored", "columns")

    def __init__(self, colored: bool, columns: int | None = None) -> None:
        """Choose whether to use colours. ``columns``: the width of the terminal; None: lines are not cut."""
        self.colored = colored
        self.columns = columns

    @classmethod
    def choose(cls, when: str) -> Style:
        """Decide by ``--color``, the environment, and whether standard output is a terminal (docs/commands.md)."""
        is_terminal = sys.stdout.isatty()
        colored = wants_color(is_terminal=is_terminal) if when == "auto" else when == "always"
        return cls(colored, terminal_columns() if is_terminal else None)

    def __call__(self, text: str, color: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
        """Return the text in a colour, if colours are used."""
        if not self.colored:
            return text
        import click

        return click.style(text, fg=color, bold=bold or None, dim=dim or None)


def wants_color(*, is_terminal: bool) -> bool:
    """Decide by the conventions of no-color.org, force-color.org and bixense.com/clicolors."""
    environ = os.environ
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_terminal and environ.get("CLICOLOR") != "0" and environ.get("TERM") != "dumb"


def terminal_columns() -> int:
    """Return the width of the terminal by ``COLUMNS``, or as the terminal says; 80 if neither does."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_COLUMNS
    except (OSError, ValueError):
        return DEFAULT_COLUMNS


def heading(roots: Roots, layout: str, style: Style) -> str:
    """Return the two lines that name the workspace and the store, and the layout; empty: it doesn't matter."""
    how = f" ({layout})" if roots.inner and layout else ""
    room = None if style.columns is None else style.columns - 10
    lines = (f"workspace {short_path(roots.workspace, room, how)}{how}", f"store     {short_path(roots.store, room)}")
    return style("\n".join(lines), dim=True)


def show_nothing_to_do(counts: Iterable[str], color: str, idle: str) -> None:
    """Print that there is nothing to do, as ``idle`` says it, in one line: ``counts`` are those of each format."""
    style = Style.choose(color)
    text = "; ".join(filter(None, counts))
    end = f"{idle} {text}." if text else idle
    lines = [end]
    if style.columns is not None and len(end) > style.columns:
        import textwrap  # here: few terminals are that narrow

        lines = textwrap.wrap(end, style.columns)
    show(style(line, SETTLED_COLOR, bold=True) for line in lines)


def short_path(path: str, columns: int | None = None, after: str = "") -> str:
    """Return a path with ``~`` for the home directory, and an ellipsis for its beginning if there is no room for it.

    ``after``: text that follows the path and needs some of the room.
    """
    home = os.path.expanduser("~")
    shown = clean("~" + path[len(home) :] if path.startswith(home + os.sep) else path)
    if columns is None or width(shown) + len(after) <= columns:
        return shown
    room, parts = columns - len(after) - 2, shown.split("/")
    while len(parts) > 1 and width("/".join(parts)) > room:
        del parts[0]
    return f"…/{shorten('/'.join(parts), max(room, 1))}"


def show(lines: Iterable[str]) -> None:
    """Print lines."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()

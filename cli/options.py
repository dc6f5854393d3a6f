"""Options that several commands share, before or after the command's name (docs/commands.md#common-options).

`command_line` writes them out again, for the journal. `parse_time` and `parse_age` read values that options share.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import click

from .arguments import Options, option_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from click.shell_completion import CompletionItem

_CONTENT = {"title"}
"""Options whose values are content of a conversation, which the journal never holds."""
_FORMER_BULK = "accept"
"""The hidden option ``--accept bulk``, which older scripts and plans use for ``--allow-bulk-removal``."""
_UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400, "m": 30 * 86400, "y": 365 * 86400}
"""Seconds of the units of an age."""


def options_of(context: click.Context) -> Options:
    """Return the options of this invocation."""
    options = context.find_root().ensure_object(Options)
    assert isinstance(options, Options)  # noqa: S101 - nothing else is put there
    return options


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Store an option's value in `Options`. The last value wins; those of a repeatable option add up."""
    options = options_of(context)
    name = parameter.name or ""
    if name == _FORMER_BULK:
        name, value = "allow_bulk_removal", value is not None
    if parameter.multiple:
        value = (*getattr(options, name), *value)
    if value not in (None, False, ()):
        setattr(options, name, value)
        options.given |= {name}
    if name == "color" and value in ("always", "never"):
        context.find_root().color = context.color = value == "always"


def completed_by(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a completer for a parameter's ``shell_complete``; the kinds are those of `candidates.candidates`."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from .candidates import candidates  # here: commands don't need it

        return candidates(kind, options_of(context), incomplete)

    return complete


IDS, RUNS, VERSIONS = completed_by("ids"), completed_by("runs"), completed_by("versions")
"""Completers of ids, of runs, and of saved versions."""
SOURCES = completed_by("sources")
"""A completer of versions to read: `reconcile.inspect.sources`."""
CHECKOUTS = completed_by("checkouts")
"""A completer of the store's checkouts, also those that are gone."""
SETTINGS = completed_by("settings")
"""A completer of the names of settings."""
FILES, _DIR, _FORMATS = completed_by("file"), completed_by("dir"), completed_by("formats")


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, callback=_store, expose_value=False, **settings)


EVERYWHERE = ("workspace", "store", "format", "layout", "color", "no_pager")
"""The shared options that every command takes: where the two sides are, colours and the pager."""


def shared_options(accepted: Collection[str], taken: Collection[str] = ()) -> list[click.Option]:
    """Return the shared options; those that are not accepted are hidden, and parsed to be refused with a hint.

    ``taken``: spellings of the command's own options, as the ``-n`` of `log` and the ``--all`` of `recover`.
    """
    options = list(_shared_options())
    for option in options:
        option.hidden = option.name not in accepted
        option.opts = [name for name in option.opts if name not in taken]
    return [option for option in options if option.opts]


def spelling(name: str) -> str:
    """Return a shared option as it is typed."""
    return f"--{name.replace('_', '-')}"


def _shared_options() -> Iterator[click.Option]:
    yield _option("-n", "--dry-run", is_flag=True, help="Show the plan, and write nothing.")
    yield _option("--out", metavar="FILE", shell_complete=FILES, help="Dry run; save the plan for reconcile apply.")
    yield _option("--check", is_flag=True, help="Dry run; exit 3 if there are changes.")
    yield _option("--only", metavar="ID", shell_complete=IDS, multiple=True, help="Only this conversation; repeatable.")
    yield _option(
        "--below",
        metavar="ID",
        shell_complete=IDS,
        multiple=True,
        help="Only this one and its descendants; repeatable.",
    )
    sides = click.Choice(["newest", "store", "workspace"])
    prefer = "The side that wins a conflict: newest (default), store or workspace."
    yield _option("--prefer", type=sides, metavar="SIDE", help=prefer)
    yield _option("--allow-bulk-removal", is_flag=True, help="Allow removing many directories at once.")
    yield _option("--accept", type=click.Choice(["bulk"]), help="The same, as the option was once called.")
    yield _option("-y", "--yes", is_flag=True, help="Answer yes to every question, except about a conflict.")
    every = "Every project of yours: those of Claude Code, and those of earlier runs."
    yield _option("--all", is_flag=True, help=every)
    yield _option("--json", is_flag=True, help="Print JSON.")
    yield _option("-v", "--verbose", is_flag=True, help="Show everything, and long plans in full.")
    yield _option("-q", "--quiet", is_flag=True, help="Show only what needs attention.")
    yield _option("-w", "--workspace", metavar="DIR", shell_complete=_DIR, help="The project, or its .jp directory.")
    yield _option(
        "-s", "--store", metavar="DIR", shell_complete=_DIR, help="The store directory, which holds conversations/."
    )
    formats = "jp, plain (needs --store), leslie, claudesidian, claude-code or claude-shared (default: those found)."
    yield _option("--format", metavar="NAME", shell_complete=_FORMATS, help=formats)
    yield _option("--layout", type=click.Choice(["nested", "flat"]), metavar="LAYOUT", help="nested or flat.")
    colors = click.Choice(["auto", "always", "never"])
    yield _option("--color", type=colors, metavar="WHEN", help="Use colors: auto (default), always or never.")
    yield _option("--no-pager", is_flag=True, help="Print long output without a pager.")


def command_line(context: click.Context) -> str:
    """Return the command as it can be typed again, with all options that shape its plan."""
    words = ["reconcile"]
    if context.parent is not None:
        words.append(str(context.info_name))
    for parameter in context.command.params:
        if parameter.expose_value and parameter.name is not None:
            words += _words(parameter, context.params.get(parameter.name))
    return shlex.join([*words, *options_of(context).shaping])


def _words(parameter: click.Parameter, value: Any) -> Iterator[str]:
    if isinstance(parameter, click.Argument):
        yield from [value] if isinstance(value, str) else value or ()
    elif value is not None and value is not False and value != ():
        yield from option_words(parameter.opts[-1], "..." if parameter.name in _CONTENT else value)


def parse_time(text: str | None, now_ns: int) -> int | None:
    """Return a time in ns since the epoch, from a date, a time as JP reads it, or an age before ``now_ns``.

    Raises:
        click.UsageError: the text is none of these.
    """
    from reconcile.formats.jp.times import instant_ns  # here: few commands take a time

    if text is None:
        return None
    if re.fullmatch(r"\d{1,6}[hdwmy]", text):
        return now_ns - parse_age(text)
    time_ns = instant_ns(f"{text} 00:00:00" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else text)
    if time_ns is None:
        raise click.UsageError(f"{text!r} is not a time: use 2026-01-31, 2026-01-31T12:00:00Z, or an age such as 3d")
    return time_ns


def parse_age(text: str) -> int:
    """Return an age such as ``12h``, ``30d``, ``8w``, ``6m`` or ``1y`` in ns; a month has 30 days, a year 365.

    Raises:
        click.UsageError: the text is no age.
    """
    match = re.fullmatch(r"(\d{1,6})([hdwmy])", text)
    if match is None:
        raise click.UsageError(f"{text!r} is not an age: use a number and h, d, w, m or y, such as 12h, 30d or 6m")
    return int(match[1]) * _UNITS[match[2]] * 10**9

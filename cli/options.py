"""Options that every command takes, before or after its name (docs/commands.md#common-options).

`command_line` writes them out again, for the journal. `parse_time` and `parse_age` read values that options share.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .arguments import Options, worded

if TYPE_CHECKING:
    from collections.abc import Iterator

F = TypeVar("F", bound=Callable[..., Any])
_CONTENT = {"title"}
"""Options whose values are content of a conversation, which the journal never holds."""
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
    if parameter.multiple:
        value = (*getattr(options, name), *value)
    if value not in (None, False, ()):
        setattr(options, name, value)
    if name == "color" and value in ("always", "never"):
        context.find_root().color = context.color = value == "always"


def _option(*names: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names, callback=_store, expose_value=False, **settings)


_COMMON = (
    _option("-w", "--workspace", metavar="DIR", help="The project, or its .jp directory."),
    _option("-s", "--store", metavar="DIR", help="The silo: the directory that holds the store's conversations/."),
    _option(
        "--format",
        metavar="NAME",
        help="jp, plain (needs --store), leslie, claudesidian; by default what is found.",
    ),
    _option("--layout", type=click.Choice(["nested", "flat"]), help="How the workspace is laid out."),
    _option("--only", metavar="ID", multiple=True, help="Only this conversation, and what it needs; repeatable."),
    _option("--below", metavar="ID", multiple=True, help="Only this conversation and its descendants; repeatable."),
    _option("-n", "--dry-run", is_flag=True, help="Show the plan and write nothing at all."),
    _option("--out", metavar="FILE", help="Save the plan for `reconcile apply`; implies a dry run."),
    _option("--check", is_flag=True, help="Dry run; exit 3 if anything is to be done."),
    _option(
        "--prefer",
        type=click.Choice(["newest", "store", "workspace"]),
        help="Who wins where both sides were edited.",
    ),
    _option("--accept", type=click.Choice(["bulk"]), multiple=True, help="Let many directories be removed."),
    _option("-y", "--yes", is_flag=True, help="Answer yes/no questions with yes; never chooses a side."),
    _option("--json", is_flag=True, help="Print JSON."),
    _option("-v", "--verbose", is_flag=True, help="Show everything, long plans in full."),
    _option("-q", "--quiet", is_flag=True, help="Show only what needs attention."),
    _option("--color", type=click.Choice(["auto", "always", "never"]), help="When to use colours."),
)


def common_options(command: F) -> F:
    """Decorate a command with the common options."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


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
        yield from worded(parameter.opts[-1], "..." if parameter.name in _CONTENT else value)


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
        raise click.UsageError(
            f"found the time {text!r}, expected 2026-01-31, 2026-01-31T12:00:00Z, or an age such as 3d"
        )
    return time_ns


def parse_age(text: str) -> int:
    """Return an age such as ``12h``, ``30d``, ``8w``, ``6m`` or ``1y`` in ns; a month has 30 days, a year 365.

    Raises:
        click.UsageError: the text is no age.
    """
    match = re.fullmatch(r"(\d{1,6})([hdwmy])", text)
    if match is None:
        raise click.UsageError(f"found the age {text!r}, expected a number and h, d, w, m or y: 12h, 30d, 6m")
    return int(match[1]) * _UNITS[match[2]] * 10**9

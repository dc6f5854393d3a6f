"""Options that every command takes, before or after its name (docs/commands.md#common-options).

`command_line` writes them out again, for the journal.
"""

from __future__ import annotations

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

"""What the user has asked for, in a line: for the journal, and for whoever waits for the lock."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from .arguments import worded
from .options import options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT = {"title"}
"""Values that are content of a conversation: the journal holds none."""


def called(context: click.Context) -> str:
    """Return the command with all that shapes its plan."""
    words = ["reconcile"]
    if context.parent is not None:
        words.append(str(context.info_name))
    for parameter in context.command.params:
        if parameter.expose_value and parameter.name is not None:
            words += _said(parameter, context.params.get(parameter.name))
    return shlex.join([*words, *options_of(context).shaping])


def _said(parameter: click.Parameter, value: Any) -> Iterator[str]:
    if isinstance(parameter, click.Argument):
        yield from [value] if isinstance(value, str) else value or ()
    elif value is not None and value is not False and value != ():
        yield from worded(parameter.opts[-1], "..." if parameter.name in CONTENT else value)

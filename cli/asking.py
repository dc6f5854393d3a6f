"""What is said beside a result, and asked: one rule for every command (DESIGN.md section 8).

A question is asked at a terminal alone; ``--yes`` has answered it. With ``--json``, in a pipe or a script nobody can be
asked: what would need an answer is refused, with the way on. With ``--json`` standard error has JSON only, too.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from reconcile.errors import ReconcileError

from . import exits
from .options import options_of
from .style import clean

if TYPE_CHECKING:
    from .options import Options


class UnansweredError(ReconcileError):
    """Something has to be answered, and nobody can be asked."""

    exit_code = exits.HELD


def is_interactive(options: Options) -> bool:
    """Questions are asked at a terminal alone."""
    return not options.json and sys.stdin.isatty() and sys.stdout.isatty()


def go_on(options: Options, question: str) -> None:
    """Ask, and end the command where the answer is no.

    Raises:
        UnansweredError: nobody can be asked.
    """
    if options.yes:
        return
    if not is_interactive(options):
        raise UnansweredError(
            f"nothing was done: found no terminal to ask at, expected an answer to: {question}",
            "--yes carries it out, --dry-run only shows it",
        )
    if not click.confirm(f"\n{question}"):
        say("nothing was done")
        raise click.exceptions.Exit(exits.HELD)


def say(message: str) -> None:
    """Say something beside the result, on standard error."""
    as_json = options_of(click.get_current_context()).json
    text = json.dumps({"format": "reconcile.message/1", "message": message}) if as_json else clean(message)
    click.echo(text, err=True)

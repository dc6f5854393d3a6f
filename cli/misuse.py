"""Wrong usage with a hint, as `reconcile_cli.command.report_usage` prints it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


class Misuse(click.UsageError):
    """Wrong usage, with a hint: the command or action that comes next."""

    def __init__(self, message: str, hint: str | None, context: click.Context | None = None) -> None:
        """Create the error."""
        super().__init__(message, context)
        self.hint = hint


def did_you_mean(names: Iterable[str]) -> str:
    """Return a hint that names what may have been meant."""
    return f"did you mean {' or '.join(names)}?"


def unknown_checkout(path: str, known: Iterable[str], option: str) -> Misuse:
    """Return the error for a path that is no known checkout; the hint names the known one that was probably meant."""
    from reconcile.fs.paths import nearest_path
    from reconcile.model.commands import typed  # here, as the rest: each start loads this module

    from .output.text import clean

    near = nearest_path(os.path.realpath(path), known)
    return Misuse(
        f"{option}: no checkout is known at {clean(path)}",
        did_you_mean([f"{option} {typed(near)}"]) if near else "list them: reconcile checkouts",
    )


def empty_path(option: str) -> Misuse:
    """Return the error for an empty path, as of a variable of a script: it would mean the current directory."""
    return Misuse(f"{option}: the path is empty", "list the checkouts: reconcile checkouts")

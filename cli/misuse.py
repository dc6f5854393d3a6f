"""Wrong usage with a hint, as `reconcile_cli.command.report_usage` prints it."""

from __future__ import annotations

import click


class Misuse(click.UsageError):
    """Wrong usage, with a hint: the command or action that comes next."""

    def __init__(self, message: str, hint: str | None, context: click.Context | None = None) -> None:
        """Create the error."""
        super().__init__(message, context)
        self.hint = hint

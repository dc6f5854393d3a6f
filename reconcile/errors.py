"""The one family of exceptions that a user is meant to read."""

from __future__ import annotations


class ReconcileError(Exception):
    """Something that stops a run: one line that says what was found and what was expected.

    ``hint`` says what to do next; ``exit_code`` is the process's (docs/commands.md#exit-codes).
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

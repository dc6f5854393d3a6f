"""The base class of all exceptions whose message is meant for users."""

from __future__ import annotations


class ReconcileError(Exception):
    """An error that stops a run. The message is one line with what was found and what was expected.

    ``hint`` is the next step for the user; ``exit_code`` that of the process (docs/commands.md#exit-codes).
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

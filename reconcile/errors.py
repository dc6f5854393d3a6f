"""The base class of all exceptions whose message is meant for users, and the hint of those that miss a package."""

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


def install_command(package: str, environment: str, python: str) -> str:
    """Return the command that installs a package into an environment: one of pipx, of uv, or another."""
    import shlex  # here, as below: it is needed at an error alone
    from pathlib import PurePath

    path, quoted = PurePath(environment), shlex.quote(package)
    if "pipx" in path.parts:
        return f"pipx inject {path.name} {quoted}"
    if "uv" in path.parts:
        return f"uv pip install --python {shlex.quote(python)} {quoted}"
    return f"{shlex.quote(python)} -m pip install {quoted}"

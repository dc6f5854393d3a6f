"""Exit codes, and errors printed as one line with a hint.

Every start loads this module, so that it imports little.
"""

from __future__ import annotations

import errno
import os
import sys

from reconcile.errors import ReconcileError
from reconcile.signals import Interrupt

TYPE_CHECKING = False  # importing typing would cost each start of the command something
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..arguments import Options

FAILURES = (ReconcileError, Interrupt, OSError, MemoryError)
"""Exceptions that are no bugs of `reconcile`; any other is shown with its traceback."""


_OF = "error: "
_PATH = "check the path"
_PERMISSIONS = "check its permissions and its owner: reconcile doctor"
_HINTS = {
    errno.ENOENT: _PATH,
    errno.ENOTDIR: _PATH,
    errno.EISDIR: _PATH,
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EROFS: "make the disk writable (remount it)",
    errno.ENOSPC: "free some space",
}
"""The hint for an error of the system."""


_READING = {"brief", "checkouts", "diff", "find", "help", "log", "ls", "show", "status"}
_SYNCS = {"sync", "pull", "push"}
_DRY = {"--dry-run", "-n", "--check"}


class ExitCode:
    """Exit codes, the first that applies (docs/commands.md#exit-codes). An enumeration would cost every start."""

    USAGE = 2
    LOCKED = 5
    FAILED = 1
    HELD = 4
    PENDING = 3
    DONE = 0
    INTERRUPTED = 130


_ORDER = (ExitCode.USAGE, ExitCode.LOCKED, ExitCode.FAILED, ExitCode.HELD, ExitCode.PENDING, ExitCode.DONE)


def first_code(codes: Collection[int]) -> int:
    """Return the exit code of several formats: the first, in the order of docs/commands.md#exit-codes, that one has.

    An interrupt, which ends all, comes before.
    """
    return ExitCode.INTERRUPTED if ExitCode.INTERRUPTED in codes else next(code for code in _ORDER if code in codes)


def print_error(message: str, hint: str | None, *, as_json: bool, label: str = "error", sides: str = "") -> None:
    """Print an error and a hint to standard error, as text or as a line of JSON.

    ``sides``: the options for the two sides, which suggested commands repeat.
    """
    if as_json:
        import json

        of = {"of": label.removeprefix(_OF)} if label.startswith(_OF) else {}
        lines = [json.dumps({"format": "reconcile.error/1", **of, "error": message, "hint": hint})]
    else:
        from .text import message_text, naming_sides, terminal_columns

        lines = [
            f"{label}: {message_text(message)}" if label else message_text(message),
            *(naming_sides(f"hint: {message_text(line.strip())}", sides) for line in (hint or "").splitlines()),
        ]
        if sys.stderr.isatty() and any(len(line) > 60 for line in lines):
            from .screen import wrap

            lines = [part for line in lines for part in wrap(line, terminal_columns(), "", "  ")]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def report_failure(error: BaseException, *, as_json: bool, of: str = "", sides: str = "") -> int:
    """Print one of `FAILURES`, and return the exit code. ``of``: the format or project that has failed.

    ``sides``: the options for the two sides, which suggested commands repeat.
    """
    label = f"{_OF}{of}" if of else "error"
    if isinstance(error, ReconcileError):
        print_error(error.message, error.hint, as_json=as_json, label=label, sides=sides)
        return error.exit_code
    if isinstance(error, Interrupt):
        words = sys.argv[1:]
        command = f"reconcile {words[0]}" if words[:1] and words[0] in _SYNCS else "reconcile"
        more = "" if _only_reads(words) else f"; run `{command}` again to continue"
        print_error(f"interrupted{more}", None, as_json=as_json, label="")
        return ExitCode.INTERRUPTED
    if isinstance(error, OSError):
        if isinstance(error, FileNotFoundError) and not error.filename and not _is_somewhere():
            hint = "change to a directory that exists: cd PROJECT"
            print_error("the current directory was deleted or moved", hint, as_json=as_json)
            return ExitCode.FAILED
        where = f"{error.filename}: " if error.filename else ""
        way = _HINTS.get(error.errno or 0)
        print_error(f"{where}{error.strerror or error}", way, as_json=as_json, label=label)
        return ExitCode.FAILED
    hint = "allow more memory (ulimit -v), or move the largest files away"
    print_error("out of memory", hint, as_json=as_json)
    return ExitCode.FAILED


def _only_reads(words: Sequence[str]) -> bool:
    """Tell whether a command line changes nothing, so that an interrupted run leaves nothing to continue."""
    return not _READING.isdisjoint(words[:1]) or not _DRY.isdisjoint(words)


def _is_somewhere() -> bool:
    """Tell whether the current directory exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def report_nothing_changed(options: Options) -> int:
    """Print that Ctrl-C has ended the command at a question, before its first change, and return the exit code."""
    print_error(f"interrupted: {nothing_else(options, 'was changed')}", None, as_json=options.json, label="")
    return ExitCode.INTERRUPTED


def nothing_else(options: Options, verb: str) -> str:
    """Return that nothing was changed or done, or nothing but the cleanup of killed runs."""
    if options.has_finished_runs:
        return f"a killed run was cleaned up, but nothing else {verb}"
    return f"{options.nothing} {verb}"

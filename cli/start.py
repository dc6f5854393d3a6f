"""The start of the program. It answers what needs no other module."""

from __future__ import annotations

import os
import sys

from reconcile.signals import Interrupt, Interrupts, Uninterrupted

from .output.errors import FAILURES, ExitCode, report_failure
from .output.streams import flush_output, open_output

TYPE_CHECKING = False  # importing typing would cost `--version` something
if TYPE_CHECKING:
    from typing import NoReturn

    from .arguments import Options


_HELP = {"-h", "--help", "--help-all"}


def start() -> NoReturn:
    """Run the command, and end the process."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        _begin_again()
    open_output()
    words = sys.argv[1:]

    def interrupted() -> int:
        return report_failure(Interrupt(), as_json="--json" in words)

    interrupts = Interrupts(interrupted)
    try:
        code = flush_output(_code(words))
        interrupts.end()
    except Interrupt:  # before or after what has a better word for it
        code = interrupted()
        interrupts.end()
        sys.stdout.flush()
    os._exit(code)  # what the interpreter would take apart, the system takes back in no time


def _code(words: list[str]) -> int:
    """Run the command, and return its exit code."""
    if words == ["--version"]:
        from reconcile.version import __version__

        sys.stdout.write(f"reconcile, version {__version__}\n")
        return ExitCode.DONE
    if instruction := os.environ.get("_RECONCILE_COMPLETE"):  # a shell asks how a command line may go on
        from .completion import complete

        complete(instruction)
        return ExitCode.DONE
    if not os.environ.get("HOME", "").startswith("/") and not _HELP.intersection(words):
        from reconcile.fs.home import HomeError, home_directory

        try:
            os.environ["HOME"] = home_directory(os.environ)  # also for what reads the variable itself
        except HomeError as error:
            return report_failure(error, as_json="--json" in words)
    if words[:2] == ["hooks", "run"] and words[2:3] and not words[2].startswith("-"):
        return _hook(words[2], tuple(words[3:]))
    from .arguments import read_plainly

    options = read_plainly(words)
    if options is not None:
        _begin(options)
    with Uninterrupted():
        from .app import run
    return run(options)


def _hook(name: str, words: tuple[str, ...]) -> int:
    """Do the work of a hook of git, which waits for it; the parser refuses other names."""
    from reconcile.fs.hook_files import HOOKS

    from .arguments import Options
    from .hook import run_hook

    if name in HOOKS:
        return run_hook(Options(), name, words)
    from .app import run

    return run(None)


def _begin_again() -> None:
    """Start this program again in Python's UTF-8 mode; output keeps the encoding of the locale.

    Names of files are UTF-8 whatever the locale is, as JP writes them, and Python can't change its mind once it runs.
    """
    output = {"PYTHONIOENCODING": f"{sys.stdout.encoding}:replace"} | os.environ
    os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], output)  # noqa: S606 - there is no shell


def _open_streams() -> None:
    """Open what was closed by whoever started this, as git does: no file of ours may get its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def _begin(options: Options) -> None:
    """Run the command without a name, and end the process."""
    import gc

    from .plain import run_plain

    gc.disable()
    try:
        code = run_plain(options)
    except FAILURES as error:
        code = report_failure(error, as_json=False)
    os._exit(flush_output(code))

"""The user's difftool, started by git on two private files that are removed when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.fs.posix import is_alive

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "compare-"
_FAILED = 128
"""The exit code of git from which it has not run the tool; 1 says that the files differ."""


def open_difftool(directory: str, texts: Mapping[str, str], tool: str) -> None:
    """Open two texts, by the names of their files, in the user's difftool, and wait for its end.

    ``directory`` is that of the state. ``tool`` is the name of a difftool for git; empty: the configured one.

    Raises:
        ReconcileError: git or the tool can't be started.
    """
    os.makedirs(directory, mode=0o700, exist_ok=True)
    _remove_left(directory)
    place = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=directory)  # only its owner can read it
    try:
        paths = []
        for name, text in texts.items():
            paths.append(os.path.join(place, name))
            with open(paths[-1], "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        code = _run(paths, tool)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if code >= _FAILED or code < 0:
        named = f"the difftool {tool}" if tool else "git's difftool"
        raise ReconcileError(f"{named} failed", "list the tools: git difftool --tool-help")


def _run(paths: list[str], tool: str) -> int:
    command = ["git", "difftool", "--no-index", "--no-prompt", *([f"--tool={tool}"] if tool else []), "--", *paths]
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the tool, which runs on
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - the user's own tool
    except FileNotFoundError:
        raise ReconcileError("git is not installed, and --tool needs its difftool", "leave out --tool") from None
    except OSError as error:
        raise ReconcileError(f"git can't be started: {error.strerror}", "leave out --tool") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _remove_left(directory: str) -> None:
    """Remove the files of a process that was killed while its tool was open."""
    for name in os.listdir(directory):
        pid = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and pid.isdecimal() and not is_alive(int(pid)):
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)

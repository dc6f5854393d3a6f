"""The installed command at a terminal of its own, with the answers that somebody types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

from tests.support.projects.world import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def at_terminal(
    *args: str | Path, answers: str = "", environ: Mapping[str, str] | None = None, rows: int = 0, columns: int = 0
) -> tuple[int, str]:
    """Run the command at a terminal; return its exit code and all that the terminal shows.

    ``environ``: variables besides those of this process. ``rows``, ``columns``: 0 is a terminal that doesn't tell.
    """
    variables = {**os.environ, **(environ or {})}
    return run_at_terminal(command(*args), answers=answers, env=variables, rows=rows, columns=columns)


def run_at_terminal(
    argv: Sequence[str], *, answers: str = "", env: Mapping[str, str] | None = None, rows: int = 0, columns: int = 80
) -> tuple[int, str]:
    """Run any program at a terminal of this size (0: unknown); return its exit code and all that it shows."""
    outer, inner = pty.openpty()
    try:
        if rows or columns:
            fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = subprocess.Popen(argv, stdin=inner, stdout=inner, stderr=inner, env=env)
        os.close(inner)
        os.write(outer, answers.encode())
        shown = b""
        with contextlib.suppress(OSError):  # Linux says so when the last process has let go of it
            while chunk := os.read(outer, 65536):
                shown += chunk
        return process.wait(60), shown.decode().replace("\r\n", "\n")
    finally:
        os.close(outer)


def watched_at_terminal(project: Path, goal: str, *args: str) -> tuple[int, str]:
    """Run a watcher at a terminal until it has said something, then stop it; return its exit code and what it wrote."""
    outer, inner = pty.openpty()
    try:
        process = subprocess.Popen(command("watch", "--workspace", project, *args), stdout=inner, stderr=inner)
        os.close(inner)
        shown, told = b"", False
        with contextlib.suppress(OSError):
            while chunk := os.read(outer, 65536):
                shown += chunk
                if not told and goal.encode() in shown:
                    told = True
                    process.terminate()
        return process.wait(60), shown.decode().replace("\r\n", "\n")
    finally:
        os.close(outer)


def interrupted_at_terminal(*args: str | Path, goal: str) -> tuple[int, str]:
    """Run the command at a terminal until it shows something, then interrupt it as Ctrl-C does; return its exit code
    and all that it shows.
    """
    outer, inner = pty.openpty()
    try:
        process = subprocess.Popen(command(*args), stdin=inner, stdout=inner, stderr=inner)
        os.close(inner)
        shown = b""
        with contextlib.suppress(OSError):
            while True:
                # Again while it doesn't answer: a signal just before the read of an answer only interrupts the next.
                while goal.encode() in shown and not select.select([outer], [], [], 0.3)[0]:
                    process.send_signal(signal.SIGINT)
                if not (chunk := os.read(outer, 65536)):
                    break
                shown += chunk
        return process.wait(60), shown.decode().replace("\r\n", "\n")
    finally:
        os.close(outer)

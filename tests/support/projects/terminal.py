"""The installed command at a terminal of its own, with the answers that somebody types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
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


class Session:
    """A command at a terminal: keys are typed after the screen has shown a text."""

    def __init__(
        self,
        *args: str | Path,
        environ: Mapping[str, str] | None = None,
        rows: int = 24,
        columns: int = 80,
        out: int | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """Start the command. ``out``: the descriptor of its standard output, if that is not the terminal.

        ``before``: the words of a program that starts it, such as ``setsid``.
        """
        self._outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        variables = {**os.environ, "TERM": "xterm-256color", **(environ or {})}
        self.process = subprocess.Popen(
            [*before, *command(*args)], stdin=inner, stdout=inner if out is None else out, stderr=inner, env=variables
        )
        os.close(inner)
        self._read = b""
        self._seen = 0

    def type(self, keys: str, *, after: str) -> None:
        """Type keys as soon as the screen has shown a text since the last ones."""
        self.wait(after)
        os.write(self._outer, keys.encode())

    def wait(self, text: str) -> None:
        """Wait until the screen has shown a text since the last one."""
        limit = time.monotonic() + 60
        while (at := self.shown.find(text, self._seen)) < 0:
            assert time.monotonic() < limit, self.shown
            assert self._more(0.2) is not False, self.shown
        self._seen = at + len(text)

    def _more(self, seconds: float) -> bool | None:
        """Read what the screen shows now; False: it shows no more."""
        if not select.select([self._outer], [], [], seconds)[0]:
            return None
        try:
            chunk = os.read(self._outer, 65536)
        except OSError:  # Linux says so when the last process has let go of it
            return False
        self._read += chunk
        return bool(chunk)

    @property
    def raw(self) -> bytes:
        """All that the screen has been sent."""
        return self._read

    @property
    def shown(self) -> str:
        """All that the screen has shown, without its codes."""
        return _CODES.sub("", self._read.decode(errors="replace").replace("\r\n", "\n"))

    def end(self) -> tuple[int, str]:
        """Wait for the end of the command; return its exit code and all that the screen has shown."""
        while self._more(60):
            pass
        os.close(self._outer)
        return self.process.wait(60), self.shown


_CODES = re.compile(r"\x1b(?:\[[0-9;?<>=:]*[ -/]*[@-~]|[()][0-9A-B]|[=>78]|P[^\x1b]*\x1b\\)")

"""A terminal of its own for one program: what it prints there, with its colours, and what is typed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

ROWS = 400
"""More than any screen has, so that no pager is started."""
SECONDS = 20
"""A program that is quiet for so long hangs."""

COLORS = re.compile(r"\x1b\[[0-9;]*m")
"""The codes of colours, and of bold and dim text."""
QUESTION = re.compile(r"\]: $")
END_OF_FILE = "\x04"

_ERASED = re.compile(r"^.*\r\x1b\[2K", re.MULTILINE)
"""A line that the program has erased, as a status line or the progress."""
_OTHER_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x07|\^D\x08\x08")
"""Codes that aren't colours, the bell, and the echo of the end of a file."""


class Answer(NamedTuple):
    """The end of what is shown (a regular expression), and what is done when it is there."""

    after: str
    act: Callable[[int], None] | None
    """Is called with the terminal; None: the program is killed."""


class _QuietError(Exception):
    """A program prints nothing, and goes on."""


def typed(text: str) -> Callable[[int], None]:
    """Return an action that types a text."""
    return lambda terminal: typing(terminal, text)


def typing(terminal: int, text: str) -> None:
    """Type a text."""
    os.write(terminal, text.encode())


def interrupt(terminal: int) -> None:
    """Send to the program what Ctrl-C sends.

    The key itself would show ``^C`` wherever the cursor is, in the middle of a line that the program is writing, and
    would drop what the terminal has not shown yet.
    """
    os.killpg(os.tcgetpgrp(terminal), signal.SIGINT)


def at_terminal(
    command: Sequence[str], directory: Path, environ: Mapping[str, str], columns: int, answers: Iterable[Answer]
) -> str:
    """Run a program in a terminal until it ends. Return what the terminal shows, with the codes of the colours."""
    outer, inner = pty.openpty()
    try:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        # The leader of a session that opens a terminal owns it: Ctrl-C reaches the program.
        opened = ["sh", "-c", f'exec "$@" <>{os.ttyname(inner)} >&0 2>&1', "sh", *command]
        process = subprocess.Popen(
            opened, cwd=directory, env=environ, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        shown, answered, left = b"", 0, list(answers)
        with contextlib.suppress(OSError):  # Linux raises when the last process has closed it
            while chunk := _read(outer):
                shown += chunk
                new = _plain(shown[answered:])
                if left and re.search(left[0].after, new):
                    answered = len(shown)
                    act = left.pop(0).act
                    if act is None:
                        process.kill()
                        break
                    act(outer)
                elif QUESTION.search(new):
                    answered = len(shown)
                    typing(outer, END_OF_FILE)
        process.wait(SECONDS)
    except _QuietError as error:
        process.kill()
        process.wait()
        raise AssertionError(f"{shlex.join(command)} hangs after:\n{shown.decode()}") from error
    finally:
        os.close(outer)
    return _seen(shown)


def _read(terminal: int) -> bytes:
    if not select.select([terminal], [], [], SECONDS)[0]:
        raise _QuietError
    return os.read(terminal, 65536)


def _seen(shown: bytes) -> str:
    text = _ERASED.sub("", shown.decode().replace("\r\n", "\n"))
    return _OTHER_CODES.sub("", text).replace("\r", "")


def _plain(shown: bytes) -> str:
    return COLORS.sub("", _OTHER_CODES.sub("", shown.decode(errors="replace").replace("\r\n", "\n")))

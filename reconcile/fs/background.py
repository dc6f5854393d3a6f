"""Work that goes on in the background if it takes too long."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = 0.005
"""Seconds between two looks at the process."""


def run_at_most(seconds: float, work: Callable[[], int]) -> int | None:
    """Run ``work`` in a process of its own, and return its exit code; None if it goes on after that time.

    The process has a session of its own, and no terminal: whoever waits for the output of this one never waits for it.
    """
    child = os.fork()
    if child == 0:
        _work(work)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_STEP)
    return None


def _work(work: Callable[[], int]) -> None:
    code = 1
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(nowhere, fd)
        code = work()
    finally:
        os._exit(code)

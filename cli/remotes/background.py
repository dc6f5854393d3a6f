"""The syncs of ``watch --sync``: soon after its start, then once a minute, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FIRST_S, INTERVAL_S = 1.0, 60.0
"""Seconds before the first sync, and between two."""
_STOP_S = 5.0


class BackgroundSync:
    """Syncs until it is stopped. A failure is reported once, until a sync succeeds or fails in another way."""

    def __init__(
        self,
        words: Sequence[str],
        report: Callable[[str], None],
        first_s: float = FIRST_S,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """Prepare; ``words`` name the sides, and ``report`` gets the message of a sync that has failed."""
        self._command = [sys.executable, "-P", "-m", __package__.partition(".")[0], "sync", "--quiet", *words]
        self._report, self._first_s, self._interval_s = report, first_s, interval_s
        self._stopped, self._process = Event(), None
        self._thread = Thread(target=self._run, name="sync", daemon=True)

    _process: subprocess.Popen[str] | None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a sync that runs finishes its present step."""
        self._stopped.set()
        if (process := self._process) is not None:
            process.terminate()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        wait, last = self._first_s, ""
        while not self._stopped.wait(wait):
            wait = self._interval_s
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            printed, _ = self._process.communicate()
            said = printed.strip() if self._process.returncode else ""
            if said and said != last and not self._stopped.is_set():
                self._report(said.splitlines()[0])
            last = said

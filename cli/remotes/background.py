"""The syncs of ``watch --sync``: soon after its start, then once a minute, each a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from threading import Event, Thread
from typing import TYPE_CHECKING

from ..output.interaction import WARNING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FIRST_S, INTERVAL_S = 1.0, 60.0
"""Seconds before the first sync, and between two."""
_STOP_S = 5.0
_ERROR, _HINT = "error: ", "hint: "
"""How `print_error` begins its lines."""


class BackgroundSync:
    """Syncs one store after another, until it is stopped.

    Each message of a failed sync is reported once, until a sync of that store is without it.
    """

    def __init__(
        self,
        stores: Callable[[], Mapping[str, Sequence[str]]],
        report: Callable[[str, str], None],
        warn: Callable[[str], None],
        first_s: float = FIRST_S,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """Prepare; ``stores`` returns, by a name for messages, the words that name the sides of each store.

        ``report`` gets each message of a sync that has failed, after the name if that is not empty, and its hint.
        ``warn`` gets each warning of a sync, such as that it has decided a conflict.
        """
        self._stores, self._report, self._warn = stores, report, warn
        self._first_s, self._interval_s = first_s, interval_s
        self._stopped, self._process = Event(), None
        self._last: dict[str, set[str]] = {}
        """By the name of a store, the messages of its last sync."""
        self._thread = Thread(target=self._run, name="sync", daemon=True)

    _process: subprocess.Popen[str] | None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End. A sync that runs is interrupted: it ends git, and what git has started. The next one does the rest."""
        self._stopped.set()
        if (process := self._process) is not None:
            process.send_signal(signal.SIGINT)
        self._thread.join(_STOP_S)
        if process is not None:
            process.terminate()  # it ignores Ctrl-C, or takes too long

    def _run(self) -> None:
        wait = self._first_s
        while not self._stopped.wait(wait):
            wait = self._interval_s
            try:
                stores = self._stores()
            except OSError as error:
                self._note("", str(error))
                continue
            for name, words in stores.items():
                if not self._stopped.is_set():
                    try:
                        said = self._sync(name, words)
                    except OSError as error:  # no process can be started; the next turn tries again
                        said = str(error)
                    self._note(name, said)

    def _sync(self, name: str, words: Sequence[str]) -> str:
        """Sync a store, pass its warnings on, and return what else it says; empty if it has succeeded."""
        self._process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-P", "-m", __package__.partition(".")[0], "sync", "--quiet", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        printed, _ = self._process.communicate()
        lines = printed.splitlines()
        for line in lines:
            if line.startswith(WARNING):
                self._warn(_named(name, line.removeprefix(WARNING)))
        rest = "\n".join(line for line in lines if not line.startswith(WARNING))
        return rest.strip() if self._process.returncode else ""

    def _note(self, name: str, said: str) -> None:
        """Report what a store says, unless its last sync has said so. A hint belongs to the line before it."""
        messages: dict[str, list[str]] = {}
        hints: list[str] = []
        for line in said.splitlines():
            if line.startswith(_HINT):
                hints.append(line.removeprefix(_HINT))
            elif line:
                hints = messages.setdefault(line, [])
        before, self._last[name] = self._last.get(name, set()), set(messages)
        for message, hints in messages.items():
            if message not in before and not self._stopped.is_set():
                self._report(_named(name, message.removeprefix(_ERROR)), "\n".join(hints))


def _named(name: str, said: str) -> str:
    return f"{name}: {said}" if name else said

"""A watcher in a process of its own, and waiting for what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.projects.world import LONG_AGO, SECOND, append, command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from tests.support.formats import claude_code_project
    from tests.support.formats.leslie_project import Sides
    from tests.support.projects.world import World

PATIENCE = 60.0
"""Seconds that anything may take on a loaded machine."""


def until(true: Callable[[], object], what: str = "") -> None:
    """Wait until something holds; what is being replaced just now isn't there yet."""
    end = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(FileNotFoundError, ValueError):
            if true():
                return
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.01)


def grow(side: Path, number: int, count: int = 2) -> None:
    """Have a conversation go on."""
    append(side / f"{number}-it", count, "w", LONG_AGO + 10 * SECOND)


class Watching:
    """``reconcile watch --json`` over a world, from its first look on until it is told to stop.

    Without a world, it watches every project. Without ``ready`` the first look isn't waited for. ``environment`` has
    more variables.
    """

    def __init__(
        self,
        world: World | Sides | claude_code_project.Sides | None,
        *args: str,
        prefix: tuple[str, ...] = (),
        ready: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = {**os.environ, **(environment or {})}
        self._ready = ready
        where = ("--all",) if world is None else ("--workspace", world.project)
        self._command = [*prefix, *command("watch", "--json", *where, *args)]
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=self._environment,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        until(lambda: not self._ready or self.said("watching") or self.process.poll() is not None, "it watches")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def said(self, event: str, text: str = "") -> list[dict[str, Any]]:
        """Return the events of a kind that have a text in them."""
        return [each for each in list(self.events) if each["event"] == event and text in json.dumps(each)]

    def hears(self, event: str, text: str = "", times: int = 1) -> None:
        """Wait until it has said so, so many times."""
        until(lambda: len(self.said(event, text)) >= times, f"{event} {text}: {self.events}")

    def done(self) -> list[tuple[str, str, str]]:
        """Return kind, conversation and unit of every action that was carried out."""
        found = [each["action"] for each in self.said("done")]
        return [(action["kind"], action["conversation"], action["unit"]) for action in found]

    def cpu(self) -> float:
        """Return the seconds of a core that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Tell it to stop; return its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stderr is not None
        complaint = self.process.stderr.read()
        assert not complaint, complaint
        return code

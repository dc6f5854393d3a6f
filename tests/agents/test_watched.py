"""The watcher beside running sessions: nothing is lost, and no copy ends in the middle of a line."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.agents.program import records
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.watcher import Watching, until

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from tests.agents.program import Program
    from tests.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

AT_ONCE = 3
TURNS = 67
"""Turns of each session: 201 in all."""
LONG_LINE = 'use Bash {"command": "seq 4000"}'
"""A tool whose result is a line of 20 KB in the session."""


class States:
    """Every state of the session files in a store that a look each 2 ms sees. A store's file is replaced as a whole."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._last: dict[str, bytes] = {}
        self._known: dict[str, tuple[int, int, int]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.seen = Counter[str]()
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stopped.is_set():
            for path in self._store.glob("*.jsonl"):
                status = path.stat()
                stamp = status.st_ino, status.st_size, status.st_mtime_ns
                if self._known.get(path.name) != stamp:
                    self._known[path.name] = stamp
                    self._note(path.name, path.read_bytes())
            time.sleep(0.002)

    def _note(self, name: str, content: bytes) -> None:
        before = self._last.get(name, b"")
        if not content.endswith(b"\n"):
            self.faults.append(f"{name}: ends in the middle of a line: {content[-80:]!r}")
        if not content.startswith(before):
            self.faults.append(f"{name}: does not continue the state before it")
        if content != before:
            self._last[name] = content
            self.seen[name] += 1


def test_a_watcher_beside_sessions_that_run_at_once(
    program: Program, project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(program.home))
    sides = Sides(project, run)
    prompts = {f"Session {number} begins.": [f"Session {number} begins."] for number in range(AT_ONCE)}
    for prompt in prompts:
        assert program.say(prompt, cwd=project).status == 0
    sides.reconcile()
    sessions = program.sessions(project)
    assert len(sessions) == AT_ONCE

    def play(session: Path) -> list[str]:
        said = [_prompts(session)[0]]
        for number in range(1, TURNS):
            said.append(LONG_LINE if number % 5 == 4 else f"Turn {number} of {session.stem}.")
            process = program.start(said[-1], cwd=project, resume=session.stem)
            output, _ = process.communicate()
            assert process.returncode == 0, output
        return said

    with States(sides.store) as states, Watching(sides) as watching, ThreadPoolExecutor(AT_ONCE) as pool:
        said = dict(zip(sessions, pool.map(play, sessions), strict=True))
        until(sides.in_sync, "the last turns are saved")
        assert watching.stop() == 0
    assert states.faults == []
    copies = Counter(name for kind, name, _ in watching.done() if kind == "copy")
    print({path.name: (copies[path.name], states.seen[path.name], path.stat().st_size) for path in sessions})
    for session, expected in said.items():
        assert _prompts(session) == expected
        assert carried(sides.store)[session.name] == session.read_bytes()
        assert states.seen[session.name] - 1 > 0.9 * copies[session.name] > 0, "the looks were too rare"
        sent = program.say("Resumed.", cwd=project, resume=session.stem).sent
        assert [text for text in sent if text in expected] == expected
    sides.reconcile()
    assert sides.in_sync()


def _prompts(session: Path) -> list[str]:
    """The prompts of a session, all of whose lines are JSON."""
    spoken = (each["message"]["content"] for each in records(session) if each.get("type") == "user")
    return [content for content in spoken if isinstance(content, str)]

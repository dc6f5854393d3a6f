"""A program that has a workspace open, and opens its state a second time in one of many ways.

``python -m tests.support.library.second_open PROJECT NUMBER WAY`` appends an event, opens the state a second time,
prints a line, waits for one, does the same once more, and ends.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from reconcile import NullBackend, RecordingBackend, Workspace
from reconcile.adapters.jp.lost_checkouts import known_checkouts
from reconcile.adapters.jp.roots import silos_of
from reconcile.adapters.roots import Request
from reconcile.errors import ReconcileError
from reconcile.fs.helper_process import HelperProcess
from reconcile.state.database import State
from tests.support.library.conversations import mutable, say

if TYPE_CHECKING:
    from collections.abc import Callable


def run(project: str, *args: str) -> None:
    """Run a command in this very process."""
    from click.testing import CliRunner

    from tests.conftest import COMMAND

    result = CliRunner().invoke(COMMAND, ["--workspace", project, *args], catch_exceptions=False)
    assert result.exit_code in (0, 3, 4), result.output


def state_directory(project: str) -> str:
    with Workspace.open(project, backend=NullBackend()) as workspace:
        return str(workspace._opened._base._index.session.directory)  # type: ignore[attr-defined]


def writing(project: str) -> None:
    with Workspace.open(project) as second, mutable(second, 17500000003) as mut:
        say(mut, "by the second")


def reading(project: str) -> None:
    for backend in (NullBackend(), RecordingBackend()):
        with Workspace.open(project, backend=backend) as second, mutable(second, 17500000003) as mut:
            say(mut, "nowhere")


def in_threads(project: str) -> None:
    threads = [threading.Thread(target=way, args=(project,)) for way in (writing, reading, reading, writing)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def forked(project: str) -> None:
    """Have a child try everything, and end as programs do."""
    pid = os.fork()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return
    reading(project)
    try:
        writing(project)
    except ReconcileError as error:
        assert "a fork" in str(error), error  # noqa: PT017 - the program has no pytest
        sys.exit(0)
    sys.exit(1)


def lost(project: str) -> None:
    request = Request(None, None, project, os.environ, sys.platform)
    assert known_checkouts(request, silos_of(request)).ids_of(project)


def helped(_: str) -> None:
    with HelperProcess.start(lambda: b"told") as second:
        assert second.result() in (b"told", None)


WAYS: dict[str, Callable[[str], None]] = {
    "not at all": lambda _: None,
    "to write": writing,
    "to read": reading,
    "in threads": in_threads,
    "in a fork": forked,
    "by a second process": helped,
    "by the state": lambda project: State.open(state_directory(project), readonly=True).close(),
    "for what was lost": lost,
    "by a dry run": lambda project: run(project, "--dry-run"),
    "by status": lambda project: run(project, "status"),
    "by log": lambda project: run(project, "log"),
    "by doctor": lambda project: run(project, "doctor"),
    "by a run": run,
}


def main(project: str, number: str, way: str) -> None:
    """Open, twice."""
    with Workspace.open(project) as workspace:
        for text in ("before", "after"):
            with mutable(workspace, int(number)) as mut:
                say(mut, text)
            WAYS[way](project)
            print(text, flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The watcher of every project, with projects and passes that the test makes up."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.everywhere import Everywhere, Target
from reconcile.adapters.roots import Request
from reconcile.errors import ReconcileError
from reconcile.state.directory import state_directory
from reconcile.watch import everywhere
from reconcile.watch.everywhere import HomeWatcher
from reconcile.watch.watcher import Timings
from tests.support.projects.three_conversations import three
from tests.support.projects.watcher import until
from tests.support.projects.world import make_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconcile.watch.reporter import WatchEvent, WatchStatus
    from tests.conftest import Run


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), ReconcileError("a setting"), KeyError("a bug")])
def test_a_pass_that_has_failed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The end of the cause, such as a full disk, raises no event."""
    known = Everywhere((Target(str(tmp_path), "jp"),), (), str(tmp_path / "none"))
    monkeypatch.setattr(everywhere, "every_project", lambda *_: known)
    monkeypatch.setattr(everywhere, "_FAILED", 1)
    monkeypatch.setattr(everywhere, "_HOUR", 2 * 10**9)
    visits: list[int] = []

    @contextmanager
    def visit(_: Target) -> Iterator[None]:
        visits.append(time.monotonic_ns())
        if len(visits) == 1:
            raise error
        watcher.queue.stop()
        yield None

    said: list[str] = []
    request = Request(None, None, str(tmp_path), {"HOME": str(tmp_path)}, "linux")
    watcher = HomeWatcher(
        request, None, str(tmp_path / "states"), Timings(), visit, lambda event, _: said.append(event.kind.value)
    )
    watcher.run()
    assert visits[1] - visits[0] < 10**9
    assert said == ["waiting", "watching", "resumed", "stopped"]


def test_projects_that_come_go_and_come_back_are_noticed(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk is unmounted and mounted again, `.jp` is replaced, or a first run was in a project: no event says so."""
    monkeypatch.setattr(everywhere, "_LOOK", 10**8)
    monkeypatch.setattr(everywhere, "_CHECK", 10**8)
    monkeypatch.setattr(everywhere, "_SHARE", 1)
    world = make_project(tmp_path / "project", run)
    away = tmp_path / "away"
    said: list[tuple[str, str]] = []
    visited = "visit", ""

    @contextmanager
    def visit(_: Target) -> Iterator[None]:
        said.append(visited)
        yield None

    def says(*expected: tuple[str, str]) -> None:
        until(lambda: set(said) >= set(expected))
        said.clear()

    def emit(event: WatchEvent, _: WatchStatus) -> None:
        said.append((event.kind.value, event.message))

    request = Request(None, None, str(tmp_path), dict(os.environ), sys.platform)
    states = os.path.dirname(state_directory("jp-", request.environ, request.platform))
    watcher = HomeWatcher(request, "jp", states, Timings(), visit, emit)
    thread = Thread(target=watcher.run)
    thread.start()
    try:
        says(("watching", "0 projects"))
        three(world)
        world.reconcile()
        says(visited)
        world.project.rename(away)
        says(("waiting", "its workspace is missing; watch waits until it is back"))
        away.rename(world.project)
        says(visited, ("resumed", ""))
        shutil.copytree(world.workspace.parent, away)
        shutil.rmtree(world.workspace.parent)
        away.rename(world.workspace.parent)
        way = f"run it in the project: cd {world.project} && reconcile"
        says(("waiting", f"left out: another directory is there since its last run; {way}"))
        world.reconcile()
        says(visited, ("resumed", ""))
    finally:
        watcher.queue.stop()
        thread.join()

"""``watch --sync`` and ``RECONCILE_REMOTE``: syncs without a person."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.modules import module
from tests.support.projects.machines import git, make_machine
from tests.support.projects.world import LONG_AGO, SECOND, command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

REF = "refs/reconcile/jp-ab1cd"
A = 17528832000


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def watch_until_sent(machine: Machine, bare: Path, *words: str) -> None:
    """Run a watcher until the remote has its ref, and stop it."""
    with subprocess.Popen(
        command(*words),
        env=os.environ | machine.environment,
        cwd=machine.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as watcher:
        try:
            wait_for(lambda: REF in git(bare, "for-each-ref", "--format=%(refname)"))
        finally:
            watcher.send_signal(signal.SIGTERM)
        printed, _ = watcher.communicate(timeout=30)
    assert watcher.returncode == 0, printed
    assert "error" not in printed


@pytest.mark.long
def test_a_watcher_syncs_with_the_remote(new_laptop: Machine, bare: Path) -> None:
    watch_until_sent(new_laptop, bare, "--workspace", str(new_laptop.project), "watch", "--sync")
    assert len(new_laptop.sync()["sent"]) == 0


@pytest.mark.long
def test_a_failure_is_reported_once_and_tried_again(laptop: Machine, bare: Path) -> None:
    said = list[str]()
    background = module("remotes.background").BackgroundSync
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    bare.rename(bare.with_name("away"))
    with laptop.at_work():
        syncing = background(lambda: {"here": ["--workspace", str(laptop.project)]}, said.append, 0.0, 0.2)
        syncing.start()
        wait_for(lambda: said)
        time.sleep(2)
        bare.with_name("away").rename(bare)
        wait_for(lambda: git(bare, "rev-list", "--count", REF) == "2")
        syncing.stop()
    assert len(said) == 1
    assert "can't read it" in said[0]
    assert said[0].startswith("here: ")


@pytest.mark.long
def test_a_watcher_of_all_projects_syncs_the_stores_that_have_a_remote(new_laptop: Machine, bare: Path) -> None:
    new_laptop.run("--yes")
    watch_until_sent(new_laptop, bare, "watch", "--all", "--sync")


def test_one_project_for_each_store_with_a_remote(new_laptop: Machine, tmp_path: Path, run: Run) -> None:
    stores = module("remotes.everywhere").stores_with_remotes
    new_laptop.run("--yes")
    other = tmp_path / "laptop" / "worktree"
    shutil.copytree(new_laptop.project, other)
    with new_laptop.at_work():
        run("--workspace", other, "--yes")
        states = str(new_laptop.state.parent)
        ((_, words),) = stores(module("scope.projects").home_request(), None, states).items()
        assert words[2:] == ["--format", "jp"]
        assert not stores(module("scope.projects").home_request(), "leslie", states)
        new_laptop.run("remote", "remove", "origin")
        assert not stores(module("scope.projects").home_request(), None, states)


def test_a_watcher_without_a_remote_says_so(tmp_path: Path, run: Run) -> None:
    machine = make_machine(tmp_path / "one", run)
    assert "no remote is known" in machine.run("watch", "--sync", code=4).output


def test_a_variable_names_the_remote(laptop: Machine, tmp_path: Path, run: Run, bare: Path) -> None:
    container = make_machine(tmp_path / "container", run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECONCILE_REMOTE", str(bare))
        told = container.run("sync", "--dry-run", code=2).output
        assert "is not known yet" in told
        assert "&& reconcile sync --dry-run" in told
        assert len(container.sync("--only", f"jp-c{A}")["taken"]) == 1
        assert len(container.sync()["taken"]) == 2
    assert container.contents == laptop.contents


def test_the_command_after_a_sync_is_named(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    assert "origin: 1 conversation taken; reconcile brings them to the project." in desktop.run("sync").output

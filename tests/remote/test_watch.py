"""``watch --sync`` and ``RECONCILE_REMOTE``: syncs without a person."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.fs.posix import process_lives
from tests.cli.modules import module
from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.terminal import Session, at_terminal
from tests.support.projects.world import LONG_AGO, SECOND, command, set_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

REF = "refs/reconcile/jp-ab1cd"
A, B = 17528832000, 17528832010


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


def test_the_first_message_about_syncs_has_a_line_of_its_own(laptop: Machine, tmp_path: Path) -> None:
    laptop.run("remote", "add", str(make_bare(tmp_path / "second.git")))
    environ = {**laptop.environment, "NO_COLOR": "1"}
    code, shown = at_terminal("--workspace", laptop.project, "watch", "--sync", environ=environ)
    assert code == 2
    assert shown.startswith("error: there are several remotes")


@pytest.mark.long
def test_a_failure_is_reported_once_and_tried_again(laptop: Machine, bare: Path) -> None:
    said = list[Any]()
    background = module("remotes.background").BackgroundSync
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    bare.rename(bare.with_name("away"))
    with laptop.at_work():
        stores = {"here": ["--workspace", str(laptop.project)]}
        syncing = background(lambda: stores, lambda *words: said.append(words), said.append, 0.0, 0.2)
        syncing.start()
        wait_for(lambda: said)
        time.sleep(2)
        bare.with_name("away").rename(bare)
        wait_for(lambda: git(bare, "rev-list", "--count", REF) == "2")
        syncing.stop()
    ((failure, hint),) = said
    assert "can't read it" in failure
    assert failure.startswith("here: ")
    assert "error:" not in failure, "the watcher puts it before"
    assert hint == "check the address and the network"


@pytest.mark.long
def test_each_message_of_a_failure_is_reported_once(laptop: Machine) -> None:
    """One conversation is blocked, then two are."""
    said = list[str]()
    background = module("remotes.background").BackgroundSync
    stores = {"": ["--workspace", str(laptop.project)]}
    syncing = background(lambda: stores, lambda message, _hint: said.append(message), said.append, 0.0, 0.2)
    with laptop.at_work():
        for number in (A, B):
            (laptop.directory(number) / "events.json").write_bytes(b"[{")
            if number == A:
                syncing.start()
            wait_for(lambda: f"jp-c{number}" in "".join(said))  # noqa: B023 - called at once
        time.sleep(1)
        syncing.stop()
    assert [message.split(":")[:2] for message in said] == [["blocked", f" jp-c{number}"] for number in (A, B)]


def test_a_failure_has_lines_of_its_own_at_a_terminal(laptop: Machine, bare: Path) -> None:
    """The line of the status makes room, and follows again; the command that decides is named."""
    laptop.sync()
    bare.rename(bare.with_name("away"))
    make_bare(bare)
    environ = {**laptop.environment, "NO_COLOR": "1"}
    watcher = Session("watch", "--sync", "--workspace", laptop.project, environ=environ, columns=200)
    watcher.wait("watching 3 conversations")
    watcher.wait("accept")
    watcher.process.terminate()
    code, shown = watcher.end()
    assert code == 0
    _, _, shown = shown.partition("watching 3 conversations\n")
    status, error, hint, again, *_ = (part for line in shown.splitlines() for part in line.split("\r"))
    assert status == again == "watching 3 conversations"
    assert error.startswith("error: sync: the remote is empty, or has another history")
    assert "reconcile remote accept" in hint


@pytest.mark.long
def test_a_sync_that_is_ended_leaves_no_git_behind(
    laptop: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host gives no answer."""
    said, number = list[str](), tmp_path / "number"
    silent = tmp_path / "silent"
    silent.write_text(f"#!/bin/sh\necho $$ > {number}.new && mv {number}.new {number}\nexec sleep 60\n")
    silent.chmod(0o755)
    background = module("remotes.background").BackgroundSync
    stores = {"": ["--workspace", str(laptop.project)]}
    syncing = background(lambda: stores, lambda message, _hint: said.append(message), said.append, 0.0, 60.0)
    with laptop.at_work():
        monkeypatch.setenv("RECONCILE_REMOTE", "git@example.org:chats.git")
        monkeypatch.setenv("GIT_SSH_COMMAND", str(silent))
        syncing.start()
        wait_for(number.exists)
        syncing.stop()
    wait_for(lambda: not process_lives(int(number.read_text())))
    assert not said


def test_a_sync_that_cannot_begin_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An update replaces the program, or the system has no process left: the next minute may differ."""
    said, begun = list[str](), list[str]()
    background = module("remotes.background").BackgroundSync

    def stores() -> dict[str, list[str]]:
        begun.append("")
        return {"here": ["--version"]}

    syncing = background(stores, lambda message, _hint: said.append(message), said.append, 0.0, 0.01)
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", str(tmp_path / "gone"))
        syncing.start()
        wait_for(lambda: len(begun) > 4)
        syncing.stop()
    (failure,) = said
    assert "gone" in failure


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
    assert "no remote is known" in machine.run("watch", "--sync", code=2).output


def test_a_variable_names_the_remote(laptop: Machine, tmp_path: Path, run: Run, bare: Path) -> None:
    container = make_machine(tmp_path / "container", run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECONCILE_REMOTE", str(bare))
        told = container.run("sync", "--dry-run", code=2).output
        assert "is not known yet" in told
        _, _, ways = told.strip().partition("takes nothing: ")
        for way in ways.split(" && "):
            told = container.run(*shlex.split(way.removesuffix(" --workspace ~/project"))[1:]).output
        assert "origin: 3 conversations to take" in told
        assert len(container.sync("--only", f"jp-c{A}")["taken"]) == 1
        assert len(container.sync()["taken"]) == 2
    assert container.contents == laptop.contents


@pytest.mark.long
def test_a_watcher_prints_the_conflict_that_a_sync_has_decided(laptop: Machine, desktop: Machine, bare: Path) -> None:
    titled_on_both(laptop, desktop)
    laptop.sync()
    failures, warnings = list[Any](), list[str]()
    background = module("remotes.background").BackgroundSync
    with desktop.at_work():
        stores = {"here": ["--workspace", str(desktop.project)]}
        syncing = background(lambda: stores, lambda *words: failures.append(words), warnings.append, 0.0, 0.2)
        syncing.start()
        wait_for(lambda: warnings)
        syncing.stop()
    assert not failures
    (warning,) = warnings
    assert warning.startswith(f"here: Of the desktop (jp-c{A}): metadata: both machines changed it; ")
    assert f" reconcile restore jp-c{A}@" in warning
    assert git(bare, "rev-list", "--count", REF) == "3"


@pytest.mark.long
def test_a_quiet_sync_prints_the_conflict_that_it_has_decided(laptop: Machine, desktop: Machine) -> None:
    titled_on_both(laptop, desktop)
    assert not laptop.run("sync", "-q").output
    (warning,) = desktop.run("sync", "-q").output.splitlines()
    assert warning.startswith(f"warning: Of the desktop (jp-c{A}): metadata: both machines changed it; this machine's")
    assert f"; to take the other machine's instead: reconcile restore jp-c{A}@" in warning
    assert not desktop.run("sync", "-q").output


def titled_on_both(laptop: Machine, desktop: Machine) -> None:
    set_key(laptop.directory(A), "title", "Of the laptop", LONG_AGO + 60 * SECOND)
    set_key(desktop.directory(A), "title", "Of the desktop", LONG_AGO + 120 * SECOND)


@pytest.mark.long
def test_the_command_after_a_sync_is_named_if_it_brings_something(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    assert desktop.run("sync").output.splitlines()[-1] == "origin: 1 conversation taken.", "the project never had it"
    desktop.run("project", str(A))
    desktop.sync()
    for number in (A, B):
        laptop.append(number, 1, "c", LONG_AGO + 3 * SECOND)
    laptop.sync()
    ending = "origin: 2 conversations taken; reconcile compares 1 of them with the project."
    assert desktop.run("sync").output.splitlines()[-1] == ending
    desktop.run("project", str(B))
    laptop.append(A, 1, "d", LONG_AGO + 5 * SECOND)
    laptop.sync()
    ending = "origin: 1 conversation taken; reconcile compares it with the project."
    assert desktop.run("sync").output.splitlines()[-1] == ending
    desktop.run()
    assert "Nothing to do" in desktop.run().output

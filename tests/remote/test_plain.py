"""Stores of plain directories on several machines: the user gives the store a name, which all machines use."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import git, quiet
from tests.support.projects.plain_machines import PlainMachine, make_plain_machine
from tests.support.projects.world import LONG_AGO, SECOND, append, set_key

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

A, B, CHILD = "ROOT_A", "Ein Gespräch", "CHILD_B"


def ids(found: list[dict[str, str]]) -> list[str]:
    return [entry["id"] for entry in found]


@pytest.fixture(params=[(), ("--encrypt",)], ids=["plain", "encrypted"])
def machines(tmp_path: Path, run: Run, bare: Path, request: pytest.FixtureRequest) -> list[PlainMachine]:
    found = [make_plain_machine(tmp_path / name, run) for name in ("laptop", "desktop", "server")]
    for machine in found:
        machine.take_key()
    first, *others = found
    for name in (A, B):
        first.make(name)
    set_key(first.make(CHILD), "parent_id", A, LONG_AGO)
    first.add(bare, *request.param)
    first.sync()
    for machine in others:
        machine.add(bare)
        machine.sync()
    return found


def test_new_machines_get_everything(machines: list[PlainMachine], bare: Path) -> None:
    assert git(bare, "for-each-ref", "--format=%(refname)") == "refs/reconcile/plain-notes"
    assert {path.partition("/")[0] for path in machines[2].contents} == {A, B, CHILD}
    quiet(*machines)


@pytest.mark.long
def test_edits_on_all_machines_travel(machines: list[PlainMachine]) -> None:
    first, second, third = machines
    append(first.store / A, 2, "a", LONG_AGO + 60 * SECOND)
    (second.store / B / "events.json").write_bytes(b"no JSON at all")
    third.make("new")
    for machine in machines:
        machine.sync()
    quiet(*machines)
    assert (first.store / B / "events.json").read_bytes() == b"no JSON at all"
    assert (second.store / "new" / "metadata.json").exists()


@pytest.mark.long
def test_two_continuations_make_one_fork(machines: list[PlainMachine]) -> None:
    first, second, third = machines
    append(first.store / A, 2, "b", LONG_AGO + 60 * SECOND)
    append(second.store / A, 1, "c", LONG_AGO + 120 * SECOND)
    assert not first.sync()["forked"]
    assert len(second.sync()["forked"]) == 1
    third.sync()
    quiet(*machines)
    assert len(list(third.store.iterdir())) == 4


@pytest.mark.long
def test_a_removal_and_a_rename_travel(machines: list[PlainMachine]) -> None:
    first, second, _ = machines
    first.run("rm", A, "--yes", "--promote")
    (second.store / B).rename(second.store / "renamed")
    for machine in machines:
        machine.sync()
    quiet(*machines)
    assert {path.partition("/")[0] for path in first.contents} == {"renamed", CHILD}


def test_a_workspace_gets_what_it_had(machines: list[PlainMachine]) -> None:
    first, second, _ = machines
    first.run("project", A, "--yes")
    second.run("project", A, "--yes")
    append(second.project / "conversations" / A, 2, "a", LONG_AGO + 60 * SECOND)
    second.run()
    second.sync()
    first.sync()
    first.run()
    there, here = (machine.project / "conversations" / A / "events.json" for machine in (second, first))
    assert here.read_bytes() == there.read_bytes()


def test_a_version_of_a_remote_is_shown(machines: list[PlainMachine]) -> None:
    assert "chat_request" in machines[0].run("show", f"{A}@origin", "--raw").output


def test_suggested_commands_name_both_sides(machines: list[PlainMachine]) -> None:
    first, second, _ = machines
    for machine, title in ((first, "One"), (second, "Two")):
        set_key(machine.store / A, "title", title, mtime_ns=LONG_AGO + 60 * SECOND)
    first.make("new")
    first.run("rm", CHILD, "--yes")
    first.sync()
    told = second.run("sync").output + second.run("undo", "--yes").output
    told += second.run("undo", "--yes").output
    told += first.run("remote", "keep-here", A).output
    commands = [
        command
        for line in told.splitlines()
        if re.search(r"instead:$|to redo|the removals too|on all machines", line)
        for command in line.rpartition(": ")[2].split(" && ")
    ]
    lines = told.splitlines()
    commands += [lines[at + 1].strip() for at, line in enumerate(lines) if line.endswith("instead:")]
    commands = [command for command in commands if command.startswith("reconcile ")]
    assert len(commands) >= 6, told
    assert all("--format plain" in command and "--store" in command for command in commands), commands


def test_the_commands_that_encrypt_name_both_sides(tmp_path: Path, run: Run, bare: Path) -> None:
    told = make_plain_machine(tmp_path / "laptop", run).add(bare)
    commands = re.findall(r"reconcile remote (?:remove|add --encrypt) [^&\n]*", told)
    assert len(commands) == 2
    assert all("--format plain" in command and "--store" in command for command in commands)


@pytest.mark.parametrize("half", ["sync", "pull"])
@pytest.mark.parametrize("child", ["known", "new", "after a loss"])
def test_a_removed_parent_has_a_child_that_its_machine_did_not_have(
    machines: list[PlainMachine], half: str, child: str
) -> None:
    """The child names the parent in the remote, too. After the loss of a store, no later plan did the removal."""
    first, second, third = machines
    set_key(second.make("new"), "parent_id", B, LONG_AGO)
    if child == "after a loss":
        second.run("rm", CHILD, "--yes")
        for name in (A, B):
            shutil.rmtree(third.store / name)
    second.sync()
    if child != "new":
        third.sync()
    first.run("rm", B, "--yes")
    assert ids(first.sync()["removed_there"]) == [B]
    found = third.half(half)
    assert (ids(found["removed_here"]), found["held"]) == ([B], [])
    assert ids(found["taken"]) == ["new"] * (child == "new")
    assert ids(found["sent"]) == ["new"] * (half == "sync")
    assert not (third.store / B).exists()
    third.sync()
    for machine in machines:
        machine.sync()
    quiet(*machines)
    left = {A, "new"} if child == "after a loss" else {A, CHILD, "new"}
    assert {path.partition("/")[0] for path in first.contents} == left

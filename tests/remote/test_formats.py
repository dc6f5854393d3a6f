"""The name of a store on every machine: its own, or the one that the user gives it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.plain_machines import make_plain_machine
from tests.support.projects.record_machines import make_vault_machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.mark.parametrize("command", [["remote", "add"], ["sync"], ["pull"], ["push"]])
@pytest.mark.parametrize("name", ["leslie", "claudesidian", "plain"])
def test_a_store_without_a_name_is_refused(tmp_path: Path, run: Run, name: str, command: list[str]) -> None:
    bare, project, store = make_bare(tmp_path / "r.git"), tmp_path / "project", tmp_path / "store"
    (project / ".leslie").mkdir(parents=True)
    (project / ".leslie" / "objectives.json").write_text("{}")
    (project / ".conversations").mkdir()
    (store / "conversations").mkdir(parents=True)
    sides = ["--workspace", str(project), *(["--store", str(store)] if name == "plain" else []), "--format", name]
    found = run(*sides, *command, bare)
    assert found.exit_code == 4
    error, hint = found.stderr.strip().splitlines()
    assert error.endswith("no other machine knows a name for this store")
    assert hint == "hint: give it one, the same on each machine: reconcile remote add URL --as NAME"


def test_the_name_is_that_of_the_ref(tmp_path: Path, run: Run) -> None:
    bare, machine = make_bare(tmp_path / "r.git"), make_plain_machine(tmp_path / "one", run)
    machine.make("A")
    assert "it has nothing called plain-notes yet" in machine.add(bare)
    machine.sync()
    (found,) = json.loads(machine.run("remote", "--json").stdout)["remotes"]
    assert found["ref"] == git(bare, "for-each-ref", "--format=%(refname)") == "refs/reconcile/plain-notes"
    other = make_plain_machine(tmp_path / "other", run)
    assert "it has plain-notes already: a sync merges that" in other.add(bare)


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "ä"])
def test_a_name_that_is_none(tmp_path: Path, run: Run, name: str) -> None:
    bare, machine = make_bare(tmp_path / "r.git"), make_plain_machine(tmp_path / "one", run)
    assert "can't be the name of a store" in machine.run("remote", "add", str(bare), f"--as={name}", code=4).output


def test_a_store_with_a_name_of_its_own_can_get_another_one(tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_machine(tmp_path / "one", run)
    machine.write(17528832000)
    machine.run("remote", "add", str(bare), "--as", "second")
    machine.sync()
    assert git(bare, "for-each-ref", "--format=%(refname)") == "refs/reconcile/jp-second"


def test_a_remote_that_an_older_version_has_recorded(tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_machine(tmp_path / "one", run)
    machine.write(17528832000)
    machine.run("remote", "add", str(bare))
    path = machine.state / "remotes" / "origin" / "remote.json"
    known = json.loads(path.read_bytes())
    del known["store"]
    path.write_text(json.dumps(known))
    machine.sync()
    assert git(bare, "for-each-ref", "--format=%(refname)") == "refs/reconcile/jp-ab1cd"


def test_a_new_machine_without_a_project_of_the_format(tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_vault_machine(tmp_path / "one", run)
    assert "no claudesidian project" in machine.run("sync", str(bare), code=2).output
    assert not list((machine.home / "data").rglob("stores"))
    machine.add(bare)
    assert not machine.sync()["taken"]


def test_as_belongs_to_add(tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_machine(tmp_path / "one", run)
    assert "--as belongs to `reconcile remote add`" in machine.run("remote", "check", "--as", "x", code=2).output

"""The name of a store on every machine: its own, or the one that the user gives it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.formats.claude_code.names import directory_name
from reconcile.remote.coding import PLAIN
from reconcile.remote.sealing import Keys
from reconcile.remote.tree import (
    FORMAT,
    MOST_SEEN,
    FileRecord,
    Record,
    checked_record,
    directory_of,
    encoded,
    format_file,
    read_tree,
    seen_in,
)
from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.memory_engine import Host, MemoryEngine
from tests.support.projects.plain_machines import make_plain_machine
from tests.support.projects.record_machines import make_vault_machine

if TYPE_CHECKING:
    from collections.abc import Iterable
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
    assert error.endswith("this store has no name that other machines know it by")
    assert hint == f"hint: give it one, the same on each machine: reconcile remote add URL --as NAME {' '.join(sides)}"


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


SESSION = "11111111-2222-4333-8444-555555555555"


def test_a_saved_plan_is_of_one_format(tmp_path: Path, run: Run, bare: Path) -> None:
    """The plan of the second format would replace that of the first one."""
    machine, plan = make_machine(tmp_path / "one", run), tmp_path / "plan.json"
    for words in ("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x"):
        git(machine.project, *words)
    line = {"type": "user", "uuid": "1", "sessionId": SESSION, "cwd": str(machine.project), "message": {"content": "a"}}
    live = machine.home / ".claude" / "projects" / directory_name(str(machine.project)) / f"{SESSION}.jsonl"
    live.parent.mkdir(parents=True)
    live.write_text(json.dumps(line) + "\n")
    machine.write(17528832000)
    machine.run("--yes")
    machine.run("remote", "add", str(bare))
    error = machine.run("sync", "--out", str(plan), code=2).output
    assert "a plan is of one format, and jp and claude-code have changes" in error
    assert not plan.exists()
    machine.run("sync", "--format", "jp")
    machine.run("sync", "--out", str(plan))
    assert "1 session sent" in machine.run("apply", str(plan)).output


RECORDS = {
    "plain": (("A", "metadata.json"), ("A", "x/y.txt")),
    "leslie": (("thread_relations.json", ""), ("threads/a", "plan.md"), ("logs/o/objective.log", ""), ("n", "b")),
    "claudesidian": ((".conversations/a.json", ""), (".nexus/conversations/c.jsonl", "")),
}
NO_RECORDS = {
    "plain": (("..", "metadata.json"), ("A/B", "metadata.json"), (".x", "metadata.json"), ("A", "../x")),
    "leslie": (
        ("thread_relations.json.bak", ""),
        ("objectives.json.lock", ""),
        ("thread_relations.json", "x"),
        ("threads", ""),
        ("threads/a", ""),
        ("threads/../../x", "plan.md"),
        ("threads/a", "../../../x"),
        ("threads/a", ".reconcile-x"),
        ("runtime/x", ""),
        ("logs", "x"),
    ),
    "claudesidian": (
        (".conversations/index.json", ""),
        (".nexus/cache.db", ""),
        (".conversations", ""),
        (".conversations/a.json", "x"),
        (".conversations/../../x", ""),
        ("notes/mine.md", ""),
    ),
}


def checked(name: str, path: str, files: Iterable[str]) -> Record:
    record = Record(path, path, {file: FileRecord("0" * 32, 2, 1) for file in files})
    top = directory_of(path, PLAIN)
    names = {f"{top}/{slot}": "x" for slot in ("m", "b", "e", *(f"x/{file}" for file in files))}
    return checked_record(encoded(record), f"{top}/r", names, get_format(name), PLAIN)


@pytest.mark.parametrize(("name", "path", "file"), [(name, *each) for name, found in RECORDS.items() for each in found])
def test_a_record_has_a_place_of_its_format(name: str, path: str, file: str) -> None:
    assert checked(name, path, [file]).name == path


@pytest.mark.parametrize(
    ("name", "path", "file"), [(name, *each) for name, found in NO_RECORDS.items() for each in found]
)
def test_a_record_of_another_place_is_not_believed(name: str, path: str, file: str) -> None:
    with pytest.raises(ValueError, match="names a file"):
        checked(name, path, [file])


def test_a_file_below_another_file_is_not_believed() -> None:
    for name, path in (("plain", "A"), ("leslie", "threads/a")):
        with pytest.raises(ValueError, match="names a file"):
            checked(name, path, ["x", "x/y"])
    with pytest.raises(ValueError, match="names a file"):
        checked("leslie", "n", ["", "x"])


def test_a_record_below_another_record_is_left_out() -> None:
    engine, top = MemoryEngine(Host()), ".nexus/a"
    files = {FORMAT: format_file("claudesidian-x", "id", PLAIN)}
    for path in (top, f"{top}/b.json", f"{top}/c/d.json", ".nexus/ab"):
        record = Record(path, path, {"": FileRecord("0" * 32, 2, 1)})
        files |= {f"{directory_of(path, PLAIN)}/r": encoded(record), f"{directory_of(path, PLAIN)}/e": b"{}"}
    commit = engine.write(None, files, ())
    keys = Keys("", is_wanted=False)
    tree = read_tree(engine, commit, get_format("claudesidian"), "claudesidian-x", keys)
    assert set(tree.records) == {top, ".nexus/ab"}
    assert len(tree.refused) == 2


def test_a_record_has_the_newest_of_all_known_versions() -> None:
    old = Record("jp-c1", "1-a", {}, seen={"stream": ["a", "b"]})
    assert seen_in(old, {"stream": ("b", "c"), "metadata": ("m",)}) == {"metadata": ["m"], "stream": ["a", "b", "c"]}
    many = tuple(map(str, range(MOST_SEEN)))
    assert seen_in(old, {"stream": many})["stream"] == list(many)
    assert seen_in(old, {"stream": ("b", "a")})["stream"] == ["b", "a"], "restored on this machine"
    assert seen_in(Record("jp-c1", "1-a", {}, seen={"stream": []}), {}) == {"stream": []}


def test_as_belongs_to_add(tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_machine(tmp_path / "one", run)
    assert "--as belongs to `reconcile remote add`" in machine.run("remote", "check", "--as", "x", code=2).output

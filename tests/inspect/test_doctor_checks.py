"""`doctor` of a Claudesidian vault: what is wrong in each one of the corpus, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.adapters.claudesidian.files import read_vault
from reconcile.formats.claudesidian.checks.examine import examine
from tests.support.formats.claudesidian import NOW, carried_out, copied, needs_corpus, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


def contents(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def findings(run: Run, vault: Path, *args: str, code: int) -> list[dict[str, Any]]:
    before = contents(vault)
    result = run("doctor", "-w", vault, "--json", *args)
    assert result.exit_code == code, result.output
    assert contents(vault) == before, "something was written"
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


INDEX_DRIFT = {
    # C2: the torn conversation
    ("C2", "error", ".conversations/conv_z.json"): "its name in the index is",
    # C3: the ghost
    ("C3", "error", ".workspaces/index.json"): "ws_gone: workspaces, byName, byFolder, sessionsByWorkspace lead to",
    # C4: unindexed, by sync and by poison words; and the name that the program doesn't list
    (
        "C4",
        "error",
        ".conversations/index.json",
    ): 'conv_x: byContent lacks "where", "does", "the", "cons',
    ("C4", "note", ".conversations/index.json"): 'conv_x: the program fails to index this, at "constructor"',
    ("C4", "error", ".workspaces/index.json"): 'ws_ctor: no entry of ws_ctor ("Constructor patterns")',
    ("C4", "note", ".workspaces/index.json"): 'ws_ctor: the program fails to index this, at "constructor"',
    ("C4", "error", ".workspaces/index.json", 2): 'ws_d: no entry of ws_d ("Delta from phone")',
    ("C4", "note", ".workspaces/my-index.json"): "the program does not list a file with this name",
    # C5: stale tokens and a stale folder; the shared one is fine
    ("C5", "note", ".conversations/index.json"): 'conv_y: byTitle still has "fresh", "start"; byContent still has',
    (
        "C5",
        "note",
        ".workspaces/index.json",
    ): 'byDescription still has "first", "project"; byFolder still has',
    # C8: the count that the poison word has kept back
    ("C8", "warning", ".conversations/index.json"): "message_count is 0 in the index and 1 in the file",
    # C10: the conflict copy
    ("C10", "warning", ".workspaces/ws_b (conflict).json"): "2 files of ws_b with the same content",
    # C13: the schema marker
    ("C13", "note", ".workspaces/.trace-schema.json"): "not a record, but the program's rebuild reads it as one",
}


@needs_corpus
def test_index_drift(run: Run, tmp_path: Path) -> None:
    found = findings(run, copied("index-drift", tmp_path / "vault"), code=4)
    assert [(each["kind"], each["severity"], each["place"]) for each in found] == [key[:3] for key in INDEX_DRIFT]
    for each, words in zip(found, INDEX_DRIFT.values(), strict=True):
        assert words in each["found"]
    assert {each["kind"] for each in found if each["repairable"]} == {"C3", "C4", "C5", "C8"}
    assert {each["kind"] for each in found if each["on_request"]} == {"C10"}


@needs_corpus
def test_index_drift_after_its_repairs(tmp_path: Path) -> None:
    before = read_vault(str(copied("index-drift", tmp_path / "vault")))
    after = carried_out(before)
    left = [("C2", "error", "conv_z.json"), ("C4", "note", "my-index.json")]
    conflict, marker = ("C10", "warning", "ws_b (conflict).json"), ("C13", "note", ".trace-schema.json")
    assert told(examine(after, NOW)) == [*left, conflict, marker]
    assert told(examine(carried_out(after, on_request=True), NOW)) == [*left, marker]
    assert carried_out(after) == after, "a second time does nothing"


CLEAN = ["job-search-2025-11", "job-search-2025-12", "hybrid-from-2025-12"]


@needs_corpus
@pytest.mark.parametrize("scenario", CLEAN)
def test_where_nothing_is_wrong(run: Run, tmp_path: Path, scenario: str) -> None:
    vault = copied(scenario, tmp_path / "vault")
    assert findings(run, vault, code=0) == []
    assert run("doctor", "-w", vault).stdout.endswith("\n\nNo problems found.\n")


@needs_corpus
def test_states_that_the_migration_emptied(run: Run, tmp_path: Path) -> None:
    vault = copied("hybrid-from-2025-11", tmp_path / "vault")
    (found,) = findings(run, vault, "--format", "claudesidian", code=4)
    assert (found["kind"], found["severity"], found["repairable"]) == ("C11", "error", False)
    assert "3 states without content, so they can't be opened" in found["found"]
    shown = run("doctor", "-w", vault / ".nexus").stdout
    begin = "C11 (1)\n  The migration left out the content of states, but reported success.\n  error: .nexus/"
    assert shown.partition("\n\n")[2].startswith(begin)
    assert shown.endswith("\n\n1 error.\n")


@needs_corpus
@pytest.mark.parametrize(("year", "lost"), [("11", [("C11", "error")]), ("12", [])])
def test_what_the_migration_left_out_while_the_older_form_is_there(
    run: Run, tmp_path: Path, year: str, lost: list[tuple[str, str]]
) -> None:
    vault = copied(f"hybrid-from-2025-{year}", copied(f"job-search-2025-{year}", tmp_path / "vault"))
    found = findings(run, vault, code=4 if lost else 0)
    assert [(each["kind"], each["severity"]) for each in found] == [*lost, *[("migration", "note")] * 5]
    assert all(each["repairable"] for each in found if each["kind"] == "C11")
    talk = next(each["found"] for each in found if "usage" in each["found"])
    assert "usage of 1 message, cost of 1 message, provider of 1 message, model of 1 message, tool results of 1" in talk
    if not lost:
        assert run("doctor", "-w", vault).stdout.endswith("No problems found; 5 notes.\n")


def a_vault(path: Path) -> Path:
    (path / ".workspaces").mkdir(parents=True)
    return path


def test_many_findings_are_counted(run: Run, tmp_path: Path) -> None:
    vault = a_vault(tmp_path / "vault")
    for number in range(30):
        (vault / ".workspaces" / f"{number}.json").write_text("{")
    assert "  ... and 10 more (-v shows all)\n" in run("doctor", "-w", vault).stdout
    assert "... and" not in run("doctor", "-w", vault, "-v").stdout


def test_what_is_no_file_is_named(run: Run, tmp_path: Path) -> None:
    vault = a_vault(tmp_path / "vault")
    (vault / ".workspaces" / "ws_a.json").symlink_to(tmp_path / "elsewhere.json")
    (found,) = findings(run, vault, code=4)
    assert (found["kind"], found["found"]) == ("C2", "a symbolic link (expected a regular file)")


def test_options_that_make_no_sense_here(run: Run, tmp_path: Path) -> None:
    vault = a_vault(tmp_path / "vault")
    result = run("doctor", "-w", vault, "--layout", "flat")
    assert result.exit_code == 2
    assert "doctor checks everything of a claudesidian workspace: leave out --layout" in result.stderr
    assert run("doctor", "-w", vault, "--only", "x").exit_code == 2
    nowhere = run("doctor", "--format", "claudesidian", "-w", tmp_path / "nowhere")
    assert (nowhere.exit_code, "nowhere is not a directory" in nowhere.stderr) == (2, True)


def test_a_jp_project_is_what_is_meant_where_both_are(run: Run, tmp_path: Path) -> None:
    vault = a_vault(tmp_path / "vault")
    (vault / ".jp").mkdir()
    assert "claudesidian" not in run("doctor", "-w", vault).output
    assert run("doctor", "-w", vault, "--format", "claudesidian").stdout.endswith("\n\nNo problems found.\n")

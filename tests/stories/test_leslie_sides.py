"""Leslie through the whole engine: its folder and the durable copy, runs, undo, recovery, two checkouts."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.index.file import Sections
from tests.support.formats.fixed_programs import LeslieProgram
from tests.support.formats.leslie import CORPUS, corpus_project
from tests.support.formats.leslie_project import Sides, carried
from tests.support.projects.git_world import git
from tests.support.scenarios.line_reader import Words

if TYPE_CHECKING:
    from tests.conftest import Run

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")

MENDED_ON_REQUEST = {"recovered-from-bak": "F3:thread-ddd68a6a", "clobbered-bak": "F2:thread_relations.json"}
SCENARIOS = ("small-tree", "references", "lifecycle", "run-events", "concurrent-spawn", *MENDED_ON_REQUEST)


def made(sides: Sides, *lines: str, name: str = "workspace", program: LeslieProgram | None = None) -> Sides:
    """Let the program do something; the time is its own."""
    sides.leslie.mkdir(parents=True, exist_ok=True)
    at_work = program or LeslieProgram()
    for line in lines:
        at_work.command(sides.leslie, name, Words(line))
    return sides


@pytest.fixture
def small(tmp_path: Path, run: Run) -> Sides:
    """Two threads, one with a plan, in sync."""
    sides = made(Sides(tmp_path / "project", run), 'spawn thread-a "Plan"', 'spawn thread-b "Build" parent thread-a')
    (sides.leslie / "threads" / "thread-a" / "plan.md").write_text("a plan\n")
    sides.reconcile()
    assert sides.in_sync()
    return sides


def relations(sides: Sides) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((sides.leslie / "thread_relations.json").read_bytes())
    return value


def rewrite(sides: Sides, value: dict[str, Any]) -> None:
    (sides.leslie / "thread_relations.json").write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def corpus(scenario: str, tmp_path: Path, run: Run) -> Sides:
    sides = Sides(corpus_project(scenario, tmp_path), run)
    for path in (sides.leslie, *sides.leslie.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return sides


@needs_corpus
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_the_program_has_left(tmp_path: Path, run: Run, scenario: str) -> None:
    sides = corpus(scenario, tmp_path, run)
    before = sides.bytes()
    asked = MENDED_ON_REQUEST.get(scenario)
    found = sides.findings()
    assert [each["id"] for each in found] == ([asked] if asked else [])
    torn = scenario == "clobbered-bak"
    assert ("copy store:thread_relations.json" in sides.dry()) is not torn
    sides.reconcile(code=4 if torn else 0)
    if asked:
        sides.reconcile("doctor", "--mend", asked)
        assert sides.bytes()[sides.leslie / "thread_relations.json"] != before[sides.leslie / "thread_relations.json"]
    assert [each for each in sides.findings() if not each["on_request"]] == []
    assert not asked or asked not in [each["id"] for each in sides.findings()]
    assert sides.in_sync()
    log = json.loads(sides.run("log", "--json", "-w", sides.project).stdout)["runs"]
    for number in range(2 if asked else 1):
        result = sides.run("undo", log[number]["id"], "--allow-bulk-removal", "-w", sides.project)
        assert result.exit_code == 0, result.output
    assert sides.bytes() == before


@needs_corpus
def test_drift_is_mended_and_undo_gives_it_back(tmp_path: Path, run: Run) -> None:
    sides = corpus("references", tmp_path, run)
    sides.reconcile()
    value = relations(sides)
    whole = sides.bytes()
    value["relations"] = {}
    value["metadata"]["thread_count"] = 1
    rewrite(sides, value)
    drifted = sides.bytes()
    assert sides.dry() == ["rebuild workspace:thread_relations.json"]
    sides.reconcile()
    assert (sides.bytes(), sides.findings()) == (whole, [])
    sides.reconcile("undo")
    assert sides.bytes() == drifted


@needs_corpus
@pytest.mark.parametrize("scenario", ["small-tree", "lifecycle", "concurrent-spawn", "run-events"])
def test_the_folder_is_deleted_and_comes_back(tmp_path: Path, run: Run, scenario: str) -> None:
    sides = corpus(scenario, tmp_path, run)
    sides.reconcile()
    before = carried(sides.leslie)
    shutil.rmtree(sides.leslie)
    stamps = sides.stamps()
    waiting = sides.run("-w", sides.project)
    assert (waiting.exit_code, sides.stamps()) == (4, stamps), waiting.output
    assert "reconcile recover" in waiting.output
    sides.reconcile("recover", "--yes")
    assert carried(sides.leslie) == before
    assert sides.run("doctor", "-w", sides.project).stdout.splitlines()[-1].startswith("No problems found")
    notes = json.loads(sides.run("doctor", "--json", "-w", sides.project).stdout)["findings"]
    assert [each for each in notes if each["kind"] == "F4"] == [], "directories are missing"


def test_a_thread_directory_is_deleted(small: Sides) -> None:
    shutil.rmtree(small.leslie / "threads" / "thread-a")
    result = small.reconcile()
    assert "still in the store" in result.output
    plan = Path("threads", "thread-a", "plan.md")
    assert (small.store / plan).read_text() == "a plan\n"
    assert not (small.leslie / plan).exists()
    assert (small.leslie / "threads" / "thread-a" / "context" / "live").is_dir()
    assert small.run("doctor", "-w", small.project).stdout.endswith("\n\nNo problems found.\n")
    small.reconcile("recover", "--yes")
    assert (small.leslie / plan).read_text() == "a plan\n"
    assert small.in_sync()


def worktrees(tmp_path: Path, run: Run) -> tuple[Sides, Sides]:
    """Two of one repository, which share a durable copy."""
    first, second = Sides(tmp_path / "first", run), Sides(tmp_path / "second", run)
    first.project.mkdir()
    git(first.project, "init", "--quiet")
    (first.project / "file").write_text("x")
    git(first.project, "add", "file")
    git(first.project, "commit", "--quiet", "--message", "x")
    git(first.project, "worktree", "add", "--quiet", "../second")
    assert second.store == first.store
    return first, second


def test_two_submodules_have_a_store_each(tmp_path: Path, run: Run) -> None:
    """Their git directories are side by side in that of the outer repository."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for directory in (inner, outer):
        directory.mkdir()
        git(directory, "init", "--quiet")
        git(directory, "commit", "--quiet", "--allow-empty", "--message", "x")
    for name in ("a", "b"):
        git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), name)
    first, second = Sides(outer / "a", run), Sides(outer / "b", run)
    assert first.store != second.store
    made(first, 'spawn thread-a "Plan"').reconcile()
    made(second, 'spawn thread-b "Build"').reconcile()
    first.reconcile()
    assert list(relations(first)["threads"]) == ["thread-a"]
    assert list(relations(second)["threads"]) == ["thread-b"]


@pytest.mark.parametrize("ask", [["recover", "--yes"], ["project", "thread-a"]])
def test_a_directory_that_is_restored_is_not_made_empty_as_well(small: Sides, ask: list[str]) -> None:
    shutil.rmtree(small.leslie / "threads" / "thread-a")
    output = small.reconcile(*ask).output
    assert "made, empty" not in output, output
    assert "rebuilt" not in output, output
    assert (small.leslie / "threads" / "thread-a" / "plan.md").read_text() == "a plan\n"


def test_two_worktrees_that_each_spawn_come_to_the_same(tmp_path: Path, run: Run) -> None:
    first, second = worktrees(tmp_path, run)
    program = LeslieProgram()
    made(first, 'spawn thread-a "Plan"', program=program)
    (first.leslie / "threads" / "thread-a" / "plan.md").write_text("a plan\n")
    first.reconcile()
    second.reconcile("--format", "leslie")
    assert carried(second.leslie) == carried(first.leslie)
    made(first, 'spawn thread-b "Here" parent thread-a', program=program)
    made(second, 'spawn thread-c "There" parent thread-a', name="workspace2", program=program)
    (second.leslie / "threads" / "thread-c" / "plan.md").write_text("another plan\n")
    first.reconcile()
    second.reconcile()
    first.reconcile()
    assert carried(first.leslie) == carried(second.leslie) == carried(first.store)
    assert list(relations(first)["threads"]) == ["thread-a", "thread-b", "thread-c"]
    assert relations(first)["relations"]["thread-a"]["children"] == ["thread-b", "thread-c"]
    assert first.findings() == second.findings() == []
    for sides in (first, second):
        assert {path.name for path in (sides.leslie / "threads").iterdir()} == {"thread-a", "thread-b", "thread-c"}


def test_derived_data_does_not_wait_for_what_was_undone(tmp_path: Path, run: Run) -> None:
    """A thread that an undo keeps out is in no objective's way: a second run has nothing to do."""
    first, second = worktrees(tmp_path, run)
    program = LeslieProgram()
    made(first, 'spawn thread-a "Plan"', program=program)
    first.reconcile()
    second.reconcile("--format", "leslie")
    made(second, 'spawn thread-b "There"', name="workspace2", program=program)
    (second.leslie / "threads" / "thread-b" / "plan.md").write_text("another plan\n")
    second.reconcile()
    first.reconcile()
    assert first.run("undo", "-w", first.project).exit_code == 0
    made(first, 'spawn thread-c "Here"', program=program)
    output = first.reconcile().output
    assert "waits for" not in output, output
    assert list(relations(first)["threads"]) == ["thread-a", "thread-b", "thread-c"]
    assert not (first.leslie / "threads" / "thread-b").exists()


def test_the_same_operation_with_other_content_is_for_a_person(small: Sides) -> None:
    here = relations(small)
    there = json.loads((small.store / "thread_relations.json").read_bytes())
    here["operations"][1]["params"]["inherit"] = "full"
    there["operations"][1]["params"]["inherit"] = "partial"
    rewrite(small, here)
    (small.store / "thread_relations.json").write_text(json.dumps(there, indent=2) + "\n")
    before = small.bytes()
    held = small.reconcile(code=4)
    assert small.bytes() == before
    assert "op-0002" in held.output
    small.reconcile("resolve", "thread_relations.json", "--take", "workspace")
    assert small.in_sync()
    assert relations(small) == here


def test_in_a_directory_below_it_is_the_same_project(small: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    below = small.project / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    (small.leslie / "notes.txt").write_text("a note\n")
    assert small.run().exit_code == 0
    assert (small.store / "notes.txt").exists()
    assert os.listdir(below) == []


def test_what_time_alone_makes_due_is_done(small: Sides) -> None:
    """No file changes when a leftover has become old: an answer that was kept would miss it."""
    left = small.leslie / "thread_relations.json.tmp-123-01234567-89ab-cdef-0123-456789abcdef"
    left.write_bytes(b"")
    for _ in range(3):
        assert "Nothing to do" in small.run("-w", small.project).stdout
        time.sleep(0.1)
    assert left.exists()
    # The clock can't be put forward; no summary is saved that a run could answer from.
    (index,) = Path(os.environ["XDG_DATA_HOME"], "reconcile").rglob("index-*")
    with index.open("rb") as file:
        *_, summary = Sections(file, "index", index.stat().st_size).value(0)
    assert summary is None

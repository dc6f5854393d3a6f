"""`reconcile find` in a project of Leslie: threads, their files, logs, and versions that only the vault has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.stories.test_record_pages import leslie_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def project(run: Run, tmp_path: Path) -> Path:
    """Three threads on both sides, with a note each; the first note has another text now."""
    made, chain = leslie_project(tmp_path / "project")
    notes = made / ".leslie" / "threads" / chain[0] / "notes.md"
    notes.write_text("Let us begin with the albatross.\n")
    run("-w", made)
    notes.write_text("Let us begin with the pelican.\n")
    run("-w", made)
    return made


def found(run: Run, project: Path, *words: str, code: int = 0) -> list[dict[str, Any]]:
    result = run("find", *words, "--json", "-w", project)
    assert result.exit_code == code, result.output
    conversations: list[dict[str, Any]] = json.loads(result.stdout)["conversations"]
    return conversations


def test_a_note_of_a_thread_is_found_on_both_sides(run: Run, project: Path) -> None:
    (each,) = found(run, project, "pelican")
    assert each["conversation"].startswith("threads/thread-")
    assert [place["where"] for match in each["matches"] for place in match["places"]] == ["store", "workspace"]
    shown = run("find", "pelican", "-w", project).stdout
    assert "with the [pelican]." in shown
    assert "store, workspace" in shown


def test_the_title_of_a_thread_is_in_the_file_of_threads(run: Run, project: Path) -> None:
    (each,) = found(run, project, "flaky test")
    assert each["conversation"] == "thread_relations.json"
    assert "[Flaky test]" in run("find", "flaky test", "-w", project).stdout


def test_a_replaced_note_is_found_in_the_vault(run: Run, project: Path) -> None:
    (each,) = found(run, project, "albatross")
    (place,) = [place for match in each["matches"] for place in match["places"]]
    assert place["where"] == "version"
    assert "albatross" in run("show", place["version"], "-w", project).stdout


def test_nothing_found_is_a_line(run: Run, project: Path) -> None:
    assert found(run, project, "zebra", code=1) == []
    assert run("find", "zebra", "-w", project).stdout == "no record has 'zebra'\n"

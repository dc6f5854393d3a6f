"""The page of ``ls --tree --html`` of Leslie and Claudesidian: their own tree, states, and all contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.formats.claudesidian_project import small
from tests.support.formats.leslie import Leslie
from tests.support.tree_pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


def written(run: Run, project: Path, *words: str) -> Page:
    path = project.parent / "page.html"
    result = run("ls", "-w", project, "--tree", "--html", path, *words)
    assert result.exit_code == 0, result.output
    assert " with all contents" in result.stdout
    return Page(path.read_text(encoding="utf-8"))


def leslie_project(directory: Path) -> tuple[Path, list[str]]:
    """Make a project with three threads, each below the one before; return it, and their ids."""
    leslie = Leslie()
    for _ in range(3):
        leslie.spawn(0, 0, 0)
    chain = list(leslie.threads)
    for number, (thread, title) in enumerate(zip(chain, ("Design", "Tests", "Flaky test"), strict=True)):
        above = chain[number - 1] if number else None
        leslie.threads[thread] |= {"title": title, "parent_id": above}
        if above is not None:
            leslie.relations[above]["children"].append(thread)
    folder = directory / ".leslie"
    for thread in chain:
        (folder / "threads" / thread).mkdir(parents=True)
        (folder / "threads" / thread / "notes.md").write_text(f"Notes of {thread}.\n")
    (folder / "thread_relations.json").write_bytes(leslie.relations_file())
    (folder / "objectives.json").write_bytes(leslie.objectives_file())
    return directory, chain


def test_leslies_threads_are_a_tree(run: Run, tmp_path: Path) -> None:
    project, chain = leslie_project(tmp_path / "project")
    page = written(run, project)
    shown = [(node["depth"], node["title"]) for node in page.nodes]
    assert shown[:3] == [(0, "Design"), (1, "Tests"), (2, "Flaky test")]
    assert {depth for depth, _ in shown[3:]} == {0}
    assert (0, "thread_relations.json") in shown
    assert [f"Notes of {thread}." in str(page.contents[at]) for at, thread in enumerate(chain)] == [True] * 3
    assert [node["id"] for node in page.nodes[:3]] == [f"threads/{thread}" for thread in chain]
    assert {node["state"] for node in page.nodes} == {"external"}


def test_a_thread_without_a_folder_is_left_out_and_its_children_move_up(run: Run, tmp_path: Path) -> None:
    project, chain = leslie_project(tmp_path / "project")
    (project / ".leslie" / "threads" / chain[1] / "notes.md").unlink()
    shown = [(node["depth"], node["title"]) for node in written(run, project).nodes]
    assert shown[:2] == [(0, "Design"), (1, "Flaky test")]


def test_a_broken_file_of_threads_is_a_record_like_the_others(run: Run, tmp_path: Path) -> None:
    project, chain = leslie_project(tmp_path / "project")
    run("-w", project)
    (project / ".leslie" / "thread_relations.json").write_text("{")
    titles = [node["title"] for node in written(run, project).nodes]
    assert f"threads/{chain[0]}" in titles
    assert "thread_relations.json" in titles


def test_claudesidians_records_have_their_events_below_them(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    page = written(run, vault.path)
    shown = [(node["depth"], node["title"]) for node in page.nodes]
    for record in ("conv_a", "Alpha plans"):
        at = shown.index((0, record))
        assert shown[at + 1] == (1, f"Events of {record}")
    assert (0, "Default Workspace") in shown
    assert all(node["last"] for node in page.nodes if node["depth"] == 0 and node["title"] != "conv_b")
    vault.reconcile()
    assert {node["state"] for node in written(run, vault.path).nodes} == {"in-sync"}

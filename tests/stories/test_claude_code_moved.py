"""Sessions of a project that was renamed, and of a worktree that was removed: `recover` moves them, and copies none."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.agents.program import VERSIONS
from tests.support.formats.claude_code_project import Sides, carried, sweep, titled
from tests.support.projects.git_world import git
from tests.support.projects.terminal import Session, interrupted_at_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

HINT = "if this project was there: reconcile recover"


@pytest.fixture
def saved(tmp_path: Path, run: Run) -> Sides:
    """A repository with a session and a subagent's, all in the store."""
    sides = Sides(tmp_path / "project", run).private()
    sides.project.mkdir()
    git(sides.project, "init", "--quiet")
    git(sides.project, "commit", "--quiet", "--allow-empty", "--message", "x")
    sides.play(VERSIONS[-1], "continued").play(VERSIONS[-1], "subagent").reconcile()
    return sides


def moved(sides: Sides, to: Path) -> Sides:
    sides.project.rename(to)
    return Sides(to, sides.run)


def times(sides: Sides) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sides.live.rglob("*.jsonl")}


def test_a_renamed_project_keeps_its_sessions(saved: Sides, tmp_path: Path) -> None:
    before, modified = carried(saved.live), times(saved)
    here = moved(saved, tmp_path / "renamed")
    assert HINT in here.read()
    assert "would move" in here.read("recover", "--dry-run")
    here.run("recover", "--yes", "-w", here.project)
    assert (carried(here.live), times(here)) == (before, modified)
    assert not saved.live.exists()
    assert HINT not in here.reconcile().output
    assert here.in_sync()


def test_a_recover_that_only_moves_sessions_prints_that_they_were_moved(saved: Sides, tmp_path: Path) -> None:
    here = moved(saved, tmp_path / "renamed")
    told = here.run("recover", "--yes", "-w", here.project)
    assert (told.exit_code, "Nothing to do" in told.stdout) == (0, False)
    assert told.stdout.endswith("\nDone: 2 sessions moved here.\n")
    again = here.run("recover", "--yes", "-w", here.project)
    assert "Nothing to do." in again.stdout


def test_a_recover_without_a_yes_prints_on_standard_output_that_sessions_were_moved(
    saved: Sides, tmp_path: Path
) -> None:
    here = moved(saved, tmp_path / "renamed")
    dry = here.run("recover", "--dry-run", "-w", here.project)
    assert (dry.exit_code, dry.stdout) == (0, "Plan: 2 sessions to move here.\n")
    terminal = Session("recover", "-w", here.project)
    terminal.type("y\n", after="[y/N]")
    code, shown = terminal.end()
    assert (code, "Done: 2 sessions moved here." in shown) == (0, True), shown


def test_what_was_moved_is_known_at_once(saved: Sides, tmp_path: Path) -> None:
    """A loss before the next run: what `recover` has moved counts as what was here."""
    before = carried(saved.live)
    here = moved(saved, tmp_path / "renamed")
    here.run("recover", "--yes", "-w", here.project)
    shutil.rmtree(here.config)
    here.reconcile("recover", "--yes")
    assert carried(here.live) == before


def test_the_sessions_of_a_removed_worktree_move_to_the_one_that_recovers(saved: Sides, tmp_path: Path) -> None:
    tree = Sides(tmp_path / "tree", saved.run)
    git(saved.project, "worktree", "add", "--quiet", str(tree.project))
    tree.play(VERSIONS[0], "plain").reconcile()
    both = carried(saved.live) | carried(tree.live)
    git(saved.project, "worktree", "remove", "--force", str(tree.project))
    saved.reconcile()
    assert carried(saved.live) != both, "none moves unasked"
    assert f"restores 1 session of {tree.project}, which is gone" in saved.read("status")
    told = saved.run("recover", "--yes", "-w", saved.project).output
    assert carried(saved.live) == both == carried(saved.store)
    assert not tree.live.exists()
    again = saved.run("recover", "--from", tree.project, "--yes", "-w", saved.project).output
    assert "are lost" not in told + again, "all of it was moved"
    rows = saved.read("checkouts").splitlines()[1:]
    assert sorted(row.split()[-1] for row in rows) == ["1", "3"], rows


@pytest.mark.parametrize("is_repaired", [True, False], ids=["repaired", "lost"])
def test_sessions_of_a_renamed_checkout_are_no_worktrees(saved: Sides, tmp_path: Path, *, is_repaired: bool) -> None:
    """They belong to the checkout at its new path, whatever runs first."""
    tree = Sides(tmp_path / "tree", saved.run)
    git(saved.project, "worktree", "add", "--quiet", str(tree.project))
    tree.play(VERSIONS[0], "plain").reconcile()
    before, own = carried(saved.live), carried(tree.live)
    here = moved(saved, tmp_path / "renamed")
    if is_repaired:
        git(here.project, "worktree", "repair", "--quiet", str(tree.project), check=False)
    tree.run("--all")  # it makes a second record of the path that is gone
    told = tree.run("recover", "--yes", "-w", tree.project).output
    assert (carried(saved.live), carried(tree.live)) == (before, own), told
    assert str(saved.project) not in told
    here.run("recover", "--yes", "-w", here.project)
    assert (carried(here.live), carried(tree.live)) == (before, own)


def test_a_path_that_is_gone_is_listed_once(saved: Sides, tmp_path: Path) -> None:
    """Two runs have seen it: one in the project, and that of all projects after it was gone."""
    tree = Sides(tmp_path / "tree", saved.run)
    git(saved.project, "worktree", "add", "--quiet", str(tree.project))
    tree.play(VERSIONS[0], "plain").reconcile()
    tree.play(VERSIONS[0], "continued")
    git(saved.project, "worktree", "remove", "--force", str(tree.project))
    saved.run("--all")
    assert saved.run("checkouts", "-w", saved.project).stdout.count(str(tree.project)) == 1
    listed = json.loads(saved.run("checkouts", "--json", "-w", saved.project).stdout)["checkouts"]
    assert [each["state"] for each in listed].count("gone") == 2
    assert "forgotten: 2 records" in saved.run("checkouts", "--forget", tree.project, "-w", saved.project).stdout


def test_undo_says_that_it_moves_no_session_back(saved: Sides, tmp_path: Path) -> None:
    before = carried(saved.live)
    here = moved(saved, tmp_path / "renamed")
    here.run("recover", "--yes", "-w", here.project)
    refused = here.run("undo", "--yes", "-w", here.project)
    assert refused.exit_code == 2
    assert f"the sessions of {saved.project} were moved here, and undo doesn't move them back" in refused.stderr
    assert carried(here.live) == before
    here.project.rename(saved.project)
    saved.run("recover", "--yes", "-w", saved.project)
    assert carried(saved.live) == before


def test_after_a_move_nothing_else_is_missing(saved: Sides, tmp_path: Path) -> None:
    """Not that nothing is missing "that was here": the project was elsewhere."""
    here = moved(saved, tmp_path / "renamed")
    told = here.run("recover", "--yes", "-w", here.project).output
    assert "moved 2 sessions of" in told
    assert told.splitlines()[1] == "nothing else that was here is missing", told
    assert "For what else is missing" not in told, "the same command has looked"
    again = here.run("recover", "--yes", "-w", here.project).output
    assert again.startswith("nothing that was here is missing\n")


def test_a_session_that_is_open_moves_when_it_is_closed(saved: Sides, tmp_path: Path) -> None:
    before = carried(saved.live)
    session = min(path.stem for path in saved.live.glob("*.jsonl"))
    here = moved(saved, tmp_path / "renamed")
    file = here.open_in(os.getpid(), session)
    told = here.run("recover", "--yes", "-w", here.project).output
    assert "Claude Code has it open" in told
    assert (saved.live / f"{session}.jsonl").exists()
    file.unlink()
    here.run("recover", "--yes", "-w", here.project)
    assert carried(here.live) == before


@pytest.mark.parametrize("opened", [1, 2])
def test_a_session_that_is_opened_during_the_question_stays(saved: Sides, tmp_path: Path, opened: int) -> None:
    sessions = sorted(path.stem for path in saved.live.glob("*.jsonl"))
    assert len(sessions) == 2
    here = moved(saved, tmp_path / "renamed")
    terminal = Session("recover", "-w", here.project)
    terminal.type("", after="Move 2 sessions")
    for pid, session in zip((os.getpid(), os.getppid()), sessions[:opened], strict=False):
        here.open_in(pid, session)
    terminal.type("y\n", after="[y/N]")
    _, shown = terminal.end()
    assert "Claude Code has" in shown
    assert "Restore" not in shown, "what another project has can't be restored here, so nothing is asked"
    assert ("moved 1 session of" in shown) == (opened == 1), shown
    for session in sessions[:opened]:
        assert (saved.live / f"{session}.jsonl").exists()
    for session in sessions[opened:]:
        assert (here.live / f"{session}.jsonl").exists()


def test_what_has_the_same_name_here_stays_there(saved: Sides, tmp_path: Path) -> None:
    name = min(path.name for path in saved.live.glob("*.jsonl"))
    there = (saved.live / name).read_bytes()
    here = moved(saved, tmp_path / "renamed")
    here.live.mkdir()
    (here.live / name).write_bytes(b'{"type":"user"}\n')
    here.run("recover", "--yes", "-w", here.project)
    assert (saved.live / name).read_bytes() == there
    assert (here.live / name).read_bytes() == b'{"type":"user"}\n'


def test_doctor_names_no_project_that_was_moved(saved: Sides, tmp_path: Path) -> None:
    """Its lines still have the earlier path: another project must not be told to take the sessions."""
    other = Sides(tmp_path / "other", saved.run)
    other.play(VERSIONS[0], "plain").reconcile()
    here = moved(saved, tmp_path / "renamed")
    assert f"its project {saved.project} is gone" in other.read("doctor")
    here.run("recover", "--yes", "-w", here.project)
    assert "is gone" not in other.read("doctor")


def test_a_new_worktree_is_not_told_of_what_another_has(saved: Sides, tmp_path: Path) -> None:
    here = moved(saved, tmp_path / "renamed")
    here.run("recover", "--yes", "-w", here.project)
    tree = Sides(tmp_path / "tree", saved.run)
    git(here.project, "worktree", "add", "--quiet", str(tree.project))
    tree.play(VERSIONS[0], "plain")
    assert HINT not in tree.reconcile().output


def test_a_worktree_made_again_is_offered_nothing_that_another_has(saved: Sides, tmp_path: Path) -> None:
    """Without a terminal, `recover` restores what was lost last there."""
    tree = Sides(tmp_path / "tree", saved.run)
    git(saved.project, "worktree", "add", "--quiet", str(tree.project))
    titled(tree, "Audit").reconcile()
    git(saved.project, "worktree", "remove", "--force", str(tree.project))
    saved.run("recover", "--yes", "-w", saved.project)
    git(saved.project, "worktree", "add", "--quiet", str(tree.project), "tree")
    told = saved.run("--all")
    assert (told.stdout, "recover" in told.stderr) == ("Nothing to do in 2 projects.\n", False)
    assert "recover" not in tree.read() + tree.read("status")
    titled(tree, "Build").reconcile()
    sweep(tree)
    tree.reconcile()
    assert "Done: 1 restored" in tree.run("recover", "--yes", "-w", tree.project).output


def test_a_project_without_a_session_is_named_also_if_its_store_has_those_of_a_worktree(
    saved: Sides, tmp_path: Path
) -> None:
    tree = Sides(tmp_path / "tree", saved.run)
    git(saved.project, "worktree", "add", "--quiet", str(tree.project))
    titled(tree, "Audit").reconcile()
    shutil.rmtree(saved.live)
    saved.run("--all")
    assert f"{saved.project}: no session is left in the workspace; the store keeps 2; " in saved.run("--all").stdout


def test_what_another_project_has_of_one_that_is_gone_is_not_offered(saved: Sides, tmp_path: Path) -> None:
    tree, other = Sides(tmp_path / "tree", saved.run), Sides(tmp_path / "other", saved.run)
    for each, title in ((tree, "Audit"), (other, "Build")):
        git(saved.project, "worktree", "add", "--quiet", str(each.project))
        titled(each, title).reconcile()
    shutil.rmtree(tree.project)
    assert (
        "Done: 1 session moved here."
        in other.run("recover", "--from", tree.project, "--yes", "-w", other.project).stdout
    )
    assert str(tree.project) not in saved.read("status") + saved.read("recover")
    git(saved.project, "worktree", "move", str(other.project), str(tmp_path / "moved"))
    here = Sides(tmp_path / "moved", saved.run)
    told = here.run("recover", "--yes", "-w", here.project)
    assert "Done: 2 sessions moved here." in told.stdout
    assert str(tree.project) not in told.output


def test_all_knows_whose_sessions_those_are_that_recover_has_moved(saved: Sides, tmp_path: Path) -> None:
    """Their lines name the first path. A clone that is there by now is offered none of them."""
    notes = saved.live / "memory" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_text("A note.")
    saved.reconcile()
    here = moved(saved, tmp_path / "renamed")
    here.run("recover", "--yes", "-w", here.project)
    git(tmp_path, "clone", "--quiet", str(here.project), str(saved.project))
    assert "recover" not in saved.run("--all").output
    shutil.rmtree(saved.project)
    here.project.rename(tmp_path / "third")
    assert "renamed" not in saved.run("--all").output, "they are kept, though their project is gone"


def test_the_command_for_one_session_restores_it_here(saved: Sides) -> None:
    """`project` would copy it into the repository."""
    for path in sorted(saved.live.glob("*.jsonl")):
        path.unlink()
        saved.reconcile()
    told = saved.run("recover", "--dry-run", "-w", saved.project).output
    assert "restore one: reconcile recover ID" in told
    assert "reconcile project" not in told


def test_a_fork_of_a_project_that_is_gone_is_named_once(saved: Sides, tmp_path: Path) -> None:
    """It is one of those of the store that recover doesn't restore unasked."""
    saved.reconcile("fork", min(path.stem for path in saved.live.glob("*.jsonl")))
    for path in saved.live.glob("*.jsonl"):
        path.unlink()
    saved.reconcile()
    saved.reconcile("recover", "--yes")
    saved.reconcile("undo")
    shutil.rmtree(saved.live)
    here = moved(saved, tmp_path / "renamed")
    told = here.run("recover", "--dry-run", "-w", here.project).output
    assert ("not restored: 3 sessions" in told, "the store alone has" in told) == (True, False), told


def test_the_files_of_one_session_are_one_removal(saved: Sides) -> None:
    """The guard against many removals counts sessions."""
    before = carried(saved.live)
    session = next(path for path in saved.live.glob("*.jsonl") if path.with_suffix("").exists())
    saved.reconcile("fork", session.stem)
    assert len(carried(saved.live)) - len(before) > 3
    result = saved.run("undo", "-w", saved.project)
    assert (result.exit_code, carried(saved.live)) == (0, before), result.output


# A directory of another repository.


@pytest.fixture
def other(tmp_path: Path, saved: Sides) -> Sides:
    """Another repository, with a session of its own."""
    sides = Sides(tmp_path / "other", saved.run)
    sides.project.mkdir()
    git(sides.project, "init", "--quiet")
    git(sides.project, "commit", "--quiet", "--allow-empty", "--message", "y")
    sides.live.mkdir(parents=True)
    own = sides.live / "00000000-0000-4000-8000-000000000000.jsonl"
    own.write_text(json.dumps({"type": "user", "cwd": str(sides.project)}) + "\n")
    return sides


@pytest.mark.parametrize("swept", [True, False], ids=["deleted", "there"])
@pytest.mark.parametrize("seen", [True, False], ids=["a run was here", "no run was here"])
def test_the_sessions_of_another_repository_move_if_that_is_wanted(
    saved: Sides, other: Sides, *, swept: bool, seen: bool
) -> None:
    if seen:
        other.reconcile()
    before, own = carried(saved.live), carried(other.live)
    shutil.rmtree(saved.project)
    if swept:
        shutil.rmtree(saved.live)
    where = f"2 sessions of {saved.project} (another repository) to {other.project}"
    dry = other.read("recover", "--from", saved.project, "--dry-run")
    assert f"would move {where}" in dry
    refused = other.read("recover", "--from", saved.project, code=4)
    assert "(another repository)" in refused
    assert carried(other.live) == own
    assert f"moved {where}" in other.run("recover", "--from", saved.project, "--yes", "-w", other.project).output
    other.reconcile()
    assert carried(other.live) == carried(other.store) == own | before
    assert other.store != saved.store


@pytest.mark.parametrize("code", [4, 130], ids=["no", "Ctrl-C"])
def test_a_no_to_what_is_restored_first_ends_the_command(saved: Sides, other: Sides, code: int) -> None:
    """The move that follows is another question, which nobody has come to."""
    shutil.rmtree(saved.project)
    next(saved.live.glob("*.jsonl")).unlink()
    before = carried(saved.live)
    line = ("recover", "--from", saved.project, "-w", other.project)
    if code == 130:
        found, shown = interrupted_at_terminal(*line, goal="Restore this?")
    else:
        terminal = Session(*line)
        terminal.type("n\n", after="Restore this? [y/N]")
        found, shown = terminal.end()
    assert (found, "Move " in shown) == (code, False), shown
    assert carried(saved.live) == before


def test_another_repository_that_is_there_keeps_its_sessions(saved: Sides, other: Sides) -> None:
    for _ in range(2):
        told = other.read("recover", "--from", saved.project, "--yes", code=2)
        assert f"--from: {saved.project} is of another repository, and is there" in told
        other.reconcile()

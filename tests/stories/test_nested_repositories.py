"""Git repositories and worktrees inside conversations' directories: they are neither removed nor moved, and named."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.git_world import commit, git
from tests.support.projects.world import LONG_AGO, SECOND, events, set_key, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("git") is None, reason="no git")]

OUTER, INNER, OTHER = 17500000001, 17500000002, 17500000003
OUTER_NAME, INNER_NAME = f"{OUTER}-outer", f"{INNER}-inner"
PLACES = [
    "wt",
    "conversations/wt",
    "deep/er/wt",
    ".cache/wt",
    "deep/.cache/er/wt",
    "conversations/notes/deep/wt",
    "conversations/.cache/wt",
]
KINDS = ["worktree", "repository"]
WAY_ON = (
    "is not removed or moved with the directory around it; move it away (a worktree: `git worktree move`) and run again"
)


@pytest.fixture
def told(world: World) -> World:
    """Two conversations, one in the other, in a checkout with commits."""
    top = write_conversation(world.workspace / OUTER_NAME, "Outer", events(3))
    write_conversation(top / "conversations" / INNER_NAME, "Inner", events(2, "i"), parent=OUTER)
    write_conversation(world.workspace / f"{OTHER}-other", "Other", events(2, "o"))
    git(world.project, "init", "-q", ".")
    commit(world, "first version")
    world.reconcile()
    return world


def put(world: World, kind: str, place: Path) -> Path:
    """Put a worktree, or a repository of its own, with work that no commit has; return its `.git`."""
    if kind == "worktree":
        git(world.project, "worktree", "add", "-q", "--detach", str(place))
    else:
        place.mkdir(parents=True)
        git(place, "init", "-q", ".")
    (place / "unsaved.txt").write_text("nobody has committed this\n")
    (place / ".hidden").write_text("nor this\n")
    git(place, "add", "unsaved.txt")
    return place / ".git"


def state_of(place: Path) -> str:
    """Return git's word on what is uncommitted, but for a conversation below; fails where git knows no repository."""
    but = f":(exclude)conversations/{INNER_NAME}"
    uncommitted = git(place, "status", "--porcelain", "--untracked-files=all", "--", ".", but)
    return uncommitted + git(place, "rev-parse", "--show-toplevel")


def said(world: World, *words: str) -> tuple[int, str]:
    """Return the exit code of a command and what it prints."""
    found = world.run(*words, "-w", world.project)
    assert "Traceback" not in found.output
    return found.exit_code, found.output


def held_lines(output: str) -> list[str]:
    return [line.strip() for line in output.splitlines() if WAY_ON in line]


@pytest.mark.parametrize(
    ("kind", "place"), [*((kind, place) for kind in KINDS for place in PLACES), ("repository", "")]
)
@pytest.mark.parametrize("asked", [("local",), ("rm", "--cascade", "--yes")])
def test_the_directory_that_a_repository_lies_in_is_not_removed(
    told: World, kind: str, place: str, asked: tuple[str, ...]
) -> None:
    at = told.workspace / OUTER_NAME / place
    if place:
        marker = put(told, kind, at)
    else:
        git(at, "init", "-q", ".")
        marker = at / ".git"
    before = state_of(at)
    command, *options = asked
    dry = said(told, command, str(OUTER), *options, "-n")
    real = said(told, command, str(OUTER), *options)
    relative = f"workspace:{marker.relative_to(told.workspace)}"
    for code, output in (dry, real):
        assert code == 4, output
        (line,) = held_lines(output)
        assert relative in line
        assert "saved in the vault with its directory" not in output
    assert state_of(at) == before
    assert (told.workspace / OUTER_NAME / "events.json").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_it_is_removed_once_the_repository_is_elsewhere(told: World, kind: str, place: str, tmp_path: Path) -> None:
    at = told.workspace / OUTER_NAME / place
    put(told, kind, at)
    before = git(at, "status", "--porcelain")
    assert said(told, "local", str(OUTER))[0] == 4
    assert said(told)[0] == 4
    away = tmp_path / "away"
    if kind == "worktree":
        git(told.project, "worktree", "move", str(at), str(away))
    else:
        at.rename(away)
    code, output = said(told)
    assert code == 0, output
    assert not (told.workspace / OUTER_NAME).exists()
    assert git(away, "status", "--porcelain") == before


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_there_is_seen_before_the_removal(told: World, place: str) -> None:
    """The vault can't keep it."""
    at = told.workspace / OUTER_NAME / place
    at.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(at)
    for words in (("local", str(OUTER), "-n"), ("local", str(OUTER)), ()):
        code, output = said(told, *words)
        assert code == 4, output
        assert f"workspace:{at.relative_to(told.workspace)}: a named pipe" in output
    at.unlink()
    assert said(told)[0] == 0
    assert not (told.workspace / OUTER_NAME).exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_directory_with_a_repository_inside_is_not_moved(told: World, kind: str, place: str) -> None:
    """A worktree's own records hold its absolute path."""
    inner = told.workspace / OUTER_NAME / "conversations" / INNER_NAME
    at = inner / place
    marker = put(told, kind, at)
    before = state_of(at)
    told.reconcile()
    set_key(inner, "parent_id", f"jp-c{OTHER}", LONG_AGO + 900 * SECOND)
    dry = said(told, "-n")
    real = said(told)
    again = said(told)
    for code, output in (dry, real, again):
        assert code == 4, output
        (line,) = held_lines(output)
        assert f"workspace:{marker.relative_to(told.workspace)}" in line
    assert state_of(at) == before


def test_nor_one_around_it(told: World) -> None:
    inner = told.workspace / OUTER_NAME / "conversations" / INNER_NAME
    put(told, "worktree", inner / "wt")
    before = state_of(inner / "wt")
    told.reconcile()
    set_key(told.workspace / OUTER_NAME, "parent_id", f"jp-c{OTHER}", LONG_AGO + 900 * SECOND)
    found = json.loads(told.run("--json", "-w", told.project).stdout)
    assert [item["conversation"] for item in found["held"]] == [f"jp-c{OUTER}"]
    assert state_of(inner / "wt") == before


def test_a_removal_by_hand_elsewhere_keeps_the_repository(told: World) -> None:
    """The store's directory is removed by somebody: what the workspace has stays while a repository lies in it."""
    at = told.workspace / OUTER_NAME / "conversations" / INNER_NAME / "wt"
    put(told, "worktree", at)
    told.reconcile()
    before = state_of(at)
    shutil.rmtree(told.store / INNER_NAME)
    code, output = said(told)
    assert code == 4, output
    assert len(held_lines(output)) == 1
    assert state_of(at) == before


def test_a_repository_among_the_conversations_is_nothing_to_speak_of(told: World) -> None:
    """The directory of all conversations is neither removed nor moved."""
    git(told.workspace, "init", "-q", ".")
    assert ".git" not in told.reconcile().output


def test_undo_neither_removes_nor_moves_it(told: World) -> None:
    inner = told.workspace / OUTER_NAME / "conversations" / INNER_NAME
    set_key(inner, "parent_id", f"jp-c{OTHER}", LONG_AGO + 900 * SECOND)
    write_conversation(told.store / f"{OTHER + 1}-new", "New", events(2, "n"))
    told.reconcile()
    told.reconcile("project", str(OTHER + 1))
    (made,) = told.workspace.glob(f"{OTHER + 1}*")
    git(made, "init", "-q", ".")
    code, output = said(told, "undo", "--yes")
    assert (code, f"workspace:{made.name}/.git: a git repository" in output) == (4, True), output
    assert state_of(made)
    moved = told.workspace / f"{OTHER}-other" / "conversations" / INNER_NAME
    put(told, "worktree", moved / "wt")
    before = state_of(moved / "wt")
    (run,) = [each["id"] for each in json.loads(said(told, "log", "--json")[1])["runs"][1:2]]
    code, output = said(told, "undo", str(run), "--yes")
    assert (code, "wt/.git: a git worktree" in output) == (4, True), output
    assert state_of(moved / "wt") == before


def test_doctor_does_not_move_it_into_the_trash(told: World) -> None:
    inner = told.workspace / OUTER_NAME / "conversations" / INNER_NAME
    put(told, "worktree", inner / "wt")
    before = state_of(inner / "wt")
    (inner / "events.json").write_text("{")
    code, output = said(told, "doctor", "--quarantine", str(INNER), "--yes")
    assert (code, "wt/.git: a git worktree" in output) == (4, True), output
    assert state_of(inner / "wt") == before


def test_a_directory_is_not_made_over_it(told: World) -> None:
    assert said(told, "local", str(OTHER))[0] == 0
    place = told.workspace / f"{OTHER}-other"
    place.mkdir()
    git(place, "init", "-q", ".")
    before = state_of(place)
    assert said(told, "project", str(OTHER))[0] == 4
    assert state_of(place) == before

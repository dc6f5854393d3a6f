"""What git is in the middle of, told by its files: with git itself making them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from reconcile.fs.git_state import git_busy, git_dir, path_in_repository, worktrees

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(directory: Path, *args: str, fails: bool = False) -> None:
    command = ["git", "-c", "protocol.file.allow=always", "-c", "core.editor=true", *args]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=False, text=True)
    assert (done.returncode != 0) == fails, done.stderr + done.stdout


def commit(repository: Path, content: str) -> None:
    (repository / "file").write_text(content)
    git(repository, "add", "file")
    git(repository, "commit", "-qm", content)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A branch ``other`` that conflicts with ``main``, and ``patch``, its last commit as a mail."""
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-qb", "main")
    commit(path, "base")
    git(path, "checkout", "-qb", "other")
    commit(path, "theirs")
    commit(path, "theirs too")
    git(path, "format-patch", "-q", "-1", "-o", "..")
    git(path, "checkout", "-q", "main")
    commit(path, "ours")
    return path


def test_at_rest_and_outside_of_git(repository: Path, tmp_path: Path) -> None:
    assert git_busy(str(repository)) is None
    assert git_busy(str(tmp_path)) is None
    assert git_busy(str(repository / "no" / "such")) is None


@pytest.mark.parametrize(
    ("command", "words", "end"),
    [
        (("merge", "other"), "a merge", ("merge", "--abort")),
        (("rebase", "other"), "a rebase", ("rebase", "--abort")),
        (("rebase", "--apply", "other"), "a rebase", ("rebase", "--abort")),
        (("cherry-pick", "other"), "a cherry-pick", ("cherry-pick", "--abort")),
        (("revert", "HEAD~1"), "a revert", ("revert", "--abort")),
        (("am", "../0001-theirs-too.patch"), "an am", ("am", "--abort")),
    ],
)
def test_stopped_half_way(repository: Path, command: tuple[str, ...], words: str, end: tuple[str, ...]) -> None:
    git(repository, *command, fails=True)
    below = repository / ".jp"
    below.mkdir()
    assert git_busy(str(repository)) == git_busy(str(below)) == words
    git(repository, *end)
    assert git_busy(str(repository)) is None


def test_a_bisect(repository: Path) -> None:
    git(repository, "bisect", "start")
    assert git_busy(str(repository)) == "a bisect"
    git(repository, "bisect", "reset")
    assert git_busy(str(repository)) is None


def test_git_at_work(repository: Path) -> None:
    (repository / ".git" / "index.lock").touch()
    assert git_busy(str(repository)) == "index.lock"


def test_a_series_of_picks_between_two_steps(repository: Path) -> None:
    git(repository, "cherry-pick", "other~1", "other", fails=True)
    commit(repository, "resolved by hand")
    assert not (repository / ".git" / "CHERRY_PICK_HEAD").exists()
    assert git_busy(str(repository)) == "a cherry-pick"


def test_a_worktree_has_a_state_of_its_own(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", "-b", "third", str(tree))
    git(tree, "merge", "other", fails=True)
    assert (git_busy(str(tree)), git_busy(str(repository))) == ("a merge", None)
    git(tree, "merge", "--abort")
    git(tree, "bisect", "start")
    assert (git_busy(str(tree)), git_busy(str(repository))) == ("a bisect", None)
    (repository / ".git" / "index.lock").touch()
    git(tree, "bisect", "reset")
    assert git_busy(str(tree)) is None
    shutil.rmtree(repository)
    assert git_dir(str(tree)) is None


def test_a_submodule(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(repository), "sub")
    git(outer / "sub", "merge", "origin/other", fails=True)
    assert (git_busy(str(outer / "sub")), git_busy(str(outer))) == ("a merge", None)


def test_a_git_that_is_no_repository(repository: Path) -> None:
    (repository / "sub" / ".git").mkdir(parents=True)
    assert git_dir(str(repository / "sub")) == str(repository / ".git")
    (repository / "file.d").mkdir()
    (repository / "file.d" / ".git").write_text("nonsense")
    assert git_dir(str(repository / "file.d")) is None


def test_through_a_link(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    git(repository, "merge", "other", fails=True)
    assert git_busy(str(tmp_path / "link")) == "a merge"


def test_the_worktrees_of_a_repository_have_one_path(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "third", str(tmp_path / "tree"))
    (tmp_path / "tree" / "sub").mkdir()
    assert path_in_repository(str(tmp_path / "tree" / "sub")) == path_in_repository(str(repository / "sub"))
    assert path_in_repository(str(repository)) == str(repository)
    assert worktrees(str(repository)) == worktrees(str(tmp_path / "tree")) == [str(repository), str(tmp_path / "tree")]


@pytest.mark.parametrize("kind", ["bare", "submodule", "separate"])
def test_git_directories_side_by_side_are_of_different_repositories(
    repository: Path, tmp_path: Path, kind: str
) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    for name in ("a", "b"):
        if kind == "bare":
            git(tmp_path, "clone", "-q", "--bare", str(repository), f"{name}.git")
            git(tmp_path / f"{name}.git", "worktree", "add", "-q", "-b", "third", str(outer / name))
            git(tmp_path / f"{name}.git", "worktree", "add", "-q", "-b", "fourth", str(outer / f"{name}-2"))
            assert path_in_repository(str(outer / name)) == path_in_repository(str(outer / f"{name}-2"))
            assert (worktrees(str(outer / name)) or [])[1:] == [str(outer / name), str(outer / f"{name}-2")]
        elif kind == "submodule":
            git(outer, "submodule", "add", "-q", str(repository), name)
        else:
            (tmp_path / "git").mkdir(exist_ok=True)
            git(outer, "clone", "-q", f"--separate-git-dir={tmp_path / 'git' / name}", str(repository), name)
    assert path_in_repository(str(outer / "a")) != path_in_repository(str(outer / "b"))
    assert not {str(outer), str(tmp_path), str(tmp_path / "git")} & set(worktrees(str(outer / "a")) or ())

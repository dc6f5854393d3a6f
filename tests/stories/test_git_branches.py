"""Branches and worktrees, with real git: the store never goes back, and git is never in our way nor we in its."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.support.projects.git_world import (
    CHILD,
    OTHER,
    PARENT,
    PRIVATE,
    check_git,
    check_private,
    commit,
    git,
    place,
)
from tests.support.projects.world import LONG_AGO, SECOND, append, contents, listing, set_key

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def test_switching_branches_never_takes_the_store_back(story: World) -> None:
    newest = listing(story.store)
    for branch in ("main", "feature", "main", "main~0", "feature"):
        git(story.project, "switch", "-q", *(("--detach",) if "~" in branch else ()), branch)
        found = json.loads(story.reconcile("--json").stdout)
        check_git(story)
        check_private(story)
        assert {path: content for path, (content, _) in listing(story.store).items()} == {
            path: content for path, (content, _) in newest.items()
        }
        behind = {item["conversation"] for item in found["aside"]}
        assert behind == (set() if branch == "feature" else {f"jp-c{PARENT}", f"jp-c{CHILD}"})
    assert story.event_count(PARENT) == 7


def test_an_old_branch_is_older_for_jp_too(story: World) -> None:
    """JP takes the newer of two files: after a run the old version on the branch is the older one by its time."""
    git(story.project, "switch", "-q", "main")
    story.reconcile()
    for number in (PARENT, CHILD):
        (stored,) = story.store.glob(f"{number}*/events.json")
        assert (place(story, number) / "events.json").stat().st_mtime_ns < stored.stat().st_mtime_ns
    check_git(story)


def test_a_second_worktree_at_the_old_version(story: World, tmp_path: Path) -> None:
    newest = listing(story.store)
    git(story.project, "worktree", "add", "-q", str(tmp_path / "worktree"), "main")
    tree = replace(story, project=tmp_path / "worktree")
    assert tree.store == story.store
    next_ = tree.reconcile("status", settled=False).stdout.partition("Next:\n")[2]
    assert "reconcile project --behind" in next_
    assert "syncs what changed" not in next_, "a run would only reset times"
    for _ in range(2):
        found = json.loads(tree.reconcile("--json").stdout)
        assert {item["reason"] for item in found["aside"]} == {"behind-aside"}
        assert listing(story.store) == newest
        check_git(tree)
        check_private(tree)
        story.reconcile()
        check_git(story)
    append(place(tree, OTHER), 2, "v", LONG_AGO + 70 * SECOND)
    tree.reconcile()
    assert story.event_count(OTHER) == 6
    story.reconcile()
    assert story.event_count(OTHER, story.workspace) == 6


def test_a_worktree_removed_takes_nothing_along(story: World, tmp_path: Path) -> None:
    git(story.project, "worktree", "add", "-q", str(tmp_path / "worktree"), "main")
    tree = replace(story, project=tmp_path / "worktree")
    tree.reconcile()
    append(place(tree, OTHER), 2, "v", LONG_AGO + 70 * SECOND)
    tree.reconcile()
    before = story.kept()
    git(story.project, "worktree", "remove", "--force", str(tmp_path / "worktree"))
    story.reconcile()
    assert before <= story.kept()
    assert story.event_count(OTHER) == 6


def test_a_worktree_that_is_made_again_is_another_one_even_with_the_same_inode(story: World, on_disk: Path) -> None:
    tree = replace(story, project=on_disk / "worktree")
    inodes = []
    for _ in range(2):
        git(story.project, "worktree", "add", "-q", str(tree.project), "main")
        inodes.append((tree.project / ".jp").stat().st_ino)
        if len(inodes) == 1:
            tree.reconcile()
            tree.reconcile("project", str(PRIVATE))
            git(story.project, "worktree", "remove", "--force", str(tree.project))
    if inodes[0] != inodes[1]:
        pytest.skip("the file system has chosen another inode")
    for _ in range(2):
        shown = tree.reconcile("status", settled=False).output
        assert "restores 1 conversation of the previous .jp" in shown
        assert "removed here" not in shown
    listed = story.run("checkouts", "-w", story.project, "--json").stdout
    assert [each["state"] for each in json.loads(listed)["checkouts"]].count("replaced") == 1
    assert "replaced by a new directory" in story.run("checkouts", "-w", story.project).stdout
    tree.reconcile("recover", "--yes", settled=False)
    assert place(tree, PRIVATE).exists()


def test_a_branch_without_a_conversation_and_back(story: World) -> None:
    git(story.project, "switch", "-qc", "without")
    git(story.project, "rm", "-rq", f".jp/conversations/{OTHER}-other")
    git(story.project, "commit", "-qm", "without")
    before = contents(story.store)
    found = json.loads(story.reconcile("--json").stdout)
    assert found["intents"][f"jp-c{OTHER}"]["kind"] == "removed"
    assert found["actions"] == []
    for _ in range(2):
        again = json.loads(story.reconcile("--json").stdout)
        assert again["summary"]["removed"] == 1
    assert contents(story.store) == before
    check_git(story)
    git(story.project, "switch", "-q", "feature")
    found = json.loads(story.reconcile("--json").stdout)
    assert found["summary"] == {"in-sync": 3, "available": 1, "held": 0, "aside": 0}
    check_git(story)


def test_a_branch_without_a_subtree_and_back(story: World) -> None:
    git(story.project, "switch", "-qc", "without")
    git(story.project, "rm", "-rq", f".jp/conversations/{PARENT}-parent")
    git(story.project, "commit", "-qm", "without")
    found = json.loads(story.reconcile("--json").stdout)
    kinds = {key: intent["kind"] for key, intent in found["intents"].items()}
    assert kinds == {f"jp-c{PARENT}": "removed", f"jp-c{CHILD}": "projected"}
    check_git(story)
    git(story.project, "switch", "-q", "feature")
    found = json.loads(story.reconcile("--json").stdout)
    assert found["actions"] == []
    assert found["summary"] == {"in-sync": 3, "available": 1, "held": 0, "aside": 0}
    check_git(story)


def test_a_branch_before_any_conversation(story: World) -> None:
    """All are gone at once: nothing is inferred from that, and nothing written."""
    git(story.project, "switch", "-qc", "bare")
    git(story.project, "rm", "-rq", ".jp/conversations")
    git(story.project, "commit", "-qm", "bare")
    before = listing(story.store)
    for _ in range(2):
        found = json.loads(story.reconcile("--json", code=4).stdout)
        assert [item["reason"] for item in found["held"]] == ["workspace-emptied"]
        assert found["intents"] == {}
        assert listing(story.store) == before
        check_git(story)
    git(story.project, "switch", "-q", "feature")
    found = json.loads(story.reconcile("--json").stdout)
    assert found["summary"] == {"in-sync": 3, "available": 1, "held": 0, "aside": 0}
    check_git(story)


def test_a_branch_from_before_the_tree_was_nested(story: World) -> None:
    """Directories on a flat branch stay where git has put them."""
    git(story.project, "switch", "-qc", "flat")
    story.reconcile("--layout", "flat", settled=False)
    assert len(list(story.workspace.iterdir())) == 3
    commit(story, "flat")
    git(story.project, "switch", "-q", "feature")
    story.reconcile("--layout", "flat", settled=False)
    git(story.project, "checkout", "-qf", "feature")
    git(story.project, "clean", "-qfd")
    story.reconcile()
    check_git(story)
    git(story.project, "switch", "-q", "flat")
    found = json.loads(story.reconcile("--json").stdout)
    assert {item["reason"] for item in found["aside"]} == {"displaced"}
    check_git(story)
    git(story.project, "switch", "-q", "feature")
    story.reconcile()
    check_git(story)


def test_what_was_projected_and_then_thrown_away_with_git_checkout(story: World) -> None:
    """JP goes on in the store, a run brings it here, `git checkout .` takes it back: the store is as it was."""
    (stored,) = story.store.glob(f"{OTHER}*")
    append(stored, 5, "k", LONG_AGO + 200 * SECOND)
    story.reconcile()
    assert story.event_count(OTHER, story.workspace) == 9
    git(story.project, "checkout", "-q", ".")
    found = json.loads(story.reconcile("--json").stdout)
    assert [item["reason"] for item in found["aside"]] == ["behind-aside"]
    assert story.event_count(OTHER) == 9
    check_git(story)
    story.reconcile("resolve", str(OTHER), "--take", "store")
    assert story.event_count(OTHER, story.workspace) == 9


def test_archived_in_the_store_and_brought_back_by_git(story: World) -> None:
    """The workspace follows into `.archive/`, git puts the directory back where it was: one of them stays."""
    (stored,) = story.store.glob(f"{OTHER}*")
    (story.store / ".archive").mkdir()
    stored.rename(story.store / ".archive" / stored.name)
    story.reconcile()
    assert (story.workspace / ".archive" / stored.name).is_dir()
    git(story.project, "checkout", "-q", ".")
    story.reconcile()
    assert sorted(path.parent.name for path in story.workspace.rglob(f"{OTHER}*")) == [".archive"]


def test_a_title_changed_on_a_branch(story: World) -> None:
    """The directory has another name on each branch; git moves it, and the store keeps the newer title."""
    git(story.project, "switch", "-qc", "retitled")
    set_key(place(story, PARENT), "title", "A better name", LONG_AGO + 90 * SECOND)
    story.reconcile()
    assert (story.workspace / f"{PARENT}-a-better-name" / "conversations" / f"{CHILD}-child").is_dir()
    commit(story, "retitled")
    for branch in ("feature", "retitled", "main", "retitled", "feature", "main"):
        git(story.project, "switch", "-q", branch)
        story.reconcile()
        check_git(story)
        assert sorted(path.name for path in story.store.glob(f"{PARENT}*")) == [f"{PARENT}-a-better-name"]
        check_private(story)


def test_a_conversation_reparented_on_a_branch(story: World) -> None:
    git(story.project, "switch", "-qc", "moved")
    set_key(place(story, CHILD), "parent_id", f"jp-c{OTHER}", LONG_AGO + 90 * SECOND)
    story.reconcile()
    assert (story.workspace / f"{OTHER}-other" / "conversations" / f"{CHILD}-child").is_dir()
    commit(story, "moved")
    for branch in ("feature", "moved", "main", "moved", "feature", "main"):
        git(story.project, "switch", "-q", branch)
        story.reconcile()
        check_git(story)
        (stored,) = story.store.glob(f"{CHILD}*/metadata.json")
        assert json.loads(stored.read_bytes())["parent_id"] == f"jp-c{OTHER}"
        assert len(list(story.workspace.rglob(f"{CHILD}*/events.json"))) == 1


def test_recover_names_what_is_here_in_an_older_version(story: World, tmp_path: Path) -> None:
    git(story.project, "worktree", "add", "-q", str(tmp_path / "worktree"))
    tree = replace(story, project=tmp_path / "worktree")
    tree.reconcile()
    append(place(tree, OTHER), 3, "z", LONG_AGO + 90 * SECOND)
    tree.reconcile()
    shutil.rmtree(tree.project)
    git(story.project, "worktree", "prune")
    git(story.project, "worktree", "add", "-q", str(tmp_path / "again"))
    again = replace(story, project=tmp_path / "again")
    said = again.run("recover", "--from", str(tree.project), "-w", again.project).output
    assert "1 conversation has an older version here: Other" in said
    assert "reconcile project --behind" in said
    again.reconcile("project", "--behind")
    assert again.event_count(OTHER, again.workspace) == again.event_count(OTHER, again.store) == 7
    assert "older version" not in again.run("recover", "-w", again.project).output


def test_what_is_private_below_a_private_one_is_named_too(story: World) -> None:
    said = story.reconcile("local", str(PARENT)).output
    for number in (PARENT, CHILD):
        assert f"jp-c{number}: in git since " in said
    findings = json.loads(story.run("doctor", "--json", "-w", story.project).stdout)["findings"]
    named = {each["conversation"] for each in findings if each["kind"] == "private-in-git"}
    assert named == {f"jp-c{PARENT}", f"jp-c{CHILD}"}

"""A workspace under git: branches, worktrees and merges, with real git, and a store that never goes back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.world import (
    LONG_AGO,
    SECOND,
    contents,
    digest_of,
    events,
    git,
    listing,
    set_key,
    write_conversation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

PARENT, CHILD, OTHER = 17500000001, 17500000002, 17500000003
PRIVATE = 17500000009
PRIVATE_TITLE = "nobody else's business"

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def place(world: World, number: int) -> Path:
    """Return the workspace directory of a conversation."""
    (found,) = (path.parent for path in world.workspace.rglob(f"{number}*/metadata.json"))
    return found


def append(directory: Path, count: int, voice: str, mtime_ns: int) -> None:
    """Have a conversation go on."""
    stream = directory / "events.json"
    longer = [*json.loads(stream.read_bytes()), *events(count, voice)]
    stream.write_text(json.dumps(longer, indent=2) + "\n")
    os.utime(stream, ns=(mtime_ns, mtime_ns))


def commit(world: World, message: str) -> None:
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", message)


def check_git(world: World) -> None:
    assert git(world.project, "status", "--porcelain") == ""


def check_private(world: World) -> None:
    """What is in the store alone is nowhere in the checkout, and git has never seen it."""
    assert not list(world.project.rglob(f"{PRIVATE}*"))
    for path in world.workspace.rglob("*.json"):
        assert PRIVATE_TITLE.encode() not in path.read_bytes()


@pytest.fixture
def story(world: World) -> World:
    """Two branches: a parent with a child, and another one; on `feature` parent and child have gone on.

    The last run was on `feature`.
    """
    top = write_conversation(world.workspace / f"{PARENT}-parent", "Parent", events(4))
    write_conversation(top / "conversations" / f"{CHILD}-child", "Child", events(4, "c"), parent=PARENT)
    write_conversation(world.workspace / f"{OTHER}-other", "Other", events(4, "o"))
    git(world.project, "init", "-q", ".")
    commit(world, "first version")
    world.reconcile()
    write_conversation(world.store / f"{PRIVATE}-private", PRIVATE_TITLE, events(3, "p"))
    world.reconcile()
    check_git(world)
    git(world.project, "switch", "-qc", "feature")
    append(place(world, PARENT), 3, "x", LONG_AGO + 50 * SECOND)
    append(place(world, CHILD), 2, "y", LONG_AGO + 60 * SECOND)
    commit(world, "second version")
    world.reconcile()
    check_git(world)
    return world


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


def conflicted(story: World) -> World:
    """Have a merge stop at real conflicts in the parent's events and metadata."""
    git(story.project, "switch", "-qc", "ours", "feature")
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    set_key(place(story, PARENT), "title", "Parent", LONG_AGO + 100 * SECOND)
    set_key(place(story, PARENT), "last_activated_at", "2026-02-02 00:00:00.0", LONG_AGO + 100 * SECOND)
    commit(story, "ours")
    story.reconcile()
    git(story.project, "switch", "-qc", "theirs", "feature")
    append(place(story, PARENT), 2, "h", LONG_AGO + 90 * SECOND)
    set_key(place(story, PARENT), "last_activated_at", "2026-03-03 00:00:00.0", LONG_AGO + 90 * SECOND)
    commit(story, "theirs")
    git(story.project, "switch", "-q", "ours")
    done = subprocess.run(["git", "merge", "theirs"], cwd=story.project, capture_output=True, check=False)
    assert done.returncode == 1
    return story


def test_a_merge_conflict_reaches_neither_side(story: World) -> None:
    conflicted(story)
    directory = place(story, PARENT)
    broken = [directory / name for name in ("events.json", "metadata.json")]
    assert all(b"<<<<<<<" in path.read_bytes() for path in broken)
    stored, before = listing(story.store), listing(story.workspace)
    found = json.loads(story.reconcile("--json", code=4).stdout)
    assert {(item["unit"], item["reason"]) for item in found["held"]} == {
        ("stream", "invalid"),
        ("metadata", "invalid"),
    }
    assert listing(story.store) == stored
    assert listing(story.workspace) == before
    assert {digest_of(path) for path in broken} <= contents(story.vault)


def test_writes_to_the_workspace_wait_for_the_end_of_a_merge(story: World) -> None:
    conflicted(story)
    (stored,) = story.store.glob(f"{OTHER}*")
    append(stored, 5, "k", LONG_AGO + 200 * SECOND)
    append(place(story, CHILD), 1, "j", LONG_AGO + 200 * SECOND)
    found = json.loads(story.reconcile("--json", code=4).stdout)
    assert "git-busy" in {item["reason"] for item in found["held"]}
    assert story.event_count(OTHER, story.workspace) == 4
    assert story.event_count(CHILD) == 7, "what saves into the store is done all the same"
    git(story.project, "checkout", "-q", "--ours", ".")
    git(story.project, "add", "-A")
    git(story.project, "commit", "-qm", "merged")
    story.reconcile()
    assert story.event_count(OTHER, story.workspace) == 9
    assert story.event_count(PARENT) == story.event_count(PARENT, story.workspace) == 9

"""Old versions that no run has seen: git's own history tells which of two contents is the older one."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tests.support.projects.git_world import commit, git
from tests.support.projects.world import LONG_AGO, SECOND, events, write_conversation, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

ONE = 17500000001


def configure(world: World, text: str, number: int = ONE) -> None:
    """Give a conversation another base configuration; its events stay."""
    write_json(place_of(world, number) / "base_config.json", {"assistant": {"name": text}}, LONG_AGO + 9 * SECOND)


def place_of(world: World, number: int = ONE) -> Path:
    (found,) = (path.parent for path in world.workspace.rglob(f"{number}*/events.json"))
    return found


def stored(world: World, name: str = "base_config.json", number: int = ONE) -> Any:
    (found,) = world.store.rglob(f"{number}*/{name}")
    return json.loads(found.read_bytes())


def called(world: World) -> str:
    """Return which base configuration the store has."""
    name = stored(world)["assistant"]["name"]
    assert isinstance(name, str)
    return name


def reasons(world: World) -> set[tuple[str, str]]:
    found = json.loads(world.reconcile("--json").stdout)
    assert not [item for item in found["notes"] if item["reason"] == "conflict"]
    return {(item["unit"], item["reason"]) for item in found["aside"]}


@pytest.fixture
def versions(world: World) -> World:
    """A repository with the versions `first` to `fourth` of one conversation, which differ in their base alone."""
    write_conversation(world.workspace / f"{ONE}-one", "One", events(3))
    git(world.project, "init", "-q", ".")
    for name in ("first", "second", "third", "fourth"):
        configure(world, name)
        commit(world, name)
        git(world.project, "tag", name)
    return world


def go(world: World, to: str, *options: str) -> None:
    git(world.project, "checkout", "-q", *options, to)
    now_ns = os.stat(place_of(world) / "events.json").st_mtime_ns
    for path in place_of(world).iterdir():
        assert path.stat().st_mtime_ns >= min(now_ns, LONG_AGO)


def test_an_older_commit_that_no_run_has_seen_is_set_aside(versions: World) -> None:
    versions.reconcile()
    for name in ("second", "first", "third"):
        go(versions, name)
        assert reasons(versions) == {("stream", "behind-aside")}
        assert called(versions) == "fourth"
        assert git(versions.project, "status", "--porcelain") == ""
    go(versions, "main")
    assert reasons(versions) == set()
    assert called(versions) == "fourth"


def kept(world: World) -> list[tuple[Path, int, int]]:
    """Return the files that hold what git said of the history."""
    return [(path, path.stat().st_ino, path.stat().st_mtime_ns) for path in world.state.rglob("git-*")]


def test_what_git_said_is_kept_until_it_says_something_else(versions: World) -> None:
    versions.reconcile()
    assert kept(versions) == [], "there was no doubt"
    go(versions, "second")
    assert [action["reason"] for action in versions.plan()["actions"]] == ["behind"]
    assert kept(versions) == [], "a dry run writes nothing"
    assert reasons(versions) == {("stream", "behind-aside")}
    (first,) = kept(versions)
    git(versions.project, "checkout", "-q", "first", "--", ".")
    assert reasons(versions) == {("stream", "behind-aside")}
    assert kept(versions) == [first], "another old version, and the same commits"
    git(versions.project, "checkout", "-q", "-f", "third")
    assert reasons(versions) == {("stream", "behind-aside")}
    (second,) = kept(versions)
    assert second != first
    assert second[0] == first[0]


def test_a_newer_commit_is_taken_whatever_the_times(versions: World) -> None:
    go(versions, "second")
    versions.reconcile()
    go(versions, "main")
    for path in place_of(versions).iterdir():
        os.utime(path, ns=(LONG_AGO // 2, LONG_AGO // 2))
    assert reasons(versions) == set()
    assert called(versions) == "fourth"


def test_a_new_clone_at_an_older_commit_and_one_at_a_newer_one(versions: World, tmp_path: Path) -> None:
    """Neither has anything that was agreed on."""
    go(versions, "second")
    versions.reconcile()
    clones = {}
    for name in ("first", "third"):
        git(tmp_path, "clone", "-q", "-b", name, str(versions.project), name)
        clones[name] = replace(versions, project=tmp_path / name)
    assert reasons(clones["first"]) == {("stream", "behind-aside")}
    assert called(versions) == "second"
    assert reasons(clones["third"]) == set()
    assert called(versions) == "third"


def test_a_later_commit_in_one_worktree_makes_no_change_in_another(versions: World, tmp_path: Path) -> None:
    """git brings it there too, and would refuse to where a run had done so."""
    go(versions, "second")
    versions.reconcile()
    tree = replace(versions, project=tmp_path / "tree")
    git(versions.project, "worktree", "add", "-q", "--detach", str(tree.project), "second")
    assert reasons(tree) == set()
    go(versions, "fourth")
    versions.reconcile()
    assert called(versions) == "fourth"
    assert reasons(tree) == {("stream", "behind-aside")}
    assert git(tree.project, "status", "--porcelain") == ""
    go(tree, "third")
    assert reasons(tree) == {("stream", "behind-aside")}
    go(tree, "fourth")
    assert reasons(tree) == set()
    assert called(versions) == "fourth"

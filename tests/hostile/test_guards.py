"""What a run refuses when a side as a whole looks wrong: with the reason and the way on, and nothing is changed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import contents, events, listing, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.support.projects.world import World

NUMBER = 17500000001
MANY = 9


@pytest.fixture
def world(world: World) -> World:
    for at in range(MANY):
        write_conversation(world.workspace / f"{NUMBER + at}-it", "It", events(3))
    world.reconcile()
    (world.silo / "storage").symlink_to(world.project / ".jp")
    return world


def refused(world: World, result: Result, *words: str) -> None:
    """One line with what was found and expected, one with what to do; exit code 2."""
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 2, result.stderr
    assert result.stderr.splitlines()[1].startswith("hint: ")
    for word in words:
        assert word in result.stderr


def put_id(world: World, text: str) -> None:
    (world.project / ".jp" / ".id").write_text(f"x\n{text}\n")


@pytest.mark.parametrize("words", [[], ["-n"], ["status"], ["ls"]])
def test_an_id_that_was_changed_begins_no_new_store(world: World, words: list[str]) -> None:
    """A branch with another .id, or an editor: the store of the old id is linked to this workspace."""
    silos, kept = world.silo.parent, world.kept()
    put_id(world, "zz9zz")
    refused(world, world.run(*words, "--workspace", world.project), "zz9zz", "ab1cd", "--store")
    assert [path.name for path in silos.iterdir()] == ["project-ab1cd"]
    put_id(world, "ab1cd")
    assert kept <= world.kept()
    world.reconcile("--check")


def test_a_new_id_that_jp_has_made_a_store_for_is_meant(world: World) -> None:
    silos = world.silo.parent
    put_id(world, "zz9zz")
    (silos / "project-zz9zz").mkdir()
    world.reconcile()
    assert len(list((silos / "project-zz9zz" / "conversations").iterdir())) == MANY


def test_a_new_id_with_a_store_of_the_users_choice(world: World, tmp_path: Path) -> None:
    put_id(world, "zz9zz")
    (tmp_path / "chosen").mkdir()
    result = world.run("--workspace", world.project, "--store", tmp_path / "chosen")
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "chosen" / "conversations").iterdir())) == MANY


def test_a_store_that_belongs_to_another_workspace(world: World) -> None:
    other = make_project(world.project.with_name("other"), world.run)
    put_id(other, "ot4er")
    write_conversation(other.workspace / f"{NUMBER + 50}-other", "Other", events(2))
    before = listing(world.store)
    result = other.run("--workspace", other.project, "--store", world.silo)
    refused(other, result, "ab1cd", "ot4er", str(world.project / ".jp"))
    assert listing(world.store) == before
    other.reconcile()


def test_a_worktree_of_the_same_workspace_shares_its_store(world: World) -> None:
    other = make_project(world.project.with_name("other"), world.run)
    result = other.run("--workspace", other.project, "--store", world.silo)
    assert result.exit_code == 0, result.output


def test_a_link_that_leads_nowhere_says_nothing(world: World) -> None:
    (world.silo / "storage").unlink()
    (world.silo / "storage").symlink_to("/nonexistent/.jp")
    result = world.run("--workspace", world.project, "--store", world.silo)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (".jp", "they are the same directory"),
        (".jp/store", "the store is inside the workspace"),
        (".jp/conversations/store", "the store is inside the workspace"),
    ],
)
def test_roots_that_overlap(world: World, store: str, words: str) -> None:
    (world.project / store).mkdir(exist_ok=True)
    before = listing(world.workspace)
    refused(world, world.run("--workspace", world.project, "--store", world.project / store), words)
    link = world.project / "link"
    link.symlink_to(world.project / store)
    refused(world, world.run("--workspace", world.project, "--store", link), words)
    assert listing(world.workspace) == before


@pytest.mark.parametrize("where", ["store", "workspace"])
def test_the_state_inside_a_side(world: World, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = world.silo if where == "store" else world.project / ".jp"
    monkeypatch.setenv("RECONCILE_STATE_DIR", str(place / "state"))
    for words in ([], ["-n"], ["status"]):
        refused(world, world.run(*words, "--workspace", world.project), "RECONCILE_STATE_DIR")
    assert not (place / "state").exists()


@pytest.mark.parametrize("how", ["emptied", "gone", "not mounted"])
@pytest.mark.parametrize("side", ["store", "workspace"])
def test_a_side_that_is_empty_or_gone_is_no_removal(world: World, side: str, how: str) -> None:
    """The store is filled again, the workspace waits for `recover`; the other side stays as it is."""
    path, other = (world.store, world.workspace) if side == "store" else (world.workspace, world.store)
    before = contents(other)
    if how == "not mounted":  # the bare directory that the file system was mounted on
        os.rename(path, path.with_name("unmounted"))
        path.mkdir()
    elif how == "gone":
        shutil.rmtree(path)
    else:
        for each in path.iterdir():
            shutil.rmtree(each)
    for _ in range(2):
        result = world.run("--workspace", world.project)
        assert result.exit_code in (0, 4), result.output
        assert contents(other) == before
    assert contents(path) == (before if side == "store" else set())


def test_many_removals_at_once_are_asked_for(world: World) -> None:
    for at in range(MANY - 2):
        shutil.rmtree(world.store / f"{NUMBER + at}-it")
    before = contents(world.workspace)
    result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    assert "--allow-bulk-removal" in result.output
    assert contents(world.workspace) == before
    world.reconcile("--allow-bulk-removal")
    assert len(list(world.workspace.iterdir())) == 2

"""A symbolic link that comes to be in the place of a side's `conversations` while a workspace is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile import PersistError, UnreadableError, Workspace
from reconcile.adapters.roots import LocateError
from tests.support.library.conversations import check, mutable, say, texts
from tests.support.projects.three_conversations import FIRST, THIRD
from tests.support.projects.world import events, write_conversation
from tests.support.scenarios.disk_level import read_directory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

STRANGE = 17500000009


@pytest.fixture(params=["store", "workspace"])
def side(request: pytest.FixtureRequest, world: World) -> Path:
    found: Path = getattr(world, request.param)
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that nobody has named, with a conversation of somebody else."""
    found = tmp_path / "outside"
    write_conversation(found / f"{STRANGE}-strange", "Strange", events(2))
    return found


def replace_by_link(side: Path, outside: Path) -> Path:
    """Put a link in the place of a side's directory; return where that has gone."""
    away = side.with_name("away")
    side.rename(away)
    side.symlink_to(outside)
    return away


def test_what_a_link_leads_to_is_not_listed(world: World, workspace: Workspace, side: Path, outside: Path) -> None:
    away = replace_by_link(side, outside)
    with pytest.raises(LocateError, match=f"{side}: a symbolic link, which is never followed"):
        workspace.refresh()
    assert f"jp-c{STRANGE}" not in [each.id for each in workspace.conversations()]
    side.unlink()
    away.rename(side)
    workspace.refresh()
    check(world)
    assert not list(world.store.glob(f"{STRANGE}*"))


def test_what_a_link_leads_to_is_not_read(workspace: Workspace, side: Path, outside: Path) -> None:
    """It has the very conversation, with other words in it."""
    third = workspace.acquire(str(THIRD))
    replace_by_link(side, outside)
    write_conversation(outside / f"{THIRD}-third", "Another one", events(1))
    with pytest.raises((LocateError, UnreadableError), match="symbolic link"):
        workspace.metadata(third)


def test_nothing_is_written_through_a_link(world: World, workspace: Workspace, side: Path, outside: Path) -> None:
    """A conversation that was open already isn't written, and no new one is made."""
    mut = mutable(workspace, FIRST)
    say(mut, "through")
    away, before = replace_by_link(side, outside), read_directory(outside)
    with pytest.raises(PersistError, match="symbolic link") as raised:
        mut.close()
    assert raised.value.versions
    with pytest.raises((LocateError, PersistError), match="symbolic link"), workspace.create_conversation() as new:
        say(new, "hello")
    assert read_directory(outside) == before
    assert not list((world.store if side != world.store else away).glob(f"{STRANGE}*"))
    side.unlink()
    away.rename(side)
    with mutable(workspace, FIRST) as mut:
        say(mut, "again")
    check(world)


def test_a_store_may_be_a_link_from_the_start(world: World, outside: Path) -> None:
    """It is the user's own, and may lie on another disk; from then on it leads where it led."""
    away = replace_by_link(world.store, outside)
    world.store.unlink()
    world.store.symlink_to(away)
    with Workspace.open(world.project) as workspace:
        with mutable(workspace, FIRST) as mut:
            say(mut, "elsewhere")
        world.store.unlink()
        world.store.symlink_to(outside)
        before = read_directory(outside)
        with mutable(workspace, FIRST) as mut:
            say(mut, "still there")
        workspace.refresh()
        assert f"jp-c{STRANGE}" not in [each.id for each in workspace.conversations()]
    assert read_directory(outside) == before
    assert texts(next(away.glob(f"{FIRST}*")))[-2:] == ["elsewhere", "still there"]

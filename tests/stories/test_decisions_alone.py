"""Commands that change no file: they record a decision, and their report and their dry run say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.projects.three_conversations import FIRST, three
from tests.support.projects.world import LONG_AGO, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

ID = f"jp-c{FIRST}"


def test_a_local_conversation_that_is_published_where_it_still_is(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    other = make_project(tmp_path / "other", run)
    three(other)
    other.reconcile()
    world.reconcile("local", ID)
    for words in (("--dry-run",), ()):
        shown = other.reconcile("project", ID, *words, settled=False).stdout
        assert f"{ID}: no longer local, in any checkout; its copy here is published" in shown
        assert "\nNo file to change. 1 conversation: 1 up to date.\n" in shown
    again = other.reconcile("project", ID).stdout
    assert "no longer local" not in again
    assert "Nothing to do. 1 conversation: 1 up to date.\n" in again


def test_a_conversation_of_the_store_that_is_made_local(world: World) -> None:
    three(world)
    write_conversation(world.store / "17500000009-letter", "Letter", events(2), mtime_ns=LONG_AGO)
    world.reconcile()
    for words in (("--dry-run",), ()):
        shown = world.reconcile("local", "17500000009", *words, settled=False).stdout
        assert "jp-c17500000009: local from now on, in every checkout; it is not in this workspace" in shown
        assert "\nNo file to change. 1 conversation: 1 local.\n" in shown
    assert "Nothing to do. 1 conversation: 1 local.\n" in world.reconcile("local", "17500000009").stdout

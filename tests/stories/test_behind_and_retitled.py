"""A title that was edited while git has brought back older events: both are shown, and neither is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.projects.three_conversations import FIRST, three
from tests.support.projects.world import LONG_AGO, SECOND, append, set_key

if TYPE_CHECKING:
    from tests.support.projects.world import World

ID = f"jp-c{FIRST}"
OLDER = "the workspace has an older version; the store keeps the newer one"


def behind(world: World) -> None:
    """Make the workspace's events older by two, and its title another one."""
    three(world)
    world.reconcile()
    events = world.workspace / f"{FIRST}-it" / "events.json"
    old = events.read_bytes()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    world.reconcile()
    events.write_bytes(old)
    world.reconcile(settled=False)
    set_key(world.workspace / f"{FIRST}-it", "title", "Mine", LONG_AGO + 9 * SECOND)


def shown(world: World, *words: str) -> str:
    return str(world.run(*words, "-w", world.project).stdout)


def status(world: World) -> dict[str, Any]:
    answer = json.loads(shown(world, "status", "--json", "-v"))
    (line,) = (each for each in answer["conversations"] if each["conversation"] == ID)
    return {key: line[key] for key in ("word", "detail", "settled")}


def titles(world: World) -> list[str]:
    paths = [path for side in (world.store, world.workspace) for path in side.glob(f"{FIRST}-*/metadata.json")]
    return [json.loads(path.read_bytes())["title"] for path in paths]


def test_both_are_shown_and_a_run_saves_the_title(world: World) -> None:
    behind(world)
    assert status(world) == {
        "word": "behind",
        "detail": f"metadata: edited in the workspace; {OLDER}",
        "settled": False,
    }
    compared = shown(world, "diff", str(FIRST))
    assert ('+ workspace  "Mine"' in compared, "- 5. User" in compared) == (True, True)
    world.reconcile(settled=False)
    assert titles(world) == ["Mine", "Mine"]
    assert status(world) == {"word": "behind", "detail": OLDER, "settled": True}


def test_the_newer_events_are_written_and_the_title_stays(world: World) -> None:
    behind(world)
    world.reconcile("project", "--behind")
    assert titles(world) == ["Mine", "Mine"]
    (store,), (workspace,) = (side.glob(f"{FIRST}-*/events.json") for side in (world.store, world.workspace))
    assert store.read_bytes() == workspace.read_bytes()
    assert len(json.loads(store.read_bytes())) == 5


def test_two_titles_are_a_conflict_as_elsewhere(world: World) -> None:
    behind(world)
    set_key(world.store / f"{FIRST}-it", "title", "Theirs", LONG_AGO + 8 * SECOND)
    line = status(world)
    assert (line["word"], line["settled"]) == ("conflict", False)
    assert line["detail"].startswith("metadata (title): store ")
    assert line["detail"].endswith(OLDER)
    world.reconcile("project", "--behind")
    assert titles(world) == ["Mine", "Mine"]
    run = json.loads(shown(world, "log", "--json"))["runs"][0]["id"]
    assert f"reconcile restore {ID}@{run}:metadata" in status(world)["detail"]

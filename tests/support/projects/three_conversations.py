"""Three conversations, and what became of them: what stories of races and of saved plans begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.projects.world import events, write_conversation

if TYPE_CHECKING:
    from tests.support.projects.world import World

FIRST, SECOND_ID, THIRD = 17500000001, 17500000002, 17500000003


def three(world: World, parent: int | None = None) -> None:
    """Write three conversations; the second may be a child."""
    for number in (FIRST, SECOND_ID, THIRD):
        above = parent if number == SECOND_ID else None
        write_conversation(world.workspace / f"{number}-it", "It", events(3), parent=above)


def results(found: dict[str, Any]) -> dict[str, set[tuple[str, str | None]]]:
    """Return what became of each conversation's actions."""
    by_id = {action["id"]: action["conversation"] for action in found["actions"]}
    outcome: dict[str, set[tuple[str, str | None]]] = {}
    for result in found["outcome"]["results"]:
        outcome.setdefault(by_id[result["id"]], set()).add((result["result"], result["reason"]))
    return outcome

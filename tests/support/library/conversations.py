"""What the tests of the library have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reconcile import ConversationLock, ConversationMut, Events, Workspace, new_event
from tests.support.projects.three_conversations import FIRST
from tests.support.projects.world import assert_sound

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World


def locked(workspace: Workspace, number: int = FIRST, timeout: float = 10.0) -> ConversationLock:
    """Lock a conversation that must be free."""
    lock = workspace.lock_conversation(workspace.acquire(str(number)), timeout=timeout)
    assert lock is not None
    return lock


def mutable(workspace: Workspace, number: int = FIRST) -> ConversationMut:
    return locked(workspace, number).into_mut()


def say(mut: ConversationMut, text: str) -> int:
    """Append an event; return how many there are by then."""

    def append(events: Events) -> int:
        events.append(new_event("chat_request", content=text))
        return len(events)

    return mut.update_events(append)


def texts(directory: Path) -> list[str]:
    """Return what the events of a directory say."""
    return [event.get("content", "") for event in read(directory / "events.json")]


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def directory(side: Path, number: int) -> Path:
    """Return the one directory of a conversation on a side."""
    (found,) = (path.parent for path in side.rglob(f"{number}*/metadata.json"))
    return found


def check(world: World) -> None:
    """Demand that a run finds nothing to do, and nothing to say; a workspace may be open."""
    assert_sound(world)
    found = world.run("--workspace", world.project, "--check", "--json")
    plan = json.loads(found.stdout)
    assert (found.exit_code, plan["actions"], plan["held"], plan["notes"]) == (0, [], [], []), plan
    assert not found.stderr, found.stderr

"""What a program does with the library, step by step, and what must hold of each step that has returned.

``python -m tests.support.library.story PROJECT FILE`` writes the name of each step that has returned to a file.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from reconcile import PROMOTE, Workspace
from tests.support.library.conversations import mutable, say
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("append", "retitle", "both", "create", "remove")


def story(project: str, done: Callable[[str], object]) -> None:
    """Append, rename with a child inside, change both files at once, make a child, and remove a parent."""
    with Workspace.open(project) as workspace:
        with mutable(workspace) as mut:
            say(mut, "appended")
            mut.flush()
            done("append")
            mut.update_metadata(lambda metadata: metadata.update(title="Retitled"))
            mut.flush()
            done("retitle")
        with mutable(workspace, THIRD) as mut:
            mut.update(lambda builder: (builder.metadata.update(zzz=1), builder.events.pop()))
        done("both")
        with workspace.create_conversation(parent=workspace.acquire(str(SECOND_ID)), title="Made") as mut:
            say(mut, "made")
        done("create")
        with mutable(workspace, FIRST) as mut:
            workspace.remove_conversation(mut, PROMOTE)
        done("remove")


def found(workspace: Workspace) -> set[str]:
    """Return the steps that hold by what is there; what was removed holds whatever was done to it."""
    there = {each.id: each for each in workspace.conversations()}
    first, third = there.get(f"jp-c{FIRST}"), there[f"jp-c{THIRD}"]
    held = set()
    if first is None:
        return {*NAMES}
    if any(event.get("content") == "appended" for event in workspace.events(first)):
        held.add("append")
    if workspace.metadata(first)["title"] == "Retitled":
        held.add("retitle")
    if workspace.metadata(third).get("zzz") == 1 and len(workspace.events(third)) == 2:
        held.add("both")
    if any(workspace.metadata(each).get("title") == "Made" for each in there.values()):
        held.add("create")
    return held


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8", buffering=1) as file:
        story(sys.argv[1], lambda name: file.write(f"{name}\n"))

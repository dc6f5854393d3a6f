"""A program that uses the library: appends events to one conversation, and to a parent and its child at once.

``python -m tests.support.library.writer PROJECT NAME FIRST COUNT ALONE PARENT CHILD`` prints a line for every flush
that has returned: the conversation and the number of the event. Numbers from FIRST on, COUNT of them for each.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial

from reconcile import Events, Workspace, new_event


def append(text: str, events: Events) -> None:
    events.append(new_event("chat_request", content=text))


def main(project: str, name: str, first: str, count: str, alone: str, *family: str) -> None:
    """Write."""
    with Workspace.open(project) as workspace:
        targets = [(alone,), family]
        for number in range(int(first), int(first) + int(count)):
            for group in targets:
                with ExitStack() as stack:
                    for conversation in group:
                        lock = workspace.lock_conversation(workspace.acquire(conversation), timeout=None)
                        assert lock is not None
                        mut = stack.enter_context(lock.into_mut())
                        mut.update_events(partial(append, f"{name} {number}"))
                for conversation in group:
                    print(conversation, number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

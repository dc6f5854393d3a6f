"""The store's and the workspace's version of one file in one, where no common past is known.

Both functions give the same bytes whichever version comes first, and a version that was joined already adds nothing:
two worktrees come to the same file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.core.model import Fault
from reconcile.formats import javascript
from reconcile.formats.claudesidian.events import clashing, is_held_by, read_events, unite
from reconcile.formats.claudesidian.items import Item, read_item
from reconcile.formats.claudesidian.union import united
from reconcile.formats.claudesidian.words import some

if TYPE_CHECKING:
    from reconcile.formats.claudesidian.items import Kind


def join_events(path: str, store: bytes, workspace: bytes) -> bytes | Fault:
    """A file that has all events of the other as it is, the longer one where each has; else both tails, by event.

    A fault where they say different things, or where a line that is no event stands among the events of one: what it
    was, and where it belongs, only a person can tell.
    """
    mine, theirs = read_events(store), read_events(workspace)
    whole = [
        content
        for content, file, other in ((store, mine, theirs), (workspace, theirs, mine))
        if is_held_by(other, file)
    ]
    if whole:
        return max(whole, key=lambda content: (len(content), content))
    if different := clashing(mine, theirs):
        return Fault(path, f"events that differ between the sides: {some(different)}", "each event only once")
    both = unite(mine, theirs)
    if both is None:
        lines = {line.number for line in (*mine.unreadable, *theirs.unreadable) if not line.torn}
        found = f"no event in line {', '.join(map(str, sorted(lines)))}, and events that only one side has"
        return Fault(path, found, "one JSON object in each line")
    return both


def join_items(kind: Kind, name: str, store: bytes, workspace: bytes) -> bytes | None:
    """All sessions, traces, states or messages of both; where both say something else, the later is right.

    The program writes whole files without a lock, so of two that were edited each may lack what the other has (C6), and
    the newest alone would take it away. The price: what one side has deleted comes back, if the other was edited too.
    None: two records with different ids, or bytes that the program has not written.
    """
    mine, theirs = (read_item(kind, name, content) for content in (store, workspace))
    if isinstance(mine, Fault) or isinstance(theirs, Fault) or mine.id != theirs.id:
        return None
    if not (_is_exact(mine, store) and _is_exact(theirs, workspace)):
        return None
    return javascript.stringify(united(kind, mine.value, theirs.value))


def _is_exact(item: Item, content: bytes) -> bool:
    return javascript.stringify(item.value) == content

"""The store's and the workspace's version of one file in one, where no common past is known.

Both functions give the same bytes whichever version comes first, and a version that was joined already adds nothing:
two worktrees come to the same file.
"""

from __future__ import annotations

from reconcile.formats.claudesidian.events.parse import clashing, is_held_by, lacks_events, read_events, unite
from reconcile.formats.claudesidian.record_files import Item, Kind, messages_of, read_item
from reconcile.formats.claudesidian.repair import lacking
from reconcile.formats.claudesidian.union import united
from reconcile.formats.claudesidian.words import some
from reconcile.formats.json import javascript
from reconcile.model.snapshot import Fault


def join_events(path: str, store: bytes, workspace: bytes) -> bytes | Fault:
    """A file that has all events of the other as it is, the longer one where each has; else both tails, by event.

    A fault where they say different things, or where git has put its marks: what is right only a person can tell.
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
        found = "git's marks of a conflict, and events that only one side has"
        return Fault(path, found, "one JSON object in each line")
    return both


def loses_events(before: bytes, after: bytes) -> bool:
    """Tell whether an event file has lost some, which its program never removes."""
    return lacks_events(read_events(before), read_events(after))


def join_items(kind: Kind, name: str, store: bytes, workspace: bytes) -> bytes | None:
    """All sessions, traces, states or messages of both; where both say something else, the later is right.

    The program writes whole files without a lock, so of two that were edited each may lack what the other has
    (docs/design/formats/claudesidian.md#c6), and the newest alone would take it away. The price: what one side has
    deleted comes back. None: two records with different ids, or bytes that the program has not written.
    """
    mine, theirs = (read_item(kind, name, content) for content in (store, workspace))
    if isinstance(mine, Fault) or isinstance(theirs, Fault) or mine.id != theirs.id:
        return None
    if not (_is_exact(mine, store) and _is_exact(theirs, workspace)):
        return None
    return javascript.stringify(united(kind, mine.value, theirs.value))


def loses_entries(kind: Kind, name: str, before: bytes, after: bytes) -> bool:
    """Tell whether an edit has lost sessions, traces, states or messages.

    The program may have deleted them, or written the file back as it was before somebody else added them. Nothing in
    the file tells which, so they count as lost.
    """
    old, new = (read_item(kind, name, content) for content in (before, after))
    if isinstance(old, Fault) or isinstance(new, Fault):
        return False
    if kind is Kind.WORKSPACE:
        return bool(lacking(new.value, old.value))
    known, left = ({str(each.get("id")) for each in messages_of(item.value)} for item in (old, new))
    return not known <= left


def _is_exact(item: Item, content: bytes) -> bool:
    return javascript.stringify(item.value) == content

"""From the path of an event to the conversation it is about, and the directories to look at again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.inspect.stray_files import STAGING
from reconcile.model.format import Entry
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, TRASH

if TYPE_CHECKING:
    from reconcile.model.format import Format, Places


class Heard(NamedTuple):
    """``conversation`` is empty where the path is that of no conversation."""

    conversation: str
    places: tuple[str, ...]


def heard(fmt: Format, path: str) -> Heard | None:
    """Return what a path, relative to the directory of the conversations, says; None: it is nobody's business.

    A conversation's directory, which may have come or gone, is named itself: to list the directory around it would cost
    as much as there are others in it.
    """
    if fmt.places is not None:
        return _heard_of_record(fmt.places, path)
    names = path.split("/") if path else []
    owner, level = "", ""
    while names:
        name = names.pop(0)
        inner = f"{level}/{name}" if level else name
        if name in (ARCHIVE, TRASH):
            if not names:
                return Heard(owner, (inner,))
            level = inner
            continue
        conversation = None if name.startswith(".") else fmt.id_of(name)
        if conversation is None:
            return None if name.startswith(".") else Heard(owner, (level,))
        if not names:
            return Heard(conversation, (inner,))
        if names[0] != CHILDREN:
            return None if names[-1].startswith(STAGING) else Heard(conversation, (inner,))
        names.pop(0)
        owner, level = conversation, f"{inner}/{CHILDREN}"
        if not names:
            return Heard(conversation, (inner, level))
    return Heard(owner, (level,))


def _heard_of_record(places: Places, path: str) -> Heard | None:
    """Return the record that a path is, or lies in; what it is by now, a file or a directory, isn't known."""
    level = ""
    for name in path.split("/") if path else ():
        level = f"{level}/{name}" if level else name
        kinds = {places.entry(level, directory=each) for each in ((True,) if level != path else (True, False))}
        if Entry.RECORD in kinds:
            return Heard(level, (level,))
        if Entry.ENTER not in kinds:
            return None if kinds == {Entry.IGNORED} else Heard("", (level,))
    return Heard("", (level,))

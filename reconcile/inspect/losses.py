"""The conversations that a pass finds removed from the workspace, while the store keeps them."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.inspect.short_ids import short_ids_at
from reconcile.model.baseline import IntentKind
from reconcile.model.commands import typed
from reconcile.model.plan import counted_as
from reconcile.model.snapshot import Metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.engine.engine import Pass
    from reconcile.engine.session import Session
    from reconcile.model.snapshot import Snapshot

_NAMED = 3
"""Conversations that a line names by title and that its command names by id."""


class Losses(NamedTuple):
    """The titles of removed conversations by id, in the order of a listing.

    ``beside``: by id, the titles of conversations that are still there, and how many files beside each were removed.
    ``along``: the removed files beside removed conversations, which come back with them.
    ``uncounted``: the removed records that are no conversations, such as notes.
    ``is_usual``: the program of this workspace removes conversations by itself, so that a person may not know of it.
    """

    titles: Mapping[str, str]
    beside: Mapping[str, tuple[str, int]]
    along: frozenset[str]
    uncounted: frozenset[str]
    noun: str
    way_back: str
    short: Mapping[str, str]
    is_usual: bool

    def words(self, sides: str) -> str:
        """Return one sentence for all of them: titles, and the command that restores them with ``sides`` at its end."""
        files = len(self.uncounted) + sum(count for _, count in self.beside.values())
        counts = ((len(self.titles) - len(self.uncounted), self.noun), (files, "file"))
        parts = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count]
        which, are, them = ("was", "is", "it") if parts in (["1 file"], [f"1 {self.noun}"]) else ("were", "are", "them")
        what = f"{' and '.join(parts)} {which} removed from the workspace, and {are} in the store"
        names = (*self.titles.values(), *(f"{count} of {title}" for title, count in self.beside.values()))
        return f"{what}: {some_titles(names)}; restore {them}: {self.command}{sides}"

    @property
    def command(self) -> str:
        """The command that restores them: of a few by their ids, which asks nothing."""
        named = (*self.titles, *self.beside)
        if len(named) > _NAMED:
            return "reconcile recover"
        return f"reconcile {self.way_back} {typed(*(self.short.get(each, each) for each in named))}"


def losses_of(session: Session, pass_: Pass) -> Losses | None:
    """Return what a pass is the first to find removed; None if that is nothing, or was removed on request.

    None also of a folder for colleagues: one of them may have withdrawn it, which another command decides.
    """
    places, plan = session.format.places, pass_.plan
    removed = {id_ for id_, intent in plan.intents if intent is not None and intent.kind is IntentKind.REMOVED}
    if not removed or plan.policy.request is not None or (places is not None and places.is_for_others):
        return None
    removed -= _moved(session, removed)
    if not removed:
        return None
    owners = {id_: counted_as(id_, places) for id_ in removed}
    # Of a record with the files beside it, only the record is named.
    beside = Counter(owner for owner in owners.values() if owner not in removed)
    named = {id_ for id_, owner in owners.items() if owner == id_}
    left = titles_in(pass_.world.store, set(beside))
    return Losses(
        titles_in(pass_.world.store, named),
        {id_: (title, beside[id_]) for id_, title in left.items()},
        frozenset(id_ for id_, owner in owners.items() if owner != id_ and owner in removed),
        frozenset(() if places is None else (id_ for id_ in named if places.counted_as(id_) is None)),
        session.roots.noun,
        "project" if places is None else places.way_back,
        short_ids_at(session.roots, {*named, *beside}),
        places is not None and places.deletes_old,
    )


def _moved(session: Session, removed: set[str]) -> set[str]:
    """Return those of sessions that another project of Claude Code has now: they are not lost, nor restored here."""
    if session.format.name != FORMAT:
        return set()
    from reconcile.adapters.claude_code.directories import held_elsewhere  # here, as below: few runs meet a loss
    from reconcile.adapters.claude_code.projects import live_directory
    from reconcile.formats.claude_code.names import directory_name

    known = {directory_name(each.project) for each in session.state.checkouts() if os.path.isdir(each.project)}

    def is_there(directory: str) -> bool:
        live = live_directory(directory)
        project = None if live is None else live.project
        return os.path.basename(directory) in known or (project is not None and os.path.isdir(project))

    try:
        elsewhere = {owner for owner, at in held_elsewhere(removed, session.roots.workspace).items() if is_there(at)}
    except OSError:
        return set()
    return {id_ for id_ in removed if counted_as(id_, session.format.places) in elsewhere}


def titles_in(store: Snapshot, named: set[str]) -> dict[str, str]:
    """Return the titles of conversations in a store by id, sorted by title; the id of one without a title."""
    found = dict.fromkeys(named, "")
    for copy in store.copies:
        if copy.conversation in found and isinstance(copy.metadata, Metadata):
            found[copy.conversation] = copy.metadata.title or ""
    titles = {id_: title or id_ for id_, title in found.items()}
    return dict(sorted(titles.items(), key=lambda pair: (pair[1], pair[0])))


def some_titles(titles: Iterable[str]) -> str:
    """Return the first titles of several, and the number of the others."""
    listed = list(titles)
    more = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f", and {more} more" if more > 0 else "")


def no_session_words(count: int, noun: str, sides: str) -> str:
    """Return the sentence about a workspace without any conversation whose store keeps some."""
    them = "it" if count == 1 else "them"
    return f"no {noun} is left in the workspace; the store keeps {count}; restore {them}: reconcile recover{sides}"

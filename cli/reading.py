"""The session and the conversations of a command that reads texts: `show`, `diff`, and others that spell versions."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconcile.inspect.sources import NoSourceError, Reading
from reconcile.model.snapshot import Side
from reconcile.state.directory import REMOTES

from .context import find_ids, policy_of, settings_of
from .run import opened, selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.engine.engine import Engine
    from reconcile.inspect.sources import Source
    from reconcile.model.snapshot import Copy
    from reconcile.planning.rules.views import SideView, View

    from .arguments import Options


@contextmanager
def opened_for_reading(options: Options) -> Iterator[Reading]:
    """Open both sides, and return the means to read versions of conversations."""
    with opened(options) as engine:
        yield reading_of(engine, options)


def views_that_differ(engine: Engine, options: Options) -> list[View]:
    """Return the conversations that both sides have with different content, in the order of a plan."""
    store, workspace = (engine.known.sides[side] for side in Side)
    there = set(workspace.conversations())
    both = (id_ for id_ in store.conversations() if id_ in there)
    ids = {id_ for id_ in both if _files(store.of(id_)) != _files(workspace.of(id_))}
    if not ids:
        return []
    policy = policy_of(options, settings_of(engine.session.roots), selection(engine, options))
    decided = engine.decide(engine.plan(policy, also=ids), policy)
    views = (decided.views[id_] for id_ in decided.order if id_ in ids)
    # JP strips the parent from the metadata, which is no difference.
    return [view for view in views if _digests(view.store) != _digests(view.workspace)]


def _files(copies: Iterable[Copy]) -> list[dict[str, str | None]]:
    return [{file.name: file.digest for file in copy.files} for copy in copies]


def _digests(side: SideView) -> dict[str, str | None]:
    return {name: unit.digest for name, unit in side.units.items()}


def reading_of(engine: Engine, options: Options) -> Reading:
    """Return the means to read versions of conversations with an open engine."""
    policy = policy_of(options, settings_of(engine.session.roots), selection(engine, options))
    views: dict[str, View] = {}

    def find(text: str) -> str:
        (conversation,) = find_ids(engine, [text])
        return conversation

    def view(conversation: str) -> View:
        if conversation not in views:
            decided = engine.decide(engine.plan(policy, also=[conversation]), policy).views
            if conversation not in decided:
                raise NoSourceError(f"{conversation} is on neither side", "list the saved versions: reconcile vault -v")
            views[conversation] = decided[conversation]
        return views[conversation]

    def elsewhere(name: str, place: str) -> tuple[Source, str] | None:
        if not os.path.isdir(os.path.join(engine.session.directory, REMOTES)):
            return None
        from .remotes.versions import remote_source  # here: most stores have no remote

        return remote_source(engine.session, find, name, place)

    return Reading(engine.session, find, view, elsewhere=elsewhere, is_id=engine.known.__contains__)

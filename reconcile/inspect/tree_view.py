"""The tree of the conversations with their states, and the contents of each, for a page that shows them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.jp.times import instant_ns
from reconcile.inspect.listing import status_by_id
from reconcile.inspect.sources import side_source, transcript_of
from reconcile.model.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconcile.engine.engine import Engine, Pass
    from reconcile.engine.session import Session
    from reconcile.inspect.listing import Survey
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View
    from reconcile.planning.status_listing import StatusLine


class Node(Struct, frozen=True):
    """One conversation of a tree.

    ``depth`` counts from 0. ``state`` and ``detail`` are those of `status`. ``events`` is None if the stream can't be
    read, and ``last_ms`` (since the epoch) if the last event has no readable time. ``is_private``: the workspace has no
    copy, or should have none.
    """

    conversation: str
    title: str | None
    depth: int
    state: str
    detail: str
    events: int | None
    last_ms: int | None
    where: str
    is_private: bool


class TreeView(Struct, frozen=True):
    """A tree of conversations, parents first.

    ``name`` is that of the project. ``archived`` counts the archived conversations, which are not in the tree.
    """

    name: str
    noun: str
    nodes: tuple[Node, ...]
    archived: int = 0


def tree_view(
    engine: Engine, pass_: Pass, context: PlanningContext, survey: Survey, order: Iterable[tuple[str, int]]
) -> TreeView:
    """Return the conversations of ``order``, which names them with their depths, in the states of a full pass."""
    session = engine.session
    lines = status_by_id(engine, pass_, context)
    nodes = tuple(_node(survey, id_, depth, lines.get(id_), context.views[id_]) for id_, depth in order)
    archived = sum(entry.archived for entry in survey.entries.values())
    name = os.path.basename(session.roots.project.rstrip(os.sep)) or session.roots.project
    return TreeView(name, session.roots.noun, nodes, archived)


def _node(survey: Survey, id_: str, depth: int, line: StatusLine | None, view: View) -> Node:
    entry = survey.entries[id_]
    instant = None if entry.last is None else instant_ns(entry.last)
    return Node(
        conversation=id_,
        title=entry.title,
        depth=depth,
        state="unreadable" if line is None else line.word,
        detail="" if line is None else line.detail,
        events=entry.events,
        last_ms=None if instant is None else instant // 10**6,
        where=entry.where,
        is_private=view.local or entry.where == "store",
    )


def read_transcripts(session: Session, view: TreeView, views: Mapping[str, View]) -> Iterator[Transcript]:
    """Yield the contents of a tree's conversations, in its order: the store's copy, or else the workspace's."""
    for node in view.nodes:
        of_both = views[node.conversation]
        copy = of_both.store.main or of_both.workspace.main
        yield Transcript(None) if copy is None else transcript_of(session.format, side_source(session, copy))

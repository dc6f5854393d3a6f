"""Listings of conversations for ``ls``: flat with a root column, roots only, a subtree, or the tree with lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.model.snapshot import Fault, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View


MAX_DRAWN = 16
"""Levels of a tree that are drawn with lines."""
_BRANCH = {False: "├── ", True: "└── "}
_INDENT = {False: "│   ", True: "    "}


class Row(Struct, frozen=True):
    """One conversation of a listing. ``root`` is the id at the top of its tree; ``where`` names the sides that have it.

    ``branch`` is the drawing before the title in a tree. ``last`` is the time of the last event as the file has it.
    ``events`` is None if the stream can't be read.
    """

    conversation: str
    title: str | None
    events: int | None
    last: str | None
    root: str
    parent: str | None
    where: str
    branch: str = ""


def flat(context: PlanningContext, *, archived: bool) -> tuple[Row, ...]:
    """Return every live conversation in the order of ids, or every archived one."""
    views = (view for view in context.views.values() if _exists(view) and view.archived == archived)
    return tuple(_row(context, view) for view in views)


def roots(context: PlanningContext) -> tuple[Row, ...]:
    """Return the live conversations without a parent."""
    return tuple(_row(context, context.views[root]) for root in context.tree.roots())


def below(context: PlanningContext, conversation: str) -> tuple[Row, ...]:
    """Return the descendants of a conversation, parents before children."""
    return tuple(_row(context, context.views[id_]) for id_ in context.tree.descendants(conversation))


def tree(context: PlanningContext, top: str | None = None, wanted: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the tree with its branches drawn: the whole tree, or the one with the root ``top``, or only ``wanted``.

    Rows deeper than `MAX_DRAWN` are not indented further, and show their depth as a number.
    """
    shown = context.tree.depths.keys() if wanted is None else wanted
    tops = (id_ for id_ in context.tree.walk() if id_ in shown and context.tree.parent_of(id_) not in shown)
    starts = tuple(tops) if top is None else (top,)
    for conversation, branch in draw_tree(
        starts, lambda parent: [child for child in context.tree.children_of(parent) if child in shown]
    ):
        yield _row(context, context.views[conversation], branch)


def draw_tree(starts: Sequence[str], children_of: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the trees below ``starts``, parents first: each node with the drawing before it."""
    stack = [(start, 0, "", "") for start in reversed(starts)]
    while stack:
        node, depth, branch, indent = stack.pop()
        yield node, branch
        children = children_of(node)
        for number, child in reversed(list(enumerate(children, 1))):
            last = number == len(children)
            if depth < MAX_DRAWN:
                stack.append((child, depth + 1, indent + _BRANCH[last], indent + _INDENT[last]))
            else:
                stack.append((child, depth + 1, f"{indent}{depth + 1}: ", indent))


def _exists(view: View) -> bool:
    return view.store.main is not None or view.workspace.main is not None


def sides_of(view: View) -> str:
    """Return which sides have a conversation: both, store, workspace or nowhere."""
    sides = (view.store.main is not None, view.workspace.main is not None)
    return {(True, True): "both", (True, False): "store", (False, True): "workspace"}.get(sides, "nowhere")


def _row(context: PlanningContext, view: View, branch: str = "") -> Row:
    copy = view.store.main or view.workspace.main
    stream = copy.stream if copy is not None else None
    return Row(
        conversation=view.id,
        title=view.title,
        events=None if isinstance(stream, Fault) else stream.count if stream is not None else 0,
        last=stream.last if isinstance(stream, Stream) else None,
        root=context.tree.tops.get(view.id, view.id),
        parent=context.tree.parent_of(view.id) if view.id in context.tree else None,
        where=sides_of(view),
        branch=branch,
    )

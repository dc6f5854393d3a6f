"""Listings of conversations for ``ls``: flat with a root column, roots only, a subtree, or the tree with lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.inspect.conversation import decided_conflicts, notices
from reconcile.model.snapshot import Fault, Stream
from reconcile.planning.rules.tree import TreeIndex
from reconcile.planning.status_listing import status_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from reconcile.engine.engine import Engine, Pass
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View
    from reconcile.planning.status_listing import StatusLine


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


class Entry(Struct, frozen=True):
    """One conversation of a survey, without its place in the tree; see `Row`."""

    title: str | None
    events: int | None
    last: str | None
    where: str
    archived: bool


class Survey(Struct, frozen=True):
    """All conversations in the order of ids, and the tree of the live ones."""

    entries: Mapping[str, Entry]
    tree: TreeIndex

    @classmethod
    def of(cls, context: PlanningContext) -> Survey:
        """Return the conversations that a board decides."""
        return cls({view.id: _entry_of(view) for view in context.views.values() if _exists(view)}, context.tree)


def survey(engine: Engine, pass_: Pass, context: PlanningContext) -> Survey:
    """Return every conversation: those of a pass as it decides, the others as the index knows them."""
    decided, fmt = Survey.of(context), engine.session.format
    if pass_.full:
        return decided
    entries = dict(decided.entries)
    parents = {id_: context.parentage[id_].parent for id_ in context.tree.depths}
    for entry in engine.clean_conversations(pass_):
        row, archived = entry.row, entry.is_archived
        where = "both" if entry.is_in_workspace else "store"
        entries[entry.conversation] = Entry(row.title, row.length, row.last, where, archived)
        if not archived:
            parents[entry.conversation] = row.parent
    ordered = {id_: entries[id_] for id_ in sorted(entries, key=fmt.order)}
    return Survey(ordered, TreeIndex(parents, fmt.order))


def status_by_id(engine: Engine, pass_: Pass, context: PlanningContext) -> dict[str, StatusLine]:
    """Return the status line of each conversation that a pass decides."""
    session = engine.session
    noticed = notices(session, decided_conflicts(session), context.views)
    empty = engine.empty_directories(pass_)
    lines = status_lines(context, engine.completed(pass_), session.busy(), noticed, empty)
    return {line.conversation: line for line in lines}


def states(engine: Engine, pass_: Pass, context: PlanningContext) -> dict[str, str]:
    """Return the state of each conversation, as `status` has it."""
    return engine.states_besides(pass_) | {id_: line.word for id_, line in status_by_id(engine, pass_, context).items()}


def flat(survey: Survey, *, archived: bool) -> tuple[Row, ...]:
    """Return every live conversation in the order of ids, or every archived one."""
    return tuple(_row(survey, id_) for id_, entry in survey.entries.items() if entry.archived == archived)


def roots(survey: Survey) -> tuple[Row, ...]:
    """Return the live conversations without a parent."""
    return tuple(_row(survey, root) for root in survey.tree.roots())


def below(survey: Survey, conversation: str) -> tuple[Row, ...]:
    """Return the descendants of a conversation, parents before children."""
    return tuple(_row(survey, id_) for id_ in survey.tree.descendants(conversation))


def tree(survey: Survey, top: str | None = None, wanted: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the tree with its branches drawn: the whole tree, or the one with the root ``top``, or only ``wanted``.

    Rows deeper than `MAX_DRAWN` are not indented further, and show their depth as a number.
    """
    for conversation, branch in draw_tree(*_shape(survey, top, wanted)):
        yield _row(survey, conversation, branch)


def outline(survey: Survey, top: str | None = None, wanted: Collection[str] | None = None) -> Iterator[tuple[str, int]]:
    """Yield the conversations of a tree (see `tree`), parents first, each with its depth from 0."""
    starts, children_of = _shape(survey, top, wanted)
    stack = [(start, 0) for start in reversed(starts)]
    while stack:
        conversation, depth = stack.pop()
        yield conversation, depth
        stack += [(child, depth + 1) for child in reversed(children_of(conversation))]


def _shape(
    survey: Survey, top: str | None, wanted: Collection[str] | None
) -> tuple[Sequence[str], Callable[[str], Sequence[str]]]:
    """Return the roots of a tree, and the function that returns the children of a conversation."""
    index = survey.tree
    if wanted is None:
        return index.roots() if top is None else (top,), index.children_of
    tops = (id_ for id_ in index.walk() if id_ in wanted and index.parent_of(id_) not in wanted)
    starts = tuple(tops) if top is None else (top,)
    return starts, lambda parent: [child for child in index.children_of(parent) if child in wanted]


def draw_tree(starts: Sequence[str], children_of: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the trees below ``starts``, parents first: each node with the drawing before it."""
    stack = [(start, 0, "", "") for start in reversed(starts)]
    while stack:
        node, depth, branch, indent = stack.pop()
        yield node, branch
        last = True
        for child in reversed(children_of(node)):
            if depth < MAX_DRAWN:
                stack.append((child, depth + 1, indent + _BRANCH[last], indent + _INDENT[last]))
            else:
                stack.append((child, depth + 1, f"{indent}{depth + 1}: ", indent))
            last = False


def _exists(view: View) -> bool:
    return view.store.main is not None or view.workspace.main is not None


def sides_of(view: View) -> str:
    """Return which sides have a conversation: both, store, workspace or nowhere."""
    sides = (view.store.main is not None, view.workspace.main is not None)
    return {(True, True): "both", (True, False): "store", (False, True): "workspace"}.get(sides, "nowhere")


def _entry_of(view: View) -> Entry:
    copy = view.store.main or view.workspace.main
    stream = copy.stream if copy is not None else None
    return Entry(
        title=view.title,
        events=None if isinstance(stream, Fault) else stream.count if stream is not None else 0,
        last=stream.last if isinstance(stream, Stream) else None,
        where=sides_of(view),
        archived=view.archived,
    )


def _row(survey: Survey, conversation: str, branch: str = "") -> Row:
    entry, tree = survey.entries[conversation], survey.tree
    return Row(
        conversation,
        entry.title,
        entry.events,
        entry.last,
        root=tree.tops.get(conversation, conversation),
        parent=tree.parent_of(conversation) if conversation in tree else None,
        where=entry.where,
        branch=branch,
    )

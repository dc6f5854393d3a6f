"""What a tree command changes before the planner decides, so that the rules of every run hold for it (section 8).

An edit says what shall be: intents, parents, what leaves the workspace and what is removed. How that comes about, with
everything saved first, is the planner's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reconcile.core.content import Outcome
from reconcile.core.expiry import expired
from reconcile.core.memory import Intent, IntentKind
from reconcile.core.model import WHOLE
from reconcile.core.plan import Item, Note
from reconcile.core.policy import Take
from reconcile.core.presence import Goal
from reconcile.core.reasons import Reason
from reconcile.core.requests import Children, Localize, Project, Remove, Reparent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.core.board import Board
    from reconcile.core.memory import Memory
    from reconcile.core.policy import Policy
    from reconcile.core.requests import TreeEdit


class RefusedError(ValueError):
    """A command asks for what can't be; ``hints`` are the ways on."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.hints = hints


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The changes.

    ``leaving``: workspace directories that go, ``deleted``: conversations that go from both sides (parents first), each
    with the reason. ``below``: the children of each of those that go too, and before it, so that the same command finds
    what is left when one of them can't go. ``together``: what goes at once or not at all, by conversation. ``asked``:
    put where it belongs. ``scope``: what the run is limited to; everything else stays as it is.
    """

    intents: Mapping[str, Intent | None] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    promoted: frozenset[str] = frozenset()
    leaving: Mapping[str, Reason] = field(default_factory=dict)
    deleted: Mapping[str, Reason] = field(default_factory=dict)
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: Mapping[str, frozenset[str]] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    decisions: Mapping[str, Take] = field(default_factory=dict)
    scope: frozenset[str] = frozenset()
    held: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()

    def remembering(self, memory: Memory) -> Memory:
        """Return what is remembered as if the intents held already; what leaves is saved whatever was set aside."""
        kept = {key: intent for key, intent in memory.intents.items() if key not in self.intents}
        changed = {key: intent for key, intent in self.intents.items() if intent is not None}
        asides = {key: record for key, record in memory.asides.items() if key[0] not in self.leaving}
        return replace(memory, intents=kept | changed, asides=asides)

    def deciding(self, policy: Policy) -> Policy:
        """Return the policy of the run that carries them out."""
        wanted = policy.only | policy.below
        return replace(
            policy,
            only=self.scope & wanted if wanted else self.scope,
            below=frozenset(),
            decisions={**policy.decisions, **self.decisions},
        )


def edits_of(request: TreeEdit, board: Board) -> Edits:
    """Return what a command changes; ``board`` is what a plain run would decide.

    Raises:
        RefusedError: it can't be done, or not without more being said.
    """
    match request:
        case Localize(ids):
            return _localize(board, ids)
        case Project():
            return _project(board, request)
        case Remove():
            return _remove(board, request)
        case Reparent(conversation, parent):
            return _reparent(board, conversation, parent)
        case _:
            found = (*expired(board, frozenset(request.active)), *_half_removed(board))
            deleted = dict.fromkeys(found, Reason.EXPIRED)
            return Edits(deleted=deleted, below=_Kin(board).among(deleted), scope=frozenset(found) or _NOBODY)


def _known(board: Board, ids: Iterable[str]) -> list[str]:
    """Return the targets that are still there: a saved plan may ask again for what is gone by now."""
    return [each for each in ids if each in board.views]


def _half_removed(board: Board) -> list[str]:
    """Return what a run that was cut short has removed from the store alone."""
    buried = board.memory.tombstones
    return [each for each, presence in board.presences.items() if presence.goal is Goal.REMOVE and each in buried]


_NAMED = 5
_NOBODY = frozenset({""})
"""A scope that no conversation is in; an empty one is everything."""


def _item(board: Board, conversation: str, reason: Reason, message: str, *resolve: str) -> Item:
    title = board.views[conversation].title
    return Item(
        conversation=conversation, title=title, unit=WHOLE, reason=reason, message=message, resolve=tuple(resolve)
    )


def _names(board: Board, conversations: Iterable[str]) -> str:
    """Name conversations by title and id, a few of them."""
    found = list(conversations)
    named = [f"{board.views[each].title or '(no title)'} ({each})" for each in found[:_NAMED]]
    return ", ".join(named) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")


def _localize(board: Board, ids: tuple[str, ...]) -> Edits:
    """Take the directories of the targets, with everything in them, out of the workspace, and keep them out."""
    intents: dict[str, Intent | None] = {}
    leaving: dict[str, Reason] = {}
    together: dict[str, frozenset[str]] = {}
    held: list[Item] = []
    notes: list[Note] = []
    scope: set[str] = set()
    for target in sorted(_known(board, ids), key=lambda each: len(_chain(board, each))):
        if target in leaving:
            intents[target] = Intent(IntentKind.LOCAL)
            leaving[target] = Reason.LOCALIZED
            continue
        inside = _inside(board, target)
        scope |= {target, *inside}
        open_ones = [each for each in (target, *inside) if _is_open(board, each)]
        if open_ones:
            message = f"its directory stays, because of {_names(board, open_ones)}: see `reconcile status`"
            held.append(_item(board, target, Reason.UNSETTLED, message))
            continue
        intents[target] = Intent(IntentKind.LOCAL)
        if board.views[target].workspace.main is None:
            continue
        leaving[target] = Reason.LOCALIZED
        together |= dict.fromkeys((target, *inside), frozenset((target, *inside)))
        for each in inside:
            leaving[each] = Reason.WITH_ANCESTOR
            if not board.views[each].local:
                main = board.views[each].workspace.main
                assert main is not None  # noqa: S101 - it lies inside
                intents[each] = Intent(IntentKind.PROJECTED, waits_for=main.container, place=main.path)
        if inside:
            which = "1 conversation below it goes" if len(inside) == 1 else f"{len(inside)} conversations below it go"
            message = f"{which} along, and back with it: {_names(board, inside)}"
            notes.append(Note(conversation=target, reason=Reason.TAKEN_ALONG, message=message))
    return Edits(
        intents=intents,
        leaving=leaving,
        together=together,
        scope=frozenset(scope) or _NOBODY,
        held=tuple(held),
        notes=tuple(notes),
    )


def _is_open(board: Board, conversation: str) -> bool:
    """Tell whether what the workspace has of it can't be saved now, so that its directory must stay."""
    view = board.views[conversation]
    if view.workspace.main is None:
        return False
    known = board.presences[conversation].goal in (Goal.SYNC, Goal.IMPORT)
    verdicts = board.verdicts.get(conversation, {}).values()
    return not known or bool(view.workspace.faults) or any(verdict.outcome is Outcome.HELD for verdict in verdicts)


def _chain(board: Board, conversation: str) -> list[str]:
    return list(board.tree.ancestors(conversation)) if conversation in board.tree else []


def _inside(board: Board, target: str) -> list[str]:
    """Return the conversations whose directories lie in the target's, in the order of the tree."""
    main = board.views[target].workspace.main
    if main is None:
        return []
    start = f"{main.path}/"
    return [
        each
        for each in board.order
        if (copy := board.views[each].workspace.main) is not None and copy.path.startswith(start)
    ]


def _project(board: Board, request: Project) -> Edits:
    """Put the targets into the workspace, and what comes back with them."""
    views = board.views
    targets = _known(board, request.ids)
    decisions: dict[str, Take] = {}
    if request.everything:
        targets += [each for each in board.tree.walk() if _in_store_alone(board, each) and not views[each].local]
    if request.behind:
        decisions = dict.fromkeys(_behind(board), Take.STORE)
    intents: dict[str, Intent | None] = {}
    held: list[Item] = []
    scope = {*targets, *decisions}
    for target in dict.fromkeys(targets):
        if views[target].archived:
            message = "it is archived in the store; unarchive it first, with JP"
            held.append(_item(board, target, Reason.ARCHIVED_HELD, message))
            continue
        private = [each for each in reversed(_above(board, target)) if _is_private(board, each) and each not in scope]
        if private and not request.ancestors:
            message = (
                f"it lies below what doesn't belong in this workspace, and would be public with it: "
                f"{_names(board, private)}"
            )
            again = f"reconcile project {target} --with-ancestors"
            held.append(_item(board, target, Reason.ANCESTORS_ABSENT, message, again))
            continue
        public = (*private, target)
        intents |= dict.fromkeys(public, Intent(IntentKind.PROJECTED))
        scope.update(_above(board, target), _joining_below(board, public[0]))
    return Edits(
        intents=intents,
        asked=frozenset(intents),
        decisions=decisions,
        scope=frozenset(scope) or _NOBODY,
        held=tuple(held),
    )


def _in_store_alone(board: Board, conversation: str) -> bool:
    view = board.views[conversation]
    return view.store.main is not None and view.workspace.main is None


def _behind(board: Board) -> list[str]:
    return [
        conversation
        for conversation, verdicts in board.verdicts.items()
        if any(verdict.outcome is Outcome.BEHIND for verdict in verdicts.values())
    ]


def _above(board: Board, conversation: str) -> list[str]:
    """Return the ancestors whose directories the conversation's is to lie in, the nearest first."""
    above = []
    each = board.container_of(conversation)
    while each is not None:
        above.append(each)
        each = board.container_of(each)
    return above


def _is_private(board: Board, conversation: str) -> bool:
    """Tell whether a conversation doesn't belong in this workspace unasked, also where a branch has brought it."""
    view = board.views[conversation]
    if view.local or view.workspace.main is not None:
        return view.local
    projected = view.intent is not None and view.intent.kind is IntentKind.PROJECTED
    return not (projected or (view.intent is None and view.agreed is not None))


def _joining_below(board: Board, top: str) -> set[str]:
    """Return what comes back below a conversation, or moves there from where it lay without its parent."""
    below = board.tree.descendants(top) if top in board.tree else ()
    return {each for each in below if board.presences[each].state == "waiting" or _is_apart(board, each)}


def _is_apart(board: Board, conversation: str) -> bool:
    """Tell whether it is in the workspace and its parent isn't."""
    container = board.container_of(conversation)
    there = board.views[conversation].workspace.main is not None
    return there and container is not None and board.views[container].workspace.main is None


def _remove(board: Board, request: Remove) -> Edits:
    """Remove the targets; their children are removed too, or take their place in the tree.

    What a run that was cut short has removed from the store alone is still a target, and keeps its children.
    """
    deleted: dict[str, Reason] = {}
    parents: dict[str, str | None] = {}
    kin = _Kin(board)
    ids = _known(board, request.ids)
    for target in ids:
        if board.views[target].archived:
            raise RefusedError(f"{target} is archived; reconcile removes live conversations alone")
        children = [each for each in kin.children(target) if each not in ids]
        if children and request.children is Children.REFUSE:
            raise _has_children(board, target, children, len(kin.descendants(target)))
        deleted[target] = Reason.REMOVED_AS_ASKED
        if request.children is Children.CASCADE:
            deleted |= dict.fromkeys(kin.descendants(target), Reason.REMOVED_AS_ASKED)
        else:
            parents |= dict.fromkeys(children, kin.survivor(target, ids))
    return Edits(
        deleted=deleted,
        below=kin.among(deleted),
        parents=parents,
        promoted=frozenset(parents),
        scope=frozenset({*deleted, *parents}) or _NOBODY,
        notes=tuple(_archived_below(board, deleted)),
    )


class _Kin:
    """Who is whose child by what they state, also where the parent is half removed already."""

    def __init__(self, board: Board) -> None:
        self._parents = {each: board.parentage[each].parent for each in board.order if not board.views[each].archived}
        self._children: dict[str | None, list[str]] = {}
        for child, parent in self._parents.items():
            if board.presences[child].state != "gone":
                self._children.setdefault(parent, []).append(child)

    def children(self, conversation: str) -> list[str]:
        return self._children.get(conversation, [])

    def descendants(self, conversation: str) -> dict[str, None]:
        """Return everything below, each once, whatever cycles there are."""
        found: dict[str, None] = {}
        stack = list(self.children(conversation))
        while stack:
            each = stack.pop()
            if each not in found and each != conversation:
                found[each] = None
                stack += self.children(each)
        return found

    def among(self, chosen: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the children of each of these that are among them."""
        return {each: tuple(child for child in self.children(each) if child in chosen) for each in chosen}

    def survivor(self, conversation: str, removed: Collection[str]) -> str | None:
        """Return the nearest ancestor that isn't removed as well."""
        seen = {conversation}
        each = self._parents.get(conversation)
        while each is not None and each in removed and each not in seen:
            seen.add(each)
            each = self._parents.get(each)
        return None if each in seen else each


def _has_children(board: Board, target: str, children: list[str], below: int) -> RefusedError:
    kind = "1 descendant" if below == 1 else f"{below} descendants"
    return RefusedError(
        f"{target} ({board.views[target].title or 'no title'}) has {kind}: {_names(board, children)}",
        f"remove all of them: reconcile rm {target} --cascade",
        f"or let its children move up: reconcile rm {target} --promote",
    )


def _archived_below(board: Board, deleted: Collection[str]) -> Iterator[Note]:
    for view in board.views.values():
        if view.archived and board.parentage[view.id].parent in deleted:
            message = f"it is archived, and stays; its parent {board.parentage[view.id].parent} is removed"
            yield Note(conversation=view.id, reason=Reason.ARCHIVED_COPY, message=message)


def _reparent(board: Board, conversation: str, parent: str | None) -> Edits:
    """Give a conversation another parent; its subtree moves along."""
    for each in (conversation, parent):
        if each is not None and each not in board.views:
            raise RefusedError(f"{each} is on neither side any more")
    if conversation not in board.tree:
        raise RefusedError(f"{conversation} is archived; unarchive it first, with JP")
    if parent is not None and parent not in board.tree:
        raise RefusedError(f"{parent} is archived, and can't be a parent")
    if parent is not None and conversation in (parent, *board.tree.ancestors(parent)):
        chain = " > ".join([*reversed([parent, *board.tree.ancestors(parent)])])
        raise RefusedError(f"{conversation} would be its own ancestor: {chain}")
    return Edits(parents={conversation: parent}, scope=frozenset({conversation}), asked=frozenset({conversation}))

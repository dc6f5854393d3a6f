"""The edits of `reconcile rm` and `gc`: the conversations to remove, and the new parents of their children.

`gc` removes expired conversations: the whole subtree must have expired, and no process may have it open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind
from reconcile.model.commands import typed
from reconcile.model.plan import Note
from reconcile.model.policy import NO_CONVERSATION, Children
from reconcile.model.reasons import Reason
from reconcile.planning.context import Edits, RefusedError
from reconcile.planning.filters import limits_of
from reconcile.planning.rules.content import Outcome
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.policy import GcRequest, RemoveRequest
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.views import View


def remove(context: PlanningContext, request: RemoveRequest) -> Edits:
    """Return the edits that remove the targets; their children are removed too, or get the next ancestor as parent.

    A conversation that an interrupted run removed from the store alone is still a target, and keeps its children.
    Records that belong to a target always go with it.
    """
    ancestry = _Ancestry(context)
    wanted = request.children if context.rules.format.places is None else Children.CASCADE
    ids = dict.fromkeys(context.existing(request.ids))
    for target in ids:
        if context.views[target].archived:
            names = context.names([target])
            raise RefusedError(
                f"{names} is archived; only live conversations can be removed", "unarchive it with JP first"
            )
        children = [conversation for conversation in ancestry.children(target) if conversation not in ids]
        if children and wanted is Children.REFUSE:
            below = ancestry.subtrees((target,))
            raise _has_children(
                context,
                target,
                [conversation for conversation in context.order if conversation in below and conversation not in ids],
            )
    removed = ancestry.parents_first(ancestry.subtrees(ids) if wanted is Children.CASCADE else ids)
    deleted = dict.fromkeys(removed, Reason.REMOVED_AS_ASKED)
    parents = ancestry.promoted(removed)
    return Edits(
        intents=dict.fromkeys(each for each in deleted if _is_to_publish(context.views[each])),
        deleted=deleted,
        below=ancestry.among(deleted),
        heirs={
            conversation: tuple(child for child in ancestry.children(conversation) if child in parents)
            for conversation in deleted
        },
        parents=parents,
        promoted=frozenset(parents),
        scope=frozenset({*deleted, *parents, *_half_promoted(context, deleted)}) or NO_CONVERSATION,
        notes=tuple(_archived_below(context, deleted)),
    )


def _is_to_publish(view: View) -> bool:
    """Tell whether a pending request would publish it after a later `restore`."""
    return view.intent is not None and view.intent.is_wish and view.workspace.main is None


def refuse_open(context: PlanningContext, edits: Edits) -> None:
    """Raise `RefusedError` if a process has a record open that is to be removed: it would write it again."""
    places = context.rules.format.places
    if places is None:
        return
    for conversation in edits.deleted:
        if holder := places.holder(conversation, context.program):
            raise RefusedError(
                f"{holder} has it open: {context.names([conversation])}", "end the session, then repeat the command"
            )


def with_new_children(context: PlanningContext, going: Mapping[str, Children]) -> dict[str, list[str]]:
    """Return those of an earlier removal that have remaining children without a request of their own, with these
    children.

    A conversation that stays is itself such a child.
    """
    ancestry, stays = _Ancestry(context), dict[str, list[str]]()
    while True:
        more = {
            conversation: left
            for conversation, children in going.items()
            if conversation not in stays and children is not Children.PROMOTE
            if (left := [child for child in ancestry.children(conversation) if child not in going or child in stays])
        }
        if not more:
            return stays
        stays |= more


def keeping_parents(context: PlanningContext) -> Edits | None:
    """Return the edits without removals that would leave a directory or orphan a child; None if all may stay.

    A conversation leaves both sides or none, so that one stays whose directory in the workspace the scan can't see.
    A child that can't get another parent now keeps its parent, and everything above that (docs/design/run.md#rule-47).
    The other children of those keep their parent too.
    """
    edits = context.edits
    stuck = {
        conversation: [child for child in heirs if context.parentage[child].frozen]
        for conversation, heirs in edits.heirs.items()
    }
    above = {child: parent for parent, children in edits.below.items() for child in children}
    staying = _staying(
        context, stuck, above, [each for each in edits.deleted if context.is_hidden(context.views[each])]
    )
    if not staying:
        return None
    parents = {child: edits.parents[child] for children in stuck.values() for child in children}
    kept_above: dict[str | None, str | None] = {}
    for conversation in edits.deleted:
        at = above.get(conversation)
        kept_above[conversation] = at if at in staying else kept_above.get(at)
        if conversation not in staying:
            parents |= {child: kept_above[conversation] or edits.parents[child] for child in edits.heirs[conversation]}
    return replace(
        edits,
        deleted={conversation: reason for conversation, reason in edits.deleted.items() if conversation not in staying},
        parents=parents,
        promoted=frozenset(parents),
        held=tuple(
            context.held_item(conversation, Reason.SUBTREE_HELD, words) for conversation, words in staying.items()
        ),
    )


def _staying(
    context: PlanningContext, stuck: Mapping[str, list[str]], above: Mapping[str, str], hidden: Sequence[str]
) -> dict[str, str]:
    """Return the conversations that stay, with the reason: those with such a child, and those above them."""
    staying = dict.fromkeys(hidden, "not removed, since its directory in the workspace can't be read")
    staying |= {
        conversation: f"not removed, since its children are blocked: {context.names(children)}"
        for conversation, children in stuck.items()
        if children
    }
    for conversation in tuple(staying):
        below, at = conversation, above.get(conversation)
        while at is not None and at not in staying:
            staying[at] = f"not removed, since its descendant stays: {context.names((below,))}"
            below, at = at, above.get(at)
    return staying


def _half_promoted(context: PlanningContext, deleted: Collection[str]) -> list[str]:
    """Return the conversations that an interrupted run gave another parent in the store alone."""
    stated = {conversation: view.workspace.metadata for conversation, view in context.views.items()}
    return [
        conversation
        for conversation, metadata in stated.items()
        if metadata is not None and metadata.parent.id in deleted
    ]


def collect(context: PlanningContext, request: GcRequest) -> Edits:
    """Return the edits that remove expired conversations, and complete an interrupted run's removals.

    An expired conversation with unsaved changes in the workspace is saved instead, and judged by the next `gc`.
    """
    targets = (*expired(context, frozenset(request.active)), *_half_removed(context))
    unsaved = [
        conversation
        for conversation in context.tree.walk()
        if is_over(context, conversation) and not is_saved(context, conversation)
    ]
    ancestry = _Ancestry(context)
    deleted = dict.fromkeys(ancestry.parents_first(dict.fromkeys(targets)), Reason.EXPIRED)
    message = "expired, but changed in the workspace; the change is saved first, and the next gc decides"
    return Edits(
        deleted=deleted,
        limits=limits_of(context.policy, context.rules),
        below=ancestry.among(deleted),
        scope=frozenset((*targets, *unsaved)) or NO_CONVERSATION,
        notes=tuple(
            Note(conversation=conversation, reason=Reason.UNSETTLED, message=message) for conversation in unsaved
        ),
    )


def _half_removed(context: PlanningContext) -> list[str]:
    """Return the conversations that an interrupted run removed from the store alone."""
    buried = context.baseline.tombstones
    return [
        conversation
        for conversation, presence in context.presences.items()
        if presence.goal is Goal.REMOVE and conversation in buried
    ]


class _Ancestry:
    """Parents and children as the metadata states them, also if the parent is removed from one side already.

    The children of a record with a fixed place are those that belong to it.
    """

    def __init__(self, context: PlanningContext) -> None:
        places = context.rules.format.places
        self._parents = {
            conversation: context.parentage[conversation].parent if places is None else places.owner(conversation)
            for conversation in context.order
            if not context.views[conversation].archived
        }
        self._children: dict[str | None, list[str]] = {}
        for child, parent in self._parents.items():
            if context.presences[child].state != "gone":
                self._children.setdefault(parent, []).append(child)

    def children(self, conversation: str) -> list[str]:
        return self._children.get(conversation, [])

    def subtrees(self, tops: Iterable[str]) -> dict[str, None]:
        """Return these and everything below them, each once, also in cycles."""
        subtree: dict[str, None] = {}
        stack = list(tops)[::-1]
        while stack:
            conversation = stack.pop()
            if conversation not in subtree:
                subtree[conversation] = None
                stack += self.children(conversation)
        return subtree

    def parents_first(self, chosen: Collection[str]) -> list[str]:
        """Return these, each after its parent if that is among them; a cycle starts anywhere."""
        tops = [conversation for conversation in chosen if self._parents.get(conversation) not in chosen]
        return [conversation for conversation in self.subtrees((*tops, *chosen)) if conversation in chosen]

    def among(self, chosen: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the children of each of these that are among them."""
        return {
            conversation: tuple(child for child in self.children(conversation) if child in chosen)
            for conversation in chosen
        }

    def promoted(self, removed: Sequence[str]) -> dict[str, str | None]:
        """Return the new parents of the children of these, parents first: the nearest ancestor that stays."""
        heirs: dict[str | None, str | None] = dict.fromkeys(removed)
        parents: dict[str, str | None] = {}
        for conversation in removed:
            parent = self._parents.get(conversation)
            heirs[conversation] = heirs.get(parent, parent)
            left = [child for child in self.children(conversation) if child not in heirs]
            parents |= {child: None if child == heirs[conversation] else heirs[conversation] for child in left}
        return parents


def _has_children(context: PlanningContext, target: str, below: list[str]) -> RefusedError:
    kind = "1 descendant" if len(below) == 1 else f"{len(below)} descendants"
    return RefusedError(
        f"{context.names([target])} has {kind}: {context.names(below)}",
        f"remove all of them: reconcile rm {typed(target)} --cascade",
        f"or let its children move up: reconcile rm {typed(target)} --promote",
    )


def _archived_below(context: PlanningContext, deleted: Collection[str]) -> Iterator[Note]:
    for view in context.views.values():
        if view.archived and context.parentage[view.id].parent in deleted:
            message = f"archived, so it stays; its parent {context.parentage[view.id].parent} is removed"
            yield Note(conversation=view.id, reason=Reason.ARCHIVED_COPY, message=message)


def expired(context: PlanningContext, active: frozenset[str]) -> tuple[str, ...]:
    """Return the live conversations that have expired, parents before children.

    A parent's expiry is the latest of its subtree. A descendant without an expiry, in use, or with unsaved changes in
    the workspace, keeps its ancestors (docs/design/formats/jp.md#edge-case-51).
    """
    kept: set[str] = set()
    order = tuple(context.tree.walk())
    for conversation in reversed(order):
        over = is_over(context, conversation) and is_saved(context, conversation)
        if conversation in kept or conversation in active or not over:
            kept.add(conversation)
            kept.update(filter(None, [context.tree.parent_of(conversation)]))
    return tuple(conversation for conversation in order if conversation not in kept)


def is_over(context: PlanningContext, conversation: str) -> bool:
    """Tell whether the expiry in the store's metadata has passed; without the store, nothing expires."""
    view = context.views[conversation]
    metadata = view.store.metadata
    ends_ns = context.rules.format.expires_ns(metadata.content) if metadata is not None else None
    return ends_ns is not None and ends_ns <= context.now_ns


def is_saved(context: PlanningContext, conversation: str) -> bool:
    """Tell whether the store has everything that the next run would save: an edit may have removed the expiry."""
    verdicts = context.verdicts.get(conversation, {}).values()
    return all(_is_saved_unit(verdict) for verdict in verdicts)


def _is_saved_unit(verdict: Verdict) -> bool:
    if verdict.forks is not None:
        return False
    if verdict.outcome is Outcome.ASIDE:
        return verdict.record is not None and verdict.record.kind is AsideKind.LOCAL
    return verdict.outcome in (Outcome.NOTHING, Outcome.TO_WORKSPACE, Outcome.DROP)

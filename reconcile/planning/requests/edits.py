"""From requests to edits: those of the current command, and earlier ones that no run could carry out yet.

A command records its request for each conversation before its first step, and the baseline update removes what was
achieved. The rest waits: git was busy, a lock was held, a side was missing, something changed meanwhile, or the run was
killed. The next run that can carries it out, under the rules of that run. A request doesn't cover content written
since, so a removal or a decision is dropped then, with a note. An opposite command drops it too, and so do `resolve`
and `undo`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import PendingRequest, Verb
from reconcile.model.commands import typed
from reconcile.model.options import Take
from reconcile.model.plan import Note
from reconcile.model.policy import Children, GcRequest, LocalRequest, ProjectRequest, RemoveRequest, SetParentRequest
from reconcile.model.reasons import Reason
from reconcile.planning.context import Edits, RefusedError
from reconcile.planning.requests.decided import (
    answers_of,
    content_of,
    decision_text,
    is_open,
    metadata_written,
    outdated_words,
    requests_of,
    with_written,
)
from reconcile.planning.requests.remove import collect, refuse_open, remove, with_new_children
from reconcile.planning.requests.visibility import inside_of, localize, project
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy, TreeEdit
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.guards import Sides
    from reconcile.planning.rules.views import View

Requests = dict[tuple[str, Verb], PendingRequest | None]


def edits_of(request: TreeEdit, context: PlanningContext) -> Edits:
    """Return the edits of a command; ``context`` has the decisions of a plain run.

    Raises:
        RefusedError: it is impossible, or needs an option.
    """
    match request:
        case LocalRequest(ids):
            return localize(context, ids)
        case ProjectRequest():
            return project(context, request)
        case RemoveRequest():
            removal = remove(context, request)
            refuse_open(context, removal)
            return removal
        case SetParentRequest(conversation, parent):
            return _reparent(context, conversation, parent)
        case _:
            return collect(context, request)


def _reparent(context: PlanningContext, conversation: str, parent: str | None) -> Edits:
    """Set another parent for a conversation; its subtree moves along."""
    for known in (conversation, parent):
        if known is not None and not context.existing((known,)):
            raise RefusedError(f"{known} is on neither side any more", "see what runs did: reconcile log")
    if conversation not in context.tree:
        raise RefusedError(f"{context.names([conversation])} is archived", "unarchive it with JP first")
    if parent is not None and parent not in context.tree:
        raise RefusedError(f"{context.names([parent])} is archived and can't be a parent", "unarchive it with JP first")
    if parent is not None and conversation in (parent, *context.tree.ancestors(parent)):
        chain = " > ".join([*reversed([parent, *context.tree.ancestors(parent)])])
        raise RefusedError(f"{conversation} would be its own ancestor: {chain}", "see the tree: reconcile ls --tree")
    circle = [known for cycle in context.tree.cycles if conversation in cycle for known in cycle]
    scope = frozenset((conversation, *circle))  # they all get other places where it no longer is one
    return Edits(parents={conversation: parent}, scope=scope, requested=frozenset({conversation}))


def is_due(view: View, verb: Verb, waiting: PendingRequest, parent: str | None, sides: Sides, rules: Rules) -> bool:
    """Tell whether a request still has to be carried out; ``parent`` is the known one.

    Absence from the scan is no proof that it is done.
    """
    match verb:
        case Verb.LOCAL:
            return view.local and (view.workspace.main is not None or _may_be_here(view, sides))
        case Verb.REMOVE:
            there = view.workspace.main is not None or (view.store.main is not None and not view.archived)
            return there or _store_is_away(sides) or _may_be_here(view, sides)
        case Verb.REPARENT:
            return parent != waiting.value and view.store.main is not None
        case _:
            return is_unseen(view, sides) or is_open(view, waiting, rules)


def is_unseen(view: View, sides: Sides) -> bool:
    """Tell whether a side may have it although the scan doesn't see it."""
    here, there = view.workspace.main, view.store.main
    return (there is None and _store_is_away(sides)) or (here is None and _may_be_here(view, sides))


def _may_be_here(view: View, sides: Sides) -> bool:
    """Tell whether a directory may be in the workspace although the scan doesn't see it."""
    return view.agreed is not None and (sides.workspace_emptied or sides.hides(view.agreed.place))


def _store_is_away(sides: Sides) -> bool:
    return sides.store_renewed or sides.store_hidden


def recorded(
    context: PlanningContext, policy: Policy, plan: Plan, requested: Mapping[tuple[str, Verb], PendingRequest]
) -> tuple[tuple[tuple[str, Verb], PendingRequest | None], ...]:
    """Return a plan's changes of the waiting requests: those of its own command are recorded, others end."""
    known = context.baseline.waiting
    if isinstance(policy.tree_edit, GcRequest) and any(item.reason is Reason.BULK for item in plan.held):
        requested = {}  # nobody has named them: a later run doesn't ask about them
    answered = {(conversation, Verb.RESOLVE) for conversation, _ in policy.choices}
    changes: Requests = {
        key: None
        for key, waiting in known.items()
        if key in context.edits.dropped
        or key[0] not in context.views
        or not _is_due_on(context, key, waiting)
        or key[0] in _opposed(context, policy, key[1])
        or (key in answered and waiting.value is None)
    }
    written = metadata_written(plan.actions, context.rules.format.metadata_file)
    concerned = plan.put_off.union(action.conversation for action in plan.actions)
    for key, asked in requested.items():
        if key[1] is not Verb.RESOLVE or key[0] in concerned:  # else there is nothing to do about that decision
            request = with_written(asked, written.get(key[0], ()))
            same = _says_the_same(known.get(key), request)
            changes.pop(key, None)
            changes |= {} if same else {key: request}
    return tuple((key, changes[key]) for key in sorted(changes) if plan.about is None or key[0] in plan.about)


def _is_due_on(context: PlanningContext, key: tuple[str, Verb], waiting: PendingRequest) -> bool:
    view, edits = context.views[key[0]], context.edits
    if edits.leaving.get(key[0]) is Reason.LOCALIZED:  # it is seen like any other until then, so that all is saved
        view = replace(view, local=True)
    return is_due(view, key[1], waiting, view.known_parent, context.sides, context.rules)


def _says_the_same(known: PendingRequest | None, requested: PendingRequest) -> bool:
    """Tell whether a run has recorded a request before; one without a run was recorded before its run began."""
    if known is None or known.run is None:
        return False
    return replace(known, run=None, why="") == requested


def requested_of(context: PlanningContext, policy: Policy) -> dict[tuple[str, Verb], PendingRequest]:
    """Return the requests of a plan's command that a later run can carry out."""
    request, edits, requests = policy.tree_edit, context.edits, dict[tuple[str, Verb], PendingRequest]()
    if isinstance(request, LocalRequest):
        for conversation in request.ids:
            if conversation in context.views:
                requests[conversation, Verb.LOCAL] = PendingRequest(
                    along=tuple(sorted(inside_of(context, conversation)))
                )
    elif request is not None:
        children = request.children if isinstance(request, RemoveRequest) else Children.REFUSE
        mode = Children.PROMOTE if children is Children.PROMOTE else Children.REFUSE
        for conversation in edits.deleted:
            requests[conversation, Verb.REMOVE] = _bound(context, conversation, mode.value)
        for conversation, parent in edits.parents.items():
            if conversation in edits.promoted and context.parentage[conversation].frozen:
                continue  # what it lies below stays because of it, and is refused
            requests[conversation, Verb.REPARENT] = PendingRequest(
                value=parent, before=context.views[conversation].known_parent
            )
    if request is None:
        again = {conversation for conversation, _ in (*policy.choices, *edits.dropped)}
        earlier = {key: take for key, take in edits.choices.items() if key[0] in again}
        requests |= requests_of(context, policy.decisions, {**earlier, **policy.choices})
    else:
        requests |= requests_of(context, {}, edits.choices)
    return {key: waiting for key, waiting in requests.items() if _is_due_on(context, key, waiting)}


def _bound(context: PlanningContext, conversation: str, value: str) -> PendingRequest:
    view, rules = context.views[conversation], context.rules
    return PendingRequest(value=value, store=content_of(view.store, rules), workspace=content_of(view.workspace, rules))


def _opposed(context: PlanningContext, policy: Policy, verb: Verb) -> Iterable[str]:
    """Return the conversations for which a command requests the opposite of an earlier request, or completes it."""
    match policy.tree_edit:
        case None:
            return policy.decisions.keys()
        case ProjectRequest():
            return context.edits.intents.keys() if verb is Verb.REMOVE else ()  # what becomes public is not local
        case LocalRequest(ids):
            return ids if verb in (Verb.REMOVE, Verb.RESOLVE) else ()
        case _:
            return context.edits.deleted.keys() if verb is not Verb.LOCAL else ()


def unfinished(context: PlanningContext) -> Edits | None:
    """Return the edits that earlier commands have left, for the context of a plain run; None for nothing."""
    decided = context.policy.decisions
    due = {
        key: waiting
        for key, waiting in sorted(context.baseline.waiting.items())
        if key[0] in context.views and key[0] not in decided and _is_due_on(context, key, waiting)
    }
    dropped = _overtaken(context)
    if not due and not dropped:
        return None
    removal = _removal(context, due, dropped)
    left = {key: waiting for key, waiting in due.items() if key[0] not in removal.deleted}
    local = localize(context, tuple(_leaving(context, left)))
    parents = _parents(context, left, dropped)
    takes = {
        key[0]: Take(str(waiting.value))
        for key, waiting in left.items()
        if key[1] is Verb.RESOLVE and waiting.value is not None and not is_unseen(context.views[key[0]], context.sides)
    }
    answers = {
        key: take
        for (conversation, _), waiting in left.items()
        for key, take in answers_of(context.views[conversation], waiting).items()
    }
    return replace(
        local,
        parents={**removal.parents, **parents},
        promoted=removal.promoted,
        deleted=removal.deleted,
        below=removal.below,
        heirs=removal.heirs,
        requested=frozenset(parents),
        decisions=takes,
        choices=answers,
        scope=frozenset(),
        dropped=frozenset(dropped),
        notes=(
            *local.notes,
            *removal.notes,
            *(Note(conversation=key[0], reason=Reason.REQUEST_DROPPED, message=dropped[key]) for key in dropped),
            *(
                Note(conversation=key[0], reason=Reason.REQUESTED, message=words_for(*key, waiting))
                for key, waiting in due.items()
                if key not in dropped
            ),
        ),
    )


def _overtaken(context: PlanningContext) -> dict[tuple[str, Verb], str]:
    """Return the decisions, or parts of them, about two versions of which one was replaced since."""
    messages = {}
    for key, waiting in sorted(context.baseline.waiting.items()):
        view = context.views.get(key[0])
        if key[1] is not Verb.RESOLVE or view is None or key[0] in context.policy.decisions:
            continue
        if not is_unseen(view, context.sides) and (words := outdated_words(view, waiting, context.rules)) is not None:
            messages[key] = f"{words} is dropped, since a side has changed; decide again"
    return messages


def _leaving(context: PlanningContext, due: Mapping[tuple[str, Verb], PendingRequest]) -> list[str]:
    """Return those whose directory leaves: only together with the ones it was to leave with
    (docs/design/intents.md#rule-27).
    """
    local = {key[0]: waiting for key, waiting in due.items() if key[1] is Verb.LOCAL}
    together = frozenset(local).union(*(waiting.along for waiting in local.values()))
    return [
        conversation
        for conversation in local
        if context.views[conversation].workspace.main is not None
        and context.presences[conversation].goal is not Goal.REMOVE  # it was removed from the store since
        and together.issuperset(inside_of(context, conversation))
    ]


def _removal(
    context: PlanningContext, due: Mapping[tuple[str, Verb], PendingRequest], dropped: dict[tuple[str, Verb], str]
) -> Edits:
    """Return the removals of conversations that were not changed since, and have no new children."""
    if _store_is_away(context.sides):
        return Edits()
    going: dict[str, Children] = {}
    for key, waiting in due.items():
        if key[1] is Verb.REMOVE and not _may_be_here_unseen(context, key[0]):
            if _is_written_since(context, key[0], waiting):
                dropped[key] = _ended(key[0], "it has changed")
            else:
                going[key[0]] = Children(str(waiting.value))
    for conversation, children in with_new_children(context, going).items():
        dropped[conversation, Verb.REMOVE] = _ended(conversation, f"it has children now: {context.names(children)}")
        del going[conversation]
    return remove(context, RemoveRequest(tuple(going), Children.PROMOTE))


def _may_be_here_unseen(context: PlanningContext, conversation: str) -> bool:
    view = context.views[conversation]
    return view.workspace.main is None and _may_be_here(view, context.sides)


def _is_written_since(context: PlanningContext, conversation: str, waiting: PendingRequest) -> bool:
    """Tell whether a side has other content than the one to remove; absence is no other content."""
    view, rules = context.views[conversation], context.rules
    stored, here = content_of(view.store, rules), content_of(view.workspace, rules)
    was_here = None, waiting.workspace, waiting.store  # what comes back into an emptied workspace is as in the store
    return view.archived or stored not in (None, waiting.store) or here not in was_here


def _ended(conversation: str, why: str) -> str:
    return f"not removed, since {why}; repeat `reconcile rm {typed(conversation)}` to remove it"


def _parents(
    context: PlanningContext, due: Mapping[tuple[str, Verb], PendingRequest], dropped: dict[tuple[str, Verb], str]
) -> dict[str, str | None]:
    """Return the new parents of conversations whose parent was not changed since."""
    parents: dict[str, str | None] = {}
    for key, waiting in due.items():
        if key[1] is not Verb.REPARENT:
            continue
        conversation, parent = key[0], waiting.value
        around = (parent, *context.tree.ancestors(parent)) if parent is not None and parent in context.tree else ()
        possible = conversation in context.tree and (parent is None or bool(around)) and conversation not in around
        if possible and context.parentage[conversation].parent in (waiting.before, parent):
            parents[conversation] = parent
        else:
            now = (
                f"its parent is {context.parentage[conversation].parent} now"
                if possible
                else f"{parent} can't be its parent any more"
            )
            dropped[key] = f"the parent {parent} is not set, since {now}"
    return parents


def words_for(conversation: str, verb: Verb, waiting: PendingRequest) -> str:
    """Return the command of a request, the run since which it waits, and the obstacle."""
    return f"{since(conversation, verb, waiting)}: {waiting.why}"


def since(conversation: str, verb: Verb, waiting: PendingRequest) -> str:
    """Return the command of a request, and the run since which it waits, if one had begun."""
    return f"{_text_of(conversation, verb, waiting)} waits{'' if waiting.run is None else f' since run {waiting.run}'}"


def _text_of(conversation: str, verb: Verb, waiting: PendingRequest) -> str:
    match verb:
        case Verb.REPARENT:
            return f"`set-parent {conversation} {waiting.value or '--none'}`"
        case Verb.RESOLVE:
            return decision_text(conversation, waiting)
        case _:
            return f"`{verb.value} {conversation}`"

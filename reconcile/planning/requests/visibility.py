"""The edits of `reconcile project` and `reconcile local`: the conversations that belong in the workspace.

Both commands concern more than their targets: the containers of the targets, and the conversations in their
directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.commands import typed
from reconcile.model.options import Take
from reconcile.model.plan import Item, Note
from reconcile.model.policy import NO_CONVERSATION
from reconcile.model.reasons import Reason
from reconcile.planning.context import Edits
from reconcile.planning.requests.recover import coming
from reconcile.planning.rules.content import Outcome, is_conflict
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.model.plan import Item
    from reconcile.model.policy import ProjectRequest
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.content import Verdict


def project(context: PlanningContext, request: ProjectRequest) -> Edits:
    """Return the edits that put the targets into the workspace, with the conversations that return with them."""
    views = context.views
    targets = [each for each in context.existing(request.ids) if not _is_private_since(context, request, each)]
    choices: dict[tuple[str, str], Take] = {}
    if request.everything:
        targets += [
            conversation
            for conversation in context.tree.walk()
            if _in_store_alone(context, conversation) and not views[conversation].local
        ]
    if request.behind:
        choices = dict.fromkeys(_older_units(context), Take.STORE)
    intents: dict[str, Intent | None] = {}
    held: list[Item] = []
    scope = {*targets, *(conversation for conversation, _ in choices)}
    back = coming(context, targets) if request.records is not None else {}
    apart = _apart(context, back)
    private = _private_above(context, scope)
    for target in dict.fromkeys(targets):
        if views[target].archived and request.records is None:
            message = "archived in the store; unarchive it with JP first"
            held.append(context.held_item(target, Reason.ARCHIVED_HELD, message))
            continue
        above = [] if target in back else _chain(private, target, intents)
        if above and not request.ancestors:
            message = f"its parents are not in this workspace and would be published too: {context.names(above)}"
            again = f"reconcile project {typed(target)} --with-ancestors"
            held.append(context.held_item(target, Reason.ANCESTORS_ABSENT, message, again))
            continue
        intents |= dict.fromkeys((*above, target), Intent(IntentKind.PROJECTED))
        choices |= dict.fromkeys(((target, unit) for unit in context.baseline.deleted_here.get(target, ())), Take.STORE)
    former = _former(context, intents)
    return Edits(
        intents=former | intents,
        requested=frozenset(intents),
        apart=apart,
        choices=choices,
        scope=frozenset(scope | _with_relatives(context, intents) | former.keys()) or NO_CONVERSATION,
        held=tuple(held),
        notes=tuple(_public_again(context, intents)),
    )


def _public_again(context: PlanningContext, public: Iterable[str]) -> Iterator[Note]:
    """Yield a note for each conversation of which a copy is here: its decision ends, and no file needs to change."""
    for conversation in public:
        view = context.views[conversation]
        if view.local and view.workspace.main is not None:
            message = "no longer local, in any checkout; its copy here is published"
            yield Note(conversation=conversation, reason=Reason.ASKED, message=message)


def _is_private_since(context: PlanningContext, request: ProjectRequest, target: str) -> bool:
    """Tell whether a target of `recover` was made local while it asked, or since its plan was saved.

    `recover` restores no local conversation, except a named session of Claude Code, which it does not publish.
    `project` has records for the shared sessions only, and none of a checkout.
    """
    places = context.rules.format.places
    is_named = places is not None and not places.is_shared and not (places.is_for_others and request.records)
    return request.records is not None and not is_named and context.views[target].local


def _former(context: PlanningContext, public: Collection[str]) -> dict[str, Intent | None]:
    """Return the former intents that stay valid for conversations that `recover` doesn't restore."""
    return {
        conversation: intent
        for conversation, intent in context.baseline.former.items()
        if conversation not in public
        and conversation in context.views
        and _in_store_alone(context, conversation)
        and not context.views[conversation].local
    }


def _apart(context: PlanningContext, back: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the conversations that will lie outside their parent, each with its container.

    They are restored that way, or are at the top already while others may be restored in them.
    """
    apart = {conversation: home for conversation, home in back.items() if home != context.container_of(conversation)}
    for conversation in context.tree.walk() if back else ():
        parent, main = context.container_of(conversation), context.views[conversation].workspace.main
        alone = parent is not None and parent not in back and context.views[parent].workspace.main is None
        if alone and main is not None and main.container is None:
            apart[conversation] = None
    return apart


def _in_store_alone(context: PlanningContext, conversation: str) -> bool:
    view = context.views[conversation]
    return view.store.main is not None and view.workspace.main is None


def behind(context: PlanningContext) -> list[str]:
    """Return the conversations of which the workspace has an older version."""
    return [
        conversation
        for conversation, verdicts in context.verdicts.items()
        if any(verdict.outcome is Outcome.BEHIND for verdict in verdicts.values())
    ]


def _older_units(context: PlanningContext) -> Iterator[tuple[str, str]]:
    """Yield the units that get the store's version: those that are behind, and beside them each one without a base.

    Any other unit beside them has edits that a run can tell from an older version.
    """
    for conversation in behind(context):
        for verdict in context.verdicts[conversation].values():
            if verdict.outcome is Outcome.BEHIND or (verdict.outcome is Outcome.WAIT and verdict.case == 5):
                yield conversation, verdict.unit


def outdated(context: PlanningContext) -> list[str]:
    """Return the conversations of which a plain run writes another version to the workspace."""
    return [
        conversation
        for conversation, verdicts in context.verdicts.items()
        if any(each.outcome is Outcome.TO_WORKSPACE and not _restores(each) for each in verdicts.values())
    ]


def incomplete(context: PlanningContext) -> list[str]:
    """Return the conversations of which a plain run restores a missing or empty file in the workspace."""
    return [
        conversation
        for conversation, verdicts in context.verdicts.items()
        if any(each.outcome is Outcome.TO_WORKSPACE and _restores(each) for each in verdicts.values())
    ]


def _restores(verdict: Verdict) -> bool:
    return verdict.reason is Reason.INCOMPLETE


def has_conflict(context: PlanningContext, conversation: str) -> bool:
    """Tell whether both sides have edited a unit of a conversation, so that neither version is just newer."""
    return any(map(is_conflict, context.verdicts[conversation].values()))


def _private_above(context: PlanningContext, requested: Collection[str]) -> dict[str, str | None]:
    """Return for each the nearest private ancestor that is not requested."""
    nearest: dict[str, str | None] = {}
    for conversation in context.tree.walk():
        container = context.container_of(conversation)
        if container is not None:
            private = container not in requested and _is_private(context, container)
            nearest[conversation] = container if private else nearest.get(container)
    return nearest


def _chain(private: Mapping[str, str | None], target: str, public: Collection[str]) -> list[str]:
    """Return the private ancestors of a target, the outermost first; a public one ends the chain."""
    chain = []
    conversation = private.get(target)
    while conversation is not None and conversation not in public:
        chain.append(conversation)
        conversation = private.get(conversation)
    return chain[::-1]


def _is_private(context: PlanningContext, conversation: str) -> bool:
    """Tell whether a conversation is private in this workspace, even if a branch has brought it."""
    view = context.views[conversation]
    if view.local or view.workspace.main is not None:
        return view.local
    projected = view.intent is not None and view.intent.kind is IntentKind.PROJECTED
    return not (projected or (view.intent is None and view.agreed is not None))


def _with_relatives(context: PlanningContext, public: Iterable[str]) -> set[str]:
    """Return these, their containers, and the conversations below that return or move with them."""
    around = set(public)
    order = tuple(context.tree.walk())
    for conversation in reversed(order):
        container = context.container_of(conversation)
        if conversation in around and container is not None:
            around.add(container)
    # This includes conversations below others that became public before an interruption: the repeated command
    # continues.
    below = set(around)
    for conversation in order:
        if context.tree.parent_of(conversation) in below:
            below.add(conversation)
            if context.presences[conversation].state == "waiting" or _is_apart(context, conversation):
                around.add(conversation)
    return around


def _is_apart(context: PlanningContext, conversation: str) -> bool:
    """Tell whether the workspace has it, but lacks its parent, or has it elsewhere than in its parent."""
    container = context.container_of(conversation)
    main = context.views[conversation].workspace.main
    if main is None or container is None:
        return False
    return main.container != container or context.views[container].workspace.main is None


def localize(context: PlanningContext, ids: tuple[str, ...]) -> Edits:
    """Return the edits that remove the targets' directories, with all conversations in them, and keep them out."""
    intents: dict[str, Intent | None] = {}
    leaving: dict[str, Reason] = {}
    together: dict[str, str] = {}
    held: list[Item] = []
    notes: list[Note] = []
    scope: set[str] = set()
    order = {conversation: number for number, conversation in enumerate(context.order)}
    for target in sorted(context.existing(ids), key=lambda conversation: _depth(context, conversation)):
        if target in leaving:
            intents[target] = Intent(IntentKind.LOCAL)
            leaving[target] = Reason.LOCALIZED
            continue
        intents[target] = Intent(IntentKind.LOCAL)  # at once, whatever becomes of its directory now
        inside = sorted(inside_of(context, target), key=order.__getitem__)
        scope |= {target, *inside}
        open_ones = [conversation for conversation in (target, *inside) if _is_open(context, conversation)]
        if open_ones:
            message = f"local now; its directory stays until these are unblocked: {context.names(open_ones)}"
            held.append(context.held_item(target, Reason.UNSETTLED, message))
            continue
        if context.views[target].workspace.main is None:
            if not context.views[target].local:
                is_hidden = context.is_hidden(context.views[target])
                here = "its directory here leaves once it can be read" if is_hidden else "it is not in this workspace"
                message = f"local from now on, in every checkout; {here}"
                notes.append(Note(conversation=target, reason=Reason.LOCALIZED, message=message))
            continue
        leaving[target] = Reason.LOCALIZED
        together |= dict.fromkeys((target, *inside), target)
        for conversation in inside:
            leaving[conversation] = Reason.WITH_ANCESTOR
            if not context.views[conversation].local:
                main = context.views[conversation].workspace.main
                assert main is not None  # noqa: S101 - it lies inside
                intents[conversation] = Intent(IntentKind.PROJECTED, waits_for=main.container, place=main.path)
        if inside:
            one = len(inside) == 1
            which = (
                "1 nested conversation leaves and returns"
                if one
                else f"{len(inside)} nested conversations leave and return"
            )
            message = f"{which} with it: {context.names(inside)}"
            notes.append(Note(conversation=target, reason=Reason.TAKEN_ALONG, message=message))
    return Edits(
        intents={
            conversation: intent
            for conversation, intent in intents.items()
            if not _is_said_again(context, conversation, intent)
        },
        leaving=leaving,
        together=together,
        scope=frozenset(scope) or NO_CONVERSATION,
        held=tuple(held),
        notes=tuple(notes),
    )


def _is_said_again(context: PlanningContext, conversation: str, intent: Intent | None) -> bool:
    """Tell whether it is local already, so that there is nothing to decide or undo."""
    known = context.baseline.intents.get(conversation)
    return known is not None and intent is not None and known.kind is intent.kind is IntentKind.LOCAL


def _is_open(context: PlanningContext, conversation: str) -> bool:
    """Tell whether the workspace's version can't be saved now, so that its directory must stay."""
    view = context.views[conversation]
    if view.workspace.main is None:
        return False
    known = context.presences[conversation].goal in (Goal.SYNC, Goal.IMPORT)
    verdicts = context.verdicts.get(conversation, {}).values()
    return not known or bool(view.workspace.faults) or any(verdict.outcome is Outcome.HELD for verdict in verdicts)


def _depth(context: PlanningContext, conversation: str) -> int:
    """Return the depth of its directory: the outermost targets come first, with the conversations in them."""
    main = context.views[conversation].workspace.main
    return main.path.count("/") if main is not None else 0


def inside_of(context: PlanningContext, target: str) -> list[str]:
    """Return the conversations whose directories are in the target's."""
    main = context.views[target].workspace.main
    below = context.node(main).subtree() if main is not None else ()
    copies = [node.copy for node in below if node.copy is not None]
    return [copy.conversation for copy in copies if copy is context.views[copy.conversation].workspace.main]

"""The plan of ``fork`` for a record with a fixed place: a copy under a new id, with the records that belong to it.

The request has the new id: a person may want several forks of the same content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.commands import typed
from reconcile.model.plan import Heading, Kind, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Fault, File, Side
from reconcile.planning.builder import Node, PlanBuilder, Put, Step
from reconcile.planning.context import RefusedError
from reconcile.planning.filters import renumbered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.format import Places
    from reconcile.model.policy import ForkRequest
    from reconcile.model.snapshot import Content
    from reconcile.planning.context import PlanningContext


def records_of(context: PlanningContext, conversation: str, places: Places) -> list[str]:
    """Return a record and those that belong to it, as far as they are on a side; the record itself is the last one."""
    there = [
        id_ for id_, view in context.views.items() if view.store.main is not None or view.workspace.main is not None
    ]
    chosen = (id_ for id_ in there if conversation in (id_, places.owner(id_)))
    return sorted(chosen, key=lambda id_: (id_ == conversation, id_))


def plan_record_fork(
    context: PlanningContext, request: ForkRequest, places: Places, contents: Mapping[str, Content]
) -> Plan:
    """Return the plan that creates the fork on both sides, or in the store if it is to be local or its source is.

    A folder for colleagues gets it only if it has the source: a fork shares nothing that was not shared before.

    ``contents`` are those of `records_of`, in this order: the record itself is copied when all others are there.

    Raises:
        RefusedError: a content can't be read, or it can't be cut.
    """
    view, builder = context.views[request.id], PlanBuilder()
    title = request.title if request.title is not None else view.title
    intents: list[tuple[str, Intent | None]] = []
    outline, steps = [Heading(view.id, view.title, 0)], list[int]()
    local = request.local or view.local
    is_public = not local and (view.workspace.main is not None or not places.is_for_others)
    for record, content in contents.items():
        is_main = record == view.id
        new, copied = _forked(context, request, places, record, content)
        file = File("", len(copied), context.now_ns, context.rules.digest(copied))
        home, own = Node(Side.STORE, None, "", new), title if is_main else context.views[record].title
        builder.create(_step(Kind.FORK, new, own), home, [Put(file, content=copied)])
        if is_public:
            node = Node(Side.WORKSPACE, None, "", new)
            steps.append(
                builder.create(_step(Kind.PROJECT, new, own), node, [Put(file, home)], steps if is_main else ())
            )
        if local or is_public:
            # After an interruption the next run copies it to the workspace.
            intents.append((new, Intent(IntentKind.LOCAL if local else IntentKind.PROJECTED)))
        outline.append(Heading(new, own, 1 if is_main else 2))
    return Plan(
        layout=context.policy.layout.value,
        actions=renumbered(builder),
        intents=tuple(intents),
        outline=(outline[0], outline[-1], *outline[1:-1]),
        policy=context.policy,
        now_ns=context.now_ns,
        about=frozenset(new for new, _ in intents),
    )


def _forked(
    context: PlanningContext, request: ForkRequest, places: Places, record: str, content: Content
) -> tuple[str, bytes]:
    if isinstance(content, Fault):
        raise RefusedError(f"{record}: {content.words}", "repeat the command, or see what is wrong: reconcile status")
    fmt = context.rules.format
    if record == request.id:
        try:
            content = fmt.cut_stream({"": content}, request.part)[""]
        except ValueError as error:
            hint = f"see its events: reconcile show {typed(record)}"
            raise RefusedError(f"{record} can't be cut: {error}", hint) from None
        content = fmt.forked_metadata(content, parent=record, title=request.title)
    return places.forked(record, content, request.uuid or None)


def _step(kind: Kind, conversation: str, title: str | None) -> Step:
    return Step(kind=kind, conversation=conversation, title=title, reason=Reason.FORKED)

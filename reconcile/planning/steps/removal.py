"""Removals: deleted conversations and duplicate directories, after everything below is saved
(docs/design/run.md#rule-47).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Side
from reconcile.model.units import units_of
from reconcile.planning.builder import Step
from reconcile.planning.rules.content import Outcome
from reconcile.planning.rules.presence import Goal
from reconcile.planning.steps.content import keep_in_step, keeps_directories

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.snapshot import Copy
    from reconcile.model.units import Unit
    from reconcile.planning.builder import Node
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View

SAVES = (Kind.COPY, Kind.FORK)


def copies_to_remove(context: PlanningContext) -> list[Copy]:
    """Return the directories that should be removed, the deepest first."""
    to_remove: list[Copy] = []
    for view in context.views.values():
        if view.id in context.unchanged:
            continue
        goal = context.presences[view.id].goal
        goes = goal is Goal.REMOVE or (view.id in context.edits.leaving and not _is_held(context, view))
        if goes and view.workspace.main is not None:
            to_remove.append(view.workspace.main)
        if view.id in context.edits.deleted and view.store.main is not None:
            to_remove.append(view.store.main)
        is_obstructed = goal is Goal.HELD and view.clash is not None
        if is_obstructed or keeps_directories(context.verdicts.get(view.id, {}).values()):
            continue
        if goal in (Goal.REMOVE, Goal.SYNC, Goal.IMPORT) and not view.local:
            to_remove += view.workspace.stale
        to_remove += view.store.stale
    rank = {conversation: -number for number, conversation in enumerate(context.edits.deleted)}
    return sorted(
        to_remove,
        key=lambda copy: (-copy.path.count("/"), rank.get(copy.conversation, 0), _is_last(context, copy), copy.path),
    )


def _is_last(context: PlanningContext, copy: Copy) -> bool:
    """Tell which of both sides is removed last.

    It is the workspace's, because any run removes it once the store's is gone. If the workspace's can't be read, it is
    the store's: no run without that request removes an unreadable directory.
    """
    broken = bool(context.views[copy.conversation].workspace.faults)
    return (copy.side is Side.WORKSPACE) is not broken


def _is_held(context: PlanningContext, view: View) -> bool:
    """Tell whether a unit can't be saved before a decision, so that the directory doesn't leave."""
    return any(verdict.outcome is Outcome.HELD for verdict in context.verdicts.get(view.id, {}).values())


def conversations_below(context: PlanningContext, copies: Iterable[Copy]) -> dict[tuple[Side, str], set[str]]:
    """Return, for each directory to remove, the conversations that were below it when the run began."""
    return {(copy.side, copy.path): context.node(copy).conversations_below() for copy in copies}


def vacate(context: PlanningContext, view: View, at: tuple[Node | None, str, str], side: Side) -> bool:
    """Free a place (container, prefix, name) that another directory of the same conversation takes.

    Return whether it is free in this run. The move waits for the removal, which expects its files.
    """
    for copy in view.side(side).stale:
        if context.node(copy).is_at(*at):
            stays = context.node(copy).below or (side, copy.path) not in context.to_remove
            return not stays and remove(context, copy, makes_room=True) is not None
    return True


def make_room(context: PlanningContext, conversation: str) -> None:
    """Remove what is in the place of a record in the workspace."""
    for record in context.making_room.get(conversation, ()):
        main = context.views[record].workspace.main
        if main is not None and (main.side, main.path) in context.to_remove:
            remove(context, main)


def remove(context: PlanningContext, copy: Copy, *, makes_room: bool = False) -> int | None:
    """Remove one directory, after every conversation below it has been saved and moved.

    Return the step. None if the directory must stay, which is then held, or if no step is needed: the last conversation
    that leaves a directory without files removes it. ``makes_room``: another step waits for this one.
    """
    below = context.to_remove.pop((copy.side, copy.path))
    view = context.views[copy.conversation]
    node = context.node(copy)
    staying = node.conversations_below()
    obstacle = _obstacle(context, view, node)
    if staying:
        message = f"its directory stays, since these in it can't be saved or moved now: {', '.join(sorted(staying))}"
        context.hold(view, WHOLE, Reason.SUBTREE_HELD, message)
    elif obstacle is not None and not any(item.message == obstacle for item in context.held):
        context.hold(view, WHOLE, Reason.OBSTRUCTED, obstacle)
    if staying or obstacle is not None:
        keep_in_step(context, view, copy)
        return None
    if below and not node.files and not makes_room:
        node.leave()
        return None
    broken = [unit for unit in units_of(copy, context.rules, None).values() if unit.fault and not unit.fault.incomplete]
    if broken and view.id not in context.policy.decisions and view.id not in context.edits.deleted:
        _hold_broken(context, view, broken)
        return None
    presence = context.presences[view.id]
    removed = presence.goal is Goal.REMOVE
    step = Step(
        kind=Kind.REMOVE if removed and copy.side is Side.STORE else Kind.REMOVE_STALE,
        conversation=view.id,
        title=view.title,
        reason=_why(context, view, copy),
        case=presence.case if removed and view.id not in context.edits.deleted else None,
    )
    before = (*below, *context.edits.below.get(view.id, ()), *context.edits.heirs.get(view.id, ()))
    after = [index for other in before for index in context.builder.steps_of(other)]
    after += (context.builder.before_stale if step.kind is Kind.REMOVE_STALE else context.builder.steps_of)(view.id)
    if removed:
        context.tombstones[view.id] = tuple(sorted(_digests(context, view)))
    together = context.edits.together.get(view.id)
    return context.builder.remove(step, node, after, together=together, stays=_staying(context, view, copy))


def _obstacle(context: PlanningContext, view: View, node: Node) -> str | None:
    """Return why a directory can't be removed; a request to remove a conversation removes both copies or none."""
    mains = (view.workspace.main, view.store.main) if view.id in context.edits.deleted else ()
    nodes = (node, *(context.node(main) for main in mains if main is not None))
    return next((obstacle for each in nodes if (obstacle := each.obstacle()) is not None), None)


def _staying(context: PlanningContext, view: View, copy: Copy) -> list[tuple[Node, str]]:
    """Return the managed files that must exist when a directory is removed.

    They are the store's, where the content is saved, and for a duplicate also those of the directory that stays beside
    it.
    """
    if context.presences[view.id].goal is Goal.REMOVE:
        return []
    nodes = [context.homes[view.id]]
    if copy in view.workspace.stale and view.workspace.main is not None and view.id not in context.edits.leaving:
        nodes.append(context.node(view.workspace.main))
    names = (context.rules.format.metadata_file, *context.rules.format.stream_files)
    return [(node, name) for node in nodes for name in names if name in node.files]


def _hold_broken(context: PlanningContext, view: View, broken: list[Unit]) -> None:
    """Hold a directory that should be removed but has invalid content (docs/design/decisions.md#rule-16)."""
    for unit in broken:
        assert unit.fault is not None  # noqa: S101 - the caller has the broken ones
        context.keep_version(unit)
        more = ", in a second directory; correct the file, or remove that directory"
        context.hold_file(view, unit.name, unit.copy, unit.fault, more=more)


def _why(context: PlanningContext, view: View, copy: Copy) -> Reason:
    presence = context.presences[view.id]
    if presence.goal is Goal.REMOVE:
        return presence.why
    if copy is view.workspace.main:
        return context.edits.leaving[view.id]
    return Reason.FLATTENED if copy.side is Side.STORE and copy.container else Reason.DUPLICATE


def _digests(context: PlanningContext, view: View) -> set[str]:
    """Return every content that the conversation is known to have had: an old branch may restore any of them."""
    units = (*view.workspace.units.values(), *view.store.units.values())
    digests = {unit.digest for unit in units if unit.digest is not None}
    for name in (METADATA, STREAM):
        digests.update(context.baseline.history.get((view.id, name), ()))
    return digests | set(view.agreed.units.values() if view.agreed else ())

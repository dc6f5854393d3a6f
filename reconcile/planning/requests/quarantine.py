"""The plan that moves unreadable conversations into ``.trash/`` with a note, as JP does, but only on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.plan import Heading, Kind, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, TRASH, WHOLE, Fault, File, Unreadable
from reconcile.model.units import units_of
from reconcile.planning.builder import PlanBuilder, Put, Step
from reconcile.planning.context import RefusedError
from reconcile.planning.filters import renumbered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.snapshot import Copy
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View

NOTE = "TRASHED.md"
"""JP's own name of the note (docs/design/formats/jp.md#sanitizer)."""
_TEXT = """# Moved to the trash by reconcile

This directory could not be read as a conversation.

**Error:** {file}: {words}

To restore it, correct the file, move the directory back, and delete this note.
`reconcile undo` restores it as it was.
"""


def plan_quarantine(context: PlanningContext, ids: Iterable[str]) -> Plan:
    """Return the plan that moves every broken directory of these conversations to the trash.

    Raises:
        RefusedError: none of a conversation's directories is broken, one can't be read, or others lie in it.
    """
    builder = PlanBuilder()
    views = [context.views[conversation] for conversation in ids]
    for view in views:
        broken = [(copy, fault) for copy in _copies(view) if (fault := _fault(context, copy)) is not None]
        if not broken:
            raise RefusedError(f"{view.id}: nothing in it is broken", "see what is broken: reconcile doctor")
        unread = [fault for _, fault in broken if isinstance(fault, Unreadable)]
        if unread:
            words = f"{view.id}: {unread[0].file}: {unread[0].words}, so it may be whole"
            raise RefusedError(words, "make it readable, then run again")
        for copy, fault in broken:
            _move(context, builder, view, copy, fault)
    return Plan(
        layout=context.policy.layout.value,
        actions=renumbered(builder),
        outline=tuple(Heading(view.id, view.title, 0) for view in views),
        policy=context.policy,
        now_ns=context.now_ns,
        about=frozenset(view.id for view in views),
    )


def _copies(view: View) -> list[Copy]:
    return [copy for side in (view.store, view.workspace) if side.main for copy in (side.main, *side.stale)]


def _fault(context: PlanningContext, copy: Copy) -> Fault | None:
    faults = [unit.fault for unit in units_of(copy, context.rules, None).values() if unit.fault is not None]
    return faults[0] if faults else None


def _move(context: PlanningContext, builder: PlanBuilder, view: View, copy: Copy, fault: Fault) -> None:
    node = context.node(copy)
    if node.below:
        inside = ", ".join(sorted(inner.copy.conversation for inner in node.subtree() if inner.copy is not None))
        raise RefusedError(
            f"{copy.place}: {inside} is in this directory and would be moved with it",
            "make the inner one local first, or correct the file",
        )
    anchor = node.anchor()
    if anchor is not None:
        raise RefusedError(anchor)
    name = _free_name(context, copy)
    note = _TEXT.format(file=fault.file, words=fault.words).encode("utf-8", "replace")
    put = Put(File(NOTE, len(note), context.now_ns, context.rules.digest(note)), content=note)
    kind = Kind.COPY if copy.side.value == "store" else Kind.PROJECT
    # The note first: after an interruption, a directory in the trash can't be named again.
    builder.write(_step(view, kind, EXTRA + NOTE), node, [put])
    builder.move(_step(view, Kind.MOVE, WHOLE), node, None, f"{TRASH}/", name)


def _free_name(context: PlanningContext, copy: Copy) -> str:
    """Return a name that is free in the trash: ``NAME``, ``NAME-1``, as JP counts.

    See docs/design/formats/jp.md#edge-case-53.
    """
    taken = {node.path for node in context.nodes[copy.side].values()}
    name, number = copy.dirname, 0
    while f"{TRASH}/{name}" in taken:
        number += 1
        name = f"{copy.dirname}-{number}"
    return name


def _step(view: View, kind: Kind, unit: str) -> Step:
    return Step(kind=kind, conversation=view.id, title=view.title, reason=Reason.QUARANTINED, unit=unit)

"""The state of each conversation in one word and one line, for `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.units import unit_text
from reconcile.planning.attention import restoring
from reconcile.planning.conflicts import undecided
from reconcile.planning.diagnosis import NOTHING_IN_IT
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconcile.model.plan import Action, Conflict, Item, Plan
    from reconcile.model.snapshot import Copy
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View

_ASIDE = {
    Reason.BEHIND_ASIDE: "behind",
    Reason.LOCAL_PRESENT: "local-present",
    Reason.REMOVED_BEFORE: "removed-before",
    Reason.DISPLACED: "displaced",
    Reason.KEPT: "kept",
    Reason.UNDONE: "undone",
}
_UNDECIDED = (Reason.CONFLICT_HELD, Reason.DIVERGED_HELD)
_HELD = {Reason.INVALID: "invalid", Reason.DIVERGED_HELD: "conflict"}


class StatusLine(Struct, frozen=True):
    """The state of a conversation in `status`.

    ``word`` is stable for programs; each of ``details`` is a line; ``settled``: nothing to do or to decide.
    """

    conversation: str
    title: str | None
    depth: int
    word: str
    details: tuple[str, ...]
    settled: bool

    @property
    def detail(self) -> str:
        """The details in one line."""
        return "; ".join(self.details)


def _requests(context: PlanningContext) -> dict[str, tuple[str, str]]:
    """Return by conversation the command of a request that waits for a run, and the reason why it waits."""
    if not context.baseline.waiting:
        return {}
    from reconcile.planning.requests.edits import since  # here: few conversations wait for a run

    return {
        conversation: (since(conversation, verb, waiting), waiting.why)
        for (conversation, verb), waiting in context.baseline.waiting.items()
    }


def status_lines(
    context: PlanningContext,
    plan: Plan,
    busy: Mapping[str, str],
    notices: Mapping[str, Sequence[str]],
    empty: Iterable[Copy] = (),
) -> tuple[StatusLine, ...]:
    """Return the status line of every conversation, in the order of the tree.

    ``busy`` names the holder of a conversation's lock. ``notices`` say how a run has decided a conflict.
    ``empty`` are directories with nothing in them (`reconcile.planning.diagnosis.empty_directories`).
    """
    actions: dict[str, list[Action]] = {}
    for action in plan.actions:
        actions.setdefault(action.conversation, []).append(action)
    conflicts: dict[str, list[Conflict]] = {}
    for conflict in plan.conflicts:
        conflicts.setdefault(conflict.conversation, []).append(conflict)
    items = {item.conversation: item for item in plan.aside}
    items |= {item.conversation: item for item in plan.held}
    requests = _requests(context)
    hollow: dict[str, list[str]] = {}
    for copy in empty:
        hollow.setdefault(copy.conversation, []).append(f"{copy.place}: {NOTHING_IN_IT}")
    lines = []
    for conversation in context.order:
        view = context.views[conversation]
        is_gone = context.presences[conversation].state == "gone"
        if is_gone and conversation not in hollow:
            continue
        item, found = items.get(conversation), conflicts.get(conversation)
        if found and (item is None or item.reason in (*_UNDECIDED, Reason.BEHIND_ASIDE)):
            word, is_settled = "conflict", False
            older = [item.message] if item is not None and item.reason is Reason.BEHIND_ASIDE else []
            details = [*map(undecided, found), *older]
        else:
            word, detail, is_settled = _word(context, view, actions.get(conversation, []), item)
            details = [detail] if detail else []
        if is_settled and conversation in hollow:
            word = "empty" if is_gone or not (view.store.units or view.workspace.units) else word
            details, is_settled = [*(details if word != "empty" else ()), *hollow[conversation]], False
        if view.local and view.workspace.main is not None and word != "local-present":
            word, details = _with_copy_here(word, details, item)
            is_settled = False
        if conversation in requests:
            command, why = requests[conversation]
            is_blocked = item is not None and item.reason not in _ASIDE
            word = word if is_blocked else "requested"
            details, is_settled = [*details, command] if is_blocked else [f"{command}: {why}"], False
        if conversation in busy:
            word, details, is_settled = "busy", [busy[conversation]], False
        elif is_settled and conversation in notices:
            details = [*details, *notices[conversation]]
        depth = context.tree.depths.get(conversation, 0)
        lines.append(StatusLine(conversation, view.title, depth, word, tuple(details), is_settled))
    return tuple(lines)


def _with_copy_here(word: str, details: list[str], item: Item | None) -> tuple[str, list[str]]:
    """Return the state of a local conversation that has a copy here: what blocks it comes first."""
    copy_here = "marked local, but this checkout has a copy"
    if item is not None and item.reason not in _ASIDE:
        return word, [*details, copy_here]
    return "local-present", [copy_here, *details]


def _word(context: PlanningContext, view: View, actions: list[Action], item: Item | None) -> tuple[str, str, bool]:
    if item is not None:
        written = [action for action in actions if action.kind in (Kind.COPY, Kind.PROJECT)]
        if item.reason is Reason.BEHIND_ASIDE and written:
            return "behind", f"{unit_text(written[0].unit)}: {written[0].reason.words}; {item.message}", False
        return (_HELD | _ASIDE).get(item.reason, "held"), item.message, item.reason in _ASIDE
    presence = context.presences[view.id]
    if presence.goal is Goal.IMPORT and actions:
        return "external", "in the workspace, not yet in the store", False
    kinds = {action.kind for action in actions}
    if presence.goal is Goal.REMOVE and actions:
        return "removed-in-store", actions[0].reason.words, False
    if Kind.COPY in kinds and Kind.PROJECT in kinds:
        return "newer-on-both", "both sides have newer parts", False
    if Kind.COPY in kinds:
        return "newer-in-workspace", actions[0].reason.words, False
    if Kind.PROJECT in kinds:
        return "newer-in-store", actions[0].reason.words, False
    if actions:
        return "to-" + actions[0].kind.value, actions[0].reason.words, False
    return _state_without_actions(context, view)


def _state_without_actions(context: PlanningContext, view: View) -> tuple[str, str, bool]:
    presence = context.presences[view.id]
    if presence.state == "waiting" and presence.intent is not None:
        return "waiting", f"restored together with {presence.intent.waits_for}", True
    if presence.state == "removed" and view.workspace.trash:
        place = view.workspace.trash[-1].place
        return "removed", f"moved to {place}; {restoring(view)}", True
    if presence.state == "projected" and context.sides.workspace_emptied:
        return "available", "in the store only", True  # a run publishes nothing there
    details = {
        "available": "in the store only",
        "local": "not copied to workspaces",
        "removed": f"deleted from this workspace; {restoring(view)}",
        "archived": "archived in the store",
    }
    return presence.state, details.get(presence.state, ""), True

"""The offers of `recover`: absent conversations that records say were in this workspace
(docs/design/intents.md#rule-31).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import IntentKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.baseline import Baseline, Intent
    from reconcile.planning.context import PlanningContext


class Offer(Struct, frozen=True):
    """Conversations that may be restored together.

    ``run`` is the run that noticed that they are gone; None: they existed at the end of the last run. ``known``: a
    record says so; otherwise they are merely in the store.
    """

    run: str | None
    conversations: tuple[str, ...]
    known: bool = True


UNDATED = ""
"""The run of an offer of conversations that only the list of the local and removed ones names, which has no run."""


class Offers(Struct, frozen=True):
    """The offers, the newest first. ``left_out`` are conversations below others that can't be restored."""

    groups: tuple[Offer, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def default(self) -> tuple[Offer, ...]:
        """The offers that are taken if no person can be asked: the newest, if a record supports it."""
        return tuple(group for group in self.groups[:1] if group.known)


def with_records(
    baseline: Baseline, records: Iterable[Baseline], conversations: Collection[str] | None = None
) -> Baseline:
    """Return the baseline with the entries that the records have besides, the newest first.

    For ``conversations`` (None: all) these are their places and extras. For any conversation they are the facts that it
    was removed, or waits, so that nothing else is concluded from its absence (docs/design/intents.md#rule-29).
    """
    agreed, former = dict(baseline.agreed), dict(baseline.former)
    known = {*baseline.agreed, *baseline.intents}
    for record in records:
        named = record.agreed.keys() if conversations is None else record.agreed.keys() & set(conversations)
        agreed |= {conversation: record.agreed[conversation] for conversation in named - agreed.keys()}
        away = ((conversation, intent) for conversation, intent in record.intents.items() if conversation not in known)
        former |= {
            conversation: intent
            for conversation, intent in away
            if intent.waits_for or intent.kind is IntentKind.REMOVED
        }
        known |= record.agreed.keys() | record.intents.keys()
    return replace(baseline, agreed=agreed, former=former)


def absent(context: PlanningContext, local: Collection[str] = ()) -> tuple[str, ...]:
    """Return the conversations of the store, also archived, that the workspace lacks; of local ones only ``local``."""
    views = (context.views[conversation] for conversation in context.order)
    missing = (view for view in views if view.store.main is not None and view.workspace.main is None)
    return tuple(view.id for view in missing if not view.local or view.id in local)


def offers(context: PlanningContext, records: Iterable[Baseline]) -> Offers:
    """Return the offers of this checkout's records; without records, all absent conversations.

    The context was decided with these records.
    """
    candidates = absent(context)
    by_run: dict[str | None, set[str]] = {}
    seen: set[str] = set()
    undated: set[str] = set()
    recorded = False
    for baseline in records:
        recorded = recorded or bool(baseline.agreed)
        for conversation in (baseline.agreed.keys() | baseline.intents.keys()) & (set(candidates) - seen):
            seen.add(conversation)
            intent = _last_of(baseline, conversation)
            if intent is None or intent.kind is IntentKind.PROJECTED:
                by_run.setdefault(None, set()).add(conversation)
            elif intent.kind is IntentKind.REMOVED and intent.run is not None:
                by_run.setdefault(intent.run, set()).add(conversation)
            elif intent.kind is IntentKind.REMOVED:
                undated.add(conversation)
                seen.remove(conversation)
    by_run[UNDATED] = undated - seen
    seen |= undated
    if not recorded:
        by_run, seen = {None: set(candidates)}, set(candidates)
    come = coming(context, set().union(*by_run.values()))
    removed_by = sorted((run for run in by_run if run is not None), reverse=True)
    runs = [None, *removed_by] if None in by_run else list(removed_by)
    groups = (Offer(run, tuple(absentee for absentee in come if absentee in by_run[run]), recorded) for run in runs)
    left_out = tuple(absentee for absentee in candidates if absentee in seen and absentee not in come)
    return Offers(tuple(group for group in groups if group.conversations), left_out)


def default_choice(context: PlanningContext, offered: Offers) -> tuple[str, ...]:
    """Return the conversations that are restored if no person can be asked."""
    return tuple(coming(context, [conversation for group in offered.default for conversation in group.conversations]))


def coming(context: PlanningContext, chosen: Collection[str]) -> Mapping[str, str | None]:
    """Return those of them that can be restored, parents first, each with its container.

    The container is the parent, if that is here or restored too. Otherwise it is the conversation that contained it
    when it was here without its parent: nothing is published for it (docs/design/placement.md#rule-8). An archived
    conversation has no container.
    """
    homes = {conversation: _homes(context, conversation) for conversation in context.order if conversation in chosen}
    inside: dict[str, list[str]] = {}
    ready = []
    for conversation, possible in homes.items():
        for home in possible:
            if home is None or _is_public_here(context, home):
                ready.append(conversation)
            else:
                inside.setdefault(home, []).append(conversation)
    come: set[str] = set()
    while ready:
        conversation = ready.pop()
        if conversation not in come:
            come.add(conversation)
            ready += inside.get(conversation, ())
    return {
        conversation: next(home for home in possible if home is None or home in come or _is_public_here(context, home))
        for conversation, possible in homes.items()
        if conversation in come
    }


def _homes(context: PlanningContext, conversation: str) -> list[str | None]:
    """Return the possible containers of a restored conversation, the best first."""
    parent, agreed = context.container_of(conversation), context.views[conversation].agreed
    if parent is None or agreed is None or context.views[parent].workspace.main is not None:
        return [parent]
    before = agreed.container
    if before is None or before not in context.tree:
        return [parent, None]
    is_above = conversation in (before, *context.tree.ancestors(before))
    return [parent] if is_above else [parent, before]


def _is_public_here(context: PlanningContext, conversation: str) -> bool:
    view = context.views[conversation]
    return view.workspace.main is not None and not view.local


def _last_of(baseline: Baseline, conversation: str) -> Intent | None:
    """Return the intent of a conversation, or of the one it left with: removed by a run that noticed it, or local."""
    seen: set[str] = set()
    intent = baseline.intents.get(conversation)
    while intent is not None and intent.waits_for is not None and intent.waits_for not in seen:
        seen.add(intent.waits_for)
        intent = baseline.intents.get(intent.waits_for)
    return intent

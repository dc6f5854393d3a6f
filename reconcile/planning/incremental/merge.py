"""Merges the plan of a part with the last plan of everything; the result equals a new plan of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from reconcile.model.plan import Item, Note, states_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.model.plan import Plan

T = TypeVar("T", Item, Note)


def completed(plan: Plan, about: Collection[str], before: Plan) -> Plan:
    """Return a plan of some conversations, completed with the entries of ``before`` for all others.

    ``before`` is a plan of everything. An entry for a conversation that already had one keeps its position.
    """
    counted = dict(before.counted)
    for conversation in about:
        counted.pop(conversation, None)
    counted.update(plan.counted)
    return replace(
        plan,
        held=_in_place(plan.held, about, before.held),
        aside=_in_place(plan.aside, about, before.aside),
        notes=_in_place(_of_conversations(plan.notes), about, before.notes),
        counted=counted,
        states=states_of(counted),
        quiet=plan.quiet and before.quiet,
    )


def _of_conversations(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes on conversations; notes on a side are unchanged, since a change of those causes a full scan."""
    return tuple(note for note in notes if note.conversation is not None)


def _in_place(items: Iterable[T], about: Collection[str], before: Iterable[T]) -> tuple[T, ...]:
    now: dict[str | None, list[T]] = {}
    for item in items:
        now.setdefault(item.conversation, []).append(item)
    merged: list[T] = []
    for item in before:
        if item.conversation in about:
            merged += now.pop(item.conversation, ())
        else:
            merged.append(item)
    for left in now.values():
        merged += left
    return tuple(merged)

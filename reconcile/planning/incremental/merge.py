"""A plan about a part, completed by what an earlier one said of everything else: what a plan about all would say."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from reconcile.model.plan import Item, Note, states_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.model.plan import Plan

T = TypeVar("T", Item, Note)


def completed(plan: Plan, about: Collection[str], before: Plan) -> Plan:
    """Return a plan about some conversations with what ``before``, which was about everything, says of the others.

    What is said of a conversation again stays where it was said before.
    """
    counted = dict(before.counted)
    for each in about:
        counted.pop(each, None)
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
    """Return what is noted of conversations; what concerns a side is as it was, or everything would be looked at."""
    return tuple(note for note in notes if note.conversation is not None)


def _in_place(items: Iterable[T], about: Collection[str], before: Iterable[T]) -> tuple[T, ...]:
    now: dict[str | None, list[T]] = {}
    for item in items:
        now.setdefault(item.conversation, []).append(item)
    found: list[T] = []
    for item in before:
        if item.conversation in about:
            found += now.pop(item.conversation, ())
        else:
            found.append(item)
    for left in now.values():
        found += left
    return tuple(found)

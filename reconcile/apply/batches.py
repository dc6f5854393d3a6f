"""Which actions are carried out together: whole conversations, under their locks, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.model.plan import Action

LOCKS_AT_ONCE = 256
"""Conversations that one batch locks, unless a single subtree has more: as many as there may be open files in any case.
Each batch waits for the disk a few times, and nobody else gets at its conversations until it is done."""


def batches(actions: Sequence[Action]) -> Iterator[list[Action]]:
    """Yield the actions in batches: what needs each other, or concerns the same conversation, stays together."""
    groups = _components(actions)
    batch: list[Action] = []
    locks: set[str] = set()
    for group in groups:
        touched = {conversation for action in group for conversation in action.touches}
        if batch and len(locks | touched) > LOCKS_AT_ONCE:
            yield batch
            batch, locks = [], set()
        batch += group
        locks |= touched
    if batch:
        yield batch


def _components(actions: Sequence[Action]) -> list[list[Action]]:
    """Group the actions by what they need and whom they touch, in the order of the first of each."""
    leader: dict[str, str] = {}

    def find(key: str) -> str:
        root = key
        while leader.setdefault(root, root) != root:
            root = leader[root]
        while leader[key] != root:
            leader[key], key = root, leader[key]
        return root

    for action in actions:
        own = find(f"#{action.id}")
        named = () if action.together is None else (f"&{action.together}",)
        for key in (*(f"#{need}" for need in action.needs), *action.touches, *named):
            leader[find(key)] = own
    groups: dict[str, list[Action]] = {}
    for action in actions:
        groups.setdefault(find(f"#{action.id}"), []).append(action)
    return list(groups.values())


def levels(batch: Sequence[Action]) -> list[list[Action]]:
    """Split a batch so that everything an action needs is in an earlier level."""
    level: dict[str, int] = {}
    found: list[list[Action]] = []
    for action in batch:
        at = 1 + max((level.get(need, -1) for need in action.needs), default=-1)
        level[action.id] = at
        if at == len(found):
            found.append([])
        found[at].append(action)
    return found

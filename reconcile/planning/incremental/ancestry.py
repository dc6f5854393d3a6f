"""Who is above whom, in every way that a plan goes by: what a part of a run must be about
(`reconcile.planning.incremental.scope`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.snapshot import Metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.snapshot import Copy

_NOBODY: frozenset[str] = frozenset()


def above(conversation: str, copies: Iterable[Copy], baseline: Baseline) -> frozenset[str]:
    """Return what a conversation may be below: parents stated, known and agreed on, the conversations around its
    directories, then and now, and the one that it waits for.
    """
    agreed, intent = baseline.agreed.get(conversation), baseline.intents.get(conversation)
    found = {baseline.parents.get(conversation)}
    for copy in copies:
        found.add(copy.container)
        if isinstance(copy.metadata, Metadata):
            found.add(copy.metadata.parent.id)
    if agreed is not None:
        found |= {agreed.parent, agreed.container}
    if intent is not None:
        found.add(intent.waits_for)
    return frozenset(each for each in found if each is not None and each != conversation)


def ancestry_of(copies: Iterable[Copy], baseline: Baseline) -> Ancestry:
    """Return the relation of everything, as `above` has it of each."""
    found: dict[str, set[str | None]] = {}
    for copy in copies:
        stated = copy.metadata.parent.id if isinstance(copy.metadata, Metadata) else None
        if copy.container is not None or stated is not None:
            found.setdefault(copy.conversation, set()).update((copy.container, stated))
    for conversation, parent in baseline.parents.items():
        if parent is not None:
            found.setdefault(conversation, set()).add(parent)
    for conversation, agreed in baseline.agreed.items():
        if agreed.parent is not None or agreed.container is not None:
            found.setdefault(conversation, set()).update((agreed.parent, agreed.container))
    for conversation, intent in baseline.intents.items():
        found.setdefault(conversation, set()).add(intent.waits_for)
    ancestry = Ancestry()
    for conversation, others in found.items():
        ancestry.put(conversation, frozenset(each for each in others if each is not None and each != conversation))
    return ancestry


class Ancestry:
    """The relation in both directions. An answer costs what it is long; nothing recurses, whatever cycles there are."""

    def __init__(self, above: Mapping[str, Iterable[str]] | None = None) -> None:
        """Know what these are below, by default of nobody yet."""
        self._above: dict[str, frozenset[str]] = {}
        self._below: dict[str, set[str]] = {}
        for conversation, found in (above or {}).items():
            self.put(conversation, frozenset(found))

    @property
    def relations(self) -> dict[str, frozenset[str]]:
        """What each conversation is below, of those that are below any."""
        return {each: found for each, found in self._above.items() if found}

    def put(self, conversation: str, above: frozenset[str]) -> None:
        """Say what a conversation is below from now on."""
        before = self._above.get(conversation, _NOBODY)
        for each in before - above:
            self._below[each].discard(conversation)
        for each in above - before:
            self._below.setdefault(each, set()).add(conversation)
        self._above[conversation] = above

    def parents(self, conversation: str) -> frozenset[str]:
        """Return what is right above a conversation."""
        return self._above.get(conversation, _NOBODY)

    def with_below(self, conversations: Iterable[str]) -> set[str]:
        """Return these and everything below them."""
        return _reached(conversations, self._below)

    def with_above(self, conversations: Iterable[str]) -> set[str]:
        """Return these and everything above them."""
        return _reached(conversations, self._above)


def closure(
    changed: Iterable[str],
    left: Iterable[str],
    ancestry: Ancestry,
    unsettled: Callable[[Collection[str]], Collection[str]] = lambda _: (),
) -> frozenset[str]:
    """Return the conversations that a plan of some is about, so that it equals the plan of everything.

    A change concerns itself, with everything below it, which may move along; and what is above it, which tells where it
    belongs. An ancestor that isn't clean may have to change because of it (a directory that was kept for a child's
    sake), so that it concerns all that is below that as well. Everything else was clean before, or waits for something
    that isn't among these.

    ``left``: what the changed ones were below before. ``unsettled`` returns those of some that aren't clean; by default
    all that isn't clean is among the changed.
    """
    inner = ancestry.with_below(changed)
    while True:
        near = ancestry.with_above(inner.union(left))
        expanded = unsettled(near - inner)
        if not expanded:
            return frozenset(near)
        inner = ancestry.with_below(inner.union(expanded))


def _reached(start: Iterable[str], ways: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    stack = list(start)
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += ways.get(each, ())
    return found

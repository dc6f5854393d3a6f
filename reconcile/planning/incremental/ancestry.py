"""The relation between conversations and those above them, and the closure that a plan of a part must cover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.snapshot import Metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.snapshot import Copy

_NONE: frozenset[str] = frozenset()


def above(conversation: str, copies: Iterable[Copy], baseline: Baseline) -> frozenset[str]:
    """Return the conversations that a conversation may be below.

    These are the parents in its metadata and its baseline, the conversations that contain its directories (now and
    in the baseline), and the one that its intent waits for.
    """
    agreed, intent = baseline.agreed.get(conversation), baseline.intents.get(conversation)
    parents = {baseline.parents.get(conversation)}
    for copy in copies:
        parents.add(copy.container)
        if isinstance(copy.metadata, Metadata):
            parents.add(copy.metadata.parent.id)
    if agreed is not None:
        parents |= {agreed.parent, agreed.container}
    if intent is not None:
        parents.add(intent.waits_for)
    return frozenset(parent for parent in parents if parent is not None and parent != conversation)


def ancestry_of(copies: Iterable[Copy], baseline: Baseline) -> Ancestry:
    """Return the relation of all conversations; `above` defines it for one."""
    parents_of: dict[str, set[str | None]] = {}
    for copy in copies:
        stated = copy.metadata.parent.id if isinstance(copy.metadata, Metadata) else None
        if copy.container is not None or stated is not None:
            parents_of.setdefault(copy.conversation, set()).update((copy.container, stated))
    for conversation, parent in baseline.parents.items():
        if parent is not None:
            parents_of.setdefault(conversation, set()).add(parent)
    for conversation, agreed in baseline.agreed.items():
        if agreed.parent is not None or agreed.container is not None:
            parents_of.setdefault(conversation, set()).update((agreed.parent, agreed.container))
    for conversation, intent in baseline.intents.items():
        parents_of.setdefault(conversation, set()).add(intent.waits_for)
    ancestry = Ancestry()
    for conversation, parents in parents_of.items():
        others = frozenset(parent for parent in parents if parent is not None and parent != conversation)
        ancestry.put(conversation, others)
    return ancestry


class Ancestry:
    """The relation in both directions.

    A query costs as much as its result is long. No method recurses, so that cycles are harmless.
    """

    def __init__(self, above: Mapping[str, Iterable[str]] | None = None) -> None:
        """Create the relation; ``above`` maps conversations to those above them."""
        self._above: dict[str, frozenset[str]] = {}
        self._below: dict[str, set[str]] = {}
        for conversation, parents in (above or {}).items():
            self.put(conversation, frozenset(parents))

    @property
    def relations(self) -> dict[str, frozenset[str]]:
        """The conversations above each conversation, without those that have none."""
        return {conversation: parents for conversation, parents in self._above.items() if parents}

    def put(self, conversation: str, above: frozenset[str]) -> None:
        """Replace the conversations that are above a conversation."""
        before = self._above.get(conversation, _NONE)
        for parent in before - above:
            self._below[parent].discard(conversation)
        for parent in above - before:
            self._below.setdefault(parent, set()).add(conversation)
        self._above[conversation] = above

    def parents(self, conversation: str) -> frozenset[str]:
        """Return the conversations directly above a conversation."""
        return self._above.get(conversation, _NONE)

    def with_below(self, conversations: Iterable[str]) -> set[str]:
        """Return these conversations and all below them."""
        return _reachable(conversations, self._below)

    def with_above(self, conversations: Iterable[str]) -> set[str]:
        """Return these conversations and all above them."""
        return _reachable(conversations, self._above)


def closure(
    changed: Iterable[str],
    left: Iterable[str],
    ancestry: Ancestry,
    dirty: Callable[[Collection[str]], Collection[str]] = lambda _: (),
) -> frozenset[str]:
    """Return the conversations that a plan must cover so that it equals the plan of everything.

    A change concerns the conversation, all below it, which may move with it, and all above it, which define its place.
    A dirty ancestor may have to change too: its directory may exist only for a child. Then all below it are concerned.
    All other conversations were clean before, or wait for a conversation outside of the closure.

    ``left``: the conversations that were above the changed ones before. ``dirty`` returns the dirty ones of some
    conversations; by default all dirty ones are in ``changed``.
    """
    inner = ancestry.with_below(changed)
    while True:
        near = ancestry.with_above(inner.union(left))
        ancestors = near - inner
        expanded = dirty(ancestors) if ancestors else ()
        if not expanded:
            return frozenset(near)
        inner = ancestry.with_below(inner.union(expanded))


def _reachable(start: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    reachable: set[str] = set()
    stack = list(start)
    while stack:
        conversation = stack.pop()
        if conversation not in reachable:
            reachable.add(conversation)
            stack += edges.get(conversation, ())
    return reachable

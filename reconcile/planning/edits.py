"""What a tree command changes before the planner decides, so that the rules of every run hold for it.

This is docs/design/run.md#rule-45.

An edit says what shall be: intents, parents, what leaves the workspace and what is removed. How that comes about, with
everything saved first, is the planner's. What each command makes of its targets is in
`reconcile.planning.requests.dispatch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.baseline import Intent, Memory, Verb
    from reconcile.model.options import Take
    from reconcile.model.plan import Item, Note
    from reconcile.model.policy import Policy
    from reconcile.model.reasons import Reason

NOBODY = frozenset({""})
"""A scope that no conversation is in; an empty one is everything."""


class RefusedError(ValueError):
    """A command asks for what can't be; ``hints`` are the ways on."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.hints = hints


class Edits(Struct, frozen=True, kw_only=True):
    """The changes.

    ``leaving``: workspace directories that go, ``deleted``: conversations that go from both sides (parents first), each
    with the reason. ``below``: the children of each of those that go too, and before it, so that the same command finds
    what is left when one of them can't go. ``heirs``: its other children, which have to get another parent before it
    goes. ``together``: what goes at once or not at all, with a name for it all. ``asked``: put where it belongs.
    ``apart``: what lies elsewhere than in its parent, which isn't here, and in what (None: at the top). ``scope``: what
    the run is limited to; everything else stays as it is. ``dropped``: earlier requests that end without being done.
    """

    intents: Mapping[str, Intent | None] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    promoted: frozenset[str] = frozenset()
    leaving: Mapping[str, Reason] = field(default_factory=dict)
    deleted: Mapping[str, Reason] = field(default_factory=dict)
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    heirs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: Mapping[str, str] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    apart: Mapping[str, str | None] = field(default_factory=dict)
    decisions: Mapping[str, Take] = field(default_factory=dict)
    scope: frozenset[str] = frozenset()
    held: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    dropped: frozenset[tuple[str, Verb]] = frozenset()

    def remembering(self, memory: Memory) -> Memory:
        """Return what is remembered as if the intents held already; what leaves is saved whatever was set aside."""
        kept = {key: intent for key, intent in memory.intents.items() if key not in self.intents}
        changed = {key: intent for key, intent in self.intents.items() if intent is not None}
        asides = {key: record for key, record in memory.asides.items() if key[0] not in self.leaving}
        return replace(memory, intents=kept | changed, asides=asides)

    def joining(self, policy: Policy) -> Policy:
        """Return the policy of a plain run that carries them out besides everything else."""
        return replace(policy, decisions={**policy.decisions, **self.decisions})

    def deciding(self, policy: Policy) -> Policy:
        """Return the policy of the command's own run, which carries out nothing else."""
        wanted = policy.only | policy.below
        only = (self.scope & wanted or NOBODY) if wanted else self.scope
        return replace(self.joining(policy), only=only, below=frozenset())

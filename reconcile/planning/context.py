"""One planning pass: what has been decided so far, and the edits that a command asks for.

The edits are applied before the planner decides, so that the rules of every run hold for them
(docs/design/run.md#rule-45). An edit says what shall be: intents, parents, what leaves the workspace and what is
removed. The planner decides how that is done, with everything saved first. Each command computes its edits in
`reconcile.planning.requests.edits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.options import Layout
from reconcile.model.plan import Item, Note, Preserve
from reconcile.model.snapshot import METADATA, WHOLE, Metadata, Place, joined
from reconcile.planning.builder import PlanBuilder
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.model.baseline import AsideRecord, Baseline, Intent, Verb
    from reconcile.model.format import DerivedRepair
    from reconcile.model.options import Take
    from reconcile.model.policy import Policy
    from reconcile.model.reasons import Reason
    from reconcile.model.snapshot import Copy, Digest, Side
    from reconcile.model.units import Rules, Unit
    from reconcile.planning.builder import Node, Step
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.guards import Sides, Whole
    from reconcile.planning.rules.presence import Presence
    from reconcile.planning.rules.tree import Parentage, TreeIndex
    from reconcile.planning.rules.views import View

NAMED = 5
"""Conversations that a message names before it counts the rest."""
NO_CONVERSATION = frozenset({""})
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
    goes. ``together``: what goes at once or not at all, with a name for it all. ``requested``: put where it belongs.
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
    requested: frozenset[str] = frozenset()
    apart: Mapping[str, str | None] = field(default_factory=dict)
    decisions: Mapping[str, Take] = field(default_factory=dict)
    scope: frozenset[str] = frozenset()
    held: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    dropped: frozenset[tuple[str, Verb]] = frozenset()

    def applied_to(self, baseline: Baseline) -> Baseline:
        """Return what is remembered as if the intents held already; what leaves is saved whatever was set aside."""
        if not self.intents and not self.leaving:
            return baseline
        kept = {key: intent for key, intent in baseline.intents.items() if key not in self.intents}
        changed = {key: intent for key, intent in self.intents.items() if intent is not None}
        asides = {key: record for key, record in baseline.asides.items() if key[0] not in self.leaving}
        return replace(baseline, intents=kept | changed, asides=asides)

    def extended_policy(self, policy: Policy) -> Policy:
        """Return the policy of a plain run that carries them out besides everything else."""
        return replace(policy, decisions={**policy.decisions, **self.decisions})

    def limited_policy(self, policy: Policy) -> Policy:
        """Return the policy of the command's own run, which carries out nothing else."""
        wanted = policy.only | policy.below
        only = (self.scope & wanted or NO_CONVERSATION) if wanted else self.scope
        return replace(self.extended_policy(policy), only=only, below=frozenset())


class PlanningContext(Struct, kw_only=True):
    """Decisions by conversation, the virtual sides, and the plan in the making."""

    views: dict[str, View]
    baseline: Baseline
    policy: Policy
    rules: Rules
    sides: Sides
    whole: Whole
    now_ns: int
    nodes: dict[Side, dict[str, Node]]
    presences: dict[str, Presence] = field(default_factory=dict)
    verdicts: dict[str, dict[str, Verdict]] = field(default_factory=dict)
    parentage: dict[str, Parentage] = field(default_factory=dict)
    tree: TreeIndex
    order: tuple[str, ...] = ()
    """Every id, live ones first, parents before children."""
    unchanged: set[str] = field(default_factory=set)
    """What has the same content on both sides, so that its files stay as they are and nothing is reported of it."""
    reviewed: frozenset[str] = frozenset()
    """What an earlier run has set something aside of: that may have to be released."""
    frozen: frozenset[str] = frozenset()
    """What may not move: its parent, or that of one above it, can't be told now (docs/design/placement.md#rule-7)."""
    present: dict[str, Node] = field(default_factory=dict)
    """The workspace directory that each conversation has once the plan is carried out."""
    broken: set[str] = field(default_factory=set)
    """Those of them that aren't complete, or lie below one that isn't, or isn't there."""
    displaced: set[str] = field(default_factory=set)
    """What stays where somebody else has put it."""
    homes: dict[str, Node] = field(default_factory=dict)
    """The store directory of each conversation, new ones included."""
    to_remove: dict[tuple[Side, str], set[str]] = field(default_factory=dict)
    """Directories that should not be there, by side and path, with the conversations that lay below them."""
    edits: Edits = field(default_factory=Edits)
    """What a command asks for besides."""
    mended: tuple[DerivedRepair, ...] = ()
    """Derived data of the workspace that is made again before anything else."""
    due: frozenset[tuple[str, ...]] | None = None
    """What a plain run would do, where a command limits itself: what else its result makes due is done with it."""
    forks: dict[str, str] = field(default_factory=dict)
    """New conversations, each with the one that it continues."""
    blocked: list[tuple[View, Step, Node, tuple[Node | None, str, str]]] = field(default_factory=list)
    """Moves whose place was taken when they were due: to (container, prefix, name)."""
    builder: PlanBuilder = field(default_factory=PlanBuilder)
    held: list[Item] = field(default_factory=list)
    aside: list[Item] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    preserve: list[Preserve] = field(default_factory=list)
    intents: dict[str, Intent | None] = field(default_factory=dict)
    asides: dict[tuple[str, str], AsideRecord | None] = field(default_factory=dict)
    tombstones: dict[str, tuple[Digest, ...]] = field(default_factory=dict)

    def node(self, copy: Copy) -> Node:
        """Return the directory of a copy that the scan found."""
        return self.nodes[copy.side][copy.path]

    def is_void(self, view: View) -> bool:
        """Tell whether the baseline ends, because the store that it spoke of is no more.

        What the workspace has is new then, and what is on neither side was not removed.
        """
        if not self.sides.store_renewed:
            return False
        gone = view.agreed is not None and view.store.main is None
        if view.agreed is not None and view.workspace.main is None:
            hidden = self.sides.workspace_emptied or self.sides.hides(view.agreed.place)
            gone &= not (hidden or view.store.trashed)
        return gone and self.presences[view.id].goal is not Goal.REMOVE

    def container_of(self, conversation: str) -> str | None:
        """Return the conversation in whose directory the layout places this one, None for the top."""
        if self.policy.layout is Layout.FLAT or conversation not in self.tree:
            return None
        return self.tree.parent_of(conversation)

    def dirname_of(self, view: View, main: Copy, final: Metadata | None) -> str:
        """Return a directory's name: the one found, unless the title has changed (docs/design/placement.md#rule-5)."""
        if final is None:
            return main.dirname
        known = view.agreed is not None and METADATA in view.agreed.units
        changed = view.agreed is not None and known and view.agreed.title != final.title
        changed = changed or (isinstance(main.metadata, Metadata) and main.metadata.title != final.title)
        # A first run that was cut short between a new title and the name that goes with it.
        due = changed or (not known and (main.side, view.id) in self.baseline.renames)
        return self.rules.format.dirname(view.id, final.title) if due else main.dirname

    def free_id(self, taken: set[str]) -> str:
        """Return the id of a new conversation: neither in ``taken``, which grows, nor known outside this part."""
        while (new := self.rules.format.new_id(self.now_ns, taken)) in self.whole.taken:
            taken.add(new)
        return new

    def existing(self, ids: Iterable[str]) -> list[str]:
        """Return the targets that are still there: a saved plan may ask again for what is gone by now."""
        return [each for each in ids if each in self.views]

    def names(self, conversations: Iterable[str]) -> str:
        """Name conversations by title and id, a few of them."""
        found = list(conversations)
        named = [f"{self.views[each].title or '(no title)'} ({each})" for each in found[:NAMED]]
        return ", ".join(named) + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")

    def held_item(self, conversation: str, reason: Reason, message: str, *resolve: str) -> Item:
        """Return what is held of a conversation as a whole."""
        return self._item(self.views[conversation], WHOLE, reason, message, resolve)

    def hold(self, view: View, unit: str, reason: Reason, message: str, *resolve: str) -> None:
        """Note that a decision is needed."""
        self.held.append(self._item(view, unit, reason, message, resolve))

    def set_aside(self, view: View, unit: str, reason: Reason, message: str, *resolve: str) -> None:
        """Note a stable state."""
        self.aside.append(self._item(view, unit, reason, message, resolve))

    @staticmethod
    def _item(view: View, unit: str, reason: Reason, message: str, resolve: tuple[str, ...]) -> Item:
        return Item(
            conversation=view.id,
            title=view.title,
            unit=unit,
            reason=reason,
            message=message,
            resolve=resolve,
        )

    def note(self, conversation: str | None, reason: Reason, message: str, unit: str = WHOLE) -> None:
        """Note something that needs no decision."""
        self.notes.append(Note(conversation=conversation, unit=unit, reason=reason, message=message))

    def keep_version(self, unit: Unit) -> None:
        """Have a version put into the vault although nothing replaces it yet."""
        for file in unit.files:
            if file.digest is None:
                continue
            self.preserve.append(
                Preserve(
                    conversation=unit.copy.conversation,
                    unit=unit.name,
                    place=Place(unit.copy.side, joined(unit.copy.path, file.name)),
                    size=file.size,
                    mtime_ns=file.mtime_ns,
                    digest=file.digest,
                )
            )

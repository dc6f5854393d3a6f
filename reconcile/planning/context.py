"""One pass of planning: what has been decided so far, shared by the parts that write the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.options import Layout
from reconcile.model.plan import Item, Note, Preserve
from reconcile.model.snapshot import METADATA, WHOLE, Metadata, Place, joined
from reconcile.planning.builder import Draft
from reconcile.planning.edits import Edits
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.baseline import AsideRecord, Intent, Memory
    from reconcile.model.format import Mended
    from reconcile.model.policy import Policy
    from reconcile.model.reasons import Reason
    from reconcile.model.snapshot import Copy, Digest, Side
    from reconcile.model.units import Rules, Unit
    from reconcile.planning.builder import Step
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.guards import Sides, Whole
    from reconcile.planning.rules.parents import Parentage
    from reconcile.planning.rules.presence import Presence
    from reconcile.planning.rules.tree import TreeIndex
    from reconcile.planning.rules.views import View
    from reconcile.planning.virtual_tree import Node

NAMED = 5
"""Conversations that a message names before it counts the rest."""


class Board(Struct, kw_only=True):
    """Decisions by conversation, the virtual sides, and the plan in the making."""

    views: dict[str, View]
    memory: Memory
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
    doomed: dict[tuple[Side, str], set[str]] = field(default_factory=dict)
    """Directories that should not be there, by side and path, with the conversations that lay below them."""
    edits: Edits = field(default_factory=Edits)
    """What a command asks for besides."""
    mended: tuple[Mended, ...] = ()
    """Derived data of the workspace that is made again before anything else."""
    due: frozenset[tuple[str, ...]] | None = None
    """What a plain run would do, where a command limits itself: what else its result makes due is done with it."""
    forks: dict[str, str] = field(default_factory=dict)
    """New conversations, each with the one that it continues."""
    blocked: list[tuple[View, Step, Node, tuple[Node | None, str, str]]] = field(default_factory=list)
    """Moves whose place was taken when they were due: to (container, prefix, name)."""
    draft: Draft = field(default_factory=Draft)
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
        gone = view.agreed is not None and view.store.main is None
        if view.agreed is not None and view.workspace.main is None:
            hidden = self.sides.workspace_emptied or self.sides.hides(view.agreed.place)
            gone &= not (hidden or view.store.trashed)
        return gone and self.sides.store_renewed and self.presences[view.id].goal is not Goal.REMOVE

    def container_of(self, conversation: str) -> str | None:
        """Return the conversation in whose directory the layout places this one, None for the top."""
        if self.policy.layout is Layout.FLAT or conversation not in self.tree:
            return None
        return self.tree.parent_of(conversation)

    def dirname_of(self, view: View, main: Copy, final: Metadata | None) -> str:
        """Return a directory's name: the one found, unless the title has changed (docs/design/placement.md#rule-5)."""
        known = view.agreed is not None and METADATA in view.agreed.units
        before = [view.agreed.title] if view.agreed is not None and known else []
        before += [main.metadata.title] if isinstance(main.metadata, Metadata) else []
        if final is None:
            return main.dirname
        name = self.rules.format.dirname(view.id, final.title)
        # A first run that was cut short between a new title and the name that goes with it.
        due = not known and (main.side, view.id) in self.memory.renames
        return name if due or any(title != final.title for title in before) else main.dirname

    def still_there(self, ids: Iterable[str]) -> list[str]:
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

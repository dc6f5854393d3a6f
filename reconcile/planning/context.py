"""One planning pass: the decisions so far, and the edits that a command asks for.

The edits are applied before the planner decides, so that the rules of every run apply to them
(docs/design/run.md#rule-45). An edit states the goal: intents, parents, directories that leave the workspace,
conversations to remove. The planner decides how to get there, with everything saved first. Each command computes its
edits in `reconcile.planning.requests.edits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.options import Layout
from reconcile.model.plan import Conflict, Item, Note, Preserve
from reconcile.model.policy import NO_CONVERSATION
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, WHOLE, Metadata, Place, joined
from reconcile.planning.builder import PlanBuilder
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.model.baseline import AsideRecord, Baseline, Intent, Verb
    from reconcile.model.format import DerivedRepair
    from reconcile.model.options import Take
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Digest, Fault, Side
    from reconcile.model.units import Rules, Unit
    from reconcile.planning.builder import Node, Step
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.guards import Sides, Whole
    from reconcile.planning.rules.presence import Presence
    from reconcile.planning.rules.tree import Parentage, TreeIndex
    from reconcile.planning.rules.views import View

NAMED = 5
"""The number of conversations that a message names before it counts the rest."""


class RefusedError(ValueError):
    """A command asks for something impossible; ``hints`` suggest the next commands."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.hints = hints


class Edits(Struct, frozen=True, kw_only=True):
    """The edits.

    ``leaving``: conversations whose workspace directories are removed. ``deleted``: conversations that are removed from
    both sides (parents first), each with the reason. ``below``: the children of a deleted one that are deleted too,
    before it, so that the same command finds the rest if one can't be removed. ``heirs``: its other children, which
    must get another parent first. ``together``: groups that are applied completely or not at all, by name.
    ``requested``: conversations to place where they belong. ``apart``: conversations that lie elsewhere than in their
    absent parent, and in which one (None: at the top). ``scope``: the conversations of the run; all others stay as they
    are. ``limits``: the options by which the person limits a command that names no target. ``dropped``: earlier
    requests that end without being carried out.
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
    choices: Mapping[tuple[str, str], Take] = field(default_factory=dict)
    scope: frozenset[str] = frozenset()
    limits: str = ""
    held: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    dropped: frozenset[tuple[str, Verb]] = frozenset()

    def applied_to(self, baseline: Baseline) -> Baseline:
        """Return the baseline as if the intents already held; everything that leaves the workspace is saved, even if
        set aside.
        """
        if not self.intents and not self.leaving:
            return baseline
        kept = {key: intent for key, intent in baseline.intents.items() if key not in self.intents}
        changed = {key: intent for key, intent in self.intents.items() if intent is not None}
        asides = {key: record for key, record in baseline.asides.items() if key[0] not in self.leaving}
        return replace(baseline, intents=kept | changed, asides=asides)

    def extended_policy(self, policy: Policy) -> Policy:
        """Return the policy of a plain run that carries out these edits besides everything else."""
        decisions, choices = {**policy.decisions, **self.decisions}, {**self.choices, **policy.choices}
        return replace(policy, decisions=decisions, choices=choices)

    def limited_policy(self, policy: Policy) -> Policy:
        """Return the policy of the command's own run, which carries out nothing else."""
        wanted = policy.only | policy.below
        only = (self.scope & wanted or NO_CONVERSATION) if wanted else self.scope
        return replace(self.extended_policy(policy), only=only, below=frozenset())


class PlanningContext(Struct, kw_only=True):
    """Decisions by conversation, the virtual sides, and the plan builder."""

    views: dict[str, View]
    baseline: Baseline
    policy: Policy
    rules: Rules
    sides: Sides
    whole: Whole
    now_ns: int
    program: object = None
    """The state of the format's program in this workspace (`Snapshot.derived_inputs`)."""
    nodes: dict[Side, dict[str, Node]]
    presences: dict[str, Presence] = field(default_factory=dict)
    verdicts: dict[str, dict[str, Verdict]] = field(default_factory=dict)
    parentage: dict[str, Parentage] = field(default_factory=dict)
    tree: TreeIndex
    order: tuple[str, ...] = ()
    """Every id, live ones first, parents before children."""
    unchanged: set[str] = field(default_factory=set)
    """Conversations with the same content on both sides: no step writes their files, and nothing is reported of them.
    """
    reviewed: frozenset[str] = frozenset()
    """Conversations for which an earlier run has recorded something as set aside, which may have to be released."""
    frozen: frozenset[str] = frozenset()
    """Conversations that may not move, because a parent at or above them is undecided
    (docs/design/placement.md#rule-7).
    """
    present: dict[str, Node] = field(default_factory=dict)
    """The workspace directory that each conversation has after the plan."""
    broken: set[str] = field(default_factory=set)
    """Those of ``present`` that are incomplete, or below an incomplete or absent one."""
    displaced: set[str] = field(default_factory=set)
    """Conversations that stay at the place where another program has moved them."""
    homes: dict[str, Node] = field(default_factory=dict)
    """The store directory of each conversation, new ones included."""
    to_remove: dict[tuple[Side, str], set[str]] = field(default_factory=dict)
    """Directories that should be removed, by side and path, with the conversations that were below them."""
    edits: Edits
    """The edits of a command."""
    repairs: tuple[DerivedRepair, ...] = ()
    """Repairs of derived data in the workspace that come before all other steps."""
    due: frozenset[tuple[str, ...]] | None = None
    """The steps of a plain run, if a command limits itself: further steps that follow from its result are done with it.
    """
    forks: dict[str, str] = field(default_factory=dict)
    """New conversations, each with the one that it continues."""
    making_room: dict[str, list[str]] = field(default_factory=dict)
    """For a record of the store, those that this run removes from its place in the workspace: it gets there afterwards.
    """
    two_shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The records that are held because one side has a file in the place of the other side's directory, each with the
    message and the commands that decide.
    """
    blocked: list[tuple[View, Step, Node, tuple[Node | None, str, str]]] = field(default_factory=list)
    """Moves to a place that was taken when they were due: to (container, prefix, name)."""
    builder: PlanBuilder = field(default_factory=PlanBuilder)
    held: list[Item]
    aside: list[Item] = field(default_factory=list)
    notes: list[Note]
    conflicts: list[Conflict] = field(default_factory=list)
    preserve: list[Preserve] = field(default_factory=list)
    intents: dict[str, Intent | None] = field(default_factory=dict)
    asides: dict[tuple[str, str], AsideRecord | None]
    tombstones: dict[str, tuple[Digest, ...]] = field(default_factory=dict)

    def node(self, copy: Copy) -> Node:
        """Return the directory of a copy that the scan found."""
        return self.nodes[copy.side][copy.path]

    def is_void(self, view: View) -> bool:
        """Tell whether the baseline entry ends, because its store no longer exists.

        The workspace's version is new then, and a conversation that is on neither side was not removed.
        """
        if not self.sides.store_renewed:
            return False
        gone = view.agreed is not None and view.store.main is None
        if view.agreed is not None and view.workspace.main is None:
            hidden = self.sides.workspace_emptied or self.sides.hides(view.agreed.place)
            gone &= not (hidden or view.store.trashed)
        return gone and self.presences[view.id].goal is not Goal.REMOVE

    def is_hidden(self, view: View) -> bool:
        """Tell whether its directory may be in a part of the workspace that the scan could not read."""
        return view.workspace.main is None and view.agreed is not None and self.sides.hides(view.agreed.place)

    def container_of(self, conversation: str) -> str | None:
        """Return the conversation in whose directory the layout places this one; None for the top."""
        if self.policy.layout is Layout.FLAT or conversation not in self.tree:
            return None
        return self.tree.parent_of(conversation)

    def dirname_of(self, view: View, main: Copy, final: Metadata | None) -> str:
        """Return a directory's name: the current one unless the title has changed (docs/design/placement.md#rule-5)."""
        if final is None:
            return main.dirname
        known = view.agreed is not None and METADATA in view.agreed.units
        changed = view.agreed is not None and known and view.agreed.title != final.title
        changed = changed or (isinstance(main.metadata, Metadata) and main.metadata.title != final.title)
        # A first run was interrupted between writing a new title and renaming the directory.
        due = changed or (not known and (main.side, view.id) in self.baseline.renames)
        return self.rules.format.dirname(view.id, final.title) if due else main.dirname

    def free_id(self, taken: set[str]) -> str:
        """Return the id of a new conversation: neither in ``taken``, which grows, nor known outside this part."""
        while (new := self.rules.format.new_id(self.now_ns, taken)) in self.whole.taken:
            taken.add(new)
        return new

    def existing(self, ids: Iterable[str]) -> list[str]:
        """Return the targets that still exist: a saved plan may ask for conversations that are gone by now.

        Raises:
            RefusedError: one was never a conversation: its directory has none of a conversation's own files.
        """
        found = [conversation for conversation in ids if conversation in self.views]
        for view in map(self.views.__getitem__, found):
            is_known = view.agreed is not None or view.intent is not None
            if view.workspace.bare_directories and view.store.main is view.workspace.main is None and not is_known:
                place = view.workspace.bare_directories[0].place
                problem = f"{place} has none of a conversation's own files, so it is no conversation"
                raise RefusedError(problem, "see what to do about it: reconcile doctor")
        return found

    def names(self, conversations: Iterable[str]) -> str:
        """Return titles and ids of some conversations as text, and count the rest."""
        all_ids = list(conversations)
        named = [
            f"{self.views[conversation].title or '(no title)'} ({conversation})" for conversation in all_ids[:NAMED]
        ]
        return ", ".join(named) + (f" and {len(all_ids) - NAMED} more" if len(all_ids) > NAMED else "")

    def held_item(self, conversation: str, reason: Reason, message: str, *resolve: str) -> Item:
        """Return a held item about a conversation as a whole."""
        return self._item(self.views[conversation], WHOLE, reason, message, resolve)

    def hold(self, view: View, unit: str, reason: Reason, message: str, *resolve: str) -> None:
        """Add a held item: a decision is needed."""
        self.held.append(self._item(view, unit, reason, message, resolve))

    def hold_file(self, view: View, unit: str, at: Copy, fault: Fault, *resolve: str, more: str = "") -> None:
        """Add a held item about a file of a directory. ``more`` follows the fault."""
        place = Place(at.side, joined(at.path, fault.file))
        item = self._item(view, unit, Reason.INVALID, f"{place}: {fault.words}{more}", resolve)
        self.held.append(replace(item, place=place))

    def set_aside(self, view: View, unit: str, reason: Reason, message: str, *resolve: str) -> None:
        """Add an item about a stable state."""
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
        """Add a note: no decision is needed."""
        self.notes.append(Note(conversation=conversation, unit=unit, reason=reason, message=message))

    def keep_version(self, unit: Unit) -> None:
        """Have the vault save a version although nothing replaces it yet."""
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

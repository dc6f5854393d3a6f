"""The common case, told at a glance: both sides are as they were agreed on, so that there is nothing to plan.

It only recognises what the planner would find too; in any doubt it says nothing, and the planner decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import IntentKind
from reconcile.model.options import Layout, Missing
from reconcile.model.plan import Plan, states_of
from reconcile.model.snapshot import ARCHIVE, METADATA, STREAM, Fault, Metadata, ParentKind, Stream
from reconcile.model.units import joined_digest
from reconcile.planning.rules.guards import has_lost_all
from reconcile.planning.rules.parents import states
from reconcile.planning.rules.tree import TreeIndex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconcile.model.baseline import Agreed, Intent, Memory
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules


def quiet_plan(store: Snapshot, workspace: Snapshot, memory: Memory, policy: Policy, rules: Rules) -> Plan | None:
    """Return the empty plan where nothing has changed since the last run, None where that isn't certain."""
    if _is_special(store, workspace, memory, policy):
        return None
    # Other checkouts may still believe in what a lost store had, where this one has agreed on nothing.
    if not memory.agreed and memory.history and has_lost_all(store, memory, rules.format):
        return None
    here = {copy.conversation: copy for copy in workspace.copies}
    kept = {copy.conversation: copy for copy in store.copies}
    places = rules.format.places
    derived = [each for each in here if places.is_derived(each)] if places is not None else []
    there = len(workspace.copies) - len(derived)
    for each in derived:
        del here[each]
    if len(here) < there or len(kept) < len(store.copies) or here.keys() - kept.keys():
        return None
    if memory.agreed.keys() - kept.keys():
        return None
    counted: dict[str, str] = {}
    for conversation, copy in kept.items():
        state = state_of(copy, here.get(conversation), memory, rules)
        if state is None:
            return None
        counted[conversation] = state
    tree = tree_of(kept, rules)
    if tree is None or not are_placed(here, tree, policy):
        return None
    counted |= dict.fromkeys(derived, "derived")
    return Plan(layout=policy.layout.value, states=states_of(counted), counted=counted, quiet=True)


def unsettled(store: Snapshot, workspace: Snapshot, memory: Memory, rules: Rules) -> set[str]:
    """Return the conversations that aren't, at a glance, as they were agreed on; a run may have something to learn.

    Several directories of one, or one that is gone, are never told at a glance.
    """
    here: dict[str, list[Copy]] = {}
    for copy in workspace.copies:
        here.setdefault(copy.conversation, []).append(copy)
    kept: dict[str, list[Copy]] = {}
    for copy in store.copies:
        kept.setdefault(copy.conversation, []).append(copy)
    found = (here.keys() | memory.agreed.keys()) - kept.keys()
    for conversation, copies in kept.items():
        if not is_settled(conversation, copies, here.get(conversation, []), memory, rules):
            found.add(conversation)
    return found


def is_settled(conversation: str, kept: Sequence[Copy], here: Sequence[Copy], memory: Memory, rules: Rules) -> bool:
    """Tell whether a conversation is, at a glance, as it was agreed on, or nowhere and not remembered either."""
    if not kept and not here:
        return conversation not in memory.agreed
    if len(kept) != 1 or len(here) > 1:
        return False
    return state_of(kept[0], here[0] if here else None, memory, rules) is not None


def _is_special(store: Snapshot, workspace: Snapshot, memory: Memory, policy: Policy) -> bool:
    """Tell whether a side as a whole, or the user, gives cause to look closer."""
    return bool(
        store.problems
        or workspace.problems
        or store.foreign
        or workspace.foreign
        or memory.asides
        or memory.waiting
        or memory.renames
        or policy.decisions
        or policy.missing is Missing.REPROJECT
        or memory.layout != policy.layout.value
        or memory.store_identity != store.identity
    )


def state_of(copy: Copy, other: Copy | None, memory: Memory, rules: Rules) -> str | None:
    """Return the state to count a conversation under, None where the planner must look at it."""
    metadata = copy.metadata
    agreed = memory.agreed.get(copy.conversation)
    known = memory.parents.get(copy.conversation)
    if rules.format.places is not None:
        return _state_of_record(copy, other, memory, rules)
    intent = memory.intents.get(copy.conversation)
    if other is not None and (agreed is None or intent is not None or copy.archived != other.archived):
        return None
    if copy.conversation in memory.tombstones:  # that it is there again is still to be remembered
        return None
    sound = isinstance(metadata, Metadata) and isinstance(copy.stream, Stream) and not metadata.local
    flat = copy.path.rpartition("/")[0] == (ARCHIVE if copy.archived else "")
    if not sound or not flat:
        return None
    assert isinstance(metadata, Metadata)  # noqa: S101 - it is sound
    if metadata.parent.kind is ParentKind.UNREADABLE or not states(metadata, known):
        return None
    if other is None or agreed is None:
        return _state_alone(copy.archived, metadata.title, agreed, intent)
    return "in-sync" if _agrees(copy, other, agreed, known, rules) else None


def _state_of_record(copy: Copy, other: Copy | None, memory: Memory, rules: Rules) -> str | None:
    """Return the same for a record that has one place."""
    agreed, intent = memory.agreed.get(copy.conversation), memory.intents.get(copy.conversation)
    if isinstance(copy.metadata, Fault) or agreed is None or intent is not None or other is None:
        return None
    same = digests_of(copy, rules) == agreed.units and digests_of(other, rules) == agreed.units
    return "in-sync" if same else None


def _state_alone(archived: bool, title: str | None, agreed: Agreed | None, intent: Intent | None) -> str | None:
    """Return the state of what is in the store alone; a new title gives its directory another name."""
    if agreed is not None and agreed.title != title:
        return None
    if intent is not None and intent.kind is IntentKind.LOCAL:
        return "local"
    if intent is not None and intent.kind is IntentKind.PROJECTED:
        return None
    if intent is None:
        unseen = "archived" if archived else "available"
        return unseen if agreed is None else None
    return "archived" if archived else "removed"


def _agrees(copy: Copy, other: Copy, agreed: Agreed, known: str | None, rules: Rules) -> bool:
    """Tell whether both copies hold what was agreed on, in the place that was agreed on."""
    metadata = copy.metadata
    return (
        isinstance(metadata, Metadata)
        and agreed.parent == known
        and agreed.title == metadata.title
        and agreed.place == other.path
        and agreed.container == other.container
        and digests_of(copy, rules) == agreed.units
        and digests_of(other, rules) == agreed.units
    )


def digests_of(copy: Copy, rules: Rules) -> dict[str, str | None]:
    """Name the content of each unit by the bytes as they are."""
    fmt = rules.format
    metadata, names = fmt.metadata_file, fmt.stream_files
    units: dict[str, str | None] = {STREAM: None} if names else {}
    stream = {}
    for file in copy.files:
        name = file.name
        if name == metadata:
            units[METADATA] = file.digest
        elif name in names:
            stream[name] = file
        else:
            units[fmt.unit_of(name) or ""] = file.digest
    if names:
        units[STREAM] = joined_digest(tuple([stream[name] for name in names if name in stream]))
    return units


def tree_of(kept: Mapping[str, Copy], rules: Rules) -> TreeIndex | None:
    """Return the tree of the store's conversations as they state it; None where parents form a cycle."""
    parents = {
        conversation: copy.metadata.parent.id
        for conversation, copy in kept.items()
        if not copy.archived and isinstance(copy.metadata, Metadata)
    }
    tree = TreeIndex(parents, rules.format.order)
    return None if tree.cycles else tree


def are_placed(here: Mapping[str, Copy], tree: TreeIndex, policy: Policy) -> bool:
    """Tell whether every directory lies where the layout puts it."""
    if policy.layout is Layout.FLAT:
        return all(copy.container is None for copy in here.values())
    return all(
        copy.container == (tree.parent_of(conversation) if conversation in tree else None)
        for conversation, copy in here.items()
    )

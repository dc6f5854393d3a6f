"""The fast classifier of conversations: clean, adoptable or dirty, by comparison with the baseline.

Its verdict never differs from that of the rules. In any doubt a conversation is dirty, and the rules plan it.
`dirty_part` returns the dirty conversations with their closure (`reconcile.planning.incremental.ancestry.closure`). It
is everything if a side as a whole has changed in a way that the rules must see.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import BaselineEntry, IntentKind, is_local
from reconcile.model.options import Layout, Missing
from reconcile.model.plan import states_of
from reconcile.model.snapshot import ARCHIVE, METADATA, STREAM, Fault, Metadata, ParentKind, Partition, Stream
from reconcile.model.units import joined_digest
from reconcile.planning.incremental.ancestry import ancestry_of, closure
from reconcile.planning.rules.guards import compare_sides, has_lost_all, whole_of
from reconcile.planning.rules.tree import TreeIndex, states

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import Baseline, Intent
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Whole


class Verdict(Enum):
    """The verdict on one conversation: how much work it needs."""

    CLEAN = auto()
    """None: it equals its baseline."""
    ADOPT = auto()
    """It is equal on both sides; a run adds it to the baseline."""
    DIRTY = auto()
    """The rules must plan it."""


class Status(Struct, frozen=True):
    """The verdict on a conversation, and its state in the summary; None if the rules have to decide that."""

    verdict: Verdict
    state: str | None = None


_DIRTY = Status(Verdict.DIRTY)


def classify(kept: Sequence[Copy], here: Sequence[Copy], baseline: Baseline, rules: Rules) -> Status:
    """Return the status of a conversation in the store; ``kept`` are its copies there, ``here`` the workspace's.

    A conversation with several directories on a side is always dirty.
    """
    if len(kept) != 1 or len(here) > 1:
        return _DIRTY
    other = here[0] if here else None
    state = _state_of(kept[0], other, baseline, rules)
    if state is not None:
        return Status(Verdict.CLEAN, state)
    if other is not None and adoption(kept[0], other, baseline, rules) is not None:
        return Status(Verdict.ADOPT, "in-sync")
    return _DIRTY


def dirty_conversations(store: Snapshot, workspace: Snapshot, baseline: Baseline, rules: Rules) -> set[str]:
    """Return the conversations that are not clean: a run may have to update their baseline."""
    kept, here = by_conversation(store), by_conversation(workspace)
    dirty = (here.keys() | baseline.agreed.keys()) - kept.keys()
    for conversation, copies in kept.items():
        if not is_clean(conversation, copies, here.get(conversation, ()), baseline, rules):
            dirty.add(conversation)
    return dirty


def is_clean(conversation: str, kept: Sequence[Copy], here: Sequence[Copy], baseline: Baseline, rules: Rules) -> bool:
    """Tell whether a conversation is clean, or on neither side and not in the baseline."""
    if not kept and not here:
        return conversation not in baseline.agreed
    if len(kept) != 1 or len(here) > 1:
        return False
    return _state_of(kept[0], here[0] if here else None, baseline, rules) is not None


def adoption(copy: Copy, other: Copy, baseline: Baseline, rules: Rules) -> BaselineEntry | None:
    """Return the baseline entry of a conversation that has none and is equal on both sides.

    None if that is not certain, or if the conversation needs more than this entry.
    """
    metadata, conversation = copy.metadata, copy.conversation
    if not (is_sound(copy) and is_sound(other)) or copy.container is not None:
        return None
    if conversation in baseline.agreed or conversation in baseline.intents or conversation in baseline.tombstones:
        return None
    assert isinstance(metadata, Metadata)  # noqa: S101 - it is sound
    if conversation in baseline.parents and not states(metadata, baseline.parents[conversation]):
        return None
    store_digests, units = digests_of(copy, rules), {}
    workspace_digests = store_digests if other.files == copy.files else digests_of(other, rules)
    for name, digest in workspace_digests.items():
        if digest is None or store_digests.get(name) != digest:
            return None
        units[name] = digest
    if baseline.is_of_remote and len(units) != len(store_digests):  # a remote gets all files
        return None
    return BaselineEntry(units, metadata.parent.id, metadata.title, other.container, other.path)


def is_sound(copy: Copy) -> bool:
    """Tell whether a copy is live, not local, and has both managed units, without a fault: no record has a stream."""
    metadata = copy.metadata
    return (
        isinstance(metadata, Metadata)
        and isinstance(copy.stream, Stream)
        and copy.partition is Partition.LIVE
        and not metadata.local
        and metadata.parent.kind is not ParentKind.UNREADABLE
    )


def by_conversation(side: Snapshot) -> dict[str, tuple[Copy, ...]]:
    """Return the copies of each conversation of a side."""
    copies: dict[str, tuple[Copy, ...]] = {}
    for copy in side.copies:
        copies[copy.conversation] = (*copies.get(copy.conversation, ()), copy)
    return copies


def _state_of(copy: Copy, other: Copy | None, baseline: Baseline, rules: Rules) -> str | None:
    """Return the state of a clean conversation; None: it is not clean."""
    metadata = copy.metadata
    agreed = baseline.agreed.get(copy.conversation)
    known = baseline.parents.get(copy.conversation)
    if rules.format.places is not None:
        return _state_of_record(copy, other, baseline, rules)
    intent = baseline.intents.get(copy.conversation)
    if other is not None and (agreed is None or intent is not None or copy.archived != other.archived):
        return None
    if copy.conversation in baseline.tombstones:  # it exists again, so that a run must remove its tombstone
        return None
    sound = isinstance(metadata, Metadata) and isinstance(copy.stream, Stream) and not metadata.local
    flat = copy.path.rpartition("/")[0] == (ARCHIVE if copy.archived else "")
    if not sound or not flat:
        return None
    assert isinstance(metadata, Metadata)  # noqa: S101 - it is sound
    if metadata.parent.kind is ParentKind.UNREADABLE or not states(metadata, known):
        return None
    if other is None:
        if baseline.is_of_remote:  # a remote has every conversation
            return None
        return _state_alone(copy.archived, metadata.title, agreed, intent)
    assert agreed is not None  # noqa: S101 - see above
    return "in-sync" if _agrees(copy, other, agreed, known, rules) else None


def _state_of_record(copy: Copy, other: Copy | None, baseline: Baseline, rules: Rules) -> str | None:
    """Return the state of a clean record with a fixed place; None: it is not clean."""
    agreed, intent = baseline.agreed.get(copy.conversation), baseline.intents.get(copy.conversation)
    if isinstance(copy.metadata, Fault) or agreed is None or intent is not None or other is None:
        return None
    same = digests_of(copy, rules) == agreed.units and digests_of(other, rules) == agreed.units
    return "in-sync" if same else None


def _state_alone(archived: bool, title: str | None, agreed: BaselineEntry | None, intent: Intent | None) -> str | None:
    """Return the state of a clean conversation that only the store has; None: it is not clean.

    A changed title makes it dirty, since its directory gets another name.
    """
    if agreed is not None and agreed.title != title:
        return None
    if is_local(intent):
        return "local"
    if intent is not None and intent.kind is IntentKind.PROJECTED:
        return None
    if intent is None:
        unseen = "archived" if archived else "available"
        return unseen if agreed is None else None
    return "archived" if archived else "removed"


def _agrees(copy: Copy, other: Copy, agreed: BaselineEntry, known: str | None, rules: Rules) -> bool:
    """Tell whether both copies equal the baseline, in content and in place."""
    metadata = copy.metadata
    return (
        isinstance(metadata, Metadata)
        and agreed.parent == known
        and agreed.title == metadata.title
        and agreed.place == other.path
        and agreed.container == other.container
        and digests_of(copy, rules) == agreed.units
        and (other.files == copy.files or digests_of(other, rules) == agreed.units)
    )


def digests_of(copy: Copy, rules: Rules) -> dict[str, str | None]:
    """Return the digest of each unit, by the raw bytes of its files."""
    fmt = rules.format
    metadata, names = fmt.metadata_file, fmt.stream_files
    units: dict[str, str | None] = {}
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


MOST = 2
"""The rules plan everything if more than one conversation in so many is dirty."""


class DirtyPart(Struct, frozen=True):
    """The snapshots and the baseline of the part that the rules plan, and the states of all other conversations.

    ``is_quiet``: all conversations are clean, and the baseline of both sides as wholes is up to date.
    """

    store: Snapshot
    workspace: Snapshot
    baseline: Baseline
    whole: Whole
    counted: Mapping[str, str]
    places: Mapping[str, str]
    is_quiet: bool

    def joined(self, plan: Plan) -> Plan:
        """Return the plan of everything from the plan of the part."""
        counted = {**self.counted, **plan.counted}
        return replace(
            plan,
            counted=counted,
            states=states_of(counted),
            places=tuple(sorted({**self.places, **dict(plan.places)}.items())),
        )


def dirty_part(
    store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules
) -> DirtyPart | None:
    """Classify every conversation, and return the part that the rules have to plan; None: everything.

    In a format with fixed places, derived data depends on all records: the part is empty, or everything.
    """
    if not is_plain(store, workspace, baseline, policy, rules):
        return None
    places = rules.format.places
    kept, here = by_conversation(store), by_conversation(workspace)
    everything = kept.keys() | here.keys() | baseline.agreed.keys()
    derived = [record for record in here if places.is_derived(record)] if places is not None else []
    counted = dict.fromkeys(derived, "derived")  # it needs no copy in the store
    clean = len(counted)
    for conversation, copies in kept.items():
        status = classify(copies, here.get(conversation, ()), baseline, rules)
        state = _counted_state(status, here.get(conversation, ()), policy)
        if state is not None:
            counted[conversation] = state
            clean += status.verdict is Verdict.CLEAN
    is_clean = clean == len(everything)
    if len(counted) * MOST < len(everything) or (places is not None and not is_clean):
        return None
    ancestry = ancestry_of((*store.copies, *workspace.copies), baseline)
    near = closure(everything - counted.keys(), (), ancestry)
    clean_keys = counted.keys() - near
    placed = {key: here[key][0] for key in clean_keys if key in here and key in kept}
    tree = tree_of({key: kept[key][0] for key in counted if key in kept}, rules)
    if tree is None or not are_placed(placed, tree, policy):
        return None
    return DirtyPart(
        store=_part(store, near),
        workspace=_part(workspace, near),
        baseline=_baseline_of(baseline, near),
        whole=replace(whole_of(store, workspace, baseline, rules.format), taken=everything),
        counted={key: counted[key] for key in clean_keys},
        places={key: copy.path for key, copy in placed.items() if not copy.archived},
        is_quiet=is_clean and not _has_side_changes(store, baseline, policy, rules),
    )


def is_plain(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> bool:
    """Tell whether neither a side as a whole nor a request of the user requires the rules for everything."""
    sides = compare_sides(store, workspace, baseline, rules.format)
    return not (
        policy.decisions
        or policy.only
        or policy.below
        or store.problems
        or workspace.problems
        or store.foreign
        or workspace.foreign
        or baseline.asides
        or baseline.waiting
        or baseline.renames
        or sides.store_renewed
        or sides.workspace_emptied
    )


def state_of(
    kept: Sequence[Copy], here: Sequence[Copy], baseline: Baseline, policy: Policy, rules: Rules
) -> str | None:
    """Return the state of a conversation in the summary; None: the rules must plan it."""
    return _counted_state(classify(kept, here, baseline, rules), here, policy)


def _counted_state(status: Status, here: Sequence[Copy], policy: Policy) -> str | None:
    if not here and policy.missing is Missing.REPROJECT and status.state not in ("local", "archived"):
        return None
    return status.state


def _has_side_changes(store: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> bool:
    """Tell whether the baseline of a side as a whole changes: its layout, its store, or that the store is lost."""
    # Other checkouts may still expect the content of a lost store, even if this one has no baseline of it.
    is_lost = baseline.history and has_lost_all(store, baseline, rules.format)
    return bool(is_lost or baseline.layout != policy.layout.value or baseline.store_identity != store.identity)


def tree_of(kept: Mapping[str, Copy], rules: Rules) -> TreeIndex | None:
    """Return the tree of the store's conversations by their metadata; None if parents form a cycle."""
    parents = {
        conversation: copy.metadata.parent.id
        for conversation, copy in kept.items()
        if not copy.archived and isinstance(copy.metadata, Metadata)
    }
    tree = TreeIndex(parents, rules.format.order)
    return None if tree.cycles else tree


def are_placed(here: Mapping[str, Copy], tree: TreeIndex, policy: Policy) -> bool:
    """Tell whether every directory is at the place that the layout defines."""
    if policy.layout is Layout.FLAT:
        return all(copy.container is None for copy in here.values())
    return all(
        copy.container == (tree.parent_of(conversation) if conversation in tree else None)
        for conversation, copy in here.items()
    )


def _part(side: Snapshot, conversations: Collection[str]) -> Snapshot:
    return replace(side, copies=tuple(copy for copy in side.copies if copy.conversation in conversations))


def _baseline_of(baseline: Baseline, conversations: Collection[str]) -> Baseline:
    """Return the baseline of these conversations; maps that are only queried by key stay complete."""
    return replace(
        baseline,
        agreed={key: entry for key, entry in baseline.agreed.items() if key in conversations},
        intents={key: intent for key, intent in baseline.intents.items() if key in conversations},
    )

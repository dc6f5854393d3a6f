"""The one classifier: how a conversation stands, at a glance, by what was agreed on.

It only says what the rules would find too; in any doubt a conversation is dirty, and the rules look at it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from reconcile.model.baseline import BaselineEntry, IntentKind
from reconcile.model.snapshot import ARCHIVE, METADATA, STREAM, Fault, Metadata, ParentKind, Partition, Stream
from reconcile.model.units import joined_digest
from reconcile.planning.rules.tree import states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.model.baseline import Baseline, Intent
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules


class Standing(Enum):
    """What a run has to do about a conversation."""

    CLEAN = auto()
    """Nothing: it is as it was agreed on."""
    ADOPT = auto()
    """It is equal on both sides, and to be agreed on."""
    DIRTY = auto()
    """The rules must look at it."""


class Status(NamedTuple):
    """How a conversation stands, and the state to count it under; None where that is for the rules to say."""

    standing: Standing
    state: str | None = None


_DIRTY = Status(Standing.DIRTY)


def classify(kept: Sequence[Copy], here: Sequence[Copy], baseline: Baseline, rules: Rules) -> Status:
    """Return the status of a conversation that the store has: ``kept`` are its copies there, ``here`` the workspace's.

    Several directories of one are never told at a glance.
    """
    if len(kept) != 1 or len(here) > 1:
        return _DIRTY
    other = here[0] if here else None
    state = _state_of(kept[0], other, baseline, rules)
    if state is not None:
        return Status(Standing.CLEAN, state)
    if other is not None and rules.format.places is None and adoption(kept[0], other, baseline, rules) is not None:
        return Status(Standing.ADOPT, "in-sync")
    return _DIRTY


def unsettled(store: Snapshot, workspace: Snapshot, baseline: Baseline, rules: Rules) -> set[str]:
    """Return the conversations that aren't clean; a run may have something to learn."""
    kept, here = by_conversation(store), by_conversation(workspace)
    found = (here.keys() | baseline.agreed.keys()) - kept.keys()
    for conversation, copies in kept.items():
        if not is_settled(conversation, copies, here.get(conversation, ()), baseline, rules):
            found.add(conversation)
    return found


def is_settled(conversation: str, kept: Sequence[Copy], here: Sequence[Copy], baseline: Baseline, rules: Rules) -> bool:
    """Tell whether a conversation is clean, or nowhere and not remembered either."""
    if not kept and not here:
        return conversation not in baseline.agreed
    if len(kept) != 1 or len(here) > 1:
        return False
    return _state_of(kept[0], here[0] if here else None, baseline, rules) is not None


def adoption(copy: Copy, other: Copy, baseline: Baseline, rules: Rules) -> BaselineEntry | None:
    """Return what is to be agreed on of a conversation that nothing was agreed on and that is equal on both sides.

    None where that isn't certain at a glance, or where it isn't all that there is to do.
    """
    metadata, conversation = copy.metadata, copy.conversation
    if not (is_sound(copy) and is_sound(other)) or copy.container is not None:
        return None
    if conversation in baseline.agreed or conversation in baseline.intents or conversation in baseline.tombstones:
        return None
    assert isinstance(metadata, Metadata)  # noqa: S101 - it is sound
    if conversation in baseline.parents and not states(metadata, baseline.parents[conversation]):
        return None
    ours, found = digests_of(copy, rules), {}
    theirs = ours if other.files is copy.files else digests_of(other, rules)
    for name, digest in theirs.items():
        if digest is None or ours.get(name) != digest:
            return None
        found[name] = digest
    return BaselineEntry(found, metadata.parent.id, metadata.title, other.container, other.path)


def is_sound(copy: Copy) -> bool:
    """Tell whether a copy is live and has both managed units, and nothing odd about it."""
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
    found: dict[str, tuple[Copy, ...]] = {}
    for copy in side.copies:
        found[copy.conversation] = (*found.get(copy.conversation, ()), copy)
    return found


def _state_of(copy: Copy, other: Copy | None, baseline: Baseline, rules: Rules) -> str | None:
    """Return the state of what is clean, None for all else."""
    metadata = copy.metadata
    agreed = baseline.agreed.get(copy.conversation)
    known = baseline.parents.get(copy.conversation)
    if rules.format.places is not None:
        return _state_of_record(copy, other, baseline, rules)
    intent = baseline.intents.get(copy.conversation)
    if other is not None and (agreed is None or intent is not None or copy.archived != other.archived):
        return None
    if copy.conversation in baseline.tombstones:  # that it is there again is still to be remembered
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


def _state_of_record(copy: Copy, other: Copy | None, baseline: Baseline, rules: Rules) -> str | None:
    """Return the same for a record that has one place."""
    agreed, intent = baseline.agreed.get(copy.conversation), baseline.intents.get(copy.conversation)
    if isinstance(copy.metadata, Fault) or agreed is None or intent is not None or other is None:
        return None
    same = digests_of(copy, rules) == agreed.units and digests_of(other, rules) == agreed.units
    return "in-sync" if same else None


def _state_alone(archived: bool, title: str | None, agreed: BaselineEntry | None, intent: Intent | None) -> str | None:
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


def _agrees(copy: Copy, other: Copy, agreed: BaselineEntry, known: str | None, rules: Rules) -> bool:
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

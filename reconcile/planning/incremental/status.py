"""The fast classifier of conversations: clean, adoptable or dirty, by comparison with the baseline.

Its verdict never differs from that of the rules. In any doubt a conversation is dirty, and the rules plan it.
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


class Verdict(Enum):
    """The verdict on one conversation: how much work it needs."""

    CLEAN = auto()
    """None: it equals its baseline."""
    ADOPT = auto()
    """It is equal on both sides; a run adds it to the baseline."""
    DIRTY = auto()
    """The rules must plan it."""


class Status(NamedTuple):
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
    if other is not None and rules.format.places is None and adoption(kept[0], other, baseline, rules) is not None:
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
    workspace_digests = store_digests if other.files is copy.files else digests_of(other, rules)
    for name, digest in workspace_digests.items():
        if digest is None or store_digests.get(name) != digest:
            return None
        units[name] = digest
    return BaselineEntry(units, metadata.parent.id, metadata.title, other.container, other.path)


def is_sound(copy: Copy) -> bool:
    """Tell whether a copy is live, not local, and has both managed units, without a fault."""
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
    if other is None or agreed is None:
        return _state_alone(copy.archived, metadata.title, agreed, intent)
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
    if intent is not None and intent.kind is IntentKind.LOCAL:
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
        and digests_of(other, rules) == agreed.units
    )


def digests_of(copy: Copy, rules: Rules) -> dict[str, str | None]:
    """Return the digest of each unit, by the raw bytes of its files."""
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

"""The baseline: everything remembered between runs, as values; and the state of both sides at one moment.

`reconcile.state.database` stores the baseline.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from reconcile.model.snapshot import Beginning, Digest, Place, Side, Snapshot


LOST = "lost"
"""Replaces a store's identity after a run has found that the store was lost: no directory matches it."""


class IntentKind(StrEnum):
    """The kinds of intents: whether a conversation belongs in a workspace (docs/design/intents.md)."""

    PROJECTED = "projected"
    LOCAL = "local"
    REMOVED = "removed"


class Intent(Struct, frozen=True):
    """The intent for one conversation in this checkout (``local``: in every checkout of the store).

    ``waits_for`` is the id of the ancestor whose directory took this one along. ``place`` is the path of a directory
    that disappeared, ``run`` the run that noticed it.
    """

    kind: IntentKind
    waits_for: str | None = None
    place: str | None = None
    run: str | None = None

    @property
    def is_wish(self) -> bool:
        """Whether a person requested the projection; other intents are concluded from the workspace."""
        return self.kind is IntentKind.PROJECTED and self.waits_for is None and self.place is None

    @property
    def is_noticed(self) -> bool:
        """Whether a run has concluded it from the workspace; a person decided the others."""
        return not self.is_wish and self.kind is not IntentKind.LOCAL

    @property
    def keeps_away(self) -> bool:
        """Whether its directory left, alone or with an ancestor's: single files that reappear decide nothing."""
        return self.kind is IntentKind.REMOVED or self.waits_for is not None


def is_local(intent: Intent | None) -> bool:
    """Tell whether an intent keeps a conversation private."""
    return intent is not None and intent.kind is IntentKind.LOCAL


def private_of(intents: Mapping[str, Intent]) -> frozenset[str]:
    """Return the conversations that are local, and those that left with one of these, however deep they were in it."""
    return frozenset(conversation for conversation in intents if _left_with_local(intents, conversation))


def _left_with_local(intents: Mapping[str, Intent], conversation: str) -> bool:
    seen: set[str] = set()
    above: str | None = conversation
    while above is not None and above not in seen:
        seen.add(above)
        intent = intents.get(above)
        if is_local(intent):
            return True
        above = None if intent is None else intent.waits_for
    return False


class BaselineEntry(Struct, frozen=True):
    """The baseline of one conversation in one checkout: the content that both sides had last.

    ``units`` maps unit names to digests. ``parent`` is the parent that the metadata states. ``container`` is the
    conversation whose directory contains it (None: at the top). It differs from ``parent`` if that is not live or the
    layout is flat. ``place`` is its path in the workspace.
    """

    units: Mapping[str, Digest]
    parent: str | None
    title: str | None
    container: str | None
    place: str


class AsideKind(StrEnum):
    """The kinds of stable states of a unit.

    A state lasts as long as the workspace has the recorded digest; for kept and undone also the store.
    """

    BEHIND = "behind"
    LOCAL = "local"
    """The workspace's copy of a local conversation lost a conflict, and may not be written."""
    KEPT = "kept"
    UNDONE = "undone"
    PLACED = "placed"
    """Git has the workspace's directory in another partition than the store, and it stays there."""


class AsideRecord(Struct, frozen=True):
    """A unit that was set aside, with the digests of the decision."""

    kind: AsideKind
    store: Digest | None
    workspace: Digest | None


class OutdatedContent(Struct, frozen=True):
    """The side with the older content of a unit by the order of commits, with the digests of both contents."""

    side: Side
    store: Digest
    workspace: Digest


class CommittedPlace(Struct, frozen=True):
    """A directory of the workspace that HEAD has at the same place, and the store in another partition.

    ``older`` is the side whose partition came first by the order of commits; None if that is unknown. ``since`` names
    the commits that moved it there.
    """

    place: str
    older: Side | None
    since: str


class Verb(StrEnum):
    """The requests for one conversation that a later run completes if they can't be done at once."""

    LOCAL = "local"
    """Its directory leaves the workspace."""
    REMOVE = "rm"
    REPARENT = "set-parent"
    RESOLVE = "resolve"


class DecidedUnit(Struct, frozen=True, order=True):
    """A unit that a pending decision is about.

    ``seen``: the digests that either side may have of it (None: it is missing): both versions that the person chose
    from, and what the run writes. With any other content the decision is outdated. ``take``: the answer about this
    unit; None: the decision is about the whole conversation.
    """

    unit: str
    seen: tuple[Digest | None, ...]
    take: str | None = None


class PendingRequest(Struct, frozen=True):
    """A pending request for one conversation in this checkout.

    ``value``: the new parent, the side to take (None: ``decided`` has it for each unit), or the treatment of the
    children of a removal. ``before``: the earlier parent. ``along``: the conversations in its directory, which leave
    with it. ``store`` and ``workspace`` are the digests that a removal is about; earlier versions of this program
    recorded them for a decision, too. ``run`` recorded it; ``why`` names the obstacle.
    """

    value: str | None = None
    before: str | None = None
    along: tuple[str, ...] = ()
    store: Digest | None = None
    workspace: Digest | None = None
    run: str | None = None
    why: str = ""
    decided: tuple[DecidedUnit, ...] = ()


class Baseline(Struct, frozen=True):
    """Everything remembered that a plan depends on.

    ``checkout_known``: this checkout was reconciled before; ``layout`` is the one it was last written with.
    ``store_identity``: see `Snapshot.identity`; None if unknown, `LOST` if that store no longer exists.
    ``history``: by id and unit, oldest first, the digests that were in sync in any checkout.
    ``parents``: the last known parent of each conversation, from any checkout; JP strips it from the files.
    ``tombstones``: by id, the unit digests of conversations that were removed on purpose.
    ``renames``: by side, conversations whose directory a run had to rename, and left. If their metadata was in sync
    since, the title in it has the new name.
    ``waiting``: pending requests of earlier commands (`reconcile.planning.requests.edits`).
    ``former``: for `recover`, intents from earlier records of this checkout for conversations without one here.
    ``outdated``: by id and unit, the order of commits for contents in doubt (`reconcile.planning.rules.commit_order`).
    ``committed``: the commits of directories in another partition than the store's.
    ``contents``: by id and digest, the agreed metadata that may be merged; loaded for edits on both sides alone.
    ``is_of_remote``: the workspace is the tree of a remote (docs/design/remotes.md): it has every conversation, and no
    version there is one that git has checked out again.
    ``removed_there``: by id and unit, the digests of extras that another machine has removed, by the remote's tree.
    ``seen_there``: by id and unit, the versions that the machines of a remote have had, oldest first.
    ``deleted_here``: for `project` and `recover`, by id, the extras that were deleted in the workspace.
    """

    checkout_known: bool = False
    layout: str | None = None
    store_identity: str | None = None
    agreed: Mapping[str, BaselineEntry] = field(default_factory=dict)
    intents: Mapping[str, Intent] = field(default_factory=dict)
    history: Mapping[tuple[str, str], tuple[Digest, ...]] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    tombstones: Mapping[str, frozenset[Digest]] = field(default_factory=dict)
    asides: Mapping[tuple[str, str], AsideRecord] = field(default_factory=dict)
    renames: frozenset[tuple[Side, str]] = frozenset()
    waiting: Mapping[tuple[str, Verb], PendingRequest] = field(default_factory=dict)
    former: Mapping[str, Intent] = field(default_factory=dict)
    outdated: Mapping[tuple[str, str], OutdatedContent] = field(default_factory=dict)
    committed: Mapping[str, CommittedPlace] = field(default_factory=dict)
    contents: Mapping[tuple[str, Digest], bytes] = field(default_factory=dict)
    is_of_remote: bool = False
    removed_there: Mapping[tuple[str, str], Digest] = field(default_factory=dict)
    seen_there: Mapping[tuple[str, str], Sequence[Digest]] = field(default_factory=dict)
    deleted_here: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def superseded(self, conversation: str, unit: str, digest: Digest | None, raw: Digest | None = None) -> bool:
        """Return whether the history has a newer content of the unit.

        ``raw`` is the digest of metadata without a restored parent: it may be older than the parent.
        Git restores files one by one, so that the files of a stream are compared one by one, too. A stream is an older
        version if its events were replaced, whatever the configuration; and if the newest events are with an earlier
        configuration.
        """
        *older, newest = self.history.get((conversation, unit)) or ("",)
        if digest is None or digest == newest or self.is_of_remote:
            return False
        if raw != digest and raw in older:
            return True
        beside, _, last = digest.rpartition("+")
        files = [version.rpartition("+") for version in older]
        if last == newest.rpartition("+")[2]:
            return bool(beside) and beside in {base for base, _, _ in files}
        return last in {events for _, _, events in files}


class ConversationRecord(Struct, frozen=True, kw_only=True):
    """The records of one conversation in one checkout, except its history: an undo restores them.

    ``parent_known`` distinguishes a known root from an unknown conversation. ``asides`` are by unit. ``dropped`` has
    the pending requests that the run, an undo, has dropped.
    """

    agreed: BaselineEntry | None = None
    intent: Intent | None = None
    parent: str | None = None
    parent_known: bool = False
    tombstone: frozenset[Digest] = frozenset()
    asides: Mapping[str, AsideRecord] = field(default_factory=dict)
    dropped: Mapping[Verb, PendingRequest] = field(default_factory=dict)


def with_dropped(
    records: Mapping[str, ConversationRecord],
    baseline: Baseline,
    changes: Iterable[tuple[tuple[str, Verb], PendingRequest | None]],
) -> dict[str, ConversationRecord]:
    """Return the records of conversations with the pending requests that these changes end."""
    dropped: dict[str, dict[Verb, PendingRequest]] = {}
    for (conversation, verb), now in changes:
        if now is None and (request := baseline.waiting.get((conversation, verb))) is not None:
            dropped.setdefault(conversation, {})[verb] = request
    return {**records, **{key: replace(records[key], dropped=requests) for key, requests in dropped.items()}}


def records_of(
    baseline: Baseline, conversations: Iterable[str], voided: Collection[str] = ()
) -> dict[str, ConversationRecord]:
    """Return the records of conversations by id; those of ``voided`` are without baseline, as their store was lost."""
    asides: dict[str, dict[str, AsideRecord]] = {}
    for (conversation, unit), record in baseline.asides.items():
        asides.setdefault(conversation, {})[unit] = record
    return {
        conversation: ConversationRecord(
            agreed=baseline.agreed.get(conversation) if conversation not in voided else None,
            intent=baseline.intents.get(conversation),
            parent=baseline.parents.get(conversation),
            parent_known=conversation in baseline.parents,
            tombstone=baseline.tombstones.get(conversation, frozenset()),
            asides=asides.get(conversation, {}),
        )
        for conversation in conversations
    }


class WorldState(Struct, frozen=True):
    """Both sides and the baseline at one moment.

    ``beginnings`` are the files of the store that the workspace's version continues, if few bytes were read to know it.
    """

    store: Snapshot
    workspace: Snapshot
    baseline: Baseline
    beginnings: Mapping[Place, Beginning] = field(default_factory=dict)

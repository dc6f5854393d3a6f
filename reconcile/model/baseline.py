"""What reconcile remembers between runs, and both sides at one moment, as values.

`reconcile.state.database` stores what is remembered.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.snapshot import Digest, Side, Snapshot


LOST = "lost"
"""In the place of a store's identity: a run has found since that the store was lost, so that no directory is the one
that this checkout knew."""


class IntentKind(StrEnum):
    """What belongs in a workspace (docs/design/intents.md)."""

    PROJECTED = "projected"
    LOCAL = "local"
    REMOVED = "removed"


class Intent(Struct, frozen=True):
    """The intent for one conversation in this checkout (``local``: in every checkout of the store).

    ``waits_for`` is the id of the ancestor whose directory took this one along; ``place`` is the path that
    a directory had that isn't there any more, ``run`` the run that noticed.
    """

    kind: IntentKind
    waits_for: str | None = None
    place: str | None = None
    run: str | None = None

    @property
    def is_wish(self) -> bool:
        """Tell whether a person asked for the projection; others are conclusions from what was there."""
        return self.kind is IntentKind.PROJECTED and self.waits_for is None and self.place is None

    @property
    def keeps_away(self) -> bool:
        """Tell whether its directory went, alone or with an ancestor's: some files of it that come back by themselves
        decide nothing.
        """
        return self.kind is IntentKind.REMOVED or self.waits_for is not None


class Agreed(Struct, frozen=True):
    """The baseline of one conversation in one checkout: what both sides agreed on last.

    ``units`` maps unit names to digests. ``parent`` is the parent as the metadata states it;
    ``container`` is the conversation in whose directory it was placed (None: at the top), which differs
    from ``parent`` where that is not live or the layout is flat. ``place`` is its path in the workspace.
    """

    units: Mapping[str, Digest]
    parent: str | None
    title: str | None
    container: str | None
    place: str


class AsideKind(StrEnum):
    """Stable states of a unit that last while the workspace's digest (and for kept and undone also the
    store's) is the one recorded.
    """

    BEHIND = "behind"
    LOCAL = "local"
    """The workspace's copy of a local conversation lost, and may not be written."""
    KEPT = "kept"
    UNDONE = "undone"
    PLACED = "placed"
    """Git has the workspace's directory in another partition than the store, and it stays there."""


class AsideRecord(Struct, frozen=True):
    """A unit that was set aside earlier, bound to the digests it was decided on."""

    kind: AsideKind
    store: Digest | None
    workspace: Digest | None


class Outdated(Struct, frozen=True):
    """A side whose content of a unit is the older one by the order of commits, bound to the two contents."""

    side: Side
    store: Digest
    workspace: Digest


class Committed(Struct, frozen=True):
    """A directory of the workspace that HEAD has at the same place, and the store in another partition.

    ``older`` is the side whose partition came first by the order of commits; None where they don't say. ``since`` names
    the commits that have put it there.
    """

    place: str
    older: Side | None
    since: str


class Verb(StrEnum):
    """What a command asks for of one conversation and a later run can do, where it can't be done at once."""

    LOCAL = "local"
    """Its directory leaves the workspace."""
    REMOVE = "rm"
    REPARENT = "set-parent"
    RESOLVE = "resolve"


class Waiting(Struct, frozen=True):
    """A request for one conversation in this checkout that no run has carried out yet.

    ``value``: the new parent, the side to take, or what becomes of the children of what is removed. ``before``: the
    parent that it had. ``along``: the conversations that lie in its directory and leave with it. ``store`` and
    ``workspace`` name the content that the sides had: nothing was asked about any other. ``run`` has recorded it, and
    ``why`` says what was in the way then.
    """

    value: str | None = None
    before: str | None = None
    along: tuple[str, ...] = ()
    store: Digest | None = None
    workspace: Digest | None = None
    run: str | None = None
    why: str = ""


class Memory(Struct, frozen=True):
    """Everything remembered that a plan depends on.

    ``checkout_known``: this checkout has a baseline; ``layout`` is the one it was last written with.
    ``store_identity``: see `Snapshot.identity`; None where nothing is known, `LOST` where that store is no more.
    ``history``: per id and unit, oldest first, the digests that were in sync in any checkout.
    ``parents``: the last parent known of each conversation, from any checkout; JP strips it from the files.
    ``tombstones``: per id, the unit digests of what was removed on purpose.
    ``renames``: by side, conversations of which a run was to rename a directory, and left it; those whose metadata was
    agreed on since have a title that tells.
    ``waiting``: what was asked for earlier, and is still to be done (`reconcile.planning.requests.edits`).
    ``former``: for `recover`, what earlier records of this checkout say of conversations that this one doesn't know.
    ``outdated``: what git remembers, by id and unit, of those in doubt that it knows
    (`reconcile.planning.rules.commit_order`); ``committed``: what it says of directories in another partition than the
    store's.
    """

    checkout_known: bool = False
    layout: str | None = None
    store_identity: str | None = None
    agreed: Mapping[str, Agreed] = field(default_factory=dict)
    intents: Mapping[str, Intent] = field(default_factory=dict)
    history: Mapping[tuple[str, str], tuple[Digest, ...]] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    tombstones: Mapping[str, frozenset[Digest]] = field(default_factory=dict)
    asides: Mapping[tuple[str, str], AsideRecord] = field(default_factory=dict)
    renames: frozenset[tuple[Side, str]] = frozenset()
    waiting: Mapping[tuple[str, Verb], Waiting] = field(default_factory=dict)
    former: Mapping[str, Intent] = field(default_factory=dict)
    outdated: Mapping[tuple[str, str], Outdated] = field(default_factory=dict)
    committed: Mapping[str, Committed] = field(default_factory=dict)

    def superseded(self, conversation: str, unit: str, digest: Digest | None) -> bool:
        """Tell whether the history has replaced a content by a newer one.

        Git puts back the files that it knows, one by one, so a stream is looked at file by file as well: it is an older
        version where its events were replaced, whatever configuration lies beside them, and where the newest events lie
        beside an earlier configuration.
        """
        *older, newest = self.history.get((conversation, unit)) or ("",)
        if digest is None or digest == newest:
            return False
        beside, _, last = digest.rpartition("+")
        files = [each.rpartition("+") for each in older]
        if last == newest.rpartition("+")[2]:
            return bool(beside) and beside in {base for base, _, _ in files}
        return last in {events for _, _, events in files}


class Remembered(Struct, frozen=True, kw_only=True):
    """All that one checkout remembers of one conversation, but for its history: what an undo has hold again.

    ``parent_known`` tells a known root from a conversation of which nothing is known. ``asides`` are by unit.
    """

    agreed: Agreed | None = None
    intent: Intent | None = None
    parent: str | None = None
    parent_known: bool = False
    tombstone: frozenset[Digest] = frozenset()
    asides: Mapping[str, AsideRecord] = field(default_factory=dict)


def remembered(memory: Memory, conversations: Iterable[str], voided: Collection[str] = ()) -> dict[str, Remembered]:
    """Return what is remembered of each of these; what was agreed on of the ``voided`` ended with a lost store."""
    asides: dict[str, dict[str, AsideRecord]] = {}
    for (conversation, unit), record in memory.asides.items():
        asides.setdefault(conversation, {})[unit] = record
    return {
        conversation: Remembered(
            agreed=memory.agreed.get(conversation) if conversation not in voided else None,
            intent=memory.intents.get(conversation),
            parent=memory.parents.get(conversation),
            parent_known=conversation in memory.parents,
            tombstone=memory.tombstones.get(conversation, frozenset()),
            asides=asides.get(conversation, {}),
        )
        for conversation in conversations
    }


class Look(Struct, frozen=True):
    """Both sides and the memory at one moment."""

    store: Snapshot
    workspace: Snapshot
    memory: Memory

"""The plan as a value: actions with preconditions, and what is held, set aside or noted, with reasons."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.policy import Policy
from reconcile.model.snapshot import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.model.baseline import AsideRecord, ConversationRecord, Intent, PendingRequest, Verb
    from reconcile.model.format import Places
    from reconcile.model.reasons import Reason
    from reconcile.model.snapshot import Digest, Place


class Kind(StrEnum):
    """The kinds of action (docs/design/run.md#rule-46)."""

    COPY = "copy"
    FORK = "fork"
    SET_PARENT = "set-parent"
    PROMOTE = "promote"
    AGE = "age"
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    MOVE = "move"
    PROJECT = "project"
    REMOVE_STALE = "remove-stale"
    REMOVE = "remove"
    REBUILD = "rebuild"


MOVES = (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE)
"""The kinds that only move a directory."""


class Write(Struct, frozen=True, gc=False):
    """One file that an action writes: from ``source``, from the vault, or from ``content``.

    ``kept`` is the name of the vault's object. Afterwards the file has ``mtime_ns``, ``size`` and ``digest``.
    """

    target: Place
    source: Place | None
    content: bytes | None
    size: int
    mtime_ns: int
    digest: Digest
    kept: str | None = None


class Precondition(Struct, frozen=True, gc=False):
    """A precondition of an action: a place holds this file, or nothing (``digest`` None)."""

    place: Place
    size: int
    mtime_ns: int
    digest: Digest | None

    @property
    def absent(self) -> bool:
        """Whether nothing may be at the place."""
        return self.digest is None


class Action(Struct, frozen=True, kw_only=True, gc=False):
    """One step of a plan. ``touches`` are the conversations whose locks it needs (docs/design/run.md#rule-49).

    ``together`` names a group: if one of the locks that its actions need is busy, none of them is applied.
    """

    id: str
    kind: Kind
    conversation: str
    title: str | None
    unit: str
    reason: Reason
    case: int | None = None
    source: Place | None = None
    target: Place
    writes: tuple[Write, ...] = ()
    removes: tuple[Place, ...] = ()
    """Files of a replaced unit that the winner lacks (``base_config.json`` of a legacy stream)."""
    mtime_ns: int | None = None
    """For `Kind.AGE`: the time that every file in ``expect`` gets."""
    bytes: int = 0
    events: tuple[int, int] | None = None
    needs: tuple[str, ...] = ()
    expect: tuple[Precondition, ...] = ()
    touches: tuple[str, ...] = ()
    together: str | None = None
    words: tuple[str, ...] = ()
    """For `Kind.REBUILD`: descriptions of the changes, one line each."""
    makes: tuple[Place, ...] = ()
    """For `Kind.REBUILD`: directories to create if they don't exist."""
    clears: tuple[Place, ...] = ()
    """For `Kind.REBUILD`: stale locks, which are removed by acquiring and releasing them."""

    def is_fork_of(self, replacing: Action) -> bool:
        """Tell whether it is a fork of the stream that another action replaces: of that file, or of its directory."""
        return self.kind is Kind.FORK and self.source in (replacing.target, replacing.target.directory)

    @property
    def inside(self) -> tuple[Precondition, ...]:
        """The preconditions inside the target's directory: for a removal, the files that it removes."""
        return tuple(expect for expect in self.expect if self._is_inside(expect))

    @property
    def beside(self) -> tuple[Precondition, ...]:
        """The preconditions elsewhere: for a removal, the copies that must remain."""
        return tuple(expect for expect in self.expect if not self._is_inside(expect))

    def _is_inside(self, expect: Precondition) -> bool:
        place = expect.place
        return place == self.target or (
            place.side is self.target.side and place.path.startswith(f"{self.target.path}/")
        )


class Item(Struct, frozen=True, kw_only=True):
    """Something that is held (it needs a decision) or set aside (a stable state, by rule).

    ``conversation`` is None if it concerns a whole side. ``resolve``: commands that resolve it. ``place``: the file
    that it is about, with which ``message`` begins; None if it is about no single file, and in a plan that was saved.
    ``secrets``: the fingerprints of the secrets that it names; none in an item that was saved. ``findings``: the words
    of each of them, joined in ``message`` by semicolons; none in a plan that was saved.
    """

    conversation: str | None
    title: str | None
    unit: str
    reason: Reason
    message: str
    resolve: tuple[str, ...] = ()
    place: Place | None = None
    secrets: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The message without the place."""
        return self.message if self.place is None else self.message.removeprefix(f"{self.place}: ")


class Note(Struct, frozen=True, kw_only=True):
    """A notice that needs no decision."""

    conversation: str | None
    unit: str = "conversation"
    reason: Reason
    message: str


class Rival(Struct, frozen=True, gc=False):
    """One side's version of a unit in a conflict; ``events`` and the time of the ``last`` one are a stream's.

    ``only`` is the number of events that the other side lacks. ``values`` are the values of the conflict's keys as
    JSON, long ones in part; None: the key is absent.
    """

    mtime_ns: int
    events: int | None = None
    last: str | None = None
    only: int | None = None
    values: tuple[str | None, ...] = ()


class Conflict(Struct, frozen=True, kw_only=True):
    """Both sides have edited one unit, and nothing merges the edits (docs/concepts.md#conflicts).

    ``keys`` are the keys of metadata that both sides have edited; if the version before is unknown, all that differ.
    ``merges``: the edits of all other keys are merged. ``takes`` is the side whose version a run takes, for ``reason``;
    None: the unit is held. ``forks``: the other side's stream continues as a child.
    """

    conversation: str
    title: str | None
    unit: str
    case: int
    store: Rival
    workspace: Rival
    keys: tuple[str, ...] = ()
    takes: Side | None
    reason: Reason
    forks: bool = False
    merges: bool = False

    def rival(self, side: Side) -> Rival:
        """Return the version of a side."""
        return self.store if side is Side.STORE else self.workspace


class Preserve(Struct, frozen=True, kw_only=True):
    """A version to save in the vault although no action replaces it (behind, invalid)."""

    conversation: str
    unit: str
    place: Place
    size: int
    mtime_ns: int
    digest: Digest


class Heading(Struct, frozen=True, gc=False):
    """A conversation under which the output lists a plan's steps; ``depth`` 0 is a root."""

    conversation: str
    title: str | None
    depth: int


class Plan(Struct, frozen=True, kw_only=True):
    """The whole plan, in the order of execution.

    ``intents``, ``asides`` and ``tombstones`` are changes of the baseline that are recorded before the actions; None
    removes the entry. Asides of local versions follow the actions, because these save the versions. So does the end of
    an undo's record, because the actions decide the conflict that the undo has left. ``states`` counts conversations by
    their state (``in-sync``, ``available``, ...).
    """

    layout: str
    actions: tuple[Action, ...] = ()
    held: tuple[Item, ...] = ()
    aside: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    """Edits on both sides that a run decides, or holds."""
    preserve: tuple[Preserve, ...] = ()
    intents: tuple[tuple[str, Intent | None], ...] = ()
    asides: tuple[tuple[tuple[str, str], AsideRecord | None], ...] = ()
    tombstones: tuple[tuple[str, tuple[Digest, ...]], ...] = ()
    states: tuple[tuple[str, int], ...] = ()
    counted: Mapping[str, str] = field(default_factory=dict)
    """The state of each conversation in the counts."""
    outline: tuple[Heading, ...] = ()
    """The conversations of the plan and their ancestors, in the order of the tree."""
    places: tuple[tuple[str, str], ...] = ()
    """The workspace directory of each conversation after the plan has been applied."""
    displaced: frozenset[str] = frozenset()
    """Conversations whose directory another program moved, and that stays there: the baseline keeps the old place."""
    voided: tuple[str, ...] = ()
    """Conversations whose baseline ends because their store was lost: their copies in the workspace are saved to the
    new store, if necessary over several runs."""
    store_lost: bool = False
    """The store has lost everything: before the first step, every checkout discards its baseline of that store."""
    policy: Policy = field(default_factory=Policy)
    """The policy of the run; a saved plan is compared with a later one by it."""
    now_ns: int = 0
    """The time of the plan; it determines the ids of forks."""
    quiet: bool = False
    """Whether both sides equal the baseline: nothing to do, and nothing to record."""
    rooted: tuple[str, ...] = ()
    """Conversations that lose their parent on purpose; an absent key alone would not state that."""
    remembered: tuple[tuple[str, ConversationRecord], ...] = ()
    """For an undo: the records from before the undone run, which become valid again."""
    about: frozenset[str] | None = None
    """The conversations of a limited plan, including those that it changes along; None: all."""
    moving: frozenset[str] = frozenset()
    """Conversations that were left out because another program is writing them."""
    put_off: frozenset[str] = frozenset()
    """Conversations with actions that wait for the end of a git operation or of a program's work, or that a saved plan
    doesn't have.
    """
    contents: Mapping[Place, tuple[tuple[int, int, int, int], bytes]] = field(default_factory=dict)
    """Sources of writes that were read while planning, each with its stat fingerprint from before: as long as a source
    has that, its step need not read it again."""
    granted: tuple[tuple[str, str, str], ...] = ()
    """Secrets that are allowed from now on, before the first action: fingerprint, kind, conversation."""
    waiting: tuple[tuple[tuple[str, Verb], PendingRequest | None], ...] = ()
    """Changes of pending requests, written to the journal before the actions; None removes the entry."""

    @property
    def concerned(self) -> frozenset[str]:
        """The conversations whose baseline this plan changes."""
        ahead = (*self.intents, *self.tombstones, *self.remembered)
        return frozenset(
            (
                *(action.conversation for action in self.actions),
                *(conversation for conversation, _ in ahead),
                *(conversation for (conversation, _), _ in (*self.asides, *self.waiting)),
                *self.voided,
            )
        )

    @property
    def spoken_of(self) -> frozenset[str]:
        """The conversations of which something is held, set aside or noted."""
        items: tuple[Item | Note, ...] = (*self.held, *self.aside, *self.notes)
        return frozenset(item.conversation for item in items if item.conversation is not None)

    def summary(self) -> dict[str, int]:
        """Return the counts by state and kind of action, and of held and set aside items."""
        counts = dict(self.states)
        for action in self.actions:
            counts[action.kind.value] = counts.get(action.kind.value, 0) + 1
        return counts | {"held": len(self.held), "aside": len(self.aside)}


_SETTLED = "in-sync"


def counted_as(conversation: str, places: Places | None) -> str:
    """Return the conversation under which one is counted, itself if it belongs to no other one."""
    return (None if places is None else places.counted_as(conversation)) or conversation


def number_of(conversations: Iterable[str], places: Places | None) -> int:
    """Return how many conversations a listing has of these: a record counts once with those that belong to it."""
    owners = conversations if places is None else map(places.counted_as, conversations)
    return len({owner for owner in owners if owner is not None})


def states_of(counted: Mapping[str, str], places: Places | None = None) -> tuple[tuple[str, int], ...]:
    """Return the number of conversations in each state, sorted by state.

    A record with the records that belong to it counts once (`Places.counted_as`): in its own state, unless that is in
    sync and one of theirs is not.
    """
    if places is None:
        return tuple(sorted(Counter(counted.values()).items()))
    found: dict[str, list[str]] = {}
    for conversation, state in counted.items():
        whole = places.counted_as(conversation)
        if whole is not None:
            each = found.setdefault(whole, [])
            each.insert(0 if whole == conversation else len(each), state)
    return tuple(sorted(Counter(next(filter(_SETTLED.__ne__, each), _SETTLED) for each in found.values()).items()))

"""The plan: what is done, what is held, what is set aside, and why. Data with preconditions."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.baseline import AsideRecord, Intent, Remembered, Verb, Waiting
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


class Write(Struct, frozen=True):
    """One file that an action puts in place: bytes from ``source``, from the vault, or ``content`` given here.

    ``kept`` is the name of the vault's object. The file ends up with ``mtime_ns``, ``size`` and ``digest``, whatever
    was there before.
    """

    target: Place
    source: Place | None
    content: bytes | None
    size: int
    mtime_ns: int
    digest: Digest
    kept: str | None = None


class Expect(Struct, frozen=True):
    """What must be at a place right before the action: this file, or nothing (``digest`` None)."""

    place: Place
    size: int
    mtime_ns: int
    digest: Digest | None

    @property
    def absent(self) -> bool:
        """Nothing at all may be there."""
        return self.digest is None


class Action(Struct, frozen=True, kw_only=True):
    """One step. ``touches`` are the conversations whose locks it needs (docs/design/run.md#rule-49).

    ``together`` names a group: where one of the locks that its actions need isn't free, none of them is carried out.
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
    """Files of a replaced unit that the winner doesn't have (``base_config.json`` of a legacy stream)."""
    mtime_ns: int | None = None
    """For `Kind.AGE`: the time that every file in ``expect`` gets."""
    bytes: int = 0
    events: tuple[int, int] | None = None
    needs: tuple[str, ...] = ()
    expect: tuple[Expect, ...] = ()
    touches: tuple[str, ...] = ()
    together: str | None = None
    words: tuple[str, ...] = ()
    """Of `Kind.REBUILD`: what changes, one line each."""
    makes: tuple[Place, ...] = ()
    """Of `Kind.REBUILD`: directories to be made where they aren't there."""
    clears: tuple[Place, ...] = ()
    """Of `Kind.REBUILD`: locks that were left behind, which go by being taken over and given back."""

    @property
    def inside(self) -> tuple[Expect, ...]:
        """What is expected in the target's own directory: of a removal, what goes with it."""
        return tuple(each for each in self.expect if self._is_inside(each))

    @property
    def beside(self) -> tuple[Expect, ...]:
        """What is expected elsewhere: of a removal, what has to stay, so that it is not the only copy that goes."""
        return tuple(each for each in self.expect if not self._is_inside(each))

    def _is_inside(self, expect: Expect) -> bool:
        place = expect.place
        return place == self.target or (
            place.side is self.target.side and place.path.startswith(f"{self.target.path}/")
        )


class Item(Struct, frozen=True, kw_only=True):
    """Something held (a decision is needed) or set aside (a stable state, by rule).

    ``conversation`` is None where it concerns a whole side. ``resolve``: commands that settle it.
    """

    conversation: str | None
    title: str | None
    unit: str
    reason: Reason
    message: str
    resolve: tuple[str, ...] = ()


class Note(Struct, frozen=True, kw_only=True):
    """Something worth a line that needs no decision."""

    conversation: str | None
    unit: str = "conversation"
    reason: Reason
    message: str


class Preserve(Struct, frozen=True, kw_only=True):
    """A version that goes into the vault now although nothing replaces it yet (behind, invalid)."""

    conversation: str
    unit: str
    place: Place
    size: int
    mtime_ns: int
    digest: Digest


class Heading(Struct, frozen=True):
    """A conversation under which a plan's steps are shown; ``depth`` 0 is a root."""

    conversation: str
    title: str | None
    depth: int


class Plan(Struct, frozen=True, kw_only=True):
    """The whole plan, in the order of execution.

    ``intents``, ``asides`` and ``tombstones`` are changes of what is remembered, written to the journal ahead of the
    actions; None takes the entry out. ``states`` counts conversations by how they stand (``in-sync``,
    ``available``, ...).
    """

    layout: str
    actions: tuple[Action, ...] = ()
    held: tuple[Item, ...] = ()
    aside: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    preserve: tuple[Preserve, ...] = ()
    intents: tuple[tuple[str, Intent | None], ...] = ()
    asides: tuple[tuple[tuple[str, str], AsideRecord | None], ...] = ()
    tombstones: tuple[tuple[str, tuple[Digest, ...]], ...] = ()
    states: tuple[tuple[str, int], ...] = ()
    counted: Mapping[str, str] = field(default_factory=dict)
    """The state that each conversation is counted under."""
    outline: tuple[Heading, ...] = ()
    """The conversations that the plan speaks of and their ancestors, in the order of the tree."""
    places: tuple[tuple[str, str], ...] = ()
    """The workspace directory that each conversation has once the plan is carried out."""
    displaced: frozenset[str] = frozenset()
    """Conversations whose directory stays where somebody else has put it: what was agreed on of its place holds."""
    voided: tuple[str, ...] = ()
    """Conversations whose baseline ends, because the store that it spoke of is no more: what is left of them in the
    workspace is saved anew, however many runs that takes."""
    store_lost: bool = False
    """It begins with a store that has lost all: no checkout believes any more what it knew of it, from before the first
    step on."""
    policy: Policy = field(default_factory=Policy)
    """What was asked for, so that a saved plan can be compared with one made later."""
    now_ns: int = 0
    """When it was made; forks are named by it."""
    quiet: bool = False
    """Both sides are as they were agreed on: there is nothing to do, and nothing to remember."""
    rooted: tuple[str, ...] = ()
    """Conversations that lose their parent on purpose, though an absent key alone would not say so."""
    remembered: tuple[tuple[str, Remembered], ...] = ()
    """What was remembered before the run that is undone, and holds again."""
    about: frozenset[str] | None = None
    """The conversations that a limited plan is about, with those that it changes along; None: all of them."""
    moving: frozenset[str] = frozenset()
    """Conversations that were left out at the last moment: somebody is writing them."""
    put_off: frozenset[str] = frozenset()
    """Conversations of which something waits for the end of what git or a program is at."""
    waiting: tuple[tuple[tuple[str, Verb], Waiting | None], ...] = ()
    """Changes of what was asked for and is still to be done, written ahead of the actions; None takes the entry out."""

    @property
    def concerned(self) -> frozenset[str]:
        """The conversations of which a run of this plan changes what is remembered."""
        ahead = (*self.intents, *self.tombstones, *self.remembered)
        return frozenset(
            (
                *(action.conversation for action in self.actions),
                *(conversation for conversation, _ in ahead),
                *(conversation for (conversation, _), _ in (*self.asides, *self.waiting)),
                *self.voided,
            )
        )

    def summary(self) -> dict[str, int]:
        """Counts by state, by kind of action, and of what is held and set aside."""
        counts = dict(self.states)
        for action in self.actions:
            counts[action.kind.value] = counts.get(action.kind.value, 0) + 1
        return counts | {"held": len(self.held), "aside": len(self.aside)}


def states_of(counted: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Return how many conversations are counted under each state."""
    return tuple(sorted(Counter(counted.values()).items()))

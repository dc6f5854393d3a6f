"""The knowledge of a machine about its remotes, and the values of one sync."""

from __future__ import annotations

import os
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.fs.hashing import digest
from reconcile.model.baseline import AsideKind, Baseline, is_local
from reconcile.model.plan import counted_as
from reconcile.model.snapshot import WHOLE, Partition, is_archived
from reconcile.planning.filters import directory_state, side_digest
from reconcile.planning.incremental.status import digests_of
from reconcile.planning.rules.guards import is_bulk
from reconcile.remote.coding import PLAIN
from reconcile.remote.engine import RemoteError
from reconcile.remote.privacy import private_at
from reconcile.remote.sealing import Sealed
from reconcile.remote.tree import FORMAT, coding_of, key_of, read_format, read_tree
from reconcile.state.schema import REMOTE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.baseline import BaselineEntry, Intent
    from reconcile.model.format import Format, Places
    from reconcile.model.plan import Conflict, Kind, Plan
    from reconcile.model.snapshot import Copy, Digest
    from reconcile.model.units import Rules
    from reconcile.remote.coding import Coding
    from reconcile.remote.place import RemotePlace
    from reconcile.remote.tree import Record
    from reconcile.state.database import State


class Half(Enum):
    """The part of a sync that is wanted."""

    BOTH = auto()
    PULL = auto()
    """Take what is new on the remote, and send nothing."""
    PUSH = auto()
    """Send, unless the remote has something new."""


class Known(Struct, frozen=True):
    """The knowledge of this machine about a remote.

    ``commit`` is that of the baseline, ``pending`` one whose push began. ``waiting`` are the conversations that another
    machine has removed, and that are still in the store. ``key`` is the public key of an encrypted remote. ``epoch`` is
    that of its history. ``kept`` are conversations that this machine doesn't sync with it, and ``shared`` those that it
    does again since the last sync. ``undoing``: an undo of a sync has begun, and the baseline of the last swap doesn't
    have it yet. ``accepted``: no sync has been since a person accepted the remote as it is. ``removals`` is the run
    that has removed, of the last sync that has removed something here, and ``rest`` is the run that has done the rest.
    ``marks`` are the private marks that attempts have taken from the remote since a swap was won last. ``forgets``: a
    drop of its history has begun here, and the mirror may have the old one yet. ``rotated`` is the public key of a
    change of keys whose last push has begun here, and whose end is unknown. ``left`` are the conversations of which the
    last sync has not taken the version there, as it was for others alone, or as a person must decide.
    """

    commit: str | None = None
    pending: str | None = None
    id: str | None = None
    waiting: tuple[str, ...] = ()
    key: str | None = None
    epoch: int = 0
    kept: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    undoing: bool = False
    accepted: bool = False
    removals: str | None = None
    rest: str | None = None
    marks: dict[str, bool] = field(default_factory=dict)
    forgets: bool = False
    rotated: str | None = None
    left: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A conversation in a report."""

    id: str
    title: str | None


class Ahead(NamedTuple):
    """A conversation of which another machine has sent a version with a time that is so much later than now."""

    id: str
    title: str | None
    ahead_ns: int


class DecidedConflict(NamedTuple):
    """A unit that this machine and another one have changed, of which a sync has taken one version.

    ``is_here``: it took this machine's. ``child``: the conversation that the other continuation is now. ``run``: the
    run that has saved the other version; None in a dry run. ``found``: the conflict in the plan, in which the other
    machine is the workspace; None if that machine has decided it.
    """

    id: str
    title: str | None
    unit: str
    is_here: bool
    child: str | None
    run: str | None
    found: Conflict | None = None


class Planned(Struct, frozen=True):
    """The plan of a dry run: the remote's commit, the digest of all steps, and the time that they depend on."""

    commit: str | None
    steps: str
    now_ns: int


def steps_of(
    plan: Plan, removals: Iterable[str], marks: Mapping[str, Intent | None], sent: Mapping[str, bool]
) -> Digest:
    """Return the digest of the steps of a plan, with the conversations that would be removed here first, and the marks.

    ``marks``: the private marks that would be set or removed here, and ``sent`` there.
    """
    steps = [
        (
            action.kind,
            action.conversation,
            action.unit,
            action.source,
            action.target,
            [(write.target, write.digest) for write in action.writes],
            [(expected.place, expected.digest) for expected in action.expect],
            action.removes,
        )
        for action in plan.actions
    ]
    marked = sorted((key, intent is not None) for key, intent in marks.items())
    return digest(msgspec.json.encode((steps, sorted(removals), marked, sorted(sent.items()))))


class Report(Struct):
    """The result of a sync. ``held`` are messages about what needs the user."""

    sent: list[Entry] = field(default_factory=list)
    taken: list[Entry] = field(default_factory=list)
    forked: list[Entry] = field(default_factory=list)
    removed_here: list[Entry] = field(default_factory=list)
    removed_there: list[Entry] = field(default_factory=list)
    replaced_forks: list[Entry] = field(default_factory=list)
    """Forks of this machine that were removed, as another machine has sent the same fork."""
    private_here: list[Entry] = field(default_factory=list)
    """Those that another machine has made private since the last sync, as they are here now."""
    private_no_longer: list[Entry] = field(default_factory=list)
    private_there: list[Entry] = field(default_factory=list)
    """Those that were made private here since, and become so on every machine; not among ``sent`` without more."""
    private_no_longer_there: list[Entry] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    conflicts: list[DecidedConflict] = field(default_factory=list)
    commit: str | None = None
    returned: dict[str, bool] = field(default_factory=dict)
    """Conversations that were removed, and that a later edit brings back; whether this machine takes them so."""
    interrupted_push: str | None = None
    """The end of a push whose answer an earlier sync never got: "arrived" or "not arrived"."""
    was_set_back: bool = False
    """Whether the remote has an earlier commit than the last one that was seen there."""
    ahead: list[Ahead] = field(default_factory=list)
    """The conversations that have the time of a wrong clock: the time of the sync counts instead."""
    replaced: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By conversation the title of this machine, and that of another one which takes its place."""
    placed: dict[str, Kind] = field(default_factory=dict)
    """The kinds of step by which conversations that were taken are archived, or no longer are."""
    secrets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By conversation the secrets, without their text, that are new to the remote, which is not encrypted."""
    planned: Planned | None = None
    """For a dry run."""

    def continued(self) -> Report:
        """Return the report of another attempt, to which all belongs that this one has changed here, or found out."""
        return Report(
            taken=self.taken,
            forked=self.forked,
            removed_here=self.removed_here,
            replaced_forks=self.replaced_forks,
            private_here=self.private_here,
            private_no_longer=self.private_no_longer,
            conflicts=self.conflicts,
            replaced=self.replaced,
            returned=self.returned,
            placed=self.placed,
            secrets=self.secrets,  # a part of a push may have arrived
            interrupted_push=self.interrupted_push,
        )


class Lock(NamedTuple):
    """How a sync waits for the run lock of the store."""

    command: str
    timeout: float
    waiting: Callable[[str], None]


def won(name: str) -> str:
    """Return the identity of the record whose baseline is that of the last swap that was won."""
    return f"{REMOTE}{name} won"


def working(name: str) -> str:
    """Return the identity of the record whose baseline is that of the present attempt."""
    return f"{REMOTE}{name} working"


def known_of(state: State, name: str) -> Known:
    """Return what the state knows of a remote."""
    text = state.meta(REMOTE + name)
    return msgspec.json.decode(text, type=Known) if text else Known()


def note(state: State, name: str, known: Known) -> None:
    """Record what is known of a remote."""
    state.set_meta(REMOTE + name, msgspec.json.encode(known).decode())


def synced_with(state: State, place: RemotePlace) -> Mapping[str, BaselineEntry]:
    """Return what the last sync with a remote has left on both sides, by conversation."""
    return _baseline(state, place).agreed


def _baseline(state: State, place: RemotePlace, of: Callable[[str], str] = won) -> Baseline:
    mirror = os.path.realpath(place.mirror)
    rows = state.checkouts(with_remotes=True)
    row = next((each.id for each in rows if each.project == mirror and each.identity == of(place.name)), None)
    return Baseline() if row is None else state.load(row)


class Pending(NamedTuple):
    """How many conversations a sync would send, remove on the remote, and take, as the last contact has shown.

    ``on_both``: those that were changed here and there, which no other number has. ``to_take`` is None if that is
    unknown. ``waiting``: those that the last sync would have removed here; ``is_bulk``: they are too many at once.
    """

    to_send: int
    to_remove: int
    to_take: int | None
    on_both: int
    waiting: int = 0
    is_bulk: bool = False


def pending(session: Session, copies: Iterable[Copy], place: RemotePlace) -> Pending:
    """Return what a sync would do, without the network; ``copies`` are those of the store.

    It is known by what the last sync left on both sides, and by the last fetch. The session is that of the project's
    own checkout.
    """
    known, baseline = known_of(session.state, place.name), _baseline(session.state, place)
    if known.pending is not None and _has_arrived(known.pending, place):
        known, baseline = replace(known, commit=known.pending), _baseline(session.state, place, working)
    agreed, places = baseline.agreed, session.format.places
    everything = by_conversation(copies)
    kept = {key for key in (*everything, *agreed) if counted_as(key, places) in known.kept}.union(known.kept)
    stored = {key: found for key, found in everything.items() if key not in kept}
    undone = _left_by_undo(baseline, stored, session.rules)
    marked = _marked(session, known, place)
    differing = [
        key
        for key, (copy, *_) in stored.items()
        if key in marked & agreed.keys() or (key not in undone and _differs(copy, agreed, session.rules))
    ]
    waiting = {key for key in known.waiting if key in stored and (key not in agreed or key not in differing)}
    differing = [key for key in differing if key not in waiting]
    is_much, here = is_bulk(len(waiting), len(everything)), len(tops((), waiting, places)[1])
    gone = agreed.keys() - stored.keys() - kept - undone
    is_all_gone = bool(gone) and agreed.keys().isdisjoint(stored)
    lost = gone if is_all_gone else gone & session.state.lost().keys()  # a sync takes them again
    sent, removed = tops(differing, gone - lost, places)
    try:
        there = _changed_there(known, session.format, place)
    except RemoteError:
        there = None
    if there is None:
        return Pending(len(sent), len(removed), len(tops((), lost, places)[1]) or None, 0, here, is_much)
    keys, coding = there
    keys |= set(map(coding.key, (*lost, *known.left)))
    shared = {id_: key for id_ in (*differing, *(gone - lost)) if keys and (key := coding.key(id_)) in keys}
    on_both = {counted_as(id_, places) for id_ in shared}
    to_send, to_remove = (len(set(each) - on_both) for each in (sent, removed))
    to_take = len(keys - set(shared.values()))
    return Pending(to_send, to_remove, to_take, len(on_both), here, is_much)


def _has_arrived(commit: str, place: RemotePlace) -> bool:
    """Tell whether the last fetch has brought the commit of a push whose end was unknown."""
    try:
        seen = place.engine.seen()
        return seen is not None and place.engine.contains(seen, commit)
    except RemoteError:
        return False


def left_there(copies: Iterable[Copy], baseline: Baseline, kept: Collection[str], rules: Rules) -> tuple[str, ...]:
    """Return the conversations of a remote whose version there is not the agreed one; ``copies`` are all it has.

    What an undo leaves alone is none of them.
    """
    undone = {key for (key, unit), each in baseline.asides.items() if (unit, each.kind) == (WHOLE, AsideKind.UNDONE)}
    apart = {*kept, *undone}
    return tuple(
        copy.conversation
        for copy in copies
        if copy.conversation not in apart and _differs(copy, baseline.agreed, rules)
    )


def _differs(copy: Copy, agreed: Mapping[str, BaselineEntry], rules: Rules) -> bool:
    """Tell whether a copy is another version than the agreed one, or has another place."""
    entry = agreed.get(copy.conversation)
    return entry is None or digests_of(copy, rules) != entry.units or is_archived(entry.place) != copy.archived


def _marked(session: Session, known: Known, place: RemotePlace) -> frozenset[str]:
    """Return the conversations that were made private here, or no longer are, since the last sync."""
    try:
        there = private_at(known.commit, session.format, place)
    except RemoteError:
        return frozenset()
    intents = session.state.intents(session.checkout)
    return there ^ {key for key, intent in intents.items() if is_local(intent)}


def _left_by_undo(baseline: Baseline, stored: Mapping[str, Sequence[Copy]], rules: Rules) -> set[str]:
    """Return the conversations that are in the store as the undo of a sync has left them: a sync sends none of them."""
    found = set[str]()
    for (key, unit), record in baseline.asides.items():
        if unit == WHOLE and record.kind is AsideKind.UNDONE:
            states = (directory_state(copy.path, copy.container, copy.files) for copy in stored.get(key, ()))
            if side_digest(states, rules) == record.store:
                found.add(key)
    return found


def _changed_there(known: Known, fmt: Format, place: RemotePlace) -> tuple[set[str], Coding] | None:
    """Return the names of the conversations that were changed or removed there since the last sync, and their coding.

    None: that is unknown here.
    """
    engine = place.engine
    seen = engine.seen()
    if seen is None or (known.commit is not None and not engine.contains(seen, known.commit)):
        return None
    changed = engine.tree(seen) if known.commit is None else engine.changes(known.commit, seen)
    keys = {found for path in changed if (found := key_of(path)) is not None}
    file = read_format(engine, seen, place.store) if keys else None
    coding = PLAIN if file is None else coding_of(file, place.keys)
    if known.commit is not None and FORMAT in changed and isinstance(coding, Sealed):
        # New keys give each file other bytes, and another name.
        secrets = (coding.bundle.secret, *coding.bundle.earlier)
        before, after = (
            read_tree(engine, commit, fmt, place.store, place.keys, *secrets) for commit in (known.commit, seen)
        )
        names = before.records.keys() | after.records.keys()
        keys = {coding.key(each) for each in names if not _is_same(before.records.get(each), after.records.get(each))}
    return keys - set(map(coding.key, known.kept)), coding


def _is_same(before: Record | None, after: Record | None) -> bool:
    return before is not None and before.is_same(after)


def tops(changed: Iterable[str], removed: Iterable[str], places: Places | None) -> tuple[list[str], list[str]]:
    """Return the conversations of changed and of removed ones, with each session for the files beside it.

    A session that loses such a file, and stays itself, is a changed one.
    """
    whole = [key for key in removed if counted_as(key, places) == key]
    beside = (counted_as(key, places) for key in (*changed, *removed))
    return list(dict.fromkeys(key for key in beside if key not in whole)), whole


def by_conversation(copies: Iterable[Copy]) -> dict[str, list[Copy]]:
    """Return the copies outside of the trash that have a file, by conversation."""
    found: dict[str, list[Copy]] = {}
    for copy in copies:
        if copy.partition is not Partition.TRASH and copy.files:
            found.setdefault(copy.conversation, []).append(copy)
    return found

"""Which content wins: the decision for one unit of one side or both (docs/design/decisions.md#rule-15).

Both sides have the conversation here; whether it belongs on a side is decided in `reconcile.planning.rules.presence`.
Streams have a direction: which of two continues the other is compared before any mtime.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, IntentKind
from reconcile.model.format import Summary
from reconcile.model.options import Diverged, Missing, Prefer, StreamRule, Take
from reconcile.model.reasons import Reason, case_of
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Fault, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest, Event, Stream
    from reconcile.model.units import Unit
    from reconcile.planning.rules.guards import Sides
    from reconcile.planning.rules.views import View


class Outcome(Enum):
    """What becomes of one unit."""

    NOTHING = auto()
    TO_STORE = auto()
    TO_WORKSPACE = auto()
    DROP = auto()
    """Taken out of the workspace: an extra that the store no longer has."""
    BEHIND = auto()
    ASIDE = auto()
    """Kept or undone: nothing until a side changes."""
    WAIT = auto()
    """Another unit is behind or held, and this one waits with it."""
    HELD = auto()
    UNITED = auto()
    """Both sides get one version that is made of theirs."""


_GIVING = (Outcome.TO_WORKSPACE, Outcome.UNITED)
"""What the workspace gets from the store."""


_MANAGED = (METADATA, STREAM)
_SOUND = (Reason.DECIDED, Reason.INCOMPLETE, Reason.REFILL, Reason.AHEAD_WORKSPACE)
"""Why the store gets a version that holds no less than its own, or that somebody has decided for."""


class Verdict(Struct, frozen=True, gc=False):
    """The decision for one unit, with the case and the reason that it is reported under.

    ``forks`` names the side whose stream lives on as a conversation of its own.
    ``case`` is None where a side's own directories differ. ``conflict``: two real edits met, the loser is in the vault.
    ``faulty`` are the units that can't be read, which go to the vault as they are.
    """

    unit: str
    case: int | None
    outcome: Outcome
    reason: Reason | None = None
    forks: Side | None = None
    conflict: bool = False
    faulty: tuple[Unit, ...] = ()
    record: AsideRecord | None = None
    content: bytes | None = None
    """Of `Outcome.UNITED`: the version that is made."""
    count: int = 0
    """Of a stream that is made: the number of its events."""
    beside: Side = Side.STORE
    """Of a stream that is made: the side that its other files come from."""
    words: str = ""
    """What a person has to decide about."""
    noted: Reason | None = None
    """Why a person should know of it, though it needs no decision."""


def decide_units(view: View, baseline: Baseline, policy: Policy, sides: Sides) -> tuple[Verdict, ...]:
    """Decide every unit of a conversation that is on both sides."""
    names = _unit_names(view)
    anew = {name for name in names if _differs_from_baseline(view, name)} if sides.store_renewed else ()
    verdicts = [
        decide_unit(replace(view, agreed=None), name, replace(baseline, history={}), policy)
        if name in anew
        else decide_unit(view, name, baseline, policy)
        for name in names
    ]
    if all(verdict.outcome is Outcome.NOTHING for verdict in verdicts):
        return tuple(verdicts)
    assert view.store.main is not None  # noqa: S101 - it is on both sides
    if sides.store_renewed:
        verdicts = [_refilled(view, verdict, baseline) for verdict in verdicts]
    elif not sides.believes_absence(view.store.main.path):
        verdicts = [_kept(verdict) if verdict.outcome is Outcome.DROP else verdict for verdict in verdicts]
    if is_partly_here(view, policy):
        verdicts = [_kept(verdict) if verdict.outcome in _GIVING else verdict for verdict in verdicts]
    if policy.git_busy is not None:
        busy = policy.git_busy
        verdicts = [_held_by_git(each, busy) if _replaces(view, each, policy) else each for each in verdicts]
    return tuple([_unwritten(view, verdict) for verdict in verdicts] if view.local else verdicts)


def _unit_names(view: View) -> Sequence[str]:
    """Return the names of the units that a side has, extras last."""
    store, workspace = view.store.units, view.workspace.units
    if len(store) == len(workspace) == len(_MANAGED) and all(name in store and name in workspace for name in _MANAGED):
        return _MANAGED
    return sorted(store.keys() | workspace.keys(), key=_unit_order)


def _differs_from_baseline(view: View, name: str) -> bool:
    """Tell whether the store alone has another version of a unit than was agreed on.

    In another store than that of then, this is no edit of the version that was agreed on: both are compared anew.
    """
    base = view.agreed.units.get(name) if view.agreed else None
    stored = view.store.digest(name)
    return base is not None and view.workspace.digest(name) == base and stored is not None and stored != base


def _refilled(view: View, verdict: Verdict, baseline: Baseline) -> Verdict:
    """Decide a unit where the store is not the one that was agreed with: an extra that it lacks was not removed, and a
    version older than the workspace's, which it has got from a copy of that time, was not written.
    """
    name = verdict.unit
    if verdict.outcome is Outcome.DROP:
        return Verdict(name, verdict.case, Outcome.TO_STORE, Reason.REFILL)
    decided = verdict.reason in (Reason.DECIDED, Reason.PREFERRED)
    if decided or verdict.outcome not in (Outcome.TO_WORKSPACE, Outcome.BEHIND):
        return verdict
    known, workspace = baseline.history.get((view.id, name), ()), view.workspace.digest(name)
    older = known[: known.index(workspace)] if workspace in known else known[:-1]
    sound = workspace is not None and view.store.digest(name) in older
    return Verdict(name, verdict.case, Outcome.TO_STORE, Reason.REFILL) if sound else verdict


def _replaces(view: View, verdict: Verdict, policy: Policy) -> bool:
    """Tell whether the workspace's version would take the place of the store's, or live on beside it, although nobody
    has decided for it, and it isn't the store's with something added.
    """
    gives = verdict.outcome in (Outcome.TO_STORE, Outcome.UNITED) or verdict.forks is Side.WORKSPACE
    if not gives or verdict.reason in _SOUND or view.store.digest(verdict.unit) is None:
        return False
    if verdict.unit != STREAM or policy.stream is not StreamRule.DIRECTED:
        return True
    store, workspace = (view.side(side).units[STREAM].stream for side in Side)
    return direction(store, workspace) is not Direction.WORKSPACE_AHEAD


def _held_by_git(verdict: Verdict, busy: str) -> Verdict:
    """Leave the workspace's version where it is while git is in the middle of something: it may be half merged, and it
    may go back to what it was.
    """
    words = f"git is in the middle of something here ({busy}): its version here is taken at the end of that"
    return Verdict(verdict.unit, verdict.case, Outcome.HELD, Reason.GIT_BUSY, words=words)


def _kept(verdict: Verdict) -> Verdict:
    return Verdict(verdict.unit, verdict.case, Outcome.WAIT)


def is_partly_here(view: View, policy: Policy) -> bool:
    """Tell whether only some files of a conversation that doesn't belong here are: neither the store's must join them,
    nor the parent that only the store states.
    """
    for name in view.format.required:
        if view.workspace.digest(name) is None and name in view.store.units and not _is_published(view, name, policy):
            return view.id not in policy.decisions
    return False


def _is_published(view: View, name: str, policy: Policy) -> bool:
    """Tell whether a unit of a conversation belongs into the workspace, whatever is there of it now."""
    intent = view.intent
    if intent is not None and intent.keeps_away:
        return False
    agreed = view.agreed is not None and name in view.agreed.units
    everything = policy.missing is Missing.REPROJECT and not view.local
    return agreed or everything or (intent is not None and intent.kind is IntentKind.PROJECTED)


def decide_carried(view: View, baseline: Baseline, policy: Policy) -> tuple[Verdict, ...]:
    """Decide what a directory that JP carried into its trash brings: newer content is saved, nothing is written.

    What can't be read is held where it is the store's: the trash may be all that is left of it.
    """
    if not view.workspace.units:
        return ()
    names = sorted(set(view.store.units) & set(view.workspace.units), key=_unit_order)
    verdicts = [_unwritten(view, decide_unit(view, name, baseline, policy)) for name in names]
    return tuple(
        verdict
        for verdict in verdicts
        if verdict.outcome in (Outcome.TO_STORE, Outcome.UNITED, Outcome.ASIDE) or _is_broken_in_store(verdict)
    )


def _is_broken_in_store(verdict: Verdict) -> bool:
    return any(unit.copy.side is Side.STORE for unit in verdict.faulty)


def _unwritten(view: View, verdict: Verdict) -> Verdict:
    """A copy that is never written (local, or in the trash): what lost there stays as it is."""
    if verdict.outcome not in (Outcome.TO_WORKSPACE, Outcome.DROP, Outcome.UNITED):
        return verdict
    record = AsideRecord(AsideKind.LOCAL, None, view.workspace.raw(verdict.unit))
    if verdict.outcome is Outcome.UNITED:
        return replace(verdict, record=record)
    return replace(verdict, outcome=Outcome.ASIDE, reason=Reason.LOCAL_PRESENT, record=record)


def _unit_order(name: str) -> tuple[bool, str]:
    return (name.startswith(EXTRA), name)


def decide_unit(view: View, name: str, baseline: Baseline, policy: Policy) -> Verdict:
    """Decide one unit: damage first, then what was decided before, then the table."""
    base = view.agreed.units.get(name) if view.agreed else None
    store, workspace = view.store.digest(name), view.workspace.digest(name)
    case = case_of(base, store, workspace)
    if store is None or workspace is None or view.store.stale or view.workspace.stale:
        damaged = _damaged(view, name, case, policy)
        if damaged is not None:
            return damaged
    if store == workspace or view.store.raw(name) == view.workspace.raw(name):
        return Verdict(name, case, Outcome.NOTHING)
    if store is None or workspace is None:
        return _lone_extra(view, name, case)
    take = policy.decisions.get(view.id)
    if take is not None:
        return _taken(view, name, case, take)
    store_is_newest = _known(view, name, case, baseline)
    if isinstance(store_is_newest, Verdict):
        return store_is_newest
    if name == STREAM and (missing_side := _lacks_configuration(base, store, workspace)) is not None:
        return _won_by(missing_side.other, name, case, Reason.INCOMPLETE)
    outdated = _outdated(view, name, baseline)
    if outdated is Side.WORKSPACE:
        return _behind(name, case, view.workspace.raw(name))
    if outdated is Side.STORE and not store_is_newest:
        return _won_by(Side.WORKSPACE, name, case, Reason.LATER_COMMIT)
    if name == STREAM and policy.stream is StreamRule.DIRECTED and not store_is_newest:
        return _directed(view, case, baseline, policy)
    if (
        name == METADATA
        and (united := _united_metadata(view, case, policy, store_is_newest=store_is_newest)) is not None
    ):
        return united
    return _by_case(view, name, case, policy)


def _known(view: View, name: str, case: int, baseline: Baseline) -> Verdict | bool:
    """Return what earlier runs say of two contents: a verdict, or whether the store has settled for its own."""
    remembered = baseline.asides.get((view.id, name))
    if remembered is not None and _still_holds(remembered, view.store.raw(name), view.workspace.raw(name)):
        outcome = Outcome.BEHIND if remembered.kind is AsideKind.BEHIND else Outcome.ASIDE
        return Verdict(name, case, outcome, record=remembered)
    if case != 13 and baseline.superseded(view.id, name, view.workspace.digest(name)):
        return _behind(name, case, view.workspace.raw(name))
    return case == 13 and _is_newest(baseline, view.id, name, view.store.digest(name))


def doubtful_case(view: View, name: str, baseline: Baseline) -> int | None:
    """Return the case of a unit of which both sides have a valid version, two different ones, and no run says that the
    workspace's is the older.
    """
    base = view.agreed.units.get(name) if view.agreed else None
    store, workspace = view.store.digest(name), view.workspace.digest(name)
    if store is None or workspace is None or store == workspace or view.store.raw(name) == view.workspace.raw(name):
        return None
    case = case_of(base, store, workspace)
    return None if isinstance(_known(view, name, case, baseline), Verdict) else case


def _outdated(view: View, name: str, baseline: Baseline) -> Side | None:
    """Return the side that has the older content by the order of commits; None where that isn't known of these two."""
    found = baseline.outdated.get((view.id, name))
    if found is None or (found.store, found.workspace) != (view.store.raw(name), view.workspace.raw(name)):
        return None
    return found.side


def _loses(view: View, case: int) -> bool:
    """Tell whether the one edit there was has lost what its program never removes: it isn't just newer then."""
    sides = view.store.metadata, view.workspace.metadata
    before, after = sides if case == 11 else sides[::-1]
    places = view.format.places
    if places is None or before is None or after is None:
        return False
    return places.loses(view.id, before.content, after.content)


def _united_metadata(view: View, case: int, policy: Policy, *, store_is_newest: bool) -> Verdict | None:
    """Make one version of two edits, or of one that has lost something and what it lacks."""
    lost = case in (11, 13) and not store_is_newest and _loses(view, case)
    judged = case in (5, 15) and policy.prefer is Prefer.NEWEST
    return _united(view, case, lost=lost) if lost or judged else None


def _united(view: View, case: int, *, lost: bool) -> Verdict | None:
    """Make one version of two, where the format can; a version that has all of the other wins whatever the times.

    ``lost``: the one edit there was has lost something. Where that can't be put back, a person decides.
    """
    store, workspace = view.store.metadata, view.workspace.metadata
    if view.format.places is None or store is None or workspace is None:
        return None
    found = view.format.places.unite(view.id, store.content, workspace.content)
    if found is None:
        words = "found an edit that lacks what the other side has, and two versions that can't be made one"
        return Verdict(METADATA, case, Outcome.HELD, Reason.LOSING, words=words) if lost else None
    if isinstance(found, Fault):
        words = f"found {found.found}, expected {found.expected}"
        return Verdict(METADATA, case, Outcome.HELD, Reason.CONTRADICTING, words=words)
    if found == store.content:
        return _won_by(Side.STORE, METADATA, case, Reason.PUT_BACK if lost else Reason.AHEAD_STORE)
    if found == workspace.content:
        return _won_by(Side.WORKSPACE, METADATA, case, Reason.PUT_BACK if lost else Reason.AHEAD_WORKSPACE)
    return Verdict(METADATA, case, Outcome.UNITED, Reason.PUT_BACK if lost else Reason.UNITED, content=found)


def _damaged(view: View, name: str, case: int, policy: Policy) -> Verdict | None:
    """Deal with a side whose unit is missing or faulty; None where both are valid or it is a lone extra.

    Damage is refilled, but into the workspace only where the conversation is known to belong there: some files of a
    private one must not bring the others along.
    """
    faults = view.store.faulty(name), view.workspace.faulty(name)
    there = name in view.store.units and name in view.workspace.units
    if faults[0] is faults[1] is None and (there or name.startswith(EXTRA)):
        return None
    faulty = tuple(unit for unit in faults if unit is not None)
    sound = [side for side in Side if view.side(side).digest(name) is not None]
    incomplete = all(unit.fault is not None and unit.fault.incomplete for unit in faulty)
    take = policy.decisions.get(view.id)
    refills = incomplete and (_is_published(view, name, policy) or sound != [Side.STORE])
    if len(sound) == 1 and (refills or take == sound[0].value):
        outcome = Outcome.TO_WORKSPACE if sound[0] is Side.STORE else Outcome.TO_STORE
        reason = Reason.INCOMPLETE if refills else Reason.DECIDED
        return Verdict(name, case, outcome, reason, faulty=faulty)
    return Verdict(name, case, Outcome.HELD, Reason.INVALID, faulty=faulty)


def _lone_extra(view: View, name: str, case: int) -> Verdict:
    """An extra that one side lacks: additions go to the store, removals stay where they were made."""
    if view.workspace.digest(name) is None:
        if view.format.places is not None and case == 3:
            return Verdict(name, case, Outcome.TO_WORKSPACE, Reason.SHARED)
        return Verdict(name, case, Outcome.NOTHING)
    if case == 7:
        return Verdict(name, case, Outcome.DROP, Reason.REMOVED_IN_STORE)
    reason = Reason.EDIT_WINS if case == 8 else Reason.EXTERNAL
    return Verdict(name, case, Outcome.TO_STORE, reason)


def _taken(view: View, name: str, case: int, take: Take) -> Verdict:
    """Carry out what `resolve` decided."""
    if take is Take.KEEP:
        record = AsideRecord(AsideKind.KEPT, view.store.raw(name), view.workspace.raw(name))
        return Verdict(name, case, Outcome.ASIDE, Reason.KEPT, record=record)
    if take is Take.BOTH:
        winner, _ = _judge(view, name, Prefer.NEWEST)
        forks = winner.other if name == STREAM else None
        return _won_by(winner, name, case, Reason.DECIDED, forks=forks)
    return _won_by(Side(take.value), name, case, Reason.DECIDED)


def _still_holds(record: AsideRecord, store: Digest | None, workspace: Digest | None) -> bool:
    """Behind and local last while the workspace's content is the same, kept and undone until a side changes."""
    lasting = record.kind in (AsideKind.BEHIND, AsideKind.LOCAL)
    return workspace == record.workspace and (lasting or store == record.store)


def _lacks_configuration(base: Digest | None, store: Digest, workspace: Digest) -> Side | None:
    """Return the side whose stream has the same events, and not the configuration that lies beside them on the other.

    Both can be valid, where the first event may stand for it. That the file is missing is damage all the same, such as
    by `git clean`, unless both sides agreed on a stream without one.
    """
    for side, missing_side, whole in ((Side.STORE, store, workspace), (Side.WORKSPACE, workspace, store)):
        beside, _, events = whole.rpartition("+")
        if beside and events == missing_side != base:
            return side
    return None


def _is_newest(baseline: Baseline, conversation: str, name: str, digest: Digest | None) -> bool:
    """Tell whether another checkout has come to that version already: what it replaced was dealt with there."""
    return baseline.history.get((conversation, name), ())[-1:] == (digest,)


def _behind(name: str, case: int, workspace: Digest | None) -> Verdict:
    record = AsideRecord(AsideKind.BEHIND, None, workspace)
    return Verdict(name, case, Outcome.BEHIND, Reason.BEHIND, record=record)


def _directed(view: View, case: int, baseline: Baseline, policy: Policy) -> Verdict:
    """Judge two valid streams that differ by their events, before any mtime."""
    store, workspace = view.store.units[STREAM], view.workspace.units[STREAM]
    way = direction(store.stream, workspace.stream)
    if way is Direction.STORE_AHEAD and case != 13:
        if workspace.mtime_ns > store.mtime_ns:
            return _behind(STREAM, case, workspace.raw)
        return _won_by(Side.STORE, STREAM, case, Reason.AHEAD_STORE)
    if way is Direction.WORKSPACE_AHEAD and case in (5, 15):
        return _won_by(Side.WORKSPACE, STREAM, case, Reason.AHEAD_WORKSPACE)
    two = case in (5, 15)
    if two and policy.prefer is Prefer.NEWEST and (united := _united_stream(view, case, baseline)) is not None:
        return united
    verdict = _by_case(view, STREAM, case, policy)
    winner = Side.STORE if verdict.outcome is Outcome.TO_WORKSPACE else Side.WORKSPACE
    sides = {Side.STORE: store, Side.WORKSPACE: workspace}
    # Of one edit alone the text that it replaces is no continuation.
    diverges = lives_on if two else loses_its_end
    if diverges(sides[winner.other].stream, sides[winner].stream):
        return _diverged(view, case, policy)
    if winner is Side.WORKSPACE and not verdict.conflict and differ_by_base(store.stream, workspace.stream):
        return replace(verdict, noted=Reason.BASE_REPLACED)
    return verdict


def _united_stream(view: View, case: int, baseline: Baseline) -> Verdict | None:
    """Make one stream of two, where one side has edited what both had, and the other has only added to that."""
    agreed = view.agreed.units.get(STREAM) if view.agreed else None
    known = {each.rpartition("+")[2] for each in (*baseline.history.get((view.id, STREAM), ())[-1:], agreed) if each}
    beside = _beside(agreed, view.store.digest(STREAM), view.workspace.digest(STREAM))
    store, workspace = (view.side(side).units[STREAM].stream.content for side in Side)
    if store is None or workspace is None or beside is None:
        return None
    for edited, continued in ((store, workspace), (workspace, store)):
        found = view.format.unite_events(edited, continued, lambda content: view.rules.digest(content) in known)
        if found is not None:
            summary = view.format.summarise([found], events=False)
            assert isinstance(summary, Summary)  # noqa: S101 - it is made of valid events
            return Verdict(
                STREAM,
                case,
                Outcome.UNITED,
                Reason.UNITED,
                content=found,
                count=summary.count,
                beside=beside,
            )
    return None


def _beside(base: Digest | None, store: Digest | None, workspace: Digest | None) -> Side | None:
    """Return the side whose base configuration goes with the events of both; None where both have changed it."""
    before, ours, theirs = (each and each.rpartition("+")[0] for each in (base, store, workspace))
    if theirs in (ours, before):
        return Side.STORE
    return Side.WORKSPACE if ours == before else None


def _diverged(view: View, case: int, policy: Policy) -> Verdict:
    """Two continuations: the newer wins, the other lives on unless it is part of the winner after all."""
    if policy.diverged is Diverged.HOLD:
        return Verdict(STREAM, case, Outcome.HELD, Reason.DIVERGED_HELD)
    winner, _ = _judge(view, STREAM, policy.prefer)
    loser = view.side(winner.other).units[STREAM].stream
    lost = lives_on(loser, view.side(winner).units[STREAM].stream)
    forks = winner.other if lost and policy.diverged is Diverged.FORK else None
    return _won_by(winner, STREAM, case, Reason.DIVERGED, forks=forks, conflict=True)


def _by_case(view: View, name: str, case: int, policy: Policy) -> Verdict:
    """Read the table: 11 and 13 have one edit, 5 and 15 are judged."""
    if case == 11:
        return _won_by(Side.WORKSPACE, name, case, Reason.EDITED_WORKSPACE)
    if case == 13:
        return _won_by(Side.STORE, name, case, Reason.EDITED_STORE)
    winner, reason = _judge(view, name, policy.prefer)
    return _won_by(winner, name, case, reason, conflict=case == 15)


def _judge(view: View, name: str, prefer: Prefer) -> tuple[Side, Reason]:
    """Judge two real edits: newest mtime, a tie goes to the store, `--prefer` overrides."""
    if prefer is not Prefer.NEWEST:
        return Side(prefer.value), Reason.PREFERRED
    store, workspace = view.store.units[name].mtime_ns, view.workspace.units[name].mtime_ns
    if workspace > store:
        return Side.WORKSPACE, Reason.NEWER_WORKSPACE
    return Side.STORE, Reason.TIE if store == workspace else Reason.NEWER_STORE


def _won_by(
    side: Side,
    name: str,
    case: int,
    reason: Reason,
    *,
    forks: Side | None = None,
    conflict: bool = False,
) -> Verdict:
    outcome = Outcome.TO_WORKSPACE if side is Side.STORE else Outcome.TO_STORE
    return Verdict(name, case, outcome, reason, forks, conflict)


class Direction(Enum):
    """How the events of the store's stream relate to those of the workspace's."""

    LEVEL = "level"
    """The same events, or neither begins with the other."""
    STORE_AHEAD = "store-ahead"
    WORKSPACE_AHEAD = "workspace-ahead"


def direction(store: Stream, workspace: Stream) -> Direction:
    """Tell which stream's events begin with all of the other's and go on."""
    here, there = events(store, workspace), events(workspace, store)
    if len(there) < len(here) and here[: len(there)] == there:
        return Direction.STORE_AHEAD
    if len(here) < len(there) and there[: len(here)] == here:
        return Direction.WORKSPACE_AHEAD
    return Direction.LEVEL


def is_edited_and_continued(one: Stream, other: Stream) -> bool:
    """Tell whether one of two streams goes on from where the other ends, and yet doesn't continue it: something before
    was edited.
    """
    return direction(one, other) is Direction.LEVEL and loses_its_end(one, other) != loses_its_end(other, one)


def lives_on(loser: Stream, winner: Stream) -> bool:
    """Tell whether a stream that loses to another has something that isn't in it: its last event, or, where the winner
    goes on after that, another text of an event.

    Of two that end alike the older text is in the vault.
    """
    if loses_its_end(loser, winner):
        return True
    theirs = events(winner, loser)
    known = {event.id for event in theirs}
    edited = any(event.id in known for event in set(events(loser, winner)).difference(theirs))
    return edited and loses_its_end(winner, loser)


def loses_its_end(loser: Stream, winner: Stream) -> bool:
    """Tell whether the loser's last event isn't in the winner: the two have diverged."""
    lost = events(loser, winner)
    return bool(lost) and lost[-1].id not in {event.id for event in events(winner, loser)}


def differ_by_base(one: Stream, other: Stream) -> bool:
    """Tell whether two streams have the same events, and another base configuration."""
    return one.base != other.base and events(one, other) == events(other, one)


def events(stream: Stream, other: Stream) -> tuple[Event, ...]:
    """Return E(x) of a stream that was inspected, as far as it can be compared with another's.

    The first element of the legacy form is the base configuration. Where git puts such a stream back beside a
    ``base_config.json`` that is newer, or that git doesn't know, it is no event there either.

    Raises:
        ValueError: the scan didn't load them, though the sides differ.
    """
    if stream.events is None:
        message = "the events of a stream that differs were not loaded"
        raise ValueError(message)
    leads = stream.events[:1]
    return stream.events[1:] if leads and leads[0].content in (stream.base, other.base) else stream.events

"""Which content wins: the decision for one unit of one side or both (docs/design/decisions.md#rule-15).

Both sides have the conversation here; `reconcile.planning.rules.presence` decides whether it belongs on a side. Streams
have a direction: the events decide which of two continues the other, before any mtime.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, IntentKind
from reconcile.model.format import Summary, TwoContinuations
from reconcile.model.options import Diverged, Missing, OnConflict, Prefer, StreamRule, Take
from reconcile.model.reasons import Reason, case_of
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Fault, Side
from reconcile.planning.rules.shapes import collisions, two_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Places
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest, Event, Stream
    from reconcile.model.units import Unit
    from reconcile.planning.rules.guards import Sides
    from reconcile.planning.rules.views import View


class Outcome(Enum):
    """The result for one unit."""

    NOTHING = auto()
    TO_STORE = auto()
    TO_WORKSPACE = auto()
    DROP = auto()
    """An extra that the store no longer has is removed from the workspace."""
    DROP_HERE = auto()
    """An extra that another machine has removed, or the workspace has replaced, is removed from the store."""
    BEHIND = auto()
    ASIDE = auto()
    """Kept or undone: nothing happens until a side changes."""
    WAIT = auto()
    """Another unit is behind or held, and this one waits with it."""
    HELD = auto()
    MERGED = auto()
    """Both sides get one merged version."""


_GIVING = (Outcome.TO_WORKSPACE, Outcome.MERGED)
"""The outcomes that write to the workspace."""


_MANAGED = (METADATA, STREAM)
_SOUND = (Reason.DECIDED, Reason.INCOMPLETE, Reason.REFILL, Reason.AHEAD_WORKSPACE)
"""The reasons for which the store may get a version: it holds no less than the store's own, or a person has chosen it.
"""


class Verdict(Struct, frozen=True, gc=False):
    """The decision for one unit, with the case and the reason of the report.

    ``forks`` names the side whose stream continues as a conversation of its own. ``case`` is None if a side's own
    directories differ. ``conflict``: two edits met, and the version that isn't taken is saved in the vault. ``faulty``
    are the invalid units, which are saved in the vault as they are.
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
    """For `Outcome.MERGED`: the merged version."""
    count: int = 0
    """For a merged stream: the number of its events."""
    beside: Side = Side.STORE
    """For a merged stream: the side that its other files come from."""
    words: str = ""
    """The decision that a person has to make."""
    keys: tuple[str, ...] = ()
    """For a conflict in metadata: the keys that both sides have edited; empty if the files were not merged."""
    noted: Reason | None = None
    """The reason why a person should know of it, though no decision is needed."""


def decide_units(view: View, baseline: Baseline, policy: Policy, sides: Sides) -> tuple[Verdict, ...]:
    """Decide every unit of a conversation that is on both sides."""
    names = _unit_names(view)
    incomparable = {name for name in names if _differs_from_baseline(view, name)} if sides.store_renewed else ()
    verdicts = [
        decide_unit(replace(view, agreed=None), name, replace(baseline, history={}), policy)
        if name in incomparable
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
    verdicts = _in_one_shape(view, verdicts, baseline, policy)
    if policy.git_busy is not None:
        busy = policy.git_busy
        verdicts = [
            _held_by_git(verdict, busy) if _replaces(view, verdict, policy) else verdict for verdict in verdicts
        ]
    return tuple([_unwritten(view, verdict) for verdict in verdicts] if view.local else verdicts)


def _in_one_shape(view: View, verdicts: list[Verdict], baseline: Baseline, policy: Policy) -> list[Verdict]:
    """Decide about extras of which one side has a file in the place of the other side's directory.

    The workspace has replaced what the store has as at the last sync. Otherwise both sides have something new, and all
    of it waits.
    """
    decided = {verdict.unit: verdict for verdict in verdicts}
    here = [name for name in decided if name.startswith(EXTRA) and name not in view.store.units]
    there = [name for name in decided if name.startswith(EXTRA) and name not in view.workspace.units]
    colliding: dict[str, set[str]] = {}
    met = set[str]()
    for ours, kept in collisions(here, there):
        file = min(ours, kept, key=len)
        colliding.setdefault(file, set()).update((ours, kept))
        if _meet(decided[ours], decided[kept]):
            met.add(file)
    for file, names in colliding.items():
        if file not in met:
            continue
        stored = names.intersection(there)
        is_replaced = not baseline.is_of_remote and all(decided[name].case == 9 for name in stored)
        if is_replaced and policy.git_busy is None:
            gone = {"outcome": Outcome.DROP_HERE, "reason": Reason.EDITED_WORKSPACE}
            decided |= {name: replace(decided[name], **gone) for name in stored}
            continue
        decided |= {name: _kept(decided[name]) for name in names}
        words = two_shapes(is_file_in_store=file in stored)
        held = Verdict(file, decided[file].case, Outcome.HELD, Reason.OBSTRUCTED, words=words)
        decided[file] = _held_by_git(held, policy.git_busy) if is_replaced and policy.git_busy else held
    return list(decided.values())


def _meet(ours: Verdict, kept: Verdict) -> bool:
    """Tell whether one of two colliding extras would get to the side of the other, which stays there."""
    arrives = ours.outcome is Outcome.TO_STORE and kept.outcome is not Outcome.DROP_HERE
    return arrives or (kept.outcome is Outcome.TO_WORKSPACE and ours.outcome is not Outcome.DROP)


def _unit_names(view: View) -> Sequence[str]:
    """Return the names of the units of both sides, extras last."""
    store, workspace = view.store.units, view.workspace.units
    if len(store) == len(workspace) == len(_MANAGED) and all(name in store and name in workspace for name in _MANAGED):
        return _MANAGED
    return sorted(store.keys() | workspace.keys(), key=_unit_order)


def _differs_from_baseline(view: View, name: str) -> bool:
    """Tell whether the store alone has another version of a unit than the baseline.

    In another store than that of the baseline this is no edit of the agreed version, so both versions are compared
    without a baseline.
    """
    base = view.agreed.units.get(name) if view.agreed else None
    stored = view.store.digest(name)
    return base is not None and view.workspace.digest(name) == base and stored is not None and stored != base


def _refilled(view: View, verdict: Verdict, baseline: Baseline) -> Verdict:
    """Correct a verdict if the store isn't the one of the baseline.

    An extra that this store lacks was not removed. A version older than the workspace's was not written as an edit: the
    store was restored from a copy of that time.
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
    """Tell whether the workspace's version would replace the store's, or continue as a fork, without a person's choice.

    False if it is the store's version with additions.
    """
    gives = verdict.outcome in (Outcome.TO_STORE, Outcome.MERGED) or verdict.forks is Side.WORKSPACE
    if not gives or verdict.reason in _SOUND or view.store.digest(verdict.unit) is None:
        return False
    if verdict.unit != STREAM or policy.stream is not StreamRule.DIRECTED:
        return True
    store, workspace = (view.side(side).units[STREAM].stream for side in Side)
    return direction(store, workspace) is not Direction.WORKSPACE_AHEAD


def _held_by_git(verdict: Verdict, busy: str) -> Verdict:
    """Return a verdict that holds the unit while git is busy: its version may be half merged, or be reset."""
    words = f"git is busy ({busy}); the workspace's version is copied when git is done"
    return Verdict(verdict.unit, verdict.case, Outcome.HELD, Reason.GIT_BUSY, words=words)


def _kept(verdict: Verdict) -> Verdict:
    return Verdict(verdict.unit, verdict.case, Outcome.WAIT)


def is_partly_here(view: View, policy: Policy) -> bool:
    """Tell whether the workspace has only some files of a conversation that doesn't belong there.

    Then neither the store's other files must join them, nor the parent that only the store states.
    """
    for name in view.format.required:
        if view.workspace.digest(name) is None and name in view.store.units and not _is_published(view, name, policy):
            return view.id not in policy.decisions
    return False


def _is_published(view: View, name: str, policy: Policy) -> bool:
    """Tell whether a unit of a conversation belongs in the workspace, whether or not it is there now."""
    intent = view.intent
    if intent is not None and intent.keeps_away:
        return False
    agreed = view.agreed is not None and name in view.agreed.units
    everything = policy.missing is Missing.REPROJECT and not view.local
    return agreed or everything or (intent is not None and intent.kind is IntentKind.PROJECTED)


def decide_carried(view: View, baseline: Baseline, policy: Policy) -> tuple[Verdict, ...]:
    """Decide the units of a directory that JP moved to its trash: newer content is saved, nothing is written there.

    Invalid units of the store are held: the trash may have the last version.
    """
    if not view.workspace.units:
        return ()
    names = sorted(set(view.store.units) & set(view.workspace.units), key=_unit_order)
    verdicts = [_unwritten(view, decide_unit(view, name, baseline, policy)) for name in names]
    return tuple(
        verdict
        for verdict in verdicts
        if verdict.outcome in (Outcome.TO_STORE, Outcome.MERGED, Outcome.ASIDE) or _is_broken_in_store(verdict)
    )


def _is_broken_in_store(verdict: Verdict) -> bool:
    return any(unit.copy.side is Side.STORE for unit in verdict.faulty)


def _unwritten(view: View, verdict: Verdict) -> Verdict:
    """Change the verdict for a copy that is never written (local, or in the trash): a losing version stays."""
    if verdict.outcome not in (Outcome.TO_WORKSPACE, Outcome.DROP, Outcome.MERGED):
        return verdict
    record = AsideRecord(AsideKind.LOCAL, None, view.workspace.raw(verdict.unit))
    if verdict.outcome is Outcome.MERGED:
        return replace(verdict, record=record)
    return replace(verdict, outcome=Outcome.ASIDE, reason=Reason.LOCAL_PRESENT, record=record)


def _unit_order(name: str) -> tuple[bool, str]:
    return (name.startswith(EXTRA), name)


def decide_unit(view: View, name: str, baseline: Baseline, policy: Policy) -> Verdict:
    """Decide one unit, or hold it if both sides have edited it, and the configuration leaves that to a person."""
    verdict = _decided(view, name, baseline, policy)
    choice = policy.choices.get((view.id, name))
    if choice is Take.STORE and verdict.outcome is Outcome.BEHIND:
        return _taken(view, name, verdict.case or 0, choice)
    if choice is Take.STORE and verdict.outcome is Outcome.NOTHING and view.workspace.raw(name) is None:
        return Verdict(name, verdict.case, Outcome.TO_WORKSPACE, Reason.RECOVERED)
    if choice is not None and is_conflict(verdict):
        return _answered(view, verdict, choice, baseline, policy)
    holds = policy.conflict is OnConflict.HOLD and policy.prefer is Prefer.NEWEST
    if holds and verdict.outcome is not Outcome.HELD and is_conflict(verdict):
        return Verdict(name, verdict.case, Outcome.HELD, Reason.CONFLICT_HELD, conflict=True, keys=verdict.keys)
    return verdict


def beside_older_stream(view: View, verdict: Verdict, baseline: Baseline, policy: Policy) -> Verdict:
    """Return the verdict on a unit while the stream is behind (docs/design/decisions.md#rule-17).

    Metadata that was edited in the workspace doesn't wait if it can be compared with the base's key by key. An earlier
    time of activity is no edit, and the later one stays.
    """
    decided = verdict.outcome in (Outcome.TO_STORE, *_GIVING)
    merged = _merged_keys(view, verdict.case, baseline, policy) if verdict.unit == METADATA and decided else None
    if merged is None or (verdict.case == 11 and merged.outcome is Outcome.TO_WORKSPACE):
        return waiting(verdict)
    if verdict.case == 15:
        return verdict
    merged = replace(merged, reason=Reason.EDITED_WORKSPACE)
    return _unwritten(view, merged) if view.local else merged


def waiting(verdict: Verdict) -> Verdict:
    """Return a verdict that waits, because another unit of the conversation is undecided
    (docs/design/decisions.md#rule-17).
    """
    if verdict.outcome in (Outcome.BEHIND, Outcome.HELD, Outcome.ASIDE):
        return verdict
    return Verdict(verdict.unit, verdict.case, Outcome.WAIT, Reason.BEHIND_ASIDE)


def _answered(view: View, verdict: Verdict, choice: Take, baseline: Baseline, policy: Policy) -> Verdict:
    """Decide a conflict as a person has answered; what can be merged still is, and a losing continuation forked."""
    if choice is Take.KEEP:
        return Verdict(verdict.unit, verdict.case, Outcome.HELD, Reason.CONFLICT_HELD, conflict=True)
    if choice is Take.BOTH:
        return _taken(view, verdict.unit, verdict.case or 0, choice)
    preferred = replace(policy, prefer=Prefer(choice.value), diverged=_without_hold(policy.diverged))
    chosen = _decided(view, verdict.unit, baseline, preferred)
    reason = Reason.DECIDED if chosen.reason is Reason.PREFERRED else chosen.reason
    return replace(chosen, reason=reason, conflict=False)


def _without_hold(diverged: Diverged) -> Diverged:
    return Diverged.FORK if diverged is Diverged.HOLD else diverged


def is_conflict(verdict: Verdict) -> bool:
    """Tell whether both sides have edited a unit, so that only the times, an option or a person can decide."""
    return verdict.conflict and verdict.case in (5, 15)


def _decided(view: View, name: str, baseline: Baseline, policy: Policy) -> Verdict:
    """Decide one unit: damage first, then earlier decisions, then the table."""
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
        return _lone_extra(view, name, case, baseline)
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
    if name == METADATA:
        merged = _merged_metadata(view, case, baseline, policy, store_is_newest=store_is_newest)
        return merged or _by_case(view, name, case, policy)
    return _by_case(view, name, case, policy)


def _known(view: View, name: str, case: int, baseline: Baseline) -> Verdict | bool:
    """Return the verdict that earlier runs imply; else whether the store's content is the newest one known."""
    remembered = baseline.asides.get((view.id, name))
    if remembered is not None and _still_holds(remembered, view.store.raw(name), view.workspace.raw(name)):
        outcome = Outcome.BEHIND if remembered.kind is AsideKind.BEHIND else Outcome.ASIDE
        return Verdict(name, case, outcome, record=remembered)
    if case != 13 and baseline.superseded(view.id, name, view.workspace.digest(name), view.workspace.raw(name)):
        return _behind(name, case, view.workspace.raw(name))
    if case == 5 and name == METADATA and _is_before_edit(view, baseline):
        return _behind(name, case, view.workspace.raw(name))
    return case == 13 and _is_newest(baseline, view.id, name, view.store.digest(name))


def _is_before_edit(view: View, baseline: Baseline) -> bool:
    """Tell whether the workspace, new to this checkout, has the last known metadata, and the store an unknown version.

    git gives a new worktree the last version that a run of another checkout knows: the store was edited since.
    """
    known = baseline.history.get((view.id, METADATA), ())
    is_edited = not baseline.is_of_remote and view.store.digest(METADATA) not in known
    return is_edited and known[-1:] == (view.workspace.digest(METADATA),)


def doubtful_case(view: View, name: str, baseline: Baseline) -> int | None:
    """Return the case of a unit with two different valid versions, if no run knows that the workspace's is older; else
    None.
    """
    base = view.agreed.units.get(name) if view.agreed else None
    store, workspace = view.store.digest(name), view.workspace.digest(name)
    if store is None or workspace is None or store == workspace or view.store.raw(name) == view.workspace.raw(name):
        return None
    case = case_of(base, store, workspace)
    return None if isinstance(_known(view, name, case, baseline), Verdict) else case


def _outdated(view: View, name: str, baseline: Baseline) -> Side | None:
    """Return the side with the older content by the order of commits; None if the commits don't tell."""
    outdated = baseline.outdated.get((view.id, name))
    if outdated is None or (outdated.store, outdated.workspace) != (view.store.raw(name), view.workspace.raw(name)):
        return None
    return outdated.side


def _contents(view: View) -> tuple[bytes, bytes]:
    """Return the metadata of the store and of the workspace, which are both valid."""
    store, workspace = view.store.metadata, view.workspace.metadata
    assert store is not None  # noqa: S101 - see above
    assert workspace is not None  # noqa: S101 - as above
    return store.content, workspace.content


def _loses(view: View, places: Places, case: int) -> bool:
    """Tell whether the only edit has lost data that its program never removes, so that it isn't simply newer."""
    contents = _contents(view)
    before, after = contents if case == 11 else contents[::-1]
    return places.loses(view.id, before, after)


def _merged_metadata(
    view: View, case: int, baseline: Baseline, policy: Policy, *, store_is_newest: bool
) -> Verdict | None:
    """Return the merge of two versions of the metadata; None if it isn't needed, or impossible."""
    places = view.format.places
    if places is None:
        return _merged_keys(view, case, baseline, policy) if case == 15 else None
    replaced = case == 11 and baseline.is_of_remote  # on purpose: the other machine's own run puts back what is lost
    lost = case in (11, 13) and not (store_is_newest or replaced) and _loses(view, places, case)
    judged = case in (5, 15) and policy.prefer is Prefer.NEWEST
    return _merged_record(view, places, case, policy, lost=lost) if lost or judged else None


def _merged_keys(view: View, case: int | None, baseline: Baseline, policy: Policy) -> Verdict | None:
    """Merge metadata key by key; None if the content before the edits isn't known, or a file can't be edited.

    The file of the side that would win as a whole wins the keys that both have edited.
    """
    agreed = view.agreed.units.get(METADATA) if view.agreed else None
    before = baseline.contents.get((view.id, agreed)) if agreed else None
    if case not in (11, 15) or before is None:
        return None
    winner, reason = judge(view, METADATA, policy.prefer)
    contents = _contents(view)
    winning, losing = contents if winner is Side.STORE else contents[::-1]
    merged = view.format.merge_metadata(before, winning, losing)
    if merged is None:
        return None
    keys = merged.conflicts
    if merged.content == winning:
        reason = reason if keys else Reason.UNITED
        return replace(_won_by(winner, METADATA, case, reason, conflict=bool(keys)), keys=keys)
    if merged.content == losing:
        return _won_by(winner.other, METADATA, case, Reason.UNITED)
    return Verdict(
        METADATA, case, Outcome.MERGED, Reason.UNITED, content=merged.content, conflict=bool(keys), keys=keys
    )


def _merged_record(view: View, places: Places, case: int, policy: Policy, *, lost: bool) -> Verdict | None:
    """Merge two versions of a record, if the format can; a version that contains the other wins, whatever the mtimes.

    ``lost``: the only edit has lost data. If that can't be restored, a person decides.
    """
    store, workspace = _contents(view)
    merged = places.merge(view.id, store, workspace)
    if merged is None:
        words = "an edit removed entries that the other side has, and the two versions can't be merged"
        return Verdict(METADATA, case, Outcome.HELD, Reason.LOSING, words=words) if lost else None
    if isinstance(merged, TwoContinuations):
        if policy.diverged is Diverged.HOLD:
            return Verdict(METADATA, case, Outcome.HELD, Reason.DIVERGED_HELD, conflict=True)
        winner, _ = judge(view, METADATA, policy.prefer)
        return _won_by(winner, METADATA, case, Reason.DIVERGED, forks=winner.other)
    if isinstance(merged, Fault):
        words = merged.words
        return Verdict(METADATA, case, Outcome.HELD, Reason.CONTRADICTING, words=words)
    if merged == store:
        return _won_by(Side.STORE, METADATA, case, Reason.PUT_BACK if lost else Reason.AHEAD_STORE)
    if merged == workspace:
        return _won_by(Side.WORKSPACE, METADATA, case, Reason.PUT_BACK if lost else Reason.AHEAD_WORKSPACE)
    return Verdict(METADATA, case, Outcome.MERGED, Reason.PUT_BACK if lost else Reason.UNITED, content=merged)


def _damaged(view: View, name: str, case: int, policy: Policy) -> Verdict | None:
    """Return the verdict for a missing or faulty unit; None if both are valid, or it is an extra that one side lacks.

    Damage is restored from the other side. It is restored in the workspace only if the conversation is known to belong
    there: some files of a private one must not bring the others along.
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


def _lone_extra(view: View, name: str, case: int, baseline: Baseline) -> Verdict:
    """Decide an extra that one side lacks: additions are copied to the store, removals stay where they were made."""
    if view.workspace.digest(name) is None:
        if (view.format.places is not None or baseline.is_of_remote) and case == 3:
            return Verdict(name, case, Outcome.TO_WORKSPACE, Reason.SHARED)
        if not baseline.is_of_remote:
            return Verdict(name, case, Outcome.NOTHING)
        if case == 12:
            return Verdict(name, case, Outcome.TO_WORKSPACE, Reason.EDIT_WINS)
        if baseline.removed_there.get((view.id, name)) == view.store.digest(name):
            return Verdict(name, case, Outcome.DROP_HERE, Reason.REMOVED_THERE)
        return Verdict(name, case, Outcome.TO_WORKSPACE, Reason.SHARED)
    if case == 7:
        return Verdict(name, case, Outcome.DROP, Reason.REMOVED_IN_STORE)
    reason = Reason.EDIT_WINS if case == 8 else Reason.EXTERNAL
    return Verdict(name, case, Outcome.TO_STORE, reason)


def _taken(view: View, name: str, case: int, take: Take) -> Verdict:
    """Return the verdict that `resolve` asked for."""
    if take is Take.KEEP:
        record = AsideRecord(AsideKind.KEPT, view.store.raw(name), view.workspace.raw(name))
        return Verdict(name, case, Outcome.ASIDE, Reason.KEPT, record=record)
    if take is Take.BOTH:
        winner, _ = judge(view, name, Prefer.NEWEST)
        forks = winner.other if name == STREAM and not _begins_the_other(view, winner.other) else None
        return _won_by(winner, name, case, Reason.DECIDED, forks=forks)
    return _won_by(Side(take.value), name, case, Reason.DECIDED)


def _begins_the_other(view: View, side: Side) -> bool:
    """Tell whether the other side has all events of this one, and more: a fork would keep nothing of its own."""
    store, workspace = (view.side(each).units[STREAM].stream for each in Side)
    ahead = Direction.WORKSPACE_AHEAD if side is Side.STORE else Direction.STORE_AHEAD
    return direction(store, workspace) is ahead


def _still_holds(record: AsideRecord, store: Digest | None, workspace: Digest | None) -> bool:
    """Tell whether a record still applies.

    Behind and local last while the workspace's content is the same, kept and undone until a side changes.
    """
    lasting = record.kind in (AsideKind.BEHIND, AsideKind.LOCAL)
    return workspace == record.workspace and (lasting or store == record.store)


def _lacks_configuration(base: Digest | None, store: Digest, workspace: Digest) -> Side | None:
    """Return the side whose stream has the same events, but lacks the configuration file that the other has.

    Both can be valid, because the first event may contain the configuration. The missing file is damage, for example by
    `git clean`, unless the baseline has a stream without one.
    """
    for side, missing_side, whole in ((Side.STORE, store, workspace), (Side.WORKSPACE, workspace, store)):
        beside, _, events = whole.rpartition("+")
        if beside and events == missing_side != base:
            return side
    return None


def _is_newest(baseline: Baseline, conversation: str, name: str, digest: Digest | None) -> bool:
    """Tell whether another checkout has recorded this version as the newest, so that the version before was handled
    there.
    """
    return baseline.history.get((conversation, name), ())[-1:] == (digest,)


def _behind(name: str, case: int, workspace: Digest | None) -> Verdict:
    record = AsideRecord(AsideKind.BEHIND, None, workspace)
    return Verdict(name, case, Outcome.BEHIND, Reason.BEHIND, record=record)


def _directed(view: View, case: int, baseline: Baseline, policy: Policy) -> Verdict:
    """Judge two valid streams that differ, by their events, before any mtime."""
    store, workspace = view.store.units[STREAM], view.workspace.units[STREAM]
    if baseline.is_of_remote and case == 11:
        # Another machine has replaced this very version, and has forked it if need be.
        return _won_by(Side.WORKSPACE, STREAM, case, Reason.EDITED_WORKSPACE)
    way = direction(store.stream, workspace.stream)
    if way is Direction.STORE_AHEAD and case != 13:
        if workspace.mtime_ns > store.mtime_ns and not baseline.is_of_remote:
            return _behind(STREAM, case, workspace.raw)
        return _won_by(Side.STORE, STREAM, case, Reason.AHEAD_STORE)
    if way is Direction.WORKSPACE_AHEAD and case in (5, 15):
        return _won_by(Side.WORKSPACE, STREAM, case, Reason.AHEAD_WORKSPACE)
    two = case in (5, 15)
    if two and policy.prefer is Prefer.NEWEST and (merged := _merged_stream(view, case, baseline)) is not None:
        return merged
    verdict = _by_case(view, STREAM, case, policy)
    winner = Side.STORE if verdict.outcome is Outcome.TO_WORKSPACE else Side.WORKSPACE
    sides = {Side.STORE: store, Side.WORKSPACE: workspace}
    # If only one side was edited, the text that it replaces is no continuation.
    diverges = lives_on if two else loses_its_end
    if diverges(sides[winner.other].stream, sides[winner].stream):
        return _diverged(view, case, policy)
    if two and _both_continue(view, baseline):
        return _diverged(view, case, policy, are_new=True)
    if winner is Side.WORKSPACE and case != 15 and differ_by_base(store.stream, workspace.stream):
        return replace(verdict, noted=Reason.BASE_REPLACED)
    return verdict


def _merged_stream(view: View, case: int, baseline: Baseline) -> Verdict | None:
    """Merge two streams, if one side has edited shared events and the other has only appended."""
    agreed, known = view.agreed.units.get(STREAM) if view.agreed else None, _former_events(view, baseline)
    beside = _beside(agreed, view.store.digest(STREAM), view.workspace.digest(STREAM))
    store, workspace = (view.side(side).units[STREAM].stream.content for side in Side)
    if store is None or workspace is None or beside is None:
        return None
    for edited, continued in ((store, workspace), (workspace, store)):
        merged = view.format.merge_events(edited, continued, lambda content: view.rules.digest(content) in known)
        if merged is not None:
            summary = view.format.summarise([merged], events=False)
            assert isinstance(summary, Summary)  # noqa: S101 - it is made of valid events
            return Verdict(
                STREAM,
                case,
                Outcome.MERGED,
                Reason.UNITED,
                content=merged,
                count=summary.count,
                beside=beside,
            )
    return None


def _former_events(view: View, baseline: Baseline) -> set[Digest]:
    """Return the digests of the events in the base, and in the newest version of the history."""
    agreed = view.agreed.units.get(STREAM) if view.agreed else None
    newest = baseline.history.get((view.id, STREAM), ())[-1:]
    return {digest.rpartition("+")[2] for digest in (*newest, agreed) if digest}


def _both_continue(view: View, baseline: Baseline) -> bool:
    """Tell whether both streams continue the base, and end with an event of the same time and type.

    If the base has no stream, any version of the history can be what they continue.
    """
    store, workspace = (view.side(side).units[STREAM].stream for side in Side)
    if not ends_match(store, workspace) or store.content is None or workspace.content is None:
        return False
    known = _former_events(view, baseline)
    if view.agreed is None or STREAM not in view.agreed.units:
        known |= {digest.rpartition("+")[2] for digest in baseline.history.get((view.id, STREAM), ())}
    return view.format.both_continue(
        store.content, workspace.content, lambda content: view.rules.digest(content) in known
    )


def _beside(base: Digest | None, store: Digest | None, workspace: Digest | None) -> Side | None:
    """Return the side whose base configuration belongs to the merged events; None if both have changed it."""
    before, stored, here = (digest and digest.rpartition("+")[0] for digest in (base, store, workspace))
    if here in (stored, before):
        return Side.STORE
    return Side.WORKSPACE if stored == before else None


def _diverged(view: View, case: int, policy: Policy, *, are_new: bool = False) -> Verdict:
    """Judge two continuations: the newer wins. The other becomes a fork, unless the winner contains it.

    ``are_new``: the base has none of the events in which they differ, so that no text is an edit of another one.
    """
    if policy.diverged is Diverged.HOLD:
        return Verdict(STREAM, case, Outcome.HELD, Reason.DIVERGED_HELD, conflict=True)
    winner, _ = judge(view, STREAM, policy.prefer)
    loser, kept = (view.side(side).units[STREAM].stream for side in (winner.other, winner))
    lost = lives_on(loser, kept) or (are_new and not set(events(loser, kept)).issubset(events(kept, loser)))
    forks = winner.other if lost and policy.diverged is Diverged.FORK else None
    return _won_by(winner, STREAM, case, Reason.DIVERGED, forks=forks, conflict=True)


def _by_case(view: View, name: str, case: int, policy: Policy) -> Verdict:
    """Decide by the table: cases 11 and 13 have one edit, 5 and 15 are judged."""
    if case == 11:
        return _won_by(Side.WORKSPACE, name, case, Reason.EDITED_WORKSPACE)
    if case == 13:
        return _won_by(Side.STORE, name, case, Reason.EDITED_STORE)
    winner, reason = judge(view, name, policy.prefer)
    return _won_by(winner, name, case, reason, conflict=True)


def judge(view: View, name: str, prefer: Prefer) -> tuple[Side, Reason]:
    """Judge two edits: the newest mtime wins, a tie goes to the store, `--prefer` overrides both."""
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
    """Tell which stream begins with all events of the other and has more."""
    here, there = events(store, workspace), events(workspace, store)
    if len(there) < len(here) and here[: len(there)] == there:
        return Direction.STORE_AHEAD
    if len(here) < len(there) and there[: len(here)] == here:
        return Direction.WORKSPACE_AHEAD
    return Direction.LEVEL


def is_edited_and_continued(one: Stream, other: Stream) -> bool:
    """Tell whether one stream has events after the other's end, but doesn't continue it because earlier events were
    edited.
    """
    return direction(one, other) is Direction.LEVEL and loses_its_end(one, other) != loses_its_end(other, one)


def ends_match(one: Stream, other: Stream) -> bool:
    """Tell whether two streams that differ end with events of the same time and type."""
    ours, theirs = events(one, other), events(other, one)
    return ours != theirs and [event.id for event in ours[-1:]] == [event.id for event in theirs[-1:]]


def lives_on(loser: Stream, winner: Stream) -> bool:
    """Tell whether the losing stream has content that the winner lacks.

    That is its last event, or another text of an event if the winner has later events. If both end with the same event,
    the older text is in the vault.
    """
    if loses_its_end(loser, winner):
        return True
    winning = events(winner, loser)
    known = {event.id for event in winning}
    edited = any(event.id in known for event in set(events(loser, winner)).difference(winning))
    return edited and loses_its_end(winner, loser)


def loses_its_end(loser: Stream, winner: Stream) -> bool:
    """Tell whether the loser's last event isn't in the winner, so that the two have diverged."""
    lost = events(loser, winner)
    return bool(lost) and lost[-1].id not in {event.id for event in events(winner, loser)}


def differ_by_base(one: Stream, other: Stream) -> bool:
    """Tell whether two streams have the same events, but different base configurations."""
    return one.base != other.base and events(one, other) == events(other, one)


def events(stream: Stream, other: Stream) -> tuple[Event, ...]:
    """Return E(x) of an inspected stream, as far as it can be compared with another's.

    The first element of the legacy form is the base configuration. If git restores such a stream beside a newer or
    untracked ``base_config.json``, that element is no event there either.

    Raises:
        ValueError: the scan didn't load the events, though the sides differ.
    """
    if stream.events is None:
        message = "the events of differing versions are not loaded"
        raise ValueError(message)
    leads = stream.events[:1]
    return stream.events[1:] if leads and leads[0].content in (stream.base, other.base) else stream.events

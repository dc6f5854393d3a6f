"""A saved plan compared with the present: the actions that the planner would still plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.plan import MOVES, Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Place, joined
from reconcile.planning.filters import renumbered, withheld, without_left

DONE_ALREADY = "already done"
_REMOVALS = (Kind.REMOVE, Kind.REMOVE_STALE)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Action, Item, Plan, Precondition, Write
    from reconcile.model.snapshot import File


def agreeing(saved: Plan, fresh: Plan, decided: Collection[str] = ()) -> tuple[Plan, dict[str, Action]]:
    """Return the common part of both plans, and the saved actions that it carries out by their ids in it.

    ``fresh`` is the current plan of the same request. A conversation with an action that isn't in it any more has
    changed, and is refused with everything that needs it. So is one of ``decided``, about which another decision was
    made since. Only actions of ``fresh`` are ever carried out, so that a plan file can't cause any other step.
    """
    wanted = {_meaning(action): action for action in saved.actions}
    planned_now = {_meaning(action) for action in fresh.actions}
    drifted = {action.conversation for meaning, action in wanted.items() if meaning not in planned_now} | {*decided}
    leaves = {action.id for action in fresh.actions if _meaning(action) not in wanted or action.conversation in drifted}
    leaves = withheld(fresh.actions, leaves)
    partly = {action.conversation for action in fresh.actions if action.id in leaves}
    kept = renumbered(action for action in fresh.actions if action.id not in leaves)
    left = [action for action in fresh.actions if action.id in leaves]
    unmade = {action.conversation for action in left if action.kind is Kind.FORK}
    asides = (entry for entry in fresh.asides if entry[0][0] not in drifted | partly)
    changes = replace(
        fresh,
        actions=kept,
        quiet=False,
        intents=tuple(
            (key, intent)
            for key, intent in fresh.intents
            if key not in unmade.union(decided)
            # Nothing is to be published later that `apply` was not to publish, or has refused.
            and (
                intent is None or not intent.is_wish or ((key, intent) in saved.intents and key not in drifted | partly)
            )
        ),
        tombstones=tuple(entry for entry in fresh.tombstones if entry[0] not in drifted | partly),
        rooted=tuple(key for key in fresh.rooted if key not in drifted | partly),
        asides=without_left(asides, left),
        put_off=fresh.put_off | partly,
        remembered=tuple(entry for entry in fresh.remembered if entry[0] not in drifted | partly),
        waiting=tuple(entry for entry in fresh.waiting if entry[0][0] not in drifted | partly),
        held=tuple(_to_be_applied_again(item) for item in fresh.held),
    )
    return changes, {action.id: wanted[_meaning(action)] for action in kept}


def _to_be_applied_again(item: Item) -> Item:
    """Return the plan without the actions that git prevents: they were planned for other files than those of a later
    run.
    """
    if item.reason is not Reason.GIT_BUSY:
        return item
    return replace(item, message="git is busy; apply the plan again when it is done")


def moved_on(saved: Plan, fresh: Plan, world: WorldState, decided: Collection[str] = ()) -> dict[str, str]:
    """Return, for each saved action that no longer applies, how the present differs.

    It is done already, its own files changed, another step must come before it, or other files of its conversation
    changed.
    """
    present = {
        replace(copy.place, path=joined(copy.path, file.name)): file
        for snapshot in (world.store, world.workspace)
        for copy in snapshot.copies
        for file in copy.files
    }
    before = _unforeseen(saved, fresh)
    moves = _Moves(saved.actions)
    determined = _Created()
    reasons: dict[str, str] = {}
    first: dict[str, str] = {}
    for number, action in enumerate(saved.actions):
        expected = [expect for expect in action.expect if expect.place not in determined]
        if _is_done(action, present, partial(moves.after, number)):
            reasons[action.id] = DONE_ALREADY
        elif action.conversation in decided:
            reasons[action.id] = "a later request decided otherwise; see reconcile log"
        elif words := next(filter(None, (_change(expect, present) for expect in expected)), ""):
            reasons[action.id] = words
            first.setdefault(action.conversation, words)
        elif other := before.get(_meaning(action)):
            reasons[action.id] = f"needs another change first: {other.kind} {other.target} ({other.reason.words})"
        determined.add(action)
    rest = "a plan made now would do something else"
    return {action.id: reasons.get(action.id) or first.get(action.conversation) or rest for action in saved.actions}


def _unforeseen(saved: Plan, fresh: Plan) -> dict[Action, Action]:
    """Return the current actions that need one that was not planned then, each with that one, by their meaning."""
    wanted = {_meaning(action) for action in saved.actions}
    blocked: dict[str, Action] = {}
    for action in fresh.actions:
        if _meaning(action) not in wanted:
            blocked[action.id] = action
        elif other := next((blocked[need] for need in action.needs if need in blocked), None):
            blocked[action.id] = other
    return {_meaning(action): blocked[action.id] for action in fresh.actions if action.id in blocked}


class _Created:
    """The places that the actions of a plan so far determine: the current files say nothing about them."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def add(self, action: Action) -> None:
        whole = action.unit == WHOLE and action.kind is not Kind.AGE
        places = [write.target for write in action.writes] + list(action.removes) + ([action.target] if whole else [])
        places += [expect.place for expect in action.expect if action.kind is Kind.AGE]
        self._paths |= {str(place) for place in (*places, *([action.source] if action.kind in MOVES else []))}

    def __contains__(self, place: Place) -> bool:
        path = str(place)
        while path and path not in self._paths:
            path = path.rpartition("/")[0]
        return bool(path)


class _Moves:
    """The moves of a plan, each of which takes all that is in the directory with it."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._from: dict[Place, list[tuple[int, Place]]] = {}
        for number, action in enumerate(actions):
            if action.kind in MOVES and action.source is not None:
                self._from.setdefault(action.source, []).append((number, action.target))

    def after(self, number: int, place: Place) -> Place:
        """Return the place of a file after all moves of the plan, from the action with this number on."""
        while found := min(self._due(number, place), default=None):
            number, depth, target = found
            place = Place(place.side, "/".join((target.path, *place.path.split("/")[depth:])))
            number += 1
        return place

    def _due(self, number: int, place: Place) -> Iterator[tuple[int, int, Place]]:
        parts = place.path.split("/")
        for depth in range(1, len(parts)):
            for move, target in self._from.get(Place(place.side, "/".join(parts[:depth])), ()):
                if move >= number:
                    yield move, depth, target


def _is_done(action: Action, present: Mapping[Place, File], after: Callable[[Place], Place]) -> bool:
    """Tell whether the result of an action exists already; ``after`` returns where the plan moves a file."""
    if action.writes:
        return all(_is_there(present.get(after(write.target)), write) for write in action.writes)
    if action.kind in _REMOVALS:
        return not any(expect.place in present for expect in action.inside)
    was = [expect for expect in action.expect if not expect.absent]
    return (
        action.kind in MOVES
        and bool(was)
        and all(_is_there(present.get(after(expect.place)), expect) for expect in was)
    )


def _is_there(file: File | None, wanted: Precondition | Write) -> bool:
    return file is not None and (file.size, file.mtime_ns, file.digest) == (wanted.size, wanted.mtime_ns, wanted.digest)


def _change(expect: Precondition, present: Mapping[Place, File]) -> str:
    """Return what is there instead of an action's precondition; empty if it holds."""
    file = present.get(expect.place)
    if expect.digest is None:
        return "" if file is None else f"{expect.place}: created since the plan was made"
    if file is None:
        return f"{expect.place}: not there any more"
    return "" if _is_there(file, expect) else f"{expect.place}: changed since the plan was made"


def _meaning(action: Action) -> Action:
    """Return the action without the parts that depend on its plan."""
    return replace(action, id="", needs=(), touches=(), together=None)

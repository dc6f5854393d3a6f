"""Filters of a plan: steps that were undone, too many removals, changes while git is busy, conversations not named.

A filter also removes every step that needs a removed one. An undone step stays undone until a side changes, `resolve`,
or a command that names the conversation (docs/design/run.md#rule-53). The record contains the content of both sides, so
that it applies to undone imports, removals and moves as well as to edits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord
from reconcile.model.commands import typed
from reconcile.model.names import CHILDREN
from reconcile.model.options import Take
from reconcile.model.plan import Item, Kind
from reconcile.model.policy import GcRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, WHOLE, Fault, Place, Side, joined
from reconcile.planning.rules.guards import is_bulk
from reconcile.planning.rules.presence import missing_side

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.plan import Action, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest, File, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.guards import Whole
    from reconcile.planning.rules.views import View

REQUESTED = (Reason.REMOVED_AS_ASKED, Reason.EXPIRED)
"""The reasons of the removals that a command requests."""
BULK_NAMES = 5
"""The number of directories that a message about a bulk change names."""


def without_bulk(context: PlanningContext, actions: list[Action]) -> list[Action]:
    """Hold removals of too many directories without permission: those that this run would carry out.

    A command doesn't count the targets that it names. `gc` names none.
    """
    collects = isinstance(context.policy.request, GcRequest)
    is_named = bool(context.edits.scope) and not collects
    asked = {*context.edits.leaving, *(context.edits.deleted if is_named else ())}
    removals = [action for action in actions if _removes_a_directory(action) and action.conversation not in asked]
    if context.policy.accept_bulk or not removals:
        return actions
    chosen = _chosen(context, actions)
    removals = [action for action in removals if chosen is None or action.id in chosen[0]]
    counted, directories = _without_owned(removals, context.rules), context.whole.directories
    # A requested removal that waited counts once, though it is done on both sides.
    count = len({(a.conversation, a.conversation not in context.edits.deleted and a.target) for a in counted})
    if not is_bulk(count, directories):
        return actions
    # All other steps of these conversations wait too: a version that lost now would be authoritative again.
    concerned = {action.conversation for action in removals}
    concerned |= {fork for fork, source in context.forks.items() if source in concerned}
    refused = withheld(actions, {action.id for action in actions if action.conversation in concerned})
    for conversation in concerned:
        context.tombstones.pop(conversation, None)
    what, names = _named(counted, context.rules)
    message = f"{count} of {directories} {what} would be removed: {names}"
    # A command replaces the person's limits in the policy by its targets.
    limits = limits_of(context.policy, context.rules) if context.policy.tree_edit is None else context.edits.limits
    again = f"reconcile {'gc ' if collects else ''}{limits}--allow-bulk-removal"
    context.held.append(_whole(Reason.BULK, message, again))
    return [action for action in actions if action.id not in refused]


def limits_of(policy: Policy, rules: Rules) -> str:
    """Return the options that limit a run, each with a space behind it; what belongs to a named record goes with it."""
    places = rules.format.places
    return "".join(
        f"{option} {typed(conversation)} "
        for option, ids in (("--only", policy.only), ("--below", policy.below))
        for conversation in sorted(ids)
        if places is None or places.owner(conversation) not in ids
    )


def bulk_undo(
    actions: Sequence[Action], whole: Whole, rules: Rules, again: str, stays: Callable[[str], bool]
) -> Item | None:
    """Return a held item if an undo would remove too many directories of a side at once.

    Directories that it creates again don't count, nor those of the workspace whose conversation ``stays`` in the store.
    ``again`` is the command that permits it.
    """
    removals = [action for action in actions if _removes_a_directory(action)]
    removals = [each for each in removals if each.target.side is Side.STORE or not stays(each.conversation)]
    for side in Side:
        there = whole.directories_of(side)
        going = _without_owned([action for action in removals if action.target.side is side], rules)
        if is_bulk(len(going), there):
            what, names = _named(going, rules)
            message = f"{side}: {len(going)} of {there} {what} would be removed: {names}"
            return _whole(Reason.BULK, message, again)
    return None


def _without_owned(removals: Sequence[Action], rules: Rules) -> list[Action]:
    """Return the removals without those of records that go with another one: a session counts once."""
    places, going = rules.format.places, {action.conversation for action in removals}
    return [action for action in removals if places is None or places.owner(action.conversation) not in going]


def _named(actions: Sequence[Action], rules: Rules) -> tuple[str, str]:
    """Return the kind of the targets, and the names of the first ones; a record with a fixed place is named by its
    path.
    """
    places = rules.format.places
    paths = [action.target.path for action in actions[:BULK_NAMES]]
    names = ", ".join(path.rpartition("/")[2] if places is None else path for path in paths)
    more = f" and {len(actions) - BULK_NAMES} more" if len(actions) > BULK_NAMES else ""
    return "directories" if places is None else f"{places.noun}s", names + more


def _removes_a_directory(action: Action) -> bool:
    return action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE


def without_git(plan: Plan, busy: str | None, again: str | None = None) -> Plan:
    """Hold the changes of the workspace while git is busy there, and every step that needs them.

    ``again``: the command to repeat afterwards, if no other run does what is held.
    """
    if busy is None:
        return plan
    left, refused = _without_workspace(plan)
    return replace(left, held=(*plan.held, *git_is_busy(busy, refused, again)))


def _with_removals(plan: Plan, touching: set[str]) -> set[str]:
    """Return these actions with the rest of their requested removals: those are done on both sides, or on none."""
    going = {action.conversation for action in plan.actions if action.id in touching}
    return touching | {a.id for a in plan.actions if a.conversation in going and a.reason in REQUESTED}


def without_workspace(plan: Plan) -> Plan:
    """Leave out the changes of the workspace, and every step that needs them: a later run does them."""
    return _without_workspace(plan)[0]


def _without_workspace(plan: Plan) -> tuple[Plan, Collection[str]]:
    touching = {action.id for action in plan.actions if action.target.side is Side.WORKSPACE}
    return _without(plan, _with_removals(plan, touching))


def without_program(plan: Plan, workspace: Snapshot, rules: Rules) -> Plan:
    """Hold the changes of files that a program has locked or is working with, and every step that needs them."""
    places = rules.format.places
    inputs = workspace.derived_inputs
    if places is None or not (busy := places.busy(inputs)):
        return plan
    touching = {
        action.id
        for action in plan.actions
        if action.target.side is Side.WORKSPACE and places.is_busy(action.conversation, inputs)
    }
    if not touching:
        return plan
    left, refused = _without(plan, _with_removals(plan, touching))
    changes = "1 change waits" if len(refused) == 1 else f"{len(refused)} changes wait"
    message = f"{busy}; {changes} until the program is done"
    return replace(left, held=(*plan.held, _whole(Reason.PROGRAM_BUSY, message)))


def without_obstructed(plan: Plan, *sides: Snapshot) -> Plan:
    """Hold each step that writes where something other than a file is, and every step that needs it.

    A run neither replaces nor removes such an entry, so that every later run would find it there again.
    """
    there = {place: what for side in sides for place, what in _no_files(side)} if plan.actions else {}
    held = {
        action.id: Item(
            conversation=action.conversation,
            title=action.title,
            unit=action.unit,
            reason=Reason.OBSTRUCTED,
            message=f"{write.target}: {there[write.target]} is in the way; move it away and run again",
            place=write.target,
        )
        for action in plan.actions
        for write in action.writes
        if write.target in there
    }
    if not held:
        return plan
    return replace(_without(plan, set(held))[0], held=(*plan.held, *held.values()))


def _no_files(side: Snapshot) -> Iterator[tuple[Place, str]]:
    """Yield the links and special files, and what else has the name of a conversation's own file, each in words."""
    for foreign in side.foreign:
        if foreign.link or foreign.special:
            yield Place(side.side, foreign.path), foreign.what.partition(",")[0]
    for copy in side.copies:
        for facts in (copy.metadata, copy.stream):
            if isinstance(facts, Fault) and not (
                facts.incomplete or any(file.name == facts.file for file in copy.files)
            ):
                yield Place(side.side, joined(copy.path, facts.file)), facts.found


def without_secrets(plan: Plan, secrets: Sequence[Item]) -> Plan:
    """Hold what would publish these conversations' secrets, and every step that needs it.

    ``secrets`` has one item for each of the conversations, with its title for the plan, in which secrets are masked.
    Each names the others that wait for it.
    """
    found = {item.conversation for item in secrets}
    touching = {action.id for action in plan.actions if action.conversation in found and _publishes(action)}
    left, _ = _without(plan, touching)
    held = [replace(item, message=f"{item.message}{_that_wait(plan, item, found)}") for item in secrets]
    masked = {item.conversation: item.title for item in secrets}
    outline = tuple(replace(heading, title=masked.get(heading.conversation, heading.title)) for heading in left.outline)
    return replace(left, held=(*plan.held, *held), outline=outline)


def _publishes(action: Action) -> bool:
    """Tell whether an action writes content into the workspace; a directory's new name has the title, too."""
    renames = action.reason is Reason.TITLE_CHANGED
    return action.target.side is Side.WORKSPACE and (bool(action.writes) or renames)


def _that_wait(plan: Plan, item: Item, concerned: Collection[str | None]) -> str:
    """Return how many other conversations wait for what an item holds, as the end of its message."""
    own = {action.id for action in plan.actions if action.conversation == item.conversation and _publishes(action)}
    behind = withheld(plan.actions, own)
    others = {action.conversation for action in plan.actions if action.id in behind}.difference(concerned)
    if not others:
        return ""
    return f"; {len(others)} other conversation{'s wait' if len(others) > 1 else ' waits'} for it"


def _without(plan: Plan, touching: set[str]) -> tuple[Plan, Collection[str]]:
    refused = withheld(plan.actions, touching)
    put_off = plan.put_off.union(action.conversation for action in plan.actions if action.id in refused)
    kept = renumbered([action for action in plan.actions if action.id not in refused])
    # A conversation that stays for now doesn't wait for an ancestor yet.
    intents = tuple(
        (key, intent) for key, intent in plan.intents if not (key in put_off and intent and intent.waits_for)
    )
    # One that is not removed has no tombstone: if it is only in the workspace, no run would import it any more.
    stays = {action.conversation for action in plan.actions if action.id in refused and action.reason in REQUESTED}
    tombstones = tuple(entry for entry in plan.tombstones if entry[0] not in stays)
    return replace(plan, actions=kept, put_off=put_off, intents=intents, tombstones=tombstones), refused


def git_is_busy(busy: str | None, waiting: Collection[object], again: str | None = None) -> tuple[Item, ...]:
    """Return the held item while git is busy.

    ``again``: the command to repeat afterwards, if no other run does what is held.
    """
    if not waiting:
        return ()
    changes = "1 change" if len(waiting) == 1 else f"{len(waiting)} changes"
    if again is not None:
        message = f"git is busy ({busy}); {changes} can't be made. Repeat the command when git is done"
        return (_whole(Reason.GIT_BUSY, message, again),)
    wait = "waits" if len(waiting) == 1 else "wait"
    return (_whole(Reason.GIT_BUSY, f"git is busy ({busy}); {changes} {wait} until it is done"),)


def _whole(reason: Reason, message: str, *resolve: str) -> Item:
    return Item(conversation=None, title=None, unit=WHOLE, reason=reason, message=message, resolve=resolve)


def named(context: PlanningContext) -> frozenset[str] | None:
    """Return the conversations that ``--only`` and ``--below`` name, with their forks; None for all."""
    policy = context.policy
    if not policy.only and not policy.below:
        return None
    below = set(policy.below)
    for conversation in context.tree.walk():
        if context.tree.parent_of(conversation) in below:
            below.add(conversation)
    wanted = below | policy.only
    return frozenset((*wanted, *(fork for fork, source in context.forks.items() if source in wanted)))


def selected(context: PlanningContext, actions: list[Action]) -> tuple[list[Action], frozenset[str] | None]:
    """Keep the named conversations and the steps that they need; return also what the plan is about, None for
    everything.

    Kept are also the steps that a command makes due, and derived data that follows from nothing else. A conversation
    with several directories is done whole: a directory that stayed would be compared with the new content. Nothing is
    reported or recorded about other conversations, except of steps that are done.
    """
    chosen = _chosen(context, actions)
    if chosen is None:
        return actions, None
    kept, wanted = chosen
    spoken = {None, *wanted}
    context.held = [item for item in context.held if item.conversation in spoken]
    context.aside = [item for item in context.aside if item.conversation in wanted]
    context.notes = [note for note in context.notes if note.conversation in spoken or note in context.edits.notes]
    context.conflicts = [conflict for conflict in context.conflicts if conflict.conversation in wanted]
    context.preserve = [version for version in context.preserve if version.conversation in wanted]
    done = wanted | {action.conversation for action in actions if action.id in kept}
    context.intents = {key: intent for key, intent in context.intents.items() if key in done}
    context.asides = {key: record for key, record in context.asides.items() if key[0] in done}
    context.tombstones = {key: digests for key, digests in context.tombstones.items() if key in done}
    return [action for action in actions if action.id in kept], done


def _chosen(context: PlanningContext, actions: list[Action]) -> tuple[set[str], frozenset[str]] | None:
    """Return the ids of the steps that a limited run carries out, and the conversations that it is about; None for all.

    The steps are those of the named conversations, those that they need, and those that a command makes due.
    """
    wanted = named(context)
    if wanted is None:
        return None
    if context.due is not None:
        wanted |= {conversation for conversation, *_ in _due(actions, context.intents) - context.due}
    kept = _with_needs(actions, wanted)
    while several := _with_several_directories(context, actions, kept) - wanted:
        wanted |= several
        kept = _with_needs(actions, wanted)
    kept |= {
        action.id
        for action in actions
        if action.kind is Kind.REBUILD and action.needs and kept.issuperset(action.needs)
    }
    return kept, wanted


def _with_needs(actions: Sequence[Action], wanted: Container[str]) -> set[str]:
    """Return the steps of some conversations and those that they need."""
    kept: set[str] = set()
    for action in reversed(actions):
        if action.conversation in wanted or action.id in kept:
            kept.update((action.id, *action.needs))
    return kept


def _with_several_directories(context: PlanningContext, actions: Iterable[Action], kept: Container[str]) -> set[str]:
    """Return the conversations with several directories on a side of which a step is kept."""
    changed = {action.conversation for action in actions if action.id in kept} & context.views.keys()
    return {key for key in changed if context.views[key].store.stale or context.views[key].workspace.stale}


def due(plan: Plan) -> frozenset[tuple[str, ...]]:
    """Return the steps and intents of a plan by conversation, without their details and reasons."""
    return _due(plan.actions, dict(plan.intents))


def _due(actions: Iterable[Action], intents: Iterable[str]) -> frozenset[tuple[str, ...]]:
    steps = {(action.conversation, action.kind.value, action.unit, action.target.side.value) for action in actions}
    return frozenset(steps | {(conversation,) for conversation in intents})


def withheld(actions: Sequence[Action], refused: Mapping[str, object] | set[str]) -> set[str]:
    """Return the refused ids and those of every step that needs them; needs point backwards."""
    out = set(refused)
    for action in actions:
        if not out.isdisjoint(action.needs):
            out.add(action.id)
    return out


def renumbered(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Number the remaining actions from 1 in their order; needs follow."""
    kept = list(actions)
    ids = {action.id: str(number) for number, action in enumerate(kept, 1)}
    return tuple([_renumbered(action, ids) for action in kept])


def _renumbered(action: Action, ids: Mapping[str, str]) -> Action:
    number, needs = ids[action.id], tuple([ids[need] for need in action.needs if need in ids])
    return action if number == action.id and needs == action.needs else replace(action, id=number, needs=needs)


def without_moving(plan: Plan, moving: frozenset[str]) -> Plan:
    """Remove the steps of conversations that are being written; they are done once no process writes.

    Derived data depends on all conversations, and the writing program updates it itself.
    """
    if not moving:
        return plan
    touching = (entry for entry in plan.actions if entry.kind is Kind.REBUILD or not moving.isdisjoint(entry.touches))
    refused = withheld(plan.actions, {action.id for action in touching})
    return replace(
        plan,
        actions=renumbered([action for action in plan.actions if action.id not in refused]),
        held=tuple(item for item in plan.held if item.conversation not in moving),
        aside=tuple(item for item in plan.aside if item.conversation not in moving),
        notes=tuple(note for note in plan.notes if note.conversation not in moving),
        preserve=tuple(version for version in plan.preserve if version.conversation not in moving),
        intents=tuple(entry for entry in plan.intents if entry[0] not in moving),
        asides=tuple(entry for entry in plan.asides if entry[0][0] not in moving),
        tombstones=tuple(entry for entry in plan.tombstones if entry[0] not in moving),
        waiting=tuple(entry for entry in plan.waiting if entry[0][0] not in moving),
        moving=moving,
    )


def without_left(
    asides: Iterable[tuple[tuple[str, str], AsideRecord | None]], left: Iterable[Action]
) -> tuple[tuple[tuple[str, str], AsideRecord | None], ...]:
    """Return the changes of records without those that follow steps of which one is ``left``.

    For a local version, the store lacks what its record stands for. What an undo has left is not decided yet. An action
    doesn't name the conversation that it forks, so that a fork that is left concerns all of them.
    """
    left = tuple(left)
    forks = any(action.kind is Kind.FORK for action in left)
    units = {(action.conversation, unit) for action in left for unit in (action.unit, WHOLE)}
    return tuple(
        (key, record) for key, record in asides if not (follows_steps(key, record) and (forks or key in units))
    )


def follows_steps(key: tuple[str, str], record: AsideRecord | None) -> bool:
    """Tell whether a change of a record is true only after the steps: of a local version, or the end of an undo's."""
    return is_local(record) or (record is None and key[1] == WHOLE)


def is_local(record: AsideRecord | None) -> bool:
    """Tell whether a record sets aside a version of a local conversation that stays in the workspace."""
    return record is not None and record.kind is AsideKind.LOCAL


def release_unsaved(context: PlanningContext, steps: Iterable[Action], actions: Iterable[Action]) -> None:
    """Release the records of local versions whose step was left out: the store lacks what they stand for.

    A fork that isn't made has no intent either.
    """
    kept = {action.id for action in actions}
    for action in steps:
        if action.id in kept:
            continue
        own, unit = action.conversation, action.unit
        if action.kind is Kind.FORK:
            context.intents.pop(own, None)
            own, unit = context.forks[own], STREAM
        if is_local(context.asides.get((own, unit))):
            del context.asides[own, unit]


class DirectoryState(NamedTuple):
    """The state of one directory: its path below its container, the container's id, its files."""

    path: str
    container: str
    files: tuple[tuple[str, str], ...]


def directory_state(path: str, container: str | None, files: Iterable[File]) -> DirectoryState:
    """Return the state of one directory; the path above its container's ``conversations/`` doesn't count."""
    return DirectoryState(
        path.rpartition(f"/{CHILDREN}/")[2],
        container or "",
        tuple(sorted((file.name, file.digest or "") for file in files)),
    )


def side_digest(states: Iterable[DirectoryState], rules: Rules) -> Digest | None:
    """Return the digest of a conversation's state on one side; None if it is not there.

    The state of every version holds such digests, so the text that they are taken of never changes.
    """
    rows = [f"Standing({path=}, {container=}, {files=})" for path, container, files in sorted(states)]
    return rules.digest(f"[{', '.join(rows)}]".encode()) if rows else None


def undone_record(
    store: Iterable[DirectoryState], workspace: Iterable[DirectoryState], rules: Rules
) -> AsideRecord | None:
    """Return the record that sets a conversation aside while its state is this one; None if it is on neither side."""
    in_store, in_workspace = side_digest(store, rules), side_digest(workspace, rules)
    return AsideRecord(AsideKind.UNDONE, in_store, in_workspace) if in_store or in_workspace else None


def left_alone(plan: Plan, undone: Collection[str]) -> frozenset[str]:
    """Return the conversations of which an undo has reversed nothing after all; their records still apply.

    ``undone`` are the ids of actions that were not carried out.
    """
    planned = {action.conversation for action in plan.actions}
    done = {action.conversation for action in plan.actions if action.id not in undone}
    return frozenset((planned - done) & dict(plan.remembered).keys())


def resting_undone(context: PlanningContext, store: Snapshot, workspace: Snapshot) -> frozenset[str]:
    """Return the conversations of which no run repeats what was undone: neither side has changed since.

    Of derived data, only as long as no other record changes: it follows from all of them.
    """
    records = _undone_records(context.baseline)
    if not records:
        return frozenset()
    refused = _refused(context, records)
    stored, here = _directory_states(store, records), _directory_states(workspace, records)
    resting = frozenset(
        key
        for key, record in records.items()
        if (context.policy.decisions.get(key, Take.KEEP) is Take.KEEP or key in refused)
        and key not in context.edits.scope
        and record == undone_record(stored.get(key, ()), here.get(key, ()), context.rules)
    )
    places = context.rules.format.places
    if places is None or not (derived := frozenset(filter(places.is_derived, resting))):
        return resting
    changes = (step for step in context.builder if step.kind is not Kind.REBUILD)
    return resting - derived if any(step.conversation not in resting for step in changes) else resting


def _undone_records(baseline: Baseline) -> dict[str, AsideRecord]:
    return {key[0]: record for key, record in baseline.asides.items() if key[1] == WHOLE}


def with_undone_conflicts(baseline: Baseline, workspace: Snapshot, rules: Rules) -> Baseline:
    """Return the baseline without the history of the units that an undo has left in conflict.

    The run has taken the workspace's version, so that the history has it. The undo has restored an edit of the store.
    The workspace's version isn't older than that, as long as it stays as the undo has left it.
    """
    if not (records := _undone_records(baseline)):
        return baseline
    states = _directory_states(workspace, records)
    left = {key for key, record in records.items() if record.workspace == side_digest(states.get(key, ()), rules)}
    bases = {key: baseline.agreed[key].units if key in baseline.agreed else {} for key in left}
    history = {
        (key, unit): digests
        for (key, unit), digests in baseline.history.items()
        if key not in bases or bases[key].get(unit) == digests[-1]
    }
    return replace(baseline, history=history)


def _refused(context: PlanningContext, records: Iterable[str]) -> set[str]:
    """Return the conversations whose decision is for a side that they are not on."""
    return {key for key in records if key in context.views and missing_side(context.views[key], context.policy)}


def leave_undone(context: PlanningContext, actions: list[Action], store: Snapshot, workspace: Snapshot) -> list[Action]:
    """Remove the steps that would repeat what was undone; release records that no longer apply."""
    records = _undone_records(context.baseline)
    if not records:
        return actions
    refused, resting = _refused(context, records), resting_undone(context, store, workspace)
    held = {item.conversation for item in context.held}  # until it is decided, both versions stay in conflict
    for conversation in records.keys() - resting - held:
        context.asides[conversation, WHOLE] = None
    spoken = {
        context.forks.get(action.conversation, action.conversation) for action in actions
    } | context.intents.keys()
    silenced = (resting - refused) & (spoken | {item.conversation for item in context.held + context.aside})
    for conversation in sorted(silenced, key=context.rules.format.order):
        _set_aside(context, conversation)
    context.held = [_with_undone_below(context, item, resting) for item in context.held]
    blocked = _blocked(context, actions, resting)
    return [action for action in actions if action.id not in blocked]


def _blocked(context: PlanningContext, actions: Iterable[Action], resting: Collection[str]) -> dict[str, str]:
    """Return the actions that would repeat an undone step, and those that need them, each with the undone conversation.

    Other conversations that have to wait for it are set aside too.
    """
    blocked: dict[str, str] = {}
    waiting: dict[str, str] = {}
    for action in actions:
        own = context.forks.get(action.conversation, action.conversation)
        by = own if own in resting else next((blocked[need] for need in action.needs if need in blocked), None)
        if by is not None:
            blocked[action.id] = by
            waiting.setdefault(own, by)
    for conversation, by in waiting.items():
        if conversation not in resting:
            context.tombstones.pop(conversation, None)
            words = f"waits for {by}, whose last change you undid"
            ways = _ways(context, by)
            again = f"{typed(by)} --take {context.policy.decisions.get(conversation)}"
            both = [f"reconcile resolve {typed(conversation)} {again}" for way in ways if way.endswith(again)]
            context.set_aside(context.views[conversation], WHOLE, Reason.UNDONE, words, *(both or ways))
    return blocked


def _with_undone_below(context: PlanningContext, item: Item, resting: Collection[str]) -> Item:
    """Return a held item with commands that also name the undone conversations below its second directories.

    A decision about it alone would wait for these, as such a directory goes after what is below it.
    """
    if item.conversation is None or not item.resolve:
        return item
    own, named = context.views[item.conversation], f"reconcile resolve {typed(item.conversation)} --take"
    tops = {side: tuple(f"{copy.path}/" for copy in own.side(side).stale) for side in Side}
    below = sorted(
        (id_ for id_ in resting if any(_is_below(context.views[id_], side, tops[side]) for side in Side)),
        key=context.rules.format.order,
    )
    ways = list(item.resolve)
    for side in Side:
        there = [id_ for id_ in below if context.views[id_].side(side).main is not None]
        if there and f"{named} {side}" in ways:
            ways[ways.index(f"{named} {side}")] = f"reconcile resolve {typed(own.id, *there)} --take {side}"
    return replace(item, resolve=tuple(ways))


def _is_below(view: View, side: Side, tops: tuple[str, ...]) -> bool:
    """Tell whether the directory of a conversation that stays on one side is in one of these."""
    main = view.side(side).main
    return main is not None and main.path.startswith(tops)


def _ways(context: PlanningContext, conversation: str) -> list[str]:
    """Return the commands that choose a side. An invalid version can't be taken."""
    sides = {side: context.views[conversation].side(side) for side in Side}
    return [
        f"reconcile resolve {typed(conversation)} --take {side}"
        for side, versions in sides.items()
        if versions.main is not None and not versions.faults
    ]


def _directory_states(side: Snapshot, wanted: Collection[str]) -> dict[str, list[DirectoryState]]:
    states: dict[str, list[DirectoryState]] = {}
    for copy in side.copies:
        if copy.conversation in wanted:
            states.setdefault(copy.conversation, []).append(directory_state(copy.path, copy.container, copy.files))
    return states


def _set_aside(context: PlanningContext, conversation: str) -> None:
    """Set a conversation aside. An edit in the workspace alone, from before the undo, is saved in the vault."""
    view = context.views[conversation]
    for name, unit in view.workspace.units.items():
        if unit.digest != view.store.digest(name):
            context.keep_version(unit)
    for stays in (conversation, *(fork for fork, source in context.forks.items() if source == conversation)):
        context.intents.pop(stays, None)
    context.tombstones.pop(conversation, None)
    for key in [key for key in context.asides if key[0] == conversation]:
        del context.asides[key]
    ways = _ways(context, conversation)
    if any((each.conversation, each.unit) == (conversation, STREAM) for each in context.conflicts):
        ways.append(f"reconcile resolve {typed(conversation)} --take both")
    context.held = [item for item in context.held if item.conversation != conversation]
    context.aside = [item for item in context.aside if item.conversation != conversation]
    context.notes = [note for note in context.notes if note.conversation != conversation]
    context.conflicts = [conflict for conflict in context.conflicts if conflict.conversation != conversation]
    context.set_aside(view, WHOLE, Reason.UNDONE, Reason.UNDONE.words, *ways)

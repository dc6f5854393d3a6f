"""Steps about content: imports, copies, forks, restored parents, reset times, updates of the workspace.

Each function adds steps for one conversation. The planner calls them in order: first everything that is saved in the
store, then parents, then the workspace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, Intent, IntentKind, is_local
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import (
    ARCHIVE,
    EARLIEST_NS,
    EXTRA,
    METADATA,
    STREAM,
    WHOLE,
    File,
    Metadata,
    ParentKind,
    Side,
    Stream,
)
from reconcile.model.units import units_of
from reconcile.planning.builder import Node, Put, Step
from reconcile.planning.rules.content import Outcome, Verdict, is_partly_here
from reconcile.planning.rules.presence import Goal
from reconcile.planning.rules.tree import states

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconcile.model.format import Places
    from reconcile.model.snapshot import Copy, Digest
    from reconcile.model.units import Unit
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import SideView, View

DIVERGED = "[diverged]"
"""The beginning of the title of a losing continuation, which becomes a fork."""
AGE_NS = 2_000_000_000
"""The time in ns by which an older version's mtime is set below the store's: the coarsest step of a common file system.
"""

_PROJECTED = (Outcome.TO_WORKSPACE, Outcome.TO_STORE, Outcome.MERGED, Outcome.NOTHING)


def save(context: PlanningContext, view: View) -> None:
    """Save in the store: import the whole conversation, or copy the units that were edited in the workspace."""
    if context.presences[view.id].goal is Goal.REMOVE:
        return
    if context.presences[view.id].goal is Goal.IMPORT:
        _import(context, view)
    verdicts = context.verdicts.get(view.id, {})
    for verdict in _removals_first(verdicts.values()):
        after = []
        loser = view.side(verdict.forks).units[verdict.unit] if verdict.forks is not None else None
        if loser is not None and view.format.places is not None:
            after += _fork_record(context, view, loser, view.format.places)
        elif loser is not None and not is_forked(context, view, loser.raw):
            after.append(_fork(context, view, loser))
        if verdict.outcome is Outcome.TO_STORE and not _is_put_back(context, view, verdict):
            _copy(context, view, view.workspace.units[verdict.unit], verdict, after)
        elif verdict.outcome is Outcome.MERGED:
            _write_merged(context, view, verdict)
        elif verdict.outcome is Outcome.DROP_HERE:
            assert view.store.main is not None  # noqa: S101 - it is on both sides
            _drop(context, view, verdict, context.node(view.store.main), Kind.REMOVE)
    if view.store.stale and view.clash is None and not keeps_directories(verdicts.values()):
        _gather(context, view, verdicts)


def _removals_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts in the order of their steps: a removal may make room for another unit."""
    return sorted(verdicts, key=lambda verdict: verdict.outcome not in (Outcome.DROP, Outcome.DROP_HERE))


def is_undecided(verdicts: Iterable[Verdict]) -> bool:
    """Tell whether a unit is held or behind."""
    return any(verdict.outcome in (Outcome.HELD, Outcome.BEHIND) for verdict in verdicts)


def keeps_directories(verdicts: Iterable[Verdict]) -> bool:
    """Tell whether no directory of the conversation may be removed.

    That is so if a unit is held or behind, or stays as it is by a decision.
    """
    return any(
        verdict.outcome in (Outcome.HELD, Outcome.BEHIND)
        or (verdict.record is not None and verdict.record.kind is AsideKind.KEPT)
        for verdict in verdicts
    )


def _gather(context: PlanningContext, view: View, verdicts: Mapping[str, Verdict]) -> None:
    """Copy the content of the store's other directories into the one that stays."""
    for name, unit in view.store.units.items():
        saved = name in verdicts and verdicts[name].outcome in (Outcome.TO_STORE, Outcome.MERGED)
        if unit.digest is not None and not saved:
            reason = Reason.FLATTENED if unit.copy.container else Reason.DUPLICATE
            _copy(context, view, unit, Verdict(name, None, Outcome.TO_STORE, reason), [])


def _import(context: PlanningContext, view: View) -> None:
    presence = context.presences[view.id]
    prefix = f"{ARCHIVE}/" if view.archived else ""
    home = Node(Side.STORE, None, prefix, context.rules.format.dirname(view.id, view.title))
    units = view.workspace.units.values()
    files = [(file, context.node(unit.copy)) for unit in units for file in unit.files]
    if (places := view.format.places) is not None:
        now = context.now_ns
        files = [(replace(file, mtime_ns=places.time_there(file.mtime_ns, now)), node) for file, node in files]
    puts = [Put(file, node) for file, node in files]
    step = _step(view, Kind.COPY, presence.why, WHOLE, presence.case, events_of(view.workspace))
    context.builder.create(step, home, puts)
    context.homes[view.id] = home


def events_of(side: SideView) -> tuple[int, int] | None:
    """Return the change in the number of events if a conversation is created; None if it has no stream."""
    return (0, side.units[STREAM].stream.count) if STREAM in side.units else None


def _step(
    view: View,
    kind: Kind,
    reason: Reason,
    unit: str = WHOLE,
    case: int | None = None,
    events: tuple[int, int] | None = None,
) -> Step:
    return Step(
        kind=kind,
        conversation=view.id,
        title=view.title,
        reason=reason,
        unit=unit,
        case=case,
        events=events,
    )


def _copy(context: PlanningContext, view: View, winner: Unit, verdict: Verdict, after: list[int]) -> None:
    """Replace one unit in the store; files that the winner lacks are removed."""
    assert verdict.reason is not None  # noqa: S101 - what is copied has one
    origin, home = context.node(winner.copy), context.homes[view.id]
    names = {file.name for file in winner.files}
    gone = [name for name in _files_of(context, winner.name) if name in home.files and name not in names]
    puts = [Put(origin.files[file.name], origin) for file in winner.files]
    if not gone and all(put.file.digest == _digest_of(home, put.file.name) for put in puts):
        return
    events = (_count(home), winner.stream.count) if winner.name == STREAM else None
    step = _step(view, Kind.COPY, verdict.reason, winner.name, verdict.case, events)
    context.builder.write(step, home, puts, removes=gone, after=after)


def _is_put_back(context: PlanningContext, view: View, verdict: Verdict) -> bool:
    """Tell whether the workspace's metadata is the store's version once it states the decided parent."""
    metadata = view.workspace.metadata
    if verdict.unit != METADATA or metadata is None or context.parentage[view.id].frozen:
        return False
    content, name = stated_content(context, view, metadata), context.rules.format.metadata_file
    return content is not None and context.rules.digest(content) == _digest_of(context.homes[view.id], name)


def _write_merged(context: PlanningContext, view: View, verdict: Verdict) -> None:
    """Replace the store's version by the merged one; the workspace gets it from there."""
    assert verdict.content is not None  # noqa: S101 - that is what the verdict says
    assert verdict.reason is not None  # noqa: S101 - as above
    fmt, home, unit = context.rules.format, context.homes[view.id], view.side(verdict.beside).units[verdict.unit]
    time = max(side.units[verdict.unit].mtime_ns for side in (view.store, view.workspace))
    name = fmt.stream_files[-1] if verdict.unit == STREAM else fmt.metadata_file
    file = File(name, len(verdict.content), time, context.rules.digest(verdict.content))
    origin = context.node(unit.copy)
    others = [Put(origin.files[part.name], origin) for part in unit.files if part.name != name]
    puts = [*others, Put(file, content=verdict.content)]
    kept = {put.file.name for put in puts}
    gone = [part for part in _files_of(context, verdict.unit) if part in home.files and part not in kept]
    if not gone and all(put.file.digest == _digest_of(home, put.file.name) for put in puts):
        return  # with the decided parent, the merge is the store's version
    events = (_count(home), verdict.count) if verdict.unit == STREAM else None
    step = _step(view, Kind.COPY, verdict.reason, verdict.unit, verdict.case, events)
    context.builder.write(step, home, puts, removes=gone)


def _count(node: Node) -> int:
    """Return the number of events that a directory had when the run began."""
    assert node.copy is not None  # noqa: S101 - no unit is written over one that this run makes
    return node.copy.stream.count if isinstance(node.copy.stream, Stream) else 0


def _files_of(context: PlanningContext, unit: str) -> tuple[str, ...]:
    return context.rules.format.stream_files if unit == STREAM else ()


def is_forked(context: PlanningContext, view: View, stream: Digest | None) -> bool:
    """Tell whether a child has this stream already, or comes with it.

    An interrupted run, another checkout or machine, or a merge has forked it. A limited run may leave a child out.
    """
    is_limited = bool(context.policy.only or context.policy.below)
    for child in map(context.views.__getitem__, context.tree.children_of(view.id)):
        is_imported = not is_limited and context.presences[child.id].goal is Goal.IMPORT
        comes = is_imported and child.workspace.raw(STREAM) == stream
        if comes or child.store.raw(STREAM) == stream:
            return True
    return False


def _fork(context: PlanningContext, view: View, loser: Unit) -> int:
    """Create a child from a losing continuation, in the store only."""
    metadata = view.side(loser.copy.side).metadata or view.store.metadata or view.workspace.metadata
    assert metadata is not None  # noqa: S101 - the planner holds what has none
    origin = context.node(loser.copy)
    puts = [Put(file, origin) for file in loser.files]
    case = context.verdicts[view.id][STREAM].case
    return fork_continuation(context, view, metadata, puts, loser.stream.count, case)


def _fork_record(context: PlanningContext, view: View, loser: Unit, places: Places) -> list[int]:
    """Create a record from a losing continuation on both sides, where its program shows it; return the steps.

    A run that was interrupted has made it in the store only. It may be requested, too.
    """
    metadata = loser.copy.metadata
    assert isinstance(metadata, Metadata)  # noqa: S101 - only valid versions are compared
    new, content = places.forked(view.id, metadata.content)
    there = context.views.get(new)
    if there is not None and (there.workspace.main is not None or context.presences[new].goal is Goal.PROJECT):
        return []
    context.forks[new] = view.id
    case, steps = context.verdicts[view.id][METADATA].case, []
    home = context.homes.get(new)
    if home is None:
        home = context.homes[new] = Node(Side.STORE, None, "", new)
        file = File("", len(content), loser.mtime_ns, context.rules.digest(content))
        step = Step(kind=Kind.FORK, conversation=new, title=view.title, reason=Reason.DIVERGED, case=case)
        steps.append(context.builder.create(step, home, [Put(file, content=content)]))
        context.builder.belongs(steps[0], view.id)
    node = context.present[new] = Node(Side.WORKSPACE, None, "", new)
    step = Step(kind=Kind.PROJECT, conversation=new, title=view.title, reason=Reason.DIVERGED, case=case)
    steps.append(context.builder.create(step, node, [Put(home.files[""], home)]))
    return steps


def fork_continuation(
    context: PlanningContext, view: View, metadata: Metadata, puts: Sequence[Put], count: int, case: int | None
) -> int:
    """Create a child of a conversation from the files of a continuation, in the store only.

    ``metadata`` is the source of the child's, and ``count`` the number of events.
    """
    fmt = context.rules.format
    taken = set(context.views) | set(context.homes)
    new = context.free_id(taken)
    own = metadata.title or view.title  # the loser's own title, which the metadata of the winner may have replaced
    title = f"{DIVERGED} {own}" if own else DIVERGED
    content = fmt.forked_metadata(metadata.content, parent=view.id, title=title)
    home = Node(Side.STORE, None, "", fmt.dirname(new, title))
    time = max(put.file.mtime_ns for put in puts)
    described = File(fmt.metadata_file, len(content), time, context.rules.digest(content))
    step = Step(
        kind=Kind.FORK,
        conversation=new,
        title=title,
        reason=Reason.DIVERGED,
        case=case,
        events=(0, count),
    )
    context.homes[new] = home
    context.forks[new] = view.id
    if view.local or is_local(view.intent):
        context.intents[new] = Intent(IntentKind.LOCAL)
    index = context.builder.create(step, home, [Put(described, content=content), *puts])
    context.builder.belongs(index, view.id)
    return index


def set_parents(context: PlanningContext, view: View) -> None:
    """Make the metadata in the store, and in the workspace, state the decided parent.

    While the parent is undecided, only the store's metadata keeps the one that it states, even if the workspace's
    content replaces it.
    """
    goes = context.presences[view.id].goal is Goal.REMOVE
    if goes or view.id not in context.homes:
        return
    verdict = context.verdicts.get(view.id, {}).get(METADATA)
    final = final_metadata(view, verdict)
    parentage = context.parentage[view.id]
    if final is None or (parentage.frozen and not _keeps_parent(view, verdict, final, parentage.parent)):
        return
    edited = stated_content(context, view, final)
    home = context.homes[view.id]
    if edited is not None:
        _edit(context, view, home, final, edited)
    if parentage.frozen or view.workspace.main is None or view.local or view.id in context.edits.leaving:
        return
    own = view.workspace.main.metadata
    if isinstance(own, Metadata):
        ours = stated_content(context, view, own)
        node = context.node(view.workspace.main)
        if ours is not None and context.rules.digest(ours) == _digest_of(home, context.rules.format.metadata_file):
            _edit(context, view, node, own, ours)


def _keeps_parent(view: View, verdict: Verdict | None, final: Metadata, parent: str | None) -> bool:
    """Tell whether the store stated an undecided parent, and the version that replaces it states none.

    A killed first run may have replaced it already: then both sides have the same metadata, and the known parent is the
    only statement that is left. A version that differs and stays stays as it is, and so does one of another directory.
    """
    stored = view.store.metadata
    if final is stored:
        in_place = view.store.units[METADATA].copy is view.store.main
        replaced = in_place and (verdict is None or verdict.outcome is Outcome.NOTHING)
        first = view.agreed is None or METADATA not in view.agreed.units
        stated = replaced and first and parent is not None and view.parent_is_known and view.known_parent == parent
    else:
        stated = stored is not None and stored.parent.id == parent
    return stated and final.parent.kind is ParentKind.ABSENT


def final_metadata(view: View, verdict: Verdict | None) -> Metadata | None:
    """Return the metadata that the store has once everything is saved."""
    if verdict is not None and verdict.outcome is Outcome.MERGED and view.format.places is None:
        return merged_metadata(view, verdict)
    if view.store.main is None or (verdict is not None and verdict.outcome is Outcome.TO_STORE):
        return view.workspace.metadata
    return view.store.metadata


def merged_metadata(view: View, verdict: Verdict) -> Metadata:
    """Return the metadata of a merge."""
    assert verdict.content is not None  # noqa: S101 - that is what the verdict says
    metadata = view.format.read_metadata(verdict.content)
    assert isinstance(metadata, Metadata)  # noqa: S101 - it is made of two valid versions
    return metadata


def stated_content(context: PlanningContext, view: View, metadata: Metadata) -> bytes | None:
    """Return the file's bytes with the decided parent; None if they state it already."""
    parent = context.parentage[view.id].parent
    if states(metadata, parent):
        return None
    return context.rules.format.with_parent(metadata.content, parent)


def _digest_of(node: Node, name: str) -> str | None:
    file = node.files.get(name)
    return file.digest if file else None


def _edit(context: PlanningContext, view: View, node: Node, own: Metadata, content: bytes) -> None:
    """Replace a metadata file by one that states the parent; its mtime stays."""
    name = context.rules.format.metadata_file
    parent = context.parentage[view.id].parent
    # Another checkout may have set the known parent meanwhile; then this workspace's copy never had it.
    before = view.known_parent if node.side is Side.STORE else view.base_parent
    stripped = own.parent.id is None and parent == before
    promoted = view.id in context.edits.promoted
    kind = Kind.PROMOTE if promoted else Kind.SET_PARENT
    reason = Reason.PROMOTED if promoted else Reason.PARENT_STRIPPED if stripped else Reason.PARENT_CHANGED
    file = File(name, len(content), node.files[name].mtime_ns, context.rules.digest(content))
    if file.digest == node.files[name].digest:
        return  # the workspace's version was not written, because it differs in the parent alone
    context.builder.write(_step(view, kind, reason, METADATA), node, [Put(file, content=content)])


def update_workspace(context: PlanningContext, view: View) -> None:
    """Update the workspace's copy from the store, unit by unit, and reset the mtime of older versions."""
    syncs = context.presences[view.id].goal in (Goal.SYNC, Goal.IMPORT)
    if not syncs or view.local or view.id in context.edits.leaving:
        return
    if view.id not in context.verdicts and not view.workspace.stale:
        return  # the store's directory was made from this one
    assert view.workspace.main is not None  # noqa: S101 - both goals mean that it is there
    node = context.node(view.workspace.main)
    gives = not is_partly_here(view, context.policy)
    for verdict in _removals_first(_verdicts(context, view)):
        if verdict.outcome is Outcome.BEHIND:
            _age(context, view, verdict, node)
        elif gives:
            _bring(context, view, verdict, node)


def _bring(context: PlanningContext, view: View, verdict: Verdict, node: Node) -> None:
    """Write the decided version of a unit into a workspace directory."""
    if verdict.outcome is Outcome.DROP:
        _drop(context, view, verdict, node, Kind.REMOVE_STALE)
    elif verdict.outcome in _PROJECTED:
        _project_unit(context, view, verdict, node, context.homes[view.id])


def _drop(context: PlanningContext, view: View, verdict: Verdict, node: Node, kind: Kind) -> None:
    """Remove an extra from one side; the main directory may not be the one that has it."""
    name = verdict.unit.removeprefix(EXTRA)
    if name in node.files:
        assert verdict.reason is not None  # noqa: S101 - what is dropped has one
        step = _step(view, kind, verdict.reason, verdict.unit, verdict.case)
        context.builder.remove(step, node, (), [name])


def keep_in_step(context: PlanningContext, view: View, copy: Copy) -> None:
    """Write the decided version into a workspace directory that should be removed but can't be.

    Otherwise its version would be authoritative again in the next run.
    """
    if copy.side is Side.STORE or context.presences[view.id].goal is Goal.REMOVE or view.id in context.edits.leaving:
        return
    valid = {name for name, unit in units_of(copy, context.rules, None).items() if unit.digest is not None}
    for verdict in _verdicts(context, view):
        if verdict.unit in valid:
            _bring(context, view, verdict, context.node(copy))


def _verdicts(context: PlanningContext, view: View) -> Iterable[Verdict]:
    """Return the units' verdicts.

    An imported conversation has none unless it is held, but several directories may have contributed to it.
    """
    if view.id in context.verdicts:
        return context.verdicts[view.id].values()
    return [Verdict(name, None, Outcome.NOTHING) for name in view.workspace.units]


def _project_unit(context: PlanningContext, view: View, verdict: Verdict, node: Node, home: Node) -> None:
    """Write the store's files of a unit where the workspace's directory has others."""
    if verdict.unit.startswith(EXTRA):
        names: tuple[str, ...] = (verdict.unit.removeprefix(EXTRA),)
        if verdict.unit not in view.workspace.units and verdict.outcome is not Outcome.TO_WORKSPACE:
            return
    elif verdict.unit == STREAM:
        names = context.rules.format.stream_files
    else:
        names = (context.rules.format.metadata_file,)
    wanted = [home.files[name] for name in names if name in home.files]
    gone = [name for name in names if name in node.files and name not in home.files]
    differ = [file for file in wanted if file.digest != getattr(node.files.get(file.name), "digest", None)]
    if not differ and not gone:
        return
    events = None
    if verdict.unit == STREAM:
        winner = view.store if verdict.outcome is Outcome.TO_WORKSPACE else view.workspace
        events = (_count(node), verdict.count or winner.units[STREAM].stream.count)
    step = _step(view, Kind.PROJECT, verdict.reason or Reason.DUPLICATE, verdict.unit, verdict.case, events)
    after = [index for index in context.builder.steps_of(view.id) if context.builder.action(index).kind is Kind.FORK]
    context.builder.write(step, node, [Put(file, home) for file in wanted], removes=gone, after=after)


def _age(context: PlanningContext, view: View, verdict: Verdict, node: Node) -> None:
    """Set an older version's mtime below the store's, so that JP's newest-wins rule keeps the store's."""
    kept, workspace = view.store.own.get(verdict.unit), view.workspace.units[verdict.unit]
    if kept is None or view.workspace.stale or workspace.mtime_ns < max(kept.mtime_ns, EARLIEST_NS + 1):
        return
    names = [file.name for file in workspace.files]
    step = _step(view, Kind.AGE, Reason.BEHIND, verdict.unit, verdict.case)
    context.builder.age(step, node, names, max(kept.mtime_ns - AGE_NS, EARLIEST_NS))

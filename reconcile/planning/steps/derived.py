"""Repairs of derived data: before all other steps for the workspace as found, and after them for the plan's result.

A format defines what is derived and its right content (`Places.mend`). Here that becomes steps, so that it is printed,
saved in the vault, journalled and undone like any other step. The other steps work with the repaired data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Copy, Fault, File, Metadata, Partition, Side
from reconcile.planning.builder import Node, Put, Step
from reconcile.planning.filters import resting_undone, withheld

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import DerivedRepair, Places
    from reconcile.model.plan import Action
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Place, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext


def due(
    workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules, written: Mapping[str, bytes | None]
) -> tuple[DerivedRepair, ...]:
    """Return the repairs that are due once ``written`` has changed; none while the program or git is busy.

    A remote has nothing that is derived: each workspace has its own (docs/design/remotes.md#formats).
    """
    places = rules.format.places
    if places is None or baseline.is_of_remote or policy.git_busy or places.busy(workspace.derived_inputs):
        return ()
    wanted = policy.mend
    return tuple(
        repair
        for repair in places.mend(workspace.derived_inputs, written, wanted)
        if not repair.asked or repair.id in wanted
    )


def due_first(workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> tuple[DerivedRepair, ...]:
    """Return the repairs of the workspace as it is; those of records only if the record is unchanged since the scan."""
    repairs = due(workspace, baseline, policy, rules, {})
    if not repairs:
        return ()
    there = {copy.path: copy.files[0].digest for copy in workspace.copies if _is_file(copy)}

    def is_current(repair: DerivedRepair) -> bool:
        before = None if repair.before is None else rules.digest(repair.before)
        return repair.content is None or there.get(repair.path) == before

    return tuple(repair for repair in repairs if is_current(repair))


def with_repairs(workspace: Snapshot, repairs: Iterable[DerivedRepair], rules: Rules, now_ns: int) -> Snapshot:
    """Return the workspace with the repaired records; a file keeps its mtime, as with any edit of ours."""
    gone = {repair.path for repair in repairs if repair.content is None and repair.before is not None}
    copies = {copy.path: copy for copy in workspace.copies if copy.path not in gone}
    for path, content in [(repair.path, repair.content) for repair in repairs if repair.content is not None]:
        before = copies.get(path)
        time = before.files[0].mtime_ns if before is not None else now_ns
        file = File("", len(content), time, rules.digest(content))
        metadata = _described(path, content, rules)
        copies[path] = Copy(Side.WORKSPACE, path, path, Partition.LIVE, None, (file,), metadata, None)
    return replace(workspace, copies=tuple(sorted(copies.values(), key=lambda copy: rules.format.order(copy.path))))


def rebuild_first(context: PlanningContext, scanned: Snapshot) -> None:
    """Write the steps of the repairs that the plan is based on."""
    files = {copy.path: copy.files for copy in scanned.copies} if context.repairs else {}
    for repair in context.repairs:
        if _only_makes(repair):
            continue  # until the plan is known: it may create them itself
        if repair.content is None:
            _tidy(context, repair, files.get(repair.path, ()))
        else:
            node = context.nodes[Side.WORKSPACE][repair.path]
            wanted, node.files = node.files[""], {file.name: file for file in files.get(repair.path, ())}
            _rebuild(context, repair, node, wanted)


def rebuild_last(context: PlanningContext, store: Snapshot, workspace: Snapshot) -> None:
    """Write the steps that rebuild derived data from the plan's result, on both sides if they agree.

    If a step that they follow from isn't done, neither are they: the next run rebuilds them from the state at that
    time. They follow from no step that an undo keeps out.
    """
    if context.rules.format.places is None:
        return
    resting = resting_undone(context, store, workspace)
    out = withheld(tuple(context.builder), {action.id for action in context.builder if action.conversation in resting})
    steps = [(index, action) for index, action in enumerate(context.builder) if action.id not in out]
    written = _written(context, [action for _, action in steps])
    done = {repair.id for repair in context.repairs if not _only_makes(repair)}
    before = [index for index, action in steps if action.target.side is Side.WORKSPACE]
    leaving = context.edits.deleted.keys() | context.edits.leaving.keys()
    repairs = (
        due(workspace, context.baseline, context.policy, context.rules, written)
        if written
        else tuple(filter(_only_makes, context.repairs))
    )
    for repair in repairs:
        if repair.content is not None:
            if repair.path not in leaving:
                _make_again(context, repair, repair.content, before)
        elif repair.id not in done:
            _tidy(context, repair)


def _make_again(context: PlanningContext, repair: DerivedRepair, content: bytes, after: Sequence[int]) -> None:
    node = context.present.get(repair.path) or context.nodes[Side.WORKSPACE].get(repair.path)
    node, home = None if node is not None and node.gone else node, context.homes.get(repair.path)
    before = node.files[""] if node is not None else None
    time = before.mtime_ns if before is not None else context.now_ns
    file = File("", len(content), time, context.rules.digest(content))
    stored = [] if _places(context.rules).is_derived(repair.path) else [(Side.STORE, home)]
    for side, known in ((Side.WORKSPACE, node), *stored):
        at = known or Node(side, None, "", repair.path)
        there = at.files.get("")
        if (there and there.digest) == (before and before.digest):
            _rebuild(context, repair, at, file, after)


def _rebuild(
    context: PlanningContext, repair: DerivedRepair, node: Node, file: File, after: Sequence[int] = ()
) -> None:
    step = _step(repair)
    put = Put(file, content=repair.content)
    if node.files:
        context.builder.write(step, node, [put], after=after)
    else:
        context.builder.create(step, node, [put], after)


def _only_makes(repair: DerivedRepair) -> bool:
    """Tell whether a repair creates empty directories, and does nothing else."""
    return bool(repair.makes) and not repair.clears and repair.content is None and repair.before is None


def _tidy(context: PlanningContext, repair: DerivedRepair, known: Iterable[File] = ()) -> None:
    """Create missing directories, and remove a file or an empty directory that is left over."""
    node = Node(Side.WORKSPACE, None, "", repair.path)
    if repair.before is not None:
        left = File("", len(repair.before), repair.mtime_ns, context.rules.digest(repair.before))
        node.files = {"": next(iter(known), left)}
        context.builder.remove(_step(repair), node, (), [""])
    else:
        context.builder.tidy(_step(repair), node, repair.makes, repair.clears)


def _step(repair: DerivedRepair) -> Step:
    return Step(
        kind=Kind.REBUILD,
        conversation=repair.path,
        title=repair.path,
        reason=Reason.REBUILT,
        unit=METADATA,
        words=repair.words,
    )


def _written(context: PlanningContext, actions: Iterable[Action]) -> dict[str, bytes | None]:
    """Return the changes of these in the workspace: bytes for records that are files, else empty bytes."""
    contents: dict[Place | None, bytes] = {
        copy.place: copy.metadata.content
        for side in context.views.values()
        for seen in (side.store, side.workspace)
        if (copy := seen.main) is not None and isinstance(copy.metadata, Metadata)
    }
    changes: dict[str, bytes | None] = {}
    for action in actions:
        for write in action.writes:
            content = contents.get(write.source, b"") if write.content is None else write.content
            contents[write.target] = content
            if write.target.side is Side.WORKSPACE:
                changes[write.target.path] = content
        gone = action.removes or ((action.target,) if action.kind is Kind.REMOVE_STALE else ())
        changes |= {place.path: None for place in gone}
    return changes


def _is_file(copy: Copy) -> bool:
    return [file.name for file in copy.files] == [""]


def _described(path: str, content: bytes, rules: Rules) -> Metadata | Fault:
    record = _places(rules).read_record(path, content)
    return replace(record, file="") if isinstance(record, Fault) else record  # the copy is the file


def _places(rules: Rules) -> Places:
    assert rules.format.places is not None  # noqa: S101 - else nothing is mended
    return rules.format.places

"""The plan of a run that brings what is in the store alone into the workspace, where nothing else is to be done.

Told at a glance, and the same plan as by the rules (`reconcile.planning.incremental.remaining`); in any doubt they
decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.names import CHILDREN
from reconcile.model.options import Layout, Missing
from reconcile.model.plan import Action, Heading, Kind, Plan, Precondition, Write, states_of
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Metadata, Place, Side, Stream
from reconcile.planning.incremental.remaining import are_placed, is_plain, state_of, tree_of
from reconcile.planning.incremental.status import by_conversation, is_sound
from reconcile.planning.rules.tree import states
from reconcile.planning.steps.placement import fits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.rules.tree import TreeIndex


def projection_of(
    store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules, now_ns: int
) -> Plan | None:
    """Return the plan where it is nothing but projections, None where that isn't certain."""
    asked = policy.missing is Missing.REPROJECT and policy.git_busy is None
    if not asked or not is_plain(store, workspace, baseline, policy, rules):
        return None
    kept, here = by_conversation(store), by_conversation(workspace)
    if (here.keys() | baseline.agreed.keys()) - kept.keys():
        return None
    counted: dict[str, str] = {}
    coming: dict[str, Copy] = {}
    for conversation, copies in kept.items():
        state = state_of(copies, here.get(conversation, ()), baseline, policy, rules)
        if state is None:
            if conversation in here or len(copies) != 1 or not _may_come(copies[0], baseline):
                return None
            coming[conversation], state = copies[0], "projected"
        counted[conversation] = state
    there = {conversation: copies[0] for conversation, copies in here.items()}
    tree = tree_of({conversation: copies[0] for conversation, copies in kept.items()}, rules)
    if tree is None or not are_placed(there, tree, policy) or any(copy.obstructed for copy in there.values()):
        return None
    places = {conversation: copy.path for conversation, copy in there.items() if not copy.archived}
    actions = _actions(coming, places, tree, policy, rules)
    if actions is None:
        return None
    return Plan(
        layout=policy.layout.value,
        actions=actions,
        states=states_of(counted),
        counted=counted,
        outline=_outline(coming, kept, tree),
        places=tuple(sorted(places.items())),
        policy=policy,
        now_ns=now_ns,
    )


def _may_come(copy: Copy, baseline: Baseline) -> bool:
    """Tell whether a copy of the store has all that makes a conversation, and nothing is remembered of it."""
    conversation, metadata = copy.conversation, copy.metadata
    return (
        is_sound(copy)
        and copy.container is None
        and all(file.digest for file in copy.files)
        and isinstance(metadata, Metadata)
        and states(metadata, baseline.parents.get(conversation, metadata.parent.id))
        and not any(conversation in known for known in (baseline.agreed, baseline.intents, baseline.tombstones))
    )


def _actions(
    coming: Mapping[str, Copy], places: dict[str, str], tree: TreeIndex, policy: Policy, rules: Rules
) -> tuple[Action, ...] | None:
    """Return a step for each, parents before children; None where one has no room, or its parent isn't there.

    Where each goes is added to ``places``.
    """
    actions: list[Action] = []
    needs: dict[str, tuple[str, ...]] = {}
    for conversation in tree.walk():
        copy = coming.get(conversation)
        if copy is None:
            continue
        container = None if policy.layout is Layout.FLAT else tree.parent_of(conversation)
        if container is not None and container not in places:
            return None
        title = copy.metadata.title if isinstance(copy.metadata, Metadata) else None
        name = rules.format.dirname(conversation, title)
        path = f"{places[container]}/{CHILDREN}/{name}" if container is not None else name
        if not fits(path, policy, rules):
            return None
        above = needs.get(container, ()) if container is not None else ()
        action = _action(copy, title, path, str(len(actions) + 1), above, rules)
        places[conversation], needs[conversation] = path, (*above, action.id)
        actions.append(action)
    return tuple(actions)


def _action(copy: Copy, title: str | None, path: str, number: str, needs: tuple[str, ...], rules: Rules) -> Action:
    managed = (rules.format.metadata_file, *rules.format.stream_files)
    writes, expect = [], []
    for file in copy.files:
        if file.name in managed and file.digest is not None:
            source = Place(Side.STORE, f"{copy.path}/{file.name}")
            target = Place(Side.WORKSPACE, f"{path}/{file.name}")
            writes.append(Write(target, source, None, file.size, file.mtime_ns, file.digest))
            expect.append(Precondition(source, file.size, file.mtime_ns, file.digest))
    to = Place(Side.WORKSPACE, path)
    return Action(
        id=number,
        kind=Kind.PROJECT,
        conversation=copy.conversation,
        title=title,
        unit=WHOLE,
        reason=Reason.REPROJECTED,
        case=3,
        source=copy.place,
        target=to,
        writes=tuple(writes),
        bytes=sum(write.size for write in writes),
        events=(0, copy.stream.count if isinstance(copy.stream, Stream) else 0),
        needs=needs,
        expect=(*expect, Precondition(to, 0, 0, None)),
        touches=(copy.conversation,),
    )


def _outline(coming: Collection[str], kept: Mapping[str, tuple[Copy, ...]], tree: TreeIndex) -> tuple[Heading, ...]:
    """Return what is projected and its ancestors, in the order of the tree."""
    depths = tree.depths
    shown: set[str | None] = set(coming)
    for conversation in reversed(tuple(depths)):
        if conversation in shown:
            shown.add(tree.parent_of(conversation))
    return tuple(
        Heading(conversation, metadata.title if isinstance(metadata, Metadata) else None, depth)
        for conversation, depth in depths.items()
        if conversation in shown
        for metadata in (kept[conversation][0].metadata,)
    )

"""The planner: from two snapshots and what is remembered to the one ordered plan.

Pure and deterministic: no clock, no disk; the same input gives the same plan. It reads in this order: what each
conversation is (`views`), whether it belongs (`presence`), which content wins (`content`), whose child it is
(`parents`, `tree`), and then writes the steps: saves, parents, the workspace's units, placement, removals.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from reconcile.core.board import Board
from reconcile.core.content import Outcome, Verdict, decide_carried, decide_units
from reconcile.core.directories import choose_directories
from reconcile.core.draft import renumbered, withheld
from reconcile.core.edits import Edits, edits_of
from reconcile.core.guards import is_bulk, look_at_sides
from reconcile.core.model import METADATA, STREAM, WHOLE, Side
from reconcile.core.nodes import nodes_of
from reconcile.core.parents import Parentage, decide_parent, states
from reconcile.core.placement import archive, move_blocked, place, place_in_store, project_fork
from reconcile.core.plan import Action, Heading, Item, Kind, Plan
from reconcile.core.presence import Goal, Presence, decide_presence
from reconcile.core.quiet import quiet_plan
from reconcile.core.reasons import Reason
from reconcile.core.removal import doomed_copies, inhabitants, remove
from reconcile.core.report import report_conversation, report_sides
from reconcile.core.requests import Project, TreeEdit
from reconcile.core.settle import final_metadata, is_undecided, save, set_parents, stated_content, update_workspace
from reconcile.core.tree import TreeIndex
from reconcile.core.undone import leave_undone
from reconcile.core.units import joined_digest, units_of
from reconcile.core.views import views_of, without_speakers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.core.memory import Memory
    from reconcile.core.model import Digest, Snapshot
    from reconcile.core.policy import Policy
    from reconcile.core.units import Rules, Unit
    from reconcile.core.views import View

BULK_NAMES = 5
"""Directories that a bulk removal is told by name."""


def make_plan(store: Snapshot, workspace: Snapshot, memory: Memory, policy: Policy, rules: Rules, now_ns: int) -> Plan:
    """Return the plan that brings both sides together.

    Streams that differ must have their events (`needs_events`); ``now_ns`` names forks, and tells what has expired.

    Raises:
        RefusedError: what a command asks for can't be.
    """
    quiet = quiet_plan(store, workspace, memory, policy, rules) if policy.request is None else None
    if quiet is not None:
        return replace(quiet, policy=policy, now_ns=now_ns)
    board = decide(store, workspace, memory, policy, rules, now_ns)
    if isinstance(policy.request, TreeEdit):
        edits = edits_of(policy.request, board)
        board = decide(store, workspace, memory, edits.deciding(policy), rules, now_ns, edits)
    return replace(_written(board, store, workspace), policy=policy)


def _written(board: Board, store: Snapshot, workspace: Snapshot) -> Plan:
    """Write the steps of what was decided."""
    for conversation in board.order:
        save(board, board.views[conversation])
    for conversation in board.order:
        set_parents(board, board.views[conversation])
    for conversation in board.order:
        update_workspace(board, board.views[conversation])
    board.doomed = inhabitants(board)
    for conversation in board.tree.walk():
        place(board, board.views[conversation])
    for fork in board.forks:
        project_fork(board, fork)
    for conversation in board.order:
        archive(board, board.views[conversation])
        place_in_store(board, board.views[conversation])
    for copy in doomed_copies(board):
        if (copy.side, copy.path) in board.doomed:
            remove(board, copy)
    move_blocked(board)
    for conversation in board.order:
        report_conversation(board, board.views[conversation])
    report_sides(board, store, workspace)
    return _finish(board, store, workspace)


def decide(
    store: Snapshot,
    workspace: Snapshot,
    memory: Memory,
    policy: Policy,
    rules: Rules,
    now_ns: int,
    edits: Edits | None = None,
) -> Board:
    """Decide presence, content and parents of every conversation; no step is planned yet."""
    edits = edits or Edits()
    sides = look_at_sides(store, workspace, memory, rules.format)
    if _recovers(policy):
        sides = replace(sides, workspace_emptied=False)
    memory = edits.remembering(memory)
    views = views_of(store, workspace, memory, rules)
    # What leaves is compared like any other copy: only there is nothing to be written to it.
    views |= {each: replace(views[each], local=False) for each in edits.leaving}
    board = Board(
        views=views,
        memory=memory,
        policy=policy,
        rules=rules,
        sides=sides,
        now_ns=now_ns,
        nodes={Side.STORE: nodes_of(store), Side.WORKSPACE: nodes_of(workspace)},
        tree=TreeIndex({}, rules.format.order),
        edits=edits,
        held=list(edits.held),
        notes=list(edits.notes),
    )
    for view in views.values():
        _decide_one(board, view)
    live = {view.id: board.parentage[view.id].parent for view in views.values() if _is_live(board, view)}
    board.tree = TreeIndex(live, rules.format.order)
    walked = tuple(board.tree.walk())
    board.order = walked + tuple(conversation for conversation in views if conversation not in live)
    choose_directories(board)
    return board


def _decide_one(board: Board, view: View) -> None:
    if view.store.main is not None:
        board.homes[view.id] = board.node(view.store.main)
    presence = _presence(board, view)
    board.presences[view.id] = presence
    if presence.goal is Goal.SYNC:
        verdicts = decide_units(view, board.memory, board.policy, board.sides)
        if replaced := {v.unit for v in verdicts if v.outcome is Outcome.BEHIND and _speaks_for_another(view, v.unit)}:
            view = board.views[view.id] = without_speakers(view, replaced)
            verdicts = decide_units(view, board.memory, board.policy, board.sides)
        verdicts = tuple(_with_metadata(view, verdict) for verdict in verdicts)
        if any(v.unit == STREAM and v.outcome is Outcome.BEHIND for v in verdicts):
            verdicts = tuple(_waiting(verdict) for verdict in verdicts)
        board.verdicts[view.id] = {verdict.unit: verdict for verdict in verdicts}
    elif view.workspace.main is None and view.workspace.units and view.store.main is not None:
        verdicts = decide_carried(view, board.memory, board.policy)
        board.verdicts[view.id] = {verdict.unit: verdict for verdict in verdicts}
    metadata = board.verdicts.get(view.id, {}).get(METADATA)
    board.parentage[view.id] = decide_parent(view, metadata)
    if view.id in board.edits.parents:
        _reparent(board, view)
    _check_editable(board, view, metadata)
    stream = board.verdicts.get(view.id, {}).get(STREAM)
    if presence.goal is Goal.HELD or (stream is not None and stream.outcome in (Outcome.BEHIND, Outcome.HELD)):
        board.parentage[view.id] = Parentage(board.parentage[view.id].parent, frozen=True)
    _wait_for_decision(board, view)


def _recovers(policy: Policy) -> bool:
    return isinstance(policy.request, Project) and policy.request.records is not None


def _presence(board: Board, view: View) -> Presence:
    presence = decide_presence(view, board.views, board.memory, board.policy, board.sides)
    if view.id in board.edits.deleted:
        return Presence(Goal.REMOVE, presence.case, "removed", board.edits.deleted[view.id])
    if view.id in board.edits.asked and presence.goal is Goal.PROJECT:
        return replace(presence, reason=Reason.RECOVERED if _recovers(board.policy) else Reason.ASKED)
    return presence


def _reparent(board: Board, view: View) -> None:
    """Give it the parent that was asked for, unless its metadata has to be settled first."""
    if board.parentage[view.id].frozen:
        board.hold(view, METADATA, Reason.UNSETTLED, "its metadata has to be settled before it gets another parent")
    else:
        board.parentage[view.id] = Parentage(board.edits.parents[view.id])


def _wait_for_decision(board: Board, view: View) -> None:
    """Let nothing be settled among several directories of one conversation while one of its units is undecided.

    They all stay until then, so that what lost now would speak again in every run.
    """
    verdicts = board.verdicts.get(view.id, {})
    for unit in _broken_duplicates(board, view):
        verdict = verdicts.get(unit.name) or Verdict(unit.name, None, Outcome.HELD)
        faulty = (*(other for other in verdict.faulty if other.copy is not unit.copy), unit)
        verdicts[unit.name] = Verdict(unit.name, verdict.case, Outcome.HELD, Reason.INVALID, faulty=faulty)
    if is_undecided(verdicts.values()) and (view.store.stale or view.workspace.stale):
        board.verdicts[view.id] = {unit: _waiting(verdict) for unit, verdict in verdicts.items()}
        board.parentage[view.id] = Parentage(board.parentage[view.id].parent, frozen=True)


def _broken_duplicates(board: Board, view: View) -> list[Unit]:
    """Return what nobody can read in directories that should go, which isn't removed silently (section 4)."""
    if view.store.main is None or view.id in board.policy.decisions:
        return []
    copies = (*view.store.stale, *(() if view.local else view.workspace.stale))
    units = [unit for copy in copies for unit in units_of(copy, board.rules, None).values()]
    return [unit for unit in units if unit.fault is not None and not unit.fault.incomplete]


def _speaks_for_another(view: View, name: str) -> bool:
    """Tell whether a unit is that of a directory that goes, though the one that stays has a sound one."""
    own = view.workspace.own.get(name)
    return own is not None and own.digest is not None and view.workspace.units[name] is not own


def _with_metadata(view: View, verdict: Verdict) -> Verdict:
    """Hold a fork for which no side has metadata."""
    if verdict.forks is None or view.store.metadata or view.workspace.metadata:
        return verdict
    return replace(verdict, outcome=Outcome.HELD, reason=Reason.DIVERGED_HELD, forks=None)


def _waiting(verdict: Verdict) -> Verdict:
    """While the stream is behind, or a unit held, the others of that conversation wait too (section 4)."""
    if verdict.outcome in (Outcome.BEHIND, Outcome.HELD, Outcome.ASIDE):
        return verdict
    return Verdict(verdict.unit, verdict.case, Outcome.WAIT, Reason.BEHIND_ASIDE)


def _check_editable(board: Board, view: View, verdict: Verdict | None) -> None:
    """Hold metadata that would have to state another parent but can't be edited byte for byte (section 4)."""
    if board.parentage[view.id].frozen:
        return
    final = final_metadata(view, verdict)
    parent = board.parentage[view.id].parent
    if final is None or states(final, parent) or stated_content(board, view, final) is not None:
        return
    held = Verdict(METADATA, verdict.case if verdict else None, Outcome.HELD, Reason.NOT_ROUND_TRIP)
    board.verdicts.setdefault(view.id, {})[METADATA] = held
    board.parentage[view.id] = Parentage(parent, frozen=True)


def _is_live(board: Board, view: View) -> bool:
    """Tell whether it is in the tree: live in the store, or on the way there from the workspace."""
    goal = board.presences[view.id].goal
    there = view.store.main is not None or goal in (Goal.IMPORT, Goal.HELD)
    return there and not view.archived


def needs_events(store: Snapshot, workspace: Snapshot, memory: Memory, rules: Rules) -> frozenset[str]:
    """Return the ids whose streams differ between the sides, so that the scan can load their events."""
    streams: dict[str, set[Digest | None]] = {}
    for copy in (*store.copies, *workspace.copies):
        files = {file.name: file for file in copy.files}
        stream = tuple(files[name] for name in rules.format.stream_files if name in files)
        streams.setdefault(copy.conversation, set()).add(joined_digest(stream))
    differ = {conversation for conversation, digests in streams.items() if len(digests) > 1}
    views = views_of(store, workspace, memory, rules, differ) if differ else {}
    return frozenset(
        view.id
        for view in views.values()
        if view.store.digest(STREAM) is not None
        and view.workspace.digest(STREAM) is not None
        and view.store.digest(STREAM) != view.workspace.digest(STREAM)
    )


def _finish(board: Board, store: Snapshot, workspace: Snapshot) -> Plan:
    """Leave out what was undone, and what the guards, git and the selection refuse, with everything that needs it."""
    board.intents |= {key: intent for key, intent in board.edits.intents.items() if key not in board.intents}
    actions = leave_undone(board, list(board.draft), store, workspace)
    actions = _without_bulk(board, actions, len(workspace.copies))
    actions = _selected(board, actions)
    plan = Plan(
        layout=board.policy.layout.value,
        actions=renumbered(actions),
        held=tuple(board.held),
        aside=tuple(board.aside),
        notes=tuple(board.notes),
        preserve=tuple(board.preserve),
        intents=tuple(sorted(board.intents.items())),
        asides=tuple(sorted(board.asides.items())),
        tombstones=tuple(sorted(board.tombstones.items())),
        states=tuple(sorted(_states(board, actions).items())),
        outline=_outline(board, actions),
        voided=_voided(board),
        policy=board.policy,
        now_ns=board.now_ns,
        places=tuple((key, node.path) for key, node in sorted(board.present.items())),
        rooted=tuple(
            view.id
            for view in board.views.values()
            if view.known_parent is not None and board.parentage[view.id].parent is None
        ),
    )
    return without_git(plan, board.policy.git_busy)


def _without_bulk(board: Board, actions: list[Action], directories: int) -> list[Action]:
    removals = [action for action in actions if _removes_a_directory(action)]
    if board.policy.accept_bulk or board.edits.scope or not is_bulk(len(removals), directories):
        return actions
    # Whatever else becomes of these waits too: what lost now would speak again from a directory that stays.
    concerned = {action.conversation for action in removals}
    concerned |= {fork for fork, source in board.forks.items() if source in concerned}
    refused = withheld(actions, {action.id for action in actions if action.conversation in concerned})
    for conversation in concerned:
        board.tombstones.pop(conversation, None)
    names = [action.target.path.rpartition("/")[2] for action in removals[:BULK_NAMES]]
    names += [f"{len(removals) - BULK_NAMES} more"] if len(removals) > BULK_NAMES else []
    message = f"{len(removals)} of {directories} directories would be removed: {', '.join(names)}"
    board.held.append(_whole(Reason.BULK, message, "reconcile --accept bulk"))
    return [action for action in actions if action.id not in refused]


def _removes_a_directory(action: Action) -> bool:
    return action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE


def without_git(plan: Plan, busy: str | None) -> Plan:
    """Hold what would change the workspace while git is in the middle of something there, and what needs it."""
    touching = {action.id for action in plan.actions if action.target.side is Side.WORKSPACE}
    if busy is None or not touching:
        return plan
    refused = withheld(plan.actions, touching)
    message = f"git is in the middle of something here ({busy}): {len(refused)} changes wait for its end"
    kept = [action for action in plan.actions if action.id not in refused]
    return replace(plan, actions=renumbered(kept), held=(*plan.held, _whole(Reason.GIT_BUSY, message)))


def _whole(reason: Reason, message: str, *resolve: str) -> Item:
    return Item(conversation=None, title=None, unit=WHOLE, reason=reason, message=message, resolve=resolve)


def _selected(board: Board, actions: list[Action]) -> list[Action]:
    """Keep what ``--only`` and ``--below`` name, and what that needs."""
    policy = board.policy
    if not policy.only and not policy.below:
        return actions
    wanted = set(policy.only) | set(policy.below)
    for conversation in policy.below:
        if conversation in board.tree:
            wanted.update(board.tree.descendants(conversation))
    wanted.update(fork for fork, source in board.forks.items() if source in wanted)
    kept: set[str] = set()
    for action in reversed(actions):
        if action.conversation in wanted or action.id in kept:
            kept.update((action.id, *action.needs))
    _select_rest(board, wanted)
    return [action for action in actions if action.id in kept]


def _select_rest(board: Board, wanted: set[str]) -> None:
    board.held = [item for item in board.held if item.conversation is None or item.conversation in wanted]
    board.aside = [item for item in board.aside if item.conversation is None or item.conversation in wanted]
    board.preserve = [version for version in board.preserve if version.conversation in wanted]
    board.intents = {key: intent for key, intent in board.intents.items() if key in wanted}
    board.asides = {key: record for key, record in board.asides.items() if key[0] in wanted}
    board.tombstones = {key: digests for key, digests in board.tombstones.items() if key in wanted}


def _states(board: Board, actions: Sequence[Action]) -> Counter[str]:
    """Count every conversation once; ``changing`` and ``open`` are in sync but for what the plan says of them."""
    changing = {action.conversation for action in actions}
    mentioned = {item.conversation for item in board.held + board.aside}
    states: Counter[str] = Counter()
    for view in board.views.values():
        state = board.presences[view.id].state
        if state == "in-sync" and view.id in changing | mentioned:
            state = "changing" if view.id in changing else "open"
        if state != "gone":
            states[state] += 1
    return states


def _voided(board: Board) -> tuple[str, ...]:
    if not board.sides.store_renewed:
        return ()
    return tuple(
        view.id
        for view in board.views.values()
        if view.agreed is not None and view.store.main is None and view.workspace.main is not None
    )


def _outline(board: Board, actions: Sequence[Action]) -> tuple[Heading, ...]:
    """Return the conversations that the plan speaks of, under their ancestors, a fork after its source."""
    forks: dict[str, list[Action]] = {}
    spoken = {item.conversation for item in board.held + board.aside}
    for action in actions:
        spoken.add(board.forks.get(action.conversation, action.conversation))
        if action.conversation in board.forks:
            forks.setdefault(board.forks[action.conversation], []).append(action)
    shown = set(spoken)
    for conversation in spoken:
        if conversation is not None and conversation in board.tree:
            shown.update(board.tree.ancestors(conversation))
    depths: dict[str, int] = {}
    outline = []
    for conversation in board.order:
        parent = board.tree.parent_of(conversation) if conversation in board.tree else None
        depth = depths[conversation] = 0 if parent is None else depths[parent] + 1
        if conversation in shown:
            outline.append(Heading(conversation, board.views[conversation].title, depth))
        outline += [Heading(fork.conversation, fork.title, depth + 1) for fork in forks.get(conversation, ())]
    return tuple(outline)

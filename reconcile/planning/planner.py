"""The planner: from two snapshots and the baseline to one ordered plan.

Pure and deterministic: no clock, no disk; the same input gives the same plan. `reconcile.planning.decide` decides
first, then the steps are written: saves, parents, the workspace's units, placement, removals. At the end
`reconcile.planning.filters` removes the steps that may not be done now, or that the command did not name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.plan import Action, Heading, Plan, states_of
from reconcile.model.snapshot import Stream
from reconcile.planning.attention import report_conversation, report_sides
from reconcile.planning.decide import decide
from reconcile.planning.filters import (
    due,
    leave_undone,
    named,
    release_unsaved,
    renumbered,
    selected,
    without_bulk,
    without_git,
    without_obstructed,
    without_program,
)
from reconcile.planning.incremental.status import dirty_part
from reconcile.planning.rules.content import ends_match, is_edited_and_continued
from reconcile.planning.steps.content import save, set_parents, update_workspace
from reconcile.planning.steps.derived import due_first, rebuild_last
from reconcile.planning.steps.placement import archive, move_blocked, place, place_in_store, project_fork
from reconcile.planning.steps.removal import conversations_below, copies_to_remove, remove

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.guards import Whole
    from reconcile.planning.rules.views import View


def make_plan(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    policy: Policy,
    rules: Rules,
    now_ns: int,
    whole: Whole | None = None,
) -> Plan:
    """Return the plan that syncs both sides.

    Streams that differ must have their events (`needs_events`). ``now_ns`` is the time in ns for ids of forks and for
    expiry. ``whole`` is given if the plan is about a part (`reconcile.planning.incremental.scope`).

    Raises:
        RefusedError: a command asks for something impossible.
    """
    part = dirty_part(store, workspace, baseline, policy, rules) if policy.request is None else None
    if part is not None and part.is_quiet and not due_first(workspace, baseline, policy, rules):
        counted = part.counted
        layout = policy.layout.value
        states = states_of(counted, rules.format.places)
        return Plan(layout=layout, states=states, counted=counted, policy=policy, now_ns=now_ns, quiet=True)
    if part is None or whole is not None or rules.format.places is not None:
        return plan_by_rules(store, workspace, baseline, policy, rules, now_ns, whole)
    return part.joined(plan_by_rules(part.store, part.workspace, part.baseline, policy, rules, now_ns, part.whole))


def plan_by_rules(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    policy: Policy,
    rules: Rules,
    now_ns: int,
    whole: Whole | None = None,
) -> Plan:
    """Return the same plan, decided by the rules alone, without a fast classification."""
    decided = partial(decide, store, workspace, baseline, rules=rules, now_ns=now_ns, whole=whole)
    written = partial(_written, store=store, workspace=workspace)
    plain = context = decided(policy)
    if (request := policy.tree_edit) is not None:
        from reconcile.planning.requests.edits import edits_of  # here: most runs change no tree
        from reconcile.planning.requests.remove import keeping_parents

        edits, wanted = edits_of(request, context), named(context)
        limited = policy if wanted is None else replace(policy, only=wanted)
        context = decided(edits.limited_policy(limited), edits=edits)
        if (fewer := keeping_parents(context)) is not None:
            context = decided(fewer.limited_policy(limited), edits=fewer)
    elif baseline.waiting and not _is_limited_by_command(policy):
        from reconcile.planning.requests.edits import unfinished  # here: most runs find no request that waits
        from reconcile.planning.requests.remove import keeping_parents

        if (left := unfinished(context)) is not None:
            context = decided(left.extended_policy(policy), edits=left)
            if (fewer := keeping_parents(context)) is not None:
                context = decided(fewer.extended_policy(policy), edits=fewer)
    if _is_limited_by_command(policy):
        if policy.decisions:
            plain = decided(replace(policy, only=frozenset(), decisions={}))
        # A command makes no removals due that wait for permission: the guard against bulk removals ignores its scope.
        plain.policy = replace(plain.policy, accept_bulk=True)
        context.due = due(written(plain))
    if not (baseline.waiting or policy.request or policy.decisions or policy.choices):
        return replace(written(context), policy=policy)
    from reconcile.planning.requests.edits import recorded, requested_of

    requests = requested_of(context, policy)  # as things are before the steps are written
    plan = replace(written(context), policy=policy)
    return replace(plan, waiting=recorded(context, policy, plan, requests))


def _is_limited_by_command(policy: Policy) -> bool:
    """Tell whether a plan is limited to the targets of a command, rather than by ``--only`` and ``--below``."""
    if policy.below:
        return False
    if policy.tree_edit is not None:
        return not policy.only
    return bool(policy.decisions) and policy.only == policy.decisions.keys()


def _written(context: PlanningContext, store: Snapshot, workspace: Snapshot) -> Plan:
    """Write the steps of the decisions."""
    changed = [context.views[conversation] for conversation in context.order if conversation not in context.unchanged]
    for view in changed:
        save(context, view)
    for view in changed:
        set_parents(context, view)
    for view in changed:
        update_workspace(context, view)
    to_remove = copies_to_remove(context)
    context.to_remove = conversations_below(context, to_remove)
    views = context.views
    for conversation in context.tree.walk():
        place(context, views[conversation])
    for fork in context.forks:
        project_fork(context, fork)
    for conversation in context.order:
        view = views[conversation]
        archive(context, view)
        place_in_store(context, view)
    for copy in to_remove:
        if (copy.side, copy.path) in context.to_remove:
            remove(context, copy)
    move_blocked(context)
    rebuild_last(context, store, workspace)
    for view in changed:
        report_conversation(context, view)
    report_sides(context, store, workspace)
    return _finish(context, store, workspace)


def needs_events(store: Snapshot, workspace: Snapshot, rules: Rules) -> frozenset[str]:
    """Return the ids whose streams may differ between the sides, so that the scan can load their events.

    All directories count: the authoritative one is chosen later, depending on the command.
    """
    in_workspace = _streams(workspace, {copy.conversation for copy in store.copies}, rules)
    in_store = _streams(store, in_workspace, rules)
    return frozenset(
        conversation for conversation, contents in in_store.items() if len(contents | in_workspace[conversation]) > 1
    )


def needs_contents(store: Snapshot, workspace: Snapshot) -> frozenset[str]:
    """Return the ids whose bytes the scan must load, because both sides may have edited the stream.

    One side has events that the other lacks, and has another text of a shared event; or they differ before their
    last event. Both sides have their events (`needs_events`).
    """
    in_workspace = _inspected(workspace)
    return frozenset(
        conversation
        for conversation, streams in _inspected(store).items()
        if any(
            is_edited_and_continued(stored, stream) or ends_match(stored, stream)
            for stored in streams
            for stream in in_workspace.get(conversation, ())
        )
    )


def needs_logs(store: Snapshot, workspace: Snapshot, rules: Rules) -> frozenset[str]:
    """Return the ids of the logs that differ between the sides, so that the scan can load their contents."""
    places = rules.format.places
    if places is None:
        return frozenset()
    stored = {copy.conversation: copy.files for copy in store.copies if places.is_log(copy.conversation)}
    return frozenset(
        copy.conversation
        for copy in workspace.copies
        if (files := stored.get(copy.conversation)) and files[0].digest != copy.files[0].digest
    )


def _inspected(side: Snapshot) -> dict[str, list[Stream]]:
    streams: dict[str, list[Stream]] = {}
    for copy in side.copies:
        if isinstance(copy.stream, Stream) and copy.stream.events is not None:
            streams.setdefault(copy.conversation, []).append(copy.stream)
    return streams


def _streams(side: Snapshot, conversations: Container[str], rules: Rules) -> dict[str, set[tuple[Digest | None, ...]]]:
    """Return the contents of some conversations' streams on a side, by the digests of their files."""
    names = rules.format.stream_files
    contents: dict[str, set[tuple[Digest | None, ...]]] = {}
    for copy in side.copies:
        if copy.conversation in conversations and isinstance(copy.stream, Stream):
            content = tuple([file.digest for file in copy.files if file.name in names])
            contents.setdefault(copy.conversation, set()).add(content)
    return contents


def _finish(context: PlanningContext, store: Snapshot, workspace: Snapshot) -> Plan:
    """Remove the steps that an undo, the guards, git or the selection refuse, with everything that needs them."""
    context.intents = {**context.edits.intents, **context.intents}
    steps = list(context.builder)
    actions = leave_undone(context, steps, store, workspace)
    actions = without_bulk(context, actions)
    actions, about = selected(context, actions)
    release_unsaved(context, steps, actions)
    counted, renewed = _counted(context, actions), context.sides.store_renewed
    acted = {(action.conversation, action.unit) for action in actions}
    plan = Plan(
        layout=context.policy.layout.value,
        actions=renumbered(actions),
        held=tuple(context.held),
        aside=tuple(context.aside),
        notes=tuple(context.notes),
        conflicts=tuple(
            conflict
            for conflict in context.conflicts
            if conflict.takes is None or (conflict.conversation, conflict.unit) in acted
        ),
        preserve=tuple(context.preserve),
        intents=tuple(sorted(context.intents.items())),
        asides=tuple(sorted(context.asides.items())),
        tombstones=tuple(sorted(context.tombstones.items())),
        states=states_of(counted, context.rules.format.places),
        counted=counted,
        outline=_outline(context, actions),
        displaced=frozenset(context.displaced),
        voided=_voided(context, about) if renewed else (),
        now_ns=context.now_ns,
        places=tuple((key, node.path) for key, node in sorted(context.present.items())),
        rooted=tuple(
            [
                view.id
                for view in context.views.values()
                if view.known_parent is not None and _is_rooted(context, view) and (about is None or view.id in about)
            ]
        ),
        about=about,
    )
    plan = without_git(without_obstructed(plan, store, workspace), context.policy.git_busy)
    return without_program(plan, workspace, context.rules)


def _voided(context: PlanningContext, about: frozenset[str] | None) -> tuple[str, ...]:
    """Return the conversations whose baseline ends with their store; a limited run concludes nothing about others.

    Without a recorded identity, only this keeps the next run from taking them for removed from a partly refilled store.
    """
    limits = about if context.baseline.store_identity is not None else None
    views = [view for view in context.views.values() if limits is None or view.id in limits]
    return tuple([view.id for view in views if context.is_void(view)])


def _is_rooted(context: PlanningContext, view: View) -> bool:
    """Tell whether a conversation with a parent loses it deliberately: it becomes a root, or it is removed.

    In the second case an archived directory of it that stays has a parent of its own. If the removed one doesn't state
    its parent, the parent stays known, because the directory may have to stay. While its parent is undecided, it loses
    none.
    """
    parentage = context.parentage[view.id]
    if parentage.parent is None and not parentage.frozen:
        return True
    return (
        view.id in context.edits.deleted
        and view.store.metadata is not None
        and view.store.metadata.parent.id is not None
    )


def _counted(context: PlanningContext, actions: Sequence[Action]) -> dict[str, str]:
    """Return the state under which each conversation is counted; of a limited plan, those named and those changed with
    them.

    ``changing`` and ``open`` are in sync except for the plan's own steps and items.
    """
    changing = {action.conversation for action in actions}
    wanted = named(context)
    counted = context.views.keys() if wanted is None else wanted | changing
    mentioned = {item.conversation for item in context.held + context.aside}
    states: dict[str, str] = {}
    for view in context.views.values():
        state = context.presences[view.id].state
        if state == "in-sync" and view.id in changing | mentioned:
            state = "changing" if view.id in changing else "open"
        if state != "gone" and view.id in counted:
            states[view.id] = state
    return states


def _outline(context: PlanningContext, actions: Sequence[Action]) -> tuple[Heading, ...]:
    """Return the conversations that the plan mentions, under their ancestors, and a fork after its source."""
    forks: dict[str, dict[str, str | None]] = {}
    spoken = {item.conversation for item in context.held + context.aside}
    for action in actions:
        spoken.add(context.forks.get(action.conversation, action.conversation))
        if action.conversation in context.forks:
            forks.setdefault(context.forks[action.conversation], {})[action.conversation] = action.title
    if not spoken:
        return ()
    shown = set(spoken)
    for conversation in reversed(tuple(context.tree.depths)):
        if conversation in shown:
            shown.add(context.tree.parent_of(conversation))
    outline = []
    for conversation in context.order:
        depth = context.tree.depths.get(conversation, 0)
        if conversation in shown:
            outline.append(Heading(conversation, context.views[conversation].title, depth))
        outline += [Heading(fork, title, depth + 1) for fork, title in forks.get(conversation, {}).items()]
    alone = sorted(
        conversation for conversation in spoken if conversation is not None and conversation not in context.views
    )
    return (*outline, *(Heading(conversation, conversation, 0) for conversation in alone))

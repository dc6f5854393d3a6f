"""The place of each conversation's directory in the workspace, and in the flat store (docs/design/placement.md).

Of several directories of one conversation, the one at the placement stays (docs/design/placement.md#rule-10).
`reconcile.planning.rules.views` chooses before parents are known. Here, with the tree, a duplicate that already is at
the placement is chosen instead, so that nothing has to move to a place that is about to be freed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import IntentKind
from reconcile.model.names import CHILDREN
from reconcile.model.options import Layout, Missing, Take
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import (
    ARCHIVE,
    EXTRA,
    METADATA,
    STREAM,
    WHOLE,
    Metadata,
    Partition,
    Side,
    Stream,
    is_archived,
)
from reconcile.model.units import units_of
from reconcile.planning.builder import Node, Put, Step
from reconcile.planning.rules.presence import Goal, removed_here
from reconcile.planning.rules.views import Lead
from reconcile.planning.steps.content import events_of, final_metadata, is_undecided, keeps_directories
from reconcile.planning.steps.removal import make_room, vacate

if TYPE_CHECKING:
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.presence import Presence
    from reconcile.planning.rules.views import SideView, View

NAME_LIMIT = 255


def place(context: PlanningContext, view: View) -> None:
    """Move a live conversation's directory to its placement, or create it there; parents come first."""
    main = view.workspace.main
    goal = context.presences[view.id].goal
    if view.id in context.edits.leaving:
        return
    if main is not None and goal is not Goal.REMOVE:
        container = context.container_of(view.id)
        _place_existing(context, view, main, container)
        context.present[view.id] = context.node(main)
        if _is_broken(context, view, container):
            context.broken.add(view.id)
    elif goal in (Goal.PROJECT, Goal.WAIT):
        presence = context.presences[view.id] = _may_return(context, view)
        if presence.goal is Goal.PROJECT:
            _project(context, view, presence)


def _is_broken(context: PlanningContext, view: View, container: str | None) -> bool:
    """Tell whether nothing may be created below a directory: it, or one above it, is incomplete, local or absent."""
    if view.local or context.presences[view.id].goal is Goal.HELD or not is_sound(context, container):
        return True
    return is_undecided(context.verdicts.get(view.id, {}).values())


def is_sound(context: PlanningContext, container: str | None) -> bool:
    """Tell whether a directory may be created in another's: that exists, complete and public with all above it
    (docs/design/intents.md#rule-25).
    """
    return container is None or (container in context.present and container not in context.broken)


def _place_existing(context: PlanningContext, view: View, main: Copy, container: str | None) -> None:
    node = context.node(main)
    if view.local or view.id in context.frozen:
        return
    if view.lead is Lead.NEITHER:
        context.displaced.add(view.id)
        return
    if container is not None and container not in context.present:
        message = "not moved, since its parent is not in this workspace"
        context.note(view.id, Reason.PARENT_ABSENT, message)
        return
    target = context.present[container] if container is not None else None
    reason = _reason_to_move(context, view, main, container)
    if reason is None and _is_leaving(context, node.container):
        reason = Reason.PARENT_GONE
    if reason is None:
        message = "moved by another program or a pull; it stays there"
        context.set_aside(view, WHOLE, Reason.DISPLACED, message)
        context.displaced.add(view.id)
        target, reason = node.container, Reason.TITLE_CHANGED
    name = _dirname(context, view, main)
    if node.is_at(target, "", name) or not _has_room(context, view, target, name):
        return
    renamed = node.is_at(target, "", node.name)
    why = Reason.TITLE_CHANGED if renamed else reason
    _move(context, view, _step(view, _kind(main), why), node, (target, "", name))


def _move(context: PlanningContext, view: View, step: Step, node: Node, at: tuple[Node | None, str, str]) -> None:
    """Move a directory to (container, prefix, name); a duplicate there is removed first, or the move waits for it.

    A directory with a git repository in it stays, and is held.
    """
    anchor = node.anchor()
    if anchor is not None:
        context.hold(view, WHOLE, Reason.OBSTRUCTED, anchor)
        return
    bare_directory = _bare_directory_at(context, view, node.side, at)
    waits = _is_inside(node, at) or (bare_directory is not None and not bare_directory.is_empty_tree())
    if waits or not vacate(context, view, at, node.side):
        context.blocked.append((view, step, node, at))
    else:
        context.builder.move(step, node, *at, _statements(context, view, step))


def _statements(context: PlanningContext, view: View, step: Step) -> list[int]:
    """Return the steps that must state the parent before a move to it.

    A nested directory without the key is a root (docs/design/placement.md#rule-2). After the move alone, nothing would
    tell that somebody removed the key.
    """
    if step.reason is not Reason.PARENT_CHANGED:
        return []
    steps = context.builder.steps_of(view.id)
    return [index for index in steps if context.builder.action(index).kind is Kind.SET_PARENT]


def _is_inside(node: Node, at: tuple[Node | None, str, str]) -> bool:
    return at[0] is not None and at[0].lies_below(node)


def move_blocked(context: PlanningContext) -> None:
    """Move the directories whose place was taken, after all removals; hold those that are still blocked."""
    for view, step, node, at in context.blocked:
        bare_directory = _bare_directory_at(context, view, node.side, at)
        if at[0] is not None and _is_inside(node, at):
            message = f"its new place {at[0].path} is inside its own directory"
            context.hold(view, WHOLE, Reason.OBSTRUCTED, message)
        elif bare_directory is not None and not bare_directory.is_empty_tree():
            _hold_for_bare_directory(context, view, bare_directory)
        elif vacate(context, view, at, node.side):
            stale = [context.node(copy) for copy in view.side(node.side).stale]
            left = stale if bare_directory is None else [bare_directory]
            after = {*context.builder.steps_of(view.id), *(use for each in left for use in context.builder.users(each))}
            context.builder.move(step, node, *at, after)


def _bare_directory_at(
    context: PlanningContext, view: View, side: Side, at: tuple[Node | None, str, str]
) -> Node | None:
    """Return the directory at a place that has no managed file of the conversation."""
    for copy in view.side(side).bare_directories:
        bare_directory = context.node(copy)
        if bare_directory.is_at(*at):
            return bare_directory
    return None


def _hold_for_bare_directory(context: PlanningContext, view: View, bare_directory: Node) -> None:
    message = f"{bare_directory.path} exists and has other files; move it away"
    context.hold(view, WHOLE, Reason.OBSTRUCTED, message)


def _is_leaving(context: PlanningContext, container: Node | None) -> bool:
    """Tell whether a directory is about to leave the tree, with everything that stays in it."""
    return container is not None and container.copy is not None and container.copy.conversation not in context.tree


def _kind(main: Copy) -> Kind:
    return Kind.UNARCHIVE if main.archived else Kind.MOVE


def _step(view: View, kind: Kind, reason: Reason) -> Step:
    return Step(kind=kind, conversation=view.id, title=view.title, reason=reason)


def _reason_to_move(context: PlanningContext, view: View, main: Copy, container: str | None) -> Reason | None:
    """Return why a directory moves to its placement (docs/design/placement.md#rule-6); None if it stays where it is."""
    agreed = None if context.is_void(view) else view.agreed
    if main.archived:
        by_hand = agreed and not is_archived(agreed.place) and context.policy.decisions.get(view.id) is not Take.STORE
        return Reason.ARCHIVED_HERE if by_hand else Reason.UNARCHIVED
    agreed_on = agreed.container if agreed else main.container
    if agreed_on != container:
        if context.tree.parent_is_gone(view.id):
            return Reason.PARENT_GONE
        if context.tree.breaks_cycle(view.id):
            return Reason.CYCLE_BROKEN
    if agreed is None or context.baseline.layout != context.policy.layout.value:
        return Reason.LAYOUT
    if agreed_on != container or main.partition is not Partition.LIVE:
        return Reason.PARENT_CHANGED
    if view.intent is not None:
        return Reason.LAYOUT
    return Reason.DUPLICATE if main.container == container else None


def _dirname(context: PlanningContext, view: View, main: Copy) -> str:
    return context.dirname_of(view, main, final_metadata(view, context.verdicts.get(view.id, {}).get(METADATA)))


def _has_room(context: PlanningContext, view: View, target: Node | None, name: str) -> bool:
    """Hold a conversation whose place is taken by something else, or can't exist."""
    if target is not None and target.copy is not None and target.copy.obstructed:
        message = f"{target.path}/{CHILDREN} is not a directory; move it away"
        context.hold(view, WHOLE, Reason.OBSTRUCTED, message)
        return False
    path = f"{target.path}/{CHILDREN}/{name}" if target is not None else name
    if not fits(path, context.policy, context.rules):
        message = (
            f"the path in the workspace would have {len(path)} characters; shorten the title, or use --layout flat"
        )
        context.hold(view, WHOLE, Reason.PATH_TOO_LONG, message)
        return False
    return True


def fits(path: str, policy: Policy, rules: Rules) -> bool:
    """Tell whether the file system allows a directory's path, with the files in it."""
    name = path.rpartition("/")[2]
    longest = max(map(len, rules.format.stream_files), default=0) + 32
    return (
        len(name.encode(errors="surrogateescape")) <= NAME_LIMIT
        and len(path.encode(errors="surrogateescape")) + longest <= policy.path_limit
    )


def _may_return(context: PlanningContext, view: View) -> Presence:
    """Decide whether a waiting or requested conversation can be created now (docs/design/intents.md#rule-24)."""
    presence = context.presences[view.id]
    container = context.container_of(view.id)
    ready = is_sound(context, container)
    intent = presence.intent
    awaited = intent.waits_for if intent else None
    if presence.goal is Goal.PROJECT:
        if ready and is_complete(view):
            return presence
        return replace(presence, goal=Goal.WAIT)
    if awaited is not None and awaited in context.tree:
        if context.policy.layout is Layout.NESTED and container != awaited:
            return removed_here(view, presence.case)
        if ready and awaited in context.present and is_complete(view):
            # Recorded before the first step: after an interrupted run, some files in an existing directory would
            # decide nothing.
            here = replace(intent, waits_for=None) if intent and view.workspace.bare_directories else intent
            return replace(presence, goal=Goal.PROJECT, reason=Reason.ANCESTOR_RETURNED, intent=here)
        return presence
    if not _was_here(context, awaited):
        return removed_here(view, presence.case)
    if ready and is_complete(view):
        # Recorded before the first step: after an interrupted run, its ancestor counts as removed.
        here = replace(intent, waits_for=None) if intent else None
        return replace(presence, goal=Goal.PROJECT, reason=Reason.ANCESTOR_LEFT, intent=here)
    return presence


def _was_here(context: PlanningContext, awaited: str | None) -> bool:
    """Tell whether a conversation that left the tree was here until then: neither local, nor removed, nor waiting
    itself.
    """
    intent = context.baseline.intents.get(awaited) if awaited else None
    public = intent is None or (intent.kind is IntentKind.PROJECTED and intent.waits_for is None)
    return awaited in context.baseline.agreed and public


def is_complete(view: View) -> bool:
    """Tell whether the store has all required units."""
    return view.store.has(view.format.required) and view.store.faulty(METADATA) is None


def _project(context: PlanningContext, view: View, presence: Presence, partition: str = "") -> None:
    """Create a conversation's directory in the workspace, or in a partition of it, from the store's copy."""
    step = Step(
        kind=Kind.PROJECT,
        conversation=view.id,
        title=view.title,
        reason=presence.why,
        case=presence.case,
        events=events_of(view.store),
    )
    published = view.agreed.units if view.agreed is not None else {}
    units = view.store.units if context.baseline.is_of_remote else published
    extras = {unit.removeprefix(EXTRA) for unit in units}
    _make(context, view, step, context.container_of(view.id), extras, partition)


def project_fork(context: PlanningContext, fork: str) -> None:
    """Copy a new fork to the workspace if everything is copied there: the next run would find it missing."""
    source = context.views[context.forks[fork]]
    nested = context.policy.layout is Layout.NESTED and source.id in context.tree
    container = source.id if nested else None
    if (
        fork in context.present
        or context.policy.missing is not Missing.REPROJECT
        or source.local
        or not is_sound(context, container)
    ):
        return
    created = next(action for action in context.builder if action.conversation == fork)
    step = Step(
        kind=Kind.PROJECT,
        conversation=fork,
        title=created.title,
        reason=Reason.REPROJECTED,
        case=3,
        events=created.events,
    )
    _make(context, source, step, container, set())


def _make(
    context: PlanningContext, view: View, step: Step, container: str | None, extras: set[str], partition: str = ""
) -> None:
    """Create a directory with the store's managed files, and some extras; hold ``view`` if there is no room."""
    target = context.present[container] if container is not None else None
    name = context.rules.format.dirname(step.conversation, step.title)
    if not _has_room(context, view, target, name):
        return
    home = context.homes[step.conversation]
    fmt = context.rules.format
    wanted = (fmt.metadata_file, *fmt.stream_files, *extras)
    if (places := fmt.places) is not None:
        now = context.now_ns
        files = [replace(file, mtime_ns=places.time_here(file.mtime_ns, now)) for file in home.files.values()]
        puts = [Put(file, home) for file in files]
    else:
        puts = [Put(file, home) for file in home.files.values() if file.name in wanted]
    bare_directory = _bare_directory_at(context, view, Side.WORKSPACE, (target, partition, name))
    if bare_directory is not None:
        kept = {file.name: file.digest for file in home.files.values()}
        if any(kept.get(file.name, "") != file.digest for file in bare_directory.files.values()):
            _hold_for_bare_directory(context, view, bare_directory)
            return
    if bare_directory is None or bare_directory.is_empty_tree():
        node = Node(Side.WORKSPACE, target, partition, name)
        owner = None if places is None else places.owner(step.conversation)
        # Where its owner may not go, it doesn't go either.
        after = context.builder.placing(context.present[owner]) if owner in context.present else ()
        make_room(context, step.conversation)
        context.builder.create(step, node, puts, after)
    else:
        node = bare_directory
        _fill(context, step, node, puts)
    context.present[step.conversation] = node


def _fill(context: PlanningContext, step: Step, bare_directory: Node, puts: list[Put]) -> None:
    """Write the files into a directory that exists because of its children, unit by unit."""
    units: dict[str, list[Put]] = {}
    for put in puts:
        units.setdefault(context.rules.format.unit_of(put.file.name) or WHOLE, []).append(put)
    for unit, files in units.items():
        events = step.events if unit == STREAM else None
        context.builder.write(replace(step, unit=unit, events=events), bare_directory, files)


def archive(context: PlanningContext, view: View) -> None:
    """Move a directory to the workspace's `.archive/` if the store has the conversation archived.

    This also applies below another archived one: a run may have been interrupted between the parent's move and its own.
    """
    if not view.archived:
        return
    main, presence = view.workspace.main, context.presences[view.id]
    if presence.goal is Goal.PROJECT and is_complete(view):
        _project(context, view, presence, f"{ARCHIVE}/")
    if main is None or view.local or view.id in context.edits.leaving:
        return
    node = context.node(main)
    if node.prefix == f"{ARCHIVE}/" or view.id in context.frozen:
        return
    _move(context, view, _step(view, Kind.ARCHIVE, Reason.ARCHIVED), node, (None, f"{ARCHIVE}/", node.name))


def place_in_store(context: PlanningContext, view: View) -> None:
    """Keep the store flat, its directory names equal to the titles, and archived what a commit has archived."""
    main = view.store.main
    if main is None or context.parentage[view.id].frozen or view.id in context.edits.deleted:
        return
    node = context.homes[view.id]
    prefix = f"{ARCHIVE}/" if view.archived_in_store else ""
    name = _dirname(context, view, main)
    if node.is_at(None, prefix, name):
        return
    if view.archived_in_store != main.archived:
        kind = Kind.UNARCHIVE if main.archived else Kind.ARCHIVE
        why = Reason.DECIDED if view.id in context.policy.decisions else Reason.LATER_COMMIT
        _move(context, view, _step(view, kind, why), node, (None, prefix, name))
        return
    renamed = node.container is None and node.name != name
    reason = Reason.TITLE_CHANGED if renamed else Reason.FLATTENED
    _move(context, view, _step(view, Kind.MOVE, reason), node, (None, prefix, name))


def choose_directories(context: PlanningContext) -> None:
    """Choose the directory of each conversation that stays, parents before children."""
    for conversation in context.order:
        view = context.views[conversation]
        several = view.store.stale or view.workspace.stale
        if several and not keeps_directories(context.verdicts.get(conversation, {}).values()):
            workspace = view.workspace if view.local else _chosen(context, view, view.workspace)
            view = context.views[conversation] = replace(
                view, store=_chosen(context, view, view.store), workspace=workspace
            )
        if view.store.main is not None:
            context.homes[conversation] = context.node(view.store.main)


def _chosen(context: PlanningContext, view: View, side: SideView) -> SideView:
    """Return the side with a valid directory at the placement as the one that stays, if there is one."""
    for copy in side.stale:
        main = side.main
        assert main is not None  # noqa: S101 - of several directories, one stays
        if copy.path == _placement(context, view, main) and _may_stay(copy, main):
            others = sorted((main, *(c for c in side.stale if c is not copy)), key=lambda c: c.path)
            return replace(side, main=copy, stale=tuple(others), own=units_of(copy, context.rules, None))
    return side


def _placement(context: PlanningContext, view: View, main: Copy) -> str | None:
    """Return the place of the directory that stays; None if it isn't known."""
    name = context.dirname_of(view, main, final_metadata(view, context.verdicts.get(view.id, {}).get(METADATA)))
    if main.archived:
        return f"{ARCHIVE}/{name}"
    container = context.container_of(view.id) if main.side is Side.WORKSPACE else None
    if container is None:
        return name
    above = context.views[container].workspace.main
    return f"{above.path}/{CHILDREN}/{name}" if above is not None else None


def _may_stay(copy: Copy, main: Copy) -> bool:
    """Tell whether a directory is valid, or contains the one that would stay, which then can't take its place."""
    sound = isinstance(copy.metadata, Metadata) and isinstance(copy.stream, Stream)
    return sound or main.path.startswith(f"{copy.path}/")

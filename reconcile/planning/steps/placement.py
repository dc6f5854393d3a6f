"""Where each conversation's directory goes in the workspace, and in the flat store (docs/design/placement.md).

Of several directories of one conversation, the one at the placement stays (docs/design/placement.md#rule-10).
`reconcile.planning.rules.views` chooses before parents are known; here, with the tree, a duplicate that already lies at
the placement takes over, so that nothing has to move to a place that is taken by what is going to be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import IntentKind
from reconcile.model.names import CHILDREN
from reconcile.model.options import Layout, Missing
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import ARCHIVE, EXTRA, METADATA, STREAM, WHOLE, Metadata, Partition, Side, Stream
from reconcile.model.units import units_of
from reconcile.planning.builder import Node, Put, Step
from reconcile.planning.rules.presence import Goal, removed_here
from reconcile.planning.rules.views import Lead
from reconcile.planning.steps.content import events_of, final_metadata, is_undecided, keeps_directories
from reconcile.planning.steps.removal import vacate

if TYPE_CHECKING:
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.model.units import Rules
    from reconcile.planning.context import Board
    from reconcile.planning.rules.presence import Presence
    from reconcile.planning.rules.views import SideView, View

NAME_LIMIT = 255


def place(board: Board, view: View) -> None:
    """Move a live conversation's directory to its placement, or make it there; parents come first."""
    main = view.workspace.main
    goal = board.presences[view.id].goal
    if view.id in board.edits.leaving:
        return
    if main is not None and goal is not Goal.REMOVE:
        container = board.container_of(view.id)
        _place_existing(board, view, main, container)
        board.present[view.id] = board.node(main)
        if _is_broken(board, view, container):
            board.broken.add(view.id)
    elif goal in (Goal.PROJECT, Goal.WAIT):
        presence = board.presences[view.id] = _may_return(board, view)
        if presence.goal is Goal.PROJECT:
            _project(board, view, presence)


def _is_broken(board: Board, view: View, container: str | None) -> bool:
    """Tell whether a directory isn't complete, or is local, or one above it is so, or isn't there: nothing new is made
    below it.
    """
    if view.local or board.presences[view.id].goal is Goal.HELD or not is_sound(board, container):
        return True
    return view.id not in board.unchanged and is_undecided(board.verdicts.get(view.id, {}).values())


def is_sound(board: Board, container: str | None) -> bool:
    """Tell whether a directory may be made in another's: that is there, complete and public with all above it
    (docs/design/intents.md#rule-25).
    """
    return container is None or (container in board.present and container not in board.broken)


def _place_existing(board: Board, view: View, main: Copy, container: str | None) -> None:
    node = board.node(main)
    if view.local or view.id in board.frozen:
        return
    if view.lead is Lead.NEITHER:
        board.displaced.add(view.id)
        return
    if container is not None and container not in board.present:
        message = "stays where it is: its parent isn't in this workspace"
        board.note(view.id, Reason.PARENT_ABSENT, message)
        return
    target = board.present[container] if container is not None else None
    if main.container == container and node.is_at(target, "", _dirname(board, view, main)):
        return
    reason = _reason_to_move(board, view, main, container)
    if reason is None and _is_leaving(board, node.container):
        reason = Reason.PARENT_GONE
    if reason is None:
        message = "somebody else moved it; it stays there"
        board.set_aside(view, WHOLE, Reason.DISPLACED, message)
        board.displaced.add(view.id)
        target, reason = node.container, Reason.TITLE_CHANGED
    name = _dirname(board, view, main)
    if node.is_at(target, "", name) or not _has_room(board, view, target, name):
        return
    renamed = node.is_at(target, "", node.name)
    why = Reason.TITLE_CHANGED if renamed else reason
    _move(board, view, _step(view, _kind(main), why), node, (target, "", name))


def _move(board: Board, view: View, step: Step, node: Node, at: tuple[Node | None, str, str]) -> None:
    """Move a directory to (container, prefix, name); a duplicate there goes first, or the move waits for it.

    One with a git repository in it stays, and is held.
    """
    anchor = node.anchor()
    if anchor is not None:
        board.hold(view, WHOLE, Reason.OBSTRUCTED, anchor)
        return
    husk = _husk_at(board, view, node.side, at)
    waits = _is_inside(node, at) or (husk is not None and not husk.is_empty_tree())
    if waits or not vacate(board, view, at, node.side):
        board.blocked.append((view, step, node, at))
    else:
        board.draft.move(step, node, *at)


def _is_inside(node: Node, at: tuple[Node | None, str, str]) -> bool:
    return at[0] is not None and at[0].lies_below(node)


def move_blocked(board: Board) -> None:
    """Move what found its place taken, now that everything has left that does; what is still blocked stays."""
    for view, step, node, at in board.blocked:
        husk = _husk_at(board, view, node.side, at)
        if at[0] is not None and _is_inside(node, at):
            message = f"its new place lies inside itself, in {at[0].path}"
            board.hold(view, WHOLE, Reason.OBSTRUCTED, message)
        elif husk is not None and not husk.is_empty_tree():
            _hold_for_husk(board, view, husk)
        elif vacate(board, view, at, node.side):
            after = {*board.draft.steps_of(view.id), *(board.draft.users(husk) if husk is not None else ())}
            board.draft.move(step, node, *at, after)


def _husk_at(board: Board, view: View, side: Side, at: tuple[Node | None, str, str]) -> Node | None:
    """Return the directory at a place that has no managed file of the conversation; an empty one is no obstacle."""
    for copy in view.side(side).husks:
        husk = board.node(copy)
        if husk.is_at(*at):
            return husk
    return None


def _hold_for_husk(board: Board, view: View, husk: Node) -> None:
    message = f"{husk.path} is there already, with something else in it; move it away"
    board.hold(view, WHOLE, Reason.OBSTRUCTED, message)


def _is_leaving(board: Board, container: Node | None) -> bool:
    """Tell whether a directory is on its way out of the tree, with everything that stays in it."""
    return container is not None and container.copy is not None and container.copy.conversation not in board.tree


def _kind(main: Copy) -> Kind:
    return Kind.UNARCHIVE if main.archived else Kind.MOVE


def _step(view: View, kind: Kind, reason: Reason) -> Step:
    return Step(kind=kind, conversation=view.id, title=view.title, reason=reason)


def _reason_to_move(board: Board, view: View, main: Copy, container: str | None) -> Reason | None:
    """Return why a directory moves to its placement (docs/design/placement.md#rule-6); None: it stays where it is."""
    if main.archived:
        return Reason.UNARCHIVED
    agreed = None if board.is_void(view) else view.agreed
    agreed_on = agreed.container if agreed else main.container
    if agreed_on != container:
        if board.tree.parent_is_gone(view.id):
            return Reason.PARENT_GONE
        if board.tree.breaks_cycle(view.id):
            return Reason.CYCLE_BROKEN
    if agreed is None or board.baseline.layout != board.policy.layout.value:
        return Reason.LAYOUT
    if agreed_on != container or main.partition is not Partition.LIVE:
        return Reason.PARENT_CHANGED
    if view.intent is not None:
        return Reason.LAYOUT
    return Reason.DUPLICATE if main.container == container else None


def _dirname(board: Board, view: View, main: Copy) -> str:
    return board.dirname_of(view, main, final_metadata(view, board.verdicts.get(view.id, {}).get(METADATA)))


def _has_room(board: Board, view: View, target: Node | None, name: str) -> bool:
    """Hold a conversation whose place is taken by something else, or can't exist."""
    if target is not None and target.copy is not None and target.copy.obstructed:
        message = f"{target.path}/{CHILDREN} is no directory; move it away"
        board.hold(view, WHOLE, Reason.OBSTRUCTED, message)
        return False
    path = f"{target.path}/{CHILDREN}/{name}" if target is not None else name
    if not fits(path, board.policy, board.rules):
        board.hold(view, WHOLE, Reason.PATH_TOO_LONG, f"the path would have {len(path)} characters")
        return False
    return True


def fits(path: str, policy: Policy, rules: Rules) -> bool:
    """Tell whether a directory's path is no longer than the file system takes, with what is put into it."""
    name = path.rpartition("/")[2]
    longest = max(map(len, rules.format.stream_files), default=0) + 32
    return (
        len(name.encode(errors="surrogateescape")) <= NAME_LIMIT
        and len(path.encode(errors="surrogateescape")) + longest <= policy.path_limit
    )


def _may_return(board: Board, view: View) -> Presence:
    """Decide whether what waits for an ancestor, or was asked for, can be made now (docs/design/intents.md#rule-24)."""
    presence = board.presences[view.id]
    container = board.container_of(view.id)
    ready = is_sound(board, container)
    intent = presence.intent
    awaited = intent.waits_for if intent else None
    if presence.goal is Goal.PROJECT:
        if ready and is_complete(view):
            return presence
        return replace(presence, goal=Goal.WAIT)
    if awaited is not None and awaited in board.tree:
        if board.policy.layout is Layout.NESTED and container != awaited:
            return removed_here(view, presence.case)
        if ready and awaited in board.present and is_complete(view):
            # Said ahead: after a run cut short, some files of it in a directory that was there would decide nothing.
            here = replace(intent, waits_for=None) if intent and view.workspace.husks else intent
            return replace(presence, goal=Goal.PROJECT, reason=Reason.ANCESTOR_RETURNED, intent=here)
        return presence
    if not _was_here(board, awaited):
        return removed_here(view, presence.case)
    if ready and is_complete(view):
        # Said ahead: after a run cut short, its ancestor counts as removed, and nobody could tell that it was here.
        here = replace(intent, waits_for=None) if intent else None
        return replace(presence, goal=Goal.PROJECT, reason=Reason.ANCESTOR_LEFT, intent=here)
    return presence


def _was_here(board: Board, awaited: str | None) -> bool:
    """Tell whether what left the tree was here until then: neither local, nor removed, nor waiting itself."""
    intent = board.baseline.intents.get(awaited) if awaited else None
    public = intent is None or (intent.kind is IntentKind.PROJECTED and intent.waits_for is None)
    return awaited in board.baseline.agreed and public


def is_complete(view: View) -> bool:
    """Tell whether the store has all that makes a conversation."""
    return view.store.has(view.format.required) and view.store.faulty(METADATA) is None


def _project(board: Board, view: View, presence: Presence, partition: str = "") -> None:
    """Make a conversation's directory in the workspace, or a partition of it, from the store's copy."""
    step = Step(
        kind=Kind.PROJECT,
        conversation=view.id,
        title=view.title,
        reason=presence.why,
        case=presence.case,
        events=events_of(view.store),
    )
    extras = {unit.removeprefix(EXTRA) for unit in view.agreed.units} if view.agreed is not None else set()
    _make(board, view, step, board.container_of(view.id), extras, partition)


def project_fork(board: Board, fork: str) -> None:
    """Have a new fork follow its source where everything is projected: the next run would find it missing."""
    source = board.views[board.forks[fork]]
    nested = board.policy.layout is Layout.NESTED and source.id in board.tree
    container = source.id if nested else None
    if board.policy.missing is not Missing.REPROJECT or source.local or not is_sound(board, container):
        return
    made = next(action for action in board.draft if action.conversation == fork)
    step = Step(
        kind=Kind.PROJECT,
        conversation=fork,
        title=made.title,
        reason=Reason.REPROJECTED,
        case=3,
        events=made.events,
    )
    _make(board, source, step, container, set())


def _make(board: Board, view: View, step: Step, container: str | None, extras: set[str], partition: str = "") -> None:
    """Make a directory with the managed files of the store's, and some extras; ``view`` answers for want of room."""
    target = board.present[container] if container is not None else None
    name = board.rules.format.dirname(step.conversation, step.title)
    if not _has_room(board, view, target, name):
        return
    home = board.homes[step.conversation]
    fmt = board.rules.format
    wanted = (fmt.metadata_file, *fmt.stream_files, *extras)
    everything = fmt.places is not None
    puts = [Put(file, home) for file in home.files.values() if everything or file.name in wanted]
    husk = _husk_at(board, view, Side.WORKSPACE, (target, partition, name))
    if husk is not None:
        kept = {file.name: file.digest for file in home.files.values()}
        if any(kept.get(file.name, "") != file.digest for file in husk.files.values()):
            _hold_for_husk(board, view, husk)
            return
    if husk is None or husk.is_empty_tree():
        node = Node(Side.WORKSPACE, target, partition, name)
        board.draft.create(step, node, puts)
    else:
        node = husk
        _fill(board, step, node, puts)
    board.present[step.conversation] = node


def _fill(board: Board, step: Step, husk: Node, puts: list[Put]) -> None:
    """Put the files into a directory that is there because of its children, unit by unit."""
    units: dict[str, list[Put]] = {}
    for put in puts:
        units.setdefault(board.rules.format.unit_of(put.file.name) or WHOLE, []).append(put)
    for unit, files in units.items():
        events = step.events if unit == STREAM else None
        board.draft.write(replace(step, unit=unit, events=events), husk, files)


def archive(board: Board, view: View) -> None:
    """Follow the store's partition: what is archived there goes into the workspace's `.archive/`, by itself.

    Also from below another one there: it lies so where a run was killed between the parent's move and its own.
    """
    if not view.archived:
        return
    main, store, presence = view.workspace.main, view.store.main, board.presences[view.id]
    if presence.goal is Goal.PROJECT and is_complete(view):
        _project(board, view, presence, f"{ARCHIVE}/")
    if main is None or store is None or view.local or view.id in board.edits.leaving:
        return
    node = board.node(main)
    if view.lead is Lead.NEITHER or node.prefix == f"{ARCHIVE}/" or view.id in board.frozen:
        return
    _move(board, view, _step(view, Kind.ARCHIVE, Reason.ARCHIVED), node, (None, f"{ARCHIVE}/", node.name))


def place_in_store(board: Board, view: View) -> None:
    """Keep the store flat, its directory names in step with the titles, and archived what a commit has archived."""
    main = view.store.main
    if main is None or board.parentage[view.id].frozen or view.id in board.edits.deleted:
        return
    node = board.homes[view.id]
    prefix = f"{ARCHIVE}/" if view.archived_in_store else ""
    name = _dirname(board, view, main)
    if node.is_at(None, prefix, name):
        return
    if view.archived_in_store != main.archived:
        kind = Kind.UNARCHIVE if main.archived else Kind.ARCHIVE
        why = Reason.DECIDED if view.id in board.policy.decisions else Reason.LATER_COMMIT
        _move(board, view, _step(view, kind, why), node, (None, prefix, name))
        return
    renamed = node.container is None and node.name != name
    reason = Reason.TITLE_CHANGED if renamed else Reason.FLATTENED
    _move(board, view, _step(view, Kind.MOVE, reason), node, (None, prefix, name))


def choose_directories(board: Board) -> None:
    """Settle which directory of each conversation stays, parents before children."""
    for conversation in board.order:
        view = board.views[conversation]
        several = view.store.stale or view.workspace.stale
        if several and not keeps_directories(board.verdicts.get(conversation, {}).values()):
            workspace = view.workspace if view.local else _chosen(board, view, view.workspace)
            view = board.views[conversation] = replace(
                view, store=_chosen(board, view, view.store), workspace=workspace
            )
        if view.store.main is not None:
            board.homes[conversation] = board.node(view.store.main)


def _chosen(board: Board, view: View, side: SideView) -> SideView:
    """Return the side with a sound directory at the placement as the one that stays, if there is one."""
    for copy in side.stale:
        main = side.main
        assert main is not None  # noqa: S101 - of several directories, one stays
        if copy.path == _placement(board, view, main) and _may_stay(copy, main):
            others = sorted((main, *(c for c in side.stale if c is not copy)), key=lambda c: c.path)
            return replace(side, main=copy, stale=tuple(others), own=units_of(copy, board.rules, None))
    return side


def _placement(board: Board, view: View, main: Copy) -> str | None:
    """Return where the directory that stays belongs, None where that can't be told."""
    name = board.dirname_of(view, main, final_metadata(view, board.verdicts.get(view.id, {}).get(METADATA)))
    if main.archived:
        return f"{ARCHIVE}/{name}"
    container = board.container_of(view.id) if main.side is Side.WORKSPACE else None
    if container is None:
        return name
    above = board.views[container].workspace.main
    return f"{above.path}/{CHILDREN}/{name}" if above is not None else None


def _may_stay(copy: Copy, main: Copy) -> bool:
    """Tell whether a directory is sound, or has the one that would stay below it, which can't take its place."""
    sound = isinstance(copy.metadata, Metadata) and isinstance(copy.stream, Stream)
    return sound or main.path.startswith(f"{copy.path}/")

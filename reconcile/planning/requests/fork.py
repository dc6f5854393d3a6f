"""The plan of ``fork``: a child with a filtered copy of its source's events (docs/commands.md#reconcile-fork).

JP activates the fork, and decides what configuration it inherits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.commands import typed
from reconcile.model.options import Layout
from reconcile.model.plan import Heading, Kind, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Fault, File, Side
from reconcile.model.units import joined_digest
from reconcile.planning.builder import Node, PlanBuilder, Put, Step
from reconcile.planning.context import RefusedError
from reconcile.planning.filters import renumbered
from reconcile.planning.steps.content import fork_continuation, is_forked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.policy import ForkRequest
    from reconcile.model.snapshot import Content
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View


def plan_branch(context: PlanningContext, request: ForkRequest, contents: Mapping[str, Content]) -> Plan:
    """Return the plan that creates the fork; ``contents`` are the managed files of the source in the store.

    It is placed in its source's directory if the workspace has that, unless it is to be local or its source is.

    Raises:
        RefusedError: the source isn't complete in the store, a file of it can't be read, or it can't be cut.
    """
    view = context.views[request.id]
    if request.continuation is not None:
        return _plan_of_continuation(context, view, request.continuation)
    files = _files(context, view, request, contents)
    new = context.free_id(set(context.views))
    title = request.title if request.title is not None else view.title
    name = context.rules.format.dirname(new, title)
    builder = PlanBuilder()
    home = Node(Side.STORE, None, "", name)
    puts = [
        Put(File(file, len(content), context.now_ns, context.rules.digest(content)), content=content)
        for file, content in files.items()
    ]
    after = _count(context, view, files)
    local = request.local or view.local
    builder.create(_step(Kind.FORK, new, title, after), home, puts)
    intent = Intent(IntentKind.LOCAL) if local else None
    if not local and _takes_children(context, view):
        intent = Intent(IntentKind.PROJECTED)
        container = context.node(view.workspace.main) if view.workspace.main and _nests(context, view) else None
        node = Node(Side.WORKSPACE, container, "", name)
        builder.create(_step(Kind.PROJECT, new, title, after), node, [Put(put.file, home) for put in puts])
    return Plan(
        layout=context.policy.layout.value,
        actions=renumbered(builder),
        # This includes a fork that is copied to the workspace at once: after an interruption the next run does that.
        intents=((new, intent),) if intent is not None else (),
        outline=(Heading(view.id, view.title, 0), Heading(new, title, 1)),
        policy=context.policy,
        now_ns=context.now_ns,
        about=frozenset((new,)),
    )


def _plan_of_continuation(context: PlanningContext, view: View, files: Mapping[str, bytes]) -> Plan:
    """Return the plan that creates a child from a continuation that a merge of git leaves out, unless there is one."""
    metadata = view.store.metadata or view.workspace.metadata
    if metadata is None:
        raise RefusedError(f"{view.id} has no valid metadata", f"see what is wrong: reconcile status {typed(view.id)}")
    described = [
        (File(name, len(files[name]), context.now_ns, context.rules.digest(files[name])), files[name])
        for name in context.rules.format.stream_files
        if name in files
    ]
    about: frozenset[str] = frozenset()
    if not is_forked(context, view, joined_digest(tuple(file for file, _ in described))):
        puts = [Put(file, content=content) for file, content in described]
        fork_continuation(context, view, metadata, puts, _count(context, view, files), None)
        about = frozenset(context.forks)
    return Plan(
        layout=context.policy.layout.value,
        actions=renumbered(context.builder),
        intents=tuple((new, context.intents[new]) for new in about if new in context.intents),
        policy=context.policy,
        now_ns=context.now_ns,
        about=about,
    )


def _files(
    context: PlanningContext, view: View, request: ForkRequest, contents: Mapping[str, Content]
) -> dict[str, bytes]:
    fmt = context.rules.format
    way_on = f"run reconcile, or see what is wrong: reconcile status {typed(view.id)}"
    known: dict[str, bytes] = {}
    for name, content in contents.items():
        if isinstance(content, Fault):
            raise RefusedError(f"{view.id}: {name}: {content.words}", way_on)
        known[name] = content
    whole = view.store.digest(METADATA) and view.store.digest(STREAM)
    if not whole or fmt.metadata_file not in known:
        state = "not" if view.store.main is None else "incomplete"
        raise RefusedError(f"{view.id} is {state} in the store", way_on)
    metadata = fmt.forked_metadata(known[fmt.metadata_file], parent=view.id, title=request.title)
    stream = {name: content for name, content in known.items() if name in fmt.stream_files}
    try:
        return {fmt.metadata_file: metadata, **fmt.cut_stream(stream, request.part)}
    except ValueError as error:
        raise RefusedError(f"{view.id}: its events can't be filtered: {error}") from None


def _count(context: PlanningContext, view: View, files: Mapping[str, bytes]) -> int:
    fmt = context.rules.format
    stream = fmt.read_stream({name: files[name] for name in fmt.stream_files if name in files}, events=False)
    if isinstance(stream, Fault):
        raise RefusedError(f"{view.id}: {stream.file}: {stream.words}")
    return stream.count


def _takes_children(context: PlanningContext, view: View) -> bool:
    """Tell whether a child may be written below the source: the workspace has it, complete, public, and as in the
    store.
    """
    main = view.workspace.main
    above = context.tree.ancestors(view.id) if _nests(context, view) else ()
    public = not any(context.views[ancestor].local for ancestor in above)
    whole = view.workspace.has(view.format.required) and not view.workspace.faults
    return main is not None and whole and public and not main.archived and not main.obstructed


def _nests(context: PlanningContext, view: View) -> bool:
    return context.policy.layout is Layout.NESTED and view.id in context.tree


def _step(kind: Kind, conversation: str, title: str | None, events: int) -> Step:
    return Step(kind=kind, conversation=conversation, title=title, reason=Reason.FORKED, events=(0, events))

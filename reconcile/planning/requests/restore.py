"""The plan that restores an earlier version on both sides, as the newest (docs/design/run.md#rule-53)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import Verb
from reconcile.model.plan import Heading, Kind, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Metadata, Side
from reconcile.planning.builder import Node, PlanBuilder, Put, Step, nodes_of
from reconcile.planning.filters import renumbered, without_git
from reconcile.planning.rules.content import is_partly_here
from reconcile.planning.rules.views import views_of
from reconcile.planning.steps.placement import fits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.past_run import SavedUnit
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.rules.views import View


class NoPlaceError(ValueError):
    """The version can't be restored; the message says why."""


def plan_restore(
    units: Sequence[SavedUnit],
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    policy: Policy,
    rules: Rules,
    now_ns: int,
) -> Plan:
    """Return the plan that writes these units of one conversation to both sides; their mtime is now.

    A conversation that no longer exists is created in the store alone. Metadata and stream must be among the units,
    unless its format has fixed places.

    Raises:
        NoPlaceError: it no longer exists, and the units don't suffice to create it.
    """
    conversation = units[0].conversation
    builder = PlanBuilder()
    known = any(copy.conversation == conversation for copy in (*store.copies, *workspace.copies))
    view = views_of(store, workspace, baseline, rules, {conversation})[conversation] if known else None
    title = view.title if view is not None else next((unit.title for unit in units if unit.title), None)
    if view is None or view.store.main is None:
        _make(builder, units, title, rules, now_ns)
    else:
        nodes = nodes_of(store)
        _write(builder, nodes[view.store.main.path], units, Kind.COPY, view, rules, now_ns)
        _rename(builder, nodes, view.store.main, units, policy, rules)
        if view.workspace.main is not None and not view.local and not is_partly_here(view, policy):
            there = [unit for unit in units if not unit.unit.startswith(EXTRA) or unit.unit in view.workspace.units]
            nodes = nodes_of(workspace)
            _write(builder, nodes[view.workspace.main.path], there, Kind.PROJECT, view, rules, now_ns)
            _rename(builder, nodes, view.workspace.main, units, policy, rules)
    actions = renumbered(builder)
    # If both sides have this version already, what was set aside is still as it was.
    aside = [key for key in sorted(baseline.asides) if key[0] == conversation] if actions else []
    plan = Plan(
        layout=policy.layout.value,
        actions=actions,
        outline=(Heading(conversation, title, 0),),
        asides=tuple((key, None) for key in aside),
        waiting=(((conversation, Verb.REMOVE), None),) if (conversation, Verb.REMOVE) in baseline.waiting else (),
        policy=policy,
        now_ns=now_ns,
        about=frozenset((conversation,)),
    )
    return without_git(plan, policy.git_busy)


def _make(builder: PlanBuilder, units: Sequence[SavedUnit], title: str | None, rules: Rules, now_ns: int) -> None:
    """Create a conversation that the store no longer has; a record with a fixed place has no units that it needs."""
    name = units[0].conversation
    if rules.format.places is None:
        name = units[0].dirname
        if not {METADATA, STREAM} <= {unit.unit for unit in units if not unit.partial}:
            raise NoPlaceError("only a part of the conversation, which is not in the store any more")
    home = Node(Side.STORE, None, "", name)
    puts = [put for unit in units for put in _puts(unit, now_ns)]
    builder.create(_step(units[0].conversation, title, Kind.COPY, WHOLE), home, puts)


def _write(
    builder: PlanBuilder, node: Node, units: Sequence[SavedUnit], kind: Kind, view: View, rules: Rules, now_ns: int
) -> None:
    """Replace units of an existing directory, if they differ."""
    for unit in units:
        managed = rules.format.stream_files if unit.unit == STREAM and not unit.partial else ()
        gone = [name for name in managed if name in node.files and name not in unit.files]
        there = {name: node.files[name].digest for name in unit.files if name in node.files}
        if gone or there != {name: kept.digest for name, kept in unit.files.items()}:
            builder.write(_step(view.id, view.title, kind, unit.unit), node, _puts(unit, now_ns), removes=gone)


def _rename(
    builder: PlanBuilder,
    nodes: Mapping[str, Node],
    main: Copy,
    units: Sequence[SavedUnit],
    policy: Policy,
    rules: Rules,
) -> None:
    """Rename a directory whose title changes (docs/design/placement.md#rule-5), so that no later run builds on this.

    If another directory is in the way, a git repository is in it, or the name is too long, the next run reports that.
    """
    title = next((unit.title for unit in units if unit.unit == METADATA), None)
    if title is None or not isinstance(main.metadata, Metadata) or main.metadata.title == title:
        return
    node, name = nodes[main.path], rules.format.dirname(main.conversation, title)
    at = node.container, node.prefix, name
    is_taken = any(other.is_at(*at) for other in nodes.values())
    path = f"{node.path.removesuffix(node.name)}{name}"
    if not is_taken and node.anchor() is None and fits(path, policy, rules):
        step = Step(kind=Kind.MOVE, conversation=main.conversation, title=title, reason=Reason.TITLE_CHANGED)
        builder.move(step, node, *at)


def _puts(unit: SavedUnit, now_ns: int) -> list[Put]:
    return [
        Put(replace(kept.named(name), mtime_ns=now_ns), content=kept.content, kept=kept.vault)
        for name, kept in unit.files.items()
    ]


def _step(conversation: str, title: str | None, kind: Kind, unit: str) -> Step:
    return Step(kind=kind, conversation=conversation, title=title, reason=Reason.RESTORED, unit=unit)

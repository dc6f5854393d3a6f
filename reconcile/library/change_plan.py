"""Plans a change of one conversation: first the writes to the store, then the actions of a run after them.

The planner makes the second part from a snapshot of the store as it will be after the writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.engine.dispatch import plan_for_policy
from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Copy, Fault, File, Partition, Side, Stream
from reconcile.model.units import units_of
from reconcile.planning.builder import Node, PlanBuilder, Put, Step
from reconcile.planning.filters import renumbered
from reconcile.planning.rules.views import views_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from reconcile.engine.session import Session
    from reconcile.library.shared_index import PlanningBasis
    from reconcile.library.storage import Change
    from reconcile.library.values import Contents
    from reconcile.model.baseline import WorldState
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest, Metadata
    from reconcile.model.units import Rules
    from reconcile.planning.incremental.scope import Part

_IN_PLACE = (Kind.COPY, Kind.PROJECT, Kind.SET_PARENT, Kind.AGE)


class ChangePlan(Struct, frozen=True):
    """A plan whose first ``writes`` actions write the change to the store.

    ``history``: the digests that they write, by id and unit.
    """

    plan: Plan
    writes: int
    history: Mapping[tuple[str, str], tuple[Digest, ...]]


def concerns_others(plan: Plan) -> bool:
    """Return whether a plan moves, removes or forks a conversation: that depends on others.

    Positions depend on those above and below, and a fork on a child that has the same stream already.
    """
    return any(action.kind not in _IN_PLACE for action in plan.actions)


def plan_conversation(
    session: Session,
    part: Part,
    conversation: str,
    policy: Policy,
    now_ns: int,
    pending: Mapping[Digest, bytes] | None = None,
) -> Plan:
    """Return the plan of a run that is limited to one conversation; ``pending`` are contents that are written first."""
    alone = replace(policy, only=frozenset({conversation}))
    return plan_for_policy(session, part.world, alone, now_ns, part.whole, pending)


def plan_change(session: Session, basis: PlanningBasis, change: Change, policy: Policy, now_ns: int) -> ChangePlan:
    """Return the plan that writes a change to the store and copies it to the workspace."""
    part, rules = basis.part, session.rules
    builder, before = PlanBuilder(), store_copy(part.world, change.conversation, rules)
    after = (
        _plan_new(builder, change, rules, now_ns)
        if before is None
        else _plan_update(builder, before, change, rules, now_ns)
    )
    writes = [replace(action, id=f"+{action.id}") for action in builder]
    history = _written_versions(after, writes, part.world, rules)
    intents = {}
    if before is None:
        intents[change.conversation] = Intent(IntentKind.LOCAL if change.local else IntentKind.PROJECTED)
    renames = {(Side.STORE, after.conversation)} if before is not None and _title(before) != _title(after) else set()
    world, whole = _after_write(part.world, after, history, intents, renames, rules), part.whole
    if basis.clean:
        # A clean conversation equals its baseline, so that a replaced store makes no difference to it.
        whole = replace(whole, sides=whole.sides.of_known_store())
    else:
        world = session.with_events(world)
    pending = {rules.digest(content): content for content in change.after.values()}
    part = replace(part, world=world, whole=whole)
    run = plan_conversation(session, part, after.conversation, policy, now_ns, pending)
    needs = tuple(action.id for action in writes)
    following = (replace(action, needs=(*needs, *action.needs)) for action in run.actions)
    plan = replace(
        run,
        actions=renumbered([*writes, *following]),
        intents=tuple({**intents, **dict(run.intents)}.items()),
        quiet=run.quiet and not writes,
        about=run.about or frozenset({after.conversation}),
    )
    return ChangePlan(plan, len(writes), history)


def stated_parent(contents: Contents, fmt: Format) -> str | None:
    """Return the parent that the metadata file states; None if it states none or is invalid."""
    metadata = fmt.read_metadata(contents[fmt.metadata_file])
    return None if isinstance(metadata, Fault) else metadata.parent.id


def store_copy(world: WorldState, conversation: str, rules: Rules) -> Copy | None:
    """Return the store's copy that a run would keep; None if the store has no copy."""
    if not any(copy.conversation == conversation for copy in world.store.copies):
        return None
    views = views_of(world.store, world.workspace, world.baseline, rules, (conversation,))
    return views[conversation].store.main


def _plan_new(builder: PlanBuilder, change: Change, rules: Rules, now_ns: int) -> Copy:
    fmt, after = rules.format, change.after
    metadata, stream = _facts(change, rules)
    title = None if isinstance(metadata, Fault) else metadata.title
    home = Node(Side.STORE, None, "", fmt.dirname(change.conversation, title))
    puts = [Put(_file(name, content, now_ns, rules), content=content) for name, content in after.items()]
    count = 0 if isinstance(stream, Fault) else stream.count
    builder.create(_step(change, title, WHOLE, (0, count)), home, puts)
    files = tuple(put.file for put in sorted(puts, key=lambda put: put.file.name))
    return Copy(Side.STORE, change.conversation, home.path, Partition.LIVE, None, files, metadata, stream)


def _plan_update(builder: PlanBuilder, before: Copy, change: Change, rules: Rules, now_ns: int) -> Copy:
    fmt = rules.format
    node = Node(Side.STORE, None, before.path.removesuffix(before.dirname), before.dirname)
    node.files = {file.name: file for file in before.files}
    metadata, stream = _facts(change, rules)
    title = None if isinstance(metadata, Fault) else metadata.title
    for unit, names in ((METADATA, (fmt.metadata_file,)), (STREAM, fmt.stream_files)):
        # Later than the files that are replaced, whatever the clock says: for JP the newest time wins
        # (docs/design/formats/jp.md#which-copy-wins).
        mtimes = [node.files[name].mtime_ns for name in names if name in node.files]
        time_ns = max([now_ns, *(at + 1 for at in mtimes)])
        files = [_file(name, change.after[name], time_ns, rules) for name in names if name in change.after]
        puts = [
            Put(file, content=change.after[file.name])
            for file in files
            if file.name not in node.files or node.files[file.name].digest != file.digest
        ]
        if puts:
            builder.write(_step(change, title, unit, _counts(before, stream, unit)), node, puts)
    files = sorted(node.files.values(), key=lambda file: file.name)
    return replace(before, files=tuple(files), metadata=metadata, stream=stream)


def _title(copy: Copy) -> str | None:
    return None if copy.metadata is None or isinstance(copy.metadata, Fault) else copy.metadata.title


def _facts(change: Change, rules: Rules) -> tuple[Metadata | Fault, Stream | Fault]:
    fmt = rules.format
    files = {name: change.after[name] for name in fmt.stream_files if name in change.after}
    stream = fmt.read_stream(files, events=True)
    if isinstance(stream, Stream):
        stream = replace(stream, content=files[fmt.stream_files[-1]])
    return fmt.read_metadata(change.after[fmt.metadata_file]), stream


def _counts(before: Copy, stream: Stream | Fault, unit: str) -> tuple[int, int] | None:
    if unit != STREAM or isinstance(stream, Fault) or before.stream is None or isinstance(before.stream, Fault):
        return None
    return before.stream.count, stream.count


def _file(name: str, content: bytes, time_ns: int, rules: Rules) -> File:
    return File(name, len(content), time_ns, rules.digest(content))


def _step(change: Change, title: str | None, unit: str, events: tuple[int, int] | None) -> Step:
    return Step(
        kind=Kind.COPY, conversation=change.conversation, title=title, reason=Reason.WRITTEN, unit=unit, events=events
    )


def _written_versions(
    after: Copy, writes: list[Action], world: WorldState, rules: Rules
) -> dict[tuple[str, str], tuple[Digest, ...]]:
    """Return the digests of the written units: the planner then knows that a shortened stream is no damage."""
    known = world.baseline.parents.get(after.conversation)
    units = units_of(after, rules, known)
    written = {METADATA, STREAM} if any(action.unit == WHOLE for action in writes) else {a.unit for a in writes}
    return {
        (after.conversation, name): (digest,) for name in sorted(written) if (digest := units[name].digest) is not None
    }


def _after_write(
    world: WorldState,
    after: Copy,
    history: Mapping[tuple[str, str], tuple[Digest, ...]],
    intents: Mapping[str, Intent],
    renames: AbstractSet[tuple[Side, str]],
    rules: Rules,
) -> WorldState:
    """Return the world state after the store has been written.

    ``renames`` are conversations whose directory gets the name of its new title even without a baseline, as JP's next
    write would rename it.
    """
    baseline = world.baseline
    known = {key: (*(d for d in baseline.history.get(key, ()) if d not in new), *new) for key, new in history.items()}
    copies = sorted(_copies_after(world, after), key=lambda copy: (rules.format.order(copy.conversation), copy.path))
    return replace(
        world,
        store=replace(world.store, copies=tuple(copies)),
        baseline=replace(
            baseline,
            history={**baseline.history, **known},
            intents={**baseline.intents, **intents},
            renames=baseline.renames | renames,
        ),
    )


def _copies_after(world: WorldState, after: Copy) -> Iterator[Copy]:
    yield after
    yield from (copy for copy in world.store.copies if copy.path != after.path)

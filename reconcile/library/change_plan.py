"""A change of one conversation as a plan: the store's files first, and then what a run would make of that.

What a run would make of it is asked of the planner itself: it is shown the store as it will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Copy, Fault, File, Partition, Side, Stream
from reconcile.model.units import units_of
from reconcile.planning.builder import Draft, Node, Put, Step
from reconcile.planning.filters import renumbered
from reconcile.planning.planner import make_plan
from reconcile.planning.rules.views import views_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from reconcile.library.backend import Change
    from reconcile.library.shared_index import Ground
    from reconcile.library.values import Contents
    from reconcile.model.baseline import Look
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest, Metadata
    from reconcile.model.units import Rules

_IN_PLACE = (Kind.COPY, Kind.FORK, Kind.PROJECT, Kind.SET_PARENT, Kind.AGE)


class Planned(Struct, frozen=True):
    """The plan; how many of its first actions write the change into the store; what is the newest version by then."""

    plan: Plan
    writes: int
    history: Mapping[tuple[str, str], tuple[Digest, ...]]


def moves_anything(plan: Plan) -> bool:
    """Tell whether a plan moves or removes directories; where they belong depends on more than was looked at."""
    return any(action.kind not in _IN_PLACE for action in plan.actions)


def plan_run(ground: Ground, conversation: str, policy: Policy, rules: Rules, now_ns: int) -> Plan:
    """Return what a run would do about one conversation."""
    look, alone = ground.look, replace(policy, only=frozenset({conversation}))
    return make_plan(look.store, look.workspace, look.memory, alone, rules, now_ns, ground.whole)


def plan_change(
    ground: Ground, change: Change, policy: Policy, rules: Rules, now_ns: int, with_events: Callable[[Look], Look]
) -> Planned:
    """Return how a change is written, and brought to the workspace.

    ``with_events`` loads what is needed to judge two streams of which neither is what was agreed on.
    """
    draft, before = Draft(), store_copy(ground.look, change.conversation, rules)
    after = _created(draft, change, rules, now_ns) if before is None else _changed(draft, before, change, rules, now_ns)
    writes = [replace(action, id=f"+{action.id}") for action in draft]
    history = _history(after, writes, ground.look, rules)
    intents = {}
    if before is None:
        intents[change.conversation] = Intent(IntentKind.LOCAL if change.local else IntentKind.PROJECTED)
    renames = {(Side.STORE, after.conversation)} if before is not None and _title(before) != _title(after) else set()
    look = _with(ground.look, after, history, intents, renames, rules)
    look = look if ground.at_rest else with_events(look)
    # What is at rest is as it was agreed on: it doesn't matter in which store.
    whole = replace(ground.whole, sides=ground.whole.sides.of_known_store()) if ground.at_rest else ground.whole
    then = plan_run(replace(ground, look=look, whole=whole), after.conversation, policy, rules, now_ns)
    needs = tuple(action.id for action in writes)
    rest = (replace(action, needs=(*needs, *action.needs)) for action in then.actions)
    plan = replace(
        then,
        actions=renumbered([*writes, *rest]),
        intents=tuple({**intents, **dict(then.intents)}.items()),
        quiet=then.quiet and not writes,
        about=then.about or frozenset({after.conversation}),
    )
    return Planned(plan, len(writes), history)


def stated_parent(contents: Contents, fmt: Format) -> str | None:
    """Return the parent that a metadata file states."""
    found = fmt.read_metadata(contents[fmt.metadata_file])
    return None if isinstance(found, Fault) else found.parent.id


def store_copy(look: Look, conversation: str, rules: Rules) -> Copy | None:
    """Return the directory of the store that a run would keep."""
    if not any(copy.conversation == conversation for copy in look.store.copies):
        return None
    views = views_of(look.store, look.workspace, look.memory, rules, (conversation,))
    return views[conversation].store.main


def _created(draft: Draft, change: Change, rules: Rules, now_ns: int) -> Copy:
    fmt, after = rules.format, change.after
    metadata, stream = _facts(change, rules)
    title = None if isinstance(metadata, Fault) else metadata.title
    home = Node(Side.STORE, None, "", fmt.dirname(change.conversation, title))
    puts = [Put(_file(name, content, now_ns, rules), content=content) for name, content in after.items()]
    count = 0 if isinstance(stream, Fault) else stream.count
    draft.create(_step(change, title, WHOLE, (0, count)), home, puts)
    files = tuple(put.file for put in sorted(puts, key=lambda put: put.file.name))
    return Copy(Side.STORE, change.conversation, home.path, Partition.LIVE, None, files, metadata, stream)


def _changed(draft: Draft, before: Copy, change: Change, rules: Rules, now_ns: int) -> Copy:
    fmt = rules.format
    node = Node(Side.STORE, None, before.path.removesuffix(before.dirname), before.dirname)
    node.files = {file.name: file for file in before.files}
    metadata, stream = _facts(change, rules)
    title = None if isinstance(metadata, Fault) else metadata.title
    for unit, names in ((METADATA, (fmt.metadata_file,)), (STREAM, fmt.stream_files)):
        # Later than what it takes the place of, whatever the clock says: JP goes by the time
        # (docs/design/formats/jp.md#which-copy-wins).
        there = [node.files[name].mtime_ns for name in names if name in node.files]
        time_ns = max([now_ns, *(at + 1 for at in there)])
        files = [_file(name, change.after[name], time_ns, rules) for name in names if name in change.after]
        puts = [
            Put(file, content=change.after[file.name])
            for file in files
            if file.name not in node.files or node.files[file.name].digest != file.digest
        ]
        if puts:
            draft.write(_step(change, title, unit, _counts(before, stream, unit)), node, puts)
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


def _history(after: Copy, writes: list[Action], look: Look, rules: Rules) -> dict[tuple[str, str], tuple[Digest, ...]]:
    """Say of what is written that it was chosen: a stream that was cut isn't one that has lost its end."""
    known = look.memory.parents.get(after.conversation)
    units = units_of(after, rules, known)
    written = {METADATA, STREAM} if any(action.unit == WHOLE for action in writes) else {a.unit for a in writes}
    return {
        (after.conversation, name): (digest,) for name in sorted(written) if (digest := units[name].digest) is not None
    }


def _with(
    look: Look,
    after: Copy,
    history: Mapping[tuple[str, str], tuple[Digest, ...]],
    intents: Mapping[str, Intent],
    renames: AbstractSet[tuple[Side, str]],
    rules: Rules,
) -> Look:
    """Return a look as it will be once the store is written.

    ``renames``: what was never in sync gets the name of its new title, too, as at JP's next write of it.
    """
    memory = look.memory
    known = {key: (*(d for d in memory.history.get(key, ()) if d not in new), *new) for key, new in history.items()}
    copies = sorted(_replaced(look, after), key=lambda copy: (rules.format.order(copy.conversation), copy.path))
    return replace(
        look,
        store=replace(look.store, copies=tuple(copies)),
        memory=replace(
            memory,
            history={**memory.history, **known},
            intents={**memory.intents, **intents},
            renames=memory.renames | renames,
        ),
    )


def _replaced(look: Look, after: Copy) -> Iterator[Copy]:
    yield after
    yield from (copy for copy in look.store.copies if copy.path != after.path)

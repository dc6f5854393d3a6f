"""The report of a sync: what it has taken, sent and removed, and which machine's version won a conflict."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from reconcile.model.options import Take
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Metadata, Side
from reconcile.planning.steps.content import DIVERGED
from reconcile.remote.known import DecidedConflict, Entry
from reconcile.remote.machines import of_machines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.apply.executor import Outcome
    from reconcile.model.baseline import WorldState
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Conflict, Item, Plan
    from reconcile.model.snapshot import Copy
    from reconcile.remote.known import Report
    from reconcile.remote.tree import Tree


def describe(
    report: Report,
    plan: Plan,
    outcome: Outcome | None,
    world: WorldState,
    twins: Collection[str],
    trees: tuple[Tree, Tree],
    *,
    remote: str,
    fmt: Format,
) -> None:
    """Add to a report the steps of a plan that are done: those of a dry run, all of them.

    ``twins`` are forks that the plan replaces. ``trees`` are those of the remote now, and after the last sync.
    """
    results = {} if outcome is None else outcome.results
    undone = {each.action.conversation: each.message for each in results.values() if not each.is_done}
    taken, forked, sent = dict[str, str | None](), dict[str, str | None](), dict[str, str | None]()
    removed = dict[str, str | None]()
    for action in plan.actions:
        if action.id in results and not results[action.id].is_done:
            continue
        if action.conversation in twins:
            report.replaced_forks.append(Entry(action.conversation, action.title))
            continue
        if action.kind is Kind.MOVE and action.target.side is Side.STORE:
            continue  # a new title renames a directory: that alone brings nothing here
        into = forked if action.kind is Kind.FORK else taken if action.target.side is Side.STORE else sent
        if into is sent and action.kind is Kind.REMOVE_STALE and action.unit == WHOLE:
            into = removed
        into.setdefault(action.conversation, action.title)
        if into is taken and action.kind in (Kind.ARCHIVE, Kind.UNARCHIVE):
            report.placed[action.conversation] = action.kind
    report.held += [f"{conversation}: {message}; run the sync again" for conversation, message in undone.items()]
    for conversation in undone:
        report.secrets.pop(conversation, None)
    for copy in world.workspace.copies:
        if copy.conversation in taken:  # a step has the title that the store had
            taken[copy.conversation] = getattr(copy.metadata, "title", None) or taken[copy.conversation]
    done = [each for each in plan.actions if each.id not in results or results[each.id].is_done]
    report.replaced |= _replaced_titles(done, world, fmt)
    report.returned |= _returned(taken, {copy.conversation for copy in world.store.copies}, *trees)
    known = {entry.id for entry in (*report.taken, *report.forked)}
    report.taken += [Entry(*item) for item in taken.items() if item[0] not in known | forked.keys()]
    report.forked += [Entry(*item) for item in forked.items()]
    report.held += [_said(item, remote) for item in plan.held]
    if outcome is None:
        report.sent += [Entry(*item) for item in sent.items()]
        report.removed_there += [Entry(*item) for item in removed.items()]


def describe_removals(
    report: Report,
    plan: Plan,
    outcome: Outcome | None,
    going: Mapping[str, bool],
    stored: Mapping[str, Sequence[Copy]],
    *,
    remote: str,
) -> None:
    """Add to a report what a plan of removals has removed and taken, and why the rest is still here.

    ``going``: by conversation that another machine has removed, whether it is removed here. ``stored`` are the copies
    before. A dry run reports what is taken with the rest.
    """
    report.removed_here += [Entry(key, title_of(stored[key])) for key, removed in going.items() if removed]
    results = {} if outcome is None else outcome.results
    done = [each.action for each in results.values() if each.is_done and each.action.conversation not in stored]
    new = {each.conversation: each.title for each in done if each.target.side is Side.STORE}
    report.taken += [Entry(*item) for item in new.items()]
    undone = {each.action.conversation: each.message for each in results.values() if not each.is_done}
    why = {item.conversation: _said(item, remote) for item in plan.held}
    for key in (key for key, removed in going.items() if not removed):
        message = undone.get(key, "another machine has removed it, and it stays here for now")
        report.held.append(why.get(key, f"{key}: {message}; run the sync again"))


def _returned(taken: Iterable[str], stored: set[str], tree: Tree, before: Tree) -> dict[str, bool]:
    """Return the conversations that were removed, and come back, and whether this machine takes them.

    What a lost store takes is none of them, if it has not changed in the remote.
    """
    known = before.tombstones.keys() | before.records.keys()
    changed = (key for key in taken if key in tree.records and not tree.records[key].is_same(before.records.get(key)))
    back = {key: True for key in changed if key in known and key not in stored}
    removed_there = tree.tombstones.keys() - tree.records.keys() - before.tombstones.keys()
    return back | dict.fromkeys(removed_there & stored, False)


def _replaced_titles(done: Iterable[Action], world: WorldState, fmt: Format) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the conversations whose title in the store steps replace, each with the titles before and after."""
    here, there = (
        {copy.conversation: copy.metadata for copy in side.copies if isinstance(copy.metadata, Metadata)}
        for side in (world.store, world.workspace)
    )
    for action in done:
        key = action.conversation
        if action.unit != METADATA or action.target.side is not Side.STORE or not (key in here and key in there):
            continue
        content = next((write.content for write in action.writes if write.content is not None), None)
        after = there[key] if content is None else fmt.read_metadata(content)
        before = here[key].title
        if isinstance(after, Metadata) and before and after.title and before != after.title:
            yield key, (before, after.title)


def title_of(copies: Iterable[Copy]) -> str | None:
    """Return the title of the first copy; None if there is no copy, or no title."""
    return next((getattr(copy.metadata, "title", None) for copy in copies), None)


def bulk_way(remote: str) -> str:
    """Return the command that permits the removals of a sync."""
    return f"reconcile sync {remote} --allow-bulk-removal"


def _said(item: Item, remote: str) -> str:
    """Return what is held, and why; a file that no program of the format knows is named, too."""
    if item.reason is Reason.BULK:  # a sync plans what it removes from the store by itself
        return f"on {remote}: {item.words}; {bulk_way(remote)}"
    name = f"{item.unit.removeprefix(EXTRA)}: " if item.unit.startswith(EXTRA) else ""
    words = item.words
    if item.reason is Reason.CONFLICT_HELD:
        words = f"{of_machines(words)}; `reconcile sync` asks about it at a terminal"
    return f"{item.conversation}: {name}{words}" if item.conversation else words


def decided_units(
    plan: Plan, conflicts: Iterable[Conflict], world: WorldState, outcome: Outcome | None
) -> Iterator[DecidedConflict]:
    """Yield the units of which one machine's version was taken, by this sync or by an earlier one of another machine.

    The other machine has sent this machine's continuation as a new child. A person may have decided some of them.
    """
    results, run = ({}, None) if outcome is None else (outcome.results, outcome.run)
    done = [each for each in plan.actions if outcome is None or results[each.id].is_done]
    replaced = {(each.conversation, each.unit): each for each in done if each.unit != WHOLE}
    arrived = dict(_arrived_forks(done, replaced, world))
    by_unit = {(each.conversation, each.unit): each for each in (*conflicts, *plan.conflicts)}
    for key, conflict in by_unit.items():
        action, choice = replaced.get(key), plan.policy.choices.get(key)
        takes = conflict.takes if choice is None else _side_of(choice, action)
        if action is None or takes is None:
            continue
        forks = (each.conversation for each in done if each.is_fork_of(action))
        child = next(forks, None) or arrived.pop(key, None)
        is_here = takes is Side.STORE
        yield DecidedConflict(conflict.conversation, conflict.title, conflict.unit, is_here, child, run, conflict)
    for (conversation, unit), child in arrived.items():
        title = replaced[conversation, unit].title
        yield DecidedConflict(conversation, title, unit, False, child, run)  # noqa: FBT003


def forked_records(plan: Plan, world: WorldState, outcome: Outcome | None, fmt: Format) -> Iterator[DecidedConflict]:
    """Yield the records, such as sessions, of which one machine's version was taken, and the other one is now a fork.

    This sync has made the fork, or another machine, which has sent it: the same content has the same id on each.
    """
    results, run = ({}, None) if outcome is None else (outcome.results, outcome.run)
    done = [each for each in plan.actions if outcome is None or results[each.id].is_done]
    new = {each.conversation for each in done if each.kind in (Kind.FORK, Kind.COPY)}
    places = fmt.places
    for action in done if new else ():
        if places is None or action.unit != METADATA or action.kind is Kind.FORK:
            continue
        side = world.store if action.target.side is Side.STORE else world.workspace
        lost = [copy.metadata for copy in side.copies if copy.place == action.target]
        for version in lost:
            if not isinstance(version, Metadata):
                continue
            with suppress(ValueError):
                child, _ = places.forked(action.conversation, version.content)
                if child in new:
                    is_here = action.target.side is Side.WORKSPACE
                    yield DecidedConflict(action.conversation, action.title, METADATA, is_here, child, run)


def _arrived_forks(
    done: Iterable[Action], replaced: Mapping[tuple[str, str], Action], world: WorldState
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the streams of this machine that are replaced, each with the new child that the other machine has made."""
    new = {each.conversation for each in done if each.unit == WHOLE and each.kind is Kind.COPY}
    for copy in world.workspace.copies if new else ():
        described = copy.metadata
        if copy.conversation not in new or not isinstance(described, Metadata) or described.parent.id is None:
            continue
        key = described.parent.id, STREAM
        action = replaced.get(key)
        if action is None or action.target.side is not Side.STORE or not _has_what_was_here(copy, action):
            continue
        if (described.title or "").startswith(DIVERGED):
            yield key, copy.conversation


def _has_what_was_here(fork: Copy, action: Action) -> bool:
    """Tell whether a fork has the files that a step replaces here. If not, it is no continuation of this machine."""
    digests = {file.name: file.digest for file in fork.files}
    before = {each.place: each.digest for each in action.expect if not each.absent}
    replaced = [write.target for write in action.writes if write.target in before]
    return bool(replaced) and all(digests.get(place.path.rpartition("/")[2]) == before[place] for place in replaced)


def _side_of(choice: Take, action: Action | None) -> Side | None:
    """Return the side whose version an answer takes; of both, the newer one replaces the other."""
    if choice in (Take.STORE, Take.WORKSPACE):
        return Side(choice.value)
    return None if choice is Take.KEEP or action is None else action.target.side.other

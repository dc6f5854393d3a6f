"""The plan that undoes a run: its steps reversed, the last first (docs/design/run.md#rule-53).

A conversation that was changed since is refused as a whole, with everything that builds on its steps. A file that
already has its old content needs no step, so that an interrupted undo can be repeated. The baseline of before the run
applies again, and what was undone is set aside until a side changes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from reconcile.model.baseline import Intent, IntentKind, is_local
from reconcile.model.commands import typed
from reconcile.model.names import CHILDREN
from reconcile.model.plan import Action, Heading, Item, Kind, Note, Plan, Precondition
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, WHOLE, Metadata, Place, Side
from reconcile.model.units import is_of_another
from reconcile.planning.builder import Node, PlanBuilder, Put, Step, nodes_of
from reconcile.planning.filters import (
    DirectoryState,
    bulk_undo,
    directory_state,
    git_is_busy,
    limits_of,
    renumbered,
    undone_record,
    withheld,
)
from reconcile.planning.rules.guards import whole_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconcile.model.baseline import AsideRecord, Baseline, ConversationRecord, WorldState
    from reconcile.model.past_run import LaterChanges, PastRun, SavedFile
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, File
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Whole

T = TypeVar("T")
_MOVED_BACK = {Kind.MOVE: Kind.MOVE, Kind.ARCHIVE: Kind.UNARCHIVE, Kind.UNARCHIVE: Kind.ARCHIVE}
_CREATES = {Side.STORE: Kind.COPY, Side.WORKSPACE: Kind.PROJECT}
_PARENTS = (Kind.SET_PARENT, Kind.PROMOTE)
_TAKEN = {Side.STORE: Kind.REMOVE, Side.WORKSPACE: Kind.REMOVE_STALE}
_BELOW = f"/{CHILDREN}/"
_BELOW_REFUSED = "it is in the directory of another conversation that can't be undone"


class NotAsLeftError(Exception):
    """A place isn't as the run has left it, so its step can't be undone; the message says what is there."""


class DirectoryIndex:
    """The existing directories, by place and by conversation."""

    def __init__(self, *, fixed: bool) -> None:
        """Start empty. ``fixed``: records have fixed places, and none is in another, whatever its path contains."""
        self._fixed = fixed
        self._owners: dict[Node, str] = {}
        """The conversation of every directory that ever existed: kept, because containers are identified by their `id`.
        """
        self._of: dict[tuple[str, Side], dict[int, Node]] = {}
        self._at: dict[tuple[Side, int, str], Node] = {}
        """By side, container and path below that."""

    def enter(self, node: Node, conversation: str) -> None:
        """Add a directory of a conversation, at its current place."""
        self._owners[node] = conversation
        self._of.setdefault((conversation, node.side), {})[id(node)] = node
        self._at[_key(node)] = node

    def leave(self, node: Node) -> None:
        """Remove a directory from its place."""
        del self._at[_key(node)]
        del self._of[self._owners[node], node.side][id(node)]

    def owner(self, node: Node) -> str:
        """Return the conversation of a directory."""
        return self._owners[node]

    def of(self, conversation: str, side: Side) -> list[Node]:
        """Return the directories of a conversation on a side."""
        return [*self._of.get((conversation, side), {}).values()]

    def has(self, conversation: str, side: Side, name: str | None = None) -> bool:
        """Tell whether a side has the conversation, or a file of it."""
        return any(name is None or name in node.files for node in self.of(conversation, side))

    def find(self, place: Place) -> Node | None:
        """Return the directory at a place; None if there is none."""
        node: Node | None = None
        for number, part in enumerate([place.path] if self._fixed else place.path.split(_BELOW)):
            if number and node is None:
                return None
            node = self._at.get((place.side, id(node), part))
        return node

    def there(self, place: Place) -> Node:
        """Return the directory at a place.

        Raises:
            NotAsLeftError: there is none.
        """
        node = self.find(place)
        if node is None:
            raise _DeletedError(place)
        return node

    def split_place(self, place: Place) -> tuple[Node | None, str, str]:
        """Return a place as its container, its prefix below that, and its name.

        Raises:
            NotAsLeftError: its container doesn't exist.
        """
        above, rest = "", place.path
        if not self._fixed:
            above, _, rest = place.path.rpartition(_BELOW)
        container = self.there(Place(place.side, above)) if above else None
        prefix, _, name = rest.rpartition("/")
        return container, prefix + "/" if prefix else "", name

    def record(self, conversation: str, rules: Rules) -> AsideRecord | None:
        """Return the record of a conversation's state; None if it is on neither side."""
        states: dict[Side, list[DirectoryState]] = {side: [] for side in Side}
        for side in Side:
            for node in self.of(conversation, side):
                container = self.owner(node.container) if node.container is not None else None
                states[side].append(directory_state(node.path, container, node.files.values()))
        return undone_record(states[Side.STORE], states[Side.WORKSPACE], rules)


def _key(node: Node) -> tuple[Side, int, str]:
    return node.side, id(node.container), node.prefix + node.name


class _ChangedError(NotAsLeftError):
    """A file or a directory has another content than the run has left."""

    def __init__(self, place: Place) -> None:
        """Say so of a place."""
        super().__init__(f"changed in the {place.side} since then: {place.path}")


class _DeletedError(NotAsLeftError):
    """A directory that the run has left is not there any more."""

    def __init__(self, place: Place) -> None:
        """Say so of a place."""
        super().__init__(f"deleted from the {place.side} since then: {place.path}")
        self.place = place


class _PrivateError(NotAsLeftError):
    """The conversation in the workspace is local, by a decision that the run has not made."""


def plan_undo(
    past: PastRun, world: WorldState, policy: Policy, rules: Rules, now_ns: int, whole: Whole | None = None
) -> Plan:
    """Return the plan that undoes a run, except where content was changed since.

    ``whole`` is given if the snapshots and the baseline are those of a part.
    """
    whole = whole or whole_of(world.store, world.workspace, world.baseline, rules.format)
    undo = _Undo(past, world, rules)
    chosen = ({action.conversation for action in past.steps} | past.remembered.keys()) - past.since.undone
    for action in reversed(past.steps):
        if action.conversation in chosen:
            undo.reverse(action)
    private = undo.left_private()
    if policy.only or policy.below:
        chosen &= _named(policy, world.baseline)
    actions = undo.kept_of(chosen)
    command = f"reconcile {'redo' if past.repeats else 'undo'} {past.id}"
    again = f"{command} {limits_of(policy, rules)}--allow-bulk-removal"
    bulk = bulk_undo(actions, whole, rules, again, lambda conversation: undo.directories.has(conversation, Side.STORE))
    if bulk is not None and not policy.accept_bulk:
        return Plan(layout=policy.layout.value, held=(bulk,), policy=policy, now_ns=now_ns, about=frozenset())
    waiting = undo.touching_workspace(actions) if policy.git_busy else set()
    waits = [action for action in actions if action.conversation in waiting]
    actions = [action for action in actions if action.conversation not in waiting]
    changing = {action.conversation for action in actions}
    done = sorted(chosen - undo.refused.keys() - waiting)
    # A request of that run that is still waiting ends; those that an undo has dropped wait again.
    ended = {key: None for key, each in world.baseline.waiting.items() if each.run == past.id and key[0] in done}
    # Such a request is all that there is to undo, if no step was done: no run could repeat anything.
    dropped = {conversation for conversation, _ in ended} - {action.conversation for action in past.steps}
    asked = {
        (conversation, verb): request
        for conversation in done
        if (record := past.remembered.get(conversation)) is not None
        for verb, request in record.dropped.items()
    }
    published = {step.conversation for step in past.steps if step.kind is Kind.PROJECT}
    restated = {step.conversation for step in actions if step.unit == METADATA and step.target.side is Side.STORE}
    ordered = sorted(chosen, key=rules.format.order)
    return Plan(
        layout=policy.layout.value,
        actions=renumbered(actions),
        held=(
            *(undo.item(conversation) for conversation in ordered if conversation in undo.refused),
            *git_is_busy(policy.git_busy, waits, command),
        ),
        notes=(
            *(
                _recorded_alone(conversation, undo.reason)
                for conversation in ordered
                if conversation in done and conversation not in changing
            ),
            *(
                Note(conversation=conversation, reason=Reason.LEFT_IN_VAULT, message=private[conversation])
                for conversation in sorted(private)
            ),
            *(note for note in undo.links if note.conversation in done),
        ),
        asides=()
        if past.is_undo
        else tuple(
            ((conversation, WHOLE), undo.directories.record(conversation, rules))
            for conversation in done
            if conversation not in dropped
        ),
        outline=tuple(Heading(conversation, undo.title_of(conversation), 0) for conversation in ordered),
        policy=policy,
        now_ns=now_ns,
        remembered=tuple(
            (conversation, _record_of(past, conversation, published=published, restated=restated))
            for conversation in done
            if conversation in past.remembered
        ),
        about=frozenset((*done, *changing)),
        waiting=tuple(sorted((ended | asked).items())),
    )


def _record_of(past: PastRun, conversation: str, *, published: set[str], restated: set[str]) -> ConversationRecord:
    """Return the record of a conversation that is in effect again.

    ``restated``: the store gets its old metadata back. Without a known parent the file has no parent: then it is a
    known root. Otherwise another checkout would write the parent that it knows, as if JP had stripped it.
    """
    record = past.remembered[conversation]
    if conversation in published:
        record = _without_request(past, record)
    if conversation in restated and not record.parent_known:
        parent = record.agreed.parent if record.agreed is not None else None
        record = replace(record, parent=parent, parent_known=True)
    return record


def _without_request(past: PastRun, record: ConversationRecord) -> ConversationRecord:
    """Return the record of before the run that published it, without the pending request that the run carried out.

    The next run would carry it out again. The request is not known any more that was in effect before it.
    """
    if record.intent is None or not record.intent.is_wish:
        return record
    place = record.agreed.place if record.agreed is not None else None
    return replace(record, intent=Intent(IntentKind.REMOVED, place=place, run=past.id))


def _way_on(conversation: str, since: LaterChanges) -> str:
    run = since.changed[conversation]
    if conversation in since.marked:
        return "no undo changes a private mark that a sync has taken"
    if run in since.gone:
        return "the checkout of that run is gone"
    there = f" --workspace {typed(since.elsewhere[run])}" if run in since.elsewhere else ""
    return f"undo that first: reconcile undo {run}{there}"


def _publish(conversation: str) -> str:
    return f"publish it: reconcile project {typed(conversation)}"


class _Undo:
    """The virtual sides while the steps are reversed, and the refused conversations with the messages."""

    def __init__(self, past: PastRun, world: WorldState, rules: Rules) -> None:
        self.past = past
        self.reason = Reason.REPEATED if past.repeats else Reason.TAKEN_BACK
        self.rules = rules
        self._managed = (rules.format.metadata_file, *rules.format.stream_files)
        self.builder = PlanBuilder()
        self.refused = {
            key: f"run {run} changed it since; {_way_on(key, past.since)}" for key, run in past.since.changed.items()
        }
        now = {key for key, intent in world.baseline.intents.items() if is_local(intent)}
        before = {key for key, record in past.remembered.items() if _is_local(record)}
        self.local = before | (now - past.remembered.keys())
        self._decided = {key for key in now if world.baseline.intents[key].run == past.id}
        """The conversations that the run has made local, and that still are."""
        # A later run can have removed its directory, too: then it can't be undone either.
        self.refused |= {
            key: f"run {past.since.changed[key]} changed it since; {_publish(key)}"
            for key in self._decided & self.refused.keys()
        }
        known = {key: record.agreed for key, record in past.remembered.items()}
        self.titles: dict[str, str | None] = dict(past.titles)
        self.titles |= {key: agreed.title for key, agreed in known.items() if agreed is not None}
        self._kept_places = sorted(past.kept, key=str)
        self._changed = set[str]()
        """Refused conversations with another content than the run has left."""
        self._private: dict[str, str] = {}
        """Local conversations with content that isn't written to the workspace again."""
        self._forks: dict[str, str | None] = {}
        """Forks that are removed again, with their sources."""
        self.links: list[Note] = []
        self._copies: dict[str, list[Copy]] = {}
        """The copies on both sides before the undo."""
        self.directories = DirectoryIndex(fixed=rules.format.places is not None)
        for side in (world.store, world.workspace):
            for node in nodes_of(side).values():
                assert node.copy is not None  # noqa: S101 - those that the scan found have one
                self.directories.enter(node, node.copy.conversation)
                self._copies.setdefault(node.copy.conversation, []).append(node.copy)
                if isinstance(node.copy.metadata, Metadata):
                    self.titles[node.copy.conversation] = node.copy.metadata.title
                    if node.side is Side.STORE and node.copy.metadata.local:
                        self.local.add(node.copy.conversation)

    def reverse(self, action: Action) -> None:
        """Add the steps that reverse one action, unless its conversation is refused."""
        conversation = action.conversation
        if conversation in self.refused:
            return
        try:
            if action.kind in _MOVED_BACK:
                self._move_back(action)
            elif action.kind is Kind.AGE:
                self._age_back(action)
            elif action.unit != WHOLE:
                if action.writes or action.removes:  # not of empty directories, which hold nothing
                    self._write_back(action)
            elif action.writes:
                self._take_away(action)
            else:
                self._make_again(action)
        except _PrivateError as private:
            self._private[conversation] = str(private)
        except _DeletedError as deleted:
            self.refused[conversation] = self._absence(conversation, deleted)
        except NotAsLeftError as refused:
            self.refused[conversation] = str(refused)
            if isinstance(refused, _ChangedError):
                self._changed.add(conversation)

    def _absence(self, conversation: str, deleted: _DeletedError) -> str:
        """Return why the directory that a step needs is not there: its own one, or that of a parent."""
        place = deleted.place
        owner = self.rules.format.id_of(place.path.rpartition("/")[2])
        if owner is not None and (owner in self.refused or owner in self._private):
            return _BELOW_REFUSED
        if owner is not None and self.directories.has(owner, place.side):
            return f"moved in the {place.side} since then: {place.path}"
        recovery = self.past.since.recovered.get(conversation)
        first = f"; redo that recovery first: reconcile redo {recovery}, then undo this run" if recovery else ""
        return f"{deleted}{first}"

    def left_private(self) -> dict[str, str]:
        """Return the local conversations that only the store gets back; refuse the other local ones."""
        saved = {action.conversation for action in self.builder} - self.refused.keys()
        self.refused = {
            **{conversation: words for conversation, words in self._private.items() if conversation not in saved},
            **self.refused,
        }
        return {conversation: words for conversation, words in self._private.items() if conversation in saved}

    def kept_of(self, chosen: set[str]) -> list[Action]:
        """Return the steps of the chosen conversations; one that can't be reversed refuses its whole conversation."""
        actions = list(self.builder)
        while True:
            out = withheld(
                actions,
                {a.id for a in actions if a.conversation in self.refused or a.conversation not in chosen},
            )
            hit = {a.conversation for a in actions if a.id in out and a.conversation in chosen} - self.refused.keys()
            left = {fork for fork, source in self._forks.items() if source in self.refused} - self.refused.keys()
            if not hit and not left:
                return [action for action in actions if action.id not in out]
            for conversation in hit:
                self.refused[conversation] = _BELOW_REFUSED
            for fork in left:
                self.refused[fork] = "it was forked from a conversation that can't be undone"

    def touching_workspace(self, actions: Sequence[Action]) -> set[str]:
        """Return the conversations with changes in the workspace, and those that belong to them."""
        conversations = {action.conversation for action in actions if action.target.side is Side.WORKSPACE}
        while True:
            out = withheld(actions, {action.id for action in actions if action.conversation in conversations})
            more = {action.conversation for action in actions if action.id in out}
            more |= {fork for fork, source in self._forks.items() if source in conversations}
            if more <= conversations:
                return conversations
            conversations |= more

    def item(self, conversation: str) -> Item:
        """Return the item of a refused conversation, with the command that shows its replaced or removed versions.

        A decision to keep it private that a later run has carried out ends by `project`.
        """
        kept = self._can_be_restored(conversation)
        ends = conversation in self._decided or conversation in self._private
        alone = kept and not ends and conversation in self.past.since.changed
        more = self._or_alone(conversation) if alone else ""
        if conversation in self._changed and not kept:
            more = f"; see what it is now: reconcile diff {typed(conversation)}"
        return Item(
            conversation=conversation,
            title=self.title_of(conversation),
            unit=WHOLE,
            reason=Reason.WRITTEN_SINCE,
            message=self.refused[conversation] + more,
            resolve=(
                *((f"reconcile project {typed(conversation)}",) if ends else ()),
                *((f"reconcile restore {typed(conversation)}@{self.past.id}",) if kept else ()),
            ),
        )

    def _can_be_restored(self, conversation: str) -> bool:
        """Tell whether the vault has a version that the run has replaced or removed, and that a copy lacks by now."""
        own = [action.target for action in self.past.steps if action.conversation == conversation]
        places = set(own)
        for target in own:
            files = {place.path[len(target.path) + 1 :]: place for place in self._kept_below(target)}
            places.update(self._seen(files).values())
        saved = {version.digest for place in places for version in self.past.kept.get(place, ())}
        copies = self._copies.get(conversation, ())
        in_store = any(copy.side is Side.STORE for copy in copies)
        return bool(saved) and not (in_store and all(saved <= {f.digest for f in copy.files} for copy in copies))

    def _or_alone(self, conversation: str) -> str:
        """Return that the conversation can be restored by itself, after the reason why the run can't be undone."""
        since = self.past.since
        can_be_undone = since.changed[conversation] not in since.gone and conversation not in since.marked
        return ", or restore only this conversation" if can_be_undone else "; restore this conversation alone"

    def _step(self, action: Action, kind: Kind) -> Step:
        return Step(
            kind=kind,
            conversation=action.conversation,
            title=self.title_of(action.conversation),
            reason=self.reason,
            unit=action.unit,
            events=None if action.events is None else (action.events[1], action.events[0]),
        )

    def _move_back(self, action: Action) -> None:
        assert action.source is not None  # noqa: S101 - a move has one
        moved = self.directories.find(action.source)
        if moved is not None and self.directories.find(action.target) is None:
            return
        node = self.directories.there(action.target)
        if moved is not None:
            raise NotAsLeftError(f"created again in the {action.source.side} since then: {action.source.path}")
        if (anchor := node.anchor()) is not None:
            raise NotAsLeftError(anchor)
        split_place = self.directories.split_place(action.source)
        self.directories.leave(node)
        self.builder.move(self._step(action, _MOVED_BACK[action.kind]), node, *split_place)
        self.directories.enter(node, action.conversation)

    def _age_back(self, action: Action) -> None:
        node = self.directories.there(action.target)
        before: dict[int, list[str]] = {}
        for expect in action.expect:
            name = expect.place.path[len(action.target.path) + 1 :]
            file = node.files.get(name)
            if file is None or file.digest != expect.digest or file.mtime_ns not in (action.mtime_ns, expect.mtime_ns):
                raise _ChangedError(expect.place)
            if file.mtime_ns == action.mtime_ns:
                before.setdefault(expect.mtime_ns, []).append(name)
        for mtime_ns, names in before.items():
            self.builder.age(self._step(action, Kind.AGE), node, names, mtime_ns)

    def _write_back(self, action: Action) -> None:
        """Restore the old content of one unit's files, and remove those that did not exist."""
        places = [write.target for write in action.writes] + list(action.removes)
        node = self.directories.there(_directory_of(places[0], self._name_in(action, places[0])))
        written = {write.target: write.digest for write in action.writes}
        expected = {expect.place: expect for expect in action.expect if not expect.absent}
        puts, gone = [], []
        for place in places:
            name = self._name_in(action, place)
            file = node.files.get(name)
            before = expected.get(place)
            if _is_as_before(file, before):
                continue
            if (file.digest if file else None) != written.get(place):
                raise _ChangedError(place)
            if before is None:
                self._leave_the_only_one(action, place, name)
                gone.append(name)
            else:
                old = self._old(place, before.digest)
                puts.append(Put(old.named(name), kept=old.vault))
        if puts:
            self._may_write(action, node.side)
            kind = Kind.SET_PARENT if action.kind in _PARENTS else _CREATES[node.side]
            self.builder.write(self._step(action, kind), node, puts, removes=gone)
        elif gone:
            self.builder.remove(self._step(action, _TAKEN[node.side]), node, (), gone)

    def title_of(self, conversation: str) -> str | None:
        """Return the title of a conversation; a record with a fixed place is called by that."""
        return self.titles.get(conversation) or (conversation if self.rules.format.places is not None else None)

    def _name_in(self, action: Action, place: Place) -> str:
        """Return the name of a file of one unit, below its conversation's directory."""
        if action.unit == METADATA:
            return self.rules.format.metadata_file
        if action.unit.startswith(EXTRA):
            return action.unit.removeprefix(EXTRA)
        return place.path.rpartition("/")[2]

    def _leave_the_only_one(self, action: Action, place: Place, name: str) -> None:
        """Refuse to remove an extra that the run has copied, if its source no longer exists."""
        copied = action.unit.startswith(EXTRA) and action.source is not None
        if copied and not self.directories.has(action.conversation, place.side.other, name):
            raise NotAsLeftError(f"{place}: the only copy now, since the {place.side.other}'s {name} was deleted")

    def _take_away(self, action: Action) -> None:
        """Remove a directory that the run has created."""
        side = action.target.side
        if not self.directories.has(action.conversation, side):
            return
        node = self.directories.there(action.target)
        copied = action.source is not None and action.kind is not Kind.FORK
        others = self.directories.of(action.conversation, side.other)[:1] if copied else []
        if copied and not others:
            raise NotAsLeftError(f"{action.target}: the only copy now, since {action.source} was deleted")
        start = len(action.target.path) + 1
        written = self._seen({write.target.path[start:]: write.digest for write in action.writes})
        if {name: file.digest for name, file in node.files.items()} != written:
            raise _ChangedError(action.target)
        if node.below:
            raise NotAsLeftError(f"{action.target}: contains another conversation now")
        if (obstacle := node.obstacle()) is not None:
            raise NotAsLeftError(obstacle)
        if action.kind is Kind.FORK and node.copy is not None and isinstance(node.copy.metadata, Metadata):
            self._forks[action.conversation] = node.copy.metadata.parent.id
        self.directories.leave(node)
        stays = [(other, name) for other in others for name in self._managed if name in other.files]
        self.builder.remove(self._step(action, _TAKEN[node.side]), node, (), stays=stays)

    def _make_again(self, action: Action) -> None:
        """Create a directory that the run has removed."""
        existing = self.directories.find(action.target)
        expected = {expect.place: expect.digest for expect in action.inside}
        start = len(action.target.path) + 1
        puts = []
        for place in sorted({*expected, *self._kept_below(action.target)}, key=str):
            name = place.path[start:]
            if not is_of_another(name, self.rules.format.id_of):
                old = self._old(place, expected.get(place))
                puts.append(Put(old.named(name), kept=old.vault))
        self.links += [
            Note(
                conversation=action.conversation,
                reason=Reason.LEFT_IN_VAULT,
                message=f"{place}: undo makes no symbolic links; the target of this one: reconcile show {digest[:16]}",
            )
            for place, digest in self.past.links.items()
            if place.side is action.target.side and place.path.startswith(f"{action.target.path}/")
        ]
        seen = self._seen({put.file.name: put.file for put in puts})
        if existing is not None and existing.files == seen:
            return
        if existing is not None:
            raise NotAsLeftError(f"created again in the {action.target.side} since then: {action.target.path}")
        split_place = self.directories.split_place(action.target)
        self._may_write(action, action.target.side, split_place[0])
        node = Node(action.target.side, *split_place)
        self.builder.create(self._step(action, _CREATES[node.side]), node, puts)
        node.files = seen
        self.directories.enter(node, action.conversation)

    def _seen(self, files: Mapping[str, T]) -> dict[str, T]:
        """Return the files of a directory that a scan lists; other files move with the directory."""
        return {name: file for name, file in files.items() if self.rules.format.unit_of(name) is not None}

    def _kept_below(self, directory: Place) -> list[Place]:
        start = bisect_left(self._kept_places, f"{directory}/", key=str)
        end = bisect_left(self._kept_places, f"{directory}0", key=str)  # the character after the slash
        return self._kept_places[start:end]

    def _may_write(self, action: Action, side: Side, container: Node | None = None) -> None:
        """Refuse to publish a local conversation, or to create one below it (docs/design/invariants.md#invariant-5)."""
        if side is Side.STORE:
            return
        if action.conversation in self.local:
            words = f"local, so it is not copied to the workspace; {_publish(action.conversation)}"
            raise _PrivateError(f"{action.target}: {words}")
        while container is not None:
            if (owner := self.directories.owner(container)) in self.local:
                raise NotAsLeftError(f"{action.target}: its parent {owner} is local now")
            container = container.container

    def _old(self, place: Place, digest: str | None) -> SavedFile:
        """Return the saved file of a place: the version with that digest, or the newest if none is given."""
        for version in reversed(self.past.kept.get(place, ())):
            if digest is None or version.digest == digest:
                return version
        raise NotAsLeftError(f"{place}: the vault has no saved version of it any more")


def _named(policy: Policy, baseline: Baseline) -> set[str]:
    """Return the conversations that ``--only`` and ``--below`` name, by the known parents."""
    children: dict[str | None, list[str]] = {}
    for child, parent in baseline.parents.items():
        children.setdefault(parent, []).append(child)
    below, due = set(policy.below), list(policy.below)
    while due:
        more = [child for child in children.get(due.pop(), ()) if child not in below]
        below.update(more)
        due += more
    return below | policy.only


def _recorded_alone(conversation: str, reason: Reason) -> Note:
    message = "that run changed no file; its undo resets only reconcile's own record"
    return Note(conversation=conversation, reason=reason, message=message)


def _is_local(before: ConversationRecord) -> bool:
    return is_local(before.intent)


def _is_as_before(file: File | None, before: Precondition | None) -> bool:
    if file is None or before is None:
        return file is None and before is None
    return (file.digest, file.mtime_ns) == (before.digest, before.mtime_ns)


def _directory_of(place: Place, name: str) -> Place:
    return Place(place.side, place.path[: -len(name) - 1]) if name else place

"""The plan builder: the steps so far, and the virtual sides that each step changes.

Steps are added in the order of execution. The needs of a step follow from the changes that earlier steps made to its
files and directories. So removing a step from the plan also removes everything that builds on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.names import CHILDREN
from reconcile.model.plan import Action, Kind, Precondition, Write
from reconcile.model.snapshot import WHOLE, File, Place, joined
from reconcile.planning.rules.shapes import folders_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.reasons import Reason
    from reconcile.model.snapshot import Copy, File, Foreign, Side, Snapshot


_BELOW = f"/{CHILDREN}/"
_NO_STEPS: Mapping[str, int] = {}


class Node:
    """The directory of one copy, or the file that it consists of. Moving it moves everything below it, as a rename
    does.
    """

    __slots__ = ("_files", "below", "container", "copy", "gone", "name", "prefix", "side", "unkept")

    def __init__(self, side: Side, container: Node | None, prefix: str, name: str) -> None:
        """Put a directory ``name`` at ``prefix`` below its container's directory (None: the side's root)."""
        self.side = side
        self.container = container
        self.prefix = prefix
        self.name = name
        self.copy: Copy | None = None
        self._files: dict[str, File] | None = None
        self.below: dict[int, Node] = {}
        self.unkept: tuple[Foreign, ...] = ()
        """Entries in it that the vault can't keep; the directory isn't removed then."""
        self.gone = False
        if container is not None:
            container.below[id(self)] = self

    @property
    def files(self) -> dict[str, File]:
        """The current files by name; initially those that the scan found."""
        if self._files is None:
            self._files = {file.name: file for file in self.copy.files} if self.copy is not None else {}
        return self._files

    @files.setter
    def files(self, files: dict[str, File]) -> None:
        self._files = files

    @property
    def path(self) -> str:
        """The current path, below the side's ``conversations/``."""
        path = self.prefix + self.name
        node = self.container
        while node is not None:
            path = f"{node.prefix}{node.name}{_BELOW}{path}"
            node = node.container
        return path

    @property
    def place(self) -> Place:
        """The current path with its side."""
        return Place(self.side, self.path)

    def file(self, name: str) -> Place:
        """Return the current place of one of its files."""
        return Place(self.side, joined(self.path, name))

    def move(self, container: Node | None, prefix: str, name: str) -> None:
        """Move it with everything below it."""
        if self.container is not None:
            del self.container.below[id(self)]
        self.container, self.prefix, self.name = container, prefix, name
        if container is not None:
            container.below[id(self)] = self

    def leave(self) -> None:
        """Remove it from the side."""
        self.move(None, "", self.name)
        self.gone = True

    def is_at(self, container: Node | None, prefix: str, name: str) -> bool:
        """Tell whether it is at that place already."""
        return self.container is container and self.name == name and self.prefix == prefix and not self.gone

    def lies_below(self, other: Node) -> bool:
        """Tell whether it is ``other`` or somewhere inside it."""
        node: Node | None = self
        while node is not None and node is not other:
            node = node.container
        return node is other

    def subtree(self) -> Iterator[Node]:
        """Yield everything below it, containers before their contents."""
        stack = list(self.below.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.below.values())

    def conversations_below(self) -> set[str]:
        """Return the conversations whose directories are below it."""
        return {node.copy.conversation for node in self.subtree() if node.copy is not None}

    def obstacle(self) -> str | None:
        """Return why it can't be removed, as text; None if the vault can keep everything in it."""
        return self._words(self.unkept[0]) if self.unkept else None

    def anchor(self) -> str | None:
        """Return why it can't be moved, as text; None if no git repository is in it or below it."""
        repositories = (entry for node in (self, *self.subtree()) for entry in node.unkept if entry.repository)
        return next(map(self._words, repositories), None)

    def _words(self, foreign: Foreign) -> str:
        return f"{self.side}:{foreign.path}: {foreign.obstacle}"

    def is_empty_tree(self) -> bool:
        """Tell whether neither it nor anything below it has a known file."""
        return not self.files and not any(node.files for node in self.subtree())


def nodes_of(snapshot: Snapshot) -> dict[str, Node]:
    """Return the node of every copy of a side, by the path that the scan found."""
    nodes: dict[str, Node] = {}
    for copy in sorted(snapshot.copies, key=lambda copy: copy.path):
        name = copy.dirname
        container, rest = _enclosing(copy.path, nodes)
        node = Node(snapshot.side, container, rest.removesuffix(name), name)
        node.copy = copy
        nodes[copy.path] = node
    for foreign in snapshot.foreign:
        if foreign.special and (owner := owner_of(foreign.path, nodes)) is not None:
            nodes[owner].unkept += (foreign,)
    return nodes


def owner_of(path: str, nodes: Mapping[str, Node]) -> str | None:
    """Return the path of the copy that contains a path; None if no copy does."""
    above = path
    while above:
        above = above.rpartition("/")[0]
        if above in nodes:
            return above
    return None


def _enclosing(path: str, nodes: dict[str, Node]) -> tuple[Node | None, str]:
    """Return the copy that contains a path, and the rest of the path below its children."""
    above, _, rest = path.rpartition(_BELOW)
    container = nodes.get(above)
    return (None, path) if container is None else (container, rest)


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """The kind, the reason and the conversation of a step; common to all kinds."""

    kind: Kind
    conversation: str
    title: str | None
    reason: Reason
    unit: str = WHOLE
    case: int | None = None
    events: tuple[int, int] | None = None
    words: tuple[str, ...] = ()


class Put(Struct, frozen=True, gc=False):
    """A file to write: from another directory's file of that name, from the vault, or from ``content``."""

    file: File
    origin: Node | None = None
    content: bytes | None = None
    kept: str | None = None


class PlanBuilder:
    """The steps so far, and the index of the last step that changed each file and directory."""

    def __init__(self) -> None:
        """Start with an empty plan."""
        self._actions: list[Action] = []
        self._wrote: dict[Node, dict[str, int]] = {}
        """The last step that wrote a file, by node and file name."""
        self._gone: dict[Place, int] = {}
        """The step that removed a file, by its place."""
        self._gone_below: dict[Place, set[int]] = {}
        """The steps that removed files, by each directory above these."""
        self._placed: dict[Node, int] = {}
        """The last step that created or moved a directory, by node."""
        self._used: dict[Node, list[int]] = {}
        """The steps that name a path in a directory, by node: a move changes the path."""
        self._kept: dict[str, list[int]] = {}
        """The steps of each conversation without removals of stale directories, which are in ``_stale``."""
        self._stale: dict[str, list[int]] = {}

    def __iter__(self) -> Iterator[Action]:
        """Yield the actions in order, numbered from 1."""
        return iter(self._actions)

    def steps_of(self, conversation: str) -> tuple[int, ...]:
        """Return the indexes of the steps of a conversation."""
        kept, stale = self._kept.get(conversation, ()), self._stale.get(conversation)
        return tuple(sorted((*kept, *stale)) if stale else kept)

    def before_stale(self, conversation: str) -> tuple[int, ...]:
        """Return those of them that the removal of a stale directory waits for: all but the other such removals."""
        return tuple(self._kept.get(conversation, ()))

    def belongs(self, index: int, conversation: str) -> None:
        """Count a step for another conversation too: a fork is a step of its source."""
        self._kept.setdefault(conversation, []).append(index)

    def action(self, index: int) -> Action:
        """Return one step."""
        return self._actions[index]

    def write(
        self, step: Step, target: Node, puts: Sequence[Put], *, removes: Iterable[str] = (), after: Iterable[int] = ()
    ) -> int:
        """Write files into an existing directory; an equal file is a precondition, but not written."""
        return self._write(step, target, puts, tuple(removes), after, is_new=False)

    def create(self, step: Step, target: Node, puts: Sequence[Put], after: Iterable[int] = ()) -> int:
        """Create a directory with these files; they may come from several directories."""
        index = self._write(step, target, puts, (), after, is_new=True)
        self._placed[target] = index
        return index

    def _write(
        self,
        step: Step,
        target: Node,
        puts: Sequence[Put],
        gone: tuple[str, ...],
        after: Iterable[int],
        *,
        is_new: bool,
    ) -> int:
        needs = self._path_needs(target)
        needs.update(after)
        place, there, side = target.place, target.files, target.side
        at = place.path
        origins: dict[Node, Place] = {}
        sources: list[Precondition] = []
        targets: list[Precondition] = []
        writes: list[Write] = []
        written: list[File] = []
        for put in puts:
            file, origin, source = put.file, put.origin, None
            name = file.name
            if origin is not None:
                if (found_at := origins.get(origin)) is None:
                    found_at = origins[origin] = origin.place
                    needs |= self._path_needs(origin)
                if origin in self._wrote:
                    self._need_file(needs, origin, name)
                source = Place(found_at.side, joined(found_at.path, name))
                now = origin.files[name]
                sources.append(Precondition(source, now.size, now.mtime_ns, now.digest or ""))
            to = Place(side, joined(at, name))
            before = there.get(name)
            if not is_new:
                self._need_file(needs, target, name)
                targets.append(_expect(to, before))
            if before is None and self._gone:
                self._need_room(needs, to)
            if before != file:
                assert file.digest is not None  # noqa: S101 - only valid units are written
                writes.append(Write(to, source, put.content, file.size, file.mtime_ns, file.digest, put.kept))
                written.append(file)
        removes = tuple([target.file(name) for name in gone])
        targets += [_expect(target.file(name), there.get(name)) for name in gone]
        if is_new:
            targets.append(Precondition(place, 0, 0, None))
        is_file = len(puts) == 1 and step.unit != WHOLE
        index = self._add(
            step,
            needs,
            target=to if is_file else place,
            source=source if is_file else next(iter(origins.values()), None),
            writes=tuple(writes),
            removes=removes,
            bytes=sum([write.size for write in writes]),
            expect=(*sources, *targets),
        )
        self._uses(index, target, *origins)
        wrote = self._wrote.setdefault(target, {})
        for file in written:
            there[file.name] = file
            wrote[file.name] = index
        for name in gone:
            del there[name]
        return index

    def tidy(self, step: Step, node: Node, makes: Sequence[str], clears: Sequence[str]) -> int:
        """Create directories, and remove empty ones; no file changes."""
        created, removed = (tuple(Place(node.side, path) for path in paths) for paths in (makes, clears))
        return self._add(step, self.steps_of(step.conversation), target=node.place, makes=created, clears=removed)

    def move(
        self, step: Step, node: Node, container: Node | None, prefix: str, name: str, after: Iterable[int] = ()
    ) -> int:
        """Rename a directory, with everything below it, to another place."""
        needs = set(after) | self._path_needs(node) | self.users(node)
        if container is not None:
            needs |= self._path_needs(container)
        metadata = [_expect_file(node, file) for file in node.files.values()]
        source, left = node.place, node.container
        node.move(container, prefix, name)
        index = self._add(
            step,
            needs,
            source=source,
            target=node.place,
            expect=(*metadata, Precondition(node.place, 0, 0, None)),
            touches=node.conversations_below(),
        )
        self._placed[node] = index
        # Steps that use a path of the old place or of the new one may move only after this step.
        self._uses(index, node, *(() if left is None else (left,)))
        return index

    def age(self, step: Step, node: Node, names: Iterable[str], mtime_ns: int) -> int:
        """Set files of a directory to an older time."""
        names = tuple(names)
        needs = self._path_needs(node)
        for name in names:
            self._need_file(needs, node, name)
        expect = tuple(_expect_file(node, node.files[name]) for name in names)
        index = self._add(step, needs, target=node.place, mtime_ns=mtime_ns, expect=expect)
        self._uses(index, node)
        wrote = self._wrote.setdefault(node, {})
        for name in names:
            node.files[name] = replace(node.files[name], mtime_ns=mtime_ns)
            wrote[name] = index
        return index

    def remove(
        self,
        step: Step,
        node: Node,
        after: Iterable[int],
        names: Sequence[str] | None = None,
        together: str | None = None,
        stays: Sequence[tuple[Node, str]] = (),
    ) -> int:
        """Remove a whole directory that contains no other, or the named files of it.

        ``together``: the group that is removed completely or not at all. ``stays``: the files that must exist for the
        removal, by their directories.
        """
        needs = set(after) | self._path_needs(node)
        for other, name in stays:
            needs |= self._path_needs(other)
            self._need_file(needs, other, name)
        if names is None:
            needs |= self.users(node)
        for name in node.files if names is None else names:
            self._need_file(needs, node, name)
        files = [node.files[name] for name in (node.files if names is None else names)]
        places = [node.file(file.name) for file in files]
        index = self._add(
            step,
            needs,
            target=node.place,
            removes=() if names is None else tuple(node.file(name) for name in names),
            bytes=sum(file.size for file in files),
            expect=(
                *(_expect_file(node, file) for file in files),
                *(_expect_file(other, other.files[name]) for other, name in stays),
            ),
            together=together,
        )
        for place in places:
            self._gone[place] = index
            for folder in folders_of(place.path):
                self._gone_below.setdefault(Place(place.side, folder), set()).add(index)
        self._uses(index, *(other for other, _ in stays))
        if names is None:
            self._uses(index, *(() if node.container is None else (node.container,)))
            node.leave()
        else:
            self._uses(index, node)
            for name in names:
                del node.files[name]
        return index

    def _add(
        self,
        step: Step,
        needs: Collection[int],
        *,
        target: Place,
        source: Place | None = None,
        writes: tuple[Write, ...] = (),
        removes: tuple[Place, ...] = (),
        mtime_ns: int | None = None,
        bytes: int = 0,  # noqa: A002 - the word of the plan
        expect: tuple[Precondition, ...] = (),
        touches: Collection[str] = (),
        together: str | None = None,
        makes: tuple[Place, ...] = (),
        clears: tuple[Place, ...] = (),
    ) -> int:
        index = len(self._actions)
        action = Action(
            id=str(index + 1),
            kind=step.kind,
            conversation=step.conversation,
            title=step.title,
            unit=step.unit,
            reason=step.reason,
            case=step.case,
            source=source,
            target=target,
            writes=writes,
            removes=removes,
            mtime_ns=mtime_ns,
            bytes=bytes,
            events=step.events,
            needs=tuple([str(need + 1) for need in sorted(needs)]) if needs else (),
            expect=expect,
            touches=tuple(sorted({step.conversation, *touches})) if touches else (step.conversation,),
            together=together,
            words=step.words,
            makes=makes,
            clears=clears,
        )
        self._actions.append(action)
        steps = self._kept if step.kind is not Kind.REMOVE_STALE else self._stale
        steps.setdefault(step.conversation, []).append(index)
        return index

    def _path_needs(self, node: Node) -> set[int]:
        """Return the steps that put a directory, and those that contain it, at its current place."""
        needs = set()
        at: Node | None = node
        while at is not None:
            if at in self._placed:
                needs.add(self._placed[at])
            at = at.container
        return needs

    def placing(self, node: Node) -> set[int]:
        """Return the steps that put a directory at its place; none if it has been there before."""
        return self._path_needs(node)

    def _uses(self, index: int, *nodes: Node) -> None:
        for node in nodes:
            self._used.setdefault(node, []).append(index)

    def users(self, node: Node) -> set[int]:
        """Return the steps that use a path in a directory, or in one below it."""
        users = set(self._used.get(node, ()))
        for below in node.subtree():
            users.update(self._used.get(below, ()))
        return users

    def _need_file(self, needs: set[int], node: Node, name: str) -> None:
        """Add the last step that wrote a file, if there is one."""
        index = self._wrote.get(node, _NO_STEPS).get(name)
        if index is not None:
            needs.add(index)

    def _need_room(self, needs: set[int], new: Place) -> None:
        """Add the steps that removed a file where a directory comes, or files of a directory where a file comes."""
        needs |= self._gone_below.get(new, set())
        above = (Place(new.side, folder) for folder in folders_of(new.path))
        needs.update(self._gone[folder] for folder in above if folder in self._gone)


def _expect_file(node: Node, file: File) -> Precondition:
    return _expect(node.file(file.name), file)


def _expect(place: Place, file: File | None) -> Precondition:
    """Return the precondition that a file is as it is, or absent."""
    return (
        Precondition(place, 0, 0, None)
        if file is None
        else Precondition(place, file.size, file.mtime_ns, file.digest or "")
    )

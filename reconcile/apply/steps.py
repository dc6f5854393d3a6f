"""One action on disk: prepared out of sight, then published by renames (DESIGN.md section 7, "Files").

Staging directories are called ``.reconcile-<state>-<run>`` and lie in the ``conversations/`` directory that they
serve, so that a rename never crosses a file system and JP, which ignores names with a dot, sees nothing of them.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from reconcile.apply.discard import Discard
from reconcile.apply.drift import DriftError
from reconcile.apply.swap import Swap
from reconcile.core.model import EXTRA, METADATA, WHOLE, Place, Side
from reconcile.core.plan import Kind
from reconcile.disk.hashing import CHUNK, chunks_of
from reconcile.disk.reading import mtime_of, print_of, whole
from reconcile.disk.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reconcile.apply.ahead import Ahead, Staged
    from reconcile.core.model import Digest
    from reconcile.core.plan import Action, Expect, Write
    from reconcile.disk.changes import Root
    from reconcile.disk.durable import Durability
    from reconcile.disk.made import Files
    from reconcile.disk.reading import Print
    from reconcile.disk.vault import Vault

MOVES = (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE)


class Prepared(Struct, frozen=True):
    """An action that can be carried out at once: what is left are renames."""

    action: Action
    publish: Callable[[], None]
    made: Files = field(default_factory=dict)
    """Of a directory that is new: the files in it, as they were when they were written."""


class Kept(NamedTuple):
    """A file that the vault has: as it was when it was read, and its content."""

    status: os.stat_result
    content: Digest


class Stage(Struct, kw_only=True):
    """The two roots, the vault, and what has been staged for the level in hand."""

    roots: Mapping[Side, Root]
    vault: Vault
    durability: Durability
    run: str
    directory: str
    """The name of our staging directory on either side."""
    unit_of: Callable[[str], str | None]
    id_of: Callable[[str], str | None]
    metadata_file: str
    """The name of the metadata's file; empty where a record may be a single file (`Format.metadata_file`)."""
    numbers: int = 0
    staged: list[str] = field(default_factory=list)
    renamed: set[str] = field(default_factory=set)
    versions: list[Version] = field(default_factory=list)
    used: set[Side] = field(default_factory=set)
    ahead: Ahead | None = None
    """What another process stages ahead of this one, if there is one."""
    untidy: list[tuple[Place, int]] = field(default_factory=list)
    """What was left by something, with empty directories above it that could not be removed: see `tidy`."""

    def prepare(self, action: Action) -> Prepared:
        """Check what the action expects, save what goes, stage what comes.

        Raises:
            DriftError: something else is there than was planned for.
            OSError: something could not be read or written.
        """
        staged = self.ahead.take(action) if self.ahead is not None else None
        if staged is not None and self._is_as_staged(action, staged):
            root = self.roots[action.target.side]
            self.staged += [root.absolute(f"{staged.base}/{name}") for name in staged.made]
            return Prepared(action, lambda: self._publish_directory(action, staged.base), staged.made)
        with self.near_sources(action):
            return self._prepared(action)

    def _is_as_staged(self, action: Action, staged: Staged) -> bool:
        """Tell whether every source is, under its lock, the file that was read when a directory was staged ahead."""
        for expect in action.expect:
            if expect.absent:
                self.check(expect)
        for place, read in staged.sources.items():
            try:
                if print_of(self.roots[place.side].status_below(place.path)) != read:
                    return False
            except OSError:
                return False
        return True

    @contextmanager
    def near_sources(self, action: Action) -> Iterator[None]:
        """Hold the directories that an action reads from within a block."""
        with ExitStack() as stack:
            for side, path in _sources(action):
                stack.enter_context(self.roots[side].near(path))
            yield

    def _prepared(self, action: Action) -> Prepared:
        for expect in action.expect:
            self.check(expect)
        if action.kind in MOVES:
            return Prepared(action, lambda: self._move(action))
        if action.makes or action.clears:
            return Prepared(action, lambda: self._tidied(action))
        if action.kind is Kind.AGE:
            return Prepared(action, lambda: self._age(action))
        if action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE:
            discard = Discard(self.roots[action.target.side], action, self)
            discard.save()
            return Prepared(action, discard.carry_out)
        return self._prepare_writes(action)

    def flush(self) -> list[Version]:
        """Make the vault's new objects and everything staged durable; only then may anything be replaced.

        Return what is in the vault by that, which has to be written down before.
        """
        self.vault.flush()
        directories = sorted({os.path.dirname(path) for path in self.staged})
        within = [self.roots[side].absolute(self.directory) for side in sorted(self.used)]
        self.durability.flush_all(self.staged, directories, within)
        versions, self.staged, self.versions = self.versions, [], []
        return versions

    def flush_directories(self) -> None:
        """Make the renames of a level durable.

        Raises `OSError`, also where a whole side was moved meanwhile: its directories can't be found to be flushed.
        """
        for root in self.roots.values() if self.renamed else ():
            os.stat(root.path)
        renamed = [path for path in sorted(self.renamed) if os.path.isdir(path)]
        self.durability.flush_all((), renamed)
        self.renamed = set()

    def check(self, expect: Expect) -> os.stat_result | None:
        """Look whether what an action expects is there, and return the status of a file.

        Raises:
            DriftError: something else is, or nothing.
        """
        root = self.roots[expect.place.side]
        try:
            status = root.status(expect.place.path)
        except (FileNotFoundError, NotADirectoryError):
            if expect.absent:
                return None
            raise DriftError(f"{expect.place}: found nothing, expected the file of the plan") from None
        if expect.absent:
            if root.is_hollow(expect.place.path):
                return None
            raise DriftError(f"{expect.place}: found something, expected nothing")
        if not stat.S_ISREG(status.st_mode) or (status.st_size, mtime_of(status)) != (
            expect.size,
            expect.mtime_ns,
        ):
            raise DriftError(f"{expect.place}: found another file, expected the one of the plan")
        return status

    def new_name(self, side: Side) -> str:
        """Return an unused name in the staging directory of a side, which is made with the first.

        Raises `FileExistsError` where something has that directory's name already: it isn't ours.
        """
        if side not in self.used:
            if not self.roots[side].make_directories(self.directory):
                words = "found something there already, expected to make a staging directory of this name"
                raise FileExistsError(errno.EEXIST, words, self.roots[side].absolute(self.directory))
            self.used.add(side)
            self.roots[side].hold(self.directory)
        self.numbers += 1
        return f"{self.directory}/{self.numbers}"

    def save(self, action: Action, place: Place, name: str, expected: Digest | None) -> Kept:
        """Put a file into the vault before it goes.

        Raises:
            DriftError: its content is another than the plan expects.
        """
        fd = self.roots[place.side].open_file(place.path)
        try:
            kept = self.vault.put_file(fd)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        if expected is not None and kept.xxh3 != expected:
            raise DriftError(f"{place}: found other content, expected that of the plan")
        self.versions.append(
            Version(
                digest=kept.digest,
                xxh3=kept.xxh3,
                size=kept.size,
                conversation=action.conversation,
                unit=self.unit_of(name) or action.unit,
                file=name,
                side=place.side,
                path=place.path,
                mtime_ns=mtime_of(status),
                run=self.run,
                why=action.reason.value,
            )
        )
        return Kept(status, kept.xxh3)

    @contextmanager
    def _content(self, write: Write) -> Iterator[Iterable[bytes]]:
        """Open what is to be written, which may be larger than memory."""
        if write.kept is not None:
            with self.vault.open(write.kept) as kept:
                yield chunks_of(kept.fileno())
        elif write.source is None:
            yield (write.content or b"",)
        else:
            fd = self.roots[write.source.side].open_file(write.source.path)
            try:
                yield (whole(fd, write.size)[0],) if write.size <= CHUNK else chunks_of(fd)
            finally:
                os.close(fd)

    def _prepare_writes(self, action: Action) -> Prepared:
        if action.unit == WHOLE:
            return self._prepare_directory(action)
        expected = {expect.place: expect for expect in action.expect}
        side = action.target.side
        replaced: dict[Place, Kept] = {}
        for place in (*(write.target for write in action.writes), *action.removes):
            expect = expected.get(place)
            if expect is not None and not expect.absent:
                replaced[place] = self.save(action, place, self._name_in(action, place), expect.digest)
        base = self.new_name(side)
        staged = []
        for number, write in enumerate(action.writes):
            name = f"{base}-{number}"
            self._stage(side, name, write)
            staged.append((name, write.target))
        return Prepared(action, lambda: self._publish_files(action, staged, replaced))

    def _prepare_directory(self, action: Action) -> Prepared:
        """Stage a whole directory, or the file that is all of a conversation."""
        base = self.new_name(action.target.side)
        if [write.target for write in action.writes] == [action.target]:
            self._stage(action.target.side, base, action.writes[0])
            return Prepared(action, lambda: self._publish_directory(action, base))
        made = self.write_directory(action, base)
        return Prepared(action, lambda: self._publish_directory(action, base), made)

    def write_directory(self, action: Action, base: str) -> Files:
        """Write a new directory under a name in our staging directory.

        Raises:
            DriftError: a source has other content than that of the plan.
            OSError: something could not be read or written.
        """
        root = self.roots[action.target.side]
        root.make_directory(base)
        made: dict[str, tuple[Print, Digest]] = {}
        with root.near(base):
            for write in action.writes:
                path = write.target.path[len(action.target.path) + 1 :]
                folder = path.rpartition("/")[0]
                if folder:
                    root.make_directories(f"{base}/{folder}")
                made[path] = self._stage(action.target.side, f"{base}/{path}", write)
        return made

    def _stage(self, side: Side, name: str, write: Write) -> tuple[Print, Digest]:
        root = self.roots[side]
        with self._content(write) as chunks:
            # Read once: the bytes that are checked are the bytes that are written.
            made = root.create_file(name, chunks, write.mtime_ns)
            if made[1] != write.digest:
                raise DriftError(f"{write.source}: found other content, expected that of the plan")
        self.staged.append(root.absolute(name))
        return made

    def _publish_directory(self, action: Action, base: str) -> None:
        self._make_room(action.target)
        self._rename_new(base, action.target)

    def _publish_files(self, action: Action, staged: list[tuple[str, Place]], replaced: Mapping[Place, Kept]) -> None:
        for place, before in replaced.items():
            self._check_same(place, before.status)
        side = action.target.side
        swap = Swap(self.roots[side], lambda: self.new_name(side))
        try:
            for name, target in staged:
                self._publish_file(swap, name, target, replaced.get(target))
            for place in action.removes:
                if place in replaced:
                    swap.take_away(place.path, replaced[place].content)
                    self._renamed(place)
                    self.tidy(place, self._name_in(action, place).count("/"))
        except (DriftError, OSError):
            swap.undo()
            raise
        swap.settle()

    def _publish_file(self, swap: Swap, name: str, target: Place, before: Kept | None) -> None:
        self._make_room(target)
        if before is not None:
            swap.root.set_mode(name, stat.S_IMODE(before.status.st_mode))
            swap.replace(name, target.path, before.content)
        else:
            try:
                swap.add(name, target.path)
            except FileExistsError:
                raise DriftError(f"{target}: found something, expected nothing") from None
        self._renamed(target)

    def _check_same(self, place: Place, before: os.stat_result) -> None:
        """Look once more, right before: the file that the vault has is still the one that is there."""
        try:
            now = self.roots[place.side].status(place.path)
        except FileNotFoundError:
            raise DriftError(f"{place}: found nothing, expected the file of the plan") from None
        if print_of(now) != print_of(before):
            raise DriftError(f"{place}: found another file, expected the one of the plan")

    def _move(self, action: Action) -> None:
        source, target = action.source, action.target
        assert source is not None  # noqa: S101 - a move has a source
        for expect in action.expect:
            self.check(expect)
        self._make_room(target)
        self._rename_new(source.path, target)
        self._renamed(source)
        self.tidy(source)

    def _rename_new(self, source: str, target: Place) -> None:
        """Give a directory a name that must be free; a directory with nothing in it gives way."""
        root = self.roots[target.side]
        try:
            root.rename_new(source, target.path)
        except FileExistsError:
            root.remove_hollow(target.path)
            try:
                root.rename_new(source, target.path)
            except FileExistsError:
                raise DriftError(f"{target}: found something, expected nothing") from None
        self._renamed(target)

    def _age(self, action: Action) -> None:
        for expect in action.expect:
            self.check(expect)
            root = self.roots[expect.place.side]
            if not root.set_time(expect.place.path, action.mtime_ns or 0, expect.digest or ""):
                raise DriftError(f"{expect.place}: found other content, expected that of the plan")

    def _make_room(self, target: Place) -> None:
        """Make the directories above a new name: `.archive`, a `conversations`, an extra's folder."""
        above = target.path.rpartition("/")[0]
        if above:
            root = self.roots[target.side]
            for made in root.make_directories(above):
                self.renamed.add(os.path.dirname(root.absolute(made)))

    def _renamed(self, place: Place) -> None:
        self.renamed.add(os.path.dirname(self.roots[place.side].absolute(place.path)))

    def _name_in(self, action: Action, place: Place) -> str:
        """Return a file's name below its conversation's directory."""
        if action.unit == METADATA:
            return self.metadata_file
        if action.unit.startswith(EXTRA):
            return action.unit.removeprefix(EXTRA)
        return place.path.rpartition("/")[2]

    def _tidied(self, action: Action) -> None:
        """Make directories that are missing; a lock that was left behind goes by being taken over, before this."""
        root = self.roots[action.target.side]
        for place in action.makes:
            for made in root.make_directories(place.path):
                self.renamed.add(os.path.dirname(root.absolute(made)))

    def tidy(self, left: Place, folders: int = 0) -> None:
        """Remove the directories that something has left, where nothing else is in them, now or in the end."""
        try:
            self.roots[left.side].remove_emptied(left.path, folders)
        except OSError:
            self.untidy.append((left, folders))


def _sources(action: Action) -> Iterable[tuple[Side, str]]:
    """Return the directories that an action reads from, each with its side."""
    places = (write.source for write in action.writes if write.source is not None)
    return {(place.side, place.path.rpartition("/")[0]): None for place in places}

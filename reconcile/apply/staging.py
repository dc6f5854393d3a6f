"""Where an action's new files wait, out of sight, and where what goes is saved (docs/design/run.md#rule-50).

Staging directories are called ``.reconcile-<state>-<run>`` and lie in the ``conversations/`` directory that they
serve, so that a rename never crosses a file system and JP, which ignores names with a dot, sees nothing of them.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct, field

from reconcile.fs.files import mtime_of, read_all
from reconcile.fs.hashing import CHUNK, chunks_of
from reconcile.model.snapshot import EXTRA, METADATA, Place, Side
from reconcile.state.vault import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reconcile.fs.durability import Durability
    from reconcile.fs.files import Fingerprint
    from reconcile.fs.mutations import Root
    from reconcile.index.adopted import Files
    from reconcile.model.plan import Action, Precondition, Write
    from reconcile.model.snapshot import Digest
    from reconcile.state.vault import Vault


class DriftError(Exception):
    """Something isn't as the plan expects it: the conversation is left as it is."""


class Kept(NamedTuple):
    """A file that the vault has: as it was when it was read, and its content."""

    status: os.stat_result
    content: Digest


class Staged(NamedTuple):
    """A directory that was staged ahead: its name, its files, and the status of each source before it was read."""

    base: str
    made: Files
    sources: Mapping[Place, Fingerprint]


class StagedAhead(Protocol):
    """What another process stages ahead of this one."""

    def take(self, action: Action) -> Staged | None:
        """Return what was staged of an action, once; None: nothing was, and nothing will be."""


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
    ahead: StagedAhead | None = None
    """What another process stages ahead of this one, if there is one."""
    untidy: list[tuple[Place, int]] = field(default_factory=list)
    """What was left by something, with empty directories above it that could not be removed: see `tidy`."""

    @contextmanager
    def near_sources(self, action: Action) -> Iterator[None]:
        """Hold the directories that an action reads from within a block."""
        with ExitStack() as stack:
            for side, path in _sources(action):
                stack.enter_context(self.roots[side].pinned(path))
            yield

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

    def check(self, expect: Precondition) -> os.stat_result | None:
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
            if root.is_empty_tree(expect.place.path):
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
            self.roots[side].pin(self.directory)
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

    def write_directory(self, action: Action, base: str) -> Files:
        """Write a new directory under a name in our staging directory.

        Raises:
            DriftError: a source has other content than that of the plan.
            OSError: something could not be read or written.
        """
        root = self.roots[action.target.side]
        root.make_directory(base)
        made: dict[str, tuple[Fingerprint, Digest]] = {}
        with root.pinned(base):
            for write in action.writes:
                path = write.target.path[len(action.target.path) + 1 :]
                folder = path.rpartition("/")[0]
                if folder:
                    root.make_directories(f"{base}/{folder}")
                made[path] = self.write(action.target.side, f"{base}/{path}", write)
        return made

    def write(self, side: Side, name: str, write: Write) -> tuple[Fingerprint, Digest]:
        """Write a new file under a name in our staging directory; raises as `write_directory` does."""
        root = self.roots[side]
        with self._content(write) as chunks:
            # Read once: the bytes that are checked are the bytes that are written.
            made = root.create_file(name, chunks, write.mtime_ns)
            if made[1] != write.digest:
                raise DriftError(f"{write.source}: found other content, expected that of the plan")
        self.staged.append(root.absolute(name))
        return made

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
                yield (read_all(fd, write.size)[0],) if write.size <= CHUNK else chunks_of(fd)
            finally:
                os.close(fd)

    def make_room(self, target: Place) -> None:
        """Make the directories above a new name: `.archive`, a `conversations`, an extra's folder."""
        above = target.path.rpartition("/")[0]
        if above:
            root = self.roots[target.side]
            for made in root.make_directories(above):
                self.renamed.add(os.path.dirname(root.absolute(made)))

    def note_renamed(self, place: Place) -> None:
        """Note that the directory around a name has to be flushed."""
        self.renamed.add(os.path.dirname(self.roots[place.side].absolute(place.path)))

    def tidy(self, left: Place, folders: int = 0) -> None:
        """Remove the directories that something has left, where nothing else is in them, now or in the end."""
        try:
            self.roots[left.side].remove_empty_parents(left.path, folders)
        except OSError:
            self.untidy.append((left, folders))

    def name_in(self, action: Action, place: Place) -> str:
        """Return a file's name below its conversation's directory."""
        if action.unit == METADATA:
            return self.metadata_file
        if action.unit.startswith(EXTRA):
            return action.unit.removeprefix(EXTRA)
        return place.path.rpartition("/")[2]


def _sources(action: Action) -> Iterable[tuple[Side, str]]:
    """Return the directories that an action reads from, each with its side."""
    places = (write.source for write in action.writes if write.source is not None)
    return {(place.side, place.path.rpartition("/")[0]): None for place in places}

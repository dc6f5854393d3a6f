"""A part of one side, looked at again: directories in which something has happened, and whatever is new in them.

Who names them may have missed something, so that nothing is concluded from what isn't there: where a conversation seems
to have left the side, where something that is none has come or gone, or where anything is in doubt, the answer is that
the whole side has to be looked at.
"""

from __future__ import annotations

import stat
import time
from typing import TYPE_CHECKING, NamedTuple

from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import Copy, Partition
from reconcile.scan.reader import Spot
from reconcile.scan.walker import PARTITIONS, Level, Walk

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet

    from reconcile.fs.dirfd import Directory
    from reconcile.index.stat_cache import Index
    from reconcile.index.stat_table import Sweep
    from reconcile.model.format import Format
    from reconcile.planning.incremental.side_index import SideIndex

_TRIES = 3


class Again(NamedTuple):
    """What is there now, of what was looked at, and the paths at which no copy is any more.

    ``sweep``: everything that was looked at, with its status.
    """

    copies: tuple[Copy, ...]
    gone: frozenset[str]
    sweep: Sweep


def look_again(
    known: SideIndex, conversations_dir: str, fmt: Format, index: Index, paths: Collection[str]
) -> Again | None:
    """Look at some directories of a known side, and have the index know what was found; None: that can't suffice.

    ``paths`` are those of conversations' directories and of directories of conversations, below the side's. In a
    directory of conversations only what is new is looked at; a conversation's is looked at with all that is inside it.
    """
    for _ in range(_TRIES):
        walk = _Relook(known, fmt, index)
        try:
            settled = walk.again(conversations_dir, paths)
        except OSError:
            return None
        if walk.in_doubt:
            return None
        if settled:
            gone = frozenset(walk.gone - {copy.path for copy in walk.copies})
            found = Again(tuple(walk.copies), gone, walk.reader.sweep)
            _keep(index, walk, (*found.gone, *(copy.path for copy in found.copies)))
            return found
    return None


def look_at(
    known: SideIndex, conversations_dir: str, fmt: Format, index: Index, spots: Collection[Spot]
) -> tuple[Copy, ...] | None:
    """Look at single directories of a known side, and not at what is inside them; None: that can't suffice."""
    walk = Walk(known.side, fmt, index, frozenset(), time.time_ns())
    try:
        with walk.opened(conversations_dir) as root:
            for spot in spots:
                pending: list[Level] = []
                with root.below(spot.path.rpartition("/")[0]) as level:
                    walk.copy(level, spot, pending)
                for below in pending:
                    if below.opened is not None:
                        below.opened.close()
    except OSError:
        return None
    whole = walk.identity == known.identity and len(walk.copies) == len(spots) and not walk.has_problems
    if not whole:
        return None
    _keep(index, walk, [copy.path for copy in walk.copies])
    return tuple(walk.copies)


def _keep(index: Index, walk: Walk, paths: Iterable[str]) -> None:
    new = walk.reader.index
    for path in paths:
        if path not in new.rows:
            index.rows.pop(path, None)
        index.copies.pop(path, None)
    # What is as it was isn't stored once more.
    index.rows.update((path, row) for path, row in new.rows.items() if index.rows.get(path) != row)
    index.copies.update(new.copies)


class _Relook(Walk):
    """A walk that looks only at what was named, and at what isn't known."""

    def __init__(self, known: SideIndex, fmt: Format, index: Index) -> None:
        super().__init__(known.side, fmt, index, frozenset(), time.time_ns())
        self.gone: set[str] = set()
        self.in_doubt = False
        self._known = known
        self._listed: dict[str, AbstractSet[str]] = {}
        """By the path of a directory of conversations that was named, the copies that are there."""
        self._named: set[str] = set()
        """The conversations' directories that were named."""

    def again(self, conversations_dir: str, paths: Iterable[str]) -> bool:
        """Look; False where something changed on the way. Raises `OSError` where something can't be looked at."""
        with self.opened(conversations_dir) as root:
            self.in_doubt = self.identity != self._known.identity
            for path in sorted(set(paths), key=lambda each: (each.count("/"), each)):
                place = place_of(path, self.fmt)
                if place is None:
                    self.in_doubt = True
                elif isinstance(place, Level):
                    self._look_into(root, place)
                else:
                    self._look_at(root, place)
            self._note_gone()
            self.in_doubt = self.in_doubt or self.has_problems or self._has_other_things()
            return self.at_rest(root, conversations_dir)

    def entries_of(self, directory: Directory, level: Level) -> Iterable[os.DirEntry[str]]:
        """What is new in a directory of conversations, or inside what was named."""
        if self._is_named(level.path):
            return directory.entries()
        entries, above = list(directory.entries()), f"{level.path}/" if level.path else ""
        there = {above + entry.name: entry for entry in entries if entry.is_dir(follow_symlinks=False)}
        new = there.keys() - self._known.paths | self._named.intersection(there)
        self._listed[level.path] = there.keys() - new if new else there.keys()
        return [*(there[path] for path in new), *(each for each in entries if not each.is_dir(follow_symlinks=False))]

    def _look_into(self, root: Directory, level: Level) -> None:
        """Look at what is new in a directory of conversations."""
        if self._is_named(level.path):
            return
        self._listed[level.path] = frozenset()
        if self._status(root, level.path) is not None:
            self.walk(root, [level])

    def _look_at(self, root: Directory, spot: Spot) -> None:
        """Look at a conversation's directory, with all that is inside it."""
        if self._is_named(spot.path):
            return
        self._named.add(spot.path)
        self.gone.update(self._known.within(spot.path))
        status = self._status(root, spot.path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            pending: list[Level] = []
            with root.below(spot.path.rpartition("/")[0]) as level:
                self.copy(level, spot, pending)
            self.walk(root, pending)
        elif status is not None:
            self.in_doubt = True

    def _is_named(self, path: str) -> bool:
        """Tell whether a path is that of a conversation's directory that was named, or inside one."""
        while path:
            if path in self._named:
                return True
            path = path.rpartition("/")[0]
        return False

    def _status(self, root: Directory, path: str) -> os.stat_result | None:
        """The status of a directory, None where there is none; the one around it must stay as it is meanwhile."""
        above = path.rpartition("/")[0]
        try:
            around = root.stat(above) if above else root.status()
            self.note_stamp(above, around)
            return root.stat(path) if path else around
        except FileNotFoundError:
            return None

    def _note_gone(self) -> None:
        """Note what isn't any more in the directories that were listed, nor in partitions of theirs that are gone."""
        for listed, there in self._listed.items():
            owner = _owner(listed)
            base = f"{owner}/{CHILDREN}" if owner else ""
            for path in self._known.inside(owner) - there:
                at = path.rpartition("/")[0]
                if at == listed or (listed == base and at not in self._listed):
                    self.gone.update(self._known.within(path))

    def _has_other_things(self) -> bool:
        """Tell whether something that is no conversation is there that wasn't, or isn't any more."""
        before = {each for path in self.gone for each in self._known.foreign(path)}
        for listed in self._listed:
            there = self._known.foreign(_owner(listed))
            before.update(each for each in there if each.path.rpartition("/")[0] == listed)
        return before != set(self.reader.foreign)


def _owner(level: str) -> str:
    """Return the path of the copy that a directory of conversations lies in, empty for none."""
    return f"{level}/".rpartition(f"/{CHILDREN}/")[0]


def place_of(path: str, fmt: Format) -> Spot | Level | None:
    """Return what a path is by its names; what lies in a conversation's directory stands for that. None: neither."""
    level, names = Level("", "", None, Partition.LIVE), path.split("/") if path else []
    while names:
        name = names.pop(0)
        at = f"{level.path}/{name}" if level.path else name
        if name in PARTITIONS:
            level = level._replace(path=at, partition=PARTITIONS[name])
            continue
        conversation = None if name.startswith(".") else fmt.id_of(name)
        if conversation is None:
            return None
        if names[:1] != [CHILDREN]:
            return Spot(at, conversation, level.partition, level.container)
        names.pop(0)
        level = Level(f"{at}/{CHILDREN}", at, conversation, level.partition)
    return level

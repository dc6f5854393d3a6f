"""One pass over a side whose records have fixed places: what the format names is looked at, and nothing else."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from reconcile.fs.dirfd import Directory, is_special, kind_of
from reconcile.model.format import Entry
from reconcile.model.snapshot import Foreign, Partition
from reconcile.scan.reader import SYMLINK, Spot
from reconcile.scan.walker import Level, Walk

if TYPE_CHECKING:
    import os

    from reconcile.model.format import Places


class FixedWalk(Walk):
    """Directories are entered where the format says so; a record is a directory with all that is in it, or a file."""

    @property
    def places(self) -> Places:
        """What the format says of places."""
        assert self.fmt.places is not None  # noqa: S101 - else it isn't walked so
        return self.fmt.places

    def entry_of(self, entry: os.DirEntry[str], level: Level, pending: list[Level]) -> Spot | None:
        """What one entry is to the format."""
        path = f"{level.path}/{entry.name}" if level.path else entry.name
        directory = entry.is_dir(follow_symlinks=False)
        kind = self.places.entry(path, directory=directory)
        if kind is Entry.IGNORED:
            return None
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        if kind is Entry.ENTER and directory:
            pending.append(level._replace(path=path, opened=None))
        elif kind is Entry.RECORD and (directory or stat.S_ISREG(mode)):
            return Spot(path, path, Partition.LIVE, None)
        else:
            link = stat.S_ISLNK(mode)
            what = SYMLINK if link else "a directory" if directory else kind_of(mode)
            self.reader.foreign.append(Foreign(path, what, link, is_special(mode)))
        return None

    def look(self, level: Directory, spot: Spot, pending: list[Level]) -> None:  # noqa: ARG002
        """One record; a directory in which no file is known is none."""
        name = spot.path.rpartition("/")[2]
        if stat.S_ISREG(level.stat(name).st_mode):
            self.copies.append(self.reader.look_at_file(level, name, spot))
            return
        with level.below(name) as directory:
            copy, _ = self.reader.look(directory, spot)
        if copy.files:
            self.copies.append(copy)

"""Replaces several files as one: if one fails, the others are put back, so that a unit is never partially replaced.

The last check of a file and its replacement are one step: the new and the old file are exchanged, then the old one is
compared with the vault. If it differs, another program has written at that moment, and the old file is put back.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from reconcile.apply.staging import DriftError
from reconcile.fs.files import Fingerprint, fingerprint_of
from reconcile.fs.hashing import digest_file
from reconcile.fs.mutations import NotAFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.fs.mutations import Root
    from reconcile.model.snapshot import Digest


class _Change(NamedTuple):
    """``inode`` is that of the new file, None after a removal; ``old`` the present name of the old file, if any."""

    name: str
    inode: int | None
    old: str | None


class Swap(Struct):
    """The changes so far. ``spare`` returns an unused name in the staging directory.

    The end of the run saves the rest of that directory to the vault, so that no unexpected file is lost.
    """

    root: Root
    spare: Callable[[], str]
    changed: list[_Change] = field(default_factory=list)
    saved: dict[str, Fingerprint] = field(default_factory=dict)
    """The old files that the vault has, with their fingerprints after the exchange."""

    def replace(self, new: str, name: str, content: Digest) -> None:
        """Replace the file with this content. Raises `DriftError`, `OSError`."""
        inode = self.root.status(new).st_ino
        try:
            old = new if self.root.exchange(new, name) else self._rename_over(new, name)
        except FileNotFoundError:
            raise DriftError(f"{name}: found nothing, expected the file of the plan") from None
        self.changed.append(_Change(name, inode, old))
        if old is not None:
            self._verify(name, old, content)

    def add(self, new: str, name: str) -> None:
        """Add a file with an unused name. Raises `FileExistsError`."""
        inode = self.root.status(new).st_ino
        self.root.rename_new(new, name)
        self.changed.append(_Change(name, inode, None))

    def remove(self, name: str, content: Digest) -> None:
        """Remove the file with this content. Raises `DriftError`, `OSError`."""
        old = self.spare()
        try:
            self.root.rename(name, old)
        except FileNotFoundError:
            raise DriftError(f"{name}: found nothing, expected the file of the plan") from None
        self.changed.append(_Change(name, None, old))
        self._verify(name, old, content)

    def undo(self) -> None:
        """Undo all changes, the last first; a file that another program has written since stays."""
        for change in reversed(self.changed):
            with contextlib.suppress(OSError):
                self._revert(change)
        self.changed.clear()

    def finish(self) -> None:
        """Remove the old files, which the vault has. One that was written since stays; the run's end saves it."""
        for old, known in self.saved.items():
            if fingerprint_of(self.root.status(old)) == known:
                self.root.unlink(old)
        self.changed.clear()

    def _verify(self, name: str, old: str, content: Digest) -> None:
        """Compare the old file with the expected content."""
        try:
            fd = self.root.open_file(old)
        except NotAFileError:
            raise DriftError(f"{name}: became something else while it was being replaced; it is back") from None
        try:
            actual = digest_file(fd)
            self.saved[old] = fingerprint_of(os.fstat(fd))
        finally:
            os.close(fd)
        if actual != content:
            raise DriftError(f"{name}: was written to while it was being replaced; it is back in its place")

    def _revert(self, change: _Change) -> None:
        name, inode, old = change
        if old is None:
            self._remove_added(name, inode)
        elif inode is None:
            self.root.rename_new(old, name)
        elif self.root.status(name).st_ino == inode:
            if not self.root.exchange(old, name):
                self.root.rename(old, name)
            elif self.root.status(old).st_ino != inode:  # another program wrote in between: its file is the newest
                self.root.exchange(old, name)

    def _remove_added(self, name: str, inode: int | None) -> None:
        """Remove an added file, unless another program has replaced it."""
        away = self.spare()
        self.root.rename(name, away)
        if self.root.status(away).st_ino != inode:
            self.root.rename_new(away, name)

    def _rename_over(self, new: str, name: str) -> str | None:
        """Replace a file without an exchange: a second link keeps the old file. Return its name.

        RACE: a file that is renamed to the name between the two calls is overwritten. Worst case: a version that
        another program saved in these microseconds is lost, on macOS and on the few file systems of Linux without the
        exchange.
        """
        spare: str | None = self.spare()
        try:
            self.root.link(name, str(spare))
        except FileNotFoundError:
            raise
        except OSError:  # no hard links either: this change can't be undone
            spare = None
        self.root.rename(new, name)
        return spare

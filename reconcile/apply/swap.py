"""Several files replaced as one: if the last can't be, the first are put back (a stream is never half new).

The last look at a file and its replacement are one step: the two change places, and what came out is looked at. If
it isn't what the vault has, somebody has written in that moment, and it goes back.
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
    """``ours``: the inode that has the name now, None: none has. ``old``: where that lies which had it before."""

    name: str
    ours: int | None
    old: str | None


class Swap(Struct):
    """The changes so far. ``spare`` returns an unused name in our staging directory.

    What is left there in the end goes into the vault: nothing that came out unexpectedly is lost.
    """

    root: Root
    spare: Callable[[], str]
    changed: list[_Change] = field(default_factory=list)
    done_with: dict[str, Fingerprint] = field(default_factory=dict)
    """The old files that the vault has, each as it was when it came out."""

    def replace(self, new: str, name: str, content: Digest) -> None:
        """Put a file in place of the one with this content; raises `DriftError`, `OSError`."""
        ours = self.root.status(new).st_ino
        try:
            old = new if self.root.exchange(new, name) else self._rename_over(new, name)
        except FileNotFoundError:
            raise DriftError(f"{name}: found nothing, expected the file of the plan") from None
        self.changed.append(_Change(name, ours, old))
        if old is not None:
            self._look(name, old, content)

    def add(self, new: str, name: str) -> None:
        """Put a file where none is; raises `FileExistsError`."""
        ours = self.root.status(new).st_ino
        self.root.rename_new(new, name)
        self.changed.append(_Change(name, ours, None))

    def take_away(self, name: str, content: Digest) -> None:
        """Remove the file with this content; raises `DriftError`, `OSError`."""
        old = self.spare()
        try:
            self.root.rename(name, old)
        except FileNotFoundError:
            raise DriftError(f"{name}: found nothing, expected the file of the plan") from None
        self.changed.append(_Change(name, None, old))
        self._look(name, old, content)

    def undo(self) -> None:
        """Put everything back as it was, the last first; what somebody has written since stays where it is."""
        for change in reversed(self.changed):
            with contextlib.suppress(OSError):
                self._revert(change)
        self.changed.clear()

    def settle(self) -> None:
        """Give up the old files: they are in the vault. One that was written to since stays, and is kept, too."""
        for old, known in self.done_with.items():
            if fingerprint_of(self.root.status(old)) == known:
                self.root.unlink(old)
        self.changed.clear()

    def _look(self, name: str, old: str, content: Digest) -> None:
        """Look at what came out of a name."""
        try:
            fd = self.root.open_file(old)
        except NotAFileError:
            raise DriftError(f"{name}: became something else while it was being replaced; it is back") from None
        try:
            found = digest_file(fd)
            self.done_with[old] = fingerprint_of(os.fstat(fd))
        finally:
            os.close(fd)
        if found != content:
            raise DriftError(f"{name}: was written to while it was being replaced; it is back in its place")

    def _revert(self, change: _Change) -> None:
        name, ours, old = change
        if old is None:
            self._take_back(name, ours)
        elif ours is None:
            self.root.rename_new(old, name)
        elif self.root.status(name).st_ino == ours:
            if not self.root.exchange(old, name):
                self.root.rename(old, name)
            elif self.root.status(old).st_ino != ours:  # somebody was between the two calls: his is the newest
                self.root.exchange(old, name)

    def _take_back(self, name: str, ours: int | None) -> None:
        """Take a file away that was put where none was, unless it is somebody else's by now."""
        away = self.spare()
        self.root.rename(name, away)
        if self.root.status(away).st_ino != ours:
            self.root.rename_new(away, name)

    def _rename_over(self, new: str, name: str) -> str | None:
        """Replace a file where two can't change places: a second link keeps the old one reachable.

        RACE: what is renamed to the name between the two calls is overwritten. Worst case: a version that somebody
        saved in these microseconds is lost; on macOS, and on the few file systems of Linux without the exchange.
        """
        spare: str | None = self.spare()
        try:
            self.root.link(name, str(spare))
        except FileNotFoundError:
            raise
        except OSError:  # no hard links either: a change can't be taken back
            spare = None
        self.root.rename(new, name)
        return spare

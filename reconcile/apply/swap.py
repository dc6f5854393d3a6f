"""Several files replaced as one: if the last can't be, the first are put back (a stream is never half new)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.disk.changes import Root


@dataclass(slots=True)
class Swap:
    """The changes so far, each with a second link to what was there before."""

    root: Root
    changed: list[tuple[str, str | None]] = field(default_factory=list)
    """Names, and the links to their old files; None where there was none."""

    def replace(self, new: str, name: str, spare: str) -> None:
        """Put a file in place of another, which stays reachable as ``spare``."""
        kept = self._keep(name, spare)
        self.root.rename(new, name)
        if kept:
            self.changed.append((name, spare))

    def add(self, new: str, name: str) -> None:
        """Put a file where none is; raises `FileExistsError`."""
        self.root.publish_new(new, name)
        self.changed.append((name, None))

    def take_away(self, name: str, spare: str) -> None:
        """Remove a file, which stays reachable as ``spare``."""
        kept = self._keep(name, spare)
        self.root.unlink(name)
        if kept:
            self.changed.append((name, spare))

    def undo(self) -> None:
        """Put everything back as it was, the last first."""
        for name, spare in reversed(self.changed):
            with contextlib.suppress(OSError):
                if spare is None:
                    self.root.unlink(name)
                else:
                    self.root.rename(spare, name)
        self.changed.clear()

    def settle(self) -> None:
        """Give up the old files: they are in the vault."""
        for _, spare in self.changed:
            if spare is not None:
                self.root.unlink(spare)
        self.changed.clear()

    def _keep(self, name: str, spare: str) -> bool:
        """Tell whether the file has a second link now; a file system without hard links can't take a change back."""
        try:
            self.root.link(name, spare)
        except FileNotFoundError:
            raise
        except OSError:
            return False
        return True

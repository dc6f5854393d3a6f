"""Leslie's locks for a run: those of its two control files in the workspace, held while they are changed.

The backups beside them are the program's, and stay as they are: what a run replaces is in the vault.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.adapters.jp.locks import Acquired, Busy
from reconcile.adapters.leslie.lock import SUFFIX, LeslieBusyError, LockLostError, acquire
from reconcile.fs.paths import is_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.adapters.leslie.lock import Held


class LeslieLease(Struct):
    """One lock that this process holds."""

    name: str
    held: Held
    released: bool = field(default=False)

    def still_held(self) -> bool:
        """Tell whether it is; one that grows old is touched."""
        try:
            self.held.check()
        except LockLostError:
            return False
        return True

    def release(self) -> None:
        """Let go, once."""
        if not self.released:
            self.released = True
            self.held.release()


class LeslieLocks(Struct, frozen=True):
    """The locks beside the control files of one ``.leslie``, which may be gone: then nobody can be at it."""

    directory: str

    def _may_be_there(self) -> bool:
        """Tell whether the directory is there, or can't be looked at: then each lock says so."""
        try:
            return is_directory(self.directory)
        except OSError:
            return True

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Take each lock, in the order of the names; one that is held is waited for as long as Leslie would wait."""
        held: list[LeslieLease] = []
        busy: list[Busy] = []
        for name in names if self._may_be_there() else ():
            try:
                held.append(LeslieLease(name, acquire(os.path.join(self.directory, name))))
            except LeslieBusyError as error:
                busy.append(Busy(name, None, error.message))
            except OSError as error:
                lock = f"{self.directory}/{name}{SUFFIX}"
                words = f"{lock}: {error.strerror}, expected that Leslie's lock can be made there"
                busy.append(Busy(name, None, words, impossible=True))
            except BaseException:
                for lease in held:
                    with suppress(OSError):
                        lease.release()
                raise
        return Acquired(tuple(held), tuple(busy))

"""The interface of an engine: a place with one linear history of trees, which moves only by compare-and-swap.

`reconcile.remote.git.engine` is the one that there is (docs/design/remotes.md#engine).
"""

from __future__ import annotations

from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


class RemoteError(ReconcileError):
    """The remote can't be used, or may not be. Nothing was sent."""

    exit_code = 4


class UnreachableError(RemoteError):
    """The remote gave no answer."""

    exit_code = 1


class MovedError(RemoteError):
    """The remote can be used, but it has moved, or this machine has."""


class NoKeyError(RemoteError):
    """The remote is encrypted, and no key of this machine opens it."""


class UnknownRemoteError(RemoteError):
    """No remote has the name that was given, or none was given and there isn't exactly one."""

    exit_code = 2


class UnwritableError(RemoteError):
    """The host refuses every write."""


class Swap(Enum):
    """The results of a swap. After ``UNKNOWN``, only the next look at the remote tells."""

    WON = auto()
    LOST = auto()
    UNKNOWN = auto()


class RemoteEngine(Protocol):
    """The operations of an engine. Each raises `RemoteError`.

    `probe`, `exists`, `branches`, `tip` and `swap` use the network.
    """

    def probe(self) -> None:
        """Try beside the remote's tree whether the host refuses a stale swap.

        Raises:
            UnwritableError: the host refuses every write there.
            RemoteError: the host can't be relied on.
        """

    def exists(self) -> bool:
        """Tell whether the remote has a commit now, without fetching it."""

    def branches(self) -> list[str]:
        """Return the commits of all branches of the repository that has the remote."""

    def tip(self) -> str | None:
        """Return the newest commit of the remote, None if it has none; everything of it can be read then."""

    def seen(self) -> str | None:
        """Return the newest commit that this machine knows, without the network; None if it knows none."""

    def named(self, text: str) -> str | None:
        """Return the one known commit whose name begins with a text, None if there is none, or several."""

    def history(self, commit: str, path: str) -> list[tuple[str, int]]:
        """Return a commit and those before it that have changed something at a path, and their times in ns."""

    def contains(self, commit: str, earlier: str) -> bool:
        """Tell whether a commit is in the history of another one, or is the same."""

    def tree(self, commit: str, *paths: str) -> dict[str, str]:
        """Return the name of the content of each file of a commit, by its path: of all, or at and below some paths."""

    def changes(self, earlier: str, commit: str) -> set[str]:
        """Return the paths of the files that a commit has changed, added or removed since another one."""

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield contents by their names."""

    def write(
        self,
        parent: str | None,
        edits: Mapping[str, bytes],
        removes: Collection[str],
        placed: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Return a new commit on a parent, which is not sent yet. A removed path may be that of a directory.

        ``placed`` are paths that get a known content, by its name. It may be one of a removed path.
        """

    def without_history(self, commit: str, edits: Mapping[str, bytes]) -> str:
        """Return a new commit without a parent, which has the files of another one, but for the edits."""

    def swap(self, expected: str | None, commit: str) -> Swap:
        """Make a commit the newest one, if the remote still has the expected one."""

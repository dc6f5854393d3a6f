"""An engine of remotes in memory, for tests without git."""

from __future__ import annotations

import ast
import hashlib
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconcile.remote.engine import Swap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path


class Host:
    """What an engine in memory shares with others: commits with their parents and trees, contents, and the tip."""

    def __init__(self) -> None:
        self.newest: str | None = None
        self.commits: dict[str, tuple[str | None, dict[str, str]]] = {}
        self.contents: dict[str, bytes] = {}
        self.path: Path | None = None
        """The file into which a process of its own saves each swap."""

    def save(self) -> None:
        if self.path is not None:
            self.path.write_text(repr((self.newest, self.commits, self.contents)))

    def load(self) -> None:
        if self.path is not None and self.path.exists():
            self.newest, self.commits, self.contents = ast.literal_eval(self.path.read_text())
            self.path.unlink()


class MemoryEngine:
    def __init__(self, host: Host) -> None:
        self.host = host

    def probe(self) -> None:
        other = MemoryEngine(Host())
        first = other.write(None, {"probe": b"1"}, ())
        assert other.swap(None, first) is Swap.WON
        assert other.swap(None, first) is Swap.LOST

    def exists(self) -> bool:
        return self.host.newest is not None

    def branches(self) -> list[str]:
        return []

    def tip(self) -> str | None:
        return self.host.newest

    def seen(self) -> str | None:
        return self.host.newest

    def named(self, text: str) -> str | None:
        found = [commit for commit in self.host.commits if commit.startswith(text)]
        return found[0] if len(found) == 1 else None

    def history(self, commit: str, path: str) -> list[tuple[str, int]]:
        found, at = list[tuple[str, int]](), commit
        while True:
            above = self.host.commits[at][0]
            if self.tree(at, path) != ({} if above is None else self.tree(above, path)):
                found.append((at, 0))
            if above is None:
                return found
            at = above

    def contains(self, commit: str, earlier: str) -> bool:
        at: str | None = commit
        while at is not None and at != earlier:
            at = self.host.commits[at][0] if at in self.host.commits else None
        return at is not None

    def tree(self, commit: str, *paths: str) -> dict[str, str]:
        names, below = self.host.commits[commit][1], tuple(f"{path}/" for path in paths)
        return {at: name for at, name in names.items() if not paths or at in paths or at.startswith(below)}

    def changes(self, earlier: str, commit: str) -> set[str]:
        return {path for path, _ in self.tree(earlier).items() ^ self.tree(commit).items()}

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        return ((name, self.host.contents[name]) for name in names)

    def write(
        self,
        parent: str | None,
        edits: Mapping[str, bytes],
        removes: Collection[str],
        placed: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        before = {} if parent is None else self.host.commits[parent][1]
        gone = tuple(f"{path}/" for path in removes)
        tree = {path: name for path, name in before.items() if path not in removes and not path.startswith(gone)}
        tree |= placed
        for path, content in edits.items():
            tree[path] = hashlib.sha256(content).hexdigest()
            self.host.contents[tree[path]] = content
        commit = hashlib.sha256(repr((parent, sorted(tree.items()))).encode()).hexdigest()
        self.host.commits[commit] = parent, tree
        return commit

    def without_history(self, commit: str, edits: Mapping[str, bytes]) -> str:
        names = self.host.commits[commit][1]
        return self.write(None, {path: self.host.contents[name] for path, name in names.items()} | dict(edits), ())

    def swap(self, expected: str | None, commit: str) -> Swap:
        if self.host.newest != expected:
            return Swap.LOST
        self.host.newest = commit
        self.host.save()
        return Swap.WON

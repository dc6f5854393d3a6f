"""A side of a scenario as a value: what lies at which path, and the edits that a listing's lines are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tests.support.scenarios.line_reader import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Blob(Struct, frozen=True):
    """A regular file."""

    content: bytes
    mtime_ns: int


class Link(Struct, frozen=True):
    """A symbolic link."""

    target: str


class Folder(Struct, frozen=True):
    """A directory that is there although nothing is in it; all others follow from what they hold."""


Entry: TypeAlias = Blob | Link | Folder
Tree: TypeAlias = dict[str, Entry]
"""What is below a side's ``conversations/``, by path."""


class Edit(Protocol):
    """One line of a listing, as a change of a tree."""

    def apply(self, tree: Tree) -> None: ...


class Put(Struct, frozen=True):
    """Entries that are there now, None: not any more."""

    entries: Mapping[str, Entry | None]

    def apply(self, tree: Tree) -> None:
        for path, entry in self.entries.items():
            if entry is None:
                tree.pop(path, None)
            else:
                tree[path] = entry


class Remove(Struct, frozen=True):
    """A file or directory that goes, with the directories that it leaves empty."""

    path: str

    def apply(self, tree: Tree) -> None:
        for path in _under(tree, self.path):
            del tree[path]


class Move(Struct, frozen=True):
    """A file or directory that gets another place; its times stay."""

    source: str
    target: str

    def apply(self, tree: Tree) -> None:
        if below(tree, self.target):
            raise ScenarioError(f"found {self.target!r} there already, expected a free place")
        for path in _under(tree, self.source):
            tree[self.target + path[len(self.source) :]] = tree.pop(path)


class Touch(Struct, frozen=True):
    """A file, or every file of a directory and below it, that gets another time."""

    path: str
    mtime_ns: int

    def apply(self, tree: Tree) -> None:
        for path in _under(tree, self.path):
            entry = tree[path]
            if isinstance(entry, Blob):
                tree[path] = replace(entry, mtime_ns=self.mtime_ns)


def below(tree: Tree, directory: str) -> list[str]:
    """Return the paths of a directory and of everything in it; empty where there is none."""
    return [path for path in tree if path == directory or path.startswith(directory + "/")]


def _under(tree: Tree, path: str) -> list[str]:
    found = below(tree, path)
    if not found:
        raise ScenarioError(f"found nothing at {path!r}, expected a file or directory")
    return found


def children(tree: Tree, directory: str) -> dict[str, Entry | None]:
    """Return the names in a directory; None is one that holds something."""
    prefix = f"{directory}/" if directory else ""
    found: dict[str, Entry | None] = {}
    for path, entry in tree.items():
        if path.startswith(prefix):
            name, slash, _ = path[len(prefix) :].partition("/")
            if slash:
                found[name] = None
            else:
                found.setdefault(name, entry)
    return found


def is_directory(entry: Entry | None) -> bool:
    return entry is None or isinstance(entry, Folder)

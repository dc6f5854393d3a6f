"""Random stories: edits as people, JP and git make them, on both sides, with runs between them.

A story that fails is printed as a scenario, so that it can be saved under fixtures/scenarios.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.properties.telling import Frame, command_of
from tests.support.listing import read_tree
from tests.support.pure_level import PureLevel
from tests.support.trees import Blob, Move, Remove, Tree, is_directory

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = ("1", "2", "3", "4")
TITLES = ("A", "B", "C", "A B")
STREAMS = ("[1 2 3]", "[1 2]", "[1 2 3 4]", "[1 2 5]", "[1 2 3x]", "[1 2 3] b2", "[1]", "legacy [1 2 3]", "[6 7]")
STREAM_FILES = ("base_config.json", "events.json")
BROKEN = ('"<<<<<<< HEAD"', '""', '"{"')


@dataclass(slots=True)
class Story:
    """A random story in the making; the same seed tells the same story."""

    seed: int
    frames: list[Frame] = field(default_factory=list)
    world: PureLevel = field(default_factory=PureLevel)

    def tell(self, steps: int) -> None:
        """Play so many runs with edits between them; the world checks the laws after each."""
        chance = random.Random(self.seed)
        for _ in range(steps):
            for _ in range(chance.randint(1, 4)):
                self._edit(chance)
            command = chance.choice(["reconcile"] * 8 + ["reconcile --layout flat", "reconcile --prefer store"])
            command = chance.choice([command] * 9 + [f"reconcile resolve {chance.choice(IDS)} --take store"])
            known = {path.split("/")[-1].split("-")[0] for side in ("store", "workspace") for path in self._dirs(side)}
            if "resolve" in command and command.split()[2] not in known:
                continue
            self.frames.append(Frame({side: dict(tree or {}) for side, tree in self.world.trees.items()}, command))
            self.world.run(command_of(command))

    def _dirs(self, side: str) -> list[str]:
        tree = self.world.trees[side] or {}
        found = {path.rpartition("/")[0] for path in tree}
        return sorted(path for path in found if path.rpartition("/")[2].split("-")[0] in IDS)

    def _edit(self, chance: random.Random) -> None:
        side = chance.choice(["store", "workspace"])
        tree = dict(self.world.trees[side] or {})
        edits: list[Callable[[random.Random, str, Tree], None]] = [
            self._put,
            self._put,
            self._put,
            self._rewrite,
            self._rewrite,
            self._rewrite,
            self._strip,
            self._remove,
            self._move,
            self._extra,
            self._break,
            self._archive,
        ]
        chance.choice(edits)(chance, side, tree)
        self.world.trees[side] = tree

    def _put(self, chance: random.Random, side: str, tree: Tree) -> None:
        """A new directory, at the top or below another."""
        above = chance.choice(["", *[f"{path}/conversations/" for path in self._dirs(side)]])
        if side == "store" and chance.random() < 0.9:
            above = ""
        conversation = chance.choice(IDS)
        line = f"{above}{conversation}-{chance.choice('ab')} {self._metadata(chance)} {self._stream(chance)}"
        tree.update(read_tree([line]))

    def _metadata(self, chance: random.Random) -> str:
        parent = chance.choice(["", "", "parent 1", "parent 2", "parent 3", "parent 4", "parent null", "parent 9"])
        local = "local" if chance.random() < 0.05 else ""
        return f'metadata {self._time(chance)} title "{chance.choice(TITLES)}" {parent} {local}'.rstrip()

    def _stream(self, chance: random.Random) -> str:
        return f"stream {self._time(chance)} {chance.choice(STREAMS)}"

    @staticmethod
    def _time(chance: random.Random) -> str:
        return f"{chance.randint(8, 11):02d}:{chance.randint(0, 59):02d}"

    def _rewrite(self, chance: random.Random, side: str, tree: Tree) -> None:
        """Another content for a unit of a directory that is there."""
        if dirs := self._dirs(side):
            unit = chance.choice([self._metadata, self._stream])(chance)
            path = chance.choice(dirs)
            if unit.startswith("stream"):
                tree.pop(f"{path}/base_config.json", None)
            tree.update(read_tree([f"{path} {unit}"]))

    def _strip(self, chance: random.Random, side: str, tree: Tree) -> None:
        """What JP does: the same metadata without the parent, newer."""
        import json

        if dirs := self._dirs(side):
            path = f"{chance.choice(dirs)}/metadata.json"
            blob = tree.get(path)
            if isinstance(blob, Blob):
                try:
                    found = json.loads(blob.content)
                except ValueError:
                    return
                found.pop("parent_id", None)
                content = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
                tree[path] = Blob(content.encode(), blob.mtime_ns + 10**9)

    def _remove(self, chance: random.Random, side: str, tree: Tree) -> None:
        if dirs := self._dirs(side):
            Remove(chance.choice(dirs)).apply(tree)

    def _move(self, chance: random.Random, side: str, tree: Tree) -> None:
        dirs = self._dirs(side)
        if side == "store" or not dirs:
            return
        path = chance.choice(dirs)
        above = chance.choice(["", *[f"{each}/conversations/" for each in dirs if not each.startswith(path)]])
        target = above + path.rpartition("/")[2]
        if target not in dirs and not is_directory(tree.get(target)):
            Move(path, target).apply(tree)

    def _extra(self, chance: random.Random, side: str, tree: Tree) -> None:
        if dirs := self._dirs(side):
            name = chance.choice(["NOTE.md", "QUERY_MESSAGE.md", "sub/x.txt"])
            path = f"{chance.choice(dirs)}/{name}"
            if path in tree and chance.random() < 0.5:
                del tree[path]
            else:
                tree.update(read_tree([f'{path} {self._time(chance)} "{chance.choice("xyz")}"']))

    def _break(self, chance: random.Random, side: str, tree: Tree) -> None:
        if (dirs := self._dirs(side)) and chance.random() < 0.5:
            name = chance.choice(["metadata.json", "events.json"])
            line = f"{chance.choice(dirs)}/{name} {self._time(chance)} {chance.choice(BROKEN)}"
            tree.update(read_tree([line]))
        elif dirs:
            name = chance.choice(["metadata.json", *STREAM_FILES])
            tree.pop(f"{chance.choice(dirs)}/{name}", None)

    def _archive(self, chance: random.Random, side: str, tree: Tree) -> None:
        dirs = [path for path in self._dirs(side) if "/" not in path]
        if dirs and chance.random() < 0.5:
            path = chance.choice(dirs)
            partition = chance.choice([".archive", ".archive", ".trash"])
            if f"{partition}/{path}" not in self._dirs(side):
                Move(path, f"{partition}/{path}").apply(tree)

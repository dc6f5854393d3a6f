"""A story as frames: both sides as they are when a command is run. Played again, and told as a scenario."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from tests.support.scenarios.commands import read_command
from tests.support.scenarios.line_reader import show_path
from tests.support.scenarios.listing import show_tree
from tests.support.scenarios.notation import BASE, EVENTS
from tests.support.scenarios.pure_level import Names, PureLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.scenarios.commands import Outcome
    from tests.support.scenarios.pure_level import Level
    from tests.support.scenarios.trees import Tree

command_of = cache(read_command)


class Frame(Struct, frozen=True):
    """The sides as they are when a command is run, after changes of the surroundings (``config missing reproject``)."""

    trees: Mapping[str, Tree | None]
    command: str
    verbs: tuple[str, ...] = ()
    renewed: frozenset[str] = frozenset()
    """Sides that are another directory than before."""

    def play(self, level: Level) -> Outcome:
        """Let it happen on a level, which checks the laws."""
        self.prepare(level)
        return level.run(command_of(self.command))

    def prepare(self, level: Level) -> None:
        """Do all but run the command."""
        for verb in self.verbs:
            level.verb(tuple(verb.split()))
        for side, tree in self.trees.items():
            level.change(side, None if tree is None else dict(tree), another=side in self.renewed)


def tell(frames: Iterable[Frame]) -> list[str]:
    """Play the frames; return them as a scenario's lines, up to the law that is broken, if one is."""
    level, names = PureLevel(), Names()
    lines: list[str] = []
    for frame in frames:
        lines += (f"given {verb}" if verb.startswith("git ") else verb for verb in frame.verbs)
        for side, tree in frame.trees.items():
            before, how = level.tree(side), " replaced" if side in frame.renewed else " gone" if tree is None else ""
            given = _given(f"given {side}{how}", {} if how else before or {}, tree or {})
            told = given if not how or given else [f"given {side}{how}"]
            lines += [names.shown(line) for line in told if tree is not None or before is not None]
        lines.append(f"$ {frame.command}")
        try:
            outcome = frame.play(level).renamed(names.shown)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the story is about
            comment = f"{type(error).__name__}: {error}".splitlines()
            return [*lines, *(f"# {names.shown(line)}" for line in comment)]
        lines += [f"  {line}" for line in outcome.lines(())]
        lines.append("")
    return lines


def _given(header: str, before: Tree, after: Tree) -> list[str]:
    """Write the edits of a side as the lines of a block."""
    gone = [f"  - {show_path(path)}" for path in before if path not in after]
    edited = {path for path, entry in after.items() if before.get(path) != entry}
    streams = {path.rpartition("/")[0] for path in edited if path.rpartition("/")[2] in (BASE, EVENTS)}
    shown = {
        path: entry
        for path, entry in after.items()
        if path in edited or (path.rpartition("/")[0] in streams and path.rpartition("/")[2] in (BASE, EVENTS))
    }
    lines = gone + [f"  {line}" for line in show_tree(shown)]
    return [header, *lines] if lines else []

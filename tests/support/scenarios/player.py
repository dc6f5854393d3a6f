"""Playing a scenario on a level, and comparing what it says with what happened."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.scenarios.line_reader import ScenarioError
from tests.support.scenarios.pure_level import Names
from tests.support.scenarios.scenario import Given, Run, Then, Verb, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.scenarios.pure_level import Level
    from tests.support.scenarios.scenario import AnyBlock, Scenario
    from tests.support.scenarios.trees import Tree


@dataclass(slots=True)
class Played:
    """What was expected and what was found, by the line where the block begins; and which laws were broken."""

    scenario: Scenario
    expected: dict[int, list[str]] = field(default_factory=dict)
    found: dict[int, list[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the file's text as it would have to be."""
        return self.scenario.rewritten(self.found)

    def complaint(self) -> str:
        """Return what is wrong, as a diff of the file and the laws that were broken; empty where nothing is."""
        path = str(self.scenario.path)
        diff = difflib.unified_diff(
            self.scenario.rewritten(self.expected).splitlines(),
            self.text().splitlines(),
            f"expected by {path}",
            "found",
            lineterm="",
        )
        return "\n".join([*self.broken, *diff])


def play(scenario: Scenario, level: Level, shadow: Level | None = None) -> Played:
    """Play every block. ``shadow`` is a second level that must come to the same sides after every command."""
    played = Played(scenario)
    player = _Player(level, shadow, played, Names.beside(scenario.source), Names.beside(scenario.source))
    for block in scenario.blocks:
        try:
            player.play(block)
        except (AssertionError, ScenarioError, ValueError) as error:
            played.broken.append(f"{scenario.path}:{block.line}: {block.header}: {type(error).__name__}: {error}")
            break
    return played


@dataclass(slots=True)
class _Player:
    level: Level
    shadow: Level | None
    played: Played
    names: Names
    shadow_names: Names
    before: dict[str, Tree | None] = field(default_factory=dict)

    def play(self, block: AnyBlock) -> None:
        match block:
            case Given():
                self._give(self.level, self.names, block)
                if self.shadow is not None:
                    self._give(self.shadow, self.shadow_names, block)
            case Verb():
                for level in filter(None, (self.level, self.shadow)):
                    level.verb(block.words)
            case Run():
                self._run(block)
            case Then():
                self.played.expected[block.line] = block.expected()
                before, after = self.before.get(block.side), self.level.tree(block.side)
                self.played.found[block.line] = block.found(self.names.tree(before), self.names.tree(after))

    def _give(self, level: Level, names: Names, block: Given) -> None:
        lines = tuple(names.real(line) for line in block.body)
        tree = level.tree(block.side)
        another = block.how == "replaced" or (tree is None and block.side in self.before)
        level.change(block.side, block.after(tree, lines), another=another)

    def _run(self, block: Run) -> None:
        sides = self.played.scenario.sides
        self.before = {side: self.level.tree(side) for side in sides}
        self.played.expected[block.line] = block.expected()
        outcome = self.level.run(block.command).renamed(self.names.shown)
        self.played.found[block.line] = [block.header, *(f"  {line}" for line in outcome.lines(block.body))]
        if not outcome.actions:
            touched = [side for side in sides if self.level.tree(side) != self.before[side]]
            assert not touched, f"nothing was planned, but something was done: {touched}"
        if self.shadow is not None:
            self.shadow.run(block.command).renamed(self.shadow_names.shown)
            for side in sides:
                _compare(side, self.level, self.names, self.shadow, self.shadow_names)


def _compare(side: str, level: Level, names: Names, shadow: Level, shadow_names: Names) -> None:
    """The side must be what the plan was to lead to."""
    block = Then(0, f"then {side}", (), side, "listing")
    found = block.found(None, names.tree(level.tree(side)))
    meant = block.found(None, shadow_names.tree(shadow.tree(side)))
    diff = "\n".join(difflib.unified_diff(meant, found, "as simulated", "as applied", lineterm=""))
    assert not diff, f"applying did not lead where the plan leads:\n{diff}"


@functools.cache  # two modules of tests read all of them
def scenarios(directory: Path) -> tuple[Scenario, ...]:
    """Read every scenario below a directory, in the order of their names."""
    return tuple(read_scenario(path) for path in sorted(directory.rglob("*.scenario")))

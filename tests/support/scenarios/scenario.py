"""Scenario files: before, command, plan, after. The format is described in fixtures/README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tests.support.scenarios.commands import Command, aligned_plan, read_command
from tests.support.scenarios.line_reader import ScenarioError, json_text
from tests.support.scenarios.listing import read_line, read_tree, show_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.scenarios.trees import Tree

LEVELS = ("pure", "fake", "real")
SIDES = ("store", "workspace", "workspace2", "workspace3")
_ABSENT = ("gone", "replaced")
_HEADERS = ("case", "edge", "levels", "differs")


@dataclass(frozen=True, slots=True)
class Block:
    """One unindented line and the indented ones below it. ``line`` counts from 1."""

    line: int
    header: str
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given(Block):
    """Changes of one side. ``how``: it is gone as a whole, or another directory, before they are made."""

    side: str
    how: str

    def after(self, tree: Tree | None, lines: tuple[str, ...]) -> Tree | None:
        """Return the side with the changes made; ``lines`` is the body, with the ids that it really has."""
        after = {} if tree is None or self.how else dict(tree)
        for number, line in enumerate(lines, self.line + 1):
            try:
                read_line(line).apply(after)
            except ScenarioError as error:
                raise ScenarioError(f"line {number}: {error}") from None
        return None if self.how == "gone" else after


@dataclass(frozen=True, slots=True)
class Verb(Block):
    """Another change of the surroundings, such as ``forget state``."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run(Block):
    """A command and the plan that it must make."""

    command: Command

    def expected(self) -> list[str]:
        return [self.header, *_indented(aligned_plan(self.body))]


@dataclass(frozen=True, slots=True)
class Then(Block):
    """What a side must look like: a ``listing``, ``unchanged`` by the last command, or ``gone``."""

    side: str
    how: str

    def expected(self) -> list[str]:
        if self.how != "listing":
            return [self.header]
        return [self.header, *_indented(show_tree(read_tree(self.body)))]

    def found(self, before: Tree | None, after: Tree | None) -> list[str]:
        """Write the side as it is, in the way in which it was expected if it can be."""
        header = f"then {self.side}"
        if self.how == "unchanged" and before == after:
            return [self.header]
        if after is None:
            return [f"{header} gone"]
        return [header, *_indented(show_tree(after))]


AnyBlock: TypeAlias = Given | Verb | Run | Then

_VERBS = {
    "forget": r"forget state",
    "wipe": r"wipe workspace[23]?",
    "config": r"config (stream|diverged|conflict|missing) \w+",
    "lock": r"lock \d+( workspace)?",
    "unlock": r"unlock \d+",
    "sweep": r"sweep \d+",
    "steal": r"steal \d+",
    "killed": r"killed at (every step|step \d+)",
    "clock": r"clock -?\d+",
    "git": r"git (merge|rebase|clean)",
    "disk": r"disk (full|full after \d+|readonly|fine)",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file. ``source`` are its lines."""

    path: Path
    title: str
    source: tuple[str, ...]
    blocks: tuple[AnyBlock, ...]
    cases: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()
    levels: tuple[str, ...] = LEVELS

    @property
    def sides(self) -> tuple[str, ...]:
        """Every side that may be there: the three, and the silos that are named."""
        named = (block.side for block in self.blocks if isinstance(block, Given | Then))
        return tuple(dict.fromkeys((*SIDES, *named)))

    @property
    def looks_up(self) -> bool:
        """Whether the store is the silo that is found, as in life, rather than one that is named."""
        return len(self.sides) > len(SIDES)

    def rewritten(self, replaced: dict[int, list[str]]) -> str:
        """Return the file's text with other lines for the blocks that begin at these lines."""
        lines = list(self.source)
        for block in reversed(self.blocks):
            if block.line in replaced:
                lines[block.line - 1 : block.line + len(block.body)] = replaced[block.line]
        return "\n".join(lines) + "\n"


def read_scenario(path: Path) -> Scenario:
    """Read a file; errors say which line of which file is wrong."""
    reading = _Reading()
    try:
        source = tuple(path.read_text(encoding="utf-8").rstrip().split("\n"))
        for number, line in enumerate(source, 1):
            reading.line = number
            reading.take(line)
        reading.close()
        blocks = tuple(_block(block, reading) for block in reading.blocks)
    except (ScenarioError, ValueError, RecursionError) as error:  # ValueError: quotes left open, numbers without end
        raise ScenarioError(f"{path}:{reading.line}: {error}") from None
    headers = reading.headers
    return Scenario(
        path,
        reading.title,
        source,
        blocks,
        tuple(int(number) for number in headers.get("case", "").split()),
        tuple(int(number) for number in headers.get("edge", "").split()),
        tuple(headers.get("levels", " ".join(LEVELS)).split()),
    )


@dataclass(slots=True)
class _Reading:
    """The blocks so far, and the line that is being read."""

    line: int = 0
    title: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    open: tuple[int, str, list[str]] | None = None

    def take(self, line: str) -> None:
        key, colon, value = line.partition(":")
        if self.line == 1:
            self.title = line.strip()
        elif line.startswith(" ") and line.strip():
            if self.open is None:
                raise ScenarioError("found an indented line, expected given, $ or then above it")
            self.open[2].append(line.strip())
        elif not line.strip() or line.startswith("#"):
            self.close()
        elif not self.blocks and self.open is None and colon and key in _HEADERS:
            self.headers[key] = _header(key, value.strip())
        else:
            self.close()
            self.open = (self.line, line.rstrip(), [])

    def close(self) -> None:
        if self.open is not None:
            line, header, body = self.open
            self.blocks.append(Block(line, header, tuple(body)))
        self.open = None


def _header(key: str, value: str) -> str:
    """Check what a header says: numbers, levels, or words."""
    words = value.split()
    if key in ("case", "edge") and not all(re.fullmatch("[0-9]{1,4}", word) for word in words):
        raise ScenarioError(f"found {value!r}, expected numbers after {key}")
    if key == "levels" and not set(words) <= set(LEVELS):
        raise ScenarioError(f"found {value!r}, expected some of: {', '.join(LEVELS)}")
    return value


def _block(block: Block, reading: _Reading) -> AnyBlock:
    """Find out what a block is, and check it."""
    reading.line = block.line
    text = re.sub(r"\s+#.*", "", block.header)
    words = text.split() or [""]
    if words[1:2] == ["silo"] and len(words) > 2:
        words[1:3] = [" ".join(words[1:3])]
    if words[:2] == ["given", "id"] and not block.body:
        content = json_text(text.partition(" id ")[2])
        return Verb(block.line, block.header, block.body, ("id", content))
    if words[0] == "$":
        run = Run(block.line, block.header, block.body, read_command(text.removeprefix("$")))
        _check_lines(block, reading, aligned_plan)
        return run
    if words[0] in ("given", "then") and words[1:2] and (words[1] in SIDES or words[1].startswith("silo ")):
        how = words[2] if len(words) > 2 else "listing" if words[0] == "then" else ""
        if len(words) > 3 or how not in ("", "listing", "gone", *_allowed(words[0])):
            raise ScenarioError(f"found {text!r}, expected: {words[0]} {words[1]} [{'|'.join(_allowed(words[0]))}]")
        _check_lines(block, reading, lambda lines: [read_line(line) for line in lines])
        kind = Given if words[0] == "given" else Then
        return kind(block.line, block.header, block.body, words[1], how)
    verb = words[1:] if words[0] == "given" else words
    if verb and re.fullmatch(_VERBS.get(verb[0], "(?!)"), " ".join(verb)) and not block.body:
        return Verb(block.line, block.header, block.body, tuple(verb))
    raise ScenarioError(f"found {text!r}, expected given, $, then or one of: {', '.join(_VERBS)}")


def _allowed(word: str) -> tuple[str, ...]:
    return _ABSENT if word == "given" else ("gone", "unchanged")


def _check_lines(block: Block, reading: _Reading, read: Callable[[list[str]], object]) -> None:
    for number, line in enumerate(block.body, block.line + 1):
        reading.line = number
        read([line])


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]

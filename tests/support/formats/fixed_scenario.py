"""Scenarios of formats with fixed places: read, played with the real command on a real directory, and rewritten.

fixtures/README.md describes the notation.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.adapters.locate import FOLDERS
from reconcile.adapters.roots import Request, store_of
from reconcile.fs.paths import quoted_path
from tests.support.formats.fixed_programs import PROGRAMS
from tests.support.formats.fixed_sides import Side, changes, tree_of
from tests.support.projects.world import files
from tests.support.scenarios.line_reader import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from tests.support.formats.fixed_sides import Tree

SIDES = ("workspace", "store", "workspace2")
_GIVEN = re.compile(r"given (workspace|store|workspace2)( gone)?")
_COMMAND = re.compile(r"\$ reconcile(@2)?(?: (.*))?")
_THEN = re.compile(r"then (workspace|store|workspace2)")
READING = ("doctor", "status", "ls", "brief", "diff", "log", "show")


@dataclass(slots=True)
class Block:
    """A line at the margin, and the indented ones below it."""

    line: int
    header: str
    body: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FixedScenario:
    """A file: its sentence, what it says at the top, its blocks."""

    path: Path
    title: str
    edges: tuple[int, ...]
    top: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def format(self) -> str:
        return self.path.parent.name


def read(path: Path) -> FixedScenario:
    """Read a file; complains of a line that is none of the notation's, by its number."""
    lines = path.read_text(encoding="utf-8").splitlines()
    top: list[str] = []
    blocks: list[Block] = []
    edges: list[int] = []
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("edge:"):
            edges += [int(each) for each in line.removeprefix("edge:").replace(",", " ").split()]
        if not line.strip():
            continue
        if line.startswith("  ") and blocks:
            blocks[-1].body.append(line)
        elif any(pattern.fullmatch(line) for pattern in (_GIVEN, _COMMAND, _THEN)):
            blocks.append(Block(number, line))
        elif not blocks and re.match(r"edge:|#", line):
            top.append(line)
        else:
            raise ScenarioError(f"{path}:{number}: found {line!r}, expected given, $ reconcile, then or edge:")
    return FixedScenario(path, lines[0], tuple(edges), tuple(top), tuple(blocks))


def play(scenario: FixedScenario, directory: Path, run: Callable[..., Result]) -> tuple[str, str]:
    """Return the text of the file as it is, but for spaces between blocks, and as it would have to be."""
    player = _Player(scenario.format, directory, run)
    found: list[Block] = []
    for block in scenario.blocks:
        try:
            found += player.play(block)
        except (AssertionError, ScenarioError, OSError, ValueError, KeyError, IndexError) as error:
            raise AssertionError(f"{scenario.path}:{block.line}: {block.header}: {error}") from error
    return _text(scenario, list(scenario.blocks)), _text(scenario, found)


def complaint(scenario: FixedScenario, texts: tuple[str, str]) -> str:
    """What differs, as a diff."""
    before, after = (text.splitlines() for text in texts)
    return "\n".join(difflib.unified_diff(before, after, f"expected by {scenario.path}", "found", lineterm=""))


def _text(scenario: FixedScenario, blocks: list[Block]) -> str:
    lines = [scenario.title, *scenario.top]
    for block in blocks:
        if not block.header.startswith("then"):
            lines.append("")
        lines += [block.header, *block.body]
    return "\n".join(lines) + "\n"


class _Player:
    def __init__(self, format_name: str, directory: Path, run: Callable[..., Result]) -> None:
        self.format, self.directory, self.run = format_name, directory, run
        self.program = PROGRAMS[format_name]()
        self.given = 0
        self.project.mkdir()
        request = Request(None, None, str(self.project), os.environ, sys.platform)
        self.store = Path(store_of(format_name, str(self.project), request))

    @property
    def project(self) -> Path:
        return self.directory / "project"

    def root(self, side: str) -> Path:
        if side == "store":
            return self.store
        return self.directory / side.replace("workspace", "project") / FOLDERS[self.format]

    def play(self, block: Block) -> list[Block]:
        """What the block should be, with what should follow; what follows a command is known from it alone."""
        if match := _GIVEN.fullmatch(block.header):
            if match[2]:
                (self.root(match[1])).rename(self.directory / f"gone-{block.line}")
            self.given += 1
            side = Side(self.root(match[1]), match[1], self.program)
            for line in block.body:
                if not line.strip().startswith("#"):
                    side.give(line.strip(), self.given)
            return [block]
        if match := _COMMAND.fullmatch(block.header):
            return self._command(block, match[1] or "", shlex.split(match[2] or ""))
        return []

    def _command(self, block: Block, at: str, arguments: list[str]) -> list[Block]:
        before, kept = self._trees(), self._kept()
        project = self.directory / f"project{at.lstrip('@')}"
        project.mkdir(exist_ok=True)
        named = ["--workspace", str(project)]
        if at:
            named += ["--store", str(self.store), "--format", self.format]
        result = self.run(*arguments, *named)
        after = self._trees()
        assert "Traceback" not in result.output, result.output
        assert kept <= self._kept(), f"something is lost:\n{result.output}"
        if _only_reads(arguments):
            assert before == after, f"something was written:\n{result.output}"
        elif result.exit_code == 0:
            self._settled(named, after)
        found = [Block(0, block.header, self._said(result))]
        for side in SIDES:
            other = None if side == "workspace" else after["workspace"]
            if lines := changes(before[side], after[side], other):
                found.append(Block(0, f"then {side}", _together(lines)))
        return found

    def _settled(self, named: list[str], after: dict[str, Tree]) -> None:
        """A second run has nothing to do."""
        again = self.run(*named)
        assert self._trees() == after, f"a second run has changed something:\n{again.output}"
        assert "nothing to do" in again.output.lower() or again.exit_code, again.output

    def _said(self, result: Result) -> list[str]:
        text = result.output
        if re.match(r"reconcile \d", text):  # what `doctor` checked: this machine's versions and places
            text = text.partition("\n\n")[2]
        project, store = (quoted_path(str(place)) for place in (self.project, self.store))
        for words in (f"--workspace {project}", f"--store {store}", f"--format {self.format}"):
            text = text.replace(f" {words}", "")
        for place, name in ((self.store, "STORE"), (self.project, "PROJECT"), (self.directory, "DIRECTORY")):
            text = text.replace(str(place), name)
        text = re.sub(r"\b\d{8}-\d{6}-\d+\b(, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?", "RUN", text)
        text = re.sub(r"\b\d+(?:\.\d+)? seconds (old|ahead)", r"N seconds \1", text)
        text = re.sub(r"\b20(?!26-02|25-)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "NOW", text)
        lines = [line.rstrip() for line in text.splitlines()]
        shown = [f"  {line}" for line in lines if line and not re.match(r"(workspace|store) +\S+$", line)]
        return shown + ([f"  exit {result.exit_code}"] if result.exit_code else [])

    def _trees(self) -> dict[str, Tree]:
        return {side: tree_of(self.root(side)) for side in SIDES}

    def _kept(self) -> set[bytes]:
        """Every content that is anywhere: on a side, or in the vault."""
        vault = [path for path in files(Path(os.environ["XDG_DATA_HOME"])) if "objects" in path.parts]
        paths = [*vault, *(path for side in SIDES for path in files(self.root(side)))]
        return {hashlib.sha256(path.read_bytes()).digest() for path in paths if path.stat().st_size}


def _only_reads(arguments: list[str]) -> bool:
    if {"--dry-run", "--check"} & {*arguments}:
        return True
    return bool(arguments) and arguments[0] in READING and not {"--mend", "--repair"} & {*arguments}


def _together(lines: list[str]) -> list[str]:
    """All that is as in the workspace is one line where there is nothing else."""
    same = "  as in the workspace"
    if len(lines) > 1 and all(line.endswith(same) for line in lines):
        names = [line.removesuffix(same).strip().removeprefix("+ ") for line in lines]
        return [f"  as in the workspace: {', '.join(names)}"]
    return lines

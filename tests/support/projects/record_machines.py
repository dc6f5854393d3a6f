"""A machine with a project of Leslie or a vault of Claudesidian; its store has the place that a run gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from msgspec.structs import replace

from tests.support.formats.claudesidian_project import Vault
from tests.support.projects.machines import Machine, add_worktree
from tests.support.projects.world import World, files

if TYPE_CHECKING:
    from click.testing import Result

    from tests.conftest import Run

NAME = "records"


class RecordMachine(Machine, frozen=True):
    own_store: Path | None = None
    """For another worktree: the store of the machine's project."""

    @property
    def sides(self) -> tuple[str | Path, ...]:
        named = () if self.own_store is None else ("--store", self.own_store)
        return "--format", self.format, "--workspace", self.project, *named

    def in_worktree(self) -> Self:
        """Return this machine at work in another worktree of the project."""
        path, run = add_worktree(self), self.world.run
        return replace(self, world=World(path, run), own_store=self.store)

    @property
    def store(self) -> Path:
        return Path(self.roots.store)

    @property
    def state(self) -> Path:
        return self.home / "data" / "reconcile" / self.roots.key

    @property
    def side(self) -> Path:
        return self.project

    @property
    def records(self) -> dict[str, bytes]:
        """The files of the workspace's side."""
        return {str(path.relative_to(self.side)): path.read_bytes() for path in files(self.side)}

    other_shapes: ClassVar[tuple[str, ...]] = ()
    """Places below the workspace's root where a story makes a file or a directory."""

    @property
    def never_removed(self) -> tuple[str, ...]:
        """The beginnings of paths that no story removes."""
        return ()

    @property
    def other_place(self) -> str:
        """A directory with files that no program reads."""
        return ""

    def record_of(self, path: str) -> str:
        """Return the record of a file."""
        return path

    def result(self, *args: str) -> Result:
        """Return the result of a command, whatever its exit code is."""
        with self.at_work():
            return self.world.run(*self.sides, *args)

    def add(self, bare: Path, *args: str) -> str:
        return self.run("remote", "add", str(bare), "--as", NAME, *args).output

    def findings(self) -> list[tuple[str, str]]:
        """What the doctor says, but for notes, and for what a migration has not done, which is the program's."""
        found = json.loads(self.result("doctor", "--json").stdout)["findings"]
        return [
            (each["kind"], each["place"])
            for each in found
            if each["severity"] != "note" and each["kind"] != "migration"
        ]

    def sync_and_run(self) -> dict[str, Any]:
        """Save what the program has written, sync, and have the workspace get what was taken."""
        self.run()
        found = self.sync()
        self.run()
        return found


class VaultMachine(RecordMachine, frozen=True):
    format = "claudesidian"

    other_shapes: ClassVar[tuple[str, ...]] = (".nexus/shape", ".nexus/other/shape")

    @property
    def other_place(self) -> str:
        return ".nexus/other"

    @property
    def vault(self) -> Vault:
        return Vault(self.project, self.world.run, data=self.home / "data" / "reconcile")


def make_vault_machine(path: Path, run: Run) -> VaultMachine:
    """Make a machine with a directory for a vault, in which the program has not worked yet."""
    machine = VaultMachine(path, World(path / "vault", run))
    machine.project.mkdir(parents=True)
    return machine


class LeslieMachine(RecordMachine, frozen=True):
    format = "leslie"

    @property
    def side(self) -> Path:
        return self.project / ".leslie"

    @property
    def never_removed(self) -> tuple[str, ...]:
        return "thread_relations", "objectives", "logs/"

    other_shapes: ClassVar[tuple[str, ...]] = ("logs/shape", "threads/other/shape")

    @property
    def other_place(self) -> str:
        return "threads/other"

    def record_of(self, path: str) -> str:
        top, *below = path.split("/")
        return f"{top}/{below[0]}" if top == "threads" else path


def make_leslie_machine(path: Path, run: Run) -> LeslieMachine:
    """Make a machine with a project in which the program has not worked yet."""
    machine = LeslieMachine(path, World(path / "project", run))
    machine.project.mkdir(parents=True)
    return machine


RECORD_MACHINES = {"claudesidian": make_vault_machine, "leslie": make_leslie_machine}
"""The makers of machines, by format."""

"""A machine with a store of plain directories, and a workspace of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.projects.machines import Machine
from tests.support.projects.world import LONG_AGO, World, events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

NAME = "notes"


class PlainMachine(Machine, frozen=True):
    format = "plain"

    @property
    def sides(self) -> tuple[str | Path, ...]:
        return "--format", self.format, "--workspace", self.project, "--store", self.home / "store"

    @property
    def store(self) -> Path:
        return self.home / "store" / "conversations"

    @property
    def state(self) -> Path:
        return self.home / "data" / "reconcile" / self.roots.key

    def make(self, name: str, count: int = 3) -> Path:
        """Write a conversation into the store."""
        return write_conversation(self.store / name, name, events(count), mtime_ns=LONG_AGO)

    def write(self, number: int, count: int = 3, title: str | None = None) -> Path:
        return write_conversation(self.store / f"N {number}", title or "talk", events(count), mtime_ns=LONG_AGO)

    def id_of(self, directory: Path) -> str:
        return directory.name

    def directory_of(self, conversation: str) -> Path:
        (found,) = [path for path in self.store.rglob(conversation) if path.is_dir()]
        return found

    def add(self, bare: Path, *args: str) -> str:
        return self.run("remote", "add", str(bare), "--as", NAME, *args).output


def make_plain_machine(path: Path, run: Run) -> PlainMachine:
    machine = PlainMachine(path, World(path / "workspace", run))
    for side in (machine.project / "conversations", machine.store):
        side.mkdir(parents=True)
    return machine

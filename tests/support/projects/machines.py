"""Several machines of one user, each with a home and a checkout of its own, and a bare repository that they share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from reconcile.adapters.locate import locate
from reconcile.model.baseline import IntentKind
from reconcile.remote.sealing import identity_of
from reconcile.state.database import State
from tests.support.projects.world import LONG_AGO, World, append, events, listing, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

    from reconcile.adapters.roots import Roots
    from tests.conftest import Run

_KEY = f"{identity_of(None)}\n"
"""The content of a key file for encrypted remotes."""
HOMES = {
    "HOME": "",
    "JP_USER_DATA_DIR": "jp",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_RUNTIME_DIR": "runtime",
    "XDG_STATE_HOME": "state",
}


class Machine(Struct, frozen=True):
    format: ClassVar[str] = "jp"
    home: Path
    world: World

    @property
    def project(self) -> Path:
        return self.world.project

    @property
    def worktrees(self) -> list[Path]:
        """The project, and the other worktrees of its repository."""
        return [self.project, *sorted(self.home.glob("worktree*"))]

    @property
    def environment(self) -> dict[str, str]:
        return {name: str(self.home / below) for name, below in HOMES.items()}

    @contextmanager
    def at_work(self) -> Iterator[None]:
        before = {name: os.environ.get(name) for name in HOMES}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name)
                else:
                    os.environ[name] = value

    def take_key(self) -> None:
        """Have the key for encrypted remotes that all machines of a test have."""
        own = self.home / "data" / "reconcile"
        own.mkdir(parents=True, exist_ok=True)
        (own / "age-key.txt").write_text(_KEY)

    @property
    def sides(self) -> tuple[str | Path, ...]:
        """The options that name the sides."""
        return "--workspace", self.project

    def run(self, *args: str, code: int = 0) -> Result:
        with self.at_work():
            result = self.world.run(*self.sides, *args)
        assert result.exit_code == code, f"exit code {result.exit_code}\n{result.output}"
        return result

    def sync(self, *args: str, code: int = 0) -> dict[str, Any]:
        return self.half("sync", *args, code=code)

    def half(self, command: str, *args: str, code: int = 0) -> dict[str, Any]:
        """Sync, pull or push."""
        found = json.loads(self.run(command, "--json", *args, code=code).stdout)
        assert isinstance(found, dict)
        return found

    @property
    def roots(self) -> Roots:
        """The sides, found in the machine's own environment."""
        sides = {str(option): str(value) for option, value in zip(self.sides[::2], self.sides[1::2], strict=True)}
        with self.at_work():
            project = sides["--workspace"]
            return locate(self.format, project, sides.get("--store"), project, os.environ, sys.platform)

    @property
    def store(self) -> Path:
        """The silo of the checkout, as the machine's own environment names it."""
        (found,) = (self.home / "jp").glob("workspace/*")
        return found / "conversations"

    @property
    def state(self) -> Path:
        return self.home / "data" / "reconcile" / "jp-ab1cd"

    def write(self, number: int, count: int = 3, title: str | None = None) -> Path:
        directory = self.store / f"{number}-{title or 'talk'}"
        return write_conversation(directory, title or "talk", events(count), mtime_ns=LONG_AGO)

    def id_of(self, directory: Path) -> str:
        return f"jp-c{directory.name.partition('-')[0]}"

    def directory_of(self, conversation: str) -> Path:
        return self.directory(int(conversation.removeprefix("jp-c")))

    def directory(self, number: int) -> Path:
        (found,) = [path for path in self.store.rglob(f"{number}*") if path.is_dir()]
        return found

    def append(self, number: int, count: int, voice: str, mtime_ns: int) -> None:
        append(self.directory(number), count, voice, mtime_ns)

    def events(self, number: int) -> int:
        return len(json.loads((self.directory(number) / "events.json").read_bytes()))

    @property
    def contents(self) -> dict[str, bytes]:
        return {path: content for path, (content, _) in listing(self.store).items()}

    @property
    def private(self) -> set[str]:
        """The private conversations in the store."""
        with State.open(str(self.state), readonly=True) as state:
            found = {id_ for id_, intent in state.intents(None).items() if intent.kind is IntentKind.LOCAL}
        return found.intersection(self.id_of(path.parent) for path in self.store.rglob("events.json"))


def make_machine(path: Path, run: Run) -> Machine:
    """Make a machine with a checkout of one project, and JP's store of it."""
    machine = Machine(path, make_project(path / "project", run))
    (path / "jp" / "workspace" / "project-ab1cd" / "conversations").mkdir(parents=True)
    return machine


def add_worktree(machine: Machine) -> Path:
    """Add a worktree of the project's repository, which is made if need be; return its path."""
    project = machine.project
    if not (project / ".git").exists():
        git(project, "init", "--quiet")
        git(project, "add", "--all")
        author = "-c", "user.name=a", "-c", "user.email=a@b"
        git(project, *author, "commit", "--quiet", "--allow-empty", "--message", "begin")
    path = machine.home / f"worktree{len(machine.worktrees)}"
    git(project, "worktree", "add", "--quiet", "--detach", str(path))
    return path


def make_bare(path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return path


def git(repository: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", "-C", str(repository), *args], input=stdin, capture_output=True, check=True)
    return done.stdout.decode().strip()


def quiet(*machines: Any, equal: bool = True) -> None:
    """Two rounds, the second of which has nothing to do anywhere; ``equal``: all have the same then."""
    for machine in machines:
        machine.sync()
    for machine in machines:
        found = machine.sync()
        lists = ("sent", "taken", "forked", "removed_here", "removed_there", "private_here", "private_no_longer")
        marks = "private_there", "private_no_longer_there", "replaced_forks"
        assert not any(found[key] for key in (*lists, *marks, "held")), found
    assert not equal or all(machine.contents == machines[0].contents for machine in machines)

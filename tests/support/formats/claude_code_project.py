"""A project of Claude Code's with its store on a real disk, and what must hold after every run of the command."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile.adapters.claude_code.stores import store_place
from reconcile.adapters.roots import Request
from tests.agents.program import directory_name
from tests.agents.record import HOME, PROJECT, RECORDED
from tests.support.projects.world import digest_of, files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.testing import Result

    from tests.conftest import Run


@dataclass(frozen=True, slots=True)
class Sides:
    """One checkout, whose sessions are in the user's home, and their store; several may share that."""

    project: Path
    run: Run

    @property
    def config(self) -> Path:
        return Path(os.environ["HOME"], ".claude")

    @property
    def live(self) -> Path:
        return self.config / "projects" / directory_name(str(self.project))

    @property
    def store(self) -> Path:
        request = Request(None, None, str(self.project), os.environ, sys.platform)
        return Path(store_place(str(self.project), request).path)

    def play(self, version: str, story: str) -> Sides:
        """Write a recorded story's files as the program of this version has written them in this project."""
        self.project.mkdir(parents=True, exist_ok=True)
        names = {directory_name(PROJECT): directory_name(str(self.project)), PROJECT: str(self.project)}
        names[HOME] = os.environ["HOME"]
        source = RECORDED / version / story
        for path in files(source):
            content = path.read_bytes()
            for old, new in names.items():
                content = content.replace(old.encode(), new.encode())
            target = self.live / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            # The program only appends: the same file gets longer.
            before = target.read_bytes() if target.exists() else b""
            assert content.startswith(before), "a story that went on"
            with target.open("ab") as file:
                file.write(content[len(before) :])
        return self

    def private(self) -> Sides:
        """Write the files of the program that are nobody else's."""
        for name in ("history.jsonl", "settings.json", ".credentials.json", "projects/other/a.jsonl", "todos/a.json"):
            path = self.config / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"of": "the program"}\n')
        (self.config.parent / ".claude.json").write_text("{}")
        return self

    def stamps(self) -> dict[Path, tuple[int, int, bytes]]:
        """What writing would change, of every file in the home, the project and the store."""
        found = {}
        for path in self._all():
            status = path.stat()
            found[path] = (status.st_ino, status.st_mtime_ns, path.read_bytes())
        return found

    def _all(self) -> list[Path]:
        home = self.config.parent
        roots = [self.config, self.project, self.store]
        return [*(path for root in roots for path in files(root)), *home.glob(".claude.json")]

    def kept(self) -> set[str]:
        """Every content that is on a side or in the vault."""
        data = Path(os.environ["XDG_DATA_HOME"])
        vault = [path for path in files(data) if "objects" in path.parts and not path.name.startswith(".tmp-")]
        return {digest_of(path) for path in [*files(self.live), *files(self.store), *vault]}

    def reconcile(self, *args: str | Path, code: int = 0, lost: Iterable[str] = ()) -> Result:
        """Run it, demand this exit code, that nothing is lost, and that a second run writes nothing."""
        before, foreign = self.kept() - set(lost), self.foreign()
        result = self.run(*args, "-w", self.project)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        assert before <= self.kept(), f"lost by the run:\n{result.output}"
        stamps = self.stamps()
        again = self.run("-w", self.project)
        assert self.stamps() == stamps, f"a second run has written:\n{again.output}"
        assert self.foreign() == foreign, f"a file of the program's own was touched:\n{result.output}"
        return result

    def foreign(self) -> dict[Path, tuple[int, int, bytes]]:
        """The stamps of everything outside the two sides."""
        return {
            path: stamp
            for path, stamp in self.stamps().items()
            if not path.is_relative_to(self.live) and not path.is_relative_to(self.store)
        }

    def dry(self, *args: str) -> list[str]:
        """The actions of a dry run, which writes nothing: kind, and target."""
        before = self.stamps()
        result = self.run("--dry-run", "--json", *args, "-w", self.project)
        assert self.stamps() == before
        return [f"{each['kind']} {each['target']}" for each in json.loads(result.stdout)["actions"]]

    def read(self, *args: str | Path, code: int = 0) -> str:
        """The output of a command that writes nothing."""
        before = self.stamps()
        result = self.run(*args, "-w", self.project)
        assert result.exit_code == code, result.output
        assert self.stamps() == before
        return result.output

    def in_sync(self) -> bool:
        return carried(self.live) == carried(self.store)

    def open_in(self, pid: int, session: str, **more: Any) -> Path:
        """Write the file of a process that has a session open."""
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19]
        file = self.config / "sessions" / f"{pid}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"pid": pid, "sessionId": session, "procStart": started, **more}))
        return file

    def lose(self) -> None:
        """Delete all that the program has, as `rm -rf ~/.claude` does."""
        shutil.rmtree(self.config)


def carried(root: Path) -> dict[str, bytes]:
    """The content of each file of a side, by path."""
    return {str(path.relative_to(root)): path.read_bytes() for path in files(root)}


def titled(sides: Sides, *titles: str) -> Sides:
    """Add a session of one turn with each title; its id begins with eight times the title's first letter."""
    sides.live.mkdir(parents=True, exist_ok=True)
    sides.project.mkdir(exist_ok=True)
    for title in titles:
        name = f"{title[0].lower() * 8}-0000-4000-8000-000000000000"
        turn: dict[str, object] = {
            "type": "user",
            "uuid": name,
            "parentUuid": None,
            "sessionId": name,
            "cwd": str(sides.project),
        }
        turn |= {"timestamp": "2026-11-01T10:00:00.000Z", "message": {"role": "user", "content": title}}
        named = {"type": "ai-title", "aiTitle": title, "sessionId": name}
        (sides.live / f"{name}.jsonl").write_text(f"{json.dumps(turn)}\n{json.dumps(named)}\n")
    return sides


def sweep(sides: Sides, first: str = "") -> None:
    """Delete the sessions of a project whose ids begin so, as Claude Code deletes old ones."""
    for path in sides.live.glob(f"{first}*.jsonl"):
        path.unlink()

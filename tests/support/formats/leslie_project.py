"""A project of Leslie's with its durable copy on a real disk, and what must hold after every run of the command."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile.adapters.roots import Request, store_of
from tests.support.projects.world import digest_of, files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.testing import Result

    from tests.conftest import Run

PROGRAMS_OWN = (".bak", ".lock")


@dataclass(frozen=True, slots=True)
class Sides:
    """One checkout and its durable copy; several may share that."""

    project: Path
    run: Run

    @property
    def leslie(self) -> Path:
        return self.project / ".leslie"

    @property
    def store(self) -> Path:
        request = Request(None, None, str(self.project), os.environ, sys.platform)
        return Path(store_of("leslie", str(self.project), request))

    def stamps(self) -> dict[Path, tuple[int, int, bytes]]:
        """What writing would change, of every file on both sides; of directories that they are there."""
        found = {}
        for root in (self.leslie, self.store):
            for path in files(root):
                status = path.stat()
                found[path] = (status.st_ino, status.st_mtime_ns, path.read_bytes())
            found |= dict.fromkeys(directories(root), (0, 0, b""))
        return found

    def bytes(self) -> dict[Path, bytes]:
        """The content of every file on both sides."""
        return {path: path.read_bytes() for root in (self.leslie, self.store) for path in files(root)}

    def kept(self) -> set[str]:
        """Every content that is on a side or in the vault."""
        data = Path(os.environ["XDG_DATA_HOME"])
        vault = [path for path in files(data) if "objects" in path.parts and not path.name.startswith(".tmp-")]
        return {digest_of(path) for path in [*files(self.leslie), *files(self.store), *vault]}

    def reconcile(self, *args: str | Path, code: int = 0, lost: Iterable[str] = ()) -> Result:
        """Run it, demand this exit code, that nothing is lost, and that a second run writes nothing."""
        before = self.kept() - set(lost)
        result = self.run(*args, "-w", self.project)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        assert before <= self.kept(), f"lost by the run:\n{result.output}"
        stamps = self.stamps()
        again = self.run("-w", self.project)
        assert self.stamps() == stamps, f"a second run has written:\n{again.output}"
        return result

    def dry(self, *args: str) -> list[str]:
        """The actions of a dry run, which writes nothing: what, and where."""
        before = self.stamps()
        result = self.run("--dry-run", "--json", *args, "-w", self.project)
        assert self.stamps() == before
        return [f"{each['kind']} {each['target']}" for each in json.loads(result.stdout)["actions"]]

    def findings(self) -> list[dict[str, Any]]:
        """What the doctor says, but for notes."""
        before = self.stamps()
        found = json.loads(self.run("doctor", "--json", "-w", self.project).stdout)["findings"]
        assert self.stamps() == before
        return [each for each in found if each["severity"] != "note"]

    def in_sync(self) -> bool:
        """Tell whether both sides have the same files, but for the program's own."""
        return carried(self.leslie) == carried(self.store)


def directories(root: Path) -> set[Path]:
    return {Path(parent, name) for parent, names, _ in os.walk(root) for name in names}


def carried(root: Path) -> dict[str, bytes]:
    """What is copied between the sides, by path."""
    paths = ((str(path.relative_to(root)), path) for path in files(root))
    return {
        name: path.read_bytes()
        for name, path in paths
        if not name.endswith(PROGRAMS_OWN) and not name.startswith("runtime/") and ".tmp-" not in name
    }

"""A vault of Claudesidian on a real disk with its durable copy, and the command run over them and counted after.

After every run each content that lay on either side before must lie in the store, the workspace or reconcile's vault,
and everything of the vault that isn't the format's must be as it was, without having been opened.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconcile.formats.claudesidian.record_files import INDEX, Kind
from reconcile.formats.json import javascript
from tests.support.formats.claudesidian import conversation, events, index_of, session, workspace
from tests.support.projects.world import digest_of, files, stamps

if TYPE_CHECKING:
    from click.testing import Result

    from tests.conftest import Run

TOPS = (".workspaces", ".conversations", ".nexus")
NOTE, SETTINGS = "Private notes", ".obsidian"
_opened: list[str] | None = None


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open":
        _opened.append(str(arguments[0]))


sys.addaudithook(_hear)


@dataclass(slots=True)
class Vault:
    """One vault; several may share a ``store``, None: where it lies by itself."""

    path: Path
    run: Run
    shared: Path | None = None
    data: Path = field(default_factory=lambda: Path(os.environ["XDG_DATA_HOME"]) / "reconcile")

    @property
    def store(self) -> Path:
        if self.shared is not None:
            return self.shared
        (found,) = (self.data / "stores" / "claudesidian").glob(f"{self.path.name}-*")
        return found

    def records(self) -> dict[str, bytes]:
        """Every file of the three directories."""
        return below(self.path)

    def carried(self) -> dict[str, bytes]:
        """Those that the store should have: an index is each vault's own."""
        return {path: content for path, content in self.records().items() if not path.endswith(f"/{INDEX}")}

    def kept(self) -> set[str]:
        """Every content that is anywhere; what a killed run has half written is none."""
        objects = self.data.glob("*/vault/objects")
        places = (*objects, self.data / "stores", *(() if self.shared is None else (self.shared,)))
        tops = (self.path / top for top in TOPS)
        found = (path for place in (*places, *tops) for path in files(place))
        return {digest_of(path) for path in found if ".tmp-" not in path.name and "/.reconcile-" not in str(path)}

    def reconcile(self, *args: str | Path, code: int = 0, settled: bool = True) -> Result:
        """Run the command, demand this exit code, and that nothing is lost and nothing left to do."""
        before, others = self.kept(), self.others()
        result = self._run(*args)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        assert before <= self.kept(), f"lost by the run\n{result.output}"
        assert self.others() == others, "something else of the vault was touched"
        left = list(self.path.rglob(".reconcile*"))
        assert not left, left
        if settled:
            self.check_settled()
        return result

    def _run(self, *args: str | Path) -> Result:
        global _opened  # noqa: PLW0603 - an audit hook stays for good
        more = ("--store", self.shared) if self.shared is not None else ()
        _opened = []
        try:
            return self.run(*args, "-w", self.path, *more)
        finally:
            opened, _opened = _opened, None
            assert not [path for path in opened if NOTE in path or SETTINGS in path], opened

    def check_settled(self) -> None:
        """A second run does nothing and writes nothing: times and inodes stay."""
        before = self.written()
        result = self._run("--json")
        assert not json.loads(result.stdout)["actions"], result.stdout
        assert self.written() == before

    def written(self) -> dict[str, tuple[int, ...]]:
        """What any write to either side would change."""
        return stamps(self.path) | stamps(self.store)

    def others(self) -> dict[str, tuple[int, ...]]:
        """What isn't the format's."""
        found = stamps(self.path)
        ours = tuple(str(self.path / top) for top in (*TOPS, ".reconcile-"))
        return {path: status for path, status in found.items() if path != str(self.path) and not path.startswith(ours)}

    def doctor(self) -> list[tuple[str, str, str]]:
        """What is wrong: code, severity, place; but for what the migration hasn't done, which is the program's."""
        found = json.loads(self.run("doctor", "--json", "-w", self.path).stdout)["findings"]
        told = [(each["kind"], each["severity"], each["place"]) for each in found]
        return [each for each in told if each[0] != "migration"]

    def write(self, path: str, value: Any) -> None:
        """Write as the program does: in place."""
        to = self.path / path
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(value if isinstance(value, bytes) else javascript.stringify(value))

    def index(self) -> None:
        """Write both indexes as the program's rebuild makes them."""
        for kind in Kind:
            directory = self.path / kind.directory
            found = {path.name: path.read_bytes() for path in directory.glob("*.json") if path.name != INDEX}
            self.write(f"{kind.directory}/{INDEX}", index_of(kind, found))


def below(path: Path) -> dict[str, bytes]:
    """Every file of the three directories that are in a vault or a store."""
    return {
        str(each.relative_to(path)): each.read_bytes()
        for top in TOPS
        for each in (path / top).rglob("*")
        if each.is_file() and not each.is_symlink()
    }


def small(path: Path, run: Run, shared: Path | None = None) -> Vault:
    """A vault with two workspaces, two conversations, two event files, and what isn't ours."""
    vault = Vault(path, run, shared)
    path.mkdir(parents=True)
    for name in (f"{NOTE}/deep/note.md", f"{NOTE}.md", f"{SETTINGS}/app.json"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(name)
    vault.write(".workspaces/ws_a.json", workspace("ws_a", "Alpha plans", sessions={"s1": session("s1", "t1", "t2")}))
    vault.write(".workspaces/default.json", workspace("default", "Default Workspace"))
    vault.write(".conversations/conv_a.json", conversation("conv_a", "hello there", "again"))
    vault.write(".conversations/conv_b.json", conversation("conv_b"))
    vault.write(".nexus/workspaces/ws_ws_a.jsonl", events(created("ws_a"), opened("s1"), trace("t1")))
    vault.write(".nexus/conversations/conv_conv_a.jsonl", events(told("conv_a"), message("m1")))
    vault.index()
    return vault


def created(id_: str, **more: Any) -> dict[str, Any]:
    """The event that makes a workspace."""
    return {"type": "workspace_created", "data": {"id": id_, "name": id_, "rootFolder": "/", "created": 1}, **more}


def opened(id_: str, **more: Any) -> dict[str, Any]:
    """The event of a session."""
    return {"type": "session_created", "workspaceId": "ws_a", "data": {"id": id_, "name": id_, "startTime": 1}, **more}


def trace(id_: str, **more: Any) -> dict[str, Any]:
    """The event of a trace."""
    data = {"id": id_, "content": id_}
    return {"type": "trace_added", "workspaceId": "ws_a", "sessionId": "s1", "data": data, **more}


def told(id_: str, **more: Any) -> dict[str, Any]:
    """The event that makes a conversation."""
    return {"type": "metadata", "data": {"id": id_, "title": id_, "created": 1, "vault": "v"}, **more}


def message(id_: str, number: int = 0, **more: Any) -> dict[str, Any]:
    """The event of a message."""
    data = {"id": id_, "role": "user", "content": id_, "sequenceNumber": number}
    return {"type": "message", "conversationId": "conv_a", "data": data, **more}

"""The programs of formats with fixed places, as far as scenarios use them: their commands, and how they write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from reconcile.formats.claudesidian.record_files import INDEX, Kind
from reconcile.formats.json import javascript
from tests.support.formats.claudesidian import conversation, events, index_of, workspace
from tests.support.formats.leslie import Leslie, as_bytes
from tests.support.scenarios.line_reader import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.scenarios.line_reader import Words


class Program(Protocol):
    """One of them: what it does to the directory of a side, named ``side``, on a command of its own."""

    def command(self, root: Path, side: str, words: Words) -> None: ...

    def as_bytes(self, value: Any) -> bytes: ...


class LeslieProgram:
    """Leslie's commands by name: `spawn ID "intent" [parent ID] [objective ID] [tags [..]] [no directory]`, ..."""

    def __init__(self) -> None:
        self.clock = 0

    def as_bytes(self, value: Any) -> bytes:
        return as_bytes(value)

    def command(self, root: Path, side: str, words: Words) -> None:
        """Do one, on what the two files say; the clock goes on from command to command, whichever side they are on."""
        relations, objectives = root / "thread_relations.json", root / "objectives.json"
        there = Leslie("" if side == "workspace" else side[0] if side == "store" else side[-1])
        there.clock = max(self.clock, there.clock)
        if relations.exists():
            value = json.loads(relations.read_bytes())
            there.threads, there.operations = value["threads"], value["operations"]
            there.relations, there.made = value["relations"], len(value["operations"])
            relations.with_name(relations.name + ".bak").write_bytes(relations.read_bytes())
        if objectives.exists():
            there.objectives = json.loads(objectives.read_bytes())["objectives"]
            objectives.with_name(objectives.name + ".bak").write_bytes(objectives.read_bytes())
        self._do(there, root, words)
        relations.write_bytes(there.relations_file())
        objectives.write_bytes(there.objectives_file())
        self.clock = there.clock

    def _do(self, there: Leslie, root: Path, words: Words) -> None:
        match command := words.word("a command of Leslie"):
            case "init":
                (root / "threads").mkdir(exist_ok=True)
            case "spawn":
                self._spawn(there, root, words)
            case "reference":
                self._reference(there, root, words)
            case "inject":
                there.log("inject", thread_id=words.word("a thread"), type="note", content=words.json("a text"))
            case "session":
                thread = words.word("a thread")
                there.threads[thread].update(session_id=words.word("a session"), updated_at=there.now())
            case "request_approval" | "delegate" | "handoff":
                thread, executor = words.word("a thread"), words.peek() or None
                if executor is not None:
                    words.word("an executor")
                number = [None, "human", "agent", "system"].index(executor)
                direction = ["request_approval", "delegate", "handoff"].index(command)
                there.transfer(sorted(there.threads).index(thread), direction, number)
            case "suspend" | "resume" | "done" | "cancel" | "archive":
                actions = ("suspend", "resume", "done", "cancel", "archive")
                number = sorted(there.threads).index(words.word("a thread"))
                there.lifecycle(number, actions.index(command), 0)
            case _:
                raise ScenarioError(f"found {command!r}, expected a command of Leslie")

    @staticmethod
    def _spawn(there: Leslie, root: Path, words: Words) -> None:
        thread, intent = words.word("a thread"), words.json("its title")
        parent = words.word("a parent") if words.take("parent") else None
        objective = words.word("an objective") if words.take("objective") else "obj-00000001"
        tags = words.json("tags") if words.take("tags") else []
        there.log(
            "spawn",
            thread_id=thread,
            parent_id=parent,
            intent=intent,
            objective=objective,
            inherit="none",
            inherit_scope=[],
        )
        moment = there.operations[-1]["timestamp"]
        record = {"id": thread, "title": intent, "objective": objective, "created_at": moment, "status": "active"}
        place = {"parent_id": parent, "storage_path": f".leslie/threads/{thread}"}
        there.threads[thread] = {**record, "tags": tags, **place, "executor": "agent", "updated_at": moment}
        depends = [] if parent is None else [parent]
        there.relations[thread] = {"children": [], "references_to": [], "referenced_by": [], "depends_on": depends}
        if parent is not None:
            there.relations[parent]["children"].append(thread)
        for below in ("context/inherited", "context/live", ".meta/transcripts"):
            (root / "threads" / thread / below).mkdir(parents=True, exist_ok=True)
        there.refresh(thread)

    @staticmethod
    def _reference(there: Leslie, root: Path, words: Words) -> None:
        source, target = words.word("a thread"), words.word("a thread")
        binding = "live" if words.take("live") else "frozen"
        scope = words.json("a scope") if words.peek().startswith("[") else []
        if target in there.threads:
            edges = ((source, "references_to", target), (target, "referenced_by", source))
            for thread, name, other in edges:
                if other not in there.relations[thread][name]:
                    there.relations[thread][name].append(other)
            if binding == "frozen":
                (root / "threads" / source / "context" / "inherited" / target).mkdir(parents=True, exist_ok=True)
        there.log("reference", ref_id="ref-1", from_id=source, to_id=target, scope=scope, binding=binding)


class ClaudesidianProgram:
    """Its records by their ids, and both indexes as its own rebuild would make them."""

    def as_bytes(self, value: Any) -> bytes:
        return javascript.stringify(value)

    def command(self, root: Path, side: str, words: Words) -> None:  # noqa: ARG002
        """`workspace ID "name" [{members}]`, `conversation ID ["text", ..] [{members}]`, `event PATH {..}`, `index`."""
        match command := words.word("a command of Claudesidian"):
            case "workspace":
                id_, name = words.word("its id"), words.json("its name")
                self._write(root / ".workspaces" / f"{id_}.json", workspace(id_, name, **_members(words)))
            case "conversation":
                id_, contents = words.word("its id"), words.json("its messages")
                self._write(root / ".conversations" / f"{id_}.json", conversation(id_, *contents, **_members(words)))
            case "event":
                path = root / ".nexus" / words.path()
                before = path.read_bytes() if path.exists() else b""
                number = before.count(b"\n") + 1
                self._write(path, before + events({"id": f"e{number}", "timestamp": number, **words.json("an event")}))
            case "index":
                for kind in (each for each in Kind if (root / each.directory).is_dir()):
                    files = {path.name: path.read_bytes() for path in (root / kind.directory).glob("*.json")}
                    self._write(root / kind.directory / INDEX, index_of(kind, files))
            case _:
                raise ScenarioError(f"found {command!r}, expected a command of Claudesidian")

    def _write(self, path: Path, value: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else self.as_bytes(value))


def _members(words: Words) -> dict[str, Any]:
    found: dict[str, Any] = words.json("members that differ") if words.peek().startswith("{") else {}
    return found


PROGRAMS: Mapping[str, type[Program]] = {"leslie": LeslieProgram, "claudesidian": ClaudesidianProgram}
"""By the name of the format."""

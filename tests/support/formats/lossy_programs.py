"""Leslie and Claudesidian as they lose things: what they add, how they fail, and which entries a side has.

Each works on the files of one side alone. No code of `reconcile.formats` is used: it is what is tested.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

Entry: TypeAlias = tuple[str, ...]
"""The file, below the side's root, and what in it."""


class Program(Protocol):
    """A program that several checkouts use; names are its own in each story."""

    format: str
    folder: str
    """Of a project, which is the side's root."""

    def __init__(self, chance: Random) -> None: ...

    def work(self, root: Path) -> str:
        """Add something, as it does when all is well; says what."""

    def fail(self, root: Path) -> str:
        """Lose something, in one of its ways; says how."""

    def touch_all(self, root: Path) -> None:
        """Add something to each file that holds entries."""

    def entries(self, root: Path) -> set[Entry]:
        """What a side holds validly."""


class _Files:
    """What both have in common: files that are written as a whole, and how that goes wrong."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.made = 0
        self.older: dict[Path, list[bytes]] = {}

    def new(self, what: str) -> str:
        self.made += 1
        return f"{what}-{self.made:06x}"

    def write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self.older.setdefault(path, []).append(path.read_bytes())
        path.write_bytes(content)

    def stale(self, path: Path) -> bytes | None:
        """What a command that took its time has read of a file."""
        known = self.older.get(path, [])
        return self.chance.choice(known[-6:]) if known else None

    def spoil(self, path: Path) -> str:
        """Leave a file as an interrupted write, or a full disk, leaves it."""
        content = path.read_bytes()
        how = self.chance.choice(("emptied", "zeros", "torn", "torn", "deleted"))
        if how == "deleted":
            path.unlink()
        elif how == "torn":
            path.write_bytes(content[: self.chance.randrange(len(content) + 1)])
        else:
            path.write_bytes(b"" if how == "emptied" else b"\0" * len(content))
        return f"{how} {path.name}"


class LossyLeslie(_Files):
    format, folder = "leslie", ".leslie"

    def work(self, root: Path) -> str:
        self._begin(root)
        kind = self.chance.choice((self.objective, self.spawn, self.spawn, self.inject, self.log, self.log))
        kind(root)
        return kind.__name__

    def fail(self, root: Path) -> str:
        ways: list[Callable[[Path], str]] = [self._forgotten, self._rolled_back, self._from_a_stale_read]
        ways += [self._spoilt, self._spoilt, self._backup_spoilt, self._log_begun_anew]
        return self.chance.choice(ways)(root)

    def touch_all(self, root: Path) -> None:
        self._begin(root)
        self.objective(root)
        self.spawn(root)
        for path in self._logs(root):
            self._append(path)

    def entries(self, root: Path) -> set[Entry]:
        found: set[Entry] = set()
        relations, objectives = (_json(root / name) for name in ("thread_relations.json", "objectives.json"))
        for key in ("threads", "operations"):
            members = relations.get(key, {})
            ids = members if isinstance(members, dict) else [each["id"] for each in members]
            found |= {("thread_relations.json", key, each) for each in ids}
        found |= {("objectives.json", each) for each in objectives.get("objectives", {})}
        for path in self._logs(root):
            lines = path.read_bytes().split(b"\n")[:-1]
            found |= {(str(path.relative_to(root)), line.decode()) for line in lines if line.startswith(b"at=")}
        return found

    def objective(self, root: Path) -> None:
        value = self._objectives(root)
        self._add_objective(value)
        self._save(root / "objectives.json", value)

    def spawn(self, root: Path) -> None:
        value = self._relations(root)
        aims = list(self._objectives(root)["objectives"]) or ["obj-unknown"]
        self._add_thread(value, self.chance.choice(aims))
        self._save(root / "thread_relations.json", value)
        thread = value["operations"][-1]["params"]["thread_id"]
        for below in ("context/inherited", "context/live", ".meta/transcripts"):
            (root / "threads" / thread / below).mkdir(parents=True, exist_ok=True)

    def inject(self, root: Path) -> None:
        value = self._relations(root)
        if value["threads"]:
            params = {"thread_id": self.chance.choice(list(value["threads"])), "type": "note", "content": "text"}
            self._operation(value, "inject", params)
            self._save(root / "thread_relations.json", value)

    def log(self, root: Path) -> None:
        name = self.chance.choice(("obj-1/objective.log", "workers/a.ndjson"))
        self._append(root / "logs" / name)

    def _append(self, path: Path) -> None:
        before = path.read_bytes() if path.exists() else b""
        self.write(path, before + f"at={self._now()} line={self.new('line')}\n".encode())

    def _begin(self, root: Path) -> None:
        """Any command makes the files that are missing, empty, and takes the backup in the place of a bad one.

        See docs/design/formats/leslie.md#backup.
        """
        root.mkdir(parents=True, exist_ok=True)
        for name, empty in (("thread_relations.json", _NO_RELATIONS), ("objectives.json", _NO_OBJECTIVES)):
            path, backup = root / name, root / f"{name}.bak"
            if not path.exists():
                metadata = {**empty["metadata"], "last_updated": self._now()}
                path.write_bytes(_bytes({**empty, "metadata": metadata}))
            elif not _json(path):
                good = backup if backup.exists() and _json(backup) else None
                path.write_bytes(good.read_bytes() if good else path.read_bytes())

    def _relations(self, root: Path) -> Any:
        return _json(root / "thread_relations.json") or json.loads(json.dumps(_NO_RELATIONS))

    def _objectives(self, root: Path) -> Any:
        return _json(root / "objectives.json") or json.loads(json.dumps(_NO_OBJECTIVES))

    def _add_objective(self, value: Any) -> None:
        name, now = self.new("obj"), self._now()
        record = {"id": name, "title": name, "created_at": now, "updated_at": now, "status": "active", "thread_ids": []}
        value["objectives"][name] = record

    def _add_thread(self, value: Any, aim: str) -> None:
        name, now = self.new("thread"), self._now()
        params = {"thread_id": name, "parent_id": None, "intent": name, "objective": aim, "inherit": "none"}
        self._operation(value, "spawn", {**params, "inherit_scope": []})
        record = {"id": name, "title": name, "objective": aim, "created_at": now, "status": "active", "tags": []}
        place = {"parent_id": None, "storage_path": f".leslie/threads/{name}", "executor": "agent", "updated_at": now}
        value["threads"][name] = {**record, **place}
        edges: dict[str, list[str]] = {"children": [], "references_to": [], "referenced_by": [], "depends_on": []}
        value["relations"][name] = edges

    def _operation(self, value: Any, command: str, params: Any) -> None:
        entry = {"id": self.new("op"), "timestamp": self._now(), "command": command, "operator": "user"}
        value["operations"].append({**entry, "params": params})

    def _save(self, path: Path, value: Any) -> None:
        counts = {"thread_count": len(value["threads"])} if "threads" in value else {}
        counts |= {"objective_count": len(value["objectives"])} if "objectives" in value else {}
        value["metadata"] = {"last_updated": self._now(), **counts}
        if path.exists():
            path.with_name(path.name + ".bak").write_bytes(path.read_bytes())
        self.write(path, _bytes(value))

    def _now(self) -> str:
        self.made += 1
        return f"2026-02-08T12:{self.made // 60_000:02}:{self.made % 60_000 / 1000:06.3f}Z"

    def _logs(self, root: Path) -> list[Path]:
        return sorted(path for path in (root / "logs").rglob("*") if path.is_file())

    def _forgotten(self, root: Path) -> str:
        shutil.rmtree(root, ignore_errors=True)
        self._begin(root)
        return "deleted, and listed"

    def _rolled_back(self, root: Path) -> str:
        for name in ("thread_relations.json", "objectives.json"):
            if (backup := root / f"{name}.bak").exists() and self.chance.random() < 0.7:
                (root / name).write_bytes(backup.read_bytes())
        return "rolled back"

    def _from_a_stale_read(self, root: Path) -> str:
        name = self.chance.choice(("thread_relations.json", "objectives.json", "logs/obj-1/objective.log"))
        path = root / name
        older = self.stale(path)
        if older is None:
            return "nothing"
        if name.endswith(".log"):
            self.write(path, older)
            self._append(path)
            return f"stale {name}"
        if value := _loads(older):
            if name == "objectives.json":
                self._add_objective(value)
            else:
                self._add_thread(value, "obj-unknown")
            self._save(path, value)
        return f"stale {name}"

    def _spoilt(self, root: Path) -> str:
        paths = [root / name for name in ("thread_relations.json", "objectives.json")] + self._logs(root)
        paths = [path for path in paths if path.exists()]
        return self.spoil(self.chance.choice(paths)) if paths else "nothing"

    def _backup_spoilt(self, root: Path) -> str:
        """A changing command on a bad file copies it over its backup first (docs/design/formats/leslie.md#backup)."""
        path = root / self.chance.choice(("thread_relations.json", "objectives.json"))
        if not path.exists():
            return "nothing"
        content = path.read_bytes()
        for each in (path, path.with_name(path.name + ".bak")):
            each.write_bytes(content[: len(content) * 2 // 3])
        return f"both torn {path.name}"

    def _log_begun_anew(self, root: Path) -> str:
        for path in self._logs(root):
            path.unlink()
            self._append(path)
        return "logs begun anew"


class LossyClaudesidian(_Files):
    format, folder = "claudesidian", ""

    RECORD, TALK, EVENTS = ".workspaces/ws_a.json", ".conversations/conv_a.json", ".nexus/workspaces/ws_ws_a.jsonl"
    FILES = (RECORD, TALK, EVENTS)

    def work(self, root: Path) -> str:
        name = self.chance.choice((*self.FILES, self.EVENTS))
        self._add(root / name, name, _read(root / name))
        return f"add to {name}"

    def fail(self, root: Path) -> str:
        ways = [self._stale, self._stale, self._spoilt, self._lines_lost, self._entries_lost]
        return self.chance.choice(ways)(root)

    def touch_all(self, root: Path) -> None:
        for name in self.FILES:
            self._add(root / name, name, _read(root / name))

    def entries(self, root: Path) -> set[Entry]:
        found: set[Entry] = set()
        for key, session in _json(root / self.RECORD).get("sessions", {}).items():
            found.add((self.RECORD, key))
            found |= {(self.RECORD, key, what, each) for what in ("memoryTraces", "states") for each in session[what]}
        found |= {(self.TALK, each["id"]) for each in _json(root / self.TALK).get("messages", [])}
        for line in (_read(root / self.EVENTS) or b"").split(b"\n"):
            if value := _loads(line):
                found.add((self.EVENTS, value["id"]))
        return found

    def _add(self, path: Path, name: str, before: bytes | None) -> None:
        """What a command writes that has read ``before``; what it can't read is "not found", and begun anew."""
        if name == self.EVENTS:
            self.made += 1
            event = {
                "type": "session_created",
                "workspaceId": "ws_a",
                "data": {"id": self.new("s")},
                "id": self.new("e"),
            }
            line = json.dumps({**event, "timestamp": self.made}, separators=(",", ":")).encode()
            self.write(path, (before or b"") + line + b"\n")
        elif name == self.TALK:
            value = _loads(before) or {"id": "conv_a", "title": "Talk", "created": 1, "vault_name": "v"}
            texts = [*value.get("messages", []), self._message()]
            self.write(path, _script({**value, "updated": self.made, "message_count": len(texts), "messages": texts}))
        else:
            value = _loads(before) or {"id": "ws_a", "name": "Alpha", "rootFolder": "/", "created": 1}
            sessions = value.get("sessions", {})
            if not sessions or self.chance.random() < 0.3:
                name = self.new("s")
                sessions[name] = {"id": name, "name": name, "isActive": True, "memoryTraces": {}, "states": {}}
            session = sessions[self.chance.choice(list(sessions))]
            self.made += 1
            if self.chance.random() < 0.2:
                name = self.new("state")
                session["states"][name] = {"id": name, "name": name, "created": self.made, "state": {}}
            else:
                name = self.new("t")
                session["memoryTraces"][name] = {"id": name, "timestamp": self.made, "type": "note", "content": name}
            self.write(path, _script({**value, "lastAccessed": self.made, "sessions": sessions}))

    def _message(self) -> Any:
        name = self.new("msg")
        return {"id": name, "role": "user", "content": name, "timestamp": self.made}

    def _stale(self, root: Path) -> str:
        name = self.chance.choice(self.FILES)
        older = self.stale(root / name)
        if older is not None:
            self._add(root / name, name, older)
        return f"stale {name}"

    def _spoilt(self, root: Path) -> str:
        paths = [root / name for name in self.FILES if (root / name).exists()]
        return self.spoil(self.chance.choice(paths)) if paths else "nothing"

    def _lines_lost(self, root: Path) -> str:
        lines = (_read(root / self.EVENTS) or b"").splitlines(keepends=True)
        kept = [line for line in lines if self.chance.random() < 0.6]
        if lines:
            (root / self.EVENTS).write_bytes(b"".join(kept))
        return "lines lost"

    def _entries_lost(self, root: Path) -> str:
        if value := _json(root / self.RECORD):
            for session in value["sessions"].values():
                session["memoryTraces"] = {
                    k: v for k, v in session["memoryTraces"].items() if self.chance.random() < 0.6
                }
            (root / self.RECORD).write_bytes(_script(value))
        return "entries lost"


PROGRAMS: dict[str, type[Program]] = {"leslie": LossyLeslie, "claudesidian": LossyClaudesidian}
_NO_RELATIONS: Any = {
    "version": "1.0",
    "metadata": {"last_updated": "", "thread_count": 0},
    "threads": {},
    "operations": [],
    "relations": {},
}
_NO_OBJECTIVES: Any = {"version": "1.0", "objectives": {}, "metadata": {"last_updated": "", "objective_count": 0}}


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _json(path: Path) -> Any:
    return _loads(_read(path))


def _loads(content: bytes | None) -> Any:
    """A JSON object; an empty one where it is none."""
    try:
        found = json.loads(content or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _script(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode()

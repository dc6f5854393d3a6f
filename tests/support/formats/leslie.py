"""A small Leslie, written from docs/design/formats/leslie.md#commands alone, and what the real one left in the corpus.

The model shares no code with `reconcile.formats.leslie`: what that derives from a log is compared with what this one
wrote.
"""

from __future__ import annotations

import json
import os
import shutil
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import strategies as st

from reconcile.formats.leslie.checks.model import File, LeslieTree, ThreadDirectory
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS

Step: TypeAlias = tuple[str, int, int, int]

CORPUS = Path(os.environ.get("RECONCILE_CORPUS") or Path(__file__).parents[4] / "shared" / "corpus") / "leslie"
BEGIN = datetime(2026, 2, 8, 12, tzinfo=UTC)

ACTIONS = ("suspend", "resume", "done", "cancel", "archive")
TABLE = {
    ("active", "suspend"): "suspended",
    ("active", "done"): "completed",
    ("active", "cancel"): "cancelled",
    ("suspended", "resume"): "active",
    ("suspended", "done"): "completed",
    ("suspended", "cancel"): "cancelled",
    ("completed", "archive"): "archived",
    ("cancelled", "archive"): "archived",
    ("frozen", "archive"): "archived",
    ("waiting_human", "resume"): "active",
    ("waiting_human", "cancel"): "cancelled",
}
STEPS = st.tuples(
    st.sampled_from(["spawn"] * 3 + ["reference"] * 2 + ["lifecycle"] * 4 + ["transfer", "inject", "merge", "session"]),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 30),
)


def stories(most: int = 30) -> st.SearchStrategy[list[Step]]:
    """Commands of a user, as numbers that are read modulo what there is."""
    return st.lists(STEPS, max_size=most)


class Leslie:
    """The two files as the program would keep them."""

    def __init__(self, prefix: str = "") -> None:
        self.threads: dict[str, Any] = {}
        self.operations: list[Any] = []
        self.relations: dict[str, Any] = {}
        self.objectives: dict[str, Any] = {}
        self.prefix = prefix
        self.clock = 0
        self.made = 0
        for name in ("obj-00000001", "obj-00000002"):
            self.objectives[name] = {
                "id": name,
                "title": f"Do {name}",
                "created_at": self.now(),
                "updated_at": self.now(),
                "status": "active",
                "thread_ids": [],
            }

    def now(self) -> str:
        self.clock += 7
        moment = BEGIN + timedelta(milliseconds=self.clock)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def continued(self, prefix: str, later: int) -> Leslie:
        """Another history that goes on from here, at another pace."""
        found = deepcopy(self)
        found.prefix, found.clock = prefix, self.clock + later
        return found

    def play(self, steps: list[Step]) -> Leslie:
        for command, *numbers in steps:
            getattr(self, command)(*numbers)
        return self

    def log(self, command: str, operator: str = "user", **params: Any) -> None:
        self.made += 1
        entry = {"id": f"op-{self.prefix}{self.made:04x}", "timestamp": self.now(), "command": command}
        self.operations.append(entry | {"operator": operator, "params": params})

    def pick(self, number: int) -> str | None:
        return sorted(self.threads)[number % len(self.threads)] if self.threads else None

    def spawn(self, parent: int, objective: int, tags: int) -> None:
        above = self.pick(parent) if parent % 3 else None
        aim = list(self.objectives)[objective % 2]
        name = f"thread-{self.prefix}{(len(self.threads) * 2654435761) % 2**32:08x}"
        intent = ["Plan", 'Übersicht — "docs" 文档', "Fix it"][tags % 3]
        self.log(
            "spawn", thread_id=name, parent_id=above, intent=intent, objective=aim, inherit="none", inherit_scope=[]
        )
        moment = self.operations[-1]["timestamp"]
        record = {"id": name, "title": intent, "objective": aim, "created_at": moment, "status": "active"}
        if tags % 4:
            record["tags"] = ["a", "b"][: tags % 3]
        record |= {
            "parent_id": above,
            "storage_path": f".leslie/threads/{name}",
            "executor": ["agent", "human"][tags % 2],
            "updated_at": moment,
        }
        self.threads[name] = record
        entry: dict[str, list[str]] = {"children": [], "references_to": [], "referenced_by": [], "depends_on": []}
        self.relations[name] = entry
        if above is not None:
            entry["depends_on"].append(above)
            self.relations[above]["children"].append(name)
        self.refresh(name)

    def reference(self, source: int, target: int, scope: int) -> None:
        source_id, target_id = self.pick(source), self.pick(target)
        if source_id is None or target_id is None:
            return
        if scope % 7 == 6:
            target_id = "thread-deadbeef"
        elif self.reaches(target_id, source_id):
            return
        else:
            for thread, name, other in (
                (source_id, "references_to", target_id),
                (target_id, "referenced_by", source_id),
            ):
                if other not in self.relations[thread][name]:
                    self.relations[thread][name].append(other)
        binding = ["frozen", "live"][scope % 2]
        self.log("reference", ref_id="ref-1", from_id=source_id, to_id=target_id, scope=[], binding=binding)

    def reaches(self, start: str, goal: str) -> bool:
        todo, seen = [start], set()
        while todo:
            thread = todo.pop()
            if thread == goal:
                return True
            if thread not in seen:
                seen.add(thread)
                todo += self.relations[thread]["references_to"]
        return False

    def lifecycle(self, thread: int, action: int, _: int) -> None:
        name, word = self.pick(thread), ACTIONS[action % 5]
        if name is None or (status := TABLE.get((self.threads[name]["status"], word))) is None:
            return
        self.log("lifecycle", thread_id=name, action=word, reason=None)
        self.touch(name, status=status)
        self.refresh(name)

    def transfer(self, thread: int, direction: int, target: int) -> None:
        name, word = self.pick(thread), ["request_approval", "delegate", "handoff"][direction % 3]
        executor = [None, "human", "agent", "system"][target % 4]
        if name is None:
            return
        self.log("transfer", thread_id=name, direction=word, scope=[], reason=None, target_executor=executor)
        if word == "request_approval":
            self.touch(name, status="waiting_human")
            return
        if executor is not None:
            self.touch(name, executor=executor)
        waiting = self.threads[name]["status"] == "waiting_human"
        self.touch(name, status="active" if waiting else self.threads[name]["status"])

    def inject(self, thread: int, _: int, __: int) -> None:
        if (name := self.pick(thread)) is not None:
            self.log("inject", thread_id=name, type="note", content="two\nlines")

    def merge(self, source: int, target: int, _: int) -> None:
        names = [self.pick(source), self.pick(target)]
        if names[0] is not None:
            self.log("merge", sources=names[:1], target=names[1], conflict_strategy="interactive", conflicts=[])

    def session(self, thread: int, number: int, _: int) -> None:
        if (name := self.pick(thread)) is not None:
            self.touch(name, session_id=f"session {number}")
            self.threads[name]["updated_at"] = self.now()

    def touch(self, thread: str, **fields: Any) -> None:
        self.threads[thread].update(fields, updated_at=self.operations[-1]["timestamp"])

    def refresh(self, thread: str) -> None:
        objective = self.objectives[self.threads[thread]["objective"]]
        mine = [each for each in self.threads.values() if each["objective"] == objective["id"]]
        done = all(each["status"] in ("completed", "cancelled", "archived") for each in mine)
        objective["thread_ids"] = sorted(each["id"] for each in mine)
        objective["status"] = "completed" if done else "active"

    def relations_file(self, **replaced: Any) -> bytes:
        """What the program writes; some parts replaced by something else."""
        metadata = {"last_updated": self.now(), "thread_count": len(self.threads)}
        self.clock -= 7
        value = {"version": "1.0", "metadata": metadata, "threads": self.threads}
        return as_bytes({**value, "operations": self.operations, "relations": self.relations, **replaced})

    def objectives_file(self, **replaced: Any) -> bytes:
        metadata = {"last_updated": self.now(), "objective_count": len(self.objectives)}
        self.clock -= 7
        return as_bytes({"version": "1.0", "objectives": self.objectives, "metadata": metadata, **replaced})


def as_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


STANDARD = frozenset({".meta", ".meta/transcripts", "context", "context/inherited", "context/live"})


def read(played: Leslie, **other: bytes) -> LeslieTree:
    """A ``.leslie`` as it was read, whole but for what is said otherwise, such as ``relations=b"..."``."""
    relations = other.get("relations", played.relations_file())
    objectives = other.get("objectives", played.objectives_file())
    files = {RELATIONS: relations, RELATIONS + ".bak": other.get("backup"), OBJECTIVES: objectives}
    threads = {}
    for thread, entry in played.relations.items():
        copies = {f"context/inherited/{other}" for other in entry["references_to"]}
        threads[thread] = ThreadDirectory(files=frozenset({"plan.md"}), directories=STANDARD | copies)
    present = {name: File(content) for name, content in files.items() if content is not None}
    return LeslieTree(present, threads, now="2026-02-09T00:00:00.000Z")


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file that was cut, written over, or edited by hand."""
    how = draw(st.sampled_from(["not", "not", "cut", "over", "edited", "behind"]))
    at = draw(st.integers(0, len(content)))
    if how == "cut":
        return content[:at]
    if how == "over":
        return content[:at] + draw(st.binary(min_size=1, max_size=3)) + content[at + 1 :]
    if how == "behind":
        return content + draw(st.sampled_from([b"}", b"\0\0", b" \n", b"<<<<<<< a\n"]))
    if how == "edited":
        words = [b'"active"', b'"parent_id"', b'"children"', b'"spawn"', b'Z"', b"thread-", b"null", b"[]", b"done"]
        word, other = draw(st.sampled_from(words)), draw(st.sampled_from([*words, b'"x"', b"1", b"{}"]))
        return content.replace(word, other, draw(st.integers(1, 3)))
    return content


def corpus_found(scenario: str) -> LeslieTree:
    """A scenario of the corpus as the program left it, with the empty directories that git doesn't keep."""
    directory = CORPUS / scenario
    files = {file.name: File(file.read_bytes()) for file in (directory / ".leslie").iterdir() if file.is_file()}
    below: dict[str, tuple[set[str], set[str]]] = {}
    for line in (directory / "paths.txt").read_text().splitlines():
        kind, _, path = line.partition(" ")
        if path.startswith(".leslie/threads/"):
            thread, _, rest = path.removeprefix(".leslie/threads/").partition("/")
            entry = below.setdefault(thread, (set(), set()))
            if rest:
                entry[kind == "d"].add(rest)
    threads = {
        thread: ThreadDirectory(files=frozenset(files), directories=frozenset(directories))
        for thread, (files, directories) in below.items()
    }
    return LeslieTree(files, threads, now="2026-11-23T00:00:00.000Z")


def corpus_project(scenario: str, parent: Path) -> Path:
    """A copy of a scenario as the program left it, with its empty directories."""
    project = parent / scenario
    shutil.copytree(CORPUS / scenario / ".leslie", project / ".leslie")
    for line in (CORPUS / scenario / "paths.txt").read_text().splitlines():
        kind, _, path = line.partition(" ")
        if kind == "d":
            (project / path).mkdir(exist_ok=True, parents=True)
    return project

"""The example of a fourth format (docs/examples/notes.py), for the tests, and values of its records."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.fs.hashing import digest
from reconcile.model.format import Entry, TwoContinuations
from reconcile.model.plan import Kind
from reconcile.model.snapshot import WHOLE, Copy, File, Partition, Side, Snapshot
from reconcile.model.units import Rules
from reconcile.planning.simulate import listing_of, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from reconcile.model.format import EventSelection
    from reconcile.model.plan import Plan

PAGE = Path(__file__).parents[3] / "docs" / "examples" / "notes.py"
HOUR = 3_600 * 10**9


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes_format", PAGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


notes = _load()
FORMAT = notes.NotesFormat()
RULES = Rules(FORMAT, digest)


class Branching(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same where two versions of a note both stay, and an answer (`a.md.1.md`) belongs to its note.

    A note can be forked. An editor may have it open.
    """

    def owner(self, conversation: str) -> str | None:
        note, _, number = conversation.removesuffix(".md").rpartition(".")
        return note if number.isdigit() else None

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> TwoContinuations:  # noqa: ARG002
        return TwoContinuations()

    def holder(self, conversation: str, inputs: object) -> str:
        return "an editor" if isinstance(inputs, notes.Found) and inputs.busy and self.can_fork(conversation) else ""

    def can_fork(self, conversation: str) -> bool:
        return self.owner(conversation) is None

    def cut_stream(self, contents: Mapping[str, bytes], part: EventSelection) -> dict[str, bytes]:
        lines = {name: content.splitlines(keepends=True) for name, content in contents.items()}
        if not all(lines.values()):
            raise ValueError("no lines")
        return {name: b"".join(found[-(part.last or 0) :]) for name, found in lines.items()}

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        return content if title is None else f"{title}, from {parent}\n".encode() + content

    def forked(self, conversation: str, content: bytes, new: str | None = None) -> tuple[str, bytes]:
        source = self.owner(conversation) or conversation
        return f"{'fork' if new is None else new}-{source}{conversation.removeprefix(source)}", content + b"forked\n"


PLACES = Branching()
BRANCHING = Rules(PLACES, digest)


def side(which: Side, files: Mapping[str, bytes], at: int = 9, *, busy: bool = False) -> Snapshot:
    """Return what a scan finds where these files are, all of that hour of the day."""
    return snapshot(which, {path: (content, at * HOUR) for path, content in files.items()}, busy=busy)


def snapshot(which: Side, files: Mapping[str, tuple[bytes, int]], *, busy: bool = False) -> Snapshot:
    """Return what a scan finds where these files are, each with its time."""
    inside: dict[str, list[File]] = {}
    contents: dict[str, bytes] = {}
    for path, (content, time) in sorted(files.items()):
        record, _, name = path.partition("/")
        inside.setdefault(record, []).append(File(name, len(content), time, digest(content)))
        if not name:
            contents[record] = content
    copies = tuple(
        Copy(
            which,
            record,
            record,
            Partition.LIVE,
            None,
            tuple(inside[record]),
            FORMAT.read_record(record, contents[record]) if record in contents else None,
            None,
        )
        for record in sorted(inside)
        if FORMAT.entry(record, directory=record not in contents) is Entry.RECORD
    )
    found = notes.Found(dict(contents), busy) if which is Side.WORKSPACE else None
    return Snapshot(which, exists=bool(files), identity="1:1" if files else "", copies=copies, derived_inputs=found)


Files = dict[str, tuple[bytes, int]]
"""Content and time of files by path."""


def carried_out(plan: Plan, files: Mapping[Side, Files]) -> set[bytes]:
    """Do what a plan says to the files of both sides, as `simulate` says; return what was replaced or removed."""
    vault: set[bytes] = set()
    wanted = simulate(plan, listing_of(*(snapshot(which, files[which]) for which in Side)))
    for action in plan.actions:
        for write in action.writes:
            there, source = files[write.target.side], write.source
            content = write.content if source is None else files[source.side][source.path][0]
            assert content is not None
            assert (digest(content), len(content)) == (write.digest, write.size)
            vault |= {there[write.target.path][0]} if write.target.path in there else set()
            there[write.target.path] = (content, write.mtime_ns)
        for expect in action.expect if action.kind is Kind.AGE else ():
            there = files[expect.place.side]
            there[expect.place.path] = (there[expect.place.path][0], action.mtime_ns or 0)
        for place in action.removes:
            vault.add(files[place.side].pop(place.path)[0])
        if action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE:
            there = files[action.target.side]
            for path in [p for p in there if p == action.target.path or p.startswith(f"{action.target.path}/")]:
                vault.add(there.pop(path)[0])
    assert listing_of(*(snapshot(which, files[which]) for which in Side)) == wanted
    return vault

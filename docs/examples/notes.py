"""A fourth format as an example: a folder of notes with an index that is derived from them, and a log that only grows.

    shopping.md         a note: a record that is one file
    trip/               what belongs to a note: a record that is a directory, each file in it by itself
    log                 lines that are only ever added: two versions of it are made one
    INDEX               derived: a line for each note, with its name and its first line
    .busy               there while the program writes
    *.tmp               the program's own

It is tried by the tests like the formats that come with reconcile (docs/formats.md).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from reconcile.formats.fixed import FixedPlaces
from reconcile.model.format import DerivedRepair, Entry
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.snapshot import Metadata

LOG, INDEX, BUSY = "log", "INDEX", ".busy"


@dataclass(frozen=True, slots=True)
class Found:
    """What the reader has found in a workspace: the files at the top, and whether the program is at work."""

    files: Mapping[str, bytes]
    busy: bool = False


class NotesFormat(FixedPlaces):
    """Records, what is valid, what is derived, and what becomes of two versions."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "notes"

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Tell what lies at a path below the root. Nothing is entered: what is in a directory belongs to it."""
        if path.startswith(".") or path.endswith(".tmp"):
            return Entry.IGNORED
        return Entry.RECORD if directory or path.endswith(".md") or path in (LOG, INDEX) else Entry.FOREIGN

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """A note is text; its title is its first line."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return Fault(conversation, "bytes that are no UTF-8", "text")
        return self.described(text.partition("\n")[0] or None, content)

    def is_derived(self, conversation: str) -> bool:
        """The index is."""
        return conversation == INDEX

    def lock_name(self, conversation: str) -> str | None:
        """The program writes nothing but the index and the log while it is at work."""
        return conversation if conversation in (LOG, INDEX) else None

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:
        """Put both ends of a log behind what they have in common; of a note, the table decides."""
        if conversation != LOG:
            return None
        ours, theirs = store.splitlines(keepends=True), workspace.splitlines(keepends=True)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
        if not same and ours and theirs:
            return Fault(LOG, "two logs that have no beginning in common", "two that have grown apart")
        return b"".join((*ours, *(line for line in theirs[same:] if line not in ours[same:])))

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """A log only grows."""
        return conversation == LOG and not {*before.splitlines()} <= {*after.splitlines()}

    def busy(self, inputs: object) -> str:
        """Why nothing may be written now."""
        return f"{BUSY} is there" if isinstance(inputs, Found) and inputs.busy else ""

    def mend(
        self, inputs: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[DerivedRepair, ...]:
        """The index as the notes say it; and on request, a heading for each note that is empty."""
        files = dict(inputs.files) if isinstance(inputs, Found) else {}
        for path, content in written.items():
            if content is None:
                files.pop(path, None)
            elif "/" not in path:
                files[path] = content
        empty = tuple(
            DerivedRepair(
                f"empty:{path}", path, ("a heading",), b"", _heading(path), asked="somebody may want it empty"
            )
            for path, content in sorted(files.items())
            if path.endswith(".md") and not content
        )
        files |= {each.path: _heading(each.path) for each in empty if each.id in wanted}
        index, before = index_of(files), files.get(INDEX)
        if not files or index == before:
            return empty
        return (*empty, DerivedRepair(INDEX, INDEX, tuple(_differences(before or b"", index)), before, index))


def _heading(path: str) -> bytes:
    return f"# {path.removesuffix('.md')}\n".encode()


def index_of(files: Mapping[str, bytes]) -> bytes:
    """The index that follows from the notes."""
    notes = {path.removesuffix(".md"): text for path, text in files.items() if path.endswith(".md")}
    return b"".join(f"{name}: ".encode() + notes[name].partition(b"\n")[0] + b"\n" for name in sorted(notes))


def _differences(before: bytes, after: bytes) -> list[str]:
    lines, wanted = before.decode(errors="replace").splitlines(), after.decode(errors="replace").splitlines()
    gone = [f"- {line}" for line in lines if line not in wanted]
    return gone + [f"+ {line}" for line in wanted if line not in lines] or ["the order of its lines"]


def read(root: str, now_ns: int) -> Found:  # noqa: ARG001 - every reader is told the time
    """Read what `NotesFormat.mend` is a function of; the only part that touches a disk."""
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    files = {}
    for name in names:
        with open(os.path.join(root, name), "rb") as file:
            files[name] = file.read()
    return Found({name: content for name, content in files.items() if name != BUSY}, busy=BUSY in files)

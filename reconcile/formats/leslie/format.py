"""Leslie's ``.leslie/`` as records with fixed places, each known by its path below it.

The content of ``.leslie/`` is the root of either side. Both control files, each file below ``logs/`` and whatever else
lies at the top is a record of one file; each directory below ``threads/`` is a record with a unit for every file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.append_only import join_lines, lacks_lines
from reconcile.formats.fixed import FixedPlaces, is_blank, is_odd
from reconcile.formats.leslie.checks.examine import mended, with_written
from reconcile.formats.leslie.checks.model import Found
from reconcile.formats.leslie.choice import join_objectives, join_relations, loses_records
from reconcile.formats.leslie.document import CONTROL, OBJECTIVES, RELATIONS, THREADS, dotted, is_safe, read
from reconcile.model.format import Entry
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.format import Mended
    from reconcile.model.snapshot import Metadata

LOGS, RUNTIME, LOCK = "logs", "runtime", ".lock"
_DIRECTORIES = (THREADS, LOGS)
_PROGRAM = re.compile(
    r"(?:thread_relations|objectives)\.json(?:\.bak|\.lock(?:\.stale-.*)?|\.tmp-[0-9]+-[0-9a-f-]{36})", re.DOTALL
)
"""What the program has beside a control file: its backup, its lock, what an interrupted write leaves (1, 7)."""


class LeslieFormat(FixedPlaces):
    """The rules of a ``.leslie``."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "leslie"

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Tell what lies at the top, in ``threads/`` or below ``logs/``; what nobody knows is a record all the same.

        A log is a record by itself, as it only grows and is united by line.
        """
        above, _, name = path.rpartition("/")
        if not above and (_PROGRAM.fullmatch(name) or name == RUNTIME or (directory and name.endswith(".lock"))):
            return Entry.IGNORED
        if self.is_left_out(path, directory=directory):
            return Entry.IGNORED
        if not is_safe(name) or is_odd(path):
            return Entry.FOREIGN
        if not above:
            if name in _DIRECTORIES:
                return Entry.ENTER if directory else Entry.FOREIGN
            return Entry.FOREIGN if directory and name in CONTROL else Entry.RECORD
        if path.startswith(f"{LOGS}/"):
            return Entry.ENTER if directory else Entry.RECORD
        return Entry.RECORD if above == THREADS and directory else Entry.FOREIGN

    def order(self, conversation: str) -> tuple[int, str]:
        """The relations, the objectives, then by path: the order of the locks.

        See docs/design/formats/leslie.md#locking.
        """
        name = conversation.removesuffix(LOCK)
        return (CONTROL.index(name) if name in CONTROL else len(CONTROL), conversation)

    def lock_name(self, conversation: str) -> str | None:
        """The control file whose lock the program takes before it writes it; it has none for other files.

        A lock that was left behind is taken away by taking it over, as the program does.
        """
        name = conversation.removesuffix(LOCK)
        return name if name in CONTROL else None

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """A control file must be one that the program reads, or of the older dialect; others may be anything.

        An empty control file is damage that the other side refills.
        """
        if conversation in CONTROL:
            found = read(conversation, content)
            if isinstance(found, Fault):
                return replace(found, incomplete=is_blank(content))
            if found.damage:
                first = found.damage[0]
                return Fault(conversation, f"{first.found} as {dotted(first.path)}", first.expected)
        return self.described(None, content)

    def unite(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:
        """Both sides' control files or logs in one; the table decides about every other record that isn't empty."""
        if conversation == RELATIONS:
            return join_relations(workspace, store)
        if conversation == OBJECTIVES:
            return join_objectives(workspace, store)
        if conversation.startswith(f"{LOGS}/"):
            return join_lines(store, workspace)
        return super().unite(conversation, store, workspace)

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether operations, threads, objectives or lines of a log are missing: the program removes none of them.

        It goes back to a backup without a word, and makes empty files in the place of those that are gone
        (docs/design/formats/leslie.md#backup).
        """
        if conversation in CONTROL:
            return loses_records(conversation, before, after)
        if conversation.startswith(f"{LOGS}/"):
            return lacks_lines(before, after)
        return super().loses(conversation, before, after)

    def busy(self, found: object) -> str:
        """Why nothing may be written in the workspace now, in words (`Found.busy`)."""
        return found.busy if isinstance(found, Found) else ""

    def mend(
        self, found: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[Mended, ...]:
        """What mends the workspace (`mended`), after what a plan writes before. No `Found`: there was no ``.leslie``.

        To ask for several, ask for them together in ``wanted``: each for itself is made of what there is without the
        others.
        """
        there = found if isinstance(found, Found) else Found({})
        return mended(with_written(there, written), wanted)

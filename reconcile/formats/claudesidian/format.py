"""A vault of Claudesidian as records with fixed places: each file of its three directories, identified by its path.

The root of either side is that of the vault, so that a path is the same in findings, plans and on disk. A vault
consists mostly of notes. Outside of the three directories nothing is read or reported.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.claudesidian.checks.examine import derived_repairs
from reconcile.formats.claudesidian.events import holds_events, is_cut_short
from reconcile.formats.claudesidian.record_files import Item, Kind, read_item
from reconcile.formats.claudesidian.union import loses_entries, loses_events, merge_event_files, merge_items
from reconcile.formats.claudesidian.vault import NEXUS, Place, Role, VaultFiles, VaultSnapshot, place_of, read_index
from reconcile.formats.fixed import FixedPlaces, is_blank, is_odd
from reconcile.model.format import Entry
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.format import DerivedRepair, Merge
    from reconcile.model.snapshot import Metadata
    from reconcile.model.transcript import Transcript

_TOPS = (*(kind.directory for kind in Kind), NEXUS)
_CACHE = re.compile(re.escape(NEXUS) + r"/cache\.db(?:-.*)?", re.DOTALL)
"""The cache and its SQLite journals, which the program creates again from the event files."""


class ClaudesidianFormat(FixedPlaces):
    """The rules of a vault."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "claudesidian"

    @property
    def tops(self) -> tuple[str, ...]:
        """The directories that belong to the format; the rest of a vault are notes in any number of folders."""
        return _TOPS

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Classify an entry: every file in the three directories is a record, everything else is ignored."""
        top, _, below = path.partition("/")
        if top not in _TOPS or self.is_left_out(path, directory=directory):
            return Entry.IGNORED
        if not directory and _CACHE.fullmatch(path):
            return Entry.IGNORED
        if is_odd(path):
            return Entry.FOREIGN
        if directory:
            return Entry.ENTER
        return Entry.RECORD if below else Entry.FOREIGN

    def is_derived(self, conversation: str) -> bool:
        """Tell whether this is an index: it follows from the records of its own vault."""
        place = place_of(conversation)
        return place is not None and place.role is Role.INDEX

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """Read a record. Workspaces, conversations and indexes must have the shape that the program needs
        (`read_item`).

        One event is enough for an event file: the program skips a truncated line, and a file that is held back for it
        would hold back all its other events. Other files may hold anything. An empty file of these kinds is incomplete,
        and so is one with only a truncated first line: the other side replaces it.
        """
        match place_of(conversation):
            case Place(Role.RECORD, kind, name):
                item = read_item(kind, name, content)
                if isinstance(item, Fault):
                    return replace(item, file=conversation, incomplete=is_blank(content))
                return self.described(_title(item), content)
            case Place(Role.INDEX, kind, _):
                _, problem = read_index(kind, content)
                if problem is not None:
                    return Fault(conversation, problem, f"the index of all {kind}s")
            case Place(Role.EVENTS) if not holds_events(content):
                expected = "one JSON object in each line"
                return Fault(conversation, "no line with an event", expected, incomplete=is_cut_short(content))
            case _:
                pass
        return self.described(None, content)

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:
        """Return a conversation for people to read."""
        from reconcile.formats.claudesidian.transcript import transcript  # here: no run needs it

        return transcript(conversation, contents)

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> Merge:
        """Merge both sides' events, or both versions of a record; the decision table handles everything else.

        An index is derived from the records, so the newer one will do: `mend` corrects it.
        """
        match place_of(conversation):
            case Place(Role.EVENTS):
                return merge_event_files(conversation, store, workspace)
            case Place(Role.RECORD, kind, name):
                return merge_items(kind, name, store, workspace)
            case _:
                return super().merge(conversation, store, workspace)

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether a version lacks events or entries of another: event files only grow, and records nearly so."""
        match place_of(conversation):
            case Place(Role.EVENTS):
                return loses_events(before, after)
            case Place(Role.RECORD, kind, name):
                return loses_entries(kind, name, before, after)
            case _:
                return super().loses(conversation, before, after)

    @property
    def has_derived(self) -> bool:
        """True: see `mend`."""
        return True

    def mend(
        self, inputs: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[DerivedRepair, ...]:
        """Return the repairs of the workspace (`derived_repairs`) after the writes of a plan.

        ``inputs`` is a `VaultSnapshot`; anything else means that there was no vault.
        """
        vault = inputs if isinstance(inputs, VaultSnapshot) else VaultSnapshot(VaultFiles(), 0)
        return derived_repairs(vault, written, wanted)


def _title(item: Item) -> str | None:
    title = item.value.get("name" if item.kind is Kind.WORKSPACE else "title")
    return title if isinstance(title, str) else None

"""A vault of Claudesidian as records with fixed places: each file of its three directories, known by its path.

The root of either side is the vault's own, so that a path is the same in findings, plans and on disk. A vault is mostly
somebody's notes: outside of the three directories nothing is looked at and nothing said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.claudesidian.checks.examine import mended
from reconcile.formats.claudesidian.events import holds_events, is_cut_short
from reconcile.formats.claudesidian.record_files import Item, Kind, read_item
from reconcile.formats.claudesidian.union import join_events, join_items, loses_entries, loses_events
from reconcile.formats.claudesidian.vault import NEXUS, FoundVault, Place, Role, VaultFiles, place_of, read_index
from reconcile.formats.fixed import FixedPlaces, is_blank, is_odd
from reconcile.model.format import Entry
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.format import Mended
    from reconcile.model.snapshot import Metadata

_TOPS = (*(kind.directory for kind in Kind), NEXUS)
_CACHE = re.compile(re.escape(NEXUS) + r"/cache\.db(?:-.*)?", re.DOTALL)
"""The program makes it again from the event files, and so SQLite's journals beside it."""


class ClaudesidianFormat(FixedPlaces):
    """The rules of a vault."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "claudesidian"

    @property
    def tops(self) -> tuple[str, ...]:
        """The rest of a vault is somebody's notes, in any number of folders."""
        return _TOPS

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Every file in the three directories is a record, whatever it is; the rest of the vault is none of ours."""
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
        """Both indexes say what records their own vault has."""
        place = place_of(conversation)
        return place is not None and place.role is Role.INDEX

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """A workspace, a conversation and an index must be what the program can go through (`read_item`).

        Of an event file one event is enough: a torn line is skipped by the program and named by `doctor`, and a file
        that is kept out for it would keep out everything else that it has. What else there is may be anything.
        An empty file of these kinds is damage that the other side refills, and so is one whose first line was cut off.
        """
        match place_of(conversation):
            case Place(Role.RECORD, kind, name):
                found = read_item(kind, name, content)
                if isinstance(found, Fault):
                    return replace(found, file=conversation, incomplete=is_blank(content))
                return self.described(_title(found), content)
            case Place(Role.INDEX, kind, _):
                _, problem = read_index(kind, content)
                if problem is not None:
                    return Fault(conversation, problem, f"the index of all {kind}s")
            case Place(Role.EVENTS) if not holds_events(content):
                expected = "one JSON object in each line"
                return Fault(conversation, "no line that is an event", expected, incomplete=is_cut_short(content))
            case _:
                pass
        return self.described(None, content)

    def unite(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:
        """Both sides' events, or all that both versions of a record hold; the table decides about everything else.

        An index is made of the records, so the newer one is as good as any: `mend` makes it right.
        """
        match place_of(conversation):
            case Place(Role.EVENTS):
                return join_events(conversation, store, workspace)
            case Place(Role.RECORD, kind, name):
                return join_items(kind, name, store, workspace)
            case _:
                return super().unite(conversation, store, workspace)

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether a version lacks events or entries of another: event files only ever grow, records in effect."""
        match place_of(conversation):
            case Place(Role.EVENTS):
                return loses_events(before, after)
            case Place(Role.RECORD, kind, name):
                return loses_entries(kind, name, before, after)
            case _:
                return super().loses(conversation, before, after)

    def mend(
        self, found: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[Mended, ...]:
        """What mends the workspace (`mended`), after what a plan writes before. No `FoundVault`: there was no vault."""
        there = found if isinstance(found, FoundVault) else FoundVault(VaultFiles(), 0)
        return mended(there, written, wanted)


def _title(item: Item) -> str | None:
    found = item.value.get("name" if item.kind is Kind.WORKSPACE else "title")
    return found if isinstance(found, str) else None

"""A past run as values: the content of the journal and the vault that undo and restore need."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.snapshot import File

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import ConversationRecord
    from reconcile.model.plan import Action, Note
    from reconcile.model.snapshot import Digest, Place


class SavedFile(Struct, frozen=True):
    """One file before a run replaced or removed it; ``vault`` is the name of its object in the vault.

    One that is not in the vault has its ``content``.
    """

    size: int
    mtime_ns: int
    digest: Digest
    vault: str | None = None
    content: bytes | None = None

    def named(self, name: str) -> File:
        """Return the file of a copy with this content and this name."""
        return File(name, self.size, self.mtime_ns, self.digest)


class PastRun(Struct, frozen=True):
    """One run: its actions in order, and the state before it.

    ``kept``: the saved versions of each place, oldest first. ``links``: the saved symbolic links, each with the name of
    its object in the vault. ``remembered``: the earlier records of the conversations
    that the run changed. ``since``: the changes of later runs. ``is_undo``: the run reverted another one.
    ``repeats``: to undo the run is to repeat an earlier one. ``titles``: of conversations that are on no side now.
    """

    id: str
    steps: tuple[Action, ...]
    kept: Mapping[Place, tuple[SavedFile, ...]] = field(default_factory=dict)
    remembered: Mapping[str, ConversationRecord] = field(default_factory=dict)
    since: LaterChanges = field(default_factory=lambda: LaterChanges({}, frozenset()))
    is_undo: bool = False
    repeats: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[Place, str] = field(default_factory=dict)


class SavedUnit(Struct, frozen=True):
    """One unit of a conversation that can be restored: its files by name, and the name of their directory.

    ``partial``: the run did not replace the unit's other files, and they stay unchanged. ``title``: from the metadata.
    """

    conversation: str
    unit: str
    dirname: str
    files: Mapping[str, SavedFile]
    partial: bool = False
    title: str | None = None


class Restorable(Struct, frozen=True):
    """The units that a restore can write; ``notes`` name the versions that stay in the vault."""

    units: tuple[SavedUnit, ...]
    notes: tuple[Note, ...] = ()


class LaterChanges(Struct, frozen=True):
    """Later changes of a run's conversations: the newest run that ``changed`` each, and those already ``undone``.

    ``gone``: runs that can't be undone, because their checkout no longer exists. ``recovered``: the recovery that had
    restored a conversation here, and was undone. ``elsewhere``: the projects of runs in other checkouts. ``marked``:
    conversations of which a sync has changed the private mark alone, which no undo of a sync changes.
    """

    changed: Mapping[str, str]
    undone: frozenset[str]
    gone: frozenset[str] = frozenset()
    recovered: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    marked: frozenset[str] = frozenset()


def undone_runs(
    runs: Sequence[str], undoes: Mapping[str, str | None], unfinished: Collection[str] = frozenset()
) -> dict[str, str]:
    """Return the runs that were undone for a conversation, each with the run that undid it.

    ``runs`` changed the conversation, oldest first. ``undoes`` has the run that each of them undid. ``unfinished`` are
    runs that were not completed for it: an undo among them can be requested again, and does not count. An undo that was
    undone itself does not count either.
    """
    undone_by: dict[str, str] = {}
    for run in reversed(runs):
        undone = undoes[run]
        if undone is not None and run not in undone_by and run not in unfinished:
            undone_by.setdefault(undone, run)
    return undone_by


def changed_since(
    run: str,
    concerned: Mapping[str, tuple[str, ...]],
    undoes: Mapping[str, str | None],
    unfinished: Mapping[str, Collection[str]],
    reach: Mapping[str, Collection[str]] = MappingProxyType({}),
    recoveries: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> LaterChanges:
    """Return the changes of later runs for each conversation of a run.

    ``concerned`` has the later runs by conversation, oldest first. ``unfinished`` has the conversations for which a run
    was not completed. A run and its undo cancel each other out; until the undo is complete, the run counts. ``reach``:
    for runs of other checkouts, the conversations of which they changed shared data; changes in their own workspace
    alone are no obstacle. ``recoveries``: for runs that restored what was deleted here, the conversations of which they
    did nothing else; these are no obstacle either.
    """
    changed: dict[str, str] = {}
    recovered: dict[str, str] = {}
    undone = set()
    for conversation, later in concerned.items():
        undone_by = undone_runs(later, undoes, {other for other in later if conversation in unfinished.get(other, ())})
        remaining = [other for other in later if other not in undone_by and undoes[other] not in (run, *later)]
        remaining = [other for other in remaining if conversation in reach.get(other, (conversation,))]
        remaining = [other for other in remaining if conversation not in recoveries.get(other, ())]
        away = [other for other in later if other in undone_by and conversation in recoveries.get(other, ())]
        if run in undone_by:
            undone.add(conversation)
        elif remaining:
            changed[conversation] = remaining[-1]
        elif away:
            recovered[conversation] = away[-1]
    return LaterChanges(changed, frozenset(undone), recovered=recovered)

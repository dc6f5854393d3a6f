"""What is known of a run that is over, as values: the journal's and the vault's part in an undo or a restore."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.snapshot import File

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import Remembered
    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Digest, Place


class Kept(Struct, frozen=True):
    """One file as it was before a run replaced or removed it; ``vault`` is the name of its object there."""

    size: int
    mtime_ns: int
    digest: Digest
    vault: str

    def named(self, name: str) -> File:
        """Return it as a file of a copy."""
        return File(name, self.size, self.mtime_ns, self.digest)


class PastRun(Struct, frozen=True):
    """One run: the steps that were done, in order, and what was there before.

    ``kept``: the versions of each place, oldest first. ``remembered``: what was remembered before, of every
    conversation of which the run changed something. ``since``: what later runs did. ``is_undo``: it took back another.
    """

    id: str
    steps: tuple[Action, ...]
    kept: Mapping[Place, tuple[Kept, ...]] = field(default_factory=dict)
    remembered: Mapping[str, Remembered] = field(default_factory=dict)
    since: Since = field(default_factory=lambda: Since({}, frozenset()))
    is_undo: bool = False


class KeptUnit(Struct, frozen=True):
    """One unit of a conversation from the vault: its files by name, and the directory's name that they were in.

    ``partial``: its other files weren't replaced then, and stay as they are. ``title``: what metadata says.
    """

    conversation: str
    unit: str
    dirname: str
    files: Mapping[str, Kept]
    partial: bool = False
    title: str | None = None


class Since(Struct, frozen=True):
    """What came of a run's conversations later: ``changed`` by which newest run, or ``undone`` already.

    ``gone``: the runs that nothing takes back any more, as their checkout is no more.
    """

    changed: Mapping[str, str]
    undone: frozenset[str]
    gone: frozenset[str] = frozenset()


def taken_back(
    runs: Sequence[str], undoes: Mapping[str, str | None], unfinished: Collection[str] = frozenset()
) -> dict[str, str]:
    """Return which runs were taken back for a conversation, each with the run that did.

    ``runs`` are those that changed something of it, oldest first, ``undoes`` what each run took back, ``unfinished``
    those that did not come to their end for it: an undo among them can be asked for again, and has taken back nothing
    yet. Nor has one that was taken back itself.
    """
    back: dict[str, str] = {}
    for run in reversed(runs):
        undone = undoes[run]
        if undone is not None and run not in back and run not in unfinished:
            back.setdefault(undone, run)
    return back


def changed_since(
    run: str,
    concerned: Mapping[str, tuple[str, ...]],
    undoes: Mapping[str, str | None],
    unfinished: Mapping[str, Collection[str]],
    reach: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Since:
    """Return what later runs did to each conversation of a run.

    ``concerned`` are the later runs by conversation, oldest first, ``unfinished`` the conversations for which a run did
    not come to its end. A run and the undo of it cancel each other out; before that is complete, it is the run that
    counts. ``reach``: for runs of other checkouts, the conversations of which they changed what all checkouts share;
    what they did in their own workspace alone is no obstacle here.
    """
    changed: dict[str, str] = {}
    undone = set()
    for conversation, later in concerned.items():
        back = taken_back(later, undoes, {each for each in later if conversation in unfinished.get(each, ())})
        left = [each for each in later if each not in back and undoes[each] not in (run, *later)]
        left = [each for each in left if conversation in reach.get(each, (conversation,))]
        if run in back:
            undone.add(conversation)
        elif left:
            changed[conversation] = left[-1]
    return Since(changed, frozenset(undone))

"""Whose child a conversation is: a three-way question of its own (docs/design/placement.md#rule-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.model.baseline import AsideKind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Metadata, ParentKind, Partition
from reconcile.planning.rules.content import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.model.snapshot import Snapshot
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.views import SideView, View


class Parentage(Struct, frozen=True):
    """The parent that holds. ``frozen``: it is undecided (docs/design/placement.md#rule-7)."""

    parent: str | None
    frozen: bool = False


def decide_parent(view: View, verdict: Verdict | None) -> Parentage:
    """Decide the parent, given the verdict on the metadata unit (None: only one side has it).

    Changed on one side wins whatever the mtimes are; changed on both goes by the metadata's mtime, a tie to the
    store. An absent key in the store or at the workspace's top level means unchanged. A side whose metadata was decided
    against, or has lost and stays as it is (local), says nothing.
    """
    store, workspace = view.store.metadata, view.workspace.metadata
    silent = _silent(view, verdict)
    waits = verdict is not None and verdict.outcome in (Outcome.HELD, Outcome.BEHIND, Outcome.ASIDE)
    if (waits and silent is None) or (store is None and workspace is None):
        return Parentage(view.known_parent, frozen=True)
    claims = (
        (view.store, _stated(store, view.known_parent, absence=view.parent_is_known)),
        (view.workspace, _workspace_claim(view, workspace)),
    )
    said = [(side, claim) for side, claim in claims if claim.says and side is not silent]
    if view.parent_is_known:
        said = [(side, claim) for side, claim in said if claim.parent != view.base_parent]
    if not said:
        return Parentage(view.base_parent)
    _, claim = max(said, key=lambda entry: _mtime(entry[0]))  # of equal times the first, which is the store's
    return Parentage(claim.parent)


def _silent(view: View, verdict: Verdict | None) -> SideView | None:
    """Return the side that has no say in the parent."""
    if verdict is None:
        return None
    if verdict.record is not None and verdict.record.kind is AsideKind.LOCAL:
        return view.workspace
    if verdict.reason is not Reason.DECIDED:
        return None
    return view.workspace if verdict.outcome is Outcome.TO_WORKSPACE else view.store


class _Claim(Struct, frozen=True):
    """What one side says of the parent; ``says`` is False where it says nothing."""

    parent: str | None
    says: bool


def _stated(metadata: Metadata | None, known: str | None, *, absence: bool) -> _Claim:
    """Read a claim; ``absence``: an absent key stands for the known parent, else it says nothing."""
    if metadata is None or metadata.parent.kind is ParentKind.UNREADABLE:
        return _Claim(known, says=False)
    if metadata.parent.kind is ParentKind.ABSENT:
        return _Claim(known, says=absence)
    return _Claim(metadata.parent.id, says=True)


def _workspace_claim(view: View, metadata: Metadata | None) -> _Claim:
    if metadata is not None and metadata.parent.kind is ParentKind.ABSENT and _roots_by_absence(view):
        return _Claim(None, says=True)
    return _stated(metadata, view.base_parent, absence=False)


def _roots_by_absence(view: View) -> bool:
    """Tell whether an absent key makes a root: in a nested copy that is in sync (docs/design/placement.md#rule-2)."""
    unit = view.workspace.units.get(METADATA)
    return (
        unit is not None
        and unit.copy.container is not None
        and view.agreed is not None
        and unit.digest == view.agreed.units.get(METADATA)
    )


def _mtime(side: SideView) -> int:
    return side.units[METADATA].mtime_ns


def states(metadata: Metadata, parent: str | None) -> bool:
    """Tell whether a metadata file may stay as it is: it says that the conversation has this parent, or something that
    nobody can read, which is somebody's and is left alone.
    """
    return metadata.parent.kind is ParentKind.UNREADABLE or metadata.parent.id == parent


def stated_alone(store: Snapshot, workspace: Snapshot, conversations: Collection[str]) -> dict[str, str]:
    """Return the parents that only the store's metadata states, which has them no more once the workspace's is copied
    over it: whoever comes after a kill must know them.
    """
    stated: dict[str, set[str | None]] = {}
    for copy in store.copies:
        if copy.partition is Partition.TRASH:
            continue
        said = copy.metadata.parent if isinstance(copy.metadata, Metadata) else None
        if copy.conversation in conversations and said is not None and said.kind is not ParentKind.ABSENT:
            stated.setdefault(copy.conversation, set()).add(said.id)
    # Of several directories that state several, the plan has decided which one holds.
    found = {key: parent for key, (parent, *others) in stated.items() if parent is not None and not others}
    for copy in workspace.copies:
        if isinstance(copy.metadata, Metadata) and copy.metadata.parent.kind is not ParentKind.ABSENT:
            found.pop(copy.conversation, None)
    return found

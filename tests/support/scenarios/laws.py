"""What holds for every plan (docs/design/invariants.md): checked after each command on the pure level."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.hashing import digest
from reconcile.model.baseline import IntentKind
from reconcile.model.names import CHILDREN
from reconcile.model.plan import Kind
from reconcile.model.policy import RestoreRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Metadata, Partition, Side
from reconcile.planning.simulate import listing_of, simulate
from tests.support.scenarios.notation import written
from tests.support.scenarios.plan_execution import blobs_of, inside, is_directory_removal
from tests.support.scenarios.trees import Blob, Folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.model.baseline import Baseline
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Snapshot
    from tests.support.scenarios.plan_execution import Trees
    from tests.support.scenarios.trees import Tree

_SAVES = (Kind.COPY, Kind.FORK)
_JUDGED = (Reason.UNITED, Reason.NEWER_STORE, Reason.NEWER_WORKSPACE, Reason.TIE, Reason.PREFERRED)
_KEYS_OF_JP = frozenset(("title", "last_activated_at", "pinned_at", "archived_at", "expires_at", "labels"))
_DECIDED_OTHERWISE = {"parent_id", "last_activated_at"}
_WHOLE = ("metadata.json", "events.json")
_NUMBERED = re.compile(r"(?:^|/)(\d+)(?=[-/])")


@dataclass(frozen=True, slots=True)
class Carried:
    """A plan, and what it was made from and has led to."""

    plan: Plan
    store: Snapshot
    workspace: Snapshot
    baseline: Baseline
    before: Trees
    after: Trees


def check_laws(run: Carried) -> None:
    """Check every law that a single plan can break."""
    if not isinstance(run.plan.policy.request, UndoRequest | RestoreRequest):
        _check_order(run.plan)
    _check_local(run)
    _check_removals(run)
    _check_census(run)
    _check_needless(run)
    _check_edits(run)


def numbers_in(trees: Iterable[Tree | None]) -> set[str]:
    """Return the numbers of the conversations of which any of these sides has a file."""
    files = (path for tree in trees for path, entry in (tree or {}).items() if not isinstance(entry, Folder))
    return {number for path in files for number in _NUMBERED.findall(path)[-1:]}


def whole_in(tree: Tree | None) -> set[str]:
    """Return the numbers of those of which a side has metadata and events: with less, no run agrees on one."""
    parts = [
        numbers_in([{path: each for path, each in (tree or {}).items() if path.endswith(f"/{name}")}])
        for name in _WHOLE
    ]
    return set.intersection(*parts)


def removed_by_hand(before: set[str], after: set[str], known: set[str]) -> set[str]:
    """Return what somebody has removed from the store: where nothing of it is left, it was lost instead.

    ``before`` are those that were whole: JP's drafts come and go. ``known`` are those that a run has agreed on: of the
    others nobody can tell that they were there.
    """
    lost = not after or (len(before & known) > 1 and (before | known).isdisjoint(after))
    return set() if lost else before - after


def check_none_lost(before: Iterable[Tree | None], after: Iterable[Tree | None], removed: Collection[str]) -> None:
    """Nothing that the store or any checkout had leaves them all, unless somebody has removed it."""
    lost = numbers_in(before) - numbers_in(after) - set(removed)
    assert not lost, f"in no checkout any more, and not in the store, though nobody removed it: {sorted(lost)}"


def _check_order(plan: Plan) -> None:
    seen: set[str] = set()
    for action in plan.actions:
        assert seen.issuperset(action.needs), f"action {action.id} needs what comes later: {action.needs}"
        seen.add(action.id)
    saves = [action for action in plan.actions if action.kind in _SAVES]
    needed = {need for action in saves for need in action.needs}
    room = [action.id for action in plan.actions if action.id in needed and action.kind is Kind.REMOVE]
    kinds = [action.kind in _SAVES for action in plan.actions if action.id not in room]
    assert kinds == sorted(kinds, reverse=True), "something comes before a save, and makes no room for it"


def _check_local(run: Carried) -> None:
    """A local conversation is never written into a workspace."""
    local = {
        copy.conversation
        for copy in run.store.copies
        if isinstance(copy.metadata, Metadata)
        and copy.metadata.local
        and copy.partition is not Partition.TRASH
        and not run.baseline.intents.get(copy.conversation)
    }
    local |= {key for key, intent in run.baseline.intents.items() if intent.kind is IntentKind.LOCAL}
    local -= {key for key, before in run.plan.remembered if before.intent is None}
    local -= {key for key, intent in run.plan.intents if intent is not None and intent.kind is IntentKind.PROJECTED}
    for action in run.plan.actions:
        published = [write for write in action.writes if write.target.side is Side.WORKSPACE]
        assert not (published and action.conversation in local), f"{action.conversation} is local: {published}"


def _check_removals(run: Carried) -> None:
    """A directory goes only when nothing of another conversation is in it any more."""
    listing = listing_of(run.store, run.workspace)
    for action in run.plan.actions:
        if is_directory_removal(action):
            start = f"{action.target.path}/{CHILDREN}/"
            left = [str(place) for place in inside(action.target, listing) if place.path.startswith(start)]
            assert not left, f"action {action.id} would remove {left}"
        listing = simulate(replace(run.plan, actions=(action,)), listing)


def _check_census(run: Carried) -> None:
    """Every content that was on a side is on a side, or is kept because the plan names it."""
    kept = {digest(content) for content in blobs_of(run.after).values()}
    kept |= {version.digest for version in run.plan.preserve}
    for action in run.plan.actions:
        replaced = {write.target for write in action.writes} | set(action.removes)
        for expect in action.expect:
            gone = expect.place in replaced or (is_directory_removal(action) and expect in action.inside)
            if gone and expect.digest is not None:
                kept.add(expect.digest)
    known = listing_of(run.store, run.workspace)
    lost = [
        str(place) for place, content in blobs_of(run.before).items() if digest(content) not in kept and place in known
    ]
    assert not lost, f"content that is nowhere afterwards: {lost}"


def _check_needless(run: Carried) -> None:
    """No action writes what is there already."""
    listing = listing_of(run.store, run.workspace)
    for action in run.plan.actions:
        after = simulate(replace(run.plan, actions=(action,)), listing)
        assert after != listing, f"action {action.id} changes nothing: {action}"
        listing = after


def _check_edits(run: Carried) -> None:
    """An edit of a key on one side stays, unless the same key was edited on the other side."""
    for action in run.plan.actions:
        if action.unit != METADATA or action.case != 15 or action.reason not in _JUDGED:
            continue
        agreed, number = run.baseline.agreed[action.conversation].units[METADATA], _number_of(action.conversation)
        base = run.baseline.contents.get((action.conversation, agreed))
        store, workspace = (_only_metadata(run.before[side], number) for side in Side)
        after = _only_metadata(run.after[action.target.side], number)
        known, stored, here, merged = (_as_jp_writes_it(content) for content in (base, store, workspace, after))
        if known is not None and stored is not None and here is not None:
            assert merged is not None, f"{number}: the merged metadata isn't as JP writes it"
            for key in (known.keys() | stored.keys() | here.keys()) - _DECIDED_OTHERWISE:
                found, right = merged.get(key), _rightful(key, *(each.get(key) for each in (known, stored, here)))
                assert found in right, f"{number}: {key} is {found!r}, expected one of {right}"


def _number_of(conversation: str) -> str:
    return conversation.removeprefix("jp-c")


def _only_metadata(tree: Tree | None, number: str) -> bytes | None:
    """Return the metadata of a conversation with one directory on a side."""
    paths = [
        path for path in tree or {} if path.endswith("/metadata.json") and _NUMBERED.findall(path)[-1:] == [number]
    ]
    entry = tree[paths[0]] if tree is not None and len(paths) == 1 else None
    return entry.content if isinstance(entry, Blob) else None


def _as_jp_writes_it(content: bytes | None) -> dict[str, object] | None:
    try:
        value = json.loads(content or b"")
    except ValueError:
        return None
    return value if isinstance(value, dict) and written(value) == content else None


def _rightful(key: str, base: object, store: object, workspace: object) -> list[object]:
    """Return the values that a key may have after a merge."""
    if store == base:
        return [workspace]
    if workspace == base:
        return [store]
    if key not in _KEYS_OF_JP and None in (store, workspace):  # stripped by JP
        return [workspace if store is None else store]
    return [store, workspace]

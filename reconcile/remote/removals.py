"""The removals of a sync from the store: what another machine has removed, and forks that it has sent, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import Baseline, is_local
from reconcile.model.plan import Kind
from reconcile.model.snapshot import EXTRA, WHOLE, Metadata, Partition, Side
from reconcile.model.units import units_of
from reconcile.planning.filters import renumbered
from reconcile.planning.steps.content import DIVERGED
from reconcile.remote.known import by_conversation
from reconcile.remote.tree import unit_digests

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from reconcile.apply.executor import Outcome
    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.plan import Action, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.model.units import Rules
    from reconcile.remote.known import Known
    from reconcile.remote.tree import Tombstone, Tree


def buried(session: Session, tree: Tree, before: Tree, known: Known, engine: Engine) -> list[str]:
    """Return the conversations of the store that were removed since, and that nobody has edited here.

    An older tombstone says nothing: what it names was restored since. Nor does one of a remote that a person has
    accepted as it is.
    """
    if known.accepted:
        return []
    new = [
        key
        for key, stone in tree.tombstones.items()
        if key not in tree.records
        and key not in (*known.kept, *known.shared)
        and tree.coding.key(key) not in tree.refused  # its record is there, and can't be read
        and (key in known.waiting or is_new(stone, before))
    ]
    side = engine.known.sides[Side.STORE]
    stored = by_conversation(copy for key in new for copy in side.of(key))
    there = [key for key in new if key in stored and stored[key][0].partition is Partition.LIVE]
    baseline = session.state.load(session.checkout, there) if there else Baseline()
    rules = session.rules
    going = [key for key in there if _is_unedited(stored[key], tree.tombstones[key], baseline, rules)]
    if (places := session.format.places) is None:
        return going
    if not going:
        return going
    # What belongs to a session goes with it: if any of that was edited since, the session stays.
    staying = {places.owner(key) for key in by_conversation(side.copies()) if key not in going}
    return [key for key in going if key not in staying]


def before_sync(plan: Plan, new: Container[str]) -> Plan:
    """Return the steps of a plan of removals that are done before the plan of the sync.

    The remote lacks what is removed, but children there may still name it as their parent. Children that are ``new`` to
    the store are taken as promoted, and sent. Others are promoted in the store alone, and sent as after any edit: they
    may have an edit that must not be sent yet.
    """

    def precedes(action: Action) -> bool:
        return action.target.side is Side.STORE or action.conversation in new

    later = [action.conversation for action in plan.actions if not precedes(action)]
    return replace(plan, actions=renumbered(filter(precedes, plan.actions)), put_off=plan.put_off.union(later))


def done(going: Iterable[str], plan: Plan, outcome: Outcome | None) -> dict[str, bool]:
    """Return of each conversation whether a plan has removed all its directories; of a dry run: whether it would."""
    results = {} if outcome is None else outcome.results
    removing = [action for action in plan.actions if action.kind is Kind.REMOVE and action.unit == WHOLE]
    left = {action.conversation for action in removing if action.id in results and not results[action.id].is_done}
    removed = {action.conversation for action in removing} - left
    return {key: key in removed for key in going}


def twins(session: Session, policy: Policy, tree: Tree, before: Tree, known: Known, engine: Engine) -> dict[str, str]:
    """Return the forks that only this machine has, each with the same one that another machine has sent.

    Both have replaced the same version of the store. A fork that was used here since stays: one that was published,
    has children, or was made private. Nothing is removed after a person has accepted the remote as it is.
    """
    stored, there = engine.known.sides[Side.STORE], engine.known.sides[Side.WORKSPACE]
    new = {
        fork: key
        for key in tree.records.keys() - before.records.keys() - set(known.kept)
        for copy in there.of(key)
        if not stored.of(key) and (fork := _as_fork(copy)) is not None
    }
    if not new or policy.only or known.accepted:
        return {}
    # Both trees may be parts: the state tells what was in sync before, also with another remote.
    synced = {*tree.records, *tree.tombstones, *before.records, *known.kept, *known.shared}
    copies, intents = list(stored.copies()), session.state.intents(session.checkout)
    used = {copy.metadata.parent.id for copy in copies if isinstance(copy.metadata, Metadata)}
    return {
        copy.conversation: new[fork]
        for copy in copies
        if (fork := _as_fork(copy)) is not None
        and fork in new
        and copy.conversation not in synced | used
        and is_local(intents.get(copy.conversation)) == tree.records[new[fork]].local
        and not session.state.is_synced(copy.conversation)
        and not session.state.projects_with(copy.conversation)
    }


def is_new(stone: Tombstone, before: Tree) -> bool:
    """Tell whether a removal came after a tree. A private mark that was added to the tombstone is none."""
    known = before.tombstones.get(stone.id)
    return known is None or replace(known, local=stone.local) != stone


def _is_unedited(copies: Sequence[Copy], stone: Tombstone, baseline: Baseline, rules: Rules) -> bool:
    """Tell whether a conversation is as it was removed elsewhere, or as the last sync has left it.

    An interrupted sync, or git, may have brought a later version of the other machines. If it was never synced here,
    any time before its removal counts, unless this machine had it as it was removed.
    """
    if [_digests(copy) for copy in copies] == [dict(stone.files)]:
        return True
    if len(copies) != 1:
        return False
    units = {name: unit.digest for name, unit in units_of(copies[0], rules, baseline.parents.get(stone.id)).items()}
    if (agreed := baseline.agreed.get(stone.id)) is not None:
        return units.keys() == agreed.units.keys() and all(
            digest == agreed.units[name] or digest in _later(agreed.units[name], stone.seen)
            for name, digest in units.items()
        )
    last = set(unit_digests(stone.files, rules.format))
    for name, digest in units.items():
        if name.startswith(EXTRA):
            is_known = digest == stone.files.get(name.removeprefix(EXTRA))
        else:
            had_it = not last.isdisjoint(baseline.history.get((stone.id, name), ()))
            is_known = digest in last or (digest in stone.seen and not had_it)
        if not is_known:
            return False
    return all(name in units for name in rules.format.required)


def _later(digest: str, seen: Sequence[str]) -> Sequence[str]:
    """Return the versions after one; none if it is unknown."""
    return seen[seen.index(digest) + 1 :] if digest in seen else ()


def _digests(copy: Copy) -> dict[str, str | None]:
    return {file.name: file.digest for file in copy.files}


def _as_fork(copy: Copy) -> tuple[str, frozenset[tuple[str, str | None]]] | None:
    """Return the source and the files of a fork that a run has made; None for another conversation."""
    described = copy.metadata
    if copy.partition is not Partition.LIVE or not isinstance(described, Metadata) or described.parent.id is None:
        return None
    if not (described.title or "").startswith(DIVERGED):
        return None
    return described.parent.id, frozenset(_digests(copy).items())

"""What is remembered between the commands of a scenario, without a state on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from reconcile.model.baseline import LOST, Baseline, Intent, IntentKind
from reconcile.planning.baseline_update import Changes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.baseline import ConversationRecord
    from reconcile.model.snapshot import Digest

K = TypeVar("K")
V = TypeVar("V")

_NOTHING = Baseline()


@dataclass(slots=True)
class Memories:
    """One memory for each checkout; history, parents, tombstones and ``local`` are common to all of them."""

    history: dict[tuple[str, str], tuple[Digest, ...]] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    tombstones: dict[str, frozenset[Digest]] = field(default_factory=dict)
    local: dict[str, Intent] = field(default_factory=dict)
    own: dict[str, Baseline] = field(default_factory=dict)
    """By workspace, what only that checkout knows."""
    contents: dict[tuple[str, Digest], bytes] = field(default_factory=dict)
    wiped: dict[str, tuple[Baseline, ...]] = field(default_factory=dict)
    """By workspace, what checkouts knew that were at that path before, the newest first."""

    def of(self, workspace: str) -> Baseline:
        """Return all that is known in one checkout."""
        return self._whole(self.own.get(workspace, _NOTHING))

    def records(self, workspace: str) -> tuple[Baseline, ...]:
        """Return what every checkout knew that is or was at that path."""
        return tuple(self._whole(own) for own in (self.own.get(workspace, _NOTHING), *self.wiped.get(workspace, ())))

    def wipe(self, workspace: str) -> None:
        """Have the next workspace of that name be another checkout."""
        self.wiped[workspace] = (self.own.pop(workspace, _NOTHING), *self.wiped.get(workspace, ()))

    def _whole(self, own: Baseline) -> Baseline:
        return replace(
            own,
            checkout_known=own.layout is not None or bool(own.agreed),
            intents={**own.intents, **self.local},
            history=dict(self.history),
            parents=dict(self.parents),
            tombstones=dict(self.tombstones),
            contents=dict(self.contents),
        )

    def remember(self, workspace: str, changes: Changes, run: str | None = None, brought: Collection[str] = ()) -> None:
        """Take in what a run has changed; new intents say which one it was. ``brought``: see `BaselineUpdate`."""
        others = {name: each for name, each in self.own.items() if name != workspace}
        believing = [each for each in others.values() if each.store_identity not in (None, LOST)]
        unremoved = set(brought) - self.tombstones.keys()
        if changes.store_lost or any(not each.agreed.keys().isdisjoint(unremoved) for each in believing):
            for name, each in others.items():
                if each.agreed.keys() - self.tombstones.keys():
                    self.own[name] = replace(each, store_identity=each.store_identity and LOST)
        own = self.own.get(workspace, _NOTHING)
        new = {key: each and replace(each, run=each.run or run) for key, each in changes.intents.items()}
        intents = _updated(own.intents, new)
        for conversation, intent in changes.intents.items():
            self.local.pop(conversation, None)
            if intent is not None and intent.kind is IntentKind.LOCAL:
                self.local[conversation] = intents.pop(conversation)
        self.own[workspace] = replace(
            own,
            layout=changes.layout or own.layout,
            store_identity=changes.store_identity or own.store_identity,
            agreed=_updated(own.agreed, changes.agreed),
            intents=intents,
            asides=_updated(own.asides, changes.asides),
            waiting=_updated(own.waiting, changes.waiting),
        )
        self.contents.update(changes.contents)
        for key, newest in changes.history.items():
            older = tuple(digest for digest in self.history.get(key, ()) if digest != newest)
            self.history[key] = (*older, newest)
        self.parents.update(changes.parents)
        for conversation, digests in changes.tombstones.items():
            if digests is None:
                self.tombstones.pop(conversation, None)
            else:
                self.tombstones[conversation] = self.tombstones.get(conversation, frozenset()) | set(digests)

    def put_back(self, workspace: str, again: Mapping[str, ConversationRecord]) -> None:
        """Have what was remembered before a run hold again."""
        own = self.own.get(workspace, _NOTHING)
        asides = {key: record for key, record in own.asides.items() if key[0] not in again}
        asides |= {(key, unit): record for key, each in again.items() for unit, record in each.asides.items()}
        self.own[workspace] = replace(own, asides=asides)
        for key, each in again.items():
            self.parents.pop(key, None)
            self.tombstones.pop(key, None)
            if each.parent_known:
                self.parents[key] = each.parent
            if each.tombstone:
                self.tombstones[key] = each.tombstone
        changes = Changes(
            agreed={key: each.agreed for key, each in again.items()},
            intents={key: each.intent for key, each in again.items()},
        )
        self.remember(workspace, changes)

    def copy(self) -> Memories:
        """Return memories of their own, to go on from."""
        return Memories(*(dict(table) for table in self._tables))

    def forget(self) -> None:
        """Lose everything, as when the state's directory is deleted."""
        for table in self._tables:
            table.clear()

    @property
    def _tables(self) -> tuple[dict[Any, Any], ...]:
        return (self.history, self.parents, self.tombstones, self.local, self.own, self.contents, self.wiped)


def _updated(before: Mapping[K, V], changes: Mapping[K, V | None]) -> dict[K, V]:
    after = {key: value for key, value in before.items() if key not in changes}
    return after | {key: value for key, value in changes.items() if value is not None}

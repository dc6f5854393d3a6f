"""The executor: carries out a plan, and says of each action what became of it.

For each batch of conversations, under their locks, level by level: check what each action expects, put what goes into
the vault, stage what comes, flush both, publish by renames, flush the directories, journal. Where only some have locks,
each is held while what it is for is changed, and no longer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from reconcile.apply.actions import prepare
from reconcile.apply.outcome import Outcome, Result
from reconcile.apply.prefetch import staging_ahead
from reconcile.apply.staging import DriftError
from reconcile.index.adopted import are_settled
from reconcile.model.reasons import Reason
from reconcile.state.vault import VaultError

if TYPE_CHECKING:
    from reconcile.adapters.jp.locks import Locks
    from reconcile.apply.actions import Prepared
    from reconcile.apply.staging import Stage
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Plan
    from reconcile.state.vault import Version

LOCKS_AT_ONCE = 256
"""Conversations that one batch locks, unless a single subtree has more: as many as there may be open files in any case.
Each batch waits for the disk a few times, and nobody else gets at its conversations until it is done."""
_LOST = "its lock was taken away by another process"


class Journal(Protocol):
    """What the executor tells of its progress; written ahead of every change."""

    def begun(self, actions: Sequence[Action], kept: Sequence[Version]) -> None:
        """These actions are about to change files, of which the vault has these versions."""

    def ended(self, outcome: Outcome, actions: Sequence[Action]) -> None:
        """These actions have a result."""


Progress = Callable[[int, int], None]
"""Called with the actions that have a result, and all."""


class Executor(Struct, frozen=True):
    """Everything that carrying out a plan needs besides the plan."""

    stage: Stage
    locks: Locks
    format: Format
    journal: Journal
    progress: Progress

    def run(self, plan: Plan) -> Outcome:
        """Carry out the actions of a plan; errors concern single actions and never stop the rest."""
        outcome, found = Outcome(), list(batches(plan.actions))
        with staging_ahead(self.stage, found):
            for batch in found:
                for part in self._parts(batch):
                    self._run_part(part, outcome)
                self.progress(len(outcome.deeds), len(plan.actions))
        return outcome

    def _parts(self, batch: list[Action]) -> list[list[Action]]:
        """Split a batch of which only some has locks, so that these are held for no longer than that takes."""
        locked = {action.id for action in batch if self._locks_of([action])}
        if len(locked) in (0, len(batch)):
            return [batch]
        parts = []
        for level in levels(batch):
            parts += [[action for action in level if (action.id in locked) is held] for held in (False, True)]
        return [part for part in parts if part]

    def _locks_of(self, actions: Sequence[Action]) -> dict[str, list[str]]:
        """Return the locks that actions need, in their order, each with the conversations that it is for."""
        touched = {conversation for action in actions for conversation in action.touches}
        found: dict[str, list[str]] = {}
        for key in sorted(touched, key=self.format.order):
            if (name := self.format.lock_name(key)) is not None:
                found.setdefault(name, []).append(key)
        return found

    def _run_part(self, part: list[Action], outcome: Outcome) -> None:
        names = self._locks_of(part)
        with self.locks.acquire(list(names)) as acquired:
            busy = {key: each.detail for each in acquired.busy for key in names[each.name]}
            _skip_busy(part, busy, outcome)

            def skip_lost() -> None:
                _skip_busy(part, {key: _LOST for name in acquired.lost() for key in names[name]}, outcome)

            for level in levels(part):
                self._run_level(level, skip_lost, outcome)
                self.journal.ended(outcome, level)

    def _run_level(self, level: list[Action], skip_lost: Callable[[], None], outcome: Outcome) -> None:
        ready = self._prepare(level, outcome)
        if not ready:
            return
        try:
            kept = self.stage.flush()
        except OSError as error:
            for prepared in ready:
                outcome.fail(prepared.action, f"could not be flushed to disk: {self._words(error, prepared.action)}")
            return
        self.journal.begun([prepared.action for prepared in ready], kept)
        skip_lost()
        now_ns = time.time_ns()
        for prepared in ready:
            self._publish(prepared, now_ns, outcome)
        try:
            self.stage.flush_directories()
        except OSError as error:
            for prepared in ready:
                outcome.deeds.pop(prepared.action.id, None)
                outcome.fail(prepared.action, f"could not be flushed to disk: {self._words(error, prepared.action)}")

    def _prepare(self, level: list[Action], outcome: Outcome) -> list[Prepared]:
        """Check, save to the vault and stage; what can't be is left out with a word."""
        ready = []
        for action in level:
            self._skip_if_needed(action, outcome)
            if not outcome.is_open(action):
                continue
            try:
                ready.append(prepare(self.stage, action))
            except DriftError as drift:
                outcome.skip(action, Reason.DRIFT, str(drift))
            except OSError as error:
                outcome.fail(action, self._words(error, action))
            except VaultError as error:
                outcome.fail(action, error.message)
        return ready

    def _publish(self, prepared: Prepared, now_ns: int, outcome: Outcome) -> None:
        action = prepared.action
        self._skip_if_needed(action, outcome)
        if not outcome.is_open(action):
            return
        try:
            prepared.publish()
        except DriftError as drift:
            outcome.skip(action, Reason.DRIFT, str(drift))
        except OSError as error:
            outcome.fail(action, self._words(error, action))
        else:
            outcome.done(action)
            if prepared.made and are_settled(prepared.made, now_ns):
                outcome.made[action.id] = prepared.made

    def _words(self, error: OSError, action: Action) -> str:
        """The system's words, with the path that it named; else with that of what was to be written."""
        if not error.strerror:
            return str(error)
        named = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
        target = self.stage.roots[action.target.side].absolute(action.target.path)
        return f"{named if os.path.isabs(named) else target}: {error.strerror}"

    @staticmethod
    def _skip_if_needed(action: Action, outcome: Outcome) -> None:
        """Skip what needed something that was not done, and the rest of a conversation that drifted."""
        for need in action.needs:
            deed = outcome.deeds.get(need)
            if deed is not None and deed.result is not Result.DONE:
                what = f"{deed.action.kind} {deed.action.target}"
                outcome.skip(action, Reason.NEEDS_SKIPPED, f"needed {what}: {deed.message}")
                return
        if action.conversation in outcome.drifted:
            outcome.skip(action, Reason.DRIFT, outcome.drifted[action.conversation])


def _skip_busy(batch: Sequence[Action], busy: Mapping[str, str], outcome: Outcome) -> None:
    """Skip what may not be done to conversations that somebody else is at, and all that goes together with it."""
    groups: dict[str | None, str] = {
        action.together: busy[key]
        for action in batch
        for key in action.touches
        if action.together is not None and key in busy
    }
    for action in batch if busy else ():
        words = next((busy[key] for key in action.touches if key in busy), groups.get(action.together))
        if words is not None:
            outcome.skip(action, Reason.BUSY, words)


def batches(actions: Sequence[Action]) -> Iterator[list[Action]]:
    """Yield the actions in batches: what needs each other, or concerns the same conversation, stays together."""
    groups = _components(actions)
    batch: list[Action] = []
    locks: set[str] = set()
    for group in groups:
        touched = {conversation for action in group for conversation in action.touches}
        if batch and len(locks | touched) > LOCKS_AT_ONCE:
            yield batch
            batch, locks = [], set()
        batch += group
        locks |= touched
    if batch:
        yield batch


def _components(actions: Sequence[Action]) -> list[list[Action]]:
    """Group the actions by what they need and whom they touch, in the order of the first of each."""
    leader: dict[str, str] = {}

    def find(key: str) -> str:
        root = key
        while leader.setdefault(root, root) != root:
            root = leader[root]
        while leader[key] != root:
            leader[key], key = root, leader[key]
        return root

    for action in actions:
        own = find(f"#{action.id}")
        named = () if action.together is None else (f"&{action.together}",)
        for key in (*(f"#{need}" for need in action.needs), *action.touches, *named):
            leader[find(key)] = own
    groups: dict[str, list[Action]] = {}
    for action in actions:
        groups.setdefault(find(f"#{action.id}"), []).append(action)
    return list(groups.values())


def levels(batch: Sequence[Action]) -> list[list[Action]]:
    """Split a batch so that everything an action needs is in an earlier level."""
    level: dict[str, int] = {}
    found: list[list[Action]] = []
    for action in batch:
        at = 1 + max((level.get(need, -1) for need in action.needs), default=-1)
        level[action.id] = at
        if at == len(found):
            found.append([])
        found[at].append(action)
    return found

"""The executor: carries out a plan and returns the `Outcome`, the result of each action.

It takes the locks of a batch of conversations, and then works level by level. A level has these steps: check the
preconditions, save the old files to the vault, stage the new ones, flush both, publish by renames, flush the
directories, journal. If only some conversations of a batch have locks, each lock is held only for its own changes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from errno import errorcode
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from reconcile.adapters.jp.locks import Busy
from reconcile.apply.actions import prepare
from reconcile.apply.prefetch import prefetching
from reconcile.apply.staging import DriftError
from reconcile.index.rows import are_racy_safe
from reconcile.model.reasons import Reason
from reconcile.state.vault import VaultError

if TYPE_CHECKING:
    from reconcile.adapters.jp.locks import Locks
    from reconcile.apply.actions import Prepared
    from reconcile.apply.staging import Stage
    from reconcile.index.rows import Files
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Plan
    from reconcile.state.vault import Version


class Result(StrEnum):
    """The result of an action."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class ActionResult(Struct, frozen=True):
    """One action and its result; ``reason`` and ``message`` explain why it was not done.

    ``errno``: the system's error, if one is the cause.
    """

    action: Action
    result: Result
    reason: Reason | None = None
    message: str = ""
    errno: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether the action was carried out."""
        return self.result is Result.DONE


class Outcome(Struct):
    """The results of a run, in the order of the plan's actions once it is complete."""

    run: str | None = None
    results: dict[str, ActionResult] = field(default_factory=dict)
    drifted: dict[str, str] = field(default_factory=dict)
    """Conversations that differ from the plan, with the message."""
    new_files: dict[str, Files] = field(default_factory=dict)
    """By action, the files of a new directory with their fingerprints after writing; later writes change these."""
    left_open: bool = False
    """Whether files of the run could not be cleaned up: it stays open, and the next run tries again."""
    message: str | None = None
    """The reason why files of the run could not be cleaned up."""
    unrecorded: list[Action] = field(default_factory=list)
    """The actions whose results the journal does not have yet."""
    unsettled: set[str] = field(default_factory=set)
    """The ids of the actions that were carried out, but may not be on the disk: the run stays open for them."""
    known_clean: Collection[str] = ()
    """The conversations that the new baseline shows to be clean, so that they need not be classified again."""

    def done(self, action: Action) -> None:
        """Record that an action was carried out."""
        self.results[action.id] = ActionResult(action, Result.DONE)

    def skip(self, action: Action, reason: Reason, message: str, errno: int | None = None) -> None:
        """Record that an action was skipped for a reason that is no failure."""
        self.results.setdefault(action.id, ActionResult(action, Result.SKIPPED, reason, message, errno))
        if reason is Reason.DRIFT:
            self.drifted.setdefault(action.conversation, message)

    def fail(self, action: Action, message: str, errno: int | None = None) -> None:
        """Record that an action failed."""
        self.results.setdefault(action.id, ActionResult(action, Result.FAILED, Reason.FAILED, message, errno))

    def is_open(self, action: Action) -> bool:
        """Tell whether an action has no result yet."""
        return action.id not in self.results

    def count(self, result: Result) -> int:
        """Return the number of actions with this result."""
        return sum(entry.result is result for entry in self.results.values())

    def undone(self) -> frozenset[str]:
        """Return the ids of the actions that were not carried out."""
        return frozenset(key for key, entry in self.results.items() if entry.result is not Result.DONE)

    def to_json(self) -> dict[str, Any]:
        """Return the results as JSON for the output of a plan (docs/json.md#a-plan)."""
        results = [
            {
                "id": key,
                "result": entry.result.value,
                "reason": entry.reason.value if entry.reason else None,
                "message": entry.message,
                "errno": None if entry.errno is None else errorcode.get(entry.errno, str(entry.errno)),
            }
            for key, entry in self.results.items()
        ]
        return {"run": self.run, "results": results}


LOCKS_AT_ONCE = 256
"""Conversations that one batch locks, unless a single subtree has more. Every system allows so many open files. A
larger batch waits for the disk less often, and keeps its conversations locked for longer."""
_LOST = "another process took over its lock"


class Journal(Protocol):
    """Receives the progress of the executor, ahead of every change."""

    def begun(self, outcome: Outcome, actions: Sequence[Action], kept: Sequence[Version]) -> None:
        """Record the results so far, and that these actions are about to change files.

        The vault has these versions of them.
        """

    def ended(self, outcome: Outcome) -> None:
        """Record the results so far."""


Progress = Callable[[int, int], None]
"""A function that is called with the number of results and the number of actions."""


class Executor(Struct, frozen=True):
    """The environment in which a plan is carried out."""

    stage: Stage
    locks: Locks
    format: Format
    journal: Journal
    progress: Progress

    def run(self, plan: Plan) -> Outcome:
        """Carry out the actions of a plan. An error concerns one action and what needs it; the rest goes on."""
        outcome, all_batches = Outcome(), list(batches(plan.actions))
        with prefetching(self.stage, all_batches):
            for batch in all_batches:
                for part in self._parts(batch):
                    self._run_part(part, outcome)
                self.progress(len(outcome.results), len(plan.actions))
        return outcome

    def _parts(self, batch: list[Action]) -> list[list[Action]]:
        """Split a batch in which only some actions need locks, so that these are held for as short as possible."""
        locked = {action.id for action in batch if self._locks_of([action])}
        if len(locked) in (0, len(batch)):
            return [batch]
        parts = []
        for level in levels(batch):
            parts += [[action for action in level if (action.id in locked) is held] for held in (False, True)]
        return [part for part in parts if part]

    def _locks_of(self, actions: Sequence[Action]) -> dict[str, list[str]]:
        """Return the locks that actions need, in the order of taking them, each with its conversations."""
        touched = {conversation for action in actions for conversation in action.touches}
        locks: dict[str, list[str]] = {}
        for key in sorted(touched, key=self.format.order):
            if (name := self.format.lock_name(key)) is not None:
                locks.setdefault(name, []).append(key)
        return locks

    def _run_part(self, part: list[Action], outcome: Outcome) -> None:
        names = self._locks_of(part)
        with self.locks.acquire(list(names)) as acquired:
            busy = {key: lock for lock in acquired.busy for key in names[lock.name]}
            _skip_busy(part, busy, outcome)

            def skip_lost() -> None:
                lost = {key: Busy(name, None, _LOST) for name in acquired.lost() for key in names[name]}
                _skip_busy(part, lost, outcome)

            for level in levels(part):
                self._run_level(level, skip_lost, outcome)
                # The next level records it, or the end of the run if the lock is held that long.
                outcome.unrecorded += level
            if not acquired.are_lent:
                self.journal.ended(outcome)

    def _run_level(self, level: list[Action], skip_lost: Callable[[], None], outcome: Outcome) -> None:
        ready = self._prepare(level, outcome)
        if not ready:
            return
        try:
            kept = self.stage.flush()
        except OSError as error:
            for prepared in ready:
                self._fail_to_flush(prepared.action, error, outcome)
            return
        self.journal.begun(outcome, [prepared.action for prepared in ready], kept)
        skip_lost()
        now_ns = time.time_ns()
        for prepared in ready:
            self._publish(prepared, now_ns, outcome)
        try:
            self.stage.flush_directories()
        except OSError as error:
            for action in [prepared.action for prepared in ready]:
                if outcome.results[action.id].result is Result.DONE:
                    del outcome.results[action.id]
                    self._fail_to_flush(action, error, outcome)
                    outcome.unsettled.add(action.id)

    def _prepare(self, level: list[Action], outcome: Outcome) -> list[Prepared]:
        """Check, save and stage a level; an action that fails gets its result and is left out."""
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
                outcome.fail(action, self._words(error, action), error.errno)
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
            outcome.fail(action, self._words(error, action), error.errno)
        else:
            outcome.done(action)
            if prepared.files and are_racy_safe(prepared.files, now_ns):
                outcome.new_files[action.id] = prepared.files

    def _fail_to_flush(self, action: Action, error: OSError, outcome: Outcome) -> None:
        outcome.fail(action, f"can't be flushed to disk: {self._words(error, action)}", error.errno)

    def _words(self, error: OSError, action: Action) -> str:
        """Return the system's text with the path of the error, or with that of the action's target."""
        if not error.strerror:
            return str(error)
        named = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
        target = self.stage.roots[action.target.side].absolute(action.target.path)
        return f"{named if os.path.isabs(named) else target}: {error.strerror}"

    @staticmethod
    def _skip_if_needed(action: Action, outcome: Outcome) -> None:
        """Skip an action that needs one that was not done, or whose conversation differs from the plan."""
        for need in action.needs:
            entry = outcome.results.get(need)
            if entry is not None and entry.result is not Result.DONE:
                what = f"{entry.action.kind} {entry.action.target}"
                outcome.skip(action, Reason.NEEDS_SKIPPED, f"needs {what}: {entry.message}", entry.errno)
                return
        if action.conversation in outcome.drifted:
            outcome.skip(action, Reason.DRIFT, outcome.drifted[action.conversation])


def _skip_busy(batch: Sequence[Action], busy: Mapping[str, Busy], outcome: Outcome) -> None:
    """Skip the actions of locked conversations, with all actions that belong together with them."""
    groups: dict[str | None, Busy] = {
        action.together: busy[key]
        for action in batch
        for key in action.touches
        if action.together is not None and key in busy
    }
    for action in batch if busy else ():
        lock = next((busy[key] for key in action.touches if key in busy), groups.get(action.together))
        if lock is not None:
            outcome.skip(action, Reason.BUSY, lock.detail, lock.errno)


def batches(actions: Sequence[Action]) -> Iterator[list[Action]]:
    """Yield the actions in batches; actions that need each other or share a conversation are in one batch."""
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
    """Group the actions by their needs and conversations, in the order of the first action of each group."""
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
    """Split a batch into levels, so that each action needs only actions of earlier levels."""
    level: dict[str, int] = {}
    split: list[list[Action]] = []
    for action in batch:
        at = 1 + max((level.get(need, -1) for need in action.needs), default=-1)
        level[action.id] = at
        if at == len(split):
            split.append([])
        split[at].append(action)
    return split

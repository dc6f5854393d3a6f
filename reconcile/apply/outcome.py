"""The results of a plan's actions: what was achieved, not what was planned."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconcile.model.reasons import Reason

if TYPE_CHECKING:
    from reconcile.index.rows import Files
    from reconcile.model.plan import Action


class Result(StrEnum):
    """The result of an action."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class ActionResult(Struct, frozen=True):
    """One action and its result; ``reason`` and ``message`` explain why it was not done."""

    action: Action
    result: Result
    reason: Reason | None = None
    message: str = ""

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

    def done(self, action: Action) -> None:
        """Record that an action was carried out."""
        self.results[action.id] = ActionResult(action, Result.DONE)

    def skip(self, action: Action, reason: Reason, message: str) -> None:
        """Record that an action was skipped for a reason that is no failure."""
        self.results.setdefault(action.id, ActionResult(action, Result.SKIPPED, reason, message))
        if reason is Reason.DRIFT:
            self.drifted.setdefault(action.conversation, message)

    def fail(self, action: Action, message: str) -> None:
        """Record that an action failed."""
        self.results.setdefault(action.id, ActionResult(action, Result.FAILED, Reason.FAILED, message))

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
            }
            for key, entry in self.results.items()
        ]
        return {"run": self.run, "results": results}

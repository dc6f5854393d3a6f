"""What became of each action of a plan: what was achieved, not what was meant."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconcile.model.reasons import Reason

if TYPE_CHECKING:
    from reconcile.index.adopted import Files
    from reconcile.model.plan import Action


class Result(StrEnum):
    """How far an action came."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class Deed(Struct, frozen=True):
    """One action and its result; ``reason`` and ``message`` say why it was not done."""

    action: Action
    result: Result
    reason: Reason | None = None
    message: str = ""

    @property
    def is_done(self) -> bool:
        """The action was carried out."""
        return self.result is Result.DONE


class Outcome(Struct):
    """The results of a run, in the order of the plan's actions once it is complete."""

    run: str | None = None
    deeds: dict[str, Deed] = field(default_factory=dict)
    drifted: dict[str, str] = field(default_factory=dict)
    """Conversations of which something was not as planned, with the words."""
    made: dict[str, Files] = field(default_factory=dict)
    """By action, the files of a directory that is new, as they were written; a later write to them would show."""
    left_open: bool = False
    """Something of ours could not be cleaned up: the run stays open, and the next one tries again."""

    def done(self, action: Action) -> None:
        """Note that an action was carried out."""
        self.deeds[action.id] = Deed(action, Result.DONE)

    def skip(self, action: Action, reason: Reason, message: str) -> None:
        """Note that an action was not carried out, for a reason that is no failure of ours."""
        self.deeds.setdefault(action.id, Deed(action, Result.SKIPPED, reason, message))
        if reason is Reason.DRIFT:
            self.drifted.setdefault(action.conversation, message)

    def fail(self, action: Action, message: str) -> None:
        """Note that an action failed."""
        self.deeds.setdefault(action.id, Deed(action, Result.FAILED, Reason.FAILED, message))

    def is_open(self, action: Action) -> bool:
        """Tell whether nothing has become of an action yet."""
        return action.id not in self.deeds

    def count(self, result: Result) -> int:
        """Return how many actions had this result."""
        return sum(deed.result is result for deed in self.deeds.values())

    def undone(self) -> frozenset[str]:
        """Return the ids of the actions that were not carried out."""
        return frozenset(key for key, deed in self.deeds.items() if deed.result is not Result.DONE)

    def to_json(self) -> dict[str, Any]:
        """Return what became of each action, as it is published with a plan (docs/json.md#a-plan)."""
        results = [
            {
                "id": key,
                "result": deed.result.value,
                "reason": deed.reason.value if deed.reason else None,
                "message": deed.message,
            }
            for key, deed in self.deeds.items()
        ]
        return {"run": self.run, "results": results}

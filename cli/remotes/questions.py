"""The questions of a sync: which machine's version of each conflict is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.options import Take

from ..output.conflict_questions import IN_SYNC, ask_about_conflicts
from ..run import undecided

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.engine.engine import Engine, Pass
    from reconcile.model.plan import Conflict
    from reconcile.model.policy import Policy

    from ..arguments import Options


class Questions:
    """Asks about the conflicts of a sync. After a lost race, only about those that have changed since."""

    def __init__(self, options: Options) -> None:
        """Prepare; the sync is at a terminal."""
        self._options = options
        self._answered: dict[tuple[str, str], tuple[Conflict, Take | None]] = {}

    def __call__(self, engine: Engine, pass_: Pass, policy: Policy, wrong: Collection[str]) -> Policy:
        """Return the policy with the answers about the conflicts of a pass. ``q`` ends the command.

        ``wrong``: the conversations whose version of the other machine has the time of a wrong clock.
        """
        conflicts = {(each.conversation, each.unit): each for each in undecided(pass_.plan, self._options)}
        known = {key: self._answered[key][1] for key, each in conflicts.items() if self._knows(key, each)}
        policy = replace(policy, choices={key: take for key, take in known.items() if take is not None})
        new = [each for key, each in conflicts.items() if key not in known]
        if new:
            policy = ask_about_conflicts(engine, pass_, policy, self._options, new, IN_SYNC._replace(wrong=wrong))
        self._answered |= {key: (each, policy.choices.get(key)) for key, each in conflicts.items()}
        return policy

    @property
    def kept_here(self) -> int:
        """The number of conflicts for which this machine's version was chosen, be it as the newer one."""
        chosen = (take or conflict.takes for conflict, take in self._answered.values())
        return sum(each is not None and each.value == Take.STORE.value for each in chosen)

    def _knows(self, key: tuple[str, str], conflict: Conflict) -> bool:
        return key in self._answered and self._answered[key][0] == conflict

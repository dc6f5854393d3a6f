"""The decisions of a walk, and the policy that they make of the plan's own: a value, without any view."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.options import Take
from reconcile.model.policy import NO_CONVERSATION, ProjectRequest
from reconcile.model.snapshot import WHOLE, Side

from .subjects import Choice, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy

    from .subjects import Key

_TAKES = {
    Choice.STORE: Take.STORE,
    Choice.WORKSPACE: Take.WORKSPACE,
    Choice.BOTH: Take.BOTH,
    Choice.STORE_ALONE: Take.STORE,
    Choice.WORKSPACE_ALONE: Take.WORKSPACE,
    Choice.SKIP: Take.KEEP,
    Choice.HOLD: Take.KEEP,
}
_SIDES: Mapping[Choice | None, Side] = {
    Choice.STORE: Side.STORE,
    Choice.STORE_ALONE: Side.STORE,
    Choice.WORKSPACE: Side.WORKSPACE,
    Choice.WORKSPACE_ALONE: Side.WORKSPACE,
}
"""The side whose version a choice takes."""
_OF_ALL = (Choice.HOLD, Choice.STORE_ALONE, Choice.WORKSPACE_ALONE)
"""The choices that are about the whole conversation, whatever its conflicts are."""


class Counts(NamedTuple):
    """Numbers of decisions: those that a person has to take, those of them that are still open, and others taken."""

    total: int
    left: int
    more: int

    @property
    def text(self) -> str:
        """The numbers in words."""
        text = f"{self.total - self.left} of {self.total} decided" if self.total else "nothing to decide"
        return f"{text}, {self.more} more" if self.more else text


class Decisions(Struct, frozen=True):
    """A person's decisions about the subjects of one plan.

    ``chosen`` has the decision about a conflict by its conversation and unit, about all of a conversation by `WHOLE`.
    ``history`` are the states before each decision, for `taken_back`. A conflict without a decision is left as it is.
    """

    chosen: Mapping[Key, Choice] = field(default_factory=dict)
    history: tuple[Mapping[Key, Choice], ...] = ()

    def of(self, subject: Subject, unit: str = WHOLE) -> Choice | None:
        """Return the decision about a conflict or all of a conversation; None: there is none, or they differ."""
        whole = self.chosen.get((subject.conversation, WHOLE))
        if whole is not None:
            return whole
        if unit != WHOLE:
            return self.chosen.get((subject.conversation, unit))
        of_units = {self.chosen.get((subject.conversation, each.unit)) for each in subject.conflicts}
        return of_units.pop() if len(of_units) == 1 else None

    def is_open(self, subject: Subject, unit: str = WHOLE) -> bool:
        """Tell whether a person still has to decide about a subject, or about one of its conflicts."""
        if not subject.is_question or (subject.conversation, WHOLE) in self.chosen:
            return False
        units = [each.unit for each in subject.conflicts if unit in (WHOLE, each.unit)]
        return not units or any((subject.conversation, each) not in self.chosen for each in units)

    def with_choice(self, subject: Subject, unit: str, choice: Choice) -> Decisions | None:
        """Return the decisions with one more; None: the subject doesn't offer this choice."""
        if choice not in subject.offered(unit):
            return None
        chosen = {**self.chosen}
        id_ = subject.conversation
        whole = chosen.pop((id_, WHOLE), None)
        if unit == WHOLE:
            for conflict in subject.conflicts:
                chosen.pop((id_, conflict.unit), None)
            chosen[id_, WHOLE] = choice
        else:
            if whole is not None:  # the other conflicts keep what was decided about all
                chosen |= {(id_, each.unit): whole for each in subject.conflicts if whole in subject.offered(each.unit)}
            chosen[id_, unit] = choice
        return Decisions(chosen, (*self.history, self.chosen))

    def without(self, subject: Subject, unit: str = WHOLE) -> Decisions:
        """Return the decisions without that about a subject, or about one of its conflicts."""
        gone = {(subject.conversation, WHOLE), (subject.conversation, unit)}
        if unit == WHOLE:
            gone |= {(subject.conversation, each.unit) for each in subject.conflicts}
        left = {key: choice for key, choice in self.chosen.items() if key not in gone}
        return self if left == self.chosen else Decisions(left, (*self.history, self.chosen))

    def taken_back(self) -> Decisions:
        """Return the decisions without the last one."""
        return Decisions(self.history[-1], self.history[:-1]) if self.history else self

    def skipped(self, subject: Subject) -> bool:
        """Tell whether the run leaves out all of a conversation."""
        return self.chosen.get((subject.conversation, WHOLE)) is Choice.SKIP

    @property
    def on_hold(self) -> frozenset[str]:
        """The conversations that are held."""
        return frozenset(id_ for (id_, _), choice in self.chosen.items() if choice is Choice.HOLD)

    def left_out(self, subjects: Sequence[Subject]) -> frozenset[str]:
        """Return the conversations that are skipped."""
        return frozenset(subject.conversation for subject in subjects if self.skipped(subject))

    def policy(self, plan: Plan, subjects: Sequence[Subject]) -> Policy:
        """Return the policy of the plan with the decisions, as `resolve`, answers and ``--only`` would make it."""
        base = plan.policy
        choices, decisions = dict(base.choices), dict(base.decisions)
        left_out: set[str] = set()
        for subject in subjects:
            id_ = subject.conversation
            whole = self.chosen.get((id_, WHOLE))
            if whole is Choice.SKIP:
                left_out.add(id_)
            elif subject.allowed is not None:
                continue
            elif (
                whole in _OF_ALL
                or (whole is not None and not subject.conflicts)
                or (whole is not None and whole in Subject.takes_of((*subject.held, *subject.aside)))
            ):
                decisions[id_] = _TAKES[whole]
            else:
                for conflict in subject.conflicts:
                    choice = whole or self.chosen.get((id_, conflict.unit), Choice.SKIP)
                    choices[id_, conflict.unit] = _taken(choice, subject, conflict.unit)
        policy = replace(base, choices=choices, decisions=decisions)
        return _without(policy, plan, left_out) if left_out else policy

    def titles(self, subjects: Sequence[Subject]) -> dict[str, str]:
        """Return the titles that were chosen, by conversation; not the long ones, which a plan has only in part."""
        found: dict[str, str] = {}
        for subject in subjects:
            for conflict in subject.conflicts:
                side = _SIDES.get(self.of(subject, conflict.unit))
                if side is None or "title" not in conflict.keys:
                    continue
                value = conflict.rival(side).values[conflict.keys.index("title")]
                with suppress(ValueError):
                    title = json.loads(value or "null")
                    found |= {subject.conversation: title} if isinstance(title, str) else {}
        return found

    def words(self, subjects: Sequence[Subject]) -> str:
        """Return the number of decisions by choice; empty: there are none."""
        return words_of(self.tally(subjects))

    def tally(self, subjects: Sequence[Subject]) -> Counter[Choice]:
        """Return the number of decisions by choice: each conflict and each blocked item counts."""
        counts: Counter[Choice] = Counter()
        for subject in subjects:
            whole = self.chosen.get((subject.conversation, WHOLE))
            if whole is not None:
                counts[whole] += max(len(subject.conflicts) + len(subject.blocked), 1)
            for conflict in subject.conflicts if whole is None else ():
                if (choice := self.chosen.get((subject.conversation, conflict.unit))) is not None:
                    counts[choice] += 1
        return counts

    def counts(self, subjects: Sequence[Subject]) -> Counts:
        """Return how many decisions there are: each conflict and each blocked item that an answer resolves is one."""
        total = left = more = 0
        for subject in subjects:
            if not subject.is_question:
                more += (subject.conversation, WHOLE) in self.chosen
                continue
            total += len(subject.conflicts) + len(subject.blocked)
            if (subject.conversation, WHOLE) not in self.chosen:
                left += len(subject.blocked)
                left += sum((subject.conversation, each.unit) not in self.chosen for each in subject.conflicts)
        return Counts(total, left, more)


def words_of(counts: Mapping[Choice, int]) -> str:
    """Return numbers of decisions in words."""
    return ", ".join(f"{counts[choice]} {choice}" for choice in Choice if choice in counts)


def _taken(choice: Choice, subject: Subject, unit: str) -> Take:
    """Return the answer about one conflict: what only events offer is the newer version elsewhere."""
    if choice in subject.offered(unit):
        return _TAKES[choice]
    newer = subject.newer(unit)
    return _TAKES[newer] if newer is not None else Take.KEEP


def _without(policy: Policy, plan: Plan, left_out: set[str]) -> Policy:
    """Limit a policy to what a plan concerns, without some conversations."""
    request = policy.request
    if isinstance(request, ProjectRequest) and request.ids:
        policy = replace(policy, request=replace(request, ids=tuple(id_ for id_ in request.ids if id_ not in left_out)))
    named = plan.concerned | plan.spoken_of | {each.conversation for each in plan.conflicts}
    return replace(policy, only=frozenset(named - left_out) or NO_CONVERSATION, below=frozenset())

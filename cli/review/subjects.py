"""The subjects of a walk: each conversation of a plan with its steps and questions, in the order of the tree."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import newer_side

from ..output.conflict_questions import is_undecided
from ..output.summary import verb
from ..output.words import publication_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.model.plan import Action, Conflict, Item, Note, Plan

    Key = tuple[str, str]
    """A conversation, and the unit of one of its conflicts; `WHOLE`: all of it."""

BOTH_VALID = frozenset({5, 11, 13, 15})
"""Cases in which both sides have a valid version (docs/cases.md)."""
SIDES_AS_WHOLE = ""
"""The conversation of the subject that is about a whole side."""


class Choice(StrEnum):
    """A decision about a subject, or about one of its conflicts."""

    STORE = "store"
    WORKSPACE = "workspace"
    BOTH = "both"
    STORE_ALONE = "store alone"
    """The store's version of everything, and no fork of the events that only the workspace has."""
    WORKSPACE_ALONE = "workspace alone"
    SKIP = "skip"
    HOLD = "hold"


class Status(StrEnum):
    """The kind of a subject: the most urgent thing about it."""

    CONFLICT = "conflict"
    BLOCKED = "blocked"
    LEFT_ALONE = "left alone"
    PLANNED = "planned"
    ABOVE = "above"
    """Only an ancestor of other subjects."""


class Subject(Struct, frozen=True, kw_only=True, gc=False):
    """One conversation of a plan. ``above`` is the number of the subject that it is nested in; -1: none.

    ``allowed``: the only choices that its plan leaves; None: all, and a person has to decide its conflicts.
    """

    conversation: str
    title: str | None
    depth: int = 0
    above: int = -1
    actions: tuple[Action, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    held: tuple[Item, ...] = ()
    aside: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    allowed: frozenset[Choice] | None = None
    is_public: bool = True
    """Whether others see the workspace: it lies in the project."""

    @property
    def name(self) -> str:
        """The title, or the id of a conversation without one."""
        return self.title or self.conversation or "both sides"

    @property
    def status(self) -> Status:
        """The most urgent thing about the conversation."""
        if self.conflicts:
            return Status.CONFLICT
        if self.held:
            return Status.BLOCKED
        if self.actions:
            return Status.PLANNED
        return Status.LEFT_ALONE if self.aside else Status.ABOVE

    @property
    def word(self) -> str:
        """The word of the subject in the tree: the verb of its most important step, or its state."""
        if self.status is not Status.PLANNED:
            return "" if self.status is Status.ABOVE else self.status.value
        action = min(self.actions, key=_weight)
        publishes = action.kind is Kind.PROJECT and action.unit == WHOLE
        word = publication_word(action.reason.value, is_public=self.is_public) if publishes else ""
        return word or verb(action)

    @property
    def is_question(self) -> bool:
        """Whether a person has to decide: there is a conflict, or a blocked item that an answer resolves."""
        return self.allowed is None and (bool(self.conflicts) or bool(self.takes_of(self.held)))

    @property
    def blocked(self) -> tuple[Item, ...]:
        """The blocked items that an answer resolves and that are no conflicts."""
        contested = {each.unit for each in self.conflicts}
        return tuple(item for item in self.held if item.unit not in contested and self.takes_of((item,)))

    @staticmethod
    def takes_of(items: Iterable[Item]) -> frozenset[Choice]:
        """Return the sides that the commands of blocked or left items offer."""
        commands = (command for item in items for command in item.resolve if "--take " in command)
        return frozenset(Choice(command.rpartition("--take ")[2].split()[0]) for command in commands)

    def offered(self, unit: str = WHOLE) -> tuple[Choice, ...]:
        """Return the choices about the conversation, or about one of its conflicts, in the order of their keys."""
        if not self.conversation or self.status is Status.ABOVE:
            return ()
        if self.allowed is not None:
            return tuple(choice for choice in Choice if choice in self.allowed and self.actions and unit == WHOLE)
        choices: set[Choice] = set()
        conflicts = [each for each in self.conflicts if unit in (WHOLE, each.unit)]
        if conflicts:
            choices |= {Choice.STORE, Choice.WORKSPACE}
            if any(each.unit == STREAM and not each.forks for each in conflicts):
                choices.add(Choice.BOTH)  # of two continuations, every choice keeps both
        if unit != WHOLE:
            return tuple(choice for choice in Choice if choice in choices | {Choice.SKIP})
        if any(each.forks for each in conflicts):
            choices |= {Choice.STORE_ALONE, Choice.WORKSPACE_ALONE}
        choices |= self.takes_of((*self.held, *self.aside))
        if any(each.kind in (Kind.COPY, Kind.PROJECT) and each.case in BOTH_VALID for each in self.actions):
            choices |= {Choice.STORE, Choice.WORKSPACE}
        if choices:
            choices.add(Choice.HOLD)
        if self.actions or self.is_question:
            choices.add(Choice.SKIP)
        return tuple(choice for choice in Choice if choice in choices)

    def name_of(self, unit: str) -> str:
        """Return what one of its conflicts is about: the keys of the metadata, or the unit."""
        keys = next((each.keys for each in self.conflicts if each.unit == unit), ())
        return ", ".join(keys) if unit == METADATA and keys else unit_text(unit)

    def newer(self, unit: str = WHOLE) -> Choice | None:
        """Return the side with the newer version of the conflicts; None: there are none, or they differ in it."""
        sides = {newer_side(each) for each in self.conflicts if unit in (WHOLE, each.unit)}
        return Choice(sides.pop().value) if len(sides) == 1 else None


_WEIGHT = (
    Kind.REMOVE,
    Kind.REMOVE_STALE,
    Kind.FORK,
    Kind.ARCHIVE,
    Kind.UNARCHIVE,
    Kind.COPY,
    Kind.PROJECT,
    Kind.PROMOTE,
    Kind.SET_PARENT,
    Kind.MOVE,
)
"""The kinds of steps by how much a person wants to know of them."""


def _weight(action: Action) -> int:
    return _WEIGHT.index(action.kind) if action.kind in _WEIGHT else len(_WEIGHT)


def subjects_of(plan: Plan, allowed: frozenset[Choice] | None = None) -> tuple[Subject, ...]:
    """Return the subjects of a plan in the order of the tree; first what concerns a side as a whole.

    ``allowed``: the only choices that a person has; None: the plan is one of a run, and its conflicts can be decided.
    """
    subjects = _all_subjects(plan)
    return subjects if allowed is None else tuple([replace(each, allowed=allowed) for each in subjects])


def _all_subjects(plan: Plan) -> tuple[Subject, ...]:
    parts = _Parts(plan)
    found: list[Subject] = []
    if SIDES_AS_WHOLE in parts.held or SIDES_AS_WHOLE in parts.aside:
        found.append(parts.taken(SIDES_AS_WHOLE, None))
    path: list[int] = []
    for entry in plan.outline:
        del path[entry.depth :]
        above = path[-1] if path else -1
        if above >= 0 and found[above].conflicts and _follows_from_conflict(parts.actions.get(entry.conversation, ())):
            del parts.actions[entry.conversation]
            continue
        path.append(len(found))
        found.append(parts.taken(entry.conversation, entry.title, len(path) - 1, above))
    found += [parts.taken(conversation, title) for conversation, title in parts.left().items()]
    return _needed(found)


class _Parts:
    """The parts of a plan by conversation; each is taken once."""

    def __init__(self, plan: Plan) -> None:
        self.actions: dict[str, list[Action]] = {}
        self.conflicts: dict[str, list[Conflict]] = {}
        self.held: dict[str, list[Item]] = {}
        self.aside: dict[str, list[Item]] = {}
        self.notes: dict[str, list[Note]] = {}
        for action in plan.actions:
            self.actions.setdefault(action.conversation, []).append(action)
        for conflict in plan.conflicts:
            if is_undecided(conflict, plan.policy):
                self.conflicts.setdefault(conflict.conversation, []).append(conflict)
        for items, by_conversation in ((plan.held, self.held), (plan.aside, self.aside)):
            for item in items:
                by_conversation.setdefault(item.conversation or SIDES_AS_WHOLE, []).append(item)
        for note in plan.notes:
            self.notes.setdefault(note.conversation or SIDES_AS_WHOLE, []).append(note)

    def taken(self, conversation: str, title: str | None, depth: int = 0, above: int = -1) -> Subject:
        """Return the subject of a conversation."""
        return Subject(
            conversation=conversation,
            title=title,
            depth=depth,
            above=above,
            actions=tuple(self.actions.pop(conversation, ())),
            conflicts=tuple(self.conflicts.pop(conversation, ())),
            held=tuple(self.held.pop(conversation, ())),
            aside=tuple(self.aside.pop(conversation, ())),
            notes=tuple(self.notes.pop(conversation, ())),
        )

    def left(self) -> dict[str, str | None]:
        """Return the titles of the conversations that were not taken yet."""
        found: dict[str, str | None] = {}
        for of_conversation in (self.actions, self.conflicts, self.held, self.aside):
            for conversation, entries in of_conversation.items():
                found.setdefault(conversation, entries[0].title)
        return found


def _follows_from_conflict(actions: Sequence[Action]) -> bool:
    """Tell whether a conversation is the fork of a conflict: the decision about that decides about it."""
    return bool(actions) and all(each.kind is Kind.FORK and each.reason is Reason.DIVERGED for each in actions)


def _needed(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """Leave out the conversations that the plan doesn't concern, and that have no descendant that it concerns."""
    needed = [each.status is not Status.ABOVE for each in subjects]
    for number in range(len(subjects) - 1, -1, -1):
        if needed[number] and subjects[number].above >= 0:
            needed[subjects[number].above] = True
    if all(needed):
        return tuple(subjects)
    numbers: dict[int, int] = {-1: -1}
    kept: list[Subject] = []
    for number, each in enumerate(subjects):
        if needed[number]:
            numbers[number] = len(kept)
            kept.append(replace(each, above=numbers[each.above]))
    return tuple(kept)

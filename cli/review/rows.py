"""The rows of the tree: the subjects and their single conflicts, folded and searched; nothing is drawn here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.model.snapshot import WHOLE

from .subjects import Status, Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .decisions import Decisions


ASKED, DECIDED, BLOCKED = "?", "=", "!"
"""The marks of what needs a decision, what has one, and what is blocked until it is repaired."""


class Row(NamedTuple):
    """One row: the number of a subject, and the unit of one of its conflicts, or `WHOLE`."""

    subject: int
    unit: str
    depth: int


class Tree:
    """The rows of a plan. Folding and searching cost what changes; nothing is drawn here."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        """Show all subjects, unfolded."""
        self.subjects = subjects
        self.folded: set[int] = set()
        self._parents = {each.above for each in subjects if each.above >= 0}
        self.rows: list[Row] = []
        self._build()

    def _build(self) -> None:
        rows: list[Row] = []
        hidden_below: int | None = None
        for number, subject in enumerate(self.subjects):
            if hidden_below is not None and subject.depth > hidden_below:
                continue
            hidden_below = subject.depth if number in self.folded else None
            rows.append(Row(number, WHOLE, subject.depth))
            if len(subject.conflicts) > 1 and number not in self.folded:
                rows += [Row(number, each.unit, subject.depth + 1) for each in subject.conflicts]
        self.rows = rows

    def can_fold(self, row: Row) -> bool:
        """Tell whether there are rows below a row."""
        is_whole = row.unit == WHOLE
        return is_whole and (row.subject in self._parents or len(self.subjects[row.subject].conflicts) > 1)

    def fold(self, row: Row, *, folded: bool) -> bool:
        """Fold or unfold a row; tell whether anything has changed."""
        if not self.can_fold(row) or (row.subject in self.folded) == folded:
            return False
        self.folded.symmetric_difference_update({row.subject})
        self._build()
        return True

    def at(self, subject: int, unit: str = WHOLE) -> int:
        """Return the number of a subject's row; what it is folded in is unfolded."""
        above = self.subjects[subject].above
        hidden: Collection[int] = ()
        while above >= 0:
            hidden = {*hidden, above} if above in self.folded else hidden
            above = self.subjects[above].above
        if hidden:
            self.folded.difference_update(hidden)
            self._build()
        whole = 0
        for number, row in enumerate(self.rows):
            if row.subject == subject:
                if row.unit == unit:
                    return number
                whole = number if row.unit == WHOLE else whole
        return whole

    def above(self, number: int) -> int:
        """Return the row that a row is nested in; the row itself, if it is in none."""
        row = self.rows[number]
        outer = row.subject if row.unit != WHOLE else self.subjects[row.subject].above
        return self.at(outer) if outer >= 0 else number

    def next_open(self, number: int, decisions: Decisions, step: int = 1) -> int | None:
        """Return the next row that needs a decision, around the end; None if there is none."""
        subjects, count = self.subjects, len(self.subjects)
        row = self.rows[number] if self.rows else None
        if row is None:
            return None
        conflicts = subjects[row.subject].conflicts
        units = [each.unit for each in conflicts] if len(conflicts) > 1 else []
        if units:  # first the other conflicts of the same conversation
            at = units.index(row.unit) if row.unit != WHOLE else (-1 if step > 0 else len(units))
            there = units[at + 1 :] if step > 0 else units[: max(at, 0)][::-1]
            for unit in there:
                if row.unit != WHOLE and decisions.is_open(subjects[row.subject], unit):
                    return self.at(row.subject, unit)
        for distance in range(1, count + 1):
            subject = (row.subject + step * distance) % count
            if decisions.is_open(subjects[subject]):
                return self.at(subject)
        return None

    def search(self, text: str, number: int, step: int = 1) -> int | None:
        """Return the next row whose title or id has a text, around the end; None if there is none."""
        wanted, count = text.casefold(), len(self.subjects)
        start = self.rows[number].subject if self.rows else 0
        for distance in range(1, count + 1):
            subject = (start + step * distance) % count
            each = self.subjects[subject]
            if wanted in each.name.casefold() or wanted in each.conversation.casefold():
                return self.at(subject)
        return None

    def name(self, row: Row) -> str:
        """Return the text of a row: the title, or the name of a conflict's unit."""
        subject = self.subjects[row.subject]
        return subject.name if row.unit == WHOLE else subject.name_of(row.unit)

    def word(self, row: Row, decisions: Decisions) -> str:
        """Return what stands at the end of a row: the decision, or else the verb or the state."""
        subject = self.subjects[row.subject]
        choice = decisions.of(subject, row.unit)
        if choice is not None:
            return choice.value
        if row.unit != WHOLE:
            return ""
        if subject.conflicts and not decisions.is_open(subject):
            takes = {each.takes.value for each in subject.conflicts if each.takes is not None}
            return takes.pop() if subject.allowed is not None and len(takes) == 1 else "decided"
        return subject.word

    def mark(self, row: Row, decisions: Decisions) -> str:
        """Return the mark before a row."""
        subject = self.subjects[row.subject]
        if decisions.is_open(subject, row.unit):
            return ASKED
        if decisions.of(subject, row.unit) is not None or subject.is_question:
            return DECIDED
        return BLOCKED if subject.status is Status.BLOCKED else " "

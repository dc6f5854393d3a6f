"""The rows of the tree: folding, moving to what is open, searching, marks and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.snapshot import METADATA, STREAM, WHOLE
from tests.cli.modules import module
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

if TYPE_CHECKING:
    from typing import Any

ROWS, SUBJECTS, DECISIONS = module("review.rows"), module("review.subjects"), module("review.decisions")
Choice, Decisions, Tree = SUBJECTS.Choice, DECISIONS.Decisions, ROWS.Tree
BASE = (
    '1-a  metadata 09:00 title "A"  stream 09:00 [1]',
    '1-a/conversations/2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]',
    '3-c  metadata 09:00 title "Cellar"  stream 09:00 [1]',
)
STORED = (
    '1-a  metadata 10:00 title "S"  stream 10:00 [1 2]',
    '2-b  metadata 10:00 title "S2" parent 1  stream 09:00 [1]',
    '3-c  metadata 09:00 title "Cellar"  stream 09:00 [1]',
)
OURS = (
    '1-a  metadata 10:30 title "W"  stream 10:30 [1 3]',
    '1-a/conversations/2-b  metadata 10:30 title "W2" parent 1  stream 09:00 [1]',
    '3-c  metadata 09:00 title "Cellar"  stream 10:00 [1 2]',
)


def tree() -> Any:
    return Tree(SUBJECTS.subjects_of(plan_of(stored(*STORED), here(*OURS), agreed_on(*BASE))))


def shown(found: Any) -> list[tuple[int, str]]:
    return [(row.subject, row.unit) for row in found.rows]


ALL = [(0, WHOLE), (0, METADATA), (0, STREAM), (1, WHOLE), (2, WHOLE)]


def test_a_conversation_with_several_conflicts_has_a_row_for_each() -> None:
    assert shown(tree()) == ALL
    assert [tree().name(row) for row in tree().rows] == ["S", "title", "events", "S2", "Cellar"]


def test_folding_hides_what_is_below() -> None:
    found = tree()
    assert found.fold(found.rows[0], folded=True)
    assert shown(found) == [(0, WHOLE), (2, WHOLE)]
    assert not found.fold(found.rows[0], folded=True)
    assert not found.fold(found.rows[1], folded=True), "nothing is below it"
    assert found.fold(found.rows[0], folded=False)
    assert shown(found) == ALL


def test_a_row_that_is_hidden_is_unfolded() -> None:
    found = tree()
    found.fold(found.rows[0], folded=True)
    assert found.at(1) == 3
    assert shown(found) == ALL
    assert found.at(0, STREAM) == 2


def test_the_row_above() -> None:
    found = tree()
    assert [found.above(number) for number in range(5)] == [0, 0, 0, 0, 4]


def test_what_is_open_is_visited_around_the_end() -> None:
    found, decisions = tree(), Decisions()
    assert found.next_open(0, decisions) == 3
    assert found.next_open(1, decisions) == 2, "first the other conflicts of the same conversation"
    assert found.next_open(4, decisions) == 0
    assert found.next_open(3, decisions, -1) == 0
    decided = decisions.with_choice(found.subjects[0], WHOLE, Choice.STORE)
    assert found.next_open(3, decided) == 3
    done = decided.with_choice(found.subjects[1], WHOLE, Choice.STORE)
    assert found.next_open(0, done) is None
    assert Tree(()).next_open(0, decisions) is None


def test_a_search_finds_titles_and_ids_in_any_case() -> None:
    found = tree()
    assert found.search("cell", 0) == 4
    assert found.search("JP-C2", 4) == 3
    assert found.search("zebra", 0) is None


def test_marks_and_words_follow_the_decisions() -> None:
    found = tree()
    assert [found.mark(row, Decisions()) for row in found.rows] == ["?", "?", "?", "?", " "]
    one = Decisions().with_choice(found.subjects[0], METADATA, Choice.STORE)
    assert [found.mark(row, one) for row in found.rows[:3]] == ["?", "=", "?"]
    assert [found.word(row, one) for row in found.rows] == ["conflict", "store", "", "conflict", "-> store"]
    both = one.with_choice(found.subjects[0], STREAM, Choice.WORKSPACE)
    assert (found.mark(found.rows[0], both), found.word(found.rows[0], both)) == ("=", "decided")

"""What is quiet, and what is taken up together (docs/watch.md)."""

from __future__ import annotations

from reconcile.model.snapshot import Side
from reconcile.watch.fs_events import FEW, Debouncer

STORE, WORKSPACE = Side.STORE, Side.WORKSPACE


def debouncer() -> Debouncer:
    return Debouncer(quiet_ns=100, at_most_ns=1000)


def test_what_is_quiet_is_taken_up_with_all_its_places() -> None:
    pending = debouncer()
    pending.touch("a", STORE, ["1-a"], 0)
    pending.touch("a", WORKSPACE, ["", "1-a"], 50)
    assert pending.due_at() == 150
    assert not pending.is_due(149)
    assert pending.is_due(150)
    assert pending.in_flight == {"a"}
    assert pending.take(150) == {STORE: {"1-a"}, WORKSPACE: {"", "1-a"}}
    assert not pending
    assert pending.due_at() is None


def test_others_may_go_on_meanwhile() -> None:
    pending = debouncer()
    pending.touch("a", STORE, ["1-a"], 0)
    pending.touch("b", STORE, ["2-b"], 90)
    assert pending.take(100) == {STORE: {"1-a"}, WORKSPACE: set()}
    assert pending.in_flight == {"b"}


def test_two_that_change_at_nearly_the_same_time_are_taken_together() -> None:
    pending = debouncer()
    pending.touch("a", STORE, ["1-a"], 0)
    pending.touch("b", STORE, ["2-b"], 20)
    pending.touch("c", STORE, ["3-c"], 60)
    assert not pending.is_due(119)
    assert pending.due_at() == 120
    assert pending.take(120)[STORE] == {"1-a", "2-b"}
    assert pending.due_at() == 160


def test_somebody_may_write_all_day() -> None:
    pending = debouncer()
    for now in range(0, 990, 30):
        pending.touch("a", STORE, ["1-a"], now)
        assert not pending.is_due(now)
    assert pending.due_at() == 1000
    pending.touch("a", STORE, ["1-a"], 1200)
    assert pending.is_due(1200)
    assert pending.take(1200)[STORE] == {"1-a"}


def test_many_at_once_are_taken_up_together() -> None:
    pending = debouncer()
    for number in range(FEW + 1):
        pending.touch(str(number), WORKSPACE, [str(number)], number)
    assert pending.due_at() == FEW + 100
    assert not pending.is_due(FEW + 99)
    assert len(pending.take(FEW + 100)[WORKSPACE]) == FEW + 1


def test_many_may_follow_one_another_all_day() -> None:
    """What was heard of first is taken up in time, with what is quiet by then."""
    pending = debouncer()
    for now in range(0, 1000, 10):
        pending.touch(str(now), WORKSPACE, [str(now)], now)
        assert pending.is_due(now) == (FEW * 10 > now >= 120)
    assert pending.is_due(1000)
    assert pending.take(1000)[WORKSPACE] == {str(now) for now in range(0, 901, 10)}
    assert len(pending.in_flight) == 9


def test_what_is_to_be_looked_at_again_comes_earlier_when_it_is_heard_of() -> None:
    pending = debouncer()
    pending.schedule("a", {STORE: {"1-a"}}, 5000)
    assert pending.due_at() == 5000
    pending.touch("a", STORE, ["1-a"], 200)
    assert pending.due_at() == 300
    pending.schedule("a", {WORKSPACE: {"1-a"}}, 9000)
    assert pending.take(300) == {STORE: {"1-a"}, WORKSPACE: {"1-a"}}

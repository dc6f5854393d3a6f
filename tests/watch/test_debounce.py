"""What is quiet, and what is taken up together (docs/watch.md)."""

from __future__ import annotations

from reconcile.model.snapshot import Side
from reconcile.watch.debounce import FEW, Settling

STORE, WORKSPACE = Side.STORE, Side.WORKSPACE


def settling() -> Settling:
    return Settling(quiet_ns=100, at_most_ns=1000)


def test_what_is_quiet_is_taken_up_with_all_its_places() -> None:
    some = settling()
    some.stir("a", STORE, ["1-a"], 0)
    some.stir("a", WORKSPACE, ["", "1-a"], 50)
    assert some.due_at() == 150
    assert not some.is_due(149)
    assert some.is_due(150)
    assert some.moving == {"a"}
    assert some.take(150) == {STORE: {"1-a"}, WORKSPACE: {"", "1-a"}}
    assert not some
    assert some.due_at() is None


def test_others_may_go_on_meanwhile() -> None:
    some = settling()
    some.stir("a", STORE, ["1-a"], 0)
    some.stir("b", STORE, ["2-b"], 90)
    assert some.take(100) == {STORE: {"1-a"}, WORKSPACE: set()}
    assert some.moving == {"b"}


def test_somebody_may_write_all_day() -> None:
    some = settling()
    for now in range(0, 990, 30):
        some.stir("a", STORE, ["1-a"], now)
        assert not some.is_due(now)
    assert some.due_at() == 1000
    some.stir("a", STORE, ["1-a"], 1200)
    assert some.is_due(1200)
    assert some.take(1200)[STORE] == {"1-a"}


def test_many_at_once_are_taken_up_together() -> None:
    some = settling()
    for number in range(FEW + 1):
        some.stir(str(number), WORKSPACE, [str(number)], number)
    assert some.due_at() == FEW + 100
    assert not some.is_due(FEW + 99)
    assert len(some.take(FEW + 100)[WORKSPACE]) == FEW + 1


def test_many_may_follow_one_another_all_day() -> None:
    """What was heard of first is taken up in time, with what is quiet by then."""
    some = settling()
    for now in range(0, 1000, 10):
        some.stir(str(now), WORKSPACE, [str(now)], now)
        assert some.is_due(now) == (FEW * 10 > now >= 100)
    assert some.is_due(1000)
    assert some.take(1000)[WORKSPACE] == {str(now) for now in range(0, 901, 10)}
    assert len(some.moving) == 9


def test_what_is_to_be_looked_at_again_comes_earlier_when_it_is_heard_of() -> None:
    some = settling()
    some.again("a", {STORE: {"1-a"}}, 5000)
    assert some.due_at() == 5000
    some.stir("a", STORE, ["1-a"], 200)
    assert some.due_at() == 300
    some.again("a", {WORKSPACE: {"1-a"}}, 9000)
    assert some.take(300) == {STORE: {"1-a"}, WORKSPACE: {"1-a"}}

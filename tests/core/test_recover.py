"""What `recover` offers (DESIGN.md 5)."""

from __future__ import annotations

from dataclasses import replace

from reconcile.core.memory import Intent, IntentKind, Memory
from reconcile.core.recover import Offer, offers
from tests.support.building import agreed_on, board_of, here, stored

A, B, C, D = (f'{n}-x  metadata 09:00 title "X"  stream 09:00 [1]' for n in range(1, 5))
LOCAL = '5-x  metadata 09:00 title "X" local  stream 09:00 [1]'


def test_what_was_here_last_comes_first_and_then_the_newest_run_that_noticed() -> None:
    board = board_of(stored(A, B, C, D, LOCAL), here(D))
    intents = {
        "jp-c2": Intent(IntentKind.REMOVED, run="1"),
        "jp-c3": Intent(IntentKind.PROJECTED, waits_for="jp-c9"),
        "jp-c9": Intent(IntentKind.REMOVED, run="2"),
    }
    own = replace(agreed_on(B, C, D, LOCAL), intents=intents)
    expected = (Offer(None, ("jp-c1",)), Offer("2", ("jp-c3",)), Offer("1", ("jp-c2",)))
    assert offers(board, [own, agreed_on(A, B)]) == expected
    assert offers(board, [own]) == expected[1:]


def test_what_waits_for_itself_is_offered_all_the_same() -> None:
    intents = {"jp-c1": Intent(IntentKind.PROJECTED, waits_for="jp-c1")}
    own = replace(agreed_on(A), intents=intents)
    assert offers(board_of(stored(A), here()), [own]) == (Offer(None, ("jp-c1",)),)


def test_without_a_record_everything_that_is_not_local_is_a_candidate() -> None:
    board = board_of(stored(A, B, LOCAL), here(B))
    assert offers(board, [Memory()]) == (Offer(None, ("jp-c1",), known=False),)
    assert offers(board_of(stored(A), here(A)), []) == ()


def test_a_record_counts_whatever_comes_after_it() -> None:
    board = board_of(stored(A, B), here())
    assert offers(board, [agreed_on(A), Memory()]) == (Offer(None, ("jp-c1",)),)


def test_what_an_intent_alone_speaks_of_is_offered() -> None:
    own = replace(agreed_on(B), intents={"jp-c1": Intent(IntentKind.REMOVED, run="1")})
    assert offers(board_of(stored(A, B), here(B)), [own]) == (Offer("1", ("jp-c1",)),)


def test_only_a_removal_was_noticed_by_a_run() -> None:
    own = replace(agreed_on(A), intents={"jp-c1": Intent(IntentKind.PROJECTED, run="1")})
    assert offers(board_of(stored(A), here()), [own]) == (Offer(None, ("jp-c1",)),)

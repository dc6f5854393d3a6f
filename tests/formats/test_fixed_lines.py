"""Logs that only grow: which edits have lost lines, and two versions in one."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from reconcile.formats.fixed import lacks_lines, merge_lines

AT = [b"at=2026-02-08T12:00:0%d.000Z" % second for second in range(10)]


def log(*numbers: int) -> bytes:
    return b"".join(b"line=%d %s\n" % (number, AT[number]) for number in numbers)


LOST = [
    (log(1, 2), log(1, 2, 3), False),
    (log(1, 2), log(2, 1), False),
    (log(1, 2), log(1), True),
    (log(1, 1), log(1), True),
    (log(1), b"", True),
    (log(1) + b"line=2", log(1, 2), False),
    (log(1, 2), log(1) + b"line=2", True),
    (log(1).replace(b"\n", b"\r\n"), log(1), False),
]


@pytest.mark.parametrize(("before", "after", "lost"), LOST)
def test_which_edits_lose_lines(before: bytes, after: bytes, lost: bool) -> None:
    assert lacks_lines(before, after) is lost


UNITED = [
    (log(1, 2), log(1, 2, 3), log(1, 2, 3)),
    (log(1, 2, 4), log(1, 3, 5), log(1, 2, 3, 4, 5)),
    (log(1, 1, 2), log(1, 3), log(1, 1, 2, 3)),
    (log(1, 2) + b"line=4", log(1, 4, 5), log(1, 2, 4, 5)),
    (b"", log(1), log(1)),
    (log(5, 1), log(1, 5, 7), log(1, 5, 7)),
    (log(5, 1, 6), log(1, 5, 7), log(1, 5, 6, 7)),
]


@pytest.mark.parametrize(("one", "other", "both"), UNITED)
def test_both_in_one(one: bytes, other: bytes, both: bytes) -> None:
    assert merge_lines(one, other) == merge_lines(other, one) == both


def test_lines_without_a_time() -> None:
    assert merge_lines(b"x\nb\n", b"x\na\n") == b"x\na\nb\n"


def test_the_union_of_any_two_has_everything() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        one, other = (log(*chance.choices(range(6), k=chance.randrange(6))) for _ in "ab")
        both = merge_lines(one, other)
        if Counter(one.split()) != Counter(other.split()):
            assert both == merge_lines(other, one)
        assert not lacks_lines(one, both)
        assert not lacks_lines(other, both)
        assert not lacks_lines(both, merge_lines(both, one))

"""Two versions of a note in ``memory/``: the program and a person write whole files, in each checkout its own.

All worktrees of a repository have the notes of the main one, but two clones have one store and two directories of
notes. No line that either of them wrote is lost: a line that one has removed comes back instead.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile


def merged_notes(one: bytes, other: bytes) -> bytes | None:
    """Return a text with every line of both; the one that has all lines of the other is unchanged.

    The beginning and the end that both have stay at their places. The result does not depend on the order of the two
    versions. None if both have the same lines in another order, or one is no text.
    """
    if b"\0" in one + other:
        return None
    lacks_one, lacks_other = _lacks(one, other), _lacks(other, one)
    if not (lacks_one and lacks_other):
        return None if lacks_one == lacks_other else other if lacks_one else one
    first, second = sorted((_lines(one), _lines(other)))
    begin = _equal(first, second)
    end = _equal(first[begin:][::-1], second[begin:][::-1])
    middle, more = first[begin : len(first) - end], second[begin : len(second) - end]
    known = Counter(middle)
    for line in more:
        if known[line]:
            known[line] -= 1
        else:
            middle.append(line)
    return b"\n".join([*first[:begin], *middle, *first[len(first) - end :]]) + b"\n"


def _equal(one: list[bytes], other: list[bytes]) -> int:
    """Return how many lines from the first one on are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _lacks(one: bytes, other: bytes) -> bool:
    """Tell whether the first text lacks a line that the other one has, blank lines left out."""
    return bool(Counter(filter(bytes.strip, _lines(other))) - Counter(_lines(one)))


def _lines(text: bytes) -> list[bytes]:
    return [line.rstrip(b"\r") for line in text.removesuffix(b"\n").split(b"\n")]

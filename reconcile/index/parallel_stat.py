"""Both sides looked over at once for what has another status, by two processes that go towards each other.

This one begins with the first portion, the other one with the last. As soon as either has found something this one
does what such a run needs in any case (``meanwhile``), and then goes on with what the other has left.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING

from reconcile.fs.helper_process import HelperProcess
from reconcile.index.stat_table import Opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from reconcile.index.stat_table import KeptSweep, Portion

WORTH_A_PROCESS = 12_000
"""Paths of both sides together from which a second process saves time."""


def changed_on_both(
    roots: Sequence[str], sweeps: Sequence[KeptSweep], meanwhile: Callable[[], object] = lambda: None
) -> tuple[list[str], list[str]]:
    """Return what has changed of two sides; a second process takes its share of them where that pays.

    ``meanwhile`` is called at most once, where something has changed and the other process is at work on the rest.
    """
    (one, other), (here, there) = roots, sweeps
    if len(here) + len(there) < WORTH_A_PROCESS:
        return here.changed(one), there.changed(other)
    both = _Both(roots, [(side, portion) for side, sweep in enumerate(sweeps) for portion in sweep.portions()])
    with HelperProcess.start(both.from_the_end) as child:
        mine = both.from_the_start(meanwhile if child.is_running else None)
        told = child.result()
    # Where it didn't get to the end, this process looks itself.
    theirs = both.except_for(mine) if told is None else marshal.loads(told)  # noqa: S302 - from this very program
    return both.by_side(mine | theirs)


class _Both:
    """The portions of both sides, and what the two processes see of each other: which ones somebody has taken.

    They might take the same one, where they meet; that is done twice then, and comes to the same.
    """

    def __init__(self, roots: Sequence[str], portions: Sequence[tuple[int, Portion]]) -> None:
        import mmap  # here: few conversations need no second process

        self._roots, self._portions = roots, portions
        self._shared = mmap.mmap(-1, len(portions) + 1)
        """A byte for each, 1 where it is taken, and one for all: 1 where something has changed."""

    def from_the_end(self) -> bytes:
        return marshal.dumps({at: names for at, names in self._taken(reversed(range(len(self._portions)))) if names})

    def from_the_start(self, meanwhile: Callable[[], object] | None) -> dict[int, list[str]]:
        found = {}
        for at, names in self._taken(range(len(self._portions))):
            found[at] = names
            if meanwhile is not None and self._shared[-1]:
                meanwhile()
                meanwhile = None
        return found

    def except_for(self, done: Iterable[int]) -> dict[int, list[str]]:
        return dict(self._looked(set(range(len(self._portions))).difference(done)))

    def by_side(self, found: dict[int, list[str]]) -> tuple[list[str], list[str]]:
        sides: tuple[list[str], list[str]] = [], []
        for at in sorted(found):
            sides[self._portions[at][0]].extend(found[at])
        return sides

    def _taken(self, order: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
        return self._looked(self._free(order))

    def _free(self, order: Iterable[int]) -> Iterator[int]:
        """Take one after the other, up to where somebody else has."""
        for at in order:
            if self._shared[at]:
                return
            self._shared[at] = 1
            yield at

    def _looked(self, order: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
        one, other = map(Opened, self._roots)
        with one as here, other as there:
            looks = here, there
            for at in order:
                side, portion = self._portions[at]
                names = portion.changed(looks[side])
                if names:
                    self._shared[-1] = 1
                yield at, names

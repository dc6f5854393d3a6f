"""What the last run found at rest, kept in files of its own: where nothing has changed since, its answer still holds.

A plan depends on both sides, on what is remembered, and on what was asked for. Where all three are the same, so is the
plan, and needn't be made again. Losing them costs time, nothing else. This module is loaded at every start, and
loads next to nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from reconcile.fs.cache_file import cache_path, load_values, save_values
from reconcile.index.parallel_stat import changed_on_both
from reconcile.index.stat_table import KeptSweep
from reconcile.state.directory import Generation, generation

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.model.policy import Policy

Asked: TypeAlias = tuple[object, ...]
"""All that a plan depends on besides both sides and the memory, as values that compare."""
Item: TypeAlias = tuple[str | None, str | None, str, str, str, tuple[str, ...]]
"""Conversation, title, unit, reason, message, and the commands that settle it."""
Note: TypeAlias = tuple[str | None, str, str, str]
"""Conversation, unit, reason and message."""

_KIND, _SWEPT = "rest", "swept"
_KEY_BYTES = 16
_DAY_NS = 24 * 3600 * 10**9
"""A checkout is noted as seen once a day, which only a run that opens the state does."""


def request_key(roots: Roots, rules: Policy | Settings, ignore: tuple[str, ...]) -> Asked:
    """Return all that a plain run's plan depends on besides both sides, the memory and git.

    ``rules`` are a policy's, or the settings that make one.
    """
    sides = (roots.format, roots.workspace, roots.project, roots.store, roots.workspace_identity, roots.workspace_id)
    chosen = (rules.layout.value, rules.stream.value, rules.diverged.value, rules.missing.value)
    return (*sides, roots.siblings, *chosen, ignore)


class Answer(NamedTuple):
    """What a plan says besides its actions; ``states`` counts the conversations in each."""

    layout: str
    states: tuple[tuple[str, int], ...]
    held: tuple[Item, ...]
    aside: tuple[Item, ...]
    notes: tuple[Note, ...]
    quiet: bool


class LastAnswer(NamedTuple):
    """``roots`` and ``sweeps`` are the store's and the workspace's; ``made_ns``: when it was found to be so.

    ``indexes``: the checksums of what was stored of either side's files; copies are built of that. ``loose``: paths of
    copies that have to be looked at again, as not all that is known of them is there.
    ``due``: conversations of which the answer says nothing, as the next run has to look at them in any case.
    ``key`` tells what else was known then (`reconcile.index.snapshots`); ``counted``: conversations that are counted
    under another state than that says, or no more.
    """

    asked: Asked
    generation: Generation
    made_ns: int
    roots: tuple[str, str]
    sweeps: tuple[KeptSweep, KeptSweep]
    answer: Answer
    due: tuple[str, ...]
    indexes: tuple[bytes, bytes]
    loose: tuple[tuple[str, ...], tuple[str, ...]]
    counted: dict[str, str | None]
    key: bytes

    def is_about(self, asked: Asked, directory: str, now_ns: int) -> bool:
        """Tell whether the same is asked, of the same memory; ``directory`` is the state's."""
        recent = 0 <= now_ns - self.made_ns < _DAY_NS
        return self.asked == asked and recent and self.generation == generation(directory)

    def changed(self, meanwhile: Callable[[], object] = lambda: None) -> tuple[list[str], list[str]]:
        """Return the paths of which the status isn't the same, by side; ``.`` is a side's own.

        ``meanwhile`` may be called where there are some, and another process is looking for the rest.
        """
        return changed_on_both(self.roots, self.sweeps, meanwhile)

    @classmethod
    def load(cls, directory: str, checkout: str) -> LastAnswer | None:
        """Return what was kept in a state's directory for a checkout."""
        values = load_values(cache_path(directory, _KIND, checkout), _KIND)
        swept = load_values(cache_path(directory, _SWEPT, checkout), _SWEPT)
        if values is None or swept is None:
            return None
        (asked, known, made_ns, roots, answer, *others), (base, here, there) = values
        (found, count), *pieces = swept
        if found != base:
            return None
        one, other = KeptSweep(pieces[:count], here, base), KeptSweep(pieces[count:], there, base)
        return cls(asked, known, made_ns, roots, (one, other), Answer(*answer), *others)

    def save(self, directory: str, checkout: str) -> None:
        """Keep it; of the sweeps what was said since, where the rest is kept already."""
        one, other = self.sweeps
        base = one.key
        if not base or base != other.key or not (one.is_compact and other.is_compact):
            one, other, base = one.merged(), other.merged(), os.urandom(_KEY_BYTES)
            path = cache_path(directory, _SWEPT, checkout)
            save_values(path, _SWEPT, (base, len(one.pieces)), *one.pieces, *other.pieces)
        values = (*self[:4], tuple(self.answer), *self[6:])
        save_values(cache_path(directory, _KIND, checkout), _KIND, values, (base, one.since, other.since))

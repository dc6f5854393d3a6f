"""The summary of a run, for the next one: its answer, and what that holds for.

A plan depends on both sides, on the state, and on the request. Where all three are the same, so is the plan. Every
start loads this module: it imports little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from reconcile.index.stat_table import compare_both

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.index.stat_table import StatTable
    from reconcile.model.policy import Policy
    from reconcile.state.directory import Generation

Request: TypeAlias = tuple[object, ...]
"""The request key: all that a plan depends on besides both sides and the state, as values that compare."""
Item: TypeAlias = tuple[str | None, str | None, str, str, str, tuple[str, ...], tuple[str, ...]]
"""Conversation, title, unit, reason, message, the commands that settle it, and the findings in the message."""
Note: TypeAlias = tuple[str | None, str, str, str]
"""Conversation, unit, reason and message."""

_DAY_NS = 24 * 3600 * 10**9
"""A checkout is noted as seen once a day, which only a run that opens the state does."""


def request_key(roots: Roots, rules: Policy | Settings, ignore: tuple[str, ...]) -> Request:
    """Return all that a plain run's plan depends on besides both sides, the state and git.

    ``rules`` are a policy's, or the settings that make one.
    """
    sides = (roots.format, roots.workspace, roots.project, roots.store, roots.workspace_identity, roots.workspace_id)
    chosen = (rules.layout, rules.stream, rules.diverged, rules.conflict, rules.missing)
    return (*sides, roots.siblings, *(choice.value for choice in chosen), ignore)


class Answer(NamedTuple):
    """The content of a plan besides its actions; ``states`` counts the conversations in each.

    ``besides``: a dry run names more: what was lost with a store, or directories without a file.
    """

    layout: str
    states: tuple[tuple[str, int], ...]
    held: tuple[Item, ...]
    aside: tuple[Item, ...]
    notes: tuple[Note, ...]
    quiet: bool
    besides: bool


class Summary(NamedTuple):
    """The answer of the last run, and what it holds for.

    ``saved_ns`` is the time of saving. ``roots`` and ``tables`` are the store's and the workspace's. The next run has
    to plan the conversations in ``due`` whatever has changed: the answer says nothing of them. ``mark`` is that of the
    rows and the status that were saved with it (`reconcile.index.file`).
    """

    request: Request
    generation: Generation
    saved_ns: int
    roots: tuple[str, str]
    answer: Answer
    due: tuple[str, ...]
    tables: tuple[StatTable, StatTable]
    mark: bytes = b""

    @property
    def values(self) -> tuple[object, ...]:
        """The fields that the header of a file has, as plain values."""
        return (*self[:4], tuple(self.answer), self.due)

    def changed(
        self, meanwhile: Callable[[], object] = lambda: None, *, at_once: bool = False
    ) -> tuple[list[str], list[str]]:
        """Return the paths that have another status now, by side; ``.`` is a side's own.

        ``meanwhile`` and ``at_once`` as in `compare_both`.
        """
        return compare_both(self.roots, self.tables, meanwhile, at_once=at_once)


def is_usable(
    saved_for: Request, saved_at: Generation, saved_ns: int, request: Request, present: Generation | None, now_ns: int
) -> bool:
    """Tell whether a summary answers this request, of the present state."""
    is_recent = 0 <= now_ns - saved_ns < _DAY_NS
    return saved_for == request and is_recent and saved_at == present

"""The end of the last sync, from which the next one goes on: that looks at what has changed since, and at nothing more.

A sync that leaves nothing to do saves its index, as a run does (`reconcile.engine.saved_index`). That holds for one
generation of the state, but every run of a checkout writes to the state. So a file beside the index has the number of
the newest change of the baseline. The conversations with a later change count as changed. The file also has the synced
commit: a later sync that left something to do has another one. Losing the file costs time alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from reconcile.engine.engine import MOST
from reconcile.index.file import IndexFile, load_values, save_values
from reconcile.index.summary import request_key
from reconcile.state.directory import generation

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.index.summary import Summary
    from reconcile.model.policy import Policy

_KIND = "last-sync"


class LastSync:
    """The index of the last sync, of the present state, and the conversations whose baseline has changed since."""

    def __init__(self, summary: Summary, others: frozenset[str]) -> None:
        """Take what `load` has found."""
        self.summary, self.others = summary, others

    @cached_property
    def changed(self) -> tuple[list[str], list[str]]:
        """The paths of both directories that have another status than then."""
        return self.summary.changed()

    @property
    def is_unchanged(self) -> bool:
        """Whether both directories and the state are as the sync has left them."""
        return not (self.summary.due or self.others or any(self.changed))


def load(session: Session, policy: Policy, path: str, commit: str) -> LastSync | None:
    """Return what the last sync has saved; None if it left something to do, or does not hold any more.

    ``path`` is that of the file beside the index, and ``commit`` the one that is known to be synced.
    """
    key = request_key(session.roots, policy, session.ignore)
    file = IndexFile(session.directory, session.roots.workspace_identity)
    summary = file.load_summary(key, session.now_ns(), of_any_state=True)
    if summary is None or summary.answer.held or summary.answer.aside or summary.answer.notes:
        return None
    present = generation(session.directory)
    if present is None or present == summary.generation:
        return None if present is None else LastSync(summary, frozenset())
    others = _changed_since(session, summary, path, commit)
    return None if others is None else LastSync(summary._replace(generation=present), others)


def save(session: Session, path: str, commit: str | None) -> None:
    """Save the number of the newest change of the state, after the index was saved; the caller holds the run lock."""
    state = session.state
    values = state.identity(), state.newest_change(), state.checkout_row(session.site.number)
    save_values(path, _KIND, generation(session.directory), commit, *values)


def _changed_since(session: Session, summary: Summary, path: str, commit: str) -> frozenset[str] | None:
    """Return the conversations whose baseline has changed since an index was saved; None if that is unknown."""
    state, values = session.state, load_values(path, _KIND)
    if values is None:
        return None
    saved_at, synced, identity, number, row = values
    saved, present = (saved_at, synced, identity, row), (summary.generation, commit, state.identity())
    if (
        saved != (*present, state.checkout_row(session.checkout))
        or state.newest_change() < number
        or state.lost()
        or state.journal.open_runs()
    ):
        return None
    changed = state.changed_since(number, MOST + 1)
    return changed if len(changed) <= MOST else None

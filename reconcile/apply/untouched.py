"""Conversations of which a run has done nothing after all: skipped, failed, or never begun before it was killed.

What is remembered of them is what it was before, or else the run has changed that alone. `undo` and `log` go by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import remembered
from reconcile.state.baseline_table import Fold

if TYPE_CHECKING:
    from reconcile.state.database import State
    from reconcile.state.journal import Run


def forget_untouched(state: State, run: str, checkout: int | None) -> None:
    """Take out of the journal that a run concerned conversations of which it has changed nothing.

    An intent that it wrote ahead holds, and is a change, whatever became of the steps; so is a request that waits.
    """
    untouched = state.journal.untouched(run)
    if untouched:
        before = state.journal.remembered(run)
        asked = untouched & before.keys()
        memory = state.load(checkout, asked)
        recorded = {each for (each, _), waiting in memory.waiting.items() if waiting.run == run}
        now = remembered(memory, asked - recorded)
        state.journal.unconcerned(run, [each for each, found in now.items() if found == before[each]])


def put_back_untouched(state: State, run: Run) -> None:
    """Have hold again what was remembered before an undo that was killed, of the conversations that it had not begun.

    What a later run has remembered meanwhile stays.
    """
    untouched = state.journal.untouched(run.id) - state.journal.concerned_since(run.id).keys()
    if run.undoes is not None and run.checkout is not None and untouched:
        before = state.journal.remembered(run.id)
        again = {each: before[each] for each in untouched & before.keys()}
        state.journal.record_intents(run.id, run.checkout, Fold(), again)

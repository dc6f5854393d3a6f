"""Drops the history of a remote, as for a secret that was sent (docs/design/remotes.md#history)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.remote.engine import RemoteError, Swap, UnreachableError
from reconcile.remote.identity import checked_tree
from reconcile.remote.tree import FORMAT, format_file, read_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.format import Format
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.known import Known
    from reconcile.remote.sealing import Keys


def forget_history(
    engine: RemoteEngine, fmt: Format, store: str, keys: Keys, known: Known, begins: Callable[[], None]
) -> Known:
    """Replace the history of a remote by one commit with its present files; return what is known of it then.

    ``begins`` is called right before: from then on, the remote may have it, whatever ends this call.

    Raises:
        RemoteError: this machine has not taken all that the remote has, or another one was faster.
    """
    tip = engine.tip()
    if tip is None or tip != known.commit:
        raise RemoteError("this machine has not taken all that the remote has", "reconcile sync")
    tree = checked_tree(read_tree(engine, tip, fmt, store, keys), known, keys)
    assert tree.format is not None  # noqa: S101 - it has a commit
    epoch = tree.format.epoch + 1
    edits = {FORMAT: format_file(store, tree.format.id, tree.coding, epoch)}
    commit = engine.without_history(tip, edits)
    begins()
    swap = engine.swap(tip, commit)
    if swap is Swap.UNKNOWN:
        raise UnreachableError("the remote gave no answer: its history may be gone, or not", "reconcile sync")
    if swap is Swap.LOST:
        raise RemoteError("another machine has sent something meanwhile", "reconcile sync, then this again")
    return replace(known, commit=commit, epoch=epoch)

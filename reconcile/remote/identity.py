"""Whether a remote is the one that this machine knows: the same store, encrypted as before, with a known key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.remote.engine import RemoteError
from reconcile.remote.sealing import Sealed

if TYPE_CHECKING:
    from reconcile.remote.known import Known
    from reconcile.remote.sealing import Keys
    from reconcile.remote.tree import Tree


def checked_tree(tree: Tree, known: Known, keys: Keys) -> Tree:
    """Return the tree of a remote that this machine may write to: it is the same one, and encrypted as before.

    Raises:
        RemoteError: it is not.
    """
    if tree.format is None:
        if known.key is not None:
            raise replaced_error()
        return replace(tree, coding=keys.new()) if keys.is_wanted else tree
    if known.id not in (None, tree.format.id):
        raise replaced_error()
    if isinstance(tree.coding, Sealed):
        if known.key is not None and not tree.coding.continues(known.key):
            raise RemoteError(
                "the remote has another key than the one that this machine has seen, and no holder of that has made it",
                "if you have made the remote again: reconcile remote accept",
            )
        if known.rotated is not None and not tree.coding.continues(known.rotated):
            raise RemoteError(
                "a change of its keys was interrupted here, and the remote doesn't have the new ones",
                "run it again: reconcile remote key rotate, or reconcile remote key remove KEY",
            )
    elif keys.is_wanted or known.key is not None:
        raise not_encrypted()
    return tree


def not_encrypted() -> RemoteError:
    """Return the refusal of a remote without encryption that this machine knows as an encrypted one."""
    return RemoteError(
        "the remote is not encrypted, and this machine knows it as an encrypted one: nothing is sent to it",
        "use an empty repository, or `reconcile remote remove NAME`, then add it without --encrypt",
    )


def replaced_error() -> RemoteError:
    """Return the refusal of a remote that has another history than the one that this machine has seen."""
    return RemoteError(
        "the remote is empty, or has another history than the one that this machine has seen",
        "look at it; if that is right: reconcile remote accept; the sync after that removes nothing",
    )

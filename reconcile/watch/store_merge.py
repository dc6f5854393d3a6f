"""Detects two states of a store in which a watcher must wait: JP merges it into another store, or it is lost.

JP merges the stores of one workspace when it starts: directory by directory, without a lock
(docs/design/formats/jp.md#stores). A conversation that has moved to the other store is not removed. A store is lost if
its disk isn't mounted or its directory was moved away; only a command that a person runs fills it again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.fs.files import error_text
from reconcile.model.baseline import LOST
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE
from reconcile.planning.rules.guards import has_lost_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.model.baseline import WorldState
    from reconcile.model.format import Format


class MergingError(ReconcileError):
    """Conversations that left the store are in another store of the same workspace."""

    exit_code = 4


class LostError(ReconcileError):
    """The store is gone or empty, or a directory without its conversations replaced it."""

    exit_code = 4


def refuse_lost(world: WorldState, roots: Roots, fmt: Format) -> None:
    """Raise an error while the store is lost: until it is back, or a command has filled it.

    Raises:
        LostError: the store is lost.
    """
    store, baseline = world.store, world.baseline
    there = {copy.conversation for copy in store.copies}
    lacking = baseline.agreed.keys() - there - baseline.tombstones.keys()
    replaced = baseline.store_identity not in (None, LOST, store.identity)
    if not lacking or not (replaced or has_lost_all(store, baseline, fmt)):
        return
    found = "another directory" if store.copies else "an empty directory" if store.exists else "nothing"
    raise LostError(
        f"{roots.store_conversations}: found {found}, expected the store with {len(lacking)} {roots.noun}s that it "
        "lacks; nothing is copied until it is back; if it is lost, `reconcile` fills it again from the workspace"
    )


def refuse_merging(world: WorldState, roots: Roots, fmt: Format) -> None:
    """Raise an error while JP merges the store into another one.

    Raises:
        MergingError: conversations of the store are in the other one.
    """
    gone = (
        world.baseline.agreed.keys() - {copy.conversation for copy in world.store.copies} if roots.siblings else set()
    )
    for sibling in roots.siblings if gone else ():
        if not gone.isdisjoint(_conversations(os.path.join(sibling, CHILDREN), fmt)):
            raise MergingError(
                f"{roots.store_conversations}: conversations have gone from here that lie in {sibling} now; "
                "JP merges the two stores of one workspace when it starts, and this waits for that"
            )


def _conversations(directory: str, fmt: Format) -> Iterator[str]:
    for path in (directory, os.path.join(directory, ARCHIVE)):
        try:
            names = os.listdir(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            words = f"{path}: it can't be read ({error_text(error)}); what has gone from the store may lie there now"
            raise MergingError(words, "make it readable, or stop the watcher") from None
        yield from (conversation for name in names if (conversation := fmt.id_of(name)) is not None)

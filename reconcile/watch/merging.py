"""JP merges the stores of one workspace whenever it starts: directory by directory, without a lock (formats/jp.md 1.5).

What is carried over into another store on the way has not been removed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.core.model import ARCHIVE
from reconcile.core.names import CHILDREN
from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.core.format import Format
    from reconcile.core.look import Look
    from reconcile.disk.roots import Roots


class MergingError(ReconcileError):
    """Conversations that have gone from the store lie in another one of the same workspace."""

    exit_code = 4


def refuse_merging(look: Look, roots: Roots, fmt: Format) -> None:
    """Conclude nothing from a store that is being merged into another one.

    Raises:
        MergingError: it is.
    """
    gone = look.memory.agreed.keys() - {copy.conversation for copy in look.store.copies} if roots.siblings else set()
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
        except OSError:
            continue
        yield from (found for name in names if (found := fmt.id_of(name)) is not None)

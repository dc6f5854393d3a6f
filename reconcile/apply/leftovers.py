"""What a killed run has left behind: its own staging directories, and nobody else's."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

from reconcile.core.model import CHILDREN
from reconcile.disk.versions import Version
from reconcile.planjson import place_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.core.model import Side
    from reconcile.disk.changes import Root
    from reconcile.disk.vault import Vault


def clean_leftovers(run: str, roots: Mapping[Side, Root], vault: Vault) -> list[Version]:
    """Remove a run's staging directories; every file in them goes into the vault first.

    What lies there was staged and has a source, or was on its way out and is in the vault already; keeping it once
    more costs little and needs no trust in how far the run came. Raises `OSError`.
    """
    versions = []
    name = f".reconcile-{run}"
    for side, root in roots.items():
        if not root.exists(name):
            continue
        for path, status in root.walk(name):
            if stat.S_ISREG(status.st_mode):
                kept = vault.put_file(root.absolute(path))
                versions.append(
                    Version(
                        digest=kept.digest,
                        xxh3=kept.xxh3,
                        size=kept.size,
                        conversation="",
                        unit="",
                        file=path.rpartition("/")[2],
                        side=side,
                        path=path,
                        mtime_ns=status.st_mtime_ns,
                        run=run,
                        why="interrupted",
                    )
                )
        vault.flush()
        root.remove_tree(name)
    return versions


def remove_emptied(records: Iterable[str], roots: Mapping[Side, Root]) -> None:
    """Remove the `conversations` directories that a run's moves and removals left empty (edge case 93).

    ``records`` are the run's actions as JSON.
    """
    for record in records:
        action = json.loads(record)
        left = place_from_json(action["source"] or action["target"])
        above = left.path.rpartition("/")[0]
        if above.rpartition("/")[2] == CHILDREN and left.side in roots:
            roots[left.side].remove_if_empty(above)

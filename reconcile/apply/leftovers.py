"""What a killed run has left behind: its own staging directories, and nobody else's."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from reconcile.disk.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

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

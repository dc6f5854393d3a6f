"""Who holds which of JP's locks, without probing them: a probe would make JP believe they are held.

See docs/design/formats/jp.md#lock-files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.fs.paths import status_at

if TYPE_CHECKING:
    from collections.abc import Iterable

PROC_LOCKS = "/proc/locks"


def held_locks(roots: Iterable[str]) -> dict[str, int]:
    """Return the names of lock files that are held below the given roots, with the holder's process number.

    Empty where the system doesn't tell (only Linux does).
    """
    try:
        with open(PROC_LOCKS, encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    holders = {}
    for fields in lines:
        # "1: FLOCK ADVISORY WRITE 4711 fd:00:1234 0 EOF"; waiting ones have "->" after the number.
        if len(fields) >= 6 and fields[1] == "FLOCK":
            major, minor, inode = fields[5].split(":")
            holders[os.makedev(int(major, 16), int(minor, 16)), int(inode)] = int(fields[4])
    found: dict[str, int] = {}
    for root in roots:
        found |= _held_in(os.path.join(root, "locks"), holders)
    return found


def _held_in(directory: str, holders: dict[tuple[int, int], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    if os.path.islink(directory):  # a pulled repository may bring one along
        return found
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                status = status_at(entry.path, follow=False)
                if status is None:  # removed meanwhile
                    continue
                pid = holders.get((status.st_dev, status.st_ino))
                if entry.name.endswith(".lock") and pid is not None:
                    found[entry.name] = pid
    except OSError:
        return found
    return found

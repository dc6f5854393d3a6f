"""Directories that the user can't read or write, found without creating anything in them.

The premise: a run replaces files by renames, so that the permissions of their directories count, not those of the
files. The system's answer (`os.access`) covers permissions, read-only file systems and the immutable flag. It doesn't
cover quotas, a full disk, and servers that refuse a write only when it comes.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.paths import inode_flags, is_absence
from reconcile.model.commands import typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.engine.session import Session

_IMMUTABLE, _APPEND_ONLY = 0x10, 0x20
"""Linux's inode flags that ``chattr +i`` and ``+a`` set (FS_IMMUTABLE_FL, FS_APPEND_FL)."""
_USE = os.R_OK | os.W_OK | os.X_OK
_IDS = {"effective_ids": True} if os.access in os.supports_effective_ids else {}


class Obstacle(Struct, frozen=True):
    """A directory that can't be read or written: the fact, and the commands or actions that solve it."""

    path: str
    found: str
    mend: tuple[str, ...]
    is_readable: bool = True


def obstacles(directories: Iterable[str]) -> Iterator[Obstacle]:
    """Yield what prevents a run from reading and writing these directories; a missing one prevents nothing itself.

    Then its nearest existing parent counts, where a run would create it.
    """
    seen = set()
    for directory in directories:
        path = directory
        while not os.path.lexists(path) and path != os.path.dirname(path):
            path = os.path.dirname(path)
        if path not in seen:
            seen.add(path)
            if obstacle := obstacle_at(path):
                yield obstacle


def obstacles_of(session: Session) -> tuple[Obstacle, ...]:
    """Return what prevents a run from reading and writing the two sides, the state and the vault."""
    roots = session.roots
    sides = (roots.store_conversations, roots.workspace_conversations)
    return tuple(obstacles((*sides, session.directory, *session.vault.directories())))


def obstacle_at(path: str) -> Obstacle | None:
    """Return what prevents reading or writing in an existing directory."""
    flags = inode_flags(path)
    if not flags & (_IMMUTABLE | _APPEND_ONLY) and os.access(path, _USE, **_IDS):
        return None
    place = typed(path)
    if flags & _IMMUTABLE:
        return Obstacle(path, "not writable (it is immutable)", (f"chattr -i {place}",))
    if flags & _APPEND_ONLY:
        return Obstacle(path, "not writable (it is append-only)", (f"chattr -a {place}",))
    is_readable = os.access(path, os.R_OK | os.X_OK, **_IDS)
    if is_readable and _is_on_readonly_disk(path):
        return Obstacle(path, "not writable (read-only file system)", ("remount the file system writable",))
    return Obstacle(path, "not writable" if is_readable else "not readable", (_permission(path, place),), is_readable)


def usable_names(path: str) -> list[str] | None:
    """Return the names in a directory in any order; None if something prevents reading or writing in it.

    It opens the directory once: `doctor` asks this about every conversation.
    """
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return None
    try:
        is_fixed = inode_flags(fd) & (_IMMUTABLE | _APPEND_ONLY)
        return os.listdir(fd) if not is_fixed and os.access(".", _USE, dir_fd=fd, **_IDS) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _is_on_readonly_disk(path: str) -> bool:
    try:
        return sys.platform != "win32" and bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _permission(path: str, place: str) -> str:
    """Return the command that gives the user the permission, or what to do if another user owns the directory."""
    try:
        status = os.stat(path)
    except OSError as error:
        if is_absence(error):
            return "put a directory there"
        return "check the permissions of the directories above it"
    if not stat.S_ISDIR(status.st_mode):
        return "put a directory there"
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return "check its owner and its permissions"
    return f"chmod u+rwx {place}"

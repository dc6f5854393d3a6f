"""Conversations that JP has in use: locks that a process holds, and sessions that a terminal has open.

Nothing is written, and no lock is probed: a probe would make JP believe that the lock is held
(docs/design/formats/jp.md#lock-files, docs/design/formats/jp.md#sessions).
"""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.fs.files import error_text
from reconcile.fs.paths import open_regular, status_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


PROC_LOCKS = "/proc/locks"
_SESSIONS = "sessions"
_SESSION_BYTES = 1 << 20
"""The number of bytes of a session file that are read; those of JP have a few hundred."""


def held_locks(roots: Iterable[str]) -> dict[str, int]:
    """Return the names of held lock files below the given roots, with the process number of the holder.

    The result is empty on a system that does not report locks; only Linux does.
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
    held: dict[str, int] = {}
    for root in roots:
        held |= _held_in(os.path.join(root, "locks"), holders)
    return held


def _held_in(directory: str, holders: dict[tuple[int, int], int]) -> dict[str, int]:
    held: dict[str, int] = {}
    if os.path.islink(directory):  # a pulled repository can contain one
        return held
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                status = status_at(entry.path, follow=False)
                if status is None:  # removed meanwhile
                    continue
                pid = holders.get((status.st_dev, status.st_ino))
                if entry.name.endswith(".lock") and pid is not None:
                    held[entry.name] = pid
    except OSError:
        return held
    return held


class SessionsError(ReconcileError):
    """The sessions of JP can't be read."""

    def __init__(self, path: str, error: OSError) -> None:
        words = f"{path}: it can't be read ({error_text(error)}), so that any conversation may be open in a terminal"
        super().__init__(words, "make it readable, then run again")


def active_conversations(silo: str, known: Collection[str], parse: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the conversation that each session has open: the first of its history that still exists.

    ``known`` are the existing conversations, ``parse`` reads an id. Other files are ignored.

    Raises:
        SessionsError: a session can't be read, so that any conversation may be open.
    """
    directory = os.path.join(silo, _SESSIONS)
    try:
        names = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise SessionsError(directory, error) from None
    active = (_active(os.path.join(directory, name), known, parse) for name in names if name.endswith(".json"))
    return tuple(dict.fromkeys(conversation for conversation in active if conversation is not None))


def _active(path: str, known: Collection[str], parse: Callable[[str], str | None]) -> str | None:
    try:
        with open_regular(path) as file:
            content = json.loads(file.read(_SESSION_BYTES))
        history = [parse(str(entry["id"])) for entry in content["history"]]
    except FileNotFoundError:
        return None  # closed meanwhile
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None  # a directory or a pipe
        raise SessionsError(path, error) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return next((conversation for conversation in history if conversation in known), None)

"""Which conversations JP has open in a terminal: its session files (docs/design/formats/jp.md#sessions).

They are read, never written.
"""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.fs.files import reason
from reconcile.fs.paths import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

NAME = "sessions"
LIMIT = 1 << 20
"""Bytes of a session file that are read; JP's have a few hundred."""


class SessionsError(ReconcileError):
    """What JP has open can't be told."""

    def __init__(self, path: str, error: OSError) -> None:
        words = f"{path}: it can't be read ({reason(error)}), so that any conversation may be open in a terminal"
        super().__init__(words, "make it readable, then run again")


def active_conversations(silo: str, known: Collection[str], parse: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the conversation that each session has open: the first of its history that there still is.

    ``known`` are the conversations that there are, ``parse`` reads an id. What isn't a session file says nothing.

    Raises:
        SessionsError: one of them can't be read, so that any conversation may be open.
    """
    directory = os.path.join(silo, NAME)
    try:
        names = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise SessionsError(directory, error) from None
    found = (_active(os.path.join(directory, name), known, parse) for name in names if name.endswith(".json"))
    return tuple(dict.fromkeys(conversation for conversation in found if conversation is not None))


def _active(path: str, known: Collection[str], parse: Callable[[str], str | None]) -> str | None:
    try:
        with open_regular(path) as file:
            content = json.loads(file.read(LIMIT))
        history = [parse(str(entry["id"])) for entry in content["history"]]
    except FileNotFoundError:
        return None  # closed meanwhile
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None  # a directory or a pipe
        raise SessionsError(path, error) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return next((each for each in history if each in known), None)

"""The folder of a repository in which sessions are shared (setting ``shared_sessions``).

It is at the top of the checkout, so that a project in a subdirectory has the same one: its sessions are below its own
path there. Git may write the folder at any time, also as a symbolic link.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from reconcile.config import load_settings
from reconcile.fs.git_state import checkout_top
from reconcile.fs.posix import O_CLOEXEC, O_NOFOLLOW

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request


_ATTRIBUTES = b"# The bytes of a session must not change (core.autocrlf).\n* -text\n"


class SharedFolder(NamedTuple):
    """The folder of one project, which may not exist, and the top of its checkout; without git, the project itself."""

    path: str
    top: str


def shared_folder(project: str, request: Request) -> SharedFolder:
    """Return the folder of a project. Raises `ConfigError`, and `OSError` if the checkout can't be read."""
    name, real = load_settings(request.environ, None).shared_sessions, os.path.realpath(project)
    top = os.path.realpath(checkout_top(project) or project)
    return SharedFolder(os.path.normpath(os.path.join(top, name, os.path.relpath(real, top))), top)


def keep_line_ends(project: str, request: Request) -> None:
    """Keep git from changing line ends in the folder: a checkout must have the bytes that were shared.

    A ``.gitattributes`` that is there already is left alone. Raises `ConfigError`, and `OSError`.
    """
    name = load_settings(request.environ, None).shared_sessions
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC
    with suppress(FileExistsError):
        fd = os.open(os.path.join(shared_folder(project, request).top, name, ".gitattributes"), flags, 0o666)
        with open(fd, "wb") as file:
            file.write(_ATTRIBUTES)


def folder_of(project: str, request: Request) -> str:
    """Return the folder with shared sessions; empty if there are none, or if the checkout can't be read."""
    try:
        folder = shared_folder(project, request)
    except OSError:
        return ""
    return folder.path if _has_sessions(folder) else ""


def shared_in(folder: str) -> frozenset[str]:
    """Return the records of the sessions in a folder; empty if there is none, or if it can't be read: a run says so."""
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return frozenset()
    return frozenset(name for name in names if name.endswith(".jsonl"))


def _has_sessions(folder: SharedFolder) -> bool:
    """Tell whether the folder has a session, or may have one: a run looks at it then, and reports what is in the way.

    Without a session, nothing was shared here, or git has checked out a branch without it.
    """
    try:
        with os.scandir(folder.path) as entries:
            return any(entry.name.endswith(".jsonl") for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.islink(folder.path)
    except OSError:
        return True

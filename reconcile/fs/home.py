"""The user's home directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Mapping


class HomeError(ReconcileError):
    """The user's home directory is unknown, or a path that depends on the present directory."""

    exit_code = 2


def home_directory(environ: Mapping[str, str]) -> str:
    """Return the variable, or else the directory that the system has of the user. An empty variable counts as unset.

    The root directory is no home, unless the variable names it.

    Raises:
        HomeError: it is unknown, or relative.
    """
    if home := environ.get("HOME"):
        if not os.path.isabs(home):
            raise HomeError("HOME is a relative path", "set it to an absolute path: export HOME=DIR")
        return home
    import pwd  # here: the variable is set almost always

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = ""
    if not os.path.isabs(home) or os.path.dirname(home) == home:
        raise HomeError("HOME is not set, and the system has no home directory of this user", "set it: export HOME=DIR")
    return home

"""What is at a path; and formats with fixed places: by what they are known, and where one is found."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKS: Mapping[str, tuple[str, ...]] = {
    "claudesidian": (".workspaces/", ".conversations/", ".nexus/"),
    "leslie": (".leslie/thread_relations.json", ".leslie/objectives.json"),
}
"""Any of these makes the directory that it lies in a place of that format; with a slash at its end: a directory.

A ``.leslie`` alone doesn't: that of a home directory holds settings (docs/design/formats/leslie.md#layout).
"""


_NOTHING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
"""What is said of a path where nothing is, or can be. Any other error tells nothing about what is there."""


def is_absence(error: OSError) -> bool:
    """Whether an error says that nothing is at a path, or nothing that is looked for: no directory, but a link."""
    return error.errno in _NOTHING


def status_at(path: str, *, follow: bool = True) -> os.stat_result | None:
    """The status of what is at a path; None where nothing is. Raises `OSError` where that can't be told."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError as error:
        if is_absence(error):
            return None
        raise


def is_directory(path: str) -> bool:
    """Whether a directory is there, or a link to one. Raises `OSError` where that can't be told."""
    status = status_at(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def names_in(path: str) -> list[str]:
    """The names in a directory, sorted; none where there is no directory. Raises `OSError` where that can't be told."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        if is_absence(error):
            return []
        raise


def place_of(format_name: str, start: str) -> str | None:
    """The nearest directory, from ``start`` upwards, that is a place of this format.

    Raises `OSError` where that can't be told.
    """
    return next((at for at in upwards(start) if _is(format_name, at)), None)


def format_at(start: str) -> str | None:
    """The format of these whose place is the nearest; None inside of a JP project, which is what is meant then.

    Raises `OSError` where that can't be told: one further up isn't meant where there may be one nearer.
    """
    above = upwards(start)
    if any(is_directory(os.path.join(at, ".jp")) for at in above):
        return None
    return next((format_name for at in above for format_name in MARKS if _is(format_name, at)), None)


def _is(format_name: str, at: str) -> bool:
    return any(_is_marked(os.path.join(at, mark)) for mark in MARKS[format_name])


def _is_marked(mark: str) -> bool:
    return is_directory(mark[:-1]) if mark.endswith("/") else status_at(mark, follow=False) is not None


def upwards(start: str) -> list[str]:
    """A directory and all that it lies in, the nearest first."""
    found = [start]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found

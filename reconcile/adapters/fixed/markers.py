"""Formats with fixed places: by what they are known, and where one is found."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.fs.paths import is_directory, status_at, upwards

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKS: Mapping[str, tuple[str, ...]] = {
    "claudesidian": (".workspaces/", ".conversations/", ".nexus/"),
    "leslie": (".leslie/thread_relations.json", ".leslie/objectives.json"),
}
"""Any of these makes the directory that it lies in a place of that format; with a slash at its end: a directory.

A ``.leslie`` alone doesn't: that of a home directory holds settings (docs/design/formats/leslie.md#layout).
"""


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

"""Formats with fixed places: by what they are known, and where one is found."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKS: Mapping[str, tuple[str, ...]] = {
    "claudesidian": (".workspaces/", ".conversations/", ".nexus/"),
    "leslie": (".leslie/thread_relations.json", ".leslie/objectives.json"),
}
"""Any of these makes the directory that it lies in a place of that format; with a slash at its end: a directory.

A ``.leslie`` alone doesn't: that of a home directory holds settings (formats/leslie.md 1).
"""


def place_of(format_name: str, start: str) -> str | None:
    """The nearest directory, from ``start`` upwards, that is a place of this format."""
    return next((at for at in upwards(start) if _is(format_name, at)), None)


def format_at(start: str) -> str | None:
    """The format of these whose place is the nearest; None inside of a JP project, which is what is meant then."""
    above = upwards(start)
    if any(os.path.isdir(os.path.join(at, ".jp")) for at in above):
        return None
    return next((format_name for at in above for format_name in MARKS if _is(format_name, at)), None)


def _is(format_name: str, at: str) -> bool:
    marks = (os.path.join(at, mark) for mark in MARKS[format_name])
    return any(os.path.isdir(mark) if mark.endswith("/") else os.path.lexists(mark) for mark in marks)


def upwards(start: str) -> list[str]:
    """A directory and all that it lies in, the nearest first."""
    found = [start]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found

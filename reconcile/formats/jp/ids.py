"""JP's conversation ids (docs/design/formats/jp.md#ids): the number of deciseconds since the epoch.

An id is written ``jp-c17528832001`` everywhere inside reconcile; "decimal" is its number alone.
"""

from __future__ import annotations

import re

MAXIMUM = 92233720368
"""The greatest id: as nanoseconds it must fit a signed 64-bit integer."""

_PREFIX = "jp-c"
_ACCEPTED = re.compile(r"jp-c\+?0*(?P<decimal>[0-9]{1,11})(?:-[0-9a-z]+)?")
"""With an optional workspace suffix, which JP does not compare either."""
_DIRNAME = re.compile(r"(?P<decimal>0|[1-9][0-9]{0,10})(?:-.*)?", re.DOTALL)
_DECIMAL = re.compile(r"(?P<decimal>0|[1-9][0-9]{0,10})")


def from_number(number: int) -> str | None:
    """The id of a number of deciseconds, None where JP could not hold it."""
    return f"{_PREFIX}{number}" if 0 <= number <= MAXIMUM else None


def decimal(conversation: str) -> str:
    """The number of an id, as text."""
    return conversation.removeprefix(_PREFIX)


def from_text(text: str) -> str | None:
    """The id that a text of JP's own grammar names: ``jp-c<decimal>``, with or without a suffix."""
    return _named(_ACCEPTED.fullmatch(text))


def from_decimal(text: str) -> str | None:
    """The id of a bare decimal."""
    return _named(_DECIMAL.fullmatch(text))


def from_dirname(name: str) -> str | None:
    """The id that a directory's name carries.

    ``0017528832001`` and ``+17528832001-x`` index as ids in JP but can never be loaded
    (docs/design/formats/jp.md#directory-lookup): no ids here.
    """
    return _named(_DIRNAME.fullmatch(name))


def _named(match: re.Match[str] | None) -> str | None:
    return None if match is None else from_number(int(match["decimal"]))

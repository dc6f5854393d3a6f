"""Lists and counts for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.formats.json.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 8


def some(words: Iterable[str]) -> str:
    """A list in quotes, cut short."""
    every = list(words)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(quoted(each) for each in every[:_SHOWN]) + more


def counted(count: int, what: str) -> str:
    """So many of something, in the right number."""
    return f"{count} {what}{'' if count == 1 else 's'}"

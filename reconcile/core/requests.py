"""What a command asks for instead of a plain run, as values: a saved plan says it again when it is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TakeBack:
    """``undo``: put back what a run did. ``run`` is its id."""

    run: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """``restore``: bring a version back; ``version`` is ``ID@RUN[:unit]`` or the beginning of a digest."""

    version: str


Request: TypeAlias = TakeBack | PutBack

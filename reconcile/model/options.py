"""What a run can be told by options and configuration, each a name of a few.

Loaded at every start, and loads next to nothing.
"""

from __future__ import annotations

from enum import StrEnum


class Layout(StrEnum):
    """How a workspace is laid out; the store is always flat."""

    NESTED = "nested"
    FLAT = "flat"


class Prefer(StrEnum):
    """Who wins between two real edits (``--prefer``)."""

    NEWEST = "newest"
    STORE = "store"
    WORKSPACE = "workspace"


class StreamRule(StrEnum):
    """``stream`` in the configuration: whether streams have a direction (docs/cases.md#the-direction-of-streams)."""

    DIRECTED = "directed"
    NEWEST = "newest"


class Diverged(StrEnum):
    """``diverged`` in the configuration: what happens to the losing continuation."""

    FORK = "fork"
    NEWEST = "newest"
    HOLD = "hold"


class Missing(StrEnum):
    """``missing`` in the configuration: what is not in the workspace is left out, or projected again."""

    INTENT = "intent"
    REPROJECT = "reproject"


class Take(StrEnum):
    """The decision that ``resolve`` brings for one conversation."""

    STORE = "store"
    WORKSPACE = "workspace"
    BOTH = "both"
    KEEP = "keep"

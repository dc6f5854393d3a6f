"""The choices of options and configuration, as enumerations.

Every command loads this module, so that it imports nothing expensive.
"""

from __future__ import annotations

from enum import StrEnum


class Layout(StrEnum):
    """The layout of a workspace; the store is always flat."""

    NESTED = "nested"
    FLAT = "flat"


class Prefer(StrEnum):
    """The winner of two real edits (``--prefer``)."""

    NEWEST = "newest"
    STORE = "store"
    WORKSPACE = "workspace"


class StreamRule(StrEnum):
    """The setting ``stream``: whether streams have a direction (docs/cases.md#the-direction-of-streams)."""

    DIRECTED = "directed"
    NEWEST = "newest"


class Diverged(StrEnum):
    """The setting ``diverged``: the treatment of the losing continuation."""

    FORK = "fork"
    NEWEST = "newest"
    HOLD = "hold"


class OnConflict(StrEnum):
    """The setting ``conflict``: an edit of one unit on both sides is decided by the newer time, or blocked."""

    NEWEST = "newest"
    HOLD = "hold"


class Missing(StrEnum):
    """The setting ``missing``: conversations absent from the workspace follow their intent, or are projected again."""

    INTENT = "intent"
    REPROJECT = "reproject"


class Take(StrEnum):
    """The decision of ``resolve`` for one conversation."""

    STORE = "store"
    WORKSPACE = "workspace"
    BOTH = "both"
    KEEP = "keep"

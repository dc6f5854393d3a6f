"""The one word for "not as planned"."""

from __future__ import annotations


class DriftError(Exception):
    """Something isn't as the plan expects it: the conversation is left as it is."""

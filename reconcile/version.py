"""The version of this program, which caches name as well: those of another one are not used."""

from __future__ import annotations

__version__ = "0.2.0"

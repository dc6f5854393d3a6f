"""Timestamps in both forms that JP reads, made comparable (docs/design/formats/jp.md#timestamps)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_STORED = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2}) ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]+))?")
"""The form that JP writes: UTC, no zone, a space."""
_RFC_3339 = (  # not compiled here: few timestamps are written so
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_WRITTEN_BY_JP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{1,9}")


def normalise(text: str) -> str | None:
    """Return one spelling for each instant: ``2026-01-31 12:00:00.5``, UTC, without trailing zeros.

    Two readable timestamps are the same instant exactly if their normal forms are equal. Digits after the ninth of the
    fraction are dropped, as in JP. None: JP would not read it.
    """
    match = _STORED.fullmatch(text)
    sign, hours, minutes = None, "00", "00"
    if match is None:
        match = re.fullmatch(_RFC_3339, text)
        if match is None:
            return None
        sign, hours, minutes = match[8], match[9] or "00", match[10] or "00"
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
        instant = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        instant += offset if sign == "-" else -offset
    except (ValueError, OverflowError):
        return None
    fraction = (match[7] or "")[:9].rstrip("0")
    # not strftime: it does not pad years below 1000 on every platform
    whole = instant.replace(tzinfo=None).isoformat(sep=" ")
    return f"{whole}.{fraction}" if fraction else whole


def is_readable(text: str) -> bool:
    """Tell whether there is a normal form; fast for timestamps that JP writes."""
    if not _WRITTEN_BY_JP.fullmatch(text):
        return normalise(text) is not None
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def instant_ns(text: str) -> int | None:
    """Return the instant in nanoseconds since the epoch; None if JP would not read it."""
    normal = normalise(text)
    if normal is None:
        return None
    whole, _, fraction = normal.partition(".")
    seconds = (datetime.fromisoformat(whole) - datetime(1970, 1, 1)) // timedelta(seconds=1)  # noqa: DTZ001
    return seconds * 10**9 + int(fraction.ljust(9, "0"))


def comparable(text: str) -> str:
    """Return the normal form, or the text itself if there is none; fast for timestamps that JP writes."""
    if _WRITTEN_BY_JP.fullmatch(text):
        return text.rstrip("0").rstrip(".")
    normal = normalise(text)
    return text if normal is None else normal

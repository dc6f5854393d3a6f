"""Times and ages as users read and write them."""

from __future__ import annotations

import re
from datetime import datetime

import click

from reconcile.formats.jp.times import instant_ns

_UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400, "m": 30 * 86400, "y": 365 * 86400}


def format_time(time_ns: int) -> str:
    """Return a time (ns since the epoch) in the local time zone, to the second; outside of the calendar, the number."""
    try:
        return datetime.fromtimestamp(time_ns // 10**9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"


def parse_time(text: str | None, now_ns: int) -> int | None:
    """Return a time in ns since the epoch, from a date, a time as JP reads it, or an age before ``now_ns``.

    Raises:
        click.UsageError: the text is none of these.
    """
    if text is None:
        return None
    if re.fullmatch(r"\d{1,6}[hdwmy]", text):
        return now_ns - parse_age(text)
    time_ns = instant_ns(f"{text} 00:00:00" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else text)
    if time_ns is None:
        raise click.UsageError(
            f"found the time {text!r}, expected 2026-01-31, 2026-01-31T12:00:00Z, or an age such as 3d"
        )
    return time_ns


def parse_age(text: str) -> int:
    """Return an age such as ``12h``, ``30d``, ``8w``, ``6m`` or ``1y`` in ns; a month has 30 days, a year 365.

    Raises:
        click.UsageError: the text is no age.
    """
    match = re.fullmatch(r"(\d{1,6})([hdwmy])", text)
    if match is None:
        raise click.UsageError(f"found the age {text!r}, expected a number and h, d, w, m or y: 12h, 30d, 6m")
    return int(match[1]) * _UNITS[match[2]] * 10**9

"""Timestamps: docs/design/formats/jp.md#timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats.jp import times

NOON = "2026-01-31 12:00:00"

READ = [
    ("JP's own, no fraction of a second", "2026-01-31 12:00:00.0", NOON),
    ("JP's own, with a fraction", "2026-01-31 12:00:00.25", NOON + ".25"),
    ("trailing zeros", "2026-01-31 12:00:00.2500", NOON + ".25"),
    ("the fraction is missing", "2026-01-31 12:00:00", NOON),
    ("one-digit fields", "2026-1-31 12:0:0.5", NOON + ".5"),
    ("digits past the ninth are dropped", "2026-01-31 12:00:00.1234567899", NOON + ".123456789"),
    ("RFC 3339", "2026-01-31T12:00:00Z", NOON),
    ("RFC 3339 in small letters", "2026-01-31t12:00:00z", NOON),
    ("RFC 3339 with a space", "2026-01-31 12:00:00Z", NOON),
    ("an offset to the east", "2026-01-31T14:30:00.5+02:30", NOON + ".5"),
    ("an offset to the west, over midnight", "2026-01-30T23:00:00-13:00", NOON),
    ("a year with leading zeros", "0999-01-01 00:00:00.0", "0999-01-01 00:00:00"),
]
NOT_READ = [
    ("a zone of three parts", "2026-01-31 12:00:00 +00:00:00"),
    ("T without a zone", "2026-01-31T12:00:00"),
    ("one-digit fields in RFC 3339", "2026-1-31T12:00:00Z"),
    ("a month that does not exist", "2026-13-01 12:00:00.0"),
    ("a day that does not exist", "2026-02-30 12:00:00.0"),
    ("an offset that does not exist", "2026-01-31T12:00:00+24:00"),
    ("before the first year, by its offset", "0001-01-01T00:00:00+01:00"),
    ("a date alone", "2026-01-31"),
    ("a number", "1769860800"),
    ("text after it", "2026-01-31 12:00:00.0 "),
    ("other digits", "٢٠٢٦-01-31 12:00:00.0"),
    ("empty", ""),
]


@pytest.mark.parametrize(("text", "normal"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_read(text: str, normal: str) -> None:
    assert times.normalise(text) == normal
    assert times.comparable(text) == normal
    assert times.is_readable(text)


@pytest.mark.parametrize("text", [row[1] for row in NOT_READ], ids=[row[0] for row in NOT_READ])
def test_not_read(text: str) -> None:
    assert times.normalise(text) is None
    assert not times.is_readable(text)


def test_what_cannot_be_read_stays_as_it_stands() -> None:
    assert times.comparable("yesterday") == "yesterday"


@given(
    st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)),  # noqa: DTZ001
    st.integers(min_value=-23 * 60 - 59, max_value=23 * 60 + 59),
)
def test_both_forms_of_an_instant_are_equal(instant: datetime, offset: int) -> None:
    stored = instant.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    zoned = instant.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=offset)))
    normal = times.normalise(stored)
    assert normal is not None
    assert times.normalise(zoned.isoformat()) == normal
    assert times.comparable(stored) == normal
    assert times.normalise(normal) == normal


@given(st.from_regex(r"[0-9]{3,5}-[0-9]{1,2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,10})?", fullmatch=True))
def test_what_can_be_read_has_a_normal_form(text: str) -> None:
    assert times.is_readable(text) == (times.normalise(text) is not None)

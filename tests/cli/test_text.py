"""Text for a terminal: widths, and nothing that acts instead of being shown."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.fs.locks import Holder
from reconcile.secrets.detection import with_masked_secrets
from tests.cli.modules import module
from tests.support.planted import KINDS

style = module("output.text")

SHOWN = {
    "plain text": ("a title", "a title"),
    "letters, signs and pictures of the world": ("Größe ¿ 東京 ę🎉", "Größe ¿ 東京 ę🎉"),
    "combining marks": ("e\u0301", "e\u0301"),
    "a backslash": ("a\\b", "a\\b"),
    "colours": ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    "a title for the window": ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
    "a new line and a tab": ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
    "a backspace and DEL": ("a\b\x7f", "a\\x08\\x7f"),
    "a control character in one byte": ("\x9b31m", "\\x9b31m"),
    "an override of the direction": ("gpj\u202eexe", "gpj\\u202eexe"),
    "isolates and marks of the direction": ("\u2066a\u2069\u200f\u061c", "\\u2066a\\u2069\\u200f\\u061c"),
    "what has no width": ("a\u200b\u200db\ufeff\u00ad", "a\\u200b\\u200db\\ufeff\\xad"),
    "other ends of a line": ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
    "a byte that is no text": ("a\udcffb", "a\\xffb"),
    "half a character": ("\ud83d", "\\ud83d"),
    "for private use": ("\ue000", "\\ue000"),
    "nothing yet": ("\u0378", "\\u0378"),
    "tags": ("\U000e0041", "\\ue0041"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_title_with_a_secret_is_masked(kind: str) -> None:
    """Also where only the first look, which loads nothing, could have missed it."""
    chance = random.Random(kind)
    for _ in range(20):
        secret = KINDS[kind](chance)
        for text in (f"try {secret} here", secret.replace("\n", " "), f"a: {secret}, (b)", f'x="{secret}"'):
            assert style.masked(text) == with_masked_secrets(text)
            assert style.visible(text) == style.clean(style.masked(text))


@given(
    st.sampled_from(("password", "api_key", "TOKEN", "Authorization", "x-api-key", "db_pass", "PRIVATE KEY-----")),
    st.sampled_from(("=", ": ", ", ", " => ", ":", "\" = '")),
    st.text("abcXYZ0189_-+/.@:", min_size=0, max_size=30),
)
def test_the_first_look_misses_no_secret(name: str, between: str, value: str) -> None:
    for text in (f"{name}{between}{value}", f"x {name}{between}{value} y", f"db://me:{value}@host/{name}"):
        assert style.masked(text) == with_masked_secrets(text)


def test_the_check_for_secrets_is_loaded_for_a_suspicious_title_only() -> None:
    shows = "from reconcile_cli.output.text import visible; visible({!r})"
    code = f"import sys; {shows}; print('reconcile.secrets' in sys.modules)"
    for text, is_loaded in (("Fix the tests of the parser", "False"), ("the key AKIAIOSFODNN7QXAMPLB", "True")):
        ran = subprocess.run([sys.executable, "-c", code.format(text)], capture_output=True, check=True, text=True)
        assert ran.stdout.strip() == is_loaded


@pytest.mark.parametrize(("text", "shown"), SHOWN.values(), ids=SHOWN)
def test_clean(text: str, shown: str) -> None:
    assert style.clean(text) == shown


ANY = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY)
def test_what_is_clean_can_be_printed_and_stays_as_it_is(text: str) -> None:
    shown = style.clean(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert shown.encode().decode() == shown
    assert style.clean(shown) == shown


WIDTHS = {
    "nothing": ("", 0),
    "letters": ("abc", 3),
    "wide characters": ("東京", 4),
    "full width": ("\uff21", 2),
    "half width": ("\uff71", 1),
    "a combining mark takes no column": ("e\u0301", 1),
    "a picture": ("🎉", 2),
}


@pytest.mark.parametrize(("text", "columns"), WIDTHS.values(), ids=WIDTHS)
def test_width(text: str, columns: int) -> None:
    assert style.width(text) == columns


CUT = {
    "it fits": ("abc", 3, "abc"),
    "one too many": ("abcd", 3, "ab…"),
    "one column": ("abc", 1, "…"),
    "wide, and it fits": ("東京", 4, "東京"),
    "wide, and cut between": ("東京都", 5, "東京…"),
    "wide, and half of one would fit": ("東京都", 4, "東…"),
    "a mark stays with its letter": ("e\u0301fg", 2, "e\u0301…"),
}


@pytest.mark.parametrize(("text", "columns", "shown"), CUT.values(), ids=CUT)
def test_shorten(text: str, columns: int, shown: str) -> None:
    assert style.shorten(text, columns) == shown


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ('"Release notes"', 15, '"Release notes"'),
        ('"Release notes"', 10, '"Release…"'),
        ('"Release notes"', 3, '"…"'),
        ('"\u6771\u4eac\u90fd\u306e"', 8, '"\u6771\u4eac…"'),
        ('["a", "b"]', 6, '["a",…'),
        ('"', 5, '"'),
    ],
)
def test_a_text_in_quotes_keeps_both_of_them(text: str, columns: int, shown: str) -> None:
    assert style.shorten_value(text, columns) == shown


@given(ANY, st.integers(1, 20))
def test_what_is_shortened_fits_and_is_a_beginning(text: str, columns: int) -> None:
    shown = style.shorten(text, columns)
    assert style.width(shown) <= columns
    assert shown == text or text.startswith(shown.removesuffix("…"))


@given(ANY, st.integers(0, 20))
def test_what_is_padded_is_as_wide_as_asked_for_or_as_it_was(text: str, columns: int) -> None:
    assert style.width(style.pad(text, columns)) == max(columns, style.width(text))
    assert style.pad(text, columns).startswith(text)


SIZES = {
    0: "0 B",
    999: "999 B",
    1000: "1.0 kB",
    1_250_000: "1.2 MB",
    999_949: "999.9 kB",
    999_999: "1.0 MB",
    999_999_999: "1.0 GB",
    5_000_000_000_000: "5000.0 GB",
}


@pytest.mark.parametrize(("count", "words"), SIZES.items())
def test_size(count: int, words: str) -> None:
    assert style.size(count) == words


CHOICES = {
    "always, wherever it goes": ("always", False, {}, True),
    "never": ("never", True, {}, False),
    "at a terminal": ("auto", True, {"TERM": "xterm"}, True),
    "into a file": ("auto", False, {"TERM": "xterm"}, False),
    "NO_COLOR": ("auto", True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
    "an empty NO_COLOR says nothing": ("auto", True, {"TERM": "xterm", "NO_COLOR": ""}, True),
    "a dumb terminal": ("auto", True, {"TERM": "dumb"}, False),
    "asked for in spite of NO_COLOR": ("always", True, {"NO_COLOR": "1"}, True),
}


@pytest.mark.parametrize(("when", "terminal", "environ", "colored"), CHOICES.values(), ids=CHOICES)
def test_colours(
    when: str, terminal: bool, environ: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    chosen = style.Style.choose(when)
    assert chosen.colored is colored
    assert chosen("text", "red", bold=True) == ("\x1b[31m\x1b[1mtext\x1b[0m" if colored else "text")


def test_what_lies_deep_says_how_deep_and_is_no_further_to_the_right() -> None:
    assert [style.indented(depth, "x") for depth in (0, 1, 16)] == ["x", "  x", " " * 32 + "x"]
    assert style.indented(17, "x") == " " * 32 + "17: x"
    assert style.indented(4999, "x") == " " * 32 + "4999: x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in /home/me/a b, run: cd /home/me/x", "in ~/a b, run: cd ~/x"),
        ("/home/me: is it", "~: is it"),
        ("(in /home/me)", "(in ~)"),
        ("cd '/home/me/a b'", "cd '/home/me/a b'"),
        ("--store=/home/me/x", "--store=/home/me/x"),
        ("/home/meeting/x and /x/home/me/y", "/home/meeting/x and /x/home/me/y"),
    ],
)
def test_a_path_in_a_message(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell expands the sign at the beginning of a word only: commands are copied from messages."""
    monkeypatch.setenv("HOME", "/home/me")
    assert style.message_text(text) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "just now"), (59, "just now"), (60, "1 minute ago"), (7199, "1 hour ago"), (172800, "2 days ago")],
)
def test_an_age(seconds: int, text: str) -> None:
    assert style.age_text(seconds * 10**9) == text


def test_times_of_events_and_messages_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        for written in ("2026-01-31 12:00:00.5", "2026-01-31T12:00:00Z", "2026-01-31T14:00:00.123456789+02:00"):
            assert style.local_event_time(written) == "2026-01-31 21:00:00", written
        for other in ("", "yesterday", "9999-12-31T23:59:59"):
            assert style.local_event_time(other) == other.replace("T", " ")
        message = "store 2026-01-31 12:00:00.250Z; workspace 2026-01-31 12:00:01Z; 2026-01-31T12:00:00Z"
        told = "store 2026-01-31 21:00:00.250; workspace 2026-01-31 21:00:01; 2026-01-31T12:00:00Z"
        assert style.with_local_times(message) == told
        holder = Holder(7, "reconcile watch", "2026-01-31T12:00:00+00:00")
        assert style.with_local_times(f"({holder})") == "(process 7, `reconcile watch`, since 2026-01-31 21:00:00)"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()

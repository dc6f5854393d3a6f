"""A transcript as Markdown."""

from __future__ import annotations

from reconcile.inspect.markdown import short_time, to_markdown
from reconcile.model.transcript import Speaker, Transcript, Turn


def test_a_transcript_is_a_title_a_heading_and_its_turns() -> None:
    turns = (
        Turn(1, Speaker.SYSTEM, "turn_start", "2026-05-13 09:00:00.0", "", "a"),
        Turn(2, Speaker.USER, "chat_request", "", "Hello\n\nthere", "b"),
    )
    text = to_markdown(Transcript("A title", (("labels", "x"),), turns, ("events.json: broken",)))
    assert text == (
        "# A title\n\n- labels: x\n\n> note: events.json: broken\n\n"
        "*1. System (turn_start, 2026-05-13 09:00:00)*\n\n## 2. User (chat_request)\n\nHello\n\nthere\n"
    )


def test_a_transcript_of_nothing_has_a_heading() -> None:
    assert to_markdown(Transcript(None)) == "# (no title)\n"


def test_times_are_shown_to_the_second() -> None:
    assert short_time("2026-11-21T20:21:30.400Z") == "2026-11-21T20:21:30Z"
    assert short_time("2026-05-13 09:00:00") == "2026-05-13 09:00:00"


def test_no_title_value_or_kind_makes_a_line_of_its_own() -> None:
    turns = (Turn(2, Speaker.USER, "chat\n## 1. User", "", "", "a"),)
    text = to_markdown(Transcript("A\n> note: forged", (("labels", "x\n# y"),), turns, ("a\nb",)))
    lines = ["# A > note: forged", "", "- labels: x # y", "", "> note: a b", "", "*2. User (chat ## 1. User)*"]
    assert text.splitlines() == lines

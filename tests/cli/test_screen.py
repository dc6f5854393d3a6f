"""What is printed fits the terminal, in columns and not in characters; into a pipe nothing is cut."""

from __future__ import annotations

import shlex
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconcile.model.commands import typed
from reconcile.model.plan import Action, Heading, Item, Kind, Note, Plan
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Place, Side
from tests.cli.modules import module

screen, tables, text, render = (module(f"output.{name}") for name in ("screen", "tables", "text", "plan_text"))
WIDTHS = (60, 80, 120)
TITLES = (
    "Release notes",
    "A title of many words that is longer than any terminal is wide, and then some more of it to be sure",
    "\u6771\u4eac\u90fd\u306e\u5929\u6c17\u306f\u6674\u308c\u3067\u3059" * 8,
    "Cafe\u0301 Mu\u0308nchen " * 9,
    "\u2764\ufe0f\U0001f44d\U0001f3fd 1\ufe0f\u20e3 \U0001f1e9\U0001f1ea " * 9,
    "\ud55c\uad6d\uc5b4 \u1100\u1161\u11a8 " * 9,
)

_IN_THE_ONE_BEFORE = ("\u1160-\u11ff", "\U0001f3fb-\U0001f3ff")
"""Vowels and last consonants of Hangul, and skin tones."""


def columns_of(line: str) -> int:
    """Return the columns of a line, counted apart from the program: an emoji takes two at most."""
    total = 0
    for char in line:
        joins = unicodedata.category(char) in ("Mn", "Me") and char != "\ufe0f"
        joins = joins or any(pair[0] <= char <= pair[2] for pair in _IN_THE_ONE_BEFORE)
        total += 0 if joins else 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return total


WORDS = st.lists(st.text(st.sampled_from("abc\u6771e\u0301/"), min_size=1, max_size=30), max_size=12).map(" ".join)


@given(WORDS, st.integers(20, 90), st.integers(0, 6))
def test_wrapped_lines_fit_and_lose_nothing(words: str, columns: int, indent: int) -> None:
    lines = screen.wrap(words, columns, " " * indent)
    pieces = max((text.width(piece) for piece in words.replace("/", "/ ").split()), default=0)
    assert all(text.width(line) <= max(columns, indent + pieces) for line in lines)
    joined = "".join(line[indent:] if line.startswith(" " * indent) else line for line in lines)
    assert joined.replace(" ", "") == words.replace(" ", "")
    assert screen.wrap(words, None, "  ") == [f"  {words}"]


def test_a_text_of_wide_characters_is_broken_between_them_and_not_before_a_full_stop() -> None:
    words = "\u6771\u4eac\u90fd" * 8 + "\u3002"
    lines = screen.wrap(f"see {words} (jp-c17780300000)", 20, "", "  ")
    assert all(columns_of(line) <= 20 for line in lines[:-1])
    assert "".join(lines).replace(" ", "") == f"see{words}(jp-c17780300000)"
    assert lines[0] == "see " + words[:8]
    assert not any(line.strip().startswith("\u3002") for line in lines)
    assert screen.wrap("\u6771\u4eac abc", 7) == ["\u6771\u4eac", "abc"], "a short word stays whole"


def test_long_texts_of_wide_characters_cost_little() -> None:
    started = time.process_time()
    lines = screen.wrap("\u6771\u4eac\u90fd " * 20_000, 80)
    assert len("".join(lines).replace(" ", "")) == 60_000
    assert "".join(screen.wrap("\u00e9" * 60_000, 80)) == "\u00e9" * 60_000
    assert time.process_time() - started < 2


def test_ids_and_words_are_never_broken() -> None:
    identifier = "jp-c" + "1" * 60
    assert identifier in screen.wrap(f"see {identifier} for more", 20)
    assert screen.wrap("workspace:a-long-name/conversations/another-name", 30, "  ") == [
        "  workspace:a-long-name/",
        "  conversations/another-name",
    ]


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        (
            "the workspace has it: `reconcile diff x` shows it",
            36,
            ["the workspace has it:", "`reconcile diff x` shows it"],
        ),
        ("hint: show both sides: reconcile diff x", 36, ["hint: show both sides:", "reconcile diff x"]),
        (
            "`reconcile diff a-very-long-title x` shows it",
            20,
            ["`reconcile diff", "a-very-long-title x`", "shows it"],
        ),
        (
            "hint: reconcile diff x, then reconcile resolve x",
            20,
            ["hint: reconcile diff", "x, then reconcile", "resolve x"],
        ),
    ],
)
def test_a_command_in_a_text_is_not_broken(text: str, columns: int, lines: list[str]) -> None:
    """One that a line has no room for is, and one whose end is not known."""
    assert screen.wrap(text, columns) == lines


def test_a_long_command_can_be_copied() -> None:
    command = "reconcile resolve jp-c17780400000 --take store --workspace /home/me/a/project"
    lines = screen.command_lines(command, 60, "      ")
    assert len(lines) > 1
    assert all(len(line) <= 60 for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert " ".join(line.removesuffix("\\").strip() for line in lines) == command
    assert screen.command_lines(command, None, "  ") == [f"  {command}"]


def test_a_command_is_not_broken_in_a_quoted_word() -> None:
    words = ["reconcile", "resolve", "a title with many words", "it's one of two ends", "--take", "store"]
    lines = screen.command_lines(f"{typed(*words[:4])} --take store", 30, "  ")
    assert len(lines) > 3
    assert [word for line in lines for word in shlex.split(line.removesuffix(" \\"))] == words


def long_plan() -> Plan:
    actions, outline, items = [], [], []
    for number, title in enumerate(TITLES * 4):
        conversation = f"jp-c1778000000{number}"
        name = f"1778000000{number}-a-directory-with-a-rather-long-name-of-its-own"
        base = Action(
            id=str(number),
            kind=Kind.COPY,
            conversation=conversation,
            title=title,
            unit="stream",
            reason=Reason.DUPLICATE,
            target=Place(Side.STORE, f"{name}/events.json"),
            bytes=123_456,
            events=(1, 3),
        )
        directory = Place(Side.WORKSPACE, f"parent/conversations/{name}")
        actions += [
            base,
            replace(base, kind=Kind.PROJECT, unit="conversation", target=directory, reason=Reason.REPROJECTED),
            replace(base, kind=Kind.MOVE, source=Place(Side.WORKSPACE, name), target=directory),
            replace(base, kind=Kind.REMOVE_STALE, unit="conversation", target=directory),
            replace(base, kind=Kind.AGE, reason=Reason.BEHIND),
        ]
        outline.append(Heading(conversation, title, number))
        message = f"workspace:{name}/metadata.json: a sentence that is too long for one line of any terminal here"
        items.append(
            Item(
                conversation=conversation,
                title=title,
                unit="metadata",
                reason=Reason.INVALID,
                message=message,
                resolve=(f"reconcile resolve {conversation} --take store",),
            )
        )
    notes = tuple(Note(conversation="jp-c1", reason=Reason.CYCLE, message="many words " * 20) for _ in range(3))
    return Plan(
        layout="nested",
        actions=tuple(actions),
        outline=tuple(outline),
        held=tuple(items),
        aside=tuple(items),
        notes=notes,
    )


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("verbose", [True, False])
def test_no_line_of_a_plan_is_wider_than_the_terminal(columns: int, verbose: bool) -> None:
    style = text.Style(colored=False, columns=columns)
    lines = list(render.PlanText(long_plan(), style, verbose=verbose, sides=" --workspace /home/me/project").lines())
    assert [line for line in lines if columns_of(line) > columns] == []
    assert any("jp-c17780000005" in line for line in lines)


def test_into_a_pipe_no_line_is_cut() -> None:
    shown = "\n".join(render.PlanText(long_plan(), text.Style(colored=False), verbose=True).lines())
    assert TITLES[1] in shown
    assert TITLES[2] in shown
    assert "any terminal here" in shown
    assert " \\\n" not in shown


def test_a_column_without_a_cell_is_left_out_if_it_may_be() -> None:
    head = (tables.Column("Title"), tables.Column("State"), tables.Column("Root", drops=True))
    style = text.Style(colored=False)
    assert tables.table(head, [("A", "", ""), ("B", "", "")], style)[0] == "Title  State"
    assert tables.table(head, [("A", "", ""), ("B", "", "1")], style)[0] == "Title  State  Root"
    narrow = text.Style(colored=False, columns=8)
    assert tables.table(head, [("A", "", ""), ("B", "in sync", "")], narrow)[0] == "Title  State", "no room for either"


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_of_a_table_is_wider_than_the_terminal(columns: int) -> None:
    head = (
        tables.Column("Title", shrinks=True),
        tables.Column("Id"),
        tables.Column("Events", right=True),
        tables.Column("Last activity", drops=True),
        tables.Column("Where"),
        tables.Column("Root", drops=True),
    )
    rows = [
        (title, f"jp-c1778000000{number}", "12", "2026-05-16 09:03:00", "workspace", "jp-c17780000000")
        for number, title in enumerate(TITLES)
    ]
    lines = tables.table(head, rows, text.Style(colored=False, columns=columns))
    assert [line for line in lines if columns_of(line) > columns] == []
    assert all(row[1] in line for row, line in zip(rows, lines[1:], strict=True)), "ids are whole"
    assert ("Root" in lines[0]) is (columns == 120)
    whole = tables.table(head, rows, text.Style(colored=False))
    assert all(title in line for title, line in zip(TITLES, whole[1:], strict=True))
    assert len({columns_of(line.partition("jp-c")[0].replace("\ufe0f", "")) for line in whole[1:5]}) == 1


def test_a_time_is_cut_to_its_day_and_columns_go_before_the_title_is_cut_short() -> None:
    head = (
        tables.Column("Title", shrinks=True),
        tables.Column("Id"),
        tables.Column("Events", right=True, drops=True),
        tables.Column("Last activity", drops=True, brief=10),
        tables.Column("State", shrinks=True, drops_last=True),
    )
    rows = [("The plan of the long way home", "jp-c17780000000", "12", "2026-05-16 09:03:00", "up to date")]
    shown = {}
    for columns in (90, 80, 60, 50, 30):
        lines = tables.table(head, rows, text.Style(colored=False, columns=columns))
        assert [line for line in lines if columns_of(line) > columns] == []
        shown[columns] = lines[1]
    assert shown == {
        90: "The plan of the long way home  jp-c17780000000      12  2026-05-16 09:03:00  up to date",
        80: "The plan of the long way ho…  jp-c17780000000      12  2026-05-16     up to date",
        60: "The plan of the long way home  jp-c17780000000  up to date",
        50: "The plan of the long…  jp-c17780000000  up to date",
        30: "The plan of …  jp-c17780000000",
    }


def removal(number: int, depth: int, reason: Reason = Reason.WITH_ANCESTOR) -> tuple[Action, Heading]:
    conversation = f"jp-c{number}"
    action = Action(
        id=str(number),
        kind=Kind.REMOVE_STALE,
        conversation=conversation,
        title=f"Title {number}",
        unit="conversation",
        reason=reason,
        target=Place(Side.WORKSPACE, "/conversations/".join(f"{each}-a" for each in range(number + 1))),
        bytes=1000,
    )
    return action, Heading(conversation, action.title, depth)


def test_removed_descendants_are_one_line_with_a_count() -> None:
    pairs = [removal(0, 0, Reason.LOCALIZED), *(removal(number, number) for number in range(1, 41)), removal(41, 0)]
    plan = Plan(layout="nested", actions=tuple(a for a, _ in pairs), outline=tuple(h for _, h in pairs))
    style = text.Style(colored=False, columns=80)
    shown = [line for line in render.PlanText(plan, style, verbose=False).lines() if line]
    assert shown == [
        "Title 0  jp-c0",
        "  remove        from workspace  1.0 kB  made local",
        "  remove        from workspace  40 descendants, 40.0 kB (-v lists them)",
        "Title 41  jp-c41",
        "  remove        from workspace  1.0 kB  in a removed directory",
    ]
    listed = "\n".join(render.PlanText(plan, style, verbose=True).lines())
    assert all(f"Title {number}  jp-c{number}" in listed for number in range(42))

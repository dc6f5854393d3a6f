"""The scenario format itself: what it stands for, and what it says of mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.scenarios.line_reader import DAY_NS, ScenarioError, show_time, time_ns
from tests.support.scenarios.listing import read_tree, show_tree
from tests.support.scenarios.player import play
from tests.support.scenarios.pure_level import PureLevel
from tests.support.scenarios.scenario import read_scenario
from tests.support.scenarios.trees import Blob, Tree

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = 60 * 10**9


def content(tree: Tree, path: str) -> str:
    entry = tree[path]
    assert isinstance(entry, Blob)
    return entry.content.decode()


def test_a_line_stands_for_the_bytes_that_jp_writes() -> None:
    tree = read_tree(['1-a  metadata 09:00 title "Ä" local parent 2  stream 09:30 [1 2x] b3'])
    assert content(tree, "1-a/metadata.json") == (
        '{\n  "title": "Ä",\n  "last_activated_at": "2025-01-01 00:00:00.0",\n'
        '  "local": true,\n  "parent_id": "jp-c2"\n}\n'
    )
    assert content(tree, "1-a/base_config.json") == '{\n  "base": 3\n}\n'
    assert content(tree, "1-a/events.json") == (
        '[\n  {\n    "timestamp": "2025-01-01 00:01:00.0",\n    "type": "chat_request",\n'
        '    "content": "Message 1"\n  },\n  {\n    "timestamp": "2025-01-01 00:02:00.0",\n'
        '    "type": "chat_request",\n    "content": "Message 2x"\n  }\n]\n'
    )
    assert tree["1-a/events.json"] == Blob(content(tree, "1-a/events.json").encode(), DAY_NS + 570 * MINUTE)


@pytest.mark.parametrize(
    "lines",
    [
        ["1  metadata 09:00  stream 09:00 []"],
        ['1-a  metadata 09:00 title "a b" pinned_at="2025-01-01 00:00:00.0" labels={"x": ""}'],
        ['1-a  metadata 09:00 title "" parent null', '2-b  metadata 09:00 parent raw "1"'],
        ["1-a  stream 09:00 legacy [1 2] b2", "2-b  stream 09:00 [1] b0@08:00:00.5", "3-c  stream 09:00 nobase [1]"],
        ["1-a/conversations/2-b  metadata 09:00", '1-a/metadata.json  09:00 "[]\\n"'],
        ['1-a/events.json  09:00 "\\u0000\\n"', "1-a/link  -> 2-b", "1-a/conversations/", '"a b"  09:00 "x"'],
    ],
)
def test_what_is_written_is_read_again(lines: list[str]) -> None:
    tree = read_tree(lines)
    assert read_tree(show_tree(tree)) == tree


@pytest.mark.parametrize("text", ["09:30", "00:00:01", "23:59:59.000000001", "08:59:58.5", "@-1"])
def test_times(text: str) -> None:
    assert show_time(time_ns(text)) == text


MISTAKES = [
    ("given stores\n", 3, "found 'given stores', expected given"),
    ("given store\n  1-a metadta 09:00\n", 4, "found 'metadta', expected metadata, stream"),
    ("given store\n  1-a metadata 9:00\n", 4, "found '9:00', expected a time of day"),
    ("given store\n  1-a stream 09:00 [1 two]\n", 4, "found the event 'two'"),
    ("$ reconcile --prefer neither\n", 3, "argument --prefer: invalid Prefer value: 'neither'"),
    ("$ reconcile resolve 1\n", 3, "expected ids and --take or --keep"),
    ("$ reconcile\n  11 copies 2 stream edited-workspace\n", 4, "expected CASE KIND ID UNIT REASON"),
    ("given silo\n", 3, "found 'given silo', expected given"),
    ("given id abcde\n", 3, "found 'abcde', expected a text in quotes"),
    ("lock 1 store\n", 3, "found 'lock 1 store', expected given, $, then or one of: forget,"),
    ("  1-a/\n", 3, "found an indented line"),
]


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES, ids=[row[2] for row in MISTAKES])
def test_mistakes_name_the_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "a.scenario"
    path.write_text(f"A sentence.\n\n{text}", encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_a_wrong_expectation_is_shown_as_a_diff_and_can_be_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "a.scenario"
    before = 'A sentence.\n\ngiven workspace\n  1-a  metadata 09:00 title "A"  stream 09:00 [1]\n$ reconcile\n'
    path.write_text(f"{before}  (nothing)\nthen store\nthen workspace unchanged\n", encoding="utf-8")
    played = play(read_scenario(path), PureLevel())
    assert "-  (nothing)" in played.complaint().splitlines()
    assert "+  2 copy 1 conversation external +1 -> store:1-a" in played.complaint().splitlines()
    path.write_text(played.text(), encoding="utf-8")
    assert not play(read_scenario(path), PureLevel()).complaint()


def test_a_change_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "a.scenario"
    path.write_text("A sentence.\n\ngiven store\n  - 1-a\n", encoding="utf-8")
    assert "line 4: found nothing at '1-a'" in play(read_scenario(path), PureLevel()).complaint()

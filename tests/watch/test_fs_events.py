"""What the path of an event says."""

from __future__ import annotations

import pytest

from reconcile.formats import get_format
from reconcile.watch.fs_events import target_of

ONE, TWO = "jp-c17000000001", "jp-c17000000002"
A, B = "17000000001-a", "17000000002-b"


@pytest.mark.parametrize(
    ("path", "conversation", "directories"),
    [
        (f"{A}/events.json", ONE, [A]),
        (f"{A}/notes/x.md", ONE, [A]),
        (f"{A}/.metadata.json.tmp", ONE, [A]),
        (A, ONE, [A]),
        (f"{A}/conversations", ONE, [A, f"{A}/conversations"]),
        (f"{A}/conversations/{B}", TWO, [f"{A}/conversations/{B}"]),
        (f"{A}/conversations/{B}/metadata.json", TWO, [f"{A}/conversations/{B}"]),
        (f".archive/{A}", ONE, [f".archive/{A}"]),
        (f".archive/{A}/events.json", ONE, [f".archive/{A}"]),
        (f"{A}/conversations/.trash/{B}", TWO, [f"{A}/conversations/.trash/{B}"]),
        (".trash", "", [".trash"]),
        (f"{A}/conversations/.archive", ONE, [f"{A}/conversations/.archive"]),
        ("README.md", "", [""]),
        (f"{A}/conversations/README.md", ONE, [f"{A}/conversations"]),
        ("", "", [""]),
    ],
)
def test_where_to_look_again(path: str, conversation: str, directories: list[str]) -> None:
    target = target_of(get_format("jp"), path)
    assert target is not None
    assert (target.conversation, list(target.directories)) == (conversation, directories)


@pytest.mark.parametrize("path", [".staging-x", ".reconcile-1-2/3/events.json", f"{A}/conversations/.tmp/x"])
def test_nobodys_business(path: str) -> None:
    assert target_of(get_format("jp"), path) is None

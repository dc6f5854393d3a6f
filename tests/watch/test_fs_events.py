"""What the path of an event says, and what happens to the events after an error in watchdog."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.fs.mutations import Root
from reconcile.model.snapshot import Side
from reconcile.watch.fs_events import EventListener, target_of
from tests.support.projects.watcher import until

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.long
def test_after_an_error_in_a_thread_of_watchdog_events_count_as_lost(tmp_path: Path) -> None:
    """Its tables of directories are wrong after some renames, and the removal of such a directory ends its thread."""
    events: list[str] = []
    lost: list[str] = []
    with closing(Root(str(tmp_path))) as root:
        listener = EventListener(
            {Side.STORE: str(tmp_path)}, lambda _, path: events.append(path), lambda: lost.append("")
        )
        listener.start()
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        until(lambda: "b" in events)
        if not root.exchange("a", "b"):
            pytest.skip("this file system does not exchange names")
        time.sleep(1)
        for name in ("b", "a"):
            (tmp_path / name).rmdir()
        time.sleep(1)
        (tmp_path / "new").touch()
        until(lambda: "new" in events or lost)
        listener.stop()

"""What `reconcile watch` shows to people (docs/watch.md): a line for each thing, and how things stand."""

from __future__ import annotations

import os
import pty
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.terminal import Session, at_terminal, watched_at_terminal
from tests.support.projects.three_conversations import SECOND_ID, three
from tests.support.projects.watcher import Watching, grow
from tests.support.projects.world import command, events, write_conversation

if TYPE_CHECKING:
    from tests.support.projects.world import World

_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_TAKEN_BACK = re.compile(r"[^\n]*\r\x1b\[2K")


def lines(shown: str) -> list[str]:
    """Return the lines that are left to be read; the last is how things stand."""
    return [_CLOCK.sub("TIME", line).rstrip() for line in _TAKEN_BACK.sub("", shown).split("\n")]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")


def test_a_line_for_each_thing_done_and_how_things_stand(watched: World) -> None:
    grow(watched.store, SECOND_ID)
    code, shown = watched_at_terminal(watched.project, "edited in the store")
    assert code == 0
    assert shown.startswith("scanning both sides\r")
    assert "watching 3 conversations \N{MIDDLE DOT} last change" in shown
    first, second, *rest = lines(shown)
    assert first == "TIME  watching 3 conversations"
    assert re.fullmatch(r"TIME  It +-> workspace +events +.* B +\+2 events +edited in the store", second)
    assert rest == ["TIME  stopped", ""]


def test_much_to_do_at_first(world: World) -> None:
    """So many lines as a screen has room for, and the sum; how things stand is one line all the while."""
    for number in range(80):
        write_conversation(world.workspace / f"{17500000000 + number}-it", f"Number {number}", events(1))
    world.store.mkdir(parents=True)
    code, shown = watched_at_terminal(world.project, "actions done")
    assert code == 0
    found = lines(shown)
    assert found[:2] == ["TIME  80 actions to do", "TIME  watching 80 conversations"]
    assert [line.split()[1:3] for line in found[2:22]] == [["Number", str(number)] for number in range(20)]
    assert found[22:] == ["TIME  80 of 80 actions done, of which 20 are shown", "TIME  stopped", ""]


def test_quiet(watched: World) -> None:
    path = watched.workspace / f"{SECOND_ID}-it" / "metadata.json"
    path.write_bytes(b"{")
    code, shown = watched_at_terminal(watched.project, "resolve", "-q")
    assert code == 0
    text = " ".join(lines(shown))
    assert text.count("TIME") == 1
    assert re.match(r"TIME  It +blocked +workspace:\S+/metadata.json: .* reconcile resolve jp-c\d+ --take store", text)


def test_as_the_first_command_it_asks_as_a_run_does(world: World) -> None:
    three(world)
    for _ in range(2):  # the answer no is asked again
        refused = Session("watch", "--workspace", world.project)
        refused.type("n\n", after="Continue?")
        code, shown = refused.end()
        assert code == 4
        assert "This is the first run here. It creates:" in shown
        assert "Cancelled, nothing changed." in shown
        assert "watching" not in shown
        assert list(world.store.glob("*")) == []
    agreed = Session("watch", "--workspace", world.project)
    agreed.type("y\n", after="Continue?")
    agreed.wait("watching 3 conversations")
    agreed.process.terminate()
    code, shown = agreed.end()
    assert code == 0
    assert "creating" not in shown
    world.check_settled()
    again = Session("watch", "--workspace", world.project)
    again.wait("watching 3 conversations")
    again.process.terminate()
    assert "Continue?" not in again.end()[1]


def test_an_error_has_a_line_of_its_own(watched: World) -> None:
    with Watching(watched) as watcher:
        code, shown = at_terminal("watch", "--workspace", watched.project)
        assert code == 5
        assert lines(shown)[0].startswith("error: ")
        assert watcher.stop() == 0


def test_the_window_is_closed(watched: World) -> None:
    """Whoever sits at the terminal of the watcher is gone, and so is it, without anything to say."""
    words = command("watch", "--workspace", watched.project)
    child, terminal = pty.fork()
    if not child:
        os.execv(words[0], words)  # noqa: S606 - it takes the place of this process
    shown = b""
    while b"watching 3 conversations" not in shown:
        shown += os.read(terminal, 65536)
    os.close(terminal)
    os.waitpid(child, 0)
    watched.check_settled()

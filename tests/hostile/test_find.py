"""`find` over files that no program writes: it waits for none of them, and finds the rest."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import LONG_AGO, command, event, events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.long

MB = 1 << 20
ROOM = 150 * MB
"""Address space for the program, and a few times the size of what it holds in memory."""
FIRST, SECOND = 17500000001, 17500000002


def find(world: World, *words: str, code: int = 0, room: int | None = None) -> tuple[str, str]:
    """Run the command as a process of its own, which must end; return what it prints."""
    found = subprocess.run(
        command("find", *words, "-w", world.project),
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        preexec_fn=None if room is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
    )
    assert found.returncode == code, found.stdout + found.stderr
    assert "Traceback" not in found.stderr
    return found.stdout, found.stderr


@pytest.fixture
def searched(world: World) -> World:
    for number in (FIRST, SECOND):
        write_conversation(world.workspace / f"{number}-it", "It", [event(1, "a needle"), *events(2)])
    world.reconcile()
    return world


def stream(world: World) -> Path:
    return world.workspace / f"{FIRST}-it" / "events.json"


@pytest.mark.parametrize("kind", ["pipe", "link", "directory", "endless device"])
def test_no_file_in_the_place_of_the_events(searched: World, kind: str) -> None:
    path = stream(searched)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "endless device" else searched.store / f"{FIRST}-it" / "events.json")
    shown, _ = find(searched, "needle")
    assert "2 conversations" in shown
    assert shown.count("store, workspace") == 1, "the other one's"


def test_an_other_file_that_is_binary_or_without_line_ends(searched: World) -> None:
    home = stream(searched).parent
    (home / "image.png").write_bytes(b"\x89PNG\0\0 haystack \0")
    (home / "long.txt").write_bytes(b"x" * 20 * MB + b" haystack " + b"y" * 20 * MB)
    searched.reconcile()
    shown, _ = find(searched, "haystack", room=ROOM)
    assert "long.txt: " in shown
    assert "image.png" not in shown
    assert max(map(len, shown.splitlines())) < 300


def test_one_line_of_many_megabytes(searched: World) -> None:
    text = "x" * 6 * MB + " haystack " + "y" * 6 * MB
    stream(searched).write_text(json.dumps([event(1, "a needle"), event(2, text)]))
    shown, _ = find(searched, "haystack", room=2 * ROOM)  # the line and its forms are held
    assert "event 2, user: " in shown
    assert max(map(len, shown.splitlines())) < 300


def test_a_stream_that_is_larger_than_memory(searched: World) -> None:
    one = json.dumps(event(3, "y" * 960))
    count = ROOM >> 10
    with stream(searched).open("w") as file:
        file.write("[\n" + ",\n".join([one] * count) + ",\n" + json.dumps(event(4, "a Haystack")) + "\n]\n")
    assert stream(searched).stat().st_size > ROOM
    shown, errors = find(searched, "haystack", room=ROOM)
    assert f"event {count + 1}, user: a [Haystack]" in shown
    assert errors == ""


def test_bytes_that_are_no_text_and_no_events(searched: World) -> None:
    stream(searched).write_bytes(b"[{\xff\xfe a haystack \xc3\n<<<<<<< HEAD\n")
    shown, errors = find(searched, "haystack")
    assert "events.json: [{" in shown
    assert "damaged or incomplete" in errors
    assert "\x1b" not in shown


def test_no_control_character_reaches_the_terminal(searched: World) -> None:
    home = write_conversation(
        searched.workspace / f"{SECOND + 1}-it", "It\x1b[31m", [event(1, "\x1b]0;evil\x07 haystack \u202e")]
    )
    os.utime(home / "events.json", ns=(LONG_AGO, LONG_AGO))
    searched.reconcile()
    shown, _ = find(searched, "haystack")
    assert "\\x1b]0;evil\\x07 [haystack] \\u202e" in shown
    assert "\x1b" not in shown


def test_deep_nesting_is_a_note(searched: World) -> None:
    stream(searched).write_text("[" * 200_000 + '"haystack"' + "]" * 200_000)
    shown, errors = find(searched, "haystack")
    assert "events.json: " in shown
    assert "damaged or incomplete" in errors

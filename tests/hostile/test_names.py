"""Names and titles that act on a terminal, lead elsewhere, or are no text; and every command that shows them."""

from __future__ import annotations

import json
import os
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    events,
    files,
    set_key,
    write_conversation,
    write_json,
)

if TYPE_CHECKING:
    from click.testing import Result

    from tests.support.projects.world import World

pytestmark = pytest.mark.long

NUMBER = 17500000001
TITLES = {
    "escape": "\x1b[2J\x1b]0;owned\x07red",
    "csi of one byte": "\x9b31mred",
    "carriage return": "good\rbad",
    "newline": "one\nPlan: nothing to do.\n",
    "backspace": "abc\x08\x08\x08xyz",
    "right to left": "\u202egnp.exe\u202c",
    "isolates": "\u2066a\u2069\u200f\u061c",
    "zero width": "a\u200b\u200d\ufeffb",
    "line separator": "a\u2028b\u2029c",
    "tags": "a\U000e0041\U000e0042",
    "half a pair": "a\ud800b",
    "many marks": "a" + "\u0301" * 50_000,
    "long": "long " * 50_000,
    "wide": "\uff21" * 10_000,
    "private": "\ue000\U00100000",
    "unassigned": "\u0378\uffff",
    "slashes": "../../../etc/passwd",
    "nul": "a\x00b",
    "only dots": "...",
    "empty": "",
    "template": "%s {0} {x!r} $HOME `id` [bold]x[/bold]",
}
DIRECTORIES = (
    b"17500000101-\xff\xfe",
    b"17500000102-\x1b[31mred",
    b"17500000103-\xe2\x80\xaegnp",
    b"17500000104-a\nb",
    b"17500000105--",
    b"17500000106- ",
    b"17500000107-" + b"x" * 200,
    b"17500000108-\xed\xa0\x80",
    b"17500000109-$(id)",
    b"-17500000110",
    b"\xff\xff",
    b"\x1b[31m",
    b"\xe2\x80\xae",
)
EXTRAS = (
    b"\xff.md",
    b"\x1b[31m.md",
    b"\xe2\x80\xaegnp.md",
    b"a\nb.md",
    b"-rf",
    b"sub\xff/deep\x1b/x.md",
    b"x" * 255,
    b" ",
)


def check_text(result: Result, longest: int = 2000) -> None:
    """No character that acts is printed, and no line without end."""
    assert result.exit_code in (0, 2, 4), result.output[:2000]
    for text in (result.stdout, result.stderr):
        acting = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co")}
        assert acting <= {"\n"}, sorted(acting)
        assert max(map(len, text.splitlines()), default=0) < longest


def every_command(world: World) -> None:
    for words in (["-n", "-v"], ["ls"], ["ls", "--tree"], ["ls", "--root"], ["status"]):
        check_text(world.run(*words, "--workspace", world.project))
        result = world.run(*words, "--json", "--workspace", world.project)
        assert result.exit_code in (0, 4)
        for line in result.stdout.splitlines():
            assert line.isprintable() or not line
        json.loads(result.stdout)


@pytest.fixture
def world(world: World) -> World:
    for at, title in enumerate(TITLES.values()):
        write_conversation(world.workspace / str(NUMBER + at), "", events(3))
        path = world.workspace / str(NUMBER + at) / "metadata.json"
        described = {"title": title, "last_activated_at": "2026-01-01 00:00:00.0"}
        path.write_text(json.dumps(described))
    for name in DIRECTORIES:
        directory = os.path.join(os.fsencode(world.workspace), name)
        os.rename(write_conversation(world.workspace / "new", "Named oddly", events(2)), directory)
        for extra in EXTRAS:
            place = os.path.join(directory, extra)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(name + extra)
    return world


def test_no_title_and_no_name_acts(world: World) -> None:
    every_command(world)
    before = world.kept()
    check_text(world.run("--workspace", world.project))
    assert before <= world.kept()
    every_command(world)
    again = world.run("--check", "--workspace", world.project)
    check_text(again)
    for words in (["-v"], ["log"], ["vault"]):
        check_text(world.run(*words, "--workspace", world.project))
    for number in (NUMBER, NUMBER + 5, NUMBER + 10, NUMBER + 11, NUMBER + 100, NUMBER + 101, NUMBER + 103):
        for command in ("status", "diff"):
            check_text(world.run(command, str(number), "--workspace", world.project))


def test_edits_conflicts_and_invalid_content_under_such_names(world: World) -> None:
    world.run("--workspace", world.project)
    for side, voice, at in ((world.store, "s", 10), (world.workspace, "w", 20)):
        for directory in [path.parent for path in files(side) if path.name == "events.json"]:
            append(directory, 2, voice, LONG_AGO + at * SECOND)
            path = directory / "events.json"
            acting = {
                "timestamp": "\x1b[31m\u202e",
                "type": f"\x1b[31m\u202e{voice}" * 1000,
                "content": "\x1b[31m\u202e",
            }
            write_json(path, [*json.loads(path.read_bytes()), acting], LONG_AGO + (at + 1) * SECOND)
    every_command(world)
    check_text(world.run("--workspace", world.project))
    for directory in [path.parent for path in files(world.workspace) if path.name == "events.json"]:
        (directory / "metadata.json").write_text('{"title": "\x1b[31m\u202e", "last_activated_at": "\x1b[31m"}')
        (directory / "base_config.json").write_text('{"\x1b[31m\u202e": 1, "\x1b[31m\u202e": 2}')
    every_command(world)
    check_text(world.run("--workspace", world.project))


PARENTS: tuple[Any, ...] = (
    "../x", "../../etc", "/etc/passwd", "", ".", "..", "jp-c../x", "jp-c", "jp-c-1", "jp-c99999999999999999999",
    "\x1b[31m", 10**400, -1, 1.5, 1e308, True, [], {}, [[]], "jp-c17500000001/../x", "jp-c17500000001\x00", " jp-c1",
    "jp-c1\n", "\u0663",
)  # fmt: skip


def test_a_parent_that_is_no_id_leads_nowhere(world: World) -> None:
    for at, parent in enumerate(PARENTS):
        directory = write_conversation(world.workspace / f"{NUMBER + 500 + at}-x", "X", events(2))
        set_key(directory, "parent_id", parent, LONG_AGO + SECOND)
    before = {path.name for path in world.project.parent.iterdir()}
    check_text(world.run("--workspace", world.project))
    every_command(world)
    for at in range(0, len(PARENTS), 5):
        check_text(world.run("status", str(NUMBER + 500 + at), "--workspace", world.project))
    assert {path.name for path in world.project.parent.iterdir()} == before
    assert len(list(world.workspace.glob(f"{str(NUMBER + 500)[:-2]}*-x"))) == len(PARENTS)


@pytest.mark.parametrize(
    "words", [["status"], ["diff"], ["resolve", "--take", "store"], ["show"], ["--only"], ["undo"]]
)
def test_an_argument_that_is_no_id_and_in_no_title_is_one_line(world: World, words: list[str]) -> None:
    world.run("--workspace", world.project)
    odd = (
        "../x",
        "/usr",
        "",
        ".",
        "\x1b[31m",
        "\ud800",
        "-",
        "jp-c" + "9" * 5000,
        "%d",
        "a" * 100_000,
        "\u2067",
        "a\x00c",
    )
    for text in odd:
        last = [text] if words == ["--only"] else ["--", text]
        result = world.run("--workspace", world.project, *words, *last)
        assert result.exit_code == 2, (text[:20], result.output[:500])
        check_text(result, longest=len(text) * 6 + 500)


def test_names_of_the_plain_format_that_lead_elsewhere(world: World) -> None:
    """There the name of a directory is the id: one that the file system takes can't lead anywhere."""
    plain = world.project / "plain"
    store = world.project / "plain-store"
    store.mkdir()
    for name in (
        "a..b",
        "...",
        "a\\b",
        "CON",
        "a:b",
        "~",
        "-n",
        "*",
        "\u202e",
        "\x1b[31m",
        "e\u0301",
        "\u00e9",
        "A",
        "a",
    ):
        write_conversation(plain / "conversations" / name, name, events(2))
        set_key(plain / "conversations" / name, "parent_id", "../../outside", LONG_AGO)
    write_json(plain / "conversations" / "a" / "metadata.json", {"last_activated_at": "x"}, LONG_AGO)
    common = ("--format", "plain", "--workspace", plain, "--store", store)
    check_text(world.run(*common))
    for words in (["ls"], ["ls", "--tree"], ["status"], ["-n", "-v"]):
        check_text(world.run(*words, *common))
    for name in ("\u202e", "\x1b[31m", "a"):
        for command in ("status", "diff"):
            check_text(world.run(command, *common, "--", name))
    assert sorted(path.name for path in world.project.iterdir()) == [".jp", "plain", "plain-store"]

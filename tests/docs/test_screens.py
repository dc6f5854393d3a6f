"""docs/screens/ is what the commands show at a terminal of 80 columns."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.support.documents import commands
from tests.support.pages import text
from tests.support.screens.files import BEFORE, SCREENS, present_files
from tests.support.screens.scenes import SCENES, plain
from tests.support.screens.terminal import Answer, at_terminal, interrupt
from tests.support.screens.world import BACKUPS, COLUMNS, NOTES, Live, Shot, World

if TYPE_CHECKING:
    from pathlib import Path


CHINESE = "\u5173\u4e8e\u53d1\u5e03\u8bf4\u660e\u7684\u8ba8\u8bba"


def present() -> list[Path]:
    """The texts of the present screens."""
    return [SCREENS / f"{name}.txt" for name in SCENES]


def columns_of(line: str) -> int:
    """The columns that a line takes, counted apart from the program's own way."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line
    )


@pytest.mark.long
@pytest.mark.timeout(300)  # it runs every command
def test_the_screens_are_up_to_date() -> None:
    found = present_files()
    written = {path for path in SCREENS.rglob("*.*") if not path.is_relative_to(BEFORE)} - {SCREENS / "README.md"}
    assert written == found.keys()
    for path, wanted in found.items():
        assert text(path) == wanted, f"{path.relative_to(SCREENS)} is out of date: run `make screens`"


def test_every_command_has_a_screen() -> None:
    shown = "".join(map(text, present()))
    named = set(re.findall(r"^\$ reconcile ([a-z-]+)", shown, re.MULTILINE))
    assert commands().keys() - named == set()


@pytest.mark.parametrize("path", present(), ids=lambda path: path.stem)
def test_a_picture_shows_its_text_and_loads_nothing(path: Path) -> None:
    picture = text(path.with_suffix(".svg"))
    root = ET.fromstring(picture)  # noqa: S314 (a file of ours)
    assert re.findall(r"url\(|@import|href|https?://(?!www\.w3\.org/2000/svg\")", picture) == []
    shown: dict[float, str] = {}
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        assert float(element.attrib["x"]) + float(element.attrib["textLength"]) <= COLUMNS * 12.2 + 0.1
        row = float(element.attrib["y"])
        shown[row] = shown.get(row, "") + (element.text or "")
    assert re.sub(r"\s", "", "".join(shown.values())) == re.sub(r"\s", "", text(path))


SHOTS: tuple[Shot | Live, ...] = (
    *map(
        Shot,
        (
            "status",
            "status -v",
            f"status {NOTES}",
            "--dry-run",
            "ls",
            "ls --tree",
            "log",
            "log RUN",
            "vault",
            "checkouts",
            f"diff {NOTES}",
            "doctor",
            "config",
            f"local {BACKUPS} --dry-run",
            f"fork {NOTES} --dry-run",
            f"restore {NOTES}",
            f"diff {CHINESE[:2]}",
        ),
    ),
    Shot("", "skip\nd\nn\n"),
    Shot(f"rm {BACKUPS} --cascade", "n\n"),
    Shot("undo", "n\n"),
    Live("watch", ((r"watching \d+ conv", "edit here"),), "(?s)(its title changed.*){2}"),
)
"""A hint of `restore` and `diff`, and a question, are among them; `show` prints a file as it is."""


def test_an_interrupt_leaves_the_line_that_a_program_is_writing_as_it_is(tmp_path: Path) -> None:
    program = 'trap "echo of a line; exit" INT; printf "the half "; while :; do sleep 0.05; done'
    shown = at_terminal(["sh", "-c", program], tmp_path, os.environ, 80, [Answer("half $", interrupt)])
    assert shown == "the half of a line\n"


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_a_terminal(columns: int, tmp_path: Path) -> None:
    world = World(tmp_path, columns)
    world.shown(Shot("-q -y"))
    world.change("edit both")
    world.shown(Shot("-q -y"))
    for path in tmp_path.rglob("conversations/**/metadata.json"):
        metadata = json.loads(path.read_text("utf-8"))
        title = f"{CHINESE * (5 if BACKUPS in path.parent.name else 1)} {path.parts[-5]} {CHINESE * 2}"
        path.write_text(json.dumps(metadata | {"title": title}, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    world.change("break")
    shown = {shot.words: plain(world.shown(shot)).splitlines()[1:] for shot in SHOTS}
    assert CHINESE[:5] in "".join(shown["status"])
    assert "Take the [s]tore's" in " ".join(shown[""])
    wide = {words: [line for line in lines if columns_of(line) > columns] for words, lines in shown.items()}
    assert {words: lines for words, lines in wide.items() if lines} == {}


def test_no_screen_is_wider_than_its_terminal() -> None:
    wide = [
        f"{path.name}: {line}"
        for path in [*present(), *BEFORE.rglob("*.txt")]
        for line in text(path).splitlines()
        if columns_of(line) > COLUMNS
    ]
    assert wide == []

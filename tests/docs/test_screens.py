"""docs/screens/ is what the commands show at a terminal of 80 columns."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import commands
from tests.support.screens import COLUMNS, SCREENS, Shot, World, columns_of, screens

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_SCREEN = {"brief", "watch"}
"""A command of another format, and one that runs until it is stopped."""


@pytest.mark.timeout(300)  # it runs every command
def test_the_screens_are_up_to_date() -> None:
    found = screens()
    assert sorted(path.name for path in SCREENS.glob("*.txt")) == sorted(found)
    for name, text in found.items():
        assert (SCREENS / name).read_text(encoding="utf-8") == text, f"{name} is out of date: run `make screens`"


def test_every_command_has_a_screen() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in SCREENS.glob("*.txt"))
    named = set(re.findall(r"^\$ reconcile ([a-z-]+)", shown, re.MULTILINE))
    assert commands().keys() - WITHOUT_SCREEN - named == set()


READERS = (
    "status",
    "status -v",
    "status 17780300000",
    "--dry-run",
    "ls",
    "ls --tree",
    "log",
    "vault",
    "checkouts",
    "diff 17780300000",
    "doctor",
    "local 17779500000 --dry-run",
)
CHINESE = "\u5173\u4e8e\u53d1\u5e03\u8bf4\u660e\u7684\u8ba8\u8bba" * 9


@pytest.mark.timeout(300)
@pytest.mark.parametrize("columns", [60, 120])
def test_no_line_is_wider_than_a_terminal(columns: int, tmp_path: Path) -> None:
    world = World(tmp_path, columns)
    world.shown(Shot("-q -y"))
    world.change("edit both")
    world.change("break")
    (path,) = tmp_path.glob("data/workspace/*/conversations/17779500000-*/metadata.json")
    metadata = json.loads(path.read_text("utf-8")) | {"title": CHINESE}
    path.write_text(json.dumps(metadata, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    shown = {words: world.shown(Shot(words)).splitlines()[1:] for words in READERS}
    assert CHINESE[:5] in "".join(shown["status"])
    wide = {words: [line for line in lines if columns_of(line) > columns] for words, lines in shown.items()}
    assert {words: lines for words, lines in wide.items() if lines} == {}


def test_no_screen_is_wider_than_its_terminal() -> None:
    wide = [
        f"{path.name}: {line}"
        for path in sorted(SCREENS.glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("$ ") and columns_of(line) > COLUMNS
    ]
    assert wide == []

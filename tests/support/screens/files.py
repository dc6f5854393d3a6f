"""The files of docs/screens/: text and picture of each scene, and a page for each group with both versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support.documents import DOCS
from tests.support.screens.pictures import svg
from tests.support.screens.review import review_files
from tests.support.screens.scenes import SCENES, plain, screens
from tests.support.screens.world import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCREENS = DOCS / "screens"
BEFORE = SCREENS / "before"
"""What another version showed: nothing here is made again."""
GROUPS = {
    "daily": "Daily commands",
    "look": "Commands to look at things",
    "organise": "Commands to organise",
    "recover": "Commands to recover",
    "maintain": "Commands to maintain",
    "for-git": "Commands for git",
    "help": "Help, errors and completion",
}


def present_files() -> dict[Path, str]:
    """Return every file that this version's screens make, with its text."""
    found = screens()
    texts = {name: plain(screen) for name, screen in found.items()}
    return {
        **{SCREENS / f"{name}.txt": text for name, text in texts.items()},
        **{SCREENS / f"{name}.svg": svg(screen, _title(texts[name])) for name, screen in found.items()},
        **{SCREENS / group / "README.md": _page(group, texts) for group in GROUPS},
        **review_files(SCREENS / "review"),
    }


def before_files(script: Path) -> dict[Path, str]:
    """Return the texts of another version's screens; a line that is too long is broken as by the terminal."""
    found = screens(script, only_known=True)
    return {
        BEFORE / f"{name}.txt": "".join(
            f"{part}\n" for line in plain(screen).splitlines() for part in _terminal_lines(line)
        )
        for name, screen in found.items()
    }


def _terminal_lines(line: str) -> Iterator[str]:
    yield from (line[start : start + COLUMNS] for start in range(0, len(line) or 1, COLUMNS))


def _title(text: str) -> str:
    """Return the commands of a screen."""
    commands = re.findall(r"^\$ (reconcile\b.*)", text, re.MULTILINE)
    return "; ".join(dict.fromkeys(command.replace('"', "'") for command in commands))


def _page(group: str, texts: dict[str, str]) -> str:
    return "\n".join(
        [
            f"# {GROUPS[group]}: screens",
            "",
            "A terminal of 80 columns, on the files of the demo. `make screens` writes this page.",
            *(line for name in SCENES if name.startswith(f"{group}/") for line in _section(name, texts[name])),
            "",
        ]
    )


def _section(scene: str, text: str) -> Iterator[str]:
    name = scene.rpartition("/")[2]
    before = BEFORE / f"{scene}.txt"
    yield from ("", f"## {name.replace('-', ' ').capitalize()}", "")
    yield from (f"As [text]({name}.txt), and as a picture:", "", f"![Screen of: {_title(text)}]({name}.svg)", "")
    if before.exists():
        yield "[Before](../before/README.md):"
        yield from ("", "```text", before.read_text(encoding="utf-8").rstrip("\n"), "```")
    else:
        yield "The version [before](../before/README.md) has no such screen."

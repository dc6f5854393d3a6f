"""The pages of the documentation, read as a git host shows them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text(path: Path) -> str:
    """Return what a file says."""
    return path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", text(path))


def anchors(path: Path) -> set[str]:
    """Return the names that a git host gives to the headings of a page, and those that the page gives itself."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    named = set(re.findall(r'<a (?:id|name)="([\w-]+)">', prose(path)))
    return named | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def pages() -> list[Path]:
    """Every page that git knows or would add; without git, those that a reader is sent to."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.split() if listed.returncode == 0 else []
    found = {PROJECT / name for name in names} | {*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")}
    return sorted(path for path in found if path.exists())

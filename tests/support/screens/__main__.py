"""Writes docs/screens: ``python -m tests.support.screens``.

With ``--before SCRIPT``, write the text of another version's screens to docs/screens/before instead.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.support.documents import PROJECT
from tests.support.screens.files import BEFORE, SCREENS, before_files, present_files


def main() -> None:
    """Write the files that are out of date, and remove those that no scene has."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.screens")
    parser.add_argument("--before", type=Path, metavar="SCRIPT")
    script: Path | None = parser.parse_args().before
    if script is None:
        wanted, had = present_files(), {path for path in SCREENS.rglob("*.*") if not path.is_relative_to(BEFORE)}
    else:
        wanted, had = before_files(script.absolute()), set(BEFORE.rglob("*.txt"))
    for path in had - wanted.keys() - {SCREENS / "README.md"}:
        path.unlink()
        print(f"removed: {path.relative_to(PROJECT)}")
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(PROJECT)}")


main()

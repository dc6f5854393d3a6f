"""Directories of conversations as nobody makes them, by chance: whole, in parts, empty, doubled, in each other."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.support.projects.world import LONG_AGO, SECOND, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.conftest import Run

IDS = [17500000001 + number for number in range(4)]
WORLDS = 24


def fill(chance: random.Random, root: Path, nested: bool) -> None:
    places = [root]
    for number in [each for each in IDS for _ in range(chance.choice([0, 1, 1, 2]))]:
        around = chance.choice(places) if nested else root
        above = around / "conversations" if around != root else root / chance.choice(["", "", "", ".archive"])
        path = above / f"{number}-{chance.choice('abc')}"
        if path.exists():
            continue
        path.mkdir(parents=True)
        places.append(path)
        what = chance.choice(["whole", "whole", "empty", "part", "note"])
        if what == "whole":
            time = LONG_AGO + chance.randrange(5) * SECOND
            parent = chance.choice([None, *IDS])
            write_conversation(path, chance.choice("AB"), events(chance.choice([1, 2])), parent=parent, mtime_ns=time)
        elif what == "part":
            (path / "metadata.json").write_text('{"title": "A", "last_activated_at": "2026-01-01 00:00:00.0"}')
        elif what == "note":
            (path / "NOTE.md").write_text("a note")


def test_no_run_fails_for_what_lies_there(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has emptied itself, and removed, is no failure either."""
    for seed in range(WORLDS):
        chance = random.Random(seed)
        for name in ("JP_USER_DATA_DIR", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(tmp_path / f"{seed}" / name))
        world = make_project(tmp_path / f"{seed}" / "project", run)
        fill(chance, world.workspace, nested=True)
        fill(chance, world.store, nested=chance.random() < 0.6)
        for words in (
            [],
            chance.choice([["local", IDS[0]], ["rm", "--cascade", "-y", IDS[1]], ["project", IDS[2]]]),
            [],
        ):
            result = run(*map(str, words), "-w", world.project)
            assert result.exit_code != 1, (seed, words, result.output)
            assert "Traceback" not in result.output

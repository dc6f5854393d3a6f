"""A run with nothing to do in a project of sessions: told by the status of the files alone, and never wrongly."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.engine.session import Session
from tests.agents.program import VERSIONS
from tests.support.formats.claude_code_project import Sides

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run

VERSION = VERSIONS[-1]


@pytest.fixture
def sides(tmp_path: Path, run: Run) -> Sides:
    sides = Sides(tmp_path / "project", run)
    sides.play(VERSION, "subagent")
    for _ in range(3):
        sides.reconcile()
        time.sleep(0.05)  # what was written a moment ago is read once more
    return sides


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The scans of both sides from now on."""
    made: list[object] = []
    scan = Session.scan

    def counted(session: Session) -> object:
        made.append(session)
        return scan(session)

    monkeypatch.setattr(Session, "scan", counted)
    return made


def test_nothing_is_scanned_if_nothing_has_changed(sides: Sides, scans: list[object]) -> None:
    result = sides.reconcile()
    assert "Nothing to do." in result.stdout
    assert scans == []


def _session(sides: Sides) -> Path:
    return next(sides.live.glob("*.jsonl"))


def _append(sides: Sides) -> None:
    with _session(sides).open("ab") as file:
        file.write(b'{"type":"mode","mode":"plan"}\n')


def _begin(sides: Sides) -> None:
    new = _session(sides).with_stem("11111111-2222-4333-8444-555555555555")
    new.write_bytes(_session(sides).read_bytes())


def _beside(sides: Sides) -> None:
    above = _session(sides).with_suffix("") / "tool-results"
    above.mkdir(exist_ok=True)
    (above / "new.txt").write_text("a result")


def _beside_in_a_known_directory(sides: Sides) -> None:
    (_session(sides).with_suffix("") / "subagents" / "agent-new.jsonl").write_text('{"type":"mode"}\n')


def _sweep(sides: Sides) -> None:
    _session(sides).unlink()


def _lose_the_copy(sides: Sides) -> None:
    next(sides.store.glob("*.jsonl")).unlink()


def _lose_the_store(sides: Sides) -> None:
    shutil.rmtree(sides.store)


def _rewrite_with_the_same_size_and_time(sides: Sides) -> None:
    session, status = _session(sides), _session(sides).stat()
    session.write_bytes(session.read_bytes()[:-2] + b" \n")
    os.utime(session, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        _append,
        _begin,
        _beside,
        _beside_in_a_known_directory,
        _sweep,
        _lose_the_copy,
        _lose_the_store,
        _rewrite_with_the_same_size_and_time,
    ],
)
def test_each_change_is_noticed(sides: Sides, scans: list[object], change: Callable[[Sides], None]) -> None:
    change(sides)
    sides.run("--dry-run", "-w", sides.project)
    assert scans, "both sides are scanned"


def test_what_waits_is_told_again(sides: Sides) -> None:
    """A session that is deleted stays in the counts of each run."""
    _sweep(sides)
    for _ in range(3):
        assert "removed here" in sides.reconcile().stdout

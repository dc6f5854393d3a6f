"""Runs beside Leslie's program: its lock, writers that take it, kills while it is held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.apply.staging import Stage
from tests.stories.test_leslie_sides import made, relations, rewrite, worktrees
from tests.support.formats.leslie_project import Sides, carried
from tests.support.projects.watcher import Watching, until
from tests.support.projects.world import command

if TYPE_CHECKING:
    from reconcile.state.vault import Version
    from tests.conftest import Run

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture
def drifted(tmp_path: Path, run: Run) -> Sides:
    """In sync, then with relations that lack something, and a note beside."""
    sides = made(Sides(tmp_path / "project", run), 'spawn thread-a "Plan"', 'spawn thread-b "Build" parent thread-a')
    sides.reconcile()
    value = relations(sides)
    value["relations"] = {}
    rewrite(sides, value)
    (sides.leslie / "notes.txt").write_text("a note\n")
    return sides


def writer(sides: Sides, prefix: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.formats.leslie_writer", str(sides.leslie), prefix, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def written(process: subprocess.Popen[str]) -> list[str]:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output.split()


def check(sides: Sides, expected: set[str]) -> None:
    """Nothing is lost, and nothing left to do."""
    sides.reconcile()
    found = [each["id"] for each in relations(sides)["operations"]]
    assert len(found) == len(set(found))
    assert expected <= set(found), f"lost: {sorted(expected - set(found))}"
    assert sides.findings() == []
    assert sides.in_sync()
    assert not [each for each in os.listdir(sides.leslie) if ".lock" in each or each.startswith(".reconcile")]


def test_plain_runs_beside_two_writers(drifted: Sides) -> None:
    writers = [writer(drifted, prefix, 12) for prefix in "xy"]
    while any(each.poll() is None for each in writers):
        result = drifted.run("-w", drifted.project)
        assert result.exit_code in (0, 4), result.output
    check(drifted, {each for process in writers for each in written(process)})


def test_a_watch_beside_two_writers(drifted: Sides) -> None:
    with Watching(drifted) as watching:
        writers = [writer(drifted, prefix, 12) for prefix in "xy"]
        expected = {each for process in writers for each in written(process)}
        # Not `findings`, which demands that nobody writes meanwhile.
        until(lambda: drifted.in_sync() and drifted.run("doctor", "-w", drifted.project).exit_code == 0, "in sync")
        assert watching.stop() == 0
    assert not drifted.findings()
    check(drifted, expected)


def test_two_worktrees_are_watched_while_a_writer_is_at_each(tmp_path: Path, run: Run) -> None:
    first, second = worktrees(tmp_path, run)
    made(first, 'spawn thread-a "Plan"')
    first.reconcile()
    second.reconcile("--format", "leslie")
    with Watching(first) as one, Watching(second) as other:
        writers = [writer(first, "x", 8), writer(second, "y", 8)]
        expected = {each for process in writers for each in written(process)}
        until(lambda: carried(first.leslie) == carried(second.leslie) == carried(first.store), "all three alike")
        # Not `findings`, which demands that nobody writes meanwhile.
        until(lambda: all(run("doctor", "-w", each.project).exit_code == 0 for each in (first, second)), "all is well")
        assert (one.stop(), other.stop()) == (0, 0)
    assert not first.findings()
    assert not second.findings()
    check(first, expected)
    check(second, expected)


def test_a_lock_that_was_taken_away_meanwhile(drifted: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between staging and publishing: nothing is published, and the other's lock stays."""
    lock = drifted.leslie / "thread_relations.json.lock"
    flush = Stage.flush

    def flush_slowly(stage: Stage) -> list[Version]:
        found = flush(stage)
        if lock.exists():
            lock.rmdir()
            lock.mkdir()
        return found

    before = (drifted.leslie / "thread_relations.json").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(Stage, "flush", flush_slowly)
        result = drifted.run("-w", drifted.project)
    assert result.exit_code == 4
    assert "another process took over its lock" in result.output
    assert (drifted.leslie / "thread_relations.json").read_bytes() == before
    assert lock.is_dir()
    assert (drifted.store / "notes.txt").exists()
    lock.rmdir()
    check(drifted, {"op-0001", "op-0002"})


def test_a_run_that_was_killed_leaves_a_lock_that_the_next_takes_over(drifted: Sides) -> None:
    lock = drifted.leslie / "thread_relations.json.lock"
    with subprocess.Popen(command("--workspace", drifted.project), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not lock.exists():
            time.sleep(0.0002)
        process.kill()
    before = drifted.bytes()
    if not lock.exists() or relations(drifted)["relations"]:  # it had written them: the next run needs no lock
        pytest.skip("it was too quick")
    assert drifted.run("-w", drifted.project).exit_code == 4
    assert {
        path: before[path] for path in before if path.name == "thread_relations.json"
    }.items() <= drifted.bytes().items()
    old = time.time() - 11
    os.utime(lock, (old, old))
    check(drifted, {each["id"] for each in json.loads(before[drifted.leslie / "thread_relations.json"])["operations"]})

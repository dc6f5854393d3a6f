"""Leslie's folder in bad company: runs cut short at any step, a full disk, links, pipes, odd names."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stories.test_leslie_sides import made, relations, rewrite
from tests.support.faults.fault_points import Mode, under_fault
from tests.support.formats.fixed_programs import LeslieProgram
from tests.support.formats.leslie_project import Sides, carried
from tests.support.scenarios.line_reader import Words

if TYPE_CHECKING:
    from tests.conftest import Run

STRIDE = 23


def upset(project: Path, run: Run) -> Sides:
    """After a first run: drift here, operations on both sides, a thread on each, files changed and new on each."""
    program = LeslieProgram()
    sides = made(
        Sides(project, run), 'spawn thread-a "Plan"', 'spawn thread-b "Build" parent thread-a', program=program
    )
    (sides.leslie / "threads" / "thread-a" / "plan.md").write_text("a plan\n")
    assert run("-w", project).exit_code == 0
    for line in ('spawn thread-c "There" parent thread-a', "done thread-b"):
        store = Sides(project, run).store
        program_of(store, line, program, "store")
    (sides.store / "threads" / "thread-c" / "plan.md").write_text("a plan there\n")
    made(sides, 'spawn thread-d "Here" parent thread-b', program=program)
    (sides.leslie / "threads" / "thread-d" / "plan.md").write_text("a plan here\n")
    (sides.leslie / "threads" / "thread-a" / "plan.md").write_text("another plan\n")
    for path in sides.store.glob("*.bak"):
        path.unlink()
    value = relations(sides)
    value["relations"] = {}
    rewrite(sides, value)
    long_ago = time.time() - 3600
    for root in (sides.leslie, sides.store):
        for path in root.rglob("*.json"):
            os.utime(path, (long_ago, long_ago))
    return sides


def program_of(root: Path, line: str, program: LeslieProgram, name: str) -> None:
    program.command(root, name, Words(line))


def grown_old(sides: Sides) -> None:
    """Let the locks that a killed process has left grow old."""
    for lock in sides.leslie.glob("*.lock*"):
        os.utime(lock, (time.time() - 11,) * 2)


def cut_short(tmp_path: Path, run: Run, mode: Mode, first: int, stride: int) -> int:
    """Cut a run short at every so many steps: nothing may be lost, and the next run must come to the same end."""
    whole = upset(tmp_path / "whole", run)
    assert run("-w", whole.project).exit_code == 0
    clean = carried(whole.leslie)
    assert clean == carried(whole.store)
    hits = 0
    for step in itertools.count(first, stride):
        sides = upset(tmp_path / f"at-{step}", run)
        before = sides.kept()
        hit = under_fault(mode, step, lambda: run("-w", sides.project))  # noqa: B023
        assert before <= sides.kept(), f"lost at step {step}"
        left = len(list(sides.leslie.glob("*.lock")))
        # Where giving it back is what fails, it has to grow old.
        assert left <= {Mode.FULL: 0, Mode.BROKEN: 1}.get(mode, 2), f"a lock is left at step {step}"
        grown_old(sides)
        sides.reconcile()
        assert carried(sides.leslie) == carried(sides.store) == clean, f"at step {step}"
        assert sides.findings() == []
        assert not list(sides.leslie.glob("*.lock*"))
        if not hit:
            break
        hits += 1
    return hits


@pytest.mark.long
@pytest.mark.parametrize("mode", Mode)
def test_cut_short_at_some_steps(tmp_path: Path, run: Run, mode: Mode) -> None:
    assert cut_short(tmp_path, run, mode, 1 + list(Mode).index(mode) * 5, STRIDE)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", Mode)
def test_cut_short_at_every_step(tmp_path: Path, run: Run, mode: Mode) -> None:
    assert cut_short(tmp_path, run, mode, 1, 1)


@pytest.fixture
def small(tmp_path: Path, run: Run) -> Sides:
    """Two threads in sync, one with a plan."""
    sides = made(Sides(tmp_path / "project", run), 'spawn thread-a "Plan"', 'spawn thread-b "Build" parent thread-a')
    (sides.leslie / "threads" / "thread-a" / "plan.md").write_text("a plan\n")
    sides.reconcile()
    return sides


def test_a_link_in_the_place_of_the_folder(small: Sides) -> None:
    outside = small.project.parent / "outside"
    small.leslie.rename(outside)
    small.leslie.symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    result = small.run("-w", small.project)
    assert result.exit_code == 2
    assert ".leslie: a symbolic link" in result.stderr
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["threads", "threads/thread-a", "objectives.json"])
def test_a_link_inside(small: Sides, name: str) -> None:
    path = small.leslie / name
    outside = small.project.parent / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    stored = carried(small.store)
    before = {each: each.read_bytes() for each in [outside, *outside.rglob("*")] if each.is_file()}
    result = small.run("-w", small.project)
    assert result.exit_code == 4
    assert f"workspace:{name}: a symbolic link replaced the record; " in result.output
    assert path.is_symlink()
    assert {each: each.read_bytes() for each in [outside, *outside.rglob("*")] if each.is_file()} == before
    assert carried(small.store) == stored, result.output
    assert "Traceback" not in small.run("doctor", "-w", small.project).output


def test_a_pipe_in_a_thread_is_left_alone(small: Sides) -> None:
    os.mkfifo(small.leslie / "threads" / "thread-a" / "pipe")
    (small.leslie / "threads" / "thread-a" / "plan.md").write_text("another\n")
    result = small.run("-w", small.project)
    assert result.exit_code in (0, 4), result.output
    assert "Traceback" not in result.output
    assert "Traceback" not in small.run("doctor", "-w", small.project).output
    small.reconcile("recover", "--yes", code=0)


def test_names_that_are_no_text(small: Sides) -> None:
    odd = os.fsencode(small.leslie) + b"/threads/thread-a/caf\xe9.md"
    with open(odd, "wb") as file:
        file.write(b"odd\n")
    os.mkdir(os.fsencode(small.leslie) + b"/threads/caf\xe9")
    for args in ([], ["doctor"], ["ls"], ["--dry-run"], ["--dry-run", "--json"], ["status"]):
        result = small.run(*args, "-w", small.project)
        assert result.exit_code in (0, 4), result.output
        assert "Traceback" not in result.output
    with open(odd, "rb") as file:
        assert file.read() == b"odd\n"


def test_the_folder_is_a_file(small: Sides) -> None:
    shutil.rmtree(small.leslie)
    small.leslie.write_text("no directory\n")
    for args in ([], ["doctor"], ["recover", "--yes"]):
        result = small.run(*args, "-w", small.project)
        assert result.exit_code in (1, 2, 4), (args, result.output)
        assert "Traceback" not in result.output
    assert f"{small.leslie}: not readable" in small.run("-w", small.project).output
    assert small.leslie.read_text() == "no directory\n"
    assert len(carried(small.store)) == 3


@pytest.mark.modes
def test_a_folder_that_may_not_be_written(small: Sides) -> None:
    value = relations(small)
    value["relations"] = {}
    rewrite(small, value)
    small.leslie.chmod(0o555)
    try:
        result = small.run("-w", small.project)
    finally:
        small.leslie.chmod(0o755)
    assert result.exit_code == 4
    assert "Traceback" not in result.output


def test_a_store_inside_of_the_folder_is_refused(small: Sides) -> None:
    inside = small.leslie / "store"
    inside.mkdir()
    result = small.run("-w", small.project, "--store", inside)
    assert result.exit_code == 2
    assert "the store is inside the workspace" in result.stderr
    assert os.listdir(inside) == []


def test_a_home_with_settings_is_none(tmp_path: Path, run: Run) -> None:
    (tmp_path / ".leslie").mkdir()
    (tmp_path / ".leslie" / "env").write_text("KEY=secret\n")
    project = tmp_path / "project"
    project.mkdir()
    for args in ([], ["doctor"], ["--format", "leslie"], ["recover", "--yes"]):
        result = run(*args, "-w", project)
        assert result.exit_code == 2, result.output
    assert sorted(os.listdir(tmp_path)) == [".leslie", "project"]
    assert not Path(os.environ["XDG_DATA_HOME"], "reconcile").exists()


def test_a_disk_that_is_full_from_the_start(small: Sides) -> None:
    value = relations(small)
    value["relations"] = {}
    rewrite(small, value)
    before = small.bytes()
    under_fault(Mode.FULL, 1, lambda: small.run("-w", small.project))
    assert small.bytes() == before
    small.reconcile()
    assert json.loads((small.store / "thread_relations.json").read_bytes())["relations"] != {}

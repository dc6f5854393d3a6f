"""Files that become directories, and directories that become files, in Leslie's threads and logs."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.stories.test_leslie_sides import made
from tests.support.faults.fault_points import Mode, under_fault
from tests.support.formats.leslie_project import Sides, carried

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.conftest import Run

NOTES, RESULTS = "threads/thread-a/notes", "threads/thread-a/results"
BEFORE = {"logs/x": b"one\n", "logs/y/a": b"a\n", "logs/y/b": b"b\n", NOTES: b"one", f"{RESULTS}/a.md": b"a"}
LOGS = {"logs/x/new.log": b"new\n", "logs/x/two.log": b"two\n", "logs/y": b"a file\n"}
THREAD = {f"{NOTES}/first.md": b"first", f"{NOTES}/second.md": b"second", RESULTS: b"a file"}


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_VERIFY", "1")


def put(side: Path, files: dict[str, bytes]) -> None:
    """Write files; one that is in the place of a directory, or the other way round, goes first."""
    for name, content in files.items():
        path = side / name
        for each in (path.parent, path):
            if each.is_file():
                each.unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def begun(tmp_path: Path, run: Run) -> tuple[Sides, Sides]:
    """Return two checkouts of one store in sync."""
    first = made(Sides(tmp_path / "project", run), 'spawn thread-a "Plan"')
    put(first.leslie, BEFORE)
    first.reconcile()
    second = Sides(tmp_path / "second", run)
    shutil.copytree(first.leslie, second.leslie)
    in_second(second, first)
    return first, second


def in_second(second: Sides, first: Sides) -> None:
    """Save the second checkout in the store of the first."""
    result = second.run("-w", second.project, "--store", first.store, "--format", "leslie")
    assert result.exit_code == 0, result.output


def test_removing_what_is_in_the_way_lets_a_log_join_and_undo_brings_it_back(tmp_path: Path, run: Run) -> None:
    first, second = begun(tmp_path, run)
    before = carried(first.store)
    shutil.rmtree(first.leslie / "logs")
    first.reconcile()
    put(first.leslie, LOGS)
    for _ in range(2):
        held = first.reconcile(code=4).output
        assert "reconcile rm logs/x " in held
        assert "reconcile rm logs/y/a logs/y/b " in held
        assert carried(first.store) == before
    for names in (("logs/x",), ("logs/y/a", "logs/y/b")):
        assert first.run("rm", *names, "--yes", "-w", first.project).exit_code == 0
    first.reconcile()
    assert carried(first.store) == carried(first.leslie)
    assert carried(first.store).items() >= LOGS.items()
    in_second(second, first)
    assert carried(second.leslie) == carried(first.store)
    for command, there in (("undo", before), ("redo", carried(first.store))):
        result = run(command, "-w", second.project, "--store", first.store, "--format", "leslie")
        assert result.exit_code == 0, result.output
        assert carried(second.leslie) == there


@pytest.mark.parametrize("command", ["project", "recover"])
def test_what_is_in_the_way_is_told_also_to_who_asks_for_the_old_one(tmp_path: Path, run: Run, command: str) -> None:
    first, _ = begun(tmp_path, run)
    put(first.leslie, LOGS)
    names = ("logs/x", "logs/y/a") if command == "project" else ("--all", "--yes")
    result = first.run(command, *names, "-w", first.project)
    assert result.exit_code == 4, result.output
    assert "a file in the store, a directory on the other side; rename the one in the store" in result.output
    assert carried(first.leslie).items() >= LOGS.items()
    assert carried(first.store).items() >= BEFORE.items()


@pytest.mark.long
@pytest.mark.parametrize("start", range(1, 5))
def test_a_run_that_is_killed_at_any_step_gets_to_the_same_end_in_both_checkouts(
    tmp_path: Path, run: Run, start: int
) -> None:
    """Each test has every fourth step."""
    for step in itertools.count(start, 4):
        first, second = begun(tmp_path / str(step), run)
        names = [name for name in BEFORE if name.startswith("logs/")]
        assert first.run("rm", *names, "--yes", "-w", first.project).exit_code == 0
        put(first.leslie, LOGS | THREAD)
        before = first.kept() | second.kept()
        store = first.store
        both = (
            lambda: first.run("-w", first.project),  # noqa: B023
            lambda: second.run("-w", second.project, "--store", store, "--format", "leslie"),  # noqa: B023
        )
        hits = []
        command: Callable[[], Result]
        for command in both:
            hits.append(under_fault(Mode.KILLED, step, command))
            assert before <= first.kept() | second.kept(), f"lost at step {step}"
            for result in (command(), command()):
                assert result.exit_code == 0, f"at step {step}:\n{result.output}"
        assert carried(first.leslie) == carried(second.leslie) == carried(store), f"at step {step}"
        assert carried(store).items() >= (LOGS | THREAD).items()
        if not any(hits):
            break

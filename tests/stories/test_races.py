"""Others at work at the same time: JP's locks, and a second reconcile."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, results, three
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    World,
    append,
    command,
    events,
    files,
    listing,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a+")
fcntl.flock(file, fcntl.LOCK_EX)
file.truncate(0)
file.write('{"pid":%d}' % __import__("os").getpid())
file.flush()
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """Have another process hold the flock of a file; its id."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.communicate()


def test_a_conversation_that_jp_has_locked_is_busy_and_the_rest_is_done(world: World) -> None:
    three(world)
    with held(world.silo / "locks" / f"jp-c{SECOND_ID}.lock") as pid:
        result = world.reconcile("--json", code=4, settled=False)
        found = json.loads(result.stdout)
        assert results(found) == {
            f"jp-c{FIRST}": {("done", None)},
            f"jp-c{SECOND_ID}": {("skipped", "busy")},
            f"jp-c{THIRD}": {("done", None)},
        }
        assert any(f"process {pid}" in each["message"] for each in found["outcome"]["results"])
        assert sorted(path.name for path in world.store.iterdir()) == [f"{FIRST}-it", f"{THIRD}-it"]
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


def test_the_last_line_counts_what_was_done_and_what_was_not(world: World) -> None:
    three(world)
    with held(world.silo / "locks" / f"jp-c{SECOND_ID}.lock"):
        lines = world.reconcile(code=4, settled=False).stdout.splitlines()
    assert lines[-1].startswith("Done: 2 added to the store, 1 skipped")
    assert "1 skipped" in lines[-1]
    assert f"(jp-c{SECOND_ID}): " in lines[-2]


def test_nothing_below_a_parent_moves_while_jp_has_the_child(world: World) -> None:
    """See docs/design/formats/jp.md#edge-case-90."""
    three(world, parent=FIRST)
    world.reconcile()
    (world.workspace / f"{FIRST}-it").rename(world.workspace / f"{FIRST}-renamed")
    metadata = world.workspace / f"{FIRST}-renamed" / "metadata.json"
    metadata.write_bytes(metadata.read_bytes().replace(b"It", b"Something else"))
    before = sorted(str(path.relative_to(world.workspace)) for path in files(world.workspace))
    with held(world.silo / "locks" / f"jp-c{SECOND_ID}.lock"):
        world.reconcile("--json", code=4, settled=False)
        after = sorted(str(path.relative_to(world.workspace)) for path in files(world.workspace))
        assert after == before
    world.reconcile()
    assert (world.workspace / f"{FIRST}-something-else" / "conversations" / f"{SECOND_ID}-it").is_dir()


def test_a_lock_in_the_workspace_counts_where_the_store_has_none(world: World) -> None:
    """See docs/design/formats/jp.md#edge-case-63."""
    three(world)
    with held(world.project / ".jp" / "locks" / f"jp-c{SECOND_ID}.lock"):
        world.reconcile(code=4, settled=False)
    world.reconcile()


def test_a_second_reconcile_waits_and_says_who_is_at_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    three(world)
    monkeypatch.setenv("RECONCILE_LOCK_TIMEOUT", "0.2")
    with held(world.state / "lock"):
        result = world.run("--workspace", world.project)
        assert result.exit_code == 5
        assert "another reconcile is running on this store" in result.stderr
        assert "Traceback" not in result.output
        assert not world.store.exists()
        assert world.plan()["actions"], "a dry run needs no lock"
    world.reconcile()


def test_two_at_once_both_come_to_an_end(world: World) -> None:
    three(world, parent=FIRST)
    both = [
        subprocess.Popen(command("--workspace", world.project), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(3)
    ]
    for process in both:
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 0, output
    world.reconcile("--check")
    assert len(files(world.store)) == 9


def test_two_checkouts_of_one_store_at_once(world: World) -> None:
    three(world, parent=FIRST)
    world.reconcile()
    other = World(world.project.with_name("other") / "project", world.run)
    shutil.copytree(world.project, other.project)
    other.reconcile()
    append(world.workspace / f"{FIRST}-it", 2, "w", LONG_AGO + 10 * SECOND)
    append(other.workspace / f"{THIRD}-it", 2, "x", LONG_AGO + 20 * SECOND)
    write_conversation(other.workspace / f"{THIRD + 1}-new", "New", events(4))
    before = world.kept() | other.sides()
    both = [
        subprocess.Popen(command("--workspace", project), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for project in (world.project, other.project, world.project, other.project)
    ]
    for process in both:
        output, _ = process.communicate(timeout=50)
        assert process.returncode == 0, output
    for each in (world, other, world):
        each.reconcile(settled=False)
    assert before <= world.kept() | other.sides()
    for each in (world, other):
        each.check_settled()
        assert each.event_count(FIRST, each.workspace) == 5
        assert each.event_count(THIRD, each.workspace) == 5
    assert not list(world.workspace.glob(f"{THIRD + 1}*")), "it is the other's: only available here"
    assert world.event_count(THIRD + 1) == 4

"""Others at work at the same time: JP's locks, a second reconcile, edits between plan and apply, and kill -9."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.world import (
    LONG_AGO,
    SECOND,
    command,
    digest_of,
    events,
    files,
    listing,
    make_project,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.world import World

FIRST, SECOND_ID, THIRD = 17500000001, 17500000002, 17500000003
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


def three(world: World, parent: int | None = None) -> None:
    """Write three conversations; the second may be a child."""
    for number in (FIRST, SECOND_ID, THIRD):
        above = parent if number == SECOND_ID else None
        write_conversation(world.workspace / f"{number}-it", "It", events(3), parent=above)


def edit(directory: Path, voice: str, mtime_ns: int = LONG_AGO + SECOND) -> None:
    stream = directory / "events.json"
    longer = [*json.loads(stream.read_bytes()), *events(2, voice)]
    stream.write_text(json.dumps(longer, indent=2) + "\n")
    os.utime(stream, ns=(mtime_ns, mtime_ns))


def results(found: dict[str, Any]) -> dict[str, set[tuple[str, str | None]]]:
    """Return what became of each conversation's actions."""
    by_id = {action["id"]: action["conversation"] for action in found["actions"]}
    outcome: dict[str, set[tuple[str, str | None]]] = {}
    for result in found["outcome"]["results"]:
        outcome.setdefault(by_id[result["id"]], set()).add((result["result"], result["reason"]))
    return outcome


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
    assert lines[-1].startswith("Done: 2 copy")
    assert "1 skipped" in lines[-1]
    assert "skipped: copy store:" in lines[-2]


def test_nothing_below_a_parent_moves_while_jp_has_the_child(world: World) -> None:
    """Edge case 90."""
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
    """Edge case 63."""
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
        assert "another reconcile is at work" in result.stderr
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


def test_a_saved_plan_refuses_what_was_edited_meanwhile_and_does_the_rest(world: World, tmp_path: Path) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    assert not world.store.exists()
    edit(world.workspace / f"{SECOND_ID}-it", "b")
    result = world.reconcile("apply", saved, "--json", code=4, settled=False)
    assert results(json.loads(result.stdout)) == {
        f"jp-c{FIRST}": {("done", None)},
        f"jp-c{SECOND_ID}": {("skipped", "drift")},
        f"jp-c{THIRD}": {("done", None)},
    }
    assert "changed meanwhile, run again" in world.reconcile("apply", saved, code=4, settled=False).stdout
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


def test_a_saved_plan_is_carried_out_once(world: World, tmp_path: Path) -> None:
    three(world, parent=FIRST)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    world.reconcile("apply", saved)
    assert (world.workspace / f"{FIRST}-it" / "conversations" / f"{SECOND_ID}-it").is_dir()
    before = listing(world.workspace) | listing(world.store)
    world.reconcile("apply", saved, code=4)
    assert listing(world.workspace) | listing(world.store) == before


def test_an_edit_without_another_time_or_size_is_noticed(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    edit(world.workspace / f"{FIRST}-it", "b")
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    stream = world.workspace / f"{FIRST}-it" / "events.json"
    before = stream.stat()
    stream.write_bytes(stream.read_bytes().replace(b"b1", b"b9"))
    os.utime(stream, ns=(before.st_atime_ns, before.st_mtime_ns))
    world.reconcile("apply", saved, code=4, settled=False)
    assert world.event_count(FIRST) == 3
    world.reconcile()
    assert b"b9" in (world.store / f"{FIRST}-it" / "events.json").read_bytes()


ACTION: dict[str, Any] = {
    "id": "1", "kind": "copy", "case": 2, "conversation": "jp-c17500000001", "title": None, "unit": "conversation",
    "reason": "external", "source": None, "target": "store:17500000001-it", "bytes": 0, "events": None,
    "needs": [], "expect": [], "writes": [], "removes": [], "mtime_ns": None, "touches": ["jp-c17500000001"],
}  # fmt: skip


def spoiled(saved: dict[str, Any], **changes: object) -> str:
    return json.dumps(saved | {"actions": [ACTION | changes]})


def bad_plans(saved: dict[str, Any]) -> dict[str, str]:
    """Return files that are no plans, by what is wrong with them."""
    write = {"target": "store:x", "source": None, "content": "!", "size": 1, "mtime_ns": 1, "digest": "0"}
    return {
        "no JSON": "hello",
        "nothing": "",
        "a list": "[]",
        "deep": "[" * 100_000,
        "another format": json.dumps(saved | {"format": "reconcile.plan/2"}),
        "no format": "{}",
        "a path upwards": spoiled(saved, target="store:../x"),
        "an absolute path": spoiled(saved, target="store:/etc/x"),
        "a path upwards inside": spoiled(saved, source="workspace:a/../../b"),
        "no side": spoiled(saved, target="elsewhere:x"),
        "a NUL": spoiled(saved, target="store:a\0b"),
        "an unknown kind": spoiled(saved, kind="explode"),
        "an unknown reason": spoiled(saved, reason="because"),
        "an unknown need": spoiled(saved, needs=["99"]),
        "content that is no base64": spoiled(saved, writes=[write]),
        "an unknown key": spoiled(saved, extra=1),
        "an unknown layout": json.dumps(saved | {"layout": "spiral"}),
        "two actions of one id": json.dumps(saved | {"actions": [ACTION, ACTION]}),
        "numbers beyond all bounds": spoiled(saved, mtime_ns=10**30, kind="age"),
        "another workspace": json.dumps(saved | {"workspace": "/nowhere"}),
        "no id": spoiled(saved, conversation="hello", touches=["../../x"]),
    }


BAD = tuple(bad_plans({}))


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_is_no_plan_is_refused_in_one_line(world: World, tmp_path: Path, what: str) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    bad = tmp_path / "bad.json"
    bad.write_text(bad_plans(json.loads(saved.read_bytes()))[what])
    result = world.run("--workspace", world.project, "apply", bad)
    assert result.exit_code == 2, result.output
    message = result.stderr.splitlines()
    assert message[0].startswith("reconcile: ")
    assert len(message) <= 2, "one line, and a hint"
    assert not world.store.exists()


def test_a_missing_plan_is_one_line(world: World, tmp_path: Path) -> None:
    result = world.run("--workspace", world.project, "apply", tmp_path / "nothing.json")
    assert result.exit_code == 2
    assert "nothing.json" in result.stderr
    assert "Traceback" not in result.output
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\0")
    assert world.run("--workspace", world.project, "apply", tmp_path / "bytes").exit_code == 2
    assert world.run("--workspace", world.project, "apply", tmp_path).exit_code == 2


MANY = 60


def many(world: World) -> None:
    """Write chains of three, flat: a run imports and nests them."""
    for number in range(MANY):
        ident = 17500000000 + number
        parent = ident - 1 if number % 3 else None
        write_conversation(world.workspace / f"{ident}-n", "N", events(3 + number % 5), parent=parent)


def killed(world: World, delay: float) -> bool:
    """Start a run and kill it so long after it has begun to stage files; tell whether it was still at work."""
    with subprocess.Popen(
        command("--workspace", world.project), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and not list(world.silo.glob("conversations/.reconcile-*")):
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_the_next_run_gets_to_the_same_trees(
    world: World, tmp_path: Path, run: Run, seed: int
) -> None:
    many(world)
    whole = make_project(tmp_path / "other" / "project", run)
    many(whole)
    (whole.project / ".jp" / ".id").write_text("x\nother\n")
    begin = time.monotonic()
    whole.reconcile()
    took = time.monotonic() - begin
    before = {digest_of(path) for path in files(world.workspace)}
    chance, kills = random.Random(seed), 0
    for _ in range(5):
        kills += killed(world, chance.uniform(0, took / 2))
        assert before <= world.kept()
    assert kills
    world.reconcile()
    assert listing(world.workspace) == listing(whole.workspace)
    assert listing(world.store) == listing(whole.store)
    world.reconcile("--check")


def test_interrupted_by_the_user(world: World) -> None:
    many(world)
    before = {digest_of(path) for path in files(world.workspace)}
    with subprocess.Popen(
        command("--workspace", world.project), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not list(world.silo.glob("conversations/.reconcile-*")):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.splitlines() == ["reconcile: interrupted; what was begun is finished or cleaned up by the next run"]
    assert before <= world.kept()
    world.reconcile()
    world.reconcile("--check")


def test_a_full_disk_leaves_nothing_half_done(world: World) -> None:
    """One file is larger than may be written: that conversation fails, the others are done."""
    three(world)
    big = [event | {"content": "x" * 10_000} for event in events(300)]
    write_conversation(world.workspace / f"{THIRD}-it", "It", big)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, limit[1]))
    try:
        result = world.reconcile(code=1, settled=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "File too large" in result.stdout
    assert sorted(path.name for path in world.store.iterdir()) == [f"{FIRST}-it", f"{SECOND_ID}-it"]
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


def upset(world: World) -> None:
    """After a first run, change every conversation: here, there, on both sides, or remove it from the store."""
    many(world)
    world.reconcile()
    for number in range(MANY):
        (stored,) = world.store.glob(f"{17500000000 + number}-*")
        (projected,) = (path.parent for path in world.workspace.rglob(f"{17500000000 + number}-*/events.json"))
        if number % 6 in (0, 1, 4):
            edit(projected, "w", LONG_AGO + 10 * SECOND)
        if number % 6 in (2, 4):
            edit(stored, "s", LONG_AGO + 20 * SECOND)
        if number % 12 == 5:
            shutil.rmtree(stored)


def told(world: World) -> tuple[dict[str, tuple[bytes, int]], list[bytes]]:
    """Return the workspace as it is, and the store's streams without the names of the directories."""
    return listing(world.workspace), sorted(path.read_bytes() for path in world.store.rglob("events.json"))


def test_killed_while_replacing_forking_and_removing(world: World, tmp_path: Path, run: Run) -> None:
    upset(world)
    whole = make_project(tmp_path / "other" / "project", run)
    (whole.project / ".jp" / ".id").write_text("x\nother\n")
    upset(whole)
    begin = time.monotonic()
    whole.reconcile()
    took = time.monotonic() - begin
    before, chance = world.sides(), random.Random(7)
    assert any(killed(world, chance.uniform(0, took / 2)) for _ in range(3))
    for _ in range(3):
        killed(world, chance.uniform(0, took / 2))
        assert before <= world.kept()
    world.reconcile()
    assert told(world) == told(whole)

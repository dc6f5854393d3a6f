"""Times that no clock shows: far away, negative, beyond 64 bits of nanoseconds, equal, or in steps of two seconds."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.fs.mutations import Root
from reconcile.model.snapshot import EARLIEST_NS, LATEST_NS
from tests.support.projects.world import LONG_AGO, SECOND, append, events, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.fs.files import Fingerprint
    from reconcile.model.snapshot import Digest
    from tests.conftest import Run
    from tests.support.projects.world import World

NUMBER = 17500000001
NAME = f"{NUMBER}-it"
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system whose times have 64 bits of seconds
YEAR_9999 = 253402300799 * SECOND
ODD = {
    "the epoch": 0,
    "before the epoch": -1,
    "1901": -(2**31) * SECOND,
    "2106": 2**32 * SECOND,
    "9999": YEAR_9999,
    "the last of 64 bits": 2**63 - 1,
    "the first of 64 bits": -(2**63),
    "beyond 64 bits": 2**63 * 1000,
    "long before": -(2**63) * 1000,
    "the end of time": (2**63 - 1) * SECOND,
    "its beginning": -(2**63) * SECOND,
}


@pytest.fixture
def world(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Both sides where any time can be stored."""
    if not MEMORY.is_dir():
        pytest.skip("no file system in memory here, whose times have 64 bits of seconds")
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        monkeypatch.setenv("JP_USER_DATA_DIR", f"{place}/jp")
        yield make_project(Path(place, "project"), run)


def set_times(directory: Path, time_ns: int) -> None:
    for path in directory.rglob("*.json"):
        os.utime(path, ns=(time_ns, time_ns))
        if path.stat().st_mtime_ns != time_ns:
            pytest.skip(f"this file system can't store the time {time_ns} ns")


def every_command(world: World) -> None:
    """None of those that only look comes to grief over a time."""
    for words in (["ls"], ["ls", "--tree"], ["status"], ["status", str(NUMBER)], ["diff", str(NUMBER)], ["-n", "-v"]):
        result = world.run(*words, "--workspace", world.project)
        assert result.exit_code in (0, 4), result.output


@pytest.mark.parametrize("time", ODD.values(), ids=ODD)
def test_a_file_of_any_time_is_saved_or_refused_in_words(world: World, time: int, tmp_path: Path) -> None:
    write_conversation(world.workspace / NAME, "It", events(3))
    write_conversation(world.workspace / f"{NUMBER + 1}-other", "Other", events(3))
    set_times(world.workspace / NAME, time)
    out = tmp_path / "plan.json"
    result = world.run("--workspace", world.project, "--out", out)
    assert result.exit_code in (0, 4), result.output
    result = world.run("apply", out, "--dry-run", "--workspace", world.project)
    assert result.exit_code in (0, 2, 4), result.output
    world.reconcile()
    nearest = min(max(time, EARLIEST_NS), LATEST_NS)
    assert (world.store / NAME / "events.json").stat().st_mtime_ns == nearest
    every_command(world)
    append(world.store / NAME, 2, "s", time)
    world.reconcile()
    assert world.event_count(NUMBER, world.workspace) == 5
    shutil.rmtree(world.store / NAME)
    world.reconcile()
    assert not (world.workspace / NAME).exists()


@pytest.mark.parametrize("time", ODD.values(), ids=ODD)
def test_an_edit_on_both_sides_of_any_time(world: World, time: int) -> None:
    write_conversation(world.workspace / NAME, "It", events(3))
    world.reconcile()
    append(world.workspace / NAME, 2, "w", LONG_AGO)
    append(world.store / NAME, 2, "s", LONG_AGO)
    set_times(world.workspace / NAME, time)
    world.reconcile()


@pytest.mark.parametrize("time", ODD.values(), ids=ODD)
def test_an_old_version_below_a_store_of_any_time(world: World, time: int) -> None:
    """Its time is put below the store's, as far as there is a time below it."""
    write_conversation(world.workspace / NAME, "It", events(3))
    world.reconcile()
    old = (world.workspace / NAME / "events.json").read_bytes()
    append(world.workspace / NAME, 2, "w", LONG_AGO + SECOND)
    world.reconcile()
    set_times(world.store / NAME, time)
    world.reconcile()
    (world.workspace / NAME / "events.json").write_bytes(old)
    world.reconcile()
    assert world.event_count(NUMBER) == 5


def test_odd_times_in_the_metadata(world: World) -> None:
    values: list[Any] = [
        "9999-12-31 23:59:59.999999999", "0000-00-00 00:00:00.0", "0001-01-01T00:00:00+14:00", "10000-01-01 00:00:00.0",
        "9999-12-31T23:59:59-12:00", "1969-12-31 23:59:59.9", 10**400, -(2**70), 1e308, "99999999999999999999",
    ]  # fmt: skip
    keys = ("last_activated_at", "expires_at", "pinned_at", "archived_at")
    for at, (key, value) in enumerate(itertools.product(keys, values)):
        path = write_conversation(world.workspace / f"{NUMBER + at}-it", "It", events(3)) / "metadata.json"
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {key: value}))
    result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    every_command(world)
    assert len(list(world.store.iterdir())) == 29, "held: no time as last_activated_at, and a number beyond any float"


def test_odd_times_in_events(world: World) -> None:
    stream = events(3)
    for at, time in enumerate(("9999-12-31T23:59:59-23:59", "-0001-01-01T00:00:00Z", "1" * 5000)):
        stream[at]["timestamp"] = time
    write_conversation(world.workspace / NAME, "It", stream)
    result = world.run("--workspace", world.project)
    assert result.exit_code in (0, 4), result.output
    every_command(world)


@pytest.mark.parametrize("now", [0, -(10**18), 2**63 - 1])
def test_a_clock_that_is_far_off(world: World, now: int) -> None:
    """Nothing depends on the present but what was written a moment ago, and names of runs."""
    write_conversation(world.workspace / NAME, "It", events(3))
    with mock.patch("time.time_ns", return_value=now):
        result = world.run("--workspace", world.project)
        assert result.exit_code in (0, 1), result.output
        assert "Traceback" not in result.output
        every_command(world)
    append(world.workspace / NAME, 2, "w", LONG_AGO + SECOND)
    world.reconcile()
    assert world.event_count(NUMBER) == 5


def test_equal_times_and_sizes_with_other_bytes(world: World) -> None:
    """The change time tells, which no program can put back."""
    write_conversation(world.workspace / NAME, "It", events(3))
    world.reconcile()
    path = world.workspace / NAME / "events.json"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"a1", b"b1"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    world.reconcile()
    assert b"b1" in (world.store / NAME / "events.json").read_bytes()


def test_a_file_system_with_steps_of_two_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAT: what is written with a time gets another, and still the second run has nothing to do."""
    create = Root.create_file

    def stepwise(
        root: Root, path: str, chunks: Iterable[bytes], mtime_ns: int, mode: int | None = None
    ) -> tuple[Fingerprint, Digest]:
        return create(root, path, chunks, mtime_ns // (2 * SECOND) * 2 * SECOND, mode)

    monkeypatch.setattr(Root, "create_file", stepwise)
    write_conversation(world.workspace / NAME, "It", events(3), mtime_ns=LONG_AGO + 3 * SECOND)
    world.reconcile()
    append(world.workspace / NAME, 2, "w", LONG_AGO + 5 * SECOND)
    world.reconcile()
    append(world.store / NAME, 2, "s", LONG_AGO + 7 * SECOND)
    world.reconcile()
    assert world.event_count(NUMBER, world.workspace) == 7
    append(world.workspace / NAME, 1, "x", LONG_AGO + 9 * SECOND)
    append(world.store / NAME, 1, "y", LONG_AGO + 9 * SECOND)
    world.reconcile()
    assert world.event_count(NUMBER) == world.event_count(NUMBER, world.workspace) == 8

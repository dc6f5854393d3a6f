"""Files larger than memory: streamed, or held in words; the rest is done."""

from __future__ import annotations

import json
import resource
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import LONG_AGO, append, command, events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.long

MB = 1 << 20
NUMBER = 17500000001
NAME = f"{NUMBER}-it"
BARE = 150 * MB
"""Address space for the program itself, with room to spare: 90 MB are enough."""


def limited(world: World, size: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that gets so much address space."""
    return subprocess.run(
        command(*words, "--workspace", world.project),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )


def big_stream(path: Path, size: int) -> None:
    """Write a stream of many events, a kilobyte each."""
    with path.open("w") as file:
        event = json.dumps({"timestamp": "2026-01-01T00:00:00Z", "type": "x", "content": "y" * 960})
        file.write("[\n" + ",\n".join([event] * (size // 1024)) + "\n]\n")


@pytest.fixture
def world(world: World) -> World:
    for at in range(2):
        write_conversation(world.workspace / f"{NUMBER + at}-it", "It", events(3))
    world.store.mkdir(parents=True)
    return world


def test_an_extra_that_is_larger_than_memory_is_streamed(world: World) -> None:
    with (world.workspace / NAME / "film.bin").open("wb") as file:
        file.truncate(300 * MB)
        file.seek(280 * MB)
        file.write(b"the end")
    done = limited(world, BARE)
    assert (done.returncode, done.stderr) == (0, "")
    copied = world.store / NAME / "film.bin"
    assert copied.stat().st_size == 300 * MB
    with copied.open("rb") as file:
        file.seek(280 * MB)
        assert file.read(7) == b"the end"


def test_a_stream_that_is_larger_than_memory_is_streamed(world: World) -> None:
    big_stream(world.workspace / NAME / "events.json", 180 * MB)
    done = limited(world, BARE)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert (world.store / NAME / "events.json").stat().st_size > 170 * MB > BARE


def test_a_broken_stream_that_is_larger_than_memory_is_held(world: World) -> None:
    with (world.workspace / NAME / "events.json").open("wb") as file:
        file.truncate(300 * MB)
    done = limited(world, BARE)
    assert done.returncode == 4, done.stderr
    assert ": only NUL bytes" in done.stdout
    assert [path.name for path in world.store.iterdir()] == [f"{NUMBER + 1}-it"]


@pytest.mark.parametrize("name", ["metadata.json", "base_config.json"])
def test_a_managed_file_that_is_larger_than_memory_is_held(world: World, name: str) -> None:
    with (world.workspace / NAME / name).open("wb") as file:
        file.truncate(300 * MB)
    done = limited(world, BARE)
    assert done.returncode == 4, done.stderr
    assert "too large for the free memory" in done.stdout
    assert not done.stderr
    assert [path.name for path in world.store.iterdir()] == [f"{NUMBER + 1}-it"]


def test_what_is_too_large_to_be_checked_for_secrets_is_not_published(world: World) -> None:
    world.reconcile()
    big_stream(world.store / NAME / "events.json", 180 * MB)
    append(world.store / f"{NUMBER + 1}-it", 1, "b", LONG_AGO + 10)
    done = limited(world, BARE)
    assert (done.returncode, done.stderr) == (4, ""), done.stdout
    assert "can't be checked for secrets (too large for the free memory)" in " ".join(done.stdout.split())
    assert (world.workspace / NAME / "events.json").stat().st_size < MB
    assert world.event_count(NUMBER + 1, world.workspace) == 4


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_continuation_of_a_stream_that_is_larger_than_memory(world: World) -> None:
    """The events of both sides are compared: a little for each. To publish it takes the memory to check it."""
    continued = world.workspace / NAME / "events.json"
    big_stream(continued, 500 * MB)
    done = limited(world, BARE)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    with continued.open("rb+") as file:
        file.seek(-3, 2)
        file.write(b',\n{"timestamp": "2026-01-02T00:00:00Z", "type": "x"}]\n')
    done = limited(world, BARE + 300 * MB)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert (world.store / NAME / "events.json").stat().st_size == continued.stat().st_size

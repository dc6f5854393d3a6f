"""Conversations through their whole history, one state after the other in the workspace, with a run after each."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import (
    CORPUS,
    LONG_AGO,
    NO_CORPUS,
    SECOND,
    contents,
    digest_of,
    events,
    files,
    listing,
    write_conversation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

NAMES = (
    "17462040864",
    "17516205637",
    "17659773217-google-api-streaming-event-conversion-issue",
    "17732257364-stack-overflow-in-recursive-path-test-on-windows",
)
APPENDED = NAMES[3]


def states_of(name: str) -> list[Path]:
    if not CORPUS.is_dir():
        pytest.skip(NO_CORPUS)
    return sorted(path for path in (CORPUS / "history" / name).iterdir() if path.is_dir())


def lay_down(state: Path, directory: Path, time: int) -> None:
    """Have a conversation look like one of its states, with files that are all of one time."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        if not (state / path.name).exists():
            path.unlink()
    for path in files(state):
        target = directory / path.name
        shutil.copyfile(path, target)
        os.utime(target, ns=(time, time))


def play(world: World, name: str, states: list[Path]) -> int:
    """Lay the states down one after the other, a second apart; return the time after the last."""
    time = LONG_AGO
    for state in states:
        lay_down(state, world.workspace / name, time)
        result = world.run("--workspace", world.project, "--json")
        held = json.loads(result.stdout)["held"]
        assert result.exit_code == (4 if held else 0), result.output
        missing = contents(state) - world.kept()
        assert not missing, f"{state.name}: not kept"
        world.check_settled()
        time += SECOND
    return time


@pytest.mark.parametrize("name", NAMES)
def test_every_content_of_a_history_is_kept(world: World, name: str) -> None:
    states = states_of(name)
    play(world, name, states)
    everything = {digest_of(path) for state in states for path in files(state)}
    assert everything <= world.kept()


def test_all_histories_side_by_side(world: World) -> None:
    histories = {name: states_of(name) for name in NAMES}
    for number in range(max(len(states) for states in histories.values())):
        for name, states in histories.items():
            if number < len(states):
                lay_down(states[number], world.workspace / name, LONG_AGO + number * SECOND)
        code = 4 if world.plan()["held"] else 0
        world.reconcile(code=code)
    everything = {digest_of(path) for states in histories.values() for state in states for path in files(state)}
    assert everything <= world.kept()


@pytest.mark.parametrize("name", [NAMES[2], NAMES[3]])
def test_a_step_back_is_set_aside_and_the_store_keeps_the_newer(world: World, name: str) -> None:
    states = states_of(name)
    time = play(world, name, states)
    before = listing(world.store)
    for back in reversed(states[:-1]):
        lay_down(back, world.workspace / name, time)
        found = json.loads(world.reconcile("--json").stdout)
        assert {item["reason"] for item in found["aside"]} == {"behind-aside"}
        assert {action["kind"] for action in found["actions"]} <= {"age"}
        assert listing(world.store) == before, back.name
        assert contents(back) <= contents(world.workspace), "the old version stays where it is"
        time += SECOND
    lay_down(states[-1], world.workspace / name, time)
    found = json.loads(world.reconcile("--json").stdout)
    assert found["aside"] == []
    assert contents(world.store) == contents(states[-1]) | (contents(world.store) & contents(world.workspace))


def test_a_real_append_is_copied_as_such(world: World) -> None:
    first, second, *_ = states_of(APPENDED)
    play(world, APPENDED, [first])
    lay_down(second, world.workspace / APPENDED, LONG_AGO - SECOND)
    found = json.loads(world.reconcile("--json").stdout)
    (action,) = found["actions"]
    assert (action["kind"], action["case"]) == ("copy", 11)
    assert action["events"] == {"before": 49, "after": 83}


def test_two_continuations_of_a_real_state_both_live_on(world: World) -> None:
    first, second, *_ = states_of(APPENDED)
    play(world, APPENDED, [first])
    lay_down(second, world.store / APPENDED, LONG_AGO + 10 * SECOND)
    stream = world.workspace / APPENDED / "events.json"
    ours = [*json.loads(stream.read_bytes()), *events(3, "z")]
    stream.write_text(json.dumps(ours, indent=2) + "\n")
    time = LONG_AGO + 20 * SECOND
    os.utime(stream, ns=(time, time))
    check_fork(world, APPENDED, winner=ours, loser=json.loads((second / "events.json").read_bytes()))


@pytest.mark.parametrize("newer", ["store", "workspace"])
@pytest.mark.parametrize("known", [True, False], ids=["with-baseline", "without-baseline"])
def test_two_continuations_leave_both_as_conversations(world: World, newer: str, *, known: bool) -> None:
    name = "17500000001-a-plan"
    start, later = LONG_AGO, LONG_AGO + 100 * SECOND
    write_conversation(world.workspace / name, "A plan", events(5), mtime_ns=start)
    if known:
        world.reconcile()
    streams = {side: [*events(5), *events(2, voice)] for side, voice in (("store", "s"), ("workspace", "w"))}
    for side, directory in (("store", world.store), ("workspace", world.workspace)):
        time = later + SECOND if side == newer else later
        write_conversation(directory / name, "A plan", streams[side], mtime_ns=time)
    loser = "store" if newer == "workspace" else "workspace"
    check_fork(world, name, winner=streams[newer], loser=streams[loser])


def check_fork(world: World, name: str, *, winner: object, loser: object) -> None:
    """Run, and demand that the winner is on both sides and the loser a child in the store alone."""
    found = json.loads(world.reconcile("--json").stdout)
    assert "fork" in {action["kind"] for action in found["actions"]}
    for side in (world.store, world.workspace):
        assert json.loads((side / name / "events.json").read_bytes()) == winner
    (fork,) = (path for path in world.store.iterdir() if path.name != name)
    metadata = json.loads((fork / "metadata.json").read_bytes())
    title = json.loads((world.store / name / "metadata.json").read_bytes())["title"]
    assert metadata["title"] == f"[diverged] {title}"
    assert metadata["parent_id"] == f"jp-c{name.partition('-')[0]}"
    assert "last_activated_at" in metadata
    assert json.loads((fork / "events.json").read_bytes()) == loser
    assert [path.name for path in world.workspace.iterdir()] == [name]
    again = json.loads(world.reconcile("--json").stdout)
    assert again["summary"] == {"in-sync": 1, "available": 1, "held": 0, "aside": 0}

"""A workspace of somebody's own, and no store yet: the first run, the second, a tree, and the state lost.

Told with a copy of JP's own public conversations, and with made-up ones where that corpus isn't at hand.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from reconcile.engine.engine import Engine
from tests.cli.modules import module
from tests.support.projects.terminal import Session, at_terminal, interrupted_at_terminal
from tests.support.projects.world import (
    CORPUS,
    LONG_AGO,
    NO_CORPUS,
    SECOND,
    World,
    copy_tree,
    events,
    listing,
    set_key,
    spread_times,
    stamps,
    write_conversation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.engine.engine import Pass
    from reconcile.model.policy import Policy
    from tests.conftest import Run

GENERATED = 12


@pytest.fixture(params=["corpus", "generated"])
def world(request: pytest.FixtureRequest, tmp_path: Path, run: Run) -> World:
    """Conversations in a flat workspace, one of them archived, each file with a time of its own."""
    world = World(tmp_path / "project", run)
    if request.param == "corpus":
        if not CORPUS.is_dir():
            pytest.skip(NO_CORPUS)
        copy_tree(CORPUS / "head", world.project)
    else:
        _generate(world)
    spread_times(world.workspace)
    return world


def _generate(world: World) -> None:
    for number in range(GENERATED):
        name = f"{17500000000 + number}-topic-{number}"
        directory = world.workspace / (f".archive/{name}" if number == 5 else name)
        write_conversation(directory, f"Topic {number}", events(3 + number))
    (world.workspace / "17500000001-topic-1" / "NOTE.md").write_text("by hand\n")
    (world.project / ".jp" / ".id").write_text("DO NOT EDIT\nab1cd\n")


def live(world: World) -> list[Path]:
    """Return the conversations at the top of the workspace, in the order of their ids."""
    return sorted(path for path in world.workspace.iterdir() if not path.name.startswith("."))


def grow_a_tree(world: World) -> dict[str, str]:
    """Give parents to nine of them, by hand: A has B, C and D, B has E, E has F; each the place it belongs at."""
    a, b, c, d, e, f, *_ = live(world)
    now = LONG_AGO + 10**6 * SECOND
    parents = {b: a, c: a, d: a, e: b, f: e}
    for child, parent in parents.items():
        set_key(child, "parent_id", f"jp-c{parent.name.partition('-')[0]}", now)
    places = {a.name: a.name}
    for child, parent in parents.items():
        places[child.name] = f"{places[parent.name]}/conversations/{child.name}"
    return places


def check_places(world: World, places: dict[str, str], before: dict[str, tuple[bytes, int]]) -> None:
    """Demand that each conversation lies at its place, with the bytes and times that it had at the top."""
    expected = {}
    for path, entry in before.items():
        name, _, rest = path.partition("/")
        expected[f"{places.get(name, name)}/{rest}"] = entry
    assert listing(world.workspace) == expected


def test_one_run_imports_everything_byte_for_byte(world: World) -> None:
    before, untouched = listing(world.workspace), stamps(world.workspace)
    result = world.reconcile("--json")
    actions = json.loads(result.stdout)["actions"]
    assert {(action["kind"], action["case"]) for action in actions} == {("copy", 2)}
    assert len(actions) == len(live(world)) + 1
    assert listing(world.store) == before
    assert stamps(world.workspace) == untouched, "an import writes to the store alone"


def test_the_second_run_plans_nothing_and_writes_nothing(world: World) -> None:
    world.reconcile()
    untouched, remembered = stamps(world.workspace) | stamps(world.store), world.remembered()
    result = world.reconcile("--json")
    found = json.loads(result.stdout)
    assert found["actions"] == []
    assert found["summary"]["in-sync"] == len(live(world)) + 1
    assert stamps(world.workspace) | stamps(world.store) == untouched
    assert world.remembered() == remembered
    # What was written less than a tick of the clock before it was looked at, it has read again and remembers now.
    before = world.stamps()
    world.reconcile("--check")
    world.reconcile()
    assert world.stamps() == before


def test_parents_by_hand_nest_the_tree_and_layouts_turn_it_over(world: World) -> None:
    world.reconcile()
    places = grow_a_tree(world)
    before = listing(world.workspace)
    world.reconcile()
    check_places(world, places, before)
    assert listing(world.store) == before, "the store stays flat"
    world.reconcile("--layout", "flat", settled=False)
    assert listing(world.workspace) == before
    world.reconcile("--layout", "nested")
    check_places(world, places, before)


def test_a_tree_that_comes_with_the_first_import_is_nested_by_the_same_run(world: World) -> None:
    places = grow_a_tree(world)
    before = listing(world.workspace)
    world.reconcile()
    check_places(world, places, before)
    assert listing(world.store) == before


def test_losing_the_state_changes_nothing(world: World) -> None:
    places = grow_a_tree(world)
    before = listing(world.workspace)
    world.reconcile()
    shutil.rmtree(world.state)
    untouched = stamps(world.workspace) | stamps(world.store)
    assert world.plan()["actions"] == []
    world.reconcile()
    assert stamps(world.workspace) | stamps(world.store) == untouched
    check_places(world, places, before)


def test_a_nested_edit_reaches_the_store_with_its_time(world: World) -> None:
    places = grow_a_tree(world)
    world.reconcile()
    deepest = max(places.values(), key=lambda place: place.count("/"))
    stream = world.workspace / deepest / "events.json"
    edited = [*json.loads(stream.read_bytes()), *events(2, "z")]
    stream.write_bytes(json.dumps(edited, indent=2).encode() + b"\n")
    time = LONG_AGO - 5 * SECOND
    os.utime(stream, ns=(time, time))
    result = json.loads(world.reconcile("--json").stdout)
    assert [(action["kind"], action["case"]) for action in result["actions"]] == [("copy", 11)]
    assert result["actions"][0]["events"]["after"] - result["actions"][0]["events"]["before"] == 2
    name = deepest.rpartition("/")[2]
    ours, theirs = stream.stat(), (world.store / name / "events.json").stat()
    assert (ours.st_size, ours.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)


def test_a_first_run_that_nobody_agrees_to_leaves_nothing(world: World) -> None:

    def contents() -> list[Path]:
        return sorted(world.user_data.parent.rglob("*"))

    before = contents()
    code, shown = at_terminal("--workspace", world.project, answers="n\n", columns=80)
    assert (code, contents()) == (4, before), shown
    assert "This is the first run here. It creates:" in shown
    assert "Cancelled, nothing changed." in shown
    code, shown = interrupted_at_terminal("--workspace", world.project, goal="Continue?")
    assert (code, contents()) == (130, before), shown
    for command in ("undo", "redo"):
        assert "error: there is no" in world.reconcile(command, code=2, settled=False).stderr
        assert contents() == before
    code, shown = at_terminal("--workspace", world.project, answers="y\n", columns=80)
    assert code == 0, shown
    assert shown.count("This is the first run here. It creates:") == 1
    assert shown.count("Topic 3") <= 1, "the plan is printed once"
    assert "Done: " in shown
    world.check_settled()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("project nothing", 2),
        ("local nothing", 2),
        ("fork nothing", 2),
        ("set-parent nothing --none", 2),
        ("rm nothing --yes", 2),
        ("resolve nothing --take store", 2),
        ("restore nothing", 2),
        ("doctor --mend nothing", 2),
        ("doctor --quarantine nothing", 2),
        ("checkouts --forget nothing", 2),
        ("--only nothing --yes", 2),
        ("remote add /nothing/there", 1),
    ],
)
def test_a_command_that_is_refused_creates_nothing(line: str, code: int, world: World) -> None:
    """As the first one of all: neither a store nor a state."""

    def contents() -> list[Path]:
        return sorted(path for path in world.user_data.parent.rglob("*") if path.is_file() or path.name == "reconcile")

    before = contents()
    refused = world.reconcile(*line.split(), code=code, settled=False)
    assert refused.stderr.startswith("error: ")
    assert len(refused.stderr.splitlines()) == 2, "the error, and a hint"
    assert contents() == before


def test_the_question_below_a_long_plan_repeats_what_the_first_run_creates(world: World) -> None:
    code, shown = at_terminal("--workspace", world.project, answers="n\n", columns=80)
    assert len(shown.splitlines()) > 24, "its beginning has left the screen"
    words = " ".join(shown.rpartition("Plan: ")[2].split())
    assert (code, "This first run creates ~/" in words or "This first run creates /" in words) == (4, True), words
    assert " and " in words.partition("creates ")[2].partition(". Continue?")[0], "the store and the records"


def test_a_first_run_asks_again_about_what_has_changed_since_its_question(world: World) -> None:
    asked = Session("--workspace", world.project)
    asked.wait("Continue?")
    write_conversation(world.workspace / "17600000000-later", "Later", events(3))
    asked.type("y\n", after="")
    asked.wait("Later")
    assert not (world.store / "17600000000-later").exists()
    asked.type("y\n", after="Continue?")
    code, shown = asked.end()
    assert code == 0, shown
    assert (world.store / "17600000000-later").is_dir()


def test_a_first_run_of_a_part_plans_once_for_its_question_and_once_under_the_lock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Policy] = []

    def plan(engine: Engine, policy: Policy, **options: object) -> Pass:
        planned.append(policy)
        return original(engine, policy, **options)  # type: ignore[arg-type]

    original, running = Engine.plan, module("run")
    monkeypatch.setattr(Engine, "plan", plan)
    monkeypatch.setattr(running, "is_interactive", lambda _: True)
    monkeypatch.setattr(running, "confirm_or_exit", lambda *_: None)
    first = live(world)[0].name.partition("-")[0]
    done = world.run("--workspace", world.project, "--only", first)
    assert done.exit_code == 0, done.output
    assert len(planned) == 2

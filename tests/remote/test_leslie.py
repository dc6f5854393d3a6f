"""Projects of Leslie on several machines: operations are merged, and each project derives its lists anew."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.formats.fixed_programs import LeslieProgram
from tests.support.formats.leslie_project import carried
from tests.support.projects.machines import git, quiet
from tests.support.projects.record_machines import LeslieMachine, make_leslie_machine
from tests.support.scenarios.line_reader import Words

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

RELATIONS, PLAN = "thread_relations.json", "threads/thread-a/plan.md"
PROGRAM = LeslieProgram()
A_FILE, A_DIRECTORY = {"notes": b"a file"}, {"notes/one.md": b"in a directory", "notes/two.md": b"two"}


def work(machine: LeslieMachine, *lines: str) -> None:
    """Let the program do something; the names of its operations begin with a letter of the machine."""
    for line in lines:
        machine.side.mkdir(exist_ok=True)
        PROGRAM.command(machine.side, machine.home.name[0], Words(line))


def put(side: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (side / path).parent.mkdir(parents=True, exist_ok=True)
        (side / path).write_bytes(content)


def relations(machine: LeslieMachine) -> Any:
    return json.loads((machine.side / RELATIONS).read_bytes())


@pytest.fixture(params=[(), pytest.param(("--encrypt",), marks=pytest.mark.long)], ids=["plain", "encrypted"])
def machines(tmp_path: Path, run: Run, bare: Path, request: pytest.FixtureRequest) -> list[LeslieMachine]:
    found = [make_leslie_machine(tmp_path / name, run) for name in ("laptop", "desktop", "server")]
    for machine in found:
        machine.take_key()
    first, *others = found
    work(first, 'spawn thread-a "Plan"', 'spawn thread-b "Build" parent thread-a')
    (first.side / PLAN).write_text("a plan\n")
    first.run()
    first.add(bare, *request.param)
    first.sync()
    for machine in others:
        machine.add(bare)
        machine.sync()
        machine.run("recover", "--all", "--yes")
    return found


def settle(machines: list[LeslieMachine]) -> None:
    """Everything reaches all projects, and nothing is left to do."""
    for _ in range(2):
        for machine in machines:
            machine.sync_and_run()
    quiet(*machines)
    for machine in machines:
        assert carried(machine.side) == machine.contents
        assert machine.findings() == []


def test_new_machines_get_the_records(machines: list[LeslieMachine]) -> None:
    settle(machines)
    second = machines[1]
    assert (second.side / PLAN).read_text() == "a plan\n"
    assert (second.side / "threads/thread-b/context/live").is_dir()
    assert list(relations(second)["threads"]) == ["thread-a", "thread-b"]


def test_a_record_is_called_by_its_path(machines: list[LeslieMachine]) -> None:
    first, second, _ = machines
    work(first, "done thread-b")
    first.run()
    assert first.run("sync").stdout.splitlines()[0] == f"sent  {RELATIONS}"
    assert {"id": RELATIONS, "title": RELATIONS} in second.sync()["taken"]


def test_no_file_of_the_program_alone_is_sent(machines: list[LeslieMachine], bare: Path) -> None:
    settle(machines)
    first = machines[0]
    assert (first.side / f"{RELATIONS}.bak").exists()
    if first.run("remote", "--json").stdout.count('"encrypted": false'):
        records = git(
            bare, "grep", "-h", "--only-matching", '"name":"[^"]*"', "refs/reconcile/leslie-records", "--", "c"
        )
        assert sorted(set(records.split("\n"))) == [
            '"name":"objectives.json"',
            '"name":"thread_relations.json"',
            '"name":"threads/thread-a"',
        ]


@pytest.mark.long
def test_all_spawn_at_once(machines: list[LeslieMachine]) -> None:
    for machine in machines:
        name = f"thread-{machine.home.name}"
        work(machine, f'spawn {name} "Mine" parent thread-a', "reference thread-b thread-a")
        (machine.side / "threads" / name / "plan.md").write_text(machine.home.name)
        with (machine.side / "injections.log").open("a") as file:
            file.write("")
        (machine.side / "logs").mkdir(exist_ok=True)
        (machine.side / "logs" / "events.ndjson").write_text(f'{{"of": "{machine.home.name}"}}\n')
    settle(machines)
    threads = {"thread-a", "thread-b", "thread-laptop", "thread-desktop", "thread-server"}
    for machine in machines:
        assert set(relations(machine)["threads"]) == threads
        assert set(relations(machine)["relations"]["thread-a"]["children"]) == threads - {"thread-a"}
        assert len((machine.side / "logs" / "events.ndjson").read_text().splitlines()) == 3
        (objective,) = [
            each
            for each in json.loads((machine.side / "objectives.json").read_bytes())["objectives"].values()
            if each["id"] == "obj-00000001"
        ]
        assert set(objective["thread_ids"]) == threads


@pytest.mark.long
def test_a_status_travels(machines: list[LeslieMachine]) -> None:
    work(machines[1], "done thread-b")
    settle(machines)
    assert relations(machines[2])["threads"]["thread-b"]["status"] == "completed"


@pytest.mark.long
def test_an_undo_of_a_sync_takes_records_back_on_one_machine(machines: list[LeslieMachine]) -> None:
    settle(machines)
    first, second, _ = machines
    before = second.contents
    work(first, "done thread-b", 'spawn thread-c "More" parent thread-a')
    first.sync_and_run()
    second.sync()
    taken = second.contents
    second.run("undo")
    assert second.contents == before
    quiet(first, second, equal=False)
    assert (second.contents, first.contents) == (before, taken)
    second.run("redo")
    settle(machines)


@pytest.mark.long
def test_files_of_a_thread_travel_and_go(machines: list[LeslieMachine]) -> None:
    first, second, third = machines
    (first.side / "threads/thread-b/notes.md").write_text("one")
    (second.side / PLAN).write_text("a better plan\n")
    settle(machines)
    assert (third.side / PLAN).read_text() == "a better plan\n"
    (first.side / "threads/thread-a/more.md").write_text("more")
    settle(machines)
    for path in ("threads/thread-a/more.md", PLAN):  # first one of two files, then the last one
        (first.store / path).unlink()
        settle(machines)
        assert path not in third.contents
        assert not (third.side / path).exists()


@pytest.mark.long
def test_a_removal_travels(machines: list[LeslieMachine]) -> None:
    first, _, third = machines
    first.run("rm", "threads/thread-a", "--yes")
    settle(machines)
    assert PLAN not in third.contents
    assert "thread-a" in relations(third)["threads"], "the program's own record of it is another one"


@pytest.mark.long
def test_a_record_that_was_edited_elsewhere_before_its_removal_goes(machines: list[LeslieMachine]) -> None:
    first, second, third = machines
    (first.side / PLAN).write_text("a better plan\n")
    first.sync_and_run()
    first.run("rm", "threads/thread-a", "--yes")
    first.sync()
    (second.side / PLAN).write_text("another plan\n")
    settle([third, first])
    assert PLAN not in third.contents
    assert not (third.side / PLAN).exists()
    settle([second, first, third])
    assert third.contents[PLAN] == b"another plan\n", "an edit wins"


@pytest.mark.long
def test_an_edit_wins_over_a_removal(machines: list[LeslieMachine]) -> None:
    first, second, third = machines
    first.run("rm", "threads/thread-a", "--yes")
    first.sync()
    (second.side / PLAN).write_text("a better plan\n")
    settle([second, first, third])
    assert third.contents[PLAN] == b"a better plan\n"


@pytest.mark.long
def test_a_record_that_was_a_file_and_becomes_a_directory(machines: list[LeslieMachine]) -> None:
    first, second, _ = machines
    (first.side / "notes").write_text("a file")
    settle(machines)
    first.run("rm", "notes", "--yes")
    settle(machines)
    (second.side / "notes").mkdir()
    (second.side / "notes" / "one.md").write_text("in a directory")
    settle(machines)
    assert first.contents["notes/one.md"] == b"in a directory"
    first.run("rm", "notes", "--yes")
    settle(machines)
    (first.side / "notes").write_text("a file again")
    settle(machines)
    assert second.contents["notes"] == b"a file again"


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), [(A_FILE, A_DIRECTORY), (A_DIRECTORY, A_FILE)], ids=["file", "directory"])
def test_a_record_with_another_shape_waits_for_another_name(
    machines: list[LeslieMachine], old: dict[str, bytes], new: dict[str, bytes]
) -> None:
    first, second, _ = machines
    put(first.side, old)
    settle(machines)
    first.run("rm", "notes", "--yes")
    put(first.side, new)
    assert first.run().exit_code == 0
    kinds = "a directory in the store, a file" if old is A_FILE else "a file in the store, a directory"
    for _ in range(2):
        found = first.sync(code=4)
        assert found["held"] == [f"notes: {kinds} on the other side; rename the one in the store, and run again"]
        assert not found["sent"]
    (first.store / "notes").rename(first.store / "others")
    settle(machines)
    assert second.contents.items() >= {key.replace("notes", "others"): each for key, each in new.items()}.items()


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), [(A_FILE, A_DIRECTORY), (A_DIRECTORY, A_FILE)], ids=["file", "directory"])
def test_another_shape_on_another_machine_loses_nothing(
    machines: list[LeslieMachine], old: dict[str, bytes], new: dict[str, bytes]
) -> None:
    first, second, third = machines
    put(first.side, old)
    settle(machines)
    first.run("rm", "notes", "--yes")
    first.sync()
    put(first.side, new)
    first.sync_and_run()
    second.sync(code=4)
    assert second.contents.items() >= old.items()
    for machine in (second, third):
        (machine.store / "notes").rename(machine.store / "others")
    settle(machines)
    both = new | {key.replace("notes", "others"): each for key, each in old.items()}
    assert third.contents.items() >= both.items()


@pytest.mark.long
def test_a_log_with_the_name_of_a_directory_on_another_machine_waits(machines: list[LeslieMachine]) -> None:
    first, second, third = machines
    put(first.side, {"logs/x": b"one\n"})
    settle(machines)
    first.run("rm", "logs/x", "--yes")
    put(first.side, {"logs/x/new.log": b"new\n"})
    first.run()
    first.sync()
    put(second.store, {"logs/x": b"one\ntwo\n"})
    words = "a file in the store, a directory on the other side; rename the one in the store, and run again"
    for args in (("--dry-run",), (), ()):
        assert second.sync(*args, code=4)["held"] == [f"logs/x: {words}"]
    for side in (second.store, second.side):
        (side / "logs/x").rename(side / "logs/y")
    second.sync()
    third.sync()
    third.result()  # the place in the project is free after this run
    settle([second, first, third])
    assert third.contents.items() >= {"logs/x/new.log": b"new\n", "logs/y": b"one\ntwo\n"}.items()


@pytest.mark.parametrize(("old", "new"), [(A_FILE, A_DIRECTORY), (A_DIRECTORY, A_FILE)], ids=["file", "directory"])
def test_another_shape_in_the_workspace_waits_for_another_name(
    tmp_path: Path, run: Run, old: dict[str, bytes], new: dict[str, bytes]
) -> None:
    machine = make_leslie_machine(tmp_path / "laptop", run)
    work(machine, 'spawn thread-a "Plan"')
    put(machine.side, old)
    machine.run()
    for path in old:
        (machine.side / path).unlink()
    if old is A_DIRECTORY:
        (machine.side / "notes").rmdir()
    put(machine.side, new)
    for args in ((), ("--dry-run",)):
        (held,) = json.loads(machine.result(*args, "--json").stdout)["held"]
        assert held["reason"] == "obstructed"
    assert machine.contents.items() >= old.items()
    (machine.store / "notes").rename(machine.store / "others")
    machine.run()
    both = new | {key.replace("notes", "others"): each for key, each in old.items()}
    for found in (machine.contents, carried(machine.side)):
        assert found.items() >= both.items()


@pytest.mark.long
def test_a_lost_folder_is_filled_again(machines: list[LeslieMachine]) -> None:
    first = machines[0]
    before, store = carried(first.side), first.store
    for side in (first.side, store):
        shutil.rmtree(side)
    store.mkdir()
    first.sync()
    first.run("recover", "--all", "--yes")
    assert carried(first.side) == before
    settle(machines)


@pytest.mark.long
def test_two_contents_of_one_operation_need_a_person(machines: list[LeslieMachine]) -> None:
    for machine, text in zip(machines[:2], ("full", "partial"), strict=True):
        value = relations(machine)
        value["operations"][1]["params"]["inherit"] = text
        (machine.side / RELATIONS).write_text(json.dumps(value, indent=2) + "\n")
        machine.run("resolve", RELATIONS, "--take", "workspace")
    machines[0].sync()
    (held,) = machines[1].sync(code=4)["held"]
    assert held.startswith(f"{RELATIONS}: both sides changed it")

"""Vaults of Claudesidian on several machines: records are sent, and each vault makes its own indexes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.formats.claudesidian import conversation, events, session, workspace
from tests.support.formats.claudesidian_project import message, small, trace
from tests.support.projects.machines import quiet
from tests.support.projects.record_machines import VaultMachine, make_vault_machine
from tests.support.projects.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

TALK, ALPHA, EVENTS = ".conversations/conv_a.json", ".workspaces/ws_a.json", ".nexus/workspaces/ws_ws_a.jsonl"


@pytest.fixture(params=[(), pytest.param(("--encrypt",), marks=pytest.mark.long)], ids=["plain", "encrypted"])
def machines(tmp_path: Path, run: Run, bare: Path, request: pytest.FixtureRequest) -> list[VaultMachine]:
    first = VaultMachine(tmp_path / "laptop", World(tmp_path / "laptop" / "vault", run))
    small(first.project, run)
    first.take_key()
    first.run()
    first.add(bare, *request.param)
    first.sync()
    others = [make_vault_machine(tmp_path / name, run) for name in ("desktop", "server")]
    for machine in others:
        machine.take_key()
        machine.add(bare)
        machine.sync()
        machine.run("recover", "--all", "--yes")
    return [first, *others]


def settle(machines: list[VaultMachine]) -> None:
    """Everything reaches all vaults, and nothing is left to do."""
    for _ in range(2):
        for machine in machines:
            machine.sync_and_run()
    quiet(*machines)
    for machine in machines:
        assert machine.vault.carried() == machine.contents
        assert machine.findings() == []


@pytest.mark.long
def test_new_machines_get_the_records_and_make_their_own_indexes(machines: list[VaultMachine]) -> None:
    settle(machines)
    first, second, _ = machines
    assert not [path for path in second.contents if path.endswith("index.json")]
    assert second.records.keys() == {path for path in first.records if path.startswith(".") and "obsidian" not in path}


@pytest.mark.long
def test_all_add_to_the_same_records(machines: list[VaultMachine]) -> None:
    for number, machine in enumerate(machines):
        traces = session("s1", "t1", "t2", f"t{number}here")
        changed = workspace("ws_a", "Alpha plans", sessions={"s1": traces, f"s-{number}": session(f"s-{number}")})
        machine.vault.write(ALPHA, changed | {"lastAccessed": 3000 + number})
        machine.vault.write(f".workspaces/ws_{number}.json", workspace(f"ws_{number}", f"Only here {number}"))
        with (machine.project / EVENTS).open("ab") as file:
            file.write(events(trace(f"tail{number}", id=f"tail{number}", timestamp=10 + number)))
    settle(machines)
    found = json.loads(machines[0].contents[ALPHA])
    assert set(found["sessions"]) == {"s1", "s-0", "s-1", "s-2"}
    assert set(found["sessions"]["s1"]["memoryTraces"]) == {"t1", "t2", "t0here", "t1here", "t2here"}
    lines = [json.loads(line)["id"] for line in machines[0].contents[EVENTS].splitlines()]
    assert lines == ["e1", "e2", "e3", "tail0", "tail1", "tail2"]


@pytest.mark.long
def test_what_only_grew_travels(machines: list[VaultMachine]) -> None:
    path = ".nexus/conversations/conv_conv_a.jsonl"
    machines[1].vault.write(path, machines[1].records[path] + events(message("m2", 1, id="e3", timestamp=3)))
    machines[1].vault.write(TALK, conversation("conv_a", "hello there", "again", "and on"))
    settle(machines)
    assert b'"m2"' in machines[0].contents[path]
    assert b"and on" in machines[2].records[TALK]


@pytest.mark.long
def test_a_removal_and_a_new_name_travel(machines: list[VaultMachine]) -> None:
    first, second, third = machines
    first.run("rm", TALK, "--yes")
    new = TALK.replace("conv_a", "conv_new")
    second.run("rm", ".conversations/conv_b.json", "--yes")
    second.vault.write(new, conversation("conv_new", "a copy"))
    settle(machines)
    assert {path for path in third.contents if path.startswith(".conversations/")} == {new}


def test_an_edit_wins_over_a_removal(machines: list[VaultMachine]) -> None:
    first, second, third = machines
    first.run("rm", TALK, "--yes")
    first.sync()
    second.vault.write(TALK, conversation("conv_a", "hello there", "again", "and on"))
    settle([second, first, third])
    assert b"and on" in third.contents[TALK]


@pytest.mark.long
def test_an_entry_that_was_removed_on_purpose_stays_away_everywhere(machines: list[VaultMachine]) -> None:
    first, second, _ = machines
    second.vault.write(TALK, conversation("conv_a", "hello there", "again", "a secret"))
    settle(machines)
    less = conversation("conv_a", "hello there", updated=5000)
    second.vault.write(TALK, less)
    second.run()
    assert b"a secret" in second.records[TALK], "the program may have lost it"
    second.vault.write(TALK, less)
    second.run("resolve", TALK, "--take", "workspace")
    for machine in (second, *machines, *machines):
        machine.sync_and_run()
    quiet(*machines)
    assert first.records[TALK] == first.contents[TALK] == second.records[TALK]
    assert b"a secret" not in first.contents[TALK]


@pytest.mark.long
def test_an_undo_travels(machines: list[VaultMachine]) -> None:
    first, second, _ = machines
    first.vault.write(TALK, conversation("conv_a", "hello there", "again", "and on"))
    settle(machines)
    first.vault.write(TALK, conversation("conv_a", "hello there", "again", "and on", "and so on"))
    first.run()
    first.sync()
    second.sync_and_run()
    first.run("undo", "--yes")  # of the copy to the store: the vault keeps its version, which is left alone
    first.sync()
    second.sync_and_run()
    quiet(*machines)
    assert b"and so on" not in second.records[TALK]


@pytest.mark.long
def test_one_record_alone_is_sent_and_one_is_kept_here(machines: list[VaultMachine]) -> None:
    first, second, _ = machines
    new = [f".conversations/conv_{name}.json" for name in ("one", "kept", "later")]
    for path in new:
        first.vault.write(path, conversation(path.split("_")[1].removesuffix(".json"), "hello"))
    first.run()
    first.run("remote", "keep-here", new[1])
    assert [entry["id"] for entry in first.sync("--only", new[0])["sent"]] == [new[0]]
    assert [entry["id"] for entry in first.sync()["sent"]] == [new[2]]
    assert [entry["id"] for entry in second.sync("--only", new[2])["taken"]] == [new[2]]
    assert "no record has the id or title" in first.run("sync", "--only", "notes/x.md", code=2).output
    assert "0 records to send" in first.run("status").output


def test_the_removal_of_the_only_record_travels(tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_vault_machine(tmp_path / "one", run)
    machine.vault.write(TALK, conversation("conv_a", "hello"))
    machine.run()
    machine.add(bare)
    machine.sync()
    machine.run("rm", TALK, "--yes")
    assert [entry["id"] for entry in machine.sync()["removed_there"]] == [TALK]


def test_nothing_to_do_looks_at_nothing(machines: list[VaultMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    settle(machines)
    monkeypatch.setattr("reconcile.remote.sync.read_tree", None)
    assert machines[0].sync()["sent"] == []

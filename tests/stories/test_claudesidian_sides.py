"""A vault of Claudesidian and its durable copy through the whole of reconcile, on a real disk."""

from __future__ import annotations

import json
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.formats.claudesidian import conversation, copied, events, needs_corpus, session, workspace
from tests.support.formats.claudesidian_project import TOPS, Vault, below, created, message, opened, small, trace
from tests.support.projects.git_world import git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

CONFLICT = ("C10", "warning", ".workspaces/ws_b (conflict).json")
LEFT = {
    "index-drift": [
        ("C2", "error", ".conversations/conv_z.json"),
        ("C4", "note", ".workspaces/my-index.json"),
        CONFLICT,
        ("C13", "note", ".workspaces/.trace-schema.json"),
    ],
    "job-search-2025-11": [],
    "job-search-2025-12": [],
    "hybrid-from-2025-11": [("C11", "error", ".nexus/workspaces/ws_ws_1795293641790_cjl35e542.jsonl")],
    "hybrid-from-2025-12": [],
}
"""What no rule mends: a person can, or somebody who asks for it."""


def from_corpus(scenario: str, path: Path, run: Run) -> Vault:
    copied(scenario, path)
    for each in (path, *path.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)
    return Vault(path, run)


@needs_corpus
@pytest.mark.parametrize("scenario", LEFT)
def test_each_of_the_corpus_there_and_back(run: Run, tmp_path: Path, scenario: str) -> None:
    vault = from_corpus(scenario, tmp_path / "vault", run)
    before = vault.records()
    held = 4 if scenario == "index-drift" else 0
    shown = run("--dry-run", "-w", vault.path).stdout
    assert vault.records() == before
    assert ("rebuild" in shown) == bool(held)
    vault.reconcile(code=held)
    assert vault.doctor() == LEFT[scenario]
    torn = {".conversations/conv_z.json"} if held else set()
    assert below(vault.store) == {path: content for path, content in vault.carried().items() if path not in torn}
    vault.reconcile("undo", "--allow-bulk-removal")
    assert vault.records() == before
    assert below(vault.store) == {}


@needs_corpus
def test_what_is_on_request_is_done_on_request(run: Run, tmp_path: Path) -> None:
    vault = from_corpus("index-drift", tmp_path / "vault", run)
    vault.reconcile(code=4)
    vault.reconcile("doctor", "--mend", "C10:.workspaces/ws_b (conflict).json", code=4)
    assert vault.doctor() == [each for each in LEFT["index-drift"] if each != CONFLICT]
    (vault.path / ".conversations" / "conv_z.json").unlink()
    vault.reconcile()
    assert [severity for _, severity, _ in vault.doctor()] == ["note", "note"]


@needs_corpus
def test_states_that_the_migration_emptied_get_their_content_back(run: Run, tmp_path: Path) -> None:
    vault = from_corpus("job-search-2025-11", tmp_path / "vault", run)
    copied("hybrid-from-2025-11", vault.path)
    assert vault.doctor() == LEFT["hybrid-from-2025-11"]
    before = vault.records()
    vault.reconcile()
    assert vault.doctor() == []
    (grown,) = (path for path, content in vault.records().items() if content != before[path])
    assert vault.records()[grown].startswith(before[grown])
    vault.reconcile("undo", "--allow-bulk-removal")
    assert vault.records() == before


def test_a_vault_there_and_back(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    before = vault.records()
    vault.reconcile()
    assert vault.records() == before
    assert below(vault.store) == vault.carried()
    assert vault.doctor() == []
    vault.reconcile("undo", "--allow-bulk-removal")
    assert (vault.records(), below(vault.store)) == (before, {})


def test_the_versions_of_a_record_are_of_its_file(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    vault.reconcile()
    for name in ("Once", "Twice"):
        vault.write(".workspaces/default.json", workspace("default", name))
        vault.reconcile()
    hints = run("restore", ".workspaces/default.json", "-w", vault.path).stderr.splitlines()[1:]
    assert [hint.rpartition(": ")[2] for hint in hints] == ["file)", "file)"], hints


def test_a_drifted_vault_is_mended_and_put_back(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    vault.reconcile()
    vault.write(".workspaces/ws_new.json", workspace("ws_new", "Constructor patterns"))
    vault.write(".conversations/conv_a.json", conversation("conv_a", "hello", "more", "words", message_count=2))
    vault.write(".workspaces/index.json", b'{"workspaces": {')
    before = (vault.records(), below(vault.store))
    vault.reconcile()
    assert below(vault.store) == vault.carried()
    assert vault.doctor() == []
    vault.reconcile("undo", "--allow-bulk-removal")
    assert (vault.records(), below(vault.store)) == before


@pytest.mark.parametrize("gone", [(".workspaces",), (".conversations",), (".nexus",), TOPS])
def test_what_was_deleted_comes_back(run: Run, tmp_path: Path, gone: tuple[str, ...]) -> None:
    vault = small(tmp_path / "vault", run)
    before, stored = vault.records(), vault.carried()
    vault.reconcile()
    for each in gone:
        shutil.rmtree(vault.path / each)
    left = vault.records()
    result = vault.run("-w", vault.path)
    assert ("recover" if gone == TOPS else "still in the store") in result.output, result.output
    assert vault.records() == left
    assert below(vault.store) == stored
    vault.reconcile("recover", "--yes")
    assert vault.records().keys() == before.keys()
    assert vault.carried() == below(vault.store) == stored
    assert vault.doctor() == []


@pytest.fixture
def two(run: Run, tmp_path: Path) -> tuple[Vault, Vault]:
    """Two clones of one vault with one durable copy, in sync."""
    (tmp_path / "store").mkdir()
    here = small(tmp_path / "here", run, tmp_path / "store")
    shutil.copytree(here.path, tmp_path / "there")
    there = Vault(tmp_path / "there", run, here.shared)
    here.reconcile()
    there.reconcile()
    return here, there


def meet(here: Vault, there: Vault) -> None:
    """Both run in turn until both have everything."""
    here.reconcile(settled=False)
    there.reconcile(settled=False)
    here.reconcile()
    there.reconcile()
    assert here.carried() == there.carried() == below(here.store)
    assert here.doctor() == there.doctor() == []


def test_two_that_both_add(two: tuple[Vault, Vault]) -> None:
    here, there = two
    for number, vault in enumerate(two):
        traces = session("s1", "t1", "t2", f"t{number}here")
        changed = workspace("ws_a", "Alpha plans", sessions={"s1": traces, f"s-{number}": session(f"s-{number}")})
        vault.write(".workspaces/ws_a.json", changed | {"lastAccessed": 3000 + number})
        vault.write(".conversations/conv_a.json", _talk(f"said {number}", f"msg_new{number}", number))
        vault.write(f".workspaces/ws_{number}.json", workspace(f"ws_{number}", f"Only here {number}"))
        stream = vault.path / ".nexus" / "workspaces" / "ws_ws_a.jsonl"
        with stream.open("ab") as file:
            file.write(events(trace(f"tail{number}", id=f"tail{number}", timestamp=10 + number)))
        vault.index()
    meet(here, there)
    found = json.loads(here.records()[".workspaces/ws_a.json"])
    assert set(found["sessions"]) == {"s1", "s-0", "s-1"}
    assert set(found["sessions"]["s1"]["memoryTraces"]) == {"t1", "t2", "t0here", "t1here"}
    messages = json.loads(here.records()[".conversations/conv_a.json"])
    assert [each["id"] for each in messages["messages"]] == ["msg_0", "msg_1", "msg_new0", "msg_new1"]
    assert messages["message_count"] == 4
    lines = here.records()[".nexus/workspaces/ws_ws_a.jsonl"].splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["e1", "e2", "e3", "tail0", "tail1"]


def _talk(text: str, id_: str, number: int) -> dict[str, object]:
    made = conversation("conv_a", "hello there", "again")
    messages = [*made["messages"], {"id": id_, "role": "user", "content": text, "timestamp": 10 + number}]
    return made | {"messages": messages, "message_count": 3, "updated": 3000 + number}


def test_an_index_that_an_undo_has_put_back_follows_later_changes(two: tuple[Vault, Vault]) -> None:
    here, there = two
    here.write(".conversations/conv_new.json", conversation("conv_new", "brand new"))
    here.reconcile()
    there.reconcile()
    there.reconcile("undo")
    assert not (there.path / ".conversations/conv_new.json").exists()
    there.write(".conversations/conv_b.json", conversation("conv_b", "something else"))
    there.reconcile()
    assert not (there.path / ".conversations/conv_new.json").exists()
    index = (there.path / ".conversations/index.json").read_text()
    assert ("something" in index, "brand" in index) == (True, False)
    assert there.doctor() == []


def test_one_that_only_grew_is_no_conflict(two: tuple[Vault, Vault]) -> None:
    here, there = two
    path = ".nexus/conversations/conv_conv_a.jsonl"
    longer = here.records()[path] + events(message("m2", 1, id="e3", timestamp=3))
    here.write(path, longer)
    meet(here, there)
    assert there.records()[path] == longer


def test_events_that_contradict_are_for_a_person(two: tuple[Vault, Vault]) -> None:
    here, there = two
    path = ".nexus/workspaces/ws_ws_a.jsonl"
    for number, vault in enumerate(two):
        vault.write(
            path, events(created("ws_a"), opened("s1"), trace("t1"), trace(f"other{number}", id="same", timestamp=5))
        )
    here.reconcile()
    result = there.reconcile(code=4)
    assert "events that differ between the sides" in result.stdout
    assert f"reconcile resolve {path} --take" in result.stdout
    there.reconcile("resolve", path, "--take", "store")
    assert there.carried() == here.carried() == below(here.store)
    assert there.doctor() == []


def test_edited_here_and_deleted_there(two: tuple[Vault, Vault]) -> None:
    here, there = two
    (there.path / ".conversations" / "conv_a.json").unlink()
    there.reconcile()
    here.write(".conversations/conv_a.json", conversation("conv_a", "hello there", "again", "and on"))
    here.reconcile()
    assert b"and on" in below(here.store)[".conversations/conv_a.json"]
    there.reconcile()
    assert ".conversations/conv_a.json" not in there.records()


def test_what_is_listed(two: tuple[Vault, Vault]) -> None:
    here, _ = two
    (here.path / ".conversations" / "conv_a.json").unlink()
    here.write(".workspaces/ws_new.json", b"{")
    found = json.loads(here.run("ls", "--json", "-w", here.path, "--store", here.store).stdout)
    assert found["format"] == "reconcile.records/1"
    rows = {each["record"]: (each["holds"], each["where"]) for each in found["records"]}
    assert rows == {
        ".workspaces/ws_a.json": ("1 session, 2 traces", "both"),
        ".workspaces/default.json": ("0 sessions, 0 traces", "both"),
        ".workspaces/ws_new.json": ("can't be read", "workspace"),
        ".conversations/conv_a.json": ("2 messages", "store"),
        ".conversations/conv_b.json": ("0 messages", "both"),
        ".nexus/workspaces/ws_ws_a.jsonl": ("3 events", "both"),
        ".nexus/conversations/conv_conv_a.jsonl": ("2 events", "both"),
    }
    times = [each["last_ms"] for each in found["records"]]
    assert times == sorted(times, reverse=True)
    empty = here.path.parent / "empty"
    (empty / ".workspaces").mkdir(parents=True)
    assert here.run("ls", "-w", empty).stdout == "no records\n"


def test_deleted_from_the_store(two: tuple[Vault, Vault]) -> None:
    here, there = two
    (here.store / ".conversations" / "conv_b.json").unlink()
    (here.store / ".nexus" / "conversations" / "conv_conv_a.jsonl").unlink()
    meet(here, there)
    assert ".conversations/conv_b.json" not in there.records()


def test_a_record_that_is_torn_in_one_checkout(two: tuple[Vault, Vault]) -> None:
    here, there = two
    whole = here.records()
    path = ".workspaces/ws_a.json"
    here.write(path, whole[path][:100])
    here.index()
    result = here.reconcile(code=4)
    assert f"reconcile resolve {path} --take store" in result.stdout, result.stdout
    there.reconcile()
    assert there.records() == whole
    here.reconcile(
        "resolve", path, "--take", "store", settled=False
    )  # the index that came meanwhile is any run's to do
    assert here.records()[path] == whole[path]
    meet(here, there)


def test_worktrees_of_one_repository_share_what_they_have(run: Run, tmp_path: Path) -> None:
    here = small(tmp_path / "vault", run)
    git(here.path, "init", "-q")
    (here.path / ".gitignore").write_text("".join(f"/{top}/\n" for top in TOPS))
    git(here.path, "add", ".")
    git(here.path, "commit", "-qm", "notes")
    git(here.path, "worktree", "add", "-q", str(tmp_path / "tree"))
    here.reconcile()
    there = Vault(tmp_path / "tree", run)
    result = run("recover", "--all", "--yes", "-w", there.path, "--format", "claudesidian")
    assert result.exit_code == 0, result.output
    assert there.carried() == here.carried()
    assert there.doctor() == []
    there.write(".workspaces/ws_b.json", workspace("ws_b", "Beta"))
    assert run("-w", there.path).exit_code == 0
    here.reconcile()
    assert here.carried() == there.carried() == below(here.store)
    assert here.doctor() == there.doctor() == []


def test_a_suggested_command_has_a_title_as_a_shell_reads_it(two: tuple[Vault, Vault]) -> None:
    here, there = two
    path = ".nexus/workspaces/ws_b $(touch y).jsonl"
    for number, vault in enumerate(two):
        vault.write(path, events(created("b"), trace(f"other{number}", id="same", timestamp=5)))
    here.reconcile()
    lines = there.reconcile(code=4).stdout.splitlines()
    command = next(line.strip() for line in lines if "--take store" in line)
    assert command.startswith(f"reconcile resolve '{path}' --take store")
    there.reconcile(*shlex.split(command)[1:5])
    assert there.carried() == here.carried() == below(here.store)

"""A vault of Claudesidian in trouble: a run that is killed, a full disk, and what nobody expects to find there."""

from __future__ import annotations

import itertools
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.fault_points import Mode, under_fault
from tests.support.formats.claudesidian import conversation, events, session, workspace
from tests.support.formats.claudesidian_project import NOTE, SETTINGS, TOPS, Vault, below, small, trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

EVERY = bool(os.environ.get("RECONCILE_EVERY_STEP"))
STEPS = {Mode.KILLED: 9, Mode.TORN: 2, Mode.FULL: 9}
"""Every so manieth step; RECONCILE_EVERY_STEP=1 takes each."""


@pytest.fixture
def upset(run: Run, tmp_path: Path) -> Vault:
    """A vault with something for every kind of step: new, removed, grown on both sides, derived."""
    vault = small(tmp_path / "vault", run)
    vault.write(".workspaces/ws_old.json", workspace("ws_old", "Old ideas"))
    vault.index()
    vault.reconcile()
    vault.write(".workspaces/ws_new.json", workspace("ws_new", "Constructor patterns"))
    store = Vault(vault.store, run)
    store.write(".conversations/conv_c.json", conversation("conv_c", "from elsewhere"))
    (store.path / ".workspaces" / "ws_old.json").unlink()
    stream = ".nexus/workspaces/ws_ws_a.jsonl"
    for number, each in enumerate((vault, store)):
        sessions = {"s1": session("s1", "t1", "t2", f"t{number}x")}
        grown = workspace("ws_a", f"Alpha {number}", sessions=sessions, lastAccessed=3000 + number)
        each.write(".workspaces/ws_a.json", grown)
        each.write(stream, each.records()[stream] + events(trace(f"x{number}", id=f"x{number}", timestamp=9 + number)))
    return vault


@pytest.mark.parametrize("mode", [Mode.KILLED, Mode.TORN, Mode.FULL])
@pytest.mark.long
def test_cut_short_at_any_step(upset: Vault, tmp_path: Path, mode: Mode) -> None:
    every = 1 if EVERY else STEPS[mode]
    saved = tmp_path / "saved"
    places = [upset.path, upset.store, *upset.data.glob("claudesidian-*")]

    def put_back() -> None:
        for number, path in enumerate(places):  # the directories themselves stay, as they are known by their inodes
            for each in path.iterdir():
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            shutil.copytree(saved / str(number), path, dirs_exist_ok=True)

    for number, path in enumerate(places):
        shutil.copytree(path, saved / str(number))
    upset.reconcile()
    end = upset.records(), below(upset.store)
    for step in itertools.count(1, every):
        put_back()
        before = upset.kept()
        hit = under_fault(mode, step, partial(_tolerant, upset))
        if not hit:
            break
        assert before <= upset.kept(), f"{mode} at step {step}"
        upset.reconcile()
        assert (upset.records(), below(upset.store)) == end, f"{mode} at step {step}"
        assert not list(upset.data.rglob(".reconcile-*"))
    assert step > every


def _tolerant(vault: Vault) -> None:
    assert vault.run("-w", vault.path).exit_code in (-9, 0, 1, 4)


def test_links_in_the_place_of_directories_and_files_are_not_followed(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    vault.reconcile()
    elsewhere = tmp_path / "elsewhere"
    shutil.move(vault.path / ".conversations", elsewhere)
    (vault.path / ".conversations").symlink_to(elsewhere)
    item = vault.path / ".workspaces" / "ws_a.json"
    shutil.move(item, tmp_path / "ws_a.json")
    item.symlink_to(tmp_path / "ws_a.json")
    stored, before = below(vault.store), {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    result = run("-w", vault.path)
    assert "symbolic link" in result.output, result.output
    assert below(vault.store) == stored
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before
    assert item.is_symlink()
    assert (vault.path / ".conversations").is_symlink()


def test_a_vault_that_is_reached_by_a_link_is_the_one_that_was_named(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    (tmp_path / "link").symlink_to("vault")
    assert run("-w", tmp_path / "link").exit_code == 0
    result = run("-w", vault.path)
    assert (result.exit_code, "Nothing to do" in result.stdout) == (0, True), "it is the same vault"


def test_what_is_no_file(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    os.mkfifo(vault.path / ".workspaces" / "ws_pipe.json")
    os.mkfifo(vault.path / ".nexus" / "workspaces" / "pipe.jsonl")
    name = os.fsencode(vault.path / ".workspaces") + b"/ws_\xff.json"
    with open(name, "wb") as file:
        file.write(b"{}")
    (vault.path / ".conversations" / "a\nb.json").write_bytes(b"{}")
    vault.write(".workspaces/backups/ws_a-2025.json.bak", b"\xff\x00")
    result = vault.reconcile("-v")
    for words in ("ws_pipe.json", "pipe.jsonl", "a\\x0ab.json", "ws_\\xff.json"):
        assert words in result.output, result.output
    assert below(vault.store)[".workspaces/backups/ws_a-2025.json.bak"] == b"\xff\x00"
    assert len(below(vault.store)) == 7


def test_ids_are_never_paths(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    for name, id_ in (("ws_x", "../../escape"), ("ws_y", "a/b"), ("ws_z", "__proto__")):
        vault.write(f".workspaces/{name}.json", workspace(id_, "Strange"))
    vault.reconcile()
    assert set((vault.path).iterdir()) == {vault.path / each for each in (*TOPS, NOTE, f"{NOTE}.md", SETTINGS)}
    assert not list(tmp_path.glob("escape*"))
    for code, _, place in vault.doctor():
        if code == "C10":
            result = run("doctor", "--mend", f"C10:{place}", "-w", vault.path)
            assert result.exit_code in (0, 2, 4), result.output
    assert not list(tmp_path.rglob("escape*"))


def test_a_store_within_the_vault_is_refused(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    for where in (".workspaces/copy", ".nexus", "."):
        (vault.path / where).mkdir(exist_ok=True)
        before = vault.records()
        result = run("-w", vault.path, "--store", vault.path / where)
        assert result.exit_code == 2, (where, result.output)
        assert vault.records() == before


def test_a_vault_that_is_a_project_of_jp_too(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    (vault.path / ".jp" / "conversations").mkdir(parents=True)
    (vault.path / ".jp" / ".id").write_text("ab1cd\n")
    assert run("-w", vault.path).exit_code == 0
    assert not (vault.data / "stores").exists()
    assert run("-w", vault.path, "--format", "claudesidian").exit_code == 0
    assert below(vault.store) == vault.carried()
    inside = small(tmp_path / "vault" / "inside", run)
    assert run("-w", inside.path, "--format", "claudesidian").exit_code == 0
    assert below(inside.store) == inside.carried()


@pytest.mark.long
def test_a_large_record(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    states = {"big": {"id": "big", "name": "big", "created": 1, "state": {"text": "x" * 30_000_000}}}
    vault.write(".workspaces/ws_a.json", workspace("ws_a", sessions={"s1": session("s1", "t1") | {"states": states}}))
    vault.index()
    vault.reconcile()
    assert below(vault.store) == vault.carried()


def test_what_changes_the_cache_changes_nothing(run: Run, tmp_path: Path) -> None:
    vault = small(tmp_path / "vault", run)
    vault.reconcile()
    (vault.path / ".nexus" / "cache.db").write_bytes(b"SQLite")
    result = vault.reconcile()
    assert "Nothing to do" in result.output
    assert not (vault.store / ".nexus" / "cache.db").exists()

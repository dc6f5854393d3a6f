"""A record that can't be read: the doctor names the best whole copy there is, and its commands bring that back."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.formats.claudesidian import session, workspace
from tests.support.formats.claudesidian_project import Vault, below, small
from tests.support.formats.leslie import Leslie
from tests.support.formats.leslie_project import Sides

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

PATH = ".workspaces/ws_a.json"
RICH = workspace("ws_a", "Alpha", sessions={name: session(name, f"{name}1", f"{name}2") for name in "pqr"})


@pytest.fixture
def two(run: Run, tmp_path: Path) -> tuple[Vault, Vault]:
    """Two clones of one vault with one durable copy, in sync."""
    (tmp_path / "store").mkdir()
    here = small(tmp_path / "here", run, tmp_path / "store")
    here.write(PATH, RICH)
    here.index()
    shutil.copytree(here.path, tmp_path / "there")
    there = Vault(tmp_path / "there", run, here.shared)
    here.reconcile()
    there.reconcile()
    return here, there


def told(vault: Vault, place: str = PATH) -> list[str]:
    """What the doctor says about a place, first things first."""
    given = ("-w", vault.path, "--store", vault.store)
    found = json.loads(vault.run("doctor", "--json", *given).stdout)["findings"]
    mend: list[str] = next(each["mend"] for each in found if each["place"] == place)
    return mend


def carry_out(vault: Vault, lines: list[str]) -> None:
    """Run the commands among these lines, before the advice that follows."""
    for line in lines:
        if line.startswith("reconcile "):
            words = line.split()[1:]
            elsewhere = () if "--workspace" in words else ("-w", vault.path)
            result = vault.run(*words, *elsewhere, "--store", vault.store)
            assert result.exit_code in (0, 4), result.output


def test_the_durable_copy_comes_first(two: tuple[Vault, Vault]) -> None:
    here, _ = two
    whole = here.records()[PATH]
    here.write(PATH, whole[: len(whole) // 2])
    lines = told(here)
    assert lines[:2] == ["the store has a valid version", f"reconcile resolve {PATH} --take store"]
    carry_out(here, lines)
    assert here.records()[PATH] == below(here.store)[PATH] == whole


def test_what_is_mended_all_the_same_replaces_nothing_that_holds_more(two: tuple[Vault, Vault]) -> None:
    here, there = two
    whole = here.records()[PATH]
    for cut in range(len(whole) // 3, len(whole), 97):
        here.write(PATH, whole[:cut])
        here.reconcile("doctor", "--mend", f"C2:{PATH}", settled=False)
        assert json.loads(below(here.store)[PATH]) == RICH, cut
        here.reconcile()
        assert json.loads(here.records()[PATH]) == RICH, cut
    there.reconcile()
    assert json.loads(there.records()[PATH]) == RICH


def test_another_checkout_has_it(two: tuple[Vault, Vault]) -> None:
    here, there = two
    whole = here.records()[PATH]
    here.write(PATH, whole[: len(whole) // 2])
    (here.store / PATH).write_bytes(whole[: len(whole) // 3])
    lines = told(here)
    assert lines[0].startswith(f"{there.path / PATH} is valid: copy it")
    carry_out(here, lines)
    assert here.records()[PATH] == below(here.store)[PATH] == there.records()[PATH] == whole


def test_only_the_vault_has_it(two: tuple[Vault, Vault]) -> None:
    here, there = two
    whole = here.records()[PATH]
    newer = {**RICH, "sessions": {**RICH["sessions"], "s": session("s")}, "lastAccessed": 3000}
    here.write(PATH, newer)
    here.reconcile()
    there.reconcile()
    for place in (here.path, there.path, here.store):
        (place / PATH).write_bytes(whole[: len(whole) // 3])
    lines = told(here)
    assert lines[0] == "the vault has a valid version"
    assert lines[1].startswith("reconcile restore ")
    carry_out(here, lines)
    assert here.records()[PATH] == below(here.store)[PATH] == whole


def test_nothing_is_named_where_there_is_nothing(two: tuple[Vault, Vault]) -> None:
    here, _ = two
    here.write(".workspaces/ws_new.json", b'{"id": "ws_new", "name": "N')
    assert told(here, ".workspaces/ws_new.json") == ["replace it with a copy from elsewhere"]


def test_leslie_with_a_torn_backup(tmp_path: Path, run: Run) -> None:
    sides = Sides(tmp_path / "project", run)
    sides.leslie.mkdir(parents=True)
    played = Leslie().play([("spawn", 0, 0, 0), ("spawn", 1, 0, 1), ("inject", 0, 0, 0)])
    (sides.leslie / "thread_relations.json").write_bytes(played.relations_file())
    (sides.leslie / "objectives.json").write_bytes(played.objectives_file())
    sides.reconcile()
    before = (sides.store / "thread_relations.json").read_bytes()
    for name in ("thread_relations.json", "thread_relations.json.bak"):
        (sides.leslie / name).write_bytes(before[:900])
    result = run("doctor", "-w", sides.project)
    first = result.stdout.index("reconcile resolve thread_relations.json --take store")
    assert first < result.stdout.index("reconcile doctor --mend F2:thread_relations.json")
    sides.reconcile("doctor", "--mend", "F2:thread_relations.json")
    operations = [
        json.loads((root / "thread_relations.json").read_bytes())["operations"] for root in (sides.leslie, sides.store)
    ]
    assert operations == [played.operations] * 2

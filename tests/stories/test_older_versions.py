"""Today's version opens the state of an older one, plans the same, and continues what that version has done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.projects.older_state import (
    ARCHIVED,
    BEHIND,
    CHILD,
    FORKED,
    IN_SYNC,
    LOCAL,
    NEW,
    PLACE,
    PLAN,
    REMOVED,
    UNDONE,
    unpacked,
)

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.projects.world import World

ARCHIVES = sorted((Path(__file__).parents[2] / "fixtures" / "older").glob("*.tar.xz"))
COMMANDS = ["reconcile", "reconcile local 17500000003", *["reconcile"] * 4, "reconcile undo --yes"]
WORDS = {
    IN_SYNC: "newer-in-workspace",
    CHILD: "in-sync",
    LOCAL: "local",
    REMOVED: "removed",
    ARCHIVED: "in-sync",
    BEHIND: "behind",
    FORKED: "in-sync",
    UNDONE: "undone",
    NEW: "external",
}


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def older(request: pytest.FixtureRequest, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world as an older version has left it (fixtures/README.md)."""
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return unpacked(request.param, tmp_path, run)


def answer(world: World, *args: str) -> Any:
    result = world.run(*args, "--workspace", world.project, "--json")
    assert result.exit_code in (0, 4), result.output
    return json.loads(result.stdout)


def without_messages(plan: Any) -> Any:
    """Return a plan without its messages: their words are for people, and may change."""
    for item in (*plan["held"], *plan["aside"], *plan["notes"]):
        del item["message"]
    return plan


def test_the_plan_is_the_same(older: World) -> None:
    root = older.project.parent
    then = json.loads((root / PLAN).read_text().replace(str(PLACE), str(root)))
    added: dict[str, object] = {"choices": {}, "allow_secrets": {}}
    then = {"conflicts": [], **then, "policy": {**added, **then["policy"]}}
    assert without_messages({**older.plan(), "now_ns": then["now_ns"]}) == without_messages(then)


def test_every_conversation_has_its_state(older: World) -> None:
    words = {each["conversation"]: each["word"] for each in answer(older, "status")["conversations"]}
    assert sorted(words.values()) == sorted([*WORDS.values(), "available"]), "the fork is in the store only"
    details = {each["conversation"]: each["detail"] for each in answer(older, "status")["conversations"]}
    assert "both sides changed it, and the run took the" in details[f"jp-c{FORKED}"]
    assert words.items() > {f"jp-c{number}": word for number, word in WORDS.items()}.items()


def test_the_runs_are_in_the_log(older: World) -> None:
    runs = answer(older, "log")["runs"]
    assert [run["command"] for run in reversed(runs)] == COMMANDS
    assert runs[0]["undoes"] == runs[1]["id"]
    assert f"jp-c{FORKED}" in older.run("log", runs[3]["id"], "--workspace", older.project).stdout


def test_a_run_leaves_nothing_to_do(older: World) -> None:
    older.reconcile()
    assert older.event_count(IN_SYNC) == 4
    assert older.event_count(NEW) == 2
    assert not list(older.workspace.glob(f"{REMOVED}*"))
    assert not list(older.workspace.glob(f"{LOCAL}*"))


def test_an_older_run_is_undone(older: World) -> None:
    older.reconcile()
    (forking,) = [run["id"] for run in answer(older, "log")["runs"] if run["summary"].get("fork")]
    older.reconcile("undo", forking, "--yes", code=4)
    assert not list(older.store.glob("*diverged*"))
    assert older.event_count(FORKED, older.workspace) == 4
    older.reconcile("undo", "--yes")
    older.reconcile("project", str(LOCAL))
    assert older.event_count(LOCAL, older.workspace) == 3


def test_what_was_kept_is_in_the_vault(older: World) -> None:
    undone = answer(older, "log")["runs"][1]["id"]
    shown = older.run("show", f"jp-c{UNDONE}@{undone}:metadata", "--workspace", older.project)
    assert json.loads(shown.stdout)["title"] == "Undone"

"""``reconcile review`` over a saved plan, an undo, the offer of `recover`, and a run of the log, at a real terminal."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.conflicts import conflicts, id_of
from tests.support.projects.terminal import Session, at_terminal
from tests.support.projects.world import append, events, listing, set_key, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.long

FIRST = 17500000000
TITLES = ("One thing", "Another thing", "A third thing")


@pytest.fixture
def three(world: World) -> World:
    for number, title in enumerate(TITLES):
        write_conversation(world.workspace / f"{FIRST + number}-{title.lower().replace(' ', '-')}", title, events(3))
    world.reconcile()
    return world


def edit(world: World) -> None:
    """Continue all of them in the workspace."""
    for path in sorted(world.workspace.iterdir()):
        append(path, 2, "b", path.stat().st_mtime_ns + 10**9)


def counts(world: World) -> list[int]:
    return [world.event_count(FIRST + number) for number in range(len(TITLES))]


def run_of(world: World) -> str:
    return str(json.loads(world.run("log", "-w", world.project, "--json").stdout)["runs"][0]["id"])


def sides(world: World) -> list[dict[str, tuple[bytes, int]]]:
    return [listing(world.store), listing(world.workspace)]


def test_to_leave_out_all_after_an_earlier_run_does_nothing(three: World) -> None:
    for side in (three.store, three.workspace):
        (path,) = side.glob(f"{FIRST}-*")
        set_key(path, "title", side.parent.name, path.stat().st_mtime_ns + 10**9)
    before = sides(three)
    code, shown = at_terminal("review", "-w", three.project, "--plain", answers="k\ny\n")
    assert "Not in this run: 1 skipped." in " ".join(shown.split()), shown
    assert (code, sides(three)) == (0, before), shown


def leave_out(session: Session, *, question: str = "Apply?") -> tuple[int, str]:
    """Leave the second conversation out, and answer yes."""
    session.wait("k leaves a conversation out")
    session.type("\x1b[B", after="")
    session.type("k", after="Another thing")
    session.type("a", after="skip (u takes it back)")
    session.type("y", after=question)
    return session.end()


def test_a_saved_plan_is_applied_without_what_was_left_out(three: World, tmp_path: Path) -> None:
    edit(three)
    saved = tmp_path / "plan.json"
    three.run("-w", three.project, "--out", saved)
    code, shown = leave_out(Session("review", saved))
    assert code == 0, shown
    assert counts(three) == [5, 3, 5]
    assert three.run("undo", "-w", three.project, "--yes").exit_code == 0
    assert counts(three) == [3, 3, 3]


def test_a_saved_plan_with_conflicts_keeps_its_decisions(world: World, tmp_path: Path) -> None:
    conflicts(world)
    saved = tmp_path / "plan.json"
    world.run("-w", world.project, "--out", saved)
    with (tmp_path / "out").open("wb") as out:
        session = Session("review", saved, "--dry-run", "--json", out=out.fileno())
        session.type("w", after="k leaves a conversation out")
        session.type("a", after="this plan is made already")
        session.type("y", after="Show the plan?")
        session.end()
    plan, shown = json.loads(saved.read_bytes()), json.loads((tmp_path / "out").read_bytes())
    assert [each["target"] for each in shown["actions"]] == [each["target"] for each in plan["actions"]]
    assert shown["policy"]["choices"] == {}
    assert id_of(0) in {each["conversation"] for each in shown["actions"]}


def test_what_has_changed_since_the_plan_is_refused(three: World, tmp_path: Path) -> None:
    edit(three)
    saved = tmp_path / "plan.json"
    three.run("-w", three.project, "--out", saved)
    append(next(three.workspace.glob(f"{FIRST}-*")), 1, "c", 10**18 * 2)
    session = Session("review", saved)
    session.type("a", after="k leaves a conversation out")
    session.type("y", after="Apply?")
    code, shown = session.end()
    assert (code, "skipped" in shown) == (4, True)
    assert counts(three) == [3, 5, 5]


@pytest.mark.parametrize("named", [True, False])
def test_an_undo_leaves_out_what_was_skipped(three: World, *, named: bool) -> None:
    edit(three)
    three.reconcile()
    session = Session("review", "-w", three.project, "--undo", *([run_of(three)] if named else []))
    code, shown = leave_out(session)
    assert code == 0, shown
    assert f"undo of {run_of(three)[:8]}" in shown
    assert counts(three) == [3, 5, 3]
    assert three.run("redo", "-w", three.project, "--yes").exit_code == 0
    assert counts(three) == [5, 5, 5]


@pytest.mark.parametrize("plain", [False, True])
def test_an_undo_that_is_blocked_as_a_whole_says_why_and_the_way_out(three: World, *, plain: bool) -> None:
    for number in range(3, 9):
        write_conversation(three.workspace / f"{FIRST + number}-more", "More", events(3))
    three.reconcile()
    before = sides(three)
    first = json.loads(three.run("log", "-w", three.project, "--json").stdout)["runs"][0]["id"]
    session = Session("review", "-w", three.project, "--undo", first, *(["--plain"] if plain else []), columns=120)
    session.wait("of 9 directories would be removed")
    session.wait("--allow-bulk-removal")
    if plain:
        session.type("n\n", after="n end")
        code, shown = session.end()
    else:
        session.type("k", after="Nothing changes before you apply")
        session.type("q", after="blocked: the text on the right has the way out")
        code, shown = session.end()
    assert "Traceback" not in shown
    assert code == 4, shown
    assert sides(three) == before


def test_what_recover_offers_can_be_left_out(three: World) -> None:
    shutil.rmtree(three.project / ".jp")
    code, shown = leave_out(Session("review", "-w", three.project, "--recover"))
    assert code == 0, shown
    assert sorted(path.name for path in three.workspace.iterdir()) == [
        f"{FIRST}-one-thing",
        f"{FIRST + 2}-a-third-thing",
    ]
    assert (three.project / ".jp" / ".id").exists()


def test_a_run_of_the_log_is_only_shown(three: World) -> None:
    edit(three)
    three.reconcile()
    before = three.stamps()
    session = Session("review", "-w", three.project, "--run", run_of(three))
    session.type("s", after="This view only shows.")
    session.type("a", after="nothing can be decided")
    session.type("q", after="nothing can be applied")
    code, shown = session.end()
    assert code == 0
    assert f"reconcile diff jp-c{FIRST}@" in " ".join(shown.split())
    assert three.stamps() == before


def test_a_run_of_the_log_as_lines(three: World) -> None:
    code, shown = at_terminal("review", "--plain", "-w", three.project, "--run", run_of(three))
    assert code == 0
    for title in TITLES:
        assert title in shown
    assert "[3 of 3]" in shown


@pytest.mark.parametrize(
    "words",
    [("--undo",), ("--recover",), ("FILE",)],
    ids=str,
)
def test_quitting_does_nothing(three: World, tmp_path: Path, words: tuple[str, ...]) -> None:
    edit(three)
    saved = tmp_path / "plan.json"
    three.run("-w", three.project, "--out", saved)
    if words == ("--recover",):
        shutil.rmtree(next(three.workspace.iterdir()))
    before = three.stamps()
    session = Session("review", "-w", three.project, *(saved if word == "FILE" else word for word in words))
    session.type("q", after="k leaves a conversation out")
    code, shown = session.end()
    assert (code, "Cancelled, nothing changed." in shown) == (4, True), shown
    assert three.stamps() == before


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("plan.json", "--recover"), 2, "choose one: FILE, --recover, --undo or --run"),
        (("plan.json", "--only", "x"), 2, "--only: the plan of FILE is made already"),
        (("--recover", "--only", "x"), 2, "--only: --recover doesn't take it; the key k leaves conversations out"),
        (("--undo", "--prefer", "store"), 2, "--prefer: --undo doesn't take it"),
        (("--run", "x", "--out", "plan.json"), 2, "--out: --run only shows what a run has done"),
        (("nowhere.json",), 2, "nowhere.json: can't be read (No such file or directory)"),
        (("--undo", "2020"), 2, "no run has an id that starts with '2020'"),
        (("--run", "2020"), 2, "no run has an id that starts with '2020'"),
    ],
    ids=str,
)
def test_a_mistake_is_one_error(three: World, words: tuple[str, ...], code: int, error: str) -> None:
    found, shown = at_terminal("review", "-w", three.project, *words, environ={"TERM": "xterm"})
    assert found == code
    assert error in " ".join(shown.split())


def test_without_a_terminal_each_is_one_error(three: World, run: Run) -> None:
    for words in (("--undo",), ("--recover",), ("--run", run_of(three))):
        result = run("review", "-w", three.project, *words)
        assert result.exit_code == 4
        assert result.stderr.splitlines()[0] == "error: review needs a terminal"

"""``reconcile review`` as a process at a real terminal: it decides, applies, and is undone like any other run."""

from __future__ import annotations

import json
import signal
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.model.commands import install_command
from reconcile.remote.sealing import PYRAGE
from tests.cli.modules import module
from tests.support.projects.conflicts import conflicts, id_of
from tests.support.projects.terminal import Session, at_terminal
from tests.support.projects.world import assert_sound, listing

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.long
TEXTUAL = module("commands.review").TEXTUAL


@pytest.fixture
def ten(world: World) -> World:
    conflicts(world)
    return world


def title(world: World, side: Path, number: int) -> str:
    (path,) = side.glob(f"**/{id_of(number)[4:]}-*/metadata.json")
    found: str = json.loads(path.read_bytes())["title"]
    return found


def sides(world: World) -> list[dict[str, tuple[bytes, int]]]:
    return [listing(world.store), listing(world.workspace)]


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"TERM": "vt100"}, {"TERM": "linux"}], ids=str)
def test_a_conflict_is_decided_applied_and_undone(ten: World, environ: dict[str, str]) -> None:
    before = sides(ten)
    session = Session("review", "-w", ten.project, environ=environ)
    session.type("s", after="to decide")
    session.type("a", after="10 left")
    session.type("y", after="Apply?")
    code, shown = session.end()
    assert code == 4, "the others are blocked"
    assert "undo with: reconcile undo" in " ".join(shown.split())
    assert {title(ten, side, 0) for side in (ten.store, ten.workspace)} == {"Release notes for June"}
    assert title(ten, ten.store, 1) != title(ten, ten.workspace, 1)
    assert ten.run("undo", "-w", ten.project, "--yes").exit_code in (0, 4)
    assert sides(ten) == before


def test_the_result_lists_a_conversation_under_the_title_that_was_chosen(ten: World) -> None:
    session = Session("review", "-w", ten.project, columns=120)
    session.type("w", after="to decide")
    session.type("a", after="10 left")
    session.type("y", after="Apply?")
    session.end()
    result = session.raw.rpartition(b"\x1b[?1049l")[2].decode()
    assert "Release notes, draft for May" in result
    assert "Release notes for June" not in result


def test_quit_changes_nothing(ten: World) -> None:
    before = ten.stamps()
    session = Session("review", "-w", ten.project)
    session.type("w", after="to decide")
    session.type("q", after="10 left")
    session.type("y", after="Quit?")
    code, shown = session.end()
    assert (code, "Cancelled, nothing changed." in shown) == (4, True)
    assert ten.stamps() == before


def test_a_dry_run_shows_the_plan_of_the_decisions(ten: World) -> None:
    before = ten.stamps()
    session = Session("review", "-w", ten.project, "--dry-run", "--no-pager")
    session.type("s", after="to decide")
    session.type("a", after="10 left")
    session.type("y", after="Show the plan?")
    code, shown = session.end()
    assert code == 4
    assert "Plan: 1 to add to the store" in shown
    assert ten.stamps() == before


def test_a_saved_plan_holds_the_decisions(ten: World, run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    session = Session("review", "-w", ten.project, "--no-pager", "--out", str(saved))
    session.type("s", after="to decide")
    session.type("h", after="10 left")
    session.type("a", after="9 left")
    session.type("y", after="Show the plan?")
    assert session.end()[0] == 4
    applied = run("apply", saved)
    assert "\nskipped: " not in applied.output, applied.output
    assert "skipped, until you decide:" in applied.output, "the others are undecided"
    assert {title(ten, side, 0) for side in (ten.store, ten.workspace)} == {"Release notes for June"}
    assert title(ten, ten.store, 1) != title(ten, ten.workspace, 1)
    assert "left alone" in run("status", "-w", ten.project, id_of(1)).output


def test_json_goes_to_standard_output_while_the_view_is_on_the_terminal(ten: World, tmp_path: Path) -> None:
    with (tmp_path / "out.json").open("wb") as out:
        session = Session("review", "-w", ten.project, "--json", "--dry-run", out=out.fileno())
        session.type("s", after="to decide")
        session.type("a", after="10 left")
        session.type("y", after="Show the plan?")
        assert session.end()[0] == 4
    plan = json.loads((tmp_path / "out.json").read_bytes())
    assert plan["format"] == "reconcile.plan/1"
    assert plan["policy"]["choices"][id_of(0)] == {"metadata": "store"}


def test_what_changed_during_the_walk_is_left_out(ten: World) -> None:
    session = Session("review", "-w", ten.project)
    session.type("s", after="to decide")
    session.wait("10 left")
    (path,) = ten.workspace.glob(f"{id_of(0)[4:]}-*/metadata.json")
    path.write_text(path.read_text().replace("draft", "second draft"))
    session.type("a", after="")
    session.type("y", after="Apply?")
    code, shown = session.end()
    assert code == 4
    assert "skipped" in shown
    assert title(ten, ten.workspace, 0) == "Release notes, second draft for May"
    assert title(ten, ten.store, 0) == "Release notes for June"


@pytest.mark.parametrize("keys", [("s",), ("s", "a")], ids=["with a decision", "at the question"])
def test_killed_before_the_answer_it_has_done_nothing(ten: World, keys: tuple[str, ...]) -> None:
    before = ten.stamps()
    session = Session("review", "-w", ten.project)
    for key, after in zip(keys, ("to decide", "10 left"), strict=False):
        session.type(key, after=after)
    session.wait("10 left" if len(keys) == 1 else "Apply?")
    session.process.kill()
    session.end()
    assert ten.stamps() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_gives_the_terminal_back(ten: World, number: signal.Signals) -> None:
    before = ten.stamps()
    ignored = signal.getsignal(number) is signal.SIG_IGN  # by nohup, and a child would inherit that
    if ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        session = Session("review", "-w", ten.project)
    finally:
        if ignored:
            signal.signal(number, signal.SIG_IGN)
    session.wait("to decide")
    session.process.send_signal(number)
    code, _ = session.end()
    assert code not in (0, 4)
    assert ten.stamps() == before
    assert b"\x1b[?1049l" in session.raw, "the screen of the shell is back"


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.06, 0.1, 0.2, 0.4])
def test_killed_while_it_applies_it_has_done_nothing_or_whole_steps(ten: World, seconds: float) -> None:
    session = Session("review", "-w", ten.project)
    session.type("s", after="to decide")
    session.type("a", after="10 left")
    session.type("y", after="Apply?")
    time.sleep(seconds)
    session.process.kill()
    session.end()
    titles = {title(ten, side, 0) for side in (ten.store, ten.workspace)}
    assert "Release notes for June" in titles, "the store's version, which was chosen, is never lost"
    assert titles <= {"Release notes for June", "Release notes, draft for May"}
    assert_sound(ten)
    runs = json.loads(ten.run("log", "-w", ten.project, "--json").stdout)["runs"]
    begun = any(" review " in each["command"] for each in runs)
    recorded = "your decision (metadata: store) waits: " in ten.run("-w", ten.project, "-n").output
    if begun or recorded:
        ten.run("-w", ten.project)  # a plain run finishes the decision, and takes the newer version of the others
    else:
        assert ten.run("resolve", "-w", ten.project, id_of(0), "--take", "store").exit_code == 0
    assert {title(ten, side, 0) for side in (ten.store, ten.workspace)} == {"Release notes for June"}
    ten.check_clean()


def test_without_a_terminal_it_is_one_error_with_a_hint(ten: World, run: Run) -> None:
    for words in ((), ("--plain",)):
        result = run("review", "-w", ten.project, *words)
        assert (result.exit_code, result.stdout) == (4, "")
        first, second = result.stderr.splitlines()
        assert first.startswith("error: review")
        assert second.startswith(f"hint: `reconcile --dry-run --workspace {ten.project}` shows the plan")


def test_without_textual_it_asks_line_by_line_and_says_how_to_get_the_full_screen(ten: World, tmp_path: Path) -> None:
    (tmp_path / "textual.py").write_text("raise ImportError('not installed')\n")
    environ = {"PYTHONPATH": str(tmp_path), "TERM": "xterm"}
    code, shown = at_terminal("review", "-w", ten.project, environ=environ, answers="q\n")
    assert code == 4
    text = " ".join(shown.split())
    assert "no full screen, as Textual is not installed; install it: " in text
    assert "11 conversations to decide" in text


def test_the_install_command_is_that_of_the_environment() -> None:
    for environment, expected in {
        "/home/ada/.local/share/pipx/venvs/reconcile-fs": f"pipx inject reconcile-fs '{TEXTUAL}'",
        "/home/ada/.local/share/uv/tools/reconcile-fs": f"uv pip install --python '/a b/python' '{TEXTUAL}'",
        "/home/ada/.local/share/reconcile-venv": f"'/a b/python' -m pip install '{TEXTUAL}'",
    }.items():
        assert install_command(TEXTUAL, environment, "/a b/python") == expected
    pyproject = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert pyproject["project"]["optional-dependencies"]["review"] == [TEXTUAL]
    assert pyproject["project"]["optional-dependencies"]["encrypt"] == [PYRAGE]


def test_in_the_plain_walk_q_also_ends_at_the_question_about_the_others(ten: World) -> None:
    code, shown = at_terminal("review", "--plain", "-w", ten.project, answers="n\n" * 11 + "q\n")
    assert code == 4, shown
    assert "too? y yes, n no, q quit" in " ".join(shown.split())
    assert shown.endswith("Cancelled, nothing changed.\n")


def test_with_nothing_to_do_it_opens_nothing(world: World) -> None:
    shown = [at_terminal(words, "-w", world.project, environ={"TERM": "xterm"}) for words in ("review", "--dry-run")]
    assert shown[0] == shown[1]
    assert "Nothing to do." in shown[0][1]


def test_the_plain_walk_asks_the_same_at_a_dumb_terminal(ten: World) -> None:
    answers = "s\nw\nn\nk\nb\nworkspace\nu\na\ny\n"
    code, shown = at_terminal("review", "-w", ten.project, environ={"TERM": "dumb"}, answers=answers)
    assert code == 4, shown
    assert "\x1b[" not in shown
    assert "11 conversations to decide" in " ".join(shown.split())
    assert "[-all" in shown
    assert "2019+}" in shown
    assert title(ten, ten.workspace, 0) == "Release notes for June"
    assert title(ten, ten.store, 1) == "Import of backups from 2019"
    assert title(ten, ten.store, 2) == title(ten, ten.workspace, 2)


def test_in_the_plain_walk_no_returns_to_the_questions_with_the_decisions(ten: World) -> None:
    code, shown = at_terminal("review", "--plain", "-w", ten.project, answers="s\na\nn\nn\na\ny\n")
    assert code == 4, shown
    assert "n back to the questions" in shown
    assert title(ten, ten.workspace, 0) == "Release notes for June"


def test_the_plain_walk_has_help_and_every_choice_at_each_part(ten: World) -> None:
    (path,) = ten.store.glob(f"**/{id_of(6)[4:]}-*/metadata.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"title": "Torn by the store"}))
    (path,) = ten.workspace.glob(f"**/{id_of(6)[4:]}-*/metadata.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"title": "Torn by the workspace"}))
    answers = "?\nh\nn\nq\n"
    code, shown = at_terminal("review", "--plain", "-w", ten.project, "--only", id_of(6), answers=answers, columns=60)
    text = " ".join(shown.split())
    assert code == 4, shown
    assert "\n  h  hold the whole conversation: leave both sides alone\n     until one changes\n" in shown
    assert "[1 of 1] title" in text
    assert "S store alone, W workspace alone, h hold" in text
    assert "h hold the whole conversation: leave both sides alone until one changes" in text
    assert "no answer" not in text
    assert "2 on hold" in text
    assert "[1 of 1] events" not in text


def test_the_plain_walk_can_be_left(ten: World) -> None:
    before = ten.stamps()
    for answers in ("s\nq\n", "a\nq\n", "a\nn\nq\n"):
        code, shown = at_terminal("review", "--plain", "-w", ten.project, answers=answers)
        assert (code, "Cancelled, nothing changed." in shown) == (4, True)
    assert ten.stamps() == before

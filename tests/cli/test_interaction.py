"""Commands that ask first: at a terminal; elsewhere they refuse without ``--yes`` (docs/commands.md#common-options)."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.terminal import at_terminal, interrupted_at_terminal
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import LONG_AGO, SECOND, append, events, listing, set_key, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.projects.world import World


def purging(world: World) -> tuple[str, ...]:
    (version,) = (path.name for path in world.vault.glob("*/*"))
    return ("vault", "--purge", version[:8])


def recovering(world: World) -> tuple[str, ...]:
    shutil.rmtree(world.workspace)
    return ("recover",)


ASKING: dict[str, Callable[[World], tuple[str, ...]]] = {
    "rm": lambda _: ("rm", str(THIRD)),
    "vault --purge": purging,
    "vault --prune": lambda _: ("vault", "--prune", "--older-than", "0h"),
    "recover": recovering,
}


@pytest.fixture
def known(world: World) -> World:
    """Three conversations on both sides, and one replaced version in the vault."""
    three(world, parent=FIRST)
    world.reconcile()
    set_key(world.workspace / f"{THIRD}-it", "user", "me", LONG_AGO + SECOND)
    world.reconcile()
    return world


@pytest.mark.parametrize("name", ASKING)
def test_where_nobody_can_be_asked_nothing_is_done_without_yes(known: World, name: str) -> None:
    args = ("-w", str(known.project), *ASKING[name](known))
    before = known.stamps() | {str(path): (0,) for path in known.vault.glob("*/*")}
    text, as_json = known.run(*args), known.run(*args, "--json")
    assert (text.exit_code, as_json.exit_code) == (4, 4)
    assert known.stamps() | {str(path): (0,) for path in known.vault.glob("*/*")} == before
    assert text.stderr.startswith("error: not a terminal, so nothing was done")
    assert "--yes carries it out" in text.stderr
    (said,) = as_json.stderr.splitlines()
    assert json.loads(said)["format"] == "reconcile.error/1"
    assert json.loads(as_json.stdout)["format"] in ("reconcile.plan/1", "reconcile.vault/1")
    done = known.run(*args, "--yes", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)


@pytest.mark.parametrize("name", ASKING)
def test_at_a_terminal_a_no_changes_nothing_and_a_yes_does_it(known: World, name: str) -> None:
    args = ("-w", str(known.project), *ASKING[name](known))
    before = known.stamps()
    code, shown = at_terminal(*args, answers="n\n")
    expected = (0, "Nothing restored.") if name == "recover" else (4, "Cancelled, nothing changed.")
    assert (code, expected[1] in shown) == (expected[0], True), shown
    assert known.stamps() == before
    code, shown = at_terminal(*args, answers="y\ny\n")
    assert code == 0, shown
    assert known.stamps() != before or name.startswith("vault")


def test_what_a_command_says_beside_its_result_is_json_too(known: World) -> None:
    shutil.rmtree(known.project / ".jp")
    result = known.run("-w", known.project, "recover", "--json", "--yes")
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["format"] for line in result.stderr.splitlines()] == ["reconcile.message/1"] * 2


def test_with_nothing_to_put_back_nothing_is_written_not_even_a_state(known: World) -> None:
    shutil.rmtree(known.state)
    for args in (("recover",), ("recover", "--yes"), ("recover", "--all", "--yes")):
        result = known.run("-w", known.project, *args)
        assert (result.exit_code, "Nothing to do" in result.stdout) == (0, True), result.output
    assert not known.state.exists()


def test_each_group_is_asked_for_by_itself(known: World) -> None:
    write_conversation(known.workspace / f"{THIRD + 1}-stays", "Stays", events(2))
    known.reconcile()
    before = listing(known.workspace)
    for number in (THIRD, FIRST):
        shutil.rmtree(known.workspace / f"{number}-it")
        known.reconcile()
    code, shown = at_terminal("-w", known.project, "recover", answers="n\ny\ny\n")
    assert code == 0, shown
    assert (shown.count("Restore "), shown.count("Restore this?")) == (2, 0), "two groups, each with its answer"
    assert {path.split("-")[0] for path in listing(known.workspace)} == {str(THIRD), str(THIRD + 1)}
    code, shown = at_terminal("-w", known.project, "recover", answers="y\ny\n")
    assert (code, shown.count(str(SECOND_ID))) == (0, 1), "the plan names it"
    assert listing(known.workspace) == before


def test_a_no_ends_the_recovery_of_a_lost_directory(known: World) -> None:
    shutil.rmtree(known.project / ".jp")
    code, shown = at_terminal("-w", known.project, "recover", answers="n\ny\n")
    assert (code, "Nothing restored." in shown, shown.count("[y/N]")) == (0, True, 1), shown
    assert not (known.project / ".jp").exists()


def test_another_answer_to_yes_or_no_is_asked_for_again(known: World) -> None:
    shutil.rmtree(known.project / ".jp")
    code, shown = at_terminal("-w", known.project, "recover", answers="?\nno\n")
    assert (code, shown.count("[y/N]"), shown.count("Type y or n.")) == (0, 2, 1), shown
    assert "Error" not in shown


def test_a_recovery_of_the_id_file_alone_says_so(known: World) -> None:
    known.reconcile("local", str(FIRST), str(SECOND_ID), str(THIRD))
    shutil.rmtree(known.project / ".jp")
    code, shown = at_terminal("-w", known.project, "recover", answers="y\n")
    assert (code, "Done: .jp/.id written." in shown, shown.count("[y/N]")) == (0, True, 1), shown
    assert [path.name for path in (known.project / ".jp").iterdir()] == [".id"]


def test_recover_asks_after_its_plan_and_shows_each_part_once(known: World) -> None:
    write_conversation(known.workspace / f"{THIRD + 1}-stays", "Stays", events(2))
    known.reconcile()
    for number in (THIRD, FIRST):
        shutil.rmtree(known.workspace / f"{number}-it")
        known.reconcile()
    code, shown = at_terminal("-w", known.project, "recover", answers="y\ny\n")
    assert code == 0, shown
    later, earlier = shown.index(f"jp-c{FIRST}"), shown.index(f"jp-c{THIRD}")
    first, second = (shown.index("Restore ", at) for at in (0, shown.index("Restore ") + 1))
    assert later < first < earlier < second, shown
    assert shown.count("restore  ") == 3, shown
    assert shown.index("Done") > second


def test_ancestors_are_asked_for_and_named(known: World) -> None:
    before = listing(known.workspace)
    known.reconcile("local", str(FIRST))
    args = ("-w", str(known.project), "project", str(SECOND_ID))
    refused = known.run(*args)
    assert (refused.exit_code, f"reconcile project jp-c{SECOND_ID} --with-ancestors" in refused.stdout) == (4, True)
    code, shown = at_terminal(*args, answers="n\n")
    assert (code, "Publish the parents that are named above, too? [y/N]" in shown) == (4, True), shown
    assert len(listing(known.workspace)) == 3
    code, shown = at_terminal(*args, answers="n\n", columns=50)
    assert (code, "\n  Publish the parents that are named\n  above, too? [y/N]: " in shown) == (4, True), shown
    code, shown = at_terminal(*args, answers="y\n")
    assert (code, "2 published" in shown) == (0, True), shown
    assert listing(known.workspace) == before


def test_what_all_meets_is_never_made_public_by_a_yes(known: World) -> None:
    known.reconcile("local", str(FIRST))
    before = listing(known.workspace)
    result = known.reconcile("project", "--all", "--yes", code=4)
    assert f"reconcile project jp-c{SECOND_ID} --with-ancestors" in result.stdout
    assert listing(known.workspace) == before
    known.reconcile("project", "--all", "--with-ancestors")
    assert len(listing(known.workspace)) > len(before)


def test_many_removals_are_asked_for(known: World) -> None:
    shutil.rmtree(known.workspace / f"{THIRD}-it")
    for number in range(THIRD, THIRD + 4):
        write_conversation(known.workspace / f"{number}-too", "Too", events(2))
    known.reconcile()
    for number in range(THIRD, THIRD + 4):
        shutil.rmtree(next(known.store.glob(f"{number}-*")))
    assert known.run("-w", known.project).exit_code == 4
    code, shown = at_terminal("-w", known.project, answers="n\n")
    assert (code, shown.count("4 of 6 directories would be removed")) == (4, 1), shown
    code, shown = at_terminal("-w", known.project, answers="y\n")
    assert (code, shown.count("4 of 6 directories would be removed")) == (0, 1), shown
    assert "Remove the directories that are named above?" in shown
    code, shown = at_terminal("-w", known.project, "undo", answers="y\n")
    assert (code, "Undo this run?" in shown) == (0, True), shown
    assert len(list(known.workspace.iterdir())) == 5


def test_quiet_says_what_is_held_or_refused_and_nothing_else(known: World, tmp_path: Path) -> None:
    """Also at a question, which is about a plan that is shown."""
    args = ("-w", known.project, "-q")
    for command in (("local", str(FIRST)), ("undo",), ("--out", tmp_path / "plan.json"), ("-n",), ()):
        result = known.run(*command, *args)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    (known.workspace / f"{THIRD}-it" / "metadata.json").write_text("<<<<<<< HEAD\n")
    append(known.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    held, *rest = known.run(*args).stdout.splitlines()
    assert held == "blocked, until you decide or repair:"
    assert [line.strip() for line in rest if line][-1] == (
        f"reconcile resolve jp-c{THIRD} --take store --workspace {known.project}"
    ), "the way on is about the same sides"
    refused = known.run("rm", str(FIRST), *args)
    assert (refused.exit_code, refused.stdout) == (4, "")
    assert "has 1 descendant" in refused.stderr
    _, shown = at_terminal("rm", str(SECOND_ID), *args, answers="n\n")
    assert "remove" in shown


def test_interrupted_at_the_question_of_the_first_run_nothing_was_changed(world: World) -> None:
    """Nor does anything say that the store is being created, before the answer."""
    three(world)
    shutil.rmtree(world.project / ".jp" / "conversations" / f"{THIRD}-it", ignore_errors=True)
    before = world.sides()
    code, shown = interrupted_at_terminal("-w", world.project, goal="Continue? [y/N]:")
    assert (code, world.sides()) == (130, before), shown
    assert shown.endswith("\ninterrupted: nothing was changed\n"), shown
    assert "creating" not in shown


def test_status_names_the_commands_of_the_first_blocked_ones(known: World, tmp_path: Path) -> None:
    """Each is a line that can be copied; the others are counted."""
    write_conversation(known.workspace / f"{THIRD + 1}-it", "More", events(2))
    known.reconcile()
    saved = shutil.copytree(known.workspace, tmp_path / "saved")
    known.reconcile("local", str(FIRST), str(THIRD), str(THIRD + 1))
    shutil.copytree(saved, known.workspace, dirs_exist_ok=True)
    shown = known.run("status", "-w", known.project).stdout
    named = [line for line in shown.partition("Next:")[2].splitlines() if " jp-c" in line]
    assert len({next(word for word in line.split() if word.startswith("jp-c")) for line in named}) == 2, shown
    for line in named:
        assert known.run(*line.split()[1:], "-n").exit_code == 0, line
    assert "shows the commands of the others" in shown

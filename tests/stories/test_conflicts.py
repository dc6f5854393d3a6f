"""Edits of one unit on both sides: a conflict before a run decides it, a notice with the way back after it."""

from __future__ import annotations

import errno
import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.modules import module
from tests.support.faults.fault_points import dies_at
from tests.support.projects.terminal import at_terminal, interrupted_at_terminal, watched_at_terminal
from tests.support.projects.three_conversations import FIRST, SECOND_ID, three
from tests.support.projects.world import LONG_AGO, SECOND, append, events, set_key, write_conversation, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

ID = f"jp-c{FIRST}"


def title(world: World, side: str) -> str:
    directory: Path = getattr(world, side)
    (found,) = directory.glob(f"{FIRST}-*")
    described: dict[str, str] = json.loads((found / "metadata.json").read_bytes())
    return described["title"]


def retitled(world: World, *, newer: str = "store") -> None:
    """Have both sides give a conversation another title."""
    three(world)
    world.reconcile()
    for side in ("store", "workspace"):
        directory: Path = getattr(world, side)
        set_key(directory / f"{FIRST}-it", "title", side, LONG_AGO + (2 if side == newer else 1) * SECOND)


def hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_CONFLICT", "hold")


def status(world: World) -> dict[str, Any]:
    found = json.loads(world.run("status", "--json", "-v", "-w", world.project).stdout)
    return {each["conversation"]: each for each in found["conversations"]}


def newest(world: World) -> str:
    run: str = json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"][0]["id"]
    return run


def said(world: World, *words: str | Path) -> str:
    return world.reconcile(*words, settled=False).stdout


@pytest.mark.parametrize("side", ["store", "workspace"])
def test_resolve_all_settles_the_conflicts_that_no_run_has_decided(world: World, side: str) -> None:
    retitled(world)
    world.reconcile("resolve", "--all", "--take", side)
    assert title(world, "store") == title(world, "workspace") == side


def test_before_a_run_it_is_a_conflict_with_both_times_and_what_differs(world: World) -> None:
    retitled(world)
    text = "metadata (title): store 2020-09-13 12:26:42; workspace 2020-09-13 12:26:41"
    assert (status(world)[ID]["word"], status(world)[ID]["settled"]) == ("conflict", False)
    for words in (("status",), ("status", str(FIRST)), ("-n",)):
        assert text in said(world, *words), words
        asks = "the next run asks at a terminal, or takes the store's (newer)"
        assert ("the store's is taken (newer)" if words == ("-n",) else asks) in said(world, *words), words
        assert '  title: "store" (store) / "workspace" (workspace)\n' in said(world, *words), words
    assert f"reconcile resolve {ID} --take workspace" in said(world, "-n")
    (conflict,) = world.plan()["conflicts"]
    assert conflict == {
        "conversation": ID,
        "title": "store",
        "unit": "metadata",
        "case": 15,
        "store": {"mtime_ns": LONG_AGO + 2 * SECOND, "events": None, "last": None, "only": None, "values": ['"store"']},
        "workspace": {
            "mtime_ns": LONG_AGO + SECOND,
            "events": None,
            "last": None,
            "only": None,
            "values": ['"workspace"'],
        },
        "keys": ["title"],
        "takes": "store",
        "reason": "newer-store",
        "forks": False,
        "merges": False,
        "resolve": [f"reconcile resolve {ID} --take store", f"reconcile resolve {ID} --take workspace"],
    }


def test_times_in_the_same_second_are_told_apart(world: World) -> None:
    """And of equal ones the store wins, as the text says."""
    retitled(world)
    for name, apart, shown, why in (
        ("workspace", 5 * 10**6, "41.000; workspace 2020-09-13 12:26:41.005", "workspace's (newer)"),
        ("workspace", 7, "41.000000000; workspace 2020-09-13 12:26:41.000000007", "workspace's (newer)"),
        ("store", -7, "41; workspace 2020-09-13 12:26:40", "store's (newer)"),
        ("store", 0, "41; workspace 2020-09-13 12:26:41", "store's (same time; the store wins)"),
    ):
        for side, at in (("store", 0), ("workspace", apart)):
            set_key(getattr(world, side) / f"{FIRST}-it", "title", side, LONG_AGO + SECOND + at)
        told = said(world, "status", str(FIRST))
        assert f"store 2020-09-13 12:26:{shown}" in told
        assert f"the next run asks at a terminal, or takes the {why}" in told, name


def test_of_streams_the_events_are_counted(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    (conflict,) = world.plan()["conflicts"]
    assert (conflict["unit"], conflict["takes"], conflict["reason"]) == ("stream", "store", "diverged")
    assert (conflict["store"]["only"], conflict["workspace"]["only"]) == (2, 1)
    assert (conflict["store"]["events"], conflict["workspace"]["events"], conflict["forks"]) == (5, 4, True)
    text = said(world, "-n")
    assert (
        "\n      store file changed 2020-09-13 12:26:42 (5 events, 2 only on this side, last 2026-01-01 11:41:00)\n"
        in text
    )
    assert "the store's is taken (its file is newer)" in text
    shown = said(world, "status")
    assert "the workspace's becomes a fork" in shown
    assert "to decide now (only `both` makes a fork of the other version):" in text
    assert "1 conflict." in shown
    assert "syncs what changed (1)" in shown, "the child is a part of the conflict"


def test_each_conflict_of_a_conversation_begins_a_line_of_its_own(world: World) -> None:
    """Before a run and after it, with the values of both sides below the conflict that they belong to."""
    retitled(world)
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    shown = said(world, "status").splitlines()
    metadata = next(at for at, line in enumerate(shown) if line.startswith("    metadata (title): store "))
    assert shown[metadata].endswith("; the next run asks at a terminal, or takes the store's (newer)")
    assert shown[metadata + 1].startswith("      title: ")
    assert shown[metadata + 2].startswith("    events: store file changed ")
    of_one = said(world, "status", str(FIRST))
    assert "  state      conflict: metadata (title): store " in of_one
    assert "\n             events: store file changed " in of_one
    assert "; events: store file changed " in status(world)[ID]["detail"], "in JSON it is one text"
    planned = said(world, "-n")
    assert planned.count("to decide them together now (only `both` makes a fork of the other version):") == 1
    assert [planned.count(f"--take {take}") for take in ("store", "workspace", "both")] == [1, 1, 1]
    world.reconcile()
    after = said(world, "status")
    assert "\n    metadata: both sides changed it, and the run took the store's; `reconcile restore " in after
    assert "\n    events: both sides changed it, " in after
    assert after.count(f"the continuation of {ID} that was not taken") == 1


def in_one_file(directory: Path) -> None:
    """Give a stream JP's earlier form, in which the base configuration is the first event."""
    base = directory / "base_config.json"
    first = {"timestamp": "2026-01-01 00:00:00.0", "type": "config_delta", "delta": json.loads(base.read_bytes())}
    path = directory / "events.json"
    write_json(path, [first, *json.loads(path.read_bytes())], LONG_AGO)
    base.unlink()


@pytest.mark.parametrize("by", ["a run", "a person"])
@pytest.mark.parametrize("form", ["two files", "one file"])
def test_the_child_of_a_continuation_that_lost_is_named(world: World, by: str, form: str) -> None:
    """By the report of the run, and by `status`, unless a person has decided."""
    three(world)
    if form == "one file":
        in_one_file(world.workspace / f"{FIRST}-it")
    world.reconcile()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    shown = world.reconcile().stdout if by == "a run" else at_terminal("-w", world.project, answers="w\n")[1]
    (child,) = [key for key, each in status(world).items() if each["word"] == "available"]
    loser = "workspace" if by == "a run" else "store"
    assert f"the {loser}'s is now the fork {child}; to bring the {loser}'s back:" in " ".join(shown.split())
    told = said(world, "status")
    assert (f"    in the store only\n    the continuation of {ID} that was not taken\n" in told) == (by == "a run")
    assert (f"; the workspace's is now the fork {child}; `reconcile restore {ID}@" in told) == (by == "a run")
    world.reconcile("diff", ID, settled=False)
    assert "that was not taken" not in said(world, "status"), "it was seen"


def test_an_edit_on_one_side_or_a_continued_stream_is_none(world: World) -> None:
    three(world)
    world.reconcile()
    set_key(world.workspace / f"{FIRST}-it", "title", "Other", LONG_AGO + SECOND)
    append(world.store / f"{SECOND_ID}-it", 1, "b", LONG_AGO + SECOND)
    append(world.workspace / f"{SECOND_ID}-it", 1, "b", LONG_AGO + SECOND)
    append(world.workspace / f"{SECOND_ID}-it", 1, "c", LONG_AGO + SECOND)
    assert world.plan()["conflicts"] == []
    assert {each["word"] for each in status(world).values()} == {"in-sync", "newer-in-workspace"}


def test_after_a_run_it_is_a_notice_with_the_way_back(world: World) -> None:
    """Nothing is red, nothing counts as a conflict, and the command that is named does what it says."""
    retitled(world)
    result = world.reconcile("--color", "always")
    run = newest(world)
    back = f"reconcile restore {ID}@{run}:metadata"
    assert "metadata: the store's is taken (newer); to bring the workspace's back:" in result.stdout
    assert back in result.stdout
    line = status(world)[ID]
    assert (line["word"], line["settled"]) == ("in-sync", True)
    words = f"metadata: both sides changed it, and the run took the store's; `{back}` brings the workspace's back"
    assert line["detail"] == words
    shown = said(world, "status", "--color", "always")
    assert back in shown
    assert ("conflict" in shown, "\x1b[31m" in shown) == (False, False)
    assert world.run("--check", "-w", world.project).exit_code == 0
    for take in ("workspace", "both"):
        taken = world.reconcile("resolve", str(FIRST), "--take", take, settled=False)
        assert back in taken.stderr, "there is nothing to decide any more, but a way"
    world.reconcile(*back.split()[1:], settled=False)
    world.reconcile()  # renames the directories after the title
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")
    assert status(world)[ID]["detail"] == "", "it is back"
    assert "conflict" not in said(world, "diff", str(FIRST))


def test_diff_shows_which_side_won_and_status_says_it_no_more(world: World) -> None:
    retitled(world, newer="workspace")
    world.reconcile()
    run = newest(world)
    for _ in range(2):
        shown = said(world, "diff", str(FIRST))
        assert f"conflict in metadata, decided by run {run}:" in shown
        assert "store      saved in the vault (2020-09-13 12:26:41)\n    workspace  kept\n" in shown
        assert f"reconcile restore {ID}@{run}:metadata" in shown
        assert status(world)[ID]["detail"] == ""
    found = json.loads(said(world, "diff", str(FIRST), "--json"))
    assert found["decided"] == [
        {"unit": "metadata", "run": run, "winner": "workspace", "chosen": False, "lost": f"{ID}@{run}:metadata"}
    ]
    set_key(world.workspace / f"{FIRST}-workspace", "user", "me", LONG_AGO + 3 * SECOND)
    world.reconcile()
    assert "conflict" not in said(world, "diff", str(FIRST)), "it was seen, and the unit has changed since"


def test_diff_shows_a_conflict_although_the_state_can_not_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    retitled(world, newer="workspace")
    world.reconcile()
    open_session = module("commands.diff").open_session

    def full(*args: object, readonly: bool) -> object:
        if readonly:
            return open_session(*args, readonly=True)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module("commands.diff"), "open_session", full)
    assert f"decided by run {newest(world)}:" in said(world, "diff", str(FIRST))
    assert status(world)[ID]["detail"] != "", "the notice stays unread"


def test_status_names_no_conflict_of_which_nothing_is_left(world: World) -> None:
    retitled(world)
    world.reconcile()
    way = f"reconcile restore {ID}@{newest(world)}:metadata"
    (directory,) = world.workspace.glob(f"{FIRST}-*")
    set_key(directory, "last_activated_at", "2030-01-01 00:00:00.0", LONG_AGO + 3 * SECOND)
    world.reconcile()
    assert way in status(world)[ID]["detail"], "the program has changed it: the title is still the one that was taken"
    set_key(directory, "title", "third", LONG_AGO + 4 * SECOND)
    world.reconcile()
    assert status(world)[ID]["detail"] == ""
    assert "third" not in said(world, "status")
    assert way in said(world, "diff", str(FIRST)), "the version that was not taken is still found"


def test_after_undo_and_resolve_the_side_that_was_chosen_has_won(world: World) -> None:
    retitled(world)
    world.reconcile()
    world.reconcile("undo")
    shown = said(world, "diff", str(FIRST))
    assert ('"store"' in shown, '"workspace"' in shown, "decided" in shown) == (True, True, False)
    assert status(world)[ID]["word"] == "undone"
    world.reconcile("resolve", str(FIRST), "--take", "workspace")
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")
    shown = said(world, "diff", str(FIRST))
    assert f"conflict in metadata, chosen by you in run {newest(world)}:" in shown
    assert "store      saved in the vault (2020-09-13 12:26:42)\n    workspace  kept\n" in shown
    assert status(world)[ID]["detail"] == ""


def test_a_conflict_that_a_run_could_not_decide_is_still_one(world: World) -> None:
    retitled(world)
    lock = world.project / ".git" / "MERGE_HEAD"
    world.run("-w", world.project, "-n")
    lock.parent.mkdir()
    (lock.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (lock.parent / "objects").mkdir()
    (lock.parent / "refs").mkdir()
    lock.write_text("0" * 40 + "\n")
    world.reconcile(code=4, settled=False)
    assert (title(world, "store"), title(world, "workspace")) == ("store", "workspace")
    assert status(world)[ID]["word"] in ("conflict", "held")
    assert "decided" not in said(world, "diff", str(FIRST))


def test_configured_to_hold_both_stay_until_a_side_is_chosen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch)
    retitled(world)
    before = world.sides()
    for words in ((), ("--json",)):
        result = world.reconcile(*words, code=4, settled=False)
        assert f"reconcile resolve {ID} --take workspace" in result.stdout
        assert ('title: "store" (store) / "workspace" (workspace)' in result.stdout) == (words == ())
        assert world.sides() == before
    planned = world.plan()
    assert [(each["reason"], each["unit"]) for each in planned["held"]] == [("conflict-held", "metadata")]
    assert [each["takes"] for each in planned["conflicts"]] == [None]
    assert status(world)[ID]["word"] == "conflict"
    world.reconcile("resolve", str(FIRST), "--take", "workspace")
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")


def test_the_setting_counts_for_saved_plans_and_saved_answers(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retitled(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    hold(monkeypatch)
    result = world.run("apply", saved, "-w", world.project)
    assert (result.exit_code, title(world, "store"), title(world, "workspace")) == (4, "store", "workspace")
    world.reconcile(code=4, settled=False)
    monkeypatch.setenv("RECONCILE_CONFLICT", "newest")
    assert "the store's is taken" in world.reconcile().stdout, "the answer of the other setting isn't this one's"


def test_an_option_decides_what_the_configuration_holds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch)
    retitled(world)
    world.reconcile("--prefer", "workspace")
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")


TAKE = "Take the [s]tore's"


def test_what_an_earlier_run_blocked_is_asked_about_at_a_terminal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That run asked nothing, as a service or a hook does. What is left open is listed, and is the exit code."""
    hold(monkeypatch)
    monkeypatch.setenv("RECONCILE_DIVERGED", "hold")
    for number in range(SECOND_ID + 10, SECOND_ID + 20):  # so that a run plans only a part
        write_conversation(world.workspace / f"{number}-it", "It", events(3))
    retitled(world)
    for side, voice in ((world.store, "b"), (world.workspace, "c")):
        append(side / f"{SECOND_ID}-it", 1, voice, LONG_AGO + SECOND)
    world.reconcile(code=4, settled=False)
    code, shown = at_terminal("-w", world.project, answers="k\nk\n")
    assert (code, shown.count(TAKE)) == (4, 2), shown
    assert "Nothing to do" not in shown
    code, shown = at_terminal("-w", world.project, answers="k\nb\n")
    assert (code, shown.count(TAKE)) == (4, 2), shown
    assert "1 fork created" in shown
    assert "1 blocked" in shown or "1 conflict skipped" in shown
    code, shown = at_terminal("-w", world.project, answers="k\n")
    assert (code, "1 conflict skipped; nothing else to do." in shown) == (4, True), shown
    code, shown = at_terminal("-w", world.project, answers="w\n")
    assert (code, shown.count(TAKE)) == (0, 1), shown
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")


def test_at_a_terminal_each_conflict_is_asked_about_and_newest_is_the_default(world: World) -> None:
    retitled(world)
    _, dry = at_terminal("--dry-run", "-w", world.project, environ={"NO_COLOR": "1"})
    _, _, about = dry.partition("both sides changed:")
    about = " ".join(about.partition("the store's is taken (newer); to decide now:")[0].split())
    assert about.startswith(f"store {ID} metadata (title): store 2020-09-13 12:26:42; workspace 2020-09-13 12:26:41 ")
    code, shown = at_terminal("-w", world.project, answers="\n", environ={"NO_COLOR": "1"})
    assert (code, shown.count(TAKE)) == (0, 1), shown
    asked = " ".join(shown.partition("Take the [s]tore's")[0].split())
    assert asked.count(about) == 1, "the question has the words of the dry run"
    assert "is taken" not in asked, "but nothing is decided yet"
    assert "conflicts, both sides changed" not in shown, "the question has all of it"
    assert "Take the [s]tore's (newer), the [w]orkspace's, s[k]ip it, show the [d]ifference, or [q]uit [s]" in " ".join(
        shown.split()
    )
    assert (title(world, "store"), title(world, "workspace")) == ("store", "store")
    assert f"reconcile restore {ID}@{newest(world)}:metadata" in shown


def test_the_difference_is_shown_and_the_question_asked_again(world: World) -> None:
    retitled(world)
    code, shown = at_terminal("-w", world.project, answers="d\nw\n")
    assert (code, shown.count(TAKE)) == (0, 2), shown
    assert shown.count("metadata (title): store") == 1, "what the question is about is not repeated"
    assert '- store      "store"' in shown
    assert '+ workspace  "workspace"' in shown
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")
    assert "chosen by you" in shown, "at a question"
    assert "resolve" not in shown
    world.check_settled()


def test_the_difference_at_a_question_is_that_of_diff(world: World) -> None:
    retitled(world)
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    _, compared = at_terminal("diff", ID, "-w", world.project)
    _, shown = at_terminal("-w", world.project, answers="d\nq\n")
    _heading, _, difference = compared.partition("\n")
    assert "+++ workspace" in difference
    assert difference in shown


def test_values_that_differ_at_their_ends_have_a_line_each_on_a_narrow_terminal(world: World) -> None:
    retitled(world)
    for side in (world.store, world.workspace):
        set_key(side / f"{FIRST}-it", "title", f"Release notes of the {side.parent.name}", LONG_AGO + SECOND)
    _, shown = at_terminal("-n", "-w", world.project, columns=60, environ={"NO_COLOR": "1"})
    lines = [line.strip() for line in shown.splitlines() if line.strip().startswith("title")]
    assert len(lines) == 2
    assert lines[0].startswith('title (store): "Release notes of the ')
    assert lines[1].startswith('title (workspace): "Release notes of the ')
    assert max(map(len, lines)) <= 56


def test_a_question_says_what_becomes_of_the_other_version(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And shows both values; of events, that both are kept anyway, unless the settings say otherwise."""
    retitled(world)
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    code, shown = at_terminal("-w", world.project, answers="q\n")
    assert code == 4, shown
    assert '\n    title: "store" (store) / "workspace" (workspace)\n' in shown
    assert "the store's version is newer; the version that is not taken is saved, and can be restored" in " ".join(
        shown.split()
    )
    assert "is taken" not in shown, "nothing is decided yet"
    code, shown = at_terminal("-w", world.project, answers="k\nq\n")
    assert code == 4
    becomes = "the version that you do not take becomes a fork"
    assert f"{becomes} (`reconcile resolve ID --take SIDE` makes no fork: it only saves that version)" in " ".join(
        shown.split()
    )
    assert "[b]oth" not in shown, "as the newest"
    monkeypatch.setenv("RECONCILE_DIVERGED", "newest")
    _, shown = at_terminal("-w", world.project, answers="k\nq\n")
    assert "[b]oth makes it a fork" in " ".join(shown.split())


@pytest.mark.parametrize("answers", ["q\n", "quit\n", "d\nq\n", "a\nq\n"])
def test_a_quit_changes_nothing(world: World, answers: str) -> None:
    """Nor is anything recorded: the next run asks again."""
    retitled(world)
    append(world.workspace / f"{SECOND_ID}-it", 1, "b", LONG_AGO + SECOND)
    before = world.sides()
    code, shown = at_terminal("-w", world.project, answers=answers)
    assert (code, world.sides()) == (4, before), shown
    assert "Cancelled, nothing changed." in shown
    assert status(world)[ID]["word"] == "conflict"
    assert len(json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"]) == 1


def test_another_key_is_no_answer_and_a_word_is_one(world: World) -> None:
    retitled(world)
    code, shown = at_terminal("-w", world.project, answers="y\nWorkspace\n")
    assert (code, title(world, "store")) == (0, "workspace"), shown
    assert "'y' is not one of the answers: s, w, k, d, q\n" in shown


def test_a_question_mark_explains_each_answer_in_a_line(world: World) -> None:
    retitled(world)
    code, shown = at_terminal("-w", world.project, answers="?\nq\n")
    assert (code, "not one of the answers" in shown) == (4, False), shown
    for line in (
        "  w  take the workspace's version; the store's is saved",
        "  k  leave it, and decide later",
        "  q  end the command",
    ):
        assert f"\n{line}" in shown


def test_interrupted_at_the_question_nothing_was_changed(world: World) -> None:
    retitled(world)
    before = world.sides()
    code, shown = interrupted_at_terminal("-w", world.project, goal="[q]uit [s]: ")
    assert (code, world.sides()) == (130, before), shown
    assert shown.endswith("\ninterrupted: nothing was changed\n"), shown


@pytest.mark.parametrize("how", ["interrupt", "quit", "no terminal"])
def test_a_killed_run_that_was_cleaned_up_before_the_question_is_named(world: World, how: str) -> None:
    retitled(world)
    assert dies_at(20, lambda: world.run("-w", world.project))
    if how == "interrupt":
        code, shown = interrupted_at_terminal("rm", str(SECOND_ID), "-w", world.project, goal="[y/N]: ")
        words = "\ninterrupted: a killed run was cleaned up, but nothing else was changed\n"
    elif how == "quit":
        code, shown = at_terminal("rm", str(SECOND_ID), "-w", world.project, answers="n\n")
        words = "Cancelled, a killed run was cleaned up, but nothing else changed.\n"
    else:
        refused = world.run("rm", str(SECOND_ID), "-w", world.project)
        code, shown, words = (
            refused.exit_code,
            refused.stderr,
            "so a killed run was cleaned up, but nothing else was done;",
        )
    assert words in shown, shown
    assert "was interrupted; " in shown
    assert code == (130 if how == "interrupt" else 4)
    _, again = at_terminal("rm", str(SECOND_ID), "-w", world.project, answers="n\n")
    assert "Cancelled, nothing changed.\n" in again


def test_the_version_that_a_person_did_not_choose_can_be_brought_back(world: World) -> None:
    """As that of a conflict that a run decides: by the command that is printed."""
    retitled(world)
    _, shown = at_terminal("-w", world.project, answers="w\n")
    run = newest(world)
    back = f"reconcile restore {ID}@{run}:metadata"
    assert "metadata: the workspace's is taken, as chosen; to bring the store's back:" in " ".join(shown.split())
    assert back in shown
    world.reconcile(*back.split()[1:], settled=False)
    world.reconcile()
    assert (title(world, "store"), title(world, "workspace")) == ("store", "store")


@pytest.mark.parametrize("choice", [("--take", "store"), ("--take", "both"), ("--keep",), ("--allow-secrets",)])
def test_resolve_says_that_a_conversation_has_no_conflict(world: World, choice: tuple[str, ...]) -> None:
    retitled(world)
    before = newest(world)
    for words in ((), ("-n",)):
        said = world.reconcile("resolve", f"jp-c{SECOND_ID}", *choice, *words, settled=False).stderr
        assert said.splitlines() == [
            f"jp-c{SECOND_ID} has no conflict, and is not blocked",
            f"{ID} (store) has a conflict: reconcile resolve {ID} --take SIDE --workspace {world.project}",
        ]
    assert newest(world) == before
    if choice[0] == "--take" and choice[1] == "store":
        assert "has no conflict" not in world.reconcile("resolve", str(FIRST), *choice, settled=False).stderr
        said = world.reconcile("resolve", str(FIRST), *choice, settled=False).stderr
        assert said == f"{ID} has no conflict, and is not blocked\n", "no conversation has one"


def test_resolve_looks_at_what_it_names_also_with_another_one_in_only(world: World) -> None:
    retitled(world)
    only = ("--only", str(SECOND_ID), "-n", "-w", world.project)
    assert "has no conflict" not in world.run("resolve", str(FIRST), "--take", "store", *only).output
    refused = world.run("resolve", str(FIRST), "--take", "both", *only)
    assert (refused.exit_code, "only events can be kept in both versions" in refused.stderr) == (2, True)


def test_a_title_has_one_value_although_both_were_chosen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch)
    retitled(world)
    world.reconcile(code=4, settled=False)
    refused = world.reconcile("resolve", str(FIRST), "--take", "both", code=2, settled=False).stderr.splitlines()
    assert refused == [
        f"error: resolve: only events can be kept in both versions, and the conflict of {ID} is in its metadata",
        f"hint: choose one: reconcile resolve {ID} --take store",
        f"hint: or: reconcile resolve {ID} --take workspace",
    ]
    done = world.reconcile("resolve", "--all", "--take", "both", settled=False).stdout
    words = "metadata: only one can stay, and the store's is taken; to bring the workspace's back:"
    assert words in " ".join(done.split())


@pytest.mark.parametrize("take", ["store", "workspace"])
def test_resolve_names_the_way_back_as_well(world: World, monkeypatch: pytest.MonkeyPatch, take: str) -> None:
    hold(monkeypatch)
    retitled(world)
    world.reconcile(code=4, settled=False)
    done = world.reconcile("resolve", str(FIRST), "--take", take, settled=False).stdout
    other = "workspace" if take == "store" else "store"
    assert f"metadata: the {take}'s is taken, as chosen; to bring the {other}'s back:" in done
    back = f"reconcile restore {ID}@{newest(world)}:metadata"
    assert back in done
    world.reconcile(*back.split()[1:], settled=False)
    world.reconcile(settled=False)
    assert (title(world, "store"), title(world, "workspace")) == (other, other)


def test_a_blocked_one_is_asked_about_in_the_same_way(world: World) -> None:
    three(world)
    world.reconcile()
    (world.workspace / f"{FIRST}-it" / "metadata.json").write_text("<<<<<<< HEAD\n")
    message = "a git conflict marker in line 1 (expected a JSON object)"
    resolve = f"reconcile resolve {ID} --take store"
    for answers, code in (("q\n", 4), ("w\nk\n", 4), ("\n", 4), ("s\n", 0)):
        found, shown = at_terminal("-w", world.project, answers=answers)
        assert (found, "Take the [s]tore's, s[k]ip it, or [q]uit [k]: " in shown) == (code, True), shown
        assert ("'w' is not one of the answers: s, k, q" in shown) == (answers == "w\nk\n")
        before, _, after = " ".join(shown.split()).partition("Take the [s]tore's")
        assert before.count(message) == 1, "by the question"
        assert (resolve in after) == (message in after) == (answers in ("w\nk\n", "\n")), "still blocked"
    world.check_settled()


def test_an_answer_is_about_one_unit_alone(world: World) -> None:
    """The events that only the workspace has go to the store, though the store's title was chosen."""
    retitled(world, newer="workspace")
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    code, shown = at_terminal("-w", world.project, answers="s\n")
    assert code == 0, shown
    assert (title(world, "store"), title(world, "workspace"), world.event_count(FIRST)) == ("store", "store", 4)
    world.check_settled()


def test_what_is_skipped_stays_a_conflict(world: World) -> None:
    retitled(world)
    before = world.sides()
    code, shown = at_terminal("-w", world.project, answers="k\n")
    assert (code, world.sides()) == (4, before), shown
    after = shown.rpartition("uit [s]")[2]
    assert "skipped, until you decide:" in after
    assert "1 conflict skipped; nothing else to do." in after
    assert "blocked" not in after
    assert status(world)[ID]["word"] == "conflict"
    assert "the store's is taken" in world.reconcile().stdout


def test_a_quiet_run_prints_the_conflict_that_it_has_decided(world: World) -> None:
    """In one line, with the command that restores the other version; a dry run has decided nothing."""
    retitled(world)
    assert not world.run("-n", "-q", "-w", world.project).output
    (warning,) = world.reconcile("-q").stderr.splitlines()
    start = f"warning: store ({ID}): metadata: the store's is taken (newer); to bring the workspace's back: "
    assert warning == f"{start}reconcile restore {ID}@{newest(world)}:metadata --workspace {world.project}"
    assert not world.run("-q", "-w", world.project).output


def test_the_times_of_a_conflict_are_local(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    retitled(world)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        for words in (("status",), ("status", str(FIRST)), ("-n",)):
            text = said(world, *words)
            assert "metadata (title): store 2020-09-13 21:26:42; workspace 2020-09-13 21:26:41" in text, words
        hold(monkeypatch)
        assert "store 2020-09-13 21:26:42; workspace" in world.run("-n", "-w", world.project).stdout
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_one_answer_for_all_that_follow(world: World) -> None:
    retitled(world)
    for side, at in (("store", 4), ("workspace", 3)):
        set_key(getattr(world, side) / f"{SECOND_ID}-it", "user", side, LONG_AGO + at * SECOND)
    code, shown = at_terminal("-w", world.project, answers="a\nw\n")
    assert (code, shown.count(TAKE)) == (0, 1), shown
    described = json.loads((world.store / f"{SECOND_ID}-it" / "metadata.json").read_bytes())
    assert (title(world, "store"), described["user"]) == ("workspace", "workspace")


def test_one_answer_for_all_offers_the_newest_where_that_is_not_one_side(world: World) -> None:
    retitled(world)
    for side, at in (("store", 3), ("workspace", 4)):
        set_key(getattr(world, side) / f"{SECOND_ID}-it", "user", side, LONG_AGO + at * SECOND)
    code, shown = at_terminal("-w", world.project, answers="a\nn\n")
    assert (code, shown.count("answer for [a]ll")) == (0, 1), shown
    words = "For this one and all that follow: the [n]ewest, the [s]tore's, the [w]orkspace's, s[k]ip, or [q]uit [n]"
    assert words in " ".join(shown.split())
    described = json.loads((world.store / f"{SECOND_ID}-it" / "metadata.json").read_bytes())
    assert (title(world, "store"), described["user"]) == ("store", "workspace")


def test_both_continuations_stay_where_that_is_chosen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `resolve --take both`, whatever the configuration does with a losing continuation."""
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    monkeypatch.setenv("RECONCILE_DIVERGED", "newest")
    code, shown = at_terminal("-w", world.project, answers="b\n")
    assert (code, world.event_count(FIRST)) == (0, 5), shown
    assert [path.name for path in world.store.iterdir() if "diverged" in path.name] != []
    world.check_settled()


def test_a_dry_run_of_take_both_shows_what_stays_in_place_and_what_the_fork_has(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 1, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    for words in ("-n",), ("resolve", ID, "--take", "both", "-n"):
        lines = [" ".join(line.split()) for line in said(world, *words).splitlines()]
        assert [line for line in lines if line.startswith("-> workspace events ") and "different events" in line], lines
        (fork,) = (line for line in lines if line.startswith("fork -> store "))
        assert fork.endswith(" +4 events keeps the workspace's continuation")


def test_yes_takes_the_newest_and_a_held_one_is_skipped_by_default(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    retitled(world)
    hold(monkeypatch)
    code, shown = at_terminal("-w", world.project, answers="\n")
    assert (code, title(world, "store"), title(world, "workspace")) == (4, "store", "workspace"), shown
    code, shown = at_terminal("-w", world.project, answers="s\n")
    assert (code, title(world, "store"), title(world, "workspace")) == (0, "store", "store"), shown
    monkeypatch.delenv("RECONCILE_CONFLICT")
    for side in ("store", "workspace"):
        (directory,) = getattr(world, side).glob(f"{FIRST}-*")
        set_key(directory, "user", side, LONG_AGO + (9 if side == "workspace" else 8) * SECOND)
    code, shown = at_terminal("-w", world.project, "-y")
    assert (code, TAKE in shown) == (0, False), shown
    (directory,) = world.store.glob(f"{FIRST}-*")
    assert json.loads((directory / "metadata.json").read_bytes())["user"] == "workspace"


def test_a_watcher_says_which_side_won_and_the_way_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    retitled(world)
    code, shown = watched_at_terminal(world.project, "the other version: ")
    assert code == 0
    words = "metadata (title): both sides changed it; the store's is taken (newer); the other version: "
    assert f"{words}reconcile restore {ID}@{newest(world)}:metadata" in shown
    assert (title(world, "store"), title(world, "workspace")) == ("store", "store")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_quiet_watcher_prints_the_conflict_that_it_has_decided(
    world: World, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """And nothing of a new conversation."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    retitled(world)
    write_conversation(world.workspace / "17600000000-new", "New", events(3))
    code, shown = watched_at_terminal(
        world.project, "the other version: ", "-q", *(["--json"] if form == "json" else [])
    )
    (line,) = shown.splitlines()
    assert code == 0
    assert f"the store's is taken (newer); the other version: reconcile restore {ID}@" in line


def test_of_a_merge_the_keys_are_named_and_each_version_can_be_brought_back(world: World) -> None:
    retitled(world)
    set_key(world.workspace / f"{FIRST}-it", "colour", "red", LONG_AGO + SECOND)
    (conflict,) = world.plan()["conflicts"]
    assert (conflict["keys"], conflict["takes"], conflict["merges"]) == (["title"], "store", True)
    text = said(world, "-n")
    assert "metadata (title): store 2020-09-13 12:26:42; workspace 2020-09-13 12:26:41" in text
    assert "the store's is taken (newer); other keys are merged; to decide now:" in text
    done = " ".join(world.reconcile().stdout.split())
    assert "metadata (title): the store's is taken (newer); other keys are merged; both versions are saved:" in done
    assert f"reconcile diff {ID}" in done
    for side in (world.store, world.workspace):
        described = json.loads((side / f"{FIRST}-store" / "metadata.json").read_bytes())
        assert (described["title"], described["colour"]) == ("store", "red")
    detail = status(world)[ID]["detail"]
    shown = said(world, "diff", str(FIRST), "--json")
    (decided,) = json.loads(shown)["decided"]
    assert (decided["unit"], decided["winner"]) == ("metadata", "store")
    assert f"`reconcile restore {decided['lost']}` brings the workspace's back" in detail
    world.reconcile("restore", decided["lost"], settled=False)
    world.reconcile()
    assert (title(world, "store"), title(world, "workspace")) == ("workspace", "workspace")


def test_configured_to_hold_only_the_same_key_is_a_conflict(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(monkeypatch)
    three(world)
    world.reconcile()
    set_key(world.store / f"{FIRST}-it", "title", "store", LONG_AGO + SECOND)
    set_key(world.workspace / f"{FIRST}-it", "colour", "red", LONG_AGO + SECOND)
    set_key(world.store / f"{SECOND_ID}-it", "colour", "red", LONG_AGO + SECOND)
    set_key(world.workspace / f"{SECOND_ID}-it", "colour", "blue", LONG_AGO + SECOND)
    planned = world.plan()
    assert [each["conversation"] for each in planned["held"]] == [f"jp-c{SECOND_ID}"]
    assert [each["keys"] for each in planned["conflicts"]] == [["colour"]]
    world.reconcile(code=4, settled=False)
    assert title(world, "workspace") == "store"


@pytest.mark.parametrize("newer", ["store", "workspace", "neither"])
@pytest.mark.parametrize("preferred", ["store", "workspace"])
@pytest.mark.parametrize("merges", [False, True])
def test_an_option_names_the_side_that_really_won(world: World, preferred: str, newer: str, *, merges: bool) -> None:
    """Whatever the times are: the side of the option has won, and the command brings the other side's version back."""
    retitled(world, newer=newer)
    other = "workspace" if preferred == "store" else "store"
    if merges:
        for side in ("store", "workspace"):
            key = {"store": "colour", "workspace": "user"}[side]
            set_key(getattr(world, side) / f"{FIRST}-it", key, side, LONG_AGO + (2 if side == newer else 1) * SECOND)
    done = " ".join(world.reconcile("--prefer", preferred).stdout.split())
    assert f"the {preferred}'s is taken (" in done
    assert f"so the {other}'s" not in done
    assert (title(world, "store"), title(world, "workspace")) == (preferred, preferred)
    detail = status(world)[ID]["detail"]
    assert f"the run took the {preferred}'s; `reconcile restore " in detail
    assert f"brings the {other}'s back" in detail
    (decided,) = json.loads(said(world, "diff", str(FIRST), "--json"))["decided"]
    assert decided["winner"] == preferred
    back = detail.partition("`")[2].partition("`")[0]
    world.reconcile(*back.split()[1:], settled=False)
    world.reconcile()
    assert (title(world, "store"), title(world, "workspace")) == (other, other)
    assert status(world)[ID]["detail"] == ""


@pytest.mark.parametrize("preferred", ["store", "workspace"])
def test_of_different_keys_no_side_wins_whatever_the_option_says(world: World, preferred: str) -> None:
    three(world)
    world.reconcile()
    for side, key in (("store", "title"), ("workspace", "colour")):
        set_key(getattr(world, side) / f"{FIRST}-it", key, side, LONG_AGO + SECOND)
    assert world.plan("--prefer", preferred)["conflicts"] == []
    done = world.reconcile("--prefer", preferred).stdout
    assert ("conflict" in done, "is taken" in done, status(world)[ID]["detail"]) == (False, False, "")
    for root in (world.store, world.workspace):
        described = json.loads((root / f"{FIRST}-store" / "metadata.json").read_bytes())
        assert (described["title"], described["colour"]) == ("store", "workspace")
    assert json.loads(said(world, "diff", str(FIRST), "--json"))["decided"] == []


def test_diff_has_the_words_of_status_for_a_broken_file(world: World) -> None:
    three(world)
    world.reconcile()
    (world.workspace / f"{FIRST}-it" / "metadata.json").write_text('{"title": "a\nb"}')
    shown = said(world, "diff", str(FIRST))
    assert "Invalid control character" not in shown
    words = shown.partition("metadata.json: ")[2].splitlines()[0]
    assert words.startswith("invalid JSON in line 1 column")
    assert words in said(world, "status", str(FIRST))


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("how", ["answer", "resolve"])
def test_the_notice_is_about_the_newest_decision(world: World, how: str, *, merges: bool) -> None:
    """A run has decided a conflict of titles, and the user decides the next one before reading the notice."""
    retitled(world)
    world.reconcile()
    first = newest(world)
    for side, at in (("store", 4), ("workspace", 5)):
        set_key(getattr(world, side) / f"{FIRST}-store", "title", f"{side} again", LONG_AGO + at * SECOND)
    if merges:
        set_key(world.workspace / f"{FIRST}-store", "colour", "red", LONG_AGO + 5 * SECOND)
    if how == "answer":
        at_terminal("-w", world.project, answers="s\n")
    else:
        world.reconcile("resolve", str(FIRST), "--take", "store", settled=False)
    assert (title(world, "store"), title(world, "workspace")) == ("store again", "store again")
    assert status(world)[ID]["detail"] == "", "the user has decided"
    for words in (("status",), ("status", str(FIRST)), ("diff", str(FIRST))):
        assert first not in said(world, *words), words
    (decided,) = json.loads(said(world, "diff", str(FIRST), "--json"))["decided"]
    assert (decided["run"], decided["winner"], decided["chosen"]) == (newest(world), "store", True)
    world.reconcile("restore", decided["lost"], settled=False)
    world.reconcile()
    assert (title(world, "store"), title(world, "workspace")) == ("workspace again", "workspace again")

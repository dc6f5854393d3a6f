"""The questions of a sync at a terminal: which machine's version of a conflict is taken."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.remote.test_watch import titled_on_both
from tests.support.planted import KINDS
from tests.support.projects.machines import Machine, git, make_bare, make_machine, quiet
from tests.support.projects.terminal import Session
from tests.support.projects.world import LONG_AGO, SECOND, event, set_key, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

A, B, C = 17528832000, 17528832010, 17528832020
HERE, THERE = "Of the desktop", "Of the laptop"
REF = "refs/reconcile/jp-ab1cd"


def asked(machine: Machine, *args: str, answers: str, code: int = 0, command: str = "sync") -> str:
    """Sync at a terminal of 80 columns; return what it shows, on one line."""
    with machine.at_work():
        session = Session(command, *machine.sides, *args, environ={"NO_COLOR": "1"})
    for answer in answers.splitlines(keepends=True):
        session.type(answer, after="]: ")
    ended, shown = session.end()
    assert ended == code, shown
    # A command is never wrapped: people copy it.
    assert not [line for line in shown.splitlines() if len(line) > 80 and not line.startswith("    reconcile ")]
    return " ".join(shown.split())


def title(machine: Machine, number: int = A) -> str:
    return str(json.loads((machine.directory(number) / "metadata.json").read_text())["title"])


@pytest.fixture
def titled(laptop: Machine, desktop: Machine) -> Machine:
    """The desktop, after both machines have given a title, the laptop has sent it, and the desktop's is newer."""
    titled_on_both(laptop, desktop)
    laptop.sync()
    return desktop


@pytest.mark.long
def test_the_newer_version_is_the_default_answer(titled: Machine, laptop: Machine) -> None:
    shown = asked(titled, answers="\n")
    assert f"{HERE} jp-c{A} metadata (title): this machine 2020-" in shown
    assert f'title: "{HERE}" (this machine) / "{THERE}" (the other machine)' in shown
    question = "Take [t]his machine's (newer), the [o]ther machine's, s[k]ip it, show the [d]ifference, or [q]uit [t]:"
    assert "this machine's version is newer; the version that is not taken is saved, and can be restored" in shown
    assert question in shown
    assert "this machine's is taken; to take the other machine's instead: reconcile restore" in shown
    assert f"taken {THERE}" not in shown
    assert "store" not in shown.replace("restore", "")
    quiet(laptop, titled)
    assert (title(titled), title(laptop)) == (HERE, HERE)


@pytest.mark.long
@pytest.mark.parametrize("answer", ["", "o"])
def test_a_version_with_the_time_of_a_wrong_clock_is_not_called_newer(
    laptop: Machine, desktop: Machine, answer: str
) -> None:
    set_key(laptop.directory(A), "title", THERE, time.time_ns() + 3 * 3600 * SECOND)
    set_key(desktop.directory(A), "title", HERE, LONG_AGO + SECOND)
    laptop.sync()
    shown = asked(desktop, answers=f"{answer}\n")
    assert "the other machine's clock is ahead, so the times do not count; " in shown
    assert "Take [t]his machine's, the [o]ther machine's, s[k]ip it, show the [d]ifference, or [q]uit [t]:" in shown
    taken, left = ("this", "other") if not answer else ("other", "this")
    here = {"this": "this machine's", "other": "the other machine's"}
    assert f"{here[taken]} is taken; to take {here[left]} instead: reconcile restore" in shown
    quiet(laptop, desktop)
    assert {title(desktop), title(laptop)} == {THERE if answer else HERE}


@pytest.mark.long
def test_a_cancelled_sync_says_that_it_has_added_the_remote(titled: Machine) -> None:
    url = json.loads(titled.run("remote", "ls", "--json").stdout)["remotes"][0]["url"]
    titled.run("remote", "remove", "origin")
    shown = asked(titled, url, answers="q\n", code=4)
    assert "Cancelled, the remote origin was added, but nothing else changed." in shown
    assert "Cancelled, nothing changed." in asked(titled, answers="q\n", code=4)


QUESTION = "this sync sends 2 conversations to it, 1 of them private. They are not encrypted"


@pytest.fixture
def unsent(tmp_path: Path, run: Run) -> Machine:
    """A machine without a remote, with a published conversation and a private one."""
    machine = make_machine(tmp_path / "unsent", run)
    machine.write(A)
    machine.run()
    machine.run("project", str(A))
    machine.write(B)
    return machine


def remotes_of(machine: Machine) -> list[str]:
    return [each["name"] for each in json.loads(machine.run("remote", "ls", "--json").stdout)["remotes"]]


def test_the_first_question_names_a_conversation_with_a_secret(unsent: Machine) -> None:
    path = unsent.directory(B) / "events.json"
    key = KINDS["GitHub classic token"](random.Random(1))
    write_json(path, [*json.loads(path.read_bytes()), event(2_000, f"TOKEN={key}")], LONG_AGO + SECOND)
    shown = asked(unsent, str(make_bare(unsent.home / "new.git")), answers="n\n", code=4)
    assert f"1 of them private, 1 with a secret (talk (jp-c{B}), event " in shown
    assert key not in shown


@pytest.mark.parametrize("command", ["sync", "push"])
@pytest.mark.parametrize("answer", ["\n", "n\n"])
def test_a_no_to_the_first_sync_with_an_empty_address_sends_and_adds_nothing(
    unsent: Machine, command: str, answer: str
) -> None:
    new = make_bare(unsent.home / "new.git")
    shown = asked(unsent, str(new), answers=answer, code=4, command=command)
    assert QUESTION in shown
    assert "reconcile remote add --encrypt ~/new.git" in shown
    assert "Send them? [y/N]: " in shown
    assert "Cancelled, nothing changed." in shown
    assert remotes_of(unsent) == []
    assert git(new, "for-each-ref") == ""


def test_a_yes_to_the_first_sync_with_an_empty_address_sends_everything(unsent: Machine) -> None:
    new = make_bare(unsent.home / "new.git")
    shown = asked(unsent, str(new), answers="y\n")
    assert "origin: 2 conversations sent." in shown
    assert "nothing of it is sent yet" not in shown
    assert QUESTION not in asked(unsent, answers="")


@pytest.mark.long
def test_the_first_sync_with_an_address_asks_nothing_with_yes_without_a_terminal_and_if_it_has_content(
    unsent: Machine, laptop: Machine, bare: Path, tmp_path: Path, run: Run
) -> None:
    assert QUESTION not in asked(unsent, str(make_bare(tmp_path / "a.git")), "--yes", answers="")
    unsent.run("remote", "remove", "origin")
    unsent.sync(str(make_bare(tmp_path / "b.git")))
    new = make_machine(tmp_path / "new", run)
    assert "Send them?" not in asked(new, str(bare), answers="")
    other = make_machine(tmp_path / "other", run)
    other.write(A)
    assert "nothing of it is sent yet" in asked(other, str(make_bare(tmp_path / "c.git")), answers="", command="pull")


@pytest.mark.long
@pytest.mark.parametrize("answer", ["o", "other"])
def test_the_other_machine_can_be_chosen_and_the_command_brings_this_version_back(
    titled: Machine, laptop: Machine, answer: str
) -> None:
    shown = asked(titled, answers=f"{answer}\n")
    assert title(titled) == THERE
    run = json.loads(titled.run("log", "--json").stdout)["runs"][0]["id"]
    way = f"reconcile restore jp-c{A}@{run}:metadata"
    assert f"the other machine's is taken; to take this machine's instead: {way}" in shown
    quiet(laptop, titled)
    titled.run(*way.split()[1:])
    assert title(titled) == HERE
    quiet(titled, laptop)
    assert title(laptop) == HERE


def test_this_machine_can_be_chosen_although_the_other_one_is_newer(laptop: Machine, desktop: Machine) -> None:
    titled_on_both(laptop, desktop)
    desktop.sync()
    shown = asked(laptop, answers="t\n")
    assert "Take [t]his machine's, the [o]ther machine's (newer)," in shown
    assert "this machine's is taken; to take the other machine's instead: reconcile restore" in shown
    quiet(laptop, desktop)
    assert (title(laptop), title(desktop)) == (THERE, THERE)


def test_the_difference_is_shown_with_the_names_of_the_machines(titled: Machine) -> None:
    shown = asked(titled, answers="d\n?\nq\n", code=4)
    assert "o take the other machine's version; this machine's is saved, and can be restored" in shown
    assert shown.count("Take [t]his machine's") == 3
    assert f'metadata title - this machine "{HERE}" + the other machine "{THERE}"' in shown
    assert "workspace" not in shown


@pytest.mark.long
def test_a_pull_says_that_this_machines_version_is_not_sent_yet(titled: Machine, laptop: Machine) -> None:
    again = "`reconcile sync --workspace ~/project` asks again, and sends the version that you take"
    words = f"1 conflict stays: a pull sends nothing; {again}"
    assert words in asked(titled, answers="t\n", command="pull")
    assert words not in asked(titled, answers="t\n")
    quiet(laptop, titled)


def test_quitting_changes_nothing(titled: Machine, laptop: Machine, bare: Path) -> None:
    before, commit = titled.contents, git(bare, "rev-parse", REF)
    assert "Cancelled, nothing changed." in asked(titled, answers="q\n", code=4)
    assert (titled.contents, git(bare, "rev-parse", REF)) == (before, commit)
    asked(titled, answers="o\n")
    quiet(laptop, titled)


@pytest.mark.long
def test_a_skipped_conflict_is_asked_about_again_and_the_rest_goes_on(titled: Machine, laptop: Machine) -> None:
    titled.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    shown = asked(titled, answers="k\n", code=4)
    words = "both sides changed title: this machine 2020-09-13 12:28:40; the other machine 2020-09-13 12:27:40"
    assert f"blocked: jp-c{A}: {words}; `reconcile sync` asks about it at a terminal" in shown
    assert "1 conversation sent" in shown
    assert title(titled) == HERE
    laptop.sync()
    assert (laptop.events(B), title(laptop)) == (4, THERE)
    asked(titled, answers="o\n")
    quiet(laptop, titled)
    assert title(titled) == THERE


def test_a_sync_that_leaves_all_out_says_so(titled: Machine) -> None:
    shown = asked(titled, answers="k\n", code=4)
    assert "origin: 1 blocked, nothing else to send or to take." in shown
    told = titled.run("status").output
    assert "0 conversations to send, 0 to take, 1 changed on both machines" in told


@pytest.mark.long
def test_one_answer_for_all(titled: Machine, laptop: Machine) -> None:
    for machine, name in ((laptop, THERE), (titled, HERE)):
        set_key(machine.directory(B), "title", name, LONG_AGO + (180 if machine is laptop else 60) * SECOND)
    laptop.sync()
    shown = asked(titled, answers="a\nn\n")
    assert "For this one and all that follow: the [n]ewest, [t]his machine's, the [o]ther machine's," in shown
    assert {title(titled, A), title(titled, B)} == {HERE, THERE}
    quiet(laptop, titled)


@pytest.mark.long
def test_a_held_conflict_waits_for_the_answer(titled: Machine, laptop: Machine) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECONCILE_CONFLICT", "hold")
        assert "title: this machine 2020" in titled.sync(code=4)["held"][0]
        assert "blocked until you choose" in asked(titled, answers="o\n")
    quiet(laptop, titled)
    assert title(titled) == THERE


@pytest.mark.long
def test_an_answer_holds_if_another_machine_is_faster(titled: Machine, laptop: Machine) -> None:
    titled.append(C, 1, "c", LONG_AGO + 60 * SECOND)
    with titled.at_work():
        session = Session("sync", *titled.sides)
        session.wait("or [q]uit")
    laptop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    session.type("o\n", after="[t]: ")
    code, shown = session.end()
    assert code == 0, shown
    assert shown.count("or [q]uit") == 1
    assert (title(titled), titled.events(B)) == (THERE, 4)
    quiet(laptop, titled)


@pytest.mark.long
def test_the_json_has_both_versions(titled: Machine) -> None:
    for each in (titled.sync("--dry-run"), titled.sync()):
        (conflict,) = each["conflicts"]
        assert (conflict["keys"], conflict["takes"]) == (["title"], "here")
        assert conflict["here"]["values"] == [json.dumps(HERE)]
        assert conflict["there"]["values"] == [json.dumps(THERE)]
        assert conflict["here"]["mtime_ns"] > conflict["there"]["mtime_ns"]


def test_elsewhere_nothing_is_asked(titled: Machine) -> None:
    printed = titled.run("sync").output
    assert "[q]uit" not in printed
    assert "this machine's is taken; to take the other machine's instead:" in " ".join(printed.split())

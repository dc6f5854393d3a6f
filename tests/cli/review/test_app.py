"""The full-screen view: every key, by the pilot of its own library."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tests.cli.modules import module
from tests.support.planted import KINDS
from tests.support.projects.conflicts import TITLES, conflicts, id_of
from tests.support.projects.world import listing, stamps
from tests.support.review import LARGE, SMALL, Screen, played, walk_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.projects.world import World

QUESTIONS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12]
"""The conversations that need a decision, in the order of the tree."""


@pytest.fixture
def walk(world: World) -> Iterator[Any]:
    conflicts(world)
    before = world.stamps()
    with walk_of(world.project) as walk:
        yield walk
    assert world.stamps() == before, "a walk changes nothing"


@pytest.fixture
def answered(world: World) -> Iterator[Any]:
    """A walk at whose end the person says yes: the decisions are recorded, and neither side changes."""
    conflicts(world)
    before = stamps(world.store) | stamps(world.workspace)
    with walk_of(world.project) as walk:
        yield walk
    assert stamps(world.store) | stamps(world.workspace) == before


def test_the_view_begins_at_the_first_question_and_shows_what_happens(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        assert screen.subject == "Release notes for June"
        assert "0 of 11 decided" in screen.lines[0]
        assert "both sides changed the title" in screen.text
        assert '"Release notes, draft for May"' in screen.text
        assert "s store  w workspace  k skip  h hold  n next  a apply" in screen.lines[-1]
        assert len(screen.lines) == 24
        assert max(map(len, screen.lines)) <= 80

    played(walk, story)


@pytest.mark.parametrize(
    ("key", "number", "choice"),
    [
        ("s", 0, "store"),
        ("w", 0, "workspace"),
        ("S", 6, "store alone"),
        ("W", 7, "workspace alone"),
        ("b", 4, "both"),
        ("k", 0, "skip"),
        ("x", 4, "skip"),
        ("h", 2, "hold"),
        ("s", 12, "store"),
        ("w", 8, "workspace"),
    ],
)
@pytest.mark.long
def test_a_key_takes_a_choice_and_moves_on(walk: Any, key: str, number: int, choice: str) -> None:
    async def story(screen: Screen) -> None:
        await screen.press(*["n"] * QUESTIONS.index(number))
        assert screen.app.subject.conversation == id_of(number)
        await screen.press(key)
        assert screen.app.decisions.chosen == {(id_of(number), "conversation"): choice}
        assert "1 of 11 decided" in screen.lines[0]
        following = QUESTIONS[(QUESTIONS.index(number) + 1) % len(QUESTIONS)]
        assert screen.app.subject.conversation == id_of(following)
        assert f": {choice} (u takes it back). 10 left" in screen.message
        await screen.press("p", "u")
        assert screen.app.decisions.chosen == {}
        assert screen.app.subject.conversation == id_of(number)

    played(walk, story)


def test_a_choice_that_is_not_offered_is_refused_in_words(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("b")
        assert screen.app.decisions.chosen == {}
        assert "of two continuations s and w keep both" in " ".join(screen.text.split())
        await screen.press("p")
        assert screen.subject == "Windows paths"
        await screen.press("w")
        assert "no version of the workspace to take here" in screen.message
        await screen.press("u")
        assert screen.message == "no decision to take back"

    played(walk, story)


@pytest.mark.long
def test_next_and_previous_visit_what_is_undecided_around_the_end(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        seen = []
        for _ in QUESTIONS:
            seen.append(screen.app.subject.conversation)
            await screen.press("n")
        assert seen == list(map(id_of, QUESTIONS))
        assert screen.app.subject.conversation == seen[0]
        await screen.press("p")
        assert screen.app.subject.conversation == seen[-1]
        await screen.press("s", "k")
        assert screen.app.subject.conversation == seen[1]
        await screen.press("p")
        assert screen.app.subject.conversation == seen[9]

    played(walk, story)


@pytest.mark.long
def test_arrows_move_and_fold(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("end")
        assert screen.subject == "A question of today"
        await screen.press("home", "down", "down")
        assert screen.subject == TITLES[2]
        rows = len(screen.app.outline.rows)
        await screen.press("left")
        assert len(screen.app.outline.rows) == rows - 1
        await screen.press("down", "up", "right", "down")
        assert screen.subject == TITLES[3]
        await screen.press("left")
        assert screen.subject == TITLES[2]
        await screen.press("left", "n")
        assert screen.subject == TITLES[3], "a folded question is unfolded"
        await screen.press("pagedown", "pageup", "g", "G")
        assert screen.subject == "A question of today"

    played(walk, story)


@pytest.mark.long
def test_search_finds_titles_and_ids(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("slash", *"COLORS", "enter")
        assert screen.subject == "Colors in the terminal"
        await screen.press("slash", *"7600000005", "enter")
        assert screen.subject == "Letter to the users"
        await screen.press("slash", *"the", "enter", "slash", "enter")
        assert screen.subject == TITLES[8]
        await screen.press("slash", *"zebra", "enter")
        assert screen.message == "nothing found: zebra"
        await screen.press("slash", "s", "escape", "down")
        assert screen.app.decisions.chosen == {}

    played(walk, story)


def test_both_versions_are_side_by_side_where_there_is_room(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("n", "n", "n", "n")
        assert any("version 2 is out" in line and "version 2 will be" in line for line in screen.lines)
        await screen.resize(*SMALL)
        assert not any("version 2 is out" in line and "version 2 will be" in line for line in screen.lines)
        assert "Dear users, version 2 is out today." in screen.text
        assert "Dear users, version 2 will be out on Monday." in screen.text
        await screen.resize(40, 10)
        assert "Letter" in screen.text

    played(walk, story, LARGE)


def test_no_sentence_is_cut(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        assert "Without one, this run changes neither side." in " ".join(screen.details.split())
        assert max(map(len, screen.details.splitlines())) <= screen.app.query_one("DetailView").text_columns

    played(walk, story)


@pytest.mark.long
def test_the_last_line_names_the_key_that_scrolls_a_longer_text(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        assert "PgDn text" not in screen.text
        await screen.press(*"nnnnnn")
        assert "PgDn text" in screen.lines[-1]
        before = screen.lines
        await screen.press("pagedown")
        assert screen.lines[1].partition("│")[0] == before[1].partition("│")[0]
        assert screen.lines[1].partition("│")[2] != before[1].partition("│")[2]
        await screen.press("pageup")
        assert screen.lines == before
        await screen.press("full_stop")
        assert screen.app.query_one("TreeView").cursor > 10

    played(walk, story)


def test_an_edited_event_is_named_beside_the_continuation(world: World) -> None:
    conflicts(world)
    for side, text in ((world.store, "form A"), (world.workspace, "form B")):
        (path,) = side.glob(f"**/{id_of(6)[4:]}-*/events.json")
        found = json.loads(path.read_bytes())
        found[2]["message"] = text
        path.write_text(json.dumps(found))

    async def story(screen: Screen) -> None:
        await screen.press(*"nnnnnn")
        assert screen.app.subject.conversation == id_of(6)
        assert "both sides edited an event and continued it." in " ".join(screen.details.split())

    with walk_of(world.project) as walk:
        played(walk, story)


def test_what_stays_has_one_name_each_at_the_end(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("s", "k", "h", "a")
        text = " ".join(screen.text.split())
        assert "Your decisions: 1 store." in text
        assert "Not in this run: 8 undecided, 1 skipped, 1 on hold." in text
        assert "left alone" not in text
        assert "what is undecided and skipped" in " ".join(text.replace("│", " ").split())

    played(walk, story)


def test_a_conversation_that_is_held_for_a_secret_shows_the_event_and_the_command(world: World) -> None:
    conflicts(world)
    (path,) = world.store.glob(f"**/{id_of(11)[4:]}-*/events.json")
    found = json.loads(path.read_bytes())
    token = KINDS["GitHub classic token"](random.Random(1))
    found[-1]["message"] = f"export TOKEN={token}"
    path.write_text(json.dumps(found))

    async def story(screen: Screen) -> None:
        await screen.press("slash", *"Colors", "enter")
        text = " ".join(screen.details.split())
        assert "not published: event" in text
        assert f"reconcile resolve {id_of(11)} --allow-secrets" in text
        await screen.press("k")
        assert "blocked: the text on the right has the way out" in screen.message

    with walk_of(world.project) as walk:
        played(walk, story)


@pytest.mark.long
def test_every_kind_of_conflict_shows_both_versions(walk: Any) -> None:
    expected = {
        1: ("Import of all old backups", "Import of backups from 2019"),
        2: ("martina", "paul"),
        3: ("flaky", "solved"),
        5: ("xxh3 for speed", "BLAKE2 for safety"),
        6: ("What if the disk is full?", "What about a power cut?"),
        8: ("before the plan", "and kept"),
        12: ("conflict marker",),
    }

    async def story(screen: Screen) -> None:
        for number in QUESTIONS:
            text = " ".join(screen.details.split())
            assert [each for each in expected.get(number, ()) if each not in text] == [], text
            await screen.press("n")

    played(walk, story)


@pytest.mark.long
def test_the_text_scrolls(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("n", "n", "n", "n", "n", "n")
        before = screen.lines
        await screen.press("J")
        assert screen.lines[1].partition("│")[2] != before[1].partition("│")[2]
        await screen.press("K")
        assert screen.lines == before
        await screen.press("space", "minus")
        assert screen.lines == before

    played(walk, story, (80, 16))


def test_help_opens_and_closes(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        before = screen.text
        await screen.press("question_mark")
        assert "take the store's, the workspace's version" in screen.text
        await screen.press("escape")
        assert screen.text == before

    played(walk, story)


def test_apply_shows_the_plan_and_asks_once(answered: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("s", "w", "a")
        assert "Your decisions: 1 store, 1 workspace." in screen.text
        assert "Not in this run: 9 undecided." in screen.text
        assert "blocked" not in screen.text
        await screen.press("n")
        assert "9 left" in screen.message
        await screen.press("a", "y")

    plan = played(answered, story).plan
    concerned = {action.conversation for action in plan.actions}
    assert concerned == {id_of(number) for number in (0, 1, 10, 11, 13)}
    sides = {(each.conversation, each.target.side.value) for each in plan.actions if each.unit == "metadata"}
    assert {(id_of(0), "workspace"), (id_of(1), "store")} <= sides


def test_two_continuations_offer_only_choices_that_differ(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press(*"nnnnnn")
        assert screen.app.subject.conversation == id_of(6)
        text = " ".join(screen.details.split())
        fork = 'the fork "[diverged] Torn files after a crash", in the store only'
        assert f"s take the store's version; the workspace's becomes {fork}" in text
        assert f"w take the workspace's version; the store's becomes {fork}" in text
        assert "S take only the store's version: no fork; `restore` can bring the workspace's back" in text
        assert "h hold: leave both sides alone until one changes" in text
        await screen.press("b")
        assert screen.app.decisions.chosen == {}
        assert "of two continuations s and w keep both" in screen.message

    played(walk, story)


@pytest.mark.parametrize("key", ["S", "W"])
@pytest.mark.long
def test_one_continuation_alone_makes_no_fork(answered: Any, key: str) -> None:
    async def story(screen: Screen) -> None:
        await screen.press(*"nnnnnn", key, "a", "y")

    plan = played(answered, story).plan
    steps = [each for each in plan.actions if each.conversation == id_of(6) and each.unit == "stream"]
    assert [each.target.side.value for each in steps] == ["workspace" if key == "S" else "store"]
    assert not [each for each in plan.actions if each.kind == "fork"]


def test_times_of_one_minute_have_seconds(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        assert "store     2020-09-13 12:26:41" in screen.details
        assert "workspace 2020-09-13 12:26:42, newer" in screen.details

    played(walk, story)


def test_decisions_are_recorded_with_the_answer_and_outlive_the_review(world: World) -> None:
    conflicts(world)

    async def story(screen: Screen) -> None:
        await screen.press("s", "w", "k", "a", "y")

    before = listing(world.store), listing(world.workspace)
    with walk_of(world.project) as walk:
        played(walk, story)
    assert (listing(world.store), listing(world.workspace)) == before
    shown = world.run("status", "-w", world.project, id_of(0)).output
    assert "your decision (metadata: store) waits: it was interrupted before its run began" in " ".join(shown.split())
    world.reconcile(code=4)
    titles = [
        json.loads(next(side.glob(f"**/{id_of(number)[4:]}-*/metadata.json")).read_bytes())["title"]
        for number in (0, 1)
        for side in (world.store, world.workspace)
    ]
    assert titles == [*["Release notes for June"] * 2, *["Import of backups from 2019"] * 2]
    assert "waits" not in world.run("status", "-w", world.project).output


@pytest.mark.parametrize("step", ["plan_for", "confirmed"])
def test_a_full_disk_ends_the_view_with_the_error_and_no_traceback(
    walk: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    app, options = module("review.app"), module("arguments").Options()

    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def story(screen: Screen) -> None:
        await screen.press("s", "a", "y")

    def run(self: Any, *, mouse: bool) -> Any:
        async def play() -> None:
            async with self.run_test(size=SMALL) as pilot:
                await pilot.pause()
                await story(Screen(self, pilot))

        with contextlib.suppress(OSError):  # the library prints a traceback, with values of the user's, and goes on
            asyncio.run(play())
        return self.return_value

    monkeypatch.setattr(app.ReviewApp, "run", run)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        app.walk_in_full_screen(replace(walk, **{step: full}), options)


def test_a_directory_that_is_renamed_meanwhile_is_a_note_and_no_traceback(world: World) -> None:
    conflicts(world)

    async def story(screen: Screen) -> None:
        assert "can't be read" not in screen.details
        for path in sorted(world.workspace.iterdir()):
            path.rename(path.with_name(f"{path.name}-renamed"))
        await screen.press("s", "n")
        assert "it has changed since the plan was made, and can't be read (No such file" in " ".join(
            screen.details.split()
        )

    with walk_of(world.project) as walk:
        played(walk, story)


def test_a_dry_run_records_no_decisions(walk: Any, world: World) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("s", "a", "y")

    with walk_of(world.project, dry_run=True) as dry:
        played(dry, story)


def test_a_decision_that_nobody_had_to_take_is_counted_too(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("end", "k")
        assert "0 of 11 decided, 1 more" in screen.lines[0]
        await screen.press("s", "a")
        assert "Not in this run: 11 undecided, 1 skipped." in " ".join(screen.text.split())
        await screen.press("n", "u")
        assert "0 of 11 decided" in screen.lines[0]
        assert "more" not in screen.lines[0]

    played(walk, story)


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (40, 10)], ids=str)
@pytest.mark.long
def test_every_key_can_be_seen_in_a_small_terminal(walk: Any, size: tuple[int, int]) -> None:
    async def story(screen: Screen) -> None:
        await screen.press(*"nnnnnn")
        shown = " ".join(screen.text.split())
        for hint in ("s store", "w workspace", "S store alone", "k skip", "h hold", "n next", "a apply", "? help"):
            assert hint in shown, screen.text
        assert "q quit" in shown
        assert max(map(len, screen.lines)) <= size[0]
        assert "Torn files" in screen.text
        await screen.press("question_mark")
        assert "Escape closes this." in screen.text
        seen = screen.text
        for _ in range(12):
            await screen.press("pagedown")
            seen += screen.text
        assert "u, Backspace" in seen
        assert "undo" in seen
        await screen.press("escape", "a")
        assert "[y] yes" in screen.text
        assert "[n] no" in screen.text

    played(walk, story, size)


def test_the_help_is_not_wrapped_at_80_columns(walk: Any) -> None:
    async def story(screen: Screen) -> None:
        await screen.press("question_mark")
        for line in module("review.dialogs").KEYS.splitlines():
            assert line in screen.text

    played(walk, story)


@pytest.mark.long
def test_quit_changes_nothing_and_asks_only_if_there_are_decisions(walk: Any) -> None:
    async def at_once(screen: Screen) -> None:
        await screen.press("q")

    async def after_decisions(screen: Screen) -> None:
        await screen.press("s", "q")
        assert "Your decisions (1 store) will be lost" in screen.text
        await screen.press("n")
        assert screen.app.decisions.chosen
        await screen.press("ctrl+c", "y")

    for story in (at_once, after_decisions):
        assert played(walk, story).plan is None


def test_without_colors_nothing_depends_on_them(walk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def story(screen: Screen) -> None:
        assert any(line.startswith(">?") for line in screen.lines), "the cursor and the mark are characters"
        await screen.press("s")
        assert any(line.startswith(" =") and line.split("│")[0].rstrip().endswith("store") for line in screen.lines)

    played(walk, story, colored=False)


@pytest.mark.long
def test_the_editor_and_the_difftool_get_copies_of_both_versions(
    walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, editor, git = tmp_path / "seen", tmp_path / "editor", tmp_path / "git"
    editor.write_text(f'#!/bin/sh\ncat "$@" > {seen}\n')
    git.write_text(f'#!/bin/sh\necho "$@" > {seen}\nexit 3\n')
    editor.chmod(0o755)
    git.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def story(screen: Screen) -> None:
        await screen.press("slash", *"letter", "enter", "e")
        assert screen.message == ""
        assert "version 2 is out today" in seen.read_text()
        assert "out on Monday" in seen.read_text()
        await screen.press("t")
        assert screen.message == "git ended with status 3"
        assert seen.read_text().startswith("difftool --no-prompt --no-index ")
        await screen.press("slash", *"of today", "enter", "t")
        assert screen.message == "nothing to compare: only one side has it"
        monkeypatch.setenv("VISUAL", str(tmp_path / "absent"))
        await screen.press("e")
        assert "set EDITOR" in screen.message

    played(walk, story)

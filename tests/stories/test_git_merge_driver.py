"""The merge driver and the text conversion, called by real git: merge, rebase, cherry-pick, stash, several heads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.git_world import OTHER, PARENT, commit, git, place
from tests.support.projects.world import LONG_AGO, SCRIPT, SECOND, World, append, events, set_key, write_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("git") is None, reason="no git")]


@pytest.fixture(autouse=True)
def driven(story: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the merge driver in the story's repository; without the hooks, whose runs make forks of their own."""
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}")
    story.run("--workspace", story.project, "hooks", "install", "--merge-driver")
    git(story.project, "config", "core.hooksPath", "no-hooks")
    commit(story, "merge driver")


def branch(world: World, name: str, count: int, voice: str, start: str = "feature") -> None:
    """Have the parent go on on a branch of its own."""
    git(world.project, "switch", "-qc", name, start)
    append(place(world, PARENT), count, voice, LONG_AGO + 100 * SECOND)
    commit(world, name)


def merged(world: World, *args: str, code: int = 0) -> str:
    done = subprocess.run(["git", *args], cwd=world.project, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


def voices(directory: Path) -> list[str]:
    """Return the texts of the events of a conversation."""
    return [event["content"] for event in json.loads((directory / "events.json").read_bytes())]


def forks(world: World) -> list[list[str]]:
    """Return the events of each conversation in the store that a merge has forked."""
    paths = sorted(world.store.glob("*/metadata.json"))
    titles = {path: str(json.loads(path.read_bytes()).get("title")) for path in paths}
    return [voices(path.parent) for path in paths if titles[path].startswith("[diverged]")]


def test_the_longer_of_two_streams_stays(story: World) -> None:
    branch(story, "short", 2, "g")
    branch(story, "long", 5, "g")
    merged(story, "merge", "-q", "--no-edit", "short")
    assert voices(place(story, PARENT))[-5:] == [f"g{at}" for at in range(5)]
    assert forks(story) == []
    story.reconcile()


@pytest.mark.parametrize("onto", ["older", "newer"])
@pytest.mark.parametrize("how", ["merge", "rebase", "cherry-pick"])
def test_of_two_continuations_the_newer_one_stays_and_the_other_becomes_a_fork(
    story: World, how: str, onto: str
) -> None:
    branch(story, "older", 2, "g")
    branch(story, "newer", 2, "h")
    other = {"older": "newer", "newer": "older"}[onto]
    git(story.project, "switch", "-q", onto)
    arguments = {"merge": ("merge", "-q", "--no-edit", other), "cherry-pick": ("cherry-pick", other)}
    if how == "rebase":
        git(story.project, "switch", "-q", other)
    is_empty = (how, onto) == ("cherry-pick", "newer")  # nothing of the commit stays in the file
    merged(story, *arguments.get(how, ("rebase", "-q", onto)), code=1 if is_empty else 0)
    if is_empty:
        git(story.project, "cherry-pick", "--skip")
    assert voices(place(story, PARENT))[-1] == "h1"
    (fork,) = forks(story)
    assert fork[-2:] == ["g0", "g1"]
    story.reconcile()
    assert len(forks(story)) == 1, "a run finds the fork that the merge has made"


def test_a_rebase_of_two_older_commits_makes_a_fork_of_each(story: World) -> None:
    """git merges commit by commit, and the driver can't know that another one follows."""
    branch(story, "older", 2, "g")
    append(place(story, PARENT), 1, "h", LONG_AGO + 110 * SECOND)
    commit(story, "older goes on")
    branch(story, "newer", 2, "i")
    git(story.project, "switch", "-q", "older")
    merged(story, "rebase", "-q", "newer")
    assert voices(place(story, PARENT))[-1] == "i1"
    assert [fork[-1] for fork in forks(story)] == ["g1", "h0"]


def test_a_merge_that_is_tried_again_makes_no_second_fork(story: World) -> None:
    branch(story, "older", 2, "g")
    branch(story, "newer", 2, "h")
    for _ in range(2):
        merged(story, "merge", "-q", "--no-edit", "--no-commit", "older")
        merged(story, "merge", "--abort")
    assert len(forks(story)) == 1


def test_a_stash_that_went_another_way_becomes_a_fork(story: World) -> None:
    git(story.project, "switch", "-q", "feature")
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "stash", "-q")
    append(place(story, PARENT), 2, "h", LONG_AGO + 100 * SECOND)
    commit(story, "went on")
    merged(story, "stash", "pop", "-q")
    assert voices(place(story, PARENT))[-1] == "h1"
    assert [fork[-1] for fork in forks(story)] == ["g1"]


def test_a_merge_of_three_branches_keeps_all_three(story: World) -> None:
    for name, voice in (("one", "g"), ("two", "h"), ("three", "i")):
        branch(story, name, 2, voice)
    merged(story, "merge", "-q", "--no-edit", "one", "two", code=2)
    git(story.project, "reset", "-q", "--hard")
    for name in ("one", "two"):
        merged(story, "merge", "-q", "--no-edit", name)
    assert voices(place(story, PARENT))[-1] == "i1"
    assert sorted(fork[-1] for fork in forks(story)) == ["g1", "h1"]


def test_a_merge_with_two_bases_makes_no_fork_of_a_base(story: World) -> None:
    branch(story, "one", 2, "g")
    branch(story, "two", 2, "h")
    git(story.project, "branch", "two-before", "two")
    merged(story, "merge", "-q", "--no-edit", "one")
    git(story.project, "switch", "-q", "one")
    merged(story, "merge", "-q", "--no-edit", "two-before")
    append(place(story, PARENT), 1, "j", LONG_AGO + 200 * SECOND)
    commit(story, "one goes on")
    before = forks(story)
    merged(story, "merge", "-q", "--no-edit", "two")
    assert forks(story) == before


def test_an_edit_and_a_continuation_are_united(story: World) -> None:
    git(story.project, "switch", "-qc", "edited", "feature")
    path = place(story, PARENT) / "events.json"
    known = json.loads(path.read_bytes())
    known[1]["content"] = "corrected"
    write_json(path, known, LONG_AGO + 100 * SECOND)
    commit(story, "edited")
    branch(story, "longer", 2, "g")
    merged(story, "merge", "-q", "--no-edit", "edited")
    assert voices(place(story, PARENT))[1] == "corrected"
    assert voices(place(story, PARENT))[-2:] == ["g0", "g1"]
    assert forks(story) == []


def test_metadata_is_merged_key_by_key(story: World) -> None:
    git(story.project, "switch", "-qc", "titled", "feature")
    set_key(place(story, OTHER), "title", "Other title", LONG_AGO)
    set_key(place(story, OTHER), "last_activated_at", "2026-03-03 00:00:00.0", LONG_AGO)
    commit(story, "titled")
    git(story.project, "switch", "-qc", "labelled", "feature")
    set_key(place(story, OTHER), "labels", ["ci"], LONG_AGO)
    set_key(place(story, OTHER), "last_activated_at", "2026-02-02 00:00:00.0", LONG_AGO)
    commit(story, "labelled")
    merged(story, "merge", "-q", "--no-edit", "titled")
    found = json.loads((place(story, OTHER) / "metadata.json").read_bytes())
    assert (found["title"], found["labels"]) == ("Other title", ["ci"])
    assert found["last_activated_at"] == "2026-03-03 00:00:00.0"


def test_one_key_that_both_edited_is_a_conflict_with_two_valid_versions(story: World) -> None:
    for name in ("theirs", "ours"):
        git(story.project, "switch", "-qc", name, "feature")
        set_key(place(story, OTHER), "title", f"Title of {name}", LONG_AGO)
        set_key(place(story, OTHER), name, 1, LONG_AGO)
        commit(story, name)
    said = merged(story, "merge", "-q", "--no-edit", "theirs", code=1)
    assert "both branches edited title" in said
    path = place(story, OTHER) / "metadata.json"
    found = json.loads(path.read_bytes())
    assert (found["title"], found["ours"], found["theirs"]) == ("Title of ours", 1, 1)
    inside = path.relative_to(story.project)
    theirs = json.loads(git(story.project, "show", f":3:{inside}"))
    assert theirs["title"] == "Title of theirs"
    assert json.loads(git(story.project, "show", f":2:{inside}"))["title"] == "Title of ours"


def test_without_a_store_two_continuations_are_left_to_a_person(story: World) -> None:
    branch(story, "older", 2, "g")
    branch(story, "newer", 2, "h")
    store = story.store
    away = store.parent.with_name("away")
    store.parent.rename(away)
    said = merged(story, "merge", "-q", "--no-edit", "older", code=1)
    assert "no fork could be made" in said
    path = place(story, PARENT) / "events.json"
    assert voices(path.parent)[-1] == "h1"
    inside = path.relative_to(story.project)
    assert json.loads(git(story.project, "show", f":3:{inside}"))[-1]["content"] == "g1"


def test_a_broken_version_is_left_to_a_person(story: World) -> None:
    git(story.project, "switch", "-qc", "broken", "feature")
    (place(story, PARENT) / "events.json").write_text("[")
    git(story.project, "commit", "-qam", "broken", "--no-verify")
    git(story.project, "switch", "-q", "feature")
    branch(story, "longer", 2, "g")
    assert "not valid" in merged(story, "merge", "-q", "--no-edit", "broken", code=1)
    assert voices(place(story, PARENT))[-1] == "g1"


def test_the_same_conversation_added_on_two_branches(story: World) -> None:
    git(story.project, "switch", "-q", "feature")
    source = story.store.glob("*9-private").__next__()
    for name, count in (("short", 3), ("long", 5)):
        git(story.project, "switch", "-qc", name, "feature")
        target = story.workspace / "17500000008-new"
        shutil.copytree(source, target)
        write_json(target / "events.json", events(count, "p"), LONG_AGO)
        commit(story, name)
    git(story.project, "switch", "-q", "short")
    merged(story, "merge", "-q", "--no-edit", "long")
    assert len(voices(story.workspace / "17500000008-new")) == 5


def test_git_diff_shows_events_as_text(story: World) -> None:
    append(place(story, PARENT), 1, "g", LONG_AGO + 100 * SECOND)
    shown = git(story.project, "diff")
    assert "+g0" in shown
    assert '"content"' not in shown


def test_textconv_prints_what_it_cannot_read(story: World, tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_bytes(b"<<<<<<< ours\n")
    assert story.run("textconv", path).stdout == "<<<<<<< ours\n"


def test_the_driver_refuses_another_file(story: World) -> None:
    found = story.run("merge-driver", "a", "b", "c", "src/main.py")
    assert found.exit_code == 2
    assert "src/main.py" in found.output


def test_textconv_prints_no_control_character(story: World, tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    event = {"timestamp": "2026-01-01 00:00:00.0", "type": "chat_request", "content": "\x07red\ta"}
    for text, shown in ((json.dumps([event]), "\\x07red\ta\n"), ("\x1b[31mbroken\n", "\\x1b[31mbroken\n")):
        path.write_text(text)
        assert story.run("textconv", path).stdout.endswith(shown)


def test_a_project_below_a_directory_of_the_same_name_has_its_own_store(story: World) -> None:
    """The driver finds the project by the path in the checkout, which may have `conversations` twice."""
    below = story.project / "conversations" / "one"
    below.mkdir(parents=True)
    git(story.project, "mv", ".jp", ".gitattributes", str(below))
    commit(story, "moved")
    moved = World(below, story.run, story.user_data)
    moved.reconcile()
    branch(moved, "older", 2, "g")
    branch(moved, "newer", 2, "h")
    merged(story, "merge", "-q", "--no-edit", "older")
    assert voices(place(moved, PARENT))[-1] == "h1"
    assert [fork[-1] for fork in forks(moved)] == ["g1"]

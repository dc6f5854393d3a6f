"""What `doctor` finds beside the conversations, what it mends, and what it only names."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import Workspace
from reconcile.fs import helper_process
from reconcile.model.snapshot import STREAM, Side
from reconcile.state.database import State
from reconcile.state.vault import Vault, Version
from reconcile.version import __version__
from tests.support.faults.disturbances import hold
from tests.support.library.conversations import locked, say
from tests.support.projects.git_world import git
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import CORPUS, NO_CORPUS, append, copy_tree, events, spread_times, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

NOBODY = 17500000009


def findings(world: World, *args: str, code: int = 4) -> list[dict[str, Any]]:
    before = world.stamps()
    result = world.run("doctor", "--json", "-w", world.project, *args)
    assert result.exit_code == code, result.output
    assert world.stamps() == before, "something was written"
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


def test_where_nothing_is_wrong(world: World) -> None:
    three(world)
    world.reconcile()
    assert findings(world, code=0) == []
    assert world.run("doctor", "-w", world.project).stdout.endswith("\n\nNo problems found.\n")


def test_a_saved_version_that_is_missing_or_cut(world: World) -> None:
    three(world)
    world.reconcile()
    for _ in range(2):
        append(world.workspace / f"{FIRST}-it", 1, "b", time.time_ns())
        world.reconcile()
    first, second = sorted(path for path in (world.state / "vault" / "objects").rglob("*") if path.is_file())
    first.unlink()
    os.truncate(second, 1)
    found = findings(world)
    assert [(each["kind"], each["severity"], each["place"]) for each in found] == [
        ("incomplete-vault", "error", str(first)),
        ("incomplete-vault", "error", str(second)),
    ]
    assert {each["conversation"] for each in found} == {f"jp-c{FIRST}"}
    assert all(each["found"].endswith(":events is missing or cut") for each in found)
    shutil.rmtree(world.state / "vault")
    assert len(findings(world)) == 2


def test_what_an_open_workspace_uses_is_no_leftover(world: World) -> None:
    three(world)
    world.reconcile()
    with Workspace.open(world.project) as workspace:
        with locked(workspace) as lock, lock.as_mut() as mut:
            say(mut, "hello")
        assert [path.name for path in world.store.iterdir() if path.name.startswith(".reconcile-")], (
            "nothing to look at"
        )
        assert findings(world, code=0) == []
    world.reconcile()
    assert findings(world, code=0) == []


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_private_one_that_is_staged_is_named_until_the_printed_command_has_run(world: World) -> None:
    three(world)
    world.reconcile()
    git(world.project, "init", "-q")
    git(world.project, "add", "-A")
    world.reconcile("local", str(SECOND_ID))
    (found,) = findings(world)
    assert (found["kind"], found["conversation"]) == ("private-staged", f"jp-c{SECOND_ID}")
    (command,) = found["mend"]
    git(world.project, *shlex.split(command)[1:])
    assert findings(world, code=0) == []


@pytest.mark.parametrize("has_helper", [False, True])
def test_remnants_are_named_and_left_alone(world: World, monkeypatch: pytest.MonkeyPatch, *, has_helper: bool) -> None:
    # The tests' own process has more threads, none of which holds anything.
    monkeypatch.setattr(helper_process, "is_possible", lambda: has_helper)
    three(world)
    world.reconcile()
    (world.workspace / f"{FIRST}-it" / "events.json.tmp").write_text("[")
    (world.store / ".reconcile-of-another-state").mkdir()
    locks = world.silo / "locks"
    locks.mkdir(exist_ok=True)
    for number in (FIRST, NOBODY, NOBODY + 1):
        (locks / f"jp-c{number}.lock").touch()
    with hold(locks / f"jp-c{NOBODY + 1}.lock"):
        found = {each["place"]: each["kind"] for each in findings(world)}
    assert found == {
        "store:.reconcile-of-another-state": "leftover",
        f"workspace:{FIRST}-it/events.json.tmp": "leftover",
        str(locks / f"jp-c{NOBODY}.lock"): "orphaned-lock",
    }


def test_an_empty_directory_is_named_by_status_too(world: World) -> None:
    three(world)
    world.reconcile()
    (world.workspace / f"{NOBODY}-empty").mkdir()
    (finding,) = findings(world)
    assert finding["kind"] == "empty-directory"
    (told,) = (each for each in world.reconcile("status").stdout.splitlines() if f"{NOBODY}-empty" in each)
    assert told.strip() == f"{finding['place']}: {finding['found']}"
    shown = world.reconcile("status", str(NOBODY)).stdout
    assert f"empty directory: {finding['place']}: {finding['found']}" in shown


@pytest.mark.parametrize("content", ["", "{"])
def test_a_broken_file_in_the_store_alone_is_named_by_every_command(world: World, content: str) -> None:
    three(world)
    world.reconcile()
    path = world.store / f"{NOBODY}-it"
    write_conversation(path, "It", events(2))
    world.reconcile()
    (path / "events.json").write_text(content)
    place = f"store:{NOBODY}-it/events.json"
    for _ in range(2):  # the second run reads it from the index
        run = world.reconcile(code=4)
        assert place in run.stdout
        assert f"reconcile doctor --quarantine jp-c{NOBODY}" in run.stdout, "blocked, as status calls it"
    (finding,) = findings(world)
    assert (finding["kind"], finding["place"], finding["mend"]) == (
        "invalid",
        place,
        [f"reconcile doctor --quarantine jp-c{NOBODY}"],
    )
    status = world.reconcile("status").stdout
    assert place in status
    assert "reconcile doctor" in status
    world.reconcile("doctor", "--quarantine", f"jp-c{NOBODY}", "--yes")
    assert findings(world, code=0) == []
    assert (world.store / ".trash" / f"{NOBODY}-it" / "events.json").read_text() == content


def test_status_of_what_is_on_neither_side_any_more(world: World) -> None:
    three(world)
    world.reconcile()
    for side in (world.store, world.workspace):
        shutil.rmtree(side / f"{FIRST}-it")
    result = world.run("status", str(FIRST), "-w", world.project)
    assert result.exit_code == 2, result.output
    assert f"jp-c{FIRST} is on neither side any more" in result.stderr


def test_the_locks_that_a_removal_of_ours_leaves_are_no_finding(world: World) -> None:
    three(world)
    world.reconcile()
    world.reconcile("rm", str(FIRST), "--yes")
    assert (world.silo / "locks" / f"jp-c{FIRST}.lock").exists(), "a lock file is JP's, and never unlinked by us"
    assert findings(world, code=0) == []


def test_a_link_in_the_place_of_a_conversation_is_named_with_the_way_out(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    for side, number in ((world.workspace, FIRST), (world.store, SECOND_ID)):
        shutil.move(side / f"{number}-it", tmp_path)
        (side / f"{number}-it").symlink_to(tmp_path / f"{number}-it")
    held = world.reconcile(code=4, settled=False).stdout
    assert f"workspace:{FIRST}-it: a symbolic link replaced the directory; " in held
    assert f"store:{SECOND_ID}-it: a symbolic link replaced the directory; " in held
    found = findings(world)
    assert {(each["kind"], each["conversation"]) for each in found} == {
        ("unreadable", f"jp-c{FIRST}"),
        ("unreadable", f"jp-c{SECOND_ID}"),
    }
    assert found[0]["mend"] == ["put the directory itself there, or remove the link"]
    world.reconcile("project", str(FIRST), code=4, settled=False)


def test_status_says_where_the_quarantine_is(world: World) -> None:
    three(world)
    world.reconcile()
    (world.workspace / f"{FIRST}-it" / "metadata.json").write_text("<<<<<<< HEAD\n")
    world.reconcile("doctor", "--quarantine", str(FIRST))
    for _ in range(2):
        shown = world.run("status", "-w", world.project).stdout
        assert f"moved to workspace:.trash/{FIRST}-it; restore it: reconcile project jp-c{FIRST}" in shown
        world.reconcile()
    world.reconcile("project", str(FIRST))
    assert "removed" not in world.run("status", "-w", world.project).stdout


def test_repair_does_what_is_safe_and_a_quarantine_what_is_named(world: World) -> None:
    three(world)
    world.reconcile()
    shutil.copytree(world.workspace / f"{FIRST}-it", world.workspace / f"{FIRST}-too")
    broken = world.workspace / f"{SECOND_ID}-it" / "metadata.json"
    broken.write_text("<<<<<<< HEAD\n")
    assert [each["kind"] for each in findings(world)] == ["merge-markers", "duplicate", "name-out-of-step"][:2]
    text = world.run("doctor", "-w", world.project).stdout
    assert "1 of them is fixed by" in text
    assert f"reconcile doctor --quarantine jp-c{SECOND_ID}" in text
    repaired = world.run("doctor", "--repair", "-w", world.project)
    assert (repaired.exit_code, "1 removed from the workspace; 1 blocked" in repaired.stdout) == (4, True)
    assert [each["kind"] for each in findings(world)] == ["merge-markers"]
    assert world.run("doctor", "--repair", "--quarantine", str(FIRST), "-w", world.project).exit_code == 2
    world.reconcile("doctor", "--quarantine", str(SECOND_ID))
    note = world.workspace / ".trash" / f"{SECOND_ID}-it" / "TRASHED.md"
    assert "git conflict marker" in note.read_text()
    assert findings(world, code=0) == []
    world.reconcile("undo", settled=False)
    assert broken.read_text() == "<<<<<<< HEAD\n"


def test_what_no_run_has_kept_is_named_by_its_digest(world: World) -> None:
    three(world)
    world.reconcile()
    with State.open(str(world.state)) as state:
        kept = Vault(str(world.state)).put_bytes(b"written by a program")
        version = Version(
            kept.digest, kept.xxh3, kept.size, f"jp-c{SECOND_ID}", STREAM, "events.json", Side.STORE, "x", 1, None, ""
        )
        state.versions.add([version])
    listed = world.run("vault", "-w", world.project).stdout
    assert "None" not in listed
    line = next(line for line in listed.splitlines() if "(of no run)" in line)
    shown = world.run("show", line.split()[0], "--raw", "-w", world.project)
    assert (shown.exit_code, shown.stdout) == (0, "written by a program"), shown.output


def test_what_is_normal_is_a_note_and_no_trouble(world: World) -> None:
    """Its parent is archived or nowhere, a title was changed, a file is somebody else's: JP and git do such things."""
    three(world, parent=FIRST)
    write_conversation(world.workspace / f"{NOBODY}-it", "It", events(2), parent=NOBODY - 1)
    world.reconcile()
    (world.store / ".archive").mkdir()
    (world.store / f"{FIRST}-it").rename(world.store / ".archive" / f"{FIRST}-it")
    (world.workspace / "README.md").write_text("about them")
    world.reconcile()
    found = findings(world, code=0)
    assert {(each["kind"], each["severity"]) for each in found} == {("missing-parent", "note"), ("foreign", "note")}
    assert {each["conversation"] for each in found} == {f"jp-c{SECOND_ID}", f"jp-c{NOBODY}", None}
    shown = world.run("doctor", "-w", world.project).stdout
    assert "missing-parent (2 notes)" in shown
    assert shown.endswith("No problems found; 3 notes.\n")
    (world.workspace / f"{THIRD}-it" / "metadata.json").write_text("<<<<<<< HEAD\n")
    assert len(findings(world)) == 4
    assert world.run("doctor", "-w", world.project).stdout.endswith("1 error, 3 notes.\n")


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_real_conversations_are_in_order(world: World) -> None:
    copy_tree(CORPUS / "head" / ".jp" / "conversations", world.workspace)
    spread_times(world.workspace)
    world.reconcile()
    assert [each for each in findings(world, code=0) if each["severity"] != "note"] == []


def test_it_counts_the_checkouts_as_the_list_of_them_does(world: World) -> None:
    """Several earlier directories of one path are one line there."""
    write_conversation(world.workspace / f"{FIRST}-it", "A", events(2))
    world.reconcile()
    for _ in range(3):
        shutil.move(world.workspace.parent, world.project.parent / f"kept-{_}")
        world.run("recover", "-w", world.project, "--yes")
    listed = world.run("checkouts", "-w", world.project).stdout.splitlines()[1:]
    printed = world.run("doctor", "-w", world.project).stdout
    assert len(listed) == 2
    assert "4 runs, 2 checkouts\n" in printed


def test_it_prints_first_what_it_checked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write_conversation(world.workspace / f"{FIRST}-it", "A secret title", events(2))
    monkeypatch.setenv("HOME", str(world.project.parent))
    with hold(world.project / ".jp" / "locks" / f"jp-c{FIRST}.lock"):
        printed = world.run("doctor", "-w", world.project).stdout.split("\n\n")[0]
        checked = json.loads(world.run("doctor", "--json", "-w", world.project).stdout)["checked"]
    lines = dict(line.split(maxsplit=1) for line in printed.splitlines())
    assert list(lines) == [
        "reconcile", "python", "system", "format", "workspace", "store", "state", "settings", "locks"
    ]  # fmt: skip
    assert lines["reconcile"] == __version__
    assert lines["format"] == "jp (nested)"
    assert lines["workspace"] == "~/project/.jp: 1 conversation"
    assert lines["store"].endswith(": 0 conversations")
    assert lines["locks"] == "1 held by other processes"
    assert "secret" not in printed
    assert (checked["in_workspace"], checked["in_store"], checked["locked"]) == (1, 0, 1)

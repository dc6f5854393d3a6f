"""The hooks of a repository: installed beside those of others, called by real git, and removed without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.planted import KINDS
from tests.support.projects.git_hooks import hooks, refused, settle, tree, tried, with_secret
from tests.support.projects.git_world import CHILD, OTHER, PARENT, commit, git, place
from tests.support.projects.watcher import Watching, until
from tests.support.projects.world import (
    LONG_AGO,
    SCRIPT,
    SECOND,
    World,
    append,
    command,
    events,
    files,
    write_conversation,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("git") is None, reason="no git")]

NAMES = ("pre-commit", "post-checkout", "post-merge", "post-rewrite")


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git's hooks find the command, and no other one."""
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}")


def test_removal_leaves_the_repository_byte_for_byte(story: World) -> None:
    before = tree(story.project)
    optional = "Optional: reconcile hooks install --merge-driver"
    assert optional in hooks(story, "install")
    for _ in range(2):
        installed = hooks(story, "install", "--merge-driver")
        assert optional not in installed
        assert installed.count("installed") == 6
    assert tree(story.project) != before
    hooks(story, "remove")
    assert tree(story.project) == before
    status = hooks(story, "status")
    assert (status.count("not installed"), optional in status) == (6, False)
    hooks(story, "remove")


def test_a_dry_run_names_the_files_and_writes_none(story: World) -> None:
    before = tree(story.project)
    assert hooks(story, "install", "--dry-run").count("to install") == 4
    assert hooks(story, "install", "--dry-run", "--merge-driver").count("to install") == 6
    assert "Nothing to do" in hooks(story, "remove", "--dry-run")
    assert tree(story.project) == before
    hooks(story, "install")
    installed = tree(story.project)
    assert "Nothing to do" in hooks(story, "install", "--dry-run")
    document = json.loads(hooks(story, "remove", "--dry-run", "--json"))
    assert (document["dry_run"], [part["name"] for part in document["parts"]]) == (True, list(NAMES))
    assert tree(story.project) == installed


USERS = {
    "pre-commit": "#!/bin/sh\necho mine >> ran\n",
    "post-checkout": "#!/usr/bin/env bash\necho mine >> ran\nexit 0",
    "post-merge": "#!/usr/bin/env python3\nopen('ran', 'a').write('mine\\n')\n",
    "post-rewrite": "#!/bin/sh",
}


def test_a_hook_of_the_users_stays_and_runs(story: World) -> None:
    directory = story.project / ".git" / "hooks"
    for name, content in USERS.items():
        (directory / name).write_text(content)
        (directory / name).chmod(0o755)
    (directory / "post-merge").rename(story.project / "merge-hook")
    (directory / "post-merge").symlink_to("../../merge-hook")
    (story.project / ".gitattributes").write_text("*.png binary")
    commit(story, "hooks")
    (story.project / "ran").unlink()
    before = tree(story.project)
    hooks(story, "install", "--merge-driver")
    (story.project / "file").write_text("a")
    commit(story, "with hooks")
    assert (story.project / "ran").read_text() == "mine\n"
    git(story.project, "switch", "-q", "-c", "other")
    assert (story.project / "ran").read_text() == "mine\n" * 2
    git(story.project, "commit", "-q", "--allow-empty", "-m", "other")
    git(story.project, "switch", "-q", "feature")
    git(story.project, "merge", "-q", "other")
    assert (story.project / "ran").read_text().count("mine") >= 5
    hooks(story, "remove")
    after = tree(story.project)
    assert {name: after[name] for name in before if "hooks" in name or "attributes" in name} == {
        name: what for name, what in before.items() if "hooks" in name or "attributes" in name
    }
    assert not [name for name in after if "before-reconcile" in name]


def test_the_attributes_keep_their_mode(story: World) -> None:
    path = story.project / ".gitattributes"
    path.write_text("*.png binary\n")
    path.chmod(0o640)
    for action in (("install", "--merge-driver"), ("remove",)):
        hooks(story, *action)
        assert path.stat().st_mode & 0o777 == 0o640


def test_a_hook_that_is_not_executable_is_not_made_so(story: World) -> None:
    path = story.project / ".git" / "hooks" / "pre-commit"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o644)
    before = tree(story.project)
    hooks(story, "install")
    git(story.project, "commit", "-q", "--allow-empty", "-m", "made")
    hooks(story, "remove")
    assert {name: what for name, what in tree(story.project).items() if "hooks" in name} == {
        name: what for name, what in before.items() if "hooks" in name
    }


def test_lines_that_a_user_adds_to_our_hook_stay(story: World) -> None:
    hooks(story, "install")
    path = story.project / ".git" / "hooks" / "pre-commit"
    path.write_text(path.read_text() + "echo more\n")
    hooks(story, "install")
    hooks(story, "remove")
    assert path.read_text() == "#!/bin/sh\necho more\n"


def test_hooks_of_all_repositories_are_refused(story: World, tmp_path: Path) -> None:
    git(story.project, "config", "core.hooksPath", str(tmp_path / "shared"))
    said = hooks(story, "install", code=1)
    assert "core.hooksPath" in said
    assert not (tmp_path / "shared").exists()


def test_hooks_in_the_checkout_name_no_directory_of_this_machine(story: World) -> None:
    git(story.project, "config", "core.hooksPath", ".githooks")
    hooks(story, "install")
    for name in NAMES:
        assert str(SCRIPT.parent) not in (story.project / ".githooks" / name).read_text()
    hooks(story, "remove")
    assert not files(story.project / ".githooks")


def test_a_link_with_the_name_of_a_temporary_file_is_not_followed(story: World, tmp_path: Path) -> None:
    """Others can commit such a link, to a file of the user's."""
    victim = tmp_path / "victim"
    victim.write_text("of the user")
    directory = story.project / "shared"
    directory.mkdir()
    attributes, hook = story.project / ".gitattributes", directory / "pre-commit"
    attributes.write_text("*.png binary\n")
    hook.write_text("#!/bin/sh\necho mine\n")
    hook.chmod(0o750)
    git(story.project, "config", "core.hooksPath", "shared")
    for path in (attributes, hook):
        path.with_name(f"{path.name}.reconcile.tmp").symlink_to(victim)
    before = tree(story.project)
    for words in (("install", "--merge-driver"), ("remove",)):
        hooks(story, *words)
        assert (victim.read_text(), victim.stat().st_mode & 0o111) == ("of the user", 0)
        assert [path.is_symlink() for path in (attributes, hook)] == [False, False]
        assert (attributes.stat().st_mode & 0o777, hook.stat().st_mode & 0o777) == (0o644, 0o750)
    assert tree(story.project) == before


def test_without_reconcile_every_hook_is_quiet(story: World, monkeypatch: pytest.MonkeyPatch) -> None:
    git(story.project, "config", "core.hooksPath", ".githooks")
    hooks(story, "install", "--merge-driver")
    paths = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(path for path in paths if not os.path.exists(f"{path}/reconcile")))
    for arguments in (("add", "-A"), ("commit", "-qm", "one"), ("switch", "-qc", "new"), ("merge", "-q", "feature")):
        assert tried(story, *arguments) == (0, "")
    git(story.project, "config", "core.hooksPath", "")


def test_a_switch_syncs_at_once(story: World) -> None:
    hooks(story, "install")
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "commit", "-qam", "went on")
    assert tried(story, "switch", "-qc", "next")[0] == 0
    until(lambda: story.event_count(PARENT) == 9, "at once, but for a loaded machine")
    settle(story)


def test_a_hook_removes_no_more_than_a_plain_run(story: World) -> None:
    """Nobody has agreed to the removal of many directories, and a hook can't ask."""
    many = [17500000101 + 10 * number for number in range(4)]
    for number in many:
        write_conversation(story.workspace / f"{number}-talk", "Talk", events(1, "t"))
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    commit(story, "talks")
    story.reconcile()
    hooks(story, "install")
    for number in many:
        shutil.rmtree(story.store / f"{number}-talk")
    append(place(story, PARENT), 2, "h", LONG_AGO + 200 * SECOND)
    git(story.project, "commit", "-qam", "went on")
    code, said = tried(story, "switch", "-qc", "next")
    assert code == 0
    until(lambda: story.event_count(PARENT) == 11, "at once, but for a loaded machine")
    assert "4 of 7 directories would be removed" in story.run("--workspace", story.project, "--dry-run").output
    assert all((story.workspace / f"{number}-talk").is_dir() for number in many)
    assert "some conversations need you" in said or "in the background" in said


def test_a_checkout_of_files_is_no_switch(story: World) -> None:
    """The pre-commit framework puts unstaged changes aside with one; a run would take that for an edit."""
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    story.reconcile()
    hooks(story, "install")
    before = story.stamps()
    assert tried(story, "checkout", "--", ".")[0] == 0
    after = story.stamps()
    assert {path for path in before if before[path] != after[path]} <= {
        str(path) for path in paths(place(story, PARENT))
    }


def paths(directory: Path) -> list[Path]:
    return [directory, *files(directory)]


def test_a_secret_that_is_allowed_is_committed(story: World) -> None:
    hooks(story, "install")
    secret = next(iter(KINDS.values()))(random.Random(1))
    path = place(story, PARENT) / "events.json"
    write_json(path, [*json.loads(path.read_bytes()), events(1, "g")[0] | {"content": f"key: {secret}"}], LONG_AGO)
    refused(story, "a secret")
    assert story.run("--workspace", story.project, "resolve", str(PARENT), "--allow-secrets").exit_code == 0
    assert tried(story, "commit", "-qm", "allowed") == (0, "")


def test_a_merge_and_a_rebase_sync_in_the_background(story: World) -> None:
    hooks(story, "install")
    for name, number, voice in (("one", PARENT, "g"), ("two", OTHER, "h")):
        git(story.project, "switch", "-qc", name, "feature")
        append(place(story, number), 2, voice, LONG_AGO + 100 * SECOND)
        git(story.project, "commit", "-qam", name)
    for how in (
        ("rebase", "-q", "one"),
        ("merge", "-q", "--no-edit", "--no-ff", "one"),
        ("commit", "--amend", "-qm", "x"),
    ):
        code, _ = tried(story, *how)
        assert code == 0
    until(lambda: story.event_count(PARENT) == 9, "in the background")
    settle(story)


def test_a_run_that_takes_long_goes_on_in_the_background(story: World) -> None:
    hooks(story, "install")
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "commit", "-qam", "went on")
    holder = subprocess.Popen(
        [str(SCRIPT.parent / "python"), "-c", HOLD, str(story.state)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    holder.stdout.readline()
    started = time.monotonic()
    code, said = tried(story, "switch", "-qc", "next")
    assert (code, said.count("in the background")) == (0, 1)
    assert time.monotonic() - started < 5
    assert story.event_count(PARENT) == 7
    holder.stdin.close()
    holder.stdout.close()
    holder.wait()
    until(lambda: story.event_count(PARENT) == 9, "in the background")
    settle(story)


HOLD = """
import sys
from reconcile.fs.locks import run_lock
with run_lock(sys.argv[1], command="a test"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_checkout_without_conversations_is_left_alone(story: World, tmp_path: Path) -> None:
    hooks(story, "install")
    git(story.project, "switch", "-q", "--orphan", "empty")
    assert tried(story, "commit", "-q", "--allow-empty", "-m", "empty") == (0, "")
    assert tried(story, "worktree", "add", "-q", str(tmp_path / "beside"), "empty")[0] in (0, 128)


def test_the_hooks_of_a_worktree_are_those_of_its_repository(story: World, tmp_path: Path) -> None:
    hooks(story, "install", "--merge-driver")
    commit(story, "attributes")
    git(story.project, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    beside = World(tmp_path / "beside", story.run, story.user_data)
    assert hooks(beside, "status").count("not installed") == 0
    append(place(beside, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    assert tried(beside, "commit", "-qam", "went on")[0] == 0
    assert tried(beside, "switch", "-qc", "again")[0] == 0
    until(lambda: story.event_count(PARENT) == 9, "at once, but for a loaded machine")


def test_a_private_conversation_is_not_committed(story: World) -> None:
    hooks(story, "install")
    directory = place(story, OTHER)
    kept = shutil.copytree(directory, story.project / "kept")
    story.reconcile("local", str(OTHER))
    commit(story, "without it")
    shutil.move(kept, directory)
    append(directory, 1, "g", LONG_AGO + 100 * SECOND)
    refused(story, "is private", f"reconcile project jp-c{OTHER}", "git rm -r --cached")


def test_what_is_deep_in_a_private_conversation_is_not_committed(story: World) -> None:
    """Each left with the one around it, and only the outermost one was named."""
    deep = 17500000055
    inner = place(story, CHILD) / "conversations" / f"{deep}-deep"
    write_conversation(inner, "Deep", events(2, "d"), parent=CHILD)
    commit(story, "deep")
    story.reconcile()
    hooks(story, "install")
    story.reconcile("local", str(PARENT))
    named = {
        each["conversation"]
        for each in json.loads(story.run("doctor", "--json", "-w", story.project).stdout)["findings"]
        if each["kind"] == "private-in-git"
    }
    assert named == {f"jp-c{number}" for number in (PARENT, CHILD, deep)}
    git(story.project, "checkout", "HEAD", "--", ".jp")
    append(inner, 1, "g", LONG_AGO + 100 * SECOND)
    refused(story, f"jp-c{deep} is private", f"reconcile project jp-c{deep}")


@pytest.mark.parametrize("inside", ["notes", "2024-notes", "2024-notes/1-a"])
def test_a_file_beside_a_private_conversation_is_not_committed(story: World, inside: str) -> None:
    """The name of a directory of such files may look like that of a conversation."""
    hooks(story, "install")
    story.reconcile("local", str(OTHER))
    commit(story, "without it")
    directory = story.project / ".jp" / "conversations" / f"{OTHER}-other" / inside
    directory.mkdir(parents=True)
    (directory / "plan.md").write_text("a private plan\n")
    refused(story, f"jp-c{OTHER} is private", f"reconcile project jp-c{OTHER}", "git rm -r --cached")


def test_merge_markers_are_not_committed(story: World) -> None:
    hooks(story, "install")
    (place(story, PARENT) / "metadata.json").write_text("<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n")
    refused(story, f"{PARENT}-parent/metadata.json", "git restore --staged")


def test_a_half_written_conversation_is_not_committed(story: World) -> None:
    hooks(story, "install")
    write_json(story.workspace / "17500000008-new" / "metadata.json", {"last_activated_at": "2026-01-01 00:00:00.0"}, 0)
    refused(story, "incomplete: events.json not staged")


def test_half_a_conversation_is_not_removed_by_a_commit(story: World) -> None:
    hooks(story, "install")
    (place(story, OTHER) / "events.json").unlink()
    refused(story, "incomplete: events.json not staged")


def test_many_conversations_are_checked_at_once(story: World) -> None:
    hooks(story, "install")
    for number in range(60):
        (story.workspace / f"{17510000000 + number}-new").mkdir()
        write_json(story.workspace / f"{17510000000 + number}-new" / "metadata.json", {}, LONG_AGO)
    git(story.project, "add", "-A")
    code, said = tried(story, "commit", "-qm", "many")
    assert (code, said.count("is incomplete")) == (1, 60)


def test_a_conversation_can_be_removed_and_partly_changed(story: World) -> None:
    hooks(story, "install")
    shutil.rmtree(place(story, CHILD))
    append(place(story, PARENT), 1, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "add", "-A")
    assert tried(story, "commit", "-qm", "made") == (0, "")


def test_a_secret_is_not_committed_and_not_printed(story: World) -> None:
    hooks(story, "install")
    secret = next(iter(KINDS.values()))(random.Random(1))
    path = place(story, PARENT) / "events.json"
    write_json(path, [*json.loads(path.read_bytes()), events(1, "g")[0] | {"content": f"key: {secret}"}], LONG_AGO)
    refused(story, "a secret", "--no-verify")
    _, said = tried(story, "commit", "-qm", "again")
    assert secret not in said


@pytest.mark.parametrize("name", ["notes.txt", "no id/notes.bin", ".hidden/notes", ".trash/notes"])
@pytest.mark.parametrize("form", ["text", "binary", "UTF-16"])
def test_a_secret_in_a_file_of_no_conversation_is_not_committed(story: World, name: str, form: str) -> None:
    """A run leaves such a file alone, but git commits it with the conversations."""
    hooks(story, "install")
    secret = next(iter(KINDS.values()))(random.Random(1))
    content = {
        "text": f"key: {secret}\n".encode(),
        "binary": b"\x00\xff\xfe\x80 " + secret.encode() + b" \x00\xc3",
        "UTF-16": f"key: {secret}\n".encode("utf-16"),
    }
    path = story.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content[form])
    refused(story, f".jp/conversations/{name}: a secret: ", "git restore --staged -- ", "--no-verify")
    _, said = tried(story, "commit", "-qm", "again")
    assert secret not in said
    path.write_bytes(content[form].replace(b"A", b"."))
    git(story.project, "add", "-A")
    assert tried(story, "commit", "-qm", "none") == (0, "")


def test_a_commit_of_named_files_is_checked_as_git_makes_it(story: World) -> None:
    """`git commit FILE` has an index of its own: what is staged beside it is not in the commit."""
    hooks(story, "install")
    write_json(story.workspace / "17500000008-new" / "metadata.json", {"last_activated_at": "2026-01-01 00:00:00.0"}, 0)
    git(story.project, "add", "-A")
    (story.project / "README").write_text("a")
    git(story.project, "add", "README")
    assert tried(story, "commit", "-qm", "one file", "README") == (0, "")
    append(place(story, PARENT), 1, "g", LONG_AGO)
    path = place(story, PARENT) / "events.json"
    path.write_text("[")
    assert tried(story, "commit", "-qm", "broken", str(path.relative_to(story.project)))[0] == 1


def test_the_first_commit_of_a_repository_is_checked(world: World) -> None:
    (world.workspace / "17500000008-new").mkdir(parents=True)
    (world.workspace / "17500000008-new" / "events.json").write_text("[")
    git(world.project, "init", "-q")
    hooks(world, "install")
    git(world.project, "add", "-A")
    code, said = tried(world, "commit", "-qm", "first")
    assert code == 1
    assert "metadata.json not staged" in said


def test_watch_and_hooks_do_the_work_once(story: World) -> None:
    hooks(story, "install")
    with Watching(story):
        for at, name in enumerate(("one", "two", "three")):
            append(place(story, PARENT), 2, "ghi"[at], LONG_AGO + (100 + at) * SECOND)
            assert tried(story, "commit", "-qam", name) == (0, "")
            assert tried(story, "switch", "-qc", name)[0] == 0
            until(lambda: story.event_count(PARENT) == 9 + 2 * at, "the events are in the store")  # noqa: B023
    settle(story)
    runs = json.loads(story.run("--workspace", story.project, "log", "--json").stdout)["runs"]
    steps = [
        step
        for run in runs
        for step in json.loads(story.run("--workspace", story.project, "log", run["id"], "--json").stdout)["runs"][0][
            "steps"
        ]
    ]
    copies = [step for step in steps if step["kind"] == "copy" and step["unit"] == "stream"]
    assert len([step for step in copies if step["conversation"] == f"jp-c{PARENT}"]) == 1 + 3


def test_install_needs_a_repository(world: World) -> None:
    assert "git" in hooks(world, "install", code=1)


def test_wrong_words(story: World) -> None:
    assert "--merge-driver" in hooks(story, "status", "--merge-driver", code=2)
    assert "more" in hooks(story, "status", "more", code=2)
    assert "pre-commit" in hooks(story, "run", "pre-push", code=2)


def test_status_as_json(story: World) -> None:
    hooks(story, "install")
    found = json.loads(hooks(story, "status", "--json"))
    assert [part["name"] for part in found["parts"]] == [*NAMES, "attributes", "merge driver"]


def test_a_hook_that_is_called_without_arguments(story: World) -> None:
    done = subprocess.run(command("-w", story.project, "hooks", "run", "post-checkout"), check=False)
    assert done.returncode == 0


def two_projects(story: World) -> tuple[World, Path]:
    """Move the project into a directory of its repository, beside another one; return it and the top."""
    top = story.project
    for name, id_ in (("one", None), ("two", "zz9zz")):
        shutil.copytree(top / ".jp", top / name / ".jp")
        if id_ is not None:
            (top / name / ".jp" / ".id").write_text(f"{id_}\n")
    git(top, "rm", "-rq", ".jp")
    shutil.rmtree(top / ".jp", ignore_errors=True)
    commit(story, "two projects")
    return World(top / "one", story.run, story.user_data), top


@pytest.mark.parametrize("name", ["one", "two"])
@pytest.mark.parametrize("inside", [True, False])
def test_projects_below_the_top_are_checked(story: World, name: str, inside: bool) -> None:
    one, top = two_projects(story)
    hooks(one, "install")
    with_secret(place(World(top / name, story.run, story.user_data), PARENT) / "events.json")
    git(top, "add", "-A")
    done = subprocess.run(
        ["git", "commit", "-qm", "x"], cwd=top / name if inside else top, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{name}/.jp/conversations/{PARENT}-parent/events.json: a secret" in done.stderr
    assert f"reconcile --workspace {name} resolve jp-c{PARENT} --allow-secrets" in done.stderr


def test_projects_below_the_top_are_synced(story: World) -> None:
    one, top = two_projects(story)
    hooks(one, "install")
    append(place(one, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    git(top, "commit", "-qam", "went on")
    git(top, "switch", "-qc", "next")
    until(lambda: one.event_count(PARENT) == 9, "at once, but for a loaded machine")
    until(lambda: len(list((story.user_data / "workspace").glob("*-zz9zz"))) == 1, "the other one has a store")
    settle(one)


def test_a_private_conversation_of_a_project_below_the_top_is_not_committed(story: World) -> None:
    one, top = two_projects(story)
    hooks(one, "install")
    one.reconcile()
    directory = place(one, OTHER)
    kept = shutil.copytree(directory, top / "kept")
    one.reconcile("local", str(OTHER))
    commit(one, "without it")
    shutil.move(kept, one.workspace / "foo" / directory.name)
    refused(one, f"one/.jp/conversations/foo/{directory.name}: jp-c{OTHER} is private")


def test_conversations_behind_a_link_are_checked(story: World) -> None:
    hooks(story, "install")
    directory = place(story, OTHER)
    kept = shutil.copytree(directory, story.project.parent / "kept")
    story.reconcile("local", str(OTHER))
    commit(story, "without it")
    shutil.move(story.workspace, story.project / "chats")
    story.workspace.symlink_to("../chats")
    shutil.move(kept, story.project / "chats" / directory.name)
    with_secret(story.project / "chats" / f"{PARENT}-parent" / "events.json")
    refused(story, f"chats/{directory.name}: jp-c{OTHER} is private", "chats/17500000001-parent/events.json: a secret")


def test_a_commit_of_thousands_of_changes_is_checked(story: World) -> None:
    hooks(story, "install")
    for number in range(4000):
        directory = story.workspace / f"{17600000000 + number}-many"
        directory.mkdir()
        (directory / "metadata.json").write_text("{}")
        (directory / "events.json").write_text("[]")
    git(story.project, "add", "-A")
    git(story.project, "commit", "-qnm", "many")
    for path in story.workspace.glob("176*/metadata.json"):
        path.write_text('{"title": "new"}')
    with_secret(story.workspace / "17600000000-many" / "events.json")
    refused(story, "17600000000-many/events.json: a secret")


def test_without_an_id_secrets_are_checked(story: World) -> None:
    hooks(story, "install")
    (story.project / ".jp" / ".id").unlink()
    with_secret(place(story, PARENT) / "events.json")
    refused(story, "a secret")


def test_without_a_state_secrets_are_checked(story: World) -> None:
    hooks(story, "install")
    shutil.rmtree(story.state)
    path = place(story, PARENT) / "events.json"
    before = path.read_bytes()
    with_secret(path)
    refused(story, "a secret", "nothing is known here about private conversations")
    path.write_bytes(before)
    append(path.parent, 1, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "add", "-A")
    code, said = tried(story, "commit", "-qm", "made")
    assert (code, said.count("\n")) == (0, 1)


@pytest.mark.parametrize("name", ["state.sqlite", "local.jsonl"])
def test_a_damaged_state_refuses_a_commit_of_conversations(story: World, name: str) -> None:
    hooks(story, "install")
    for path in story.state.glob("state.sqlite-*"):
        path.unlink()
    (story.state / name).write_text("garbage")
    (story.project / "README").write_text("a")
    git(story.project, "add", "README")
    assert tried(story, "commit", "-qm", "no conversation") == (0, "")
    append(place(story, PARENT), 1, "g", LONG_AGO + 100 * SECOND)
    refused(story, "the commit could not be checked", name, "git commit --no-verify")


def test_a_damaged_list_of_allowed_secrets_refuses_a_secret(story: World) -> None:
    hooks(story, "install")
    (story.state / "allowed-secrets.jsonl").write_text("garbage\n")
    with_secret(place(story, PARENT) / "events.json")
    refused(story, "the commit could not be checked", "allowed-secrets.jsonl")


def test_a_check_that_breaks_refuses(story: World) -> None:
    hooks(story, "install")
    append(place(story, PARENT), 1, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "add", "-A")
    broken = story.project.parent / "bin"
    broken.mkdir()
    (broken / "reconcile").write_text("#!/bin/sh\nexit 1\n")
    (broken / "reconcile").chmod(0o755)
    done = subprocess.run(
        ["git", "commit", "-qm", "x"],
        cwd=story.project,
        env={**os.environ, "PATH": f"{broken}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "could not be checked" in done.stderr
    assert "git commit --no-verify" in done.stderr


def test_a_damaged_block_is_shown_and_repaired(story: World) -> None:
    directory = story.project / ".git" / "hooks"
    (directory / "pre-commit").write_text("#!/bin/sh\necho mine\n")
    (directory / "pre-commit").chmod(0o755)
    hooks(story, "install")
    whole = {name: (directory / name).read_bytes() for name in NAMES}
    for name in NAMES[:3]:
        path = directory / name
        path.write_text(path.read_text().replace("# reconcile: end\n", ""))
    path = directory / NAMES[3]
    path.write_bytes(whole[NAMES[3]] + whole[NAMES[3]].partition(b"\n")[2])
    said = hooks(story, "status")
    assert said.count("  damaged ") == 4
    assert "reconcile hooks install" in said
    assert hooks(story, "install").count("  damaged ") == 0
    assert {name: (directory / name).read_bytes() for name in NAMES} == whole
    for name in NAMES:
        (directory / name).write_bytes(whole[name].replace(b"# reconcile: begin\n", b"") + whole[name])
    hooks(story, "remove")
    for name in NAMES:
        assert not (directory / name).exists() or b"reconcile" not in (directory / name).read_bytes()


def test_a_directory_in_the_place_of_a_hook(story: World) -> None:
    directory = story.project / ".git" / "hooks"
    (directory / "post-checkout").mkdir()
    said = hooks(story, "install", code=1)
    assert "post-checkout is a directory" in said
    assert len(said.splitlines()) <= 2
    status = hooks(story, "status")
    assert status.count(" installed") - status.count("not installed") == 3
    assert "a directory has its name" in status
    hooks(story, "remove")
    assert not [path for path in directory.iterdir() if path.is_file() and path.suffix != ".sample"]
    assert (directory / "post-checkout").is_dir()


def test_a_hook_put_aside_that_nothing_calls(story: World) -> None:
    directory = story.project / ".git" / "hooks"
    users = "#!/usr/bin/env python3\n"
    for name in ("post-merge", "post-checkout"):
        (directory / name).write_text(users)
        (directory / name).chmod(0o755)
    hooks(story, "install")
    (directory / "post-merge").write_text("#!/bin/sh\necho another\n")
    (directory / "post-checkout").unlink()
    assert "nothing calls post-merge.before-reconcile" in hooks(story, "status")
    said = hooks(story, "remove")
    assert "nothing calls post-merge.before-reconcile" in said
    assert (directory / "post-checkout").read_text() == users
    assert (directory / "post-merge").read_text() == "#!/bin/sh\necho another\n"
    assert (directory / "post-merge.before-reconcile").read_text() == users


def without_a_program_that_works(story: World) -> dict[str, str]:
    """Return an environment whose first `reconcile` fails at once."""
    broken = story.project.parent / "bin"
    broken.mkdir(exist_ok=True)
    (broken / "reconcile").write_text("#!/bin/sh\nexit 1\n")
    (broken / "reconcile").chmod(0o755)
    return {**os.environ, "PATH": f"{broken}{os.pathsep}{os.environ['PATH']}"}


def made(directory: Path, env: dict[str, str], *args: str) -> bool:
    """Run git in an environment, and tell whether it has succeeded."""
    done = subprocess.run(["git", *args], cwd=directory, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) != ("could not be checked" in done.stderr), done.stderr
    return done.returncode == 0


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "ksh", "dash -eu"])
def test_a_commit_without_conversations_needs_no_program_that_works(story: World, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell.split(maxsplit=1)[0]) is None:
        pytest.skip(f"no {shell}")
    hook = story.project / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/usr/bin/env -S {shell}\n")
    hook.chmod(0o755)
    hooks(story, "install")
    env, top = without_a_program_that_works(story), story.project
    odd = top / 'a "b"\n\u00fc' / ".jpx"
    odd.mkdir(parents=True)
    (odd / "conversations").write_text("a")
    git(top, "add", "-A")
    assert made(top, env, "commit", "-qm", "odd names")
    (top / "file").write_text("a")
    git(top, "add", "-A")
    append(place(story, PARENT), 1, "g", LONG_AGO + 100 * SECOND)
    assert made(odd.parent, env, "commit", "-qm", "a conversation that is not staged")
    (top / "file").write_text("b")
    assert made(top, env, "commit", "-qm", "a named file", "file")
    events_file = str((place(story, PARENT) / "events.json").relative_to(top))
    for args in (("-a",), (events_file,), ("-a", "--amend")):
        assert not made(top, env, "commit", "-qm", "a conversation", *args)
    assert not made(top, env, "--literal-pathspecs", "commit", "-qam", "a conversation")
    assert not made(odd.parent, env, "-c", "diff.relative=true", "commit", "-qam", "a conversation")
    git(top, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    (tmp_path / "beside" / "file").write_text("c")
    assert made(tmp_path / "beside", env, "commit", "-qam", "in a worktree")
    (tmp_path / "beside" / events_file).write_text("[]")
    assert not made(tmp_path / "beside", env, "commit", "-qam", "in a worktree")


def test_a_first_commit_without_conversations_needs_no_program_that_works(world: World) -> None:
    git(world.project, "init", "-q")
    hooks(world, "install")
    env = without_a_program_that_works(world)
    (world.project / "file").write_text("a")
    git(world.project, "add", "file")
    assert made(world.project, env, "commit", "-qm", "first")


@pytest.mark.parametrize("name", ["one", "two"])
def test_conversations_below_the_top_and_behind_a_link_need_a_program_that_works(story: World, name: str) -> None:
    one, top = two_projects(story)
    hooks(one, "install")
    env = without_a_program_that_works(story)
    project = World(top / name, story.run, story.user_data)
    path = place(project, PARENT) / "events.json"
    before = path.read_bytes()
    path.write_text("[]")
    assert not made(top, env, "commit", "-qam", "a conversation")
    path.write_bytes(before)
    git(top, "add", "-A")
    git(top, "mv", f"{name}/.jp/conversations", "chats")
    git(top, "commit", "-qnm", "elsewhere")
    (top / "chats" / "new").write_text("a")
    git(top, "add", "chats")
    assert made(top, env, "commit", "-qm", "no conversations")
    project.workspace.symlink_to("../../chats")
    (top / "chats" / "new").write_text("b")
    assert not made(top, env, "commit", "-qam", "conversations behind a link that is not staged")


@pytest.mark.parametrize("variable", ["PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "the directory"])
def test_modules_of_others_do_not_replace_the_check(story: World, variable: str, tmp_path: Path) -> None:
    hooks(story, "install")
    hostile = story.project if variable == "the directory" else tmp_path / "hostile"
    hostile.mkdir(exist_ok=True)
    for module in ("json", "sitecustomize", "msgspec", "reconcile_cli"):
        (hostile / f"{module}.py").write_text("import os\nos._exit(0)\n")
    with_secret(place(story, PARENT) / "events.json")
    git(story.project, "add", "-A")
    done = subprocess.run(
        ["git", "commit", "-qm", "x"],
        cwd=story.project,
        env={**os.environ, variable: str(hostile)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "a secret" in done.stderr


def test_packages_of_another_user_directory_do_not_replace_the_check(story: World, tmp_path: Path) -> None:
    """A program outside of a virtual environment, as `pip install --user` makes it, runs what is there at its start."""
    purelib = sysconfig.get_path("purelib")
    program = tmp_path / "bin" / "reconcile"
    program.parent.mkdir()
    base = os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    program.write_text(
        f"#!{base}\nimport site\nsite.addsitedir({purelib!r})\nfrom reconcile_cli.start import start\nstart()\n"
    )
    program.chmod(0o755)
    packages = tmp_path / "hostile" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "hostile.pth").write_text("import os; os._exit(0)\n")
    env = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    hostile = {**env, "PYTHONUSERBASE": str(tmp_path / "hostile")}
    done = subprocess.run([program, "no such command"], env=hostile, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this Python has no directory of its user's packages")
    hooks(story, "install")
    with_secret(place(story, PARENT) / "events.json")
    git(story.project, "add", "-A")
    done = subprocess.run(
        ["git", "commit", "-qm", "x"], cwd=story.project, env=hostile, capture_output=True, check=False
    )
    assert (done.returncode, b"a secret" in done.stderr) == (1, True), done.stderr


def test_settings_of_the_users_with_the_same_names_stay(story: World) -> None:
    config = story.project / ".git" / "config"
    before = config.read_bytes()
    for key in ("diff.reconcile.textconv", "merge.reconcile.driver"):
        git(story.project, "config", key, "my-tool --convert")
        git(story.project, "config", "diff.reconcile.xfuncname", "mine")
        users = config.read_bytes()
        hooks(story, "remove")
        assert config.read_bytes() == users
        assert key in hooks(story, "install", "--merge-driver", code=1)
        assert not (story.project / ".gitattributes").exists()
        assert f"{key} is yours" in hooks(story, "status")
        hooks(story, "remove")
        assert config.read_bytes() == users
        git(story.project, "config", "--unset", key)
        hooks(story, "install", "--merge-driver")
        hooks(story, "remove")
        assert git(story.project, "config", "diff.reconcile.xfuncname") == "mine\n"
        git(story.project, "config", "--unset", "diff.reconcile.xfuncname")
        assert config.read_bytes() == before


def test_settings_of_an_earlier_version_are_removed(story: World) -> None:
    before = tree(story.project)
    hooks(story, "install", "--merge-driver")
    git(story.project, "config", "merge.reconcile.driver", "exec reconcile merge-driver %O %A %B %P")
    hooks(story, "remove")
    assert tree(story.project) == before


def test_empty_files_of_the_users_stay(story: World) -> None:
    (story.project / ".gitattributes").write_text("")
    (story.project / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
    (story.project / ".git" / "hooks" / "pre-commit").chmod(0o755)
    before = tree(story.project)
    for _ in range(2):
        hooks(story, "install", "--merge-driver")
    hooks(story, "remove")
    assert tree(story.project) == before


@pytest.mark.parametrize("had", [0, 1, 2, 3])
def test_only_directories_that_were_made_are_removed(story: World, had: int) -> None:
    made = ["my", "my/own", "my/own/hooks"]
    for name in made[:had]:
        (story.project / name).mkdir()
    git(story.project, "config", "core.hooksPath", made[-1])
    for _ in range(2):
        hooks(story, "install")
        assert hooks(story, "status").count("outdated") == 0
    hooks(story, "remove")
    assert [name for name in made if (story.project / name).exists()] == made[:had]
    hooks(story, "install")
    (story.project / made[-1] / "mine").write_text("a")
    hooks(story, "remove")
    assert (story.project / made[-1] / "mine").exists()


def test_the_hook_of_a_submodule_checks_it(story: World, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(story.project), "inner")
    inner = World(outer / "inner", story.run, story.user_data)
    hooks(inner, "install")
    with_secret(place(inner, PARENT) / "events.json")
    refused(inner, f".jp/conversations/{PARENT}-parent/events.json: a secret")


def test_after_a_killed_hook_and_beside_another_commit_a_commit_is_checked(story: World) -> None:
    hooks(story, "install")
    append(place(story, PARENT), 1, "g", LONG_AGO + 100 * SECOND)
    git(story.project, "add", "-A")
    for delay in (0.02, 0.1, 0.2):
        running = subprocess.Popen(["git", "commit", "-qm", "x"], cwd=story.project, start_new_session=True)
        time.sleep(delay)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        (story.project / ".git" / "index.lock").unlink(missing_ok=True)  # git's own, which a kill leaves
        (story.project / ".git" / "HEAD.lock").unlink(missing_ok=True)
    append(place(story, PARENT), 1, "h", LONG_AGO + 101 * SECOND)
    git(story.project, "add", "-A")
    both = [subprocess.Popen(["git", "commit", "-qm", "y"], cwd=story.project) for _ in range(2)]
    assert 0 in [each.wait() for each in both]
    with_secret(place(story, OTHER) / "events.json")
    refused(story, "a secret")


def test_the_hook_by_hand_in_a_directory_below_the_top(story: World) -> None:
    hooks(story, "install")
    below = story.project / "below"
    below.mkdir()
    hook = story.project / ".git" / "hooks" / "pre-commit"
    with_secret(place(story, PARENT) / "events.json")
    assert subprocess.run([hook], cwd=below, check=False).returncode == 0
    git(story.project, "add", "-A")
    for directory in (below, story.workspace, story.project):
        done = subprocess.run([hook], cwd=directory, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("a secret")) == (1, 1)


@pytest.mark.parametrize("name", ["pre-commit", "post-checkout"])
def test_nothing_remains_of_a_killed_process_of_a_hook(story: World, name: str, tmp_path: Path) -> None:
    """The process ends; git goes on, refuses or switches, and the next commit and run do their work.

    A hook that ends before the kill has done its work. The next run that writes takes over SQLite's log and the lock.
    """
    program = tmp_path / "bin" / "reconcile"
    program.parent.mkdir()
    pid, status = tmp_path / "pid", tmp_path / "status"
    program.write_text(
        f'#!/bin/sh\n{SCRIPT} "$@" &\necho $! > "{pid}.new"; mv "{pid}.new" "{pid}"\n'
        f'wait $!; status=$?; echo $status > "{status}"; exit $status\n'
    )
    program.chmod(0o755)
    killed = []
    env = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    hooks(story, "install")

    def names() -> set[str]:
        return {str(path) for top in (story.project, story.state) for path in files(top) if "objects" not in str(path)}

    for delay in (0.02, 0.1, 0.2, 0.3):
        append(place(story, PARENT), 1, "g", LONG_AGO + int(1000 * (1 + delay)) * SECOND)
        git(story.project, "add", "-A")
        args = ["commit", "-qm", "x"]
        if name == "post-checkout":
            git(story.project, "commit", "-qnm", "x")
            args = ["switch", "-qc", f"after-{delay}"]
        before = names()
        pid.unlink(missing_ok=True)
        running = subprocess.Popen(["git", *args], cwd=story.project, env=env, stderr=subprocess.PIPE, text=True)
        until(pid.exists, "the hook runs")
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)
        _, said = running.communicate()
        killed.append(int(status.read_text()) == 128 + signal.SIGKILL)
        refusal = killed[-1] and name == "pre-commit"
        assert (running.returncode, "could not be checked" in said) == (int(refusal), refusal)
        expected = (f"after-{delay}", "state.sqlite-", "lock.json")
        assert not [path for path in names() - before if not any(part in path for part in expected)]
    assert killed[0]
    settle(story)
    append(place(story, PARENT), 1, "h", LONG_AGO + 3000 * SECOND)
    git(story.project, "add", "-A")
    assert tried(story, "commit", "-qm", "y")[0] == 0
    with_secret(place(story, OTHER) / "events.json")
    refused(story, "a secret")


def test_a_secret_that_no_hook_saw_is_listed(story: World) -> None:
    hooks(story, "install")
    directory = story.workspace / "17500000008-new"
    shutil.copytree(place(story, OTHER), directory)
    with_secret(directory / "events.json")
    git(story.project, "add", "-A")
    made = git(story.project, "commit-tree", git(story.project, "write-tree").strip(), "-p", "HEAD", "-m", "x").strip()
    git(story.project, "update-ref", "HEAD", made)
    said = str(story.run("--workspace", story.project, "doctor", "--secrets").output)
    assert "17500000008-new/events.json: event 5: " in said
    assert f"in git since {made[:12]}, not pushed" in said

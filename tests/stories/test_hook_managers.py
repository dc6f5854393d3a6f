"""The hooks of reconcile beside those of managers, as their users have them: husky, lefthook, the pre-commit framework.

The real managers are taken from PATH. The layouts that they write are also written here, since no manager may be there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.git_hooks import hooks, refused, settle, tree, tried, with_secret
from tests.support.projects.git_world import OTHER, PARENT, commit, git, place
from tests.support.projects.watcher import until
from tests.support.projects.world import LONG_AGO, SCRIPT, SECOND, World, append

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("git") is None, reason="no git")]

NAMES = ("pre-commit", "post-checkout", "post-merge", "post-rewrite")


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let git's hooks find the command, and no settings of the user of the tests."""
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "framework"))
    for name in ("HUSKY", "LEFTHOOK", "PRE_COMMIT_CHECKOUT_TYPE"):
        monkeypatch.delenv(name, raising=False)


def checked(world: World) -> None:
    """Demand that the hooks refuse what they must, pass what they can, and sync after a switch and a merge."""
    top = world.project
    (top / "file").write_text("a")
    commit(world, "no conversation")
    before = git(top, "rev-parse", "HEAD")
    with_secret(place(world, PARENT) / "events.json")
    refused(world, "a secret")
    git(top, "reset", "-q", "--hard", before.strip())
    settle(world)
    directory = place(world, OTHER)
    kept = shutil.copytree(directory, top.parent / "kept")
    world.reconcile("local", str(OTHER))
    commit(world, "without it")
    shutil.move(kept, directory)
    append(directory, 1, "g", LONG_AGO + 100 * SECOND)
    refused(world, "is private")
    git(top, "reset", "-q", "--hard")
    settle(world)
    had = world.event_count(PARENT)
    append(place(world, PARENT), 2, "g", LONG_AGO + 101 * SECOND)
    commit(world, "went on")
    git(top, "switch", "-qc", "next")
    until(lambda: world.event_count(PARENT) == had + 2, "after a switch")
    settle(world)
    git(top, "switch", "-q", "feature")
    append(place(world, PARENT), 2, "h", LONG_AGO + 102 * SECOND)
    commit(world, "went on again")
    git(top, "commit", "-q", "--amend", "-m", "went on again, and said so")
    until(lambda: world.event_count(PARENT) == had + 4, "after an amended commit")
    settle(world)


def states(world: World) -> list[str]:
    """Return the state of each hook, with its note."""
    parts = {part["name"]: part for part in json.loads(hooks(world, "status", "--json"))["parts"]}
    return [", ".join(filter(None, (parts[name]["state"], parts[name]["note"]))) for name in NAMES]


INSTALLED = ["installed"] * 4
ABSENT = ["not installed"] * 4


def husky(top: Path, directory: str = ".husky") -> None:
    """Write what `npx husky` writes, and set what it sets."""
    called = top / directory / "_"
    called.mkdir(parents=True, exist_ok=True)
    (called / ".gitignore").write_text("*")
    (called / "h").write_text(
        '#!/usr/bin/env sh\nn=$(basename "$0")\ns=$(dirname "$(dirname "$0")")/$n\n'
        '[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\nc=$?\nexit $c\n'
    )
    for name in NAMES:
        (called / name).write_text('#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
        (called / name).chmod(0o755)
    git(top, "config", "core.hooksPath", f"{directory}/_")


@pytest.mark.parametrize("directory", [".husky", ".config/husky"])
def test_husky_calls_the_check_from_the_files_of_its_users(story: World, directory: str) -> None:
    hooks(story, "install")
    top = story.project
    assert states(story) == INSTALLED
    husky(top, directory)
    users = '# 🐶\necho "mine" >> "$(git rev-parse --git-dir)/ran"\n'.encode()
    (top / directory / "pre-commit").write_bytes(users)
    assert states(story) == ABSENT
    hooks(story, "install")
    husky(top, directory)  # `npm install` does this again
    assert states(story) == INSTALLED
    checked(story)
    assert (top / ".git" / "ran").read_text().startswith("mine\nmine\n")
    hooks(story, "remove")
    assert (top / directory / "pre-commit").read_bytes() == users
    assert sorted(os.listdir(top / directory)) == ["_", "pre-commit"]


def test_removal_after_husky_came_leaves_no_lines_in_the_directory_of_git(story: World) -> None:
    before = tree(story.project / ".git" / "hooks")
    hooks(story, "install")
    husky(story.project)
    hooks(story, "install")
    hooks(story, "remove")
    assert tree(story.project / ".git" / "hooks") == before


def test_a_link_in_the_place_of_a_hook_of_husky_is_called(story: World) -> None:
    husky(story.project)
    (story.project / "mine").write_text("#!/usr/bin/env bash\necho mine >> .git/ran\n")
    (story.project / ".husky" / "pre-commit").symlink_to("../mine")
    hooks(story, "install")
    commit(story, "with it")
    assert (story.project / ".git" / "ran").read_text() == "mine\n"
    hooks(story, "remove")
    assert os.readlink(story.project / ".husky" / "pre-commit") == "../mine"


def test_a_worktree_without_the_directory_of_husky_calls_nothing(story: World, tmp_path: Path) -> None:
    husky(story.project, "config/husky")
    hooks(story, "install")
    commit(story, "hooks")
    git(story.project, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    beside = World(tmp_path / "beside", story.run, story.user_data)
    assert states(beside)[0] == "not called, no _/pre-commit of husky"
    assert "npx husky" in hooks(beside, "status")
    husky(beside.project, "config/husky")
    assert states(beside) == INSTALLED
    with_secret(place(beside, PARENT) / "events.json")
    refused(beside, "a secret")


def test_a_hook_that_is_not_executable_is_not_called(story: World) -> None:
    hooks(story, "install")
    (story.project / ".git" / "hooks" / "pre-commit").chmod(0o644)
    assert states(story)[0] == "not called, not executable"
    assert "chmod +x" in hooks(story, "status")


FRAMEWORK = """#!/usr/bin/env bash
# File generated by pre-commit: https://pre-commit.com
# ID: 138fd403232d2ddd5efb44317e38bf03
legacy="$0.legacy"
if [ -x "$legacy" ]; then "$legacy" "$@" || exit 1; fi
"""


def framework(top: Path, name: str) -> None:
    """Do what `pre-commit install` does; the script here calls the earlier hook itself."""
    path = top / ".git" / "hooks" / name
    if path.exists() and b"File generated by pre-commit" not in path.read_bytes():
        path.rename(f"{path}.legacy")
    path.write_text(FRAMEWORK)
    path.chmod(0o755)


def test_the_framework_calls_the_check_once(story: World) -> None:
    before = tree(story.project)
    hooks(story, "install")
    for _ in range(2):
        for name in NAMES:
            framework(story.project, name)
        assert states(story) == INSTALLED
        hooks(story, "install")
    directory = story.project / ".git" / "hooks"
    assert [path.name for path in sorted(directory.glob("pre-commit*")) if b"# reconcile" in path.read_bytes()] == [
        "pre-commit.legacy"
    ]
    (directory / "pre-commit.legacy").chmod(0o644)
    assert states(story)[0] == "not installed"
    hooks(story, "install")
    assert states(story)[0] == "installed, pre-commit writes this file"
    checked(story)
    hooks(story, "remove")
    after = tree(directory)
    assert [name for name in after if name not in tree_names(before)] == sorted(NAMES)
    assert {after[name][0] for name in NAMES} == {FRAMEWORK.encode()}


def tree_names(before: dict[str, tuple[bytes, int]]) -> set[str]:
    return {os.path.basename(name) for name in before}


def test_lines_that_lefthook_writes_over_are_missed(story: World) -> None:
    path = story.project / ".git" / "hooks" / "pre-commit"
    script = "#!/bin/sh\ncall_lefthook()\n{\n  :\n}\ncall_lefthook run pre-commit\n"
    path.write_text(script)
    path.chmod(0o755)
    hooks(story, "install")
    assert states(story)[0] == "installed, lefthook writes this file"
    assert "The manager's configuration can call" in hooks(story, "status")
    path.write_text(script)
    (story.project / "lefthook.yml").write_text("# run: reconcile hooks run pre-commit\n")
    assert states(story)[0] == "not installed"
    (story.project / "lefthook.yml").write_text("pre-commit:\n  jobs:\n    - run: reconcile hooks run pre-commit\n")
    assert states(story)[0] == "not installed, lefthook.yml calls reconcile"


def test_a_checkout_of_files_is_no_switch_for_the_framework(story: World, monkeypatch: pytest.MonkeyPatch) -> None:
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    for word, events in (("0", 7), ("1", 9)):
        monkeypatch.setenv("PRE_COMMIT_CHECKOUT_TYPE", word)
        monkeypatch.chdir(story.project)
        hooks(story, "run", "post-checkout")
        assert story.event_count(PARENT) == events


def real(name: str, *args: str, directory: Path) -> None:
    """Run a manager in a directory; skip the test if the manager isn't there."""
    if shutil.which(name) is None:
        pytest.skip(f"no {name} in PATH")
    done = subprocess.run([name, *args], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_with_real_husky(story: World) -> None:
    top = story.project
    (top / "package.json").write_text('{"scripts": {"test": "true"}}')
    hooks(story, "install")
    real("husky", "init", directory=top)
    (top / ".husky" / "pre-commit").write_text("echo mine >> .git/ran\n")
    assert states(story) == ABSENT
    before = tree(top / ".husky")
    hooks(story, "install", "--merge-driver")
    real("husky", directory=top)
    assert states(story) == INSTALLED
    checked(story)
    assert (top / ".git" / "ran").exists()
    hooks(story, "remove")
    assert tree(top / ".husky") == before


@pytest.mark.parametrize("is_first", [True, False])
def test_with_real_lefthook(story: World, is_first: bool) -> None:
    top = story.project
    (top / "lefthook.yml").write_text("pre-commit:\n  commands:\n    mine:\n      run: echo mine >> .git/ran\n")
    if is_first:
        hooks(story, "install")
    real("lefthook", "install", directory=top)
    assert states(story)[0] == "not installed"
    before = (top / ".git" / "hooks" / "pre-commit").read_bytes()
    hooks(story, "install")
    assert states(story) == ["installed, lefthook writes this file", *INSTALLED[1:]]
    checked(story)
    assert (top / ".git" / "ran").exists()
    hooks(story, "remove")
    assert (top / ".git" / "hooks" / "pre-commit").read_bytes() == before
    assert not (top / ".git" / "hooks" / "pre-commit.old").exists()


def test_the_configuration_of_real_lefthook_calls_the_check(story: World) -> None:
    calls = {name: "{0}" if name == "post-checkout" else "" for name in NAMES}
    (story.project / "lefthook.yml").write_text(
        "".join(
            f"{name}:\n  commands:\n    reconcile:\n      run: reconcile hooks run {name} {words}\n"
            for name, words in calls.items()
        )
    )
    real("lefthook", "install", directory=story.project)
    assert states(story) == ["not installed, lefthook.yml calls reconcile"] * 4
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    assert tried(story, "checkout", "-q", "HEAD", "--", ".")[0] == 0
    assert story.event_count(PARENT) == 7
    checked(story)


@pytest.mark.parametrize("is_first", [True, False])
def test_with_the_real_framework(story: World, is_first: bool) -> None:
    top = story.project
    (top / ".pre-commit-config.yaml").write_text(
        "repos:\n- repo: local\n  hooks:\n  - id: mine\n    name: mine\n    language: system\n"
        "    entry: sh -c 'echo mine >> .git/ran'\n    pass_filenames: false\n"
    )
    commit(story, "configuration")
    if is_first:
        hooks(story, "install")
    types = [word for name in NAMES for word in ("-t", name)]
    real("pre-commit", "install", *types, directory=top)
    assert states(story) == (INSTALLED if is_first else ABSENT)
    hooks(story, "install")
    assert states(story) == ["installed" + ("" if is_first else ", pre-commit writes this file")] * 4
    checked(story)
    assert (top / ".git" / "ran").exists()
    hooks(story, "remove")
    left = {path.name for path in (top / ".git" / "hooks").iterdir() if b"reconcile" in path.read_bytes()}
    assert not left
    real("pre-commit", "uninstall", *types, directory=top)
    assert not [path for path in (top / ".git" / "hooks").iterdir() if path.suffix != ".sample"]


def test_the_configuration_of_the_real_framework_calls_the_check(story: World) -> None:
    """As the hooks of `.pre-commit-hooks.yaml`, with the command of this test instead of an installed one."""
    checks = (("check", "pre-commit", "pre-commit"), ("sync", "post-checkout", ", ".join(NAMES[1:])))
    (story.project / ".pre-commit-config.yaml").write_text(
        "repos:\n- repo: local\n  hooks:\n"
        + "".join(
            f"  - id: reconcile-{id_}\n    name: {id_}\n    language: system\n    always_run: true\n"
            f"    entry: reconcile hooks run {name}\n    pass_filenames: false\n    stages: [{stages}]\n"
            for id_, name, stages in checks
        )
    )
    commit(story, "configuration")
    real("pre-commit", "install", *[word for name in NAMES for word in ("-t", name)], directory=story.project)
    assert states(story) == ["not installed, .pre-commit-config.yaml calls reconcile"] * 4
    checked(story)


def test_each_worktree_has_its_own_hooks_in_the_checkout(story: World, tmp_path: Path) -> None:
    git(story.project, "config", "core.hooksPath", "my/hooks")
    hooks(story, "install")
    before = (story.project / ".git" / "config").read_bytes()
    git(story.project, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    beside = World(tmp_path / "beside", story.run, story.user_data)
    assert states(beside) == ABSENT
    commit(story, "hooks")
    git(beside.project, "merge", "-q", "feature")
    assert states(beside) == INSTALLED
    for world in (beside, story):
        with_secret(place(world, PARENT) / "events.json")
        refused(world, "a secret")
        git(world.project, "reset", "-q", "--hard")
    hooks(story, "remove")
    assert states(story) == ABSENT
    assert states(beside) == INSTALLED
    hooks(beside, "remove")
    assert not (beside.project / "my").exists()
    assert (story.project / ".git" / "config").read_bytes() == before

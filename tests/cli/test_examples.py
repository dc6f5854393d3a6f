"""The examples of the help run, in the demo's project after its first run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from reconcile.formats.json import javascript
from tests.cli.modules import module
from tests.support.documents import commands, examples
from tests.support.formats.claudesidian import workspace
from tests.support.projects.demo import demo
from tests.support.projects.machines import make_bare
from tests.support.projects.world import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

EXAMPLES = {"": module("app").EXAMPLES} | {name: examples(command) for name, command in commands().items()}
ADDRESS = "git@example.org:me/chats.git"
RUN_ID = re.compile(r"\b\d{8}-\d{6}-\d\d\b")


def newest_run(run: Run) -> str:
    found: str = json.loads(run("log", "--json").stdout)["runs"][0]["id"]
    return found


def lost_checkout(place: Path, run: Run) -> None:
    """Let a second checkout of the demo's project run once, and remove it."""
    shutil.copytree(".jp", place / ".jp")
    assert run("-w", str(place)).exit_code == 0
    shutil.rmtree(place)


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"brief", "merge-driver", "review", "service", "watch"}))
def test_the_examples_of_a_command_run(name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; the id of the demo's only run takes the place of theirs.

    Those of review need a terminal (tests/cli/review/test_command.py), those of merge-driver a merge
    (tests/stories/test_git_merge_driver.py), those of service a manager of services (tests/stories/test_service.py).
    """
    demo(tmp_path, run, monkeypatch)
    subprocess.run(["git", "init", "-q"], check=True)
    newest = newest_run(run)
    lost_checkout(tmp_path / "old-tree", run)
    bare = make_bare(tmp_path / "chats.git")
    for line, _ in EXAMPLES[name]:
        words = [RUN_ID.sub(newest, word).replace(ADDRESS, str(bare)) for word in shlex.split(line)]
        assert words[0] == "reconcile"
        result = run(*words[1:])
        assert result.exit_code == 0, f"{line}: {result.output}"
        assert result.output, line


@pytest.mark.parametrize("line", [line for line, _ in EXAMPLES["brief"]])
def test_the_examples_of_brief_run(line: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".workspaces").mkdir()
    (tmp_path / ".workspaces" / "ws_1.json").write_bytes(javascript.stringify(workspace("ws_1", "Thesis")))
    monkeypatch.chdir(tmp_path)
    assert run(*shlex.split(line)[1:]).stdout.startswith("Thesis")


@pytest.mark.parametrize("line", [line for line, _ in EXAMPLES["watch"]])
def test_the_examples_of_watch_run(line: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo(tmp_path, run, monkeypatch)
    words = [str(SCRIPT), *shlex.split(line)[1:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watcher:
        assert watcher.stdout is not None
        first = watcher.stdout.readline()
        watcher.terminate()
        assert watcher.wait(10) == 0
    assert "watching" in first

"""Changed plan files given to `reconcile apply`, over a small world that is put back before each."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import tempfile
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

from click.testing import CliRunner

from tests.support.projects.world import ID_FILE, LONG_AGO, SECOND, World, append, contents, events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click import Command
    from click.testing import Result

(_SCRIPT,) = distribution("reconcile-fs").entry_points.select(group="console_scripts", name="reconcile")
_COMMAND = cast("Command", importlib.import_module(_SCRIPT.module.rpartition(".")[0] + ".app").main)
FIRST = 17500000001
HERE = "@HERE@"
"""Stands for the directory of the world: it has another name in every process."""
MESSAGE = 2000


class Stage:
    """Two conversations in step, an edit on one side, a new child on the other; ``now`` is a fresh copy of it."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="reconcile-fuzz-")
        self.root = Path(self._place.name)
        self.now, self._before = self.root / "now", self.root / "before"
        self.file = self.root / "plan.json"
        self.world = World(self.now / "project", self.run, self.now / "jp")
        self.world.workspace.mkdir(parents=True)
        (self.now / "project" / ".jp" / ".id").write_text(ID_FILE)
        for at in range(2):
            write_conversation(self.world.workspace / f"{FIRST + at}-it", "It", events(3))
        assert self.run("--workspace", self.now / "project").exit_code == 0
        append(self.world.workspace / f"{FIRST}-it", 2, "b", LONG_AGO + SECOND)
        write_conversation(self.world.store / f"{FIRST + 2}-it", "It", events(2), parent=FIRST + 1)
        write_conversation(self.world.workspace / f"{FIRST + 3}-it", "It", events(2), parent=FIRST)
        shutil.copytree(self.now, self._before, symlinks=True)

    def run(self, *args: str | Path, stdin: str | None = None) -> Result:
        environment = {
            "HOME": str(self.root / "home"),
            "JP_USER_DATA_DIR": str(self.now / "jp"),
            "RECONCILE_STATE_DIR": str(self.now / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "PATH": os.environ["PATH"],
        }
        with mock.patch.dict(os.environ, environment, clear=True):
            return CliRunner().invoke(_COMMAND, [str(arg) for arg in args], input=stdin, catch_exceptions=False)

    def put_back(self) -> None:
        shutil.rmtree(self.now)
        shutil.copytree(self._before, self.now, symlinks=True)

    def everything(self) -> set[str]:
        """Return every content that is anywhere: on the sides, and in the vault, which is in the state."""
        places = (self.world.workspace, *self.now.glob("jp/workspace/*/conversations"), *self.now.glob("state/*/vault"))
        return set().union(*map(contents, places))


@cache
def stage() -> Stage:
    return Stage()


@cache
def saved_plans() -> Sequence[Any]:
    """Return the plans of a few commands, as ``--out`` saves them."""
    commands: list[list[str]] = [
        [], ["local", str(FIRST)], ["rm", "--cascade", str(FIRST + 1)], ["set-parent", str(FIRST), str(FIRST + 1)],
        ["project", str(FIRST + 2)], ["gc"], ["fork", str(FIRST), "--last", "1"], ["recover", "--all", "--yes"],
    ]  # fmt: skip
    found = []
    for words in commands:
        stage().put_back()
        result = stage().run("--workspace", stage().now / "project", *words, "--out", stage().file)
        assert result.exit_code in (0, 4), result.output
        found.append(json.loads(stage().file.read_text(encoding="utf-8").replace(str(stage().now), HERE)))
    return found


def apply_file(content: bytes) -> None:
    """Apply such a file, first for show."""
    stage().put_back()
    stage().file.write_bytes(content.replace(HERE.encode(), str(stage().now).encode()))
    before = stage().everything()
    for words in (["--dry-run"], ["--json"], []):
        result = stage().run("apply", stage().file, *words)
        assert result.exit_code in (0, 1, 2, 4), result.output
        if result.exit_code in (1, 2):
            errors = [line for line in result.stderr.splitlines() if not line.startswith(("hint: ", "  "))]
            assert len(errors) <= 2 or "Usage:" in result.stderr, result.stderr
            assert len(result.stderr) < MESSAGE + len(str(stage().root)) * 4
    assert before - stage().everything() == set(), "lost"

"""The demo's two sides in a home directory of their own, and the commands that run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcile.formats.json import javascript
from tests.support.documents import PROJECT, commands
from tests.support.formats.claudesidian import session, workspace
from tests.support.manual import FILES, SHARE
from tests.support.projects.world import SCRIPT
from tests.support.screens.terminal import QUESTION, Answer, at_terminal, interrupt, typed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COLUMNS = 80
NOTES, BACKUPS, LETTER, MACOS = "17780300000", "17779500000", "17780500000", "17780400000"
"""Conversations of the demo; the letter's id is the newest."""

_DEMO = PROJECT / "fixtures" / "demo"
_TIME = 1778839200
"""The time of the demo's files: 2026-05-15 10:00:00 UTC."""


class Shot(NamedTuple):
    """A command on a screen: its words after ``reconcile``, and the answers that are typed."""

    words: str
    answers: str = ""


class Change(NamedTuple):
    """Something that another program does before the next command; nothing of it is shown."""

    name: str


class Live(NamedTuple):
    """A command that runs until Ctrl-C. Each change waits for a line (a regular expression) that is shown."""

    words: str
    changes: tuple[tuple[str, str], ...]
    last: str
    """The line after which Ctrl-C is typed."""


class Typed(NamedTuple):
    """Keys that are typed in bash with the completion file, until the screen ends so (a regular expression)."""

    keys: str
    last: str


Step = Shot | Change | Live | Typed


class World:
    """The demo's two sides in a home directory of their own."""

    def __init__(self, home: Path, columns: int = COLUMNS, script: Path = SCRIPT) -> None:
        self._columns = columns
        self._script = script
        self._home = home
        self.project = home / "project"
        self._store = home / "data" / "workspace" / "project-demo1" / "conversations"
        (self.project / ".jp").mkdir(parents=True)
        self._store.parent.mkdir(parents=True)
        shutil.copytree(_DEMO / "workspace", self.project / ".jp" / "conversations")
        shutil.copytree(_DEMO / "store", self._store)
        shutil.copy(_DEMO / "workspace-id", self.project / ".jp" / ".id")
        for path in home.rglob("*.json"):
            os.utime(path, (_TIME, _TIME))
        self._edits = 0
        self._environ = {
            "HOME": str(home),
            "PATH": f"{script.parent}:{os.environ.get('PATH', os.defpath)}",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONUTF8": "1",
            "TERM": "xterm",
            "JP_USER_DATA_DIR": str(home / "data"),
            "RECONCILE_STATE_DIR": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
        }

    def change(self, name: str) -> None:
        """Do what another program does."""
        if name == "delete the workspace":
            # Moved, and not removed: its inode may not be given to the next one, which would be taken for the same.
            (self.project / ".jp").rename(self.project.parent / f".jp-{time.monotonic_ns()}")
        elif name == "break":
            (path,) = self.project.glob(f".jp/conversations/**/{MACOS}-*/metadata.json")
            path.write_text("<<<<<<< HEAD\n", encoding="utf-8")
            os.utime(path, (_TIME + 3600, _TIME + 3600))
        elif name == "sync":
            self._capture("-q -y")
        elif name == "configure":
            config = self._home / "config" / "reconcile" / "reconcile.toml"
            config.parent.mkdir(parents=True)
            config.write_text('conflict = "hold"\n', encoding="utf-8")
        elif name == "expire":  # long ago
            self._edit(self._store, LETTER, '"title"', '"expires_at": "2020-01-01 00:00:00.0",\n  "title"', 3600)
        elif name == "open a vault":
            self._open_vault()
        elif name == "edit an event":
            here = self.project / ".jp" / "conversations"
            self._edit(here, NOTES, "Here is a draft", "Here is the second draft, for all readers", 5400, "events.json")
        elif name == "edit here":
            self._retitle(self.project / ".jp" / "conversations", NOTES, "Release notes for May", 7200)
        else:
            self._edits += 1
            self._retitle(self._store, NOTES, f"Release letter {self._edits}", 3600 + self._edits)
            here = self.project / ".jp" / "conversations"
            self._retitle(here, NOTES, f"Release notes for all {self._edits}", 7200 + self._edits)

    def _retitle(self, side: Path, id_: str, title: str, later: int) -> None:
        self._edit(side, id_, r'"title": "[^"]*"', f'"title": "{title}"', later)

    def _edit(self, side: Path, id_: str, pattern: str, text: str, later: int, name: str = "metadata.json") -> None:
        (path,) = side.glob(f"**/{id_}-*/{name}")
        path.write_text(re.sub(pattern, text, path.read_text("utf-8")), encoding="utf-8")
        os.utime(path, (_TIME + later, _TIME + later))

    def _open_vault(self) -> None:
        """Make the project a vault of Claudesidian's."""
        shutil.rmtree(self.project)
        records = self.project / ".workspaces"
        records.mkdir(parents=True)
        (records / "ws_1.json").write_bytes(javascript.stringify(_thesis()))
        page = self.project / "Thesis" / "outline.md"
        page.parent.mkdir()
        page.write_text("# Outline\n", encoding="utf-8")
        os.utime(page, (_TIME, _TIME))

    def shown(self, step: Shot | Live | Typed) -> str:
        """Return a command with all that the terminal shows of it, with the codes of its colours."""
        if isinstance(step, Typed):
            return self._typed(step)
        words = step.words
        if "RUN" in words or "VERSION" in words:
            listed = self._capture("log")
            run = listed.split()[0]
            version = re.findall(rf"\b[0-9a-f]{{16}}(?=.* \S+{NOTES}@)", self._capture("vault"))[0]
            words = words.replace("RUN", run).replace("VERSION", version)
        if isinstance(step, Live):
            answers = [Answer(after, self._changing(name)) for after, name in step.changes]
            answers.append(Answer(step.last, interrupt))
        else:
            answers = [Answer(QUESTION.pattern, typed(line)) for line in step.answers.splitlines(keepends=True)]
        command = ["sh", "-c", f"exec reconcile {words}"]
        shown = at_terminal(command, self.project, self._environ, self._columns, answers)
        return f"{prompt(f'reconcile {words}'.rstrip())}\n{shown}"

    def _changing(self, name: str) -> Callable[[int], None]:
        return lambda _: self.change(name)

    def knows(self, step: Step) -> bool:
        """Tell whether the program has the command of this version, or, of the keys in bash, its completion file."""
        if isinstance(step, Typed):
            return False
        name = "" if isinstance(step, Change) else step.words.partition(" ")[0]
        if name not in commands():
            return True
        command = ["reconcile", name, "--help"]
        ran = subprocess.run(command, cwd=self.project, env=self._environ, capture_output=True, check=False)
        return ran.returncode == 0

    def _typed(self, step: Typed) -> str:
        completion = PROJECT / SHARE / FILES["bash"]
        profile = self._home / "profile"
        profile.write_text(f"PS1='$ '\nbind 'set show-all-if-ambiguous on'\n. {completion}\n", encoding="utf-8")
        command = ["bash", "--noprofile", "--rcfile", str(profile), "-i"]
        environ = {**self._environ, "INPUTRC": os.devnull, "HISTFILE": ""}
        answers = [Answer(r"\$ $", typed(step.keys)), Answer(step.last, None)]
        return at_terminal(command, self.project, environ, self._columns, answers) + "\n"

    def _capture(self, words: str) -> str:
        command = ["sh", "-c", f"reconcile {words}"]
        ran = subprocess.run(command, cwd=self.project, env=self._environ, capture_output=True, text=True, check=True)
        return ran.stdout


def prompt(command: str) -> str:
    """Return a command as it is typed at a prompt."""
    return f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m"


def _thesis() -> dict[str, Any]:
    """Return a workspace of Claudesidian's, with two sessions and a state."""
    inner = {"context": {"nextSteps": ["Ask for the data of 2025"]}, "state": {"metadata": {"tags": ["draft"]}}}
    state = {"id": "st_1", "name": "Half of the methods", "created": (_TIME + 7200) * 1000, "state": inner}
    sessions = {
        "s_1": session("s_1", name="Outline", startTime=_TIME * 1000),
        "s_2": session("s_2", name="Methods", startTime=(_TIME + 3600) * 1000, states={"st_1": state}),
    }
    context = {
        "purpose": "Write the thesis",
        "workflows": [{"name": "Weekly", "when": "on Fridays", "steps": ["1. read the notes", "2. write a page"]}],
        "keyFiles": ["Thesis/outline.md"],
        "preferences": "Short answers.",
    }
    return workspace("ws_1", "Thesis", rootFolder="Thesis", sessions=sessions, context=context)

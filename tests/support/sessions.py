"""Shell sessions of the documentation: the commands are the page's, the output is the program's.

All sessions of a page run one after the other in one shell. `session` begins in an empty home directory, `demo-session`
in a project that has the files of the demo, synced and committed. The shell functions of a page's samples come first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
PART = re.compile(r"<!-- generated: (?:demo-)?session \w+ -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)

SAMPLE = re.compile(r"<!-- sample -->\n```sh\n(?P<functions>.*?)```\n", re.DOTALL)

_MARK = "\x1e"
_TIME = 1778839200
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)$", re.MULTILINE)
_RUN = re.compile(r"\b\d{8}-\d{6}-\d\d\b")
_SLOW = "reconcile: the sync continues in the background\n"
"""A hook says this on a loaded machine."""
_KEEP_INODE = """
keep() { [ ! -d "$1/.jp" ] || exec 9<"$1/.jp"; }
git() {
  if [ "$1 $2" = "worktree remove" ]; then keep "${!#}"; fi
  command git "$@"
}
rm() {
  keep "${!#}"
  command rm "$@"
}
"""
"""An open directory keeps its inode. Otherwise the next `.jp` may get it, and count as the same one."""
_PLACE = """
mkdir -p ~/project/.jp ~/.local/share/jp/workspace/project-demo1
cp -R ~/reconcile/fixtures/demo/workspace ~/project/.jp/conversations
cp -R ~/reconcile/fixtures/demo/store ~/.local/share/jp/workspace/project-demo1/conversations
cp ~/reconcile/fixtures/demo/workspace-id ~/project/.jp/.id
cd ~/project
git init -q -b main && reconcile -q && git add -A && git commit -q -m 'Conversations'
"""


def sessions_of(page: str, environ: dict[str, str]) -> list[str]:
    """Run the commands of all sessions of a page, and return each session with what its commands print."""
    bodies = [part["body"] for part in PART.finditer(page)]
    commands = [[command.replace("\n> ", "\n") for command in _COMMAND.findall(body)] for body in bodies]
    before = "".join(SAMPLE.findall(page)) + (_PLACE if "demo-session" in page else "")
    printed = _run([each for session in commands for each in session], environ, before)
    return ["".join(_shown(command, next(printed)) for command in session).rstrip() for session in commands]


def _shown(command: str, printed: str) -> str:
    """Return a command with what it printed; an empty line separates that from the next command."""
    typed = f"$ {command}\n".replace("\n", "\n> ").removesuffix("> ")
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return typed + "".join(f"{line}\n" for line in lines) + ("\n" if lines else "")


def _run(commands: list[str], environ: dict[str, str], before: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        shutil.copytree(PROJECT / "fixtures" / "demo", home / "reconcile" / "fixtures" / "demo")
        for path in home.rglob("*.json"):
            os.utime(path, (_TIME, _TIME))
        script = "cd\n" + _KEEP_INODE + before + "".join(f"printf '{_MARK}'\n{command}\n" for command in commands)
        git = {"GIT_CONFIG_NOSYSTEM": "1"} | {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "me"), ("EMAIL", "me@example.invalid"))
        }
        began = datetime.now(UTC)
        ran = subprocess.run(
            ["bash", "-c", "exec 2>&1\n" + script],
            env=environ | git | {"HOME": str(home)},
            cwd=home,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        printed = _RUN.sub("20260515-100000-00", ran.stdout.replace(str(home), "/home/me"))
        printed = printed.replace(_SLOW, "")
        # Claude Code names a directory after the project's path; the store has a hash of it.
        printed = printed.replace(re.sub("[^A-Za-z0-9]", "-", str(home)), "-home-me")
        printed = re.sub(r"(stores/claude-code/\w+-)[0-9a-f]{16}", r"\g<1>5a1f0c93b7e2d846", printed)
        printed = re.sub(r"(in git since) [0-9a-f]{12}", r"\1 86e812f4a1c0", printed)
        for day in {began.date(), datetime.now(UTC).date()}:
            printed = re.sub(rf"{day} \d\d:\d\d:\d\d", "2026-05-15 10:00:00", printed)
            printed = re.sub(rf"\b{day}\b", "2026-05-15", printed)
        parts = printed.split(_MARK)[1:]
        assert len(parts) == len(commands), ran.stdout
        return iter(parts)

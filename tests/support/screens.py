"""The pictures of docs/screens/: what each command shows at a terminal of 80 columns, on the files of the demo.

``python -m tests.support.screens`` (or ``make screens``) writes them. A test fails while one of them is out of date.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
import time
import unicodedata
from pathlib import Path
from typing import NamedTuple

from tests.support.documents import DOCS, PROJECT
from tests.support.projects.world import SCRIPT

SCREENS = DOCS / "screens"
COLUMNS = 80
_ROWS = 400
"""More than any screen has, so that no pager is started."""
_DEMO = PROJECT / "fixtures" / "demo"
_NOTES, _BACKUPS, _LETTER, _MACOS = "17780300000", "17779500000", "17780500000", "17780400000"
_NEWEST = _LETTER
"""The newest id of the demo; a fork has a newer one."""
_TIME = 1778839200
"""The time of the demo's files: 2026-05-15 10:00:00 UTC."""


_MACHINE = {"reconcile": "0.2.0", "python": "3.13.1, SQLite 3.46.1", "system": "Linux 6.12 x86_64"}
"""What `doctor` prints of the machine, as on the pictures."""


class Shot(NamedTuple):
    """A command on a screen: its words after ``reconcile``, and the answers that are typed."""

    words: str
    answers: str = ""


class _Change(NamedTuple):
    """Something that another program does before the next command; nothing of it is shown."""

    name: str


SCENES: dict[str, tuple[Shot | _Change, ...]] = {
    "first-run": (Shot("status"), Shot("--dry-run"), Shot("", "y\n"), Shot("")),
    "ls": (Shot("ls"), Shot("ls --tree"), Shot("ls --root")),
    "status": (
        _Change("edit both"),
        _Change("break"),
        Shot("status"),
        Shot(f"status {_NOTES}"),
        Shot(f"diff {_NOTES}"),
        Shot("--dry-run"),
        Shot("", "skip\nd\nn\n"),
        Shot(f"diff {_NOTES}"),
    ),
    "resolve": (Shot(f"resolve {_MACOS} --take store"),),
    "log": (Shot("log"), Shot("log RUN"), Shot("vault"), Shot("checkouts")),
    "undo": (Shot("undo", "y\n"), Shot("redo", "y\n"), Shot("log")),
    "local": (
        Shot(f"local {_BACKUPS} --dry-run"),
        Shot(f"local {_BACKUPS}"),
        Shot(f"project {_BACKUPS}"),
        Shot(f"project {_LETTER} --dry-run"),
    ),
    "fork": (
        Shot(f"fork {_NOTES} --last 1 --title 'A second thought'"),
        Shot(f"set-parent {_MACOS} {_BACKUPS}"),
        Shot("ls --tree"),
    ),
    "rm": (Shot(f"rm {_BACKUPS}", ""), Shot(f"rm {_BACKUPS} --cascade", "n\n"), Shot("gc")),
    "recover": (_Change("delete the workspace"), Shot(""), Shot("recover", "y\n" * 4), Shot("status")),
    "versions": (Shot("show VERSION"), Shot("restore VERSION --dry-run")),
    "saved-plan": (_Change("edit both"), Shot("--out plan.json"), Shot("apply plan.json")),
    "config": (Shot("config"),),
    "doctor": (_Change("break"), Shot("doctor"), Shot("status")),
}
"""The scenes in order: each goes on where the one before has ended."""


class World:
    """The demo's two sides in a home directory of their own."""

    def __init__(self, home: Path, columns: int = COLUMNS) -> None:
        self._columns = columns
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
            "PATH": f"{SCRIPT.parent}:{os.environ.get('PATH', os.defpath)}",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONUTF8": "1",
            "TERM": "xterm",
            "NO_COLOR": "1",
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
            (path,) = self.project.glob(f".jp/conversations/**/{_MACOS}-*/metadata.json")
            path.write_text("<<<<<<< HEAD\n", encoding="utf-8")
            os.utime(path, (_TIME + 3600, _TIME + 3600))
        else:
            self._edits += 1
            (here,) = self.project.glob(f".jp/conversations/**/{_NOTES}-*/metadata.json")
            (stored,) = self._store.glob(f"{_NOTES}-*/metadata.json")
            for path, title, later in ((stored, "Release letter", 3600), (here, "Release notes for all", 7200)):
                text = re.sub(r'"title": "[^"]*"', f'"title": "{title} {self._edits}"', path.read_text("utf-8"))
                path.write_text(text, encoding="utf-8")
                os.utime(path, (_TIME + later + self._edits, _TIME + later + self._edits))

    def shown(self, shot: Shot) -> str:
        """Return a command with all that the terminal shows of it."""
        words = shot.words
        if "RUN" in words or "VERSION" in words:
            listed = self._capture("log")
            run = listed.split()[0]
            kept = [line.split() for line in self._capture("vault").splitlines()]
            version = next((line[0] for line in kept if line and re.fullmatch("[0-9a-f]{16}", line[0])), "none")
            words = words.replace("RUN", run).replace("VERSION", version)
        return f"$ reconcile {words}".rstrip() + "\n" + self._at_terminal(words, shot.answers)

    def _capture(self, words: str) -> str:
        command = f"reconcile {words}"
        ran = subprocess.run(
            ["sh", "-c", command], cwd=self.project, env=self._environ, capture_output=True, text=True, check=True
        )
        return ran.stdout

    def _at_terminal(self, words: str, answers: str) -> str:
        outer, inner = pty.openpty()
        try:
            fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, self._columns, 0, 0))
            command = ["sh", "-c", f"exec reconcile {words}"]
            process = subprocess.Popen(
                command, cwd=self.project, env=self._environ, stdin=inner, stdout=inner, stderr=inner
            )
            os.close(inner)
            shown, left = b"", answers.splitlines(keepends=True)
            with contextlib.suppress(OSError):  # Linux raises when the last process has closed it
                while chunk := os.read(outer, 65536):
                    shown += chunk
                    if re.search(rb"\]: $", shown):  # a question
                        os.write(outer, left.pop(0).encode() if left else b"\x04")
            process.wait(60)
        finally:
            os.close(outer)
        return shown.decode().replace("\r\n", "\n").replace("^D\b\b", "")


def screens() -> dict[str, str]:
    """Return the text of each picture, by the name of its file."""
    # Everywhere as long, as lines are wrapped before the name is replaced.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="screens-") as name:
        home = Path(name).resolve()
        world = World(home)
        found = {}
        for scene, steps in SCENES.items():
            shots = []
            for step in steps:
                if isinstance(step, _Change):
                    world.change(step.name)
                else:
                    shots.append(world.shown(step))
            found[f"{scene}.txt"] = _timeless("\n".join(shots)).replace(str(home), "/home/me")
    return found


def _timeless(text: str) -> str:
    """Put the same moment, as wide, in the place of every one that depends on when this was run."""
    runs = {
        run: f"20260515-{110000 + number:06}-00" for number, run in enumerate(_ordered(r"\b20\d{6}-\d{6}-\d\d\b", text))
    }
    for run, shown in runs.items():
        text = text.replace(run, shown)
    for number, fork in enumerate(each for each in _ordered(r"(?<!\d)1[789]\d{9}(?!\d)", text) if each > _NEWEST):
        text = text.replace(fork, str(int(_NEWEST) + 100_000_000 + number))
    text = re.sub(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b(?!Z)", _moment, text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d(?=  +\d)", _moment, text)
    for name, shown in _MACHINE.items():
        text = re.sub(rf"^{name:9} .*$", f"{name:9} {shown}", text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _moment(found: re.Match[str]) -> str:
    """Return a time of the demo's files as it is, and another as the same one."""
    return found[0] if found[0].startswith("2026-05") else "2026-05-15 11:00:00"[: len(found[0])]


def _ordered(pattern: str, text: str) -> list[str]:
    return sorted(set(re.findall(pattern, text)))


def columns_of(line: str) -> int:
    """Return the columns that a line takes, counted apart from the program's own way."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line
    )


def main() -> None:
    """Write the pictures that are out of date, and remove those that no scene has."""
    SCREENS.mkdir(exist_ok=True)
    found = screens()
    for path in SCREENS.glob("*.txt"):
        if path.name not in found:
            path.unlink()
    for name, text in found.items():
        path = SCREENS / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()

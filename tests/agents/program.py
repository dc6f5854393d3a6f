"""Claude Code itself, at pinned versions: installed from npm into a cache, and run offline against the stub."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import termios
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.agents.stub import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.agents.stub import Stub

VERSIONS = ("2.1.197", "2.1.330")
OLDER = ("1.0.128", "2.0.46")
"""Versions with other layouts, of which there are recorded sessions."""
CACHE = Path(__file__).parents[2] / ".pytest_cache" / "agents"
PACKAGE = "@anthropic-ai/claude-code"
PATIENCE = 120.0
"""Seconds that a loaded machine may take to show something."""

_KEY = "a-word"
_PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\].*?(?:\x07|\x1b\\)|\x1b[78=>]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class UnavailableError(Exception):
    """There is no npm, or it installs no program that runs."""


def install(version: str) -> Path:
    """Return the program of this version, from the cache or from npm.

    Raises:
        UnavailableError: neither has it.
    """
    directory = CACHE / version
    program = directory / "node_modules" / ".bin" / "claude"
    if _version_of(program) != version:
        npm = shutil.which("npm")
        if npm is None:
            raise UnavailableError("needs npm (Debian: apt-get install npm)")
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(directory), f"{PACKAGE}@{version}"]
        directory.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or _version_of(program) != version:
            reason = done.stderr.splitlines() or ["no reason given"]
            raise UnavailableError(f"npm could not install Claude Code {version}: {reason[0]}")
    return program


def _version_of(program: Path) -> str | None:
    if not program.exists():
        return None
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition(" ")[0]


@dataclass(frozen=True)
class Turn:
    """One run of the program. ``sent``: the texts of the user and the model that its last request had."""

    status: int
    output: str
    sent: list[str]


class Terminal:
    """The program at a terminal. What it shows is one text without controls; a cursor that moves counts as a blank."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._written = b""
        self._seen = 0

    @property
    def shown(self) -> str:
        """What was shown since the last key."""
        return " ".join(_CONTROL.sub(" ", self._written[self._seen :].decode(errors="replace")).split())

    def until(self, true: Callable[[str], object], seconds: float = PATIENCE) -> str:
        """Return what is shown as soon as it is enough.

        Raises:
            TimeoutError: it was not enough in this time.
        """
        end = time.monotonic() + seconds
        while not true(self.shown):
            if time.monotonic() > end:
                raise TimeoutError(f"not enough in {seconds:g} seconds: {self.shown}")
            if select.select([self._descriptor], [], [], 0.1)[0]:
                self._written += os.read(self._descriptor, 65536)
        return self.shown

    def enter(self, text: str) -> None:
        """Type a line as soon as the program shows a prompt, and enter it as soon as it shows the line."""
        self.until(lambda shown: _PROMPT in shown)
        self.press(text)
        self.until(lambda shown: text.strip() in shown)  # it may redraw only what was typed
        self.press("\r")

    def press(self, keys: str) -> None:
        """Send keys at once."""
        self._seen = len(self._written)
        os.write(self._descriptor, keys.encode())


@dataclass(frozen=True)
class Program:
    """A version of Claude Code with a home of its own; nothing of this machine's home or environment reaches it."""

    path: Path
    home: Path
    stub: Stub

    @property
    def config(self) -> Path:
        return self.home / ".claude"

    def say(self, prompt: str, *, cwd: Path, resume: str | None = None, cont: bool = False, fork: bool = False) -> Turn:
        """Play one turn without a terminal, in a new session unless one is resumed or continued."""
        before = len(self.stub.requests())
        process = self.start(prompt, cwd=cwd, resume=resume, cont=cont, fork=fork)
        output, _ = process.communicate()
        requests = self.stub.requests()[before:]
        messages = requests[-1]["messages"] if requests else []
        spoken = [text for each in messages if each["role"] != "system" for text in texts(each["content"])]
        return Turn(process.returncode, output, [text for text in spoken if not text.startswith("<system-reminder>")])

    def start(
        self, prompt: str, *, cwd: Path, resume: str | None = None, cont: bool = False, fork: bool = False
    ) -> subprocess.Popen[str]:
        """Begin a turn, and return while it runs."""
        options = ["--allowedTools", "Bash,Agent,Task"]
        options += ["--resume", resume] if resume else []
        options += ["--continue"] if cont else []
        options += ["--fork-session"] if fork else []
        for directory in (self.home, cwd):
            directory.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [self.path, "--print", prompt, *options],
            cwd=cwd,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def show(self, *options: str, cwd: Path, until: Callable[[str], bool], typed: str = "") -> str:
        """Return what the program shows at a terminal, until that is enough; it is ended then.

        ``typed`` is entered as soon as the program shows a prompt.
        """
        with self.terminal(*options, cwd=cwd) as terminal:
            if typed:
                terminal.enter(typed)
            return terminal.until(until)

    @contextmanager
    def terminal(self, *options: str, cwd: Path) -> Iterator[Terminal]:
        """Run the program at a terminal of 80 columns; it is ended after the block."""
        self._skip_questions(cwd)
        outer, inner = pty.openpty()
        termios.tcsetwinsize(inner, (40, 80))
        environment = self._environment() | {"TERM": "xterm"}
        process = subprocess.Popen(
            [self.path, *options], cwd=cwd, env=environment, stdin=inner, stdout=inner, stderr=inner
        )
        os.close(inner)
        try:
            yield Terminal(outer)
        finally:
            process.terminate()
            process.wait()
            os.close(outer)

    def _skip_questions(self, project: Path) -> None:
        """Answer what the program asks a person at its first start, and in a new project."""
        file = self.home / ".claude.json"
        answers = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [_KEY], "rejected": []},
            "projects": {str(project): {"hasTrustDialogAccepted": True}},
        }
        for directory in (self.home, project):
            directory.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps((json.loads(file.read_text()) if file.exists() else {}) | answers))

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "ANTHROPIC_API_KEY": _KEY,
            "ANTHROPIC_BASE_URL": self.stub.address,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def directory(self, project: Path) -> Path:
        """The directory of the project's sessions."""
        return self.config / "projects" / directory_name(str(project))

    def sessions(self, project: Path) -> list[Path]:
        """The project's session files, the newest last; not the empty ones that versions before 2.1 leave."""
        files = (path for path in self.directory(project).glob("*-*-*-*-*.jsonl") if path.stat().st_size)
        return sorted(files, key=lambda path: path.stat().st_mtime_ns)


def directory_name(project: str) -> str:
    """Return the name of the directory that has the sessions of a project at this path."""
    units = memoryview(project.encode("utf-16-le")).cast("H")
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= 200:
        return name
    number = 0
    for unit in units:
        number = (number * 31 + unit) & 0xFFFFFFFF
    number = min(number, 2**32 - number)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"{name[:200]}-{digits}"


def records(session: Path) -> list[dict[str, Any]]:
    """The lines of a session that are JSON."""
    return [json.loads(line) for line in session.read_text().splitlines()]

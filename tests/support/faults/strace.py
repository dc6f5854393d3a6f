"""The installed command under strace: killed, or refused space, at the N-th of its calls that change something."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.projects.world import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

CALLS = (
    "fdatasync", "fsync", "ftruncate", "link", "linkat", "mkdir", "mkdirat", "openat", "pwrite64", "rename",
    "renameat", "renameat2", "rmdir", "unlink", "unlinkat", "utimensat", "write",
)  # fmt: skip
EFFECTS = {"killed": "signal=SIGKILL", "full": "error=ENOSPC"}
_CALL = re.compile(r"\d+ +(\w+)\((.*)")


def unusable() -> str:
    """Say why strace can't be used here; nothing where it can."""
    if shutil.which("strace") is None:
        return "no strace; apt-get install -y strace"
    trial = ["strace", "-qq", "-f", "-o", "/dev/null", "true"]
    tried = subprocess.run(trial, check=False, capture_output=True, text=True)
    return f"strace may not be used here: {tried.stderr.strip()}" if tried.returncode else ""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command has said, and its exit code; that of a killed one is negative."""

    stdout: str
    stderr: str
    exit_code: int

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


@dataclass(frozen=True, slots=True)
class Call:
    """The ``number``-th call of this name that the command makes; ``change`` counts those that change something."""

    name: str
    number: int
    change: int


@dataclass(slots=True)
class Straced:
    """Runs the installed command, or another program, under strace; ``inject`` is what it is to do to which call.

    ``at``: only to calls about this path.
    """

    log: Path
    inject: str = ""
    at: Path | None = None
    program: tuple[str, ...] = (str(SCRIPT),)

    def __call__(self, *args: str | Path, stdin: str | None = None) -> Ended:
        traced = self.inject.partition(":")[0] or ",".join(CALLS)
        injected = ["-e", f"inject={self.inject}"] if self.inject else []
        # Faster, but strace 6.1 sends no signals then.
        fast = [] if "signal=" in self.inject else ["--seccomp-bpf"]
        about = [] if self.at is None else ["-P", str(self.at)]
        options = ["-f", *fast, *about, "-y", "-s0", "-o", str(self.log), "-e", f"trace={traced}", *injected]
        command = ["strace", *options, *self.program, *map(str, args)]
        done = subprocess.run(command, check=False, input=stdin, capture_output=True, text=True)
        return Ended(done.stdout, done.stderr, done.returncode)

    def calls(self, root: Path) -> list[Call]:
        """Return the calls of the last run that were to change something below a directory."""
        count: Counter[str] = Counter()
        changes: Counter[str] = Counter()
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            match = _CALL.match(line)
            if match is None:
                continue
            name, rest = match.groups()
            count[name] += 1
            if f"{root}/" in rest and _changes(name, rest):
                changes[name] += 1
                found.append(Call(name, count[name], changes[name]))
        return found

    def was_hit(self) -> bool:
        """Tell whether the last run came to the call that it was to fail at."""
        text = self.log.read_text(errors="replace")
        return "(INJECTED)" in text or "killed by SIGKILL" in text

    def failed_to_read(self) -> bool:
        """Tell whether the fault befell a call that changes nothing, which no full disk makes fail."""
        failed = (line for line in self.log.read_text(errors="replace").splitlines() if "(INJECTED)" in line)
        return any(match is not None and not _changes(*match.groups()) for match in map(_CALL.match, failed))


def _changes(name: str, rest: str) -> bool:
    return name != "openat" or "O_CREAT" in rest

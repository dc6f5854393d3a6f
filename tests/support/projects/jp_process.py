"""Processes that lock conversations as JP does, step by step on command (docs/design/formats/jp.md#lock-files)."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_PROGRAM = """
import fcntl, json, os, sys

user, workspace = sys.argv[1:]
held, free = {}, []

def path_of(name):
    paths = [os.path.join(root, "locks", name) for root in (user, workspace)]
    return next((path for path in paths if os.path.exists(path)), paths[0])

def take(name):
    path = path_of(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return "busy"
    os.ftruncate(fd, 0)
    os.write(fd, json.dumps({"pid": os.getpid(), "acquired_at": "2026-11-21T20:30:30.0+00:00"}).encode())
    held[name] = fd, path
    return "held"

def close(name):  # the first half of a release
    os.close(held[name][0])
    return "closed"

def unlink(name):  # the second
    os.unlink(held.pop(name)[1])
    return "unlinked"

def probe(_):  # the first half of the sweep at the end of a run
    directory = os.path.join(user, "locks")
    for name in sorted(os.listdir(directory)):
        if name.endswith(".lock"):
            fd = os.open(os.path.join(directory, name), os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free.append(os.path.join(directory, name))
            except OSError:
                pass
            os.close(fd)
    return "probed"

def sweep(_):  # the second, with no lock held
    for path in free:
        os.unlink(path)
    return f"swept {len(free)}"

for line in sys.stdin:
    verb, _, name = line.strip().partition(" ")
    print(globals()[verb](name), flush=True)
"""


class JpProcess:
    """One JP; a context manager, that ends with all its locks released as a killed process's are."""

    def __init__(self, silo: Path, dot_jp: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _PROGRAM, str(silo), str(dot_jp)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def take(self, number: int) -> bool:
        """Try a conversation's lock, once; tell whether it was had."""
        return self._do("take", number) == "held"

    def close(self, number: int) -> None:
        """Release a lock, but leave its name for `unlink`."""
        assert self._do("close", number) == "closed"

    def unlink(self, number: int) -> None:
        assert self._do("unlink", number) == "unlinked"

    def release(self, number: int) -> None:
        self.close(number)
        self.unlink(number)

    def probe(self) -> None:
        """Find the locks that are free, at the end of a run."""
        assert self._do("probe") == "probed"

    def sweep(self) -> int:
        """Unlink what was found free; how many it were."""
        return int(self._do("sweep").removeprefix("swept "))

    def _do(self, verb: str, number: int | None = None) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(verb if number is None else f"{verb} jp-c{number}.lock")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

"""A git that receives a push on a host, and is killed at a chosen time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.projects.http_host import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_RECEIVER = """#!/bin/sh
if [ -f {patience} ]; then
    patience=$(cat {patience})
    rm {patience}
    exec 3<&0  # dash gives a process in the background no other standard input
    git receive-pack "$@" <&3 3<&- &
    receiver=$!
    (sleep "$patience"; kill -9 {killed} && printf x >> {kills}) 3<&- < /dev/null > /dev/null 2>&1 &
    wait "$receiver"
else
    exec git receive-pack "$@"
fi
"""
"""The program of that name; a file has the seconds after which it is killed, once."""


def make_programs(path: Path) -> Path:
    """Make a directory for ``GIT_EXEC_PATH``: it has all programs of git but the receiving one."""
    path.mkdir()
    for program in PROGRAMS.iterdir():
        if program.name != "git-receive-pack":
            (path / program.name).symlink_to(program)
    return path


def mortal_receiver(
    path: Path, programs: Path, killed: str
) -> tuple[Callable[[float | None], object], Callable[[], int]]:
    """Put a receiving git there that kills these processes; return what sets its time, and what counts the kills.

    None instead of a time: nothing is killed any more.
    """
    patience, kills = path / "patience", path / "kills"
    receiver = programs / "git-receive-pack"
    receiver.write_text(_RECEIVER.format(patience=patience, kills=kills, killed=killed))
    receiver.chmod(0o755)
    kills.touch()

    def kill_after(seconds: float | None) -> None:
        if seconds is None:
            patience.unlink(missing_ok=True)
        else:
            patience.write_text(f"{seconds:.3f}")

    return kill_after, lambda: len(kills.read_bytes())

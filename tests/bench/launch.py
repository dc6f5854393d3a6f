"""Runs commands one after the other and prints their wall time, peak memory, how they ended, and the bytes they read.

A program of its own, as small as Python gets: Linux counts the memory of the process that starts a program as
that program's peak, so a large one would hide what is measured. Commands are separated by arguments ``;``.
"""

from __future__ import annotations

import os
import sys
import time


def main() -> None:
    commands: list[list[str]] = [[]]
    for word in sys.argv[1:]:
        if word == ";":
            commands.append([])
        else:
            commands[-1].append(word)
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    peak = status = 0
    before = _read()
    begin = time.perf_counter()
    for command in commands:
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=silent)
        _, status, usage = os.wait4(child, 0)
        peak = max(peak, usage.ru_maxrss)
        if status:
            break
    seconds = time.perf_counter() - begin
    peak *= 1 if sys.platform == "darwin" else 1024
    print(seconds, peak, os.waitstatus_to_exitcode(status), _read() - before)


def _read() -> int:
    """The bytes that this process and those it has waited for have read, from the cache or not; 0 if unknown."""
    try:
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    main()

"""Runs commands one after the other and prints their wall time, their peak memory and how they ended.

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
    begin = time.perf_counter()
    for command in commands:
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=silent)
        _, status, usage = os.wait4(child, 0)
        peak = max(peak, usage.ru_maxrss)
        if status:
            break
    seconds = time.perf_counter() - begin
    print(seconds, peak if sys.platform == "darwin" else peak * 1024, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()

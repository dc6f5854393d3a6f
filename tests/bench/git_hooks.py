"""The time that hooks add to `git switch` and `git commit`: ``python -m tests.bench.git_hooks 1000 10000``.

Each operation is measured in turns, with the hooks and without them (``core.hooksPath`` names an empty directory), so
that a change of the machine's load concerns both. The branches differ in one conversation.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.stores import SMALL, make_store
from tests.support.projects.world import ID_FILE, SCRIPT

REPEATS = 7


def main(counts: list[int]) -> None:
    """Print the medians in ms, one line for each operation and number of conversations.

    The processor time is that of git and of the hooks that it waits for. On a loaded machine it says more.
    """
    for count in counts:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
            for operation, both in measure(Path(name), count).items():
                (wall, busy), (hooked_wall, hooked_busy) = both[False], both[True]
                print(
                    f"{count:6} conversations, git {operation:6}: {wall:5.0f} ms, with hooks {hooked_wall:5.0f} ms; "
                    f"processor {busy:5.0f} ms, with hooks {hooked_busy:5.0f} ms",
                    flush=True,
                )


def measure(top: Path, count: int) -> dict[str, dict[bool, tuple[float, float]]]:
    """Return, by operation, the median times and processor times (ms) without hooks and with them."""
    project = top / "project"
    (project / ".jp").mkdir(parents=True)
    (project / ".jp" / ".id").write_text(ID_FILE)
    make_store(project / ".jp" / "conversations", count, SMALL)
    os.environ.update(
        PATH=f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}",
        XDG_DATA_HOME=str(top / "data"),
        XDG_CONFIG_HOME=str(top / "config"),
        JP_USER_DATA_DIR=str(top / "jp"),
        GIT_CONFIG_GLOBAL=os.devnull,
        **{f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    )
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all")
    subprocess.run([str(SCRIPT), "-q"], cwd=project, check=True)
    subprocess.run([str(SCRIPT), "hooks", "install"], cwd=project, check=True, stdout=subprocess.DEVNULL)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "as a run leaves it", "--allow-empty")
    git(project, "branch", "other")
    (path, *_) = sorted(project.rglob("events.json"))
    times: dict[str, dict[bool, list[tuple[float, float]]]] = {
        name: {False: [], True: []} for name in ("commit", "switch")
    }
    for turn in range(2 * REPEATS):
        has_hooks = bool(turn % 2)
        git(project, "config", "core.hooksPath", ".git/hooks" if has_hooks else ".git/none")
        events = json.loads(path.read_bytes())
        path.write_text(json.dumps([*events, events[-1]], indent=2) + "\n")
        times["commit"][has_hooks].append(git(project, "commit", "-qam", "one event"))
        subprocess.run([str(SCRIPT), "-q"], cwd=project, check=False)
        times["switch"][has_hooks].append(git(project, "switch", "-q", "other"))
        time.sleep(1)
        git(project, "-c", "core.hooksPath=.git/none", "switch", "-q", "main")
        subprocess.run([str(SCRIPT), "-q"], cwd=project, check=False)
    return {name: {which: _medians(taken) for which, taken in both.items()} for name, both in times.items()}


def _medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    walls, busy = zip(*taken, strict=True)
    return statistics.median(walls) * 1000, statistics.median(busy) * 1000


def git(project: Path, *args: str) -> tuple[float, float]:
    """Run git, and return the seconds that it took, and those of the processor."""
    before, started = _busy(), time.perf_counter()
    subprocess.run(["git", *args], cwd=project, check=True)
    return time.perf_counter() - started, _busy() - before


def _busy() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1000, 10000])

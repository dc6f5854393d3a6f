"""The sessions of one project of Claude Code's, beside rsync and another backup: ``python -m tests.bench.sessions``.

The sizes are lognormal (median 15 KB, sigma 1.5), and the largest session is added to them. Each tool has a copy of its
own. Rows: a first run, nothing to do, and one line appended to a session of the median size, or to the largest one.
Bytes are those that the processes have read, from the cache or not. brain-mcp is measured if ``--rival`` names its
program: it keeps byte-exact copies of all sessions of a home.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.agents.program import directory_name
from tests.bench.bench import RECONCILE
from tests.bench.race import BenchError, Contender, Job, race
from tests.bench.stores import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.race import Runs

MEDIAN, SIGMA = 15_000, 1.5
_DAY = 86_400
_LINES = 200
"""Different lengths of lines."""
_TITLES = ("first run", "nothing to do", "one line, a session of the median size", "one line, the largest session")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="sessions (10000)")
    parser.add_argument("--largest", type=int, default=200, metavar="MB", help="the largest session (200)")
    parser.add_argument("--rounds", type=int, default=3, help="of each row but the first run (3)")
    parser.add_argument("--rival", metavar="PROGRAM", help="the program brain-mcp")
    parser.add_argument("--dir", type=Path, help="work below this directory instead of the system's temporary one")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="reconcile-bench-", dir=options.dir))
    try:
        home = Home(base)
        home.make(options.count, options.largest * 10**6)
        total = sum(path.stat().st_size for path in home.live.iterdir())
        print(f"{options.count:,} sessions, {total / 1e6:,.0f} MB; the largest {options.largest} MB")
        for title, runs in rows(home, options.rounds, options.rival):
            print(render(title, runs), flush=True)
    finally:
        shutil.rmtree(base)


@dataclass(slots=True)
class Home:
    """A home with the sessions of one project."""

    base: Path
    sessions: list[Path] = field(default_factory=list)
    """In the order of their sizes."""

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def live(self) -> Path:
        return self.base / ".claude" / "projects" / directory_name(os.path.realpath(self.project))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.base),
            "XDG_CONFIG_HOME": f"{self.base}/config",
            "XDG_DATA_HOME": f"{self.base}/data",
            "XDG_STATE_HOME": f"{self.base}/state",
            "LC_ALL": "C.UTF-8",
        }

    def make(self, count: int, largest: int) -> None:
        """Write the sessions: the same number, the same bytes, but for the times."""
        rng = random.Random(SEED)
        self.project.mkdir()
        self.live.mkdir(parents=True)
        sizes = sorted(int(rng.lognormvariate(math.log(MEDIAN), SIGMA)) for _ in range(count - 1))
        for size in (*sizes, largest):
            path = self.live / f"{uuid.UUID(int=rng.getrandbits(128), version=4)}.jsonl"
            path.write_text("".join(_lines(path.stem, str(self.project), size, rng)))
            used = time.time() - rng.uniform(1, 25) * _DAY
            os.utime(path, (used, used))
            self.sessions.append(path)

    def append(self, session: Path) -> None:
        """Let a session go on by one line."""
        with session.open("a") as file:
            file.write(_line(session.stem, str(self.project), str(uuid.uuid4()), "x" * 400))

    def reconcile(self, number: int = 0) -> Job:
        """A run; another number has a store and a state of its own."""
        names = {"XDG_DATA_HOME": f"{self.base}/data-{number}", "XDG_STATE_HOME": f"{self.base}/state-{number}"}
        return Job(((RECONCILE, "--format", "claude-code", "-w", str(self.project)),), tuple(names.items()))

    def must_be_settled(self) -> None:
        """Look at the plan of a dry run.

        Raises:
            BenchError: it isn't empty.
        """
        job = self.reconcile()
        words = [*job.commands[0], "--dry-run", "--json"]
        ran = subprocess.run(words, env=self.environment | dict(job.environment), capture_output=True, check=False)
        plan = json.loads(ran.stdout)
        if plan["actions"] or plan["held"]:
            raise BenchError(f"the plan should be empty: {plan['summary']}")


def _lines(session: str, cwd: str, size: int, rng: random.Random) -> Iterator[str]:
    """Yield lines of this many bytes together, at least one."""
    texts = ["word " * max(1, int(rng.lognormvariate(4.5, 1.2))) for _ in range(_LINES)]
    written = 0
    while written <= size:
        line = _line(session, cwd, str(uuid.UUID(int=rng.getrandbits(128), version=4)), rng.choice(texts))
        written += len(line)
        yield line


def _line(session: str, cwd: str, identity: str, text: str) -> str:
    known = f'"cwd":"{cwd}","sessionId":"{session}","uuid":"{identity}"'
    return f'{{"type":"user",{known},"message":{{"role":"user","content":"{text}"}}}}\n'


def rows(home: Home, rounds: int, rival: str | None) -> Iterator[tuple[str, Runs]]:
    """Yield each row with what was measured."""
    contenders = [Contender("reconcile", lambda _: home.reconcile(), lambda _: home.must_be_settled())]
    if shutil.which("rsync"):
        copy = home.base / "copy"
        contenders.append(Contender("rsync -a", lambda _: Job((("rsync", "-a", f"{home.live}/", f"{copy}/"),))))
    if rival is not None:
        contenders.append(Contender("brain-mcp", lambda _: Job(((rival, "record"),))))
    first, nothing, usual, largest = _TITLES
    yield first, race(contenders, 1, home.environment)
    race(contenders, 1, home.environment)  # what was written a moment before a run is read once more by the next one
    yield nothing, race(contenders, rounds, home.environment)
    middle = home.sessions[len(home.sessions) // 2]
    for title, session in ((usual, middle), (largest, home.sessions[-1])):
        yield title, _after_each_line(home, session, contenders, rounds)


def _after_each_line(home: Home, session: Path, contenders: Sequence[Contender], rounds: int) -> Runs:
    """Append a line before each round, and let every tool see it."""
    taken: Runs = {contender.label: [] for contender in contenders}
    for _ in range(rounds):
        home.append(session)
        for label, samples in race(contenders, 1, home.environment).items():
            taken[label] += samples
    return taken


def render(title: str, runs: Runs) -> str:
    """Lay out a row: medians."""
    lines = [f"\n{title}", f"  {'':<24}{'seconds':>9}{'MB read':>10}{'MB memory':>11}"]
    for label, samples in runs.items():
        seconds, read, peak = (median(getattr(each, name) for each in samples) for name in ("seconds", "read", "peak"))
        lines.append(f"  {label:<24}{seconds:9.3f}{read / 1e6:10.1f}{peak / 1e6:11.0f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

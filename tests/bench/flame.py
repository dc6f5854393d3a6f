"""Flame graphs of the two runs that do everything: ``python -m tests.bench.flame`` writes them into ``docs``.

py-spy samples the stacks of all processes of a run. A graph shows the time that each function and its callees take: a
wider bar is more time. The share of each module is printed; a library's time counts for the module that calls it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.bench.bench import Bench, make_project

DOCS = Path(__file__).resolve().parents[2] / "docs"
RATE = 1000
"""Samples a second."""
RUNS = {"first-run": "intent", "projection": "reproject"}
"""The name of each graph, and the setting ``missing`` of its run."""
_FRAME = re.compile(r"^(?P<function>.+) \((?P<file>[^()]*?)(?::\d+)?\)$")


def record(bench: Bench, name: str, output: Path) -> None:
    """Sample a run on a new state, by the suffix of ``output`` as a graph or as stacks.

    A projection is into a project of its own. The graph names the command, so that it has no path of this machine.
    """
    project, form = bench.project, "flamegraph" if output.suffix == ".svg" else "raw"
    if name == "projection":
        project = bench.base / f"{name}-{form}" / "project"
        make_project(project)
        (project / ".jp" / "conversations").mkdir()
    sampled, run = (
        bench.base / output.name,
        ["python", "-m", "reconcile_cli", "-w", str(project.relative_to(bench.base))],
    )
    environment = bench.environment | {
        "PATH": str(Path(sys.executable).parent),
        "RECONCILE_STATE_DIR": str(bench.base / f"state-{name}-{form}"),
        "RECONCILE_MISSING": RUNS[name],
    }
    command = ["py-spy", "record", "--subprocesses", "--rate", str(RATE), "--format", form, "--output", output.name]
    subprocess.run([*command, "--", *run], cwd=bench.base, env=environment, check=True, capture_output=True)
    shutil.move(sampled, output)


def shares(stacks: str) -> Counter[str]:
    """Return the samples by the innermost module of reconcile in each stack, from py-spy's raw format."""
    samples: Counter[str] = Counter()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        module = "other"
        for frame in stack.split(";"):
            match = _FRAME.match(frame)
            if match and match["file"].startswith(("reconcile/", "reconcile_cli/", "cli/")):
                module = match["file"]
        samples[module] += int(count)
    return samples


def main() -> None:
    """Make the conversations, and sample both runs."""
    parser = argparse.ArgumentParser(description="Draw flame graphs of a first run and of a projection.")
    parser.add_argument("--size", type=int, default=10_000, help="conversations")
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory(prefix="reconcile-flame-") as directory:
        bench = Bench(Path(directory) / "bench", size, 1)
        bench.make()
        for name in RUNS:
            record(bench, name, DOCS / f"flame-{name}.svg")
            raw = Path(directory) / f"{name}.txt"
            record(bench, name, raw)
            found = shares(raw.read_text(encoding="utf-8"))
            print(f"{name}, {size} conversations")
            for module, count in found.most_common(20):
                print(f"  {count / found.total():5.1%}  {module}")


if __name__ == "__main__":
    main()

"""The benchmark: reconcile against rsync, cp and unison on generated stores.

Whole processes are timed, the interpreter's start included. Every round runs every command once, in rotating
order; a ratio is taken inside its round; printed are the medians. It needs about 2 GB of disk for every 10,000
conversations and round, and half an hour for the default sizes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

PROJECT = Path(__file__).resolve().parents[2]
PEERS = {"rsync": "--version", "unison": "-version"}
START_COUNT = 10
START_ROUNDS = 15

if TYPE_CHECKING:
    from tests.bench import guards, latency, race, sections, table
else:
    # `python -P` puts no directory of ours on the path.
    sys.path.insert(0, str(PROJECT))
    guards, latency, race, sections, table = (
        importlib.import_module(f"tests.bench.{name}") for name in ("guards", "latency", "race", "sections", "table")
    )


def main() -> None:
    options = _options()
    base = Path(tempfile.mkdtemp(prefix="reconcile-bench-", dir=options.dir))
    try:
        print(_heading(base), flush=True)
        results = {} if options.watch or options.library else _measure(options, base)
        floor = race.measure(race.Job((("true",),)), dict(os.environ)).peak
        if results:
            print(table.render(results, sections.REFERENCES, floor) + "\n", flush=True)
        if not options.watch:
            print(guards.render(_guards(options, base)) + "\n", flush=True)
        if not options.library:
            print(latency.render(_latencies(options, base)), flush=True)
    except race.BenchError as error:
        sys.exit(f"bench: {error}")
    finally:
        shutil.rmtree(base)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=_sizes, default=[1_000, 10_000, 30_000], help="such as 1000,10000")
    parser.add_argument("--rounds", type=_sizes, default=[5], help="one number, or one for each size: 9,5,3")
    parser.add_argument("--dir", type=Path, help="work below this directory instead of the system's temporary one")
    parser.add_argument("--watch", action="store_true", help="only what a watcher takes")
    parser.add_argument("--library", action="store_true", help="only what an event costs through the library")
    options = parser.parse_args()
    if len(options.rounds) == 1:
        options.rounds *= len(options.sizes)
    if len(options.rounds) != len(options.sizes):
        parser.error("--rounds: expected one number, or as many as sizes")
    return options


def _sizes(text: str) -> list[int]:
    return [max(1, int(word)) for word in text.split(",")]


def _measure(options: argparse.Namespace, base: Path) -> table.Results:
    results: table.Results = {}
    # Nothing is removed before the end: file systems are slow to make what was removed a moment ago.
    for size, rounds in zip(options.sizes, options.rounds, strict=True):
        bench = sections.Bench(base / str(size), size, rounds)
        bench.make()
        for name, measured in {
            sections.NO_OP: bench.no_op,
            sections.CHANGED: bench.changed,
            sections.PROJECTION: bench.projection,
            sections.FIRST: bench.first_run,
        }.items():
            results.setdefault(name, {})[size] = measured()
    small = sections.Bench(base / "start", START_COUNT, START_ROUNDS)
    small.make()
    results[sections.START] = {START_COUNT: small.start()}
    return results


def _guards(options: argparse.Namespace, base: Path) -> dict[int, guards.Cycle]:
    found = {}
    for size in options.sizes:
        bench = sections.Bench(base / f"library-{size}", size, 1)
        bench.make()
        bench.settle()
        print(f"  {size:,}: the library", file=sys.stderr, flush=True)
        found[size] = guards.measure(bench)
    return found


def _latencies(options: argparse.Namespace, base: Path) -> dict[int, dict[str, latency.Latency | None]]:
    found = {}
    for size in options.sizes:
        bench = sections.Bench(base / f"watch-{size}", size, 1)
        bench.make()
        bench.settle()
        print(f"  {size:,}: watching", file=sys.stderr, flush=True)
        found[size] = {"inotifywait, rsync -a": latency.loop(bench)}
        bench.settle()
        found[size]["reconcile watch"] = latency.watching(bench, sections.RECONCILE)
    return found


def _heading(base: Path) -> str:
    kind = _said("df", "--output=fstype", str(base)) or "an unknown file system"
    versions = [_said(sections.RECONCILE, "--version"), f"Python {platform.python_version()}"]
    missing = []
    for peer, option in PEERS.items():
        if shutil.which(peer):
            versions.append(_said(peer, option))
        else:
            missing.append(peer)
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores, {kind}"
    lines = [machine, *versions, *(f"{peer} is not installed and left out" for peer in missing)]
    return "\n".join([*lines, "ratio: to the command marked = 1, within each round; medians; MB: peak memory", ""])


def _said(*words: str) -> str:
    """What a command says: the last line of df, the first of the others; nothing where it can't be run."""
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    lines = ran.stdout.splitlines() or [""]
    return " ".join(lines[-1 if words[0] == "df" else 0].split())


if __name__ == "__main__":
    main()

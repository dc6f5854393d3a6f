"""The benchmark: reconcile against rsync, cp, unison and git on generated stores.

Whole processes are timed, the interpreter's start included. Every round runs every command once, in rotating
order; a ratio is taken inside its round; printed are the medians. It needs about 2 GB of disk for every 10,000
conversations and round, and half an hour for the default sizes.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import guards, latency, race, results, stores, table
from tests.bench.bench import RECONCILE, Bench
from tests.bench.results import START_COUNT
from tests.bench.sections import GROWTH, SECTIONS, USUAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.results import Results

PROJECT = Path(__file__).resolve().parents[2]
PEERS = {"rsync": "--version", "unison": "-version", "git": "--version"}
BESIDES = ("library", "watch")
"""Questions with a table of their own."""
SIZES = [1_000, 10_000, 30_000]
GROWTH_SIZES = [10_000, 100_000]
FEWER_ROUNDS = 30_000
"""Conversations from which 3 rounds have to do: every round of a projection there fills 6 GB anew."""
START_ROUNDS = 3
"""Rounds of the start-up for each of the others: it is short, and so is what disturbs it."""


def main() -> None:
    options = _options()
    base = Path(tempfile.mkdtemp(prefix="reconcile-bench-", dir=options.dir))
    floor = race.measure(race.Job((("true",),)), dict(os.environ)).peak
    found = results.begun(options.save, _heading(base), floor)
    failed = None
    try:
        _measure(options, base, found)
    except race.BenchError as error:
        failed = f"bench: {error}"
    finally:
        shutil.rmtree(base)
    print(table.render(found))
    sys.exit(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=_numbers, help="such as 1000,10000")
    parser.add_argument("--rounds", type=_numbers, help="one number, or one for each size: 9,5,3")
    parser.add_argument("--dir", type=Path, help="work below this directory instead of the system's temporary one")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the figures here, beside those of earlier runs")
    parser.add_argument("--growth", action="store_true", help="how it grows: small files, but many of them")
    usual = (*USUAL, *BESIDES)
    said = f"some of {','.join(usual)}; with --growth some of {','.join(GROWTH)}"
    parser.add_argument("--only", type=lambda text: text.split(","), help=said)
    options = parser.parse_args()
    every = tuple(GROWTH) if options.growth else usual
    options.only = options.only or every
    if unknown := set(options.only) - set(every):
        parser.error(f"--only: expected some of {', '.join(every)}, not {', '.join(sorted(unknown))}")
    options.sizes = options.sizes or (GROWTH_SIZES if options.growth else SIZES)
    options.rounds = options.rounds or [3 if size >= FEWER_ROUNDS else 5 for size in options.sizes]
    if len(options.rounds) == 1:
        options.rounds *= len(options.sizes)
    if len(options.rounds) != len(options.sizes):
        parser.error("--rounds: expected one number, or as many as sizes")
    return options


def _numbers(text: str) -> list[int]:
    return [max(1, int(word)) for word in text.split(",")]


def _measure(options: argparse.Namespace, base: Path, found: Results) -> None:
    """Measure what is asked for, at every size.

    Nothing is removed before the end: file systems are slow to make what was removed a moment ago.
    """
    plan = dict(zip(options.sizes, options.rounds, strict=True))
    if options.growth:
        for size, rounds in plan.items():
            asked = [name for name in GROWTH if name in options.only]
            _ask(asked, Bench(base / str(size), size, rounds, stores.SMALL), found, options.save)
        return
    first = options.rounds[0]
    asked = [name for name in (*USUAL, *BESIDES) if name in options.only]
    if "start" in asked:
        asked.remove("start")
        _ask(["start"], Bench(base / "start", START_COUNT, START_ROUNDS * first), found, options.save)
    if START_COUNT not in plan:  # the memory of the others is looked at above this one's
        sections = [name for name in asked if name in USUAL]
        _ask(sections, Bench(base / "least", START_COUNT, first), found, options.save)
    for size, rounds in plan.items():
        _ask(asked, Bench(base / str(size), size, rounds), found, options.save)


def _ask(names: Sequence[str], bench: Bench, found: Results, save: Path | None) -> None:
    """Measure these questions one after the other, and keep each answer."""
    if names:
        bench.make()
    for name in names:
        print(f"  {bench.count:,}: {name}", file=sys.stderr, flush=True)
        match name:
            case "library":
                found.library[bench.count] = guards.measure(bench)
            case "watch":
                found.watch[bench.count] = latency.measure(bench)
            case _:
                found.sections.setdefault(name, {})[bench.count] = SECTIONS[name].measure(bench)
        if save is not None:
            results.save(found, save)


def _heading(base: Path) -> list[str]:
    kind = _said("df", "--output=fstype", str(base)) or "an unknown file system"
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores, {kind}"
    commit = _said("git", "-C", str(PROJECT), "describe", "--always", "--dirty", "--exclude=*")
    lines = [machine, f"{_said(RECONCILE, '--version')}, commit {commit or 'unknown'}"]
    lines.append(f"Python {platform.python_version()}")
    for peer, option in PEERS.items():
        lines.append(_said(peer, option) if shutil.which(peer) else f"{peer} is not installed and left out")
    return lines


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

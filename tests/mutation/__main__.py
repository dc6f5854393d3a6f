"""`make mutants`: small mistakes in the pure layer, and which of them no pure test notices.

A survivor needs a test, or simpler code, or a line in equivalent.txt with the reason why it changes nothing.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.mutation.trying import OPTIONS, TESTS, Module, Outcome, Trials, modules

if TYPE_CHECKING:
    from tests.mutation.changes import Mutant

EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def known() -> dict[tuple[str, str], str]:
    """Return the mutants that change nothing, with the reason."""
    found = {}
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            mutant, _, reason = line.partition("  # ")
            module, _, change = mutant.partition(" ")
            found[module, change] = reason
    return found


class Count:
    """What became of the mutants, and what still may be tried."""

    def __init__(self, every: int, seconds: float, only: str = "") -> None:
        self.every = every
        self.only = only
        self.until = time.monotonic() + seconds
        self.equivalent = known()
        self.seen = 0
        self.found: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def wanted(self, module: Module, mutant: Mutant) -> bool:
        self.found[module.name]["all"] += 1
        self.seen += 1
        if (module.name, str(mutant)) in self.equivalent:
            self.found[module.name]["equivalent"] += 1
            return False
        if self.only not in str(mutant):
            return False
        return self.seen % self.every == 0 and time.monotonic() < self.until

    def report(self, module: Module, mutant: Mutant, outcome: Outcome, seconds: float) -> None:
        self.found[module.name][outcome] += 1
        if outcome in {Outcome.SURVIVED, Outcome.UNREACHED}:
            print(f"{module.path}:{mutant.lines[-1]}: {module.name} {mutant}  # {outcome}, {seconds:.1f} s", flush=True)

    def table(self) -> str:
        lines = [
            "| Module | Mutants | Equivalent | Tried | Killed | Survived |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        total: Counter[str] = Counter()
        for name, found in [*self.found.items(), ("all", total)]:
            killed = found[Outcome.KILLED] + found[Outcome.ENDLESS]
            left = found[Outcome.SURVIVED] + found[Outcome.UNREACHED]
            lines.append(f"| {name} | {found['all']} | {found['equivalent']} | {killed + left} | {killed} | {left} |")
            total.update(found)
        return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("module", nargs="*", help="a pure module, as planning.rules.views; all without one")
    parser.add_argument("--every", type=int, default=1, help="try one in so many")
    parser.add_argument("--only", default="", help="try those whose description contains this text")
    parser.add_argument(
        "--for", type=float, default=float("inf"), dest="seconds", help="start none after so many seconds"
    )
    options = parser.parse_args()
    chosen = list(modules(options.module))
    count = Count(options.every, options.seconds, options.only)
    with TemporaryDirectory() as scratch:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
        pytest.main([*OPTIONS, *TESTS], plugins=[Trials(chosen, count.wanted, count.report)])
    print(count.table())


if __name__ == "__main__":
    main()

"""Run every check for a time: ``python -m tests.fuzz.run --minutes 60``; inputs that fail are kept.

Rounds of random inputs by Hypothesis, and with atheris, where it is installed, of inputs that it finds by looking
at which code they reach. A check that has failed is left out of the rounds that follow. Exit code 1: something failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import kept
from tests.fuzz.checks import CHECKS, Check

ROUND = 300
"""Inputs of one check in one round; atheris has as long as all checks' rounds before it took together."""
_UNITS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", choices=list(CHECKS), action="append", help="one check, or several")
    options = parser.parse_args()
    until = time.monotonic() + options.minutes * 60
    checks = [CHECKS[name] for name in options.only or CHECKS]
    guided = importlib.util.find_spec("atheris") is not None
    if not guided:
        print("atheris isn't installed here (pip install '.[fuzz]'): only Hypothesis looks for inputs", flush=True)
    failed: dict[str, Path] = {}
    inputs: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="reconcile-fuzz-") as corpus:
        while time.monotonic() < until:
            begin = time.monotonic()
            for check in checks:
                if check.name not in failed and time.monotonic() < until:
                    inputs[check.name] += _round(check, failed)
            able = [check for check in checks if guided and check.seeds is not None and check.name not in failed]
            for check in able:
                seconds = int(min((time.monotonic() - begin) / len(able) + 1, until - time.monotonic()))
                if seconds > 0:
                    inputs[f"{check.name}, atheris"] += _guided(check, Path(corpus), seconds, failed)
            if len(failed) == len(checks):
                break
    for name, count in inputs.items():
        print(f"{count:10,} {name}")
    for name, path in failed.items():
        print(f"failed: {name}, kept as {path}")
    return 1 if failed else 0


def _round(check: Check, failed: dict[str, Path]) -> int:
    """Try some inputs, other ones each time, and keep the simplest that fails."""
    count = 0
    last: list[Any] = []

    @seed(random.getrandbits(64))
    @settings(
        max_examples=ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(check.inputs)
    def holds(value: Any) -> None:
        nonlocal count
        count += 1
        try:
            check.run(value)
        except BaseException:
            last[:] = [value]
            raise

    try:
        holds()
    except Exception:  # noqa: BLE001 - whatever a check comes to grief over
        print(traceback.format_exc(limit=-6)[-5000:], file=sys.stderr, flush=True)
        failed[check.name] = kept.keep(check.name, *last)
    return count


def _guided(check: Check, corpus: Path, seconds: int, failed: dict[str, Path]) -> int:
    """Have atheris, which ends with its process, look for inputs of a check for so many seconds."""
    directory, found = corpus / check.name, corpus / "found" / check.name
    if not directory.exists():
        directory.mkdir()
        found.mkdir(parents=True)
        for at, value in enumerate(check.seeds() if check.seeds else ()):
            (directory / f"seed-{at}").write_bytes(json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")
    words = [f"-max_total_time={seconds}", f"-artifact_prefix={found}/", "-print_final_stats=1", "-max_len=20000"]
    command = [sys.executable, "-m", "tests.fuzz.guided", check.name, *words, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    for path in found.iterdir():
        print(done.stderr[-3000:], file=sys.stderr)
        failed[check.name] = kept.keep(check.name, path.read_bytes())
    if done.returncode and check.name not in failed:
        raise SystemExit(f"atheris failed:\n{done.stderr[-3000:]}")
    units = _UNITS.search(done.stderr)
    return int(units[1]) if units else 0


if __name__ == "__main__":
    sys.exit(main())

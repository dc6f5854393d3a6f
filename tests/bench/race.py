"""Runs commands against each other: in rounds, in rotating order."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAUNCH = Path(__file__).with_name("launch.py")


class BenchError(Exception):
    """A command failed, or did not do what it was measured for."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is timed as one: commands one after the other, and the environment they need beyond the common one."""

    commands: tuple[tuple[str, ...], ...]
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to do the work. ``prepare`` and ``check`` are not timed; both are told the round."""

    label: str
    prepare: Callable[[int], Job]
    check: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Sample:
    """One run; ``read``: the bytes that it read, from the cache or not, 0 where the system doesn't count them."""

    seconds: float
    peak: int
    read: int = 0


Runs = dict[str, list[Sample]]
"""By contender, in the order of the rounds."""


def race(contenders: Sequence[Contender], rounds: int, environment: dict[str, str]) -> Runs:
    """Run every contender once in each round."""
    samples: Runs = {contender.label: [] for contender in contenders}
    for number in range(rounds):
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            job = contender.prepare(number)
            # What others left unwritten would be paid by whoever flushes.
            os.sync()
            sample = measure(job, environment)
            print(f"    {number + 1}: {sample.seconds:8.3f} s  {contender.label}", file=sys.stderr, flush=True)
            contender.check(number)
            samples[contender.label].append(sample)
    return samples


def measure(job: Job, environment: dict[str, str]) -> Sample:
    """Run one job.

    Raises:
        BenchError: a command failed.
    """
    words = [word for command in job.commands for word in (";", *command)][1:]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCH), *words],
        env=environment | dict(job.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise BenchError(f"{' '.join(words)}: {ran.stderr.strip()}")
    seconds, peak, status, read = ran.stdout.split()
    if status != "0":
        raise BenchError(f"{' '.join(words)}: exit status {status}\n{ran.stderr.strip()}")
    return Sample(float(seconds), int(peak), int(read))

"""CPU time of the rules, in microseconds a conversation: no disk, no process, only `plan_by_rules` on worlds in memory.

``python -m tests.bench.rules`` measures this checkout. ``--against DIR`` measures another checkout as well, in
alternating processes, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.fs.hashing import digest
from reconcile.model.baseline import Baseline, BaselineEntry
from reconcile.model.options import Missing
from reconcile.model.policy import Policy
from reconcile.model.snapshot import (
    METADATA,
    STREAM,
    Copy,
    Event,
    File,
    Metadata,
    ParentKind,
    ParentRef,
    Partition,
    Side,
    Snapshot,
    Stream,
)
from reconcile.model.units import Rules
from reconcile.planning.planner import plan_by_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.snapshot import Digest

PROJECT = Path(__file__).resolve().parents[2]
FIRST, NOW_NS = 17_528_832_001, 1_735_776_000 * 10**9
FAMILY = 4
"""Of so many conversations that follow each other the first is the parent of the others."""
EDITED = 100
"""One in so many is edited, where some are."""

World = tuple[Snapshot, Snapshot, Baseline, Policy]
FORMAT = get_format("jp")
RULES = Rules(FORMAT, digest)


def in_sync(count: int) -> World:
    """Nothing has changed since the last run."""
    return _sides(count, _sound), _sides(count, _sound, Side.WORKSPACE), _agreed(count), Policy()


def adopt(count: int) -> World:
    """The first run; both sides are equal."""
    return _sides(count, _sound), _sides(count, _sound, Side.WORKSPACE), Baseline(), Policy()


def project(count: int) -> World:
    """Everything is in the store alone and belongs in the workspace."""
    return _sides(count, _sound), _sides(0, _sound, Side.WORKSPACE), Baseline(), Policy(missing=Missing.REPROJECT)


def copy(count: int) -> World:
    """Everything is in the workspace alone."""
    return _sides(0, _sound), _sides(count, _sound, Side.WORKSPACE), Baseline(), Policy()


def edited(count: int) -> World:
    """As in sync, but one in a hundred is edited in the workspace."""

    def some(number: int, made: Copy) -> Copy:
        return made if number % EDITED else _edited(made)

    return _sides(count, some), _sides(count, some, Side.WORKSPACE), _agreed(count), Policy()


WORLDS: dict[str, Callable[[int], World]] = {
    "in sync": in_sync,
    "equal, first run (adopt)": adopt,
    "all to project": project,
    "all to copy": copy,
    "1 % edited": edited,
}


def _sides(count: int, shape: Callable[[int, Copy], Copy], side: Side = Side.STORE) -> Snapshot:
    copies = tuple(shape(number, _copy(number, side)) for number in range(count))
    return Snapshot(side, exists=True, identity=f"{side}:0", copies=copies)


def _sound(_: int, made: Copy) -> Copy:
    return made


def _id(number: int) -> str:
    return f"jp-c{FIRST + number}"


def _parent(number: int) -> str | None:
    return _id(number - number % FAMILY) if number % FAMILY else None


def _path(number: int, side: Side) -> str:
    name = FORMAT.dirname(_id(number), f"title {number}")
    parent = number - number % FAMILY
    if side is Side.STORE or parent == number:
        return name
    return f"{_path(parent, side)}/conversations/{name}"


def _copy(number: int, side: Side) -> Copy:
    time_ns = NOW_NS - number * 10**9
    digests = [digest(f"{name} {number}".encode()) for name in ("metadata", "config", "events")]
    names = (FORMAT.metadata_file, *FORMAT.stream_files)
    files = tuple(File(name, 1_000, time_ns, found) for name, found in zip(names, digests, strict=True))
    parent = _parent(number)
    stated = ParentRef(ParentKind.ABSENT) if parent is None else ParentRef(ParentKind.ID, parent)
    metadata = Metadata(f"title {number}", stated, local=False, content=b"{}")
    container = parent if side is Side.WORKSPACE else None
    path = _path(number, side)
    return Copy(side, _id(number), path, Partition.LIVE, container, files, metadata, Stream(20, None))


def _edited(made: Copy) -> Copy:
    """Return the copy with its events loaded; the workspace's has one more."""
    events = tuple(Event(f"e{number}", f"c{number}") for number in range(20 + (made.side is Side.WORKSPACE)))
    stream = Stream(len(events), None, events, "base")
    if made.side is Side.STORE:
        return replace(made, stream=stream)
    *others, last = made.files
    newer = replace(last, digest=digest(b"edited" + made.path.encode()), mtime_ns=last.mtime_ns + 10**9)
    return replace(made, stream=stream, files=(*others, newer))


def _agreed(count: int) -> Baseline:
    agreed, parents = {}, {}
    history: dict[tuple[str, str], tuple[Digest, ...]] = {}
    for number in range(count):
        made = _copy(number, Side.WORKSPACE)
        metadata, *stream = (str(file.digest) for file in made.files)
        units = {METADATA: metadata, STREAM: "+".join(stream)}
        parent = _parent(number)
        agreed[_id(number)] = BaselineEntry(units, parent, f"title {number}", parent, made.path)
        parents[_id(number)] = parent
        history |= {(_id(number), name): (found,) for name, found in units.items()}
    remembered = Baseline(agreed=agreed, parents=parents, history=history)
    return replace(remembered, checkout_known=True, layout=Policy().layout.value, store_identity="store:0")


def measure(count: int, rounds: int) -> dict[str, float]:
    """Return the microseconds a conversation of each world, the median of some rounds."""
    found = {}
    for name, make in WORLDS.items():
        world = make(count)
        store, workspace, memory, policy = world
        times = []
        for _ in range(rounds):
            gc.collect()
            begun = time.process_time()
            plan_by_rules(store, workspace, memory, policy, RULES, NOW_NS)
            times.append((time.process_time() - begun) / count * 1e6)
        found[name] = median(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="conversations (10000)")
    parser.add_argument("--rounds", type=int, default=3, help="plans of each world in one process (3)")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout to compare with")
    parser.add_argument("--pairs", type=int, default=5, help="alternations (5)")
    parser.add_argument("--json", action="store_true", help="print this checkout's figures as JSON")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure(options.count, options.rounds)))
        return
    homes = [PROJECT] if options.against is None else [options.against.resolve(), PROJECT]
    figures: dict[Path, list[dict[str, float]]] = {home: [] for home in homes}
    for _ in range(options.pairs):
        for home in homes:
            figures[home].append(_measured(home, options))
    heading = "CPU time, microseconds a conversation"
    print(heading if options.against is None else f"{heading}: {options.against}, this checkout")
    for name in WORLDS:
        values = [f"{median(found[name] for found in figures[home]):8.1f}" for home in homes]
        print(f"{name:26}{''.join(values)}")


def _measured(home: Path, options: argparse.Namespace) -> dict[str, float]:
    words = [sys.executable, __file__, "--json", "--count", str(options.count), "--rounds", str(options.rounds)]
    environment = {**os.environ, "PYTHONPATH": str(home), "PYTHONSAFEPATH": "1"}
    ran = subprocess.run(words, env=environment, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


if __name__ == "__main__":
    main()

"""Measures the commands that people type daily, beside a run with nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench import stores
from tests.bench.race import Contender

if TYPE_CHECKING:
    from tests.bench.bench import Bench
    from tests.bench.race import Job, Runs

REFERENCE = "reconcile"
LOOKS = ("--json", "status", "status ID", "diff ID", "--only ID", "ls", "ls --tree", "doctor")
"""Commands that change nothing."""
CHANGES = ("local ID", "project ID", "set-parent ID PARENT", "rm ID", "resolve ID", "undo")
LABELS = (*LOOKS, *CHANGES)
_NOT_JSON = b"<<<<<<< HEAD\n"


def commands(bench: Bench) -> Runs:
    """Measure every command on both sides at rest; a changing one concerns one conversation, and is reverted after."""
    _settle(bench)
    parent = _id(bench, -1)
    contenders = [
        Contender(REFERENCE, lambda _: bench.job()),
        *(_looking(bench, words) for words in LOOKS),
        _changing(bench, "local ID", reverted_by=("project", "ID")),
        _changing(bench, "project ID", prepared_by=("local", "ID")),
        _changing(bench, "set-parent ID PARENT", parent, reverted_by=("set-parent", "ID", "--none")),
        _changing(bench, "rm ID", "--yes", reverted_by=("undo", "--yes")),
        _resolve(bench),
        _undo(bench),
    ]
    return bench.race(contenders)


def _id(bench: Bench, index: int) -> str:
    return bench.names[index].partition("-")[0]


def _target(bench: Bench, number: int) -> str:
    """Return the conversation that a round's commands concern, never the last one, which is the parent."""
    return bench.names[number * 7 % (bench.count - 1)]


def _run(bench: Bench, *words: str) -> None:
    bench.once(Contender(f"reconcile {' '.join(words)} (not counted)", lambda _: bench.job(*words)))


def _words(bench: Bench, number: int, words: tuple[str, ...]) -> tuple[str, ...]:
    own = _target(bench, number).partition("-")[0]
    return tuple(own if word == "ID" else word for word in words)


def _settle(bench: Bench) -> None:
    """Bring both sides to rest, and have a second run know what was written a moment before the first one."""
    bench.settle()
    _run(bench)


def _looking(bench: Bench, label: str) -> Contender:
    return Contender(f"reconcile {label}", lambda number: bench.job(*_words(bench, number, tuple(label.split()))))


def _changing(
    bench: Bench,
    label: str,
    *more: str,
    prepared_by: tuple[str, ...] = (),
    reverted_by: tuple[str, ...] = (),
) -> Contender:
    """Return a command that changes one conversation, which uncounted commands prepare and revert."""
    command = (*(word for word in label.split() if word != "PARENT"), *more)

    def prepare(number: int) -> Job:
        if prepared_by:
            _run(bench, *_words(bench, number, prepared_by))
            _run(bench)
        return bench.job(*_words(bench, number, command))

    def check(number: int) -> None:
        if reverted_by:
            _run(bench, *_words(bench, number, reverted_by))
        _settle(bench)

    return Contender(f"reconcile {label}", prepare, check)


def _resolve(bench: Bench) -> Contender:
    """Return the decision about a conversation whose metadata in the workspace is broken."""

    def prepare(number: int) -> Job:
        (bench.workspace / _target(bench, number) / "metadata.json").write_bytes(_NOT_JSON)
        return bench.job(*_words(bench, number, ("resolve", "ID", "--take", "store")))

    return Contender("reconcile resolve ID", prepare, lambda _: _settle(bench))


def _undo(bench: Bench) -> Contender:
    """Return the undoing of a run that has copied one edit; afterwards both sides have the store's version."""

    def prepare(number: int) -> Job:
        stores.change([bench.workspace], [_target(bench, number)], number, 1)
        _run(bench)
        return bench.job("undo", "--yes")

    def check(number: int) -> None:
        _run(bench, *_words(bench, number, ("resolve", "ID", "--take", "store")))
        _settle(bench)

    return Contender("reconcile undo", prepare, check)

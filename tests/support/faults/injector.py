"""A scenario's command under faults: whatever goes wrong at whichever step, the next run comes to the same end."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
import shutil
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

from tests.support.faults.fault_points import Mode, under_fault
from tests.support.faults.strace import EFFECTS, Straced
from tests.support.projects.world import DATABASE
from tests.support.scenarios.listing import show_tree
from tests.support.scenarios.pure_level import Names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.support.faults.strace import Call
    from tests.support.scenarios.commands import Command
    from tests.support.scenarios.disk_level import DiskLevel
    from tests.support.scenarios.trees import Tree

SAVED = "state-saved"
ATTEMPTS = 20
"""How often a command is run until it makes a call: it reads a file again that may have changed since its last time
stamp, so it opens fewer files in a run that the machine delays, and the numbers of its later calls change.
"""
SETTLES = (("resolve",), ("rm",), ("set-parent",), ("project", "--behind"))
"""Commands after which the files say what was asked for: cut short there, what goes with it is any run's to do, and not
due by the same command any more.
"""
_SLUG = re.compile(r"(?<=\d)-[a-z][\w-]*")
"""The part of a directory's name that comes from the title."""
End = dict[str, list[str]]
"""Both sides as listings, and what the next plan says."""


@dataclass(slots=True)
class Injector:
    """Which faults befall each command: every ``stride``-th step of each of the ``modes``, from the ``first`` on.

    Commands with nothing to do are left in peace: what they do to the state, the others do as well.

    ``source``: the scenario's text, for the names of what its runs make up. ``injected`` counts. ``compares_names``:
    directories must have the same names in the end.
    """

    modes: Iterable[Mode] = ()
    source: tuple[str, ...] = ()
    stride: int = 1
    first: int = 1
    compares_names: bool = True
    injected: Counter[str] = field(default_factory=Counter)

    def inject(self, level: DiskLevel, command: Command, before: dict[str, Tree]) -> None:
        """Run a command with every fault and without any; put everything back as it was after each."""
        gc.collect()  # each fork is as slow as the process is large
        with mock.patch.object(os, "fsync"):
            saved = Saved(level, command, before)
            outcome = level.invoke(command)
            if (after := _follow_up(command)) is not None:
                level.invoke(after)
            clean = self.end(level, command)
            saved.restore()
            if outcome.refused or not (outcome.actions or outcome.items):
                saved.forget()
                return
            for mode in self.modes:
                for step in itertools.count(self.first, self.stride):
                    spoilt = partial(under_fault, mode, step, partial(_tolerant, level, command))
                    hit = self.one(level, command, before, clean, f"{mode} at step {step}", spoilt)
                    self.injected[mode] += hit
                    saved.restore()
                    if not hit:
                        break
            saved.forget()

    def one(
        self,
        level: DiskLevel,
        command: Command,
        before: dict[str, Tree],
        clean: End,
        what: str,
        spoilt: Callable[[], bool],
    ) -> bool:
        """Run a command with one fault, and again without; tell whether the fault befell it."""
        where = f"{what} of {command.argv}"
        try:
            hit = spoilt()
            _check_census(level, command, before)
            if hit or _follow_up(command) is not None:
                # Who asks again for what has come back as a whole is offered more.
                back = command.recovers and bool(clean[command.workspace])
                complete = back and self.listings(level, command).items() <= clean.items()
                code = _run_again(level, command.plain() if complete else command, before)
                assert code in (0, 4), f"the next run ends with {code}"
                _check_census(level, command, before)
            end = self.end(level, command)
            if hit and end != clean and any(command.argv[: len(words)] == words for words in SETTLES):
                level.invoke(command.plain())
                _check_census(level, command, before)
                end = self.end(level, command)
        except _ReadError:
            raise
        except Exception as error:
            raise AssertionError(f"{where}: {error}") from error
        differ = {side: (clean[side], lines) for side, lines in end.items() if lines != clean[side]}
        assert not differ, f"{where}: the next run came to another end: {differ}"
        return hit

    def end(self, level: DiskLevel, command: Command) -> End:
        """Look at both sides, and at what the next run would do."""
        names = Names.beside(self.source)
        end = self.listings(level, command, names)
        left = [str(path) for path in level.root.rglob(".reconcile-*") if path.is_dir()]
        assert not left, f"staging directories that are left: {left}"
        again = level.look_again(command)
        # What is set aside has no order of its own.
        end["plan"] = [names.shown(line) for line in (*again.actions, *sorted(again.items))]
        return end

    def listings(self, level: DiskLevel, command: Command, names: Names | None = None) -> End:
        """Look at both sides."""
        names = names or Names.beside(self.source)
        found = {}
        for side in level.sides(command):
            tree = level.tree(side)
            names.learn(tree or ())
            staged = {path for path in tree or {} if path.startswith(".reconcile-")}
            shown = names.tree({path: entry for path, entry in sorted((tree or {}).items()) if path not in staged})
            # A time that no scenario has is that of the run.
            lines = [re.sub(r"@\d{16,}", "now", line) for line in show_tree(shown or {})]
            found[side] = lines if self.compares_names else [" ".join(_SLUG.sub("", line).split()) for line in lines]
        return found


class _ReadError(Exception):
    """The number of the call was that of another one, which only reads."""


@dataclass(slots=True)
class StraceInjector(Injector):
    """Real processes: each system call that changes something, one by one, after so many commands without faults."""

    undisturbed: int = 0

    def inject(self, level: DiskLevel, command: Command, before: dict[str, Tree]) -> None:
        if self.undisturbed:
            self.undisturbed -= 1
            return
        usual, straced = level.command, Straced(level.root / "strace.log")
        level.forget_locks()
        saved = Saved(level, command, before)

        def spoilt(inject: str) -> bool:
            level.command, straced.inject = straced, inject
            try:
                _tolerant(level, command)
            finally:
                level.command = usual
            if straced.failed_to_read():
                raise _ReadError
            return straced.was_hit()

        spoilt("")
        calls = straced.calls(level.root)
        clean = self.end(level, command)
        saved.restore()

        def number(call: Call) -> int:
            """Return the present number of a call, by a run without a fault."""
            spoilt("")
            present = straced.calls(level.root)
            saved.restore()
            same = (each.number for each in present if (each.name, each.change) == (call.name, call.change))
            return next(same, call.number)

        for effect, how in EFFECTS.items():
            for call in calls[self.first - 1 :: self.stride]:
                place = call.number
                for _attempt in range(ATTEMPTS):
                    inject = f"{call.name}:{how}:when={place}"
                    try:
                        hit = self.one(level, command, before, clean, inject, partial(spoilt, inject))
                    except _ReadError:
                        hit = False
                    saved.restore()
                    if hit:
                        break
                    place = number(call)
                assert hit, f"{inject}: the command did not make so many calls in {ATTEMPTS} runs"
                self.injected[effect] += 1
        saved.forget()


def _check_census(level: DiskLevel, command: Command, before: dict[str, Tree]) -> None:
    level.check_census(before, {side: level.tree(side) or {} for side in level.sides(command)})


def _run_again(level: DiskLevel, command: Command, before: dict[str, Tree]) -> int:
    """Run a command again; where it was complete but for its end and is refused now, a plain one.

    So too where a fork is there already: who asks again gets another one. So would who asks for an undo or a
    redo that the journal has as done, with all that is remembered of it: there nothing is left to do. What `local` has
    decided is finished by any run.
    """
    if command.argv[:1] in (("undo",), ("redo",)) and _undone(level.state) > _undone(level.root / SAVED):
        return 0
    stored = {path for path in level.tree("store") or {} if not path.startswith(".reconcile-")}
    if command.argv[:1] == ("fork",) and stored != before["store"].keys():
        return level.invoke(command.plain()).exit_code
    if command.argv[:1] == ("local",) and _decided(level.state) > _decided(level.root / SAVED):
        return level.invoke(command.plain()).exit_code
    again = level.invoke(command)
    if (after := _follow_up(command)) is not None:
        then = level.invoke(after)
        again = again if then.refused else then
    return level.invoke(command.plain()).exit_code if again.refused else again.exit_code


def _follow_up(command: Command) -> Command | None:
    """Return what comes after a command, disturbed or not, before ends are compared.

    What a `gc` has saved is judged by the next one, and may be so already where it was cut short; a `recover` that is
    asked for again is about what is still absent, and leaves the rest of the first to a plain run.
    """
    if command.recovers:
        return command.plain()
    return command if command.argv == ("gc",) else None


def _undone(state: Path) -> int:
    """Return how many runs have taken one back, to their end."""
    return _count(
        state,
        """SELECT count(*) FROM run WHERE undoes IS NOT NULL AND exit_code = 0
            AND NOT EXISTS (SELECT 1 FROM step WHERE step.run = run.id AND state <> 'done')""",
    )


def _decided(state: Path) -> int:
    """Return how many conversations are local by now."""
    return _count(state, "SELECT count(*) FROM intent_local")


def _count(state: Path, sql: str) -> int:
    path = next(state.rglob(DATABASE), None)
    if path is None:
        return 0  # it was killed before there was any
    with contextlib.closing(sqlite3.connect(path)) as database:
        (count,) = database.execute(sql).fetchone()
    return int(count)


def _tolerant(level: DiskLevel, command: Command) -> None:
    """A fault that doesn't kill may spoil a run, but it is told in the usual way."""
    outcome = level.invoke(command)
    assert outcome.exit_code in (-9, 0, 1, 4), f"a run on a spoilt disk ends with {outcome.exit_code}"


class Saved:
    """Both sides and the state, to be put back."""

    def __init__(self, level: DiskLevel, command: Command, before: dict[str, Tree]) -> None:
        self._level, self._command, self._before = level, command, before
        self._copy = level.root / SAVED
        self._has_state = level.state.exists()
        if self._has_state:
            shutil.copytree(level.state, self._copy)

    def restore(self) -> None:
        self._level.rewrite(self._command, self._before)
        self._level.forget_locks()
        shutil.rmtree(self._level.state, ignore_errors=True)
        if self._has_state:
            shutil.copytree(self._copy, self._level.state)

    def forget(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)

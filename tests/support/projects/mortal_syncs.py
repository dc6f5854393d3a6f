"""Syncs with a remote in memory that end at any operation of it, and compare what they do with a sync of everything."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from reconcile.model.policy import Policy
from reconcile.remote.coding import PLAIN
from reconcile.remote.engine import Swap, UnreachableError
from reconcile.remote.known import Half, Lock, Report, won
from reconcile.remote.place import RemotePlace
from reconcile.remote.sync import Sync, open_session
from tests.support.projects.memory_engine import Host, MemoryEngine

if TYPE_CHECKING:
    import random

    from tests.support.projects.machines import Machine

OPERATIONS = ("tip", "tree", "read", "write", "swap")


class Killed(BaseException):
    """The end of a process."""


class MortalEngine(MemoryEngine):
    """An engine whose process is killed before or after one of its operations, or gets no answer to a swap."""

    def __init__(self, host: Host, chance: random.Random | None) -> None:
        super().__init__(host)
        self.left = chance.randrange(12) if chance is not None else -1
        self.is_before = chance is not None and chance.random() < 0.5
        self.is_silent = chance is not None and chance.random() < 0.3

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in OPERATIONS or self.left < 0:
            return found
        self.left -= 1
        if self.left >= 0:
            return found

        def fatal(*args: Any) -> Any:
            if not self.is_before:
                found(*args)
            if name == "swap" and self.is_silent:
                return Swap.UNKNOWN
            raise Killed

        return fatal


class CutOffEngine(MemoryEngine):
    """An engine without a network."""

    def tip(self) -> str | None:
        raise UnreachableError("no network")


class CheckedSync(Sync):
    """A sync that goes on from the last one does what a sync that looks at everything would do."""

    resumed = 0
    """Syncs that were compared."""

    def _plan_and_apply(self, sides: Any, start: str | None, known: Any, report: Report) -> Any:
        self.begun = start, known
        return super()._plan_and_apply(sides, start, known, report)

    def _edits(self, end: Any, kept: Any, report: Report) -> tuple[dict[str, bytes], list[str]]:
        edits, removes = super()._edits(end, kept, report)
        if end.concerned is not None:
            CheckedSync.resumed += 1
            tree, before = self._trees(*self.begun)
            everything = end._replace(tree=tree, before=before, concerned=None)
            all_edits, all_removes = super()._edits(everything, kept, Report())
            assert edits.keys() == all_edits.keys()
            if tree.coding is PLAIN:  # an encrypted file has other bytes each time
                assert {path: each for path, each in edits.items() if path[0] != "t"} == {
                    path: each for path, each in all_edits.items() if path[0] != "t"
                }
            assert sorted(removes) == sorted(all_removes)
        return edits, removes

    def _won(self, known: Any, only: Any = None) -> None:
        super()._won(known, only)
        state = self.session.state
        assert state.load(self._number(won(self.name))).agreed == state.load(self.session.site.number).agreed


def sync_with(
    machine: Machine,
    engine: MemoryEngine,
    half: Half = Half.BOTH,
    *,
    is_encrypted: bool = False,
    clock_error_ns: int = 0,
) -> Report:
    """Sync the store of a machine, whose clock is wrong by so much."""
    with machine.at_work():
        roots, state = machine.roots, str(machine.state)
        place = RemotePlace("memory", "memory", f"{roots.format}-memory", f"{state}/remotes/memory", is_encrypted)
        with open_session(roots, place, state, place.tree, ignore=(), dry=False) as session:
            session._clock = lambda: time.time_ns() + clock_error_ns
            lock = Lock("a story", 0, lambda _who: None)
            return CheckedSync(session, place, engine, Policy(accept_bulk=True), lock, half).run()

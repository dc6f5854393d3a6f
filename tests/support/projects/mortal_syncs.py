"""Syncs with a remote, in memory or with git, that end at any step, and do what a sync of everything would do."""

from __future__ import annotations

import sqlite3
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcile.model.policy import Policy
from reconcile.remote.coding import PLAIN
from reconcile.remote.engine import RemoteError, Swap, UnreachableError
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.known import Half, Lock, Report, won
from reconcile.remote.place import RemotePlace
from reconcile.remote.sync import Sync, open_session
from reconcile.state.connection import StateError
from tests.support.faults.fault_points import Mode, fault, in_child
from tests.support.projects.memory_engine import Host, MemoryEngine

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from reconcile.remote.engine import RemoteEngine
    from tests.support.projects.machines import Machine

OPERATIONS = ("tip", "tree", "read", "write", "swap")


class Killed(BaseException):
    """The end of a process."""


class Mortal:
    """An engine whose process is killed before or after one of its operations, or gets no answer to a swap."""

    left = -1
    is_before = is_silent = False

    def take_chance(self, chance: random.Random) -> None:
        """Choose the operation, and what happens."""
        self.left = chance.randrange(12)
        self.is_before = chance.random() < 0.5
        self.is_silent = chance.random() < 0.3

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


class MortalMemoryEngine(Mortal, MemoryEngine):
    pass


class MortalGitEngine(Mortal, GitEngine):
    """With the program git, which calls some operations inside others: there it is killed, too."""


class CutOffEngine(MemoryEngine):
    """An engine without a network."""

    def tip(self) -> str | None:
        raise UnreachableError("no network")


class Served(NamedTuple):
    """A bare repository, and the address at which a server has it."""

    bare: Path
    url: str


class _PlaceInMemory(RemotePlace):
    """The place of a remote in memory, also for what reads a mirror."""

    host: Host

    @property
    def engine(self) -> MemoryEngine:
        return MemoryEngine(self.host)


AnyHost = Host | Path | Served
"""A host in memory, or a bare repository for the program git."""


def engine_of(
    host: AnyHost, machine: Machine, chance: random.Random | None = None, *, reaches: bool = True
) -> RemoteEngine:
    """Return the engine of a machine. ``chance``: its process is killed. ``reaches``: it has a network."""
    engine: MortalMemoryEngine | MortalGitEngine
    if isinstance(host, Host):
        engine = MortalMemoryEngine(host)
        if not reaches:
            return CutOffEngine(host)
    else:
        place, url = _place_of(machine), host.url if isinstance(host, Served) else str(host)
        engine = MortalGitEngine(url if reaches else f"{url}/nowhere", place.ref, place.mirror)
    if chance is not None:
        engine.take_chance(chance)
    return engine


def _place_of(machine: Machine, *, is_encrypted: bool = False, host: Host | None = None) -> RemotePlace:
    values = "memory", "memory", f"{machine.roots.format}-memory", f"{machine.state}/remotes/memory", is_encrypted
    if host is None:
        return RemotePlace(*values)
    place = _PlaceInMemory(*values)
    place.host = host
    return place


class CheckedSync(Sync):
    """A sync that goes on from the last one does what a sync that looks at everything would do."""

    resumed = 0
    """Syncs that were compared."""

    def _plan_and_apply(self, sides: Any, start: str | None, known: Any, report: Report) -> Any:
        self.begun = start, known
        return super()._plan_and_apply(sides, start, known, report)

    def _edits(self, end: Any, kept: Any, report: Report) -> tuple[dict[str, bytes], list[str], dict[str, bool]]:
        edits, removes, marks = super()._edits(end, kept, report)
        if end.concerned is not None:
            CheckedSync.resumed += 1
            tree, before = self._trees(*self.begun)
            everything = end._replace(tree=tree, before=before, concerned=None)
            all_edits, all_removes, all_marks = super()._edits(everything, kept, Report())
            assert edits.keys() == all_edits.keys()
            if tree.coding is PLAIN:  # an encrypted file has other bytes each time
                assert {path: each for path, each in edits.items() if path[0] != "t"} == {
                    path: each for path, each in all_edits.items() if path[0] != "t"
                }
            assert sorted(removes) == sorted(all_removes)
            assert marks == all_marks
        return edits, removes, marks

    def _won(self, known: Any, only: Any = None) -> None:
        super()._won(known, only)
        state = self.session.state
        assert state.load(self._number(won(self.name))).agreed == state.load(self.session.site.number).agreed


def sync_with(
    machine: Machine,
    engine: RemoteEngine,
    half: Half = Half.BOTH,
    *,
    is_encrypted: bool = False,
    clock_error_ns: int = 0,
) -> Report:
    """Sync the store of a machine, whose clock is wrong by so much."""
    with machine.at_work():
        host = engine.host if isinstance(engine, MemoryEngine) else None
        roots, state = machine.roots, str(machine.state)
        place = _place_of(machine, is_encrypted=is_encrypted, host=host)
        with open_session(roots, place, state, place.tree, ignore=(), dry=False) as session:
            session._clock = lambda: time.time_ns() + clock_error_ns
            lock = Lock("a story", 0, lambda _who: None)
            return CheckedSync(session, place, engine, Policy(accept_bulk=True), lock, half).run()


def under_fault(mode: Mode, step: int, path: Path, host: AnyHost, command: Callable[[], object]) -> bool:
    """Run a command in a process of its own, with a fault at its ``step``-th change of a file or of the state.

    A host in memory has what was sent until then. Return whether the process was killed; else the command has ended.
    """
    failed = path / "failed"

    def checked() -> None:
        try:
            command()
        except (RemoteError, StateError, OSError, sqlite3.OperationalError):
            pass
        except BaseException:
            failed.write_text(traceback.format_exc())
            raise

    if isinstance(host, Host):
        host.path = path / "host"
    killed = in_child(checked, fault(mode, step))
    if isinstance(host, Host):
        host.load()
        host.path = None
    assert not failed.exists(), failed.read_text()
    return killed

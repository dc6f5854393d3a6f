"""Staging ahead: a second process writes new directories while this one waits for the disk, renames and journals.

It only writes below our staging directory, for each batch into a directory that is the batch's own. What it has written
is used if its sources, looked at under their locks, have the very status that they had before they were read. Whatever
it can't do, and all that is left where it ends too early, this process does by itself.

It ends when this process does, at the latest after the directory in hand. Until then reconcile's own lock is held,
which it has inherited: no other run comes across what it writes.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import signal
import struct
import time
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from reconcile.apply.staging import DriftError, Staged
from reconcile.fs.files import fingerprint_of
from reconcile.fs.helper_process import is_possible
from reconcile.index.stat_cache import settled
from reconcile.model.plan import Kind
from reconcile.model.snapshot import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.apply.staging import Stage
    from reconcile.fs.files import Fingerprint
    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Place, Side

WORTH_A_PROCESS = 250
"""New directories from which on a second process saves time."""
AHEAD = 2
"""So many batches are asked for before the first of them is needed."""
_REQUEST = struct.Struct("<q")
_Answer: TypeAlias = "list[tuple[Fingerprint, Fingerprint]] | None"
"""Of each file the status that it was written with, and that of its source before it was read."""


@contextlib.contextmanager
def staging_ahead(stage: Stage, batches: Sequence[Sequence[Action]]) -> Iterator[None]:
    """Have a second process stage what these batches make, where that pays; of the first, each stages one half."""
    due = [[action for action in batch if _is_due(action)] for batch in batches]
    ahead = None
    if sum(map(len, due)) >= WORTH_A_PROCESS and is_possible():
        due[0] = due[0][len(due[0]) // 2 :]
        ahead = _begin(stage, due)
    try:
        stage.ahead = ahead
        yield
    finally:
        stage.ahead = None
        if ahead is not None:
            ahead.close()


class Ahead:
    """The second process, as this one sees it."""

    def __init__(self, stage: Stage, due: Sequence[Sequence[Action]], child: int, asking: int, hearing: int) -> None:
        self._stage, self._due, self._child = stage, due, child
        self._asking = asking
        self._hearing = open(hearing, "rb")  # noqa: SIM115 - until it is closed
        self._batch_of = {action.id: at for at, batch in enumerate(due) for action in batch}
        self._asked = self._heard = 0
        self._staged: dict[str, Staged] = {}
        for _ in range(AHEAD):
            self._ask()

    def take(self, action: Action) -> Staged | None:
        """Return what was staged of an action, once; None: nothing was, and nothing will be."""
        while self._heard <= self._batch_of.get(action.id, -1):
            self._hear()
        return self._staged.pop(action.id, None)

    def close(self) -> None:
        """End the other process: after this, nobody writes into the staging directory any more."""
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._asking)
        self._hearing.close()

    def _ask(self) -> None:
        """Have the next batch staged."""
        if self._asked < len(self._due):
            with contextlib.suppress(OSError):  # it is gone, which is noticed when it should answer
                os.write(self._asking, _REQUEST.pack(self._asked))
            self._asked += 1

    def _hear(self) -> None:
        """Wait for what was asked for first, then ask for more."""
        at = self._heard
        try:
            answers: list[_Answer] = marshal.load(self._hearing)  # noqa: S302 - it comes from a copy of this process
        except (EOFError, ValueError, OSError):
            self._heard = len(self._due)
            return
        for number, (action, answer) in enumerate(zip(self._due[at], answers, strict=True)):
            if answer is not None:
                self._staged[action.id] = _staged(f"{_place(self._stage, at)}/{number}", action, answer)
        if at:
            _let_go(self._stage, self._due[at - 1], at - 1)
        _hold(self._stage, self._due[at], at)
        self._heard += 1
        self._ask()


def _place(stage: Stage, at: int) -> str:
    """Return what the directory of a batch is called: two processes don't wait for each other in different ones."""
    return f"{stage.directory}/ahead-{at}"


def _hold(stage: Stage, batch: Sequence[Action], at: int) -> None:
    for side in _sides(batch):
        stage.roots[side].pin(_place(stage, at))


def _let_go(stage: Stage, batch: Sequence[Action], at: int) -> None:
    for side in _sides(batch):
        stage.roots[side].unpin(_place(stage, at))


def _sides(batch: Sequence[Action]) -> set[Side]:
    return {action.target.side for action in batch}


def _staged(base: str, action: Action, answer: list[tuple[Fingerprint, Fingerprint]]) -> Staged:
    made, sources = {}, {}
    for write, (written, read) in zip(action.writes, answer, strict=True):
        made[write.target.path[len(action.target.path) + 1 :]] = written, write.digest
        if write.source is not None:
            sources[write.source] = read
    return Staged(base, made, sources)


def _is_due(action: Action) -> bool:
    """Tell whether all that an action does is to make a new directory of files that are somewhere."""
    return (
        action.unit == WHOLE
        and action.kind in (Kind.PROJECT, Kind.COPY)
        and bool(action.writes)
        and all(write.source is not None and write.kept is None for write in action.writes)
        and action.writes[0].target != action.target
    )


def _begin(stage: Stage, due: Sequence[Sequence[Action]]) -> Ahead | None:
    """Start the second process; None where that can't be."""
    try:
        for side in {side for batch in due for side in _sides(batch)}:
            stage.new_name(side)  # makes the staging directory
    except OSError:  # it is said of the first action that needs it
        return None
    parent = os.getpid()
    ends: list[int] = []
    try:
        ends += os.pipe()
        ends += os.pipe()
        child = os.fork()
    except OSError:  # there may be no more descriptors, or processes
        for fd in ends:
            os.close(fd)
        return None
    theirs, asking, hearing, ours = ends
    if child == 0:
        os.close(asking)
        os.close(hearing)
        _serve(stage, due, parent, theirs, ours)
    os.close(theirs)
    os.close(ours)
    return Ahead(stage, due, child, asking, hearing)


def _serve(stage: Stage, due: Sequence[Sequence[Action]], parent: int, asked: int, telling: int) -> NoReturn:
    """Answer until nobody asks any more, and end this process, whatever happens."""
    try:
        gc.disable()  # it would copy what it only looks at
        with open(telling, "wb") as told:
            while len(request := os.read(asked, _REQUEST.size)) == _REQUEST.size:
                (at,) = _REQUEST.unpack(request)
                marshal.dump(_stage_batch(stage, due[at], at, parent), told)
                told.flush()
    finally:
        os._exit(0)


def _stage_batch(stage: Stage, batch: Sequence[Action], at: int, parent: int) -> list[_Answer]:
    for side in _sides(batch):
        stage.roots[side].make_directory(_place(stage, at))
    _hold(stage, batch, at)
    answers = []
    for number, action in enumerate(batch):
        if os.getppid() != parent:
            raise ProcessLookupError("nobody is there any more to use it")
        answers.append(_stage(stage, action, f"{_place(stage, at)}/{number}"))
    _let_go(stage, batch, at)
    return answers


def _stage(stage: Stage, action: Action, base: str) -> _Answer:
    """Stage one directory; None where it can't be, or where it can't be told whether its sources will have changed."""
    now_ns = time.time_ns()
    try:
        with stage.near_sources(action):
            seen: dict[Place | None, os.stat_result | None] = {
                each.place: stage.check(each) for each in action.expect if not each.absent
            }
            read = [fingerprint_of(status) for write in action.writes if (status := seen.get(write.source)) is not None]
            if len(read) < len(action.writes) or not all(settled(each, now_ns) for each in read):
                return None
            made = stage.write_directory(action, base)
    except (OSError, DriftError, MemoryError):
        return None
    return list(zip((written for written, _ in made.values()), read, strict=True))

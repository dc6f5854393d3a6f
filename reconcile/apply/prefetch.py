"""Prefetching: a second process stages new directories while this one waits for the disk, renames and journals.

The second process writes only below the staging directory of the run, into one directory for each batch. A staged
directory is used if its sources, checked under their locks, have the fingerprints that they had before they were read.
This process stages everything that the second one has not staged, for whatever reason.

The second process ends with this one, at the latest after the directory that it is writing. Until then it shares the
run lock (docs/safety.md#lock-files), so that no other run meets its files.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import struct
import time
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from reconcile.apply.staging import DriftError, StagedDirectory
from reconcile.fs.helper_process import is_possible
from reconcile.index.rows import is_racy_safe
from reconcile.model.plan import Kind
from reconcile.model.snapshot import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.apply.staging import Stage
    from reconcile.fs.files import Fingerprint
    from reconcile.model.plan import Action, Precondition
    from reconcile.model.snapshot import Side

WORTH_A_PROCESS = 250
"""The number of new directories from which a second process saves time."""
OWN_SHARE = 8
"""One in so many new directories is staged by this process: it would otherwise wait for the second one."""
AHEAD = 2
"""The number of batches that are requested in advance."""
_REQUEST = struct.Struct("<q")
_Answer: TypeAlias = "list[tuple[Fingerprint, Fingerprint]] | None"
"""For each file, its fingerprint after writing and that of its source before reading; None if nothing was staged."""


@contextlib.contextmanager
def prefetching(stage: Stage, batches: Sequence[Sequence[Action]]) -> Iterator[None]:
    """Let a second process stage the new directories of these batches, if there are many.

    Of the first batch, each process stages one half; of the others, this process stages one in `OWN_SHARE`.
    """
    due = [[action for action in batch if _is_due(action)] for batch in batches]
    prefetcher = None
    if sum(map(len, due)) >= WORTH_A_PROCESS and is_possible():
        due = [batch[len(batch) // (OWN_SHARE if at else 2) :] for at, batch in enumerate(due)]
        prefetcher = _start(stage, due)
    try:
        stage.prefetcher = prefetcher
        yield
    finally:
        stage.prefetcher = None
        if prefetcher is not None:
            prefetcher.close()


class Prefetcher:
    """The connection to the second process."""

    def __init__(self, stage: Stage, due: Sequence[Sequence[Action]], child: int, writer: int, reader: int) -> None:
        self._stage, self._due, self._child = stage, due, child
        self._writer = writer
        self._reader = open(reader, "rb")  # noqa: SIM115 - `close` closes it
        self._batch_of = {action.id: at for at, batch in enumerate(due) for action in batch}
        self._requested = self._received = 0
        self._staged: dict[str, StagedDirectory] = {}
        for _ in range(AHEAD):
            self._request()

    def take(self, action: Action) -> StagedDirectory | None:
        """Return the directory that was staged for an action, once; None if there is none."""
        while self._received <= self._batch_of.get(action.id, -1):
            self._receive()
        return self._staged.pop(action.id, None)

    def close(self) -> None:
        """End the second process; then only this process writes into the staging directory."""
        import signal  # here: most runs stage too little for a second process

        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._writer)
        self._reader.close()

    def _request(self) -> None:
        """Request the next batch."""
        if self._requested < len(self._due):
            with contextlib.suppress(OSError):  # the process has ended; reading its answer notices that
                os.write(self._writer, _REQUEST.pack(self._requested))
            self._requested += 1

    def _receive(self) -> None:
        """Wait for the answer to the oldest request, then request the next batch."""
        at = self._received
        try:
            answers: list[_Answer] = marshal.load(self._reader)  # noqa: S302 - a copy of this process has written it
        except (EOFError, ValueError, OSError):
            self._received = len(self._due)
            return
        for number, (action, answer) in enumerate(zip(self._due[at], answers, strict=True)):
            if answer is not None:
                self._staged[action.id] = _staged(f"{_batch_directory(self._stage, at)}/{number}", action, answer)
        if at:
            _unpin(self._stage, self._due[at - 1], at - 1)
        _pin(self._stage, self._due[at], at)
        self._received += 1
        self._request()


def _batch_directory(stage: Stage, at: int) -> str:
    """Return the name of a batch's directory. In separate directories, the processes don't wait for each other."""
    return f"{stage.directory}/ahead-{at}"


def _pin(stage: Stage, batch: Sequence[Action], at: int) -> None:
    for side in _sides(batch):
        stage.roots[side].pin(_batch_directory(stage, at))


def _unpin(stage: Stage, batch: Sequence[Action], at: int) -> None:
    for side in _sides(batch):
        stage.roots[side].unpin(_batch_directory(stage, at))


def _sides(batch: Sequence[Action]) -> set[Side]:
    return {action.target.side for action in batch}


def _staged(base: str, action: Action, answer: list[tuple[Fingerprint, Fingerprint]]) -> StagedDirectory:
    files, sources = {}, {}
    for write, (written, read) in zip(action.writes, answer, strict=True):
        files[write.target.path[len(action.target.path) + 1 :]] = written, write.digest
        if write.source is not None:
            sources[write.source] = read
    return StagedDirectory(base, files, sources)


def _is_due(action: Action) -> bool:
    """Tell whether an action only makes a new directory from existing files."""
    return (
        action.unit == WHOLE
        and action.kind in (Kind.PROJECT, Kind.COPY)
        and bool(action.writes)
        and all(write.source is not None and write.kept is None for write in action.writes)
        and action.writes[0].target != action.target
    )


def _start(stage: Stage, due: Sequence[Sequence[Action]]) -> Prefetcher | None:
    """Start the second process; return None if it can't be started."""
    try:
        for side in {side for batch in due for side in _sides(batch)}:
            stage.new_name(side)  # makes the staging directory
    except OSError:  # the first action that needs it reports the error
        return None
    parent = os.getpid()
    ends: list[int] = []
    try:
        ends += os.pipe()
        ends += os.pipe()
        child = os.fork()
    except OSError:  # no more descriptors or processes
        for fd in ends:
            os.close(fd)
        return None
    child_reader, writer, reader, child_writer = ends
    if child == 0:
        os.close(writer)
        os.close(reader)
        _serve(stage, due, parent, child_reader, child_writer)
    os.close(child_reader)
    os.close(child_writer)
    return Prefetcher(stage, due, child, writer, reader)


def _serve(stage: Stage, due: Sequence[Sequence[Action]], parent: int, reader: int, writer: int) -> NoReturn:
    """Answer requests until the pipe is closed, and end this process, whatever happens."""
    try:
        gc.disable()  # a collection would copy the shared memory pages
        with open(writer, "wb") as pipe:
            while len(request := os.read(reader, _REQUEST.size)) == _REQUEST.size:
                (at,) = _REQUEST.unpack(request)
                marshal.dump(_stage_batch(stage, due[at], at, parent), pipe)
                pipe.flush()
    finally:
        os._exit(0)


def _stage_batch(stage: Stage, batch: Sequence[Action], at: int, parent: int) -> list[_Answer]:
    for side in _sides(batch):
        stage.roots[side].make_directory(_batch_directory(stage, at))
    _pin(stage, batch, at)
    answers = []
    for number, action in enumerate(batch):
        if os.getppid() != parent:
            raise ProcessLookupError("the parent has ended")
        answers.append(_stage(stage, action, f"{_batch_directory(stage, at)}/{number}"))
    _unpin(stage, batch, at)
    return answers


def _stage(stage: Stage, action: Action, base: str) -> _Answer:
    """Stage one directory; return None if that fails, or if a source is too young to tell later whether it changed."""
    now_ns = time.time_ns()
    stage.sources.clear()  # this process never flushes
    try:
        with stage.sources_pinned(action):
            files = stage.write_directory(action, base)
    except (OSError, DriftError, MemoryError):
        return None
    read = [stage.sources[write.source] for write in action.writes if write.source is not None]
    expected = [expect for expect in action.expect if not expect.absent]
    if not all(_is_expected(stage.sources.get(expect.place), expect) for expect in expected):
        return None
    if not all(is_racy_safe(fingerprint, now_ns) for fingerprint in read):
        return None
    return list(zip((written for written, _ in files.values()), read, strict=True))


def _is_expected(read: Fingerprint | None, expect: Precondition) -> bool:
    """Tell whether the file that was read is the one of the plan."""
    return read is not None and read[:2] == (expect.size, expect.mtime_ns)

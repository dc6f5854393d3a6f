"""What the last run found at rest, kept in a file of its own: where nothing has changed since, its answer still holds.

A plan depends on both sides, on what is remembered, and on what was asked for. Where all three are the same, so is the
plan, and needn't be made again. Losing the file costs time, nothing else. This module is loaded at every start, and
loads next to nothing.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array
from typing import Any, NamedTuple, TypeAlias

from reconcile import __version__
from reconcile.disk.generation import Generation, generation
from reconcile.disk.sweep import Sweep, changed_on_both

Asked: TypeAlias = tuple[object, ...]
"""All that a plan depends on besides both sides and the memory, as values that compare."""
Item: TypeAlias = tuple[str | None, str | None, str, str, str, tuple[str, ...]]
"""Conversation, title, unit, reason, message, and the commands that settle it."""
Note: TypeAlias = tuple[str | None, str, str, str]
"""Conversation, unit, reason and message."""

_MAGIC = f"reconcile.rest/1 {__version__} {sys.hexversion} {sys.byteorder}\n".encode()
_SUM = 16
_DAY_NS = 24 * 3600 * 10**9
"""A checkout is noted as seen once a day, which only a run that opens the state does."""


class Answer(NamedTuple):
    """What a plan says that has nothing to do; ``states`` counts the conversations in each."""

    layout: str
    states: tuple[tuple[str, int], ...]
    held: tuple[Item, ...]
    aside: tuple[Item, ...]
    notes: tuple[Note, ...]
    quiet: bool


class AtRest(NamedTuple):
    """``roots`` and ``sweeps`` are the store's and the workspace's; ``made_ns``: when it was found to be so."""

    asked: Asked
    generation: Generation
    made_ns: int
    roots: tuple[str, str]
    sweeps: tuple[Sweep, Sweep]
    answer: Answer

    def holds(self, asked: Asked, directory: str, now_ns: int) -> bool:
        """Tell whether nothing at all has changed since; ``directory`` is the state's."""
        return (
            self.asked == asked
            and 0 <= now_ns - self.made_ns < _DAY_NS
            and self.generation == generation(directory)
            and not any(changed_on_both(self.roots, self.sweeps))
        )

    def encode(self) -> bytes:
        """Return it as one blob: magic and versions, checksum, values."""
        sweeps = [(os.fsencode("\0".join(sweep.names)), sweep.prints.tobytes()) for sweep in self.sweeps]
        values: Any = (self.asked, self.generation, self.made_ns, self.roots, sweeps, tuple(self.answer))
        payload = marshal.dumps(values)
        return _MAGIC + _checksum(payload) + payload

    @classmethod
    def decode(cls, blob: bytes) -> AtRest | None:
        """Return what a blob holds, None where it is damaged, or of another version."""
        start = len(_MAGIC) + _SUM
        if not blob.startswith(_MAGIC) or blob[len(_MAGIC) : start] != _checksum(blob[start:]):
            return None
        asked, known, made_ns, roots, sweeps, answer = marshal.loads(blob[start:])  # noqa: S302 - our own, and whole
        one, other = (Sweep(os.fsdecode(names).split("\0"), array("q", prints)) for names, prints in sweeps)
        return cls(asked, known, made_ns, roots, (one, other), Answer(*answer))

    @classmethod
    def load(cls, directory: str, checkout: str) -> AtRest | None:
        """Return what was kept in a state's directory for a checkout, named by its identity."""
        try:
            with open(_path(directory, checkout), "rb") as file:
                return cls.decode(file.read())
        except OSError:
            return None

    def save(self, directory: str, checkout: str) -> None:
        """Keep it, readable by nobody else; where that can't be, the next run takes longer."""
        import contextlib

        from reconcile.disk.private import replace_private_file

        with contextlib.suppress(OSError):
            replace_private_file(_path(directory, checkout), self.encode())


def _path(directory: str, checkout: str) -> str:
    return os.path.join(directory, f"rest-{checkout.replace(':', '-')}")


def _checksum(payload: bytes) -> bytes:
    from xxhash import xxh3_128_digest

    return xxh3_128_digest(payload)

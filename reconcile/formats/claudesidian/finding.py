"""Findings about a vault as values: their words, and each repair as the bytes that the caller may write."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.json.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable


_SHOWN = 8


def some(words: Iterable[str]) -> str:
    """Return a list of words in quotes, cut short."""
    every = list(words)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(quoted(word) for word in every[:_SHOWN]) + more


def counted(count: int, what: str) -> str:
    """Return a number with its noun in singular or plural."""
    return f"{count} {what}{'' if count == 1 else 's'}"


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The program does not show, find or read something."""
    WARNING = "warning"
    """Something may be lost, or needs a decision."""
    NOTE = "note"
    """Nothing is lost and nothing is hidden; a vault that has only these is in order."""


_MATTERS = {
    "C1": "The program treats an unreadable index as empty and overwrites it.",
    "C2": 'The program reports "not found", and overwrites the file when a new record gets this id.',
    "C3": "The program lists records that it can neither open nor delete.",
    "C4": "The program does not list a record that the index lacks, or does not find it by its words.",
    "C5": "The program finds it by old words, or shows old values.",
    "C6": "The program writes whole files without a lock, so a concurrent change is lost.",
    "C7": "Each state contains a copy of its workspace with all earlier states, so each one doubles the file.",
    "C8": "A retry stores a message again if it is stored but not counted.",
    "C9": "A retry after a false failure stores a message twice.",
    "C10": "The program knows one file of an id, and finds it only by that name.",
    "C11": "The migration left out the content of states, but reported success.",
    "C12": "The program silently skips invalid lines of its event files.",
    "C13": "The program's own rebuild of its index fails here.",
    "C14": "Messages of a session that does not exist are shown nowhere.",
    "migration": "The migration leaves out a part of the content, and never removes the older form.",
}


class Repair(Struct, frozen=True):
    """The correct content of a file; ``content`` is None if the file is to be removed."""

    path: str
    content: bytes | None


class Finding(Struct, frozen=True):
    """One problem: its kind, its place, and what to do about it.

    ``code`` is a number of docs/design/formats/claudesidian.md#failures, C1 to C14, or `migration`. ``found`` completes
    "found ...". ``repairs`` belong together. They are carried out without a request, or ``on_request`` only: if
    something else could be intended, or if they overwrite the last evidence.
    """

    code: str
    severity: Severity
    place: str
    found: str
    mend: str
    repairs: tuple[Repair, ...] = ()
    on_request: bool = False

    @property
    def matters(self) -> str:
        """The reason why it matters, in one sentence."""
        return _MATTERS[self.code]

    @property
    def repairable(self) -> bool:
        """Whether it is repaired without a request."""
        return bool(self.repairs) and not self.on_request


def error(code: str, place: str, problem: str, mend: str, *repairs: Repair, on_request: bool = False) -> Finding:
    """Return a finding of the severity `ERROR`."""
    return Finding(code, Severity.ERROR, place, problem, mend, repairs, on_request)


def warning(code: str, place: str, problem: str, mend: str, *repairs: Repair, on_request: bool = False) -> Finding:
    """Return a finding of the severity `WARNING`."""
    return Finding(code, Severity.WARNING, place, problem, mend, repairs, on_request)


def note(code: str, place: str, problem: str, mend: str, *repairs: Repair, on_request: bool = False) -> Finding:
    """Return a finding of the severity `NOTE`."""
    return Finding(code, Severity.NOTE, place, problem, mend, repairs, on_request)

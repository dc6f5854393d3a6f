"""What is wrong in a vault, as values: the words, and the mending as bytes that somebody else may write."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Something is not shown, not found or can't be read."""
    WARNING = "warning"
    """Something may be lost, or needs a decision."""
    NOTE = "note"
    """Nothing is lost and nothing is hidden; a vault that has only these is in order."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A file as it should be; ``content`` is None where the file should go."""

    path: str
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing: what, where, and what to do about it.

    ``code`` is the number of section 8, C1 to C14, or `migration`. ``found`` completes "found ...". ``repairs`` belong
    together; they are carried out by themselves, or ``on_request`` only: where something else could have been meant,
    or what they overwrite is the last evidence.
    """

    code: str
    severity: Severity
    place: str
    found: str
    mend: str
    repairs: tuple[Repair, ...] = ()
    on_request: bool = False

    @property
    def repairable(self) -> bool:
        """It can be mended without asking."""
        return bool(self.repairs) and not self.on_request


def error(code: str, place: str, found: str, mend: str, *repairs: Repair, on_request: bool = False) -> Finding:
    """Something is not shown, not found or can't be read."""
    return Finding(code, Severity.ERROR, place, found, mend, repairs, on_request)


def warning(code: str, place: str, found: str, mend: str, *repairs: Repair, on_request: bool = False) -> Finding:
    """Something may be lost, or needs a decision."""
    return Finding(code, Severity.WARNING, place, found, mend, repairs, on_request)


def note(code: str, place: str, found: str, mend: str, *repairs: Repair, on_request: bool = False) -> Finding:
    """Nothing is lost and nothing is hidden."""
    return Finding(code, Severity.NOTE, place, found, mend, repairs, on_request)

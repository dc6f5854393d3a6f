"""The exceptions of the library; each message is one line, and the hint names the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Sequence


class LibraryError(ReconcileError):
    """The base class of the library's exceptions."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        if hint is not None:  # a traceback shows notes
            self.add_note(hint)


class UnknownConversationError(LibraryError, LookupError):
    """No conversation with that id is in the store or in the workspace."""


class HasChildrenError(LibraryError):
    """A removal without a strategy for the conversation's children; ``children`` are their ids."""

    def __init__(self, message: str, children: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.children = tuple(children)


class BusyError(LibraryError, TimeoutError):
    """Another holder kept the conversation's lock until the timeout."""


class LockError(LibraryError):
    """A lock that can't be acquired at any time: its file can't be created, for example on a read-only disk."""


class ReleasedError(LibraryError, RuntimeError):
    """A lock, a scope or a workspace was used after it was closed or handed over."""


class MisuseError(LibraryError, RuntimeError):
    """A call that is never allowed at this point: a read inside a callback, or a second scope at once."""


class InvalidValueError(LibraryError, ValueError):
    """A callback's result that JP could not read; the whole result is discarded."""


class UnreadableError(LibraryError):
    """Files that JP could not read; `reconcile doctor` explains the fault."""


class PersistError(LibraryError):
    """A write that failed; the scope is still dirty, and `flush` may be called again.

    ``saved``: the store has the change, and only the workspace lacks it; the next run of `reconcile` copies it.
    ``versions``: names of the change in the vault, for `reconcile show`; empty if the vault has no space either.
    """

    saved = False
    versions: tuple[str, ...] = ()

    def keep(self, versions: Sequence[str]) -> None:
        """Set the names that the change has in the vault."""
        self.versions = tuple(versions)
        self.add_note(kept_note(versions))


class ChangedError(PersistError):
    """A program without a lock wrote to the store after the scope read it; nothing is overwritten."""


def kept_note(versions: Sequence[str]) -> str:
    """Return the note of an exception whose changes are in the vault under these names."""
    return f"the vault has the changes: `reconcile show {'`, `reconcile show '.join(versions)}`"


def log_failure(words: str, error: BaseException) -> None:
    """Log a failure that no caller receives, or that may be lost as a note of another exception.

    Without a logging configuration, Python prints it on standard error.
    """
    import logging  # imported here: few programs need it

    message = "; ".join((words, f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())))
    logging.getLogger("reconcile.library").error(message)


def children_error(conversation: str, children: Sequence[str]) -> HasChildrenError:
    """Return the error that lists the children and names the strategies."""
    named = ", ".join(children[:5]) + (f" and {len(children) - 5} more" if len(children) > 5 else "")
    return HasChildrenError(
        f"{conversation} has {'a child' if len(children) == 1 else f'{len(children)} children'}: {named}",
        children,
        "choose a strategy: CASCADE removes them too, PROMOTE gives them its parent",
    )

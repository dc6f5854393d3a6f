"""What can go wrong, each in one line that says what was found and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Sequence


class LibraryError(ReconcileError):
    """What the library raises; every other class here is one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        if hint is not None:  # a traceback shows notes
            self.add_note(hint)


class UnknownConversationError(LibraryError, LookupError):
    """No conversation has that id, in the store or in the workspace."""


class HasChildrenError(LibraryError):
    """A conversation with children was to be removed, and nothing was said of them; ``children`` are their ids."""

    def __init__(self, message: str, children: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.children = tuple(children)


class BusyError(LibraryError, TimeoutError):
    """Somebody else has a conversation, and kept it for as long as was waited."""


class LockError(LibraryError):
    """A lock that nobody could have, however long he waits: its file can't be made, on a read-only disk for one."""


class ReleasedError(LibraryError, RuntimeError):
    """A lock, a scope or a workspace was used after it was closed, or given away."""


class MisuseError(LibraryError, RuntimeError):
    """Something was asked for that can't be by its nature: a read inside of a callback, a second scope at once."""


class InvalidValueError(LibraryError, ValueError):
    """What a callback has made can't be written: JP couldn't read it. Nothing of that callback was taken over."""


class UnreadableError(LibraryError):
    """What the files hold isn't what JP could read, and `reconcile doctor` says what it is."""


class PersistError(LibraryError):
    """Something couldn't be written; what is dirty still is, and `flush` may be called again.

    ``saved``: the store has it, and only the workspace lacks it; the next run of `reconcile` would bring it there.
    ``versions``: what was to be written is in the vault, by these names, which `reconcile show` takes; none where the
    vault has no room for it either.
    """

    saved = False
    versions: tuple[str, ...] = ()

    def keep(self, versions: Sequence[str]) -> None:
        """Tell what the vault has by now."""
        self.versions = tuple(versions)
        self.add_note(
            f"what was to be written is in the vault: `reconcile show {'`, `reconcile show '.join(versions)}`"
        )


class ChangedError(PersistError):
    """A program that takes no lock has written to the store since the scope has read it; nothing is overwritten."""


def report(words: str, error: BaseException) -> None:
    """Log a failure that is raised to nobody, or may be swallowed with what it is a note of.

    Without any logging set up, Python prints it on standard error.
    """
    import logging  # here: hardly a program needs it

    message = "; ".join((words, f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())))
    logging.getLogger("reconcile.library").error(message)


def has_children(conversation: str, children: Sequence[str]) -> HasChildrenError:
    """Return the error that names the children, and the ways on."""
    named = ", ".join(children[:5]) + (f" and {len(children) - 5} more" if len(children) > 5 else "")
    return HasChildrenError(
        f"{conversation} has {'a child' if len(children) == 1 else f'{len(children)} children'}: {named}",
        children,
        "say what becomes of them: CASCADE removes them too, PROMOTE gives them its parent",
    )

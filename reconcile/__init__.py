"""Brings two file trees of AI conversations together: a durable store and a workspace under git.

What `reconcile.library` has is here as well: ``from reconcile import Workspace``.
"""

from __future__ import annotations

from reconcile.version import __version__ as __version__

TYPE_CHECKING = False  # importing typing would cost each start of the command something
if TYPE_CHECKING:
    from reconcile.library import *  # noqa: F403


def __getattr__(name: str) -> object:
    """Import the library where it is asked for: the command doesn't need it, and starts the faster."""
    if name == "__all__" or not name.startswith("_"):
        from importlib import import_module

        library = import_module("reconcile.library")
        if name in ("__all__", *library.__all__):
            return getattr(library, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    from importlib import import_module

    return sorted({*globals(), *import_module("reconcile.library").__all__})

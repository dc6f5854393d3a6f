"""An open session, and the conversations that are named: what most commands begin with."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.adapters.roots import Roots, refuse_state_inside
from reconcile.engine.session import Session
from reconcile.formats import get_format
from reconcile.fs.state_location import state_directory
from reconcile.signals import Uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.config import Settings
    from reconcile.model.snapshot import Copy
    from reconcile.model.world_state import Look
    from reconcile.state.generation import Generation

    from .arguments import Options


def open_session(roots: Roots, settings: Settings, *, readonly: bool, sound: Generation | None = None) -> Session:
    """Open the state of these sides; ``sound`` as in `reconcile.state.database.State.open`."""
    directory = state_directory(roots.key, os.environ, sys.platform)
    refuse_state_inside(roots, directory)
    with Uninterrupted():
        get_format(roots.format)  # its modules, which are loaded by who asks first
    return Session(roots, directory, readonly=readonly, sound=sound, ignore=settings.ignore)


def selection(session: Session, look: Look, options: Options) -> dict[str, frozenset[str]]:
    """Resolve the ids of ``--only`` and ``--below``."""
    return {
        "only": frozenset(find_ids(session, look, options.only)),
        "below": frozenset(find_ids(session, look, options.below)),
    }


def find_ids(session: Session, look: Look, texts: Iterable[str]) -> list[str]:
    """Resolve ids as people write them: full, decimal, a directory's name, or an unambiguous prefix.

    Raises:
        click.UsageError: unknown, or ambiguous with the candidates.
    """
    copies = (*look.store.copies, *look.workspace.copies)
    known = {copy.conversation for copy in copies} | set(look.memory.agreed)
    return [_find_id(session, text, known, copies) for text in texts]


def _names(conversation: str, dirname: str) -> tuple[str, ...]:
    """What a conversation can be called by: its id, its directory's name, the last part of a path."""
    return conversation, dirname, dirname.rpartition("/")[2]


def _find_id(session: Session, text: str, known: set[str], copies: Iterable[Copy]) -> str:
    full = session.format.parse_id(text)
    if full in known and full is not None:
        return full
    import click  # here: most runs name none

    names = {copy.conversation: copy.dirname for copy in copies}
    candidates = known if text and not session.format.is_whole(text) else ()
    found = sorted(
        (each for each in candidates if any(name.startswith(text) for name in _names(each, names.get(each, "")))),
        key=session.format.order,
    )
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.UsageError(f"no conversation is called {text!r}; `reconcile ls` lists them")
    shown = ", ".join(names.get(each, each) for each in found[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    raise click.UsageError(f"{text!r} is ambiguous: {shown}{more}")

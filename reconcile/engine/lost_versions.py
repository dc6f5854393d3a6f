"""Lists the conversations that were lost with a store, and where a version of each still exists."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.files import error_text
from reconcile.fs.paths import is_directory
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from reconcile.engine.session import Session
    from reconcile.model.format import Format
    from reconcile.state.database import State


class Lost(Struct, frozen=True):
    """A conversation of a lost store that is on neither side: a text on its remaining versions, and a command."""

    conversation: str
    title: str | None
    left: str
    command: str | None


def lost_with_store(session: Session, there: AbstractSet[str]) -> tuple[Lost, ...]:
    """Return the conversations that were lost with a store, in the order of ids; ``there`` are those on a side.

    Removed conversations are left out. Only conversations that a run has seen in the store are known.
    """
    state, fmt = session.state, session.format
    missed = state.lost()
    if not missed:
        return ()
    buried = state.load(session.checkout, missed.keys()).tombstones
    ids = sorted(missed.keys() - there - buried.keys(), key=fmt.order)
    return tuple(_lost(state, session.project, fmt, conversation, missed[conversation]) for conversation in ids)


def _lost(state: State, project: str, fmt: Format, conversation: str, title: str | None) -> Lost:
    unread = ""
    for other in state.projects_with(conversation):
        try:
            is_there = other != project and is_directory(other)
        except OSError as error:
            unread += f"; it may still be in {other}, which can't be read ({error_text(error)})"
            continue
        if is_there:
            command = f"reconcile --workspace {shlex.quote(other)}"
            return Lost(conversation, title, f"a run in {other} saves it again, if it is still there", command)
    units: dict[str, set[str]] = {}
    for version in state.versions.of_conversation(conversation):
        if version.run is not None and version.kind is VersionKind.FILE:
            units.setdefault(version.run, set()).add(version.unit)
    whole = [run for run, kept in units.items() if kept.issuperset(fmt.required)]
    if whole:
        words = f"the vault has it as run {max(whole)} found it{unread}"
        return Lost(conversation, title, words, f"reconcile restore {conversation}@{max(whole)}")
    if units:
        words = f"the vault has a part of it, which run {max(units)} has kept{unread}"
        return Lost(conversation, title, words, f"reconcile show {conversation}@{max(units)}")
    return Lost(conversation, title, f"nothing of it is kept here{unread}" if unread else "nothing of it is kept", None)

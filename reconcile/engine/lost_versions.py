"""What was lost with a store, and where the last of it is: in the vault, or in another checkout."""

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
    """A conversation that was in a lost store and is on no side here: what is left of it, and the command for that."""

    conversation: str
    title: str | None
    left: str
    command: str | None


def lost_with_store(session: Session, there: AbstractSet[str]) -> tuple[Lost, ...]:
    """Return what was lost with a store and is still missed here, in the order of ids; ``there`` is on a side.

    What was removed on purpose isn't missed. It takes for granted that a run has seen what was in the store: of what
    none has seen, nothing is known.
    """
    state, fmt = session.state, session.format
    missed = state.lost()
    if not missed:
        return ()
    buried = state.load(session.checkout, missed.keys()).tombstones
    found = sorted(missed.keys() - there - buried.keys(), key=fmt.order)
    return tuple(_lost(state, session.project, fmt, each, missed[each]) for each in found)


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

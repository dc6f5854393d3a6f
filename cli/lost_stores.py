"""Conversations of a lost store: a remote may have them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.engine.versions import lost_with_store
from reconcile.state.directory import REMOTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from reconcile.engine.session import Session
    from reconcile.engine.versions import Lost


def lost_here(session: Session, there: AbstractSet[str]) -> tuple[Lost, ...]:
    """Return what was lost with a store, as `lost_with_store`; of what a remote has, the command that takes it."""
    lost = lost_with_store(session, there)
    ways = dict(_ways(session)) if lost else {}
    return tuple(replace(each, left=left, command=way) for each in lost for left, way in [_way_of(each, ways)])


def on_remotes(session: Session) -> str:
    """Return how to take what was lost with a store from a remote; empty if no remote has any of it."""
    ways = dict(_ways(session)) if (lost := session.state.lost().keys()) else {}
    found = [ways[id_] for id_ in lost if id_ in ways]
    if not found:
        return ""
    (left, command), noun = found[0], session.roots.noun
    some = f"{len(found)} {noun}{'' if len(found) == 1 else 's'} of the lost store"
    return f"{left.removesuffix(' it')} {some}: {command}"


def _way_of(lost: Lost, ways: dict[str, tuple[str, str]]) -> tuple[str, str | None]:
    return ways.get(lost.conversation, (lost.left, lost.command))


def _ways(session: Session) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each conversation that a remote had at the last sync, with the words and the command that takes it."""
    state = session.directory
    if not os.path.isdir(os.path.join(state, REMOTES)):
        return
    from reconcile.remote.known import synced_with  # here, as below: most stores have no remote
    from reconcile.remote.place import remotes

    known = remotes(state, session.roots.name_elsewhere)
    for place in reversed(known):  # the first one stays
        command = "reconcile sync" if len(known) == 1 else f"reconcile sync {place.name}"
        for conversation in synced_with(session.state, place):
            yield conversation, (f"the remote {place.name} has it", command)

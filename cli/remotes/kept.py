"""Conversations that the syncs of this machine with a remote leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.locks import run_lock
from reconcile.model.plan import counted_as
from reconcile.model.snapshot import Metadata, Side
from reconcile.remote.known import known_of, note, synced_with
from reconcile.state.database import State

from ..context import find_ids, with_owned
from ..output.documents import print_document
from ..output.interaction import print_message
from ..output.text import clean, visible
from ..run import opened
from .actions import no_sync

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.engine.engine import Engine
    from reconcile.remote.place import RemotePlace

    from ..arguments import Options
    from .actions import Shared


def keep_here(options: Options, shared: Shared, place: RemotePlace, words: Iterable[str], command: str) -> None:
    """Leave conversations out of the syncs with a remote, or list those that are."""
    with opened(options) as engine:
        ids, names = _chosen(engine, words)
        with (
            no_sync(options, shared, place, command),
            run_lock(shared.state, command=command),
            State.open(shared.state) as state,
        ):
            known, synced = known_of(state, place.name), synced_with(state, place)
            if ids:
                known = replace(known, kept=tuple(dict.fromkeys((*known.kept, *ids))))
                note(state, place.name, known)
        if options.json:
            _print_json(options, place, known.kept)
            return
        for conversation in _shown(engine, ids or known.kept):
            name = names.get(conversation, clean(conversation))
            if conversation in synced:
                print_message(options, f"{name} is not sent again; {_kept_there(conversation, place)}")
            else:
                print_message(options, f"{name} stays on this machine: no sync with {place.name} sends it")
        if not known.kept:
            print_message(options, f"all is sent to {place.name}")


def share(options: Options, shared: Shared, place: RemotePlace, words: Iterable[str], command: str) -> None:
    """Have syncs send conversations again that `keep_here` has left out."""
    with opened(options) as engine:
        ids, names = _chosen(engine, words)
        with (
            no_sync(options, shared, place, command),
            run_lock(shared.state, command=command),
            State.open(shared.state) as state,
        ):
            known = known_of(state, place.name)
            kept, again = known.kept, [key for key in known.kept if key in ids]
            left = tuple(key for key in kept if key not in ids)
            known = replace(known, kept=left, shared=(*known.shared, *again))
            note(state, place.name, known)
        if options.json:
            _print_json(options, place, known.kept)
            return
        for conversation in _shown(engine, ids):
            was = f"is sent by the next sync with {place.name}"
            was = was if conversation in kept else f"was not kept here: syncs with {place.name} send it anyway"
            print_message(options, f"{names[conversation]} {was}")


def _kept_there(conversation: str, place: RemotePlace) -> str:
    """Return what the remote keeps of a conversation that was sent before, and the commands that remove it there."""
    commands = " && ".join((f"reconcile remote share {conversation}", f"reconcile rm {conversation}", "reconcile sync"))
    return (
        f"{place.name} has it from an earlier sync, and keeps that; to remove it there and on all machines: {commands}"
    )


def _chosen(engine: Engine, words: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the named conversations with what belongs to them, and the titles with the ids of all in the store."""
    names = {}
    for copy in engine.known.sides[Side.STORE].copies():
        title = copy.metadata.title if isinstance(copy.metadata, Metadata) else None
        names[copy.conversation] = (
            f"{visible(title)} ({clean(copy.conversation)})" if title else clean(copy.conversation)
        )
    ids = with_owned(engine, find_ids(engine, words))
    return ids, {conversation: clean(conversation) for conversation in ids} | names


def _shown(engine: Engine, ids: Iterable[str]) -> list[str]:
    """Return the conversations without the files beside a session."""
    places = engine.session.format.places
    return [conversation for conversation in ids if counted_as(conversation, places) == conversation]


def _print_json(options: Options, place: RemotePlace, kept: Collection[str]) -> None:
    print_document(options, {"format": "reconcile.kept/1", "remote": place.name, "kept": list(kept)})

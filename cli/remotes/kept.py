"""Conversations that the syncs of this machine with a remote leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.locks import run_lock
from reconcile.model.commands import typed
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
from .naming import naming_remote

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
                print_message(
                    options, f"{name} is not sent again; {_kept_there(conversation, shared, place, options.sides)}"
                )
            else:
                print_message(options, f"{name} stays on this machine: no sync with {place.name} sends it")
        if not known.kept:
            print_message(options, f"all is sent to {place.name}")


def share(options: Options, shared: Shared, place: RemotePlace, words: Iterable[str], command: str) -> None:
    """Have syncs send conversations again that `keep_here` has left out, also if the store has them no more."""
    with opened(options) as engine:
        with (
            no_sync(options, shared, place, command),
            run_lock(shared.state, command=command),
            State.open(shared.state) as state,
        ):
            known, places = known_of(state, place.name), engine.session.format.places
            kept = known.kept
            ids, names = _chosen(engine, words, kept)
            again = [key for key in kept if key in ids or counted_as(key, places) in ids]
            left = tuple(key for key in kept if key not in again)
            known = replace(known, kept=left, shared=(*known.shared, *again))
            note(state, place.name, known)
        if options.json:
            _print_json(options, place, known.kept)
            return
        for conversation in _shown(engine, ids):
            was = f"is sent by the next sync with {place.name}"
            if conversation not in kept:
                was = f"was not kept here: syncs with {place.name} send it anyway"
            elif conversation not in engine.known:
                was = "is no longer kept here, but the store doesn't have it"
            print_message(options, f"{names[conversation]} {was}")


def _kept_there(conversation: str, shared: Shared, place: RemotePlace, sides: str) -> str:
    """Return what the remote keeps of a conversation that was sent before, and the commands that remove it there.

    ``sides`` are the options of both sides.
    """
    words = f"reconcile remote share {typed(conversation)}", f"reconcile rm {typed(conversation)}", "reconcile sync"
    commands = " && ".join(f"{naming_remote(each, shared.remotes, place)}{sides}" for each in words)
    return (
        f"{place.name} has it from an earlier sync, and keeps that; to remove it there and on all machines: {commands}"
    )


def _chosen(engine: Engine, words: Iterable[str], kept: Collection[str] = ()) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the named conversations with what belongs to them, and the titles with the ids of all in the store.

    An id among the ``kept`` ones need not be in the store.
    """
    names, named = {}, list[str]()
    for text in words:
        id_ = next((each for each in (text, engine.session.format.parse_id(text)) if each in kept), None)
        named += find_ids(engine, [text]) if id_ is None else [id_]
    for copy in engine.known.sides[Side.STORE].copies():
        title = copy.metadata.title if isinstance(copy.metadata, Metadata) else None
        names[copy.conversation] = (
            f"{visible(title)} ({clean(copy.conversation)})" if title else clean(copy.conversation)
        )
    ids = with_owned(engine, named)
    return ids, {conversation: clean(conversation) for conversation in ids} | names


def _shown(engine: Engine, ids: Iterable[str]) -> list[str]:
    """Return the conversations without the files beside a session."""
    places = engine.session.format.places
    return [conversation for conversation in ids if counted_as(conversation, places) == conversation]


def _print_json(options: Options, place: RemotePlace, kept: Collection[str]) -> None:
    print_document(options, {"format": "reconcile.kept/1", "remote": place.name, "kept": list(kept)})

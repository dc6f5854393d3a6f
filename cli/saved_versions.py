"""Saved versions as users name them: with a title in the place of an id, or without the run where one is enough."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from reconcile.engine.run_history import find_run
from reconcile.engine.versions import NoVersionError, find_versions, saved_ids, split_version
from reconcile.model.commands import typed
from reconcile.model.snapshot import METADATA, Metadata
from reconcile.model.units import unit_spelling
from reconcile.state.directory import REMOTES
from reconcile.state.vault import VaultError, VersionKind

from .context import CANDIDATES, find_ids, find_titles, fitting, ids_that_begin, near_hint, titles_like
from .misuse import Misuse
from .output.text import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.state.vault import Version

LISTED = 10
"""Runs of which a hint lists the versions."""


def know_remotes(session: Session) -> bool:
    """Have a session find the versions that a remote had; return False if the store has no remote."""
    if not os.path.isdir(os.path.join(session.directory, REMOTES)):
        return False
    from .remotes.versions import remote_units  # here: most stores have no remote

    session.elsewhere = partial(remote_units, session)
    return True


def version_name(engine: Engine, text: str, sides: str) -> str:
    """Return the name of a version that a text means, with the id in the place of a title.

    ``sides``: the options for the two sides, which suggested commands repeat.

    A conversation without a run means its only saved version, or the newest if all have the same content.

    Raises:
        Misuse: a title fits no conversation, or several; or the text names a conversation with several versions.
        NoVersionError, NoRunError: there is no such version.
    """
    session = engine.session
    if know_remotes(session):
        from .remotes.versions import remote_version_name  # here: most stores have no remote

        if (of_remote := remote_version_name(session, partial(_conversation, engine), text)) is not None:
            return of_remote
    if text in engine.known or text in session.state.versions.conversations():
        return _only_version(session, text, sides)  # its id may contain an `@`
    name, at, rest = split_version(text)
    if not at:
        return _hash_or_list(engine, text, sides)
    if not rest:
        return _only_version(session, _only(session, name, _conversations(engine, name)), sides)
    if ids := _by_id(engine, name):
        return f"{_only(session, name, ids)}@{rest}"
    saved = session.state.versions.of_run(find_run(session.state, rest.partition(":")[0]).id)
    matches = _titled(engine, name, saved)
    return f"{_only(session, name, matches)}@{rest}" if matches else text


def _conversation(engine: Engine, text: str) -> str:
    """Return the conversation that is named, which may be gone from both sides."""
    saved = _by_id(engine, text)
    return saved[0] if len(saved) == 1 else find_ids(engine, [text])[0]


def _hash_or_list(engine: Engine, text: str, sides: str) -> str:
    session = engine.session
    try:
        if find_versions(session.state, text, session.format):
            return text
    except NoVersionError as error:
        matches = _conversations(engine, text)
        if not matches:
            if len(there := fitting(engine, text)) == 1:
                raise _none_of(there[0]) from error
            raise NoVersionError(error.message, near_hint(engine, text) or error.hint) from error
    return _only_version(session, _only(session, text, matches), sides)


def _none_of(conversation: str) -> NoVersionError:
    message = f"the vault has no version of {conversation}"
    return NoVersionError(message, "no version of it was replaced or removed, so nothing can be restored")


def _conversations(engine: Engine, text: str) -> list[str]:
    """Return the conversations with saved versions that an id, its beginning, a title or a part of one means."""
    return _by_id(engine, text) or _titled(engine, text, engine.session.state.versions.all())


def _by_id(engine: Engine, text: str) -> list[str]:
    state = engine.session.state
    saved = saved_ids(state, text, engine.session.format)
    return saved or sorted(set(state.versions.conversations()).intersection(ids_that_begin(engine, text)))


def _titled(engine: Engine, text: str, saved: Iterable[Version]) -> list[str]:
    """Return those of the conversations with these versions that have a title now, or had it in one of them."""
    versions = list(saved)
    ids = {version.conversation for version in versions}
    now = [conversation for conversation in find_titles(engine, text) if conversation in ids]
    return now or titles_like(engine, text, _titles(engine.session, versions))


def _titles(session: Session, versions: Iterable[Version]) -> Iterator[tuple[str, str]]:
    for version in versions:
        if version.unit == METADATA and version.kind is VersionKind.FILE:
            try:
                metadata = session.format.read_metadata(session.vault.read(version.digest))
            except VaultError:
                continue
            if isinstance(metadata, Metadata) and metadata.title:
                yield version.conversation, metadata.title


def _only(session: Session, text: str, matches: list[str]) -> str:
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise NoVersionError(f"the vault has no version of {text!r}", "list the saved versions: reconcile vault -v")
    titles = dict(_titles(session, (each for id_ in matches for each in session.state.versions.of_conversation(id_))))
    shown = [f"{id_}  {titles.get(id_, '')}".rstrip() for id_ in matches[:CANDIDATES]]
    more = [f"and {len(matches) - CANDIDATES} more: reconcile vault -v"] if len(matches) > CANDIDATES else []
    raise Misuse(f"{text!r} is ambiguous: it fits {len(matches)} conversations", "\n".join([*shown, *more]))


def _only_version(session: Session, conversation: str, sides: str) -> str:
    """Return the name of the newest saved version of a conversation, if no other has another content.

    Raises:
        Misuse: there are several contents; the hint lists them, newest first.
        NoVersionError: there is none.
    """
    by_run: dict[str, list[Version]] = {}
    for version in session.state.versions.of_conversation(conversation):
        if version.run is not None and version.kind is VersionKind.FILE:
            by_run.setdefault(version.run, []).append(version)
    newest: dict[frozenset[tuple[str, str, str]], str] = {}
    for run in sorted(by_run, reverse=True):
        newest.setdefault(frozenset((each.unit, each.file, each.digest) for each in by_run[run]), run)
    runs = list(newest.values())
    if not runs:
        raise _none_of(conversation)
    if len(runs) == 1:
        return f"{conversation}@{runs[0]}"
    started = {run.id: run.started_ns for run in session.state.journal.runs()}
    lines = [
        f"reconcile restore {typed(conversation)}@{run}{sides}  (before {format_time(started[run])}: "
        f"{', '.join(dict.fromkeys('file' if each.is_record else unit_spelling(each.unit) for each in by_run[run]))})"
        for run in runs
    ]
    more = [f"and {len(lines) - LISTED} more: reconcile vault -v"] if len(lines) > LISTED else []
    which = f"one of {len(lines)} saved versions; the newest is first"
    raise Misuse(f"{conversation}: choose {which}", "\n".join([*lines[:LISTED], *more]))

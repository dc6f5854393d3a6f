"""The version of a conversation that a remote had at a commit, from what this machine has fetched: without the network.

The remote is at last a place elsewhere with each version that the machines have agreed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.errors import ReconcileError
from reconcile.fs.hashing import digest
from reconcile.model.commands import typed
from reconcile.remote.sealing import Sealed
from reconcile.remote.tree import checked_record, coding_of, directory_of, read_format, slots_of

if TYPE_CHECKING:
    from reconcile.model.format import Format
    from reconcile.remote.coding import Coding
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.place import RemotePlace
    from reconcile.remote.tree import Record

SHOWN = 10
"""Digits of a commit's name in messages."""


class NoCommitError(ReconcileError):
    """There is no such commit, or it does not have the conversation; the message says which."""

    exit_code = 2


class PastVersion(NamedTuple):
    """A conversation at a commit, with the contents of its files; ``wrong`` has the reasons for those that it lacks.

    ``earlier`` are the commits before it that have changed the conversation, with their times in ns, newest first.
    """

    commit: str
    time_ns: int
    record: Record
    contents: dict[str, bytes]
    wrong: dict[str, str]
    earlier: list[tuple[str, int]]


def past_version(engine: RemoteEngine, fmt: Format, place: RemotePlace, conversation: str, text: str) -> PastVersion:
    """Return a conversation at the commit whose name begins with a text; empty: the newest one that is known here.

    Raises:
        NoCommitError: there is none, or it does not have the conversation.
        RemoteError: this machine can't read what the remote has there.
    """
    newest = engine.seen()
    if newest is None:
        raise NoCommitError(f"nothing of {place.name} was fetched", f"reconcile sync {place.name}")
    commit = engine.named(text) if text else newest
    if commit is None or not engine.contains(newest, commit):
        raise NoCommitError(
            f"{place.name} has no commit {text}, as far as this machine knows",
            f"list those of a conversation: reconcile show {typed(conversation)}@{place.name}",
        )
    coding = _coding_at(engine, place, newest, commit)
    top = directory_of(conversation, coding)
    changes = engine.history(commit, top)
    names = engine.tree(commit, top)
    path = f"{top}/r"
    if path not in names:
        raise NoCommitError(
            f"{place.name} does not have {conversation} at {commit[:SHOWN]}", _hint(changes[1:], conversation, place)
        )
    try:
        content = coding.open(dict(engine.read([names[path]]))[names[path]])
        record = checked_record(content, path, names, fmt, coding)
    except ValueError as error:
        raise NoCommitError(f"{conversation} can't be read at {commit[:SHOWN]}: {error}", None) from None
    contents, wrong = _contents(engine, fmt, coding, record, names)
    return PastVersion(commit, changes[0][1], record, contents, wrong, changes[1:])


def _coding_at(engine: RemoteEngine, place: RemotePlace, newest: str, commit: str) -> Coding:
    """Return the coding of a commit. Its keys may be earlier ones, which the present keys prove."""
    present = _coding(engine, place, newest)
    if commit == newest:
        return present
    secrets = (present.bundle.secret, *present.bundle.earlier) if isinstance(present, Sealed) else ()
    return _coding(engine, place, commit, *secrets)


def _coding(engine: RemoteEngine, place: RemotePlace, commit: str, *secrets: str) -> Coding:
    found = read_format(engine, commit, place.store)
    assert found is not None  # noqa: S101 - there is a commit
    return coding_of(found, place.keys, *secrets)


def _contents(
    engine: RemoteEngine, fmt: Format, coding: Coding, record: Record, names: dict[str, str]
) -> tuple[dict[str, bytes], dict[str, str]]:
    contents, wrong = dict[str, bytes](), dict[str, str]()
    slots = {name: slots_of(record, name, fmt, coding) for name in record.files}
    read = dict(engine.read(names[slot] for each in slots.values() for slot in each))
    for name, file in record.files.items():
        try:
            content = b"".join(coding.open(read[names[slot]]) for slot in slots[name])
        except ValueError as error:
            wrong[name] = str(error)
            continue
        if digest(content) == file.digest:
            contents[name] = content
        else:
            wrong[name] = "its content is not the one that its record names"
    return contents, wrong


def _hint(earlier: list[tuple[str, int]], conversation: str, place: RemotePlace) -> str:
    """Return a hint for a conversation that a commit lacks: the commit that removed it is the first one."""
    if not earlier:
        return "list the saved versions: reconcile vault -v"
    return f"it had it before: reconcile show {typed(conversation)}@{place.name}:{earlier[0][0][:SHOWN]}"

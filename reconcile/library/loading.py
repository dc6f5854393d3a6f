"""What a conversation holds, read from the sides: what the store has, or what a run would make of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.dirfd import Directory
from reconcile.fs.files import read_files
from reconcile.library.change_plan import moves_anything, plan_run, store_copy
from reconcile.library.errors import UnreadableError
from reconcile.model.snapshot import Fault, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconcile.library.shared_index import Ground, Sight
    from reconcile.library.values import Contents
    from reconcile.model.plan import Write
    from reconcile.model.snapshot import Copy, Digest, File


class Source(Struct, frozen=True):
    """A managed file that is read when it is asked for; ``mark`` is another one where its content is another."""

    mark: object
    read: Callable[[], bytes]


def load(sight: Sight, conversation: str) -> dict[str, Source]:
    """Find the files of a conversation without its lock; {} where it is nowhere. Raises `UnreadableError`."""
    session, ground = sight.session, sight.ground(conversation)
    if ground.at_rest:
        return _sources(sight, ground, conversation)
    now = session.site.clock()
    plan = plan_run(ground, conversation, sight.policy_now(), session.rules, now)
    if moves_anything(plan) and not ground.full:
        ground = sight.full_ground(conversation)
        plan = plan_run(ground, conversation, sight.policy_now(), session.rules, now)
    found: dict[str, Source] = {}
    saves = [a for a in plan.actions if a.conversation == conversation and a.target.side is Side.STORE]
    comes = {write.target.path.rpartition("/")[2]: write for action in saves for write in action.writes}
    if not comes.keys() >= {session.format.metadata_file, session.format.stream_files[-1]}:
        found |= _sources(sight, ground, conversation)
    for place in (place for action in saves for place in action.removes):
        found.pop(place.path.rpartition("/")[2], None)
    return found | {name: _coming(sight, write) for name, write in comes.items() if name in session.file_names}


def stored(sight: Sight, ground: Ground, conversation: str) -> Contents:
    """Read what the store holds; {} for nothing. Raises `UnreadableError`."""
    copy = _readable_copy(sight, ground, conversation)
    if copy is None:
        return {}
    return _read(sight, copy.side, copy.path, [file.name for file in _managed(sight, copy)])


def _sources(sight: Sight, ground: Ground, conversation: str) -> dict[str, Source]:
    copy = _readable_copy(sight, ground, conversation)
    if copy is None:
        return {}
    return {file.name: _source(sight, copy.side, copy.path, file.name, file.digest) for file in _managed(sight, copy)}


def _source(sight: Sight, side: Side, path: str, name: str, digest: Digest | None) -> Source:
    return Source(digest, lambda: _read(sight, side, path, [name])[name])


def _managed(sight: Sight, copy: Copy) -> list[File]:
    return [file for file in copy.files if file.name in sight.session.file_names]


def _readable_copy(sight: Sight, ground: Ground, conversation: str) -> Copy | None:
    copy = store_copy(ground.look, conversation, sight.session.rules)
    if copy is None:
        return None
    for file, facts in (("metadata.json", copy.metadata), ("events.json", copy.stream)):
        if facts is None or isinstance(facts, Fault):
            words = f"found {facts.found}, expected {facts.expected}" if facts else "found no such file"
            hint = f"see `reconcile status {conversation}`"
            raise UnreadableError(f"{copy.place}/{facts.file if facts else file}: {words}", hint)
    return copy


def _coming(sight: Sight, write: Write) -> Source:
    if write.source is None:
        return Source(write.digest, lambda: write.content or b"")
    path, _, name = write.source.path.rpartition("/")
    return _source(sight, write.source.side, path, name, write.digest)


def _read(sight: Sight, side: Side, path: str, names: Iterable[str]) -> dict[str, bytes]:
    try:
        with Directory.open_root(sight.session.site.conversations(side)) as root, root.below(path) as directory:
            found = read_files(directory, names)
    except OSError as error:
        raise UnreadableError(f"{side}:{path}: {error.strerror}") from None
    if isinstance(found, Fault):
        raise UnreadableError(f"{side}:{path}/{found.file}: found {found.found}, expected {found.expected}")
    return {name: content for name, (content, _) in found.items()}

"""Reads a conversation as a run would leave it: from the store, or from the actions that a run would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.dirfd import Directory
from reconcile.fs.files import read_files
from reconcile.library.change_plan import has_moves, plan_conversation, store_copy
from reconcile.library.errors import UnreadableError
from reconcile.model.snapshot import Fault, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconcile.library.shared_index import PlanningBasis, SharedIndex
    from reconcile.library.values import Contents
    from reconcile.model.plan import Plan, Write
    from reconcile.model.snapshot import Copy, Digest, File


class FileSource(Struct, frozen=True):
    """A managed file that is read on demand; ``version`` differs if the content differs."""

    version: object
    read: Callable[[], bytes]


def load(index: SharedIndex, conversation: str) -> dict[str, FileSource]:
    """Return the files of a conversation without its lock; {} if no side has it. Raises `UnreadableError`."""
    session, basis = index.session, index.basis(conversation)
    if basis.clean:
        return _sources(index, basis, conversation)
    plan, basis = plan_alone(index, basis, conversation)
    sources: dict[str, FileSource] = {}
    saves = [a for a in plan.actions if a.conversation == conversation and a.target.side is Side.STORE]
    writes = {write.target.path.rpartition("/")[2]: write for action in saves for write in action.writes}
    if not writes.keys() >= {session.format.metadata_file, session.format.stream_files[-1]}:
        sources |= _sources(index, basis, conversation)
    for place in (place for action in saves for place in action.removes):
        sources.pop(place.path.rpartition("/")[2], None)
    return sources | {
        name: _planned_source(index, write) for name, write in writes.items() if name in session.file_names
    }


def plan_alone(index: SharedIndex, basis: PlanningBasis, conversation: str) -> tuple[Plan, PlanningBasis]:
    """Plan a run for one conversation; return the plan, and the basis of which it was made: the full one for a move."""
    session = index.session
    plan = plan_conversation(session, basis.part, conversation, index.policy, session.now_ns())
    if has_moves(plan) and not basis.complete:
        basis = index.full_basis(conversation)
        plan = plan_conversation(session, basis.part, conversation, index.policy, session.now_ns())
    return plan, basis


def read_stored(index: SharedIndex, basis: PlanningBasis, conversation: str) -> Contents:
    """Read the store's files of a conversation; {} if it has none. Raises `UnreadableError`."""
    copy = _readable_copy(index, basis, conversation)
    if copy is None:
        return {}
    return _read(index, copy.side, copy.path, [file.name for file in _managed(index, copy)])


def _sources(index: SharedIndex, basis: PlanningBasis, conversation: str) -> dict[str, FileSource]:
    copy = _readable_copy(index, basis, conversation)
    if copy is None:
        return {}
    return {file.name: _source(index, copy.side, copy.path, file.name, file.digest) for file in _managed(index, copy)}


def _source(index: SharedIndex, side: Side, path: str, name: str, digest: Digest | None) -> FileSource:
    return FileSource(digest, lambda: _read(index, side, path, [name])[name])


def _managed(index: SharedIndex, copy: Copy) -> list[File]:
    return [file for file in copy.files if file.name in index.session.file_names]


def _readable_copy(index: SharedIndex, basis: PlanningBasis, conversation: str) -> Copy | None:
    copy = store_copy(basis.part.world, conversation, index.session.rules)
    if copy is None:
        return None
    for file, facts in (("metadata.json", copy.metadata), ("events.json", copy.stream)):
        if facts is None or isinstance(facts, Fault):
            words = f"found {facts.found}, expected {facts.expected}" if facts else "found no such file"
            hint = f"see `reconcile status {conversation}`"
            raise UnreadableError(f"{copy.place}/{facts.file if facts else file}: {words}", hint)
    return copy


def _planned_source(index: SharedIndex, write: Write) -> FileSource:
    if write.source is None:
        return FileSource(write.digest, lambda: write.content or b"")
    path, _, name = write.source.path.rpartition("/")
    return _source(index, write.source.side, path, name, write.digest)


def _read(index: SharedIndex, side: Side, path: str, names: Iterable[str]) -> dict[str, bytes]:
    try:
        with Directory.open_root(index.session.site.conversations(side)) as root, root.below(path) as directory:
            files = read_files(directory, names)
    except OSError as error:
        raise UnreadableError(f"{side}:{path}: {error.strerror}") from None
    if isinstance(files, Fault):
        raise UnreadableError(f"{side}:{path}/{files.file}: found {files.found}, expected {files.expected}")
    return {name: content for name, (content, _) in files.items()}

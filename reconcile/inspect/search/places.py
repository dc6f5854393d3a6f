"""The places that a search looks at: both sides, the workspaces of other checkouts, and the saved versions."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct, field

from reconcile.fs.files import error_text
from reconcile.fs.paths import regular_descriptor
from reconcile.index.file import IndexFile
from reconcile.index.rows import DIGEST_BYTES, split_names
from reconcile.model.snapshot import (
    EXTRA,
    METADATA,
    STREAM,
    TRASH,
    Metadata,
    Partition,
    Side,
    Stream,
    is_archived,
    joined,
)
from reconcile.scan.scan import scan
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy
    from reconcile.state.vault import Version

File: TypeAlias = tuple[str, str, bytes | None]
"""A file: its name, its path and its digest, if that is known."""

_MOST_OF_METADATA = 1 << 20


class Where(StrEnum):
    """The kinds of places, in the order in which they are listed."""

    STORE = "store"
    WORKSPACE = "workspace"
    CHECKOUT = "checkout"
    VERSION = "version"


class Kind(StrEnum):
    """The kinds of contents: a stream of JP's form, the files of a record, or another text file."""

    EVENTS = "events"
    RECORD = "record"
    TEXT = "text"


class Content(Struct, frozen=True):
    """A content that is searched once, wherever it is. ``files`` has the path of each of its files, by name.

    ``record`` is the id of a record, on which the meaning of its files depends; otherwise it is empty.
    """

    kind: Kind
    files: tuple[tuple[str, str], ...]
    record: str = ""


class Place(NamedTuple):
    """One copy or saved version of a conversation. There are many: a tuple is made faster than a `Struct`.

    ``root`` is its side, ``path`` its directory or file below that; of a saved version, where it was. ``contents`` are
    numbers of contents. ``title`` None: it has no metadata of its own. ``last`` is the time of its last event.
    ``project`` is that of another checkout. ``run`` and ``version`` name a saved version, in JSON; on the screen it is
    ``spelling``.
    """

    conversation: str
    where: Where
    root: str
    path: str
    title: str | None
    last: str
    contents: tuple[int, ...]
    project: str = ""
    run: str = ""
    version: str = ""
    spelling: str = ""

    @property
    def partition(self) -> Partition:
        """The part of the side that has it."""
        if f"/{TRASH}/" in f"/{self.path}":
            return Partition.TRASH
        return Partition.ARCHIVE if is_archived(self.path) else Partition.LIVE

    @property
    def full_path(self) -> str:
        """The absolute path."""
        return os.path.join(self.root, self.path)


class Places(Struct):
    """All places, the contents that they have, and notes on those that can't be searched."""

    places: list[Place] = field(default_factory=list)
    contents: list[Content] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def number(self, kind: Kind, files: tuple[File, ...], record: str = "") -> int:
        """Return the number of a content; an equal one has the same."""
        parts = tuple(part for name, path, digest in files for part in (name, digest or path))
        key = (kind, *parts, record) if record else (kind, *parts)
        number = self.numbers.setdefault(key, len(self.contents))
        if number == len(self.contents):
            self.contents.append(Content(kind, tuple((name, path) for name, path, _ in files), record))
        return number


def places_of(engine: Engine) -> Places:
    """Return all places of the engine's store."""
    session = engine.session
    result = Places()
    for side, where in ((Side.STORE, Where.STORE), (Side.WORKSPACE, Where.WORKSPACE)):
        _add_side(result, engine, side, where)
    _add_checkouts(result, session)
    _add_versions(result, session)
    return result


def _add_side(result: Places, engine: Engine, side: Side, where: Where) -> None:
    """Add the copies of a side. A row of the index has what is needed, and is read faster than a copy is built."""
    session, known = engine.session, engine.known.sides[side]
    root, rows, loaded = session.site.conversations(side), session.scanner.index(side).rows, known.loaded_paths()
    chosen = cache(partial(_searched, session.format))
    add, numbers = result.places.append, result.numbers
    for path, conversation in known.paths.items():
        row = None if path in loaded or session.format.places is not None else rows.get(path)
        if row is None:
            add(_place(result, session.format, known.copy(path), where, root))
            continue
        contents = []
        for kind, name, at in chosen(row.names):
            digest = row.digests[at : at + DIGEST_BYTES]
            number = numbers.get((kind, name, digest))
            if number is None:
                number = result.number(kind, ((name, f"{root}/{joined(path, name)}", digest),))
            contents.append(number)
        add(Place(conversation, where, root, path, row.title, row.last or "", tuple(contents)))


def _searched(fmt: Format, names: str) -> tuple[tuple[Kind, str, int], ...]:
    """Return the files of a row that are searched: kind, name, and the position of the digest."""
    kinds = ((name, _kind(fmt, name)) for name in split_names(names))
    return tuple((kind, name, at * DIGEST_BYTES) for at, (name, kind) in enumerate(kinds) if kind is not None)


def _kind(fmt: Format, name: str) -> Kind | None:
    """Return the kind of a file of a copy. None: it isn't searched, because its title is known, or it has settings."""
    if name == fmt.stream_files[-1]:
        return Kind.EVENTS
    return Kind.TEXT if (fmt.unit_of(name) or "").startswith(EXTRA) else None


def _place(result: Places, fmt: Format, copy: Copy, where: Where, root: str, project: str = "") -> Place:
    files = [(file.name, f"{root}/{joined(copy.path, file.name)}", _raw(file.digest)) for file in copy.files]
    title = copy.metadata.title if isinstance(copy.metadata, Metadata) else None
    last = copy.stream.last if isinstance(copy.stream, Stream) else None
    contents = tuple(_numbers(result, fmt, copy.conversation, files))
    return Place(copy.conversation, where, root, copy.path, title, last or "", contents, project)


def _numbers(result: Places, fmt: Format, conversation: str, files: Sequence[File]) -> Iterator[int]:
    """Yield the numbers of the contents of a copy or a saved version; a record is one content."""
    if fmt.places is not None:
        if files:
            yield result.number(Kind.RECORD, tuple(files), conversation)
        return
    for file in files:
        kind = _kind(fmt, file[0])
        if kind is not None:
            yield result.number(kind, (file,))


def _raw(digest: str | None) -> bytes | None:
    return None if digest is None else bytes.fromhex(digest)


def _add_checkouts(result: Places, session: Session) -> None:
    """Add the workspaces of other checkouts that are there; one that can't be read is noted."""
    roots, seen = session.roots, {session.project}
    for checkout in session.state.checkouts():
        project = checkout.project
        if checkout.id == session.checkout or project in seen:
            continue
        seen.add(project)
        state = session.state_of(checkout)
        if state == "gone":  # a removed worktree is no news: the store has what its runs have saved
            continue
        if state == "unreadable":
            result.notes.append(f"{project}: can't be read; skipped")
            continue
        known = IndexFile(session.directory, checkout.identity).load_indexes()[1][1]
        root = roots.in_checkout(project).workspace_conversations.rstrip(os.sep)
        snapshot = scan(Side.WORKSPACE, root, session.format, known).snapshot
        for problem in snapshot.problems:
            result.notes.append(f"{os.path.join(root, problem.path)}: {problem.message}")
        for copy in snapshot.copies:
            result.places.append(_place(result, session.format, copy, Where.CHECKOUT, root, project))


def _add_versions(result: Places, session: Session) -> None:
    """Add the saved versions: one place for the files that a run has saved from one directory of a conversation.

    If the run has saved the same files from both sides, they are one place.
    """
    groups: dict[tuple[str, str, Side, str], list[Version]] = {}
    for version in session.state.versions.all():
        if version.kind is VersionKind.FILE and not session.vault.is_folded(version.digest):  # a later one has it, too
            directory = version.path[: -len(version.file) - 1] if version.file else version.path
            key = (version.conversation, version.run or version.digest, version.side, directory)
            groups.setdefault(key, []).append(version)
    seen: dict[tuple[str, str], set[tuple[str | None, tuple[int, ...]]]] = {}
    for (conversation, run, side, directory), versions in groups.items():
        metadata = next((version for version in versions if version.unit == METADATA), None)
        title = None if metadata is None else _title(result, session, metadata)
        files = [(each.file, session.vault.path(each.digest), _raw(each.xxh3)) for each in versions]
        contents = tuple(_numbers(result, session.format, conversation, files))
        others = seen.setdefault((conversation, run), set())
        if (contents or title) and (title, contents) not in others:
            others.add((title, contents))
            root = session.site.conversations(side)
            name, spelling = _names(versions, is_only=len(others) == 1)
            of_run = run if versions[0].run is not None else ""
            result.places.append(
                Place(
                    conversation,
                    Where.VERSION,
                    root,
                    directory,
                    title,
                    "",
                    contents,
                    run=of_run,
                    version=name,
                    spelling=spelling,
                )
            )


def _names(versions: Sequence[Version], *, is_only: bool) -> tuple[str, str]:
    """Return the names of a saved version for `show` and `restore`, in JSON and on the screen.

    Of a second one of the same run, both are a digest.
    """
    chosen = [version for version in versions if version.unit == STREAM] or list(versions)
    if is_only:
        return chosen[0].name, chosen[0].spelling
    digest = chosen[-1].digest[:16]
    return digest, digest


def _title(result: Places, session: Session, version: Version) -> str | None:
    path = session.vault.path(version.digest)
    try:
        with open(regular_descriptor(path, os.O_RDONLY), "rb") as file:
            metadata = session.format.read_metadata(file.read(_MOST_OF_METADATA))
    except OSError as error:
        result.notes.append(f"{path}: can't be read ({error_text(error)})")
        return None
    return metadata.title if isinstance(metadata, Metadata) else None


def titles_of(places: Iterable[Place]) -> Mapping[str, str]:
    """Return the title of each conversation that has one: the store's, or else that of the first place with one."""
    titles: dict[str, str] = {}
    for place in places:
        if place.title:
            titles.setdefault(place.conversation, place.title)
    return titles

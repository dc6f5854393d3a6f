"""Units: the groups of a copy's files that are compared and copied as one (docs/concepts.md#conversations)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.model.names import CHILDREN, GIT
from reconcile.model.snapshot import (
    ARCHIVE,
    EXTRA,
    METADATA,
    STREAM,
    TRASH,
    Fault,
    Metadata,
    ParentKind,
    Stream,
    Unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Digest, File


class Rules(Struct, frozen=True):
    """The rules for files that the planner applies: the format, and the digest function."""

    format: Format
    digest: Callable[[bytes], Digest]


def is_of_another(name: str, id_of: Callable[[str], str | None]) -> bool:
    """Return whether a file in a conversation's directory belongs to a nested conversation.

    Other entries below ``conversations`` are foreign, and move with the directory.
    """
    parts = name.split("/")
    below = [part for part in parts[1:3] if part not in (ARCHIVE, TRASH)] if parts[0] == CHILDREN else []
    return any(id_of(part) is not None for part in below[:1])


def is_nested_git(name: str, unit_of: Callable[[str], str | None], *, directory: bool) -> bool:
    """Return whether an entry of a conversation's directory is the `.git` of a repository or worktree.

    A format that treats the files of a repository as units has no such entry.
    """
    return name.rpartition("/")[2] == GIT and unit_of(f"{name}/HEAD" if directory else name) is None


class Unit(Struct, frozen=True, gc=False):
    """One unit of one copy. ``digest`` is None if the unit is faulty or unreadable."""

    name: str
    copy: Copy
    files: tuple[File, ...]
    digest: Digest | None
    fault: Fault | None

    @property
    def raw(self) -> Digest | None:
        """The digest of the bytes in the files, without a restored parent."""
        return joined_digest(self.files)

    @property
    def mtime_ns(self) -> int:
        """The latest time of the unit's files, in ns."""
        return max([file.mtime_ns for file in self.files])

    @property
    def size(self) -> int:
        """The size of all its files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def stream(self) -> Stream:
        """The parsed stream of a valid stream unit."""
        facts = self.copy.stream
        assert isinstance(facts, Stream)  # noqa: S101 - asked of valid stream units alone
        return facts


def units_of(copy: Copy, rules: Rules, known_parent: str | None) -> dict[str, Unit]:
    """Return the units of a copy by name.

    If JP has stripped the parent, the digest of the metadata is that of the content with ``known_parent`` restored:
    the stripping alone is no edit (docs/design/placement.md#rule-2).
    """
    fmt = rules.format
    metadata_file, stream_files = fmt.metadata_file, fmt.stream_files
    metadata = None
    stream: dict[str, File] = {}
    extras: list[File] = []
    for file in copy.files:
        if file.name == metadata_file:
            metadata = file
        elif file.name in stream_files:
            stream[file.name] = file
        else:
            extras.append(file)
    units: dict[str, Unit] = {}
    if metadata is not None:
        digest = put_back_digest(copy, metadata, rules, known_parent)
        units[METADATA] = _unit(METADATA, copy, (metadata,), digest, copy.metadata)
    if stream:
        files = tuple([stream[name] for name in stream_files if name in stream])
        units[STREAM] = _unit(STREAM, copy, files, joined_digest(files), copy.stream)
    for file in extras:
        fault = None if file.digest else Unreadable(file.name, "", "a readable file")
        units[EXTRA + file.name] = Unit(EXTRA + file.name, copy, (file,), file.digest, fault)
    return units


def unit_text(unit: str) -> str:
    """Return the name of a unit for people: the events instead of a stream, another file by its own name."""
    return "events" if unit == STREAM else unit.removeprefix(EXTRA)


def unit_spelling(unit: str) -> str:
    """Return how a unit is spelled behind ``ID@RUN:``; a file with the name of another unit keeps its prefix."""
    text = unit_text(unit)
    return unit if unit.startswith(EXTRA) and text in _SPELLINGS else text


def spelled_units(text: str) -> tuple[str, ...]:
    """Return the units that a spelling may mean, the first that exists first."""
    return _SPELLINGS.get(text, text), f"{EXTRA}{text}"


_SPELLINGS = {unit_text(STREAM): STREAM, STREAM: STREAM, METADATA: METADATA}


def _unit(name: str, copy: Copy, files: tuple[File, ...], digest: Digest | None, facts: object) -> Unit:
    fault = facts if isinstance(facts, Fault) else None
    return Unit(name, copy, files, None if fault else digest, fault)


def joined_digest(files: tuple[File, ...]) -> Digest | None:
    """Return the joined digest of several files; None if one of them could not be read."""
    if len(files) == 1:
        return files[0].digest
    digests = [file.digest for file in files]
    return None if None in digests else "+".join([digest for digest in digests if digest])


def put_back_digest(copy: Copy, file: File, rules: Rules, known_parent: str | None) -> Digest | None:
    """Return the digest of a metadata file's content, with the known parent restored if the key is absent."""
    facts = copy.metadata
    if known_parent is None or not isinstance(facts, Metadata) or facts.parent.kind is not ParentKind.ABSENT:
        return file.digest
    content = rules.format.with_parent(facts.content, known_parent)
    return file.digest if content is None else rules.digest(content)

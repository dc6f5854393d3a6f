"""What is compared and copied as one: the units of a copy (docs/concepts.md#conversations)."""

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
    """What the planner is told about the files: their format, and how content is named."""

    format: Format
    digest: Callable[[bytes], Digest]


def is_of_another(name: str, id_of: Callable[[str], str | None]) -> bool:
    """Tell whether a file in a conversation's directory is another one's; what else is below ``conversations`` is
    foreign, and goes and comes with the directory.
    """
    parts = name.split("/")
    below = [part for part in parts[1:3] if part not in (ARCHIVE, TRASH)] if parts[0] == CHILDREN else []
    return any(id_of(part) is not None for part in below[:1])


def is_nested_git(name: str, unit_of: Callable[[str], str | None], *, directory: bool) -> bool:
    """Tell whether an entry of a conversation's directory is a repository's or worktree's `.git`.

    A format that keeps the files of a repository one by one knows no such entry.
    """
    return name.rpartition("/")[2] == GIT and unit_of(f"{name}/HEAD" if directory else name) is None


class Unit(Struct, frozen=True):
    """One unit of one copy. ``digest`` is None where it is faulty or unreadable.

    ``mtime_ns`` of the stream is the greater of its files'.
    """

    name: str
    copy: Copy
    files: tuple[File, ...]
    digest: Digest | None
    fault: Fault | None

    @property
    def raw(self) -> Digest | None:
        """The digest of the bytes as they are, whatever is known of the parent."""
        return joined_digest(self.files)

    @property
    def mtime_ns(self) -> int:
        """The time that speaks for the unit."""
        return max(file.mtime_ns for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)

    @property
    def stream(self) -> Stream:
        """The facts of a valid stream unit."""
        facts = self.copy.stream
        assert isinstance(facts, Stream)  # noqa: S101 - asked of valid stream units alone
        return facts


def units_of(copy: Copy, rules: Rules, known_parent: str | None) -> dict[str, Unit]:
    """Return the units that a copy has, by name.

    The digest of metadata whose parent JP has stripped is that of the content with ``known_parent`` put back
    (docs/design/placement.md#rule-2), so that the stripping alone is no edit.
    """
    files = {file.name: file for file in copy.files}
    units: dict[str, Unit] = {}
    names = rules.format.stream_files
    metadata = files.pop(rules.format.metadata_file, None)
    stream = tuple(files.pop(name) for name in names if name in files)
    if metadata is not None:
        digest = put_back_digest(copy, metadata, rules, known_parent)
        units[METADATA] = _unit(METADATA, copy, (metadata,), digest, copy.metadata)
    if stream:
        units[STREAM] = _unit(STREAM, copy, stream, joined_digest(stream), copy.stream)
    for name, file in files.items():
        fault = None if file.digest else Unreadable(name, "a file that can't be read", "a readable file")
        units[EXTRA + name] = Unit(EXTRA + name, copy, (file,), file.digest, fault)
    return units


def _unit(name: str, copy: Copy, files: tuple[File, ...], digest: Digest | None, facts: object) -> Unit:
    fault = facts if isinstance(facts, Fault) else None
    return Unit(name, copy, files, None if fault else digest, fault)


def joined_digest(files: tuple[File, ...]) -> Digest | None:
    """Name the content of several files as one; None where one of them could not be read."""
    digests = [file.digest for file in files]
    return None if None in digests else "+".join([digest for digest in digests if digest])


def put_back_digest(copy: Copy, file: File, rules: Rules, known_parent: str | None) -> Digest | None:
    """Name a metadata file's content, with the known parent put back where it is absent."""
    facts = copy.metadata
    if known_parent is None or not isinstance(facts, Metadata) or facts.parent.kind is not ParentKind.ABSENT:
        return file.digest
    content = rules.format.with_parent(facts.content, known_parent)
    return file.digest if content is None else rules.digest(content)

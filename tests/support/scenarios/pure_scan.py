"""A tree to a snapshot, as the scan of a disk would see it: the scanner's rules once more, on values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.hashing import digest
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import METADATA, STREAM, Copy, Fault, File, Foreign, Partition, Snapshot, Stream
from tests.support.scenarios.trees import Blob, Entry, Link, Tree, children, is_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.model.format import Format
    from reconcile.model.snapshot import Metadata, Side

_PARTITIONS = {".archive": Partition.ARCHIVE, ".trash": Partition.TRASH}


def scan_tree(tree: Tree | None, side: Side, identity: str, fmt: Format, events_for: Collection[str] = ()) -> Snapshot:
    """Look at one side; None is one that isn't there."""
    if tree is None:
        return Snapshot(side, exists=False, identity="", copies=())
    scan = _Scan(tree, side, fmt, events_for)
    scan.conversations("", None, Partition.LIVE)
    copies = sorted(scan.copies, key=lambda copy: (fmt.order(copy.conversation), copy.path))
    foreign = sorted(scan.foreign, key=lambda entry: entry.path)
    return Snapshot(side, exists=True, identity=identity, copies=tuple(copies), foreign=tuple(foreign))


@dataclass(slots=True)
class _Scan:
    tree: Tree
    side: Side
    fmt: Format
    events_for: Collection[str]
    copies: list[Copy] = field(default_factory=list)
    foreign: list[Foreign] = field(default_factory=list)

    def conversations(self, path: str, container: str | None, partition: Partition) -> None:
        """Look at a directory of conversations."""
        for name, entry in children(self.tree, path).items():
            at = f"{path}/{name}" if path else name
            conversation = self.fmt.id_of(name)
            if not is_directory(entry):
                if not name.startswith(".") or name in _PARTITIONS:
                    self.foreign.append(Foreign(at, "no directory", isinstance(entry, Link)))
            elif name in _PARTITIONS:
                self.conversations(at, container, _PARTITIONS[name])
            elif name.startswith("."):
                if name.startswith((".staging-", ".old-")):
                    self.foreign.append(Foreign(at, "left over from an interrupted write"))
            elif conversation is None:
                self.foreign.append(Foreign(at, "a directory whose name is no id"))
            else:
                self.copy(at, conversation, container, partition)

    def copy(self, path: str, conversation: str, container: str | None, partition: Partition) -> None:
        """Look at one copy, and at the copies in it."""
        blobs: dict[str, Blob] = {}
        faults: dict[str, Fault] = {}
        self._files(path, "", blobs, faults)
        files = tuple(
            File(name, len(blob.content), blob.mtime_ns, digest(blob.content)) for name, blob in sorted(blobs.items())
        )
        below = children(self.tree, path)
        obstructed = CHILDREN in below and not is_directory(below[CHILDREN])
        if obstructed and isinstance(below[CHILDREN], Link):
            self.foreign.append(Foreign(f"{path}/{CHILDREN}", _kind(below[CHILDREN]), link=True))
        contents = {name: blob.content for name, blob in blobs.items()}
        metadata = faults.get(METADATA) or self._metadata(contents)
        stream = faults.get(STREAM) or self._stream(contents, conversation)
        self.copies.append(
            Copy(self.side, conversation, path, partition, container, files, metadata, stream, obstructed)
        )
        if CHILDREN in below and not obstructed:
            self.conversations(f"{path}/{CHILDREN}", conversation, partition)

    def _files(self, path: str, prefix: str, blobs: dict[str, Blob], faults: dict[str, Fault]) -> None:
        for name, entry in children(self.tree, f"{path}/{prefix}".rstrip("/")).items():
            full = prefix + name
            unit = self.fmt.unit_of(full)
            if full == CHILDREN or name.startswith("."):
                continue
            if isinstance(entry, Blob):
                if unit is not None:
                    blobs[full] = entry
            elif unit in (METADATA, STREAM):
                faults[unit] = Fault(full, _kind(entry), "a regular file")
            elif is_directory(entry):
                self._files(path, full + "/", blobs, faults)
            elif unit is not None:
                self.foreign.append(Foreign(f"{path}/{full}", _kind(entry), isinstance(entry, Link)))

    def _metadata(self, contents: dict[str, bytes]) -> Metadata | Fault | None:
        content = contents.get(self.fmt.metadata_file)
        return None if content is None else _read_metadata(self.fmt.read_metadata, content)

    def _stream(self, contents: dict[str, bytes], conversation: str) -> Stream | Fault | None:
        found = tuple((name, contents[name]) for name in self.fmt.stream_files if name in contents)
        return _read_stream(self.fmt.read_stream, found, events=conversation in self.events_for) if found else None


# A story looks at the same few contents again and again.
@lru_cache(4096)
def _read_metadata(read: Callable[[bytes], Metadata | Fault], content: bytes) -> Metadata | Fault:
    return read(content)


@lru_cache(4096)
def _read_stream(
    read: Callable[..., Stream | Fault], files: tuple[tuple[str, bytes], ...], *, events: bool
) -> Stream | Fault:
    found = read(dict(files), events=events)
    return replace(found, content=files[-1][1]) if events and isinstance(found, Stream) else found


def _kind(entry: Entry | None) -> str:
    return "a directory" if is_directory(entry) else "a symbolic link, which is never followed"

"""A usual copy that is read anyway, at once: its managed files, all of them valid, and nothing else of which to speak.

Each file's status is asked for twice instead of three times. In any doubt this says nothing, and has noted nothing:
`reconcile.disk.copies` looks again, and says what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.core.model import Copy, File, Metadata, Stream
from reconcile.core.names import CHILDREN, GIT
from reconcile.disk.hashing import digest as digest_of
from reconcile.disk.reading import parsed, read_usual
from reconcile.disk.streams import LARGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.core.model import Digest, Fault
    from reconcile.disk.copies import Reader, Spot
    from reconcile.disk.reading import Print
    from reconcile.disk.tree import Directory


def look_at_usual(reader: Reader, directory: Directory, spot: Spot) -> tuple[Copy, bool] | None:
    """The copy in ``directory``, and whether it has a directory of children."""
    try:
        listed_at = directory.status()
        listed = _listed(reader, directory)
    except OSError:
        return None
    if listed is None:
        return None
    names, children = listed
    found = read_usual(directory, names, LARGE)
    if found is None:
        return None
    known: dict[str, tuple[Print, Digest]] = {
        name: (at, digest_of(content)) for name, (content, at, _) in found.items()
    }
    metadata, stream = _facts(reader, {name: content for name, (content, _, _) in found.items()}, known)
    if not isinstance(metadata, Metadata) or not isinstance(stream, Stream):
        return None
    reader.read += len(names)
    reader.sweep.note(spot.path, listed_at, reader.now_ns)
    for name, (_, _, status) in found.items():
        reader.sweep.note(f"{spot.path}/{name}", status, reader.now_ns)
    reader.remember(spot.path, known, metadata, stream)
    files = tuple([File(name, at[0], at[1], digest) for name, (at, digest) in known.items()])
    return Copy(
        reader.side, spot.conversation, spot.path, spot.partition, spot.container, files, metadata, stream
    ), children


def _listed(reader: Reader, directory: Directory) -> tuple[list[str], bool] | None:
    """The names of the managed files in order, and whether there are children; None where anything else is there."""
    names, children, usual = [], False, reader.usual
    for entry in directory.entries():
        name = usual.get(entry.name)
        if name is not None and entry.is_file(follow_symlinks=False):
            names.append(name)
        elif entry.name == CHILDREN:
            children = entry.is_dir(follow_symlinks=False)
            if not children:
                return None
        elif entry.name == GIT or not entry.is_file(follow_symlinks=False) or reader.unit_of(entry.name) is not None:
            return None
    names.sort()
    return names, children


def _facts(
    reader: Reader, contents: Mapping[str, bytes], known: Mapping[str, tuple[Print, Digest]]
) -> tuple[Metadata | Fault | None, Stream | Fault | None]:
    """What both units say."""
    fmt, facts, file = reader.fmt, reader.facts, reader.fmt.metadata_file
    if file not in contents:
        return None, None
    metadata = facts.metadata(known[file][1], lambda: parsed(file, lambda: fmt.read_metadata(contents[file])))
    of_stream = {name: contents[name] for name in fmt.stream_files if name in contents}
    digests = tuple([known[name][1] if name in known else None for name in fmt.stream_files])
    stream = facts.stream(
        digests, lambda: parsed(fmt.stream_files[-1], lambda: fmt.read_stream(of_stream, events=False))
    )
    return metadata, stream

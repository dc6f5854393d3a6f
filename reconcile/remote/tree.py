"""The tree of a remote: each conversation with a record, and the tombstones (docs/design/remotes.md#tree).

Names matter: git looks for the delta base of a file by the end of its path, so that the stream of a conversation is
``c/../<id>/e``, never ``.../events.json``.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.format import Entry
from reconcile.model.snapshot import ARCHIVE, EXTRA, Partition, joined
from reconcile.remote.coding import PLAIN, Coding
from reconcile.remote.engine import RemoteError
from reconcile.remote.sealing import Sealed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Digest
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.sealing import Keys

_T = TypeVar("_T")
FORMAT = "format"
_VERSION, _ENCRYPTED = 1, 2
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSEEN = re.compile(r"[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""The characters that HFS+ leaves out of a name, and git with it."""
_LONGEST = 255
"""Bytes of a name that every file system takes."""
STAGED = "n"
"""The directory with files that a change of keys has sent, before it takes them for those of the tree. No reader of the
tree looks at it."""
_MOST = 1 << 20
"""Bytes of a record that a machine takes."""
_VERSIONS = 1 << 16
"""More bytes than a record has for earlier versions."""


class FormatFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The file ``format``. ``id`` is random: it tells a remote from another one at the same address.

    ``bundle`` has the keys of an encrypted remote, for the machines that may read it. ``epoch`` grows whenever a
    machine drops the history.
    """

    version: int
    store: str
    id: str
    bundle: str | None = None
    epoch: int = 0


class FileRecord(Struct, frozen=True):
    """One file of a conversation, as all machines agree on it."""

    digest: str
    size: int
    mtime_ns: int


MOST_SEEN = 64
"""Earlier versions of a unit that a record has."""


class Record(Struct, frozen=True, omit_defaults=True):
    """One conversation: ``name`` is that of its directory, or the path of a record with a fixed place.

    ``gone`` are the digests of other files that were removed from it. ``seen`` are by unit the versions that machines
    know, oldest first, at most `MOST_SEEN`. By these, a new machine knows what is older in its clone.
    """

    id: str
    name: str
    files: dict[str, FileRecord]
    archived: bool = False
    local: bool = False
    gone: dict[str, str] = field(default_factory=dict)
    seen: dict[str, list[str]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path of the directory below the side."""
        return f"{ARCHIVE}/{self.name}" if self.archived else self.name

    def is_same(self, other: Record | None) -> bool:
        """Tell whether two records differ in times alone, if at all."""
        return other is not None and self.content == other.content

    @property
    def content(self) -> tuple[object, ...]:
        """Everything but the times and earlier versions."""
        digests = {name: file.digest for name, file in self.files.items()}
        return self.name, self.archived, self.local, digests


class Tombstone(Struct, frozen=True):
    """A conversation that was removed, with the digests of the files that it had.

    ``seen`` are those of all units that are known of it, of each unit oldest first. ``local``: it was private, and is
    so again if an edit brings it back.
    """

    id: str
    files: dict[str, str]
    removed_ns: int
    seen: list[str] = field(default_factory=list)
    local: bool = False


class Tree(Struct, frozen=True):
    """The tree of a commit: its files, their meaning, and the conversations that can't be read, with the reasons."""

    format: FormatFile | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, Record] = field(default_factory=dict)
    tombstones: Mapping[str, Tombstone] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    """By key."""
    untaken: Mapping[str, Record] = field(default_factory=dict)
    """By id, the refused records that state at least which contents they are about."""
    coding: Coding = PLAIN
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of the records and tombstones, by name."""
    replaceable: Mapping[str, Record] = field(default_factory=dict)
    """By id, those of the refused records that a sync replaces or buries; they are not among ``refused`` then."""


def format_file(store: str, identity: str, coding: Coding, epoch: int = 0) -> bytes:
    """Return the file ``format`` of a remote."""
    bundle = coding.wrapped(epoch) if isinstance(coding, Sealed) else None
    return encoded(FormatFile(_VERSION if bundle is None else _ENCRYPTED, store, identity, bundle, epoch))


def directory_of(conversation: str, coding: Coding) -> str:
    """Return the directory of a conversation; the last digits of ids differ most, so they come first."""
    return f"c/{_fanned(coding.key(conversation))}"


def tombstone_of(conversation: str, coding: Coding) -> str:
    """Return the path of a tombstone."""
    return f"t/{_fanned(coding.key(conversation))}"


def is_record(path: str) -> bool:
    """Tell whether a path is that of a record."""
    return path.startswith("c/") and path.endswith("/r") and path.count("/") == len(("aa", "bb", "key", "r"))


def _is_tombstone(path: str) -> bool:
    return path.startswith("t/") and path.count("/") == len(("aa", "bb", "key"))


def key_of(path: str) -> str | None:
    """Return the name of the conversation of a path, None if it has none."""
    top, *above = path.split("/")
    return above[2] if top in ("c", "t") and len(above) > 2 else None


def _fanned(key: str) -> str:
    last = key.rjust(4, "0")
    return f"{last[-2:]}/{last[-4:-2]}/{key}"


def _short(name: str, fmt: Format) -> str:
    if name == "" or (fmt.stream_files and name == fmt.stream_files[-1]):
        return "e"
    if name == fmt.metadata_file:
        return "m"
    return "b" if name in fmt.stream_files else f"x/{name}"


def pieces(slots: Sequence[str], content: bytes, coding: Coding) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a content's slots: one, or pieces of a large one."""
    for number, slot in enumerate(slots):
        yield slot, content[number * coding.piece : (number + 1) * coding.piece]


def slots_of(record: Record, name: str, fmt: Format, coding: Coding) -> list[str]:
    """Return the paths of a file's pieces."""
    top = f"{directory_of(record.id, coding)}/{coding.slot(record.id, _short(name, fmt))}"
    size = record.files[name].size
    return [top] if size <= coding.piece else [f"{top}/{number}" for number in range(-(-size // coding.piece))]


def record_of(
    copy: Copy,
    times: Mapping[str, tuple[Digest | None, int]],
    old: Record | None,
    fmt: Format,
    *,
    local: bool,
    seen: Mapping[str, Sequence[Digest]] = MappingProxyType({}),
) -> Record | None:
    """Return the record of a copy; None if it has a file that could not be read. ``times`` are those of the store.

    ``old`` is the record before. It names the other files that were removed since, and those that still are, unless
    these are so many that no machine would take the record. ``seen`` are the versions that this machine knows, by unit.
    """
    files = {}
    for file in copy.files:
        if file.digest is None:
            return None
        known, mtime_ns = times.get(file.name, (None, 0))
        files[file.name] = FileRecord(file.digest, file.size, mtime_ns if known == file.digest else file.mtime_ns)
    name = copy.path.removeprefix(f"{ARCHIVE}/") if copy.partition is Partition.ARCHIVE else copy.path
    before = {} if old is None else {**old.gone, **{each: file.digest for each, file in old.files.items()}}
    others = {each for each in before if each not in files and (fmt.unit_of(each) or "").startswith(EXTRA)}
    gone = {each: before[each] for each in sorted(others)}
    new = Record(copy.conversation, name, files, copy.archived, local, gone, seen_in(old, seen))
    return replace(new, gone={}) if is_too_large(new) else new


def seen_in(old: Record | None, seen: Mapping[str, Sequence[Digest]]) -> dict[str, list[Digest]]:
    """Return the versions of a record's units that another machine or this one knows, the newest of them.

    The newest one of this machine is the last: an earlier version may have been restored.
    """
    others = {} if old is None else old.seen
    found = {}
    for unit in sorted({*others, *seen}):
        versions = [*others.get(unit, ()), *seen.get(unit, ())]
        newest = versions[-1:]
        found[unit] = [*(each for each in dict.fromkeys(versions) if each not in newest), *newest][-MOST_SEEN:]
    return found


def encoded(value: Struct) -> bytes:
    """Return a value as a file of the tree: equal values have equal bytes."""
    return msgspec.json.encode(value, order="sorted") + b"\n"


def read_tree(
    engine: RemoteEngine,
    commit: str | None,
    fmt: Format,
    store: str,
    keys: Keys,
    *secrets: str,
    cached: Mapping[str, bytes] = MappingProxyType({}),
    only: Collection[str] | None = None,
) -> Tree:
    """Read the records of a commit. What is no record of this format is refused, and stays as it is.

    A file whose path is none of a record or tombstone is not read: anyone who can write to the remote may put it there.

    ``secrets`` may open the bundle of the remote, too. ``cached`` has contents that need not be read again. ``only``
    are the names of the conversations that are read; None: all are.

    Raises:
        RemoteError: the tree is that of another store, or of a newer program, or no tree of this program. Or this
            machine has no key for it.
    """
    found = read_format(engine, commit, store)
    if commit is None or found is None:
        return Tree()
    names = _names(engine, commit, only)
    ends = {path: name for path, name in names.items() if is_record(path) or _is_tombstone(path)}
    coding = coding_of(found, keys, *secrets)
    read, wrong = _opened(engine, ends.values(), coding, cached)
    records, tombstones, refused = dict[str, Record](), dict[str, Tombstone](), dict[str, str]()
    untaken = dict[str, Record]()
    for path, name in ends.items():
        key = key_of(path) or path
        if name in wrong:
            refused[key] = wrong[name]
            continue
        try:
            if path.startswith("t/"):
                tombstone = _parsed(read[name], Tombstone)
                if tombstone_of(tombstone.id, coding) == path:
                    tombstones[tombstone.id] = tombstone
            else:
                record = _decoded(read[name], path, coding)
                untaken[record.id] = record
                _check(record, len(read[name]), names, fmt, coding)
                records[record.id] = untaken.pop(record.id)
        except (msgspec.DecodeError, ValueError) as error:
            refused[key] = str(error)
    places, taken = {record.path for record in records.values()}, dict[str, str]()
    for record in list(records.values()):
        if taken.setdefault(record.path, record.id) != record.id:
            refused[coding.key(record.id)] = f"another conversation has the directory {record.path!r}"
            del records[record.id]
        elif any(above in places for above in directories_above(record.path)):
            refused[coding.key(record.id)] = f"another record has the place of a directory above {record.path!r}"
            del records[record.id]
    return Tree(found, names, records, tombstones, refused, untaken, coding, read)


def _names(engine: RemoteEngine, commit: str, only: Collection[str] | None) -> dict[str, str]:
    if only is None:
        return engine.tree(commit)
    paths = sorted(f"{top}/{_fanned(key)}" for key in only for top in ("c", "t"))
    return engine.tree(commit, *paths) if paths else {}


def coding_of(file: FormatFile, keys: Keys, *secrets: str) -> Coding:
    """Return how the tree with this file `format` is written. Raises `RemoteError` as `read_tree`."""
    coding: Coding = PLAIN if file.bundle is None else keys.opened(file.bundle, *secrets)
    if isinstance(coding, Sealed) and coding.bundle.epoch != file.epoch:
        raise RemoteError("no holder of the remote's key has dropped its history", "look at the repository")
    return coding


def _opened(
    engine: RemoteEngine, names: Collection[str], coding: Coding, cached: Mapping[str, bytes]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return contents by their names, and the reasons for those that can't be opened."""
    read, wrong = {name: cached[name] for name in names if name in cached}, dict[str, str]()
    for name, content in engine.read(name for name in names if name not in cached):
        try:
            read[name] = coding.open(content)
        except ValueError as error:
            wrong[name] = str(error)
    return read, wrong


def read_format(engine: RemoteEngine, commit: str | None, store: str) -> FormatFile | None:
    """Return the file ``format`` of a commit. Raises `RemoteError` as `read_tree`."""
    if commit is None:
        return None
    names = engine.tree(commit, FORMAT)
    if FORMAT not in names:
        raise RemoteError("the remote's ref has no file `format`, so no sync has made it", "use an empty repository")
    return _format(dict(engine.read([names[FORMAT]]))[names[FORMAT]], store)


def _format(content: bytes, store: str) -> FormatFile:
    try:
        version = msgspec.json.decode(content, type=dict[str, object]).get("version")
        if version not in (_VERSION, _ENCRYPTED):
            raise RemoteError(
                f"the remote has version {version} (this program knows {_ENCRYPTED})",
                "update reconcile on this machine",
            )
        found = msgspec.json.decode(content, type=FormatFile)
    except (ValueError, RecursionError) as error:
        raise RemoteError(f"the remote's file `format` can't be read: {error}", "use an empty repository") from None
    if found.store != store:
        raise RemoteError(f"the remote's ref is about {found.store} (expected {store})", "use another repository")
    return found


def checked_record(content: bytes, path: str, names: Mapping[str, str], fmt: Format, coding: Coding) -> Record:
    """Return a record that names only files that a sync of this format writes. Raises `ValueError`."""
    record = _decoded(content, path, coding)
    _check(record, len(content), names, fmt, coding)
    return record


def _decoded(content: bytes, path: str, coding: Coding) -> Record:
    record = _parsed(content, Record)
    if f"{directory_of(record.id, coding)}/r" != path:
        raise ValueError("its record has another id")
    return record


def _parsed(content: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check(record: Record, size: int, names: Mapping[str, str], fmt: Format, coding: Coding) -> None:
    if size > _MOST:
        raise ValueError("its record is too large")
    if not _is_named(record, fmt):
        raise ValueError(f"its record names a file that is none of a conversation: {record.name!r}")
    for name in record.files:
        if not _is_file(record, name, fmt):
            raise ValueError(f"its record names a file that is none of a conversation: {name!r}")
    if any(file.size > coding.piece * len(names) for file in record.files.values()):
        raise ValueError("its record names a file that is larger than all that the remote has")
    if not record.files or any(
        slot not in names for name in record.files for slot in slots_of(record, name, fmt, coding)
    ):
        raise ValueError("a file of its record is missing")


def is_too_large(record: Record) -> bool:
    """Tell whether no machine would take a record for its size, however few versions it had before."""
    return len(encoded(record)) > _MOST - _VERSIONS


def digests_of(files: Mapping[str, str], fmt: Format) -> Iterator[str]:
    """Yield the digests of the metadata, the stream and each other file, by the digests of the files."""
    yield from unit_digests(files, fmt)
    yield from (each for name, each in files.items() if name != fmt.metadata_file and name not in fmt.stream_files)


def unit_digests(files: Mapping[str, str], fmt: Format) -> Iterator[str]:
    """Yield the digests of the metadata and of the stream."""
    stream = [files[name] for name in fmt.stream_files if name in files]
    yield from ([files[fmt.metadata_file]] if fmt.metadata_file in files else [])
    yield from (["+".join(stream)] if stream else [])


def _is_named(record: Record, fmt: Format) -> bool:
    if not _is_inside(record.name):
        return False
    if fmt.places is None:
        return "/" not in record.name and fmt.id_of(record.name) == record.id
    above = record.name.split("/")[:-1]
    enters = all(fmt.places.entry("/".join(above[: n + 1]), directory=True) is Entry.ENTER for n in range(len(above)))
    is_record = fmt.places.entry(record.name, directory="" not in record.files) is Entry.RECORD
    is_own = not fmt.places.is_derived(record.name)
    return record.name == record.id and not record.archived and enters and is_record and is_own


def _is_file(record: Record, name: str, fmt: Format) -> bool:
    file = record.files[name]
    if fmt.places is not None and "" in record.files:
        return name == "" and file.size >= 0
    is_free = not any(above in record.files for above in directories_above(name))
    return _is_inside(name) and is_free and file.size >= 0 and fmt.unit_of(name) is not None


def directories_above(path: str) -> Iterator[str]:
    """Yield the directories above a path."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_inside(path: str) -> bool:
    """Tell whether a path stays below its directory, and has no odd part."""
    return not fault_of_name(path)


def fault_of_name(path: str) -> str:
    """Return why no machine takes a path from a remote; empty: it does.

    A record could else be written outside its directory, or into that of git, and a name could change what a terminal
    shows.
    """
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    if _ODD.search(path):
        return "the name has a control character"
    if any(part in (b"", b".", b"..") or len(part) > _LONGEST for part in parts) or any(map(_is_git, path.split("/"))):
        return "no machine takes a file of this name"
    return ""


def _is_git(name: str) -> bool:
    """Tell whether a name is `.git` on some file system: git takes no tree with such a name from another machine."""
    short = (each.partition(":")[0].rstrip(" .").lower() for each in name.split("\\"))
    return _UNSEEN.sub("", name).lower() == ".git" or any(each in (".git", "git~1") for each in short)


def paths_of(records: Iterable[Record]) -> dict[str, tuple[Record, str]]:
    """Return, by its path below the side, the record and the name of each file."""
    return {joined(record.path, name): (record, name) for record in records for name in record.files}

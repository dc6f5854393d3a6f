"""The vault: every version that was overwritten or removed, stored by its digest (docs/design/run.md#rule-50).

An object is the file ``<state dir>/vault/objects/ab/<blake2b-256>``, 0600, verified when it is read. `Versions`, in the
database, maps objects to the versions of conversations (docs/concepts.md#what-is-remembered).

If a program appends to a file, the earlier version is the beginning of the later one; the end of an array may follow.
Such an object can be folded into the other. Then ``<blake2b-256>.part`` has the digest of the other one, the number of
bytes that they have in common, and the bytes at the end.

A file of the store to which a run itself appends has a second name here, a hard link ``<digits>.grows``. Each of its
versions is a ``.part`` of that, which also has the xxh3 of the version. No byte is copied for it. If another file gets
the name in the store, or if that is removed, the vault still has this one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from enum import StrEnum
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec import Struct
from msgspec.structs import astuple, replace

from reconcile.errors import ReconcileError
from reconcile.fs.durability import Durability
from reconcile.fs.hashing import CHUNK, Hasher, chunks_of, digest_file
from reconcile.fs.paths import names_in, open_regular, regular_descriptor
from reconcile.fs.posix import O_NOFOLLOW, process_lives
from reconcile.fs.private_files import create_private_file, make_private_directory, write_all
from reconcile.model.snapshot import EXTRA, WHOLE, Side
from reconcile.model.units import unit_spelling
from reconcile.state.connection import encoded_rows, select
from reconcile.state.schema import state_errors, transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from hashlib import blake2b

    from reconcile.model.snapshot import Digest

_DIGEST_BYTES = 32
_TEMPORARY = ".tmp-"
_PART = ".part"
_GROWS = ".grows"
_NAMES = 2
"""The names of a file that grows: the one in the store, and the one in the vault."""
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.ENOENT}
"""Errors where the file has other names already, is on another file system, or on one without hard links."""
_MOST_OF_A_PART = 200
"""Bytes that are read of such a file."""
_MOST_AT_THE_END = 32
"""Bytes of a folded object that the other one need not have: the end of an array."""
_COLUMNS = "digest, xxh3, size, conversation, unit, file, side, path, mtime_ns, run, why, kind, mode"
_MOST_DURABLE = 32
"""A program that appends to one conversation stores the same version of both sides, one after the other."""


class VaultError(ReconcileError):
    """An object is missing, or its content doesn't have the digest of its name."""


class VaultObject(Struct, frozen=True):
    """An object of the vault: its name, its hexadecimal xxh3_128 (`model.snapshot.Digest`), its size in bytes."""

    digest: str
    xxh3: str
    size: int


class _Part(Struct, frozen=True, order=True):
    """An object that is the beginning of another one, up to its ``end``; ``xxh3``: its digest, if that one grows."""

    into: str
    size: int
    xxh3: str = ""
    end: bytes = b""

    def __str__(self) -> str:
        """Return the text of the file."""
        words = [self.into, str(self.size), self.xxh3, f"+{self.end.hex()}" if self.end else ""]
        return " ".join(word for word in words if word)

    @classmethod
    def parse(cls, text: str) -> _Part:
        """Return the part of a file's text. Raises `ValueError`, `TypeError`."""
        text, _, end = text.partition(" +")
        into, size, *xxh3 = text.split(" ")
        return cls(into, int(size), "".join(xxh3), bytes.fromhex(end))

    def inside(self, outer: _Part) -> _Part:
        """Return this part of an object as one of the object that has that one as its ``outer`` part."""
        more = max(self.size - outer.size, 0)
        end = outer.end[:more] + self.end
        return _Part(outer.into, self.size - more, self.xxh3, end)


class Vault:
    """The objects below one state directory; the directory is made with the first object.

    Several processes may store objects at the same time. An object is durable after `flush`, not before.
    """

    __slots__ = ("_durability", "_durable", "_objects", "_pending", "_shards", "_verified")

    def __init__(self, state_directory: str, durability: Durability | None = None) -> None:
        self._objects = os.path.join(state_directory, "vault", "objects")
        self._durability = durability or Durability()
        self._pending: dict[str, tuple[int, int] | None] = {}
        """The files since the last flush; an object that this process has put there with its inode and change time."""
        self._shards: set[str] = set()
        """The directories whose names were flushed."""
        self._verified: set[str] = set()
        self._durable: dict[str, tuple[int, int]] = {}
        """The objects of the last flush, if they were few, each with its inode and change time then."""

    def directories(self) -> tuple[str, ...]:
        """Return the directories in which new objects are created: that of the objects, and those in it."""
        try:
            names = [name for name in names_in(self._objects) if not name.startswith(".")]
        except OSError:
            names = []
        return (self._objects, *(os.path.join(self._objects, name) for name in names))

    def put_file(self, source: str | int) -> VaultObject:
        """Store a regular file, given by its path, or by a descriptor, which is read from the start and stays open.

        The returned digests are those of the stored bytes, even if the file changes meanwhile.
        A symbolic link is not followed (ELOOP). Raises `OSError`.
        """
        if isinstance(source, int):
            os.lseek(source, 0, os.SEEK_SET)
            return self._put(chunks_of(source))
        fd = regular_descriptor(source, os.O_RDONLY | O_NOFOLLOW)
        try:
            return self._put(chunks_of(fd))
        finally:
            os.close(fd)

    def put_bytes(self, content: bytes) -> VaultObject:
        """Store these bytes (the target of a link, an edited file). Raises `OSError`."""
        return self._put(iter((content,)))

    def flush(self) -> None:
        """Make all objects since the last flush durable; this comes before any file is overwritten or removed.

        Raises `OSError`: then none of them may be relied on. Those that this process has put there are removed: the
        system reports a failed write once, and a later flush of the same file would succeed.
        """
        if not self._pending:
            return
        shards = {os.path.dirname(path) for path in self._pending}
        vault = os.path.dirname(self._objects)
        # If a directory was flushed before, its own name and those of its parents are on the disk.
        new = [self._objects] if shards - self._shards else []
        new += [] if self._shards else [vault, os.path.dirname(vault)]
        try:
            self._durability.flush_all(list(self._pending), [*sorted(shards), *new])
        except OSError:
            self._discard_pending()
            raise
        self._shards |= shards
        few = self._pending if len(self._pending) <= _MOST_DURABLE else ()
        self._durable = {path: known for path in few if (known := _identity(path)) is not None}
        self._pending.clear()
        self._verified.clear()  # otherwise it would grow as long as a watcher runs

    def _discard_pending(self) -> None:
        """Remove the new objects since the last flush. One that another process has kept meanwhile stays."""
        for path, own in self._pending.items():
            if own is not None and own == _identity(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        self._pending.clear()
        self._verified.clear()

    def path(self, digest: str) -> str:
        """Return the path of the object with this digest, which need not exist."""
        return os.path.join(self._objects, digest[:2], digest)

    def open(self, digest: str) -> BinaryIO:
        """Open an object for reading and verify it. The caller closes it.

        Raises `VaultError` if it is missing or damaged.
        """
        path = self.path(digest)
        try:
            fd = regular_descriptor(path, os.O_RDONLY)
        except FileNotFoundError:
            if (part := self._part(digest)) is not None:
                return self._open_part(digest, part)
            raise VaultError(f"{path}: this saved version is missing in the vault", hint=_HINT) from None
        except OSError as error:
            raise VaultError(f"{path}: can't be read ({error.strerror})", hint=_HINT) from error
        file = os.fdopen(fd, "rb")
        actual = _blake2b(fd)
        if actual != digest:
            file.close()
            raise VaultError(f"{path}: damaged (its content has the hash {actual})", hint=_HINT)
        os.lseek(fd, 0, os.SEEK_SET)
        return file

    def read(self, digest: str) -> bytes:
        """Return the verified content. Raises `VaultError` as `open` does."""
        with self.open(digest) as file:
            return file.read()

    def fold(self, digest: str, into: str) -> bool:
        """Keep an object as the beginning of another one, and return True; False if it is none.

        Its last bytes may differ. Both must be durable. The object can be opened at any moment, also by another
        process. Raises `OSError`.
        """
        path = self.path(digest)
        try:
            with open_regular(path) as own, open_regular(self.path(into)) as whole:
                status, common = os.fstat(own.fileno()), _common(own, whole)
                size = status.st_size
                if digest == into or size - common > min(_MOST_AT_THE_END, common):
                    return False
                end = os.pread(own.fileno(), size - common, common)
                os.lseek(whole.fileno(), 0, os.SEEK_SET)
                if _blake2b(whole.fileno(), common, end) != digest:
                    return False
        except FileNotFoundError:
            return False
        self._replace_part(path + _PART, str(_Part(into, common, end=end)))
        os.utime(path + _PART, ns=(status.st_atime_ns, status.st_mtime_ns))
        self._durability.flush_all([path + _PART], [os.path.dirname(path)])
        os.unlink(path)  # not flushed: an object that is back after a crash is whole
        return True

    def keep_growing(self, link: Callable[[str], None], status: os.stat_result, xxh3: Digest) -> VaultObject | None:
        """Keep a version of a file that grows: the file gets a second name here, which ``link`` makes, and a part.

        ``status`` is that of the file, and ``xxh3`` the digest of its content. None: the file can't have the name here
        alone, so its content has to be copied. Raises `OSError`.
        """
        inode = _hasher(f"inode {status.st_ino}".encode()).hexdigest()
        version = _hasher(f"{xxh3} {status.st_size}".encode()).hexdigest()
        grows, part = self.path(inode) + _GROWS, self.path(version) + _PART
        for path in (grows, part):
            make_private_directory(os.path.dirname(path))
        try:
            if not os.path.lexists(grows) and status.st_nlink == 1:
                link(grows)
            linked = os.stat(grows, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_LINK:
                return None
            raise
        if not os.path.samestat(linked, status) or linked.st_nlink != _NAMES:
            return None
        self._replace_part(part, str(_Part(f"{inode}{_GROWS}", status.st_size, xxh3)))
        self._pending |= dict.fromkeys((grows, part))
        return VaultObject(version, xxh3, status.st_size)

    def is_folded(self, digest: str) -> bool:
        """Tell whether an object is kept as the beginning of another one."""
        return not os.path.exists(self.path(digest)) and self._part(digest) is not None

    def objects(self) -> dict[str, tuple[int, int]]:
        """Return the size on the disk in bytes and the time (`saved_ns`) of every object, by digest. Raises `OSError`.

        A file that the store has no longer counts for the longest version in it.
        """
        objects, alone = dict[str, tuple[int, int]](), dict[str, int]()
        for name, path in self._files():
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(path)
                if name.endswith(_PART):  # which is of no use if the object is whole, too
                    objects.setdefault(name.removesuffix(_PART), (status.st_size, status.st_mtime_ns))
                elif not name.endswith(_GROWS):
                    objects[name] = (status.st_size, status.st_mtime_ns)
                elif status.st_nlink == 1:
                    alone[name] = status.st_size
        parts = [(part, name) for name in objects if alone and (part := self._part(name)) is not None]
        longest = {part.into: name for part, name in sorted(parts)}
        for into in alone.keys() & longest.keys():
            size, time_ns = objects[longest[into]]
            objects[longest[into]] = size + alone[into], time_ns
        return objects

    def incomplete(self, sizes: Mapping[str, int]) -> list[str]:
        """Return the objects that are missing, or have another size than this one, in bytes. Raises `OSError`.

        No content is read: `open` verifies it.
        """
        there = dict[str, int]()
        for name, path in self._files():
            with contextlib.suppress(FileNotFoundError):
                there[name] = os.stat(path).st_size
        return [digest for digest, size in sizes.items() if there.get(digest) != size and not self._ends(digest, there)]

    def _ends(self, digest: str, there: Collection[str]) -> bool:
        """Tell whether an object is the beginning of another one that is there."""
        part = None if digest in there or digest + _PART not in there else self._part(digest)
        return part is not None and (part.into in there or part.into + _PART in there)

    def remove(self, digest: str) -> bool:
        """Remove an object permanently (``vault --purge``); return False if it is missing.

        Objects that are folded into it become whole again first. Raises `OSError`; `VaultError` if it is damaged.
        """
        self.unfold(digest)
        return self.unlink(digest)

    def saved_ns(self, digest: str) -> int | None:
        """Return the time at which an object was last saved, None if it is missing. Raises `OSError`."""
        for path in (self.path(digest), self.path(digest) + _PART):
            with contextlib.suppress(FileNotFoundError):
                return os.stat(path).st_mtime_ns
        return None

    def unfold(self, digest: str) -> None:
        """Make the objects whole again that are folded into this one. Raises as `remove` does."""
        for name, _ in list(self._files()):
            folded = name.removesuffix(_PART)
            if name != folded and (part := self._part(folded)) is not None and part.into == digest:
                saved_ns = self.saved_ns(folded)
                with self.open(folded) as file:
                    self.put_file(file.fileno())
                self.flush()
                if saved_ns is not None:
                    os.utime(self.path(folded), ns=(saved_ns, saved_ns))
                os.unlink(self.path(folded) + _PART)

    def unlink(self, digest: str) -> bool:
        """Do as `remove` for an object into which no other one is folded."""
        self._cut_growing(digest)  # first: after a kill the version can be removed again
        is_there = False
        for path in (self.path(digest), self.path(digest) + _PART):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
                is_there = True
            self._pending.pop(path, None)
        if is_there:
            self._durability.fsync_directory(os.path.dirname(self.path(digest)))
        return is_there

    def _cut_growing(self, digest: str) -> None:
        """Remove what only this version needs of a file that the store has no longer. Raises `OSError`.

        The file may have more than its longest version. No version needs such an end, but it exists nowhere else: only
        the removal of one of that file's versions cuts it.
        """
        whole, needed, growing = self._part(digest), dict[str, int](), list[str]()
        if whole is None or not whole.into.endswith(_GROWS):
            return
        for name, path in self._files():
            if name.endswith(_GROWS):
                growing.append(path)
            elif name.endswith(_PART) and name != digest + _PART:
                if (part := self._part(name.removesuffix(_PART))) is None:
                    return  # one that can't be read may need any of them
                needed[self.path(part.into)] = max(part.size, needed.get(self.path(part.into), 0))
        for path in growing:
            status, size = os.stat(path), needed.get(path)
            if size is None:
                os.unlink(path)
                self._durability.fsync_directory(os.path.dirname(path))
            elif path == self.path(whole.into) and status.st_nlink == 1 and status.st_size > size:
                os.truncate(path, size)
                self._durability.fsync_file(path)

    def clean(self) -> None:
        """Remove the temporary files of killed processes. Raises `OSError`."""
        for name in _names(self._objects):
            pid = name.removeprefix(_TEMPORARY).partition("-")[0]
            if name.startswith(_TEMPORARY) and pid.isdecimal() and not process_lives(int(pid)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._objects, name))

    def _part(self, digest: str) -> _Part | None:
        """Return the object that this one is the beginning of, and its bytes; None if it isn't folded."""
        try:
            with open_regular(self.path(digest) + _PART) as file:
                return _Part.parse(file.read(_MOST_OF_A_PART).decode("ascii"))
        except (OSError, ValueError, TypeError):
            return None

    def _open_part(self, digest: str, whole: _Part) -> BinaryIO:
        """Open a folded object, from the one at the end of the chain: each is the beginning of the next."""
        import tempfile  # here: few objects are folded

        passed = {digest}
        while whole.into not in passed and not os.path.exists(self.path(whole.into)):
            if (outer := self._part(whole.into)) is None:
                break
            passed.add(whole.into)
            whole = whole.inside(outer)
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            with open_regular(self.path(whole.into)) as source:
                left = whole.size
                while left and (chunk := source.read(min(CHUNK, left))):
                    left -= len(chunk)
                    file.write(chunk)
            file.write(whole.end)
            file.seek(0)
            actual = digest_file(file.fileno()) if whole.xxh3 else _blake2b(file.fileno())
        except OSError as error:
            file.close()
            raise VaultError(f"{self.path(whole.into)}: can't be read ({error.strerror})", hint=_HINT) from error
        if actual != (whole.xxh3 or digest):
            file.close()
            raise VaultError(f"{self.path(whole.into)}: damaged (its beginning has the hash {actual})", hint=_HINT)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return cast("BinaryIO", file)

    def _temporary(self) -> str:
        """Return a new name. In a container each process may have the same number, also after a killed one."""
        return os.path.join(self._objects, f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}")

    def _replace_part(self, path: str, text: str) -> None:
        temporary = self._temporary()
        fd = create_private_file(temporary)
        try:
            try:
                write_all(fd, text.encode())
            finally:
                os.close(fd)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    def _files(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the path of each file of an object."""
        for shard in self._listed(self._objects):
            for name in self._listed(os.path.join(self._objects, shard)):
                yield name, os.path.join(self._objects, shard, name)

    def _listed(self, directory: str) -> list[str]:
        return [name for name in _names(directory) if not name.startswith(".")]

    def _put(self, chunks: Iterator[bytes]) -> VaultObject:
        """Hash and write in one pass under a temporary name, then rename."""
        if not os.path.isdir(self._objects):
            make_private_directory(self._objects)
            self._shards.clear()
        temporary = self._temporary()
        strong, fast = _hasher(), Hasher()
        fd = create_private_file(temporary)
        try:
            try:
                for chunk in chunks:
                    strong.update(chunk)
                    fast.update(chunk)
                    try:
                        write_all(fd, chunk)
                    except OSError as error:  # a full disk: the message needs the path
                        error.filename = self._objects
                        raise
            finally:
                os.close(fd)
            kept = VaultObject(strong.hexdigest(), fast.digest, fast.size)
            self._rename(temporary, kept)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        return kept

    def _rename(self, temporary: str, kept: VaultObject) -> None:
        """Rename new content to its digest. An existing object stays if its content has that digest, as a new one."""
        path, own = self.path(kept.digest), self._pending.get(self.path(kept.digest))
        is_durable = path in self._durable and self._durable[path] == _identity(path)
        if path in self._verified:
            is_there = os.path.exists(path)
        else:
            is_there = (is_durable or self._is_intact(path, kept)) and _touch(path)
        if is_there and is_durable and (known := _identity(path)) is not None:
            self._durable[path] = known
            return
        if not is_there:
            make_private_directory(os.path.dirname(path))
            os.replace(temporary, path)
            own = _identity(path)
        # An existing object is flushed, too: the process that stored it may not have flushed it yet.
        self._pending[path] = own
        self._verified.add(path)

    def _is_intact(self, path: str, kept: VaultObject) -> bool:
        """Verify an existing object, once until the next flush: keeping a damaged one would lose these bytes."""
        try:
            fd = regular_descriptor(path, os.O_RDONLY | O_NOFOLLOW)
        except OSError:
            return False
        try:
            return os.fstat(fd).st_size == kept.size and _blake2b(fd) == kept.digest
        finally:
            os.close(fd)


_HINT = "restore the file from a backup of the state directory, if there is one"


def _identity(path: str) -> tuple[int, int] | None:
    """Return the inode and the change time of a file, None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _touch(path: str) -> bool:
    """Set the time of a file to now, and return True; False if that is impossible, as when the file is missing."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def _hasher(data: bytes = b"") -> blake2b:
    """Return the hash by which objects have their names, with the first bytes."""
    from hashlib import blake2b  # here: most commands save no version

    return blake2b(data, digest_size=_DIGEST_BYTES)


def _blake2b(fd: int, size: int | None = None, end: bytes = b"") -> str:
    """Return the digest of the rest of a file, or of so many bytes of it, and of an end that is not in the file."""
    digest = _hasher()
    for chunk in chunks_of(fd) if size != 0 else ():
        digest.update(chunk if size is None else chunk[:size])
        if size is not None and (size := size - len(chunk)) <= 0:
            break
    digest.update(end)
    return digest.hexdigest()


def _common(one: BinaryIO, other: BinaryIO) -> int:
    """Return the number of bytes at the beginning that two files have in common."""
    common = 0
    while (first := one.read(CHUNK)) and (second := other.read(CHUNK)):
        least, most = 0, min(len(first), len(second))
        if first[:most] == second[:most]:
            least = most
        while least < most:
            middle = (least + most + 1) // 2
            if first[least:middle] == second[least:middle]:
                least = middle
            else:
                most = middle - 1
        common += least
        if least < CHUNK:
            break
    return common


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


class VersionKind(StrEnum):
    """The kind of a version: the content of a file, or the target of a symbolic link."""

    FILE = "file"
    LINK = "link"


class Version(Struct, frozen=True):
    """One file of one unit as it was before a run overwrote or removed it.

    ``digest`` is its name in the vault, ``xxh3`` the digest of the scan, ``size`` its bytes. ``file`` is its name below
    the copy, ``path`` its path below the side, ``why`` a reason of the plan. ``mode`` has the permissions of the file,
    None if they are unknown.
    """

    digest: str
    xxh3: Digest
    size: int
    conversation: str
    unit: str
    file: str
    side: Side
    path: str
    mtime_ns: int
    run: str | None
    why: str
    kind: VersionKind = VersionKind.FILE
    mode: int | None = None

    @property
    def name(self) -> str:
        """The name in JSON; `spelling` is that on the screen. Both are for `reconcile show` and `restore`."""
        return self.digest if self.run is None else f"{self.conversation}@{self.run}:{self.unit.removeprefix(EXTRA)}"

    @property
    def spelling(self) -> str:
        """The name on the screen; it is the digest if no run has stored the version, or if it is of no unit."""
        if self.run is None:
            return self.digest
        if self.unit == WHOLE and not self.is_record:
            return self.digest[:16]
        return f"{self.conversation}@{self.run}" + ("" if self.is_record else f":{unit_spelling(self.unit)}")

    @property
    def is_record(self) -> bool:
        """Whether it is of a record that is a single file, which has only one unit."""
        return self.path == self.conversation


class Versions:
    """The versions of one store, in the database. All methods raise `StateError`."""

    __slots__ = ("_connection", "_path")

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path

    def add(self, versions: Iterable[Version]) -> None:
        """Record versions in one transaction; their objects are durable by `Vault.flush`."""
        rows = encoded_rows(map(astuple, versions))
        if rows:
            with transaction(self._connection, self._path):
                marks = ", ".join("?" * len(Version.__struct_fields__))
                sql = f"INSERT INTO version ({_COLUMNS}) VALUES ({marks})"  # noqa: S608 - no values in it
                self._connection.executemany(sql, rows)

    def has(self, xxh3: Digest, conversation: str, unit: str) -> bool:
        """Tell whether the unit has a version with this content."""
        sql = "SELECT 1 FROM version WHERE conversation = ? AND unit = ? AND xxh3 = ? LIMIT 1"
        with state_errors(self._path):
            return bool(select(self._connection, sql, (conversation, unit, xxh3)))

    def of_conversation(self, conversation: str) -> tuple[Version, ...]:
        """Return every version of a conversation, oldest first."""
        return self._select("conversation = ?", conversation)

    def before(self, version: Version) -> Version | None:
        """Return the newest smaller version of the same file; None if there is none."""
        smaller = "conversation = ? AND unit = ? AND file = ? AND size < ?"
        values = version.conversation, version.unit, version.file, version.size
        return next(iter(self._select(smaller, *values, newest=True)), None)

    def mode_of(self, digest: str, side: Side, path: str) -> int | None:
        """Return the permissions of the newest version with this digest that was at this place, None if unknown.

        If none was at the place, return those that all versions with the digest had.
        """
        sql = "SELECT mode, side = ? AND path = ? FROM version WHERE digest = ? AND mode IS NOT NULL ORDER BY id"
        with state_errors(self._path):
            rows = select(self._connection, sql, (side, path, digest))
        here = [mode for mode, is_here in rows if is_here][-1:]
        return reduce(and_, here or [mode for mode, _ in rows]) if rows else None

    def of_run(self, run: str) -> tuple[Version, ...]:
        """Return the versions that a run has stored, in order."""
        return self._select("run = ?", run)

    def with_digest(self, prefix: str) -> tuple[Version, ...]:
        """Return every version whose digest, of the vault or of the scan, has this prefix; oldest first."""
        where = "substr(digest, 1, length(?)) = ? OR substr(xxh3, 1, length(?)) = ?"
        return self._select(where, prefix, prefix, prefix, prefix)

    def conversations(self) -> tuple[str, ...]:
        """Return every conversation that has a version."""
        with state_errors(self._path):
            rows = select(self._connection, "SELECT DISTINCT conversation FROM version WHERE conversation <> ''")
        return tuple(row[0] for row in rows)

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of every object, by its name in the vault."""
        with state_errors(self._path):
            rows = select(self._connection, "SELECT digest, max(size) FROM version GROUP BY digest")
        return dict(rows)

    def all(self) -> tuple[Version, ...]:
        """Return every version, oldest first."""
        return self._select("1")

    def forget(self, digest: str, remove: Callable[[tuple[Version, ...]], bool] = lambda _: True) -> bool:
        """Remove the versions of a purged object, and the content that the baseline keeps of them.

        ``remove`` gets the versions and removes the object; no other process can add one meanwhile. If it returns
        False, the versions stay, and this returns False, too.
        """
        with transaction(self._connection, self._path):
            if not remove(self._select("digest = ?", digest)):
                return False
            self._connection.execute(
                """DELETE FROM agreed_content
                WHERE (conversation, digest) IN (SELECT conversation, xxh3 FROM version WHERE digest = ?)""",
                (digest,),
            )
            self._connection.execute("DELETE FROM version WHERE digest = ?", (digest,))
        return True

    def _select(self, condition: str, *values: str | int, newest: bool = False) -> tuple[Version, ...]:
        order = "id DESC LIMIT 1" if newest else "id"
        sql = f"SELECT {_COLUMNS} FROM version WHERE {condition} ORDER BY {order}"  # noqa: S608 - no values in it
        with state_errors(self._path):
            rows = select(self._connection, sql, values)
        # The columns are the fields of `Version`, in the same order.
        return tuple(replace(Version(*row), side=Side(row[6]), kind=VersionKind(row[11])) for row in rows)

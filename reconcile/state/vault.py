"""The vault: every version that was overwritten or removed, kept by content (docs/design/run.md#rule-50).

``<state dir>/vault/objects/ab/<blake2b-256>``: named by a cryptographic digest, verified on reading, 0600.
Which conversation an object belongs to is in the state (`reconcile.state.versions`).
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from reconcile.errors import ReconcileError
from reconcile.fs.durability import Durability
from reconcile.fs.hashing import chunks_of
from reconcile.fs.paths import regular_descriptor
from reconcile.fs.posix import O_NOFOLLOW, process_lives
from reconcile.fs.private_files import create_private_file, make_private_directory, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIGEST_BYTES = 32
_TEMPORARY = ".tmp-"
_numbers = itertools.count()


class VaultError(ReconcileError):
    """An object is missing or is not what its name says."""


class VaultObject(Struct, frozen=True):
    """Content in the vault: its name there, its hexadecimal xxh3_128 (`model.snapshot.Digest`), its bytes."""

    digest: str
    xxh3: str
    size: int


class Vault:
    """The content store below one state directory; nothing is made before the first put.

    Several processes may put at the same time. What was put is durable after `flush`, not before.
    """

    __slots__ = ("_durability", "_objects", "_pending", "_shards", "_verified")

    def __init__(self, state_directory: str, durability: Durability | None = None) -> None:
        self._objects = os.path.join(state_directory, "vault", "objects")
        self._durability = durability or Durability()
        self._pending: dict[str, None] = {}
        self._shards: set[str] = set()
        """Directories of objects that were flushed."""
        self._verified: set[str] = set()

    def put_file(self, source: str | int) -> VaultObject:
        """Keep a regular file, given by path or by a descriptor, which is read from its start and left open.

        The returned digests are of the bytes that were kept, whatever happens to the file meanwhile.
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
        """Keep these bytes (the target of a link, an edited file). Raises `OSError`."""
        return self._put(iter((content,)))

    def flush(self) -> None:
        """Make all that was put since the last flush durable; before anything is overwritten or removed.

        Raises `OSError`; everything is then flushed again by the next call.
        """
        if not self._pending:
            return
        shards = {os.path.dirname(path) for path in self._pending}
        above = [
            self._objects,
            os.path.dirname(self._objects),
            os.path.dirname(os.path.dirname(self._objects)),
        ]
        # A shard that was flushed here before has its name on the disk, and so has all that it lies in.
        new = above if shards - self._shards else []
        self._durability.flush_all(list(self._pending), [*sorted(shards), *new])
        self._shards |= shards
        self._pending.clear()
        self._verified.clear()  # or it grows for as long as a watcher lives

    def path(self, digest: str) -> str:
        """Where the object of this digest lies, or would."""
        return os.path.join(self._objects, digest[:2], digest)

    def open(self, digest: str) -> BinaryIO:
        """The verified object, open for reading from its start; the caller closes it.

        Raises `VaultError` where it is missing or damaged.
        """
        path = self.path(digest)
        try:
            fd = regular_descriptor(path, os.O_RDONLY)
        except FileNotFoundError:
            raise VaultError(f"{path}: no such object in the vault", hint=_HINT) from None
        except OSError as error:
            raise VaultError(f"{path}: could not be read: {error.strerror}", hint=_HINT) from error
        file = os.fdopen(fd, "rb")
        found = _blake2b(fd)
        if found != digest:
            file.close()
            raise VaultError(f"{path}: damaged, found content with the digest {found}", hint=_HINT)
        os.lseek(fd, 0, os.SEEK_SET)
        return file

    def read(self, digest: str) -> bytes:
        """The verified content, at once. Raises `VaultError` as `open` does."""
        with self.open(digest) as file:
            return file.read()

    def objects(self) -> dict[str, tuple[int, int]]:
        """Bytes of every object, and when it was stored (ns), by digest. Raises `OSError`."""
        found = {}
        for shard in self._listed(self._objects):
            for digest in self._listed(os.path.join(self._objects, shard)):
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(self.path(digest))
                    found[digest] = (status.st_size, status.st_mtime_ns)
        return found

    def remove(self, digest: str) -> bool:
        """Take an object out for good (``vault --purge``), and say whether it was there. Raises `OSError`."""
        try:
            os.unlink(self.path(digest))
        except FileNotFoundError:
            return False
        self._pending.pop(self.path(digest), None)
        self._durability.fsync_directory(os.path.dirname(self.path(digest)))
        return True

    def clean(self) -> None:
        """Remove what killed processes left half written. Raises `OSError`."""
        for name in _names(self._objects):
            pid = name.removeprefix(_TEMPORARY).partition("-")[0]
            if name.startswith(_TEMPORARY) and pid.isdecimal() and not process_lives(int(pid)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._objects, name))

    def _listed(self, directory: str) -> list[str]:
        return [name for name in _names(directory) if not name.startswith(".")]

    def _put(self, chunks: Iterator[bytes]) -> VaultObject:
        """Hash and write in one pass under a temporary name, then give it its name."""
        from xxhash import xxh3_128  # here: most commands keep nothing

        make_private_directory(self._objects)
        temporary = os.path.join(self._objects, f"{_TEMPORARY}{os.getpid()}-{next(_numbers)}")
        strong, fast, size = hashlib.blake2b(digest_size=_DIGEST_BYTES), xxh3_128(), 0
        fd = create_private_file(temporary)
        try:
            try:
                for chunk in chunks:
                    strong.update(chunk)
                    fast.update(chunk)
                    size += len(chunk)
                    try:
                        write_all(fd, chunk)
                    except OSError as error:  # a full disk: which one is it?
                        error.filename = self._objects
                        raise
            finally:
                os.close(fd)
            kept = VaultObject(strong.hexdigest(), fast.hexdigest(), size)
            self._settle(temporary, kept)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        return kept

    def _settle(self, temporary: str, kept: VaultObject) -> None:
        """Give new content its name. An object that is there stays, if it still is what its name says."""
        path = self.path(kept.digest)
        # One that another process put may not be flushed yet either, so it is flushed in both cases.
        self._pending[path] = None
        if not (os.path.exists(path) if path in self._verified else self._whole(path, kept)):
            make_private_directory(os.path.dirname(path))
            os.replace(temporary, path)
        self._verified.add(path)

    def _whole(self, path: str, kept: VaultObject) -> bool:
        """Read an existing object, once until it is flushed: relying on a damaged one would lose these bytes."""
        try:
            fd = regular_descriptor(path, os.O_RDONLY | O_NOFOLLOW)
        except OSError:
            return False
        try:
            return os.fstat(fd).st_size == kept.size and _blake2b(fd) == kept.digest
        finally:
            os.close(fd)


_HINT = "a copy of it may be in a backup of the state directory"


def _blake2b(fd: int) -> str:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for chunk in chunks_of(fd):
        digest.update(chunk)
    return digest.hexdigest()


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []

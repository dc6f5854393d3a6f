"""The encrypted way to write a tree, with age, and the keys that open it (docs/design/remotes.md#encryption).

A remote has a key of its own, which encrypts everything and hides all names. The file ``format`` has it in a bundle
that the keys of the machines open. So a new machine needs a new bundle only.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import zlib
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from reconcile.fs.durability import fsync_directory
from reconcile.fs.mutations import Root
from reconcile.fs.private_files import make_private_directory, replace_private_file
from reconcile.model.commands import install_command
from reconcile.remote.engine import NoKeyError, RemoteError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyrage.x25519 import Identity, Recipient

_FILE = "age-key.txt"
_BEGIN = "AGE-SECRET-KEY-"
_MOST = 1 << 21
"""Bytes of a content, at most: more is none that a sync writes."""
_PIECE = 1 << 16
PYRAGE = "pyrage>=1.4,<2"
"""The package that encrypts, as pip names it."""


class Bundle(Struct, frozen=True):
    """The keys of a remote: ``secret`` for contents, ``names`` for names.

    ``recipients`` are the public keys of the machines. ``earlier`` are the secrets before: they prove that the new one
    was made by a machine that had the old one. ``epoch`` is that of the file ``format``.
    """

    secret: str
    names: str
    recipients: tuple[str, ...]
    earlier: tuple[str, ...] = ()
    epoch: int = 0


class Sealed:
    """Names and contents that only a holder of the bundle can read, and make."""

    piece = _PIECE
    repeats = False

    def __init__(self, bundle: Bundle) -> None:
        """Take the keys of the remote."""
        self.bundle = bundle
        self._identity = identity_of(bundle.secret)
        self._recipient = self._identity.to_public()
        self._names = bytes.fromhex(bundle.names)

    @property
    def public(self) -> str:
        """The public key of the remote, which a machine remembers. It is nowhere in the remote."""
        return str(self._recipient)

    def continues(self, public: str) -> bool:
        """Tell whether the remote's key is one that a machine has seen, or was made by a holder of that."""
        return public in {self.public, *(str(identity_of(each).to_public()) for each in self.bundle.earlier)}

    def key(self, conversation: str) -> str:
        """Return a name that tells nothing without the bundle."""
        return self._hidden(conversation)

    def slot(self, conversation: str, slot: str) -> str:
        """Return a name that differs from that of the same file of another conversation."""
        return self._hidden(f"{conversation}\0{slot}")

    def seal(self, content: bytes) -> bytes:
        """Compress and encrypt: git can compress neither later."""
        import pyrage  # here: most remotes need no key

        return pyrage.encrypt(zlib.compress(content, 6), [self._recipient])

    def open(self, content: bytes) -> bytes:
        """Decrypt and decompress. Raises `ValueError`."""
        import pyrage

        try:
            packed = pyrage.decrypt(content, [self._identity])
            unpacking = zlib.decompressobj()
            found = unpacking.decompress(packed, _MOST)
        except (pyrage.DecryptError, zlib.error) as error:
            raise ValueError(f"it can't be decrypted: {error}") from None
        if not unpacking.eof:
            raise ValueError("it is larger than anything that a sync writes")
        return found

    def wrapped(self, epoch: int) -> str:
        """Return the bundle for the file ``format``, which each machine of it can open, and each later key."""
        import pyrage

        readers = [_recipient(each) for each in self.bundle.recipients]
        content = msgspec.json.encode(msgspec.structs.replace(self.bundle, epoch=epoch))
        sealed = pyrage.encrypt(content, [*readers, self._recipient])
        return base64.b64encode(sealed).decode()

    def with_recipients(self, recipients: Iterable[str]) -> Sealed:
        """Return the same keys for other machines."""
        return Sealed(msgspec.structs.replace(self.bundle, recipients=tuple(dict.fromkeys(recipients))))

    def rotated(self, recipients: Iterable[str]) -> Sealed:
        """Return new keys for these machines, which continue the present ones."""
        return _new_keys(recipients, (self.bundle.secret, *self.bundle.earlier))

    def _hidden(self, text: str) -> str:
        raw = text.encode(errors="surrogateescape")
        return hashlib.blake2b(raw, key=self._names, digest_size=16).hexdigest()


class Keys:
    """The key of this machine, in a file of age's own form. It may be that of another machine, copied by hand.

    ``is_wanted``: the remote was added as an encrypted one.
    """

    def __init__(self, directory: str, *, is_wanted: bool) -> None:
        """Name the directory of the file, which is made when a key is needed first."""
        self.path, self.is_wanted = os.path.join(directory, _FILE), is_wanted

    def make(self) -> None:
        """Make the file, if there is none; it is on the medium then. Raises `RemoteError`.

        A key that another process has made meanwhile stays: the keys of a remote may be encrypted for it already.
        """
        _require_age()
        if not os.path.lexists(self.path):
            made = make_private_directory(os.path.dirname(self.path))
            new = identity_of(None)
            text = f"# a key of age, made by reconcile\n# public key: {new.to_public()}\n{new}\n"
            temporary = f"{self.path}.{os.urandom(6).hex()}"
            replace_private_file(temporary, text.encode(), flushed=True)
            try:
                with closing(Root(os.path.realpath(os.path.dirname(self.path)))) as root, suppress(FileExistsError):
                    root.rename_new(os.path.basename(temporary), os.path.basename(self.path))
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            for directory in (self.path, *made):
                fsync_directory(os.path.dirname(directory))

    @cached_property
    def identities(self) -> Sequence[Identity]:
        """The secret keys of the file. Raises `RemoteError`."""
        _require_age()
        if not os.path.exists(self.path):
            way = f"put your copy of the key back as {self.path}, or make a new key, and see it: reconcile remote key"
            raise RemoteError("the remote is encrypted, and this machine has no key", way)
        with open(self.path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file]
        found = [identity_of(line) for line in lines if line.startswith(_BEGIN)]
        if not found:
            raise RemoteError(f"{self.path}: it has no line that begins with {_BEGIN}", "restore it, or move it away")
        return found

    @property
    def publics(self) -> list[str]:
        """The public keys of this machine; the first one is its own."""
        return [str(each.to_public()) for each in self.identities]

    def new(self) -> Sealed:
        """Return the keys of a new remote."""
        return _new_keys(self.publics[:1], ())

    def opened(self, wrapped: str, *others: str) -> Sealed:
        """Return the keys in a bundle. ``others`` are secrets that may open it, too.

        Raises:
            NoKeyError: this machine has no key that does.
            RemoteError: the package that decrypts is missing.
        """
        _require_age()
        import pyrage

        identities = [*self.identities, *(identity_of(each) for each in others)]
        try:
            content = pyrage.decrypt(base64.b64decode(wrapped), identities)
            return Sealed(msgspec.json.decode(content, type=Bundle))
        except (pyrage.DecryptError, ValueError):
            way = f"on a machine that can read it: reconcile remote key add {self.publics[0]}"
            raise NoKeyError(
                "the remote is encrypted, and no key of this machine opens it",
                f"{way}; if there is none, use a new repository: the stores have all conversations",
            ) from None


def identity_of(text: str | None) -> Identity:
    """Return a secret key by its text, or a new one. Raises `RemoteError`."""
    import pyrage
    from pyrage.x25519 import Identity

    try:
        return Identity.generate() if text is None else Identity.from_str(text)
    except pyrage.IdentityError as error:
        raise RemoteError(f"a key can't be read: {error}", "a key of age begins with AGE-SECRET-KEY-1") from None


def checked_recipient(text: str) -> str:
    """Return a public key. Raises `RemoteError` for another text."""
    _require_age()
    return str(_recipient(text))


def _recipient(text: str) -> Recipient:
    import pyrage
    from pyrage.x25519 import Recipient

    try:
        return Recipient.from_str(text)
    except pyrage.RecipientError as error:
        raise RemoteError(f"{text!r} is no public key of age: {error}", "show it there: reconcile remote key") from None


def _new_keys(recipients: Iterable[str], earlier: tuple[str, ...]) -> Sealed:
    unique = tuple(dict.fromkeys(recipients))
    return Sealed(Bundle(str(identity_of(None)), os.urandom(32).hex(), unique, earlier))


def _require_age() -> None:
    try:
        import pyrage  # noqa: F401 - is it there?
    except ImportError:
        way = f"install it: {install_command(PYRAGE, sys.prefix, sys.executable)}"
        raise RemoteError("encryption needs the package pyrage, which is not installed", way) from None

"""The secrets that the user allows to publish: a text file in the state directory, with fingerprints only.

Each line of ``allowed-secrets.jsonl`` has the fingerprint of a secret, its kind, the conversation in which it was
allowed, and the date. A secret is allowed in every conversation of the store; a deleted line forbids it again. The
fingerprints' key is in ``secrets.key``, so that the list alone tells nothing about a guess. Without the key no line
applies. Both are in the state, never in the project: a pulled repository must not allow what the check would hold.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.paths import open_regular
from reconcile.fs.private_files import replace_private_file
from reconcile.secrets.detection import find_secrets
from reconcile.secrets.prefilter import Prefilter
from reconcile.state.connection import StateError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.secrets.detection import Finding

NAME = "allowed-secrets.jsonl"
KEY = "secrets.key"
_KEY_BYTES = 32


class AllowedSecret(Struct, frozen=True):
    """A secret that may be published, by its fingerprint; ``conversation`` is the one in which it was allowed."""

    fingerprint: str
    kind: str
    conversation: str


class AllowedSecrets:
    """The list in one state directory. Who adds to it holds the run lock."""

    def __init__(self, directory: str) -> None:
        """Read nothing yet."""
        self._directory = directory
        self._new_key = os.urandom(_KEY_BYTES)
        self._prefilter = Prefilter()

    def find_secrets(self, content: bytes, before: Collection[bytes] = ()) -> tuple[Finding, ...]:
        """Return the secrets in a file of a conversation that are not allowed, as `find_secrets` of the check.

        Raises:
            StateError: the list or its key can't be read.
        """
        found = find_secrets(content, self._key, before, self._prefilter)
        allowed = self.fingerprints() if found else frozenset()
        return tuple(finding for finding in found if finding.fingerprint not in allowed)

    @cached_property
    def _key(self) -> bytes:
        return self.key()

    def key(self) -> bytes:
        """Return the key of the fingerprints; until a secret is allowed, one that isn't kept. Raises `StateError`."""
        content = self._content(KEY)
        if content is None:
            return self._new_key
        if len(content) != _KEY_BYTES:
            raise self._unreadable(KEY, f"{len(content)} bytes instead of {_KEY_BYTES}")
        return content

    def keep_key(self) -> None:
        """Keep this object's key if there is none yet, so that its fingerprints hold in later processes.

        Raises:
            StateError: the key can't be read or written.
        """
        if self._content(KEY) is None:
            self._write(KEY, self._new_key)

    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of all allowed secrets. Raises `StateError` if a line can't be read."""
        return frozenset(allowed.fingerprint for allowed in self.read())

    def read(self) -> tuple[AllowedSecret, ...]:
        """Return the list. Raises `StateError` if a line can't be read."""
        lines = (self._content(NAME) or b"").split(b"\n")
        return tuple(self._parsed(number, line) for number, line in enumerate(lines, 1) if line.strip())

    def add(self, secrets: Iterable[AllowedSecret], now_ns: int) -> None:
        """Add secrets that are not in the list yet, with fingerprints of this object's key; both are flushed.

        Raises:
            StateError: a file can't be read or written.
        """
        self.keep_key()
        known, day = self.fingerprints(), datetime.fromtimestamp(now_ns // 10**9, UTC).date().isoformat()
        new = {secret.fingerprint: secret for secret in secrets if secret.fingerprint not in known}
        if not new:
            return
        lines = [
            json.dumps(
                {
                    "fingerprint": secret.fingerprint,
                    "kind": secret.kind,
                    "conversation": secret.conversation,
                    "allowed": day,
                }
            )
            for secret in new.values()
        ]
        before = (self._content(NAME) or b"").rstrip()
        self._write(NAME, b"\n".join([*([before] if before else []), *(line.encode() for line in lines), b""]))

    def _content(self, name: str) -> bytes | None:
        try:
            with open_regular(os.path.join(self._directory, name)) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(name, error.strerror or str(error)) from None

    def _write(self, name: str, content: bytes) -> None:
        path = os.path.join(self._directory, name)
        try:
            replace_private_file(path, content, flushed=True)
        except OSError as error:
            raise StateError(f"{path}: can't be written ({error.strerror})", "make the directory writable") from None

    def _parsed(self, number: int, line: bytes) -> AllowedSecret:
        try:
            value = json.loads(line)
            return AllowedSecret(value["fingerprint"], value["kind"], value["conversation"])
        except (ValueError, RecursionError, TypeError, KeyError):
            raise self._unreadable(NAME, f"line {number} is no allowed secret") from None

    def _unreadable(self, name: str, why: str) -> StateError:
        path = os.path.join(self._directory, name)
        return StateError(f"{path}: {why}", "correct or delete it; secrets that it allowed are then blocked again")

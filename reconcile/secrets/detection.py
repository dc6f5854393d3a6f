"""Finds secrets in the files of a conversation, in texts as their program decodes them.

A finding never contains the secret. It has its kind, the event, the first characters with the length, and a
fingerprint. The fingerprint is a keyed hash: without the key nobody can test a guess.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.secrets.rules import matches
from reconcile.secrets.texts import new_texts

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.secrets.prefilter import Prefilter
    from reconcile.secrets.rules import Match

_SHOWN = 4
"""Characters of a secret that are shown; of a short one, a quarter."""


class Finding(Struct, frozen=True):
    """A secret in a file, without the secret.

    ``event`` is the number of the event from 1, ``line`` that of a line in a file without events; None: neither.
    """

    kind: str
    event: int | None
    line: int | None
    masked: str
    fingerprint: str

    @property
    def words(self) -> str:
        """The finding as a text: where, kind and masked secret."""
        where = f"event {self.event}: " if self.event else f"line {self.line}: " if self.line else ""
        return f"{where}{self.kind}, {self.masked}"


def find_secrets(
    content: bytes, key: bytes, before: Collection[bytes] = (), prefilter: Prefilter | None = None
) -> tuple[Finding, ...]:
    """Return the secrets in a file of a conversation, each once, by their places.

    ``key`` is the key of the fingerprints. Events that one of the versions ``before`` has too are not checked. With a
    prefilter, the answer is the same.
    """
    is_wanted = prefilter.may_have_secret if prefilter and not before else bool
    if not is_wanted(content):
        return ()
    found: dict[str, Finding] = {}
    texts = new_texts(content, before, is_wanted)
    pieces = texts.pieces
    text = "\n".join([piece.text for piece in pieces])
    starts: list[int] = []
    at = 0
    for piece in pieces:
        starts.append(at)
        at += len(piece.text) + 1
    for match in matches(text):
        piece = pieces[bisect_right(starts, match.start) - 1]
        fingerprint = fingerprint_of(match, key)
        event = piece.event and piece.event + texts.events_before(content)
        found.setdefault(fingerprint, Finding(match.kind, event, piece.line, masked(match), fingerprint))
    return tuple(found.values())


def masked(match: Match) -> str:
    """Return the first characters of a secret and its length."""
    value = match.value
    return f"{value[: min(_SHOWN, len(value) // 4)]}… ({len(value)} characters)"


def with_masked_secrets(text: str) -> str:
    """Return a text of one line with each secret in it masked."""
    for match in matches(text):
        text = text.replace(match.value, masked(match))
    return text


def fingerprint_of(match: Match, key: bytes) -> str:
    """Return the keyed hash of a secret. Line ends and their escapes in a private key don't count."""
    from hashlib import blake2b  # here: most texts have no secret

    value = "".join(match.value.replace("\\n", "").replace("\\r", "").split())
    return blake2b(f"{match.kind}\0{value}".encode(errors="surrogatepass"), key=key[:64], digest_size=16).hexdigest()

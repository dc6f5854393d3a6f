"""How names and contents are written in the tree of a remote. `reconcile.remote.sealing` has the encrypted way."""

from __future__ import annotations

import re
from typing import Protocol

from reconcile.fs.hashing import digest

_PLAIN = re.compile(r"[0-9A-Za-z_-]{1,80}")


class Coding(Protocol):
    """A way to write names and contents. All that a machine writes in one commit has the same."""

    @property
    def piece(self) -> int:
        """Bytes of a piece: an append to a larger file sends its last piece only."""

    @property
    def repeats(self) -> bool:
        """Whether equal contents have equal bytes, so that writing one again sends nothing."""

    def key(self, conversation: str) -> str:
        """Return the name of a conversation in the tree."""

    def slot(self, conversation: str, slot: str) -> str:
        """Return the name of a file of a conversation, by its short name."""

    def seal(self, content: bytes) -> bytes:
        """Return a content as the tree has it."""

    def open(self, content: bytes) -> bytes:
        """Return a content of the tree as it was before. Raises `ValueError`."""


class Plain:
    """Names and contents as they are."""

    piece = 1 << 20
    repeats = True

    def key(self, conversation: str) -> str:
        """Return the id itself, if every file system and git take it."""
        return conversation if _PLAIN.fullmatch(conversation) else digest(conversation.encode(errors="surrogateescape"))

    def slot(self, conversation: str, slot: str) -> str:  # noqa: ARG002 - of the protocol
        """Return the name itself."""
        return slot

    def seal(self, content: bytes) -> bytes:
        """Return the content itself."""
        return content

    def open(self, content: bytes) -> bytes:
        """Return the content itself."""
        return content


PLAIN = Plain()

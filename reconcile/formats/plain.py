"""The design texts' tree: JP's files, and the whole directory name as the id (``ROOT_A/``, ``CHILD_B/``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reconcile.core.names import CHILDREN
from reconcile.formats.files import ManagedFiles

if TYPE_CHECKING:
    from collections.abc import Collection

_DECISECOND = 100_000_000
_NAME = re.compile(r"[^.\x00-\x1f\x7f-\x9f/\ud800-\udfff][^\x00-\x1f\x7f-\x9f/\ud800-\udfff]*")
"""No dot in front, no control characters, and nothing that JSON could not say as a ``parent_id``:
a name that is not UTF-8 on disk reaches us with lone surrogates in it.
"""


class PlainFormat(ManagedFiles):
    """Ids are names; they carry no title and no time."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "plain"

    def id_of(self, dirname: str) -> str | None:
        """The name itself; ``conversations`` is the tree's own word."""
        return dirname if dirname != CHILDREN and _NAME.fullmatch(dirname) else None

    def parse_id(self, text: str) -> str | None:
        """Every valid name is a full spelling of an id; whether it exists is for others to say."""
        return self.id_of(text)

    def is_whole(self, text: str) -> bool:  # noqa: ARG002
        """Any name may be the beginning of another."""
        return False

    def parent_of(self, value: object) -> str | None:
        """A text that could be the name of a directory."""
        return self.id_of(value) if isinstance(value, str) else None

    def order(self, conversation: str) -> tuple[int, str]:
        """By code points of the name."""
        return (0, conversation)

    def dirname(self, conversation: str, title: str | None) -> str:  # noqa: ARG002
        """The id, whatever the title is."""
        return conversation

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """A name from the time in deciseconds, or from the next one that nobody has."""
        number = max(0, now_ns // _DECISECOND)
        while (conversation := f"fork-{number}") in taken:
            number += 1
        return conversation

    def lock_name(self, conversation: str) -> str | None:  # noqa: ARG002
        """Nobody else writes these, so there is no lock to respect."""
        return None

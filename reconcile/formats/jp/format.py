"""JP's own format: numbered conversations, directories named after number and title.

See docs/design/formats/jp.md#names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.formats.jp import ids, slug
from reconcile.formats.jp.files import ManagedFiles

if TYPE_CHECKING:
    from collections.abc import Collection

_DECISECOND = 100_000_000
"""In nanoseconds."""
_WHOLE_DIGITS = 10
"""Of the ids up to September 2001; since then they have eleven."""


class JpFormat(ManagedFiles):
    """A conversation is ``jp-c<decimal>`` everywhere inside reconcile."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "jp"

    def id_of(self, dirname: str) -> str | None:
        """JP's index rule without the two spellings that JP itself cannot load.

        See docs/design/formats/jp.md#directory-lookup.
        """
        return ids.from_dirname(dirname)

    def parse_id(self, text: str) -> str | None:
        """A full id, with or without a workspace suffix, a bare decimal, or a directory's name."""
        return ids.from_text(text) or ids.from_dirname(text)

    def is_whole(self, text: str) -> bool:
        """A number of ten digits is an id of its own, not that of eleven digits which it begins.

        See docs/design/formats/jp.md#edge-case-12.
        """
        found = ids.from_text(text) or ids.from_decimal(text)
        return found is not None and len(ids.decimal(found)) >= _WHOLE_DIGITS

    def parent_of(self, value: object) -> str | None:
        """The four spellings of docs/concepts.md#whose-child-and-where: number, id, id with a suffix, decimal text."""
        if isinstance(value, str):
            return ids.from_text(value) or ids.from_decimal(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return ids.from_number(value)
        return None

    def order(self, conversation: str) -> tuple[int, str]:
        """By time of creation."""
        return (int(ids.decimal(conversation)), "")

    def dirname(self, conversation: str, title: str | None) -> str:
        """The name that JP would rename the directory to."""
        return slug.dirname(ids.decimal(conversation), title)

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """The decisecond of creation, or the next one that nobody has."""
        number = max(0, now_ns // _DECISECOND)
        while (conversation := ids.from_number(number)) in taken:
            number += 1
        if conversation is None:
            raise ValueError(f"no conversation id is left for the time {now_ns} ns")
        return conversation

    def lock_name(self, conversation: str) -> str | None:
        """JP's own lock file, below ``locks/`` (docs/design/formats/jp.md#lock-files)."""
        return f"{conversation}.lock"

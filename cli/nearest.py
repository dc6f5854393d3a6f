"""The conversations that a mistyped id or title may stand for, which the hint of an error names."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 3
"""Number of conversations that a hint names. More that are equally near say that none was meant."""
_LEAST = 0.75
"""The least similarity of a text and a name, of 1."""


def nearest(typed: Iterable[str], named: Iterable[tuple[str, str]]) -> list[str]:
    """Return the conversations of which a name is most similar to one of these texts; empty if none is similar.

    ``named`` has pairs of a conversation and a name. A text may stand for the beginning of a name, or for as many
    words within it.
    """
    texts = [text for text in typed if text]
    found: dict[str, set[str]] = {}
    for id_, name in named:
        for text in texts:
            for part in _parts(name, text):
                found.setdefault(part, set()).add(id_)
    best, meant = _LEAST, set[str]()
    for text in texts:
        matcher = SequenceMatcher(b=text, autojunk=False)
        for part, ids in found.items():
            matcher.set_seq1(part)
            if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best or (near := matcher.ratio()) < best:
                continue
            meant = ids if near > best else meant | ids
            best = near
    return sorted(meant) if len(meant) <= _MOST else []


def _parts(name: str, text: str) -> Iterator[str]:
    """Yield a name, its beginning of the text's length, and each part of it with as many words as the text."""
    yield name
    yield name[: len(text)]
    words, count = name.split(), len(text.split())
    if count < len(words):
        yield from (" ".join(words[at : at + count]) for at in range(len(words) - count + 1))

"""The pages are in the house style, as far as a program can tell: short sentences, and no words that stop a reader."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import PROJECT
from tests.support.pages import pages, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_WORDS = 30
"""A sentence should have fewer than 25. Code counts as one word, and a list after a colon by itself."""

WORDS = (
    *("anew", "as asked", "in its stead", "nobody", "somebody", "unasked"),
    *("are said", "is said", "come back", "comes back", "goes along", "lies", "looked at", "stands"),
    *("mended", "taken back", "taken up", "takes up", "told apart"),
)
"""Words that the house style replaces by a standard verb or noun."""

_SKIPPED = re.compile(r"<!--.*?-->|^```.*?^```$", re.DOTALL | re.MULTILINE)
"""Comments and blocks of code. The style counts in generated parts, too."""
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_BLOCK = re.compile(r"\n\n|\n(?=\s*(?:[*|-]|\d+\.)\s)")
_SENTENCE = re.compile(r"(?<=[.:;!?])(?:\*\*)?\s+|(?<=[.:;!?]\*\*)\s+")
_PLAIN = ((re.compile(r"`[^`]*`"), "X"), (re.compile(r"\]\([^)]*\)"), "]"))
_FORBIDDEN = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:What|Where) (?!to\b)[^?]*[.;]$")


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page, and the cells of its tables, with code as one word."""
    for block in _BLOCK.split(_HEADING.sub("", _SKIPPED.sub("", page))):
        whole = " ".join(block.split())
        for pattern, plain in _PLAIN:
            whole = pattern.sub(plain, whole)
        for part in whole.split("|") if whole.startswith("|") else [whole]:
            yield from _SENTENCE.split(part.strip(" *#-"))


def problems_of(sentence: str) -> Iterator[str]:
    """Yield the problems of a sentence."""
    count = len(re.findall(r"[A-Za-z][\w'-]*", sentence))
    if count > MOST_WORDS:
        yield f"{count} words: {sentence}"
    if found := _FORBIDDEN.search(sentence):
        yield f"“{found[0]}”: {sentence}"
    if _CLAUSE.match(sentence):
        yield f"begins with a clause: {sentence}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_a_page_is_in_the_house_style(page: Path) -> None:
    found = [problem for sentence in sentences(text(page)) for problem in problems_of(sentence)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("page", "problems"),
    [
        ("A run removes it. The vault keeps it.", 0),
        ("What waits below them comes back.", 2),
        ("## What comes back", 0),
        ("What does a run do?", 0),
        ("| What | Why |\n| --- | --- |\n| nobody can read it | x |", 1),
        ("* " + "word " * 31, 1),
        ("* a list: " + "word " * 30 + "\n* of `" + "word " * 31 + "`", 0),
    ],
)
def test_problems_are_found(page: str, problems: int) -> None:
    assert len([problem for sentence in sentences(page) for problem in problems_of(sentence)]) == problems

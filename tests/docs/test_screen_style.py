"""The words of the screen keep the house style where a program can tell: short sentences, standard words."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from reconcile.model.reasons import CASES, Reason
from tests.cli.modules import module
from tests.support.documents import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

words = module("output.words")
MOST_WORDS = 24
FORBIDDEN = (
    r"somebody|nobody|anybody",
    r"(is|are) said|says so|say(s|ing)?\b",
    r"go(es)? (along|into|with|away|on)|comes? back|stands?\b|l(ies|ay)\b",
    r"anew|mend(s|ed|ing)?\b|unasked|as asked|t(ake|akes|aken|ook) out|put back|takes? back",
    r"losers?\b|aged\b|digests?\b|baselines?\b|extras?\b|units?\b|streams?\b|silos?\b",
    r"set aside|held\b|brought|in its stead|tells? apart",
    r"^(What|Where)\b",
)
"""Words that a reader stumbles over, or that only the code uses (../shared/wording.md has the standard ones)."""
OURS = ("status", "ls", "log", "checkouts", "vault")
"""The commands whose tables are covered, besides cli/output/."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text of the tables of words, with its source."""
    for name in ("VERBS", "STATES", "INTENTS"):
        yield from ((f"words.{name}", word) for word in getattr(words, name).values())
    yield from (("words.PHRASES", phrase) for both in words.PHRASES.values() for phrase in both)
    yield from ((f"Reason.{reason.name}", reason.words) for reason in Reason)
    yield from (("CASES", meaning) for _, meaning in CASES.values())
    directory = PROJECT / "cli"
    for path in (*sorted((directory / "output").glob("*.py")), *(directory / "commands" / f"{n}.py" for n in OURS)):
        yield from ((path.name, text) for text in printed_by(path))


def printed_by(path: Path) -> Iterator[str]:
    """Yield the texts in a module that have a space and are no docstrings; values in them are shown as ``{}``."""
    tree = ast.parse(path.read_bytes())
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(map(str, parts))
        if isinstance(node, ast.keyword) and node.arg in ("help", "metavar"):
            inner.update(map(id, ast.walk(node.value)))
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inner
            and " " in node.value
        ):
            yield node.value


def faults(text: str) -> list[str]:
    without_code = re.sub(r"`[^`]*`|^reconcile .*", "", text)
    sentences = re.split(r"[.;:!?]\s", without_code)
    found = [f"{len(each.split())} words" for each in sentences if len(each.split()) > MOST_WORDS]
    return found + [hit[0] for pattern in FORBIDDEN for hit in re.finditer(rf"\b(?:{pattern})", without_code)]


def test_the_words_of_the_screen_keep_the_style() -> None:
    found = {f"{source}: {text}": wrong for source, text in texts() if (wrong := faults(text))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "it is held, and nobody can read it",
        "What waits below comes back",
        "put back, as the record has it",
        "one " * 25,
        "stream: edited on both sides; the loser is in the vault",
    ],
)
def test_a_bad_text_is_noticed(text: str) -> None:
    assert faults(text) != []


def test_the_texts_of_the_program_are_found() -> None:
    found = list(texts())
    assert ("summary.py", "Nothing to do.") in found
    assert len(found) > 250

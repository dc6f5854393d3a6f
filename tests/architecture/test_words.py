"""Names are the field's words, and docstrings are plain technical English.

`OLD_NAMES` and `HARD_TO_READ` list what is not done yet, and only shrink.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]

WORDS = {
    "action result": ("deed", "deeds"),
    "ancestry": ("kin",),
    "arguments": ("given", "worded"),
    "atypical, to be removed, unindexable": ("doomed", "loose", "usual"),
    "clean, dirty, debounced": ("settled", "settling", "stir", "unsettled"),
    "command line, request, request key": ("asked", "asking", "called", "instead"),
    "connection pool, shared index, planning basis": ("ground", "sight", "sites"),
    "copy location": ("spot", "whereabouts"),
    "encode, decode, report, receive": ("hear", "heard", "news", "tell", "teller", "told"),
    "event queue, events, unavailable": ("deaf", "ears", "inbox", "pace"),
    "incremental run, index": ("onepass", "onwards", "recalled", "sweep", "swept"),
    "lock, reader-writer lock": ("exclusion",),
    "new, created, own, other": ("anew", "made", "met", "mine", "theirs"),
    "no name: the role or the type": ("each", "found", "nobody", "somebody"),
    "partially replaced, truncated, cleanup": ("halves", "leftovers", "remnants", "torn"),
    "planning context": ("board",),
    "repair, merge, adoptable": ("alike", "joining", "mend", "mended", "mending", "mends"),
    "scan, rescan, world state": ("look", "looked", "looks", "relook"),
    "status": ("standing",),
}
"""Private words that names had, by the standard ones that took their place."""

RIGHT = {"mend"}
"""Names that users type or read: they stay."""

MOST_WORDS = 30


def modules() -> dict[str, list[Path]]:
    """The modules by package: the first two parts of their path."""
    packages: dict[str, list[Path]] = defaultdict(list)
    for top in ("reconcile", "cli"):
        for module in sorted((PROJECT / top).rglob("*.py")):
            parts = module.relative_to(PROJECT).parts
            packages["/".join(parts[:2]) if len(parts) > 2 else top].append(module)
    return packages


def parts_of(name: str) -> list[str]:
    """The words of a name in snake_case or CamelCase."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


@cache
def nodes_of(module: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(module.read_bytes())))


def names_in(module: Path) -> Iterator[str]:
    """The names of a module, and of its classes, functions and parameters."""
    yield module.stem
    for node in nodes_of(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def texts_in(module: Path) -> Iterator[str]:
    """The docstrings of a module: also those of attributes."""
    for node in nodes_of(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield re.sub(r"\n +", "\n", node.value.value.strip())


def sentences_of(text: str) -> list[str]:
    """The sentences of a docstring; a paragraph and an entry of a list end one, too."""
    blocks = re.split(r"\n\n|\n(?=\* |[A-Za-z]+Error: |Raises:)", text)
    return [sentence for block in blocks for sentence in re.split(r"(?<=[.!?])\s+", block) if sentence]


def old_words(module: Path) -> set[str]:
    old = {word for group in WORDS.values() for word in group}
    return {word for name in names_in(module) if name not in RIGHT for word in parts_of(name)} & old


def hard_sentences(module: Path) -> list[str]:
    found = []
    for text in texts_in(module):
        sentences = sentences_of(text)
        if re.match(r"(What|Where)\b", text):
            found.append(sentences[0])
        found += [sentence for sentence in sentences if len(sentence.split()) > MOST_WORDS]
    return found


PACKAGES = modules()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_names_are_standard_words(package: str) -> None:
    used = {module: old_words(module) for module in PACKAGES[package]}
    wrong = {str(module.relative_to(PROJECT)): words for module, words in used.items() if words}
    assert wrong == {}, f"see WORDS in {Path(__file__).name} for the standard words"


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_docstrings_are_easy_to_read(package: str) -> None:
    hard = {str(module.relative_to(PROJECT)): hard_sentences(module) for module in PACKAGES[package]}
    wrong = {module: sentences for module, sentences in hard.items() if sentences}
    assert wrong == {}, f"a docstring begins with What or Where, or a sentence has more than {MOST_WORDS} words"


def test_the_linter_sees_old_names_and_hard_sentences(tmp_path: Path) -> None:
    module = tmp_path / "deeds.py"
    module.write_text(
        f'class KeptSweep:\n    """Where it is kept."""\n\n\ndef _heard_of(each):\n    """{"word " * 31}."""\n'
        'def total(rows, counts):\n    """Return the sum of all rows."""\n'
    )
    assert old_words(module) == {"deeds", "sweep", "heard", "each"}
    assert len(hard_sentences(module)) == 2

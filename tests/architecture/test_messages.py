"""The messages that people read are short, plain sentences with the field's words.

A message is every text of at least three words in the code that is no docstring, no help of an option, and no SQL or
pattern. The reasons and the screens have tests of their own.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
MOST_WORDS = 24

NOT_OURS = {
    "reconcile/formats/claudesidian/briefing.py": "texts of the other program",
    "reconcile/formats/jp/lost_checkouts.py": "texts of the other program",
    "reconcile/model/reasons.py": "tests/docs compares it with docs/reasons.md",
}
"""Modules whose texts are checked elsewhere, or can't be changed."""

NOT_YET = {"cli/output": "the screens are being written"}
"""Packages whose texts are not plain yet."""

FORBIDDEN = {
    "a person or the process": r"somebody|nobody|someone",
    "again, new": r"anew",
    "blocked, left alone": r"set aside",
    "by itself, as requested": r"unasked|as asked",
    "delete, remove": r"tak(?:e|es|en) (?:away|out)",
    "events": r"streams?",
    "fix, correct, repair": r"mend(?:s|ed|ing)?",
    "hash": r"digests?",
    "is, is in, exists": r"lies|stands",
    "print, show": r"is said|says|tells",
    "restore, return": r"comes? back|put back",
    "returns, leaves, is removed": r"goes|go along",
    "store": r"silos?",
}
"""Words of this project alone, by the ones to use."""

WORD = re.compile(r"[a-z]+", re.IGNORECASE)
OPTION = re.compile(r"--[a-z]+(?:-[a-z]+)*|`[^`]*`")
FOUND_EXPECTED = re.compile(r"\bfound\b.*\bexpected\b")
CLAUSE = re.compile(r"(?:^|[.;:]\s+)(?:what|where)\b", re.IGNORECASE)
COMMAND = r"^reconcile \w"
SQL = r"^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|BEGIN)\b|^[a-z_0-9]+, [a-z_0-9, ]+$|=\s*\?"
CODE = re.compile(rf"{COMMAND}|{SQL}|\w\[\w+[\[,]|[\\^$|]|\[\^")


class Message(NamedTuple):
    """One text of the code, with ``{}`` in the place of each value."""

    line: int
    text: str


def modules() -> list[Path]:
    """The modules with messages."""
    found = [path for top in ("reconcile", "cli") for path in sorted((PROJECT / top).rglob("*.py"))]
    names = {path: str(path.relative_to(PROJECT)) for path in found}
    return [path for path, name in names.items() if name not in NOT_OURS and not name.startswith(tuple(NOT_YET))]


def messages_in(tree: ast.AST) -> Iterator[Message]:
    """The messages of a module, in order."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))  # a docstring
        if isinstance(node, ast.JoinedStr):
            left_out.update(map(id, node.values))  # the parts of a text that is listed as a whole
        if isinstance(node, ast.keyword) and node.arg in ("help", "metavar", "short_help", "epilog"):
            left_out.update(map(id, ast.walk(node.value)))
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            left_out.update(map(id, ast.walk(node.annotation)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar"):
            left_out.update(map(id, node.args))
    texts = [Message(getattr(node, "lineno", 0), _text_of(node)) for node in ast.walk(tree) if id(node) not in left_out]
    found = [each for each in texts if len(WORD.findall(each.text)) > 2 and not CODE.search(each.text)]
    yield from sorted(found, key=lambda message: message.line)


def _text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def problems_of(text: str) -> list[str]:
    """What is wrong with a message, in words."""
    plain = OPTION.sub("{}", text)
    found = [
        f"a sentence of {words} words"
        for sentence in re.split(r"[.!?](?:\s+|$)|\n", plain)
        if (words := len(sentence.split())) > MOST_WORDS
    ]
    found += [
        f"{match[0]!r}: write {better}"
        for better, pattern in FORBIDDEN.items()
        if (match := re.search(rf"\b(?:{pattern})\b", plain, re.IGNORECASE))
    ]
    found += ["'found ..., expected ...': write a sentence"] if FOUND_EXPECTED.search(plain) else []
    found += ["What or Where as a subject"] if CLAUSE.search(plain) else []
    return found


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(PROJECT)))
def test_messages_are_plain_sentences(module: Path) -> None:
    tree = ast.parse(module.read_bytes())
    found = {f"line {line}: {text}": problems for line, text in messages_in(tree) if (problems := problems_of(text))}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("the file is gone; what was there comes back", "'comes back': write restore, return"),
        ("a.json: found a list, expected an object", "'found ..., expected ...': write a sentence"),
        ("no id; where it lay is unknown", "What or Where as a subject"),
        ("word " * 25 + "end", "a sentence of 26 words"),
        ("mended by somebody", "'somebody': write a person or the process"),
    ],
)
def test_a_private_word_or_a_long_sentence_is_found(text: str, problem: str) -> None:
    assert problem in problems_of(text)


@pytest.mark.parametrize("text", ["", "run it again with --mend NAME", "see what is wrong: reconcile status {}"])
def test_a_plain_sentence_is_none(text: str) -> None:
    assert problems_of(text) == []


def test_texts_of_the_code_are_told_from_messages() -> None:
    code = '''
"""A docstring of three words."""
@option("--a", help="Help of an option.")
def f(x: "list of many things"):
    raise Error(f"{x}: not a file", hint="make it readable first")
    execute("SELECT a FROM b WHERE c = ?")
'''
    assert [message.text for message in messages_in(ast.parse(code))] == ["{}: not a file", "make it readable first"]

"""The words of the screen are one table in the program and one glossary in docs/concepts.md."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from reconcile.model.plan import Kind
from tests.cli.modules import module
from tests.support.documents import DOCS, PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

words = module("output.words")


def glossary(heading: str) -> dict[str, tuple[str, ...]]:
    """The words below a heading of the glossary, each with its ids."""
    page = (DOCS / "concepts.md").read_text(encoding="utf-8")
    below = page.split(f"\n### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = re.findall(r"^\| (.*) \|$", below, re.MULTILINE)[2:]
    cells = [row.split(" | ") for row in rows]
    assert all(meaning.strip() for _, _, meaning in cells)
    return {word.strip("`"): tuple(re.findall(r"`([^`]+)`", ids)) for word, ids, _ in cells}


def by_word(table: dict[str, str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, word in table.items():
        found[word] = (*found.get(word, ()), key)
    return found


def test_every_verb_is_in_the_glossary() -> None:
    others = {words.RENAME: ("move",), words.PUBLISH: ("project",), words.RESTORE: ("project",)}
    assert glossary("Verbs") == by_word(words.VERBS) | others
    assert words.VERBS.keys() == {kind.value for kind in Kind}


def test_every_state_is_in_the_glossary() -> None:
    assert glossary("States") == by_word(words.STATES)


def states_in_the_code() -> Iterator[str]:
    """The state ids that the program gives: arguments of `Presence` and `Status`, and what `_word` returns."""
    planning = PROJECT / "reconcile" / "planning"
    for name in ("rules/presence.py", "incremental/status.py"):
        for node in ast.walk(ast.parse((planning / name).read_bytes())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("Presence", "Status")
            ):
                yield from (text for each in node.args for text in texts_of(each))
    listing = ast.parse((planning / "status_listing.py").read_bytes())
    for node in ast.walk(listing):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            yield from texts_of(node.value.elts[0])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            value = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
            target = node.targets[0].elts[0]
            if isinstance(target, ast.Name) and target.id == "word":
                yield from texts_of(value)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if names in (["_ASIDE"], ["_HELD"]):
                yield from (text for each in node.value.values for text in texts_of(each))


def texts_of(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_every_state_of_the_program_has_a_word() -> None:
    found = set(states_in_the_code()) - {"gone", "to-"}
    assert len(found) > 15
    assert {state for state in found if state not in words.STATES} == set()


@pytest.mark.parametrize("kind", [kind.value for kind in Kind])
def test_every_kind_has_a_verb_a_phrase_and_a_state(kind: str) -> None:
    assert words.state_word(f"to-{kind}") == f"to {words.VERBS[kind]}"
    for whole in (True, False):
        for renames in (True, False):
            for reason in ("asked", "recovered"):
                for public in (True, False):
                    phrase = words.phrase_of(kind, "store", reason, whole=whole, renames=renames, is_public=public)
                    assert words.counted(phrase, 1, done=True) != words.counted(phrase, 1, done=False)


def test_a_summary_counts_conversations() -> None:
    named = [("fork", "a"), ("fork", "b"), ("store", "a"), ("store", "a"), ("time", "c")]
    phrases = [(*each, "store") for each in named]
    assert words.summed(phrases, done=True) == ["1 updated in the store", "2 forks created", "1 file time reset"]
    assert words.summed(phrases, done=False) == [
        "1 to update in the store",
        "2 forks to create",
        "1 file time to reset",
    ]
    both = [*phrases, ("fork", "a", "workspace")]
    assert words.summed(both, done=True)[1:3] == ["1 fork created", "1 fork created on both sides"]

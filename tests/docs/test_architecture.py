"""The pages about the code name what exists: the text of each link to a module is defined in that module."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import DOCS, PROJECT
from tests.support.pages import text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = [DOCS / "architecture.md", DOCS / "code-map.md"]

_LINK = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<target>[^)\s]+\.py)\)")


def definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the names that a module defines; those inside a class also as ``Class.name``."""
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from definitions(node.body, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.Assign(targets=targets):
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case _:
                pass


@cache
def definitions_of(module: Path) -> frozenset[str]:
    """Return the names that a file defines; many links lead to the same one."""
    return frozenset(definitions(ast.parse(text(module)).body))


def undefined(page: str, directory: Path) -> list[str]:
    """Return the links whose text is neither the file's name nor a definition in the file."""
    wrong = []
    for link in _LINK.finditer(page):
        module = (directory / link["target"]).resolve()
        if link["name"] == module.name or not module.is_file():
            continue  # a missing file is reported by the test of all links
        if link["name"] not in definitions_of(module):
            wrong.append(f"{module.relative_to(PROJECT)} does not define {link['name']}")
    return wrong


def test_linked_names_are_defined_in_their_modules() -> None:
    pages = [text(page) for page in PAGES]
    assert all(len(_LINK.findall(page)) > 30 for page in pages), "the pattern finds the links"
    assert [undefined(page, DOCS) for page in pages] == [[], []]


def test_the_architecture_is_one_page() -> None:
    assert len(text(PAGES[0])) < 10_000


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("[`Engine.plan`](../reconcile/engine/engine.py)", []),
        ("[`engine.py`](../reconcile/engine/engine.py)", []),
        ("[`MIGRATIONS`](../reconcile/state/schema.py)", []),
        ("[`Kind.COPY`](../reconcile/model/plan.py)", []),
        ("[`nowhere`](../reconcile/engine/engine.py)", ["reconcile/engine/engine.py does not define nowhere"]),
    ],
)
def test_a_missing_name_is_reported(link: str, wrong: list[str]) -> None:
    assert undefined(link, DOCS) == wrong

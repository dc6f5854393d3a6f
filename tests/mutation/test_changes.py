"""What counts as a mistake, and that one that matters is found."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from importlib import import_module
from textwrap import dedent

import pytest

from tests.mutation.__main__ import known
from tests.mutation.changes import mutants_of
from tests.mutation.trying import ROOT, function_of, modules


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("x = a < b", {"a <= b", "a >= b"}),
        ("x = a and (not b)", {"a or not b", "a", "not b", "b"}),
        ("x = a in (b, c)", {"a not in (b, c)", "without b", "without c"}),
        ("x = a | b", {"a", "b"}),
        ("x = i + 1", {"i", "1", "i - 1", "2", "0"}),
        ("x = f(a, b, c=True)", {"f(b, a, c=True)", "without c=", "False"}),
        ("x = {a: b, **c}", {"without b", "without c"}),
        ("x = [a for a in b if c if d]", {"without c", "without d"}),
        ("x = a.partition(b)", {"a.rpartition(b)"}),
        ("x = sorted(a, key=b)", {"list(a)", "without key="}),
        ("x = a[b:]", {":"}),
        ("x = a if b else c", {"a", "c", "not b"}),
        ("self.x = a", {"pass"}),
        ("x: Literal['a'] = 'word'", {"'word?'"}),
        ("raise KeyError", {"pass"}),
        ("assert a == b", set()),
        ("'a docstring'", set()),
        ("x = 'some words'", set()),
    ],
)
def test_changes_of_a_line(line: str, changes: set[str]) -> None:
    assert {mutant.after for mutant in mutants_of(ast.parse(line))} == changes


def test_a_change_is_made_in_place_and_knows_where_it_is() -> None:
    tree = ast.parse(
        dedent("""
        @decorated(slots=True)
        class C:
            def f(self):
                for x in self:
                    if x:
                        continue
        """)
    )
    found = mutants_of(tree)
    assert [str(each) for each in found] == ["C.f: x -> not x", "C.f: continue -> break", "C.f: continue -> pass"]
    assert [list(each.lines) for each in found] == [[6], [7], [7]]
    found[1].apply()
    assert "break" in ast.unparse(tree)


def test_every_change_in_a_function_finds_its_code() -> None:
    """Also in properties and static methods: a change that is put elsewhere is noticed by nobody."""
    for module in modules(
        ["planning.rules.tree", "planning.rules.views", "planning.simulate", "planning.context", "planning.filters"]
    ):
        for name in {mutant.function for mutant in module.mutants} - {""}:
            assert inspect.isfunction(function_of(import_module(module.imported), name)), name


def test_every_equivalent_mutant_exists() -> None:
    """A line of equivalent.txt excuses nothing if its function has another name now."""
    mutants = {(module.name, str(mutant)) for module in modules([]) for mutant in module.mutants}
    assert [line for line in known() if line not in mutants] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mistakes_are_noticed() -> None:
    command = [sys.executable, "-m", "tests.mutation", "planning.requests.remove"]
    ran = subprocess.run(command, check=True, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    name, mutants, equivalent, tried, killed, survived = ran.stdout.splitlines()[-2].strip("| ").split(" | ")
    assert name == "planning.requests.remove"
    assert int(mutants) == int(equivalent) + int(tried)
    assert (int(killed), int(survived)) == (int(tried), 0)
    assert int(killed) > 15

"""The small mistakes that are put into a module, one at a time, to see whether a test notices.

Left alone: annotations, decorators, docstrings, assertions, and text with spaces in it (what a message says is looked
at by people).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_CALLED = {
    "all": "any",
    "any": "all",
    "max": "min",
    "min": "max",
    "sorted": "list",
    "reversed": "list",
    "partition": "rpartition",
    "rpartition": "partition",
    "removeprefix": "removesuffix",
    "removesuffix": "removeprefix",
    "startswith": "endswith",
    "endswith": "startswith",
}
_SYMMETRIC = {"max(...)", "min(...)"}
"""Calls whose arguments may come in any order."""
_ALREADY = (ast.BoolOp, ast.Compare, ast.Constant, ast.UnaryOp)
"""Conditions that have changes of their own."""
_SKIPPED = {"annotation", "returns", "decorator_list", "type_params", "type_comment"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to a parsed module; `apply` makes it, in that tree."""

    function: str
    """The function or method around it, as its code is called; empty for what runs at import."""
    lines: range
    """Where a test must have been to notice."""
    before: str
    after: str
    apply: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.function or '(import)'}: {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node hangs: enough to put another there."""

    parent: ast.AST
    field: str
    index: int | None
    function: str
    statement: ast.stmt

    def mutant(self, node: ast.AST, new: ast.AST, before: str = "", after: str = "") -> Mutant:
        def apply() -> None:
            ast.fix_missing_locations(ast.copy_location(new, node))
            if self.index is None:
                setattr(self.parent, self.field, new)
            else:
                getattr(self.parent, self.field)[self.index] = new

        return self.other(node, apply, before or ast.unparse(node), after or ast.unparse(new))

    def without(self, node: ast.AST, before: str, holder: list[ast.expr], *others: list[ast.expr]) -> Iterator[Mutant]:
        """Yield the node without each of the expressions it holds, together with their twins in other lists."""
        for index, element in enumerate(holder):

            def apply(index: int = index) -> None:
                for each in (holder, *others):
                    del each[index]

            yield self.other(node, apply, before, f"without {ast.unparse(element)}")

    def other(self, node: ast.AST, apply: Callable[[], None], before: str, after: str) -> Mutant:
        end = getattr(node, "end_lineno", None) or self.statement.lineno
        return Mutant(self.function, range(self.statement.lineno, end + 1), before, after, apply)


def mutants_of(tree: ast.Module) -> list[Mutant]:
    """Return all changes to a module, in its order."""
    return [mutant for node, place in _walk(tree, "", None) for mutant in _changes(node, place)]


def _walk(node: ast.AST, function: str, statement: ast.stmt | None) -> Iterator[tuple[ast.AST, _Place]]:
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED or (isinstance(node, ast.Assert)):
            continue
        inside = function
        if isinstance(node, ast.FunctionDef) and field == "body" and not _is_nested(function):
            inside = f"{function}{node.name}"
        elif isinstance(node, ast.ClassDef):
            inside = f"{node.name}."
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.AST):
                around = child if isinstance(child, ast.stmt) else statement
                if around is not None:
                    yield child, _Place(node, field, index, "" if inside.endswith(".") else inside, around)
                yield from _walk(child, inside, around)


def _is_nested(function: str) -> bool:
    return bool(function) and not function.endswith(".")


def _changes(node: ast.AST, place: _Place) -> Iterator[Mutant]:
    if isinstance(node, ast.stmt):
        yield from _of_statements(node, place)
    elif isinstance(node, ast.Constant):
        yield from _of_constants(node, place)
    elif isinstance(node, ast.Call):
        yield from _of_calls(node, place)
    elif isinstance(node, ast.comprehension):
        yield from place.without(node, f"for {ast.unparse(node.target)} in", node.ifs)
    elif isinstance(node, ast.Set | ast.List) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        yield from place.without(node, ast.unparse(node), node.elts)
    elif isinstance(node, ast.Dict):
        yield from place.without(node, ast.unparse(node), node.values, node.keys)  # type: ignore[arg-type] # ** has no key
    elif isinstance(node, ast.Slice):
        yield from _of_slices(node, place)
    elif isinstance(node, ast.expr):
        yield from _of_operators(node, place)
    if isinstance(node, ast.expr) and place.field == "test" and not isinstance(node, _ALREADY):
        yield place.mutant(node, ast.UnaryOp(ast.Not(), node))


def _of_operators(node: ast.expr, place: _Place) -> Iterator[Mutant]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                for new in _COMPARED[type(operator)]:
                    ops = [*node.ops[:index], new(), *node.ops[index + 1 :]]
                    yield place.mutant(node, ast.Compare(node.left, ops, node.comparators))
            if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(node.comparators[0], ast.Tuple):
                yield from place.without(node, ast.unparse(node), node.comparators[0].elts)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield place.mutant(node, ast.BoolOp(other, node.values))
            for value in node.values:
                left = [each for each in node.values if each is not value]
                yield place.mutant(node, ast.BoolOp(node.op, left) if len(left) > 1 else left[0])
        case ast.UnaryOp(op=ast.Not()):
            yield place.mutant(node, node.operand)
        case ast.UnaryOp(op=ast.USub()):
            yield place.mutant(node, node.operand)
        case ast.BinOp():
            yield place.mutant(node, node.left)
            yield place.mutant(node, node.right)
            if isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant) and node.right.value == 1:
                yield place.mutant(node, ast.BinOp(node.left, ast.Sub(), node.right))
        case ast.IfExp():
            yield place.mutant(node, node.body)
            yield place.mutant(node, node.orelse)
        case _:
            pass


def _of_constants(node: ast.Constant, place: _Place) -> Iterator[Mutant]:
    value = node.value
    if isinstance(place.parent, ast.Expr | ast.JoinedStr | ast.FormattedValue | ast.MatchValue):
        return
    if isinstance(value, bool):
        yield place.mutant(node, ast.Constant(not value))
    elif isinstance(value, int):
        yield place.mutant(node, ast.Constant(value + 1))
        if value:
            yield place.mutant(node, ast.Constant(value - 1))
    elif isinstance(value, str) and " " not in value:
        yield place.mutant(node, ast.Constant(f"{value}?"))


def _of_calls(node: ast.Call, place: _Place) -> Iterator[Mutant]:
    function = node.func
    called = f"{ast.unparse(function)}(...)"
    if isinstance(function, ast.Name) and (other := _CALLED.get(function.id)):
        keywords = [] if other == "list" else node.keywords
        yield place.mutant(node, ast.Call(ast.Name(other, ast.Load()), node.args, keywords))
    if isinstance(function, ast.Attribute) and (other := _CALLED.get(function.attr)):
        yield place.mutant(node, ast.Call(ast.Attribute(function.value, other, ast.Load()), node.args, node.keywords))
    arguments = [] if called in _SYMMETRIC else pairwise(enumerate(node.args))
    for (first, one), (second, two) in arguments:
        if ast.dump(one) != ast.dump(two) and not isinstance(two, ast.Starred) and not isinstance(one, ast.Starred):
            args = [*node.args[:first], two, one, *node.args[second + 1 :]]
            yield place.mutant(node, ast.Call(function, args, node.keywords))
    for keyword in node.keywords:
        left = [each for each in node.keywords if each is not keyword]
        name = f"{keyword.arg}=" if keyword.arg else f"**{ast.unparse(keyword.value)}"
        yield place.mutant(node, ast.Call(function, node.args, left), called, f"without {name}")


def _of_slices(node: ast.Slice, place: _Place) -> Iterator[Mutant]:
    if node.lower is not None:
        yield place.mutant(node, ast.Slice(None, node.upper, node.step))
    if node.upper is not None:
        yield place.mutant(node, ast.Slice(node.lower, None, node.step))


def _of_statements(node: ast.stmt, place: _Place) -> Iterator[Mutant]:
    match node:
        case ast.Continue():
            yield place.mutant(node, ast.Break())
            yield place.mutant(node, ast.Pass())
        case ast.Break():
            yield place.mutant(node, ast.Continue())
            yield place.mutant(node, ast.Pass())
        case ast.Return() if isinstance(place.parent, ast.If | ast.For | ast.While):
            yield place.mutant(node, ast.Pass())
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr() | ast.Delete() | ast.Raise() | ast.AugAssign():
            yield place.mutant(node, ast.Pass())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield place.mutant(node, ast.Pass())
        case _:
            pass

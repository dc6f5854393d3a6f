"""Who may import whom."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]


def modules(*tops: str) -> list[Path]:
    return sorted(module for top in tops for module in (PROJECT / top).rglob("*.py"))


@cache
def imports(module: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a module, also those inside its functions."""
    nodes = ast.walk(ast.parse(module.read_bytes()))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def absolute_imports(module: Path) -> Iterator[str]:
    for node in imports(module):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif node.level == 0 and node.module is not None:
            yield node.module


def naming(words: set[str], *tops: str) -> list[Path]:
    """Return the modules whose text has one of these words: no other module can import it."""
    word = re.compile(rf"\b(?:{'|'.join(words)})\b")
    return [module for module in modules(*tops) if word.search(module.read_text("utf-8"))]


def importers_of(packages: set[str], *tops: str) -> list[str]:
    return [
        f"{module.relative_to(PROJECT)}: {name}"
        for module in naming(packages, *tops)
        for name in absolute_imports(module)
        if name.partition(".")[0] in packages
    ]


def test_contracts_of_pyproject_hold(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(PROJECT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_cli_imports_itself_relatively() -> None:
    assert importers_of({"cli", "reconcile_cli"}, "cli") == []


def test_nobody_imports_the_command_by_name() -> None:
    assert importers_of({"cli", "reconcile_cli"}, "reconcile", "tests", "fixtures") == []


@pytest.mark.parametrize(
    ("step", "home"),
    [
        ("reconcile.apply.run.carry_out", "reconcile/engine/session.py"),
        ("reconcile.apply.run.finish", "reconcile/engine/session.py"),
        ("reconcile.planning.baseline_update.update_baseline", "reconcile/apply/run.py"),
    ],
)
def test_a_run_has_one_sequence_of_steps(step: str, home: str) -> None:
    """The engine and the library call `Session.execute`; nothing else carries a plan out or ends a run."""
    source, _, name = step.rpartition(".")
    homes = {
        str(module.relative_to(PROJECT))
        for module in naming({name}, "reconcile", "cli")
        for node in imports(module)
        if isinstance(node, ast.ImportFrom) and node.module == source and name in {alias.name for alias in node.names}
    }
    assert homes == {home}


@pytest.mark.parametrize(
    ("package", "homes"),
    [
        ("click", ("cli", "tests")),
        ("filelock", ("reconcile/fs", "tests")),
        ("watchdog", ("reconcile/watch", "tests")),
        ("xxhash", ("reconcile/fs", "reconcile/index", "reconcile/state", "tests")),
    ],
)
def test_third_party_packages_stay_at_home(package: str, homes: tuple[str, ...]) -> None:
    strangers = [who for who in importers_of({package}, "reconcile", "cli", "tests") if not who.startswith(homes)]
    assert strangers == []


def test_of_msgspec_pure_modules_take_what_makes_values() -> None:
    taken = {
        f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
        for module in modules("reconcile/model", "reconcile/planning")
        for node in imports(module)
        for name in node.names
    }
    found = {name for name in taken if name.startswith("msgspec")}
    assert found == {"msgspec.Struct", "msgspec.field", "msgspec.structs.replace"}

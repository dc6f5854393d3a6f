"""What is installed is what lies in the directories, under the right names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
IMPORT_NAMES = {"reconcile": "reconcile", "cli": "reconcile_cli"}


def import_name(directory: Path) -> str:
    top, *rest = directory.relative_to(PROJECT).parts
    return ".".join([IMPORT_NAMES[top], *rest])


def directories_with_code() -> set[Path]:
    return {module.parent for top in IMPORT_NAMES for module in (PROJECT / top).rglob("*.py")}


def test_every_package_is_listed_and_nothing_else() -> None:
    packages = PYPROJECT["tool"]["setuptools"]["packages"]
    assert packages == sorted({import_name(directory) for directory in directories_with_code()})


def test_every_directory_with_code_is_a_package() -> None:
    assert [d for d in sorted(directories_with_code()) if not (d / "__init__.py").is_file()] == []


def test_cli_is_installed_under_another_name() -> None:
    assert PYPROJECT["tool"]["setuptools"]["package-dir"] == {name: top for top, name in IMPORT_NAMES.items()}


def test_both_packages_are_typed() -> None:
    assert all((PROJECT / top / "py.typed").is_file() for top in IMPORT_NAMES)


def test_nothing_is_called_cli() -> None:
    assert "cli" not in sys.modules
    script = "import importlib.util as u; print(u.find_spec('cli'), u.find_spec('reconcile_cli') is not None)"
    found = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["None", "True"]


def test_extra_and_group_of_developers_agree() -> None:
    assert PYPROJECT["project"]["optional-dependencies"] == PYPROJECT["dependency-groups"]

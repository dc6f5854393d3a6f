"""The wheel that users get, built from the sdist as a release is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.cli.modules import module

PROJECT = Path(__file__).parents[2]
IMPORT_NAMES = {"reconcile": "reconcile", "cli": "reconcile_cli"}
FILES = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist and the wheel; the checkout is left alone, nothing is downloaded."""
    source = tmp_path_factory.mktemp("source")
    for top in IMPORT_NAMES:
        shutil.copytree(PROJECT / top, source / top, ignore=shutil.ignore_patterns("__pycache__"))
    for top in ("share", "docs"):
        shutil.copytree(PROJECT / top, source / top)
    for name in FILES:
        if (PROJECT / name).exists():
            shutil.copy(PROJECT / name, source)
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> list[str]:
    """The names of the files in the wheel."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_top_level_is_the_two_packages(wheel: list[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"reconcile", "reconcile_cli"}
    assert len(tops) == 4


def test_manual_pages_and_completions_are_data_of_the_wheel(wheel: list[str]) -> None:
    """They are installed below the environment's ``share``, where pipx and the shells look for them."""
    files = {name.split("/data/", 1)[1] for name in wheel if ".data/data/" in name}
    share = PROJECT / "share"
    of_shells = {name for name in files if not name.startswith("share/doc/")}
    assert of_shells == {f"share/{path.relative_to(share).as_posix()}" for path in share.rglob("*") if path.is_file()}
    assert {"share/man/man1/reconcile.1", "share/man/man1/reconcile-undo.1"} <= files
    assert {
        "share/bash-completion/completions/reconcile",
        "share/zsh/site-functions/_reconcile",
        "share/fish/vendor_completions.d/reconcile.fish",
    } <= files


def test_the_pages_of_the_topics_are_data_of_the_wheel(wheel: list[str]) -> None:
    """`reconcile help TOPIC` prints them without the repository and without a network."""
    topics = module("topics")
    files = {name.split(f"/data/{topics.INSTALLED}/", 1)[1] for name in wheel if f"/data/{topics.INSTALLED}/" in name}
    assert {topic.page.partition("#")[0] for topic in topics.TOPICS.values()} <= files
    assert all((PROJECT / "docs" / name).is_file() for name in files)


def test_wheel_holds_every_module(wheel: list[str]) -> None:
    expected = {
        "/".join([name, *file.relative_to(PROJECT / top).parts])
        for top, name in IMPORT_NAMES.items()
        for pattern in ("*.py", "py.typed", "*.html", "*.css", "*.js")
        for file in (PROJECT / top).rglob(pattern)
    }
    assert {name for name in wheel if ".dist-info/" not in name and ".data/" not in name} == expected


def test_wheel_carries_the_license(wheel: list[str]) -> None:
    assert [name for name in wheel if name.endswith(".dist-info/licenses/LICENSE")] != []


def test_sdist_keeps_the_directory_names(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"cli/app.py", "reconcile/__init__.py", "LICENSE"} <= names

"""No test reaches the developer's own files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.conftest import Run


def test_user_directories_lie_in_the_tests_home(home: Path) -> None:
    for directory in (
        Path.home(),
        platformdirs.user_data_path("reconcile"),
        platformdirs.user_config_path("reconcile"),
        platformdirs.user_cache_path("reconcile"),
        platformdirs.user_state_path("reconcile"),
        Path(os.environ["JP_USER_DATA_DIR"]),
    ):
        assert directory.is_relative_to(home)
    assert not home.exists()


def test_no_setting_leaks_in() -> None:
    assert [name for name in os.environ if name.startswith("RECONCILE_")] == []


def test_git_knows_no_configuration_but_the_repositorys(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "config", "--list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert listed.stdout == ""


def test_both_roots_start_empty(root: Path) -> None:
    assert list(root.iterdir()) == []
    (root / "file").write_text("text")
    assert (root / "file").read_text() == "text"


@given(st.integers())
def test_isolation_and_hypothesis_go_together(number: int) -> None:
    assert isinstance(number, int)
    assert "homes" in os.environ["HOME"]


@pytest.mark.parametrize("args", [("--version",), ("--help",)])
def test_the_command_runs(run: Run, args: tuple[str, ...]) -> None:
    assert run(*args).exit_code == 0

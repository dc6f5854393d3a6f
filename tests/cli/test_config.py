"""`reconcile config`: each setting in force, and where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.config import Settings
from tests.support.projects.world import files, make_project

if TYPE_CHECKING:
    from tests.conftest import Run


def settings(run: Run, *args: str) -> dict[str, tuple[object, str, str | None]]:
    result = run("config", "--json", *args)
    assert result.exit_code == 0, result.output
    return {
        each["name"]: (each["value"], each["source"], each["place"]) for each in json.loads(result.stdout)["settings"]
    }


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "reconcile" / "reconcile.toml"
    path.parent.mkdir(parents=True)
    return path


def test_each_setting_names_its_place(run: Run, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    assert {name: source for name, (_, source, _) in settings(run).items()} == dict.fromkeys(
        Settings._fields, "default"
    )
    file.write_text(
        'diverged = "hold"\nstream = "newest"\nignore = ["*.log"]\nlock_timeout = 3\n'
        '[workspace."ab1cd"]\nstream = "directed"\n[workspace."other"]\nmissing = "reproject"\n'
    )
    monkeypatch.setenv("RECONCILE_LOCK_TIMEOUT", "4")
    found = settings(run, "--layout", "flat")
    assert found["layout"] == ("flat", "option", "--layout")
    assert found["diverged"] == ("hold", "file", str(file))
    assert found["stream"] == ("directed", "file", f"{file}: [workspace.'ab1cd']")
    assert found["ignore"] == (["*.log"], "file", str(file))
    assert found["lock_timeout"] == (4.0, "environment", "RECONCILE_LOCK_TIMEOUT")
    assert found["missing"] == ("intent", "default", None)
    printed = run("config").stdout
    assert "diverged" in printed
    assert "RECONCILE_LOCK_TIMEOUT" in printed
    assert files(world.user_data) == [], "it writes nothing"


def test_outside_of_a_workspace(run: Run, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file.write_text('diverged = "hold"\n[workspace."ab1cd"]\ndiverged = "fork"\n')
    assert settings(run)["diverged"] == ("hold", "file", str(file))
    assert "none here" in run("config").stdout


def test_a_wrong_file_is_an_error(run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file.write_text("diverge = 1\n")
    result = run("config")
    assert result.exit_code == 2
    assert "did you mean diverged?" in result.stderr


@pytest.mark.parametrize("number", ["inf", "nan", "1e300", "-1", "1000000001"])
def test_a_time_that_no_clock_can_count_is_refused(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    expected = "is not a number of seconds from 0 to 1000000000\n"
    assert expected in run("watch", f"--settle={number}").stderr
    file.write_text(f"settle = {number}\n")
    assert expected in run("config").stderr
    file.unlink()
    monkeypatch.setenv("RECONCILE_LOCK_TIMEOUT", number)
    result = run("config")
    assert (result.exit_code, result.stdout) == (2, "")
    assert expected in result.stderr


def test_a_file_with_the_mark_of_utf_8(run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file.write_bytes(b'\xef\xbb\xbfdiverged = "hold"\r\nlock_timeout = 3\r\n')
    assert settings(run)["diverged"] == ("hold", "file", str(file))


def test_the_home_directory_is_short(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "cfg"))
    monkeypatch.chdir(tmp_path)
    assert run("config").stdout.startswith(f"file       {Path('~/cfg/reconcile/reconcile.toml')} (absent)\n")


def test_a_relative_path_leads_to_no_file_of_a_project(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pulled repository could have a file there."""
    file = tmp_path / "project" / ".config" / "reconcile" / "reconcile.toml"
    file.parent.mkdir(parents=True)
    file.write_text('missing = "reproject"\n')
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", ".config")
    assert settings(run)["missing"][:2] == ("intent", "default")

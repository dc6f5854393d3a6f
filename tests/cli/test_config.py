"""`reconcile config`: each setting in force, and where it comes from."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.config import Settings
from reconcile.fs import private_files
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


@pytest.fixture
def here(run: Run, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of settings, and a workspace with the id ``ab1cd`` as the present directory."""
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    return file


def test_a_setting_is_changed_for_this_workspace_or_for_all(run: Run, here: Path) -> None:
    assert run("config", "diverged", "hold").exit_code == 0
    assert tomllib.loads(here.read_text()) == {"workspace": {"ab1cd": {"diverged": "hold"}}}
    assert run("config", "--global", "diverged", "newest").exit_code == 0
    assert run("config", "--global", "ignore", "*.log", "a b").exit_code == 0
    assert run("config", "--global", "lock_timeout", "3").exit_code == 0
    section = {"workspace": {"ab1cd": {"diverged": "hold"}}}
    assert (
        tomllib.loads(here.read_text())
        == {"diverged": "newest", "ignore": ["*.log", "a b"], "lock_timeout": 3} | section
    )
    assert run("config", "diverged").stdout == "hold\n"
    assert run("config", "ignore").stdout == "*.log\na b\n"
    assert list(settings(run, "lock_timeout").items()) == [("lock_timeout", (3, "file", str(here)))]
    assert 'diverged is "newest" now' in run("config", "--unset", "diverged").stderr
    assert 'diverged is "fork" now' in run("config", "--unset", "--global", "diverged").stderr
    assert settings(run)["ignore"][1:] == ("file", str(here))


def test_a_setting_that_another_place_overrules_says_so(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("config", "stream", "newest")
    said = run("config", "--global", "stream", "directed").stderr
    assert 'but stream is "newest" now' in said
    assert "[workspace.'ab1cd'] wins" in said
    monkeypatch.setenv("RECONCILE_STREAM", "directed")
    assert "RECONCILE_STREAM wins" in run("config", "stream", "newest").stderr


def test_comments_order_and_a_link_stay(run: Run, here: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    kept.write_text('# mine\nlayout = "flat"  # as JP\n\n[workspace."ab1cd"]\n# why\nstream = "newest"\n')
    kept.chmod(0o640)
    here.symlink_to(kept)
    assert run("config", "--global", "layout", "nested").exit_code == 0
    assert run("config", "diverged", "hold").exit_code == 0
    assert here.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640
    assert kept.read_text() == (
        '# mine\nlayout = "nested"  # as JP\n\n[workspace."ab1cd"]\n# why\nstream = "newest"\ndiverged = "hold"\n'
    )
    assert run("config", "--unset", "diverged").exit_code == 0
    assert run("config", "--unset", "diverged").exit_code == 0, "it is gone already"
    assert '"newest"\n' in kept.read_text()


def test_publishing_all_is_announced(run: Run, here: Path) -> None:
    assert "publishes every conversation" in run("config", "missing", "reproject").stderr
    assert "publishes every conversation" not in run("config", "missing", "intent").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("diverge", "hold"), "did you mean diverged?"),
        (("diverge",), "did you mean diverged?"),
        (("diverged", "held"), "choose from 'fork', 'newest', 'hold'"),
        (("diverged", "fork", "hold"), "it has one value, not 2"),
        (("lock_timeout", "soon"), "is not a number of seconds"),
        (("shared_sessions", "../out"), "is not a path below the top"),
        (("--unset",), "need the NAME of a setting"),
        (("--unset", "diverged", "hold"), "--unset takes no VALUE"),
        (("--global", "diverged"), "--global needs a VALUE, or --unset"),
    ],
)
def test_a_wrong_change_is_refused(run: Run, here: Path, words: tuple[str, ...], said: str) -> None:
    result = run("config", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not here.exists()


def test_outside_of_a_workspace_only_all_can_be_changed(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--global" in run("config", "diverged", "hold").stderr
    assert run("config", "--global", "--unset", "diverged").exit_code == 0
    assert not file.exists()
    assert run("config", "--global", "diverged", "hold").exit_code == 0
    assert file.read_text() == 'diverged = "hold"\n'


@pytest.mark.parametrize("text", ["workspace = 3\n", 'workspace = { "x" = { diverged = "hold" } }\n', "= 3\n"])
def test_a_file_of_a_rare_form_stays(run: Run, here: Path, text: str) -> None:
    here.write_text(text)
    result = run("config", "diverged", "hold")
    assert result.exit_code == 2
    assert str(here) in result.stderr
    assert here.read_text() == text


def test_a_wrong_value_can_be_corrected_by_the_command(run: Run, here: Path) -> None:
    here.write_text('diverged = "held"\n')
    assert run("config", "--global", "diverged", "hold").exit_code == 0
    assert here.read_text() == 'diverged = "hold"\n'


def test_a_change_beside_a_wrong_setting_is_saved_and_the_wrong_one_is_named(run: Run, here: Path) -> None:
    here.write_text('layout = "held"\n')
    result = run("config", "--global", "diverged", "hold")
    assert result.exit_code == 2
    assert result.stderr.startswith("saved (")
    assert "layout: invalid value 'held'" in result.stderr
    assert here.read_text() == 'layout = "held"\ndiverged = "hold"\n'


@pytest.mark.modes
def test_a_file_that_may_not_be_written_is_an_error(run: Run, here: Path) -> None:
    here.parent.chmod(0o500)
    try:
        result = run("config", "diverged", "hold")
    finally:
        here.parent.chmod(0o700)
    assert result.exit_code == 2
    assert "can't be written (Permission denied)" in result.stderr


def test_the_mark_of_utf_8_stays(run: Run, here: Path) -> None:
    here.write_bytes(b'\xef\xbb\xbflayout = "flat"\r\n')
    assert run("config", "--global", "layout", "nested").exit_code == 0
    assert here.read_bytes() == b'\xef\xbb\xbflayout = "nested"\r\n'


def test_a_change_by_another_program_stays(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(directory: str) -> list[str]:
        here.write_text('layout = "flat"\n')
        return []

    monkeypatch.setattr(private_files, "make_private_directory", make)
    assert "changed by another program meanwhile" in run("config", "diverged", "hold").stderr
    assert here.read_text() == 'layout = "flat"\n'

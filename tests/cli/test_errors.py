"""Each refused command line is one line that begins with ``error:``, a hint, and the documented exit code."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from reconcile.signals import Interrupt
from tests.cli.modules import module
from tests.support.projects.demo import demo
from tests.support.projects.world import files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

MISUSED = """
    nosuch
    statsu
    --bogus
    status --bogus
    show
    show a b
    show Release@store:bogus
    show Release@2020
    show Release@/nowhere
    diff a b c
    fork
    fork Release --last x
    fork Release --last -1
    fork Release --from yesterday
    resolve
    resolve Release
    resolve Release --take store --keep
    resolve --all --allow-secrets
    rm Release --cascade --promote
    rm lette --yes
    set-parent Release
    set-parent Release Import --none
    project
    project --all --behind
    local
    restore zz
    restore Release@2020
    undo nope
    redo nope
    log nope
    log -n 0
    log -n 1 nope
    vault --prune
    vault --older-than 3d
    vault --prune --older-than 3x
    vault --purge zzzz
    checkouts x
    checkouts --forget /nowhere
    doctor --mend nope
    doctor --repair --secrets
    config x
    hooks
    hooks nope
    hooks install x
    hooks status --merge-driver
    service nope
    remote nope
    remote add
    watch --settle x
    find
    brief
    apply
    apply /nowhere
    ls --below
    ls --html x.html
    recover a --all
    recover --from /nowhere
    recover --from
    review --undo --recover
    textconv
    merge-driver a b c d
    --out
    --only nope
    --prefer me
    --format nope
    --layout nope
    -w /nowhere
    -s /nowhere
    --all -w x
    status --all --only x
    help nope
"""


@pytest.fixture
def project(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    return demo(tmp_path / "demo", run, monkeypatch)


def test_wrong_usage_has_a_hint_and_the_exit_code_2(run: Run, project: Path) -> None:
    """Also as JSON; and nothing is changed."""
    before = files(project)
    for line in filter(None, map(str.strip, MISUSED.splitlines())):
        result = run(*line.split())
        assert (result.exit_code, result.stdout) == (2, ""), (line, result.output)
        assert re.fullmatch(r"error: \S.*\n(?:hint: \S.*\n)+", result.stderr), (line, result.stderr)
        if line.split()[0] in ("status", "diff", "log", "recover", "vault", "doctor", "resolve"):
            (document,) = map(json.loads, run(*line.split(), "--json").stderr.splitlines())
            assert document["format"] == "reconcile.error/1"
            assert document["hint"], line
    assert files(project) == before


@pytest.mark.parametrize("words", [("checkouts", "--forget"), ("recover", "--yes", "--from")], ids=" ".join)
def test_an_empty_path_is_no_checkout(words: tuple[str, ...], run: Run, project: Path) -> None:
    """A script has it from a variable that is not set; the checkout that it is in would be taken."""
    run()
    before = files(project)
    result = run(*words, "")
    assert (result.exit_code, f"{words[-1]}: the path is empty" in result.stderr) == (2, True), result.output
    assert files(project) == before
    assert project.name in run("checkouts").stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("log -n x", "'x' is not a whole number"),
        ("log -n 0", "0 is less than 1"),
        ("watch --settle x", "'x' is not a number"),
        ("apply {}", "not a saved plan"),
        ('apply {"format":"reconcile.plan/9"}', "not a plan of this version (its format is 'reconcile.plan/9', not"),
        ("recover --store", "option '--store' requires an argument"),
    ],
)
def test_a_wrong_value_is_named_in_plain_words(line: str, words: str, run: Run, tmp_path: Path) -> None:
    command, *rest = line.split()
    if command == "apply":
        (tmp_path / "plan.json").write_text(rest[0])
        rest = [str(tmp_path / "plan.json")]
    assert words in run(command, *rest).stderr


@pytest.mark.parametrize("line", ["sync", "pull", "push", "remote remove origin"])
def test_without_a_remote_the_hint_names_how_to_add_one_and_the_exit_code_is_2(
    line: str, run: Run, project: Path
) -> None:
    result = run(*line.split())
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, "error: no remote is known for this store")
    assert "hint: add one" in result.stderr
    assert "reconcile remote add" in result.stderr


@pytest.mark.parametrize(("line", "code"), [("remote add /nowhere", 1), ("rm Release", 4)])
def test_what_fails_or_is_refused_has_a_hint(line: str, code: int, run: Run, project: Path) -> None:
    result = run(*line.split())
    assert result.exit_code == code, result.output
    assert re.fullmatch(r"error: \S.*\n(?:hint: \S.*\n)+", result.stderr), result.stderr


@pytest.mark.parametrize("line", ["ls", "status 1", "log -n 2", "--dry-run", "undo --dry-run"])
def test_an_interrupted_command_that_only_reads_has_nothing_to_continue(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["reconcile", *line.split()])
    assert module("output.errors").report_failure(Interrupt(), as_json=False) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("line", "command"), [("undo --yes", "reconcile"), ("", "reconcile"), ("sync origin", "reconcile sync")]
)
def test_an_interrupted_run_names_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, command: str
) -> None:
    monkeypatch.setattr("sys.argv", ["reconcile", *line.split()])
    assert module("output.errors").report_failure(Interrupt(), as_json=False) == 130
    assert capsys.readouterr().err == f"interrupted; run `{command}` again to continue\n"


@pytest.mark.parametrize("line", ["textconv /nowhere", "-n --out /nowhere/plan"])
def test_a_path_that_can_not_be_used_has_a_hint_and_the_exit_code_1(line: str, run: Run, project: Path) -> None:
    result = run(*line.split())
    assert result.exit_code == 1, result.output
    assert result.stderr.endswith("No such file or directory\nhint: check the path\n"), result.stderr


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CONFLICT", "choose from 'newest', 'hold'"),
        ("SETTLE", "correct the value, or remove the setting"),
        ("SHARED_SESSIONS", "correct the value, or remove the setting"),
        ("CONFLIKT", "did you mean RECONCILE_CONFLICT?"),
        ("STATEDIR", "did you mean RECONCILE_STATE_DIR?"),
    ],
)
def test_a_wrong_setting_has_a_hint_and_the_exit_code_2(
    name: str, hint: str, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"RECONCILE_{name}", "../nope")
    result = run("-n")
    assert result.exit_code == 2
    assert re.fullmatch(rf"error: the environment: .*\nhint: {re.escape(hint)}\n", result.stderr), result.stderr


@pytest.mark.parametrize("name", ["RECONCILE_DB_URL", "RECONCILE_LOG_LEVEL", "RECONCILE_"])
def test_a_variable_of_another_program_with_the_same_prefix_changes_nothing(
    name: str, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "postgres://db")
    assert run("-n").exit_code == 0


def test_a_home_that_does_not_exist_is_not_created(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project.parent / "nowhere"
    monkeypatch.setenv("HOME", str(home))
    for variable in ("JP_USER_DATA_DIR", "XDG_DATA_HOME", "RECONCILE_STATE_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for words in ((), ("--yes",), ("watch",), ("sync", str(project))):
        result = run(*words, "--workspace", project)
        assert (result.exit_code, result.stderr.splitlines()) == (
            2,
            [
                "error: the directory that HOME names does not exist",
                "hint: set it to your home directory: export HOME=DIR",
            ],
        ), words
        assert not home.exists()
    assert run("status", "--workspace", project).exit_code == 0
    assert run("--dry-run", "--workspace", project).exit_code == 0
    assert not home.exists()
    store = project.parent / "store"
    store.mkdir()
    assert run("--yes", "--workspace", project, "--store", store).exit_code == 0, "the user has named the store"


def test_doctor_outside_a_project_prints_what_it_can_check(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("doctor")
    assert result.exit_code == 2
    assert [line.split()[0] for line in result.stdout.splitlines() if line] == [
        "reconcile",
        "python",
        "system",
        "settings",
    ]
    assert result.stderr.startswith("error: no workspace in ")
    assert run("doctor", "--json").stdout == ""

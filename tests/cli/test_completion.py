"""Completion in bash, zsh and fish: commands, options, ids with titles, runs and saved versions."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.modules import module
from tests.support.documents import PROJECT
from tests.support.manual import FILES
from tests.support.projects.demo import demo
from tests.support.projects.world import SCRIPT, events, files, make_project, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Run

COMPLETION, COMMANDS = module("completion"), module("app").COMMANDS
RELEASE = "jp-c17780300000"
TITLES = {
    "jp-c17780500000": "Letter to my landlord",
    "jp-c17780400000": "CI on macOS",
    RELEASE: "Release notes",
    "jp-c17779700000": "Hash benchmark",
    "jp-c17779600000": "Naming content",
    "jp-c17779500000": "Import of old backups",
}


FORMAT_HELP = "jp, plain (needs --store), leslie, claudesidian, claude-code or claude-shared (default: those found)."


@pytest.fixture
def project(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    return demo(tmp_path / "demo", run, monkeypatch)


@pytest.fixture
def complete(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, str]]:
    """Returns what fish would show after ``reconcile``: each candidate with its description."""

    def ask(line: str) -> dict[str, str]:
        monkeypatch.setenv("COMP_WORDS", f"reconcile {line}")
        capsys.readouterr()
        COMPLETION.complete("fish_complete")
        printed = capsys.readouterr()
        assert printed.err == ""
        lines = [each.partition("\t") for each in printed.out.splitlines()]
        return {value: description for value, _, description in lines}

    return ask


def test_commands_and_options(project: Path, complete: Callable[[str], dict[str, str]]) -> None:
    summaries = {name: entry.summary for name, entry in COMMANDS.items()}
    help_ = {"help": "Show the help of a command, or a page about a topic."}
    assert complete("") == summaries | help_
    assert complete("help ") == summaries | {name: topic.summary for name, topic in module("topics").TOPICS.items()}
    assert complete("help un").keys() == {"undo", "uninstall"}
    assert complete("sta") == {"status": COMMANDS["status"].summary}
    assert {"--dry-run", "--only", "--json", "--format"} <= complete("--").keys()
    assert complete("undo --dr") == {"--dry-run": "Show the plan, and write nothing."}
    assert "--dry-run" not in complete("log --"), "an option that the command refuses"
    assert complete("resolve --take ").keys() == {"store", "workspace", "both"}
    assert complete("--format ").keys() == {"jp", "plain", "leslie", "claudesidian", "claude-code", "claude-shared"}
    assert complete("--form") == {"--format": FORMAT_HELP}, "a description isn't cut at its first comma"


@pytest.mark.parametrize(
    "line",
    [
        "status ",
        "diff ",
        "resolve ",
        "rm x ",
        "set-parent x ",
        "--only ",
        "ls --below ",
        "fork ",
        "doctor --quarantine ",
    ],
)
def test_ids_have_their_titles(line: str, project: Path, complete: Callable[[str], dict[str, str]]) -> None:
    assert list(complete(line).items()) == list(TITLES.items()), "the newest first"


def test_ids_in_all_spellings(project: Path, complete: Callable[[str], dict[str, str]]) -> None:
    assert complete("diff jp-c177803") == {RELEASE: "Release notes"}
    assert complete("diff 177803") == {"17780300000-release-notes": "Release notes"}
    assert complete("diff rel") == {"Release notes": RELEASE}
    assert complete("diff 'Release n") == {"Release notes": RELEASE}
    assert complete("diff Release\\ n") == {"Release notes": RELEASE}
    assert complete("diff zzz") == {}


def test_a_title_of_two_is_completed_by_ids(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: Callable[[str], dict[str, str]]
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    for number, title in ((17528832001, "Same"), (17528832002, "Same"), (17528832003, "Same\t\x1b[31m, once")):
        write_conversation(world.workspace / f"{number}-x", title, events(1))
    run()
    assert complete("diff sam") == {
        "jp-c17528832001": "Same",
        "jp-c17528832002": "Same",
        "jp-c17528832003": "Same\\x09\\x1b[31m, once",
    }


def test_the_files_serve_before_the_first_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: Callable[[str], dict[str, str]]
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    write_conversation(world.workspace / "17528832001-it", "It", events(1))
    assert complete("diff ") == {"jp-c17528832001": "It"}


def test_runs_and_versions(project: Path, run: Run, complete: Callable[[str], dict[str, str]]) -> None:
    (newest,) = [each["id"] for each in json.loads(run("log", "--json").stdout)["runs"]]
    for command in ("log", "undo", "redo"):
        assert list(complete(f"{command} ")) == [newest]
    assert complete(f"show {RELEASE}@") == {
        f"{RELEASE}@store": "as it is now",
        f"{RELEASE}@workspace": "as it is now",
        f"{RELEASE}@{newest}": "reconcile",
    }
    assert complete(f"diff {RELEASE}@2") == {f"{RELEASE}@{newest}": "reconcile"}
    assert RELEASE in complete("show ")
    assert f"{RELEASE}@{newest}" in complete("restore ")


def test_checkouts(
    project: Path, run: Run, complete: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are gone, and where `.jp` is: that is when `recover` is wanted."""
    here = Path.cwd()
    other = here.parent / "other tree"
    shutil.copytree(here, other)
    monkeypatch.chdir(other)
    run()
    monkeypatch.chdir(here)
    run()
    shutil.rmtree(other)
    for command in ("recover --from ", "checkouts --forget "):
        assert complete(command) == {str(other): "gone", str(here): "here"}
        assert complete(f"{command}{other.parent}/oth") == {str(other): "gone"}
        assert complete(f"{command}../o") == {"../other tree": "gone"}
        assert complete(f"{command}/nothing") == {":dir": ""}
    shutil.rmtree(".jp")
    assert complete("recover --from ../o") == {"../other tree": "gone"}
    assert complete("recover jp-c177803") == {RELEASE: "Release notes"}
    assert in_bash("recover --from ../o") == ["'../other tree'"]


def test_it_reads_only_and_fails_in_silence(
    project: Path, run: Run, complete: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (state,) = [path for path in files(Path(os.environ["XDG_DATA_HOME"])) if path.name == "state.sqlite"]
    before = {path: path.read_bytes() for path in files(state.parent)}
    for line in ("", "diff ", "log ", "show ", "--only ", "nonsense ", "diff --bogus ", "--format nonsense diff ", "'"):
        complete(line)
    assert {path: path.read_bytes() for path in files(state.parent)} == before
    state.write_bytes(b"no database")
    assert complete("log ") == {}
    monkeypatch.chdir("/")
    assert complete("diff ") == {}
    monkeypatch.delenv("COMP_WORDS")
    ran = subprocess.run(
        [SCRIPT], env=os.environ | {"_RECONCILE_COMPLETE": "fish_complete"}, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    ran = subprocess.run(
        [SCRIPT], env=os.environ | {"_RECONCILE_COMPLETE": "nonsense"}, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", FILES)
def test_the_command_prints_the_script_that_is_installed(name: str, run: Run) -> None:
    printed = run("completion", name)
    assert (printed.exit_code, printed.stderr) == (0, "")
    assert printed.stdout == (PROJECT / "share" / FILES[name]).read_text()


@pytest.mark.parametrize("words", [(), ("tcsh",)], ids=str)
def test_a_shell_without_a_script_is_refused(words: tuple[str, ...], run: Run) -> None:
    refused = run("completion", *words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "bash, zsh, fish" in refused.stderr.replace("'", "").replace(" or ", " ")


def test_bash_loads_what_the_command_prints(project: Path) -> None:
    script = 'eval "$(reconcile completion bash)"; complete -p reconcile'
    assert shell("bash", "--norc", "-c", script) == ["complete -o nosort -F _reconcile_completion reconcile"]


def test_the_names_of_shells_are_completed(complete: Callable[[str], dict[str, str]]) -> None:
    assert list(complete("completion ")) == ["bash", "zsh", "fish"]


def shell(*command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    environ = os.environ | {"PATH": f"{SCRIPT.parent}:{os.environ['PATH']}"}
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def in_bash(line: str) -> list[str]:
    script = f"""source {PROJECT}/share/{FILES["bash"]}
COMP_LINE=$1 COMP_POINT=${{#1}}
_reconcile_completion reconcile
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return shell("bash", "--norc", "-c", script, "bash", f"reconcile {line}")


def test_bash(project: Path, run: Run) -> None:
    (newest,) = [each["id"] for each in json.loads(run("log", "--json").stdout)["runs"]]
    assert in_bash("st") == ["status"]
    assert in_bash("diff ") == list(TITLES)
    assert in_bash("diff rel") == ["'Release notes'"]
    assert in_bash("diff 'rel") == ["Release notes"]
    assert in_bash(f"show {RELEASE}@") == ["store", "workspace", newest], "bash has the part before the @ behind itself"
    assert in_bash("diff zzz") == [""]
    assert in_bash("ls --root=rel") == ["'Release notes'"], "and the part before the ="


def test_in_bash_a_colon_within_quotes_breaks_no_word(project: Path) -> None:
    write_conversation(project / ".jp" / "conversations" / "17780600000-plan", "Plan: the rest", events(1))
    assert in_bash('diff "Plan: t') == ["Plan: the rest"]
    assert in_bash("diff Plan:\\ t") == ["' the rest'"]


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_bash_completes_titles_in_every_script(project: Path, monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    """Where the cursor is, bash says in characters of the locale."""
    monkeypatch.setenv("LC_ALL", locale)
    write_conversation(project / ".jp" / "conversations" / "17780600000-plan", "中文说明", events(1))
    assert in_bash("diff 中文") == ["'中文说明'"]


@pytest.mark.parametrize("quote", ["", '"', "'"], ids=["no quote", "double", "single"])
def test_bash_runs_nothing_of_a_title(project: Path, tmp_path: Path, quote: str) -> None:
    """A title comes from a conversation, and the completed line is run as soon as a person presses Enter."""
    title = f"""Deploy `touch {tmp_path}/a` $(touch {tmp_path}/b) "it's" \\ $HOME; touch {tmp_path}/c"""
    write_conversation(project / ".jp" / "conversations" / "17780600000-deploy", title, events(1))
    (completed,) = in_bash(f"diff {quote}dep")
    typed = f"{quote}{completed}{quote}"
    assert shell("bash", "--norc", "-c", f"printf '%s\\n' {typed}") == [title]
    assert not {"a", "b", "c"} & {path.name for path in tmp_path.iterdir()}
    if quote:
        (again,) = in_bash(f"diff {quote}{completed[:-3]}")
        assert again == completed


def test_fish(project: Path) -> None:
    script = f"source {PROJECT}/share/{FILES['fish']}; complete -C $argv"
    assert shell("fish", "--no-config", "-c", script, "reconcile diff ") == [
        f"{id_}\t{it}" for id_, it in TITLES.items()
    ]
    assert shell("fish", "--no-config", "-c", script, "reconcile --forma") == [f"--format\t{FORMAT_HELP}"]
    assert shell("fish", "--no-config", "-c", script, "reconcile --prefer=st") == ["--prefer=store"]
    assert shell("fish", "--no-config", "-c", script, "reconcile --only='rel") == [f"--only=Release notes\t{RELEASE}"]


def test_zsh(project: Path) -> None:
    script = f"""compdef() {{ : }}; compadd() {{ print -rl -- $values }}; _files() {{ print files }}
source {PROJECT}/share/{FILES["zsh"]}
words=("$@") CURRENT=$#
_reconcile
"""
    assert shell("zsh", "-f", "-c", script, "zsh", "reconcile", "diff", "") == list(TITLES)
    assert shell("zsh", "-f", "-c", script, "zsh", "reconcile", "diff", "rel") == ["Release notes"]
    assert shell("zsh", "-f", "-c", script, "zsh", "reconcile", "apply", "") == ["files"]
    assert shell("zsh", "-f", "-c", script, "zsh", "reconcile", "ls", "--root=rel") == ["--root=Release notes"]


def test_a_file_or_a_directory(project: Path, complete: Callable[[str], dict[str, str]]) -> None:
    assert complete("apply ") == complete("--out ") == {":file": ""}
    assert complete("--workspace ") == {":dir": ""}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_conversations_take_less_than_300_ms(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    for at in range(10_000):
        write_conversation(world.workspace / f"17528{at:06}-plan", f"Plan number {at}", events(1))
    run()
    environ = os.environ | {"COMP_WORDS": "reconcile diff plan", "_RECONCILE_COMPLETE": "fish_complete"}
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run([SCRIPT], env=environ, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert len(ran.stdout.splitlines()) > 100
    assert min(took) < 0.3

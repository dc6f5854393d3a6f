"""Wherever an id is taken, its beginning, a title or a part of a title that only one has does as well."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.demo import demo
from tests.support.projects.world import events, files, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

RELEASE, IMPORT, NAMING, HASH = "jp-c17780300000", "jp-c17779500000", "jp-c17779600000", "jp-c17779700000"


@pytest.fixture
def project(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    return demo(tmp_path / "demo", run, monkeypatch)


def steady(printed: str) -> str:
    """The id of a fork comes from the clock."""
    return re.sub(r"jp-c179\d+|179\d+-", "", printed)


@pytest.mark.parametrize(
    "text",
    ["jp-c17780300000", "17780300000", "177803", "Release notes", "release NOTES", " release  notes", "lease", "notes"],
)
def test_one_conversation_is_named_in_many_ways(text: str, run: Run, project: Path) -> None:
    assert json.loads(run("status", text, "--json").stdout)["conversation"] == RELEASE


def test_the_details_of_one_conversation_have_its_hashes_with_verbose_only(run: Run, project: Path) -> None:
    run("--yes")
    lines = {verbose: run("status", RELEASE, *verbose).stdout.splitlines() for verbose in ((), ("-v",))}
    assert [line for line in lines[()] if re.search("[0-9a-f]{16}|last synced", line)] == []
    hashes = [re.findall("[0-9a-f]{16}", line) for line in lines["-v",] if line.startswith("    ")]
    assert hashes == [hashes[0]] * 3 + [hashes[3]] * 3, "metadata and events: last synced, store, workspace"
    assert [line.split()[:2] for line in lines["-v",] if "last" in line] == [["last", "synced"]] * 2


@pytest.mark.parametrize(
    "line",
    [
        ["diff", "Release"],
        ["status", "Release"],
        ["status", "--only", "Release"],
        ["ls", "--root=Import of"],
        ["ls", "--below", "Import of"],
        ["--only", "Release"],
        ["--below", "Import of", "--dry-run"],
        ["fork", "Release", "--dry-run"],
        ["local", "Release", "-n"],
        ["project", "Letter", "-n"],
        ["resolve", "Release", "--take", "store"],
        ["rm", "Letter", "-n"],
        ["set-parent", "Release", "Import of", "-n"],
        ["doctor", "--quarantine", "Release", "-n"],
    ],
)
def test_every_command_that_takes_an_id_takes_a_title(line: list[str], run: Run, project: Path) -> None:
    by_id = {
        "Release": RELEASE,
        "Import of": IMPORT,
        "Letter": "jp-c17780500000",
        "--root=Import of": f"--root={IMPORT}",
    }
    ids = [by_id.get(word, word) for word in line]
    assert ids != line
    wanted, found = run(*ids), run(*line)
    assert wanted.exit_code == (4 if line[0] == "doctor" else 0), wanted.output
    assert (found.exit_code, steady(found.output)) == (wanted.exit_code, steady(wanted.output))


@pytest.mark.parametrize("text", ["Three", " three", "hree", "17959810030", "17959810030-three"])
@pytest.mark.parametrize("line", [["show"], ["status"], ["ls", "--root"], ["--only"], ["local", "-n"], ["rm", "-n"]])
def test_a_title_names_a_conversation_of_the_plain_format(
    line: list[str], text: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sides = ("--format", "plain", "-w", str(tmp_path / "w"), "-s", str(tmp_path / "s"))
    for id_, title in (("17959810030-three", "Three"), ("Two", "The other")):
        directory = tmp_path / "w" / "conversations" / id_
        directory.mkdir(parents=True)
        (directory / "metadata.json").write_text(json.dumps({"title": title}))
        (directory / "events.json").write_text("[]")
    (tmp_path / "s").mkdir()
    run("--yes", *sides)
    wanted, found = (run(*line, name, *sides) for name in ("17959810030-three", text))
    assert wanted.exit_code == 0, wanted.output
    assert (found.exit_code, found.output) == (0, wanted.output)
    assert "no conversation has the id or title 'Tree'" in run("show", "Tree", *sides).stderr


def test_an_ambiguous_text_does_nothing_and_lists_the_candidates(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    for number, title in ((17528832001, "Naming content"), (17528832002, "Contents of CI")):
        write_conversation(world.workspace / f"{number}-it", title, events(1))
    before = files(tmp_path)
    result = run("rm", "tent", "--yes")
    assert result.exit_code == 2
    assert "'tent' is ambiguous: it fits 2 conversations" in result.stderr
    listed = [line.split("hint: ")[1] for line in result.stderr.splitlines() if "hint: " in line]
    assert listed == ["jp-c17528832001  Naming content", "jp-c17528832002  Contents of CI"]
    assert files(tmp_path) == before


def test_a_part_of_a_title_means_no_fork_of_a_conflict(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    titles = ("IANA: the registry", "[diverged] IANA: the registry", "[diverged] IANA: the registry", "Registries")
    for number, title in enumerate(titles, 17528832001):
        write_conversation(world.workspace / f"{number}-it", title, events(1))
    for text in ("IANA", "registry", "iana: the"):
        assert json.loads(run("status", text, "--json").stdout)["conversation"] == "jp-c17528832001"
    assert "it fits 2 conversations" in run("status", "[diverged]").stderr
    assert "it fits 4 conversations" in run("status", "regist").stderr


@pytest.mark.parametrize("text", ["x", "CI", "on"])
def test_one_letter_or_two_are_no_part_of_a_title(text: str, run: Run, project: Path) -> None:
    before = files(project)
    result = run("project", text)
    assert result.exit_code == 2
    assert f"no conversation has the id or title '{text}'" in result.stderr
    assert "a part of a title has at least 3 letters" in result.stderr
    assert files(project) == before


def test_two_ideographs_are_a_part_of_a_title(run: Run, project: Path) -> None:
    assert "letters" not in run("status", "北京").stderr
    assert "at least 2 letters" in run("status", "北").stderr


LETTER = "jp-c17780500000 (Letter to my landlord)"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("jp-c17780500001", LETTER),
        ("1778o50", LETTER),
        ("1778050000", LETTER),
        ("Leter to my landlord", LETTER),
        ("langlord", LETTER),
        ("my landlard", LETTER),
        ("macsO", "jp-c17780400000 (CI on macOS)"),
        ("ci", "jp-c17780400000 (CI on macOS)"),
        ("os", "jp-c17780400000 (CI on macOS)"),
    ],
)
def test_a_mistyped_id_or_title_gets_a_suggestion(text: str, meant: str, run: Run, project: Path) -> None:
    for command in ("status", "show", "diff", "local"):
        result = run(command, text)
        assert result.exit_code == 2
        assert "error: no conversation has the id" in result.stderr
        assert result.stderr.endswith(f"did you mean {meant}?\n"), result.stderr
    assert run("restore", text).stderr.endswith(f"did you mean {meant}?\n")


@pytest.mark.parametrize("text", ["jp-c99999999999", "jp-c2", "poem", "12"])
def test_without_a_similar_one_nothing_is_suggested(text: str, run: Run, project: Path) -> None:
    assert "did you mean" not in run("status", text).stderr
    assert run("status", text).stderr.endswith("`reconcile ls` lists the conversations\n")


def test_the_title_of_either_side_is_similar(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    for side, title in ((world.store, "Naming content"), (world.workspace, "A walk")):
        write_conversation(side / "17528832001-it", title, events(1))
    for text in ("namign", "a wakl"):
        assert "did you mean jp-c17528832001 (A walk)?" in run("status", text).stderr


def test_several_that_are_equally_near_are_suggested_together(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    for number in range(3):
        write_conversation(world.workspace / f"1752883200{number}-it", f"Plan {number}", events(1))
    hint = " or ".join(f"jp-c1752883200{number} (Plan {number})" for number in range(3))
    assert run("status", "plan 7").stderr.endswith(f"hint: did you mean {hint}?\n")
    write_conversation(world.workspace / "17528832003-it", "Plan 3", events(1))
    assert "did you mean" not in run("status", "plan 7").stderr, "too many to choose from"


def test_without_a_question_a_part_of_a_title_removes_nothing(run: Run, project: Path) -> None:
    before = files(project)
    result = run("rm", "177804", "lette", "--promote", "-y")
    assert result.exit_code == 2
    assert "error: 'lette' is only a part of the title 'Letter to my landlord' (jp-c17780500000)" in result.stderr
    assert "hint: reconcile rm 177804 jp-c17780500000 --promote --yes\n" in result.stderr
    assert files(project) == before
    assert "Letter to my landlord" in run("rm", "lette", "-n", "--yes").stdout
    result = run("rm", "lette", "--yes", "-w", str(project))
    assert f"hint: reconcile rm jp-c17780500000 --yes --workspace {project}\n" in result.stderr
    assert run("rm", "lette").exit_code == 4, "this needs a yes"
    assert files(project) == before


@pytest.mark.parametrize("text", ["jp-c17780500000", "177805", "17780500000-letter", "LETTER to my  landlord"])
def test_without_a_question_an_id_its_beginning_or_a_whole_title_does(text: str, run: Run, project: Path) -> None:
    assert "1 removed" in run("rm", text, "--yes").stdout


def test_many_candidates_are_counted(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    for at in range(13):
        write_conversation(world.workspace / f"175288320{at:02}-plan", f"Plan number {at}", events(1))
    run()
    result = run("status", "plan")
    assert result.exit_code == 2
    listed = [line.split("hint: ")[1] for line in result.stderr.splitlines() if "hint: " in line]
    assert listed[0] == "jp-c17528832000  Plan number 0"
    assert len(listed) == 5
    assert listed[-1] == "and 9 more: reconcile ls"
    assert json.loads(run("status", "plan number 1", "--json").stdout)["title"] == "Plan number 1", "exact wins"


@pytest.mark.parametrize("text", ["17780399999", "1778030000", "jp-c2", "jp-c17780399999", "17528832000-ci", ""])
def test_what_could_be_a_complete_id_is_no_part_of_a_title(
    text: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    write_conversation(world.workspace / "17528832099-it", f"About {text}, and more", events(1))
    run()
    result = run("status", text)
    assert result.exit_code == 2
    assert "no conversation has the id" in result.stderr


def test_a_title_in_the_store_alone_and_one_in_the_trash(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    write_conversation(world.workspace / "17528832001-it", "Über größe", events(1))
    run()
    write_conversation(world.workspace / ".trash" / "17528832002-old", "An old draft", events(1))
    assert json.loads(run("status", "ÜBER GRÖSSE", "--json").stdout)["conversation"] == "jp-c17528832001"
    assert run("status", "old draft").exit_code == 2


def test_the_vault_lists_titles(run: Run, project: Path) -> None:
    run()
    assert re.search(r"jp-c\d+@\S+ +\S+ +(Release notes|CI on macOS)\n", run("vault", "-v").stdout)


@pytest.mark.parametrize(
    ("line", "recorded"),
    [
        (["local", "Release"], f"reconcile local {RELEASE}"),
        (["set-parent", "Release", "Import of"], f"reconcile set-parent {RELEASE} {IMPORT}"),
        (["fork", "177803", "--title", "Release"], f"reconcile fork --title ... {RELEASE}"),
        (["resolve", "Release", "--take", "store"], f"reconcile resolve --take store {RELEASE}"),
        (["rm", "Letter to my landlord", "--yes"], "reconcile rm jp-c17780500000 --yes"),
        (["--only", "Release"], f"reconcile --only {RELEASE}"),
        (["--below", "Import of"], f"reconcile --below {IMPORT}"),
    ],
)
def test_the_journal_has_the_id_that_a_title_stood_for(line: list[str], recorded: str, run: Run, project: Path) -> None:
    """A title can be of another conversation tomorrow."""
    for number in ("17780300000", "17779700000") if line[0] in ("resolve", "--only", "--below") else ():
        (path,) = (project / ".jp" / "conversations").rglob(f"{number}-*/metadata.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), "label": "new"}))
    result = run(*line)
    assert result.exit_code == 0, result.output
    command = json.loads(run("log", "--json").stdout)["runs"][0]["command"]
    assert sorted(command.split()) == sorted(recorded.split())


def test_the_journal_has_the_id_of_a_restored_version(run: Run, project: Path) -> None:
    assert run("local", "Release").exit_code == 0
    assert run("project", "Release").exit_code == 0
    (workspace,) = (project / ".jp" / "conversations").rglob("17780300000-*/metadata.json")
    workspace.write_text(workspace.read_text().replace("Release notes", "Notes of the release"))
    assert run().exit_code == 0
    before = json.loads(run("log", "--json").stdout)["runs"][0]["id"]
    assert run("restore", f"Notes of the@{before}:metadata").exit_code == 0
    command = json.loads(run("log", "--json").stdout)["runs"][0]["command"]
    assert command == f"reconcile restore {RELEASE}@{before}:metadata"

"""`reconcile --all`: every project of the user, in one run."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.fs import paths
from reconcile.state.database import State
from tests.agents.program import VERSIONS
from tests.support.formats.claude_code_project import Sides, carried, sweep, titled
from tests.support.projects.git_world import git
from tests.support.projects.three_conversations import FIRST, three
from tests.support.projects.world import LONG_AGO, SECOND, append, contents, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

NO_PROJECT = "No project was found. A run in a project adds it: cd PROJECT && reconcile"
NEW, OLD = VERSIONS[-1], VERSIONS[0]


def kept(*projects: Sides) -> bool:
    return all(carried(each.store).items() >= carried(each.live).items() for each in projects)


def repository(path: Path) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "--quiet")
    (path / "file").write_text("x")
    git(path, "add", "file")
    git(path, "commit", "--quiet", "--message", str(path))
    return path


@pytest.fixture
def two(tmp_path: Path, run: Run) -> tuple[Sides, Sides]:
    """Two projects with sessions, which no run has seen: one in git, the other without."""
    repository(tmp_path / "one")
    return Sides(tmp_path / "one", run).play(NEW, "continued"), Sides(tmp_path / "t w_o", run).play(OLD, "subagent")


def test_every_project_with_sessions_is_kept(two: tuple[Sides, Sides], run: Run) -> None:
    result = run("--all")
    assert (result.exit_code, kept(*two)) == (0, True), result.output
    for each in two:
        assert f"project   {each.project}" in result.output
    assert result.output.endswith("\n2 projects: 2 changed.\n")
    assert [line for line in run("--all").output.splitlines() if line] == ["Nothing to do in 2 projects."]
    two[0].play(NEW, "subagent")
    assert run("--all").output.count("project   ") == 1
    assert kept(*two)


def test_if_all_sessions_are_lost_the_projects_that_had_some_are_named(two: tuple[Sides, Sides], run: Run) -> None:
    run("--all")
    two[0].lose()
    result = run("--all")
    assert (result.exit_code, result.stdout) == (4, "No project was looked at: 2 left out.\n"), result.output
    for each in two:
        assert f"{each.project}: Claude Code has no session of it" in result.stderr
    run("-w", two[0].project, "recover", "--yes")
    assert "has no session of it" not in run("--all").output, "one lost project is a sweep"


def test_quietly_only_what_is_blocked_is_printed(two: tuple[Sides, Sides], run: Run) -> None:
    name = "00000000-0000-4000-8000-000000000000.jsonl"
    (two[0].live / name).write_text("<a new format>\n" * 9)
    lines = [line for line in run("--all", "--quiet").output.splitlines() if line]
    assert lines[0] == f"project   {two[0].project}"
    assert name in "".join(lines[1:])
    assert len(lines) == 4
    assert kept(two[1])


def test_a_dry_run_of_all_writes_nothing(two: tuple[Sides, Sides], run: Run, home: Path) -> None:
    dry = run("--all", "--dry-run")
    assert (dry.exit_code, (home / "data").exists()) == (0, False)
    assert dry.output.endswith("2 projects: 2 to change.\n")
    assert run("--all", "--check").exit_code == 3
    run("--all")
    assert run("--all", "--check").exit_code == 0


def test_all_as_json_is_one_line_for_each_project_with_something_to_tell(two: tuple[Sides, Sides], run: Run) -> None:
    *projects, end = map(json.loads, run("--all", "--json").stdout.splitlines())
    assert [each["project"] for each in projects] == sorted(str(each.project) for each in two)
    assert {each["format"] for each in projects} == {"reconcile.project/1"}
    assert all(each["plan"]["actions"] and each["plan"]["outcome"] for each in projects)
    counts = {"projects": 2, "changed": 2, "blocked": 0, "failed": 0, "left_out": []}
    assert end == {"format": "reconcile.all/1", **counts}
    (end,) = map(json.loads, run("--all", "--json").stdout.splitlines())
    assert end["changed"] == 0


def test_no_project_stops_the_others(two: tuple[Sides, Sides], run: Run, tmp_path: Path) -> None:
    run("--all")
    one, other = two
    last = Sides(tmp_path / "zzz", run).play(NEW, "plain")
    (one.live / "00000000-0000-4000-8000-000000000000.jsonl").write_text("<a new format>\n" * 9)
    other.live.rename(tmp_path / "away")
    other.live.symlink_to(tmp_path / "away")
    result = run("--all")
    assert (result.exit_code, kept(last)) == (1, True), result.output
    assert f"error: {other.project}: " in result.output
    assert result.output.endswith("3 projects: 1 changed, 1 blocked, 1 failed.\n")


def test_a_bug_in_one_project_costs_no_other_its_copies(
    two: tuple[Sides, Sides], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*args: Any, **more: Any) -> State:
        if next(calls) == 0:
            raise KeyError("a bug")
        return opened_before(*args, **more)

    opened_before, calls = State.open, itertools.count()
    monkeypatch.setattr(State, "open", opened)
    result = run("--all")
    assert (result.exit_code, kept(two[1])) == (1, True)
    assert "KeyError: 'a bug'" in result.output


def test_a_home_without_any_project(run: Run, home: Path) -> None:
    result = run("--all")
    assert (result.exit_code, result.output) == (0, f"{NO_PROJECT}\n")
    for command in ("status", "ls"):
        assert run(command, "--all").output == result.output
    assert not (home / "data").exists()


@pytest.mark.parametrize("words", [("--workspace", "."), ("--yes",), ("--only", "x"), ("--out", "x")])
def test_options_of_one_project_are_refused(run: Run, words: tuple[str, ...]) -> None:
    result = run("--all", *words)
    assert result.exit_code == 2
    assert f"--all: {words[0]} can't be used with it" in result.output


def test_a_yes_for_all_is_refused_with_the_reason(run: Run) -> None:
    assert "hint: leave it out: --all asks nothing" in run("--all", "--yes").output


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("find", "--all", "word"), "find is about one project: "),
        (("--all", "diff", "word"), "diff is about one project: "),
        (("--all", "recover"), "behind `recover`, --all is another option"),
    ],
)
def test_a_command_of_one_project_names_the_way_to_all(run: Run, words: tuple[str, ...], hint: str) -> None:
    told = run(*words).output
    assert f"{next(each for each in words if each[0] != '-')}: --all can't be used here" in told
    assert f"hint: {hint}" in told
    assert "list your projects: reconcile ls --all" in told


def test_a_command_without_a_project_is_not_said_to_have_one(run: Run) -> None:
    told = run("service", "install", "--all").output
    assert "hint: leave it out; `reconcile service --help-all` lists the options" in told, told


@pytest.mark.parametrize("words", [(), ("status",), ("watch",)])
def test_an_unknown_format_is_refused(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, "--all", "--format", "claude")
    assert (result.exit_code, "error: unknown format 'claude' (choose from claude-code, " in result.output) == (2, True)


def test_status_of_all_is_one_line_for_each_project(two: tuple[Sides, Sides], run: Run) -> None:
    assert run("status", "--all").stdout.count(": 1 session: 1 workspace only.\n") == 2
    run("--all")
    two[0].play(NEW, "subagent")
    result = run("status", "--all")
    assert result.exit_code == 0
    lines = dict(line.split(" (claude-code): ") for line in result.stdout.splitlines())
    assert lines == {
        str(two[0].project): "2 sessions: 1 up to date, 1 workspace only.",
        str(two[1].project): "1 session: 1 up to date.",
    }
    document = json.loads(run("status", "--all", "--json").stdout)
    assert document["format"] == "reconcile.status.all/1"
    assert [each["project"] for each in document["projects"]] == [str(each.project) for each in two]
    assert {each["status"]["format"] for each in document["projects"]} == {"reconcile.status/1"}
    shutil.rmtree(two[1].project)
    assert f"{two[1].project} (claude-code, gone): 1 session: " in run("status", "--all").stdout
    assert "--all lists whole projects" in run("status", "--all", "x").stderr


def test_recover_all_outside_of_a_project_names_the_projects(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    told = run("recover", "--all").output
    assert "hint: otherwise change to a project, or name it with -w DIR; list your projects: " in told


def test_commands_outside_of_a_project_name_the_projects(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    for words in (("ls",), ("status",), ()):
        told = run(*words).output
        assert "hint: change to the project, or name it with -w DIR; list your projects: reconcile ls --all" in told


def test_the_way_back_from_a_run_in_all_has_short_paths(run: Run, home: Path) -> None:
    Sides(home / "a project", run).play(NEW, "continued")
    told = run("--all").output
    assert "undo with: reconcile undo --workspace ~/'a project' --format claude-code)" in told
    assert str(home / "a project") not in told


# Projects that are gone.


def test_sessions_of_a_project_that_is_gone_are_kept(two: tuple[Sides, Sides], run: Run) -> None:
    """Never seen while it was there, nor in git: its store is by its path."""
    one, other = two
    shutil.rmtree(one.project)
    shutil.rmtree(other.project)
    result = run("--all")
    assert (result.exit_code, kept(one, other)) == (0, True), result.output
    assert "is gone" not in result.output
    assert run("--all").output == "Nothing to do in 2 projects.\n"
    listed = json.loads(run("ls", "--json", "--format", "claude-code", "-w", one.project).stdout)
    assert listed["sessions"]


def test_a_project_that_is_gone_has_the_store_that_it_had(two: tuple[Sides, Sides], run: Run) -> None:
    one, _ = two
    run("--all")
    store = os.path.realpath(one.store)
    shutil.rmtree(one.project)
    one.live.joinpath("00000000-0000-4000-8000-000000000000.jsonl").write_text(
        json.dumps({"type": "user", "cwd": str(one.project)}) + "\n"
    )
    result = run("--all")
    assert result.output.endswith("2 projects: 1 changed.\n")
    assert os.path.realpath(one.store) == store
    assert kept(one)


def test_sessions_of_a_removed_worktree_are_kept_in_the_store_of_its_repository(tmp_path: Path, run: Run) -> None:
    main, tree = Sides(repository(tmp_path / "main"), run), Sides(tmp_path / "tree", run)
    git(main.project, "worktree", "add", "--quiet", "../tree")
    main.play(NEW, "plain")
    tree.play(OLD, "plain")
    run("--all")
    git(main.project, "worktree", "remove", "--force", "../tree")
    added = tree.live / "00000000-0000-4000-8000-000000000000.jsonl"
    added.write_text(json.dumps({"type": "user", "cwd": str(tree.project)}) + "\n")
    assert run("--all").exit_code == 0
    assert (main.store / added.name).exists()
    assert kept(tree)


def test_recover_in_the_renamed_project_finds_what_only_the_store_of_the_old_path_has(tmp_path: Path, run: Run) -> None:
    """No run has seen the project while it had its old path, and Claude Code has deleted a session since."""
    old = Sides(repository(tmp_path / "old"), run).play(NEW, "continued").play(NEW, "subagent")
    before = carried(old.live)
    old.project.rename(tmp_path / "new")
    new = Sides(tmp_path / "new", run)
    run("--all")
    assert kept(old)
    for path in list(old.live.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    old.live.rmdir()
    assert run("--all").exit_code == 0
    result = run("recover", "--from", old.project, "--yes", "-w", new.project)
    assert result.exit_code == 0, result.output
    assert carried(new.live) == before


@pytest.mark.parametrize("in_git", [True, False])
def test_recover_in_a_renamed_project_that_no_run_has_seen(tmp_path: Path, run: Run, in_git: bool) -> None:
    old = Sides(repository(tmp_path / "old") if in_git else tmp_path / "old", run).play(NEW, "continued")
    before = carried(old.live)
    old.project.rename(tmp_path / "new")
    new = Sides(tmp_path / "new", run)
    mistyped = run("recover", "--from", tmp_path / "odl", "--yes", "-w", new.project)
    assert (mistyped.exit_code, new.live.exists()) == (2, False), mistyped.output
    result = run("recover", "--from", old.project, "--yes", "-w", new.project)
    assert result.exit_code == 0, result.output
    assert carried(new.live) == before
    assert not old.live.exists()
    new.reconcile()
    assert kept(new)


def test_recover_in_a_renamed_project_with_sessions_of_its_own_finds_both(tmp_path: Path, run: Run) -> None:
    old = Sides(repository(tmp_path / "old"), run).play(NEW, "continued").play(NEW, "subagent")
    before = carried(old.live)
    old.project.rename(tmp_path / "new")
    new = Sides(tmp_path / "new", run).play(OLD, "plain")
    own = carried(new.live)
    run("--all")
    swept = next(path for path in old.live.glob("*.jsonl") if not path.with_suffix("").exists())
    swept.unlink()
    assert run("--all").exit_code == 0
    result = run("recover", "--from", old.project, "--yes", "-w", new.project)
    assert result.exit_code == 0, result.output
    assert carried(new.live) == before | own
    assert not old.live.exists()
    assert run("--all").exit_code == 0
    assert kept(new)


def test_sessions_that_a_person_has_moved_by_hand_are_kept(tmp_path: Path, run: Run) -> None:
    """Its first lines name the old path, its last ones the new."""
    old = Sides(tmp_path / "old", run).play(NEW, "continued")
    old.project.rename(tmp_path / "new")
    new = Sides(tmp_path / "new", run)
    old.live.rename(new.live)
    result = run("--all")
    assert f"{new.live.name}: its project is unknown, as no session has its path as `cwd`; " in result.output
    assert (result.exit_code, not new.store.exists()) == (4, True)
    (session,) = new.live.glob("*.jsonl")
    with session.open("a") as file:
        file.write(json.dumps({"type": "user", "cwd": str(new.project)}) + "\n")
    assert run("--all").output.endswith("1 project: 1 changed.\n")
    assert kept(new)


def test_two_paths_of_one_name(tmp_path: Path, run: Run) -> None:
    """The program has one directory for both: the sessions belong to the one that is there."""
    gone, there = Sides(tmp_path / "a.b", run), Sides(tmp_path / "a-b", run)
    assert gone.live == there.live
    gone.play(NEW, "continued")
    there.play(OLD, "plain")
    shutil.rmtree(gone.project)
    result = run("--all")
    assert result.output.endswith("1 project: 1 changed.\n")
    assert kept(there)


# Projects of other formats.


@pytest.fixture(params=["of tmpfs", "of ext4"])
def jp(tmp_path: Path, run: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """A project of JP's with three conversations and a private one, which a run has seen.

    The directories of ext4 have a generation, those of tmpfs, where the tests are, have none.
    """
    generation = (lambda path: os.stat(path).st_ino) if request.param == "of ext4" else lambda _: None
    monkeypatch.setattr(paths, "generation_of", generation)
    world = make_project(tmp_path / "project", run)
    three(world)
    world.reconcile()
    write_conversation(world.store / "17500000009-letter", "Letter", events(3))
    world.reconcile()
    return world


def test_a_project_that_no_run_has_seen_is_left_alone(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    three(world)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert run("--all").output == f"{NO_PROJECT}\n"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_project_in_the_plain_format_is_left_out_with_the_command_that_runs_there(tmp_path: Path, run: Run) -> None:
    """No run knows its store without the option."""
    write_conversation(tmp_path / "notes" / "conversations" / "ideas", "Ideas", events(1))
    (tmp_path / "backup").mkdir()
    sides = ("--format", "plain", "-w", tmp_path / "notes", "--store", tmp_path / "backup")
    assert run(*sides).exit_code == 0
    told = run("--all").stderr
    assert told.endswith(f"run it in the project: cd {tmp_path}/notes && reconcile --format plain --store DIR\n")


def test_a_project_that_a_run_has_seen_is_kept_and_nothing_is_published(jp: World, run: Run) -> None:
    append(jp.workspace / f"{FIRST}-it", 2, "w", LONG_AGO + 10 * SECOND)
    result = run("--all")
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "1 project: 1 changed."), result.output
    assert "Nothing to do" in jp.run("-w", jp.project).output
    assert not list(jp.workspace.glob("*letter*"))
    assert run("--all", "--format", "claude-code").output == f"{NO_PROJECT}\n"
    assert run("--all", "--format", "jp").output == "Nothing to do in 1 project.\n"


def test_a_project_whose_directory_was_made_again_is_one_project(jp: World, run: Run) -> None:
    shutil.move(jp.workspace, jp.project / "elsewhere")
    shutil.copytree(jp.project / ".jp", jp.project / "copy")
    shutil.rmtree(jp.project / ".jp")
    (jp.project / "copy").rename(jp.project / ".jp")
    jp.run("-w", jp.project, "recover", "--yes")
    assert run("--all").output == "Nothing to do in 1 project.\n"


def test_a_project_of_two_formats_is_one_target_for_each(jp: World, run: Run) -> None:
    sides = Sides(jp.project, run).play(NEW, "plain")
    assert run("--all").output.endswith("2 projects: 1 changed.\n")
    assert kept(sides)


def test_a_project_that_is_gone_is_left_out_in_silence(jp: World, run: Run) -> None:
    shutil.rmtree(jp.project)
    assert run("--all").output == f"{NO_PROJECT}\n"


def test_a_project_without_its_jp_directory_is_left_out_with_the_way_back(jp: World, run: Run) -> None:
    before = contents(jp.workspace)
    shutil.rmtree(jp.project / ".jp")
    line, _ = run("--all").output.splitlines()
    assert line.startswith(f"left out: {jp.project}: no .jp directory")
    command = line.partition("restore it: ")[2]
    assert command == f"cd {jp.project} && reconcile recover"
    jp.run("-w", jp.project, "recover", "--yes")
    assert contents(jp.workspace) == before


def test_one_command_restores_what_every_project_has_lost(jp: World, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(jp.project, other)
    run("-w", other)
    before = contents(jp.workspace)
    for project in (jp.project, other):
        shutil.rmtree(project / ".jp")
    for words in (("--all",), ("status", "--all")):
        result = run(*words)
        assert (result.exit_code, result.stdout) == (4, "No project was looked at: 2 left out.\n")
        assert "restore what all of them have lost: reconcile recover --all-projects\n" in result.stderr
    shown = run("recover", "--all-projects", "--dry-run")
    assert (shown.exit_code, shown.stdout.count("(jp)")) == (0, 2), shown.output
    assert not (other / ".jp").exists()
    asked = run("recover", "--all-projects")
    assert (asked.exit_code, asked.stderr.count("this needs a yes: Restore this?")) == (4, 2)
    restored = run("recover", "--all-projects", "--yes")
    assert (restored.exit_code, restored.stdout.count("Done: 3 restored in the workspace.")) == (0, 2), restored.output
    assert contents(jp.workspace) == contents(other / ".jp" / "conversations") == before
    assert run("recover", "--all-projects", "--yes").stdout.count("Nothing to do.") == 2


def test_one_command_restores_what_is_lost_beside_a_project_that_fails(jp: World, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(jp.project, other)
    run("-w", other)
    before = contents(jp.workspace)
    shutil.rmtree(jp.project / ".jp")
    (other / ".jp" / ".id").write_text("none")
    result = run("recover", "--all-projects", "--yes")
    assert f"left out: {other}: " in result.stderr
    assert contents(jp.workspace) == before


def test_what_recover_takes_beside_all_projects(run: Run) -> None:
    for words, told in (
        (("x",), "leave out ID, --all and --from"),
        (("--all",), "leave out ID, --all and --from"),
        (("--json",), "--all-projects: --json can't be used with it"),
        (("-w", "x"), "--all-projects: --workspace can't be used with it"),
    ):
        result = run("recover", "--all-projects", *words)
        assert (result.exit_code, told in result.output) == (2, True), result.output
    assert run("recover", "--all-projects").stdout == f"{NO_PROJECT}\n"


@pytest.mark.parametrize("how", ["another directory", "another store", "a store named with an option"])
def test_sides_that_are_not_those_of_the_last_run_are_left_out(jp: World, run: Run, tmp_path: Path, how: str) -> None:
    if how == "another directory":
        shutil.copytree(jp.project, tmp_path / "copy")
        jp.project.rename(tmp_path / "away")
        (tmp_path / "copy").rename(jp.project)
    elif how == "another store":
        shutil.copytree(jp.store, tmp_path / "copy")
        jp.store.rename(tmp_path / "away")
        (tmp_path / "copy").rename(jp.store)
    else:
        shutil.copytree(jp.silo, tmp_path / "silo")
        run("-w", jp.project, "-s", tmp_path / "silo")
    append(jp.workspace / f"{FIRST}-it", 2, "w", LONG_AGO + 10 * SECOND)
    before = jp.stamps()
    result = run("--all")
    assert (result.exit_code, jp.stamps()) == (4, before), result.output
    assert result.output.startswith(f"left out: {jp.project}: ")
    assert result.output.endswith("No project was looked at: 1 left out.\n")


def test_a_state_that_cannot_be_read_is_named(jp: World, two: tuple[Sides, Sides], run: Run) -> None:
    for path in jp.state.glob("state.sqlite*"):
        path.unlink()
    (jp.state / "state.sqlite").write_bytes(b"no database" * 1000)
    result = run("--all")
    assert f"/{jp.state.name}/state.sqlite: can't be read" in result.output
    assert result.exit_code == 1, "a service must not take it for a success"
    assert kept(*two)


# Sessions that Claude Code deletes.


@pytest.fixture
def swept(tmp_path: Path, run: Run) -> tuple[Sides, Sides]:
    """Two projects whose sessions a run has saved: three of the first one, and the only one of the second."""
    pair = titled(Sides(tmp_path / "p1", run), "Audit", "Build", "Chart"), titled(Sides(tmp_path / "p2", run), "Draft")
    run("--all")
    return pair


def way(sides: Sides, *ids: str) -> str:
    return " ".join(("reconcile recover", *ids, f"--workspace {sides.project} --format claude-code"))


def test_all_names_a_deleted_session_once_with_the_command_that_restores_it(
    swept: tuple[Sides, Sides], run: Run
) -> None:
    one, _ = swept
    before = carried(one.live)
    sweep(one, "a")
    line = f"{one.project}: 1 session was removed from the workspace, and is in the store: Audit; restore it: "
    assert run("--all", "--dry-run").stdout.startswith(line)
    result = run("--all")
    assert (result.exit_code, result.stdout) == (0, f"{line}{way(one, 'aaaaaaaa')}\nNothing to do in 2 projects.\n")
    assert run("--all").output == "Nothing to do in 2 projects.\n"
    assert run(*way(one, "aaaaaaaa").split()[1:]).exit_code == 0
    assert carried(one.live) == before


@pytest.mark.parametrize("at_once", [True, False])
def test_all_names_the_last_sessions_of_a_project_that_were_deleted(
    swept: tuple[Sides, Sides], run: Run, at_once: bool
) -> None:
    one, other = swept
    before = carried(one.live)
    if not at_once:
        sweep(one, "a")
        run("--all")
    shutil.rmtree(one.live)
    result = run("--all")
    titles = "3 sessions were removed from the workspace, and are in the store: Audit, Build, Chart"
    if not at_once:
        titles = "2 sessions were removed from the workspace, and are in the store: Build, Chart"
    assert f"{one.project}: {titles}; restore them: reconcile recover " in result.stdout
    assert (result.exit_code, result.stderr) == (0, "")
    again = run("--all")
    line = f"{one.project}: no session is left in the workspace; the store keeps 3; restore them: {way(one)}"
    assert (again.exit_code, again.stdout) == (0, f"{line}\nNothing to do in 2 projects.\n")
    assert run("--all", "--quiet").output == ""
    assert run(*way(one).split()[1:], "--yes").exit_code == 0
    assert carried(one.live) == before or not at_once
    assert run("--all").output == "Nothing to do in 2 projects.\n"
    assert kept(one, other)


def test_quietly_a_deleted_session_is_named_once(swept: tuple[Sides, Sides], run: Run) -> None:
    one, other = swept
    sweep(one, "a")
    sweep(other)
    result = run("--all", "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"warning: {one.project}: 1 session was removed" in result.stderr
    assert f": Draft; restore it: {way(other, 'dddddddd')}\n" in result.stderr
    assert run("--all", "--quiet").output == ""
    sweep(one, "b")
    quiet = run("--quiet", "-w", one.project)
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    words = (
        "1 session was removed from the workspace, and is in the store: Build; restore it: reconcile recover bbbbbbbb"
    )
    assert quiet.stderr == f"warning: {words} --workspace {one.project}\n"
    assert run("--quiet", "-w", one.project).output == ""


def test_a_run_names_deleted_sessions_by_title(swept: tuple[Sides, Sides], run: Run) -> None:
    one, other = swept
    sweep(one, "a")
    assert "Audit (aaaaaaaa): deleted from the workspace" in run("-w", one.project).stdout
    sweep(other)
    told = run("-w", other.project).stdout
    assert f"restore it: reconcile recover --workspace {other.project} (removed since the last run: Draft)" in " ".join(
        told.split()
    )


def test_a_run_names_a_deleted_session_once_whatever_was_beside_it(swept: tuple[Sides, Sides], run: Run) -> None:
    one, _ = swept
    (beside := one.live / f"{'a' * 8}-0000-4000-8000-000000000000" / "tool-results").mkdir(parents=True)
    for name in ("1.txt", "2.txt"):
        (beside / name).write_text("text")
    run("--all")
    sweep(one, "a")
    shutil.rmtree(beside.parent)
    assert run("--dry-run", "-w", one.project, "--verbose").stdout.count("deleted from the workspace") == 3
    assert run("-w", one.project).stdout.count("deleted from the workspace") == 1


def test_all_as_json_has_the_notes_of_deleted_sessions(swept: tuple[Sides, Sides], run: Run) -> None:
    sweep(swept[0], "a")
    project, _ = map(json.loads, run("--all", "--json").stdout.splitlines())
    assert [note["reason"] for note in project["plan"]["notes"]] == ["removed-here"]
    assert len(run("--all", "--json").stdout.splitlines()) == 1


def test_a_saved_plan_names_what_was_deleted_since(swept: tuple[Sides, Sides], run: Run, tmp_path: Path) -> None:
    one, _ = swept
    titled(one, "Draft")
    run("--out", tmp_path / "plan.json", "-w", one.project)
    sweep(one, "a")
    told = run("apply", tmp_path / "plan.json").stderr  # from another directory
    assert "warning: 1 session was removed from the workspace, and is in the store: Audit; restore it: " in told


def test_a_session_that_another_project_has_now_is_not_lost(swept: tuple[Sides, Sides], run: Run) -> None:
    """It can't be restored here: a session has one project."""
    one, other = swept
    (session,) = one.live.glob("a*.jsonl")
    session.rename(other.live / session.name)
    told = run("--all")
    assert "removed from the workspace" not in told.output
    assert kept(one, other)
    assert run("--all").output == "Nothing to do in 2 projects.\n"


def test_a_project_that_only_lost_sessions_does_not_count_as_changed(swept: tuple[Sides, Sides], run: Run) -> None:
    sweep(swept[0], "a")
    for words in (["--dry-run"], []):
        assert json.loads(run("--all", "--json", *words).stdout.splitlines()[-1])["changed"] == 0


def test_what_is_removed_is_counted_as_sessions_and_other_files(swept: tuple[Sides, Sides], run: Run) -> None:
    """A session that is still there was not removed, and a note is none."""
    one, _ = swept
    (beside := one.live / f"{'a' * 8}-0000-4000-8000-000000000000" / "tool-results").mkdir(parents=True)
    (notes := one.live / "memory").mkdir()
    for path in (beside / "1.txt", beside / "2.txt", notes / "MEMORY.md"):
        path.write_text("text")
    run("--all")
    before = carried(one.live)
    shutil.rmtree(beside.parent)
    shutil.rmtree(notes)
    command = way(one, "memory/MEMORY.md", "aaaaaaaa")
    told = run("--all").stdout
    files = "3 files were removed from the workspace, and are in the store: memory/MEMORY.md, 2 of Audit"
    assert told.startswith(f"{one.project}: {files}; restore them: {command}\n"), told
    assert run(*command.split()[1:]).exit_code == 0
    assert carried(one.live) == before
    sweep(one, "b")
    shutil.rmtree(notes)
    told = run("--all", "--quiet").stderr
    files = "1 session and 1 file were removed from the workspace, and are in the store: Build, memory/MEMORY.md"
    assert files in told, told


def test_if_every_session_is_lost_a_project_of_another_format_is_named_too(
    swept: tuple[Sides, Sides], run: Run, jp: World
) -> None:
    own = titled(Sides(jp.project, run), "Extra")
    run("--all")
    own.lose()
    told = run("--all")
    for each, titles in zip((*swept, own), ("Audit, Build, Chart", "Draft", "Extra"), strict=True):
        start = f"left out: {each.project}: Claude Code has no session of it; "
        (line,) = (text for text in told.stderr.splitlines() if text.startswith(start))
        assert f": {titles}; restore " in line
        assert f" --workspace {each.project} --format claude-code" in line
    assert told.stderr == run("--all").stderr, "no run was made in them, so this is no news yet"
    assert told.stderr == run("--all", "--quiet").stderr, "a loss of everything is no less than one of a session"
    listed = json.loads(run("--all", "--json").stdout)["left_out"]
    assert "1 session was removed from the workspace, and is in the store: Draft" in str(listed)


# Listings.


def test_every_project_is_listed_below_its_path(two: tuple[Sides, Sides], run: Run) -> None:
    """Also one whose sessions are all in the store only."""
    run("--all")
    one, other = two
    shutil.rmtree(other.live)
    result = run("ls", "--all")
    assert result.exit_code == 0, result.output
    heads = [line for line in result.stdout.splitlines() if line.endswith(" (claude-code)")]
    assert heads == [f"{path} (claude-code)" for path in sorted(str(each.project) for each in two)]
    (place,) = (text for text in result.stdout.split("\n\n") if text.startswith(f"{other.project} "))
    assert "store" in place
    document = json.loads(run("ls", "--all", "--json").stdout)
    assert [each["project"] for each in document["projects"]] == sorted(str(each.project) for each in two)
    assert all(each["list"]["sessions"] for each in document["projects"])
    assert "leave out --root and --html" in run("ls", "--all", "--root").output
    assert run("ls", "--all", "-w", one.project).exit_code == 2

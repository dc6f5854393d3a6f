"""A project of JP that has sessions of Claude Code, too: one command does both, unless it names what is of one."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.program import VERSIONS
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.git_world import git
from tests.support.projects.terminal import at_terminal, watched_at_terminal
from tests.support.projects.three_conversations import FIRST, three
from tests.support.projects.watcher import Watching, grow, until
from tests.support.projects.world import World, command, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.conftest import Run

MODE = b'{"type":"mode","mode":"plan"}\n'
ONE = f"jp-c{FIRST}"


@dataclass(frozen=True, slots=True)
class Both:
    """A checkout with conversations of JP and recorded sessions, and the store of each."""

    jp: World
    claude: Sides
    run: Run

    @property
    def project(self) -> Path:
        return self.jp.project

    @property
    def session(self) -> Path:
        """The session without files beside it."""
        (path,) = (path for path in self.claude.live.glob("*.jsonl") if not path.with_suffix("").exists())
        return path

    def reconcile(self, *args: str | Path, code: int = 0) -> Result:
        result = self.run("-w", self.project, *args)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    def of(self, name: str, *args: str) -> Result:
        return self.reconcile("--format", name, *args)

    def document(self, *args: str | Path, code: int = 0) -> Any:
        return json.loads(self.reconcile("--json", *args, code=code).stdout)

    def change(self) -> None:
        """Let both go on."""
        grow(self.jp.workspace, FIRST)
        self.say()

    def say(self) -> None:
        """Append to the session as the program does."""
        with self.session.open("ab") as file:
            file.write(MODE)

    def in_sync(self) -> bool:
        events = [self.jp.event_count(FIRST, side) for side in (self.jp.store, self.jp.workspace)]
        return len(set(events)) == 1 and self.claude.in_sync()


@pytest.fixture(params=VERSIONS)
def fresh(request: pytest.FixtureRequest, tmp_path: Path, run: Run) -> Both:
    """Both, before the first run."""
    world = make_project(tmp_path / "project", run)
    three(world)
    sides = Sides(world.project, run).private().play(request.param, "continued").play(request.param, "subagent")
    return Both(world, sides, run)


@pytest.fixture
def both(fresh: Both) -> Both:
    """Both, in sync."""
    fresh.reconcile()
    assert fresh.in_sync()
    return fresh


# The plain run.


def test_a_run_does_both_each_below_its_own_sides(fresh: Both) -> None:
    result = fresh.reconcile()
    heads = [line for line in result.stdout.splitlines() if line.startswith("workspace ")]
    assert [head.endswith(".jp (nested)") for head in heads] == [True, False]
    assert fresh.in_sync()
    again = fresh.reconcile().stdout
    assert again == "Nothing to do. 3 conversations: 3 up to date; 2 sessions: 2 up to date.\n"
    assert fresh.reconcile("--dry-run").stdout == again


def test_a_format_with_nothing_to_do_prints_nothing_beside_one_that_has(fresh: Both) -> None:
    fresh.reconcile()
    fresh.change()
    assert fresh.reconcile().stdout.count("\nstore ") == 2
    fresh.say()
    text = fresh.reconcile().stdout
    assert text.startswith("workspace ~/.claude/projects/")
    assert "Nothing to do" not in text
    assert text.count("\nstore ") == 1


def test_a_project_without_sessions_prints_the_same_as_before(fresh: Both) -> None:
    shutil.rmtree(fresh.claude.live)
    fresh.reconcile()
    assert fresh.reconcile().output == fresh.of("jp").output
    assert fresh.reconcile("status").output == fresh.of("jp", "status").output.replace(" --format jp", "")
    assert fresh.document("status") == json.loads(fresh.of("jp", "status", "--json").stdout)


def test_the_sessions_of_another_project_do_not_count(fresh: Both, tmp_path: Path) -> None:
    shutil.move(fresh.claude.live, fresh.claude.live.with_name("-elsewhere"))
    assert fresh.reconcile().stdout.count("\nstore ") == 1


def test_a_format_can_be_chosen(both: Both) -> None:
    both.change()
    assert "Done: " in both.of("claude-code").stdout
    assert both.claude.in_sync()
    assert not both.in_sync()
    assert both.of("jp").stdout.count("\nstore ") == 1
    assert both.in_sync()


def test_a_store_chooses_the_format_that_is_found_first(both: Both) -> None:
    both.change()
    both.reconcile("--store", both.jp.silo)
    assert not both.claude.in_sync()


def test_an_error_in_one_does_not_keep_the_other_from_being_done(both: Both) -> None:
    both.change()
    (both.project / ".jp" / ".id").write_text("no id")
    result = both.reconcile(code=2)
    assert "error: jp: " in result.stderr
    assert both.claude.in_sync()


def test_a_deleted_jp_is_named_and_recovered_beside_the_sessions(both: Both) -> None:
    before = carried(both.jp.workspace)
    shutil.rmtree(both.project / ".jp")
    both.say()
    assert "reconcile recover" in both.reconcile(code=2).stderr
    assert both.claude.in_sync()
    both.session.unlink()
    both.reconcile("recover", "--yes")
    assert carried(both.jp.workspace) == before
    assert both.claude.in_sync()


def test_the_exit_code_is_the_first_that_applies(both: Both) -> None:
    both.session.write_text("<a new format>\n")
    both.reconcile("--check", code=4)
    grow(both.jp.workspace, FIRST)
    both.reconcile("--check", code=4)
    both.reconcile("--check", "--format", "jp", code=3)


def test_what_is_printed_undoes_what_was_done(both: Both) -> None:
    both.change()
    lines = both.reconcile().stdout.splitlines()
    ways = [line.partition("undo with: ")[2].rstrip(").") for line in lines if "undo with: " in line]
    assert [way.partition(" --workspace")[0] for way in ways] == ["reconcile undo"] * 2
    assert [way.rpartition("--format ")[2] for way in ways] == ["jp", "claude-code"]
    for way in ways:
        result = both.run(*way.split()[1:])
        assert result.exit_code == 0, result.output
    assert not both.claude.in_sync()
    assert both.jp.event_count(FIRST) == 3


def test_a_no_at_a_question_ends_the_command_before_the_other_is_begun(fresh: Both) -> None:
    code, shown = at_terminal("-w", fresh.project, answers="n\n")
    assert code == 4
    assert shown.count("This is the first run here") == 1
    assert not fresh.claude.store.exists()
    code, shown = at_terminal("-w", fresh.project, answers="y\nn\n")
    assert code == 4
    assert "Done: 3 added to the store" in shown
    assert "Cancelled, nothing of claude-code changed." in shown
    assert not fresh.claude.store.exists()


@pytest.mark.long
def test_the_first_question_comes_again_after_a_no(fresh: Both) -> None:
    for name in ("claude-code", "jp"):
        for answer in ("n\n", "n\n", "y\n"):
            code, shown = at_terminal("-w", fresh.project, "--format", name, answers=answer)
            assert shown.count("This is the first run here") == 1
            assert code == (0 if answer == "y\n" else 4)
    assert fresh.claude.store.exists()


def test_a_hook_of_git_is_about_the_conversations(both: Both) -> None:
    git(both.project, "init", "--quiet")
    both.change()
    both.reconcile("hooks", "run", "post-merge")
    until(lambda: both.jp.event_count(FIRST) == 5)
    assert not both.claude.in_sync()


def test_a_project_of_leslie_with_sessions(tmp_path: Path, run: Run) -> None:
    project = tmp_path / "project"
    (project / ".leslie").mkdir(parents=True)
    (project / ".leslie" / "objectives.json").write_text('{"objectives": {}}')
    sides = Sides(project, run).play(VERSIONS[-1], "continued")
    result = run("-w", project)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\nstore ") == 2
    assert sides.in_sync()
    listed = run("-w", project, "--json", "ls")  # Leslie's own file of threads is missing
    assert listed.exit_code == 1
    assert json.loads(listed.stdout).keys() == {"also"}
    assert json.loads(listed.stderr)["error"].startswith(".leslie/thread_relations.json")


# Commands about everything.


@pytest.mark.parametrize("words", [("status",), ("doctor",), ("--dry-run",), ("ls",), ("log",), ("vault",)])
def test_what_is_about_everything_is_about_both(both: Both, words: tuple[str, ...]) -> None:
    if words == ("--dry-run",):
        both.change()
    text = both.reconcile(*words).stdout
    for name in ("jp", "claude-code"):
        own = both.of(name, *words).stdout
        assert own.replace(f" --format {name}", "") in text.replace(f" --format {name}", "")
    assert text.count("\nstore ") == 2


def test_the_objects_of_the_others_are_in_that_of_the_first(both: Both) -> None:
    both.change()
    for words in (("status",), ("ls",), ("--dry-run",), ("log",), ("find", "the"), ("doctor",)):
        codes = [both.run("-w", both.project, "--json", *words, "--format", name) for name in ("jp", "claude-code")]
        own, other = (json.loads(result.stdout) for result in codes)
        result = both.run("-w", both.project, "--json", *words)
        document = json.loads(result.stdout)
        also = document.pop("also")
        assert list(also) == ["claude-code"]
        for one, same in ((document, own), (also["claude-code"], other)):
            one.pop("now_ns", None)
            same.pop("now_ns", None)
            assert one == same


def test_a_search_is_done_if_one_has_a_match(both: Both) -> None:
    found = both.reconcile("find", "no-such-word", code=1).stdout
    assert (found.count("no conversation has"), found.count("no session has")) == (1, 1)
    assert both.of("jp", "find", "It").exit_code == 0
    both.reconcile("find", "It")


def test_a_repair_with_nothing_to_do_says_so_once_for_each(both: Both) -> None:
    shown = both.reconcile("doctor", "--repair").stdout
    assert [line.partition(".")[0] for line in shown.splitlines() if line] == ["Nothing to do"] * 2


def test_each_format_is_compared_in_its_own_words(both: Both) -> None:
    shown = both.reconcile("diff").stdout
    assert "No conversation differs" in shown
    assert "No session differs" in shown


def test_what_one_format_lacks_leaves_it_out(both: Both) -> None:
    result = both.reconcile("ls", "--root")
    assert "It" in result.stdout
    assert "claude-code is left out" in result.stderr
    assert "leave out --root and --archived" in both.reconcile("ls", "--archived").stderr


def test_a_page_is_of_the_first(both: Both, tmp_path: Path) -> None:
    result = both.reconcile("ls", "--tree", "--html", tmp_path / "tree.html")
    assert "3 conversations" in result.stdout
    assert "--format claude-code" in result.stderr


def test_everything_that_was_lost_comes_back(both: Both) -> None:
    git(both.project, "init", "--quiet")
    before = carried(both.jp.workspace), carried(both.claude.live)
    both.claude.lose()
    shutil.rmtree(both.jp.workspace)
    both.reconcile("recover", "--yes")
    assert (carried(both.jp.workspace), carried(both.claude.live)) == before


def test_the_sessions_of_a_renamed_project_come_along(fresh: Both, tmp_path: Path, run: Run) -> None:
    git(fresh.project, "init", "--quiet")
    git(fresh.project, "commit", "--quiet", "--allow-empty", "--message", "x")
    fresh.reconcile()
    before = carried(fresh.claude.live)
    new = tmp_path / "renamed"
    fresh.project.rename(new)
    renamed = Both(World(new, run), Sides(new, run), run)
    assert "session" not in renamed.reconcile().stdout, "a run doesn't wait for git to find the store"
    result = renamed.reconcile("recover", "--yes")
    assert "moved " in result.stderr
    assert carried(renamed.claude.live) == before
    assert renamed.reconcile().stdout == "Nothing to do. 3 conversations: 3 up to date; 2 sessions: 2 up to date.\n"


def test_a_checkout_is_forgotten_by_each_that_knows_it(both: Both, tmp_path: Path) -> None:
    assert both.reconcile("checkouts").stdout.count(str(both.project)) >= 2
    both.reconcile("checkouts", "--forget", both.project)
    assert both.reconcile("checkouts").stdout.count("No checkout of this store is known yet") == 2
    assert both.reconcile("checkouts", "--forget", tmp_path, code=2).stderr.count("error: ") == 1


def test_versions_for_good_are_deleted_of_the_first_alone(both: Both) -> None:
    both.change()
    both.reconcile()
    assert "this is about jp" in both.reconcile("vault", "--prune", "--older-than", "1h", "--yes").stderr


def test_what_only_jp_has_does_not_fail_beside_sessions(both: Both) -> None:
    both.reconcile("gc")
    both.reconcile("project", "--all")
    both.reconcile("config")


# Commands with names.


def test_an_id_chooses_the_format_that_knows_it(both: Both) -> None:
    assert "It" in both.reconcile("show", ONE).stdout
    assert both.reconcile("show", both.session.stem).stdout == both.of("claude-code", "show", both.session.stem).stdout
    assert "state" in both.reconcile("status", both.session.stem).stdout
    grow(both.jp.workspace, FIRST)
    both.say()
    both.reconcile("--only", ONE)
    assert not both.claude.in_sync()


def test_an_unknown_id_is_an_error_of_the_first(both: Both) -> None:
    result = both.reconcile("show", "jp-c17999999999", code=2)
    assert result.stderr == both.reconcile("show", "jp-c17999999999", "--format", "jp", code=2).stderr


def test_ids_of_both_are_of_no_command(both: Both) -> None:
    result = both.reconcile("local", ONE, both.session.stem, "-n", code=2)
    assert result.stderr.startswith(f"error: '{ONE}' and '{both.session.stem}' are not of one format\n")


def test_a_title_of_both_asks_for_the_format(both: Both) -> None:
    title = json.loads(both.of("claude-code", "ls", "--json").stdout)["sessions"][0]["title"]
    metadata = both.jp.workspace / f"{FIRST}-it" / "metadata.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"title": title}))
    result = both.reconcile("show", title, code=2)
    assert "--format jp or --format claude-code" in result.stderr


def test_a_run_of_both_asks_for_the_format(both: Both) -> None:
    runs = {name: json.loads(both.of(name, "log", "--json").stdout)["runs"][0]["id"] for name in ("jp", "claude-code")}
    assert ONE in both.of("jp", "log", runs["jp"]).stdout
    code = 2 if runs["jp"] == runs["claude-code"] else 0
    both.reconcile("log", runs["claude-code"], code=code)


def test_undo_takes_the_newest_run_and_a_second_one_needs_a_yes(both: Both) -> None:
    both.change()
    both.reconcile()
    first = both.reconcile("undo")
    assert "the newest run is of claude-code" in first.stderr
    assert not both.claude.in_sync()
    assert both.jp.event_count(FIRST) == 5
    refused = both.reconcile("undo", code=4)
    assert "reconcile undo " in refused.stderr
    assert "--format jp" in refused.stderr
    both.reconcile("undo", "--yes")
    assert both.jp.event_count(FIRST) == 3
    both.reconcile("redo", "--yes")
    assert both.jp.event_count(FIRST) == 5
    both.reconcile("redo", code=4)


def test_versions_and_hashes_choose_the_format_that_has_them(both: Both) -> None:
    before = both.session.read_bytes()
    both.say()
    time.sleep(1.1)  # the ids of runs have the second
    both.reconcile()
    run = both.document("log", "--format", "claude-code")["runs"][0]["id"]
    name = f"{both.session.name}@{run}"
    (version,) = both.document("show", name)["versions"]
    assert base64.b64decode(version["content"]) == before
    assert both.document("show", version["digest"][:12])["versions"] == [version]
    assert both.document("diff", name, f"{both.session.name}@store")["conversation"] == both.session.name
    both.reconcile("restore", both.session.name)  # there is only one
    assert both.session.read_bytes() == before
    both.reconcile("vault", "--purge", version["digest"], "--yes")
    both.reconcile("show", name, code=2)


def test_a_shell_completes_the_ids_of_both(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", f"reconcile -w {both.project} show ")
    monkeypatch.setenv("_RECONCILE_COMPLETE", "fish_complete")
    shown = subprocess.run(command(), capture_output=True, text=True, check=True).stdout
    assert f"{ONE}\tIt" in shown
    assert both.session.stem in shown


def test_a_shell_completes_the_id_of_a_session_that_no_run_has_seen(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = "11111111-2222-4333-8444-555555555555"
    both.session.with_stem(new).write_bytes(both.session.read_bytes())
    monkeypatch.setenv("COMP_WORDS", f"reconcile -w {both.project} show 1111")
    monkeypatch.setenv("COMP_CWORD", "1111")
    monkeypatch.setenv("_RECONCILE_COMPLETE", "fish_complete")
    assert new in subprocess.run(command(), capture_output=True, text=True, check=True).stdout


# Saved plans.


def test_a_saved_plan_is_of_one_format(both: Both, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    both.change()
    result = both.reconcile("--out", plan, code=2)
    assert "--format jp or --format claude-code" in result.stderr
    assert not plan.exists()
    both.of("jp")
    both.reconcile("--out", plan)
    both.reconcile("apply", plan)
    assert both.in_sync()


def test_a_printed_plan_of_several_is_no_saved_one(both: Both, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    both.change()
    plan.write_text(both.reconcile("--dry-run", "--json").stdout)
    assert "--format" in both.reconcile("apply", plan, code=2).stderr


# The watcher.


def test_a_watcher_keeps_both(both: Both) -> None:
    with Watching(both.jp) as watcher:
        watcher.hears("watching", times=2)
        both.change()
        until(both.in_sync)
        watcher.hears("done", times=2)
        assert watcher.stop() == 0
    assert {event["of"] for event in watcher.said("done")} == {"jp", "claude-code"}
    assert len(watcher.said("stopped")) == 2
    with Watching(both.jp) as watcher:
        watcher.hears("watching", times=2)
        watcher.process.send_signal(signal.SIGHUP)
        both.say()
        until(both.in_sync)
        assert watcher.stop(signal.SIGINT) == 130


def test_what_a_watcher_prints_names_the_format(both: Both) -> None:
    code, shown = watched_at_terminal(both.project, "watching 3 conversations and 2 sessions")
    assert code == 0
    assert "jp: watching 3 conversations" in shown
    assert "claude-code: watching 2 sessions" in shown
    assert "claude-code: stopped" in shown


def test_a_watcher_of_which_one_cannot_begin_keeps_the_other(both: Both) -> None:
    with Watching(both.jp, "--format", "jp"):
        process = subprocess.Popen(
            command("watch", "--json", "--workspace", both.project),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        both.say()
        until(both.claude.in_sync)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "watch" in errors


def test_a_killed_watcher_leaves_nothing_that_a_run_does_not_finish(both: Both) -> None:
    with Watching(both.jp) as watcher:
        watcher.hears("watching", times=2)
        both.change()
        watcher.process.kill()
        watcher.process.wait()
    both.reconcile()
    assert both.in_sync()
    assert both.reconcile().stdout == "Nothing to do. 3 conversations: 3 up to date; 2 sessions: 2 up to date.\n"

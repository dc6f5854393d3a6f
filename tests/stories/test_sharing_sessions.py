"""Sessions of Claude Code that are shared in a repository: two people, two homes, two clones and real git."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from reconcile.formats.claude_code.forks import forked
from tests.agents.program import VERSIONS
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.planted import KINDS
from tests.support.projects.git_world import git
from tests.support.projects.watcher import Watching, until

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.conftest import Run

pytestmark = pytest.mark.long

VERSION = VERSIONS[-1]
FOLDER = ".claude-sessions"
LINE = b'{"type":"mode","mode":"%s"}\n'
UNKNOWN = "00000000-0000-4000-8000-000000000000"
DAY = 24 * 3600
HOME = {
    "HOME": "",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
}


@dataclass(frozen=True, slots=True)
class Person:
    """A user with a home and a checkout. Every method first makes the home the present one."""

    home: Path
    sides: Sides
    monkeypatch: pytest.MonkeyPatch

    def here(self) -> Sides:
        for name, below in HOME.items():
            self.monkeypatch.setenv(name, str(self.home / below))
        return self.sides

    @property
    def project(self) -> Path:
        return self.sides.project

    @property
    def folder(self) -> Path:
        return self.project / FOLDER

    @property
    def live(self) -> Path:
        return self.here().live

    @property
    def store(self) -> Path:
        return self.here().store

    def shared(self) -> dict[str, bytes]:
        """The content of each file of the folder, by path, without the attributes for git."""
        return {path: content for path, content in carried(self.folder).items() if path != ".gitattributes"}

    def play(self, story: str) -> Path:
        """Play a recorded story; return its newest session."""
        before = set(self.live.glob("*.jsonl"))
        self.here().play(VERSION, story)
        return next(iter(set(self.live.glob("*.jsonl")) - before), next(self.live.glob("*.jsonl")))

    def run(self, *args: str | Path, code: int = 0) -> Result:
        result = self.here().run(*args, "-w", self.project)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    def settled(self) -> None:
        """A second run has nothing to write."""
        before = self._everything()
        self.run()
        assert self._everything() == before

    def _everything(self) -> dict[str, dict[str, bytes]]:
        return {str(path): carried(path) for path in (self.live, self.store, self.folder)}

    def git(self, *args: str, check: bool = True) -> str:
        return git(self.project, *args, check=check)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "sessions")

    def commit_if_changed(self) -> None:
        if self.git("status", "--porcelain"):
            self.commit()

    def push(self) -> None:
        self.git("push", "--quiet", "origin", "HEAD:main")

    def pull(self, *, check: bool = True) -> None:
        self.git("pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main", check=check)


@pytest.fixture
def people(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[Person, Person]:
    """Two people with clones of one repository."""
    hub = tmp_path / "hub.git"
    hub.mkdir()
    git(hub, "init", "--quiet", "--bare")
    made = []
    for name in ("ann", "ben"):
        git(tmp_path, "clone", "--quiet", str(hub), name)
        person = Person(tmp_path / "homes" / name, Sides(tmp_path / name, run), monkeypatch)
        person.here()
        made.append(person)
        if name == "ann":
            (person.project / "code.py").write_text("x = 1\n")
            person.commit()
            person.push()
    return made[0], made[1]


@pytest.fixture
def ann(people: tuple[Person, Person]) -> Person:
    return people[0]


@pytest.fixture
def ben(people: tuple[Person, Person]) -> Person:
    return people[1]


def add(path: Path, *contents: bytes) -> bytes:
    """Append to a file as the program does; return its content."""
    with path.open("ab") as file:
        file.writelines(contents)
    return path.read_bytes()


def shared(ann: Person, ben: Person) -> tuple[Path, Path]:
    """A session that both have: Ann's, and Ben's from her commit."""
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    return session, ben.live / session.name


# Sharing.


def test_nothing_is_written_into_a_repository_unasked(ann: Person) -> None:
    ann.play("subagent")
    for args in ((), ("recover", "--yes"), ("recover", "--all", "--yes")):
        ann.run(*args)
    assert not ann.folder.exists()
    assert ann.git("status", "--porcelain") == ""


def test_a_session_is_shared_with_all_that_belongs_to_it(ann: Person) -> None:
    other = ann.play("plain")
    session = ann.play("subagent")
    notes = session.parent / "memory" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_text("A private note.\n")
    before = carried(session.parent)
    shown = ann.run("project", session.stem, "--dry-run", code=2)
    assert "no session has the id" in shown.output, "no run has saved it yet"
    assert "lines that no run has saved yet are not shown; a run saves them: reconcile" in shown.stderr
    assert not ann.folder.exists()
    ann.run("project", session.stem)
    belongs = {path: content for path, content in before.items() if path.startswith(session.stem)}
    assert len(belongs) == 4
    assert ann.shared() == belongs, "neither the notes, nor another session"
    assert carried(session.parent) == before
    assert ann.git("status", "--porcelain", "--untracked-files=all").count("\n") == 4 + 1, "and the attributes for git"
    assert other.name not in ann.shared()
    ann.settled()


def test_a_listing_names_what_is_shared(ann: Person) -> None:
    one, other = ann.play("plain"), ann.play("subagent")
    ann.run()
    ann.run("project", one.stem, "--yes")
    rows = json.loads(ann.run("ls", "--json").stdout)["sessions"]
    assert {row["record"]: row["shared"] for row in rows} == {one.name: True, other.name: False}
    assert ann.run("ls").stdout.count("both, shared") == 1
    heads, *lines = ann.run("ls", "--format", "claude-shared").stdout.splitlines()
    assert heads.split() == ["Title", "Id", "Where", "Last", "activity", "Size"], (
        "no branch: an empty column is left out"
    )
    places = {where: line for line in lines for where in ("both", "store") if f"  {where} " in line}
    assert one.stem[:8] in places["both"]
    assert other.stem[:8] in places["store"]


def test_status_tells_which_sessions_are_shared(ann: Person) -> None:
    session = ann.play("plain")
    ann.run()
    assert "shared" not in ann.run("status").output
    assert "shared" not in json.loads(ann.run("status", "--json").stdout)
    ann.run("project", session.stem)
    out = ann.run("status").output
    assert "1 of them is shared in .claude-sessions: reconcile status --format claude-shared" in " ".join(out.split())
    assert json.loads(ann.run("status", "--json").stdout)["shared"] == [session.name]
    assert json.loads(ann.run("status", session.stem, "--json").stdout)["shared"] is True
    assert "shared     in .claude-sessions" in ann.run("status", session.stem).output


def test_watch_says_at_its_start_that_it_leaves_the_folder_alone(ann: Person) -> None:
    session, told = ann.play("plain"), "watch leaves .claude-sessions alone; a run syncs what it shares: reconcile"
    ann.run()
    with Watching(ann.here()) as watching:
        assert not watching.said("message")
        watching.stop()
    ann.run("project", session.stem)
    with Watching(ann.here()) as watching:
        watching.hears("message", told)
        watching.stop()
    assert len(watching.said("message", told)) == 1


def test_a_dry_run_names_each_file_and_writes_nothing(ann: Person) -> None:
    session = ann.play("subagent")
    ann.run()
    shown = ann.run("project", session.stem, "--dry-run").output
    assert "no run has saved" not in shown
    assert all(path in shown for path in carried(session.parent) if path.startswith(session.stem))
    assert not ann.folder.exists()


def test_a_colleague_gets_the_session_where_the_program_finds_it(ann: Person, ben: Person) -> None:
    own = ben.play("continued")
    add(own, LINE % b"of Ben's")
    session = ann.play("subagent")
    ann.run("project", session.stem)
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    assert carried(ben.live).items() >= ann.shared().items()
    ages = {path.name: time.time() - path.stat().st_mtime for path in ben.live.glob("*.jsonl")}
    assert ages[session.name] > DAY > ages[own.name], "`--continue` takes what this user used last"
    assert ben.git("status", "--porcelain") == ""
    ben.settled()


def test_lines_and_files_that_come_later_follow_on_both_sides(ann: Person, ben: Person) -> None:
    session, copy = shared(ann, ben)
    add(session, LINE % b"later")
    agent = session.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(LINE % b"of the agent")
    ann.run()
    assert ann.shared() == carried(session.parent)
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    assert carried(ben.live) == ann.shared()
    assert copy.read_bytes() == session.read_bytes()
    add(copy, LINE % b"Ben's turn")
    ben.run()
    ben.commit()
    ben.push()
    ann.pull()
    ann.run()
    assert session.read_bytes() == copy.read_bytes()
    ann.settled()
    ben.settled()


def test_line_ends_that_git_changes_in_a_checkout_are_left_alone_there(ann: Person, ben: Person) -> None:
    for person in (ann, ben):
        person.here()
        person.git("config", "core.autocrlf", "true")
    session = ann.play("plain")
    ann.run()
    ann.run("project", session.stem)
    ann.commit()
    ann.push()
    ben.here()
    ben.pull()
    ben.run()
    assert (ben.folder / session.name).read_bytes() == (ben.live / session.name).read_bytes() == session.read_bytes()
    assert b"\r" not in session.read_bytes()


def test_attributes_of_the_folder_that_are_there_are_left_alone(ann: Person) -> None:
    session = ann.play("plain")
    ann.run()
    ann.folder.mkdir()
    (ann.folder / ".gitattributes").write_text("* text\n")
    ann.run("project", session.stem)
    assert (ann.folder / ".gitattributes").read_text() == "* text\n"


def test_a_run_of_all_projects_syncs_the_folder_too(ann: Person, ben: Person, run: Run) -> None:
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.commit()
    ann.push()
    ben.play("subagent")
    ben.pull()
    result = run("--all")
    assert result.output.endswith("\n1 project: 1 changed.\n")
    assert (ben.live / session.name).read_bytes() == session.read_bytes()
    assert run("--all").output == "Nothing to do in 1 project.\n"
    ann.here()
    line = add(session, LINE % b"later")
    before = ann.shared()
    for _ in range(2):
        told = run("--all", "--dry-run")
        assert told.output.endswith("1 project: 1 to change.\n")
        follows = "1 of these sessions is shared: a run checks the new lines for secrets, and copies them to .claude-"
        assert f": {follows}" in told.stderr
        assert f"\n{follows}" in f"\n{run('--dry-run', '-w', ann.project).stderr}"
        assert ann.shared() == before
    assert run("--all").output.endswith("\n1 project: 1 changed.\n")
    assert ann.shared()[session.name] == line
    assert run("--all", "--format", "claude-shared").output == "Nothing to do in 1 project.\n"


def test_a_watcher_of_every_project_leaves_the_folder_alone(ann: Person) -> None:
    session = ann.play("plain")
    ann.run("project", session.stem)
    before = ann.shared()
    with Watching(None) as watching:
        line = add(session, LINE % b"later")
        until(lambda: carried(ann.store)[session.name] == line, "the line is saved")
        assert watching.stop() == 0
    assert ann.shared() == before
    ann.run()
    assert ann.shared()[session.name] == line


def test_a_shared_session_comes_once(ann: Person, ben: Person) -> None:
    ben.play("subagent")
    _, copy = shared(ann, ben)
    copy.unlink()  # Claude Code's sweep
    ben.run()
    ben.run()
    assert not copy.exists()
    assert copy.name in carried(ben.store)
    ben.run("recover", copy.stem)
    assert copy.exists()


def test_a_session_that_its_user_removed_does_not_come_back_unasked(ann: Person, ben: Person) -> None:
    session, copy = shared(ann, ben)
    ben.run("rm", copy.stem, "--yes")
    ben.run()
    assert not copy.exists()
    ben.git("checkout", "--", ".")
    ben.run()
    assert not copy.exists()
    add(session, LINE % b"more")
    ann.run()
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    assert not copy.exists()
    ben.run("recover", copy.stem, "--yes")
    assert copy.read_bytes() == session.read_bytes()


def test_a_session_has_one_live_home(ann: Person) -> None:
    """Another worktree of the same user has the folder by git, and the session is live in the first one."""
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.commit()
    ann.git("worktree", "add", "--quiet", "../ann-2")
    other = Person(ann.home, Sides(ann.project.parent / "ann-2", ann.sides.run), ann.monkeypatch)
    other.run()
    assert (other.folder / session.name).exists()
    assert [path.parent for path in ann.live.parent.glob(f"*/{session.name}")] == [ann.live]


def test_a_run_that_was_killed_before_the_session_was_live_is_finished_by_the_next(ann: Person, ben: Person) -> None:
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.commit()
    ann.push()
    ben.pull()
    ben.run("--format", "claude-shared")  # the first half
    assert not ben.live.exists()
    ben.run()
    assert carried(ben.live) == ann.shared()


# Not sharing any more.


def test_a_session_is_taken_out_again_and_git_keeps_what_it_has(ann: Person, ben: Person) -> None:
    session, copy = shared(ann, ben)
    before = session.read_bytes()
    out = ann.run("local", session.stem).output
    assert "in git since" in out
    assert not (ann.folder / session.name).exists()
    assert session.read_bytes() == before
    add(session, LINE % b"private from now on")
    ann.run()
    assert not (ann.folder / session.name).exists()
    assert carried(ann.store)[session.name] == session.read_bytes()
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    assert (ben.folder / copy.name).exists() is False
    assert copy.read_bytes() == before, "Ben keeps his"
    ann.settled()
    ben.settled()
    ann.run("project", session.stem)
    assert (ann.folder / session.name).read_bytes() == session.read_bytes()


@pytest.mark.parametrize("is_only", [True, False], ids=["the only one", "one of two"])
def test_what_a_colleague_withdrew_is_kept_private_until_it_is_shared_again(
    ann: Person, ben: Person, *, is_only: bool
) -> None:
    """`recover` would share it again, so that it is not named."""
    session, copy = shared(ann, ben)
    if not is_only:
        ann.run("project", ann.play("forked").stem)
        ann.commit()
        ann.push()
        ben.pull()
        ben.run()
    ann.run("local", session.stem)
    ann.commit()
    ann.push()
    ben.pull()
    ben.run("--format", "claude-shared")
    for _ in range(2):
        told = ben.run("status", "--format", "claude-shared").output
        assert "reconcile local" in told
        assert "recover" not in told
    ben.run("local", copy.stem)
    assert "reconcile local" not in ben.run("status", "--format", "claude-shared").output
    assert not (ben.folder / copy.name).exists()


def test_sharing_is_undone(ann: Person) -> None:
    session = ann.play("subagent")
    out = ann.run("project", session.stem).output
    assert "reconcile undo" in out
    ann.run("undo", "--format", "claude-shared")
    assert ann.shared() == {}
    assert session.exists()
    ann.run()
    assert ann.shared() == {}


def test_undo_without_a_run_takes_the_newest_of_home_and_folder(ann: Person) -> None:
    session = ann.play("continued")
    ann.run()
    ann.run("project", session.stem)
    assert "reconcile project" in ann.run("log").output
    ann.run("undo")
    assert ann.shared() == {}
    assert carried(ann.store)[session.name] == session.read_bytes(), "the run before is not undone"
    ann.run("redo")
    assert (ann.folder / session.name).exists()


# Secrets.


def secret() -> str:
    return KINDS["GitHub classic token"](random.Random(26))


def test_status_names_what_is_blocked_in_the_folder(ann: Person) -> None:
    session = ann.play("plain")
    ann.run()
    ann.run("project", session.stem)
    assert "Nothing to do." in ann.run("status").stdout
    add(session, json.dumps({"type": "note", "text": f"TOKEN={secret()}"}).encode() + b"\n")
    ann.run(code=4)
    shown = ann.run("status").stdout
    assert "reconcile status --format claude-shared" in shown
    assert f"shows what is blocked in {FOLDER} (1)" in " ".join(shown.split())
    assert "Nothing to do." not in shown
    assert json.loads(ann.run("status", "--json").stdout)["blocked_in_folder"] == 1


@pytest.mark.parametrize("how", ["text", "base64", "json in json"])
def test_a_session_with_a_key_is_not_shared_until_that_is_allowed(ann: Person, how: str) -> None:
    key = secret()
    text = f"export TOKEN={key}\n"
    content = {
        "text": text,
        "base64": base64.b64encode(text.encode()).decode(),
        "json in json": json.dumps({"stdout": text}),
    }[how]
    session = ann.play("subagent")
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": content}]}
    line = {"type": "user", "uuid": UNKNOWN, "message": {"role": "user", "content": [result]}}
    add(session, json.dumps(line).encode() + b"\n")
    held = ann.run("project", session.stem, code=4).output
    assert "GitHub token" in held
    assert key not in held
    assert "git add" not in held
    assert ann.shared() == {}, "its subagents and results wait for it"
    ann.run()
    assert ann.shared() == {}
    ann.run("resolve", session.name, "--allow-secrets", "--format", "claude-shared")
    assert ann.shared() == carried(session.parent)
    add(session, LINE % b"later")
    ann.run()
    assert ann.shared() == carried(session.parent)


def test_a_key_in_a_tools_result_or_a_subagent_is_found(ann: Person) -> None:
    session = ann.play("subagent")
    beside = [path for path in session.with_suffix("").rglob("*") if path.suffix in (".txt", ".jsonl")]
    assert len(beside) == 2
    for path in beside:
        add(path, json.dumps({"stdout": f"TOKEN={secret()}"}).encode() + b"\n")
    held = ann.run("project", session.stem, code=4).output
    assert held.count("GitHub token") == 2
    names = {str(path.relative_to(session.parent)) for path in beside}
    assert set(ann.shared()) == set(carried(session.parent)) - names


def test_a_key_that_a_colleague_has_published_holds_no_later_line(ann: Person, ben: Person) -> None:
    session = ann.play("plain")
    add(session, json.dumps({"type": "note", "text": f"TOKEN={secret()}"}).encode() + b"\n")
    ann.run("project", session.stem, code=4)
    ann.run("resolve", session.name, "--allow-secrets", "--format", "claude-shared")
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    add(ben.live / session.name, LINE % b"Ben's turn")
    ben.run()
    assert ben.shared() == carried(ben.live)


# Two continuations.


def with_two_continuations(ann: Person, ben: Person) -> tuple[Path, Path, bytes, bytes]:
    """Both go on with a shared session; Ann has pushed, and Ben has committed."""
    session, copy = shared(ann, ben)
    of_ann, of_ben = add(session, LINE % b"Ann's turn"), add(copy, LINE % b"Ben's turn")
    ann.run()
    ann.commit()
    ann.push()
    ben.run()
    ben.commit()
    return session, copy, of_ann, of_ben


def test_a_file_with_gits_markers_is_held_with_one_line(ann: Person, ben: Person) -> None:
    _, copy, _, of_ben = with_two_continuations(ann, ben)
    ben.pull(check=False)
    assert b"<<<<<<< " in (ben.folder / copy.name).read_bytes()
    before = carried(ben.store)
    held = ben.run(code=4).output
    assert held.count("conflict marker") == 1
    assert (carried(ben.store), copy.read_bytes()) == (before, of_ben)
    ben.git("add", "--all")
    ben.git("commit", "--quiet", "--message", "with markers")
    assert ben.run(code=4).output.count("conflict marker") == 1
    assert (carried(ben.store), copy.read_bytes()) == (before, of_ben)


@pytest.mark.parametrize("which", ["--ours", "--theirs"])
def test_two_continuations_both_stay_and_become_quiet(ann: Person, ben: Person, which: str) -> None:
    session, copy, of_ann, of_ben = with_two_continuations(ann, ben)
    ben.pull(check=False)
    ben.git("checkout", which, "--", f"{FOLDER}/{copy.name}")
    ben.commit()
    ben.run()
    ben.settled()
    stays, goes = (of_ben, of_ann) if which == "--ours" else (of_ann, of_ben)
    assert copy.read_bytes() == stays
    new, content = forked(session.stem, goes)
    ben.commit_if_changed()
    ben.push()
    for _ in range(2):
        for person in (ann, ben):
            person.pull()
            person.run()
            person.settled()
            person.commit_if_changed()
            person.push()
    for person in (ann, ben):
        assert (person.live / session.name).read_bytes() == stays
        assert (person.live / f"{new}.jsonl").read_bytes() == content
        assert len(list(person.live.glob("*.jsonl"))) == len(list(person.folder.glob("*.jsonl"))) == 2
        assert person.git("status", "--porcelain") == ""


def test_each_takes_the_others_continuation_and_both_have_all(ann: Person, ben: Person) -> None:
    session, _, of_ann, of_ben = with_two_continuations(ann, ben)
    ben.git("push", "--quiet", "origin", "HEAD:of-ben")
    ann.git("fetch", "--quiet")
    ann.git("merge", "--quiet", "--strategy-option", "theirs", "--no-edit", "origin/of-ben")
    ben.git("fetch", "--quiet")
    ben.git("merge", "--quiet", "--strategy-option", "theirs", "--no-edit", "origin/main")
    for person, mine in ((ann, of_ann), (ben, of_ben)):
        person.run()
        person.settled()
        new, content = forked(session.stem, mine)
        assert (person.live / f"{new}.jsonl").read_bytes() == content
        person.commit_if_changed()
    ann.push()
    ben.git("fetch", "--quiet")
    ben.git("merge", "--quiet", "--strategy-option", "ours", "--no-edit", "origin/main")
    ben.run()
    ben.commit_if_changed()
    ben.push()
    for person in (ann, ben, ann, ben):
        person.pull()
        person.run()
        person.settled()
        person.commit_if_changed()
        person.push()
    assert ann.shared() == ben.shared()
    forks = dict(forked(session.stem, each) for each in (of_ann, of_ben))
    for person in (ann, ben):
        there = carried(person.live)
        assert person.shared().keys() == there.keys() == {session.name, *(f"{new}.jsonl" for new in forks)}
        assert {new: there[f"{new}.jsonl"] for new in forks} == forks
        # For Ann, git has brought back a version that her run had replaced: it is left alone.
        assert there[session.name] in (of_ann, of_ben)


# Branches of one's own.


def test_a_branch_without_the_session_or_with_an_older_version_loses_nothing(ann: Person) -> None:
    ann.git("branch", "before")
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.commit()
    ann.git("branch", "older")
    content = add(session, LINE % b"more")
    ann.run()
    ann.commit()
    for branch in ("before", "older", "main", "before", "main"):
        ann.git("checkout", "--quiet", branch)
        ann.run()
        assert session.read_bytes() == carried(ann.store)[session.name] == content
        assert ann.git("status", "--porcelain") == ""
    content = add(session, LINE % b"still shared")
    ann.run()
    assert (ann.folder / session.name).read_bytes() == content


def test_while_git_is_busy_nothing_is_taken_from_the_folder(ann: Person, ben: Person) -> None:
    _, copy, *_ = with_two_continuations(ann, ben)
    ben.pull(check=False)
    ben.git("checkout", "--theirs", "--", f"{FOLDER}/{copy.name}")
    before = carried(ben.store)
    held = ben.run(code=4).output
    assert "git is busy (a merge)" in held
    assert carried(ben.store) == before


def test_while_git_is_busy_no_fork_is_written_into_the_folder(ann: Person, ben: Person) -> None:
    _, copy, *_ = with_two_continuations(ann, ben)
    ben.pull(check=False)
    ben.git("checkout", "--theirs", "--", f"{FOLDER}/{copy.name}")
    before = ben.shared()
    told = ben.run("fork", copy.stem, "--format", "claude-shared", code=4).output
    assert "git is busy (a merge)" in told
    assert ben.shared() == before


def test_a_fork_of_a_session_that_the_folder_lacks_is_not_written_into_it(ann: Person) -> None:
    never, private = ann.play("plain"), ann.play("subagent")
    ann.run()
    ann.run("project", private.stem)
    ann.run("local", private.stem, "--format", "claude-shared")
    for source in (never, private):
        before = set(ann.store.glob("*.jsonl"))
        ann.run("fork", source.stem, "--format", "claude-shared")
        assert len(set(ann.store.glob("*.jsonl")) - before) == 1
        ann.run("--format", "claude-shared")
        assert ann.shared() == {}
    ann.run("project", never.stem)
    ann.run("fork", never.stem, "--format", "claude-shared")
    assert len(ann.shared()) == 2


def test_the_checkout_is_moved(ann: Person) -> None:
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.commit()
    moved = Person(ann.home, Sides(ann.project.parent / "moved", ann.sides.run), ann.monkeypatch)
    ann.project.rename(moved.project)
    moved.run()
    assert [path.parent.name for path in moved.live.parent.glob(f"*/{session.name}")] == [session.parent.name]
    moved.run("recover", "--from", ann.project, "--yes")
    moved.run("recover", "--yes")
    assert [path.parent for path in moved.live.parent.glob(f"*/{session.name}")] == [moved.live]
    assert moved.git("status", "--porcelain") == ""
    content = add(moved.live / session.name, LINE % b"more")
    moved.run()
    assert (moved.folder / session.name).read_bytes() == content


# The folder.


def test_projects_in_subdirectories_share_in_the_folder_at_the_top(ann: Person, ben: Person) -> None:
    sessions = {}
    for place in ("packages/web", "packages/api"):
        inner = Person(ann.home, Sides(ann.project / place, ann.sides.run), ann.monkeypatch)
        sessions[place] = inner.play("plain" if place.endswith("web") else "subagent")
        inner.run("project", sessions[place].stem)
        (inner.project / "file").write_text("x")
        assert set(carried(ann.folder / place)) == set(carried(sessions[place].parent))
    ann.commit()
    ann.push()
    ben.pull()
    for place, session in sessions.items():
        inner = Person(ben.home, Sides(ben.project / place, ben.sides.run), ben.monkeypatch)
        inner.run()
        assert carried(inner.live) == carried(session.parent)


def test_the_folder_can_have_another_name(ann: Person) -> None:
    ann.here()
    ann.monkeypatch.setenv("RECONCILE_SHARED_SESSIONS", "docs/sessions")
    session = ann.play("plain")
    ann.run("project", session.stem)
    assert (ann.project / "docs/sessions" / session.name).exists()
    assert not ann.folder.exists()


@pytest.mark.parametrize("value", ["", "/srv/x", "../x", "a/../../x", ".git/x", "a//b", "./a", "a\nb"])
def test_a_folder_outside_of_the_repository_is_refused(ann: Person, value: str) -> None:
    config = ann.home / "config" / "reconcile" / "reconcile.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"shared_sessions = {json.dumps(value)}\n")
    ann.play("plain")
    assert "shared_sessions" in ann.run(code=2).output


@pytest.mark.parametrize("kind", ["folder", "above"])
def test_a_link_in_the_place_of_the_folder_is_never_followed(ann: Person, tmp_path: Path, kind: str) -> None:
    session = ann.play("plain")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(session, elsewhere / f"{UNKNOWN}.jsonl")
    before = carried(elsewhere)
    if kind == "folder":
        ann.folder.symlink_to(elsewhere)
    else:
        (elsewhere / "sessions").mkdir()
        (elsewhere / f"{UNKNOWN}.jsonl").rename(elsewhere / "sessions" / f"{UNKNOWN}.jsonl")
        before = carried(elsewhere)
        (ann.project / "docs").symlink_to(elsewhere)
        ann.monkeypatch.setenv("RECONCILE_SHARED_SESSIONS", "docs/sessions")
    out = ann.run(code=2).output
    assert "a symbolic link" in out
    assert carried(ann.store) == carried(ann.live) == {session.name: session.read_bytes()}, "the rest goes on"
    assert "a symbolic link" in ann.run("project", session.stem, code=2).output
    assert carried(elsewhere) == before


@pytest.mark.modes
def test_a_folder_that_cannot_be_read_is_reported_and_the_rest_goes_on(ann: Person) -> None:
    session = ann.play("plain")
    ann.run("project", session.stem)
    ann.folder.chmod(0)
    content = add(session, LINE % b"more")
    try:
        assert "Permission denied" in ann.run(code=4).output
    finally:
        ann.folder.chmod(0o755)
    assert carried(ann.store)[session.name] == content
    ann.run()
    assert (ann.folder / session.name).read_bytes() == content


def test_a_file_in_the_place_of_the_folder_stays(ann: Person) -> None:
    session = ann.play("plain")
    ann.folder.write_text("mine")
    ann.run()
    refused = ann.run("project", session.stem, code=1).output
    assert FOLDER in refused
    assert ann.folder.read_text() == "mine"


def test_files_that_are_no_sessions_stay_in_the_folder(ann: Person, ben: Person) -> None:
    session = ann.play("plain")
    ann.folder.mkdir()
    for name in (".gitignore", "README.md", "notes.txt", ".gitattributes", "memory/MEMORY.md"):
        (ann.folder / name).parent.mkdir(exist_ok=True)
        (ann.folder / name).write_text("# mine\n")
    ann.run("project", session.stem)
    ann.commit()
    ann.push()
    ben.pull()
    ben.run()
    assert set(carried(ben.store)) == set(carried(ben.live)) == {session.name}
    assert len(carried(ben.folder)) == 6


def test_a_folder_that_git_ignores_is_named(ann: Person) -> None:
    (ann.project / ".gitignore").write_text(f"{FOLDER}/\n")
    session = ann.play("plain")
    assert f"git ignores {FOLDER}" in ann.run("project", session.stem).output


def test_what_is_kept_of_the_folder_is_for_its_owner_alone(ann: Person, ben: Person) -> None:
    session, _ = shared(ann, ben)
    for person in (ann, ben):
        for path in (person.store, *person.store.rglob("*"), *person.live.rglob("*.jsonl")):
            if path != session:
                assert path.stat().st_mode & 0o077 == 0
    assert (ann.folder / session.name).stat().st_mode & 0o044 == 0o044 & ~_umask()


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_a_project_of_another_format_gets_a_colleagues_session_too(ann: Person, ben: Person) -> None:
    session = ann.play("plain")
    (ann.project / ".workspaces").mkdir()
    (ann.project / ".workspaces" / "w.json").write_text('{"id": "w"}')
    ann.run("project", session.stem)
    assert set(ann.shared()) == {session.name}
    ann.commit()
    ann.push()
    (ben.here().config / "projects").mkdir(parents=True)
    ben.pull()
    ben.run()
    assert carried(ben.live) == ann.shared()

"""Sessions of Claude Code on two machines: clones of one repository have one store, whatever their paths."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from reconcile.formats.claude_code.names import directory_name
from tests.support.projects.machines import Machine, make_bare, quiet
from tests.support.projects.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

pytestmark = pytest.mark.long

S = "11111111-2222-4333-8444-555555555555"
T = "11111111-2222-4333-8444-666666666666"


class Coder(Machine, frozen=True):
    @property
    def live(self) -> Path:
        return self.home / ".claude" / "projects" / directory_name(str(self.project))

    @property
    def store(self) -> Path:
        (found,) = (self.home / "data" / "reconcile" / "stores" / "claude-code").glob("git-*")
        return found

    def say(self, session: str, text: str, at: int, name: str = "") -> None:
        """Append a line to a session, or to a file beside it, and have a run save it."""
        path = self.live / (f"{session}/{name}" if name else f"{session}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        before = [json.loads(line)["uuid"] for line in path.read_text().splitlines()] if path.exists() else []
        line = {
            "type": "user",
            "uuid": f"{text}-{at}",
            "parentUuid": before[-1] if before else None,
            "sessionId": session,
            "cwd": str(self.project),
            "timestamp": f"2026-01-01T00:00:{at:02}Z",
            "message": {"role": "user", "content": text},
        }
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.run()


@pytest.fixture
def machines(tmp_path: Path, run: Run) -> tuple[Coder, Coder]:
    bare = make_bare(tmp_path / "remote.git")
    origin = tmp_path / "a" / "code"
    origin.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(origin)], check=True)
    subprocess.run(["git", "-C", str(origin), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run(["git", "clone", "-q", str(origin), str(tmp_path / "b" / "elsewhere")], check=True)
    one = Coder(tmp_path / "a", World(origin, run))
    other = Coder(tmp_path / "b", World(tmp_path / "b" / "elsewhere", run))
    one.say(S, "hello", 1)
    one.say(S, "a subagent", 2, "subagents/agent-1.jsonl")
    one.run("remote", "add", str(bare))
    one.sync()
    other.sync(str(bare))
    return one, other


def test_a_new_machine_gets_the_sessions_and_recover_brings_them_home(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    assert other.contents == one.contents
    assert len(other.contents) == 2
    other.run("recover", "--all", "--yes")
    assert (other.live / f"{S}.jsonl").read_bytes() == (one.live / f"{S}.jsonl").read_bytes()
    quiet(one, other)


def test_a_session_goes_on_elsewhere(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    other.run("recover", "--all", "--yes")
    other.say(S, "on the other machine", 3)
    other.sync()
    one.sync()
    one.run()
    assert "on the other machine" in (one.store / f"{S}.jsonl").read_text()
    quiet(one, other)


def test_an_undo_of_a_sync_takes_lines_and_sessions_back_on_one_machine(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    before = other.contents
    one.say(S, "more", 3)
    one.say(T, "another", 4)
    one.sync()
    other.sync()
    taken = other.contents
    other.run("undo")
    assert other.contents == before
    quiet(one, other, equal=False)
    assert (other.contents, one.contents) == (before, taken)
    other.run("redo")
    assert other.contents == taken
    quiet(one, other)


def test_a_session_counts_once_with_the_files_beside_it(machines: tuple[Coder, Coder]) -> None:
    one, _ = machines
    one.say(S, "more", 3)
    one.say(S, "more", 4, "subagents/agent-1.jsonl")
    one.say(T, "another", 5)
    assert "remote origin: 2 sessions to send, 0 to take, last" in one.run("status").output
    planned = one.run("sync", "--dry-run").output
    assert [line.split()[-1] for line in planned.splitlines() if line.startswith("to send")] == [
        f"{S}.jsonl",
        f"{T}.jsonl",
    ]
    assert planned.endswith("origin: 2 sessions to send; a dry run changes nothing.\n")
    assert one.run("sync").output.endswith("origin: 2 sessions sent.\n")
    one.say(S, "alone", 6, "subagents/agent-1.jsonl")
    assert "remote origin: 1 session to send, 0 to take, last" in one.run("status").output
    assert one.run("sync").output.endswith("origin: 1 session sent.\n")


def test_a_sync_of_one_session_has_the_files_beside_it(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    one.say(S, "more of the subagent", 3, "subagents/agent-1.jsonl")
    one.say(T, "another", 4)
    one.say(T, "a subagent", 5, "subagents/agent-2.jsonl")
    sent = {entry["id"] for entry in one.sync("--only", T)["sent"]}
    assert sent == {f"{T}.jsonl", f"{T}/subagents/agent-2.jsonl"}
    taken = {entry["id"] for entry in other.sync("--only", T)["taken"]}
    assert taken == sent
    one.run("rm", T, "--yes")
    one.sync("--only", T)
    other.sync("--only", T)
    assert not [name for name in other.contents if T in name]


def test_a_file_that_comes_beside_a_session_that_is_kept_here_stays_here_too(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    one.say(T, "private", 3)
    one.run("remote", "keep-here", T)
    one.sync()
    one.say(T, "private, too", 4, "subagents/agent-2.jsonl")
    assert "origin: 0 sessions to send" in " ".join(one.run("status").output.split())
    assert not one.sync()["sent"]
    other.sync()
    assert not [path for path in other.contents if T in path]
    one.run("remote", "share", T)
    one.sync()
    other.sync()
    quiet(one, other)


def test_a_fork_of_a_session_that_is_kept_here_stays_here_too(machines: tuple[Coder, Coder]) -> None:
    """It states no parent: the run that has made it knows that."""
    one, _ = machines
    one.say(T, "private", 3)
    one.run()
    one.run("remote", "keep-here", T)
    live, stored = one.live / f"{T}.jsonl", one.store / f"{T}.jsonl"
    before = live.read_text()
    one.say(T, "here", 4)
    stored.write_text(live.read_text())
    live.write_text(before)
    one.say(T, "there", 5)
    one.run()
    (fork,) = {name for name in one.contents if "/" not in name} - {f"{S}.jsonl", f"{T}.jsonl"}
    one.say(fork.removesuffix(".jsonl"), "there, too", 6, "subagents/agent-3.jsonl")
    assert not one.sync()["sent"]
    assert fork in json.loads(one.run("remote", "keep-here", "--json").stdout)["kept"]
    one.run("remote", "share", fork)
    assert fork in [entry["id"] for entry in one.sync()["sent"]]
    assert not one.sync()["sent"]


def test_both_go_on(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    other.run("recover", "--all", "--yes")
    one.say(S, "here", 3)
    other.say(S, "there", 4)
    one.sync()
    planned, found = other.sync("--dry-run"), other.sync()
    assert len(found["forked"]) + len(found["taken"]) >= 1
    (fork,) = (entry["id"] for entry in found["forked"])
    taken = one.sync()
    # Both reports tell whose version was taken, and which fork has the other one.
    for report, side in ((planned, "here"), (found, "here"), (taken, "there")):
        (conflict,) = report["conflicts"]
        assert (conflict["id"], conflict["takes"], conflict["child"]) == (f"{S}.jsonl", side, fork)
    quiet(one, other)
    text = one.run("restore", f"{S}@{taken['conflicts'][0]['run']}", "--dry-run").stdout
    assert "Plan: 1 to update in the store." in text
    texts = "".join(content.decode() for content in one.contents.values())
    assert '"here"' in texts
    assert '"there"' in texts
    assert sum(name.count("/") == 0 for name in one.contents) == 2


def test_a_removal_takes_what_is_beside_a_session(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    one.say(T, "another", 5)
    quiet(one, other)
    one.run("rm", S, "--yes")
    one.sync()
    assert other.sync()["removed_here"]
    assert set(other.contents) == {f"{T}.jsonl"}
    quiet(one, other)


@pytest.mark.parametrize("is_at_home", [False, True], ids=["store", "home"])
def test_a_session_that_went_on_elsewhere_before_its_removal_goes(
    machines: tuple[Coder, Coder], is_at_home: bool
) -> None:
    one, other = machines
    one.say(T, "another", 5)
    quiet(one, other)
    if is_at_home:
        other.run("recover", "--all", "--yes")
    one.say(S, "more", 6)
    one.say(S, "more of the subagent", 7, "subagents/agent-1.jsonl")
    one.sync()
    one.run("rm", S, "--yes")
    one.sync()
    assert other.sync()["removed_here"]
    assert set(other.contents) == {f"{T}.jsonl"}
    other.run()
    quiet(one, other)
    assert set(other.contents) == {f"{T}.jsonl"}


def test_an_edit_beside_a_removed_session_keeps_it(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    one.say(T, "another", 5)
    quiet(one, other)
    other.run("recover", "--all", "--yes")
    other.say(S, "more", 6, "subagents/agent-1.jsonl")
    one.run("rm", S, "--yes")
    one.sync()
    other.sync()
    one.sync()
    assert f"{S}.jsonl" in other.contents
    quiet(one, other)


def test_a_project_without_a_commit_has_no_name_elsewhere(tmp_path: Path, run: Run) -> None:
    alone = Coder(tmp_path / "c", World(tmp_path / "c" / "code", run))
    alone.project.mkdir(parents=True)
    alone.say(S, "hello", 1)
    bare = make_bare(tmp_path / "remote.git")
    assert (
        "this store has no name that other machines know it by" in alone.run("remote", "add", str(bare), code=4).output
    )


def test_shared_sessions_have_the_remotes_of_their_store(machines: tuple[Coder, Coder]) -> None:
    one, _ = machines
    assert "no remotes of their own" in one.run("remote", "--format", "claude-shared", code=4).output


def test_the_removal_of_the_only_session_travels(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    one.run("rm", S, "--yes")
    assert one.sync()["removed_there"]
    assert other.sync()["removed_here"]
    assert not one.contents
    assert not other.contents


def test_a_file_beside_a_session_that_is_gone_meanwhile_does_not_stay_kept(machines: tuple[Coder, Coder]) -> None:
    one, other = machines
    one.sync()
    other.sync()
    one.run("remote", "keep-here", S)
    for side in (one.live, one.store):
        for path in side.rglob("agent-1*"):
            path.unlink()
    one.run()
    one.run("remote", "share", S)
    assert json.loads(one.run("remote", "keep-here", "--json").stdout)["kept"] == []
    quiet(one, other)

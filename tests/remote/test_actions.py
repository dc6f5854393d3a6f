"""The actions of a person on a remote: accept it, drop its history, keep a conversation here, apply a saved plan."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.fs import locks
from reconcile.remote.engine import Swap
from reconcile.remote.git.engine import GitEngine
from tests.support.planted import KINDS
from tests.support.projects.machines import git, make_bare, make_machine, quiet
from tests.support.projects.terminal import at_terminal
from tests.support.projects.world import LONG_AGO, SECOND, append, event, set_key, write_json

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.projects.machines import Machine

REF = "refs/reconcile/jp-ab1cd"
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org")
A, B, C = 17528832000, 17528832010, 17528832020


def has(bare: Path, text: bytes) -> bool:
    """Tell whether a repository has this text in any object, after its garbage was collected."""
    git(bare, "gc", "--quiet", "--prune=now")
    return still_has(bare, text)


def still_has(bare: Path, text: bytes) -> bool:
    """Tell whether a repository has this text in any object."""
    done = subprocess.run(
        ["git", "-C", str(bare), "cat-file", "--batch-all-objects", "--batch"], capture_output=True, check=True
    )
    return text in done.stdout


@pytest.mark.long
def test_the_history_is_dropped_and_all_machines_go_on(laptop: Machine, desktop: Machine, bare: Path) -> None:
    laptop.write(B + 1, title="hunter2")
    quiet(laptop, desktop)
    laptop.run("rm", str(B + 1), "--yes")
    quiet(laptop, desktop)
    assert has(bare, b"hunter2")
    desktop.append(B, 1, "c", LONG_AGO + SECOND)
    laptop.run("rm", "17528832020", "--yes")
    laptop.sync()
    laptop.run("remote", "forget", "--history", "--yes")
    assert not has(bare, b"hunter2")
    assert git(bare, "rev-list", "--count", REF) == "1"
    found = desktop.sync()
    assert (len(found["sent"]), len(found["removed_here"]), found["forked"], found["taken"]) == (1, 1, [], [])
    quiet(laptop, desktop)
    laptop.run("remote", "forget", "--history", "--yes")
    quiet(desktop, laptop)


@pytest.mark.long
def test_a_machine_without_its_mirror_goes_on_after_the_history_was_dropped(laptop: Machine, desktop: Machine) -> None:
    for _ in range(2):
        quiet(laptop, desktop)
    laptop.run("remote", "forget", "--history", "--yes")
    shutil.rmtree(desktop.state / "remotes" / "origin" / "mirror")
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    assert [each["id"] for each in desktop.sync()["taken"]] == [f"jp-c{A}"]
    quiet(laptop, desktop)


@pytest.mark.parametrize("end", ["no answer", "killed"])
def test_a_sync_completes_a_drop_of_the_history_that_was_interrupted(
    laptop: Machine, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The mirror of this machine has no earlier versions then, either."""
    mirror = laptop.state / "remotes" / "origin" / "mirror"
    set_key(laptop.directory(A), "title", "the secret", LONG_AGO + SECOND)
    laptop.sync()
    set_key(laptop.directory(A), "title", "another title", LONG_AGO + 2 * SECOND)
    laptop.sync()
    assert still_has(mirror, b"the secret")
    swap = GitEngine.swap
    with monkeypatch.context() as patch:
        if end == "killed":
            patch.setattr("shutil.rmtree", _killed)
            with pytest.raises(_KilledError):
                laptop.run("remote", "forget", "--history", "--yes")
        else:
            patch.setattr(GitEngine, "swap", lambda *args: (swap(*args), Swap.UNKNOWN)[1])
            laptop.run("remote", "forget", "--history", "--yes", code=1)
    laptop.sync()
    laptop.sync()
    assert not still_has(mirror, b"the secret")
    seen = git(mirror, "rev-parse", "refs/reconcile/seen")
    quiet(laptop)
    assert git(mirror, "rev-parse", "refs/reconcile/seen") == seen  # the mirror is not made each time


class _KilledError(BaseException):
    """The end of a process."""


def _killed(*_: object) -> None:
    raise _KilledError


def test_the_history_is_not_dropped_without_a_yes(laptop: Machine) -> None:
    """The command has no dry run."""
    said = laptop.run("remote", "forget", "--history", code=4).stderr
    assert said.splitlines()[-1] == "hint: --yes carries it out"
    laptop.run("remote", "forget", "--history", "--dry-run", code=2)


def test_the_history_of_an_encrypted_remote_is_dropped(tmp_path: Path, run: Run) -> None:
    bare = make_bare(tmp_path / "r.git")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    one.run("remote", "add", "--encrypt", str(bare))
    one.sync()
    other.state.parent.mkdir(parents=True)
    shutil.copy(one.state.parent / "age-key.txt", other.state.parent / "age-key.txt")
    other.sync(str(bare))
    one.append(A, 1, "b", LONG_AGO + SECOND)
    one.sync()
    one.run("remote", "forget", "--history", "--yes")
    quiet(other, one)
    old = json.loads(git(bare, "show", f"{REF}:format"))
    text = json.dumps(old | {"epoch": old["epoch"] + 1})
    stream = f"commit {REF}\ncommitter x <x@y> 1 +0000\ndata 1\nx\nM 100644 inline format\ndata {len(text)}\n{text}\n"
    git(bare, "fast-import", "--quiet", "--force", stdin=stream.encode())
    assert "no holder of the remote's key" in one.run("sync", code=4).output


def test_the_history_is_dropped_only_by_a_machine_that_has_all(laptop: Machine, desktop: Machine, bare: Path) -> None:
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    tip = git(bare, "rev-parse", REF)
    assert "has not taken all" in desktop.run("remote", "forget", "--history", "--yes", code=4).output
    assert "--history" in desktop.run("remote", "forget", code=2).output
    assert git(bare, "rev-parse", REF) == tip


def test_a_conversation_that_is_kept_here_is_not_sent(
    new_laptop: Machine, tmp_path: Path, run: Run, bare: Path
) -> None:
    assert f"(jp-c{A}) stays on this machine" in new_laptop.run("remote", "keep-here", str(A)).output
    assert "2 conversations to send" in new_laptop.run("status").output
    assert len(new_laptop.sync()["sent"]) == 2
    assert str(A) not in git(bare, "ls-tree", "-r", "--name-only", REF)
    desktop = make_machine(tmp_path / "desktop", run)
    desktop.sync(str(bare))
    quiet_of = new_laptop.sync()
    assert not any(quiet_of[key] for key in ("sent", "taken", "removed_there", "held"))
    assert json.loads(new_laptop.run("remote", "keep-here", "--json").stdout)["kept"] == [f"jp-c{A}"]
    assert f"(jp-c{A}) is sent by the next sync with origin" in new_laptop.run("remote", "share", str(A)).output
    assert f"(jp-c{B}) was not kept here" in new_laptop.run("remote", "share", str(B)).output
    assert len(new_laptop.sync()["sent"]) == 1
    quiet(desktop, new_laptop)


def test_a_fork_of_what_is_kept_here_is_not_sent_either(new_laptop: Machine, bare: Path) -> None:
    """A run forks the conversation: the fork has its content."""
    new_laptop.run("remote", "keep-here", str(A))
    new_laptop.run("project", str(A), "--yes")
    here = next((new_laptop.project / ".jp").rglob(f"{A}*"))
    new_laptop.append(A, 1, "c", LONG_AGO + 60 * SECOND)
    append(here, 2, "b", LONG_AGO + 120 * SECOND)
    new_laptop.run()
    assert {entry["id"] for entry in new_laptop.sync()["sent"]} == {f"jp-c{B}", f"jp-c{C}"}
    assert git(bare, "ls-tree", "-r", "--name-only", REF).count("/r") == 2
    kept = json.loads(new_laptop.run("remote", "keep-here", "--json").stdout)["kept"]
    assert (len(kept), kept[0]) == (2, f"jp-c{A}")
    new_laptop.run("remote", "share", kept[1])
    assert [entry["id"] for entry in new_laptop.sync()["sent"]] == [kept[1]]
    quiet(new_laptop)


def test_the_end_of_a_remote_names_what_was_kept_here(laptop: Machine, bare: Path) -> None:
    laptop.run("remote", "keep-here", str(A), str(B))
    said = " ".join(laptop.run("--quiet", "remote", "remove", "origin").stderr.split())
    assert f"warning: 2 conversations were kept here: jp-c{A} jp-c{B}" in said
    assert (
        "if the remote is added again, a sync sends them, unless you first run: reconcile remote keep-here ID" in said
    )
    laptop.run("remote", "add", str(bare))
    assert "kept here" not in laptop.run("remote", "remove", "origin").output


def test_an_accepted_remote_does_not_get_what_is_kept_here(new_laptop: Machine, bare: Path) -> None:
    new_laptop.run("remote", "keep-here", str(A))
    new_laptop.sync()
    git(bare, "update-ref", "-d", REF)
    new_laptop.run("sync", code=4)
    new_laptop.run("remote", "accept")
    new_laptop.sync()
    assert str(A) not in git(bare, "ls-tree", "-r", "--name-only", REF)
    assert json.loads(new_laptop.run("remote", "keep-here", "--json").stdout)["kept"] == [f"jp-c{A}"]


@pytest.mark.parametrize(("action", "at"), [("accept", "note"), ("remove origin", "forget")])
def test_a_kill_does_not_lose_what_is_kept_here(
    laptop: Machine, monkeypatch: pytest.MonkeyPatch, action: str, at: str
) -> None:
    """A sync would send it."""
    laptop.run("remote", "keep-here", str(A))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"reconcile_cli.remotes.actions.{at}", killed)
        with laptop.at_work():
            assert laptop.world.run(*laptop.sides, "remote", *action.split()).exit_code
    assert json.loads(laptop.run("remote", "keep-here", "--json").stdout)["kept"] == [f"jp-c{A}"]


def test_a_sync_does_not_forget_what_is_kept_here_meanwhile(laptop: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list waits for its end, and then tells that it has sent the conversation."""
    told, swap = list[str](), GitEngine.swap

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        told.append(laptop.run("remote", "keep-here", str(A + 5), code=5).output)
        return swap(self, expected, commit)

    laptop.write(A + 5)
    with monkeypatch.context() as patch:
        patch.setenv("RECONCILE_LOCK_TIMEOUT", "0.1")
        patch.setattr(GitEngine, "swap", late)
        laptop.run("sync")
    assert "another reconcile" in told[0]
    assert "origin has it from an earlier sync" in laptop.run("remote", "keep-here", str(A + 5)).output
    laptop.sync()
    assert json.loads(laptop.run("remote", "keep-here", "--json").stdout)["kept"] == [f"jp-c{A + 5}"]


def test_a_conversation_that_is_kept_here_is_shared_again_after_its_removal(laptop: Machine, desktop: Machine) -> None:
    quiet(laptop, desktop)
    laptop.run("remote", "keep-here", str(A), str(B))
    laptop.run("rm", str(A), "--yes")
    said = " ".join(laptop.run("remote", "share", f"jp-c{A}", str(B)).stderr.split())
    assert f"jp-c{A} is no longer kept here, but the store doesn't have it" in said
    assert f"talk (jp-c{B}) is sent by the next sync with origin" in said
    assert json.loads(laptop.run("remote", "keep-here", "--json").stdout)["kept"] == []
    assert "no conversation has the id" in laptop.run("remote", "share", f"jp-c{A}", code=2).output


@pytest.mark.parametrize("command", ["check", "accept", "remove origin", "forget --history --yes"])
def test_no_action_on_a_remote_meets_a_sync(laptop: Machine, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    told, swap = list[str](), GitEngine.swap

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        told.append(laptop.run("remote", *command.split(), code=5).output)
        return swap(self, expected, commit)

    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    with monkeypatch.context() as patch:
        patch.setenv("RECONCILE_LOCK_TIMEOUT", "0.1")
        patch.setattr(GitEngine, "swap", late)
        assert laptop.sync()["sent"]
    assert "another reconcile" in told[0]
    laptop.run("remote", *command.split())


@pytest.mark.parametrize("call", ["make_private_directory", "acquire"])
@pytest.mark.parametrize("command", ["sync", "remote check", "remote accept", "remote keep-here 17528832000"])
def test_a_remote_that_is_removed_before_an_action_begins_is_not_used(
    laptop: Machine, bare: Path, monkeypatch: pytest.MonkeyPatch, command: str, call: str
) -> None:
    """Either before it looks for the lock, or while it waits for that."""
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    tip, real, lock = git(bare, "rev-parse", REF), getattr(locks, call), laptop.state / "remotes" / "origin"

    def late(path: str, *args: float) -> object:
        if lock in (Path(path), Path(path).parent) and (lock / "remote.json").exists():
            monkeypatch.setattr(locks, call, real)
            laptop.run("remote", "remove", "origin")
        return real(path, *args)

    monkeypatch.setattr(locks, call, late)
    assert "origin was changed or removed meanwhile" in laptop.run(*command.split(), code=4).output
    assert git(bare, "rev-parse", REF) == tip
    assert json.loads(laptop.run("remote", "--json").stdout)["remotes"] == []
    laptop.run("remote", "add", str(bare))
    laptop.sync()


def test_a_conversation_that_was_sent_and_is_kept_here_stays_as_it_is_there(
    laptop: Machine, desktop: Machine, bare: Path
) -> None:
    told, id_ = laptop.run("remote", "keep-here", str(A), str(B)).output, f"jp-c{A}"
    way = " && ".join(
        f"reconcile {each} --workspace ~/project" for each in (f"remote share {id_}", f"rm {id_}", "sync")
    )
    words = (
        "is not sent again; origin has it from an earlier sync, and keeps that; to remove it there and on all machines"
    )
    assert f"(jp-c{A}) {words}: {way}" in told
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.run("local", str(A))
    laptop.sync()
    desktop.run("rm", str(B), "--yes")
    desktop.sync()
    found = laptop.sync()
    assert not any(found[key] for key in ("sent", "taken", "removed_here", "removed_there", "held"))
    assert laptop.directory(B).exists()
    desktop.sync()
    assert desktop.events(A) == 3
    laptop.run("rm", str(A), "--yes")
    assert not laptop.sync()["removed_there"]
    assert desktop.directory(A).exists()


def test_a_conversation_that_another_machine_has_made_private_while_it_was_kept_here_stays_private(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.run("remote", "keep-here", str(A))
    desktop.run("local", str(A))
    desktop.sync()
    laptop.sync()
    laptop.run("remote", "share", str(A))
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    assert not desktop.sync()["private_no_longer"]
    for machine in (laptop, desktop):
        shown = json.loads(machine.run("ls", "--json").stdout)["conversations"]
        assert [each["state"] for each in shown if each["conversation"] == f"jp-c{A}"] == ["local"]
    quiet(laptop, desktop)


def test_a_new_remote_without_encryption_names_the_commands_that_encrypt_it(tmp_path: Path, run: Run) -> None:
    one, bare = make_machine(tmp_path / "one", run), make_bare(tmp_path / "r.git")
    one.write(A)
    told = one.run("remote", "add", "--name", "box", str(bare)).stderr.splitlines()
    (hint,) = (line for line in told if "encrypt" in line)
    words, _, commands = hint.partition(": ")
    assert words == "to encrypt it, before the first sync"
    for command in commands.split(" && "):
        again = one.run(*command.removesuffix(" --workspace ~/project").split()[1:])
    assert "box: " in again.stderr
    assert "encrypted, for the key in " in again.stderr
    assert "to encrypt it" not in again.stderr
    other = str(make_bare(tmp_path / "other.git"))
    synced = one.run("sync", other).stderr
    assert "nothing of it is sent yet" not in synced, "the sync has sent everything"
    assert "1 of them private, in 3 files" in synced
    assert "this sync sends it, not encrypted" in synced
    assert "to encrypt what is sent, use another repository, an empty one: reconcile remote add --encrypt URL" in synced


@pytest.mark.parametrize("ways", [(), ("local",), ("rm",)], ids="-".join)
def test_adding_counts_what_would_be_sent(tmp_path: Path, run: Run, ways: tuple[str, ...]) -> None:
    """A conversation is private if the project doesn't have it, whether it was there before or not."""
    one, bare = make_machine(tmp_path / "one", run), make_bare(tmp_path / "r.git")
    for number in (A, B, C):
        one.write(number)
    one.run()
    one.run("project", str(A), str(B))
    for way in ways:
        one.run(way, str(B), "--yes")
    told = json.loads(one.run("remote", "add", "--json", str(bare)).stdout)
    total, private, files = {(): (3, 1, 9), ("local",): (3, 2, 9), ("rm",): (2, 1, 6)}[ways]
    assert [told[name] for name in ("conversations", "private", "files")] == [total, private, files]
    one.run("remote", "remove", "origin")
    said = one.run("remote", "add", str(bare)).stderr
    words = f"the store of this project has {total} conversations, {private} of them private, in {files} files ("
    assert words in said
    assert told["size"] == sum(map(len, one.contents.values()))
    assert "); nothing of it is sent yet" in said


READERS = "whoever can read that repository can read"
"""The words about a remote without encryption."""


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_one_line_says_who_can_read_a_remote(tmp_path: Path, run: Run, *, is_encrypted: bool) -> None:
    one, bare = make_machine(tmp_path / "one", run), make_bare(tmp_path / "r.git")
    one.write(A)
    added = one.run("remote", "add", *["--encrypt"] * is_encrypted, str(bare)).stderr.splitlines()
    assert [line for line in added if READERS in line] == (
        [] if is_encrypted else [f"origin: {bare}; {READERS} what a sync sends"]
    )
    for _ in range(2):
        checked, readers = one.run("remote", "check").stderr.splitlines()
        assert checked.endswith("can be read and written, and rejects a push that another machine's has overtaken")
        if is_encrypted:
            assert readers == (
                "origin is encrypted: only the keys that `reconcile remote key --workspace ~/project` lists can read it"
            )
        else:
            assert readers == f"origin is not encrypted: {READERS} all that is sent"
        one.sync()


def test_a_check_repeats_the_refusals_of_add(laptop: Machine, bare: Path, tmp_path: Path, run: Run) -> None:
    git(laptop.project, "init", "-q")
    git(laptop.project, "remote", "add", "upstream", str(bare))
    assert "is the remote 'upstream' of the project" in laptop.run("remote", "check", code=4).output
    git(laptop.project, "remote", "remove", "upstream")
    laptop.run("remote", "check")
    other = make_bare(tmp_path / "other.git")
    laptop.run("remote", "add", "--encrypt", "--name", "other", str(other))
    git(other, "update-ref", "-d", REF)
    desktop = make_machine(tmp_path / "desktop", run)
    desktop.write(A)
    desktop.sync(str(other))
    assert "nothing is sent to it" in laptop.run("remote", "check", "other", code=4).output


def test_a_remote_with_a_commit_of_the_project_is_refused(new_laptop: Machine, bare: Path, tmp_path: Path) -> None:
    """Whatever the spelling of its address: no program knows all of them."""
    git(new_laptop.project, "init", "-q")
    git(new_laptop.project, *AUTHOR, "commit", "-q", "--allow-empty", "-m", "code")
    code, own = make_bare(tmp_path / "code.git"), make_bare(tmp_path / "own.git")
    git(new_laptop.project, "push", "-q", str(code), "HEAD:refs/heads/topic")
    name = git(new_laptop.project, "rev-parse", "HEAD")[:10]
    problem = f"has a commit of the project ({name}), and private conversations would be sent to whoever can read that"
    for command in ("remote add", "sync", "pull"):
        assert f"error: {code} {problem}" in new_laptop.run(*command.split(), str(code), code=4).output
    assert git(code, "for-each-ref", "--format=%(refname)") == "refs/heads/topic"
    git(new_laptop.project, "push", "-q", str(bare), "HEAD:refs/heads/topic")
    for command in ("sync", "sync --dry-run", "push", "pull", "remote check"):
        assert f"error: {bare} {problem}" in new_laptop.run(*command.split(), code=4).output
    other = git(new_laptop.project, *AUTHOR, "commit-tree", "HEAD^{tree}", "-m", "another")
    objects = new_laptop.project / ".git" / "objects" / other[:2]
    git(new_laptop.project, "push", "-q", str(own), f"{other}:refs/heads/main")
    shutil.rmtree(objects)
    new_laptop.run("remote", "add", "--name", "own", str(own))
    assert len(new_laptop.sync("own")["sent"]) == 3, "it has something of the user's own"


def test_a_remote_that_was_removed_and_added_again_is_not_compared_yet(laptop: Machine, bare: Path) -> None:
    """Both have the same, which no sync has looked at: no number of conversations is true."""
    laptop.run("remote", "remove", "origin")
    laptop.run("remote", "add", str(bare))
    assert "remote origin: not compared yet, never synced" in laptop.run("status").output
    laptop.sync()
    assert "remote origin: 0 conversations to send, 0 to take" in laptop.run("status").output


def test_an_accepted_remote_that_was_encrypted_stays_so(tmp_path: Path, run: Run) -> None:
    bare = make_bare(tmp_path / "r.git")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    one.run("remote", "add", "--encrypt", str(bare))
    one.sync()
    other.state.parent.mkdir(parents=True)
    shutil.copy(one.state.parent / "age-key.txt", other.state.parent / "age-key.txt")
    other.sync(str(bare))
    shutil.rmtree(bare)
    make_bare(bare)
    third = make_machine(tmp_path / "third", run)
    third.write(B)
    third.sync(str(bare))
    other.run("remote", "accept")
    assert "nothing is sent to it" in other.run("sync", code=4).output


def key_of(seed: int = 1) -> str:
    return KINDS["GitHub classic token"](random.Random(seed))


def with_a_key(machine: Machine, number: int, seed: int = 1) -> None:
    """Have a conversation in the store go on with a secret."""
    path = machine.directory(number) / "events.json"
    new = event(2_000, f"export TOKEN={key_of(seed)}")
    write_json(path, [*json.loads(path.read_bytes()), new], LONG_AGO + 100 * SECOND)


def test_a_sync_tells_which_secrets_it_sends_unencrypted(new_laptop: Machine, bare: Path) -> None:
    set_key(new_laptop.directory(A), "title", "Deploy", LONG_AGO + SECOND)
    with_a_key(new_laptop, A)
    would = new_laptop.run("sync", "--dry-run").stderr
    assert "warning: 1 conversation with a secret would be sent unencrypted: Deploy (jp-c17528832000), event " in would
    assert would.endswith(
        "to keep it on this machine: reconcile remote keep-here jp-c17528832000 --workspace ~/project\n"
    )
    was = new_laptop.run("sync").stderr
    assert "warning: 1 conversation with a secret was sent unencrypted: Deploy (jp-c17528832000), event " in was
    assert was.endswith("; revoke the secret where it was made\n")
    assert key_of()[:6] not in would + was
    assert has(bare, key_of().encode())
    append(new_laptop.directory(A), 1, "b", LONG_AGO + 200 * SECOND)  # what is there already is not told again
    assert new_laptop.sync()["unencrypted_secrets"] == []


def test_a_sync_that_is_quiet_and_its_json_tell_of_sent_secrets(new_laptop: Machine) -> None:
    for seed, number in enumerate((A, B, C)):
        with_a_key(new_laptop, number, seed)
    (found, *rest) = new_laptop.sync("--dry-run")["unencrypted_secrets"]
    assert found["findings"][0].startswith("event ")
    assert len(rest) == 2
    shown = new_laptop.run("sync", "--quiet").stderr
    assert shown.startswith(
        "warning: 3 conversations with a secret were sent unencrypted: talk (jp-c17528832000), event "
    )
    assert new_laptop.sync()["unencrypted_secrets"] == []


def test_an_allowed_secret_and_one_that_is_encrypted_are_no_warning(new_laptop: Machine, bare: Path) -> None:
    with_a_key(new_laptop, A)
    new_laptop.run("resolve", f"jp-c{A}", "--allow-secrets")
    assert new_laptop.sync("--dry-run")["unencrypted_secrets"] == []
    with_a_key(new_laptop, B, 2)
    assert [each["id"] for each in new_laptop.sync("--dry-run")["unencrypted_secrets"]] == [f"jp-c{B}"]
    new_laptop.run("remote", "remove", "origin")
    shown = new_laptop.run("remote", "add", "--encrypt", str(bare)).stderr
    assert "with a secret" not in shown
    assert new_laptop.sync()["unencrypted_secrets"] == []
    assert not has(bare, key_of(2).encode())


def test_adding_a_remote_without_encryption_tells_of_the_secrets_in_the_store(new_laptop: Machine, bare: Path) -> None:
    new_laptop.run("remote", "remove", "origin")
    with_a_key(new_laptop, B)
    shown = new_laptop.run("remote", "add", str(bare)).stderr
    assert "warning: 1 conversation with a secret would be sent unencrypted: talk (jp-c17528832010), event " in shown
    new_laptop.run("remote", "keep-here", f"jp-c{B}")
    assert new_laptop.sync()["unencrypted_secrets"] == []


def test_a_list_of_allowed_secrets_that_cannot_be_read_blocks_no_sync(new_laptop: Machine) -> None:
    with_a_key(new_laptop, A)
    new_laptop.run("resolve", f"jp-c{A}", "--allow-secrets")
    (new_laptop.state / "allowed-secrets.jsonl").write_text("nonsense\n")
    assert [each["id"] for each in new_laptop.sync()["unencrypted_secrets"]] == [f"jp-c{A}"]


@pytest.mark.parametrize("words", [("accept", "a", "b"), ("share",), ("ls", "x"), ("forget", "--history", "a", "b")])
def test_wrong_words(laptop: Machine, words: tuple[str, ...]) -> None:
    assert "reconcile remote" in laptop.run("remote", *words, code=2).output


def test_the_line_of_a_remote_fits_the_terminal(laptop: Machine) -> None:
    laptop.sync()
    with laptop.at_work():
        _, shown = at_terminal(*laptop.sides, "status", columns=40)
    assert "\nremote origin: 0 conversations to send" in shown
    assert max(map(len, shown.partition("remote origin: ")[2].splitlines())) <= 40


@pytest.mark.long
@pytest.mark.parametrize("columns", [40, 80])
def test_no_line_of_a_sync_is_wider_than_the_terminal(laptop: Machine, desktop: Machine, columns: int) -> None:
    """Not that of a long title, nor the last one; only a command is never cut."""
    prepare(laptop, desktop)
    for number in (A, B):
        set_key(desktop.directory(number), "title", "a long title " * 9, LONG_AGO + 3 * SECOND)
    set_key(laptop.directory(B), "title", "another long title " * 9, LONG_AGO + 2 * SECOND)
    laptop.sync()
    for words, answers in ((("sync", "-n"), ""), (("sync",), "\n\n\n\n")):
        with desktop.at_work():
            code, shown = at_terminal(
                *desktop.sides, *words, answers=answers, columns=columns, environ={"NO_COLOR": "1"}
            )
        assert code == 0, shown
        report = shown.rpartition("[q]uit [t]: ")[2]
        lines = [line for line in report.splitlines() if "reconcile restore" not in line]
        assert max(map(len, lines)) <= columns, shown


# A saved plan of a sync: it is carried out as it is, or nothing changes


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def prepare(laptop: Machine, desktop: Machine) -> None:
    """There is something to send, to take, to fork and to remove."""
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.run("rm", str(C), "--yes")
    laptop.write(C + 1)
    laptop.sync()
    desktop.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    set_key(desktop.directory(B), "title", "mine", LONG_AGO + SECOND)


def save(machine: Machine, plan: Path, *args: str) -> Any:
    said = machine.run(*(args or ("sync",)), "--out", str(plan)).output
    assert f"plan saved; apply it: reconcile apply {plan}" in said
    return json.loads(plan.read_bytes())


def test_a_saved_plan_is_carried_out(laptop: Machine, desktop: Machine, plan: Path, bare: Path) -> None:
    prepare(laptop, desktop)
    before, tip = desktop.contents, git(bare, "rev-parse", REF)
    saved = save(desktop, plan)
    assert (desktop.contents, git(bare, "rev-parse", REF)) == (before, tip)
    shown = desktop.run("apply", str(plan), "--dry-run").output
    assert "dry run" in shown
    done = json.loads(desktop.run("apply", str(plan), "--json").stdout)
    for name in ("taken", "removed_here", "conflicts"):
        assert [each["id"] for each in done[name]] == [each["id"] for each in saved["report"][name]]
    assert done["forked"]
    assert done["sent"]
    desktop.run("apply", str(plan), code=4)
    quiet(laptop, desktop)


def test_a_remote_that_has_changed_refuses_it(laptop: Machine, desktop: Machine, plan: Path, bare: Path) -> None:
    prepare(laptop, desktop)
    save(desktop, plan)
    laptop.append(B, 1, "d", LONG_AGO + SECOND)
    laptop.sync()
    before, tip = desktop.contents, git(bare, "rev-parse", REF)
    said = desktop.run("apply", str(plan), code=4).output
    assert "the remote has changed since the plan was made, and nothing was sent" in said
    assert (desktop.contents, git(bare, "rev-parse", REF)) == (before, tip)


def test_a_store_that_has_changed_refuses_it(laptop: Machine, desktop: Machine, plan: Path, bare: Path) -> None:
    prepare(laptop, desktop)
    save(desktop, plan)
    set_key(desktop.directory(B), "title", "other", LONG_AGO + SECOND)
    before, tip = desktop.contents, git(bare, "rev-parse", REF)
    for args in ((), ("--dry-run",)):
        said = desktop.run("apply", str(plan), *args, code=4).output
        assert "the store has changed since the plan was made, and nothing was sent" in said
    assert (desktop.contents, git(bare, "rev-parse", REF)) == (before, tip)


@pytest.mark.long
def test_a_plan_has_the_options_of_its_command(laptop: Machine, desktop: Machine, plan: Path) -> None:
    prepare(laptop, desktop)
    save(desktop, plan, "pull", "--only", f"jp-c{A}")
    done = json.loads(desktop.run("apply", str(plan), "--json").stdout)
    assert not done["sent"]
    assert {each["id"] for each in done["taken"]} | {each["id"] for each in done["forked"]}
    assert desktop.directory(C).is_dir()
    quiet(desktop, laptop, desktop)


def test_a_plan_of_a_first_sync(new_laptop: Machine, plan: Path) -> None:
    save(new_laptop, plan)
    assert len(json.loads(new_laptop.run("apply", str(plan), "--json").stdout)["sent"]) == 3
    assert not new_laptop.sync()["sent"]


@pytest.mark.parametrize(
    ("old", "new"), [('"half": "BOTH"', '"half": "ALL"'), ('"steps": ', '"stepz": '), ("-plan/1", "-plan/9")]
)
def test_a_damaged_plan_is_refused(new_laptop: Machine, plan: Path, old: str, new: str) -> None:
    save(new_laptop, plan)
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new))
    assert "make the plan again with --out" in new_laptop.run("apply", str(plan), code=2).output


def test_a_plan_adds_no_remote(laptop: Machine, plan: Path, tmp_path: Path) -> None:
    other = make_bare(tmp_path / "other.git")
    text = json.dumps(save(laptop, plan) | {"remote": str(other)})
    plan.write_text(text)
    assert "no remote" in laptop.run("apply", str(plan), code=2).output
    assert git(other, "for-each-ref") == ""


def test_a_file_that_is_no_plan_is_not_overwritten(new_laptop: Machine, plan: Path) -> None:
    plan.write_text("notes")
    assert "is not a plan" in new_laptop.run("sync", "--out", str(plan), code=2).output
    assert plan.read_text() == "notes"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"half": "NEITHER"}, "half: String should match pattern"),
        ({"planned": {"commit": None, "steps": "x", "now_ns": 2**63}}, "planned.now_ns: Input should be less than"),
        ({"only": "jp-c1"}, "only: Input should be a valid list"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
    ],
)
def test_a_saved_plan_with_a_fault_is_refused_in_one_line(
    laptop: Machine, desktop: Machine, plan: Path, change: dict[str, object], fault: str
) -> None:
    prepare(laptop, desktop)
    saved = save(desktop, plan)
    plan.write_text(json.dumps(saved | change))
    assert f"{plan}: {fault}" in desktop.run("apply", str(plan), code=2).output

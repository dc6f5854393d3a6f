"""Remotes that are refused, or that have changed behind the back of a machine; and pushes that were interrupted."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from reconcile.remote.engine import Swap
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.sync import Sync
from tests.support.projects.damage import DAMAGES, lose_blob, lose_tree, overwrite_pack
from tests.support.projects.machines import Machine, git, make_bare, make_machine, quiet
from tests.support.projects.world import LONG_AGO, SECOND, set_key, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run

REF = "refs/reconcile/jp-ab1cd"
A, B, C = 17528832000, 17528832010, 17528832020


def refused(machine: Machine, *args: str, code: int = 4) -> str:
    return machine.run(*args, code=code).output


# Addresses


@pytest.mark.parametrize("url", ["--upload-pack=touch x", "ext::sh -c 'touch x'", "a::b", "a\nb"])
def test_an_address_that_runs_a_program_is_refused(laptop: Machine, url: str) -> None:
    assert "no address that is taken" in refused(laptop, "remote", "add", "--", url)


def test_the_projects_own_remote_is_refused(laptop: Machine, tmp_path: Path) -> None:
    origin = make_bare(tmp_path / "origin.git")
    git(laptop.project, "init", "--quiet")
    git(laptop.project, "remote", "add", "upstream", str(origin))
    for url in (str(origin), f"file://{origin}", f"{origin}/", str(laptop.project)):
        assert "private conversations would be sent" in refused(laptop, "remote", "add", url)
    git(laptop.project, "remote", "set-url", "upstream", "git@example.org:me/code.git")
    spellings = ("ssh://git@example.org/me/code", "ssh://git@example.org:22/me/code", "https://example.org/me/code.git")
    for url in spellings:
        assert "private conversations would be sent" in refused(laptop, "remote", "add", url)
    git(laptop.project, "remote", "set-url", "upstream", "https://example.org/them/code.git")
    git(laptop.project, "remote", "set-url", "--push", "upstream", "git@example.org:me/code.git")
    for url in spellings:
        assert "private conversations would be sent" in refused(laptop, "remote", "add", url)


def test_no_hook_and_no_variable_of_git_reaches_a_sync(
    laptop: Machine, desktop: Machine, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f'#!/bin/sh\ntouch "{tmp_path}/ran-$(basename "$PWD")"\n')
    hook.chmod(0o755)
    configuration = tmp_path / "gitconfig"
    configuration.write_text(f"[core]\n\thooksPath = {hook.parent}\n[commit]\n\tgpgSign = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    assert desktop.events(A) == 5
    assert [path.name for path in tmp_path.glob("ran-*")] == [f"ran-{bare.name}"], "the host is the user's own git"
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "objects").exists()


def test_an_address_has_one_name(laptop: Machine, bare: Path) -> None:
    text = refused(laptop, "remote", "add", str(bare))
    assert "is the remote origin already" in text
    assert "reconcile sync origin" in text


def test_one_of_several_remotes_has_to_be_named(laptop: Machine, tmp_path: Path) -> None:
    laptop.run("remote", "add", str(make_bare(tmp_path / "second.git")))
    text = refused(laptop, "sync", code=2)
    assert "there are several remotes: origin, remote2" in text
    assert "name one: reconcile sync origin" in text
    assert "one of: origin, remote2" in refused(laptop, "remote", "remove", "another", code=2)


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("push", "reconcile push origin"),
        ("pull --only 17528832000", "reconcile pull --only 17528832000 origin"),
        ("remote check", "reconcile remote check origin"),
        ("remote accept", "reconcile remote accept origin"),
        ("remote forget --history", "reconcile remote forget --history origin"),
        ("remote keep-here Diary", "reconcile remote keep-here Diary --name origin"),
        ("remote share 'My diary'", "reconcile remote share 'My diary' --name origin"),
        ("remote key", "reconcile remote key --name origin"),
        ("remote key add age1x", "reconcile remote key add age1x --name origin"),
        ("watch --sync", "RECONCILE_REMOTE=origin reconcile watch --sync"),
    ],
)
def test_the_hint_about_several_remotes_has_the_users_own_command(
    laptop: Machine, tmp_path: Path, command: str, hint: str
) -> None:
    """Another one would send the conversation that is to stay here."""
    laptop.run("remote", "add", str(make_bare(tmp_path / "second.git")))
    text = refused(laptop, *shlex.split(command), code=2)
    assert "there are several remotes: origin, remote2" in text
    assert text.splitlines()[-1] == f"hint: name one: {hint}{'' if '=' in hint else ' --workspace ~/project'}"


def test_suggested_commands_name_the_remote_if_there_are_several(laptop: Machine, tmp_path: Path) -> None:
    """A command without a name would fail, and its hint would name the first remote."""
    second = make_bare(tmp_path / "second.git")
    laptop.run("remote", "add", str(second))
    laptop.sync("remote2")
    told, id_ = laptop.run("remote", "keep-here", str(A), "--name", "remote2").output, f"jp-c{A}"
    words = f"remote share --name remote2 {id_}", f"rm {id_}", "sync remote2"
    assert told.endswith(": " + " && ".join(f"reconcile {each} --workspace ~/project" for each in words) + "\n")
    assert "reconcile remote keep-here ID --name remote2" in laptop.run("remote", "remove", "remote2").output
    laptop.run("remote", "add", str(second))
    laptop.sync("remote2")
    desktop = make_machine(tmp_path / "desktop", laptop.world.run)
    desktop.sync(str(second))
    desktop.write(A + 1)
    desktop.sync()
    laptop.write(A + 2)
    assert "hint: reconcile pull remote2 --workspace" in refused(laptop, "push", "remote2")
    assert "hint: reconcile sync remote2 --workspace" in refused(
        laptop, "remote", "forget", "--history", "remote2", "-y"
    )
    shutil.rmtree(second)
    make_bare(second)
    for command in ("sync", "sync --dry-run"):
        assert ": reconcile remote accept remote2 --workspace" in refused(laptop, *command.split(), "remote2")


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("check", "reconcile remote check origin"),
        ("accept", "reconcile remote accept origin"),
        ("forget --history", "reconcile remote forget --history origin"),
    ],
)
def test_most_actions_take_the_name_as_a_word(laptop: Machine, command: str, hint: str) -> None:
    error, shown = refused(laptop, "remote", *command.split(), "--name", "origin", code=2).splitlines()
    assert error == f"error: reconcile remote {command.split(maxsplit=1)[0]} takes the name without --name"
    assert shown == f"hint: {hint}"
    assert "ls takes no --name" in refused(laptop, "remote", "--name", "origin", code=2)


@pytest.mark.parametrize("command", ["sync", "pull", "push", "sync -n"])
def test_a_word_is_no_address(laptop: Machine, command: str) -> None:
    error, hint = refused(laptop, *command.split(), "nosuch", code=2).splitlines()
    assert error == "error: no remote is called nosuch"
    assert hint == "hint: one of: origin"


@pytest.mark.parametrize("command", ["sync", "pull", "push", "remote check"])
def test_without_a_remote_a_command_says_how_to_add_one(tmp_path: Path, run: Run, command: str) -> None:
    machine = make_machine(tmp_path / "one", run)
    error, hint = refused(machine, *command.split(), code=2).splitlines()
    assert error == "error: no remote is known for this store"
    assert hint == "hint: add one, a private git repository of your own: reconcile remote add URL --workspace ~/project"


def test_an_address_without_a_repository_is_refused(laptop: Machine, tmp_path: Path) -> None:
    assert "can't read it" in refused(laptop, "remote", "add", str(tmp_path / "nothing.git"), code=1)
    assert not (laptop.state / "remotes" / "remote2").exists()


def test_a_host_that_takes_every_write_is_refused(
    laptop: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = GitEngine._push
    monkeypatch.setattr(GitEngine, "_push", lambda self, expected, what: push(self, *_forced(self, expected, what)))
    another = make_bare(tmp_path / "another.git")
    assert "did not refuse" in refused(laptop, "remote", "add", str(another))


def _forced(engine: GitEngine, expected: str, what: str) -> tuple[str, str]:
    newest = engine._newest() or ""
    return newest, what if not expected or not newest else f"+{what}"


_ONLY_BRANCHES = """#!/bin/sh
while read before after ref; do
    case $ref in refs/heads/*) ;; *) echo "only branches here" >&2; exit 1 ;; esac
done
"""


@pytest.mark.long
def test_a_host_that_takes_only_branches_gets_one(laptop: Machine, desktop: Machine, tmp_path: Path, run: Run) -> None:
    another = make_bare(tmp_path / "another.git")
    hook = another / "hooks" / "pre-receive"
    hook.write_text(_ONLY_BRANCHES)
    hook.chmod(0o755)
    output = laptop.run("remote", "add", "--name", "second", str(another)).output
    assert "in a branch of the repository: reconcile/jp-ab1cd" in output
    laptop.run("sync", "second")
    desktop.run("remote", "add", "--name", "second", str(another))
    desktop.sync("second")
    assert git(another, "for-each-ref", "--format=%(refname)") == "refs/heads/reconcile/jp-ab1cd"
    # A machine that is added later uses the branch, although the host takes other refs now.
    hook.unlink()
    server = make_machine(tmp_path / "server", run)
    server.sync(str(another))
    assert server.contents == laptop.contents
    assert git(another, "for-each-ref", "--format=%(refname)") == "refs/heads/reconcile/jp-ab1cd"


def test_a_host_that_takes_nothing_is_refused_with_its_first_words(laptop: Machine, tmp_path: Path) -> None:
    another = make_bare(tmp_path / "another.git")
    hook = another / "hooks" / "pre-receive"
    hook.write_text('#!/bin/sh\nread before after ref; echo "closed: $ref" >&2; exit 1\n')
    hook.chmod(0o755)
    problem = refused(laptop, "remote", "add", "--name", "second", str(another))
    assert "git can't write to it: remote: closed: refs/" in problem
    assert not (laptop.state / "remotes" / "second").exists()


@pytest.mark.parametrize("place", ["reconcile.toml", ".reconcile.toml", ".config/reconcile.toml", ".jp/reconcile.toml"])
def test_a_project_cannot_name_a_remote(tmp_path: Path, run: Run, bare: Path, place: str) -> None:
    """No file of a project is a configuration, and the user's has no key for a remote."""
    machine = make_machine(tmp_path / "new", run)
    machine.write(A)
    remote = f'remote = "{bare}"\n'
    (machine.project / place).parent.mkdir(parents=True, exist_ok=True)
    (machine.project / place).write_text(remote)
    git(machine.project, "init", "-q")
    git(machine.project, "config", "remote.origin.url", str(bare))
    assert "no remote is known for this store" in machine.run("sync", code=2).output
    assert json.loads(machine.run("remote", "--json").stdout)["remotes"] == []
    assert not (machine.state / "remotes").exists()
    assert git(bare, "for-each-ref") == ""
    own = machine.home / "config" / "reconcile" / "reconcile.toml"
    own.parent.mkdir(parents=True)
    own.write_text(remote)
    assert "unknown key" in machine.run("status", code=2).output


# Remotes that have changed


def test_a_remote_that_was_set_back_is_filled_again(laptop: Machine, desktop: Machine, bare: Path) -> None:
    before = git(bare, "rev-parse", REF)
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.run("rm", str(B), "--yes")
    laptop.sync()
    git(bare, "update-ref", REF, before)
    laptop.append(C, 1, "b", LONG_AGO + SECOND)
    assert "the remote was set back to an earlier commit" in " ".join(laptop.run("sync", "--dry-run").stdout.split())
    assert "a sync sends what is missing there" in " ".join(laptop.run("pull").stdout.split())
    assert "this sync has sent what was missing there" in " ".join(laptop.run("sync").stdout.split())
    assert laptop.events(A) == 5
    assert not desktop.sync()["set_back"]
    assert desktop.contents == laptop.contents
    assert not laptop.sync()["set_back"]


@pytest.mark.parametrize("change", ["emptied", "replaced", "unrelated"])
def test_another_remote_at_the_address_is_held(
    laptop: Machine, desktop: Machine, bare: Path, tmp_path: Path, run: Run, change: str
) -> None:
    if change == "emptied":
        git(bare, "update-ref", "-d", REF)
    else:
        shutil.rmtree(bare)
        make_bare(bare)
        third = make_machine(tmp_path / "third", run)
        third.write(A + 5)
        third.sync(str(bare))
    if change == "unrelated":
        shutil.rmtree(laptop.state / "remotes" / "origin" / "mirror")
    before = laptop.contents
    assert "another history" in refused(laptop, "sync")
    assert laptop.contents == before
    laptop.run("remote", "accept")
    laptop.sync()
    assert before.items() <= laptop.contents.items()
    desktop.run("remote", "accept", "origin")
    desktop.sync()
    assert desktop.contents == laptop.contents


@pytest.mark.long
def test_an_accepted_remote_removes_nothing(laptop: Machine, desktop: Machine, bare: Path) -> None:
    """It was restored from a time at which a conversation was removed, that is there again."""
    laptop.run("rm", str(A), "--yes")
    run = json.loads(laptop.run("log", "--json").stdout)["runs"][0]["id"]
    quiet(laptop, desktop)
    tree = git(bare, "rev-parse", f"{REF}^{{tree}}")
    laptop.run("restore", f"jp-c{A}@{run}")
    quiet(laptop, desktop)
    git(bare, "update-ref", REF, git(bare, "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", tree, "-m", "x"))
    for machine in (laptop, desktop):
        assert "another history" in refused(machine, "sync")
        told = "remote origin: the last sync was refused (the remote is empty, or has another history than the one"
        assert told in " ".join(machine.run("status").output.split())
        machine.run("remote", "accept")
        assert "refused" not in machine.run("status").output
        before = machine.contents
        assert not machine.sync()["removed_here"]
        assert before.items() <= machine.contents.items()
    quiet(laptop, desktop)
    desktop.run("rm", str(A), "--yes")
    desktop.sync()
    assert [each["id"] for each in laptop.sync()["removed_here"]] == [f"jp-c{A}"]


def test_a_newer_format_is_refused(laptop: Machine, bare: Path) -> None:
    rewrite(bare, {"format": json.dumps({"version": 3, "store": "jp-ab1cd", "id": "x"}).encode()})
    assert "update reconcile" in refused(laptop, "sync")


def test_the_store_of_another_project_is_refused(laptop: Machine, bare: Path) -> None:
    rewrite(bare, {"format": json.dumps({"version": 1, "store": "jp-zzzzz", "id": "x"}).encode()})
    assert "is about jp-zzzzz" in refused(laptop, "sync")


def rewrite(bare: Path, files: dict[str, bytes], mode: str = "100644") -> None:
    """Commit files on the remote's tip, whatever their names; git itself may refuse some."""
    stream = [f"commit {REF}\ncommitter x <x@y> 1 +0000\ndata 1\nx\nfrom {REF}^0\n".encode()]
    for path, content in files.items():
        stream += [f'M {mode} inline "{path}"\ndata {len(content)}\n'.encode(), content, b"\n"]
    git(bare, "fast-import", "--quiet", "--force", stdin=b"".join(stream))


def record(number: int, name: str, file: str, content: bytes = b"{}") -> dict[str, bytes]:
    top = f"c/{str(number)[-2:]}/{str(number)[-4:-2]}/jp-c{number}"
    described = {"digest": "0" * 32, "size": len(content), "mtime_ns": 1}
    found = {"id": f"jp-c{number}", "name": name, "files": {file: described}}
    slot = {"metadata.json": "m", "events.json": "e"}.get(file, f"x/{file}")
    return {f"{top}/r": json.dumps(found).encode(), f"{top}/{slot}": content}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../17528839990-x", "metadata.json"),
        ("17528839990-x/../../y", "metadata.json"),
        ("17528839990-x", "a/../../../evil"),
        ("17528839990-x", ".git/config"),
        ("17528839990-x", "/etc/x"),
        ("17528839991-x", "metadata.json"),
        ("", "metadata.json"),
        ("17528839990-" + "x" * 300, "metadata.json"),
        ("17528839990-x", "metadata.json"),
    ],
    ids=["above", "dots", "above-file", "git", "absolute", "other-id", "empty", "long", "wrong-digest"],
)
def test_a_hostile_record_is_left_out(laptop: Machine, bare: Path, name: str, file: str) -> None:
    time.sleep(0.1)
    laptop.sync()  # the next one could go on from it
    files = record(17528839990, name, file)
    rewrite(
        bare,
        {
            path: content
            for path, content in files.items()
            if path.endswith("/r") or (".." not in path and ".git" not in path and "//" not in path)
        },
    )
    before = laptop.contents
    time.sleep(0.1)
    laptop.sync(code=4)
    found = laptop.sync(code=4)
    assert "17528839990" in found["held"][0]
    assert laptop.contents == before
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    assert len(laptop.sync(code=4)["sent"]) == 1
    assert "jp-c17528839990/r" in git(bare, "ls-tree", "-r", "--name-only", REF)


def test_a_record_and_a_format_of_any_depth_are_refused(laptop: Machine, bare: Path) -> None:
    deep = b"[" * 200_000
    rewrite(bare, {next(path for path in record(17528839990, "x", "") if path.endswith("/r")): b'{"x": ' + deep})
    assert "nested too deeply" in laptop.sync(code=4)["held"][0]
    rewrite(bare, {"format": b'{"version": ' + deep})
    assert "`format` can't be read" in laptop.run("sync", code=4).output


def test_a_record_of_any_size_is_left_out(laptop: Machine, bare: Path) -> None:
    files = record(17528839990, "17528839990-x", "metadata.json")
    (name,) = (path for path in files if path.endswith("/r"))
    files[name] = files[name].replace(b'"size": 2', b'"size": 9000000000000000000')
    rewrite(bare, files)
    assert "larger" in laptop.sync(code=4)["held"][0]


@pytest.mark.parametrize("mode", ["120000", "100755"])
def test_a_tree_with_another_mode_is_refused(laptop: Machine, bare: Path, mode: str) -> None:
    rewrite(bare, {"c/x": b"/etc/passwd"}, mode)
    before = laptop.contents
    assert f"has the mode {mode}" in refused(laptop, "sync")
    assert laptop.contents == before


def test_a_tree_that_git_refuses_moves_nothing(laptop: Machine, bare: Path) -> None:
    blob = git(bare, "hash-object", "-w", "--stdin", stdin=b"x")
    tree = git(
        bare, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=b"100644 ..\0" + bytes.fromhex(blob)
    )
    commit = git(bare, "commit-tree", tree, "-p", REF, "-m", "x")
    git(bare, "update-ref", REF, commit)
    before = laptop.contents
    assert "can't fetch" in refused(laptop, "sync", code=1)
    assert laptop.contents == before


# Races and interruptions


class Killed(BaseException):
    """The end of the process."""


def die(*_: object) -> NoReturn:
    raise Killed


def after(real: Callable[..., object]) -> Callable[..., object]:
    def done(*args: object) -> NoReturn:
        real(*args)
        raise Killed

    return done


@pytest.mark.long
def test_a_race_that_is_lost_begins_again(laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    swap, races = GitEngine.swap, iter(range(2))

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if str(desktop.home) in self.mirror and next(races, None) is not None:
            laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
            laptop.sync()
        return swap(self, expected, commit)

    desktop.append(A, 1, "c", LONG_AGO + 30 * SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(GitEngine, "swap", late)
        found = desktop.sync()
    assert len(found["forked"]) == 1
    laptop.sync()
    assert not desktop.sync()["taken"]
    assert desktop.contents == laptop.contents
    assert sum(1 for _ in laptop.store.glob("*/events.json")) == 4


def test_two_machines_that_send_first_at_once(
    new_laptop: Machine, bare: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_machine(tmp_path / "desktop", run)
    other.write(A + 5)
    swap, races = GitEngine.swap, iter(range(1))

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if str(other.home) in self.mirror and next(races, None) is not None:
            new_laptop.sync()
        return swap(self, expected, commit)

    with monkeypatch.context() as patch:
        patch.setattr(GitEngine, "swap", late)
        found = other.sync(str(bare))
    assert len(found["taken"]) == 3
    assert found["interrupted_push"] is None
    new_laptop.sync()
    assert new_laptop.contents == other.contents


@pytest.mark.long
@pytest.mark.parametrize("moment", ["written", "before", "after", "noted"])
@pytest.mark.parametrize("other", [False, True], ids=["alone", "another"])
def test_a_push_that_was_killed(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch, moment: str, other: bool
) -> None:
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.run("rm", str(B), "--yes")
    with monkeypatch.context() as patch:
        if moment == "written":
            patch.setattr(GitEngine, "write", after(GitEngine.write))
        elif moment == "before":
            patch.setattr(GitEngine, "swap", die)
        elif moment == "after":
            patch.setattr(GitEngine, "swap", after(GitEngine.swap))
        else:
            patch.setattr("reconcile.remote.sync.Sync._won", die)
        with pytest.raises(Killed), laptop.at_work():
            laptop.world.run("--workspace", laptop.project, "sync")
    if other:
        desktop.append(A, 2, "c", LONG_AGO + 30 * SECOND)
        desktop.append(C, 1, "c", LONG_AGO + 30 * SECOND)
        desktop.sync()
    else:
        laptop.append(A, 1, "d", LONG_AGO + 90 * SECOND)
    for machine in (laptop, desktop, laptop, desktop):
        machine.sync()
    assert laptop.contents == desktop.contents
    assert not list(laptop.store.glob(f"{B}*"))
    assert sum(1 for _ in laptop.store.glob("*/events.json")) == (3 if other else 2)
    assert not desktop.sync()["sent"]


@pytest.mark.long
def test_a_push_that_arrives_after_the_next_sync_was_killed_takes_nothing_back(
    laptop: Machine, desktop: Machine, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[str] = []

    def is_silent(_self: GitEngine, _expected: str | None, commit: str) -> Swap:
        late.append(commit)
        return Swap.UNKNOWN

    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(GitEngine, "swap", is_silent)
        refused(laptop, "sync", code=1)
    laptop.append(A, 1, "c", LONG_AGO + 90 * SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(GitEngine, "write", die)
        with pytest.raises(Killed), laptop.at_work():
            laptop.world.run("--workspace", laptop.project, "sync")
    git(laptop.state / "remotes" / "origin" / "mirror", "push", "--quiet", str(bare), f"{late[0]}:{REF}")
    laptop.sync()
    assert laptop.events(A) == 5
    desktop.sync()
    quiet(laptop, desktop)


def test_no_answer_to_a_push_is_told_by_the_next_sync(laptop: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    with monkeypatch.context() as patch:
        swap = GitEngine.swap
        patch.setattr(GitEngine, "swap", lambda *args: (swap(*args), Swap.UNKNOWN)[1])
        assert "it may have it, or not" in refused(laptop, "sync", code=1)
    found = laptop.sync()
    assert found["interrupted_push"] == "arrived"
    assert not found["sent"]
    assert not found["taken"]


def test_both_reports_tell_of_an_edit_that_brings_a_removed_conversation_back(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    desktop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    words = "another machine has removed it; it was changed here since"
    assert words in desktop.run("sync", "--dry-run").output
    assert words in desktop.run("sync").output
    found = laptop.sync("--dry-run")
    assert found["returned"] == [entry["id"] for entry in found["taken"]] == [f"jp-c{A}"]
    assert "it was removed here; another machine has changed or restored it since" in laptop.run("sync").output
    laptop.append(A, 1, "c", LONG_AGO + 90 * SECOND)
    assert laptop.sync()["returned"] == desktop.sync()["returned"] == []


def test_yes_allows_the_undo_of_a_sync_to_remove_many_directories(laptop: Machine, desktop: Machine) -> None:
    for number in range(8):
        laptop.write(A + 1000 + number)
    laptop.sync()
    desktop.sync()
    blocked = desktop.run("undo", code=4).output
    assert "this or --yes allows it" in blocked
    assert "Plan: 8 to remove from the store." in desktop.run("undo", "--yes", "--dry-run").output
    assert "Done: 8 removed from the store." in desktop.run("undo", "--yes").output


def test_a_push_that_arrives_during_the_next_sync_has_arrived(
    laptop: Machine, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    swap, late = GitEngine.swap, list[str]()

    def fall_silent(*args: Any) -> Swap:
        late.append(args[2])
        return Swap.UNKNOWN

    with monkeypatch.context() as patch:
        patch.setattr(GitEngine, "swap", fall_silent)
        refused(laptop, "sync", code=1)
    time.sleep(1.1)  # git's times have seconds: the next commit is another one
    mirror = laptop.state / "remotes" / "origin" / "mirror"

    def swap_after_it(*args: Any) -> Swap:
        git(mirror, "push", "--quiet", str(bare), f"{late[0]}:{REF}")
        return swap(*args)

    with monkeypatch.context() as patch:
        patch.setattr(GitEngine, "swap", swap_after_it)
        found = laptop.sync()
    assert found["interrupted_push"] == "arrived"
    assert not found["sent"]


def test_an_unreachable_remote_changes_nothing(laptop: Machine, bare: Path) -> None:
    bare.rename(bare.with_name("away"))
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    assert "can't read it" in refused(laptop, "sync", code=1)
    assert "can't read it" in refused(laptop, "remote", "check", code=1)
    bare.with_name("away").rename(bare)
    assert len(laptop.sync()["sent"]) == 1


def test_a_host_that_dies_during_a_push_is_unreachable(laptop: Machine, bare: Path) -> None:
    hook = bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")
    hook.chmod(0o755)
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    assert "the push broke off: fatal: the remote end hung up" in refused(laptop, "sync", code=1)
    hook.unlink()
    assert len(laptop.sync()["sent"]) == 1


def test_a_push_that_the_host_refuses_is_not_interrupted(laptop: Machine, bare: Path) -> None:
    hook = bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho too large >&2\nexit 1\n")
    hook.chmod(0o755)
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    before, as_json = laptop.run("log").stdout, laptop.run("log", "--json").stdout
    assert "the host refused the push: remote: too large" in refused(laptop, "sync", code=4)
    refused(laptop, "sync", code=4)
    assert laptop.run("log").stdout == before, "it has changed nothing, on neither side"
    assert laptop.run("log", "--json").stdout == as_json
    set_key(laptop.directory(A), "title", "other", LONG_AGO + 60 * SECOND)
    refused(laptop, "sync", code=4)
    (log,) = laptop.run("log", "-n", "1").stdout.splitlines()
    assert "1 renamed, 3 skipped" in log, "a directory of the store was renamed; it was not sent"
    refused(laptop, "sync", code=4)
    assert laptop.run("log", "-n", "1").stdout.splitlines() == [log]
    hook.unlink()
    found = laptop.sync()
    assert len(found["sent"]) == 1
    assert found["interrupted_push"] is None


@pytest.mark.long
@pytest.mark.parametrize("lost", ["mirror", "tree"])
def test_a_cache_that_was_lost_is_made_again(laptop: Machine, desktop: Machine, lost: str) -> None:
    shutil.rmtree(laptop.state / "remotes" / "origin" / lost)
    desktop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    desktop.sync()
    laptop.sync()
    assert laptop.contents == desktop.contents


@pytest.mark.long
def test_a_cache_that_was_changed_says_nothing(laptop: Machine, desktop: Machine) -> None:
    for path in (laptop.state / "remotes" / "origin" / "tree").rglob("events.json"):
        path.write_text("[]")
    found = laptop.sync()
    assert not found["sent"]
    assert not found["taken"]


@pytest.mark.long
def test_a_wrong_clock_wins_no_conflict_for_ever(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 1, "b", 4_000_000_000 * SECOND)
    laptop.sync()
    desktop.sync()
    assert (desktop.directory(A) / "events.json").stat().st_mtime_ns < 3_900_000_000 * SECOND


def test_a_run_of_the_checkout_leaves_the_remote_alone(laptop: Machine, desktop: Machine) -> None:
    laptop.run()
    assert "mirror" not in laptop.run("checkouts").output
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    desktop.sync()
    assert "remote origin" in desktop.run("log").output


def test_an_undo_of_a_sync_that_only_sent_says_that_it_takes_nothing_back(laptop: Machine, bare: Path) -> None:
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.sync()
    before, tip = laptop.contents, git(bare, "rev-parse", REF)
    run_id = laptop.run("log").output.split()[0]
    done = laptop.run("undo", run_id).output
    assert "Nothing to undo in the store. An undo takes nothing back that was sent to origin." in " ".join(done.split())
    assert (laptop.contents, git(bare, "rev-parse", REF)) == (before, tip)


@pytest.mark.long
def test_an_undo_of_a_sync_changes_this_machine_alone(laptop: Machine, desktop: Machine, bare: Path) -> None:
    before, new = desktop.contents, 17528832030
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.write(new)
    laptop.sync()
    desktop.sync()
    taken, tip = desktop.contents, git(bare, "rev-parse", REF)
    desktop.run("undo", "--dry-run")
    assert desktop.contents == taken
    done = desktop.run("undo").output
    assert "origin keeps what it has" in done
    assert ": reconcile sync (2 taken)\n" in done
    assert "(flat)" not in done
    assert desktop.contents == before
    undone, of = desktop.run("log").output.splitlines()[:2]
    assert "undid " in undone
    assert "taken" not in undone
    assert "undone by" in of
    assert "in part" not in undone + of
    for _ in range(2):
        assert not any(desktop.sync()[name] for name in ("sent", "taken", "removed_here", "removed_there", "held"))
    assert desktop.contents == before
    laptop.sync()
    assert git(bare, "rev-parse", REF) == tip
    assert laptop.contents == taken
    # What a machine changes since is taken.
    laptop.append(new, 1, "c", LONG_AGO + 2 * SECOND)
    laptop.sync()
    assert [each["id"] for each in desktop.sync()["taken"]] == [f"jp-c{new}"]
    assert desktop.events(A) == 3


@pytest.mark.long
def test_a_dry_run_names_no_id_of_what_the_sync_would_create(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    desktop.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    laptop.sync()
    told = desktop.run("sync", "--dry-run").output
    assert "\nto fork and send  [diverged] talk  (new)\n" in told


@pytest.mark.long
def test_a_sync_is_redone(laptop: Machine, desktop: Machine) -> None:
    before = desktop.contents
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.write(17528832030)
    laptop.sync()
    desktop.sync()
    taken = desktop.contents
    desktop.run("undo")
    assert desktop.contents == before
    assert "redo" in desktop.run("redo").output
    assert desktop.contents == taken
    found = desktop.sync()
    assert not any(found[name] for name in ("sent", "taken", "removed_here", "removed_there", "held"))


@pytest.mark.long
def test_a_removal_that_a_sync_took_is_undone_here(laptop: Machine, desktop: Machine) -> None:
    laptop.run("rm", str(B), "--yes")
    laptop.sync()
    assert desktop.sync()["removed_here"]
    desktop.run("undo")
    assert desktop.events(B) == 3
    found = desktop.sync()
    assert not any(found[name] for name in ("sent", "removed_here", "removed_there", "held"))
    assert desktop.events(B) == 3
    desktop.append(B, 1, "c", LONG_AGO + SECOND)
    assert desktop.sync()["sent"]
    laptop.sync()
    assert laptop.events(B) == 4


@pytest.mark.long
@pytest.mark.parametrize("method", ["_won", "_apply"])
def test_an_undo_of_a_sync_that_was_killed_is_not_sent(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.write(17528832030)
    laptop.sync()
    desktop.sync()
    taken = desktop.contents
    carry_out = getattr(Sync, method)

    def killed(self: Sync, *args: Any) -> NoReturn:
        if method == "_apply":
            carry_out(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Sync, method, killed)
        desktop.run("undo", code=1)
    assert desktop.events(A) == 3
    assert not any(desktop.sync()[name] for name in ("sent", "taken", "removed_there"))
    laptop.sync()
    assert laptop.contents == taken


def test_an_undo_of_a_sync_leaves_what_was_changed_since(laptop: Machine, desktop: Machine) -> None:
    desktop.run("project", str(A), "--yes")
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    published = json.loads(desktop.run("log", "--json").stdout)["runs"][1]["id"]
    assert "changed it since; undo that first" in desktop.run("undo", published, code=4).output
    desktop.append(A, 1, "d", LONG_AGO + 2 * SECOND)
    assert "since then: " in desktop.run("undo", code=4).output
    assert desktop.events(A) == 6


def test_an_undo_goes_back_from_the_newest_run_whether_it_was_a_sync(laptop: Machine, desktop: Machine) -> None:
    desktop.run("project", str(A), "--yes")
    laptop.append(B, 2, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    assert "undo of" in desktop.run("undo").output
    assert desktop.events(B) == 3
    assert "reaches further back" in desktop.run("undo", "--yes").output
    assert not list((desktop.project / ".jp").rglob("events.json"))


def test_a_sync_of_a_store_with_two_remotes_is_not_undone(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.run("remote", "add", "--name", "second", str(make_bare(tmp_path / "second.git")))
    desktop.sync("origin")
    said = desktop.run("undo", code=4).output
    assert "the store has other remotes, too" in said
    run = json.loads(desktop.run("log", "--json").stdout)["runs"][0]["id"]
    assert f"reconcile restore ID@{run}" in said
    desktop.run("restore", f"jp-c{A}@{run}")
    assert desktop.events(A) == 3


@pytest.mark.long
def test_an_undo_of_a_sync_that_has_also_removed_names_the_command_for_the_removals(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.run("rm", str(A + 10), "--yes")
    laptop.sync()
    before = desktop.contents
    desktop.sync()
    taken, removed = (run["id"] for run in json.loads(desktop.run("log", "--json").stdout)["runs"][:2])
    dry = desktop.run("undo", "--dry-run").stderr
    assert f"the sync has also removed conversations, in the run {removed}: that is not undone with it" in dry
    assert "too:" not in dry
    undone = desktop.run("undo").stderr
    assert undone.endswith(f"\nundo the removals too: reconcile undo {removed} --workspace ~/project\n")
    assert "the sync has also" not in desktop.run("undo", removed).stderr
    assert desktop.contents == before
    found = desktop.sync()
    assert not any(found[name] for name in ("sent", "taken", "removed_here", "removed_there", "held"))
    desktop.run("redo")
    desktop.run("redo", "--yes")
    assert desktop.contents == laptop.contents
    assert f"removals too: reconcile undo {removed}" in desktop.run("undo", taken).stderr
    quiet(laptop, desktop, equal=False)


def test_a_redo_is_proposed_for_the_run_that_changed_what_is_left_alone(laptop: Machine, desktop: Machine) -> None:
    desktop.run("project", str(A), "--yes")
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    desktop.run()
    run = json.loads(desktop.run("log", "--json").stdout)["runs"][0]["id"]
    desktop.run("undo")
    laptop.append(A + 10, 2, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    desktop.run("undo")
    said = desktop.run("status").output
    assert f"repeats the run {run}, which was undone (1)" in said
    command = said.splitlines()[said.splitlines().index(f"      repeats the run {run}, which was undone (1)") - 1]
    desktop.run(*command.partition(" --workspace")[0].split()[1:])
    assert "left alone" not in desktop.run("status").output
    assert len(list((desktop.project / ".jp").rglob("events.json"))) == 1


def test_an_undo_goes_back_over_a_sync_that_only_sent(laptop: Machine) -> None:
    laptop.run("project", str(A))
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    assert "jp-c" in laptop.run("undo", "--dry-run").output


@pytest.mark.long
def test_a_sync_says_that_the_clock_of_another_machine_is_ahead(laptop: Machine, desktop: Machine) -> None:
    """Until its time has come, that would win against every later edit."""
    laptop.append(A, 1, "b", time.time_ns() + 49 * 3600 * SECOND)
    laptop.append(A + 10, 1, "b", time.time_ns() + 3600 * SECOND)
    laptop.append(A + 20, 1, "b", time.time_ns() + 200 * SECOND)
    assert laptop.sync()["clock_ahead"] == []
    words = (
        f"talk (jp-c{A}) and 1 more: the clock of the machine that sent them is at least 2 days ahead; "
        "this sync's time counts instead, and wins no conflict"
    )
    for args in (("sync", "-n"), ("pull", "--quiet")):
        said = desktop.run(*args)
        assert words in " ".join((said.stderr if "--quiet" in args else said.stdout).split())
    now_ns = time.time_ns()
    assert all(file.stat().st_mtime_ns <= now_ns + 300 * SECOND for file in desktop.store.rglob("*.json"))
    assert words not in desktop.run("sync").output, "once for each version"
    laptop.append(A, 1, "c", now_ns + 3 * 3600 * SECOND)
    laptop.sync()
    (found,) = desktop.sync()["clock_ahead"]
    assert (found["id"], found["title"]) == (f"jp-c{A}", "talk")
    assert 3 * 3600 - 120 < found["seconds"] <= 3 * 3600
    quiet(laptop, desktop)


@pytest.mark.long
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_version_with_the_time_of_a_wrong_clock_wins_no_conflict(
    laptop: Machine, desktop: Machine, is_stream: bool
) -> None:
    """It counts as written now, which is later than each edit of this machine."""
    ahead_ns = time.time_ns() + 3 * 3600 * SECOND
    if is_stream:
        laptop.append(A, 1, "b", ahead_ns)
        desktop.append(A, 2, "c", LONG_AGO + SECOND)
    else:
        set_key(laptop.directory(A), "title", "Theirs", ahead_ns)
        set_key(desktop.directory(A), "title", "Mine", LONG_AGO + SECOND)
    laptop.sync()
    said = " ".join(desktop.run("sync", "--dry-run").stdout.split())
    assert "takes this machine's and prints the command" in said
    plan = desktop.home / "plan"
    desktop.run("sync", "--out", str(plan))
    said = " ".join(desktop.run("apply", str(plan)).stdout.split())
    assert "this sync's time counts instead, and wins no conflict" in said
    assert "this machine's is taken; " in said
    assert desktop.events(A) == (5 if is_stream else 3)
    quiet(laptop, desktop)
    assert len(list(laptop.store.iterdir())) == (4 if is_stream else 3)
    if not is_stream:
        assert json.loads((laptop.directory(A) / "metadata.json").read_bytes())["title"] == "Mine"


@pytest.mark.long
def test_a_sync_says_which_title_of_this_machine_is_replaced(laptop: Machine, desktop: Machine) -> None:
    set_key(laptop.directory(A), "title", "New", LONG_AGO + SECOND)
    set_key(laptop.directory(A + 10), "pinned_at", "2026-01-01T00:00:00Z", LONG_AGO + SECOND)
    set_key(desktop.directory(A), "pinned_at", "2026-01-01T00:00:00Z", LONG_AGO + 2 * SECOND)
    assert laptop.sync()["replaced_titles"] == []
    for words in (("sync", "--dry-run"), ("pull",)):
        lines = desktop.run(*words).stdout.splitlines()
        at = next(number for number, line in enumerate(lines) if f"New  jp-c{A}" in line and "tak" in line)
        assert lines[at + 1] == '  replaces the title "talk" of this machine'
        assert sum("replaces" in line for line in lines) == 1
    set_key(laptop.directory(A), "title", "Newer", LONG_AGO + 3 * SECOND)
    laptop.sync()
    assert desktop.sync()["replaced_titles"] == [{"id": f"jp-c{A}", "before": "New", "title": "Newer"}]
    set_key(laptop.directory(A), "title", "Newest", LONG_AGO + 4 * SECOND)
    set_key(desktop.directory(A), "title", "Of mine", LONG_AGO + 5 * SECOND)
    laptop.sync()
    assert desktop.sync()["replaced_titles"] == []
    assert laptop.sync()["replaced_titles"] == [{"id": f"jp-c{A}", "before": "Newest", "title": "Of mine"}]
    quiet(laptop, desktop)


@pytest.mark.long
def test_a_fork_that_comes_with_an_accepted_remote_is_not_made_again(
    laptop: Machine, desktop: Machine, bare: Path
) -> None:
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    desktop.sync()
    laptop.append(A, 2, "c", LONG_AGO + 2 * SECOND)
    (fork,) = laptop.sync()["forked"]
    git(bare, "update-ref", "-d", REF)
    laptop.run("remote", "accept")
    laptop.sync()
    desktop.run("remote", "accept")
    said = desktop.sync()
    assert said["forked"] == []
    assert [(each["id"], each["takes"], each["child"]) for each in said["conflicts"]] == [
        (f"jp-c{A}", "there", fork["id"])
    ]
    quiet(laptop, desktop)
    assert len(list(desktop.store.iterdir())) == 4


@pytest.mark.long
def test_what_stays_here_learns_nothing_of_other_machines(laptop: Machine, desktop: Machine, bare: Path) -> None:
    """Else the remote, set back, would say that this machine has had the other one's lines."""
    before = git(bare, "rev-parse", REF)
    laptop.append(A, 1, "b", LONG_AGO + 2 * SECOND)
    laptop.run("remote", "keep-here", str(A))
    desktop.append(A, 2, "c", LONG_AGO + SECOND)
    desktop.sync()
    laptop.sync()
    git(bare, "update-ref", REF, before)
    laptop.run("remote", "share", str(A))
    laptop.run("remote", "accept")
    laptop.sync()
    desktop.run("remote", "accept")
    assert len(desktop.sync()["forked"]) == 1
    quiet(laptop, desktop)


def test_a_first_sync_that_was_killed_goes_on(new_laptop: Machine, bare: Path, tmp_path: Path, run: Run) -> None:
    swap, swaps = GitEngine.swap, iter(range(9))

    def dies_at_the_second(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if next(swaps) == 1:
            raise Killed
        return swap(self, expected, commit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconcile.remote.sync.BATCH", 1)
        patch.setattr(GitEngine, "swap", dies_at_the_second)
        with pytest.raises(Killed), new_laptop.at_work():
            new_laptop.world.run("--workspace", new_laptop.project, "sync")
        assert git(bare, "rev-list", "--count", REF) == "1"
        desktop = make_machine(tmp_path / "desktop", run)
        assert len(desktop.sync(str(bare))["taken"]) == 1
        assert len(new_laptop.sync()["sent"]) == 2
    assert git(bare, "rev-list", "--count", REF) == "3"
    assert len(desktop.sync()["taken"]) == 2
    assert desktop.contents == new_laptop.contents
    assert not new_laptop.sync()["taken"]


def test_a_race_between_the_parts_of_a_sync(new_laptop: Machine, bare: Path, tmp_path: Path, run: Run) -> None:
    other = make_machine(tmp_path / "desktop", run)
    other.write(A + 5)
    swap, races = GitEngine.swap, iter(range(2))

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if str(new_laptop.home) in self.mirror and expected is not None and next(races, None) is not None:
            other.sync(*(() if (other.state / "remotes").exists() else (str(bare),)))
        return swap(self, expected, commit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconcile.remote.sync.BATCH", 1)
        patch.setattr(GitEngine, "swap", late)
        new_laptop.sync()
    other.sync()
    assert other.contents == new_laptop.contents
    assert not new_laptop.sync()["taken"]


@pytest.mark.long
def test_a_machine_that_syncs_between_the_parts_of_removals_takes_them_all(laptop: Machine, desktop: Machine) -> None:
    """It sees no tombstone beside the record of what was removed: it would know that one as an old one later."""
    quiet(laptop, desktop)
    laptop.append(B, 1, "b", LONG_AGO + SECOND)
    laptop.write(C + 5)
    laptop.run("rm", str(A), str(C), "--yes")
    swap, found = GitEngine.swap, list[int]()

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if str(laptop.home) in self.mirror:
            found.append(len(desktop.sync("--allow-bulk-removal")["taken"]))
        return swap(self, expected, commit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconcile.remote.sync.BATCH", 1)
        patch.setattr(GitEngine, "swap", late)
        laptop.sync("--allow-bulk-removal")
    assert found[:2] == [0, 1]
    assert len(desktop.sync("--allow-bulk-removal")["removed_here"]) == 2
    quiet(laptop, desktop)


@pytest.mark.long
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"url": 5}'])
def test_a_damaged_record_of_a_remote_is_named_and_made_again(
    laptop: Machine, desktop: Machine, bare: Path, content: str
) -> None:
    path = laptop.state / "remotes" / "origin" / "remote.json"
    path.write_text(content)
    for command in ("sync", "status", "remote"):
        said = refused(laptop, command)
        assert "origin/remote.json: it is damaged" in said
    shutil.move(path.parent, laptop.home)
    laptop.run("remote", "add", str(bare), "--name", "origin")
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    quiet(laptop, desktop)


@pytest.mark.long
@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_stream_that_gets_pieces_in_one_of_several_parts_is_sent_whole(
    tmp_path: Path, run: Run, bare: Path, is_encrypted: bool
) -> None:
    """The file that its pieces replace is not removed in a later part: that would remove the pieces."""
    laptop, desktop = (make_machine(tmp_path / name, run) for name in ("laptop", "desktop"))
    for machine in (laptop, desktop) if is_encrypted else ():
        machine.take_key()
    for number in (A, B, C):
        laptop.write(number)
    laptop.run("remote", "add", str(bare), *(["--encrypt"] if is_encrypted else []))
    laptop.sync()
    desktop.sync(str(bare))
    for number in (A, B, C):
        stream = laptop.directory(number) / "events.json"
        *others, last = json.loads(stream.read_bytes())
        write_json(stream, [*others, last | {"content": str(number) * 200_000}], LONG_AGO + SECOND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconcile.remote.sync.BATCH", 1)
        laptop.sync()
    assert len(desktop.sync()["taken"]) == 3
    quiet(laptop, desktop)


DAMAGED = (
    "hint: if it fails again, replace the repository by an empty one; on a machine that has all: "
    "reconcile remote accept && reconcile sync"
)


def follow(hint: str, machine: Machine) -> None:
    """Run the commands that a hint ends with."""
    for words in hint.rpartition(": ")[2].split(" && "):
        machine.run(*words.removeprefix("reconcile ").split())


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_a_remote_with_a_damaged_object_is_made_again(
    tmp_path: Path, run: Run, laptop: Machine, desktop: Machine, bare: Path, damage: Callable[[Path], None]
) -> None:
    """By the words of the hint alone. What the desktop has not sent yet is sent, too."""
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.append(B, 1, "c", LONG_AGO + SECOND)
    damage(bare)
    before, new = [laptop.contents, desktop.contents], make_machine(tmp_path / "new", run)
    for machine, args in ((desktop, ("sync",)), (desktop, ("sync", "-n")), (new, ("sync", str(bare)))):
        said, hint = refused(machine, *args).splitlines()
        assert said.startswith(f"error: {bare}: the repository is damaged at its host: ")
        assert hint == DAMAGED
    assert [laptop.contents, desktop.contents] == before
    shutil.rmtree(bare)
    make_bare(bare)
    follow(DAMAGED, laptop)
    assert "reconcile remote accept --workspace ~/project; the sync after that" in refused(desktop, "sync")
    desktop.run("remote", "accept")
    found = desktop.sync()
    assert ([each["id"] for each in found["sent"]], found["forked"]) == ([f"jp-c{B}"], [])
    new.sync(str(bare))
    quiet(laptop, desktop, new)
    assert (new.events(A), new.events(B)) == (4, 4)
    git(bare, "fsck", "--strict")


@pytest.mark.long
@pytest.mark.parametrize("damage", [overwrite_pack, lose_blob, lose_tree], ids=lambda each: each.__name__)
def test_a_damaged_mirror_is_told_from_a_damaged_remote(
    laptop: Machine, desktop: Machine, bare: Path, damage: Callable[[Path], None]
) -> None:
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    mirror = laptop.state / "remotes" / "origin" / "mirror"
    git(mirror, "update-ref", REF, "refs/reconcile/seen")
    damage(mirror)
    git(mirror, "update-ref", "-d", REF)
    shutil.rmtree(laptop.state / "remotes" / "origin" / "tree")
    laptop.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    desktop.append(B, 1, "c", LONG_AGO + SECOND)
    desktop.sync()
    before = laptop.contents
    assert refused(laptop, "sync").splitlines()[1] == (
        "hint: delete ~/data/reconcile/jp-ab1cd/remotes/origin/mirror: the next sync makes it"
    )
    assert laptop.contents == before
    shutil.rmtree(mirror)
    quiet(laptop, desktop)
    assert (laptop.events(A), laptop.events(B)) == (5, 4)
    git(bare, "fsck", "--strict")


@pytest.mark.parametrize("words", ["sync", "pull", "push", "remote add", "sync --dry-run"])
@pytest.mark.parametrize("lost", [".jp/.id", ".jp"])
def test_a_damaged_project_is_refused_and_gets_no_other_store(
    tmp_path: Path, run: Run, bare: Path, words: str, lost: str
) -> None:
    """The place of another format's store would be made, and nothing be sent."""
    machine = make_machine(tmp_path / "one", run)
    machine.write(A)
    machine.run()
    git(machine.project, "init", "--quiet")
    author = "-c", "user.name=a", "-c", "user.email=a@b"
    git(machine.project, *author, "commit", "--quiet", "--allow-empty", "--message", "begin")
    (machine.project / lost).rename(tmp_path / "lost")
    before = sorted(machine.home.rglob("*"))
    text = refused(machine, *words.split(), str(bare), code=2)
    assert text == machine.run("status", code=2).output
    assert f"{lost.removeprefix('.jp/')}" in text
    assert "missing" in text
    assert sorted(machine.home.rglob("*")) == before

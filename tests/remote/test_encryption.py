"""Encrypted remotes: nothing readable is sent, and only machines with a key read, and write."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from reconcile.fs.locks import run_lock
from reconcile.model.commands import install_command
from reconcile.remote.engine import RemoteError, Swap
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.sealing import PYRAGE, Bundle, Keys, Sealed, identity_of
from tests.support.projects.machines import git, make_bare, make_machine, quiet
from tests.support.projects.world import LONG_AGO, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

REF = "refs/reconcile/jp-ab1cd"
A, B = 17528832000, 17528832010


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "remote.git")


@pytest.fixture
def laptop(tmp_path: Path, run: Run, bare: Path) -> Machine:
    machine = make_machine(tmp_path / "laptop", run)
    machine.write(A, title="secret-title")
    machine.write(B, count=5)
    (machine.directory(A) / "notes-of-mine.txt").write_text("an extra file")
    machine.run("remote", "add", "--encrypt", str(bare))
    machine.sync()
    return machine


@pytest.mark.long
@pytest.mark.parametrize("command", ["sync", "push", "pull", "remote add", "remote add --encrypt"])
def test_no_machine_takes_a_new_encrypted_remote_for_another_one(tmp_path: Path, run: Run, command: str) -> None:
    """The keys are sent as soon as it is added, and nothing else."""
    bare = make_bare(tmp_path / "remote.git")
    laptop, desktop = (make_machine(tmp_path / name, run) for name in ("laptop", "desktop"))
    laptop.write(A, title="secret-title")
    desktop.write(B)
    said = laptop.run("remote", "add", "--encrypt", str(bare)).stderr
    assert "nothing of it is sent yet" in said
    tree = git(bare, "ls-tree", "-r", "--name-only", REF)
    assert tree == "format"
    added = desktop.run(*command.split(), str(bare), code=0 if "add" in command else 4).output
    assert "keep a copy of it" not in added
    assert "the remote is encrypted, and no key of this machine opens it" in added
    assert f"on a machine that can read it: reconcile remote key add {key_of(desktop)}" in added
    assert "no key of this machine opens it" in desktop.run("sync", code=4).output
    assert git(bare, "rev-list", "--count", REF) == "1"
    assert "to send" in laptop.run("status").output
    laptop.run("remote", "key", "add", key_of(desktop))
    assert len(desktop.sync()["sent"]) == 1
    found = laptop.sync()
    assert (len(found["sent"]), len(found["taken"])) == (1, 1)
    quiet(laptop, desktop)


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_another_machine_begins_a_remote_while_it_is_added(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, *, is_encrypted: bool
) -> None:
    bare = make_bare(tmp_path / "remote.git")
    laptop, desktop = (make_machine(tmp_path / name, run) for name in ("laptop", "desktop"))
    desktop.write(B)
    new = Keys.new

    def slow(keys: Keys) -> Sealed:
        monkeypatch.setattr(Keys, "new", new)
        desktop.run("remote", "add", *["--encrypt"] * is_encrypted, str(bare))
        desktop.sync()
        return new(keys)

    monkeypatch.setattr(Keys, "new", slow)
    said = laptop.run("remote", "add", "--encrypt", str(bare), code=0 if is_encrypted else 4).output
    assert (
        "no key of this machine opens it" if is_encrypted else "the remote is in use already, and is not encrypted"
    ) in said
    assert json.loads(laptop.run("remote", "--json").stdout)["remotes"] == [] or is_encrypted


def test_a_lost_key_is_named_with_its_place(laptop: Machine) -> None:
    assert "can be read and written" in laptop.run("remote", "check").stderr
    key = laptop.state.parent / "age-key.txt"
    key.rename(copy := key.with_name("copy"))
    for command in (["sync"], ["remote", "check"]):
        said = " ".join(laptop.run(*command, code=4).stderr.split())
        assert "this machine has no key" in said
        assert "put your copy of the key back as ~/data/reconcile/age-key.txt, or make a new key" in said
    assert key_of_new(laptop) != copy.read_text()
    said = " ".join(laptop.run("remote", "check", code=4).stderr.split())
    assert "if there is none, use a new repository: the stores have all conversations" in said
    copy.replace(key)
    laptop.run("remote", "check")
    laptop.sync()


def key_of_new(machine: Machine) -> str:
    """Make a new key, which can't read the remote."""
    shown = machine.run("remote", "key", code=4).stdout
    assert shown.startswith(f"this machine's key: {key_of(machine)} (~/")
    return (machine.state.parent / "age-key.txt").read_text()


def key_of(machine: Machine) -> str:
    found = re.search(r"public key: (\S+)", (machine.state.parent / "age-key.txt").read_text())
    assert found is not None
    return found[1]


@pytest.fixture
def desktop(tmp_path: Path, run: Run, bare: Path, laptop: Machine) -> Machine:
    machine = make_machine(tmp_path / "desktop", run)
    said = machine.run("sync", str(bare), code=4).output
    assert "no key of this machine opens it" in said
    (listed,) = json.loads(machine.run("remote", "--json").stdout)["remotes"]
    assert listed["encrypted"]
    (listed,) = json.loads(machine.run("remote", "--json").stdout)["remotes"]
    assert listed["encrypted"]
    assert f"reconcile remote key add {key_of(machine)}" in said
    laptop.run("remote", "key", "add", key_of(machine))
    machine.sync()
    return machine


def objects(bare: Path) -> dict[str, tuple[str, bytes]]:
    """All objects of a repository, reachable or not, by name: kind and content."""
    listed = git(bare, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    found = {}
    for name, kind, _ in (line.split() for line in listed):
        done = subprocess.run(["git", "-C", str(bare), "cat-file", kind, name], capture_output=True, check=True)
        found[name] = kind, done.stdout
    return found


@pytest.mark.parametrize("command", ["sync", "pull"])
def test_a_machine_that_had_nothing_to_send_takes_the_key_of_the_first_one_that_has(
    tmp_path: Path, run: Run, bare: Path, command: str
) -> None:
    early = make_machine(tmp_path / "early", run)
    early.run("remote", "add", "--encrypt", str(bare))
    git(bare, "update-ref", "-d", REF)  # older versions have sent no keys before the first sync
    early.run(command)
    late = make_machine(tmp_path / "late", run)
    late.write(A)
    late.run("remote", "add", "--encrypt", str(bare))
    late.sync()
    late.run("remote", "key", "add", key_of(early))
    assert early.half(command)["taken"]


@pytest.mark.long
def test_nothing_readable_is_sent(laptop: Machine, desktop: Machine, bare: Path) -> None:
    laptop.append(A, 2, "q", LONG_AGO + SECOND)
    laptop.run("rm", str(B), "--yes")
    laptop.run("local", str(A))
    laptop.sync()
    desktop.sync()
    known = "secret-title talk message assistant notes-of-mine extra events metadata timestamp chat jp-c AGE-SECRET"
    words = [*known.split(), str(A), str(B), key_of(laptop), key_of(desktop), "laptop", "desktop"]
    names = {line.split()[2]: line.split()[3] for line in git(bare, "ls-tree", "-r", REF).splitlines()}
    for name, (_, content) in objects(bare).items():
        found = [word for word in words if word.encode() in content]
        assert found == [], (names.get(name), content[:200])
        if names.get(name) == "format":
            assert set(json.loads(content)) == {"version", "store", "id", "bundle"}
    paths = git(bare, "ls-tree", "-r", "-t", "--name-only", REF).splitlines()
    assert all(re.fullmatch(r"format|[ct](/[0-9a-f]+)*(/r|/\d+)?", path) for path in paths)


@pytest.mark.long
def test_a_machine_with_a_key_takes_everything(laptop: Machine, desktop: Machine) -> None:
    assert desktop.contents == laptop.contents
    quiet(laptop, desktop)
    laptop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    desktop.append(A, 1, "c", LONG_AGO + 120 * SECOND)
    laptop.sync()
    assert len(desktop.sync()["forked"]) == 1
    quiet(laptop, desktop)


def test_removals_and_private_conversations_travel(laptop: Machine, desktop: Machine) -> None:
    laptop.run("rm", str(B), "--yes")
    laptop.run("local", str(A))
    laptop.sync()
    assert len(desktop.sync()["removed_here"]) == 1
    assert "local: not copied" in desktop.run("status", str(A)).output
    quiet(laptop, desktop)


def test_one_shared_key_serves_as_well(laptop: Machine, tmp_path: Path, run: Run, bare: Path) -> None:
    other = make_machine(tmp_path / "other", run)
    other.state.parent.mkdir(parents=True)
    (other.state.parent / "age-key.txt").write_bytes((laptop.state.parent / "age-key.txt").read_bytes())
    other.sync(str(bare))
    quiet(laptop, other)


def test_adding_tells_what_stays_visible(tmp_path: Path, run: Run) -> None:
    machine = make_machine(tmp_path / "new", run)
    said = machine.run("remote", "add", "--encrypt", str(make_bare(tmp_path / "r.git"))).output
    assert "sees the number of files, their sizes, the times of syncs, and the name jp-ab1cd" in said
    assert "keep a copy of it" in said
    path = machine.state.parent / "age-key.txt"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(machine.run("remote", "--json").stdout)["remotes"][0]["encrypted"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_new_key_is_on_the_medium_and_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    """What is sent next is encrypted for it; another process may have sent something for its own key meanwhile."""

    def refused(*_: object) -> None:
        raise PermissionError

    flushed = list[str]()
    monkeypatch.setattr("reconcile.remote.sealing.fsync_directory", flushed.append)
    if not has_links:
        monkeypatch.setattr(os, "link", refused)
    keys, meanwhile = (Keys(str(tmp_path / "a" / "b"), is_wanted=True) for _ in "12")
    before = list[str]()

    def late(text: str | None) -> object:
        monkeypatch.setattr("reconcile.remote.sealing.identity_of", identity_of)
        meanwhile.make()
        before.extend(meanwhile.publics)
        return identity_of(text)

    monkeypatch.setattr("reconcile.remote.sealing.identity_of", late)
    keys.make()
    assert keys.publics == before
    assert set(flushed) == {str(tmp_path / "a" / "b"), str(tmp_path / "a"), str(tmp_path)}
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["age-key.txt"]


@pytest.mark.long
@pytest.mark.parametrize("change", ["another", "broken", "gone"])
def test_a_wrong_key_is_refused_before_any_write(laptop: Machine, desktop: Machine, bare: Path, change: str) -> None:
    desktop.append(A, 2, "b", LONG_AGO + SECOND)
    path = desktop.state.parent / "age-key.txt"
    if change == "gone":
        path.unlink()
    else:
        other = Keys(str(desktop.home / "elsewhere"), is_wanted=False)
        other.make()
        path.write_text((desktop.home / "elsewhere" / "age-key.txt").read_text() if change == "another" else "hello")
    before, tip, state = desktop.contents, git(bare, "rev-parse", REF), sorted(desktop.state.rglob("*"))
    for command in (("sync",), ("sync", "-n"), ("pull",), ("push",)):
        assert len(desktop.run(*command, code=4).output.splitlines()) == 2
    assert desktop.contents == before
    assert git(bare, "rev-parse", REF) == tip
    assert sorted(desktop.state.rglob("*")) == state
    assert path.exists() == (change != "gone")


def test_a_plain_remote_in_the_place_of_an_encrypted_one_gets_nothing(
    laptop: Machine, desktop: Machine, bare: Path
) -> None:
    identity = json.loads(git(bare, "show", f"{REF}:format"))["id"]
    replace_format(bare, {"version": 1, "store": "jp-ab1cd", "id": identity})
    tip = git(bare, "rev-parse", REF)
    for machine in (laptop, desktop):
        machine.append(A, 1, "b", LONG_AGO + SECOND)
        assert "nothing is sent to it" in machine.run("sync", code=4).output
    assert git(bare, "rev-parse", REF) == tip


def test_a_key_of_a_stranger_gets_nothing(laptop: Machine, desktop: Machine, bare: Path) -> None:
    """Whoever can write to the repository may know the public keys, and make a bundle for them."""
    stranger = Keys(str(laptop.home / "stranger"), is_wanted=True)
    stranger.make()
    made = stranger.new().with_recipients([*stranger.publics, key_of(laptop), key_of(desktop)])
    old = json.loads(git(bare, "show", f"{REF}:format"))
    replace_format(bare, old | {"bundle": made.wrapped(0)})
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    tip = git(bare, "rev-parse", REF)
    for machine in (laptop, desktop):
        for command in (("sync",), ("remote", "key"), ("remote", "key", "rotate")):
            assert "another key" in machine.run(*command, code=4).output
    assert git(bare, "rev-parse", REF) == tip


def replace_format(bare: Path, content: dict[str, object]) -> None:
    text = json.dumps(content)
    stream = f"commit {REF}\ncommitter x <x@y> 1 +0000\ndata 1\nx\nfrom {REF}^0\nM 100644 inline format\n"
    git(bare, "fast-import", "--quiet", "--force", stdin=f"{stream}data {len(text)}\n{text}\n".encode())


@pytest.mark.long
def test_a_remote_is_encrypted_from_its_first_sync_or_never(
    laptop: Machine, desktop: Machine, tmp_path: Path, run: Run
) -> None:
    plain = make_bare(tmp_path / "plain.git")
    laptop.run("remote", "add", "--name", "plain", str(plain))
    laptop.sync("plain")
    assert "not encrypted" in desktop.run("remote", "add", "--encrypt", str(plain), code=4).output
    assert desktop.run("remote").output.count("plain.git") == 0
    assert "the remote is not encrypted" in laptop.run("remote", "key", "--name", "plain", code=4).output


def test_another_machine_that_sent_first_and_plainly_gets_nothing(tmp_path: Path, run: Run) -> None:
    bare = make_bare(tmp_path / "r.git")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    one.run("remote", "add", "--encrypt", str(bare))
    git(bare, "update-ref", "-d", REF)  # older versions have sent no keys before the first sync
    other.write(B)
    other.sync(str(bare))
    tip = git(bare, "rev-parse", REF)
    assert "nothing is sent to it" in one.run("sync", code=4).output
    assert git(bare, "rev-parse", REF) == tip


def encrypted_later(tmp_path: Path, run: Run) -> tuple[Machine, Machine, Path]:
    """Return two machines and their remote, which the second one has added before the first one encrypted it."""
    bare = make_bare(tmp_path / "remote.git")
    laptop, desktop = (make_machine(tmp_path / name, run) for name in ("laptop", "desktop"))
    desktop.write(A)
    desktop.run("remote", "add", str(bare))
    laptop.write(B)
    laptop.run("remote", "add", "--encrypt", str(bare))
    return laptop, desktop, bare


@pytest.mark.parametrize("is_unanswered", [False, True])
def test_a_remote_that_was_seen_encrypted_gets_nothing_plain_when_it_is_emptied(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, is_unanswered: bool
) -> None:
    laptop, desktop, bare = encrypted_later(tmp_path, run)
    if is_unanswered:
        desktop.run("remote", "key", code=4)
        laptop.run("remote", "key", "add", key_of(desktop))
        swap = GitEngine.swap
        with monkeypatch.context() as patch:
            patch.setattr(GitEngine, "swap", lambda *args: (swap(*args), Swap.UNKNOWN)[1])
            desktop.run("sync", code=1)
    else:
        desktop.run("sync", code=4)
    git(bare, "update-ref", "-d", REF)
    desktop.run("remote", "accept")
    desktop.run("sync", code=0 if is_unanswered else 4)
    if is_unanswered:
        assert "bundle" in json.loads(git(bare, "show", f"{REF}:format"))
    else:
        assert not git(bare, "for-each-ref")


@pytest.mark.long
@pytest.mark.parametrize("end", ["killed", "locked", "key", "key add", "key rotate"])
def test_a_first_sync_that_ends_early_has_seen_that_the_remote_is_encrypted(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    laptop, desktop, bare = encrypted_later(tmp_path, run)
    desktop.run("remote", "key", code=4)
    laptop.run("remote", "key", "add", key_of(desktop))
    if end == "killed":
        with monkeypatch.context() as patch:
            patch.setattr(GitEngine, "swap", _killed)
            with pytest.raises(Killed):
                desktop.sync()
    elif end == "locked":
        monkeypatch.setenv("RECONCILE_LOCK_TIMEOUT", "0")
        with run_lock(str(desktop.state), command="other"):
            desktop.run("sync", code=5)
    else:
        desktop.run("remote", *end.split(), *([key_of(laptop)] if end == "key add" else []))
    git(bare, "update-ref", "-d", REF)
    assert "reconcile remote accept" in desktop.run("sync", code=4).output
    assert not git(bare, "for-each-ref")
    desktop.run("remote", "accept")
    desktop.sync()
    assert "bundle" in json.loads(git(bare, "show", f"{REF}:format"))


def _killed(*_: object) -> Swap:
    raise Killed


@pytest.mark.long
def test_a_key_is_shown_added_and_removed(laptop: Machine, desktop: Machine, bare: Path) -> None:
    shown = json.loads(laptop.run("remote", "key", "--json").stdout)
    assert shown["key"] == key_of(laptop)
    assert shown["recipients"] == [key_of(laptop), key_of(desktop)]
    assert "would not be able" in laptop.run("remote", "key", "remove", key_of(laptop), code=4).output
    before = {line.split()[2] for line in git(bare, "ls-tree", "-r", REF).splitlines()}
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    assert "its history is not" in laptop.run("remote", "key", "remove", key_of(desktop)).output
    assert before.isdisjoint({line.split()[2] for line in git(bare, "ls-tree", "-r", REF).splitlines()})
    assert "no key of this machine opens it" in desktop.run("sync", code=4).output
    laptop.sync()
    laptop.run("remote", "key", "add", key_of(desktop))
    desktop.sync()
    quiet(laptop, desktop)
    assert desktop.events(A) == 4


def test_a_removed_key_opens_nothing_that_is_sent_after_the_remote_was_set_back(
    laptop: Machine, desktop: Machine, bare: Path
) -> None:
    """The host may have restored an older copy, or whoever has the removed key may have."""
    tip = git(bare, "rev-parse", REF)
    laptop.run("remote", "key", "remove", key_of(desktop))
    git(bare, "update-ref", REF, tip)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    for command in (("sync",), ("push",), ("remote", "key", "rotate")):
        assert "another key" in laptop.run(*command, code=4).output
    assert git(bare, "rev-parse", REF) == tip
    assert desktop.events(A) == 3
    laptop.run("remote", "accept")
    laptop.run("remote", "key", "remove", key_of(desktop))
    laptop.sync()
    assert "no key of this machine opens it" in desktop.run("sync", code=4).output


@pytest.mark.long
@pytest.mark.parametrize("end", ["killed before", "killed after", "no answer"])
def test_nothing_is_sent_by_the_keys_before_a_rotation_whose_end_is_unknown(
    laptop: Machine, desktop: Machine, bare: Path, end: str
) -> None:
    """The remote has the keys before: the new ones have not arrived, or the host has restored an older copy."""
    tip, swap, remove = git(bare, "rev-parse", REF), GitEngine.swap, ("remote", "key", "remove", key_of(desktop))

    def ends(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if end != "killed before":
            swap(self, expected, commit)
        if end != "no answer":
            raise Killed
        return Swap.UNKNOWN

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(GitEngine, "swap", ends)
        laptop.run(*remove, code=1)
    git(bare, "update-ref", REF, tip)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    for command in ("sync", "push", "sync -n"):
        said = " ".join(laptop.run(*command.split(), code=4).output.split())
        assert "a change of its keys was interrupted here" in said
    assert git(bare, "rev-parse", REF) == tip
    laptop.run("remote", "key")
    laptop.run(*remove)
    assert laptop.sync()["sent"]
    assert "no key of this machine opens it" in desktop.run("sync", code=4).output


@pytest.mark.long
@pytest.mark.parametrize("end", ["lost", "refused", "arrived"])
def test_a_sync_goes_on_after_a_rotation_whose_end_is_known(laptop: Machine, desktop: Machine, end: str) -> None:
    swap = GitEngine.swap

    def ends(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if end == "refused":
            raise RemoteError("the host refused the push", None)
        return Swap.LOST if end == "lost" else (swap(self, expected, commit), Swap.UNKNOWN)[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GitEngine, "swap", ends)
        laptop.run("remote", "key", "rotate", code=1 if end == "arrived" else 4)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    quiet(laptop, desktop)
    laptop.run("remote", "key", "rotate")
    quiet(laptop, desktop)


@pytest.mark.long
def test_a_rotation_travels(laptop: Machine, desktop: Machine) -> None:
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.run("rm", str(B), "--yes")
    laptop.sync()
    for _ in range(2):
        laptop.run("remote", "key", "rotate")
    found = desktop.sync()
    assert (len(found["sent"]), len(found["removed_here"])) == (1, 1)
    laptop.run("remote", "key", "rotate")
    quiet(laptop, desktop)
    assert laptop.events(A) == 4


@pytest.mark.long
def test_status_counts_no_rotation_as_a_change(laptop: Machine, desktop: Machine, tmp_path: Path, run: Run) -> None:
    laptop.run("remote", "key", "rotate")
    for _ in range(2):
        assert "origin: 0 conversations to send, 0 to take, last" in desktop.run("status").output
        desktop.run("sync", "--dry-run")
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    laptop.run("remote", "key", "rotate")
    desktop.append(B, 1, "b", LONG_AGO + SECOND)
    desktop.run("sync", "--dry-run")
    assert "origin: 1 conversation to send, 1 to take, last" in desktop.run("status").output
    desktop.append(A, 1, "c", LONG_AGO + SECOND)
    assert "origin: 1 conversation to send, 0 to take, 1 changed on both machines" in desktop.run("status").output
    desktop.sync()
    assert "origin: 0 conversations to send, 0 to take, last" in desktop.run("status").output


def test_the_key_of_this_machine_is_marked(laptop: Machine, desktop: Machine) -> None:
    lines = laptop.run("remote", "key").stdout.splitlines()
    assert f"origin can be read with: {key_of(laptop)} (this machine)" in lines
    assert f"origin can be read with: {key_of(desktop)}" in lines


def test_status_says_that_the_last_sync_was_refused(laptop: Machine, desktop: Machine) -> None:
    path = desktop.state.parent / "age-key.txt"
    key = path.read_bytes()
    path.unlink()
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.run("sync", code=4)
    told = (
        "remote origin: the last sync was refused (the remote is encrypted, and this machine has no key), last contact"
    )
    assert told in " ".join(desktop.run("status").output.split())
    path.write_bytes(key)
    desktop.sync()
    assert "origin: 0 conversations to send, 0 to take, last" in desktop.run("status").output


class Killed(BaseException):
    """The end of a process."""


@contextmanager
def parts_that_die(at: int, *, is_after: bool) -> Iterator[None]:
    """Have each file sent alone, and kill the process at a push, before or after the remote has it."""
    swap, swaps = GitEngine.swap, itertools.count()

    def dies(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if (is_last := next(swaps) == at) and not is_after:
            raise Killed
        found = swap(self, expected, commit)
        if is_last:
            raise Killed
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconcile.remote.sync.BATCH", 1)
        patch.setattr(GitEngine, "swap", dies)
        yield


def commits(bare: Path) -> list[str]:
    return git(bare, "rev-list", REF).splitlines()


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("is_removal", [False, True])
def test_a_rotation_that_is_killed_at_each_of_its_parts_goes_on(
    laptop: Machine, desktop: Machine, tmp_path: Path, run: Run, bare: Path, *, is_removal: bool, is_after: bool
) -> None:
    """A machine that reads any commit has everything, by the keys before or by those after."""
    words = "remote", "key", *(("remove", key_of(desktop)) if is_removal else ("rotate",))
    files, before, kills = len(git(bare, "ls-tree", "-r", "--name-only", REF).splitlines()) - 1, commits(bare), 0
    public = json.loads(laptop.run("remote", "key", "--json").stdout)["recipients"]
    while True:
        try:
            with parts_that_die(0 if is_after else 1, is_after=is_after), laptop.at_work():
                laptop.world.run(*laptop.sides, *words)
        except Killed:
            kills += 1
        else:
            break
        if kills < files:
            assert json.loads(laptop.run("remote", "key", "--json").stdout)["recipients"] == public
            assert not desktop.sync()["held"], "it reads everything as before"
        elif is_after:
            break  # the last push has arrived
    assert kills == (files if is_after else files - 1)
    new = commits(bare)[: -len(before)]
    assert len(new) == files, "no file was sent twice"
    assert not git(bare, "ls-tree", "-r", "--name-only", REF, "n")
    for number, commit in enumerate(new):
        then = tmp_path / f"then{number}.git"
        git(tmp_path, "clone", "--quiet", "--mirror", str(bare), str(then))
        git(then, "update-ref", REF, commit)
        reader = make_machine(tmp_path / f"reader{number}", run)
        reader.state.parent.mkdir(parents=True)
        shutil.copy(laptop.state.parent / "age-key.txt", reader.state.parent / "age-key.txt")
        reader.sync(str(then))
        assert reader.contents == laptop.contents
    quiet(laptop, *([] if is_removal else [desktop]))
    desktop.run("sync", code=4 if is_removal else 0)


@pytest.mark.long
def test_a_rotation_goes_on_beside_other_machines(laptop: Machine, desktop: Machine, bare: Path) -> None:
    """They change, add and remove conversations, and someone replaces a part that was sent."""
    for number in range(3):
        with parts_that_die(1, is_after=True), laptop.at_work(), pytest.raises(Killed):
            laptop.world.run(*laptop.sides, "remote", "key", "rotate")
        desktop.append(A, 1, "b", LONG_AGO + (number + 1) * SECOND)
        desktop.write(B + 1 + number)
        if number == 1:
            desktop.run("rm", str(B), "--yes")
        desktop.sync()
    path = git(bare, "ls-tree", "-r", "--name-only", REF, "n").splitlines()[0]
    put(bare, path)
    laptop.run("remote", "key", "rotate")
    assert not git(bare, "ls-tree", "-r", "--name-only", REF, "n")
    quiet(laptop, desktop)
    assert laptop.events(A) == 6
    assert laptop.contents == desktop.contents
    assert not (laptop.state / "remotes" / "origin" / "rotation").exists()


@pytest.mark.long
def test_new_keys_of_an_interrupted_rotation_are_not_taken_after_another_one(laptop: Machine, desktop: Machine) -> None:
    with parts_that_die(1, is_after=True), laptop.at_work(), pytest.raises(Killed):
        laptop.world.run(*laptop.sides, "remote", "key", "rotate")
    begun = (laptop.state / "remotes" / "origin" / "rotation").read_bytes()
    laptop.run("remote", "key", "add", str(identity_of(None).to_public()))
    assert (laptop.state / "remotes" / "origin" / "rotation").stat().st_mode & 0o777 == 0o600
    desktop.run("remote", "key", "rotate")
    with parts_that_die(1, is_after=True), laptop.at_work(), pytest.raises(Killed):
        laptop.world.run(*laptop.sides, "remote", "key", "rotate")
    assert (laptop.state / "remotes" / "origin" / "rotation").read_bytes() != begun
    laptop.run("remote", "key", "rotate")
    quiet(laptop, desktop)


@pytest.mark.parametrize("words", [("add",), ("add", "a", "b"), ("rotate", "x"), ("what",)], ids=" ".join)
def test_wrong_words_after_key(laptop: Machine, words: tuple[str, ...]) -> None:
    assert "use: reconcile remote key" in laptop.run("remote", "key", *words, code=2).output


@pytest.mark.parametrize("key", ["age1xyz", "ssh-ed25519 AAAA", "AGE-SECRET-KEY-1XX"])
def test_a_text_that_is_no_key_is_refused(laptop: Machine, key: str) -> None:
    assert "is no public key of age" in laptop.run("remote", "key", "add", key, code=4).output


def put(bare: Path, path: str) -> None:
    """Put a file into the remote, as whoever can write to it may."""
    stream = f"commit {REF}\ncommitter x <x@y> 1 +0000\ndata 1\nx\nfrom {REF}^0\nM 100644 inline {path}\ndata 3\nabc\n"
    git(bare, "fast-import", "--quiet", "--force", stdin=stream.encode())


def damage(machine: Machine, bare: Path, kind: str) -> None:
    """Replace a file of the one conversation in the tree."""
    (path,) = [
        line.split()[3]
        for line in git(bare, "ls-tree", "-r", REF).splitlines()
        if line.endswith("/r") and b"talk" in opened(machine, bare, line.split()[2])
    ]
    if kind != "r":
        listed = git(bare, "ls-tree", "-r", "--name-only", REF, path.removesuffix("r")).splitlines()
        path = next(each for each in listed if not each.endswith("/r"))
    put(bare, path)


def test_a_damaged_content_is_left_out(laptop: Machine, desktop: Machine, bare: Path) -> None:
    damage(laptop, bare, "r")
    found = desktop.sync(code=4)
    assert "can't be decrypted" in found["held"][0]
    assert not found["removed_here"]


@pytest.mark.parametrize("kind", ["r", "another file"])
def test_no_rotation_beside_a_damaged_content(laptop: Machine, bare: Path, kind: str) -> None:
    damage(laptop, bare, kind)
    tip = git(bare, "rev-parse", REF)
    found = laptop.run("remote", "key", "rotate", code=4).output
    assert "can't be decrypted" in found
    assert found.count("\n") == 2
    assert git(bare, "rev-parse", REF) == tip


@pytest.mark.long
@pytest.mark.parametrize("kind", ["r", "another file"])
def test_a_rotation_leaves_out_what_is_damaged_after_a_person_has_accepted_it(
    laptop: Machine, desktop: Machine, bare: Path, kind: str
) -> None:
    damage(laptop, bare, kind)
    laptop.run("remote", "accept")
    laptop.run("remote", "key", "rotate")
    assert len(laptop.sync()["sent"]) == 1
    quiet(laptop, desktop)
    laptop.run("remote", "key", "rotate")
    quiet(laptop, desktop)


JUNK = ("n", "n/a/r", "n/r", "x", "c/r", "c/aa/bb/key/r/r", "c/x", "t/x", "t/aa/bb/key/x", "a\tb")


@pytest.mark.long
@pytest.mark.parametrize("path", JUNK)
def test_a_file_that_is_none_of_the_tree_stops_nothing(
    laptop: Machine, desktop: Machine, bare: Path, path: str
) -> None:
    put(bare, path)
    quiet(laptop, desktop)
    with parts_that_die(10**6, is_after=False):
        laptop.run("remote", "key", "remove", key_of(desktop))
    assert path not in git(bare, "ls-tree", "-r", "-z", "--name-only", REF).split("\0")
    quiet(laptop)
    assert len(laptop.contents) >= 5


def test_a_refused_record_stops_a_rotation_until_it_is_replaced(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = laptop.directory(A) / "a\tb"
    path.write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr("reconcile.remote.sync.unsendable", lambda *_: {})
        laptop.sync()
    said = " ".join(laptop.run("remote", "key", "rotate", code=4).output.split())
    assert re.search(r"no new keys: [0-9a-f]+: its record names a file that is none of a conversation: 'a\\tb'", said)
    path.unlink()
    laptop.sync()
    laptop.run("remote", "key", "rotate")
    quiet(laptop, desktop)


def opened(machine: Machine, bare: Path, name: str) -> bytes:
    keys = Keys(str(machine.state.parent), is_wanted=True)
    coding = keys.opened(json.loads(git(bare, "show", f"{REF}:format"))["bundle"])
    return coding.open(objects(bare)[name][1])


@pytest.mark.long
def test_an_append_to_a_large_stream_sends_its_end_only(laptop: Machine, desktop: Machine, bare: Path) -> None:
    stream = [
        {"timestamp": f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z", "type": "chat_request", "content": "x" * 1000}
        for n in range(500)
    ]
    (laptop.directory(A) / "events.json").write_text(json.dumps(stream))
    laptop.append(A, 1, "b", LONG_AGO + 30 * SECOND)
    quiet(laptop, desktop)
    before = set(objects(bare))
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    new = [content for name, (kind, content) in objects(bare).items() if name not in before and kind == "blob"]
    assert len(new) <= 4  # the last two pieces, the metadata perhaps, the record
    quiet(laptop, desktop)
    (laptop.directory(A) / "events.json").write_text(json.dumps(stream[:10]))
    quiet(laptop, desktop)


def test_what_is_larger_than_a_sync_writes_is_refused() -> None:
    keys = Bundle(str(identity_of(None)), "00" * 32, ())
    coding = Sealed(keys)
    assert coding.open(coding.seal(b"x" * 1000)) == b"x" * 1000
    with pytest.raises(ValueError, match="larger"):
        coding.open(coding.seal(b"0" * (3 << 20)))
    with pytest.raises(ValueError, match="decrypted"):
        coding.open(b"x")


def test_without_the_package_one_line_says_what_to_install(
    laptop: Machine, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyrage", None)
    new = make_bare(tmp_path / "new.git")
    for words in (("sync",), ("remote", "key"), ("remote", "add", "--encrypt", str(new))):
        laptop.append(A, 1, "b", LONG_AGO + SECOND)
        said = laptop.run(*words, code=4).output
        assert "encryption needs the package pyrage, which is not installed" in said
        assert install_command(PYRAGE, sys.prefix, sys.executable) in said
    assert git(new, "for-each-ref") == ""


def aged(content: bytes, key: Path) -> bytes:
    """Decrypt with the program `age`."""
    return subprocess.run(["age", "--decrypt", "-i", str(key)], input=content, capture_output=True, check=True).stdout


@pytest.mark.skipif(shutil.which("age") is None, reason="no program age here")
def test_the_program_age_reads_what_was_sent(laptop: Machine, bare: Path, tmp_path: Path) -> None:
    """As the manual says it, with git, age and zlib: nothing of reconcile is used."""

    def show(path: str) -> bytes:
        return subprocess.run(["git", "-C", bare, "show", f"{REF}:{path}"], capture_output=True, check=True).stdout

    own, remote = laptop.state.parent / "age-key.txt", tmp_path / "remote-key.txt"
    bundle = json.loads(aged(base64.b64decode(json.loads(show("format"))["bundle"]), own))
    remote.write_text(bundle["secret"])
    found = dict[str, dict[str, bytes]]()
    for path in git(bare, "ls-tree", "-r", "--name-only", REF, "c").splitlines():
        directory, _, name = path.rpartition("/")
        found.setdefault(directory, {})[name] = zlib.decompress(aged(show(path), remote))
    for files in found.values():
        record = json.loads(files.pop("r"))
        for short, name in (("m", "metadata.json"), ("b", "base_config.json"), ("e", "events.json")):
            text = f"{record['id']}\0{short}".encode()
            hidden = hashlib.blake2b(text, key=bytes.fromhex(bundle["names"]), digest_size=16).hexdigest()
            assert files[hidden] == laptop.contents[f"{record['name']}/{name}"]
    assert sorted(map(len, found.values())) == [3, 4], "one has notes"


@pytest.mark.skipif(shutil.which("age-keygen") is None, reason="no program age-keygen here")
def test_a_key_of_the_program_age_serves(tmp_path: Path, run: Run, bare: Path, laptop: Machine) -> None:
    machine = make_machine(tmp_path / "desktop", run)
    machine.state.parent.mkdir(parents=True)
    subprocess.run(["age-keygen", "-o", machine.state.parent / "age-key.txt"], capture_output=True, check=True)
    laptop.run("remote", "key", "add", key_of(machine))
    machine.sync(str(bare))
    assert machine.contents == laptop.contents

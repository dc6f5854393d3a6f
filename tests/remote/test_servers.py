"""A remote over http, served by git's own http-backend, and over ssh, by a server of its own, if they are installed."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from reconcile.remote.engine import RemoteError, UnreachableError
from reconcile.remote.git.address import checked_url
from tests.support.projects.damage import lose_blob, overwrite_pack
from tests.support.projects.http_host import NAME_BEHIND_PROXY, ForwardProxy, HttpHost, make_certificate
from tests.support.projects.machines import git, make_bare, make_machine, quiet
from tests.support.projects.mortal_receiver import make_programs, mortal_receiver
from tests.support.projects.ssh_host import SshHost
from tests.support.projects.terminal import Session, run_at_terminal
from tests.support.projects.world import LONG_AGO, SECOND, command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

A = 17528832000
pytestmark = pytest.mark.long
with_time = pytest.mark.timeout(180)
"""Many pushes, or connections of ssh, take some seconds, and many times as long on a busy machine."""
needs_setsid = pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid here, which gives a terminal")
SIZE, ROUNDS = 2_000, 24
"""The events of a conversation that is pushed, and the number of pushes."""
DEATH = """#!/bin/sh
at=$PPID
while [ "$at" != {server} ] && [ "${{at:-0}}" -gt 1 ]; do
    above=$(ps -o ppid= -p "$at" | tr -d " ")
    killed="$killed $at"
    at=$above
done
kill -9 {server}
while ps -o stat= -p {server} | grep -qv Z; do sleep 0.01; done
kill -9 $killed
"""
"""A hook that kills a server and then, as soon as it listens no more, the processes between it and the hook."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpHost]:
    with HttpHost(tmp_path) as host:
        yield host


def test_two_machines_over_http(tmp_path: Path, run: Run, server: HttpHost) -> None:
    url = server.url(make_bare(tmp_path / "r.git"))
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    one.sync(url)
    other.sync(url)
    one.append(A, 1, "b", LONG_AGO + SECOND)
    other.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    one.sync()
    assert len(other.sync()["forked"]) == 1
    one.sync(url)
    assert one.contents == other.contents
    shown = url.replace("secret", "<redacted>")
    ways = [("remote",), ("remote", "--json"), ("remote", "check"), ("log",), ("log", "--json"), ("remote", "accept")]
    for args in (*ways, ("remote", "remove", "origin")):
        assert "secret" not in one.run(*args).output
    assert shown in other.run("remote").output
    assert shown in other.run("log", "--json").output
    server.stop()
    assert "secret" not in other.run("sync", code=1).output


def sync_on_a_mortal_host(
    one: Machine,
    other: Machine,
    bare: Path,
    kill_after: Callable[[float], object],
    kills: Callable[[], int],
    rounds: int = ROUNDS,
) -> None:
    """Let the host die during pushes: the next sync goes on, nothing is lost, and the repository is sound.

    The moments come close to the end of the push: there the ref is moved.
    """
    chance, patience_s = random.Random(1), 0.2
    for number in range(rounds):
        one.write(A + number, count=SIZE)
        before = kills()
        kill_after(patience_s * chance.uniform(0.7, 1.1))
        with one.at_work():
            result = one.world.run(*one.sides, "sync")
        assert result.exit_code in (0, 1, 4), result.output
        patience_s *= 1.3 if kills() > before else 0.5
        for lock in bare.rglob("*.lock"):  # the message of the next push would name it
            lock.unlink()
        one.sync()
        git(bare, "fsck", "--strict")
        other.sync()
        assert other.contents == one.contents
    quiet(one, other)
    assert kills() > rounds / 4


def test_a_backend_that_is_killed(tmp_path: Path, run: Run, server: HttpHost) -> None:
    bare = make_bare(tmp_path / "r.git")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.sync(server.url(bare))

    def kill_after(seconds: float) -> None:
        server.patience_s = seconds

    sync_on_a_mortal_host(one, other, bare, kill_after, lambda: server.kills)


@with_time
def test_a_receiving_git_that_is_killed(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remote is a directory: git starts the receiving process itself."""
    bare, programs = tmp_path / "r.git", make_programs(tmp_path / "programs")
    kill_after, kills = mortal_receiver(tmp_path, programs, "$receiver")
    monkeypatch.setenv("GIT_EXEC_PATH", str(programs))
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.sync(str(make_bare(bare)))
    sync_on_a_mortal_host(one, other, bare, kill_after, kills)


def test_a_lock_that_a_killed_host_has_left_is_named(tmp_path: Path, run: Run) -> None:
    """git removes none, because another push may hold it."""
    one, bare = make_machine(tmp_path / "one", run), make_bare(tmp_path / "r.git")
    one.write(A)
    one.sync(str(bare))
    lock = bare / "refs" / "reconcile" / "jp-ab1cd.lock"
    lock.touch()
    one.append(A, 1, "b", LONG_AGO + SECOND)
    said = one.run("sync", code=4).output
    assert "refs/reconcile/jp-ab1cd.lock': File exists" in said.replace("\n", " ")
    lock.unlink()
    assert one.sync()["interrupted_push"] is None
    git(bare, "fsck", "--strict")


def test_a_repository_that_the_world_can_read_is_refused(tmp_path: Path, run: Run, server: HttpHost) -> None:
    server.password = ""
    one = make_machine(tmp_path / "one", run)
    one.write(A)
    url = server.url(make_bare(tmp_path / "r.git"))
    found = one.run("remote", "add", url, code=4).output
    assert "everyone can read it" in found
    assert "secret" not in found
    server.password = "secret"  # noqa: S105 - of a test
    one.sync(url)
    one.run("remote", "check")
    server.password = ""
    assert "everyone can read it" in one.run("remote", "check", code=4).output


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HttpHost, ForwardProxy]]:
    """A host that everyone can read over https, by its name and at the usual port."""
    certificate = make_certificate(tmp_path / "key.pem", NAME_BEHIND_PROXY)
    with HttpHost(tmp_path, certificate) as host, ForwardProxy(host.port) as proxy:
        host.password = ""
        monkeypatch.setenv("https_proxy", proxy.url)
        monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
        yield host, proxy


@pytest.mark.parametrize(
    ("path", "there", "read"), [("r.git", "r.git", "r.git"), ("r", "r.git", "r"), ("r.git", "r", "r")]
)
@pytest.mark.parametrize(
    "address",
    [
        "ssh://git@git.example.invalid/{}",
        "ssh://git.example.invalid:2222/{}",
        "git@git.example.invalid:{}",
        "git.example.invalid:/{}/",
    ],
)
def test_a_repository_over_ssh_that_the_world_can_read_over_https(
    tmp_path: Path, web: tuple[HttpHost, ForwardProxy], address: str, path: str, there: str, read: str
) -> None:
    host, proxy = web
    make_bare(tmp_path / there)
    url = address.format(path)
    with pytest.raises(RemoteError) as found:
        checked_url(url, str(tmp_path))
    assert str(found.value) == f"{url}: everyone can read https://git.example.invalid/{read} without a password"
    assert set(proxy.requests) == {f"CONNECT {NAME_BEHIND_PROXY}"}
    host.password = "secret"  # noqa: S105 - of a test
    assert checked_url(url, str(tmp_path)) == url
    shutil.rmtree(tmp_path / there)
    host.password = ""
    assert checked_url(url, str(tmp_path)) == url


@pytest.mark.usefixtures("web")
def test_a_certificate_in_the_home_hides_no_public_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_bare(tmp_path / "r.git")
    shutil.copy(os.environ["GIT_SSL_CAINFO"], tmp_path / "ca.pem")
    monkeypatch.delenv("GIT_SSL_CAINFO")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (tmp_path / ".gitconfig").write_text("[http]\n  sslCAInfo = ~/ca.pem\n")
    with pytest.raises(RemoteError, match="everyone can read"):
        checked_url("git@git.example.invalid:r.git", str(tmp_path))


@pytest.mark.usefixtures("web")
def test_an_abbreviation_hides_no_public_repository(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, ssh: SshHost
) -> None:
    """Neither one of ssh or of git, nor ssh in the place of https: the world has no key."""
    make_bare(tmp_path / "r.git")
    config, client = tmp_path / "gitconfig", ssh.directory / "client"
    config.write_text(
        '[url "git@git.example.invalid:"]\n  insteadOf = https://git.example.invalid/\n  insteadOf = mine:\n'
        '[url "https://git.example.invalid/"]\n  insteadOf = web:\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    client.write_text("Host work\n  HostName git.example.invalid\n")
    one = make_machine(tmp_path / "one", run)
    one.write(A)
    for url in ("mine:r.git", "me@work:r.git"):
        said = one.run("remote", "add", url, code=4).output
        assert f"{url}: everyone can read https://git.example.invalid/r.git without a password" in " ".join(
            said.split()
        )
    assert "web:r.git: everyone can read it without a password" in one.run("remote", "add", "web:r.git", code=4).output
    assert "no remote is known" in one.run("remote").output


def test_a_host_of_ssh_that_does_not_answer_over_https_is_none_of_the_web(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr("reconcile.remote.git.address._ANSWER_S", 1.5)
        assert checked_url("git@git.example.org:r.git", str(tmp_path)) == "git@git.example.org:r.git"
        silent.settimeout(0)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()  # it was asked once


def test_a_silent_name_of_ssh_does_not_hide_the_host_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def answers(address: str, *_: object) -> bool:
        asked.append(address)
        if "silent" in address:
            raise UnreachableError("no answer", "check the network")
        return True

    monkeypatch.setattr("reconcile.remote.git.address.name_in_ssh", lambda _: "silent.example.org")
    monkeypatch.setattr("reconcile.remote.git.address._answers", answers)
    with pytest.raises(RemoteError, match=r"everyone can read https://git\.example\.org/r\.git"):
        checked_url("git@git.example.org:r.git", str(tmp_path))
    assert asked == ["https://silent.example.org/r.git", "https://git.example.org/r.git"]


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    with SshHost(tmp_path / "ssh") as host:
        monkeypatch.setenv("GIT_SSH_COMMAND", host.command)
        yield host


@pytest.fixture
def over_ssh(tmp_path: Path, run: Run, ssh: SshHost) -> tuple[Machine, Machine]:
    """Two machines that have synced one conversation."""
    url = ssh.url(make_bare(tmp_path / "r.git"))
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    assert len(one.sync(url)["sent"]) == 1
    assert len(other.sync(url)["taken"]) == 1
    one.append(A, 1, "b", LONG_AGO + SECOND)
    return one, other


@with_time
def test_two_machines_over_ssh(over_ssh: tuple[Machine, Machine]) -> None:
    one, other = over_ssh
    one.sync()
    other.sync()
    assert one.contents == other.contents
    one.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    other.append(A, 1, "d", LONG_AGO + 3 * SECOND)
    one.sync()
    assert len(other.sync()["forked"]) == 1
    quiet(one, other)


@with_time
def test_an_address_with_a_port_over_ssh(tmp_path: Path, run: Run, ssh: SshHost) -> None:
    one = make_machine(tmp_path / "one", run)
    one.write(A)
    assert len(one.sync(f"ssh://127.0.0.1:{ssh.port}{make_bare(tmp_path / 'r.git')}")["sent"]) == 1


@with_time
def test_the_ssh_command_of_the_users_configuration(
    tmp_path: Path, run: Run, ssh: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable, which counts more, is set in the other tests."""
    monkeypatch.delenv("GIT_SSH_COMMAND")
    url, one = ssh.url(make_bare(tmp_path / "r.git")), make_machine(tmp_path / "one", run)
    one.write(A)
    configure(one, f"core.sshCommand={ssh.command}")
    assert len(one.sync(url)["sent"]) == 1


def forget_the_host(ssh: SshHost) -> None:
    ssh.know()


def expect_another_key(ssh: SshHost) -> None:
    ssh.know("other")


def take_no_key(ssh: SshHost) -> None:
    ssh.admit("other")


REFUSED = {
    SshHost.stop: ("port {port}: Connection refused", "check the address and the network"),
    forget_the_host: ("Host key verification failed.", "connect with ssh at a terminal: it shows the key of the host"),
    expect_another_key: (
        "Host key verification failed.",
        "connect with ssh at a terminal: it shows the key of the host",
    ),
    take_no_key: ("Permission denied (publickey).", "add your public key there, or check which one ssh uses"),
}
"""What is wrong, and the words of ssh and of the hint."""


@with_time
@pytest.mark.parametrize("refuse", REFUSED, ids=lambda each: each.__name__)
def test_ssh_says_what_is_wrong(over_ssh: tuple[Machine, Machine], ssh: SshHost, refuse: Callable[..., None]) -> None:
    one, _ = over_ssh
    refuse(ssh)
    cause, hint = (text.format(port=ssh.port) for text in REFUSED[refuse])
    before, began = one.contents, time.monotonic()
    for words in (("sync",), ("sync", "-n"), ("remote", "check"), ("remote", "add", f"git-host:{ssh.directory}/r")):
        error, said_hint = one.run(*words, code=1).output.splitlines()
        assert error.startswith("error: git-host:")
        assert error.endswith(cause)
        assert said_hint == f"hint: {hint}"
    assert time.monotonic() - began < 20
    assert one.contents == before
    ssh.know("host")
    ssh.admit("mine")
    with ssh if refuse is SshHost.stop else nullcontext():
        assert len(one.sync()["sent"]) == 1


@with_time
@needs_setsid
def test_ssh_asks_nothing_if_the_input_is_no_terminal(over_ssh: tuple[Machine, Machine], ssh: SshHost) -> None:
    """A hook or a job of a shell has a terminal, but nobody who reads there."""
    one, _ = over_ssh
    ssh.know()
    words = shlex.join(command(*one.sides, "sync"))
    began = time.monotonic()
    code, shown = run_at_terminal(
        ["setsid", "--ctty", "sh", "-c", f"{words} < /dev/null"], env=os.environ | one.environment
    )
    assert time.monotonic() - began < 20
    assert code == 1
    assert "Host key verification failed." in " ".join(shown.split())
    assert "continue connecting" not in shown


@with_time
@needs_setsid
def test_ssh_asks_at_a_terminal(over_ssh: tuple[Machine, Machine], ssh: SshHost) -> None:
    one, _ = over_ssh
    ssh.know()
    session = Session(*one.sides, "sync", environ=one.environment, before=("setsid", "--ctty"))
    session.type("yes\n", after="continue connecting")
    code, shown = session.end()
    assert code == 0
    assert "continue connecting" in shown
    assert "1 conversation sent" in shown
    assert one.sync()["sent"] == []


@with_time
@pytest.mark.parametrize(("hook", "result"), [("pre-receive", "not arrived"), ("post-receive", "arrived")])
def test_an_ssh_server_that_dies_during_a_push(
    tmp_path: Path, over_ssh: tuple[Machine, Machine], ssh: SshHost, hook: str, result: str
) -> None:
    """The hook kills the server and all that it has started; the receiving git, too."""
    one, other = over_ssh
    script = tmp_path / "r.git" / "hooks" / hook
    script.write_text(DEATH.format(server=ssh.pid))
    script.chmod(0o755)
    said = one.run("sync", code=1).output
    assert "it may have it, or not" in said
    script.unlink()
    assert "Connection refused" in one.run("sync", code=1).output
    with ssh:
        assert f"has {result}" in one.run("sync", "--dry-run").output
        count = int(result != "arrived")
        assert f"{count} conversation{'' if count else 's'} to send, 0 to take, last" in one.run("status").output
        found = one.sync()
        assert found["interrupted_push"] == result
        assert len(found["sent"]) == (result != "arrived")
        git(tmp_path / "r.git", "fsck", "--strict")
        quiet(one, other)


@with_time
def test_an_ssh_connection_that_is_killed(
    tmp_path: Path, run: Run, ssh: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At random moments, with the receiving git. The server goes on."""
    bare = make_bare(tmp_path / "r.git")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.sync(ssh.url(bare))
    kill_after, kills = mortal_receiver(tmp_path, ssh.programs, "$receiver $PPID")
    sync_on_a_mortal_host(one, other, bare, kill_after, kills, ROUNDS // 3)


def all_files(home: Path) -> bytes:
    """Return all that a machine has, but for the user's own files."""
    own = {home / ".gitconfig", home / "helper"}
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and path not in own)


def configure(machine: Machine, *settings: str) -> None:
    """Write the user's own configuration of git."""
    for name, _, value in (text.partition("=") for text in settings):
        git(machine.home, "config", "--file", str(machine.home / ".gitconfig"), "--add", name, value)


@pytest.fixture
def with_helper(tmp_path: Path, run: Run, server: HttpHost) -> Machine:
    """A machine whose user has a credential helper, which counts how often it is asked."""
    machine = make_machine(tmp_path / "one", run)
    machine.write(A)
    helper = machine.home / "helper"
    helper.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\necho username=me\necho password={server.password}\n')
    helper.chmod(0o755)
    configure(machine, f"credential.helper={helper}")
    return machine


def test_a_credential_helper_answers_for_the_user(tmp_path: Path, with_helper: Machine, server: HttpHost) -> None:
    url = server.url(make_bare(tmp_path / "r.git"), user="")
    printed = with_helper.run("remote", "add", url).output
    printed += with_helper.run("sync", "--dry-run").output
    assert len(with_helper.sync()["sent"]) == 1
    with_helper.append(A, 1, "b", LONG_AGO + SECOND)
    asked = (tmp_path / "asked").read_text().count("get")
    tip = git(tmp_path / "r.git", "for-each-ref")
    with subprocess.Popen(
        command(*with_helper.sides, "watch", "--sync"),
        env=os.environ | with_helper.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    ) as watcher:
        end = time.monotonic() + 30
        while git(tmp_path / "r.git", "for-each-ref") == tip and time.monotonic() < end:
            time.sleep(0.1)
        watcher.terminate()
        said, _ = watcher.communicate(timeout=30)
    assert git(tmp_path / "r.git", "for-each-ref") != tip, said
    assert (tmp_path / "asked").read_text().count("get") > asked
    printed += said + with_helper.run("remote", "--json").output + with_helper.run("log", "--json").output
    assert "error" not in said
    assert server.password not in printed
    assert server.password.encode() not in all_files(with_helper.home)


@needs_setsid
@pytest.mark.parametrize("is_wrong", [False, True], ids=["no helper", "wrong password"])
def test_a_sync_without_a_password_says_so_and_asks_nobody(
    tmp_path: Path, with_helper: Machine, server: HttpHost, is_wrong: bool
) -> None:
    """A job of a shell has a terminal, but its input is no terminal."""
    one, url = with_helper, server.url(make_bare(tmp_path / "r.git"), user="")
    one.run("remote", "add", url)
    if is_wrong:
        server.password += "2"
    else:
        (one.home / ".gitconfig").unlink()
    before = one.contents
    for words in (("sync",), ("sync", "-n"), ("remote", "check"), ("remote", "add", f"{url}/x")):
        began = time.monotonic()
        quoted = shlex.join(command(*one.sides, *words))
        wanted = os.environ | one.environment
        code, shown = run_at_terminal(["setsid", "--ctty", "sh", "-c", f"{quoted} < /dev/null"], env=wanted)
        assert time.monotonic() - began < 20
        assert code == 1
        said = " ".join(shown.split())
        assert said.startswith(f"error: http://127.0.0.1:{server.port}/r.git")
        assert said.count("error: ") == said.count("hint: ") == 1
        assert said.endswith("hint: set up a credential helper of git that knows a user and password for this host")
        assert "secret" not in said
    assert one.contents == before
    assert b"secret" not in all_files(one.home)


PROXIES = ("~/.gitconfig", "config/git/config", "http_proxy", "https_proxy", "ALL_PROXY")
"""Where a user names a proxy: in one of git's own files, or in a variable."""


@pytest.fixture(params=PROXIES)
def behind_proxy(
    request: pytest.FixtureRequest, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Machine, HttpHost, ForwardProxy]]:
    """A machine that reaches a host through a proxy alone."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    certificate = make_certificate(tmp_path / "key.pem", NAME_BEHIND_PROXY) if request.param == "https_proxy" else None
    machine = make_machine(tmp_path / "one", run)
    machine.write(A)
    with HttpHost(tmp_path, certificate) as host, ForwardProxy(host.port) as proxy:
        if request.param in PROXIES[:2]:
            file = machine.home / request.param.removeprefix("~/")
            file.parent.mkdir(parents=True, exist_ok=True)
            git(machine.home, "config", "--file", str(file), "http.proxy", proxy.url)
        else:
            monkeypatch.setenv(request.param, proxy.url)
        if certificate is not None:
            configure(machine, f"http.sslCAInfo={certificate}")
        yield machine, host, proxy


def test_a_sync_goes_through_the_proxy_of_the_user(
    tmp_path: Path, behind_proxy: tuple[Machine, HttpHost, ForwardProxy]
) -> None:
    machine, host, proxy = behind_proxy
    machine.run("remote", "add", host.url(make_bare(tmp_path / "r.git"), name=NAME_BEHIND_PROXY))
    for _ in range(2):
        asked = len(proxy.requests)
        assert len(machine.sync()["sent"]) == 1
        assert len(proxy.requests) > asked
        machine.append(A, 1, "b", LONG_AGO + SECOND)


def test_a_public_repository_behind_the_proxy_of_the_user_is_refused(
    tmp_path: Path, behind_proxy: tuple[Machine, HttpHost, ForwardProxy]
) -> None:
    machine, host, _ = behind_proxy
    host.password = ""
    url = host.url(make_bare(tmp_path / "r.git"), name=NAME_BEHIND_PROXY)
    assert "everyone can read it" in machine.run("remote", "add", url, code=4).output


def make_again(tmp_path: Path, run: Run, url: str, *extra: str) -> None:
    """Lose an object at the host, and follow the hint of a machine that doesn't get it."""
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.take_key()
    one.write(A)
    one.run("remote", "add", *extra, url)
    one.sync()
    other.sync(url)
    one.append(A, 1, "b", LONG_AGO + SECOND)
    one.sync()
    lose_blob(tmp_path / "r.git")
    before = other.contents
    said, hint = other.run("sync", code=4).output.splitlines()
    assert "the repository is damaged at its host: fatal: unable to read " in said
    assert "secret" not in said
    assert other.contents == before
    shutil.rmtree(tmp_path / "r.git")
    git(make_bare(tmp_path / "r.git"), "config", "http.receivepack", "true")
    assert hint.endswith(": reconcile remote accept && reconcile sync")
    for machine in (one, other):
        machine.run("remote", "accept")
        machine.run("sync")
    quiet(one, other)
    assert other.events(A) == 4


@pytest.mark.parametrize("extra", [(), ("--encrypt",)], ids=["plain", "encrypted"])
def test_an_object_that_a_host_has_lost_over_http(
    tmp_path: Path, run: Run, server: HttpHost, extra: tuple[str, ...]
) -> None:
    make_again(tmp_path, run, server.url(make_bare(tmp_path / "r.git")), *extra)


def test_a_host_that_hangs_up_each_time(tmp_path: Path, run: Run, server: HttpHost) -> None:
    """Over http, git 2.39 does not say that the host has damaged objects: the hint names the page that does."""
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    url = server.url(make_bare(tmp_path / "r.git"))
    one.write(A)
    one.sync(url)
    other.sync(url)
    one.append(A, 1, "b", LONG_AGO + SECOND)
    one.sync()
    overwrite_pack(tmp_path / "r.git")
    said, hint = other.run("sync", code=1).output.splitlines()
    assert "git can't fetch from it: fatal: " in said
    assert hint == "hint: run it again; if it fails each time: reconcile help several-machines"
    page = " ".join(run("help", "several-machines").output.split())
    assert "damaged at its host" in page
    assert "make an empty one at the same address" in page


@with_time
def test_an_object_that_a_host_has_lost_over_ssh(tmp_path: Path, run: Run, ssh: SshHost) -> None:
    make_again(tmp_path, run, ssh.url(make_bare(tmp_path / "r.git")))

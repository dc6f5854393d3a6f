"""Hosts that fall silent or cut the line, behind a proxy: git's own daemon, and a sync as a process of its own."""

from __future__ import annotations

import base64
import os
import random
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.remote.git.process import SilentError, ask_host
from tests.support.projects.machines import Machine, make_bare, make_machine
from tests.support.projects.world import LONG_AGO, SECOND, event, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run

A = 17528832000
ACCEPTED = b"unpack ok"
"""The host's words after it has moved the ref."""
pytestmark = pytest.mark.long


class Proxy:
    """Passes bytes on, and counts them, those of answers by True.

    `fault` is one of "" (none), "cut" and "hang" (after the swap), "dead" and "silent" (always).
    """

    def __init__(self, port: int) -> None:
        self.to, self.fault, self.swaps = port, "", 0
        self.bytes = {False: 0, True: 0}
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for each in self.open:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            self.open.append(client)
            if self.fault == "dead":
                client.close()
            elif self.fault != "silent":
                host = socket.create_connection(("127.0.0.1", self.to))
                self.open.append(host)
                threading.Thread(target=self._pass, args=(client, host), daemon=True).start()
                threading.Thread(target=self._pass, args=(host, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool = False) -> None:
        try:
            while content := source.recv(1 << 16):
                self.bytes[is_answer] += len(content)
                if is_answer and ACCEPTED in content:
                    self.swaps += 1
                    if self.fault == "hang":
                        self.fault = "silent"
                        return
                    if self.fault == "cut":
                        self.fault = "dead"
                        break
                target.sendall(content)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["git", "daemon", "--reuseaddr", f"--port={port}", "--listen=127.0.0.1", f"--base-path={tmp_path}"]
    words += ["--export-all", "--enable=receive-pack", "--informative-errors"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) as daemon:
        for _ in range(100):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            pytest.skip("git has no daemon here")
        found = Proxy(port)
        yield found
        found.close()
        os.killpg(daemon.pid, 15)


@pytest.fixture
def machine(tmp_path: Path, run: Run, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("reconcile.remote.git.process.SILENCE_S", 2.0)
    make_bare(tmp_path / "r.git")
    made = make_machine(tmp_path / "one", run)
    made.write(A)
    made.sync(f"git://127.0.0.1:{proxy.port}/r.git")
    made.append(A, 1, "b", LONG_AGO + SECOND)
    return made


@pytest.mark.parametrize("command", [("sync",), ("sync", "-n"), ("remote", "check")], ids=" ".join)
def test_a_host_that_says_nothing_ends_a_sync(machine: Machine, proxy: Proxy, command: tuple[str, ...]) -> None:
    proxy.fault = "silent"
    before, began = machine.contents, time.monotonic()
    said = machine.run(*command, code=1).output
    assert time.monotonic() - began < 20
    assert "the host gave no answer for 2 seconds" in said
    assert len(said.splitlines()) == 2
    assert machine.contents == before
    proxy.fault = ""
    assert len(machine.sync()["sent"]) == 1


@pytest.mark.parametrize("fault", ["cut", "hang"])
def test_a_line_that_fails_after_the_swap(machine: Machine, proxy: Proxy, fault: str) -> None:
    swaps, proxy.fault = proxy.swaps, fault
    said = machine.run("sync", code=1).output
    assert "it may have it, or not" in said
    assert proxy.swaps == swaps + 1
    proxy.fault = ""
    assert "has arrived" in machine.run("sync", "--dry-run").output
    found = machine.sync()
    assert found["interrupted_push"] == "arrived"
    assert not found["sent"]
    assert machine.sync()["interrupted_push"] is None


def test_a_push_that_never_arrived_is_told_and_sent_again(machine: Machine, proxy: Proxy) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconcile.remote.git.engine.GitEngine._push", lambda *_: ask_silently(proxy))
        assert "it may have it, or not" in machine.run("sync", code=1).output
    proxy.fault = ""
    assert "has not arrived" in machine.run("sync", "--dry-run").output
    found = machine.sync()
    assert found["interrupted_push"] == "not arrived"
    assert len(found["sent"]) == 1


def ask_silently(proxy: Proxy) -> subprocess.CompletedProcess[bytes]:
    proxy.fault = "dead"
    return subprocess.CompletedProcess([], 1, b"", b"")


def test_a_process_that_git_left_behind_does_not_hold_a_sync(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ssh does that stays for its next use: it keeps git's standard error open."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\nshift\nwhile [ "$1" != git-upload-pack ] && [ $# -gt 1 ]; do shift; done\n'
        'sleep 30 >&2 & sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    began = time.monotonic()
    machine.run("remote", "add", f"host:{make_bare(tmp_path / 'other.git')}", code=0)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_person_at_a_terminal_has_time_to_answer(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """git and ssh say nothing on their pipes while they ask there."""
    monkeypatch.setattr("reconcile.remote.git.process.SILENCE_S", 0.5)
    monkeypatch.setattr("os.isatty", lambda _: is_terminal)
    asks = ["-c", "alias.asks=!sleep 1.5; echo answered", "asks"]
    if is_terminal:
        assert ask_host(asks, "host").stdout == b"answered\n"
    else:
        with pytest.raises(SilentError, match=r"no answer for 0\.5 seconds"):
            ask_host(asks, "host")


SIZE, EVENT = 3 << 20, 300
"""The bytes of a conversation's events, and of the content of one; random, so that no program makes them less."""


def random_event(chance: random.Random, number: int, size: int) -> dict[str, str]:
    return event(number, base64.b64encode(chance.randbytes(size * 3 // 4)).decode())


@pytest.mark.parametrize(
    ("extra", "most"),
    [
        # The size of the pack is that of docs/design/remotes.md#cost; the rest is the event, and what git asks before.
        ((), 713 + EVENT + 2048),
        (("--encrypt",), (64 << 10) + EVENT + 4096),  # a piece, which a new event may fill
    ],
    ids=["plain", "encrypted"],
)
def test_an_event_more_sends_no_whole_conversation(
    tmp_path: Path, run: Run, proxy: Proxy, extra: tuple[str, ...], most: int
) -> None:
    """Of 3 MB, in pieces of 1 MiB or 64 KiB, an append changes the last one. git sends what is new in it."""
    chance, url = random.Random(1), f"git://127.0.0.1:{proxy.port}/r.git"
    make_bare(tmp_path / "r.git")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.take_key()
    path = one.write(A) / "events.json"
    stream = [random_event(chance, number, 3000) for number in range(SIZE // 3100)]
    write_json(path, stream, LONG_AGO)
    one.run("remote", "add", *extra, url)
    one.sync()
    assert proxy.bytes[False] > SIZE / 2
    other.sync(url)
    for number in range(8):
        stream.append(random_event(chance, len(stream), EVENT))
        write_json(path, stream, LONG_AGO + (number + 1) * SECOND)
        before = dict(proxy.bytes)
        assert len(one.sync()["sent"]) == 1
        assert proxy.bytes[False] - before[False] <= most
        before = dict(proxy.bytes)
        assert len(other.sync()["taken"]) == 1
        assert proxy.bytes[True] - before[True] <= most + 1024, "the answers name the refs of the host, too"
    assert other.contents == one.contents

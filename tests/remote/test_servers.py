"""A remote over http, served by git's own http-backend, and over ssh, if there is a server."""

from __future__ import annotations

import base64
import os
import random
import shutil
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import git, make_bare, make_machine, quiet
from tests.support.projects.world import LONG_AGO, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

A = 17528832000
BACKEND = (
    Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())
    / "git-http-backend"
)
pytestmark = pytest.mark.long
SIZE, ROUNDS = 2_000, 24
"""The events of a conversation that is pushed, and the number of pushes."""
RECEIVER = """#!/bin/sh
if [ -f {patience} ]; then
    patience=$(cat {patience})
    rm {patience}
    git receive-pack "$@" <&0 &
    (sleep "$patience"; kill -9 $! && printf x >> {kills}) < /dev/null > /dev/null 2>&1 &
    wait $!
else
    exec git receive-pack "$@"
fi
"""
"""The program of that name; a file has the seconds after which it is killed, once."""


class Handler(BaseHTTPRequestHandler):
    root: Path
    password = ""
    patience_s: float | None = None
    """Seconds after which the next process that receives a push is killed."""
    kills = 0

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        wanted = "Basic " + base64.b64encode(f"me:{self.password}".encode()).decode()
        if self.password and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "me",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "CONTENT_LENGTH": str(len(body)),
        }
        done = self._answer(environ, body)
        if not done:  # it was killed
            self.close_connection = True
            return
        head, _, content = done.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, environ: dict[str, str], body: bytes) -> bytes:
        """Return what the backend prints; nothing if it was killed before its end, with all that it has started."""
        is_push = self.command == "POST" and environ["PATH_INFO"].endswith("git-receive-pack")
        patience_s, Handler.patience_s = (self.patience_s, None) if is_push else (None, self.patience_s)
        with subprocess.Popen(
            [str(BACKEND)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as backend:
            try:
                return backend.communicate(body, timeout=patience_s)[0]
            except subprocess.TimeoutExpired:
                os.killpg(backend.pid, signal.SIGKILL)
                Handler.kills += 1
                return b""

    do_GET = do_POST = _serve  # noqa: N815 - the names of http.server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    if not BACKEND.exists():
        pytest.skip("git has no http-backend here")
    Handler.root = tmp_path
    Handler.password, Handler.patience_s, Handler.kills = "secret", None, 0
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_two_machines_over_http(tmp_path: Path, run: Run, server: ThreadingHTTPServer) -> None:
    bare = make_bare(tmp_path / "r.git")
    git(bare, "config", "http.receivepack", "true")
    url = f"http://me:secret@127.0.0.1:{server.server_port}/r.git"
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
    server.shutdown()
    server.server_close()
    assert "secret" not in other.run("sync", code=1).output


def sync_on_a_mortal_host(
    one: Machine, other: Machine, bare: Path, kill_after: Callable[[float], object], kills: Callable[[], int]
) -> None:
    """Let the host die during pushes: the next sync goes on, nothing is lost, and the repository is sound.

    The moments come close to the end of the push: there the ref is moved.
    """
    chance, patience_s = random.Random(1), 0.2
    for number in range(ROUNDS):
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
    assert kills() > ROUNDS / 4


def test_a_backend_that_is_killed(tmp_path: Path, run: Run, server: ThreadingHTTPServer) -> None:
    bare = make_bare(tmp_path / "r.git")
    git(bare, "config", "http.receivepack", "true")
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.sync(f"http://me:secret@127.0.0.1:{server.server_port}/r.git")

    def kill_after(seconds: float) -> None:
        Handler.patience_s = seconds

    sync_on_a_mortal_host(one, other, bare, kill_after, lambda: Handler.kills)


def test_a_receiving_git_that_is_killed(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remote is a directory: git starts the receiving process itself."""
    bare, programs, patience, kills = (tmp_path / name for name in ("r.git", "programs", "patience", "kills"))
    programs.mkdir()
    for program in BACKEND.parent.iterdir():
        if program.name != "git-receive-pack":
            (programs / program.name).symlink_to(program)
    receiver = programs / "git-receive-pack"
    receiver.write_text(RECEIVER.format(patience=patience, kills=kills))
    receiver.chmod(0o755)
    kills.touch()
    monkeypatch.setenv("GIT_EXEC_PATH", str(programs))
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    for machine in (one, other):
        machine.sync(str(make_bare(bare)))
    sync_on_a_mortal_host(
        one, other, bare, lambda seconds: patience.write_text(f"{seconds:.3f}"), lambda: len(kills.read_bytes())
    )


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
    assert one.sync()["interrupted_push"] == "not arrived"
    git(bare, "fsck", "--strict")


def test_a_repository_that_the_world_can_read_is_refused(tmp_path: Path, run: Run, server: ThreadingHTTPServer) -> None:
    Handler.password = ""
    git(make_bare(tmp_path / "r.git"), "config", "http.receivepack", "true")
    one = make_machine(tmp_path / "one", run)
    one.write(A)
    url = f"http://me:secret@127.0.0.1:{server.server_port}/r.git"
    found = one.run("remote", "add", url, code=4).output
    assert "everyone can read it" in found
    assert "secret" not in found


def test_two_machines_over_ssh(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not os.access(sshd, os.X_OK) or shutil.which("ssh") is None:
        pytest.skip("no sshd here")
    for name in ("host", "mine"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    (tmp_path / "keys").write_text((tmp_path / "mine.pub").read_text())
    port = 20000 + os.getpid() % 20000
    lines = [f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {tmp_path / 'host'}", "UsePAM no", "StrictModes no"]
    lines += [f"AuthorizedKeysFile {tmp_path / 'keys'}", f"PidFile {tmp_path / 'pid'}"]
    (tmp_path / "config").write_text("\n".join(lines) + "\n")
    with subprocess.Popen([sshd, "-D", "-e", "-f", str(tmp_path / "config")], stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        first = server.stderr.readline().decode()
        if "listening" not in first:
            pytest.skip(f"sshd does not start: {first.strip()}")
        options = f"-F none -i {tmp_path / 'mine'} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh {options}")
        try:
            url = f"ssh://127.0.0.1:{port}{make_bare(tmp_path / 'r.git')}"
            one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
            one.write(A)
            one.sync(url)
            one.append(A, 1, "b", LONG_AGO + SECOND)
            one.sync()
            other.sync(url)
            assert one.contents == other.contents
        finally:
            server.terminate()

"""A remote over http, served by git's own http-backend, and over ssh, if there is a server."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.world import LONG_AGO, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Run

A = 17528832000
BACKEND = (
    Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())
    / "git-http-backend"
)
pytestmark = pytest.mark.long


class Handler(BaseHTTPRequestHandler):
    root: Path
    password = ""

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
        done = subprocess.run([str(BACKEND)], env=environ, input=body, capture_output=True, check=False).stdout
        head, _, content = done.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _serve  # noqa: N815 - the names of http.server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    if not BACKEND.exists():
        pytest.skip("git has no http-backend here")
    Handler.root = tmp_path
    Handler.password = "secret"  # noqa: S105
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

"""A host of git repositories over http: git's own http-backend, behind a server that asks for a password."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self, cast
from urllib.parse import urlsplit

import pytest

from tests.support.projects.machines import git

PROGRAMS = Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())
"""The directory with the programs of git."""
_BACKEND = PROGRAMS / "git-http-backend"


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    @property
    def host(self) -> HttpHost:
        return cast("_Server", self.server).host

    def _serve(self) -> None:
        wanted = "Basic " + base64.b64encode(f"me:{self.host.password}".encode()).decode()
        if self.host.password and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.host.root),
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
        host, patience_s = self.host, None
        if self.command == "POST" and environ["PATH_INFO"].endswith("git-receive-pack"):
            patience_s, host.patience_s = host.patience_s, None
        with subprocess.Popen(
            [str(_BACKEND)],
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
                host.kills += 1
                return b""

    do_GET = do_POST = _serve  # noqa: N815 - the names of http.server


class _Server(ThreadingHTTPServer):
    host: HttpHost


class HttpHost:
    """The host of the repositories in a directory. The user is ``me``.

    ``patience_s``: seconds after which the next process that receives a push is killed; ``kills`` counts these.
    """

    def __init__(self, root: Path, certificate: Path | None = None) -> None:
        """Prepare; an empty password lets everyone in. ``certificate``: with its key, for https.

        Skips the test if git has no http-backend.
        """
        if not _BACKEND.exists():
            pytest.skip("git has no http-backend here")
        self.root, self.password, self.certificate = root, "secret", certificate
        self.patience_s: float | None = None
        self.kills = 0

    def url(self, repository: Path, user: str = "me:secret@", name: str = "") -> str:
        """Return the address of a repository, which takes pushes from now on. ``name``: of this host, for a proxy."""
        git(repository, "config", "http.receivepack", "true")
        scheme, place = "https" if self.certificate else "http", name or f"127.0.0.1:{self.port}"
        return f"{scheme}://{user}{place}/{repository.relative_to(self.root)}"

    def __enter__(self) -> Self:
        """Start the server."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.host = self
        self.port = self._server.server_port
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def make_certificate(path: Path, name: str) -> Path:
    """Make a certificate of a host, signed by itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes a certificate")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    words += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(path), "-out", str(path.with_suffix(".crt"))]
    subprocess.run(words, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


class _ProxyHandler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    @property
    def _proxy(self) -> ForwardProxy:
        return cast("ForwardProxy", self.server)

    def _port_of(self, place: str | None) -> int | None:
        self._proxy.requests.append(f"{self.command} {place}")
        if place != NAME_BEHIND_PROXY:
            self.send_error(403)
            return None
        return self._proxy.to

    def _forward(self) -> None:
        to = urlsplit(self.path)
        if (port := self._port_of(to.hostname)) is None:
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        host = HTTPConnection("127.0.0.1", port)
        host.request(self.command, f"{to.path}?{to.query}" if to.query else to.path, body, dict(self.headers.items()))
        answer = host.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        host.close()

    do_GET = do_POST = _forward  # noqa: N815 - the names of http.server

    def do_CONNECT(self) -> None:
        if (port := self._port_of(urlsplit(f"//{self.path}").hostname)) is None:
            return
        with socket.create_connection(("127.0.0.1", port)) as host:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pass, args=(host, self.connection), daemon=True)
            back.start()
            _pass(self.connection, host)
            back.join()
        self.close_connection = True


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(1 << 16):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


NAME_BEHIND_PROXY = "git.example.invalid"
"""A name that no one but the proxy knows."""


class ForwardProxy(ThreadingHTTPServer):
    """The only way to a host on this machine by its name; ``requests`` lists what it was asked."""

    daemon_threads = True

    def __init__(self, to: int) -> None:
        """Start it."""
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.to, self.requests = to, list[str]()
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.shutdown()
        self._thread.join()
        self.server_close()

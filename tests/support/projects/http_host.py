"""A host of git repositories over http: git's own http-backend, behind a server that asks for a password."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self, cast

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

    def __init__(self, root: Path, password: str = "secret") -> None:  # noqa: S107 - of this test
        """Prepare; an empty password lets everyone in. Skips the test if git has no http-backend."""
        if not _BACKEND.exists():
            pytest.skip("git has no http-backend here")
        self.root, self.password = root, password
        self.patience_s: float | None = None
        self.kills = 0

    def url(self, repository: Path, user: str = "me:secret@") -> str:
        """Return the address of a repository, which takes pushes from now on."""
        git(repository, "config", "http.receivepack", "true")
        return f"http://{user}127.0.0.1:{self.port}/{repository.relative_to(self.root)}"

    def __enter__(self) -> Self:
        """Start the server."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.host = self
        self.port = self._server.server_port
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

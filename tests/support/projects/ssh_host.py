"""A private ssh server on this machine, and the ssh configuration of a user who has it as a git host.

All its files are in one directory, and its port is free: no file of the system is changed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
ALIAS = "git-host"
"""The name of the server in the user's ssh configuration."""


class SshHost:
    """The server. ``command`` is what the user has in ``GIT_SSH_COMMAND``; ``programs`` comes first in its ``PATH``."""

    def __init__(self, directory: Path) -> None:
        """Make the keys and the configuration. Skips the test if there is no server, or if it can't start."""
        if not os.access(SSHD, os.X_OK) or shutil.which("ssh") is None:
            pytest.skip("no sshd here (Debian: apt-get install openssh-server)")
        self.directory = directory
        self.programs = directory / "programs"
        self.programs.mkdir(parents=True)
        for name in ("host", "mine", "other"):
            self.make_key(name)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self.admit("mine")
        self.know("host")
        self.set(IdentityFile=str(directory / "mine"))

    @property
    def command(self) -> str:
        return f"ssh -F {self.directory / 'client'}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def url(self, repository: Path) -> str:
        return f"{ALIAS}:{repository}"

    def make_key(self, name: str) -> None:
        path = self.directory / name
        path.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)

    def admit(self, *names: str) -> None:
        """Let the server accept the keys of these names, and no others."""
        keys = "".join((self.directory / f"{name}.pub").read_text() for name in names)
        (self.directory / "authorized_keys").write_text(keys)

    def know(self, *names: str) -> None:
        """Let the user know the server by the keys of these names."""
        keys = [" ".join((self.directory / f"{name}.pub").read_text().split()[:2]) for name in names]
        lines = "".join(f"[127.0.0.1]:{self.port} {key}\n" for key in keys)
        (self.directory / "known_hosts").write_text(lines)

    def set(self, **options: str) -> None:
        """Write the user's configuration: the host, and these options."""
        every = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": str(self.directory / "known_hosts"),
            "GlobalKnownHostsFile": "none",
        }
        lines = [f"Host {ALIAS} 127.0.0.1", *(f"  {name} {value}" for name, value in (every | options).items())]
        (self.directory / "client").write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Self:
        """Start the server, also one that was killed."""
        self.stop()
        own = self.directory
        lines = [f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {own / 'host'}", "UsePAM no"]
        lines += ["StrictModes no", f"AuthorizedKeysFile {own / 'authorized_keys'}", f"PidFile {own / 'pid'}"]
        lines += [
            "Subsystem sftp internal-sftp",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            f"SetEnv PATH={self.programs}:{os.environ['PATH']}",
        ]
        (own / "server").write_text("\n".join(lines) + "\n")
        with (own / "server.log").open("wb") as log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(own / "server")], stderr=log)
        for _ in range(100):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        pytest.skip(f"sshd does not start: {(own / 'server.log').read_text().strip()}")

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; connections that are open go on."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

"""The programs that manage services: systemd's user manager, and launchd.

``systemctl --user`` answers only where a user manager runs: in a session of a login, not after ``su`` or in most
containers. ``launchctl`` manages agents of ``gui/<uid>`` only while the user is logged in at the screen.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from reconcile.errors import ReconcileError
from reconcile.fs.home import home_directory
from reconcile.fs.paths import open_regular
from reconcile.fs.private_files import replace_private_file

from .files import LABEL, is_startable, property_list_of, read_property_list, read_unit, unit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .files import Service

_UNIT = "reconcile.service"
_LIMIT = 1 << 16
_AT_SCREEN = "log in at the screen, and run it again there"
_PATIENCE = 30
"""Seconds that a call may take."""
_ATTEMPTS = 20
"""How often launchd is asked to load the file, half a second apart: it ends the old process in the background."""


class ServiceError(ReconcileError):
    """The service can't be installed, or removed."""


class State(NamedTuple):
    """The state of the service as its manager tells it; None: it does not tell. ``stops_at_logout``: systemd's."""

    is_enabled: bool | None = None
    is_running: bool | None = None
    pid: int | None = None
    stops_at_logout: bool | None = None
    trouble: str = ""


class Manager(Protocol):
    """A manager of services. ``file`` is the path of the service's file."""

    name: str
    file: str

    def read(self) -> Service | None:
        """Return what the file says; None without one. Raises `ServiceError` if another program has written it."""

    def text(self, service: Service) -> str:
        """Return the content of the file."""

    def check(self, service: Service) -> None:
        """Raise `ServiceError` if `install` would fail before it writes: without a manager, or for such a program."""

    def install(self, service: Service) -> None:
        """Write the file, and start the service, also at every login. Raises `ServiceError`, `OSError`."""

    def state(self) -> State:
        """Return the state of the service."""

    def remove(self) -> None:
        """Stop the service, and remove its file. Raises `ServiceError`, `OSError`."""


def manager_of(platform: str, environ: Mapping[str, str]) -> Manager:
    """Return the manager of this system. Raises `ServiceError` if it has none of both."""
    home = home_directory(environ)
    if platform == "darwin":
        return Launchd(home)
    if platform.startswith("linux"):
        return Systemd(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"))
    raise ServiceError(f"no services are known on this system ({platform})", _otherwise("reconcile"))


def _otherwise(program: str) -> str:
    return f"let the desktop's autostart or cron (@reboot) start it: {program} watch --all --quiet"


def _run_program(*words: str) -> subprocess.CompletedProcess[str]:
    """Call a program. Raises `OSError`, `subprocess.TimeoutExpired`."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=_PATIENCE)  # noqa: S603


def _answer(*words: str) -> tuple[str | None, str]:
    """Call a program, and return its output; None if it has failed, with the reason."""
    try:
        done = _run_program(*words)
    except FileNotFoundError:
        return None, f"there is no {words[0]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{words[0]}: {error}"
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return (done.stdout, "") if done.returncode == 0 else (None, lines[0] if lines else f"{words[0]} has failed")


def _read(path: str, parse: Callable[[str], Service | None]) -> Service | None:
    try:
        with open_regular(path) as file:
            text = file.read(_LIMIT).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        if not os.path.islink(path):
            return None
        text = ""
    except OSError as error:
        raise ServiceError(f"{path}: {error.strerror}", "move it away") from None
    if (service := parse(text)) is None:
        raise ServiceError(f"{path}: not written by reconcile, so it stays as it is", "move it away, then run again")
    return service


def _remove_with_empty_directories(path: str, levels: int) -> None:
    """Remove a file, and so many directories above it if they are empty. Raises `OSError`."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        for _ in range(levels):
            path = os.path.dirname(path)
            os.rmdir(path)


class Systemd:
    """The user manager of systemd; ``config`` is ``$XDG_CONFIG_HOME``."""

    name = "systemd"

    def __init__(self, config: str) -> None:
        self._directory = os.path.join(config, "systemd", "user")
        self.file = os.path.join(self._directory, _UNIT)

    def read(self) -> Service | None:
        """See `Manager`."""
        return _read(self.file, read_unit)

    def text(self, service: Service) -> str:
        """See `Manager`."""
        return unit_of(service)

    def check(self, service: Service) -> None:
        """See `Manager`."""
        if not is_startable(service.program):
            raise ServiceError(
                f"systemd starts no program with a quote or a backslash in its path: {service.program}",
                "make a link to it, such as ~/.local/bin/reconcile, and call that",
            )
        answer, trouble = _answer("systemctl", "--user", "show", "--property=Version")
        if answer is None:
            way = "log in at the desktop or with ssh, not with su or sudo, and run it again"
            raise ServiceError(
                f"systemd's user manager does not answer: {trouble}", f"{way}\n{_otherwise(service.program)}"
            )

    def install(self, service: Service) -> None:
        """See `Manager`. What fails halfway leaves no file behind that wasn't there."""
        before = self.read()
        self.check(service)
        os.makedirs(self._directory, exist_ok=True)
        replace_private_file(self.file, self.text(service).encode("utf-8", "surrogateescape"))
        for words in (("daemon-reload",), ("enable", _UNIT), ("restart", _UNIT)):
            answer, trouble = _answer("systemctl", "--user", *words)
            if answer is None:
                if before is None:
                    self.remove()
                raise ServiceError(f"systemctl --user {' '.join(words)}: {trouble}", _otherwise(service.program))

    def state(self) -> State:
        """See `Manager`."""
        properties = ("UnitFileState", "ActiveState", "MainPID")
        answer, trouble = _answer("systemctl", "--user", "show", _UNIT, f"--property={','.join(properties)}")
        if answer is None:
            return State(trouble=f"systemd's user manager does not answer: {trouble}")
        values = dict(line.partition("=")[::2] for line in answer.splitlines())
        user = os.environ.get("USER") or getpass.getuser()
        lingers, _ = _answer("loginctl", "show-user", user, "--property=Linger")
        pid = values.get("MainPID", "")
        return State(
            is_enabled=values.get("UnitFileState") == "enabled",
            is_running=values.get("ActiveState") in ("active", "reloading"),  # activating: it waits for a restart
            pid=int(pid) if pid.isdecimal() and int(pid) else None,
            stops_at_logout=None if lingers is None else lingers.strip() == "Linger=no",
        )

    def remove(self) -> None:
        """See `Manager`. Where the manager doesn't answer, its link to the file is removed as it would be."""
        self.read()
        _answer("systemctl", "--user", "disable", "--now", _UNIT)
        _remove_with_empty_directories(os.path.join(self._directory, "default.target.wants", _UNIT), 1)
        _remove_with_empty_directories(self.file, 2)
        _answer("systemctl", "--user", "daemon-reload")


class Launchd:
    """The launchd of macOS, for the agents of a user who is logged in at the screen."""

    name = "launchd"

    def __init__(self, home: str) -> None:
        self.file = os.path.join(home, "Library", "LaunchAgents", f"{LABEL}.plist")
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"

    def read(self) -> Service | None:
        """See `Manager`."""
        return _read(self.file, read_property_list)

    def text(self, service: Service) -> str:
        """See `Manager`."""
        return property_list_of(service)

    def check(self, service: Service) -> None:
        """See `Manager`."""
        if shutil.which("launchctl") is None:
            raise ServiceError("there is no launchctl", _otherwise(service.program))
        answer, trouble = _answer("launchctl", "print", self._domain)
        if answer is None:
            raise ServiceError(
                f"launchd knows no login at the screen: {trouble}", f"{_AT_SCREEN}\n{_otherwise(service.program)}"
            )

    def install(self, service: Service) -> None:
        """See `Manager`."""
        before = self.read()
        self.check(service)
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        replace_private_file(self.file, self.text(service).encode("utf-8", "surrogateescape"))
        _answer("launchctl", "bootout", self._target)
        _answer("launchctl", "enable", self._target)
        trouble = ""
        for attempt in range(_ATTEMPTS):
            answer, trouble = _answer("launchctl", "bootstrap", self._domain, self.file)
            if answer is not None:
                return
            if before is None and attempt:
                break  # there was no old process to wait for
            time.sleep(0.5)
        if before is None:
            self.remove()
        raise ServiceError(f"launchctl bootstrap: {trouble}", f"{_AT_SCREEN}\n{_otherwise(service.program)}")

    def state(self) -> State:
        """See `Manager`."""
        if shutil.which("launchctl") is None:
            return State(trouble="there is no launchctl")
        answer, _ = _answer("launchctl", "print", self._target)
        text = answer or ""
        pid = re.search(r"^\s*pid = (\d+)$", text, re.MULTILINE)
        is_running = re.search(r"^\s*state = running$", text, re.MULTILINE) is not None
        return State(is_enabled=answer is not None, is_running=is_running, pid=None if pid is None else int(pid[1]))

    def remove(self) -> None:
        """See `Manager`."""
        self.read()
        _answer("launchctl", "bootout", self._target)
        _remove_with_empty_directories(self.file, 0)

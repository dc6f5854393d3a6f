"""Fixtures for all tests. The command is loaded here, at import: inside pyfakefs it could not be found."""

from __future__ import annotations

import errno
import gc
import importlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import pytest
from click.testing import CliRunner
from hypothesis import settings

from reconcile.state import database_file
from reconcile.state.connection import LiveConnection
from tests.support.projects.world import make_project
from tests.support.scenarios import fake_level

if TYPE_CHECKING:
    import sqlite3

    from click import Command
    from click.testing import Result

    from tests.support.projects.world import World

(_SCRIPT,) = distribution("reconcile-fs").entry_points.select(group="console_scripts", name="reconcile")
_PACKAGE = _SCRIPT.module.rpartition(".")[0]
COMMAND = cast("Command", importlib.import_module(f"{_PACKAGE}.app").main)

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

_HOMES = itertools.count()

if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    # Tests start hundreds of programs; each would compile all that it imports.
    _BYTECODE = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(_BYTECODE)
    sys.dont_write_bytecode = False

# Most tests wait for the disk. Where there is room, pytest keeps their directories in memory instead; a test that needs
# another file system uses `tempfile`. PYTEST_DEBUG_TEMPROOT=DIR plays everything in DIR.
_MEMORY = "/dev/shm"  # noqa: S108 - pytest creates a directory of the user's own in it
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)

# What a shell starts in the background ignores Ctrl-C, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, not created: nothing of the developer's is ever read or written.

    It lies outside `tmp_path`, so that a test can compare the whole of that.
    """
    path = tmp_path_factory.getbasetemp() / "homes" / str(next(_HOMES))
    for name in list(os.environ):
        if name.startswith(("RECONCILE_", "GIT_", "JP_", "XDG_")):
            monkeypatch.delenv(name)
    for name, below in {
        "HOME": "",
        "JP_USER_DATA_DIR": "jp",
        "XDG_CACHE_HOME": "cache",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "XDG_RUNTIME_DIR": "runtime",
        "XDG_STATE_HOME": "state",
    }.items():
        monkeypatch.setenv(name, str(path / below))
    for name, value in {
        "GIT_CEILING_DIRECTORIES": str(tmp_path_factory.getbasetemp()),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A. Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.invalid",
        "GIT_COMMITTER_NAME": "A. Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.invalid",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    return path


class _Unflushed(LiveConnection):
    """A connection that does not wait for the disk."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(sql.replace("PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"), parameters)


@pytest.fixture(autouse=True)
def unflushed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk in this process: no test can see whether data has left the cache.

    The programs that tests start do flush.
    """
    if request.node.get_closest_marker("flushes") is None:
        monkeypatch.setattr(os, "fsync", os.fstat)  # which fails where fsync would: without an open file
        monkeypatch.setattr(database_file, "LiveConnection", _Unflushed)


@pytest.fixture(scope="session")
def is_bound_by_modes(tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Whether the modes of files bind this process: every user but root, and root without two capabilities."""
    path = tmp_path_factory.getbasetemp() / "unreadable"
    path.touch(0)
    try:
        path.read_bytes()
    except PermissionError:
        return True
    return False


@pytest.fixture(autouse=True)
def bound_by_modes(request: pytest.FixtureRequest) -> None:
    """Skip a test that needs the modes of files to bind it, if they don't."""
    if request.node.get_closest_marker("modes") is not None and not request.getfixturevalue("is_bound_by_modes"):
        pytest.skip("root may read and write everything: `make modes` plays it without these rights")


class Run(Protocol):
    """Runs ``reconcile`` with these arguments, in this process and without a terminal."""

    def __call__(self, *args: str | Path, stdin: str | None = None) -> Result: ...


@pytest.fixture
def run() -> Run:
    def invoke(*args: str | Path, stdin: str | None = None) -> Result:
        return CliRunner().invoke(COMMAND, [str(arg) for arg in args], input=stdin, catch_exceptions=False)

    return invoke


def _refuse_program(*_: object, **__: object) -> NoReturn:
    raise FileNotFoundError(errno.ENOENT, "there are no programs in the simulated file system")


@pytest.fixture(params=["fake", "real"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An empty directory: once in pyfakefs, once on the disk."""
    if request.param == "real":
        return tmp_path
    fake_level.prepare("reconcile", _PACKAGE)
    request.getfixturevalue("fs")
    # Neither a call of the kernel nor a program sees the simulated files; pyfakefs also confuses the pipes of programs.
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setattr("reconcile.fs.posix._find_renameat2", lambda: None)
    monkeypatch.setattr(subprocess, "Popen", _refuse_program)
    fake = Path("/root-of-test")
    fake.mkdir()
    return fake


def pytest_collection_finish() -> None:
    """Leave what is collected out of every collection of garbage: thousands of tests, which stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many faults were injected, where any were."""
    injected: Counter[str] = Counter()
    for report in itertools.chain(*terminalreporter.stats.values()):
        if getattr(report, "when", "") == "call":
            for name, value in report.user_properties:
                if name == "faults":
                    injected[value[0]] += value[1]
    for kind, count in sorted(injected.items()):
        terminalreporter.write_line(f"{count:7} faults injected: {kind}")


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    """Return a project without conversations, and without a store."""
    return make_project(tmp_path / "project", run)

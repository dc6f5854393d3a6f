"""The fake level: a file system simulated by pyfakefs, and a state in memory, which SQLite can't keep in it."""

from __future__ import annotations

import importlib
import itertools
import os
import pkgutil
import sqlite3
import stat
import sys
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyfakefs.fake_file import FakeDirectory
from pyfakefs.fake_os import FakeOsModule

from reconcile.state import database
from reconcile.state.schema import migrate
from tests.support.scenarios.disk_level import PARTITIONS, Node, Nodes
from tests.support.scenarios.trees import Blob, Folder, Link

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from pyfakefs.fake_file import FakeFile
    from pyfakefs.fake_filesystem import FakeFilesystem

_NUMBERS = itertools.count()


@cache
def prepare(*packages: str) -> None:
    """Make scenarios on pyfakefs cheap, once per process.

    pyfakefs forgets the modules that are imported while it is active, so each scenario would compile them again: all
    modules of ``packages`` are imported before, and ``filelock``, of which `reconcile.fs.locks` keeps a function. And
    pyfakefs has a helper that contains an import and takes a sixth of the time of a scenario: `os.fspath` does the
    same. Its calls relative to a descriptor get names as text: it can't join bytes with the path of the directory.
    """
    importlib.import_module("filelock")
    for name in packages:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    for name, loaded in list(sys.modules.items()):
        if name.startswith("pyfakefs.") and "make_string_path" in vars(loaded):
            vars(loaded)["make_string_path"] = os.fspath
    joined = FakeOsModule._path_with_dir_fd

    def joined_as_text(
        self: FakeOsModule, path: Any, call: Callable[..., object], dir_fd: int | None, *, check_supported: bool = True
    ) -> Any:
        name = os.fsdecode(path) if dir_fd is not None and isinstance(path, bytes) else path
        return joined(self, name, call, dir_fd, check_supported)

    mock.patch.object(FakeOsModule, "_path_with_dir_fd", joined_as_text).start()


def read_nodes(fs: FakeFilesystem, directory: Path) -> Nodes:
    """Return the entries below a directory with their inodes, by path.

    They are read from the objects of pyfakefs: a simulated system call takes 100 times as long as a real one, and the
    checks read each side ten times per command.
    """
    nodes: Nodes = {}
    _read_below(fs.get_object(str(directory)), "", nodes)
    return nodes


def _read_below(directory: FakeFile, prefix: str, nodes: Nodes) -> None:
    assert isinstance(directory, FakeDirectory)
    for name, file in directory.entries.items():
        path = prefix + name
        if stat.S_ISLNK(file.st_mode):
            nodes[path] = Node(Link(file.contents or ""), file.st_ino)
        elif not isinstance(file, FakeDirectory):
            nodes[path] = Node(Blob(file.byte_contents or b"", file.st_mtime_ns), file.st_ino)
        elif file.entries:
            _read_below(file, f"{path}/", nodes)
        elif name not in PARTITIONS:
            nodes[path] = Node(Folder(), file.st_ino)


class MemoryState:
    """A database in memory that lasts from command to command, until `forget`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open()
        monkeypatch.setattr(database, "open_for_writing", self._open_for_writing)
        monkeypatch.setattr(database, "open_for_reading", lambda *_: self._connect())

    def forget(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self._keeper.close()

    def _open(self) -> None:
        self._name = f"scenario-{next(_NUMBERS)}"
        self._keeper = self._connect()
        migrate(self._keeper, self._name)

    def _open_for_writing(self, directory: str, *_: object) -> sqlite3.Connection:
        os.makedirs(directory, exist_ok=True)  # for what lies beside the database
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"file:{self._name}?mode=memory&cache=shared", uri=True, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

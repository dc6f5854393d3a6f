"""The example of a fourth format (docs/examples/notes.py), for the tests, and values of its records."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.core.format import Entry
from reconcile.core.model import Copy, File, Partition, Side, Snapshot
from reconcile.core.units import Rules
from reconcile.disk.hashing import digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

PAGE = Path(__file__).parents[2] / "docs" / "examples" / "notes.py"
HOUR = 3_600 * 10**9


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes_format", PAGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


notes = _load()
FORMAT = notes.NotesFormat()
RULES = Rules(FORMAT, digest)


def side(which: Side, files: Mapping[str, bytes], at: int = 9, *, busy: bool = False) -> Snapshot:
    """Return what a scan finds where these files are, all of that hour of the day."""
    return snapshot(which, {path: (content, at * HOUR) for path, content in files.items()}, busy=busy)


def snapshot(which: Side, files: Mapping[str, tuple[bytes, int]], *, busy: bool = False) -> Snapshot:
    """Return what a scan finds where these files are, each with its time."""
    inside: dict[str, list[File]] = {}
    contents: dict[str, bytes] = {}
    for path, (content, time) in sorted(files.items()):
        record, _, name = path.partition("/")
        inside.setdefault(record, []).append(File(name, len(content), time, digest(content)))
        if not name:
            contents[record] = content
    copies = tuple(
        Copy(
            which,
            record,
            record,
            Partition.LIVE,
            None,
            tuple(inside[record]),
            FORMAT.read_record(record, contents[record]) if record in contents else None,
            None,
        )
        for record in sorted(inside)
        if FORMAT.entry(record, directory=record not in contents) is Entry.RECORD
    )
    found = notes.Found(dict(contents), busy) if which is Side.WORKSPACE else None
    return Snapshot(which, exists=bool(files), identity="1:1" if files else "", copies=copies, found=found)

"""What a scan finds, and that it neither follows, blocks on nor trips over what it may meet."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.fs.files import Directory
from reconcile.fs.hashing import digest, digest_file
from reconcile.model.snapshot import Fault, Foreign, Metadata, ParentKind, Partition, Problem, Side, Stream
from reconcile.scan import walker
from reconcile.scan.scan import inspect, scan

if TYPE_CHECKING:
    from reconcile.model.snapshot import Copy, Snapshot

FORMAT = get_format("jp")
A, B, C = "17528832001", "17528832002", "17528832003"
METADATA = b'{\n  "title": "T",\n  "last_activated_at": "2025-07-19 14:30:00.0"\n}\n'
BASE = b"{}\n"
EVENTS = b'[{"timestamp": "2025-07-19 14:30:00.0", "type": "chat_request"}]\n'


def make(directory: Path, *, metadata: bytes = METADATA, events: bytes = EVENTS) -> Path:
    """A whole conversation at ``directory``."""
    directory.mkdir(parents=True)
    (directory / "metadata.json").write_bytes(metadata)
    (directory / "base_config.json").write_bytes(BASE)
    (directory / "events.json").write_bytes(events)
    return directory


def look(root: Path | str, *events_for: str) -> Snapshot:
    return scan(Side.WORKSPACE, str(root), FORMAT, None, events_for=events_for).snapshot


def only(root: Path) -> Copy:
    (copy,) = look(root).copies
    return copy


def found(root: Path) -> dict[str, tuple[str, Partition, str | None]]:
    return {copy.path: (copy.conversation, copy.partition, copy.container) for copy in look(root).copies}


def fault(unit: object) -> tuple[str, str, str]:
    assert isinstance(unit, Fault)
    return unit.file, unit.found, unit.expected


def test_one_conversation(root: Path) -> None:
    directory = make(root / f"{A}-t")
    (directory / "NOTE.md").write_bytes(b"note")
    os.utime(directory / "events.json", ns=(1, 1_700_000_000_123_456_789))
    copy = only(root)
    assert (copy.side, copy.conversation, copy.path) == (Side.WORKSPACE, f"jp-c{A}", f"{A}-t")
    assert (copy.partition, copy.container, copy.obstructed) == (Partition.LIVE, None, False)
    assert [file.name for file in copy.files] == [
        "NOTE.md",
        "base_config.json",
        "events.json",
        "metadata.json",
    ]
    assert [file.digest for file in copy.files] == [digest(x) for x in (b"note", BASE, EVENTS, METADATA)]
    assert copy.files[2].mtime_ns == 1_700_000_000_123_456_789
    assert isinstance(copy.metadata, Metadata)
    assert (copy.metadata.title, copy.metadata.parent.kind) == ("T", ParentKind.ABSENT)
    assert copy.metadata.content == METADATA
    assert copy.stream == Stream(1, "2025-07-19 14:30:00.0")


def test_a_missing_side_and_a_side_that_is_a_file(root: Path) -> None:
    missing = look(root / "nothing")
    assert (missing.exists, missing.identity, missing.copies, missing.problems) == (False, "", (), ())
    (root / "file").write_text("x")
    wrong = look(root / "file")
    assert not wrong.exists
    assert wrong.problems == (Problem("", "a file is in the place of a directory"),)


def test_a_root_that_is_a_link_is_followed_where_a_separator_says_so(tmp_path: Path) -> None:
    make(tmp_path / "real" / A)
    (tmp_path / "link").symlink_to("real")
    assert look(f"{tmp_path}/link/") == look(tmp_path / "real")
    found = look(tmp_path / "link")
    assert (found.exists, found.copies) == (False, ())
    assert [problem.message for problem in found.problems] == ["a symbolic link is in the place of a directory"]


def test_copies_everywhere(root: Path) -> None:
    make(root / A / "conversations" / B / "conversations" / C)
    make(root / ".archive" / A / "conversations" / B)
    make(root / ".trash" / f"{A}-1")
    make(root / A / "conversations" / ".archive" / C)
    make(root / A / "conversations" / ".trash" / C / "conversations" / B)
    a, b, c = (f"jp-c{number}" for number in (A, B, C))
    expected = {
        f".archive/{A}": (a, Partition.ARCHIVE, None),
        f".trash/{A}-1": (a, Partition.TRASH, None),
        A: (a, Partition.LIVE, None),
        f".archive/{A}/conversations/{B}": (b, Partition.ARCHIVE, a),
        f"{A}/conversations/.trash/{C}/conversations/{B}": (b, Partition.TRASH, c),
        f"{A}/conversations/{B}": (b, Partition.LIVE, a),
        f"{A}/conversations/.archive/{C}": (c, Partition.ARCHIVE, a),
        f"{A}/conversations/.trash/{C}": (c, Partition.TRASH, a),
        f"{A}/conversations/{B}/conversations/{C}": (c, Partition.LIVE, b),
    }
    assert found(root) == expected
    assert list(found(root)) == list(expected), "by id, then path"
    assert look(root).problems == ()


def test_names_that_are_no_ids(root: Path) -> None:
    for name in ("README", f"{A}x", "conversations", ".staging-x", ".old-y", ".reconcile-z", ".git"):
        make(root / name)
    (root / f"{A}-notes.md").write_text("x")
    (root / ".DS_Store").write_text("x")
    snapshot = look(root)
    assert snapshot.copies == ()
    no_id = "a directory whose name is no id"
    assert snapshot.foreign == (
        Foreign(".old-y", "left over from an interrupted write"),
        Foreign(".staging-x", "left over from an interrupted write"),
        Foreign(f"{A}-notes.md", "a file"),
        Foreign(f"{A}x", no_id),
        Foreign("README", no_id),
        Foreign("conversations", no_id),
    )


def test_links_at_conversation_level_are_foreign(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere")
    side = tmp_path / "side"
    make(side / A / "conversations" / B)
    (side / C).symlink_to(tmp_path / "elsewhere")
    (side / ".archive").symlink_to(tmp_path)
    (side / A / "conversations" / C).symlink_to(tmp_path / "elsewhere")
    (side / A / "conversations" / B / "conversations").symlink_to(tmp_path)
    snapshot = look(side)
    assert [copy.path for copy in snapshot.copies] == [A, f"{A}/conversations/{B}"]
    assert [copy.obstructed for copy in snapshot.copies] == [False, True]
    paths = (".archive", f"{A}/conversations/{B}/conversations", f"{A}/conversations/{C}", C)
    assert snapshot.foreign == tuple(
        Foreign(path, "a symbolic link, which is never followed", link=True) for path in paths
    )


def test_managed_files_that_are_none(tmp_path: Path) -> None:
    directory = make(tmp_path / "side" / A)
    for name in ("metadata.json", "base_config.json"):
        (directory / name).unlink()
    (tmp_path / "real.json").write_bytes(METADATA)
    (directory / "metadata.json").symlink_to(tmp_path / "real.json")
    os.mkfifo(directory / "base_config.json")  # would block for ever if it were opened
    copy = only(tmp_path / "side")
    assert fault(copy.metadata) == ("metadata.json", "a symbolic link", "a regular file")
    assert fault(copy.stream) == ("base_config.json", "a named pipe", "a regular file")
    assert [(file.name, file.digest) for file in copy.files] == [("events.json", digest(EVENTS))]


def test_odd_entries_inside_a_copy(tmp_path: Path) -> None:
    directory = make(tmp_path / A)
    os.mkfifo(directory / "pipe")
    (directory / "sub").mkdir()
    (directory / "sub" / "link").symlink_to("/etc/passwd")
    (directory / "up").symlink_to("..")
    (directory / ".hidden-link").symlink_to("..")
    os.mkfifo(directory / ".hidden-pipe")
    (directory / ".cache").mkdir()
    os.mkfifo(directory / ".cache" / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(directory)  # the name of a socket has a short limit
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        snapshot = look(tmp_path)
    assert {entry.path.removeprefix(f"{A}/"): entry.what for entry in snapshot.foreign} == {
        ".cache/pipe": "a named pipe",
        ".hidden-pipe": "a named pipe",
        "pipe": "a named pipe",
        "socket": "a socket",
        "sub/link": "a symbolic link, which is never followed",
        "up": "a symbolic link, which is never followed",
    }
    special = [entry.path.removeprefix(f"{A}/") for entry in snapshot.foreign if entry.special]
    assert special == [".cache/pipe", ".hidden-pipe", "pipe", "socket"]
    assert len(snapshot.copies[0].files) == 3
    assert not isinstance(snapshot.copies[0].metadata, Fault)


@pytest.mark.parametrize("what", ["file", "link", "pipe"])
def test_something_else_called_conversations(tmp_path: Path, what: str) -> None:
    directory = make(tmp_path / A)
    name = directory / "conversations"
    if what == "file":
        name.write_text("x")
    elif what == "link":
        name.symlink_to(tmp_path)
    else:
        os.mkfifo(name)
    copy = only(tmp_path)
    assert copy.obstructed
    assert len(copy.files) == 3


def test_extras_in_directories(root: Path) -> None:
    directory = make(root / A)
    for name in (
        "sub/NOTE.md",
        "sub/deep/er/x",
        "sub/.git/config",
        ".dot",
        "a.tmp",
        "a.swp",
        "sub/events.json",
    ):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)
    names = [file.name for file in only(root).files if "/" in file.name or "json" not in file.name]
    assert names == ["sub/NOTE.md", "sub/deep/er/x", "sub/events.json"]


def test_units_that_are_missing_or_incomplete(root: Path) -> None:
    (root / A).mkdir()
    (root / A / "QUERY_MESSAGE.md").write_text("draft")
    copy = only(root)
    assert (copy.metadata, copy.stream) == (None, None)
    (root / A / "base_config.json").write_bytes(BASE)
    stream = only(root).stream
    assert isinstance(stream, Fault)
    assert stream.incomplete


def test_invalid_content_keeps_its_digest(root: Path) -> None:
    broken = b"<<<<<<< HEAD\n"
    make(root / A, metadata=broken, events=b"")
    copy = only(root)
    assert isinstance(copy.metadata, Fault)
    assert isinstance(copy.stream, Fault)
    assert {file.digest for file in copy.files} == {digest(broken), digest(b""), digest(BASE)}


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    make(tmp_path / f"{A}-{name}")
    (tmp_path / f"{A}-{name}" / name).write_text("x")
    scanned = scan(Side.STORE, str(tmp_path), FORMAT, None)
    assert scanned.snapshot.copies[0].path == f"{A}-{name}"
    assert scanned.snapshot.copies[0].files[-1].name == "metadata.json"
    assert scanned.snapshot.copies[0].files[1].name == name


def test_deeper_than_the_longest_path(tmp_path: Path) -> None:
    depth, number = 300, 17528832000
    fd = os.open(tmp_path, os.O_RDONLY)
    for level in range(depth):
        name = f"{number + level}-a-title-of-some-length"
        for part in (name, "conversations"):
            os.mkdir(part, dir_fd=fd)
            deeper = os.open(part, os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = deeper
    os.close(fd)
    snapshot = look(tmp_path)
    assert snapshot.problems == ()
    assert len(snapshot.copies) == depth
    assert len(snapshot.copies[-1].path) > os.pathconf(tmp_path, "PC_PATH_MAX")
    assert snapshot.copies[-1].container == f"jp-c{number + depth - 2}"
    shutil.rmtree(tmp_path / "17528832000-a-title-of-some-length", ignore_errors=True)


def deny(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Refuse these names. By hand, as mode 0 stops nobody who is root, here as in a container."""
    real_open = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if os.fspath(path).rpartition("/")[2] in names:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)


def test_files_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (make(tmp_path / A) / "NOTE.md").write_text("x")
    make(tmp_path / B)
    deny(monkeypatch, "events.json", "NOTE.md")
    snapshot = look(tmp_path)
    words = "Permission denied"
    assert fault(snapshot.copies[0].stream) == ("events.json", words, "a readable file")
    assert isinstance(snapshot.copies[0].metadata, Metadata)
    assert [f.name for f in snapshot.copies[0].files if f.digest is None] == [
        "NOTE.md",
        "base_config.json",
        "events.json",
    ]
    assert [problem.path for problem in snapshot.problems] == [
        f"{A}/NOTE.md",
        f"{A}/events.json",
        f"{B}/events.json",
    ]


def test_directories_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(make(tmp_path / A) / "conversations" / B)
    (tmp_path / A / "locked").mkdir()
    make(tmp_path / C)
    deny(monkeypatch, C, "conversations", "locked")
    first, second = look(tmp_path).copies
    assert first.obstructed
    assert isinstance(first.metadata, Metadata)
    assert (isinstance(second.metadata, Fault), isinstance(second.stream, Fault)) == (True, True)
    message = "can't be read (Permission denied)"
    paths = (f"{A}/conversations", f"{A}/locked", C)
    assert look(tmp_path).problems == tuple(Problem(path, message) for path in paths)


def test_a_root_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, tmp_path.name)
    snapshot = look(tmp_path)
    assert snapshot.exists
    assert snapshot.identity
    assert snapshot.problems == (Problem("", "can't be read (Permission denied)"),)


@pytest.mark.parametrize(("times", "good"), [(1, True), (2, True), (3, False)])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, good: bool
) -> None:
    """A usual copy is read at once; where that fails, it is looked at as carefully as any other, and read twice."""
    directory = make(tmp_path / A)
    real, left = os.read, [times]

    def read(fd: int, size: int) -> bytes:
        content = real(fd, size)
        if content.startswith(b"[") and left[0]:
            left[0] -= 1
            new = directory / "events.json.tmp"
            new.write_bytes(EVENTS)
            new.rename(directory / "events.json")  # the descriptor still shows the old file, at rest
        return content

    monkeypatch.setattr(os, "read", read)
    copy = only(tmp_path)
    if good:
        assert copy.stream == Stream(1, "2025-07-19 14:30:00.0")
    else:
        assert fault(copy.stream)[:2] == ("events.json", "it changes all the time")
    assert isinstance(copy.metadata, Metadata)


def test_a_file_that_grows_or_vanishes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown, gone = make(tmp_path / A) / "events.json", make(tmp_path / B) / "metadata.json"
    real = Directory.open_file

    def open_file(self: Directory, name: str) -> int:
        if name == "metadata.json":
            gone.unlink(missing_ok=True)
        fd = real(self, name)
        if name == "events.json":
            with grown.open("ab") as file:
                file.write(b" ")
        return fd

    monkeypatch.setattr(Directory, "open_file", open_file)
    first, second = look(tmp_path, f"jp-c{A}", f"jp-c{B}").copies
    assert isinstance(first.stream, Stream), "it grew before it was looked at, so it is at rest"
    assert fault(second.metadata)[:2] == ("metadata.json", "it changes all the time")


@pytest.mark.parametrize(("times", "problems"), [(1, 0), (99, 1)])
def test_a_conversation_renamed_during_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, problems: int
) -> None:
    make(tmp_path / f"{A}-0")
    real, done = walker.Walk.add_copy, [0]

    def rename(self: walker.Walk, *args: object) -> None:
        if done[0] < times:
            (tmp_path / f"{A}-{done[0]}").rename(tmp_path / f"{A}-{done[0] + 1}")
            done[0] += 1
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(walker.Walk, "add_copy", rename)
    snapshot = look(tmp_path)
    assert [copy.path for copy in snapshot.copies] == ([] if problems else [f"{A}-1"])
    assert any(problem.path == "" for problem in snapshot.problems) == bool(problems)


def test_events_only_where_asked_for(root: Path) -> None:
    make(root / A)
    make(root / B)
    event = ("2025-07-19 14:30:00", "chat_request")
    first, second = (copy.stream for copy in look(root, f"jp-c{B}").copies)
    assert isinstance(first, Stream)
    assert isinstance(second, Stream)
    assert first.events is None
    assert second.events is not None
    assert all(part in second.events[0].id for part in event)


def test_inspect_loads_the_events_of_what_was_scanned(root: Path) -> None:
    for number in (A, B):
        make(root / number)
    before = look(root)
    after = inspect(before, str(root), FORMAT, [f"jp-c{A}"])
    assert after == look(root, f"jp-c{A}")
    assert inspect(before, str(root), FORMAT, ["jp-c1"]) is before


def test_inspect_loads_the_bytes_of_what_was_scanned_where_they_can_be_held(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (A, B):
        make(root / number)
    before = look(root, f"jp-c{A}")
    for limit, held in ((len(EVENTS), EVENTS), (len(EVENTS) - 1, None)):
        monkeypatch.setattr("reconcile.scan.reader.LARGE", limit)
        after = inspect(before, str(root), FORMAT, [f"jp-c{A}"], contents=True)
        first, second = (copy.stream for copy in after.copies)
        assert isinstance(first, Stream)
        assert isinstance(second, Stream)
        assert (first.content, first.events is None, second.content) == (held, False, None)
    monkeypatch.setattr("reconcile.scan.reader.LARGE", len(EVENTS))
    after = inspect(before, str(root), FORMAT, [f"jp-c{A}"], contents=True)
    assert inspect(after, str(root), FORMAT, [f"jp-c{A}"], contents=True) is after
    (root / A / "events.json").write_bytes(b"[]")
    again = inspect(before, str(root), FORMAT, [f"jp-c{A}"], contents=True)
    assert fault(again.copies[0].stream)[0] == "base_config.json"


@pytest.mark.parametrize("change", ["edited", "removed", "appeared", "root removed"])
def test_inspect_refuses_another_content(root: Path, change: str) -> None:
    side = root / "side"
    directory = make(side / A, events=EVENTS.replace(b"[", b'[{"timestamp": "", "type": "config_delta"},', 1))
    (directory / "base_config.json").unlink()
    before = look(side)
    assert isinstance(before.copies[0].stream, Stream)
    if change == "edited":
        (directory / "events.json").write_bytes(EVENTS)
    elif change == "removed":
        (directory / "events.json").unlink()
    elif change == "appeared":
        (directory / "base_config.json").write_bytes(BASE)
    else:
        shutil.rmtree(side)
    after = inspect(before, str(side), FORMAT, [f"jp-c{A}"])
    assert fault(after.copies[0].stream)[0] == "events.json"


def test_digests_in_bounded_memory(tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "x").write_bytes(content)
    with (tmp_path / "x").open("rb") as file:
        assert digest_file(file.fileno()) == digest(content)
    assert len(digest(b"")) == 32

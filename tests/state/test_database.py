"""The state's file and what it remembers, on real directories."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    LOST,
    AsideKind,
    AsideRecord,
    Baseline,
    BaselineEntry,
    ConversationRecord,
    DecidedUnit,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
)
from reconcile.model.snapshot import METADATA, STREAM, Side
from reconcile.state import connection, database_file
from reconcile.state.baseline_table import MAX_NAMES
from reconcile.state.connection import select, write_rows
from reconcile.state.database import BaselineUpdate, Checkout, Conflict, State, StateError
from reconcile.state.database_file import connect_to_file_alone
from reconcile.state.directory import data_directory, generation, state_directory
from reconcile.state.journal import IntentChange, Step, StepState
from reconcile.state.schema import LIBRARY, MIGRATIONS, VERSION, migrate, version_of
from reconcile.state.vault import Version, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).parents[2]
DAY = 24 * 3600 * 10**9
NOW = 1_795_303_812_000_000_000  # 2026-11-21 23:30:12 UTC
AGREED = BaselineEntry(
    {"metadata": "m1", "stream": "b1+e1", "extra:NOTE.md": "x1"}, "1", "Título", None, "1-t/conversations/2"
)
PROJECTED = Intent(IntentKind.PROJECTED)
LOCAL = Intent(IntentKind.LOCAL)
REMOVED = Intent(IntentKind.REMOVED, waits_for="1", place="1-t/conversations/2", run="r")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data" / "jp-abc"


@pytest.fixture
def state(place: Path) -> Iterator[State]:
    with State.open(str(place)) as opened:
        yield opened


@pytest.fixture
def here(state: State) -> int:
    found = state.checkout("/home/me/project", "8:100", NOW)
    assert found is not None
    return found


def tree(directory: Path) -> dict[str, tuple[bytes | None, int]]:
    """Names, contents and times of all that is there; of ``-shm``, where readers make notes, the name."""
    found: dict[str, tuple[bytes | None, int]] = {}
    for path in (directory, *directory.rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (None, 0) if path.name.endswith("-shm") else (content, path.lstat().st_mtime_ns)
    return found


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# The file


def test_directory_of_a_key() -> None:
    assert state_directory("jp-abc", {"RECONCILE_STATE_DIR": "/var/x"}) == "/var/x/jp-abc"


@pytest.mark.parametrize("environ", [{}, {"RECONCILE_STATE_DIR": ""}])
def test_directory_without_the_override_is_the_users(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_DATA_HOME", "/home/me/share")
    assert state_directory("k", environ, "linux") == "/home/me/share/reconcile/k"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert state_directory("k", environ, "darwin") == "/home/me/Library/Application Support/reconcile/k"


@pytest.mark.parametrize("key", ["", "..", "a/b", "/a"])
def test_a_key_is_one_file_name(key: str) -> None:
    with pytest.raises(ValueError, match="can't be a file name"):
        state_directory(key, {"RECONCILE_STATE_DIR": "/var/x"})


def test_only_the_owner_reads_it(place: Path, state: State, here: int) -> None:
    assert state.messages == ()
    assert mode(place) == mode(place.parent) == 0o700
    assert {path.name: mode(path) for path in place.iterdir()} == dict.fromkeys(
        ["generation", "state.sqlite", "state.sqlite-shm", "state.sqlite-wal"], 0o600
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows orders the names of directories itself")
def test_the_names_of_new_directories_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut takes the whole state, with what a run has saved in it."""
    flushed: list[str] = []
    monkeypatch.setattr(database_file, "fsync_directory", flushed.append)
    place = tmp_path / "share" / "reconcile" / "jp-abc"
    for _ in range(2):
        State.open(str(place)).close()
        assert flushed == [str(tmp_path), str(tmp_path / "share"), str(tmp_path / "share" / "reconcile")]


def test_a_state_below_a_directory_that_cannot_be_listed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(database_file, "fsync_directory", refused)
    State.open(str(place)).close()


@pytest.mark.flushes
def test_every_commit_is_flushed_and_keys_are_checked(state: State) -> None:
    pragmas = ["journal_mode", "synchronous", "foreign_keys"]
    found = [state._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert found == ["wal", 2, 1]


def test_a_newer_version_is_refused_and_left_alone(place: Path) -> None:
    State.open(str(place)).close()
    with contextlib.closing(sqlite3.connect(place / "state.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = (place / "state.sqlite").read_bytes()
    for readonly in (False, True):
        with pytest.raises(StateError) as caught:
            State.open(str(place), readonly=readonly)
        message = caught.value.message
        assert str(place / "state.sqlite") in message
        assert f"version {VERSION + 1}" in message
        assert f"this one reads {VERSION}" in message
        assert caught.value.hint
    assert (place / "state.sqlite").read_bytes() == before
    assert sorted(path.name for path in place.iterdir()) == ["generation", "state.sqlite"]


def test_migrations_bring_an_old_database_up_and_all_or_nothing() -> None:
    first = ("CREATE TABLE a (x)", "INSERT INTO a VALUES (1)")
    second = ("ALTER TABLE a ADD COLUMN y", "UPDATE a SET y = x + 1")
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, "f", [first])
    assert version_of(connection) == 1
    with pytest.raises(StateError):
        migrate(connection, "f", [first, ("DROP TABLE a", "nonsense")])
    assert version_of(connection) == 1
    migrate(connection, "f", [first, second])
    migrate(connection, "f", [first, second])
    assert connection.execute("SELECT * FROM a").fetchall() == [(1, 2)]
    assert version_of(connection) == 2
    connection.close()


def flip_a_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")  # as the header has it
    content[size : 2 * size] = b"\xff" * size
    path.write_bytes(content)


def make_another_programs(path: Path) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"this is not a database, it is a letter" * 200),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "a page overwritten": flip_a_page,
    "another program's": make_another_programs,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_moved_aside_and_told(place: Path, damage: str) -> None:
    with State.open(str(place)) as first:
        first.checkout("/p", "8:1", NOW)
    for number in (1, 2):
        DAMAGES[damage](place / "state.sqlite")
        broken = (place / "state.sqlite").read_bytes()
        before = tree(place)
        with State.open(str(place), readonly=True) as reading:
            assert reading.load(1) == Baseline()
            assert "counts as empty" in reading.messages[0]
        assert tree(place) == before
        with State.open(str(place)) as opened:
            (message,) = opened.messages
            assert f"state.sqlite.damaged-{number}" in message
            assert "but nothing is removed or published" in message
            assert opened.checkouts() == ()
            assert opened.checkout("/p", "8:1", NOW) == 1
        assert (place / f"state.sqlite.damaged-{number}").read_bytes() == broken
    with State.open(str(place)) as again:
        assert again.messages == ()
        assert len(again.checkouts()) == 1


def test_a_damaged_file_beside_a_log_is_not_read_as_empty(place: Path) -> None:
    """A machine that stopped while the log was written back leaves this, and the log repairs it."""
    with State.open(str(place)) as first:
        first.checkout("/p", "8:1", NOW)
        first._connection.execute(f"PRAGMA user_version = {VERSION}")  # the log has the first page by that
        with contextlib.closing(connect_to_file_alone(str(place / "state.sqlite"))) as alone:
            content, log = alone.serialize(), (place / "state.sqlite-wal").read_bytes()
    (place / "state.sqlite").write_bytes(b"\0" * 16 + content[16:])
    (place / "state.sqlite-wal").write_bytes(log)
    with pytest.raises(StateError, match="damaged") as caught:
        State.open(str(place), readonly=True)
    assert caught.value.hint == "a run repairs or rebuilds it: reconcile"
    with State.open(str(place)) as opened:
        assert opened.messages == ()
        assert len(opened.checkouts()) == 1
    with State.open(str(place), readonly=True) as reading:
        assert len(reading.checkouts()) == 1


def test_what_was_left_sound_is_not_checked_again_while_it_is_the_same(place: Path) -> None:
    with State.open(str(place)) as first:
        first.checkout("/p", "8:1", NOW)
    flip_a_page(place / "state.sqlite")
    sound = generation(str(place))
    with State.open(str(place), sound=sound) as opened:
        assert opened.messages == ()
    os.utime(place / "state.sqlite")
    with State.open(str(place), sound=sound) as opened:
        assert "damaged" in opened.messages[0]


def test_a_log_without_its_database_is_not_taken_for_the_new_ones(place: Path) -> None:
    with State.open(str(place)) as first:
        first.checkout("/p", "8:1", NOW)
        shutil.copy(place / "state.sqlite-wal", place / "kept")
    (place / "state.sqlite").unlink()
    (place / "kept").rename(place / "state.sqlite-wal")
    with State.open(str(place)) as opened:
        assert opened.checkouts() == ()
    assert (place / "state.sqlite.damaged-1-wal").exists()


def test_a_rollback_journal_without_its_database_is_not_applied_to_the_new_one(place: Path) -> None:
    """On a file system without shared memory SQLite leaves one after a kill."""
    with State.open(str(place)) as first:
        first.checkout("/p", "8:1", NOW)
    with contextlib.closing(sqlite3.connect(place / "state.sqlite", isolation_level=None)) as other:
        assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
        other.execute("PRAGMA cache_size = 1")
        other.execute("BEGIN IMMEDIATE")
        other.executemany("INSERT INTO meta VALUES (?, ?)", ((f"key {number}", "v" * 500) for number in range(1000)))
        other.execute("UPDATE checkout SET last_seen = 1")
        shutil.copy(place / "state.sqlite-journal", place / "kept")
        other.execute("ROLLBACK")
    (place / "state.sqlite").unlink()
    (place / "kept").rename(place / "state.sqlite-journal")
    with State.open(str(place)) as opened:
        assert opened.checkouts() == ()
        assert "missing" in opened.messages[0]
    assert (place / "state.sqlite.damaged-1-journal").exists()


def test_a_file_in_the_way_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    directory = tmp_path / "data" / "key"
    with pytest.raises(StateError) as raised:
        State.open(str(directory))
    assert str(raised.value) == f"{directory}/state.sqlite: File exists: {tmp_path / 'data'}"


def test_a_log_that_another_process_has_removed_meanwhile_is_no_error(place: Path) -> None:
    State.open(str(place)).close()
    listed = {*os.listdir(place), "state.sqlite-wal"}
    database_file._demand_writable(str(place), listed)
    assert "state.sqlite-wal" not in os.listdir(place)


def test_busy_is_an_error_after_the_timeout(place: Path, state: State) -> None:
    with contextlib.closing(sqlite3.connect(place / "state.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with State.open(str(place), timeout=0.2) as waiting:
            started = time.monotonic()
            with pytest.raises(StateError, match="locked") as caught:
                waiting.set_meta("a", "b")
            assert 0.15 < time.monotonic() - started < 4
            assert "let the other reconcile finish" in str(caught.value.hint)
            other.execute("ROLLBACK")
            waiting.set_meta("a", "b")
    assert state.meta("a") == "b"


def test_two_processes_make_it_at_the_same_time(place: Path) -> None:
    script = (
        "import sys\nfrom reconcile.state.database import State\nsys.stdin.readline()\n"
        "with State.open(sys.argv[1]) as s: print(s.checkout('/p' + sys.argv[2], '8:1', 1), s.messages)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(place), str(n)],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for n in range(4)
    ]  # fmt: skip
    for process in started:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=30) for process in started]
    assert [error for _, error in ended] == [""] * 4
    assert sorted(out for out, _ in ended) == [f"{n} ()\n" for n in (1, 2, 3, 4)]
    with State.open(str(place)) as opened:
        assert {found.project for found in opened.checkouts()} == {"/p0", "/p1", "/p2", "/p3"}
    assert sorted(path.name for path in place.iterdir()) == ["generation", "state.sqlite"]


# Read-only


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with State.open(str(tmp_path / "none" / "key"), readonly=True) as empty:
        assert empty.checkout("/p", "8:1", NOW) is None
        assert empty.load(None) == Baseline()
        assert empty.messages == ()
        with pytest.raises(StateError, match=r"readonly|read-only"):
            empty.set_meta("a", "b")
    assert list(tmp_path.iterdir()) == []


def test_reading_beside_a_writer_sees_its_log_and_leaves_no_trace(place: Path, state: State, here: int) -> None:
    state.save_update(here, BaselineUpdate(agreed={"2": AGREED}))
    assert (place / "state.sqlite-wal").stat().st_size > 0
    before = tree(place)
    with State.open(str(place), readonly=True) as reading:
        assert reading.checkout("/home/me/project", "8:100", NOW + 9 * DAY) == here
        assert reading.load(here).agreed == {"2": AGREED}
    assert tree(place) == before


def test_reading_after_a_kill_sees_the_log_too(place: Path) -> None:
    script = (
        "import os, signal, sys\nfrom reconcile.state.database import State\ns = State.open(sys.argv[1])\n"
        "s.journal.begin_run(None, 'run', 5)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(place)], cwd=PROJECT, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = tree(place)
    with State.open(str(place), readonly=True) as reading:
        assert [run.command for run in reading.journal.open_runs()] == ["run"]
    assert tree(place) == before
    with State.open(str(place)) as writing:
        assert [run.command for run in writing.journal.open_runs()] == ["run"]


def test_reading_beside_processes_that_write_all_the_time(place: Path) -> None:
    """One commits without a pause, one shortens the log as watchers do, and one opens and closes it for each commit."""
    State.open(str(place)).close()
    script = (
        "import itertools, sys\nfrom reconcile.state.database import State\n"
        "how, state = sys.argv[2], State.open(sys.argv[1])\nprint(flush=True)\n"
        "for number in itertools.count():\n"
        "    with state.transaction():\n"
        "        for name in 'ab': state.set_meta(how + name, str(number))\n"
        "    if how == 'shortens': state.checkpoint()\n"
        "    if how == 'opens': state.close(); state = State.open(sys.argv[1])\n"
    )
    with contextlib.ExitStack() as stack:
        for how in ("commits", "shortens", "opens"):
            command = [sys.executable, "-c", script, str(place), how]
            writer = stack.enter_context(subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE))
            stack.callback(writer.kill)
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"\n"
        for _ in range(20):
            with State.open(str(place), readonly=True) as reading:
                assert reading.messages == ()
                for how in ("commits", "shortens", "opens"):
                    assert reading.meta(f"{how}a") == reading.meta(f"{how}b"), "half a transaction"
    with State.open(str(place)) as writing:
        assert writing.meta("commitsa") == writing.meta("commitsb")


@pytest.mark.parametrize("log", [False, True])
def test_reading_from_a_directory_that_may_not_be_written(place: Path, log: bool) -> None:
    script = (
        "import os, shutil, sys, tempfile\nfrom reconcile.state.database import State\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "assert not os.access(sys.argv[1], os.W_OK)\n"
        "with State.open(sys.argv[1], readonly=True) as s: print(s.meta('a'))"
    )
    # Not below pytest's own directory, to which nobody else has a way.
    with tempfile.TemporaryDirectory() as outside:
        Path(outside).chmod(0o755)
        directory = Path(outside, "state")
        with State.open(str(place)) as first:
            first.set_meta("a", "b")
            if log:
                shutil.copytree(place, directory)
        if not log:
            shutil.copytree(place, directory)
        for path in (directory, *directory.iterdir()):
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", script, str(directory)]
        ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        directory.chmod(0o755)
    assert (ran.stderr, ran.stdout) == ("", "b\n")


def test_a_state_that_cannot_be_copied_is_not_taken_for_an_empty_one(place: Path) -> None:
    State.open(str(place)).close()
    (place / "state.sqlite-wal").write_bytes(b"as a killed run leaves one")
    script = (
        "import sys, tempfile\nfrom reconcile.state.database import State, StateError\n"
        "tempfile.tempdir = sys.argv[1] + '/nowhere'\n"
        "try: State.open(sys.argv[1], readonly=True)\nexcept StateError as error: print(error.message)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(place)], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert "state.sqlite: can't be read" in ran.stdout


# What may not be read or written, for another user than root


NOBODY = 65534


def as_nobody(script: str, *args: object) -> str:
    """Have a program do something as an ordinary user, and return what it prints."""
    started = "import os, sys\nfrom reconcile.state.database import State, StateError\n"
    drop = f"if os.getuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    ran = subprocess.run(
        [sys.executable, "-c", started + drop + script, *map(str, args)],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A state of that user's, where that user has a way to."""
    with tempfile.TemporaryDirectory() as outside:
        Path(outside).chmod(0o755)
        directory = Path(outside, "state")
        with State.open(str(directory)) as first:
            first.set_meta("a", "b")
        if os.getuid() == 0:
            for path in (directory, *directory.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        yield directory
        for path in (directory, *directory.iterdir()):
            path.chmod(0o700)


WRITE = "with State.open(sys.argv[1]) as s: s.set_meta('a', sys.argv[2])\n"
READ = "with State.open(sys.argv[1], readonly=True) as s: print(s.meta('a'), s.messages)\n"
TOLD = (
    "try: State.open(sys.argv[1], readonly=sys.argv[2] == 'r')\n"
    "except StateError as error: print(error.message, error.hint)"
)


@pytest.mark.parametrize("name", ["state.sqlite", "."])
def test_what_was_read_only_once_can_be_written_again(theirs: Path, name: str) -> None:
    (theirs / name).chmod(0o500 if name == "." else 0o400)
    assert as_nobody(READ, theirs) == "b ()\n"
    told = as_nobody(TOLD, theirs, "w")
    assert told.startswith(f"{theirs / name}: not writable")
    assert not list(theirs.glob("state.sqlite-*"))
    (theirs / name).chmod(0o700)
    as_nobody(WRITE, theirs, "c")
    assert as_nobody(READ, theirs) == "c ()\n"


def test_what_another_program_has_left_read_only_beside_it_does_no_harm(theirs: Path) -> None:
    (theirs / "state.sqlite").chmod(0o400)
    as_nobody(
        "import sqlite3\nprint(sqlite3.connect(sys.argv[1]).execute('SELECT 1 FROM meta').fetchall())",
        theirs / "state.sqlite",
    )
    assert (theirs / "state.sqlite-shm").stat().st_mode & 0o777 == 0o400
    (theirs / "state.sqlite").chmod(0o600)
    as_nobody(WRITE, theirs, "c")
    assert as_nobody(READ, theirs) == "c ()\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_somebody_else_beside_it_is_named(theirs: Path) -> None:
    (theirs / "state.sqlite-shm").touch(0o644)
    assert as_nobody(TOLD, theirs, "w").startswith(f"{theirs}/state.sqlite-shm: not writable")


@pytest.mark.parametrize("how", ["r", "w"])
@pytest.mark.parametrize("name", ["", "state.sqlite", "local.jsonl"])
def test_what_may_not_be_read_is_not_taken_for_absent(theirs: Path, name: str, how: str) -> None:
    (theirs / "local.jsonl").write_text('{"number": 9, "count": 0}\n')
    (theirs / name).chmod(0)
    told = as_nobody(TOLD, theirs, how)
    assert str(theirs / name) in told
    assert "permissions" in told or "private" in told


# Others at the same time


def test_a_database_that_was_replaced_while_open_is_not_written(place: Path, state: State) -> None:
    state.set_meta("a", "b")
    for path in place.glob("state.sqlite*"):
        path.unlink()
    for _ in range(2):
        with pytest.raises(StateError, match="moved or replaced"):
            state.set_meta("a", "c")
        with State.open(str(place)) as other:
            assert other.meta("a") is None


def test_processes_that_find_it_damaged_at_the_same_time_make_one_new_one(place: Path) -> None:
    State.open(str(place)).close()
    script = (
        "import sys\nfrom reconcile.state.database import State\nsys.stdin.readline()\n"
        "with State.open(sys.argv[1], timeout=30) as s: print(s.checkout('/p' + sys.argv[2], '8:1', 1))"
    )
    for _ in range(5):
        (place / "state.sqlite").write_bytes(b"this is not a database" * 2000)
        started = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(place), str(n)],
                cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for n in range(4)
        ]  # fmt: skip
        ended = [process.communicate("\n", timeout=60) for process in started]
        assert [error for _, error in ended] == [""] * 4
        with State.open(str(place)) as opened:
            assert {found.project for found in opened.checkouts()} == {"/p0", "/p1", "/p2", "/p3"}
    assert len(list(place.glob("state.sqlite.damaged-*"))) == 5
    assert not list(place.glob("*.making"))


# Checkouts


def test_a_checkout_is_a_path_and_an_inode(state: State, here: int) -> None:
    state.save_update(here, BaselineUpdate(agreed={"2": AGREED}, layout="nested"))
    assert state.checkout("/home/me/project", "8:100", NOW + 5) == here
    new = state.checkout("/home/me/project", "8:101", NOW + DAY)
    other = state.checkout("/home/me/worktree", "8:100", NOW + 2 * DAY)
    assert len({here, new, other}) == 3
    assert state.load(new).agreed == {}
    assert state.load(here).agreed == {"2": AGREED}
    assert [found.id for found in state.checkouts()] == [other, new, here]
    assert state.checkouts()[-1] == Checkout(here, "/home/me/project", "8:100", NOW, NOW, "nested")


def test_the_generation_of_an_inode_tells_a_checkout_from_a_later_one(state: State, here: int) -> None:
    """A record from before the generation was known is the directory's that has the inode now."""
    assert state.checkout("/home/me/project", "8:100:7", NOW + 5) == here
    assert state.checkouts()[0].identity == "8:100:7"
    later = state.checkout("/home/me/project", "8:100:8", NOW + DAY)
    assert later != here
    assert [found.identity for found in state.checkouts()] == ["8:100:8", "8:100:7"]


def test_a_record_without_a_generation_is_found_by_a_reader(tmp_path: Path) -> None:
    with State.open(str(tmp_path)) as state:
        here = state.checkout("/home/me/project", "8:100", NOW)
    with State.open(str(tmp_path), readonly=True) as state:
        assert state.checkout("/home/me/project", "8:100:7", NOW) == here
        assert state.checkout("/home/me/project", "8:101:7", NOW) is None


def test_last_seen_is_written_once_a_day(state: State, here: int) -> None:
    state.checkout("/home/me/project", "8:100", NOW + DAY - 1)
    assert state.checkouts()[0].last_seen == NOW
    state.checkout("/home/me/project", "8:100", NOW + DAY)
    assert (state.checkouts()[0].first_seen, state.checkouts()[0].last_seen) == (NOW, NOW + DAY)


def test_a_forgotten_checkout_takes_its_rows_along(state: State, here: int) -> None:
    run = state.journal.begin_run(here, "run", NOW)
    state.save_update(
        here,
        BaselineUpdate(agreed={"2": AGREED}, intents={"2": PROJECTED, "3": LOCAL}, history={("2", "stream"): ("a",)}),
    )
    state.forget_checkout(here)
    assert state.checkouts() == ()
    assert state.load(here) == Baseline(intents={"3": LOCAL}, history={("2", "stream"): ("a",)})
    assert [(found.id, found.checkout) for found in state.journal.runs()] == [(run, None)]


# Memory


def test_everything_comes_back(place: Path, state: State, here: int) -> None:
    odd = os.fsdecode(b"caf\xe9")  # a name that is no UTF-8
    fold = BaselineUpdate(
        agreed={"2": AGREED, odd: BaselineEntry({f"extra:{odd}": "d"}, None, None, "1", f"1/conversations/{odd}")},
        history={("2", "stream"): ("a", "b+c"), (odd, f"extra:{odd}"): ("d",)},
        parents={"2": "1", "1": None, odd: "1"},
        intents={"1": PROJECTED, "2": REMOVED, odd: LOCAL},
        asides={
            ("2", "stream"): AsideRecord(AsideKind.BEHIND, None, "w"),
            (odd, "metadata"): AsideRecord(AsideKind.KEPT, "s", None),
        },
        tombstones={"7": {"x", "y"}},
        store_identity="8:55",
        layout="nested",
    )  # fmt: skip
    state.save_update(here, fold)
    expected = Baseline(
        checkout_known=True,
        layout="nested",
        store_identity="8:55",
        agreed=dict(fold.agreed),  # type: ignore[arg-type]
        intents={"1": PROJECTED, "2": REMOVED, odd: LOCAL},
        history=fold.history,
        parents=fold.parents,
        tombstones={"7": frozenset({"x", "y"})},
        asides=dict(fold.asides),  # type: ignore[arg-type]
    )
    assert state.load(here) == expected
    state.close()
    with State.open(str(place)) as again:
        assert again.load(here) == expected
        assert again.load(None) == Baseline(
            intents={odd: LOCAL}, history=fold.history, parents=fold.parents, tombstones=expected.tombstones
        )


def test_changes_replace_and_none_takes_out(state: State, here: int) -> None:
    aside = AsideRecord(AsideKind.BEHIND, None, "w")
    state.save_update(
        here,
        BaselineUpdate(
            agreed={"1": AGREED, "2": AGREED}, intents={"1": PROJECTED, "2": PROJECTED}, parents={"1": "2"},
            asides={("1", "stream"): aside, ("2", "stream"): aside},
            tombstones={"8": ["a"], "9": ["a"]}, layout="nested",
        ),
    )  # fmt: skip
    changed = BaselineEntry({"metadata": "m2", "stream": "b1+e1"}, None, None, "9", "elsewhere")
    kept = AsideRecord(AsideKind.KEPT, "s", "w2")
    state.save_update(
        here,
        BaselineUpdate(
            agreed={"1": changed, "2": None}, intents={"1": REMOVED, "2": None}, parents={"1": None},
            asides={("1", "stream"): kept, ("2", "stream"): None}, tombstones={"8": ["b"], "9": None},
        ),
    )  # fmt: skip
    baseline = state.load(here)
    assert baseline.agreed == {"1": changed}
    assert baseline.intents == {"1": REMOVED}
    assert baseline.parents == {"1": None}
    assert baseline.asides == {("1", "stream"): kept}
    assert baseline.tombstones == {"8": frozenset({"a", "b"})}
    assert baseline.layout == "nested"


def test_local_holds_in_every_checkout_until_it_ends(state: State, here: int) -> None:
    there = state.checkout("/other", "8:7", NOW)
    assert there is not None
    state.save_update(there, BaselineUpdate(intents={"1": REMOVED}))
    state.save_update(here, BaselineUpdate(intents={"1": PROJECTED}))
    state.save_update(here, BaselineUpdate(intents={"1": LOCAL}))
    assert state.load(here).intents == state.load(there).intents == {"1": LOCAL}
    state.save_update(here, BaselineUpdate(intents={"1": PROJECTED}))
    assert state.load(here).intents == {"1": PROJECTED}
    assert state.load(there).intents == {"1": REMOVED}


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (("c",), ("a", "b", "c")),
        (("b",), ("a", "b")),
        (("a",), ("b", "a")),
        (("b", "c"), ("a", "b", "c")),
        (("c", "a"), ("b", "c", "a")),
        (("c", "d", "c"), ("a", "b", "d", "c")),
    ],
)
def test_history_has_each_digest_once_the_newest_last(
    state: State, here: int, added: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    state.save_update(here, BaselineUpdate(history={("1", "stream"): ("a",), ("1", "metadata"): ("z",)}))
    state.save_update(here, BaselineUpdate(history={("1", "stream"): ("b",)}))
    state.save_update(here, BaselineUpdate(history={("1", "stream"): added}))
    assert state.load(here).history == {("1", "stream"): expected, ("1", "metadata"): ("z",)}


def test_versions_that_other_machines_know_are_older_than_all_that_is_known(state: State, here: int) -> None:
    state.save_update(here, BaselineUpdate(history={("1", "stream"): ("c", "d")}, tombstones={"7": ["x"]}))
    number = state.newest_change()
    state.add_older({("1", "stream"): ("a", "d", "b"), ("2", "stream"): ("z",)}, {"7": ["x"], "8": ["y", "z"]})
    found = state.load(here)
    assert found.history == {("1", "stream"): ("a", "b", "c", "d")}, "of the other, no version is known"
    assert found.tombstones == {"7": {"x"}, "8": {"y", "z"}}
    assert state.newest_change() == number + 1
    state.add_older({("1", "stream"): ("b",)}, {"8": ["y"]})
    assert (state.load(here), state.newest_change()) == (found, number + 1)
    state.save_update(here, BaselineUpdate(history={("1", "stream"): ("a",)}))
    assert state.load(here).history == {("1", "stream"): ("b", "c", "d", "a")}


def test_a_store_that_was_lost_is_lost_for_every_checkout_that_has_agreed_on_what_was_in_it(
    state: State, here: int
) -> None:
    others = {name: state.checkout(f"/home/me/{name}", "8:1", NOW) for name in ("second", "empty", "buried", "new")}
    for name, other in others.items():
        assert other is not None
        state.save_update(other, BaselineUpdate(store_identity=None if name == "new" else "8:55"))
        if name != "empty":
            state.save_update(other, BaselineUpdate(agreed={"7" if name == "buried" else "2": AGREED}))
    state.save_update(here, BaselineUpdate(agreed={"3": AGREED}, tombstones={"7": ["x"]}, store_identity="8:55"))

    def known() -> dict[str, str | None]:
        return {name: state.load(other).store_identity for name, other in (*others.items(), ("own", here))}

    before = {"second": "8:55", "empty": "8:55", "buried": "8:55", "new": None, "own": "8:55"}
    state.save_update(here, BaselineUpdate(brought=["3", "4"]))
    assert known() == before, "no other has agreed on those"
    state.save_update(here, BaselineUpdate(brought=["2"]))
    assert known() == before | {"second": LOST}
    state.save_update(others["second"], BaselineUpdate(store_identity="8:56"))  # type: ignore[arg-type]
    state.save_update(here, BaselineUpdate(store_lost=True, store_identity=LOST))
    assert known() == before | {"second": LOST, "own": LOST}


def test_saving_the_same_again_writes_nothing(place: Path, state: State, here: int) -> None:
    fold = BaselineUpdate(
        agreed={"2": AGREED}, history={("2", "stream"): ("a",)}, parents={"2": "1"},
        intents={"2": PROJECTED, "3": LOCAL}, asides={("2", "stream"): AsideRecord(AsideKind.KEPT, "s", "w")},
        tombstones={"7": ["x"]}, store_identity="8:55", layout="nested",
    )  # fmt: skip
    state.save_update(here, fold)
    state.set_meta("a", "b")
    before = tree(place)
    state.save_update(here, fold)
    state.save_update(here, BaselineUpdate())
    state.set_meta("a", "b")
    state.checkout("/home/me/project", "8:100", NOW + 1)
    assert tree(place) == before
    state.close()
    closed = tree(place)
    with State.open(str(place)) as again:
        again.save_update(here, fold)
    files = {name: found for name, found in tree(place).items() if name != str(place)}
    assert files == {name: found for name, found in closed.items() if name != str(place)}


def test_a_fold_is_written_whole_or_not_at_all(state: State, here: int) -> None:
    broken = BaselineEntry({"metadata": None}, None, None, None, "p")  # type: ignore[dict-item]
    with pytest.raises(StateError):
        state.save_update(here, BaselineUpdate(agreed={"2": AGREED, "3": broken}, layout="nested"))
    assert state.load(here) == Baseline()
    state.save_update(here, BaselineUpdate(agreed={"2": AGREED}))
    assert state.load(here).agreed == {"2": AGREED}


def test_a_fold_survives_a_kill(place: Path) -> None:
    script = (
        "import os, signal, sys\nfrom reconcile.state.database import *\ns = State.open(sys.argv[1])\n"
        "c = s.checkout('/p', '8:1', 5)\ns.save_update(c, BaselineUpdate(parents={'2': '1'}))\n"
        "s._connection.execute('BEGIN IMMEDIATE')\n"
        "s._connection.execute(\"INSERT INTO parent VALUES ('3', '1')\")\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(place)], cwd=PROJECT, check=False)
    with State.open(str(place)) as opened:
        assert opened.messages == ()
        assert opened.load(1).parents == {"2": "1"}


def test_memory_alone_needs_no_disk() -> None:
    with State.in_memory() as state:
        here = state.checkout("/p", "8:1", NOW)
        assert here is not None
        state.save_update(here, BaselineUpdate(agreed={"2": AGREED}))
        assert state.load(here).agreed == {"2": AGREED}


# Conflicts


def test_conflicts_are_listed_until_seen(state: State, here: int) -> None:
    state.add_conflicts(here, "r1", [("1", "stream", Side.STORE), ("2", "metadata", None)])
    state.add_conflicts(here, "r1", [("1", "stream", Side.WORKSPACE)])
    state.conflicts_seen(here, ["1"])
    state.add_conflicts(here, "r2", [("1", "stream", Side.WORKSPACE)])
    assert state.conflicts(here) == (
        Conflict("1", "stream", "r1", seen=True, winner=Side.STORE),
        Conflict("2", "metadata", "r1"),
        Conflict("1", "stream", "r2", winner=Side.WORKSPACE),
    )


# Journal


def test_run_ids_are_readable_and_ascend(state: State) -> None:
    journal = state.journal
    ids = [journal.begin_run(None, "run", NOW + add) for add in (0, 1, -(10**9), 10**9)]
    assert ids == ["20261121-233012-00", "20261121-233012-01", "20261121-233012-02", "20261121-233013-00"]
    many = [journal.begin_run(None, "run", NOW) for _ in range(300)]
    assert many == sorted(set(many))
    assert many[0] > ids[-1]
    assert [run.id for run in journal.runs()] == sorted(ids + many, reverse=True)


def test_a_finished_run_whose_steps_were_all_skipped_is_known(state: State, here: int) -> None:
    """One that has recorded an intent, is an undo, or is not finished, is none."""
    journal = state.journal
    first = journal.begin_run(here, "sync", NOW)
    for undoes, marks in ((None, ("skipped",)), (None, ("skipped", "done")), (first, ("skipped",)), (None, ())):
        run = journal.begin_run(here, "sync", NOW, undoes=undoes)
        journal.plan_steps(run, [Step(mark, "1", "stream", "copy", "{}") for mark in marks], NOW)
        journal.step_skipped(run, dict.fromkeys(marks, "refused"), NOW)
        journal.step_done(run, {"done"}.intersection(marks), NOW)
        journal.finish_run(run, 0, NOW)
    decided = journal.begin_run(here, "sync", NOW)
    journal.plan_steps(decided, [Step("skipped", "1", "stream", "copy", "{}")], NOW)
    journal.step_skipped(decided, {"skipped": "refused"}, NOW)
    (skipped,) = journal.skipped_runs()
    assert skipped == "20261121-233012-01"
    journal.record_intents(decided, here, BaselineUpdate(intents={"jp-c1": Intent(IntentKind.LOCAL)}))
    journal.finish_run(decided, 0, NOW)
    assert journal.skipped_runs() == {skipped}


def test_a_run_step_by_step(state: State, here: int) -> None:
    journal = state.journal
    run = journal.begin_run(here, "reconcile", NOW, summary='{"copy": 4}')
    steps = [Step(f"a{n}", str(n), "stream", "copy", f'{{"id": "a{n}"}}') for n in range(5)]
    journal.plan_steps(run, steps[:3], NOW + 1)
    journal.plan_steps(run, steps[3:], NOW + 1)
    assert [step.action for opened in journal.open_runs() for step in journal.steps(opened.id)] == [
        "a0", "a1", "a2", "a3", "a4",
    ]  # fmt: skip
    journal.step_begun(run, ["a0", "a1", "a2"], NOW + 2)
    journal.step_done(run, ["a0", "a2"], NOW + 3)
    journal.step_failed(run, {"a1": "disk full"}, NOW + 4)
    journal.step_skipped(run, {"a3": "needs a1"}, NOW + 5)
    found = [(step.action, step.state, step.message, step.at_ns - NOW) for step in journal.steps(run)]
    assert found == [
        ("a0", StepState.DONE, None, 3),
        ("a1", StepState.FAILED, "disk full", 4),
        ("a2", StepState.DONE, None, 3),
        ("a3", StepState.SKIPPED, "needs a1", 5),
        ("a4", StepState.PLANNED, None, 1),
    ]
    assert journal.steps(run)[0].record == '{"id": "a0"}'
    journal.finish_run(run, 1, NOW + 6)
    assert journal.open_runs() == ()
    (ended,) = journal.runs()
    assert (ended.checkout, ended.command, ended.finished_ns, ended.exit_code) == (
        here,
        "reconcile",
        NOW + 6,
        1,
    )
    assert ended.summary == '{"copy": 4}'


def test_a_batch_of_steps_is_one_commit(place: Path, state: State) -> None:
    run = state.journal.begin_run(None, "run", NOW)
    state.journal.plan_steps(run, [Step(str(n), "1", "stream", "copy", "{}") for n in range(200)], NOW)
    changes: list[str] = []
    state._connection.set_trace_callback(changes.append)
    state.journal.step_begun(run, map(str, range(200)), NOW)
    assert [text for text in changes if text in {"BEGIN IMMEDIATE", "COMMIT"}] == [
        "BEGIN IMMEDIATE",
        "COMMIT",
    ]


def test_intents_are_written_ahead_with_what_was_there(state: State, here: int) -> None:
    state.save_update(here, BaselineUpdate(intents={"1": PROJECTED, "4": LOCAL}))
    run = state.journal.begin_run(here, "local", NOW)
    plan = BaselineUpdate(intents={"1": LOCAL, "2": REMOVED, "4": LOCAL}, tombstones={"9": ["x"]}, run=run)
    state.journal.record_intents(run, here, plan)
    state.journal.record_intents(run, here, BaselineUpdate(intents={"2": None}))
    assert state.load(here).intents == {"1": LOCAL, "4": LOCAL}
    assert state.load(here).tombstones == {"9": frozenset("x")}
    assert state.journal.intent_changes(run) == (
        IntentChange("1", PROJECTED, LOCAL),
        IntentChange("2", None, REMOVED),
        IntentChange("2", REMOVED, None),
    )


# Versions


def test_versions_are_found_by_content_conversation_run_and_digest(state: State) -> None:
    odd = os.fsdecode(b"\xff.md")
    one = Version("abc1", "x1", 5, "1", "stream", "events.json", Side.STORE, "1-a/events.json", 77, "r1", "replaced")
    two = Version(
        "abd2",
        "x2",
        6,
        "2",
        f"extra:{odd}",
        odd,
        Side.WORKSPACE,
        f"2/{odd}",
        78,
        None,
        "gone",
        VersionKind.LINK,
    )
    state.versions.add([one, two])
    state.versions.add([])
    assert state.versions.has("x1", "1", "stream")
    assert not state.versions.has("x1", "1", "metadata")
    assert not state.versions.has("x1", "2", "stream")
    assert state.versions.of_conversation("2") == (two,)
    assert state.versions.of_run("r1") == (one,)
    assert state.versions.with_digest("ab") == (one, two)
    assert state.versions.with_digest("abd") == (two,)
    state.versions.forget("abc1")
    assert not state.versions.has("x1", "1", "stream")


def test_requests_that_wait_are_kept_by_checkout_and_verb(state: State, here: int) -> None:
    there = state.checkout("/elsewhere", "9:9", NOW)
    assert there is not None
    local = PendingRequest(along=("2", "3"), run="r1", why="git is busy")
    gone = PendingRequest(value="refuse", store="s", workspace=None, run="r1")
    units = (DecidedUnit("metadata", ("1", None), "store"), DecidedUnit("stream", ()))
    decided = PendingRequest(run="r1", decided=units)
    assert not state.has_requests(here)
    state.save_update(here, BaselineUpdate(waiting={("1", Verb.RESOLVE): decided}))
    assert state.load(here, {"1"}).waiting == {("1", Verb.RESOLVE): decided}
    state.save_update(here, BaselineUpdate(waiting={("1", Verb.RESOLVE): None}))
    state.save_update(here, BaselineUpdate(waiting={("1", Verb.LOCAL): local, ("1", Verb.REMOVE): gone}))
    state.save_update(there, BaselineUpdate(waiting={("1", Verb.REPARENT): PendingRequest(value=None, before="7")}))
    assert state.has_requests(here)
    assert state.load(here).waiting == {("1", Verb.LOCAL): local, ("1", Verb.REMOVE): gone}
    assert state.load(here, {"2"}).waiting == {}
    assert state.changed_since(0, 9) == {"1"}
    state.save_update(
        here, BaselineUpdate(waiting={("1", Verb.LOCAL): None, ("1", Verb.REMOVE): replace(gone, why="held")})
    )
    assert state.load(here).waiting == {("1", Verb.REMOVE): replace(gone, why="held")}
    assert BaselineUpdate(waiting={("1", Verb.LOCAL): None}).without({"1"}).empty
    state.forget_checkout(there)
    assert not state.has_requests(there)


def test_a_rename_that_was_not_done_is_remembered_until_the_metadata_is_agreed_on(state: State, here: int) -> None:
    def move(conversation: str, target: str) -> Step:
        record = f'{{"source": "workspace:1-a/conversations/2-b", "target": "workspace:{target}"}}'
        return Step(conversation, conversation, "conversation", "move", record)

    killed = state.journal.begin_run(here, "run", NOW)
    state.journal.plan_steps(killed, [move("0", "0-x"), move("1", "2-b"), move("2", "2-c"), move("3", "x/3-d")], NOW)
    state.journal.step_done(killed, ["3"], NOW)
    complete, other = (state.journal.begin_run(checkout, "run", NOW) for checkout in (here, None))
    state.journal.plan_steps(complete, [move("4", "4-e")], NOW)
    state.journal.plan_steps(other, [move("5", "5-f")], NOW)
    for run, code in ((killed, 1), (complete, 0)):
        state.journal.finish_run(run, code, NOW)
    assert state.load(here).renames == {(Side.WORKSPACE, "0"), (Side.WORKSPACE, "2")}
    agreed = {
        each: BaselineEntry({unit: "x"}, None, "T", None, "2-c") for each, unit in (("0", METADATA), ("2", STREAM))
    }
    state.save_update(here, BaselineUpdate(agreed=agreed))
    assert state.load(here).renames == {(Side.WORKSPACE, "2")}


def test_a_rename_that_a_program_has_left_is_due_until_a_later_run_has_moved_that_directory(
    state: State, here: int
) -> None:
    """Of what is in the store alone, nothing is ever agreed on."""

    def moves(command: str, side: str, *, done: bool) -> frozenset[tuple[Side, str]]:
        run = state.journal.begin_run(here, command, NOW)
        state.journal.add_records(run, {"1": ConversationRecord()})
        record = f'{{"source": "{side}:1-a", "target": "{side}:1-b"}}'
        state.journal.plan_steps(run, [Step("1", "1", "conversation", "move", record)], NOW)
        if done:
            state.journal.step_done(run, ["1"], NOW)
        state.journal.finish_run(run, int(not done), NOW)
        return state.load(here).renames

    due = frozenset({(Side.STORE, "1")})
    assert moves(LIBRARY, "store", done=False) == due
    assert moves("reconcile", "workspace", done=True) == due
    assert moves("reconcile", "store", done=True) == frozenset()
    assert moves(LIBRARY, "store", done=False) == due


def test_an_undo_records_the_requests_that_it_drops(state: State, here: int) -> None:
    decided = (DecidedUnit(STREAM, ("a", None), "store"),)
    request = PendingRequest("x", along=("2",), store="a", run="r1", why="busy", decided=decided)
    dropping = ConversationRecord(parent_known=True, dropped={Verb.RESOLVE: request, Verb.LOCAL: PendingRequest()})
    run = state.journal.begin_run(here, "undo", NOW)
    state.journal.add_records(run, {"1": dropping, "2": ConversationRecord()})
    assert state.journal.records_of(run) == {"1": dropping, "2": ConversationRecord()}
    # Earlier versions recorded none.
    state._connection.execute("UPDATE remembered SET content = json_remove(content, '$.dropped')")
    assert state.journal.records_of(run)["1"] == ConversationRecord(parent_known=True)


@pytest.mark.parametrize("more", [0, MAX_NAMES])
def test_what_is_remembered_of_some_conversations(state: State, here: int, more: int) -> None:
    aside = AsideRecord(AsideKind.BEHIND, None, "w")
    two = ("1", "2")
    fold = BaselineUpdate(
        agreed=dict.fromkeys(two, AGREED), intents={"1": REMOVED, "2": LOCAL}, parents=dict.fromkeys(two, "9"),
        history={(each, "stream"): ("a", "b") for each in two}, asides={(each, "stream"): aside for each in two},
        tombstones=dict.fromkeys(two, ("a",)), layout="nested",
    )  # fmt: skip
    state.save_update(here, fold)
    whole = state.load(here)
    only = {"2", *(f"x{number}" for number in range(more))}
    assert state.load(here, only) == replace(
        whole,
        agreed={"2": AGREED},
        intents={"2": LOCAL},
        parents={"2": "9"},
        history={("2", "stream"): ("a", "b")},
        asides={("2", "stream"): aside},
        tombstones={"2": frozenset("a")},
    )
    assert state.load(here, []) == Baseline(checkout_known=True, layout="nested")
    assert not state.load(None, ["1"]).agreed


def test_what_others_write_is_told_from_own_writes(state: State, place: Path, here: int) -> None:
    before = state.data_version()
    state.save_update(here, BaselineUpdate(parents={"1": "2"}))
    assert state.data_version() == before
    with State.open(str(place)) as other:
        other.set_meta("x", "y")
    assert state.data_version() != before


def test_rows_with_text_that_is_not_utf8_are_written_in_their_order() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE told (number INTEGER PRIMARY KEY, text)")
    rows = [(number, "odd\udc80" if number in (0, 3, 4, 9) else None if number == 5 else "é") for number in range(10)]
    write_rows(connection, "INSERT INTO told VALUES (?, ?)", iter(rows))
    assert select(connection, "SELECT * FROM told ORDER BY rowid") == rows
    with pytest.raises(sqlite3.IntegrityError):
        write_rows(connection, "INSERT INTO told VALUES (?, ?)", [(10, "a"), (9, "b")])
    with pytest.raises(UnicodeEncodeError):
        write_rows(connection, "INSERT INTO told VALUES (?, ?)", ((11, text) for text in ["\udc80".encode()]))
    assert select(connection, "SELECT number FROM told WHERE number > 9") == [(10,)]


# The agreed metadata


KEPT = {("2", "m1"): b"one\xff\n"}


def of_database(state: State) -> list[tuple[str, str]]:
    return state._connection.execute("SELECT conversation, digest FROM agreed_content").fetchall()


def test_agreed_metadata_is_kept_as_it_is(state: State, here: int) -> None:
    update = BaselineUpdate(agreed={"2": AGREED}, contents={**KEPT, ("3", "m3"): b"three"})
    state.save_update(here, update)
    state.save_update(here, update)
    assert state.agreed_contents([("2", "m1"), ("4", "m4")]) == KEPT
    assert state.agreed_contents([("2", "m2"), ("3", "m3")]) == {("3", "m3"): b"three"}
    assert not BaselineUpdate(contents=KEPT).empty
    assert BaselineUpdate(contents=KEPT).without({"2"}).empty
    assert state.load(here).contents == {}


def test_agreed_metadata_goes_with_the_last_entry_that_names_it(state: State, here: int) -> None:
    there = state.checkout("/elsewhere", "9:9", NOW)
    assert there is not None
    for checkout in (here, there):
        state.save_update(checkout, BaselineUpdate(agreed={"2": AGREED}, contents=KEPT))
    newer = replace(AGREED, units={**AGREED.units, "metadata": "m2"})
    state.save_update(here, BaselineUpdate(agreed={"2": newer}, contents={("2", "m2"): b"two"}))
    assert of_database(state) == [("2", "m1"), ("2", "m2")]
    state.save_update(there, BaselineUpdate(agreed={"2": replace(newer, units={"metadata": "m2"})}))
    assert of_database(state) == [("2", "m2")]
    state.save_update(here, BaselineUpdate(agreed={"2": replace(AGREED, units={"stream": "e"})}))
    assert of_database(state) == [("2", "m2")]
    state.forget_checkout(there)
    assert of_database(state) == []
    state.save_update(here, BaselineUpdate(agreed={"2": AGREED}, contents=KEPT))
    state.save_update(here, BaselineUpdate(agreed={"2": None}))
    assert of_database(state) == []


def test_what_is_purged_is_not_kept_either(state: State, here: int) -> None:
    state.save_update(here, BaselineUpdate(agreed={"2": AGREED}, contents=KEPT))
    version = Version("abc", "m1", 1, "2", "metadata", "metadata.json", Side.STORE, "2/metadata.json", 1, None, "kept")
    state.versions.add([version, replace(version, digest="abd", conversation="3")])
    state.versions.forget("abd")
    assert of_database(state) == [("2", "m1")]
    state.versions.forget("abc")
    assert of_database(state) == []


def steps_of_a_change(directory: Path, entries: int) -> int:
    """Return the hundreds of SQLite's steps to change one entry of so many, and to remove another."""
    names = [f"{number:04}" for number in range(entries)]
    many = BaselineUpdate(agreed=dict.fromkeys(names, AGREED), contents={(name, "m1"): b"one" for name in names})
    with State.open(str(directory)) as state:
        here = state.checkout("/home/me/project", "8:100", NOW)
        assert here is not None
        state.save_update(here, many)
        taken: list[int] = []
        state._connection.set_progress_handler(lambda: taken.append(1), 100)
        newer = replace(AGREED, units={**AGREED.units, "metadata": "m2"})
        state.save_update(here, BaselineUpdate(agreed={names[1]: newer}, contents={(names[1], "m2"): b"two"}))
        state.save_update(here, BaselineUpdate(agreed={names[2]: None}))
        state._connection.set_progress_handler(None, 0)
        assert state._connection.execute("SELECT count(*) FROM agreed_content").fetchone() == (entries - 1,)
    return len(taken)


def test_a_change_costs_the_same_in_a_large_baseline(tmp_path: Path) -> None:
    assert steps_of_a_change(tmp_path / "large", 2_000) < steps_of_a_change(tmp_path / "small", 20) + 5


def test_an_older_state_has_none(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as old:
        migrate(old, str(path), MIGRATIONS[:9])
        old.execute("INSERT INTO checkout VALUES (1, '/p', '8:1', 1, 1, 'nested', 'x')")
        old.execute("INSERT INTO agreed VALUES (1, '2', NULL, 'A', NULL, '2-a')")
        old.execute("INSERT INTO agreed_unit VALUES (1, '2', 'metadata', 'm1')")
    with State.open(str(tmp_path)) as state:
        assert state.load(1).agreed["2"].units == {"metadata": "m1"}
        assert state.agreed_contents([("2", "m1")]) == {}
        state.save_update(1, BaselineUpdate(agreed={"2": AGREED}, contents=KEPT))
        assert state.agreed_contents([("2", "m1")]) == KEPT


class _File:
    """The file of an open connection, while whose comparison another thread opens its own."""

    def __eq__(self, other: object) -> bool:
        connection._process.open[-2] = ((0, 0), 0)
        return False

    __hash__ = None  # type: ignore[assignment]


def test_threads_that_open_the_state_at_the_same_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection._process, "open", {-1: (_File(), 0)})
    State.open(str(tmp_path)).close()


def test_a_relative_data_directory_counts_as_unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older platformdirs takes it from the environment: private copies would be in the project."""
    monkeypatch.setattr("platformdirs.unix.Unix.user_data_dir", "data/reconcile")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_directory("linux") == str(tmp_path / ".local" / "share" / "reconcile")

"""The file of the state: created atomically, checked when opened, read by dry runs without any write."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING

from reconcile.fs.durability import fsync_directory, fsync_file
from reconcile.fs.paths import is_not_regular, open_regular
from reconcile.fs.posix import process_lives
from reconcile.fs.private_files import FILE_MODE, create_private_file, make_private_directory
from reconcile.state.connection import LiveConnection, StateError, as_uri
from reconcile.state.directory import GENERATION, NAME, OVERRIDE, generation, read_mark
from reconcile.state.private_list import NAME as LIST
from reconcile.state.private_list import has_revoked, import_list, list_number, mark_for_rewrite, read_head
from reconcile.state.private_list import read as read_list
from reconcile.state.schema import (
    VERSION,
    is_damage,
    migrate,
    state_errors,
    transaction,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.state.directory import Generation

BUSY_SECONDS = 5.0
_UNFINISHED = f"{NAME}.new-"
_COMPANIONS = ("-wal", "-shm")
_LOGS = ("-wal", "-journal")
"""The second is used if the file system has no shared memory."""
_LEFT = (*_COMPANIONS, "-journal")
"""The files beside a deleted database that SQLite would use for a new one."""
_FILES = (NAME, *(f"{NAME}{suffix}" for suffix in ("-wal", "-shm", "-journal")), GENERATION, LIST)
_LEFT_BY_RUNS = ("index-", "vault")
_LOST = "the undo history and parents that JP stripped are lost, but nothing is removed or published"
_LOG_HEADER = 32
_READ_PAUSES = (0.05, 0.2, 0)
"""Seconds to wait after each attempt to read a database that is older than the list of private conversations."""


class _Damaged(Exception):  # noqa: N818 - a finding, not an error: it never leaves this module
    """The file of the database is damaged; the message describes the damage."""


def open_for_writing(
    directory: str, messages: list[str], timeout: float, sound: Generation | None = None
) -> sqlite3.Connection:
    """Open the state and create it if it is missing; a damaged one is moved aside, with a message for the user.

    ``sound``: see `reconcile.state.database.State.open`.
    Raises `StateError` for a newer version, a lock of ``timeout`` seconds, a missing permission, a full disk.
    """
    path = os.path.join(directory, NAME)
    try:
        for made in make_private_directory(directory):  # SQLite flushes the names in the last one
            with contextlib.suppress(PermissionError):  # a directory that can't be read can't be flushed
                fsync_directory(os.path.dirname(made))
        check_file_kinds(directory)
        names = set(os.listdir(directory))
        _remove_unfinished(directory, names)
        _demand_writable(directory, names)
        if NAME not in names and not _had_one(names):
            _create(path)
        try:
            connection = _checked(path, timeout, sound)
        except (_Damaged, FileNotFoundError):
            connection = _recreate(path, messages, timeout)
    except (OSError, _Damaged) as error:
        words = _cause(error, path) if isinstance(error, OSError) else str(error)
        hint = f"check the permissions of the directory, or choose another with {OVERRIDE}"
        raise StateError(f"{path}: {words}", hint=hint) from error
    try:
        _agree_with_list(connection, path, messages)
    except BaseException:
        connection.close()
        raise
    return connection


def _cause(error: OSError, path: str) -> str:
    """Return the system's text for an error, with the file that it is about if that is another one."""
    words = error.strerror or str(error)
    return words if error.filename in (None, path) else f"{words}: {error.filename}"


def check_file_kinds(directory: str) -> None:
    """Raise `StateError` if a file of the state isn't a regular file: SQLite would wait for a pipe."""
    for name in _FILES:
        path = os.path.join(directory, name)
        try:
            is_wrong = is_not_regular(path)
        except OSError as error:
            raise StateError(f"{path}: can't be read ({error.strerror})", hint="check its permissions") from error
        if is_wrong:
            raise StateError(f"{path}: not a regular file", hint="move it away, then run again")


def _demand_writable(directory: str, names: set[str]) -> None:
    """Raise `StateError` if a file or the directory isn't writable: SQLite would open the database read-only.

    Companions that SQLite made for a read-only database are read-only, and stay so when the database is writable again.
    They are made writable here.
    """
    existing = [name for name in (NAME, *_companions(names)) if name in names]
    for path in (directory, *(os.path.join(directory, name) for name in existing)):
        if path.endswith(_COMPANIONS) and not os.access(path, os.W_OK):
            with contextlib.suppress(OSError):
                os.chmod(path, FILE_MODE)
        if not os.access(path, os.W_OK) and os.path.lexists(path):  # another process may have removed its log meanwhile
            raise StateError(f"{path}: not writable", hint=_way_to_write(path))


def _way_to_write(path: str) -> str:
    """Return what a person can do about a path that isn't writable."""
    try:
        is_readonly = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except (AttributeError, OSError):  # Windows has no statvfs
        is_readonly = False
    return "make the disk writable (remount it)" if is_readonly else "check its permissions and its owner"


def _companions(names: set[str]) -> list[str]:
    """Return the names of the database's existing companions."""
    return [name for suffix in _LEFT if (name := f"{NAME}{suffix}") in names]


def _had_one(names: set[str]) -> bool:
    """Tell whether a directory had a database: its companions are there, or files that only a run writes."""
    return bool(_companions(names)) or any(name.startswith(_LEFT_BY_RUNS) for name in names)


def _recreate(path: str, messages: list[str], timeout: float) -> sqlite3.Connection:
    """Create the database again, with the damaged file or the companions of a deleted one moved aside.

    A lock makes this one process at a time: a second one would move the new database aside. Raises `_Damaged`,
    `StateError`.
    """
    from reconcile.fs.locks import acquire  # here: hardly any run needs it

    lock = f"{path}.making"
    release = acquire(lock, timeout)
    if release is None:
        raise StateError(f"{lock}: another process is rebuilding the state", hint="run again")
    try:
        names = set(os.listdir(os.path.dirname(path)))
        try:
            if NAME in names:
                return _checked(path, timeout, None)
            if _companions(names):  # of a deleted database: the new one must not use them
                _move_aside(path)
            messages.append(f"{path}: it was missing and is rebuilt; {_LOST}")
        except _Damaged as damage:
            kept = _move_aside(path)
            messages.append(f"{path}: {damage}; moved to {kept} and rebuilt; {_LOST}")
        _create(path)
        return _checked(path, timeout, None)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(lock)
        release()


def _agree_with_list(connection: sqlite3.Connection, path: str, messages: list[str]) -> None:
    """Make the database and the list of private conversations agree; the one with the higher number wins."""
    directory = os.path.dirname(path)
    with state_errors(path):
        listed, number = read_head(directory), list_number(connection)
        if (listed.number if listed else 0) == number and not has_revoked(connection):
            return
    with transaction(connection, path):
        listed = read_head(directory)  # read again, now that no other process can change it
        if listed is not None and listed.number > list_number(connection):
            _import_list(connection, path, messages)
        else:
            mark_for_rewrite(connection)


def _import_list(connection: sqlite3.Connection, path: str, messages: list[str]) -> None:
    """Make all listed conversations private, with a message about those that were not."""
    directory = os.path.dirname(path)
    if (content := read_list(directory)) is not None and (new := import_list(connection, *content, time.time_ns())):
        place = os.path.join(directory, LIST)
        words = f"{new} more conversations of that list stay local, or removed from a workspace"
        messages.append(f"{path}: it is older than {place}; {words}")


def open_for_reading(directory: str, messages: list[str]) -> sqlite3.Connection:
    """Return a copy of the state in memory, empty if the state is missing or damaged. The disk stays unchanged.

    SQLite alone can't do that: it creates ``-shm`` and ``-wal`` beside a database that it only reads. With
    ``immutable``, it ignores the ``-wal`` of a killed or running process.
    Raises `StateError` if the database has a newer version, can't be read, or changes all the time.
    """
    path = os.path.join(directory, NAME)
    check_file_kinds(directory)
    with state_errors(path):
        for pause in _READ_PAUSES:
            listed, warnings = read_head(directory), list[str]()  # the list first: it is never older
            connection = _read_as_is(path, warnings)
            is_behind = listed is not None and listed.number > list_number(connection)
            if not (is_behind and pause) or warnings or not _exists(path):
                break
            connection.close()
            time.sleep(pause)  # a transaction may be about to commit
        messages += warnings
        if is_behind:
            _import_list(connection, path, messages)
        connection.execute("PRAGMA query_only = ON")
    return connection


def _read_as_is(path: str, messages: list[str]) -> sqlite3.Connection:
    try:
        had_one = _had_one(_names(os.path.dirname(path)))  # before the next line: another process may create it
        if _exists(path):
            return _copied(path)
        if had_one:
            messages.append(f"{path}: it is missing and counts as empty; the next run (no dry run) rebuilds it")
        return open_empty()
    except _Damaged as damage:
        if has_logs(path):  # they may complete the file, which only an opening for writing can tell
            hint = "a run repairs or rebuilds it: reconcile"
            raise StateError(f"{path}: {damage}", hint=hint) from damage
        messages.append(f"{path}: {damage}; it counts as empty, and the next run (no dry run) rebuilds it")
        return open_empty()
    except OSError as error:
        raise StateError(f"{path}: can't be read ({_cause(error, path)})", hint="check its permissions") from error


def _names(directory: str) -> set[str]:
    try:
        return set(os.listdir(directory))
    except FileNotFoundError:
        return set()


def _exists(path: str) -> bool:
    """Tell whether an entry has this name. Raises `OSError` if the system can't tell."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def open_empty() -> sqlite3.Connection:
    """Return a connection to an empty state in memory."""
    connection = _connect(":memory:")
    migrate(connection, ":memory:")
    return connection


def _connect(path: str) -> sqlite3.Connection:
    """Open a database that no other process uses."""
    # Only `schema.transaction` begins transactions. Different threads use the connection, one at a time.
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _create(path: str) -> None:
    """Create the database under a temporary name and link it into place, so that others see only a complete one."""
    # The name is unique in the process, too: another thread may create it at the same time.
    temporary = os.path.join(os.path.dirname(path), f"{_UNFINISHED}{os.getpid()}-{os.urandom(4).hex()}")
    os.close(create_private_file(temporary))
    try:
        with state_errors(path), contextlib.closing(_connect(temporary)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # nobody sees the file before it is flushed below
            # A step of the journal fits into a quarter of such a page: a larger value would take pages of its own.
            connection.execute("PRAGMA page_size = 16384")
            migrate(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")  # remembered in the file
        fsync_file(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError:  # another process has created it
            return
        except OSError:  # no hard links here
            os.rename(temporary, path)
    finally:
        for name in (temporary, f"{temporary}-journal", f"{temporary}-wal", f"{temporary}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _remove_unfinished(directory: str, names: Iterable[str]) -> None:
    """Remove the temporary files of killed processes."""
    for name in names:
        pid = name.removeprefix(_UNFINISHED).partition("-")[0]
        if name.startswith(_UNFINISHED) and pid.isdecimal() and not process_lives(int(pid)):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(directory, name))


def _checked(path: str, timeout: float, sound: Generation | None) -> sqlite3.Connection:
    """Open an existing database for writing. Raises `_Damaged`, `StateError`."""
    is_sound = _has_generation(path, sound)
    with state_errors(path):
        connection = LiveConnection(path, timeout)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            _check(connection, path, is_sound=is_sound)
            connection.execute("PRAGMA synchronous = FULL")
            # The transactions of a run are copied from the log once, at its end, not several times during it.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute("PRAGMA cache_size = -8000")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone stops at the drive's cache
            migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _has_generation(path: str, sound: Generation | None) -> bool:
    """Tell whether the state still has the generation that is known to be sound."""
    return sound is not None and generation(os.path.dirname(path)) == sound


def _check(connection: sqlite3.Connection, path: str, *, is_sound: bool = False) -> None:
    """Check that the file is an undamaged state of a known version. ``is_sound`` skips the check of all pages.

    Raises `_Damaged`, `StateError`.
    """
    verdict = "ok"
    with _finding_damage():
        version = version_of(connection)
        if not is_sound:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise _Damaged(f"damaged ({verdict})")
    if version > VERSION:
        raise StateError(
            f"{path}: a newer reconcile wrote it (version {version} of the state; this one reads {VERSION})",
            hint="update reconcile, or move the file away, which loses the undo history and local marks",
        )
    if version < 1:  # `_create` never makes such a file
        raise _Damaged("damaged (an empty or foreign database)")


@contextlib.contextmanager
def _finding_damage() -> Iterator[None]:
    """Turn SQLite's errors about a damaged file into `_Damaged`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _Damaged(f"damaged ({error})") from error


def _move_aside(path: str) -> str:
    """Rename a damaged database and its companions to the first unused name, and return the name."""
    number = 1
    while any(os.path.lexists(f"{path}.damaged-{number}{suffix}") for suffix in ("", *_LEFT)):
        number += 1
    kept = f"{path}.damaged-{number}"
    # The database last: a new one must never be created beside the companions of the old one.
    for suffix in (*_LEFT, ""):
        # Missing: it did not exist, or another process moves the same database.
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, kept + suffix)
    return kept


def _copied(path: str) -> sqlite3.Connection:
    """Return a copy of a database with its logs in memory, also while other processes write all the time.

    The first attempt writes nothing. If the database changed meanwhile, SQLite copies it beside the writers.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        before, copy = _fingerprint(path), None
        try:
            copy = _copied_once(path)
        except _Damaged:
            if _fingerprint(path) == before:
                raise
        if copy is not None and _fingerprint(path) != before:
            copy.close()
            copy = None
        copy = copy or _copied_beside_writers(path)
        if copy is not None:
            migrate(copy, path)
            return copy
        if time.monotonic() > end:
            raise StateError(
                f"{path}: another reconcile changes it all the time", hint="let that finish, then run again"
            )


def _copied_beside_writers(path: str) -> sqlite3.Connection | None:
    """Return a copy that SQLite makes in one transaction; None if no writer has the database open any more.

    A writer waits for it only before it shortens the log. SQLite notes the reader in the writers' shared memory, and
    writes nothing else. RACE: if the last writer closes the database between the check of its companions and the
    opening, SQLite may create them again. Worst case: an empty log and shared memory stay, which the next run uses.
    """
    if not all(_exists(f"{path}{suffix}") for suffix in _COMPANIONS):
        return None
    copy = _connect(":memory:")
    try:
        with contextlib.closing(LiveConnection(path, BUSY_SECONDS, readonly=True)) as source, _finding_damage():
            source.backup(copy)
        _check(copy, path)
    except sqlite3.OperationalError:  # the writers ended, or one of them has it for itself
        copy.close()
        return None
    except BaseException:
        copy.close()
        raise
    return copy


def _copied_once(path: str) -> sqlite3.Connection:
    connection = _connect(":memory:")
    try:
        with contextlib.closing(connect_to_file_alone(path)) as source, _finding_damage():
            if has_logs(path):
                _copy_with_logs(source, path, connection)
            else:
                source.backup(connection)
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _copy_with_logs(source: sqlite3.Connection, path: str, target: sqlite3.Connection) -> None:
    """Copy the file and its logs into a temporary directory, where SQLite applies the logs."""
    import shutil  # here: only dry runs read a copy
    import tempfile

    with tempfile.TemporaryDirectory(prefix="reconcile-") as directory:
        copy = os.path.join(directory, NAME)
        with contextlib.closing(_connect(copy)) as without_logs:
            without_logs.execute("PRAGMA synchronous = OFF")
            source.backup(without_logs)
        for suffix in _LOGS:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        with contextlib.closing(_connect(copy)) as complete:
            complete.backup(target)


def connect_to_file_alone(path: str) -> sqlite3.Connection:
    """Open the file of a database without its logs. It takes no lock and creates no file.

    Even reading the bytes of a database in use needs SQLite. The system drops all POSIX locks of a process on a file
    when the process closes any descriptor of it, so SQLite keeps such descriptors open. The logs carry no locks.
    """
    return sqlite3.connect(f"{as_uri(path)}?mode=ro&immutable=1", uri=True, isolation_level=None)


def has_logs(path: str) -> bool:
    """Tell whether a log has content that may be missing in the file of the database."""
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            if os.stat(f"{path}{suffix}").st_size:
                return True
    return False


def _fingerprint(path: str) -> tuple[object, ...]:
    """Return a value that changes with every write to the database or its logs. Raises `FileNotFoundError`.

    Times are not enough: two writes may fall into one tick of the clock. Each transaction writes a new mark, and a log
    that starts again gets another header.
    """
    fingerprint: list[object] = [read_mark(os.path.dirname(path)), *_status(path)]
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            fingerprint += _status(f"{path}{suffix}")
            with open_regular(f"{path}{suffix}") as log:
                fingerprint.append(log.read(_LOG_HEADER))
    return tuple(fingerprint)


def _status(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns

"""The state's file: where it lies; made in whole, checked when opened, read without a trace."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING

from reconcile.fs.paths import is_not_regular, open_regular
from reconcile.fs.posix import process_lives
from reconcile.fs.private_files import FILE_MODE, create_private_file, make_private_directory
from reconcile.state.connection import Live, StateError
from reconcile.state.directory import GENERATION, NAME, OVERRIDE, generation, mark_of
from reconcile.state.local_list import NAME as LIST
from reconcile.state.local_list import has_revoked, head_of, list_again, number_of, take_in
from reconcile.state.local_list import read as read_list
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
"""The second where the file system has no shared memory."""
_FILES = (NAME, *(f"{NAME}{suffix}" for suffix in ("-wal", "-shm", "-journal")), GENERATION, LIST)
_LEFT_BY_RUNS = ("index-", "vault")
_LOST = "undo, and parents that JP stripped, are gone; nothing is removed or published because of that"
_LOG_HEADER = 32
_READ_ATTEMPTS = 5
_READ_PAUSES = (0.05, 0.2, 0)
"""Seconds after each attempt to read a database that is behind the list of what is local."""


class _Damaged(Exception):  # noqa: N818 - a finding, not an error: it never leaves this module
    """What is wrong with the file, in words."""


def open_for_writing(
    directory: str, messages: list[str], timeout: float, sound: Generation | None = None
) -> sqlite3.Connection:
    """Open the state, made where it is missing; a damaged one is moved aside and told in ``messages``.

    ``sound``: see `reconcile.state.database.State.open`.

    Raises `StateError`: a newer version, busy for ``timeout`` seconds, no permission, a full disk.
    """
    path = os.path.join(directory, NAME)
    try:
        make_private_directory(directory)
        demand_files(directory)
        names = set(os.listdir(directory))
        _remove_unfinished(directory, names)
        _demand_writable(directory, names)
        if NAME not in names and not _had_one(names):
            _create(path)
        try:
            connection = _checked(path, timeout, sound)
        except (_Damaged, FileNotFoundError):
            connection = _made_anew(path, messages, timeout)
    except (OSError, _Damaged) as error:
        raise StateError(
            f"{path}: {error}", hint=f"see to the directory's permissions, or set {OVERRIDE} to another place"
        ) from error
    try:
        _agree_with_list(connection, path, messages)
    except BaseException:
        connection.close()
        raise
    return connection


def demand_files(directory: str) -> None:
    """Raise `StateError` where something else has the name of a file of the state: SQLite waits for a pipe."""
    for name in _FILES:
        path = os.path.join(directory, name)
        try:
            found = is_not_regular(path)
        except OSError as error:
            raise StateError(f"{path}: could not be read: {error.strerror}", hint="see to its permissions") from error
        if found:
            raise StateError(f"{path}: it is no regular file", hint="move it away, and run again")


def _demand_writable(directory: str, names: set[str]) -> None:
    """Raise `StateError` where something may not be written, before SQLite opens it all the same, only to read.

    What SQLite made beside a database that was read-only then is read-only as well, and stays so when the database may
    be written again.
    """
    there = [name for name in (NAME, *_companions(names)) if name in names]
    for path in (directory, *(os.path.join(directory, name) for name in there)):
        if path.endswith(_COMPANIONS) and not os.access(path, os.W_OK):
            with contextlib.suppress(OSError):
                os.chmod(path, FILE_MODE)
        if not os.access(path, os.W_OK):
            raise StateError(f"{path}: it may not be written", hint="see to its permissions and its owner")


def _companions(names: set[str]) -> list[str]:
    """Return those of a database's companions that are there."""
    return [name for suffix in _COMPANIONS if (name := f"{NAME}{suffix}") in names]


def _had_one(names: set[str]) -> bool:
    """Tell whether a directory had a database: what SQLite made beside it is there, or what only a run leaves."""
    return bool(_companions(names)) or any(name.startswith(_LEFT_BY_RUNS) for name in names)


def _made_anew(path: str, messages: list[str], timeout: float) -> sqlite3.Connection:
    """Make the database again, with the damaged one, or what is left of one that was deleted, moved aside.

    One process at a time: the next one would move aside what the first has just made. Raises `_Damaged`, `StateError`.
    """
    from reconcile.fs.locks import acquire  # here: hardly any run does it

    lock = f"{path}.making"
    release = acquire(lock, timeout)
    if release is None:
        raise StateError(f"{lock}: another process is making the state again", hint="run again")
    try:
        names = set(os.listdir(os.path.dirname(path)))
        try:
            if NAME in names:
                return _checked(path, timeout, None)
            if _companions(names):  # of a database that was deleted: they must not be taken for the new one's
                _move_aside(path)
            messages.append(f"{path}: it was missing, and was made again; {_LOST}")
        except _Damaged as damage:
            kept = _move_aside(path)
            messages.append(f"{path}: {damage}; it was moved to {kept} and rebuilt; {_LOST}")
        _create(path)
        return _checked(path, timeout, None)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(lock)
        release()


def _agree_with_list(connection: sqlite3.Connection, path: str, messages: list[str]) -> None:
    """Have the database know all that the list says is local, and the list all that the database does."""
    directory = os.path.dirname(path)
    with state_errors(path):
        listed, number = head_of(directory), number_of(connection)
        if (listed.number if listed else 0) == number and not has_revoked(connection):
            return
    with transaction(connection, path):
        listed = head_of(directory)  # looked at again: nobody changes it now
        if listed is not None and listed.number > number_of(connection):
            _take_in(connection, path, messages)
        else:
            list_again(connection)


def _take_in(connection: sqlite3.Connection, path: str, messages: list[str]) -> None:
    """Have all that is listed be local, and tell what was not."""
    directory = os.path.dirname(path)
    if (found := read_list(directory)) is not None and (new := take_in(connection, *found, time.time_ns())):
        place = os.path.join(directory, LIST)
        words = f"by which {new} more conversations are local, or removed from a workspace: they stay so"
        messages.append(f"{path}: it is older than {place}, {words}")


def open_for_reading(directory: str, messages: list[str]) -> sqlite3.Connection:
    """A copy of the state in memory, empty where there is none or a damaged one; the disk isn't touched.

    SQLite itself can't do that: it creates ``-shm`` and ``-wal`` next to a database that it only reads, and
    with ``immutable`` it overlooks what a killed run or a running one has in its ``-wal``.
    Raises `StateError`: a newer version, unreadable, or written to all the time.
    """
    path = os.path.join(directory, NAME)
    demand_files(directory)
    with state_errors(path):
        for pause in _READ_PAUSES:
            listed, told = head_of(directory), list[str]()  # the list first: it is never behind
            connection = _as_it_is(path, told)
            is_behind = listed is not None and listed.number > number_of(connection)
            if not (is_behind and pause) or told or not _exists(path):
                break
            connection.close()
            time.sleep(pause)  # a transaction may be about to commit
        messages += told
        if is_behind:
            _take_in(connection, path, messages)
        connection.execute("PRAGMA query_only = ON")
    return connection


def _as_it_is(path: str, messages: list[str]) -> sqlite3.Connection:
    try:
        had_one = _had_one(_names(os.path.dirname(path)))  # before it is looked for: it may be made meanwhile
        if _exists(path):
            return _copied(path)
        if had_one:
            messages.append(
                f"{path}: it is missing, and read as empty. The next run that isn't a dry run makes it again"
            )
        return memory()
    except _Damaged as damage:
        if has_logs(path):  # which may have what the file lacks: only who writes can tell
            hint = "a run that isn't a dry run repairs or rebuilds it"
            raise StateError(f"{path}: {damage}", hint=hint) from damage
        messages.append(f"{path}: {damage}; read as empty. The next run that isn't a dry run rebuilds it")
        return memory()
    except OSError as error:
        raise StateError(f"{path}: could not be read: {error}", hint="see to its permissions") from error


def _names(directory: str) -> set[str]:
    try:
        return set(os.listdir(directory))
    except FileNotFoundError:
        return set()


def _exists(path: str) -> bool:
    """Tell whether there is something of this name; what may not be looked at is not taken for absent."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def memory() -> sqlite3.Connection:
    """An empty state that lives as long as its connection."""
    connection = _connect(":memory:")
    migrate(connection, ":memory:")
    return connection


def _connect(path: str) -> sqlite3.Connection:
    """Open a database that nobody else uses."""
    # Transactions are begun by `transaction` alone. One thread at a time uses it, not always the same.
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _create(path: str) -> None:
    """Make the file under another name and link it into place, so that it is seen complete or not at all."""
    # Of this thread alone, too: another one may be at it.
    temporary = os.path.join(os.path.dirname(path), f"{_UNFINISHED}{os.getpid()}-{os.urandom(4).hex()}")
    os.close(create_private_file(temporary))
    try:
        with state_errors(path), contextlib.closing(_connect(temporary)) as connection:
            # So large that a step of the journal fits into a quarter: what doesn't takes pages of its own.
            connection.execute("PRAGMA page_size = 16384")
            migrate(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")  # remembered in the file
        try:
            os.link(temporary, path)
        except FileExistsError:  # another process was faster
            return
        except OSError:  # no hard links here
            os.rename(temporary, path)
    finally:
        for name in (temporary, f"{temporary}-journal", f"{temporary}-wal", f"{temporary}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _remove_unfinished(directory: str, names: Iterable[str]) -> None:
    """Remove the files that killed processes were making a database under."""
    for name in names:
        pid = name.removeprefix(_UNFINISHED).partition("-")[0]
        if name.startswith(_UNFINISHED) and pid.isdecimal() and not process_lives(int(pid)):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(directory, name))


def _checked(path: str, timeout: float, sound: Generation | None) -> sqlite3.Connection:
    """Open an existing database for writing. Raises `_Damaged`, `StateError`."""
    is_sound = _is(path, sound)
    with state_errors(path):
        connection = Live(path, timeout)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            _check(connection, path, is_sound=is_sound)
            connection.execute("PRAGMA synchronous = FULL")
            # A run's transactions are copied into the database once, at its end, not again and again on the way.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute("PRAGMA cache_size = -8000")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone stops at the drive's cache
            migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _is(path: str, sound: Generation | None) -> bool:
    """Tell whether a database is just as it was when it was known to be sound."""
    return sound is not None and generation(os.path.dirname(path)) == sound


def _check(connection: sqlite3.Connection, path: str, *, is_sound: bool = False) -> None:
    """Is this a whole database of ours (known, where it is sound), of a version that we know?

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
            f"{path}: found version {version} of the state, expected at most {VERSION}",
            hint="a newer reconcile wrote it: update; or move it away, which loses undo and intents",
        )
    if version < 1:  # never true of a file that `_create` made
        raise _Damaged("damaged (an empty or foreign database)")


@contextlib.contextmanager
def _finding_damage() -> Iterator[None]:
    """Turn what SQLite says of a broken file into `_Damaged`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _Damaged(f"damaged ({error})") from error


def _move_aside(path: str) -> str:
    """Rename a damaged database and its companions to the first free name, and return that."""
    number = 1
    while any(os.path.lexists(f"{path}.damaged-{number}{suffix}") for suffix in ("", *_COMPANIONS)):
        number += 1
    kept = f"{path}.damaged-{number}"
    # The database last: a new one must never be made beside the old one's companions.
    for suffix in (*_COMPANIONS, ""):
        # Missing: there was none, or another process moves the same database.
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, kept + suffix)
    return kept


def _copied(path: str) -> sqlite3.Connection:
    """Copy a database and what its log adds into memory, unless it changed while being copied."""
    for _ in range(_READ_ATTEMPTS):
        before = _fingerprint(path)
        try:
            connection = _copied_once(path)
        except _Damaged:
            if _fingerprint(path) == before:
                raise
            continue  # only half written when it was copied
        if _fingerprint(path) == before:
            migrate(connection, path)
            return connection
        connection.close()
    raise StateError(f"{path}: it kept changing while it was read", hint="let the running reconcile finish")


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
    """Have SQLite put together, in a directory of its own, what the file and its logs hold."""
    import shutil  # here: only who writes nothing looks at a copy
    import tempfile

    with tempfile.TemporaryDirectory(prefix="reconcile-") as place:
        copy = os.path.join(place, NAME)
        with contextlib.closing(_connect(copy)) as same:
            same.execute("PRAGMA synchronous = OFF")
            source.backup(same)
        for suffix in _LOGS:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        with contextlib.closing(_connect(copy)) as whole:
            whole.backup(target)


def connect_to_file_alone(path: str) -> sqlite3.Connection:
    """Open a database as its file is now, without its logs: no lock is taken, nothing is made beside it.

    Also who only wants to read the bytes of a live database has to do it by way of SQLite. The system drops all POSIX
    locks that a process holds on a file when the process closes any descriptor of it. SQLite alone knows which
    descriptors it has to keep for that reason. Its logs carry no such locks.
    """
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(f"file:{quoted}?mode=ro&immutable=1", uri=True, isolation_level=None)


def has_logs(path: str) -> bool:
    """Tell whether something is written that isn't in the database's own file."""
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            if os.stat(f"{path}{suffix}").st_size:
                return True
    return False


def _fingerprint(path: str) -> tuple[object, ...]:
    """What changes when somebody writes to the database or its logs. Raises `FileNotFoundError`.

    Times alone don't tell: two changes may fall into one tick of the clock. Each transaction leaves a new mark; a log
    that is begun again has another header.
    """
    found: list[object] = [mark_of(os.path.dirname(path)), *_status(path)]
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            found += _status(f"{path}{suffix}")
            with open_regular(f"{path}{suffix}") as log:
                found.append(log.read(_LOG_HEADER))
    return tuple(found)


def _status(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns

"""reconcile's own lock, against other processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import filelock
import pytest

from reconcile.fs import locks
from reconcile.fs.locks import LockedError, acquire, read_holder, run_lock

PROJECT = Path(__file__).parents[2]
HOLD = (
    "import sys\nfrom reconcile.fs.locks import run_lock\n"
    "with run_lock(sys.argv[1], command='reconcile watch'):\n"
    "    print('held', flush=True)\n    sys.stdin.readline()"
)


class Other:
    """Another process that holds the lock until told otherwise."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(directory)],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout
        assert self.process.stdout.readline() == "held\n"

    def unpin(self) -> None:
        self.process.communicate("\n", timeout=20)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=20)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=20)
        return self.process.returncode


FORK = """
import os, sys
from reconcile.fs.locks import run_lock
end = sys.argv[2]
with run_lock(sys.argv[1], command="reconcile"):
    child = os.fork()
    if child == 0 and end != "left":
        sys.stdin.readline()
        os._exit(0)
    if child != 0:
        if end == "left":
            os.waitpid(child, 0)
        print("held", flush=True)
        if end == "left":
            sys.stdin.readline()
        if end == "killed":
            os.kill(os.getpid(), 9)
if child != 0:
    print("released", flush=True)
"""
"""A process that forks while it holds the lock: its copy leaves the block at once, or lives until it gets a line."""


def is_free(directory: Path) -> bool:
    try:
        with run_lock(str(directory), command="a"):
            return True
    except LockedError:
        return False


def forked(directory: Path, end: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FORK, str(directory), end],
        cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def test_it_is_said_who_holds_it_and_nothing_remains_said_after(tmp_path: Path) -> None:
    place = tmp_path / "a" / "state"
    with run_lock(str(place), command="reconcile apply plan.json"):
        assert place.stat().st_mode & 0o777 == 0o700
        assert (place / "lock").stat().st_mode & 0o777 == 0o600
        assert (place / "lock.json").stat().st_mode & 0o777 == 0o600
        holder = read_holder(str(place))
        assert holder is not None
        assert (holder.pid, holder.command) == (os.getpid(), "reconcile apply plan.json")
        assert holder.since.endswith("+00:00")
    assert read_holder(str(place)) is None
    assert {path.name for path in place.iterdir()} <= {"lock"}


def test_who_comes_second_is_told_at_once(tmp_path: Path) -> None:
    other = Other(tmp_path)
    said = json.loads((tmp_path / "lock.json").read_text())
    started = time.monotonic()
    with pytest.raises(LockedError) as caught, run_lock(str(tmp_path), command="reconcile"):
        pytest.fail("two held it")
    assert time.monotonic() - started < 1
    assert caught.value.exit_code == 5
    assert f"process {other.process.pid}" in caught.value.message
    assert "reconcile watch" in caught.value.message
    assert said["since"] in caught.value.message
    assert caught.value.hint
    # Who was refused must not take the holder's account away.
    assert json.loads((tmp_path / "lock.json").read_text()) == said
    other.unpin()
    with run_lock(str(tmp_path), command="reconcile"):
        pass


def test_waiting_ends_with_the_timeout_or_the_lock(tmp_path: Path) -> None:
    other = Other(tmp_path)
    started = time.monotonic()
    with (
        pytest.raises(LockedError, match=r"after 0\.3 s"),
        run_lock(str(tmp_path), command="a", timeout=0.3),
    ):
        pytest.fail("two held it")
    assert time.monotonic() - started >= 0.3
    subprocess.Popen(
        [sys.executable, "-c", f"import time, os; time.sleep(0.3); os.kill({other.process.pid}, 9)"]
    ).wait()
    other.process.communicate(timeout=20)
    with run_lock(str(tmp_path), command="a", timeout=10):
        pass


def test_a_killed_holder_leaves_it_free(tmp_path: Path) -> None:
    other = Other(tmp_path)
    other.kill()
    assert read_holder(str(tmp_path)) is not None
    with run_lock(str(tmp_path), command="mine"):
        holder = read_holder(str(tmp_path))
        assert holder is not None
        assert holder.command == "mine"


def test_it_goes_with_an_exception_too(tmp_path: Path) -> None:
    with pytest.raises(KeyError), run_lock(str(tmp_path), command="a"):
        raise KeyError
    Other(tmp_path).unpin()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "{",
        '{"pid": "x", "command": 1, "since": 2}',
        '{"pid": 1e999, "command": "a", "since": "b"}',
        '{"pid": -1, "command": "a", "since": "b"}',
        '{"pid": ' + "[" * 20_000,
    ],
)
def test_an_unreadable_account_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "lock.json").write_text(content)
    assert read_holder(str(tmp_path)) is None


def test_who_holds_it_is_told_before_waiting(tmp_path: Path) -> None:
    other = Other(tmp_path)
    told: list[str] = []
    with pytest.raises(LockedError), run_lock(str(tmp_path), command="a", timeout=0.2, waiting=told.append):
        pytest.fail("two held it")
    assert told == [str(read_holder(str(tmp_path)))]
    other.unpin()
    with run_lock(str(tmp_path), command="a", timeout=10, waiting=told.append):
        assert len(told) == 1


def test_it_is_the_lock_of_the_library(tmp_path: Path) -> None:
    script = """
import filelock, sys
try:
    filelock.FileLock(sys.argv[1], timeout=0).acquire()
except filelock.Timeout:
    sys.exit("held")
"""
    other = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with run_lock(str(tmp_path), command="a"):
        refused = subprocess.run(other, capture_output=True, text=True, check=False)
        assert refused.stderr == "held\n"
    subprocess.run(other, check=True)
    with filelock.FileLock(tmp_path / "lock"):
        assert not is_free(tmp_path)


def test_nobody_holds_it_twice_in_one_process(tmp_path: Path) -> None:
    with run_lock(str(tmp_path), command="outer"):
        assert not is_free(tmp_path)
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(is_free(tmp_path)))
        thread.start()
        thread.join()
        assert answers == [False]
        holder = read_holder(str(tmp_path))
        assert holder is not None
        assert holder.command == "outer"
    assert is_free(tmp_path)


def test_another_descriptor_of_the_file_may_be_closed(tmp_path: Path) -> None:
    with run_lock(str(tmp_path), command="a"):
        (tmp_path / "lock").open("r+b").close()
        with (tmp_path / "lock").open("r+b") as second:
            assert not locks.try_lock(second.fileno())
        assert not is_free(tmp_path)


def test_a_forked_copy_that_leaves_the_block_releases_nothing(tmp_path: Path) -> None:
    process = forked(tmp_path, "left")
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    assert not is_free(tmp_path)
    holder = read_holder(str(tmp_path))
    assert holder is not None
    assert holder.pid == process.pid
    process.communicate("\n", timeout=20)
    assert is_free(tmp_path)


def test_what_is_released_is_free_although_a_forked_copy_lives(tmp_path: Path) -> None:
    process = forked(tmp_path, "released")
    assert process.stdout
    assert [process.stdout.readline(), process.stdout.readline()] == ["held\n", "released\n"]
    assert is_free(tmp_path)
    process.communicate("\n", timeout=20)


def test_a_forked_copy_holds_it_for_one_that_was_killed(tmp_path: Path) -> None:
    """What the second process of a run still writes must not meet the next run."""
    process = forked(tmp_path, "killed")
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    assert process.wait(20) == -signal.SIGKILL
    assert not is_free(tmp_path)
    process.communicate("\n", timeout=20)
    with run_lock(str(tmp_path), command="a", timeout=20):
        pass


def test_a_program_that_is_started_does_not_hold_it(tmp_path: Path) -> None:
    with run_lock(str(tmp_path), command="a"):
        program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    assert is_free(tmp_path)
    program.communicate(b"\n", timeout=20)


def test_an_interrupt_releases_it(tmp_path: Path) -> None:
    assert Other(tmp_path).interrupt() == -signal.SIGINT
    assert read_holder(str(tmp_path)) is None
    assert is_free(tmp_path)


def test_an_interrupt_waits_until_the_library_is_loaded(tmp_path: Path) -> None:
    script = """
import importlib.abc, os, signal, sys
from reconcile.fs.locks import run_lock
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith("filelock."):
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
def handle(*_):
    print(hasattr(sys.modules["filelock"], "lock_descriptor"))
signal.signal(signal.SIGINT, handle)
sys.meta_path.insert(0, Finder())
with run_lock(sys.argv[1], command="a"):
    pass
"""
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert told.stdout == "True\n"


def test_an_interrupt_ends_the_wait(tmp_path: Path) -> None:
    script = HOLD.replace(
        "command='reconcile watch'", "command='b', timeout=60, waiting=lambda _: print('w', flush=True)"
    )
    with run_lock(str(tmp_path), command="a"):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "w\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == -signal.SIGINT
        assert read_holder(str(tmp_path)) is not None
        assert not is_free(tmp_path)


def test_who_waited_for_a_file_that_was_replaced_locks_the_new_one(tmp_path: Path) -> None:
    """The file is replaced between opening and locking it: both would hold a lock, one of them of no name."""
    path = tmp_path / "lock"
    real = locks.try_lock
    replaced: list[bool] = []

    def replacing(fd: int) -> bool:
        if not replaced:
            path.unlink()
            path.touch()
            replaced.append(True)
        return real(fd)

    with mock.patch.object(locks, "try_lock", replacing):
        release = acquire(str(path), 5)
    assert release is not None
    assert not is_free(tmp_path)
    release()
    assert is_free(tmp_path)


def test_a_deleted_file_is_no_lock_any_more(tmp_path: Path) -> None:
    """Not promised, as docs/safety.md says: the lock is the file's, and nobody can find a deleted one."""
    with run_lock(str(tmp_path), command="a"):
        (tmp_path / "lock").unlink()
        assert is_free(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_something_else_of_its_name_is_an_error_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        (tmp_path / "other").touch()
        path.symlink_to("other")
    else:
        path.mkdir()
    with pytest.raises(OSError, match=str(path)), run_lock(str(tmp_path), command="a", timeout=20):
        pytest.fail("it is no lock")


def test_a_file_system_without_locks_is_an_error(tmp_path: Path) -> None:
    with (
        mock.patch.object(locks, "try_lock", side_effect=OSError(38, "Function not implemented")),
        pytest.raises(OSError, match="not implemented"),
        run_lock(str(tmp_path), command="a", timeout=20),
    ):
        pytest.fail("it was not locked")
    assert {path.name for path in tmp_path.iterdir()} == {"lock"}

"""Leslie's lock, with real processes (docs/design/formats/leslie.md#locking).

See also docs/design/formats/leslie.md#edge-case-20 and docs/design/formats/leslie.md#edge-case-21.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reconcile.adapters.leslie.locks import Held, LeslieBusyError, LockLostError, acquire, leslie_locks

NODE = shutil.which("node")
LOCKER = Path(__file__).parents[2] / "support" / "formats" / "leslie_locker.js"

COUNTING = """
import os, sys, time
from reconcile.adapters.leslie.locks import LockLostError, acquire
file, left = sys.argv[1], int(sys.argv[2])
while left:
    held = acquire(file, 60)
    value = int(open(file).read())
    time.sleep(0.001)
    try:
        held.check()
    except LockLostError:  # another process takes it for stale for a moment: nothing is written
        held.release()
        continue
    with open(f"{file}.{os.getpid()}", "w") as new:
        new.write(str(value + 1))
    os.replace(f"{file}.{os.getpid()}", file)
    held.release()
    left -= 1
"""
HOLDING = """
import sys, time
from reconcile.adapters.leslie.locks import acquire
held = acquire(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "thread_relations.json"
    path.write_text("0")
    return path


def lock_of(file: Path) -> Path:
    return Path(f"{file}.lock")


def aged(lock: Path, seconds: float) -> Path:
    """A lock directory that is so old."""
    lock.mkdir(exist_ok=True)
    moment = time.time_ns() - int(seconds * 1e9)
    os.utime(lock, ns=(moment, moment))
    return lock


def test_taken_and_given_back(file: Path) -> None:
    with leslie_locks([str(file), str(file.with_name("objectives.json"))]) as (relations, objectives):
        assert sorted(path.name for path in file.parent.glob("*.lock")) == [
            "objectives.json.lock",
            "thread_relations.json.lock",
        ]
        assert list(lock_of(file).iterdir()) == []
        relations.check()
        objectives.check()
    assert list(file.parent.iterdir()) == [file]


def test_given_back_when_the_second_one_can_t_be_had(file: Path) -> None:
    second = file.with_name("objectives.json")
    acquire(str(second))
    with pytest.raises(LeslieBusyError), leslie_locks([str(file), str(second)], patience=0):
        pass
    assert not lock_of(file).exists()


def test_case_20_held_by_somebody(file: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDING, file], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        started = time.monotonic()
        with pytest.raises(LeslieBusyError, match="the lock is held, and 0 seconds old"):
            acquire(str(file), 0.3)
        assert 0.3 <= time.monotonic() - started < 5
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        # It is left behind; nobody touches it before it is ten seconds old.
        with pytest.raises(LeslieBusyError):
            acquire(str(file), 0)
        aged(lock_of(file), 11)
        acquire(str(file), 0).release()
    finally:
        holder.kill()
        holder.wait()
        holder.communicate()
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (3, "the lock is held, and 3 seconds old"),
        (9.5, "the lock is held, and 9 seconds old|the lock is held, and 10 seconds old"),
        (-0.6, "the lock is held, and 0 seconds old"),
        (-3600, "the lock is 3600 seconds ahead of the clock"),
    ],
)
def test_case_20_not_to_be_touched(file: Path, age: float, words: str) -> None:
    lock = aged(lock_of(file), age)
    before = os.lstat(lock)
    with pytest.raises(LeslieBusyError, match=words):
        acquire(str(file), 0)
    assert os.lstat(lock) == before


def test_case_21_what_is_in_it_stays(file: Path) -> None:
    lock = lock_of(file)
    lock.mkdir()
    (lock / "pid").write_text("1")
    aged(lock, 99)
    with pytest.raises(LeslieBusyError, match="the stale lock can't be removed, as it contains pid"):
        acquire(str(file))
    assert (lock / "pid").read_text() == "1"


@pytest.mark.parametrize("what", ["file", "link"])
def test_case_21_what_is_no_directory(file: Path, what: str) -> None:
    if what == "file":
        lock_of(file).write_text("")
    else:
        lock_of(file).symlink_to(file.parent)
    with pytest.raises(
        LeslieBusyError, match=f": a {what if what == 'file' else 'symbolic link'} is in the place of a lock"
    ):
        acquire(str(file))


def test_a_lock_that_was_taken_away(file: Path) -> None:
    held = acquire(str(file))
    lock_of(file).rmdir()
    with pytest.raises(LockLostError, match="another process removed the lock of this run"):
        held.check()
    other = acquire(str(file))
    with pytest.raises(LockLostError, match="another process replaced the lock of this run"):
        held.check()
    held.release()
    assert lock_of(file).exists()
    other.release()


def test_a_lock_whose_directory_was_replaced_is_lost(file: Path) -> None:
    """git can check out a file of its name."""
    held = acquire(str(file))
    shutil.rmtree(file.parent)
    file.parent.write_text("")
    with pytest.raises(LockLostError, match="removed the lock"):
        held.check()
    held.release()


def test_a_lock_that_is_removed_while_it_is_touched_is_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = acquire(str(file))
    aged(lock_of(file), 5)
    held.mtime_ns = lock_of(file).stat().st_mtime_ns
    monkeypatch.setattr("os.utime", os.rmdir)
    with pytest.raises(LockLostError, match="removed the lock"):
        held.check()
    held.release()


def test_a_lock_that_somebody_touched(file: Path) -> None:
    held = acquire(str(file))
    aged(lock_of(file), 1)
    with pytest.raises(LockLostError):
        held.check()


def test_a_lock_that_is_held_for_long_is_touched(file: Path) -> None:
    acquire(str(file))
    status = os.lstat(aged(lock_of(file), 5))
    held = Held(str(lock_of(file)), status.st_ino, status.st_mtime_ns)
    held.check()
    assert time.time() - os.lstat(lock_of(file)).st_mtime < 3
    held.check()
    held.release()
    assert not lock_of(file).exists()


def test_one_that_was_taken_anew_meanwhile_is_put_back(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a stale lock and its rename, another process removes it and takes its own."""
    lock = aged(lock_of(file), 11)
    rename = os.rename

    def slowly(source: str, target: str) -> None:
        if source == str(lock):
            lock.rmdir()
            lock.mkdir()
        rename(source, target)

    monkeypatch.setattr(os, "rename", slowly)
    with pytest.raises(LeslieBusyError, match="another process took the lock"):
        acquire(str(file), 0)
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, lock.name]


def test_no_addition_is_lost_among_processes_that_find_a_stale_lock(file: Path) -> None:
    aged(lock_of(file), 60)
    running = [subprocess.Popen([sys.executable, "-c", COUNTING, file, "10"]) for _ in range(4)]
    assert [process.wait(50) for process in running] == [0] * 4
    assert file.read_text() == "40"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_beside_a_writer_that_locks_as_leslie_does(file: Path) -> None:
    assert NODE is not None
    running = [
        subprocess.Popen([NODE, LOCKER, file, "8"]),
        subprocess.Popen([sys.executable, "-c", COUNTING, file, "20"]),
        subprocess.Popen([sys.executable, "-c", COUNTING, file, "20"]),
    ]
    assert [process.wait(50) for process in running] == [0] * 3
    assert file.read_text() == "48"
    assert list(file.parent.iterdir()) == [file]

"""reconcile's own lock, against other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reconcile.fs.locks import LockedError, own_lock, read_holder

PROJECT = Path(__file__).parents[2]
HOLD = (
    "import sys\nfrom reconcile.fs.locks import own_lock\n"
    "with own_lock(sys.argv[1], command='reconcile watch'):\n"
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

    def let_go(self) -> None:
        self.process.communicate("\n", timeout=20)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=20)


def test_it_is_said_who_holds_it_and_nothing_remains_said_after(tmp_path: Path) -> None:
    place = tmp_path / "a" / "state"
    with own_lock(str(place), command="reconcile apply plan.json"):
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
    with pytest.raises(LockedError) as caught, own_lock(str(tmp_path), command="reconcile"):
        pytest.fail("two held it")
    assert time.monotonic() - started < 1
    assert caught.value.exit_code == 5
    assert f"process {other.process.pid}" in caught.value.message
    assert "reconcile watch" in caught.value.message
    assert said["since"] in caught.value.message
    assert caught.value.hint
    # Who was refused must not take the holder's account away.
    assert json.loads((tmp_path / "lock.json").read_text()) == said
    other.let_go()
    with own_lock(str(tmp_path), command="reconcile"):
        pass


def test_waiting_ends_with_the_timeout_or_the_lock(tmp_path: Path) -> None:
    other = Other(tmp_path)
    started = time.monotonic()
    with (
        pytest.raises(LockedError, match=r"waited 0\.3 s"),
        own_lock(str(tmp_path), command="a", timeout=0.3),
    ):
        pytest.fail("two held it")
    assert time.monotonic() - started >= 0.3
    subprocess.Popen(
        [sys.executable, "-c", f"import time, os; time.sleep(0.3); os.kill({other.process.pid}, 9)"]
    ).wait()
    other.process.communicate(timeout=20)
    with own_lock(str(tmp_path), command="a", timeout=10):
        pass


def test_a_killed_holder_leaves_it_free(tmp_path: Path) -> None:
    other = Other(tmp_path)
    other.kill()
    assert read_holder(str(tmp_path)) is not None
    with own_lock(str(tmp_path), command="mine"):
        holder = read_holder(str(tmp_path))
        assert holder is not None
        assert holder.command == "mine"


def test_it_goes_with_an_exception_too(tmp_path: Path) -> None:
    with pytest.raises(KeyError), own_lock(str(tmp_path), command="a"):
        raise KeyError
    Other(tmp_path).let_go()


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
    with pytest.raises(LockedError), own_lock(str(tmp_path), command="a", timeout=0.2, waiting=told.append):
        pytest.fail("two held it")
    assert told == [str(read_holder(str(tmp_path)))]
    other.let_go()
    with own_lock(str(tmp_path), command="a", timeout=10, waiting=told.append):
        assert len(told) == 1

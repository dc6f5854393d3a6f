"""The list of local conversations beside the database: what is private stays so when the database is lost."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.model.baseline import Baseline, Intent, IntentKind
from reconcile.state.connection import StateError
from reconcile.state.database import BaselineUpdate, State
from reconcile.state.private_list import read
from reconcile.state.schema import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[2]
LOCAL = Intent(IntentKind.LOCAL)
DATABASE, LIST = "state.sqlite", "local.jsonl"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data" / "jp-abc"


def change(place: Path, local: str = "", public: str = "") -> None:
    """Make these local, and those public, in one transaction; each id is a letter."""
    with State.open(str(place)) as state:
        save(state, local, public)


def save(state: State, local: str = "", public: str = "") -> None:
    checkout = state.checkout("/p", "8:1", 1)
    assert checkout is not None
    state.save_update(checkout, BaselineUpdate(intents={**dict.fromkeys(local, LOCAL), **dict.fromkeys(public, None)}))


def listed(place: Path) -> str:
    found = read(str(place))
    return "" if found is None else "".join(sorted(each for each in found[1] if isinstance(each, str)))


def listed_removed(place: Path) -> set[str]:
    found = read(str(place))
    return set() if found is None else {each[0] for each in found[1] if not isinstance(each, str)}


def local_in(baseline: Baseline) -> str:
    return "".join(sorted(key for key, intent in baseline.intents.items() if intent == LOCAL))


def known(place: Path, *, readonly: bool) -> tuple[str, tuple[str, ...]]:
    """Return what is local for who opens the state, and what that is told."""
    with State.open(str(place), readonly=readonly) as state:
        return local_in(state.load(None)), state.messages


def delete(place: Path) -> None:
    for path in place.glob(f"{DATABASE}*"):
        path.unlink()


def leave_the_log(place: Path) -> None:
    """Delete the database alone, beside a log that a killed run has left."""
    with State.open(str(place)) as state:
        state.set_meta("a", "b")
        shutil.copy(place / f"{DATABASE}-wal", place / "kept")
    (place / DATABASE).unlink()
    (place / "kept").rename(place / f"{DATABASE}-wal")


LOSSES: dict[str, Callable[[Path], object]] = {
    "deleted": delete,
    "deleted beside its log": leave_the_log,
    "emptied": lambda place: (place / DATABASE).write_bytes(b""),
    "overwritten": lambda place: (place / DATABASE).write_bytes(b"a letter" * 4000),
    "cut off": lambda place: os.truncate(place / DATABASE, 20000),
    "moved aside": lambda place: (place / DATABASE).rename(place / f"{DATABASE}.damaged-1"),
    "of the time before": lambda place: shutil.copy(place / "before", place / DATABASE),
}


def test_it_is_text_for_its_owner_alone(place: Path) -> None:
    change(place)
    assert not (place / LIST).exists()
    change(place, local="ab")
    first, *lines = (place / LIST).read_text().splitlines()
    assert json.loads(first).keys() == {"about", "number", "count"}
    assert lines == ['"a"', '"b"']
    assert (place / LIST).stat().st_mode & 0o777 == 0o600
    change(place, local="b")
    assert (place / LIST).read_text().splitlines() == [first, *lines]


def test_names_that_are_no_text(place: Path) -> None:
    odd = 'a\n"\udcff\u2028\0'
    with State.open(str(place)) as state:
        checkout = state.checkout("/p", "8:1", 1)
        assert checkout is not None
        state.save_update(checkout, BaselineUpdate(intents={odd: LOCAL}))
    delete(place)
    with State.open(str(place)) as state:
        assert state.load(None).intents == {odd: LOCAL}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_was_local_stays_so_when_the_database_is_lost(place: Path, loss: str) -> None:
    change(place)
    shutil.copy(place / DATABASE, place / "before")
    change(place, local="abc")
    change(place, public="b")
    LOSSES[loss](place)
    if loss != "deleted beside its log":  # who only reads doesn't make one out of a log
        local, messages = known(place, readonly=True)
        assert (local, LIST in messages[-1]) == ("ac", True)
    local, messages = known(place, readonly=False)
    assert local == "ac"
    assert "2 more conversations of that list stay local" in messages[-1]
    assert known(place, readonly=False) == ("ac", ())
    assert listed(place) == "ac"
    change(place, local="d", public="a")
    assert listed(place) == "cd"


REMOVED = Intent(IntentKind.REMOVED)


def removed_in(place: Path, project: str, *, readonly: bool) -> str:
    with State.open(str(place), readonly=readonly) as state:
        checkout = state.checkout(project, "8:1", 1)
        intents = state.load(checkout).intents if checkout is not None else {}
    return "".join(sorted(key for key, intent in intents.items() if intent.kind is IntentKind.REMOVED))


@pytest.mark.parametrize("loss", [each for each in LOSSES if each != "deleted beside its log"])
def test_what_was_removed_from_a_workspace_stays_so_in_that_checkout(place: Path, loss: str) -> None:
    def decide(project: str, **intents: Intent | None) -> None:
        with State.open(str(place)) as state:
            checkout = state.checkout(project, "8:1", 1)
            assert checkout is not None
            state.save_update(checkout, BaselineUpdate(intents=intents))

    decide("/p", c=Intent(IntentKind.PROJECTED))
    shutil.copy(place / DATABASE, place / "before")
    decide("/p", a=REMOVED, b=REMOVED, c=REMOVED, d=REMOVED)
    decide("/q", b=REMOVED)
    decide("/p", b=None, d=Intent(IntentKind.PROJECTED))
    LOSSES[loss](place)
    for readonly in (True, False, False):
        assert (removed_in(place, "/p", readonly=readonly), removed_in(place, "/q", readonly=readonly)) == ("ac", "b")
    assert [json.loads(line) for line in (place / LIST).read_text().splitlines()[1:]] == [
        ["a", "/p", "8:1"],
        ["b", "/q", "8:1"],
        ["c", "/p", "8:1"],
    ]
    with State.open(str(place)) as state:
        for each in state.checkouts():
            state.forget_checkout(each.id)
    assert len((place / LIST).read_text().splitlines()) == 1


def test_what_comes_back_is_listed_until_that_is_committed(place: Path) -> None:
    with State.open(str(place)) as state:
        checkout = state.checkout("/p", "8:1", 1)
        assert checkout is not None
        state.save_update(checkout, BaselineUpdate(intents={"a": REMOVED, "b": REMOVED}))
        with contextlib.suppress(ZeroDivisionError), state.transaction():
            state.save_update(checkout, BaselineUpdate(intents={"a": None, "b": Intent(IntentKind.PROJECTED)}))
            raise ZeroDivisionError
        assert '["a","/p","8:1"]\n["b","/p","8:1"]\n' in (place / LIST).read_text()
        with state.transaction():
            state.save_update(checkout, BaselineUpdate(intents={"a": None}))
            state.save_update(checkout, BaselineUpdate(intents={"a": REMOVED, "b": None}))
    assert (place / LIST).read_text().endswith('["a","/p","8:1"]\n')
    assert '"b"' not in (place / LIST).read_text()


def test_an_old_copy_makes_nothing_public_that_was_local_then_or_now(place: Path) -> None:
    change(place, local="ab")
    shutil.copy(place / DATABASE, place / "before")
    change(place, local="c", public="a")
    shutil.copy(place / "before", place / DATABASE)
    assert known(place, readonly=True)[0] == "abc"
    assert known(place, readonly=False)[0] == "abc"
    assert listed(place) == "abc"


UNREADABLE: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: content[:-2],
    "a line lost": lambda content: content.replace(b'"b"\n', b""),
    "a line that is none": lambda content: content.replace(b'"b"', b"b"),
    "a line of something else": lambda content: content.replace(b'"b"', b"[1]"),
    "a line of too few": lambda content: content.replace(b'"b"', b'["b", "/p"]'),
    "zeros": lambda content: b"\0" * len(content),
    "empty": lambda _: b"",
    "no first line": lambda content: content.partition(b"\n")[2],
    "a first line without numbers": lambda _: b'{"number": "1", "count": true}\n',
    "a number without end": lambda _: b'{"number": %d, "count": 0}\n' % 2**63,
    "a number below zero": lambda _: b'{"number": -1, "count": 0}\n',
    "deep": lambda _: b"[" * 100000,
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_list_that_can_not_be_read_is_no_empty_one(place: Path, damage: str) -> None:
    change(place, local="abc")
    delete(place)
    content = (place / LIST).read_bytes()
    (place / LIST).write_bytes(UNREADABLE[damage](content))
    for readonly in (True, False, True, False):
        with pytest.raises(StateError, match=LIST) as caught:
            State.open(str(place), readonly=readonly)
        assert "private" in str(caught.value.hint)
    (place / LIST).write_bytes(content)
    assert known(place, readonly=True)[0] == known(place, readonly=False)[0] == "abc"


def test_a_damaged_line_beside_a_whole_database_is_written_again(place: Path) -> None:
    change(place, local="ab")
    (place / LIST).write_bytes(UNREADABLE["a line that is none"]((place / LIST).read_bytes()))
    assert known(place, readonly=False) == ("ab", ())
    change(place, local="c")
    assert listed(place) == "abc"


def test_a_list_that_is_gone_is_written_again(place: Path) -> None:
    change(place, local="ab")
    (place / LIST).unlink()
    assert known(place, readonly=True) == ("ab", ())
    assert not (place / LIST).exists()
    assert known(place, readonly=False) == ("ab", ())
    assert listed(place) == "ab"


def test_an_older_list_adds_nothing(place: Path) -> None:
    change(place, local="ab")
    older = (place / LIST).read_bytes()
    change(place, public="a")
    (place / LIST).write_bytes(older)
    assert known(place, readonly=True) == known(place, readonly=False) == ("b", ())
    assert listed(place) == "b"


def test_a_database_from_before_there_was_a_list_gets_one(place: Path) -> None:
    place.mkdir(parents=True)
    (first,) = (number for number, each in enumerate(MIGRATIONS) if "local_list" in each[0])
    with contextlib.closing(sqlite3.connect(place / DATABASE)) as old:
        for statement in (each for migration in MIGRATIONS[:first] for each in migration):
            old.execute(statement)
        old.execute(f"PRAGMA user_version = {first}")
        old.execute("INSERT INTO intent_local VALUES ('a', NULL, NULL, NULL)")
        old.commit()
    assert known(place, readonly=False) == ("a", ())
    assert listed(place) == "a"


def test_what_is_made_public_is_listed_until_that_is_committed(place: Path) -> None:
    change(place, local="ab")
    with State.open(str(place)) as state:
        with contextlib.suppress(ZeroDivisionError), state.transaction():
            save(state, local="c", public="a")
            assert listed(place) == "ab"
            raise ZeroDivisionError
        assert (listed(place), local_in(state.load(None))) == ("ab", "ab")
        with state.transaction():
            save(state, local="c", public="a")
        assert (listed(place), local_in(state.load(None))) == ("bc", "bc")


def test_threads_that_change_it_at_once(place: Path) -> None:
    def work(name: int) -> None:
        with State.open(str(place), timeout=60) as state:
            for letter in "abcdefgh":
                save(state, local=chr(ord(letter) + 8 * name), public=chr(ord(letter) + 8 * name - 1))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    local, messages = known(place, readonly=False)
    assert (listed(place), messages) == (local, ())


# Faults: each step that the program makes by itself, and each statement.

STORY = """
import errno, os, sys
from reconcile.model.baseline import Intent, IntentKind
from reconcile.state.connection import LiveConnection
from reconcile.state.database import BaselineUpdate, State, StateError
place, at, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
count = 0

def step(*_):
    global count
    count += 1
    if count == at:
        if how == "killed":
            os._exit(9)
        raise OSError(errno.ENOSPC, "No space left on device")

def counted(name):
    was = getattr(os, name)
    def call(*args, **options):
        step()
        return was(*args, **options)
    setattr(os, name, call)

local, removed = Intent(IntentKind.LOCAL), Intent(IntentKind.REMOVED)
with State.open(place) as state:
    checkout = state.checkout("/p", "8:1", 1)
    for name in ("open", "write", "fsync", "replace", "unlink"):
        counted(name)
    if how == "killed":
        state._connection.set_trace_callback(step)
    for intents in ({"d": local, "a": None}, {"e": local, "f": removed}, {"b": None, "f": None}):
        print("begun", "".join(intents), flush=True)
        try:
            state.save_update(checkout, BaselineUpdate(intents=intents))
        except StateError as error:
            assert "No space" in error.message, error
    if how == "killed":
        state._connection.set_trace_callback(None)
os._exit(0 if count >= at else 3)
"""


def played(place: Path, at: int, how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", STORY, str(place), str(at), how],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Error" not in done.stderr, done.stderr
    return done.returncode


@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", [pytest.param("killed", marks=pytest.mark.slow), "full"])
@pytest.mark.long
def test_a_fault_at_any_step_leaves_all_that_is_local_in_the_list(place: Path, tmp_path: Path, how: str) -> None:
    change(place, local="abc")
    shutil.copytree(place, tmp_path / "first")
    for at in range(1, 200):
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "first", place)
        code = played(place, at, how)
        with contextlib.closing(sqlite3.connect(place / DATABASE)) as database:
            held = {row[0] for row in database.execute("SELECT conversation FROM intent_local")}
            gone = {row[0] for row in database.execute("SELECT conversation FROM intent WHERE kind = 'removed'")}
        assert held <= set(listed(place)), at
        assert gone <= listed_removed(place), at
        local = set(known(place, readonly=True)[0])
        assert held <= local <= set(listed(place)), at
        if at % 4 == 0:
            assert set(known(place, readonly=False)[0]) == local == set(listed(place)), at
        listed_then = listed_removed(place)
        delete(place)
        assert local <= set(known(place, readonly=True)[0]), at
        assert set(removed_in(place, "/p", readonly=True)) == listed_then >= gone, at
        if code == 3:
            break
    assert code == 3
    assert at > 10


def test_a_list_that_can_not_be_written_makes_nothing_local_unlisted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(place, local="a")
    with State.open(str(place)) as state:
        with monkeypatch.context() as broken:
            broken.setattr(os, "replace", _full)
            with pytest.raises(StateError, match="No space"):
                save(state, local="b")
        assert (listed(place), local_in(state.load(None))) == ("a", "a")
        save(state, local="b")
    assert (listed(place), sorted(path.name for path in place.glob(f"{LIST}*"))) == ("ab", [LIST])


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("seed", range(8))
def test_random_changes_and_losses(place: Path, seed: int) -> None:
    """Whatever was local when the database was lost is local afterwards; nothing else becomes so but by an old copy."""
    chance, local = random.Random(seed), set[str]()
    for _ in range(25):
        more, less = (set(chance.sample("abcdefgh", chance.randrange(3))) for _ in range(2))
        change(place, "".join(sorted(more)), "".join(sorted(less - more)))
        local = (local - less) | more
        if chance.random() < 0.3:
            shutil.copy(place / DATABASE, place / "before")
            then = set(local)
        if (place / "before").exists() and chance.random() < 0.4:
            loss = chance.choice(sorted(LOSSES))
            LOSSES[loss](place)
            if loss == "of the time before" and local != then:
                local |= then
        if chance.random() < 0.3:
            assert set(known(place, readonly=True)[0]) >= local
        assert set(known(place, readonly=False)[0]) == local
        assert set(listed(place)) == local

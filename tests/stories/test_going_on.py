"""A run goes on from the one before: it looks at everything once, and then at what has changed."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.engine.session import Session
from tests.support.projects.world import LONG_AGO, SECOND, append, events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconcile.apply.executor import Outcome
    from tests.support.projects.world import World

ONE, TWO, NEW = 17500000001, 17500000002, 17500000003


@pytest.fixture
def known(world: World) -> World:
    """Two conversations on both sides, which the last run has found at rest."""
    for number in (ONE, TWO):
        write_conversation(world.workspace / f"{number}-it", "It", events(2))
    world.reconcile()
    world.reconcile()
    return world


@contextmanager
def no_look_at_everything() -> Iterator[None]:
    with mock.patch.object(Session, "scan", side_effect=AssertionError("everything is looked at")):
        yield


def test_what_has_changed_is_looked_at_run_after_run(known: World) -> None:
    with no_look_at_everything():
        for count in (3, 4):
            append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + count * SECOND)
            known.run("--workspace", known.project)
            assert known.event_count(ONE) == count
            assert "Nothing to do" in known.run("--workspace", known.project).stdout
        write_conversation(known.workspace / f"{NEW}-new", "New", events(2))
        assert "1 added to the store" in known.run("--workspace", known.project).stdout
        assert "3 up to date" in known.run("--workspace", known.project, "--dry-run").stdout


def test_what_was_removed_from_both_sides_is_counted_no_more(known: World) -> None:
    shutil.rmtree(known.store / f"{ONE}-it")
    assert "1 removed" in known.run("--workspace", known.project).stdout
    for _ in range(2):
        listed = known.run("--workspace", known.project, "ls").stdout
        assert str(TWO) in listed
        assert str(ONE) not in listed
        assert "1 conversation: 1 up to date." in known.run("--workspace", known.project, "status").stdout
        known.run("--workspace", known.project)


def test_what_other_commands_have_done_is_known(known: World) -> None:
    known.reconcile("local", str(TWO))
    assert "1 up to date, 1 local" in known.reconcile().stdout
    with no_look_at_everything():
        assert "1 up to date, 1 local" in known.run("--workspace", known.project).stdout


def test_a_run_that_had_something_to_do_is_gone_on_from(known: World) -> None:
    known.reconcile("local", str(TWO))
    append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + 3 * SECOND)
    assert "1 updated in the store" in known.reconcile().stdout  # everything was looked at
    append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + 4 * SECOND)
    with no_look_at_everything():
        assert "1 updated in the store" in known.run("--workspace", known.project).stdout
        assert "1 up to date, 1 local" in known.run("--workspace", known.project).stdout


@contextmanager
def meanwhile(act: Callable[[], object]) -> Iterator[None]:
    """Have somebody do something while a run works: after its actions, and before it looks again."""
    carry_out = Session.carry_out

    def acting(session: Session, *args: Any) -> Outcome:
        outcome = carry_out(session, *args)
        act()
        return outcome

    with mock.patch.object(Session, "carry_out", acting):
        yield


MEANWHILE: dict[str, Callable[[World], object]] = {
    "another directory of a conversation": lambda world: (world.workspace / f"{TWO}-other").mkdir(),
    "something foreign": lambda world: (world.workspace / "notes").mkdir(),
    "something foreign in a conversation": lambda world: os.mkfifo(world.workspace / f"{TWO}-it" / "pipe"),
    "an edit": lambda world: append(world.workspace / f"{TWO}-it", 1, "w", LONG_AGO + 5 * SECOND),
    "a file that is broken": lambda world: (world.workspace / f"{TWO}-it" / "metadata.json").write_text("{"),
    "another name": lambda world: (world.workspace / f"{TWO}-it").rename(world.workspace / f"{TWO}-other"),
    "a new conversation": lambda world: write_conversation(world.workspace / f"{NEW}-new", "New", events(2)),
    "a conversation that is gone": lambda world: shutil.rmtree(world.workspace / f"{TWO}-it"),
}


@pytest.mark.parametrize("how", ["a command that looks at everything", "a part that doesn't suffice"])
@pytest.mark.parametrize("act", MEANWHILE.values(), ids=MEANWHILE)
def test_what_happens_during_a_look_at_everything_is_not_passed_over(
    known: World, act: Callable[[World], object], how: str
) -> None:
    append(known.store / f"{ONE}-it", 1, "w", LONG_AGO + 3 * SECOND)
    if how.startswith("a part"):
        (known.store / "somebody's").mkdir()
    with meanwhile(lambda: act(known)):
        told = known.run("--workspace", known.project, *(["--json"] if how.startswith("a command") else []))
    assert "project" in told.stdout
    kept = known.run("--workspace", known.project, "--dry-run").stdout
    for path in known.state.parent.rglob("index-*"):
        path.unlink()
    assert kept == known.run("--workspace", known.project, "--dry-run").stdout


def test_what_a_look_at_everything_has_removed_is_not_told_of_again(known: World) -> None:
    (known.workspace / f"{ONE}-it" / "link").symlink_to("metadata.json")
    known.reconcile("local", str(TWO))  # so that everything is looked at
    shutil.rmtree(known.store / f"{ONE}-it")
    assert "a symbolic link" in known.reconcile().stdout
    assert not (known.workspace / f"{ONE}-it").exists()
    for _ in range(2):
        assert "a symbolic link" not in known.run("--workspace", known.project).stdout


def test_what_is_held_is_said_every_time(known: World) -> None:
    (known.workspace / f"{ONE}-it" / "metadata.json").write_text("{")
    for _ in range(3):
        result = known.run("--workspace", known.project)
        assert result.exit_code == 4
        assert "metadata.json: a truncated file" in result.stdout
        assert "1 blocked" in result.stdout
    dry = known.run("--workspace", known.project, "--dry-run")
    assert (dry.exit_code, "1 blocked" in dry.stdout) == (4, True)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at:][1:]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "incomplete": lambda content: content[:-1],
    "empty": lambda _: b"",
    "another file": lambda _: b"\0" * 100,
    "another header": lambda content: flipped(content, 10),
    "another byte in the middle": lambda content: flipped(content, len(content) // 2),
    "another byte at the end": lambda content: flipped(content, len(content) - 1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_was_saved_may_be_damaged(known: World, damage: Callable[[bytes], bytes]) -> None:
    (index,) = known.state.parent.rglob("index-*")
    index.write_bytes(damage(index.read_bytes()))
    append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + 3 * SECOND)
    known.reconcile()
    assert known.event_count(ONE) == 3


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_the_saved_changes_may_be_damaged(known: World, damage: Callable[[bytes], bytes]) -> None:
    for number in range(64):
        write_conversation(known.workspace / f"{NEW + number}-new", "New", events(2))
    known.reconcile()
    time.sleep(0.1)  # a file that was written a moment ago has no row
    known.reconcile("--json")
    append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + 3 * SECOND)
    known.run("--workspace", known.project)
    (changes,) = known.state.parent.rglob("index-*.changes")
    changes.write_bytes(damage(changes.read_bytes()))
    for count in (4, 5):
        append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + count * SECOND)
        known.reconcile()
        assert known.event_count(ONE) == count


def test_one_change_writes_the_changes_alone(known: World) -> None:
    for number in range(64):
        write_conversation(known.workspace / f"{NEW + number}-new", "New", events(2))
    known.reconcile()
    time.sleep(0.1)
    known.reconcile("--json")
    (index,) = (path for path in known.state.parent.rglob("index-*") if path.suffix != ".changes")
    before = index.stat().st_ino
    for act in (
        lambda: append(known.workspace / f"{ONE}-it", 1, "w", LONG_AGO + 3 * SECOND),
        lambda: write_conversation(known.workspace / f"{NEW + 100}-new", "New", events(2)),
        lambda: known.run("local", str(TWO), "--workspace", known.project),
    ):
        act()
        with no_look_at_everything():
            known.run("--workspace", known.project)
            known.run("--workspace", known.project)
        assert index.stat().st_ino == before


def test_a_state_that_decays_without_a_trace_is_moved_aside(world: World) -> None:
    with mock.patch("reconcile.state.directory._status", return_value=()):
        for number in (ONE, TWO):
            write_conversation(world.workspace / f"{number}-it", "It", events(2))
        world.reconcile()
        world.reconcile()
        (state,) = world.state.parent.rglob("state.sqlite")
        whole = state.read_bytes()
        state.write_bytes(whole[:16384] + b"\xff" * (len(whole) - 16384))
        append(world.workspace / f"{ONE}-it", 1, "w", LONG_AGO + 3 * SECOND)
        result = world.run("--workspace", world.project)
    assert "state.sqlite: damaged" in result.output
    assert "; moved to " in result.output
    assert state.with_name("state.sqlite.damaged-1").exists()
    assert world.event_count(ONE) == 3

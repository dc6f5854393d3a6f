"""Somebody without a lock writes at the worst moment: after the look at both sides, or right before the rename."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.apply.executor import Executor
from reconcile.engine.session import Session
from reconcile.fs.mutations import Root
from reconcile.state.vault import Vault
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    contents,
    events,
    set_key,
    write_conversation,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.projects.world import World

NUMBER = 17500000001
NAME = f"{NUMBER}-it"
SAVED = b'[{"timestamp": "2026-01-01T00:00:00Z", "type": "chat_request", "content": "somebody else\'s"}]\n'
RENAMES = ("exchange", "rename", "rename_new", "set_time")


# --- what somebody does to a file -------------------------------------------------------------------------------


def rewrite(path: Path) -> None:
    """Write other bytes of the same length into the file, and put its time back: only the bytes tell."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(SAVED[: before.st_size].ljust(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def save(path: Path) -> None:
    """Save as editors do: a new file, renamed over the old one."""
    temporary = path.with_name("#editor.tmp")
    temporary.write_bytes(SAVED)
    temporary.rename(path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(SAVED)


def remove(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    """Put a symbolic link in its place, to a file that is nobody's business."""
    path.unlink()
    path.symlink_to(path.parents[5] / "outside")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_bytes(SAVED)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


WRITERS = (rewrite, save, grow, remove, link, directory, pipe)


# --- what reconcile is about to do ------------------------------------------------------------------------------


def copying(world: World) -> tuple[Path, Path]:
    """The workspace's stream replaces the store's; the file, and what is renamed."""
    append(world.workspace / NAME, 2, "w", LONG_AGO + 10 * SECOND)
    stored = world.store / NAME / "events.json"
    return stored, stored


def projecting(world: World) -> tuple[Path, Path]:
    append(world.store / NAME, 2, "s", LONG_AGO + 10 * SECOND)
    ours = world.workspace / NAME / "events.json"
    return ours, ours


def removing(world: World) -> tuple[Path, Path]:
    """It was removed from the store: the whole directory goes from the workspace."""
    shutil.rmtree(world.store / NAME)
    return world.workspace / NAME / "events.json", world.workspace / NAME


def moving(world: World) -> tuple[Path, Path]:
    set_key(world.workspace / NAME, "title", "Another", LONG_AGO + 10 * SECOND)
    return world.workspace / NAME / "events.json", world.workspace / NAME


def joining(world: World) -> tuple[Path, Path]:
    """The store's stream has its base configuration in it: the file of that name goes from the workspace."""
    path = world.store / NAME / "events.json"
    base = {"timestamp": "2026-01-01T00:00:00Z", "type": "config_delta", "delta": {}}
    (world.store / NAME / "base_config.json").unlink()
    write_json(path, [base, *events(5)], LONG_AGO + 10 * SECOND)
    ours = world.workspace / NAME / "base_config.json"
    return ours, ours


def ageing(world: World) -> tuple[Path, Path]:
    """An old version was checked out: its time is put back."""
    old = (world.workspace / NAME / "events.json").read_bytes()
    append(world.workspace / NAME, 2, "w", LONG_AGO + 10 * SECOND)
    world.reconcile()
    ours = world.workspace / NAME / "events.json"
    ours.write_bytes(old)
    os.utime(ours, ns=(LONG_AGO + 20 * SECOND, LONG_AGO + 20 * SECOND))
    return ours, ours


STEPS = (copying, projecting, removing, moving, joining, ageing)


# --- when -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def after_the_scan(_: Path, then: Callable[[], None]) -> Iterator[None]:
    carry_out = Executor.run

    def run(executor: Executor, *args: Any) -> Any:
        then()
        return carry_out(executor, *args)

    with mock.patch.object(Executor, "run", run):
        yield


@contextlib.contextmanager
def before_the_rename(renamed: Path, then: Callable[[], None]) -> Iterator[None]:
    """Have something happen between the last look and the system call that changes this name."""
    due = True

    def wrapped(name: str) -> Any:
        call = getattr(Root, name)

        def called(root: Root, *args: Any) -> Any:
            nonlocal due
            if due and str(renamed) in [root.absolute(arg) for arg in args if isinstance(arg, str)]:
                due = False
                then()
            return call(root, *args)

        return called

    with contextlib.ExitStack() as stack:
        for name in RENAMES:
            stack.enter_context(mock.patch.object(Root, name, wrapped(name)))
        yield
    assert not due, f"{renamed} was never renamed"


@contextlib.contextmanager
def while_it_is_saved(renamed: Path, then: Callable[[], None]) -> Iterator[None]:
    """Have something happen when the vault has read the file, and has not answered yet."""
    due, put_file = True, Vault.put_file

    def called(vault: Vault, source: int | str) -> Any:
        nonlocal due
        kept = put_file(vault, source)
        there = renamed / "events.json" if renamed.is_dir() else renamed
        if due and isinstance(source, int) and os.path.samestat(os.fstat(source), there.stat()):
            due = False
            then()
        return kept

    with mock.patch.object(Vault, "put_file", called):
        yield
    assert not due, f"{renamed} was never saved"


@pytest.fixture
def world(world: World) -> World:
    write_conversation(world.workspace / NAME, "It", events(3))
    write_conversation(world.workspace / f"{NUMBER + 1}-other", "Other", events(3))
    (world.project / "outside").write_text("nobody else's business")
    world.reconcile()
    return world


def check(world: World, step: Any, writer: Any, moment: Any) -> None:
    """Whatever was written is kept, nothing outside is touched, and the next runs come to an end."""
    path, renamed = step(world)
    before: set[str] = set()

    def happen() -> None:
        writer(path)
        before.update(world.kept())

    with moment(renamed, happen):
        result = world.run("--workspace", world.project)
    assert result.exit_code in (0, 4), result.output
    assert before <= world.kept(), f"lost:\n{result.output}"
    world.check_clean()
    result = world.run("--workspace", world.project)
    assert result.exit_code in (0, 4), result.output
    assert before <= world.kept(), f"lost:\n{result.output}"
    world.check_settled()
    assert (world.project / "outside").read_text() == "nobody else's business"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("moment", [after_the_scan, before_the_rename])
def test_what_somebody_writes_meanwhile_is_kept(world: World, step: Any, writer: Any, moment: Any) -> None:
    check(world, step, writer, moment)


@pytest.mark.parametrize("step", [copying, projecting, removing, joining])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_somebody_writes_while_the_vault_reads_is_kept(world: World, step: Any, writer: Any) -> None:
    check(world, step, writer, while_it_is_saved)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("writer", [rewrite, grow])
def test_without_the_exchange_a_second_link_keeps_what_is_written_into_a_file(
    world: World, step: Any, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS. What is renamed to the name in that moment is not kept: docs/safety.md says so."""
    monkeypatch.setattr("reconcile.fs.posix._find_renameat2", lambda: None)
    check(world, step, writer, before_the_rename)


def doubling(world: World) -> tuple[Path, Path, list[str]]:
    """Somebody moves a directory by copying it: for a moment it is there twice, and one of them would go."""
    copied = world.workspace / f"{NUMBER + 1}-other" / "conversations" / NAME
    shutil.copytree(world.workspace / NAME, copied)
    return world.workspace / NAME, copied, []


def localizing(world: World) -> tuple[Path, Path, list[str]]:
    """It is to leave the workspace, as the store has it."""
    return world.store / NAME, world.workspace / NAME, ["local", str(NUMBER)]


@pytest.mark.parametrize("step", [doubling, localizing])
@pytest.mark.parametrize("moment", [after_the_scan, before_the_rename])
def test_a_directory_stays_where_the_other_one_goes_meanwhile(world: World, step: Any, moment: Any) -> None:
    other, going, command = step(world)
    before = world.kept()
    with moment(going, lambda: shutil.rmtree(other)):
        result = world.run("--workspace", world.project, *command)
    assert result.exit_code == 4, result.output
    assert going.is_dir(), result.output
    assert before <= world.kept()
    world.check_clean()
    world.reconcile()
    assert before <= world.kept()


@contextlib.contextmanager
def before_it_begins(then: Callable[[], None]) -> Iterator[None]:
    """After the plan was made, before anything is opened to be changed."""
    usual = Session.carry_out

    def carry_out(session: Session, *args: Any) -> Any:
        then()
        return usual(session, *args)

    with mock.patch.object(Session, "carry_out", carry_out):
        yield


@pytest.fixture
def renamed(world: World) -> World:
    """A silo whose project had another name when JP made it; something is to be saved into it."""
    world.silo.rename(world.silo.with_name("before-ab1cd"))
    world.reconcile()
    append(world.workspace / NAME, 2, "w", LONG_AGO + 10 * SECOND)
    write_conversation(world.workspace / f"{NUMBER + 2}-new", "New", events(2))
    return world


@pytest.mark.parametrize("moment", ["before it begins", "before the rename"])
def test_a_silo_that_jp_renames_meanwhile(renamed: World, moment: str) -> None:
    old, new = renamed.silo, renamed.silo.with_name("project-ab1cd")
    before = renamed.kept()

    def rename() -> None:
        old.rename(new)

    stream = old / "conversations" / NAME / "events.json"
    with before_it_begins(rename) if moment == "before it begins" else before_the_rename(stream, rename):
        result = renamed.run("--workspace", renamed.project)
    assert result.exit_code in (1, 4), result.output
    assert "Traceback" not in result.output
    assert before <= renamed.kept()
    assert not old.exists(), "a second silo was made"
    renamed.reconcile()
    assert renamed.event_count(NUMBER) == 5


def test_a_workspace_that_is_deleted_meanwhile_is_not_made_anew(world: World) -> None:
    append(world.store / NAME, 2, "s", LONG_AGO + 10 * SECOND)
    store = world.store
    stored = contents(store)
    with before_it_begins(lambda: shutil.rmtree(world.project / ".jp")):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    assert "deleted or moved during this run" in result.stderr
    assert not (world.project / ".jp").exists()
    assert contents(store) == stored


def test_a_workspace_that_is_another_by_now(world: World) -> None:
    """A second checkout was moved to the place of the first: nothing of the first's plan is for it."""
    append(world.store / NAME, 2, "s", LONG_AGO + 10 * SECOND)

    def swap() -> None:
        shutil.copytree(world.project, world.project.with_name("other"))
        shutil.move(world.project, world.project.with_name("before"))
        world.project.with_name("other").rename(world.project)

    with before_it_begins(swap):
        result = world.run("--workspace", world.project)
    assert result.exit_code == 4, result.output
    assert "replaced by another directory during this run" in result.stderr
    assert world.event_count(NUMBER, world.workspace) == 3
    world.reconcile()

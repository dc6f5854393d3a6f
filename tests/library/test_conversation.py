"""Locks and mutable scopes: what is dirty is on the disk before the lock goes, in whichever way it goes."""

from __future__ import annotations

import copy
import functools
import gc
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from reconcile import (
    ChangedError,
    ConversationLock,
    ConversationMut,
    Draft,
    Event,
    Events,
    InvalidValueError,
    Metadata,
    MisuseError,
    PersistError,
    ReleasedError,
    Workspace,
    new_event,
    thawed,
)
from reconcile.fs.mutations import Root
from tests.support.library.conversations import check, directory, locked, mutable, read, say, texts
from tests.support.projects.jp_process import JpProcess
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import LONG_AGO, SECOND, append, digest_of, stamps, write_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from reconcile.fs.files import Fingerprint
    from reconcile.model.snapshot import Digest
    from tests.support.projects.world import World


@pytest.fixture
def jp(world: World) -> Iterator[JpProcess]:
    with JpProcess(world.silo, world.project / ".jp") as process:
        yield process


@pytest.fixture
def full_disk(world: World) -> Callable[[], mock._patch[object]]:
    """Has the workspace's disk be full, once called."""

    def fill() -> mock._patch[object]:
        create = Root.create_file

        def refused(root: Root, *args: object) -> tuple[Fingerprint, Digest]:
            if root.path == str(world.workspace):
                raise OSError(28, "No space left on device", args[0])
            return create(root, *args)  # type: ignore[arg-type]

        return mock.patch.object(Root, "create_file", refused)

    return fill


def fail(mut: ConversationMut) -> None:
    """Leave a scope that is dirty by an exception."""
    with mut:
        say(mut, "before it")
        raise KeyError("mine")


def say_in(guards: list[ConversationMut | ConversationLock], text: str) -> None:
    (mut,) = guards
    assert isinstance(mut, ConversationMut)
    say(mut, text)


def forget(guards: list[ConversationMut | ConversationLock]) -> None:
    """Drop what is nowhere else, as the garbage collector finds it."""
    guards.clear()
    gc.collect()


def is_free(jp: JpProcess, number: int = FIRST) -> bool:
    if jp.take(number):
        jp.release(number)
        return True
    return False


def test_jp_and_we_exclude_each_other(workspace: Workspace, jp: JpProcess) -> None:
    assert jp.take(FIRST)
    handle = workspace.acquire(str(FIRST))
    assert workspace.lock_conversation(handle, timeout=0.05) is None
    jp.release(FIRST)
    with locked(workspace):
        assert not jp.take(FIRST)
        assert is_free(jp, SECOND_ID)
    assert is_free(jp)


def test_who_waits_gets_it_when_it_is_free(workspace: Workspace, jp: JpProcess) -> None:
    assert jp.take(FIRST)
    timer = threading.Timer(0.1, jp.release, [FIRST])
    timer.start()
    locked(workspace).close()
    timer.join()


def test_others_are_told_who_has_it(world: World, workspace: Workspace) -> None:
    lock = workspace.lock_conversation(workspace.acquire(str(FIRST)), session="12057")
    assert lock is not None
    with lock:
        said = json.loads((world.silo / "locks" / f"jp-c{FIRST}.lock").read_bytes())
    assert (said["pid"], said["session"]) == (os.getpid(), "12057")


def test_a_lock_stays_when_its_mutable_scope_ends(world: World, workspace: Workspace, jp: JpProcess) -> None:
    with locked(workspace) as lock:
        with lock.as_mut() as mut:
            say(mut, "one")
        assert world.event_count(FIRST) == 4
        assert len(lock.events) == 4
        assert not is_free(jp)
        with lock.as_mut() as mut:
            say(mut, "two")
    assert world.event_count(FIRST) == 5
    assert is_free(jp)


def test_a_lock_that_was_given_away_is_of_no_use(workspace: Workspace, jp: JpProcess) -> None:
    lock = locked(workspace)
    with lock.into_mut() as mut:
        for use in (lambda: lock.metadata, lock.as_mut, lock.into_mut):
            with pytest.raises(ReleasedError, match=f"jp-c{FIRST}"):
                use()
        lock.close()
        assert len(mut.events) == 3
    assert is_free(jp)


def test_only_one_mutable_scope_at_once(workspace: Workspace) -> None:
    with locked(workspace) as lock, lock.as_mut():
        for another in (lock.as_mut, lock.into_mut):
            with pytest.raises(MisuseError, match="already"):
                another()


def test_nothing_works_after_the_release(workspace: Workspace) -> None:
    mut = mutable(workspace)
    mut.close()
    mut.close()
    assert mut.closed
    uses: list[Callable[[], object]] = [
        lambda: mut.metadata,
        lambda: mut.events,
        lambda: say(mut, "late"),
        mut.flush,
        lambda: workspace.remove_conversation(mut),
        mut.__enter__,
    ]
    for use in uses:
        with pytest.raises(ReleasedError, match="lock the conversation again"):
            use()


def test_closing_a_lock_writes_what_its_scope_has(world: World, workspace: Workspace) -> None:
    lock = locked(workspace)
    mut = lock.as_mut()
    say(mut, "hello")
    lock.close()
    assert world.event_count(FIRST) == 4
    assert mut.closed
    mut.close()


def test_nothing_dirty_nothing_written(world: World, workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))
    before = stamps(world.store), stamps(world.workspace), world.remembered()
    with locked(workspace) as lock:
        assert len(lock.events) == 3
    with mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.update(title="It"))
        say(mut, "hello")
        mut.update_events(lambda events: events.pop())
        assert not mut.dirty
        mut.flush()
    assert len(workspace.events(handle)) == 3
    assert (stamps(world.store), stamps(world.workspace), world.remembered()) == before


def test_only_the_file_that_differs_is_written(world: World, workspace: Workspace) -> None:
    ours = directory(world.store, FIRST)
    before = (ours / "metadata.json").stat()
    with mutable(workspace) as mut:
        say(mut, "hello")
    after = (ours / "metadata.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_flush_writes_now(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "one")
        mut.flush()
        assert world.event_count(FIRST) == world.event_count(FIRST, world.workspace) == 4
        assert not mut.dirty


def test_a_callbacks_value_comes_back(workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        assert mut.update_metadata(lambda metadata: metadata["title"]) == "It"
        assert mut.update_events(len) == 3

        def both(draft: Draft) -> str:
            draft.metadata["title"] = "Both"
            draft.events.append(new_event("turn_start"))
            assert draft.base_config is not None
            draft.base_config["assistant"] = {}
            return "done"

        assert mut.update(both) == "done"
        assert (mut.metadata["title"], len(mut.events)) == ("Both", 4)


def test_what_a_callback_raises_leaves_everything(world: World, workspace: Workspace) -> None:
    def fails(events: Events) -> None:
        events.clear()
        raise KeyError("mine")

    with mutable(workspace) as mut:
        with pytest.raises(KeyError, match="mine"):
            mut.update_events(fails)
        assert len(mut.events) == 3
    assert world.event_count(FIRST) == 3


@pytest.mark.parametrize(
    "value",
    [{"type": "x"}, {"timestamp": "now"}, "text", {"timestamp": "x", "type": "x", "n": float("nan")},
     {"timestamp": "x", "type": "x", "n": "\ud800"}, {"timestamp": "x", "type": "x", "n": object()}],
)  # fmt: skip
def test_what_jp_could_not_read_is_refused(world: World, workspace: Workspace, value: Event) -> None:
    with mutable(workspace) as mut:
        with pytest.raises(InvalidValueError, match="nothing was changed"):
            mut.update_events(lambda events: events.append(value))
        assert not mut.dirty
        with pytest.raises(InvalidValueError, match="last_activated_at"):
            mut.update_metadata(lambda metadata: metadata.clear())
    assert world.event_count(FIRST) == 3


def test_a_coroutine_is_no_callback(workspace: Workspace) -> None:
    async def later(_: Events) -> None:
        raise AssertionError

    with mutable(workspace) as mut, pytest.raises(MisuseError, match="coroutine"):
        mut.update_events(functools.partial(_called, later))


def test_a_callback_may_not_ask_again(workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))
    with mutable(workspace) as mut:
        for again in (lambda: mut.events, lambda: workspace.events(handle), lambda: say(mut, "x"), mut.flush):

            def asks(_: Metadata, again: Callable[[], object] = again) -> None:
                again()

            with pytest.raises(MisuseError, match="callback"):
                mut.update_metadata(asks)


def test_snapshots_stay_as_they_are(workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        metadata, events = mut.metadata, mut.events
        say(mut, "hello")
        assert len(events) == 3
        with pytest.raises(TypeError, match="snapshot"):
            metadata["title"] = "x"  # type: ignore[index]
        with pytest.raises(TypeError, match="snapshot"):
            events[0].clear()  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            events.append({})  # type: ignore[attr-defined]
        assert json.loads(json.dumps(events)) == thawed(events)
        for mine in (copy.deepcopy(metadata), pickle.loads(pickle.dumps(metadata)), thawed(metadata)):  # noqa: S301
            assert isinstance(mine, dict)
            mine["title"] = "mine"
        assert mut.metadata["title"] == "It"


def test_an_exception_persists_too(world: World, workspace: Workspace, jp: JpProcess) -> None:
    with pytest.raises(KeyError, match="mine") as raised:
        fail(mutable(workspace))
    assert world.event_count(FIRST) == 4
    assert not hasattr(raised.value, "__notes__")
    assert is_free(jp)


def test_what_fails_behind_an_exception_is_noted(
    workspace: Workspace, jp: JpProcess, full_disk: Callable[[], mock._patch[object]]
) -> None:
    with full_disk(), pytest.raises(KeyError, match="mine") as raised:
        fail(mutable(workspace))
    (note,) = raised.value.__notes__
    assert "No space left on device" in note
    assert is_free(jp)


def test_what_fails_on_a_clean_exit_raises(
    world: World, workspace: Workspace, jp: JpProcess, full_disk: Callable[[], mock._patch[object]]
) -> None:
    with (
        full_disk(),
        pytest.raises(PersistError, match=r"saved in the store.*No space left"),
        mutable(workspace) as mut,
    ):
        say(mut, "hello")
    assert is_free(jp)
    assert world.run("--workspace", world.project).exit_code == 0
    assert world.event_count(FIRST, world.workspace) == 4


def test_a_flush_that_failed_can_be_tried_again(
    world: World, workspace: Workspace, full_disk: Callable[[], mock._patch[object]]
) -> None:
    with mutable(workspace) as mut:
        say(mut, "hello")
        with full_disk(), pytest.raises(PersistError, match="No space left"):
            mut.flush()
        dirty = [mut.dirty]
        say(mut, "again")
        mut.flush()
        assert [*dirty, mut.dirty] == [True, False]
    assert texts(directory(world.workspace, FIRST))[-2:] == ["hello", "again"]
    check(world)


def test_a_scope_that_is_dropped_is_written(world: World, workspace: Workspace, jp: JpProcess) -> None:
    guards: list[ConversationMut | ConversationLock] = [mutable(workspace)]
    say_in(guards, "hello")
    with pytest.warns(ResourceWarning, match=r"a mutable scope of .* was not closed; its changes are written"):
        forget(guards)
    assert world.event_count(FIRST) == 4
    assert is_free(jp)


def test_a_lock_that_is_dropped_is_free(workspace: Workspace, jp: JpProcess) -> None:
    guards: list[ConversationMut | ConversationLock] = [locked(workspace).as_mut()]
    say_in(guards, "hello")
    with pytest.warns(ResourceWarning) as warned:
        forget(guards)
    assert len(warned) == 2
    assert is_free(jp)


def test_a_scope_that_is_dropped_and_can_not_be_written(
    workspace: Workspace,
    jp: JpProcess,
    full_disk: Callable[[], mock._patch[object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    guards: list[ConversationMut | ConversationLock] = [mutable(workspace)]
    say_in(guards, "hello")
    with full_disk():
        forget(guards)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("reconcile.library", "ERROR")
    assert re.search(
        r"a mutable scope of .* was not closed; its changes are not written; PersistError: .*No space left",
        record.message,
    )
    assert is_free(jp)


SWALLOWED = """
try:
    with mut:
        raise KeyError
except KeyError:
    pass
"""
IN_A_THREAD = """
import threading
held = [mut]
del mut
thread = threading.Thread(target=held.clear)
thread.start()
thread.join()
"""
INSIDE = """
held = [mut]
del mut
with workspace.lock_conversation(workspace.acquire("{other}")).into_mut() as another:
    another.update_metadata(lambda _: held.clear())
"""
AT_THE_END = """
import atexit, threading
from reconcile.library import locks
def last():
    global mut
    with locks.inside_library():
        del mut
threading.Thread.start = lambda self: (_ for _ in ()).throw(RuntimeError("can't create new thread"))
last()
"""
CANCELLED = """
import asyncio
async def program():
    async with mut:
        await asyncio.sleep(60)
async def main():
    task = asyncio.create_task(program())
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
asyncio.run(main())
del mut
"""
CANCELLED_WHILE_IT_ENDS = """
import asyncio
async def program():
    async with mut:
        pass
async def main():
    task = asyncio.create_task(program())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
asyncio.run(main())
del mut
"""
FORKED = """
import os
if os.fork() == 0:
    raise SystemExit
os.wait()
"""
WORKSPACE = """
try:
    with workspace:
        raise KeyError
except KeyError:
    pass
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "del mut",
        "raise SystemExit(3)",
        SWALLOWED,
        IN_A_THREAD,
        INSIDE,
        AT_THE_END,
        CANCELLED,
        CANCELLED_WHILE_IT_ENDS,
        FORKED,
        WORKSPACE,
    ],
    ids=[
        "exit",
        "dropped",
        "SystemExit",
        "swallowed",
        "in a thread",
        "inside",
        "no threads",
        "cancelled",
        "cancelled while it ends",
        "forked",
        "workspace",
    ],
)
def test_a_write_that_fails_is_never_silent(world: World, end: str) -> None:
    """Without anything set up: no logging, no option of Python."""
    program = f"""
import os
from reconcile import Workspace, new_event
workspace = Workspace.open({str(world.project)!r})
mut = workspace.lock_conversation(workspace.acquire("{FIRST}")).into_mut()
mut.update_events(lambda events: events.append(new_event("turn_start")))
os.rename({str(world.project / ".jp")!r}, {str(world.project / "moved")!r})
{end.replace("{other}", str(THIRD))}
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if f"jp-c{FIRST}" in line]
    assert len(told) == 1, done.stderr
    assert any(words in told[0] for words in ("not written", "unwritten changes", "task failed"))
    if end != AT_THE_END:
        assert "deleted or replaced since the workspace was opened" in told[0]


def test_what_the_collector_finds_while_a_thread_is_inside(world: World, workspace: Workspace) -> None:
    """It may be about a conversation that this very thread is at."""
    guards: list[ConversationMut | ConversationLock] = [mutable(workspace)]
    say_in(guards, "hello")

    def drops() -> None:
        with mutable(workspace, THIRD) as other:
            other.update_metadata(lambda _: forget(guards))
        for thread in threading.enumerate():
            if thread.name == "reconcile-last-resort":
                thread.join()

    with pytest.warns(ResourceWarning, match="its changes are written"):
        drops()
    assert world.event_count(FIRST) == 4


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise RuntimeError", "workspace.close()"])
def test_at_the_interpreters_exit(world: World, jp: JpProcess, end: str) -> None:
    program = f"""
from reconcile import Workspace, new_event
workspace = Workspace.open({str(world.project)!r})
mut = workspace.lock_conversation(workspace.acquire("{FIRST}")).into_mut()
mut.update_events(lambda events: events.append(new_event("turn_start")))
{end}
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], check=False, capture_output=True, text=True)
    assert "ResourceWarning: " in done.stderr
    assert "unclosed" not in done.stderr
    assert world.event_count(FIRST) == world.event_count(FIRST, world.workspace) == 4
    assert is_free(jp)


def test_a_fork_does_not_write_what_is_its_parents(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "hello")
        pid = os.fork()
        if pid == 0:
            code = 1
            with suppress(BaseException):
                try:
                    mut.flush()
                except ReleasedError:
                    code = 0
                mut.close()
            os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert world.event_count(FIRST) == 3
        assert mut.dirty
    assert world.event_count(FIRST) == 4


def test_a_write_that_took_no_lock_is_not_overwritten(world: World, workspace: Workspace) -> None:
    """An editor saves the store's file while a scope has it: neither is lost."""
    with mutable(workspace) as mut:
        say(mut, "hello")
        events = directory(world.store, FIRST) / "events.json"
        write_json(events, [*read(events), new_event("chat_request", content="by hand")], LONG_AGO + SECOND)
        theirs = digest_of(events)
        with pytest.raises(
            ChangedError, match=r"events\.json: a program without a lock changed it since it was read"
        ) as refused:
            mut.flush()
        assert digest_of(events) == theirs
        with pytest.raises(ChangedError):
            mut.close()
    (version,) = refused.value.versions
    shown = world.run("--workspace", world.project, "show", "--raw", version)
    assert json.loads(shown.stdout)[-1]["content"] == "hello", shown.output
    assert world.run("--workspace", world.project).exit_code == 0
    assert texts(directory(world.workspace, FIRST))[-1] == "by hand"


def test_what_the_disk_refuses_is_in_the_vault(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that has room: a scope that ends so can't be asked any more."""
    create = Root.create_file

    def refused(root: Root, *args: object) -> tuple[Fingerprint, Digest]:
        if root.path == str(world.store):
            raise OSError(5, "Input/output error", args[0])
        return create(root, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Root, "create_file", refused)
        with pytest.raises(PersistError, match="Input/output error") as raised, mutable(workspace) as mut:
            say(mut, "hello")
    (version,) = raised.value.versions
    assert any(version in note for note in raised.value.__notes__)
    shown = world.run("--workspace", world.project, "show", "--raw", version)
    assert json.loads(shown.stdout)[-1]["content"] == "hello", shown.output
    assert world.event_count(FIRST) == 3
    check(world)


def test_a_lock_that_somebody_has_swept_away_writes_nothing(world: World, workspace: Workspace, jp: JpProcess) -> None:
    with mutable(workspace) as mut:
        say(mut, "hello")
        for file in (world.silo / "locks").glob(f"*jp-c{FIRST}*"):
            file.unlink()
        assert jp.take(FIRST)
        with pytest.raises(PersistError, match=f"jp-c{FIRST}") as raised:
            mut.flush()
        assert world.event_count(FIRST) == 3
        with pytest.raises(PersistError):
            mut.close()
    (version,) = raised.value.versions
    assert "hello" in world.run("--workspace", world.project, "show", version).stdout


def test_an_edit_in_the_workspace_meanwhile_is_kept(world: World, workspace: Workspace) -> None:
    """Both have gone on from the same: what lost is a conversation of its own, as in every run."""
    with mutable(workspace) as mut:
        say(mut, "hello")
        append(directory(world.workspace, FIRST), 1, "h", LONG_AGO + SECOND)
    assert texts(directory(world.store, FIRST))[-1] == "hello"
    (fork,) = (path for path in world.store.iterdir() if "diverged" in path.name)
    assert len(texts(fork)) == 4
    check(world)


def test_an_edit_in_the_workspace_that_is_a_child_already_is_not_forked(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        say(mut, "hello")
        append(directory(world.workspace, FIRST), 1, "h", LONG_AGO + SECOND)
        child = world.store / f"{FIRST + 9}-child"
        shutil.copytree(directory(world.workspace, FIRST), child, ignore=shutil.ignore_patterns("conversations"))
        metadata = json.loads((child / "metadata.json").read_bytes())
        (child / "metadata.json").write_text(json.dumps(metadata | {"parent_id": f"jp-c{FIRST}"}))
    assert texts(directory(world.store, FIRST))[-1] == "hello"
    assert not [path for path in world.store.iterdir() if "diverged" in path.name]
    check(world)


def test_configured_to_hold_an_edit_in_the_workspace_meanwhile_stays_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting `conflict` counts for a program, too: what it wrote is in the store, and neither side wins."""
    monkeypatch.setenv("RECONCILE_CONFLICT", "hold")
    with Workspace.open(world.project) as workspace, mutable(workspace) as mut:
        say(mut, "hello")
        append(directory(world.workspace, FIRST), 1, "h", LONG_AGO + SECOND)
    assert texts(directory(world.store, FIRST))[-1] == "hello"
    assert texts(directory(world.workspace, FIRST))[-1] == "h0"
    assert not [path for path in world.store.iterdir() if "diverged" in path.name]
    assert [item["reason"] for item in world.plan()["held"]] == ["conflict-held"]


def test_a_conversation_that_is_removed_meanwhile(world: World, workspace: Workspace) -> None:
    """By JP's expiry, which takes no lock."""
    with mutable(workspace, THIRD) as mut:
        say(mut, "hello")
        for side in (world.store, world.workspace):
            _remove(directory(side, THIRD))
        with pytest.raises(PersistError):
            mut.flush()
        with pytest.raises(PersistError):
            mut.close()


def _called(call: Callable[[Events], Awaitable[None]], events: Events) -> Awaitable[None]:
    return call(events)


def _remove(path: Path) -> None:
    for each in path.iterdir():
        each.unlink()
    path.rmdir()


def test_many_events_leave_little_in_the_vault(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        mut.update_events(lambda events: events.append(new_event("chat_request", content="x" * 300_000)))
    for number in range(20):
        with mutable(workspace) as mut:
            say(mut, f"event {number}")
    kept = [path for path in world.state.rglob("*") if "objects" in path.parts and path.is_file()]
    assert sum(path.stat().st_size for path in kept) < 700_000, "not 20 copies"
    assert len(kept) >= 20
    check(world)

"""A large session of Claude Code that grows: a run appends to the store's file, and reads only what is new."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.apply import actions
from reconcile.apply.recorder import Recorder
from reconcile.fs import durability, hashing
from reconcile.fs.mutations import Root
from tests.agents.program import VERSIONS
from tests.support.faults.fault_points import Mode, under_fault
from tests.support.faults.strace import EFFECTS, Straced, unusable
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.watcher import Watching, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conftest import Run

LINE = b'{"type":"mode","mode":"%s"}\n'
PROMPT = b'{"type":"user","message":{"role":"user","content":"%s"}}\n' % (b"x" * 3000)
MB = 10**6
DAY = 24 * 3600


@pytest.fixture
def sides(tmp_path: Path, run: Run) -> Sides:
    return Sides(tmp_path / "project", run).private()


@pytest.fixture(autouse=True)
def from_a_megabyte_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions of a megabyte grow in this process; others need sixteen."""
    monkeypatch.setattr(actions, "LARGE", MB)


@pytest.fixture
def session(sides: Sides) -> Path:
    """A session that is large enough, in sync and at rest."""
    return large(sides, int(1.2 * MB))


def large(sides: Sides, size: int) -> Path:
    (path,) = sides.play(VERSIONS[-1], "plain").live.glob("*.jsonl")
    add(path, PROMPT * (size // len(PROMPT)))
    settle(sides)
    return path


def settle(sides: Sides) -> None:
    """Let the index know everything: what was written a moment before a run is read again by the next one."""
    for _ in range(2):
        assert sides.run("-w", sides.project).exit_code == 0
        time.sleep(0.05)


def add(path: Path, *contents: bytes) -> bytes:
    """Append to a file as the program does; return its content."""
    with path.open("ab") as file:
        file.writelines(contents)
    time.sleep(0.05)
    return path.read_bytes()


def rewrite(path: Path, at: int, content: bytes) -> None:
    """Write other bytes into a file, which stays the same file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def second_names() -> list[Path]:
    return list(Path(os.environ["XDG_DATA_HOME"]).rglob("*.grows"))


def versions(sides: Sides) -> set[str]:
    """Every version in the vault, as `show` prints it."""
    listed = json.loads(sides.read("vault", "--json"))["objects"]
    return {sides.read("show", each["digest"]) for each in listed}


# What it costs.


def read_by(call: Callable[[], object]) -> int:
    """The bytes that this process reads meanwhile, of any file."""

    def read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read()
    call()
    return read() - before


@pytest.mark.skipif(sys.platform != "linux", reason="the bytes that a process reads are in /proc")
def test_a_line_costs_the_same_whatever_the_size_of_the_session(sides: Sides) -> None:
    """A session of 20 MB was read seven times, with 140 MB."""
    path, costs = large(sides, 20 * MB), []
    for _ in range(2):
        for _ in range(2):
            add(path, LINE % b"plan")
            costs.append(read_by(lambda: sides.run("-w", sides.project)))
            assert sides.in_sync()
            time.sleep(0.05)
        add(path, PROMPT * (20 * MB // len(PROMPT)))
        settle(sides)
    assert max(costs) < 2 * MB, costs
    assert max(costs) - min(costs) < MB, costs


def test_a_line_is_appended_in_the_place_of_the_stores_file(sides: Sides, session: Path) -> None:
    stored = sides.store / session.name
    before = stored.stat()
    os.chmod(stored, 0o640)
    settle(sides)
    content = add(session, LINE % b"plan")
    assert "+1" in sides.reconcile().output or sides.in_sync()
    after = stored.stat()
    assert (after.st_ino, after.st_mode & 0o777, after.st_mtime_ns) == (
        before.st_ino,
        0o640,
        session.stat().st_mtime_ns,
    )
    assert stored.read_bytes() == content
    assert [path.samefile(stored) for path in second_names()] == [True]


def test_much_that_is_new_is_appended_too(sides: Sides, session: Path) -> None:
    before = (sides.store / session.name).stat().st_ino
    add(session, PROMPT * (5 * MB // len(PROMPT)))
    sides.reconcile()
    assert sides.in_sync()
    assert (sides.store / session.name).stat().st_ino == before


def test_a_session_that_changes_while_it_is_appended_is_left_to_the_next_run(
    sides: Sides, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the store's file has by then is a beginning of the new version."""
    stored, pread = sides.store / session.name, os.pread
    content = add(session, PROMPT * (MB // len(PROMPT)))
    time_ns = session.stat().st_mtime_ns

    def changing(fd: int, length: int, at: int) -> bytes:
        if len(stored.read_bytes()) > len(content) - MB // 2:
            rewrite(session, len(content) - 10, b"other")
            os.utime(session, ns=(time_ns, time_ns))
        return pread(fd, length, at)

    with monkeypatch.context() as spoilt:
        spoilt.setattr(os, "pread", changing)
        result = sides.run("-w", sides.project)
    assert (result.exit_code, "changed since the plan was made" in result.output) == (4, True)
    assert content.startswith(stored.read_bytes())
    sides.reconcile()
    assert sides.in_sync()


def test_watch_appends_too(sides: Sides) -> None:
    session = large(sides, 17 * MB)
    stored = sides.store / session.name
    before = stored.stat().st_ino
    with Watching(sides) as watching:
        for number in range(3):
            add(session, LINE % b"%d" % number)
            until(sides.in_sync, "the line is saved")
            assert stored.stat().st_ino == before
        assert watching.stop(signal.SIGTERM) == 0
    assert len(versions(sides)) == 3


# Every version is there.


def test_every_version_is_there_and_fills_no_vault(sides: Sides, session: Path) -> None:
    contents = [session.read_bytes()]
    for number in range(4):
        contents.append(add(session, LINE % b"%d" % number))
        sides.reconcile()
    assert len(versions(sides)) == 4
    for before in reversed(contents[:-1]):
        assert sides.run("undo", "--yes", "-w", sides.project).exit_code == 0
        assert (sides.store / session.name).read_bytes() == before
    for content in contents[1:]:
        assert sides.run("redo", "--yes", "-w", sides.project).exit_code == 0
        assert (sides.store / session.name).read_bytes() == content
    assert sides.in_sync()
    assert len(versions(sides)) >= 5


@pytest.mark.parametrize("how", ["replaced", "removed", "by hand", "lost"])
def test_the_versions_stay_when_the_stores_file_goes(sides: Sides, session: Path, how: str) -> None:
    stored, run = sides.store / session.name, []
    add(session, LINE % b"one")
    sides.reconcile()
    add(session, LINE % b"two")
    sides.reconcile()
    before = versions(sides)
    assert len(before) == 2
    match how:
        case "replaced":
            session.unlink()
            sides.reconcile("recover", "--yes")
            sides.reconcile("undo", "--yes")
            run = ["undo", "--yes"]
        case "removed":
            run = ["rm", session.stem, "--yes"]
        case "by hand":
            stored.unlink()
        case _:
            shutil.rmtree(sides.store)
    sides.run(*run, "-w", sides.project)
    assert before <= versions(sides)


def test_a_version_is_restored_and_the_session_goes_on(sides: Sides, session: Path) -> None:
    before = session.read_bytes()
    content = add(session, LINE % b"one")
    sides.reconcile()
    (listed,) = json.loads(sides.read("vault", "--json"))["objects"]
    sides.reconcile("restore", listed["digest"])
    assert (sides.store / session.name).read_bytes() == before
    more = add(session, LINE % b"two")
    sides.reconcile()
    assert sides.in_sync()
    assert session.read_bytes() in (more, before, content)


def test_a_purged_version_is_gone(sides: Sides, session: Path) -> None:
    for number in range(3):
        add(session, LINE % b"%d" % number)
        sides.reconcile()
    objects = json.loads(sides.read("vault", "--json"))["objects"]
    assert len(objects) == 3
    assert sides.run("vault", "--purge", objects[0]["digest"], "--yes", "-w", sides.project).exit_code == 0
    assert len(versions(sides)) == 2
    assert sides.in_sync()


# Not in its place.


def test_a_copy_that_a_person_made_as_a_link_stays_as_it_is(sides: Sides, session: Path, tmp_path: Path) -> None:
    """As `cp -al` and some programs for backups do."""
    stored, backup = sides.store / session.name, tmp_path / "backup"
    os.link(stored, backup)
    settle(sides)
    before = backup.read_bytes()
    content = add(session, LINE % b"one")
    sides.reconcile()
    assert (backup.read_bytes(), stored.read_bytes()) == (before, content)
    os.link(stored, tmp_path / "another")
    add(session, LINE % b"two")
    sides.reconcile()
    assert (tmp_path / "another").read_bytes() == content


def test_without_hard_links_the_file_is_replaced(sides: Sides, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a state on another file system than the store."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "link", refused)
    before = (sides.store / session.name).stat().st_ino
    for number in range(3):
        add(session, LINE % b"%d" % number)
        sides.reconcile()
        assert sides.in_sync()
    assert (sides.store / session.name).stat().st_ino != before
    assert len(versions(sides)) == 3


def test_a_file_of_the_store_that_was_changed_by_hand_is_read(sides: Sides, session: Path) -> None:
    stored = sides.store / session.name
    rewrite(stored, 0, b" ")
    changed = stored.read_bytes()[:20]
    add(session, LINE % b"one")
    sides.reconcile()
    # The older one is the fork, with another id; both may be of the same tick of the clock.
    assert any(content.startswith(changed) for content in carried(sides.store).values())
    assert any(content.endswith(LINE % b"one") for content in carried(sides.store).values())


@pytest.mark.parametrize("moment", ["before", "after"])
def test_another_program_that_appends_at_that_moment_loses_nothing(
    sides: Sides, session: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    stored, append = sides.store / session.name, Root.append

    def at_that_moment(root: Root, *args: Any) -> bool:
        if moment == "before":
            add(stored, LINE % b"another")
        done = append(root, *args)
        if moment == "after":
            add(stored, LINE % b"another")
        return done

    add(session, LINE % b"one")
    with monkeypatch.context() as spoilt:
        spoilt.setattr(Root, "append", at_that_moment)
        assert sides.run("-w", sides.project).exit_code in (0, 4)
    assert LINE % b"another" in stored.read_bytes()
    sides.run("-w", sides.project)
    for side in (sides.store, sides.live):
        everything = b"".join(carried(side).values())
        assert LINE % b"another" in everything
        assert LINE % b"one" in everything


# What is taken for granted.


def test_a_session_that_was_rewritten_before_its_end_is_read_a_day_later(sides: Sides, session: Path) -> None:
    """No version of the program does that. The file stays the same one, and its former end stays as it is."""
    stored = sides.store / session.name
    rewrite(session, session.read_bytes().index(b"xxx"), b"another text")
    content = add(session, LINE % b"one")
    sides.reconcile()
    assert stored.read_bytes() != content, "the price"
    assert not any(b"another text" in each for each in carried(sides.store).values())
    assert stored.read_bytes().endswith(LINE % b"one")
    at = time.time() - DAY - 60
    os.utime(session, (at, at))
    sides.run("-w", sides.project)
    sides.reconcile()
    assert any(b"another text" in each for each in carried(sides.store).values())


def test_what_earlier_versions_knew_of_large_contents_loses_nothing(
    sides: Sides, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hashed each content as a whole, so that the base of a large one is another."""
    with monkeypatch.context() as earlier:
        earlier.setattr(hashing, "WHOLE", 1 << 40)
        earlier.setattr("reconcile.index.file._VERSION", 9)
        path = large(sides, 2 * MB)
        result = path.with_suffix("") / "tool-results" / "a.txt"
        result.parent.mkdir(parents=True)
        result.write_bytes(b"result\n" * MB)
        settle(sides)
        assert sides.in_sync()
    assert "Nothing to do" in sides.run("-w", sides.project).output
    add(path, LINE % b"one")
    sides.reconcile()
    assert sides.in_sync()
    with monkeypatch.context() as earlier:
        earlier.setattr(hashing, "WHOLE", 1 << 40)
        earlier.setattr("reconcile.index.file._VERSION", 9)
        settle(sides)
    add(path, LINE % b"two")
    add(result, b"more\n")
    sides.reconcile()
    assert sides.in_sync()


# Cut short.


def test_killed_in_the_middle_the_next_run_goes_on(sides: Sides, session: Path) -> None:
    """The store's file has its old content, and a part of the new line."""
    stored = sides.store / session.name
    before, content = stored.read_bytes(), add(session, LINE % b"one")
    write_all = "reconcile.fs.mutations.write_all"

    def half(fd: int, content: bytes) -> None:
        os.write(fd, content[: len(content) // 2])
        os._exit(137)

    with pytest.MonkeyPatch.context() as spoilt:
        spoilt.setattr(write_all, half)
        killed(sides)
    torn = stored.read_bytes()
    assert torn.startswith(before)
    assert content.startswith(torn)
    assert len(before) < len(torn) < len(content)
    result = sides.run("-w", sides.project)
    assert "was interrupted" in result.output
    assert stored.read_bytes() == content
    sides.reconcile()


def test_the_vault_is_flushed_before_the_append_and_the_store_before_the_journal(
    sides: Sides, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def noted(owner: object, name: str, what: Callable[..., Iterable[str]]) -> None:
        real = getattr(owner, name)

        def call(*args: Any) -> Any:
            order.extend(what(*args))
            return real(*args)

        monkeypatch.setattr(owner, name, call)

    noted(durability, "flush_all", lambda paths, *_: [Path(path).suffix for path in paths])
    noted(durability, "fsync_file", lambda file: [Path(file).suffix] if isinstance(file, str) else ())
    noted(Recorder, "begun", lambda *_: ["begun"])
    noted(Root, "append", lambda *_: ["append"])
    noted(Recorder, "ended", lambda _, outcome: ["ended"] if outcome.unrecorded else [])
    add(session, LINE % b"one")
    sides.run("-w", sides.project)
    kept = [each for each in order if each in (".grows", ".part", "begun", "append", ".jsonl", "ended")]
    begun = kept.index("begun")
    assert set(kept[:begun]) == {".grows", ".part"}
    assert kept[begun:] == ["begun", "append", ".jsonl", "ended"]


def killed(sides: Sides) -> None:
    """Run it in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            sides.run("-w", sides.project)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 137


def faults(sides: Sides, session: Path, mode: Mode, stride: int = 1) -> set[int]:
    """Run into a fault at each step of runs that append a line; return how many bytes of it the store's file had."""
    stored, found = sides.store / session.name, set()
    for step in itertools.count(1, stride):
        before = stored.read_bytes()
        content = add(session, LINE % (b"a long mode %d" % step * 30))
        kept = sides.kept()
        hit = under_fault(mode, step, lambda: sides.run("-w", sides.project))
        now = stored.read_bytes()
        assert now.startswith(before), f"{mode} at step {step}"
        assert content.startswith(now), f"{mode} at step {step}"
        assert session.read_bytes() == content
        assert kept <= sides.kept(), f"lost: {mode} at step {step}"
        found.add(len(content) - len(now))
        sides.reconcile()
        assert sides.in_sync(), f"{mode} at step {step}"
        assert versions(sides)
        assert not list(sides.store.glob(".reconcile-*"))
        time.sleep(0.05)
        if not hit:
            return found
    raise AssertionError


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.TORN])
def test_a_fault_at_some_steps_of_an_append_loses_nothing(sides: Sides, session: Path, mode: Mode) -> None:
    faults(sides, session, mode, 13)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", list(Mode))
def test_a_fault_at_any_step_of_an_append_loses_nothing(sides: Sides, session: Path, mode: Mode) -> None:
    assert len(faults(sides, session, mode)) > (2 if mode in (Mode.FULL, Mode.TORN) else 1)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(unusable()), reason=unusable() or "-")
@pytest.mark.parametrize("effect", list(EFFECTS))
def test_a_real_process_that_is_disturbed_at_any_call_loses_nothing(sides: Sides, tmp_path: Path, effect: str) -> None:
    """Every sixth call of the system that changes something in the home, in a run that appends a line.

    All calls were tried once, on 28 November 2026: they take seven minutes.
    """
    session = large(sides, 17 * MB)
    stored, straced = sides.store / session.name, Straced(tmp_path / "strace.log")
    add(session, LINE % b"first")
    straced("-w", sides.project)
    calls, hits = straced.calls(sides.config.parent), 0
    assert len(calls) > 20
    calls = calls[::6]
    for number, call in enumerate(calls):
        before, content = stored.read_bytes(), add(session, LINE % (b"a long mode %d" % number * 30))
        kept = sides.kept()
        straced.inject = f"{call.name}:{EFFECTS[effect]}:when={call.number}"
        straced("-w", sides.project)
        hits += straced.was_hit()
        now = stored.read_bytes()
        assert now.startswith(before), straced.inject
        assert content.startswith(now), straced.inject
        assert session.read_bytes() == content
        assert kept <= sides.kept(), f"lost: {straced.inject}"
        sides.reconcile()
        assert sides.in_sync(), straced.inject
        time.sleep(0.05)
    assert hits > len(calls) / 2

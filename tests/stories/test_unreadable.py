"""What can't be read is never taken for what isn't there: the error is made for real, by the system or below it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hostile.test_memory import BARE, MB, big_stream, limited
from tests.support.faults.strace import Ended, Straced, unusable
from tests.support.projects.git_world import git
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    events,
    listing,
    make_project,
    set_key,
    shown,
    write_conversation,
)

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.long

NUMBER = 17500000001
NAME = f"{NUMBER}-it"
LOOKS = "newfstatat,lstat,stat,statx"
straced = pytest.mark.skipif(bool(unusable()), reason=unusable())


@pytest.fixture
def world(world: World) -> World:
    write_conversation(world.workspace / NAME, "It", events(3))
    world.reconcile()
    world.reconcile()  # what was written a moment ago is read once more; from here on the index knows it
    return world


def failing(world: World, at: Path, *words: str) -> Ended:
    """Run a command while a disk fails below this file."""
    trace = Straced(world.project.parent / "strace.log", "read:error=EIO", at)
    done = trace(*words, "--workspace", world.project)
    assert trace.was_hit()
    assert "Traceback" not in done.output
    return done


@straced
@pytest.mark.parametrize("name", ["metadata.json", "base_config.json", "events.json"])
@pytest.mark.parametrize("part", [(), ("--last", "1")], ids=["whole", "last"])
def test_what_a_file_that_cannot_be_read_belongs_to_is_not_forked(
    world: World, name: str, part: tuple[str, ...]
) -> None:
    before = world.stamps()
    done = failing(world, world.store / NAME / name, "fork", str(NUMBER), *part)
    assert done.exit_code == 4, done.output
    assert f"{name}: can't be read" in done.stderr
    assert world.stamps() == before


@straced
@pytest.mark.parametrize("name", ["metadata.json", "base_config.json", "events.json"])
def test_a_file_that_cannot_be_read_is_no_difference(world: World, name: str) -> None:
    done = failing(world, world.store / NAME / name, "diff", str(NUMBER), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (note,) = found["notes"]
    assert note.startswith(f"store: {name}: can't be read")
    empty = {"metadata": [], "store_only": [], "workspace_only": [], "base_config_differs": False}
    assert {key: found[key] for key in empty} == empty


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stream_that_is_larger_than_memory_is_not_forked(world: World) -> None:
    big_stream(world.store / NAME / "events.json", 300 * MB)
    before = sorted(world.store.iterdir()), sorted(world.workspace.rglob("*"))
    done = limited(world, BARE, "fork", str(NUMBER))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "events.json: can't be read (too large for the free memory)" in done.stderr
    assert (sorted(world.store.iterdir()), sorted(world.workspace.rglob("*"))) == before
    done = limited(world, BARE, "diff", str(NUMBER))
    assert done.returncode == 0, done.stderr
    assert "store: events.json: can't be read (too large for the free memory)" in done.stdout
    assert "there is no" not in done.stdout


@pytest.mark.parametrize(
    "words", [("--dry-run",), ("status",), ("log",), ("ls",), ("checkouts",), ("vault",), ("--check",), ()]
)
def test_a_state_that_cannot_be_looked_at_is_no_empty_one(world: World, words: tuple[str, ...]) -> None:
    (world.workspace / NAME / "events.json").unlink()
    before, away = world.stamps(), world.state.rename(world.state.with_name("away"))
    world.state.symlink_to(world.state)  # leads nowhere, without end
    done = world.run("--workspace", world.project, *words)
    assert done.exit_code == 1, done.output
    assert shown(world.state) in done.stderr
    assert len(done.stderr.splitlines()) == 2, "an error and a hint"
    world.state.unlink()
    away.rename(world.state)
    assert world.stamps() == before


def test_settings_that_cannot_be_looked_at_are_no_default_ones(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "config"
    place.symlink_to(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place))
    done = world.run("--workspace", world.project)
    assert done.exit_code == 2, done.output
    assert shown(place) in done.stderr
    assert "can't be read" in done.stderr
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    world.reconcile()


def refused(world: World, call: str, at: Path, *words: str) -> Ended:
    """Run a command while this call about this path is refused; nothing but the words may come of it."""
    trace = Straced(world.project.parent / "strace.log", f"{call}:error=EACCES", at)
    done = trace(*words, "--workspace", world.project)
    assert trace.was_hit()
    assert "Traceback" not in done.output
    return done


@straced
@pytest.mark.parametrize("what", ["sessions", "sessions/a.json"])
def test_what_jp_has_open_and_cannot_be_read_is_not_collected(world: World, what: str) -> None:
    """Without its session file a conversation would count as closed, and an expired one would go."""
    set_key(world.store / NAME, "expires_at", "2026-01-01 00:00:00.0", LONG_AGO + SECOND)
    world.reconcile()
    (world.silo / "sessions").mkdir()
    session = {"history": [{"id": f"jp-c{NUMBER}", "activated_at": "2026-01-31 12:00:00.0"}]}
    (world.silo / "sessions" / "a.json").write_text(json.dumps(session))
    before = listing(world.store) | listing(world.workspace)
    done = refused(world, "openat", world.silo / what, "gc", "-y")
    assert done.exit_code == 1, done.output
    assert "can't be read (Permission denied), so any conversation may be open" in done.stderr
    assert listing(world.store) | listing(world.workspace) == before


@straced
@pytest.mark.parametrize("name", ["", "HEAD", "MERGE_HEAD", "index.lock"])
def test_a_repository_that_cannot_be_looked_at_may_be_in_the_middle_of_something(world: World, name: str) -> None:
    """What is to be written into the checkout waits, as it does for a merge."""
    git(world.project, "init", "-q")
    set_key(world.store / NAME, "title", "Another", LONG_AGO + SECOND)
    before = listing(world.workspace)
    at = world.project / ".git" / name if name else world.project / ".git"
    done = refused(world, LOOKS, at)
    assert done.exit_code == 4, done.output
    assert f"unknown: {at} can't be read, Permission denied" in done.stdout
    assert listing(world.workspace) == before
    world.reconcile()
    assert listing(world.workspace) != before


@straced
def test_of_several_stores_one_that_cannot_be_looked_at_is_not_passed_over(world: World) -> None:
    """JP's rule takes the one that was used last, which may be that one."""
    first = world.store.parent
    moved = first.with_name("renamed-ab1cd")
    first.rename(moved)
    other = first.with_name("another-ab1cd")
    shutil.copytree(moved, other)
    done = refused(world, "openat", moved)
    assert done.exit_code == 2, done.output
    assert f"{shown(moved)}: can't be read (Permission denied)" in done.stderr


@straced
def test_settings_that_cannot_be_read_are_not_passed_over(world: World) -> None:
    """They may say that nothing is to be published, or that a person decides."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "reconcile" / "reconcile.toml"
    path.parent.mkdir(parents=True)
    path.write_text('diverged = "hold"\n')
    for call in ("openat", "newfstatat,lstat,stat,statx,openat"):
        done = refused(world, call, path)
        assert done.exit_code == 2, done.output
        assert f"{shown(path)}: can't be read" in done.stderr


@straced
def test_a_project_that_cannot_be_looked_at_is_not_another_one_further_up(world: World, run: Run) -> None:
    inner = make_project(world.project / "inner", run)
    before = listing(world.store) | listing(world.workspace)
    done = refused(inner, LOOKS, inner.project / ".jp")
    assert done.exit_code == 2, done.output
    assert f"{inner.project}/.jp: can't be read (Permission denied)" in done.stderr
    assert listing(world.store) | listing(world.workspace) == before


@straced
@pytest.mark.parametrize(
    ("mark", "word"),
    [
        (".leslie/objectives.json", "--dry-run"),
        (".leslie/objectives.json", "doctor"),
        (".nexus", "doctor"),
    ],
)
def test_a_place_that_cannot_be_looked_at_is_not_another_one_further_up(tmp_path: Path, mark: str, word: str) -> None:
    inner = tmp_path / "outer" / "inner"
    for at in (inner.parent / mark, inner / mark):
        at.parent.mkdir(parents=True, exist_ok=True)
        at.mkdir() if mark == ".nexus" else at.write_text("[]")
    trace = Straced(tmp_path / "strace.log", f"{LOOKS}:error=EACCES", inner / mark)
    done = trace(word, "--workspace", inner)
    assert trace.was_hit()
    assert (done.exit_code, "Traceback" in done.output) == (1, False), done.output
    assert f"{inner / mark}: Permission denied" in done.stderr


@straced
def test_a_checkout_that_cannot_be_looked_at_is_not_gone(world: World, run: Run) -> None:
    other = make_project(world.project.parent / "other", run)
    other.reconcile(settled=False)
    done = refused(world, LOOKS, other.project / ".jp", "checkouts", "--json")
    assert done.exit_code == 0, done.output
    states = {each["project"]: each["state"] for each in json.loads(done.stdout)["checkouts"]}
    assert states[str(other.project)] == "unreadable"


@straced
@pytest.mark.parametrize("words", [("status",), ("--dry-run",), ()])
def test_a_repository_that_cannot_be_looked_at_says_nothing_of_directories(
    world: World, words: tuple[str, ...]
) -> None:
    """Which of two partitions is the later one is asked of git; here nothing above the project may be looked at."""
    (world.store / ".archive").mkdir()
    (world.store / NAME).rename(world.store / ".archive" / NAME)
    before, at = listing(world.workspace), world.project.parent / ".git"
    done = refused(world, LOOKS, at, *words)
    assert done.exit_code == (0 if words == ("status",) else 4), done.output
    assert done.output.count("Permission denied") <= 1
    assert listing(world.workspace) == before
    world.reconcile()
    assert (world.workspace / ".archive" / NAME).is_dir()


def test_a_stream_that_cannot_be_read_has_no_number_of_events(world: World) -> None:
    stream = world.store / NAME / "events.json"
    content = stream.read_bytes()
    stream.unlink()
    stream.symlink_to(stream)
    (line,) = world.reconcile("ls").stdout.splitlines()[1:]
    assert line.split()[:3] == ["It", f"jp-c{NUMBER}", "?"]
    (row,) = json.loads(world.reconcile("ls", "--json").stdout)["conversations"]
    assert (row["events"], row["last"]) == (None, None)
    assert "events.json" in world.reconcile("status").stdout
    stream.unlink()
    stream.write_bytes(content)
    assert json.loads(world.reconcile("ls", "--json").stdout)["conversations"][0]["events"] == 3


@straced
@pytest.mark.parametrize(("at", "call"), [("", "getdents64"), ("events.json", "read")])
def test_a_stream_on_a_disk_that_fails_has_no_number_of_events(world: World, at: str, call: str) -> None:
    append(world.store / NAME, 1, "b", LONG_AGO + SECOND)  # so that it is read again
    trace = Straced(world.project.parent / "strace.log", f"{call}:error=EIO", world.store / NAME / at)
    done = trace("ls", "--json", "--workspace", world.project)
    assert trace.was_hit()
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["conversations"][0]["events"] is None


@straced
def test_doctor_says_that_locks_cannot_be_listed(world: World) -> None:
    (world.silo / "locks").mkdir(exist_ok=True)
    done = refused(world, "openat", world.silo / "locks", "doctor", "--json")
    assert done.exit_code == 4, done.output
    (found,) = json.loads(done.stdout)["findings"]
    assert (found["kind"], found["place"]) == ("unreadable", str(world.silo / "locks"))
    assert found["found"] == "can't be read (Permission denied)"


@straced
@pytest.mark.parametrize("name", ["", NAME])
@pytest.mark.parametrize("changed", [False, True], ids=["known", "changed"])
def test_doctor_names_a_directory_that_cannot_be_listed_once(world: World, name: str, *, changed: bool) -> None:
    """The scan names it, and doctor looks into it for what was left there."""
    if changed:
        append(world.workspace / NAME, 1, "b", LONG_AGO + SECOND)
        (world.workspace / f"{NUMBER + 1}-new").mkdir()
        (world.workspace / NAME / "new").touch()
    trace = Straced(world.project.parent / "strace.log", "getdents64:error=EIO", world.workspace / name)
    done = trace("doctor", "--json", "--workspace", world.project)
    assert trace.was_hit()
    found = [each for each in json.loads(done.stdout)["findings"] if each["kind"] == "unreadable"]
    assert len(found) == 1, found
    assert found[0]["place"].partition("/")[0] == f"workspace:{name or '.'}"
    assert "Input/output error" in found[0]["found"]
    assert done.exit_code == 4


@straced
def test_what_may_be_in_a_checkout_that_cannot_be_looked_at_is_not_said_to_be_gone(world: World, run: Run) -> None:
    other = make_project(world.project.parent / "other", run)
    (other.project / ".jp" / ".id").write_bytes((world.project / ".jp" / ".id").read_bytes())
    write_conversation(other.workspace / f"{NUMBER + 1}-there", "There", events(2))
    other.reconcile()
    shutil.rmtree(world.store)
    for words in ((), ("status",), ("recover", "--dry-run"), ("doctor",)):
        done = refused(world, LOOKS, other.project, *words)
        assert f"{other.project} may have it, but can't be read (Permission denied)" in done.output, words
    assert f"reconcile --workspace {other.project}" in world.run("status", "--workspace", world.project).stdout


QUARANTINE = f"reconcile doctor --quarantine jp-c{NUMBER}"
BLOCKED = {
    ("public", "store"): f"reconcile resolve jp-c{NUMBER} --take workspace",
    ("public", "workspace"): f"reconcile resolve jp-c{NUMBER} --take store",
    ("local", "store"): QUARANTINE,
    ("local, copy here", "store"): f"reconcile resolve jp-c{NUMBER} --take workspace",
    ("local, copy here", "workspace"): QUARANTINE,
    ("removed here", "store"): QUARANTINE,
}
"""The command that settles an invalid file, by the kind of conversation and the side of the file."""


@pytest.mark.parametrize("file", ["metadata.json", "events.json"])
@pytest.mark.parametrize(("kind", "side"), BLOCKED)
def test_an_invalid_file_has_one_state_one_reason_and_one_next_command(
    kind: str, side: str, file: str, world: World, tmp_path: Path
) -> None:
    write_conversation(world.workspace / f"{NUMBER + 1}-other", "Other", events(1))
    world.reconcile()
    if kind == "removed here":
        shutil.rmtree(world.workspace / NAME)
        world.reconcile()
    elif kind != "public":
        shutil.copytree(world.workspace / NAME, tmp_path / "kept")
        world.reconcile("local", str(NUMBER))
        if kind == "local, copy here":
            shutil.copytree(tmp_path / "kept", world.workspace / NAME)
    (getattr(world, side) / NAME / file).write_text("{ torn")
    reason, command = f"{side}:{NAME}/{file}: invalid JSON in line 1", BLOCKED[kind, side]
    take = "store" if "workspace" in command else "workspace"  # not the one that settles it
    for words in ([], ["resolve", str(NUMBER), "--take", take, "-n"], ["project", str(NUMBER), "-n"], ["doctor"]):
        shown = world.run("-w", world.project, *words)
        assert shown.exit_code == 4, words
        assert shown.stdout.count(reason) == 1, words
        # `project` makes a local one public, and the store's version can be taken then.
        assert command in shown.stdout or (words[:1] == ["project"] and kind == "local, copy here"), words
    one = world.run("-w", world.project, "status", str(NUMBER)).stdout
    assert f"  state      blocked: {reason}" in one
    assert f"Next:\n  {command}" in one
    assert one.count("settles it") == 1
    all_, dry = (world.run("-w", world.project, *words).stdout for words in (("status",), ("-n",)))
    assert all_.startswith("workspace ")
    assert "\nblocked  It" in all_
    assert all_.partition("Next:")[2].split() == dry.partition("Next:")[2].split()
    world.reconcile(*command.split()[1:], settled=False)
    assert "blocked" not in world.run("-w", world.project, "-n").stdout


@pytest.mark.parametrize("side", ["store", "workspace"])
def test_a_side_that_is_a_file_is_named_by_its_path(world: World, side: str) -> None:
    directory: Path = getattr(world, side)
    directory.rename(directory.with_name("away"))
    directory.write_text("in its place\n")
    words = f"{shown(directory)}: a file is in the place of a directory"
    for command in ((), ("--dry-run",), ("status",), ("doctor",)):
        printed = world.run(*command, "--workspace", world.project)
        assert words in printed.stdout, printed.output
        assert f"{side}:." not in printed.output
    told = world.run("status", "--workspace", world.project).stdout
    assert "Next:\n  reconcile doctor" in told
    assert "    put a directory there\n" in world.run("doctor", "--workspace", world.project).stdout
    assert f"error: {shown(directory)}: not " in world.run("--workspace", world.project).stderr, "it is the same path"
    document = json.loads(world.run("--dry-run", "--json", "--workspace", world.project).stdout)
    assert any(item["message"].startswith(f"{side}:.: ") for item in document["held"])

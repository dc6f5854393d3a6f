"""A sync with nothing to do is told by the status of the files and the remote's commit; whatever changes is noticed."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from reconcile.engine.engine import Engine
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.sync import Sync
from tests.support.projects.machines import quiet
from tests.support.projects.world import LONG_AGO, SECOND, set_key

if TYPE_CHECKING:
    from tests.support.projects.machines import Machine

A, B, C = 17528832000, 17528832010, 17528832020


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines of syncs that have looked at the sides."""
    found, begin = list[Engine](), Engine.begin

    def counted(self: Engine) -> None:
        if self.session.state.is_of_remote:
            found.append(self)
        begin(self)

    monkeypatch.setattr(Engine, "begin", counted)
    return found


def settle(*machines: Machine) -> None:
    for _ in range(3):
        for machine in machines:
            machine.sync()


def test_nothing_to_do_reads_no_tree_and_scans_nothing(
    laptop: Machine, began: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(laptop)
    began.clear()
    refuse(monkeypatch, "tree", "read", "write", "swap")
    found = laptop.sync()
    assert not any(found[key] for key in ("sent", "taken", "held"))
    assert not laptop.half("pull")["taken"]
    assert not laptop.half("push")["sent"]
    assert began == []
    assert "last contact" in laptop.run("status").output


def refuse(monkeypatch: pytest.MonkeyPatch, *operations: str) -> None:
    def used(*_: object) -> NoReturn:
        raise AssertionError

    for operation in operations:
        monkeypatch.setattr(GitEngine, operation, used)


@pytest.mark.long
def test_the_second_sync_after_a_change_knows_too(laptop: Machine, desktop: Machine, began: list[Engine]) -> None:
    """The first one still reads the files that were written a moment before their scan."""
    settle(laptop, desktop)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    assert laptop.sync()["sent"]
    assert desktop.sync()["taken"]
    time.sleep(0.1)
    for machine in (laptop, desktop):
        machine.sync()
        began.clear()
        machine.sync()
        assert began == []


@pytest.mark.long
def test_every_change_is_noticed(laptop: Machine, desktop: Machine) -> None:
    settle(laptop, desktop)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    assert laptop.sync()["sent"]
    assert desktop.sync()["taken"]
    settle(laptop, desktop)
    laptop.run("local", str(A))
    assert laptop.sync()["private_there"]
    desktop.sync()
    assert "local: not copied" in desktop.run("status", str(A)).output
    settle(laptop, desktop)
    desktop.run("rm", str(B), "--yes")
    assert desktop.sync()["removed_there"]
    assert laptop.sync()["removed_here"]
    settle(laptop, desktop)
    (laptop.directory(A) / "notes.txt").write_text("n")
    assert laptop.sync()["sent"]
    settle(laptop, desktop)
    assert (desktop.directory(A) / "notes.txt").read_text() == "n"


def test_a_file_of_the_cache_that_was_changed_is_noticed(laptop: Machine, desktop: Machine) -> None:
    settle(laptop, desktop)
    tree = laptop.state / "remotes" / "origin" / "tree"
    (path,) = tree.rglob(f"{A}*/events.json")
    path.write_text("[]")
    assert not laptop.sync()["taken"]
    assert path.read_bytes() == (laptop.directory(A) / "events.json").read_bytes()
    path.parent.rename(path.parent.with_name("elsewhere"))
    outside = laptop.home / "outside"
    outside.mkdir()
    path.parent.symlink_to(outside)
    assert not laptop.sync()["sent"]
    assert list(outside.iterdir()) == []
    assert path.read_bytes() == (laptop.directory(A) / "events.json").read_bytes()


def test_what_needs_a_person_is_said_again(laptop: Machine) -> None:
    (laptop.directory(A) / "events.json").write_text("<<<<<<< HEAD\n")
    for _ in range(3):
        assert laptop.sync(code=4)["held"]


@pytest.mark.parametrize("damage", [b"", b"x", b"\x81\xa1a\xc4\x01b"])
def test_a_damaged_cache_of_records_costs_nothing_but_time(laptop: Machine, desktop: Machine, damage: bytes) -> None:
    (laptop.state / "remotes" / "origin" / "tree-cache").write_bytes(damage)
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    desktop.sync()
    assert laptop.sync()["taken"]


# One change costs its own size


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each sync that has something to do: whether it goes on from the last one, and so looks at that alone."""
    found, resume, open_all = list[bool](), Sync._resumed, Sync._opened

    def resuming(self: Sync, *args: Any) -> Any:
        sides = resume(self, *args)
        if sides is not None:
            found.append(True)
        return sides

    def opening(self: Sync, *args: Any) -> Any:
        found.append(False)
        return open_all(self, *args)

    monkeypatch.setattr(Sync, "_resumed", resuming)
    monkeypatch.setattr(Sync, "_opened", opening)
    monkeypatch.setenv("RECONCILE_VERIFY", "1")
    return found


@pytest.fixture
def whole_trees(laptop: Machine, desktop: Machine, resumed: list[bool], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Settle both machines; then the laptop adds an event. The list gets the commits whose whole tree is read."""
    settle(laptop, desktop)
    resumed.clear()
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    found, tree = list[str](), GitEngine.tree

    def reading(self: GitEngine, commit: str, *paths: str) -> dict[str, str]:
        if not paths:
            found.append(commit)
        return tree(self, commit, *paths)

    monkeypatch.setattr(GitEngine, "tree", reading)
    return found


@pytest.mark.long
def test_a_sync_looks_at_what_has_changed(
    laptop: Machine, desktop: Machine, resumed: list[bool], whole_trees: list[str]
) -> None:
    assert len(laptop.sync()["sent"]) == 1
    desktop.append(B, 2, "c", LONG_AGO + SECOND)
    found = desktop.sync()
    assert (len(found["taken"]), len(found["sent"])) == (1, 1)
    laptop.append(B, 1, "d", LONG_AGO + 2 * SECOND)
    assert len(laptop.sync()["forked"]) == 1
    desktop.sync()
    laptop.write(B + 1)
    set_key(laptop.directory(B), "title", "another", LONG_AGO + 3 * SECOND)
    (laptop.store / ".archive").mkdir()
    laptop.directory(B + 10).rename(laptop.store / ".archive" / laptop.directory(B + 10).name)
    assert len(laptop.sync()["sent"]) == 3
    assert len(desktop.sync()["taken"]) == 3
    assert all(resumed)
    assert whole_trees == []
    assert desktop.contents == laptop.contents
    quiet(desktop, laptop)
    laptop.run("rm", str(A), "--yes")  # a removal looks at everything, as in a run
    assert laptop.sync()["removed_there"]
    assert desktop.sync()["removed_here"]
    quiet(desktop, laptop)


def test_runs_of_the_checkout_in_between_cost_nothing(
    laptop: Machine, desktop: Machine, resumed: list[bool], whole_trees: list[str]
) -> None:
    laptop.run("project", str(A), str(B))
    laptop.run()
    assert len(laptop.sync()["sent"]) == 1
    laptop.run("local", str(B))
    assert [each["id"] for each in laptop.sync()["private_there"]] == [f"jp-c{B}"]
    desktop.run()
    desktop.sync()
    assert "local: not copied" in desktop.run("status", str(B)).output
    assert all(resumed)
    assert whole_trees == []
    quiet(desktop, laptop)


@pytest.mark.long
@pytest.mark.parametrize("change", ["remote", "last", "foreign", "keep", "many"])
def test_what_can_not_be_relied_on_is_looked_at(
    laptop: Machine, desktop: Machine, resumed: list[bool], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(laptop, desktop)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    resumed.clear()
    known = desktop.state / "remotes" / "origin"
    desktop.append(B, 1, "c", LONG_AGO + SECOND)
    if change == "remote":
        shutil.rmtree(known / "mirror")
    elif change == "last":
        (known / "last-sync").write_bytes(b"x")
        desktop.run()
        desktop.run("project", str(B))
    elif change == "foreign":
        (known / "tree" / "conversations" / "more").mkdir()
    elif change == "keep":
        desktop.run("remote", "keep-here", f"{B + 10}")
    else:
        monkeypatch.setattr("reconcile.remote.sync.MOST", 0)
    found = desktop.sync()
    assert (len(found["taken"]), len(found["sent"])) == (1, 1)
    assert resumed == [False] or change == "remote"
    laptop.sync()
    assert desktop.contents == laptop.contents


@pytest.mark.long
def test_an_edit_after_a_sync_that_removed_and_moved_something_is_seen(laptop: Machine, desktop: Machine) -> None:
    """A removal is a run of its own, with a scan of everything; what comes after it in that sync is scanned in part."""
    quiet(laptop, desktop)
    archive = laptop.store / ".archive"
    archive.mkdir()
    laptop.directory(B).rename(archive / laptop.directory(B).name)
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    time.sleep(0.1)
    found = desktop.sync()
    assert (found["removed_here"], found["taken"]) != ([], [])
    desktop.append(B, 1, "b", LONG_AGO + SECOND)
    desktop.sync()
    laptop.sync()
    assert laptop.events(B) == desktop.events(B) == 4

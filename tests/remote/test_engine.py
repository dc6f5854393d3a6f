"""The interface of an engine, with a second implementation: a sync needs no git."""

from __future__ import annotations

import itertools
from hashlib import sha1
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.roots import Roots
from reconcile.model.policy import Policy
from reconcile.remote.engine import RemoteEngine, RemoteError, Swap
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.known import Lock, Planned, Report
from reconcile.remote.place import RemotePlace
from reconcile.remote.sync import Sync, open_session
from tests.support.projects.machines import Machine, make_bare, make_machine
from tests.support.projects.memory_engine import Host, MemoryEngine
from tests.support.projects.world import LONG_AGO, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

A = 17528832000


@pytest.fixture(params=["memory", "git"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteEngine:
    if request.param == "memory":
        return MemoryEngine(Host())
    return GitEngine(str(make_bare(tmp_path / "r.git")), "refs/reconcile/x", str(tmp_path / "mirror"))


def test_two_processes_that_write_at_once_get_a_commit_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (
        GitEngine(str(tmp_path / "r.git"), f"refs/reconcile/{name}", str(tmp_path / "mirror")) for name in "ab"
    )
    required = GitEngine._required

    def late(self: GitEngine, *args: str, stdin: bytes = b"") -> bytes:
        printed = required(self, *args, stdin=stdin)
        if self is one and args[0] == "fast-import":
            other.write(None, {"b": b"2"}, ())
        return printed

    monkeypatch.setattr(GitEngine, "_required", late)
    assert set(one.tree(one.write(None, {"a": b"1"}, ()))) == {"a"}


def test_a_swap_is_won_although_the_mirror_cannot_note_it(tmp_path: Path) -> None:
    engine = GitEngine(str(make_bare(tmp_path / "r.git")), "refs/reconcile/x", str(tmp_path / "mirror"))
    first = engine.write(None, {"a": b"1"}, ())
    lock = tmp_path / "mirror" / "refs" / "reconcile" / "seen.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    assert engine.swap(None, first) is Swap.WON
    lock.unlink()
    assert engine.tip() == first


@pytest.mark.parametrize("setting", ["[push]\n  pushOption = ci.skip\n", "[i18n]\n  logOutputEncoding = utf-16\n"])
def test_a_setting_of_the_users_git_for_other_repositories_counts_for_no_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    (tmp_path / "settings").write_text(setting)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    engine = GitEngine(str(make_bare(tmp_path / "r.git")), "refs/reconcile/x", str(tmp_path / "mirror"))
    engine.probe()
    first = engine.write(None, {"a": b"1"}, ())
    assert engine.swap(None, first) is Swap.WON
    assert [commit for commit, _ in engine.history(first, "a")] == [first]


def test_a_tree_is_what_was_written(engine: RemoteEngine) -> None:
    engine.probe()
    assert engine.tip() is None
    assert not engine.exists()
    first = engine.write(None, {"a/b": b"1", 'odd "name"\\': b"2", "c": b""}, ())
    assert engine.tip() is None
    assert engine.swap(None, first) is Swap.WON
    assert engine.tip() == first
    assert engine.exists()
    names = engine.tree(first)
    assert {path: dict(engine.read([name]))[name] for path, name in names.items()} == {
        "a/b": b"1",
        'odd "name"\\': b"2",
        "c": b"",
    }
    assert engine.seen() == first
    assert engine.named(first[:10]) == first
    assert engine.named("0000000") is None
    assert set(engine.tree(first, "a")) == set(engine.tree(first, "a/b")) == {"a/b"}
    assert engine.tree(first, "b") == {}
    second = engine.write(first, {"d": b"3"}, ["a", "c"])
    assert set(engine.tree(second)) == {'odd "name"\\', "d"}
    assert engine.swap(first, second) is Swap.WON
    assert engine.seen() == second
    assert engine.changes(first, second) == {"a/b", "c", "d"}
    assert engine.changes(second, second) == set()
    assert [commit for commit, _ in engine.history(second, "a")] == [second, first]
    assert [commit for commit, _ in engine.history(second, "d")] == [second]
    assert engine.contains(second, first)
    assert not engine.contains(first, second)
    alone = engine.without_history(second, {"d": b"4"})
    assert set(engine.tree(alone)) == {'odd "name"\\', "d"}
    assert dict(engine.read([engine.tree(alone)["d"]])) == {engine.tree(alone)["d"]: b"4"}
    assert not engine.contains(alone, second)
    assert engine.swap(second, alone) is Swap.WON
    assert engine.tip() == alone


def test_a_known_content_gets_another_path(engine: RemoteEngine) -> None:
    first = engine.write(None, {"a": b"1", "b/c": b"2", "d": b"3"}, ())
    names = engine.tree(first)
    second = engine.write(first, {"e": b"4"}, ["b", "d"], {"d": names["b/c"], 'odd "name"': names["d"]})
    found = engine.tree(second)
    assert set(found) == {"a", "d", "e", 'odd "name"'}
    assert (found["d"], found['odd "name"']) == (names["b/c"], names["d"])
    assert engine.swap(None, second) is Swap.WON


def test_a_stale_swap_is_lost(engine: RemoteEngine) -> None:
    first = engine.write(None, {"a": b"1"}, ())
    assert engine.swap(None, first) is Swap.WON
    assert engine.swap(None, engine.write(None, {"a": b"2"}, ())) is Swap.LOST
    assert engine.tip() == first


def contents_that_git_counts(amount: int) -> list[bytes]:
    """Return contents whose objects lie in the folder 17: git counts these alone, and takes them for 1/256 of all."""
    numbers = (b"%08d" % number for number in itertools.count())
    counted = (each for each in numbers if sha1(b"blob 8\0" + each, usedforsecurity=False).digest()[0] == 0x17)
    return list(itertools.islice(counted, amount))


@pytest.mark.long
def test_the_mirror_is_packed_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcile.remote.git.engine.LOOSE", 100)
    url, objects = str(make_bare(tmp_path / "r.git")), tmp_path / "mirror" / "objects"
    engine, other = (GitEngine(url, "refs/reconcile/x", str(tmp_path / name)) for name in ("mirror", "other"))
    tip, contents = None, contents_that_git_counts(420)
    for number in range(6):
        batch = contents[number * 70 : number * 70 + 70]
        commit = engine.write(tip, {f"c/{number}/{each}": content for each, content in enumerate(batch)}, ())
        assert engine.swap(tip, commit) is Swap.WON
        tip = commit
        assert other.tip() == tip
    for each in (objects, tmp_path / "other" / "objects"):
        assert sum(1 for path in each.glob("??/*") if path.is_file()) < 100
    assert len(engine.tree(str(tip))) == len(other.tree(str(tip))) == 420


def sync(
    machine: Machine,
    host: Host,
    engine: MemoryEngine | None = None,
    *,
    dry: bool = False,
    planned: Planned | None = None,
) -> Report:
    with machine.at_work():
        silo, jp = machine.store.parent, machine.project / ".jp"
        roots = Roots("jp", str(jp), str(machine.project), str(silo), True, "ab1cd", "", "jp-ab1cd")  # noqa: FBT003
        state = machine.state
        place = RemotePlace("memory", "memory", "jp-ab1cd", str(state / "remotes" / "memory"))
        tree = f"{place.tree}-dry" if dry else place.tree
        with open_session(roots, place, str(state), tree, ignore=(), dry=dry) as session:
            lock = Lock("a test", 0, lambda _who: None)
            return Sync(session, place, engine or MemoryEngine(host), Policy(), lock, planned=planned).run()


def test_two_machines_without_git(tmp_path: Path, run: Run) -> None:
    host = Host()
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    assert len(sync(one, host).sent) == 1
    assert len(sync(other, host).taken) == 1
    one.append(A, 1, "b", LONG_AGO + SECOND)
    other.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    sync(one, host)
    assert len(sync(other, host).forked) == 1
    sync(one, host)
    assert one.contents == other.contents
    assert not sync(other, host).taken


def synced_pair(tmp_path: Path, run: Run) -> tuple[Host, Machine, Machine]:
    """Return a host, and two machines that have synced two conversations with it."""
    host = Host()
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    one.write(A + 1)
    sync(one, host)
    sync(other, host)
    return host, one, other


def test_a_saved_plan_sends_nothing_after_a_lost_race(tmp_path: Path, run: Run) -> None:
    host, one, other = synced_pair(tmp_path, run)
    one.append(A, 1, "b", LONG_AGO + SECOND)
    sync(one, host)
    other.append(A + 1, 1, "c", LONG_AGO + SECOND)
    planned = sync(other, host, dry=True).planned
    one.append(A, 1, "d", LONG_AGO + SECOND)

    class SlowEngine(MemoryEngine):
        def swap(self, expected: str | None, commit: str) -> Swap:
            sync(one, host)
            return super().swap(expected, commit)

    with pytest.raises(RemoteError, match="the remote has changed since the plan was made, and nothing was sent"):
        sync(other, host, SlowEngine(host), planned=planned)
    assert (other.events(A), one.events(A + 1)) == (4, 3), "taken, and not sent"
    for machine in (other, one, other):
        sync(machine, host)
    assert one.contents == other.contents
    assert (one.events(A), one.events(A + 1)) == (5, 4)


@pytest.mark.parametrize("is_restored", [False, True], ids=["taken", "restored"])
def test_what_an_interrupted_sync_has_taken_is_no_edit_of_what_was_removed(
    tmp_path: Path, run: Run, is_restored: bool
) -> None:
    """An earlier version is one: a person has restored it."""
    host, one, other = synced_pair(tmp_path, run)
    before = (other.directory(A) / "events.json").read_bytes()
    if is_restored:
        one.append(A, 1, "b", LONG_AGO + SECOND)
        sync(one, host)
        sync(other, host)
        (other.directory(A) / "events.json").write_bytes(before)
    else:
        one.append(A, 1, "b", LONG_AGO + SECOND)
        sync(one, host)
        other.append(A + 1, 1, "c", LONG_AGO + SECOND)

        class DeadEngine(MemoryEngine):
            def swap(self, *_: object) -> Swap:
                return Swap.UNKNOWN

        with pytest.raises(RemoteError, match="no answer"):
            sync(other, host, DeadEngine(host))
        assert other.events(A) == 4
    one.append(A, 1, "d", LONG_AGO + SECOND)
    sync(one, host)
    one.run("rm", str(A), "--yes")
    sync(one, host)
    found = sync(other, host).removed_here
    assert [entry.id for entry in found] == ([] if is_restored else [f"jp-c{A}"])
    sync(one, host)
    assert one.contents == other.contents

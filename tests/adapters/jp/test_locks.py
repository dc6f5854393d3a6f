"""JP's conversation locks, against processes that do what JP does (docs/design/formats/jp.md#lock-files)."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.jp.locks import Acquired, Busy, HeldLock, LockRoots, LockSet, NullLockSet, SharedDirectories

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[3]
NAME = "jp-c17528832001.lock"
OTHER = "jp-c17528832002.lock"

# What JP does: flock, content, and on release close, then unlink.
JP = """
import fcntl, json, os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
try:
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("busy")
os.ftruncate(fd, 0)
content = {"pid": os.getpid(), "session": "7", "acquired_at": "2026-11-21T20:30:30.0+00:00"}
os.write(fd, json.dumps(content).encode())
print("held", flush=True)
sys.stdin.readline()
os.close(fd)
os.unlink(path)
"""


class Jp:
    """A JP process that tries a lock; `held` tells whether it got it."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", JP, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout
        self.held = self.process.stdout.readline() == "held\n"

    def unpin(self) -> None:
        self.process.communicate("\n", timeout=20)


@pytest.fixture
def silo(tmp_path: Path) -> Path:
    (tmp_path / "silo").mkdir()
    return tmp_path / "silo"


@pytest.fixture
def dot_jp(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".jp").mkdir(parents=True)
    return tmp_path / "project" / ".jp"


@pytest.fixture
def locks(silo: Path, dot_jp: Path) -> LockSet:
    return LockSet(LockRoots(str(silo), str(dot_jp)))


@pytest.fixture
def mine(locks: LockSet) -> Iterator[Acquired]:
    with locks.acquire([NAME]) as acquired:
        assert acquired.busy == ()
        yield acquired


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "locks").iterdir())


def link_of(name: str) -> str:
    return f".reconcile-{os.getpid()}-{name.removesuffix('.lock')}.held"


def jp_gets(path: Path) -> bool:
    jp = Jp(path)
    jp.unpin()
    return jp.held


def test_a_held_lock_keeps_jp_out_until_released(silo: Path, locks: LockSet) -> None:
    with locks.acquire([NAME]) as acquired:
        assert [lock.name for lock in acquired.held] == [NAME]
        assert acquired.lost() == ()
        assert not jp_gets(silo / "locks" / NAME)
        assert jp_gets(silo / "locks" / OTHER)
        content = (silo / "locks" / NAME).read_text()
        assert json.loads(content)["pid"] == os.getpid()
        assert re.fullmatch(r'\{"pid":\d+,"acquired_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\+00:00"\}', content)
    assert not acquired.held[0].still_held()
    assert names(silo) == [NAME]  # never unlinked by us, and our second link is gone
    acquired.release()
    assert jp_gets(silo / "locks" / NAME)


def test_what_jp_holds_is_busy_and_says_who(silo: Path, locks: LockSet) -> None:
    (silo / "locks").mkdir()
    jp = Jp(silo / "locks" / NAME)
    before = (silo / "locks" / NAME).read_bytes()
    with locks.acquire([NAME, OTHER]) as acquired:
        assert [lock.name for lock in acquired.held] == [OTHER]
        (busy,) = acquired.busy
        assert (busy.name, busy.pid) == (NAME, jp.process.pid)
        assert str(jp.process.pid) in busy.detail
        assert (silo / "locks" / NAME).read_bytes() == before
    assert names(silo) == [NAME, OTHER]
    jp.unpin()
    with locks.acquire([NAME]) as acquired:
        assert acquired.busy == ()


NESTED = b'{"pid":' + b"[" * 4000


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"pid":"x"}', b'{"pid":true}', b'{"pid":-1}', b"\xff", NESTED]
)
def test_a_holder_that_says_nothing_readable(silo: Path, locks: LockSet, content: bytes) -> None:
    (silo / "locks").mkdir()
    jp = Jp(silo / "locks" / NAME)
    (silo / "locks" / NAME).write_bytes(content)
    (busy,) = locks.acquire([NAME]).busy
    assert busy.pid is None
    assert "another process" in busy.detail
    jp.unpin()


def test_a_lock_is_taken_once_by_one_process_too(locks: LockSet, mine: Acquired) -> None:
    again = locks.acquire([NAME])
    assert [busy.pid for busy in again.busy] == [os.getpid()]
    assert mine.lost() == ()
    with locks.acquire([OTHER, OTHER]) as twice:
        assert (len(twice.held), twice.busy) == (1, ())


# The path rule


def test_a_stray_lock_in_the_workspace_redirects(silo: Path, dot_jp: Path, locks: LockSet) -> None:
    (dot_jp / "locks").mkdir()
    (dot_jp / "locks" / NAME).touch()
    with locks.acquire([NAME, OTHER]) as acquired:
        assert acquired.busy == ()
        assert names(dot_jp) == sorted([NAME, link_of(NAME)])
        assert names(silo) == sorted([OTHER, link_of(OTHER)])
        assert not jp_gets(dot_jp / "locks" / NAME)
        # A file in the user root comes first by the rule: whoever comes now locks that one.
        (silo / "locks" / NAME).touch()
        assert acquired.lost() == (NAME,)
    assert names(dot_jp) == [NAME]


def test_the_users_root_comes_first_when_both_have_it(silo: Path, dot_jp: Path, locks: LockSet) -> None:
    for root in (silo, dot_jp):
        (root / "locks").mkdir()
        (root / "locks" / NAME).touch()
    with locks.acquire([NAME]):
        assert link_of(NAME) in names(silo)
        assert names(dot_jp) == [NAME]


@pytest.mark.parametrize("missing", ["user", "workspace"])
def test_one_root_is_enough(silo: Path, dot_jp: Path, missing: str) -> None:
    roots = LockRoots(None, str(dot_jp)) if missing == "user" else LockRoots(str(silo), None)
    with LockSet(roots).acquire([NAME]) as acquired:
        assert acquired.busy == ()
        assert NAME in names(dot_jp if missing == "user" else silo)


def test_with_no_root_or_a_silo_that_is_gone_everything_is_busy_and_nothing_is_made(tmp_path: Path) -> None:
    assert LockSet(LockRoots(None, None)).acquire([NAME]).busy[0].pid is None
    gone = LockSet(LockRoots(str(tmp_path / "merged-away"), None)).acquire([NAME])
    assert gone.held == ()
    assert "merged-away" in gone.busy[0].detail
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_written_through(silo: Path, locks: LockSet, tmp_path: Path) -> None:
    (silo / "locks").mkdir()
    (tmp_path / "precious").write_text("content")
    (silo / "locks" / NAME).symlink_to(tmp_path / "precious")
    acquired = locks.acquire([NAME])
    assert (acquired.held, len(acquired.busy)) == ((), 1)
    assert (tmp_path / "precious").read_text() == "content"


def test_a_link_to_nowhere_is_not_written_through_either(
    silo: Path, dot_jp: Path, locks: LockSet, tmp_path: Path
) -> None:
    (silo / "locks").mkdir()
    (silo / "locks" / NAME).symlink_to(tmp_path / "elsewhere")
    assert len(locks.acquire([NAME]).busy) == 1
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("which", ["silo", "dot_jp"])
def test_a_link_in_the_place_of_the_locks_is_never_followed(
    silo: Path, dot_jp: Path, locks: LockSet, tmp_path: Path, which: str
) -> None:
    """It may come with a pulled repository: what lies behind it is neither written, nor removed, nor made."""
    root = silo if which == "silo" else dot_jp
    outside = tmp_path / "outside"
    outside.mkdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (NAME, f".reconcile-{dead.pid}-jp-c5.held", "jp-c5.lock"):
        (outside / name).write_text("content")
    (root / "locks").symlink_to(outside)
    before = {path.name: (path.read_text(), path.stat().st_ino) for path in outside.iterdir()}
    with locks.acquire([NAME]) as acquired:
        assert acquired.held == ()
        (busy,) = acquired.busy
        assert busy.impossible
        assert busy.detail.startswith(f"{root}/locks: a symbolic link, which is never followed; put a directory there")
    with locks.acquire([OTHER]) as acquired:  # nobody locks that behind the link
        assert len(acquired.held) == (which == "dot_jp")
    assert {path.name: (path.read_text(), path.stat().st_ino) for path in outside.iterdir()} == before


def test_a_link_that_takes_the_place_of_the_locks_meanwhile(silo: Path, mine: Acquired, tmp_path: Path) -> None:
    """The lock is lost then, or still ours behind the link; neither its name is put back there, nor is one removed."""
    (silo / "locks").rename(tmp_path / "away")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / link_of(NAME)).write_text("content")
    (silo / "locks").symlink_to(tmp_path / "outside")
    assert mine.lost() == (NAME,)
    mine.release()
    assert [path.name for path in (tmp_path / "outside").iterdir()] == [link_of(NAME)]


@pytest.mark.parametrize("what", ["gone", "another directory", "a link"])
def test_the_directory_of_several_locks_that_is_replaced_between_two_of_them(
    silo: Path, locks: LockSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    take = LockSet.take

    def taken(locks: LockSet, name: str, session: str | None = None, **shared: SharedDirectories) -> HeldLock | Busy:
        if name == OTHER:
            if what == "gone":
                shutil.rmtree(silo / "locks")
            else:
                (silo / "locks").rename(tmp_path / "old")
            if what == "another directory":
                (silo / "locks").mkdir()
            elif what == "a link":
                (tmp_path / "elsewhere").mkdir()
                (silo / "locks").symlink_to(tmp_path / "elsewhere")
        return take(locks, name, session, **shared)

    monkeypatch.setattr(LockSet, "take", taken)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    with locks.acquire([NAME, OTHER]) as acquired:
        assert [lock.name for lock in acquired.held] == ([NAME] if what == "a link" else [NAME, OTHER])
        assert acquired.lost() == (NAME,)
        assert [busy.impossible for busy in acquired.busy] == ([True] if what == "a link" else [])
    assert not list(tmp_path.rglob("*.held"))
    assert not (tmp_path / "elsewhere").exists() or not list((tmp_path / "elsewhere").iterdir())
    assert sys.platform != "linux" or len(os.listdir("/proc/self/fd")) == before


def test_a_pipe_in_the_place_of_a_lock_is_no_lock(silo: Path, locks: LockSet) -> None:
    (silo / "locks").mkdir()
    os.mkfifo(silo / "locks" / NAME)
    (busy,) = locks.acquire([NAME]).busy
    assert "a named pipe is in the place of the lock file" in busy.detail


# Names that vanish


@pytest.mark.parametrize("what", ["gone", "another file", "another place"])
def test_a_file_that_lost_its_name_while_it_was_locked_is_no_lock(silo: Path, dot_jp: Path, what: str) -> None:
    for root in (silo, dot_jp):
        (root / "locks").mkdir()
    path = (dot_jp if what == "another place" else silo) / "locks" / NAME
    path.touch()
    fd = os.open(path, os.O_RDWR)
    directory = SharedDirectories().join(str(path.parent))
    lock = HeldLock(NAME, LockRoots(str(silo), str(dot_jp)), str(path), fd, directory)
    if what == "another place":
        (silo / "locks" / NAME).touch()
    else:
        path.unlink()
    if what == "another file":
        path.touch()
    assert not lock._settle(None)
    os.close(directory.fd)
    os.close(fd)
    assert not [name for root in (silo, dot_jp) for name in names(root) if name.endswith(".held")]


def test_a_name_that_the_sweep_took_is_put_back(silo: Path, mine: Acquired) -> None:
    inode = (silo / "locks" / NAME).stat().st_ino
    (silo / "locks" / NAME).unlink()
    assert mine.lost() == ()
    assert (silo / "locks" / NAME).stat().st_ino == inode
    assert not jp_gets(silo / "locks" / NAME)


def test_a_name_that_another_process_has_by_now_is_lost(silo: Path, mine: Acquired) -> None:
    (silo / "locks" / NAME).unlink()
    jp = Jp(silo / "locks" / NAME)
    assert jp.held  # the race that JP has: two holders
    assert mine.lost() == (NAME,)
    mine.release()
    assert (silo / "locks" / NAME).read_bytes() != b""  # JP's account of itself, not ours to empty
    assert names(silo) == [NAME]
    jp.unpin()


def test_without_the_second_link_a_swept_name_is_lost(silo: Path, mine: Acquired) -> None:
    (silo / "locks" / link_of(NAME)).unlink()
    assert mine.lost() == ()
    (silo / "locks" / NAME).unlink()
    assert mine.lost() == (NAME,)


def test_jps_release_under_our_flock_is_noticed(silo: Path, locks: LockSet) -> None:
    """JP closes, we flock the same inode, then JP unlinks what by now is ours (race 1)."""
    (silo / "locks").mkdir()
    path = silo / "locks" / NAME
    script = (
        "import fcntl, os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX)\n"
        "os.close(fd)\nprint('closed', flush=True)\nsys.stdin.readline()\nos.unlink(sys.argv[1])"
    )
    jp = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert jp.stdout
    assert jp.stdout.readline() == "closed\n"
    with locks.acquire([NAME]) as acquired:
        jp.communicate("\n", timeout=20)
        assert not path.exists()
        assert acquired.lost() == ()
        assert not jp_gets(path)


def test_names_that_change_all_the_time_never_give_two_holders(silo: Path, locks: LockSet) -> None:
    """A process unlinks the name as fast as it can: of all that we say to hold, one has the name."""
    (silo / "locks").mkdir()
    path = silo / "locks" / NAME
    script = (
        "import os, sys\nprint('go', flush=True)\nwhile os.path.exists(sys.argv[2]):\n"
        "  try: os.unlink(sys.argv[1])\n  except FileNotFoundError: pass"
    )
    going = silo / "going"
    going.touch()
    sweeper = subprocess.Popen([sys.executable, "-c", script, str(path), str(going)], stdout=subprocess.PIPE, text=True)
    assert sweeper.stdout
    assert sweeper.stdout.readline() == "go\n"
    taken = [locks.acquire([NAME]) for _ in range(200)]
    going.unlink()
    sweeper.communicate(timeout=20)
    holders = [acquired for acquired in taken if acquired.held and not acquired.lost()]
    assert len(holders) <= 1
    for acquired in taken:
        acquired.release()
    assert [name for name in names(silo) if name.endswith(".held")] == []


def test_links_of_dead_processes_go_and_those_of_the_living_stay(silo: Path, locks: LockSet) -> None:
    (silo / "locks").mkdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    kept = [f".reconcile-{os.getppid()}-jp-c5.held", ".reconcile-x-jp-c5.held", "notes.txt", "jp-c5.lock"]
    for name in (f".reconcile-{dead.pid}-jp-c5.held", *kept):
        (silo / "locks" / name).touch()
    locks.acquire([NAME]).release()
    assert names(silo) == sorted([*kept, NAME])


def test_a_killed_holder_leaves_it_free_and_its_link_is_cleaned_up(silo: Path, locks: LockSet) -> None:
    script = (
        "import os, signal, sys\nfrom reconcile.adapters.jp.locks import *\n"
        f"held = LockSet(LockRoots(sys.argv[1], None)).acquire([{NAME!r}])\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(silo)], cwd=PROJECT, check=False)
    assert len(names(silo)) == 2
    with locks.acquire([NAME]) as acquired:
        assert acquired.busy == ()
        assert names(silo) == sorted([NAME, link_of(NAME)])


# Many


def test_the_limit_of_open_files_is_raised_when_many_are_needed(tmp_path: Path) -> None:
    (tmp_path / "silo").mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("the hard limit is too low to raise anything")
    script = (
        "import resource, sys\nfrom reconcile.adapters.jp.locks import *\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1500))\n"
        "for count in (1000, 2000):\n"
        "  names = [f'jp-c{n}.lock' for n in range(count)]\n"
        "  with LockSet(LockRoots(sys.argv[1], None)).acquire(names) as a:\n"
        "    print(len(a.held), len(a.held) + len(a.busy), a.busy[0].detail if a.busy else '')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "silo")],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, second = ran.stdout.splitlines()
    assert first.strip() == "1000 1000"
    assert re.fullmatch(r"14\d\d 2000 .*Too many open files", second)


def test_an_empty_set_makes_nothing(silo: Path, locks: LockSet) -> None:
    with locks.acquire([]) as acquired:
        assert (acquired.held, acquired.busy) == ((), ())
    assert list(silo.iterdir()) == []


def test_a_format_without_locks_holds_nothing_and_is_never_busy() -> None:
    with NullLockSet().acquire([NAME]) as acquired:
        assert (acquired.held, acquired.busy, acquired.lost()) == ((), (), ())


def test_an_exception_releases_everything(silo: Path, locks: LockSet) -> None:
    with pytest.raises(KeyError), locks.acquire([NAME, OTHER]):
        raise KeyError
    assert jp_gets(silo / "locks" / NAME)
    assert jp_gets(silo / "locks" / OTHER)
    assert Busy(NAME, None, "x").name == NAME

"""Flushing. What reaches the disk can't be seen from here; what the kernel is asked for can, with strace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.fs.durability import MAX_SINGLE_FLUSHES, Durability, fsync_directory, fsync_file, sync_filesystem

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.flushes
PROJECT = Path(__file__).parents[2]
STRACE = shutil.which("strace")


def calls(tmp_path: Path, script: str) -> Counter[str]:
    """The flushes of a script, by system call and what it was called on."""
    log = tmp_path.parent / f"{tmp_path.name}.strace"
    subprocess.run(
        [str(STRACE), "-f", "-y", "-e", "trace=fsync,fdatasync,syncfs,sync", "-o", str(log),
         sys.executable, "-c", f"from reconcile.fs.durability import *\nbase = {str(tmp_path)!r}\n{script}"],
        cwd=PROJECT, check=True,
    )  # fmt: skip
    found = re.findall(r"(\w+)\(\d*<?([^>)]*)>?\) = 0", log.read_text())
    return Counter(f"{call} {Path(path).name}" for call, path in found)


def make(tmp_path: Path, count: int) -> None:
    for number in range(count):
        (tmp_path / f"f{number}").write_text("x")


needs_strace = pytest.mark.skipif(STRACE is None, reason="strace shows what the kernel was asked for")


@needs_strace
@pytest.mark.parametrize(("count", "each"), [(3, True), (MAX_SINGLE_FLUSHES, True), (MAX_SINGLE_FLUSHES + 1, False)])
def test_few_files_one_by_one_and_many_at_once(tmp_path: Path, count: int, each: bool) -> None:
    make(tmp_path, count)
    found = calls(tmp_path, f"Durability().flush_all([f'{{base}}/f{{n}}' for n in range({count})], [base, base])")
    if each:
        assert found == Counter([f"fsync f{n}" for n in range(count)] + [f"fsync {tmp_path.name}"])
    else:
        assert sum(found.values()) == 1
        assert next(iter(found)).startswith("syncfs ")


@needs_strace
def test_in_a_file_system_in_user_space_each_file_is_flushed(tmp_path: Path) -> None:
    make(tmp_path, 40)
    found = calls(
        tmp_path,
        "from reconcile.fs import durability\ndurability.file_system_type = lambda path: 'fuse.sshfs'\n"
        "Durability().flush_all([f'{base}/f{n}' for n in range(40)], [base], [base])",
    )
    assert found == Counter([f"fsync f{n}" for n in range(40)] + [f"fsync {tmp_path.name}"])


@needs_strace
@pytest.mark.parametrize("call", ["fsync", "syncfs"])
def test_a_disk_that_fails_is_an_error(tmp_path: Path, call: str) -> None:
    make(tmp_path, 40)
    what = "flush_all([f'{base}/f{n}' for n in range(40)], [])" if call == "syncfs" else "fsync_directory(base)"
    ran = subprocess.run(
        [str(STRACE), "-o", os.devnull, "-e", f"inject={call}:error=EIO", sys.executable, "-c",
         f"from reconcile.fs.durability import *\nbase = {str(tmp_path)!r}\n{what}"],
        cwd=PROJECT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert "Input/output error" in ran.stderr


@needs_strace
def test_turned_off_it_flushes_nothing(tmp_path: Path) -> None:
    make(tmp_path, 40)
    script = (
        "d = Durability(enabled=False)\nfiles = [f'{base}/f{n}' for n in range(40)]\n"
        "d.flush_all(files, [base])\nd.flush_all(files[:2], [base])\n"
        "d.fsync_file(files[0])\nd.fsync_directory(base)\nd.sync_filesystem(base)"
    )
    assert calls(tmp_path, script) == Counter()


def test_a_file_that_is_not_there_is_an_error_in_every_way(tmp_path: Path) -> None:
    make(tmp_path, 40)
    gone = str(tmp_path / "gone")
    files = [str(path) for path in tmp_path.iterdir()]
    attempts: tuple[Callable[[], None], ...] = (
        lambda: fsync_file(gone),
        lambda: fsync_directory(gone),
        lambda: sync_filesystem(gone),
        lambda: Durability().flush_all([gone], []),
        lambda: Durability().flush_all([*files, gone], []),
        lambda: Durability().flush_all([], [gone]),
    )
    for attempt in attempts:
        with pytest.raises(FileNotFoundError):
            attempt()


def test_a_descriptor_will_do_and_a_closed_one_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, 1)
    fd = os.open(tmp_path / "f0", os.O_RDONLY)
    fsync_file(fd)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        fsync_file(fd)


def test_a_directory_that_cannot_be_flushed_is_tolerated_and_a_file_is_not() -> None:
    # procfs has no fsync: EINVAL, as with some network file systems.
    if not Path("/proc/self").is_dir():
        pytest.skip("needs a file system that can't flush")
    fsync_directory("/proc/self/task")
    with pytest.raises(OSError, match="Invalid argument"):
        fsync_file("/proc/self/status")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    make(tmp_path, 1)
    with pytest.raises(NotADirectoryError):
        fsync_directory(str(tmp_path / "f0"))


def test_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, 1)
    (tmp_path / "link").symlink_to("f0")
    with pytest.raises(OSError, match="symbolic links"):
        fsync_file(str(tmp_path / "link"))

"""A ``.leslie`` as it is read from disk: nothing followed, nothing written, whatever lies about there."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.leslie.files import LeslieError, project_at, read_leslie
from reconcile.adapters.locate import format_at
from reconcile.formats.leslie.checks.model import File, Leftover, Lock, ThreadDirectory
from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS
from tests.support.formats.leslie import CORPUS, Leslie, corpus_found, corpus_project

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000_250_000_000
SCENARIOS = sorted(path.name for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else []


@pytest.fixture
def leslie(tmp_path: Path) -> Path:
    directory = tmp_path / ".leslie"
    directory.mkdir()
    (directory / RELATIONS).write_bytes(Leslie().relations_file())
    return directory


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_corpus_is_read_as_the_program_left_it(scenario: str, tmp_path: Path) -> None:
    project = corpus_project(scenario, tmp_path)
    found = read_leslie(str(project), NOW)
    expected = corpus_found(scenario)
    assert (found.files, found.threads) == (expected.files, expected.threads)
    assert (found.locks, found.leftovers) == ({}, {})


def test_what_is_not_there(tmp_path: Path, leslie: Path) -> None:
    found = read_leslie(str(tmp_path), NOW)
    assert list(found.files) == [RELATIONS]
    assert (found.threads, found.storage, found.now) == ({}, frozenset(), "2027-01-15T08:00:00.250Z")


def test_links_are_not_followed(tmp_path: Path, leslie: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "plan.md").write_text("secret")
    (leslie / OBJECTIVES).symlink_to(leslie / RELATIONS)
    (leslie / "threads").mkdir()
    (leslie / "threads" / "linked").symlink_to(tmp_path / "target")
    (leslie / "threads" / "real").mkdir()
    (leslie / "threads" / "real" / "inner").symlink_to(tmp_path / "target")
    (leslie / "threads" / "file").write_text("")
    found = read_leslie(str(tmp_path), NOW)
    assert found.files[OBJECTIVES] == File(None, "a symbolic link")
    assert found.threads == {
        "file": ThreadDirectory("a file"),
        "linked": ThreadDirectory("a symbolic link"),
        "real": ThreadDirectory(files=frozenset({"inner"})),
    }


def test_threads_that_are_a_link(tmp_path: Path, leslie: Path) -> None:
    (leslie / "threads").symlink_to(tmp_path)
    found = read_leslie(str(tmp_path), NOW)
    assert (found.threads, found.blocked) == ({}, "a symbolic link")


def test_a_leslie_that_is_a_link(tmp_path: Path, leslie: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".leslie").symlink_to(leslie)
    with pytest.raises(LeslieError, match=r"a symbolic link$"):
        read_leslie(str(other), NOW)
    shutil.rmtree(leslie)
    with pytest.raises(LeslieError, match=r"can't be read \(No such file or directory\)"):
        read_leslie(str(tmp_path), NOW)


def test_locks_and_what_is_left_over(tmp_path: Path, leslie: Path) -> None:
    lock, other = leslie / f"{RELATIONS}.lock", leslie / f"{OBJECTIVES}.lock"
    lock.mkdir()
    (lock / "pid").write_text("1")
    other.write_text("")
    left = leslie / f"{RELATIONS}.tmp-12-0b7c5a5e-0000-4000-8000-000000000000"
    left.write_text("{")
    (leslie / f"{RELATIONS}.tmp").write_text("somebody's own")
    for path in (lock, other, left):
        os.utime(path, ns=(NOW, NOW - 3_500_000_000))
    found = read_leslie(str(tmp_path), NOW)
    assert found.locks == {lock.name: Lock("a directory", 3.5, ("pid",)), other.name: Lock("a file", 3.5)}
    assert found.leftovers == {left.name: Leftover(RELATIONS, 3.5, File(b"{"), NOW - 3_500_000_000)}


@pytest.mark.parametrize(
    ("ages", "busy"),
    [
        ((3,), "a Leslie run was active 3 seconds ago"),
        ((700,), ""),
        ((9000, 60), "a Leslie run was active 60"),
        ((), ""),
    ],
)
def test_a_run_that_is_under_way(tmp_path: Path, leslie: Path, ages: tuple[int, ...], busy: str) -> None:
    for age in ages:
        events = leslie / "runtime" / f"obj-1-{age}" / "events.ndjson"
        events.parent.mkdir(parents=True)
        events.write_text("")
        os.utime(events, ns=(NOW, NOW - age * 10**9))
    (leslie / "runtime").mkdir(exist_ok=True)
    (leslie / "runtime" / "stray").write_text("")
    found = read_leslie(str(tmp_path), NOW)
    assert found.busy.startswith(busy)
    assert bool(found.busy) == bool(busy)


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("elsewhere/x", True),
        ("elsewhere/x/", True),
        ("elsewhere/y", False),
        ("elsewhere/../elsewhere/x", False),
        ("link/x", False),
        ("/", False),
        ("a\0b", False),
        ("", False),
    ],
)
def test_where_records_say_that_directories_are(tmp_path: Path, leslie: Path, path: str, there: bool) -> None:
    (tmp_path / "elsewhere" / "x").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    played = Leslie().play([("spawn", 0, 0, 1)])
    played.threads["thread-00000000"]["storage_path"] = path
    (leslie / RELATIONS).write_bytes(played.relations_file())
    assert read_leslie(str(tmp_path), NOW).storage == (frozenset({"elsewhere/x"}) if there else frozenset())


def test_case_22_a_leslie_with_nothing_but_settings_is_no_workspace(tmp_path: Path, leslie: Path) -> None:
    home = tmp_path / "home"
    (home / ".leslie").mkdir(parents=True)
    (home / ".leslie" / "env").write_text("KEY=value")
    assert project_at(str(home)) == str(tmp_path)
    (leslie / RELATIONS).unlink()
    with pytest.raises(LeslieError, match=r"no \.leslie/thread_relations\.json in "):
        project_at(str(home))
    (leslie / OBJECTIVES).write_text("{}")
    assert (project_at(str(home)), format_at(str(home))) == (str(tmp_path), "leslie")


def test_inside_of_a_jp_project_that_is_what_is_meant(tmp_path: Path, leslie: Path) -> None:
    assert format_at(str(tmp_path)) == "leslie"
    (tmp_path / ".jp").mkdir()
    assert format_at(str(tmp_path)) is None

"""A record that can't be read may be the one of what is to be recovered: nothing is chosen by guess."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.strace import Ended, Straced, unusable
from tests.support.projects.three_conversations import three
from tests.support.projects.world import listing, make_project, shown

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

straced = pytest.mark.skipif(bool(unusable()), reason=unusable())
LOOKS = "newfstatat,lstat,stat,statx"


@pytest.fixture
def known(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Three conversations on both sides; JP has left its link in the silo. The command runs in the project."""
    three(world)
    world.reconcile()
    (world.silo / "storage").symlink_to(world.project / ".jp")
    monkeypatch.chdir(world.project)
    return world


def refused(known: World, call: str, at: Path, *words: str | Path) -> Ended:
    """Recover while this call about this path is refused."""
    trace = Straced(known.project.parent / "strace.log", f"{call}:error=EACCES", at)
    done = trace("recover", "--yes", *words)
    assert trace.was_hit()
    assert "Traceback" not in done.output
    return done


def told_in_one_line(done: Ended, at: Path, hint: str) -> None:
    assert done.exit_code == 2, done.output
    line, way_on = done.stderr.splitlines()
    assert f"{shown(at)}: can't be read (Permission denied)" in line
    assert hint in way_on


@straced
@pytest.mark.parametrize("what", ["the states", "a state", "the stores", "a link"])
def test_a_record_that_cannot_be_read_is_named_and_nothing_is_chosen(known: World, what: str) -> None:
    before = listing(known.workspace)
    silo, state = known.silo, known.state
    shutil.rmtree(known.project / ".jp")
    call, at = {
        "the states": ("openat", state.parent),
        "a state": (LOOKS, state / "state.sqlite"),
        "the stores": ("openat", silo.parent),
        "a link": ("readlink", silo / "storage"),
    }[what]
    told_in_one_line(refused(known, call, at), at, "make it readable, or name its store with --store")
    assert not (known.project / ".jp").exists()
    if what == "a link":
        assert refused(known, call, at, "--store", silo, "--dry-run").exit_code == 0
    assert known.run("recover", "--yes").exit_code == 0
    assert listing(known.workspace) == before


def test_a_record_that_is_damaged_is_named(known: World) -> None:
    before, silo = listing(known.workspace), known.silo
    other = known.state.with_name("jp-zz9zz")
    other.mkdir()
    (other / "state.sqlite").write_text("no database, but long enough to be taken for one" * 100)
    shutil.rmtree(known.project / ".jp")
    done = known.run("recover", "--yes")
    assert done.exit_code == 2
    assert f"{shown(other)}/state.sqlite: can't be read (file is not a database)" in done.stderr
    assert known.run("recover", "--yes", "--store", silo).exit_code == 0
    assert listing(known.workspace) == before


def test_no_other_project_is_taken_where_a_record_cannot_be_read(known: World, run: Run) -> None:
    """What lies nearer may be the one that was lost; a project that is named is the one that is meant."""
    inner = known.project / "inner"
    inner.mkdir()
    other = known.state.with_name("jp-zz9zz")
    other.mkdir()
    (other / "state.sqlite").write_text("no database, but long enough to be taken for one" * 100)
    done = run("recover", "-w", inner)
    assert done.exit_code == 2
    assert f"make it readable, or name that one: --workspace {known.project}" in done.stderr
    assert run("recover", "-w", known.project).exit_code == 0
    assert run("-w", inner).exit_code == 0, "what is there is no matter of records"


@straced
@pytest.mark.parametrize("name", [".jp", ".git", ".jp/.id"])
def test_a_project_that_cannot_be_looked_at_is_not_recovered(known: World, name: str) -> None:
    at, silo = known.project / name, known.silo
    if name == ".git":
        shutil.rmtree(known.state)
        shutil.rmtree(known.project / ".jp")
        (silo / "storage").unlink()
    before = listing(known.workspace) if known.workspace.exists() else {}
    done = refused(known, LOOKS, at, "--format", "jp")
    assert done.exit_code == 2, done.output
    assert f"{shown(at)}: can't be read (Permission denied)" in done.stderr
    assert (listing(known.workspace) if known.workspace.exists() else {}) == before


@pytest.mark.parametrize("how", ["closed", "open"])
def test_the_checkout_that_was_seen_last_at_a_path_is_the_one(known: World, run: Run, how: str) -> None:
    """Another workspace was at this path before. What a run that is at work has in its log counts, too."""
    before, silo = listing(known.workspace), known.silo
    (silo / "storage").unlink()
    away = known.project.rename(known.project.with_name("away"))
    earlier = make_project(known.project, run)
    (earlier.project / ".jp" / ".id").write_text("X\naa0aa\n")
    earlier.reconcile()
    state = sqlite3.connect(earlier.state / "state.sqlite", isolation_level=None)
    state.execute("UPDATE checkout SET last_seen = 1")
    if how == "closed":
        state.close()
    shutil.rmtree(earlier.project)
    away.rename(known.project)
    shutil.rmtree(known.project / ".jp")
    assert known.run("recover", "--yes").exit_code == 0
    assert (known.project / ".jp" / ".id").read_text().endswith("\nab1cd\n")
    assert listing(known.workspace) == before
    state.close()


@straced
def test_a_store_that_may_be_of_another_workspace_is_not_taken(known: World, run: Run) -> None:
    """The two would be mixed for good."""
    other = make_project(known.project.parent / "other", run)
    (other.project / ".jp" / ".id").write_text("X\nzz9zz\n")
    at = known.silo / "storage" / ".id"
    before = listing(known.store)
    trace = Straced(known.project.parent / "strace.log", f"{LOOKS},openat:error=EACCES", at)
    done = trace("-w", other.project, "-s", known.silo, "--yes")
    assert trace.was_hit()
    assert done.exit_code == 2, done.output
    assert f"{shown(at)}: can't be read (Permission denied), so the workspace id is unknown" in done.stderr
    assert listing(known.store) == before

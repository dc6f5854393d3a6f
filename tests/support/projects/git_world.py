"""A workspace under real git, with a story that the tests go on telling."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.support.projects.world import LONG_AGO, SECOND, append, events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

PARENT, CHILD, OTHER = 17500000001, 17500000002, 17500000003
PRIVATE = 17500000009
PRIVATE_TITLE = "nobody else's business"


def place(world: World, number: int) -> Path:
    """Return the workspace directory of a conversation."""
    (found,) = (path.parent for path in world.workspace.rglob(f"{number}*/metadata.json"))
    return found


def commit(world: World, message: str, at: int | None = None) -> None:
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", message, at=at)


def check_git(world: World) -> None:
    assert git(world.project, "status", "--porcelain") == ""


def check_private(world: World) -> None:
    """What is in the store alone is nowhere in the checkout, and git has never seen it."""
    assert not list(world.project.rglob(f"{PRIVATE}*"))
    for path in world.workspace.rglob("*.json"):
        assert PRIVATE_TITLE.encode() not in path.read_bytes()


def git(directory: Path, *args: str, check: bool = True, errors: bool = False, at: int | None = None) -> str:
    """Run git in a checkout; its standard output, or that of its errors. ``at``: when it commits (s since 1970)."""
    dates = {} if at is None else dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{at} +0000")
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false", "-c", "maintenance.auto=false", *args],
        cwd=directory,
        env={**os.environ, **dates},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stderr + done.stdout
    return done.stderr if errors else done.stdout


def tell(world: World) -> World:
    """Two branches: a parent with a child, and another one; on `feature` parent and child have gone on.

    The last run was on `feature`.
    """
    top = write_conversation(world.workspace / f"{PARENT}-parent", "Parent", events(4))
    write_conversation(top / "conversations" / f"{CHILD}-child", "Child", events(4, "c"), parent=PARENT)
    write_conversation(world.workspace / f"{OTHER}-other", "Other", events(4, "o"))
    git(world.project, "init", "-q", ".")
    commit(world, "first version")
    world.reconcile()
    write_conversation(world.store / f"{PRIVATE}-private", PRIVATE_TITLE, events(3, "p"))
    world.reconcile()
    check_git(world)
    git(world.project, "switch", "-qc", "feature")
    append(place(world, PARENT), 3, "x", LONG_AGO + 50 * SECOND)
    append(place(world, CHILD), 2, "y", LONG_AGO + 60 * SECOND)
    commit(world, "second version")
    world.reconcile()
    check_git(world)
    return world

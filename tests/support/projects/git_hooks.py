"""git's hooks in a repository with conversations: installed, called by real git, and compared."""

from __future__ import annotations

import json
import random
import subprocess
from typing import TYPE_CHECKING

from tests.support.planted import KINDS
from tests.support.projects.git_world import git
from tests.support.projects.world import LONG_AGO, World, events, files, write_json

if TYPE_CHECKING:
    from pathlib import Path


def hooks(world: World, *args: str, code: int = 0) -> str:
    """Run `reconcile hooks` in the project; what it prints."""
    found = world.run("--workspace", world.project, "hooks", *args)
    assert found.exit_code == code, found.output
    return str(found.output)


def tried(world: World, *args: str) -> tuple[int, str]:
    """Run git; its exit code and what it prints about errors."""
    done = subprocess.run(["git", *args], cwd=world.project, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and mode of each file of a repository that reconcile or a user writes."""
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mode)
        for path in files(directory)
        if ".git/objects" not in str(path)
    }


def settle(world: World) -> None:
    """Wait until no run in the background holds the lock."""
    world.reconcile()


def refused(world: World, *words: str) -> None:
    """Demand that a commit is refused with these words, and that git would make it without the hook."""
    git(world.project, "add", "-A")
    before = git(world.project, "rev-parse", "HEAD")
    code, said = tried(world, "commit", "-qm", "not to be made")
    assert code == 1, said
    for each in words:
        assert each in said
    assert git(world.project, "rev-parse", "HEAD") == before


def with_secret(path: Path) -> str:
    """Add an event with a planted secret to a file, and return the secret."""
    secret = next(iter(KINDS.values()))(random.Random(1))
    write_json(path, [*json.loads(path.read_bytes()), events(1, "g")[0] | {"content": f"key: {secret}"}], LONG_AGO)
    return secret

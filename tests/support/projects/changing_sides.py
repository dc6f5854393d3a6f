"""A store and a workspace that passes are made over, and what changes in them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.adapters.locate import locate
from reconcile.engine.engine import Engine
from reconcile.engine.session import Session
from reconcile.model.policy import Policy
from tests.support.projects.world import ID_FILE, events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Changes, Pass

FIRST = 17_500_000_000
LATER = 1_700_000_000 * 10**9
POLICY = Policy()


@dataclass(slots=True)
class Watched:
    """A store and a workspace, known to an engine."""

    store: Path
    workspace: Path
    roots: Roots
    engine: Engine

    @property
    def at(self) -> Path:
        """A conversation that lies below another one."""
        return self.workspace / f"{FIRST}-it" / "conversations" / f"{FIRST + 1}-it"


def watched(root: Path, count: int) -> Watched:
    """Make a workspace in which the first five of every ten conversations are one and its children."""
    store, project = root / "silo" / "conversations", root / "project"
    workspace = project / ".jp" / "conversations"
    for path in (store, workspace):
        path.mkdir(parents=True)
    (project / ".jp" / ".id").write_text(ID_FILE)
    for number in range(count):
        parent = FIRST + number - number % 10 if 0 < number % 10 < 5 else None
        write_conversation(workspace / f"{FIRST + number}-it", "It", events(2), parent=parent)
    roots = locate("jp", str(project), str(root / "silo"), str(root), os.environ, sys.platform)
    engine = Engine(Session(roots, str(root / "state")))
    engine.apply(planned(engine, POLICY), "watch")
    return Watched(store, workspace, roots, engine)


def planned(
    engine: Engine, policy: Policy, changes: Changes | None = None, moving: frozenset[str] = frozenset()
) -> Pass:
    """Look again at some directories, or at everything, and plan."""
    engine.refresh(changes)
    return engine.plan(policy, moving=moving)

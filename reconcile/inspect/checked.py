"""The surroundings of a check by `doctor`, for a bug report: versions, places and counts, without titles or ids."""

from __future__ import annotations

import os
import platform
import sqlite3
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.config import config_path
from reconcile.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.engine.session import Session


class Machine(Struct, frozen=True):
    """The versions and the settings of this machine, which need no project."""

    version: str
    python: str
    system: str
    sqlite: str
    config: str
    config_exists: bool


class Checked(Struct, frozen=True):
    """The surroundings of a check. Paths are absolute; counts are None where they are not known.

    ``locked`` counts the conversations whose lock another process holds. ``runs`` and ``checkouts`` are those in the
    state directory ``state``.
    """

    version: str
    python: str
    system: str
    sqlite: str
    format: str
    layout: str | None
    workspace: str
    store: str
    state: str
    config: str
    config_exists: bool
    in_workspace: int | None
    in_store: int | None
    locked: int
    runs: int
    checkouts: int


def machine_of(environ: Mapping[str, str]) -> Machine:
    """Return the versions of the programs, and the place of the settings."""
    config = config_path(environ)
    return Machine(
        version=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        sqlite=sqlite3.sqlite_version,
        config=config,
        config_exists=os.path.exists(config),
    )


def checked(
    session: Session, layout: str | None, counts: tuple[int | None, ...], environ: Mapping[str, str]
) -> Checked:
    """Return what a check of this session looks at; ``counts`` are the workspace's and the store's."""
    roots, state, machine = session.roots, session.state, machine_of(environ)
    return Checked(
        version=machine.version,
        python=machine.python,
        system=machine.system,
        sqlite=machine.sqlite,
        format=roots.format,
        layout=layout if roots.inner else None,
        workspace=roots.workspace,
        store=roots.store,
        state=session.directory,
        config=machine.config,
        config_exists=machine.config_exists,
        in_workspace=counts[0],
        in_store=counts[1],
        locked=len(session.busy()),
        runs=len(state.journal.runs()),
        checkouts=len({(checkout.project, session.state_of(checkout)) for checkout in state.checkouts()}),
    )

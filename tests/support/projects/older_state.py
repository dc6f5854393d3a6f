"""The state of an older version, with both sides: makes an archive of them, and unpacks one for today's version.

``python -m tests.support.projects.older_state RECONCILE ARCHIVE`` makes an archive with that version's command.
It works in /srv/demo, which must not exist, because a state names the paths of its sides.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.fs.paths import identity_of
from tests.support.projects.world import (
    DATABASE,
    ID_FILE,
    LONG_AGO,
    SECOND,
    World,
    append,
    events,
    files,
    set_key,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Run

PLACE = Path("/srv/demo")
PLAN = "plan.json"
TIMES = "times.json"
"""The time of every file in ns: an archive rounds them."""
IN_SYNC, CHILD, LOCAL, REMOVED, ARCHIVED, BEHIND, FORKED, UNDONE, NEW = range(17500000001, 17500000010)
TITLES = {
    IN_SYNC: "In sync",
    CHILD: "Its child",
    LOCAL: "Private",
    REMOVED: "Removed here",
    ARCHIVED: "Archived",
    BEHIND: "Behind",
    FORKED: "Continued twice",
    UNDONE: "Undone",
}


def name_of(number: int) -> str:
    """Return the name of a conversation's directory."""
    return f"{number}-{TITLES[number].lower().replace(' ', '-')}"


def make(reconcile: str, archive: Path) -> None:
    """Have an older command work in `PLACE`, and keep all of it in an archive."""
    project, store = PLACE / "project", PLACE / "data" / "workspace" / "project-ab1cd" / "conversations"
    workspace = project / ".jp" / "conversations"
    surroundings = {
        "HOME": str(PLACE / "home"),
        "JP_USER_DATA_DIR": str(PLACE / "data"),
        "XDG_DATA_HOME": str(PLACE / "share"),
        "XDG_CONFIG_HOME": str(PLACE / "config"),
        "TZ": "UTC",
    }

    def run(*args: str | Path, codes: tuple[int, ...] = (0,)) -> str:
        result = subprocess.run(
            [reconcile, *map(str, args)], cwd=project, env=surroundings, capture_output=True, text=True, check=False
        )
        assert result.returncode in codes, f"{args}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout

    PLACE.mkdir()
    try:
        workspace.mkdir(parents=True)
        store.mkdir(parents=True)
        (project / ".jp" / ".id").write_text(ID_FILE)
        for number, title in TITLES.items():
            parent = IN_SYNC if number == CHILD else None
            write_conversation(workspace / name_of(number), title, events(3), parent=parent)
        _work(workspace, store, run)
        (PLACE / PLAN).write_text(run("--dry-run", "--json", codes=(0, 4)))
        (PLACE / TIMES).write_text(
            json.dumps({str(path.relative_to(PLACE)): path.stat().st_mtime_ns for path in files(PLACE)})
        )
        with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT) as kept:
            kept.add(PLACE, ".", filter=_without_owner)
    finally:
        shutil.rmtree(PLACE)


def _work(workspace: Path, store: Path, run: Callable[..., str]) -> None:
    """Bring every conversation of `TITLES` where its name says, run by run."""
    run()
    run("local", str(LOCAL))
    shutil.rmtree(workspace / name_of(REMOVED))
    (store / ".archive").mkdir()
    (store / name_of(ARCHIVED)).rename(store / ".archive" / name_of(ARCHIVED))
    run()
    before = (workspace / name_of(BEHIND) / "events.json").read_bytes()
    append(workspace / name_of(BEHIND), 2, "b", LONG_AGO + 60 * SECOND)
    append(workspace / name_of(FORKED), 1, "b", LONG_AGO + 60 * SECOND)
    append(store / name_of(FORKED), 1, "c", LONG_AGO + 90 * SECOND)
    run()
    older = workspace / name_of(BEHIND) / "events.json"
    older.write_bytes(before)
    os.utime(older, ns=(LONG_AGO + 120 * SECOND, LONG_AGO + 120 * SECOND))
    run(codes=(0, 4))
    set_key(workspace / name_of(UNDONE), "title", "Another title", LONG_AGO + 180 * SECOND)
    run(codes=(0, 4))
    run("undo", "--yes", codes=(0, 4))
    append(workspace / name_of(IN_SYNC), 1, "b", LONG_AGO + 240 * SECOND)
    write_conversation(workspace / f"{NEW}-new", "New", events(2), mtime_ns=LONG_AGO + 240 * SECOND)


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def unpacked(archive: Path, root: Path, run: Run) -> World:
    """Unpack an archive below ``root``, and have its state take the sides there for the checkout and store it knows.

    The state knows them by path, device and inode; all else is as the older version has left it, also its caches.
    """
    with tarfile.open(archive) as kept:
        kept.extractall(root, filter="data")
    for path, time_ns in json.loads((root / TIMES).read_text()).items():
        os.utime(root / path, ns=(time_ns, time_ns))
    world = World(root / "project", run, root / "data")
    (database,) = root.glob(f"share/reconcile/*/{DATABASE}")
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        ((known, store),) = connection.execute("SELECT identity, store_identity FROM checkout").fetchall()
        found = identity_of(str(world.project / ".jp"))
        change = "UPDATE checkout SET project = ?, identity = ?, store_identity = ?"
        connection.execute(change, (str(world.project), found, identity_of(str(world.store))))
    assert store != known
    for cache in database.parent.glob(f"*-{known.replace(':', '-')}"):
        cache.rename(cache.with_name(cache.name.replace(known.replace(":", "-"), found.replace(":", "-"))))
    return world


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))

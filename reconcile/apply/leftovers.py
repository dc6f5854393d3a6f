"""What a killed run has left behind: its own staging directories, and nobody else's."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

from reconcile.core.model import CHILDREN, WHOLE
from reconcile.disk.hashing import digest
from reconcile.disk.versions import Version, VersionKind
from reconcile.planjson import place_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.core.model import Place, Side
    from reconcile.disk.changes import Root
    from reconcile.disk.journal import Step
    from reconcile.disk.vault import Vault, VaultObject


def clean_leftovers(run: str, roots: Mapping[Side, Root], vault: Vault) -> list[Version]:
    """Remove a run's staging directories; every file in them goes into the vault first.

    What lies there was staged and has a source, was on its way out and is in the vault already, or is what somebody
    wrote in the wrong moment; keeping it once more costs little and needs no trust in how far the run came. A file
    that changes even now stays. Raises `OSError`.
    """
    versions: list[Version] = []
    name = f".reconcile-{run}"
    for side, root in roots.items():
        if not root.exists(name):
            continue
        entries = [(name, root.status(name)), *root.walk(name)]
        for path, status in entries:
            if stat.S_ISREG(status.st_mode):
                fd = root.open_file(path)
                try:
                    kept = vault.put_file(fd)
                finally:
                    os.close(fd)
            elif stat.S_ISLNK(status.st_mode):
                kept = vault.put_bytes(root.read_link(path))
            else:
                continue
            versions.append(_interrupted(run, side, path, status, kept))
        vault.flush()
        root.remove_walked(entries)
    return versions


def _interrupted(run: str, side: Side, path: str, status: os.stat_result, kept: VaultObject) -> Version:
    return Version(
        digest=kept.digest,
        xxh3=kept.xxh3,
        size=kept.size,
        conversation="",
        unit="",
        file=path.rpartition("/")[2],
        side=side,
        path=path,
        mtime_ns=status.st_mtime_ns,
        run=run,
        why="interrupted",
        kind=VersionKind.LINK if stat.S_ISLNK(status.st_mode) else VersionKind.FILE,
    )


def remove_emptied(records: Iterable[str], roots: Mapping[Side, Root]) -> None:
    """Remove the `conversations` directories that a run's moves and removals left empty (edge case 93).

    ``records`` are the run's actions as JSON.
    """
    for record in records:
        action = json.loads(record)
        left = place_from_json(action["source"] or action["target"])
        above = left.path.rpartition("/")[0]
        if above.rpartition("/")[2] == CHILDREN and left.side in roots:
            roots[left.side].remove_if_empty(above)


def roll_back_halves(
    steps: Iterable[Step], versions: Iterable[Version], roots: Mapping[Side, Root], vault: Vault
) -> None:
    """Put back units of several files of which a killed run replaced only some.

    A stream of which one file is new and one is old is nobody's content; the next plan would take it for an edit. The
    versions of before are in the vault, and the new ones go there now. Where any file is neither the old nor the new
    one, somebody has written since, and all of them stay. Raises `OSError`, `VaultError`.
    """
    before = {(version.side, version.path): version for version in versions}
    for step in steps:
        action = json.loads(step.record)
        wanted = {place_from_json(write["target"]): write["digest"] for write in action["writes"]}
        wanted |= {place_from_json(place): None for place in action["removes"]}
        if action["unit"] == WHOLE or len(wanted) < 2 or not wanted.keys() <= _on(roots, wanted):
            continue
        found = {place: _digest_at(roots[place.side], place.path) for place in wanted}
        old = {place: version.xxh3 if (version := before.get((place.side, place.path))) else None for place in wanted}
        new = [place for place in wanted if found[place] == wanted[place]]
        known = all(found[place] in (wanted[place], old[place]) for place in wanted)
        if not known or len(new) in (0, len(wanted)):
            continue
        for place in new:
            if found[place] is not None:
                vault.put_file(roots[place.side].absolute(place.path))
        vault.flush()
        for place in new:
            _put_back(roots[place.side], place.path, before.get((place.side, place.path)), vault)


def _on(roots: Mapping[Side, Root], places: Iterable[Place]) -> set[Place]:
    return {place for place in places if place.side in roots}


def _digest_at(root: Root, path: str) -> str | None:
    try:
        return digest(root.read_file(path))
    except FileNotFoundError:
        return None


def _put_back(root: Root, path: str, version: Version | None, vault: Vault) -> None:
    """Give a name its old content and time, or take it away where it had none."""
    if version is None:
        root.unlink(path)
        return
    temporary = f"{path.rpartition('/')[0]}/.reconcile-back"
    if root.exists(temporary):
        root.unlink(temporary)
    root.create_file(temporary, vault.read(version.digest), version.mtime_ns)
    root.rename(temporary, path)

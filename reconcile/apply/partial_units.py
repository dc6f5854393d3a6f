"""A unit of several files of which a killed run replaced only some: put back as it was."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from reconcile.fs.hashing import chunks_of
from reconcile.model.snapshot import WHOLE
from reconcile.serialization.plan_json import place_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.fs.durability import Durability
    from reconcile.fs.mutations import Root
    from reconcile.model.snapshot import Digest, Place, Side
    from reconcile.state.journal import Step
    from reconcile.state.vault import Vault, Version


def wanted_by(step: Step) -> dict[Place, Digest | None]:
    """Return what a step was to leave at each file that it changes; None is a file that it takes away."""
    action = json.loads(step.record)
    wanted = {place_from_json(write["target"]): write["digest"] for write in action["writes"]}
    return wanted | {place_from_json(place): None for place in action["removes"]}


def found_at(places: Iterable[Place], roots: Mapping[Side, Root]) -> dict[Place, Digest | None]:
    """Return the digest of what is at each of these places, None where nothing is. Raises `OSError`."""
    return {place: _digest_at(roots[place.side], place.path) for place in places}


def roll_back_halves(
    steps: Iterable[Step],
    versions: Iterable[Version],
    roots: Mapping[Side, Root],
    vault: Vault,
    durability: Durability,
    staging: str,
) -> None:
    """Put back units of several files of which a killed run replaced only some.

    A stream of which one file is new and one is old is nobody's content; the next plan would take it for an edit. The
    versions of before are in the vault, and the new ones go there now. Where any file is neither the old nor the new
    one, somebody has written since, and all of them stay. ``staging`` is the run's own staging directory, which must
    not exist. Raises `OSError`, `VaultError`.
    """
    before = {(version.side, version.path): version for version in versions}
    for step in steps:
        wanted = wanted_by(step)
        if json.loads(step.record)["unit"] == WHOLE or len(wanted) < 2 or any(p.side not in roots for p in wanted):
            continue
        found = found_at(wanted, roots)
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
            _put_back(roots[place.side], place.path, before.get((place.side, place.path)), vault, durability, staging)


def _digest_at(root: Root, path: str) -> Digest | None:
    try:
        return root.digest(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _put_back(
    root: Root, path: str, version: Version | None, vault: Vault, durability: Durability, staging: str
) -> None:
    """Give a name its old content and time, or take it away where it had none."""
    above = os.path.dirname(root.absolute(path))
    if version is None:
        root.unlink(path)
    else:
        root.make_directories(staging)
        with vault.open(version.digest) as kept:
            root.create_file(f"{staging}/back", chunks_of(kept.fileno()), version.mtime_ns)
        durability.fsync_file(root.absolute(f"{staging}/back"))
        root.rename(f"{staging}/back", path)
        root.remove_directory(staging)
    durability.fsync_directory(above)

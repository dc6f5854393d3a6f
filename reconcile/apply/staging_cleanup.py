"""Names and removal of staging directories. Directories of other states are never touched."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from typing import TYPE_CHECKING

from reconcile.fs.files import mtime_of
from reconcile.fs.hashing import digest_file
from reconcile.serialization.plan_json import place_from_json
from reconcile.state.schema import LIBRARY
from reconcile.state.vault import Version, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reconcile.fs.mutations import Root
    from reconcile.model.snapshot import Digest, Place, Side
    from reconcile.state.journal import Step
    from reconcile.state.vault import Vault, VaultObject

STAGING = ".reconcile-"
"""Every staging directory's name begins so."""
_CHUNK = 1 << 20


def staging_name(identity: str, run: str, command: str = "") -> str:
    """Return the name of a run's staging directory, the same on each side.

    It contains the ``identity`` of the state, because two states of one store may have runs with the same id. Those of
    the library are in a common directory that stays: otherwise each event would change the ``conversations/``
    directory.
    """
    return f"{library_staging_name(identity)}/{run}" if command == LIBRARY else f"{STAGING}{identity}-{run}"


def library_staging_name(identity: str) -> str:
    """Return the name of the common directory of the library's staging directories."""
    return f"{STAGING}{identity}"


def remove_library_staging(identity: str, roots: Iterable[Root], unused_s: float = 0) -> None:
    """Remove the common directory of the library's staging directories, if it is empty.

    A process that needs it makes it again. ``unused_s``: it must be unchanged for so many seconds.
    """
    name = library_staging_name(identity)
    for root in roots:
        with contextlib.suppress(OSError):
            if time.time() - root.status(name).st_mtime >= unused_s:
                root.remove_directory(name)


def is_staged(root: Root, name: str) -> bool:
    """Tell whether a staging directory exists; a file or a link of that name is none."""
    try:
        return stat.S_ISDIR(root.status(name).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def clean_staging(
    name: str, run: str, roots: Mapping[Side, Root], steps: Callable[[], Sequence[Step]], vault: Vault
) -> list[Version]:
    """Remove a run's staging directory from these sides; return the versions that were saved to the vault for that.

    A file in it was staged from a source, or was removed and is in the vault, or was written by another program at the
    wrong moment. So a file without an equal source is saved to the vault first, and one that still changes stays.
    ``steps`` is called only if there are files. Raises `OSError`.
    """
    versions: list[Version] = []
    for side, root in roots.items():
        if not is_staged(root, name):
            continue
        entries = [(name, root.status(name)), *root.walk(name)]
        files = [(path, status) for path, status in entries if not stat.S_ISDIR(status.st_mode)]
        sources = _sources(steps()) if files else {}
        for path, status in files:
            kept = _save(root, path, status, sources, roots, vault)
            if kept is not None:
                versions.append(_version(kept, side, path, status, run))
        vault.flush()
        root.remove_entries(entries)
    return versions


def remove_empty_parents(steps: Iterable[Step], roots: Mapping[Side, Root]) -> None:
    """Remove the directories that the moves and removals of a run have left empty.

    See docs/design/formats/jp.md#edge-case-93.
    """
    for step in steps:
        action = json.loads(step.record)
        left = place_from_json(action["source"] or action["target"])
        if left.side in roots:
            roots[left.side].remove_empty_parents(left.path)
            for gone in map(place_from_json, action["removes"]):
                roots[gone.side].remove_empty_parents(gone.path, step.unit.count("/"))


def _sources(steps: Iterable[Step]) -> dict[Digest, set[Place]]:
    """Return the source and the target of each content that a run was to write, by digest."""
    places_of: dict[Digest, set[Place]] = {}
    for step in steps:
        for write in json.loads(step.record)["writes"]:
            places = {place_from_json(text) for text in (write["source"], write["target"]) if text}
            places_of.setdefault(write["digest"], set()).update(places)
    return places_of


def _save(
    root: Root,
    path: str,
    status: os.stat_result,
    sources: Mapping[Digest, Iterable[Place]],
    roots: Mapping[Side, Root],
    vault: Vault,
) -> VaultObject | None:
    """Save a staged file or link to the vault, unless a source or a target has the same content."""
    if stat.S_ISLNK(status.st_mode):
        return vault.put_bytes(root.read_link(path))
    if not stat.S_ISREG(status.st_mode):
        return None
    fd = root.open_file(path)
    try:
        if any(_holds(roots, place, fd) for place in sources.get(digest_file(fd), ())):
            return None
        return vault.put_file(fd)
    finally:
        os.close(fd)


def _holds(roots: Mapping[Side, Root], place: Place, staged: int) -> bool:
    """Tell whether the file at a place has the same bytes."""
    if place.side not in roots:
        return False
    try:
        fd = roots[place.side].open_file(place.path)
    except OSError:
        return False
    try:
        return _same(fd, staged)
    except OSError:
        return False
    finally:
        os.close(fd)


def _same(one: int, other: int) -> bool:
    for fd in (one, other):
        os.lseek(fd, 0, os.SEEK_SET)
    while (chunk := os.read(one, _CHUNK)) == os.read(other, _CHUNK):
        if not chunk:
            return True
    return False


def _version(kept: VaultObject, side: Side, path: str, status: os.stat_result, run: str) -> Version:
    return Version(
        digest=kept.digest,
        xxh3=kept.xxh3,
        size=kept.size,
        conversation="",
        unit="",
        file=path.rpartition("/")[2],
        side=side,
        path=path,
        mtime_ns=mtime_of(status),
        run=run,
        why="interrupted",
        kind=VersionKind.LINK if stat.S_ISLNK(status.st_mode) else VersionKind.FILE,
    )

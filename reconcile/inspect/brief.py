"""`reconcile brief`: summarises a workspace of a Claudesidian vault from its files, which are never written.

The program's own answer is in docs/design/formats/claudesidian.md#loadworkspace.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from reconcile.adapters.claudesidian.files import read_surroundings, read_vault
from reconcile.adapters.locate import MARKS, place_of
from reconcile.errors import ReconcileError
from reconcile.formats.claudesidian.briefing import Version, answer_unknown, brief, load_workspace, version_of
from reconcile.formats.claudesidian.checks.events import is_completed, read_nexus
from reconcile.formats.claudesidian.record_files import Kind, listed_id
from reconcile.formats.claudesidian.replay import replay
from reconcile.formats.claudesidian.vault import SplitFiles, read_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.formats.claudesidian.vault import Records, VaultFiles


class VaultError(ReconcileError):
    """The vault, or the workspace in it, wasn't found."""

    exit_code = 2


def find_vault(start: str) -> str:
    """Return the vault that a directory is in.

    Raises:
        VaultError: there is none, or no such directory.
    """
    if not os.path.isdir(start):
        raise VaultError(f"--workspace: {start} is not a directory", "check the spelling")
    vault = place_of("claudesidian", os.path.abspath(start))
    if vault is None:
        raise VaultError(
            f"Claudesidian has no vault of notes in {start} or above it (no {', '.join(MARKS['claudesidian'])})",
            "change to the vault, or name it with --workspace",
        )
    return vault


def brief_of(path: str, wanted: str, limit: int) -> dict[str, Any]:
    """Return the briefing of the workspace with that id or name, from the storage form that this vault uses.

    Raises:
        VaultError: no workspace, or more than one, is named so.
    """
    files = read_vault(path, [Kind.WORKSPACE])
    values = _workspaces(files)
    named = [id_ for id_, value in values.items() if value.get("name") == wanted]
    if wanted not in values and len(named) != 1:
        raise _unknown(files, path, wanted, values, named)
    return brief(values[wanted if wanted in values else named[0]], read_surroundings(path), limit)


def compat_of(path: str, wanted: str, limit: int) -> dict[str, Any]:
    """Return the answer of the program's versions that split files by record, also to an unknown id."""
    values = {id_: item.value for id_, item in _split(read_vault(path, [Kind.WORKSPACE])).current.items()}
    version = version_of(values.values())
    workspace = values.get(wanted)
    if workspace is None and version is Version.DECEMBER:
        workspace = next((value for value in values.values() if value.get("name") == wanted), None)
    if workspace is None:
        return answer_unknown(version, wanted)
    return load_workspace(workspace, read_surroundings(path), limit)


def _workspaces(files: VaultFiles) -> dict[str, Mapping[str, Any]]:
    if files.nexus is not None and (is_completed(files.nexus.status) or Kind.WORKSPACE not in files.split):
        cache = replay(read_nexus(files.nexus))
        return {id_: cache.workspace(id_) for id_ in cache.workspaces}
    return {id_: item.value for id_, item in _split(files).current.items()}


def _split(files: VaultFiles) -> Records:
    return read_records(Kind.WORKSPACE, files.split.get(Kind.WORKSPACE, SplitFiles({})))


def _unknown(
    files: VaultFiles, path: str, wanted: str, values: Mapping[str, Mapping[str, Any]], named: list[str]
) -> VaultError:
    if named:
        return VaultError(
            f"{wanted!r} is ambiguous: {len(named)} workspaces have this name", f"use an id: {', '.join(named)}"
        )
    for fault in _split(files).faults:
        if listed_id(fault.file) == wanted:
            message = f"{Kind.WORKSPACE.directory}/{fault.file}: {fault.words}"
            return VaultError(message, "see how to fix it: reconcile doctor")
    known = ", ".join(f"{id_} ({value.get('name')})" for id_, value in values.items()) or "none"
    return VaultError(f"no workspace {wanted!r} in {path}", f"the workspaces here: {known}")

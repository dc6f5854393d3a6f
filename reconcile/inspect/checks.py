"""`doctor` for the formats with derived data: their checks, and the whole versions of damaged records.

A whole version is a better repair than one salvaged from the damaged file.
"""

from __future__ import annotations

import os
import shlex
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.adapters.locate import FOLDERS
from reconcile.fs.dirfd import Directory
from reconcile.fs.files import read_files
from reconcile.model.snapshot import METADATA, Fault, Metadata
from reconcile.state.vault import VaultError, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reconcile.engine.session import Session

    Checker: TypeAlias = Callable[[str, int], tuple["CheckFinding", ...]]


class CheckFinding(Struct, frozen=True):
    """A finding of any format, in words. ``severity`` is error, warning or note; a note needs no repair.

    ``repairable``: any run repairs it; ``on_request``: only ``doctor --mend`` with its ``id`` does.
    """

    id: str
    kind: str
    severity: str
    place: str
    found: str
    matters: str
    mend: tuple[str, ...]
    repairable: bool
    on_request: bool


def _claudesidian(start: str, now_ns: int) -> tuple[CheckFinding, ...]:
    from reconcile.adapters.claudesidian.files import read_vault
    from reconcile.formats.claudesidian.checks.examine import examine, id_of
    from reconcile.inspect.brief import find_vault

    return tuple(
        CheckFinding(
            id_of(finding),
            finding.code,
            finding.severity.value,
            finding.place,
            finding.found,
            finding.matters,
            (finding.mend,),
            finding.repairable,
            finding.on_request,
        )
        for finding in examine(read_vault(find_vault(start)), now_ns // 1_000_000)
    )


def _leslie(start: str, now_ns: int) -> tuple[CheckFinding, ...]:
    from reconcile.adapters.leslie.files import project_at, read_leslie
    from reconcile.formats.leslie.checks.examine import examine

    return tuple(
        CheckFinding(
            finding.id,
            finding.kind.number or finding.kind.value,
            finding.severity.value,
            finding.place,
            finding.found,
            finding.kind.matters,
            (finding.next,) if finding.next else (),
            finding.repair is not None and not finding.repair.on_request,
            finding.repair is not None and bool(finding.repair.on_request),
        )
        for finding in examine(read_leslie(project_at(start), now_ns))
    )


CHECKERS: Mapping[str, Checker] = {"claudesidian": _claudesidian, "leslie": _leslie}
"""By format: a function from a directory and a time (ns) to the findings of the workspace there. It writes nothing."""


def is_damaged(session: Session, path: str) -> bool:
    """Tell whether the workspace has a file at this path that isn't a valid record."""
    content = _read(session.roots.workspace_conversations, path)
    return content is not None and not _is_whole(session, path, content)


def repair_sources(session: Session, path: str) -> tuple[str, ...]:
    """Return the commands that take the best whole version of a record.

    That is the store's, another checkout's, or the newest in the vault. It writes nothing.
    """
    return next(_sources(session, path), ())


def _sources(session: Session, path: str) -> Iterator[tuple[str, ...]]:
    record = shlex.quote(path)
    if _is_whole(session, path, _read(session.roots.store_conversations, path)):
        yield "the durable copy is whole", f"reconcile resolve {record} --take store"
    for checkout in sorted(session.state.checkouts(), key=lambda checkout: -checkout.last_seen):
        if checkout.project == session.project:
            continue
        root = os.path.join(checkout.project, FOLDERS[session.format.name])
        if _is_whole(session, path, _read(root, path)):
            words = f"{os.path.join(root, path)} is whole: take it into the store, then from there"
            take = f"reconcile resolve {record} --take"
            yield words, f"{take} workspace --workspace {shlex.quote(checkout.project)}", f"{take} store"
    for version in reversed(session.state.versions.of_conversation(path)):
        kept = version.unit == METADATA and version.kind is VersionKind.FILE
        if kept and _is_whole(session, path, _kept(session, version.digest)):
            yield "the vault has it whole, as it was", f"reconcile restore {version.digest[:16]}"


def _is_whole(session: Session, path: str, content: bytes | None) -> bool:
    places = session.format.places
    return content is not None and places is not None and isinstance(places.read_record(path, content), Metadata)


def _kept(session: Session, digest: str) -> bytes | None:
    try:
        return session.vault.read(digest)
    except VaultError:
        return None


def _read(root: str, path: str) -> bytes | None:
    """Return the bytes of a regular file, without following links; None: there is none that can be read."""
    above, _, name = path.rpartition("/")
    try:
        with Directory.open_root(root) as top, top.below(above) if above else nullcontext(top) as directory:
            contents = read_files(directory, [name])
    except OSError:
        return None
    return None if isinstance(contents, Fault) else contents[name][0]

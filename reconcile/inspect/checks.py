"""`doctor` for the formats with derived data: findings by the format's name, and whole versions of damaged records.

A repair should be made of a whole version, before anything is salvaged.
"""

from __future__ import annotations

import os
import shlex
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.adapters.fixed_roots import FOLDERS
from reconcile.fs.dirfd import Directory
from reconcile.fs.files import read_files
from reconcile.model.snapshot import METADATA, Fault, Metadata
from reconcile.state.vault import VaultError, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reconcile.engine.session import Session

    Checker: TypeAlias = Callable[[str, int], tuple["CheckFinding", ...]]


class CheckFinding(Struct, frozen=True):
    """A finding of any format, in words. ``severity`` is error, warning or note; notes alone are no trouble.

    ``repairable``: any run mends it; ``on_request``: only where somebody asks for it, by its ``id``.
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
            id_of(each),
            each.code,
            each.severity.value,
            each.place,
            each.found,
            each.matters,
            (each.mend,),
            each.repairable,
            each.on_request,
        )
        for each in examine(read_vault(find_vault(start)), now_ns // 1_000_000)
    )


def _leslie(start: str, now_ns: int) -> tuple[CheckFinding, ...]:
    from reconcile.adapters.leslie.files import project_at, read_leslie
    from reconcile.formats.leslie.checks.examine import examine

    return tuple(
        CheckFinding(
            each.id,
            each.kind.number or each.kind.value,
            each.severity.value,
            each.place,
            each.found,
            each.kind.matters,
            (each.next,) if each.next else (),
            each.repair is not None and not each.repair.on_request,
            each.repair is not None and bool(each.repair.on_request),
        )
        for each in examine(read_leslie(project_at(start), now_ns))
    )


CHECKERS: Mapping[str, Checker] = {"claudesidian": _claudesidian, "leslie": _leslie}
"""What is wrong at or above a directory, at a time; nothing is written."""


def is_damaged(session: Session, path: str) -> bool:
    """Tell whether the workspace has a file at this path that can't be read as the record that it should be."""
    content = _read(session.roots.workspace_conversations, path)
    return content is not None and not _is_whole(session, path, content)


def repair_sources(session: Session, path: str) -> tuple[str, ...]:
    """Return the commands for the best whole version of a record: the store's, another checkout's, the vault's newest.

    Nothing is written; a version that can't be read is none.
    """
    return next(_sources(session, path), ())


def _sources(session: Session, path: str) -> Iterator[tuple[str, ...]]:
    named = shlex.quote(path)
    if _is_whole(session, path, _read(session.roots.store_conversations, path)):
        yield "the durable copy is whole", f"reconcile resolve {named} --take store"
    for checkout in sorted(session.state.checkouts(), key=lambda each: -each.last_seen):
        if checkout.project == session.project:
            continue
        root = os.path.join(checkout.project, FOLDERS[session.format.name])
        if _is_whole(session, path, _read(root, path)):
            words = f"{os.path.join(root, path)} is whole: take it into the store, then from there"
            take = f"reconcile resolve {named} --take"
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
    """The bytes of a regular file; no link is followed."""
    above, _, name = path.rpartition("/")
    try:
        with Directory.open_root(root) as top, top.below(above) if above else nullcontext(top) as directory:
            found = read_files(directory, [name])
    except OSError:
        return None
    return None if isinstance(found, Fault) else found[name][0]

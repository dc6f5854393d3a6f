"""What the vault holds, and taking it out for good: by the user's choice alone (docs/commands.md#reconcile-vault)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.engine.version_names import NoVersionError

if TYPE_CHECKING:
    from reconcile.state.database import State
    from reconcile.state.vault import Vault, Version


class Holding(Struct, frozen=True):
    """One object: its name, its bytes, the newest time that a run needed it, and the versions that it is."""

    digest: str
    size: int
    newest_ns: int
    versions: tuple[Version, ...]


def holdings(state: State, vault: Vault) -> tuple[Holding, ...]:
    """Return every object of the vault, those that were needed longest ago first."""
    started = {run.id: run.started_ns for run in state.journal.runs()}
    versions: dict[str, list[Version]] = {}
    for version in state.versions.all():
        versions.setdefault(version.digest, []).append(version)
    found = []
    for digest, (size, stored_ns) in vault.objects().items():
        of_it = tuple(versions.get(digest, ()))
        times = [started.get(each.run or "", stored_ns) for each in of_it]
        found.append(Holding(digest, size, max(times, default=stored_ns), of_it))
    return tuple(sorted(found, key=lambda each: (each.newest_ns, each.digest)))


def older_than(found: tuple[Holding, ...], time_ns: int) -> tuple[Holding, ...]:
    """Return the objects that no run since that time has put into the vault."""
    return tuple(each for each in found if each.newest_ns < time_ns)


def named(found: tuple[Holding, ...], prefix: str) -> Holding:
    """Return the one object whose name begins so.

    Raises:
        NoVersionError: none, or several.
    """
    hits = [each for each in found if each.digest.startswith(prefix.lower())] if prefix else []
    if len(hits) == 1:
        return hits[0]
    words = f"is ambiguous: {', '.join(each.digest[:16] for each in hits[:5])}" if hits else "is no object of the vault"
    raise NoVersionError(f"{prefix!r} {words}", "`reconcile log RUN` and `reconcile vault -v` list them")


def remove(state: State, vault: Vault, objects: tuple[Holding, ...]) -> None:
    """Take objects out for good. Raises `OSError`, `StateError`."""
    for each in objects:
        vault.remove(each.digest)
        state.versions.forget(each.digest)

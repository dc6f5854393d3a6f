"""Everything that is wrong in a vault: one function of what was read of it, and of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.checks.indexes import check_index
from reconcile.formats.claudesidian.checks.records import check_invalid, check_records, check_sessions
from reconcile.formats.claudesidian.events.hybrid import check_events, read_nexus
from reconcile.formats.claudesidian.events.migration import check_migration, check_status, is_completed
from reconcile.formats.claudesidian.events.replay import replay
from reconcile.formats.claudesidian.finding import error
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.formats.claudesidian.vault import SplitFiles, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.formats.claudesidian.finding import Finding
    from reconcile.formats.claudesidian.vault import NexusFiles, Records, VaultFiles


def examine(vault: VaultFiles, now_ms: int) -> tuple[Finding, ...]:
    """All findings, by code and place; times after ``now_ms`` are a wrong clock's."""
    return examine_read(vault, read_both(vault), now_ms)


def read_both(vault: VaultFiles, known: Mapping[Kind, Records] | None = None) -> dict[Kind, Records]:
    """The records of both kinds, those of ``known`` as far as they are the same."""
    before = known or {}
    return {kind: read_records(kind, vault.split.get(kind, SplitFiles({})), before.get(kind)) for kind in Kind}


def examine_read(vault: VaultFiles, records: Mapping[Kind, Records], now_ms: int) -> tuple[Finding, ...]:
    """As `examine`, of a vault whose records are parsed already."""
    nexus = vault.nexus
    found: list[Finding] = [
        error("C2", each.file, f"{each.found}, expected {each.expected}", "put the directory itself there")
        for each in vault.faults
    ]
    if nexus is not None:
        found += _hybrid(nexus, records)
    archived = nexus is not None and is_completed(nexus.status)
    event_files = nexus.events if nexus is not None else {}
    for kind, each in records.items():
        names = event_files.get(kind, {})
        # An archive is only looked at for what it can still give back.
        found += check_invalid(each, names) if archived else _split(each, names, now_ms)
    if not archived:
        found += check_sessions(records[Kind.WORKSPACE], records[Kind.CONVERSATION])
    return tuple(sorted(found, key=lambda finding: (_number(finding.code), finding.place)))


def _split(records: Records, event_files: Mapping[str, object], now_ms: int) -> Iterator[Finding]:
    yield from check_invalid(records, event_files)
    yield from check_records(records)
    yield from check_index(records, now_ms)


def _hybrid(nexus: NexusFiles, records: Mapping[Kind, Records]) -> Iterator[Finding]:
    files = read_nexus(nexus)
    cache = replay(files)
    yield from check_status(nexus.status)
    yield from check_events(nexus, files, cache, records[Kind.WORKSPACE].current)
    yield from check_migration(records, files, completed=is_completed(nexus.status))


def _number(code: str) -> int:
    return int(code.removeprefix("C")) if code.startswith("C") else 99

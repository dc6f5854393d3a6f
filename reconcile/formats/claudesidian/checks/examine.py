"""All findings about a vault, and their repairs as values for a plan: functions of the files read, and of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.checks.events import (
    check_events,
    check_migration,
    check_status,
    is_completed,
    read_nexus,
)
from reconcile.formats.claudesidian.checks.indexes import check_index
from reconcile.formats.claudesidian.checks.records import check_invalid, check_records, check_sessions
from reconcile.formats.claudesidian.finding import error
from reconcile.formats.claudesidian.index import index_changes
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.formats.claudesidian.replay import replay
from reconcile.formats.claudesidian.vault import (
    Role,
    SplitFiles,
    by_path,
    place_of,
    read_index,
    read_records,
    with_written,
)
from reconcile.model.format import DerivedRepair

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.formats.claudesidian.finding import Finding, Repair
    from reconcile.formats.claudesidian.vault import Content, NexusFiles, Records, VaultFiles, VaultSnapshot


def examine(vault: VaultFiles, now_ms: int) -> tuple[Finding, ...]:
    """Return all findings, by code and place; times after ``now_ms`` come from a wrong clock."""
    return examine_read(vault, read_both(vault), now_ms)


def read_both(vault: VaultFiles, known: Mapping[Kind, Records] | None = None) -> dict[Kind, Records]:
    """Return the records of both kinds; those of ``known`` are used again if they are unchanged."""
    before = known or {}
    return {kind: read_records(kind, vault.split.get(kind, SplitFiles({})), before.get(kind)) for kind in Kind}


def examine_read(vault: VaultFiles, records: Mapping[Kind, Records], now_ms: int) -> tuple[Finding, ...]:
    """Examine a vault whose records are parsed already, as `examine`."""
    nexus = vault.nexus
    findings: list[Finding] = [
        error(
            "C2",
            fault.file,
            fault.words,
            "put the directory itself there",
        )
        for fault in vault.faults
    ]
    if nexus is not None:
        findings += _hybrid(nexus, records)
    archived = nexus is not None and is_completed(nexus.status)
    event_files = nexus.events if nexus is not None else {}
    for kind, kind_records in records.items():
        names = event_files.get(kind, {})
        # An archive is only checked for content that it can still restore.
        findings += check_invalid(kind_records, names) if archived else _split(kind_records, names, now_ms)
    if not archived:
        findings += check_sessions(records[Kind.WORKSPACE], records[Kind.CONVERSATION])
    return tuple(sorted(findings, key=lambda finding: (_number(finding.code), finding.place)))


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


_ROUNDS = 16
"""Each round repairs what the one before has left: one round without requests, and one for each request."""


def derived_repairs(
    vault: VaultSnapshot, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
) -> tuple[DerivedRepair, ...]:
    """Return the repairs that need no request, then those that can be requested.

    ``written`` are the writes of a plan before the repairs. There is one value for each file that changes without a
    request; its id is the path. An index is derived from the records after all repairs. Each of the others is computed
    as if it were done alone after those; values with the same id belong together. ``wanted`` are ids of requested
    repairs: they are done as if they needed no request, with all that follows from them.
    """
    start = with_written(vault.files, written)
    now, records, words = start, read_both(start), dict[str, list[str]]()
    findings = examine_read(now, records, vault.now_ms)
    for _ in range(_ROUNDS):
        contents = by_path(now)
        changes: dict[str, bytes | None] = {}
        for id_, group in _together(findings):
            first = group[0]
            repairs = [repair for repair in first.repairs if _changes(contents, repair)]
            if (first.on_request and id_ not in wanted) or any(repair.path in changes for repair in repairs):
                continue
            changes |= {repair.path: repair.content for repair in repairs}
            for repair in repairs:
                words.setdefault(repair.path, []).extend(_words(repair, group, records))
        if not changes:
            break
        now = with_written(now, changes)
        records = read_both(now, records)
        findings = examine_read(now, records, vault.now_ms)
    return (*_by_themselves(by_path(start), by_path(now), words), *_on_request(findings, by_path(now), records))


def _by_themselves(
    before: Mapping[str, Content], after: Mapping[str, Content], words: Mapping[str, Iterable[str]]
) -> Iterator[DerivedRepair]:
    for path, lines in words.items():
        old, new = _bytes(before.get(path)), _bytes(after.get(path))
        if old != new:
            yield DerivedRepair(path, path, tuple(dict.fromkeys(lines)), old, new)


def _on_request(
    findings: Iterable[Finding], contents: Mapping[str, Content], records: Mapping[Kind, Records]
) -> Iterator[DerivedRepair]:
    for id_, group in _together(findings):
        first = group[0]
        if first.on_request:
            for repair in first.repairs:
                if _changes(contents, repair):
                    lines = _words(repair, group, records)
                    old = _bytes(contents.get(repair.path))
                    yield DerivedRepair(id_, repair.path, tuple(lines), old, repair.content, asked=first.mend)


def _together(findings: Iterable[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Yield groups of findings with the same repair, each with the id by which it can be requested."""
    groups: dict[tuple[bool, tuple[Repair, ...]], list[Finding]] = {}
    for finding in findings:
        if finding.repairs:
            groups.setdefault((finding.on_request, finding.repairs), []).append(finding)
    for group in groups.values():
        yield id_of(group[0]), group


def id_of(finding: Finding) -> str:
    """Return the id of a repair: of an index in general, of other files with the code of the finding."""
    place = place_of(finding.place)
    what = "index" if finding.repairs and place is not None and place.role is Role.INDEX else finding.code
    return f"{what}:{finding.place}"


def _changes(contents: Mapping[str, Content], repair: Repair) -> bool:
    """Tell whether a repair changes something. A file that can't be read is never overwritten."""
    content = contents.get(repair.path)
    return (content is None or isinstance(content, bytes)) and content != repair.content


def _words(repair: Repair, findings: Sequence[Finding], records: Mapping[Kind, Records]) -> list[str]:
    """Return the changes of an index by record; for other files, what is done and why."""
    if repair.content is None:
        return [f"removed: {findings[0].repairs[0].path} has its content"]
    place = place_of(repair.path)
    if place is not None and place.role is Role.INDEX:
        before = records[place.kind]
        after, _ = read_index(place.kind, repair.content)
        if after is not None and (lines := index_changes(place.kind, before.index, after, before.index_problem or "")):
            return list(lines)
    return [finding.found if finding.on_request else f"{finding.found}: {finding.mend}" for finding in findings]


def _bytes(content: Content | None) -> bytes | None:
    return content if isinstance(content, bytes) else None

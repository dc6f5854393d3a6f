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
from reconcile.model.format import Mended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.formats.claudesidian.finding import Finding, Repair
    from reconcile.formats.claudesidian.vault import Content, FoundVault, NexusFiles, Records, VaultFiles


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


_ROUNDS = 16
"""Each mends what the former has left: one for what is wrong by itself, and one for each request about one file."""


def mended(found: FoundVault, written: Mapping[str, bytes | None], wanted: Collection[str] = ()) -> tuple[Mended, ...]:
    """What leads from here to where nothing is left to be done by itself, then what can be asked for.

    ``written`` is what a plan changes before. There is one value for each file that changes by itself, and its id is
    the path; an index is that of the records as they will be. Each of the others is what it would be if it were done
    alone after those; values that share an id belong together. ``wanted`` are such ids that were asked for: they are
    done as if by themselves, with what follows from them.
    """
    start = with_written(found.files, written)
    now, records, words = start, read_both(start), dict[str, list[str]]()
    findings = examine_read(now, records, found.now_ms)
    for _ in range(_ROUNDS):
        contents = by_path(now)
        changes: dict[str, bytes | None] = {}
        for id_, each in _together(findings):
            first = each[0]
            repairs = [repair for repair in first.repairs if _changes(contents, repair)]
            if (first.on_request and id_ not in wanted) or any(repair.path in changes for repair in repairs):
                continue
            changes |= {repair.path: repair.content for repair in repairs}
            for repair in repairs:
                words.setdefault(repair.path, []).extend(_words(repair, each, records))
        if not changes:
            break
        now = with_written(now, changes)
        records = read_both(now, records)
        findings = examine_read(now, records, found.now_ms)
    return (*_by_themselves(by_path(start), by_path(now), words), *_on_request(findings, by_path(now), records))


def _by_themselves(
    before: Mapping[str, Content], after: Mapping[str, Content], words: Mapping[str, Iterable[str]]
) -> Iterator[Mended]:
    for path, told in words.items():
        old, new = _bytes(before.get(path)), _bytes(after.get(path))
        if old != new:
            yield Mended(path, path, tuple(dict.fromkeys(told)), old, new)


def _on_request(
    findings: Iterable[Finding], contents: Mapping[str, Content], records: Mapping[Kind, Records]
) -> Iterator[Mended]:
    for id_, each in _together(findings):
        first = each[0]
        if first.on_request:
            for repair in first.repairs:
                if _changes(contents, repair):
                    told = _words(repair, each, records)
                    old = _bytes(contents.get(repair.path))
                    yield Mended(id_, repair.path, tuple(told), old, repair.content, asked=first.mend)


def _together(findings: Iterable[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Findings that have the same repair, under the id by which it is asked for."""
    found: dict[tuple[bool, tuple[Repair, ...]], list[Finding]] = {}
    for finding in findings:
        if finding.repairs:
            found.setdefault((finding.on_request, finding.repairs), []).append(finding)
    for each in found.values():
        yield id_of(each[0]), each


def id_of(finding: Finding) -> str:
    """By what a repair is asked for: an index is rebuilt, for whatever reason; others are called by their finding."""
    place = place_of(finding.place)
    what = "index" if finding.repairs and place is not None and place.role is Role.INDEX else finding.code
    return f"{what}:{finding.place}"


def _changes(contents: Mapping[str, Content], repair: Repair) -> bool:
    """Tell whether a repair does something. Over what can't be read nothing is written."""
    content = contents.get(repair.path)
    return (content is None or isinstance(content, bytes)) and content != repair.content


def _words(repair: Repair, findings: Sequence[Finding], records: Mapping[Kind, Records]) -> list[str]:
    """What an index gets and loses, record by record; of other files what is done and why."""
    if repair.content is None:
        return [f"goes: {findings[0].repairs[0].path} has what it holds"]
    place = place_of(repair.path)
    if place is not None and place.role is Role.INDEX:
        before = records[place.kind]
        after, _ = read_index(place.kind, repair.content)
        if after is not None and (told := index_changes(place.kind, before.index, after, before.index_problem or "")):
            return list(told)
    return [each.found if each.on_request else f"{each.found}: {each.mend}" for each in findings]


def _bytes(content: Content | None) -> bytes | None:
    return content if isinstance(content, bytes) else None

"""All findings about a ``.leslie``, and their repairs as values for a plan: pure functions of the files that were read.

See docs/design/formats/leslie.md#failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.leslie.checks.control_files import read_control
from reconcile.formats.leslie.checks.directories import lock_findings, place_findings
from reconcile.formats.leslie.checks.model import File, Kind, Make, Remove, RemoveLock, Rewrite, ThreadDirectory, after
from reconcile.formats.leslie.checks.records import objective_findings, record_findings
from reconcile.formats.leslie.document import (
    CONTROL,
    DIRECTORY,
    OBJECTIVES,
    RELATIONS,
    THREADS,
    Document,
    ObjectivesDocument,
)
from reconcile.formats.leslie.replay import replay
from reconcile.model.format import Mended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.formats.leslie.checks.model import Finding, Found, Repair, Step


def examine(found: Found, wanted: Collection[str] = ()) -> tuple[Finding, ...]:
    """Every finding, by kind. While a control file can't be read, nothing is concluded from what it might say.

    ``wanted`` are the ids of findings that somebody has asked to mend: their repairs need no question any more.
    """
    relations, objectives = read_control(found, RELATIONS), read_control(found, OBJECTIVES)
    findings = [*relations.findings, *objectives.findings, *lock_findings(found)]
    document = relations.document
    if isinstance(document, Document):
        aims = objectives.document if isinstance(objectives.document, ObjectivesDocument) else None
        replayed = replay(document)
        findings += record_findings(found, document, replayed, wanted)
        findings += place_findings(found, document, replayed, aims, wanted)
        if aims is not None or not objectives.findings:
            findings += objective_findings(document, replayed, aims)
    order = list(Kind)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.kind)))


def mend(found: Found, wanted: Collection[str] = ()) -> tuple[tuple[Repair, ...], Found]:
    """The repairs that lead from here to where nothing is left to be done by itself, and what there is then.

    ``wanted`` as for `examine`. One repair can bring another to light: a file that can be read says what it lacks.
    """
    done, _ = mend_findings(found, wanted)
    repairs = tuple(finding.repair for finding in done if finding.repair is not None)
    for repair in repairs:
        for step in repair.steps:
            found = after(found, step)
    return repairs, found


def mend_findings(found: Found, wanted: Collection[str] = ()) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """As `mend`: the findings that these repairs are of, in order, and those that are left in the end."""
    done: list[Finding] = []
    while chosen := _next(findings := examine(found, wanted), wanted):
        for finding, repair in chosen:
            done.append(finding)
            for step in repair.steps:
                found = after(found, step)
    return tuple(done), findings


def _next(findings: Iterable[Finding], wanted: Collection[str]) -> list[tuple[Finding, Repair]]:
    """The repair to be done first; or several, of which none changes what another one was made of."""
    chosen: list[tuple[Finding, Repair]] = []
    for finding in findings:
        repair = finding.repair
        if repair is None or (repair.on_request and finding.id not in wanted):
            continue
        if any(isinstance(step, Rewrite) for step in repair.steps):
            return chosen or [(finding, repair)]
        chosen.append((finding, repair))
    return chosen


OFFERED = 16
"""Repairs on request that are worked out at a time: each holds a whole control file, and there may be thousands."""


def with_written(found: Found, written: Mapping[str, bytes | None]) -> Found:
    """What there is when a plan has written these paths (None: they go), as far as findings are made of it."""
    files = dict(found.files)
    changes: dict[str, dict[str, bool]] = {}
    for path, content in written.items():
        above, _, rest = path.partition("/")
        if path in CONTROL:
            files[path] = File(content)
        elif above == THREADS and rest:
            thread, _, below = rest.partition("/")
            changes.setdefault(thread, {})[below] = content is not None
    threads = dict(found.threads)
    for thread, paths in changes.items():
        present = _changed(threads.pop(thread, None), paths)
        if present is not None:
            threads[thread] = present
    gone = {f"{DIRECTORY}/{THREADS}/{thread}" for thread in changes if thread not in threads}
    return replace(found, files=files, threads=threads, storage=found.storage - gone)


def mended(found: Found, wanted: Collection[str] = ()) -> tuple[Mended, ...]:
    """What leads from here to where nothing is left to be done by itself, then the first of what can be asked for.

    Each of these is what it would be if it were done alone after the former. ``wanted`` are ids of such that were asked
    for; they are among the former then, with what follows from them.
    """
    findings, left = mend_findings(found, wanted)
    rewrites: dict[str, Mended] = {}
    others: list[Mended] = []
    for finding in findings:
        for each in (replace(each, asked="") for each in _of(finding)):
            if each.content is None:
                others.append(each)
            elif (first := rewrites.get(each.path)) is None:
                rewrites[each.path] = replace(each, id=each.path)
            else:
                rewrites[each.path] = replace(first, content=each.content, words=(*first.words, *each.words))
    changed = [each for each in rewrites.values() if each.content != each.before]
    return (*changed, *others, *_offered(left))


def _offered(findings: Iterable[Finding]) -> Iterable[Mended]:
    """What can be asked for: each id once, whatever differs about it."""
    found: dict[str, Mended] = {}
    for finding in findings:
        repair = finding.repair
        if repair is None or not repair.on_request:
            continue
        if (known := found.get(finding.id)) is not None:
            found[finding.id] = replace(known, words=(*known.words, *repair.words))
        elif len(found) < OFFERED:
            (found[finding.id],) = _of(finding)
    return found.values()


def _of(finding: Finding) -> Iterator[Mended]:
    repair = finding.repair
    assert repair is not None  # noqa: S101 - only such findings get here
    for step in repair.steps:
        yield replace(_step(step, finding.place), id=finding.id, words=repair.words, asked=repair.on_request)


def _step(step: Step, place: str) -> Mended:
    match step:
        case Rewrite(path, before, content):
            return Mended("", path, (), before, content)
        case Make(paths):
            return Mended("", place, (), makes=paths)
        case Remove(path, before, mtime_ns):
            return Mended("", path, (), before, mtime_ns=mtime_ns)
        case RemoveLock(path):
            return Mended("", path, (), clears=(path,))


def _changed(present: ThreadDirectory | None, paths: Mapping[str, bool]) -> ThreadDirectory | None:
    """A thread's directory with files that come and go, by path below it; with the last one it goes itself."""
    if "" in paths:
        return None
    before = present.files if present is not None else frozenset()
    files = before - {path for path, comes in paths.items() if not comes} | {path for path in paths if paths[path]}
    if not files:
        return None if before else present
    return replace(present or ThreadDirectory(), files=files)

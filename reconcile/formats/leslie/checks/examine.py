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
from reconcile.model.format import DerivedRepair

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.formats.leslie.checks.model import Finding, LeslieTree, Repair, Step


def examine(tree: LeslieTree, wanted: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return every finding, sorted by kind. Nothing is concluded from a control file that can't be read.

    ``wanted`` are the ids of requested findings: their repairs need no further request.
    """
    relations, objectives = read_control(tree, RELATIONS), read_control(tree, OBJECTIVES)
    findings = [*relations.findings, *objectives.findings, *lock_findings(tree)]
    document = relations.document
    if isinstance(document, Document):
        objectives_document = objectives.document if isinstance(objectives.document, ObjectivesDocument) else None
        replayed = replay(document)
        findings += record_findings(tree, document, replayed, wanted)
        findings += place_findings(tree, document, replayed, objectives_document, wanted)
        if objectives_document is not None or not objectives.findings:
            findings += objective_findings(document, replayed, objectives_document)
    order = list(Kind)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.kind)))


def repair_all(tree: LeslieTree, wanted: Collection[str] = ()) -> tuple[tuple[Repair, ...], LeslieTree]:
    """Return the repairs to carry out without a request, and the tree after them.

    ``wanted`` as for `examine`. A repair can reveal another problem: only a file that can be read shows what it lacks.
    """
    done, _ = repair_findings(tree, wanted)
    repairs = tuple(finding.repair for finding in done if finding.repair is not None)
    for repair in repairs:
        for step in repair.steps:
            tree = after(tree, step)
    return repairs, tree


def repair_findings(tree: LeslieTree, wanted: Collection[str] = ()) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings that `repair_all` repairs, in order, and the findings that remain."""
    done: list[Finding] = []
    while chosen := _next(findings := examine(tree, wanted), wanted):
        for finding, repair in chosen:
            done.append(finding)
            for step in repair.steps:
                tree = after(tree, step)
    return tuple(done), findings


def _next(findings: Iterable[Finding], wanted: Collection[str]) -> list[tuple[Finding, Repair]]:
    """Return the next repairs to carry out: one, or several that do not change each other's input."""
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
"""The number of repairs on request that are computed at a time: each holds a whole control file."""


def with_written(tree: LeslieTree, written: Mapping[str, bytes | None]) -> LeslieTree:
    """Return the tree after a plan has written these paths (None: removed), as far as findings depend on it."""
    files = dict(tree.files)
    changes: dict[str, dict[str, bool]] = {}
    for path, content in written.items():
        above, _, inner = path.partition("/")
        if path in CONTROL:
            files[path] = File(content)
        elif above == THREADS and inner:
            thread, _, below = inner.partition("/")
            changes.setdefault(thread, {})[below] = content is not None
    threads = dict(tree.threads)
    for thread, paths in changes.items():
        present = _changed(threads.pop(thread, None), paths)
        if present is not None:
            threads[thread] = present
    gone = {f"{DIRECTORY}/{THREADS}/{thread}" for thread in changes if thread not in threads}
    return replace(tree, files=files, threads=threads, storage=tree.storage - gone)


def derived_repairs(tree: LeslieTree, wanted: Collection[str] = ()) -> tuple[DerivedRepair, ...]:
    """Return the repairs that need no request, then the first of those that can be requested.

    Each of the latter is computed as if it were done alone after the former. ``wanted`` are ids of requested repairs;
    they belong to the former, with the repairs that follow from them.
    """
    findings, left = repair_findings(tree, wanted)
    rewrites: dict[str, DerivedRepair] = {}
    others: list[DerivedRepair] = []
    for finding in findings:
        for repair in (replace(repair, asked="") for repair in _of(finding)):
            if repair.content is None:
                others.append(repair)
            elif (first := rewrites.get(repair.path)) is None:
                rewrites[repair.path] = replace(repair, id=repair.path)
            else:
                rewrites[repair.path] = replace(first, content=repair.content, words=(*first.words, *repair.words))
    changed = [repair for repair in rewrites.values() if repair.content != repair.before]
    return (*changed, *others, *_offered(left))


def _offered(findings: Iterable[Finding]) -> Iterable[DerivedRepair]:
    """Return the repairs that can be requested: each id once, with all its differences."""
    offered: dict[str, DerivedRepair] = {}
    for finding in findings:
        repair = finding.repair
        if repair is None or not repair.on_request:
            continue
        if (known := offered.get(finding.id)) is not None:
            offered[finding.id] = replace(known, words=(*known.words, *repair.words))
        elif len(offered) < OFFERED:
            (offered[finding.id],) = _of(finding)
    return offered.values()


def _of(finding: Finding) -> Iterator[DerivedRepair]:
    repair = finding.repair
    assert repair is not None  # noqa: S101 - only such findings get here
    for step in repair.steps:
        yield replace(_step(step, finding.place), id=finding.id, words=repair.words, asked=repair.on_request)


def _step(step: Step, place: str) -> DerivedRepair:
    match step:
        case Rewrite(path, before, content):
            return DerivedRepair("", path, (), before, content)
        case Make(paths):
            return DerivedRepair("", place, (), makes=paths)
        case Remove(path, before, mtime_ns):
            return DerivedRepair("", path, (), before, mtime_ns=mtime_ns)
        case RemoveLock(path):
            return DerivedRepair("", path, (), clears=(path,))


def _changed(present: ThreadDirectory | None, paths: Mapping[str, bool]) -> ThreadDirectory | None:
    """Return the directory of a thread after files were added and removed, by path below it; None once it is empty."""
    if "" in paths:
        return None
    before = present.files if present is not None else frozenset()
    files = before - {path for path, comes in paths.items() if not comes} | {path for path in paths if paths[path]}
    if not files:
        return None if before else present
    return replace(present or ThreadDirectory(), files=files)

"""The repairs of a ``.leslie`` as values for a plan: one for each file, directory or lock that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.leslie.checks.findings import mend_findings
from reconcile.formats.leslie.checks.input import File, Make, Remove, RemoveLock, Rewrite, ThreadDirectory
from reconcile.formats.leslie.log.document import CONTROL, DIRECTORY, THREADS
from reconcile.model.format import Mended

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.formats.leslie.checks.finding import Finding
    from reconcile.formats.leslie.checks.input import Found, Step

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

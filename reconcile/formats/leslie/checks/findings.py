"""Everything that is wrong with a ``.leslie``, and what mends it: pure functions of what was read.

See docs/design/formats/leslie.md#failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.formats.leslie.checks.control_files import read_control
from reconcile.formats.leslie.checks.directories import lock_findings, place_findings
from reconcile.formats.leslie.checks.finding import Kind
from reconcile.formats.leslie.checks.input import Rewrite, after
from reconcile.formats.leslie.checks.records import objective_findings, record_findings
from reconcile.formats.leslie.log.document import OBJECTIVES, RELATIONS, Document, ObjectivesDocument
from reconcile.formats.leslie.log.replay import replay

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.formats.leslie.checks.finding import Finding, Repair
    from reconcile.formats.leslie.checks.input import Found


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

"""Who is above whom: whatever a plan may go by, at a glance for all as for each."""

from __future__ import annotations

import pytest

from reconcile.model.baseline import Baseline, BaselineEntry, Intent, IntentKind
from reconcile.planning.incremental.ancestry import Ancestry, above, ancestry_of
from tests.support.scenarios.building import here

ROOT = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
CHILD = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
STATED = CHILD.replace('"B"', '"B" parent 1')


def agreed(parent: str | None = None, container: str | None = None) -> Baseline:
    return Baseline(agreed={"jp-c2": BaselineEntry({}, parent, "B", container, "2-b")})


def waiting(conversation: str) -> Baseline:
    return Baseline(intents={"jp-c2": Intent(IntentKind.PROJECTED, waits_for=conversation)})


RELATED: dict[str, tuple[tuple[str, ...], Baseline]] = {
    "stated": ((ROOT, STATED), Baseline()),
    "around its directory": ((ROOT, f"1-a/conversations/{CHILD}"), Baseline()),
    "known": ((ROOT, CHILD), Baseline(parents={"jp-c2": "jp-c1"})),
    "agreed on": ((ROOT, CHILD), agreed(parent="jp-c1")),
    "around the directory that was agreed on": ((ROOT, CHILD), agreed(container="jp-c1")),
    "waited for": ((ROOT, CHILD), waiting("jp-c1")),
    "of what isn't there": ((ROOT,), agreed(parent="jp-c1")),
}
UNRELATED: dict[str, tuple[tuple[str, ...], Baseline]] = {
    "nothing is known": ((ROOT, CHILD), Baseline()),
    "a root that is known": ((ROOT, CHILD), Baseline(parents={"jp-c2": None})),
    "a root that was agreed on": ((ROOT, CHILD), agreed()),
    "itself": ((ROOT, CHILD.replace('"B"', '"B" parent 2')), agreed(parent="jp-c2", container="jp-c2")),
    "removed": ((ROOT, CHILD), Baseline(intents={"jp-c2": Intent(IntentKind.REMOVED)})),
}


def relations(lines: tuple[str, ...], baseline: Baseline) -> list[Ancestry]:
    """Return the relation as it is of all at a glance, and put together from that of each."""
    copies = here(*lines).copies
    each = {
        conversation: above(conversation, [copy for copy in copies if copy.conversation == conversation], baseline)
        for conversation in ("jp-c1", "jp-c2")
    }
    return [ancestry_of(copies, baseline), Ancestry(each)]


@pytest.mark.parametrize(("lines", "baseline"), RELATED.values(), ids=RELATED)
def test_related(lines: tuple[str, ...], baseline: Baseline) -> None:
    for kin in relations(lines, baseline):
        assert kin.relations == {"jp-c2": {"jp-c1"}}
        assert kin.with_above({"jp-c2"}) == {"jp-c1", "jp-c2"}
        assert kin.with_below({"jp-c1"}) == {"jp-c1", "jp-c2"}
        assert kin.with_below({"jp-c2"}) == {"jp-c2"}


@pytest.mark.parametrize(("lines", "baseline"), UNRELATED.values(), ids=UNRELATED)
def test_unrelated(lines: tuple[str, ...], baseline: Baseline) -> None:
    for kin in relations(lines, baseline):
        assert not kin.relations
        assert kin.with_below({"jp-c1"}) == {"jp-c1"}

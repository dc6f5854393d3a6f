"""What another witness than the runs is asked about."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind
from reconcile.model.snapshot import METADATA, STREAM, Side
from reconcile.planning.rules.commit_order import doubts_of, split_archives
from reconcile.planning.rules.views import PLACE
from tests.support.formats.notes import RULES as FIXED
from tests.support.scenarios.building import agreed_on, here, stored, unreadable, view_of
from tests.support.scenarios.pure_level import RULES

A = "1-a  metadata 07:00  stream 07:00 [1 2]"
TITLED = '1-a  metadata 08:00 title "B"  stream 07:00 [1 2]'
EDITED = "1-a  metadata 07:00  stream 08:00 [1 2 3]"
NOTED = [A, '1-a/NOTE.md 08:00 "x"']


def asked(ours: list[str], theirs: list[str], baseline: Baseline | None = None) -> list[str]:
    found = doubts_of(stored(*ours), here(*theirs), baseline or Baseline(), RULES)
    assert all(doubt.key == ("jp-c1", doubt.workspace.name) for doubt in found)
    assert all((doubt.store.copy.side, doubt.workspace.copy.side) == tuple(Side) for doubt in found)
    return [doubt.store.name for doubt in found]


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        ([A], [A], []),
        ([A], [], []),
        ([A], [EDITED], [STREAM]),
        ([TITLED], [EDITED], [METADATA, STREAM]),
        (NOTED, [A], []),
        (NOTED, [A, '1-a/NOTE.md 08:00 "y"'], ["extra:NOTE.md"]),
        ([A], ["1-a  stream 07:00 [1 2]"], []),
    ],
)
def test_what_differs_is_in_doubt(ours: list[str], theirs: list[str], found: list[str]) -> None:
    assert asked(ours, theirs) == found
    assert asked(ours, theirs, agreed_on(A)) == found


def test_what_cannot_be_read_is_not() -> None:
    assert not doubts_of(stored(A), unreadable(here(EDITED), "1-a/events.json"), Baseline(), RULES)


def test_what_an_earlier_run_knows_is_not() -> None:
    baseline = agreed_on(A)
    key = "jp-c1", STREAM
    old, new = (str(view_of(stored(line), here()).store.digest(STREAM)) for line in (A, EDITED))
    behind = AsideRecord(AsideKind.BEHIND, None, new)
    assert asked([A], [EDITED], replace(baseline, asides={key: behind})) == []
    assert asked([A], [EDITED], replace(baseline, history={key: (new, old)})) == []


def test_the_past_is_given_and_whether_the_workspace_is_at_rest() -> None:
    baseline = agreed_on(A)
    key = "jp-c1", STREAM
    old, new = (str(view_of(stored(line), here()).store.digest(STREAM)) for line in (A, EDITED))
    (doubt,) = doubts_of(stored(EDITED), here(A), replace(baseline, history={key: (old, new)}), RULES)
    assert (doubt.past, doubt.at_rest) == ((old, new), True)
    (doubt,) = doubts_of(stored(A), here(EDITED), replace(baseline, history={key: ("0", old)}), RULES)
    assert (doubt.past, doubt.at_rest) == (("0", old), False)


def test_records_with_fixed_places_have_rules_of_their_own() -> None:
    assert not doubts_of(stored(A), here(EDITED), Baseline(), FIXED)


ARCHIVED = A.replace("1-a", ".archive/1-a")


def test_what_one_side_has_archived_and_the_other_live_is_in_doubt_until_that_is_remembered() -> None:
    for ours, theirs, found in (
        ([A], [ARCHIVED], ["jp-c1"]),
        ([ARCHIVED], [A], ["jp-c1"]),
        ([A], [A], []),
        ([ARCHIVED], [ARCHIVED], []),
        ([A], [], []),
        ([], [A], []),
        ([A], [A, ARCHIVED], []),
    ):
        views = split_archives(stored(*ours), here(*theirs), Baseline(), RULES)
        assert [view.id for view in views] == found
        assert all(view.archived_in_store is (ours == [ARCHIVED]) for view in views)
        baseline = Baseline(asides={(view.id, PLACE): view.split_record for view in views})
        assert not split_archives(stored(*ours), here(*theirs), baseline, RULES)
        assert not split_archives(
            stored(*ours), here(*theirs), Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL)}), RULES
        )
        assert not split_archives(stored(*ours), here(*theirs), Baseline(), FIXED)


def test_the_version_before_an_edit_in_the_workspace_is_given() -> None:
    baseline = agreed_on(A)
    old = str(view_of(stored(A), here()).store.digest(STREAM))
    (doubt,) = doubts_of(stored(EDITED), here(A.replace("[1", "[3")), baseline, RULES)
    assert doubt.edited == old
    (doubt,) = doubts_of(stored(A), here(EDITED), baseline, RULES)
    assert doubt.edited == old
    (doubt,) = doubts_of(stored(EDITED), here(A), baseline, RULES)
    assert doubt.edited is None
    (doubt,) = doubts_of(stored(EDITED), here(A), Baseline(), RULES)
    assert doubt.edited is None

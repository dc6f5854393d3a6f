"""The rules with the tree of a remote in the place of the workspace (docs/design/remotes.md#rules)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Place, Side, Snapshot
from reconcile.planning.rules.content import Outcome, Verdict
from reconcile.planning.rules.presence import Goal
from reconcile.planning.rules.views import Lead
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
LONGER = '1-a  metadata 09:00 title "A"  stream 08:00 [1 2]'
OTHER = '1-a  metadata 09:00 title "A"  stream 10:00 [1 3]'
ARCHIVED = '.archive/1-a  metadata 09:00 title "A"  stream 09:00 [1]'
BESIDE = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
"""Somebody else, so that no side is empty."""


def of_remote(*lines: str) -> Baseline:
    return replace(agreed_on(*lines), is_of_remote=True)


def verdict(store: Snapshot, remote: Snapshot, baseline: Baseline) -> Verdict:
    return context_of(store, remote, baseline).verdicts["jp-c1"][STREAM]


@pytest.mark.parametrize("line", [ONE, ARCHIVED])
@pytest.mark.parametrize("kind", [None, IntentKind.LOCAL, IntentKind.REMOVED])
def test_a_remote_gets_every_conversation(line: str, kind: IntentKind | None) -> None:
    intents = {} if kind is None else {"jp-c1": Intent(kind)}
    baseline = replace(of_remote(BESIDE), intents=intents)
    found = context_of(stored(line, BESIDE), here(BESIDE), baseline)
    assert found.presences["jp-c1"].goal is Goal.PROJECT
    (action,) = plan_of(stored(line, BESIDE), here(BESIDE), baseline).actions
    assert action.target.path == line.partition(" ")[0]


def test_a_new_conversation_comes_there_with_its_other_files() -> None:
    (action,) = plan_of(stored(ONE, NOTE, BESIDE), here(BESIDE), of_remote(BESIDE)).actions
    names = {write.target.path.removeprefix("1-a/") for write in action.writes}
    assert names == {"metadata.json", "base_config.json", "events.json", "notes.txt"}


def test_a_private_conversation_goes_on_there() -> None:
    baseline = replace(of_remote(ONE, BESIDE), intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert verdict(stored(LONGER, BESIDE), here(ONE, BESIDE), baseline).outcome is Outcome.TO_WORKSPACE


def test_a_conversation_that_was_restored_elsewhere_comes_back() -> None:
    buried = {unit.digest for unit in context_of(stored(ONE), here()).views["jp-c1"].store.units.values()}
    baseline = replace(of_remote(BESIDE), tombstones={"jp-c1": frozenset(filter(None, buried))})
    assert context_of(stored(BESIDE), here(ONE, BESIDE), baseline).presences["jp-c1"].goal is Goal.IMPORT
    checkout = replace(baseline, is_of_remote=False)
    found = context_of(stored(BESIDE), here(ONE, BESIDE), checkout)
    assert found.presences["jp-c1"].goal is Goal.REMOVED_BEFORE


def test_an_older_version_there_was_restored_on_purpose() -> None:
    (digest,) = {context_of(stored(ONE), here()).views["jp-c1"].store.units[STREAM].digest}
    base = of_remote(LONGER, BESIDE)
    history = {**base.history, ("jp-c1", STREAM): (str(digest), *base.history["jp-c1", STREAM])}
    found = verdict(stored(LONGER, BESIDE), here(ONE, BESIDE), replace(base, history=history))
    assert (found.outcome, found.reason) == (Outcome.TO_STORE, Reason.EDITED_WORKSPACE)


def test_another_continuation_there_has_replaced_this_one_already() -> None:
    found = verdict(stored(LONGER, BESIDE), here(OTHER, BESIDE), of_remote(LONGER, BESIDE))
    assert (found.outcome, found.forks) == (Outcome.TO_STORE, None)


def test_a_shorter_stream_there_is_continued_whatever_its_time() -> None:
    found = verdict(stored(LONGER, BESIDE), here(ONE, BESIDE), of_remote(BESIDE))
    assert (found.outcome, found.reason) == (Outcome.TO_WORKSPACE, Reason.AHEAD_STORE)


@pytest.mark.parametrize(
    ("store", "remote", "agreed", "lead"),
    [
        (ONE, ARCHIVED, ONE, Lead.WORKSPACE),
        (ARCHIVED, ONE, ONE, Lead.STORE),
        (ARCHIVED, ONE, BESIDE, Lead.STORE),
    ],
)
def test_the_later_side_says_whether_it_is_archived(store: str, remote: str, agreed: str, lead: Lead) -> None:
    assert context_of(stored(store, BESIDE), here(remote, BESIDE), of_remote(agreed)).views["jp-c1"].lead is lead


def test_a_record_of_a_checkout_says_nothing_here() -> None:
    aside = AsideRecord(AsideKind.KEPT, "other", "digests")
    baseline = replace(of_remote(ONE, BESIDE), asides={("jp-c1", STREAM): aside})
    assert plan_of(stored(ONE, BESIDE), here(ONE, BESIDE), baseline).actions == ()


NOTE = '1-a/notes.txt 09:00 "n"'


@pytest.mark.parametrize("agreed", [(BESIDE,), (ONE, BESIDE)], ids=["new", "known"])
def test_other_files_are_sent(agreed: tuple[str, ...]) -> None:
    (action,) = plan_of(stored(ONE, NOTE, BESIDE), here(*agreed), of_remote(*agreed)).actions
    assert any(write.target.path.endswith("notes.txt") for write in action.writes)


def test_another_file_that_is_not_there_is_sent_again_without_a_record_of_its_removal() -> None:
    (action,) = plan_of(stored(ONE, NOTE, BESIDE), here(ONE, BESIDE), of_remote(ONE, NOTE, BESIDE)).actions
    assert [write.target.path for write in action.writes] == ["1-a/notes.txt"]


def test_another_file_of_a_conversation_that_both_have_is_sent() -> None:
    (action,) = plan_of(stored(ONE, NOTE, BESIDE), here(ONE, BESIDE), of_remote(BESIDE)).actions
    assert [write.target.path for write in action.writes] == ["1-a/notes.txt"]


def gone(*digests: str) -> Baseline:
    """Return a baseline with a note that another machine has removed, when it had one of these digests."""
    before = of_remote(ONE, NOTE, BESIDE)
    known = before.agreed["jp-c1"].units[f"{EXTRA}notes.txt"]
    removed = {("jp-c1", f"{EXTRA}notes.txt"): digest.replace("known", known) for digest in digests}
    return replace(before, removed_there=removed)


def test_another_file_that_was_removed_there_by_its_content_is_removed() -> None:
    (action,) = plan_of(stored(ONE, NOTE, BESIDE), here(ONE, BESIDE), gone("known")).actions
    assert (action.kind, action.reason, action.unit) == (Kind.REMOVE, Reason.REMOVED_THERE, f"{EXTRA}notes.txt")
    assert action.removes == (Place(Side.STORE, "1-a/notes.txt"),)


@pytest.mark.parametrize(
    ("store", "remote"),
    [((ONE, '1-a/notes.txt 09:10 "other"'), (ONE,)), ((ONE, NOTE), (ONE, NOTE)), ((ONE,), (ONE,))],
    ids=["edited", "there", "gone"],
)
def test_another_file_stays_as_it_is_otherwise(store: tuple[str, ...], remote: tuple[str, ...]) -> None:
    actions = plan_of(stored(*store, BESIDE), here(*remote, BESIDE), gone("known")).actions
    assert Reason.REMOVED_THERE not in {action.reason for action in actions}


def test_another_file_that_had_another_content_there_is_sent_again() -> None:
    (action,) = plan_of(stored(ONE, NOTE, BESIDE), here(ONE, BESIDE), gone("another")).actions
    assert [write.target.path for write in action.writes] == ["1-a/notes.txt"]


def test_another_file_that_was_removed_there_and_edited_here_is_sent() -> None:
    edited = '1-a/notes.txt 09:10 "other"'
    (action,) = plan_of(stored(ONE, edited, BESIDE), here(ONE, BESIDE), of_remote(ONE, NOTE, BESIDE)).actions
    assert action.reason is Reason.EDIT_WINS


# A conversation that a clone has brought before the first sync

EDITED = '1-a  metadata 09:40 title "Edited"  stream 09:00 [1]'
AGAIN = '1-a  metadata 09:50 title "Again"  stream 09:00 [1]'


def metadata_of(line: str) -> str:
    return str(context_of(stored(line), here()).views["jp-c1"].store.digest(METADATA))


@pytest.mark.parametrize(
    ("store", "there", "seen", "own", "case"),
    [
        pytest.param(ONE, AGAIN, (ONE, EDITED, AGAIN), (ONE,), 11, id="older"),
        pytest.param(ONE, AGAIN, (ONE, EDITED, AGAIN), (), 11, id="older, and no run has been"),
        pytest.param(EDITED, AGAIN, (ONE, EDITED, AGAIN), (ONE, EDITED), 11, id="older, not the oldest"),
        pytest.param(EDITED, ONE, (ONE,), (ONE, EDITED), 13, id="edited here alone"),
        pytest.param(EDITED, AGAIN, (ONE, AGAIN), (ONE, EDITED), 15, id="edited here and there"),
        pytest.param(EDITED, AGAIN, (ONE, AGAIN), (EDITED,), 5, id="nothing in common"),
        pytest.param(ONE, AGAIN, (ONE, EDITED, AGAIN), (EDITED, ONE), 15, id="restored here"),
        pytest.param(ONE, AGAIN, (ONE, AGAIN), (AGAIN, ONE), 5, id="each has left the version of the other"),
    ],
)
def test_the_base_is_the_newest_version_that_both_have_had(
    store: str, there: str, seen: tuple[str, ...], own: tuple[str, ...], case: int
) -> None:
    key = ("jp-c1", METADATA)
    baseline = replace(
        of_remote(BESIDE), seen_there={key: [*map(metadata_of, seen)]}, history={key: tuple(map(metadata_of, own))}
    )
    assert context_of(stored(store, BESIDE), here(there, BESIDE), baseline).verdicts["jp-c1"][METADATA].case == case


@pytest.mark.parametrize(
    ("store", "there", "seen", "lead"),
    [
        pytest.param(ONE, ARCHIVED.replace('"A"', '"B"'), (ONE,), Lead.WORKSPACE, id="older"),
        pytest.param(EDITED, ARCHIVED, (ONE,), Lead.WORKSPACE, id="edited"),
        pytest.param(ONE, ARCHIVED, (ONE,), Lead.WORKSPACE, id="equal"),
        pytest.param(ARCHIVED, EDITED, (ONE,), Lead.STORE, id="edited there"),
        pytest.param(ARCHIVED, ONE, (ONE,), Lead.STORE, id="archived here"),
    ],
)
def test_a_machine_with_an_older_version_has_not_archived_it(
    store: str, there: str, seen: tuple[str, ...], lead: Lead
) -> None:
    digests = {("jp-c1", METADATA): [*map(metadata_of, seen)]}
    baseline = replace(of_remote(BESIDE), seen_there=digests, history={key: tuple(v) for key, v in digests.items()})
    assert context_of(stored(store, BESIDE), here(there, BESIDE), baseline).views["jp-c1"].lead is lead


@pytest.mark.parametrize(("store", "there"), [(8, 9), (9, 8)], ids=["changed there", "changed here"])
def test_the_parent_follows_the_side_that_has_changed_it(store: int, there: int) -> None:
    one = '1-a  metadata 09:00 title "A" parent {}  stream 09:00 [1]'
    old, key = metadata_of(one.format(8)), ("jp-c1", METADATA)
    others = (BESIDE, '9-i  metadata 09:00 title "I"  stream 09:00 [1]')
    baseline = replace(
        of_remote(*others), seen_there={key: [old]}, history={key: (old,)}, parents={"jp-c1": f"jp-c{store}"}
    )
    found = context_of(stored(one.format(store), *others), here(one.format(there), *others), baseline)
    assert found.parentage["jp-c1"].parent == "jp-c9"

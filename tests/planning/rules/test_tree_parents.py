"""Whose child a conversation is: every combination of what was agreed on and what the two sides say."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, BaselineEntry, Intent, IntentKind
from reconcile.model.snapshot import METADATA, STREAM, Metadata, ParentKind, ParentRef
from reconcile.planning.rules.content import Outcome, Verdict
from reconcile.planning.rules.tree import Parentage, decide_parent, stated_alone, states
from tests.support.scenarios.building import here, stored, unreadable, view_of
from tests.support.scenarios.pure_level import FORMAT

SAYS = {"nothing": "", "none": "parent null", "2": "parent 2", "3": "parent 3", "nonsense": "parent raw true"}
"""What a metadata file says of the parent."""
NUMBERS = {"none": None, "2": "jp-c2", "3": "jp-c3"}


def memory_of(base: str) -> Baseline:
    """Return a memory in which this parent was agreed on; a first run where nothing is known."""
    if base == "unknown":
        return Baseline()
    parent = NUMBERS[base]
    agreed = BaselineEntry({METADATA: "another", STREAM: "another"}, parent, "A", parent, "1-a")
    return Baseline(agreed={"jp-c1": agreed}, parents={"jp-c1": parent})


def decided(base: str, store: str, workspace: str, times: tuple[str, str], path: str = "1-a") -> Parentage:
    return decide_parent(
        view_of(
            stored(f'1-a  metadata {times[0]} title "A" {SAYS[store]}'),
            here(f'{path}  metadata {times[1]} title "A" {SAYS[workspace]}'),
            memory_of(base),
        ),
        None,
    )


ROWS = {
    "nothing was known and nothing is said": ("unknown", "nothing", "nothing", "older", None),
    "nothing was known, the store says so": ("unknown", "2", "nothing", "older", "2"),
    "nothing was known, the workspace says so": ("unknown", "nothing", "2", "older", "2"),
    "nothing was known, both say so: the newer one": ("unknown", "2", "3", "newer", "3"),
    "nothing was known, both say so: a tie goes to the store": ("unknown", "2", "3", "same", "2"),
    "stripped on both sides": ("2", "nothing", "nothing", "older", "2"),
    "stripped in the store, stated in the workspace": ("2", "nothing", "2", "newer", "2"),
    "stripped in the workspace, another in the store": ("2", "3", "nothing", "newer", "3"),
    "changed in the workspace alone, whatever its time": ("2", "2", "3", "older", "3"),
    "changed in the store alone, whatever its time": ("2", "3", "2", "newer", "3"),
    "changed on both, the workspace's is newer": ("2", "3", "none", "newer", None),
    "changed on both, the store's is newer": ("2", "3", "none", "older", "3"),
    "changed on both at one time": ("2", "none", "3", "same", None),
    "changed on both to the same": ("2", "3", "3", "newer", "3"),
    "made a root by null": ("2", "none", "2", "newer", None),
    "a root was given a parent": ("none", "none", "2", "older", "2"),
    "nonsense says nothing": ("2", "nonsense", "nothing", "older", "2"),
    "nonsense against a change": ("2", "nonsense", "3", "older", "3"),
}
TIMES = {"older": ("09:00", "08:00"), "newer": ("09:00", "10:00"), "same": ("09:00", "09:00")}


@pytest.mark.parametrize(("base", "store", "workspace", "times", "parent"), ROWS.values(), ids=ROWS)
def test_row(base: str, store: str, workspace: str, times: str, parent: str | None) -> None:
    assert decided(base, store, workspace, TIMES[times]) == Parentage(NUMBERS[parent or "none"])


@pytest.mark.parametrize("base", ["unknown", *NUMBERS])
def test_every_combination_follows_the_rule(base: str) -> None:
    """A three-way merge in which saying nothing, or nonsense, is saying what was known."""
    known = "none" if base == "unknown" else base
    for store, workspace, times in itertools.product(SAYS, SAYS, TIMES):
        said = [text if text in NUMBERS else known for text in (store, workspace)]
        new = [text in NUMBERS and (base == "unknown" or text != base) for text in (store, workspace)]
        winner = (said[times == "newer"] if all(new) else said[new.index(True)]) if any(new) else known
        found = decided(base, store, workspace, TIMES[times])
        assert found == Parentage(NUMBERS[winner]), f"{store} in the store, {workspace} in the workspace, {times}"


NESTED = "2-b/conversations/1-a"
AGREED = BaselineEntry({}, "jp-c2", "A", "jp-c2", NESTED)


def nested(*, in_sync: bool, path: str = NESTED, said: str = "") -> Parentage:
    """Decide for a copy without a parent below its parent's; ``in_sync``: but for that it is as agreed on."""
    store = stored(f'1-a  metadata 09:00 title "A" {said or SAYS["2"]}')
    digest = view_of(store, here()).store.digest(METADATA)
    assert digest is not None
    agreed = replace(AGREED, units={METADATA: digest})
    title = "A" if in_sync else "B"
    workspace = here(f'{path}  metadata 09:30 title "{title}" {said}', '2-b  metadata 09:00 title "B"')
    return decide_parent(view_of(store, workspace, Baseline(agreed={"jp-c1": agreed})), None)


def test_an_absent_key_makes_a_root_in_a_nested_copy_that_is_otherwise_in_sync() -> None:
    assert nested(in_sync=True) == Parentage(None)


def test_an_absent_key_says_nothing_at_the_top_level() -> None:
    assert nested(in_sync=True, path="1-a") == Parentage("jp-c2")


def test_an_absent_key_of_a_remote_makes_a_root_if_the_parent_is_known() -> None:
    there = here('1-a  metadata 09:30 title "A"')
    known = view_of(stored("1-a  metadata 09:00 parent 2"), there, memory_of("2"))
    unknown = view_of(stored("1-a  metadata 09:00 parent 2"), there)
    assert decide_parent(known, None, is_of_remote=True) == Parentage(None)
    assert decide_parent(unknown, None, is_of_remote=True) == Parentage("jp-c2")


def test_an_absent_key_says_nothing_where_something_else_was_edited() -> None:
    assert nested(in_sync=False) == Parentage("jp-c2")


def test_nonsense_in_a_nested_copy_makes_no_root() -> None:
    assert nested(in_sync=True, said=SAYS["nonsense"]) == Parentage("jp-c2")


def test_a_nested_copy_that_was_never_agreed_on_says_nothing() -> None:
    store = stored('1-a  metadata 09:00 title "A" parent 2')
    assert decide_parent(view_of(store, here(f'{NESTED}  metadata 09:30 title "A"')), None) == Parentage("jp-c2")


@pytest.mark.parametrize("outcome", [Outcome.HELD, Outcome.BEHIND, Outcome.ASIDE])
def test_while_metadata_is_left_as_it_is_the_known_parent_holds_and_nothing_moves(outcome: Outcome) -> None:
    view = view_of(stored("1-a  metadata 09:00 parent 3"), here("1-a  metadata 09:00 parent 3"), memory_of("2"))
    assert decide_parent(view, Verdict(METADATA, 15, outcome)) == Parentage("jp-c2", frozen=True)


def test_the_same_where_no_side_has_metadata_that_can_be_read() -> None:
    store = unreadable(stored("1-a  metadata 09:00 parent 3"), "1-a/metadata.json")
    assert decide_parent(view_of(store, here(), memory_of("2")), None) == Parentage("jp-c2", frozen=True)


def test_the_store_alone_speaks_where_the_workspaces_metadata_has_lost_and_is_never_written() -> None:
    store, workspace = stored("1-a  metadata 09:00 parent 3"), here("1-a  metadata 10:00 parent null")
    verdict = Verdict(METADATA, 15, Outcome.ASIDE, record=AsideRecord(AsideKind.LOCAL, None, "x"))
    assert decide_parent(view_of(store, workspace, memory_of("2")), verdict) == Parentage("jp-c3")


def test_another_checkouts_knowledge_counts_where_this_one_has_none() -> None:
    view = view_of(stored("1-a  metadata 09:00"), here("1-a  metadata 10:00"), Baseline(parents={"jp-c1": "jp-c3"}))
    assert decide_parent(view, None) == Parentage("jp-c3")


def test_an_absent_key_in_the_store_stands_for_what_another_checkout_knows() -> None:
    known = replace(memory_of("2"), parents={"jp-c1": "jp-c3"})
    view = view_of(stored("1-a  metadata 09:00"), here("1-a  metadata 10:00 parent 2"), known)
    assert decide_parent(view, None) == Parentage("jp-c3")


def test_what_was_carried_into_the_trash_without_a_parent_says_nothing() -> None:
    carried = here(".trash/2-b/conversations/1-a  metadata 09:00", "2-b  metadata 09:00")
    assert decide_parent(view_of(stored("1-a  metadata 09:00 parent 3"), carried), None) == Parentage("jp-c3")


STATES = {
    "an absent key is a root": (ParentRef(ParentKind.ABSENT), None, True),
    "null is a root": (ParentRef(ParentKind.ROOT), None, True),
    "nonsense is left alone": (ParentRef(ParentKind.UNREADABLE), None, True),
    "a parent is not": (ParentRef(ParentKind.ID, "jp-c2"), None, False),
    "the parent": (ParentRef(ParentKind.ID, "jp-c2"), "jp-c2", True),
    "another parent": (ParentRef(ParentKind.ID, "jp-c3"), "jp-c2", False),
    "an absent key is no parent": (ParentRef(ParentKind.ABSENT), "jp-c2", False),
}


@pytest.mark.parametrize(("stated", "parent", "answer"), STATES.values(), ids=STATES)
def test_states(stated: ParentRef, parent: str | None, answer: bool) -> None:
    assert states(Metadata("A", stated, local=False, content=b""), parent) is answer


@pytest.mark.parametrize("spelling", ['"jp-c2"', '"jp-c2-a1b2c"', '"2"', "2"])
def test_every_accepted_spelling_is_the_same_parent(spelling: str) -> None:
    (copy,) = stored(f"1-a  metadata 09:00 parent raw {spelling}").copies
    assert isinstance(copy.metadata, Metadata)
    assert states(copy.metadata, FORMAT.parse_id("2"))


def test_while_metadata_waits_or_is_kept_apart_the_parent_of_the_base_holds() -> None:
    """Without a base it is the one that the store states."""
    view = view_of(stored('1-a  metadata 09:00 title "A" parent 2'), here('1-a  metadata 09:00 title "A" parent 3'))
    for kind, parentage in (
        (AsideKind.KEPT, Parentage("jp-c2", frozen=True)),
        (AsideKind.UNDONE, Parentage("jp-c2", frozen=True)),
        (AsideKind.LOCAL, Parentage("jp-c2")),
    ):
        verdict = Verdict(METADATA, 5, Outcome.ASIDE, record=AsideRecord(kind, "x", "y"))
        assert decide_parent(view, verdict) == parentage
    assert decide_parent(view, Verdict(METADATA, 9, Outcome.WAIT)) == Parentage("jp-c2", frozen=True)


def test_nonsense_may_stay_whatever_the_parent_is() -> None:
    for said, parent, stays in (
        (SAYS["nonsense"], "jp-c2", True),
        (SAYS["2"], "jp-c2", True),
        (SAYS["3"], "jp-c2", False),
    ):
        metadata = view_of(stored(f'1-a  metadata 09:00 title "A" {said}'), here()).store.metadata
        assert metadata is not None
        assert states(metadata, parent) is stays


def test_a_parent_that_the_store_alone_states() -> None:
    """It goes with the store's metadata, where the workspace's wins."""
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    for there, found in (
        (child.replace(" parent 1", ""), {"jp-c2": "jp-c1"}),
        (child.replace("parent 1", "parent 5"), {}),
        (child.replace("parent 1", "parent null"), {}),
    ):
        assert stated_alone(stored(child), here(there), {"jp-c2"}, ()) == found
    assert not stated_alone(stored(child), here(), {"jp-c1"}, ()), "another one is asked about"
    assert not stated_alone(stored(f".trash/{child}"), here(), {"jp-c2"}, ()), "the trash states nothing"
    assert not stated_alone(stored(child.replace("parent 1", "parent null")), here(), {"jp-c2"}, ())
    assert not stated_alone(stored(child.replace(" parent 1", "")), here(), {"jp-c2"}, ())
    assert not stated_alone(stored('2-b/metadata.json 09:00 "{"'), here('2-b/metadata.json 09:00 "{"'), {"jp-c2"}, ())


def test_of_several_directories_the_plan_decides_which_parent_is_at_stake() -> None:
    child, silent, root = (
        f'2-{name}  metadata 09:00 title "B" {said}  stream 09:00 [1]'
        for name, said in (("b", "parent 1"), ("c", ""), ("d", "parent null"))
    )
    assert stated_alone(stored(child, silent), here(), {"jp-c2"}, {"jp-c2"}) == {"jp-c2": "jp-c1"}
    assert not stated_alone(stored(child, silent), here(), {"jp-c2"}, ()), "the plan writes none"
    assert not stated_alone(stored(child, root), here(), {"jp-c2"}, {"jp-c2"}), "two directories state two"


STATING = '1-a  metadata 08:00 title "A" parent 2  stream 09:00 [1]'
NEWER = '1-b  metadata 10:00 title "A"  stream 09:00 [1]'


@pytest.mark.parametrize("base", ["unknown", "none", "3"])
def test_another_directory_states_the_parent_where_the_newest_lacks_it_and_none_is_known(base: str) -> None:
    for store, workspace in (((STATING, NEWER), ()), ((), (STATING, NEWER)), ((STATING, NEWER), (STATING, NEWER))):
        parentage = decide_parent(view_of(stored(*store), here(*workspace), memory_of(base)), None)
        assert parentage.parent == ("jp-c2" if base == "unknown" else NUMBERS[base])
    another = '1-c  metadata 09:00 title "A" parent 3  stream 09:00 [1]'
    view = view_of(stored(STATING, another, NEWER), here(), memory_of("unknown"))
    assert decide_parent(view, None) == Parentage("jp-c3"), "the newest that states one"
    view = view_of(stored(STATING, NEWER), here(another), memory_of("unknown"))
    assert decide_parent(view, None) == Parentage("jp-c3"), "the time is that of the directory that states it"
    view = view_of(stored(STATING, NEWER.replace('"A"', '"A" parent null')), here(), memory_of("unknown"))
    assert decide_parent(view, None) == Parentage(None), "null is stated"
    view = view_of(stored(STATING, NEWER.replace('"A"', '"A" parent raw true')), here(), memory_of("unknown"))
    assert decide_parent(view, None) == Parentage(None), "nonsense is no missing key"


def test_of_a_local_conversation_the_directory_that_stays_states_the_parent_alone() -> None:
    memory = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL)})
    view = view_of(stored('1-a  metadata 09:00 title "A"  stream 09:00 [1]'), here(STATING, NEWER), memory)
    assert decide_parent(view, None) == Parentage(None)

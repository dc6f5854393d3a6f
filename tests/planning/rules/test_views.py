"""Which copies stay and which speak, before anything is decided (docs/design/placement.md#rule-10)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, BaselineEntry, CommittedPlace, Intent, IntentKind
from reconcile.model.snapshot import METADATA, STREAM, Copy, Partition, Side
from reconcile.planning.rules.views import PLACE, Lead, SideView, View, views_of, without_speakers
from tests.support.scenarios.building import agreed_on, here, stored, unreadable, view_of
from tests.support.scenarios.pure_level import RULES

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
PARENT = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
KNOWN = agreed_on(A)


def at(path: str, line: str = A) -> str:
    """Return a line with another place."""
    return path + line.removeprefix("1-a")


def paths(copies: tuple[Copy, ...]) -> list[str]:
    return [copy.path for copy in copies]


def kept(side: SideView) -> tuple[str | None, list[str]]:
    return (side.main.path if side.main is not None else None, paths(side.stale))


def speaker(side: SideView, unit: str = STREAM) -> str:
    return side.units[unit].copy.path


def test_the_order_is_that_of_the_ids_and_of_some_only_these_are_looked_at() -> None:
    store, workspace = stored(at("10-j"), at("9-i")), here(at("3-c"))
    baseline = replace(KNOWN, agreed={"jp-c4": KNOWN.agreed["jp-c1"]})
    assert list(views_of(store, workspace, baseline, RULES)) == ["jp-c3", "jp-c4", "jp-c9", "jp-c10"]
    assert list(views_of(store, workspace, baseline, RULES, {"jp-c10", "jp-c4"})) == ["jp-c4", "jp-c10"]


def test_the_parent_that_was_agreed_on_is_known_though_no_other_checkout_knows_one() -> None:
    agreed = BaselineEntry({METADATA: "digest"}, "jp-c2", "A", None, "1-a")
    view = view_of(stored(A), here(A), Baseline(agreed={"jp-c1": agreed}))
    assert (view.known_parent, view.base_parent, view.parent_is_known) == ("jp-c2", "jp-c2", True)
    elsewhere = view_of(stored(A), here(A), Baseline(agreed={"jp-c1": agreed}, parents={"jp-c1": "jp-c3"}))
    assert (elsewhere.known_parent, elsewhere.base_parent) == ("jp-c3", "jp-c2")
    assert view_of(stored(A), here(A), Baseline(parents={"jp-c1": None})).parent_is_known
    assert not view_of(stored(A), here(A)).parent_is_known


def test_a_stream_alone_is_no_agreement_on_a_parent() -> None:
    agreed = BaselineEntry({STREAM: "digest"}, None, "A", None, "1-a")
    assert not view_of(stored(A), here(A), Baseline(agreed={"jp-c1": agreed})).parent_is_known


def test_before_the_first_run_an_absent_key_stands_for_the_parent_that_the_store_states() -> None:
    view = view_of(stored(A.replace("title", "parent 2 title")), here(A))
    assert (view.known_parent, view.base_parent) == (None, "jp-c2")
    assert view.store.digest(METADATA) == view.workspace.digest(METADATA)


def test_a_base_configuration_alone_is_a_copy_until_the_conversation_is_known() -> None:
    alone = here('1-a/base_config.json  09:00 "{}"')
    assert view_of(stored(A), alone).workspace.main is not None
    assert view_of(stored(A), alone, KNOWN).workspace.main is None


def test_a_flag_in_the_trash_makes_nothing_local() -> None:
    flagged = A.replace("title", "local title")
    assert view_of(stored(flagged), here()).local
    assert not view_of(stored(A, at(".trash/1-a", flagged)), here()).local


def test_what_is_in_the_trash_comes_in_the_order_of_its_numbers_there() -> None:
    trash = [at(f".trash/{name}") for name in ("1-a-10", "1-a", "1-a-2")]
    for workspace in (trash, [A, *trash]):
        found = view_of(stored(A), here(*workspace)).workspace.trash
        assert paths(found) == [".trash/1-a", ".trash/1-a-2", ".trash/1-a-10"]


def test_the_title_is_the_last_one_known_where_no_metadata_says_it() -> None:
    assert view_of(stored("1-a  stream 09:00 [1]"), here(), KNOWN).title == "A"
    assert view_of(stored("1-a  stream 09:00 [1]"), here()).title is None


STORES = {
    "a directory at the top": ([at("2-b/conversations/1-a"), at("1-z")], ("1-z", ["2-b/conversations/1-a"])),
    "a whole one": ([at("1-a").replace("stream 09:00 [1]", ""), at("1-z")], ("1-z", ["1-a"])),
    "the first of them": ([at("1-c"), at("1-a"), at("1-b")], ("1-a", ["1-b", "1-c"])),
    "a live one": ([at(".archive/1-a"), at("1-z")], ("1-z", [])),
    "what is in the trash is nowhere": ([at(".trash/1-a")], (None, [])),
}


@pytest.mark.parametrize(("lines", "found"), STORES.values(), ids=STORES)
def test_which_directory_of_the_store_stays(lines: list[str], found: tuple[str | None, list[str]]) -> None:
    view = view_of(stored(PARENT, *lines), here())
    assert kept(view.store) == found
    assert view.store.trashed == (found[0] is None)


LATER = A.replace("09:00", "10:00")
WORKSPACES = {
    "where it was": (KNOWN, [at("0/conversations/1-z", LATER), A], ("1-a", ["0/conversations/1-z"])),
    "a whole one": (KNOWN, [A.replace("stream 09:00 [1]", ""), at("1-z")], ("1-z", ["1-a"])),
    "the newest": (Baseline(), [A, at("1-z", LATER)], ("1-z", ["1-a"])),
    "the newest by what is managed": (
        Baseline(),
        [at("1-z"), '1-z/NOTE.md  11:00 "x"', at("1-b", LATER)],
        ("1-b", ["1-z"]),
    ),
    "the one that lies higher": (
        Baseline(),
        [at("0/conversations/1-a"), at("1-z")],
        ("1-z", ["0/conversations/1-a"]),
    ),
    "the first of them": (Baseline(), [at("1-c"), at("1-a"), at("1-b")], ("1-a", ["1-b", "1-c"])),
    "a live one; what is archived beside it is left alone": (Baseline(), [A, at(".archive/1-z", LATER)], ("1-a", [])),
    "an archived one where that is all": (Baseline(), [at(".archive/1-z")], (".archive/1-z", [])),
    "the first of those that are archived": (
        Baseline(),
        [at(".archive/1-z"), at(".archive/1-y")],
        (".archive/1-y", [".archive/1-z"]),
    ),
}


@pytest.mark.parametrize(("baseline", "lines", "found"), WORKSPACES.values(), ids=WORKSPACES)
def test_which_directory_of_the_workspace_stays(
    baseline: Baseline, lines: list[str], found: tuple[str | None, list[str]]
) -> None:
    assert kept(view_of(stored(A), here(PARENT, *lines), baseline).workspace) == found


def test_of_what_the_store_has_archived_the_archived_directory_stays_and_the_live_one_goes() -> None:
    view = view_of(stored(at(".archive/1-a")), here(at("1-z", LATER), at(".archive/1-a")))
    assert kept(view.workspace) == (".archive/1-a", ["1-z"])


def test_a_damaged_directory_is_left_for_another_one_where_the_store_cannot_mend_it() -> None:
    """Also where it was: its baseline may end while it waits to be saved."""
    damaged, whole = at("1-a").replace("stream 09:00 [1]", ""), at("1-z").replace("stream 09:00 [1]", "")
    later = whole.replace("09:00", "10:00")
    assert kept(view_of(stored(), here(damaged, later), KNOWN).workspace) == ("1-z", ["1-a"])
    assert kept(view_of(stored(A), here(damaged, later), KNOWN).workspace) == ("1-a", ["1-z"])
    assert kept(view_of(stored(), here(A, at("1-z", LATER)), KNOWN).workspace) == ("1-a", ["1-z"])


@pytest.mark.parametrize("below", ["metadata 09:00", "stream 09:00 [1]", "metadata 09:00  stream 09:00 [1]"])
def test_a_directory_without_files_of_its_own_is_there_while_others_lie_in_it(below: str) -> None:
    """JP would trash them with it; but nothing is published because of an empty directory."""
    note, inside = '1-a/NOTE.md  09:00 "x"', f"1-a/conversations/3-c/conversations/4-d  {below}"
    sides = stored(A), here(note, inside, PARENT)
    assert kept(view_of(*sides, KNOWN).workspace)[0] == "1-a"
    for baseline, main in (
        (replace(KNOWN, intents={"jp-c1": Intent(IntentKind.PROJECTED)}), "1-a"),
        (replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)}), None),
        (replace(KNOWN, intents={"jp-c1": Intent(IntentKind.REMOVED)}), None),
        (Baseline(), None),
    ):
        found = view_of(*sides, baseline).workspace
        assert (kept(found)[0], paths(found.bare_directories)) == (main, [] if main else ["1-a"])
    assert kept(view_of(stored(PARENT), sides[1], KNOWN).workspace)[0] is None
    assert kept(view_of(stored(A), here(note, PARENT), KNOWN).workspace)[0] is None


def test_what_was_carried_into_the_trash_speaks_but_is_not_there() -> None:
    carried, thrown = at(".trash/2-b/conversations/1-a"), at(".trash/1-z")
    found = view_of(stored(A), here(carried, thrown, PARENT)).workspace
    assert (kept(found), speaker(found), found.bare_directories) == ((None, []), ".trash/2-b/conversations/1-a", ())
    assert not view_of(stored(A), here(thrown, PARENT)).workspace.units
    bare_directory = here('2-b/conversations/1-a/NOTE.md  09:00 "x"', PARENT)
    assert not view_of(stored(A), bare_directory).workspace.units
    found = view_of(stored(A), here(carried, A)).workspace
    assert (kept(found), speaker(found), found.bare_directories) == (("1-a", []), "1-a", ())


def stream_of(line: str) -> str:
    return str(view_of(stored(line), here()).store.units[STREAM].digest)


NEW, OLD = A.replace("09:00 [1]", "09:10 [1 2]"), A.replace("09:00 [1]", "10:00 [5]")
OLDER = replace(KNOWN, history={("jp-c1", STREAM): (stream_of(OLD), stream_of(A))})


def test_the_newest_edit_speaks_and_others_are_its_rivals() -> None:
    def of(*lines: str, baseline: Baseline = OLDER) -> tuple[str, list[str]]:
        side = view_of(stored(A), here(*lines), baseline).workspace
        return speaker(side), [unit.copy.path for unit in side.rivals if unit.name == STREAM]

    newest = A.replace("09:00 [1]", "11:00 [1 3]")
    assert of(A, at("1-y", NEW)) == ("1-y", [])
    assert of(at("1-y", NEW), at("1-z", newest), A) == ("1-z", ["1-y"])
    assert of(A.replace("09:00 [1]", "11:00 [1]"), at("1-y", NEW)) == ("1-y", [])
    assert of(at("1-y", NEW), at("1-z", NEW)) == ("1-y", [])
    assert of(A, at("1-z", OLD)) == ("1-a", [])
    assert of(at("1-z", OLD), at("1-y", OLD.replace("10:00", "08:00"))) == ("1-z", [])
    broken = ["1-z  metadata 09:00", '1-z/events.json  12:00 "["']
    assert of(A, *broken) == ("1-a", [])
    assert of(A, *broken, baseline=Baseline()) == ("1-a", [])
    replaced = replace(KNOWN, history={("jp-c1", STREAM): (stream_of(A), stream_of(NEW))})
    assert of(A, at("1-y", NEW), baseline=replaced) == ("1-y", [])
    both_old = replace(KNOWN, history={("jp-c1", STREAM): (stream_of(OLD), stream_of(A), "newest")})
    assert of(A, at("1-z", OLD.replace("10:00", "08:00")), baseline=both_old) == ("1-a", [])
    long = replace(KNOWN, history={("jp-c1", STREAM): ("first", stream_of(OLD), stream_of(A))})
    assert of(A, at("1-z", OLD), baseline=long) == ("1-a", [])


def test_a_side_may_be_told_to_let_the_directory_that_stays_speak() -> None:
    newest = at("1-z", A.replace("09:00", "11:00").replace('"A"', '"Z"').replace("[1]", "[1 2]"))
    view = view_of(stored(A), here(A, newest), KNOWN)
    assert (speaker(view.workspace), speaker(view.workspace, METADATA)) == ("1-z", "1-z")
    without: View = without_speakers(view, {STREAM})
    assert (speaker(without.workspace), speaker(without.workspace, METADATA)) == ("1-a", "1-z")


def test_what_nobody_can_read_counts_where_it_speaks_or_lies_in_the_directory_that_stays() -> None:
    broken = ["1-z  metadata 09:00", '1-z/events.json  12:00 "["']
    side = view_of(stored(), here("1-a  metadata 13:00", *broken)).workspace
    assert (kept(side)[0], {name: unit.copy.path for name, unit in side.faults.items()}) == ("1-a", {STREAM: "1-z"})
    assert side.faulty(STREAM) is side.faults[STREAM]
    half = ('1-a/events.json  12:00 "["', at("1-z"), '1-z/metadata.json  12:00 "{"')
    side = view_of(stored(), here("1-a  metadata 13:00", *half), KNOWN).workspace
    assert (kept(side)[0], speaker(side)) == ("1-a", "1-z")
    assert {name: unit.copy.path for name, unit in side.faults.items()} == {STREAM: "1-a"}
    assert side.faulty(STREAM) is side.faults[STREAM]
    assert side.faulty(METADATA) is None
    assert not view_of(stored(), here(A, *broken)).workspace.faults


def test_what_is_invalid_in_the_store_alone() -> None:
    """A file that can't be read is a problem of the side."""
    store = stored("1-a  metadata 13:00", '1-a/events.json  12:00 "["')
    (found,) = view_of(store, here()).invalid_in_store_alone()
    assert (found[0], found[1].path, found[2]) == (STREAM, "1-a", store.copies[0].stream)
    assert not view_of(store, here("1-a  metadata 13:00")).invalid_in_store_alone()
    assert not view_of(unreadable(stored(A), "1-a/events.json"), here()).invalid_in_store_alone()


def test_what_leaves_or_is_in_a_remote_is_viewed_like_any_other() -> None:
    local = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert view_of(stored(A), here(A), local).local
    assert not views_of(stored(A), here(A), local, RULES, leaving={"jp-c1"})["jp-c1"].local
    assert not view_of(stored(A), here(A), replace(local, is_of_remote=True)).local


NOTE = '1-a/NOTE.md  09:00 "n"'
ORDERS = {
    "all": ((A, NOTE), ["extra:NOTE.md", METADATA, STREAM]),
    "a note and metadata": (("1-a  metadata 09:00", NOTE), ["extra:NOTE.md", METADATA]),
    "a note and a stream": (("1-a  stream 09:00 [1]", NOTE), ["extra:NOTE.md", STREAM]),
    "two directories": ((A, at("1-z"), NOTE), ["extra:NOTE.md", METADATA, STREAM]),
}


@pytest.mark.parametrize(("lines", "names"), ORDERS.values(), ids=ORDERS)
def test_units_come_in_one_order(lines: tuple[str, ...], names: list[str]) -> None:
    for side in (view_of(stored(*lines), here()).store, view_of(stored(), here(*lines)).workspace):
        assert list(side.units) == names


LIVE, ARCHIVED = "1-a", ".archive/1-a"
LEADS = {
    "the workspace's was changed by a later commit": (LIVE, Side.STORE, Lead.WORKSPACE),
    "the workspace's was changed by an earlier one": (LIVE, Side.WORKSPACE, Lead.NEITHER),
    "the workspace's was changed, and the commits don't say": (LIVE, None, Lead.NEITHER),
    "the store's was changed, and a commit does that too": (ARCHIVED, Side.WORKSPACE, Lead.NEITHER),
    "the store's was changed, after the commits": (ARCHIVED, Side.STORE, Lead.STORE),
    "the store's was changed, and no commit knows that": (ARCHIVED, None, Lead.STORE),
    "nothing was agreed on, and the workspace's is later": ("", Side.STORE, Lead.NEITHER),
    "nothing was agreed on, and the workspace's is earlier": ("", Side.WORKSPACE, Lead.NEITHER),
}


@pytest.mark.parametrize(("agreed", "older", "lead"), LEADS.values(), ids=LEADS)
@pytest.mark.parametrize("swapped", [False, True], ids=["archived here", "live here"])
def test_who_says_whether_it_is_archived(agreed: str, older: Side | None, lead: Lead, swapped: bool) -> None:
    ours, theirs = (ARCHIVED, LIVE) if swapped else (LIVE, ARCHIVED)
    base = {"": "", LIVE: ours, ARCHIVED: theirs}[agreed]
    known = Baseline(agreed={"jp-c1": BaselineEntry({}, None, None, None, base)} if base else {})
    store, workspace = stored(at(ours)), here(at(theirs))
    found = replace(known, committed={"jp-c1": CommittedPlace(theirs, older, "c1")})
    view = view_of(store, workspace, found)
    assert (view.lead, view.has_split_archive) == (lead, True)
    assert view.archived is (swapped if lead is Lead.STORE else not swapped)
    assert view.archived_in_store is (not swapped if lead is Lead.WORKSPACE else swapped)
    elsewhere = replace(known, committed={"jp-c1": CommittedPlace("9-z", older, "c1")})
    for baseline in (known, elsewhere):
        assert view_of(store, workspace, baseline).lead is Lead.STORE
    partition = Partition.ARCHIVE if ours == ARCHIVED else Partition.LIVE
    assert view.split_record == AsideRecord(AsideKind.PLACED, partition, theirs)
    stays = replace(known, asides={("jp-c1", PLACE): view.split_record})
    assert view_of(store, workspace, stays).lead is Lead.NEITHER
    other = AsideRecord(AsideKind.PLACED, view.split_record.store, "9-z")
    after = Lead.WORKSPACE if base and older is Side.STORE else Lead.NEITHER
    assert view_of(store, workspace, replace(found, asides={("jp-c1", PLACE): other})).lead is after
    moved = AsideRecord(AsideKind.PLACED, None, "9-z")
    assert view_of(store, workspace, replace(found, asides={("jp-c1", PLACE): moved})).lead is lead
    for past in (("c0", "c1", "c2"), ("c0+c1", "c2")):
        replaced = replace(found, history={("jp-c1", PLACE): past})
        assert view_of(store, workspace, replaced).lead is (Lead.NEITHER if lead is Lead.WORKSPACE else lead)
    again = replace(found, committed={"jp-c1": CommittedPlace(theirs, older, "c1+c3")}, history=replaced.history)
    assert view_of(store, workspace, again).lead is lead
    whole = replace(again, committed={"jp-c1": CommittedPlace(theirs, older, "c0+c1")})
    assert view_of(store, workspace, whole).lead is (Lead.NEITHER if lead is Lead.WORKSPACE else lead)
    local = replace(found, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert view_of(store, workspace, local).lead is Lead.STORE
    same = view_of(store, here(at(ours)), found)
    assert (same.lead, same.has_split_archive, same.archived) == (Lead.STORE, False, swapped)
    for alone in (view_of(store, here(), found), view_of(stored(), workspace, found)):
        assert (alone.lead, alone.has_split_archive) == (Lead.STORE, False)
    assert view_of(stored(), workspace, found).archived is not swapped
    assert not view_of(stored(), workspace, found).archived_in_store

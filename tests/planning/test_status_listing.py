"""How conversations stand, in one word: what `status` lists."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind, PendingRequest, Verb
from reconcile.model.options import Diverged, OnConflict
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA
from reconcile.planning.diagnosis import empty_directories
from reconcile.planning.status_listing import StatusLine, status_lines
from tests.support.scenarios.building import Lines, agreed_on, context_of, here, plan_of, stored, view_of

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
NOTE = '1-a/NOTE.md  09:00 "x"'
BESIDE = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
MORE = ONE.replace("[1]", "[1 2]")
KNOWN, FRESH = agreed_on(ONE, BESIDE), agreed_on(BESIDE)


def found(
    store: Lines,
    workspace: Lines,
    baseline: Baseline,
    policy: Policy | None = None,
    busy: dict[str, str] | None = None,
    notices: dict[str, tuple[str, ...]] | None = None,
) -> dict[str, StatusLine]:
    sides = stored(*store, BESIDE), here(*workspace, BESIDE)
    context, plan = context_of(*sides, baseline, policy), plan_of(*sides, baseline, policy)
    empty = empty_directories(*sides)
    return {each.conversation: each for each in status_lines(context, plan, busy or {}, notices or {}, empty)}


ROWS: dict[str, tuple[Lines, Lines, Baseline, str, bool]] = {
    "in sync": ([ONE], [ONE], KNOWN, "in-sync", True),
    "new in the workspace": ([], [ONE], FRESH, "external", False),
    "in the store only": ([ONE], [], FRESH, "available", True),
    "archived": ([f".archive/{ONE}"], [], FRESH, "archived", True),
    "removed in the workspace": ([ONE], [], KNOWN, "removed", True),
    "removed in the store": ([], [ONE], KNOWN, "removed-in-store", False),
    "an old copy of what was removed": (
        [],
        [ONE],
        replace(FRESH, tombstones={"jp-c1": frozenset(KNOWN.agreed["jp-c1"].units.values())}),
        "removed-before",
        True,
    ),
    "edited in the workspace": ([ONE], [MORE], KNOWN, "newer-in-workspace", False),
    "edited in the store": ([MORE], [ONE], KNOWN, "newer-in-store", False),
    "each unit edited on another side": ([MORE], [ONE.replace('"A"', '"A" parent 9')], KNOWN, "newer-on-both", False),
    "an edited title beside an older version": (
        [ONE],
        [ONE.replace("09:00 [1]", "09:30 []").replace('09:00 title "A"', '09:30 title "B"')],
        KNOWN,
        "behind",
        False,
    ),
    "an older version": ([ONE], [ONE.replace("09:00 [1]", "09:30 []")], KNOWN, "behind", True),
    "directories whose names differ": ([ONE.replace("1-a", "1-z")], [ONE], KNOWN, "in-sync", True),
    "nested in the store": ([f"8-h/conversations/{ONE}"], [ONE], KNOWN, "to-move", False),
    "a second directory": ([ONE], [ONE, ONE.replace("1-a", "1-z")], KNOWN, "to-remove-stale", False),
    "broken": ([ONE], ["1-a  metadata 09:00", '1-a/events.json  09:00 "{"'], KNOWN, "invalid", False),
    "local, and here": ([ONE.replace('"A"', '"A" local')], [ONE], KNOWN, "local-present", True),
    "local, here, and broken": (
        [ONE.replace('"A"', '"A" local')],
        ["1-a  metadata 09:00", '1-a/events.json  09:00 "{"'],
        KNOWN,
        "invalid",
        False,
    ),
    "local, and not here": ([ONE.replace('"A"', '"A" local')], [], FRESH, "local", True),
    "a plain file where its children go": (
        [ONE, '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'],
        [ONE, '1-a/conversations  09:00 "x"', '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'],
        FRESH,
        "in-sync",
        True,
    ),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "word", "settled"), ROWS.values(), ids=ROWS)
def test_word(store: Lines, workspace: Lines, baseline: Baseline, word: str, settled: bool) -> None:
    standing = found(store, workspace, baseline)["jp-c1"]
    assert (standing.word, standing.settled) == (word, settled)


DETAILS = {
    "in the store only": ([ONE], [], FRESH),
    "archived in the store": ([f".archive/{ONE}"], [], FRESH),
    "not copied to workspaces": ([ONE.replace('"A"', '"A" local')], [], FRESH),
    "deleted from this workspace; restore it: reconcile project jp-c1": ([ONE], [], KNOWN),
    "": ([ONE], [ONE], KNOWN),
}


@pytest.mark.parametrize(("detail", "sides"), DETAILS.items())
def test_what_is_settled_says_why_it_is_as_it_is(detail: str, sides: tuple[Lines, Lines, Baseline]) -> None:
    standing = found(*sides)["jp-c1"]
    assert (standing.detail, standing.settled) == (detail, True)


DELETED = "deleted from this workspace; restore it: reconcile project jp-c1"
HERE, THERE = "workspace:1-a: an empty directory", "store:1-a: an empty directory"
EMPTY: dict[str, tuple[Lines, Lines, Baseline, str, str]] = {
    "here": ([], ["1-a/"], FRESH, "empty", HERE),
    "in the store": (["1-a/"], [], FRESH, "empty", THERE),
    "on both sides": (["1-a/"], ["1-a/"], FRESH, "empty", f"{THERE}; {HERE}"),
    "where it was removed": ([ONE], ["1-a/"], KNOWN, "removed", f"{DELETED}; {HERE}"),
    "beside an archived one": ([f".archive/{ONE}"], ["1-a/"], FRESH, "archived", f"archived in the store; {HERE}"),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "word", "detail"), EMPTY.values(), ids=EMPTY)
def test_an_empty_directory_is_named(
    store: Lines, workspace: Lines, baseline: Baseline, word: str, detail: str
) -> None:
    standing = found(store, workspace, baseline)["jp-c1"]
    assert (standing.word, standing.detail, standing.settled) == (word, detail, False)


def test_an_empty_directory_that_is_filled_again_is_no_matter() -> None:
    standing = found(["1-a/"], [ONE], KNOWN)["jp-c1"]
    assert (standing.word, standing.detail) == ("newer-in-workspace", Reason.INCOMPLETE.words)


def test_what_is_archived_lies_in_no_tree() -> None:
    assert found([f".archive/{ONE}"], [], FRESH)["jp-c1"].depth == 0


def test_what_is_archived_is_listed_after_what_is_gone_too() -> None:
    beside = f".archive/{ONE.replace('1-a', '2-b')}"
    assert list(found([beside], [], KNOWN)) == ["jp-c8", "jp-c2"]


def test_what_was_removed_says_so() -> None:
    note = f'{ONE.partition(" ")[0]}/NOTE.md  09:00 "x"'
    standing = found([], [ONE, note, ONE.replace("1-a", "1-z")], agreed_on(ONE, note, BESIDE))["jp-c1"]
    assert (standing.word, standing.detail) == ("removed-in-store", Reason.REMOVED_IN_STORE.words)


def test_what_a_selection_leaves_out_stands_as_if_nothing_were_to_do() -> None:
    """There is no plan for it."""
    only = Policy(only=frozenset({"jp-c8"}))
    new, removed = found([], [ONE], FRESH, only)["jp-c1"], found([], [ONE], KNOWN, only)["jp-c1"]
    assert [(each.word, each.settled) for each in (new, removed)] == [("external", True), ("removed-in-store", True)]


def test_what_was_moved_into_the_trash_is_found_there() -> None:
    standing = found([ONE], [f".trash/{ONE}"], KNOWN)["jp-c1"]
    assert standing.word == "removed"
    assert standing.detail == "moved to workspace:.trash/1-a; restore it: reconcile project jp-c1"
    notes = plan_of(stored(ONE, BESIDE), here(f".trash/{ONE}", BESIDE), KNOWN).notes
    assert ["moved to workspace:.trash/1-a" in note.message for note in notes] == [True]


def test_of_several_directories_in_the_trash_the_last_is_named() -> None:
    trash = [f".trash/{ONE}", f".trash/{ONE.replace('1-a', '1-a-1')}"]
    standing = found([ONE], trash, KNOWN)["jp-c1"]
    assert standing.detail.startswith("moved to workspace:.trash/1-a-1; ")
    assert standing.settled


def test_a_directory_in_the_trash_is_told_of_what_was_removed_here_alone() -> None:
    thrown = [ONE, f".trash/{ONE.replace('1-a', '1-a-1')}"]
    assert found([ONE], thrown, KNOWN)["jp-c1"].word == "in-sync"


def test_what_is_on_neither_side_is_not_listed() -> None:
    last = ONE.replace("1-a", "9-i")
    assert list(found([last], [last], agreed_on(ONE, last, BESIDE))) == ["jp-c8", "jp-c9"]


def test_an_extra_that_goes_is_no_removal() -> None:
    assert found([ONE], [ONE, NOTE], agreed_on(ONE, NOTE, BESIDE))["jp-c1"].word == "to-remove-stale"


def test_diverged_and_configured_to_ask_is_a_conflict() -> None:
    workspace = [ONE.replace("[1]", "[1 3]")]
    standing = found([MORE], workspace, KNOWN, Policy(diverged=Diverged.HOLD))["jp-c1"]
    assert (standing.word, standing.settled) == ("conflict", False)


def test_what_is_held_for_another_reason_is_held() -> None:
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    standing = found([ONE, child], [ONE, '1-a/conversations  09:00 "x"', child], agreed_on(ONE, BESIDE))["jp-c2"]
    assert (standing.word, standing.settled) == ("held", False)
    assert "is not a directory" in standing.detail


@pytest.mark.parametrize(("kind", "word"), [(AsideKind.KEPT, "kept"), (AsideKind.UNDONE, "undone")])
def test_what_was_left_as_it_is(kind: AsideKind, word: str) -> None:
    retitled = ONE.replace('"A"', '"C"')
    view = view_of(stored(ONE), here(retitled))
    record = AsideRecord(kind, view.store.raw(METADATA), view.workspace.raw(METADATA))
    standing = found([ONE], [retitled], replace(KNOWN, asides={("jp-c1", METADATA): record}))["jp-c1"]
    assert (standing.word, standing.settled) == (word, True)


def test_a_directory_that_somebody_moved_is_displaced() -> None:
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    baseline = agreed_on(ONE, f"1-a/conversations/{child}", BESIDE)
    assert found([ONE, child], [ONE, child], baseline)["jp-c2"].word == "displaced"


def test_a_child_that_went_with_its_parent_is_waiting_below_it() -> None:
    child = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    baseline = agreed_on(ONE, f"1-a/conversations/{child}", BESIDE)
    standing = found([ONE, child], [], baseline)["jp-c2"]
    assert (standing.word, standing.detail, standing.depth) == ("waiting", "restored together with jp-c1", 1)
    assert standing.settled


def test_a_lock_comes_before_everything_else() -> None:
    standing = found([ONE], [MORE], KNOWN, busy={"jp-c1": "held by process 7"})["jp-c1"]
    assert (standing.word, standing.detail, standing.settled) == ("busy", "held by process 7", False)


def test_edits_on_both_sides_are_a_conflict_before_a_run_decides_it() -> None:
    ours, theirs = (ONE.replace('09:00 title "A"', f'{hour}:00 title "{hour}"') for hour in (10, 11))
    holds = Policy(conflict=OnConflict.HOLD)
    asks = "the next run asks at a terminal, or takes the workspace's (newer)"
    for policy, way in ((None, asks), (holds, "blocked")):
        standing = found([ours], [theirs], KNOWN, policy)["jp-c1"]
        assert (standing.word, standing.settled) == ("conflict", False)
        assert "metadata (title): store 2025-01-02 10:00:00Z; workspace 2025-01-02 11:00:00Z" in standing.detail
        assert way in standing.detail


def test_each_conflict_of_a_conversation_is_a_detail_of_its_own() -> None:
    ours, theirs = (ONE.replace('09:00 title "A"', f'{hour}:00 title "{hour}"') for hour in (10, 11))
    standing = found([ours, NOTE.replace("09", "10")], [theirs, NOTE.replace('"x"', '"y"')], KNOWN)["jp-c1"]
    assert [each.partition(": ")[0] for each in standing.details] == ["metadata (title)", "NOTE.md"]
    assert standing.detail == "; ".join(standing.details)


def test_a_decided_conflict_is_a_notice() -> None:
    seen = found([ONE], [ONE], KNOWN, notices={"jp-c1": ("it was decided",)})["jp-c1"]
    assert (seen.word, seen.detail, seen.settled) == ("in-sync", "it was decided", True)
    assert found([ONE], [MORE], KNOWN, notices={"jp-c1": ("it was decided",)})["jp-c1"].word == "newer-in-workspace"


RETITLED = tuple(ONE.replace('"A"', f'"{title}"') for title in "BC")


def test_what_nobody_can_read_comes_before_a_conflict() -> None:
    broken = [RETITLED[1].partition("  stream")[0], '1-a/events.json  09:00 "["']
    line = found([RETITLED[0]], broken, KNOWN)["jp-c1"]
    assert (line.word, line.settled) == ("invalid", False)


def test_an_older_version_beside_a_conflict_is_told_after_it() -> None:
    ours, theirs = RETITLED[0].replace("[1]", "[1 2]"), RETITLED[1].replace("stream 09:00", "stream 09:30")
    known = agreed_on(MORE, BESIDE)
    line = found([ours], [theirs], known)["jp-c1"]
    assert line.word == "conflict"
    assert line.detail.startswith("metadata (title): ")
    assert line.detail.endswith("; the workspace has an older version; the store keeps the newer one")


def test_a_newer_version_in_the_store_is_told_before_the_older_metadata() -> None:
    older = ONE.replace('"A"', '"Old"')
    history = tuple(view_of(stored(line), here()).store.digest(METADATA) or "" for line in (older, ONE))
    known = replace(KNOWN, history={**KNOWN.history, ("jp-c1", METADATA): history})
    line = found([MORE], [older], known)["jp-c1"]
    assert (line.word, line.settled) == ("behind", False)
    assert line.detail.startswith(f"events: {Reason.EDITED_STORE.words}; the workspace has an older version; ")


def test_an_empty_directory_beside_what_the_workspace_has_changes_no_word() -> None:
    line = found(["1-a/"], [ONE], KNOWN, Policy(only=frozenset({"jp-c8"})))["jp-c1"]
    assert (line.word, line.detail) == ("in-sync", THERE)
    beside = found([ONE], [ONE, "1-b/"], KNOWN)["jp-c1"]
    assert (beside.word, beside.detail) == ("in-sync", "workspace:1-b: an empty directory")


def test_a_request_that_waits_is_told_with_what_it_waits_for() -> None:
    """What blocks the conversation comes first; what is set aside does not."""
    waits = {("jp-c1", Verb.LOCAL): PendingRequest(run="r1", why="its directory can't be read")}
    command = "`local jp-c1` waits since run r1"
    known = replace(KNOWN, waiting=waits)
    line = found([ONE], [ONE], known)["jp-c1"]
    assert (line.word, line.detail, line.settled) == ("requested", f"{command}: its directory can't be read", False)
    behind = found([ONE], [ONE.replace("09:00 [1]", "09:30 []")], known)["jp-c1"]
    assert (behind.word, behind.detail) == ("requested", line.detail)
    blocked = found([ONE], ["1-a  metadata 09:00", '1-a/events.json  09:00 "["'], known)["jp-c1"]
    assert (blocked.word, blocked.detail.endswith(f"; {command}")) == ("invalid", True)


def test_of_what_is_not_settled_no_decided_conflict_is_told() -> None:
    notices: dict[str, tuple[str, ...]] = {"jp-c1": ("a conflict was decided", "another one was")}
    assert found([ONE], [ONE], KNOWN, notices=notices)["jp-c1"].details == notices["jp-c1"]
    assert "decided" not in found([ONE], [MORE], KNOWN, notices=notices)["jp-c1"].detail


def test_from_an_emptied_workspace_everything_is_available() -> None:
    sides = stored(ONE, BESIDE), here()
    context, plan = context_of(*sides, KNOWN), plan_of(*sides, KNOWN)
    line = next(each for each in status_lines(context, plan, {}, {}) if each.conversation == "jp-c1")
    assert (line.word, line.detail, line.settled) == ("available", "in the store only", True)
    local = replace(KNOWN, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    lines = status_lines(context_of(*sides, local), plan_of(*sides, local), {}, {})
    assert [each.word for each in lines if each.conversation == "jp-c1"] == ["local"]
    asked = replace(FRESH, intents={"jp-c1": Intent(IntentKind.PROJECTED)})
    assert found([ONE], [], asked, Policy(only=frozenset({"jp-c8"})))["jp-c1"].word == "projected"


def test_a_conflict_that_is_held_is_told_once() -> None:
    line = found([RETITLED[0]], [RETITLED[1]], KNOWN, Policy(conflict=OnConflict.HOLD))["jp-c1"]
    assert (line.word, "both sides changed" in line.detail) == ("conflict", False)


def test_a_private_one_that_is_here_says_so_with_its_state() -> None:
    local, copy_here = ONE.replace('"A"', '"A" local'), "marked local, but this checkout has a copy"
    older = found([local], [local.replace("09:00 [1]", "09:30 []")], agreed_on(local, BESIDE))["jp-c1"]
    assert older.word == "local-present"
    assert older.detail == f"{copy_here}; the workspace has an older version; the store keeps the newer one"
    left_out = found([local], [ONE], KNOWN, Policy(only=frozenset({"jp-c8"})))["jp-c1"]
    assert (left_out.word, left_out.detail) == ("local-present", f"{copy_here}; not copied to workspaces")


def test_another_end_on_one_side_that_is_held_is_a_conflict() -> None:
    line = found([ONE], [ONE.replace("[1]", "[2]")], KNOWN, Policy(diverged=Diverged.HOLD))["jp-c1"]
    assert (line.word, line.detail) == ("conflict", Reason.DIVERGED_HELD.words)

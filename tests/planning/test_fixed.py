"""Records with fixed places and derived data, on the example of a fourth format (docs/examples/notes.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, BaselineEntry, Intent, IntentKind, WorldState
from reconcile.model.format import DerivedRepair
from reconcile.model.options import Missing, Prefer, Take
from reconcile.model.past_run import PastRun
from reconcile.model.plan import Heading, Kind
from reconcile.model.policy import LocalRequest, Policy, ProjectRequest, RemoveRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Fault, Foreign, Problem, Side
from reconcile.model.units import Rules
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.decide import decide
from reconcile.planning.filters import without_moving
from reconcile.planning.planner import make_plan
from reconcile.planning.requests.undo import plan_undo
from reconcile.planning.rules.presence import Goal, Presence, missing_side
from reconcile.planning.rules.views import views_of
from reconcile.planning.steps.derived import due_first, with_repairs
from tests.support.formats.notes import FORMAT, HOUR, RULES, carried_out, notes, side
from tests.support.scenarios.building import quiet_plan
from tests.support.scenarios.memories import Memories

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Snapshot

Files = dict[str, bytes]
NOW = 20 * HOUR
SHOPPING: Files = {"shopping.md": b"bread\n"}
BOTH: Files = {**SHOPPING, "INDEX": b"shopping: bread\n"}


class Shared(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same where the index is a record like the others, of which only a part is derived."""

    def is_derived(self, conversation: str) -> bool:  # noqa: ARG002
        return False


SHARED = Rules(Shared(), RULES.digest)


class World:
    """Two sides as files, and what is remembered; `run` does what a plan says."""

    def __init__(self, store: Files, workspace: Files, rules: Rules = RULES) -> None:
        self.rules = rules
        self.files = {Side.STORE: dict(store), Side.WORKSPACE: dict(workspace)}
        self.times: dict[Side, int] = {Side.STORE: 9, Side.WORKSPACE: 9}
        self.memories = Memories()
        self.busy = False
        self.policy = Policy()

    @property
    def baseline(self) -> Baseline:
        """What is remembered."""
        return self.memories.of("workspace")

    def plan(self) -> Plan:
        store, workspace = self._sides()
        return make_plan(store, workspace, self.baseline, self.policy, self.rules, NOW)

    def run(self) -> list[str]:
        """Carry a plan out, remember, and return its steps; a second run must find nothing to do."""
        plan = self.plan()
        files = {which: {p: (c, self.times[which] * HOUR) for p, c in self.files[which].items()} for which in Side}
        carried_out(plan, files)
        self.files = {which: {path: content for path, (content, _) in files[which].items()} for which in Side}
        store, workspace = self._sides()
        self.memories.remember("workspace", update_baseline(store, workspace, self.baseline, plan, self.rules))
        again = replace(self.policy, decisions={}, mend=frozenset())
        after = make_plan(store, workspace, self.baseline, again, self.rules, NOW)
        assert plan.held or not after.actions, after.actions
        return said(plan)

    def _sides(self) -> tuple[Snapshot, Snapshot]:
        return (
            side(Side.STORE, self.files[Side.STORE], self.times[Side.STORE]),
            side(Side.WORKSPACE, self.files[Side.WORKSPACE], self.times[Side.WORKSPACE], busy=self.busy),
        )


def said(plan: Plan) -> list[str]:
    return [f"{a.kind} {a.target} {a.reason.value}" for a in plan.actions]


def in_sync(files: Mapping[str, bytes], rules: Rules = RULES) -> World:
    world = World({}, dict(files), rules)
    world.run()
    derived = {} if rules is SHARED else {"INDEX": world.files[Side.WORKSPACE]["INDEX"]}
    assert world.files[Side.STORE] | derived == world.files[Side.WORKSPACE]
    return world


def test_what_is_in_the_workspace_is_saved_and_what_is_derived_is_made_first() -> None:
    world = World({}, {**SHOPPING, "trip/map.txt": b"x", "strange": b"?", "half.tmp": b"?"})
    assert world.run() == [
        "rebuild workspace:INDEX rebuilt",
        "copy store:shopping.md external",
        "copy store:trip external",
    ]
    assert world.files[Side.STORE] == {**SHOPPING, "trip/map.txt": b"x"}
    assert world.files[Side.WORKSPACE]["INDEX"] == BOTH["INDEX"]


def test_nothing_to_do_is_told_at_a_glance() -> None:
    world = in_sync({**BOTH, "trip/map.txt": b"x"})
    plan = world.plan()
    assert plan.quiet
    assert plan.states == (("derived", 1), ("in-sync", 2))


@pytest.mark.parametrize("change", ["lost", "asked", "invalid", "gone", "other"])
def test_what_differs_is_not_quiet(change: str) -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    if change == "lost":
        world.memories = Memories()
    elif change == "asked":
        world.memories.local["log"] = Intent(IntentKind.LOCAL)
    elif change == "invalid":
        world.files[Side.STORE]["log"] = b"\xff"
    elif change == "gone":
        del world.files[Side.WORKSPACE]["log"]
    else:
        world.files[Side.STORE]["log"] = b"2\n"
    assert not world.plan().quiet


def test_what_counts_as_invalid_by_now_is_not_quiet() -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    store, workspace = side(Side.STORE, world.files[Side.STORE]), side(Side.WORKSPACE, world.files[Side.WORKSPACE])
    assert quiet_plan(store, workspace, world.baseline, Policy(), RULES) is not None
    fault = Fault("", "what was fine once", "something else")
    stricter = replace(store, copies=tuple(replace(copy, metadata=fault) for copy in store.copies))
    assert quiet_plan(stricter, workspace, world.baseline, Policy(), RULES) is None


def test_what_another_checkout_has_saved_comes_here() -> None:
    world = in_sync(BOTH)
    world.files[Side.STORE] |= {"milk.md": b"two\n", "trip/map.txt": b"x"}
    assert world.run() == [
        "project workspace:milk.md shared",
        "project workspace:trip shared",
        "rebuild workspace:INDEX rebuilt",
    ]
    assert world.files[Side.WORKSPACE] == {**world.files[Side.STORE], "INDEX": b"milk: two\nshopping: bread\n"}


class Dated(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same where a workspace's copy has a time of its own."""

    def time_here(self, mtime_ns: int, now_ns: int) -> int:
        return mtime_ns + 2 * now_ns


def test_a_format_may_say_which_time_a_copy_has_here() -> None:
    rules, now_ns = Rules(Dated(), RULES.digest), HOUR
    asked = Policy(missing=Missing.REPROJECT)
    plan = make_plan(side(Side.STORE, SHOPPING), side(Side.WORKSPACE, {}), Baseline(), asked, rules, now_ns)
    times = {write.mtime_ns for action in plan.actions if action.kind is Kind.PROJECT for write in action.writes}
    assert times == {9 * HOUR + 2 * now_ns}


def test_what_is_derived_in_a_part_of_a_record_is_made_again_on_both_sides() -> None:
    world = in_sync(BOTH, SHARED)
    world.files[Side.STORE] |= {"milk.md": b"two\n"}
    assert world.run() == [
        "project workspace:milk.md shared",
        "rebuild workspace:INDEX rebuilt",
        "rebuild store:INDEX rebuilt",
    ]
    assert world.files[Side.STORE] == world.files[Side.WORKSPACE]
    world.files[Side.WORKSPACE]["shopping.md"] = b"milk\n"
    assert world.run() == [
        "rebuild workspace:INDEX rebuilt",
        "copy store:INDEX edited-workspace",
        "copy store:shopping.md edited-workspace",
    ]


def test_checkouts_with_other_records_do_not_undo_each_others_index() -> None:
    world = in_sync({**BOTH, "milk.md": b"two\n"})
    del world.files[Side.WORKSPACE]["milk.md"]
    assert world.run() == ["rebuild workspace:INDEX rebuilt"]
    assert world.run() == []


def test_what_is_derived_waits_for_all_that_it_follows_from() -> None:
    world = in_sync(BOTH)
    world.files[Side.STORE] |= {"milk.md": b"two\n"}
    world.files[Side.WORKSPACE] |= {"trip/map.txt": b"x"}
    copy, project, rebuild = world.plan().actions
    assert (copy.kind, rebuild.needs) == (Kind.COPY, (project.id,))


def test_a_file_that_another_checkout_has_put_beside_others_comes_too_and_one_that_was_removed_stays_so() -> None:
    world = in_sync({**BOTH, "trip/map.txt": b"x", "trip/old.txt": b"o"})
    world.files[Side.STORE]["trip/tickets.txt"] = b"t"
    del world.files[Side.WORKSPACE]["trip/old.txt"]
    assert world.run() == ["project workspace:trip/tickets.txt shared"]
    assert "trip/old.txt" in world.files[Side.STORE]
    assert world.run() == []


def test_a_record_that_was_removed_here_stays_in_the_store() -> None:
    world = in_sync({**BOTH, "milk.md": b"two\n", "INDEX": b"milk: two\nshopping: bread\n"})
    del world.files[Side.WORKSPACE]["milk.md"]
    assert world.run() == ["rebuild workspace:INDEX rebuilt"]
    assert world.baseline.intents["milk.md"].kind is IntentKind.REMOVED
    assert world.files[Side.STORE]["milk.md"] == b"two\n"


def test_a_record_that_was_removed_from_the_store_goes() -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    del world.files[Side.STORE]["log"]
    assert world.run() == ["remove-stale workspace:log removed-in-store"]


def test_the_newer_of_two_versions_wins() -> None:
    world = in_sync(BOTH)
    for where in Side:
        world.files[where]["shopping.md"] = f"bread\nfrom the {where}\n".encode()
    world.times[Side.STORE] = 10
    assert world.run() == ["project workspace:shopping.md newer-store"]


@pytest.mark.parametrize(
    ("store", "workspace", "result", "steps"),
    [
        (b"1\n2\n", b"1\n3\n", b"1\n2\n3\n", ["copy store:log united", "project workspace:log united"]),
        (b"1\n2\n", b"1\n", b"1\n2\n", ["project workspace:log ahead-store"]),
        (b"1\n", b"1\n2\n", b"1\n2\n", ["copy store:log ahead-workspace"]),
    ],
)
def test_two_versions_are_made_one(store: bytes, workspace: bytes, result: bytes, steps: list[str]) -> None:
    world = World({"log": store}, {"log": workspace, "INDEX": b""})
    world.times[Side.WORKSPACE] = 8
    assert [step for step in world.run() if ":log" in step] == steps
    assert world.files[Side.STORE]["log"] == world.files[Side.WORKSPACE]["log"] == result


def test_what_is_made_of_two_versions_has_the_newer_ones_time() -> None:
    world = World({"log": b"1\n2\n"}, {"log": b"1\n3\n", "INDEX": b""})
    world.times[Side.WORKSPACE] = 8
    (action,) = (each for each in world.plan().actions if each.reason is Reason.UNITED and each.kind is Kind.COPY)
    (write,) = action.writes
    assert (action.unit, action.case, write.size, write.mtime_ns) == (METADATA, 5, 6, 9 * HOUR)


class Growing(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same where a log may lose its lines."""

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:  # noqa: ARG002
        return False


def test_two_edits_are_made_one() -> None:
    for fmt in (FORMAT, Growing()):
        world = World({}, {"log": b"1\n", "INDEX": b""}, Rules(fmt, RULES.digest))
        world.run()
        world.files[Side.STORE]["log"], world.files[Side.WORKSPACE]["log"] = b"1\n2\n", b"1\n3\n"
        assert world.run() == ["copy store:log united", "project workspace:log united"]


def test_one_edit_that_has_lost_something_is_none() -> None:
    for which, step in (
        (Side.WORKSPACE, "project workspace:log put-back"),
        (Side.STORE, "copy store:log put-back"),
    ):
        world = in_sync({"log": b"1\n2\n", "INDEX": b""})
        world.files[which]["log"] = b"1\n"
        assert world.run() == [step]


class Stubborn(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same where two logs can't be made one."""

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> bytes | None:  # noqa: ARG002
        return None


def test_an_edit_that_has_lost_something_for_good_is_for_a_person() -> None:
    rules = Rules(Stubborn(), RULES.digest)
    for which in Side:
        for prefer in Prefer:
            world = World({}, {"log": b"1\n2\n", "INDEX": b""}, rules)
            world.run()
            world.files[which]["log"] = b"1\n3\n"
            world.policy = Policy(prefer=prefer)
            plan = world.plan()
            (held,) = plan.held
            assert (plan.actions, held.reason, held.unit) == ((), Reason.LOSING, METADATA)
            assert held.message.startswith("an edit removed entries that the other side has")
    world.files[Side.WORKSPACE]["log"] = b"1\n2\n3\n"
    assert [action.reason for action in world.plan().actions] == [Reason.EDITED_WORKSPACE]


def test_to_prefer_a_side_is_no_reason_to_lose_something() -> None:
    world = in_sync({"log": b"1\n2\n", "INDEX": b""})
    world.files[Side.WORKSPACE]["log"] = b"1\n3\n"
    for prefer in Prefer:
        world.policy = Policy(prefer=prefer)
        found = [action.reason for action in world.plan().actions]
        assert found == [Reason.PUT_BACK, Reason.PUT_BACK]
    world.files[Side.STORE]["log"] = b"1\n2\n4\n"
    world.policy = Policy(prefer=Prefer.STORE)
    assert [each.reason for each in world.plan().actions] == [Reason.PREFERRED]


def test_what_another_checkout_has_agreed_to_lose_is_lost_here_too() -> None:
    world = in_sync({"log": b"1\n2\n", "INDEX": b""})
    world.files[Side.STORE]["log"] = b"1\n"
    key = ("log", METADATA)
    world.memories.history[key] = (*world.memories.history[key], RULES.digest(b"1\n"))
    assert world.run() == ["project workspace:log edited-store"]


class Remote(World):
    """The tree of a remote in the place of the workspace: what another machine has sent (docs/design/remotes.md)."""

    buried: Mapping[str, frozenset[str]] = {}

    @property
    def baseline(self) -> Baseline:
        return replace(self.memories.of("workspace"), is_of_remote=True, tombstones=self.buried)


def test_a_record_that_a_program_makes_again_is_new() -> None:
    """A tombstone stops it only if the sides have agreed on it: then somebody has removed it since."""
    buried = Baseline(tombstones={"log": frozenset({RULES.digest(b"1\n")})})
    plan = make_plan(
        side(Side.STORE, {}), side(Side.WORKSPACE, {"log": b"1\n", "INDEX": b""}), buried, Policy(), RULES, NOW
    )
    assert said(plan) == ["copy store:log external"]


def test_of_a_directory_without_files_no_tombstone_says_anything() -> None:
    """It stays where the store was lost."""
    (trip,) = side(Side.WORKSPACE, {"trip/map.txt": b"x"}).copies
    workspace = replace(side(Side.WORKSPACE, {"log": b"1\n"}), copies=(replace(trip, files=()),))
    known = Baseline(agreed={"trip": BaselineEntry({}, None, None, None, "trip")})
    found = decide(side(Side.STORE, {}), workspace, known, Policy(), RULES, NOW)
    assert found.presences["trip"].goal is Goal.IMPORT


def test_a_remote_has_nothing_that_is_derived() -> None:
    world = Remote(dict(SHOPPING), {})
    assert world.run() == ["project workspace:shopping.md reprojected"]
    assert "INDEX" not in world.files[Side.WORKSPACE]


def test_what_another_machine_has_agreed_to_lose_is_lost_here_too() -> None:
    world = Remote({"log": b"1\n2\n"}, {})
    world.run()
    world.files[Side.WORKSPACE]["log"] = b"1\n"
    assert world.run() == ["copy store:log edited-workspace"]
    world.files[Side.STORE]["log"] = b""
    assert world.run() == ["copy store:log put-back"]
    world.files[Side.STORE]["log"], world.files[Side.WORKSPACE]["log"] = b"1\n2\n", b"1\n3\n"
    assert world.run() == ["copy store:log united", "project workspace:log united"]


@pytest.mark.parametrize("is_asked", [True, False])
def test_the_only_record_goes_from_a_remote_if_a_person_has_removed_it(is_asked: bool) -> None:
    world = Remote({"log": b"1\n"}, {})
    world.run()
    del world.files[Side.STORE]["log"]
    if is_asked:
        world.buried = {"log": frozenset({RULES.digest(b"1\n")})}
    (step,) = said(world.plan())
    assert step == ("remove-stale workspace:log removed-in-store" if is_asked else "copy store:log refill")


def test_who_says_which_side_wins_gets_that_one() -> None:
    world = World({"log": b"1\n2\n"}, {"log": b"1\n3\n", "INDEX": b""})
    world.policy = Policy(prefer=Prefer.STORE)
    assert "project workspace:log preferred" in world.run()


def test_what_contradicts_is_held_until_somebody_decides() -> None:
    world = World({"log": b"1\n"}, {"log": b"2\n", "INDEX": b""})
    plan = world.plan()
    (item,) = plan.held
    assert (item.reason, item.unit) == (Reason.CONTRADICTING, METADATA)
    assert item.message.startswith("two logs that have no beginning in common")
    world.policy = Policy(decisions={"log": Take.STORE})
    assert "project workspace:log decided" in world.run()


def test_what_cannot_be_read_is_held_and_what_it_lacks_is_said() -> None:
    world = World({}, {"log": b"\xff", "INDEX": b""})
    plan = world.plan()
    (item,) = plan.held
    assert (item.reason, item.unit) == (Reason.INVALID, METADATA)
    assert item.message == "workspace:log/log: bytes that are no UTF-8 (expected text)"


def test_a_damaged_index_is_made_again_and_not_held() -> None:
    world = in_sync(BOTH)
    world.files[Side.WORKSPACE]["INDEX"] = b"\xff"
    assert world.run() == ["rebuild workspace:INDEX rebuilt"]
    assert world.files[Side.WORKSPACE] == BOTH


def test_while_the_program_is_at_work_what_it_locks_is_left_alone() -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    world.busy = True
    world.files[Side.WORKSPACE]["shopping.md"] = b"butter\n"
    world.files[Side.STORE]["log"] = b"1\n2\n"
    plan = world.plan()
    assert said(plan) == ["copy store:shopping.md edited-workspace"]
    assert [(item.reason, item.message) for item in plan.held] == [
        (Reason.PROGRAM_BUSY, ".busy is there; 1 change waits until the program is done")
    ]
    world.busy = False
    assert world.run() == [
        "rebuild workspace:INDEX rebuilt",
        "copy store:shopping.md edited-workspace",
        "project workspace:log edited-store",
    ]


def test_what_is_derived_waits_for_whatever_is_being_written() -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    world.files[Side.WORKSPACE] |= {"shopping.md": b"butter\n", "log": b"1\n2\n"}
    assert [str(action.target) for action in without_moving(world.plan(), frozenset({"log"})).actions] == [
        "store:shopping.md"
    ]


def test_what_is_derived_from_what_was_named_comes_with_it() -> None:
    world = World({**SHOPPING, "milk.md": b"two\n"}, {})
    for only, steps in (({"milk.md"}, []), ({"milk.md", "shopping.md"}, ["rebuild workspace:INDEX rebuilt"])):
        world.policy = Policy(only=frozenset(only))
        assert said(world.plan()) == [f"project workspace:{each} shared" for each in sorted(only)] + steps


def test_while_git_is_at_work_nothing_is_made_again() -> None:
    world = in_sync(BOTH)
    world.files[Side.WORKSPACE]["INDEX"] = b"?"
    world.policy = Policy(git_busy="a merge")
    plan = world.plan()
    assert (said(plan), plan.held) == ([], ())


def test_what_is_mended_on_request_is_done_where_it_is_asked_for() -> None:
    world = in_sync({"empty.md": b"", "INDEX": b"empty: \n"})
    assert not world.plan().actions
    world.policy = Policy(mend=frozenset({"empty:empty.md"}))
    assert world.run() == [
        "rebuild workspace:empty.md rebuilt",
        "rebuild workspace:INDEX rebuilt",
        "copy store:empty.md edited-workspace",
    ]
    assert world.files[Side.STORE]["empty.md"] == b"# empty\n"


def test_what_was_read_a_moment_before_the_scan_is_not_mended() -> None:
    store, workspace = side(Side.STORE, {}), side(Side.WORKSPACE, {**SHOPPING, "INDEX": b"?"})
    late = replace(workspace, derived_inputs=notes.Found({**SHOPPING, "INDEX": b"!"}))
    plan = make_plan(store, late, Baseline(), Policy(), RULES, NOW)
    assert [action.kind for action in plan.actions] == [Kind.COPY]


def test_an_empty_directory_is_no_record_to_mend() -> None:
    workspace = side(Side.WORKSPACE, {**SHOPPING, "INDEX": b"?"})
    empty = replace(workspace.copies[0], conversation="box", path="box", files=(), metadata=None)
    (repair,) = due_first(replace(workspace, copies=(*workspace.copies, empty)), Baseline(), Policy(), RULES)
    assert repair.path == "INDEX"


def test_the_first_that_comes_to_an_empty_workspace_brings_what_is_derived_from_it() -> None:
    world = World(SHOPPING, {})
    assert world.run() == [
        "project workspace:shopping.md shared",
        "rebuild workspace:INDEX rebuilt",
    ]


def test_what_nobody_can_read_in_the_store_is_not_made_again_from_here() -> None:
    world = in_sync(BOTH, SHARED)
    world.files[Side.STORE] |= {"INDEX": b"\xff", "milk.md": b"two\n"}
    plan = world.plan()
    assert [item.reason for item in plan.held] == [Reason.INVALID]
    assert said(plan) == ["project workspace:milk.md shared", "rebuild workspace:INDEX rebuilt"]


def test_what_is_removed_as_asked_is_not_made_again_by_the_same_plan() -> None:
    world = in_sync(BOTH, SHARED)
    world.policy = Policy(request=RemoveRequest(("INDEX",)))
    assert said(world.plan()) == [
        "remove store:INDEX removed-as-asked",
        "remove-stale workspace:INDEX removed-as-asked",
    ]
    world.policy = Policy(request=LocalRequest(("INDEX",)))
    assert said(world.plan()) == ["remove-stale workspace:INDEX localized"]


def test_what_nobody_can_read_in_the_store_is_not_put_into_another_workspace() -> None:
    world = World({"log": b"\xff", **SHOPPING}, {})
    assert world.run() == ["project workspace:shopping.md shared", "rebuild workspace:INDEX rebuilt"]


def test_the_workspace_is_planned_with_as_it_will_be() -> None:
    before = side(Side.WORKSPACE, {**SHOPPING, "a.md": b"a", "INDEX": b"?"})
    mended = (
        DerivedRepair("INDEX", "INDEX", (), b"?", b"i"),
        DerivedRepair("a", "a.md", (), b"a"),
        DerivedRepair("b", "b.md", (), None, b"b"),
    )
    found = with_repairs(before, mended, RULES, 9 * HOUR)
    assert found.copies == side(Side.WORKSPACE, {**SHOPPING, "b.md": b"b", "INDEX": b"i"}).copies
    strange = with_repairs(before, [DerivedRepair("a", "a.md", (), b"a", b"\xff")], RULES, 0)
    (fault,) = (copy.metadata for copy in strange.copies if isinstance(copy.metadata, Fault))
    assert (fault.file, fault.found) == ("", "bytes that are no UTF-8")
    made = with_repairs(
        before, (DerivedRepair("m", "shopping.md", (), makes=("x",)), mended[0], mended[2]), RULES, 20 * HOUR
    )
    times = {copy.path: copy.files[0].mtime_ns // HOUR for copy in made.copies}
    assert times == {"INDEX": 9, "a.md": 9, "b.md": 20, "shopping.md": 9}


def test_what_is_made_again_keeps_its_time() -> None:
    world = in_sync(BOTH, SHARED)
    world.files[Side.STORE] |= {"milk.md": b"two\n"}
    _, *rebuilds = world.plan().actions
    assert [write.mtime_ns for action in rebuilds for write in action.writes] == [9 * HOUR] * 2


def test_what_the_same_plan_brings_or_removes_is_made_again() -> None:
    world = World({**SHOPPING, "INDEX": b"?"}, {}, SHARED)
    assert world.run() == [
        "project workspace:INDEX shared",
        "project workspace:shopping.md shared",
        "rebuild workspace:INDEX rebuilt",
        "rebuild store:INDEX rebuilt",
    ]
    del world.files[Side.STORE]["INDEX"]
    assert world.run() == [
        "remove-stale workspace:INDEX removed-in-store",
        "rebuild workspace:INDEX rebuilt",
        "rebuild store:INDEX rebuilt",
    ]


def test_what_was_made_right_is_not_taken_for_an_older_version() -> None:
    world = in_sync({**BOTH, "log": b"1\n2\n"}, SHARED)
    world.files[Side.WORKSPACE] |= {"milk.md": b"two\n", "log": b"1\n"}
    new = RULES.digest(notes.index_of(world.files[Side.WORKSPACE]))
    history = world.memories.history
    history["INDEX", METADATA] = (new, *history["INDEX", METADATA])
    history["log", METADATA] = (RULES.digest(b"1\n"), *history["log", METADATA])
    plan = world.plan()
    assert said(plan) == [
        "rebuild workspace:INDEX rebuilt",
        "copy store:INDEX edited-workspace",
        "copy store:milk.md external",
        "age workspace:log behind",
    ]
    assert [item.reason for item in plan.aside] == [Reason.BEHIND_ASIDE]


def test_a_link_in_the_store_is_no_removal() -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    store, workspace = side(Side.STORE, BOTH), side(Side.WORKSPACE, {**BOTH, "log": b"1\n"})
    linked = replace(store, foreign=(Foreign("log", "a symbolic link", link=True),))
    plan = make_plan(linked, workspace, world.baseline, Policy(), RULES, NOW)
    assert plan.actions == ()
    (item,) = plan.held
    assert item.message.startswith("store:log: a symbolic link replaced the record; ")


@pytest.mark.parametrize(("name", "way"), [("log", "put the record back"), ("milk.md", "move it away")])
def test_something_else_in_the_place_of_a_record_in_the_store_is_no_removal(name: str, way: str) -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    store, workspace = side(Side.STORE, BOTH), side(Side.WORKSPACE, {**BOTH, "log": b"1\n", "milk.md": b"new"})
    obstructed = replace(store, foreign=(Foreign(name, "a pipe", special=True),))
    plan = make_plan(obstructed, workspace, world.baseline, Policy(), RULES, NOW)
    (item,) = plan.held
    assert item.message == f"store:{name}: a pipe is in the place of the record; {way}"
    assert name not in {action.conversation for action in plan.actions}


def test_what_stands_in_the_place_of_a_record() -> None:
    world = in_sync({**BOTH, "log": b"1\n"})
    store, workspace = side(Side.STORE, world.files[Side.STORE]), side(Side.WORKSPACE, BOTH)
    linked = replace(workspace, foreign=(Foreign("log", "a symbolic link", link=True),))
    (item,) = make_plan(store, linked, world.baseline, Policy(), RULES, NOW).held
    assert "workspace:log: a symbolic link replaced the record; " in item.message
    (note,) = (
        each for each in make_plan(store, workspace, world.baseline, Policy(), RULES, NOW).notes if each.conversation
    )
    assert note.message.startswith("deleted from the workspace, still in the store; restore it: reconcile project log ")
    assert note.message.endswith("restore it: reconcile project log (all that were here: reconcile recover)")
    (emptied,) = make_plan(store, side(Side.WORKSPACE, {}), world.baseline, Policy(), RULES, NOW).held
    assert emptied.message == "the workspace is empty, but had records at the last run; nothing is treated as deleted"
    assert emptied.resolve == ("reconcile recover",)


def test_a_record_without_a_title_is_called_by_its_place() -> None:
    world = World({}, {"log": b"1\n", "new": b"", "empty.md": b"", "trip/map": b"m"})
    assert {action.conversation: action.title for action in world.plan().actions} == {
        "INDEX": "INDEX",
        "empty.md": "empty.md",
        "log": "1",
        "trip": "trip",
    }


def test_directories_alone_make_no_empty_workspace() -> None:
    world = World({}, {"box/x": b"x"})
    world.run()
    world.files[Side.STORE]["trip/map"] = b"m"
    assert world.run() == ["project workspace:trip shared"]


def test_how_records_stand() -> None:
    store = side(Side.STORE, {**SHOPPING, "log": b"1\n"})
    workspace = side(Side.WORKSPACE, {**BOTH, "log": b"1\n"})
    here = decide(store, workspace, Baseline(), Policy(), RULES, NOW)
    assert here.presences["INDEX"] == Presence(Goal.NOTHING, 2, "derived")
    there = decide(
        side(Side.STORE, BOTH), side(Side.WORKSPACE, {"log": b"1\n"}), Baseline(), Policy(git_busy="x"), RULES, NOW
    )
    assert there.presences["INDEX"] == Presence(Goal.NOTHING, 3, "gone")
    assert there.presences["shopping.md"] == Presence(Goal.PROJECT, 3, "projected", Reason.SHARED)
    known = in_sync({"log": b"1\n", "INDEX": b""}).baseline
    view = views_of(side(Side.STORE, {}), side(Side.WORKSPACE, {}), known, RULES)["log"]
    assert missing_side(view, Policy(decisions={"log": Take.STORE})) is None


class Recording(Shared):
    """The same, and what it is told that a plan writes."""

    def mend(
        self,
        inputs: object,  # noqa: ARG002
        written: Mapping[str, bytes | None],
        wanted: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[DerivedRepair, ...]:
        TOLD.append(dict(written))
        return ()


TOLD: list[dict[str, bytes | None]] = []


def test_a_format_is_told_what_a_plan_writes_into_the_workspace() -> None:
    files = {"log": b"1\n", "old.md": b"o", "milk.md": b"m", "trip/a": b"a", "trip/b": b"b", "new.md": b"n"}
    world = in_sync({path: content for path, content in files.items() if path != "new.md"}, SHARED)
    world.rules = Rules(Recording(), RULES.digest)
    store, workspace = world.files[Side.STORE], world.files[Side.WORKSPACE]
    store |= {"new.md": b"n", "log": b"1\n2\n", "box/x": b"x"}
    workspace |= {"log": b"1\n3\n", "milk.md": b"mm", "trip/c": b"c"}
    del store["old.md"], store["trip/b"]
    world.plan()
    assert TOLD[-1] == {"log": b"1\n2\n3\n", "new.md": b"n", "box/x": b"", "old.md": None, "trip/b": None}
    world = World({"alone.md": b"x"}, {})
    world.rules, world.policy = Rules(Recording(), RULES.digest), Policy(request=RemoveRequest(("alone.md",)))
    assert said(world.plan()) == ["remove store:alone.md removed-as-asked"]
    assert {"alone.md": None} not in TOLD


class Merging(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same with a note that goes where it is asked for."""

    def mend(
        self,
        inputs: object,  # noqa: ARG002
        written: Mapping[str, bytes | None],  # noqa: ARG002
        wanted: Collection[str] = (),
    ) -> tuple[DerivedRepair, ...]:
        return (
            DerivedRepair("one", "copy.md", ("all of it is in shopping",), b"bread\n", asked="" if wanted else "yes"),
        )


def test_a_record_that_goes_as_asked_stays_in_the_store() -> None:
    files = {**SHOPPING, "copy.md": b"bread\n"}
    rules = Rules(Merging(), RULES.digest)
    agreed = in_sync({**files, "INDEX": b"copy: bread\nshopping: bread\n"}).baseline
    sides = side(Side.STORE, files), side(Side.WORKSPACE, files)
    plan = make_plan(*sides, agreed, Policy(mend=frozenset({"one"})), rules, NOW)
    (action,) = plan.actions
    assert (action.kind, [str(place) for place in action.removes]) == (Kind.REBUILD, ["workspace:copy.md"])
    assert action.expect[0].mtime_ns == 9 * HOUR
    assert dict(plan.intents)["copy.md"] is not None


def test_records_that_go_in_bulk_are_named_by_their_paths() -> None:
    world = in_sync({**BOTH, **{f"{number}/map.txt": b"x" for number in range(4)}})
    for number in range(4):
        del world.files[Side.STORE][f"{number}/map.txt"]
    (held,) = world.plan().held
    assert held.message == "4 of 6 records would be removed: 0, 1, 2, 3"


class Following(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same where an answer belongs to a note, and no note comes unasked; what is new is dated an hour earlier."""

    @property
    def is_shared(self) -> bool:
        return False

    def owner(self, conversation: str) -> str | None:
        return conversation.removesuffix(".1.md") if conversation.endswith(".1.md") else None

    def time_there(self, mtime_ns: int, now_ns: int) -> int:  # noqa: ARG002
        return mtime_ns - HOUR

    @property
    def way_back(self) -> str:
        return "recover"


FOLLOWING = Rules(Following(), RULES.digest)
ANSWER: Files = {"shopping.md.1.md": b"butter\n"}


def test_an_answer_is_only_where_its_note_is() -> None:
    world = World({**SHOPPING, **ANSWER}, {"INDEX": b""}, FOLLOWING)
    assert not [step for step in world.run() if step.startswith("project")]
    world = in_sync(BOTH, FOLLOWING)
    world.files[Side.STORE] |= ANSWER
    assert "project workspace:shopping.md.1.md shared" in world.run()
    assert world.files[Side.WORKSPACE].items() >= ANSWER.items()


def test_an_answer_waits_for_its_note() -> None:
    world = World({**SHOPPING, **ANSWER}, {"other.md": b"x"}, FOLLOWING)
    world.policy = Policy(request=ProjectRequest((*SHOPPING, *ANSWER)))
    note, answer = (action for action in world.plan().actions if action.kind is Kind.PROJECT)
    assert (note.conversation, answer.conversation) == (*SHOPPING, *ANSWER)
    assert answer.needs == (note.id,)


def test_what_is_new_in_the_store_is_dated_by_the_format() -> None:
    plan = World({}, dict(SHOPPING), FOLLOWING).plan()
    assert [write.mtime_ns for action in plan.actions for write in action.writes if write.source] == [8 * HOUR]


def test_what_was_removed_here_names_the_way_back() -> None:
    world = in_sync({**BOTH, "other.md": b"x"}, FOLLOWING)
    del world.files[Side.WORKSPACE]["shopping.md"]
    (note,) = (note for note in world.plan().notes if note.reason is Reason.REMOVED_HERE)
    assert "reconcile recover shopping.md " in note.message


class Deleting(Following):
    """The same where the program deletes old records."""

    deletes_old = True
    is_for_others = False

    def counted_as(self, conversation: str) -> str | None:
        return self.owner(conversation) or conversation


@pytest.mark.parametrize("is_for_others", [False, True])
def test_an_empty_workspace_whose_program_deletes_is_no_accident(*, is_for_others: bool) -> None:
    rules = Rules(Deleting(), RULES.digest)
    rules.format.is_for_others = is_for_others  # type: ignore[attr-defined]
    world = in_sync({**BOTH, "other.md": b"x"}, rules)
    world.files[Side.STORE] |= ANSWER
    world.files[Side.WORKSPACE].clear()
    plan = world.plan()
    assert not plan.held
    assert {conversation for conversation, intent in plan.intents if intent} == {"shopping.md", "other.md"}
    told = [note.message for note in plan.notes if note.reason is Reason.REMOVED_HERE]
    if is_for_others:
        assert all("share it again" in each for each in told)
    else:
        words = "no record is left in the workspace; the store keeps 2 records; restore them: reconcile recover"
        assert told == [words]
    request = ProjectRequest(("shopping.md", "other.md"), records=())
    store = side(Side.STORE, world.files[Side.STORE])
    plan = make_plan(store, side(Side.WORKSPACE, {}), world.baseline, Policy(request=request), world.rules, NOW)
    assert {action.conversation for action in plan.actions} >= {"shopping.md", "other.md"}
    assert not [note for note in plan.notes if note.conversation is None]
    unread = replace(side(Side.WORKSPACE, {}), problems=(Problem("", "no permission"),))
    plan = make_plan(store, unread, world.baseline, Policy(), world.rules, NOW)
    assert [item.reason for item in plan.held] == [Reason.UNREADABLE]
    assert not plan.notes


class Tidy(notes.NotesFormat):  # type: ignore[misc, name-defined]
    """The same with directories that belong there, and things that are left over."""

    def mend(
        self,
        inputs: object,  # noqa: ARG002
        written: Mapping[str, bytes | None],
        wanted: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[DerivedRepair, ...]:
        late = (
            ()
            if "trip" not in {path.partition("/")[0] for path in written}
            else (DerivedRepair("b", "trip", (), makes=("b",)),)
        )
        return (
            DerivedRepair("a", "a", ("a made",), makes=("a",), clears=("lock",)),
            DerivedRepair("tmp", "half.tmp", ("left over",), b"x", mtime_ns=HOUR),
            *late,
        )


def test_directories_are_made_and_what_is_left_over_goes() -> None:
    rules = Rules(Tidy(), RULES.digest)
    plan = make_plan(
        side(Side.STORE, {"trip/a": b"1"}), side(Side.WORKSPACE, SHOPPING), Baseline(), Policy(), rules, NOW
    )
    tidied = [action for action in plan.actions if action.kind is Kind.REBUILD]
    assert [(str(action.target), action.words) for action in tidied] == [
        ("workspace:a", ("a made",)),
        ("workspace:half.tmp", ("left over",)),
        ("workspace:trip", ()),
    ]
    assert [str(place) for place in (*tidied[0].makes, *tidied[0].clears, *tidied[2].makes)] == [
        "workspace:a",
        "workspace:lock",
        "workspace:b",
    ]
    assert (str(tidied[1].expect[0].place), tidied[1].expect[0].mtime_ns) == ("workspace:half.tmp", HOUR)
    alone = make_plan(side(Side.STORE, {}), side(Side.WORKSPACE, {}), Baseline(), Policy(), rules, NOW)
    assert [str(action.target) for action in alone.actions] == ["workspace:a", "workspace:half.tmp"]
    assert [each.conversation for each in plan.outline[:2]] == ["shopping.md", "trip"]
    assert plan.outline[2:] == (Heading("a", "a", 0), Heading("half.tmp", "half.tmp", 0))
    look = WorldState(side(Side.STORE, {}), side(Side.WORKSPACE, {}), Baseline())
    past = PastRun("run", (tidied[0],))
    assert not plan_undo(past, look, Policy(request=UndoRequest("run")), rules, NOW).actions


def test_the_example_is_short() -> None:
    from tests.support.formats.notes import PAGE

    assert len(PAGE.read_text().splitlines()) < 150
    assert FORMAT.name == "notes"


def test_a_log_that_has_lost_lines_gets_them_back_though_only_that_side_was_edited() -> None:
    world = in_sync({**BOTH, "log": b"one\ntwo\n"})
    world.files[Side.WORKSPACE]["log"] = b"one\nthree\n"
    assert world.run() == ["copy store:log put-back", "project workspace:log put-back"]
    assert world.files[Side.WORKSPACE]["log"] == b"one\ntwo\nthree\n"
    world.files[Side.STORE]["log"] = b"one\ntwo\n"
    assert world.run() == ["copy store:log put-back"]
    world.files[Side.WORKSPACE]["log"] = b"one\nfour\n"
    assert world.run() == ["copy store:log put-back", "project workspace:log put-back"]

"""What a run has written, and somebody has changed since: both sides had the same then, which is remembered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, BaselineEntry
from reconcile.model.plan import Action, Kind, Plan, Write
from reconcile.model.policy import LocalRequest, Policy, ProjectRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Place, Side, Snapshot
from reconcile.planning.baseline_update import Changes, update_baseline
from reconcile.planning.rules.views import views_of
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, unreadable
from tests.support.scenarios.pure_level import RULES

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
FIRST, SECOND = ONE.replace('"A"', '"A" v=1'), ONE.replace('"A"', '"A" v=2')
KNOWN = agreed_on(ONE)
PLAN = Plan(layout="nested")


def units(line: str) -> dict[str, str]:
    return dict(agreed_on(line).agreed["jp-c1"].units)


def agreed(changes: Changes, conversation: str = "jp-c1") -> BaselineEntry:
    found = changes.agreed[conversation]
    assert found is not None
    return found


def imported() -> Plan:
    plan = plan_of(stored(), here(FIRST))
    assert [(action.kind, action.unit) for action in plan.actions] == [(Kind.COPY, WHOLE)]
    return plan


def projected() -> Plan:
    plan = plan_of(stored(FIRST), here(), policy=Policy(request=ProjectRequest(("jp-c1",))))
    assert [(action.kind, action.unit) for action in plan.actions] == [(Kind.PROJECT, WHOLE)]
    return plan


@pytest.mark.parametrize(
    ("plan", "store", "workspace"), [(imported(), FIRST, SECOND), (projected(), SECOND, FIRST)], ids=["copy", "project"]
)
def test_what_was_written_as_a_whole_was_the_same_unless_it_was_left_undone(
    plan: Plan, store: str, workspace: str
) -> None:
    sides = stored(store), here(workspace)
    assert agreed(update_baseline(*sides, Baseline(), plan, RULES)).units == units(FIRST)
    left = agreed(update_baseline(*sides, Baseline(), plan, RULES, undone=("1",))).units
    assert left == {STREAM: units(FIRST)[STREAM]}


def test_what_is_only_in_part_as_it_was_written_is_not() -> None:
    sides = stored(FIRST.replace("[1]", "[1 2]")), here(FIRST.replace("[1]", "[1 3]"))
    assert agreed(update_baseline(*sides, Baseline(), imported(), RULES)).units.keys() == {METADATA}


@pytest.mark.parametrize("plan", [imported(), projected()], ids=["copy", "project"])
def test_nor_what_nobody_can_read(plan: Plan) -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    store, workspace = stored(FIRST, note), here(FIRST, note)
    for sides in ((unreadable(store, "1-a/NOTE.md"), workspace), (store, unreadable(workspace, "1-a/NOTE.md"))):
        assert agreed(update_baseline(*sides, Baseline(), plan, RULES)).units == units(FIRST)


def copied(*sources: Side | None) -> Plan:
    """Return a plan that has copied the metadata, or the stream as well, from these sides; None: from neither."""
    files = {file.name: file for file in stored(FIRST).copies[0].files}
    names = ("metadata.json", "events.json")[: len(sources)]
    writes = tuple(
        Write(
            target=Place(Side.STORE, f"1-a/{name}"),
            source=None if source is None else Place(source, f"1-z/{name}"),
            content=None,
            size=1,
            mtime_ns=1,
            digest=files[name].digest or "",
        )
        for name, source in zip(names, sources, strict=True)
    )
    action = Action(
        id="1",
        kind=Kind.COPY,
        conversation="jp-c1",
        title="A",
        unit=METADATA if len(sources) == 1 else WHOLE,
        reason=Reason.EDITED_WORKSPACE,
        target=Place(Side.STORE, "1-a"),
        writes=writes,
    )
    return replace(PLAN, actions=(action,))


def test_nor_of_what_was_written_what_nobody_can_read_whole_by_now() -> None:
    for plan, store, workspace in (
        (imported(), stored(FIRST), unreadable(here(FIRST), "1-a/events.json")),
        (copied(Side.WORKSPACE, Side.WORKSPACE), unreadable(stored(FIRST), "1-a/base_config.json"), here(FIRST)),
    ):
        assert agreed(update_baseline(store, workspace, Baseline(), plan, RULES)).units.keys() == {METADATA}


@pytest.mark.parametrize(
    ("sources", "was_here"),
    [
        ((Side.WORKSPACE,), True),
        ((Side.STORE,), False),
        ((None,), False),
        ((Side.WORKSPACE, Side.WORKSPACE), True),
        ((Side.WORKSPACE, None), False),
        ((Side.WORKSPACE, Side.STORE), False),
    ],
)
def test_what_did_not_come_from_the_workspace_was_never_there(sources: tuple[Side | None, ...], was_here: bool) -> None:
    """From another directory of the store, from the vault or the library: it is still to be given."""
    changes = update_baseline(stored(FIRST), here(ONE), KNOWN, copied(*sources), RULES)
    assert changes.agreed.keys() == ({"jp-c1"} if was_here else set())


def test_it_is_not_remembered_while_another_directory_speaks() -> None:
    third = '1-b  metadata 10:00 title "A" v=3  stream 09:00 [1]'
    given = plan_of(stored(FIRST), here(ONE), KNOWN)
    saved = plan_of(stored(ONE), here(FIRST), KNOWN)
    for plan, store, workspace in (
        (given, stored(SECOND), here(FIRST, third)),
        (saved, stored(FIRST, third), here(SECOND)),
    ):
        assert len(plan.actions) == 1
        assert update_baseline(store, workspace, KNOWN, plan, RULES).agreed == {}


def test_what_was_given_does_not_become_the_newest_version_nor_keep_another_unit_from_being_so() -> None:
    """Another checkout may have brought the store's own version into sync by now."""
    newer = FIRST.replace("[1]", "[1 2]")
    plan = plan_of(stored(newer), here(ONE), KNOWN)
    assert [action.unit for action in plan.actions] == [METADATA, STREAM]
    changes = update_baseline(stored(newer.replace("v=1", "v=2")), here(newer), KNOWN, plan, RULES)
    assert agreed(changes).units == units(newer)
    assert changes.history == {("jp-c1", STREAM): units(newer)[STREAM]}


@pytest.mark.parametrize(
    ("request_", "container"), [(None, None), (LocalRequest(("jp-c9",)), None), (UndoRequest("r1"), "jp-c1")]
)
def test_only_a_plan_of_the_planner_says_where_a_directory_belongs(
    request_: LocalRequest | UndoRequest | None, container: str | None
) -> None:
    edited = TWO.replace("[1]", "[1 2]")
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}")
    plan = replace(PLAN, policy=Policy(request=request_))
    assert (
        agreed(update_baseline(stored(ONE, edited), here(ONE, edited), baseline, plan, RULES), "jp-c2").container
        == container
    )


def test_where_only_the_stream_was_agreed_on_the_title_is_agreed_on_with_the_metadata() -> None:
    """No rename is due: nothing was named by an older title."""
    line = f"1-old{ONE[3:]}"
    before = replace(KNOWN.agreed["jp-c1"], units={STREAM: units(ONE)[STREAM]}, title=None, place="1-old")
    baseline = replace(KNOWN, agreed={"jp-c1": before})
    assert agreed(update_baseline(stored(line), here(line), baseline, PLAN, RULES)).title == "A"


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the fold looked at closer than at a glance."""
    found: set[str] = set()

    def seen(*args: object, **more: object) -> object:
        views = views_of(*args, **more)  # type: ignore[arg-type] # whatever it is called with
        found.update(views)
        return views

    monkeypatch.setattr("reconcile.planning.baseline_update.views_of", seen)
    return found


NESTED = f"1-a/conversations/{TWO}"
CLOSER: dict[str, tuple[Snapshot, Snapshot, Baseline, tuple[str, ...], set[str]]] = {
    "nothing": (stored(ONE, TWO), here(ONE, NESTED), Baseline(), (), set()),
    "not equal": (stored(FIRST, TWO), here(ONE, NESTED), Baseline(), (), {"jp-c1"}),
    "left undone": (stored(ONE, TWO), here(ONE, NESTED), Baseline(), ("1",), {"jp-c1"}),
    "a rename": (
        stored(ONE, TWO),
        here(ONE, NESTED),
        Baseline(renames=frozenset({(Side.STORE, "jp-c2")})),
        (),
        {"jp-c2"},
    ),
    "twice in the store": (stored(ONE, f"1-b{ONE[3:]}"), here(), Baseline(), (), {"jp-c1"}),
    "twice in the workspace": (stored(), here(ONE, f"1-b{ONE[3:]}"), Baseline(), (), {"jp-c1"}),
    "three directories": (stored(ONE), here(ONE, f"1-b{ONE[3:]}"), Baseline(), (), {"jp-c1"}),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "undone", "closer"), CLOSER.values(), ids=CLOSER)
def test_what_is_equal_is_remembered_at_a_glance(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    undone: tuple[str, ...],
    closer: set[str],
    looked_at: set[str],
) -> None:
    changes = update_baseline(store, workspace, baseline, copied(Side.WORKSPACE), RULES, undone)
    assert looked_at == closer
    there = [{copy.conversation for copy in side.copies} for side in (store, workspace)]
    assert changes.agreed.keys() == there[0] & there[1]

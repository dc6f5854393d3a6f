"""What `restore` plans (docs/commands.md#reconcile-restore). The command is in fixtures/scenarios/undo."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Intent, IntentKind
from reconcile.model.options import Layout
from reconcile.model.past_run import SavedFile, SavedUnit
from reconcile.model.plan import Heading, Kind
from reconcile.model.policy import Policy
from reconcile.model.snapshot import nested_git
from reconcile.planning.requests.restore import NoPlaceError, plan_restore
from tests.support.scenarios.building import agreed_on, here, stored
from tests.support.scenarios.pure_level import RULES

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
LOCAL_A = '1-a  metadata 09:00 title "A" local  stream 09:00 [1]'
NOTED = '1-a/NOTE.md 09:00 "n"'


def unit(name: str, *files: str, partial: bool = False) -> SavedUnit:
    kept = {file: SavedFile(3, 5, f"{name}:{file}", f"vault:{file}") for file in files}
    return SavedUnit("jp-c1", name, "1-a", kept, partial)


METADATA = unit("metadata", "metadata.json")
STREAM = unit("stream", "base_config.json", "events.json")
NOTE = unit("extra:NOTE.md", "NOTE.md")


def written(*units: SavedUnit, store: tuple[str, ...], workspace: tuple[str, ...]) -> list[str]:
    baseline = agreed_on(*store) if store else agreed_on()
    plan = plan_restore(units, stored(*store), here(*workspace), baseline, Policy(), RULES, 7)
    assert {write.mtime_ns for action in plan.actions for write in action.writes} <= {7}
    return [
        *(f"+{write.target}" for action in plan.actions for write in action.writes),
        *(f"-{place}" for action in plan.actions for place in action.removes),
    ]


def test_both_sides_get_it() -> None:
    expected = ["+store:1-a/metadata.json", "+workspace:1-a/metadata.json"]
    assert written(METADATA, store=(A,), workspace=(A,)) == expected


def test_what_is_there_already_is_not_written() -> None:
    files = {file.name: file for file in stored(A).copies[0].files}
    same = files["metadata.json"]
    kept = SavedFile(same.size, 5, same.digest or "", "vault:")
    assert written(SavedUnit("jp-c1", "metadata", "1-a", {same.name: kept}), store=(A,), workspace=(A,)) == []


def test_a_local_copy_is_not_written() -> None:
    assert written(METADATA, store=(LOCAL_A,), workspace=(LOCAL_A,)) == ["+store:1-a/metadata.json"]


def test_a_legacy_stream_takes_the_base_configuration_away() -> None:
    legacy = unit("stream", "events.json")
    assert written(legacy, store=(A,), workspace=()) == ["+store:1-a/events.json", "-store:1-a/base_config.json"]
    partial = unit("stream", "events.json", partial=True)
    assert written(partial, store=(A,), workspace=()) == ["+store:1-a/events.json"]


def test_an_extra_goes_only_where_one_was() -> None:
    assert written(NOTE, store=(A,), workspace=(A,)) == ["+store:1-a/NOTE.md"]
    expected = ["+store:1-a/NOTE.md", "+workspace:1-a/NOTE.md"]
    assert written(NOTE, store=(A, NOTED), workspace=(A, NOTED)) == expected


@pytest.mark.parametrize("workspace", [(), (A,)])
def test_what_is_gone_from_the_store_is_made_of_a_whole_version_alone(workspace: tuple[str, ...]) -> None:
    made = written(METADATA, STREAM, store=(), workspace=workspace)
    assert sorted(made) == [f"+store:1-a/{name}" for name in ("base_config.json", "events.json", "metadata.json")]
    for units in ((METADATA,), (STREAM,), (METADATA, replace(STREAM, partial=True))):
        with pytest.raises(NoPlaceError, match=r"^only a part of the conversation"):
            written(*units, store=(), workspace=workspace)


def test_a_unit_that_the_workspace_lacks_is_given_back_to_it() -> None:
    found = written(STREAM, store=(A,), workspace=('1-a  metadata 09:00 title "A"',))
    assert {each for each in found if "workspace" in each} == {
        "+workspace:1-a/base_config.json",
        "+workspace:1-a/events.json",
    }


@pytest.mark.parametrize("intent", [Intent(IntentKind.REMOVED), Intent(IntentKind.PROJECTED, waits_for="jp-c9")])
def test_where_some_files_came_back_by_themselves_the_store_alone_gets_it(intent: Intent) -> None:
    baseline = replace(agreed_on(A), intents={"jp-c1": intent})
    sides = stored(A), here('1-a  metadata 09:00 title "A"')
    plan = plan_restore([METADATA, STREAM], *sides, baseline, Policy(), RULES, 7)
    assert {action.target.side.value for action in plan.actions} == {"store"}


def test_a_base_configuration_goes_alone_where_nothing_else_differs() -> None:
    events = next(file for file in stored(A).copies[0].files if file.name == "events.json")
    same = SavedUnit(
        "jp-c1", "stream", "1-a", {"events.json": SavedFile(events.size, 5, events.digest or "", "vault:")}
    )
    assert "-store:1-a/base_config.json" in written(same, store=(A,), workspace=())
    legacy = '1-a  metadata 09:00 title "A"  stream 09:00 legacy [1]'
    assert written(unit("stream", "events.json"), store=(legacy,), workspace=()) == ["+store:1-a/events.json"]


def test_a_version_that_both_sides_have_already_changes_no_record() -> None:
    """A title that is restored once more doesn't end what was decided about the events."""
    key = ("jp-c1", "stream")
    baseline = replace(agreed_on(A), asides={key: AsideRecord(AsideKind.KEPT, "a", "b")})
    (metadata,) = (file for file in stored(A).copies[0].files if file.name == "metadata.json")
    saved = SavedFile(metadata.size, 5, metadata.digest or "", "vault:metadata.json")
    same = SavedUnit("jp-c1", "metadata", "1-a", {"metadata.json": saved})
    plan = plan_restore([same], stored(A), here(A), baseline, Policy(), RULES, 7)
    assert (plan.actions, plan.asides) == ((), ())


def test_all_that_a_restored_version_plans() -> None:
    record = AsideRecord(AsideKind.BEHIND, "a", "b")
    keys = [("jp-c1", "stream"), ("jp-c2", "metadata"), ("jp-c1", "metadata")]
    baseline = replace(agreed_on(A), asides=dict.fromkeys(keys, record))
    policy = Policy(layout=Layout.FLAT)
    plan = plan_restore([METADATA], stored(A), here(A), baseline, policy, RULES, 7)
    assert plan.asides == ((("jp-c1", "metadata"), None), (("jp-c1", "stream"), None))
    assert (plan.outline, plan.policy, plan.now_ns) == ((Heading("jp-c1", "A", 0),), policy, 7)
    assert plan.about == frozenset({"jp-c1"})
    for action, kind in zip(plan.actions, ("copy", "project"), strict=True):
        assert (action.kind.value, action.conversation, action.title, action.unit) == (kind, "jp-c1", "A", "metadata")
        assert [write.kept for write in action.writes] == ["vault:metadata.json"]
    bare = SavedUnit("jp-c1", "metadata", "1-a", {"metadata.json": SavedFile(2, 5, "digest", content=b"{}")})
    (of_remote,) = plan_restore([bare], stored(A), here(), baseline, policy, RULES, 7).actions
    assert [(write.kept, write.content) for write in of_remote.writes] == [(None, b"{}")]
    (made,) = plan_restore([METADATA, STREAM], stored(), here(A), baseline, policy, RULES, 7).actions
    assert (made.kind.value, made.conversation, made.title, made.unit) == ("copy", "jp-c1", "A", "conversation")


def test_what_is_gone_is_named_by_the_title_that_its_metadata_has() -> None:
    units = STREAM, replace(METADATA, title="T")
    plan = plan_restore(units, stored(), here(), agreed_on(), Policy(), RULES, 7)
    assert {action.title for action in plan.actions} == {"T"}
    assert [heading.title for heading in plan.outline] == ["T"]


TITLED = replace(METADATA, title="older")


def moved(*units: SavedUnit, store: tuple[str, ...], workspace: tuple[str, ...] = (), **chosen: int) -> list[str]:
    found, other = stored(*store), here(*workspace)
    plan = plan_restore(units, found, other, agreed_on(A), replace(Policy(), **chosen), RULES, 7)
    return [f"{action.source} {action.target}" for action in plan.actions if action.kind is Kind.MOVE]


def test_an_older_title_renames_both_directories_in_the_same_plan() -> None:
    both = ["store:1-a store:1-older", "workspace:1-a workspace:1-older"]
    assert sorted(moved(TITLED, store=(A,), workspace=(A,))) == both
    assert moved(TITLED, store=(LOCAL_A,), workspace=(LOCAL_A,)) == both[:1]


def test_without_another_title_nothing_is_renamed() -> None:
    for same in (METADATA, STREAM, replace(METADATA, title="A")):
        assert moved(same, store=(A,), workspace=(A,)) == []
    assert moved(TITLED, store=("1-a  stream 09:00 [1]",)) == []
    assert moved(replace(METADATA, title="A"), store=(A.replace("1-a", "1-other-name"),)) == []


def test_the_title_is_that_of_the_metadata() -> None:
    assert moved(STREAM, TITLED, store=(A,)) == ["store:1-a store:1-older"]


def test_a_name_that_is_taken_or_too_long_is_left_to_the_next_run() -> None:
    assert moved(TITLED, store=(A, A.replace("1-a", "1-older", 1))) == []
    assert moved(TITLED, store=(A,), path_limit=8) == []
    nested, parent = f"2-b/conversations/{A}", '2-b  metadata 09:00 title "B"'
    place = "2-b/conversations/1-older"
    longest = len(place) + len("base_config.json") + 32
    for limit, count in ((longest, 1), (longest - 1, 0)):
        found = moved(TITLED, store=(A, parent), workspace=(nested, parent), path_limit=limit)
        assert len([each for each in found if each.endswith(f"workspace:{place}")]) == count


def test_a_directory_with_a_repository_in_it_is_not_renamed() -> None:
    store = replace(stored(A), foreign=(nested_git("1-a/.git", directory=True),))
    plan = plan_restore([TITLED], store, here(), agreed_on(A), Policy(), RULES, 7)
    assert Kind.MOVE not in {action.kind for action in plan.actions}

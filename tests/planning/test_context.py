"""What the edits of a command change before anything is decided, and what the rules ask of the context."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, BaselineEntry, Intent, IntentKind
from reconcile.model.options import Take
from reconcile.model.policy import NO_CONVERSATION, Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Foreign, Side, Snapshot
from reconcile.planning.context import Edits
from tests.support.scenarios.building import agreed_on, context_of, here, seen, stored

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
Z = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
KNOWN = agreed_on(A, Z)
KEPT = AsideRecord(AsideKind.KEPT, "x", "y")


def test_the_intents_of_a_command_hold_already_and_what_leaves_is_not_set_aside() -> None:
    local, removed = Intent(IntentKind.LOCAL), Intent(IntentKind.REMOVED)
    baseline = replace(
        KNOWN,
        intents={"jp-c1": removed, "jp-c2": removed, "jp-c3": removed},
        asides={("jp-c1", STREAM): KEPT, ("jp-c2", STREAM): KEPT},
    )
    edits = Edits(intents={"jp-c1": local, "jp-c2": None})
    assert edits.applied_to(baseline).intents == {"jp-c1": local, "jp-c3": removed}
    assert edits.applied_to(baseline).asides == baseline.asides
    leaving = Edits(leaving={"jp-c1": Reason.LOCALIZED}).applied_to(baseline)
    assert leaving.asides.keys() == {("jp-c2", STREAM)}
    assert leaving.intents == baseline.intents
    assert Edits().applied_to(baseline) == baseline


def test_a_choice_of_the_command_line_goes_before_one_that_waits() -> None:
    """A decision that waits goes before one that was given."""
    first, second = ("jp-c1", STREAM), ("jp-c2", STREAM)
    edits = Edits(choices={first: Take.STORE, second: Take.STORE}, decisions={"jp-c1": Take.STORE})
    policy = Policy(choices={first: Take.WORKSPACE}, decisions={"jp-c1": Take.KEEP, "jp-c9": Take.KEEP})
    found = edits.extended_policy(policy)
    assert found.choices == {first: Take.WORKSPACE, second: Take.STORE}
    assert found.decisions == {"jp-c1": Take.STORE, "jp-c9": Take.KEEP}


@pytest.mark.parametrize(
    ("only", "below", "limited"),
    [((), (), {"1", "2"}), (("1",), (), {"1"}), (("1",), ("2", "3"), {"1", "2"}), ((), ("3",), NO_CONVERSATION)],
)
def test_a_command_that_is_limited_to_others_is_about_nothing(
    only: tuple[str, ...], below: tuple[str, ...], limited: set[str]
) -> None:
    edits = Edits(scope=frozenset({"1", "2"}))
    found = edits.limited_policy(Policy(only=frozenset(only), below=frozenset(below)))
    assert found.only == limited
    assert not found.below


OTHER = seen(Side.STORE, [Z], identity="store:1")
LINK = (Foreign("1-a", "a symbolic link", link=True),)
VOID: dict[str, tuple[Snapshot, Snapshot, Baseline, bool]] = {
    "gone from both": (OTHER, here(Z), KNOWN, True),
    "still here": (OTHER, here(A, Z), KNOWN, True),
    "in that store": (seen(Side.STORE, [A, Z], identity="store:1"), here(Z), KNOWN, False),
    "in that store's trash": (seen(Side.STORE, [f".trash/{A}", Z], identity="store:1"), here(Z), KNOWN, False),
    "never agreed on": (OTHER, here(A, Z), agreed_on(Z), False),
    "new in that store alone": (seen(Side.STORE, [A, Z], identity="store:1"), here(Z), agreed_on(Z), False),
    "here, beside a link in its place": (
        OTHER,
        replace(here(A.replace("1-a", "1-b"), Z), foreign=LINK),
        KNOWN,
        True,
    ),
    "perhaps behind a link": (OTHER, replace(here(Z), foreign=LINK), KNOWN, False),
    "perhaps in a workspace that was emptied": (OTHER, here(), KNOWN, False),
    "removed on purpose": (
        OTHER,
        here(A, Z),
        replace(KNOWN, tombstones={"jp-c1": frozenset(KNOWN.agreed["jp-c1"].units.values())}),
        False,
    ),
    "gone from the known store": (stored(Z), here(Z), KNOWN, False),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "void"), VOID.values(), ids=VOID)
def test_a_baseline_entry_ends_with_its_store(
    store: Snapshot, workspace: Snapshot, baseline: Baseline, void: bool
) -> None:
    context = context_of(store, workspace, baseline)
    views = [view for view in context.views.values() if view.id == "jp-c1"]
    assert [context.is_void(view) for view in views] == [void]


UNTITLED = BaselineEntry({STREAM: "x"}, None, None, None, "1-old")
NAMES = {
    "a new title": (replace(UNTITLED, units={METADATA: "x"}, title="B"), "A", False, "1-a"),
    "the title that was agreed on": (replace(UNTITLED, units={METADATA: "x"}, title="A"), "A", False, "1-old"),
    "the title that was agreed on, and a rename is recorded": (
        replace(UNTITLED, units={METADATA: "x"}, title="A"),
        "A",
        True,
        "1-old",
    ),
    "metadata that was never agreed on": (UNTITLED, "A", False, "1-old"),
    "the same, and a rename is due": (UNTITLED, "A", True, "1-a"),
    "nothing agreed on": (None, "A", False, "1-old"),
    "nothing agreed on, and another title in it": (None, "B", False, "1-b"),
}


@pytest.mark.parametrize(("agreed", "title", "due", "name"), NAMES.values(), ids=NAMES)
def test_a_directory_is_renamed_for_a_new_title_alone(
    agreed: BaselineEntry | None, title: str, due: bool, name: str
) -> None:
    line = A.replace("1-a", "1-old")
    renames = frozenset({(Side.STORE, "jp-c1")}) if due else frozenset()
    baseline = Baseline(agreed={} if agreed is None else {"jp-c1": agreed}, renames=renames)
    context = context_of(stored(line), here(line), baseline)
    view = context.views["jp-c1"]
    assert view.store.main is not None
    assert view.store.metadata is not None
    final = replace(view.store.metadata, title=title)
    assert context.dirname_of(view, view.store.main, final) == name
    assert context.dirname_of(view, view.store.main, None) == "1-old"


def test_a_directory_whose_metadata_nobody_can_read_keeps_its_name() -> None:
    context = context_of(stored("1-old  stream 09:00 [1]", '1-old/metadata.json  09:00 "{"'), here(A), Baseline())
    view = context.views["jp-c1"]
    assert view.store.main is not None
    assert context.dirname_of(view, view.store.main, view.workspace.metadata) == "1-old"
    assert view.workspace.metadata is not None

"""Words, numbers and defaults that a database, a plan file or JSON holds: another one would make these unreadable."""

from __future__ import annotations

import inspect
import re
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

from reconcile.model import baseline, names, options, plan, policy, snapshot, transcript
from reconcile.model.options import Layout, Prefer
from reconcile.model.past_run import LaterChanges, PastRun
from reconcile.planning import baseline_update, filters
from reconcile.planning.diagnosis import Ailment
from tests.model.test_values import VALUES

if TYPE_CHECKING:
    from msgspec import Struct

WORDS = {
    "AsideKind": "behind local kept undone placed",
    "Children": "refuse cascade promote",
    "Diverged": "fork newest hold",
    "IntentKind": "projected local removed",
    "Kind": "copy fork set-parent promote age archive unarchive move project remove-stale remove rebuild",
    "Layout": "nested flat",
    "Missing": "intent reproject",
    "OnConflict": "newest hold",
    "ParentKind": "absent root id unreadable",
    "Partition": "live archive trash",
    "Prefer": "newest store workspace",
    "Side": "store workspace",
    "Speaker": "user assistant tool system",
    "StreamRule": "directed newest",
    "Take": "store workspace both keep",
    "Verb": "local rm set-parent resolve",
}
COMMANDS = {
    "UndoRequest": "undo",
    "RestoreRequest": "restore",
    "LocalRequest": "local",
    "ProjectRequest": "project",
    "RemoveRequest": "rm",
    "SetParentRequest": "set-parent",
    "GcRequest": "gc",
    "ForkRequest": "fork",
    "QuarantineRequest": "doctor",
}
FINDINGS = (
    "merge-markers invalid uneditable unreadable unwritable incomplete-vault duplicate"
    " cycle missing-parent stripped-parent stale-directory carried-along "
    "nested-in-store name-out-of-step drift empty-directory foreign leftover"
    " orphaned-lock lost unmarked private-staged private-in-git secret"
)
ERRORS = {"merge-markers", "invalid", "unreadable", "unwritable", "incomplete-vault", "unmarked"}
NOTES = {"missing-parent", "name-out-of-step", "drift", "foreign", "orphaned-lock", "private-in-git"}
NAMED = {
    "Action",
    "Conflict",
    "ConversationRecord",
    "Edits",
    "Item",
    "Note",
    "Plan",
    "PlanningContext",
    "Preserve",
    "Step",
    "_Run",
}
"""The values with so many fields that each is named where one is made."""
UNUSUAL = {"Note.unit": "conversation", "Policy.path_limit": 3800, "Step.unit": "conversation", "Offer.known": True}
"""The defaults that are not empty, besides the members of enumerations."""


def test_the_members_of_enumerations_keep_their_words() -> None:
    modules = (baseline, options, plan, policy, snapshot, transcript)
    found = {
        name: " ".join(kind)
        for module in modules
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, StrEnum) and kind.__module__ == module.__name__
    }
    assert found == WORDS


def test_constants_keep_their_words() -> None:
    assert (snapshot.METADATA, snapshot.STREAM, snapshot.EXTRA, snapshot.WHOLE) == (
        "metadata",
        "stream",
        "extra:",
        "conversation",
    )
    assert (snapshot.ARCHIVE, snapshot.TRASH, baseline.LOST) == (".archive", ".trash", "lost")
    found = (names.CHILDREN, names.GIT, names.MARKER, names.ID_FILE, names.LINK)
    assert found == ("conversations", ".git", ".jp", ".id", "storage")


def test_a_time_is_a_signed_number_of_64_bits() -> None:
    """A database stores no larger one."""
    assert (snapshot.EARLIEST_NS, snapshot.LATEST_NS) == (-0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF)


def test_limits() -> None:
    assert (baseline_update.LARGEST_KEPT, filters.BULK_NAMES) == (65_536, 5)


def test_every_request_has_its_command() -> None:
    assert {request.__name__: command for request, command in policy.REQUEST_COMMANDS.items()} == COMMANDS
    assert set(get_args(policy.Request)) == policy.REQUEST_COMMANDS.keys()
    replaces = {"UndoRequest", "RestoreRequest", "ForkRequest", "QuarantineRequest"}
    assert {each.__name__ for each in get_args(policy.TreeEdit)} == COMMANDS.keys() - replaces


def has_positions(value: type[Struct]) -> bool:
    try:
        value(*[None] * len(value.__struct_fields__))
    except TypeError:
        return False
    return True


def test_values_with_many_fields_are_made_with_their_names() -> None:
    assert {value.__name__ for value in VALUES if not has_positions(value)} == NAMED


def test_decided_units_have_an_order() -> None:
    assert [value.__name__ for value in VALUES if value.__struct_config__.order] == ["DecidedUnit"]


def test_what_is_not_said_of_a_value_is_empty() -> None:
    found = {
        f"{value.__name__}.{name}": default
        for value in VALUES
        for name, default in zip(reversed(value.__struct_fields__), reversed(value.__struct_defaults__), strict=False)
        if isinstance(default, bool | int | str) and default and not isinstance(default, StrEnum)
    }
    assert found == UNUSUAL


def test_a_plain_run_has_the_defaults_of_the_manual() -> None:
    plain = policy.Policy()
    assert (plain.layout, plain.prefer) == (Layout.NESTED, Prefer.NEWEST)
    assert (plain.stream.value, plain.diverged.value, plain.conflict.value) == ("directed", "fork", "newest")
    assert (plain.missing.value, policy.RemoveRequest(()).children.value) == ("intent", "refuse")


def test_every_finding_of_doctor_has_a_word_a_severity_and_a_reason_why_it_matters() -> None:
    assert " ".join(Ailment) == FINDINGS
    assert {each.value for each in Ailment if each.severity == "error"} == ERRORS
    assert {each.value for each in Ailment if each.severity == "note"} == NOTES
    assert all(each.matters.endswith(".") for each in Ailment)
    assert not [each for each in Ailment if re.search("JP|trash", each.matters_in("plain"))], "no program is there"
    assert "JP may move it into .trash/" in Ailment.FOREIGN.matters_in("jp")


def test_a_run_of_which_nothing_more_is_known_had_no_later_changes() -> None:
    assert PastRun("r1", ()).since == LaterChanges({}, frozenset())
    assert plan.Plan(layout="nested").contents == {}

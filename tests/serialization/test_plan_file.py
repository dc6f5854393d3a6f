"""A saved plan is read as it was written. A damaged one is refused in one line with the file and the fault."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from reconcile.model.options import Missing
from reconcile.planning.planner import make_plan
from reconcile.serialization.plan_file import PlanFileError, read_plan
from reconcile.serialization.plan_json import plan_to_json
from tests.properties.test_worlds import plans_from
from tests.properties.worlds import some_worlds
from tests.support.scenarios.line_reader import DAY_NS
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconcile.model.plan import Plan


def plans(count: int) -> Iterator[Plan]:
    for world in some_worlds(12, count):
        for store, workspace, baseline, policy in plans_from(world):
            yield make_plan(store, workspace, baseline, policy, RULES, DAY_NS)


def document(plan: Plan) -> dict[str, Any]:
    return json.loads(json.dumps(plan_to_json(plan, workspace="/w", store="/s")))  # type: ignore[no-any-return]


def test_a_plan_survives_being_saved() -> None:
    for plan in plans(100):
        asked = replace(plan.policy, missing=Missing.INTENT)  # the configuration is no part of a plan
        saved = replace(plan, states=(), counted={}, quiet=False, policy=asked)
        saved = replace(saved, about=None, displaced=frozenset())  # `apply` works these out itself
        assert read_plan(json.dumps(document(plan)), "a plan") == (saved, "/w", "/s")


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[]", "null", '{"format": 1}', '{"format": "reconcile.plan/0"}']
)
def test_another_document_is_refused(text: str) -> None:
    with pytest.raises(PlanFileError) as refused:
        read_plan(text, "FILE")
    assert str(refused.value).startswith("FILE: ")
    assert "\n" not in str(refused.value)


def with_unknown_key(plan: dict[str, Any]) -> None:
    plan["actions"][0]["unknown"] = 1


def without_id(plan: dict[str, Any]) -> None:
    del plan["actions"][0]["id"]


def with_an_id_twice(plan: dict[str, Any]) -> None:
    plan["actions"].append(plan["actions"][0])


def with_a_later_need(plan: dict[str, Any]) -> None:
    plan["actions"][0]["needs"] = ["99"]


def with_a_place_above(plan: dict[str, Any]) -> None:
    plan["actions"][0]["target"] = "store:../elsewhere"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (with_unknown_key, "actions.0.unknown"),
        (without_id, "actions.0.id"),
        (with_an_id_twice, "two actions have the id"),
        (with_a_later_need, "needs '99', which is not before it"),
        (with_a_place_above, "actions.0.target"),
    ],
)
def test_a_damaged_plan_is_refused(damage: Callable[[dict[str, Any]], None], words: str) -> None:
    plan = next(filter(lambda plan: plan.actions, plans(100)))
    damaged = document(plan)
    damage(damaged)
    with pytest.raises(PlanFileError, match=words) as refused:
        read_plan(json.dumps(damaged), "FILE")
    assert str(refused.value).startswith("FILE: ")
    assert "\n" not in str(refused.value)

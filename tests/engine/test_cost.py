"""What a pass about a part costs does not grow with the store: lines of code that run are counted, not time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from reconcile.model.snapshot import Side
from tests.planning.test_linear import steps
from tests.support.projects.changing_sides import FIRST, LATER, POLICY, Watched, planned, watched
from tests.support.projects.world import append, events, set_key, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Dirty = dict[Side, set[str]]

MARGIN = 1.1


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watched, Watched]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # only the power's failing would tell
        few, many = (watched(tmp_path_factory.mktemp("watched"), count) for count in (200, 2000))
        yield few, many
    for each in (few, many):
        each.engine.close()
        each.engine.session.state.close()


def edit_in_workspace(it: Watched) -> Dirty:
    append(it.at, 1, "b", LATER)
    return {Side.WORKSPACE: {str(it.at.relative_to(it.workspace))}}


def edit_in_store(it: Watched) -> Dirty:
    append(it.store / f"{FIRST + 5}-it", 1, "b", LATER)
    return {Side.STORE: {f"{FIRST + 5}-it"}}


def begin_another(it: Watched) -> Dirty:
    write_conversation(it.workspace / f"{FIRST + 90_000}-new", "New", events(2))
    return {Side.WORKSPACE: {f"{FIRST + 90_000}-new"}}


def rename(it: Watched) -> Dirty:
    """A title, and the directory by it, of what has children."""
    before, after = it.store / f"{FIRST + 10}-it", it.store / f"{FIRST + 10}-other"
    set_key(before, "title", "Other", LATER)
    before.rename(after)
    return {Side.STORE: {before.name, after.name}}


def reparent(it: Watched) -> Dirty:
    at = it.workspace / f"{FIRST + 6}-it"
    set_key(at, "parent_id", f"jp-c{FIRST + 20}", LATER)
    return {Side.WORKSPACE: {at.name}}


def archive(it: Watched) -> Dirty:
    before, after = it.store / f"{FIRST + 30}-it", it.store / ".archive" / f"{FIRST + 30}-it"
    after.parent.mkdir(exist_ok=True)
    before.rename(after)
    return {Side.STORE: {before.name, f".archive/{before.name}"}}


def touch_nothing(it: Watched) -> Dirty:
    return {Side.WORKSPACE: {str(it.at.relative_to(it.workspace))}, Side.STORE: {f"{FIRST + 5}-it"}}


CHANGES = (edit_in_workspace, edit_in_store, begin_another, rename, reparent, archive, touch_nothing)


@pytest.mark.parametrize("change", CHANGES)
def test_a_pass_costs_what_it_is_about(
    both: tuple[Watched, Watched], change: Callable[[Watched], Dirty], record_property: Callable[[str, object], None]
) -> None:
    few, many = (cost(it, change(it)) for it in both)
    record_property(f"lines of {change.__name__}", many)
    assert many < few * MARGIN


def cost(it: Watched, dirty: Dirty) -> int:
    """Count the lines that a pass takes; it does what is due, and the next finds nothing more."""
    found = []

    def take_up() -> None:
        found.append(planned(it.engine, POLICY, dirty))
        it.engine.apply(found[0], "watch")

    count = steps(take_up)
    assert not found[0].full
    again = planned(it.engine, POLICY)
    it.engine.apply(again, "watch")
    assert again.plan.quiet
    return count

"""The lines about actions that failed or were skipped: one for a side with a full or read-only disk, and a hint."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.apply.executor import Outcome
from reconcile.model.plan import Action, Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Place, Side
from tests.cli.modules import module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

result_lines: Callable[..., Iterator[str]] = module("output.summary").result_lines
PLAIN = module("output.text").Style(colored=False)


def action(number: int, side: Side = Side.STORE) -> Action:
    return Action(
        id=str(number),
        kind=Kind.COPY,
        conversation=f"jp-c{number}",
        title="A",
        unit="metadata",
        reason=Reason.EDITED_WORKSPACE,
        target=Place(side, f"{number}-a"),
    )


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space, then run `reconcile` again; nothing was lost"),
        (errno.EROFS, "make the disk writable (remount it), then run `reconcile` again; nothing was lost"),
        (errno.EACCES, "check the permissions, then run `reconcile` again; nothing was lost"),
    ],
)
def test_of_a_disk_in_trouble_each_side_has_one_line_and_a_hint_follows(number: int, hint: str) -> None:
    text, outcome = os.strerror(number), Outcome()
    for each in (1, 2, 3):
        outcome.skip(action(each), Reason.BUSY, f"/a/{each}: {text}", number)
    outcome.fail(action(4), f"/a/4: {text}", number)
    outcome.fail(action(5), "/a/5: Input/output error", errno.EIO)
    assert list(result_lines(outcome, PLAIN)) == [
        f"skipped: 3 steps in the store: /a/: {text}",
        f"failed: -> store A (jp-c4): /a/4: {text}",
        "failed: -> store A (jp-c5): /a/5: Input/output error",
        f"hint: {hint}",
    ]


def test_paths_are_short_and_the_hint_names_the_command_to_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    text, outcome = os.strerror(errno.EROFS), Outcome()
    for each in (1, 2):
        outcome.skip(action(each), Reason.BUSY, f"/home/me/locks/{each}: {text}", errno.EROFS)
    outcome.fail(action(3), "/home/me/3: Input/output error", errno.EIO)
    assert list(result_lines(outcome, PLAIN, "run undo again: reconcile undo R")) == [
        f"skipped: 2 steps in the store: ~/locks/: {text}",
        "failed: -> store A (jp-c3): ~/3: Input/output error",
        "hint: make the disk writable (remount it), then run undo again: reconcile undo R; nothing was lost",
    ]


def test_the_error_counts_and_not_the_end_of_a_text() -> None:
    """A file may be called so, and a system may have other words."""
    outcome = Outcome()
    for each in (1, 2):
        outcome.fail(action(each), f"/a/{each}: No space left on device")
        outcome.fail(action(each + 2), f"/a/{each}: Kein Platz", errno.ENOSPC)
    lines = list(result_lines(outcome, PLAIN))
    assert [line.partition(":")[0] for line in lines] == ["failed", "failed", "failed", "hint"]
    assert lines[1].startswith("failed: 2 steps in the store: ")


def test_of_other_trouble_each_step_has_its_line() -> None:
    outcome = Outcome()
    outcome.skip(action(1), Reason.BUSY, "JP has it open")
    outcome.skip(action(2), Reason.BUSY, "JP has it open")
    assert list(result_lines(outcome, PLAIN)) == [
        "skipped: A (jp-c1): store:1-a: JP has it open",
        "skipped: A (jp-c2): store:2-a: JP has it open",
    ]


def test_a_conversation_that_was_skipped_has_a_line_for_each_cause() -> None:
    outcome = Outcome()
    steps = [replace(action(1), id=name) for name in "abcd"]
    for step, message in zip(
        steps,
        ("workspace:1-a/x: deleted since", "needs it: workspace:1-a/y: deleted since", "already done"),
        strict=False,
    ):
        outcome.skip(step, Reason.OUTDATED, message)
    outcome.fail(steps[3], "no")
    assert list(result_lines(outcome, PLAIN)) == [
        "skipped: A (jp-c1): workspace:1-a/x: deleted since",
        "skipped: A (jp-c1): store:1-a: already done",
        "failed: -> store A (jp-c1): store:1-a: no",
    ]

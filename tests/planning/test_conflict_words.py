"""Conflicts in words: what differs, which side is newer, and times that no calendar has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.plan import Conflict, Rival
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Metadata, ParentKind, ParentRef, Side
from reconcile.planning.conflicts import (
    commands,
    differing_keys,
    newer_side,
    restore_command,
    taken,
    time_text,
    value_texts,
)

SECOND = 10**9


def metadata(content: bytes) -> Metadata:
    return Metadata(title=None, parent=ParentRef(ParentKind.ABSENT), local=False, content=content)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"1", b"[" * 100_000])
def test_a_file_that_is_no_object_has_no_keys(content: bytes) -> None:
    whole = metadata(b'{"title": "A"}')
    assert differing_keys(metadata(content), whole) == differing_keys(whole, metadata(content)) == ()


def test_a_key_that_only_one_side_has_differs() -> None:
    ours, theirs = metadata(b'{"title": "A", "user": null}'), metadata(b'{"tag": 1, "title": "A"}')
    assert differing_keys(ours, theirs) == ("user", "tag")


@pytest.mark.parametrize(
    ("store", "workspace", "side"), [(2, 1, Side.STORE), (1, 2, Side.WORKSPACE), (1, 1, Side.STORE)]
)
def test_the_newer_side(store: int, workspace: int, side: Side) -> None:
    conflict = Conflict(
        conversation="1",
        title="A",
        unit=STREAM,
        case=15,
        store=Rival(store * SECOND),
        workspace=Rival(workspace * SECOND),
        takes=None,
        reason=Reason.CONFLICT,
    )
    assert newer_side(conflict) is side


@pytest.mark.parametrize(
    ("store", "workspace", "takes", "words"),
    [
        (1, 1, Side.WORKSPACE, "the workspace's is taken (--prefer workspace); other keys are merged"),
        (1, 1, Side.STORE, "the store's is taken (same time; the store wins); other keys are merged"),
        (2, 1, Side.WORKSPACE, "the workspace's is taken (--prefer workspace); other keys are merged"),
        (1, 2, Side.WORKSPACE, "the workspace's is taken (newer); other keys are merged"),
        (1, 2, Side.STORE, "the store's is taken (--prefer store); other keys are merged"),
    ],
)
def test_the_winner_of_a_merge_and_why(store: int, workspace: int, takes: Side, words: str) -> None:
    conflict = Conflict(
        conversation="1",
        title="A",
        unit=METADATA,
        case=15,
        store=Rival(store * SECOND),
        workspace=Rival(workspace * SECOND),
        takes=takes,
        reason=Reason.UNITED,
        merges=True,
    )
    assert taken(conflict) == words
    assert commands(conflict) == ("reconcile resolve 1 --take store", "reconcile resolve 1 --take workspace")
    assert restore_command(conflict, "r") == "reconcile diff 1"
    assert restore_command(replace(conflict, merges=False), "r") == "reconcile restore 1@r:metadata"


def test_a_time_outside_of_the_calendar_is_a_number() -> None:
    assert time_text(0) == "1970-01-01 00:00:00Z"
    assert time_text(2**63 * SECOND) == f"{2**63 * SECOND} ns"


def test_of_long_values_the_part_that_differs_is_kept() -> None:
    """In the middle of a long text, with what is before it; a value that only one side has is absent on the other."""
    ours, theirs = ("a" * 500 + end for end in "XY")
    assert value_texts("k", {"k": ours}, {"k": theirs}) == (f'…{"a" * 24}X"', f'…{"a" * 24}Y"')
    assert value_texts("k", {"k": ours}, {"k": "b"}) == (f'"{"a" * 198}…', '"b"')
    assert value_texts("k", {"k": "a" * 500}, {"k": "a" * 300}) == (f"…{'a' * 198}…", f'…{"a" * 24}"')
    assert value_texts("k", {"k": 1}, {}) == ("1", None)


def test_a_value_that_is_nested_too_deep_to_be_written() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert value_texts("key", {"key": deep}, {"key": 1}) == ("…", "1")

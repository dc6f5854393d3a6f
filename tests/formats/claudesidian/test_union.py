"""Two versions of a record in one: nothing is lost, and with a common past nothing comes back."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from reconcile.formats.claudesidian.record_files import Kind, messages_of, sessions_of, states_of, traces_of
from reconcile.formats.claudesidian.union import loses_entries, merge_items, merged_values
from reconcile.formats.json import javascript
from tests.support.formats.claudesidian import conversation, session, workspace

BASE = workspace("ws", description="old", sessions={"s1": session("s1", "t1", "t2"), "s2": session("s2", "t3")})


def copied(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(value))
    return {**found, **changes}


def test_both_have_written_over_each_other() -> None:
    mine, theirs = copied(BASE, lastAccessed=5000), copied(BASE, description="new", lastAccessed=4000)
    mine["sessions"]["s1"]["memoryTraces"]["t9"] = {"id": "t9"}
    together = merged_values(Kind.WORKSPACE, mine, theirs, BASE)
    assert (together["description"], together["lastAccessed"]) == ("new", 5000)
    assert list(traces_of(sessions_of(together)["s1"])) == ["t1", "t2", "t9"]
    assert merged_values(Kind.WORKSPACE, mine, theirs)["description"] == "old", "without a past the later one is right"


def test_what_was_deleted_stays_deleted_only_where_the_past_is_known() -> None:
    mine, theirs = copied(BASE), copied(BASE, lastAccessed=4000)
    del mine["sessions"]["s2"]
    del mine["sessions"]["s1"]["memoryTraces"]["t1"]
    with_past, without = merged_values(Kind.WORKSPACE, mine, theirs, BASE), merged_values(Kind.WORKSPACE, mine, theirs)
    assert {key: list(traces_of(each)) for key, each in sessions_of(with_past).items()} == {"s1": ["t2"]}
    assert {key: sorted(traces_of(each)) for key, each in sessions_of(without).items()} == {
        "s1": ["t1", "t2"],
        "s2": ["t3"],
    }


def test_what_one_deleted_and_the_other_went_on_with_is_kept() -> None:
    mine, theirs = copied(BASE), copied(BASE)
    del mine["sessions"]["s2"]
    theirs["sessions"]["s2"]["memoryTraces"]["t4"] = {"id": "t4"}
    assert list(traces_of(sessions_of(merged_values(Kind.WORKSPACE, mine, theirs, BASE))["s2"])) == ["t3", "t4"]


def test_messages_of_both_by_their_time() -> None:
    base = conversation("c", "one", "two")
    mine, theirs = copied(base, updated=9), copied(base, updated=8)
    mine["messages"].append({"id": "mine", "content": "a", "timestamp": 20})
    theirs["messages"].append({"id": "theirs", "content": "b", "timestamp": 10})
    del theirs["messages"][0]
    together = merged_values(Kind.CONVERSATION, mine, theirs, base)
    assert [message["id"] for message in messages_of(together)] == ["msg_1", "theirs", "mine"]
    assert (together["message_count"], together["updated"]) == (3, 9)


def test_messages_that_share_an_id_are_all_kept() -> None:
    value = conversation("c", "one", "two")
    for message in value["messages"]:
        message["id"] = "same"
    assert merged_values(Kind.CONVERSATION, value, copied(value)) == value


@pytest.mark.parametrize("id_", [None, "same", ...])
def test_messages_without_an_id_of_their_own_are_kept_of_both(id_: object) -> None:
    mine, theirs = conversation("c", "one", "mine"), conversation("c", "one", "theirs")
    for message in (*mine["messages"], *theirs["messages"]):
        if id_ is ...:
            del message["id"]
        else:
            message["id"] = id_
    versions = [javascript.stringify(version) for version in (mine, theirs)]
    merged = merge_items(Kind.CONVERSATION, "c.json", *versions)
    assert merged is not None
    assert sorted(message["content"] for message in json.loads(merged)["messages"]) == ["mine", "one", "theirs"]
    assert [merge_items(Kind.CONVERSATION, "c.json", *pair) for pair in ((merged, versions[0]), versions[::-1])] == [
        merged,
        merged,
    ]
    del mine["messages"][1]
    assert loses_entries(Kind.CONVERSATION, "c.json", merged, javascript.stringify(mine))


def test_what_both_have_changed_is_as_the_later_one_says() -> None:
    mine, theirs = copied(BASE, lastAccessed=5000), copied(BASE, lastAccessed=4000)
    for version, word in ((mine, "mine"), (theirs, "theirs, and longer")):
        version["description"] = word
        version["sessions"]["s1"]["name"] = word
        version["sessions"]["s1"]["memoryTraces"]["t1"]["content"] = word
    for base in (None, BASE):
        together = merged_values(Kind.WORKSPACE, mine, theirs, base)
        one = sessions_of(together)["s1"]
        assert (together["description"], one["name"], traces_of(one)["t1"]["content"]) == ("mine",) * 3


def test_of_two_that_are_equally_old_the_longer_is_right_each_by_itself() -> None:
    mine, theirs = copied(BASE), copied(BASE, description="a description that makes all of it the longer one")
    mine["sessions"]["s1"]["memoryTraces"]["t1"]["content"] = "a longer trace"
    for first, second in ((mine, theirs), (theirs, mine)):
        together = merged_values(Kind.WORKSPACE, first, second)
        assert together["description"] == theirs["description"]
        assert traces_of(sessions_of(together)["s1"])["t1"]["content"] == "a longer trace"


def changed(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    found = copied(value, lastAccessed=chance.randrange(2000, 2004))
    sessions = found["sessions"]
    for _ in range(chance.randrange(4)):
        key = chance.choice(["s1", "s2", "s3", "7"])
        traces = sessions.setdefault(key, session(key))["memoryTraces"]
        trace = chance.choice(["t1", "t2", "t3", "t4"])
        if chance.random() < 0.3:
            traces.pop(trace, None)
        elif chance.random() < 0.2:
            del sessions[key]
        else:
            traces[trace] = {"id": trace, "content": chance.choice("ab")}
    return found


def ids(value: dict[str, Any]) -> set[tuple[str, str]]:
    found = {(key, id_) for key, each in sessions_of(value).items() for id_ in (*traces_of(each), *states_of(each))}
    return found | {(key, "") for key in sessions_of(value)}


def test_of_any_two_versions() -> None:
    for seed in range(400):
        chance = random.Random(seed)
        mine, theirs = changed(BASE, chance), changed(BASE, chance)
        without, with_past = (
            merged_values(Kind.WORKSPACE, mine, theirs),
            merged_values(Kind.WORKSPACE, mine, theirs, BASE),
        )
        assert merged_values(Kind.WORKSPACE, theirs, mine) == without
        assert merged_values(Kind.WORKSPACE, theirs, mine, BASE) == with_past
        assert ids(without) == ids(mine) | ids(theirs)
        assert (ids(mine) - ids(BASE)) | (ids(theirs) - ids(BASE)) <= ids(with_past) <= ids(without)
        assert merged_values(Kind.WORKSPACE, mine, BASE, BASE) == mine, "one side alone has changed something"
        assert merged_values(Kind.WORKSPACE, without, mine) == {**without}, "again changes nothing"

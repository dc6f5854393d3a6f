"""The failures of docs/design/formats/claudesidian.md#failures, by number, where the edge cases don't show them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.checks.examine import examine
from reconcile.formats.claudesidian.checks.indexes import rebuild_of
from reconcile.formats.claudesidian.events import read_events
from reconcile.formats.claudesidian.index import shape_problem
from reconcile.formats.claudesidian.record_files import Item, Kind, messages_of, sessions_of
from reconcile.formats.claudesidian.repair import contents, rewritten, salvage
from reconcile.formats.claudesidian.union import merged_values
from reconcile.formats.claudesidian.vault import NexusFiles, SplitFiles, read_records
from reconcile.formats.json import javascript
from reconcile.model.snapshot import Fault
from tests.support.formats.claudesidian import (
    NOW,
    carried_out,
    conversation,
    events,
    files,
    index_of,
    session,
    told,
    vault,
    workspace,
)

if TYPE_CHECKING:
    from reconcile.formats.claudesidian.finding import Finding

WHOLE = workspace("ws_a", sessions={"s1": session("s1", "t1"), "s2": session("s2", "t2")})
TORN = javascript.stringify(WHOLE)[:-200]


def one(*directories: SplitFiles, nexus: NexusFiles | None = None) -> Finding:
    (finding,) = examine(vault(*directories, nexus=nexus), NOW)
    return finding


def torn(**more: Any) -> SplitFiles:
    return files(**{"ws_a.json": TORN, **more})


def value_of(finding: Finding) -> Any:
    (repair, *_) = finding.repairs
    assert repair.content is not None
    return json.loads(repair.content)


def test_c2_a_backup_is_the_first_choice() -> None:
    backups = {
        "ws_a-2025-11-19T10-00-00-000Z.json.bak": workspace("ws_a"),
        "ws_a-2025-11-20T10-00-00-000Z.json.bak": WHOLE,
        "ws_a-2025-11-21T10-00-00-000Z.json.bak": b"{",
        "ws_ab-2025-11-22T10-00-00-000Z.json.bak": workspace("ws_ab"),
        "ws_abc.json.bak": WHOLE,
    }
    split = torn(backups=backups)
    unread = {"ws_a-2025-11-23T10-00-00-000Z.json.bak": Fault("x", "a symbolic link", "a regular file")}
    finding = one(SplitFiles(split.files, {**split.backups, **unread}))
    assert (finding.code, finding.severity.value, finding.on_request) == ("C2", "error", True)
    assert finding.mend == (
        "restore the backup .workspaces/backups/ws_a-2025-11-20T10-00-00-000Z.json.bak (2 sessions and 2 traces)"
    )
    assert value_of(finding) == WHOLE


def test_c2_a_backup_does_not_replace_what_only_the_torn_file_has() -> None:
    old = workspace("ws_a", sessions={"s0": session("s0", "t0")})
    finding = one(torn(backups={"ws_a-2025-11-19T10-00-00-000Z.json.bak": old}))
    assert finding.mend.endswith(
        "(1 session and 1 trace), and add what only the truncated file has: it has 2 sessions and 1 trace"
    )
    assert set(sessions_of(value_of(finding))) == {"s0", "s1", "s2"}


def test_c2_then_another_file_of_the_same_id() -> None:
    found = examine(vault(torn(**{"ws_a (conflict).json": WHOLE})), NOW)
    assert told(found) == [("C2", "error", "ws_a.json"), ("C10", "warning", "ws_a (conflict).json")]
    assert found[0].mend == "copy .workspaces/ws_a (conflict).json (2 sessions and 2 traces)"
    assert found[0].on_request
    assert found[1].mend == "rename the file after its id, or change the id"


def test_c10_versions_are_not_merged_over_a_file_that_is_to_be_repaired() -> None:
    other = workspace("ws_a", sessions={"s1": session("s1", "t1")})
    found = examine(vault(torn(**{"ws_a (1).json": WHOLE, "ws_a (2).json": other})), NOW)
    assert told(found) == [("C2", "error", "ws_a.json"), ("C10", "warning", "ws_a (1).json")]
    assert (found[1].mend, found[1].repairs) == ("repair ws_a.json first: it may have more than these", ())


def test_c2_then_what_is_left_of_it() -> None:
    finding = one(torn())
    assert (
        finding.mend
        == "replace it with a copy from elsewhere; 2 sessions and 1 trace of the truncated file can be saved"
    )
    assert list(sessions_of(value_of(finding))) == ["s1", "s2"]
    assert (finding.place, finding.on_request) == (".workspaces/ws_a.json", True)


def test_c2_the_events_that_it_was_migrated_to() -> None:
    created = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a", "created": 1}}
    nexus = NexusFiles({Kind.WORKSPACE: {"ws_ws_a.jsonl": events(created)}}, b'{"completed": true}')
    finding = one(torn(), nexus=nexus)
    assert finding.mend.startswith("use its migrated form .nexus/workspaces/ws_ws_a.jsonl, or replace it with a copy")


def test_c2_what_can_not_be_read_at_all() -> None:
    fault = Fault("ws_a.json", "a symbolic link", "a regular file")
    finding = one(SplitFiles({"ws_a.json": fault}))
    assert (finding.found, finding.mend, finding.repairs) == (
        "a symbolic link (expected a regular file)",
        "replace it with a copy from elsewhere",
        (),
    )


SALVAGED = [
    (b'{"id": "c", "messages": [{"id": "m1"}, {"id": "m2", "con', ["m1"]),
    (b'{"id": "c", "metadata": {"chatSettings": {"a": 1, "b', []),
    (b'{"id": "c", "messages": [{"id": "m1"}', ["m1"]),
    (b'{"id": "c", "title": "with \\" and } in it", "messages": [{"id": "m1"}], "updated": 17', ["m1"]),
    (b'{"id": "c", "created": 12', []),
    (b'{"id": "c"}\n\x00\x00', []),
    (b'{"id": "c', None),
    (b'{"title": "x", ', None),
    (b"", None),
    (b'"text', None),
]


@pytest.mark.parametrize(("content", "expected"), SALVAGED)
def test_c2_what_a_torn_file_still_says(content: bytes, expected: list[str] | None) -> None:
    item = salvage(Kind.CONVERSATION, "c.json", content)
    assert (None if item is None else [message["id"] for message in messages_of(item.value)]) == expected
    if item is not None and expected is not None:
        assert contents(item) == f"{len(expected)} message{'' if len(expected) == 1 else 's'}"


def test_c2_every_beginning_of_a_file_is_read_without_inventing_anything() -> None:
    whole = javascript.stringify(WHOLE)
    for end in range(len(whole)):
        item = salvage(Kind.WORKSPACE, "ws_a.json", whole[:end])
        if isinstance(item, Item):
            assert merged_values(Kind.WORKSPACE, WHOLE, item.value) == WHOLE, end
            newer = merged_values(Kind.WORKSPACE, WHOLE, {**item.value, "lastAccessed": 10**15})
            assert newer["sessions"] == WHOLE["sessions"], "what is cut off replaces nothing that is whole"
            assert all(newer[key] == value for key, value in WHOLE.items() if key != "lastAccessed")


def test_c6_what_only_a_state_remembers() -> None:
    copy = workspace("ws_a", lastAccessed=1, sessions={"s1": session("s1", "t1", "t2"), "s9": session("s9", "t9")})
    copy["sessions"]["s1"]["name"] = "as it was called then"
    states = {"st": {"id": "st", "created": 5, "state": {"state": {"workspace": copy}}}}
    value = workspace("ws_a", sessions={"s1": session("s1", "t1", states=states)})
    before = vault(files(value))
    (finding,) = examine(before, NOW)
    assert (finding.code, finding.severity.value, finding.on_request) == ("C6", "warning", True)
    assert finding.found == (
        'its states have entries that the workspace lacks: 1 session ("s9"); 2 traces ("t2", "t9")'
    )
    after = value_of(finding)
    assert {key: list(each["memoryTraces"]) for key, each in after["sessions"].items()} == {
        "s1": ["t1", "t2"],
        "s9": ["t9"],
    }
    assert after["lastAccessed"] == 2000
    assert after["sessions"]["s1"]["name"] == "s1"
    assert after["sessions"]["s1"]["states"] == states


def test_c6_a_copy_that_is_none() -> None:
    copies: list[Any] = [
        None,
        [],
        workspace("ws_z", sessions={"s9": {}}),
        {"id": "ws_a", "sessions": []},
        {"id": "ws_a", "sessions": {"s": 1}},
        {"id": "ws_a", "sessions": {"s1": {"memoryTraces": {"t9": 5}}}},
    ]
    for copy in copies:
        states = {"st": {"id": "st", "created": 5, "snapshot": {"state": {"workspace": copy}}}}
        value = workspace("ws_a", sessions={"s1": session("s1", states=states)})
        assert examine(vault(files(value)), NOW) == ()


def test_c2_what_the_index_calls_it() -> None:
    whole = workspace("ws_a", "My project"), workspace("ws_b", rootFolder="B")
    split = files(*whole)
    (finding,) = examine(vault(SplitFiles({**split.files, "ws_a.json": b"{"})), NOW)
    assert finding.found == (
        "a truncated file, which ends inside a value in line 1 (expected the JSON of a workspace); "
        'its name in the index is "My project"'
    )


def test_c9_needs_the_same_role_and_another_id() -> None:
    value = conversation("c", "hello", "hello", "hello")
    value["messages"][1]["role"] = "assistant"
    assert examine(vault(files(), files(value)), NOW) == ()
    again = conversation("c", "hello", "hello")
    again["messages"][1]["id"] = again["messages"][0]["id"]
    assert examine(vault(files(), files(again)), NOW) == ()


@pytest.mark.parametrize("id_", ["a/b", "../a", "index", ".hidden", "nul\0", "half\ud800", "ü" * 130])
def test_c10_an_id_that_can_be_no_file_name_is_never_made_one(id_: str) -> None:
    finding = one(files(**{"ws_x.json": workspace(id_)}))
    assert (finding.mend, finding.repairs) == ("rename the file after its id, or change the id", ())
    twice = one(files(**{"ws_x.json": workspace(id_), "ws_y.json": workspace(id_)}))
    assert (twice.mend, twice.repairs) == ("give one of them another id", ())


def legacy_talk() -> dict[str, Any]:
    value = conversation("c", "one", "two", cost=1, metadata={"chatSettings": {}, "totalCost": 2, "currency": "USD"})
    value["messages"][0] |= {"usage": {}, "model": "m", "toolCalls": [{"id": "x", "result": 1}, {"id": "y"}]}
    value["messages"][1] |= {"toolCalls": [{"id": "x"}], "model": "m"}
    return value


def test_what_the_migration_leaves_out_of_a_conversation() -> None:
    begun = {"type": "metadata", "data": {"id": "c", "title": "c", "created": 1000, "vault": "v"}}
    said = [
        {"type": "message", "conversationId": "c", "data": {"id": f"msg_{at}"}, "timestamp": time}
        for at, time in ((0, 500), (1, 1))
    ]
    nexus = NexusFiles(
        {Kind.CONVERSATION: {"conv_c.jsonl": events({**begun, "timestamp": 0}, *said)}}, b'{"completed": true}'
    )
    finding = one(files(), files(legacy_talk()), nexus=nexus)
    assert (finding.code, finding.severity.value, finding.place) == ("migration", "note", ".conversations/c.json")
    assert finding.found == (
        "not migrated: updated, cost, totalCost, currency of its metadata, the time of 1 message, "
        "usage of 1 message, model of 2 messages, tool results of 1 message"
    )


def test_what_has_no_event_file_though_the_migration_is_complete() -> None:
    ended = workspace("ws_a", sessions={"s": session("s", endTime=5)})
    nexus = NexusFiles({Kind.WORKSPACE: {}}, b'{"completed": true}')
    first, second = examine(vault(files(ended), files(legacy_talk()), nexus=nexus), NOW)
    assert (first.place, first.mend) == (".conversations/c.json", "keep this file")
    assert first.found == (
        'not migrated: .nexus/conversations/conv_c.jsonl is missing, without 2 messages ("msg_0", "msg_1")'
    )
    assert second.found == 'not migrated: .nexus/workspaces/ws_ws_a.jsonl is missing, without 1 session ("s")'
    done = streams(events(CREATED, SESSION), status=b'{"completed": true}')
    assert one(files(ended), nexus=done).found == "not migrated: lastAccessed, isActive, endTime of 1 session"


def test_a_file_that_the_program_did_not_write_is_not_rewritten() -> None:
    by_hand = json.dumps(conversation("c", "text", message_count=5), indent=4).encode()
    finding = next(each for each in examine(vault(files(), files(**{"c.json": by_hand}, index=None)), NOW))
    assert finding.code == "C1" or not finding.repairs
    assert rewritten(by_hand, json.loads(by_hand), {}) is None


def test_c9_the_same_message_twice_in_a_row() -> None:
    finding = one(files(), files(conversation("c", "hello", "hello", "", "")))
    assert (finding.code, finding.severity.value, finding.repairs) == ("C9", "warning", ())
    assert finding.found == 'the same message twice in a row: msg_0 and msg_1, "hello"'


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"workspaceId": "ws_a", "sessionId": "s1"}, None),
        ({"workspaceId": "ws_a", "sessionId": "current"}, None),
        ({"workspaceId": "ws_a"}, None),
        (
            {"workspaceId": "ws_a", "sessionId": "s9"},
            'its chatSettings name session "s9", which is not in workspace ws_a',
        ),
        (
            {"workspaceId": "ws_z", "sessionId": "s9"},
            'its chatSettings name session "s9", which is not in ws_z, which does not exist here',
        ),
    ],
)
def test_c14_a_session_that_is_nowhere(settings: dict[str, str], words: str | None) -> None:
    found = examine(vault(files(WHOLE), files(conversation("c", metadata={"chatSettings": settings}))), NOW)
    assert [each.found for each in found] == ([] if words is None else [words])


def test_an_index_that_can_not_be_gone_through() -> None:
    plain: dict[str, Any] = {name: {} for name in ("conversations", "byTitle", "byContent", "byVault")}
    assert shape_problem(Kind.CONVERSATION, plain) is None
    assert shape_problem(Kind.CONVERSATION, {**plain, "byTitle": None}) == "null as byTitle"
    assert (
        shape_problem(Kind.CONVERSATION, {**plain, "byTitle": {"x": "c"}}) == "a member of byTitle that is not a list"
    )
    words = "a member of conversations that is not an object"
    assert shape_problem(Kind.CONVERSATION, {**plain, "conversations": {"c": 1}}) == words


def test_c1_says_how_many_records_exist() -> None:
    finding = one(files(workspace("ws_a"), index=b"{"))
    assert finding.found.endswith(': the program shows no workspace, but 1 workspace exists ("ws_a")')


def test_c1_is_one_entry_of_many_and_else_each_is_told() -> None:
    every = [workspace(f"ws_{letter}", rootFolder=letter) for letter in "abcd"]
    for known, codes in ((1, ["C1"]), (2, ["C4", "C4"]), (3, ["C4"])):
        index = index_of(Kind.WORKSPACE, {f"{each['id']}.json": javascript.stringify(each) for each in every[:known]})
        assert [each.code for each in examine(vault(files(*every, index=index)), NOW)] == codes


def test_until_the_migration_is_complete_the_older_form_is_looked_at_in_whole() -> None:
    created = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a", "created": 1}}
    for status, codes in ((b'{"completed": false}', ["C1"]), (b'{"completed": true}', []), (None, ["C1"])):
        nexus = streams(events(created), status=status)
        told_ = examine(vault(files(workspace("ws_a"), index=b"{"), nexus=nexus), NOW)
        assert [each.code for each in told_ if each.code != "migration"] == codes


def test_an_index_as_a_rebuild_is_an_action() -> None:
    split = files(WHOLE, index=b"{")
    records = read_records(Kind.WORKSPACE, split)
    found = rebuild_of(records, NOW)
    assert found is not None
    assert (found.path, found.before, found.reads) == (".workspaces/index.json", b"{", (".workspaces/ws_a.json",))
    assert found.problem is not None
    assert not found.evidence
    done = read_records(Kind.WORKSPACE, SplitFiles({**split.files, "index.json": found.after}))
    assert rebuild_of(done, NOW + 5) is None, "the time of a write is no difference"
    assert rebuild_of(read_records(Kind.CONVERSATION, SplitFiles({})), NOW) is None


def test_an_index_without_records_is_compared_too() -> None:
    empty: dict[str, Any] = {name: {} for name in ("workspaces", "byName", "byDescription", "byFolder")}
    index = {**empty, "sessionsByWorkspace": {"ws_gone": []}, "byName": {"gone": ["ws_gone"]}}
    finding = one(files(index=index))
    assert finding.found == "ws_gone: byName, sessionsByWorkspace lead to ws_gone, which has no file"


CREATED = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a", "created": 1}}
SESSION = {"type": "session_created", "workspaceId": "ws_a", "data": {"id": "s", "name": "s", "startTime": 1}}
STATE = {"type": "state_saved", "workspaceId": "ws_a", "sessionId": "s", "data": {"id": "st", "name": "st"}}


def streams(*contents: bytes, status: bytes | None = None) -> NexusFiles:
    names = (f"ws_ws_{letter}.jsonl" for letter in "abc")
    return NexusFiles({Kind.WORKSPACE: dict(zip(names, contents, strict=False))}, status)


def found(*contents: bytes) -> list[tuple[str, str]]:
    return [(each.severity.value, each.found) for each in examine(vault(nexus=streams(*contents)), NOW)]


def test_c11_a_state_is_saved_again_only_where_it_is_empty() -> None:
    again = {**STATE, "data": {**STATE["data"], "stateJson": "{}"}}  # type: ignore[dict-item]
    deleted = {"type": "state_deleted", "workspaceId": "ws_a", "sessionId": "s", "stateId": "st"}
    assert found(events(CREATED, SESSION, STATE, again)) == []
    assert found(events(CREATED, SESSION, STATE, deleted)) == []
    assert found(events(CREATED, SESSION, STATE)) == [
        ("error", '1 state without content, so they can\'t be opened: "st"')
    ]


def test_c11_some_of_the_states_are_in_the_older_form() -> None:
    other = {**STATE, "data": {"id": "st2", "name": "st2"}}
    older = workspace("ws_a", sessions={"s": session("s", states={"st": {"id": "st", "snapshot": {"a": 1}}})})
    nexus = streams(events(CREATED, SESSION, STATE, other), status=b'{"completed": true}')
    first, *_ = examine(vault(files(older), nexus=nexus), NOW)
    assert first.mend == "save 1 of them again with the content from .workspaces/ws_a.json"
    assert len(first.repairs) == 1


def test_c11_it_is_saved_after_the_event_without_content_whenever_that_is_mended() -> None:
    older = workspace("ws_a", sessions={"s": session("s", states={"st": {"id": "st", "snapshot": {"a": 1}}})})
    for time, expected in ((5, 6), (NOW + 7, NOW + 8)):
        nexus = streams(events(CREATED, SESSION, {**STATE, "timestamp": time}), status=b'{"completed": true}')
        first, *_ = examine(vault(files(older), nexus=nexus), NOW)
        assert (first.code, first.place) == ("C11", ".nexus/workspaces/ws_ws_a.jsonl")
        content = first.repairs[0].content
        assert content is not None
        assert json.loads(content.splitlines()[-1])["timestamp"] == expected
        assert first.mend == "save them again with the content from .workspaces/ws_a.json"


def test_c11_a_time_before_all_times() -> None:
    older = workspace("ws_a", sessions={"s": session("s", states={"st": {"id": "st", "snapshot": {"a": 1}}})})
    content = events(CREATED, SESSION) + b"".join(
        each.text.replace(b'"timestamp": 1', b'"timestamp": -1e400') + b"\n"
        for each in read_events(events(STATE)).events
    )
    first, *_ = examine(vault(files(older), nexus=streams(content)), NOW)
    assert (first.code, first.repairable) == ("C11", True)


def test_c11_the_last_by_time_counts() -> None:
    filled = {**STATE, "data": {"id": "st", "stateJson": "{}"}, "timestamp": 90}
    assert [words for _, words in found(events(CREATED, SESSION, filled, {**STATE, "timestamp": 80}))] == []


def test_c12_events_that_are_there_twice() -> None:
    twice = events(CREATED, SESSION) + events(CREATED, SESSION).splitlines(keepends=True)[1]
    before = vault(nexus=streams(twice))
    (finding,) = examine(before, NOW)
    assert (finding.severity.value, finding.found, finding.repairable) == (
        "warning",
        "repeated events in line 3",
        True,
    )
    assert examine(carried_out(before), NOW) == ()


def test_what_can_be_mended_of_an_event_file_is_mended_in_one_go() -> None:
    whole = events(CREATED, SESSION, STATE)
    older = workspace("ws_a", sessions={"s": session("s", states={"st": {"id": "st", "snapshot": {"a": 1}}})})
    content = whole + b"nonsense\r\n" + whole.splitlines(keepends=True)[0] + b'{"torn'
    before = vault(files(older), nexus=streams(content, status=b'{"completed": true}'))
    assert [each.code for each in examine(before, NOW) if each.repairable] == ["C11", "C12", "C12"]
    after = carried_out(before)
    assert after.nexus is not None
    mended = after.nexus.events[Kind.WORKSPACE]["ws_ws_a.jsonl"]
    assert isinstance(mended, bytes)
    assert mended.startswith(whole + b"nonsense\r\n")
    assert len(mended.splitlines()) == 5
    assert [each.code for each in examine(after, NOW)] == ["C12", "migration"]
    assert [each.code for each in examine(carried_out(after, on_request=True), NOW)] == ["migration"]


def test_c12_two_events_of_one_id() -> None:
    other = {**SESSION, "data": {"id": "s2", "name": "s2", "startTime": 1}, "id": "e2"}
    assert found(events(CREATED, SESSION, other)) == [("warning", 'different events with the same id: "e2"')]


def test_c12_a_line_that_is_no_event() -> None:
    nexus = streams(events(CREATED) + b"nonsense\n" + events(SESSION))
    first, *_ = examine(vault(nexus=nexus), NOW)
    assert first.found.startswith("line 2 is not an event (")
    assert first.on_request


def test_c12_events_of_an_unknown_type_and_without_an_id() -> None:
    assert found(events(CREATED, {"type": "workspace_painted"}, {**SESSION, "data": {}})) == [
        ("note", "an event of the unknown type workspace_painted; the program skips it (line 2)"),
        ("warning", "a session_created without an id (line 3)"),
    ]


def test_c12_a_file_without_its_beginning() -> None:
    assert found(events(SESSION)) == [
        (
            "warning",
            "session_created of the workspace ws_a, which was never created: the program does not show it (line 1)",
        )
    ]


def test_c12_entities_that_are_made_again() -> None:
    again = {**SESSION, "data": {"id": "s", "name": "renamed", "startTime": 1}}
    assert found(events(CREATED, SESSION, again)) == [("note", "session s again: the latest is used (line 3)")]


def test_c12_two_workspaces_of_one_name() -> None:
    other = {"type": "workspace_created", "data": {"id": "ws_b", "name": "a", "created": 2}}
    assert found(events(CREATED), events(other)) == [
        ("note", '2 workspaces have the name "a", and the program shows the last: "ws_a", "ws_b"')
    ]


def test_c12_an_event_file_that_can_not_be_read() -> None:
    fault = Fault("ws_ws_a.jsonl", "a directory", "a regular file")
    finding = one(nexus=NexusFiles({Kind.WORKSPACE: {"ws_ws_a.jsonl": fault}}))
    assert (finding.code, finding.found) == ("C12", "a directory (expected a regular file)")


@pytest.mark.parametrize(("status", "words"), [(b"[]", "not a JSON object"), (b"{", "a truncated file")])
def test_a_status_of_the_migration_that_says_nothing(status: bytes, words: str) -> None:
    finding = one(nexus=streams(status=status))
    assert (finding.code, finding.severity.value) == ("migration", "note")
    assert words in finding.found

"""The edge cases of docs/design/formats/claudesidian.md#edge-cases, each under its number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.claudesidian.briefing import Surroundings, VaultFile, brief, load_workspace
from reconcile.formats.claudesidian.checks.examine import examine
from reconcile.formats.claudesidian.checks.records import LARGE
from reconcile.formats.claudesidian.index import rebuild
from reconcile.formats.claudesidian.record_files import INDEX, Kind, payload_of, read_item, sessions_of, states_of
from reconcile.formats.claudesidian.union import merged_values
from reconcile.formats.claudesidian.vault import NexusFiles, VaultFiles
from reconcile.formats.json import javascript
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

THREE = [workspace("ws_a", "Alpha notes"), workspace("ws_b", "Beta", rootFolder="B"), workspace("ws_c", rootFolder="C")]


def stored(read: VaultFiles, kind: Kind = Kind.WORKSPACE) -> dict[str, Any]:
    content = read.split[kind].files[INDEX]
    assert isinstance(content, bytes)
    found: dict[str, Any] = json.loads(content)
    return found


def one(read: VaultFiles) -> Any:
    (finding,) = examine(read, NOW)
    return finding


def test_1_without_an_index_it_is_made_as_the_program_makes_it() -> None:
    without = vault(files(*THREE, index=None))
    finding = one(without)
    assert (finding.code, finding.severity.value) == ("C1", "error")
    assert "no index.json: the program shows no workspace, but 3 workspaces exist" in finding.found
    (repair,) = finding.repairs
    assert repair.content == javascript.stringify(rebuild(Kind.WORKSPACE, THREE, 2001))
    assert examine(carried_out(without), NOW) == ()


def test_2_a_torn_index_shows_nothing() -> None:
    torn = vault(files(*THREE, index=b'{"workspaces": {"ws_a"'))
    finding = one(torn)
    assert finding.code == "C1"
    assert "a truncated file" in finding.found
    assert 'the program shows no workspace, but 3 workspaces exist ("ws_a", "ws_b", "ws_c")' in finding.found
    assert examine(carried_out(torn), NOW) == ()


def test_2_what_the_program_makes_of_it_next() -> None:
    begun = index_of(Kind.WORKSPACE, {"ws_a.json": javascript.stringify(THREE[0])})
    anew = vault(files(*THREE, index=begun))
    finding = one(anew)
    assert finding.code == "C1"
    assert finding.found == '1 of 3 workspaces: the program started a new index, without "ws_b", "ws_c"'
    assert finding.found == '1 of 3 workspaces: the program started a new index, without "ws_b", "ws_c"'
    assert examine(carried_out(anew), NOW) == ()


@pytest.mark.parametrize("bad", [b"[]", b'{"workspaces": {}}', b'{"workspaces": [], "byName": {}}'])
def test_2_an_index_that_is_something_else(bad: bytes) -> None:
    assert one(vault(files(*THREE, index=bad))).code == "C1"


def drifted(**changes: Any) -> VaultFiles:
    """The three workspaces with an index in which some parts differ."""
    index = index_of(Kind.WORKSPACE, {f"{each['id']}.json": javascript.stringify(each) for each in THREE})
    for part, change in changes.items():
        index[part] = {**index[part], **change}
    return vault(files(*THREE, index=index))


def test_3_the_old_name_is_a_stale_token_and_no_error() -> None:
    finding = one(drifted(byName={"omega": ["ws_a"]}))
    assert (finding.code, finding.severity.value, finding.found) == ("C5", "note", 'ws_a: byName still has "omega"')


def test_4_of_a_shared_folder_either_workspace_will_do_and_no_third() -> None:
    shared = [workspace("ws_a", rootFolder="Notes"), workspace("ws_b", rootFolder="Notes"), workspace("ws_c")]
    index = index_of(Kind.WORKSPACE, {f"{each['id']}.json": javascript.stringify(each) for each in shared})
    for id_, expected in (("ws_a", []), ("ws_b", []), ("ws_c", ['ws_c: byFolder still has "Notes"'])):
        changed = {**index, "byFolder": {**index["byFolder"], "Notes": id_}}
        assert [each.found for each in examine(vault(files(*shared, index=changed)), NOW)] == expected


def test_5_the_folder_before_a_move_is_stale_and_goes() -> None:
    moved = drifted(byFolder={"Research/Alpha": "ws_b"})
    assert one(moved).found == 'ws_b: byFolder still has "Research/Alpha"'
    assert "Research/Alpha" not in stored(carried_out(moved))["byFolder"]


@pytest.mark.parametrize("name", ["AI", "日本語"])
def test_6_a_name_without_words_is_missing_nowhere(name: str) -> None:
    assert examine(vault(files(workspace("ws_a", name))), NOW) == ()


def test_7_keys_are_in_the_order_of_javascript() -> None:
    index = rebuild(Kind.WORKSPACE, [workspace("ws_a", "Plan 2025 007 10 beta")], NOW)
    assert list(javascript.parse(javascript.stringify(index))["byName"]) == ["2025", "plan", "007", "beta"]


def test_8_constructor_is_indexed_under_a_key_of_its_own_and_flagged() -> None:
    named = [workspace("ws_ctor", "Constructor patterns"), workspace("ws_a", rootFolder="A")]
    before = vault(files(*named, index=index_of(Kind.WORKSPACE, {"ws_a.json": javascript.stringify(named[1])})))
    found = examine(before, NOW)
    assert [(each.code, each.severity.value) for each in found] == [("C4", "error"), ("C4", "note")]
    assert 'the program fails to index this, at "constructor"' in found[1].found
    healed = carried_out(before)
    assert stored(healed)["byName"]["constructor"] == ["ws_ctor"]
    assert examine(healed, NOW) == ()


def test_9_my_index_is_a_record_and_no_index() -> None:
    finding = one(vault(files(workspace("my-index"))))
    assert (finding.severity.value, finding.found) == ("note", "the program does not list a file with this name")
    assert finding.place == ".workspaces/my-index.json"


def test_10_dot_files_and_backups_are_no_records() -> None:
    backup = {"ws_a-2025-11-20T10-00-00-000Z.json.bak": workspace("ws_a")}
    more = {".trace-schema.json": {"version": 1, "migratedAt": 1}}
    assert told(examine(vault(files(*THREE, **more, backups=backup)), NOW)) == [("C13", "note", ".trace-schema.json")]


def test_11_a_conflict_copy_is_a_version_of_the_same_record() -> None:
    mine = workspace("ws_b", sessions={"s1": session("s1", "t1")})
    theirs = workspace("ws_b", sessions={"s1": session("s1", "t2"), "s2": session("s2")})
    both = vault(files(mine, **{"ws_b (conflict).json": theirs}))
    finding = one(both)
    assert (finding.code, finding.severity.value, finding.on_request) == ("C10", "warning", True)
    assert (
        '2 versions of ws_b: "ws_b (conflict).json", "ws_b.json"; the index has the one in ws_b.json' in finding.found
    )
    assert list(stored(both)["workspaces"]) == ["ws_b"]
    after = carried_out(both, on_request=True)
    content = after.split[Kind.WORKSPACE].files["ws_b.json"]
    assert isinstance(content, bytes)
    together = sessions_of(json.loads(content))
    assert {id_: sorted(each["memoryTraces"]) for id_, each in together.items()} == {"s1": ["t1", "t2"], "s2": []}
    assert "ws_b (conflict).json" not in after.split[Kind.WORKSPACE].files


def test_11_versions_of_a_conversation() -> None:
    mine, theirs = conversation("c", "a"), conversation("c", "a", "b", updated=1)
    together = merged_values(Kind.CONVERSATION, mine, theirs)
    assert [each["content"] for each in together["messages"]] == ["a", "b"]
    assert (together["message_count"], together["updated"]) == (2, 2000)


def test_12_a_file_under_another_name_than_its_id() -> None:
    misnamed = vault(files(**{"ws_x.json": workspace("ws_y")}))
    finding = one(misnamed)
    assert (finding.code, finding.severity.value, finding.on_request) == ("C10", "warning", True)
    assert finding.mend == 'rename it to "ws_y.json"'
    assert list(stored(misnamed)["workspaces"]) == ["ws_y"]
    assert examine(carried_out(misnamed, on_request=True), NOW) == ()


@pytest.mark.parametrize("lacking", [{"sessions": None}, {"sessions": {"s": {"id": "s", "states": {}}}}])
def test_13_what_is_missing_is_empty_and_can_be_added(lacking: dict[str, Any]) -> None:
    before = vault(files(workspace("ws_a", **lacking)))
    finding = one(before)
    assert (finding.code, finding.severity.value, finding.repairable) == ("C13", "note", True)
    assert "missing: the program's own rebuild fails" in finding.found
    assert examine(carried_out(before), NOW) == ()


def test_14_sessions_are_in_the_order_of_javascript() -> None:
    item = read_item(Kind.WORKSPACE, "w.json", b'{"id": "w", "sessions": {"s-20251101090000": {}, "12": {}}}')
    index = rebuild(Kind.WORKSPACE, [getattr(item, "value", {})], NOW)
    assert index["sessionsByWorkspace"]["w"] == ["12", "s-20251101090000"]


def test_15_both_spellings_of_a_state_are_read_and_none_is_converted() -> None:
    both = {"a": {"id": "a", "snapshot": {"old": 1}}, "b": {"id": "b", "state": {"new": 1}}}
    value = workspace("ws_a", sessions={"s": session("s", states=both)})
    assert examine(vault(files(value)), NOW) == ()
    assert [payload_of(each) for each in states_of(value["sessions"]["s"]).values()] == [{"old": 1}, {"new": 1}]
    assert len(brief(value, Surroundings(), 5)["states"]) == 2


def grown(states: int, text: str) -> dict[str, Any]:
    """A workspace in which each state holds a copy of all that was before."""
    value = workspace("ws_a", description=text, sessions={"s": session("s")})
    for number in range(states):
        inner = {"id": f"st{number}", "state": {"state": {"workspace": json.loads(json.dumps(value))}}}
        value["sessions"]["s"]["states"][f"st{number}"] = inner
    return value


def test_16_a_dozen_states_are_mostly_copies() -> None:
    value = grown(12, "x" * 400)
    before = vault(files(value))
    finding = one(before)
    assert (finding.code, finding.severity.value, finding.on_request) == ("C7", "note", True)
    assert "of which 100% are copies of itself in its states" in finding.found
    after = carried_out(before, on_request=True)
    content = after.split[Kind.WORKSPACE].files["ws_a.json"]
    assert isinstance(content, bytes)
    assert len(content) < 12_000 < LARGE
    assert len(states_of(json.loads(content)["sessions"]["s"])) == 12
    assert examine(after, NOW) == ()


def test_16_few_copies_are_nothing_to_speak_of() -> None:
    assert examine(vault(files(grown(3, ""))), NOW) == ()


def test_17_messages_are_counted() -> None:
    assert examine(vault(files(), files(conversation("c"))), NOW) == ()
    miscounted = conversation("c", "one", "two", message_count=1)
    before = vault(files(), files(miscounted, index=rebuild(Kind.CONVERSATION, [miscounted], NOW)))
    found = examine(before, NOW)
    assert told(found) == [("C8", "warning", "c.json"), ("C8", "warning", "index.json")]
    assert found[0].found == "message_count is 1, but it has 2 messages"
    assert examine(carried_out(before), NOW) == ()


def test_18_a_message_without_text_has_no_words() -> None:
    called = conversation("c", None, "text")
    del called["messages"][1]["content"]
    assert examine(vault(files(), files(called)), NOW) == ()
    assert rebuild(Kind.CONVERSATION, [called], NOW)["byContent"] == {}


def test_19_date_ranges_are_fine_whatever_they_are() -> None:
    value = conversation("c", "text")
    for buckets, now in ((False, NOW), (True, NOW), (True, NOW - 400 * 24 * 3600 * 1000)):
        index = rebuild(Kind.CONVERSATION, [value], now, buckets=buckets)
        assert examine(vault(files(), files(value, index=index)), NOW) == ()
    index["byDateRange"][0]["conversationIds"] = ["gone"]
    ghost = vault(files(), files(value, index=index))
    assert one(ghost).found == "gone: byDateRange leads to gone, which has no file"
    fresh = stored(carried_out(ghost), Kind.CONVERSATION)["byDateRange"]
    assert fresh[0]["end"] == index["lastUpdated"], "the same bytes wherever it is rebuilt"


def evidence(**changed: Any) -> VaultFiles:
    value = workspace("ws_a", sessions={"s": session("s", *(f"t{number}" for number in range(20)))})
    index = rebuild(Kind.WORKSPACE, [value], NOW)
    index["workspaces"]["ws_a"] |= changed
    index["byName"]["once"] = ["ws_a"]
    return vault(files(value, index=index))


def test_20_an_index_that_counts_more_is_evidence_and_kept_until_asked() -> None:
    found = examine(evidence(traceCount=21), NOW)
    assert told(found) == [("C5", "note", "index.json"), ("C6", "warning", "index.json")]
    assert found[1].found == "ws_a: 21 traces in the index, 20 in the file: 1 may be lost"
    assert all(each.on_request and not each.repairable for each in found)
    assert "until then it is the only evidence" in found[1].mend


def test_20_a_session_that_only_the_index_knows() -> None:
    lost = drifted(sessionsByWorkspace={"ws_a": ["s-1"]})
    assert one(lost).found == 'ws_a: the index lists sessions that the file lacks: "s-1"'


def test_21_a_file_that_is_older_than_its_entry_was_replaced() -> None:
    older, newer = examine(evidence(lastAccessed=1999), NOW), examine(evidence(lastAccessed=2001), NOW)
    assert told(older)[0] == ("C5", "warning", "index.json")
    assert "lastAccessed is 1999 in the index and 2000 in the file" in older[0].found
    assert all(each.repairable for each in older)
    assert told(newer)[-1] == ("C6", "warning", "index.json")
    assert "since an older copy replaced the file" in newer[-1].found
    assert not any(each.repairable for each in newer)


def test_22_steps_in_a_list_are_equal_to_their_lines() -> None:
    listed = workspace("ws_a", context={"workflows": [{"name": "N", "when": "W", "steps": ["a", "b"]}]})
    joined = workspace("ws_a", context={"workflows": [{"name": "N", "when": "W", "steps": "a\nb"}]})
    assert brief(listed, Surroundings(), 3)["workflows"] == brief(joined, Surroundings(), 3)["workflows"]
    assert load_workspace(listed, Surroundings(), 3)["data"]["workflows"] == ["**N** (W):\na\nb"]
    assert examine(vault(files(listed)), NOW) == ()


STATES = {"st": {"id": "st", "name": "st", "created": 5, "snapshot": {"activeTask": "é"}}}
LEGACY = workspace("ws_a", sessions={"s": session("s", "t1", states=STATES)})
CREATED = {"type": "workspace_created", "data": {"id": "ws_a", "name": "ws_a", "rootFolder": "/", "created": 1000}}
SESSION = {"type": "session_created", "workspaceId": "ws_a", "data": {"id": "s", "name": "s", "startTime": 1000}}
TRACE = {"type": "trace_added", "workspaceId": "ws_a", "sessionId": "s", "data": {"id": "t1", "content": "t1"}}
STATE = {"type": "state_saved", "workspaceId": "ws_a", "sessionId": "s", "data": {"id": "st", "name": "st"}}
DONE, BROKEN_OFF = b'{"completed": true, "version": "1.2.0"}', b'{"completed": false}'


def migrated(content: bytes, status: bytes = DONE, *legacy: dict[str, Any]) -> VaultFiles:
    nexus = NexusFiles({Kind.WORKSPACE: {"ws_ws_a.jsonl": content}, Kind.CONVERSATION: {}}, status)
    return vault(*([files(*legacy, index=b"an archive's index is nobody's")] if legacy else []), nexus=nexus)


def test_23_what_the_migration_left_out_is_named_while_the_archive_has_it() -> None:
    before = migrated(events(CREATED, SESSION, TRACE, STATE), DONE, LEGACY)
    found = examine(before, NOW)
    assert told(found) == [("C11", "error", "ws_ws_a.jsonl"), ("migration", "note", "ws_a.json")]
    assert found[1].found == "not migrated: lastAccessed, isActive, the time of 1 trace"
    after = carried_out(before)
    assert told(examine(after, NOW)) == [("migration", "note", "ws_a.json")]
    assert after.nexus is not None
    content = after.nexus.events[Kind.WORKSPACE]["ws_ws_a.jsonl"]
    assert isinstance(content, bytes)
    assert content.startswith(events(CREATED, SESSION, TRACE, STATE))
    saved = json.loads(content.splitlines()[-1])
    assert (saved["data"]["stateJson"], saved["timestamp"]) == ('{"activeTask":"é"}', 5)


def test_23_missing_sessions_of_a_completed_migration() -> None:
    found = examine(migrated(events(CREATED), DONE, LEGACY), NOW)
    assert told(found)[0] == ("migration", "warning", "ws_a.json")
    assert 'exists, without 1 session ("s"); 1 trace ("t1"); 1 state ("st")' in found[0].found


def test_24_an_interrupted_migration_lists_what_is_to_be_completed() -> None:
    found = examine(migrated(events(CREATED), BROKEN_OFF, LEGACY, workspace("ws_z")), NOW)
    migration = [each for each in found if each.code == "migration"]
    assert told(tuple(migration)) == [("migration", "warning", "ws_a.json"), ("migration", "warning", "ws_z.json")]
    assert "migrated only in part" in migration[0].found
    assert migration[1].found == "not migrated: .nexus/workspaces/ws_ws_z.jsonl is missing"


def changed(at: int, **data: Any) -> dict[str, Any]:
    return {"type": "workspace_updated", "workspaceId": "ws_a", "data": data, "timestamp": at}


def test_25_events_are_replayed_by_their_time() -> None:
    late = events({**CREATED, "timestamp": 10}, changed(30, name="third"), changed(20, name="second"))
    assert examine(migrated(late), NOW) == ()
    finding = one(migrated(events({**CREATED, "timestamp": 10}, changed(5, name="too early"))))
    assert (finding.code, finding.severity.value) == ("C12", "warning")
    assert finding.found == ("workspace_updated is older than its workspace ws_a: the program ignores it (line 2)")


def said(id_: str, at: int, event: str) -> dict[str, Any]:
    data = {"id": id_, "role": "user", "content": "hello", "sequenceNumber": at}
    return {"type": "message", "conversationId": "c", "data": data, "timestamp": at, "id": event}


def test_26_one_message_that_the_program_counts_twice() -> None:
    begun = {"type": "metadata", "data": {"id": "c", "title": "c", "created": 1, "vault": "v"}}
    content = events(begun, said("m", 2, "e2"), said("m", 3, "e3"))
    nexus = NexusFiles({Kind.WORKSPACE: {}, Kind.CONVERSATION: {"conv_c.jsonl": content}})
    finding = one(vault(nexus=nexus))
    assert (finding.code, finding.severity.value) == ("C12", "note")
    assert finding.found == "message m again: the latest is used, but the program counts each (line 3)"


def test_27_what_comes_after_a_deletion_is_an_orphan() -> None:
    deleted = {"type": "workspace_deleted", "workspaceId": "ws_a"}
    found = examine(migrated(events(CREATED, deleted, changed(3, name="x"), SESSION, TRACE)), NOW)
    assert {each.severity.value for each in found} == {"note"}
    assert [each.found for each in found] == [
        "workspace_updated of the workspace ws_a, which does not exist: no effect (line 3)",
        "session_created of the workspace ws_a, which is deleted: the program does not show it (line 4)",
        "trace_added of the workspace ws_a, which is deleted: the program does not show it (line 5)",
    ]


def test_28_blank_lines_and_crlf_are_nothing() -> None:
    content = events(CREATED, SESSION).replace(b"\n", b"\r\n\r\n").rstrip()
    assert examine(migrated(content), NOW) == ()


def test_28_a_torn_last_line_is_set_aside() -> None:
    torn = migrated(events(CREATED, SESSION) + b'{"type": "trace_ad')
    finding = one(torn)
    assert (finding.code, finding.severity.value, finding.repairable) == ("C12", "warning", True)
    assert "a truncated last line" in finding.found
    after = carried_out(torn)
    assert after.nexus is not None
    assert after.nexus.events[Kind.WORKSPACE]["ws_ws_a.jsonl"] == events(CREATED, SESSION)
    assert examine(after, NOW) == ()


def test_29_a_limit_of_none() -> None:
    value = workspace("ws_a", sessions={"s": session("s", "t1")})
    data = load_workspace(value, Surroundings(), 0)["data"]
    assert (data["sessions"], data["context"]["recentActivity"]) == ([], ["No recent activity"])


def test_30_two_readmes() -> None:
    value = workspace("ws_a", context={"keyFiles": ["a/README.md", "b/README.md", "dir/", ".hidden"]})
    answer = load_workspace(value, Surroundings(), 3)["data"]["keyFiles"]
    assert answer == {"README": "b/README.md", "file_2": "dir/", "file_3": ".hidden"}
    paths = [each["path"] for each in brief(value, Surroundings(), 3)["keyFiles"]]
    assert paths == ["a/README.md", "b/README.md", "dir/", ".hidden"]


def test_31_a_root_folder_that_does_not_exist() -> None:
    value = workspace("ws_a", rootFolder="Nowhere")
    around = Surroundings((VaultFile("Else/a.md", 1),), frozenset({"Else"}))
    answer = load_workspace(value, around, 3)
    assert answer["success"] is True
    assert answer["data"]["workspaceStructure"] == []
    assert answer["data"]["context"]["recentActivity"][1].startswith("Note: Workspace directory navigation unavailable")
    found = brief(value, around, 3)
    assert (found["folderExists"], found["workspaceStructure"]) == (False, [])


def test_32_a_vault_name_is_made_of_words() -> None:
    index = rebuild(Kind.CONVERSATION, [conversation("c", vault_name="My Vault")], NOW)
    assert index["byVault"] == {"vault": ["c"]}

"""Those of docs/design/formats/claudesidian.md#edge-cases, by number, that say what a mending or a union writes.

Which findings they are is in test_edge_cases.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.format import ClaudesidianFormat
from reconcile.formats.claudesidian.index import rebuild
from reconcile.formats.claudesidian.record_files import INDEX, Kind
from reconcile.formats.claudesidian.vault import NexusFiles, VaultFiles, VaultSnapshot
from reconcile.formats.json import javascript
from reconcile.model.snapshot import Fault, Metadata
from tests.support.formats.claudesidian import NOW, conversation, events, files, index_of, session, vault, workspace

if TYPE_CHECKING:
    from reconcile.model.format import DerivedRepair

VAULT = ClaudesidianFormat()
WORKSPACES, CONVERSATIONS = (f"{kind.directory}/{INDEX}" for kind in Kind)
STREAM = ".nexus/workspaces/ws_ws_a.jsonl"
THREE = [workspace("ws_a", "Alpha"), workspace("ws_b", "Beta"), workspace("ws_c", "Gamma")]
CREATED = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a"}, "id": "e1", "timestamp": 1}


def done(there: VaultFiles, *wanted: str) -> dict[str, DerivedRepair]:
    """What is done by itself or because of a request, by path."""
    return {each.path: each for each in VAULT.mend(VaultSnapshot(there, NOW), {}, wanted) if not each.asked}


def asked(there: VaultFiles) -> list[tuple[str, str]]:
    """The ids of what is only done on request, and the paths."""
    return [(each.id, each.path) for each in VAULT.mend(VaultSnapshot(there, NOW), {}) if each.asked]


def value_of(mended: DerivedRepair) -> Any:
    assert mended.content is not None
    return json.loads(mended.content)


def workspaces(*records: dict[str, Any], index: Any = ..., **more: Any) -> VaultFiles:
    """The same index as before, whatever has become of the records since."""
    return vault(files(*records, index=index, **more))


def streams(content: bytes, **status: bytes) -> NexusFiles:
    return NexusFiles({Kind.WORKSPACE: {"ws_ws_a.jsonl": content}}, **status)


def event(id_: str, time: int, **more: Any) -> dict[str, Any]:
    made = {"type": "session_created", "workspaceId": "ws_a", "data": {"id": id_, "name": id_, "startTime": 1}}
    return {**made, "id": id_, "timestamp": time, **more}


@pytest.mark.parametrize("index", [None, b'{"workspaces": {"ws', b"[]", b""])
def test_1_2_an_index_that_nobody_can_read_is_made_anew(index: bytes | None) -> None:
    made = done(workspaces(*THREE, index=index))
    assert list(made) == [WORKSPACES]
    assert made[WORKSPACES].content == javascript.stringify(rebuild(Kind.WORKSPACE, THREE, 2001))
    assert made[WORKSPACES].before == index
    if index is not None:
        assert isinstance(VAULT.read_record(WORKSPACES, index), Fault), "and is never carried to the store"


def test_3_5_what_led_to_a_record_once_goes() -> None:
    index = index_of(Kind.WORKSPACE, files(workspace("ws_a", "Alpha Research", rootFolder="Research/Alpha")).files)
    made = done(workspaces(workspace("ws_a", "Omega Research", rootFolder="Omega"), index=index))[WORKSPACES]
    assert list(value_of(made)["byName"]) == ["omega", "research"]
    assert value_of(made)["byFolder"] == {"Omega": "ws_a"}
    assert 'byFolder "Research/Alpha": ws_a → none' in made.words


def test_4_a_shared_folder_alone_changes_nothing() -> None:
    both = [workspace("ws_a", rootFolder="Notes"), workspace("ws_b", rootFolder="Notes")]
    index = index_of(Kind.WORKSPACE, files(*both).files)
    index["byFolder"]["Notes"] = "ws_a"
    assert done(workspaces(*both, index=index)) == {}


def test_6_7_a_name_without_words_and_keys_that_are_numbers() -> None:
    assert done(workspaces(workspace("ws_a", "日本語"), workspace("ws_b", "AI"))) == {}
    made = done(workspaces(workspace("ws_a", "Plan 2025 007 10 beta"), index=None))[WORKSPACES]
    assert list(value_of(made)["byName"]) == ["2025", "plan", "007", "beta"]


def test_8_an_index_that_has_the_word_heals_the_vault() -> None:
    made = done(workspaces(workspace("ws_a", "constructor __proto__"), index=index_of(Kind.WORKSPACE, {})))
    assert value_of(made[WORKSPACES])["byName"] == {"constructor": ["ws_a"], "__proto__": ["ws_a"]}


def test_9_10_my_index_is_a_record_and_dot_files_are_carried_as_they_are() -> None:
    content = javascript.stringify(workspace("my-index", "Mine"))
    found = VAULT.read_record(".workspaces/my-index.json", content)
    assert isinstance(found, Metadata)
    assert found.title == "Mine"
    assert isinstance(VAULT.read_record(".workspaces/.trace-schema.json", b'{"version":1}'), Metadata)
    made = done(workspaces(workspace("my-index"), index=None, **{".trace-schema.json": b'{"version":1}'}))
    assert list(value_of(made[WORKSPACES])["workspaces"]) == ["my-index"]


def test_11_12_versions_and_names_are_only_mended_when_asked() -> None:
    versions = workspaces(
        workspace("ws_b"), **{"ws_b (conflict).json": workspace("ws_b", sessions={"s": session("s")})}
    )
    id_ = "C10:.workspaces/ws_b (conflict).json"
    assert asked(versions) == [(id_, ".workspaces/ws_b.json"), (id_, ".workspaces/ws_b (conflict).json")]
    assert list(value_of(done(versions, id_)[".workspaces/ws_b.json"])["sessions"]) == ["s"]
    misnamed = vault(files(**{"other.json": workspace("ws_a")}))
    made = done(misnamed, "C10:.workspaces/other.json")
    assert {path: each.content for path, each in made.items()} == {
        ".workspaces/ws_a.json": javascript.stringify(workspace("ws_a")),
        ".workspaces/other.json": None,
    }


def test_13_what_the_program_would_stumble_over_is_there_empty() -> None:
    value = workspace("ws_a")
    del value["sessions"]
    made = done(workspaces(value))
    assert list(made) == [".workspaces/ws_a.json"], "the index was that of an empty one already"
    assert value_of(made[".workspaces/ws_a.json"])["sessions"] == {}


def test_15_a_state_of_either_spelling_stays_as_it_is_in_a_union() -> None:
    one, other = (
        workspace(
            "ws_a", sessions={"s": session("s", states={key: {"id": key, spelling: {"a": 1}}})}, lastAccessed=time
        )
        for key, spelling, time in (("st1", "snapshot", 5), ("st2", "state", 6))
    )
    both = VAULT.merge(".workspaces/ws_a.json", javascript.stringify(one), javascript.stringify(other))
    assert isinstance(both, bytes)
    assert json.loads(both)["sessions"]["s"]["states"] == {
        "st2": {"id": "st2", "state": {"a": 1}},
        "st1": {"id": "st1", "snapshot": {"a": 1}},
    }


def test_17_18_messages_are_counted_whatever_they_say() -> None:
    made = done(vault(files(), files(conversation("c", None, "two", message_count=1))))
    assert value_of(made[".conversations/c.json"])["message_count"] == 2
    assert value_of(made[CONVERSATIONS])["conversations"]["c"]["message_count"] == 2


def test_19_ranges_of_dates_alone_change_nothing_and_none_are_made_where_there_were_none() -> None:
    value = conversation("c", "text")
    for buckets in (True, False):
        index = rebuild(Kind.CONVERSATION, [value], NOW - 400 * 24 * 3600 * 1000, buckets=buckets)
        assert done(vault(files(), files(value, index=index))) == {}
        (made,) = done(vault(files(), files(value, conversation("d"), index=index))).values()
        assert len(value_of(made)["byDateRange"]) == (12 if buckets else 0)


@pytest.mark.parametrize("entry", [{"traceCount": 21}, {"lastAccessed": 9_000}])
def test_20_21_the_last_evidence_stays_until_somebody_asks(entry: dict[str, Any]) -> None:
    index = index_of(Kind.WORKSPACE, files(THREE[0]).files)
    index["workspaces"]["ws_a"] |= entry
    there = workspaces(*THREE, index=index)
    assert done(there) == {}
    assert asked(there) == [(f"index:{WORKSPACES}", WORKSPACES)]
    assert list(value_of(done(there, f"index:{WORKSPACES}")[WORKSPACES])["workspaces"]) == ["ws_a", "ws_b", "ws_c"]


def test_21_an_entry_that_is_older_than_its_file_is_made_right() -> None:
    index = index_of(Kind.WORKSPACE, files(THREE[0]).files)
    index["workspaces"]["ws_a"]["lastAccessed"] = 1
    assert done(workspaces(THREE[0], index=index))[WORKSPACES].words == ("lastAccessed as in the file: ws_a",)


def test_22_steps_in_a_list_are_not_rewritten() -> None:
    steps = {"workflows": [{"name": "w", "when": "x", "steps": ["one", "two"]}]}
    assert done(workspaces(workspace("ws_a", context=steps))) == {}


def test_23_a_state_that_lost_its_content_is_saved_again_and_the_archive_stays_as_it_is() -> None:
    saved = {"type": "state_saved", "workspaceId": "ws_a", "sessionId": "s", "id": "e3", "timestamp": 3}
    content = events(CREATED, event("s", 2), {**saved, "data": {"id": "st", "name": "st"}})
    older = workspace("ws_a", sessions={"s": session("s", states={"st": {"id": "st", "snapshot": {"a": 1}}})})
    there = vault(files(older, index=b"{"), nexus=streams(content, status=b'{"completed": true}'))
    made = done(there)
    assert list(made) == [STREAM]
    assert (made[STREAM].content or b"").startswith(content)
    again = json.loads((made[STREAM].content or b"").splitlines()[-1])
    assert (again["data"]["stateJson"], again["timestamp"]) == ('{"a":1}', 4)
    gone_on = content + events(event("s9", 9))
    later = done(vault(files(older, index=b"{"), nexus=streams(gone_on, status=b'{"completed": true}')))
    both = VAULT.merge(STREAM, made[STREAM].content or b"", later[STREAM].content or b"")
    assert both == VAULT.merge(STREAM, later[STREAM].content or b"", made[STREAM].content or b"")
    assert both == later[STREAM].content, "mended on two devices, it is one event"


def test_24_what_an_interrupted_migration_left_is_nothing_to_write() -> None:
    nexus = streams(events(CREATED), status=b'{"completed": false}')
    assert done(vault(files(workspace("ws_a", sessions={"s": session("s")})), nexus=nexus)) == {}


def test_25_each_device_keeps_its_order_in_a_union() -> None:
    one = events(CREATED, event("a1", 50), event("a2", 20))
    other = events(CREATED, event("b1", 30))
    both = events(CREATED, event("b1", 30), event("a1", 50), event("a2", 20))
    assert VAULT.merge(STREAM, one, other) == VAULT.merge(STREAM, other, one) == both


def test_26_the_same_event_twice_is_kept_once_and_two_of_one_message_both() -> None:
    twice = events(CREATED, event("s", 2), event("s", 2))
    assert done(vault(nexus=streams(twice)))[STREAM].content == events(CREATED, event("s", 2))
    assert done(vault(nexus=streams(events(CREATED, event("s", 2), {**event("s", 2), "id": "e9"})))) == {}


def test_27_what_comes_after_a_deletion_is_kept_in_a_union() -> None:
    deleted = {"type": "workspace_deleted", "workspaceId": "ws_a", "id": "gone", "timestamp": 5}
    both = VAULT.merge(STREAM, events(CREATED, deleted), events(CREATED, event("s", 9)))
    assert both == events(CREATED, deleted, event("s", 9))


def test_28_blank_lines_and_crlf_are_no_difference_and_a_torn_line_keeps_nothing_out() -> None:
    plain = events(CREATED, event("s", 2))
    other = plain.replace(b"\n", b"\r\n\r\n")
    assert done(vault(nexus=streams(other))) == {}
    assert done(vault(nexus=streams(plain.removesuffix(b"\n")))) == {}
    assert VAULT.merge(STREAM, plain, other + events(event("t", 3))) == other + events(event("t", 3))
    torn = plain + b'{"type": "mess'
    assert isinstance(VAULT.read_record(STREAM, torn), Metadata)
    assert done(vault(nexus=streams(torn)))[STREAM].content == plain
    assert VAULT.merge(STREAM, torn, plain + events(event("t", 3))) == plain + events(event("t", 3))


def test_32_a_vault_is_found_by_the_words_of_its_name() -> None:
    made = done(vault(files(), files(conversation("c", vault_name="My Vault"), index=None)))[CONVERSATIONS]
    assert value_of(made)["byVault"] == {"vault": ["c"]}

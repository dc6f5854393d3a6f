"""The replay of event files beside SQLite, which is what the program fills with them.

See docs/design/formats/claudesidian.md#replay.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from typing import Any

from reconcile.formats.claudesidian.events import Event, EventFile, joined, line, read_events
from reconcile.formats.claudesidian.finding import Severity
from reconcile.formats.claudesidian.record_files import Kind, sessions_of, states_of, traces_of
from reconcile.formats.claudesidian.replay import Remark, replay
from tests.support.formats.claudesidian import CORPUS, events, needs_corpus

SCHEMA = """
CREATE TABLE workspaces (id TEXT PRIMARY KEY, name, rootFolder, created, lastAccessed, isActive, contextJson);
CREATE TABLE sessions (id TEXT PRIMARY KEY, workspaceId, name, startTime, isActive, endTime);
CREATE TABLE states (id TEXT PRIMARY KEY, workspaceId, sessionId, name, created, stateJson);
CREATE TABLE traces (id TEXT PRIMARY KEY, workspaceId, sessionId, timestamp, content);
CREATE TABLE conversations (id TEXT PRIMARY KEY, title, created, updated, vault, message_count);
CREATE TABLE messages (id TEXT PRIMARY KEY, conversationId, role, content, timestamp, state, sequenceNumber);
"""
COLUMNS = {
    "workspaces": ("name", "rootFolder", "created", "lastAccessed", "isActive", "contextJson"),
    "sessions": ("workspaceId", "name", "startTime", "isActive", "endTime"),
    "states": ("workspaceId", "sessionId", "name", "created", "stateJson"),
    "traces": ("workspaceId", "sessionId", "timestamp", "content"),
    "conversations": ("title", "created", "updated", "vault", "message_count"),
    "messages": ("conversationId", "role", "content", "timestamp", "state", "sequenceNumber"),
}


def test_a_count_of_messages_that_an_update_has_made_something_else() -> None:
    changed = {"type": "conversation_updated", "conversationId": "c", "data": {"message_count": None}}
    message = {"type": "message", "conversationId": "c", "data": {"id": "m"}}
    content = events({"type": "metadata", "data": {"id": "c"}}, changed, message)
    cache = replay({Kind.CONVERSATION: {"conv_c.jsonl": read_events(content)}})
    assert cache.conversations["c"]["message_count"] == 1


class Database:
    """What the page says of each type of event, as statements; the names in them are those above."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.executescript(SCHEMA)

    def insert(self, table: str, row: dict[str, Any]) -> None:
        columns = ("id", *COLUMNS[table])
        statement = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
        self.connection.execute(statement, [row.get(column) for column in columns])

    def update(self, table: str, id_: str, changes: dict[str, Any]) -> None:
        for column, value in changes.items():
            self.connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", [value, id_])  # noqa: S608

    def delete(self, table: str, id_: str) -> None:
        self.connection.execute(f"DELETE FROM {table} WHERE id = ?", [id_])  # noqa: S608

    def rows(self, table: str) -> dict[str, tuple[Any, ...]]:
        found = self.connection.execute(f"SELECT id, {', '.join(COLUMNS[table])} FROM {table}")  # noqa: S608
        return {row[0]: row[1:] for row in found}

    def apply(self, event: Event) -> None:
        value, data = event.value, event.data
        owners = {"workspaceId": value.get("workspaceId"), "sessionId": value.get("sessionId")}
        made: dict[str, tuple[str, dict[str, Any]]] = {
            "workspace_created": ("workspaces", {"lastAccessed": data.get("created"), "isActive": 0}),
            "session_created": ("sessions", {"workspaceId": owners["workspaceId"], "isActive": 1}),
            "state_saved": ("states", owners),
            "trace_added": ("traces", {**owners, "timestamp": event.timestamp}),
            "metadata": ("conversations", {"updated": data.get("created"), "message_count": 0}),
            "message": ("messages", {"conversationId": value.get("conversationId"), "timestamp": event.timestamp}),
        }
        updated = {
            "workspace_updated": ("workspaces", "workspaceId"),
            "session_updated": ("sessions", "sessionId"),
            "message_updated": ("messages", "messageId"),
            "conversation_updated": ("conversations", "conversationId"),
        }
        deleted = {"workspace_deleted": ("workspaces", "workspaceId"), "state_deleted": ("states", "stateId")}
        if event.type in made:
            table, row = made[event.type]
            self.insert(table, {"state": "complete", **data, **row})
        elif event.type in updated:
            table, member = updated[event.type]
            own = {"updated": event.timestamp} if table == "conversations" else {}
            self.update(table, value[member], {**own, **data})
        else:
            table, member = deleted[event.type]
            self.delete(table, value[member])
        if event.type == "message":
            counted = "UPDATE conversations SET message_count = message_count + 1, updated = ? WHERE id = ?"
            self.connection.execute(counted, [event.timestamp, value["conversationId"]])


def rows(files: dict[Kind, dict[str, EventFile]]) -> dict[str, dict[str, tuple[Any, ...]]]:
    database = Database()
    with closing(database.connection):
        for kind in Kind:
            for name in sorted(files[kind]):
                for event in sorted(files[kind][name].events, key=lambda each: each.timestamp):
                    database.apply(event)
        return {table: database.rows(table) for table in COLUMNS}


def ours(files: dict[Kind, dict[str, EventFile]]) -> dict[str, dict[str, tuple[Any, ...]]]:
    cache = replay(files)
    return {
        table: {id_: tuple(row.get(column) for column in columns) for id_, row in getattr(cache, table).items()}
        for table, columns in COLUMNS.items()
    }


def some_event(kind: Kind, chance: random.Random, number: int) -> dict[str, Any]:
    text, time = chance.choice(["a", "b", "c"]), chance.randrange(6)
    workspace = {"workspaceId": "ws_a"}
    session = {**workspace, "sessionId": chance.choice(["s1", "s2"])}
    conversation = {"conversationId": "c1"}
    choices: list[dict[str, Any]] = [
        {"type": "workspace_created", "data": {"id": "ws_a", "name": text, "rootFolder": "/", "created": time}},
        {"type": "workspace_updated", **workspace, "data": {"name": text}},
        {"type": "workspace_updated", **workspace, "data": {"lastAccessed": time, "contextJson": "{}"}},
        {"type": "workspace_deleted", **workspace},
        {"type": "session_created", **workspace, "data": {"id": session["sessionId"], "name": text, "startTime": time}},
        {"type": "session_updated", **session, "data": {"endTime": time}},
        {"type": "state_saved", **session, "data": {"id": "st", "name": text, "created": time, "stateJson": "{}"}},
        {"type": "state_deleted", **session, "stateId": "st"},
        {"type": "trace_added", **session, "data": {"id": chance.choice(["t1", "t2"]), "content": text}},
    ]
    if kind is Kind.CONVERSATION:
        said = {"id": chance.choice(["m1", "m2"]), "role": "user", "content": text, "sequenceNumber": time}
        choices = [
            {"type": "metadata", "data": {"id": "c1", "title": text, "created": time, "vault": "v"}},
            {"type": "conversation_updated", **conversation, "data": {"title": text}},
            {"type": "conversation_updated", **conversation, "data": {"updated": time}},
            {"type": "message", **conversation, "data": said},
            {"type": "message", **conversation, "data": {**said, "state": "draft"}},
            {"type": "message_updated", **conversation, "messageId": said["id"], "data": {"content": text}},
        ]
    return {**chance.choice(choices), "id": f"e{number}", "deviceId": "d", "timestamp": 10 + time}


def test_of_any_events_the_cache_is_that_of_the_database() -> None:
    for seed in range(400):
        chance = random.Random(seed)
        files = {
            kind: {
                name: read_events(joined(line(some_event(kind, chance, at)) for at in range(chance.randrange(12))))
                for name in ("a.jsonl", "b.jsonl")
            }
            for kind in Kind
        }
        assert ours(files) == rows(files), seed


@needs_corpus
def test_the_migrated_vaults_are_what_they_were() -> None:
    for scenario in ("hybrid-from-2025-11", "hybrid-from-2025-12"):
        paths = sorted((CORPUS / scenario / ".nexus" / "workspaces").glob("*.jsonl"))
        cache = replay({Kind.WORKSPACE: {path.name: read_events(path.read_bytes()) for path in paths}})
        assert cache.remarks == ()
        for id_ in cache.workspaces:
            value = cache.workspace(id_)
            if id_ == "default":
                continue
            (older,) = CORPUS.glob(f"*/.workspaces/{id_}.json")
            sessions = sessions_of(json.loads(older.read_bytes()))
            assert list(sessions_of(value)) == list(sessions)
            for key, session in sessions_of(value).items():
                assert list(traces_of(session)) == list(traces_of(sessions[key]))
                assert list(states_of(session)) == list(states_of(sessions[key]))


def test_a_workspace_has_the_form_that_its_file_had() -> None:
    history = events(
        {
            "type": "workspace_created",
            "data": {
                "id": "ws_a",
                "name": "A",
                "description": "d",
                "rootFolder": "R",
                "created": 1,
                "contextJson": "{}",
            },
        },
        {"type": "workspace_updated", "workspaceId": "ws_a", "data": {"lastAccessed": 9, "isActive": True}},
        {"type": "session_created", "workspaceId": "ws_a", "data": {"id": "s", "name": "S", "startTime": 2}},
        {
            "type": "trace_added",
            "workspaceId": "ws_a",
            "sessionId": "s",
            "data": {"id": "t", "content": "c", "traceType": "tool_call", "metadataJson": '{"tool":"x"}'},
        },
        {"type": "trace_added", "workspaceId": "ws_a", "sessionId": "s", "data": {"id": "t2", "content": None}},
        {
            "type": "state_saved",
            "workspaceId": "ws_a",
            "sessionId": "s",
            "data": {"id": "st", "name": "N", "created": 3, "description": "D", "stateJson": '{"a":1}', "tags": ["x"]},
        },
        {"type": "state_saved", "workspaceId": "ws_a", "sessionId": "s", "data": {"id": "st2", "stateJson": "[]"}},
    )
    cache = replay({Kind.WORKSPACE: {"ws_ws_a.jsonl": read_events(history)}})
    assert cache.workspace("ws_a") == {
        "id": "ws_a",
        "name": "A",
        "description": "d",
        "rootFolder": "R",
        "created": 1,
        "lastAccessed": 9,
        "isActive": True,
        "context": {},
        "sessions": {
            "s": {
                "id": "s",
                "name": "S",
                "startTime": 2,
                "isActive": True,
                "memoryTraces": {
                    "t": {"id": "t", "timestamp": 4, "type": "tool_call", "content": "c", "metadata": {"tool": "x"}},
                    "t2": {"id": "t2", "timestamp": 5, "type": None, "content": None},
                },
                "states": {
                    "st": {
                        "id": "st",
                        "name": "N",
                        "created": 3,
                        "description": "D",
                        "tags": ["x"],
                        "state": {"a": 1},
                    },
                    "st2": {"id": "st2"},
                },
            }
        },
    }


def test_where_the_program_says_nothing_a_remark_says_where() -> None:
    created = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a"}, "timestamp": 50}
    early = {"type": "session_created", "workspaceId": "ws_a", "data": {"id": "s"}, "timestamp": 2}
    earlier = {"type": "session_created", "workspaceId": "ws_a", "data": {"id": "s2"}, "timestamp": 1}
    cache = replay({Kind.WORKSPACE: {"ws_ws_a.jsonl": read_events(events(created, early, earlier))}})
    assert cache.workspaces["ws_a"]["created"] == 50
    assert cache.workspaces["ws_a"]["rootFolder"] == ""
    words = "session_created of the workspace ws_a, which is created later: the program does not show it"
    assert cache.remarks == (Remark(Kind.WORKSPACE, "ws_ws_a.jsonl", Severity.NOTE, words, (2, 3)),)


def test_what_hangs_on_nothing_is_shown_nowhere() -> None:
    created = {"type": "workspace_created", "data": {"id": "ws_a", "name": "a", "created": 1, "contextJson": "["}}
    orphan = {"type": "trace_added", "workspaceId": "ws_a", "sessionId": "s9", "data": {"id": "t1", "content": "c"}}
    cache = replay({Kind.WORKSPACE: {"a.jsonl": read_events(events(created, orphan))}})
    assert cache.workspace("ws_a")["sessions"] == {}
    assert "context" not in cache.workspace("ws_a")
    assert [remark.words for remark in cache.remarks] == [
        "trace_added of the session s9, which was never created: the program does not show it"
    ]

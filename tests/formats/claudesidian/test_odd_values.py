"""Vaults in which any value may be something else: nothing crashes, and what is mended stays so."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.briefing import Agent, Surroundings, VaultFile, brief, load_workspace, version_of
from reconcile.formats.claudesidian.checks.events import read_nexus
from reconcile.formats.claudesidian.checks.examine import examine
from reconcile.formats.claudesidian.events import joined, line, read_events
from reconcile.formats.claudesidian.record_files import Item, Kind, read_item
from reconcile.formats.claudesidian.replay import replay
from reconcile.formats.claudesidian.vault import NexusFiles, SplitFiles, VaultFiles
from reconcile.formats.json import javascript
from tests.support.formats.claudesidian import NOW, carried_out, conversation, files, session, vault, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

ODD = [None, [], {}, "", "x", True, 0, -1, 1.5, 1e400, [[1]], {"a": {"b": 1}}, "constructor", 10**30, ["ws_a"], "ws_b"]
AROUND = Surroundings((VaultFile("N/a.md", 1), VaultFile("b.md", 2)), frozenset({"N"}), (Agent("a", "A", "p"),))


def a_workspace(id_: str) -> dict[str, Any]:
    context = {
        "purpose": "p",
        "workflows": [{"name": "n", "when": "w", "steps": ["s"]}],
        "keyFiles": ["a/b.md", {"category": "c", "files": {"x": "y.md"}}],
        "preferences": "p",
        "dedicatedAgent": {"agentId": "a", "agentName": "A"},
    }
    copy = workspace(id_, sessions={"s1": session("s1", "t1", "t9")})
    state = {"id": "st", "name": "st", "created": 5, "state": {"context": {}, "state": {"workspace": copy}}}
    sessions = {"s1": session("s1", "t1", states={"st": state}), "12": session("12", "t2")}
    sessions["s1"]["memoryTraces"]["t1"]["metadata"] = {
        "request": {"normalizedParams": {"context": {"sessionMemory": "m"}}}
    }
    return workspace(
        id_, f"Workspace {id_}", description="about it", rootFolder="N", context=context, sessions=sessions
    )


def a_conversation(id_: str) -> dict[str, Any]:
    settings = {"chatSettings": {"workspaceId": "ws_a", "sessionId": "s1"}, "cost": 1}
    return conversation(id_, "hello", "hello", metadata=settings)


EVENTS: list[dict[str, Any]] = [
    {
        "type": "workspace_created",
        "data": {"id": "ws_a", "name": "n", "rootFolder": "/", "created": 1, "contextJson": "{}"},
    },
    {"type": "session_created", "workspaceId": "ws_a", "data": {"id": "s1", "name": "s", "startTime": 2}},
    {"type": "state_saved", "workspaceId": "ws_a", "sessionId": "s1", "data": {"id": "st", "stateJson": "{}"}},
    {"type": "trace_added", "workspaceId": "ws_a", "sessionId": "s1", "data": {"id": "t1", "metadataJson": "{}"}},
    {"type": "workspace_updated", "workspaceId": "ws_a", "data": {"name": "m"}},
    {"type": "session_updated", "workspaceId": "ws_a", "sessionId": "s1", "data": {"name": "m"}},
    {"type": "state_deleted", "workspaceId": "ws_a", "sessionId": "s1", "stateId": "st"},
    {"type": "workspace_deleted", "workspaceId": "ws_a"},
    {"type": "metadata", "data": {"id": "c1", "title": "t", "created": 1, "vault": "v"}},
    {"type": "message", "conversationId": "c1", "data": {"id": "msg_0", "role": "user", "content": "c"}},
    {"type": "message_updated", "conversationId": "c1", "messageId": "msg_0", "data": {"content": "d"}},
    {"type": "conversation_updated", "conversationId": "c1", "data": {"title": "t"}},
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def made_odd(value: Any, chance: random.Random, times: int) -> Any:
    changed = json.loads(json.dumps(value))
    for _ in range(times):
        owner, key = chance.choice(list(places(changed)))
        if isinstance(owner, dict) and chance.random() < 0.3:
            del owner[key]
        else:
            owner[key] = json.loads(json.dumps(chance.choice(ODD)))
    return changed


def odd_vault(chance: random.Random) -> VaultFiles:
    records = [[a_workspace("ws_a"), a_workspace("ws_b")], [a_conversation("c1"), a_conversation("c2")]]
    split = []
    for plain in records:
        found = files(*plain)
        contents = dict(found.files)
        for name in chance.sample(list(contents), k=chance.randrange(3)):
            content = contents[name]
            assert isinstance(content, bytes)
            contents[name] = javascript.stringify(made_odd(javascript.parse(content), chance, chance.randrange(1, 4)))
        split.append(SplitFiles(contents))
    if chance.random() < 0.3:
        return vault(*split)
    events = made_odd([{**each, "id": f"e{at}", "timestamp": at} for at, each in enumerate(EVENTS)], chance, 3)
    content = joined(line(each) if isinstance(each, dict) else b"[]" for each in events)
    streams = {Kind.WORKSPACE: {"ws_ws_a.jsonl": content}, Kind.CONVERSATION: {"conv_c1.jsonl": content}}
    status = chance.choice([None, b'{"completed": true}', b'{"completed": false}', b"[]", b"{"])
    return vault(*split, nexus=NexusFiles({kind: dict(each) for kind, each in streams.items()}, status))


@pytest.mark.parametrize("block", range(8))
def test_nothing_crashes_and_what_is_mended_stays_so(block: int) -> None:
    for seed in range(block * 40, block * 40 + 40):
        chance = random.Random(seed)
        read = odd_vault(chance)
        found = examine(read, NOW)
        assert examine(read, NOW) == found
        assert not [each for each in found if re.search(r"\bNone\b", f"{each.found} {each.mend}")], seed
        after = carried_out(read)
        again = examine(carried_out(after), NOW)
        assert [each.found for each in again if each.repairable] == [], seed
        assert not [each for each in again if each.code == "C1" and not each.on_request], seed


@pytest.mark.parametrize("block", range(4))
def test_any_workspace_can_be_told(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        chance = random.Random(seed)
        value = made_odd(a_workspace("ws_a"), chance, 3)
        item = read_item(Kind.WORKSPACE, "ws_a.json", javascript.stringify(value))
        if isinstance(item, Item):
            json.dumps(brief(item.value, AROUND, 2))
            javascript.stringify(load_workspace(item.value, AROUND, 2))
            version_of([item.value])
        nexus = odd_vault(chance).nexus
        if nexus is not None:
            cache = replay(read_nexus(nexus))
            for id_ in cache.workspaces:
                json.dumps(brief(cache.workspace(id_), AROUND, 2))


def test_odd_events_are_read() -> None:
    found = read_events(b'{"type": 1, "id": 2, "timestamp": "x", "data": []}\n')
    (event,) = found.events
    assert (event.type, event.id, event.timestamp, event.data) == ("1", None, 0, {})
